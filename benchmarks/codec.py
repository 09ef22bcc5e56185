"""What decoding into one schema and encoding cost, against fastavro: CPU of one core, the same messages in the same run.

    python benchmarks/codec.py [MESSAGES] [ROUNDS]

Nested orders in five versions, mixed. Both sides start from bytes and end at Arrow columns, or the other way round. The
ratios are medians over rounds; memory is this process's peak.
"""

from __future__ import annotations

import gc
import io
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from schemactl.codec import Codec, Definition, Version

_BATCH_ROWS = 10_000


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
    found.append(
        [field("customer_id", "long") if part["name"] == "customer_id" else part for part in found[-1]]
    )
    found.append([*found[-1], field("note", ["null", "string"], default=None)])
    found.append(
        [field("unit_price", "double") if part["name"] == "unit_price" else part for part in found[-1]]
    )
    attributes = {"type": "map", "values": "string"}
    found.append(
        [
            *found[-1],
            field("attributes", attributes, default={}),
            field("score", ["null", "double"], default=None),
        ]
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


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    gc.collect()
    started_s = time.process_time()
    work()
    return time.process_time() - started_s


class Sides:
    """The same messages, as bytes and as columns, for both sides."""

    def __init__(self, count: int) -> None:
        pick = random.Random(7)  # noqa: S311  reproducible, not secret
        schemas = versions()
        self.parsed = [fastavro.parse_schema(json.loads(json.dumps(schema))) for schema in schemas]
        self.codec = Codec(
            [Version(number, Definition("AVRO", json.dumps(schema))) for number, schema in enumerate(schemas)]
        )
        numbers = [pick.randrange(len(schemas)) for _ in range(count)]
        payloads = pa.array([self.one(order(pick), number) for number in numbers])
        starts = range(0, count, _BATCH_ROWS)
        self.messages = [
            (payloads.slice(at, _BATCH_ROWS), pa.array(numbers[at : at + _BATCH_ROWS])) for at in starts
        ]
        self.rows = self.decode()

    def one(self, value: dict[str, Any], number: int) -> bytes:
        """What fastavro writes."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.parsed[number], value)
        return out.getvalue()

    def decode(self) -> list[pa.RecordBatch]:
        """By the codec."""
        return [self.codec.decode_batch(payloads, numbers).rows for payloads, numbers in self.messages]

    def decode_fastavro(self) -> list[pa.RecordBatch]:
        """By fastavro, row by row, then to columns."""
        return [
            pa.RecordBatch.from_pylist(
                [
                    fastavro.schemaless_reader(io.BytesIO(payload), self.parsed[number], self.parsed[-1])
                    for payload, number in zip(payloads.to_pylist(), numbers.to_pylist(), strict=True)
                ],
                schema=self.codec.columns,
            )
            for payloads, numbers in self.messages
        ]

    def encode(self) -> list[pa.BinaryArray]:
        """By the codec."""
        return [self.codec.encode_batch(batch).payloads for batch in self.rows]

    def encode_fastavro(self) -> list[pa.BinaryArray]:
        """By fastavro, from columns to rows, row by row."""
        return [
            pa.array([self.one(row, -1) for row in batch.to_pylist(maps_as_pydicts="strict")])
            for batch in self.rows
        ]


def main(count: int = 100_000, rounds: int = 5) -> None:
    """Two lines: decode and encode."""
    sides = Sides(count)
    print(f"{count} messages in batches of {_BATCH_ROWS}, medians of {rounds} rounds")
    for ours, theirs in ((sides.decode, sides.decode_fastavro), (sides.encode, sides.encode_fastavro)):
        if ours() != theirs():
            raise SystemExit(f"{ours.__name__}: the two sides differ")
        pairs = [(cpu_s(ours), cpu_s(theirs)) for _ in range(rounds)]
        ratio = statistics.median(other / mine for mine, other in pairs)
        rate = count / statistics.median(mine for mine, _ in pairs)
        print(
            f"{ours.__name__}: {ratio:5.1f} times less CPU than fastavro ({rate / 1000:.0f} thousand messages a second)"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    print(f"memory: {peak:.0f} MB at the most, both sides and the messages together")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
