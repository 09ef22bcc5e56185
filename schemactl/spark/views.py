"""Views over tables that were landed version by version: the columns of today, whatever the schema was when a row was landed.

A folder of Parquet keeps every file as it was written, and a table in a catalog its columns. In a view a renamed column has its
new name in all rows, a wider one its new type, and one that came later is null in older rows, at every depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from ..codec import Codec, CodecError
from .message_columns import folded, struct_of
from .session import SPARK_ERRORS
from .tables.evolution import widens
from .tables.landing_table import Format, check_format, folding, quoted, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FormerNames = Mapping[str, Sequence[str]]
"""What columns were called before, the newest first, by their paths: `address.zip`, `items.element.sku`, `by_day.value.sku`."""

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Each can be promoted to those behind it, as in Avro."""

_OTHERS: Final = (("string", "binary"), ("binary", "string"))
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
    """Return the rows that were landed in `path` by this codec and those before it, with the columns of today.

    They come in the order of the codec's columns; then the columns that its other versions have, null where a row was landed
    without; then all else that is there (`__key`, `__topic`, `__schemaVersion`, what a partition is named by).
    Where files of Parquet differ in types, so that Spark cannot merge their columns, all else is what one of the files has.

    Args:
        session: which reads it, of Delta and Iceberg with their jars.
        codec: of the topic.
        path: a folder of Parquet, anything that `spark.read.parquet` takes; the path of a Delta table, with a `/` in it; or the
            name of a table in a catalog, as SQL has it.
        format: of what is there.
        former_names: of the codec's columns; a generated topic has them as `former_names`.
        former: give renamed columns under their former names, too, so that SQL of that time goes on working.
        name: of a temporary view to be made of it, for SQL; None: none is made.

    Raises:
        AnalysisException: there is no such folder or table, or nothing in it.
        ValueError: a column of a table cannot be read as the type of today: the table must be rewritten; there is no such format.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    check_format(format)
    fold = folded(session)
    columns = _Columns(codec, former_names or {}, fold)
    if format == "parquet":
        known = spark.StructType([*columns.known.fields, *columns.gone])
        others = _without(_found(session, path), known, fold)
        table = session.read.schema(spark.StructType([*known.fields, *others])).parquet(path)
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
    """Return the statement that makes a view with the columns of `view` over a table in a catalog; create it again for a new version.

    Args:
        table: its name as SQL has it, quoted where it needs to be.
        columns: what it has now: `spark.table(table).schema`.
        codec: of the topic.
        name: of the view, as SQL has it.
        former_names: as for `view`.
        former: as for `view`.

    Raises:
        ValueError: a column cannot be read as the type of today: the table must be rewritten.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    found = _Columns(codec, former_names or {}, folding(columns))
    selected = ",\n  ".join(found.select(columns, former=former))
    return f"CREATE OR REPLACE VIEW {name} AS\nSELECT\n  {selected}\nFROM {table}"


