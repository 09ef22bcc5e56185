"""The reasons of rejected messages, and the mark that connects decoded rows to their codec."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql

from ..codec import Codec, Definition, KeyValue
from .columns import ERROR
from .errors import WrongArgument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKED_AT: Final = 1_000

_LAST: Final = "schemactl.last"
_DIGEST: Final = "schemactl.digest"
"""Of the column of errors: the last version that the codec knew, and the digest of all up to it."""


def mark_of(codec: Codec) -> dict[str, Any]:
    """Return the metadata of the error column, which says which codec the rows were decoded with."""
    last = max((*(one.number for one in codec.versions), *_unreadable(codec)), default=-1)
    return {_LAST: last, _DIGEST: _digest(codec, last)}


def check_mark(metadata: Mapping[str, Any], codec: Codec) -> None:
    """Raise WrongArgument if rows with that mark were decoded with the codec of another topic, or with a newer one."""
    if _DIGEST in metadata and _digest(codec, metadata[_LAST]) != metadata[_DIGEST]:
        raise WrongArgument(
            "these rows were decoded with another codec, of another topic or with other versions; pass the codec that "
            "decode() got"
        )


def _digest(codec: Codec, last: int) -> str:
    """Of all versions up to `last`."""
    texts = [repr((one.number, _content(one.schema))) for one in codec.versions if one.number <= last]
    texts += [repr(number) for number in sorted(_unreadable(codec)) if number <= last]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _unreadable(codec: Codec) -> Mapping[int, str]:
    """Return the numbers by which no message can be read."""
    return codec.numbers.unreadable if codec.numbers else {}


def _content(schema: Definition | KeyValue) -> tuple[Any, ...]:
    if isinstance(schema, KeyValue):
        return schema.encoding, _content(schema.key), _content(schema.value)
    return schema.type, schema.text, sorted(schema.properties.items()), schema.proto


def commonest_reason(session: SparkSession, folder: str) -> str:
    """Return the reason that most of the messages rejected last have; only the latest thousand are read."""
    rejected = session.read.parquet(folder)
    last = rejected.orderBy(sql.desc("_metadata.file_modification_time")).limit(_LOOKED_AT).select(ERROR)
    [row] = last.groupBy(ERROR).count().orderBy(sql.desc("count"), ERROR).limit(1).collect()
    reason: str = row[ERROR]
    return reason


def reasons_of(
    codec: Codec, payloads: pa.Array, versions: pa.Array | None = None, keys: pa.Array | None = None
) -> pa.Array:
    """Return the reason of each message that `codec` does not read, null for one that it does, however large their values are.

    Arguments are as for `Codec.decode_batch`; the keys of a topic that does not separate them are not looked at.
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
    """Return `reasons_of` the rows where `rows` is true, and null elsewhere; nothing else is read."""
    nothing = pa.nulls(len(rows), pa.string())
    if not rows.true_count:
        return nothing
    taken = (None if column is None else column.filter(rows) for column in (payloads, versions, keys))
    return pc.replace_with_mask(nothing, rows, reasons_of(codec, *taken))
