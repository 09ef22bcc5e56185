"""The JSON text of a schema: its parser and writer, which follow Java, and its canonical form and fingerprints.

The parser takes what Jackson takes: JSON with comments (`/* */` and `//`) before its end, where the last of two equal
keys counts, within Jackson's default limits (StreamReadConstraints).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Container, Iterator
from decimal import Decimal
from typing import Any, Final, NoReturn

from schemactl.core.errors import InvalidSchema
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PRIMITIVE_TYPES,
    Array,
    Deep,
    Enum,
    Field,
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
    gather,
    run,
)

# Parser, by the rules of Jackson.


MAX_DEPTH: Final = 250
"""Levels of brackets, as in declared files. Jackson reads 1,000; no real definition has so many."""
MAX_NUMBER_LENGTH: Final = 1_000
MAX_KEY_LENGTH: Final = 50_000

JAVA_SPACES: Final = "".join(map(chr, range(33)))
"""What Java's String.trim cuts off."""

_SHOWN: Final = 60
"""How many characters of a value a message shows."""

_WHITESPACE: Final = " \t\r\n"

# Patterns for what is rare, compiled at first use.
# What is never closed takes all that follows: were it looked for again behind its start, reading would be quadratic.
_STRING_OR_COMMENT: Final = r'(?s)"(?:[^"\\]++|\\.)*+"?|/\*(?:.*?\*/|.*+)|//[^\r\n]*+'
_LIMITED: Final = r'(?s)"(?:[^"\\]++|\\.)*+(?:"(?:[ \t\r\n]*+:)?)?|[\[\]{}]|[-+.0-9eE]++'
_IN_NUMBERS: Final = frozenset("-+.0123456789eE")


class InvalidAvro(InvalidSchema):
    """Avro's Java parser refuses a definition; `exception` is the simple name of what it throws."""

    def __init__(self, what: str, *, pointer: str = "", fix: str = "", exception: str = "SchemaParseException") -> None:
        super().__init__(what, pointer=pointer, fix=fix)
        self.exception = exception


class TrailingText(InvalidAvro):
    """A `text` follows the JSON `value`; Java's parser sees that only when it has made a schema of the value."""

    def __init__(self, what: str, *, fix: str, value: Any, text: str) -> None:
        super().__init__(what, fix=fix)
        self.value = value
        self.text = text


def decode(text: bytes | str) -> str:
    """Return the text of a definition; what is not UTF-8 becomes U+FFFD, as in the broker."""
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")


def without_comments(text: str) -> str:
    """Return `text` with every comment blanked out, so that all positions stay; one that is never closed is left."""
    if "/" not in text or ("//" not in text and "/*" not in text):
        return text
    return re.sub(_STRING_OR_COMMENT, _blank, text)


def read(text: str) -> Any:
    """Return the JSON value in `text`.

    Raises:
        TrailingText: something follows the value.
        InvalidAvro: it is not JSON that Jackson reads with Avro's settings.
    """
    plain = without_comments(text)
    start = len(plain) - len(plain.lstrip(_WHITESPACE))
    if start == len(plain):
        raise InvalidAvro("the definition is empty; expected an Avro schema in JSON")
    check_limits(plain)
    try:
        value, end = _DECODER.raw_decode(plain, start)
    except json.JSONDecodeError as problem:
        raise _not_json(plain, problem) from None
    # To Java's String.trim every control character is a space, and a comment is not.
    rest = text[end:].lstrip(JAVA_SPACES)
    if rest:
        position = len(text) - len(rest)
        raise TrailingText(
            f"{_excerpt(rest)} follows the schema at {_place(text, position)}; expected the end of the definition",
            fix="remove what stands after the schema; comments may stand before its end only",
            value=value,
            text=rest,
        )
    return value


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"' or (found[1] == "*" and (len(found) < 4 or not found.endswith("*/"))):
        return found
    return re.sub(r"[^\r\n]", " ", found)