class _Columns:
    """The columns of today out of those that are there.

    Attributes:
        known: those of today, and beside them what they were called, at every depth.
        gone: those that only other versions have.
    """

    def __init__(self, codec: Codec, former_names: FormerNames, fold: Callable[[str], str]) -> None:
        """Take names for the same if `fold` makes the same of them."""
        self._former_names = former_names
        self._fold = fold
        self._today = struct_of(codec.columns)
        self.known: spark.StructType = self._known(self._today)
        self.gone = _without(_of_other_versions(codec, fold), self.known, fold)

    def _known(self, of: spark.DataType, path: str = "") -> Any:
        """Return the type with the former columns of its structs beside those of today, at every depth."""
        match of:
            case spark.StructType():
                made = spark.StructType()
                for field in of:
                    inner = self._known(field.dataType, f"{path}{field.name}.")
                    for name in (field.name, *self._former(path, field.name)):
                        made = made.add(name, inner)
                return made
            case spark.ArrayType():
                return spark.ArrayType(self._known(of.elementType, f"{path}element."))
            case spark.MapType():
                return spark.MapType(of.keyType, self._known(of.valueType, f"{path}value."))
        return of

    def select(self, there: spark.StructType, *, former: bool) -> list[str]:
        """Return an expression for each column of the view, of those that are there."""
        wanted = [(field, field.name) for field in (*self._today, *self.gone)]
        if former:
            wanted += [(field, name) for field in self._today for name in self._former("", field.name)]
        made = [(self._column(field, there, "", ""), quoted(name)) for field, name in wanted]
        others = _without(there, spark.StructType([*self.known.fields, *self.gone]), self._fold)
        values = [value if value == name else f"{value} AS {name}" for value, name in made]
        return values + [quoted(field.name) for field in others]

    def _former(self, path: str, name: str) -> Sequence[str]:
        return self._former_names.get(f"{path}{name}", ())

    def _column(self, field: spark.StructField, there: spark.StructType, inside: str, path: str) -> str:
        """Return the column of today, of the columns `there` whose references begin with `inside`."""
        names = [self._fold(name) for name in (field.name, *self._former(path, field.name))]
        found = [each for name in names for each in there if self._fold(each.name) == name]
        place = f"{path}{field.name}"
        values = [self._value(f"{inside}{quoted(each.name)}", each.dataType, field.dataType, place) for each in found]
        if not values:
            return f"CAST(NULL AS {sql_type(field.dataType)})"
        return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

    def _value(self, value: str, have: spark.DataType, want: spark.DataType, path: str) -> str:
        """Return `value`, an expression of the one type, as one of the other."""
        if have.simpleString() == want.simpleString():
            return value
        item = f"item{path.count('.')}"
        match have, want:
            case spark.StructType(), spark.StructType():
                parts = [f"'{field.name}', {self._column(field, have, f'{value}.', f'{path}.')}" for field in want]
                return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
            case spark.ArrayType(), spark.ArrayType():
                inner = self._value(item, have.elementType, want.elementType, f"{path}.element")
                return f"transform({value}, {item} -> {inner})"
            case spark.MapType(), spark.MapType():
                if have.keyType != want.keyType:
                    key = self._value("key", have.keyType, want.keyType, f"{path}.key")
                    value = f"transform_keys({value}, (key, {item}) -> {key})"
                inner = self._value(item, have.valueType, want.valueType, f"{path}.value")
                return value if inner == item else f"transform_values({value}, (key, {item}) -> {inner})"
        if not _is_promoted(have, want):
            raise ValueError(
                f"the table has {path} as {have.simpleString()}, which is not read as {want.simpleString()}: rewrite the "
                "table"
            )
        return f"CAST({value} AS {sql_type(want)})"


def _of_other_versions(codec: Codec, fold: Callable[[str], str]) -> list[spark.StructField]:
    """Return the columns of every version, each as the newest one that has it."""
    found: dict[str, spark.StructField] = {}
    for version in reversed(codec.versions):
        if version.foreign:
            # No package ever landed rows in its columns.
            continue
        try:
            columns = struct_of(codec.columns_of(version.number))
        except CodecError:
            # Rows of it were never landed in columns of its own.
            continue
        for field in columns:
            found.setdefault(fold(field.name), field)
    return [*found.values()]


def _found(session: SparkSession, path: str) -> Iterator[spark.StructField]:
    """Return the columns of the files and folders."""
    try:
        yield from session.read.option("mergeSchema", "true").parquet(path).schema
    except SPARK_ERRORS:
        yield from session.read.parquet(path).schema


def _without(
    fields: Iterable[spark.StructField], struct: spark.StructType, fold: Callable[[str], str]
) -> list[spark.StructField]:
    """Return the fields that the struct does not have."""
    there = set(map(fold, struct.names))
    return [field for field in fields if fold(field.name) not in there]


def _is_promoted(have: spark.DataType, want: spark.DataType) -> bool:
    """Whether Avro's readers, or tables whose types may widen, take the one for the other."""
    old, new = have.simpleString(), want.simpleString()
    if old in _NUMBERS and new in _NUMBERS:
        return _NUMBERS.index(old) < _NUMBERS.index(new)
    return widens(have, want) or (old, new) in _OTHERS
