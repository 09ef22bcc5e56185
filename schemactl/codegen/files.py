"""A generated package on disk: compared, written, and packed for a cluster."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.names import SCHEMAS
from schemactl.codegen.topic_module import MARK
from schemactl.core import atomic_files
from schemactl.core.errors import SchemactlError

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip file can hold; all of ours have it, so that equal content makes equal bytes."""

_SCHEMA: Final = re.compile(rf"(.+/{SCHEMAS}/.+)\.(?:v([0-9]+)|reader)(?:\.\w+)?\.(?:avsc|json)")
"""The path of a schema's file, which has no room for a mark: its topic's, and the version."""

Brought = Callable[[Path, str | None], bool]
"""Says whether a merge brings that text (None: no file) to that place without anybody's doing."""


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


class NumberedSchema(NamedTuple):
    """Of which topic's module a file has a schema, as a path, and of which version."""

    module: str
    version: int


def numbered(name: str) -> NumberedSchema | None:
    """Return what the path of a file says; None: it has no version's schema."""
    if (found := _SCHEMA.fullmatch(name)) and found[2]:
        return NumberedSchema(found[1].replace(f"/{SCHEMAS}/", "/"), int(found[2]))
    return None


def compare(
    files: Mapping[str, str],
    out: Path,
    *,
    below: str | None = None,
    brought: Brought = lambda _path, _text: False,
) -> Difference:
    """Return how the folder `out` differs from `files`.

    Args:
        files: what should be there.
        out: the folder.
        below: a real path; no link below it is followed (`atomic_files.write`).
        brought: what it says yes to is no difference.

    Raises:
        SchemactlError: a file cannot be read, or a link is in its place or on the way to it.
    """
    changed: list[str] = []
    foreign: list[str] = []
    for name, text in files.items():
        found = _read(out / name, below)
        if found != text and not brought(out / name, text):
            # An empty file (py.typed, an __init__.py made by hand) holds nothing that could be lost.
            (foreign if found and not _is_ours(name, found) else changed).append(name)
    extra = (name for name in _generated(files, out, below) if not brought(out / name, None))
    return Difference(tuple(changed), tuple(sorted(extra)), tuple(foreign))


def write(files: Mapping[str, str], out: Path, difference: Difference, *, below: str | None = None) -> None:
    """Make `out` hold exactly `files` among what was generated, by the `difference` that `compare` found.

    Raises:
        SchemactlError: a file that was not generated, or a link, stands in the way (nothing is written then), or the
            folder cannot be written.
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
    """Write the files, in their order, as a zip that Python imports from, as `spark-submit --py-files` takes it.

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
        atomic_files.write(path, packed.getvalue(), below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be written: {error.strerror}") from None


def _generated(files: Mapping[str, str], out: Path, below: str | None) -> Iterator[str]:
    """Yield the files in the folder that were generated once and are none of `files`."""
    for root in {name.split("/")[0] for name in files}:
        for path in (out / root).rglob("*"):
            name = path.relative_to(out).as_posix()
            is_file = name not in files and not path.is_symlink() and path.is_file()
            if is_file and _is_ours(name, (_read(path, below) or "") if path.suffix == ".py" else ""):
                yield name


def _is_ours(name: str, text: str) -> bool:
    return text.startswith(MARK) or bool(_SCHEMA.fullmatch(name))


def _read(path: Path, below: str | None) -> str | None:
    """Return the text of a file, None if there is none."""
    try:
        found = atomic_files.read(path, below=below)
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
