"""Read and write JSON payloads: the plain objects of Pulsar's Java client, described by an Avro schema.

Not Avro's own JSON encoding: a union's value stands bare, bytes are base64, fields that are null are left out, and what the
schema does not know is ignored. Defaults are not applied, as in Pulsar's own consumers: a field that is absent is null. It
makes a message unreadable only where the schema neither has a default for it nor allows null. With `Options.json_defaults` a
field that is absent, or null where the schema allows none, has its default. Times are whole numbers in
the unit of their logical type; decimals are numbers (or text) with no more digits than the schema has.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import json
import math
import struct
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .arrow_types import Choice, Group, Leaf, Options, Repeated, Shape, shape_of
from .avro_reader import read_default
from .avro_schema import (
    NO_DEFAULT,
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    PrimitiveType,
    RecordField,
    RecordType,
    parse,
)
from .definition import Definition, Unreadable, Unwritable
from .payload_reader import PayloadReader, PayloadWriter
from .values import EXACT, LIMITS, ShapeWriter, get_python_converter, scale_of, to_unscaled

Convert = Callable[[Any], Any]

_MAX_FLOAT: Final = 3.4028235677973366e38
"""What a float rounds to infinity from."""


def compile_reader(shape: Shape, options: Options, *, as_python: bool) -> Callable[[bytes], Any]:
    """Read a payload into the storage form of `shape`, or into Python's own types.

    The function raises Unreadable.

    Raises InvalidDefinition: a default is to be applied, and is none.
    """
    convert = _Reader(options, as_python=as_python).convert(shape)
    decoder = json.JSONDecoder(parse_float=decimal.Decimal, parse_constant=_constant)

    def read(payload: bytes) -> Any:
        try:
            # As `json.loads` does, which makes a decoder for each text.
            parsed = decoder.decode(payload.decode(json.detect_encoding(payload), "surrogatepass"))
        except UnicodeDecodeError as error:
            raise Unreadable("text that is not UTF-8", error.start) from None
        except json.JSONDecodeError as error:
            why = error.msg if payload.strip() else "the payload is empty"
            raise Unreadable(f"no JSON: {why}", len(error.doc[: error.pos].encode())) from None
        except (ValueError, RecursionError, ArithmeticError) as error:
            raise Unreadable(f"no JSON that can be followed: {error}") from None
        try:
            return convert(parsed)
        except RecursionError:
            raise Unreadable("the value is nested deeper than can be followed") from None

    return read


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


class _Reader:
    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._records: dict[int, Convert] = {}

    def convert(self, shape: Shape) -> Convert:
        match shape:
            case Group():
                # Each once: in a record that holds itself, one shape stands in many places.
                if id(shape) not in self._records:
                    self._records[id(shape)] = self._record(shape)
                return self._records[id(shape)]
            case Repeated():
                part = self.convert(shape.part)
                return _list(part) if isinstance(shape.schema, ArrayType) else self._map(part)
            case Choice():
                return self._union(shape)
            case Leaf():
                return self._leaf(shape)

    def _record(self, shape: Group) -> Convert:
        parts = []
        for part in shape.schema.fields:
            if part.name in shape.fields:
                convert = self.convert(shape.fields[part.name])
                parts.append((part.name, convert, self._absent(part, shape.fields[part.name], convert)))

        def record(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unreadable(f"expected the object {shape.schema.full_name}, found {_shown(value)}")
            found: dict[str, Any] = {}
            name = ""
            try:
                for name, convert, absent in parts:
                    held = value.get(name)
                    found[name] = convert(held) if held is not None else absent(name in value)
            except Unreadable as error:
                error.prepend_path(name)
                raise
            return found

        return record

    def _absent(self, part: RecordField, shape: Shape, convert: Convert) -> Callable[[bool], Any]:
        """Return what a field is that is null, or (False) absent, unless that is an error."""
        nullable = any(branch.type == "null" for branch in getattr(part.schema, "branches", (part.schema,)))
        has_default = part.default is not NO_DEFAULT
        default = None
        if applied := has_default and self._options.json_defaults:
            default = read_default(part.schema, part.default, shape, self._options, as_python=self._as_python)

        def absent(is_null: bool) -> Any:  # noqa: FBT001  the one thing that is asked
            if applied:
                # A copy, so that a caller who changes a value does not change the default of the next one.
                return None if is_null and nullable else deepcopy(default)
            if has_default or nullable:
                return None
            if is_null:
                return convert(None)
            raise Unreadable("is missing, and has no default")

        return absent

    def _map(self, part: Convert) -> Convert:
        as_python = self._as_python

        def entries(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unreadable(f"expected an object, found {_shown(value)}")
            found = {}
            key = ""
            try:
                for key, held in value.items():
                    found[_whole(key)] = part(held)
            except Unreadable as error:
                error.prepend_path(f"[{key!r}]")
                raise
            return found if as_python else list(found.items())

        return entries

    def _union(self, shape: Choice) -> Convert:
        nullable = any(branch.type == "null" for branch in shape.schema.branches)
        blank = dict.fromkeys(name for name in shape.members if name is not None)
        pairs = zip(shape.members, shape.branches, strict=True)
        branches = [(member, self.convert(part), _likely(part)) for member, part in pairs if part is not None]
        several = len(branches) > 1

        def choice(value: Any) -> Any:
            if value is None and nullable:
                return None
            problem = Unreadable(f"no branch of the union fits {_shown(value)}")
            # Sorted, those stay in their order of which the same is to be expected.
            order = sorted(branches, key=lambda branch: not branch[2](value)) if several else branches
            for member, convert, _ in order:
                try:
                    found = convert(value)
                except Unreadable as error:
                    problem = problem if several else error
                    continue
                return found if member is None else {**blank, member: found}
            raise problem

        return choice

    def _leaf(self, shape: Leaf) -> Convert:
        convert = _leaf(shape)
        pythonic = get_python_converter(shape.type) if self._as_python else None
        return convert if pythonic is None else lambda value: pythonic(convert(value))


def _list(part: Convert) -> Convert:
    def items(value: Any) -> Any:
        if not isinstance(value, list):
            raise Unreadable(f"expected a list, found {_shown(value)}")
        found: list[Any] = []
        try:
            for held in value:
                found.append(part(held))  # noqa: PERF401  the length is the place of an error
        except Unreadable as error:
            error.prepend_path(f"[{len(found)}]")
            raise
        return found

    return items


def _likely(shape: Shape) -> Callable[[Any], bool]:
    """Whether a value looks as the branch of a union is written, which may well be read from others, too."""
    schema = shape.schema
    if isinstance(shape, Group):
        names = {part.name for part in shape.schema.fields}
        return lambda value: isinstance(value, dict) and value.keys() <= names
    if isinstance(schema, EnumType):
        symbols = frozenset(schema.symbols)
        return lambda value: isinstance(value, str) and value in symbols
    if isinstance(schema, PrimitiveType | FixedType) and isinstance(schema.logical, DecimalType):
        return lambda value: not isinstance(value, str)
    if schema.type in ("bytes", "fixed"):
        # Base64 is text like any other: a union that also takes text takes all of it, not only what happens to be no base64.
        return lambda _: False
    if schema.type in LIMITS:
        return lambda value: isinstance(value, int)
    if schema.type in ("float", "double"):
        return lambda value: not isinstance(value, int)
    return lambda _: True


def _leaf(shape: Leaf) -> Convert:
    schema = shape.schema
    if isinstance(schema, EnumType):
        return _enum(schema)
    if isinstance(schema.logical, DecimalType):
        return _decimal(schema.logical)
    if isinstance(schema, FixedType):
        return lambda value: _sized(_from_base64(value), schema.size)
    if schema.type in LIMITS:
        return _integer(schema, shape)
    return _PLAIN_READERS[schema.type]


def _enum(schema: EnumType) -> Convert:
    symbols = frozenset(schema.symbols)
    default = schema.default if schema.default in symbols else None

    def symbol(value: Any) -> Any:
        if isinstance(value, str) and value in symbols:
            return value
        if isinstance(value, str) and default is not None:
            return default
        raise Unreadable(f"{_shown(value)} is no symbol of {schema.full_name}")

    return symbol


def _decimal(logical: DecimalType) -> Convert:
    def number(value: Any) -> Any:
        # Python's decimals may have their digits parted, which those of Java may not.
        parted = isinstance(value, str) and "_" in value
        if parted or isinstance(value, bool) or not isinstance(value, decimal.Decimal | int | str):
            raise Unreadable(f"expected a decimal, found {_shown(value)}")
        try:
            unscaled = to_unscaled(decimal.Decimal(value), logical)
        except decimal.InvalidOperation:
            raise Unreadable(f"expected a decimal, found {_shown(value)}") from None
        except Unwritable as error:
            raise Unreadable(error.message) from None
        return decimal.Decimal(unscaled).scaleb(-logical.scale, EXACT)

    return number


def _integer(schema: PrimitiveType, shape: Leaf) -> Convert:
    low, high, factor = scale_of(shape)

    def whole(value: Any) -> Any:
        number = value
        if isinstance(value, decimal.Decimal) and abs(value.adjusted()) < 30 and value == value.to_integral_value():
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int):
            raise Unreadable(f"expected a whole number, found {_shown(value)}")
        if not low <= number <= high:
            raise Unreadable(f"{_shown(value)} is out of the range of {schema.logical or schema.type}")
        return number * factor

    return whole


def _null(value: Any) -> None:
    if value is not None:
        raise Unreadable(f"expected null, found {_shown(value)}")


def _boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Unreadable(f"expected true or false, found {_shown(value)}")
    return value


def _floating(limit: float) -> Convert:
    def number(value: Any) -> Any:
        # Jackson writes what JSON has no number for as text.
        if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, decimal.Decimal | int):
            raise Unreadable(f"expected a number, found {_shown(value)}")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if abs(found) >= limit:
            raise Unreadable(f"{_shown(value)} is out of range")
        return struct.unpack("<f", struct.pack("<f", found))[0] if limit == _MAX_FLOAT else found

    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable(f"expected text, found {_shown(value)}")
    return _whole(value)


def _whole(text: str) -> str:
    """Return the text with U+FFFD for what JSON's escapes may say and no text may hold: half a character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Unreadable(f"expected base64 text, found {_shown(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable(f"expected base64 text, found {_shown(value)}") from None


