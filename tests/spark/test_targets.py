"""DataFrames of messages from several targets, each decoded by the version numbers of its target."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any, Literal

import pytest
from estate import Estate
from imported_package import import_package
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from scratch import record
from spark_release import since_release

from schemactl.codec import Codec, Definition, Numbers, TargetVersions, UnknownVersion, Version
from schemactl.spark import WrongArgument, decode, encode, land, replay
from schemactl.spark.pulsar.options import parse_read_options
from schemactl.spark.pulsar.source import PulsarSource

FIRST, OWN, FOREIGN = (
    Definition("AVRO", text) for text in (record("id"), record("id", own=0), record("id", foreign=0))
)
CODEC = Codec(
    [Version(0, FIRST), Version(1, OWN)],
    targets={
        "dev": None,
        "prod": TargetVersions(
            (Version(0, FIRST), Version(1, FOREIGN, foreign=True), Version(2, OWN)), Numbers("prod", 2)
        ),
    },
)
AMBIGUOUS = "schema version 1 means different content on two targets (Git's version 1 on dev; a foreign version on prod): choose"


def make_payload(schema: Definition, **value: Any) -> bytearray:
    encoded = Codec([Version(0, schema)]).encode_one(value)
    assert encoded is not None
    return bytearray(encoded)


MESSAGES = [
    (make_payload(FIRST, id="a"), 0, None, ("a", 0)),
    (make_payload(OWN, id="b", own=1), 1, None, AMBIGUOUS),
    (make_payload(OWN, id="c", own=2), 1, "dev", ("c", 2)),
    (make_payload(FOREIGN, id="d", foreign=3), 1, "prod", ("d", 0)),
    (make_payload(OWN, id="e", own=4), 2, "prod", ("e", 4)),
    (make_payload(OWN, id="f", own=5), 2, "dev", "schema version 2 is not in the codec (0 to 1)"),
    (make_payload(OWN, id="g", own=6), 1, "", AMBIGUOUS),
    (make_payload(OWN, id="h", own=7), None, "prod", ("h", 7)),
    (make_payload(FIRST, id="i"), 0, "stage", "unknown target stage: "),
]
"""Payload, number and target of messages, and their values or the reason for the rejection."""


def make_frame(spark: SparkSession, messages: list[Any] = MESSAGES) -> DataFrame:
    rows = [(payload, number, target, index) for index, (payload, number, target, _) in enumerate(messages)]
    return spark.createDataFrame(rows, "payload binary, schema_version long, __target string, at int").coalesce(1)


def check(rows: list[Any], messages: list[Any] = MESSAGES) -> None:
    assert [row["at"] for row in rows] == [*range(len(messages))]
    for row, (message, _, target, expected) in zip(rows, messages, strict=True):
        assert row["__target"] == target
        if isinstance(expected, tuple):
            assert (row["id"], row["own"], row["__error"], row["__payload"]) == (*expected, None, None)
        else:
            assert expected in row["__error"]
            assert (row["id"], row["own"], bytes(row["__payload"])) == (None, None, bytes(message))


def test_each_message_is_decoded_by_the_numbers_of_its_target(spark_session: SparkSession) -> None:
    check(decode(make_frame(spark_session), CODEC).collect())
    check(
        decode(make_frame(spark_session), CODEC)
        .where("id is null or id > 'a' or __schemaVersion = 0")
        .orderBy("at")
        .collect()
    )


def test_two_dataframes_of_different_targets_are_one(spark_session: SparkSession) -> None:
    messages = make_frame(spark_session).drop("__target")
    both = messages.where("at = 3").withColumn("__target", sql.lit("prod"))
    both = both.union(messages.where("at = 2").withColumn("__target", sql.lit("dev")))
    assert {(row["id"], row["own"]) for row in decode(both, CODEC).collect()} == {("c", 2), ("d", 0)}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("prod", ["a", "b", None, "d", "e", None, "g", "h", None]),
        ("dev", ["a", "b", "c", None, None, None, "g", None, None]),
    ],
)
def test_a_message_of_another_target_than_the_chosen_one_is_rejected(
    spark_session: SparkSession, target: str, expected: list[str | None]
) -> None:
    rows = decode(make_frame(spark_session), CODEC.for_target(target)).collect()
    assert [row["id"] for row in rows] == expected
    others = [row for row, (_, _, name, _) in zip(rows, MESSAGES, strict=True) if name not in (None, "", target)]
    assert {row["__error"] for row in others} == {
        f"the message is from the target {name}, and {target} was chosen"
        for name in {"dev", "prod", "stage"} - {target}
    }


def test_a_message_of_another_target_than_the_default_is_decoded_by_its_own(spark_session: SparkSession) -> None:
    expected = ["a", "b", "c", "d", "e", None, "g", "h", None]
    for copied in (False, True):
        codec = CODEC.for_target("dev", is_default=True)
        codec = pickle.loads(pickle.dumps(codec)) if copied else codec  # noqa: S301  what was pickled here
        assert [row["id"] for row in decode(make_frame(spark_session), codec).collect()] == expected


def test_a_column_of_another_type_is_an_error(spark_session: SparkSession) -> None:
    messages = make_frame(spark_session).withColumn("__target", sql.lit(1))
    with pytest.raises(WrongArgument, match="the column __target is int, and a target is a string"):
        decode(messages, CODEC)


def test_a_codec_that_knows_no_targets_leaves_the_column_alone(spark_session: SparkSession) -> None:
    [row] = decode(make_frame(spark_session).where("at = 3"), Codec(CODEC.versions)).collect()
    assert (row["id"], row["own"], row["__target"]) == ("d", 3, "prod")


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_messages_of_several_targets_land_and_ambiguous_ones_wait(
    spark_session: SparkSession, output_folder: str, form: Literal["parquet", "delta"]
) -> None:
    landed = land(make_frame(spark_session), CODEC, output_folder, format=form)
    expected = [expected for *_, expected in MESSAGES]
    assert landed.rows == sum(isinstance(value, tuple) for value in expected)
    assert landed.rejected == sum(isinstance(value, str) for value in expected)
    assert sum(count for reason, count in landed.reasons.items() if reason.startswith(AMBIGUOUS)) == 2
    # Whoever knows where they are from reads them later.
    again = replay(spark_session, CODEC.for_target("dev"), output_folder, format=form)
    assert again.rows == 2


def test_rows_are_encoded_with_a_number_only_where_it_is_known(spark_session: SparkSession) -> None:
    rows = spark_session.createDataFrame([("a", 1, 0)], "id string, own int, __schemaVersion long")
    with pytest.raises(UnknownVersion, match="schema version 1 means different content on two targets"):
        encode(rows, CODEC)
    for target, number in (("dev", 1), ("prod", 2)):
        [row] = encode(rows, CODEC.for_target(target)).collect()
        assert (row["__schemaVersion"], row["__error"]) == (number, None)


def test_the_source_has_the_column_only_with_the_option() -> None:
    options = {"service.url": "pulsar://broker:6650", "topic": "orders"}
    assert "__target" not in PulsarSource(options).schema().names
    for name in ("target", "TARGET"):
        schema = PulsarSource({**options, name: "prod"}).schema()
        assert schema.names[-1] == "__target"
        assert parse_read_options({**options, name: "prod"}, "a batch").target == "prod"


@since_release((4, 1), "a column of decoded messages needs it")
def test_a_column_is_decoded_by_the_target_of_its_topic(spark_session: SparkSession, tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {dev: {registry: "sqlite:d.db"}, prod: {registry: "sqlite:p.db"}}\ngenerate: {package: of_targets}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.commit_orders("id", own=0)
    numbers = "shop/sales/orders: {1: {foreign: foreign/1.avsc, type: AVRO}, 2: {git: 1}}\n"
    estate.scratch.commit({"numbers/prod.yaml": numbers, "numbers/foreign/1.avsc": FOREIGN.text})
    estate.run("generate", "--out", "out")
    messages = make_frame(spark_session, MESSAGES[2:4]).drop("__target")
    with import_package(estate.scratch.path / "out", "of_targets") as package:
        orders = package.topic("persistent://shop/sales/orders")
        column = orders.for_target("prod").decode("payload", "schema_version")
        [row] = messages.where("at = 1").select(column.alias("decoded")).collect()
        assert row["decoded"]["value"].asDict() == {"id": "d", "own": 0}
        [[error]] = orders.decode(messages.where("at = 1")).select("__error").collect()
        assert error.startswith(AMBIGUOUS)
        os.environ["SCHEMACTL_TARGET"] = "prod"
        try:
            decoded = orders.decode(messages.where("at = 1"))
            landed = orders.land(messages.where("at = 1"), tmp_path / "landed")
        finally:
            del os.environ["SCHEMACTL_TARGET"]
        assert [row["id"] for row in decoded.collect()] == ["d"]
        assert (landed.rows, landed.rejected) == (1, 0)
