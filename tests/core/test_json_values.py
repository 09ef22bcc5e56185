"""JSON of values and dataclasses, as a whole and in pieces; the text is the text of `json.dumps`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.core.findings import Outcome
from schemactl.core.json_values import OPTIONAL, format_json, from_json, json_pieces, json_text, make_view, to_json
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit, SchemaType

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


@dataclass(frozen=True)
class Document:
    """A document with members of any kind."""

    first: Any
    second: Any
    third: Any = field(default=None, metadata=OPTIONAL)


@given(values, st.lists(values, max_size=3), values)
def test_the_pieces_of_a_document_are_its_text(first: Any, second: list[Any], third: Any) -> None:
    document = Document(first, tuple(second), third)
    value = to_json(document)
    text = "".join(json_pieces(document))
    assert text == json_text(value) == json.dumps(value, indent=2, ensure_ascii=False)
    assert json.loads(text) == json.loads(format_json(value, 30)) == value


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


@dataclass(frozen=True)
class Inner:
    """A dataclass with a key that may be left out."""

    text: str
    absent: int | None = None
    left_out: int | None = field(default=None, metadata=OPTIONAL)


class Severity(Enum):
    """An enum whose values are text."""

    HIGH = "high"


TOPIC = TopicName.parse("shop/sales/orders")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (Severity.HIGH, "high"),
        (Outcome.OK, "ok"),
        (SchemaType.AVRO, 4),
        (TOPIC, "persistent://shop/sales/orders"),
        (TOPIC.namespace_name, "shop/sales"),
        (date(2027, 1, 31), "2027-01-31"),
        (Path("a") / "b", "a/b"),
        (b"\0\1", "AAE="),
        ((1, [TOPIC]), [1, ["persistent://shop/sales/orders"]]),
        (iter((1, 2)), [1, 2]),
        ({TOPIC: (Severity.HIGH,)}, {"persistent://shop/sales/orders": ["high"]}),
        (Inner("a"), {"text": "a", "absent": None}),
        (Inner("a", 1, 2), {"text": "a", "absent": 1, "left_out": 2}),
        (Commit("ab", 5, "Subject"), {"id": "ab", "time_s": 5, "subject": "Subject"}),
    ],
)
def test_a_value_is_encoded_by_its_type(value: object, expected: object) -> None:
    encoded = to_json(value)
    assert encoded == expected
    assert type(encoded) is type(expected)
    assert json.loads(json.dumps(encoded)) == expected


@dataclass(frozen=True)
class Encoded:
    """A value that encodes itself."""

    name: str

    def to_json(self) -> dict[str, str]:
        """Return the JSON value."""
        return {"called": self.name}


def test_a_value_with_its_own_encoding_is_encoded_by_it() -> None:
    assert to_json({"values": (Encoded("a"),)}) == {"values": [{"called": "a"}]}


@dataclass(frozen=True)
class Entry:
    """An entry of a file that is read again."""

    state: Literal["new", "old"]
    numbers: tuple[int, ...]
    texts: dict[str, str | None]
    commit: Commit | None = None


@dataclass(frozen=True)
class Numbers:
    """A file that is read again."""

    entries: list[Entry]
    is_whole: bool


ENTRY = {"state": "new", "numbers": [0, -(1 << 62)], "texts": {"a": None, "b": "c"}}


def test_a_document_is_read_as_it_was_written() -> None:
    entry = Entry("old", (1, 2), {"a": None}, Commit("ab", 5, "Subject"))
    document = Numbers([entry, Entry("new", (), {})], is_whole=True)
    assert from_json(Numbers, json.loads(json_text(to_json(document)))) == document


@pytest.mark.parametrize("depth", [100, 250, 100_000])
def test_unknown_keys_are_ignored_unless_they_are_nested_too_deeply(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    value = {"entries": [ENTRY | {"unknown": nested}], "is_whole": False, "unknown": nested}
    if depth > 200:
        with pytest.raises(ValueError, match=r"^it is nested too deeply$"):
            from_json(Numbers, value)
    else:
        entry = Entry("new", (0, -(1 << 62)), {"a": None, "b": "c"})
        assert from_json(Numbers, value) == Numbers([entry], is_whole=False)


def test_lone_surrogates_of_a_document_are_escaped() -> None:
    entry = from_json(Entry, ENTRY | {"texts": {"\ud800\u00e9": "\udfff"}})
    assert entry.texts == {"\\ud800\u00e9": "\\udfff"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"state": None}, "`entries[0].state` is not valid: Input should be 'new' or 'old'"),
        ({"state": "older"}, "`entries[0].state` is not valid: Input should be 'new' or 'old'"),
        ({"state": ["new"]}, "`entries[0].state` is not valid: Input should be 'new' or 'old'"),
        ({"numbers": [1, True]}, "`entries[0].numbers[1]` is true or false, expected a number"),
        ({"numbers": [1.0]}, "`entries[0].numbers[0]` is a number with a fraction, expected a number"),
        ({"numbers": {}}, "`entries[0].numbers` is an object, expected a list"),
        ({"texts": [[[]]]}, "`entries[0].texts` is a list, expected an object"),
        ({"texts": {"a": 1}}, "`entries[0].texts.a` is a number, expected text"),
        ({"commit": "ab"}, "`entries[0].commit` is text, expected an object"),
        ({"commit": {"time_s": 5}}, "`entries[0].commit.id` is missing"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_location(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        from_json(Numbers, {"entries": [ENTRY | changes], "is_whole": True})
    assert from_json(Numbers, {"entries": [ENTRY], "is_whole": True}).is_whole


@dataclass(frozen=True)
class View:
    """A view of a commit."""

    id: str
    subject: str | None
    short: str
    version: int = 1


def test_a_view_has_the_given_values_then_the_attributes_of_its_source() -> None:
    assert make_view(View, Commit("abcdef0123456789", 0, "S")) == View("abcdef0123456789", "S", "abcdef012")
    assert make_view(View, Commit("ab", 0), id="", short="x") == View("", None, "x")
    with pytest.raises(TypeError, match="short"):
        make_view(View, Inner("a"), id="", subject=None)


@given(values)
def test_text_is_indented_as_by_the_standard_library(value: object) -> None:
    assert json_text(value) == json.dumps(value, indent=2, ensure_ascii=False)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": [-float("inf")]}])
def test_number_without_json_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(value)
