"""The batches of a landing task: small batches are joined, and large ones are not copied."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.spark.landing_sink import combine_batches

_ROWS, _BYTES = 8, 400
"""Small maxima of a batch."""
_COLUMNS = pa.schema({"payload": pa.binary(), "number": pa.int64()})


def _make_batches(sizes: list[list[int]]) -> list[pa.RecordBatch]:
    """Return a batch for each list of payload sizes, with numbered rows."""
    payloads = pa.array([b"x" * size for batch in sizes for size in batch], pa.binary())
    whole = pa.record_batch([payloads, pa.array(range(len(payloads)), pa.int64())], schema=_COLUMNS)
    starts = [sum(map(len, sizes[:at])) for at in range(len(sizes))]
    return [whole.slice(start, len(batch)) for start, batch in zip(starts, sizes, strict=True)]


def _are_small(batches: list[pa.RecordBatch]) -> bool:
    rows: int = sum(batch.num_rows for batch in batches)
    size_bytes: int = sum(batch.nbytes for batch in batches)
    return rows <= _ROWS and size_bytes <= _BYTES


@EXAMPLES
@given(st.lists(st.lists(st.sampled_from([0, 1, 30, 300]), min_size=1, max_size=12), max_size=12))
def test_batches_are_joined_in_order_while_they_are_small_together(sizes: list[list[int]]) -> None:
    batches = _make_batches(sizes)
    combined_batches = list(combine_batches(batches, max_rows=_ROWS, max_bytes=_BYTES))
    assert pa.Table.from_batches(combined_batches, _COLUMNS).equals(pa.Table.from_batches(batches, _COLUMNS))
    ends = np.cumsum([batch.num_rows for batch in combined_batches]).tolist()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    first = [starts.index(end) for end in [0, *ends]]
    for here, following in pairwise(first):
        assert following - here == 1 or _are_small(batches[here:following])
        assert following == len(batches) or not _are_small(batches[here : following + 1])


def test_a_large_batch_is_not_copied_and_not_kept_waiting() -> None:
    small, large, last = _make_batches([[1], [1000], [1]])
    source_batches = iter([small, large, last])
    combined_batches = combine_batches(source_batches, max_rows=_ROWS, max_bytes=_BYTES)
    assert next(combined_batches).equals(small)
    assert next(combined_batches) is large
    assert next(combined_batches).equals(last)
