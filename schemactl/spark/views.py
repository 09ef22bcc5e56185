"""Views of landed tables with the columns of the current schema, for rows that were landed with any version.

A folder of Parquet never changes a file, and a table in a catalog keeps its columns. In a view, at every depth, a
renamed column has its new name in all rows, a widened column its new type, and a later column is null in older rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from ..codec import Codec, CodecError
from ..codec.sql_columns import is_widening, quote_sql_name
from .column_types import struct_of
from .message_columns import get_fold
from .session import SPARK_ERRORS
from .tables.landing_table import Format, check_format, find_fold, to_sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FormerNames = Mapping[str, Sequence[str]]
"""The former names of columns, newest first, by path: `address.zip`, `items.element.sku`, `by_day.value.sku`."""

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Each type can be promoted to the types after it, as in Avro."""

_OTHER_PROMOTIONS: Final = (("string", "binary"), ("binary", "string"))
"""Other casts that keep every value."""


def view(
    session: SparkSession,
    codec: Codec,
    path: str,
    *,
    format: Format = "parquet",  # noqa: A002  as in `land`
    former_names: FormerNames | None = None,
    former: bool = False,
    name: str | None = None,
) -> DataFrame:
    """Read the rows that this codec and earlier ones landed in `path`, with the codec's columns.

    The codec's columns come first; then the columns of its other versions, null in rows that were landed without them; then the
    other columns of the table (`__key`, `__topic`, `__schemaVersion`, partition columns). If Spark cannot merge the columns of
    Parquet files because their types differ, the other columns come from one of the files.

    Args:
        session: the session that reads the table, for Delta and Iceberg with their jars.
        codec: the codec of the topic.
        path: a folder of Parquet, or anything that `spark.read.parquet` takes; the path of a Delta table, with a `/` in it; or the
            name of a table in a catalog, in SQL.
        format: the format of the folder or table.
        former_names: the former names of the codec's columns; a generated topic has them as `former_names`.
        former: whether renamed columns are also there under their former names, so that older SQL continues to work.
        name: the name of a temporary view to create, if any.

    Raises:
        AnalysisException: if the folder or table is missing or empty.
        ValueError: if a column of a table cannot be read in its new type, so that the table must be rewritten, or the format does not
            exist.
        CodecUnavailable: if there is no codec for the topic's schema type.
    """
    check_format(format)
    fold = get_fold(session)
    columns = _Columns(codec, former_names or {}, fold)
    if format == "parquet":
        versioned = spark.StructType([*columns.with_former_names.fields, *columns.dropped])
        # The columns of the files, and the partition columns of the folders.
        try:
            existing = session.read.option("mergeSchema", "true").parquet(path).schema
        except SPARK_ERRORS:
            existing = session.read.parquet(path).schema
        others = _subtract(existing, versioned, fold)
        table = session.read.schema(spark.StructType([*versioned.fields, *others])).parquet(path)
    else:
        table = session.read.format(format).load(path) if "/" in path else session.table(path)
    rows = table.select(*map(sql.expr, columns.select(table.schema, former=former)))
    if name is not None:
        rows.createOrReplaceTempView(name)
    return rows


def view_sql(
    table: str,
    columns: spark.StructType,
    codec: Codec,
    *,
    name: str,
    former_names: FormerNames | None = None,
    former: bool = False,
) -> str:
    """Return the statement that creates a view of a table in a catalog, with the columns of `view`. Run it again for a new version.

    Args:
        table: the table's name in SQL, quoted where necessary.
        columns: the current columns of the table: `spark.table(table).schema`.
        codec: the codec of the topic.
        name: the name of the view in SQL.
        former_names: as for `view`.
        former: as for `view`.

    Raises:
        ValueError: if a column cannot be read in its new type, so that the table must be rewritten.
        CodecUnavailable: if there is no codec for the topic's schema type.
    """
    view_columns = _Columns(codec, former_names or {}, find_fold(columns))
    selected = ",\n  ".join(view_columns.select(columns, former=former))
    return f"CREATE OR REPLACE VIEW {name} AS\nSELECT\n  {selected}\nFROM {table}"


