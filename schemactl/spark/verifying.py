"""Count the stored messages that can and cannot be decoded, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..codec import Codec
from ..codec.version_number import numbers
from .arrow_types import struct_of
from .columns import KEYS, MESSAGE_ID, PAYLOADS, VERSIONS, Columns, Name, map_in_arrow, message_columns
from .rejections import reasons_at, reasons_of
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        """Both together, under this one's version."""
        return Count(
            self.version,
            self.messages + more.messages,
            self.unreadable + more.unreadable,
            self.unreadable_with_approved + more.unreadable_with_approved,
        )


class Unread(NamedTuple):
    """A message that cannot be read.

    Attributes:
        part, row: where it is: the task that met it, and the row's number there, from 0.
        version: the number of its schema.
        reason: why not.
        unreadable_with_approved: why the codec that is compared with cannot read it; None: it can.
        payload: its bytes; None: it has none.
        message_id: as the column `__messageId` has it (bytes in hex), if there is one.
    """

    part: int
    row: int
    version: int | None
    reason: str
    unreadable_with_approved: str | None
    payload: bytes | None
    message_id: str | None


_ANSWER: Final = pa.schema(
    [
        ("count", pa.struct([(name, pa.int64()) for name in Count._fields])),
        (
            "first",
            pa.struct(
                [
                    ("part", pa.int32()),
                    ("row", pa.int64()),
                    ("version", pa.int64()),
                    ("reason", pa.string()),
                    ("unreadable_with_approved", pa.string()),
                    ("payload", pa.binary()),
                    ("message_id", pa.string()),
                ]
            ),
        ),
    ]
)
"""What a task gives back: a row for each version with its counts, and a row for each of the first unreadable messages."""


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
    found = map_in_arrow(
        messages.drop(*(name for name in messages.columns if name not in needed)),
        partial(
            _verify_part,
            codec=codec,
            against=against,
            columns=columns,
            only_new_loss=only_new_loss,
            shown=shown,
        ),
        struct_of(_ANSWER),
    ).collect()
    counts: dict[int | None, Count] = {}
    for count in (Count(*row["count"]) for row in found if row["count"] is not None):
        counts[count.version] = counts.get(count.version, Count(count.version)).plus(count)
    first = [Unread(*row["first"]) for row in found if row["first"] is not None]
    order = sorted(counts.values(), key=lambda count: (count.version is None, count.version or 0))
    return Verified(tuple(order), tuple(sorted(first, key=lambda unread: unread[:2])[:shown]))


@dataclass(slots=True)
class _Tally:
    """What one task has counted so far."""

    only_new_loss: bool
    shown: int
    part: int
    rows: int = 0
    counts: dict[int | None, Count] = field(default_factory=dict)
    first: list[Unread] = field(default_factory=list)

    def add(
        self,
        batch: pa.RecordBatch,
        versions: pa.Array,
        reasons: pa.Array,
        unreadable_with_approved: pa.Array,
        columns: Columns,
    ) -> None:
        """Count a batch more, with the reason for each of its rejected rows."""
        unreadable, both = (
            reasons.is_valid(),
            pc.and_(reasons.is_valid(), unreadable_with_approved.is_valid()),
        )
        table = pa.table(
            {
                "version": versions,
                "unreadable": unreadable.cast(pa.int64()),
                "unreadable_with_approved": both.cast(pa.int64()),
            }
        )
        sums = table.group_by("version").aggregate(
            [("version", "count", _ALL), ("unreadable", "sum"), ("unreadable_with_approved", "sum")]
        )
        for row in sums.to_pylist():
            more = Count(
                row["version"],
                row["version_count"],
                row["unreadable_sum"],
                row["unreadable_with_approved_sum"],
            )
            self.counts[more.version] = self.counts.get(more.version, Count(more.version)).plus(more)
        wanted = pc.and_not(unreadable, both) if self.only_new_loss else unreadable
        for row in pc.indices_nonzero(wanted).to_pylist()[: self.shown - len(self.first)]:
            self.first.append(
                Unread(
                    self.part,
                    self.rows + row,
                    versions[row].as_py(),
                    reasons[row].as_py(),
                    unreadable_with_approved[row].as_py(),
                    batch.column(columns.payload)[row].as_py(),
                    _message_id(batch, row),
                )
            )
        self.rows += batch.num_rows


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
) -> Iterator[pa.RecordBatch]:
    reduce_worker_overhead()
    from pyspark import TaskContext

    context = TaskContext.get()
    tally = _Tally(only_new_loss, shown, context.partitionId() if context is not None else 0)
    for batch in batches:
        payloads = batch.column(columns.payload)
        given = None if columns.version is None else batch.column(columns.version)
        keys = None if columns.key is None else batch.column(columns.key)
        reasons = reasons_of(codec, payloads, given, keys)
        unreadable_with_approved = pa.nulls(len(payloads), pa.string())
        if against is not None:
            unreadable_with_approved = reasons_at(against, reasons.is_valid(), payloads, given, keys)
        versions = pa.nulls(len(payloads), pa.int64()) if given is None else numbers(given)[0]
        tally.add(batch, versions, reasons, unreadable_with_approved, columns)
    yield _answer(tally)


def _answer(tally: _Tally) -> pa.RecordBatch:
    rows = [
        *({"count": count._asdict()} for count in tally.counts.values()),
        *({"first": unread._asdict()} for unread in tally.first),
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_ANSWER)
