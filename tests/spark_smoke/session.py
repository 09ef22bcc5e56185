"""Use each part of the interface on Spark once, with the installed schemactl and PySpark; no package of the checkout is imported.

    python -P session.py SETTINGS.json REPORT.json

The report has the error of each part, or "" for a part that works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import PulsarSource, decode, ensure_java, land, replay
from schemactl.spark.session import SparkProblem

RELEASE: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

HAS_ARROW_FUNCTIONS: Final = RELEASE >= (4, 1)
"""Whether functions on columns and sinks of streams take Arrow."""

MOMENT: Final = datetime(2026, 11, 28, 23, 30, 15, 123000, UTC)
LOCAL_MOMENT: Final = MOMENT.replace(tzinfo=None)

AVRO_TYPES: Final[dict[str, Any]] = {
    "a_boolean": "boolean",
    "an_int": "int",
    "a_long": "long",
    "a_float": "float",
    "a_double": "double",
    "some_bytes": "bytes",
    "a_string": "string",
    "a_fixed": {"type": "fixed", "name": "Four", "size": 4},
    "an_enum": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]},
    "an_array": {"type": "array", "items": "int"},
    "a_map": {"type": "map", "values": "long"},
    "a_record": {
        "type": "record",
        "name": "Point",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
    },
    "a_choice": ["null", "string"],
    "a_union": ["int", "string"],
    "a_decimal": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "a_date": {"type": "int", "logicalType": "date"},
    "a_time_millis": {"type": "int", "logicalType": "time-millis"},
    "a_time_micros": {"type": "long", "logicalType": "time-micros"},
    "a_timestamp_millis": {"type": "long", "logicalType": "timestamp-millis"},
    "a_timestamp_micros": {"type": "long", "logicalType": "timestamp-micros"},
    "a_local_timestamp_millis": {"type": "long", "logicalType": "local-timestamp-millis"},
    "a_local_timestamp_micros": {"type": "long", "logicalType": "local-timestamp-micros"},
    "a_uuid": {"type": "string", "logicalType": "uuid"},
    "timestamps": {"type": "array", "items": {"type": "long", "logicalType": "timestamp-micros"}},
    "dates": {"type": "map", "values": {"type": "int", "logicalType": "date"}},
}

AVRO_VALUE: Final[dict[str, Any]] = {
    "a_boolean": True,
    "an_int": -(2**31),
    "a_long": 2**63 - 1,
    "a_float": 1.5,
    "a_double": -0.1,
    "some_bytes": b"\x00\xff",
    "a_string": "Zoë 注意",
    "a_fixed": b"four",
    "an_enum": "GREEN",
    "an_array": [1, 2],
    "a_map": {"k": 7},
    "a_record": {"x": 1, "y": 2},
    "a_choice": None,
    "a_union": {"member0": None, "member1": "text"},
    "a_decimal": Decimal("-12345678.90"),
    "a_date": date(2026, 11, 28),
    "a_timestamp_millis": MOMENT,
    "a_timestamp_micros": MOMENT.replace(year=1912),
    "a_local_timestamp_millis": LOCAL_MOMENT,
    "a_local_timestamp_micros": LOCAL_MOMENT,
    "a_uuid": "123e4567-e89b-12d3-a456-426614174000",
    "timestamps": [MOMENT, MOMENT],
    "dates": {"due": date(1900, 1, 1)},
}

SECONDS_OF_DAY: Final = 43_200
"""The times of day: milliseconds are numbers in all releases, and microseconds have the type `time` from 4.2 on."""

PROTO: Final = """\
syntax = "proto3";
package smoke;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
message All {
  double a_double = 1;
  float a_float = 2;
  int32 an_int32 = 3;
  int64 an_int64 = 4;
  uint32 a_uint32 = 5;
  uint64 a_uint64 = 6;
  sint64 a_sint64 = 7;
  fixed32 a_fixed32 = 8;
  sfixed64 an_sfixed64 = 9;
  bool a_bool = 10;
  string a_string = 11;
  bytes some_bytes = 12;
  enum Color { RED = 0; GREEN = 1; }
  Color a_color = 13;
  repeated int32 numbers = 14;
  map<string, int64> a_map = 15;
  message Point { int32 x = 1; }
  Point a_point = 16;
  google.protobuf.Timestamp a_timestamp = 17;
  google.protobuf.Duration a_duration = 18;
  optional string an_optional = 19;
  oneof choice { string left = 20; int32 right = 21; }
}
"""

PROTO_VALUE: Final[dict[str, Any]] = {
    "a_double": 2.5,
    "a_float": 1.5,
    "an_int32": -3,
    "an_int64": 2**40,
    "a_uint32": 2**32 - 1,
    "a_uint64": 2**64 - 1,
    "a_sint64": -5,
    "a_fixed32": 8,
    "an_sfixed64": -9,
    "a_bool": True,
    "a_string": "text",
    "some_bytes": b"\x01",
    "a_color": "GREEN",
    "numbers": [1, 2],
    "a_map": {"k": 7},
    "a_point": {"x": 1},
    "a_timestamp": MOMENT,
    "a_duration": timedelta(days=-1, microseconds=5),
    "an_optional": None,
    "left": None,
    "right": 0,
}

PRIMITIVES: Final[dict[str, Any]] = {
    "BOOLEAN": True,
    "INT8": -8,
    "INT16": 16,
    "INT32": 32,
    "INT64": -64,
    "FLOAT": 1.5,
    "DOUBLE": 0.1,
    "STRING": "Grüße",
    "DATE": date(1969, 7, 20),
    "TIMESTAMP": MOMENT,
    "INSTANT": MOMENT,
    "LOCAL_DATE": date(2026, 11, 28),
    "LOCAL_DATE_TIME": LOCAL_MOMENT,
}
"""Without the times of day, whose Python type depends on the release, and BYTES, which means a topic without schema."""


DAMAGED: Final = b"\xff\xff\xff"


def run_schemactl(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the installed command in the folder, require the exit code, and return the output."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "schemactl", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != code:
        raise AssertionError(
            f"schemactl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}{done.stdout}"
        )
    return done.stdout


def to_spark(value: Any) -> Any:
    """Return the value as `collect` returns it: an instant becomes a local time without time zone."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if isinstance(value, dict):
        return {key: to_spark(part) for key, part in value.items()}
    return [to_spark(part) for part in value] if isinstance(value, list) else value


