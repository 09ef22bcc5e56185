"""The columns of raw messages, with schemactl's names or the names of Pulsar's Spark connector."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark.sql import types

from ..codec import Codec, KindsCodec, definition
from .column_types import to_arrow_type
from .tables.landing_table import WrongArgument

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


T = TypeVar("T")

KEY: Final = "__key"
TOPIC: Final = "__topic"
MESSAGE_ID: Final = "__messageId"
PUBLISH_TIME: Final = "__publishTime"
EVENT_TIME: Final = "__eventTime"
PROPERTIES: Final = "__messageProperties"
"""Columns next to the payload, with the names of Pulsar's Spark connector. `TOPIC` may name a partition."""

TARGET: Final = "__target"
"""The column with the target that each message is from, by whose version numbers it is decoded."""

SCHEMA_VERSION: Final = definition.SCHEMA_VERSION
ERROR: Final = definition.ERROR
PAYLOAD: Final = definition.PAYLOAD
"""Columns that `decode` adds."""

MESSAGE_COLUMNS: Final = frozenset(
    {KEY, TOPIC, MESSAGE_ID, PUBLISH_TIME, EVENT_TIME, PROPERTIES, TARGET, SCHEMA_VERSION, ERROR, PAYLOAD}
)

Name = str | Sequence[str]
"""A column's name, or several names, of which the first existing one counts."""

PAYLOADS: Final = ("payload", "value")
VERSIONS: Final = ("schema_version", SCHEMA_VERSION)
KEYS: Final = ("key", KEY)

_BYTES: Final = (types.BinaryType, types.StringType, types.NullType)
"""Text counts as its bytes, since JSON payloads are text in JSON files."""

_TYPES: Final = {"payload": _BYTES, "version": (types.IntegralType, types.BinaryType, types.NullType), "key": _BYTES}

_TARGET_TYPES: Final = (types.StringType, types.NullType)

_RESULT: Final = types.StructType().add("answer", types.BinaryType())


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the messages' columns by their meaning; `others` are passed through."""

    payload: str
    version: str | None
    key: str | None
    others: tuple[str, ...]

    def of(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None, pa.Array | None]:
        """Return the payloads, versions and keys of a batch, as codecs take them."""
        payloads, versions, keys = (
            None if name is None else batch.column(name) for name in (self.payload, self.version, self.key)
        )
        return payloads, versions, keys


def message_columns(
    messages: DataFrame, codec: Codec | KindsCodec, *, payload: Name, version: Name | None, key: Name | None
) -> Columns:
    """Return the columns of `messages` that `decode` with these arguments reads and passes through.

    Raises:
        WrongArgument: if a column is missing, has another type, or would be there twice after decoding.
    """
    if codec.separated and key is None:
        raise WrongArgument("the keys of this topic travel apart from its payloads: name their column with `key`")
    names_by_role = {"payload": _to_names(payload), "version": _to_names(version), "key": _to_names(key)}
    columns = {
        role: next((name for name in names if name in messages.columns), None) for role, names in names_by_role.items()
    }
    required = ["payload", *(["version"] if version is not None else []), *(["key"] if codec.separated else [])]
    missing = [role for role in required if columns[role] is None]
    if missing:
        names = ", ".join(" or ".join(names_by_role[role]) for role in missing)
        advice = "; say version=None (--unversioned) if no message has one" if "version" in missing else ""
        if "payload_b64" in messages.columns:
            advice = "; these are lines of `sample`: unbase64(payload_b64) is the payload, version the schema_version"
        raise WrongArgument(f"the messages have no column {names}; they have {', '.join(messages.columns)}{advice}")
    assert columns["payload"] is not None  # noqa: S101  it is required
    for role in required:
        column_type = messages.schema[str(columns[role])].dataType
        if not isinstance(column_type, _TYPES[role]):
            expected = "a whole number or Pulsar's eight bytes" if role == "version" else "binary"
            raise WrongArgument(
                f"the column {columns[role]} is {column_type.simpleString()}, and a message's {role} is {expected}: cast it"
            )
    if TARGET in messages.columns and not isinstance(messages.schema[TARGET].dataType, _TARGET_TYPES):
        raise WrongArgument(
            f"the column {TARGET} is {messages.schema[TARGET].dataType.simpleString()}, and a target is a string: rename or drop it"
        )
    others = tuple(name for name in messages.columns if name not in columns.values())
    message_names = ([KEY] if columns["key"] is not None else []) + [*others]
    _check_distinct(messages.sparkSession, codec, message_names)
    return Columns(columns["payload"], columns["version"], columns["key"], others)


def _to_names(name: Name | None) -> Sequence[str]:
    return () if name is None else (name,) if isinstance(name, str) else name


def _check_distinct(session: SparkSession, codec: Codec | KindsCodec, message_names: Sequence[str]) -> None:
    """Raise WrongArgument if two columns would have the same name after decoding."""
    fold = get_fold(session)
    value_names = codec.columns.names
    decoded_names = [*value_names, *message_names, SCHEMA_VERSION, ERROR, PAYLOAD]
    counts = Counter(map(fold, decoded_names))
    duplicates = sorted({name for name in decoded_names if counts[fold(name)] > 1})
    if duplicates:
        advice = "rename or drop the column of the messages"
        counts_in_schema = Counter(map(str.casefold, value_names))
        if any(counts_in_schema[name.casefold()] > 1 for name in duplicates):
            advice = "the schema has both, and Spark tells them apart only with spark.sql.caseSensitive=true"
        raise WrongArgument(f"two columns would be called {', '.join(duplicates)}: {advice}")


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: types.StructType
) -> DataFrame:
    """Apply the function like the frame's own `mapInArrow`, but for any names of columns.

    `mapInArrow` itself reads a dot in a name as access to a field, and fails on a backtick.

    Raises:
        WrongArgument: if PySpark does not pass a column's type to Python.
    """
    for field in schema:
        try:
            to_arrow_type(field.dataType)
        except ValueError:
            raise WrongArgument(
                f"{field.name} is {field.dataType.simpleString()}, which PySpark does not hand to Python: cast the column, or drop it"
            ) from None
    names = frame.columns
    numbered = frame.toDF(*(f"column {number}" for number in range(len(names))))

    def rename_and_apply(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batch.rename_columns(names) for batch in batches)

    return numbered.mapInArrow(rename_and_apply, schema)


def collect_results(messages: DataFrame, work: Callable[[Iterable[pa.RecordBatch]], T]) -> list[T]:
    """Apply the function to the rows of each of Spark's tasks, and return its results in the order of the rows."""

    def make_result(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({_RESULT.names[0]: pa.array([pickle.dumps(work(batches))], pa.binary())})

    # For each partition, Spark uses the result of one attempt of its task. If Java ends while it passes the results, `collect`
    # returns only the results that arrived; `toArrow` fails, since the number of batches comes last.
    results = map_in_arrow(messages, make_result, _RESULT).toArrow()
    return [pickle.loads(result) for result in results.column(0).to_pylist()]  # noqa: S301  from tasks of our own


def get_fold(session: SparkSession) -> Callable[[str], str]:
    """Return the function that normalizes names for comparison in the session: without case, unless it is configured otherwise."""
    return str if session.conf.get("spark.sql.caseSensitive") == "true" else str.casefold
