"""Delta and Iceberg tables after a landing, read by Spark with the jars of both, by delta-rs, pyiceberg and DuckDB."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from decimal import Decimal
from importlib import invalidate_caches
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import deltalake
import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as IcebergTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StringType, StructType
from spark_jars import TABLES, needs_jars

from schemactl.codec import Codec
from schemactl.codec.arrow_types import to_numbers
from schemactl.spark import WrongArgument
from schemactl.spark.column_types import struct_of

from .engine import Lake, Messages, open_lake
from .schemas import make_array, make_codec, make_field, make_logical_type, make_record, record
from .test_from_avro import by_key
from .test_tables_views import write_package

pytestmark = [pytest.mark.live, needs_jars(*TABLES)]

DECIMALS = {f"d{digits}": (digits, scale) for digits, scale in ((5, 2), (18, 4), (38, 10))}
PART = record(
    "Part",
    make_field("at", make_logical_type("long", "timestamp-micros")),
    make_field("sizes", {"type": "map", "values": ["null", "double"]}),
)
FIELDS = {
    "flag": "boolean",
    "small": "int",
    "large": "long",
    "single": "float",
    "double": "double",
    "text": "string",
    "raw": "bytes",
    "day": make_logical_type("int", "date"),
    "at": make_logical_type("long", "timestamp-micros"),
    "local": make_logical_type("long", "local-timestamp-micros"),
    **{
        name: make_logical_type("bytes", "decimal", precision=digits, scale=scale)
        for name, (digits, scale) in DECIMALS.items()
    },
    "place": record("Place", make_field("city", "string"), make_field("code", ["null", "int"])),
    "parts": make_array(PART),
    "tags": {"type": "map", "values": "string"},
    "choice": ["null", "string", "long"],
}
TYPES: Codec = make_codec(
    make_record(
        make_field("id", "int"),
        *(make_field(name, of if isinstance(of, list) else ["null", of], default=None) for name, of in FIELDS.items()),
    )
)
"""Of each type a column that may be null."""

MOST = 86_399_999_999 + 86_400_000_000 * 2_932_896
"""The last microsecond of the year 9999."""

VALUES: dict[str, list[Any]] = {
    "flag": [True, False, True],
    "small": [-(2**31), 0, 2**31 - 1],
    "large": [-(2**63), 2**53 + 1, 2**63 - 1],
    "single": [math.nan, -0.0, 1.5, math.inf],
    "double": [0.1, math.nan, -1e300, 5e-324, 0.0],
    "text": ["", "straße 😀", "x" * 200, "a\x00b", "\U0010ffff" * 20],
    "raw": [b"", b"\x00\xff", b"\xff" * 40],
    "day": [-719162, 0, 2_932_896],
    "at": [-62_135_596_800_000_000, 1_700_000_000_123_456, MOST],
    "local": [-1, 1_700_000_000_000_001, MOST],
    **{
        name: [Decimal((0, (9,) * digits, -scale)), Decimal(0), Decimal(-1)]
        for name, (digits, scale) in DECIMALS.items()
    },
    "place": [{"city": "", "code": None}, {"city": "Bern", "code": 3000}],
    "parts": [[], [{"at": 0, "sizes": {}}, {"at": 1, "sizes": [("x", None), ("y", math.nan)]}]],
    "tags": [{}, [("a", "1"), ("", "")]],
    "choice": [{"member0": "a", "member1": None}, {"member0": None, "member1": 7}],
}
ROWS = 24

NESTED = {"place", "parts", "tags", "choice"}


def make_row(number: int) -> dict[str, Any]:
    """Return a row: every seventh has only nulls, and each column takes its values in turn."""
    chosen = {name: values[number % len(values)] for name, values in VALUES.items()}
    return {"id": number} | {name: None if number % 7 == 3 else chosen[name] for name in FIELDS}


MESSAGES: Messages = [(TYPES.encode_one(make_row(number)), 0) for number in range(ROWS)]


class Place(NamedTuple):
    """A table: its options for a landing, and its name in Spark's SQL."""

    lake: Lake
    format: str
    place: str
    name: str

    @property
    def options(self) -> dict[str, Any]:
        return {"format": self.format} | ({"catalog": self.lake.catalog} if self.format == "iceberg" else {})

    def land(self, messages: Messages, codec: Codec = TYPES, **options: Any) -> None:
        self.lake.land(codec, messages, self.place, **self.options, **options)

    def load_iceberg(self) -> IcebergTable:
        return load_catalog(**self.lake.catalog).load_table(self.place)

    def load_delta(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.place)

    def open_dataset(self) -> Any:
        """Open the table as a dataset of Arrow."""
        return (
            self.load_delta().to_pyarrow_dataset() if self.format == "delta" else self.load_iceberg().scan().to_arrow()
        )

    def run_sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement in which `{table}` is the table."""
        result = self.lake.run_sql(statement.format(table=self.name))
        return [tuple(row.values()) for row in result.to_pylist()]

    def read_ids(self) -> list[int]:
        return [number for (number,) in self.run_sql("SELECT id FROM {table} ORDER BY id")]


@pytest.fixture(scope="module")
def table_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    with open_lake(folder) as result:
        load_catalog(**result.catalog).create_namespace("shop")
        yield result


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def types_table(request: pytest.FixtureRequest, table_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A table with every value of every type, in several files."""
    new_place = place(table_lake, request.param, "types", tmp_path_factory.mktemp("types"))
    new_place.land(MESSAGES, tasks=3, maxRecordsPerFile=4)
    return new_place


