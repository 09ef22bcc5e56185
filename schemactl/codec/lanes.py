"""Many messages at once: one lane a row, all lanes moved forward together by one numpy operation.

A lane is a position in the joined bytes of a batch. Positions may run past their row's end (a damaged message), never past
the padding; at the end of a batch a row is good if its lane stopped inside the row and nothing was marked on the way.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_FRONT: Final = 24
_BACK: Final = 64
"""Zero bytes around the batch, so that a gather of whole words near an edge stays inside."""

_MAX_BYTES: Final = 2**31 - 1
"""Of a binary array: its offsets have 32 bits."""

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
        start, end: of each row, as positions in `data`.
        limit: no lane goes further; it lies behind every row's end, so that a lane that ran over is seen.
        bad: the rows that this path leaves to the scalar one: damaged, or too odd to be worth a lane.
    """

    def __init__(self, payloads: pa.BinaryArray) -> None:
        """Holds `payloads`, which has no nulls."""
        count = len(payloads)
        offsets = np.frombuffer(payloads.buffers()[1], np.int32)[
            payloads.offset : payloads.offset + count + 1
        ]
        first, last = int(offsets[0]), int(offsets[-1])
        self.data = np.zeros(last - first + _FRONT + _BACK, np.uint8)
        if last > first:
            self.data[_FRONT : _FRONT + last - first] = np.frombuffer(payloads.buffers()[2], np.uint8)[
                first:last
            ]
        rows = offsets.astype(np.int64) - first + _FRONT
        self.start: Ints = rows[:-1]
        self.end: Ints = rows[1:]
        self.limit = last - first + _FRONT + 16
        self.bad: Mask = np.zeros(count, bool)
        self._words = self.view("<u8")

    def view(self, dtype: str) -> Any:
        """The bytes as items of `dtype`, one starting at every byte."""
        item = np.dtype(dtype)
        return np.ndarray((len(self.data) - item.itemsize,), item, self.data, strides=(1,))

    def moved(self, at: Ints, by: Any) -> Ints:
        """The positions `by` bytes on."""
        after: Ints = np.minimum(at + by, self.limit)
        return after

    def numbers(self, at: Ints, rows: Ints, *, max_bytes: int = 10) -> tuple[Ints, Ints]:
        """The zig-zag number at each position, and the positions behind; at most five bytes give an int of 32 bits."""
        bits, size = self._bits(at)
        if max_bytes == 5:
            bits &= np.uint64(0xFFFF_FFFF)
        if not np.isscalar(size):
            over = size > max_bytes
            if over.any():
                self.bad[rows[over]] = True
        values: Ints = (bits >> _ONE).view(np.int64) ^ -((bits & _ONE).view(np.int64))
        return values, self.moved(at, size)

    def indexes(self, at: Ints, rows: Ints, length: int) -> tuple[Ints, Ints, Mask | None]:
        """The int at each position, the positions behind, and which are no index into `length` things (None: all are)."""
        values, after = self.numbers(at, rows, max_bytes=5)
        wrong = (values < 0) | (values >= length)
        if not wrong.any():
            return values, after, None
        self.bad[rows[wrong]] = True
        return values, after, wrong

    def spans(self, at: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Start and end of the bytes that a length stands before."""
        length, start = self.numbers(at, rows)
        wrong = (length < 0) | (length > self.end[rows] - start)
        if wrong.any():
            self.bad[rows[wrong]] = True
            length = np.where(wrong, 0, length)
        return start, start + length

    def counts(self, at: Ints, rows: Ints, item_size: int) -> tuple[Ints, Ints, Ints]:
        """The number of items in the block at each position, the first one's position, and the block's size (or -1)."""
        count, after = self.numbers(at, rows)
        size = np.full(len(at), -1, np.int64)
        sized = np.flatnonzero(count < 0)
        if len(sized):
            size[sized], after[sized] = self.numbers(after[sized], rows[sized])
            count = np.abs(count)
            self.bad[rows[sized[size[sized] < 0]]] = True
        room = self.end[rows] - after
        # Items that take no bytes are bounded by nothing: more than a few are left to the scalar path.
        wrong = (
            (count < 0) | (count > (room // item_size if item_size else 1000)) | (size > np.maximum(room, 0))
        )
        if wrong.any():
            self.bad[rows[wrong]] = True
            count = np.where(wrong, 0, count)
            size = np.where(wrong, -1, size)
        return count, after, size

    def binary(self, start: Ints, stop: Ints) -> pa.BinaryArray:
        """The bytes between each start and stop."""
        count = len(start)
        if count == 0:
            return pa.array([], pa.binary())
        # One array over everything whose even elements are the spans and whose odd ones are the gaps between.
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2] = start
        offsets[1::2] = stop
        everything = pa.Array.from_buffers(
            pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        return everything.take(pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32)))

    def _bits(self, at: Ints) -> tuple[Words, Any]:
        """The bits of the variable-length number at each position, and its length in bytes (11: it does not end)."""
        first = self.data[at]
        if not len(first) or first.max() < 0x80:
            return first.astype(np.uint64), 1
        words: Words = self._words[at]
        stops = ~words & _TOP_BITS
        lowest = stops & (~stops + _ONE)
        below = lowest - _ONE
        # A word without a stop bit has `lowest` 0: all of its eight bytes belong to the number, and more follow.
        size = ((np.bitwise_count(below) + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
        bits = words & (lowest | below) & _LOW_BITS
        for low, high, shift in _GATHER:
            bits = (bits & low) | ((bits & high) >> shift)
        long = np.flatnonzero(lowest == 0)
        if len(long):
            ninth, tenth = self.data[at[long] + 8], self.data[at[long] + 9]
            bits[long] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            goes_on = ninth >= 0x80
            bits[long] |= np.where(goes_on, tenth & np.uint8(1), 0).astype(np.uint64) << np.uint64(63)
            size[long] = np.where(goes_on, np.where(tenth >= 0x80, 11, 10), 9)
        return bits, size


def take_or_null(values: pa.Array, index: Ints, *, nulls: Mask | None = None) -> pa.Array:
    """`values` at `index`, null where `nulls`."""
    return values.take(pa.array(index, mask=nulls))


def sized(data: Any, size: int) -> pa.BinaryArray:
    """The bytes of `data`, `size` to an element."""
    ends: Ints = np.arange(1, len(data) // size + 1, dtype=np.int64) * size
    return binary(ends, data)


def binary(ends: Ints, data: Any) -> pa.BinaryArray:
    """The bytes of `data`, in elements that end where `ends` says.

    Raises:
        pa.ArrowCapacityError: there are more than one array holds (2 GiB).
    """
    if len(ends) and ends[-1] > _MAX_BYTES:
        raise pa.ArrowCapacityError(f"{ends[-1]} bytes do not fit one array")
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)
