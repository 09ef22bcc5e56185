"""Edits of definitions in random layouts: only the edited part changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.edits import AddAlias, AddKey, DefinitionEdit, SetType, TextEdit, apply_edits, to_line_edits
from schemactl.core.errors import Source
from schemactl.core.json_pointer import join_pointer
from schemactl.declare.references import AvroFile
from schemactl.declare.source_location import JsonText
from schemactl.declare.strict_json import read_json
from schemactl.declare.text_edits import make_text_edit
from schemactl.declare.yaml_parser import YamlPart, YamlText, read_yaml

FIELDS: list[dict[str, Any]] = [
    {"name": "a", "type": "int"},
    {"type": ["null", "string"], "name": "ä🛒", "doc": "x: {y}, [z] // no comment"},
    {"name": "c", "type": {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}},
    {"name": "d", "aliases": ["x"], "type": {"type": "record", "name": "R", "fields": [{"name": "e", "type": "int"}]}},
    {"name": "f", "aliases": [], "type": {"type": "int"}},
    {"name": "g", "aliases": ["x", "y"], "type": "int", "order": "ignore"},
]
VALUES: tuple[Any, ...] = (0, None, "", [], {"e": 0}, "\0", 'a"b')
DEFINITION = {"type": "record", "name": "Order", "fields": FIELDS}


def list_edits() -> Iterator[tuple[DefinitionEdit, dict[str, Any]]]:
    """Yield edits with the definitions that they make."""
    for index, field in enumerate(FIELDS):
        place = f"/fields/{index}"
        for value in VALUES:
            yield AddKey(place, ("type", "name"), "default", value), with_field(index, {**field, "default": value})
        yield AddAlias(place, "old"), with_field(index, {**field, "aliases": [*field.get("aliases", []), "old"]})
        if field["type"] == "int":
            yield SetType(f"{place}/type", "long"), with_field(index, {**field, "type": "long"})
    yield SetType("/fields/4/type", "long"), with_field(4, {**FIELDS[4], "type": {"type": "long"}})
    symbols = {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}
    enum_field = {"name": "c", "type": {"type": "array", "items": symbols}}
    yield AddKey("/fields/2/type/items", ("symbols", "name"), "default", "A"), with_field(2, enum_field)


def with_field(index: int, field: dict[str, Any]) -> dict[str, Any]:
    return {**DEFINITION, "fields": [*FIELDS[:index], field, *FIELDS[index + 1 :]]}


def write_json(value: Any, layout: random.Random, indent: str = "") -> str:
    """Write JSON with random blanks, line breaks and comments."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=layout.random() < 0.5)
    is_long, comma_first = layout.random() < 0.6, layout.random() < 0.15
    inner = indent + layout.choice(["  ", "    ", "\t"])
    colon = layout.choice([": ", ":", " : "])
    members = list(value.items()) if isinstance(value, dict) else [(None, member) for member in value]
    texts = [
        (f"{json.dumps(key)}{colon}" if key is not None else "")
        + write_json(member, layout, inner if is_long else indent)
        for key, member in members
    ]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if not is_long or not texts:
        return (
            f"{opening}{layout.choice(['', ' '])}{layout.choice([', ', ','])}{closing}".replace(",", "")
            if not texts
            else (
                opening
                + layout.choice(["", " "])
                + layout.choice([", ", ","]).join(texts)
                + layout.choice(["", " "])
                + closing
            )
        )
    lines = []
    for number, text in enumerate(texts):
        comment = layout.choice(["", "", "", " // a, b", " /* c */", '  // {"d": 1}'])
        is_last = number == len(texts) - 1
        if comma_first:
            lines.append(f"{inner}{', ' if number else '  '}{text}{comment}")
        else:
            lines.append(f"{inner}{text}{'' if is_last else ','}{comment}")
    return f"{opening}\n" + "\n".join(lines) + f"\n{indent}{closing}"


