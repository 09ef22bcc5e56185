"""Fields with the name of another column: of their record, of the messages, or of the columns that decoding adds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from schemactl.checks.table_impact import find_column_changes
from schemactl.codec import Codec, Definition, Version
from schemactl.codec import Options as CodecOptions
from schemactl.codegen.topic_struct import StructOptions, former_names, struct_of
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import decode, encode, land, split, view, view_sql
from schemactl.spark.stored_messages import verify


def make_definition(*names: str, **aliases: list[str]) -> str:
    fields = [{"name": name, "type": "int", "default": 0, "aliases": aliases.get(name, [])} for name in names]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def make_codec(*versions: str) -> Codec:
    return Codec([Version(number, Definition("AVRO", text)) for number, text in enumerate(versions)])


def make_messages(spark: SparkSession, *sent: tuple[bytes, int]) -> DataFrame:
    return spark.createDataFrame(list(sent), "payload binary, schema_version long")


@pytest.fixture
def by_case(spark_session: SparkSession) -> Iterator[SparkSession]:
    spark_session.conf.set("spark.sql.caseSensitive", "true")
    yield spark_session
    spark_session.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("name", ["__error", "__payload", "__schemaVersion", "__ERROR"])
def test_a_record_with_a_column_of_decoding_is_one_column(name: str) -> None:
    assert make_codec(make_definition("id", name)).columns.names == ["value"]
    info = SchemaInfo(type=SchemaType.AVRO, schema=make_definition("id", name, id=["was"]).encode())
    struct = struct_of(info, StructOptions(), Release.R4_0)
    assert struct is not None
    assert [field.name for field in struct.fields] == ["value"]
    old = SchemaInfo(type=SchemaType.AVRO, schema=make_definition("was", name).encode())
    assert former_names(info, [old], StructOptions(), Release.R4_0) == {("value", "id"): ("was",)}


def test_a_field_that_has_no_column_does_not_count() -> None:
    text = 'syntax = "proto3"; message Nothing {} message M { int32 id = 1; Nothing __error = 2; }'
    click = compile_proto(Proto.of_text(text, "M"))
    tree = {"name": "__error", "type": {"type": "array", "items": "R"}}
    recursive = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, tree]}
    avro = SchemaInfo(type=SchemaType.AVRO, schema=json.dumps(recursive).encode())
    for info in (click, avro):
        one = Definition(info.type.name, info.schema.decode())
        read = Codec([Version(0, one)], options=CodecOptions(recursion_depth=1))
        struct = struct_of(info, StructOptions(recursive_field_max_depth=1), Release.R4_0)
        assert struct is not None
        assert [field.name for field in struct.fields] == read.columns.names == ["id"]


def test_it_is_decoded_landed_viewed_and_encoded_and_no_row_is_lost(
    spark_session: SparkSession, output_folder: str
) -> None:
    both = make_codec(make_definition("id"), make_definition("id", "__error"))
    sent = make_messages(spark_session, (b"\x02", 0), (b"\x04\x06", 1), (b"\x04", 1))
    rows, rejected = split(decode(sent, both), both)
    want = [Row(value=Row(id=1, __error=0), __schemaVersion=0), Row(value=Row(id=2, __error=3), __schemaVersion=1)]
    assert rows.collect() == want
    assert [row["__payload"] for row in rejected.collect()] == [b"\x04"]
    assert [bytes(row.payload) for row in encode(rows, both).collect()] == [b"\x02\x00", b"\x04\x06"]
    landed = land(sent, both, output_folder)
    assert (landed.rows, landed.rejected) == (2, 1)
    assert view(spark_session, both, output_folder).orderBy("__schemaVersion").select("value.*").collect() == [
        row.value for row in want
    ]


def test_columns_of_the_messages_can_be_renamed(spark_session: SparkSession) -> None:
    one = make_codec(make_definition("__topic"))
    sent = spark_session.createDataFrame([(b"\x02", 0, "t")], "payload binary, schema_version long, __topic string")
    with pytest.raises(ValueError, match="called __topic: rename or drop the column of the messages"):
        decode(sent, one)
    assert decode(sent.withColumnRenamed("__topic", "of"), one).columns[:2] == ["__topic", "of"]


def test_fields_that_differ_in_case_are_rejected_where_spark_cannot_tell_them_apart(
    spark_session: SparkSession,
) -> None:
    with pytest.raises(ValueError, match=r"called ID, id: the schema has both, .* spark.sql.caseSensitive=true"):
        decode(make_messages(spark_session, (b"\x02\x04", 0)), make_codec(make_definition("id", "ID")))


def test_fields_that_differ_in_case_are_columns_where_spark_can(by_case: SparkSession, output_folder: str) -> None:
    both = make_codec(make_definition("id"), make_definition("id", "ID"))
    sent = make_messages(by_case, (b"\x02\x04", 1), (b"\x06", 0))
    rows = split(decode(sent, both), both).rows
    want = [Row(id=1, ID=2), Row(id=3, ID=0)]
    assert rows.select("id", "ID").collect() == want
    assert [bytes(row.payload) for row in encode(rows, both).collect()] == [b"\x02\x04", b"\x06\x00"]
    land(sent, make_codec(make_definition("id")), output_folder)
    land(sent, both, output_folder)
    seen = view(by_case, both, output_folder).orderBy("id", "ID").select("id", "ID").collect()
    # The first landing knew version 0 alone, without a column ID.
    assert seen == [Row(id=1, ID=2), Row(id=3, ID=None), Row(id=3, ID=0)]
    assert "`id`,\n  `ID`" in view_sql("t", rows.schema, both, name="v")


def test_tables_tell_them_apart(by_case: SparkSession) -> None:  # noqa: ARG001
    def make_struct(*names: str) -> Any:
        info = SchemaInfo(type=SchemaType.AVRO, schema=make_definition(*names).encode())
        return struct_of(info, StructOptions(), Release.R4_0)

    assert not find_column_changes(make_struct("id", "ID"), make_struct("ID", "id"), {})
    assert [change.effect for change in find_column_changes(make_struct("id"), make_struct("id", "ID"), {})] == [
        "added column"
    ]
    assert not find_column_changes(make_struct("id"), make_struct("ID"), {})


def test_messages_may_have_columns_of_any_name(spark_session: SparkSession) -> None:
    one = make_codec(make_definition("id"))
    sent = spark_session.createDataFrame(
        [(b"\x02", 0, "x", 7)], "payload binary, schema_version long, `a.b` string, `c``d` int"
    )
    assert verify(sent, one).total == (None, 1, 0, 0)
    rows = split(decode(sent, one), one).rows
    assert rows.drop("__schemaVersion").collect() == [Row(**{"id": 1, "a.b": "x", "c`d": 7})]
    assert encode(rows, one).columns == ["a.b", "c`d", "__schemaVersion", "payload", "__error"]
