"""The changes of a table's columns that rows need, whether a landing may make them, and the Spark SQL that does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from pyspark.sql import types as spark

from .landing_table import Change, Evolution, WrongArgument, folding, quoted, sql_type

_SHOWN: Final = 5
"""Of the reasons why rows do not fit."""

_WIDER: Final = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}

_DIGITS: Final = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
"""How many digits before the point a decimal must have to take each; the small ones lie in files as an int does."""

_IN_ICEBERG: Final = {("int", "bigint"), ("float", "double")}
"""The widenings that Iceberg has, besides those of a decimal to more digits before the point."""

_ANEW: Final = "write the table anew with a cast, or land in another one"


def changes(table: spark.StructType, rows: spark.StructType, former_names: Mapping[str, Sequence[str]]) -> list[Change]:
    """Return the changes by which the rows fit into the table, in an order in which they can be made; [] if they fit.

    A column is found by its name, as Spark finds it without regard to case, and else by a former one. What the table has and the
    rows lack is null in them.

    Args:
        table: its columns.
        rows: the columns of the rows.
        former_names: of the rows' columns, the newest first, by their paths.

    Raises:
        WrongArgument: there are no such changes; says what to do.
    """
    found = [*_Comparison(former_names).structs((), (), table, rows)]
    misfits = [each for each in found if isinstance(each, str)]
    if misfits:
        more = f"; and {len(misfits) - _SHOWN} columns more" if len(misfits) > _SHOWN else ""
        raise WrongArgument(f"the rows do not fit into the table: {'; '.join(misfits[:_SHOWN])}{more}")
    return [each for each in found if isinstance(each, Change)]


def require_allowed(needed: Sequence[Change], evolve: Evolution) -> None:
    """Raise WrongArgument if the landing may not make all of the changes; says what allows them."""
    steps = get_args(Evolution)
    step = max((steps.index(each.kind) for each in needed), default=0)
    if step > steps.index(evolve):
        what = "; ".join(map(_words, needed))
        raise WrongArgument(
            f'the table needs other columns for these rows: {what}. Allow it: evolve="{steps[step]}" (--evolve {steps[step]})'
        )


def statements(needed: Sequence[Change], table: str) -> list[str]:
    """Return the statements of Spark SQL that make the changes of an Iceberg table of that name.

    Delta has such statements, too, but delta-rs does not write to a table of which they were typed.

    Raises:
        WrongArgument: Iceberg has no such widening.
    """
    for each in needed:
        if each.kind == "widen":
            _check_widens_in_iceberg(each)
    return [f"ALTER TABLE {table} {_clause(each)}" for each in needed]


def widens(have: spark.DataType, want: spark.DataType) -> bool:
    """Return whether the one type becomes the other without loss, in files that are there, too.

    It is what `schemactl.checks.table_impact.widens` says of the columns of definitions.
    """
    old, new = have.simpleString(), want.simpleString()
    if isinstance(want, spark.DecimalType):
        before = want.precision - want.scale
        if isinstance(have, spark.DecimalType):
            return old != new and want.scale >= have.scale and before >= have.precision - have.scale
        return old in _DIGITS and before >= _DIGITS[old]
    return new in _WIDER.get(old, ())


def path_of(column: str) -> tuple[str, ...]:
    """Return the names of a `Change.column`, the outermost first."""
    return tuple(
        name[1:-1].replace("``", "`") if name.startswith("`") else name
        for name in re.findall(r"`(?:[^`]|``)*`|[^.`]+", column)
    )


class _Comparison:
    """Yields the changes, and as text each difference that no change removes."""

    def __init__(self, former_names: Mapping[str, Sequence[str]]) -> None:
        self._former_names = former_names

    def structs(
        self, place: tuple[str, ...], at: tuple[str, ...], table: spark.StructType, rows: spark.StructType
    ) -> Iterator[Change | str]:
        """Compare what the rows have at `place` with what the table has at `at`, once it is changed so far."""
        fold = folding(table, rows)
        left = {fold(field.name): field for field in table}
        former = {
            field.name: [*map(fold, self._former_names.get(".".join((*place, field.name)), ()))] for field in rows
        }
        same = {field.name: left.pop(fold(field.name)) for field in rows if fold(field.name) in left}
        # Only of columns that no other one has by their present names.
        renamed = {
            name: left.pop(found)
            for name, names in former.items()
            if name not in same and (found := next((each for each in names if each in left), None)) is not None
        }
        before = same | renamed
        successors = {name: field for field, names in former.items() if field in before for name in names}
        for field in rows:
            column = (*at, same.get(field.name, field).name)
            kind = sql_type(field.dataType)
            if field.name in before:
                there = before[field.name]
                if field.name in renamed:
                    yield Change("rename", _spelled(*column), kind, there.name)
                yield from self._types((*place, field.name), column, there.dataType, field.dataType)
                yield from _nulls(column, table=there.nullable, rows=field.nullable)
            elif fold(field.name) in successors:
                successor = _spelled(*at, successors[fold(field.name)])
                yield f"{_spelled(*column)} was the name of what is {successor} now: give the new field another name"
            else:
                yield Change("add", _spelled(*column), kind)
        for field in left.values():
            yield from _nulls((*at, field.name), table=field.nullable, rows=True)

    def _types(
        self, place: tuple[str, ...], at: tuple[str, ...], table: spark.DataType, rows: spark.DataType
    ) -> Iterator[Change | str]:
        match table, rows:
            case spark.StructType(), spark.StructType():
                yield from self.structs(place, at, table, rows)
            case spark.ArrayType(), spark.ArrayType():
                inner, outer = (*place, "element"), (*at, "element")
                yield from self._types(inner, outer, table.elementType, rows.elementType)
                yield from _nulls(outer, table=table.containsNull, rows=rows.containsNull)
            case spark.MapType(), spark.MapType():
                yield from self._types((*place, "key"), (*at, "key"), table.keyType, rows.keyType)
                inner, outer = (*place, "value"), (*at, "value")
                yield from self._types(inner, outer, table.valueType, rows.valueType)
                yield from _nulls(outer, table=table.valueContainsNull, rows=rows.valueContainsNull)
            case _ if table != rows:
                have, want = sql_type(table), sql_type(rows)
                if widens(table, rows):
                    yield Change("widen", _spelled(*at), want, have)
                else:
                    newer = "land with the newest version's package, or " if widens(rows, table) else ""
                    yield f"{_spelled(*at)} is {have} in the table and {want} in the rows: {newer}{_ANEW}"


def _nulls(at: tuple[str, ...], *, table: bool, rows: bool) -> Iterator[str]:
    """Yield that there may be nulls in the rows, and not in the table."""
    if rows and not table:
        yield f"{_spelled(*at)} is NOT NULL in the table, and may be null in the rows: ALTER COLUMN ... DROP NOT NULL"


def _spelled(*path: str) -> str:
    """Return the column as SQL has it, names quoted that need it."""
    return ".".join(name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else quoted(name) for name in path)


def _words(change: Change) -> str:
    match change.kind:
        case "add":
            return f"add {change.column} {change.type}"
        case "widen":
            return f"widen {change.column} from {change.former} to {change.type}"
        case "rename":
            return f"rename {change.former} to {change.column}"


def _clause(change: Change) -> str:
    match change.kind:
        case "add":
            return f"ADD COLUMNS ({change.column} {change.type})"
        case "widen":
            return f"ALTER COLUMN {change.column} TYPE {change.type}"
        case "rename":
            *outer, name = path_of(change.column)
            return f"RENAME COLUMN {_spelled(*outer, change.former)} TO {_spelled(name)}"


def _check_widens_in_iceberg(change: Change) -> None:
    have, want = (re.fullmatch(r"decimal\(\d+,(\d+)\)", kind) for kind in (change.former, change.type))
    if (change.former, change.type) not in _IN_ICEBERG and not (have and want and have[1] == want[1]):
        raise WrongArgument(f"Iceberg does not widen {change.column} from {change.former} to {change.type}: {_ANEW}")
