"""Decoding with Spark's own `from_avro`: one CASE over the versions; the codec finds the reasons of rejected messages.

`from_avro` leaves a struct of nulls where it cannot read, and a row of ours has to say why. Why is worked out by the codec, in a
Python function, to which Spark passes every row of a query, asked about or not: so it is left to a query of the rejected messages
alone (`with_reasons`), unless the caller wants the reasons in the same pass.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from ..codec import Codec
from ..codec.version_number import ODD_SIZE, SIZES
from .arrow_types import struct_of
from .columns import ERROR, KEY, PAYLOAD, SCHEMA_VERSION, Columns, quoted
from .errors import SPARK_ERRORS, EngineUnavailable
from .jvm_limits import AVRO_LIMITS, ensure_limited
from .jvm_plan import LONG_DIGITS, WIDE_DIGITS, Plan, plan_of
from .rejections import mark_of, reasons_at, reasons_of
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_arrow_udf: Any = getattr(sql, "arrow_udf", None)
"""New in PySpark 4.1."""

_VALUE: Final = "__value of schemactl"
_NUMBER: Final = "__number of schemactl"
"""Columns on the way, with names that no input has."""

_BEYOND: Final = "Spark's from_avro does not read it, perhaps for its size; engine='arrow' does"
_LATER: Final = (
    "Spark's from_avro does not read it: split() says where and why, and so does decode() with reasons=True"
)
_LEFT: Final = {"schemactl": "reasons are left to split()"}
"""Marks a column of errors in which `_LATER` may stand."""


def decode_in_jvm(messages: DataFrame, codec: Codec, columns: Columns) -> DataFrame:
    """Return what `decode` gives, but for the reasons, which `with_reasons` adds.

    Raises:
        EngineUnavailable: Spark cannot decode them so that the same comes out; the text says why.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    if _arrow_udf is None:
        raise EngineUnavailable("the engine 'jvm' needs PySpark 4.1 or newer; engine='arrow' does not")
    plan = plan_of(codec)
    kinds = {name: messages.schema[name].dataType for name in (columns.payload, columns.version) if name}
    if kinds[columns.payload] != spark.BinaryType():
        raise EngineUnavailable(f"the column {columns.payload} is not binary")
    if columns.version is not None and not isinstance(
        kinds[columns.version], spark.IntegralType | spark.BinaryType
    ):
        raise EngineUnavailable(f"the column {columns.version} holds neither numbers nor bytes")
    wanted = struct_of(codec.columns)
    numbered = messages.withColumn(_NUMBER, _number(columns.version, kinds))
    try:
        # Spark parses a writer's schema when the first message comes, and then it is too late.
        _ = numbered.select(
            *(_from_avro(_named(columns.payload), writer, writer) for writer in plan.writers.values())
        ).schema
        read = numbered.withColumn(_VALUE, _value(plan, columns, kinds))
        found = read.schema[_VALUE].dataType
    except SPARK_ERRORS as error:
        raise EngineUnavailable(_advice(error)) from None
    assert isinstance(found, spark.StructType)  # noqa: S101  the reader is a record
    kept = spark.StructType([field for field in found if field.name in wanted.names])
    if not _alike(kept, wanted):
        raise EngineUnavailable(
            f"this Spark's from_avro reads other types ({kept.simpleString()}) than the topic has ({wanted.simpleString()})"
        )
    if not ensure_limited(messages.sparkSession):
        raise EngineUnavailable(
            "a damaged message could exhaust the memory of executors: start Spark with "
            f"spark.executor.extraJavaOptions={AVRO_LIMITS!r} (Spark Connect with a local master: "
            "spark.driver.extraJavaOptions), or use engine='arrow'"
        )
    cut = _too_wide(_named(_VALUE), kept, wanted)
    if cut is not None:
        read = read.withColumn(_VALUE, sql.when(_once() & ~cut, _named(_VALUE)))
    return _decoded(read, columns, kinds, wanted, plan.mark, _LEFT | mark_of(codec))