def check_limits(text: str) -> None:
    """Raise InvalidAvro unless `text` keeps to the limits on depth and on the length of keys and numbers."""
    # A number that is too long has one of these characters.
    some = text[MAX_NUMBER_LENGTH - 1 :: MAX_NUMBER_LENGTH]
    brackets = text.count("{") + text.count("[")
    if len(text) <= MAX_KEY_LENGTH and brackets <= MAX_DEPTH and _IN_NUMBERS.isdisjoint(some):
        return
    depth = 0
    for match in re.finditer(_LIMITED, text):
        found = match[0]
        if found in "[{":
            depth += 1
        elif found in "]}":
            depth -= 1
        elif found[0] == '"':
            if len(found) > MAX_KEY_LENGTH and found[-1] == ":":
                raise InvalidAvro(
                    f"a key at {_place(text, match.start())} is longer than {MAX_KEY_LENGTH:,} characters"
                )
        elif len(found) > MAX_NUMBER_LENGTH:
            raise InvalidAvro(f"the number {found[:20]}... has more than {MAX_NUMBER_LENGTH:,} digits")
        if depth > MAX_DEPTH:
            raise InvalidAvro(
                f"the definition nests deeper than {MAX_DEPTH:,} levels at {_place(text, match.start())}",
                fix="give inner types names of their own and refer to them by name",
            )


def _constant(name: str) -> NoReturn:
    raise InvalidAvro(f"{name} is not JSON", fix=f'write "{name}" as text where a float or double default is meant')


_DECODER: Final = json.JSONDecoder(parse_constant=_constant)


def _not_json(text: str, problem: json.JSONDecodeError) -> InvalidAvro:
    if text.startswith("\ufeff"):
        return InvalidAvro(
            "the definition starts with a byte order mark, which Avro's parser refuses",
            fix="save the file as UTF-8 without byte order mark",
        )
    return InvalidAvro(
        f"the definition is not JSON: {problem.msg} at {_place(text, problem.pos)}, "
        f"found {_excerpt(text[problem.pos :]) or 'the end of the text'}"
    )


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def shown(value: Any) -> str:
    """Return a parsed value as messages show it: short, on one line."""
    if value is None:
        return "missing or null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= _SHOWN else written[:_SHOWN] + "..."


def _excerpt(text: str) -> str:
    if not text:
        return ""
    shown = text[:20].partition("\n")[0]
    return repr(shown) + ("..." if len(text) > len(shown) else "")


# Writer, as Java's Schema.toString and Jackson.


TYPE_NAMES: Final = PRIMITIVE_TYPES | {"record", "enum", "array", "map", "union", "fixed"}
"""A reference to a type that bears one of these names is written in full, even inside its own namespace."""


def schema_text(
    schema: Schema, *, pretty: bool = False, unfinished: Container[int] = (), one_definition: bool = False
) -> str:
    """Return `schema` as Java's `Schema.toString(pretty)` prints it: every named type in full once, then by name.

    `unfinished` holds the identities of records whose fields are not set yet, as Java may print while it builds a schema.
    `one_definition`: as in Avro 1.11, which does not print a name that stands for two types.

    Raises:
        JavaException: SchemaParseException, where such a name was met.
    """
    printer = _SchemaPrinter(unfinished, one_definition=one_definition)
    return json_text(run(printer.tree(schema, None)), pretty=pretty)


