"""Define edits of definitions, and the replacements in files that make them.

A rule knows which key a definition needs, and the file knows how it is written. So a rule makes a `DefinitionEdit`, and the schema
turns it into a `TextEdit` that keeps the layout of the file (see `SchemaInfo.edit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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


DefinitionEdit = RenameKey | AddKey | AddAlias | SetType


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

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff without context."""
        yield f"--- a/{self.path}"
        yield f"+++ b/{self.path}"
        yield f"@@ -{self.start},{len(self.old_lines)} +{self.start},{len(self.new_lines)} @@"
        yield from (f"-{line}" for line in self.old_lines)
        yield from (f"+{line}" for line in self.new_lines)


def to_lines(edit: TextEdit) -> LineEdit:
    """Return the edit as a replacement of whole lines."""
    text = edit.content
    start = text.rfind("\n", 0, edit.start) + 1
    end = text.find("\n", edit.end)
    end = len(text) if end < 0 else end
    old_text, new_text = text[start:end], text[start : edit.start] + edit.text + text[edit.end : end]
    first = text.count("\n", 0, start) + 1
    old_lines, new_lines = (
        tuple(line.removesuffix("\r") for line in part.split("\n")) for part in (old_text, new_text)
    )
    return LineEdit(edit.path, first, first + len(old_lines) - 1, old_lines, new_lines)


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
        is_apart = not file_edits or edit.start > max(file_edits[-1].end, file_edits[-1].start)
        if is_apart and (not file_edits or file_edits[-1].content == edit.content):
            file_edits.append(edit)
    return {path: apply_edits(file_edits[0].content, file_edits) for path, file_edits in edits_by_path.items()}
