"""Reads the parsed JSON of a definition into the model, and refuses what is not a schema.

Follows org.apache.avro.Schema.parse. How types are defined and found by name differs between versions of Avro: `dialects`
has that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from schemactl.formats.avro.defaults import FieldDefaults, field_default
from schemactl.formats.avro.names import Name, Path, first_repeated, is_plain_name, pointer, qualify
from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.references import Holder, Unresolved, check_branches
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    NO_PROPERTIES,
    PRIMITIVE_TYPES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    NamedSchema,
    Node,
    Order,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.text import InvalidAvro, shown

Json = dict[str, JsonValue]

_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_NEEDED: Final = frozenset({"fields", "name", "namespace", "size", "symbols", "type"})
"""Keys of a named type that say nothing beyond what it must have."""

_NAMES_ONLY: Final = frozenset({str})
"""The types of what is in a union's array whose branches need no further reading."""

_ORDERS: Final[Mapping[str, Order]] = {
    "ASCENDING": "ascending",
    "DESCENDING": "descending",
    "IGNORE": "ignore",
}
_INT32: Final = range(-(2**31), 2**31)
_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The longest array of bytes that Java's Avro makes."""


class DefinitionReader(ABC):
    """Reads one definition. Those of its methods that lead deeper are generators, see `recursion`."""

    def __init__(self, defaults: FieldDefaults | None) -> None:
        self._defaults = defaults
        self._types: dict[str, NamedSchema] = {}
        self._open: set[int] = set()
        """The identities of the records whose fields are being read."""
        self._holders: list[Holder] = []
        """What holds a reference that is not resolved yet."""

    def read(self, json: JsonValue) -> Schema:
        """The schema that `json` defines; references may be unresolved.

        Raises:
            InvalidAvro: it is none.
        """
        schema = self._schema(json, None, ())
        return schema if isinstance(schema, Node) else run(schema)

    # What dialects differ in.

    @abstractmethod
    def _is_name(self, name: str) -> bool:
        """Whether `name` may name a type, a field or a symbol. Plain names may always."""

    @abstractmethod
    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """The type called `name` where `namespace` is in force."""

    @abstractmethod
    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """The type that `{"type": name}` refers to."""

    @abstractmethod
    def _named(self, named: NamedSchema, path: Path) -> None:
        """Called when a type is read up to its name, size or symbols: without fields, properties and aliases."""

    @abstractmethod
    def _complete(self, named: NamedSchema, path: Path) -> None:
        """Called when a type is read completely."""

    @abstractmethod
    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        """Refuses properties of a record, array or map that the dialect cannot keep."""

    # One method for each kind of schema.

    def _schema(self, json: JsonValue, namespace: str | None, path: Path) -> Schema | Deep[Schema]:
        if isinstance(json, str):
            if json in PRIMITIVE_TYPES:
                return Primitive(json, NO_PROPERTIES)
            return self._reference(json, namespace, path)
        if isinstance(json, list):
            if _NAMES_ONLY.issuperset(map(type, json)):
                return self._union_of_names(json, namespace, path)
            return self._union(json, namespace, path)
        if not isinstance(json, dict):
            expected = "a type's name, an object or a union's array"
            raise invalid(f"{shown(json)} is not a schema; expected {expected}", path)
        kind = json.get("type")
        if not isinstance(kind, str):
            is_nested = isinstance(kind, dict | list)
            fix = "put the inner schema in place of the object around it" if is_nested else ""
            raise invalid(f'"type" is {shown(kind)}; expected the name of a type', path, "type", fix=fix)
        if kind in PRIMITIVE_TYPES:
            return Primitive(kind, _properties(json, _RESERVED))
        if kind in self._methods:
            return self._methods[kind](self, json, namespace, path)
        return self._wrapped_reference(kind, namespace, path)

    def _record(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        full_name, name, space = self._name(json, namespace, path)
        record = Record(full_name, name, space, (), None, NO_PROPERTIES, (), {}, json["type"] == "error")
        self._open.add(id(record))
        self._named(record, path)
        path_of_fields = (path, "fields")
        fields: dict[str, Field] = {}
        for index, item in enumerate(_list(json, "fields", path)):
            try:
                field_name, kind = item["name"], item["type"]
            except (KeyError, TypeError):
                raise _bad_field(item, index, full_name, path_of_fields) from None
            schema: Schema
            if type(kind) is str and kind in PRIMITIVE_TYPES:  # as most fields are
                schema = Primitive(kind, NO_PROPERTIES)
            else:
                found = self._schema(kind, space, ((path_of_fields, index), "type"))
                schema = found if isinstance(found, Node) else (yield found)
            if type(field_name) is not str:
                raise _bad_field(item, index, full_name, path_of_fields)
            if field_name in fields:
                what = f"record {full_name} has two fields {field_name}"
                raise invalid(what, (path_of_fields, index), exception="AvroRuntimeException")
            if not is_plain_name(field_name) and not self._is_name(field_name):
                raise bad_name(field_name, "the field name", ((path_of_fields, index), "name"))
            fields[field_name] = field = Field(
                field_name, schema, NO_DEFAULT, (), "ascending", None, NO_PROPERTIES
            )
            if type(schema) is Unresolved:
                self._holders.append(field)
            if len(item) > 2:
                self._finish_field(field, item, full_name, (path_of_fields, index))
        record.fields = tuple(fields.values())
        record.fields_by_name = fields
        self._open.discard(id(record))
        if not json.keys() <= _NEEDED:
            record.doc = _text(json, "doc")
            record.properties = self._container_properties(json, path)
            record.aliases = self._aliases(record, json, path)
        self._complete(record, path)
        return record

    def _finish_field(self, field: Field, json: Json, record: str, path: Path) -> None:
        if "default" in json:
            field.default = field_default(field.schema, json["default"], (path, "default"))
            if self._defaults:
                self._defaults.check(field, record, path, self._open)
            if len(json) == 3:
                return
        if "order" in json:
            field.order = _order(json["order"], (path, "order"))
        if "aliases" in json:
            field.aliases = tuple(dict.fromkeys(_names(json, path)))
        field.doc = _text(json, "doc")
        field.properties = _properties(json, _FIELD_RESERVED)

    def _enum(self, json: Json, namespace: str | None, path: Path) -> Enum:
        full_name, name, space = self._name(json, namespace, path)
        symbols = _list(json, "symbols", path)
        for index, symbol in enumerate(symbols):
            if not isinstance(symbol, str) or not (is_plain_name(symbol) or self._is_name(symbol)):
                raise bad_name(symbol, "the symbol", ((path, "symbols"), index))
        twice = first_repeated(symbols)
        if twice is not None:
            raise invalid(f"enum {full_name} lists {symbols[twice]} twice", ((path, "symbols"), twice))
        default = _text(json, "default")
        if default is not None and default not in symbols:
            what = f"the default of enum {full_name} is {shown(default)}, which is not one of its symbols"
            fix = f"list it among the symbols, or take one of them: {', '.join(symbols[:10])}"
            raise invalid(what, path, "default", fix=fix)
        enum = Enum(full_name, name, space, (), None, NO_PROPERTIES, tuple(symbols), default)
        self._finish(enum, json, _ENUM_RESERVED, path)
        return enum

    def _fixed(self, json: Json, namespace: str | None, path: Path) -> Fixed:
        full_name, name, space = self._name(json, namespace, path)
        size = json.get("size")
        if type(size) is not int or size not in _INT32:
            what = f'"size" of fixed {full_name} is {shown(size)}; expected a number of bytes'
            raise invalid(what, path, "size")
        if size < 0 or size > _MAX_FIXED_SIZE:
            exception = "AvroRuntimeException" if size < 0 else "UnsupportedOperationException"
            raise invalid(f"fixed {full_name} cannot have {size} bytes", path, "size", exception=exception)
        fixed = Fixed(full_name, name, space, (), None, NO_PROPERTIES, size)
        self._finish(fixed, json, _RESERVED, path)
        return fixed

    def _array(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        if "items" not in json:
            raise invalid('an array without "items"; expected the schema of its items', path)
        items = self._schema(json["items"], namespace, (path, "items"))
        array = Array(
            items if isinstance(items, Node) else (yield items), self._container_properties(json, path)
        )
        if type(array.items) is Unresolved:
            self._holders.append(array)
        return array

    def _map(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        if "values" not in json:
            raise invalid('a map without "values"; expected the schema of its values', path)
        values = self._schema(json["values"], namespace, (path, "values"))
        found = Map(
            values if isinstance(values, Node) else (yield values), self._container_properties(json, path)
        )
        if type(found.values) is Unresolved:
            self._holders.append(found)
        return found

    def _union(self, json: list[JsonValue], namespace: str | None, path: Path) -> Deep[Schema]:
        branches: list[Schema] = []
        for index, item in enumerate(json):
            branch = self._schema(item, namespace, (path, index))
            branches.append(branch if isinstance(branch, Node) else (yield branch))
        return self._union_of(branches, path)

    def _union_of_names(self, names: list[str], namespace: str | None, path: Path) -> Union:
        branches: list[Schema] = [
            Primitive(name, NO_PROPERTIES)
            if name in PRIMITIVE_TYPES
            else self._reference(name, namespace, (path, index))
            for index, name in enumerate(names)
        ]
        return self._union_of(branches, path)

    def _union_of(self, branches: list[Schema], path: Path) -> Union:
        union = Union(tuple(branches))
        check_branches(union, path)
        if Unresolved in map(type, branches):
            self._holders.append(union)
        return union

    _methods: ClassVar[
        Mapping[str, Callable[[DefinitionReader, Json, str | None, Path], Schema | Deep[Schema]]]
    ] = {
        "record": _record,
        "error": _record,
        "enum": _enum,
        "fixed": _fixed,
        "array": _array,
        "map": _map,
    }

    # What named types share.

    def _name(self, json: Json, namespace: str | None, path: Path) -> Name:
        given = json.get("name")
        if type(given) is not str:
            raise invalid(f'"name" of this {json["type"]} is {shown(given)}; expected a name', path, "name")
        if "namespace" in json:
            space = json["namespace"]
            namespace = space if isinstance(space, str) else namespace
        found = qualify(given, namespace)
        full_name, name, _ = found
        if not is_plain_name(name) and not self._is_name(name):
            raise bad_name(name, "the name", (path, "name"))
        if full_name in PRIMITIVE_TYPES:
            what = f"{json['type']} {full_name} has the name of a primitive type"
            raise invalid(what, path, "name", exception="AvroTypeException")
        return found

    def _finish(self, leaf: Enum | Fixed, json: Json, reserved: frozenset[str], path: Path) -> None:
        self._named(leaf, path)
        if not json.keys() <= _NEEDED:
            leaf.doc = _text(json, "doc")
            leaf.properties = _properties(json, reserved)
            leaf.aliases = self._aliases(leaf, json, path)
        self._complete(leaf, path)

    def _aliases(self, named: NamedSchema, json: Json, path: Path) -> tuple[str, ...]:
        aliases: dict[str, None] = {}
        for index, given in enumerate(_names(json, path) if "aliases" in json else ()):
            full_name, name, _ = qualify(given, named.namespace)
            if not is_plain_name(name) and not self._is_name(name):
                raise bad_name(name, "the alias", ((path, "aliases"), index))
            aliases[full_name] = None
        return tuple(aliases)

    def _container_properties(self, json: Json, path: Path) -> Mapping[str, JsonValue]:
        properties = _properties(json, _RESERVED)
        if properties:
            self._check_properties(properties, path)
        return properties


def invalid(
    what: str, path: Path, key: str = "", *, fix: str = "", exception: str = "SchemaParseException"
) -> InvalidAvro:
    """The refusal of what is at `path`, or under its `key`."""
    return InvalidAvro(what, pointer=pointer((path, key) if key else path), fix=fix, exception=exception)


def bad_name(name: JsonValue, what: str, path: Path) -> InvalidAvro:
    """The refusal of a name."""
    expected = "a letter or _, followed by letters, digits and _"
    fix = ""
    if isinstance(name, str) and "$" in name:
        expected += "; only Pulsar 4.2 and newer accept $"
        fix = f"write {shown(name.replace('$', '_'))}"
    return invalid(f"{what} is {shown(name)}; expected {expected}", path, fix=fix)


def _list(json: Json, key: str, path: Path) -> list[JsonValue]:
    items = json.get(key)
    if not isinstance(items, list):
        what = f'"{key}" of {json["type"]} {json["name"]} is {shown(items)}; expected an array'
        raise invalid(what, path, key)
    return items


def _bad_field(field: JsonValue, index: int, record: str, path: Path) -> InvalidAvro:
    name = field.get("name") if isinstance(field, dict) else None
    if isinstance(name, str):
        return invalid(f'field {name} of record {record} has no "type"', (path, index))
    return invalid(f'field {index} of record {record} has no "name"', (path, index))


def _properties(json: Json, reserved: frozenset[str]) -> Mapping[str, JsonValue]:
    if json.keys() <= reserved:
        return NO_PROPERTIES
    return {key: value for key, value in json.items() if key not in reserved}


def _text(json: Json, key: str) -> str | None:
    value = json.get(key)
    return value if isinstance(value, str) else None


def _names(json: Json, path: Path) -> list[str]:
    aliases = json["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise invalid(f'"aliases" is {shown(aliases)}; expected an array of names', path, "aliases")
    return aliases


def _order(order: JsonValue, path: Path) -> Order:
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        exception = "IllegalArgumentException" if isinstance(order, str) else "NullPointerException"
        what = f'"order" is {shown(order)}; expected ascending, descending or ignore'
        raise invalid(what, path, exception=exception)
    return _ORDERS[order.upper()]
