"""Pulsar's primitive types in the wire form of its Java client (org.apache.pulsar.client.impl.schema).

Everything is big-endian. Spark holds microseconds, so finer digits of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME are cut off,
and of a DATE, which Pulsar sends in milliseconds, the time of day.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .arrow_types import TIME, TIMESTAMP, TIMESTAMP_NTZ, Options, to_numbers
from .byte_batch import ByteBatch, Mask, split_evenly
from .definition import Definition, InvalidDefinition, Unreadable, Unwritable
from .payload_reader import PayloadReader, PayloadWriter
from .values import MAX_MILLIS, decode_text, get_python_converter, get_storage_converter

_DAY_MILLIS: Final = 86_400_000
_DAY_NANOS: Final = 86_400_000_000_000
_DAYS: Final = (-(2**31), 2**31 - 1)
_MAX_SECONDS: Final = (2**63 - 1) // 1_000_000 - 1

Numbers = Any
"""Integers, or numpy arrays of them: the rules below hold for both."""

_Limits = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Wire:
    """The wire form of one type.

    Attributes:
        format: its numbers as `struct` has them.
        type: of the column.
        read: from the numbers to the storage form.
        write: from the storage form to the numbers.
        limits: of the first number, and of the second if there is one; None: any.
        exact: other sizes are errors; otherwise bytes that follow are ignored, as Java does for the two long types.
    """

    format: str
    type: pa.DataType
    read: Callable[..., Numbers] = lambda number: number
    write: Callable[[Any], tuple[Any, ...]] = lambda value: (value,)
    limits: tuple[_Limits | None, ...] = (None,)
    exact: bool = True


_MILLIS: Final[_Limits] = (-MAX_MILLIS, MAX_MILLIS)
_NANO_OF_DAY: Final[_Limits] = (0, _DAY_NANOS - 1)
_DATE_MILLIS: Final[_Limits] = (_DAYS[0] * _DAY_MILLIS, (_DAYS[1] + 1) * _DAY_MILLIS - 1)

_WIRES: Final = {
    "BOOLEAN": _Wire(">b", pa.bool_(), lambda byte: byte != 0, lambda value: (value * 1,)),
    "INT8": _Wire(">b", pa.int8()),
    "INT16": _Wire(">h", pa.int16()),
    "INT32": _Wire(">i", pa.int32()),
    "INT64": _Wire(">q", pa.int64()),
    "FLOAT": _Wire(">f", pa.float32()),
    "DOUBLE": _Wire(">d", pa.float64()),
    "DATE": _Wire(">q", pa.date32(), lambda ms: ms // _DAY_MILLIS, lambda day: (day * _DAY_MILLIS,), (_DATE_MILLIS,)),
    "TIME": _Wire(">q", pa.int64(), lambda ms: ms * 1000, lambda micros: (micros // 1000,), (_MILLIS,)),
    "TIMESTAMP": _Wire(">q", TIMESTAMP, lambda ms: ms * 1000, lambda micros: (micros // 1000,), (_MILLIS,)),
    "INSTANT": _Wire(
        ">qi",
        TIMESTAMP,
        lambda seconds, nanos: seconds * 1_000_000 + nanos // 1000,
        lambda micros: (micros // 1_000_000, micros % 1_000_000 * 1000),
        ((-_MAX_SECONDS, _MAX_SECONDS), None),
        exact=False,
    ),
    "LOCAL_DATE": _Wire(">q", pa.date32(), limits=(_DAYS,)),
    "LOCAL_TIME": _Wire(
        ">q", pa.int64(), lambda nanos: nanos // 1000, lambda micros: (micros * 1000,), (_NANO_OF_DAY,)
    ),
    "LOCAL_DATE_TIME": _Wire(
        ">qq",
        TIMESTAMP_NTZ,
        lambda day, nanos: day * 86_400_000_000 + nanos // 1000,
        lambda micros: (micros // 86_400_000_000, micros % 86_400_000_000 * 1000),
        ((-_MAX_SECONDS // 86_400, _MAX_SECONDS // 86_400), _NANO_OF_DAY),
        exact=False,
    ),
}

_TIMES: Final = {
    "TIME": _Wire(">q", TIME, lambda ms: ms % _DAY_MILLIS * 1_000_000, lambda nanos: (nanos // 1_000_000,)),
    "LOCAL_TIME": _Wire(">q", TIME, lambda nanos: nanos // 1000 * 1000, limits=(_NANO_OF_DAY,)),
}
"""With `Options.time_type`."""

TYPES: Final = frozenset({*_WIRES, "STRING", "BYTES", "NONE"})
"""The schema types whose payloads are read here."""


def _wire(name: str, options: Options) -> _Wire:
    return _TIMES[name] if options.time_type and name in _TIMES else _WIRES[name]


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the type of the column, and that the values are no records."""
    match definition.type:
        case "STRING":
            return pa.string(), False
        case "BYTES" | "NONE":
            return pa.binary(), False
    return _wire(definition.type, options).type, False


