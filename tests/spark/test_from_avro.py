"""Rows equal Spark's own `from_avro` for random messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from random_avro import Maker, damage_payload
from spark_jars import AVRO, needs_jars

from schemactl.codec import Codec, Definition, Version
from schemactl.codec.arrow_types import to_numbers


class Topic(NamedTuple):
    """Two versions of a random schema, and messages of both that are read here."""

    schemas: list[str]
    payloads: pa.Array
    versions: pa.Array
    rows: pa.StructArray


def make_topics() -> Iterator[Topic]:
    for seed in range(14):
        maker = Maker(seed)
        older = maker.record(2)
        newer = maker.evolve_schema(older)
        schemas = [json.dumps(schema) for schema in (older, newer)]
        codec = Codec([Version(number, Definition("AVRO", text)) for number, text in enumerate(schemas)])
        encoded = [codec.encode_one(maker.draw_value((older, newer)[number % 2]), number % 2) for number in range(24)]
        payloads = pa.array(
            [damage_payload(maker, payload or b"") if n % 3 else payload for n, payload in enumerate(encoded)]
        )
        versions = pa.array([number % 2 for number in range(24)])
        decoded = codec.decode_batch(payloads, versions)
        read = decoded.errors.is_null()
        yield Topic(schemas, payloads.filter(read), versions.filter(read), decoded.rows.to_struct_array().filter(read))


def from_avro(topic: Topic) -> Column:
    value: Any = sql
    for number, schema in enumerate(topic.schemas):
        options = {"mode": "PERMISSIVE", "avroSchema": topic.schemas[-1], "datetimeRebaseMode": "CORRECTED"}
        pairs = [sql.lit(word) for pair in options.items() for word in pair]
        read = sql.call_function("from_avro", sql.col("payload"), sql.lit(schema), sql.create_map(*pairs))
        value = value.when(sql.col("version") == number, read)
    encoded: Column = value
    return encoded


def by_key(value: Any, kind: pa.DataType) -> Any:
    """The value with the entries of maps in the order of their keys."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: by_key(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted(((key, by_key(item, kind.item_type)) for key, item in value), key=lambda pair: pair[0])
    return [by_key(item, kind.value_type) for item in value] if pa.types.is_list(kind) else value


@needs_jars(AVRO)
def test_values_of_random_topics_are_those_of_from_avro(spark_session: SparkSession) -> None:
    encoded = list(make_topics())
    sent = pa.table(
        {
            "topic": [number for number, topic in enumerate(encoded) for _ in topic.payloads],
            "payload": pa.concat_arrays([topic.payloads for topic in encoded]),
            "version": pa.concat_arrays([topic.versions for topic in encoded]),
        }
    )
    columns = [
        sql.when(sql.col("topic") == number, from_avro(topic)).alias(f"{number}")
        for number, topic in enumerate(encoded)
    ]
    [batch] = spark_session.createDataFrame(sent).coalesce(1).select("topic", *columns).toArrow().to_batches()
    compared = 0
    for number, topic in enumerate(encoded):
        column = batch.column(f"{number}").filter(pc.equal(batch.column("topic"), number))
        theirs, ours = to_numbers(column), to_numbers(topic.rows)
        for one, other in zip(theirs, ours, strict=True):
            try:
                expected = by_key(one.as_py(), theirs.type)
            except UnicodeDecodeError:
                # Spark keeps bytes that are no UTF-8.
                continue
            # By text, so that NaN is NaN and -0.0 is not 0.0.
            assert repr(by_key(other.as_py(), ours.type)) == repr(expected), topic.schemas
            compared += 1
    assert compared > 150
