"""Which messages can be read, with one codec or with one that takes another's place; and how many of each version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .topic import Codec
from .version_number import numbers

_ALL: Final = pc.CountOptions(mode="all")


class Count(NamedTuple):
    """The messages of one version.

    Attributes:
        version: its number; None: messages without one.
        messages: how many there are.
        unreadable: how many of them are rejected.
        unreadable_with_approved: how many of those the codec that is compared with cannot read either.
    """

    version: int | None
    messages: int = 0
    unreadable: int = 0
    unreadable_with_approved: int = 0

    def plus(self, more: Count) -> Count:
        """Return the sum of both, under this one's version."""
        return Count(self.version, *(one + other for one, other in zip(self[1:], more[1:], strict=True)))


class Judged(NamedTuple):
    """What reading messages came to, row by row.

    Attributes:
        versions: the numbers of their schemas, null where a message says none.
        reasons: why each is rejected, null where it is read.
        with_approved: why the codec that is compared with rejects those, too; null for all others.
    """

    versions: pa.Array
    reasons: pa.Array
    with_approved: pa.Array

    def counts(self) -> Iterator[Count]:
        """Yield a count for each version."""
        unreadable = (column.is_valid().cast(pa.int64()) for column in (self.reasons, self.with_approved))
        table = pa.table([self.versions, *unreadable], names=["version", "unreadable", "with_approved"])
        sums = table.group_by("version", use_threads=False).aggregate(
            [("version", "count", _ALL), ("unreadable", "sum"), ("with_approved", "sum")]
        )
        return (Count(*row.values()) for row in sums.to_pylist())


def judge(
    codec: Codec,
    payloads: pa.Array,
    versions: pa.Array | None,
    keys: pa.Array | None,
    against: Codec | None = None,
) -> Judged:
    """Return which messages the codec reads, however large their values are, and which of the others `against` reads.

    The other arguments are as for `Codec.decode_batch`, as is what is raised.
    """
    reasons = _reasons(codec, payloads, versions, keys)
    with_approved = pa.nulls(len(payloads), pa.string())
    unreadable = reasons.is_valid()
    if against is not None and unreadable.true_count:
        lost = (None if each is None else each.filter(unreadable) for each in (payloads, versions, keys))
        with_approved = pc.replace_with_mask(with_approved, unreadable, _reasons(against, *lost))
    known = pa.nulls(len(payloads), pa.int64()) if versions is None else numbers(versions)[0]
    return Judged(known, reasons, with_approved)


def summed(counts: Iterable[Count]) -> list[Count]:
    """Return one count for each version."""
    found: dict[int | None, Count] = {}
    for count in counts:
        found[count.version] = found.get(count.version, Count(count.version)).plus(count)
    return [*found.values()]


def _reasons(
    codec: Codec, payloads: pa.Array, versions: pa.Array | None, keys: pa.Array | None = None
) -> pa.Array:
    keys = keys if codec.separated else None
    return pa.concat_arrays([part.errors for part in codec.decode_parts(payloads, versions, keys)])
