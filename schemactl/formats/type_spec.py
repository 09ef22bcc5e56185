"""`TypeSpec`, the questions that each schema type answers, and answers that all types share: misreadings and differences by field.

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
from itertools import islice, takewhile
from operator import eq
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

_SMALLEST_DIFF_LINES: Final = 5_000
"""The maximum number of lines for which `diff_definitions` searches the smallest diff."""


@dataclass(frozen=True, kw_only=True)
class TypeSpec:
    """The properties and operations of one of Pulsar's schema types. The defaults describe an unknown type.

    A layer above that treats types differently (the broker's checks, the forms of declarations, Spark's types) finds a name here,
    and has one table by these names. If a definition does not parse, methods raise InvalidSchema, or yield it (`problems`).

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
        has_spellings: whether clients register several definitions that are declared as one (see `declared`).
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

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
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

    def record_name(self, info: SchemaInfo) -> str:
        """Return the full name of the record or message that is the root of `info`, or "" if the root has no such name."""
        del info
        return ""

    def reading_parts(self, info: SchemaInfo) -> tuple[Hashable, ...]:
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

    def declared(self, info: SchemaInfo) -> SchemaInfo:
        """Return `info` in the spelling of declarations; clients may register other spellings of the same definition."""
        return info

    def content(self, info: SchemaInfo) -> object:
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

    def buf_violations(self, category: ProtoCategory, *, new: SchemaInfo, old: SchemaInfo) -> Iterator[Incompatibility]:
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

    def pair(self, info: SchemaInfo) -> Pair | None:
        """Return the halves of a KEY_VALUE schema, or None for every other type."""
        del info
        return None

    def text(self, info: SchemaInfo) -> str | None:
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

    def outline(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield each part's name and description, in document order."""
        yield "", info.type.name

    def notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield the names and notes of the parts of the outline that have documentation or aliases."""
        del info
        return iter(())

    def list_direct_references(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Map each named type to the named types that it references directly, by full name; the key "" is the root."""
        del info
        return {}

    def lines(self, info: SchemaInfo) -> list[str]:
        """Return the definition's lines in a layout that depends only on the content."""
        try:
            text = self.text(info) or ""
        except InvalidSchema:
            text = info.schema.decode(errors="replace")
        return [*_split_lines(text)]

    def messages(self, info: SchemaInfo) -> Iterator[Wire]:
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
    return SPECS[info.type].pair(info)


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
        for wire in islice(spec(writer).messages(writer), MAX_MESSAGES):
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


# Outline and differences by field


_NO_NOTE: Final = Note()


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to its description, in document order: `Order.lines` to `array<OrderLine>`.

    A named type is spelled out once, under its name without namespace unless two types share this name. Docs, aliases and the
    order of symbols do not count. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    parts = dict(spec(info).outline(info))
    # The properties of a pair are its types and encoding, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


@dataclass(frozen=True, slots=True)
class PartChange:
    """A difference between two definitions in one part.

    Attributes:
        kind: `widened` if all earlier messages can still be read after a change of type; `documented` if only the documentation
            changed.
        part: the name in the newer definition, or in the older for a removed part.
        before: the old description or documentation; "" for an added part.
        after: the new description or documentation; "" for a removed part.
        former: the name in the older definition, if an alias maps it.
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
        """The part and its change."""
        name = f"{self.part}: " if self.part else ""
        if self.kind in ("added", "removed"):
            return f"{self.part}: {self.before}{self.after}"
        if self.kind == "documented":
            return f"{name}documentation"
        change = self.after if self.before == self.after else f"{self.before} -> {self.after}"
        return f"{name}{change}{f', was {self.former}' if self.former else ''}"


def list_changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the sign and text of each `PartChange` except documentation, in the order of `find_part_changes`.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    all_changes = find_part_changes(old=old, new=new)
    return ((change.sign, change.text) for change in all_changes if change.kind != "documented")


def find_part_changes(*, old: SchemaInfo | None, new: SchemaInfo | None) -> Iterator[PartChange]:
    """Yield the differences between two definitions: removed parts, then the others in the order of the new definition.

    None is a missing definition, which has no parts.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if old and new and old.type is not new.type:
        yield PartChange("changed", "type", old.type.name, new.type.name)
        return
    old_parts, new_parts = (outline(info) if info else {} for info in (old, new))
    old_notes, new_notes = (dict(spec(info).notes(info)) if info else {} for info in (old, new))
    old_names = dict(_find_renamed_parts(old_parts, new_parts, new_notes))
    for part, description in old_parts.items():
        if part not in new_parts and part not in old_names.values():
            yield PartChange("removed", part, description)
    for part, description in new_parts.items():
        old_name = old_names.get(part, part)
        old_description = old_parts.get(old_name)
        if old_description is None:
            yield PartChange("added", part, after=description)
        elif old_name != part and part.rpartition(".")[2] != old_name.rpartition(".")[2]:
            yield PartChange("renamed", part, old_description, description, old_name)
        elif old_description != description:
            kind: Literal["widened", "changed"] = "widened" if _is_wider(old_description, description) else "changed"
            yield PartChange(kind, part, old_description, description)
        old_doc, new_doc = old_notes.get(old_name, _NO_NOTE).doc, new_notes.get(part, _NO_NOTE).doc
        if old_description is not None and old_doc != new_doc:
            yield PartChange("documented", part, old_doc, new_doc)


def _find_renamed_parts(
    old_parts: Mapping[str, str], new_parts: Mapping[str, str], notes: Mapping[str, Note]
) -> Iterator[tuple[str, str]]:
    """Yield the new and the old name of each part that an alias, or the new name of its record, maps to an old part."""
    old_types: dict[str, str] = {}
    for part in new_parts:
        if part in old_parts:
            continue
        type_name, dot, name = part.rpartition(".")
        names = [name, *(alias.rpartition(".")[2] for alias in notes.get(part, _NO_NOTE).aliases)]
        for candidate in names:
            old_name = f"{old_types.get(type_name, type_name)}{dot}{candidate}"
            if old_name != part and old_name in old_parts and old_name not in new_parts:
                old_types[part] = old_name
                yield part, old_name
                break


def _is_wider(old_description: str, new_description: str) -> bool:
    """Return whether an Avro field's new type has all values of its old type, according to their descriptions."""
    from schemactl.formats.avro.schema import PROMOTIONS

    old_types, new_types = (
        description.partition(" = ")[0].split(" | ") for description in (old_description, new_description)
    )
    return old_types != new_types and all(
        old_type in new_types or any(old_type in PROMOTIONS.get(new_type, ()) for new_type in new_types)
        for old_type in old_types
    )


def diff_definitions(
    *, old: SchemaInfo | None, new: SchemaInfo | None, labels: tuple[str, str] = ("old", "new")
) -> list[str]:
    """Return the lines of a unified diff of two definitions in a uniform layout; None is a missing definition.

    It is the smallest diff unless a definition is very long.
    """
    from difflib import unified_diff

    old_lines, new_lines = (spec(info).lines(info) if info else [] for info in (old, new))
    if max(len(old_lines), len(new_lines)) <= _SMALLEST_DIFF_LINES or old_lines == new_lines:
        return list(unified_diff(old_lines, new_lines, *labels, lineterm=""))
    # The search for the smallest diff takes quadratic time: instead, everything from the first to the last difference is replaced.
    head = _count_common_lines(old_lines, new_lines)
    tail = _count_common_lines(old_lines[head:][::-1], new_lines[head:][::-1])
    removed, added = (lines[head : len(lines) - tail] for lines in (old_lines, new_lines))
    place = f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@"
    return [
        f"--- {labels[0]}",
        f"+++ {labels[1]}",
        place,
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _count_common_lines(left: list[str], right: list[str]) -> int:
    """Return the number of equal lines at the start."""
    return sum(1 for _ in takewhile(bool, map(eq, left, right)))
