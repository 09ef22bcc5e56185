"""Read and write the JSON text of an Avro schema like Java, and derive its canonical form and fingerprints.

The parser accepts what Jackson accepts: JSON with comments (`/* */` and `//`) before its end, where the last of two equal keys
counts, within Jackson's default limits (StreamReadConstraints).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Container
from decimal import Decimal
from typing import Any, Final, NoReturn

from schemactl.codec.avro_schema import JAVA_WHITESPACE, blank_comments
from schemactl.core.errors import InvalidSchema
from schemactl.core.escaping import quote_jackson
from schemactl.core.schema import MAX_DEPTH
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PRIMITIVE_TYPES,
    Array,
    Enum,
    Fixed,
    JavaException,
    JsonValue,
    Map,
    Named,
    NamedSchema,
    Record,
    Schema,
    Union,
    children,
    equal,
    run_recursion,
)

MAX_NUMBER_LENGTH: Final = 1_000
MAX_KEY_LENGTH: Final = 50_000

TYPE_NAMES: Final = PRIMITIVE_TYPES | {"record", "enum", "array", "map", "union", "fixed"}
"""The names of which a reference is written in full, even inside its own namespace."""

_WHITESPACE: Final = " \t\r\n"

_MAX_SHOWN: Final = 60
"""The maximum number of characters of a value in a message."""

# Compiled at first use, for rare cases. An unclosed string matches the rest of the text: if the search resumed after its start,
# reading would be quadratic.
_STRING_BRACKET_OR_NUMBER: Final = r'(?s)"(?:[^"\\]++|\\.)*+(?:"(?:[ \t\r\n]*+:)?)?|[\[\]{}]|[-+.0-9eE]++'
_NUMBER_CHARACTERS: Final = frozenset("-+.0123456789eE")

_CRC64_EMPTY: Final = 0xC15D213AA4D7A795
"""CRC-64-AVRO of no bytes; also its polynomial."""


class InvalidAvro(InvalidSchema):
    """Avro's Java parser rejects a definition.

    Attributes:
        exception: the simple class name of the Java exception.
    """

    def __init__(
        self, message: str, *, pointer: str = "", fix: str = "", exception: str = "SchemaParseException"
    ) -> None:
        super().__init__(message, pointer=pointer, fix=fix)
        self.exception = exception


class TrailingText(InvalidAvro):
    """A `text` follows the JSON `value`. Java's parser reports it after it has read a schema from the value."""

    def __init__(self, message: str, *, value: Any, text: str) -> None:
        super().__init__(message, fix="remove the text after the schema; comments are allowed only before its end")
        self.value = value
        self.text = text


# Parser, by the rules of Jackson


def decode(text: bytes | str) -> str:
    """Return the text of a definition; like in the broker, bytes that are not UTF-8 become U+FFFD."""
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")


def read(text: str) -> Any:
    """Return the JSON value in `text`.

    Raises:
        TrailingText: if text follows the value.
        InvalidAvro: if Jackson with Avro's settings rejects the text.
    """
    plain_text = blank_comments(text)
    start = len(plain_text) - len(plain_text.lstrip(_WHITESPACE))
    if start == len(plain_text):
        raise InvalidAvro("the definition is empty; expected an Avro schema in JSON")
    check_limits(plain_text)
    try:
        value, end = _DECODER.raw_decode(plain_text, start)
    except json.JSONDecodeError as problem:
        if plain_text.startswith("\ufeff"):
            raise InvalidAvro(
                "the definition starts with a byte order mark, which Avro's parser rejects",
                fix="save the file as UTF-8 without byte order mark",
            ) from None
        raise InvalidAvro(
            f"the definition is not JSON: {problem.msg} at {_describe_position(plain_text, problem.pos)}, "
            f"found {_make_excerpt(plain_text[problem.pos :]) or 'the end of the text'}"
        ) from None
    # Java's String.trim removes every control character, but not a comment.
    rest = text[end:].lstrip(JAVA_WHITESPACE)
    if rest:
        position = len(text) - len(rest)
        raise TrailingText(
            f"{_make_excerpt(rest)} follows the schema at {_describe_position(text, position)}; expected the end of the definition",
            value=value,
            text=rest,
        )
    return value


