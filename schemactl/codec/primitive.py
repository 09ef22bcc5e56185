"""Decode and encode payloads of Pulsar's primitive types (see `message.PayloadModule`), as org.apache.pulsar.client.impl.schema does.

All numbers are big-endian; with `Options.integers`, INT16, INT32 and INT64 are little-endian, as in Pulsar's Go client. Spark has
microseconds, so nanoseconds of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME are truncated, unless `Options.nanoseconds` makes their columns
numbers of nanoseconds. The time of day of a DATE, which Pulsar sends in milliseconds, is always truncated.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .arrow_types import TIME, TIMESTAMP, TIMESTAMP_NTZ, Options, to_numbers
from .byte_batch import ByteBatch, Mask, split_evenly
from .definition import Definition, InvalidDefinition, Unreadable, Unwritable
from .payload_batches import PayloadDecoder, PayloadEncoder
from .values import (
    DAY_MICROS,
    LIMITS,
    MAX_MILLIS,
    MAX_SECONDS,
    SECOND_MICROS,
    TO_PYTHON,
    TO_STORAGE,
    check_bytes,
    decode_text,
)

_DAY_MILLIS: Final = DAY_MICROS // 1000
_DAY_NANOS: Final = DAY_MICROS * 1000
_SECOND_NANOS: Final = 1_000_000_000
_DAYS: Final = LIMITS["int"]

Numbers = Any
"""Integers or numpy arrays of them: the conversions work for both."""

_Limits = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _WireFormat:
    """The wire format of a type.

    Attributes:
        format: the format of its numbers, for `struct`.
        type: the type of the column.
        read: converts the numbers to the storage form.
        write: converts the storage form to the numbers.
        limits: the minimum and maximum of each number, or None if it has no limits.
        exact: whether payloads of other sizes are errors. Otherwise further bytes are ignored, as in Java for the two longest types.
        nanos: the index of the number whose nanoseconds the column truncates, or None if it truncates none.
        is_in_range: tells whether the column has a value for the numbers, or None if their limits decide.
        time_type: for a column of nanoseconds, the type of the times that can be written in place of numbers; otherwise None.
    """

    format: str
    type: pa.DataType
    read: Callable[..., Numbers] = lambda number: number
    write: Callable[[Any], tuple[Any, ...]] = lambda value: (value,)
    limits: tuple[_Limits | None, ...] = (None,)
    exact: bool = True
    nanos: int | None = None
    is_in_range: Callable[..., Any] | None = None
    time_type: pa.DataType | None = None


_MILLIS: Final[_Limits] = (-MAX_MILLIS, MAX_MILLIS)
_NANO_OF_DAY: Final[_Limits] = (0, _DAY_NANOS - 1)
_DATE_MILLIS: Final[_Limits] = (_DAYS[0] * _DAY_MILLIS, (_DAYS[1] + 1) * _DAY_MILLIS - 1)
_WIRE_FORMATS: Final = {
    "BOOLEAN": _WireFormat(">b", pa.bool_(), lambda byte: byte != 0, lambda value: (value * 1,)),
    "INT8": _WireFormat(">b", pa.int8()),
    "INT16": _WireFormat(">h", pa.int16()),
    "INT32": _WireFormat(">i", pa.int32()),
    "INT64": _WireFormat(">q", pa.int64()),
    "FLOAT": _WireFormat(">f", pa.float32()),
    "DOUBLE": _WireFormat(">d", pa.float64()),
    "DATE": _WireFormat(
        ">q", pa.date32(), lambda ms: ms // _DAY_MILLIS, lambda day: (day * _DAY_MILLIS,), (_DATE_MILLIS,)
    ),
    "TIME": _WireFormat(">q", pa.int64(), lambda ms: ms * 1000, lambda micros: (micros // 1000,), (_MILLIS,)),
    "TIMESTAMP": _WireFormat(">q", TIMESTAMP, lambda ms: ms * 1000, lambda micros: (micros // 1000,), (_MILLIS,)),
    "INSTANT": _WireFormat(
        ">qi",
        TIMESTAMP,
        lambda seconds, nanos: seconds * SECOND_MICROS + nanos // 1000,
        lambda micros: (micros // SECOND_MICROS, micros % SECOND_MICROS * 1000),
        ((-MAX_SECONDS, MAX_SECONDS), None),
        exact=False,
        nanos=1,
    ),
    "LOCAL_DATE": _WireFormat(">q", pa.date32(), limits=(_DAYS,)),
    "LOCAL_TIME": _WireFormat(
        ">q", pa.int64(), lambda nanos: nanos // 1000, lambda micros: (micros * 1000,), (_NANO_OF_DAY,), nanos=0
    ),
    "LOCAL_DATE_TIME": _WireFormat(
        ">qq",
        TIMESTAMP_NTZ,
        lambda day, nanos: day * DAY_MICROS + nanos // 1000,
        lambda micros: (micros // DAY_MICROS, micros % DAY_MICROS * 1000),
        ((-MAX_SECONDS // 86_400, MAX_SECONDS // 86_400), _NANO_OF_DAY),
        exact=False,
        nanos=1,
    ),
}

_TIMES: Final = {
    "TIME": _WireFormat(">q", TIME, lambda ms: ms % _DAY_MILLIS * 1_000_000, lambda nanos: (nanos // 1_000_000,)),
    "LOCAL_TIME": _WireFormat(">q", TIME, lambda nanos: nanos // 1000 * 1000, limits=(_NANO_OF_DAY,), nanos=0),
}
"""The wire formats of types that become a time with `Options.time_type`."""


def _make_bigint_format(format: str, unit: int, nano_limits: _Limits | None, time_type: pa.DataType) -> _WireFormat:  # noqa: A002  as in _WireFormat
    """Return the wire format of units of `unit` nanoseconds and further nanoseconds, whose column is the number of all nanoseconds."""
    (first, first_nanos), (last, last_nanos) = divmod(-(2**63), unit), divmod(2**63 - 1, unit)

    def fits_bigint(count: Numbers, nanos: Numbers) -> Any:
        # Without products, which may overflow.
        count, nanos = count + nanos // unit, nanos % unit
        is_after_first = (count > first) | ((count == first) & (nanos >= first_nanos))
        return is_after_first & ((count < last) | ((count == last) & (nanos <= last_nanos)))

    return _WireFormat(
        format,
        pa.int64(),
        # Products that overflow are in range again with the nanoseconds, because `fits_bigint` is true.
        lambda count, nanos: count * unit + nanos,
        lambda nanos: (nanos // unit, nanos % unit),
        (None, nano_limits),
        exact=False,
        is_in_range=fits_bigint,
        time_type=time_type,
    )


_NANOSECONDS: Final = {
    "INSTANT": _make_bigint_format(">qi", _SECOND_NANOS, None, TIMESTAMP),
    "LOCAL_TIME": _WireFormat(">q", pa.int64(), limits=(_NANO_OF_DAY,), time_type=TIME),
    "LOCAL_DATE_TIME": _make_bigint_format(">qq", _DAY_NANOS, _NANO_OF_DAY, TIMESTAMP_NTZ),
}
"""The wire formats of types that become a number of nanoseconds with `Options.nanoseconds`."""

_LITTLE_ENDIAN: Final = {
    "INT16": _WireFormat("<h", pa.int16()),
    "INT32": _WireFormat("<i", pa.int32()),
    "INT64": _WireFormat("<q", pa.int64()),
}
"""The wire formats of the integers of Pulsar's Go client (pulsar/primitive_serde.go of pulsar-client-go)."""

