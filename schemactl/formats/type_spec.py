"""The specification of a schema type, and the table of all of them, which `schemactl.formats` fills."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.project import ProtoCategory
from schemactl.core.schema import Release, SchemaInfo, SchemaType


@dataclass(frozen=True, slots=True)
class Explanation:
    """An incompatibility for people.

    Attributes:
        field: the path of the field in the new schema (or the old, where only that has it): `Order.lines[].price`.
        reason: one or two sentences: what differs, and what becomes of the messages.
        fix: what to write instead.
        place: JSON pointer of the nearest part that the new definition's own text has.
        older: JSON pointer of the part in the old definition, where it is that one's; None: it is not.
    """

    field: str
    reason: str
    fix: str
    place: str = ""
    older: str | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """A message on a topic: its payload (None: null), and the message's own key, which only SEPARATED has."""

    payload: bytes | None
    key: bytes | None = None


class ReaderFailure(Exception):
    """A reader throws: Java's simple class name and message, as `Name: message`."""


class UnknownWire(Exception):
    """The definition does not say what its bytes are, or what a reader does with them cannot be known."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is said of a part of a definition besides what it is: its documentation, and its other names."""

    doc: str = ""
    aliases: tuple[str, ...] = ()


Encoding = Literal["INLINE", "SEPARATED"]


@dataclass(frozen=True, slots=True)
class Pair:
    """The two schemas of a KEY_VALUE schema, and how a message carries its key."""

    key: SchemaInfo
    value: SchemaInfo
    encoding: Encoding

    @property
    def halves(self) -> Mapping[Literal["key", "value"], SchemaInfo]:
        """Both schemas by their names."""
        return {"key": self.key, "value": self.value}


