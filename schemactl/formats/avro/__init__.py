"""Avro: the schema language of the types AVRO, JSON and PROTOBUF.

Definitions are read by `parser` (in the dialect of one Pulsar release) into the model of `schema`, which also decides when two
definitions are one version. `compatibility` lists what a reader cannot read, by Java's SchemaCompatibility; `resolving_grammar`
predicts the broker's own check, which asks another part of Java's Avro.

`schemactl.codec` has a parser and a resolver of its own. It travels alone inside generated packages, so it may import nothing
from here; and this package cannot use it, because the two answer different questions. A check needs every release's dialect (a
definition that one broker accepts and another rejects), the place, wording and Java exception of each rejection, every reason
why a pair fails in Java's order, and all properties, docs and sort orders, which decide what a version is. Decoding needs one
lenient reading that accepts what any release accepts, the logical types that change a value, and a plan of what to do with the
bytes, where a mismatch is an action that only fails when such a value arrives. A common kernel would carry both sets of rules
behind switches.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats.avro.compatibility import AmbiguousAlias, KnownVerdicts, incompatibilities
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.parser import parse, problems
from schemactl.formats.avro.schema import Schema, Union, identity_key
from schemactl.formats.type_spec import Explanation, Note, TypeSpec, UnknownWire, Wire

NEWEST: Final = Release.R5_0
"""Whose rules a definition is read by where no broker is asked: they accept the most names."""


@lru_cache(maxsize=8192)
def parsed(text: bytes, release: Release = NEWEST) -> Schema:
    """Return the schema in `text`; the same object for the same text, as long as it is remembered.

    Raises:
        InvalidSchema: it does not parse.
    """
    return parse(text, release)


def parsed_by_any(text: bytes) -> Schema:
    """Return the schema in `text`, as the newest release reads it that accepts its names: 4.0 takes namespaces like `my-team`.

    Raises:
        InvalidSchema: no release accepts it; the newest one's reason.
    """
    try:
        return parsed(text)
    except InvalidSchema:
        for release in reversed(Release):
            with suppress(InvalidSchema):
                return parsed(text, release)
        raise


@lru_cache(maxsize=1_000)
def _identity(text: bytes) -> Hashable:
    # The schema is not kept: a history has many that are needed only once.
    try:
        return identity_key(parse(text, NEWEST))
    except InvalidSchema:
        return identity_key(parsed_by_any(text))


_NO_MESSAGE: Final = (
    "No message can be shown: those of a PROTOBUF topic are protobuf's, which the Avro definition does not describe. "
    "With `proto:` declared they are judged by their own wire rules."
)


def _is_json_schema(text: bytes) -> bool:
    """Return whether `text`, which is no Avro schema, is a JSON Schema of objects."""
    with suppress(InvalidSchema, ValueError, RecursionError):
        value = read(decode(text))
        return isinstance(value, dict) and value.get("type") == "object"
    return False


_known_verdicts: Final = KnownVerdicts()


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class AvroSpec(TypeSpec):
    """AVRO, JSON and PROTOBUF, whose definition is an Avro schema."""

    language: Literal["avro"] = "avro"
    payload: Literal["avro", "json", "protobuf"]
    declared_as: Literal["avro", "protobuf"] = "avro"
    validation: Literal["avro"] = "avro"
    suffix: str = ".avsc"

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield what that release refuses, every default that would wedge the topic, and what overflows its stack."""
        found = list(problems(info.schema, release))
        if found and _is_json_schema(info.schema):
            yield InvalidSchema(
                "this is JSON Schema, in which clients before Pulsar 2.1 described their JSON; a definition is an Avro schema",
                pointer="/type",
                fix='write a record with the same fields: {"type": "record", "name": ..., "fields": [...]}',
            )
            return
        yield from found
        if found:
            return
        schema = parsed(info.schema, release)
        if isinstance(schema, Union) and (self.payload == "avro" or not schema.branches):
            yield InvalidSchema(
                "the definition is a union, which a broker refuses for AVRO"
                if schema.branches
                else "the definition is an empty union: nothing can be written with it",
                fix="declare a record with one field of that union",
            )
            return
        from schemactl.formats.avro.resolving_grammar import can_read

        itself = can_read(reader=schema, writer=schema, release=release)
        if itself.outcome != "error":
            return
        from schemactl.formats.avro.counterexample import has_endless

        if has_endless(schema):
            yield InvalidSchema(
                "a record must contain itself: no message of it can end, and the broker's own check breaks down on it",
                fix='make the field that leads back optional: a union with null, such as ["null", "Node"]',
            )
        else:
            yield InvalidSchema(
                f"the broker's own check breaks down on the definition: {itself.exception}",
                fix="let fewer types lead to one another",
            )

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return a key that is equal where Avro's `Schema.equals` holds; the SchemaType is part of it."""
        return info.type, _identity(info.schema)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield every reason of Java's SchemaCompatibility, in its order.

        Versions of a topic have most of their parts in common: equal parts are compared once, for a yes or no.
        """
        used, written = parsed_by_any(reader.schema), parsed_by_any(writer.schema)
        if _known_verdicts.can_read(reader=used, writer=written):
            return
        try:
            yield from incompatibilities(reader=used, writer=written)
        except AmbiguousAlias as ambiguous:
            yield Incompatibility("AMBIGUOUS_ALIAS", ambiguous.pointer, str(ambiguous), trace=ambiguous.trace)

    def require_newest(self, info: SchemaInfo) -> None:
        """Raise InvalidSchema unless the newest release accepts its names."""
        parsed(info.schema)

    def content(self, info: SchemaInfo) -> object:
        """Return the definition as JSON."""
        return read(decode(info.schema))

    def outline(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield the named types with their fields and symbols."""
        from schemactl.formats.avro.explanation import avro_parts

        return avro_parts(parsed_by_any(info.schema))

    def uses(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Return what each record, and the definition, uses."""
        from schemactl.formats.avro.schema import composition

        root, types = composition(parsed_by_any(info.schema))
        return {"": root.uses, **{name: each.uses for name, each in types.items()}}

    def notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield docs and aliases."""
        from schemactl.formats.avro.explanation import avro_notes

        return avro_notes(parsed_by_any(info.schema))

    def messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield small messages; none for PROTOBUF, whose messages the Avro definition does not describe."""
        if self.payload == "protobuf":
            return
        from schemactl.formats.avro.counterexample import encode, messages, to_json

        schema = parsed_by_any(info.schema)
        for datum in messages(schema):
            if self.payload == "json":
                yield Wire(_dumps(to_json(schema, datum, tagged=False)).encode())
            else:
                yield Wire(encode(schema, datum))

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the value in a message, by the definition; JSON without it."""
        from schemactl.formats.avro.counterexample import decode as decode_avro
        from schemactl.formats.avro.counterexample import decode_json, to_json

        if self.payload == "protobuf":
            raise UnknownWire
        data = wire.payload or b""
        if self.payload == "json":
            return _dumps(decode_json(data))
        schema = parsed_by_any(info.schema)
        return _dumps(to_json(schema, decode_avro(data, schema)))

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Return the field's path, the reason, the fix."""
        from schemactl.formats.avro import explanation

        explained = explanation.explain(breakage, new=parsed_by_any(new.schema), old=parsed_by_any(old.schema))
        if self.payload == "protobuf":
            return replace(explained, reason=f"{explained.reason} {_NO_MESSAGE}")
        return explained

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return the smallest message that the reader's side cannot read.

        None for PROTOBUF: its messages are protobuf's, of which the Avro definition says nothing.
        """
        if self.payload == "protobuf":
            return None
        from schemactl.formats.avro.counterexample import counterexample

        return counterexample(
            breakage,
            new=parsed_by_any(new.schema),
            old=parsed_by_any(old.schema),
            plain_json=self.payload == "json",
            release=NEWEST,
        )
