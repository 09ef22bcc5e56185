"""The checks before files are added to a Delta table, which neither delta-rs nor Delta makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as spark

from .column_types import leaves, parts, quoted, sql_type
from .errors import WrongArgument
from .evolution import path_of
from .table import Change

if TYPE_CHECKING:
    import deltalake

_TYPES: Final = {
    *("string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz"),
}

# The attribute of an array's or a map's type that has the type of what is inside.
_INNER: Final = {"element": "elementType", "key": "keyType", "value": "valueType"}

# Of Delta's writer features those that delta-rs appends to: others it refuses only when it commits.
_FEATURES: Final = {
    *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"),
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType"),
}

# What the metadata of a column say whose values Delta computes or checks.
_MADE: Final = ("delta.generationExpression", "delta.identity.", "delta.invariants")

# SchemaUtils.checkFieldNames of Delta.
_NOT_IN_NAMES: Final = set(" ,;{}()\n\t=")


def check_writable(table: deltalake.DeltaTable, place: str, *, overwrite: bool) -> None:
    """Raise WrongArgument if a commit by delta-rs would be refused, or would break what the table promises."""
    settings = table.metadata().configuration
    name = f"delta.{quoted(place)}"
    by = _partitioned(table.metadata().partition_columns)
    copy = f"delta.{quoted(place + '_copy')} USING delta{by} AS SELECT * FROM {name}"  # noqa: S608  for a person to type
    land_elsewhere = f"land in a copy of it: CREATE TABLE {copy}"
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise WrongArgument(
            f"{place} maps its columns to other names in files, which delta-rs does not write: type ALTER TABLE {name} "
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none'), by which Spark writes it anew, or "
            f"{land_elsewhere}"
        )
    unknown = set(table.protocol().writer_features or ()) - _FEATURES
    if unknown:
        raise WrongArgument(
            f"{place} has {', '.join(sorted(unknown))}, to which delta-rs does not write: {land_elsewhere}"
        )
    if overwrite and settings.get("delta.appendOnly", "").lower() == "true":
        raise WrongArgument(
            f"{place} is append-only: append to it, or type "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')"
        )
    checks = [
        key.removeprefix("delta.constraints.") for key in settings if key.startswith("delta.constraints.")
    ]
    if checks:
        drop = "; ".join(f"ALTER TABLE {name} DROP CONSTRAINT {quoted(each)}" for each in checks)
        raise WrongArgument(
            f"{place} checks its rows ({', '.join(checks)}), and files are added unseen: type {drop}"
        )
    for path, column in parts(table_columns(table)):
        made = [key for key in column.metadata or () if key.startswith(_MADE)]
        if made:
            raise WrongArgument(
                f"{path} of {place} has {made[0]}, and files are added unseen: {land_elsewhere}"
            )
        if not column.nullable:
            raise WrongArgument(
                f"{path} of {place} is NOT NULL, and files are added unseen: type "
                f"ALTER TABLE {name} ALTER COLUMN {path} DROP NOT NULL"
            )


def rewriting(
    table: deltalake.DeltaTable, place: str, struct: spark.StructType, changes: Sequence[Change]
) -> str:
    """Return the statement that widens and renames columns: with what Delta has for it, delta-rs writes to the table no more."""
    rows = {place: part.dataType for place, part in parts(struct)}
    before, after = table_columns(table), table_columns(table)
    for change in changes:
        if change.kind != "add":
            _alter(after, change, rows[".".join(path_of(change.column))])
    values = [
        (
            f"CAST({quoted(old.name)} AS {sql_type(new.dataType)})"
            if old.dataType != new.dataType
            else quoted(old.name)
        )
        + (f" AS {quoted(new.name)}" if old != new else "")
        for old, new in zip(before, after, strict=True)
    ]
    name = f"delta.{quoted(place)}"
    partitions = table.metadata().partition_columns
    by = [new.name for old, new in zip(before, after, strict=True) if old.name in partitions]
    return f"CREATE OR REPLACE TABLE {name} USING delta{_partitioned(by)} AS SELECT {', '.join(values)} FROM {name}"  # noqa: S608  for a person to type


def table_columns(table: deltalake.DeltaTable) -> spark.StructType:
    """Return the columns of the table."""
    return spark.StructType.fromJson(json.loads(table.schema().to_json()))


def _partitioned(by: Sequence[str]) -> str:
    return f" PARTITIONED BY ({', '.join(map(quoted, by))})" if by else ""


def _alter(struct: Any, change: Change, wide: spark.DataType) -> None:
    """Rename or widen a column of the struct, at any depth; `wide` is what is widened to."""
    *outer, name = path_of(change.column)
    for step in outer:
        struct = (
            struct[step].dataType if isinstance(struct, spark.StructType) else getattr(struct, _INNER[step])
        )
    if change.kind == "rename":
        struct[change.former].name = name
    elif isinstance(struct, spark.StructType):
        struct[name].dataType = wide
    else:
        setattr(struct, _INNER[name], wide)


def is_ntz(column: spark.StructField) -> bool:
    """Whether it is a time without a zone, which is a feature of a table."""
    return isinstance(column.dataType, spark.TimestampNTZType)


def only_in_maps(struct: spark.StructType) -> bool:
    """Whether it has times without a zone, and all of them are in maps."""
    outside = [part for _, part in parts(struct, maps=False)]
    return any(is_ntz(part) for _, part in parts(struct)) and not any(map(is_ntz, outside))


def check_columns(struct: spark.StructType) -> None:
    """Raise WrongArgument if Delta stores no such columns."""
    seen: dict[str, str] = {}
    for place, column in parts(struct):
        odd = _NOT_IN_NAMES.intersection(column.name)
        if odd:
            raise WrongArgument(
                f"Delta has no column {column.name!r}: a name has no {min(odd)!r} there; rename it"
            )
        if seen.setdefault(place.casefold(), place) != place:
            raise WrongArgument(
                f"{seen[place.casefold()]} and {place} are one column to Delta, which does not look at case: rename one of them"
            )
    for place, kind in leaves(struct):
        if kind.typeName() not in _TYPES:
            raise WrongArgument(
                f"{place} is {kind.simpleString()}, for which Delta has no type: cast the column, or drop it; one of the topic's "
                "own lands in the format parquet"
            )


def check_spelling(table: spark.StructType, struct: spark.StructType) -> None:
    """Raise WrongArgument if the table has a column in another spelling: delta-rs would read null from the files."""
    there = {place.casefold(): place for place, _ in parts(table)}
    for place, _ in parts(struct):
        spelled = there.get(place.casefold(), place)
        if spelled != place:
            raise WrongArgument(f"{place} is called {spelled} in the table, and must be in the rows")
