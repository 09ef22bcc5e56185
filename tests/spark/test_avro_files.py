"""Spark's Avro source reads container files whose records are values, of several versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from spark_jars import AVRO, needs_jars

from schemactl.codec import Codec, Definition, Version
from schemactl.publish.avro_files import make_container
from schemactl.spark import decode
from schemactl.spark.stored_messages import RawMessages

from .schemas import make_field, record

pytestmark = needs_jars(AVRO)

TIME = {"type": "long", "logicalType": "timestamp-micros"}
STATUS = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"], "default": "NEW"}
VERSIONS = [
    record("Order", make_field("id", "long"), make_field("when", TIME)),
    record(
        "Order",
        make_field("number", "long", "id"),
        make_field("when", TIME),
        make_field("status", STATUS, default="NEW"),
        make_field("note", ["null", "string"], default=None),
    ),
]


def test_values_of_several_files_and_versions_are_read_into_one(spark_session: SparkSession, tmp_path: Path) -> None:
    texts = [json.dumps(version) for version in VERSIONS]
    codecs = [Codec([Version(0, Definition("AVRO", text))]) for text in texts]
    values: list[list[dict[str, Any]]] = [
        [{"id": number, "when": 1_000_000} for number in range(100)],
        [{"number": number, "when": 2_000_000, "status": "PAID", "note": "x"} for number in range(100, 200)],
    ]
    for version, (codec, rows) in enumerate(zip(codecs, values, strict=True)):
        payloads = [payload for row in rows if (payload := codec.encode_one(row))]
        (tmp_path / f"v{version}.avro").write_bytes(make_container(texts[version], payloads, {}))
    messages = RawMessages(spark_session, f"{tmp_path}/*.avro", "t", "avro", {}, texts[1]).read()
    assert messages.columns == ["payload"]
    decoded = decode(messages, codecs[1], version=None).collect()
    assert {row["__error"] for row in decoded} == {None}
    assert sorted((row["number"], row["when"].timestamp(), row["status"], row["note"]) for row in decoded) == [
        *((number, 1.0, "NEW", None) for number in range(100)),
        *((number, 2.0, "PAID", "x") for number in range(100, 200)),
    ]