def with_reasons(decoded: DataFrame, codec: Codec) -> DataFrame:
    """Return what `decode` gave, with the codec's reason wherever it is still to be worked out."""
    if not _LEFT.items() <= decoded.schema[ERROR].metadata.items():
        return decoded
    left = _named(ERROR) == _LATER
    reasons = _reasons(codec)(*(sql.when(left, _named(name)) for name in (PAYLOAD, SCHEMA_VERSION)))
    # A message that has neither payload nor version is the one case that the function is not shown.
    nothing = reasons_of(codec, pa.nulls(1, pa.binary()))[0].as_py()
    reason = sql.when(left, sql.coalesce(reasons, sql.lit(nothing))).otherwise(_named(ERROR))
    return decoded.withColumn(ERROR, reason.alias(ERROR, metadata=mark_of(codec)))


def _advice(error: Exception) -> str:
    lines = str(error).split("\n")
    if "AVRO_NOT_LOADED" in lines[0]:
        return (
            "Spark's Avro module is not there: start Spark with --packages org.apache.spark:spark-avro_2.13:VERSION, the "
            "version that of your Spark, or, if there is none yet, use engine='arrow'"
        )
    says = next((line for line in lines if "Exception" in line), lines[0])
    return f"Spark's from_avro does not take the topic's schemas: {says.strip(' :')}"


def _number(version: str | None, kinds: dict[str, spark.DataType]) -> Column:
    """Return the number in each message's version, null where there is none."""
    if version is None:
        return sql.lit(None).cast("long")
    column = _named(version)
    if kinds[version] != spark.BinaryType():
        return sql.when(column.isNotNull(), column.cast("long"))
    first = sql.substring(column, 1, 8)
    return sql.when(sql.length(column).isin(*SIZES), sql.conv(sql.hex(first), 16, -10).cast("long"))


def _value(plan: Plan, columns: Columns, kinds: dict[str, spark.DataType]) -> Column:
    """Return what `from_avro` reads: a struct that is null, or of nulls, where it cannot."""
    payload, number = _named(columns.payload), _named(_NUMBER)
    if columns.version is None:
        none = sql.lit(True)  # noqa: FBT003  a column
    elif kinds[columns.version] == spark.BinaryType():
        none = _named(columns.version).isNull() | (sql.length(_named(columns.version)) == 0)
    else:
        none = number.isNull()
    chosen = sql.when(_once() & none, _from_avro(payload, plan.own, plan.reader))
    for version, writer in plan.writers.items():
        chosen = chosen.when(_once() & (number == version), _from_avro(payload, writer, plan.reader))
    return chosen


def _once() -> Column:
    """Is always true, and not the same each time for all Spark knows: so what depends on it is computed once a message.

    Else it is computed for each use, of which a filter is one.
    """
    return sql.spark_partition_id() >= 0


def _from_avro(payload: Column, writer: str, reader: str) -> Column:
    # Corrected: without it old dates are moved, or rejected.
    options = {"mode": "PERMISSIVE", "avroSchema": reader, "datetimeRebaseMode": "CORRECTED"}
    pairs = [sql.lit(word) for pair in options.items() for word in pair]
    return sql.call_function("from_avro", payload, sql.lit(writer), sql.create_map(*pairs))


def _decoded(
    read: DataFrame,
    columns: Columns,
    kinds: dict[str, spark.DataType],
    wanted: spark.StructType,
    mark: str,
    metadata: dict[str, Any],
) -> DataFrame:
    """Return the columns of `decode`, from those with the values that were read; `metadata` is that of the errors."""
    value = _named(_VALUE)
    rejected = value.getField(mark).isNull()
    passed = [_named(name) for name in columns.others]
    if columns.key is not None:
        passed.insert(0, _named(columns.key).alias(KEY))
    found = read.schema[_VALUE].dataType
    assert isinstance(found, spark.StructType)  # noqa: S101  the reader is a record
    values = []
    for field in wanted:
        column = value.getField(field.name)
        same = _too_wide(column, found[field.name].dataType, field.dataType) is None
        values.append((column if same else column.try_cast(field.dataType)).alias(field.name))
    return read.select(
        *values,
        *passed,
        _named(_NUMBER).alias(SCHEMA_VERSION),
        sql.when(rejected, _reason(columns.version, kinds)).alias(ERROR, metadata=metadata),
        sql.when(rejected, _named(columns.payload)).alias(PAYLOAD),
    )