@pytest.fixture(params=["delta", "iceberg"])
def orders_place(request: pytest.FixtureRequest, table_lake: Lake, tmp_path: Path) -> Place:
    """A table that is not there yet."""
    return place(table_lake, request.param, f"orders_{request.node.name.partition('[')[0]}", tmp_path)


def place(lake: Lake, kind: str, name: str, folder: Path) -> Place:
    if kind == "delta":
        return Place(lake, kind, str(folder / name), f"delta.`{folder / name}`")
    return Place(lake, kind, f"shop.{name}", f"lake.shop.{name}")


def make_comparable(result: pa.Table) -> list[str]:
    """The rows by their numbers, as text, so that NaN is NaN and -0.0 is not 0.0."""
    wanted = result.select(TYPES.columns.names).cast(TYPES.columns).sort_by("id").combine_chunks()
    rows = to_numbers(wanted.to_struct_array().combine_chunks())
    return [repr(by_key(row.as_py(), rows.type)) for row in rows]


def spark_types(result: pa.Schema) -> Any:
    columns = [result.field(name) for name in TYPES.columns.names]
    return struct_of(pa.schema(columns)).toNullable()


def test_every_reader_finds_the_same_rows_and_types(types_table: Place) -> None:
    payloads, versions = zip(*MESSAGES, strict=True)
    decoded = TYPES.decode_batch(pa.array(payloads, pa.binary()), pa.array(versions))
    expected = make_comparable(pa.Table.from_batches([decoded.rows]))
    duck = duckdb.connect()
    duck.register("types", types_table.open_dataset())
    arrow = (
        types_table.load_delta().to_pyarrow_table()
        if types_table.format == "delta"
        else types_table.load_iceberg().scan().to_arrow()
    )
    result = {
        "Spark": types_table.lake.run_sql(f"TABLE {types_table.name}"),
        "library": arrow,
        "DuckDB": duck.sql("SELECT * FROM types").to_arrow_table(),
    }
    for reader, rows in result.items():
        assert spark_types(rows.schema) == spark_types(TYPES.columns), reader
        if reader == "library" and types_table.format == "iceberg":
            # pyiceberg's ArrowProjectionVisitor.list loses which lists of structs are null; DuckDB has the rows from it.
            expected = [row.replace("'parts': None", "'parts': []") for row in expected]
        assert make_comparable(rows) == expected, reader


def check_filters(session: SparkSession, name: str) -> list[str]:
    """Return the conditions that select other rows than the same condition on all rows in memory."""
    table = session.table(name)
    whole = session.createDataFrame(table.toArrow())
    conditions: list[Column] = []
    for column in [*VALUES, "place.code", "choice.member1"]:
        kind = table.select(sql.col(column).alias("x")).schema["x"].dataType
        conditions += [sql.col(column).isNull(), sql.col(column).isNotNull()]
        if isinstance(kind, StructType | ArrayType | MapType):
            continue
        # As text, because PySpark has no times of the first year.
        is_moment = kind.typeName() in ("date", "timestamp", "timestamp_ntz", "time")
        values = sql.col(column).cast("string") if is_moment else sql.col(column)
        for (value,) in whole.select(values).distinct().dropna().collect():
            literal = sql.lit(value).cast(kind)
            conditions += [sql.col(column) == literal, sql.col(column) > literal, sql.col(column) < literal]
        if isinstance(kind, StringType):
            conditions.append(sql.col(column).startswith("x"))

    def read_ids(frame: DataFrame, condition: Column) -> list[int]:
        return sorted(number for (number,) in frame.where(condition).select("id").collect())

    return [str(condition) for condition in conditions if read_ids(table, condition) != read_ids(whole, condition)]


