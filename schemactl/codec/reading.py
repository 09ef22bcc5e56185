"""Reading one kind of value: message by message, or a column at once with the single-message path as the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .errors import Unreadable
from .lane_reader import Program, decode_lanes
from .lanes import Ints, Mask, take_or_null


@dataclass(frozen=True, slots=True)
class Reading:
    """How payloads of one writer become values of one reader.

    Attributes:
        type: of the column the values go into.
        value: from a payload to the value in Python's own types; raises Unreadable.
        storage: the same in storage form (see `columns`).
        lanes: from payloads without nulls to an array and the rows in it that are for `storage` to judge; None: all are.
        program: of Avro: reads many payloads at once, together with those of other writers.
        strict: bytes behind a value are for `storage` to judge, too.
    """

    type: pa.DataType
    value: Callable[[bytes], Any]
    storage: Callable[[bytes], Any]
    lanes: Callable[[pa.BinaryArray], tuple[pa.Array, Mask]] | None = None
    program: Program | None = None
    strict: bool = False

    def batch(self, payloads: pa.BinaryArray) -> tuple[pa.Array, dict[int, str]]:
        """One element a payload, null where it cannot be read, and the reason for each of those."""
        if self.program is not None:
            return read_together([(self, np.arange(len(payloads)))], payloads)
        if self.lanes is None:
            return self._one_by_one(payloads)
        array, bad = self.lanes(payloads)
        return _judged(array, payloads, [(self, np.flatnonzero(bad))])

    def _one_by_one(self, payloads: pa.BinaryArray) -> tuple[pa.Array, dict[int, str]]:
        values: list[Any] = []
        reasons: dict[int, str] = {}
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                values.append(self.storage(payload))
            except Unreadable as error:
                values.append(None)
                reasons[row] = error.reason
        return pa.array(values, self.type), reasons


def read_together(
    readings: Sequence[tuple[Reading, Ints]], payloads: pa.BinaryArray
) -> tuple[pa.Array, dict[int, str]]:
    """As `Reading.batch`, with several writers and one reader: for each reading, the rows that are its own, in order.

    Every reading has a program. Rows that are no reading's mean nothing.
    """
    programs = [(reading.program, rows) for reading, rows in readings if reading.program is not None]
    array, bad = decode_lanes(programs, payloads, strict=readings[0][0].strict)
    return _judged(array, payloads, [(reading, rows[bad[rows]]) for reading, rows in readings])


def _judged(
    array: pa.Array, payloads: pa.BinaryArray, judges: Sequence[tuple[Reading, Ints]]
) -> tuple[pa.Array, dict[int, str]]:
    """The array with what each reading makes, one by one, of its rows, and the reasons for those it refuses."""
    parts = [array]
    reasons: dict[int, str] = {}
    index = np.arange(len(array))
    total = len(array)
    for reading, rows in judges:
        if len(rows):
            values, refused = reading._one_by_one(payloads.take(pa.array(rows)))  # noqa: SLF001  of this module
            parts.append(values)
            index[rows] = total + np.arange(len(rows))
            total += len(rows)
            reasons |= {int(rows[at]): reason for at, reason in refused.items()}
    return (array, reasons) if len(parts) == 1 else (take_or_null(pa.concat_arrays(parts), index), reasons)


def unreadable(reason: str, arrow_type: pa.DataType) -> Reading:
    """Refuses every payload."""

    def refuse(_: bytes) -> Any:
        raise Unreadable(reason)

    return Reading(arrow_type, refuse, refuse)
