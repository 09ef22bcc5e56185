"""What a rule of buf's finds, with buf's words and place, and a pointer of ours."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.formats.protobuf_native.places import Place, span_of


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the newer of two images violates.

    Attributes:
        rule: buf's id.
        message: buf's words.
        file: the `.proto` it is found in, "" where the file or package is gone as a whole.
        line, column: as buf gives them: 1 where the file has no place for it; None without a file.
        pointer: the place for `places.find`, also in another text of the same definition.
    """

    rule: str
    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    pointer: str = ""


def violation(rule: str, message: str, *places: Place, pointer: str = "") -> Violation:
    """`rule` at the first of `places` that the text has. All are in one file; the last is of the element judged."""
    element = places[-1][0]
    label = next(label for candidate, label in places if candidate is element)
    span = next(filter(None, map(span_of, places)), None)
    line, column = span or (1, 1)
    if not pointer:
        pointer = f"{element.pointer}/{label}" if label else element.pointer
    return Violation(rule, message, element.file.name, line, column, pointer)
