"""Count by version the messages that can and cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .batches import BatchDecoder
from .schema_versions import parse_versions

_COUNT_ALL: Final = pc.CountOptions(mode="all")


class Count(NamedTuple):
    """The numbers of messages of one version.

    Attributes:
        version: the number of the version; None for messages without a version.
        messages: the number of messages.
        unreadable: the number of messages that cannot be decoded.
        unreadable_with_approved: the number of messages that the codec compared with cannot decode either.
    """

    version: int | None
    messages: int = 0
    unreadable: int = 0
    unreadable_with_approved: int = 0

    def add(self, other: Count) -> Count:
        """Return the sums of both, with the version of this one."""
        return Count(self.version, *(left + right for left, right in zip(self[1:], other[1:], strict=True)))


class DecodingResult(NamedTuple):
    """The result of decoding messages, as columns with one element for each message.

    Attributes:
        versions: the numbers of versions, null for messages without a version.
        reasons: the reasons for rejected messages, null for others.
        with_approved: the reasons of the codec compared with, null for messages that it or the codec itself can decode.
    """

    versions: pa.Array
    reasons: pa.Array
    with_approved: pa.Array

    def count_messages(self) -> Iterator[Count]:
        """Count the messages of each version."""
        unreadable = (column.is_valid().cast(pa.int64()) for column in (self.reasons, self.with_approved))
        table = pa.table([self.versions, *unreadable], names=["version", "unreadable", "with_approved"])
        sums = table.group_by("version", use_threads=False).aggregate(
            [("version", "count", _COUNT_ALL), ("unreadable", "sum"), ("with_approved", "sum")]
        )
        return (Count(*row.values()) for row in sums.to_pylist())


def judge_messages(
    codec: BatchDecoder,
    payloads: pa.Array,
    versions: pa.Array | None,
    keys: pa.Array | None,
    against: BatchDecoder | None = None,
) -> DecodingResult:
    """Decode messages of any size with a codec, and the rejected messages with the codec `against`.

    For the other arguments and errors see `Codec.decode_batch`.
    """
    reasons = _collect_reasons(codec, payloads, versions, keys)
    with_approved = pa.nulls(len(payloads), pa.string())
    unreadable = reasons.is_valid()
    if against is not None and unreadable.true_count:
        rejected = (None if column is None else column.filter(unreadable) for column in (payloads, versions, keys))
        with_approved = pc.replace_with_mask(with_approved, unreadable, _collect_reasons(against, *rejected))
    version_numbers = pa.nulls(len(payloads), pa.int64()) if versions is None else parse_versions(versions)[0]
    return DecodingResult(version_numbers, reasons, with_approved)


def sum_counts(counts: Iterable[Count]) -> list[Count]:
    """Add the counts of each version."""
    sums: dict[int | None, Count] = {}
    for count in counts:
        sums[count.version] = sums.get(count.version, Count(count.version)).add(count)
    return [*sums.values()]


def _collect_reasons(
    codec: BatchDecoder, payloads: pa.Array, versions: pa.Array | None, keys: pa.Array | None
) -> pa.Array:
    keys = keys if codec.separated else None
    return pa.concat_arrays([part.errors for part in codec.decode_parts(payloads, versions, keys)])
