"""Decode and encode KEY_VALUE messages, one by one and in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .byte_batch import ByteBatch, Ints, Mask, make_pairs, replace_rows, split_evenly
from .definition import Unreadable, Unwritable
from .payload_batches import PayloadDecoder, PayloadEncoder
from .wire_format import join_pair, split_pair

NO_PAYLOAD: Final = "the message has no payload: it is a null (which deletes its key where a topic is compacted)"
"""The reason for a message without a payload."""


@dataclass(frozen=True, slots=True)
class KeyValueDecoder:
    """Decodes messages of a key and a value, either of which may be null."""

    key: PayloadDecoder
    value: PayloadDecoder
    encoding: Literal["INLINE", "SEPARATED"]
    strict: bool

    def decode_one(self, payload: bytes | None, key: bytes | None) -> Any:
        """See SingleDecoder."""
        if self.encoding == "INLINE":
            if payload is None:
                raise Unreadable(NO_PAYLOAD)
            key, payload = _split_payload(payload, strict=self.strict)
        pair = {}
        for name, decoder, part in (("key", self.key, key), ("value", self.value, payload)):
            try:
                pair[name] = None if part is None else decoder.decode_value(part)
            except Unreadable as error:
                error.prepend_path(name)
                raise
        return pair

    def decode_batch(
        self, payloads: pa.BinaryArray, keys: pa.BinaryArray | None
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """See SingleDecoder."""
        reasons: dict[int, str] = {}
        if self.encoding == "INLINE":
            keys, payloads, reasons = self._split(payloads)
        elif keys is None:
            raise ValueError("keys are not part of this topic's payloads: give the keys as well")
        columns = []
        for name, decoder, parts in (("key", self.key, keys), ("value", self.value, payloads)):
            values, part_reasons = decode_present_payloads(decoder, parts, name)
            columns.append(values)
            reasons = part_reasons | reasons
        return [mask_rows(column, reasons) for column in columns], reasons

    def _split(self, payloads: pa.BinaryArray) -> tuple[pa.BinaryArray, pa.BinaryArray, dict[int, str]]:
        """Split INLINE payloads, and return keys, values, and the reasons of rows that `_split_payload` rejects or that are null."""
        rows = np.flatnonzero(np.asarray(payloads.is_valid()))
        batch = ByteBatch(payloads.drop_null())
        lengths = batch.view_as(">i4")
        at = batch.start
        bad: Mask = np.zeros(len(rows), bool)
        parts = []
        for _ in ("key", "value"):
            length: Ints = lengths[np.minimum(at, batch.limit)].astype(np.int64)
            bad |= (batch.end - at < 4) | (length < -1) | (length > batch.end - at - 4)
            length = np.where(bad, -1, length)
            start = np.minimum(at + 4, batch.limit)
            at = start + np.maximum(length, 0)
            part = _set_nulls(batch.take_spans(make_pairs(start, at)), length < 0)
            parts.append(_expand_rows(part, rows, len(payloads)))
        if self.strict:
            bad |= at != batch.end

        reasons = explain_absent_payloads(payloads)
        for row in rows[bad]:
            try:
                _split_payload(payloads[int(row)].as_py(), strict=self.strict)
            except Unreadable as error:
                reasons[int(row)] = error.reason
        return parts[0], parts[1], reasons


@dataclass(frozen=True, slots=True)
class KeyValueEncoder:
    """Encodes messages of a key and a value, either of which may be null."""

    encoders: dict[str, PayloadEncoder]
    encoding: Literal["INLINE", "SEPARATED"]

    def encode_payload(self, value: Any) -> bytes | None:
        """See SingleEncoder."""
        if self.encoding == "SEPARATED":
            return self._encode_part(value, "value")
        return join_pair(self._encode_part(value, "key"), self._encode_part(value, "value"))

    def encode_key(self, value: Any) -> bytes | None:
        """See SingleEncoder."""
        return self._encode_part(value, "key") if self.encoding == "SEPARATED" else None

    def encode_batch(self, rows: pa.RecordBatch) -> tuple[pa.BinaryArray, pa.BinaryArray | None, dict[int, str]]:
        """See SingleEncoder."""
        parts: dict[str, pa.BinaryArray] = {}
        reasons: dict[int, str] = {}
        for name, encoder in self.encoders.items():
            values = rows.column(name)
            present = np.flatnonzero(np.asarray(values.is_valid()))
            written, part_reasons = encoder.encode_batch(values.drop_null(), parent=name)
            parts[name] = _expand_rows(written, present, len(values))
            reasons = {int(present[row]): reason for row, reason in part_reasons.items()} | reasons
        if self.encoding == "SEPARATED":
            return mask_rows(parts["value"], reasons), mask_rows(parts["key"], reasons), reasons
        # The same bytes as `join_pair`.
        pieces = []
        for part in (parts["key"], parts["value"]):
            lengths = pc.fill_null(pc.binary_length(part), -1)
            pieces += [split_evenly(np.asarray(lengths).astype(">i4").view(np.uint8), 4), pc.fill_null(part, b"")]
        payloads = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))
        return mask_rows(payloads, reasons), None, reasons

    def _encode_part(self, pair: Any, name: str) -> bytes | None:
        if not isinstance(pair, dict) or pair.keys() != self.encoders.keys():
            raise Unwritable(f"expected a dict of key and value, found {pair!r}")
        try:
            return None if pair[name] is None else self.encoders[name].encode_value(pair[name])
        except Unwritable as error:
            error.prepend_path(name)
            raise


def explain_absent_payloads(payloads: pa.BinaryArray) -> dict[int, str]:
    """Return the reasons of the rows without a payload."""
    if not payloads.null_count:
        return {}
    return dict.fromkeys(np.flatnonzero(np.asarray(payloads.is_null())).tolist(), NO_PAYLOAD)


def decode_present_payloads(
    decoder: PayloadDecoder, payloads: pa.BinaryArray, parent: str
) -> tuple[pa.Array, dict[int, str]]:
    """Decode payloads as `PayloadDecoder.decode_batch` does, but null ones to null."""
    if not payloads.null_count:
        return decoder.decode_batch(payloads, parent=parent)
    rows = np.flatnonzero(np.asarray(payloads.is_valid()))
    values, reasons = decoder.decode_batch(payloads.drop_null(), parent=parent)
    return _expand_rows(values, rows, len(payloads)), {int(rows[at]): reason for at, reason in reasons.items()}


def mask_rows(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    """Return the column with null at `rows`, because a rejected row has no values, not even a key or a value that could be decoded."""
    if not rows:
        return column
    nulls: Mask = np.zeros(len(column), bool)
    nulls[list(rows)] = True
    return _set_nulls(column, nulls)


def _expand_rows(values: pa.Array, rows: Ints, count: int) -> pa.Array:
    """Return an array of `count` elements with `values` at `rows` and null elsewhere."""
    return values if len(rows) == count else replace_rows(pa.nulls(count, values.type), [(rows, values)])


def _set_nulls(values: pa.BinaryArray, nulls: Mask) -> pa.BinaryArray:
    if not nulls.any():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=nulls))


def _split_payload(payload: bytes, *, strict: bool) -> tuple[bytes | None, bytes | None]:
    """Split an INLINE payload into key and value.

    Raises:
        Unreadable: a length is missing or exceeds the payload, or with `strict` bytes follow the value.
    """
    key, value, end = split_pair(payload)
    if strict and end != len(payload):
        raise Unreadable(f"{len(payload) - end} bytes follow the value", end)
    return key, value
