"""Decode and encode payloads of one schema in batches: by columns where possible, and the remaining rows one by one.

The *scalar path*, which takes one message at a time, is the reference. The columnar path gives the same values or leaves a row to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
"""Batches of fewer rows and bytes than these are decoded faster one by one: one order of `benchmarks/codec.py` in a quarter of the time."""

_CHUNK_ROWS: Final = 256
"""The number of rows that are Python objects at the same time."""


@dataclass(frozen=True)
class PayloadDecoder:
    """Decodes the payloads of one writer into values of one reader.

    The functions for batches are compiled when a batch is decoded: for a recursive schema, they can have many more parts than the functions
    for single payloads.

    Attributes:
        type: the type of the column.
        decode_value: decodes a payload into Python's own types; raises Unreadable.
        decode_storage: decodes a payload into the storage form (see `arrow_types`); raises Unreadable.
        decode_column: decodes payloads without nulls into an array, and returns it with the mask of rows that need
            `decode_storage`; None if all rows do.
        make_program: compiles `program`; None without one.
        strict: whether the program leaves rows with bytes after the value to `decode_storage`.
        max_text_bytes: an upper bound of the bytes of a default or an enum symbol.
    """

    type: pa.DataType
    decode_value: Callable[[bytes], Any]
    decode_storage: Callable[[bytes], Any]
    decode_column: Callable[[pa.BinaryArray], tuple[pa.Array, Mask]] | None = None
    make_program: Callable[[], Program | None] | None = None
    strict: bool = False
    max_text_bytes: int = 1

    @cached_property
    def program(self) -> Program | None:
        """The program that decodes Avro payloads together with the payloads of other writers, or None."""
        return self.make_program() if self.make_program is not None else None

    @property
    def max_text_growth(self) -> int:
        """An upper bound of the bytes of text that one byte of a payload becomes through defaults and enum symbols."""
        return (1 + (len(self.program.pool) if self.program else 0)) * self.max_text_bytes

    def decode_batch(self, payloads: pa.BinaryArray, *, parent: str = "") -> tuple[pa.Array, dict[int, str]]:
        """Decode payloads without nulls.

        Returns an array with one element for each payload, null where it cannot be decoded, and the reasons of these rows. `parent` is
        prepended to the paths in the reasons.

        Raises:
            pa.ArrowCapacityError: the values are more than one array holds.
        """
        if self.program is not None:
            return decode_together([(self, np.arange(len(payloads)))], payloads, parent=parent)
        if self.decode_column is None:
            return self.decode_one_by_one(payloads, parent)
        array, bad = self.decode_column(payloads)
        return _decode_rows_again(array, payloads, [(self, np.flatnonzero(bad))], parent)

    def decode_one_by_one(self, payloads: pa.BinaryArray, parent: str) -> tuple[pa.Array, dict[int, str]]:
        """Decode payloads as `decode_batch` does, with the scalar path alone."""
        parts: list[pa.Array] = []
        reasons: dict[int, str] = {}
        for start in range(0, len(payloads), _CHUNK_ROWS):
            values: list[Any] = []
            max_size = 0
            for row, payload in enumerate(payloads[start : start + _CHUNK_ROWS].to_pylist(), start):
                max_size += (len(payload) + MAX_EMPTY_ITEMS) * self.max_text_growth
                try:
                    values.append(self.decode_storage(payload))
                except Unreadable as error:
                    values.append(None)
                    if parent:
                        error.prepend_path(parent)
                    reasons[row] = error.reason
            # Arrow itself would allocate until memory is exhausted.
            if max_size >= MAX_ARRAY_BYTES and sum(map(_count_bytes, values)) >= MAX_ARRAY_BYTES:
                raise pa.ArrowCapacityError("the values do not fit into one array")
            parts.append(pa.array(values, self.type))
        return concat_arrays(parts or [pa.array([], self.type)]), reasons


def decode_together(
    decoders: Sequence[tuple[PayloadDecoder, Ints]], payloads: pa.BinaryArray, *, parent: str = ""
) -> tuple[pa.Array, dict[int, str]]:
    """Decode the payloads of several writers, as `PayloadDecoder.decode_batch` does.

    Args:
        decoders: decoders with programs, all into the same type, each with its rows in ascending order.
        payloads: the payloads of all rows. Elements of rows without a decoder have no meaning.
        parent: see `PayloadDecoder.decode_batch`.

    Raises:
        pa.ArrowCapacityError: the values are more than one array holds.
    """
    if len(payloads) < _FEW_ROWS and payloads.nbytes < _FEW_BYTES:
        return _decode_rows_again(pa.nulls(len(payloads), decoders[0][0].type), payloads, decoders, parent)
    from .avro_columnar_reader import run_programs

    programs = [(decoder.program, rows) for decoder, rows in decoders if decoder.program is not None]
    try:
        array, bad = run_programs(programs, payloads, strict=decoders[0][0].strict)
    except pa.ArrowCapacityError:
        if len(payloads) > 1:
            raise
        return _decode_rows_again(pa.nulls(1, decoders[0][0].type), payloads, decoders, parent)
    return _decode_rows_again(array, payloads, [(decoder, rows[bad[rows]]) for decoder, rows in decoders], parent)


def _decode_rows_again(
    array: pa.Array, payloads: pa.BinaryArray, decoders: Sequence[tuple[PayloadDecoder, Ints]], parent: str
) -> tuple[pa.Array, dict[int, str]]:
    """Decode the rows of each decoder again, one by one, and return the array with their values and the reasons of rejected rows."""
    parts = []
    reasons: dict[int, str] = {}
    for decoder, rows in decoders:
        if len(rows):
            values, rejected = decoder.decode_one_by_one(payloads.take(pa.array(rows)), parent)
            parts.append((rows, values))
            reasons |= {int(rows[at]): reason for at, reason in rejected.items()}
    return replace_rows(array, parts), reasons


def _count_bytes(value: Any) -> int:
    """Count the bytes of all texts and bytes in a value."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_count_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_count_bytes, value))
    return 0


