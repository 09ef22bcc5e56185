"""Many messages at once: one position for each row, all moved forward by one numpy operation.

A lane is a position in the joined bytes of a batch. Positions may run past their row's end (a damaged message), even past
the last byte, where nothing but zeros is read; at the end of a batch a row is good if its lane stopped inside the row and
nothing was marked on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_FRONT: Final = 24
_BACK: Final = 64
"""Zero bytes around the batch, so that a gather of whole words near an edge stays inside."""

MAX_ARRAY_BYTES: Final = 2**31 - 1
"""Of a binary array: its offsets have 32 bits."""

MAX_EMPTY_ITEMS: Final = 10_000
"""Of one message: nothing in it bounds the number of items that take no bytes."""

FEW_EMPTY: Final = 16
"""Items that take no bytes are bounded by nothing: a block of more is left to the scalar path."""

_COUNTED: Final = 2**18
"""Columns that may have more bytes of a pool than this are counted."""

_ONE: Final = np.uint64(1)
_TOP_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
# Three steps that close the gaps left by the top bits: 7 bits in 8 to 14 in 16, to 28 in 32, to 56 in 64.
_GATHER: Final = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), _ONE),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)


class Lanes:
    """The bytes of a batch and what is known of its rows.

    Attributes:
        count: of the rows.
        rows: all of them; this very array stands for all, and is recognised by its identity.
        start, end: of each row, as positions in `data`.
        limit: behind every row's end: there and further on are zeros.
        bad: the rows that this path leaves to the scalar one: damaged, or too odd to be worth a lane.
        pool_start: the position of the pool, which lies in front of the rows. Lanes over it have the row `count`.
    """

    def __init__(self, payloads: pa.BinaryArray, pool: bytes = b"") -> None:
        """Hold `payloads`, null ones as if they were empty, and the bytes of `pool`.

        Raises pa.ArrowCapacityError: together they are more than one array holds.
        """
        count = self.count = len(payloads)
        offsets = np.frombuffer(payloads.buffers()[1], np.int32)[payloads.offset : payloads.offset + count + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        self.pool_start = _FRONT
        front = _FRONT + len(pool) + _FRONT
        if front + last - first + _BACK > MAX_ARRAY_BYTES:
            raise pa.ArrowCapacityError("the batch is too large to be read at once")
        self.data = np.empty(front + last - first + _BACK, np.uint8)
        self.data[:front] = 0
        self.data[-_BACK:] = 0
        self.data[_FRONT : _FRONT + len(pool)] = np.frombuffer(pool, np.uint8)
        if last > first:
            self.data[front : front + last - first] = np.frombuffer(payloads.buffers()[2], np.uint8)[first:last]
        rows = offsets.astype(np.int64) - first + front
        self.start: Ints = rows[:-1]
        self.rows: Ints = np.arange(count)
        self._ends: Ints = np.append(rows[1:], _FRONT + len(pool))
        self.end: Ints = self._ends[:-1]
        self.limit = front + last - first + 16
        self._marks: Mask = np.zeros(count + 1, bool)
        self.bad: Mask = self._marks[:-1]
        self._words = self.view("<u8")
        self._even = pa.array([], pa.int32())
        self._pool_size = len(pool)
        self._copied = 0

    def view(self, dtype: str) -> Any:
        """Return the bytes as items of `dtype`, one starting at every byte."""
        item = np.dtype(dtype)
        return np.ndarray((len(self.data) - item.itemsize,), item, self.data, strides=(1,))

    def mark(self, rows: Any) -> None:
        """Leave `rows` to the scalar path."""
        self._marks[rows] = True

    def good(self, rows: Ints) -> Mask:
        """Which of the lanes belong to rows that are not marked."""
        return ~self._marks.take(rows)

    def ends(self, rows: Ints) -> Ints:
        """Return the end of the row of each lane."""
        return self.end if rows is self.rows else self._ends.take(rows)

    def first(self, at: Ints) -> Bytes:
        """Return the byte at each position."""
        return self.data.take(at, mode="clip")

    def items(self, dtype: str, at: Ints) -> Any:
        """Return the item of `dtype` that begins at each position."""
        return self.view(dtype)[np.minimum(at, self.limit)]

    def numbers(self, at: Ints, rows: Ints, *, max_bytes: int = 10) -> tuple[Ints, Ints]:
        """Return the zig-zag number at each position, and the positions behind; at most five bytes give an int of 32 bits."""
        first = self.first(at)
        goes_on = first >= 0x80
        many = np.count_nonzero(goes_on)
        if 2 * many > len(at):
            values, size = self._numbers(at, rows, max_bytes)
            return values, at + size
        # One byte each, as most lengths, counts and indexes are.
        small = first.view(np.int8)
        values, after = ((small >> 1) ^ -(small & 1)).astype(np.int64), at + 1
        if many:
            long = np.flatnonzero(goes_on)
            values[long], size = self._numbers(at.take(long), rows.take(long), max_bytes)
            after[long] += size - 1
        return values, after

    def _numbers(self, at: Ints, rows: Ints, max_bytes: int) -> tuple[Ints, Ints]:
        """Return the zig-zag number at each position, and its length."""
        bits, size = self._bits(at)
        if max_bytes == 5:
            bits &= np.uint64(0xFFFF_FFFF)
        over = size > max_bytes
        if over.any():
            self.mark(rows[over])
        values: Ints = (bits >> _ONE).view(np.int64)
        bits &= _ONE
        values ^= -bits.view(np.int64)
        return values, size

    def indexes(self, at: Ints, rows: Ints, length: int) -> tuple[Ints, Ints, Mask | None]:
        """Return the int at each position, the positions behind, and which are no index into `length` things (None: all are)."""
        values, after = self.numbers(at, rows, max_bytes=5)
        wrong = (values < 0) | (values >= length)
        if not wrong.any():
            return values, after, None
        self.mark(rows[wrong])
        return values, after, wrong

    def spans(self, at: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Start and end of the bytes that a length stands before."""
        length, start = self.numbers(at, rows)
        wrong = (length < 0) | (length > self.ends(rows) - start)
        if wrong.any():
            self.mark(rows[wrong])
            length = np.where(wrong, 0, length)
        return start, start + length

    def counts(self, at: Ints, rows: Ints, item_size: int) -> tuple[Ints, Ints, Ints | None]:
        """Return the number of items in the block at each position, the first one's position, and the blocks' sizes.

        A size is -1 where the block does not say it; None: no block does.
        """
        count, after = self.numbers(at, rows)
        sizes: Ints | None = None
        if len(count) and count.min() < 0:
            sized = np.flatnonzero(count < 0)
            sizes = np.full(len(at), -1, np.int64)
            sizes[sized], after[sized] = self.numbers(after[sized], rows[sized])
            self.mark(rows[sized[sizes[sized] < 0]])
            count = np.abs(count)
        room = self.ends(rows) - after
        wrong = count < 0
        if item_size:
            wrong |= count > room
        elif len(rows) and rows[0] != self.count:
            wrong |= count > FEW_EMPTY
        if item_size > 1:
            # Bounded first, so that the product is no more than 64 bits.
            wrong |= np.minimum(count, MAX_ARRAY_BYTES) * min(item_size, MAX_ARRAY_BYTES) > room
        if sizes is not None:
            wrong |= sizes > np.maximum(room, 0)
        if wrong.any():
            self.mark(rows[wrong])
            count = np.where(wrong, 0, count)
            sizes = None if sizes is None else np.where(wrong, -1, sizes)
        return count, after, sizes

    def binary(self, spans: Ints) -> pa.BinaryArray:
        """Return the bytes of each span: a start and a stop.

        Raises pa.ArrowCapacityError: of this batch more has been asked for than one array holds.
        """
        count = len(spans)
        if count == 0:
            return pa.array([], pa.binary())
        if self._pool_size * count > _COUNTED:
            # The bytes of a pool may be asked for many times.
            self._copied += int((spans[:, 1] - spans[:, 0]).sum())
            if self._copied > MAX_ARRAY_BYTES:
                raise pa.ArrowCapacityError("the batch is too large to be read at once")
        # One array over everything whose even elements are the spans and whose odd ones are the gaps between.
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1] = spans.reshape(-1)
        offsets[-1] = len(self.data)
        everything = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        if len(self._even) < count:
            self._even = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))
        return everything.take(self._even[:count])

    def _bits(self, at: Ints) -> tuple[Words, Ints]:
        """Return the bits of the variable-length number at each position, and its length in bytes (11: it does not end)."""
        at = np.minimum(at, self.limit)
        bits: Words = self._words[at]
        # In place, because what is touched costs more than what is done.
        below = ~bits
        below &= _TOP_BITS
        below &= -below
        below -= _ONE
        # Of a word without a stop bit all eight bytes belong to the number, and more follow.
        bytes_below = np.bitwise_count(below)
        size = ((bytes_below + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
        bits &= below
        bits &= _LOW_BITS
        for low, high, shift in _GATHER:
            upper = bits & high
            upper >>= shift
            bits &= low
            bits |= upper
        long = np.flatnonzero(bytes_below == 64)
        if len(long):
            ninth, tenth = self.data[at[long] + 8], self.data[at[long] + 9]
            bits[long] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            goes_on = ninth >= 0x80
            bits[long] |= np.where(goes_on, tenth & np.uint8(1), 0).astype(np.uint64) << np.uint64(63)
            size[long] = np.where(goes_on, np.where(tenth >= 0x80, 11, 10), 9)
        return bits, size


def taken(values: pa.Array, index: Ints) -> pa.Array:
    """Return the `values` at `index`. Raises pa.ArrowCapacityError: they are more than one array holds."""
    try:
        return values.take(pa.array(index))
    except pa.ArrowInvalid as error:
        raise pa.ArrowCapacityError(str(error)) from None


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the parts as one array. Raises pa.ArrowCapacityError: they are more than one array holds."""
    try:
        return parts[0] if len(parts) == 1 else pa.concat_arrays(list(parts))
    except pa.ArrowInvalid as error:
        raise pa.ArrowCapacityError(str(error)) from None


def replaced(values: pa.Array, parts: Sequence[tuple[Ints, pa.Array]]) -> pa.Array:
    """Return the values with each part's at its rows. Raises pa.ArrowCapacityError: there is more than one array holds."""
    if not parts:
        return values
    index = np.arange(len(values))
    total = len(values)
    for rows, _ in parts:
        index[rows] = total + np.arange(len(rows))
        total += len(rows)
    return taken(joined([values, *(part for _, part in parts)]), index)


def narrowed(values: pa.Array) -> pa.BinaryArray:
    """Return large binaries or strings as binary; nothing but offsets is copied. Arrow's cast refuses slices far into an array.

    Raises pa.ArrowCapacityError: they are more than one array holds.
    """
    if not len(values):
        return pa.array([], pa.binary())
    validity, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    if last - first > MAX_ARRAY_BYTES:
        raise pa.ArrowCapacityError(f"{last - first} bytes do not fit one array")
    if validity is not None:
        validity = pa.py_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    ends = pa.py_buffer((bounds - first).astype(np.int32))
    held = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
    return pa.Array.from_buffers(pa.binary(), len(values), [validity, ends, held])


def whole(two: Any) -> Any:
    """Return a view of two columns of 64 bits in which a row is one item, which numpy moves several times as fast."""
    return two.view("V16")[:, 0]


def pairs(first: Ints, second: Ints) -> Ints:
    """Return two columns: the start and stop of spans, or the low and high words of decimals."""
    both: Ints = np.empty((len(first), 2), np.int64)
    both[:, 0], both[:, 1] = first, second
    return both


def sized(data: Any, size: int) -> pa.BinaryArray:
    """Return the bytes of `data`, `size` to an element."""
    ends: Ints = np.arange(1, len(data) // size + 1, dtype=np.int64) * size
    return binary(ends, data)


def binary(ends: Ints, data: Any) -> pa.BinaryArray:
    """Return the bytes of `data`, in elements that end where `ends` says.

    Raises pa.ArrowCapacityError: there are more than one array holds (2 GiB).
    """
    if len(ends) and ends[-1] > MAX_ARRAY_BYTES:
        raise pa.ArrowCapacityError(f"{ends[-1]} bytes do not fit one array")
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)
