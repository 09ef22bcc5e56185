"""Generated packages in Spark: decoding returns their columns, and workers need only the zip."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType
from spark_release import RELEASE
from topics_to_generate import ALL, ODD

from schemactl.codegen.package import package_files
from schemactl.codegen.package_folder import pack
from schemactl.codegen.spark_types import to_json
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.codegen.topics import PackageTopic
from schemactl.codegen.wheel import complete
from schemactl.core.project import Generate
from schemactl.core.schema import Release
from schemactl.spark.column_types import struct_of as columns_in_spark

NAME = "packed_for_spark"
OPTIONS = StructOptions("4.1", as_decoded=True)


@pytest.fixture(scope="module")
def generated_package(tmp_path_factory: pytest.TempPathFactory, spark_session: SparkSession) -> Iterator[ModuleType]:
    archive = tmp_path_factory.mktemp("packed") / f"{NAME}.zip"
    topics = [*ALL, *ODD[:2]]
    files = package_files(topics, Generate(NAME), release=Release.R4_0)
    pack(complete(files, NAME, topics), archive)
    spark_session.sparkContext.addPyFile(str(archive))
    sys.path.insert(0, str(archive))
    yield importlib.import_module(NAME)
    sys.path.remove(str(archive))


def parse_json(kind: StructType) -> Any:
    return json.loads(kind.json())


def with_nulls(kind: Any, *keys: str) -> Any:
    """The type with nulls allowed where these keys say whether they are."""
    match kind:
        case dict():
            return {name: name in keys or with_nulls(value, *keys) for name, value in kind.items()}
        case list():
            return [with_nulls(part, *keys) for part in kind]
    return kind


IN_PARTS = ("containsNull", "valueContainsNull")


@pytest.mark.parametrize("one", [*ALL, *ODD[:2]], ids=lambda one: one.topic.name.topic)
def test_its_columns_are_those_of_the_schema_and_of_what_is_decoded(
    generated_package: ModuleType, one: PackageTopic
) -> None:
    topic = generated_package.topic(str(one.topic.name))
    generated_struct = struct_of(one.reader[1], OPTIONS, Release.R4_0)
    if generated_struct is None:
        assert topic.schema == ""
        return
    assert parse_json(topic.struct) == to_json(generated_struct)
    in_java = DataType.fromDDL(topic.schema)
    assert isinstance(in_java, StructType)
    assert parse_json(in_java) == with_nulls(to_json(generated_struct), *IN_PARTS)
    decoded = parse_json(columns_in_spark(topic.codec.columns))
    assert with_nulls(parse_json(topic.struct), "nullable", *IN_PARTS) == with_nulls(decoded, "nullable", *IN_PARTS)


def test_a_zip_decodes_encodes_and_lands_in_workers(
    generated_package: ModuleType, spark_session: SparkSession, tmp_path: Path
) -> None:
    orders = generated_package.topic("persistent://shop/sales/orders")
    old = orders.encode_one({"id": 1, "customer_id": 2}, 0)
    columns = "payload binary, schema_version long"
    messages = spark_session.createDataFrame([(bytearray(old), 0), (bytearray(b"\x80"), 0)], columns)
    rows, rejected = orders.split(orders.decode(messages))
    assert [(row["id"], row["customer"]) for row in rows.collect()] == [(1, 2)]
    assert [row["__error"] for row in rejected.collect()] == ["id, byte 0: the message ends inside a number"]
    if RELEASE >= (4, 1):
        column = messages.select(orders.decode("payload", messages["schema_version"]).alias("v"))
        assert [row["customer"] for row in column.select("v.value.customer").collect()] == [2, None]
    [encoded] = orders.encode(rows.drop("__schemaVersion")).collect()
    assert orders.decode_one(bytes(encoded["payload"]))["customer"] == 2
    landed = orders.land(messages, tmp_path / "rows")
    assert (landed.rows, landed.rejected) == (1, 1)
    assert orders.view(spark_session, str(tmp_path / "rows")).columns[:3] == ["id", "customer", "tags"]
    reading = spark_session.read.schema(orders.struct).parquet(str(tmp_path / "rows"))
    assert [row["customer"] for row in reading.collect()] == [2]
    modules = {type(orders).__module__, type(orders.codec).__module__}
    assert modules == {f"{NAME}._runtime.generated", f"{NAME}._runtime.codec.topic"}
