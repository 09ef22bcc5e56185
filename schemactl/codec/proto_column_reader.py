"""The column reader of protobuf messages (see `proto_plan`); unusual messages go to the single-message reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .lanes import Ints, Mask
from .proto_plan import BatchRows, ColumnField, PtarsPlan, column_name
from .proto_schema import MessagePart, Moment, Scalar

_MICROS: Final = 1_000_000
_MAX_SECONDS: Final = 2**63 // _MICROS - 1
"""Of what surely fits 64 bits as microseconds, whatever the nanoseconds."""

_SIZED_TAG: Final = b"".join(re.escape(bytes([byte])) for byte in range(2, 256, 8))
_HUGE: Final = re.compile(
    rb"(?:(?![\x80-\xff])[%b]|[%b][\x80-\xff]{0,3}[\x00-\x7f])[\xf6-\xff]\xff{8}[\x01-\x7f]"
    % (_SIZED_TAG, _SIZED_TAG)
)
"""What may be a tag and, behind it, a length of nearly 2^64 bytes, at which ptars panics."""

_HUGE_PART: Final = re.compile(b"\xff\xff\xff\xff\xff\xff\xff\xff")
"""What is quick to search for."""

_SMALL: Final = 32
"""A batch of so few messages is not searched for the one that cannot be read."""

_ZEROS: Final = {"bool": False, "string": "", "bytes": b"", "float": 0.0, "double": 0.0}


def column_reader(plan: PtarsPlan, kind: pa.DataType) -> Callable[[pa.BinaryArray], tuple[pa.Array, Mask]]:
    """Read payloads without nulls into an array of `kind`, and say which rows are for the single-message path."""

    def read(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        count = len(payloads)
        huge = _huge(payloads)
        readable = pc.if_else(pa.array(huge), b"", payloads) if huge.any() else payloads
        found = _ask(plan, readable) if count else None
        if found is not None:
            batch, written = found
            rows = _RowReader(huge | ~np.asarray(pc.equal(written, readable)))
            columns = rows.fields(plan.fields, batch, np.arange(count), np.ones(count, bool))
            return pa.StructArray.from_arrays(columns, fields=list(kind)), rows.bad
        if count <= _SMALL:
            return pa.nulls(count, kind), np.ones(count, bool)
        middle = count // 2
        first, second = read(payloads.slice(0, middle)), read(payloads.slice(middle))
        return pa.concat_arrays([first[0], second[0]]), np.concatenate([first[1], second[1]])

    return read


def _ask(plan: PtarsPlan, payloads: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.BinaryArray] | None:
    """Return the columns, and the payloads that ptars would write for them; None: a message is not what ptars can read."""
    try:
        batch = plan.handler.array_to_record_batch(payloads)
        return batch, plan.handler.record_batch_to_array(batch)
    except ValueError:
        return None
    except BaseException as error:
        # Rust's panics are no `Exception`, and the class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None


def _huge(payloads: pa.BinaryArray) -> Mask:
    """Which payloads may have a length of nearly 2^64 bytes."""
    found: Mask = np.zeros(len(payloads), bool)
    if not len(payloads) or payloads.buffers()[2] is None:
        return found
    ends = np.frombuffer(payloads.buffers()[1], np.int32)[
        payloads.offset : payloads.offset + len(payloads) + 1
    ]
    held = memoryview(payloads.buffers()[2])[ends[0] : ends[-1]]
    if _HUGE_PART.search(held):
        places = np.array([match.end() - 1 for match in _HUGE.finditer(held)], np.int64) + ends[0]
        found[np.searchsorted(ends, places, side="right") - 1] = True
    return found


class _RowReader(BatchRows):
    """From what ptars gives to the columns."""

    def fields(
        self, fields: Sequence[ColumnField], source: pa.RecordBatch | pa.StructArray, rows: Ints, there: Mask
    ) -> list[pa.Array]:
        """Return the columns of messages; `rows` says whose each one is, `there` which are messages at all."""
        arrays = [_column(source, column_name(field.part.number)) for field in fields]
        self.judge(fields, arrays, rows, there)
        return [self._column(field, array, rows) for field, array in zip(fields, arrays, strict=True)]

    def _column(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        part = field.part
        if part.key is not None:
            return self._map(part, part.key, field, array, rows)
        if part.repeated:
            counts = np.diff(np.asarray(array.offsets))
            values = self._values(field, array.values, np.repeat(rows, counts))
            return pa.ListArray.from_arrays(array.offsets, values, type=part.type)
        values = self._values(field, array, rows)
        return values if part.presence and part.default is None else _filled(part, values)

    def _map(
        self, part: MessagePart, key: Scalar, field: ColumnField, array: pa.ListArray, rows: Ints
    ) -> pa.Array:
        offsets, entries = array.offsets, array.values
        counts = np.diff(np.asarray(offsets))
        whose = np.repeat(np.arange(len(counts)), counts)
        keys = pc.fill_null(entries.field(0), _zero(key.kind))
        # In the order of the keys, as the single-message path has them.
        order = pc.sort_indices(
            pa.RecordBatch.from_arrays([pa.array(whose), keys], ["map", "key"]),
            sort_keys=[("map", "ascending"), ("key", "ascending")],
        )
        keys, entries = keys.take(order), entries.take(order)
        again = (whose[1:] == whose[:-1]) & np.asarray(pc.equal(keys[1:], keys[:-1]))
        inside = rows[whose]
        self.bad[inside[1:][again]] = True
        held = entries.field(1)
        if field.fields or isinstance(part.shape, Moment):
            # An entry without a value has an empty message, which only protobuf itself makes.
            self.bad[inside[np.asarray(held.is_null())]] = True
            values = self._values(field, held, inside)
        else:
            values = _filled(part, self._values(field, held, inside))
        return pa.MapArray.from_arrays(offsets, self._scalar(key, keys), values, type=part.type)

    def _values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._scalar(shape, array)
        there = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            return self._moment(shape.type, array, rows, there)
        columns = self.fields(field.fields, array, rows, there)
        return pa.StructArray.from_arrays(columns, fields=list(shape.type), mask=pa.array(~there))

    def _scalar(self, shape: Scalar, array: pa.Array) -> pa.Array:
        if shape.kind == "enum":
            return self._enum(shape, array)
        if pa.types.is_decimal(shape.type):
            return _decimals(array)
        return array if array.type == shape.type else array.cast(shape.type)

    def _enum(self, shape: Scalar, array: pa.Array) -> pa.Array:
        names = shape.names or {}
        encoded = array.dictionary_encode()
        numbers = encoded.dictionary.to_pylist()
        texts = pa.array([names.get(number) or str(number) for number in numbers], pa.string())
        return texts.take(encoded.indices)

    def _moment(self, kind: pa.DataType, array: pa.StructArray, rows: Ints, there: Mask) -> pa.Array:
        seconds = np.asarray(pc.fill_null(array.field(0), 0))
        nanos = np.asarray(pc.fill_null(array.field(1), 0)).astype(np.int64)
        wide = (seconds > _MAX_SECONDS) | (seconds < -_MAX_SECONDS)
        self.bad[rows[wide]] = True
        micros = np.where(wide, 0, seconds) * _MICROS + nanos // 1000
        return pa.array(micros, pa.int64(), mask=~there).cast(kind)


def _column(source: pa.RecordBatch | pa.StructArray, name: str) -> pa.Array:
    return source.column(name) if isinstance(source, pa.RecordBatch) else source.field(name)


def _zero(kind: str) -> Any:
    return _ZEROS.get(kind, 0)


def _filled(part: MessagePart, values: pa.Array) -> pa.Array:
    """With the field's default, or that of its type, for what was not sent."""
    shape = part.shape
    if not values.null_count or not isinstance(shape, Scalar):
        return values
    default = _zero(shape.kind) if part.default is None else part.default
    if shape.kind == "enum":
        names = shape.names or {}
        default = names.get(default) or str(default)
    return pc.fill_null(values, pa.scalar(default, shape.type))


def _decimals(array: pa.UInt64Array) -> pa.Array:
    """Unsigned numbers of 64 bits as decimals, which are 128 bits wide."""
    words: npt.NDArray[np.uint64] = np.zeros((len(array), 2), np.uint64)
    words[:, 0] = np.asarray(pc.fill_null(array, 0))
    validity = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(array), [validity, pa.py_buffer(words)])
