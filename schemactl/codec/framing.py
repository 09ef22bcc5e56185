"""How an INLINE key and value share a payload: each behind its length in four bytes, big-endian; -1 is null.

Follows org.apache.pulsar.common.schema.KeyValue.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import Unreadable
from .lanes import Ints, Lanes, Mask, pairs, sized


def join(key: bytes | None, value: bytes | None) -> bytes:
    """Return the payload of two halves."""
    return b"".join(
        (-1 if half is None else len(half)).to_bytes(4, "big", signed=True) + (half or b"")
        for half in (key, value)
    )


def join_lanes(keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
    """Return the payloads of many pairs of halves (see `join`)."""
    pieces = []
    for halves in (keys, values):
        lengths = pc.fill_null(pc.binary_length(halves), -1)
        pieces += [sized(np.asarray(lengths).astype(">i4").view(np.uint8), 4), pc.fill_null(halves, b"")]
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))


def split(payload: bytes, *, strict: bool = False) -> tuple[bytes | None, bytes | None]:
    """Return the halves of a payload.

    Raises:
        Unreadable: a length is missing or says more than is there; `strict`: something follows the value.
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


def split_lanes(payloads: pa.BinaryArray, *, strict: bool) -> tuple[pa.BinaryArray, pa.BinaryArray, Mask]:
    """Both halves of many payloads, null where they are, and the rows that `split` refuses."""
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
