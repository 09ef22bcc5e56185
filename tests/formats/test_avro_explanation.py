"""The fixes that the explanation of an incompatibility proposes."""

from __future__ import annotations

import json

import pytest
from corpora import Json, make_field, record

from schemactl.comparison.compatibility import compare
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import explain

ID = make_field("id", "long")


def explain_only_breakage(type_: SchemaType, strategy: str, old_fields: list[Json], new_fields: list[Json]) -> str:
    """Return the fix for the only incompatibility of two records with these fields."""
    old, new = (SchemaInfo(type_, json.dumps(record("Order", *fields)).encode()) for fields in (old_fields, new_fields))
    (breakage,) = compare([old], new, CompatibilityStrategy(strategy)).data
    return explain(breakage, new=new, old=old).fix


@pytest.mark.parametrize(
    ("type_", "strategy", "fix"),
    [
        (SchemaType.AVRO, "BACKWARD", 'if price is cost under a new name, add "aliases": ["cost"] to it; otherwise give '),
        (SchemaType.AVRO, "FORWARD", "if price is cost under a new name, keep cost next to it and write both, because an "),
        (SchemaType.JSON, "BACKWARD", "if price is cost under a new name, keep cost next to it, give both a default and "),
    ],
)  # fmt: skip
def test_a_rename_is_offered_as_a_rename(type_: SchemaType, strategy: str, fix: str) -> None:
    old_fields, new_fields = [ID, make_field("cost", "int")], [make_field("price", "long"), ID]
    if strategy == "FORWARD":
        new_fields = [make_field("price", "int"), ID]
    assert explain_only_breakage(type_, strategy, old_fields, new_fields).startswith(fix)


@pytest.mark.parametrize(
    ("old_fields", "new_fields"),
    [
        ([ID], [ID, make_field("price", "long")]),
        ([ID, make_field("cost", "string")], [ID, make_field("price", "long")]),
        ([ID, make_field("cost", "int"), make_field("tax", "int")], [ID, make_field("price", "long")]),
        ([ID, make_field("cost", "int")], [ID, make_field("price", "long"), make_field("tax", "long", default=0)]),
    ],
)
def test_field_with_several_or_no_candidates_is_new(old_fields: list[Json], new_fields: list[Json]) -> None:
    fix = explain_only_breakage(SchemaType.AVRO, "BACKWARD", old_fields, new_fields)
    assert fix == 'give the field a default, for example "default": 0.'
