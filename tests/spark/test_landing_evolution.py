"""A table takes rows of another version as `check` says that it does."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import types as spark
from random_avro import Maker

from schemactl.checks.table_impact import Impact, compute_impact, format_sql_type
from schemactl.codegen import spark_types as types
from schemactl.codegen.spark_types import SparkType, to_json
from schemactl.codegen.topic_struct import StructOptions, former_names, struct_of
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.spark import WrongArgument
from schemactl.spark.column_types import struct_of_ddl
from schemactl.spark.tables.evolution import find_changes, make_statements, path_of, require_allowed
from schemactl.spark.tables.landing_table import Change, to_sql_type

EFFECTS = {"type widened": "widen", "renamed column": "rename", "added column": "add"}

ATOMS: list[SparkType] = [
    *(types.BOOLEAN, types.INTEGER, types.LONG, types.FLOAT, types.DOUBLE, types.STRING, types.BINARY),
    *(types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ, types.Atomic("byte"), types.Atomic("short")),
    *(
        types.Decimal(precision, scale)
        for precision in (2, 9, 10, 11, 12, 20, 22, 38)
        for scale in (0, 2, 10)
        if scale <= precision
    ),
]


def as_spark(of: SparkType) -> Any:
    return spark._parse_datatype_json_string(json.dumps(to_json(of)))


@pytest.mark.parametrize("atom", ATOMS)
def test_check_and_landing_write_a_type_alike(atom: SparkType) -> None:
    assert format_sql_type(atom) == to_sql_type(as_spark(atom))


def make_table(info: SchemaInfo) -> spark.StructType:
    """The table that a landing makes for the rows."""
    struct = struct_of(info, StructOptions(as_decoded=True), Release.R4_0)
    assert struct is not None
    table: spark.StructType = as_spark(struct).toNullable()
    return table


def make_evolutions() -> Iterator[tuple[SchemaInfo, SchemaInfo, Impact]]:
    """Yield two versions of a random schema, and the impact on tables that `check` reports."""
    for seed in range(400):
        maker = Maker(seed)
        schema = maker.record(2)
        old, new = (
            SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode())
            for definition in (schema, maker.evolve_schema(schema))
        )
        expected = compute_impact(old, new, generate=Generate("p"), release=Release.R4_0)
        if expected is not None:
            yield old, new, expected


def test_what_check_says_of_an_evolution_is_what_landing_needs() -> None:
    kinds: Counter[str] = Counter()
    for old, new, expected in make_evolutions():
        before, after = make_table(old), make_table(new)
        former = former_names(new, [old], StructOptions(as_decoded=True), Release.R4_0)
        names = {".".join(path): old_names for path, old_names in former.items()}
        rewritten = [change.column for change in expected.changes if change.effect == "rewrite"]
        if rewritten:
            with pytest.raises(WrongArgument) as caught:
                find_changes(before, after, names)
            assert all(f"{column} " in str(caught.value) for column in rewritten[:5])
            kinds["rewrite"] += 1
            continue
        needed = find_changes(before, after, names)
        assert [(change.kind, path_of(change.column)) for change in needed] == [
            (EFFECTS[change.effect], change.path) for change in expected.changes if change.effect in EFFECTS
        ]
        kinds.update(change.kind for change in needed)
        assert find_changes(after, after, names) == []
    assert min(kinds[kind] for kind in ("rewrite", *EFFECTS.values())) > 20


FORMER = {"sum": ("amount", "total"), "home": ("place",), "home.zip": ("postcode",), "days.value.zip": ("postcode",)}
NEEDED = find_changes(
    struct_of_ddl(
        "Id INT, total FLOAT, place STRUCT<city: STRING, postcode: INT>, Items ARRAY<STRUCT<sku: DECIMAL(9,2)>>, "
        "days MAP<STRING, STRUCT<postcode: INT>>, `a.b` INT, gone DATE"
    ),
    struct_of_ddl(
        "id BIGINT, sum DOUBLE, home STRUCT<zip: BIGINT, city: STRING>, items ARRAY<STRUCT<sku: DECIMAL(12,2), `n o`: INT>>, "
        "days MAP<STRING, STRUCT<zip: INT>>, `a.b` BIGINT, seen STRUCT<at: DATE>"
    ),
    FORMER,
)


def test_changes_are_those_of_columns_at_every_depth_in_an_order_in_which_they_can_be_made() -> None:
    assert [
        Change("widen", "Id", "bigint", "int"),
        Change("rename", "sum", "double", "total"),
        Change("widen", "sum", "double", "float"),
        Change("rename", "home", "struct<`zip`: bigint, `city`: string>", "place"),
        Change("rename", "home.zip", "bigint", "postcode"),
        Change("widen", "home.zip", "bigint", "int"),
        Change("widen", "Items.element.sku", "decimal(12,2)", "decimal(9,2)"),
        Change("add", "Items.element.`n o`", "int"),
        Change("rename", "days.value.zip", "int", "postcode"),
        Change("widen", "`a.b`", "bigint", "int"),
        Change("add", "seen", "struct<`at`: date>"),
    ] == NEEDED
    assert path_of("Items.element.`n``o`.`a.b`") == ("Items", "element", "n`o", "a.b")


def test_the_statements_for_iceberg_make_each_change_after_those_that_it_stands_on() -> None:
    assert make_statements(NEEDED, "shop.orders") == [
        "ALTER TABLE shop.orders ALTER COLUMN Id TYPE bigint",
        "ALTER TABLE shop.orders RENAME COLUMN total TO sum",
        "ALTER TABLE shop.orders ALTER COLUMN sum TYPE double",
        "ALTER TABLE shop.orders RENAME COLUMN place TO home",
        "ALTER TABLE shop.orders RENAME COLUMN home.postcode TO zip",
        "ALTER TABLE shop.orders ALTER COLUMN home.zip TYPE bigint",
        "ALTER TABLE shop.orders ALTER COLUMN Items.element.sku TYPE decimal(12,2)",
        "ALTER TABLE shop.orders ADD COLUMNS (Items.element.`n o` int)",
        "ALTER TABLE shop.orders RENAME COLUMN days.value.postcode TO zip",
        "ALTER TABLE shop.orders ALTER COLUMN `a.b` TYPE bigint",
        "ALTER TABLE shop.orders ADD COLUMNS (seen struct<`at`: date>)",
    ]


@pytest.mark.parametrize(
    ("have", "want"), [("int", "double"), ("int", "decimal(12,2)"), ("decimal(9,2)", "decimal(12,4)")]
)
def test_a_widening_that_iceberg_has_not_is_refused(have: str, want: str) -> None:
    with pytest.raises(WrongArgument, match=r"Iceberg does not widen x from .* rewrite the table with a cast"):
        make_statements([Change("widen", "x", want, have)], "t")


@pytest.mark.parametrize(
    ("table_columns", "columns", "message"),
    [
        ("x STRING", "x INT", "x is string in the table and int in the rows: rewrite the table with a cast"),
        ("x BIGINT", "x INT", "x is bigint in the table and int in the rows: land with the newest version's package"),
        ("x INT", "x STRUCT<y: INT>", "x is int in the table and struct<`y`: int> in the rows"),
        ("x INT, y INT NOT NULL", "x INT", "y is NOT NULL in the table, and may be null in the rows: ALTER COLUMN"),
        ("x ARRAY<INT /* NOT NULL */>", "x ARRAY<INT>", "x.element is NOT NULL in the table"),
        ("sum INT", "sum INT, total INT", "total is now called sum: give the new field another name"),
    ],
)
def test_rows_that_no_change_makes_fit_are_refused_with_what_does(
    table_columns: str, columns: str, message: str
) -> None:
    with pytest.raises(WrongArgument, match=re.escape(f"the rows do not fit into the table: {message}")):
        find_changes(struct_of_ddl(table_columns), struct_of_ddl(columns), FORMER)


def test_names_that_differ_in_case_alone_are_two_columns_where_a_table_has_both() -> None:
    both = struct_of_ddl("x INT, X BIGINT")
    assert find_changes(both, both, {}) == []


def test_a_landing_makes_the_changes_that_it_is_allowed() -> None:
    add, widen, rename = (
        Change("add", "a", "int"),
        Change("widen", "b", "bigint", "int"),
        Change("rename", "c", "int", "d"),
    )
    require_allowed([], "none")
    require_allowed([rename, widen, add], "rename")
    require_allowed([add, widen], "widen")
    for needed, evolve, step in (
        ([add], "none", "add"),
        ([add, widen], "add", "widen"),
        ([rename, add], "widen", "rename"),
    ):
        with pytest.raises(WrongArgument, match=rf'evolve="{step}" \(--evolve {step}\)$') as caught:
            require_allowed(needed, evolve)  # type: ignore[arg-type]
        assert "add a int" in str(caught.value)
