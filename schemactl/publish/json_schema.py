"""Convert definitions into JSON Schemas (draft 7), for `export` and AsyncAPI documents.

The schema of an AVRO topic describes its values as a JSON topic would have them: unions without the name of their
branch, bytes as base64, decimals as numbers. Times, and the classes that `java-class` names, have every form that is read
(docs/reference/json-forms.md), and other logical types the form of the types that they annotate.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from itertools import count
from typing import Any, Final

from schemactl.codegen.spark_types import Struct
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import get_pair, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.json_text import definition_text
from schemactl.formats.avro.logical_types import get_value_type
from schemactl.formats.avro.parser import parse

Json = dict[str, Any]


_DIALECT: Final = "http://json-schema.org/draft-07/schema#"

_BASE64: Final[Json] = {"type": "string", "contentEncoding": "base64"}


def _make_integer(bits: int, *, signed: bool = True) -> Json:
    minimum = -(2 ** (bits - 1)) if signed else 0
    return {"type": "integer", "minimum": minimum, "maximum": 2 ** (bits - signed) - 1}


_FLOATING: Final[Json] = {"anyOf": [{"type": "number"}, {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}]}
"""Jackson and protobuf write numbers that JSON does not have as texts."""

_AVRO: Final[Mapping[str, Json]] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "int": _make_integer(32),
    "long": _make_integer(64),
    "float": _FLOATING,
    "double": _FLOATING,
    "bytes": _BASE64,
    "string": {"type": "string"},
}

_TIMES: Final[Mapping[str, Json]] = {
    "date": {"type": ["integer", "array", "string"], "format": "date", "minItems": 3, "maxItems": 3},
    "time": {"type": ["integer", "array"], "minimum": 0, "minItems": 2, "maxItems": 4},
    "timestamp": {"type": ["number", "string"], "format": "date-time"},
    "local-timestamp": {"type": ["integer", "array", "string"], "minItems": 5, "maxItems": 7},
}
"""The forms of dates and times, by the kind of the logical type: whole numbers, the forms of Java's classes, and text."""

_JAVA_CLASSES: Final[Mapping[str, Json]] = {
    "java.math.BigDecimal": {"type": ["number", "string"]},
    "java.math.BigInteger": {"type": ["number", "string"]},
    "java.lang.Character": {"type": ["integer", "string"], "minLength": 1, "maxLength": 1},
}
"""The forms of primitive types by the property `java-class`."""

_PRIMITIVES: Final[Mapping[str, Json]] = {
    "boolean": {"type": "boolean"},
    "byte": _make_integer(8),
    "short": _make_integer(16),
    "integer": _make_integer(32),
    "long": _make_integer(64),
    "float": {"type": "number"},
    "double": {"type": "number"},
    "string": {"type": "string"},
    "binary": _BASE64,
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "timestamp": {"type": "string", "format": "date-time"},
    "timestamp_ntz": {"type": "string"},
}
"""The schemas of Pulsar's primitive types, by their Spark type, with times and dates in the format of Spark's JSON."""


def _make_integer_or_text(pattern: str) -> Json:
    return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": pattern}]}


_PROTOBUF: Final[Mapping[str, Json]] = {
    "double": _FLOATING,
    "float": _FLOATING,
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "bytes": _BASE64,
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _make_integer(32)),
    **dict.fromkeys(("uint32", "fixed32"), _make_integer(32, signed=False)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), _make_integer_or_text("^-?[0-9]+$")),
    **dict.fromkeys(("uint64", "fixed64"), _make_integer_or_text("^[0-9]+$")),
}
"""The JSON mapping of protobuf: https://protobuf.dev/programming-guides/json/"""

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


def make_json_schema(info: SchemaInfo, release: Release, *, title: str = "", description: str = "") -> Json:
    """Return the self-contained JSON Schema of a topic's messages. Raises as `SchemaWriter.convert`."""
    writer = SchemaWriter("#/definitions/", release)
    value = writer.convert(info)
    # The root is inlined, because a document that starts with a reference is hard to read.
    root = value.get("$ref", "").removeprefix("#/definitions/")
    doc = writer.types[root].get("description", "") if root else ""
    if root and not _has_reference(writer.types, value["$ref"]):
        value = writer.types.pop(root)
    elif root:
        value = {"allOf": [value]}
    return {
        "$schema": _DIALECT,
        **drop_empty({"title": title, "description": description or doc}),
        **{key: part for key, part in value.items() if key != "description"},
        **drop_empty({"x-schema-properties": dict(info.properties)}),
        **drop_empty({"definitions": dict(sorted(writer.types.items()))}),
    }


def _has_reference(value: Any, place: str) -> bool:
    """Return whether a schema contains a reference to `place`."""
    if isinstance(value, dict):
        return value.get("$ref") == place or any(_has_reference(part, place) for part in value.values())
    return isinstance(value, list) and any(_has_reference(part, place) for part in value)


