"""A schema as the types it is made of, so that definitions can be told apart without writing them out together.

`equality` spells a schema out from its root. Here each named type is spelled out by itself, with the named types inside it
by name: two schemas are equal exactly when their roots are, and the types these lead to. So where a thousand definitions
share one, its change is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final, NamedTuple

from schemactl.formats.avro.equality import canonical_json, properties_json
from schemactl.formats.avro.names import is_plain_name
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PRIMITIVE_TYPES,
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
    """What a parsed schema is made of."""
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
    """A named type by itself; the types inside it are appended to `found`."""
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


class _Unusual(Exception):
    """The definition has something that `plain_composition` leaves to the parser."""


_MAX_CHARACTERS: Final = 40_000
_MAX_DEPTH: Final = 20
"""Two definitions of that depth, one inside the other, are within all limits."""
_PLAIN_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:,[A-Za-z_][A-Za-z0-9_]*)*").fullmatch
_MAX_DIGITS: Final = 300
_NO_DIGITS: Final = bytes(set(range(256)) - set(b"0123456789"))
_LONG_NUMBER: Final = re.compile(rf"[0-9]{{{_MAX_DIGITS}}}")

_RECORD_KEYS: Final = frozenset({"type", "name", "namespace", "doc", "fields"})
_ENUM_KEYS: Final = frozenset({"type", "name", "namespace", "doc", "symbols"})
_FIXED_KEYS: Final = frozenset({"type", "name", "namespace", "doc", "size"})
_FIELD_KEYS: Final = frozenset({"name", "type", "default", "doc"})
_FIELD_EXTRAS: Final = frozenset({"order", "aliases"})
_LEAF_RESERVED: Final = frozenset(
    {"type", "name", "namespace", "doc", "fields", "symbols", "size", "items", "values", "aliases"}
)


def plain_composition(
    text: str, value: Any, elsewhere: Collection[str] = ()
) -> tuple[Composition, int] | None:
    """`composition` of the definition `text` with the JSON value `value`, for definitions of the usual kind.

    Those are what every release reads in one way; None: this may be another, ask the parser. `elsewhere` are the full
    names of types that are defined in other files, and may be used here. With it comes how many keys its objects have, at
    least: as many as `text` has colons, and no key can be there twice.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    digits = text.encode(errors="replace").translate(None, _NO_DIGITS)
    if len(digits) >= _MAX_DIGITS and _LONG_NUMBER.search(text):
        return None
    reading = _Plain(elsewhere)
    try:
        root, _ = reading.schema(value, "")
    except (_Unusual, KeyError, TypeError, IndexError):
        return None
    return Composition(Type(root, frozenset(reading.uses)), reading.types), reading.keys


_UNIONS: Final[dict[tuple[str, ...], str]] = {}
"""Unions of primitive types, spelled: there are not many."""