TYPES: Final = frozenset({*_WIRE_FORMATS, "STRING", "BYTES", "NONE"})
"""The schema types of this module."""

_NO_CHARSETS: Final = frozenset({"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Encodings of Python that Java does not have."""

_BYTE_ORDER_MARKS: Final = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
"""The charsets that Java decodes as big-endian unless a byte order mark is present; Python would use the byte order of the machine."""


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the type of the column, and that values are not records."""
    match definition.type:
        case "STRING":
            return pa.string(), False
        case "BYTES" | "NONE":
            return pa.binary(), False
    return _get_wire_format(definition.type, options).type, False


def make_decoder(writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:
    """Make the decoder of payloads; text is decoded with the charset of the writer."""
    match reader_schema.type:
        case "STRING":
            return _make_text_decoder(writer_schema, options)
        case "BYTES" | "NONE":
            return _BYTES_DECODER
    return _make_number_decoder(reader_schema.type, options)


def make_encoder(schema: Definition, options: Options) -> PayloadEncoder:
    """Make the encoder of values; values that could not be decoded again are errors."""
    match schema.type:
        case "STRING":
            return _make_text_encoder(schema)
        case "BYTES" | "NONE":
            return PayloadEncoder(pa.binary(), check_bytes, _encode_bytes_column)
    return _make_number_encoder(schema.type, options)


# Numbers


def _get_wire_format(name: str, options: Options) -> _WireFormat:
    if options.integers == "little" and name in _LITTLE_ENDIAN:
        return _LITTLE_ENDIAN[name]
    if options.nanoseconds == "bigint" and name in _NANOSECONDS:
        return _NANOSECONDS[name]
    return _TIMES[name] if options.time_type and name in _TIMES else _WIRE_FORMATS[name]


def _make_number_decoder(name: str, options: Options) -> PayloadDecoder:
    wire = _get_wire_format(name, options)
    packed, exact = struct.Struct(wire.format), wire.exact or options.strict
    order, codes = wire.format[0], wire.format[1:]
    keeps_nanos = options.strict and not options.loses_nanoseconds
    convert = TO_PYTHON.get(wire.type)

    def read_storage(payload: bytes) -> Any:
        if len(payload) < packed.size or (exact and len(payload) > packed.size):
            raise Unreadable(f"{name} takes {packed.size} bytes, found {len(payload)}")
        numbers = packed.unpack_from(payload)
        for number in _find_out_of_range(numbers, wire):
            raise Unreadable(f"{number} is out of the range of {name}")
        if wire.is_in_range is not None and not wire.is_in_range(*numbers):
            raise Unreadable(
                f"{name} {', '.join(map(str, numbers))} lies outside of 1677-09-21 to 2262-04-11, the range of nanoseconds in a bigint"
            )
        if keeps_nanos and wire.nanos is not None and numbers[wire.nanos] % 1000:
            raise Unreadable(
                f"{numbers[wire.nanos]} nanoseconds lose three digits as microseconds: `generate: {{nanoseconds: bigint}}` keeps them"
            )
        return wire.read(*numbers)

    def read_value(payload: bytes) -> Any:
        return read_storage(payload) if convert is None else convert(read_storage(payload))

    def decode_column(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        batch = ByteBatch(payloads)
        length = batch.end - batch.start
        bad = length != packed.size if exact else length < packed.size
        numbers = []
        at = batch.start
        for code, limits in zip(codes, wire.limits, strict=True):
            number = batch.view_as(f"{order}{'i1' if code == 'b' else code}")[at]
            if number.dtype.kind == "i":
                number = number.astype(np.int64)
            if limits is not None:
                bad |= (number < limits[0]) | (number > limits[1])
                number = np.where(bad, 0, number)
            numbers.append(number)
            at = np.minimum(at + struct.calcsize(f">{code}"), batch.limit)
        if wire.is_in_range is not None:
            bad |= ~wire.is_in_range(*numbers)
        if keeps_nanos and wire.nanos is not None:
            bad |= numbers[wire.nanos] % 1000 != 0
        values = wire.read(*numbers)
        if wire.type == pa.bool_():
            return pa.array(values), bad
        dtype = f"{'f' if pa.types.is_floating(wire.type) else 'i'}{wire.type.bit_width // 8}"
        buffer = pa.py_buffer(np.ascontiguousarray(values.astype(dtype)))
        return pa.Array.from_buffers(wire.type, len(values), [None, buffer]), bad

    return PayloadDecoder(wire.type, read_value, read_storage, decode_column)


def _make_number_encoder(name: str, options: Options) -> PayloadEncoder:
    wire = _get_wire_format(name, options)
    packed = struct.Struct(wire.format)
    order, codes = wire.format[0], wire.format[1:]
    convert = TO_STORAGE.get(wire.type)
    # Nanoseconds may also be written as one of Python's times.
    convert_time = None if wire.time_type is None else TO_STORAGE[wire.time_type]
    nanos_per_unit = 1 if wire.time_type == TIME else 1000
    kind: type | tuple[type, ...] = bool if wire.type == pa.bool_() else (int, float)
    if pa.types.is_integer(wire.type):
        kind = int

    def write(value: Any) -> bytes:
        stored = value if convert is None else convert(value)
        if convert_time is not None and isinstance(value, datetime | time):
            stored = convert_time(value) * nanos_per_unit
        if not isinstance(stored, kind) or (isinstance(stored, bool) and kind is not bool):
            raise Unwritable(f"expected a value of {name}, found {value!r}")
        numbers = wire.write(stored)
        try:
            payload = packed.pack(*numbers)
        except (struct.error, OverflowError):
            raise Unwritable(f"{value!r} is out of the range of {name}") from None
        is_in_range = wire.is_in_range is None or wire.is_in_range(*numbers)
        if not is_in_range or _find_out_of_range(numbers, wire):
            raise Unwritable(f"{value!r} is out of the range of {name}")
        return payload

    fields = [(f"n{number}", f"{order}{'i1' if code == 'b' else code}") for number, code in enumerate(codes)]

    def encode_column(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        bad: Mask = np.asarray(values.is_null())
        zero = False if wire.type == pa.bool_() else 0
        plain = to_numbers(values).fill_null(zero).to_numpy(zero_copy_only=False)
        if plain.dtype.kind == "i":
            plain = plain.astype(np.int64)
        if wire.limits != (None,) and wire.time_type is None:
            # The products of larger numbers may not fit 64 bits; nanoseconds are only divided.
            bad = bad | (plain > MAX_MILLIS) | (plain < -MAX_MILLIS)
            plain = np.where(bad, 0, plain)
        rows = np.zeros(len(values), fields)
        for (field, _), limits, number in zip(fields, wire.limits, wire.write(plain), strict=True):
            if limits is not None:
                bad = bad | (number < limits[0]) | (number > limits[1])
            rows[field] = number
        return split_evenly(rows.view(np.uint8), packed.size), bad

    return PayloadEncoder(wire.type, write, encode_column)


def _find_out_of_range(numbers: tuple[Any, ...], wire: _WireFormat) -> list[Any]:
    """Return the numbers that are out of their limits."""
    pairs = zip(numbers, wire.limits, strict=True)
    return [number for number, limits in pairs if limits and not limits[0] <= number <= limits[1]]


# Text and bytes


def _make_text_decoder(writer_schema: Definition, options: Options) -> PayloadDecoder:
    charset = _get_charset(writer_schema)

    def read(payload: bytes) -> str:
        codec = charset
        if charset in _BYTE_ORDER_MARKS and not payload.startswith(_BYTE_ORDER_MARKS[charset]):
            codec = f"{charset}-be"
        try:
            return payload.decode(codec)
        except UnicodeDecodeError as error:
            if options.strict:
                raise Unreadable(f"text that is not {charset}", error.start) from None
            return decode_text(payload) if codec == "utf-8" else payload.decode(codec, "replace")

    def decode_column(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        try:
            return payloads.cast(pa.string()), np.zeros(len(payloads), bool)
        except pa.ArrowInvalid:
            return pa.nulls(len(payloads), pa.string()), np.ones(len(payloads), bool)

    return PayloadDecoder(pa.string(), read, read, decode_column if charset == "utf-8" else None)


def _make_text_encoder(schema: Definition) -> PayloadEncoder:
    charset = _get_charset(schema)

    def write(value: Any) -> bytes:
        if not isinstance(value, str):
            raise Unwritable(f"expected text, found {value!r}")
        try:
            # Java writes a mark only for UTF-16, and not for an empty text.
            mark = codecs.BOM_UTF16_BE if charset == "utf-16" and value else b""
            return mark + value.encode(f"{charset}-be" if charset in _BYTE_ORDER_MARKS else charset)
        except UnicodeEncodeError as error:
            raise Unwritable(f"{value[error.start]!r} is not a character of {charset}") from None

    return PayloadEncoder(pa.string(), write, _encode_bytes_column if charset == "utf-8" else None)


def _get_charset(schema: Definition) -> str:
    """Return Python's name of a STRING's charset.

    Raises:
        InvalidDefinition: Python or Java does not have the charset.
    """
    name = schema.properties.get("__charset", "UTF-8")
    try:
        charset = codecs.lookup(name).name
        # Raises LookupError for Python's codecs of bytes.
        "".encode(charset)
    except (LookupError, ValueError):
        charset = "undefined"
    if charset in _NO_CHARSETS:
        raise InvalidDefinition(f"__charset is {name!r}, which is not a charset that both Python and Java know")
    return charset


_BYTES_DECODER: Final = PayloadDecoder(
    pa.binary(), bytes, bytes, lambda payloads: (payloads, np.zeros(len(payloads), bool))
)


def _encode_bytes_column(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
    return values.cast(pa.binary()), np.asarray(values.is_null())
