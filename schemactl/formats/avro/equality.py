"""Java's Schema.equals, which decides whether Pulsar stores a new version.

It looks at full names, fields in order with their types, defaults and sort orders, symbols in order, sizes, and custom
properties (logicalType among them). It does not look at doc, aliases, the default of an enum, and error or record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Final

from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Named,
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


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: JsonValue) -> str:
    """Return the JSON text of a parsed value, the same for values that Jackson holds for equal: 1 and 1.0 are not."""
    return _CANONICAL.encode(value)


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
    return left.name == right.name and beside_type(left) == beside_type(right)


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
    """Each part of `schema` once, in document order, itself first."""
    seen: set[Schema] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            yield part
            pending += reversed([*children(part)])


def size(schema: Schema, *, at_most: int) -> int:
    """How many parts `schema` has, itself included and each once; where there are more, `at_most`."""
    return sum(1 for _ in islice(parts(schema), at_most))


def beside_type(field: Field) -> str:
    """Return what equality looks at in a field besides its name and type."""
    if field.default is NO_DEFAULT and field.order == "ascending" and not field.properties:
        return ""
    default = "" if field.default is NO_DEFAULT else f"={canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f" {field.order}"
    return default + order + properties_json(field)


def properties_json(holder: Schema | Field | Named) -> str:
    """Return the properties as canonical JSON, "" where there are none."""
    return canonical_json(dict(holder.properties)) if holder.properties else ""
