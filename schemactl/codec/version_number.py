"""The number of the schema that a message was written with, as Pulsar sends it: eight bytes, big-endian."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import Unreadable

_SIZE = 8


def number(version: int | bytes | None) -> int | None:
    """The number in a message's schema version; None where the message has none.

    Raises:
        Unreadable: the bytes are no version.
    """
    if not isinstance(version, bytes | bytearray):
        return version
    if not version:
        return None
    if len(version) != _SIZE:
        raise Unreadable(_reason(len(version)))
    return int.from_bytes(version, "big", signed=True)


def numbers(versions: pa.Array) -> tuple[pa.Int64Array, dict[int, str]]:
    """The numbers in many schema versions, null where there is none, and the reason for each that is no version."""
    if not (pa.types.is_binary(versions.type) or pa.types.is_large_binary(versions.type)):
        return versions.cast(pa.int64()), {}
    sizes = pc.fill_null(pc.binary_length(versions), 0)
    odd = np.flatnonzero(np.asarray(pc.and_(pc.not_equal(sizes, 0), pc.not_equal(sizes, _SIZE))))
    good = np.asarray(pc.equal(sizes, _SIZE))
    joined = b"".join(versions.filter(pa.array(good)).to_pylist())
    found = np.zeros(len(versions), np.int64)
    found[good] = np.frombuffer(joined, ">i8")
    return pa.array(found, mask=~good), {int(row): _reason(sizes[int(row)].as_py()) for row in odd}


def _reason(size: int) -> str:
    return f"a schema version of {size} bytes: expected {_SIZE}, or none"
