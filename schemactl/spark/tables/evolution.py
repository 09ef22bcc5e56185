"""Find the changes of a table's columns that rows need, check whether a landing may make them, and write them in Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, get_args

from pyspark.sql import types as spark

from ...codec.sql_columns import is_widening, quote_sql_name
from ..message_columns import MESSAGE_COLUMNS
from .landing_table import Change, Evolution, LandingTable, WrongArgument, find_fold, to_sql_type

_MAX_MISFITS: Final = 5
"""How many reasons why rows do not fit are in a message."""

_IN_ICEBERG: Final = {("int", "bigint"), ("float", "double")}
"""The widenings of Iceberg, in addition to the widening of a decimal to more digits before the point."""

_REWRITE_ADVICE: Final = "rewrite the table with a cast, or land in another table"


def find_changes(
    table: spark.StructType, rows: spark.StructType, former_names: Mapping[str, Sequence[str]]
) -> list[Change]:
    """Return the changes after which the rows fit into the table, in an order in which they can be made; [] if they fit already.

    Columns are matched by name, without case as in Spark, and else by a former name. A column that only the table has is null in
    the rows.

    Args:
        table: the columns of the table.
        rows: the columns of the rows.
        former_names: the former names of the rows' columns, newest first, by path.

    Raises:
        WrongArgument: if no changes make the rows fit; the message says what to do.
    """
    differences = [*_Comparison(former_names).compare_structs((), (), table, rows)]
    misfits = [difference for difference in differences if isinstance(difference, str)]
    if misfits:
        more = f"; and {len(misfits) - _MAX_MISFITS} columns more" if len(misfits) > _MAX_MISFITS else ""
        raise WrongArgument(f"the rows do not fit into the table: {'; '.join(misfits[:_MAX_MISFITS])}{more}")
    return [difference for difference in differences if isinstance(difference, Change)]


def require_allowed(
    needed: Sequence[Change], evolve: Evolution, in_place: Collection[str] = LandingTable.in_place
) -> None:
    """Raise WrongArgument, with the value of `evolve` that allows the changes, if the landing may not make all of them.

    Columns of Pulsar's messages are always added, because `schemactl export ddl` describes tables without them.

    Args:
        needed: the changes.
        evolve: the allowed changes.
        in_place: the kinds of changes that need no rewrite of the table.
    """
    levels = get_args(Evolution)
    needed = [change for change in needed if change.kind != "add" or path_of(change.column)[0] not in MESSAGE_COLUMNS]
    level = max((levels.index(change.kind) for change in needed), default=0)
    if level > levels.index(evolve):
        description = "; ".join(map(_describe, needed))
        value = levels[level] if all(change.kind in in_place for change in needed) else "rewrite"
        remark = ", which rewrites the table with all its rows in one commit" if value == "rewrite" else ""
        raise WrongArgument(
            f"the table needs other columns for these rows: {description}. "
            f'Allow it: evolve="{value}" (--evolve {value}){remark}'
        )


def make_statements(needed: Sequence[Change], table: str) -> list[str]:
    """Return the statements of Spark SQL that make the changes in the Iceberg table `table`.

    Delta has such statements as well, but delta-rs does not write to a table that they have changed.

    Raises:
        WrongArgument: if Iceberg does not have one of the widenings.
    """
    statements = []
    for change in needed:
        match change.kind:
            case "add":
                clause = f"ADD COLUMNS ({change.column} {change.type})"
            case "widen":
                have, want = (re.fullmatch(r"decimal\(\d+,(\d+)\)", sql) for sql in (change.former, change.type))
                is_more_digits = have and want and have[1] == want[1]
                if (change.former, change.type) not in _IN_ICEBERG and not is_more_digits:
                    raise WrongArgument(
                        f"Iceberg does not widen {change.column} from {change.former} to {change.type}: {_REWRITE_ADVICE}"
                    )
                clause = f"ALTER COLUMN {change.column} TYPE {change.type}"
            case "rename":
                *outer, name = path_of(change.column)
                clause = f"RENAME COLUMN {_to_sql(*outer, change.former)} TO {_to_sql(name)}"
        statements.append(f"ALTER TABLE {table} {clause}")
    return statements


def path_of(column: str) -> tuple[str, ...]:
    """Return the names of a `Change.column`, the outermost first."""
    return tuple(
        name[1:-1].replace("``", "`") if name.startswith("`") else name
        for name in re.findall(r"`(?:[^`]|``)*`|[^.`]+", column)
    )


class _Comparison:
    """Yields changes, and, as text, each difference that no change removes."""

    def __init__(self, former_names: Mapping[str, Sequence[str]]) -> None:
        self._former_names = former_names

    def compare_structs(
        self, row_path: tuple[str, ...], table_path: tuple[str, ...], table: spark.StructType, rows: spark.StructType
    ) -> Iterator[Change | str]:
        """Compare the struct at `row_path` of the rows with the one at `table_path` of the table, as changed so far."""
        fold = find_fold(table, rows)
        unmatched = {fold(field.name): field for field in table}
        former_names = {
            field.name: [*map(fold, self._former_names.get(".".join((*row_path, field.name)), ()))] for field in rows
        }
        same = {field.name: unmatched.pop(fold(field.name)) for field in rows if fold(field.name) in unmatched}
        # A former name matches only a column that is not the present name of another field.
        renamed: dict[str, spark.StructField] = {}
        for name, names in former_names.items():
            matches = [former_name for former_name in names if former_name in unmatched]
            if name not in same and matches:
                renamed[name] = unmatched.pop(matches[0])
        matched = same | renamed
        successors = {name: field for field, names in former_names.items() if field in matched for name in names}
        for field in rows:
            column = (*table_path, same.get(field.name, field).name)
            new_type = to_sql_type(field.dataType)
            if field.name in matched:
                table_field = matched[field.name]
                if field.name in renamed:
                    yield Change("rename", _to_sql(*column), new_type, table_field.name)
                yield from self._compare_types((*row_path, field.name), column, table_field.dataType, field.dataType)
                yield from _compare_nullability(column, table=table_field.nullable, rows=field.nullable)
            elif fold(field.name) in successors:
                successor = _to_sql(*table_path, successors[fold(field.name)])
                yield f"{_to_sql(*column)} is now called {successor}: give the new field another name"
            else:
                yield Change("add", _to_sql(*column), new_type)
        for field in unmatched.values():
            yield from _compare_nullability((*table_path, field.name), table=field.nullable, rows=True)

    def _compare_types(
        self, row_path: tuple[str, ...], table_path: tuple[str, ...], table: spark.DataType, rows: spark.DataType
    ) -> Iterator[Change | str]:
        match table, rows:
            case spark.StructType(), spark.StructType():
                yield from self.compare_structs(row_path, table_path, table, rows)
            case spark.ArrayType(), spark.ArrayType():
                element = (*table_path, "element")
                yield from self._compare_types((*row_path, "element"), element, table.elementType, rows.elementType)
                yield from _compare_nullability(element, table=table.containsNull, rows=rows.containsNull)
            case spark.MapType(), spark.MapType():
                key, value = (*table_path, "key"), (*table_path, "value")
                yield from self._compare_types((*row_path, "key"), key, table.keyType, rows.keyType)
                yield from self._compare_types((*row_path, "value"), value, table.valueType, rows.valueType)
                yield from _compare_nullability(value, table=table.valueContainsNull, rows=rows.valueContainsNull)
            case _ if table != rows:
                have, want = to_sql_type(table), to_sql_type(rows)
                if is_widening(have, want):
                    yield Change("widen", _to_sql(*table_path), want, have)
                else:
                    newer = "land with the newest version's package, or " if is_widening(want, have) else ""
                    yield f"{_to_sql(*table_path)} is {have} in the table and {want} in the rows: {newer}{_REWRITE_ADVICE}"


def _compare_nullability(column: tuple[str, ...], *, table: bool, rows: bool) -> Iterator[str]:
    """Yield a difference if the rows may have nulls in the column and the table may not."""
    if rows and not table:
        yield f"{_to_sql(*column)} is NOT NULL in the table, and may be null in the rows: ALTER COLUMN ... DROP NOT NULL"


def _to_sql(*path: str) -> str:
    """Return the path in SQL, with names quoted where necessary."""
    return ".".join(name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else quote_sql_name(name) for name in path)


def _describe(change: Change) -> str:
    match change.kind:
        case "add":
            return f"add {change.column} {change.type}"
        case "widen":
            return f"widen {change.column} from {change.former} to {change.type}"
        case "rename":
            return f"rename {change.former} to {change.column}"
