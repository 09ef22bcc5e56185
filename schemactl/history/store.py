"""The user's cache: files that are kept between runs, outside of every repository.

A file's name says everything that its content depends on: the kind, and a digest of the code of schemactl and of what the
caller names. The commits, trees and blobs that it is about are named inside by their ids. So no file is ever wrong, only unused;
what was not used for MAX_AGE_S is removed. Whoever can write here decides what the next run believes: a checksum detects a file
that was cut off, not one that was forged. Without a place to write, nothing is kept, and everything works.

The early exit of the hook reads here, so this module imports next to nothing.
"""

from __future__ import annotations

import os
import sys
import time

# `hashlib` brings all of OpenSSL with it.
from _blake2 import blake2b

from schemactl.core import atomic_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "SCHEMACTL_CACHE"
"""The environment variable that names another folder for the cache, or with no value none."""

MAX_AGE_S = 30 * 24 * 3600
"""A file that was not used for so long is removed."""

_USE_INTERVAL_S = 24 * 3600
"""The time of the last use is noted no more often than this."""

_DIGEST_BYTES = 16

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_programs: list[str] = []
"""The answer of `program`, once it was asked for."""


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


def installation() -> str:
    """Return when this installation was made: less exact than `program`, but known without reading the code."""
    return f"{_PACKAGE}\0{os.stat(_PACKAGE).st_ctime_ns}"


class Store:
    """The cached files of one repository that depend on the same facts, one file for each kind of content.

    Args:
        git_directory: Git's folder that all linked worktrees share.
        facts: what the content depends on, besides the objects of the repository.
        identify_code: returns which code the content depends on.
    """

    def __init__(
        self, git_directory: str | os.PathLike[str], *facts: str, identify_code: Callable[[], str] = program
    ) -> None:
        self._folder = repository_folder(git_directory)
        self._facts = facts
        self._identify_code = identify_code

    def read(self, kind: str) -> memoryview | None:
        """Return the content that was kept, or None if there is none that is whole."""
        if self._folder is None:
            return None
        path = self._path(kind, self._folder)
        try:
            with open(path, "rb", buffering=0) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > _USE_INTERVAL_S:
                    os.utime(path)
                data = file.readall()
        except OSError:
            return None
        # Without a copy: a large history has 20 MB.
        content = memoryview(data)[_DIGEST_BYTES:]
        return content if data[:_DIGEST_BYTES] == _digest(content) else None

    def write(self, kind: str, content: bytes) -> None:
        """Keep `content` where that is possible, and remove what nobody used for a long time."""
        if self._folder is None:
            return
        try:
            atomic_files.write(
                self._path(kind, self._folder), (_digest(content), content), below=None, mode=atomic_files.OWN
            )
            _remove_unused(os.path.dirname(self._folder))
        except OSError:
            # The disk is full or read-only, or another process removes the same files.
            pass

    def _path(self, kind: str, folder: str) -> str:
        facts = "\0".join([self._identify_code(), *self._facts])
        return os.path.join(folder, f"{kind}-{_digest(os.fsencode(facts)).hex()}")


def repository_folder(git_directory: str | os.PathLike[str]) -> str | None:
    """Return the folder for what is cached of a repository, or None if there is no place for a cache outside of its working tree."""
    named = os.environ.get(VARIABLE)
    if named is None:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            # As the XDG base directory specification has it.
            base = os.path.expanduser("~/.cache")
        if not os.path.isabs(base):
            return None
        cache = os.path.join(base, "schemactl")
    elif named:
        cache = os.path.abspath(named)
    else:
        return None
    place = os.path.realpath(git_directory)
    if os.path.basename(place) == ".git" and f"{os.path.realpath(cache)}/".startswith(f"{os.path.dirname(place)}/"):
        # A commit could bring files there.
        return None
    return os.path.join(cache, _digest(os.fsencode(place)).hex())


def _digest(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _remove_unused(cache: str) -> None:
    """Remove the files of all repositories that were not used for MAX_AGE_S, and the folders that are empty then."""
    before_s = time.time() - MAX_AGE_S
    for name in os.listdir(cache):
        # The variable may name a folder in which other things are, too.
        if len(name) != 2 * _DIGEST_BYTES or not set(name) <= set("0123456789abcdef"):
            continue
        folder = os.path.join(cache, name)
        with os.scandir(folder) as files:
            unused = [file.path for file in files if file.stat(follow_symlinks=False).st_mtime < before_s]
        for path in unused:
            os.unlink(path)
        if unused and not os.listdir(folder):
            os.rmdir(folder)


def _files(folder: str) -> Iterator[str]:
    """Yield the files of the code, without what Python compiles of it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield entry.path
            elif entry.name != "__pycache__":
                yield from _files(entry.path)