class _Columns:
    """The columns of a view, as expressions over the columns of a table.

    Attributes:
        with_former_names: the codec's columns, and a column for each of their former names, at every depth.
        dropped: the columns that only other versions have.
    """

    def __init__(self, codec: Codec, former_names: FormerNames, fold: Callable[[str], str]) -> None:
        """Create the columns for tables whose names are compared with `fold`."""
        self._former_names = former_names
        self._fold = fold
        self._current = struct_of(codec.columns)
        self.with_former_names: spark.StructType = self._add_former_names(self._current)
        self.dropped = _subtract(_list_columns_of_versions(codec, fold), self.with_former_names, fold)

    def _add_former_names(self, data_type: spark.DataType, path: str = "") -> Any:
        """Return the type with an additional field for each former name in its structs, at every depth."""
        match data_type:
            case spark.StructType():
                struct = spark.StructType()
                for field in data_type:
                    field_type = self._add_former_names(field.dataType, f"{path}{field.name}.")
                    for name in (field.name, *self._get_former_names(path, field.name)):
                        struct = struct.add(name, field_type)
                return struct
            case spark.ArrayType():
                return spark.ArrayType(self._add_former_names(data_type.elementType, f"{path}element."))
            case spark.MapType():
                return spark.MapType(data_type.keyType, self._add_former_names(data_type.valueType, f"{path}value."))
        return data_type

    def select(self, table: spark.StructType, *, former: bool) -> list[str]:
        """Return an expression for each column of the view of a table with these columns."""
        view_columns = [(field, field.name) for field in (*self._current, *self.dropped)]
        if former:
            view_columns += [
                (field, name) for field in self._current for name in self._get_former_names("", field.name)
            ]
        selection = []
        for field, name in view_columns:
            value = self._make_column(field, table, "", "")
            selection.append(value if value == quote_sql_name(name) else f"{value} AS {quote_sql_name(name)}")
        others = _subtract(table, spark.StructType([*self.with_former_names.fields, *self.dropped]), self._fold)
        return selection + [quote_sql_name(field.name) for field in others]

    def _get_former_names(self, path: str, name: str) -> Sequence[str]:
        return self._former_names.get(f"{path}{name}", ())

    def _make_column(self, field: spark.StructField, table: spark.StructType, prefix: str, path: str) -> str:
        """Return the expression of a column.

        Args:
            field: the column of the view.
            table: the columns of the table, or of the same struct in it.
            prefix: the reference to the struct with a dot, or "".
            path: the path of the struct in the view with a dot, or "".
        """
        names = [self._fold(name) for name in (field.name, *self._get_former_names(path, field.name))]
        matches = [column for name in names for column in table if self._fold(column.name) == name]
        values = [
            self._convert(
                f"{prefix}{quote_sql_name(match.name)}", match.dataType, field.dataType, f"{path}{field.name}"
            )
            for match in matches
        ]
        if not values:
            return f"CAST(NULL AS {to_sql_type(field.dataType)})"
        return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

    def _convert(self, value: str, have: spark.DataType, want: spark.DataType, path: str) -> str:
        """Return an expression that converts `value` from the type `have` to `want`."""
        if have.simpleString() == want.simpleString():
            return value
        item = f"item{path.count('.')}"
        match have, want:
            case spark.StructType(), spark.StructType():
                parts = [f"'{field.name}', {self._make_column(field, have, f'{value}.', f'{path}.')}" for field in want]
                return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
            case spark.ArrayType(), spark.ArrayType():
                inner = self._convert(item, have.elementType, want.elementType, f"{path}.element")
                return f"transform({value}, {item} -> {inner})"
            case spark.MapType(), spark.MapType():
                if have.keyType != want.keyType:
                    key = self._convert("key", have.keyType, want.keyType, f"{path}.key")
                    value = f"transform_keys({value}, (key, {item}) -> {key})"
                inner = self._convert(item, have.valueType, want.valueType, f"{path}.value")
                return value if inner == item else f"transform_values({value}, (key, {item}) -> {inner})"
        if not _is_promoted(have, want):
            raise ValueError(
                f"the table has {path} as {have.simpleString()}, which cannot be read as {want.simpleString()}: rewrite the table"
            )
        return f"CAST({value} AS {to_sql_type(want)})"


def _list_columns_of_versions(codec: Codec, fold: Callable[[str], str]) -> list[spark.StructField]:
    """Return the columns of all versions, each column as in the newest version that has it."""
    fields_by_name: dict[str, spark.StructField] = {}
    for version in reversed(codec.versions):
        if version.foreign or version.kind != codec.kind:
            # No package ever landed rows of the codec in its columns.
            continue
        try:
            columns = struct_of(codec.columns_of(version.number))
        except CodecError:
            # No rows were ever landed with columns of this version.
            continue
        for field in columns:
            fields_by_name.setdefault(fold(field.name), field)
    return [*fields_by_name.values()]


def _subtract(
    fields: Iterable[spark.StructField], struct: spark.StructType, fold: Callable[[str], str]
) -> list[spark.StructField]:
    """Return the fields whose names are not in the struct."""
    names = set(map(fold, struct.names))
    return [field for field in fields if fold(field.name) not in names]


def _is_promoted(have: spark.DataType, want: spark.DataType) -> bool:
    """Return whether Avro promotes the type `have` to `want`, or a table can widen it."""
    old, new = have.simpleString(), want.simpleString()
    if old in _NUMBERS and new in _NUMBERS:
        return _NUMBERS.index(old) < _NUMBERS.index(new)
    return is_widening(old, new) or (old, new) in _OTHER_PROMOTIONS
