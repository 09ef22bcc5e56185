"""The StructType of a topic's messages, of whatever schema type."""

from __future__ import annotations

from typing import Final

from schemactl.codegen import spark_type as spark
from schemactl.codegen.proto_struct import struct_of_message
from schemactl.codegen.spark_type import Field, SparkType, Struct
from schemactl.codegen.struct import Converted, Options, convert
from schemactl.formats import pair_of, spec
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.schema import Record
from schemactl.model import Release, SchemaInfo

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
    if both := pair_of(info):
        halves = [(name, _value(half, options, release)) for name, half in both.halves.items()]
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
    if spec(info).payload in ("avro", "json") and not isinstance(parse(info.schema, release), Record):
        return None
    return found if _BESIDE.isdisjoint(field.name.casefold() for field in found.fields) else None


def protobuf_of(info: SchemaInfo) -> SchemaInfo | None:
    """The PROTOBUF_NATIVE schema that describes the payloads of `info`; None: they are no protobuf, or nothing does."""
    if spec(info).payload != "protobuf":
        return None
    return info if spec(info).language == "protobuf" else info.proto


def _value(info: SchemaInfo, options: Options, release: Release) -> Converted | None:
    if spec(info).payload in ("avro", "json"):
        return convert(parse(info.schema, release), options)
    native = protobuf_of(info)
    if native is not None:
        return Converted(struct_of_message(native.schema, options), nullable=False)
    # As Pulsar's Spark connector has them, and the nearest type for those it leaves out.
    name = spec(info).spark
    if name == "time":
        return Converted(spark.TIME if options.has_time else spark.LONG, nullable=False)
    return Converted(spark.Atomic(name), nullable=False) if name else None
