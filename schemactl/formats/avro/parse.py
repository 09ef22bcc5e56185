"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release.

Pulsar 4.0 carries Avro 1.11.4, 4.2 Avro 1.12.0 and 5.0 Avro 1.12.2 (org.apache.avro.Schema and ParseContext); the newer
two let Pulsar's own CompatibleNameValidator judge names.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final, TypeVar

from schemactl.formats.avro.defaults import FieldDefaults, field_default
from schemactl.formats.avro.equality import equal
from schemactl.formats.avro.names import (
    Name,
    Path,
    first_repeated,
    is_name,
    is_name_with_dollar,
    pointer,
    qualify,
)
from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.references import Unresolved, check_branches, completion_order, resolve
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
from schemactl.formats.avro.text import InvalidAvro, decode, read, shown, without_comments
from schemactl.model import Release

_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_NEEDED: Final = frozenset({"fields", "name", "namespace", "size", "symbols", "type"})
"""Keys of a named type that say nothing beyond what it must have."""

_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})

_ORDERS: Final[Mapping[str, Order]] = {
    "ASCENDING": "ascending",
    "DESCENDING": "descending",
    "IGNORE": "ignore",
}
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The longest array of bytes that Java's Avro makes."""

Json = dict[str, JsonValue]
Leaf = TypeVar("Leaf", Enum, Fixed)


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """The schema in `text`, as the Avro inside that Pulsar release reads it.

    With `validate_defaults` a default must be a value of its field's type, as where the broker looks for an upload among
    the versions it has; without, it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if not validate_defaults:
        return _Parser(decode(text), release, None).parse()
    defaults = FieldDefaults(release)
    try:
        return _Parser(decode(text), release, defaults).parse()
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Everything for which `parse` refuses `text` with its defaults validated: every bad default, and one error else."""
    defaults = FieldDefaults(release)
    try:
        _Parser(decode(text), release, defaults).parse()
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


