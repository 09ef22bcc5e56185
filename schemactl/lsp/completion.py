"""Complete keys, types, topics and files in text that may not parse, because it is being typed."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from schemactl.checks.lint import KNOWN_KEYS, Kind
from schemactl.core.terminal import on_one_line
from schemactl.declare.files import AVRO_SUFFIXES, DESCRIPTOR_SUFFIX, PROTO_SUFFIX, YAML_SUFFIXES
from schemactl.declare.source_location import Tokens
from schemactl.declare.yaml_parser import scalar
from schemactl.formats.avro.schema import LOGICAL_TYPES, PRIMITIVE_TYPES
from schemactl.lsp.declaration_keys import find_kind, list_keys, list_values
from schemactl.lsp.workspace import Workspace

_COMPLEX_TYPES: Final = ("record", "enum", "fixed", "array", "map")

_TYPE_KEYS: Final = ("type", "items", "values")

_TOPIC_KEYS: Final = ("renamed_from", "use")

_FILE_KEYS: Final = ("definition", "references", "proto", "schema")

_FILE_SUFFIXES: Final = (*AVRO_SUFFIXES, PROTO_SUFFIX, DESCRIPTOR_SUFFIX)

_JSON_SYMBOL: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+')

_YAML_KEY: Final = re.compile(
    r"""(?P<indent>[ ]*)(?P<dashes>(?:- +)*)(?P<quote>["']?)(?P<key>[\w.$/-]+)(?P=quote)\s*:(?:\s+(?P<value>.*))?$"""
)

_PROTO_SCALARS: Final = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
    *("sfixed32", "sfixed64", "bool", "string", "bytes"),
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that may follow.

    Attributes:
        label: the text.
        kind: the kind of thing that it names.
        detail: its description, or "".
        insert: the text to insert, with the colon of a key.
    """

    label: str
    kind: Literal["key", "type", "topic", "file", "value"]
    detail: str = ""
    insert: str = ""


def complete(workspace: Workspace, path: str, text: str, offset: int) -> list[Completion]:
    """Return the texts that may follow at `offset` of a file with this text.

    Raises:
        SchemactlError: if the project cannot be read.
    """
    if path.endswith(PROTO_SUFFIX):
        return list(_complete_proto(workspace, text[:offset]))
    if path.endswith(AVRO_SUFFIXES):
        return list(_complete_avro_json(workspace, text[:offset], text[offset:]))
    if path.endswith(YAML_SUFFIXES):
        return list(_complete_yaml(workspace, path, text, offset))
    return []


# JSON


@dataclass(slots=True)
class _Container:
    """An open object or list before the cursor.

    Attributes:
        bracket: `{` or `[`.
        name: the key of the object or list in the object around it, or "".
        keys: the keys before the cursor with their scalar values.
        key: the key whose value comes next, or "".
    """

    bracket: str
    name: str
    keys: dict[str, str]
    key: str = ""


def _complete_avro_json(workspace: Workspace, before: str, after: str) -> Iterator[Completion]:
    containers, is_in_quotes = _find_open_containers(before)
    if not containers:
        return
    innermost = containers[-1]
    if innermost.bracket == "[" or innermost.key:
        key = innermost.key if innermost.bracket == "{" else innermost.name
        yield from _complete_avro_value(workspace, key, quotes="" if is_in_quotes else '"')
        return
    type_name = innermost.keys.get("type", "")
    kinds: tuple[Kind, ...] = ("record", "enum", "fixed", "array", "map", "primitive")
    if len(containers) > 1 and containers[-2].bracket == "[" and containers[-2].name == "fields":
        kinds = ("field",)
    elif type_name in PRIMITIVE_TYPES:
        kinds = ("primitive",)
    elif type_name in kinds:
        kinds = tuple(kind for kind in kinds if kind == type_name)
    rest = _JSON_SYMBOL.findall(after.partition("}")[0])
    later_keys = {symbol.strip('"') for symbol in rest if symbol.startswith('"')}
    for key in dict.fromkeys(key for kind in kinds for key in KNOWN_KEYS[kind]):
        if key not in innermost.keys and key not in later_keys:
            yield Completion(key, "key", insert=key if is_in_quotes else f"{json.dumps(key)}: ")


def _find_open_containers(before: str) -> tuple[list[_Container], bool]:
    """Return the open containers before the cursor, the innermost last, and whether the cursor is inside quotes."""
    containers: list[_Container] = []
    word, is_in_quotes = "", False
    for symbol in _JSON_SYMBOL.findall(before):
        is_in_quotes = False
        innermost = containers[-1] if containers else None
        if symbol in ("{", "["):
            name = (innermost.key if innermost.bracket == "{" else innermost.name) if innermost else ""
            containers.append(_Container(symbol, name, {}))
        elif symbol in ("}", "]"):
            del containers[-1:]
        elif symbol == ":" and innermost:
            innermost.key = word
            innermost.keys.setdefault(word, "")
        elif symbol == "," and innermost:
            innermost.key = ""
        else:
            word = symbol.strip('"')
            is_in_quotes = symbol.startswith('"') and (len(symbol) == 1 or not symbol.endswith('"'))
            if innermost and innermost.key and not is_in_quotes:
                innermost.keys[innermost.key] = word
    return containers, is_in_quotes


def _complete_avro_value(workspace: Workspace, key: str, *, quotes: str) -> Iterator[Completion]:
    if key in _TYPE_KEYS or key == "":
        for name in (*sorted(PRIMITIVE_TYPES), *_COMPLEX_TYPES):
            yield Completion(name, "type", insert=f"{quotes}{name}{quotes}")
        for name, source in workspace.list_types().items():
            yield Completion(name, "type", source.path, f"{quotes}{name}{quotes}")
    elif key == "logicalType":
        for name in LOGICAL_TYPES:
            yield Completion(name, "value", insert=f"{quotes}{name}{quotes}")
    elif key == "order":
        for name in ("ascending", "descending", "ignore"):
            yield Completion(name, "value", insert=f"{quotes}{name}{quotes}")


# YAML


@dataclass(frozen=True, slots=True)
class _YamlPlace:
    """The place of the cursor in YAML text.

    Attributes:
        parents: the keys around it; "0" for an item of a list.
        key: the key whose value is being typed, or "" for a key.
        siblings: the other keys of the same mapping with their scalar values.
    """

    parents: Tokens
    key: str
    siblings: dict[str, str]


def _complete_yaml(workspace: Workspace, path: str, text: str, offset: int) -> Iterator[Completion]:
    place = _find_yaml_place(text, offset)
    if place is None:
        return
    if "definition" in place.parents:
        if place.key:
            yield from _complete_avro_value(workspace, place.key, quotes="")
        else:
            kinds: tuple[Kind, ...] = ("field", "record", "enum", "array", "map")
            keys = dict.fromkeys(key for kind in kinds for key in KNOWN_KEYS[kind])
            yield from (Completion(key, "key", insert=f"{key}: ") for key in keys if key not in place.siblings)
        return
    kind = find_kind(workspace, path)
    schemas = list_keys(kind, place.parents, place.siblings.get("type", ""), place.siblings)
    if not place.key:
        for key, schema in schemas.items():
            if key not in place.siblings:
                yield Completion(key, "key", on_one_line(schema.get("description", "")), f"{key}: ")
        return
    if place.key in _TOPIC_KEYS or (place.key == "topic" and kind != "declarations"):
        yield from (Completion(str(name), "topic") for name in workspace.list_topic_names())
    elif place.key in _FILE_KEYS:
        files, _ = workspace.open_files()
        folder = posixpath.dirname(path) or "."
        names = (posixpath.relpath(other, folder) for other in files.paths() if other.endswith(_FILE_SUFFIXES))
        # The files of the folder come first.
        yield from (Completion(name, "file") for name in sorted(names, key=lambda name: (name.count("/"), name)))
    values = list_values(schemas.get(place.key, {}))
    yield from (
        Completion(value, "value", insert=value if value in ("true", "false") else scalar(value)) for value in values
    )


def _find_yaml_place(text: str, offset: int) -> _YamlPlace | None:
    """Return the place of the cursor by the indentation of the lines around it, or None in a comment."""
    before = text[:offset].split("\n")
    line = before[-1]
    if line.lstrip().startswith("#"):
        return None
    document = [*before[:-1]]
    while "---" in document:
        del document[: document.index("---") + 1]
    match = _YAML_KEY.match(line)
    indent = len(line) - len(line.lstrip(" "))
    indent += len(re.match(r"(?:- +)*", line[indent:])[0]) if line[indent:].startswith("-") else 0  # type: ignore[index]
    parents = _find_parents(document, line, indent)
    if match and match["value"] is not None and "{" in match["value"]:
        return _find_flow_place((*parents, match["key"]), match["value"])
    if match and match["value"] is not None and match["value"].startswith("["):
        return _YamlPlace(parents, match["key"], {})
    siblings = _find_siblings(document, text[offset:].split("\n")[1:], indent)
    if match and match["value"] is not None:
        return _YamlPlace(parents, match["key"], siblings)
    is_item = line.lstrip(" ").startswith("- ") and not _YAML_KEY.match(line)
    list_key = next((part for part in reversed(parents) if part != "0"), "")
    if is_item and list_key in _FILE_KEYS:
        return _YamlPlace(parents, list_key, {})
    return _YamlPlace(parents, "", siblings)


def _find_parents(document: list[str], line: str, indent: int) -> Tokens:
    """Return the keys of the lines above that are indented less."""
    parents: list[str] = []
    depth = indent
    if line.lstrip(" ").startswith("- "):
        parents.append("0")
        depth = len(line) - len(line.lstrip(" ")) + 1
    for other in reversed(document):
        match = _YAML_KEY.match(other)
        if match is None:
            continue
        column = len(match["indent"]) + len(match["dashes"])
        if column < depth:
            parents.insert(0, match["key"])
            depth = column
        if match["dashes"] and len(match["indent"]) < depth:
            parents.insert(0, "0")
            depth = len(match["indent"]) + 1
    return tuple(parents)


def _find_siblings(document: list[str], after: list[str], indent: int) -> dict[str, str]:
    """Return the keys at the same indentation in the same mapping, with their scalar values."""
    siblings: dict[str, str] = {}
    for lines in (document[::-1], after):
        for line in lines:
            if line == "---":
                break
            match = _YAML_KEY.match(line)
            if match is None:
                continue
            column = len(match["indent"]) + len(match["dashes"])
            if column < indent:
                break
            if column == indent:
                siblings.setdefault(match["key"], (match["value"] or "").strip("\"' "))
            if match["dashes"] and column <= indent:
                break
    return siblings


def _find_flow_place(parents: Tokens, value: str) -> _YamlPlace | None:
    """Return the place at the end of an open mapping in braces."""
    siblings: dict[str, str] = {}
    stack: list[tuple[Tokens, dict[str, str]]] = []
    key = word = ""
    for symbol in re.findall(r"[{}\[\],]|:(?=\s|$)|\"[^\"]*\"?|'[^']*'?|[^\s{}\[\],:]+(?::[^\s{}\[\],]+)*", value):
        if symbol == "{":
            stack.append((parents, siblings))
            parents, siblings = ((*parents, key) if key else parents), {}
            key = word = ""
        elif symbol == "}":
            parents, siblings = stack.pop() if stack else (parents, siblings)
            key = word = ""
        elif symbol == ":":
            key, word = word, ""
            siblings.setdefault(key, "")
        elif symbol == ",":
            key = word = ""
        elif symbol not in ("[", "]"):
            word = symbol.strip("\"'")
            if key:
                siblings[key] = word
    if not stack:
        return None
    siblings.pop(key, None)
    return _YamlPlace(parents, key, siblings)


# `.proto`


def _complete_proto(workspace: Workspace, before: str) -> Iterator[Completion]:
    if not re.search(r"(?:^|\{|;|\n)\s*(?:(?:optional|required|repeated)\s+)?[\w.]*$", before):
        return
    names = dict.fromkeys(re.findall(r"\b(?:message|enum)\s+(\w+)", before))
    files, _ = workspace.open_files()
    for path in files.paths():
        if path.endswith(PROTO_SUFFIX) and (text := workspace.read_text(path)):
            package = re.search(r"^\s*package\s+([\w.]+)\s*;", text, re.MULTILINE)
            prefix = f"{package[1]}." if package else ""
            names |= dict.fromkeys(
                f"{prefix}{name}" for name in re.findall(r"^(?:message|enum)\s+(\w+)", text, re.MULTILINE)
            )
    yield from (Completion(name, "type") for name in (*_PROTO_SCALARS, *names))
    yield from (Completion(word, "key") for word in ("message", "enum", "oneof", "optional", "repeated", "reserved"))
