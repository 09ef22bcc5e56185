"""Seeded messages of the shop's topics, every version a topic ever had among the writers, and a few that are damaged.

A file of messages is what a dump of a topic, or a consumer of raw bytes, would leave: payload, the eight bytes of the schema
version, key, and metadata under the names of Pulsar's Spark connector.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from schemactl.codec import Codec

COLUMNS = pa.schema(
    [
        ("__topic", pa.string()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("schema_version", pa.binary()),
        ("__messageId", pa.binary()),
        ("__publishTime", pa.timestamp("us", "UTC")),
    ]
)

DAMAGED_EVERY = 1_000
START = datetime(2026, 4, 1, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Messages:
    """The number of messages of a topic, and a function that makes the value of a producer of one version."""

    count: int
    value: Callable[[random.Random, int], Any]


def _draw_money(rng: random.Random, *, taxed: bool) -> dict[str, Any]:
    money = {"amount": Decimal(rng.randrange(100, 50_000)) / 100, "currency": rng.choice(("EUR", "EUR", "USD", "CHF"))}
    return money | {"tax_included": rng.random() < 0.9} if taxed else money


def _draw_moment(rng: random.Random) -> datetime:
    return START + timedelta(milliseconds=rng.randrange(86_400_000 * 90))


def order(rng: random.Random, version: int) -> dict[str, Any]:
    """An order as the shop's software of that version wrote it."""
    taxed = version >= 3
    statuses = ("PLACED", "PAID", "SHIPPED", "CANCELLED") if version >= 5 else ("PLACED", "PAID", "SHIPPED")
    lines = [
        {
            "sku": f"SKU-{rng.randrange(500):03d}",
            "quantity": rng.randrange(1, 6),
            "price": _draw_money(rng, taxed=taxed),
        }
        for _ in range(rng.randrange(1, 4))
    ]
    value: dict[str, Any] = {
        "order_id": f"O-{rng.randrange(10**9):09d}",
        ("customer" if version >= 4 else "customer_id"): rng.randrange(20_000),
        "status": rng.choice(statuses),
        "total": _draw_money(rng, taxed=taxed),
        "placed_at": _draw_moment(rng),
        "lines": lines,
    }
    if version >= 1:
        value["note"] = rng.choice((None, None, "ring twice", "Geschenk für Zoë"))
    if version >= 2:
        value["tags"] = {"campaign": rng.choice(("spring", "summer"))} if rng.random() < 0.3 else {}
    if version >= 5:
        value["delivery"] = (
            {"street": f"Hauptstraße {rng.randrange(1, 99)}", "city": "Wien", "due_on": _draw_moment(rng).date()}
            if rng.random() < 0.8
            else None
        )
        value["channel"] = rng.choice(("WEB", "SHOP", "PHONE"))
    return value


def make_payment(rng: random.Random, version: int) -> dict[str, Any]:
    """Money that arrived."""
    return {
        "payment_id": f"P-{rng.randrange(10**9):09d}",
        "order_id": f"O-{rng.randrange(10**9):09d}",
        "amount": _draw_money(rng, taxed=version >= 1),
        "paid_at": _draw_moment(rng),
        "method": rng.choice(("CARD", "TRANSFER", "OTHER")),
    }


def page_view(rng: random.Random, version: int) -> dict[str, Any]:
    """Make a page view."""
    value = {
        "url": f"/products/{rng.randrange(500)}",
        "viewed_at": _draw_moment(rng),
        "visitor": f"v{rng.randrange(5_000)}",
    }
    return value | {"referrer": rng.choice((None, "https://example.com/"))} if version >= 1 else value


def make_click(rng: random.Random, version: int) -> dict[str, Any]:
    """Make a click of a visitor."""
    value: dict[str, Any] = {
        "visitor": f"v{rng.randrange(5_000)}",
        "target": rng.choice(("buy", "search", "logo")),
        "clicked_at_ms": int(_draw_moment(rng).timestamp() * 1000),
    }
    return value | {"path": ["body", "main", "a"][: rng.randrange(4)]} if version >= 1 else value


