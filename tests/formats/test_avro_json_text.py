"""Schemas and JSON values as Java prints them; the expected texts were printed by Avro 1.12 and Jackson 2."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpora import make_array, make_enum, make_field, make_fixed, map_of, parse_schema, record
from hypothesis import given
from hypothesis import strategies as st

from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import format_double, json_text, schema_text
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import equal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (-1234.5, "-1234.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (-3.5e-9, "-3.5E-9"),
        (1e300, "1.0E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_written_as_by_double_to_string(value: float, text: str) -> None:
    assert format_double(value) == text


@given(st.floats(allow_nan=False))
def test_double_reads_back_unchanged(value: float) -> None:
    assert float(format_double(value).replace("Infinity", "inf")) == value


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON_VALUES, st.booleans())
def test_json_text_reads_back_as_the_same_value(value: Any, pretty: bool) -> None:  # noqa: FBT001  hypothesis passes it
    assert json.loads(json_text(value, pretty=pretty)) == value


def test_jackson_escapes_little() -> None:
    assert json_text('"\\/\b\f\n\r\t\x00\x1f\x7f\u00e9\u2028\U0001f600') == (
        r'"\"\\/\b\f\n\r\t\u0000\u001F' + '\x7f\u00e9\u2028\U0001f600"'
    )


def test_nan_and_infinities_are_quoted() -> None:
    assert json_text([float("nan"), float("inf")]) == '["NaN","Infinity"]'


def test_arrays_stay_on_a_line_and_objects_do_not() -> None:
    assert json_text({"a": [], "b": {}, "c": [1, {"d": [[2], {"e": None}]}]}, pretty=True).splitlines() == [
        "{",
        '  "a" : [ ],',
        '  "b" : { },',
        '  "c" : [ 1, {',
        '    "d" : [ [ 2 ], {',
        '      "e" : null',
        "    } ]",
        "  } ]",
        "}",
    ]


def print_schema(definition: Any) -> str:
    return schema_text(parse_schema(definition, Release.R4_2))


def test_a_schema_is_printed_in_javas_order_of_keys() -> None:
    one = make_enum("E", "x", unit="m", default="x")
    inside = {"aliases": ["g"], "p": 1, "order": "ignore", "default": "x", "doc": "d"} | make_field("f", one)
    about = {"aliases": ["B", "m.C", ".D"], "unit": "kg", "doc": "about", "namespace": "n"}
    assert print_schema(about | record("A", inside, type="error")) == (
        '{"type":"error","name":"A","namespace":"n","doc":"about","fields":[{"name":"f","type":'
        '{"type":"enum","name":"E","symbols":["x"],"default":"x","unit":"m"},"doc":"d","default":"x",'
        '"order":"ignore","aliases":["g"],"p":1}],"unit":"kg","aliases":["B","m.C","D"]}'
    )


def test_name_omits_the_enclosing_namespace() -> None:
    plain = make_fixed("Plain", 1) | {"namespace": ""}
    types: list[Any] = [
        plain, make_fixed("m.Other", 1), make_fixed("record", 1), "Plain", "m.Other", "n.record", "A",
    ]  # fmt: skip
    text = print_schema(record("n.A", *(make_field(f"f{number}", type_) for number, type_ in enumerate(types))))
    assert [printed_field["type"] for printed_field in json.loads(text)["fields"]] == [
        plain, make_fixed("Other", 1) | {"namespace": "m"}, make_fixed("record", 1), "Plain", "m.Other", "n.record", "A",
    ]  # fmt: skip


def test_a_primitive_is_a_name_unless_it_has_properties() -> None:
    assert print_schema({"type": "int"}) == '"int"'
    assert print_schema(map_of({"type": "int", "logicalType": "date"}) | {"p": []}) == (
        '{"type":"map","values":{"type":"int","logicalType":"date"},"p":[]}'
    )


@pytest.mark.parametrize("pretty", [False, True])
def test_a_printed_schema_parses_as_an_equal_one(pretty: bool) -> None:  # noqa: FBT001  pytest passes it
    fields = make_field("next", ["null", "A"], default=None), make_field("all", map_of(make_array("A")), default={})
    one = parse_schema(record("n.A", *fields), Release.R4_0)
    assert equal(parse(schema_text(one, pretty=pretty), Release.R4_0), one)
