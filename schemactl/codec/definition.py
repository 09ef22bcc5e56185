"""The input of a codec (`Definition`, `KeyValue`, `Version`, `Numbers`, `TargetVersions`), and its exceptions.

CodecError
├── Unreadable         a message cannot be decoded with its schema; `reason` names the place
├── Unwritable         a value does not fit the schema that it is encoded with; `reason` names the place
├── UnknownVersion     the codec has no schema of that number
├── UnknownTarget      the codec does not know the version numbers of that target
├── BatchTooLarge      a column of a batch would be larger than an Arrow array can be
├── InvalidDefinition  the definition of a schema cannot be used
└── CodecUnavailable   there is no codec for the schema type
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

_MAX_MESSAGE_LENGTH: Final = 1000
MAX_KEY_LENGTH: Final = 100
"""Maximum number of characters of a map's key in a path."""
MAX_PRECISION: Final = 38
"""Maximum number of digits of a decimal in Spark and Arrow (DecimalType.MAX_PRECISION)."""
MAX_COLUMNS: Final = 100_000
"""Maximum number of columns, with nested ones, for batches. A recursive schema with a high depth can have more than fit into memory."""

SCHEMA_VERSION: Final = "__schemaVersion"
ERROR: Final = "__error"
PAYLOAD: Final = "__payload"
"""The columns that DataFrames and tables have in addition to the values."""

RESERVED_NAMES: Final = frozenset(name.casefold() for name in (SCHEMA_VERSION, ERROR, PAYLOAD))
"""The names of these columns in the form in which Spark compares names, which ignores case."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a schema, as in Pulsar's SchemaInfo.

    Attributes:
        type: the name of Pulsar's SchemaType.
        text: the Avro schema as JSON of AVRO, JSON and PROTOBUF; the wrapper of the descriptor set of PROTOBUF_NATIVE.
        properties: the properties of the SchemaInfo, of which only `__charset` of a STRING has an effect here.
        proto: the wrapper of the descriptor set that describes the payloads of PROTOBUF; "" if it is not declared.
    """

    type: str
    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    proto: str = ""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """The schemas of a KEY_VALUE.

    Attributes:
        key: the schema of keys.
        value: the schema of values.
        encoding: INLINE if the payload contains the key, SEPARATED if the key of the message does.
    """

    key: Definition
    value: Definition
    encoding: Literal["INLINE", "SEPARATED"] = "INLINE"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a topic's schema.

    Attributes:
        number: the version number.
        schema: the schema.
        commit: the commit that added the version; "" if it is unknown.
        foreign: whether the version was not approved, but uploaded to the target by other means.
        kind: the key of its kind of events; "" if the topic has no kinds, or no kind ever had a record of this name.
    """

    number: int
    schema: Definition | KeyValue
    commit: str = ""
    foreign: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The version numbers of a target, where they differ from Git's.

    Attributes:
        target: the name of the target.
        reader: the target's number of the reader's schema, with which values are written by default; None if the target has no such version.
        unreadable: the numbers of versions whose messages cannot be decoded, each with the reason.
    """

    target: str
    reader: int | None = None
    unreadable: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetVersions:
    """The versions of a topic on a target whose version numbers differ from Git's.

    Attributes:
        versions: the versions, with the target's numbers.
        numbers: the target's number of the reader's schema, and the numbers of unreadable messages.
    """

    versions: tuple[Version, ...]
    numbers: Numbers

    @property
    def all_numbers(self) -> frozenset[int]:
        """The numbers that messages can have, including the numbers of unreadable messages."""
        return frozenset(version.number for version in self.versions) | self.numbers.unreadable.keys()

    def with_reader(self, schema: Definition | KeyValue) -> TargetVersions:
        """Return the versions for a codec that reads messages into `schema`."""
        numbers = (version.number for version in reversed(self.versions) if version.schema == schema)
        return replace(self, numbers=replace(self.numbers, reader=next(numbers, None)))


class CodecError(Exception):
    """A message, a value or a codec cannot be used."""


class _LocatedError(CodecError):
    """A problem at a place inside a message's value.

    Attributes:
        message: the problem.
        path: the path of the field, such as `lines[2].price`; "" for the whole value. Readers and writers prepend to it as the
            exception passes them, so that valid messages need no paths.
        offset: the byte in the payload, counted from 0; None if the problem is not at one byte.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = shorten(message, _MAX_MESSAGE_LENGTH)
        self.path = ""
        self.offset = offset

    def prepend_path(self, part: str) -> None:
        """Prepend a field name or `[n]` to the path."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        self.path = f"{part}{separator}{self.path}"

    @property
    def reason(self) -> str:
        """The path, the offset and the problem, in one line."""
        places = [self.path] if self.path else []
        if self.offset is not None:
            places.append(f"byte {self.offset}")
        return f"{', '.join(places)}: {self.message}" if places else self.message

    def __str__(self) -> str:
        return self.reason


class Unreadable(_LocatedError):
    """A message cannot be decoded."""


class Unwritable(_LocatedError):
    """A value cannot be encoded."""


class UnknownVersion(CodecError):
    """The codec has no version of that number."""


class UnknownTarget(CodecError):
    """The codec does not know the version numbers of that target."""


class BatchTooLarge(CodecError):
    """A decoded column, or the column of payloads, would be larger than 2 GiB."""


class InvalidDefinition(CodecError):
    """The definition of a schema cannot be used."""


class CodecUnavailable(CodecError):
    """There is no codec for the schema type."""


def shorten(text: str, length: int) -> str:
    """Cut a text that is longer than `length` characters, because values may have megabytes."""
    return text if len(text) <= length else f"{text[:length]}..."
