"""`export ddl --dialect`: types, names and comments of each engine, and the parsers of Spark, Trino and Hive on it."""

from __future__ import annotations

import importlib.util
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from scratch import Scratch

from schemactl.codegen.spark_types import Atomic, Struct
from schemactl.codegen.spark_types import SparkField as Field
from schemactl.core.errors import SchemactlError
from schemactl.publish.sql_dialects import render_table

NEEDS_SQLGLOT = pytest.mark.skipif(not importlib.util.find_spec("sqlglot"), reason="sqlglot is not installed")

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string", "doc": 'It\'s the \\ key\nof "all" `orders`'},
    {"name": "count", "type": "int"},
    {"name": "total", "type": "long"},
    {"name": "ratio", "type": "float"},
    {"name": "score", "type": "double"},
    {"name": "flag", "type": "boolean"},
    {"name": "raw", "type": "bytes"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
    {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "counts", "type": {"type": "map", "values": "long"}},
    {
        "name": "select",
        "type": {"type": "record", "name": "Inner", "fields": [{"name": "from", "type": "int", "doc": "it's"}]},
    },
    {
        "name": "lines",
        "type": {
            "type": "array",
            "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": ["null", "string"]}]},
        },
    },
]

TYPES = {
    "trino": {
        "id": "varchar",
        "count": "integer",
        "total": "bigint",
        "ratio": "real",
        "flag": "boolean",
        "raw": "varbinary",
        "day": "date",
        "at": "timestamp(6) with time zone",
        "local": "timestamp(6)",
        "price": "decimal(12, 3)",
        "tags": "array(varchar)",
        "counts": "map(varchar, bigint)",
        "select": 'row("from" integer)',
        "lines": 'array(row("sku" varchar))',
    },
    "flink": {
        "id": "STRING",
        "count": "INT",
        "ratio": "FLOAT",
        "raw": "BYTES",
        "at": "TIMESTAMP_LTZ(6)",
        "local": "TIMESTAMP(6)",
        "price": "DECIMAL(12, 3)",
        "tags": "ARRAY<STRING>",
        "counts": "MAP<STRING, BIGINT>",
        "select": "ROW<`from` INT 'it''s'>",
        "lines": "ARRAY<ROW<`sku` STRING>>",
    },
    "hive": {
        "id": "STRING",
        "count": "INT",
        "raw": "BINARY",
        "at": "TIMESTAMP",
        "local": "TIMESTAMP",
        "price": "DECIMAL(12, 3)",
        "tags": "ARRAY<STRING>",
        "counts": "MAP<STRING, BIGINT>",
        "select": "STRUCT<`from`: INT COMMENT 'it\\'s'>",
        "lines": "ARRAY<STRUCT<`sku`: STRING>>",
    },
}


@pytest.fixture(scope="module")
def dialect_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Scratch(tmp_path_factory.mktemp("dialects") / "r")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": "topic: shop/sales/orders\ndescription: It's every order\n"
            "schema: {type: AVRO, definition: orders.avsc}\n",
            "topics/orders.avsc": json.dumps({"type": "record", "name": "Order", "fields": FIELDS}),
            "topics/names.yaml": "topic: shop/sales/names\nschema: {type: STRING}\n",
            "topics/pairs.yaml": "topic: shop/sales/pairs\n"
            "schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: AVRO, definition: orders.avsc}}\n",
        }
    )
    repository.flush()
    return repository.path


def export(folder: Path, dialect: str, *topics: str) -> str:
    return schemactl(folder, "export", "ddl", *topics, "--dialect", dialect).out


@pytest.mark.parametrize("dialect", TYPES)
def test_each_type_has_the_name_of_the_engine(dialect_folder: Path, dialect: str) -> None:
    quote = '"' if dialect == "trino" else "`"
    lines = [line.strip().rstrip(",") for line in export(dialect_folder, dialect, "orders").splitlines()]
    for name, type_ in TYPES[dialect].items():
        assert any(
            line == f"{quote}{name}{quote} {type_}" or line.startswith(f"{quote}{name}{quote} {type_} COMMENT")
            for line in lines
        ), (name, lines)


@NEEDS_SQLGLOT
@pytest.mark.parametrize("dialect", ["trino", "hive"])
def test_another_parser_reads_the_columns_and_comments(dialect_folder: Path, dialect: str) -> None:
    sqlglot = import_module("sqlglot")
    exp = sqlglot.expressions
    text = export(dialect_folder, dialect)
    tables = sqlglot.parse(text, dialect=dialect)
    tables = [table for table in tables if table]
    assert [table.find(exp.Table).name for table in tables] == ["names", "orders", "pairs"]
    orders = tables[1]
    columns = list(orders.this.expressions)
    assert [column.name for column in columns] == [field["name"] for field in FIELDS]
    comments = [constraint.kind.this.this for constraint in columns[0].constraints]
    assert comments == [FIELDS[0]["doc"]]
    # Nothing was left to the parser's fallback for unknown statements.
    assert not list(orders.find_all(exp.Command))


def test_types_that_an_engine_lacks_are_named() -> None:
    duration = Struct((Field("d", Atomic("interval day to second"), nullable=True),))
    nested = Struct((Field("a", Struct(()), nullable=True),))
    for dialect in ("trino", "flink", "hive"):
        with pytest.raises(SchemactlError, match="d is interval day to second"):
            render_table("t", duration, dialect)
        with pytest.raises(SchemactlError, match="a is a record without fields"):
            render_table("t", nested, dialect)


def test_names_are_quoted_and_the_option_belongs_to_ddl(dialect_folder: Path) -> None:
    column = Struct((Field('a"b`c', Atomic("string"), nullable=True),))
    assert '"a""b`c"' in render_table("t", column, "trino")
    assert '`a"b``c`' in render_table("t", column, "flink")
    assert (
        "--dialect requires" in schemactl(dialect_folder, "export", "avro", "orders", "--dialect", "hive", code=64).err
    )
    assert export(dialect_folder, "spark", "orders") == schemactl(dialect_folder, "export", "ddl", "orders").out
