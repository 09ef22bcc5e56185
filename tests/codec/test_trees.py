"""Records and messages with several recursive fields: the work depends on the depth of a message, not on the number of possible columns."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from sample_codecs import codec_of, make_native

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


def make_nested_message() -> bytes:
    payload = b"\x18\x01"
    for _ in range(LEVELS):
        size = len(payload)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        payload = b"\x0a" + length + payload + b"\x18\x01"
    return payload


@pytest.mark.parametrize(
    ("definition", "payload"),
    [
        # `left` is set 40 times. Then follow, from the innermost record outwards, `right`, which is null, and `x`, which is 1.
        (Definition("AVRO", json.dumps(RECORD)), b"\x02" * LEVELS + b"\x00" + b"\x00\x02" * (LEVELS + 1)),
        (Definition("JSON", json.dumps(RECORD)), b'{"left":' * LEVELS + b'{"x":1}' + b',"x":1}' * LEVELS),
        (
            make_native('syntax = "proto3"; message N { N left = 1; N right = 2; int32 x = 3; }', "N"),
            make_nested_message(),
        ),
    ],
    ids=["avro", "json", "protobuf"],
)
def test_a_tree_is_decoded_to_its_depth(definition: Definition, payload: bytes) -> None:
    codec = codec_of(definition, recursion_depth=64)
    value = codec.decode_one(payload, 0)
    for _ in range(LEVELS):
        assert (value["x"], value["right"]) == (1, None)
        value = value["left"]
    assert value == {"left": None, "right": None, "x": 1}
    with pytest.raises(InvalidDefinition, match="more than 100,000"):
        codec.decode_batch(pa.array([payload]))


def make_node(*kinds: str, symbols: str = "AB") -> Definition:
    """Make a record with lists and maps of itself and other types."""
    kind = {"type": "enum", "name": "E", "symbols": list(symbols)}
    fields = [
        {"name": "kind", "type": kind},
        {"name": "nodes", "type": {"type": "array", "items": ["null", "N", *kinds]}},
        {"name": "by_name", "type": {"type": "map", "values": "N"}},
    ]
    return Definition("AVRO", json.dumps({"type": "record", "name": "N", "fields": fields}))


LEAF = b"\x00\x00\x00"
REASONS_BY_PAYLOAD = {
    # A block of one node that states a size in bytes, right or wrong: it has no effect.
    b"\x00" + b"\x01\x04\x02" + LEAF + b"\x00" + b"\x00": None,
    b"\x00" + b"\x01\x30\x02" + LEAF + b"\x00" + b"\x00": None,
    b"\x00\x00" + b"\x01\x30\x02k" + LEAF + b"\x00": None,
    b"\x00" + b"\x01\x08\x0a" + LEAF + b"\x00" + b"\x00": "nodes, byte 3: union branch 5 of 4",
    b"\x00" + b"\x01\x02\x04\x00" + b"\x00": "nodes, byte 4: string was written and cannot be read as union",
    b"\x00" + b"\x02\x02" + b"\x02\x00\x00" + b"\x00" + b"\x00": "nodes.kind, byte 3: the symbol B",
}


@pytest.mark.parametrize("count", [1, 100])
def test_values_below_the_recursion_depth_are_skipped_as_in_java(count: int) -> None:
    reader = make_node(symbols="AC")
    codec = Codec([Version(0, make_node("string", "int"))], reader=reader, options=Options(recursion_depth=1))
    payloads = list(REASONS_BY_PAYLOAD) * count
    decoded = codec.decode_batch(pa.array(payloads), pa.array([0] * len(payloads)))
    assert decoded.rows.schema.names == ["kind"]
    for payload, reason in zip(payloads, decoded.errors.to_pylist(), strict=True):
        expected = REASONS_BY_PAYLOAD[payload]
        assert reason == expected if expected is None else reason and reason.startswith(expected), (payload, reason)


def test_a_google_protobuf_struct_is_decoded() -> None:
    from google.protobuf.struct_pb2 import Struct

    struct = Struct()
    struct.update({"a": [1.5, {"b": None}], "c": "d"})
    payload = struct.SerializeToString(deterministic=True)
    codec = codec_of(make_native(VALUES, "M"), recursion_depth=64)
    fields = codec.decode_one(b"\x0a" + bytes([len(payload)]) + payload, 0)["fields"]["fields"]
    assert fields["c"]["string_value"] == "d"
    first, second = fields["a"]["list_value"]["values"]
    assert (first["number_value"], first["string_value"]) == (1.5, None)
    assert second["struct_value"]["fields"]["b"]["null_value"] == "NULL_VALUE"
