"""The JSON Schema that editors read and declarations are judged by: it says what the code behind it says."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.declare.shapes import PARSERS, definitions
from schemactl.formats import SPECS
from schemactl.model import OPTIONAL_CHECKERS, CompatibilityStrategy, ProtoCategory

SHAPES = definitions()


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside `value`."""
    if isinstance(value, dict):
        yield value
        for key, part in value.items():
            yield from schemas([*part.values()] if key == "properties" else part)
    elif isinstance(value, list):
        for part in value:
            yield from schemas(part)


def test_every_type_that_can_be_declared_has_the_shape_of_its_specification() -> None:
    names = {
        "avro": "Avro",
        "protobuf": "Protobuf",
        "proto": "ProtobufNative",
        "plain": "Plain",
        "pair": "KeyValue",
    }
    for declared_as, name in names.items():
        types = {type_.name: spec for type_, spec in SPECS.items() if spec.declared_as == declared_as}
        whole = sorted(type_ for type_, spec in types.items() if not spec.undeclarable)
        half = sorted(type_ for type_, spec in types.items() if not spec.unfit_half)
        assert sorted(SHAPES[f"{name}Shape"]["properties"]["type"]["enum"]) == whole
        if half:
            shape = SHAPES.get(f"{name}HalfShape") or SHAPES[f"{name}Shape"]
            assert sorted(shape["properties"]["type"]["enum"]) == half


def test_choices_are_those_of_the_model() -> None:
    strategies = [strategy.value for strategy in CompatibilityStrategy]
    assert SHAPES["Strategy"]["enum"] == strategies
    defaults = SHAPES["DefaultsShape"]["properties"]["schema_compatibility_strategy"]["enum"]
    assert defaults == [each for each in strategies if each != "UNDEFINED"]
    rules = SHAPES["ProtobufRulesShape"]["properties"]
    assert rules["rules"]["enum"] == list(get_args(ProtoCategory))
    checkers = rules["checkers"]["items"]["enum"]
    assert {each.rpartition(".")[2] for each in checkers} == set(OPTIONAL_CHECKERS)
    assert "|".join(keyword.kwlist) in SHAPES["GenerateShape"]["properties"]["package"]["pattern"]


def test_every_value_has_a_title_for_messages() -> None:
    for schema in schemas([*SHAPES.values()]):
        if "enum" in schema or schema.get("type") == "string":
            assert "title" in schema or set(schema) == {"enum"}


@pytest.mark.parametrize("name", ["topic", "namespace"])
@given(st.data())
def test_what_an_editor_accepts_as_a_name_is_one(name: str, data: st.DataObject) -> None:
    (pattern, *_) = {
        each["pattern"]
        for each in schemas([*SHAPES.values()])
        if each.get("format") == name and "pattern" in each
    }
    PARSERS[name](data.draw(st.from_regex(re.compile(pattern), fullmatch=True)).removesuffix("\n"))