@dataclass(frozen=True, kw_only=True)
class TypeSpec:
    """Everything that is asked about one of Pulsar's schema types. The defaults are those of a type nothing is known of.

    A layer above this one that does something of its own for a type (the broker's checks, the shapes of declarations,
    Spark's types) finds the name of it here, and has one table by these names. Where a definition does not parse, methods raise
    InvalidSchema, or yield it (`problems`).

    Attributes:
        language: what a definition is written in; "" where there is none.
        payload: what the bytes of a message are; "unknown" where the definition does not say.
        declared_as: the shape of its declaration: without definition, as Avro, as Avro with a `.proto`, as a `.proto`,
            or as key and value.
        undeclarable: why no topic is declared with it, and what to do instead; none where one can be.
        unfit_half: why it is no half of a KEY_VALUE schema; "" where it is.
        validation: which of the broker's validators judges a definition alone.
        checker: which of the broker's checkers compares it with others.
        first_release: the first release that knows the type.
        has_spellings: clients register several definitions that are declared as one (see `declared`).
        suffix: how the name of a file ends that holds a definition.
        spark: the name of the Spark type of a value; "" where the definition decides, or there is none.
    """

    language: Literal["", "avro", "protobuf", "pair"] = ""
    payload: Literal["avro", "json", "protobuf", "value", "bytes", "pair", "unknown"] = "unknown"
    declared_as: Literal["plain", "avro", "protobuf", "proto", "pair"] = "plain"
    undeclarable: tuple[str, str] | None = None
    unfit_half: str = ""
    validation: Literal["any", "empty", "string", "avro", "proto", "pair", "client"] = "any"
    checker: Literal["default", "avro", "json", "proto", "external", "pair"] = "default"
    first_release: Release = Release.R4_0
    has_spellings: bool = False
    suffix: str = ".txt"
    spark: str = ""

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield every reason not to declare `info`: it does not parse, a default is invalid, that release rejects it.

        Each problem's `pointer` says where in the definition. Without any, a first upload is accepted, and no
        later upload fails because of it.
        """
        if self.undeclarable:
            yield InvalidSchema(self.undeclarable[0], fix=self.undeclarable[1])
        elif release < self.first_release:
            first = self.first_release.value
            yield InvalidSchema(
                f"{info.type.name} exists from Pulsar {first} on; this project is for {release}"
            )

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return a key that is equal for two definitions exactly when they are one version; the type is part of it."""
        return info.type, info.schema

    def declared(self, info: SchemaInfo) -> SchemaInfo:
        """Return `info` as a declaration spells it, where clients register several spellings of one definition."""
        return info

    def content(self, info: SchemaInfo) -> object:
        """Return what two definitions have in common that differ in layout alone."""
        return self.identity(info)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield every reason `reader` may fail on a message written with `writer`, in document order.

        Both have this type. Without any, every such message decodes.
        """
        del reader, writer
        return iter(())

    def require_newest(self, info: SchemaInfo) -> None:
        """Raise InvalidSchema unless the newest release accepts the names in `info`; older ones accept some that it rejects."""

    def buf_violations(
        self, category: ProtoCategory, *, new: SchemaInfo, old: SchemaInfo
    ) -> Iterator[Incompatibility]:
        """Yield what buf's `category` finds between `old` and `new`; nothing where either is not made of descriptors."""
        del category, new, old
        return iter(())

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Return `breakage` of `new` with `old` for people; who reads whom is its `direction`."""
        del new, old
        return Explanation(
            "", breakage.incompatibility.message, "Give the new messages a topic of their own."
        )

    def counterexample(
        self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo
    ) -> Counterexample | None:
        """Return a message that proves `breakage`, and what its reader gets; None where none can exist or was found."""
        del breakage, new, old
        return None

    def pair(self, info: SchemaInfo) -> Pair | None:
        """Return the halves of a KEY_VALUE schema; None for every other type."""
        del info
        return None

    def text(self, info: SchemaInfo) -> str | None:
        """Return the definition as the admin API shows it; "" without one, None for bytes that are no text."""
        try:
            return info.schema.decode()
        except UnicodeDecodeError:
            return None

    def from_text(self, type_: SchemaType, text: str, properties: Mapping[str, str]) -> SchemaInfo:
        """Return the schema that a broker stores for the admin API's text.

        Raises:
            InvalidSchema: it is no text of such a schema.
        """
        # A lone surrogate is no text; the question mark is what Java's String.getBytes makes of it.
        return SchemaInfo(type_, text.encode(errors="replace"), properties)

    def outline(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield each part's name and what it is, in document order."""
        yield "", info.type.name

    def notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield what is said of parts of the outline besides what they are, of those of which something is said."""
        del info
        return iter(())

    def uses(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Return by the full name of each named type those that it uses itself; by "" those that the definition does."""
        del info
        return {}

    def lines(self, info: SchemaInfo) -> list[str]:
        """Return the definition's lines, laid out the same for the same content."""
        try:
            text = self.text(info) or ""
        except InvalidSchema:
            text = info.schema.decode(errors="replace")
        return [*_lines(text)]

    def messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield small messages, the most telling first; none where nothing is known of the bytes.

        Raises:
            SchemactlError: it needs protobuf, which is not installed.
        """
        del info
        return iter(())

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the value that a reader with `info` gets from a message of any writer, as JSON text.

        Raises:
            ReaderFailure: the reader throws.
            UnknownWire: what it does cannot be known.
            SchemactlError: it needs protobuf, which is not installed.
        """
        del wire, info
        raise UnknownWire


SPECS: Final[dict[SchemaType, TypeSpec]] = {}
"""The specification of every schema type; `schemactl.formats` has the rows."""


def spec(info: SchemaInfo) -> TypeSpec:
    """Return the specification of the type of `info`."""
    return SPECS[info.type]


def pair_of(info: SchemaInfo) -> Pair | None:
    """Return the halves of a KEY_VALUE schema; None for every other type.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    return SPECS[info.type].pair(info)


@lru_cache(maxsize=16)
def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text: of JSON one for each value. A page of the catalogue asks for those of a version several times."""
    try:
        return tuple(json.dumps(json.loads(text), indent=2, ensure_ascii=False).split("\n"))
    except (ValueError, RecursionError):
        return tuple(text.removesuffix("\n").split("\n")) if text else ()
