"""The input and output of a codec for many messages at once."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from .lanes import narrowed


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch.

    Attributes:
        rows: one row a message, in order; all columns null where the message cannot be read.
        errors: the reason for each such row, null for the others.
    """

    rows: pa.RecordBatch
    errors: pa.StringArray


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded batch.

    Attributes:
        payloads: one a row; null where the value is (SEPARATED), or where the row cannot be written.
        keys: of a SEPARATED KEY_VALUE, else None.
        errors: the reason for each row that cannot be written, null for the others.
    """

    payloads: pa.BinaryArray
    keys: pa.BinaryArray | None
    errors: pa.StringArray


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values in one piece."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def binaries(values: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """Return payloads or keys, however they came, as binary. Raises pa.ArrowCapacityError: they are more than one array holds."""
    whole = one_array(values)
    if pa.types.is_large_binary(whole.type) or pa.types.is_large_string(whole.type):
        return narrowed(whole)
    try:
        return whole if whole.type == pa.binary() else whole.cast(pa.binary())
    except pa.ArrowInvalid:
        # Dictionary-encoded ones are longer than they look.
        raise pa.ArrowCapacityError("more than 2 GiB") from None


def record_batch(arrays: list[pa.Array], columns: pa.Schema, count: int) -> pa.RecordBatch:
    """Return the columns, of so many rows."""
    if not arrays:
        # A record without fields has rows all the same.
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def row_of_nulls(columns: pa.Schema) -> pa.RecordBatch:
    """Return one row of these columns, all null."""
    return record_batch([pa.nulls(1, kind) for kind in columns.types], columns, 1)


def reason_array(reasons: dict[int, str], count: int) -> pa.StringArray:
    """Return the reason for each row that has one, null for the others."""
    if not reasons:
        return pa.nulls(count, pa.string())
    return pa.array([reasons.get(row) for row in range(count)], pa.string())
