"""Which objects a repository has, read from its folders: asked for an object it lacks, git would fetch that one by itself."""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_MAGIC: Final = b"\xfftOc\x00\x00\x00\x02"
"""How an index of a pack starts, in its second version (gitformat-pack)."""

_FANOUT: Final = struct.Struct(">256I")


class Stock:
    """The objects in a folder of objects, and in those that it borrows from (gitrepository-layout, objects/info/alternates).

    What comes later is not in it.
    """

    def __init__(self, objects: Path, object_format: str) -> None:
        self._folders = list(_with_alternates(objects, set()))
        id_bytes = hashlib.new(object_format, usedforsecurity=False).digest_size
        self._packs = [_Pack(path, id_bytes) for each in self._folders for path in each.glob("pack/*.idx")]

    def lacks(self, ids: Iterable[str]) -> set[str]:
        """Those of the objects that are not here."""
        return {each for each in ids if not self._has(each)}

    def _has(self, object_id: str) -> bool:
        raw = bytes.fromhex(object_id)
        return any(pack.has(raw) for pack in self._packs) or any(
            (folder / object_id[:2] / object_id[2:]).is_file() for folder in self._folders
        )


class _Pack:
    """The sorted ids of a pack's objects, and for each first byte how many ids there are up to it (gitformat-pack)."""

    def __init__(self, index: Path, id_bytes: int) -> None:
        self._content: mmap.mmap | bytes = b""
        # What `git gc` has just removed, or an interrupted copy left empty, lists nothing.
        with suppress(OSError, ValueError), index.open("rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._id_bytes = id_bytes
        # An index of the first version, which git has not written since 2008, is left unread: what it lists seems to be missing.
        is_whole = len(self._content) >= len(_MAGIC) + _FANOUT.size
        is_known = is_whole and self._content[: len(_MAGIC)] == _MAGIC
        self._fanout = _FANOUT.unpack_from(self._content, len(_MAGIC)) if is_known else (0,) * 256

    def has(self, raw: bytes) -> bool:
        """Whether the object is in the pack."""
        start = len(_MAGIC) + _FANOUT.size
        low = self._fanout[raw[0] - 1] if raw[0] else 0
        high = self._fanout[raw[0]]
        while low < high:
            middle = (low + high) // 2
            at = start + middle * self._id_bytes
            found = self._content[at : at + self._id_bytes]
            if found == raw:
                return True
            low, high = (middle + 1, high) if found < raw else (low, middle)
        return False


def _with_alternates(objects: Path, seen: set[Path]) -> Iterable[Path]:
    """The folder, and all that it borrows from."""
    folder = objects.resolve()
    if folder in seen:
        return
    seen.add(folder)
    yield folder
    borrowed = folder / "info" / "alternates"
    if borrowed.is_file():
        for line in borrowed.read_bytes().decode("utf-8", "surrogateescape").splitlines():
            if line and not line.startswith("#"):
                yield from _with_alternates(folder / line, seen)
