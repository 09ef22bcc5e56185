"""The places of the parts of a compiled `.proto` in its text."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple, TypeAlias

from google.protobuf.descriptor_pb2 import SourceCodeInfo

Path: TypeAlias = tuple[int, ...]
"""Field numbers and indexes from a FileDescriptorProto to a part of it (`SourceCodeInfo.Location.path`)."""


class Span(NamedTuple):
    """A place as protoc counts: line and column from 1, columns in bytes, a tab reaching to the next eighth."""

    line: int
    column: int


class SourceMap:
    """The first location that the source info of a file has for each part; empty without source info."""

    def __init__(self, source_info: SourceCodeInfo) -> None:
        self._source_info = source_info
        self._locations: dict[Path, int] = {}
        for index, location in enumerate(source_info.location):
            self._locations.setdefault(tuple(location.path), index)
        self._sorted: list[Path] = []

    def span(self, path: Path) -> Span | None:
        """Return where the part at `path` begins."""
        index = self._locations.get(path)
        if index is None:
            return None
        span = self._source_info.location[index].span
        return Span(span[0] + 1, span[1] + 1) if len(span) in (3, 4) else None

    def first_below(self, path: Path) -> Path | None:
        """Return the first part that has a location inside the one at `path`."""
        self._sorted = self._sorted or sorted(self._locations)
        index = bisect_left(self._sorted, path)
        found = self._sorted[index : index + 1]
        return found[0] if found and found[0][: len(path)] == path else None
