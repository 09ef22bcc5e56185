"""Reading one kind of value: message by message, or a column at once with the single-message path as the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .errors import Unreadable
from .lanes import Ints, Mask, take_or_null


@dataclass(frozen=True, slots=True)
class Reading:
    """How payloads of one writer become values of one reader.

    Attributes:
        type: of the column the values go into.
        value: from a payload to the value in Python's own types; raises Unreadable.
        storage: the same in storage form (see `columns`).
        lanes: from payloads without nulls to an array and the rows in it that are for `storage` to judge; None: all are.
    """

    type: pa.DataType
    value: Callable[[bytes], Any]
    storage: Callable[[bytes], Any]
    lanes: Callable[[pa.BinaryArray], tuple[pa.Array, Mask]] | None = None

    def batch(self, payloads: pa.BinaryArray) -> tuple[pa.Array, dict[int, str]]:
        """One element a payload, null where it cannot be read, and the reason for each of those."""
        count = len(payloads)
        if self.lanes is None:
            return self._one_by_one(payloads)
        array, bad = self.lanes(payloads)
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return array, {}
        judged, reasons = self._one_by_one(payloads.take(pa.array(rows)))
        index = np.arange(count)
        index[rows] = count + np.arange(len(rows))
        return take_or_null(pa.concat_arrays([array, judged]), index), {
            int(rows[i]): r for i, r in reasons.items()
        }

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


def unreadable(reason: str, arrow_type: pa.DataType) -> Reading:
    """Refuses every payload."""

    def refuse(_: bytes) -> Any:
        raise Unreadable(reason)

    return Reading(arrow_type, refuse, refuse)
