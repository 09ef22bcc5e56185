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


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a record schema."""
    return {"name": name, "type": kind} | more


def versions() -> list[dict[str, Any]]:
    """Five versions of an order, each adding to the one before or widening it."""
    item = {"type": "record", "name": "Item", "fields": [field("sku", "string"), field("quantity", "int")]}
    address = {
        "type": "record",
        "name": "Address",
        "fields": [field("street", "string"), field("zip", ["null", "string"])],
    }
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    fields = [
        field("order_id", "string"),
        field("customer_id", "int"),
        field("status", {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]}),
        field("amount", decimal),
        field("unit_price", "float"),
        field("created_at", {"type": "long", "logicalType": "timestamp-millis"}),
        field("address", address),
        field("items", {"type": "array", "items": item}),
    ]
    found = [fields]
    found.append([field("customer_id", "long") if part["name"] == "customer_id" else part for part in found[-1]])
    found.append([*found[-1], field("note", ["null", "string"], default=None)])
    found.append([field("unit_price", "double") if part["name"] == "unit_price" else part for part in found[-1]])
    attributes = {"type": "map", "values": "string"}
    found.append(
        [*found[-1], field("attributes", attributes, default={}), field("score", ["null", "double"], default=None)]
    )
    return [{"type": "record", "name": "Order", "fields": fields} for fields in found]


def order(pick: random.Random) -> dict[str, Any]:
    """An order that every version can write."""

    def word() -> str:
        return "".join(pick.choices("abcdefghij", k=pick.randrange(1, 12)))

    return {
        "order_id": word(),
        "customer_id": pick.randrange(2**31),
        "status": pick.choice(["NEW", "PAID", "SHIPPED"]),
        "amount": Decimal(pick.randrange(-(10**9), 10**9)).scaleb(-2),
        "unit_price": pick.randrange(10_000) / 4,
        "created_at": datetime.fromtimestamp(pick.randrange(2 * 10**9), UTC),
        "address": {"street": word(), "zip": pick.choice([None, word()])},
        "items": [{"sku": word(), "quantity": pick.randrange(9)} for _ in range(pick.randrange(4))],
        "note": pick.choice([None, word()]),
        "attributes": {word(): word() for _ in range(pick.randrange(3))},
        "score": pick.choice([None, pick.random()]),
    }


class Orders:
    """Messages of all five versions and the codec that reads them; the same numbers give the same bytes."""

    def __init__(self) -> None:
        self.schemas = [json.dumps(schema) for schema in versions()]
        self.codec = Codec([Version(number, Definition("AVRO", schema)) for number, schema in enumerate(self.schemas)])

    @cached_property
    def parsed(self) -> list[Any]:
        """The versions' schemas, as fastavro takes them."""
        return [fastavro.parse_schema(json.loads(schema)) for schema in self.schemas]

    def write(self, value: dict[str, Any], number: int) -> bytes:
        """What fastavro writes with a version."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.parsed[number], value)
        return out.getvalue()

    def read(self, payload: bytes, number: int) -> Any:
        """What fastavro reads with the newest version."""
        return fastavro.schemaless_reader(io.BytesIO(payload), self.parsed[number], self.parsed[-1])

    def batches(self, count: int, *, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """`count` messages, their version drawn at random: the columns `payload` and `schema_version`."""
        pick = random.Random(7)  # noqa: S311  reproducible, not secret
        for start in range(0, count, rows):
            numbers = [pick.randrange(len(self.schemas)) for _ in range(min(rows, count - start))]
            payloads = pa.array([self.write(order(pick), number) for number in numbers], pa.binary())
            yield pa.record_batch({"payload": payloads, "schema_version": pa.array(numbers, pa.int64())})

    def parquet(self, folder: Path, count: int, *, files: int = 8) -> Path:
        """A folder with the messages as Parquet, made unless it is there."""
        made = folder / f"orders-{count}"
        if made.is_dir():
            return made
        beside = folder / f".orders-{count}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        rows = -(-count // files)
        for number, batch in enumerate(self.batches(count, rows=rows)):
            pq.write_table(pa.Table.from_batches([batch]), beside / f"{number}.parquet", compression="zstd")
        return beside.rename(made)
