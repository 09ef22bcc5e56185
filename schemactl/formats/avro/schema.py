"""The model of a parsed Avro schema, shaped like Java's org.apache.avro.Schema, and its equality.

A schema is a graph: every place in the text has its own node, and every reference to a named type leads to the node of its
definition. Only a primitive without properties is the same node everywhere. Nodes are compared by identity, so that
`(reader, writer)` pairs can be keys of memo tables; `equal` is Avro's own equality.

Definitions are untrusted. The text of a definition nests at most 250 levels (`MAX_DEPTH`), but a chain of references can be
as long as the text. Functions that follow references are called by `run_recursion`, which has room for such a chain.
"""

from __future__ import annotations

import json
import sys
from _thread import RLock
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from schemactl.core.errors import InvalidSchema

JsonValue = Any
"""A parsed JSON value: None, bool, int, float, str, list or dict."""

NO_PROPERTIES: Final[Mapping[str, JsonValue]] = MappingProxyType({})
Order = Literal["ascending", "descending", "ignore"]

Path = tuple[Any, ...]
"""A place in a definition: () for the root, otherwise the path of an outer place, and the keys and indices from there."""

Name = tuple[str, str, str | None]
"""The full name of a type, its name without namespace, and its namespace (None for the null namespace)."""

_CANONICAL_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class _NoDefault:
    """The type of NO_DEFAULT; a `null` default is None."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""The default of a field without a default."""


@dataclass(eq=False, repr=False, slots=True)
class Primitive:
    """A primitive type; both `type` and `full_name` are one of PRIMITIVE_TYPES."""

    type: str
    full_name: str
    properties: Mapping[str, JsonValue]


PRIMITIVES: Final[Mapping[str, Primitive]] = {
    name: Primitive(name, name, NO_PROPERTIES)
    for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}
"""The primitives without properties, by name."""

PRIMITIVE_TYPES: Final = frozenset(PRIMITIVES)

PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"int"}),
    "long": frozenset({"int", "long"}),
    "float": frozenset({"int", "long", "float"}),
    "double": frozenset({"int", "long", "float", "double"}),
    "bytes": frozenset({"bytes", "string"}),
    "string": frozenset({"bytes", "string"}),
}
"""By the reader's primitive type: the writer's primitive types that it can read."""

LOGICAL_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
"""The types that each logical type annotates; on every other type Avro ignores it."""


@dataclass(eq=False, repr=False, slots=True)
class Array:
    """An array of `items`."""

    type: ClassVar[str] = "array"
    full_name: ClassVar[str] = "array"
    items: Schema
    properties: Mapping[str, JsonValue]


@dataclass(eq=False, repr=False, slots=True)
class Map:
    """A map from strings to `values`."""

    type: ClassVar[str] = "map"
    full_name: ClassVar[str] = "map"
    values: Schema
    properties: Mapping[str, JsonValue]


@dataclass(eq=False, repr=False, slots=True)
class Union:
    """One of `branches`, none of which is a union. A union cannot have properties."""

    type: ClassVar[str] = "union"
    full_name: ClassVar[str] = "union"
    properties: ClassVar[Mapping[str, JsonValue]] = NO_PROPERTIES
    branches: tuple[Schema, ...]


class Named:
    """A named type.

    Attributes:
        full_name: the name with its namespace, if it has one.
        name: the name without namespace (Java's getName).
        namespace: the namespace; None for the null namespace.
        aliases: the full names of the aliases, each once, in document order.
        doc: the documentation, or None.
        properties: the attributes that Avro does not define.
    """

    # Attributes that most types and fields lack have a class-wide default: small definitions parse faster.
    __slots__ = ("__dict__", "aliases", "full_name", "name", "namespace")
    type: ClassVar[str]
    doc: str | None = None
    properties: Mapping[str, JsonValue] = NO_PROPERTIES

    def __init__(self, full_name: str, name: str, namespace: str | None) -> None:
        self.full_name = full_name
        self.name = name
        self.namespace = namespace
        self.aliases: tuple[str, ...] = ()


