"""A topic with several kinds of events, from the first commit to rows in tables, on real Spark and the embedded registry.

The kinds come from the example of ALWAYS_COMPATIBLE on Pulsar's page on schema evolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command import schemactl
from deltalake import DeltaTable, write_deltalake
from imported_package import import_package
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from scratch import Scratch
from spark_release import since_release

from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.declare.project import load_project
from schemactl.generated import GeneratedKinds
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.spark import Counts, WrongArgument

from .iceberg_lake import sql_lake
from .kinds_topic import KINDS, MESSAGES, NAME, make_repository

NO_KIND = "schema version 0 does not belong to any kind of events that was ever declared"
NOT_IN_GIT = "schema version 9 is not in the codec (0 to 5): generate it again"
NO_VERSION = "the message has no schema version, which would show its kind"


@pytest.fixture(scope="module")
def kinds_repository(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return make_repository(tmp_path_factory.mktemp("kinds") / "shop")


@pytest.fixture(scope="module")
def kinds_package(kinds_repository: Scratch) -> Iterator[ModuleType]:
    schemactl(kinds_repository.path, "generate")
    with import_package(kinds_repository.path / "generated", "kinds_in_spark") as module:
        yield module


@pytest.fixture(scope="module")
def users_topic(kinds_package: ModuleType) -> GeneratedKinds:
    topic: GeneratedKinds = kinds_package.topic(NAME)
    return topic


ROWS = {
    "user_created": {(1, "?", 1), (4, "Ann", 4)},
    "user_address_changed": {(2, "9", 2), (5, "77", 5)},
    "user_enquiry_received": {(3, "hi", 3)},
}


@pytest.fixture
def user_messages(spark_session: SparkSession) -> DataFrame:
    return spark_session.createDataFrame(MESSAGES, "payload binary, schema_version long")


def read_rows(frame: DataFrame) -> set[tuple[Any, ...]]:
    return {tuple(row)[:3] for row in frame.collect()}


def test_a_registry_gives_the_versions_their_numbers_in_git(kinds_repository: Scratch) -> None:
    project, _ = load_project(str(kinds_repository.path))
    topic = read_history(Repository(kinds_repository.path), project).catalog.topics[TopicName.parse(NAME)].load()
    with closing(EmbeddedRegistry(":memory:")) as registry:
        registry.create_tenant("shop")
        registry.create_namespace(topic.name.namespace_name)
        registry.create_topic(topic.name, None)
        registry.set_topic_policies(
            topic.name, Policies(schema_compatibility_strategy=CompatibilityStrategy.ALWAYS_COMPATIBLE)
        )
        numbers = [registry.put_schema(topic.name, version.info) for version in topic.versions if version.info]
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert [version.kind for version in topic.versions] == ["", *KINDS, *KINDS[:2]]


def test_decoding_gives_the_kind_and_one_struct_for_each(users_topic: GeneratedKinds, user_messages: DataFrame) -> None:
    decoded = users_topic.decode(user_messages).persist()
    assert decoded.columns == [
        *("__kind", "user_address_changed", "user_enquiry_received", "user_created"),
        *("__schemaVersion", "__error", "__payload"),
    ]
    assert decoded.schema.fields[:4] == users_topic.struct.fields
    rows, rejected = users_topic.split(decoded)
    for kind, expected in ROWS.items():
        of_kind = rows.where(fn.col("__kind") == kind)
        assert read_rows(of_kind.select(f"{kind}.*", "__schemaVersion")) == expected
        others = [other for other in ROWS if other != kind]
        assert of_kind.where(" or ".join(f"{other} is not null" for other in others)).count() == 0
    reasons = {row["__schemaVersion"]: row["__error"] for row in rejected.collect()}
    assert rejected.count() == 5
    assert (reasons[0], reasons[9], reasons[None]) == (NO_KIND, NOT_IN_GIT, NO_VERSION)
    decoded.unpersist()


def test_each_kind_decodes_and_encodes_its_own_messages(users_topic: GeneratedKinds, user_messages: DataFrame) -> None:
    for kind, expected in ROWS.items():
        topic = users_topic[kind]
        decoded = topic.decode(user_messages)
        assert read_rows(decoded.where("__error is null").drop("__error", "__payload")) == expected
        # Messages of other kinds are neither rows nor rejected.
        assert decoded.where(f"__error = '{NO_KIND}'").count() == 1
        assert decoded.where("__error like '%is of the kind%'").count() == 0
        rows = topic.split(decoded).rows.drop("__schemaVersion")
        encoded = topic.encode(rows).withColumn("schema_version", fn.lit(topic.codec.number_written()))
        assert encoded.where("__error is not null").count() == 0
        again = users_topic.decode(encoded.drop("__error"))
        assert {row["__kind"] for row in again.collect()} == {kind}
        assert {row[:2] for row in read_rows(again.select(f"{kind}.*"))} == {row[:2] for row in expected}


@since_release((4, 1), "columns of decoded messages need arrow_udf")
def test_columns_are_decoded_by_their_kinds(users_topic: GeneratedKinds, user_messages: DataFrame) -> None:
    columns = user_messages.select(
        "schema_version",
        users_topic.decode("payload", "schema_version").alias("any"),
        users_topic["user_created"].decode("payload", "schema_version").alias("created"),
    )
    rows = {
        row["schema_version"]: row for row in columns.where("schema_version is null or schema_version <> 4").collect()
    }
    assert rows[1]["any"]["value"]["__kind"] == "user_created"
    assert (rows[1]["any"]["value"]["user_created"]["id"], rows[1]["any"]["error"]) == (1, None)
    assert (rows[1]["created"]["value"]["id"], rows[1]["created"]["error"]) == (1, None)
    # A value of another kind is null, and no error.
    assert (rows[5]["created"]["value"], rows[5]["created"]["error"]) == (None, None)
    for version, reason in ((0, NO_KIND), (9, NOT_IN_GIT), (None, NO_VERSION)):
        assert (rows[version]["any"]["value"], rows[version]["any"]["error"]) == (None, reason)
        assert (rows[version]["created"]["value"], rows[version]["created"]["error"]) == (None, reason)


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_each_kind_is_landed_in_a_table_and_each_rejected_message_once(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path, format_: Any
) -> None:
    out = str(tmp_path / "lake/users")
    wrong_mode: Any = "apend"
    with pytest.raises(WrongArgument, match="unknown mode apend"):
        users_topic.land(user_messages, out, mode=wrong_mode, format=format_)
    landed = users_topic.land(user_messages, out, format=format_)
    assert {kind: result.rows for kind, result in landed.items()} == {kind: len(rows) for kind, rows in ROWS.items()}
    assert sum(result.rejected for result in landed.values()) == 5
    assert landed["user_created"].versions == {1: Counts(1), 4: Counts(1, 1)}
    spark = user_messages.sparkSession
    if format_ == "parquet":
        views = users_topic.view(spark, out, name="users", former=True)
        assert {
            kind: read_rows(rows.select("id", rows.columns[1], "__schemaVersion")) for kind, rows in views.items()
        } == ROWS
        assert spark.sql("select zip from users_user_address_changed where id = 5").first() == ("77",)
        assert spark.read.parquet(f"{out}/_rejected").count() == 5
        assert {path.name for path in Path(out).iterdir()} == {*ROWS, "_rejected"}
        with pytest.raises(FileExistsError):
            users_topic.land(user_messages, out, mode="error")
        users_topic.land(user_messages, out, mode="overwrite")
        assert spark.read.parquet(f"{out}/_rejected").count() == 5
        assert spark.read.parquet(f"{out}/user_created").count() == 2
    else:
        for kind, rows in ROWS.items():
            assert DeltaTable(f"{out}/{kind}").to_pyarrow_table().num_rows == len(rows)
        assert DeltaTable(f"{out}_rejected").to_pyarrow_table().num_rows == 5
        for _ in range(2):
            # A transaction is landed once.
            users_topic.land(user_messages, out, format="delta", txnAppId="load", txnVersion=1)
        assert DeltaTable(f"{out}/user_created").to_pyarrow_table().num_rows == 4
        assert DeltaTable(f"{out}_rejected").to_pyarrow_table().num_rows == 10


def test_a_landing_that_was_interrupted_between_two_kinds_is_completed(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path
) -> None:
    out = str(tmp_path / "users")
    options: Any = {"format": "delta", "txnAppId": "load", "txnVersion": 7}
    first = "user_address_changed"
    users_topic[first].land(user_messages, f"{out}/{first}", rejected=f"{out}_rejected", **options)
    landed = users_topic.land(user_messages, out, **options)
    assert (landed[first].rows, landed["user_created"].rows) == (0, 2)
    counts = {kind: DeltaTable(f"{out}/{kind}").to_pyarrow_table().num_rows for kind in ROWS}
    assert counts == {kind: len(rows) for kind, rows in ROWS.items()}
    assert DeltaTable(f"{out}_rejected").to_pyarrow_table().num_rows == 5


def test_each_kind_is_landed_in_an_iceberg_table(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path
) -> None:
    lake = sql_lake(tmp_path)
    for _ in range(2):
        users_topic.land(
            user_messages, "shop.users", format="iceberg", catalog=lake.properties, txnAppId="load", txnVersion=1
        )
    tables = {name: lake.catalog.load_table(f"shop.users_{name}").scan().to_arrow() for name in (*ROWS, "rejected")}
    assert {name: table.num_rows for name, table in tables.items()} == {
        "rejected": 5,
        **{kind: len(rows) for kind, rows in ROWS.items()},
    }


def test_a_stream_is_landed_in_the_tables_of_its_kinds(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path
) -> None:
    user_messages.write.parquet(str(tmp_path / "archive"))
    spark = user_messages.sparkSession
    stream = spark.readStream.schema(user_messages.schema).parquet(str(tmp_path / "archive"))
    out = str(tmp_path / "users")
    for _ in range(2):
        writer = users_topic.land_stream(stream, out, format="delta").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()
    counts = {kind: DeltaTable(f"{out}/{kind}").to_pyarrow_table().num_rows for kind in ROWS}
    assert counts == {kind: len(rows) for kind, rows in ROWS.items()}
    assert DeltaTable(f"{out}_rejected").to_pyarrow_table().num_rows == 5


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_replay_moves_each_message_to_its_kind_and_loses_none(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path, format_: Any
) -> None:
    out = str(tmp_path / "users")
    spark = user_messages.sparkSession
    # An older package, which knows no kinds, rejected messages of all versions.
    old = user_messages.where("payload is not null").withColumn("schema_version", fn.col("schema_version") + 100)
    users_topic.land(old, out, format=format_)
    rejected_path = f"{out}/_rejected" if format_ == "parquet" else f"{out}_rejected"
    if format_ == "parquet":
        rejected = spark.read.parquet(rejected_path)
        fixed = rejected.withColumn("__schemaVersion", fn.col("__schemaVersion") - 100).localCheckpoint()
        fixed.write.mode("overwrite").parquet(rejected_path)
    else:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = DeltaTable(rejected_path).to_pyarrow_table()
        index = table.schema.get_field_index("__schemaVersion")
        numbers = pc.subtract(table.column(index), pa.scalar(100, pa.int64()))
        write_deltalake(rejected_path, table.set_column(index, table.schema.field(index), numbers), mode="overwrite")
    replayed = users_topic.replay(spark, out, format=format_)
    assert {kind: result.rows for kind, result in replayed.items()} == {kind: len(rows) for kind, rows in ROWS.items()}
    columns = ["__schemaVersion", "__error"]
    if format_ == "parquet":
        remaining = [tuple(row) for row in spark.read.parquet(rejected_path).select(*columns).collect()]
    else:
        rows = DeltaTable(rejected_path).to_pyarrow_table().select(columns).to_pylist()
        remaining = [tuple(row.values()) for row in rows]
    reasons: dict[Any, str] = dict(remaining)
    assert len(remaining) == 4
    assert (reasons[0], reasons[9], reasons[None]) == (NO_KIND, NOT_IN_GIT, NO_VERSION)
    assert {
        kind: result.rows for kind, result in users_topic.replay(spark, out, format=format_).items()
    } == dict.fromkeys(replayed, 0)


def test_messages_without_versions_are_landed_for_one_kind_alone(
    users_topic: GeneratedKinds, user_messages: DataFrame, tmp_path: Path
) -> None:
    unversioned = user_messages.select("payload").limit(1)
    with pytest.raises(WrongArgument, match="does not show its kind"):
        users_topic.land(unversioned, str(tmp_path / "users"), version=None)
    landed = users_topic["user_created"].land(unversioned, str(tmp_path / "created"), version=None)
    assert landed.rows + landed.rejected == 1
