"""The StructType of a topic's messages, of whatever schema type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemactl.columns import spark_type as spark
from schemactl.columns.spark_type import SparkField, SparkType, Struct, UnsupportedBySpark
from schemactl.columns.struct import MAX_PLACES, Converted, StructOptions, convert, too_wide
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Record

_BESIDE: Final = frozenset({"__schemaversion", "__error", "__payload"})
"""What DataFrames and tables have beside the values, as names are compared without case (codec.message, which imports Arrow)."""


def struct_of(info: SchemaInfo, options: StructOptions, release: Release) -> Struct | None:
    """Return the columns of messages: a record's fields (see `is_record`); `key` and `value` of a KEY_VALUE; else one column `value`.

    None: there is no codec for the type, so nothing would fill them.

    Args:
        info: what the messages are read as.
        options: for the types.
        release: whose Avro reads the definition.

    Raises:
        InvalidSchema: the definition does not parse.
        UnsupportedBySpark: Spark has no type for it.
    """
    if both := pair_of(info):
        halves = [(name, _value(half, options, release)) for name, half in both.halves.items()]
        # Either half may be null in any message.
        fields = tuple(SparkField(name, half.type, nullable=True) for name, half in halves if half)
        return Struct(fields) if len(fields) == 2 else None
    found = _value(info, options, release)
    if found is None:
        return None
    columns = _columns(info, found.type, release)
    return Struct((SparkField("value", found.type, found.nullable),)) if columns is None else columns


def is_record(info: SchemaInfo, options: StructOptions, release: Release) -> bool:
    """Whether the fields of a value are columns of their own; else it is one column `value`. Raises as `struct_of`.

    It is one column, too, where a field would be called as a column that stands beside the values.
    """
    found = _value(info, options, release)
    return found is not None and _columns(info, found.type, release) is not None


def _columns(info: SchemaInfo, found: SparkType, release: Release) -> Struct | None:
    """Return the fields of the type that was found for a value, if they are columns of their own."""
    if not isinstance(found, Struct):
        return None
    if spec(info).payload in ("avro", "json") and not isinstance(parse(info.schema, release), Record):
        return None
    return found if _BESIDE.isdisjoint(field.name.casefold() for field in found.fields) else None


def value_of(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    """Return the type of a message's whole value, and whether it may be null. None, and raises, as `struct_of`."""
    if pair_of(info):
        columns = struct_of(info, options, release)
        return None if columns is None else Converted(columns, nullable=False)
    return _value(info, options, release)


def protobuf_of(info: SchemaInfo) -> SchemaInfo | None:
    """Return the PROTOBUF_NATIVE schema that describes the payloads of `info`; None: they are no protobuf, or nothing does."""
    if spec(info).payload != "protobuf":
        return None
    return info if spec(info).language == "protobuf" else info.proto


def message_doc(info: SchemaInfo, release: Release) -> str:
    """Return what the definition says of the whole message; "": nothing.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        return native.comments().get(root.pointer, "")
    if spec(info).language != "avro":
        return ""
    root = parse(info.schema, release)
    return (root.doc or "") if isinstance(root, Record) else ""


def _value(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    if spec(info).payload in ("avro", "json"):
        return convert(parse(info.schema, release), options)
    native = protobuf_of(info)
    if native is not None:
        return Converted(_struct_of_message(native, options), nullable=False)
    # As Pulsar's Spark connector has them, and the nearest type for those it leaves out.
    name = spec(info).spark
    if name == "time":
        return Converted(spark.TIME if options.has_time else spark.LONG, nullable=False)
    return Converted(spark.Atomic(name), nullable=False) if name else None


_UINT64: Final = spark.Decimal(20, 0, is_int=True)

_SCALARS: Final[dict[str, SparkType]] = {
    "double": spark.DOUBLE,
    "float": spark.FLOAT,
    "int64": spark.LONG,
    "uint64": _UINT64,
    "int32": spark.INTEGER,
    "fixed64": _UINT64,
    "fixed32": spark.LONG,
    "bool": spark.BOOLEAN,
    "string": spark.STRING,
    "bytes": spark.BINARY,
    "uint32": spark.LONG,
    "enum": spark.STRING,
    "sfixed32": spark.INTEGER,
    "sfixed64": spark.LONG,
    "sint32": spark.INTEGER,
    "sint64": spark.LONG,
}

_MOMENTS: Final = {
    "google.protobuf.Timestamp": spark.TIMESTAMP,
    "google.protobuf.Duration": spark.Atomic("interval day to second"),
}


def _struct_of_message(native: SchemaInfo, options: StructOptions) -> Struct:
    """Return the type of the root message of a PROTOBUF_NATIVE schema, as Spark's protobuf support has it with its safe options.

    Unsigned numbers take the next wider type (`upcast.unsigned.ints`), and messages without fields are dropped.

    Raises:
        InvalidSchema: the schema does not parse.
        UnsupportedBySpark: a message holds itself, and the options give no depth.
        SchemactlError: protobuf is not installed.
    """
    root = protobuf.load("definition").parse(native.schema).root
    found = _ProtoConverter(options, native.comments()).message(root, {})
    assert found is not None  # noqa: S101  the outermost message is never cut
    return found


class _ProtoConverter:
    """None stands for what is dropped. Messages and fields are those of formats.protobuf_native.descriptor."""

    def __init__(self, options: StructOptions, comments: Mapping[str, str]) -> None:
        self._comments = comments
        self._limit = options.recursive_field_max_depth
        self._left = MAX_PLACES
        self._kinds = protobuf.load("descriptor")
        self._doc_of = protobuf.load("definition").doc_of

    def message(self, message: Any, depths: dict[str, int]) -> Struct | None:
        name = message.full_name
        depth = depths.get(name, 0)
        if depth > 0 and self._limit <= 0:
            raise UnsupportedBySpark(
                "AnalysisException",
                f"the message {name} is recursive, and Spark has no recursive types",
                condition="RECURSIVE_PROTOBUF_SCHEMA",
                fix="give a recursion depth; deeper levels are dropped",
            )
        if depth > 0 and depth >= self._limit:
            return None
        inner = {**depths, name: depth + 1}
        fields = tuple(
            part for field in message.fields().values() if (part := self._field(field, inner)) is not None
        )
        return Struct(fields, name.rpartition(".")[2]) if fields or not depths else None

    def _field(self, field: Any, depths: dict[str, int]) -> SparkField | None:
        found: SparkType | None
        if field.cardinality == self._kinds.MAP:
            entry = field.message_type.fields()
            key, value = self._value(entry[1], depths), self._value(entry[2], depths)
            if key is None or value is None:
                return None
            found = spark.SparkMap(value, value_contains_null=False, key=key)
        else:
            found = self._value(field, depths)
            if found is None:
                return None
            if field.cardinality == self._kinds.REPEATED:
                found = spark.SparkArray(found, contains_null=False)
        is_nullable = field.cardinality != self._kinds.REQUIRED
        return SparkField(field.name, found, is_nullable, self._doc_of(field, self._comments))

    def _value(self, field: Any, depths: dict[str, int]) -> SparkType | None:
        self._left -= 1
        if self._left < 0:
            raise too_wide()
        if not field.is_message:
            return _SCALARS[self._kinds.KIND_NAMES[field.kind]]
        moment = _MOMENTS.get(field.type_name)
        return moment if moment is not None else self.message(field.message_type, depths)