class Fixed(Named):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    __slots__ = ("size",)
    size: int


class Enum(Named):
    """One of `symbols`; a reader uses `default` for a symbol that it does not list."""

    type: ClassVar[str] = "enum"
    __slots__ = ("default", "symbols")
    symbols: tuple[str, ...]
    default: str | None


class Record(Named):
    """A record with `fields` in order, and by name. `is_error` (`"type": "error"`) does not count in comparisons."""

    type: ClassVar[str] = "record"
    __slots__ = ("fields", "fields_by_name")
    is_error = False

    def __init__(self, full_name: str, name: str, namespace: str | None) -> None:
        self.full_name = full_name
        self.name = name
        self.namespace = namespace
        self.aliases = ()
        self.fields: tuple[Field, ...] = ()
        self.fields_by_name: Mapping[str, Field] = {}


class Field:
    """A field of a record.

    Attributes:
        default: a JSON value, or NO_DEFAULT. For a float or double, a text with a number is a float.
        aliases: the other names of the field, each once, in document order.
    """

    __slots__ = ("__dict__", "aliases", "default", "name", "schema")
    order: Order = "ascending"
    doc: str | None = None
    properties: Mapping[str, JsonValue] = NO_PROPERTIES

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema
        self.default: JsonValue = NO_DEFAULT
        self.aliases: tuple[str, ...] = ()


class SpelledField(Field):
    """A field whose `text` in the composition of its record is known; it leads to no named type."""

    __slots__ = ("text",)

    def __init__(self, name: str, schema: Schema, text: str) -> None:
        super().__init__(name, schema)
        self.text = text


Schema = Primitive | Array | Map | Union | Fixed | Enum | Record
NamedSchema = Fixed | Enum | Record


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


def locate_children(schema: Schema) -> list[tuple[tuple[str | int, ...], Schema]]:
    """Return the schemas directly inside `schema`, in document order, each with the tokens of its JSON pointer."""
    match schema:
        case Array():
            return [(("items",), schema.items)]
        case Map():
            return [(("values",), schema.values)]
        case Union():
            return [((index,), branch) for index, branch in enumerate(schema.branches)]
        case Record():
            return [(("fields", index, "type"), field.schema) for index, field in enumerate(schema.fields)]
    return []


def locate_parts(schema: Schema) -> dict[Schema, Path]:
    """Map `schema` and every schema inside it, in document order, to the path of its first place."""
    paths: dict[Schema, Path] = {}
    pending: list[tuple[Schema, Path]] = [(schema, ())]
    while pending:
        part, path = pending.pop()
        if part not in paths:
            paths[part] = path
            pending += reversed([(child, (path, *tokens)) for tokens, child in locate_children(part)])
    return paths


def parts(schema: Schema) -> Iterator[Schema]:
    """Yield `schema` and every schema inside it once, in document order."""
    visited: set[Schema] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if part not in visited:
            visited.add(part)
            yield part
            pending += reversed([*children(part)])


def count_parts(schema: Schema, *, at_most: int) -> int:
    """Return the number of different parts of `schema`, itself included, or `at_most` if there are more."""
    return sum(1 for _ in islice(parts(schema), at_most))


@lru_cache(maxsize=2048)
def has_aliases(schema: Schema) -> bool:
    """Return whether any type or field in `schema` has an alias."""
    return any(
        part.aliases or (isinstance(part, Record) and any(field.aliases for field in part.fields))
        for part in parts(schema)
        if isinstance(part, Named)
    )


def find_doc(schema: Schema) -> str:
    """Return the documentation of the named type of a value or its items, or "" without such a type or with several."""
    match schema:
        case Array(items=inner) | Map(values=inner):
            return find_doc(inner)
        case Union(branches=branches):
            non_null = [branch for branch in branches if branch.type != "null"]
            return find_doc(non_null[0]) if len(non_null) == 1 else ""
        case Fixed() | Enum() | Record():
            return schema.doc or ""
    return ""


