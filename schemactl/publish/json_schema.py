"""JSON Schemas (draft 7) of messages, and helpers that the other exports share.

A message of an AVRO topic is bytes; its schema describes the same value as a JSON topic would have it: unions without
the name of their branch, bytes as base64, decimals as numbers, other logical types as what they annotate.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from itertools import count
from typing import Any, Final

from schemactl.codegen.spark_types import Struct
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.parser import parse

Json = dict[str, Any]


def filled(values: Json) -> Json:
    """Return the entries that say something: not None, and no empty text, list or object."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def columns_of(info: SchemaInfo, options: StructOptions, release: Release) -> Struct:
    """Return the columns that messages are decoded into.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: a part of it has no column type, or nothing says what the bytes mean.
    """
    columns = struct_of(info, options, release)
    if columns is None:
        raise unknown_payload(info)
    return columns


def free_name(name: str, taken: Container[str]) -> str:
    """Return `name`, with a number behind it if it is taken: `name_2`."""
    if name not in taken:
        return name
    return next(each for number in count(2) if (each := f"{name}_{number}") not in taken)


def unknown_payload(info: SchemaInfo) -> SchemactlError:
    """Return the error for a schema that does not say what the bytes of a message are."""
    return SchemactlError(f"a schema of type {info.type.name} does not say what the bytes of a message are")


# JSON Schemas, as Pulsar's JSON clients and protobuf's JSON mapping write messages


DIALECT: Final = "http://json-schema.org/draft-07/schema#"

_BASE64: Final[Json] = {"type": "string", "contentEncoding": "base64"}


def _whole(bits: int, *, signed: bool = True) -> Json:
    least = -(2 ** (bits - 1)) if signed else 0
    return {"type": "integer", "minimum": least, "maximum": 2 ** (bits - signed) - 1}


# As Jackson writes them, and protobuf.
_FLOATING: Final[Json] = {"anyOf": [{"type": "number"}, {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}]}

_AVRO: Final[Mapping[str, Json]] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "int": _whole(32),
    "long": _whole(64),
    "float": _FLOATING,
    "double": _FLOATING,
    "bytes": _BASE64,
    "string": {"type": "string"},
}

# By the name of the Spark type that a primitive of Pulsar's is read into; times and days are what Spark's JSON has.
_PRIMITIVES: Final[Mapping[str, Json]] = {
    "boolean": {"type": "boolean"},
    "byte": _whole(8),
    "short": _whole(16),
    "integer": _whole(32),
    "long": _whole(64),
    "float": {"type": "number"},
    "double": {"type": "number"},
    "string": {"type": "string"},
    "binary": _BASE64,
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "timestamp": {"type": "string", "format": "date-time"},
    "timestamp_ntz": {"type": "string"},
}


def _number_as_text(pattern: str) -> Json:
    return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": pattern}]}


# https://protobuf.dev/programming-guides/json/
_PROTOBUF: Final[Mapping[str, Json]] = {
    "double": _FLOATING,
    "float": _FLOATING,
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "bytes": _BASE64,
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _whole(32)),
    **dict.fromkeys(("uint32", "fixed32"), _whole(32, signed=False)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), _number_as_text("^-?[0-9]+$")),
    **dict.fromkeys(("uint64", "fixed64"), _number_as_text("^[0-9]+$")),
}

_WELL_KNOWN: Final[Mapping[str, Json]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?s$"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array"},
    "google.protobuf.NullValue": {"type": "null"},
    "google.protobuf.Any": {"type": "object"},
    **{
        f"google.protobuf.{name}Value": {"anyOf": [_PROTOBUF[kind], {"type": "null"}]}
        for name, kind in (
            ("Double", "double"),
            ("Float", "float"),
            ("Int64", "int64"),
            ("UInt64", "uint64"),
            ("Int32", "int32"),
            ("UInt32", "uint32"),
            ("Bool", "bool"),
            ("String", "string"),
            ("Bytes", "bytes"),
        )
    },
}


