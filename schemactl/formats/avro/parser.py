"""The parser of Avro definitions: from text to the model, rejecting what Java rejects in each Pulsar release.

Follows org.apache.avro.Schema.parse, ParseContext and util.SchemaResolver. The parser is recursive: `json_text` rejects what
nests deeper than MAX_DEPTH levels.

The versions of Avro inside the releases differ in which names they take, and in when a type is known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final

from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import INT_RANGE, LONG_RANGE, FieldDefaults, default_of
from schemactl.formats.avro.json_text import (
    InvalidAvro,
    TrailingText,
    check_limits,
    decode,
    read,
    shown,
    without_comments,
)
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    NO_PROPERTIES,
    PRIMITIVE_TYPES,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    NamedSchema,
    Order,
    Path,
    Primitive,
    Record,
    Schema,
    Union,
    children,
    equal,
    first_repeated,
    is_name,
    is_plain_namespace,
    pointer,
    qualify,
)

# References to types that are defined further down: Avro 1.12 resolves them at the end of the text.


Holder = Field | Array | Map | Union

_FULL_NAME: Final = attrgetter("full_name")

_MAX_STEPS: Final = 2_000_000
"""So much work `completion_order` does at most. It grows with the square of the definition at worst."""


class Unresolved(Record):
    """Stands for the type called `target` until references are resolved: as in Java an empty record, equal to no other."""

    __slots__ = ("path", "target")

    def __init__(self, target: str, path: Path, number: int) -> None:
        Record.__init__(self, f"{target} ({number})", target, None)
        self.target = target
        self.path = path


def resolve(
    root: Schema, references: Sequence[Unresolved], holders: Sequence[Holder], types: Mapping[str, NamedSchema]
) -> None:
    """Put types in place of the `references` in a definition; `holders` have them.

    Raises:
        InvalidAvro: there is no such type, or a union now has a branch twice.
    """
    for reference in references:
        if reference.target not in types or reference is root:
            exception = "NullPointerException" if reference is root else "AvroTypeException"
            what = f"{shown(reference.target)} is not defined anywhere in this definition"
            fix = "define it, or correct the name"
            raise InvalidAvro(what, pointer=pointer(reference.path), fix=fix, exception=exception)
    for holder in holders:
        if isinstance(holder, Union):
            place = next(branch.path[0] for branch in holder.branches if isinstance(branch, Unresolved))
            holder.branches = tuple([_resolved(branch, types) for branch in holder.branches])
            check_branches(holder, place)
        elif isinstance(holder, Field):
            holder.schema = _resolved(holder.schema, types)
        elif isinstance(holder, Array):
            holder.items = _resolved(holder.items, types)
        else:
            holder.values = _resolved(holder.values, types)


def check_branches(union: Union, path: Path) -> None:
    """Reject a union inside a union, and two branches of one type; named types differ by name.

    Raises:
        InvalidAvro: there is such a branch.
    """
    if len(union.branches) == 2:
        one, other = union.branches
        if one.full_name != other.full_name and one.full_name != "union" != other.full_name:
            return
    different = set(map(_FULL_NAME, union.branches))
    if len(different) == len(union.branches) and "union" not in different:
        return
    # A type of one's own may be called so, too.
    nested = [isinstance(branch, Union) for branch in union.branches]
    if any(nested):
        place = pointer((path, nested.index(True)))
        fix = "list the inner union's branches in the outer one"
        what = "a union directly inside a union"
        raise InvalidAvro(what, pointer=place, fix=fix, exception="AvroRuntimeException")
    if len(different) == len(union.branches):
        return
    names = list(map(_FULL_NAME, union.branches))
    twice = first_repeated(names)
    what = f"the union has two branches {names[twice]}"
    raise InvalidAvro(what, pointer=pointer((path, twice)), exception="AvroRuntimeException")


def completion_order(root: Schema, types: Mapping[str, NamedSchema]) -> list[Record]:
    """Return the records of a definition with references unresolved, in the order in which Java completes its copies of them.

    Follows Schemas.visit with SchemaResolver.ResolvingVisitor: each type in turn is copied from its parts up. A
    reference to a type that has not been begun starts a walk of its own, which passes through begun types once more.

    Raises:
        InvalidAvro: the references are so tangled that this takes too long.
    """
    order: list[Record] = []
    begun: set[int] = set()
    complete: set[int] = set()
    steps = 0
    for start in (*types.values(), root):
        todo: list[tuple[Schema, set[int], bool]] = [(start, set(), False)]
        while todo:
            node, visited, is_done = todo.pop()
            steps += 1
            if steps > _MAX_STEPS:
                raise InvalidAvro("the types refer to each other in too tangled a way to check their defaults")
            if isinstance(node, Unresolved):
                target = types.get(node.target)
                if isinstance(target, Record) and id(target) not in begun:
                    begun.add(id(target))
                    todo.append((target, set(), False))
            elif is_done:
                if id(node) not in complete and isinstance(node, Record):
                    complete.add(id(node))
                    order.append(node)
            elif id(node) not in visited:
                visited.add(id(node))
                begun.add(id(node))
                todo.append((node, visited, True))
                # A record's fields are visited from first to last, a union's branches from last to first.
                inside = list(children(node))
                todo.extend((part, visited, False) for part in (inside if isinstance(node, Union) else inside[::-1]))
    return order


def _resolved(schema: Schema, types: Mapping[str, NamedSchema]) -> Schema:
    return types[schema.target] if isinstance(schema, Unresolved) else schema


# From JSON values to the model.


Json = dict[str, Any]

_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final[Mapping[str, Order]] = {"ASCENDING": "ascending", "DESCENDING": "descending", "IGNORE": "ignore"}
_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The longest array of bytes that Java's Avro makes."""


