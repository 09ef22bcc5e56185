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

from schemactl.codegen.package import package_files
from schemactl.codegen.package_folder import compare, write
from schemactl.codegen.topics import PackageTopic
from schemactl.core.catalog import Topic
from schemactl.core.names import TopicName
from schemactl.core.project import Generate
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.generated import GeneratedTopic
from schemactl.spark import view, view_sql

from .schemas import make_array, make_codec, make_field, record

NOTE, CHANNEL = make_field("note", "string"), make_field("channel", ["null", "string"], default=None)
PLACE = record("Place", make_field("city", "string"), make_field("postcode", "string"))
ZIP = record("Place", make_field("zip", "string", "postcode"), make_field("city", "string"))
SKU = record("Item", make_field("sku", "int"))
ARTICLE = record("Item", make_field("article", "long", "sku"), make_field("price", "double", default=0))
VERSIONS = (
    record("Order", make_field("id", "int"), NOTE, make_field("amount", "float"), make_field("place", PLACE)),
    record(
        "Order",
        make_field("id", "long"),
        NOTE,
        make_field("amount", "float"),
        make_field("place", PLACE),
        CHANNEL,
        make_field("items", make_array(SKU), default=[]),
    ),
    record(
        "Order",
        CHANNEL,
        make_field("id", "long"),
        make_field("total", "double", "amount"),
        NOTE,
        make_field("place", ["null", ZIP], default=None),
        make_field("items", make_array(SKU), default=[]),
    ),
    record(
        "Order",
        CHANNEL,
        make_field("id", "long"),
        make_field("sum", "double", "total"),
        make_field("place", ["null", ZIP], default=None),
        make_field("items", make_array(ARTICLE), default=[]),
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
"""The messages of each version's epoch; the first message has no `items`, a field that its readers know later."""

STABLE = "SELECT id, amount, place.city, note FROM orders ORDER BY id"
TODAY = (
    "SELECT id, sum, channel, place.zip, transform(items, i -> i.article) AS articles, items[0].price AS price, note "
    "FROM orders ORDER BY id"
)


def write_package(out: Path, package: str, schemas: Sequence[Any]) -> None:
    """Return the generated topic with these versions."""
    infos = [SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode()) for schema in schemas]
    versions = tuple(SchemaVersion(n, info, Commit(f"{n:040x}", 0)) for n, info in enumerate(infos))
    declared = Topic(TopicName.parse("shop/sales/orders"), infos[-1], versions)
    approved = PackageTopic(declared, len(schemas) - 1)
    files = package_files([approved], Generate(package), release=Release.R4_0)
    write(files, out, compare(files, out))
    invalidate_caches()


@pytest.fixture(scope="module")
def generated_topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[GeneratedTopic[Any]]]:
    """Return the generated topic after the approval of each version."""
    out = tmp_path_factory.mktemp("generated")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(out))
        topics = []
        for number in range(len(VERSIONS)):
            write_package(out, f"epoch_{number}", VERSIONS[: number + 1])
            topics.append(import_module(f"epoch_{number}").topic("persistent://shop/sales/orders"))
        yield topics


def land_epoch(spark: SparkSession, topic: GeneratedTopic[Any], number: int, path: str) -> None:
    """Land one message of the version with the package of its time."""
    payload = topic.encode_one(LANDED[number], number) or b""
    columns = "payload binary, schema_version bigint, __topic string"
    topic.land(spark.createDataFrame([(bytearray(payload), number, "orders")], columns), path)


def test_the_same_sql_works_in_every_epoch_and_new_names_in_all_rows(
    spark_session: SparkSession, generated_topics: list[GeneratedTopic[Any]], output_folder: str
) -> None:
    seen: list[Any] = []
    for number, topic in enumerate(generated_topics):
        land_epoch(spark_session, topic, number, output_folder)
        topic.view(spark_session, output_folder, former=True, name="orders")
        rows = spark_session.sql(STABLE).collect()
        assert rows[:-1] == seen
        seen = rows
    assert [row["amount"] for row in seen] == [1.5, 2.5, 3.5, 4.5]
    assert spark_session.sql(TODAY).collect() == [
        (1, 1.5, None, "3000", None, None, "n1"),
        (2**40, 2.5, "WEB", "1200", [7], None, "n2"),
        (2**41, 3.5, "SHOP", "4000", [8], None, "n3"),
        (2**42, 4.5, None, None, [9], 0.5, None),
    ]
    view_rows = generated_topics[-1].view(spark_session, output_folder)
    assert view_rows.columns[:5] == generated_topics[-1].struct.names
    assert view_rows.columns[5:] == ["note", "__topic", "__schemaVersion"]
    assert [view_rows.schema[name].dataType for name in view_rows.columns[:5]] == [
        field.dataType for field in make_nullable(generated_topics[-1].struct)
    ]
    assert [row["__schemaVersion"] for row in view_rows.orderBy("id").collect()] == [0, 1, 2, 3]
    former = generated_topics[-1].view(spark_session, output_folder, former=True).columns
    assert former == [*view_rows.columns[:6], "total", "amount", *view_rows.columns[6:]]


