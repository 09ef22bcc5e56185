"""Define schemas and versions as Pulsar stores them, and the supported releases of Pulsar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from schemactl.core.edits import DefinitionEdit, TextEdit
from schemactl.core.errors import Source

MAX_DEPTH: Final = 250
"""The maximum depth of objects and lists in a definition or a declared file. Jackson accepts 1,000, which no real definition needs."""

_MAX_DIGITS: Final = 64

_PARTS: Final = ("schema", "properties", "source", "locator", "proto", "comments", "editor")
"""The attributes of a SchemaInfo except the type."""


class Release(StrEnum):
    """The Pulsar releases whose answers are predicted; any other counts as the next lower release."""

    R4_0 = "4.0"
    R4_2 = "4.2"
    R5_0 = "5.0"

    @classmethod
    def from_version(cls, version: str) -> Release | None:
        """Return the newest release that is not newer than `version`, or None if every release is newer or `version` is not valid."""
        parts = version.split(".")[:2]
        if not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
            return None
        number = tuple(map(int, parts))
        releases = [release for release in cls if tuple(map(int, release.split("."))) <= number]
        return releases[-1] if releases else None


_OLDER_RELEASES: Final = (
    ((2, 7), "a change of schema type is accepted where Avro reads the one definition with the other"),
    ((2, 8), "brokers have no default for the compatibility strategy"),
    ((2, 10), "a namespace without a strategy has the strategy Full, which hides the default of the brokers"),
    ((2, 10), "the compatibility endpoint does not use the strategy of the brokers"),
    ((2, 11), "a schema cannot be deleted with its numbers, and topics have no policies by default"),
    (
        (3, 2),
        "the compatibility endpoint reads the text of a KEY_VALUE schema as its bytes (before 2.10.6, 2.11.4, 3.0.3 and 3.1.2)",
    ),
    (
        (4, 0),
        "an upload may be answered with 202, a missing schema with an empty body, and versions before a tombstone may be readable",
    ),
)
"""Pairs: a release, and how all releases before it differ from the supported ones."""


def describe_older_release(version: str) -> str:
    """Return the differences of a Pulsar version from the supported releases as a clause, or "" for version 4.0 or newer, or no version."""
    parts = version.split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        return ""
    number = tuple(map(int, parts))
    differences = [difference for first_release, difference in _OLDER_RELEASES if number < first_release]
    return "; ".join(differences)


class _NoData(bytes):
    """Empty bytes with a separate identity, because all other empty bytes are one object."""

    __slots__ = ()


NO_DATA: Final = _NoData()
"""A `SchemaInfo.schema` that is null in the registry's code; compare it with `is`."""

EMPTY: Mapping[str, str] = MappingProxyType({})


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

NANOSECOND_TYPES = (SchemaType.INSTANT, SchemaType.LOCAL_TIME, SchemaType.LOCAL_DATE_TIME)
"""The types with nanoseconds, for which Spark has only microseconds."""


Locator = Callable[[str], Source]
"""Returns the nearest source location of a JSON pointer into a definition or declaration."""

