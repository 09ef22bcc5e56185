"""Spark's types, compared with Spark's own SchemaConverters: recorded (4.1.1, and 4.3.0 where it differs), and as installed."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from java_avro import JavaAvro
from random_avro import Maker

from schemactl.codec import Codec, Definition, Version
from schemactl.codec import avro_schema as codec_schema
from schemactl.codec.avro_schema import parse as codec_parse
from schemactl.codegen import spark_types
from schemactl.codegen.spark_types import SparkType, UnsupportedBySpark
from schemactl.codegen.topic_struct import StructOptions, convert
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import InvalidAvro
from schemactl.formats.avro.parser import parse, parse_for_spark
from schemactl.spark.column_types import struct_of_ddl

CORPUS = Path(__file__).parent.parent / "corpus" / "spark_types_public.jsonl.gz"


CASES: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(CORPUS.read_bytes()).splitlines()]


def options_of(case: dict[str, Any], spark: str) -> StructOptions:
    options = case.get("options", {})
    return StructOptions(
        spark=spark,
        recursive_field_max_depth=options.get("recursiveFieldMaxDepth", -1),
        stable_union_identifiers=options.get("enableStableIdentifiersForUnionType", False),
    )


def ask_spark(definition: Any, options: StructOptions) -> tuple[Any, bool] | tuple[str, str | None]:
    """Return a definition's type as JSON and whether it is nullable, or the exception and condition that Spark throws."""
    try:
        column = convert(parse_for_spark(json.dumps(definition), options.release), options)
    except UnsupportedBySpark as error:
        return error.error, error.condition
    except InvalidAvro as error:
        return error.exception, None
    return spark_types.to_json(column.type), column.nullable


@pytest.mark.parametrize("spark", ["4.1", "4.3"])
def test_types_are_those_of_schema_converters(spark: str) -> None:
    assert len(CASES) == 283
    for case in CASES:
        result = ask_spark(case["avro"], options_of(case, spark))
        if case["error"]:
            assert (case["id"], result[0]) == (case["id"], case["error"])
        else:
            expected = case["struct_430"] if spark == "4.3" and "struct_430" in case else case["struct"]
            assert (case["id"], *result) == (case["id"], expected, case["nullable"])


def test_columns_are_read_back_from_their_ddl_without_a_session() -> None:
    recorded = [case for case in CASES if case["struct"]]
    assert len(recorded) > 200
    for case in recorded:
        column = convert(parse_for_spark(json.dumps(case["avro"]), (4, 1)), options_of(case, "4.1"))
        columns = spark_types.Struct((spark_types.SparkField("an `odd` name", column.type, column.nullable),))
        read = struct_of_ddl(spark_types.columns_ddl(columns))
        assert json.loads(read.json()) == spark_types.to_json(columns)


JAVA_CLASSES = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Properties that make Avro ignore a logical type, if they are texts."""

OTHER = {"type": "record", "name": "Inner", "namespace": "other", "fields": [{"name": "x", "type": "Outer"}]}
UP = {"name": "f", "type": "int", "default": "none", "order": "up"}


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        # Pulsar 4.2 accepts it, and Spark does not.
        ({"type": "record", "name": "A$B", "fields": []}, "SchemaParseException"),
        # A record is known when it is complete: inside, its name is looked for in the namespace that is in force there.
        ({"type": "record", "name": "Outer", "fields": [{"name": "in", "type": OTHER}]}, "AvroTypeException"),
        # A field's order is looked at before its default, and a record's namespace after its fields.
        ({"type": "record", "name": "R", "fields": [UP]}, "IllegalArgumentException"),
        ({"type": "record", "name": "R", "namespace": "1x", "fields": [UP]}, "IllegalArgumentException"),
    ],
)
def test_what_the_avro_of_spark_rejects_is_rejected_in_its_order(definition: Any, error: str) -> None:
    assert ask_spark(definition, StructOptions()) == (error, None)


def test_before_spark_4_1_a_record_is_known_from_its_name_on() -> None:
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "in", "type": OTHER}]}
    schema = parse_for_spark(json.dumps(outer), (4, 0))
    column = convert(schema, StructOptions(spark="4.0", recursive_field_max_depth=1))
    inner = spark_types.Struct((spark_types.SparkField("in", spark_types.Struct(()), nullable=False),))
    assert column.type == inner


def test_spark_has_times_from_4_1_on() -> None:
    definition = {"type": "long", "spark.sql.catalyst.type": "time"}
    assert ask_spark(definition, StructOptions(spark="4.1"))[0] == "time(6)"
    assert ask_spark(definition, StructOptions(spark="4.0"))[0] == "ParseException"


def convert_definition(definition: Any) -> SparkType:
    """Return the type of Spark 4.1."""
    return convert(parse_for_spark(json.dumps(definition), (4, 1)), StructOptions()).type


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        # Next to a Java class.
        *(({"type": "long", "logicalType": "timestamp-millis", name: "C"}, spark_types.LONG) for name in JAVA_CLASSES),
        # A number that does not fit into an int of Java.
        ({"type": "bytes", "logicalType": "decimal", "precision": 2**31}, spark_types.BINARY),
    ],
)
def test_a_logical_type_that_avro_ignores_is_none(definition: Any, expected: SparkType) -> None:
    assert convert_definition(definition) == expected
    read = codec_parse(json.dumps(definition))
    assert isinstance(read, codec_schema.PrimitiveType)
    assert read.logical is None


NOTED = [
    *(
        "",
        "bigint",
        "int",
        "smallint",
        "byte",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
        "interval",
        "void",
        "real",
    ),
    *("nonsense", "int(3)", "timestamp(6)", "timestamp_ntz(6)", "timestamp_ltz(9)", "timestamp(7)", "timestamp_ntz(3)"),
    *("timestamp(10)", "time", "time(0)", "TIME ( 3 )", "time(06)", "time(7)", "time(9)", "time(10)", "interval year"),
    *("INTERVAL  day to Second", "interval month to day", "interval second to day", "interval hour"),
]
"""Values of `spark.sql.catalyst.type`, where Spark stores the types of numbers that Avro lacks."""


def generate_schemas() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield schemas with their options: recorded ones, random ones, and numbers that had another type in Spark."""
    for case in CASES:
        yield case["avro"], case.get("options", {})
    for seed in range(50):
        yield Maker(seed).draw_schema(4), {"enableStableIdentifiersForUnionType": seed % 2 == 1}
    kinds = (("int", ""), ("long", "time-micros"), ("long", "timestamp-nanos"))
    others = itertools.product(("int", "long"), ("", "time-millis", "date", "timestamp-micros"))
    for (kind, logical), noted in (*itertools.product(kinds, NOTED), *itertools.product(others, NOTED[:2])):
        yield {"type": kind, "logicalType": logical, "spark.sql.catalyst.type": noted}, {}
    for name, value in itertools.product(JAVA_CLASSES, ("java.lang.String", 5, None)):
        yield {"type": "long", "logicalType": "timestamp-millis", name: value}, {}
        yield {"type": "bytes", "logicalType": "decimal", "precision": 4, name: value}, {}
        fixed = {"type": "fixed", "name": "F", "size": 4}
        yield fixed | {"logicalType": "decimal", "precision": 4, name: value}, {}
    for name in ("union", "array", "map"):
        yield ["null", {"type": "record", "name": name, "fields": []}, {"type": "array", "items": "int"}], {}


