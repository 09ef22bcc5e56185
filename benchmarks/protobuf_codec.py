"""Measure the decoding and encoding of protobuf with ptars, against one message at a time: CPU of one core, one run.

    python benchmarks/protobuf_codec.py [MESSAGES] [ROUNDS]

Nested orders in three versions, mixed, read into the newest. The other sides are the codec without ptars, and the functions of protobuf
itself: `MessageToDict`, then rows to columns. Ratios are medians over rounds.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from codec import cpu_s
from google.protobuf.json_format import MessageToDict

from schemactl.codec import Codec, Definition, Options, Version
from schemactl.codec.proto_schema import load_root
from schemactl.formats.protobuf.protoc import Proto, compile_proto

_BATCH_ROWS = 10_000

_ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Item { string sku = 1; int32 quantity = 2; double price = 3; }
message Address { string street = 1; optional string zip = 2; }
enum Status { NEW = 0; PAID = 1; SHIPPED = 2; }
message Order {
  string order_id = 1; uint64 customer_id = 2; Status status = 3; int64 amount = 4;
  google.protobuf.Timestamp created_at = 5; Address address = 6; repeated Item items = 7;
"""
_ADDED = ("", "optional string note = 8;", "optional string note = 8; map<string, string> attributes = 9;")


class Sides:
    """Messages for all sides."""

    def __init__(self, count: int) -> None:
        pick = random.Random(7)  # noqa: S311  reproducible, not secret
        definitions = []
        for added in _ADDED:
            text = f"{_ORDER} {added} }}".encode()
            info = compile_proto(Proto("shop.Order", "order.proto", {"order.proto": text}))
            definitions.append(Definition("PROTOBUF_NATIVE", info.schema.decode()))
        self.versions = [Version(number, one) for number, one in enumerate(definitions)]
        self.classes = [load_root(one, Options()).message_class for one in definitions]
        numbers = [pick.randrange(len(definitions)) for _ in range(count)]
        payloads = pa.array([self.make_payload(pick, number) for number in numbers])
        self.messages = [
            (payloads.slice(at, _BATCH_ROWS), pa.array(numbers[at : at + _BATCH_ROWS]))
            for at in range(0, count, _BATCH_ROWS)
        ]
        self.codec = Codec(self.versions)
        self.plain = Codec(self.versions)
        ptars, sys.modules["ptars"] = sys.modules.get("ptars"), None  # type: ignore[assignment]
        self.rows = self.decode_plain()
        self.encode_plain()
        del sys.modules["ptars"]
        if ptars is not None:
            sys.modules["ptars"] = ptars

    def make_payload(self, pick: random.Random, number: int) -> bytes:
        """An order."""

        def draw_word() -> str:
            return "".join(pick.choices("abcdefghij", k=pick.randrange(1, 12)))

        order = self.classes[number](order_id=draw_word(), customer_id=pick.randrange(2**40), status=pick.randrange(3))
        order.amount = pick.randrange(-(10**9), 10**9)
        order.created_at.seconds = pick.randrange(2 * 10**9)
        order.created_at.nanos = pick.randrange(1000) * 10**6
        order.address.street = draw_word()
        if pick.random() < 0.5:
            order.address.zip = draw_word()
        for _ in range(pick.randrange(4)):
            order.items.add(sku=draw_word(), quantity=pick.randrange(9), price=pick.random())
        if number > 0 and pick.random() < 0.5:
            order.note = draw_word()
        if number > 1:
            for _ in range(pick.randrange(3)):
                order.attributes[draw_word()] = draw_word()
        written: bytes = order.SerializeToString()
        return written

    def decode(self) -> list[pa.RecordBatch]:
        """By columns."""
        return [self.codec.decode_batch(payloads, numbers).rows for payloads, numbers in self.messages]

    def decode_plain(self) -> list[pa.RecordBatch]:
        """Message by message."""
        return [self.plain.decode_batch(payloads, numbers).rows for payloads, numbers in self.messages]

    def decode_dicts(self) -> list[pa.RecordBatch]:
        """By `MessageToDict`, as Spark users do in a UDF; its columns are what Arrow makes of the dicts."""
        newest = self.classes[-1]
        return [
            pa.RecordBatch.from_pylist(
                [
                    MessageToDict(newest.FromString(payload), preserving_proto_field_name=True)
                    for payload in payloads.to_pylist()
                ]
            )
            for payloads, _ in self.messages
        ]

    def encode(self) -> list[pa.BinaryArray]:
        """By columns."""
        return [self.codec.encode_batch(batch).payloads for batch in self.rows]

    def encode_plain(self) -> list[pa.BinaryArray]:
        """Message by message."""
        return [self.plain.encode_batch(batch).payloads for batch in self.rows]


def compare(count: int, rounds: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """A line."""
    pairs = [(cpu_s(ours), cpu_s(theirs)) for _ in range(rounds)]
    ratio = statistics.median(other / mine for mine, other in pairs)
    rate = count / statistics.median(mine for mine, _ in pairs)
    other_rate = count / statistics.median(other for _, other in pairs)
    print(
        f"{ours.__name__}: {ratio:5.1f} times less CPU than {theirs.__name__} "
        f"({rate / 1000:.0f} against {other_rate / 1000:.0f} thousand messages a second)"
    )


def main(count: int = 100_000, rounds: int = 3) -> None:
    """A line for each pair."""
    sides = Sides(count)
    print(f"{count} messages in batches of {_BATCH_ROWS}, medians of {rounds} rounds")
    if sides.decode() != sides.rows or sides.encode() != sides.encode_plain():
        raise SystemExit("the two sides differ")
    compare(count, rounds, sides.decode, sides.decode_plain)
    compare(count, rounds, sides.decode, sides.decode_dicts)
    compare(count, rounds, sides.decode_plain, sides.decode_dicts)
    compare(count, rounds, sides.encode, sides.encode_plain)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
