"""Records and messages that hold themselves several times: one message is read as deep as it is, not as wide as it could be."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from sample_codecs import codec_of, native

from schemactl.codec import Codec, Definition, InvalidDefinition, Options, Version

pytestmark = pytest.mark.slow

RECORD = {
    "type": "record",
    "name": "N",
    "fields": [
        {"name": "left", "type": ["null", "N"], "default": None},
        {"name": "right", "type": ["null", "N"], "default": None},
        {"name": "x", "type": "int"},
    ],
}
VALUES = """
syntax = "proto3";
import "google/protobuf/struct.proto";
message M { google.protobuf.Struct fields = 1; }
"""


LEVELS = 40


def nested_message() -> bytes:
    payload = b"\x18\x01"
    for _ in range(LEVELS):
        size = len(payload)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        payload = b"\x0a" + length + payload + b"\x18\x01"
    return payload


@pytest.mark.parametrize(
    ("definition", "payload"),
    [
        # Left is there, 40 times, and the innermost has none; then from the inside right is not there, and x is 1.
        (Definition("AVRO", json.dumps(RECORD)), b"\x02" * LEVELS + b"\x00" + b"\x00\x02" * (LEVELS + 1)),
        (Definition("JSON", json.dumps(RECORD)), b'{"left":' * LEVELS + b'{"x":1}' + b',"x":1}' * LEVELS),
        (native('syntax = "proto3"; message N { N left = 1; N right = 2; int32 x = 3; }', "N"), nested_message()),
    ],
    ids=["avro", "json", "protobuf"],
)
def test_a_tree_is_read_to_its_depth(definition: Definition, payload: bytes) -> None:
    codec = codec_of(definition, recursion_depth=64)
    value = codec.decode_one(payload, 0)
    for _ in range(LEVELS):
        assert (value["x"], value["right"]) == (1, None)
        value = value["left"]
    assert value == {"left": None, "right": None, "x": 1}
    with pytest.raises(InvalidDefinition, match="more than 100,000"):
        codec.decode_batch(pa.array([payload]))


def node(*kinds: str, symbols: str = "AB") -> Definition:
    """A record with many of itself, and of other kinds of value."""
    kind = {"type": "enum", "name": "E", "symbols": list(symbols)}
    fields = [
        {"name": "kind", "type": kind},
        {"name": "nodes", "type": {"type": "array", "items": ["null", "N", *kinds]}},
        {"name": "by_name", "type": {"type": "map", "values": "N"}},
    ]
    return Definition("AVRO", json.dumps({"type": "record", "name": "N", "fields": fields}))


LEAF = b"\x00\x00\x00"
HELD = {
    # One node in a block that says how many bytes it has, rightly or not: nobody asks.
    b"\x00" + b"\x01\x04\x02" + LEAF + b"\x00" + b"\x00": None,
    b"\x00" + b"\x01\x30\x02" + LEAF + b"\x00" + b"\x00": None,
    b"\x00\x00" + b"\x01\x30\x02k" + LEAF + b"\x00": None,
    b"\x00" + b"\x01\x08\x0a" + LEAF + b"\x00" + b"\x00": "nodes, byte 3: union branch 5 of 4",
    b"\x00" + b"\x01\x02\x04\x00" + b"\x00": "nodes, byte 4: string was written and cannot be read as union",
    b"\x00" + b"\x02\x02" + b"\x02\x00\x00" + b"\x00" + b"\x00": "nodes.kind, byte 3: the symbol B",
}


@pytest.mark.parametrize("count", [1, 100])
def test_what_a_recursion_cuts_off_is_read_as_java_reads_it(count: int) -> None:
    reader = node(symbols="AC")
    codec = Codec([Version(0, node("string", "int"))], reader=reader, options=Options(recursion_depth=1))
    payloads = list(HELD) * count
    decoded = codec.decode_batch(pa.array(payloads), pa.array([0] * len(payloads)))
    assert decoded.rows.schema.names == ["kind"]
    for payload, reason in zip(payloads, decoded.errors.to_pylist(), strict=True):
        wanted = HELD[payload]
        assert reason == wanted if wanted is None else reason and reason.startswith(wanted), (payload, reason)


def test_any_values_of_protobuf_are_read() -> None:
    from google.protobuf.struct_pb2 import Struct

    struct = Struct()
    struct.update({"a": [1.5, {"b": None}], "c": "d"})
    held = struct.SerializeToString(deterministic=True)
    codec = codec_of(native(VALUES, "M"), recursion_depth=64)
    fields = codec.decode_one(b"\x0a" + bytes([len(held)]) + held, 0)["fields"]["fields"]
    assert fields["c"]["string_value"] == "d"
    first, second = fields["a"]["list_value"]["values"]
    assert (first["number_value"], first["string_value"]) == (1.5, None)
    assert second["struct_value"]["fields"]["b"]["null_value"] == "NULL_VALUE"