def test_types_are_those_of_the_installed_spark(java: JavaAvro) -> None:
    for definition, options in generate_schemas():
        struct_options = options_of({"options": options}, ".".join(pyspark.__version__.split(".")[:2]))
        expected = java.convert_to_struct(
            definition,
            depth=struct_options.recursive_field_max_depth,
            stable=struct_options.stable_union_identifiers,
            prefix=struct_options.stable_union_prefix,
        )
        assert (definition, ask_spark(definition, struct_options)) == (definition, expected)


NODE = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
NOTE = "spark.sql.catalyst.type"


@pytest.mark.parametrize(
    ("definition", "error", "condition"),
    [
        # As Spark 4.1.1 throws them.
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 39},
            "SparkArithmeticException",
            "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
        ),
        ({"type": "int", NOTE: "nonsense"}, "ParseException", "UNSUPPORTED_DATATYPE"),
        ({"type": "long", NOTE: ""}, "ParseException", "PARSE_EMPTY_STATEMENT"),
        ({"type": "int", NOTE: "interval x"}, "ParseException", "PARSE_SYNTAX_ERROR"),
        ({"type": "int", NOTE: "time(7)"}, "SparkException", "UNSUPPORTED_TIME_PRECISION"),
        (NODE, "IncompatibleSchemaException", None),
    ],
)
def test_what_spark_has_no_type_for_is_rejected_by_its_exception_and_condition(
    definition: Any, error: str, condition: str | None
) -> None:
    assert ask_spark(definition, StructOptions()) == (error, condition)


def test_nanoseconds_are_bigint_where_the_package_says_so() -> None:
    schema = parse('{"type": "long", "logicalType": "timestamp-nanos"}', Release.R4_0)
    assert convert(schema, StructOptions(spark="4.3", as_decoded=True)).type == spark_types.LONG


@pytest.mark.parametrize("spark", ["4.1", "4.3"])
def test_a_package_has_the_number_whatever_type_spark_noted_beside_it(spark: str) -> None:
    for kind, noted in (("int", "interval month"), ("long", "interval day to second"), ("long", "nonsense")):
        text = json.dumps({"type": kind, "spark.sql.catalyst.type": noted})
        column_type = convert(parse(text, Release.R4_0), StructOptions(spark=spark, as_decoded=True)).type
        assert column_type == (spark_types.INTEGER if kind == "int" else spark_types.LONG)
        columns = Codec([Version(0, Definition("AVRO", text))]).columns
        assert columns.field("value").type == (pa.int32() if kind == "int" else pa.int64())


def test_an_invalid_spark_release_is_rejected() -> None:
    with pytest.raises(SchemactlError, match="not a Spark release"):
        _ = StructOptions(spark="four").release
    with pytest.raises(SchemactlError, match=r"Spark 3\.5 is older than the supported releases"):
        _ = StructOptions(spark="3.5").release
