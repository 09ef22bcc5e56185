"""The columns of raw messages, named as here or as in Pulsar's Spark connector, and Spark's types for Arrow types and DDL."""

from __future__ import annotations

import itertools
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from ..codec import Codec, message
from .session import require
from .tables.landing_table import WrongArgument, has_part

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

_TYPES: Final = {"payload": _BYTES, "version": (types.IntegralType, types.BinaryType, types.NullType), "key": _BYTES}


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
        raise WrongArgument("the keys of this topic travel apart from its payloads: name their column with `key`")
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
    frame: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: types.StructType
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


# Spark's types for Arrow types and DDL


_TOKEN: Final = re.compile(r"`(?:[^`]|``)*`|(?:/\* )?NOT NULL(?: \*/)?|INTERVAL DAY TO SECOND|\w+(?:\([0-9,]+\))?|[<>]")

_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""The types that Spark's JSON spells otherwise than SQL."""


def struct_of(columns: pa.Schema) -> StructType:
    """Return the StructType of the columns.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    _require_time(any(has_part(kind, pa.types.is_time64) for kind in columns.types))
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def struct_of_ddl(ddl: str) -> StructType:
    """Return the StructType of the columns, as `schemactl.codegen.spark_types.columns_ddl` writes them, without a session.

    Spark's own parser is on the JVM. What its grammar has no place for stands in a comment: behind the type of an array's
    elements or a map's values, that they are not null.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    tokens = _TOKEN.findall(ddl)
    _require_time(any(token.startswith("TIME(") for token in tokens))
    return StructType.fromJson(_struct(tokens[::-1]))


def _require_time(needed: bool) -> None:  # noqa: FBT001  the only argument
    if needed:
        require((4, 1), "a column of times of day (from a package for Spark 4.2 or newer)")


def _struct(tokens: list[str]) -> dict[str, Any]:
    """Return the fields up to the end of the struct as JSON; the next token is the last of the list, and what is read is taken away."""
    fields = []
    while tokens and tokens[-1] != ">":
        name = tokens.pop()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        field = {"name": name, "type": _type(tokens), "nullable": _may_be_null(tokens), "metadata": {}}
        fields.append(field)
    return {"type": "struct", "fields": fields}


def _type(tokens: list[str]) -> Any:
    word = tokens.pop().lower()
    if word not in ("struct", "array", "map"):
        return _JSON_NAMES.get(word, word)
    tokens.pop()
    found: dict[str, Any] = {"type": word}
    if word == "struct":
        found = _struct(tokens)
    elif word == "array":
        found |= {"elementType": _type(tokens), "containsNull": _may_be_null(tokens)}
    else:
        found |= {"keyType": _type(tokens), "valueType": _type(tokens)}
        found["valueContainsNull"] = _may_be_null(tokens)
    tokens.pop()
    return found


def _may_be_null(tokens: list[str]) -> bool:
    """Take away the next token if it says that there are no nulls, and return whether there may be some."""
    if tokens and "NOT NULL" in tokens[-1] and not tokens[-1].startswith("`"):
        tokens.pop()
        return False
    return True