def test_a_filter_on_any_column_leaves_out_nothing(types_table: Place) -> None:
    assert types_table.lake.run(check_filters, types_table.name) == []


def test_counts_nulls_and_bounds_that_the_log_tells_are_those_of_the_rows(types_table: Place) -> None:
    rows = types_table.lake.run_sql(f"TABLE {types_table.name}")
    nulls = {name: rows[name].null_count for name in rows.column_names}
    if types_table.format == "delta":
        files = pa.table(types_table.load_delta().get_add_actions(flatten=True)).to_pylist()
        assert sum(file["num_records"] for file in files) == ROWS
        for name in ("id", *FIELDS):
            null_counts = [file.get(f"null_count.{name}") for file in files]
            assert None in null_counts or sum(null_counts) == nulls[name], name
        assert {name for name in FIELDS if f"null_count.{name}" in files[0]} >= set(FIELDS) - NESTED
    else:
        metrics = types_table.load_iceberg().inspect.files().to_pylist()
        assert sum(file["record_count"] for file in metrics) == ROWS
        for name in set(FIELDS) - NESTED:
            null_counts = [file["readable_metrics"][name]["null_value_count"] for file in metrics]
            # Of files with NaN nothing is told.
            assert (None in null_counts and name in ("single", "double")) or sum(null_counts) == nulls[name], name
    columns = [name for name in ("id", *FIELDS) if name not in NESTED]
    bounds = "count(*), " + ", ".join(f"min({name}), max({name})" for name in columns)
    # The second has to read the rows for it.
    [null_counts, result] = (
        types_table.lake.run_sql(statement.format(bounds, types_table.name)) for statement in (BOUNDS, FOUND)
    )
    assert repr(null_counts.to_pylist()) == repr(result.to_pylist())


BOUNDS = "SELECT {} FROM {}"
FOUND = "SELECT {} FROM (SELECT * FROM {} ORDER BY rand())"

ORDERS = make_codec(
    make_record(make_field("id", "int")),
    make_record(make_field("id", "int"), make_field("note", ["null", "string"], default=None)),
)


def make_messages(*numbers: int) -> Messages:
    return [(ORDERS.encode_one({"id": number}, 0), 0) for number in numbers]