def collect(frame: DataFrame, *columns: str) -> list[dict[str, Any]]:
    """Return the rows as dictionaries."""
    return [row.asDict(recursive=True) for row in frame.select(*columns).collect()]


def assert_equal(actual: Any, expected: Any, subject: str = "") -> None:
    if actual != expected:
        raise AssertionError(f"{subject}: expected {expected!r}, got {actual!r}")


def assert_needs_newer_release(call: Callable[[], object]) -> None:
    """Require the error of a function that this release of PySpark lacks."""
    message = ""
    try:
        call()
    except SparkProblem as error:
        message = str(error)
    assert "needs PySpark 4.1 or newer" in message, message or "the function works on a release that lacks it"


@dataclass
class Smoke:
    """The parts of the interface, which are checked in this order.

    Attributes:
        spark: the session.
        folder: an empty folder.
        settings: the URL `service_url` of a broker, its topic of orders (`topic`), with the number of its messages that can be decoded
            (`rows`) and that cannot (`rejected`). A file of the same messages (`messages`) and a topic to send to (`sent`). The folder of
            the example's project (`shop`) and of its generated package (`package`), and the Python code of README.md (`readme`).
    """

    spark: SparkSession
    folder: Path
    settings: dict[str, Any]
    orders: Any = field(init=False)

    def __post_init__(self) -> None:
        sys.path.insert(0, self.settings["package"])
        self.orders = import_module("shop_schemas.shop.sales.orders").ORDERS

    # A project with topics of all types, and its generated package

    def check_generate(self) -> None:
        """`init` writes the installed release, and `generate` a package for it with topics of all types."""
        project = self.folder / "types"
        project.mkdir()
        run_schemactl(project, "init")
        text = (project / "schemactl.yaml").read_text()
        assert f'spark: "{RELEASE[0]}.{RELEASE[1]}"' in text, "the release that init writes"
        fields = [{"name": name, "type": type_} for name, type_ in AVRO_TYPES.items()]
        record = json.dumps({"type": "record", "name": "All", "fields": fields}, indent=1)
        files = {"all.avsc": record, "all.json": record, "all.proto": PROTO}
        files["void.avsc"] = '{"type": "record", "name": "V", "fields": [{"name": "nothing", "type": "null"}]}'
        files["pair.avsc"] = '{"type": "record", "name": "P", "fields": [{"name": "n", "type": "int"}]}'
        topics = {
            "avro": "{type: AVRO, definition: all.avsc}",
            "json": "{type: JSON, definition: all.json}",
            "proto": "{type: PROTOBUF_NATIVE, definition: all.proto, message: smoke.All}",
            "void": "{type: AVRO, definition: void.avsc}",
            "pair": "{type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING}, value: {type: AVRO, definition: pair.avsc}}",
            **{name.lower(): f"{{type: {name}}}" for name in PRIMITIVES},
        }
        for name, schema in topics.items():
            files[f"{name}.yaml"] = f"topic: persistent://public/default/{name}\nschema: {schema}\n"
        for name, content in files.items():
            (project / "namespaces/default" / name).write_text(content)
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@shop.example", "-c", "init.defaultBranch=main"]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "Declare topics of all types"]):
            subprocess.run([*git, *arguments], cwd=project, check=True)
        run_schemactl(project, "generate")
        sys.path.insert(0, str(project / "generated"))

    def get_topic(self, name: str) -> Any:
        module = import_module(f"types_schemas.public.default.{name}")
        return getattr(module, name.upper())

    @cached_property
    def values(self) -> dict[str, Any]:
        """The value of a message, by topic."""
        has_time = RELEASE >= (4, 2)
        noon = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=SECONDS_OF_DAY)).time()
        times = {
            "a_time_millis": SECONDS_OF_DAY * 1_000,
            "a_time_micros": noon if has_time else SECONDS_OF_DAY * 1_000_000,
        }
        return {
            "avro": AVRO_VALUE | times,
            "json": AVRO_VALUE | times,
            "proto": PROTO_VALUE,
            "void": {"nothing": None},
            "pair": {"key": "k", "value": {"n": 1}},
            **{name.lower(): value for name, value in PRIMITIVES.items()},
        }

    def make_messages(self, name: str) -> DataFrame:
        """Return a message of the topic and a damaged one."""
        topic = self.get_topic(name)
        value = self.values[name]
        rows = [(topic.encode_one(value), topic.encode_key(value), 0), (DAMAGED, b"k", 99)]
        messages = self.spark.createDataFrame(rows, "payload binary, key binary, schema_version long").coalesce(1)
        return messages if name == "pair" else messages.drop("key")

    def check_decode(self) -> None:
        """Every column type has the value that was written, in every nesting."""
        for name, value in self.values.items():
            topic = self.get_topic(name)
            decoded = topic.decode(self.make_messages(name))
            names = [column.name for column in topic.struct]
            assert_equal(
                decoded.select(*names).schema.simpleString(), topic.struct.simpleString(), f"columns of {name}"
            )
            expected = value if isinstance(value, dict) else {"value": value}
            row, rejected = collect(decoded, *names, "__error", "__payload")
            for column in names:
                assert_equal(row[column], to_spark(expected[column]), f"{name}.{column}")
            assert_equal((row["__error"], row["__payload"]), (None, None), f"the error of {name}")
            assert_equal((rejected["__error"] is None, rejected["__payload"]), (False, DAMAGED), f"the rejected {name}")

    def check_encode(self) -> None:
        """Decoded rows become the payloads they came from."""
        for name in self.values:
            topic = self.get_topic(name)
            rows, _ = topic.split(topic.decode(self.make_messages(name)))
            [encoded] = topic.encode(rows.drop("__key")).collect()
            assert_equal(encoded["__error"], None, f"the error of {name}")
            assert_equal(encoded["payload"], topic.encode_one(self.values[name]), f"the payload of {name}")

    def check_column(self) -> None:
        """A column of payloads becomes a column of structs."""
        # Expressions and files with times of day need the setting, `decode` of a DataFrame does not.
        self.spark.conf.set("spark.sql.timeType.enabled", "true")
        for name in ("avro", "proto", "string"):
            topic = self.get_topic(name)
            messages = self.make_messages(name)
            if not HAS_ARROW_FUNCTIONS:
                assert_needs_newer_release(partial(topic.decode, "payload", "schema_version"))
                return
            decoded = messages.select(topic.decode("payload", "schema_version").alias("m"))
            [row] = collect(decoded.where("m.error IS NULL"), "m.value")
            assert_equal(row["value"], to_spark(self.values[name]), name)
            assert_equal(decoded.where("m.error IS NOT NULL AND m.value IS NULL").count(), 1, name)

    # Landing

    def check_land(self) -> None:
        """Every column type is in the files with the decoded value."""
        for name in ("avro", "json", "proto", "pair"):
            topic = self.get_topic(name)
            path = str(self.folder / f"landed-{name}")
            landed = topic.land(self.make_messages(name), path)
            assert_equal((landed.rows, landed.rejected), (1, 1), name)
            names = [column.name for column in topic.struct]
            [row] = collect(self.spark.read.parquet(path), *names)
            for column in names:
                assert_equal(row[column], to_spark(self.values[name][column]), f"{name}.{column}")

    def read_orders(self) -> DataFrame:
        return self.spark.read.parquet(self.settings["messages"])

    def assert_landed(self, path: Path, copies: int = 1) -> None:
        """Require that the rows and the rejected messages of all orders are in the folder."""
        assert_equal(self.spark.read.parquet(str(path)).count(), copies * self.settings["rows"], f"rows in {path.name}")
        rejected = self.spark.read.parquet(str(path / "_rejected"))
        assert_equal(rejected.count(), copies * self.settings["rejected"], f"rejected messages of {path.name}")

    def check_delta(self) -> None:
        """Orders are landed in a Delta table."""
        path = self.folder / "delta"
        self.orders.land(self.read_orders(), str(path), format="delta")
        from deltalake import DeltaTable

        assert_equal(DeltaTable(path).to_pyarrow_table().num_rows, self.settings["rows"], "rows of the Delta table")

    def stream_orders(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.read_orders().schema)
        return reader.parquet(str(Path(self.settings["messages"]).parent))

    def check_stream(self) -> None:
        """A stream is decoded."""
        decoded = self.orders.decode(self.stream_orders())
        query = decoded.writeStream.format("parquet").option(
            "checkpointLocation", str(self.folder / "stream-checkpoint")
        )
        query.trigger(availableNow=True).start(str(self.folder / "stream")).awaitTermination()
        decoded = self.spark.read.parquet(str(self.folder / "stream"))
        assert_equal(decoded.where("__error IS NULL").count(), self.settings["rows"], "rows")
        assert_equal(decoded.where("__error IS NOT NULL").count(), self.settings["rejected"], "rejected messages")

    def check_sink(self) -> None:
        """A stream is landed by `foreachBatch`."""
        path = self.folder / "sink"
        query = self.stream_orders().writeStream.foreachBatch(self.orders.sink(str(path)))
        query = query.option("checkpointLocation", str(self.folder / "sink-checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
        self.assert_landed(path)

    def check_land_stream(self) -> None:
        """A stream is landed by Spark's own sink."""
        path = self.folder / "land_stream"
        if not HAS_ARROW_FUNCTIONS:
            assert_needs_newer_release(lambda: self.orders.land_stream(self.stream_orders(), str(path)))
            return
        query = self.orders.land_stream(self.stream_orders(), str(path))
        query = query.option("checkpointLocation", str(self.folder / "land_stream-checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
        self.assert_landed(path)

    def check_view(self) -> None:
        """Rows landed by two versions of a package are read with the columns of the newer one."""
        definitions = [
            '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}',
            json.dumps(
                {
                    "type": "record",
                    "name": "R",
                    "fields": [
                        {"name": "number", "type": "long", "aliases": ["id"]},
                        {"name": "at", "type": ["null", AVRO_TYPES["a_timestamp_micros"]], "default": None},
                    ],
                }
            ),
        ]
        versions = [Version(number, Definition("AVRO", text)) for number, text in enumerate(definitions)]
        old, new = Codec(versions[:1]), Codec(versions)
        messages = self.spark.createDataFrame(
            [(new.encode_one({"id": 1}, 0), 0), (new.encode_one({"number": 2, "at": MOMENT}, 1), 1)],
            "payload binary, schema_version int",
        ).coalesce(1)
        path = str(self.folder / "view")
        landed = land(messages.where("schema_version = 0"), old, path)
        assert_equal((landed.rows, landed.rejected), (1, 0), "landed by the old package")
        landed = land(messages.where("schema_version = 1"), old, path)
        assert_equal((landed.rows, landed.rejected), (0, 1), "rejected by the old package")
        from schemactl.spark import view

        replayed = replay(self.spark, new, path)
        assert_equal((replayed.rows, replayed.rejected), (1, 0), "replayed")
        rows = collect(view(self.spark, new, path, former_names={"number": ("id",)}), "number", "at")
        rows.sort(key=lambda row: row["number"])
        assert_equal(rows, [{"number": 1, "at": None}, {"number": 2, "at": to_spark(MOMENT)}], "rows of the view")

    def check_replay(self) -> None:
        """A package that knows more versions turns rejected messages into rows."""
        codec = self.orders.codec
        path = self.folder / "replay"
        older = Codec([version for version in codec.versions if version.number < 3], reader=codec.reader)
        landed = land(self.read_orders(), older, str(path))
        assert landed.rejected > self.settings["rejected"], "the older package rejects more"
        replayed = self.orders.replay(self.spark, str(path))
        assert_equal(landed.rows + replayed.rows, self.settings["rows"], "all rows")
        self.assert_landed(path)

    # Pulsar

    def check_readme(self) -> None:
        """The README's lines decode a topic of a broker."""
        names: dict[str, Any] = {"spark": self.spark, "url": self.settings["service_url"]}
        exec(compile(self.settings["readme"], "README.md", "exec"), names)  # noqa: S102  the project's own text
        assert_equal(names["rows"].count(), self.settings["rows"], "rows")
        assert_equal(names["rejected"].count(), self.settings["rejected"], "rejected messages")
        [row] = collect(names["rows"].limit(1), "placed_at")
        assert isinstance(row["placed_at"], datetime), "placed_at is a timestamp"

    def check_source_stream(self) -> None:
        """A topic is read as a stream."""
        self.spark.dataSource.register(PulsarSource)
        options = {"service.url": self.settings["service_url"], "topic": self.settings["topic"]}
        messages = (
            self.spark.readStream.format("pulsar-schemactl").options(startingOffsets="earliest", **options).load()
        )
        path = self.folder / "source-stream"
        query = messages.writeStream.foreachBatch(self.orders.sink(str(path)))
        query = query.option("checkpointLocation", str(self.folder / "source-stream-checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
        self.assert_landed(path)

    def send_options(self) -> dict[str, str]:
        number = self.orders.codec.number_written()
        return {
            "service.url": self.settings["service_url"],
            "topic": self.settings["sent"],
            "schema.version": str(number),
        }

    def check_send(self) -> None:
        """Rows are sent as messages, and read again."""
        self.spark.dataSource.register(PulsarSource)
        rows, _ = self.orders.split(self.orders.decode(self.read_orders()))
        encoded = self.orders.encode(rows.orderBy("order_id").limit(50)).select("payload")
        encoded.write.format("pulsar-schemactl").options(**self.send_options()).mode("append").save()
        options = {"service.url": self.settings["service_url"], "topic": self.settings["sent"]}
        sent = self.spark.read.format("pulsar-schemactl").options(**options).load()
        decoded = decode(sent, self.orders.codec)
        assert_equal(decoded.where("__error IS NULL").count(), 50, "messages that were sent and read")

    def check_send_stream(self) -> None:
        """A stream is sent to a topic."""
        if not HAS_ARROW_FUNCTIONS:
            return
        payloads = self.folder / "payloads"
        rows, _ = self.orders.split(self.orders.decode(self.read_orders()))
        self.orders.encode(rows.limit(20)).select("payload").write.parquet(str(payloads))
        stream = self.spark.readStream.schema("payload binary").parquet(str(payloads))
        query = stream.writeStream.format("pulsar-schemactl").options(**self.send_options())
        query = query.option("checkpointLocation", str(self.folder / "send-checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    # Commands

    def check_commands(self) -> None:
        """`spark verify` and `spark land` read the topic in other sessions."""
        shop = Path(self.settings["shop"])
        source = ("--messages", self.settings["service_url"])
        report = json.loads(run_schemactl(shop, "spark", "verify", "orders", *source, "--report", "json", code=100))
        rows, rejected = self.settings["rows"], self.settings["rejected"]
        assert_equal((report["messages"], report["unreadable"]), (rows + rejected, rejected), "messages")
        path = self.folder / "command"
        run_schemactl(shop, "spark", "land", "orders", *source, "--out", str(path))
        self.assert_landed(path)


PARTS: Final = [name.removeprefix("check_") for name in vars(Smoke) if name.startswith("check_")]


def main(settings_path: Path, report_path: Path) -> None:
    """Run all parts and write the report."""
    settings = json.loads(settings_path.read_text())
    ensure_java()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(report_path.parent / "warehouse"))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    smoke = Smoke(spark, report_path.parent, settings)
    report: dict[str, str] = {}
    for name in PARTS:
        started_s = time.monotonic()
        check: Callable[[], None] = getattr(smoke, f"check_{name}")
        try:
            check()
            report[name] = ""
        except Exception:  # noqa: BLE001  the report has it
            report[name] = traceback.format_exc()
        sys.stderr.write(f"{pyspark.__version__} {name}: {time.monotonic() - started_s:.1f} s\n")
    # A traceback of a worker shows which Python it is.
    report["python"] = "" if os.environ["PYSPARK_PYTHON"] == sys.executable else os.environ["PYSPARK_PYTHON"]
    report_path.write_text(json.dumps(report))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
