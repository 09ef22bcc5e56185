"""Schemas and their versions as Pulsar stores them, and the Pulsar releases whose answers are predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, Final

from schemactl.core.errors import Source

# Releases of Pulsar

_MOST_DIGITS = 64


class Release(StrEnum):
    """The Pulsar releases whose answers are predicted; another one is read as the nearest lower."""

    R4_0 = "4.0"
    R4_2 = "4.2"
    R5_0 = "5.0"

    @classmethod
    def nearest(cls, version: str) -> Release | None:
        """Return the newest of these that is not newer than `version`; None: that is no release, or older than all."""
        parts = version.split(".")[:2]
        if not all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts):
            return None
        wanted = tuple(map(int, parts))
        known = [release for release in cls if tuple(map(int, release.split("."))) <= wanted]
        return known[-1] if known else None


class _NoData(bytes):
    """Empty bytes that are not the empty bytes: those are one object in Python."""

    __slots__ = ()


NO_DATA: Final = _NoData()
"""As `SchemaInfo.schema` (compared with `is`): no data at all, which the registry's code meets as null."""

EMPTY: Mapping[str, str] = MappingProxyType({})


# Schemas and versions, as Pulsar stores them


class SchemaType(Enum):
    """Pulsar's schema types with their codes (org.apache.pulsar.common.schema.SchemaType)."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    EXTERNAL = 21
    BYTES = -1
    AUTO = -2
    AUTO_CONSUME = -3
    AUTO_PUBLISH = -4


WITHOUT_SCHEMA = frozenset({SchemaType.NONE, SchemaType.BYTES})
"""The types of topics, clients and messages without schema."""


Locator = Callable[[str], Source]
"""From a JSON pointer into a definition or declaration to the nearest place that exists in the user's files."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """What Pulsar stores of a schema: type, bytes and properties. Where it was read from takes no part in equality.

    `schema` holds, by type: AVRO, JSON, PROTOBUF the Avro schema's JSON text; PROTOBUF_NATIVE the JSON wrapper of a descriptor set; KEY_VALUE two
    length-prefixed halves; every other type nothing (STRING from Python: `null`). `proto` is what `proto:` of a PROTOBUF declaration names, as
    PROTOBUF_NATIVE: Pulsar never sees it, but wire rules and codecs do. `comments` gives those of `.proto` files, by pointers.
    """

    type: SchemaType
    schema: bytes = b""
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)
    proto: SchemaInfo | None = field(default=None, compare=False, repr=False)
    comments: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the nearest place in the user's files to `pointer` in this definition; None when it came from no file."""
        return self.locator(pointer) if self.locator else self.source

    def load(self) -> SchemaInfo:
        """Return the definition itself, read from Git now where it was not yet: before it is compared or judged."""
        return self


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit that brought something: full hex id and committer time (seconds since the epoch, UTC)."""

    id: str
    time_s: int
    subject: str = ""

    @property
    def short(self) -> str:
        """The first nine hex digits, enough to paste into git."""
        return self.id[:9]


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One entry of a topic's version list. `info` is None for a tombstone (a soft delete takes a number, too)."""

    number: int
    info: SchemaInfo | None
    commit: Commit | None = None
    timestamp_ms: int | None = None

    def load(self) -> SchemaVersion:
        """Return the version itself, its definition read from Git now where it was not yet."""
        if self.info:
            self.info.load()
        return self


def live(versions: Sequence[SchemaVersion]) -> tuple[SchemaVersion, ...]:
    """Return the versions after the last tombstone: those a broker compares an upload with (trimDeletedSchemaAndGetList)."""
    deleted = [position for position, version in enumerate(versions) if version.info is None]
    return tuple(versions[deleted[-1] + 1 :] if deleted else versions)


def next_number(versions: Sequence[SchemaVersion]) -> int:
    """Return the number of the version that comes after these."""
    return versions[-1].number + 1 if versions else 0


# Definitions that are read only when `load` is called

_PARTS: Final = ("schema", "properties", "source", "locator", "proto", "comments")
"""Of a SchemaInfo, besides its type."""


class DeferredInfo(SchemaInfo):
    """A definition of which only the type is known until `load` is called. Using any other part before that is a bug."""

    __slots__ = ("_read",)

    @classmethod
    def of(cls, type_: SchemaType, read: Callable[[], SchemaInfo]) -> SchemaInfo:
        """Return the definition that `read` gives."""
        info = cls.__new__(cls)
        object.__setattr__(info, "type", type_)
        object.__setattr__(info, "_read", read)
        return info

    def load(self) -> SchemaInfo:
        """Read the definition, unless that was done."""
        # One that `replace` made has all its parts from the beginning.
        if read := getattr(self, "_read", None):
            found: SchemaInfo = read()
            for part in _PARTS:
                object.__setattr__(self, part, getattr(found, part))
            object.__setattr__(self, "_read", None)
        return self

    def __getattr__(self, name: str) -> Any:
        """Raise for a part that was not read yet."""
        if name in _PARTS:
            raise RuntimeError(f"{name} of a definition was used before it was read: call load() first")
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        """Compare two definitions, which are read already."""
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        return (self.type, self.schema, self.properties) == (other.type, other.schema, other.properties)

    __hash__ = SchemaInfo.__hash__

    def __repr__(self) -> str:
        """Return the definition, as far as it is read."""
        return f"DeferredInfo(type={self.type})" if getattr(self, "_read", None) else super().__repr__()
