"""Decoded and encoded batches, and the base class of codecs, which decodes batches of any size in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from .byte_batch import to_binary_array
from .definition import BatchTooLarge

MAX_BATCH_BYTES: Final = 2**31 - 2**20
"""Maximum size of the payloads decoded at once, as Arrow's offsets have 32 bits. Larger batches are decoded in parts."""


TOO_LARGE: Final = "the value takes more than the 2 GiB that a column holds"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch.

    Attributes:
        rows: one row for each message, in order; all columns are null if the message cannot be decoded.
        errors: the reason for each row that cannot be decoded, null for the others.
    """

    rows: pa.RecordBatch
    errors: pa.StringArray


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded batch.

    Attributes:
        payloads: one payload for each row; null for the null value of a SEPARATED KEY_VALUE, and if the row cannot be encoded.
        keys: the keys of a SEPARATED KEY_VALUE, otherwise None.
        errors: the reason for each row that cannot be encoded, null for the others.
    """

    payloads: pa.BinaryArray
    keys: pa.BinaryArray | None
    errors: pa.StringArray


class BatchDecoder(ABC):
    """Decodes batches of any size, by decoding parts whose columns have at most 2 GiB."""

    @property
    @abstractmethod
    def columns(self) -> pa.Schema:
        """The columns that messages are decoded into, all nullable."""

    @property
    @abstractmethod
    def separated(self) -> bool:
        """Whether keys are needed, as for a SEPARATED KEY_VALUE."""

    @abstractmethod
    def _decode(self, payloads: Any, versions: Any, keys: Any) -> Decoded:
        """Decode a part; raises pa.ArrowCapacityError if its columns are larger."""

    def decode_batch(
        self,
        payloads: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray | None = None,
        keys: pa.Array | pa.ChunkedArray | None = None,
    ) -> Decoded:
        """Decode many messages. A message that cannot be decoded becomes a row of nulls with a reason.

        Args:
            payloads: the payloads as binary; null for a message without a payload.
            versions: the numbers of versions, or Pulsar's schema versions of eight bytes; null for a message without a version.
            keys: the keys of the messages, of a SEPARATED KEY_VALUE; null is a null key.

        Raises:
            CodecUnavailable: there is no codec for the schema's type.
            ValueError: keys are required and missing, or the numbers of payloads, versions and keys differ.
            BatchTooLarge: a column would be larger than 2 GiB; `decode_parts` returns several batches.
        """
        parts = list(self.decode_parts(payloads, versions, keys))
        if len(parts) == 1:
            return parts[0]
        try:
            rows = pa.concat_batches([part.rows for part in parts])
        except pa.ArrowInvalid:
            raise BatchTooLarge(
                "a column of the decoded batch takes more than the 2 GiB that it holds: use decode_parts"
            ) from None
        return Decoded(rows, pa.concat_arrays([part.errors for part in parts]))

    def decode_parts(
        self,
        payloads: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray | None = None,
        keys: pa.Array | pa.ChunkedArray | None = None,
    ) -> Iterator[Decoded]:
        """Decode as `decode_batch` does, into as few batches as needed for columns of at most 2 GiB."""
        columns = (payloads, keys) if keys is not None else (payloads,)
        if len(payloads) <= 1 or all(column.nbytes <= MAX_BATCH_BYTES for column in columns):
            part: Decoded | None
            try:
                part = self._decode(payloads, versions, keys)
            except pa.ArrowCapacityError:
                part = self.reject(1, TOO_LARGE) if len(payloads) == 1 else None
            if part is not None:
                yield part
                return
        middle = len(payloads) // 2
        for start, length in ((0, middle), (middle, len(payloads) - middle)):
            yield from self.decode_parts(
                payloads.slice(start, length),
                None if versions is None else versions.slice(start, length),
                None if keys is None else keys.slice(start, length),
            )

    def reject(self, count: int, reason: str) -> Decoded:
        """Return a batch of rejected messages, all for the same reason."""
        nulls = [pa.nulls(count, column_type) for column_type in self.columns.types]
        return Decoded(make_record_batch(nulls, self.columns, count), pa.array([reason] * count, pa.string()))


def check_lengths(payloads: Any, versions: Any, keys: Any) -> None:
    """Raise ValueError if there are not as many versions or keys as payloads."""
    for name, column in (("versions", versions), ("keys", keys)):
        if column is not None and len(column) != len(payloads):
            raise ValueError(f"{len(payloads)} payloads have {len(column)} {name}: pass the same number of both")


def make_record_batch(arrays: list[pa.Array], columns: pa.Schema, count: int) -> pa.RecordBatch:
    """Return a batch of `count` rows, also of a record without fields."""
    if not arrays:
        # A record without fields has no columns from which Arrow could tell the number of rows.
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def make_reason_array(reasons: dict[int, str], count: int) -> pa.StringArray:
    """Return an array of `count` elements with the reasons at their rows and null elsewhere."""
    if not reasons:
        return pa.nulls(count, pa.string())
    return pa.array([reasons.get(row) for row in range(count)], pa.string())


def to_binary(values: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """Convert payloads or keys of any type to binary.

    Raises:
        pa.ArrowCapacityError: they are more than one array holds.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        return to_binary_array(array)
    try:
        return array if array.type == pa.binary() else array.cast(pa.binary())
    except pa.ArrowInvalid:
        # A dictionary-encoded array may be small, but its values are not.
        raise pa.ArrowCapacityError("more than 2 GiB") from None
