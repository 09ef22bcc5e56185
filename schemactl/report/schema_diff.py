"""What changed in a definition, line by line, as every report shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.core.terminal import cut, on_one_line
from schemactl.declare.source_location import JsonSyntaxError, scan, tokens
from schemactl.declare.source_location import nearest as nearest_node
from schemactl.formats import spec
from schemactl.formats.type_spec import line_changes

if TYPE_CHECKING:
    from schemactl.core.schema import SchemaInfo

_HEAD: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MAX_LINE: Final = 300


class DiffRow(NamedTuple):
    """A line of both sides, or of one of them; numbers count from 1, None where the side has no such line."""

    sign: Literal[" ", "-", "+"]
    old: int | None
    new: int | None
    text: str


Hunk = tuple[DiffRow, ...]


@dataclass(frozen=True, slots=True)
class SchemaDiff:
    """The lines that two definitions differ in, with some around them.

    Attributes:
        old, new: what the sides are called.
        hunks: groups of lines that stand together.
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...]

    def lines(self, most: int) -> Iterator[str]:
        """Yield the lines of a unified diff; where these are more than `most`, the first, and how many more there are."""
        found = [f"--- {self.old}", f"+++ {self.new}"]
        for hunk in self.hunks:
            found += [_head(hunk), *(f"{row.sign}{row.text}" for row in hunk)]
        for line in found if len(found) <= most else found[: most - 1]:
            yield on_one_line(cut(line, _MAX_LINE))
        if len(found) > most:
            yield f"@@ {len(found) - most + 1} more lines @@"

    def around(self, pointer: str, info: SchemaInfo, *, of_new: bool) -> SchemaDiff:
        """Return the hunk that has the place of `pointer` in `info`, which is the new side or the old one; all where none has."""
        line = _line_of(pointer, info)
        found = [hunk for hunk in self.hunks if any((row.new if of_new else row.old) == line for row in hunk)]
        return SchemaDiff(self.old, self.new, tuple(found)) if line and found else self


def schema_diff(*, old: SchemaInfo, new: SchemaInfo, labels: tuple[str, str]) -> SchemaDiff | None:
    """Return the difference of two definitions, whatever their layout; None where their lines are the same.

    `labels` are what the old one and the new one are called.
    """
    hunks: list[list[DiffRow]] = []
    at = {"-": 0, "+": 0}
    for line in line_changes(old=old, new=new)[2:]:
        if found := _HEAD.fullmatch(line):
            at = {"-": int(found[1]), "+": int(found[2])}
            hunks.append([])
            continue
        sign: Any = line[:1]
        gone, come = (at[side] if sign in (" ", side) else None for side in "-+")
        at = {side: number + (sign in (" ", side)) for side, number in at.items()}
        hunks[-1].append(DiffRow(sign, gone, come, line[1:]))
    return SchemaDiff(*labels, tuple(map(tuple, hunks))) if hunks else None


def _head(hunk: Hunk) -> str:
    old, new = ([each for each in side if each] for side in zip(*(row[1:3] for row in hunk), strict=True))
    return f"@@ -{min(old, default=0)},{len(old)} +{min(new, default=0)},{len(new)} @@"


def _line_of(pointer: str, info: SchemaInfo) -> int | None:
    """Return the line that `pointer` leads to in the lines of `info`; None: they are no JSON."""
    text = "\n".join(spec(info).lines(info))
    try:
        found = scan(text)
    except JsonSyntaxError:
        return None
    return text.count("\n", 0, found.offsets[nearest_node(0, tokens(pointer), found.child)]) + 1
