"""A generated package on disk: compared, written, and packed for a cluster."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemactl import output
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


def compare(files: Mapping[str, str], out: Path, *, below: str | None = None) -> Difference:
    """How the folder `out` differs from `files`.

    Args:
        files: what should be there.
        out: the folder.
        below: a real path; no link below it is followed (`output.write`).

    Raises:
        SchemactlError: a file cannot be read, or a link is in its place or on the way to it.
    """
    changed: list[str] = []
    foreign: list[str] = []
    for name, text in files.items():
        found = _read(out / name, below)
        if found == text:
            continue
        # An empty file (py.typed, an __init__.py made by hand) holds nothing that could be lost.
        (foreign if found and not _is_ours(found) else changed).append(name)
    return Difference(tuple(changed), tuple(_extra(files, out, below)), tuple(foreign))


def write(files: Mapping[str, str], out: Path, *, below: str | None = None) -> Difference:
    """Make `out` hold exactly `files` among what was generated; says what was different before. For `below` see `compare`.

    Raises:
        SchemactlError: a file that was not generated, or a link, stands in the way (nothing is written then), or the
            folder cannot be written.
    """
    difference = compare(files, out, below=below)
    if difference.foreign:
        raise SchemactlError(
            f"these files were not generated and are left alone: {', '.join(difference.foreign)}",
            fix="move them away, or choose another folder for generate.out",
        )
    try:
        for name in difference.changed:
            output.write(out / name, files[name].encode(), below=below)
        for name in difference.extra:
            output.remove(out / name, below=below)
            _remove_if_empty((out / name).parent, out)
    except OSError as error:
        raise SchemactlError(f"{out} cannot be written: {error}") from None
    return difference


def pack(files: Mapping[str, str], path: Path, *, below: str | None = None) -> None:
    """Return the files, in their order, as a zip that Python imports from, as `spark-submit --py-files` takes it.

    Equal files make equal bytes. For `below` see `compare`.

    Raises:
        SchemactlError: it cannot be written.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED, compresslevel=9)
    try:
        output.write(path, packed.getvalue(), below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be written: {error}") from None


def _extra(files: Mapping[str, str], out: Path, below: str | None) -> list[str]:
    roots = {name.split("/")[0] for name in files}
    kinds = ("*.py", LICENSE)
    found = (path for root in sorted(roots) for kind in kinds for path in (out / root).rglob(kind))
    names = {
        path.relative_to(out).as_posix(): path for path in found if path.is_file() and not path.is_symlink()
    }
    return sorted(
        name for name, path in names.items() if name not in files and _is_ours(_read(path, below) or "")
    )


def _is_ours(text: str) -> bool:
    return text.startswith(MARK)


def _read(path: Path, below: str | None) -> str | None:
    """Return the text of a file, None if there is none."""
    try:
        found = output.read(path, below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error}") from None
    return None if found is None else found.decode(errors="replace")


def _remove_if_empty(folder: Path, out: Path) -> None:
    """Remove folders that hold nothing but what Python compiled, up to `out`."""
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