class _Plain:
    """The reading of one definition of the usual kind, straight from JSON."""

    def __init__(self, elsewhere: Collection[str]) -> None:
        self.elsewhere = elsewhere
        self.types: dict[str, Type] = {}
        self.begun: set[str] = set()
        self.depth = 0
        self.keys = 0
        self.uses: set[str] = set()

    def schema(self, value: Any, namespace: str) -> tuple[str, str]:
        """A place in the schema as `composition` spells it, and the full name of the type there.

        Raises:
            _Unusual, KeyError, TypeError, IndexError: it is not of the usual kind.
        """
        if type(value) is str:
            if value in PRIMITIVE_TYPES:
                return value, value
            return self._reference(value, namespace)
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Unusual
        found = self._larger(value, namespace)
        self.depth -= 1
        return found

    def _larger(self, value: Any, namespace: str) -> tuple[str, str]:
        """As `schema`, for what is more than a name."""
        if type(value) is list:
            branches = [self.schema(branch, namespace) for branch in value]
            names = {name for _, name in branches}
            if len(names) < len(branches) or not branches or "union" in names:
                raise _Unusual
            return f"union({','.join([text for text, _ in branches])})", "union"
        kind = value["type"]
        self.keys += len(value)
        if kind == "record":
            return self._record(value, namespace)
        if kind == "array" and value.keys() == {"type", "items"}:
            return f"array({self.schema(value['items'], namespace)[0]})", "array"
        if kind == "map" and value.keys() == {"type", "values"}:
            return f"map({self.schema(value['values'], namespace)[0]})", "map"
        if kind == "enum" and value.keys() <= _ENUM_KEYS:
            return self._leaf(value, namespace, f"enum({','.join(self._symbols(value['symbols']))})")
        if kind == "fixed" and value.keys() <= _FIXED_KEYS:
            return self._leaf(value, namespace, f"fixed({self._size(value['size'])})")
        if kind in PRIMITIVE_TYPES:
            return kind + _extras(value, _LEAF_RESERVED), kind
        raise _Unusual

    def _reference(self, name: str, namespace: str) -> tuple[str, str]:
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        # Where two types could be meant, releases differ in which.
        if full_name != name and (name in self.begun or name in self.elsewhere):
            raise _Unusual
        if full_name not in self.begun and full_name not in self.elsewhere:
            raise _Unusual
        self.uses.add(full_name)
        return f"<{full_name}>", full_name

    def _record(self, value: dict[str, Any], namespace: str) -> tuple[str, str]:
        if not value.keys() <= _RECORD_KEYS:
            raise _Unusual
        full_name, inside = self._name(value, namespace)
        fields = value["fields"]
        if type(fields) is not list or not _are_plain([field["name"] for field in fields]):
            raise _Unusual
        self.keys += sum(map(len, fields))
        around, self.uses = self.uses, set()
        text = ",".join([self._field(field, inside) for field in fields])
        self.types[full_name] = Type(f"record({text})", frozenset(self.uses))
        self.uses = around
        self.uses.add(full_name)
        return f"<{full_name}>", full_name

    def _field(self, value: dict[str, Any], namespace: str) -> str:
        kind = value["type"]
        if type(kind) is str and kind in PRIMITIVE_TYPES:
            text = kind
        elif type(kind) is list and type(kind[0]) is type(kind[-1]) is str:
            text = _UNIONS.get(tuple(kind)) or self._union_of_names(kind, namespace)
        else:
            text, _ = self.schema(kind, namespace)
        known = 2
        if "default" in value:
            known = 3
            default = value["default"]
            if default is None:
                text += "=null"
            elif type(default) is int:
                text += f"={default}"
            elif type(default) is str:
                # Avro reads "1" as a number where the type is float or double.
                if text.startswith(("float", "double")):
                    raise _Unusual
                text += "=" + quoted(default)
            else:
                text += "=" + canonical_json(default)
        if len(value) > known and len(value) > known + ("doc" in value):
            if not value.keys().isdisjoint(_FIELD_EXTRAS):
                raise _Unusual
            text += _extras(value, _FIELD_KEYS)
        return f"{value['name']} {text}"

    def _union_of_names(self, names: list[str], namespace: str) -> str:
        """As `schema`, for the kind of type that most fields have."""
        text, _ = self.schema(names, namespace)
        if PRIMITIVE_TYPES.issuperset(names):
            _UNIONS[tuple(names)] = text
        return text

    def _leaf(self, value: dict[str, Any], namespace: str, text: str) -> tuple[str, str]:
        full_name, _ = self._name(value, namespace)
        self.types[full_name] = Type(text, frozenset())
        self.uses.add(full_name)
        return f"<{full_name}>", full_name

    def _name(self, value: dict[str, Any], namespace: str) -> tuple[str, str]:
        """The full name of a definition, new here, and the namespace inside it."""
        name, space = value["name"], value.get("namespace", namespace)
        if not is_plain_name(name) or type(space) is not str:
            raise _Unusual
        if space and not all(map(is_plain_name, space.split("."))):
            raise _Unusual
        full_name = f"{space}.{name}" if space else name
        if full_name in self.begun or full_name in self.elsewhere or full_name in PRIMITIVE_TYPES:
            raise _Unusual
        self.begun.add(full_name)
        return full_name, space

    def _size(self, size: int) -> int:
        if type(size) is not int or size not in range(2**20):
            raise _Unusual
        return size

    def _symbols(self, symbols: list[str]) -> list[str]:
        if type(symbols) is not list or not _are_plain(symbols):
            raise _Unusual
        return symbols


def _are_plain(names: list[str]) -> bool:
    """Whether all are plain names, each there once."""
    together = ",".join(names)
    return (
        not names or (_PLAIN_NAMES(together) is not None and together.count(",") == len(names) - 1)
    ) and len(set(names)) == len(names)


def _extras(value: dict[str, Any], reserved: frozenset[str]) -> str:
    """The custom properties beside the `reserved` keys, as equality sees them."""
    if value.keys() <= reserved:
        return ""
    return canonical_json({key: each for key, each in value.items() if key not in reserved})
