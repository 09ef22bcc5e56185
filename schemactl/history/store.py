"""Files kept between runs in Git's folder, authenticated with a key of the user.

Others can write there, too: a CI system may restore the folder from a run on somebody's branch. So each file begins with a
keyed digest of the rest, and the key is in the user's state folder ($XDG_STATE_HOME/schemactl). What has another digest
counts as missing. Without a key nothing is kept. Deleting the files loses nothing but time.

The early exit of the hook reads here, so this module imports next to nothing.
"""

from __future__ import annotations

import os
import stat
import sys

# `hashlib` brings all of OpenSSL with it.
from _blake2 import blake2b

from schemactl.core import atomic_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY_BYTES = 32
_DIGEST_BYTES = 32
_MAX_BYTES = 1 << 30
"""No file of ours is larger: the history of 50,000 commits has 20 MB."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_programs: list[str] = []
"""What `program` has answered."""


class Store:
    """What is kept for one project of a repository: a file for each kind of content, of use to the code that wrote it."""

    def __init__(self, common_directory: str | os.PathLike[str], project_file: str) -> None:
        # A monorepo may hold several projects; each has its own files.
        name = "".join(letter if letter.isalnum() else f"-{ord(letter):x}-" for letter in project_file)
        self._folder = os.path.join(common_directory, "schemactl")
        self._name = name[:200]

    def path(self, kind: str) -> str:
        """Return where content of that kind is kept."""
        return os.path.join(self._folder, f"{kind}-{self._name}")

    def read(self, kind: str) -> memoryview | None:
        """Return what was kept; None where nothing was, or something that is not ours, or by other code."""
        content = read(self.path(kind), kind)
        writer = program().encode()
        if content is None or content[: len(writer)] != writer:
            return None
        return content[len(writer) :]

    def write(self, kind: str, content: bytes) -> bool:
        """Return whether `content` is kept now; if not, what was kept before is."""
        return write(self.path(kind), kind, program().encode(), content)


def read(path: str, kind: str) -> memoryview | None:
    """Return what was kept at `path` as that kind of thing; None where nothing is, or something that is not ours."""
    key = _key()
    if key is None:
        return None
    try:
        data = _content(path, _MAX_BYTES)
    except OSError:
        return None
    # Without a copy: a large history has 20 MB.
    content = memoryview(data)[_DIGEST_BYTES:]
    return content if data[:_DIGEST_BYTES] == _digest(key, kind, content) else None


def write(path: str, kind: str, *content: bytes) -> bool:
    """Return whether `content`, in parts, is kept at `path` now; if not, what was there before is."""
    key = _key() or _new_key()
    if key is None or sum(map(len, content)) > _MAX_BYTES - _DIGEST_BYTES:
        return False
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.islink(folder):
            return False
        atomic_files.write(path, (_digest(key, kind, *content), *content), below=None, mode=atomic_files.OWN)
    except OSError:
        return False
    return True


def program() -> str:
    """Return a digest of this installation's code: other code may judge differently."""
    if not _programs:
        digest = blake2b(repr(sys.hexversion).encode(), digest_size=_DIGEST_BYTES)
        for path in sorted(_files(_PACKAGE)):
            with open(path, "rb") as file:
                content = file.read()
            digest.update(f"{path[len(_PACKAGE) :]}\0{len(content)}\n".encode())
            digest.update(content)
        _programs.append(digest.hexdigest())
    return _programs[0]


def _digest(key: bytes, kind: str, *content: bytes | memoryview) -> bytes:
    digest = blake2b(key=key, person=kind.encode(), digest_size=_DIGEST_BYTES)
    for part in content:
        digest.update(part)
    return digest.digest()


def _state() -> str | None:
    """Return the user's state folder; None: they have none."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        # As the XDG base directory specification has it.
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "schemactl") if os.path.isabs(base) else None


def _key() -> bytes | None:
    """Return the key; None where there is none, or one that others could have put there or read."""
    folder = _state()
    if folder is None:
        return None
    try:
        key = _content(os.path.join(folder, "key"), _KEY_BYTES, private=True)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _new_key() -> bytes | None:
    """Make a key, or return the one that another process made meanwhile; None where none can be kept."""
    folder = _state()
    if folder is None:
        return None
    path = os.path.join(folder, "key")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.lexists(path) and _key() is None:
            os.unlink(path)
        # Unless another process was faster: then its key counts.
        atomic_files.write(path, os.urandom(_KEY_BYTES), below=None, mode=atomic_files.OWN, is_new=True)
    except FileExistsError:
        pass
    except OSError:
        return None
    return _key()


def _files(folder: str) -> Iterator[str]:
    """Yield the files of the code, without what Python compiles of it."""
    with os.scandir(folder) as listed:
        for each in listed:
            if not each.is_dir():
                yield each.path
            elif each.name != "__pycache__":
                yield from _files(each.path)


def _content(path: str, most_bytes: int, *, private: bool = False) -> bytes:
    """Return what a plain file holds, `private` where it is ours alone to read and write; raise OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if (
            not stat.S_ISREG(found.st_mode)
            or found.st_size > most_bytes
            or (private and (found.st_uid != os.geteuid() or found.st_mode & 0o077))
        ):
            raise OSError(path)
        return file.readall()
