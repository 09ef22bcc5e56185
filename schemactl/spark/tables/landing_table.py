"""A folder of a file system, and which of its files readers see."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

from pyarrow import fs

from .errors import WrongArgument

# Object stores answer slowly, but many requests at once.
_AT_ONCE: Final = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# How often a folder is made whose parent somebody removes, because it was empty, just before.
_TRIES: Final = 100

# What Hadoop calls a store that Arrow knows by another name.
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a file system; `path` is as that file system writes it. Each `name` is relative to it."""

    files: fs.FileSystem
    path: str

    @classmethod
    def at(cls, place: str | PathLike[str], files: fs.FileSystem | None = None) -> Folder:
        """Return the folder that `place` names: a local path, or a URI that Arrow knows; with `files`, a path of theirs.

        Raises:
            WrongArgument: `place` is empty, or Arrow knows no file system for the URI.
        """
        place = os.fspath(place)
        if not place:
            raise WrongArgument("the path is empty: `.` is the working folder of the job")
        if files is not None:
            return cls(files, place.rstrip("/"))
        scheme, colon, rest = place.partition(":")
        # One letter is a drive.
        if not colon or len(scheme) == 1 or "/" in scheme:
            return cls(fs.LocalFileSystem(), Path(place).absolute().as_posix())
        if scheme == "file":
            # To Hadoop, file:/folder is the same as file:///folder; Arrow knows only the latter.
            return cls(fs.LocalFileSystem(), "/" + rest.strip("/"))
        try:
            found, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}")
        except (ValueError, NotImplementedError, OSError) as error:
            why = str(error).partition("\n")[0].replace(rest, without_secrets(rest))
            raise WrongArgument(
                f"{without_secrets(place)} names no file system that Arrow can write to ({why}): "
                "write a local path, file:, s3:, gs:, hdfs: or abfss:, or give one as `filesystem`"
            ) from None
        return cls(found, path.rstrip("/"))

    def is_file(self) -> bool:
        """Whether a file has the path."""
        found: bool = self.files.get_file_info(self.path).is_file
        return found

    def below(self, name: str) -> Folder:
        """Return the folder of that name in this one; `..` leads out of it."""
        return Folder(self.files, posixpath.normpath(self.place(name)))

    def place(self, name: str) -> str:
        """Return the path of what is called `name`."""
        return posixpath.join(self.path, name)

    def visible(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the files that readers see, each behind `prefix`."""
        for info in self._infos():
            name = info.base_name
            # As HadoopFSUtils.shouldFilterOutPathName: the folder of a column may begin with `_`.
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if info.is_file:
                yield prefix + name
            else:
                yield from self.below(name).visible(f"{prefix}{name}/")

    def check_writable(self) -> None:
        """Create the folder and write a file there, which is removed again.

        Raises:
            OSError: one of these fails; says which folder, and why.
        """
        probe = f".probe-{uuid.uuid4().hex}"
        try:
            self.create()
            self.files.open_output_stream(self.place(probe)).close()
            self.files.delete_file(self.place(probe))
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise type(error)(f"{self.path} cannot be written to: {why}") from None

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file, at any depth."""
        return {
            posixpath.relpath(info.path, self.path): info.size
            for info in self._infos(recursive=True)
            if info.is_file
        }

    def infos(self, names: Sequence[str]) -> list[fs.FileInfo]:
        """Return what the file system knows of the files of those names."""
        return at_once(lambda name: self.files.get_file_info(self.place(name)), names)

    def create(self) -> None:
        """Make the folder, even if another job removes an empty one on the way to it meanwhile."""
        for tries_left in reversed(range(_TRIES)):
            try:
                self.files.create_dir(self.path, recursive=True)
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return

    def remove(self) -> None:
        """Remove the folder and all that is in it, but for what another writer adds meanwhile."""
        try:
            self.files.delete_dir(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            # Of a task that is run twice, the attempt that lost may live a little longer than its job.
            if error.errno != errno.ENOTEMPTY:
                raise

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove the files that are there. Folders stay: another writer may be about to put a file there."""

        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self.files.delete_file(self.place(name))

        at_once(remove, list(names))

    def take(self, names: Sequence[str], *, source: Folder) -> None:
        """Move the files of those names here from `source`."""
        for parent in {posixpath.dirname(self.place(name)) for name in names}:
            self.files.create_dir(parent, recursive=True)
        at_once(lambda name: self.files.move(source.place(name), self.place(name)), names)

    def _infos(self, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        return list(self.files.get_file_info(selector))


def without_secrets(place: str) -> str:
    """Return a URI without its secrets: user and password, options."""
    return re.sub(r"//.*:.*@", "//***@", place.partition("?")[0], flags=re.DOTALL)


def at_once(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return what the work makes of each item, in order; several are worked on at the same time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))
