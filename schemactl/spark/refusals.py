"""Why messages cannot be read, without the values of those that can."""

from __future__ import annotations

import pyarrow as pa

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
