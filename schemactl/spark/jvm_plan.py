"""The expressions for Spark's own `from_avro`, and the topics for which it gives the same rows as the codec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..codec import Codec, Definition, InvalidDefinition
from ..codec.avro_definition import json_of, parse
from ..codec.avro_reader import read_long
from ..codec.columns import MAX_COLUMNS
from ..codec.defaults import encode_default
from ..codec.resolver import Action, Container, ErrorAction, ReaderUnion, RecordAdjust, WriterUnion, resolve
from ..codec.schema import (
    ArrayType,
    PrimitiveType,
    RecordType,
    Schema,
    UnionType,
    children,
    min_size,
)
from .errors import EngineUnavailable

LONG_DIGITS: Final = 18
"""Of decimals that Spark holds as a long: of those it cuts off what lies beyond 64 bits, without a word."""

WIDE_DIGITS: Final = LONG_DIGITS + 1
"""What such decimals are read with instead, so that nothing is cut off."""

_UNFINISHED: Final = 0
"""Stands for the places of a schema that is still being looked at."""

_NUMBERS: Final = ("time-micros", "timestamp-nanos", "local-timestamp-nanos")
"""Read as the numbers they are, whatever this release of Spark makes of them; it takes any number for a time of day."""

_CATALYST_TYPE: Final = "spark.sql.catalyst.type"
"""The property by which Spark's writer says which type a number had, and by which its reader makes it that again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `from_avro` is told.

    Attributes:
        reader: the schema to read into, in which decimals may have more digits, and `mark` may be added.
        writers: the schema of each version that can be read at all.
        own: the reader's own, in which messages without a version are written.
        mark: a field of `reader` that is null only where a message could not be read.
    """

    reader: str
    writers: Mapping[int, str]
    own: str
    mark: str


def plan_of(codec: Codec) -> Plan:
    """Return the plan for a topic whose messages `from_avro` reads as the codec does.

    Raises:
        EngineUnavailable: the codec reads what `from_avro` does not, or otherwise.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    _ = codec.columns
    reader = codec.reader
    if not isinstance(reader, Definition) or reader.type != "AVRO":
        raise EngineUnavailable("Spark's from_avro reads payloads that are AVRO, and these are not")
    if codec.options.strict:
        raise EngineUnavailable("Spark's from_avro is never strict")
    schema = parse(reader.text)
    if not isinstance(schema, RecordType) or not schema.fields:
        raise EngineUnavailable(
            "from_avro does not tell rejected values from nulls, unless they are records with fields"
        )
    if not codec.is_record:
        raise EngineUnavailable("the record is one column, because a field has the name of another column")
    _bounded(schema, {})
    if _meet(schema):
        raise EngineUnavailable("from_avro does not tell the names of fields apart by case")
    writers = {}
    for version in codec.versions:
        written = _readable(version.schema, schema)
        if written is not None:
            writers[version.number] = written
    for text in writers.values():
        _bounded(parse(text), {})
    value = _widened(_plain(json_of(reader.text)))
    mark = next((part.name for part in schema.fields if _required(part.schema)), None)
    if mark is None:
        mark = "__read" + "_" * max(len(part.name) for part in schema.fields)
        fields = [*value["fields"], {"name": mark, "type": "boolean", "default": True}]
        value = value | {"fields": fields}
    return Plan(json.dumps(value), writers, reader.text, mark)


def _readable(writer: Any, reader: Schema) -> str | None:
    """Return the writer's schema, unless none of its messages can be read."""
    if not isinstance(writer, Definition) or writer.type != "AVRO":
        return None
    try:
        action = resolve(parse(writer.text), reader)
        _filled(action, set())
    except InvalidDefinition:
        return None
    return None if isinstance(action, ErrorAction) else json.dumps(_plain(json_of(writer.text)))


def _filled(action: Action, seen: set[int]) -> None:
    """Check that Java fills in all that this writer lacks: Avro 1.12.1 finds no array in a union for an empty list."""
    match action:
        case Container() | ReaderUnion():
            _filled(action.action, seen)
        case WriterUnion():
            for branch in action.branches:
                _filled(branch, seen)
        case RecordAdjust() if id(action) not in seen:
            seen.add(id(action))
            for step in action.steps:
                if not step.is_skipped:
                    _filled(step.action, seen)
            for part in action.defaults:
                if isinstance(part.schema, UnionType) and _is_empty_list(part.schema, part.default):
                    raise EngineUnavailable(f"from_avro does not fill in the empty list of {part.name}")


def _is_empty_list(schema: UnionType, default: Any) -> bool:
    index, at = read_long(written := encode_default(schema, default), 0)
    return isinstance(schema.branches[index], ArrayType) and written[at:] == b"\0"


def _required(schema: Schema) -> bool:
    return not isinstance(schema, UnionType) and not (
        isinstance(schema, PrimitiveType) and schema.type == "null"
    )


def _meet(schema: Schema) -> bool:
    """Whether two fields of one record differ in case alone."""
    names = [part.name.casefold() for part in schema.fields] if isinstance(schema, RecordType) else []
    return len(set(names)) < len(names) or any(_meet(part) for part in children(schema))


def _bounded(schema: Schema, known: dict[int, int]) -> int:
    """How many places the schema has, each named type written out wherever it is used, as Spark's types are.

    Raises:
        EngineUnavailable: Java could fill its stack or its memory: with so many, or where few bytes of a message say so.
    """
    places = known.get(id(schema))
    if places == _UNFINISHED:
        raise EngineUnavailable("the record is recursive: a damaged message could exhaust Java's stack")
    if places is not None:
        return places
    if isinstance(schema, ArrayType) and min_size(schema.items) == 0:
        raise EngineUnavailable(
            "the items of a list take no bytes: a damaged message could exhaust Java's memory"
        )
    known[id(schema)] = _UNFINISHED
    places = 1 + sum(_bounded(part, known) for part in children(schema))
    if places > MAX_COLUMNS:
        raise EngineUnavailable(f"written out, a version has more than {MAX_COLUMNS:,} columns and parts")
    known[id(schema)] = places
    return places


def _plain(schema: Any) -> Any:
    """Return the schema's JSON without the logical types that Spark is not to see, and without the types that it once noted there."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _plain(part) if name in ("type", "items", "values", "fields") else part
        for name, part in schema.items()
        if name != _CATALYST_TYPE and (name != "logicalType" or part not in _NUMBERS)
    }


def _widened(schema: Any) -> Any:
    """Return the schema's JSON, with more digits for decimals that Spark would cut off (see LONG_DIGITS)."""
    if isinstance(schema, list):
        return [_widened(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: _widened(part) if name in ("type", "items", "values") else part for name, part in schema.items()
    }
    if "fields" in found:
        found["fields"] = [part | {"type": _widened(part["type"])} for part in found["fields"]]
    if found.get("logicalType") == "decimal" and (
        found["type"] == "bytes" or (found["type"] == "fixed" and found["size"] > 8)
    ):
        match found.get("precision"), found.get("scale", 0):
            # An invalid one is ignored by Avro: then the value is bytes.
            case (int(precision), int(scale)) if 0 <= scale <= precision and 0 < precision <= LONG_DIGITS:
                found["precision"] = WIDE_DIGITS
    return found
