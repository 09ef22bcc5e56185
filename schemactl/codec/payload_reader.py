"""Readers and writers of one kind of value: one by one, or by column with the single-value path as reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from .arrow_types import adapt_array, to_numbers
from .byte_batch import MAX_ARRAY_BYTES, MAX_EMPTY_ITEMS, Ints, Mask, concat_arrays, replace_rows
from .definition import Unreadable, Unwritable

if TYPE_CHECKING:
    from .avro_columnar_reader import Program

_FEW_ROWS: Final = 32
_FEW_BYTES: Final = 2**16
"""So few short messages are read faster one by one."""

_JUDGED_ROWS: Final = 256


@dataclass(frozen=True, slots=True)
class PayloadReader:
    """How payloads of one writer become values of one reader.

    Attributes:
        type: of the column the values go into.
        value: from a payload to the value in Python's own types; raises Unreadable.
        storage: the same in storage form (see `arrow_types`).
        lanes: from payloads without nulls to an array and the rows in it that are for `storage` to judge; None: all are.
        program: of Avro: reads many payloads at once, together with those of other writers.
        strict: bytes behind a value are for `storage` to judge, too.
        growth: how many bytes of text a byte of a message can become, by defaults and symbols; a bound.
    """

    type: pa.DataType
    value: Callable[[bytes], Any]
    storage: Callable[[bytes], Any]
    lanes: Callable[[pa.BinaryArray], tuple[pa.Array, Mask]] | None = None
    program: Program | None = None
    strict: bool = False
    growth: int = 1

    def batch(self, payloads: pa.BinaryArray, *, inside: str = "") -> tuple[pa.Array, dict[int, str]]:
        """Return one element a payload, null where it cannot be read, and the reason for each of those.

        `inside` names what the values are part of, for the reasons.
        """
        if self.program is not None:
            return read_together([(self, np.arange(len(payloads)))], payloads, inside=inside)
        if self.lanes is None:
            return self._one_by_one(payloads, inside)
        array, bad = self.lanes(payloads)
        return _judged(array, payloads, [(self, np.flatnonzero(bad))], inside)

    def _one_by_one(self, payloads: pa.BinaryArray, inside: str) -> tuple[pa.Array, dict[int, str]]:
        parts: list[pa.Array] = []
        reasons: dict[int, str] = {}
        # A few at once, so that not all of them stand in memory as objects.
        for start in range(0, len(payloads), _JUDGED_ROWS):
            values: list[Any] = []
            most = 0
            for row, payload in enumerate(payloads[start : start + _JUDGED_ROWS].to_pylist(), start):
                most += (len(payload) + MAX_EMPTY_ITEMS) * self.growth
                try:
                    values.append(self.storage(payload))
                except Unreadable as error:
                    values.append(None)
                    if inside:
                        error.inside(inside)
                    reasons[row] = error.reason
            # Arrow itself would look for memory until there is none.
            if most >= MAX_ARRAY_BYTES and sum(map(_weight, values)) >= MAX_ARRAY_BYTES:
                raise pa.ArrowCapacityError("the values do not fit into one array")
            parts.append(pa.array(values, self.type))
        return concat_arrays(parts or [pa.array([], self.type)]), reasons


def read_together(
    readings: Sequence[tuple[PayloadReader, Ints]], payloads: pa.BinaryArray, *, inside: str = ""
) -> tuple[pa.Array, dict[int, str]]:
    """Return what `PayloadReader.batch` does, of several writers and one reader, each reading with the rows that are its own, in order.

    Every reading has a program. Rows that are no reading's mean nothing.

    Raises pa.ArrowCapacityError: the values do not fit into one array.
    """
    if len(payloads) < _FEW_ROWS and payloads.nbytes < _FEW_BYTES:
        return _judged(pa.nulls(len(payloads), readings[0][0].type), payloads, readings, inside)
    from .avro_columnar_reader import run_programs

    programs = [(reading.program, rows) for reading, rows in readings if reading.program is not None]
    try:
        array, bad = run_programs(programs, payloads, strict=readings[0][0].strict)
    except pa.ArrowCapacityError:
        if len(payloads) > 1:
            raise
        return _judged(pa.nulls(1, readings[0][0].type), payloads, readings, inside)
    return _judged(array, payloads, [(reading, rows[bad[rows]]) for reading, rows in readings], inside)


def _judged(
    array: pa.Array, payloads: pa.BinaryArray, judges: Sequence[tuple[PayloadReader, Ints]], inside: str
) -> tuple[pa.Array, dict[int, str]]:
    """Return the array with what each reading makes of its rows, one by one, and the reasons for the rejected ones."""
    parts = []
    reasons: dict[int, str] = {}
    for reading, rows in judges:
        if len(rows):
            values, rejected = reading._one_by_one(payloads.take(pa.array(rows)), inside)  # noqa: SLF001  of this module
            parts.append((rows, values))
            reasons |= {int(rows[at]): reason for at, reason in rejected.items()}
    return replace_rows(array, parts), reasons


def _weight(value: Any) -> int:
    """How many bytes of text and bytes are in the value, each as often as it is there."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_weight, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_weight, value))
    return 0


def unreadable(reason: str, arrow_type: pa.DataType) -> PayloadReader:
    """Return a reader that rejects every payload."""

    def reject(_: bytes) -> Any:
        raise Unreadable(reason)

    return PayloadReader(arrow_type, reject, reject)


@dataclass(frozen=True, slots=True)
class PayloadWriter:
    """How values of one schema become bytes.

    Attributes:
        type: of the column the values come from.
        value: from a value, in Python's own types or in storage form (see `arrow_types`), to its bytes; raises Unwritable.
        lanes: from an array of `type` to an array of bytes and the rows in it that are for `value` to judge; None: all are.
    """

    type: pa.DataType
    value: Callable[[Any], bytes]
    lanes: Callable[[pa.Array], tuple[pa.BinaryArray, Mask]] | None = None

    def batch(self, values: pa.Array, *, inside: str = "") -> tuple[pa.BinaryArray, dict[int, str]]:
        """Return one element a value, null where it cannot be written, and the reason for each of those.

        `inside` names what the values are part of, for the reasons. Values of another type than `type` are written one
        by one, if they can be at all.

        Raises pa.ArrowCapacityError: the bytes are more than one array holds.
        """
        values = adapt_array(values, self.type)
        if self.lanes is None or values.type != self.type:
            return self._one_by_one(values, inside)
        written, bad = self.lanes(values)
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return written, {}
        judged, reasons = self._one_by_one(values.take(pa.array(rows)), inside)
        return replace_rows(written, [(rows, judged)]), {int(rows[at]): reason for at, reason in reasons.items()}

    def _one_by_one(self, values: pa.Array, inside: str) -> tuple[pa.BinaryArray, dict[int, str]]:
        written: list[bytes | None] = []
        reasons: dict[int, str] = {}
        for row, value in enumerate(to_numbers(values, self.type)):
            try:
                written.append(self.value(_held(value)))
            except Unwritable as error:
                if inside:
                    error.inside(inside)
                written.append(None)
                reasons[row] = error.reason
        payloads = pa.array(written, pa.binary())
        if isinstance(payloads, pa.ChunkedArray):
            raise pa.ArrowCapacityError("the bytes do not fit one array")
        return payloads, reasons


def _held(value: pa.Scalar) -> Any:
    """Return the value for `PayloadWriter.value`."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        # Of another type than the column's: what has the column's is a number here.
        raise Unwritable("a date or time outside the years 1 to 9999, in a column that takes another type") from None
