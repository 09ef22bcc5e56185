"""A view in SQL alone: the data source is known to Spark, and a generated package gives it typed columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import schemactl
from pulsar_cluster import Namespace
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from scratch import Scratch

from schemactl.spark import PulsarSource

from .schemas import make_codec, make_field, record

ID, NOTE = make_field("id", "long"), make_field("note", "string", default="none")
VERSIONS = [record("Order", ID), record("Order", ID, NOTE)]
ORDERS = make_codec(*VERSIONS)

METADATA = [
    "__key",
    "__topic",
    "__messageId",
    "__publishTime",
    "__eventTime",
    "__messageProperties",
    "__schemaVersion",
    "__error",
    "__payload",
]


def make_package(folder: Path, name: str, topic: str) -> Path:
    """Return the zip of a package with one topic, whose versions are VERSIONS."""
    repository = Scratch(folder)
    declaration = f"topic: {topic}\nschema: {{type: AVRO, definition: orders.avsc}}\n"
    project = f"version: 1\nroots: [topics]\ngenerate: {{package: {name}}}\n"
    for version in VERSIONS:
        files = {
            "schemactl.yaml": project,
            "topics/orders.yaml": declaration,
            "topics/orders.avsc": json.dumps(version),
        }
        repository.commit(files)
    repository.flush()
    repository.git("reset", "-q", "--hard")
    schemactl(folder, "generate", "--zip", f"{name}.zip")
    return folder / f"{name}.zip"


def create_view(spark: SparkSession, name: str, **options: str) -> None:
    listed = ", ".join(f"`{option}` '{value}'" for option, value in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING `pulsar-schemactl` OPTIONS ({listed})")


def test_a_view_has_the_columns_of_the_package(spark_session: SparkSession, tmp_path: Path) -> None:
    topic = "persistent://shop/sales/orders"
    path = str(make_package(tmp_path / "r", "view_schemas", topic))
    options = {"service.url": "pulsar://127.0.0.1:1", "topic": topic, "package": "view_schemas", "package.path": path}
    create_view(spark_session, "typed", **options)
    columns = {row["col_name"]: row["data_type"] for row in spark_session.sql("DESCRIBE typed").collect()}
    assert list(columns) == ["id", "note", *METADATA]
    assert (columns["id"], columns["note"], columns["__error"]) == ("bigint", "string", "string")
    create_view(spark_session, "raw", **{name: value for name, value in options.items() if "package" not in name})
    assert next(row["col_name"] for row in spark_session.sql("DESCRIBE raw").collect()) == "value"
    for changes, message in (
        ({"package": "no_such_package"}, "which cannot be imported"),
        ({"package": "json"}, "is not a package of `schemactl generate`"),
        ({"package": ""}, "package.path needs package"),
        ({"auto.consume": "true", "admin.url": "http://127.0.0.1:1"}, "give one of them"),
        ({"topic": "persistent://shop/sales/other"}, "no topic of the package is called"),
    ):
        with pytest.raises(AnalysisException, match=message):
            create_view(spark_session, "wrong", **{**options, **changes})
    many = {**options, "topics": f"{topic},persistent://shop/sales/more"}
    del many["topic"]
    with pytest.raises(AnalysisException, match="package is for one topic"):
        create_view(spark_session, "wrong", **many)


def test_a_stream_with_a_package_has_the_options_of_streams(spark_session: SparkSession, tmp_path: Path) -> None:
    topic = "persistent://shop/sales/orders"
    path = str(make_package(tmp_path / "r", "stream_schemas", topic))
    options = {"service.url": "pulsar://127.0.0.1:1", "topic": topic, "package": "stream_schemas", "package.path": path}
    options["predefinedSubscription"] = "landing"
    frame = spark_session.readStream.format("pulsar-schemactl").options(**options).load()
    assert frame.columns == ["id", "note", *METADATA]
    assert PulsarSource(options).streamReader(frame.schema)
    with pytest.raises(ValueError, match="predefinedSubscription is not an option of a batch"):
        PulsarSource(options).reader(frame.schema)


@pytest.mark.live
def test_a_view_reads_messages_of_every_version_and_shows_wrong_ones(
    spark_session: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("sql-orders", *map(json.dumps, VERSIONS), partitions=2)
    path = str(make_package(tmp_path / "r", "live_schemas", topic))
    for version, values in enumerate([{"id": 1}, {"id": 2, "note": "n"}]):
        pulsar_space.send("sql-orders", [ORDERS.read_as(version).encode_one(values, version)], version=version)
    pulsar_space.send("sql-orders", [b""], version=1)
    create_view(
        spark_session, "live", **pulsar_space.options, topic=topic, package="live_schemas", **{"package.path": path}
    )
    rows = spark_session.sql("SELECT id, note FROM live WHERE __error IS NULL ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, "none"), (2, "n")]
    [wrong] = spark_session.sql("SELECT __error, __payload FROM live WHERE __error IS NOT NULL").collect()
    assert wrong["__error"]
    assert bytes(wrong["__payload"]) == b""
