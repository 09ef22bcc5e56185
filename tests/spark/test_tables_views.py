"""The same SQL over a table whose rows were landed in the course of four versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from schemactl.codegen.package import compare, package_files, write
from schemactl.codegen.topics import Approved
from schemactl.core.catalog import Topic
from schemactl.core.names import TopicName
from schemactl.core.project import Generate
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.generated import GeneratedTopic
from schemactl.spark import view, view_sql

from .schemas import array, codec, field, record

NOTE, CHANNEL = field("note", "string"), field("channel", ["null", "string"], default=None)
PLACE = record("Place", field("city", "string"), field("postcode", "string"))
ZIP = record("Place", field("zip", "string", "postcode"), field("city", "string"))
SKU = record("Item", field("sku", "int"))
ARTICLE = record("Item", field("article", "long", "sku"), field("price", "double", default=0))
VERSIONS = (
    record("Order", field("id", "int"), NOTE, field("amount", "float"), field("place", PLACE)),
    record(
        "Order",
        field("id", "long"),
        NOTE,
        field("amount", "float"),
        field("place", PLACE),
        CHANNEL,
        field("items", array(SKU), default=[]),
    ),
    record(
        "Order",
        CHANNEL,
        field("id", "long"),
        field("total", "double", "amount"),
        NOTE,
        field("place", ["null", ZIP], default=None),
        field("items", array(SKU), default=[]),
    ),
    record(
        "Order",
        CHANNEL,
        field("id", "long"),
        field("sum", "double", "total"),
        field("place", ["null", ZIP], default=None),
        field("items", array(ARTICLE), default=[]),
    ),
)
LANDED = (
    {"id": 1, "note": "n1", "amount": 1.5, "place": {"city": "Bern", "postcode": "3000"}},
    {
        "id": 2**40,
        "note": "n2",
        "amount": 2.5,
        "place": {"city": "Genf", "postcode": "1200"},
        "channel": "WEB",
        "items": [{"sku": 7}],
    },
    {
        "channel": "SHOP",
        "id": 2**41,
        "total": 3.5,
        "note": "n3",
        "items": [{"sku": 8}],
        "place": {"zip": "4000", "city": "Basel"},
    },
    {"channel": None, "id": 2**42, "sum": 4.5, "place": None, "items": [{"article": 9, "price": 0.5}]},
)
"""What each version's epoch brings; the first message has no `items`, which its readers know later."""

STABLE = "SELECT id, amount, place.city, note FROM orders ORDER BY id"
TODAY = (
    "SELECT id, sum, channel, place.zip, transform(items, i -> i.article) AS articles, items[0].price AS price, note "
    "FROM orders ORDER BY id"
)


def write_package(out: Path, package: str, schemas: Sequence[Any]) -> None:
    """What `generate` writes when the topic has these versions."""
    infos = [SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode()) for schema in schemas]
    versions = tuple(SchemaVersion(n, info, Commit(f"{n:040x}", 0)) for n, info in enumerate(infos))
    declared = Topic(TopicName.parse("shop/sales/orders"), infos[-1], versions)
    approved = Approved(declared, len(schemas) - 1)
    files = package_files([approved], Generate(package), release=Release.R4_0)
    write(files, out, compare(files, out))
    invalidate_caches()


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[GeneratedTopic[Any]]]:
    """What `generate` writes after each version was approved."""
    out = tmp_path_factory.mktemp("generated")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(out))
        topics = []
        for number in range(len(VERSIONS)):
            write_package(out, f"epoch_{number}", VERSIONS[: number + 1])
            topics.append(import_module(f"epoch_{number}").topic("persistent://shop/sales/orders"))
        yield topics


def land_epoch(spark: SparkSession, topic: GeneratedTopic[Any], number: int, path: str) -> None:
    """One message of that version, landed by what was generated then."""
    payload = topic.encode_one(LANDED[number], number) or b""
    columns = "payload binary, schema_version bigint, __topic string"
    topic.land(spark.createDataFrame([(bytearray(payload), number, "orders")], columns), path)


def test_the_same_sql_works_in_every_epoch_and_new_names_in_all_rows(
    spark: SparkSession, epochs: list[GeneratedTopic[Any]], folder: str
) -> None:
    seen: list[Any] = []
    for number, topic in enumerate(epochs):
        land_epoch(spark, topic, number, folder)
        topic.view(spark, folder, former=True, name="orders")
        rows = spark.sql(STABLE).collect()
        assert rows[:-1] == seen
        seen = rows
    assert [row["amount"] for row in seen] == [1.5, 2.5, 3.5, 4.5]
    assert spark.sql(TODAY).collect() == [
        (1, 1.5, None, "3000", None, None, "n1"),
        (2**40, 2.5, "WEB", "1200", [7], None, "n2"),
        (2**41, 3.5, "SHOP", "4000", [8], None, "n3"),
        (2**42, 4.5, None, None, [9], 0.5, None),
    ]
    found = epochs[-1].view(spark, folder)
    assert found.columns[:5] == epochs[-1].struct.names
    assert found.columns[5:] == ["note", "__topic", "__schemaVersion"]
    assert [found.schema[name].dataType for name in found.columns[:5]] == [
        field.dataType for field in nullable(epochs[-1].struct)
    ]
    assert [row["__schemaVersion"] for row in found.orderBy("id").collect()] == [0, 1, 2, 3]
    former = epochs[-1].view(spark, folder, former=True).columns
    assert former == [*found.columns[:6], "total", "amount", *found.columns[6:]]


