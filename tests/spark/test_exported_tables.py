"""The statements of `export ddl` make the tables that decoded messages go to."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import deltalake
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from schemactl.codec import Codec, Definition, Version
from schemactl.codegen.spark_types import to_json
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.publish.data_contract import create_table
from schemactl.spark import WrongArgument, land

OPTIONS = StructOptions(as_decoded=True)
FIELDS = [
    {"name": "id", "type": "long", "doc": "Of ${env:HOME}'s\n\\ own."},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": ["null", "int"]}}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {
        "name": "select",
        "type": {
            "type": "record",
            "name": "S",
            "fields": [{"name": "from", "type": "string", "doc": "'\u202e'\0 \\\\n"}],
        },
    },
]


def test_spark_makes_the_tables_of_what_is_decoded(spark_session: SparkSession) -> None:
    record = json.dumps({"type": "record", "name": "R", "fields": FIELDS}).encode()
    info = SchemaInfo(SchemaType.AVRO, record)
    columns = struct_of(info, OPTIONS, Release.R4_0)
    assert columns is not None
    name, comment = "a_b", "It's \\ every\norder"
    statement = create_table(name, info, Release.R4_0, OPTIONS, comment)
    # Here no catalog sets the format of its tables.
    spark_session.sql(statement.replace("\n)\nCOMMENT", "\n) USING parquet COMMENT").rstrip(";\n"))
    struct = spark_session.table("a_b").schema
    inner = struct["select"].dataType
    assert isinstance(inner, StructType)
    comments = {column.name: column.metadata.get("comment") for column in [*struct, *inner]}
    comment_row = spark_session.sql("DESCRIBE TABLE EXTENDED a_b").where("col_name = 'Comment'").first()
    spark_session.sql("DROP TABLE a_b")
    # A table's columns are always nullable.
    assert struct.simpleString() == StructType.fromJson(to_json(columns)).simpleString()
    assert {name: text for name, text in comments.items() if text} == {
        "id": "Of ${env:HOME}'s\n\\ own.",
        "from": "'\u202e'\0 \\\\n",
    }
    assert comment_row is not None
    assert comment_row["data_type"] == comment


def test_rows_land_in_a_table_of_the_exported_columns(spark_session: SparkSession, tmp_path: Path) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": FIELDS})
    info = SchemaInfo(SchemaType.AVRO, text.encode())
    statement = create_table("orders", info, Release.R4_0, OPTIONS)
    assert "NOT NULL" not in statement
    columns = statement.partition("(\n")[2].rpartition("\n)")[0]
    table = str(tmp_path / "orders")
    deltalake.DeltaTable.create(table, deltalake.Schema.from_json(StructType.fromDDL(columns).json()))
    codec = Codec([Version(0, Definition("AVRO", text))])
    value = {"id": 1, "price": Decimal("9.50"), "lines": [{"a": None}], "at": None, "select": {"from": "here"}}
    row = (bytearray(codec.encode_one(value) or b""), 0, "t", b"1")
    messages = spark_session.createDataFrame(
        [row], "payload binary, schema_version long, __topic string, __messageId binary"
    )
    landed = land(messages, codec, table, format="delta")
    assert (landed.rows, landed.rejected) == (1, 0)
    [landed_row] = deltalake.DeltaTable(table).to_pyarrow_table().to_pylist()
    assert (landed_row["id"], landed_row["__schemaVersion"], landed_row["__topic"]) == (1, 0, "t")
    # Other columns of the messages are added only if this is allowed.
    with pytest.raises(WrongArgument, match="add region string"):
        land(messages.withColumn("region", sql.lit("eu")), codec, table, format="delta")
