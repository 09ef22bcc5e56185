"""KEY_VALUE messages: split and join, one by one and in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .byte_batch import ByteBatch, Ints, Mask, make_pairs, replace_rows, split_evenly
from .definition import Unreadable, Unwritable
from .payload_reader import PayloadReader, PayloadWriter

_NO_PAYLOAD: Final = "the message has no payload: it is a null (which deletes its key where a topic is compacted)"


@dataclass(frozen=True, slots=True)
class KeyValueReader:
    """A key and a value, either of which may be null."""

    key: PayloadReader
    value: PayloadReader
    encoding: Literal["INLINE", "SEPARATED"]
    strict: bool

    def one(self, payload: bytes | None, key: bytes | None) -> Any:
        """See SingleReader."""
        if self.encoding == "INLINE":
            if payload is None:
                raise Unreadable(_NO_PAYLOAD)
            key, payload = _split_pair(payload, strict=self.strict)
        found = {}
        for name, reading, half in (("key", self.key, key), ("value", self.value, payload)):
            try:
                found[name] = None if half is None else reading.value(half)
            except Unreadable as error:
                error.inside(name)
                raise
        return found

    def batch(self, payloads: pa.BinaryArray, keys: pa.BinaryArray | None) -> tuple[list[pa.Array], dict[int, str]]:
        """See SingleReader."""
        reasons: dict[int, str] = {}
        if self.encoding == "INLINE":
            keys, payloads, reasons = self._split(payloads)
        elif keys is None:
            raise ValueError("keys are not part of this topic's payloads: give them, too")
        columns = []
        for name, reading, halves in (("key", self.key, keys), ("value", self.value, payloads)):
            values, wrong = _present(reading, halves, name)
            columns.append(values)
            reasons = wrong | reasons
        return [mask_rows(column, reasons) for column in columns], reasons

    def _split(self, payloads: pa.BinaryArray) -> tuple[pa.BinaryArray, pa.BinaryArray, dict[int, str]]:
        rows = np.flatnonzero(np.asarray(payloads.is_valid()))
        keys, values, bad = _split_pairs(payloads.drop_null(), strict=self.strict)
        reasons = _absent(payloads)
        for row in rows[bad]:
            try:
                _split_pair(payloads[int(row)].as_py(), strict=self.strict)
            except Unreadable as error:
                reasons[int(row)] = error.reason
        return _spread(keys, rows, len(payloads)), _spread(values, rows, len(payloads)), reasons


@dataclass(frozen=True, slots=True)
class KeyValueWriter:
    """A key and a value, either of which may be null."""

    writings: dict[str, PayloadWriter]
    encoding: Literal["INLINE", "SEPARATED"]

    def payload(self, value: Any) -> bytes | None:
        """See SingleWriter."""
        if self.encoding == "SEPARATED":
            return self._half(value, "value")
        return _join_pair(self._half(value, "key"), self._half(value, "value"))

    def key(self, value: Any) -> bytes | None:
        """See SingleWriter."""
        return self._half(value, "key") if self.encoding == "SEPARATED" else None

    def batch(self, rows: pa.RecordBatch) -> tuple[pa.BinaryArray, pa.BinaryArray | None, dict[int, str]]:
        """See SingleWriter."""
        halves: dict[str, pa.BinaryArray] = {}
        reasons: dict[int, str] = {}
        for name, writing in self.writings.items():
            values = rows.column(name)
            present = np.flatnonzero(np.asarray(values.is_valid()))
            written, wrong = writing.batch(values.drop_null(), inside=name)
            halves[name] = _spread(written, present, len(values))
            reasons = {int(present[row]): reason for row, reason in wrong.items()} | reasons
        if self.encoding == "SEPARATED":
            return mask_rows(halves["value"], reasons), mask_rows(halves["key"], reasons), reasons
        return mask_rows(_join_pairs(halves["key"], halves["value"]), reasons), None, reasons

    def _half(self, pair: Any, name: str) -> bytes | None:
        if not isinstance(pair, dict) or pair.keys() != self.writings.keys():
            raise Unwritable(f"expected a dict of key and value, found {pair!r}")
        try:
            return None if pair[name] is None else self.writings[name].value(pair[name])
        except Unwritable as error:
            error.inside(name)
            raise


def _absent(payloads: pa.BinaryArray) -> dict[int, str]:
    """Return the reason for each row without a payload."""
    if not payloads.null_count:
        return {}
    return dict.fromkeys(np.flatnonzero(np.asarray(payloads.is_null())).tolist(), _NO_PAYLOAD)


def _present(reading: PayloadReader, payloads: pa.BinaryArray, inside: str) -> tuple[pa.Array, dict[int, str]]:
    """Return the values of those payloads that are there, null for the others; `inside` as in `PayloadReader.batch`."""
    if not payloads.null_count:
        return reading.batch(payloads, inside=inside)
    rows = np.flatnonzero(np.asarray(payloads.is_valid()))
    values, reasons = reading.batch(payloads.drop_null(), inside=inside)
    return _spread(values, rows, len(payloads)), {int(rows[at]): reason for at, reason in reasons.items()}


def _spread(values: pa.Array, rows: Ints, count: int) -> pa.Array:
    """Return an array of `count` with `values` at `rows`, null elsewhere."""
    return values if len(rows) == count else replace_rows(pa.nulls(count, values.type), [(rows, values)])


def mask_rows(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    """Return the column with nulls at `rows`: a rejected row shows none of its halves."""
    if not rows:
        return column
    absent: Mask = np.zeros(len(column), bool)
    absent[list(rows)] = True
    return _masked(column, absent)


def _join_pair(key: bytes | None, value: bytes | None) -> bytes:
    """Return the INLINE payload of two halves: each behind its length in four bytes, big-endian; -1 is null (KeyValue.encode)."""
    return b"".join(
        (-1 if half is None else len(half)).to_bytes(4, "big", signed=True) + (half or b"") for half in (key, value)
    )


def _join_pairs(keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
    """Return the payloads of many pairs of halves (see `_join_pair`)."""
    pieces = []
    for halves in (keys, values):
        lengths = pc.fill_null(pc.binary_length(halves), -1)
        pieces += [split_evenly(np.asarray(lengths).astype(">i4").view(np.uint8), 4), pc.fill_null(halves, b"")]
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))


def _split_pair(payload: bytes, *, strict: bool = False) -> tuple[bytes | None, bytes | None]:
    """Return the halves of a payload.

    Raises Unreadable: a length is missing or says more than is there; `strict`: something follows the value.
    """
    halves: list[bytes | None] = []
    at = 0
    for name in ("key", "value"):
        if len(payload) - at < 4:
            raise Unreadable(f"the message ends before the {name}'s length", at)
        length = int.from_bytes(payload[at : at + 4], "big", signed=True)
        left = len(payload) - at - 4
        if not -1 <= length <= left:
            raise Unreadable(f"the {name} has a length of {length} bytes, but {left} are left", at)
        at += 4
        halves.append(None if length < 0 else payload[at : at + length])
        at += max(length, 0)
    if strict and at != len(payload):
        raise Unreadable(f"{len(payload) - at} bytes follow the value", at)
    return halves[0], halves[1]


def _split_pairs(payloads: pa.BinaryArray, *, strict: bool) -> tuple[pa.BinaryArray, pa.BinaryArray, Mask]:
    """Return both halves of many payloads, null where they are, and the rows that `_split_pair` rejects."""
    batch = ByteBatch(payloads)
    lengths = batch.view_as(">i4")
    at = batch.start
    bad: Mask = np.zeros(len(payloads), bool)
    halves = []
    for _ in ("key", "value"):
        length: Ints = lengths[np.minimum(at, batch.limit)].astype(np.int64)
        bad |= (batch.end - at < 4) | (length < -1) | (length > batch.end - at - 4)
        length = np.where(bad, -1, length)
        start = np.minimum(at + 4, batch.limit)
        at = start + np.maximum(length, 0)
        null = length < 0
        halves.append(_masked(batch.take_spans(make_pairs(start, at)), null))
    if strict:
        bad |= at != batch.end
    return halves[0], halves[1], bad


def _masked(values: pa.BinaryArray, nulls: Mask) -> pa.BinaryArray:
    if not nulls.any():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=nulls))
