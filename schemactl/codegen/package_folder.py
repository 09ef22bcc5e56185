"""Compare, write and pack the files of a package."""

from __future__ import annotations

import io
import os
import re
import time
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.generated_text import MARK
from schemactl.codegen.module_paths import SCHEMAS
from schemactl.core import atomic_files
from schemactl.core.errors import SchemactlError

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time in a zip file, which all entries have, so that equal content makes equal bytes."""

_SCHEMA_PATH: Final = re.compile(
    rf"(.+/{SCHEMAS}/.+)\.(?:v([0-9]+)|(?:\w+\.)?reader|foreign-[0-9a-f]{{12}})(?:\.\w+)?\.(?:avsc|json)"
)
"""The path of a schema's file, whose content cannot have a mark: the topic's path, and the version."""

_LEFTOVER_AGE_S: Final = 60.0
"""The age from which a file with a temporary name was left by a killed run; writing it takes no second."""

MergePredicate = Callable[[Path, str | None], bool]
"""A predicate: whether a merge itself adds a text to a path, or removes the file (None)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a folder and the files that it should have; paths below the folder, sorted.

    Attributes:
        changed: files that are missing or have another text.
        extra: files that were generated earlier and no longer are.
        foreign: files that were not generated, at the path of a generated file.
    """

    changed: tuple[str, ...]
    extra: tuple[str, ...]
    foreign: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.extra or self.foreign)


class NumberedSchema(NamedTuple):
    """The module, as a path, and the version to which a schema's file belongs."""

    module: str
    version: int


def find_numbered_schema(name: str) -> NumberedSchema | None:
    """Return the module and version of a schema's file, given its path, or None for other files."""
    if (match := _SCHEMA_PATH.fullmatch(name)) and match[2]:
        return NumberedSchema(match[1].replace(f"/{SCHEMAS}/", "/"), int(match[2]))
    return None


def compare(
    files: Mapping[str, str],
    out: Path,
    *,
    below: str | None = None,
    brought: MergePredicate = lambda _path, _text: False,
    unchanged: Collection[str] = frozenset(),
) -> Difference:
    """Compare the folder `out` with `files`.

    Args:
        files: the files that the folder should have.
        out: the folder.
        below: a real path, below which no link is followed (`atomic_files.write`).
        brought: whether the merge itself writes or removes a file; such a file does not count as different.
        unchanged: further files that the folder should have, which are not compared.

    Raises:
        SchemactlError: if a file cannot be read, or a link is at its path or a part of it.
    """
    changed: list[str] = []
    foreign: list[str] = []
    for name, text in files.items():
        present_text = _read(out / name, below)
        if present_text != text and not brought(out / name, text):
            # An empty file (py.typed, an __init__.py made by hand) has no content that could be lost.
            (foreign if present_text and not _is_generated(name, present_text) else changed).append(name)
    extra: list[str] = []
    for root in {name.split("/")[0] for name in files}:
        for name, entry in walk_files(out, root):
            if name in files or name in unchanged or not entry.is_file(follow_symlinks=False):
                continue
            text = (_read(out / name, below) or "") if name.endswith(".py") else ""
            is_own = _is_generated(name, text) or _is_leftover(entry)
            if is_own and not brought(out / name, None):
                extra.append(name)
    return Difference(tuple(changed), tuple(sorted(extra)), tuple(foreign))


def write(files: Mapping[str, str], out: Path, difference: Difference, *, below: str | None = None) -> None:
    """Write and remove files of `out`, so that its generated files are `files`.

    Args:
        files: the files that the folder should have.
        out: the folder.
        difference: the result of `compare`.
        below: as for `compare`.

    Raises:
        SchemactlError: if a file that was not generated, or a link, is at the path of a generated one (nothing is written then), or
            the folder cannot be written to.
    """
    if difference.foreign:
        raise SchemactlError(
            f"these files were not generated and are left alone: {', '.join(difference.foreign)}",
            fix="move them away, or choose another folder for generate.out",
        )
    try:
        for name in difference.changed:
            atomic_files.write(out / name, files[name].encode(), below=below)
        for name in difference.extra:
            atomic_files.remove(out / name, below=below)
            _remove_if_empty((out / name).parent, out)
    except OSError as error:
        raise SchemactlError(f"{error.filename} cannot be written: {error.strerror}") from None


def pack(files: Mapping[str, str], path: Path, *, below: str | None = None) -> None:
    """Write the files, in their order, as a zip from which Python imports, for `spark-submit --py-files`.

    Equal files make equal bytes. `below` is as for `compare`.

    Raises:
        SchemactlError: if the zip cannot be written.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED, compresslevel=9)
    try:
        atomic_files.write(path, buffer.getvalue(), below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be written: {error.strerror}") from None


def walk_files(out: Path, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield everything in a folder below `out` except folders, by path below `out`; no link is followed."""
    pending = [folder]
    while pending:
        current = pending.pop()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(out / current) as entries:
            for entry in entries:
                name = f"{current}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                else:
                    yield name, entry


def _is_generated(name: str, text: str) -> bool:
    return text.startswith(MARK) or bool(_SCHEMA_PATH.fullmatch(name))


def _is_leftover(entry: os.DirEntry[str]) -> bool:
    """Return whether a run that was killed left the file; another run may be writing a file this second."""
    is_temporary = entry.name.startswith(atomic_files.TEMPORARY_PREFIX) and entry.name.endswith(
        atomic_files.TEMPORARY_SUFFIX
    )
    if not is_temporary:
        return False
    with suppress(FileNotFoundError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFTOVER_AGE_S
    return False


def _read(path: Path, below: str | None) -> str | None:
    """Return the text of a file, or None if it does not exist."""
    try:
        data = atomic_files.read(path, below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error}") from None
    return None if data is None else data.decode(errors="replace")


def _remove_if_empty(folder: Path, out: Path) -> None:
    """Remove the folder and its parents below `out` while they have only files that Python compiled."""
    while folder != out:
        compiled = folder / "__pycache__"
        if compiled.is_symlink() or any(path != compiled for path in folder.iterdir()):
            return
        for path in compiled.glob("*.pyc"):
            path.unlink()
        if compiled.is_dir():
            compiled.rmdir()
        folder.rmdir()
        folder = folder.parent
