"""Unusual and huge messages and batches, some made to exhaust the reader: both paths agree, and limits hold."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sample_codecs import codec_of, decode_both_ways, make_record, values_of

from schemactl.codec import (
    BatchTooLarge,
    Codec,
    Definition,
    InvalidDefinition,
    KeyValue,
    Unreadable,
    Unwritable,
    byte_batch,
    payload_batches,
)
from schemactl.codec.wire_format import encode_zigzag

MANY = 50
"""Enough rows for the columnar path."""


def make_codec(*kinds: Any, **options: Any) -> Codec:
    return codec_of(make_record(*kinds), **options)


def decode_and_compare(codec: Codec, payload: bytes) -> tuple[Any, str | None]:
    """Decode a payload alone and in a batch, and return its value and reason."""
    decoded = decode_both_ways(codec, [payload] * MANY)
    return values_of(decoded)[0], decoded.errors[0].as_py()


FF = b"\xff"


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        ("long", FF * 9 + b"\1", None),
        ("long", FF * 9 + b"\x7f", None),
        ("long", FF * 10 + b"\1", "a number of more than ten bytes"),
        ("long", b"\x80" * 9 + b"\0", None),
        ("int", FF * 4 + b"\x7f", None),
        ("int", FF * 5 + b"\1", "an int of more than five bytes"),
        ("boolean", b"\2", None),
        ("boolean", b"\xff", None),
        ("boolean", b"", "ends before a boolean"),
        ("string", encode_zigzag(2**31), "a length of"),
        ("string", encode_zigzag(2**40), "a length of"),
        ("string", encode_zigzag(-1), "a length of -1"),
        ("string", encode_zigzag(-(2**63)), "a length of"),
        (["null", "int"], encode_zigzag(-1), "union branch -1"),
        (["null", "int"], encode_zigzag(2), "union branch 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_zigzag(-1), "enum symbol -1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_zigzag(1), "enum symbol 1"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\0", "a decimal of no"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\4\x27\x0f", None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\4\x27\x10", "more than 4 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x2a" + FF * 20 + b"\x85", None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x2a" + b"\0" + FF * 20, "more than"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 18}, b"\x12" + FF * 8 + b"\1", None),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, b"\0" * 11, "12 bytes"),
        ({"type": "string", "logicalType": "uuid"}, b"\4no", None),
        ({"type": "int", "logicalType": "date"}, encode_zigzag(-(2**31)), None),
        ({"type": "long", "logicalType": "timestamp-micros"}, encode_zigzag(2**63 - 1), None),
        ({"type": "long", "logicalType": "timestamp-millis"}, encode_zigzag((2**63 - 1) // 1000), None),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, encode_zigzag(2**63 // 1000 + 1), "milliseconds"),
        ({"type": "long", "logicalType": "timestamp-millis"}, encode_zigzag(-(2**63)), "milliseconds"),
    ],
)
def test_unusual_values_have_the_same_result_alone_and_in_a_batch(
    kind: Any, payload: bytes, reason: str | None
) -> None:
    actual = decode_and_compare(make_codec(kind), payload)[1]
    assert (actual is None) == (reason is None), actual
    assert reason is None or reason in (actual or "")


@pytest.mark.parametrize("raw", [b"\xff", b"a\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"])
def test_invalid_utf_8_is_rejected_only_if_strict(raw: bytes) -> None:
    payload = encode_zigzag(len(raw)) + raw
    value, reason = decode_and_compare(make_codec("string"), payload)
    assert reason is None
    assert "�" in value["f0"]
    assert decode_and_compare(make_codec("string", strict=True), payload)[1] == (
        f"f0, byte {1 + raw.index(next(byte for byte in raw if byte > 127))}: text that is not UTF-8"
    )


@pytest.mark.parametrize("bits", [0x7FF8_0000_0000_0001, 0xFFF8_1234_5678_9ABC, 0x7FF0_0000_0000_0000])
def test_nan_and_infinity_keep_their_bits(bits: int) -> None:
    payload = struct.pack("<Q", bits)
    value, _ = decode_and_compare(make_codec("double"), payload)
    assert math.isnan(value["f0"]) or math.isinf(value["f0"])
    for count in (1, MANY):
        rows = make_codec("double").decode_batch(pa.array([payload] * count)).rows
        assert set(np.frombuffer(rows.column("f0").buffers()[1], np.uint64, count).tolist()) == {bits}
        assert make_codec("double").encode_batch(rows).payloads.to_pylist() == [payload] * count


EMPTY_TYPES: tuple[Any, ...] = (
    "null",
    {"type": "record", "name": "Empty", "fields": []},
    {"type": "fixed", "name": "None", "size": 0},
)


@pytest.mark.parametrize("item", EMPTY_TYPES, ids=str)
def test_items_without_bytes_are_bounded(item: Any) -> None:
    codec = make_codec({"type": "array", "items": item})
    for count in (1, 16, 17, 200):
        value, reason = decode_and_compare(codec, encode_zigzag(count) + b"\0")
        assert (reason, len(value["f0"])) == (None, count)
    for count in (10**5, 10**9, 2**31 - 1, 2**62):
        assert "items that take no bytes" in (decode_and_compare(codec, encode_zigzag(count) + b"\0")[1] or "")
    many_blocks = encode_zigzag(1000) * 100 + b"\0"
    assert "items that take no bytes" in (decode_and_compare(codec, many_blocks)[1] or "")


def test_nested_lists_of_empty_items_are_bounded_by_their_message() -> None:
    codec = make_codec({"type": "array", "items": {"type": "array", "items": "null"}})
    assert decode_and_compare(codec, encode_zigzag(3) + (encode_zigzag(500) + b"\0") * 3 + b"\0")[1] is None
    assert "take no bytes" in (
        decode_and_compare(codec, encode_zigzag(300) + (encode_zigzag(500) + b"\0") * 300 + b"\0")[1] or ""
    )


def test_a_default_may_have_any_number_of_empty_items() -> None:
    new = {"name": "new", "type": {"type": "array", "items": "null"}, "default": [None] * 900}
    old = {"name": "id", "type": "int"}
    codec = codec_of(*({"type": "record", "name": "R", "fields": fields} for fields in ([old], [old, new])))
    decoded = codec.decode_batch(pa.array([b"\2"] * MANY), pa.array([0] * MANY))
    assert decoded.rows.column("new").to_pylist() == [[None] * 900] * MANY
    assert codec.decode_one(b"\2", 0) == {"id": 1, "new": [None] * 900}


def make_growing_codec(size: int, *, items: bool = False) -> Codec:
    """Make a codec whose reader adds a text of `size` characters to every message, or to every item of it."""
    old, new = ({"name": "id", "type": "int"}, {"name": "note", "type": "string", "default": "x" * size})
    rows: list[Any] = [{"type": "record", "name": "Row", "fields": fields} for fields in ([old], [old, new])]
    return codec_of(*(make_record({"type": "array", "items": row}) if items else row for row in rows))


@pytest.fixture
def _small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit arrays to 2^20 bytes."""
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**20)
    monkeypatch.setattr(payload_batches, "MAX_ARRAY_BYTES", 2**20)


