"""Avro, the schema language of the types AVRO, JSON and PROTOBUF.

`parser` reads definitions (in the dialect of one Pulsar release) into the model of `schema`, which also decides whether two
definitions are one version. `compatibility` lists the incompatibilities of a reader with a writer, by Java's SchemaCompatibility.
`resolving_grammar` predicts the broker's own check, which uses another part of Java's Avro.

`schemactl.codec` has its own parser and resolver, which decode messages. DESIGN.md has the reasons.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats.avro.compatibility import AmbiguousAlias, KnownVerdicts, find_incompatibilities
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.parser import find_problems, parse
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import (
    Record,
    Schema,
    Union,
    list_alias_and_default_keys,
    make_identity_key,
    write_full_names,
)
from schemactl.formats.type_spec import Explanation, Note, Rename, TypeSpec, UnknownWire, Wire

NEWEST: Final = Release.R5_0
"""The release whose rules apply to a definition without a broker: it accepts the most names."""

_NO_MESSAGE: Final = (
    "No message can be shown: a PROTOBUF topic has protobuf messages, which the Avro definition does not describe. "
    "With `proto:`, they are judged by the wire rules."
)

_SMALL_BYTES: Final = 16_384

_FEW_BRACKETS: Final = 200

_VERDICTS: Final = KnownVerdicts()


@lru_cache(maxsize=8192)
def parse_cached(text: bytes, release: Release = NEWEST) -> Schema:
    """Return the schema in `text`, the same object for the same text while it is cached.

    Raises:
        InvalidSchema: if the text does not parse.
    """
    return parse(text, release)


def parse_by_any(text: bytes) -> Schema:
    """Return the schema in `text`, as the newest release that accepts it reads it: 4.0 accepts namespaces like `my-team`.

    Raises:
        InvalidSchema: if no release accepts it, with the reason of the newest.
    """
    try:
        return parse_cached(text)
    except InvalidSchema:
        for release in reversed(Release):
            with suppress(InvalidSchema):
                return parse_cached(text, release)
        raise


@dataclass(frozen=True, kw_only=True)
class AvroSpec(TypeSpec):
    """AVRO, JSON and PROTOBUF, whose definition is an Avro schema."""

    language: Literal["avro"] = "avro"
    payload: Literal["avro", "json", "protobuf"]
    declared_as: Literal["avro", "protobuf"] = "avro"
    validation: Literal["avro"] = "avro"
    suffix: str = ".avsc"

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield the reasons of that release for a rejection, every default that would block the topic, and a stack overflow."""
        if _is_small_plain_record(info.schema):
            # This accepts most definitions in a third of the time of a search for problems.
            return
        parse_problems = list(find_problems(info.schema, release))
        if parse_problems and _is_json_schema(info.schema):
            yield InvalidSchema(
                "this is JSON Schema, in which clients before Pulsar 2.1 described their JSON; a definition is an Avro schema",
                pointer="/type",
                fix='write a record with the same fields: {"type": "record", "name": ..., "fields": [...]}',
            )
            return
        if parse_problems:
            yield from parse_problems
            return
        schema = parse_cached(info.schema, release)
        if isinstance(schema, Union) and (self.payload == "avro" or not schema.branches):
            yield InvalidSchema(
                "the definition is a union, which a broker rejects for AVRO"
                if schema.branches
                else "the definition is an empty union: no value can be written",
                fix="declare a record with one field of that union",
            )
            return
        from schemactl.formats.avro.resolving_grammar import can_read

        answer = can_read(reader=schema, writer=schema, release=release)
        if answer.outcome != "error":
            return
        from schemactl.formats.avro.sample_messages import find_endless_record

        record = find_endless_record(schema)
        if record:
            yield InvalidSchema(
                f"record {record.full_name} must contain itself ({record.field_path}): it has no finite value, and the broker's check "
                f"throws {answer.exception}",
                pointer=record.pointer,
                fix=f'make a field in this chain optional: a union with null, such as ["null", "{record.full_name}"]',
            )
        else:
            yield InvalidSchema(
                f"the broker's check of the definition throws {answer.exception}", fix="remove references between types"
            )

    def find_unusable_defaults(self, info: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the defaults of fields that are not symbols of their enum, or that Java writes as another value.

        Yield nothing for PROTOBUF, whose readers do not use Avro. Also yield an alias with which Java's check cannot compare the definition even with itself.
        """
        if self.payload != "protobuf":
            from schemactl.formats.avro.sample_messages import find_altered_defaults, find_missing_symbols

            schema = parse_by_any(info.schema)
            for pointer, message in find_missing_symbols(schema):
                yield Incompatibility("DEFAULT_NOT_A_SYMBOL", pointer, message)
            for pointer, message in find_altered_defaults(schema):
                yield Incompatibility("DEFAULT_NOT_KEPT", pointer, message)
            try:
                deque(find_incompatibilities(reader=schema, writer=schema), maxlen=0)
            except AmbiguousAlias as ambiguous:
                message = f"an alias prevents a comparison of the definition with itself: {ambiguous}"
                yield Incompatibility("AMBIGUOUS_ALIAS", ambiguous.pointer, message)

    def find_unapplied_defaults(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the defaults of fields that the writer lacks, for JSON, whose readers apply none."""
        if self.payload == "json":
            from schemactl.formats.avro.json_readers import find_unapplied_defaults

            yield from find_unapplied_defaults(reader=parse_by_any(reader.schema), writer=parse_by_any(writer.schema))

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return a key that two schemas share if Avro's `Schema.equals` holds for them; the SchemaType is part of it."""
        return info.type, _identity(info.schema)

    def get_record_name(self, info: SchemaInfo) -> str:
        """Return the full name of the root record, or "" if the root is not a record."""
        root = parse_by_any(info.schema)
        return root.full_name if isinstance(root, Record) else ""

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield every reason of Java's SchemaCompatibility, in its order.

        The versions of a topic have most of their parts in common. The verdict compares equal parts only once.
        """
        reader_schema, writer_schema = parse_by_any(reader.schema), parse_by_any(writer.schema)
        if _VERDICTS.can_read(reader=reader_schema, writer=writer_schema):
            return
        try:
            yield from find_incompatibilities(reader=reader_schema, writer=writer_schema)
        except AmbiguousAlias as ambiguous:
            yield Incompatibility("AMBIGUOUS_ALIAS", ambiguous.pointer, str(ambiguous), trace=ambiguous.trace)

    def find_misreadings(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the values of another logical type, or of a wider type than the reader's."""
        if self.payload == "json":
            from schemactl.formats.avro.json_readers import find_misreadings
        else:
            from schemactl.formats.avro.logical_types import find_misreadings

        return find_misreadings(reader=parse_by_any(reader.schema), writer=parse_by_any(writer.schema))

    def has_client_rules(self, language: str) -> bool:
        """Return whether the client of a language reads AVRO or JSON by other rules than Java's."""
        from schemactl.formats.avro.language_readers import has_rules

        return has_rules(language, self.payload)

    def find_client_misreadings(
        self, *, reader: SchemaInfo, writer: SchemaInfo, language: str
    ) -> Iterator[Incompatibility]:
        """Yield the values that the client of a language does not read as they were written."""
        if not self.has_client_rules(language):
            yield from TypeSpec.find_client_misreadings(self, reader=reader, writer=writer, language=language)
            return
        from schemactl.formats.avro.language_readers import find_misreadings

        yield from find_misreadings(
            reader=parse_by_any(reader.schema),
            writer=parse_by_any(writer.schema),
            language=language,
            payload=self.payload,
        )

    def find_client_defaults(
        self, *, reader: SchemaInfo, writer: SchemaInfo, language: str
    ) -> Iterator[Incompatibility]:
        """Yield the defaults that the client of a language does not apply to messages without the field."""
        if not self.has_client_rules(language):
            yield from self.find_unapplied_defaults(reader=reader, writer=writer)
            return
        from schemactl.formats.avro.language_readers import find_unapplied_defaults

        yield from find_unapplied_defaults(
            reader=parse_by_any(reader.schema),
            writer=parse_by_any(writer.schema),
            language=language,
            payload=self.payload,
        )

    def require_newest(self, info: SchemaInfo, *, or_release: Release | None = None) -> None:
        """Raise InvalidSchema unless the newest release, or `or_release`, accepts the names in the definition."""
        try:
            parse_cached(info.schema)
        except InvalidSchema:
            if or_release is None:
                raise
            parse_cached(info.schema, or_release)

    def list_reading_parts(self, info: SchemaInfo) -> tuple[Hashable, ...]:
        """Return all aliases and enum defaults, and the properties of Pulsar's clients."""
        return *TypeSpec.list_reading_parts(self, info), *list_alias_and_default_keys(parse_by_any(info.schema))

    def get_content(self, info: SchemaInfo) -> object:
        """Return the definition as JSON with full names: a namespace may be written, part of a name, or inherited."""
        return write_full_names(read(decode(info.schema)))

    def list_parts(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield the named types with their fields and symbols."""
        return iter(_list_parts(info.schema))

    def list_direct_references(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Map each named type, and "" for the root, to the named types that it references directly."""
        from schemactl.formats.avro.schema import make_composition

        root, types = make_composition(parse_by_any(info.schema))
        return {"": root.uses, **{name: named.uses for name, named in types.items()}}

    def list_notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield the docs and aliases of types and fields."""
        return iter(_list_notes(info.schema))

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield small messages, except for PROTOBUF, whose messages the Avro definition does not describe."""
        if self.payload == "protobuf":
            return
        from schemactl.formats.avro.datum_encoding import encode, to_json, write_json
        from schemactl.formats.avro.sample_messages import make_messages

        schema = parse_by_any(info.schema)
        for datum in make_messages(schema):
            if self.payload == "json":
                yield Wire(write_json(to_json(schema, datum, tagged=False)).encode())
            else:
                yield Wire(encode(schema, datum))

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the value of a message, decoded by the definition; a JSON message needs none."""
        from schemactl.formats.avro.datum_encoding import decode as decode_avro
        from schemactl.formats.avro.datum_encoding import decode_json, to_json, write_json

        if self.payload == "protobuf":
            raise UnknownWire
        data = wire.payload or b""
        if self.payload == "json":
            return write_json(decode_json(data))
        schema = parse_by_any(info.schema)
        return write_json(to_json(schema, decode_avro(data, schema)))

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Return the path of the field, the reason and the fix."""
        new_schema, old_schema = parse_by_any(new.schema), parse_by_any(old.schema)
        if breakage.incompatibility.rule == "JSON_UNREADABLE":
            from schemactl.formats.avro import json_readers

            return json_readers.explain(breakage, new=new_schema, old=old_schema)
        from schemactl.formats.avro import explanation, language_readers

        if isinstance(breakage.incompatibility, language_readers.LanguageMisreading):
            return language_readers.explain(breakage, new=new_schema, old=old_schema)
        is_json = self.payload == "json"
        explained = explanation.explain(breakage, new=new_schema, old=old_schema, plain_json=is_json)
        if self.payload == "protobuf":
            return replace(explained, reason=f"{explained.reason} {_NO_MESSAGE}")
        return explained

    def find_renames(self, *, new: SchemaInfo, old: SchemaInfo, old_name: str, new_name: str) -> Iterator[Rename]:
        """Yield the fields and types called `new_name` that may be what `old` calls `old_name`."""
        from schemactl.formats.avro import renames

        parsed = parse_by_any(new.schema), parse_by_any(old.schema)
        for rename in renames.find_renames(*parsed, old_name=old_name, new_name=new_name):
            yield replace(rename, is_usable=self.payload != "json")

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return the smallest message that the reader's side cannot read, or None without such a message and for PROTOBUF.

        The Avro definition of a PROTOBUF topic does not describe its messages.
        """
        if self.payload == "protobuf":
            return None
        from schemactl.formats.avro import json_readers, language_readers, logical_types
        from schemactl.formats.avro.counterexample import counterexample

        new_schema, old_schema = parse_by_any(new.schema), parse_by_any(old.schema)
        is_json = self.payload == "json"
        if breakage.incompatibility.rule == json_readers.JSON_UNREADABLE:
            return json_readers.counterexample(breakage, new=new_schema, old=old_schema)
        if isinstance(breakage.incompatibility, language_readers.LanguageMisreading):
            return language_readers.counterexample(breakage, new=new_schema, old=old_schema)
        if breakage.incompatibility.rule in logical_types.RULES:
            return logical_types.counterexample(breakage, new=new_schema, old=old_schema, plain_json=is_json)
        return counterexample(breakage, new=new_schema, old=old_schema, plain_json=is_json)


@lru_cache(maxsize=4)  # a version is compared with the version before it, and the next one with it
def _list_parts(text: bytes) -> tuple[tuple[str, str], ...]:
    from schemactl.formats.avro.explanation import list_parts

    return tuple(list_parts(parse_by_any(text)))


@lru_cache(maxsize=4)  # as for `_list_parts`
def _list_notes(text: bytes) -> tuple[tuple[str, Note], ...]:
    from schemactl.formats.avro.explanation import list_notes

    return tuple(list_notes(parse_by_any(text)))


@lru_cache(maxsize=1_000)
def _identity(text: bytes) -> Hashable:
    # The schema is not cached: a history has many that are needed only once.
    try:
        return make_identity_key(parse(text, NEWEST))
    except InvalidSchema:
        return make_identity_key(parse_by_any(text))


def _is_small_plain_record(text: bytes) -> bool:
    """Return whether a definition is a plain record, which all releases read alike, and too small to exhaust a broker."""
    if len(text) > _SMALL_BYTES or text.count(b"{") + text.count(b"[") > _FEW_BRACKETS:
        return False
    with suppress(InvalidSchema):
        return isinstance(parse_cached(text), Record) and is_plain(read(decode(text)))
    return False


def _is_json_schema(text: bytes) -> bool:
    """Return whether `text`, which is not an Avro schema, is a JSON Schema of objects."""
    with suppress(InvalidSchema):
        value = read(decode(text))
        return isinstance(value, dict) and value.get("type") == "object"
    return False
