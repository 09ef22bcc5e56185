"""Find what an editor's cursor is on: a part of an Avro definition, a value of a declaration, or a name in a `.proto` file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml

from schemactl.core.errors import DeclarationError
from schemactl.declare.files import AVRO_SUFFIXES, PROTO_SUFFIX, YAML_SUFFIXES
from schemactl.declare.source_location import JsonSyntaxError, Scan, Tokens, scan
from schemactl.declare.yaml_parser import read_yaml

_DEFINITION: Final = "definition"

_PROTO_WORD: Final = re.compile(r"[\w.]+")
_PROTO_BLOCK: Final = re.compile(r"\b(?:message|enum)\s+(\w+)\s*\{|(\{)|(\})")
_PROTO_PACKAGE: Final = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_PROTO_FIELD: Final = re.compile(
    r"^\s*(?:(?:optional|required|repeated)\s+)?(?P<type>map\s*<[^>]*>|[\w.]+)\s+(?P<name>\w+)\s*=\s*(?P<number>\d+)"
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The part of a file at a position.

    Attributes:
        path: the file.
        document: the number of the YAML document, counted from 0.
        parts: the place in the document of a declaration, or () in another file.
        avro: the place in an Avro definition, or None outside of one.
        value: the scalar there as text, or "".
        is_key: whether it is the key of that place instead of its value.
        message: the full name of the enclosing message in a `.proto` file, or "".
        number: the number of the field there, or "".
    """

    path: str
    document: int = 0
    parts: Tokens = ()
    avro: Tokens | None = None
    value: str = ""
    is_key: bool = False
    message: str = ""
    number: str = ""


def find_cursor(path: str, text: str, offset: int) -> Cursor | None:
    """Return the part at `offset` of a file with this text, or None if there is no part, or the file does not parse."""
    if path.endswith(PROTO_SUFFIX):
        return _find_in_proto(path, text, offset)
    if path.endswith(AVRO_SUFFIXES):
        json_part = _find_in_json(text, offset)
        return Cursor(path, avro=json_part[0], value=json_part[1], is_key=json_part[2]) if json_part else None
    if path.endswith(YAML_SUFFIXES):
        return _find_in_yaml(path, text, offset)
    return None


# JSON


def _find_in_json(text: str, offset: int) -> tuple[Tokens, str, bool] | None:
    """Return the tokens at an offset, the text of the scalar there, and whether the offset is in a key."""
    try:
        values = scan(text)
    except JsonSyntaxError:
        return None
    number, parts = 0, []
    while True:
        for index, member in enumerate(values.members_of(number)):
            start = values.keys[member] if values.keys[member] >= 0 else values.offsets[member]
            if start <= offset <= values.stops[member]:
                number = member
                has_key = values.keys[member] >= 0
                parts.append(text[values.keys[member] + 1 : values.key_end(member) - 1] if has_key else str(index))
                break
        else:
            return tuple(parts), _read_scalar(values, number), False
        if values.keys[number] >= 0 and offset <= values.key_end(number):
            return tuple(parts), _read_scalar(values, number), True


def _read_scalar(values: Scan, number: int) -> str:
    text = values.text[values.offsets[number] : values.stops[number]]
    return "" if text[:1] in ("{", "[") else text.strip('"')


# YAML


def _find_in_yaml(path: str, text: str, offset: int) -> Cursor | None:
    try:
        documents, _ = read_yaml(path, text.encode())
    except DeclarationError:
        return None
    for number, document in enumerate(documents):
        node = document.node
        if not node.start_mark.index <= offset <= node.end_mark.index:
            continue
        parts, value, is_key = _find_innermost(node, offset)
        scalar = value.value if isinstance(value, yaml.ScalarNode) else ""
        if _DEFINITION not in parts:
            return Cursor(path, number, parts, value=scalar, is_key=is_key)
        # The definition of a schema may be written in place of a path: as YAML, or as JSON in a literal block.
        stop = parts.index(_DEFINITION) + 1
        if not isinstance(value, yaml.ScalarNode) or stop < len(parts):
            return Cursor(path, number, parts[:stop], avro=parts[stop:], value=scalar, is_key=is_key)
        if value.style != "|":
            return Cursor(path, number, parts, value=scalar, is_key=is_key)
        json_part = _find_in_json(scalar, _find_block_offset(text, value, offset))
        if json_part is None:
            return Cursor(path, number, parts)
        return Cursor(path, number, parts, avro=json_part[0], value=json_part[1], is_key=json_part[2])
    return None


def _find_innermost(node: yaml.Node, offset: int) -> tuple[Tokens, yaml.Node, bool]:
    """Return the place of the innermost node at `offset`, the node, and whether the offset is in its key."""
    parts: list[str] = []
    while True:
        children: list[tuple[str, yaml.Node | None, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            children = [(str(key.value), key, child) for key, child in node.value]
        elif isinstance(node, yaml.SequenceNode):
            children = [(str(index), None, child) for index, child in enumerate(node.value)]
        # Backwards: a block ends where the next key begins.
        for token, key, child in reversed(children):
            start = key.start_mark.index if key else child.start_mark.index
            if start <= offset <= max(child.end_mark.index, start):
                parts.append(token)
                if key and offset <= key.end_mark.index:
                    return tuple(parts), child, True
                node = child
                break
        else:
            return tuple(parts), node, False


def _find_block_offset(text: str, node: yaml.ScalarNode, offset: int) -> int:
    """Return the offset in a literal block's value of an offset in its file."""
    lines = node.value.split("\n")
    row = text.count("\n", 0, offset) - node.start_mark.line - 1
    if not 0 <= row < len(lines):
        return 0
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].partition("\n")[0].removesuffix("\r")
    indentation = len(line) - len(lines[row])
    return sum(len(other) + 1 for other in lines[:row]) + max(0, offset - start - indentation)


def get_value(value: Any, parts: Tokens) -> Any:
    """Return the part of a JSON value at `parts`, or None."""
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


# `.proto`


def _find_in_proto(path: str, text: str, offset: int) -> Cursor | None:
    line_start = text.rfind("\n", 0, offset) + 1
    line = text[line_start:].partition("\n")[0]
    word = next(
        (match for match in _PROTO_WORD.finditer(line) if match.start() <= offset - line_start <= match.end()), None
    )
    if word is None:
        return None
    messages: list[str] = []
    for match in _PROTO_BLOCK.finditer(text, 0, line_start):
        if match[3]:
            del messages[-1:]
        else:
            messages.append(match[1] or "")
    field = _PROTO_FIELD.match(line)
    is_name = bool(field and field.start("name") <= word.start() < field.end("name"))
    package = _PROTO_PACKAGE.search(text)
    message = ".".join(filter(None, [package[1] if package else "", *messages])) if messages else ""
    return Cursor(path, value=word[0], is_key=is_name, message=message, number=field["number"] if field else "")
