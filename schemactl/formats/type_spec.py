"""`TypeSpec`, the questions that each schema type answers, and two answers shared by all of them.

These are messages that a reader with another schema misreads, and the differences of two definitions by field.

A consumer decodes every message by its own schema. So a changed type is proved by a small message of the writer's,
read as the reader would: it throws, or reads another value. Where the readings of all messages tried agree (TIMESTAMP
as DATE: one moment) nothing is proved. PROTOBUF without its `.proto` does not tell its bytes, EXTERNAL never does.

Avro is read by the reader's definition alone. So does a client where the message names no version (Python's: where all
else fails). Java's looks the version up first, and throws before it reads where that has no Avro definition: results
say by what was read, unless both definitions are the same.

Sources: `KeyValue` (org.apache.pulsar.common.schema), MessageImpl, GenericJsonReader.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile
from operator import eq
from typing import Final, Literal

from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.findings import Breakage, Counterexample, Direction, Incompatibility
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
            yield InvalidSchema(f"{info.type.name} exists from Pulsar {first} on; this project is for {release}")

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

    def buf_violations(self, category: ProtoCategory, *, new: SchemaInfo, old: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield what buf's `category` finds between `old` and `new`; nothing where either is not made of descriptors."""
        del category, new, old
        return iter(())

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Return `breakage` of `new` with `old` for people; who reads whom is its `direction`."""
        del new, old
        return Explanation("", breakage.incompatibility.message, "Give the new messages a topic of their own.")

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
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


# Misreadings between schema types.


MAX_MESSAGES: Final = 9
"""Of one schema that are tried."""

BY_ITS_OWN: Final = " (decoded by the reader's definition alone)"
"""Added to a result where another definition might have been used."""


def misreading_of(direction: Direction, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """Return a message that one side misreads, of those that `direction` has reading; None where none was found."""
    if direction != "old_reads_new":
        found = misreading(reader=new, writer=old)
        if found or direction == "new_reads_old":
            return found
    return misreading(reader=old, writer=new)


def misreading(*, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
    """Return the first small message of `writer` that `reader` throws on or reads as another value; None: there was none.

    None, too, where a definition does not parse, or protobuf is not installed.
    """
    reader, writer = reader.proto or reader, writer.proto or writer
    try:
        by = BY_ITS_OWN if _holds_avro(reader) and reader.schema != writer.schema else ""
        for wire in islice(spec(writer).messages(writer), MAX_MESSAGES):
            written, payload = spec(writer).read(wire, writer), wire.payload or b""
            try:
                result = spec(reader).read(wire, reader)
            except ReaderFailure as thrown:
                return Counterexample(written, payload, f"{thrown}{by}")
            if result != written:
                return Counterexample(written, payload, f"reads {result}{by}")
    except (SchemactlError, UnknownWire, RecursionError):
        return None
    return None


def _holds_avro(info: SchemaInfo) -> bool:
    pair = pair_of(info)
    return any(map(_holds_avro, pair.halves.values())) if pair else spec(info).payload == "avro"


# Outline and differences by field.


_SMALLEST_DIFF_LINES: Final = 5_000
_NO_NOTE: Final = Note()


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to what it is, in document order: `Order.lines` to `array<OrderLine>`.

    Named types are spelled out once, under their own name without namespace where no two share it. Docs, aliases and the
    order of symbols are left out. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    parts = dict(spec(info).outline(info))
    # A pair keeps its types and encoding there, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


@dataclass(frozen=True, slots=True)
class PartChange:
    """What differs of one part of two definitions.

    Attributes:
        kind: `widened` is a change of type after which everything written before can still be read; `documented` one of the documentation alone.
        part: its name in the newer definition, else in the older.
        before: what it was, or its documentation; "" where it was not there.
        after: what it is.
        former: its name in the older definition, where an alias says so.
    """

    kind: Literal["added", "removed", "renamed", "widened", "changed", "documented"]
    part: str
    before: str = ""
    after: str = ""
    former: str = ""

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return {"added": "+", "removed": "-"}.get(self.kind, "~")

    @property
    def text(self) -> str:
        """The part, and what has become of it."""
        name = f"{self.part}: " if self.part else ""
        if self.kind in ("added", "removed"):
            return f"{self.part}: {self.before}{self.after}"
        if self.kind == "documented":
            return f"{name}documentation"
        what = self.after if self.before == self.after else f"{self.before} -> {self.after}"
        return f"{name}{what}{f', was {self.former}' if self.former else ''}"


def changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield what differs between two outlines: `+`, `-` or `~`, and the part, in the order of the new one; no documentation.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    return ((each.sign, each.text) for each in part_changes(old=old, new=new) if each.kind != "documented")


def part_changes(*, old: SchemaInfo | None, new: SchemaInfo | None) -> Iterator[PartChange]:
    """Yield what differs between two definitions, what is gone first, then in the order of the new one. None is no definition.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    if old and new and old.type is not new.type:
        yield PartChange("changed", "type", old.type.name, new.type.name)
        return
    before, after = (outline(info) if info else {} for info in (old, new))
    old_notes, new_notes = (dict(spec(info).notes(info)) if info else {} for info in (old, new))
    former = dict(_renamed(before, after, new_notes))
    for part, what in before.items():
        if part not in after and part not in former.values():
            yield PartChange("removed", part, what)
    for part, what in after.items():
        was = former.get(part, part)
        known = before.get(was)
        if known is None:
            yield PartChange("added", part, after=what)
        elif was != part and part.rpartition(".")[2] != was.rpartition(".")[2]:
            yield PartChange("renamed", part, known, what, was)
        elif known != what:
            yield PartChange("widened" if _is_wider(known, what) else "changed", part, known, what)
        docs = old_notes.get(was, _NO_NOTE).doc, new_notes.get(part, _NO_NOTE).doc
        if known is not None and docs[0] != docs[1]:
            yield PartChange("documented", part, *docs)


