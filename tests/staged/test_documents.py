"""YAML of the plain kind: whatever is read on sight is what the complete reading makes of it, and has no problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.declare.yaml_text import read_yaml
from schemactl.staged.avro import NotPlain
from schemactl.staged.documents import MAX_DEPTH, documents

ROOT = Path(__file__).parent.parent.parent

SCALARS = [
    *(
        "a",
        "a b",
        "null",
        "~",
        "true",
        "True",
        "no",
        "0",
        "-1",
        "+1",
        "010",
        "1e3",
        "0x1F",
        "12:30",
        "2024-01-01",
        ".5",
    ),
    *(
        '"a"',
        '"\\u00e9"',
        '"4"',
        "'it''s'",
        "../a.avsc",
        "./a",
        "origin/main",
        "<<",
        "*a",
        "&a b",
        "!t a",
        "é",
        "|",
        ">-",
    ),
    *(
        "[a, b]",
        "[1, null]",
        "{a: 1}",
        "{a: b, a: c}",
        "{1: a}",
        "{}",
        "[]",
        "a: b",
        "# a",
        "a # b",
        "%a",
        "@a",
        "`a",
        "-",
        "? a",
    ),
]


def same(data: bytes) -> bool:
    """Whether it was read on sight; then the complete reading has the same values, and nothing to remark."""
    try:
        seen = documents(data)
    except NotPlain:
        return False
    found, problems = read_yaml("a.yaml", data)
    assert problems == []
    assert repr([each.value for each in found]) == repr(seen)
    return True


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "1", '"x"', "null", "a b"]), st.sampled_from(SCALARS)),
        max_size=4,
    )
)
def test_mappings_are_what_the_complete_reading_makes_of_them(lines: list[tuple[str, str]]) -> None:
    same("".join(f"{key}: {value}\n" for key, value in lines).encode())


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-|>{}[],#&*!%'\"\n\t 019~.<=_\\\x00\ufeff\ud800é", max_size=24))
def test_any_text_is_what_the_complete_reading_makes_of_it(text: str) -> None:
    same(text.encode("utf-8", "surrogatepass"))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-20, 2000), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(value=VALUES, flow=st.booleans())
def test_what_is_written_by_a_program_is_what_the_complete_reading_makes_of_it(
    value: Any, *, flow: bool
) -> None:
    same(yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True).encode())


def test_the_declarations_of_the_examples_are_read_on_sight() -> None:
    files = [path.read_bytes() for path in (ROOT / "examples").rglob("*.yaml")]
    assert sum(map(same, files)) > len(files) * 0.8


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "a: &x [*x]",
        "a: \xff",
        "a: 'b",
        "a: 1\na: 2",
    ],
)
def test_what_is_too_deep_or_wrong_is_left_alone(text: str) -> None:
    with pytest.raises(NotPlain):
        documents(text.encode("latin-1"))
