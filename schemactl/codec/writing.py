"""A writer of one kind of value: value by value, or by column with the single-value writer as reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .casting import adapted, to_numbers
from .errors import Unwritable
from .lanes import Ints, Mask, joined, take_or_null


@dataclass(frozen=True, slots=True)
class PayloadWriter:
    """How values of one schema become bytes.

    Attributes:
        type: of the column the values come from.
        value: from a value, in Python's own types or in storage form (see `columns`), to its bytes; raises Unwritable.
        lanes: from an array of `type` to an array of bytes and the rows in it that are for `value` to judge; None: all are.
    """

    type: pa.DataType
    value: Callable[[Any], bytes]
    lanes: Callable[[pa.Array], tuple[pa.BinaryArray, Mask]] | None = None

    def batch(self, values: pa.Array, *, inside: str = "") -> tuple[pa.BinaryArray, dict[int, str]]:
        """One element a value, null where it cannot be written, and the reason for each of those.

        `inside` names what the values are part of, for the reasons. Values of another type than `type` are written one
        by one, if they can be at all.

        Raises pa.ArrowCapacityError: the bytes are more than one array holds.
        """
        values = adapted(values, self.type)
        if self.lanes is None or values.type != self.type:
            return self._one_by_one(values, inside)
        written, bad = self.lanes(values)
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return written, {}
        judged, reasons = self._one_by_one(values.take(pa.array(rows)), inside)
        index = np.arange(len(values))
        index[rows] = len(values) + np.arange(len(rows))
        return take_or_null(joined([written, judged]), index), {
            int(rows[at]): reason for at, reason in reasons.items()
        }

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
        raise Unwritable(
            "a date or time outside the years 1 to 9999, in a column that takes another type"
        ) from None
