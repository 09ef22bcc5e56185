"""Why messages cannot be read, without the values of those that can."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..codec import Codec


def reasons_of(
    codec: Codec, payloads: pa.Array, versions: pa.Array | None = None, keys: pa.Array | None = None
) -> pa.Array:
    """The reason of each message that `codec` does not read, null for one that it does, however large their values are.

    Args:
        codec: of their topic.
        payloads: as for `Codec.decode_batch`.
        versions: as for `Codec.decode_batch`.
        keys: as for `Codec.decode_batch`; those of a topic whose keys do not travel apart are not looked at.
    """
    parts = codec.decode_parts(payloads, versions, keys if codec.separated else None)
    return pa.concat_arrays([part.errors for part in parts])


def reasons_at(
    codec: Codec,
    rows: pa.BooleanArray,
    payloads: pa.Array,
    versions: pa.Array | None = None,
    keys: pa.Array | None = None,
) -> pa.Array:
    """As `reasons_of` where `rows` is true, and null elsewhere: nothing else is read."""
    nothing = pa.nulls(len(rows), pa.string())
    if not rows.true_count:
        return nothing
    taken = (None if column is None else column.filter(rows) for column in (payloads, versions, keys))
    return pc.replace_with_mask(nothing, rows, reasons_of(codec, *taken))
