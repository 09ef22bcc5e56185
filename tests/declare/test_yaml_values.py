"""YAML files as values: YAML 1.2's core schema, with both of PyYAML's parsers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from textwrap import indent
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.core.errors import DeclarationError, Source
from schemactl.core.schema import MAX_DEPTH
from schemactl.declare.files import MAX_BYTES
from schemactl.declare.source_location import JsonText
from schemactl.declare.yaml_parser import (
    COMPOSER,
    MAX_VALUES,
    PythonComposer,
    YamlText,
    compose,
    locate_in_scalar,
    read_yaml,
)

pytestmark = pytest.mark.slow

# Texts like 0E0 are numbers in YAML 1.2 and texts in 1.1, so that PyYAML writes them without quotes.
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"], exclude_characters="\ufeff")
).filter(lambda text: text[:1] not in {*"+-.0123456789"})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PRINTABLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PRINTABLE, inner, max_size=4),
    max_leaves=15,
)
STYLES = st.fixed_dictionaries(
    {"default_flow_style": st.sampled_from([True, False, None]), "indent": st.integers(2, 6)}
    | {"width": st.sampled_from([20, 10_000]), "allow_unicode": st.booleans()}
)


def describe(node: yaml.Node) -> object:
    """Return everything that values and places are made from."""
    if isinstance(node, yaml.MappingNode):
        content: object = [(describe(key), describe(value)) for key, value in node.value]
    else:
        content = [*map(describe, node.value)] if isinstance(node, yaml.SequenceNode) else node.value
    style = node.style or None if isinstance(node, yaml.ScalarNode) else None
    return type(node), node.tag, content, style, node.start_mark.line, node.start_mark.column


def is_composed_equally(text: str) -> bool:
    """Return whether PyYAML's Python parser gives the same nodes as the parser that is used here."""
    used, other = (compose("a.yaml", text.encode(), composer) for composer in (COMPOSER, PythonComposer))
    return [*map(describe, used)] == [*map(describe, other)]


def value_of(text: str) -> Any:
    """Return the value of a file with one document and without problems."""
    documents, problems = read_yaml("a.yaml", text.encode())
    assert problems == []
    assert len(documents) == 1
    return documents[0].value


@given(VALUES, STYLES)
@EXAMPLES
def test_what_yaml_dumps_reads_back_as_yaml_load_reads_it(value: Any, style: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, **style)
    assert value_of(text) == yaml.safe_load(text) == value
    assert is_composed_equally(text)


TEXTS = """
no yes on y tRUE nULL 0O17 0o18 0x1G -0x1F 0b11 1_000 12:30 190:20:30.15 2024-01-01 2024-01-01T12:00:00Z e3 . + 1.2.3 4.0.7 inf = <<
"""
OTHERS: dict[str, Any] = {
    "true": True,
    "True": True,
    "FALSE": False,
    "~": None,
    "null": None,
    "Null": None,
    "": None,
    "12": 12,
    "-12": -12,
    "+12": 12,
    "-0": 0,
    "017": 17,
    "0o17": 15,
    "0x1F": 31,
    ".inf": math.inf,
    "1.0": 1.0,
    "1.": 1.0,
    ".5": 0.5,
    "-.5": -0.5,
    "1e3": 1000.0,
    "1E-3": 0.001,
    "1.5e+3": 1500.0,
    "-.INF": -math.inf,
    "'1'": "1",
    '"true"': "true",
    "|\n    1\n": "1\n",
}


def test_plain_values_follow_the_core_schema() -> None:
    for text, value in {**{text: text for text in TEXTS.split()}, **OTHERS}.items():
        actual = value_of(f"- {text}\n")[0]
        assert (text, actual, type(actual)) == (text, value, type(value))
        assert is_composed_equally(f"- {text}\n")
    assert math.isnan(value_of("[.nan]")[0])


def test_several_documents_are_several_values() -> None:
    documents, problems = read_yaml("a.yaml", b"a: 1\n---\nb: 2\n...\n---\nc: 3\n")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert problems == []


def test_aliases_are_values_like_others() -> None:
    assert value_of("a: &a {b: [1, 2]}\nc: *a\nd: [*a, *a]\n") == {
        "a": {"b": [1, 2]},
        "c": {"b": [1, 2]},
        "d": [{"b": [1, 2]}, {"b": [1, 2]}],
    }


def only_problem(data: bytes, read: Callable[[str, bytes], object] = read_yaml) -> str:
    """Return the only problem of an unreadable file."""
    with pytest.raises(DeclarationError) as caught:
        read("a.yaml", data)
    (problem,) = caught.value.problems
    return str(problem)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