def json_text(value: JsonValue, *, pretty: bool = False) -> str:
    """Return `value` as Jackson writes it: compact like `JsonNode.toString`, or like its DefaultPrettyPrinter."""
    parts: list[str] = []
    pending: list[str | tuple[JsonValue, int]] = [(value, 0)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            parts.append(piece)
        elif isinstance(piece[0], dict | list):
            pending += reversed(list(_container(*piece, pretty=pretty)))
        else:
            parts.append(_scalar(piece[0]))
    return "".join(parts)


def java_double(value: float) -> str:
    """Return `value` as Java's `Double.toString` writes it: `1.0`, `1.0E7`, `NaN`, `-Infinity`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return shortest
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or 0}E{int(exponent) + len(others)}"


class _SchemaPrinter:
    """Schemas as JSON values; `namespace` is the one in force where they stand."""

    def __init__(self, unfinished: Container[int], *, one_definition: bool) -> None:
        self._unfinished = unfinished
        self._one_definition = one_definition
        self._known: dict[str, Schema] = {}

    def tree(self, schema: Schema, namespace: str | None) -> Deep[JsonValue]:
        """Return the JSON value of `schema`."""
        match schema:
            case Record() | Enum() | Fixed():
                if self._is_known(schema):
                    return _qualified(schema.full_name, namespace)
                return (yield self._definition(schema, namespace))
            case Union():
                return (yield gather(self.tree(branch, namespace) for branch in schema.branches))
            case Array():
                items = yield self.tree(schema.items, namespace)
                return {"type": "array", "items": items, **schema.properties}
            case Map():
                values = yield self.tree(schema.values, namespace)
                return {"type": "map", "values": values, **schema.properties}
            case _:
                return {"type": schema.type, **schema.properties} if schema.properties else schema.type

    def _is_known(self, schema: NamedSchema) -> bool:
        known = self._known.get(schema.full_name)
        if known is not None and self._one_definition and not equal(schema, known):
            raise JavaException("SchemaParseException", f"Can't redefine: {schema.full_name}")
        return known is not None

    def _definition(self, schema: NamedSchema, namespace: str | None) -> Deep[dict[str, JsonValue]]:
        self._known[schema.full_name] = schema
        tree: dict[str, JsonValue] = {"type": schema.type, "name": schema.name}
        if schema.namespace != namespace:
            tree["namespace"] = schema.namespace or ""
        if schema.doc is not None:
            tree["doc"] = schema.doc
        if isinstance(schema, Record):
            if schema.is_error:
                tree["type"] = "error"
            if id(schema) in self._unfinished:  # properties and aliases come after fields, too
                return tree
            types = yield gather(self.tree(field.schema, schema.namespace) for field in schema.fields)
            tree["fields"] = list(map(_field, schema.fields, types))
        elif isinstance(schema, Enum):
            tree["symbols"] = list(schema.symbols)
            if schema.default is not None:
                tree["default"] = schema.default
        else:
            tree["size"] = schema.size
        tree.update(schema.properties)
        if schema.aliases:
            tree["aliases"] = [_qualified(alias, schema.namespace) for alias in schema.aliases]
        return tree


def _field(field: Field, type_: JsonValue) -> dict[str, JsonValue]:
    tree: dict[str, JsonValue] = {"name": field.name, "type": type_}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.default is not NO_DEFAULT:
        tree["default"] = field.default
    if field.order != "ascending":
        tree["order"] = field.order
    if field.aliases:
        tree["aliases"] = list(field.aliases)
    return tree | dict(field.properties)


def _qualified(full_name: str, namespace: str | None) -> str:
    space, _, name = full_name.rpartition(".")
    return name if space and space == namespace and name not in TYPE_NAMES else full_name


def _container(
    value: dict[str, JsonValue] | list[JsonValue], depth: int, *, pretty: bool
) -> Iterator[str | tuple[JsonValue, int]]:
    """Yield the text of an object or array inside `depth` objects; what it holds comes as values with their depth."""
    if isinstance(value, dict):
        gap, colon = ("\n" + "  " * (depth + 1), " : ") if pretty else ("", ":")
        opening = "{"
        for key, item in value.items():
            yield f"{opening}{gap}{_quoted(key)}{colon}"
            yield item, depth + 1
            opening = ","
        yield f"{gap[:-2]}}}" if value else "{ }" if pretty else "{}"
        return
    gap = " " if pretty else ""
    opening = "["
    for item in value:
        yield opening + gap
        yield item, depth
        opening = ","
    yield f"{gap}]" if value else f"[{gap}]"


def _scalar(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case float():
            return java_double(value) if math.isfinite(value) else _quoted(java_double(value))
        case _:
            return str(value)


_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(character): f"\\{short}" for character, short in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)
}


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


# Parsing canonical form (see the Avro specification). It keeps only what the bytes of data depend on: equal forms do not mean
# equal compatibility.

_EMPTY: Final = 0xC15D213AA4D7A795
"""CRC-64-AVRO of no bytes; also its polynomial."""


def canonical_form(schema: Schema) -> str:
    """Return the schema as JSON with full names and without whitespace; a named type is written where it first occurs."""
    return json_text(run(_canonical(schema, set())))


def _canonical(schema: Schema, written: set[str]) -> Deep[JsonValue]:
    """Return the JSON value; `written` has the names of the types before it."""
    if isinstance(schema, Named):
        if schema.full_name in written:
            return schema.full_name
        written.add(schema.full_name)
    trees = yield gather(_canonical(child, written) for child in children(schema))
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


def _shifted(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (_EMPTY if crc & 1 else 0)
    return crc


_TABLE: Final = tuple(map(_shifted, range(256)))


def crc64(data: bytes) -> int:
    """Return CRC-64-AVRO of `data`, the "Rabin" fingerprint of the specification, as an unsigned number."""
    crc = _EMPTY
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def fingerprints(form: str) -> tuple[str, str]:
    """Return CRC-64-AVRO and SHA-256 of a canonical form's UTF-8 bytes, in hex."""
    data = form.encode()
    return f"{crc64(data):016x}", hashlib.sha256(data).hexdigest()
