"""Parse an Avro definition into the model of `schema`, and reject what the Java parser in each Pulsar release rejects.

Follows org.apache.avro.Schema.parse, ParseContext and util.SchemaResolver. The Avro versions inside the releases accept different
names, and differ in when a name can refer to a type. The parser is recursive; `json_text` limits the depth to MAX_DEPTH levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import find_close_match
from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import INT_RANGE, LONG_RANGE, FieldDefaults, parse_default
from schemactl.formats.avro.json_text import InvalidAvro, TrailingText, check_limits, decode, describe_value, read
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

Json = dict[str, Any]

_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)

_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final[Mapping[str, Order]] = {"ASCENDING": "ascending", "DESCENDING": "descending", "IGNORE": "ignore"}

_COMPLEX_TYPES: Final = ("record", "enum", "array", "map", "fixed")
"""The types that have fields, symbols, items, values or a size."""

_FULL_NAME: Final = attrgetter("full_name")

_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The length of the longest byte array that Java's Avro allocates."""

_MAX_STEPS: Final = 2_000_000
"""The maximum number of steps of `find_completion_order`, which grow with the square of the definition in the worst case."""

Holder = Field | Array | Map | Union


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """Parse a definition like the Avro version inside a Pulsar release.

    Args:
        text: the definition.
        release: the release whose rules for names and references apply.
        validate_defaults: whether a default must be a value of its field's type. A broker requires it when it searches the
            versions of a topic for an upload; when it checks compatibility, a default may be any value.

    Raises:
        InvalidAvro: if Avro rejects the text; its `pointer` says where.
    """
    if validate_defaults:
        return _read_until_bad_default(text, _DIALECTS[release], FieldDefaults(release))
    return _read(text, _DIALECTS[release], None)


def parse_for_spark(text: bytes | str, spark: tuple[int, int]) -> Schema:
    """Parse a definition like the Avro version inside a Spark release (major, minor), which validates defaults.

    Raises:
        InvalidAvro: if Avro rejects the text; its `pointer` says where.
    """
    dialect = AvroOfSpark40 if spark < (4, 1) else AvroOfSpark41
    return _read_until_bad_default(text, dialect, FieldDefaults(Release.R5_0))


def parse_file(text: bytes | str, json: JsonValue = None) -> tuple[Schema, frozenset[str]]:
    """Parse one file of a definition, and return also the full names of the types that other files define.

    Each of these types becomes a fixed of one byte. `json` is the JSON value of the text, if it was read before.

    Raises:
        InvalidAvro: if the newest Avro rejects the text for another reason.
    """
    decoded = decode(text)
    if json is None or blank_comments(decoded) != decoded:
        # The text may have comments, and only `read` checks their places.
        json = read(decoded)
    else:
        check_limits(decoded)
    reader = _FileReader(decoded, json, None)
    return reader.read(), frozenset(reader.missing)


