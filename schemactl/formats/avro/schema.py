"""The model of a parsed Avro schema, shaped as Java's org.apache.avro.Schema, and its equality.

A schema is a graph: every place in the text has its own node, and every reference to a named type leads to the node of
its definition. Only a primitive without properties is the same node everywhere. Nodes are compared by identity, so that
`(reader, writer)` pairs can key memo tables; `equal` has Avro's own notion of equal schemas.

Definitions come from strangers, and a chain of references can be as long as the text. A recursive function is
written as a generator that yields the call it needs and gets its result back: `child = yield walk(node.items)`.
Where every step counts a function returns its result at once, and such a generator only where other parts are inside.

`equal` looks at full names, fields in order with their types, defaults and sort orders, symbols in order, sizes, and custom
properties (logicalType among them). It does not look at doc, aliases, the default of an enum, and error or record.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

# Nodes.


JsonValue = Any
"""A parsed JSON value: None, bool, int, float, str, list or dict."""

NO_PROPERTIES: Final[Mapping[str, JsonValue]] = MappingProxyType({})


class _NoDefault:
    """The type of NO_DEFAULT; a `null` default is None."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""Stands for the default of a field that has none."""

Order = Literal["ascending", "descending", "ignore"]


@dataclass(eq=False, repr=False, slots=True)
class Primitive:
    """`null`, `boolean`, `int`, `long`, `float`, `double`, `bytes` or `string`: both its `type` and its `full_name`."""

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
"""The writer's primitive types that a reader's primitive type reads."""


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
    """One of `branches`, none of which is a union. A union has no properties of its own."""

    type: ClassVar[str] = "union"
    full_name: ClassVar[str] = "union"
    properties: ClassVar[Mapping[str, JsonValue]] = NO_PROPERTIES
    branches: tuple[Schema, ...]


class Named:
    """A named type.

    Attributes:
        full_name: with its namespace, if it has one.
        name: without it (Java's getName).
        namespace: None for the null namespace.
        aliases: full names, each once, in document order.
    """

    # What most types and fields lack is set where it is there: that makes small definitions faster to read.
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
    """One of `symbols`; `default` stands in for a symbol the reader does not list."""

    type: ClassVar[str] = "enum"
    __slots__ = ("default", "symbols")
    symbols: tuple[str, ...]
    default: str | None


class Record(Named):
    """`fields` in order, also by name. `is_error`: written `"type": "error"`, and the same in every comparison."""

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
        default: a JSON value, or NO_DEFAULT. A number written as text is a float where the schema is float or double.
        aliases: other names of the field, each once, in document order.
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


Schema = Primitive | Array | Map | Union | Fixed | Enum | Record
NamedSchema = Fixed | Enum | Record


def doc_of(schema: Schema) -> str:
    """Return what the named type that a value is of, or holds, says of itself; "": nothing, or the value may be of several types."""
    match schema:
        case Array(items=inner) | Map(values=inner):
            return doc_of(inner)
        case Union(branches=branches):
            others = [each for each in branches if each.type != "null"]
            return doc_of(others[0]) if len(others) == 1 else ""
        case Fixed() | Enum() | Record():
            return schema.doc or ""
    return ""


# Names and places.


Path = tuple[Any, ...]
"""A place in a definition: () for the whole, otherwise the place around it, and the keys and indices that lead there."""


Name = tuple[str, str, str | None]
"""The name of a type: in full, without its namespace, and the namespace (None for the null namespace)."""


def qualify(name: str, namespace: str | None) -> Name:
    """Return `name` in full where `namespace` is in force; a name with dots brings its own."""
    if "." in name:
        namespace, _, name = name.rpartition(".")
    if not namespace:
        return name, name, None
    return f"{namespace}.{name}", name, namespace


@lru_cache(maxsize=1_000)
def is_plain_namespace(namespace: str) -> bool:
    """Whether all parts of `namespace` are of ASCII letters, digits and `_`, which every release accepts."""
    return all(part.isidentifier() and part.isascii() for part in namespace.split("."))


def is_name(name: str, *, others: str) -> bool:
    """Whether `name` is a letter, then letters and digits, of any script; `others` may stand anywhere, too.

    Java looks at UTF-16 units, so that letters outside Unicode's basic plane do not count.
    """
    return (
        bool(name)
        and max(name) <= "\uffff"
        and (name[0].isalpha() or name[0] in others)
        and all(character.isalpha() or character.isdecimal() or character in others for character in name)
    )


def first_repeated(names: list[str]) -> int:
    """Return the index of the first of the `names` that occurs before it, too; there is one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            break
        seen.add(name)
    return len(seen)


def pointer(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of a place; "" for the whole definition."""
    tokens: list[Any] = []
    while path:
        tokens += path[:0:-1]
        path = path[0]
    return "".join([f"/{token}" for token in reversed(tokens)])


# Exceptions of Java.


class JavaException(Exception):
    """Java's Avro throws `exception`, by its simple class name, with `message` (empty where it is the JVM's own)."""

    def __init__(self, exception: str, message: str = "") -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message


def stack_overflow() -> JavaException:
    """Return what Java throws where its recursion does not end, or not soon enough."""
    return JavaException("StackOverflowError")


def out_of_memory() -> JavaException:
    """Return what Java throws where it keeps more than its heap holds."""
    return JavaException("OutOfMemoryError", "Java heap space")


def no_branch() -> JavaException:
    """Return what Java throws where it takes the first branch of a union that has none."""
    return JavaException("IndexOutOfBoundsException", "Index 0 out of bounds for length 0")


# Recursion of any depth, with its stack on the heap.


T = TypeVar("T")

Deep = Generator["Deep[Any]", Any, T]
"""A call that has not run yet and will return a T."""


def gather(calls: Iterable[Deep[T]]) -> Deep[list[T]]:
    """Return what each of `calls` returns; one is made when the one before it has ended."""
    results: list[T] = []
    for call in calls:
        result = yield call
        results.append(result)
    return results


def run(call: Deep[T]) -> T:
    """Return what `call` returns. An exception raised in it comes out here; the calls around it do not see it."""
    around: list[Any] = []
    send, result = call.send, None
    while True:
        try:
            inner = send(result)
        except StopIteration as finished:
            result = finished.value
            if not around:
                return result  # type: ignore[no-any-return]
            send = around.pop()
        else:
            around.append(send)
            send, result = inner.send, None


# Equality: Java's Schema.equals.


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
                fields = [f"{field.name} {self.reference(field.schema)}{_beside_type(field)}" for field in named.fields]
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
