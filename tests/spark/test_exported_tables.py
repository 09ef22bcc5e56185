"""The statements of `export ddl` make the tables that decoded messages go to."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from schemactl.codegen.spark_types import to_json
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.publish.data_contract import create_table

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


def test_spark_makes_the_tables_of_what_is_decoded(spark: SparkSession) -> None:
    record = json.dumps({"type": "record", "name": "R", "fields": FIELDS}).encode()
    info = SchemaInfo(SchemaType.AVRO, record)
    columns = struct_of(info, OPTIONS, Release.R4_0)
    assert columns is not None
    name, comment = "a_b", "It's \\ every\norder"
    statement = create_table(name, info, Release.R4_0, OPTIONS, comment)
    # Here no catalog says what its tables are made of.
    spark.sql(statement.replace("\n)\nCOMMENT", "\n) USING parquet COMMENT").rstrip(";\n"))
    made = spark.table("a_b").schema
    inner = made["select"].dataType
    assert isinstance(inner, StructType)
    comments = {column.name: column.metadata.get("comment") for column in [*made, *inner]}
    told = spark.sql("DESCRIBE TABLE EXTENDED a_b").where("col_name = 'Comment'").first()
    spark.sql("DROP TABLE a_b")
    # A table's columns may be null all the same.
    assert made.simpleString() == StructType.fromJson(to_json(columns)).simpleString()
    assert {name: text for name, text in comments.items() if text} == {
        "id": "Of ${env:HOME}'s\n\\ own.",
        "from": "'\u202e'\0 \\\\n",
    }
    assert told is not None
    assert told["data_type"] == comment