class _Parser:
    """Reads one definition.

    In Avro 1.11 a type is defined once, and before it is used. Avro 1.12 reads the whole text first and resolves
    references then; it accepts a second definition that equals the first.
    """

    def __init__(self, text: str, release: Release, defaults: FieldDefaults | None) -> None:
        self._text = text
        self._release = release
        self._two_steps = release is not Release.R4_0
        self._is_name: Callable[[str], bool] = is_name_with_dollar if self._two_steps else is_name
        self._known_inside = release is not Release.R5_0
        """Whether a type is known as soon as its name is read; in Avro 1.12.2 it has to be complete."""
        self._types: dict[str, NamedSchema] = {}
        self._good_namespaces: set[str] = set()
        self._unresolved: list[Unresolved] = []
        self._holders: list[Field | Array | Map | Union] = []
        """What holds a reference that is not resolved yet."""
        self._open: set[int] = set()
        """The identities of the records whose fields are being read."""
        self._defaults = defaults

    def parse(self) -> Schema:
        schema = self._schema(read(self._text), None, ())
        if not isinstance(schema, Node):
            schema = run(schema)
        if not self._two_steps:
            return schema
        order: list[Record] = []
        if self._defaults and self._defaults.of_records:
            order = completion_order(schema, self._types)
        if self._unresolved:
            schema = resolve(schema, self._unresolved, self._holders, self._types)
        if order and self._defaults:
            self._defaults.check_again(order)
        return schema

    # One method for each kind of schema. Those which lead deeper are generators, see `recursion`.

    def _schema(self, json: JsonValue, namespace: str | None, path: Path) -> Schema | Deep[Schema]:
        if isinstance(json, str):
            if json in PRIMITIVE_TYPES:
                return Primitive(json, NO_PROPERTIES)
            return self._reference(json, namespace, path)
        if isinstance(json, list):
            return self._union(json, namespace, path)
        if not isinstance(json, dict):
            expected = "a type's name, an object or a union's array"
            raise _invalid(f"{shown(json)} is not a schema; expected {expected}", path)
        kind = json.get("type")
        if not isinstance(kind, str):
            is_nested = isinstance(kind, dict | list)
            fix = "put the inner schema in place of the object around it" if is_nested else ""
            raise _invalid(f'"type" is {shown(kind)}; expected the name of a type', path, "type", fix=fix)
        if kind in PRIMITIVE_TYPES:
            return Primitive(kind, _properties(json, _RESERVED))
        if kind in self._methods:
            return self._methods[kind](self, json, namespace, path)
        return self._wrapped_reference(kind, namespace, path)

    def _record(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        name = self._name(json, namespace, path)
        is_error = json["type"] == "error"
        record = Record(*name, (), None, NO_PROPERTIES, (), {}, is_error)
        self._open.add(id(record))
        if self._known_inside:
            self._define(record, path)
        items = json.get("fields")
        if not isinstance(items, list):
            what = f'"fields" of record {name.full} is {shown(items)}; expected an array of fields'
            raise _invalid(what, path, "fields")
        fields: dict[str, Field] = {}
        for index, item in enumerate(items):
            place = ((path, "fields"), index)
            field_name = item.get("name") if isinstance(item, dict) else None
            if not isinstance(field_name, str):
                raise _invalid(f'field {index} of record {name.full} has no "name"', place)
            if "type" not in item:
                raise _invalid(f'field {field_name} of record {name.full} has no "type"', place)
            schema = self._schema(item["type"], name.namespace, (place, "type"))
            if not isinstance(schema, Node):
                schema = yield schema
            if field_name in fields:
                what = f"record {name.full} has two fields {field_name}"
                raise _invalid(what, place, exception="AvroRuntimeException")
            fields[field_name] = field = self._field(field_name, schema, item, place)
            if self._defaults and field.default is not NO_DEFAULT:
                self._defaults.check(field, name.full, place, self._open)
        record.fields = tuple(fields.values())
        record.fields_by_name = fields
        self._open.discard(id(record))
        self._finish(record, json, _RESERVED, path)
        return record

    def _field(self, name: str, schema: Schema, json: Json, path: Path) -> Field:
        if not self._is_name(name):
            raise self._bad_name(name, "the field name", (path, "name"))
        field = Field(name, schema, NO_DEFAULT, (), "ascending", None, NO_PROPERTIES)
        if isinstance(schema, Unresolved):
            self._holders.append(field)
        if len(json) > 2:
            if "default" in json:
                field.default = field_default(schema, json["default"], (path, "default"))
            if "order" in json:
                field.order = _order(json["order"], (path, "order"))
            if "aliases" in json:
                field.aliases = tuple(dict.fromkeys(_aliases(json, path)))
            field.doc = _text(json, "doc")
            field.properties = _properties(json, _FIELD_RESERVED)
        return field

    def _enum(self, json: Json, namespace: str | None, path: Path) -> Enum:
        name = self._name(json, namespace, path)
        symbols = json.get("symbols")
        if not isinstance(symbols, list):
            what = f'"symbols" of enum {name.full} is {shown(symbols)}; expected an array of names'
            raise _invalid(what, path, "symbols")
        for index, symbol in enumerate(symbols):
            if not isinstance(symbol, str) or not self._is_name(symbol):
                raise self._bad_name(symbol, "the symbol", ((path, "symbols"), index))
        twice = first_repeated(symbols)
        if twice is not None:
            raise _invalid(f"enum {name.full} lists {symbols[twice]} twice", ((path, "symbols"), twice))
        default = _text(json, "default")
        if default is not None and default not in symbols:
            what = f"the default of enum {name.full} is {shown(default)}, which is not one of its symbols"
            fix = f"list it among the symbols, or take one of them: {', '.join(symbols[:10])}"
            raise _invalid(what, path, "default", fix=fix)
        enum = Enum(*name, (), None, NO_PROPERTIES, tuple(symbols), default)
        return self._finish_leaf(enum, json, _ENUM_RESERVED, path)

    def _fixed(self, json: Json, namespace: str | None, path: Path) -> Fixed:
        name = self._name(json, namespace, path)
        size = json.get("size")
        if type(size) is not int or size not in _INT32:
            what = f'"size" of fixed {name.full} is {shown(size)}; expected a number of bytes'
            raise _invalid(what, path, "size")
        if size < 0 or size > _MAX_FIXED_SIZE:
            exception = "AvroRuntimeException" if size < 0 else "UnsupportedOperationException"
            raise _invalid(f"fixed {name.full} cannot have {size} bytes", path, "size", exception=exception)
        fixed = Fixed(*name, (), None, NO_PROPERTIES, size)
        return self._finish_leaf(fixed, json, _RESERVED, path)

    def _array(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        if "items" not in json:
            raise _invalid('an array without "items"; expected the schema of its items', path)
        items = self._schema(json["items"], namespace, (path, "items"))
        if not isinstance(items, Node):
            items = yield items
        array = Array(items, self._container_properties(json, path))
        if isinstance(items, Unresolved):
            self._holders.append(array)
        return array

    def _map(self, json: Json, namespace: str | None, path: Path) -> Deep[Schema]:
        if "values" not in json:
            raise _invalid('a map without "values"; expected the schema of its values', path)
        values = self._schema(json["values"], namespace, (path, "values"))
        if not isinstance(values, Node):
            values = yield values
        found = Map(values, self._container_properties(json, path))
        if isinstance(values, Unresolved):
            self._holders.append(found)
        return found

    def _union(self, json: list[JsonValue], namespace: str | None, path: Path) -> Deep[Schema]:
        branches: list[Schema] = []
        for index, item in enumerate(json):
            branch = self._schema(item, namespace, (path, index))
            if not isinstance(branch, Node):
                branch = yield branch
            branches.append(branch)
        union = Union(tuple(branches))
        check_branches(union, path)
        if self._unresolved and any(isinstance(branch, Unresolved) for branch in branches):
            self._holders.append(union)
        return union

    _methods: ClassVar[Mapping[str, Callable[[_Parser, Json, str | None, Path], Schema | Deep[Schema]]]] = {
        "record": _record,
        "error": _record,
        "enum": _enum,
        "fixed": _fixed,
        "array": _array,
        "map": _map,
    }

    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        if self._two_steps:
            full = f"{namespace}.{name}" if namespace and "." not in name else name
            return self._types.get(full) or self._types.get(name) or self._unknown(full, path)
        known = self._types.get(self._qualified(name, namespace, path).full)
        known = known or self._types.get(qualify(name, None).full)
        if known is None:
            raise self._undefined(name, path)
        return known

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """What `{"type": "Name"}` refers to."""
        if self._release is Release.R4_0:
            known = self._types.get(self._qualified(name, namespace, path).full)
            if known is None:
                raise self._undefined(name, (path, "type"))
            return known
        # Pulsar 5.0 unwraps such references for Avro 1.12.2, with a JSON parser that does not read comments.
        if self._release is Release.R5_0 and without_comments(self._text) != self._text:
            raise _invalid(
                f'{{"type": {shown(name)}}} does not name a kind of type', path, fix=f"write {shown(name)}"
            )
        return self._reference(name, namespace, path)

    def _unknown(self, full_name: str, path: Path) -> Unresolved:
        """Stands for a type that may be defined further down, or is being defined."""
        reference = Unresolved(full_name, path, len(self._unresolved))
        self._unresolved.append(reference)
        return reference

    def _undefined(self, name: str, path: Path) -> InvalidAvro:
        near = difflib.get_close_matches(
            name, [*self._types, *PRIMITIVE_TYPES], 1
        ) or difflib.get_close_matches(name.lower(), PRIMITIVE_TYPES, 1)
        hint = f"write {shown(near[0])}, if that is meant; otherwise define" if near else "define"
        return _invalid(
            f"{shown(name)} is not defined at this place", path, fix=f"{hint} it before its first use"
        )

    # What named types share.

    def _name(self, json: Json, namespace: str | None, path: Path) -> Name:
        name = json.get("name")
        if not isinstance(name, str):
            raise _invalid(f'"name" of this {json["type"]} is {shown(name)}; expected a name', path, "name")
        space = json.get("namespace")
        found = self._qualified(name, space if isinstance(space, str) else namespace, (path, "name"))
        if found.full in PRIMITIVE_TYPES:
            what = f"{json['type']} {found.full} has the name of a primitive type"
            raise _invalid(what, path, "name", exception="AvroTypeException")
        return found

    def _qualified(self, name: str, namespace: str | None, path: Path) -> Name:
        found = qualify(name, namespace)
        if not self._is_name(found.local):
            raise self._bad_name(found.local, "the name", path)
        return found

    def _bad_name(self, name: JsonValue, what: str, path: Path) -> InvalidAvro:
        expected = "a letter or _, followed by letters, digits and _"
        fix = ""
        if isinstance(name, str) and is_name_with_dollar(name):
            expected += "; only Pulsar 4.2 and newer accept $"
            fix = f"write {shown(name.replace('$', '_'))}"
        return _invalid(f"{what} is {shown(name)}; expected {expected}", path, fix=fix)

    def _define(self, named: NamedSchema, path: Path) -> None:
        if self._two_steps and named.namespace and named.namespace not in self._good_namespaces:
            self._check_namespace(named.namespace, path)
        earlier = self._types.setdefault(named.full_name, named)
        if earlier is named or (self._two_steps and self._may_repeat(named, earlier)):
            return
        fix = "refer to the first definition by its name" + (
            ", or make the two equal" if self._two_steps else ""
        )
        raise _invalid(f"{named.full_name} is defined twice", path, "name", fix=fix)

    def _check_namespace(self, namespace: str, path: Path) -> None:
        for part in namespace.split("."):
            if not self._is_name(part):
                raise self._bad_name(part, f"a part of the namespace {namespace}", path)
        self._good_namespaces.add(namespace)

    def _may_repeat(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        if self._known_inside and isinstance(named, Record):
            # Avro 1.12.0 compares records before it has read the new one's fields: only an unfinished one is equal.
            return isinstance(earlier, Record) and id(earlier) in self._open
        return equal(named, earlier)

    def _finish_leaf(self, leaf: Leaf, json: Json, reserved: frozenset[str], path: Path) -> Leaf:
        if self._known_inside:
            self._define(leaf, path)
        self._finish(leaf, json, reserved, path)
        return leaf

    def _finish(self, named: NamedSchema, json: Json, reserved: frozenset[str], path: Path) -> None:
        if not json.keys() <= _NEEDED:
            named.doc = _text(json, "doc")
            is_record = isinstance(named, Record)
            named.properties = (
                self._container_properties(json, path) if is_record else _properties(json, reserved)
            )
            if "aliases" in json:
                named.aliases = self._type_aliases(named, json, path)
        if not self._known_inside:
            self._define(named, path)

    def _type_aliases(self, named: NamedSchema, json: Json, path: Path) -> tuple[str, ...]:
        aliases = []
        for index, alias in enumerate(_aliases(json, path)):
            found = self._qualified(alias, named.namespace, ((path, "aliases"), index))
            if self._two_steps and isinstance(named, Record):
                # Avro 1.12 copies records and reads their aliases again, which loses the null namespace.
                found = qualify(found.full, named.namespace)
            aliases.append(found.full)
        return tuple(dict.fromkeys(aliases))

    def _container_properties(self, json: Json, path: Path) -> Mapping[str, JsonValue]:
        properties = _properties(json, _RESERVED)
        if properties and self._two_steps:
            for key, value in properties.items():
                if _holds_big_integer(value):
                    # Avro 1.12 copies records, arrays and maps, and loses such numbers on the way.
                    what = f"the property {key} holds an integer of more than 64 bits"
                    raise _invalid(
                        what, path, fix="write the number as text", exception="AvroRuntimeException"
                    )
        return properties


def _invalid(
    what: str, path: Path, key: str = "", *, fix: str = "", exception: str = "SchemaParseException"
) -> InvalidAvro:
    return InvalidAvro(what, pointer=pointer((path, key) if key else path), fix=fix, exception=exception)


def _properties(json: Json, reserved: frozenset[str]) -> Mapping[str, JsonValue]:
    if json.keys() <= reserved:
        return NO_PROPERTIES
    return {key: value for key, value in json.items() if key not in reserved}


def _text(json: Json, key: str) -> str | None:
    value = json.get(key)
    return value if isinstance(value, str) else None


def _aliases(json: Json, path: Path) -> list[str]:
    aliases = json.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _invalid(f'"aliases" is {shown(aliases)}; expected an array of names', path, "aliases")
    return aliases


def _order(order: JsonValue, path: Path) -> Order:
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        exception = "IllegalArgumentException" if isinstance(order, str) else "NullPointerException"
        what = f'"order" is {shown(order)}; expected ascending, descending or ignore'
        raise _invalid(what, path, exception=exception)
    return _ORDERS[order.upper()]


def _holds_big_integer(value: JsonValue) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, int) and item not in _INT64:
            return True
        if isinstance(item, dict | list):
            todo.extend(item.values() if isinstance(item, dict) else item)
    return False
