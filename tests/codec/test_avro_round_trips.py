"""Encoded values are decoded to the same values, and have the same bytes as fastavro's."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker, damage_payload, for_fastavro
from sample_codecs import codec_of, decode_both_ways, make_record

from schemactl.codec import Unreadable
from schemactl.codec.byte_batch import ByteBatch
from schemactl.codec.wire_format import encode_zigzag

pytestmark = pytest.mark.slow

SEEDS = st.integers(min_value=0, max_value=2**32)


@given(SEEDS)
@EXAMPLES
def test_a_value_is_decoded_from_its_bytes(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    codec = codec_of(schema)
    for _ in range(4):
        value = maker.draw_value(schema)
        payload = codec.encode_one(value)
        assert codec.decode_one(payload) == value


@given(SEEDS)
@EXAMPLES
def test_bytes_are_those_of_fastavro(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    parsed = fastavro.parse_schema(schema)
    value = maker.draw_value(schema)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, for_fastavro(schema, value))
    assert codec_of(schema).encode_one(value) == out.getvalue()


@given(SEEDS)
@EXAMPLES
def test_a_batch_has_the_values_of_its_messages(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    codec = codec_of(schema)
    values = [maker.draw_value(schema) for _ in range(40)]
    decoded = codec.decode_batch(pa.array([codec.encode_one(value) for value in values]))
    decoded.rows.validate(full=True)
    assert decoded.errors.null_count == 40
    assert codec.encode_batch(decoded.rows).payloads.to_pylist() == [codec.encode_one(value) for value in values]


@given(SEEDS)
@EXAMPLES
def test_a_damaged_message_has_the_same_result_alone_and_in_a_batch(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    # The reader skips the values of fields that it does not have.
    fields = [part for part in schema["fields"] if maker.random.random() < 0.7]
    codec = codec_of(schema, schema | {"fields": fields})
    payloads = [codec.encode_one(maker.draw_value(schema), 0) for _ in range(40)]
    damaged = [damage_payload(maker, payload or b"") for payload in payloads]
    decode_both_ways(codec, damaged, [0] * 40)


WIDE = make_record(
    {"type": "array", "items": {"type": "map", "values": ["null", "string"]}}, {"type": "array", "items": "null"}
)
SIZED = make_record({"type": "array", "items": {"type": "map", "values": "string"}}, {"type": "array", "items": "int"})


def encode_blocks(*parts: tuple[int, bytes, int | None]) -> bytes:
    """Encode the blocks of a list from the number of items, their bytes, and the stated size or None."""
    out = b""
    for count, items, size in parts:
        out += encode_zigzag(count) if size is None else encode_zigzag(-count) + encode_zigzag(size)
        out += items
    return out + b"\0"


@pytest.mark.parametrize(
    ("skipped", "read", "expected"),
    [
        (encode_blocks((1, b"\0", 1)), encode_blocks((2, b"\2\4", 2), (1, b"\6", None)), [1, 2, 3]),
        # A block that is skipped by its size is not validated.
        (encode_blocks((7, b"\xff\xff\xff", 3), (1, b"\2\2a\2b\0", None)), encode_blocks(), []),
        # When the items are read, the size has no effect.
        (encode_blocks(), encode_blocks((1, b"\2", 99)), [1]),
        (encode_blocks(), encode_blocks((1, b"\2", -1)), [1]),
        (encode_blocks((1, b"", 2**40)), encode_blocks(), None),
        (encode_blocks((1, b"", -1)), encode_blocks(), None),
        (encode_blocks((-(2**62), b"", None)), encode_blocks(), None),
    ],
)
def test_blocks_that_state_their_size_are_read_and_skipped(
    skipped: bytes, read: bytes, expected: list[int] | None
) -> None:
    codec = codec_of(SIZED, SIZED | {"fields": SIZED["fields"][1:]})
    payload = skipped + read
    decoded = codec.decode_batch(pa.array([payload] * 50), pa.array([0] * 50))
    if expected is None:
        with pytest.raises(Unreadable):
            codec.decode_one(payload, 0)
        assert decoded.errors.null_count == 0
    else:
        assert codec.decode_one(payload, 0) == {"f1": expected}
        assert decoded.rows.column("f1").to_pylist() == [expected] * 50


def test_one_row_with_many_items_does_not_slow_down_the_others() -> None:
    codec = codec_of(WIDE)
    small = {"f0": [{"a": None}], "f1": [None]}
    large = {"f0": [{"k": "v"}] * 50_000, "f1": []}
    payloads = [codec.encode_one(value) for value in [small] * 500 + [large] + [small] * 500]
    decoded = codec.decode_batch(pa.array(payloads))
    assert decoded.errors.null_count == 1001
    assert len(decoded.rows.column("f0")[500]) == 50_000


def test_one_row_with_many_blocks_does_not_slow_down_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = codec_of(["null", {"type": "array", "items": "int"}])
    payloads = [b"\2\4\2\4\0"] * 500
    payloads[100] = b"\2" + b"\2\6" * 5_000 + b"\0"
    calls = []
    read_counts = ByteBatch.read_counts

    def record_call(*arguments: Any) -> Any:
        calls.append(arguments)
        return read_counts(*arguments)

    monkeypatch.setattr(ByteBatch, "read_counts", record_call)
    decoded = codec.decode_batch(pa.array(payloads))
    assert decoded.errors.null_count == 500
    assert decoded.rows.column("value").to_pylist() == [[1, 2]] * 100 + [[3] * 5_000] + [[1, 2]] * 399
    assert len(calls) < 100


@pytest.mark.parametrize("count", [2**31 - 1, 2**40, -(2**63), 10**7])
def test_a_huge_number_of_items_is_rejected_at_once(count: int) -> None:
    codec = codec_of(WIDE)
    for payload in (encode_zigzag(count), b"\0" + encode_zigzag(count)):
        with pytest.raises(Unreadable, match=r"items|ends"):
            codec.decode_one(payload)
        assert codec.decode_batch(pa.array([payload] * 100)).errors.null_count == 0


@given(SEEDS)
@EXAMPLES
def test_messages_of_many_versions_have_the_same_result_alone_and_in_a_batch(seed: int) -> None:
    maker = Maker(seed)
    schemas = [maker.record()]
    for _ in range(3):
        schemas.append(maker.evolve_schema(schemas[0]))
    codec = codec_of(*schemas)
    sent: list[tuple[bytes | None, int | None]] = []
    for _ in range(60):
        number = maker.random.randrange(len(schemas))
        payload = codec.encode_one(maker.draw_value(schemas[number]), number) or b""
        sent.append((damage_payload(maker, payload) if maker.random.random() < 0.1 else payload, number))
    sent[7], sent[8] = (None, 0), (sent[8][0], 99)
    decode_both_ways(codec, *zip(*sent, strict=True))
