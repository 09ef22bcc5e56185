"""A schema as a graph of its types: what tells whether two schemas are equal, and makes definitions comparable by parts.

Each named type is spelled out by itself, with the named types inside it by name: two schemas are equal (see `equality`)
exactly when their roots are, and the types these lead to. So where a thousand definitions share one, its change is looked
at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from schemactl.formats.avro.equality import beside_type, equal, properties_json
from schemactl.formats.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    NamedSchema,
    Primitive,
    Record,
    Schema,
    Union,
)


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
                    f"{field.name} {self.reference(field.schema)}{beside_type(field)}"
                    for field in named.fields
                ]
                text = f"record({','.join(fields)})"
            case Enum():
                text = f"enum({','.join(named.symbols)})"
            case Fixed():
                text = f"fixed({named.size})"
        return text + properties_json(named)

    def reference(self, schema: Schema) -> str:
        """Spell a place in a schema out, a named type by its name."""
        match schema:
            case Primitive():
                return schema.type + properties_json(schema)
            case Union():
                return f"union({','.join(map(self.reference, schema.branches))})"
            case Array():
                return f"array({self.reference(schema.items)}){properties_json(schema)}"
            case Map():
                return f"map({self.reference(schema.values)}){properties_json(schema)}"
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