def test_each_landing_is_a_version_to_travel_to(orders_place: Place) -> None:
    for number in range(3):
        orders_place.land(make_messages(number), ORDERS)
    if orders_place.format == "delta":
        versions: list[Any] = [0, 1, 2]
    else:
        versions = [
            number
            for (number,) in orders_place.run_sql("SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
        ]
    at = "SELECT id FROM {table} VERSION AS OF "
    seen = [orders_place.run_sql(f"{at}{version} ORDER BY id") for version in versions]
    assert seen == [[(index,) for index in range(number + 1)] for number in range(3)]


def test_what_spark_sweeps_away_is_what_no_landing_committed(orders_place: Place) -> None:
    orders_place.land(make_messages(1), ORDERS)
    orders_place.land(make_messages(2), ORDERS, mode="overwrite")
    folder = Path(
        orders_place.place if orders_place.format == "delta" else f"{orders_place.load_iceberg().location()[7:]}/data"
    )
    lost = folder / "part-00000-of-a-killed-task.parquet"
    lost.write_bytes(b"PAR1")
    os.utime(lost, (0, 0))
    if orders_place.format == "delta":
        orders_place.run_sql("VACUUM {table} RETAIN 0 HOURS")
    else:
        name = orders_place.name.removeprefix("lake.")
        now = "TIMESTAMP '2100-01-01 00:00:00'"
        orders_place.run_sql(
            f"CALL lake.system.expire_snapshots(table => '{name}', older_than => {now}, retain_last => 1)"
        )
        orders_place.run_sql(f"CALL lake.system.remove_orphan_files(table => '{name}')")
    assert [file.name for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts] != []
    assert not lost.exists()
    assert orders_place.read_ids() == [2]
    orders_place.land(make_messages(3), ORDERS)
    assert orders_place.read_ids() == [2, 3]


def test_spark_writes_to_the_table_between_landings(orders_place: Place) -> None:
    orders_place.land(make_messages(1, 2, 3), ORDERS, txnAppId="job", txnVersion=1)
    orders_place.run_sql("INSERT INTO {table} (id) VALUES (4)")
    orders_place.run_sql(
        "MERGE INTO {table} t USING (SELECT 2 AS id, 7 AS after UNION ALL SELECT 9, 9) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = s.after WHEN NOT MATCHED THEN INSERT (id) VALUES (s.after)"
    )
    orders_place.run_sql("DELETE FROM {table} WHERE id = 3")
    assert orders_place.read_ids() == [1, 4, 7, 9]
    orders_place.land(make_messages(5), ORDERS, txnAppId="job", txnVersion=1)
    orders_place.land(make_messages(6), ORDERS, txnAppId="job", txnVersion=2)
    assert orders_place.read_ids() == [1, 4, 6, 7, 9]
    if orders_place.format == "delta":
        orders_place.lake.run(append_once, orders_place.place, "job", 2)
    else:
        orders_place.run_sql(
            "CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        )
    orders_place.land(make_messages(8), ORDERS, txnAppId="job", txnVersion=3)
    assert orders_place.read_ids() == [1, 4, 6, 7, 8, 9]


def append_once(session: SparkSession, place: str, app: str, version: int) -> None:
    """Spark's own append of a transaction that a landing made."""
    rows = session.createDataFrame([(100,)], "id int")
    writer = rows.write.format("delta").mode("append").option("txnAppId", app).option("txnVersion", version)
    writer.save(place)


PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "tables.md"

BLOCK = re.compile(r"(?:^ {4}.*\n+)+", re.MULTILINE)

SENT = (
    {"id": 1, "amount": 1.5},
    {"id": 2, "amount": 2.5, "channel": "WEB"},
    {"id": 2**40, "total": 3.5, "channel": None},
)
"""The message that comes after each version."""


def test_the_page_says_what_happens(table_lake: Lake, tmp_path: Path) -> None:
    load_catalog(**table_lake.catalog).create_namespace_if_not_exists("shop")
    # The sections before this one are a story on one table.
    story = PAGE.read_text(encoding="utf-8").partition("## Read tables that hold several versions")[0]
    page = story.replace("/lake/orders", f"{tmp_path}/orders")
    blocks = [dedent(block).strip() for block in BLOCK.findall(page)]
    steps: list[tuple[str, str, Any]] = []
    schemas: list[Any] = []
    for block, printed in zip(blocks, [*blocks[1:], ""], strict=True):
        if block.startswith("{"):
            schemas.append(json.loads(block))
            out = tmp_path / f"{len(schemas)}"
            write_package(out, "shop_schemas", schemas)
            number = len(schemas) - 1
            topic = make_codec(*schemas)
            steps.append(("import", str(out), [(bytearray(topic.encode_one(SENT[number], number) or b""), number)]))
        elif "ORDERS" in block:
            steps.append(("run", block, "" if "ORDERS" in printed else printed))
    ran = table_lake.run(run_steps, [(action, text, more) for action, text, more in steps])
    expected = [more for action, _, more in steps if action == "run"]
    assert len(expected) == 6
    for told_, said in zip(ran, expected, strict=True):
        assert told_.split() == ([] if said.startswith("{") else said.split())


def run_steps(session: SparkSession, steps: list[tuple[str, str, Any]]) -> list[str]:
    """Run the Python of each step, and return its output or its error."""
    names: dict[str, Any] = {"spark": session}
    said = []
    for action, text, more in steps:
        if action == "import":
            sys.path.insert(0, text)
            invalidate_caches()
            for name in [name for name in sys.modules if name.split(".")[0] == "shop_schemas"]:
                del sys.modules[name]
            names["messages"] = session.createDataFrame(more, "payload binary, schema_version bigint")
            continue
        out = io.StringIO()
        with redirect_stdout(out):
            try:
                exec(text, names)  # noqa: S102  the page's
            except WrongArgument as error:
                out.write(str(error))
        said.append(out.getvalue())
    return said