def _renamed(
    before: Mapping[str, str], after: Mapping[str, str], notes: Mapping[str, Note]
) -> Iterator[tuple[str, str]]:
    """Yield each part of `after` that an alias, or the new name of its record, makes one of `before`: new name, old name."""
    types: dict[str, str] = {}
    for part in after:
        if part in before:
            continue
        inside, dot, name = part.rpartition(".")
        names = [name, *(alias.rpartition(".")[2] for alias in notes.get(part, _NO_NOTE).aliases)]
        for each in names:
            was = f"{types.get(inside, inside)}{dot}{each}"
            if was != part and was in before and was not in after:
                types[part] = was
                yield part, was
                break


def _is_wider(before: str, after: str) -> bool:
    """Return whether a field's type became another that holds all it held; of Avro, whose outlines say so."""
    from schemactl.formats.avro.schema import PROMOTIONS

    held, holds = (what.partition(" = ")[0].split(" | ") for what in (before, after))
    return held != holds and all(
        each in holds or any(each in PROMOTIONS.get(wider, ()) for wider in holds) for each in held
    )


def line_changes(
    *, old: SchemaInfo | None, new: SchemaInfo | None, labels: tuple[str, str] = ("old", "new")
) -> list[str]:
    """Return the lines of a unified diff of two definitions, laid out the same: layout is no difference. None is no definition.

    It is the smallest diff where that can be found in reasonable time.
    """
    from difflib import unified_diff

    before, after = (spec(info).lines(info) if info else [] for info in (old, new))
    if max(len(before), len(after)) <= _SMALLEST_DIFF_LINES or before == after:
        return list(unified_diff(before, after, *labels, lineterm=""))
    # Looking for the smallest takes time in the square of the lines: here all between the first and the last difference is one.
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    gone, come = (text[head : len(text) - tail] for text in (before, after))
    place = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
    lines = [f"--- {labels[0]}", f"+++ {labels[1]}", place]
    return [*lines, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many of their first lines are the same."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))
