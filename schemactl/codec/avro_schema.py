"""The Avro schema that decoding and encoding need (resolved names, valid logical types, no docs), and its lenient parser.

Rejected is what Java's Schema.Parser rejects in every release of Avro that a Pulsar or a Spark has, bad defaults apart: they matter
where a message needs them. What one of these releases takes is taken, such as a type that is named before it is defined.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn

from .definition import InvalidDefinition

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class DecimalType:
    """The logical type of that name, valid by Avro's rules."""

    precision: int
    scale: int


NO_DEFAULT: Final = object()
"""Not None, which is the default `null`."""


@dataclass(slots=True, eq=False)
class PrimitiveType:
    """A type without parts."""

    type: str
    logical: str | DecimalType | None = None


@dataclass(slots=True, eq=False)
class NamedType:
    """What the named types share; `name` is without the namespace, `aliases` are full names."""

    full_name: str
    aliases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name without its namespace."""
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class FixedType(NamedType):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    size: int
    logical: DecimalType | None = None


@dataclass(slots=True, eq=False)
class EnumType(NamedType):
    """One of `symbols`."""

    type: ClassVar[str] = "enum"
    symbols: tuple[str, ...]
    default: str | None


@dataclass(slots=True, eq=False)
class ArrayType:
    """A list."""

    type: ClassVar[str] = "array"
    items: Schema


@dataclass(slots=True, eq=False)
class MapType:
    """Strings to values."""

    type: ClassVar[str] = "map"
    values: Schema


@dataclass(slots=True, eq=False)
class UnionType:
    """One of `branches`."""

    type: ClassVar[str] = "union"
    branches: tuple[Schema, ...]


@dataclass(slots=True, eq=False)
class RecordField:
    """A field of a record; `default` is a JSON value or NO_DEFAULT."""

    name: str
    schema: Schema
    default: Any
    aliases: tuple[str, ...]


@dataclass(slots=True, eq=False)
class RecordType(NamedType):
    """`fields` in order."""

    type: ClassVar[str] = "record"
    fields: list[RecordField] = field(default_factory=list)


Schema = PrimitiveType | FixedType | EnumType | ArrayType | MapType | UnionType | RecordType


def full_name(schema: Schema) -> str:
    """Return the name by which an error message calls the type."""
    return schema.full_name if isinstance(schema, NamedType) else schema.type


def children(schema: Schema) -> tuple[Schema, ...]:
    """Return the schemas directly inside one, in order."""
    match schema:
        case ArrayType():
            return (schema.items,)
        case MapType():
            return (schema.values,)
        case UnionType():
            return schema.branches
        case RecordType():
            return tuple(part.schema for part in schema.fields)
    return ()


def compute_min_size(schema: Schema) -> int:
    """Return the fewest bytes a value takes; 0 also where a record holds itself, which no byte count can bound."""
    return _min_size(schema, {})


def _min_size(schema: Schema, known: dict[int, int]) -> int:
    match schema:
        case PrimitiveType():
            return {"null": 0, "float": 4, "double": 8}.get(schema.type, 1)
        case FixedType():
            return schema.size
        case UnionType():
            branches = [_min_size(branch, known) for branch in schema.branches]
            return 1 + min(branches, default=0)
        case RecordType():
            if id(schema) not in known:
                # Nothing, inside itself.
                known[id(schema)] = 0
                known[id(schema)] = sum(_min_size(part.schema, known) for part in schema.fields)
            return known[id(schema)]
        case _:
            return 1


def alike(left: Schema, right: Schema, same: Callable[[Schema, Schema], bool]) -> bool:
    """Whether both have the same shape, and `same` holds for every pair of types at the same place."""
    return _alike(left, right, same, {})


def _alike(
    left: Schema, right: Schema, same: Callable[[Schema, Schema], bool], seen: dict[tuple[int, int], bool]
) -> bool:
    pair = (id(left), id(right))
    if pair not in seen:
        # Assumed for a record inside itself, until something else says otherwise.
        seen[pair] = True
        parts = children(left), children(right)
        seen[pair] = (
            left.type == right.type
            and same(left, right)
            and len(parts[0]) == len(parts[1])
            and all(_alike(one, other, same, seen) for one, other in zip(*parts, strict=True))
        )
    return seen[pair]


def equal(left: Schema, right: Schema) -> bool:
    """Compare all that is kept of two types but aliases and what is inside (Schema.equals)."""
    match left, right:
        case (PrimitiveType(), PrimitiveType()):
            return left.logical == right.logical
        case (FixedType(), FixedType()):
            return (left.full_name, left.size, left.logical) == (right.full_name, right.size, right.logical)
        case (EnumType(), EnumType()):
            return (left.full_name, left.symbols) == (right.full_name, right.symbols)
        case (RecordType(), RecordType()):
            fields = [[(part.name, part.default) for part in record.fields] for record in (left, right)]
            return left.full_name == right.full_name and fields[0] == fields[1]
    return True


# Parser


_AnyNamed = FixedType | EnumType | RecordType

_LOGICAL: Final = (
    ("int", "date"),
    ("long", "time-micros"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
    ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"),
)
"""The logical types, besides decimal, that change how a value is held; all others are their base type."""

_JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Properties beside which Avro ignores a logical type (LogicalType.INCOMPATIBLE_PROPS)."""

