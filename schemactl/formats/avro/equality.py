"""Java's Schema.equals, which decides whether Pulsar stores a new version.

It looks at full names, fields in order with their types, defaults and sort orders, symbols in order, sizes, and custom
properties (logicalType among them). It does not look at doc, aliases, the default of an enum, and error or record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from json.encoder import encode_basestring_ascii

from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
)


def equal(one: Schema, other: Schema) -> bool:
    """Whether Java's `one.equals(other)`. Records that contain themselves are equal if nothing tells them apart."""
    pairs: list[tuple[Schema, Schema]] = [(one, other)]
    records: set[tuple[int, int]] = set()
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if left.type != right.type or not _equal_alone(left, right):
            return False
        if isinstance(left, Record) and isinstance(right, Record):
            if (id(left), id(right)) in records:
                continue
            records.add((id(left), id(right)))
            if len(left.fields) != len(right.fields):
                return False
            if not all(map(_equal_fields, left.fields, right.fields)):
                return False
        pairs.extend(zip(children(left), children(right), strict=True))
    return True


def identity_key(schema: Schema) -> str:
    """Return a text that is the same for two schemas exactly when they are `equal`.

    It spells out what equality looks at, types where they first occur.
    """
    written: dict[str, list[Schema]] = {}
    known: dict[int, str] = {}
    pieces: list[str] = []
    todo: list[Schema | str] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            pieces.append(node)
            continue
        if isinstance(node, Named):
            reference = known.get(id(node)) or _reference(node, written)
            known[id(node)] = reference or f"@{node.full_name}#{len(written[node.full_name]) - 1}"
            if reference:
                pieces.append(reference)
                continue
        todo += _spelled_out(node)[::-1]
    return "".join(pieces)


def canonical_json(value: JsonValue) -> str:
    """Return the JSON text of a parsed value, the same for values that Jackson holds for equal: 1 and 1.0 are not."""
    if not isinstance(value, list | dict):
        return _scalar_json(value)
    pieces: list[str] = []
    todo: list[tuple[bool, JsonValue]] = [(True, value)]
    while todo:
        is_value, item = todo.pop()
        if not is_value:
            pieces.append(item)
        elif isinstance(item, dict):
            todo.append((False, "}"))
            for key in sorted(item, reverse=True):
                todo.extend([(False, ","), (True, item[key]), (False, json.dumps(key) + ":")])
            todo.append((False, "{"))
        elif isinstance(item, list):
            todo.append((False, "]"))
            for element in reversed(item):
                todo.extend([(False, ","), (True, element)])
            todo.append((False, "["))
        else:
            pieces.append(_scalar_json(item))
    return "".join(pieces)


def _scalar_json(value: JsonValue) -> str:
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    return encode_basestring_ascii(value) if type(value) is str else json.dumps(value)


def _equal_alone(left: Schema, right: Schema) -> bool:
    """Whether two schemas of one type are equal but for the schemas inside them."""
    if isinstance(left, Named) and isinstance(right, Named) and left.full_name != right.full_name:
        return False
    if isinstance(left, Enum) and isinstance(right, Enum) and left.symbols != right.symbols:
        return False
    if isinstance(left, Fixed) and isinstance(right, Fixed) and left.size != right.size:
        return False
    if isinstance(left, Union) and isinstance(right, Union) and len(left.branches) != len(right.branches):
        return False
    return properties_json(left) == properties_json(right)


def _equal_fields(left: Field, right: Field) -> bool:
    return left.name == right.name and _beside_type(left) == _beside_type(right)


def children(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas directly inside `schema`, in document order."""
    match schema:
        case Array():
            yield schema.items
        case Map():
            yield schema.values
        case Union():
            yield from schema.branches
        case Record():
            for field in schema.fields:
                yield field.schema


def parts(schema: Schema) -> Iterator[Schema]:
    """Each part of `schema` once, itself first."""
    seen = {schema}
    pending = [schema]
    while pending:
        part = pending.pop()
        yield part
        for child in children(part):
            if child not in seen:
                seen.add(child)
                pending.append(child)


def size(schema: Schema, *, at_most: int) -> int:
    """How many parts `schema` has, itself included and each once; where there are more, `at_most`."""
    return sum(1 for _ in islice(parts(schema), at_most))


def _reference(node: Named, written: dict[str, list[Schema]]) -> str | None:
    """How to refer to an equal type that has been spelled out before; None where there is none.

    One text may define a name more than once (Avro 1.12), as a rule equally.
    """
    same_name = written.setdefault(node.full_name, [])
    for index, earlier in enumerate(same_name):
        if equal(node, earlier):  # type: ignore[arg-type]  # every Named is a Schema
            return f"@{node.full_name}#{index}"
    same_name.append(node)  # type: ignore[arg-type]  # as above
    return None


def _spelled_out(node: Schema) -> list[Schema | str]:
    parts: list[Schema | str]
    match node:
        case Record():
            parts = [f"record {node.full_name} ("]
            for field in node.fields:
                parts.append(f"{field.name} ")
                parts += _followed(field.schema, f"{_beside_type(field)},")
            parts.append(")")
        case Union():
            parts = ["union("]
            for branch in node.branches:
                parts += _followed(branch, ",")
            parts.append(")")
        case Enum():
            symbols = ", ".join(map(encode_basestring_ascii, node.symbols))
            parts = [f"enum {node.full_name} [{symbols}]"]
        case Array():
            parts = ["array(", node.items, ")"]
        case Map():
            parts = ["map(", node.values, ")"]
        case Fixed():
            parts = [f"fixed {node.full_name} {node.size}"]
        case _:
            parts = [node.type]
    parts.append(properties_json(node))
    return parts


def _followed(schema: Schema, text: str) -> tuple[Schema | str, ...]:
    """Return `schema`, spelled out if it is no more than a word, and then `text`."""
    if isinstance(schema, Primitive) and not schema.properties:
        return (schema.type + text,)
    return schema, text


def _beside_type(field: Field) -> str:
    if field.default is NO_DEFAULT and field.order == "ascending" and not field.properties:
        return ""
    default = "" if field.default is NO_DEFAULT else f"={canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f" {field.order}"
    return default + order + properties_json(field)


def properties_json(holder: Schema | Field | Named) -> str:
    """Return the properties as canonical JSON, "" where there are none."""
    return canonical_json(dict(holder.properties)) if holder.properties else ""
