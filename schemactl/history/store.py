"""The user's cache: files that are saved between runs, outside of every repository.

The name of a file contains everything that its content depends on: the kind, and a digest of the code of schemactl and of the
caller's facts. The content refers to commits, trees and blobs by their ids. So a file is never wrong, only unused; files that were not
used for MAX_AGE_S are removed. A checksum detects truncated files, but not forged ones: a user who can write here controls the next
run. Without a writable folder nothing is saved, and everything works.

The early exit of the hook reads here, so this module imports next to nothing.
"""

from __future__ import annotations

import os
import sys
import time

# `hashlib` would import all of OpenSSL.
from _blake2 import blake2b

from schemactl.core import atomic_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "SCHEMACTL_CACHE"
"""The environment variable that names another folder for the cache; an empty value turns the cache off."""

MAX_AGE_S = 30 * 24 * 3600
"""Time without use after which a file is removed."""

_USE_INTERVAL_S = 24 * 3600
"""Minimum time between two updates of a file's time of last use."""

_DIGEST_BYTES = 16

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

write_errors: dict[str, str] = {}
"""The folders that could not be written in this process, each with the reason."""

_programs: list[str] = []
"""The result of `program` after its first call."""


def program() -> str:
    """Compute a digest of this installation's code, since other code can have other results."""
    if not _programs:
        digest = blake2b(repr(sys.hexversion).encode(), digest_size=_DIGEST_BYTES)
        for path in sorted(_list_files(_PACKAGE)):
            with open(path, "rb") as file:
                content = file.read()
            digest.update(f"{path[len(_PACKAGE) :]}\0{len(content)}\n".encode())
            digest.update(content)
        _programs.append(digest.hexdigest())
    return _programs[0]


def installation() -> str:
    """Return the path and time of this installation: less exact than `program`, but fast."""
    return f"{_PACKAGE}\0{os.stat(_PACKAGE).st_ctime_ns}"


class Store:
    """The cached files of one repository that depend on the same facts, one file for each kind of content.

    Args:
        git_directory: Git's folder that all linked worktrees share.
        facts: the inputs of the content, besides the objects of the repository.
        identify_code: returns the identity of the code that the content depends on.

    Attributes:
        folder: the folder of the files, or None if nothing is saved.
    """

    def __init__(
        self, git_directory: str | os.PathLike[str], *facts: str, identify_code: Callable[[], str] = program
    ) -> None:
        self.folder = repository_folder(git_directory)
        self._facts = facts
        self._identify_code = identify_code

    def read(self, kind: str) -> memoryview | None:
        """Return the saved content, or None if the file is missing or damaged."""
        if self.folder is None:
            return None
        path = self._build_path(kind, self.folder)
        try:
            with open(path, "rb", buffering=0) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > _USE_INTERVAL_S:
                    os.utime(path)
                data = file.readall()
        except OSError:
            return None
        # Without a copy: a large history has 20 MB.
        content = memoryview(data)[_DIGEST_BYTES:]
        return content if data[:_DIGEST_BYTES] == _compute_digest(content) else None

    def write(self, kind: str, content: bytes) -> bool:
        """Save `content` if possible, and remove files that were not used for MAX_AGE_S; return whether it is saved."""
        if self.folder is None:
            return False
        is_saved = False
        try:
            atomic_files.write(
                self._build_path(kind, self.folder),
                (_compute_digest(content), content),
                below=None,
                mode=atomic_files.PRIVATE_MODE,
            )
            is_saved = True
            _remove_unused(os.path.dirname(self.folder))
        except OSError as error:
            # The disk is full or read-only, or another process removes the same files.
            if not is_saved:
                write_errors[self.folder] = error.strerror or str(error)
        return is_saved

    def _build_path(self, kind: str, folder: str) -> str:
        facts = "\0".join([self._identify_code(), *self._facts])
        return os.path.join(folder, f"{kind}-{_compute_digest(os.fsencode(facts)).hex()}")


def repository_folder(git_directory: str | os.PathLike[str]) -> str | None:
    """Return the cache folder of a repository, or None if there is no suitable folder outside of its working tree."""
    configured = os.environ.get(VARIABLE)
    if configured is None:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            # The XDG base directory specification ignores relative paths.
            base = os.path.expanduser("~/.cache")
        if not os.path.isabs(base):
            return None
        cache = os.path.join(base, "schemactl")
    elif configured:
        cache = os.path.abspath(configured)
    else:
        return None
    git_path = os.path.realpath(git_directory)
    working_tree = os.path.dirname(git_path)
    if os.path.basename(git_path) == ".git" and f"{os.path.realpath(cache)}/".startswith(f"{working_tree}/"):
        # A commit could add files there.
        return None
    return os.path.join(cache, _compute_digest(os.fsencode(git_path)).hex())


def _compute_digest(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _remove_unused(cache: str) -> None:
    """Remove the files of all repositories that were not used for MAX_AGE_S, and folders that become empty."""
    before_s = time.time() - MAX_AGE_S
    for name in os.listdir(cache):
        # The variable can name a folder that contains other files.
        if len(name) != 2 * _DIGEST_BYTES or not set(name) <= set("0123456789abcdef"):
            continue
        folder = os.path.join(cache, name)
        with os.scandir(folder) as files:
            unused = [file.path for file in files if file.stat(follow_symlinks=False).st_mtime < before_s]
        for path in unused:
            os.unlink(path)
        if unused and not os.listdir(folder):
            os.rmdir(folder)


def _list_files(folder: str) -> Iterator[str]:
    """Yield the files of the code, without compiled ones."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield entry.path
            elif entry.name != "__pycache__":
                yield from _list_files(entry.path)