def make_rejecting_decoder(reason: str, arrow_type: pa.DataType) -> PayloadDecoder:
    """Make a decoder that rejects every payload."""

    def reject(_: bytes) -> Any:
        raise Unreadable(reason)

    return PayloadDecoder(arrow_type, reject, reject)


@dataclass(frozen=True, slots=True)
class PayloadEncoder:
    """Encodes values of one schema.

    Attributes:
        type: the type of the column.
        encode_value: encodes a value in Python's own types or in storage form (see `arrow_types`); raises Unwritable.
        encode_column: encodes an array of `type`, and returns an array of bytes with the mask of rows that need
            `encode_value`; None if all rows do.
    """

    type: pa.DataType
    encode_value: Callable[[Any], bytes]
    encode_column: Callable[[pa.Array], tuple[pa.BinaryArray, Mask]] | None = None

    def encode_batch(self, values: pa.Array, *, parent: str = "") -> tuple[pa.BinaryArray, dict[int, str]]:
        """Encode values without nulls.

        Returns an array with one element for each value, null where it cannot be encoded, and the reasons of these rows. `parent` is
        prepended to the paths in the reasons. Values of another type than `type` are encoded one by one.

        Raises:
            pa.ArrowCapacityError: the payloads are more than one array holds.
        """
        values = adapt_array(values, self.type)
        if self.encode_column is None or values.type != self.type:
            return self._encode_one_by_one(values, parent)
        written, bad = self.encode_column(values)
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return written, {}
        rewritten, reasons = self._encode_one_by_one(values.take(pa.array(rows)), parent)
        return replace_rows(written, [(rows, rewritten)]), {int(rows[at]): reason for at, reason in reasons.items()}

    def _encode_one_by_one(self, values: pa.Array, parent: str) -> tuple[pa.BinaryArray, dict[int, str]]:
        written: list[bytes | None] = []
        reasons: dict[int, str] = {}
        for row, value in enumerate(to_numbers(values, self.type)):
            try:
                written.append(self.encode_value(_to_python(value)))
            except Unwritable as error:
                if parent:
                    error.prepend_path(parent)
                written.append(None)
                reasons[row] = error.reason
        payloads = pa.array(written, pa.binary())
        if isinstance(payloads, pa.ChunkedArray):
            raise pa.ArrowCapacityError("the bytes do not fit one array")
        return payloads, reasons


def _to_python(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        # Only values of another type get here: `to_numbers` made numbers of the column's own dates and times.
        raise Unwritable("a date or time outside the years 1 to 9999, in a column that takes another type") from None