# Equality: Java's Schema.equals


def equal(left: Schema, right: Schema) -> bool:
    """Return whether Java's `left.equals(right)`. Records that contain themselves are equal if no part differs.

    The full names count, the fields in order with their types, defaults and sort orders, the symbols in order, sizes, and
    custom properties (logicalType among them). Documentation, aliases, the default of an enum, and error or record do not.
    """
    pairs: list[tuple[Schema, Schema]] = [(left, right)]
    records: set[tuple[int, int]] = set()
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if left.type != right.type or not _is_equal_without_children(left, right):
            return False
        if isinstance(left, Record) and isinstance(right, Record):
            if (id(left), id(right)) in records:
                continue
            records.add((id(left), id(right)))
            if len(left.fields) != len(right.fields):
                return False
            for left_field, right_field in zip(left.fields, right.fields, strict=True):
                if left_field.name != right_field.name or _field_text(left_field) != _field_text(right_field):
                    return False
        pairs.extend(zip(children(left), children(right), strict=True))
    return True


def _is_equal_without_children(left: Schema, right: Schema) -> bool:
    """Return whether two schemas of one type are equal, except for the schemas inside them."""
    if isinstance(left, Named) and isinstance(right, Named) and left.full_name != right.full_name:
        return False
    if isinstance(left, Enum) and isinstance(right, Enum) and left.symbols != right.symbols:
        return False
    if isinstance(left, Fixed) and isinstance(right, Fixed) and left.size != right.size:
        return False
    if isinstance(left, Union) and isinstance(right, Union) and len(left.branches) != len(right.branches):
        return False
    return _properties_text(left) == _properties_text(right)


def _field_text(field: Field) -> str:
    """Return the parts of a field that equality compares, without name and type."""
    if field.default is NO_DEFAULT and field.order == "ascending" and not field.properties:
        return ""
    default = "" if field.default is NO_DEFAULT else f"={canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f" {field.order}"
    return default + order + _properties_text(field)


def _properties_text(holder: Schema | Field | Named) -> str:
    return canonical_json(dict(holder.properties)) if holder.properties else ""


def canonical_json(value: JsonValue) -> str:
    """Return the JSON text of a parsed value; it is the same for values that Jackson treats as equal (1 and 1.0 are not)."""
    if value is None:  # like most defaults
        return "null"
    return _CANONICAL_ENCODER.encode(value)


# Composition: a schema as a graph of its types


class Type(NamedTuple):
    """The text of a schema that equality depends on, with named types by name, and the full names of these types."""

    text: str
    uses: frozenset[str]


class Composition(NamedTuple):
    """The root of a definition, which may be a reference to a named type, and its named types by full name.

    A type in `uses` that `types` lacks is defined elsewhere. Two definitions are equal exactly if their roots are equal, and the
    types that the roots lead to. So the change of a type that a thousand definitions share is compared once.
    """

    root: Type
    types: dict[str, Type]


def make_composition(schema: Schema) -> Composition:
    """Return the root and the named types of a parsed schema."""
    spelling = _Spelling()
    text = spelling.spell_reference(schema)
    root = Type(text, frozenset(spelling.references))
    types: dict[str, Type] = {}
    while spelling.references:
        name, named = spelling.references.popitem()
        if name not in types:
            pending, spelling.references = spelling.references, {}
            text = spelling.spell_definition(named)
            types[name] = Type(text, frozenset(spelling.references))
            spelling.references |= pending
    return Composition(root, types)


def make_identity_key(schema: Schema) -> Hashable:
    """Return a key that two schemas share exactly if they are equal."""
    root, types = make_composition(schema)
    return root.text, frozenset((name, named.text) for name, named in types.items())


