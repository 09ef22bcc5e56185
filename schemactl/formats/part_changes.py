"""Describe a definition by its parts, and the differences between two definitions by part and by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Final, Literal

from schemactl.core.schema import SchemaInfo
from schemactl.formats.avro.schema import PROMOTIONS
from schemactl.formats.type_spec import Note, spec

_SMALLEST_DIFF_LINES: Final = 5_000
"""The maximum number of lines for which `diff_definitions` searches the smallest diff."""

_NO_NOTE: Final = Note()


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to its description, in document order: `Order.lines` to `array<OrderLine>`.

    A named type is spelled out once, under its name without namespace unless two types share this name. Docs, aliases and the
    order of symbols do not count. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    parts = dict(spec(info).list_parts(info))
    # The properties of a pair are its types and encoding, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


@dataclass(frozen=True, slots=True)
class PartChange:
    """A difference between two definitions in one part.

    Attributes:
        kind: `widened` if all earlier messages can still be read after a change of type; `documented` if only the documentation
            changed.
        part: the name in the newer definition, or in the older for a removed part.
        before: the old description or documentation; "" for an added part.
        after: the new description or documentation; "" for a removed part.
        former: the name in the older definition, if an alias maps it.
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
        """The part and its change."""
        name = f"{self.part}: " if self.part else ""
        if self.kind in ("added", "removed"):
            return f"{self.part}: {self.before}{self.after}"
        if self.kind == "documented":
            return f"{name}documentation"
        change = self.after if self.before == self.after else f"{self.before} -> {self.after}"
        return f"{name}{change}{f', was {self.former}' if self.former else ''}"


def list_changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the sign and text of each `PartChange` except documentation, in the order of `find_part_changes`.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    all_changes = find_part_changes(old=old, new=new)
    return ((change.sign, change.text) for change in all_changes if change.kind != "documented")


def find_part_changes(*, old: SchemaInfo | None, new: SchemaInfo | None) -> Iterator[PartChange]:
    """Yield the differences between two definitions: removed parts, then the others in the order of the new definition.

    None is a missing definition, which has no parts.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if old and new and old.type is not new.type:
        yield PartChange("changed", "type", old.type.name, new.type.name)
        return
    old_parts, new_parts = (outline(info) if info else {} for info in (old, new))
    old_notes, new_notes = (dict(spec(info).list_notes(info)) if info else {} for info in (old, new))
    old_names = dict(_find_renamed_parts(old_parts, new_parts, new_notes))
    for part, description in old_parts.items():
        if part not in new_parts and part not in old_names.values():
            yield PartChange("removed", part, description)
    for part, description in new_parts.items():
        old_name = old_names.get(part, part)
        old_description = old_parts.get(old_name)
        if old_description is None:
            yield PartChange("added", part, after=description)
        elif old_name != part and part.rpartition(".")[2] != old_name.rpartition(".")[2]:
            yield PartChange("renamed", part, old_description, description, old_name)
        elif old_description != description:
            kind: Literal["widened", "changed"] = "widened" if _is_wider(old_description, description) else "changed"
            yield PartChange(kind, part, old_description, description)
        old_doc, new_doc = old_notes.get(old_name, _NO_NOTE).doc, new_notes.get(part, _NO_NOTE).doc
        if old_description is not None and old_doc != new_doc:
            yield PartChange("documented", part, old_doc, new_doc)


def _find_renamed_parts(
    old_parts: Mapping[str, str], new_parts: Mapping[str, str], notes: Mapping[str, Note]
) -> Iterator[tuple[str, str]]:
    """Yield the new and the old name of each part that an alias, or the new name of its record, maps to an old part."""
    old_types: dict[str, str] = {}
    for part in new_parts:
        if part in old_parts:
            continue
        type_name, dot, name = part.rpartition(".")
        names = [name, *(alias.rpartition(".")[2] for alias in notes.get(part, _NO_NOTE).aliases)]
        for candidate in names:
            old_name = f"{old_types.get(type_name, type_name)}{dot}{candidate}"
            if old_name != part and old_name in old_parts and old_name not in new_parts:
                old_types[part] = old_name
                yield part, old_name
                break


def _is_wider(old_description: str, new_description: str) -> bool:
    """Return whether an Avro field's new type has all values of its old type, according to their descriptions."""
    old_types, new_types = (
        description.partition(" = ")[0].split(" | ") for description in (old_description, new_description)
    )
    return old_types != new_types and all(
        old_type in new_types or any(old_type in PROMOTIONS.get(new_type, ()) for new_type in new_types)
        for old_type in old_types
    )


def diff_definitions(
    *, old: SchemaInfo | None, new: SchemaInfo | None, labels: tuple[str, str] = ("old", "new")
) -> list[str]:
    """Return the lines of a unified diff of two definitions in a uniform layout; None is a missing definition.

    It is the smallest diff unless a definition is very long.
    """
    from difflib import unified_diff

    old_lines, new_lines = (spec(info).format_lines(info) if info else [] for info in (old, new))
    if max(len(old_lines), len(new_lines)) <= _SMALLEST_DIFF_LINES or old_lines == new_lines:
        return list(unified_diff(old_lines, new_lines, *labels, lineterm=""))
    # The search for the smallest diff takes quadratic time: instead, everything from the first to the last difference is replaced.
    head = _count_common_lines(old_lines, new_lines)
    tail = _count_common_lines(old_lines[head:][::-1], new_lines[head:][::-1])
    removed, added = (lines[head : len(lines) - tail] for lines in (old_lines, new_lines))
    place = f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@"
    return [
        f"--- {labels[0]}",
        f"+++ {labels[1]}",
        place,
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _count_common_lines(left: list[str], right: list[str]) -> int:
    """Return the number of equal lines at the start."""
    return sum(1 for _ in takewhile(bool, map(eq, left, right)))
