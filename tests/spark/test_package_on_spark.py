"""A generated package that carries its run-time, packed and sent to Spark's workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from schemactl.codegen.approved import Approved
from schemactl.codegen.files import pack
from schemactl.codegen.package import package_files
from schemactl.model import Commit, Generate, Release, SchemaInfo, SchemaType, SchemaVersion, Topic, TopicName


def avro(*fields: dict[str, Any]) -> SchemaInfo:
    text = json.dumps({"type": "record", "name": "Visit", "fields": list(fields)})
    return SchemaInfo(SchemaType.AVRO, text.encode())


PAGE = {"name": "page", "type": "string"}
VERSIONS = (avro(PAGE), avro(PAGE, {"name": "seconds", "type": "double", "default": 0.5}))


@pytest.fixture
def visits(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    numbered = tuple(SchemaVersion(n, info, Commit(f"{n:040x}", 0)) for n, info in enumerate(VERSIONS))
    topic = Topic(TopicName.parse("shop/web/visits"), VERSIONS[-1], numbered)
    files = package_files(
        [Approved(topic, 1, f"{1:040x}")], Generate("packed_schemas"), release=Release.R4_0, vendor=True
    )
    archive = tmp_path / "packed_schemas.zip"
    pack(files, archive)
    spark.sparkContext.addPyFile(str(archive))
    monkeypatch.syspath_prepend(str(archive))
    invalidate_caches()
    yield import_module("packed_schemas").topic("persistent://shop/web/visits")
    for name in [name for name in sys.modules if name.split(".")[0] == "packed_schemas"]:
        del sys.modules[name]


def test_workers_decode_with_what_the_package_brought(spark: SparkSession, visits: ModuleType) -> None:
    rows = [(bytearray(visits.encode_one({"page": f"p{n}"}, n % 2)), n % 2) for n in range(200)]
    rows[7] = (bytearray(b"\x09"), 1)
    messages = spark.createDataFrame(rows, "payload binary, schema_version bigint")
    found = visits.decode(messages).orderBy("page").collect()
    assert len(found) == 200
    assert [row["__error"] for row in found if row["__error"]] == ["page, byte 0: a length of -5"]
    assert {row["seconds"] for row in found if not row["__error"]} == {0.5}
    assert visits.STRUCT.simpleString() == "struct<page:string,seconds:double>"
    again = visits.encode(visits.decode(messages.limit(3)).drop("__error", "__payload"), version=0).collect()
    assert {bytes(row["payload"]) for row in again} == {
        visits.encode_one({"page": f"p{n}"}, 0) for n in range(3)
    }
    assert type(visits.CODEC).__module__.startswith("packed_schemas._runtime.codec")


def test_what_was_landed_is_viewed_by_what_the_package_brought(
    spark: SparkSession, visits: ModuleType, folder: str
) -> None:
    spark.createDataFrame([("p", 7)], "page string, __schemaVersion bigint").write.parquet(folder)
    assert visits.view(spark, folder).collect() == [("p", None, 7)]