def has_payload(info: SchemaInfo) -> bool:
    """Return whether a schema defines the bytes of a message; a KEY_VALUE if both its parts do."""
    if pair := get_pair(info):
        return all(map(has_payload, pair.halves.values()))
    schema_spec = spec(info)
    is_protobuf = schema_spec.language == "protobuf" or info.proto is not None
    return schema_spec.payload in ("avro", "json") or is_protobuf or schema_spec.spark in _PRIMITIVES


class SchemaWriter:
    """Converts definitions into JSON Schemas with references to shared named types.

    Attributes:
        types: the schema of each named type, by its full name, with a numeric suffix if another type has that name.
        release: the release of Pulsar whose Avro parses definitions.
    """

    def __init__(self, place: str, release: Release) -> None:
        """Create a writer whose references are `place` followed by the name of the type."""
        self.types: dict[str, Json] = {}
        self._place = place
        self.release = release
        self._names_by_key: dict[object, str] = {}
        self._avro_types = _AvroTypes()
        self._protobuf: tuple[str, str] | None = None
        self._comments: Mapping[str, str] = {}

    def convert(self, info: SchemaInfo) -> Json:
        """Return the schema of a message's value; a KEY_VALUE is an object with a key and a value.

        Raises:
            InvalidSchema: if the definition does not parse.
            SchemactlError: if the schema does not define the bytes of a message.
        """
        if pair := get_pair(info):
            parts = {name: {"anyOf": [self.convert(part), {"type": "null"}]} for name, part in pair.halves.items()}
            return {"type": "object", "properties": parts}
        schema_spec = spec(info)
        if schema_spec.payload in ("avro", "json"):
            return self._convert_avro(parse(info.schema, self.release))
        native = info if schema_spec.language == "protobuf" else info.proto
        if native is not None:
            definition = protobuf.load("definition").parse(native.schema)
            self._protobuf = definition.identity
            self._comments = native.comments()
            return self._convert_message(definition.root)
        if not has_payload(info):
            raise make_payload_error(info)
        return _PRIMITIVES[schema_spec.spark]

    def list_types(self) -> frozenset[str]:
        """Return the names in `types`."""
        return frozenset(self.types)

    def forget_types_except(self, names: frozenset[str]) -> None:
        """Remove the types of a message that could not be described whole."""
        self.types = {name: schema for name, schema in self.types.items() if name in names}
        self._names_by_key = {key: name for key, name in self._names_by_key.items() if name in names}

    def _refer(self, key: object, name: str) -> tuple[Json, str]:
        """Return a reference to a named type, and the type's name if `types` still lacks its schema, else "".

        Equal types have the same key.
        """
        is_new = key not in self._names_by_key
        if is_new:
            # A reference is a URI, and AsyncAPI allows only ASCII in names.
            plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
            self._names_by_key[key] = find_free_name(plain, self.types)
            self.types[self._names_by_key[key]] = {} if plain == name else {"title": name}
        return {"$ref": self._place + self._names_by_key[key]}, self._names_by_key[key] if is_new else ""

    def _convert_avro(self, schema: avro.Schema) -> Json:
        match schema:
            case avro.Primitive():
                return _add_logical_type(_AVRO[schema.type], schema)
            case avro.Array():
                # A text or an object for some of Java's classes.
                array = {"type": "array", "items": self._convert_avro(schema.items)}
                java_class = schema.properties.get("java-class")
                value = schema.items.fields_by_name.get("value") if isinstance(schema.items, avro.Record) else None
                if java_class == "java.util.Map" and value:
                    return {
                        **array,
                        "type": ["array", "object"],
                        "additionalProperties": self._convert_avro(value.schema),
                    }
                return {**array, "type": ["array", "string"]} if java_class == "[C" else array
            case avro.Map():
                return {"type": "object", "additionalProperties": self._convert_avro(schema.values)}
            case avro.Union():
                return {"anyOf": [self._convert_avro(branch) for branch in schema.branches]}
            case avro.Fixed():
                return _add_logical_type(_BASE64, schema)
        reference, name = self._refer(self._avro_types.make_key(schema), schema.full_name)
        if name:
            doc = drop_empty({"description": schema.doc})
            if isinstance(schema, avro.Enum):
                self.types[name].update({"type": "string", "enum": [*schema.symbols], **doc})
            else:
                properties = {
                    field.name: _add_doc(self._convert_avro(field.schema), field.doc) for field in schema.fields
                }
                # A null field may be missing; readers of JSON do not apply defaults.
                required = [field.name for field in schema.fields if not _may_be_null(field.schema)]
                self.types[name].update(
                    {"type": "object", **doc, "properties": properties, **drop_empty({"required": required})}
                )
        return reference

    def _convert_message(self, message: Any) -> Json:
        reference, name = self._refer((self._protobuf, message.full_name), message.full_name)
        if name:
            kinds, doc_of = protobuf.load("kinds"), protobuf.load("definition").get_doc
            fields = message.fields().values()
            required = [field.json_name for field in fields if field.cardinality == kinds.REQUIRED]
            self.types[name].update(
                {
                    "type": "object",
                    **drop_empty({"description": self._comments.get(message.pointer)}),
                    "properties": {
                        field.json_name: _add_doc(self._convert_field(field), doc_of(field, self._comments))
                        for field in fields
                    },
                    **drop_empty({"required": required}),
                }
            )
        return reference

    def _convert_field(self, field: Any) -> Json:
        kinds = protobuf.load("kinds")
        if field.cardinality == kinds.MAP:
            return {"type": "object", "additionalProperties": self._convert_value(field.value)}
        value = self._convert_value(field)
        return {"type": "array", "items": value} if field.is_repeated else value

    def _convert_value(self, field: Any) -> Json:
        kinds = protobuf.load("kinds")
        if field.type_name in _WELL_KNOWN:
            return _WELL_KNOWN[field.type_name]
        if field.is_message:
            return self._convert_message(field.message_type)
        if field.kind == kinds.ENUM:
            names = [*field.enum.numbers()]
            # A number without a name in this version stays a number.
            return {"anyOf": [{"type": "string", "enum": names}, {"type": "integer"}]}
        return _PROTOBUF[kinds.KIND_NAMES[field.kind]]