def list_alias_and_default_keys(schema: Schema) -> tuple[Hashable, ...]:
    """Return the aliases and enum defaults of `schema`, sorted: they change how it reads data, and `equal` ignores them."""
    keys: set[tuple[str, str, tuple[str, ...]]] = set()
    for part in parts(schema):
        if not isinstance(part, Named):
            continue
        if part.aliases:
            keys.add((part.full_name, "aliases", part.aliases))
        if isinstance(part, Enum) and part.default is not None:
            keys.add((part.full_name, "default", (part.default,)))
        if isinstance(part, Record):
            keys |= {(part.full_name, f"field {field.name}", field.aliases) for field in part.fields if field.aliases}
    return tuple(sorted(keys))


class _Spelling:
    """The texts of one schema's parts.

    Attributes:
        references: the named types in the texts, by the names they have there.
    """

    def __init__(self) -> None:
        self.references: dict[str, NamedSchema] = {}
        self._definitions: dict[str, list[NamedSchema]] = {}

    def spell_definition(self, named: NamedSchema) -> str:
        """Return the text of a named type, with the types inside it by name."""
        match named:
            case Record():
                fields = [
                    field.text
                    if type(field) is SpelledField
                    else f"{field.name} {self.spell_reference(field.schema)}{_field_text(field)}"
                    for field in named.fields
                ]
                text = f"record({','.join(fields)})"
            case Enum():
                text = f"enum({','.join(named.symbols)})"
            case Fixed():
                text = f"fixed({named.size})"
        return text + _properties_text(named)

    def spell_reference(self, schema: Schema) -> str:
        """Return the text of a place in a schema, with a named type by name."""
        match schema:
            case Primitive():
                return schema.type + _properties_text(schema) if schema.properties else schema.type
            case Union():
                return f"union({','.join(map(self.spell_reference, schema.branches))})"
            case Array():
                return f"array({self.spell_reference(schema.items)}){_properties_text(schema)}"
            case Map():
                return f"map({self.spell_reference(schema.values)}){_properties_text(schema)}"
        name = self._choose_name(schema)
        self.references[name] = schema
        return f"<{name}>"

    def _choose_name(self, named: NamedSchema) -> str:
        """Return the type's full name, with `#` added if the text defines another type of this name before (Avro 1.12.0)."""
        definitions = self._definitions.setdefault(named.full_name, [])
        for index, earlier in enumerate(definitions):
            if named is earlier or equal(named, earlier):
                return named.full_name + index * "#"
        definitions.append(named)
        return named.full_name + (len(definitions) - 1) * "#"


# Names and places


def qualify(name: str, namespace: str | None) -> Name:
    """Return the full name of a type that is written as `name` in `namespace`; the name may have its own namespace."""
    if "." in name:
        namespace, _, name = name.rpartition(".")
    if not namespace:
        return name, name, None
    return f"{namespace}.{name}", name, namespace


def write_full_names(value: Any, namespace: str | None = None, defined: set[str] | None = None) -> Any:
    """Return a definition as JSON in which every name of a type is its full name, so that only other names differ.

    Args:
        value: the definition as JSON, which need not be valid.
        namespace: the enclosing namespace.
        defined: the full names that are defined before `value`, to which its own are added.
    """
    defined = set() if defined is None else defined
    match value:
        case str() if value not in PRIMITIVE_TYPES:
            full_name = qualify(value, namespace)[0]
            # Avro looks for a name without dots in the enclosing namespace, then without a namespace.
            return value if full_name not in defined and value in defined else full_name
        case list():
            return [write_full_names(branch, namespace, defined) for branch in value]
        case {"type": "record" | "error" | "enum" | "fixed", "name": str(name)}:
            declared_namespace = value.get("namespace")
            within = declared_namespace if isinstance(declared_namespace, str) else namespace
            full_name, _, within = qualify(name, within)
            defined.add(full_name)
            entries = {key: entry for key, entry in value.items() if key != "namespace"} | {"name": full_name}
            if isinstance(fields := value.get("fields"), list):
                entries["fields"] = [
                    {**field, "type": write_full_names(field["type"], within, defined)}
                    if isinstance(field, dict) and "type" in field
                    else field
                    for field in fields
                ]
            return entries
        case {"type": kind}:
            keys = {"items", "values"} if kind in ("array", "map") else {"type", "items", "values"}
            return {
                key: write_full_names(entry, namespace, defined) if key in keys else entry
                for key, entry in value.items()
            }
    return value


