"""Decode and encode JSON payloads (see `message.PayloadModule`): the plain objects of Pulsar's Java client, described by an Avro schema.

This is not Avro's own JSON encoding: the value of a union has no wrapper, bytes are base64, null fields are omitted, and unknown fields are
ignored. Times are integers in the unit of their logical type, or have the forms of Java (see `json_forms`); `Options.json_times` is the form in
which they are written. Values of the classes that `java-class` names have Java's forms, which no other form replaces. Decimals are numbers or text with
at most the digits of the schema.

As in Pulsar's consumers, defaults are not applied: an absent field is null, and an error if the schema has no default for it and does not allow
null. With `Options.json_defaults` a field gets its default if it is absent, or null where the schema does not allow null.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

import numpy as np
import pyarrow as pa

from . import json_forms
from .arrow_types import (
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Choice,
    Group,
    JsonTimes,
    Leaf,
    Options,
    Repeated,
    Shape,
    make_shape,
)
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
from .payload_batches import PayloadDecoder, PayloadEncoder
from .values import EXACT, LIMITS, TO_PYTHON, ShapeWriter, check_list, get_scale, to_unscaled

Convert = Callable[[Any], Any]

_LIKE_A_NUMBER: Final = re.compile(r"[0-9eE+/]+")
"""Text that may be a number of another form, such as a fraction of Go's big.Rat (`25/2`), although it is valid base64."""

_MAX_FLOAT: Final = 3.4028235677973366e38
"""The smallest number that rounds to infinity as a float."""


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the type of the column, and whether values are records."""
    shape = make_shape(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def make_decoder(writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:  # noqa: ARG001  see the docstring
    """Make the decoder of values of the reader's schema, which does not need the writer's schema, as in Pulsar's consumers."""
    shape = make_shape(parse(reader_schema.text), options)
    read_value = _compile_reader(shape, options, as_python=True)
    return PayloadDecoder(shape.type, read_value, _compile_reader(shape, options, as_python=False))


def make_encoder(schema: Definition, options: Options) -> PayloadEncoder:
    """Make the encoder of values of a definition."""
    shape = make_shape(parse(schema.text), options)
    write = JsonWriter(options.json_times).make_writer(shape)
    return PayloadEncoder(shape.type, lambda value: write(value).encode())


# Reader


def _compile_reader(shape: Shape, options: Options, *, as_python: bool) -> Callable[[bytes], Any]:
    """Compile the function that reads payloads into the storage form of `shape`, or into Python's own types.

    It raises Unreadable.

    Raises:
        InvalidDefinition: a default is applied and is not valid.
    """

    def reject_constant(name: str) -> Any:
        raise ValueError(f"{name} is not a JSON value")

    convert = _ReaderCompiler(options, as_python=as_python).compile(shape)
    decoder = json.JSONDecoder(parse_float=decimal.Decimal, parse_constant=reject_constant)

    def read(payload: bytes) -> Any:
        try:
            # As `json.loads` does, but with one decoder for all payloads.
            parsed = decoder.decode(payload.decode(json.detect_encoding(payload), "surrogatepass"))
        except UnicodeDecodeError as error:
            raise Unreadable("text that is not UTF-8", error.start) from None
        except json.JSONDecodeError as error:
            problem = error.msg if payload.strip() else "the payload is empty"
            raise Unreadable(f"no JSON: {problem}", len(error.doc[: error.pos].encode())) from None
        except (ValueError, RecursionError, ArithmeticError) as error:
            raise Unreadable(f"JSON that cannot be read: {error}") from None
        try:
            return convert(parsed)
        except RecursionError:
            raise Unreadable("the value is nested too deeply") from None

    return read