def nullable(of: Any) -> Any:
    """The type with every part nullable."""
    text = json.dumps(json.loads(of.json())).replace("false", "true")
    return spark_types.StructType.fromJson(json.loads(text))


def test_former_names_are_written_down(epochs: list[GeneratedTopic[Any]]) -> None:
    assert epochs[0].former_names == {}
    assert epochs[3].former_names == {
        "sum": ("total", "amount"),
        "place.zip": ("postcode",),
        "items.element.article": ("sku",),
    }


def test_a_folder_of_one_version_is_read_by_later_ones_and_what_never_changed_as_it_is(
    spark: SparkSession, epochs: list[GeneratedTopic[Any]], folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    land_epoch(spark, epochs[0], 0, folder)
    found = epochs[-1].view(spark, folder)
    found.where("id = 1").select("id").explain()
    plan = capsys.readouterr().out
    assert "EqualTo(id,1)" in plan
    assert "ReadSchema: struct<id:bigint>" in plan
    (row,) = found.collect()
    assert row.asDict(recursive=True) == {
        "channel": None,
        "id": 1,
        "sum": 1.5,
        "place": {"zip": "3000", "city": "Bern"},
        "items": None,
        "note": "n1",
        "__topic": "orders",
        "__schemaVersion": 0,
    }


def test_partitions_are_columns_of_the_view(
    spark: SparkSession, epochs: list[GeneratedTopic[Any]], folder: str
) -> None:
    topic = epochs[1]
    payload = topic.encode_one(LANDED[1], 1) or b""
    messages = spark.createDataFrame(
        [(bytearray(payload), 1, "2026-03-02")], "payload binary, schema_version bigint, day string"
    )
    topic.land(messages, folder, partitionBy=["channel", "day"])
    (row,) = epochs[-1].view(spark, folder).collect()
    assert (row["channel"], str(row["day"]), row["sum"]) == ("WEB", "2026-03-02", 2.5)


def test_a_table_in_the_catalog_has_a_view_in_sql(spark: SparkSession, folder: str) -> None:
    places = {"type": "map", "values": PLACE}
    renamed = {"type": "map", "values": ZIP}
    old = record("Order", field("id", "int"), field("places", places), field("price", "float"))
    new = record("Order", field("no", "long", "id"), field("places", renamed), field("price", "double"), CHANNEL)
    today = codec(old, new)
    names = {"no": ("id",), "places.value.zip": ("postcode",)}
    columns = "id int, places map<string, struct<city: string, postcode: string>>, price float, day date"
    spark.sql(f"CREATE TABLE landed ({columns}) USING parquet LOCATION '{folder}'")
    try:
        spark.sql(
            "INSERT INTO landed VALUES (1, map('home', named_struct('city', 'Bern', 'postcode', '3000')), 1.5, NULL)"
        )
        statement = view_sql("landed", spark.table("landed").schema, today, name="orders_v", former_names=names)
        spark.sql(statement)
        (row,) = spark.sql("SELECT * FROM orders_v").collect()
        assert row.asDict(recursive=True) == {
            "no": 1,
            "places": {"home": {"zip": "3000", "city": "Bern"}},
            "price": 1.5,
            "channel": None,
            "day": None,
        }
        assert spark.table("orders_v").schema["no"].dataType == spark_types.LongType()
        for number in range(2):
            if number:
                spark.sql("ALTER TABLE landed ADD COLUMNS (no bigint)")
                spark.sql("INSERT INTO landed (no) VALUES (2)")
            found = view(spark, today, "landed", format="iceberg", former_names=names, former=True)
            assert found.columns == ["no", "places", "price", "channel", "id", "day"]
            assert [row["no"] for row in found.orderBy("no").collect()] == [1, 2][: number + 1]
    finally:
        spark.sql("DROP VIEW IF EXISTS orders_v")
        spark.sql("DROP TABLE landed")


def test_a_table_that_must_be_written_anew_has_no_view() -> None:
    today = codec(record("Order", field("id", "int")))
    columns = spark_types.StructType().add("id", "string")
    with pytest.raises(ValueError, match="the table has id as string, which is not read as int: rewrite the table"):
        view_sql("t", columns, today, name="v")


@pytest.mark.parametrize(
    ("have", "want"),
    [
        (spark_types.DecimalType(9, 2), {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4}),
        (spark_types.IntegerType(), "double"),
        (spark_types.BinaryType(), "string"),
    ],
)
def test_what_avro_promotes_is_cast(have: spark_types.DataType, want: Any) -> None:
    today = codec(record("Order", field("x", want)))
    assert "CAST(`x` AS " in view_sql("t", spark_types.StructType().add("x", have), today, name="v")


def test_there_is_no_view_of_a_format_that_nothing_is_landed_in(spark: SparkSession, folder: str) -> None:
    with pytest.raises(ValueError, match="no format is called csv: take one of parquet, delta, iceberg"):
        view(spark, codec(record("Order", NOTE)), folder, format="csv")  # type: ignore[arg-type]


def test_there_is_no_view_of_a_folder_that_is_not_there(spark: SparkSession, folder: str) -> None:
    make: Callable[[], Any] = lambda: view(spark, codec(record("Order", NOTE)), folder)  # noqa: E731
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        make()
