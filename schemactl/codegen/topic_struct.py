"""The StructType of a topic's messages, of whatever schema type."""

from __future__ import annotations

from typing import Final

from schemactl.codegen import spark_type as spark
from schemactl.codegen.proto_struct import struct_of_message
from schemactl.codegen.spark_type import Field, SparkType, Struct
from schemactl.codegen.struct import Converted, Options, convert
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.schema import Record
from schemactl.formats.key_value import split
from schemactl.model import AVRO_PAYLOADS, Release, SchemaInfo, SchemaType

_PRIMITIVES: Final[dict[SchemaType, SparkType]] = {
    SchemaType.NONE: spark.BINARY,
    SchemaType.BYTES: spark.BINARY,
    SchemaType.STRING: spark.STRING,
    SchemaType.BOOLEAN: spark.BOOLEAN,
    SchemaType.INT8: spark.Atomic("byte"),
    SchemaType.INT16: spark.Atomic("short"),
    SchemaType.INT32: spark.INTEGER,
    SchemaType.INT64: spark.LONG,
    SchemaType.FLOAT: spark.FLOAT,
    SchemaType.DOUBLE: spark.DOUBLE,
    SchemaType.DATE: spark.DATE,
    SchemaType.TIMESTAMP: spark.TIMESTAMP,
    SchemaType.INSTANT: spark.TIMESTAMP,
    SchemaType.LOCAL_DATE: spark.DATE,
    SchemaType.LOCAL_DATE_TIME: spark.TIMESTAMP_NTZ,
}
"""As Pulsar's Spark connector has them, and the nearest type for those it leaves out."""

_TIMES: Final = frozenset({SchemaType.TIME, SchemaType.LOCAL_TIME})

_BESIDE: Final = frozenset({"__schemaversion", "__error", "__payload"})
"""What DataFrames and tables have beside the values, as names are compared without case (codec.message, which imports Arrow)."""


def struct_of(info: SchemaInfo, options: Options, release: Release) -> Struct | None:
    """The columns of messages: a record's fields (see `is_record`); `key` and `value` of a KEY_VALUE; else one column `value`.

    None: there is no codec for the type, so nothing would fill them.

    Args:
        info: what the messages are read as.
        options: for the types.
        release: whose Avro reads the definition.

    Raises:
        InvalidSchema: the definition does not parse.
        SparkRefuses: Spark has no type for it.
    """
    if info.type is SchemaType.KEY_VALUE:
        both = split(info)
        halves = [
            (name, _value(half, options, release))
            for name, half in (("key", both.key), ("value", both.value))
        ]
        # Either half may be null in any message.
        fields = tuple(Field(name, half.type, nullable=True) for name, half in halves if half)
        return Struct(fields) if len(fields) == 2 else None
    found = _value(info, options, release)
    if found is None:
        return None
    columns = _columns(info, found.type, release)
    return Struct((Field("value", found.type, found.nullable),)) if columns is None else columns


def is_record(info: SchemaInfo, options: Options, release: Release) -> bool:
    """Whether the fields of a value are columns of their own; else it is one column `value`. Raises as `struct_of`.

    It is one column, too, where a field would be called as a column that stands beside the values.
    """
    found = _value(info, options, release)
    return found is not None and _columns(info, found.type, release) is not None


def _columns(info: SchemaInfo, found: SparkType, release: Release) -> Struct | None:
    """The fields of the type that was found for a value, if they are columns of their own."""
    if not isinstance(found, Struct):
        return None
    if info.type in AVRO_PAYLOADS and not isinstance(parse(info.schema, release), Record):
        return None
    return found if _BESIDE.isdisjoint(field.name.casefold() for field in found.fields) else None


def protobuf_of(info: SchemaInfo) -> SchemaInfo | None:
    """The PROTOBUF_NATIVE schema that describes the payloads of `info`; None: they are no protobuf, or nothing does."""
    if info.type is SchemaType.PROTOBUF:
        return info.proto
    return info if info.type is SchemaType.PROTOBUF_NATIVE else None


def _value(info: SchemaInfo, options: Options, release: Release) -> Converted | None:
    if info.type in AVRO_PAYLOADS:
        return convert(parse(info.schema, release), options)
    native = protobuf_of(info)
    if native is not None:
        return Converted(struct_of_message(native.schema, options), nullable=False)
    if info.type in _TIMES:
        return Converted(spark.TIME if options.has_time else spark.LONG, nullable=False)
    known = _PRIMITIVES.get(info.type)
    return Converted(known, nullable=False) if known else None
