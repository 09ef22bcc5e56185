"""What Pulsar's advanced checker of PROTOBUF_NATIVE says, and how much it is ready to work for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from schemactl.formats.protobuf_native.descriptor import Field, Message, Oneof

Rule: TypeAlias = Literal[
    "ROOT_MESSAGE_CHANGED",
    "UNSUPPORTED_FEATURE",
    "FIELD_NUMBER_CHANGED",
    "REQUIRED_FIELD_NOT_GUARANTEED",
    "ONEOF_CONFLICT",
    "MAP_CHANGED",
    "CARDINALITY_CHANGED",
    "TYPE_CHANGED",
    "DEFAULT_CHANGED",
    "UTF8_VALIDATION_ADDED",
    "ENUM_VALUE_NOT_READABLE",
    "COMPARISON_LIMIT_EXCEEDED",
]

_MAX_PATH_LENGTH: Final = 768
_MAX_WORK: Final = 100_000
_WORK_PER_GRAPH: Final = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the checker would not let a reader read what a writer wrote.

    Attributes:
        path: the fields from the root to the place, after the root's full name: `web.Click.user.id`.
        pointer: the same place for `places.find`.
    """

    rule: Rule
    path: str
    pointer: str


def below(path: str, part: Field | Oneof) -> str:
    """The path of a field or oneof; a long one is cut, as the checker cuts it."""
    whole = f"{path}.{part.name}"
    return whole if len(whole) <= _MAX_PATH_LENGTH else f"{whole[: _MAX_PATH_LENGTH - 3]}..."


class Exhausted(Exception):
    """The checker would do no more."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.path)
        self.refusal = refusal


class Work:
    """What one comparison has cost so far, in the checker's own units (ProtobufNativeSchemaCompatibility.Comparison)."""

    def __init__(self) -> None:
        self.done = 0
        self.limit = _MAX_WORK

    def charge(self, units: int, path: str, at: Message | Field) -> None:
        """The work is done; or, beyond the limit, not.

        Raises:
            Exhausted: it is not.
        """
        if units > self.limit - self.done:
            raise Exhausted(Refusal("COMPARISON_LIMIT_EXCEEDED", path, at.pointer))
        self.done += units

    def set_limit(self) -> None:
        """From here on, a multiple of what it took to look at both graphs."""
        self.limit = min(_MAX_WORK, self.done * _WORK_PER_GRAPH)