def find_problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Yield the reasons why `parse` rejects a text if it validates defaults: every bad default, and one other error."""
    defaults = FieldDefaults(release)
    try:
        _read(text, _DIALECTS[release], defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.problems


def _read_until_bad_default(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    try:
        return _read(text, dialect, defaults)
    finally:
        # Java stops at the first bad default, before it reaches other errors further down.
        if defaults.problems:
            raise defaults.problems[0]


def _read(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults | None) -> Schema:
    decoded = decode(text)
    try:
        json = read(decoded)
    except TrailingText as trailing:
        dialect(decoded, trailing.value, defaults).read()
        raise
    return dialect(decoded, json, defaults).read()


# The reader of Avro 1.12.1, and the dialects of other versions


class DefinitionReader:
    """The reader of one definition, by the rules of Avro 1.12.1 as Pulsar uses it; the subclasses are other dialects.

    References are resolved when the whole text is read. A type may be defined again if the second definition equals the first.

    Attributes:
        is_defined_early: whether a type can be referenced as soon as its name is read, without its fields, properties and
            aliases; otherwise it can be referenced when it is complete.
        extra_characters: the characters that a name may have besides letters and digits.
    """

    is_defined_early: ClassVar[bool] = False
    extra_characters: ClassVar[str] = "_$"

    def __init__(self, text: str, json: JsonValue, defaults: FieldDefaults | None) -> None:
        """Start with the `text` and its `json` value. `defaults` validates the defaults of fields; None accepts every default."""
        self._text = text
        self._json = json
        self._defaults = defaults
        self._types: dict[str, NamedSchema] = {}
        self._unfinished_ids: set[int] = set()
        """The identities of the records whose fields are being read."""
        self._unresolved: list[Unresolved] = []
        """The references to types that may be defined later in the text."""
        self._holders: list[Holder] = []
        """The fields, containers and unions with such references."""

    def read(self) -> Schema:
        """Return the schema that the text defines, with all references resolved.

        Raises:
            InvalidAvro: if the text does not define a schema.
        """
        root = self._read_schema(self._json, None, ())
        if self._unresolved or (self._defaults and self._defaults.record_default_paths):
            # Avro 1.12 does this when it has read the whole text.
            order = []
            if self._defaults and self._defaults.record_default_paths:
                order = find_completion_order(root, self._types)
            if self._unresolved:
                resolve_references(root, self._unresolved, self._holders, self._types)
            if order and self._defaults:
                self._defaults.check_again(order)
        return root

    # The rules that dialects override.

    def _is_name(self, name: str) -> bool:
        """Return whether `name` is allowed for a type, a field or a symbol."""
        return is_name(name, extra_characters=self.extra_characters)

    def _resolve_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """Return the type that `name` refers to in `namespace`."""
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        schema = self._types.get(full_name) or self._types.get(name)
        if schema is None:
            schema = Unresolved(full_name, path, len(self._unresolved))
            self._unresolved.append(schema)
        return schema

    def _resolve_wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """Return the type that `{"type": name}` refers to."""
        return self._resolve_reference(name, namespace, path)

    def _define(self, named: NamedSchema, path: Path) -> None:
        """Make a type available to references."""
        namespace = named.namespace
        if namespace and not is_plain_namespace(namespace):
            for part in namespace.split("."):
                if not self._is_name(part):
                    raise make_name_error(part, f"a part of the namespace {namespace}", (path, "namespace"))
        earlier = self._types.setdefault(named.full_name, named)
        if earlier is not named and not self._can_redefine(named, earlier):
            fix = "refer to the first definition by its name, or make the two equal"
            raise make_error(f"{named.full_name} is defined twice", path, "name", fix=fix)

    def _can_redefine(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        """Return whether the type `earlier` may be defined again as `named`."""
        return equal(named, earlier)

    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        """Reject property values of records, arrays and maps that Java cannot copy."""
        for key, value in properties.items():
            if _has_big_integer(value):
                message = f"the property {key} holds an integer of more than 64 bits"
                raise make_error(message, path, fix="write the number as text", exception="AvroRuntimeException")

    # One method for each kind of schema.

    def _read_schema(self, json: JsonValue, namespace: str | None, path: Path) -> Schema:
        if type(json) is dict:
            kind = json.get("type")
            if type(kind) is str:
                read_kind = self._readers_by_kind.get(kind)
                if read_kind:
                    return read_kind(self, json, namespace, path)
                if kind in PRIMITIVES:
                    properties = _read_properties(json) if len(json) > 1 else NO_PROPERTIES
                    return Primitive(kind, kind, properties) if properties else PRIMITIVES[kind]
                return self._resolve_wrapped_reference(kind, namespace, path)
            is_nested = isinstance(kind, dict | list)
            fix = "put the inner schema in place of the object around it" if is_nested else ""
            raise make_error(f'"type" is {describe_value(kind)}; expected the name of a type', path, "type", fix=fix)
        if type(json) is list:
            return self._read_union(json, namespace, path)
        if type(json) is str:
            return PRIMITIVES.get(json) or self._resolve_reference(json, namespace, path)
        expected = "a type's name, an object or a union's array"
        raise make_error(f"{describe_value(json)} is not a schema; expected {expected}", path)

    # Reading spends most of its time in this loop; calling a function for each field would add a third.
    def _read_record(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, record_namespace = self._read_name(json, namespace, path)
        record = Record(full_name, name, record_namespace)
        if json["type"] == "error":
            record.is_error = True
        if self.is_defined_early:
            self._define(record, path)
        validates_defaults = self._defaults is not None
        if validates_defaults or self.is_defined_early:
            self._unfinished_ids.add(id(record))
        items = json.get("fields")
        if type(items) is not list:
            raise _make_array_error(json, "fields", path)
        primitive, read_schema = PRIMITIVES.get, self._read_schema
        fields: dict[str, Field] = {}
        repeated: Path | None = None
        for index, item in enumerate(items):
            try:
                name, kind = item["name"], item["type"]
            except (KeyError, TypeError):
                raise _make_field_error(item, record, (path, "fields", index)) from None
            schema: Schema | None = primitive(kind) if type(kind) is str else None
            if schema is None:
                schema = read_schema(kind, record_namespace, (path, "fields", index, "type"))
            if type(name) is not str or not ((name.isidentifier() and name.isascii()) or self._is_name(name)):
                field_path = (path, "fields", index)
                # Java checks order and default before the name.
                _read_order(item, field_path)
                parse_default(schema, item, field_path)
                raise _make_field_error(item, record, field_path)
            if name in fields and repeated is None:  # Java reports this after it has read all fields
                repeated = (path, "fields", index)
            fields[name] = field = Field(name, schema)
            if type(schema) is Unresolved:
                self._holders.append(field)
            if len(item) > 2:
                default = item.get("default", NO_DEFAULT)
                if validates_defaults or len(item) > 3 or default is NO_DEFAULT or type(default) is str:
                    self._set_optional_field_attributes(field, item, full_name, (path, "fields", index))
                else:
                    field.default = default
        if repeated:
            message = f"record {full_name} has two fields {items[repeated[2]]['name']}"
            fix = "give one of the two another name"
            raise make_error(message, repeated, fix=fix, exception="AvroRuntimeException")
        record.fields = tuple(fields.values())
        record.fields_by_name = fields
        self._unfinished_ids.discard(id(record))
        if len(json) > (4 if "namespace" in json else 3):
            self._set_optional_attributes(record, json, path)
        if not self.is_defined_early:
            self._define(record, path)
        return record

    def _set_optional_field_attributes(self, field: Field, json: Json, record: str, path: Path) -> None:
        if "default" in json:
            if "order" in json:
                # Java checks it before the default.
                _read_order(json, path)
            field.default = parse_default(field.schema, json, path)
            if self._defaults:
                self._defaults.check(field, record, path, self._unfinished_ids)
        doc = json.get("doc")
        if type(doc) is str:
            field.doc = doc
        if "order" in json:
            field.order = _read_order(json, path)
        if "aliases" in json:
            field.aliases = tuple(dict.fromkeys(_read_aliases(json, path)))
        if not _FIELD_RESERVED.issuperset(json):
            field.properties = _read_properties(json, _FIELD_RESERVED)

    def _read_enum(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, enum_namespace = self._read_name(json, namespace, path)
        symbols = json.get("symbols")
        if type(symbols) is not list:
            raise _make_array_error(json, "symbols", path)
        if not _are_plain_names(symbols):
            for index, symbol in enumerate(symbols):
                if type(symbol) is not str or not self._is_name(symbol):
                    raise make_name_error(symbol, "the symbol", (path, "symbols", index))
        if len(set(symbols)) < len(symbols):
            index = first_repeated(symbols)
            raise make_error(f"enum {full_name} lists {symbols[index]} twice", (path, "symbols", index))
        default = json.get("default")
        if type(default) is not str:
            default = None
        elif default not in symbols:
            message = f"the default of enum {full_name} is {describe_value(default)}, which is not one of its symbols"
            fix = f"list it among the symbols, or use one of them: {', '.join(symbols[:10])}"
            raise make_error(message, path, "default", fix=fix)
        enum = Enum(full_name, name, enum_namespace)
        enum.symbols, enum.default = tuple(symbols), default
        return self._finish_leaf(enum, json, path)

    def _read_fixed(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, fixed_namespace = self._read_name(json, namespace, path)
        size = json.get("size")
        if type(size) is not int or size not in INT_RANGE:
            message = f'"size" of fixed {full_name} is {describe_value(size)}; expected a number of bytes'
            raise make_error(message, path, "size")
        if size < 0 or size > _MAX_FIXED_SIZE:
            exception = "AvroRuntimeException" if size < 0 else "UnsupportedOperationException"
            raise make_error(f"fixed {full_name} cannot have {size} bytes", path, "size", exception=exception)
        fixed = Fixed(full_name, name, fixed_namespace)
        fixed.size = size
        return self._finish_leaf(fixed, json, path)

    def _finish_leaf(self, named: Enum | Fixed, json: Json, path: Path) -> Schema:
        if self.is_defined_early:
            self._define(named, path)
        if len(json) > (4 if "namespace" in json else 3):
            self._set_optional_attributes(named, json, path)
        if not self.is_defined_early:
            self._define(named, path)
        return named

    def _read_container(self, json: Json, namespace: str | None, path: Path) -> Schema:
        kind, key = (Array, "items") if json["type"] == "array" else (Map, "values")
        if key not in json:
            message = f'{"an array" if kind is Array else "a map"} without "{key}"; expected the schema of its {key}'
            raise make_error(message, path)
        inner_json = json[key]
        inner: Schema | None = PRIMITIVES.get(inner_json) if type(inner_json) is str else None
        if inner is None:
            inner = self._read_schema(inner_json, namespace, (path, key))
        properties = _read_properties(json) if len(json) > 2 else NO_PROPERTIES
        if properties:
            self._check_properties(properties, path)
        container: Array | Map = kind(inner, properties)
        if type(inner) is Unresolved:
            self._holders.append(container)
        return container

    def _read_union(self, json: list[JsonValue], namespace: str | None, path: Path) -> Schema:
        branches: list[Schema] = []
        for item in json:
            branch = PRIMITIVES.get(item) if type(item) is str else None
            branches.append(branch or self._read_schema(item, namespace, (path, len(branches))))
        union = Union(tuple(branches))
        check_branches(union, path)
        if self._unresolved and Unresolved in map(type, branches):
            self._holders.append(union)
        return union

    _readers_by_kind: ClassVar[Mapping[str, Callable[[DefinitionReader, Json, str | None, Path], Schema]]] = {
        "record": _read_record,
        "error": _read_record,
        "enum": _read_enum,
        "fixed": _read_fixed,
        "array": _read_container,
        "map": _read_container,
    }

    # The attributes of named types.

    def _read_name(self, json: Json, namespace: str | None, path: Path) -> tuple[str, str, str | None]:
        """Return the full name of a type, its name without namespace, and its namespace."""
        name = json.get("name")
        if type(name) is not str:
            raise make_error(f'"name" of this {json["type"]} is {describe_value(name)}; expected a name', path, "name")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        elif "namespace" in json and type(json["namespace"]) is str:
            namespace = json["namespace"]
        if not (name.isidentifier() and name.isascii()) and not self._is_name(name):
            raise make_name_error(name, "the name", (path, "name"))
        if namespace:
            return f"{namespace}.{name}", name, namespace
        if name in PRIMITIVES:
            message = f"{json['type']} {name} has the name of a primitive type"
            raise make_error(message, path, "name", exception="AvroTypeException")
        return name, name, None

    def _set_optional_attributes(self, named: NamedSchema, json: Json, path: Path) -> None:
        """Set the doc, properties and aliases of a named type."""
        doc = json.get("doc")
        if type(doc) is str:
            named.doc = doc
        reserved = _ENUM_RESERVED if type(named) is Enum else _RESERVED
        if not reserved.issuperset(json):
            named.properties = _read_properties(json, reserved)
            if type(named) is Record:
                self._check_properties(named.properties, path)
        if "aliases" not in json:
            return
        aliases: dict[str, None] = {}
        for index, alias in enumerate(_read_aliases(json, path)):
            full_name, name, _ = qualify(alias, named.namespace)
            if not self._is_name(name):
                raise make_name_error(name, "the alias", (path, "aliases", index))
            aliases[full_name] = None
        named.aliases = tuple(aliases)


class Avro111(DefinitionReader):
    """Avro 1.11.4 in Pulsar 4.0: a type is defined once, before its first use; namespaces and properties are not checked."""

    is_defined_early = True
    extra_characters = "_"

    def _resolve_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        schema = self._find_type(name, namespace, path) or self._types.get(qualify(name, None)[0])
        if schema is None:
            raise self._make_undefined_error(name, path)
        return schema

    def _resolve_wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        schema = self._find_type(name, namespace, path)
        if schema is None:
            raise self._make_undefined_error(name, (path, "type"))
        return schema

    def _define(self, named: NamedSchema, path: Path) -> None:
        if self._types.setdefault(named.full_name, named) is not named:
            raise make_error(f"{named.full_name} is defined twice", path, "name", fix="refer to it by its name")

    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        pass

    def _find_type(self, name: str, namespace: str | None, path: Path) -> NamedSchema | None:
        full_name, local_name, _ = qualify(name, namespace)
        if not self._is_name(local_name):
            raise make_name_error(local_name, "the type's name", path)
        return self._types.get(full_name)

    def _make_undefined_error(self, name: str, path: Path) -> InvalidAvro:
        if name in _COMPLEX_TYPES:
            message = f"{describe_value(name)} is a type with parts, which needs its own object"
            fix = f'write {{"type": {{"type": {describe_value(name)}, ...}}}}, with its parts inside'
            return make_error(message, path, fix=fix)
        similar_name = find_close_match(name, [*PRIMITIVE_TYPES, *list(self._types)[:1000]], likeness=0.6)
        hint = f"write {describe_value(similar_name)}, if that is meant; otherwise define" if similar_name else "define"
        return make_error(
            f"{describe_value(name)} is not defined at this place", path, fix=f"{hint} it before its first use"
        )


class Avro1120(DefinitionReader):
    """Avro 1.12.0 in Pulsar 4.2: a type can be referenced as soon as its name is read, before a record has fields."""

    is_defined_early = True

    def _can_redefine(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        if isinstance(named, Record):
            # The new record has no fields yet, so it equals only an earlier record without fields.
            return isinstance(earlier, Record) and id(earlier) in self._unfinished_ids
        return equal(named, earlier)


class Avro1122(DefinitionReader):
    """Avro 1.12.2 in Pulsar 5.0, which reads `{"type": "Name"}` with a JSON parser that rejects comments (AvroSchemaCompat)."""

    def _resolve_wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        if blank_comments(self._text) != self._text:
            message = f'"type" is {describe_value(name)}; expected a kind of type, because the definition has comments'
            raise make_error(message, path, "type", fix=f"write {describe_value(name)} in place of the object")
        return self._resolve_reference(name, namespace, path)


class _FileReader(Avro1122):
    """The reader of one file of a definition; `missing` are the full names of the types that other files define."""

    def read(self) -> Schema:
        root = self._read_schema(self._json, None, ())
        self.missing = {reference.target for reference in self._unresolved} - self._types.keys()
        for full_name in self.missing:
            namespace, _, name = full_name.rpartition(".")
            self._types[full_name] = stub = Fixed(full_name, name, namespace or None)
            stub.size = 1
        resolve_references(root, self._unresolved, self._holders, self._types)
        return root


class AvroOfSpark40(Avro1120):
    """Avro 1.12.0 in Spark 4.0."""

    extra_characters = "_"


class AvroOfSpark41(DefinitionReader):
    """Avro 1.12.1 in Spark 4.1 to 4.3."""

    extra_characters = "_"


_DIALECTS: Final[Mapping[Release, type[DefinitionReader]]] = {
    Release.R4_0: Avro111,
    Release.R4_2: Avro1120,
    Release.R5_0: Avro1122,
}


def _read_properties(json: Json, reserved: frozenset[str] = _RESERVED) -> Mapping[str, JsonValue]:
    """Return the attributes of `json` that Avro does not define."""
    return {key: json[key] for key in json if key not in reserved} or NO_PROPERTIES


def _read_order(json: Json, path: Path) -> Order:
    order = json.get("order", "ascending")
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        exception = "IllegalArgumentException" if isinstance(order, str) else "NullPointerException"
        message = f'"order" is {describe_value(order)}; expected ascending, descending or ignore'
        raise make_error(message, path, "order", exception=exception)
    return _ORDERS[order.upper()]


def _read_aliases(json: Json, path: Path) -> list[str]:
    aliases = json["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise make_error(f'"aliases" is {describe_value(aliases)}; expected an array of names', path, "aliases")
    return aliases


def _are_plain_names(names: list[Any]) -> bool:
    try:
        return all(map(str.isidentifier, names)) and "".join(names).isascii()
    except TypeError:
        return False


def _has_big_integer(value: JsonValue) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_big_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value not in LONG_RANGE


# References to types that are defined later in the text


class Unresolved(Record):
    """A placeholder for the type `target` until references are resolved: in Java an empty record, equal to no other."""

    __slots__ = ("path", "target")

    def __init__(self, target: str, path: Path, number: int) -> None:
        Record.__init__(self, f"{target} ({number})", target, None)
        self.target = target
        self.path = path


def resolve_references(
    root: Schema, references: Sequence[Unresolved], holders: Sequence[Holder], types: Mapping[str, NamedSchema]
) -> None:
    """Replace the `references` in a definition by their types; `holders` are the schemas and fields with references.

    Raises:
        InvalidAvro: if a type is not defined, or if a union now has the same branch twice.
    """
    for reference in references:
        if reference.target not in types or reference is root:
            exception = "NullPointerException" if reference is root else "AvroTypeException"
            message = f"{describe_value(reference.target)} is not defined anywhere in this definition"
            fix = "define it, or correct the name"
            raise InvalidAvro(message, pointer=pointer(reference.path), fix=fix, exception=exception)

    def resolve(schema: Schema) -> Schema:
        return types[schema.target] if isinstance(schema, Unresolved) else schema

    for holder in holders:
        if isinstance(holder, Union):
            path = next(branch.path[0] for branch in holder.branches if isinstance(branch, Unresolved))
            holder.branches = tuple([resolve(branch) for branch in holder.branches])
            check_branches(holder, path)
        elif isinstance(holder, Field):
            holder.schema = resolve(holder.schema)
        elif isinstance(holder, Array):
            holder.items = resolve(holder.items)
        else:
            holder.values = resolve(holder.values)


def check_branches(union: Union, path: Path) -> None:
    """Check that a union contains no union, and no two branches of one type; named types differ by name.

    Raises:
        InvalidAvro: if it does.
    """
    if len(union.branches) == 2:
        left, right = union.branches
        if left.full_name != right.full_name and left.full_name != "union" != right.full_name:
            return
    distinct_names = set(map(_FULL_NAME, union.branches))
    if len(distinct_names) == len(union.branches) and "union" not in distinct_names:
        return
    # A named type can also be called `union`.
    nested = [isinstance(branch, Union) for branch in union.branches]
    if any(nested):
        message, fix = "a union directly inside a union", "list the inner union's branches in the outer one"
        raise make_error(message, (path, nested.index(True)), fix=fix, exception="AvroRuntimeException")
    if len(distinct_names) < len(union.branches):
        names = list(map(_FULL_NAME, union.branches))
        index = first_repeated(names)
        message = f"the union has two branches {names[index]}"
        raise make_error(message, (path, index), exception="AvroRuntimeException")


def find_completion_order(root: Schema, types: Mapping[str, NamedSchema]) -> list[Record]:
    """Return the records of an unresolved definition in the order in which Java completes its copies of them.

    Follows Schemas.visit with SchemaResolver.ResolvingVisitor: each type in turn is copied from its parts up. A reference to a
    type that is not started yet begins a separate walk, which passes through started types again.

    Raises:
        InvalidAvro: if this takes more than _MAX_STEPS steps.
    """
    order: list[Record] = []
    started: set[int] = set()
    complete: set[int] = set()
    steps = 0
    for start in (*types.values(), root):
        pending: list[tuple[Schema, set[int], bool]] = [(start, set(), False)]
        while pending:
            schema, visited, is_done = pending.pop()
            steps += 1
            if steps > _MAX_STEPS:
                raise InvalidAvro("the references between the types are too deep to check the defaults")
            if isinstance(schema, Unresolved):
                target = types.get(schema.target)
                if isinstance(target, Record) and id(target) not in started:
                    started.add(id(target))
                    pending.append((target, set(), False))
            elif is_done:
                if id(schema) not in complete and isinstance(schema, Record):
                    complete.add(id(schema))
                    order.append(schema)
            elif id(schema) not in visited:
                visited.add(id(schema))
                started.add(id(schema))
                pending.append((schema, visited, True))
                # A record's fields are visited from first to last, a union's branches from last to first.
                inner = list(children(schema))
                pending.extend((part, visited, False) for part in (inner if isinstance(schema, Union) else inner[::-1]))
    return order


# Errors


def make_error(
    message: str, path: Path, key: str = "", *, fix: str = "", exception: str = "SchemaParseException"
) -> InvalidAvro:
    """Return the error for the JSON value at `path`, or under a `key` of this value."""
    return InvalidAvro(message, pointer=pointer((path, key) if key else path), fix=fix, exception=exception)


def make_name_error(name: JsonValue, subject: str, path: Path) -> InvalidAvro:
    """Return the error for an invalid name; `subject` is the named thing."""
    expected = "a letter or _, followed by letters, digits and _"
    fix = ""
    if isinstance(name, str) and "$" in name:
        expected += "; only Pulsar 4.2 and newer accept $"
        fix = f"write {describe_value(name.replace('$', '_'))}"
    elif isinstance(name, str) and (plain := re.sub("[^A-Za-z0-9_]", "_", name).strip("_")):
        fix = f"write {describe_value(f'_{plain}' if plain[0].isdigit() else plain)}"
    return make_error(f"{subject} is {describe_value(name)}; expected {expected}", path, fix=fix)


def _make_field_error(item: JsonValue, record: Record, path: Path) -> InvalidAvro:
    """Return the error for a field without name or type, or with an invalid name."""
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str):
        message = f'field {path[2]} of record {record.full_name} has no "name"'
        return make_error(message, path, fix=_suggest_key("name", item))
    if "type" not in item:
        message = f'field {name} of record {record.full_name} has no "type"'
        return make_error(message, path, fix=_suggest_key("type", item))
    return make_name_error(name, "the field name", (path, "name"))


def _make_array_error(json: Json, key: str, path: Path) -> InvalidAvro:
    """Return the error for a `key` that is missing or not an array."""
    message = f'"{key}" of {json["type"]} {json["name"]} is {describe_value(json.get(key))}; expected an array'
    return make_error(message, path, key, fix="" if key in json else _suggest_key(key, json))


def _suggest_key(key: str, json: JsonValue) -> str:
    """Return the fix for a missing `key`: add it, or correct a similar key."""
    similar_key = find_close_match(key, json if isinstance(json, dict) else (), likeness=0.6)
    return (
        f"write {describe_value(key)} for {describe_value(similar_key)}"
        if similar_key
        else f"add {describe_value(key)}"
    )
