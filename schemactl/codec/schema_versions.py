"""Read the schema versions of messages, and group messages by version."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .byte_batch import Ints
from .definition import Unreadable

NO_VERSION: Final = "the message has no schema version, which would show its kind"

_VERSION_SIZES: Final = (8, 64)
"""The sizes of a schema version in bytes.

It is a big-endian number of eight bytes. Clients before 2.4.0 append 56 bytes that are ignored (BookkeeperSchemaStorage.versionFromBytes).
"""

_WRONG_VERSION_SIZE: Final = "a schema version of {} bytes: expected 8, or none"


def parse_version(version: int | bytes | None) -> int | None:
    """Return the number of a message's schema version, or None if the message has no version.

    Raises:
        Unreadable: the bytes are not a schema version.
    """
    if not isinstance(version, bytes | bytearray):
        return version
    if not version:
        return None
    if len(version) not in _VERSION_SIZES:
        raise Unreadable(_WRONG_VERSION_SIZE.format(len(version)))
    return int.from_bytes(version[:8], "big", signed=True)


def parse_versions(versions: pa.Array | pa.ChunkedArray) -> tuple[pa.Int64Array, dict[int, str]]:
    """Return the numbers of schema versions, null where a message has no version, and the reasons of rows without a valid version."""
    if isinstance(versions, pa.ChunkedArray):
        versions = versions.combine_chunks()
    if pa.types.is_dictionary(versions.type):
        versions = versions.dictionary_decode()
    if pa.types.is_integer(versions.type) or pa.types.is_null(versions.type):
        # A number of more than 63 bits becomes a negative one, which is also not a version.
        return versions.cast(pa.int64(), safe=False), {}
    versions = versions.cast(pa.binary())
    sizes = np.asarray(pc.fill_null(pc.binary_length(versions), 0))
    valid = np.isin(sizes, _VERSION_SIZES)
    values = np.zeros(len(versions), np.int64)
    if valid.any():
        first_bytes = pc.binary_slice(versions.filter(pa.array(valid)), 0, 8)
        values[valid] = np.frombuffer(first_bytes.buffers()[2], ">i8")[: len(first_bytes)]
    invalid_rows = np.flatnonzero(~valid & (sizes != 0))
    return pa.array(values, mask=~valid), {int(row): _WRONG_VERSION_SIZE.format(sizes[row]) for row in invalid_rows}


def group_rows(numbers: pa.Int64Array) -> list[tuple[int | None, Ints]]:
    """Return the distinct numbers in ascending order, each with its rows; None for null, last. There is always at least one group."""
    encoded = numbers.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary.to_pylist() or [None]
    codes = np.asarray(encoded.indices)
    # numpy sorts short integers by digits, many times as fast.
    order = np.argsort(codes.astype(np.uint16) if len(distinct) < 2**16 else codes, kind="stable")
    bounds = np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1]
    groups = zip(distinct, np.split(order, bounds), strict=True)
    return sorted(groups, key=lambda group: (group[0] is None, group[0] or 0))
