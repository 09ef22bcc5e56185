"""Count the stored messages that can and cannot be decoded, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..codec import Codec
from ..codec.verifying import Count, judge, summed
from .columns import KEYS, MESSAGE_ID, PAYLOADS, VERSIONS, Columns, Name, answers, message_columns
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Unread(NamedTuple):
    """A message that cannot be read.

    Attributes:
        version: the number of its schema.
        reason: why not.
        unreadable_with_approved: why the codec that is compared with cannot read it; None: it can.
        payload: its bytes; None: it has none.
        message_id: as the column `__messageId` has it (bytes in hex), if there is one.
    """

    version: int | None
    reason: str
    unreadable_with_approved: str | None
    payload: bytes | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Verified:
    """What reading every message came to.

    Attributes:
        counts: by version, those without one last.
        first: the first that cannot be read (only_new_loss: that this codec alone cannot), in the order of the input.
    """

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


def _message_id(batch: pa.RecordBatch, row: int) -> str | None:
    if MESSAGE_ID not in batch.schema.names:
        return None
    found = batch.column(MESSAGE_ID)[row].as_py()
    return found.hex() if isinstance(found, bytes) else None if found is None else str(found)


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
        first += [
            Unread(
                judged.versions[row].as_py(),
                judged.reasons[row].as_py(),
                judged.with_approved[row].as_py(),
                batch.column(columns.payload)[row].as_py(),
                _message_id(batch, row),
            )
            for row in pc.indices_nonzero(wanted).to_pylist()[: shown - len(first)]
        ]
    return Verified(tuple(counts), tuple(first))