class SchemaWriter:
    """Writes JSON Schemas whose named types stand in one place, and are referred to from everywhere.

    Attributes:
        types: the schema of each named type, by its name there: its full name, with a number where another type has it.
        release: whose Avro reads definitions.
    """

    def __init__(self, place: str, release: Release) -> None:
        """Refer to types as `place` and their name; read Avro as `release` does."""
        self.types: dict[str, Json] = {}
        self._place = place
        self.release = release
        self._known: dict[object, str] = {}
        self._protobuf: tuple[str, str] | None = None
        self._comments: Mapping[str, str] = {}

    def message(self, info: SchemaInfo) -> Json:
        """Return the schema of a message's value; KEY_VALUE has a key and a value.

        Raises:
            InvalidSchema: the definition does not parse.
            SchemactlError: nothing says what the bytes of such a message mean.
        """
        if both := pair_of(info):
            halves = {name: _or_null(self.message(half)) for name, half in both.halves.items()}
            return {"type": "object", "properties": halves}
        kind = spec(info)
        if kind.payload in ("avro", "json"):
            return self._avro(parse(info.schema, self.release))
        native = info if kind.language == "protobuf" else info.proto
        if native is not None:
            definition = protobuf.load("definition").parse(native.schema)
            self._protobuf = definition.identity
            self._comments = native.comments()
            return self._message(definition.root)
        if kind.spark in _PRIMITIVES:
            return _PRIMITIVES[kind.spark]
        raise unknown_payload(info)

    def _refer(self, key: object, name: str) -> tuple[Json, str]:
        """Return a reference to a named type, and its name if it is still to be written, else "". Equal types have one key."""
        is_new = key not in self._known
        if is_new:
            # A reference is a URI, and AsyncAPI's names have ASCII alone.
            plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
            self._known[key] = free_name(plain, self.types)
            self.types[self._known[key]] = {} if plain == name else {"title": name}
        return {"$ref": self._place + self._known[key]}, self._known[key] if is_new else ""

    def _avro(self, schema: avro.Schema) -> Json:
        match schema:
            case avro.Primitive():
                return _annotated(_AVRO[schema.type], schema)
            case avro.Array():
                return {"type": "array", "items": self._avro(schema.items)}
            case avro.Map():
                return {"type": "object", "additionalProperties": self._avro(schema.values)}
            case avro.Union():
                return {"anyOf": [self._avro(branch) for branch in schema.branches]}
            case avro.Fixed():
                return _annotated(_BASE64, schema)
        found, name = self._refer(schema_text(schema), schema.full_name)
        if name:
            doc = filled({"description": schema.doc})
            if isinstance(schema, avro.Enum):
                self.types[name].update({"type": "string", "enum": [*schema.symbols], **doc})
            else:
                self.types[name].update({"type": "object", **doc, **self._fields(schema)})
        return found

    def _fields(self, record: avro.Record) -> Json:
        properties = {field.name: _beside(self._avro(field.schema), field.doc) for field in record.fields}
        # A null field may be left out; readers of JSON know no defaults.
        required = [field.name for field in record.fields if not _may_be_null(field.schema)]
        return {"properties": properties, **filled({"required": required})}

    def _message(self, message: Any) -> Json:
        found, name = self._refer((self._protobuf, message.full_name), message.full_name)
        if name:
            fields = message.fields().values()
            required = [
                each.proto.json_name for each in fields if each.cardinality == protobuf.load("descriptor").REQUIRED
            ]
            self.types[name].update(
                {
                    "type": "object",
                    **filled({"description": self._comments.get(message.pointer)}),
                    "properties": {each.proto.json_name: self._documented(each) for each in fields},
                    **filled({"required": required}),
                }
            )
        return found

    def _documented(self, field: Any) -> Json:
        return _beside(self._field(field), protobuf.load("definition").doc_of(field, self._comments))

    def _field(self, field: Any) -> Json:
        kinds = protobuf.load("descriptor")
        if field.cardinality == kinds.MAP:
            return {"type": "object", "additionalProperties": self._scalar(field.value)}
        value = self._scalar(field)
        return {"type": "array", "items": value} if field.is_repeated else value

    def _scalar(self, field: Any) -> Json:
        kinds = protobuf.load("descriptor")
        if field.type_name in _WELL_KNOWN:
            return _WELL_KNOWN[field.type_name]
        if field.is_message:
            return self._message(field.message_type)
        if field.kind == kinds.ENUM:
            names = [*field.enum.numbers()]
            # Numbers that this version does not list stay numbers.
            return {"anyOf": [{"type": "string", "enum": names}, {"type": "integer"}]}
        return _PROTOBUF[kinds.KIND_NAMES[field.kind]]


def json_schema(info: SchemaInfo, release: Release, *, title: str = "", description: str = "") -> Json:
    """Return the JSON Schema of a topic's messages, complete in itself. Raises as `SchemaWriter.message`."""
    writer = SchemaWriter("#/definitions/", release)
    value = writer.message(info)
    # The root's own fields first: a document that begins with a reference says nothing to its reader.
    root = value.get("$ref", "").removeprefix("#/definitions/")
    said = writer.types[root].get("description", "") if root else ""
    if root and not _refers(writer.types, value["$ref"]):
        value = writer.types.pop(root)
    elif root:
        value = {"allOf": [value]}
    return {
        "$schema": DIALECT,
        **filled({"title": title, "description": description or said}),
        **{key: part for key, part in value.items() if key != "description"},
        **filled({"definitions": dict(sorted(writer.types.items()))}),
    }


def _refers(value: Any, place: str) -> bool:
    """Whether a reference to that place is in the value."""
    if isinstance(value, dict):
        return value.get("$ref") == place or any(_refers(each, place) for each in value.values())
    return isinstance(value, list) and any(_refers(each, place) for each in value)


def _beside(value: Json, doc: str | None) -> Json:
    """Return the schema of a value with a field's own words, before the logical type that it may have."""
    # Beside a reference draft 7 reads nothing.
    value = {"allOf": [value]} if doc and "$ref" in value else value
    logical = value.get("description", "")
    return {**value, **filled({"description": f"{doc} ({logical})" if doc and logical else doc or logical})}


def _or_null(value: Json) -> Json:
    return {"anyOf": [value, {"type": "null"}]}


def _may_be_null(schema: avro.Schema) -> bool:
    branches = schema.branches if isinstance(schema, avro.Union) else (schema,)
    return any(each.type == "null" for each in branches)


def _annotated(value: Json, schema: avro.Primitive | avro.Fixed) -> Json:
    """Say which logical type the value has."""
    logical = schema.properties.get("logicalType")
    if logical == "decimal":
        return {"type": "number", "description": logical}
    return {**value, "description": logical} if isinstance(logical, str) else value