_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The longest array of bytes that Java's Avro makes."""

# What is never closed takes all that follows: were it looked for again behind its start, reading would be quadratic.
_STRING_OR_COMMENT: Final = re.compile(r'(?s)"(?:[^"\\]++|\\.)*+"?|/\*(?:.*?\*/|.*+)|//[^\r\n]*+')
_JAVA_SPACES: Final = "".join(map(chr, range(33)))
_JAVA_DOUBLE: Final = re.compile(
    r"([+-]?)(?:(NaN|Infinity)|((?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?)[fFdD]?"
    r"|(0[xX](?:[\da-fA-F]++(?:\.[\da-fA-F]*+)?|\.[\da-fA-F]++)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)
"""What Java's Double.valueOf reads."""


def parse(text: str) -> Schema:
    """Return the schema in an Avro definition's JSON text. Raises InvalidDefinition: it is not JSON, or not an Avro schema."""
    value = json_of(text)
    parser = _Parser({})
    try:
        schema = parser.schema(value, "")
        if parser.unknown:
            # Avro 1.12 looks for such names when it has read the whole.
            parser = _Parser(parser.definitions)
            schema = parser.schema(value, "")
        for name in parser.unknown:
            raise InvalidDefinition(f"the definition names a type {name!r} that it does not define")
        for earlier, again in parser.repeated:
            if not alike(earlier, again, _same):
                raise _invalid(f"{again.full_name} is defined twice, and not in the same way")
    except RecursionError:
        raise InvalidDefinition("the definition is nested deeper than can be followed") from None
    return schema


def json_of(text: str) -> Any:
    """Return the JSON in a definition's text, which may have comments before its end, as Java's parser has it.

    Raises InvalidDefinition: it is not JSON.
    """
    plain = without_comments(text)
    start = len(plain) - len(plain.lstrip())
    try:
        value, end = json.JSONDecoder(parse_constant=_no_json).raw_decode(plain, start)
    except (ValueError, RecursionError) as error:
        raise InvalidDefinition(f"the definition is not JSON: {error}") from None
    if rest := text[end:].strip(_JAVA_SPACES):
        raise InvalidDefinition(f"the definition is not only JSON: {rest[:20]!r} follows it")
    return value


def without_comments(text: str) -> str:
    """Return `text` with every comment blanked out, so that all positions stay; one that is never closed is left."""
    return _STRING_OR_COMMENT.sub(_blank, text) if "/" in text else text


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"' or (found[1] == "*" and (len(found) < 4 or not found.endswith("*/"))):
        return found
    return re.sub(r"[^\r\n]", " ", found)


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number there")


class _Parser:
    """Reads one definition.

    Attributes:
        definitions: of each named type its JSON, and the namespace in force around it.
        unknown: the names that no type has, as far as the definition was read.
        repeated: types that were defined before, and their first definitions in front of them.
    """

    def __init__(self, later: dict[str, tuple[dict[str, Any], str]]) -> None:
        """`later`: definitions of types that may be named before they are defined."""
        self.definitions: dict[str, tuple[dict[str, Any], str]] = {}
        self.unknown: list[str] = []
        self.repeated: list[tuple[_AnyNamed, _AnyNamed]] = []
        self._later = later
        self._named: dict[str, _AnyNamed] = {}
        self._made: dict[int, _AnyNamed] = {}
        """By the identity of their JSON: none is made twice."""
        self._open: set[int] = set()
        """The identities of the records whose fields are being read."""

    def schema(self, value: Any, namespace: str) -> Schema:
        if isinstance(value, str):
            return self._reference(value, namespace)
        if isinstance(value, list):
            return _union(tuple(self.schema(branch, namespace) for branch in value))
        if not isinstance(value, dict):
            raise _invalid(f"{_shown(value)} is no type")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise _invalid(f'"type" is {_shown(kind)}, and not the name of a type')
        if kind in ("array", "map"):
            inside = "items" if kind == "array" else "values"
            if inside not in value:
                raise _invalid(f'the {kind} has no "{inside}"')
            part = self.schema(value[inside], namespace)
            return ArrayType(part) if kind == "array" else MapType(part)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(kind, value, namespace)
        if kind not in PRIMITIVE_TYPES:
            return self._reference(kind, namespace)
        if kind == "bytes":
            return PrimitiveType(kind, _decimal(value, None))
        logical = _logical_type(value)
        return PrimitiveType(kind, logical if (kind, logical) in _LOGICAL else None)

    def _named_type(self, kind: str, value: dict[str, Any], namespace: str) -> Schema:
        if id(value) in self._made:
            return self._made[id(value)]
        name, space = _name(value, namespace)
        self.definitions.setdefault(name, (value, namespace))
        aliases = tuple(_qualified(alias, space) for alias in _texts(value, "aliases"))
        for alias in aliases:
            _check_name(alias.rpartition(".")[2], "the alias")
        if kind == "enum":
            symbols = _list(value, "symbols", name)
            for symbol in symbols:
                _check_name(symbol, f"a symbol of {name}")
            _check_distinct(symbols, f"the enum {name} has the symbol")
            default = value.get("default")
            if isinstance(default, str) and default not in symbols:
                raise _invalid(f"the default of {name} is {_shown(default)}, which is none of its symbols")
            enum = EnumType(name, aliases, tuple(symbols), default if isinstance(default, str) else None)
            return self._define(enum, value)
        if kind == "fixed":
            size = value.get("size")
            if type(size) is not int or not 0 <= size <= _MAX_FIXED_SIZE:
                raise _invalid(f"the size of {name} is {_shown(size)}, which is no number of bytes")
            return self._define(FixedType(name, aliases, size, _decimal(value, size)), value)
        record = RecordType(name, aliases)
        self._define(record, value)
        self._open.add(id(record))
        for part in _list(value, "fields", name):
            # No generator: each level of the definition has as few calls inside one another as can be.
            record.fields.append(self._field(part, name, space))
        _check_distinct([part.name for part in record.fields], f"the record {name} has the field")
        self._open.discard(id(record))
        return record

    def _field(self, value: Any, record: str, namespace: str) -> RecordField:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "type" not in value:
            raise _invalid(f"a field of {record} has no name or no type")
        name = value["name"]
        _check_name(name, f"a field of {record}")
        order = value.get("order", "ignore")
        if not isinstance(order, str) or order.lower() not in ("ascending", "descending", "ignore"):
            raise _invalid(f"the order of {record}.{name} is {_shown(order)}")
        schema = self.schema(value["type"], namespace)
        default = value.get("default", NO_DEFAULT)
        if isinstance(default, str) and schema.type in ("float", "double"):
            default = _double(default, f"{record}.{name}")
        return RecordField(name, schema, default, tuple(_texts(value, "aliases")))

    def _define(self, schema: _AnyNamed, value: dict[str, Any]) -> Schema:
        self._made[id(value)] = schema
        earlier = self._named.setdefault(schema.full_name, schema)
        # Avro 1.12.0 takes any record that has the name of one around it.
        if earlier is not schema and not (isinstance(schema, RecordType) and id(earlier) in self._open):
            self.repeated.append((earlier, schema))
        return schema

    def _reference(self, name: str, namespace: str) -> Schema:
        if name in PRIMITIVE_TYPES:
            return PrimitiveType(name)
        full = _qualified(name, namespace)
        known = self._named.get(full) or self._named.get(_qualified(name, ""))
        if known is not None:
            return known
        if full in self._later:
            value, around = self._later[full]
            return self._named_type(value["type"], value, around)
        self.unknown.append(name)
        return RecordType(full, ())


def _same(left: Schema, right: Schema) -> bool:
    """Compare two types as far as reading and writing go."""
    return equal(left, right) and getattr(left, "default", None) == getattr(right, "default", None)


def _union(branches: tuple[Schema, ...]) -> UnionType:
    names = [full_name(branch) for branch in branches]
    if "union" in [branch.type for branch in branches]:
        raise _invalid("a union stands directly inside a union")
    _check_distinct(names, "a union has the branch")
    return UnionType(branches)


def _name(value: dict[str, Any], namespace: str) -> tuple[str, str]:
    """Full name and namespace of a named type inside `namespace`."""
    name = value.get("name")
    if not isinstance(name, str):
        raise _invalid(f"the name of this {value['type']} is {_shown(name)}")
    if isinstance(own := value.get("namespace"), str):
        namespace = own
    full = _qualified(name, namespace)
    space, _, local = full.rpartition(".")
    _check_name(local, f"the name of this {value['type']}")
    if full in PRIMITIVE_TYPES:
        raise _invalid(f"this {value['type']} has the name of a primitive type, {full}")
    return full, space


def _qualified(name: str, namespace: str) -> str:
    """Return the full name of what is called `name` inside `namespace`."""
    if "." in name:
        return name.removeprefix(".") if name.rindex(".") == 0 else name
    return f"{namespace}.{name}" if namespace else name


def _check_name(name: Any, what: str) -> None:
    """Letters and digits of any script, `_`, and `$`, which newer releases of Pulsar accept; no digit comes first."""
    if isinstance(name, str) and name.isidentifier() and name.isascii():
        return
    plain = name.replace("$", "_").replace("_", "a") if isinstance(name, str) else ""
    is_name = plain and not plain[0].isdecimal() and max(plain) <= "\uffff"
    if not is_name or not all(character.isalpha() or character.isdecimal() for character in plain):
        raise _invalid(f"{what} is {_shown(name)}, which is no name")


def _check_distinct(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise _invalid(f"{what} {twice} twice")


def _list(value: dict[str, Any], key: str, name: str) -> list[Any]:
    if not isinstance(value.get(key), list):
        raise _invalid(f'"{key}" of {name} is {_shown(value.get(key))}, and no list')
    found: list[Any] = value[key]
    return found


def _texts(value: dict[str, Any], key: str) -> list[str]:
    found = value.get(key, [])
    if not isinstance(found, list) or not all(isinstance(part, str) for part in found):
        raise _invalid(f'"{key}" is {_shown(found)}, and no list of names')
    return found


def _double(text: str, place: str) -> float:
    """Return the number that Java takes a text for, as the default of a float or double."""
    found = _JAVA_DOUBLE.fullmatch(text.strip(_JAVA_SPACES))
    if found is None:
        raise _invalid(f"the default of {place} is {_shown(text)}, which is no number")
    sign, word, decimal, hexadecimal = found.groups()
    try:
        number = float.fromhex(hexadecimal) if hexadecimal else float(word or decimal)
    except OverflowError:
        number = math.inf
    return -number if sign == "-" else number


def _invalid(what: str) -> InvalidDefinition:
    return InvalidDefinition(f"the definition is not an Avro schema: {what}")


def _shown(value: Any) -> str:
    if value is None:
        return "missing or null"
    text = "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else repr(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _logical_type(value: dict[str, Any]) -> str | None:
    """Return what the definition says, None where it names a Java class, too: then Avro ignores it (LogicalType.validate)."""
    logical = value.get("logicalType")
    if not isinstance(logical, str) or any(isinstance(value.get(name), str) for name in _JAVA_CLASSES):
        return None
    return logical


def _decimal(value: dict[str, Any], size: int | None) -> DecimalType | None:
    """Return the decimal that org.apache.avro.LogicalTypes.Decimal.validate accepts, else None: Avro ignores an invalid one."""
    precision, scale = value.get("precision"), value.get("scale", 0)
    if _logical_type(value) != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    if not (0 < precision < 1 << 31 and 0 <= scale <= precision):
        return None
    return DecimalType(precision, scale) if size is None or precision <= _digits(size) else None


def _digits(size: int) -> int:
    """How many digits always fit into a fixed of `size` bytes, as LogicalTypes.Decimal.maxPrecision says, in Java's ints."""
    bits = (8 * size - 1 + (1 << 31)) % (1 << 32) - (1 << 31)
    return math.floor(math.log10(2) * bits)
