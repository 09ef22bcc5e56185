"""The Spark type of a protobuf message, as Spark's protobuf support has it with its safe options.

Unsigned numbers take the next wider type (`upcast.unsigned.ints`), and messages without fields are dropped.
"""

from __future__ import annotations

from typing import Any, Final

from schemactl.codegen import spark_type as spark
from schemactl.codegen.spark_type import Field, SparkRefuses, SparkType, Struct
from schemactl.codegen.struct import MAX_PLACES, Options, too_wide
from schemactl.formats import protobuf_native

_UINT64: Final = spark.Decimal(20, 0)

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


def struct_of_message(schema: bytes, options: Options) -> Struct:
    """Return the type of the root message of a PROTOBUF_NATIVE schema.

    Raises:
        InvalidSchema: the schema does not parse.
        SparkRefuses: a message holds itself, and the options give no depth.
        SchemactlError: protobuf is not installed.
    """
    root = protobuf_native.load("wrapper").parse(schema).root
    found = _Converter(options).message(root, {})
    assert found is not None  # noqa: S101  the outermost message is never cut
    return found


class _Converter:
    """None stands for what is dropped. Messages and fields are those of formats.protobuf_native.descriptor."""

    def __init__(self, options: Options) -> None:
        self._limit = options.recursive_field_max_depth
        self._left = MAX_PLACES
        self._kinds = protobuf_native.load("kinds")

    def message(self, message: Any, depths: dict[str, int]) -> Struct | None:
        name = message.full_name
        depth = depths.get(name, 0)
        if depth > 0 and self._limit <= 0:
            raise SparkRefuses(
                "AnalysisException",
                f"the message {name} holds itself, and Spark has no recursive types",
                condition="RECURSIVE_PROTOBUF_SCHEMA",
                fix="say how deep it may go; what lies deeper is dropped",
            )
        if depth > 0 and depth >= self._limit:
            return None
        inner = {**depths, name: depth + 1}
        fields = tuple(
            part for field in message.fields().values() if (part := self._field(field, inner)) is not None
        )
        return Struct(fields) if fields or not depths else None

    def _field(self, field: Any, depths: dict[str, int]) -> Field | None:
        if field.cardinality == self._kinds.MAP:
            entry = field.file.image.message(field.type_name).fields()
            key, value = self._value(entry[1], depths), self._value(entry[2], depths)
            if key is None or value is None:
                return None
            return Field(field.name, spark.Map(value, value_contains_null=False, key=key), nullable=True)
        found = self._value(field, depths)
        if found is None:
            return None
        if field.cardinality == self._kinds.REPEATED:
            return Field(field.name, spark.Array(found, contains_null=False), nullable=True)
        return Field(field.name, found, nullable=field.cardinality != self._kinds.REQUIRED)

    def _value(self, field: Any, depths: dict[str, int]) -> SparkType | None:
        self._left -= 1
        if self._left < 0:
            raise too_wide()
        if not field.is_message:
            return _SCALARS[self._kinds.KIND_NAMES[field.kind]]
        moment = _MOMENTS.get(field.type_name)
        return (
            moment if moment is not None else self.message(field.file.image.message(field.type_name), depths)
        )