ALIASES = f"the aliases of this value make the file larger than {MAX_BYTES:,} bytes"
DEEP = f"1:1: the file is nested more than {MAX_DEPTH} levels deep"
HOSTILE: dict[bytes, str] = {
    BOMB.encode(): f"6:4: {ALIASES}",
    b"- &a " + b"x" * 4_000_000 + b"\n- *a\n": f"1:3: {ALIASES}",
    b"&a [*a]": "1:1: this value contains an alias of itself",
    **{start * 100_000: DEEP for start in (b"[", b"- ", b"? ")},
    b"#"
    * (
        10 << 20
    ): "1:1: the file has 10,485,760 bytes; a declaration, definition or file of samples has at most 5,242,880",
    b"\x00\x01\x02\xff\xfe": "1:4: byte 0xFF is not UTF-8 (the file is binary)",
    b"PK\x03\x04\x00\x00": "1:5: the file is binary: it contains a zero byte",
    "topic: é".encode("latin-1"): "1:8: byte 0xE9 is not UTF-8",
    "a: 1\nb: ü\n".encode("utf-16"): "1:1: byte 0xFF is not UTF-8 (the file is binary)",
    "\ufefftopic: a".encode(): "1:1: the file starts with a byte order mark",
    b"a: 1\nb: \x07\n": "2:4: the character U+0007 is not allowed in YAML",
    "a: é\x80".encode(): "1:5: the character U+0080 is not allowed in YAML",
    b"\r\ra: [1 2\r3": "4:2: expected `,` or `]` of the list that starts at line 3",
    "a: [1\x85\u2028b: [".encode(): "1:12: this is not YAML",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": "1:1: this is a Git LFS pointer",
}


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:20]))
def test_hostile_files_are_one_problem(data: bytes) -> None:
    assert only_problem(data).startswith(f"a.yaml:{HOSTILE[data]}")


def test_the_python_parser_survives_deep_files_too() -> None:
    compose_in_python = partial(compose, composer_class=PythonComposer)
    assert "nested more than" in only_problem(b"[" * 2_000, compose_in_python)
    assert value_of("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert is_composed_equally("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_a_file_has_no_more_than_so_many_values() -> None:
    problem = only_problem(b"[" + b"a," * MAX_VALUES)
    assert problem == f"a.yaml:1:1: the file has more than {MAX_VALUES:,} keys and values"
    assert len(value_of("[" + "a," * (MAX_VALUES - 1) + "]")) == MAX_VALUES - 1


JSON_TEXTS = st.recursive(
    st.integers(0, 99) | st.text("ab\"'\\é🛒 /:#", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


def list_pointers(value: Any, way: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """List every pointer into `value`."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(inner for key, member in members for inner in list_pointers(member, (*way, str(key))))]


EMBEDDED: dict[str, Callable[[str], str]] = {
    "block": lambda text: "a:\n  b: |\n" + indent(text, " " * 5, lambda _line: True) + "\n",
    "block of Windows": lambda text: "a:\r\n  b: |1\r\n" + "".join(f"      {line}\r\n" for line in text.split("\n")),
    "single quotes": lambda text: "é: 1\na: {c: 🛒, b: '" + text.replace("'", "''") + "'}\n",
    "double quotes": lambda text: 'a: {c: "🛒", b: ' + json.dumps(text, ensure_ascii=False) + "}\n",
}
"""JSON text as a value in YAML."""


@given(JSON_TEXTS, st.sampled_from(list(EMBEDDED)))
@EXAMPLES
def test_json_inside_yaml_has_exact_places(value: Any, style: str) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=None if "quotes" in style else 1)
    file = EMBEDDED[style](text)
    node = YamlText("a.yaml", file.encode()).node(0, ("a", "b"))
    definition = JsonText(node.value, partial(locate_in_scalar, "a.yaml", file.encode(), node))
    for way in list_pointers(value):
        source = definition.locate(way)
        first, *others = file.split("\n")[source.line - 1 :]
        rest = "\n".join([first[source.column - 1 :], *others])
        if style == "single quotes":
            rest = rest.replace("''", "'")
        if style == "double quotes":
            rest = yaml.safe_load('"' + rest[: rest.rindex("}")])
        expected = value
        for part in way:
            expected = expected[int(part)] if isinstance(expected, list) else expected[part]
        assert json.JSONDecoder().raw_decode(rest)[0] == expected


def test_a_folded_text_is_placed_at_its_start() -> None:
    data = b"a:\n  b: >\n    [1,\n    2]\n"
    node = YamlText("a.yaml", data).node(0, ("a", "b"))
    assert locate_in_scalar("a.yaml", data, node, 3) == Source("a.yaml", 2, 6)


def test_a_yaml_text_locates_keys_of_each_document() -> None:
    text = YamlText("a.yaml", b"a: 1\n---\nb: {c: [1, 22]}\n")
    assert text.locate(1, ("b", "c", "1")) == Source("a.yaml", 3, 12)
    assert text.locate(1, ("b", "x")) == Source("a.yaml", 3, 4)
    assert YamlText("a.yaml", b"{").locate(0, ()) == Source("a.yaml", 1, 1)


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\u2029"])
def test_line_breaks_of_older_yaml_are_characters(letter: str) -> None:
    text = f"# comment{letter}a: 1\nb: x{letter}y\n\"k{letter}\": 'u{letter} v'\nc: |\n  w{letter}# z\nd: {letter}%TAG\ne: \ue000\n"
    (document,), problems = read_yaml("a.yaml", text.encode())
    assert problems == []
    assert document.value == {
        "b": f"x{letter}y",
        f"k{letter}": f"u{letter} v",
        "c": f"w{letter}# z\n",
        "d": f"{letter}%TAG",
        "e": "\ue000",
    }
    assert YamlText("a.yaml", text.encode()).locate(0, ("d",)) == Source("a.yaml", 6, 4)
    assert is_composed_equally(text)