def make_nullable(of: Any) -> Any:
    """The type with every part nullable."""
    text = json.dumps(json.loads(of.json())).replace("false", "true")
    return spark_types.StructType.fromJson(json.loads(text))


def test_former_names_are_written_down(generated_topics: list[GeneratedTopic[Any]]) -> None:
    assert generated_topics[0].former_names == {}
    assert generated_topics[3].former_names == {
        "sum": ("total", "amount"),
        "place.zip": ("postcode",),
        "items.element.article": ("sku",),
    }


def test_a_folder_of_one_version_is_read_by_later_ones_and_what_never_changed_as_it_is(
    spark_session: SparkSession,
    generated_topics: list[GeneratedTopic[Any]],
    output_folder: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    land_epoch(spark_session, generated_topics[0], 0, output_folder)
    view_rows = generated_topics[-1].view(spark_session, output_folder)
    view_rows.where("id = 1").select("id").explain()
    plan = capsys.readouterr().out
    assert "EqualTo(id,1)" in plan
    assert "ReadSchema: struct<id:bigint>" in plan
    (row,) = view_rows.collect()
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
    spark_session: SparkSession, generated_topics: list[GeneratedTopic[Any]], output_folder: str
) -> None:
    topic = generated_topics[1]
    payload = topic.encode_one(LANDED[1], 1) or b""
    messages = spark_session.createDataFrame(
        [(bytearray(payload), 1, "2026-03-02")], "payload binary, schema_version bigint, day string"
    )
    topic.land(messages, output_folder, partitionBy=["channel", "day"])
    (row,) = generated_topics[-1].view(spark_session, output_folder).collect()
    assert (row["channel"], str(row["day"]), row["sum"]) == ("WEB", "2026-03-02", 2.5)


def test_a_table_in_the_catalog_has_a_view_in_sql(spark_session: SparkSession, output_folder: str) -> None:
    places = {"type": "map", "values": PLACE}
    renamed = {"type": "map", "values": ZIP}
    old = record("Order", make_field("id", "int"), make_field("places", places), make_field("price", "float"))
    new = record(
        "Order", make_field("no", "long", "id"), make_field("places", renamed), make_field("price", "double"), CHANNEL
    )
    today = make_codec(old, new)
    names = {"no": ("id",), "places.value.zip": ("postcode",)}
    columns = "id int, places map<string, struct<city: string, postcode: string>>, price float, day date"
    spark_session.sql(f"CREATE TABLE landed ({columns}) USING parquet LOCATION '{output_folder}'")
    try:
        spark_session.sql(
            "INSERT INTO landed VALUES (1, map('home', named_struct('city', 'Bern', 'postcode', '3000')), 1.5, NULL)"
        )
        statement = view_sql("landed", spark_session.table("landed").schema, today, name="orders_v", former_names=names)
        spark_session.sql(statement)
        (row,) = spark_session.sql("SELECT * FROM orders_v").collect()
        assert row.asDict(recursive=True) == {
            "no": 1,
            "places": {"home": {"zip": "3000", "city": "Bern"}},
            "price": 1.5,
            "channel": None,
            "day": None,
        }
        assert spark_session.table("orders_v").schema["no"].dataType == spark_types.LongType()
        for number in range(2):
            if number:
                spark_session.sql("ALTER TABLE landed ADD COLUMNS (no bigint)")
                spark_session.sql("INSERT INTO landed (no) VALUES (2)")
            view_rows = view(spark_session, today, "landed", format="iceberg", former_names=names, former=True)
            assert view_rows.columns == ["no", "places", "price", "channel", "id", "day"]
            assert [row["no"] for row in view_rows.orderBy("no").collect()] == [1, 2][: number + 1]
    finally:
        spark_session.sql("DROP VIEW IF EXISTS orders_v")
        spark_session.sql("DROP TABLE landed")


def test_a_table_that_must_be_written_anew_has_no_view() -> None:
    today = make_codec(record("Order", make_field("id", "int")))
    columns = spark_types.StructType().add("id", "string")
    with pytest.raises(ValueError, match="the table has id as string, which cannot be read as int: rewrite the table"):
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
    today = make_codec(record("Order", make_field("x", want)))
    assert "CAST(`x` AS " in view_sql("t", spark_types.StructType().add("x", have), today, name="v")


def test_there_is_no_view_of_a_format_that_nothing_is_landed_in(
    spark_session: SparkSession, output_folder: str
) -> None:
    with pytest.raises(ValueError, match="unknown format csv: use one of parquet, delta, iceberg"):
        view(spark_session, make_codec(record("Order", NOTE)), output_folder, format="csv")  # type: ignore[arg-type]


def test_there_is_no_view_of_a_folder_that_is_not_there(spark_session: SparkSession, output_folder: str) -> None:
    make: Callable[[], Any] = lambda: view(spark_session, make_codec(record("Order", NOTE)), output_folder)  # noqa: E731
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        make()
