"""Java's Schema.equals, which decides whether Pulsar stores a new version.

It looks at full names, fields in order with their types, defaults and sort orders, symbols in order, sizes, and custom
properties (logicalType among them). It does not look at doc, aliases, the default of an enum, and error or record.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Named,
    NamedSchema,
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


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: JsonValue) -> str:
    """Return the JSON text of a parsed value, the same for values that Jackson holds for equal: 1 and 1.0 are not."""
    if value is None:  # as most defaults
        return "null"
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
    return _properties(left) == _properties(right)


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
    """Yield each part of `schema` once, in document order, itself first."""
    seen: set[Schema] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            yield part
            pending += reversed([*children(part)])


def size(schema: Schema, *, at_most: int) -> int:
    """Return how many parts `schema` has, itself included and each counted once; `at_most`, where there are more."""
    return sum(1 for _ in islice(parts(schema), at_most))


def _beside_type(field: Field) -> str:
    if field.default is NO_DEFAULT and field.order == "ascending" and not field.properties:
        return ""
    default = "" if field.default is NO_DEFAULT else f"={canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f" {field.order}"
    return default + order + _properties(field)


def _properties(holder: Schema | Field | Named) -> str:
    return canonical_json(dict(holder.properties)) if holder.properties else ""


# A schema as a graph of its types: each named type is spelled out by itself, with the named types inside it by name. Two schemas
# are equal exactly when their roots are, and the types these lead to. So where a thousand definitions share one, its change is
# looked at once.


class Type(NamedTuple):
    """A named type: what equality looks at in it, types inside by name, and the full names of these."""

    text: str
    uses: frozenset[str]


class Composition(NamedTuple):
    """What a definition is made of: its root, which may be a named type's name, and its named types by full name.

    What the root or a type uses and is not among `types` is defined elsewhere.
    """

    root: Type
    types: dict[str, Type]


def composition(schema: Schema) -> Composition:
    """Return what a parsed schema is made of."""
    spelling = _Spelling()
    text = spelling.reference(schema)
    root = Type(text, frozenset(spelling.found))
    types: dict[str, Type] = {}
    while spelling.found:
        name, named = spelling.found.popitem()
        if name not in types:
            inside, spelling.found = spelling.found, {}
            text = spelling.definition(named)
            types[name] = Type(text, frozenset(spelling.found))
            spelling.found |= inside
    return Composition(root, types)


def identity_key(schema: Schema) -> Hashable:
    """Return a key that is the same for two schemas exactly when they are equal."""
    root, types = composition(schema)
    return root.text, frozenset((name, each.text) for name, each in types.items())


class _Spelling:
    """The texts of one schema's parts.

    Attributes:
        found: the named types that were referred to, by the names they have in texts.
    """

    def __init__(self) -> None:
        self.found: dict[str, NamedSchema] = {}
        self._definitions: dict[str, list[NamedSchema]] = {}

    def definition(self, named: NamedSchema) -> str:
        """Spell a named type out, the types inside it by their names."""
        match named:
            case Record():
                fields = [
                    f"{field.name} {self.reference(field.schema)}{_beside_type(field)}"
                    for field in named.fields
                ]
                text = f"record({','.join(fields)})"
            case Enum():
                text = f"enum({','.join(named.symbols)})"
            case Fixed():
                text = f"fixed({named.size})"
        return text + _properties(named)

    def reference(self, schema: Schema) -> str:
        """Spell a place in a schema out, a named type by its name."""
        match schema:
            case Primitive():
                return schema.type + _properties(schema) if schema.properties else schema.type
            case Union():
                return f"union({','.join(map(self.reference, schema.branches))})"
            case Array():
                return f"array({self.reference(schema.items)}){_properties(schema)}"
            case Map():
                return f"map({self.reference(schema.values)}){_properties(schema)}"
        name = self._name(schema)
        self.found[name] = schema
        return f"<{name}>"

    def _name(self, named: NamedSchema) -> str:
        """Return the type's full name; with marks where the same text defines another type of that name (Avro 1.12.0)."""
        definitions = self._definitions.setdefault(named.full_name, [])
        for index, earlier in enumerate(definitions):
            if named is earlier or equal(named, earlier):
                return named.full_name + index * "#"
        definitions.append(named)
        return named.full_name + (len(definitions) - 1) * "#"