class _ReaderCompiler:
    """Compiles shapes to functions that convert parsed JSON."""

    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._records: dict[int, Convert] = {}

    def compile(self, shape: Shape) -> Convert:
        match shape:
            case Group():
                # Compiled once, because a recursive record has the same shape in many places.
                if id(shape) not in self._records:
                    self._records[id(shape)] = self._compile_record(shape)
                return self._records[id(shape)]
            case Repeated():
                convert_item = self.compile(shape.part)
                if isinstance(shape.schema, ArrayType):
                    return _compile_list(convert_item, shape.schema)
                return self._compile_map(convert_item)
            case Choice():
                return self._compile_union(shape)
            case Leaf():
                convert = _compile_leaf(shape)
                to_python = TO_PYTHON.get(shape.type) if self._as_python else None
                return convert if to_python is None else lambda value: to_python(convert(value))

    def _compile_record(self, shape: Group) -> Convert:
        parts = []
        for part in shape.schema.fields:
            if part.name in shape.fields:
                convert = self.compile(shape.fields[part.name])
                parts.append((part.name, convert, self._compile_absent(part, shape.fields[part.name], convert)))

        def convert_record(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unreadable(f"expected the object {shape.schema.full_name}, found {_describe_value(value)}")
            record: dict[str, Any] = {}
            name = ""
            try:
                for name, convert, convert_absent in parts:
                    field = value.get(name)
                    record[name] = convert(field) if field is not None else convert_absent(name in value)
            except Unreadable as error:
                error.prepend_path(name)
                raise
            return record

        return convert_record

    def _compile_absent(self, part: RecordField, shape: Shape, convert: Convert) -> Callable[[bool], Any]:
        """Compile the value of a field that is null (True) or absent (False), which raises Unreadable if that is an error."""
        nullable = any(branch.type == "null" for branch in getattr(part.schema, "branches", (part.schema,)))
        has_default = part.default is not NO_DEFAULT
        default = None
        applies_default = has_default and self._options.json_defaults
        if applies_default:
            default = read_default(part.schema, part.default, shape, self._options, as_python=self._as_python)

        def convert_absent(is_null: bool) -> Any:  # noqa: FBT001  the only argument
            if applies_default:
                # A copy, because callers may change the value.
                return None if is_null and nullable else deepcopy(default)
            if has_default or nullable:
                return None
            if is_null:
                return convert(None)
            raise Unreadable("is missing, and has no default")

        return convert_absent

    def _compile_map(self, convert_item: Convert) -> Convert:
        as_python = self._as_python

        def convert_map(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unreadable(f"expected an object, found {_describe_value(value)}")
            entries = {}
            key = ""
            try:
                for key, item in value.items():
                    entries[_replace_surrogates(key)] = convert_item(item)
            except Unreadable as error:
                error.prepend_path(f"[{key!r}]")
                raise
            return entries if as_python else list(entries.items())

        return convert_map

    def _compile_union(self, shape: Choice) -> Convert:
        nullable = any(branch.type == "null" for branch in shape.schema.branches)
        blank = dict.fromkeys(name for name in shape.members if name is not None)
        pairs = zip(shape.members, shape.branches, strict=True)
        branches = [
            (member, self.compile(part), _compile_likelihood(part), isinstance(part.schema, EnumType))
            for member, part in pairs
            if part is not None
        ]
        has_several = len(branches) > 1

        def convert_union(value: Any) -> Any:
            if value is None and nullable:
                return None
            problem = Unreadable(f"no branch of the union fits {_describe_value(value)}")
            candidates = branches
            if has_several:
                # Likely branches first, then branches without an enum's default, which takes any text; otherwise in the
                # order of the schema.
                candidates = sorted(branches, key=lambda branch: 0 if branch[2](value) else 1 + branch[3])
            for member, convert, *_ in candidates:
                try:
                    converted = convert(value)
                except Unreadable as error:
                    problem = problem if has_several else error
                    continue
                return converted if member is None else {**blank, member: converted}
            raise problem

        return convert_union


def _compile_list(convert_item: Convert, schema: ArrayType) -> Convert:
    items_schema = schema.items
    key_schemas = (
        [part.schema for part in items_schema.fields if part.name == "key"]
        if schema.java == json_forms.MAP and isinstance(items_schema, RecordType)
        else []
    )
    has_characters = schema.java == json_forms.CHARACTERS

    def convert_list(value: Any) -> Any:
        if key_schemas:
            value = json_forms.read_entries(value, key_schemas[0])
        elif has_characters:
            value = json_forms.read_characters(value)
        if not isinstance(value, list):
            raise Unreadable(f"expected a list, found {_describe_value(value)}")
        items: list[Any] = []
        try:
            for item in value:
                items.append(convert_item(item))  # noqa: PERF401  the length is the place of an error
        except Unreadable as error:
            error.prepend_path(f"[{len(items)}]")
            raise
        return items

    return convert_list


def _compile_likelihood(shape: Shape) -> Callable[[Any], bool]:
    """Compile a predicate that returns whether a value looks like a value of the branch. The branch may accept other values as well."""
    schema = shape.schema
    if isinstance(shape, Group):
        names = {part.name for part in shape.schema.fields}
        return lambda value: isinstance(value, dict) and value.keys() <= names
    if isinstance(schema, EnumType):
        symbols = frozenset(schema.symbols)
        return lambda value: isinstance(value, str) and value in symbols
    if isinstance(schema, PrimitiveType | FixedType) and isinstance(schema.logical, DecimalType):
        return lambda value: not isinstance(value, str)
    if schema.type == "map":
        # An object with the names of a record is that record, in whichever order the branches are.
        return lambda _: False
    if schema.type in ("bytes", "fixed"):
        # Some text is valid base64 by accident, so a union of bytes and string reads all text as string.
        return lambda _: False
    if schema.type in LIMITS:
        return lambda value: isinstance(value, int)
    if schema.type in ("float", "double"):
        # In a union with string, the texts NaN and Infinity are read as text, as in Java.
        return lambda value: isinstance(value, decimal.Decimal)
    return lambda _: True


def _compile_leaf(shape: Leaf) -> Convert:
    """Compile the function that reads a leaf into its storage form."""
    schema = shape.schema
    if isinstance(schema, EnumType):
        symbols = frozenset(schema.symbols)
        default = schema.default if schema.default in symbols else None

        def convert_enum(value: Any) -> Any:
            if isinstance(value, str) and value in symbols:
                return value
            if isinstance(value, str) and default is not None:
                return default
            raise Unreadable(f"{_describe_value(value)} is not a symbol of {schema.full_name}")

        return convert_enum

    if isinstance(schema.logical, DecimalType):
        return _compile_decimal(schema, schema.logical)
    if isinstance(schema, FixedType):
        size = schema.size

        def convert_fixed(value: Any) -> bytes:
            raw = _from_base64(value)
            if len(raw) != size:
                raise Unreadable(f"expected {size} bytes, found {len(raw)}")
            return raw

        return convert_fixed

    if schema.type in LIMITS:
        return _compile_integer(schema, shape)
    if schema.type == "string" and schema.java in json_forms.TEXT_CLASSES:
        return lambda value: _convert_text(json_forms.read_number_text(value))
    return _CONVERTERS[schema.type]


def _compile_decimal(schema: PrimitiveType | FixedType, logical: DecimalType) -> Convert:
    size = schema.size if isinstance(schema, FixedType) else None

    def read_number(value: Any) -> decimal.Decimal | None:
        # Python's decimals may have underscores between digits, Java's may not.
        has_underscore = isinstance(value, str) and "_" in value
        if has_underscore or isinstance(value, bool) or not isinstance(value, decimal.Decimal | int | str):
            return None
        try:
            return decimal.Decimal(value)
        except decimal.InvalidOperation:
            return None

    def read_unscaled_bytes(value: Any) -> decimal.Decimal | None:
        """Read the unscaled number in base64, the form of a decimal that a GenericRecord of Java has as bytes."""
        if isinstance(value, str) and _LIKE_A_NUMBER.fullmatch(value):
            return None
        try:
            raw = _from_base64(value)
        except Unreadable:
            return None
        if not raw or (size is not None and len(raw) != size):
            return None
        return decimal.Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-logical.scale, EXACT)

    def convert_decimal(value: Any) -> Any:
        number = read_number(value)
        if number is None:
            number = read_unscaled_bytes(value)
        if number is None:
            raise Unreadable(f"expected a decimal, found {_describe_value(value)}")
        try:
            unscaled = to_unscaled(number, logical)
        except Unwritable as error:
            raise Unreadable(error.message) from None
        return decimal.Decimal(unscaled).scaleb(-logical.scale, EXACT)

    return convert_decimal


def _compile_integer(schema: PrimitiveType, shape: Leaf) -> Convert:
    low, high, factor = get_scale(shape)
    units_per_second = json_forms.get_units_per_second(schema)
    if units_per_second:
        low, high = 0, 86_400 * units_per_second - 1
    storage_units = {TIMESTAMP: 10**6, TIMESTAMP_NTZ: 10**6, TIME: 10**9}.get(shape.type, units_per_second or 10**9)
    read_time = json_forms.make_time_reader(schema, storage_units)
    is_character = schema.java == json_forms.CHARACTER

    def convert_integer(value: Any) -> Any:
        if read_time is not None and not isinstance(value, int):
            storage_number = read_time(value)
            if storage_number is None:
                raise Unreadable(f"expected a whole number or a time, found {_describe_value(value)}")
            return storage_number
        number = json_forms.read_character(value) if is_character else value
        if isinstance(value, decimal.Decimal) and abs(value.adjusted()) < 30 and value == value.to_integral_value():
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int):
            raise Unreadable(f"expected a whole number, found {_describe_value(value)}")
        if not low <= number <= high:
            raise Unreadable(f"{_describe_value(value)} is out of the range of {schema.logical or schema.type}")
        return number * factor

    return convert_integer