def check_limits(text: str) -> None:
    """Check that `text` respects the limits on depth and on the length of keys and numbers.

    Raises:
        InvalidAvro: if it does not.
    """
    # A number that is too long includes at least one of these characters.
    probes = text[MAX_NUMBER_LENGTH - 1 :: MAX_NUMBER_LENGTH]
    brackets = text.count("{") + text.count("[")
    if len(text) <= MAX_KEY_LENGTH and brackets <= MAX_DEPTH and _NUMBER_CHARACTERS.isdisjoint(probes):
        return
    depth = 0
    for match in re.finditer(_STRING_BRACKET_OR_NUMBER, text):
        part = match[0]
        if part in "[{":
            depth += 1
        elif part in "]}":
            depth -= 1
        elif part[0] == '"':
            if len(part) > MAX_KEY_LENGTH and part[-1] == ":":
                place = _describe_position(text, match.start())
                raise InvalidAvro(f"a key at {place} is longer than {MAX_KEY_LENGTH:,} characters")
        elif len(part) > MAX_NUMBER_LENGTH:
            raise InvalidAvro(f"the number {part[:20]}... has more than {MAX_NUMBER_LENGTH:,} digits")
        if depth > MAX_DEPTH:
            place = _describe_position(text, match.start())
            raise InvalidAvro(
                f"the definition nests deeper than {MAX_DEPTH:,} levels at {place}",
                fix="give inner types separate names and refer to them by name",
            )


def depth_of(value: Any) -> int:
    """Return how deep objects and arrays nest in a JSON value."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _reject_constant(name: str) -> NoReturn:
    raise InvalidAvro(f"{name} is not JSON", fix=f'write "{name}" as text where a float or double default is meant')


_DECODER: Final = json.JSONDecoder(parse_constant=_reject_constant)


def _describe_position(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _make_excerpt(text: str) -> str:
    if not text:
        return ""
    start = text[:20].partition("\n")[0]
    return repr(start) + ("..." if len(text) > len(start) else "")


def describe_value(value: Any) -> str:
    """Return a parsed value as messages show it: short, on one line."""
    if value is None:
        return "missing or null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


# Writer, like Java's Schema.toString and Jackson


def schema_text(
    schema: Schema, *, pretty: bool = False, unfinished: Container[int] = (), one_definition: bool = False
) -> str:
    """Return `schema` as Java's `Schema.toString(pretty)` prints it: every named type in full once, then by name.

    Args:
        schema: the schema.
        pretty: whether to indent.
        unfinished: the identities of records whose fields are not set yet; Java can print them while it builds a schema.
        one_definition: whether to reject a name with two different types, like Avro 1.11.

    Raises:
        JavaException: SchemaParseException on such a name.
    """
    tree = run_recursion(lambda: _SchemaPrinter(unfinished, one_definition=one_definition).make_tree(schema, None))
    return json_text(tree, pretty=pretty)


def definition_text(schema: NamedSchema) -> str:
    """Return the definition of one named type, as `schema_text` prints it, with all other named types by name."""
    return json_text(_SingleTypePrinter((), one_definition=False).make_definition(schema, None))


def make_reference(schema: Schema) -> JsonValue:
    """Return the JSON value of the place of a schema, with all named types by name."""
    return _SingleTypePrinter((), one_definition=False).make_tree(schema, None)


class _SchemaPrinter:
    """The JSON values of one schema and its parts; `namespace` is the enclosing namespace."""

    def __init__(self, unfinished: Container[int], *, one_definition: bool) -> None:
        self._unfinished = unfinished
        self._one_definition = one_definition
        self._printed_types: dict[str, Schema] = {}

    def make_tree(self, schema: Schema, namespace: str | None) -> JsonValue:
        """Return the JSON value of `schema`."""
        match schema:
            case Record() | Enum() | Fixed():
                if self._is_printed(schema):
                    return _shorten_name(schema.full_name, namespace)
                return self.make_definition(schema, namespace)
            case Union():
                return [self.make_tree(branch, namespace) for branch in schema.branches]
            case Array():
                return {"type": "array", "items": self.make_tree(schema.items, namespace), **schema.properties}
            case Map():
                return {"type": "map", "values": self.make_tree(schema.values, namespace), **schema.properties}
            case _:
                return {"type": schema.type, **schema.properties} if schema.properties else schema.type

    def _is_printed(self, schema: NamedSchema) -> bool:
        printed = self._printed_types.get(schema.full_name)
        if printed is not None and self._one_definition and not equal(schema, printed):
            raise JavaException("SchemaParseException", f"Can't redefine: {schema.full_name}")
        return printed is not None

    def make_definition(self, schema: NamedSchema, namespace: str | None) -> dict[str, JsonValue]:
        """Return the JSON value of a named type in full."""
        self._printed_types[schema.full_name] = schema
        tree: dict[str, JsonValue] = {"type": schema.type, "name": schema.name}
        if schema.namespace != namespace:
            tree["namespace"] = schema.namespace or ""
        if schema.doc is not None:
            tree["doc"] = schema.doc
        if isinstance(schema, Record):
            if schema.is_error:
                tree["type"] = "error"
            if id(schema) in self._unfinished:  # properties and aliases also follow the fields
                return tree
            fields: list[JsonValue] = []
            for field in schema.fields:
                field_tree = {"name": field.name, "type": self.make_tree(field.schema, schema.namespace)}
                if field.doc is not None:
                    field_tree["doc"] = field.doc
                if field.default is not NO_DEFAULT:
                    field_tree["default"] = field.default
                if field.order != "ascending":
                    field_tree["order"] = field.order
                if field.aliases:
                    field_tree["aliases"] = list(field.aliases)
                fields.append(field_tree | dict(field.properties))
            tree["fields"] = fields
        elif isinstance(schema, Enum):
            tree["symbols"] = list(schema.symbols)
            if schema.default is not None:
                tree["default"] = schema.default
        else:
            tree["size"] = schema.size
        tree.update(schema.properties)
        if schema.aliases:
            tree["aliases"] = [_shorten_name(alias, schema.namespace) for alias in schema.aliases]
        return tree


class _SingleTypePrinter(_SchemaPrinter):
    """Prints one named type."""

    def _is_printed(self, schema: NamedSchema) -> bool:  # noqa: ARG002  all types inside of it are printed by name
        return True


def _shorten_name(full_name: str, enclosing_namespace: str | None) -> str:
    namespace, _, name = full_name.rpartition(".")
    return name if namespace and namespace == enclosing_namespace and name not in TYPE_NAMES else full_name


def json_text(value: JsonValue, *, pretty: bool = False) -> str:
    """Return `value` like Jackson writes it: compact like `JsonNode.toString`, or like its DefaultPrettyPrinter."""
    pieces: list[str] = []

    def write(value: JsonValue, depth: int) -> None:
        """Append the pieces of a value inside `depth` objects."""
        if isinstance(value, dict):
            gap, colon = ("\n" + "  " * (depth + 1), " : ") if pretty else ("", ":")
            opening = "{"
            for key, item in value.items():
                pieces.append(f"{opening}{gap}{quote_jackson(key)}{colon}")
                write(item, depth + 1)
                opening = ","
            pieces.append(f"{gap[:-2]}}}" if value else "{ }" if pretty else "{}")
        elif isinstance(value, list):
            gap = " " if pretty else ""
            opening = "["
            for item in value:
                pieces.append(opening + gap)
                write(item, depth)
                opening = ","
            pieces.append(f"{gap}]" if value else f"[{gap}]")
        elif isinstance(value, str):
            pieces.append(quote_jackson(value))
        elif isinstance(value, float):
            text = format_double(value)
            pieces.append(text if math.isfinite(value) else quote_jackson(text))
        elif isinstance(value, bool):
            pieces.append("true" if value else "false")
        else:
            pieces.append("null" if value is None else str(value))

    run_recursion(lambda: write(value, 0), pieces.clear)
    return "".join(pieces)


def format_double(value: float) -> str:
    """Return `value` like Java's `Double.toString` writes it: `1.0`, `1.0E7`, `NaN`, `-Infinity`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return shortest
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or 0}E{int(exponent) + len(others)}"