def _sized(raw: bytes, size: int) -> bytes:
    if len(raw) != size:
        raise Unreadable(f"expected {size} bytes, found {len(raw)}")
    return raw


def _shown(value: Any) -> str:
    """Return a value in an error message: JSON, cut to 60 characters."""
    text = str(value) if isinstance(value, decimal.Decimal) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


_PLAIN_READERS: Final[dict[str, Convert]] = {
    "null": _null,
    "boolean": _boolean,
    "float": _floating(_MAX_FLOAT),
    "double": _floating(math.inf),
    "string": _text,
    "bytes": _from_base64,
}


# A writer of JSON payloads as Pulsar's Java client has them: compact, fields in schema order, null
# fields left out.


_quoted: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


class JsonWriter(ShapeWriter[str]):
    """A field that is absent and has a default is left out, as one that is null."""

    null = "null"

    def write_default(self, part: RecordField) -> str:  # noqa: ARG002  any default is left out
        """See ShapeWriter."""
        return self.null

    def make_record_writer(self, schema: RecordType) -> Callable[[list[str]], str]:
        """See ShapeWriter."""
        names = [_quoted(part.name) for part in schema.fields]

        def write_record(pieces: list[str]) -> str:
            given = (pair for pair in zip(names, pieces, strict=True) if pair[1] != self.null)
            return "{" + ",".join(f"{name}:{piece}" for name, piece in given) + "}"

        return write_record

    def write_items(self, pieces: list[str]) -> str:
        """See ShapeWriter."""
        return "[" + ",".join(pieces) + "]"

    def write_entries(self, pieces: list[tuple[str, str]]) -> str:
        """See ShapeWriter."""
        return "{" + ",".join(f"{_quoted(key)}:{piece}" for key, piece in pieces) + "}"

    def write_branch(self, index: int, piece: str) -> str:  # noqa: ARG002  a union's value stands bare
        """See ShapeWriter."""
        return piece

    def make_leaf_writer(self, shape: Leaf) -> Callable[[Any], str]:
        """See ShapeWriter."""
        logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
        if isinstance(logical, DecimalType):
            scale = logical.scale
            return lambda value: format(decimal.Decimal(value).scaleb(-scale, EXACT), "f")
        return _PLAIN_WRITERS[shape.schema.type]


def _to_base64(value: Any) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _double(value: Any) -> str:
    if math.isfinite(value):
        return repr(value)
    # Jackson writes what JSON has no number for as text.
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _float(value: Any) -> str:
    return str(np.float32(value)) if math.isfinite(value) else _double(value)


_PLAIN_WRITERS: Final[dict[str, Callable[[Any], str]]] = {
    "null": lambda _: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": _float,
    "double": _double,
    "string": _quoted,
    "enum": _quoted,
    "bytes": _to_base64,
    "fixed": _to_base64,
}


# The payload format (see `message.PayloadModule`)


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the definition, which is Avro's."""
    shape = shape_of(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def make_reader(writer: Definition, reader: Definition, options: Options) -> PayloadReader:  # noqa: ARG001  see above
    """Read by the reader's schema alone, as Pulsar's own consumers do."""
    shape = shape_of(parse(reader.text), options)
    value = compile_reader(shape, options, as_python=True)
    return PayloadReader(shape.type, value, compile_reader(shape, options, as_python=False))


def make_writer(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written."""
    shape = shape_of(parse(writer.text), options)
    write = JsonWriter().make_writer(shape)
    return PayloadWriter(shape.type, lambda value: write(value).encode())