@pytest.mark.usefixtures("_small_arrays")
def test_short_messages_that_become_long_values_are_read_in_parts() -> None:
    codec = make_growing_codec(10_000)
    payloads, numbers = pa.array([b"\2", b"\4", b"\x80", b"\6"] * 100), pa.array([0] * 400)
    parts = list(codec.decode_parts(payloads, numbers))
    assert [part.rows.num_rows for part in parts] == [100] * 4
    decoded = codec.decode_batch(payloads, numbers)
    assert decoded.rows.equals(pa.concat_batches([part.rows for part in parts]))
    assert decoded.rows.column("id").to_pylist() == [1, 2, None, 3] * 100
    assert decoded.errors.null_count == 300


@pytest.mark.usefixtures("_small_arrays")
def test_a_value_too_large_for_a_column_rejects_only_its_row() -> None:
    codec = make_growing_codec(1000, items=True)
    sent = [encode_zigzag(count) + b"\2" * count + b"\0" for count in [3] * 60 + [2000] + [3] * 60]
    decoded = codec.decode_batch(pa.array(sent), pa.array([0] * len(sent)))
    assert decoded.errors.to_pylist()[60] == "the value takes more than the 2 GiB that a column holds"
    assert decoded.errors.null_count == 120
    assert [len(row or []) for row in decoded.rows.column("f0").to_pylist()] == [3] * 60 + [0] + [3] * 60


