"""Read numbers, lengths and bytes from many messages at once, and build the Arrow arrays that share their bytes.

A reader has one position for each row, and numpy moves all of them with one operation. In a damaged message a position may run past the end
of its row, and even past the last byte of the batch, where only zeros are read. A row is good if its position stopped inside the row and
no earlier step rejected the row.
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
"""Zero bytes in front of the batch and after it, so that reading whole words near an edge stays inside."""

MAX_ARRAY_BYTES: Final = 2**31 - 1
"""Maximum size of a binary array: its offsets have 32 bits."""

MAX_EMPTY_ITEMS: Final = 10_000
"""Maximum number of items without bytes in one message, whose length does not bound it."""

FEW_EMPTY: Final = 16
"""Maximum number of items without bytes in a block that is read here; larger blocks go to the scalar path."""

_UNCOUNTED_POOL_BYTES: Final = 2**18
"""A column that repeats at most this many bytes of the pool cannot overflow an array, so its bytes are not counted."""

_ONE: Final = np.uint64(1)
_TOP_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
# Three steps close the gaps of the top bits: 7 bits in 8 become 14 in 16, then 28 in 32, then 56 in 64.
_CLOSE_GAPS: Final = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), _ONE),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)


class ByteBatch:
    """The joined bytes of a batch, and the rows that need the scalar path.

    Methods that take `at` and `rows` read at each position `at[i]`, which belongs to the row `rows[i]`.

    Attributes:
        data: the bytes of the pool and of all rows, with zeros around them.
        count: the number of rows.
        rows: the numbers of all rows. Methods recognize this very array by its identity.
        start, end: the positions in `data` where each row starts and ends.
        limit: a position after the end of every row, from which on all bytes are zero.
        bad: whether each row needs the scalar path: it is damaged, or too unusual to be read in columns.
        pool_start: the position of the pool, which lies in front of the rows. Positions in it have the row `count`.
    """

    def __init__(self, payloads: pa.BinaryArray, pool: bytes = b"") -> None:
        """Copy `payloads`, null ones as if they were empty, and the bytes of `pool`.

        Raises:
            pa.ArrowCapacityError: together they are more than one array holds.
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
        self._words = self.view_as("<u8")
        self._even_numbers = pa.array([], pa.int32())
        self._pool_size = len(pool)
        self._copied_bytes = 0

    def view_as(self, dtype: str) -> Any:
        """View the bytes as items of `dtype`, one of which starts at every byte."""
        item = np.dtype(dtype)
        return np.ndarray((len(self.data) - item.itemsize,), item, self.data, strides=(1,))

    def mark(self, rows: Any) -> None:
        """Leave `rows` to the scalar path."""
        self._marks[rows] = True

    def mask_unmarked(self, rows: Ints) -> Mask:
        """Return whether each of `rows` is unmarked."""
        return ~self._marks.take(rows)

    def row_ends(self, rows: Ints) -> Ints:
        """Return the end of each of `rows`."""
        return self.end if rows is self.rows else self._ends.take(rows)

    def read_bytes(self, at: Ints) -> Bytes:
        """Read the byte at each position."""
        return self.data.take(at, mode="clip")

    def read_items(self, dtype: str, at: Ints) -> Any:
        """Read the item of `dtype` that starts at each position."""
        return self.view_as(dtype)[np.minimum(at, self.limit)]

    def read_numbers(self, at: Ints, rows: Ints, *, max_bytes: int = 10) -> tuple[Ints, Ints]:
        """Read the zig-zag number at each position, and return the numbers and the positions after them.

        With `max_bytes=5` a number has 32 bits. Rows with a longer number are marked.
        """
        first_bytes = self.read_bytes(at)
        is_long = first_bytes >= 0x80
        long_count = np.count_nonzero(is_long)
        if 2 * long_count > len(at):
            values, size = self._read_long_numbers(at, rows, max_bytes)
            return values, at + size
        # Most lengths, counts and indexes have one byte.
        small = first_bytes.view(np.int8)
        values, after = ((small >> 1) ^ -(small & 1)).astype(np.int64), at + 1
        if long_count:
            long = np.flatnonzero(is_long)
            values[long], size = self._read_long_numbers(at.take(long), rows.take(long), max_bytes)
            after[long] += size - 1
        return values, after

    def _read_long_numbers(self, at: Ints, rows: Ints, max_bytes: int) -> tuple[Ints, Ints]:
        """Read the zig-zag number at each position, and return the numbers and their lengths in bytes."""
        at = np.minimum(at, self.limit)
        bits: Words = self._words[at]
        # In place: memory costs more time than arithmetic.
        below = ~bits
        below &= _TOP_BITS
        below &= -below
        below -= _ONE
        # In a word without a stop bit all eight bytes belong to the number, and more follow.
        bytes_below = np.bitwise_count(below)
        size = ((bytes_below + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
        bits &= below
        bits &= _LOW_BITS
        for low, high, shift in _CLOSE_GAPS:
            upper = bits & high
            upper >>= shift
            bits &= low
            bits |= upper
        long = np.flatnonzero(bytes_below == 64)
        if len(long):
            ninth, tenth = self.data[at[long] + 8], self.data[at[long] + 9]
            bits[long] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            has_tenth = ninth >= 0x80
            bits[long] |= np.where(has_tenth, tenth & np.uint8(1), 0).astype(np.uint64) << np.uint64(63)
            # A number that does not end counts as one of eleven bytes.
            size[long] = np.where(has_tenth, np.where(tenth >= 0x80, 11, 10), 9)
        if max_bytes == 5:
            bits &= np.uint64(0xFFFF_FFFF)
        too_long = size > max_bytes
        if too_long.any():
            self.mark(rows[too_long])
        values: Ints = (bits >> _ONE).view(np.int64)
        bits &= _ONE
        values ^= -bits.view(np.int64)
        return values, size

    def read_indexes(self, at: Ints, rows: Ints, length: int) -> tuple[Ints, Ints, Mask | None]:
        """Read an int at each position that has to be an index below `length`.

        Returns the ints, the positions after them, and the mask of invalid indexes, or None if all are valid.
        """
        values, after = self.read_numbers(at, rows, max_bytes=5)
        wrong = (values < 0) | (values >= length)
        if not wrong.any():
            return values, after, None
        self.mark(rows[wrong])
        return values, after, wrong

    def read_spans(self, at: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Read the length at each position, and return where the bytes after it start and end."""
        length, start = self.read_numbers(at, rows)
        wrong = (length < 0) | (length > self.row_ends(rows) - start)
        if wrong.any():
            self.mark(rows[wrong])
            length = np.where(wrong, 0, length)
        return start, start + length

    def read_counts(self, at: Ints, rows: Ints, item_size: int) -> tuple[Ints, Ints, Ints | None]:
        """Read the header of the block of items at each position.

        Returns the numbers of items, the positions of the first items, and the sizes of the blocks in bytes: -1 where a block does not
        state its size, or None if no block does. An item takes at least `item_size` bytes.
        """
        count, after = self.read_numbers(at, rows)
        sizes: Ints | None = None
        if len(count) and count.min() < 0:
            with_size = np.flatnonzero(count < 0)
            sizes = np.full(len(at), -1, np.int64)
            sizes[with_size], after[with_size] = self.read_numbers(after[with_size], rows[with_size])
            self.mark(rows[with_size[sizes[with_size] < 0]])
            count = np.abs(count)
        room = self.row_ends(rows) - after
        wrong = count < 0
        if item_size:
            wrong |= count > room
        elif len(rows) and rows[0] != self.count:
            wrong |= count > FEW_EMPTY
        if item_size > 1:
            # Both are bounded, so that the product fits 64 bits.
            wrong |= np.minimum(count, MAX_ARRAY_BYTES) * min(item_size, MAX_ARRAY_BYTES) > room
        if sizes is not None:
            wrong |= sizes > np.maximum(room, 0)
        if wrong.any():
            self.mark(rows[wrong])
            count = np.where(wrong, 0, count)
            sizes = None if sizes is None else np.where(wrong, -1, sizes)
        return count, after, sizes

    def take_spans(self, spans: Ints) -> pa.BinaryArray:
        """Return the bytes of each span, which is a row of `spans`: a start and a stop.

        Raises:
            pa.ArrowCapacityError: the spans taken from this batch so far are more than one array holds.
        """
        count = len(spans)
        if count == 0:
            return pa.array([], pa.binary())
        if self._pool_size * count > _UNCOUNTED_POOL_BYTES:
            # Many spans may have the same bytes of the pool.
            self._copied_bytes += int((spans[:, 1] - spans[:, 0]).sum())
            if self._copied_bytes > MAX_ARRAY_BYTES:
                raise pa.ArrowCapacityError("the batch is too large to be read at once")
        # One array over all bytes: its even elements are the spans, its odd ones the gaps between them.
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1] = spans.reshape(-1)
        offsets[-1] = len(self.data)
        everything = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        if len(self._even_numbers) < count:
            self._even_numbers = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))
        return everything.take(self._even_numbers[:count])


def take_rows(values: pa.Array, index: Ints) -> pa.Array:
    """Return the `values` at `index`.

    Raises:
        pa.ArrowCapacityError: they are more than one array holds.
    """
    try:
        return values.take(pa.array(index))
    except pa.ArrowInvalid as error:
        raise pa.ArrowCapacityError(str(error)) from None


def concat_arrays(parts: Sequence[pa.Array]) -> pa.Array:
    """Join the parts into one array.

    Raises:
        pa.ArrowCapacityError: they are more than one array holds.
    """
    try:
        return parts[0] if len(parts) == 1 else pa.concat_arrays(list(parts))
    except pa.ArrowInvalid as error:
        raise pa.ArrowCapacityError(str(error)) from None


def replace_rows(values: pa.Array, parts: Sequence[tuple[Ints, pa.Array]]) -> pa.Array:
    """Return `values` with each part in place of the values at its rows.

    Raises:
        pa.ArrowCapacityError: the values are more than one array holds.
    """
    if not parts:
        return values
    index = np.arange(len(values))
    total = len(values)
    for rows, _ in parts:
        index[rows] = total + np.arange(len(rows))
        total += len(rows)
    return take_rows(concat_arrays([values, *(part for _, part in parts)]), index)


def to_binary_array(values: pa.Array) -> pa.BinaryArray:
    """Convert an array of large binaries or strings to a binary array, without a copy of the bytes.

    Arrow's own cast rejects slices far into an array.

    Raises:
        pa.ArrowCapacityError: the values are more than one array holds.
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
    content = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
    return pa.Array.from_buffers(pa.binary(), len(values), [validity, ends, content])


def view_as_pairs(columns: Any) -> Any:
    """View two columns of 64 bits as one column of 128 bits, which numpy moves several times as fast."""
    return columns.view("V16")[:, 0]


def make_pairs(first: Ints, second: Ints) -> Ints:
    """Return an array of two columns: the start and stop of spans, or the low and high words of decimals."""
    pairs: Ints = np.empty((len(first), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = first, second
    return pairs


def split_evenly(data: Any, size: int) -> pa.BinaryArray:
    """Return the bytes of `data` as elements of `size` bytes."""
    ends: Ints = np.arange(1, len(data) // size + 1, dtype=np.int64) * size
    return make_binary_array(ends, data)


def make_binary_array(ends: Ints, data: Any) -> pa.BinaryArray:
    """Return the bytes of `data` as elements that end at the positions `ends`.

    Raises:
        pa.ArrowCapacityError: the bytes are more than one array holds (2 GiB).
    """
    if len(ends) and ends[-1] > MAX_ARRAY_BYTES:
        raise pa.ArrowCapacityError(f"{ends[-1]} bytes do not fit one array")
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)
