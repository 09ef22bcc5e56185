"""The columns of raw messages, under the names of this package or of Pulsar's Spark connector."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_type

from ..codec import Codec, message
from ..table_formats.errors import WrongArgument

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

KEY: Final = "__key"
TOPIC: Final = "__topic"
MESSAGE_ID: Final = "__messageId"
PUBLISH_TIME: Final = "__publishTime"
EVENT_TIME: Final = "__eventTime"
PROPERTIES: Final = "__messageProperties"
"""What stands beside a payload, as Pulsar's Spark connector calls it. `TOPIC` may name a partition."""

SCHEMA_VERSION: Final = message.SCHEMA_VERSION
ERROR: Final = message.ERROR
PAYLOAD: Final = message.PAYLOAD
"""What `decode` adds."""

Name = str | Sequence[str]
"""A column's name, or several, of which the first that is there is meant."""

PAYLOADS: Final = ("payload", "value")
VERSIONS: Final = ("schema_version", SCHEMA_VERSION)
KEYS: Final = ("key", KEY)

_BYTES: Final = (types.BinaryType, types.StringType, types.NullType)
"""Text is its bytes: payloads of JSON come as such from files of JSON."""

_TYPES: Final = {
    "payload": _BYTES,
    "version": (types.IntegralType, types.BinaryType, types.NullType),
    "key": _BYTES,
}


_ANSWER: Final = types.StructType().add("answer", types.BinaryType())


@dataclass(frozen=True, slots=True)
class Columns:
    """Which of the messages' columns hold what; `others` are passed through."""

    payload: str
    version: str | None
    key: str | None
    others: tuple[str, ...]

    def of(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None, pa.Array | None]:
        """Return payloads, versions and keys of a batch, as codecs take them."""
        payloads, versions, keys = (
            None if name is None else batch.column(name) for name in (self.payload, self.version, self.key)
        )
        return payloads, versions, keys


def message_columns(
    messages: DataFrame,
    codec: Codec,
    *,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
) -> Columns:
    """Return the columns of `messages` that `decode` reads and passes through, chosen by its arguments.

    Raises:
        WrongArgument: a column is missing, has another type, or would be there twice after decoding.
    """
    if codec.separated and key is None:
        raise WrongArgument(
            "the keys of this topic travel apart from its payloads: name their column with `key`"
        )
    there = messages.columns
    wanted = {"payload": _names(payload), "version": _names(version), "key": _names(key)}
    chosen = {what: next((name for name in names if name in there), None) for what, names in wanted.items()}
    needed = ["payload", *(["version"] if version is not None else []), *(["key"] if codec.separated else [])]
    missing = [what for what in needed if chosen[what] is None]
    if missing:
        names = ", ".join(" or ".join(wanted[what]) for what in missing)
        advice = "; say version=None (--unversioned) if no message has one" if "version" in missing else ""
        if "payload_b64" in there:
            advice = "; these are lines of `sample`: unbase64(payload_b64) is the payload, version the schema_version"
        raise WrongArgument(f"the messages have no column {names}; they have {', '.join(there)}{advice}")
    assert chosen["payload"] is not None  # noqa: S101  it was needed
    for what in needed:
        kind = messages.schema[str(chosen[what])].dataType
        if not isinstance(kind, _TYPES[what]):
            expected = "a whole number or Pulsar's eight bytes" if what == "version" else "binary"
            raise WrongArgument(
                f"the column {chosen[what]} is {kind.simpleString()}, and a message's {what} is {expected}: cast it"
            )
    others = tuple(name for name in there if name not in chosen.values())
    _check_distinct(messages.sparkSession, codec, ([KEY] if chosen["key"] is not None else []), others)
    return Columns(chosen["payload"], chosen["version"], chosen["key"], others)


def _names(wanted: Name | None) -> Sequence[str]:
    return () if wanted is None else (wanted,) if isinstance(wanted, str) else wanted


def _check_distinct(session: SparkSession, codec: Codec, *others: Sequence[str]) -> None:
    """Raise WrongArgument if two columns would have one name after decoding."""
    fold = folded(session)
    values = codec.columns.names
    after = [*values, *itertools.chain(*others), SCHEMA_VERSION, ERROR, PAYLOAD]
    alike = Counter(map(fold, after))
    twice = sorted({name for name in after if alike[fold(name)] > 1})
    if twice:
        advice = "rename or drop that of the messages"
        in_schema = Counter(map(str.casefold, values))
        if any(in_schema[name.casefold()] > 1 for name in twice):
            advice = "the schema has both, and Spark tells them apart only with spark.sql.caseSensitive=true"
        raise WrongArgument(f"two columns would be called {', '.join(twice)}: {advice}")


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: types.StructType,
) -> DataFrame:
    """Apply the function as the frame's own `mapInArrow` does, which takes a dot in a column's name for a field's, and no backtick at all.

    Raises:
        WrongArgument: PySpark does not hand a column of that type to Python.
    """
    for field in schema:
        try:
            to_arrow_type(field.dataType)
        except (PySparkTypeError, ValueError):
            raise WrongArgument(
                f"{field.name} is {field.dataType.simpleString()}, which PySpark does not hand to Python: cast the column, or drop it"
            ) from None
    names = frame.columns
    numbered = frame.toDF(*(f"column {number}" for number in range(len(names))))

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batch.rename_columns(names) for batch in batches)

    return numbered.mapInArrow(named, schema)


def answers(messages: DataFrame, work: Callable[[Iterable[pa.RecordBatch]], T]) -> list[T]:
    """Return what the function makes of the rows of each of Spark's tasks, in the order of the rows."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({_ANSWER.names[0]: pa.array([pickle.dumps(work(batches))], pa.binary())})

    # Of each partition, Spark takes what one attempt of its task returned. `collect` would take it for all if Java ends
    # while it hands over the results; of Arrow's batches the number comes last.
    found = map_in_arrow(messages, answer, _ANSWER).toArrow()
    return [pickle.loads(each) for each in found.column(0).to_pylist()]  # noqa: S301  from tasks of our own


def folded(session: SparkSession) -> Callable[[str], str]:
    """Return a name as Spark compares names: without case, unless the session says otherwise."""
    return str if session.conf.get("spark.sql.caseSensitive") == "true" else str.casefold