# Parsing Canonical Form and fingerprints of the Avro specification


def canonical_form(schema: Schema) -> str:
    """Return the Parsing Canonical Form: JSON with full names and without whitespace, each named type where it first occurs.

    It has only the attributes that the bytes of data depend on; equal forms do not mean equal compatibility.
    """
    return json_text(run_recursion(lambda: _make_canonical_tree(schema, set())))


def _make_canonical_tree(schema: Schema, written_names: set[str]) -> JsonValue:
    if isinstance(schema, Named):
        if schema.full_name in written_names:
            return schema.full_name
        written_names.add(schema.full_name)
    trees = [_make_canonical_tree(child, written_names) for child in children(schema)]
    match schema:
        case Union():
            return trees
        case Array():
            return {"type": "array", "items": trees[0]}
        case Map():
            return {"type": "map", "values": trees[0]}
        case Record():
            names = (field.name for field in schema.fields)
            fields = [{"name": name, "type": tree} for name, tree in zip(names, trees, strict=True)]
            return {"name": schema.full_name, "type": "record", "fields": fields}
        case Enum():
            return {"name": schema.full_name, "type": "enum", "symbols": list(schema.symbols)}
        case Fixed():
            return {"name": schema.full_name, "type": "fixed", "size": schema.size}
    return schema.type


def schema_fingerprints(form: str) -> tuple[str, str]:
    """Return CRC-64-AVRO and SHA-256 of a canonical form's UTF-8 bytes, in hexadecimal."""
    data = form.encode()
    return f"{crc64(data):016x}", hashlib.sha256(data).hexdigest()


def crc64(data: bytes) -> int:
    """Return CRC-64-AVRO of `data`, the "Rabin" fingerprint of the specification, as an unsigned number."""
    crc = _CRC64_EMPTY
    for byte in data:
        crc = (crc >> 8) ^ _CRC64_TABLE[(crc ^ byte) & 0xFF]
    return crc


def _shift_byte(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (_CRC64_EMPTY if crc & 1 else 0)
    return crc


_CRC64_TABLE: Final = tuple(map(_shift_byte, range(256)))
