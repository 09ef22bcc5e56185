"""The parts of a definition that are read alike wherever they stand: names, symbols, sizes, properties, aliases.

`is_name` says which names there may be that are not plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from schemactl.formats.avro.names import Name, Path, first_repeated, is_plain_name, pointer, qualify
from schemactl.formats.avro.schema import (
    NO_PROPERTIES,
    PRIMITIVES,
    Enum,
    Field,
    JsonValue,
    NamedSchema,
    Order,
    Primitive,
    Record,
)
from schemactl.formats.avro.text import InvalidAvro, shown

Json = dict[str, JsonValue]
IsName = Callable[[str], bool]
CheckProperties = Callable[[Mapping[str, JsonValue], Path], None]

_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final[Mapping[str, Order]] = {
    "ASCENDING": "ascending",
    "DESCENDING": "descending",
    "IGNORE": "ignore",
}
_INT32: Final = range(-(2**31), 2**31)
_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The longest array of bytes that Java's Avro makes."""


def name_of(json: Json, namespace: str | None, is_name: IsName, path: Path) -> Name:
    """The name that `json` gives to a type where `namespace` is in force.

    Raises:
        InvalidAvro: it gives none, or one that no type may have.
    """
    name = json.get("name")
    if type(name) is not str:
        raise invalid(f'"name" of this {json["type"]} is {shown(name)}; expected a name', path, "name")
    if "." in name:
        namespace, _, name = name.rpartition(".")
    elif "namespace" in json and type(json["namespace"]) is str:
        namespace = json["namespace"]
    # What is plain is told at once, without a call.
    if not (name.isidentifier() and name.isascii()) and not is_name(name):
        raise bad_name(name, "the name", (path, "name"))
    if namespace:
        return f"{namespace}.{name}", name, namespace
    if name in PRIMITIVES:
        what = f"{json['type']} {name} has the name of a primitive type"
        raise invalid(what, path, "name", exception="AvroTypeException")
    return name, name, None


def list_of(json: Json, key: str, path: Path) -> list[JsonValue]:
    """The fields of a record, or the symbols of an enum.

    Raises:
        InvalidAvro: there is no such list.
    """
    items = json.get(key)
    if not isinstance(items, list):
        what = f'"{key}" of {json["type"]} {json["name"]} is {shown(items)}; expected an array'
        raise invalid(what, path, key)
    return items


def symbols_of(json: Json, full_name: str, is_name: IsName, path: Path) -> tuple[tuple[str, ...], str | None]:
    """The symbols of an enum, and which of them is its default.

    Raises:
        InvalidAvro: one of them is no name or there twice, or the default is not among them.
    """
    symbols = list_of(json, "symbols", path)
    if not _are_plain_names(symbols):
        for index, symbol in enumerate(symbols):
            if type(symbol) is not str or not (is_plain_name(symbol) or is_name(symbol)):
                raise bad_name(symbol, "the symbol", ((path, "symbols"), index))
    if len(set(symbols)) < len(symbols):
        twice = first_repeated(symbols)
        raise invalid(f"enum {full_name} lists {symbols[twice]} twice", ((path, "symbols"), twice))
    default = _text(json, "default")
    if default is not None and default not in symbols:
        what = f"the default of enum {full_name} is {shown(default)}, which is not one of its symbols"
        fix = f"list it among the symbols, or take one of them: {', '.join(symbols[:10])}"
        raise invalid(what, path, "default", fix=fix)
    return tuple(symbols), default


def size_of(json: Json, full_name: str, path: Path) -> int:
    """The size of a fixed in bytes.

    Raises:
        InvalidAvro: there is none that Java could make.
    """
    size = json.get("size")
    if type(size) is not int or size not in _INT32:
        what = f'"size" of fixed {full_name} is {shown(size)}; expected a number of bytes'
        raise invalid(what, path, "size")
    if size < 0 or size > _MAX_FIXED_SIZE:
        exception = "AvroRuntimeException" if size < 0 else "UnsupportedOperationException"
        raise invalid(f"fixed {full_name} cannot have {size} bytes", path, "size", exception=exception)
    return size


def primitive_of(json: Json) -> Primitive:
    """The primitive, with its properties."""
    properties = properties_of(json) if len(json) > 1 else NO_PROPERTIES
    kind = json["type"]
    return Primitive(kind, properties) if properties else PRIMITIVES[kind]


def finish_field(field: Field, json: Json, path: Path) -> None:
    """Sets what a field may have besides name, type and default.

    Raises:
        InvalidAvro: its order or its aliases are none.
    """
    field.doc = _text(json, "doc")
    if "order" in json:
        field.order = order_of(json, path)
    if "aliases" in json:
        field.aliases = tuple(dict.fromkeys(_names(json, path)))
    field.properties = properties_of(json, _FIELD_RESERVED)


def finish_named(
    named: NamedSchema, json: Json, is_name: IsName, check_properties: CheckProperties, path: Path
) -> None:
    """Sets what a type may have besides name, namespace, and fields, symbols or size.

    Raises:
        InvalidAvro: its aliases are none, or `check_properties` refuses a record's.
    """
    named.doc = _text(json, "doc")
    named.properties = properties_of(json, _ENUM_RESERVED if type(named) is Enum else _RESERVED)
    if named.properties and type(named) is Record:
        check_properties(named.properties, path)
    if "aliases" not in json:
        return
    aliases: dict[str, None] = {}
    for index, given in enumerate(_names(json, path)):
        full_name, name, _ = qualify(given, named.namespace)
        if not is_plain_name(name) and not is_name(name):
            raise bad_name(name, "the alias", ((path, "aliases"), index))
        aliases[full_name] = None
    named.aliases = tuple(aliases)


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


def _are_plain_names(names: list[JsonValue]) -> bool:
    try:
        return all(map(str.isidentifier, names)) and "".join(names).isascii()
    except TypeError:
        return False


def properties_of(json: Json, reserved: frozenset[str] = _RESERVED) -> Mapping[str, JsonValue]:
    """What `json` holds besides Avro's own attributes."""
    return {key: json[key] for key in json if key not in reserved} or NO_PROPERTIES


def _text(json: Json, key: str) -> str | None:
    value = json.get(key)
    return value if isinstance(value, str) else None


def _names(json: Json, path: Path) -> list[str]:
    aliases = json["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise invalid(f'"aliases" is {shown(aliases)}; expected an array of names', path, "aliases")
    return aliases


def order_of(json: Json, path: Path) -> Order:
    """How a field counts in comparisons of values.

    Raises:
        InvalidAvro: there is no such order.
    """
    order = json.get("order", "ascending")
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        exception = "IllegalArgumentException" if isinstance(order, str) else "NullPointerException"
        what = f'"order" is {shown(order)}; expected ascending, descending or ignore'
        raise invalid(what, path, "order", exception=exception)
    return _ORDERS[order.upper()]
