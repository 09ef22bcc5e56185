"""Define edits of definitions, and the replacements in files that make them.

A rule knows which key a definition needs, and the file knows how it is written. So a rule makes a `DefinitionEdit`, and the schema
turns it into a `TextEdit` that keeps the layout of the file (see `SchemaInfo.edit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class RenameKey:
    """Renames the key of the value at `pointer` to `name`."""

    pointer: str
    name: str


@dataclass(frozen=True, slots=True)
class AddKey:
    """Adds a key to the object at `pointer`, after the first of `after` that has its own line."""

    pointer: str
    after: tuple[str, ...]
    key: str
    value: Any = field(hash=False)


@dataclass(frozen=True, slots=True)
class AddAlias:
    """Adds a name to the `aliases` of the field or named type at `pointer`."""

    pointer: str
    name: str


@dataclass(frozen=True, slots=True)
class SetType:
    """Writes another primitive type at `pointer`, which leads to the name of one or to an object with such a `type`."""

    pointer: str
    name: str


@dataclass(frozen=True, slots=True)
class AddReserved:
    """Adds `reserved TEXT;` to the message or enum of protobuf that has, or had, the part at `pointer`."""

    pointer: str
    text: str


AvroEdit = RenameKey | AddKey | AddAlias | SetType
"""The edits of Avro definitions."""

DefinitionEdit = AvroEdit | AddReserved
"""All edits. Of protobuf, they are SetType, for the scalar type of a field, and AddReserved."""


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """A replacement in a file.

    Attributes:
        path: the file, relative to the top level of the repository.
        start, end: offsets in the text of the file, in code points.
        text: the new text between them.
        content: the whole text of the file before the edit, with its line ends.
    """

    path: str
    start: int
    end: int
    text: str
    content: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LineEdit:
    """A replacement of whole lines.

    Attributes:
        path: the file, relative to the top level of the repository.
        start, end: the first and the last line, counted from 1.
        old_lines: the lines before the edit, without line ends.
        new_lines: the lines after it.
    """

    path: str
    start: int
    end: int
    old_lines: tuple[str, ...]
    new_lines: tuple[str, ...]


def to_line_edits(edits: Iterable[TextEdit]) -> list[LineEdit]:
    """Return the edits as replacements of whole lines, by file and line; edits of the same lines are one replacement."""
    groups: list[tuple[int, int, list[TextEdit]]] = []
    for edit in sorted(set(edits)):
        start = edit.content.rfind("\n", 0, edit.start) + 1
        end = edit.content.find("\n", edit.end)
        end = len(edit.content) if end < 0 else end
        if groups and groups[-1][2][0].path == edit.path and start <= groups[-1][1]:
            group_start, group_end, group = groups[-1]
            if not _has_overlap(group[-1], edit):
                groups[-1] = group_start, max(end, group_end), [*group, edit]
        else:
            groups.append((start, end, [edit]))
    line_edits = []
    for start, end, group in groups:
        content = group[0].content
        moved = [replace(edit, start=edit.start - start, end=edit.end - start) for edit in group]
        old_lines, new_lines = _split_lines(content[start:end]), _split_lines(apply_edits(content[start:end], moved))
        first = content.count("\n", 0, start) + 1
        line_edits.append(LineEdit(group[0].path, first, first + len(old_lines) - 1, old_lines, new_lines))
    return line_edits


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.split("\n"))


def _has_overlap(edit: TextEdit, later: TextEdit) -> bool:
    """Return whether two edits of a file, in the order of their places, cannot both be made."""
    return later.start <= edit.end or later.content != edit.content


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply edits of one file, which must not overlap, to its text."""
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def edit_contents(edits: Iterable[TextEdit]) -> Mapping[str, str]:
    """Return the new text of each edited file. Of edits that overlap, only the first is made."""
    edits_by_path: dict[str, list[TextEdit]] = {}
    for edit in sorted(set(edits)):
        file_edits = edits_by_path.setdefault(edit.path, [])
        if not file_edits or not _has_overlap(file_edits[-1], edit):
            file_edits.append(edit)
    return {path: apply_edits(file_edits[0].content, file_edits) for path, file_edits in edits_by_path.items()}
