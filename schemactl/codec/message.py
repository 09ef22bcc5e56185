"""Whole messages of one schema version: a payload, or a key and a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import payload
from .columns import Options
from .definition import Definition, KeyValue
from .errors import Unreadable, Unwritable
from .lanes import Ints, Lanes, Mask, pairs, replaced, sized
from .payload_io import PayloadReader, PayloadWriter, read_together

_NO_PAYLOAD: Final = (
    "the message has no payload: it is a null (which deletes its key where a topic is compacted)"
)

SCHEMA_VERSION: Final = "__schemaVersion"
ERROR: Final = "__error"
PAYLOAD: Final = "__payload"
"""What DataFrames and tables have beside the values."""

_BESIDE: Final = frozenset(name.casefold() for name in (SCHEMA_VERSION, ERROR, PAYLOAD))
"""As Spark compares names: without case."""


class MessageColumns(NamedTuple):
    """The columns of a schema's messages; `many`: a value's parts are the columns, else it is the one called `value`."""

    columns: pa.Schema
    many: bool


def layout(schema: Definition | KeyValue, options: Options) -> MessageColumns:
    """Return the columns, all nullable: a record's fields; `key` and `value` of a KEY_VALUE; else `value`.

    A record, too, is one column `value` if a field of it is called as a column that stands beside the values.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: Spark and Arrow have no type for the schema.
    """
    if isinstance(schema, KeyValue):
        halves = (("key", schema.key), ("value", schema.value))
        return MessageColumns(
            pa.schema([(name, payload.column_type(half, options)[0]) for name, half in halves]), many=True
        )
    column_type, many = payload.column_type(schema, options)
    many = many and not any(field.name.casefold() in _BESIDE for field in column_type)
    return MessageColumns(pa.schema(list(column_type) if many else [("value", column_type)]), many)


@dataclass(frozen=True, slots=True)
class SingleReader:
    """A payload that is one value; `flat`: its fields are columns of their own."""

    reading: PayloadReader
    flat: bool

    def one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  a key is no part of the value
        """Return the value in Python's own types; raises Unreadable."""
        if payload is None:
            raise Unreadable(_NO_PAYLOAD)
        return self.reading.value(payload)

    def batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """Return the columns, null where a message cannot be read, and the reason for each such row."""
        values, reasons = _present(self.reading, payloads, "")
        reasons |= _absent(payloads)
        return (values.flatten() if self.flat else [values]), reasons


def read_singles(
    readers: Sequence[tuple[MessageReader, Ints]], payloads: pa.BinaryArray
) -> tuple[list[pa.Array], dict[int, str]] | None:
    """Return what `MessageReader.batch` does, for several versions at once, each with its rows; None: they cannot be read together."""
    singles = [
        (reader, rows)
        for reader, rows in readers
        if isinstance(reader, SingleReader) and reader.reading.program
    ]
    rejected = [(reader.reason, rows) for reader, rows in readers if isinstance(reader, NoReader)]
    if not singles or len(singles) + len(rejected) < len(readers):
        return None
    absent = _absent(payloads) | {row: reason for reason, rows in rejected for row in rows.tolist()}
    present = np.asarray(payloads.is_valid())
    values, reasons = read_together(
        [(reader.reading, rows[present[rows]] if payloads.null_count else rows) for reader, rows in singles],
        payloads,
    )
    columns = values.flatten() if singles[0][0].flat else [values]
    return [null_at(column, absent) for column in columns], reasons | absent


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

    def batch(
        self, payloads: pa.BinaryArray, keys: pa.BinaryArray | None
    ) -> tuple[list[pa.Array], dict[int, str]]:
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
        return [null_at(column, reasons) for column in columns], reasons

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
class NoReader:
    """A version whose messages the reader cannot read at all."""

    reason: str
    types: tuple[pa.DataType, ...]

    def one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  nothing of a message helps
        """See SingleReader."""
        raise Unreadable(self.reason)

    def batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """See SingleReader."""
        count = len(payloads)
        return [pa.nulls(count, kind) for kind in self.types], dict.fromkeys(range(count), self.reason)


MessageReader = SingleReader | KeyValueReader | NoReader
"""Reads the messages that one version of a topic's schema wrote."""