def _reason(version: str | None, kinds: dict[str, spark.DataType]) -> Column:
    """Why a message is rejected, as far as it is known without the codec."""
    later = sql.lit(_LATER)
    if version is None or kinds[version] != spark.BinaryType():
        return later
    # Not left for later, since the column of numbers does not have it.
    size = sql.length(_named(version))
    odd = sql.format_string(ODD_SIZE.replace("{}", "%d"), size)
    return sql.when(size.isin(0, *SIZES) | size.isNull(), later).otherwise(odd)


def _reasons(codec: Codec) -> Any:
    """Return a function from rejected payloads and their versions, both null elsewhere, to the reasons."""

    def reasons(payloads: pa.Array, versions: pa.Array) -> pa.Array:
        reduce_worker_overhead()
        rejected = pc.or_(payloads.is_valid(), versions.is_valid())
        found = reasons_at(codec, rejected, payloads, versions)
        return (
            pc.if_else(pc.and_(rejected, found.is_null()), _BEYOND, found) if rejected.true_count else found
        )

    assert _arrow_udf is not None  # noqa: S101  asked before
    return _arrow_udf(reasons, "string")


def _named(name: str) -> Column:
    return sql.col(quoted(name))


def _alike(found: spark.DataType, wanted: spark.DataType) -> bool:
    """Whether the types are the same up to nullability and the digits of widened decimals."""
    match found, wanted:
        case (spark.StructType(), spark.StructType()):
            return found.names == wanted.names and all(
                _alike(one.dataType, other.dataType) for one, other in zip(found, wanted, strict=True)
            )
        case (spark.ArrayType(), spark.ArrayType()):
            return _alike(found.elementType, wanted.elementType)
        case (spark.MapType(), spark.MapType()):
            return found.keyType == wanted.keyType and _alike(found.valueType, wanted.valueType)
    return found == wanted or _is_widened(found, wanted)


def _is_widened(found: spark.DataType, wanted: spark.DataType) -> bool:
    return (
        isinstance(found, spark.DecimalType)
        and isinstance(wanted, spark.DecimalType)
        and (found.precision, found.scale) == (WIDE_DIGITS, wanted.scale)
        and wanted.precision <= LONG_DIGITS
    )


def _too_wide(value: Column, found: spark.DataType, wanted: spark.DataType) -> Column | None:
    """Whether a decimal anywhere in the value has more digits than it may; None: there are no widened ones."""
    match found, wanted:
        case (spark.StructType(), spark.StructType()):
            parts = [
                _too_wide(value.getField(one.name), one.dataType, other.dataType)
                for one, other in zip(found, wanted, strict=True)
            ]
            there = [part for part in parts if part is not None]
            return reduce(or_, there) if there else None
        case (spark.ArrayType(), spark.ArrayType()):
            return _any_too_wide(value, found.elementType, wanted.elementType)
        case (spark.MapType(), spark.MapType()):
            return _any_too_wide(sql.map_values(value), found.valueType, wanted.valueType)
    if not _is_widened(found, wanted):
        return None
    return value.isNotNull() & value.try_cast(wanted).isNull()


def _any_too_wide(values: Column, found: spark.DataType, wanted: spark.DataType) -> Column | None:
    if _too_wide(values, found, wanted) is None:
        return None

    def too_wide(item: Column) -> Column:
        inner = _too_wide(item, found, wanted)
        assert inner is not None  # noqa: S101  asked above
        return inner

    return sql.coalesce(sql.exists(values, too_wide), sql.lit(False))  # noqa: FBT003  a column