def make_cart(rng: random.Random, version: int) -> dict[str, Any]:
    """A cart by its number."""
    value: dict[str, Any] = {
        "visitor": f"v{rng.randrange(5_000)}",
        "skus": [f"SKU-{rng.randrange(500):03d}" for _ in range(rng.randrange(4))],
    }
    if version >= 1:
        value["coupon"] = rng.choice((None, "WELCOME"))
    return {"key": f"C-{rng.randrange(10**6)}", "value": value}


def make_session(rng: random.Random, _version: int) -> dict[str, Any]:
    """A visit to the site."""
    return {
        "key": rng.randrange(10**6),
        "value": {"visitor": f"v{rng.randrange(5_000)}", "pages": rng.randrange(1, 40)},
    }


TOPICS: Mapping[str, Messages] = {
    "persistent://shop/sales/orders": Messages(90_000, order),
    "persistent://shop/sales/payments": Messages(40_000, make_payment),
    "persistent://shop/sales/order-notes": Messages(5_000, lambda rng, _: rng.choice(("ring twice", "Grüße", "注意"))),
    "persistent://shop/sales/receipts": Messages(5_000, lambda rng, _: f"Käse {rng.randrange(1, 90)},-"),
    "persistent://shop/web/page-views": Messages(25_000, page_view),
    "persistent://shop/web/clicks": Messages(10_000, make_click),
    "persistent://shop/web/carts": Messages(15_000, make_cart),
    "persistent://shop/web/sessions": Messages(10_000, make_session),
    "persistent://shop/ops/stock-levels": Messages(5_000, lambda rng, _: rng.randrange(10_000)),
    "persistent://shop/ops/cold-room-celsius": Messages(5_000, lambda rng, _: round(rng.gauss(4, 1), 2)),
    "persistent://shop/ops/door-open": Messages(5_000, lambda rng, _: rng.random() < 0.1),
    "persistent://shop/ops/heartbeats": Messages(5_000, lambda rng, _: _draw_moment(rng)),
    "persistent://shop/ops/deliveries": Messages(5_000, lambda rng, _: _draw_moment(rng)),
    "persistent://shop/ops/shift-starts": Messages(5_000, lambda rng, _: _draw_moment(rng).replace(tzinfo=None)),
}
"""Every topic with a codec. The invoices are without a codec, because PROTOBUF needs the `.proto` and the Avro definition."""


def write(path: Path, codecs: Mapping[str, Codec], *, seed: int = 7, count: int | None = None) -> int:
    """Write messages to the Parquet file `path`, one row group for each topic, and return their number.

    Args:
        path: of the file.
        codecs: by their topics' names; they encode with any version.
        seed: the same seed makes the same file.
        count: the maximum for each topic; by default, the count in TOPICS.
    """
    total = 0
    with pq.ParquetWriter(path, COLUMNS) as file:
        for topic, messages in TOPICS.items():
            wanted = messages.count if count is None else min(count, messages.count)
            rows = list(_make_rows(topic, codecs[topic], messages.value, wanted, random.Random(f"{seed}/{topic}")))  # noqa: S311
            file.write_table(pa.Table.from_pylist(rows, COLUMNS))
            total += len(rows)
    return total


def _make_rows(
    topic: str, codec: Codec, value: Callable[[random.Random, int], Any], count: int, rng: random.Random
) -> Iterator[dict[str, Any]]:
    numbers = [version.number for version in codec.versions]
    for position in range(count):
        number = numbers[position % len(numbers)]
        datum = value(rng, number)
        key, payload = codec.encode_key(datum, number), codec.encode_one(datum, number)
        version = number.to_bytes(8, "big")
        if position % DAMAGED_EVERY == DAMAGED_EVERY // 2:
            payload, version = _damage_message(rng, payload or b"", version)
        yield {
            "__topic": topic,
            "key": key,
            "payload": payload,
            "schema_version": version,
            "__messageId": position.to_bytes(8, "big"),
            "__publishTime": START + timedelta(seconds=position),
        }


def _damage_message(rng: random.Random, payload: bytes, version: bytes) -> tuple[bytes, bytes]:
    """Damage a message as in real topics: a cut message, an unknown version, foreign bytes."""
    kind = rng.randrange(3)
    if kind == 0:
        return payload[: len(payload) // 2], version
    if kind == 1:
        return payload, (99).to_bytes(8, "big")
    return b"\xff" * 11, version
