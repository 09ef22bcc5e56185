"""Counts of readable and unreadable messages, on a shared Spark, and errors of unreachable messages."""

from __future__ import annotations

import json
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_release import before_release

from schemactl.codec import Codec, Definition, Version, byte_batch
from schemactl.codec.json_names import find_absent_fields, get_json_schema
from schemactl.codec.verification import Count
from schemactl.spark import sink
from schemactl.spark.message_columns import Columns
from schemactl.spark.session import SparkProblem, as_spark_problem
from schemactl.spark.stored_messages import RawMessages, _verify_part, verify


def test_a_python_that_workers_cannot_use_is_told(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    venv.create(bare)
    for python, problem in (("none", 'Cannot run program ".*/none"'), ("bare/bin/python", "No module named '.*'")):
        monkeypatch.setattr(spark_session.sparkContext, "pythonExec", str(tmp_path / python))
        with (
            pytest.raises(
                SparkProblem, match=f"^{problem}: workers are started with the Python that PYSPARK_PYTHON names"
            ),
            as_spark_problem(),
        ):
            spark_session.range(1).mapInArrow(list, "id bigint").collect()


@before_release((4, 2), "batches can be limited")
def test_a_stream_that_cannot_be_made_is_told_by_what_its_source_says(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    source = RawMessages(
        spark_session,
        "pulsar://127.0.0.1:1",
        topic="persistent://shop/sales/orders",
        kind="parquet",
        options={"maxMessagesPerTrigger": "5"},
    )
    query = source.stream(1).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(SparkProblem, match=r"^maxMessagesPerTrigger needs Spark 4\.2 or newer"), as_spark_problem():
        query.awaitTermination()


def test_a_format_that_is_not_there_is_told_by_its_name(spark_session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkProblem, match=r"Failed to find the data source: odd\. "):
        RawMessages(spark_session, str(tmp_path), topic="orders", kind="odd", options={}).read()


def test_a_file_whose_columns_are_of_other_types_is_told_by_its_name(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    files = {"a": "X'02' payload, 0L schema_version", "b": "X'02' payload, 0.5D schema_version"}
    for name, columns in files.items():
        spark_session.sql(f"select {columns}").write.parquet(f"{tmp_path}/messages/file={name}")
    messages = RawMessages(spark_session, f"{tmp_path}/messages", topic="orders", kind="parquet", options={})
    codec = Codec([Version(0, make_definition("int"))])
    reason = r"Encountered error while reading file .*/file=b/.*Parquet column \[schema_version\]"
    with pytest.raises(SparkProblem, match=reason), as_spark_problem():
        verify(messages.read(), codec)
    writer = messages.stream(1).writeStream.foreachBatch(sink(codec, tmp_path / "rows"))
    writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint")
    with pytest.raises(SparkProblem, match=reason), as_spark_problem():
        writer.trigger(availableNow=True).start().awaitTermination()


def make_definition(*types: str) -> Definition:
    fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(types)]
    return Definition("AVRO", json.dumps({"type": "record", "name": "R", "fields": fields}))


def test_files_that_are_none_of_the_format_are_told_by_their_path(spark_session: SparkSession, tmp_path: Path) -> None:
    def read_messages() -> Any:
        return RawMessages(spark_session, str(tmp_path), topic="orders", kind="parquet", options={}).read()

    with pytest.raises(SparkProblem, match=f"^{tmp_path} has no messages in the format parquet$"):
        read_messages()
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(SparkProblem, match=r"a\.parquet is not a Parquet file"):
        read_messages()


def test_the_first_are_the_first_of_the_input_whichever_task_met_them(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    codec = Codec(
        [Version(0, make_definition("long")), Version(1, make_definition("boolean"))], reader=make_definition("long")
    )
    for part in range(4):
        rows: list[dict[str, Any]] = [
            {"value": b"\x02", "__schemaVersion": (None, 0, 1)[row % 3], "__messageId": f"{part}/{row}"}
            for row in range(300)
        ]
        schema = pa.schema([("value", pa.binary()), ("__schemaVersion", pa.int64()), ("__messageId", pa.string())])
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / f"{part}.parquet")
    report = verify(spark_session.read.parquet(str(tmp_path)), codec, against=codec.read_as(1), shown=3)
    assert [count[:4] for count in report.counts] == [(0, 400, 0, 0), (1, 400, 400, 0), (None, 400, 0, 0)]
    assert report.total[1:] == (1_200, 400, 0)
    assert [unread.payload for unread in report.first] == [b"\x02"] * 3
    assert [str(unread.message_id).split("/")[1] for unread in report.first] == ["2", "5", "8"]


def test_values_that_no_batch_holds_are_counted_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_with_overflow(_: Any) -> None:
        raise pa.ArrowInvalid("offset overflow")

    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**10)
    monkeypatch.setattr(pa, "concat_batches", fail_with_overflow)
    text = Codec([Version(0, make_definition("string"))])
    payloads = [b"\x0clonger", b"\x0c", b"\x0clonger"] * 100
    batch = pa.record_batch({"value": payloads, "__messageId": [str(number) for number in range(300)]})
    columns = Columns("value", None, None, ())
    report = _verify_part([batch], codec=text, against=None, columns=columns, only_new_loss=False, shown=2)
    assert report.counts == (Count(None, messages=300, unreadable=100),)
    assert [unread.message_id for unread in report.first] == ["1", "4"]


def test_fields_that_json_messages_have_by_other_names_are_found(spark_session: SparkSession) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "isActive", "type": ["null", "boolean"]}]}
    codec = Codec([Version(number, Definition("JSON", json.dumps(record | {"doc": str(number)}))) for number in (0, 1)])
    rows = [
        (b'{"active": true}', 0),
        (b'{"isActive": true}', 1),
        (b'{"active": true}', 1),
        (b"{", 0),
        (b"{}", None),
        (b"{}", 9),
    ]
    verified = verify(spark_session.createDataFrame(rows, "payload binary, schema_version long").repartition(3), codec)
    schema = get_json_schema(codec.schema(0))
    assert schema is not None
    report = {number: find_absent_fields(schema, names) for number, names in verified.names.items()}
    assert [absent.text for absent in report.pop(0)] == [
        "isActive is absent in all messages, and read as null or rejected, while the messages have the unknown name active"
    ]
    assert report == {1: []}
