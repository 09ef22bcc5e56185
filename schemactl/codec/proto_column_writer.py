"""The column writer of protobuf messages (see `proto_plan`); values that do not fit go to the single-value writer.

What ptars writes of the message that stands for a topic's is what protobuf writes deterministically: fields by their number,
each that is there. So a field without presence has its default taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns import TIMESTAMP
from .lanes import Ints, Mask
from .proto_plan import BatchRows, ColumnField, PtarsPlan, column_name
from .proto_schema import MessagePart, Moment, Scalar

_MICROS: Final = 1_000_000

_WIRE: Final[dict[str, pa.DataType]] = {
    "uint32": pa.uint32(),
    "fixed32": pa.uint32(),
    "uint64": pa.uint64(),
    "fixed64": pa.uint64(),
}
"""What ptars takes, where it is not the column's type."""


def column_writer(plan: PtarsPlan) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    """Write messages, and say which rows are for the single-value path."""

    def write(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        count = len(values)
        if not count:
            return pa.array([], pa.binary()), np.zeros(0, bool)
        there = np.asarray(values.is_valid())
        rows = _RowWriter(~there)
        columns = rows.fields(plan.fields, values, np.arange(count), there)
        batch = pa.RecordBatch.from_arrays(columns, [column_name(one.part.number) for one in plan.fields])
        return plan.handler.record_batch_to_array(batch), rows.bad

    return write


class _RowWriter(BatchRows):
    """From columns to what ptars takes."""

    def fields(
        self, fields: Sequence[ColumnField], messages: pa.StructArray, rows: Ints, there: Mask
    ) -> list[pa.Array]:
        """Return what ptars takes for messages; `rows` says whose each one is, `there` which are messages at all."""
        # Flat, what lies in a message that is not there is null, too.
        columns = dict(zip((part.name for part in messages.type), messages.flatten(), strict=True))
        arrays = [columns[field.part.name] for field in fields]
        self.judge(fields, arrays, rows, there)
        return [self._column(field, array, rows) for field, array in zip(fields, arrays, strict=True)]

    def _column(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        part = field.part
        if part.key is not None:
            return self._map(part.key, field, array, rows)
        if part.repeated:
            counts = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
            inside = np.repeat(rows, counts)
            items = array.flatten()
            self.bad[inside[np.asarray(items.is_null())]] = True
            if field.one_by_one:
                self.bad[inside] = True
            return _listed(counts, self._values(field, items, inside))
        values = self._values(field, array, rows)
        return values if part.presence else _sent(part, values)

    def _map(self, key: Scalar, field: ColumnField, array: pa.MapArray, rows: Ints) -> pa.Array:
        # Taken anew, the entries are those of the maps that are there, and no others.
        array = array.take(pa.array(np.arange(len(array))))
        counts = np.diff(np.asarray(array.offsets))
        inside = np.repeat(rows, counts)
        keys, held = array.keys, array.items
        self.bad[inside[np.asarray(held.is_null())]] = True
        # In what order protobuf writes several, and which of two with one key, it alone knows.
        self.bad[rows[counts > 1]] = True
        entries = pa.StructArray.from_arrays(
            [self._scalar(key, keys, inside), self._values(field, held, inside)], names=["f1", "f2"]
        )
        return _listed(counts, entries)

    def _values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._scalar(shape, array, rows)
        there = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            columns = [_or_null(numbers) for numbers in _moment(shape.type, array)]
            names = ["f1", "f2"]
        else:
            columns = self.fields(field.fields, array, rows, there)
            names = [column_name(one.part.number) for one in field.fields]
        return pa.StructArray.from_arrays(columns, names=names, mask=pa.array(~there))

    def _scalar(self, shape: Scalar, array: pa.Array, rows: Ints) -> pa.Array:
        if shape.kind == "enum":
            return self._enum(shape, array, rows)
        wire = _WIRE.get(shape.kind)
        if wire is None:
            return array
        if wire == pa.uint32():
            numbers = np.asarray(pc.fill_null(array, 0))
            self.bad[rows[(numbers < 0) | (numbers >= 2**32)]] = True
            words = numbers.astype(np.uint32)
        else:
            pairs = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
            words, high = pairs[array.offset : array.offset + len(array)].T
            self.bad[rows[(high != 0) & np.asarray(array.is_valid())]] = True
        return pa.array(words, wire, mask=np.asarray(array.is_null()))

    def _enum(self, shape: Scalar, array: pa.StringArray, rows: Ints) -> pa.Array:
        numbers = {name: number for number, name in (shape.names or {}).items()}
        encoded = array.dictionary_encode()
        found = pa.array([numbers.get(name) for name in encoded.dictionary.to_pylist()], pa.int32())
        values = found.take(encoded.indices)
        self.bad[rows[np.asarray(values.is_null()) & np.asarray(array.is_valid())]] = True
        return values


def _sent(part: MessagePart, values: pa.Array) -> pa.Array:
    """Null for the default of a field without presence, which is not sent."""
    if not isinstance(part.shape, Scalar):
        return values
    kind = part.shape.kind
    if kind in ("string", "bytes"):
        default = pc.equal(pc.binary_length(values), 0)
    elif kind in ("float", "double"):
        # Not by its value: zero with a sign is sent.
        default = pc.equal(values.view(pa.int32() if kind == "float" else pa.int64()), 0)
    else:
        default = pc.invert(values) if kind == "bool" else pc.equal(values, pa.scalar(0, values.type))
    return pc.if_else(default, pa.scalar(None, values.type), values)


def _moment(kind: pa.DataType, array: pa.Array) -> tuple[Any, Any]:
    """Seconds and nanoseconds; those of a Duration have the same sign (google/protobuf/duration.proto)."""
    micros = np.asarray(pc.fill_null(array.cast(pa.int64()), 0))
    rest = micros % _MICROS if kind == TIMESTAMP else np.fmod(micros, _MICROS)
    return (micros - rest) // _MICROS, (rest * 1000).astype(np.int32)


def _or_null(numbers: Any) -> pa.Array:
    return pa.array(numbers, mask=numbers == 0)


def _listed(counts: Any, values: pa.Array) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)