class _AvroTypes:
    """Compares named types of many definitions, also of large ones whose types contain each other."""

    def __init__(self) -> None:
        self._texts: dict[avro.NamedSchema, tuple[str, str]] = {}
        self._references: dict[avro.NamedSchema, list[avro.NamedSchema]] = {}
        self._keys: dict[avro.NamedSchema, object] = {}

    def make_key(self, schema: avro.NamedSchema) -> object:
        """Return a value that is equal for types with the same definition, the types inside of it included."""
        if schema not in self._keys:
            inner_types = {schema}
            pending = [schema]
            while pending:
                references = self._list_references(pending.pop())
                pending += [reference for reference in references if reference not in inner_types]
                inner_types.update(references)
            self._keys[schema] = schema.full_name, frozenset(map(self._describe, inner_types))
        return self._keys[schema]

    def _describe(self, schema: avro.NamedSchema) -> tuple[str, str]:
        """Return the name and the definition of a type."""
        if schema not in self._texts:
            digest = hashlib.sha256(definition_text(schema).encode("utf-8", "surrogatepass")).hexdigest()
            self._texts[schema] = schema.full_name, digest
        return self._texts[schema]

    def _list_references(self, schema: avro.NamedSchema) -> list[avro.NamedSchema]:
        """Return the named types that a type uses itself."""
        if schema not in self._references:
            references: dict[avro.NamedSchema, None] = {}
            pending = [*avro.children(schema)]
            while pending:
                part = pending.pop()
                if isinstance(part, avro.Record | avro.Enum | avro.Fixed):
                    references[part] = None
                else:
                    pending += avro.children(part)
            self._references[schema] = [*references]
        return self._references[schema]


def _add_doc(value: Json, doc: str | None) -> Json:
    """Add the documentation of a field to the schema of its value, before the name of a logical type."""
    # Draft 7 ignores all keys next to a reference.
    value = {"allOf": [value]} if doc and "$ref" in value else value
    logical = value.get("description", "")
    return {**value, **drop_empty({"description": f"{doc} ({logical})" if doc and logical else doc or logical})}


def _may_be_null(schema: avro.Schema) -> bool:
    branches = schema.branches if isinstance(schema, avro.Union) else (schema,)
    return any(branch.type == "null" for branch in branches)


def _add_logical_type(value: Json, schema: avro.Primitive | avro.Fixed) -> Json:
    """Add the logical type to the schema of a value as its description."""
    logical = schema.properties.get("logicalType")
    if logical == "decimal":
        return {"type": "number", "description": logical}
    value_type = get_value_type(schema)
    if value_type and value_type.kind in _TIMES:
        limits = {} if value_type.kind == "timestamp" else _AVRO[schema.type]
        return {**limits, **_TIMES[value_type.kind], "description": value_type.logical}
    java_class = schema.properties.get("java-class")
    if isinstance(java_class, str) and java_class in _JAVA_CLASSES:
        return {**value, **_JAVA_CLASSES[java_class]}
    return {**value, "description": logical} if isinstance(logical, str) else value


def drop_empty(values: Json) -> Json:
    """Return the entries whose values are not None and not empty."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def make_columns(info: SchemaInfo, options: StructOptions, release: Release) -> Struct:
    """Return the columns of decoded messages.

    Raises:
        InvalidSchema: if the definition does not parse.
        SchemactlError: if a part of it has no column type, or the schema does not define the bytes of a message.
    """
    columns = struct_of(info, options, release)
    if columns is None:
        raise make_payload_error(info)
    return columns


def make_payload_error(info: SchemaInfo) -> SchemactlError:
    """Return the error for a schema that does not define the bytes of a message."""
    return SchemactlError(f"a schema of type {info.type.name} does not describe the bytes of a message")


def find_free_name(name: str, taken: Container[str]) -> str:
    """Return `name`, with a numeric suffix if it is taken: `name_2`."""
    if name not in taken:
        return name
    return next(candidate for number in count(2) if (candidate := f"{name}_{number}") not in taken)
