"""The leaves of `lane_reader`: numbers, text and bytes of many messages at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import TIME, Leaf
from .lanes import Ints, Lanes
from .schema import Decimal, Fixed, Primitive, Schema
from .values import DAY_MICROS, MAX_MILLIS

_NUMPY: Final = {
    pa.int32(): np.int32,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


@dataclass(frozen=True, slots=True)
class Node:
    """One part of the writer's schema.

    Attributes:
        read: from positions (`at[i]` belongs to row `rows[i]`) to what was seen there and the positions behind.
        finish: from what `read` has seen to the array of it, one element a position. It may mark more rows as bad.
    """

    read: Callable[[Lanes, Ints, Ints], tuple[Any, Ints]]
    finish: Callable[[Lanes, Any], pa.Array]


def leaf(writer: Schema, shape: Leaf, *, strict: bool) -> Node:
    """The node for a primitive or fixed that `writer` wrote and that becomes `shape`."""
    schema = shape.schema
    assert isinstance(schema, Primitive | Fixed)  # noqa: S101  enums have an action of their own
    size = writer.size if isinstance(writer, Fixed) else None
    if isinstance(schema.logical, Decimal):
        return _decimals(schema.logical, size)
    if size is not None:
        return binary(size)
    if writer.type in ("string", "bytes"):
        return text(strict=strict) if schema.type == "string" else binary()
    if writer.type in ("float", "double"):
        return _floating(writer.type, shape.type)
    if writer.type == "boolean":
        return _booleans()
    if writer.type == "null":
        return constant(pa.nulls(1))
    return _integers(writer.type, schema, shape.type)


def constant(value: pa.Array) -> Node:
    """Takes no bytes and gives the one element of `value` for every lane."""

    def read(_: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        return len(rows), at

    def finish(_: Lanes, seen: Any) -> pa.Array:
        return value.take(pa.array(np.zeros(seen, np.int32)))

    return Node(read, finish)


def binary(size: int | None = None) -> Node:
    """bytes, or a fixed of `size`."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        start, stop = lanes.spans(at, rows) if size is None else (at, lanes.moved(at, size))
        return (start, stop), stop

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        return lanes.binary(*seen)

    return Node(read, finish)


def text(*, strict: bool) -> Node:
    """string: what is not UTF-8 is replaced, and its row marked if `strict`."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        start, stop = lanes.spans(at, rows)
        return (start, stop, rows), stop

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        start, stop, rows = seen
        raw = lanes.binary(start, stop)
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array(list(replaced(lanes, raw, rows)), pa.string())

    def replaced(lanes: Lanes, raw: pa.Array, rows: Ints) -> Iterator[str]:
        for row, value in zip(rows, raw.to_pylist(), strict=True):
            try:
                yield value.decode()
            except UnicodeDecodeError:
                lanes.bad[row] |= strict
                yield value.decode(errors="replace")

    return Node(read, finish)


def _booleans() -> Node:
    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Any, Ints]:
        return lanes.data[at] == 1, lanes.moved(at, 1)

    def finish(_: Lanes, seen: Any) -> pa.Array:
        return pa.array(seen, pa.bool_())

    return Node(read, finish)


def _floating(writer: str, arrow_type: pa.DataType) -> Node:
    view, size = ("<f4", 4) if writer == "float" else ("<f8", 8)

    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Any, Ints]:
        return lanes.view(view)[at], lanes.moved(at, size)

    def finish(_: Lanes, seen: Any) -> pa.Array:
        return _fixed_width(seen.astype(_NUMPY[arrow_type], copy=False), arrow_type)

    return Node(read, finish)


def _integers(writer: str, schema: Primitive | Fixed, arrow_type: pa.DataType) -> Node:
    """An int or long as written, into whole numbers, times, or (rounded once, as Java's cast) floating numbers."""
    max_bytes = 5 if writer == "int" else 10
    limits: tuple[int, int] | None = None
    factor = 1
    if schema.logical in ("timestamp-millis", "local-timestamp-millis"):
        limits, factor = (-MAX_MILLIS, MAX_MILLIS), 1000
    elif arrow_type == TIME:
        limits, factor = (0, DAY_MICROS - 1), 1000
    # Two steps from a long to an int64 column and beyond: floats of a reader's union branch widen after they are rounded.
    through = np.float32 if schema.type == "float" else np.float64 if schema.type == "double" else np.int64
    width: Any = _NUMPY.get(arrow_type, np.int64)

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        values, after = lanes.numbers(at, rows, max_bytes=max_bytes)
        if limits is not None:
            wrong = (values < limits[0]) | (values > limits[1])
            if wrong.any():
                lanes.bad[rows[wrong]] = True
                values = np.where(wrong, 0, values)
        return values, after

    def finish(_: Lanes, seen: Any) -> pa.Array:
        scaled = seen * factor if factor != 1 else seen
        return _fixed_width(scaled.astype(through, copy=False).astype(width, copy=False), arrow_type)

    return Node(read, finish)


def _decimals(logical: Decimal, size: int | None) -> Node:
    """Two's complement, big-endian, of any length, as 128 bits; longer than 16 bytes is left to the scalar path."""
    arrow_type = pa.decimal128(logical.precision, logical.scale)
    bound = 10**logical.precision

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        start, stop = lanes.spans(at, rows) if size is None else (at, lanes.moved(at, size))
        length = stop - start
        extended = _sign_extended(lanes, start, stop)
        low = _word(lanes, stop - 8, 8 - np.clip(length, 1, 8))
        high = np.where(length > 8, _word(lanes, stop - 16, np.clip(16 - length, 0, 7)), low >> 63)
        wrong = (length == 0) | ~extended | ~_within(high, low.view(np.uint64), bound)
        if wrong.any():
            lanes.bad[rows[wrong]] = True
        return np.stack((low, high), axis=1), stop

    def finish(_: Lanes, seen: Any) -> pa.Array:
        return pa.Array.from_buffers(arrow_type, len(seen), [None, pa.py_buffer(np.ascontiguousarray(seen))])

    return Node(read, finish)


def _word(lanes: Lanes, at: Ints, foreign: Ints) -> Ints:
    """The big-endian word at each position, without its first `foreign` bytes, sign extended."""
    word: Ints = lanes.view(">u8")[np.maximum(at, 0)].astype(np.uint64).view(np.int64)
    shift = foreign * 8
    return (word << shift) >> shift


def _sign_extended(lanes: Lanes, start: Ints, stop: Ints) -> npt.NDArray[np.bool_]:
    """Where the bytes in front of the last sixteen only repeat the sign."""
    good = np.ones(len(start), bool)
    for row in np.flatnonzero(stop - start > 16):
        front = lanes.data[start[row] : stop[row] - 16]
        good[row] = (front == (0xFF if lanes.data[stop[row] - 16] >= 0x80 else 0)).all()
    return good


def _within(high: Ints, low: npt.NDArray[np.uint64], bound: int) -> npt.NDArray[np.bool_]:
    """Where the 128-bit number lies strictly between minus the bound and the bound."""
    most_high, most_low = _halves(bound)
    least_high, least_low = _halves(-bound)
    below = (high < most_high) | ((high == most_high) & (low < most_low))
    above = (high > least_high) | ((high == least_high) & (low > least_low))
    inside: npt.NDArray[np.bool_] = below & above
    return inside


def _halves(number: int) -> tuple[np.int64, np.uint64]:
    return np.int64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)


def _fixed_width(values: npt.NDArray[Any], arrow_type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
