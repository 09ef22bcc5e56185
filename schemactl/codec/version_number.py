"""The number of the schema that a message was written with, as Pulsar sends it: eight bytes, big-endian.

Clients before 2.4.0 sent 64 bytes, of which the first eight count (BookkeeperSchemaStorage.versionFromBytes).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import Unreadable
from .lanes import Ints

SIZES: Final = (8, 64)
"""Of a version in bytes."""

ODD_SIZE: Final = "a schema version of {} bytes: expected 8, or none"
"""Why a version of another size is none."""


def number(version: int | bytes | None) -> int | None:
    """Return the number in a message's schema version; None where the message has none. Raises Unreadable: the bytes are no version."""
    if not isinstance(version, bytes | bytearray):
        return version
    if not version:
        return None
    if len(version) not in SIZES:
        raise Unreadable(ODD_SIZE.format(len(version)))
    return int.from_bytes(version[:8], "big", signed=True)


def numbers(versions: pa.Array) -> tuple[pa.Int64Array, dict[int, str]]:
    """Return the numbers in many schema versions, null where there is none, and the reason for each that is no version."""
    if pa.types.is_dictionary(versions.type):
        versions = versions.dictionary_decode()
    if pa.types.is_integer(versions.type) or pa.types.is_null(versions.type):
        # A number beyond 63 bits becomes a negative one, which is no version either.
        return versions.cast(pa.int64(), safe=False), {}
    versions = versions.cast(pa.binary())
    sizes = np.asarray(pc.fill_null(pc.binary_length(versions), 0))
    good = np.isin(sizes, SIZES)
    found = np.zeros(len(versions), np.int64)
    if good.any():
        first = pc.binary_slice(versions.filter(pa.array(good)), 0, 8)
        found[good] = np.frombuffer(first.buffers()[2], ">i8")[: len(first)]
    odd = np.flatnonzero(~good & (sizes != 0))
    return pa.array(found, mask=~good), {int(row): ODD_SIZE.format(sizes[row]) for row in odd}


def grouped(numbers: pa.Int64Array) -> list[tuple[int | None, Ints]]:
    """Return the distinct numbers, each with its rows in order; None stands for those that are null. At least one group."""
    rows = np.flatnonzero(np.asarray(numbers.is_valid())) if numbers.null_count else np.arange(len(numbers))
    values = np.asarray(numbers.drop_null())
    groups: list[tuple[int | None, Ints]] = []
    if len(values):
        lowest = int(values.min())
        found: Ints | None = None
        codes = values - lowest
        if int(values.max()) - lowest < 2**16:
            # Short codes are sorted by digits, many times as fast.
            codes = codes.astype(np.uint16)
        else:
            found, codes = np.unique(values, return_inverse=True)
        order = rows.take(np.argsort(codes, kind="stable"))
        counts = np.bincount(codes)
        bounds = np.cumsum(counts)
        for code in np.flatnonzero(counts).tolist():
            number = lowest + code if found is None else int(found[code])
            groups.append((number, order[bounds[code] - counts[code] : bounds[code]]))
    if numbers.null_count or not groups:
        groups.append((None, np.flatnonzero(np.asarray(numbers.is_null()))))
    return groups
