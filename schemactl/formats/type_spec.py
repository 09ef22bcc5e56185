"""`TypeSpec`, the questions that each schema type answers, and the search for a message that proves a changed type.

A consumer decodes every message by its own schema. A small message of the writer's, read like the reader reads it, proves a changed
type: the reader throws, or reads another value. If all sample messages are read equally (TIMESTAMP as DATE: one moment), nothing is
proved. The bytes of PROTOBUF without its `.proto`, and of EXTERNAL, are unknown.

Avro messages are decoded by the reader's definition alone. A client does the same for a message without a version (Python's if all
else fails). Java's client first looks up the writer's version, and throws if it has no Avro definition; so results name the
definition, unless both are the same.

Sources: `KeyValue` (org.apache.pulsar.common.schema), MessageImpl, GenericJsonReader.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from schemactl.core.edits import AddAlias, DefinitionEdit
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.findings import Breakage, Counterexample, Direction, Incompatibility
from schemactl.core.json_values import json_text
from schemactl.core.project import ProtoCategory
from schemactl.core.schema import Release, SchemaInfo, SchemaType

Encoding = Literal["INLINE", "SEPARATED"]

MAX_MESSAGES: Final = 9
"""The number of sample messages to try."""

BY_ITS_OWN: Final = " (decoded by the reader's definition alone)"
"""The suffix of a result that another definition could change."""


@dataclass(frozen=True, kw_only=True)
class TypeSpec:
    """The properties and operations of one of Pulsar's schema types. The defaults describe an unknown type.

    A layer above that treats types differently (the broker's checks, the forms of declarations, Spark's types) finds a name here,
    and has one table by these names. If a definition does not parse, methods raise InvalidSchema, or yield it (`find_problems`).

    Attributes:
        language: the language of a definition; "" for a type without definitions.
        payload: the format of a message's bytes; "unknown" if the definition does not say.
        declared_as: the form of its declaration: without definition, as any text, as Avro, as Avro with a `.proto`, as a
            `.proto`, or as key and value.
        undeclarable: why no topic is declared with it and the fix, or None if it can be declared.
        unfit_half: why it cannot be a half of a KEY_VALUE schema; "" if it can.
        validation: the broker's validator for a single definition.
        checker: the broker's checker that compares it with others.
        first_release: the first release that knows the type.
        has_spellings: whether clients register several definitions that are declared as one (see `to_declared`).
        suffix: the file name suffix of a definition.
        spark: the name of the Spark type of a value; "" if the definition decides, or if no Spark type fits.
    """

    language: Literal["", "avro", "protobuf", "pair"] = ""
    payload: Literal["avro", "json", "protobuf", "value", "bytes", "pair", "unknown"] = "unknown"
    declared_as: Literal["plain", "text", "avro", "protobuf", "proto", "pair"] = "plain"
    undeclarable: tuple[str, str] | None = None
    unfit_half: str = ""
    validation: Literal["any", "empty", "string", "avro", "proto", "pair", "client"] = "any"
    checker: Literal["default", "avro", "json", "proto", "external", "pair"] = "default"
    first_release: Release = Release.R4_0
    has_spellings: bool = False
    suffix: str = ".txt"
    spark: str = ""

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield every reason not to declare `info`: it does not parse, a default is invalid, that release rejects it.

        Each problem's `pointer` is its place in the definition. Without a problem, a first upload is accepted, and no later
        upload fails because of it.
        """
        if self.undeclarable:
            yield InvalidSchema(self.undeclarable[0], fix=self.undeclarable[1])
        elif release < self.first_release:
            first = self.first_release.value
            yield InvalidSchema(f"{info.type.name} exists from Pulsar {first} on; this project is for {release}")

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return a key that two definitions share exactly if they are one version; the type is part of it."""
        return info.type, info.schema

    def get_record_name(self, info: SchemaInfo) -> str:
        """Return the full name of the record or message that is the root of `info`, or "" if the root has no such name."""
        del info
        return ""

    def list_reading_parts(self, info: SchemaInfo) -> tuple[Hashable, ...]:
        """Return the parts that change how readers with `info` read data and are not part of its identity."""
        return tuple(sorted((key, value) for key, value in info.properties.items() if key.startswith("__")))

    def find_unusable_defaults(self, info: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the defaults that brokers store and no reader can fill in."""
        del info
        return iter(())

    def find_unapplied_defaults(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the defaults that `reader` declares for fields without a value in messages of `writer`, and does not apply.

        Both have this type.
        """
        del reader, writer
        return iter(())

    def to_declared(self, info: SchemaInfo) -> SchemaInfo:
        """Return `info` in the spelling of declarations; clients may register other spellings of the same definition."""
        return info

    def get_content(self, info: SchemaInfo) -> object:
        """Return a value that definitions share if they differ only in layout."""
        return self.identity(info)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield every reason why `reader` may fail on a message of `writer`, in document order.

        Both have this type. Without a reason, every such message decodes.
        """
        del reader, writer
        return iter(())

    def find_misreadings(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the places where `reader` decodes a message of `writer` to another value than the written one, in document order.

        Both have this type. Reasons of `resolve` are not repeated. If neither method yields anything, the reader gets every
        written value. Fields that only one side has do not count.
        """
        del reader, writer
        return iter(())

    def has_client_rules(self, language: str) -> bool:
        """Return whether Pulsar's client of a language reads messages by other rules than `resolve` and `find_misreadings`."""
        del language
        return False

    def find_client_misreadings(
        self, *, reader: SchemaInfo, writer: SchemaInfo, language: str
    ) -> Iterator[Incompatibility]:
        """Yield the places where Pulsar's client of a language fails on a message of `writer`, or reads another value.

        Both have this type. Defaults that the client does not apply are in `find_client_defaults`.
        """
        del language
        yield from self.resolve(reader=reader, writer=writer)
        yield from self.find_misreadings(reader=reader, writer=writer)

    def find_client_defaults(
        self, *, reader: SchemaInfo, writer: SchemaInfo, language: str
    ) -> Iterator[Incompatibility]:
        """Yield the defaults for fields without a value in messages of `writer` that the client of a language does not apply."""
        del language
        return self.find_unapplied_defaults(reader=reader, writer=writer)

    def require_newest(self, info: SchemaInfo, *, or_release: Release | None = None) -> None:
        """Raise InvalidSchema unless the newest release, or `or_release`, accepts the names in `info`; old ones accept some others."""

    def find_buf_violations(
        self, category: ProtoCategory, *, new: SchemaInfo, old: SchemaInfo
    ) -> Iterator[Incompatibility]:
        """Yield the violations of buf's `category` between `old` and `new`, if both consist of descriptors."""
        del category, new, old
        return iter(())

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Explain a `breakage` of `new` with `old`; its `direction` says which side reads."""
        del new, old
        return Explanation("", breakage.incompatibility.message, "Give the new messages a separate topic.")

    def find_renames(self, *, new: SchemaInfo, old: SchemaInfo, old_name: str, new_name: str) -> Iterator[Rename]:
        """Yield the parts of `new` called `new_name` that may be what `old` calls `old_name`, if the type has aliases."""
        del new, old, old_name, new_name
        return iter(())

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return a message that proves `breakage` and the reader's result, or None if no such message was found."""
        del breakage, new, old
        return None

    def get_pair(self, info: SchemaInfo) -> Pair | None:
        """Return the halves of a KEY_VALUE schema, or None for every other type."""
        del info
        return None

    def to_text(self, info: SchemaInfo) -> str | None:
        """Return the definition's text in the admin API: "" without a definition, None for bytes that are not text."""
        try:
            return info.schema.decode()
        except UnicodeDecodeError:
            return None

    def from_text(self, type_: SchemaType, text: str, properties: Mapping[str, str]) -> SchemaInfo:
        """Return the schema that a broker stores for a text of the admin API.

        Raises:
            InvalidSchema: if it is not the text of such a schema.
        """
        # Java's String.getBytes replaces a lone surrogate by a question mark.
        return SchemaInfo(type_, text.encode(errors="replace"), properties)

    def list_parts(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield each part's name and description, in document order."""
        yield "", info.type.name

    def list_notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield the names and notes of the parts of the outline that have documentation or aliases."""
        del info
        return iter(())

    def list_direct_references(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Map each named type to the named types that it references directly, by full name; the key "" is the root."""
        del info
        return {}

    def format_lines(self, info: SchemaInfo) -> list[str]:
        """Return the definition's lines in a layout that depends only on the content."""
        try:
            text = self.to_text(info) or ""
        except InvalidSchema:
            text = info.schema.decode(errors="replace")
        return [*_split_lines(text)]

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield small messages, the most distinctive first, or nothing if the bytes are unknown.

        Raises:
            SchemactlError: if it needs protobuf, which is not installed.
        """
        del info
        return iter(())

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the value that a reader with `info` gets from a message of any writer, as JSON text.

        Raises:
            ReaderFailure: if the reader throws.
            UnknownWire: if the result is unpredictable.
            SchemactlError: if it needs protobuf, which is not installed.
        """
        del wire, info
        raise UnknownWire


@lru_cache(maxsize=16)  # a page of the catalog site needs the lines of a version several times
def _split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text; JSON has one line for each value."""
    try:
        return tuple(json_text(json.loads(text)).split("\n"))
    except (ValueError, RecursionError):
        return tuple(text.removesuffix("\n").split("\n")) if text else ()


SPECS: Final[dict[SchemaType, TypeSpec]] = {}
"""The specification of every schema type; `schemactl.formats` fills it."""


def spec(info: SchemaInfo) -> TypeSpec:
    """Return the specification of the type of `info`."""
    return SPECS[info.type]


def get_pair(info: SchemaInfo) -> Pair | None:
    """Return the halves of a KEY_VALUE schema, or None for every other type.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    return SPECS[info.type].get_pair(info)


def get_parts(info: SchemaInfo) -> dict[str, SchemaInfo]:
    """Return the key and the value of a KEY_VALUE schema by `/key` and `/value`, or else the schema itself by "".

    Raises:
        InvalidSchema: if the definition of a KEY_VALUE schema does not parse.
    """
    pair = get_pair(info)
    return {f"/{name}": part for name, part in pair.halves.items()} if pair else {"": info}


@dataclass(frozen=True, slots=True)
class Pair:
    """The two schemas of a KEY_VALUE schema, and the place of the key in a message."""

    key: SchemaInfo
    value: SchemaInfo
    encoding: Encoding

    @property
    def halves(self) -> Mapping[Literal["key", "value"], SchemaInfo]:
        """Both schemas by name."""
        return {"key": self.key, "value": self.value}


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of an incompatibility.

    Attributes:
        field: the path of the field in the new schema (or in the old, if only it has the field): `Order.lines[].price`.
        reason: one or two sentences: the difference and its effect on messages.
        fix: the definition to write instead.
        place: the JSON pointer of the nearest part in the new definition's text.
        older: the JSON pointer of the part in the old definition, or None if the part is not there.
        edit: the edit of the new definition that makes the fix, if only one edit does.
        alternatives: the edits among which a person chooses, if there are several.
        causes: for a union that does not read a type, the type and the problems in the branch with its name.
    """

    field: str
    reason: str
    fix: str
    place: str = ""
    older: str | None = None
    edit: DefinitionEdit | None = None
    alternatives: tuple[DefinitionEdit, ...] = ()
    causes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rename:
    """A field or a named type that a definition may have under a new name.

    Attributes:
        edit: the edit that adds the old name to the aliases.
        is_done: whether it is among the aliases already.
        is_usable: whether readers look for aliases; readers of JSON do not.
    """

    edit: AddAlias
    is_done: bool
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """The documentation and the aliases of a part of a definition."""

    doc: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wire:
    """A message on a topic: its payload (None is null), and the message's own key, which only SEPARATED uses."""

    payload: bytes | None
    key: bytes | None = None


class ReaderFailure(Exception):
    """A reader throws; the argument is Java's simple class name and message, as `Name: message`."""


class UnknownWire(Exception):
    """The definition does not describe its bytes, or a reader's result for them is unpredictable."""


# Misreadings between schema types


def find_misread_for_direction(direction: Direction, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """Return a message that a reading side of `direction` misreads, or None if none was found."""
    if direction != "old_reads_new":
        counterexample = find_misread_message(reader=new, writer=old)
        if counterexample or direction == "new_reads_old":
            return counterexample
    return find_misread_message(reader=old, writer=new)


def find_misread_message(*, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
    """Return the first small message of `writer` on which `reader` throws, or which it reads as another value, or None.

    The result is also None if a definition does not parse, or if protobuf is not installed.
    """
    reader, writer = reader.proto or reader, writer.proto or writer
    try:
        suffix = BY_ITS_OWN if _has_avro(reader) and reader.schema != writer.schema else ""
        for wire in islice(spec(writer).make_messages(writer), MAX_MESSAGES):
            written, payload = spec(writer).read(wire, writer), wire.payload or b""
            try:
                result = spec(reader).read(wire, reader)
            except ReaderFailure as failure:
                return Counterexample(written, payload, f"{failure}{suffix}")
            if result != written:
                return Counterexample(written, payload, f"reads {result}{suffix}")
    except (SchemactlError, UnknownWire, RecursionError):
        return None
    return None


def _has_avro(info: SchemaInfo) -> bool:
    pair = get_pair(info)
    return any(map(_has_avro, pair.halves.values())) if pair else spec(info).payload == "avro"