@lru_cache(maxsize=1_000)
def is_plain_namespace(namespace: str) -> bool:
    """Return whether all parts of `namespace` consist of ASCII letters, digits and `_`, which every release accepts."""
    return all(part.isidentifier() and part.isascii() for part in namespace.split("."))


def is_name(name: str, *, extra_characters: str) -> bool:
    """Return whether `name` is a letter of any script, then letters and digits; `extra_characters` may be anywhere.

    Java checks UTF-16 units, so letters outside Unicode's basic plane do not count.
    """
    return (
        bool(name)
        and max(name) <= "\uffff"
        and (name[0].isalpha() or name[0] in extra_characters)
        and all(character.isalpha() or character.isdecimal() or character in extra_characters for character in name)
    )


def first_repeated(names: list[str]) -> int:
    """Return the index of the first name that occurs before; at least one must."""
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            break
        earlier_names.add(name)
    return len(earlier_names)


def pointer(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of a place; "" for the root."""
    tokens: list[Any] = []
    while path:
        tokens += path[:0:-1]
        path = path[0]
    return "".join([f"/{token}" for token in reversed(tokens)])


# Exceptions of Java


class JavaException(Exception):
    """An exception that Java's Avro throws.

    Attributes:
        exception: the simple name of the exception class.
        message: its message; "" for an exception of the JVM itself.
    """

    def __init__(self, exception: str, message: str = "") -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message


def stack_overflow() -> JavaException:
    """Return the exception for a recursion that does not end, or not soon enough."""
    return JavaException("StackOverflowError")


def out_of_memory() -> JavaException:
    """Return the exception for more data than fits on the heap."""
    return JavaException("OutOfMemoryError", "Java heap space")


def no_branch() -> JavaException:
    """Return the exception for the first branch of an empty union."""
    return JavaException("IndexOutOfBoundsException", "Index 0 out of bounds for length 0")


# Recursion along chains of references


MAX_CALLS: Final = 500_000
"""The maximum depth of calls for a chain of references.

A declared definition has at most 5 MiB and therefore at most 75,000 references in a chain, and a reference takes up to seven calls.
"""

_LIMIT_LOCK: Final = RLock()  # Python's limit on recursion is the same for all threads

T = TypeVar("T")


class TooDeep(InvalidSchema):
    """The chain of references between the types of a definition is too long to follow."""

    def __init__(self) -> None:
        super().__init__("the chain of references between the types is too long", fix="remove references between types")


def run_recursion(call: Callable[[], T], forget: Callable[[], object] = lambda: None) -> T:
    """Return the result of a recursive call, which may follow chains of references that are as long as a definition.

    Only if Python's limit on recursion does not suffice, the call runs again with a limit of MAX_CALLS. Calls of Python functions
    take no stack of the thread, unless a C function such as `map` or a generator expression stands between them. A parser written in
    C does, so no text may reach one below the raised limit.

    Args:
        call: the call.
        forget: reset the state that an interrupted call leaves behind.

    Raises:
        TooDeep: if MAX_CALLS do not suffice.
    """
    try:
        return call()
    except RecursionError:
        pass  # a new attempt inside this block would keep the failed one in memory
    forget()
    with _LIMIT_LOCK:
        limit = sys.getrecursionlimit()
        try:
            _raise_recursion_limit()
            return call()
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(limit)
    raise TooDeep


def _raise_recursion_limit() -> None:
    # As a function, it fails if not even one more call is possible: then Python would not accept the old limit afterwards.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_CALLS))
