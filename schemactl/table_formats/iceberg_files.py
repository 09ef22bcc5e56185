"""Columns, types and files as the metadata of an Iceberg table have them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as spark

from .errors import WrongArgument
from .folder import Folder, at_once
from .table import DataFile

if TYPE_CHECKING:
    from pyiceberg import manifest
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField

# As Spark's own writer stores them. A time of Iceberg's is none that Spark reads, and it has no intervals.
_TO_ICEBERG: Final[dict[type[spark.DataType], str]] = {
    spark.BooleanType: "boolean",
    spark.IntegerType: "int",
    spark.ByteType: "int",
    spark.ShortType: "int",
    spark.LongType: "long",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.DateType: "date",
    spark.TimestampType: "timestamptz",
    spark.TimestampNTZType: "timestamp",
    spark.StringType: "string",
    spark.BinaryType: "binary",
}
_TO_SPARK: Final = {name: kind for kind, name in reversed(_TO_ICEBERG.items())}


def iceberg_schema(struct: spark.StructType) -> Schema:
    """Return Iceberg's columns for Spark's, null allowed everywhere. Raises WrongArgument: it has no type for one."""
    from pyiceberg.schema import Schema

    return Schema.model_validate(_iceberg_type(struct, "", itertools.count(1)))


def _iceberg_type(kind: spark.DataType, place: str, ids: Iterator[int]) -> Any:
    """Return the type as JSON, null allowed everywhere. Raises WrongArgument: Iceberg does not have it."""

    def inner(part: spark.DataType, name: str) -> Any:
        return _iceberg_type(part, f"{place}.{name}" if place else name, ids)

    match kind:
        case spark.StructType() if kind.fields:
            fields = [(each.name, next(ids), inner(each.dataType, each.name)) for each in kind]
            return {
                "type": "struct",
                "fields": [
                    {"id": id_, "name": name, "required": False, "type": made} for name, id_, made in fields
                ],
            }
        case spark.ArrayType():
            made = inner(kind.elementType, "element")
            return {"type": "list", "element-id": next(ids), "element": made, "element-required": False}
        case spark.MapType():
            pair = {"key": inner(kind.keyType, "key"), "value": inner(kind.valueType, "value")}
            return {"type": "map", "key-id": next(ids), "value-id": next(ids), "value-required": False} | pair
        case spark.DecimalType():
            return f"decimal({kind.precision}, {kind.scale})"
    if type(kind) not in _TO_ICEBERG:
        raise WrongArgument(
            f"{place} is {kind.simpleString()}, for which Iceberg has no type that Spark reads: cast the column, or drop it; one of "
            "the topic's own lands in the format parquet"
        )
    return _TO_ICEBERG[type(kind)]


def _spark_type(kind: Any) -> Any:
    """Return Iceberg's type, as JSON, as Spark has it; void, if no landing writes such a column."""
    match kind:
        case {"type": "struct", "fields": fields}:
            each = [(field["name"], _spark_type(field["type"]), not field["required"]) for field in fields]
            return spark.StructType([spark.StructField(*field) for field in each])
        case {"type": "list", "element": element, "element-required": required}:
            return spark.ArrayType(_spark_type(element), not required)
        case {"type": "map", "key": key, "value": value, "value-required": required}:
            return spark.MapType(_spark_type(key), _spark_type(value), not required)
    if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", str(kind)):
        return spark.DecimalType(int(decimal[1]), int(decimal[2]))
    return _TO_SPARK.get(str(kind), spark.NullType)()


def spark_struct(schema: Schema) -> spark.StructType:
    """Return Spark's columns for Iceberg's; void is what no landing writes, such as a UUID."""
    struct: spark.StructType = _spark_type(json.loads(schema.model_dump_json()))
    return struct


