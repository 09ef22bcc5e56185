"""The folder that jobs land files in: the visible files, and those that a job has staged.

Visible are files such as `part-00000-….snappy.parquet`, directly or in folders such as `day=2026-11-21`. Staged ones are in
`_landing/<job>/<attempt>`: readers pass over what begins with `_` or `.`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pyarrow import fs

from .errors import WrongArgument

STAGING: Final = "_landing"

# Object stores answer slowly, but many requests at once.
_AT_ONCE: Final = 16

_Item = TypeVar("_Item")

# How often a folder is made whose parent somebody removes, because it was empty, just before.
_TRIES: Final = 100

# What Hadoop calls a store that Arrow knows by another name.
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


class Move(NamedTuple):
    """A staged file, by its name below its staging folder, and what it is called once it is visible."""

    staged: str
    name: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a file system; `path` is as that file system writes it. What is `name` here is below the folder."""

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
            why = str(error).partition("\n")[0].replace(rest, _without_secrets(rest))
            raise WrongArgument(
                f"{_without_secrets(place)} names no file system that Arrow can write to ({why}): "
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

    def staging(self, job: str) -> Folder:
        """Where a job keeps its files until it has decided."""
        return self.below(STAGING).below(job)

    def jobs(self) -> list[str]:
        """Return the names of the jobs that have something staged."""
        return [info.base_name for info in self.below(STAGING)._infos() if not info.is_file]  # noqa: SLF001  its own

    def visible(self) -> list[str]:
        """Return the names of the files that readers see, sorted."""
        return sorted(self._visible(""))

    def any_visible(self) -> str | None:
        """Return the name of one file that readers see; None if they see none."""
        return next(self._visible(""), None)

    def check_writable(self) -> None:
        """Whoever calls this may write into the folder, which exists afterwards.

        Raises:
            OSError: that is not so; says which folder, and why.
        """
        probe = self.staging(f"probe-{uuid.uuid4().hex}")
        try:
            probe.write("probe", b"")
            self.unstage(posixpath.basename(probe.path))
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

    def written_s(self) -> float | None:
        """When something in the folder was written last, in seconds since 1970; None: the file system does not tell.

        Of folders alone, and of files that are not yet whole, object stores tell nothing.
        """
        times = [info.mtime_ns / 1e9 for info in self._infos(recursive=True) if info.mtime_ns is not None]
        return max(times, default=None)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        try:
            with self.files.open_input_stream(self.place(name)) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write the file: whole or not at all, whenever this is interrupted, and whoever else writes it."""
        self.create()
        beside = f".{name}.{uuid.uuid4().hex}"
        with self.files.open_output_stream(self.place(beside)) as file:
            file.write(content)
        self.rename(beside, name)

    def create(self) -> None:
        """Make the folder, even if another job removes an empty `_landing` on the way to it meanwhile."""
        for tries_left in reversed(range(_TRIES)):
            try:
                self.files.create_dir(self.path, recursive=True)
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return

    def rename(self, name: str, other: str) -> None:
        """Rename `name` to `other`."""
        self.files.move(self.place(name), self.place(other))

    def remove(self) -> None:
        """Remove the folder and all that is in it, but for what somebody goes on to write there."""
        try:
            self.files.delete_dir(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            # Of a task that is run twice, the attempt that lost may live a little longer than its job.
            if error.errno != errno.ENOTEMPTY:
                raise

    def unstage(self, job: str, *, keep: str | None = None) -> None:
        """Nothing is left of what the job staged, but for the file that is called `keep`.

        What is then an empty `_landing` is gone as well, on a local file system. Others remove folders only with whatever
        somebody has put into them meanwhile.
        """
        if keep is None:
            self.staging(job).remove()
        else:
            self.staging(job).clear(keep=keep)
        if isinstance(self.files, fs.LocalFileSystem):
            with contextlib.suppress(OSError):
                Path(self.place(STAGING)).rmdir()

    def clear(self, *, keep: str) -> None:
        """Nothing is in the folder but the file of that name; without one, there is no folder."""
        infos = self._infos()
        self.remove_files([info.base_name for info in infos if info.is_file and info.base_name != keep])
        self.remove_folders()
        if keep not in [info.base_name for info in infos]:
            self.remove()

    def remove_folders(self) -> None:
        """Only files are left of what was directly in the folder."""
        for info in self._infos():
            if not info.is_file:
                self.below(info.base_name).remove()

    def remove_files(self, names: Iterable[str]) -> None:
        """None of the files is there. Folders stay: somebody else may be about to put a file there."""

        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self.files.delete_file(self.place(name))

        _for_each(remove, list(names))

    def take(self, moves: Iterable[Move], *, source: Folder) -> None:
        """Every file that `source` still has of those is here; one that it has no more was moved before."""
        there = source.sizes()
        moves = [move for move in moves if move.staged in there]
        for parent in {posixpath.dirname(self.place(move.name)) for move in moves}:
            self.files.create_dir(parent, recursive=True)

        def take(move: Move) -> None:
            try:
                self.files.move(source.place(move.staged), self.place(move.name))
            except OSError:
                # Somebody else may be completing the same job.
                if move.staged in source.sizes():
                    raise

        _for_each(take, moves)

    def _infos(self, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        return list(self.files.get_file_info(selector))

    def _visible(self, prefix: str) -> Iterator[str]:
        for info in self._infos():
            name = info.base_name
            # As HadoopFSUtils.shouldFilterOutPathName: the folder of a column may begin with `_`.
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if info.is_file:
                yield prefix + name
            else:
                yield from self.below(name)._visible(f"{prefix}{name}/")  # noqa: SLF001  its own


def _without_secrets(place: str) -> str:
    """Return a URI without its secrets: user and password, options."""
    return re.sub(r"//.*:.*@", "//***@", place.partition("?")[0], flags=re.DOTALL)


def _for_each(work: Callable[[_Item], None], items: list[_Item]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(work, items))
