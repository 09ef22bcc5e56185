"""Parse an Avro definition into the schema that decoding and encoding need: with resolved names and valid logical types, without docs.

The parser accepts every definition that one of the Avro releases in Pulsar and Spark accepts, such as a type that is used before its
definition, and rejects a definition that Java's Schema.Parser rejects in all of them. It accepts invalid defaults, because they matter
only when a message needs them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn

from .definition import InvalidDefinition, shorten
from .wire_format import compute_max_precision

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NO_DEFAULT: Final = object()
"""The default of a field without one; None is the default `null`."""

_LOGICAL_TYPES: Final = (
    ("int", "date"),
    ("long", "time-micros"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
    ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"),
)
"""The logical types, besides decimal, that change the type of the column; all others are read as their base type."""

_OTHER_TIMES: Final = (("int", "time-millis"), ("long", "timestamp-nanos"), ("long", "local-timestamp-nanos"))
"""The logical types of times that are read as their base type."""

JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Properties with which Avro ignores a logical type (LogicalType.INCOMPATIBLE_PROPS)."""

_MAX_FIXED_SIZE: Final = 2**31 - 9
"""The maximum length of an array of bytes in Java's Avro."""

# An unclosed string or comment matches to the end, because searching again after its start would take quadratic time.
_STRING_OR_COMMENT: Final = re.compile(r'(?s)"(?:[^"\\]++|\\.)*+"?|/\*(?:.*?\*/|.*+)|//[^\r\n]*+')
JAVA_WHITESPACE: Final = "".join(map(chr, range(33)))
"""The characters that Java's String.trim removes."""