def edit(file: AvroFile, change: DefinitionEdit) -> TextEdit:
    text_edit = make_text_edit(file, change)
    assert text_edit is not None
    return text_edit


def check_line_edit(text_edit: TextEdit) -> None:
    """Check that the edit of whole lines makes the same text."""
    [line_edit] = to_line_edits([text_edit])
    lines = text_edit.content.replace("\r\n", "\n").split("\n")
    assert tuple(lines[line_edit.start - 1 : line_edit.end]) == line_edit.old_lines
    lines[line_edit.start - 1 : line_edit.end] = line_edit.new_lines
    assert "\n".join(lines) == apply_edits(text_edit.content, [text_edit]).replace("\r\n", "\n")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("seed", range(40))
def test_json_in_any_layout_keeps_its_comments_and_line_ends(seed: int, line_end: str) -> None:
    layout = random.Random(seed)  # noqa: S311  no secret, but always the same
    text = (write_json(DEFINITION, layout) + layout.choice(["", "\n"])).replace("\n", line_end)
    json_text = JsonText(text, lambda offset: Source("a.avsc", 1, offset + 1))
    file = AvroFile("a.avsc", read_json(json_text), json_text)
    assert file.value == DEFINITION
    for change, expected in list_edits():
        text_edit = edit(file, change)
        new_text = apply_edits(text, [text_edit])
        assert json.loads(blank_comments(new_text)) == expected, (change, new_text)
        for comment in (" // a, b", "/* c */", '// {"d": 1}'):
            assert new_text.count(comment) == text.count(comment)
        assert new_text.count("\n") - new_text.count("\r\n") == (0 if line_end == "\r\n" else new_text.count("\n"))
        check_line_edit(text_edit)
        if not isinstance(change, SetType):
            assert list_comments(new_text) == list_comments(text), new_text


def list_comments(text: str) -> list[tuple[str, str]]:
    """Return each comment at the end of a line with the character before it, apart from a comma."""
    marks = (" // a, b", " /* c */", '  // {"d": 1}')
    lines = ((line, mark) for line in text.splitlines() for mark in marks if line.endswith(mark))
    return [(mark, line.removesuffix(mark).rstrip(",")[-1]) for line, mark in lines]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("flow", [True, False, None])
@pytest.mark.parametrize("indent", [2, 4])
def test_yaml_in_any_layout_declares_the_edited_definition(flow: bool | None, indent: int, line_end: str) -> None:  # noqa: FBT001
    schema = {"type": "AVRO", "definition": DEFINITION}
    text = yaml.safe_dump(
        {"topic": "a/b/c", "schema": schema},
        default_flow_style=flow,
        indent=indent,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
    ).replace("\n", line_end)
    yaml_text = YamlText("a.yaml", text.encode())
    file = AvroFile("a.yaml", DEFINITION, YamlPart(yaml_text, 0, ("schema", "definition")))
    for change, expected in list_edits():
        text_edit = edit(file, change)
        documents, problems = read_yaml("a.yaml", apply_edits(text, [text_edit]).encode())
        assert (documents[0].value["schema"]["definition"], problems) == (expected, []), (change, text_edit)
        check_line_edit(text_edit)


@pytest.mark.parametrize(
    "change",
    [
        AddKey("/fields/9", ("type",), "default", 0),
        AddKey("/fields/0/type", ("type",), "default", 0),
        AddKey("/fields/0", ("type",), "name", 0),
        AddAlias("/fields/3", "x"),
        SetType("/fields/1/type", "long"),
        SetType(join_pointer(["fields", 0, "x"]), "long"),
    ],
)
def test_part_that_the_text_does_not_have_is_not_edited(change: DefinitionEdit) -> None:
    json_text = JsonText(json.dumps(DEFINITION), lambda offset: Source("a.avsc", 1, offset + 1))
    assert make_text_edit(AvroFile("a.avsc", DEFINITION, json_text), change) is None
