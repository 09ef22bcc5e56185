"""Which files of the working tree are not as a commit has them, without git: comparing runs the programs of a filter."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.declare.files import SUFFIXES, shown
from schemactl.errors import DeclarationError
from schemactl.history.files import GitFiles, HashedFiles


def among(committed: GitFiles, here: HashedFiles, further: Iterable[str]) -> list[str]:
    """The declarations, definitions and `further` files that differ in more than line ends: paths as they can be printed."""
    named = {path for files in (committed, here) for path in files.paths() if path.endswith(SUFFIXES)}
    return [shown(path) for path in sorted(named.union(further)) if _differs(committed, here, path)]


def _differs(committed: GitFiles, here: HashedFiles, path: str) -> bool:
    before, now = committed.entry(path), here.entry(path)
    if before == now:
        return False
    if before is None or now is None or before.kind != now.kind:
        return True
    if before.kind != "file":
        # Where a link or a submodule leads to is not read.
        return False
    try:
        return _text(committed.read(path)) != _text(here.read(path))
    except (OSError, DeclarationError):
        return True


def _text(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")