def test_error_of_a_too_large_batch_names_decode_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_overflow(_: Any) -> None:
        raise pa.ArrowInvalid("offset overflow")

    codec = make_growing_codec(10_000)
    with monkeypatch.context() as patch:
        patch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**20)
        patch.setattr(pa, "concat_batches", raise_overflow)
        with pytest.raises(BatchTooLarge, match="decode_parts"):
            codec.decode_batch(pa.array([b"\2"] * 400), pa.array([0] * 400))


@pytest.mark.parametrize(
    "payload_type",
    [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary()), pa.binary_view(), pa.binary(1)],
    ids=str,
)
@pytest.mark.parametrize(
    "version_type", [pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.dictionary(pa.int8(), pa.int64())], ids=str
)
def test_every_arrow_type_of_the_same_columns_has_the_same_result(
    payload_type: pa.DataType, version_type: pa.DataType
) -> None:
    codec = make_growing_codec(3)
    payloads, numbers = pa.array([b"\2", b"\4", b"\6"] * 40), pa.array([0, 0, 7] * 40)
    expected = codec.decode_batch(payloads, numbers)
    typed_payloads, versions = (
        pa.array(column.to_pylist(), kind) for column, kind in ((payloads, payload_type), (numbers, version_type))
    )
    sliced_payloads = pa.concat_arrays([typed_payloads[60:], typed_payloads])[60:]
    sliced_versions = pa.concat_arrays([versions[:60], versions])[60:]
    chunked_payloads = pa.chunked_array([typed_payloads[:7], typed_payloads[7:]])
    for decoded in (
        codec.decode_batch(typed_payloads, versions),
        codec.decode_batch(chunked_payloads, pa.chunked_array([versions])),
        codec.decode_batch(sliced_payloads, sliced_versions),
    ):
        assert decoded.rows.equals(expected.rows)
        assert decoded.errors.equals(expected.errors)


def test_a_slice_far_into_a_large_array_is_read(tmp_path: Path) -> None:
    # A sparse file of 3 GiB, of which only the last bytes are read.
    far = 3 * 2**30
    data = np.memmap(tmp_path / "sparse", np.uint8, "w+", shape=(far + 4,))
    data[far:] = np.frombuffer(b"\2\4\x80\6", np.uint8)
    offsets = np.array([0, far, far + 1, far + 2, far + 3, far + 4], np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.large_binary(), 5, buffers)
    decoded = make_growing_codec(3).decode_batch(values[1:], pa.array([0] * 4))
    assert decoded.rows.column("id").to_pylist() == [1, 2, None, 3]


@pytest.mark.parametrize(
    "version_type",
    [pa.binary(), pa.large_binary(), pa.binary(8), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())],
    ids=str,
)
def test_every_arrow_type_of_schema_versions_is_decoded_to_numbers(version_type: pa.DataType) -> None:
    codec = make_growing_codec(3)
    raw = [number.to_bytes(8, "big") if number is not None else None for number in (0, 7, None)]
    decoded = codec.decode_batch(pa.array([b"\2", b"\2", b"\2\0"]), pa.array(raw, version_type))
    assert decoded.rows.column("note").to_pylist() == ["xxx", None, ""]
    assert "schema version 7" in decoded.errors[1].as_py()


def test_unknown_version_numbers_are_rejected_rows() -> None:
    codec = make_growing_codec(3)
    numbers = pa.array([0, 2**64 - 1, 2**63, 9], pa.uint64())
    decoded = codec.decode_batch(pa.array([b"\2"] * 4), numbers)
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True]


def test_a_batch_of_hundreds_of_versions_is_decoded() -> None:
    def make_fields(number: int) -> list[Any]:
        return [{"name": f"f{at}", "type": "int", "default": at} for at in range(number % 7 + 1)]

    own = {"name": "id", "type": "long"}
    codec = codec_of(*({"type": "record", "name": "R", "fields": [*make_fields(number), own]} for number in range(300)))
    numbers = [number % 300 for number in range(1000)]
    payloads = [b"\2" * (number % 7 + 1) + encode_zigzag(number) for number in numbers]
    decoded = codec.decode_batch(pa.array(payloads), pa.array(numbers))
    assert decoded.errors.null_count == 1000
    assert decoded.rows.column("id").to_pylist() == numbers
    # The newest version has six fields.
    assert decoded.rows.to_pylist()[5] == {f"f{at}": 1 for at in range(6)} | {"id": 5}


def test_decoders_of_unknown_versions_are_not_cached() -> None:
    codec = make_growing_codec(3)
    numbers = pa.array(np.arange(10, 2010) * 2**40)
    decoded = codec.decode_batch(pa.array([b"\2"] * 2000), numbers)
    assert decoded.errors.null_count == 0
    assert len(codec._decoders) == 0


