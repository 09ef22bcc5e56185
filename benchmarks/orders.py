"""The messages that codecs and Spark are measured with: nested orders in five versions, mixed.

`Orders` makes them the same for every script, by fastavro; the older versions are read into the newest.
"""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from schemactl.codec import Codec, Definition, Version


def make_field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a record schema."""
    return {"name": name, "type": kind} | more


def make_versions() -> list[dict[str, Any]]:
    """Five versions of an order, each adding to the one before or widening it."""
    item = {"type": "record", "name": "Item", "fields": [make_field("sku", "string"), make_field("quantity", "int")]}
    address = {
        "type": "record",
        "name": "Address",
        "fields": [make_field("street", "string"), make_field("zip", ["null", "string"])],
    }
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    fields = [
        make_field("order_id", "string"),
        make_field("customer_id", "int"),
        make_field("status", {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]}),
        make_field("amount", decimal),
        make_field("unit_price", "float"),
        make_field("created_at", {"type": "long", "logicalType": "timestamp-millis"}),
        make_field("address", address),
        make_field("items", {"type": "array", "items": item}),
    ]
    all_versions = [fields]
    all_versions.append(
        [make_field("customer_id", "long") if part["name"] == "customer_id" else part for part in all_versions[-1]]
    )
    all_versions.append([*all_versions[-1], make_field("note", ["null", "string"], default=None)])
    all_versions.append(
        [make_field("unit_price", "double") if part["name"] == "unit_price" else part for part in all_versions[-1]]
    )
    attributes = {"type": "map", "values": "string"}
    all_versions.append(
        [
            *all_versions[-1],
            make_field("attributes", attributes, default={}),
            make_field("score", ["null", "double"], default=None),
        ]
    )
    return [{"type": "record", "name": "Order", "fields": fields} for fields in all_versions]


def order(pick: random.Random) -> dict[str, Any]:
    """An order that every version can write."""

    def draw_word() -> str:
        return "".join(pick.choices("abcdefghij", k=pick.randrange(1, 12)))

    return {
        "order_id": draw_word(),
        "customer_id": pick.randrange(2**31),
        "status": pick.choice(["NEW", "PAID", "SHIPPED"]),
        "amount": Decimal(pick.randrange(-(10**9), 10**9)).scaleb(-2),
        "unit_price": pick.randrange(10_000) / 4,
        "created_at": datetime.fromtimestamp(pick.randrange(2 * 10**9), UTC),
        "address": {"street": draw_word(), "zip": pick.choice([None, draw_word()])},
        "items": [{"sku": draw_word(), "quantity": pick.randrange(9)} for _ in range(pick.randrange(4))],
        "note": pick.choice([None, draw_word()]),
        "attributes": {draw_word(): draw_word() for _ in range(pick.randrange(3))},
        "score": pick.choice([None, pick.random()]),
    }


class Orders:
    """Messages of all five versions and the codec that reads them; the same numbers give the same bytes."""

    def __init__(self) -> None:
        self.schemas = [json.dumps(schema) for schema in make_versions()]
        self.codec = Codec([Version(number, Definition("AVRO", schema)) for number, schema in enumerate(self.schemas)])

    @cached_property
    def parsed_schemas(self) -> list[Any]:
        """The versions' schemas, as fastavro takes them."""
        return [fastavro.parse_schema(json.loads(schema)) for schema in self.schemas]

    def write(self, value: dict[str, Any], number: int) -> bytes:
        """Encode a value with a version by fastavro."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.parsed_schemas[number], value)
        return out.getvalue()

    def read(self, payload: bytes, number: int) -> Any:
        """Decode a payload into the newest version by fastavro."""
        return fastavro.schemaless_reader(io.BytesIO(payload), self.parsed_schemas[number], self.parsed_schemas[-1])

    def draw_batches(self, count: int, *, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """`count` messages, their version drawn at random: the columns `payload` and `schema_version`."""
        pick = random.Random(7)  # noqa: S311  reproducible, not secret
        for start in range(0, count, rows):
            numbers = [pick.randrange(len(self.schemas)) for _ in range(min(rows, count - start))]
            payloads = pa.array([self.write(order(pick), number) for number in numbers], pa.binary())
            yield pa.record_batch({"payload": payloads, "schema_version": pa.array(numbers, pa.int64())})

    def make_parquet(self, folder: Path, count: int, *, files: int = 8) -> Path:
        """Return the folder with the messages as Parquet; make it if it does not exist."""
        parquet_folder = folder / f"orders-{count}"
        if parquet_folder.is_dir():
            return parquet_folder
        beside = folder / f".orders-{count}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        rows = -(-count // files)
        for number, batch in enumerate(self.draw_batches(count, rows=rows)):
            pq.write_table(pa.Table.from_batches([batch]), beside / f"{number}.parquet", compression="zstd")
        return beside.rename(parquet_folder)
