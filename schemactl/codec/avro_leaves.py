"""The readers of `avro_reader` for numbers, text and bytes of one message; each error has a reason."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .columns import TIME, Leaf
from .errors import Unreadable
from .lanes import FEW_EMPTY
from .resolver import EnumAdjust
from .schema import DecimalType
from .values import EXACT, scale_of

Read = Callable[[bytes, int], tuple[Any, int]]
"""From the payload and a position to the value and the position behind it; raises Unreadable."""

MAX_EMPTY_ITEMS: Final = 10_000
"""Of one message: nothing in it bounds the number of items that take no bytes."""

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def _varint(bits: int, max_bytes: int, too_long: str) -> Callable[[bytes, int], tuple[int, int]]:
    mask, last = (1 << bits) - 1, 7 * max_bytes

    def read_number(data: bytes, at: int) -> tuple[int, int]:
        start = at
        number = shift = 0
        try:
            while True:
                byte = data[at]
                at += 1
                number |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift == last:
                    raise Unreadable(too_long, start)
        except IndexError:
            raise Unreadable("the message ends inside a number", start) from None
        number &= mask
        return (number >> 1) ^ -(number & 1), at

    return read_number


read_long: Final = _varint(64, 10, "a number of more than ten bytes")
"""Reads a zig-zag number (BinaryDecoder.readLong)."""

read_int: Final = _varint(32, 5, "an int of more than five bytes")
"""Reads a zig-zag number; bits beyond 32 are dropped (BinaryDecoder.readInt)."""


def read_span(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of what a length stands before."""
    start = at
    length, at = read_long(data, at)
    if length < 0:
        raise Unreadable(f"a length of {length}", start)
    if length > len(data) - at:
        raise Unreadable(f"a length of {length} bytes, but {len(data) - at} are left", start)
    return at, at + length


def read_count(data: bytes, at: int, item_size: int) -> tuple[int, int]:
    """Read the number of items in a block; returns the position of the first one, too (BinaryDecoder.doReadItemCount)."""
    start = at
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        # Whose items are read has its size from them, whatever is said, as in Java.
        _, at = read_long(data, at)
    if count * item_size > len(data) - at:
        raise Unreadable(f"a block of {count} items, but {len(data) - at} bytes are left", start)
    if item_size == 0 and count > max_empty_items(data):
        raise Unreadable(
            f"a block of {count} items that take no bytes; {max_empty_items(data)} are read at most", start
        )
    return count, at


def max_empty_items(data: bytes) -> int:
    """Of one list: every list of a message takes two bytes at the least. A default's may be as long as it is."""
    return max(FEW_EMPTY, 2 * MAX_EMPTY_ITEMS // (len(data) + 1))


def read_index(data: bytes, at: int, length: int, what: str) -> tuple[int, int]:
    """Read an index below `length`; an error calls the things `what`."""
    index, after = read_int(data, at)
    if not 0 <= index < length:
        raise Unreadable(f"{what} {index} of {length}", at)
    return index, after


def symbols(action: EnumAdjust) -> Read:
    """Read an enum: the reader's symbol for what was written."""
    written, table = action.writer.symbols, action.table

    def read_symbol(data: bytes, at: int) -> tuple[Any, int]:
        index, after = read_index(data, at, len(table), "enum symbol")
        symbol = table[index]
        if symbol is None:
            raise Unreadable(f"the symbol {written[index]}, which the reader does not know", at)
        return symbol, after

    return read_symbol


def read_bytes(data: bytes, at: int) -> tuple[Any, int]:
    """Read bytes behind their length."""
    start, stop = read_span(data, at)
    return data[start:stop], stop


def fixed(size: int) -> Read:
    """So many bytes."""

    def read_fixed(data: bytes, at: int) -> tuple[Any, int]:
        stop = at + size
        if stop > len(data):
            raise Unreadable(f"{size} bytes, but {len(data) - at} are left", at)
        return data[at:stop], stop

    return read_fixed


def decimals(logical: DecimalType, size: int | None) -> Read:
    """Two's complement, big-endian: of bytes, or of a fixed of `size`."""
    read = read_bytes if size is None else fixed(size)
    bound, scale = 10**logical.precision, -logical.scale

    def read_decimal(data: bytes, at: int) -> tuple[Any, int]:
        raw, after = read(data, at)
        if not raw:
            raise Unreadable("a decimal of no bytes", at)
        unscaled = int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= bound:
            raise Unreadable(f"a decimal of more than {logical.precision} digits", at)
        return decimal.Decimal(unscaled).scaleb(scale, EXACT), after

    return read_decimal


def integers(writer: str, shape: Leaf) -> Read:
    """Read an int or long that stays one, in the unit of its column."""
    read = read_int if writer == "int" else read_long
    low, high, factor = scale_of(shape)
    if factor == 1:
        return read
    what = "are no time of day" if shape.type == TIME else "are more than 64 bits of microseconds"
    unit = "microseconds" if shape.type == TIME else "milliseconds"

    def read_scaled(data: bytes, at: int) -> tuple[Any, int]:
        number, after = read(data, at)
        if not low <= number <= high:
            raise Unreadable(f"{number} {unit} {what}", at)
        return number * factor, after

    return read_scaled


def numbers(writer: str, schema: str) -> Read:
    """null, boolean, and numbers that stay what they are or become floating."""
    if writer == "null":
        return lambda _, at: (None, at)
    if writer == "boolean":
        return _boolean
    if writer in ("int", "long"):
        read = read_int if writer == "int" else read_long
        if schema in ("int", "long"):
            return read
        # Rounded once, as Java's cast does; by way of a double a long could be rounded twice.
        width = np.float32 if schema == "float" else np.float64

        def read_rounded(data: bytes, at: int) -> tuple[Any, int]:
            value, after = read(data, at)
            return float(width(np.int64(value))), after

        return read_rounded
    packed = _FLOAT if writer == "float" else _DOUBLE

    def read_floating(data: bytes, at: int) -> tuple[Any, int]:
        try:
            return packed.unpack_from(data, at)[0], at + packed.size
        except struct.error:
            raise Unreadable(f"{packed.size} bytes, but {len(data) - at} are left", at) from None

    return read_floating


def _boolean(data: bytes, at: int) -> tuple[Any, int]:
    try:
        return data[at] == 1, at + 1
    except IndexError:
        raise Unreadable("the message ends before a boolean", at) from None
