"""The text of JSON values is the text of `json.dumps`, as a whole and in pieces."""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.core.json_values import Json, json_pieces, json_text, laid_out

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


class Color(StrEnum):
    """A text that is an enum."""

    RED = "red"


class Level(IntEnum):
    """A number that is an enum."""

    HIGH = 3


def make_cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


@given(st.dictionaries(st.text(), values, max_size=5))
def test_the_pieces_of_an_object_are_its_text(value: Json) -> None:
    text = "".join(json_pieces(value))
    assert text == json_text(value)
    assert text == json.dumps(value, indent=2, ensure_ascii=False)
    assert json.loads(text) == json.loads(laid_out(value, 30)) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        '\x00\x1f\x7f\u2028\U0001f600"\\/',
        0,
        -0.0,
        1.5e300,
        10**40,
        True,
        None,
        [],
        {},
        [[], {}, [[]], {"": {}}],
        (1, ("a", [2])),
        {1: "a", "1": "b", None: [], False: {}, 2.5: None},
        {Color.RED: Color.RED, "level": Level.HIGH, "levels": [Level.HIGH]},
    ],
)
def test_text_is_the_text_of_the_standard_library(value: Any) -> None:
    assert json_text(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_lone_surrogates_are_escaped() -> None:
    assert json_text(["\ud800 \u00e9"]) == '[\n  "\\ud800 \u00e9"\n]'


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([float("nan")], ValueError),
        ({"a": float("-inf")}, ValueError),
        ([{1, 2}], TypeError),
        ({"a": b"bytes"}, TypeError),
        ({(1, 2): "a"}, TypeError),
        (make_cycle(), ValueError),
    ],
)
def test_values_that_are_not_json_are_rejected(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        json_text(value)