def make_reader(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Read numbers by their type, and text by the writer's charset."""
    match reader.type:
        case "STRING":
            return _reading_text(writer, options)
        case "BYTES" | "NONE":
            return _BYTES_READING
    return _reading_numbers(reader.type, options)


def make_writer(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written. What could not be read back is an error."""
    match writer.type:
        case "STRING":
            return _writing_text(writer)
        case "BYTES" | "NONE":
            from .values import check_bytes

            return PayloadWriter(pa.binary(), check_bytes, _bytes_lanes)
    return _writing_numbers(writer.type, options)


def _beyond(numbers: tuple[Any, ...], wire: _Wire) -> list[Any]:
    """Return those that are out of their limits."""
    pairs = zip(numbers, wire.limits, strict=True)
    return [number for number, limits in pairs if limits and not limits[0] <= number <= limits[1]]


def _reading_numbers(name: str, options: Options) -> PayloadReader:
    wire = _wire(name, options)
    packed, exact = struct.Struct(wire.format), wire.exact or options.strict
    convert = get_python_converter(wire.type)

    def storage(payload: bytes) -> Any:
        if len(payload) < packed.size or (exact and len(payload) > packed.size):
            raise Unreadable(f"{name} takes {packed.size} bytes, found {len(payload)}")
        numbers = packed.unpack_from(payload)
        for number in _beyond(numbers, wire):
            raise Unreadable(f"{number} is out of the range of {name}")
        return wire.read(*numbers)

    def value(payload: bytes) -> Any:
        return storage(payload) if convert is None else convert(storage(payload))

    return PayloadReader(wire.type, value, storage, _lanes(wire, exact=exact))


def _writing_numbers(name: str, options: Options) -> PayloadWriter:
    wire = _wire(name, options)
    packed = struct.Struct(wire.format)
    convert = get_storage_converter(wire.type)
    kind: type | tuple[type, ...] = bool if wire.type == pa.bool_() else (int, float)
    if pa.types.is_integer(wire.type):
        kind = int

    def write(value: Any) -> bytes:
        stored = value if convert is None else convert(value)
        if not isinstance(stored, kind) or (isinstance(stored, bool) and kind is not bool):
            raise Unwritable(f"expected a value of {name}, found {value!r}")
        numbers = wire.write(stored)
        try:
            payload = packed.pack(*numbers)
        except (struct.error, OverflowError):
            raise Unwritable(f"{value!r} is out of the range of {name}") from None
        if _beyond(numbers, wire):
            raise Unwritable(f"{value!r} is out of the range of {name}")
        return payload

    return PayloadWriter(wire.type, write, _writing_lanes(wire))


def _lanes(wire: _Wire, *, exact: bool) -> Callable[[pa.BinaryArray], tuple[pa.Array, Mask]]:
    size = struct.calcsize(wire.format)

    def read(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        batch = ByteBatch(payloads)
        length = batch.end - batch.start
        bad = length != size if exact else length < size
        numbers = []
        at = batch.start
        for code, limits in zip(wire.format[1:], wire.limits, strict=True):
            number = batch.view_as(f">{'i1' if code == 'b' else code}")[at]
            if number.dtype.kind == "i":
                number = number.astype(np.int64)
            if limits is not None:
                bad |= (number < limits[0]) | (number > limits[1])
                number = np.where(bad, 0, number)
            numbers.append(number)
            at = np.minimum(at + struct.calcsize(f">{code}"), batch.limit)
        values = wire.read(*numbers)
        return _column(values, wire.type), bad

    return read


def _writing_lanes(wire: _Wire) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    fields = [(f"n{at}", f">{'i1' if code == 'b' else code}") for at, code in enumerate(wire.format[1:])]

    def write(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        bad: Mask = np.asarray(values.is_null())
        absent = False if wire.type == pa.bool_() else 0
        plain = to_numbers(values).fill_null(absent).to_numpy(zero_copy_only=False)
        if plain.dtype.kind == "i":
            plain = plain.astype(np.int64)
        if wire.limits != (None,):
            # Beyond that, the products of the rules above may not fit 64 bits.
            bad = bad | (plain > MAX_MILLIS) | (plain < -MAX_MILLIS)
            plain = np.where(bad, 0, plain)
        packed = np.zeros(len(values), fields)
        for (name, _), limits, number in zip(fields, wire.limits, wire.write(plain), strict=True):
            if limits is not None:
                bad = bad | (number < limits[0]) | (number > limits[1])
            packed[name] = number
        return split_evenly(packed.view(np.uint8), struct.calcsize(wire.format)), bad

    return write


def _bytes_lanes(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
    return values.cast(pa.binary()), np.asarray(values.is_null())


_BYTES_READING: Final = PayloadReader(
    pa.binary(), bytes, bytes, lambda payloads: (payloads, np.zeros(len(payloads), bool))
)


def _column(values: Any, arrow_type: pa.DataType) -> pa.Array:
    if arrow_type == pa.bool_():
        return pa.array(values)
    width = np.dtype(f"{'f' if pa.types.is_floating(arrow_type) else 'i'}{arrow_type.bit_width // 8}")
    buffer = pa.py_buffer(np.ascontiguousarray(values.astype(width)))
    return pa.Array.from_buffers(arrow_type, len(values), [None, buffer])


_NO_CHARSETS: Final = frozenset({"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Encodings of Python's that Java has under no name."""

_WIDE: Final = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
"""Java takes these for big-endian unless a byte order mark says otherwise; Python follows the machine."""


def _charset(writer: Definition) -> str:
    """Return Python's name of a STRING's charset."""
    name = writer.properties.get("__charset", "UTF-8")
    try:
        found = codecs.lookup(name).name
        # Python has codecs that are not of text, too.
        "".encode(found)
    except (LookupError, ValueError):
        found = "undefined"
    if found in _NO_CHARSETS:
        raise InvalidDefinition(f"__charset is {name!r}, which is no charset that Python and Java both know")
    return found


def _reading_text(writer: Definition, options: Options) -> PayloadReader:
    """Raise InvalidDefinition where Python does not know the charset."""
    charset = _charset(writer)

    def read(payload: bytes) -> str:
        codec = charset
        if charset in _WIDE and not payload.startswith(_WIDE[charset]):
            codec = f"{charset}-be"
        try:
            return payload.decode(codec)
        except UnicodeDecodeError as error:
            if options.strict:
                raise Unreadable(f"text that is not {charset}", error.start) from None
            return decode_text(payload) if codec == "utf-8" else payload.decode(codec, "replace")

    def read_column(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        try:
            return payloads.cast(pa.string()), np.zeros(len(payloads), bool)
        except pa.ArrowInvalid:
            return pa.nulls(len(payloads), pa.string()), np.ones(len(payloads), bool)

    return PayloadReader(pa.string(), read, read, read_column if charset == "utf-8" else None)


def _writing_text(writer: Definition) -> PayloadWriter:
    """Raise InvalidDefinition where Python does not know the charset."""
    charset = _charset(writer)

    def write(value: Any) -> bytes:
        if not isinstance(value, str):
            raise Unwritable(f"expected text, found {value!r}")
        try:
            # Of the two, Java writes a mark only before UTF-16, and none before nothing.
            mark = codecs.BOM_UTF16_BE if charset == "utf-16" and value else b""
            return mark + value.encode(f"{charset}-be" if charset in _WIDE else charset)
        except UnicodeEncodeError as error:
            raise Unwritable(f"{value[error.start]!r} is not a character of {charset}") from None

    return PayloadWriter(pa.string(), write, _bytes_lanes if charset == "utf-8" else None)
