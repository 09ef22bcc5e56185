"""A definition for people: one line for each field, whatever the schema language and layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Final, Literal

from schemactl.core.schema import SchemaInfo
from schemactl.formats.base import Note, spec

_SMALLEST_DIFF_LINES: Final = 5_000
_NO_NOTE: Final = Note()


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to what it is, in document order: `Order.lines` to `array<OrderLine>`.

    Named types are spelled out once, under their own name without namespace where no two share it. Docs, aliases and the
    order of symbols are left out. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    parts = dict(spec(info).outline(info))
    # A pair keeps its types and encoding there, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


@dataclass(frozen=True, slots=True)
class PartChange:
    """What differs of one part of two definitions.

    Attributes:
        kind: `widened` is a change of type after which everything written before can still be read; `documented` one of the documentation alone.
        part: its name in the newer definition, else in the older.
        before: what it was, or its documentation; "" where it was not there.
        after: what it is.
        former: its name in the older definition, where an alias says so.
    """

    kind: Literal["added", "removed", "renamed", "widened", "changed", "documented"]
    part: str
    before: str = ""
    after: str = ""
    former: str = ""

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return {"added": "+", "removed": "-"}.get(self.kind, "~")

    @property
    def text(self) -> str:
        """The part, and what has become of it."""
        name = f"{self.part}: " if self.part else ""
        if self.kind in ("added", "removed"):
            return f"{self.part}: {self.before}{self.after}"
        if self.kind == "documented":
            return f"{name}documentation"
        what = self.after if self.before == self.after else f"{self.before} -> {self.after}"
        return f"{name}{what}{f', was {self.former}' if self.former else ''}"


def changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield what differs between two outlines: `+`, `-` or `~`, and the part, in the order of the new one; no documentation.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    return ((each.sign, each.text) for each in part_changes(old=old, new=new) if each.kind != "documented")


def part_changes(*, old: SchemaInfo | None, new: SchemaInfo | None) -> Iterator[PartChange]:
    """Yield what differs between two definitions, what is gone first, then in the order of the new one. None is no definition.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    if old and new and old.type is not new.type:
        yield PartChange("changed", "type", old.type.name, new.type.name)
        return
    before, after = (outline(info) if info else {} for info in (old, new))
    old_notes, new_notes = (dict(spec(info).notes(info)) if info else {} for info in (old, new))
    former = dict(_renamed(before, after, new_notes))
    for part, what in before.items():
        if part not in after and part not in former.values():
            yield PartChange("removed", part, what)
    for part, what in after.items():
        was = former.get(part, part)
        known = before.get(was)
        if known is None:
            yield PartChange("added", part, after=what)
        elif was != part and part.rpartition(".")[2] != was.rpartition(".")[2]:
            yield PartChange("renamed", part, known, what, was)
        elif known != what:
            yield PartChange("widened" if _is_wider(known, what) else "changed", part, known, what)
        docs = old_notes.get(was, _NO_NOTE).doc, new_notes.get(part, _NO_NOTE).doc
        if known is not None and docs[0] != docs[1]:
            yield PartChange("documented", part, *docs)


def _renamed(
    before: Mapping[str, str], after: Mapping[str, str], notes: Mapping[str, Note]
) -> Iterator[tuple[str, str]]:
    """Yield each part of `after` that an alias, or the new name of its record, makes one of `before`: new name, old name."""
    types: dict[str, str] = {}
    for part in after:
        if part in before:
            continue
        inside, dot, name = part.rpartition(".")
        names = [name, *(alias.rpartition(".")[2] for alias in notes.get(part, _NO_NOTE).aliases)]
        for each in names:
            was = f"{types.get(inside, inside)}{dot}{each}"
            if was != part and was in before and was not in after:
                types[part] = was
                yield part, was
                break


def _is_wider(before: str, after: str) -> bool:
    """Return whether a field's type became another that holds all it held; of Avro, whose outlines say so."""
    from schemactl.formats.avro.schema import PROMOTIONS

    held, holds = (what.partition(" = ")[0].split(" | ") for what in (before, after))
    return held != holds and all(
        each in holds or any(each in PROMOTIONS.get(wider, ()) for wider in holds) for each in held
    )


def line_changes(
    *, old: SchemaInfo | None, new: SchemaInfo | None, labels: tuple[str, str] = ("old", "new")
) -> list[str]:
    """Return the lines of a unified diff of two definitions, laid out the same: layout is no difference. None is no definition.

    It is the smallest diff where that can be found in reasonable time.
    """
    from difflib import unified_diff

    before, after = (spec(info).lines(info) if info else [] for info in (old, new))
    if max(len(before), len(after)) <= _SMALLEST_DIFF_LINES or before == after:
        return list(unified_diff(before, after, *labels, lineterm=""))
    # Looking for the smallest takes time in the square of the lines: here all between the first and the last difference is one.
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    gone, come = (text[head : len(text) - tail] for text in (before, after))
    place = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
    lines = [f"--- {labels[0]}", f"+++ {labels[1]}", place]
    return [*lines, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many of their first lines are the same."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))
