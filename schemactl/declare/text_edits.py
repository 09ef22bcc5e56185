"""Convert edits of a definition to edits of the text of its file, which keep the formatting of the file.

A new key has the separator, the indentation and the blanks around the colon of the key before it, and follows the comment on that
key's line. Comments, line ends and the order of keys stay.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from schemactl.core.edits import AddAlias, AddKey, AddReserved, AvroEdit, DefinitionEdit, RenameKey, SetType, TextEdit
from schemactl.core.errors import Source
from schemactl.core.json_pointer import split_pointer
from schemactl.declare.files import AVRO_SUFFIXES
from schemactl.declare.references import AvroFile
from schemactl.declare.source_location import JsonSyntaxError, JsonText, Scan, find_key_node
from schemactl.declare.yaml_parser import YamlPart, scalar

_Replacement = tuple[int, int, str]
"""Start and end offsets in a text, and the new text between them."""

_SEPARATOR: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")

_COLON: Final = re.compile(r"[ \t]*:[ \t]*")

_COMMENT_AFTER: Final = re.compile(
    r"(?P<comma>[ \t]*,)?(?P<comment>[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*))(?=\r?\n)"
)
"""A comma and a comment between a value and the end of its line."""


def make_text_edit(file: AvroFile, edit: DefinitionEdit) -> TextEdit | None:
    """Return the text edit of the definition in `file`, or None if only a person can make it.

    That is the case for JSON in a quoted YAML scalar, and for a part that the file does not have.
    """
    text = file.text
    if isinstance(edit, AddReserved):
        return None
    if isinstance(text, YamlPart):
        replacement = _edit_yaml(text, edit)
        content = text.text.data.decode()
    elif (block := text.read_block()) is not None:
        replacement = _edit_json(text, edit)
        replacement = replacement and _move_into_block(text, block, replacement)
        content = block
    elif text.escaped is not None:
        replacement = _edit_json(text, edit)
        if replacement:
            start, end, new_text = replacement
            escaped_text = json.dumps(new_text, ensure_ascii=False)[1:-1]
            replacement = text.escaped.offsets[start], text.escaped.offsets[end], escaped_text
        content = text.escaped.content
    elif file.path.endswith(AVRO_SUFFIXES):
        replacement = _edit_json(text, edit)
        content = text.text
    else:
        return None
    return TextEdit(file.path, *replacement, content) if replacement else None


# JSON


def _edit_json(text: JsonText, edit: AvroEdit) -> _Replacement | None:
    try:
        values = text.scan()
    except JsonSyntaxError:
        return None
    number: int | None = 0
    for part in split_pointer(edit.pointer):
        number = None if number is None else values.child(number, part)
    if number is None:
        return None
    if isinstance(edit, RenameKey):
        return values.keys[number], values.key_end(number), json.dumps(edit.name)
    is_object = values.text[values.offsets[number]] == "{"
    if isinstance(edit, AddKey):
        return _add_json_key(values, number, edit) if is_object else None
    if isinstance(edit, AddAlias):
        aliases = values.child(number, "aliases") if is_object else None
        if not is_object or aliases is not None:
            return None if aliases is None else _add_json_item(values, aliases, edit.name)
        return _add_json_key(values, number, AddKey(edit.pointer, ("name",), "aliases", [edit.name]))
    type_number = values.child(number, "type") if is_object else number
    if type_number is None or values.text[values.offsets[type_number]] != '"':
        return None
    return values.offsets[type_number], values.stops[type_number], json.dumps(edit.name)


def _add_json_key(values: Scan, number: int, edit: AddKey) -> _Replacement | None:
    """Return the replacement that adds a key after the first of `edit.after` that the object has, or after its last key."""
    text, members = values.text, list(values.members_of(number))
    if not members or values.child(number, edit.key) is not None:
        return None
    anchors = (values.child(number, name) for name in edit.after)
    anchor = next((member for member in anchors if member is not None), members[-1])
    stop = values.stops[anchor]
    colon = _COLON.fullmatch(text, values.key_end(anchor), values.offsets[anchor])
    entry = f"{json.dumps(edit.key)}{colon[0] if colon else ': '}{json.dumps(edit.value, ensure_ascii=False)}"
    begins = [values.keys[member] for member in members]
    separator = _find_separator(values, number, begins, members.index(anchor))
    return _insert_after(values.text, stop, separator, entry)


def _find_separator(values: Scan, number: int, begins: list[int], index: int) -> str:
    """Return the comma and the blanks for a new member after the member at `index` of an object or list.

    `begins` has the offset of each member.
    """
    text = values.text
    ends = [values.stops[member] for member in values.members_of(number)]
    for left, right in ((index, index + 1), (index - 1, index)):
        gap = _SEPARATOR.fullmatch(text, ends[left], begins[right]) if left >= 0 and right < len(begins) else None
        if gap:
            return gap[0]
    line = text.rfind("\n", 0, begins[index]) + 1
    indentation = text[line : begins[index]]
    if line <= values.offsets[number] or indentation.strip() not in ("", ","):
        return ", "
    line_end = "\r\n" if text[line - 2 : line] == "\r\n" else "\n"
    return f"{line_end}{indentation}" if indentation.strip() else f",{line_end}{indentation}"


def _insert_after(text: str, stop: int, separator: str, entry: str) -> _Replacement:
    """Return the replacement that adds a member after the member that ends at `stop`, below the comment on its line."""
    comment = _COMMENT_AFTER.match(text, stop) if "\n" in separator else None
    if comment is None:
        return stop, stop, f"{separator}{entry}"
    # The comment belongs to the member before it.
    if separator.index("\n") < separator.index(","):
        return stop, comment.end(), f"{comment['comma'] or ''}{comment['comment']}{separator}{entry}"
    comma = "," if comment["comma"] else ""
    return stop, comment.end(), f",{comment['comment']}{separator.replace(',', '', 1)}{entry}{comma}"


def _add_json_item(values: Scan, number: int, name: str) -> _Replacement | None:
    """Return the replacement that appends a text to the list with this number, or None if it is not a list, or has the text."""
    text, written = values.text, json.dumps(name, ensure_ascii=False)
    if text[values.offsets[number]] != "[":
        return None
    items = list(values.members_of(number))
    if not items:
        return values.offsets[number] + 1, values.offsets[number] + 1, written
    if any(json.loads(text[values.offsets[item] : values.stops[item]]) == name for item in items):
        return None
    separator = _find_separator(values, number, [values.offsets[item] for item in items], len(items) - 1)
    return _insert_after(text, values.stops[items[-1]], separator, written)


def _move_into_block(text: JsonText, content: str, replacement: _Replacement) -> _Replacement | None:
    """Convert a replacement in the text of a literal block (`|`) to the replacement in the YAML file."""
    start, end, new_text = replacement
    lines = content.split("\n")
    offsets = []
    for offset in (start, end):
        place = text.place(offset)
        offsets.append(sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1)
    before = lines[text.place(start).line - 1]
    row = text.text[text.text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
    if (
        not before.removesuffix("\r").endswith(row)
        or content[offsets[0] : offsets[0] + 1] != text.text[start : start + 1]
    ):
        return None
    indentation = before.removesuffix("\r").removesuffix(row)
    line_end = "\r\n" if before.endswith("\r") else "\n"
    return offsets[0], offsets[1], new_text.replace("\n", f"{line_end}{indentation}")


# `.proto`

_PROTO_TYPE: Final = re.compile(r"(?:(?:optional|required|repeated)\s+)?(?P<type>\w+)\s+\w+\s*=")
_PROTO_BLOCK: Final = re.compile(r"(?P<indentation>[ \t]*)(?:message|enum)\s+\w+\s*\{")
_EDITION: Final = re.compile(r"^\s*edition\s*=", re.MULTILINE)


def make_proto_edit(path: str, content: str, place: Source, edit: DefinitionEdit) -> TextEdit | None:
    """Return the edit of a `.proto` file, or None if only a person can make it.

    Args:
        path: the file.
        content: its text.
        place: the place of the field, or of the message or enum.
        edit: the edit.
    """
    line_start = sum(len(line) + 1 for line in content.split("\n")[: place.line - 1])
    start = line_start + place.column - 1
    if isinstance(edit, SetType):
        field = _PROTO_TYPE.match(content, start)
        return TextEdit(path, field.start("type"), field.end("type"), edit.name, content) if field else None
    block = _PROTO_BLOCK.match(content, start)
    if not isinstance(edit, AddReserved) or block is None:
        return None
    reserved = edit.text.strip('"') if _EDITION.search(content) else edit.text
    rest = content[block.end() :].partition("\n")
    if rest[0].strip() or not rest[1]:
        # The block begins on this line.
        return TextEdit(path, block.end(), block.end(), f" reserved {reserved};", content)
    next_line = rest[2].partition("\n")[0]
    indentation = re.match(r"[ \t]*", content[line_start:])
    indent = re.match(r"[ \t]*", next_line)
    outer, inner = indentation[0] if indentation else "", indent[0] if indent else ""
    if len(inner) <= len(outer):
        inner = f"{outer}  "
    end = block.end() + len(rest[0].removesuffix("\r"))
    line_end = "\r\n" if rest[0].endswith("\r") else "\n"
    return TextEdit(path, end, end, f"{line_end}{inner}reserved {reserved};", content)


# YAML


def _edit_yaml(part: YamlPart, edit: AvroEdit) -> _Replacement | None:
    parts = split_pointer(edit.pointer)
    node = part.node(())
    for length, token in enumerate(parts, 1):
        is_list = isinstance(node, yaml.SequenceNode) and token.isdigit() and int(token) < len(node.value)
        if not is_list and find_key_node(node, token) is None:
            return None
        node = part.node(parts[:length])
    if isinstance(edit, RenameKey):
        key = find_key_node(part.node(parts[:-1]), parts[-1])
        return _replace_scalar(key, edit.name) if key else None
    if isinstance(edit, AddKey):
        return _add_yaml_key(part, node, edit)
    if isinstance(edit, AddAlias):
        if find_key_node(node, "aliases"):
            return _add_yaml_item(part, part.node((*parts, "aliases")), edit.name)
        return _add_yaml_key(part, node, AddKey(edit.pointer, ("name", "type"), "aliases", [edit.name]))
    is_mapping = isinstance(node, yaml.MappingNode)
    if is_mapping and find_key_node(node, "type") is None:
        return None
    return _replace_scalar(part.node((*parts, "type")) if is_mapping else node, edit.name)


def _replace_scalar(node: yaml.Node, text: str) -> _Replacement | None:
    if not isinstance(node, yaml.ScalarNode) or node.style in ("|", ">"):
        return None
    written = f"{node.style}{text}{node.style}" if node.style else scalar(text)
    return node.start_mark.index, node.end_mark.index, written


def _add_yaml_key(part: YamlPart, node: yaml.Node, edit: AddKey) -> _Replacement | None:
    if not isinstance(node, yaml.MappingNode) or find_key_node(node, edit.key):
        return None
    text, entry = part.text.data.decode(), f"{scalar(edit.key)}: {_to_flow(edit.value)}"
    for name in edit.after:
        key = find_key_node(node, name)
        if key is None:
            continue
        value = next(child for child_key, child in node.value if child_key is key)
        end: int = value.end_mark.index
        if node.flow_style:
            return end, end, f", {entry}"
        is_block_scalar = isinstance(value, yaml.ScalarNode) and value.style in ("|", ">")
        if key.start_mark.line == value.end_mark.line and not is_block_scalar:
            return _add_yaml_line(text, end, f"{' ' * key.start_mark.column}{entry}")
    return None


def _add_yaml_item(part: YamlPart, node: yaml.Node, name: str) -> _Replacement | None:
    if not isinstance(node, yaml.SequenceNode) or any(item.value == name for item in node.value):
        return None
    text = part.text.data.decode()
    if node.flow_style:
        end = node.value[-1].end_mark.index if node.value else node.start_mark.index + 1
        return end, end, f"{', ' if node.value else ''}{scalar(name)}"
    last = node.value[-1]
    return _add_yaml_line(text, last.end_mark.index, f"{' ' * node.start_mark.column}- {scalar(name)}")


def _add_yaml_line(text: str, offset: int, line: str) -> _Replacement:
    """Return the replacement that adds a line below the line at `offset`."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    end -= text[end - 1 : end] == "\r"
    line_end = "\r\n" if "\r\n" in text else "\n"
    return end, end, f"{line_end}{line}"


def _to_flow(value: Any) -> str:
    """Render a JSON value on one line of YAML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_to_flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar(key)}: {_to_flow(member)}' for key, member in value.items())}}}"
    return scalar(value) if isinstance(value, str) else json.dumps(value)