Editor = Callable[[DefinitionEdit], TextEdit | None]
"""Returns an edit of a definition as an edit of its file, or None if only a person can make it."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema as Pulsar stores it: type, bytes and properties. Its origin is ignored in comparisons.

    Attributes:
        schema: for AVRO, JSON and PROTOBUF the JSON text of the Avro schema; for PROTOBUF_NATIVE the JSON wrapper of a descriptor
            set; for KEY_VALUE the length-prefixed schemas of key and value; for other types empty (`null` for STRING from Python).
        proto: the definition that `proto:` of a PROTOBUF declaration names, as PROTOBUF_NATIVE. Pulsar does not store it, but
            wire rules and codecs use it.
        comments: returns the comments of `.proto` files, by JSON pointer.
        editor: makes edits in the files of the definition, or None if it was not read from files.
        text_digest: the digest of everything that a registry stores, without the properties of uploads (see `formats.digest`), or None
            before it is first needed. It is known of a definition from Git that an earlier command read.
    """

    type: SchemaType
    schema: bytes = b""
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)
    proto: SchemaInfo | None = field(default=None, compare=False, repr=False)
    comments: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)
    editor: Editor | None = field(default=None, compare=False, repr=False)
    text_digest: bytes | None = field(default=None, init=False, compare=False, repr=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the source location nearest to a JSON pointer, or None if the definition was not read from a file."""
        return self.locator(pointer) if self.locator else self.source

    def edit(self, edit: DefinitionEdit) -> TextEdit | None:
        """Return an edit of the definition as an edit of its file, or None if only a person can make it."""
        return self.editor(edit) if self.editor else None

    def add_properties(self, properties: Mapping[str, str]) -> SchemaInfo:
        """Return the definition with more properties, which do not belong to its content."""
        return replace(self, properties={**self.properties, **properties})

    def may_mention(self, name: str) -> bool:  # noqa: ARG002  nothing is known of a definition that was read before
        """Return whether the definition may mention a name of ASCII letters, digits and `_`, in any case, without reading it."""
        return True

    def load(self) -> SchemaInfo:
        """Read the definition from Git unless it was read before, and return it."""
        return self

    def unload(self) -> None:
        """Free the memory of a definition that was read from Git; the next use reads it again."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: the full hex id, the committer time in seconds since the epoch, and the subject."""

    id: str
    time_s: int
    subject: str = ""

    @property
    def short(self) -> str:
        """The first nine hex digits of the id."""
        return self.id[:9]


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """An entry of a topic's version list; `info` is None for a tombstone, which a soft delete appends.

    Attributes:
        kind: the key of its kind, or "" if it belongs to none (see `Topic.find_kind_key`).
    """

    number: int
    info: SchemaInfo | None
    commit: Commit | None = None
    timestamp_ms: int | None = None
    kind: str = ""

    def load(self) -> SchemaVersion:
        """Read the definition from Git unless it was read before, and return the version."""
        if self.info:
            self.info.load()
        return self


def get_live_versions(versions: Sequence[SchemaVersion]) -> tuple[SchemaVersion, ...]:
    """Return the versions after the last tombstone, with which a broker compares an upload (trimDeletedSchemaAndGetList)."""
    tombstones = [index for index, version in enumerate(versions) if version.info is None]
    return tuple(versions[tombstones[-1] + 1 :] if tombstones else versions)


def find_by_number(versions: Iterable[SchemaVersion], number: int | None) -> SchemaVersion | None:
    """Return the version with this number; numbers can have gaps, so a number is not an index."""
    return next((version for version in versions if version.number == number), None)


def get_next_number(versions: Sequence[SchemaVersion]) -> int:
    """Return the number after the last version, which may be a tombstone, or 0 without versions."""
    return versions[-1].number + 1 if versions else 0


def locate_again(read: Callable[[], SchemaInfo], pointer: str) -> Source:
    """Read a definition again, and return the place nearest to a JSON pointer."""
    source = read().locate(pointer)
    assert source  # noqa: S101  the definition had a locator when it was read first
    return source


def edit_again(read: Callable[[], SchemaInfo], edit: DefinitionEdit) -> TextEdit | None:
    """Read a definition again, and return an edit of it as an edit of its file, or None if only a person can make it."""
    return read().edit(edit)


class DeferredInfo(SchemaInfo):
    """A definition that is read when it is first used; its type is known before.

    Attributes:
        digest: see `formats.digest`; None if it is unknown.
        record_name: see `formats.get_record_name`; None if it is unknown.
        is_plain: whether `formats.avro.plain.is_plain` is known to be true.
    """

    __slots__ = ("_may_mention", "_read", "_read_again", "digest", "is_plain", "record_name")

    digest: bytes | None
    record_name: str | None
    is_plain: bool

    @classmethod
    def of(
        cls,
        type_: SchemaType,
        read: Callable[[], SchemaInfo],
        *,
        digest: bytes | None = None,
        text_digest: bytes | None = None,
        record_name: str | None = None,
        is_plain: bool = False,
        may_mention: Callable[[str], bool] = lambda _: True,
    ) -> SchemaInfo:
        """Return a definition that `read` returns on first use, with the facts that are known before.

        `may_mention` is the answer of the method of this name.
        """
        info = cls.__new__(cls)
        object.__setattr__(info, "type", type_)
        object.__setattr__(info, "_read", read)
        object.__setattr__(info, "digest", digest)
        object.__setattr__(info, "text_digest", text_digest)
        object.__setattr__(info, "record_name", record_name)
        object.__setattr__(info, "is_plain", is_plain)
        object.__setattr__(info, "_may_mention", may_mention)
        return info

    def may_mention(self, name: str) -> bool:
        """See `SchemaInfo.may_mention`."""
        may_mention: Callable[[str], bool] | None = getattr(self, "_may_mention", None)
        return may_mention is None or may_mention(name)

    def load(self) -> SchemaInfo:
        """Read the definition unless it was read before, and return it."""
        # The result of `replace` has all attributes from the start.
        if read := getattr(self, "_read", None):
            info: SchemaInfo = read()
            for part in _PARTS:
                object.__setattr__(self, part, getattr(info, part))
            # The parsed files behind locations and edits take several times the memory of the text, and few versions need them.
            if info.locator:
                object.__setattr__(self, "locator", partial(locate_again, read))
            if info.editor:
                object.__setattr__(self, "editor", partial(edit_again, read))
            object.__setattr__(self, "_read_again", read)
            object.__setattr__(self, "_read", None)
        return self

    def unload(self) -> None:
        """Free the memory of a definition that was read from Git; the next use reads it again."""
        if read := getattr(self, "_read_again", None):
            object.__setattr__(self, "_read", read)
            object.__setattr__(self, "_read_again", None)
            for part in _PARTS:
                object.__delattr__(self, part)

    def add_properties(self, properties: Mapping[str, str]) -> SchemaInfo:
        """See `SchemaInfo.add_properties`. The facts that are known before the definition is read are kept."""
        info = super().add_properties(properties)
        object.__setattr__(info, "digest", getattr(self, "digest", None))
        object.__setattr__(info, "is_plain", getattr(self, "is_plain", False))
        object.__setattr__(info, "record_name", getattr(self, "record_name", None))
        object.__setattr__(info, "_may_mention", getattr(self, "_may_mention", None))
        return info

    def __getattr__(self, name: str) -> Any:
        """Read the definition for the first attribute that is used."""
        if name not in _PARTS:
            raise AttributeError(name)
        # Another thread may have read it since the attribute was missing.
        return object.__getattribute__(self.load(), name)

    def __eq__(self, other: object) -> bool:
        """Return whether both definitions are equal."""
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        return (self.type, self.schema, self.properties) == (other.type, other.schema, other.properties)

    __hash__ = SchemaInfo.__hash__

    def __repr__(self) -> str:
        """Return the definition, or only its type if it was not read yet."""
        return f"DeferredInfo(type={self.type})" if getattr(self, "_read", None) else super().__repr__()
