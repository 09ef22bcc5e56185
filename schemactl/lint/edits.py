"""Edits of definitions as they stand in files, JSON or YAML: the rest of the file, comments included, stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from schemactl.declare.files import AVRO_SUFFIXES
from schemactl.declare.references import AvroFile
from schemactl.declare.source_location import JsonText, Tokens, key_node, nearest
from schemactl.declare.yaml_parser import YamlPart, scalar

Replacement = tuple[int, int, str]
"""Start and end in a text, and what stands between them afterwards."""


@dataclass(frozen=True, slots=True)
class RenameKey:
    """The key at `parts` is called `to`."""

    parts: Tokens
    to: str


@dataclass(frozen=True, slots=True)
class AddKey:
    """Adds a key to the object at `parts`, after the first of the keys `behind` that shares its lines with no other key."""

    parts: Tokens
    behind: Sequence[str]
    key: str
    value: Any


Edit = RenameKey | AddKey


def replacement(file: AvroFile, edit: Edit) -> Replacement | None:
    """Return the edit as a replacement in the file's text; None if it can be made only by hand."""
    if isinstance(file.text, YamlPart):
        return _in_yaml(file.text, edit)
    if file.path.endswith(AVRO_SUFFIXES):
        return _in_json(file.text, edit)
    # JSON in a text of YAML.
    return None


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """Return the text after `replacements`, none of which overlap."""
    for start, end, new in sorted(set(replacements), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _in_json(text: JsonText, edit: Edit) -> Replacement | None:
    scan = text.scan()
    if isinstance(edit, RenameKey):
        number = nearest(0, edit.parts, scan.child)
        return scan.keys[number], scan.key_end(number), json.dumps(edit.to)
    number = nearest(0, (*edit.parts, edit.behind[0]), scan.child)
    key, end = scan.keys[number], scan.stops[number]
    line = text.text.rfind("\n", 0, key) + 1
    margin = text.text[line:key]
    gap = f"\n{margin}" if line and not margin.strip() else " "
    gap = gap.replace("\n", "\r\n") if text.text[line - 2 : line] == "\r\n" else gap
    return end, end, f",{gap}{json.dumps(edit.key)}: {json.dumps(edit.value)}"


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _in_yaml(part: YamlPart, edit: Edit) -> Replacement | None:
    if isinstance(edit, RenameKey):
        key = key_node(part.node(edit.parts[:-1]), edit.parts[-1])
        if key is None:
            return None
        quote = (isinstance(key, yaml.ScalarNode) and key.style) or ""
        return key.start_mark.index, key.end_mark.index, f"{quote}{edit.to}{quote}"
    node, text = part.node(edit.parts), part.text.data.decode()
    added = f"{scalar(edit.key)}: {json.dumps(edit.value)}"
    for name in edit.behind:
        key, value = key_node(node, name), part.node((*edit.parts, name))
        if key is None or not isinstance(node, yaml.MappingNode):
            continue
        end = value.end_mark.index
        if node.flow_style:
            return end, end, f", {added}"
        if key.start_mark.line == value.end_mark.line and not _is_block(value):
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            line_end -= text[line_end - 1 : line_end] == "\r"
            return line_end, line_end, f"\n{' ' * key.start_mark.column}{added}"
    return None
