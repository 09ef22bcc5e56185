"""Count the stored messages that can and cannot be decoded, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..codec import Codec
from ..codec.topic import Count, judge, summed
from .columns import KEYS, MESSAGE_ID, PAYLOADS, VERSIONS, Columns, Name, answers, message_columns
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Unread(NamedTuple):
    """A message that cannot be read, and why the codec that is compared with cannot read it either (None: it can).

    `message_id` is what the column `__messageId` has, bytes in hex.
    """

    version: int | None
    reason: str
    unreadable_with_approved: str | None
    payload: bytes | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Verified:
    """How many messages were read, by version, those without one last; and the first that cannot be read, in the order of the input."""

    counts: tuple[Count, ...]
    first: tuple[Unread, ...]

    @property
    def total(self) -> Count:
        """All versions together."""
        return reduce(Count.plus, self.counts, Count(None))


def verify(
    messages: DataFrame,
    codec: Codec,
    *,
    against: Codec | None = None,
    only_new_loss: bool = False,
    shown: int = 10,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
) -> Verified:
    """Return how many of the messages `codec` reads, by version, and the first `shown` that it rejects.

    `against` is another codec of the topic: what neither can read was lost before, and with `only_new_loss` is not among the first.
    All other arguments are as for `decode`, as is what is raised.
    """
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    needed = [name for name in (columns.payload, columns.version, columns.key) if name is not None]
    if MESSAGE_ID in columns.others:
        needed.append(MESSAGE_ID)
    parts = answers(
        messages.drop(*(name for name in messages.columns if name not in needed)),
        partial(
            _verify_part,
            codec=codec,
            against=against,
            columns=columns,
            only_new_loss=only_new_loss,
            shown=shown,
        ),
    )
    counts = summed(count for part in parts for count in part.counts)
    order = sorted(counts, key=lambda count: (count.version is None, count.version or 0))
    return Verified(tuple(order), tuple(unread for part in parts for unread in part.first)[:shown])


def _verify_part(
    batches: Iterable[pa.RecordBatch],
    *,
    codec: Codec,
    against: Codec | None,
    columns: Columns,
    only_new_loss: bool,
    shown: int,
) -> Verified:
    """Return what the messages of a task came to, its versions in any order."""
    reduce_worker_overhead()
    counts: list[Count] = []
    first: list[Unread] = []
    for batch in batches:
        judged = judge(codec, *columns.of(batch), against)
        counts = summed([*counts, *judged.counts()])
        wanted = judged.reasons.is_valid()
        if only_new_loss:
            wanted = pc.and_(wanted, judged.with_approved.is_null())
        rows = pc.indices_nonzero(wanted)[: shown - len(first)]
        payloads = batch.column(columns.payload)
        ids = batch.column(MESSAGE_ID) if MESSAGE_ID in batch.schema.names else pa.nulls(batch.num_rows)
        found = (each.take(rows).to_pylist() for each in (*judged, payloads, ids))
        for version, reason, with_approved, payload, id_ in zip(*found, strict=True):
            shown_id = id_.hex() if isinstance(id_, bytes) else None if id_ is None else str(id_)
            first.append(Unread(version, reason, with_approved, payload, shown_id))
    return Verified(tuple(counts), tuple(first))