def test_a_reason_is_short_however_long_the_message() -> None:
    codec = make_codec({"type": "map", "values": "int"})
    key = "k" * 100_000
    reason = decode_and_compare(codec, encode_zigzag(1) + encode_zigzag(len(key)) + key.encode() + b"\x80")[1]
    assert reason is not None
    assert len(reason) < 300


def test_a_definition_of_ten_thousand_nested_lists_is_rejected() -> None:
    depth = 10_000
    text = '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
    codec = codec_of(Definition("AVRO", text))
    for use in (lambda: codec.columns, lambda: codec.decode_one(b""), lambda: codec.encode_one([])):
        with pytest.raises(InvalidDefinition, match=r"nested deeper|recursion"):
            use()


def test_a_message_of_many_nested_lists_is_decoded() -> None:
    kind: Any = "int"
    for _ in range(40):
        kind = {"type": "array", "items": kind}
    value, reason = decode_and_compare(make_codec(kind), b"\2" * 41 + b"\0" * 40)
    assert reason is None
    for _ in range(40):
        value = value[0] if isinstance(value, list) else value["f0"][0]
    assert value == 1
    with pytest.raises(Unreadable):
        make_codec(kind).decode_one(b"\2" * 41 + b"\0" * 39)


def test_payloads_too_large_for_a_column_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = make_codec("long")
    rows = pa.record_batch({"f0": pa.array([2**40 + number for number in range(1000)])})
    whole = codec.encode_batch(rows).payloads
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**10)
    parts = list(codec.encode_parts(rows))
    assert [len(part.payloads) for part in parts] == [125] * 8
    assert pa.concat_arrays([part.payloads for part in parts]).equals(whole)
    assert pa.concat_arrays([part.errors for part in parts]).null_count == 1000
    with pytest.raises(BatchTooLarge, match="encode_parts"):
        codec.encode_batch(rows)


def test_a_payload_too_large_for_a_column_rejects_only_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    longs = Definition("AVRO", '{"type": "array", "items": "long"}')
    single = codec_of(longs)
    pairs = codec_of(KeyValue(Definition("STRING"), longs, "SEPARATED"))
    values = pa.array([[1] * 500, [1] * 1500, [1] * 500])
    keys = pa.array(["a", "b", "c"])
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**10)
    for codec, rows in (
        (single, pa.record_batch({"value": values})),
        (pairs, pa.record_batch({"key": keys, "value": values})),
    ):
        parts = list(codec.encode_parts(rows))
        reasons = [reason for part in parts for reason in part.errors.to_pylist()]
        assert reasons == [None, "the value takes more than the 2 GiB that a column holds", None]
        payloads = [payload for part in parts for payload in part.payloads.to_pylist()]
        assert [payload is None for payload in payloads] == [False, True, False]
        encoded_keys = [key for part in parts if part.keys for key in part.keys.to_pylist()]
        assert encoded_keys == ([b"a", None, b"c"] if codec.separated else [])


def make_bomb(levels: int) -> dict[str, Any]:
    """Make a record with two fields, which are records with two fields, and so on."""
    kind: Any = "int"
    for level in range(levels):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"L{level - 1}" if level else kind}]
        kind = {"type": "record", "name": f"L{level}", "fields": fields}
    return make_record({"type": "array", "items": kind})


def test_a_definition_with_too_many_columns_is_rejected() -> None:
    codec = codec_of(make_bomb(60))
    for use in (lambda: codec.columns, lambda: codec.encode_batch(pa.record_batch({"f0": pa.nulls(1)}))):
        with pytest.raises(InvalidDefinition, match="more than 100,000"):
            use()
    # A single value needs no columns.
    with pytest.raises(Unwritable, match="absent"):
        codec.encode_one({})
    codec = codec_of(make_bomb(60), make_record())
    assert codec.decode_batch(pa.array([b"\0"] * MANY), pa.array([0] * MANY)).errors.null_count == MANY


@pytest.mark.parametrize("sign", [0, 1])
def test_the_largest_decimal_is_encoded_and_decoded(sign: int) -> None:
    codec = make_codec({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10})
    [name] = codec.columns.names
    value = {name: Decimal((sign, (9,) * 38, -10))}
    assert codec.decode_one(codec.encode_one(value), 0) == value
