"""A schema as a graph of its types, so that definitions can be compared without being expanded.

`equality` spells a schema out from its root. Here each named type is spelled out by itself, with the named types inside it
by name: two schemas are equal exactly when their roots are, and the types these lead to. So where a thousand definitions
share one, its change is looked at once.
"""

from __future__ import annotations

from typing import NamedTuple

from schemactl.formats.avro.equality import canonical_json, properties_json
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
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
    types: dict[str, Type] = {}
    found: list[Named] = []
    text = _spelled(schema, found)
    root = Type(text, frozenset(each.full_name for each in found))
    while found:
        named = found.pop()
        # One text may define a name more than once (Avro 1.12), but only equally.
        if named.full_name not in types:
            types[named.full_name] = _own(named, found)
    return Composition(root, types)


def _own(named: Named, found: list[Named]) -> Type:
    """Return a named type by itself; the types inside it are appended to `found`."""
    inside = len(found)
    match named:
        case Record():
            fields = [_field(field, found) for field in named.fields]
            text = f"record({','.join(fields)})"
        case Enum():
            text = f"enum({','.join(named.symbols)})"
        case Fixed():
            text = f"fixed({named.size})"
    text += properties_json(named)
    return Type(text, frozenset(each.full_name for each in found[inside:]))


def _field(field: Field, found: list[Named]) -> str:
    default = "" if field.default is NO_DEFAULT else f"={canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f" {field.order}"
    return f"{field.name} {_spelled(field.schema, found)}{default}{order}{properties_json(field)}"


def _spelled(schema: Schema, found: list[Named]) -> str:
    """Spell out a place in a schema, a named type by its name; named types are appended to `found`."""
    if isinstance(schema, Union):
        # Most fields are a choice of primitives.
        branches = [
            each.type for each in schema.branches if isinstance(each, Primitive) and not each.properties
        ]
        if len(branches) == len(schema.branches):
            return f"union({','.join(branches)})"
    pieces: list[str] = []
    todo: list[Schema | str] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, Primitive):
            pieces.append(node.type + properties_json(node))
        elif isinstance(node, Union):
            todo += (")", *node.branches[-1:])
            for branch in reversed(node.branches[:-1]):
                todo += (",", branch)
            todo.append("union(")
        elif isinstance(node, Array):
            todo += (")" + properties_json(node), node.items, "array(")
        elif isinstance(node, Map):
            todo += (")" + properties_json(node), node.values, "map(")
        else:
            found.append(node)
            pieces.append(f"<{node.full_name}>")
    return "".join(pieces)
