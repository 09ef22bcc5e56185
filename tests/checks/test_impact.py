"""Effects of a changed definition on tables, from StructTypes alone; tests/spark/test_tables.py compares them with Spark."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.checks.table_impact import (
    ADVICE,
    Effect,
    Impact,
    Pointers,
    compute_impact,
    describe_change,
    find_column_changes,
    format_sql_type,
    is_stopping,
    make_rewrite_statement,
    suggest_actions,
)
from schemactl.codec.sql_columns import is_widening
from schemactl.codegen import spark_types as types
from schemactl.codegen.spark_types import Decimal, SparkArray, SparkField, SparkMap, SparkType, Struct
from schemactl.codegen.topic_struct import StructOptions, former_names
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import key_value
from schemactl.formats.protobuf.protoc import Proto, compile_all

pytestmark = pytest.mark.slow

GENERATE = Generate("shop_schemas")


def make_avro(value: Any, kind: SchemaType = SchemaType.AVRO) -> SchemaInfo:
    return SchemaInfo(kind, json.dumps(value).encode())


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def make_field(name: str, of: Any, *aliases: str) -> dict[str, Any]:
    return {"name": name, "type": of, **({"aliases": aliases} if aliases else {})}


def order(*fields: Any, kind: SchemaType = SchemaType.AVRO) -> SchemaInfo:
    return make_avro(record(*fields), kind)


def look(old: SchemaInfo, new: SchemaInfo, *older: SchemaInfo) -> Impact:
    result = compute_impact(old, new, older=older, generate=GENERATE, release=Release.R4_0)
    assert result is not None
    return result


def describe_changes(old: SchemaInfo, new: SchemaInfo, *older: SchemaInfo) -> list[tuple[str, str]]:
    return [(change.effect, change.column) for change in look(old, new, *older).changes]


ATOMS: list[SparkType] = [
    *map(
        types.Atomic,
        ["byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp"],
    ),
    *(types.TIMESTAMP_NTZ, types.TIME, Decimal(1, 0), Decimal(38, 0), Decimal(38, 2), Decimal(38, 10)),
    *(Decimal(precision, scale) for precision in (9, 10, 11, 20) for scale in (0, 2)),
]


def test_widening_is_an_order() -> None:
    pairs = {pair for pair in permutations(map(format_sql_type, ATOMS), 2) if is_widening(*pair)}
    assert not any((new, old) in pairs for old, new in pairs)
    for old, middle in pairs:
        assert {new for before, new in pairs if before == middle} <= {new for before, new in pairs if before == old}


def structs_of(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Struct]:
    fields = st.lists(
        st.builds(SparkField, st.sampled_from("abcd"), of, st.booleans()),
        max_size=4,
        unique_by=lambda field: field.name,
    )
    return fields.map(lambda struct_fields: Struct(tuple(struct_fields)))


def contain_types(of: st.SearchStrategy[Any]) -> st.SearchStrategy[SparkType]:
    return st.builds(SparkArray, of, st.booleans()) | st.builds(SparkMap, of, st.booleans()) | structs_of(of)


STRUCTS = structs_of(st.recursive(st.sampled_from(ATOMS), contain_types, max_leaves=6))


@given(STRUCTS, STRUCTS)
@EXAMPLES
def test_changes_in_both_directions_concern_the_same_columns(old: Struct, new: Struct) -> None:
    forward_changes, backward_changes = find_column_changes(old, new, {}), find_column_changes(new, old, {})
    opposite_effects = {"added column": "column no longer written", "column no longer written": "added column"}
    structural_changes = {
        (opposite_effects[change.effect], change.path)
        for change in forward_changes
        if change.effect in opposite_effects
    }
    assert structural_changes == {
        (change.effect, change.path) for change in backward_changes if change.effect in opposite_effects
    }
    paths_of_type_changes = [
        {change.path for change in changes_of_direction if change.effect in ("rewrite", "type widened")}
        for changes_of_direction in (forward_changes, backward_changes)
    ]
    assert paths_of_type_changes[0] == paths_of_type_changes[1]


@given(STRUCTS, st.randoms())
@EXAMPLES
def test_the_order_of_columns_does_not_matter(one: Struct, random: Any) -> None:
    fields = random.sample(one.fields, len(one.fields))
    assert find_column_changes(one, Struct(tuple(fields)), {}) == ()


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_enum_symbols_docs_and_defaults_do_not_affect_tables(kind: SchemaType) -> None:
    old = order(make_field("status", {"type": "enum", "name": "S", "symbols": ["A"]}), kind=kind)
    status = {"type": "enum", "name": "S", "symbols": ["A", "B"], "default": "A", "doc": "d"}
    new = order({**make_field("status", status), "default": "B"}, kind=kind)
    assert look(old, new) == Impact()
    assert look(old, new).summary == "nothing"


def test_the_gravest_effect_comes_first_in_the_summary() -> None:
    old = order(make_field("a", "int"), make_field("b", "string"), make_field("c", "int"))
    new = order(make_field("x", "int"), make_field("a", "long"), make_field("b", "int"))
    assert look(old, new).summary == "rewrite, type widened, added column, column no longer written"


def test_a_renamed_field_is_followed_into_what_it_holds() -> None:
    address = record(make_field("postcode", "int"), name="Address")
    home = record(make_field("zip", "long", "postcode"), name="Address")
    old, new = order(make_field("address", address)), order(make_field("home", ["null", home], "address"))
    assert [(change.effect, change.column, change.former) for change in look(old, new).changes] == [
        ("renamed column", "home", ("address",)),
        ("renamed column", "home.zip", ("address", "postcode")),
        ("type widened", "home.zip", ()),
        ("may be null", "home", ()),
    ]


A, B, C = order(make_field("a", "int")), order(make_field("b", "int", "a")), order(make_field("c", "int", "b"))
FORMER_NAMES: dict[str, tuple[list[SchemaInfo], dict[str, tuple[str, ...]]]] = {
    "they are followed through every version": ([C, B, A], {"c": ("b", "a")}),
    "a version in between is missing": ([C, A], {"c": ("b",)}),
    "another column has the name now": (
        [order(make_field("c", "int", "b"), make_field("a", "int")), B, A], {"c": ("b",)},
    ),
    "they are found at every depth": (
        [
            order(
                make_field("items", {"type": "array", "items": record(make_field("sku", "string", "article"), name="Line")}),
                make_field(
                    "places", ["null", {"type": "map", "values": record(make_field("zip", "string", "postcode"), name="Place")}]
                ),
                make_field("choice", ["string", record(make_field("x", "int", "y"), name="Choice")]),
            )
        ],
        {"items.element.sku": ("article",), "places.value.zip": ("postcode",), "choice.member1.x": ("y",)},
    ),
}  # fmt: skip
"""The versions of a topic, newest first, and the former names of the columns of the newest version."""


@pytest.mark.parametrize(("versions", "expected"), FORMER_NAMES.values(), ids=FORMER_NAMES)
def test_columns_have_the_names_that_they_had_before(
    versions: list[SchemaInfo], expected: dict[str, tuple[str, ...]]
) -> None:
    reader, *older = versions
    names_by_path = former_names(reader, older, StructOptions(), Release.R4_0)
    assert {".".join(path): names for path, names in names_by_path.items()} == expected


def make_items(*fields: Any) -> SchemaInfo:
    return order(make_field("items", {"type": "array", "items": record(*fields, name="Item")}))


ID = make_field("id", "int")
ONE = order(ID, make_field("note", "int"), make_field("n", "int"), make_field("x", "int"))
WIDER = order(ID, make_field("note", "long"))
BACK = order(ID, make_field("note", "string"), make_field("n", "long"), make_field("x", "int"))
SKU, PRICE = make_field("sku", "string"), make_field("price", "double")
TEXT = SchemaInfo(SchemaType.STRING)

CHANGES: dict[str, tuple[list[SchemaInfo], list[tuple[str, str]]]] = {
    "columns that come back are compared with their last types": (
        [ONE, order(ID), BACK], [("rewrite", "note"), ("type widened", "n"), ("added column", "x")],
    ),
    "columns that come back are compared with the types of every version": (
        [ONE, WIDER, order(ID), order(ID, make_field("note", "double"))], [("rewrite", "note")],
    ),
    "columns without an earlier version are added": (
        [order(ID), BACK], [("added column", "note"), ("added column", "n"), ("added column", "x")],
    ),
    "a column that comes back inside another is compared with its last type": (
        [make_items(SKU, PRICE), make_items(SKU), make_items(SKU, make_field("price", "string"))],
        [("rewrite", "items.element.price")],
    ),
    "a name that another column had before is a rewrite": (
        [
            order(make_field("amount", "double")),
            order(make_field("total", "double", "amount")),
            order(make_field("total", "double", "amount"), make_field("amount", "double")),
        ],
        [("rewrite", "amount")],
    ),
    "the key and the value of a pair are columns": (
        [
            key_value.join(key=TEXT, value=order(ID), encoding="INLINE"),
            key_value.join(key=TEXT, value=order(make_field("no", "long", "id")), encoding="INLINE"),
        ],
        [("renamed column", "value.no"), ("type widened", "value.no")],
    ),
    "times are numbers before Spark 4.2": (
        [order(make_field("at", "long")), order(make_field("at", {"type": "long", "logicalType": "time-micros"}))], [],
    ),
}  # fmt: skip
"""The versions of a topic, oldest first, and effect and column of each change of the last one."""


@pytest.mark.parametrize(("versions", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_changed_definition_has_effects_on_columns(
    versions: list[SchemaInfo], expected: list[tuple[str, str]]
) -> None:
    *older, old, new = versions
    assert describe_changes(old, new, old, *reversed(older)) == expected


def test_a_rewrite_names_the_column_that_took_the_name() -> None:
    first = order(make_field("amount", "double"))
    renamed = order(make_field("total", "double", "amount"))
    taken = order(make_field("total", "double", "amount"), make_field("amount", "double"))
    (change,) = look(renamed, taken, renamed, first).changes
    assert change.successor == ("total",)
    assert describe_change(change).startswith("amount is now called total.")


def test_in_protobuf_a_field_is_its_number() -> None:
    head = 'syntax = "proto3"; package web; message Click { Page page = 2; repeated Page seen = 3;'
    texts = [
        f"{head} string url = 1; }} message Page {{ int32 n = 1; }}",
        f"{head} string href = 1; string by = 4; }} message Page {{ int64 number = 1; }}",
    ]
    old, new = compile_all([Proto.of_text(text, "web.Click") for text in texts])
    assert isinstance(old, SchemaInfo)
    assert isinstance(new, SchemaInfo)
    assert sorted(describe_changes(old, new)) == [
        ("added column", "by"),
        ("renamed column", "href"),
        *(("renamed column", f"{page}.number") for page in ("page", "seen.element")),
        *(("type widened", f"{page}.number") for page in ("page", "seen.element")),
    ]


def test_what_has_no_columns_has_no_impact() -> None:
    external, one = SchemaInfo(SchemaType.EXTERNAL), order(make_field("a", "int"))
    assert compute_impact(external, one, generate=GENERATE, release=Release.R4_0) is None
    assert compute_impact(one, external, generate=GENERATE, release=Release.R4_0) is None


def test_the_release_of_spark_decides_on_times() -> None:
    old = order(make_field("at", "long"))
    new = order(make_field("at", {"type": "long", "logicalType": "time-micros"}))
    later = compute_impact(old, new, generate=Generate("p", spark="4.2"), release=Release.R4_0)
    assert later is not None
    assert [change.effect for change in later.changes] == ["rewrite"]
    assert describe_change(later.changes[0]).startswith("at goes from bigint to time(6). Rewrite these tables")


LINE = record(make_field("sku", ["null", "string", "int"]), name="Line")
LINES = order(make_field("id", "int"), make_field("items", ["null", {"type": "array", "items": LINE}]))
POINTERS: dict[str, tuple[SchemaInfo, tuple[str, ...], str]] = {
    "a field": (LINES, ("items",), "/fields/1"),
    "a field of the records of an array": (LINES, ("items", "element", "sku"), "/fields/1/type/1/items/fields/0"),
    "a member of a union": (LINES, ("items", "element", "sku", "member1"), "/fields/1/type/1/items/fields/0/type/2"),
    "the part before a field that is gone": (LINES, ("items", "element", "gone"), "/fields/1/type/1/items"),
    "the definition of a field that is gone": (LINES, ("gone",), ""),
    "a field of the value of a pair": (
        key_value.join(key=TEXT, value=order(make_field("no", "long", "id")), encoding="INLINE"),
        ("value", "no"), "/value/fields/0",
    ),
}  # fmt: skip
"""A definition, the path of a column, and the pointer."""


@pytest.mark.parametrize(("info", "path", "pointer"), POINTERS.values(), ids=POINTERS)
def test_a_pointer_leads_to_the_field_or_as_far_as_there_is_one(
    info: SchemaInfo, path: tuple[str, ...], pointer: str
) -> None:
    assert Pointers(info, Release.R4_0, StructOptions()).find(path) == pointer


def test_a_definition_made_to_exhaust_is_rejected_in_bounded_work() -> None:
    inner: Any = "int"
    for number in range(60):
        again = f"N{number - 1}" if number else "int"
        inner = record(make_field("a", inner), make_field("b", again), name=f"N{number}")
    wide = order(make_field("x", inner))
    impact_of_change = look(order(make_field("x", "int")), wide)
    assert impact_of_change.refusal == "fully expanded, it has more than 100,000 columns and parts"
    assert compute_impact(wide, wide, generate=GENERATE, release=Release.R4_0) is None


def test_a_definition_that_nests_too_deep_is_not_compared() -> None:
    inner: Any = "int"
    for _ in range(900):
        inner = {"type": "array", "items": inner}
    deep = order(make_field("x", inner))
    assert compute_impact(deep, deep, generate=GENERATE, release=Release.R4_0) is None


def test_there_is_advice_for_all_that_happens_to_a_table() -> None:
    old = order(make_field("a", "int"), make_field("b", "string"), make_field("c", "int"))
    new = order(make_field("x", "int"), make_field("a", ["null", "long"]), make_field("d", "int", "c"))
    changes = look(old, new).changes
    assert [describe_change(change) for change in changes] == [
        "x int: added column, null in existing rows.",
        "a: type widened from int to bigint; Spark reads old files with the new type.",
        "a bigint: may be null from now on.",
        "d int: renamed column; existing rows have it as c.",
        "b string: column no longer written, null in new rows.",
    ]
    for word in ("delta.enableTypeWidening", "mergeSchema", "RENAME COLUMN", "DROP NOT NULL", "Parquet"):
        assert word in suggest_actions(changes, "shop/sales/orders")


def field_in(part: Any) -> Any:
    return make_field("s", {"type": "record", "name": "S", "fields": [part]})


NOTE = make_field("note", "string")
STATEMENTS: dict[str, tuple[list[Any], list[Any], str | None]] = {
    "a new column": ([NOTE], [NOTE, make_field("n", ["null", "int"])], None),
    "a column in place of another": ([NOTE], [make_field("n", "int")], None),
    "a column that may be null": ([NOTE], [make_field("note", ["null", "string"])], None),
    "a renamed column": ([NOTE], [make_field("text", "string", "note")], "EXCEPT (`note`), `note` AS `text` FROM"),
    "a wider column": (
        [make_field("q", "int")], [make_field("q", "long")], "EXCEPT (`q`), CAST(`q` AS bigint) AS `q` FROM",
    ),
    "a wider column with another name": (
        [make_field("q", "int")], [make_field("r", "long", "q")], "EXCEPT (`q`), CAST(`q` AS bigint) AS `r` FROM",
    ),
    "several columns": (
        [make_field("a", "int"), make_field("b", "float"), make_field("c", "string")],
        [make_field("x", "int", "a"), make_field("b", "double"), make_field("d", "string")],
        "EXCEPT (`a`, `b`), `a` AS `x`, CAST(`b` AS double) AS `b` FROM",
    ),
    "a renamed field of a column has no statement": (
        [field_in(make_field("a", "int"))], [field_in(make_field("b", "int", "a"))], "",
    ),
    "a wider field of a column has no statement for any column": (
        [field_in(make_field("a", "int")), make_field("q", "int")],
        [field_in(make_field("a", "long")), make_field("q", "long")],
        "",
    ),
}  # fmt: skip
"""Old and new fields, and the statement that rewrites a Delta table: empty if there is none, None if the change does not stop a landing."""


@pytest.mark.parametrize(("old", "new", "statement"), STATEMENTS.values(), ids=STATEMENTS)
def test_what_stops_a_landing_into_delta_has_the_command_and_the_statement(
    old: list[Any], new: list[Any], statement: str | None
) -> None:
    struct_changes = look(order(*old), order(*new)).changes
    text = suggest_actions(struct_changes, "shop/sales/orders")
    assert any(map(is_stopping, struct_changes)) == (statement is not None)
    command = "schemactl spark land shop/sales/orders --messages PATH --out TABLE --format delta --evolve rewrite"
    assert (command in text) == (statement is not None)
    if statement:
        whole = f"CREATE OR REPLACE TABLE delta.`TABLE` USING delta AS SELECT * {statement} delta.`TABLE`"
        assert make_rewrite_statement(struct_changes) == whole
        assert text.endswith(whole)
    else:
        assert make_rewrite_statement(struct_changes) == ""
        assert "CREATE OR REPLACE" not in text


def test_every_effect_has_its_place_in_the_order() -> None:
    assert sorted(ADVICE) == sorted(get_args(Effect))