def types_by_path(schema: Schema) -> dict[str, str]:
    """Return the type of each part, at any depth; of what has parts itself, which of the three it is."""
    kinds = {schema.find_column_name(number): schema.find_type(number) for number in schema.field_ids}
    return {
        name: str(kind) if kind.is_primitive else type(kind).__name__ for name, kind in kinds.items() if name
    }


def mapped_id(fields: Iterable[MappedField], path: Sequence[str]) -> int | None:
    """Return the id of the column that the name mapping has by that path; None: it has none."""
    name, *inner = path
    found = next((each for each in fields if name in each.names), None)
    if found is None or not inner:
        return None if found is None else found.field_id
    return mapped_id(found.fields, inner)


def data_file(
    metadata: TableMetadata, partition_by: Sequence[str], uri: str, file: DataFile, footer: pq.FileMetaData
) -> manifest.DataFile:
    """Return what the table says of the file, whose name begins with `uri`.

    pyiceberg's own `add_files` takes the bounds of a column from those row groups that tell them, and the values of partitions
    from bounds: both are wrong where a text is so long that its row group has none.

    Args:
        metadata: of the table.
        partition_by: the columns of its partition fields; "": the field has none any more.
        uri: see above.
        file: what its task says of it.
        footer: what it says itself.
    """
    from pyiceberg import manifest
    from pyiceberg.io import pyarrow as reading
    from pyiceberg.typedef import Record

    ids = reading.parquet_path_to_id_mapping(metadata.schema())
    plan = reading.compute_statistics_plan(metadata.schema(), metadata.properties)
    none = reading.match_metrics_mode("none")
    for path, mode in _without_bounds(footer):
        if plan[ids[path]].mode != none:
            plan[ids[path]] = replace(plan[ids[path]], mode=reading.match_metrics_mode(mode))
    statistics = reading.data_file_statistics_from_parquet_metadata(footer, plan, ids)
    inside = {footer.schema.column(number).path for number in range(footer.num_columns)}
    for name in filter(None, partition_by):
        if name not in inside:
            raise WrongArgument(
                f"{file.name} has no column {name} inside, and readers of Iceberg find it there"
            )
    kinds = {each.name: str(each.field_type) for each in metadata.schema().columns}
    return manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA,
        file_path=f"{uri}/{file.name}",
        file_format=manifest.FileFormat.PARQUET,
        partition=Record(
            *(_value(kinds[name], file.partition[name]) if name else None for name in partition_by)
        ),
        file_size_in_bytes=file.bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _without_bounds(footer: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    """Yield columns of whose values some row group tells no bounds, or such that Python has no value for, and what else it tells."""
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            told = column.statistics
            if told is None:
                yield column.path_in_schema, "none"
                continue
            bounded = told.null_count == column.num_values
            with suppress(OverflowError, ValueError):
                bounded = bounded or (told.has_min_max and told.min <= told.max)
            if not bounded:
                yield column.path_in_schema, "counts"


def _value(kind: str, text: str | None) -> Any:
    """Return the value of a partition as Iceberg has it."""
    if text is None:
        return None
    match kind:
        case "boolean":
            return text == "true"
        case "int" | "long":
            return int(text)
        case "date":
            return int(np.datetime64(text, "D").astype(int))
    return text


def footers(folder: Folder, files: Sequence[DataFile]) -> list[pq.FileMetaData]:
    """Return the footer of each file. Raises OSError: one is not there as it was written."""

    def footer(file: DataFile) -> pq.FileMetaData:
        path = folder.place(file.name)
        try:
            with folder.files.open_input_file(path) as opened:
                size, found = opened.size(), pq.read_metadata(opened)
        except (OSError, pa.ArrowInvalid) as error:
            raise OSError(
                f"{path} is not there as it was written ({error}): nothing was added; land again"
            ) from None
        if (size, found.num_rows) != (file.bytes, file.rows):
            raise OSError(
                f"{path} has {size} bytes and {found.num_rows} rows, and was written with {file.bytes} and {file.rows}: nothing "
                "was added; land again"
            )
        return found

    return at_once(footer, files)
