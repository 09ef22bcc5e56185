"""The input of a codec (`Definition`, `Version`, `Numbers`), and its exceptions.

CodecError
├── Unreadable         a message's bytes are not what its schema says; `reason` names the place
├── Unwritable         a value does not fit the schema it is to be written with; `reason` names the place
├── UnknownVersion     the codec has no schema of that number
├── BatchTooLarge      a column of a batch would be larger than Arrow's arrays can be
├── InvalidDefinition  a schema's definition cannot be used
└── CodecUnavailable   there is no codec for that schema type
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Definition:
    """One schema.

    Attributes:
        type: Pulsar's SchemaType by name.
        text: AVRO, JSON and PROTOBUF: the Avro schema as JSON. PROTOBUF_NATIVE: the wrapper of its descriptor set.
        properties: of the SchemaInfo; `__charset` of a STRING is the only one that matters here.
        proto: of a PROTOBUF schema, the wrapper of the descriptor set that describes its payloads; "" if none is declared.
    """

    type: str
    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    proto: str = ""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Two schemas in one; `encoding` says whether the key travels in the payload or as the message's key."""

    key: Definition
    value: Definition
    encoding: Literal["INLINE", "SEPARATED"] = "INLINE"


@dataclass(frozen=True, slots=True)
class Version:
    """A schema of a topic, its number, and the commit that brought it ("" if it is not known).

    `foreign`: not approved; uploaded otherwise to the target whose number it is.
    """

    number: int
    schema: Definition | KeyValue
    commit: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whose numbers the versions of a codec have, where these are a target's, which may not be Git's.

    Attributes:
        target: its name.
        reader: its number of the schema that messages are read into, by which values are written where no other version is
            asked for; None: it has none.
        unreadable: the numbers by which no message can be read, each with the reason.
    """

    target: str
    reader: int | None = None
    unreadable: Mapping[int, str] = field(default_factory=dict)


# Exceptions


_LONG_REASON: Final = 1000
LONG_NAME: Final = 100
"""Characters of a key in a path."""


def shorten(text: str, length: int) -> str:
    """Return the text, or its beginning if it is longer than that: messages may hold megabytes, reasons need not."""
    return text if len(text) <= length else f"{text[:length]}..."


class CodecError(Exception):
    """Something is wrong with a message or a codec."""


class _Placed(CodecError):
    """A problem at a place inside a message's value.

    `path` is the field's, for people: `lines[2].price`; "" for the whole value. Readers and writers add to it on the way
    out, innermost first, so that no path is built for a good message.
    """

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what)
        self.what = shorten(what, _LONG_REASON)
        self.path = ""
        self.offset = offset

    def inside(self, part: str) -> None:
        """Put `part` (a field's name, or `[n]`) in front of the path."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        self.path = f"{part}{separator}{self.path}"

    @property
    def reason(self) -> str:
        """Where and what, in one line."""
        places = [self.path] if self.path else []
        if self.offset is not None:
            places.append(f"byte {self.offset}")
        return f"{', '.join(places)}: {self.what}" if places else self.what

    def __str__(self) -> str:
        return self.reason


class Unreadable(_Placed):
    """A message cannot be decoded. `offset` is the byte where that shows, counted from 0, None if there is no one byte."""


class Unwritable(_Placed):
    """A value cannot be encoded."""


class UnknownVersion(CodecError):
    """The codec has no schema of that number."""


class BatchTooLarge(CodecError):
    """A column of a batch would be larger than 2 GiB: a decoded one, or the payloads."""


class InvalidDefinition(CodecError):
    """A schema's definition cannot be used."""


class CodecUnavailable(CodecError):
    """There is no codec for that schema type."""
