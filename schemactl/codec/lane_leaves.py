"""The readers of `lane_reader` for numbers, text and bytes of many messages at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import resolver
from .columns import Leaf
from .lane_columns import Seen, numbers_dtype
from .lanes import Ints, Lanes, pairs
from .schema import DecimalType, FixedType, PrimitiveType
from .values import LIMITS, Scale, scale_of

Read = Callable[[Lanes, Ints, Ints], tuple[Seen, Ints]]
"""From positions (`at[i]` belongs to the row `rows[i]`) to what was seen there, and the positions behind."""


_MAX_LONG = 2**63 - 1


def leaf(writer: PrimitiveType | FixedType, shape: Leaf | None, *, strict: bool) -> Read:
    """Read a primitive or fixed that `writer` wrote and that becomes `shape`; None: it is skipped."""
    if shape is None:
        return _skipped(writer)
    schema = shape.schema
    assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have an action of their own
    size = writer.size if isinstance(writer, FixedType) else None
    if isinstance(schema.logical, DecimalType):
        return _decimals(schema.logical, size)
    if size is not None:
        return _fixed(size)
    if writer.type in ("string", "bytes"):
        return _strict_texts if strict and schema.type == "string" else _spans
    if writer.type in ("float", "double"):
        return _floating(writer.type, shape.type)
    if writer.type == "boolean":
        return _booleans
    if writer.type == "null":
        return lambda _lanes, at, _rows: (np.zeros(len(at), np.int8), at)
    return _integers(writer.type, shape)


def enums(action: resolver.EnumAdjust) -> Read:
    """Read an enum: the place among the reader's symbols of what was written."""
    known = {symbol: place for place, symbol in enumerate(action.reader.symbols)}
    places = np.array([-1 if symbol is None else known[symbol] for symbol in action.table], np.int64)
    all_known = bool((places >= 0).all())

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        index, after, wrong = lanes.indexes(at, rows, len(places))
        if not len(places):
            return np.zeros(len(at), np.int64), after
        seen = places[index if wrong is None else np.where(wrong, 0, index)]
        if not all_known:
            unknown = seen < 0
            lanes.mark(rows[unknown])
            seen[unknown] = 0
        return seen, after

    return read


def _spans(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
    start, stop = lanes.spans(at, rows)
    return pairs(start, stop), stop


def _strict_texts(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
    spans, stop = _spans(lanes, at, rows)
    raw = lanes.binary(spans)
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        lanes.mark(rows[[not _is_text(value) for value in raw.to_pylist()]])
    return spans, stop


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fixed(size: int) -> Read:
    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
        stop = at + size
        # What runs over is judged later, but must not be copied from beyond the batch.
        return pairs(np.minimum(at, lanes.limit), np.minimum(stop, lanes.limit)), stop

    return read


def _booleans(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
    return lanes.first(at) == 1, at + 1


def _floating(writer: str, arrow_type: pa.DataType) -> Read:
    view, size = ("<f4", 4) if writer == "float" else ("<f8", 8)
    dtype = numbers_dtype(arrow_type)

    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
        values = lanes.items(view, at)
        with np.errstate(invalid="ignore"):
            # A signalling NaN becomes a quiet one.
            return values.astype(dtype, copy=False), at + size

    return read


def _integers(writer: str, shape: Leaf) -> Read:
    """Read an int or long into whole numbers, times, or (rounded once, as Java's cast) floating numbers."""
    max_bytes = 5 if writer == "int" else 10
    kind = shape.schema.type
    low, high, factor = scale_of(shape) if kind in LIMITS else Scale(0, 0, 1)
    # Two steps from a long to an int64 column and beyond: floats of a reader's union branch widen after they are rounded.
    through = np.float32 if kind == "float" else np.float64 if kind == "double" else np.int64
    dtype = numbers_dtype(shape.type)

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        values, after = lanes.numbers(at, rows, max_bytes=max_bytes)
        if factor != 1:
            wrong = (values < low) | (values > high)
            if wrong.any():
                lanes.mark(rows[wrong])
                values = np.where(wrong, 0, values)
            values = values * factor
        return values.astype(through, copy=False).astype(dtype, copy=False), after

    return read


def _decimals(logical: DecimalType, size: int | None) -> Read:
    """Two's complement, big-endian, of any length, as 128 bits; longer than 16 bytes is left to the scalar path."""
    bound = 10**logical.precision

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        start, stop = lanes.spans(at, rows) if size is None else (at, at + size)
        length = stop - start
        # A shift by all 64 bits leaves nothing of what has no bytes.
        low = _word(lanes, stop - 8, np.maximum(8 - length, 0))
        high = low >> 63
        wrong = length == 0
        if len(length) and length.max() > 8:
            high = np.where(length > 8, _word(lanes, stop - 16, np.clip(16 - length, 0, 7)), high)
            wrong |= ~_sign_extended(lanes, start, stop) | ~_within(high, low.view(np.uint64), bound)
        elif bound <= _MAX_LONG:
            wrong |= (low >= bound) | (low <= -bound)
        if wrong.any():
            lanes.mark(rows[wrong])
        return pairs(low, high), stop

    return read


def _word(lanes: Lanes, at: Ints, foreign: Ints) -> Ints:
    """Return the big-endian word at each position, without its first `foreign` bytes, sign extended."""
    word: Ints = lanes.items(">u8", at).astype(np.uint64).view(np.int64)
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


_SIZES = {"boolean": 1, "float": 4, "double": 8}


def _skipped(schema: PrimitiveType | FixedType) -> Read:
    size = schema.size if isinstance(schema, FixedType) else _SIZES.get(schema.type)
    if schema.type == "null":
        return lambda _lanes, at, _rows: (None, at)
    if size is not None:
        return lambda _lanes, at, _rows: (None, at + size)
    if schema.type in ("string", "bytes"):
        return lambda lanes, at, rows: (None, lanes.spans(at, rows)[1])
    max_bytes = 5 if schema.type == "int" else 10
    return lambda lanes, at, rows: (None, lanes.numbers(at, rows, max_bytes=max_bytes)[1])
