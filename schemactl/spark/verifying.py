"""Count the stored messages that can and cannot be decoded, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..codec import Codec
from ..codec.version_number import numbers
from .arrow_types import struct_of
from .columns import KEYS, MESSAGE_ID, PAYLOADS, VERSIONS, Columns, Name, map_in_arrow, message_columns
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
        return Count(self.version, *(one + other for one, other in zip(self[1:], more[1:], strict=True)))


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


_FIRST: Final = {
    "part": pa.int32(),
    "row": pa.int64(),
    "version": pa.int64(),
    "reason": pa.string(),
    "unreadable_with_approved": pa.string(),
    "payload": pa.binary(),
    "message_id": pa.string(),
}
_ANSWER: Final = pa.schema(
    {"count": pa.struct(dict.fromkeys(Count._fields, pa.int64())), "first": pa.struct(_FIRST)}
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
    counts = _summed(Count(*row["count"]) for row in found if row["count"] is not None)
    first = [Unread(*row["first"]) for row in found if row["first"] is not None]
    order = sorted(counts, key=lambda count: (count.version is None, count.version or 0))
    return Verified(tuple(order), tuple(sorted(first, key=lambda unread: unread[:2])[:shown]))


def _summed(counts: Iterable[Count]) -> list[Count]:
    """Return one count for each version."""
    found: dict[int | None, Count] = {}
    for count in counts:
        found[count.version] = found.get(count.version, Count(count.version)).plus(count)
    return [*found.values()]


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
    part = context.partitionId() if context is not None else 0
    counts: list[Count] = []
    first: list[Unread] = []
    rows = 0
    for batch in batches:
        read = partial(_reasons, batch=batch, columns=columns)
        reasons = read(codec)
        unreadable = reasons.is_valid()
        with_approved = pa.nulls(batch.num_rows, pa.string())
        if against is not None and unreadable.true_count:
            with_approved = pc.replace_with_mask(
                with_approved, unreadable, read(against, batch=batch.filter(unreadable))
            )
        versions = _versions(batch, columns)
        counts = _summed([*counts, *_counted(versions, unreadable, with_approved.is_valid())])
        wanted = pc.and_(unreadable, with_approved.is_null()) if only_new_loss else unreadable
        first += [
            Unread(
                part,
                rows + row,
                versions[row].as_py(),
                reasons[row].as_py(),
                with_approved[row].as_py(),
                batch.column(columns.payload)[row].as_py(),
                _message_id(batch, row),
            )
            for row in pc.indices_nonzero(wanted).to_pylist()[: shown - len(first)]
        ]
        rows += batch.num_rows
    answer = [
        *({"count": count._asdict()} for count in counts),
        *({"first": unread._asdict()} for unread in first),
    ]
    yield pa.RecordBatch.from_pylist(answer, schema=_ANSWER)


def _reasons(codec: Codec, batch: pa.RecordBatch, columns: Columns) -> pa.Array:
    """Return why each message of the batch is rejected, null for one that is read, however large their values are."""
    payloads, versions, keys = (
        None if name is None else batch.column(name)
        for name in (columns.payload, columns.version, columns.key if codec.separated else None)
    )
    return pa.concat_arrays([part.errors for part in codec.decode_parts(payloads, versions, keys)])


def _versions(batch: pa.RecordBatch, columns: Columns) -> pa.Array:
    if columns.version is None:
        return pa.nulls(batch.num_rows, pa.int64())
    return numbers(batch.column(columns.version))[0]


def _counted(versions: pa.Array, unreadable: pa.Array, with_approved: pa.Array) -> Iterator[Count]:
    columns = [versions, unreadable.cast(pa.int64()), with_approved.cast(pa.int64())]
    table = pa.table(columns, names=["version", "unreadable", "with_approved"])
    sums = table.group_by("version", use_threads=False).aggregate(
        [("version", "count", _ALL), ("unreadable", "sum"), ("with_approved", "sum")]
    )
    return (Count(*row.values()) for row in sums.to_pylist())