@dataclass(frozen=True, slots=True)
class SingleWriter:
    """A payload that is one value; `flat`: its fields come as columns of their own."""

    writing: PayloadWriter
    flat: bool

    def payload(self, value: Any) -> bytes | None:
        """Return the payload of a value; None only for the null value of a SEPARATED KEY_VALUE. Raises Unwritable."""
        return self.writing.value(value)

    def key(self, value: Any) -> bytes | None:  # noqa: ARG002  see KeyValueWriter
        """Return the message's key; None unless it travels apart from the payload. Raises Unwritable."""
        return None

    def batch(self, rows: pa.RecordBatch) -> tuple[pa.BinaryArray, pa.BinaryArray | None, dict[int, str]]:
        """Return payloads, keys (None where they do not travel apart), and the reason for each row that cannot be written.

        Such a row has neither payload nor key.
        """
        payloads, reasons = self.writing.batch(rows.to_struct_array() if self.flat else rows.column("value"))
        return payloads, None, reasons


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
            return null_at(halves["value"], reasons), null_at(halves["key"], reasons), reasons
        return null_at(_join_pairs(halves["key"], halves["value"]), reasons), None, reasons

    def _half(self, pair: Any, name: str) -> bytes | None:
        if not isinstance(pair, dict) or pair.keys() != self.writings.keys():
            raise Unwritable(f"expected a dict of key and value, found {pair!r}")
        try:
            return None if pair[name] is None else self.writings[name].value(pair[name])
        except Unwritable as error:
            error.inside(name)
            raise


MessageWriter = SingleWriter | KeyValueWriter
"""Writes the messages of one version."""


def message_writer(schema: Definition | KeyValue, options: Options, *, flat: bool) -> MessageWriter:
    """Return how values of the schema are written; `flat` as in SingleWriter.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: the definition cannot be used.
    """
    if isinstance(schema, Definition):
        return SingleWriter(payload.writing(schema, options), flat)
    halves = {"key": payload.writing(schema.key, options), "value": payload.writing(schema.value, options)}
    return KeyValueWriter(halves, schema.encoding)


def _absent(payloads: pa.BinaryArray) -> dict[int, str]:
    """Return the reason for each row without a payload."""
    if not payloads.null_count:
        return {}
    return dict.fromkeys(np.flatnonzero(np.asarray(payloads.is_null())).tolist(), _NO_PAYLOAD)


def _present(
    reading: PayloadReader, payloads: pa.BinaryArray, inside: str
) -> tuple[pa.Array, dict[int, str]]:
    """Return the values of those payloads that are there, null for the others; `inside` as in `PayloadReader.batch`."""
    if not payloads.null_count:
        return reading.batch(payloads, inside=inside)
    rows = np.flatnonzero(np.asarray(payloads.is_valid()))
    values, reasons = reading.batch(payloads.drop_null(), inside=inside)
    return _spread(values, rows, len(payloads)), {int(rows[at]): reason for at, reason in reasons.items()}


def _spread(values: pa.Array, rows: Ints, count: int) -> pa.Array:
    """Return an array of `count` with `values` at `rows`, null elsewhere."""
    return values if len(rows) == count else replaced(pa.nulls(count, values.type), [(rows, values)])


def null_at(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    """Return the column with nulls at `rows`: a rejected row shows none of its halves."""
    if not rows:
        return column
    absent: Mask = np.zeros(len(column), bool)
    absent[list(rows)] = True
    return _masked(column, absent)


def _join_pair(key: bytes | None, value: bytes | None) -> bytes:
    """Return the INLINE payload of two halves: each behind its length in four bytes, big-endian; -1 is null (KeyValue.encode)."""
    return b"".join(
        (-1 if half is None else len(half)).to_bytes(4, "big", signed=True) + (half or b"")
        for half in (key, value)
    )


def _join_pairs(keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
    """Return the payloads of many pairs of halves (see `_join_pair`)."""
    pieces = []
    for halves in (keys, values):
        lengths = pc.fill_null(pc.binary_length(halves), -1)
        pieces += [sized(np.asarray(lengths).astype(">i4").view(np.uint8), 4), pc.fill_null(halves, b"")]
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
    lanes = Lanes(payloads)
    lengths = lanes.view(">i4")
    at = lanes.start
    bad: Mask = np.zeros(len(payloads), bool)
    halves = []
    for _ in ("key", "value"):
        length: Ints = lengths[np.minimum(at, lanes.limit)].astype(np.int64)
        bad |= (lanes.end - at < 4) | (length < -1) | (length > lanes.end - at - 4)
        length = np.where(bad, -1, length)
        start = np.minimum(at + 4, lanes.limit)
        at = start + np.maximum(length, 0)
        null = length < 0
        halves.append(_masked(lanes.binary(pairs(start, at)), null))
    if strict:
        bad |= at != lanes.end
    return halves[0], halves[1], bad


def _masked(values: pa.BinaryArray, nulls: Mask) -> pa.BinaryArray:
    if not nulls.any():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=nulls))