def _compile_floating(limit: float) -> Convert:
    def convert_number(value: Any) -> Any:
        # Jackson writes NaN and infinities as text, because JSON has no numbers for them.
        if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, decimal.Decimal | int):
            raise Unreadable(f"expected a number, found {_describe_value(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) >= limit:
            raise Unreadable(f"{_describe_value(value)} is out of range")
        return struct.unpack("<f", struct.pack("<f", number))[0] if limit == _MAX_FLOAT else number

    return convert_number


def _check_null(value: Any) -> None:
    if value is not None:
        raise Unreadable(f"expected null, found {_describe_value(value)}")


def _check_boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Unreadable(f"expected true or false, found {_describe_value(value)}")
    return value


def _convert_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable(f"expected text, found {_describe_value(value)}")
    return _replace_surrogates(value)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON's escapes allow, by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Unreadable(f"expected base64 text, found {_describe_value(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable(f"expected base64 text, found {_describe_value(value)}") from None


def _describe_value(value: Any) -> str:
    """Return a value as JSON for an error message, cut to 60 characters."""
    text = str(value) if isinstance(value, decimal.Decimal) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


_CONVERTERS: Final[dict[str, Convert]] = {
    "null": _check_null,
    "boolean": _check_boolean,
    "float": _compile_floating(_MAX_FLOAT),
    "double": _compile_floating(math.inf),
    "string": _convert_text,
    "bytes": _from_base64,
}


# Writer

_quote: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


class JsonWriter(ShapeWriter[str]):
    """Writes JSON as Pulsar's Java client does: compact, with fields in the order of the schema, without null fields.

    A field that is absent and has a default is omitted like a null field.
    """

    null = "null"

    def __init__(self, json_times: JsonTimes = "number") -> None:
        """Create a writer that writes times in this form."""
        super().__init__()
        self._json_times = json_times

    def make_writer(self, shape: Shape) -> Callable[[Any], str]:
        """See ShapeWriter."""
        if isinstance(shape, Repeated) and isinstance(shape.schema, ArrayType):
            if shape.schema.java == json_forms.CHARACTERS:
                return lambda value: json_forms.write_characters(check_list(value))
            if shape.schema.java == json_forms.MAP and isinstance(shape.part, Group):
                fields = shape.part.fields
                if fields.keys() == {"key", "value"} and isinstance(fields["key"], Leaf):
                    return self._make_object_writer(fields["key"], fields["value"])
        return super().make_writer(shape)

    def _make_object_writer(self, key_shape: Leaf, value_shape: Shape) -> Callable[[Any], str]:
        """Make the function that writes records of key and value as an object, which is Java's form of a map."""
        write_key = _KeyWriter().make_writer(key_shape)
        write_value = self.make_writer(value_shape)

        def write_entry(entry: Any, entries: dict[str, str]) -> None:
            if not isinstance(entry, Mapping) or entry.keys() != {"key", "value"}:
                raise Unwritable(f"expected a key and a value, found {entry!r}")
            key = write_key(entry["key"])
            name = key if key.startswith('"') else f'"{key}"'
            if name in entries:
                raise Unwritable(f"the key {name} occurs twice")
            entries[name] = write_value(entry["value"])

        def write_object(value: Any) -> str:
            entries: dict[str, str] = {}
            items = check_list(value)
            try:
                for entry in items:
                    write_entry(entry, entries)
            except Unwritable as error:
                error.prepend_path(f"[{len(entries)}]")
                raise
            return "{" + ",".join(f"{name}:{piece}" for name, piece in entries.items()) + "}"

        return write_object

    def write_default(self, part: RecordField) -> str:  # noqa: ARG002  every default is omitted
        """See ShapeWriter."""
        return self.null

    def make_record_joiner(self, schema: RecordType) -> Callable[[list[str]], str]:
        """See ShapeWriter."""
        names = [_quote(part.name) for part in schema.fields]

        def write_record(pieces: list[str]) -> str:
            fields = zip(names, pieces, strict=True)
            return "{" + ",".join(f"{name}:{piece}" for name, piece in fields if piece != self.null) + "}"

        return write_record

    def write_items(self, pieces: list[str]) -> str:
        """See ShapeWriter."""
        return "[" + ",".join(pieces) + "]"

    def write_entries(self, pieces: list[tuple[str, str]]) -> str:
        """See ShapeWriter."""
        return "{" + ",".join(f"{_quote(key)}:{piece}" for key, piece in pieces) + "}"

    def write_branch(self, index: int, piece: str) -> str:  # noqa: ARG002  the value of a union has no wrapper
        """See ShapeWriter."""
        return piece

    def make_leaf_writer(self, shape: Leaf) -> Callable[[Any], str]:
        """See ShapeWriter."""
        logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
        if isinstance(logical, DecimalType):
            scale = logical.scale
            return lambda value: format(decimal.Decimal(value).scaleb(-scale, EXACT), "f")
        if isinstance(shape.schema, PrimitiveType):
            write_time = json_forms.make_time_writer(shape.schema) if self._json_times == "java" else None
            if write_time is not None:
                return write_time
            if shape.schema.java == json_forms.CHARACTER and shape.schema.type == "int":
                return json_forms.write_character
            units_per_second = json_forms.get_units_per_second(shape.schema)
            if units_per_second:
                end_of_day = 86_400 * units_per_second
                kind = logical or shape.schema.java

                def write_number(value: Any) -> str:
                    if not 0 <= value < end_of_day:
                        raise Unwritable(f"{value} is out of the range of {kind}: a day has 24 hours")
                    return str(value)

                return write_number
        return _WRITERS[shape.schema.type]


class _KeyWriter(JsonWriter):
    """Writes the keys of Java's maps."""

    def make_leaf_writer(self, shape: Leaf) -> Callable[[Any], str]:
        """See ShapeWriter."""
        write_key = json_forms.make_key_writer(shape.schema) if isinstance(shape.schema, PrimitiveType) else None
        return super().make_leaf_writer(shape) if write_key is None else lambda number: f'"{write_key(number)}"'


def _to_base64(value: Any) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _write_double(value: Any) -> str:
    if math.isfinite(value):
        return repr(value)
    # Jackson writes NaN and infinities as text, because JSON has no numbers for them.
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


_WRITERS: Final[dict[str, Callable[[Any], str]]] = {
    "null": lambda _: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": lambda value: str(np.float32(value)) if math.isfinite(value) else _write_double(value),
    "double": _write_double,
    "string": _quote,
    "enum": _quote,
    "bytes": _to_base64,
    "fixed": _to_base64,
}
