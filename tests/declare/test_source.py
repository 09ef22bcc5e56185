"""From JSON pointers to places, in JSON text and in YAML nodes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import Source
from schemactl.core.json_pointer import join_pointer, split_pointer
from schemactl.declare.source_location import JsonSyntaxError, JsonText, find_node, locate_node, place, scan
from schemactl.declare.yaml_parser import compose

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
BLANKS = st.lists(st.sampled_from(["", " ", "\n", "\t", "\r\n", "/* x */", '/* \n"{ */', "// ]\n"]), min_size=1)


def list_pointers(value: Any, way: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """List every pointer into `value` with its value."""
    pointers = [(way, value)]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        pointers += list_pointers(member, (*way, str(key)))
    return pointers


def render_json(value: Any, blanks: list[str]) -> str:
    """Render `value` as JSON with blanks and comments in all possible places."""
    next_blanks = iter(blanks * 1000)
    text = json.dumps(value, ensure_ascii=False)
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', text)
    return "".join(next(next_blanks, "") + part for part in parts)


def text_at(text: str, source: Source) -> str:
    """Return the rest of `text` from a place on."""
    lines = text.split("\n")
    return "\n".join([lines[source.line - 1][source.column - 1 :], *lines[source.line :]])


@given(VALUES, BLANKS)
def test_every_pointer_lands_on_its_value(value: Any, blanks: list[str]) -> None:
    text = render_json(value, blanks)
    definition = JsonText(text, lambda offset: place("a.avsc", text, offset))
    for way, expected in list_pointers(value):
        rest = blank_comments(text_at(text, definition.locate(way)))
        actual, _ = json.JSONDecoder().raw_decode(rest)
        assert expected == actual
        assert split_pointer(join_pointer(way)) == way or way in ((), ("",))


@given(VALUES)
def test_every_pointer_into_yaml_lands_on_its_node(value: Any) -> None:
    root = yaml.compose(yaml.safe_dump(value))
    assert root is not None
    for way, expected in list_pointers(value):
        assert yaml.SafeLoader("").construct_document(find_node(root, way)) == expected


def test_what_does_not_exist_is_placed_at_the_nearest_that_does() -> None:
    text = '{"fields": [\n  {"name": "a", "type": ["null", "int"]}\n]}'
    definition = JsonText(text, lambda offset: place("a.avsc", text, offset))
    assert definition.locate(("fields", "0", "type", "1")) == Source("a.avsc", 2, 34)
    assert definition.locate(("fields", "0", "type", "7")) == Source("a.avsc", 2, 25)
    assert definition.locate(("fields", "0", "default")) == Source("a.avsc", 2, 3)
    assert definition.locate(("fields", "1", "type")) == Source("a.avsc", 1, 12)
    assert definition.locate(("symbols",)) == Source("a.avsc", 1, 1)
    root = compose("a.yaml", b"a: [b, {c: d}]")[0]
    assert locate_node("a.yaml", find_node(root, ("a", "1", "c", "e"))) == Source("a.yaml", 1, 12)
    assert locate_node("a.yaml", find_node(root, ("a", "x"))) == Source("a.yaml", 1, 4)


def test_text_that_is_no_json_is_placed_at_its_start() -> None:
    assert JsonText("{", lambda offset: Source("a", 1, offset + 1)).locate(("a",)) == Source("a", 1, 1)


@pytest.mark.parametrize(
    ("written_pointer", "parts"),
    [
        ("", ()),
        ("/", ()),
        ("/fields/1/type/items", ("fields", "1", "type", "items")),
        ("/messages/web~1Click/a~0b", ("messages", "web/Click", "a~b")),
    ],
)
def test_pointers_are_read_as_java_and_the_rfc_write_them(written_pointer: str, parts: tuple[str, ...]) -> None:
    assert split_pointer(written_pointer) == parts


def accepted_by_json(text: str) -> bool:
    def raise_value_error(_: str) -> None:
        raise ValueError

    try:
        json.loads(text, parse_constant=raise_value_error)
    except ValueError:
        return False
    return True


@given(
    st.text('[]{},:"\\tfn0123456789.eE+-  \n', max_size=12)
    | st.builds(
        lambda value, at, new: (text := json.dumps(value))[: at % (len(text) + 1)] + new + text[at % (len(text) + 1) :],
        VALUES,
        st.integers(0, 200),
        st.sampled_from(["", ",", '"', "]", "}", "\\", "0", "\n", "nul", "\x01", ":", "-", ".", "e5"]),
    )
)
def test_the_scanner_accepts_what_json_accepts(text: str) -> None:
    if accepted_by_json(text):
        assert scan(text).offsets
    else:
        with pytest.raises(JsonSyntaxError) as caught:
            scan(text)
        assert 0 <= caught.value.offset <= len(text)


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("", 0, "the definition is empty"),
        ("[1,]", 2, "there is a comma before `]`"),
        ('{"a": 1,}', 7, "there is a comma before `}`"),
        ("{a: 1}", 1, "expected a key in double quotes, found `a`"),
        ('{"a" 1}', 5, "expected `:` after the key, found `1`"),
        ('{"a": True}', 6, "expected a value, found `True`"),
        ("[1 2]", 3, "expected `,` or `]`, found `2`"),
        ("[1", 2, "the text ends where `,` or `]` was expected"),
        ('["a', 1, "this text in quotes does not end on its line"),
        ('["\\q"]', 2, "`\\q` is not a JSON escape"),
        ('["a\tb"]', 3, "a text in quotes contains the control character U+0009"),
        ("[1] /* x", 4, "this comment is never closed"),
        ("01", 0, "expected a value, found `01`"),
        ("{} []", 3, "expected the end of the text, found `[`"),
        ("[\x00]", 1, "expected a value, found the character U+0000"),
        ("[" * 300, 250, "this is nested more than 250 levels deep"),
    ],
)
def test_what_is_no_json_is_told_where_it_ends_to_be(text: str, offset: int, problem: str) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        scan(text)
    assert (offset, problem) == (caught.value.offset, caught.value.message)


def test_repeated_keys_are_all_found() -> None:
    assert scan('{"a": 1, "b": {"c": 1, "c": 2}, "\\u0061": 3}').duplicates == [("c", 23), ("a", 32)]


def test_places_in_a_long_text_are_exact() -> None:
    text = "[" + ",".join(f'{{"name": "field{number}"}}' for number in range(10_000)) + "]"
    definition = JsonText(text, lambda offset: Source("a.avsc", 1, offset + 1))
    for number in range(0, 10_000, 1_000):
        located = definition.locate((str(number), "name"))
        assert text[located.column - 1 :].startswith(f'"field{number}"')


@given(st.lists(st.sampled_from(['"', "\\", "/", "*", "/*", "*/", "//", "\n", "\r", "a", " ", "{"])).map("".join))
def test_a_blank_comment_has_the_length_of_the_comment(text: str) -> None:
    assert len(blank_comments(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1 /* a\n\r\n */ 2", "1     \n\r\n    2"),
        ('"/* a */" // "b\n3', '"/* a */"      \n3'),
        ("// a\r1", "    \r1"),
        ("/*/ 1 */2", "        2"),
        ("/**/1", "    1"),
        ("1 /* 2 // 3", "1 /* 2 // 3"),
        ('1 "/* 2 */', '1 "/* 2 */'),
        (r'"\" /* 1 */" /* 2 */', r'"\" /* 1 */"        '),
    ],
)
def test_a_comment_is_blanked_and_what_is_never_closed_is_left(text: str, plain: str) -> None:
    assert blank_comments(text) == plain