_JAVA_DOUBLE: Final = re.compile(
    r"([+-]?)(?:(NaN|Infinity)|((?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?)[fFdD]?"
    r"|(0[xX](?:[\da-fA-F]++(?:\.[\da-fA-F]*+)?|\.[\da-fA-F]++)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)
"""The syntax of Java's Double.valueOf."""


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Avro's logical type `decimal`, with a valid precision and scale."""

    precision: int
    scale: int


@dataclass(slots=True, eq=False)
class PrimitiveType:
    """A primitive type.

    Attributes:
        logical: the logical type, if it changes the type of the column.
        java: the Java class, or the logical type that does not change the column; both matter to JSON alone.
    """

    type: str
    logical: str | DecimalType | None = None
    java: str = ""


@dataclass(slots=True, eq=False)
class NamedType:
    """The base of the named types; `aliases` are full names."""

    full_name: str
    aliases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name without its namespace."""
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class FixedType(NamedType):
    """A fixed type of `size` bytes."""

    type: ClassVar[str] = "fixed"
    size: int
    logical: DecimalType | None = None


@dataclass(slots=True, eq=False)
class EnumType(NamedType):
    """An enum."""

    type: ClassVar[str] = "enum"
    symbols: tuple[str, ...]
    default: str | None


@dataclass(slots=True, eq=False)
class ArrayType:
    """An array.

    Attributes:
        java: the Java class, which matters to JSON alone.
    """

    type: ClassVar[str] = "array"
    items: Schema
    java: str = ""


@dataclass(slots=True, eq=False)
class MapType:
    """A map, whose keys are strings."""

    type: ClassVar[str] = "map"
    values: Schema


@dataclass(slots=True, eq=False)
class UnionType:
    """A union."""

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
    """A record."""

    type: ClassVar[str] = "record"
    fields: list[RecordField] = field(default_factory=list)


Schema = PrimitiveType | FixedType | EnumType | ArrayType | MapType | UnionType | RecordType

_AnyNamed = FixedType | EnumType | RecordType


def get_full_name(schema: Schema) -> str:
    """Return the full name of a named type, or the name of any other type."""
    return schema.full_name if isinstance(schema, NamedType) else schema.type


def list_children(schema: Schema) -> tuple[Schema, ...]:
    """Return the schemas directly inside a schema, in order."""
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
    """Return the minimum size of a value in bytes. A recursive record counts as 0 inside itself."""
    return _compute_min_size(schema, {})


def _compute_min_size(schema: Schema, sizes: dict[int, int]) -> int:
    match schema:
        case PrimitiveType():
            return {"null": 0, "float": 4, "double": 8}.get(schema.type, 1)
        case FixedType():
            return schema.size
        case UnionType():
            branches = [_compute_min_size(branch, sizes) for branch in schema.branches]
            return 1 + min(branches, default=0)
        case RecordType():
            if id(schema) not in sizes:
                # For the record inside itself.
                sizes[id(schema)] = 0
                sizes[id(schema)] = sum(_compute_min_size(part.schema, sizes) for part in schema.fields)
            return sizes[id(schema)]
        case _:
            return 1


class ShapeComparison:
    """Compares the structure of many pairs of types, and each pair once."""

    def __init__(self, compare: Callable[[Schema, Schema], bool]) -> None:
        """Create a comparison in which types at the same place are the same if `compare` returns True for them."""
        self._compare = compare
        # By the identities of a pair, with the pair, so that no other type gets its identity.
        self._results: dict[tuple[int, int], tuple[bool, Schema, Schema]] = {}

    def is_same(self, left: Schema, right: Schema) -> bool:
        """Return whether two schemas have the same structure."""
        results: dict[tuple[int, int], tuple[bool, Schema, Schema]] = {}
        is_same = self._is_same(left, right, results)
        # The parts of different types were compared under the assumption that the types are the same.
        self._results |= results if is_same else {pair: result for pair, result in results.items() if not result[0]}
        return is_same

    def _is_same(
        self, left: Schema, right: Schema, results: dict[tuple[int, int], tuple[bool, Schema, Schema]]
    ) -> bool:
        pair = (id(left), id(right))
        if pair in self._results:
            return self._results[pair][0]
        if pair not in results:
            # Assumed while the parts of a recursive record are compared.
            results[pair] = True, left, right
            left_parts, right_parts = list_children(left), list_children(right)
            is_same = (
                left.type == right.type
                and self._compare(left, right)
                and len(left_parts) == len(right_parts)
                and all(
                    self._is_same(left_part, right_part, results)
                    for left_part, right_part in zip(left_parts, right_parts, strict=True)
                )
            )
            results[pair] = is_same, left, right
        return results[pair][0]


def is_equal(left: Schema, right: Schema) -> bool:
    """Compare two types except for their aliases and the types inside them (Schema.equals)."""
    match left, right:
        case (PrimitiveType(), PrimitiveType()):
            return left.logical == right.logical
        case (FixedType(), FixedType()):
            return (left.full_name, left.size, left.logical) == (right.full_name, right.size, right.logical)
        case (EnumType(), EnumType()):
            return (left.full_name, left.symbols) == (right.full_name, right.symbols)
        case (RecordType(), RecordType()):
            left_fields = [(part.name, part.default) for part in left.fields]
            right_fields = [(part.name, part.default) for part in right.fields]
            return left.full_name == right.full_name and left_fields == right_fields
    return True


# Parser


def parse(text: str) -> Schema:
    """Parse the JSON text of an Avro definition.

    Raises:
        InvalidDefinition: the text is not JSON, or not an Avro schema.
    """
    value = parse_json(text)
    parser = _Parser({})
    try:
        schema = parser.parse(value, "")
        if parser.unknown:
            # Avro 1.12 resolves unknown names after it has parsed the whole definition.
            parser = _Parser(parser.definitions)
            schema = parser.parse(value, "")
        for name in parser.unknown:
            raise InvalidDefinition(f"the definition names a type {name!r} that it does not define")
        for first, second in parser.repeated:
            if not ShapeComparison(_is_same_type).is_same(first, second):
                raise _make_error(f"{second.full_name} is defined twice, and not in the same way")
    except RecursionError:
        raise InvalidDefinition("the definition is nested too deeply") from None
    return schema


class _Parser:
    """Parses one definition.

    Attributes:
        definitions: the JSON of each named type, and the namespace around it.
        unknown: the names that were used before or without a definition.
        repeated: the pairs of first and later definitions of the same name.
    """

    def __init__(self, later: dict[str, tuple[dict[str, Any], str]]) -> None:
        """Create a parser; `later` has the definitions of types that may be used before they are defined."""
        self.definitions: dict[str, tuple[dict[str, Any], str]] = {}
        self.unknown: list[str] = []
        self.repeated: list[tuple[_AnyNamed, _AnyNamed]] = []
        self._later = later
        self._named: dict[str, _AnyNamed] = {}
        # By the identity of their JSON, so that no type is created twice.
        self._types: dict[int, _AnyNamed] = {}
        # The identities of the records whose fields are being parsed.
        self._open: set[int] = set()

    def parse(self, value: Any, namespace: str) -> Schema:
        if isinstance(value, str):
            return self._resolve_reference(value, namespace)
        if isinstance(value, list):
            branches = tuple(self.parse(branch, namespace) for branch in value)
            if "union" in [branch.type for branch in branches]:
                raise _make_error("a union stands directly inside a union")
            _check_distinct([get_full_name(branch) for branch in branches], "a union has the branch")
            return UnionType(branches)
        if not isinstance(value, dict):
            raise _make_error(f"{_describe_value(value)} is not a type")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise _make_error(f'"type" is {_describe_value(kind)}, and not the name of a type')
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in value:
                raise _make_error(f'the {kind} has no "{key}"')
            part = self.parse(value[key], namespace)
            return ArrayType(part, _get_java_class(value)) if kind == "array" else MapType(part)
        if kind in ("record", "error", "enum", "fixed"):
            return self._parse_named_type(kind, value, namespace)
        if kind not in PRIMITIVE_TYPES:
            return self._resolve_reference(kind, namespace)
        if kind == "bytes":
            return PrimitiveType(kind, _parse_decimal(value, None))
        logical = _get_logical_type(value)
        if (kind, logical) in _LOGICAL_TYPES:
            return PrimitiveType(kind, logical)
        return PrimitiveType(
            kind, None, logical if logical and (kind, logical) in _OTHER_TIMES else _get_java_class(value)
        )

    def _parse_named_type(self, kind: str, value: dict[str, Any], namespace: str) -> Schema:
        if id(value) in self._types:
            return self._types[id(value)]
        local_name = value.get("name")
        if not isinstance(local_name, str):
            raise _make_error(f"the name of this {kind} is {_describe_value(local_name)}")
        declared_namespace = value.get("namespace")
        name = _qualify(local_name, declared_namespace if isinstance(declared_namespace, str) else namespace)
        own_namespace, _, local_name = name.rpartition(".")
        _check_name(local_name, f"the name of this {kind}")
        if name in PRIMITIVE_TYPES:
            raise _make_error(f"this {kind} has the name of a primitive type, {name}")
        self.definitions.setdefault(name, (value, namespace))
        aliases = tuple(_qualify(alias, own_namespace) for alias in _get_names(value, "aliases"))
        for alias in aliases:
            _check_name(alias.rpartition(".")[2], "the alias")
        if kind == "enum":
            symbols = _get_list(value, "symbols", name)
            for symbol in symbols:
                _check_name(symbol, f"a symbol of {name}")
            _check_distinct(symbols, f"the enum {name} has the symbol")
            default = value.get("default")
            if isinstance(default, str) and default not in symbols:
                raise _make_error(
                    f"the default of {name} is {_describe_value(default)}, which is not one of its symbols"
                )
            enum = EnumType(name, aliases, tuple(symbols), default if isinstance(default, str) else None)
            return self._define(enum, value)
        if kind == "fixed":
            size = value.get("size")
            if type(size) is not int or not 0 <= size <= _MAX_FIXED_SIZE:
                raise _make_error(f"the size of {name} is {_describe_value(size)}, which is not a number of bytes")
            return self._define(FixedType(name, aliases, size, _parse_decimal(value, size)), value)
        record = RecordType(name, aliases)
        self._define(record, value)
        self._open.add(id(record))
        for part in _get_list(value, "fields", name):
            # Not a generator, which would add a call to the stack for each level of the definition.
            record.fields.append(self._parse_field(part, name, own_namespace))
        _check_distinct([part.name for part in record.fields], f"the record {name} has the field")
        self._open.discard(id(record))
        return record

    def _parse_field(self, value: Any, record: str, namespace: str) -> RecordField:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "type" not in value:
            raise _make_error(f"a field of {record} has no name or no type")
        name = value["name"]
        _check_name(name, f"a field of {record}")
        order = value.get("order", "ignore")
        if not isinstance(order, str) or order.lower() not in ("ascending", "descending", "ignore"):
            raise _make_error(f"the order of {record}.{name} is {_describe_value(order)}")
        schema = self.parse(value["type"], namespace)
        default = value.get("default", NO_DEFAULT)
        if isinstance(default, str) and schema.type in ("float", "double"):
            number = parse_double(default)
            if number is None:
                raise _make_error(
                    f"the default of {record}.{name} is {_describe_value(default)}, which is not a number"
                )
            default = number
        return RecordField(name, schema, default, tuple(_get_names(value, "aliases")))

    def _define(self, schema: _AnyNamed, value: dict[str, Any]) -> Schema:
        self._types[id(value)] = schema
        first = self._named.setdefault(schema.full_name, schema)
        # Avro 1.12.0 accepts any record with the name of a record around it.
        if first is not schema and not (isinstance(schema, RecordType) and id(first) in self._open):
            self.repeated.append((first, schema))
        return schema

    def _resolve_reference(self, name: str, namespace: str) -> Schema:
        if name in PRIMITIVE_TYPES:
            return PrimitiveType(name)
        full = _qualify(name, namespace)
        schema = self._named.get(full) or self._named.get(_qualify(name, ""))
        if schema is not None:
            return schema
        if full in self._later:
            value, outer_namespace = self._later[full]
            return self._parse_named_type(value["type"], value, outer_namespace)
        self.unknown.append(name)
        return RecordType(full, ())


def parse_json(text: str) -> Any:
    """Parse the JSON of a definition, which may have comments before its end, as in Java's parser.

    Raises:
        InvalidDefinition: the text is not JSON.
    """

    def reject_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a number there")

    plain = blank_comments(text)
    start = len(plain) - len(plain.lstrip())
    try:
        value, end = json.JSONDecoder(parse_constant=reject_constant).raw_decode(plain, start)
    except (ValueError, RecursionError) as error:
        raise InvalidDefinition(f"the definition is not JSON: {error}") from None
    if rest := text[end:].strip(JAVA_WHITESPACE):
        raise InvalidDefinition(f"the definition is not only JSON: {rest[:20]!r} follows it")
    return value


def blank_comments(text: str) -> str:
    """Replace comments by spaces, so that all positions stay the same. An unclosed comment remains."""

    def blank_comment(match: re.Match[str]) -> str:
        part = match[0]
        is_string = part[0] == '"'
        if is_string or (part[1] == "*" and (len(part) < 4 or not part.endswith("*/"))):
            return part
        return re.sub(r"[^\r\n]", " ", part)

    return _STRING_OR_COMMENT.sub(blank_comment, text) if "//" in text or "/*" in text else text


def _is_same_type(left: Schema, right: Schema) -> bool:
    """Compare the properties of two types that have an effect on decoding and encoding."""
    return is_equal(left, right) and getattr(left, "default", None) == getattr(right, "default", None)


def _qualify(name: str, namespace: str) -> str:
    """Return the full name of `name` inside `namespace`."""
    if "." in name:
        return name.removeprefix(".") if name.rindex(".") == 0 else name
    return f"{namespace}.{name}" if namespace else name


def _get_list(value: dict[str, Any], key: str, name: str) -> list[Any]:
    items = value.get(key)
    if not isinstance(items, list):
        raise _make_error(f'"{key}" of {name} is {_describe_value(items)}, not a list')
    return items


def _get_names(value: dict[str, Any], key: str) -> list[str]:
    names = value.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _make_error(f'"{key}" is {_describe_value(names)}, not a list of names')
    return names


def _get_logical_type(value: dict[str, Any]) -> str | None:
    """Return the logical type, or None if the definition also names a Java class, with which Avro ignores it (LogicalType.validate)."""
    logical = value.get("logicalType")
    if not isinstance(logical, str) or any(isinstance(value.get(name), str) for name in JAVA_CLASSES):
        return None
    return logical


def _get_java_class(value: dict[str, Any]) -> str:
    java_class = value.get("java-class")
    return java_class if isinstance(java_class, str) else ""


def _parse_decimal(value: dict[str, Any], size: int | None) -> DecimalType | None:
    """Return the decimal of a definition, or None if it is invalid, because Avro ignores it (LogicalTypes.Decimal.validate)."""
    precision, scale = value.get("precision"), value.get("scale", 0)
    if _get_logical_type(value) != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    if not (0 < precision < 1 << 31 and 0 <= scale <= precision):
        return None
    if size is not None and precision > compute_max_precision(size):
        return None
    return DecimalType(precision, scale)


def parse_double(text: str) -> float | None:
    """Parse a number like Java's Double.valueOf, or return None for another text."""
    match = _JAVA_DOUBLE.fullmatch(text.strip(JAVA_WHITESPACE))
    if match is None:
        return None
    sign, word, decimal, hexadecimal = match.groups()
    try:
        number = float.fromhex(hexadecimal) if hexadecimal else float(word or decimal)
    except OverflowError:
        number = math.inf
    return -number if sign == "-" else number


def _check_name(name: Any, subject: str) -> None:
    """Accept letters and digits of any script, `_`, and `$`, which newer releases of Pulsar allow, but not a digit first."""
    if isinstance(name, str) and name.isidentifier() and name.isascii():
        return
    plain = name.replace("$", "_").replace("_", "a") if isinstance(name, str) else ""
    is_name = plain and not plain[0].isdecimal() and max(plain) <= "\uffff"
    if not is_name or not all(character.isalpha() or character.isdecimal() for character in plain):
        raise _make_error(f"{subject} is {_describe_value(name)}, which is not a name")


def _check_distinct(names: list[str], subject: str) -> None:
    if len(set(names)) < len(names):
        duplicate = next(name for number, name in enumerate(names) if name in names[:number])
        raise _make_error(f"{subject} {duplicate} twice")


def _make_error(message: str) -> InvalidDefinition:
    return InvalidDefinition(f"the definition is not an Avro schema: {message}")


def _describe_value(value: Any) -> str:
    if value is None:
        return "missing or null"
    text = "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else repr(value)
    return shorten(text, 60)
