"""A generated package on disk: compared, written, and packed for a cluster."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemactl.codegen.names import LICENSE
from schemactl.codegen.topic_module import MARK
from schemactl.errors import SchemactlError

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip file can hold; all of ours have it, so that equal content makes equal bytes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates a folder from the files it should have; paths below the folder, sorted.

    Attributes:
        changed: files that are missing or say something else.
        extra: files that were generated once and no longer are.
        foreign: files that were not generated and stand in the way of one that is.
    """

    changed: tuple[str, ...]
    extra: tuple[str, ...]
    foreign: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.extra or self.foreign)


def compare(files: Mapping[str, str], out: Path) -> Difference:
    """How the folder `out` differs from `files`.

    Raises:
        SchemactlError: a file cannot be read.
    """
    changed: list[str] = []
    foreign: list[str] = []
    for name, text in files.items():
        found = _read(out / name)
        if found == text:
            continue
        # An empty file (py.typed, an __init__.py made by hand) holds nothing that could be lost.
        (foreign if found and not _is_ours(found) else changed).append(name)
    return Difference(tuple(changed), tuple(_extra(files, out)), tuple(foreign))


def write(files: Mapping[str, str], out: Path) -> Difference:
    """Makes `out` hold exactly `files` among what was generated; says what was different before.

    Raises:
        SchemactlError: a file that was not generated stands in the way (nothing is written then), or the folder cannot
            be written.
    """
    difference = compare(files, out)
    if difference.foreign:
        raise SchemactlError(
            f"these files were not generated and are left alone: {', '.join(difference.foreign)}",
            fix="move them away, or choose another folder for generate.out",
        )
    try:
        for name in difference.changed:
            with _replacing(out / name) as beside:
                beside.write_bytes(files[name].encode())
        for name in difference.extra:
            (out / name).unlink()
            _remove_if_empty((out / name).parent, out)
    except OSError as error:
        raise SchemactlError(f"{out} cannot be written: {error}") from None
    return difference


def pack(files: Mapping[str, str], path: Path) -> None:
    """The files, in their order, as a zip that Python imports from, as `spark-submit --py-files` takes it.

    Equal files make equal bytes.

    Raises:
        SchemactlError: it cannot be written.
    """
    try:
        with _replacing(path) as beside, zipfile.ZipFile(beside, "w") as archive:
            for name, text in files.items():
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED, compresslevel=9)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be written: {error}") from None


def _extra(files: Mapping[str, str], out: Path) -> list[str]:
    roots = {name.split("/")[0] for name in files}
    kinds = ("*.py", LICENSE)
    found = (path for root in sorted(roots) for kind in kinds for path in (out / root).rglob(kind))
    names = {path.relative_to(out).as_posix(): path for path in found if path.is_file()}
    return sorted(name for name, path in names.items() if name not in files and _is_ours(_read(path) or ""))


def _is_ours(text: str) -> bool:
    return text.startswith(MARK)


def _read(path: Path) -> str | None:
    """The text of a file, None if there is none."""
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error}") from None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, which it is at the end; where that is not reached, `path` is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _remove_if_empty(folder: Path, out: Path) -> None:
    """Removes folders that hold nothing but what Python compiled, up to `out`."""
    while folder != out:
        left = [path for path in folder.iterdir() if path.name != "__pycache__"]
        if left:
            return
        for compiled in (folder / "__pycache__").glob("*.pyc"):
            compiled.unlink()
        if (folder / "__pycache__").is_dir():
            (folder / "__pycache__").rmdir()
        folder.rmdir()
        folder = folder.parent