class DefinitionReader:
    """The reader of one definition, by the rules of Avro 1.12.1 as Pulsar uses it; `parse` has the other dialects.

    References are resolved when the whole text is read. A type may be defined again where the second definition equals the
    first.

    Attributes:
        known_inside: a type is known from its name on, without fields, properties and aliases; else when it is complete.
        marks: what names may hold besides letters and digits.
    """

    known_inside: ClassVar[bool] = False
    marks: ClassVar[str] = "_$"

    def __init__(self, text: str, json: JsonValue, defaults: FieldDefaults | None) -> None:
        """Take the `text` and the `json` it holds. `defaults` judges the defaults of fields; None: they may be anything."""
        self._text = text
        self._json = json
        self._defaults = defaults
        self._types: dict[str, NamedSchema] = {}
        self._open: set[int] = set()
        """The identities of the records whose fields are being read."""
        self._unresolved: list[Unresolved] = []
        """References to types that may be defined further down."""
        self._holders: list[Holder] = []
        """What holds such references."""

    def read(self) -> Schema:
        """Return the schema that the text defines, with all references resolved.

        Raises:
            InvalidAvro: it defines none.
        """
        root = self._schema(self._json, None, ())
        if self._unresolved or (self._defaults and self._defaults.of_records):
            # Avro 1.12 does this when it has read the whole text.
            order = completion_order(root, self._types) if self._defaults and self._defaults.of_records else []
            if self._unresolved:
                resolve(root, self._unresolved, self._holders, self._types)
            if order and self._defaults:
                self._defaults.check_again(order)
        return root

    # What dialects differ in.

    def _is_name(self, name: str) -> bool:
        """Whether `name` may name a type, a field or a symbol."""
        return is_name(name, others=self.marks)

    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """Return the type called `name` where `namespace` is in force."""
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        known = self._types.get(full) or self._types.get(name)
        if known is None:
            known = Unresolved(full, path, len(self._unresolved))
            self._unresolved.append(known)
        return known

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """Return the type that `{"type": name}` refers to."""
        return self._reference(name, namespace, path)

    def _define(self, named: NamedSchema, path: Path) -> None:
        """Make a type known by its name."""
        namespace = named.namespace
        if namespace and not is_plain_namespace(namespace):
            for part in namespace.split("."):
                if not self._is_name(part):
                    raise bad_name(part, f"a part of the namespace {namespace}", (path, "namespace"))
        earlier = self._types.setdefault(named.full_name, named)
        if earlier is not named and not self._is_same(named, earlier):
            fix = "refer to the first definition by its name, or make the two equal"
            raise invalid(f"{named.full_name} is defined twice", path, "name", fix=fix)

    def _is_same(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        """Whether a type may be defined again as `named`."""
        return equal(named, earlier)

    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        """Reject what is lost of the properties of records, arrays and maps when they are copied."""
        for key, value in properties.items():
            if _holds_big_integer(value):
                what = f"the property {key} holds an integer of more than 64 bits"
                raise invalid(what, path, fix="write the number as text", exception="AvroRuntimeException")

    # One method for each kind of schema.

    def _schema(self, json: JsonValue, namespace: str | None, path: Path) -> Schema:
        if type(json) is dict:
            kind = json.get("type")
            if type(kind) is str:
                read_kind = self._kinds.get(kind)
                if read_kind:
                    return read_kind(self, json, namespace, path)
                if kind in PRIMITIVES:
                    return _primitive(kind, json)
                return self._wrapped_reference(kind, namespace, path)
            is_nested = isinstance(kind, dict | list)
            fix = "put the inner schema in place of the object around it" if is_nested else ""
            raise invalid(f'"type" is {shown(kind)}; expected the name of a type', path, "type", fix=fix)
        if type(json) is list:
            return self._union(json, namespace, path)
        if type(json) is str:
            return PRIMITIVES.get(json) or self._reference(json, namespace, path)
        expected = "a type's name, an object or a union's array"
        raise invalid(f"{shown(json)} is not a schema; expected {expected}", path)

    # Most of what reading takes is this loop: functions called in it would be a third more.
    def _record(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, space = self._name(json, namespace, path)
        record = Record(full_name, name, space)
        if json["type"] == "error":
            record.is_error = True
        if self.known_inside:
            self._define(record, path)
        judged = self._defaults is not None
        if judged or self.known_inside:
            self._open.add(id(record))
        items = json.get("fields")
        if type(items) is not list:
            raise _no_list(json, "fields", path)
        primitive, read_schema = PRIMITIVES.get, self._schema
        fields: dict[str, Field] = {}
        repeated: Path | None = None
        for index, item in enumerate(items):
            try:
                name, kind = item["name"], item["type"]
            except (KeyError, TypeError):
                raise _bad_field(item, record, (path, "fields", index)) from None
            schema: Schema | None = primitive(kind) if type(kind) is str else None
            if schema is None:
                schema = read_schema(kind, space, (path, "fields", index, "type"))
            if type(name) is not str or not ((name.isidentifier() and name.isascii()) or self._is_name(name)):
                place = (path, "fields", index)
                # Java looks at these before the name.
                _order(item, place)
                default_of(schema, item, place)
                raise _bad_field(item, record, place)
            if name in fields and repeated is None:  # Java says so when it has read all fields
                repeated = (path, "fields", index)
            fields[name] = field = Field(name, schema)
            if type(schema) is Unresolved:
                self._holders.append(field)
            if len(item) > 2:
                default = item.get("default", NO_DEFAULT)
                if judged or len(item) > 3 or default is NO_DEFAULT or type(default) is str:
                    self._finish_field(field, item, full_name, (path, "fields", index))
                else:
                    field.default = default
        if repeated:
            what = f"record {full_name} has two fields {items[repeated[2]]['name']}"
            raise invalid(what, repeated, fix="give one of the two another name", exception="AvroRuntimeException")
        record.fields = tuple(fields.values())
        record.fields_by_name = fields
        self._open.discard(id(record))
        if len(json) > (4 if "namespace" in json else 3):
            self._finish(record, json, path)
        if not self.known_inside:
            self._define(record, path)
        return record

    def _finish_field(self, field: Field, json: Json, record: str, path: Path) -> None:
        """Set what a field may have besides name and type."""
        if "default" in json:
            if "order" in json:
                # Java looks at it before the default.
                _order(json, path)
            field.default = default_of(field.schema, json, path)
            if self._defaults:
                self._defaults.check(field, record, path, self._open)
        doc = json.get("doc")
        if type(doc) is str:
            field.doc = doc
        if "order" in json:
            field.order = _order(json, path)
        if "aliases" in json:
            field.aliases = tuple(dict.fromkeys(_aliases(json, path)))
        if not _FIELD_RESERVED.issuperset(json):
            field.properties = _properties(json, _FIELD_RESERVED)

    def _enum(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, space = self._name(json, namespace, path)
        symbols = json.get("symbols")
        if type(symbols) is not list:
            raise _no_list(json, "symbols", path)
        if not _are_plain_names(symbols):
            for index, symbol in enumerate(symbols):
                if type(symbol) is not str or not self._is_name(symbol):
                    raise bad_name(symbol, "the symbol", (path, "symbols", index))
        if len(set(symbols)) < len(symbols):
            twice = first_repeated(symbols)
            raise invalid(f"enum {full_name} lists {symbols[twice]} twice", (path, "symbols", twice))
        default = json.get("default")
        if type(default) is not str:
            default = None
        elif default not in symbols:
            what = f"the default of enum {full_name} is {shown(default)}, which is not one of its symbols"
            fix = f"list it among the symbols, or take one of them: {', '.join(symbols[:10])}"
            raise invalid(what, path, "default", fix=fix)
        enum = Enum(full_name, name, space)
        enum.symbols, enum.default = tuple(symbols), default
        return self._leaf(enum, json, path)

    def _fixed(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, space = self._name(json, namespace, path)
        size = json.get("size")
        if type(size) is not int or size not in INT_RANGE:
            what = f'"size" of fixed {full_name} is {shown(size)}; expected a number of bytes'
            raise invalid(what, path, "size")
        if size < 0 or size > _MAX_FIXED_SIZE:
            exception = "AvroRuntimeException" if size < 0 else "UnsupportedOperationException"
            raise invalid(f"fixed {full_name} cannot have {size} bytes", path, "size", exception=exception)
        fixed = Fixed(full_name, name, space)
        fixed.size = size
        return self._leaf(fixed, json, path)

    def _leaf(self, named: Enum | Fixed, json: Json, path: Path) -> Schema:
        if self.known_inside:
            self._define(named, path)
        if len(json) > (4 if "namespace" in json else 3):
            self._finish(named, json, path)
        if not self.known_inside:
            self._define(named, path)
        return named

    def _container(self, json: Json, namespace: str | None, path: Path) -> Schema:
        kind, key = (Array, "items") if json["type"] == "array" else (Map, "values")
        if key not in json:
            what = f'{"an array" if kind is Array else "a map"} without "{key}"; expected the schema of its {key}'
            raise invalid(what, path)
        inside = json[key]
        inner: Schema | None = PRIMITIVES.get(inside) if type(inside) is str else None
        if inner is None:
            inner = self._schema(inside, namespace, (path, key))
        properties = _properties(json) if len(json) > 2 else NO_PROPERTIES
        if properties:
            self._check_properties(properties, path)
        container: Array | Map = kind(inner, properties)
        if type(inner) is Unresolved:
            self._holders.append(container)
        return container

    def _union(self, json: list[JsonValue], namespace: str | None, path: Path) -> Schema:
        branches: list[Schema] = []
        for item in json:
            branch = PRIMITIVES.get(item) if type(item) is str else None
            branches.append(branch or self._schema(item, namespace, (path, len(branches))))
        union = Union(tuple(branches))
        check_branches(union, path)
        if self._unresolved and Unresolved in map(type, branches):
            self._holders.append(union)
        return union

    _kinds: ClassVar[Mapping[str, Callable[[DefinitionReader, Json, str | None, Path], Schema]]] = {
        "record": _record,
        "error": _record,
        "enum": _enum,
        "fixed": _fixed,
        "array": _container,
        "map": _container,
    }

    # What named types share.

    def _name(self, json: Json, namespace: str | None, path: Path) -> tuple[str, str, str | None]:
        """Return the name that `json` gives to a type: in full, without namespace, and the namespace."""
        name = json.get("name")
        if type(name) is not str:
            raise invalid(f'"name" of this {json["type"]} is {shown(name)}; expected a name', path, "name")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        elif "namespace" in json and type(json["namespace"]) is str:
            namespace = json["namespace"]
        if not (name.isidentifier() and name.isascii()) and not self._is_name(name):
            raise bad_name(name, "the name", (path, "name"))
        if namespace:
            return f"{namespace}.{name}", name, namespace
        if name in PRIMITIVES:
            what = f"{json['type']} {name} has the name of a primitive type"
            raise invalid(what, path, "name", exception="AvroTypeException")
        return name, name, None

    def _finish(self, named: NamedSchema, json: Json, path: Path) -> None:
        """Set what a type may have besides name, namespace, and fields, symbols or size."""
        doc = json.get("doc")
        if type(doc) is str:
            named.doc = doc
        reserved = _ENUM_RESERVED if type(named) is Enum else _RESERVED
        if not reserved.issuperset(json):
            named.properties = _properties(json, reserved)
            if type(named) is Record:
                self._check_properties(named.properties, path)
        if "aliases" not in json:
            return
        aliases: dict[str, None] = {}
        for index, given in enumerate(_aliases(json, path)):
            full_name, name, _ = qualify(given, named.namespace)
            if not self._is_name(name):
                raise bad_name(name, "the alias", (path, "aliases", index))
            aliases[full_name] = None
        named.aliases = tuple(aliases)


def invalid(
    what: str, path: Path, key: str = "", *, fix: str = "", exception: str = "SchemaParseException"
) -> InvalidAvro:
    """Return the rejection of what is at `path`, or under its `key`."""
    return InvalidAvro(what, pointer=pointer((path, key) if key else path), fix=fix, exception=exception)


def bad_name(name: JsonValue, what: str, path: Path) -> InvalidAvro:
    """Return the rejection of a name."""
    expected = "a letter or _, followed by letters, digits and _"
    fix = ""
    if isinstance(name, str) and "$" in name:
        expected += "; only Pulsar 4.2 and newer accept $"
        fix = f"write {shown(name.replace('$', '_'))}"
    elif isinstance(name, str) and (plain := re.sub("[^A-Za-z0-9_]", "_", name).strip("_")):
        fix = f"write {shown(f'_{plain}' if plain[0].isdigit() else plain)}"
    return invalid(f"{what} is {shown(name)}; expected {expected}", path, fix=fix)


def _bad_field(item: JsonValue, record: Record, place: Path) -> InvalidAvro:
    """Return the rejection of a field without name or type, or with what is no name."""
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str):
        return invalid(f'field {place[2]} of record {record.full_name} has no "name"', place, fix=_add("name", item))
    if "type" not in item:
        return invalid(f'field {name} of record {record.full_name} has no "type"', place, fix=_add("type", item))
    return bad_name(name, "the field name", (place, "name"))


def _no_list(json: Json, key: str, path: Path) -> InvalidAvro:
    what = f'"{key}" of {json["type"]} {json["name"]} is {shown(json.get(key))}; expected an array'
    return invalid(what, path, key, fix="" if key in json else _add(key, json))


def _add(key: str, json: JsonValue) -> str:
    """Return what to do where an object has no `key`: add it, or correct the one that was probably meant."""
    # Costs some milliseconds to import, and is needed for errors only.
    from difflib import get_close_matches

    near = get_close_matches(key, json if isinstance(json, dict) else (), 1)
    return f"write {shown(key)} for {shown(near[0])}" if near else f"add {shown(key)}"


def _primitive(kind: str, json: Json) -> Primitive:
    properties = _properties(json) if len(json) > 1 else NO_PROPERTIES
    return Primitive(kind, kind, properties) if properties else PRIMITIVES[kind]


def _properties(json: Json, reserved: frozenset[str] = _RESERVED) -> Mapping[str, JsonValue]:
    """Return what `json` holds besides Avro's own attributes."""
    return {key: json[key] for key in json if key not in reserved} or NO_PROPERTIES


def _are_plain_names(names: list[Any]) -> bool:
    try:
        return all(map(str.isidentifier, names)) and "".join(names).isascii()
    except TypeError:
        return False


def _aliases(json: Json, path: Path) -> list[str]:
    aliases = json["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise invalid(f'"aliases" is {shown(aliases)}; expected an array of names', path, "aliases")
    return aliases


def _holds_big_integer(value: JsonValue) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_big_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value not in LONG_RANGE


def _order(json: Json, path: Path) -> Order:
    """Return how a field counts in comparisons of values."""
    order = json.get("order", "ascending")
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        exception = "IllegalArgumentException" if isinstance(order, str) else "NullPointerException"
        what = f'"order" is {shown(order)}; expected ascending, descending or ignore'
        raise invalid(what, path, "order", exception=exception)
    return _ORDERS[order.upper()]


# From text to the model, by release.


_WITH_PARTS: Final = ("record", "enum", "array", "map", "fixed")
"""What a type is called that has fields, symbols, items, values or a size."""


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """Return the schema in `text`, as the Avro inside that Pulsar release reads it.

    Args:
        text: the definition.
        release: whose rules on names and references count.
        validate_defaults: a default must be a value of its field's type, as where the broker looks for an upload among
            the versions it has; otherwise it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if validate_defaults:
        return _read_until_bad(text, _DIALECTS[release], FieldDefaults(release))
    return _read(text, _DIALECTS[release], None)


def parse_for_spark(text: bytes | str, spark: tuple[int, int]) -> Schema:
    """Return the schema in `text`, as the Avro inside that release of Spark reads it, which validates defaults.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    dialect = AvroOfSpark40 if spark < (4, 1) else AvroOfSpark41
    return _read_until_bad(text, dialect, FieldDefaults(Release.R5_0))


def parse_file(text: bytes | str, json: JsonValue = None) -> tuple[Schema, frozenset[str]]:
    """Return the schema in one file's text, and the full names of the types that other files define: a fixed of each stands there.

    `json` is the value in the text, where it was read before. Raise InvalidAvro where the newest Avro refuses the text, even so.
    """
    decoded = decode(text)
    if json is None or "/" in decoded:
        # Where comments may stand is seen from the text.
        json = read(decoded)
    else:
        check_limits(decoded)
    reader = _FileReader(decoded, json, None)
    return reader.read(), frozenset(reader.missing)


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Yield why `parse` refuses `text` with its defaults validated: every bad default, and one other error."""
    defaults = FieldDefaults(release)
    try:
        _read(text, _DIALECTS[release], defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


def _read_until_bad(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    try:
        return _read(text, dialect, defaults)
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def _read(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults | None) -> Schema:
    decoded = decode(text)
    try:
        json = read(decoded)
    except TrailingText as trailing:
        dialect(decoded, trailing.value, defaults).read()
        raise
    return dialect(decoded, json, defaults).read()


class Avro111(DefinitionReader):
    """Avro 1.11.4 in Pulsar 4.0: a type is defined once, and before it is used; namespaces and properties are not looked at."""

    known_inside = True
    marks = "_"

    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        known = self._known(name, namespace, path) or self._types.get(qualify(name, None)[0])
        if known is None:
            raise self._undefined(name, path)
        return known

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        known = self._known(name, namespace, path)
        if known is None:
            raise self._undefined(name, (path, "type"))
        return known

    def _define(self, named: NamedSchema, path: Path) -> None:
        if self._types.setdefault(named.full_name, named) is not named:
            raise invalid(f"{named.full_name} is defined twice", path, "name", fix="refer to it by its name")

    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        pass

    def _known(self, name: str, namespace: str | None, path: Path) -> NamedSchema | None:
        full_name, local, _ = qualify(name, namespace)
        if not self._is_name(local):
            raise bad_name(local, "the type's name", path)
        return self._types.get(full_name)

    def _undefined(self, name: str, path: Path) -> InvalidAvro:
        import difflib

        known = [*PRIMITIVE_TYPES, *list(self._types)[:1000]]
        near = difflib.get_close_matches(name, known, 1) or difflib.get_close_matches(name.lower(), known, 1)
        if name in _WITH_PARTS:
            what = f"{shown(name)} is a type with parts, which is an object of its own"
            return invalid(what, path, fix=f'write {{"type": {{"type": {shown(name)}, ...}}}}, with its parts inside')
        hint = f"write {shown(near[0])}, if that is meant; otherwise define" if near else "define"
        return invalid(f"{shown(name)} is not defined at this place", path, fix=f"{hint} it before its first use")


class Avro1120(DefinitionReader):
    """Avro 1.12.0 in Pulsar 4.2: types are known as soon as they are named, which is before records have fields."""

    known_inside = True

    def _is_same(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        if isinstance(named, Record):
            # The new one has no fields yet, and is equal only to one that has none, either.
            return isinstance(earlier, Record) and id(earlier) in self._open
        return equal(named, earlier)


class Avro1122(DefinitionReader):
    """Avro 1.12.2 in Pulsar 5.0, which reads `{"type": "Name"}` for it, with a JSON parser that refuses comments (AvroSchemaCompat)."""

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        if without_comments(self._text) != self._text:
            what = f'"type" is {shown(name)}; expected a kind of type, because the definition has comments'
            raise invalid(what, path, "type", fix=f"write {shown(name)} in place of the object")
        return self._reference(name, namespace, path)


class _FileReader(Avro1122):
    """Reads one file of a definition; `missing` are the types that it does not define itself."""

    def read(self) -> Schema:
        root = self._schema(self._json, None, ())
        self.missing = {each.target for each in self._unresolved} - self._types.keys()
        for name in self.missing:
            namespace, _, local = name.rpartition(".")
            self._types[name] = stub = Fixed(name, local, namespace or None)
            stub.size = 1
        resolve(root, self._unresolved, self._holders, self._types)
        return root


class AvroOfSpark40(Avro1120):
    """Avro 1.12.0 in Spark 4.0."""

    marks = "_"


class AvroOfSpark41(DefinitionReader):
    """Avro 1.12.1 in Spark 4.1 to 4.3."""

    marks = "_"


_DIALECTS: Final[Mapping[Release, type[DefinitionReader]]] = {
    Release.R4_0: Avro111,
    Release.R4_2: Avro1120,
    Release.R5_0: Avro1122,
}
