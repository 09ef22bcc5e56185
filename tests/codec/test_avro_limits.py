"""Messages and batches that are odd, large or made to exhaust whoever reads them: both paths judge alike, and nothing grows."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sample_codecs import codec_of, read_alike, record, values_of

from schemactl.codec import (
    BatchTooLarge,
    Codec,
    Definition,
    InvalidDefinition,
    KeyValue,
    Unreadable,
    byte_batch,
    payload_reader,
)
from schemactl.codec.avro_resolution import zigzag

MANY = 50
"""Enough rows for the vectorised path."""


def avro(*kinds: Any, **options: Any) -> Codec:
    return codec_of(record(*kinds), **options)


def judged(codec: Codec, payload: bytes) -> tuple[Any, str | None]:
    """The value and the reason: the same alone, and in a batch."""
    decoded = read_alike(codec, [payload] * MANY)
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
        ("string", zigzag(2**31), "a length of"),
        ("string", zigzag(2**40), "a length of"),
        ("string", zigzag(-1), "a length of -1"),
        ("string", zigzag(-(2**63)), "a length of"),
        (["null", "int"], zigzag(-1), "union branch -1"),
        (["null", "int"], zigzag(2), "union branch 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, zigzag(-1), "enum symbol -1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, zigzag(1), "enum symbol 1"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\0", "a decimal of no"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\4\x27\x0f", None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\4\x27\x10", "more than 4 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x2a" + FF * 20 + b"\x85", None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x2a" + b"\0" + FF * 20, "more than"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 18}, b"\x12" + FF * 8 + b"\1", None),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, b"\0" * 11, "12 bytes"),
        ({"type": "string", "logicalType": "uuid"}, b"\4no", None),
        ({"type": "int", "logicalType": "date"}, zigzag(-(2**31)), None),
        ({"type": "long", "logicalType": "timestamp-micros"}, zigzag(2**63 - 1), None),
        ({"type": "long", "logicalType": "timestamp-millis"}, zigzag((2**63 - 1) // 1000), None),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, zigzag(2**63 // 1000 + 1), "milliseconds"),
        ({"type": "long", "logicalType": "timestamp-millis"}, zigzag(-(2**63)), "milliseconds"),
    ],
)
def test_odd_values_are_judged_alike_alone_and_in_a_batch(kind: Any, payload: bytes, reason: str | None) -> None:
    found = judged(avro(kind), payload)[1]
    assert (found is None) == (reason is None), found
    assert reason is None or reason in (found or "")


@pytest.mark.parametrize("raw", [b"\xff", b"a\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"])
def test_text_that_is_no_text_is_rejected_only_by_strict(raw: bytes) -> None:
    payload = zigzag(len(raw)) + raw
    value, reason = judged(avro("string"), payload)
    assert reason is None
    assert "�" in value["f0"]
    assert judged(avro("string", strict=True), payload)[1] == (
        f"f0, byte {1 + raw.index(next(byte for byte in raw if byte > 127))}: text that is not UTF-8"
    )


@pytest.mark.parametrize("bits", [0x7FF8_0000_0000_0001, 0xFFF8_1234_5678_9ABC, 0x7FF0_0000_0000_0000])
def test_a_number_that_is_none_keeps_its_bits(bits: int) -> None:
    payload = struct.pack("<Q", bits)
    value, _ = judged(avro("double"), payload)
    assert math.isnan(value["f0"]) or math.isinf(value["f0"])
    for count in (1, MANY):
        rows = avro("double").decode_batch(pa.array([payload] * count)).rows
        assert set(np.frombuffer(rows.column("f0").buffers()[1], np.uint64, count).tolist()) == {bits}
        assert avro("double").encode_batch(rows).payloads.to_pylist() == [payload] * count


NOTHING: tuple[Any, ...] = (
    "null",
    {"type": "record", "name": "Empty", "fields": []},
    {"type": "fixed", "name": "None", "size": 0},
)


@pytest.mark.parametrize("item", NOTHING, ids=str)
def test_items_that_take_no_bytes_are_bounded(item: Any) -> None:
    codec = avro({"type": "array", "items": item})
    for count in (1, 16, 17, 200):
        value, reason = judged(codec, zigzag(count) + b"\0")
        assert (reason, len(value["f0"])) == (None, count)
    for count in (10**5, 10**9, 2**31 - 1, 2**62):
        assert "items that take no bytes" in (judged(codec, zigzag(count) + b"\0")[1] or "")
    many_blocks = zigzag(1000) * 100 + b"\0"
    assert "items that take no bytes" in (judged(codec, many_blocks)[1] or "")


def test_lists_of_nothing_inside_of_lists_are_bounded_by_their_message() -> None:
    codec = avro({"type": "array", "items": {"type": "array", "items": "null"}})
    assert judged(codec, zigzag(3) + (zigzag(500) + b"\0") * 3 + b"\0")[1] is None
    assert "take no bytes" in (judged(codec, zigzag(300) + (zigzag(500) + b"\0") * 300 + b"\0")[1] or "")


def test_a_default_may_hold_as_much_of_nothing_as_it_likes() -> None:
    new = {"name": "new", "type": {"type": "array", "items": "null"}, "default": [None] * 900}
    old = {"name": "id", "type": "int"}
    codec = codec_of(*({"type": "record", "name": "R", "fields": fields} for fields in ([old], [old, new])))
    decoded = codec.decode_batch(pa.array([b"\2"] * MANY), pa.array([0] * MANY))
    assert decoded.rows.column("new").to_pylist() == [[None] * 900] * MANY
    assert codec.decode_one(b"\2", 0) == {"id": 1, "new": [None] * 900}


def growing(size: int, *, items: bool = False) -> Codec:
    """A reader that gives every message, or every one of its items, a text of that size."""
    old, new = ({"name": "id", "type": "int"}, {"name": "note", "type": "string", "default": "x" * size})
    rows: list[Any] = [{"type": "record", "name": "Row", "fields": fields} for fields in ([old], [old, new])]
    return codec_of(*(record({"type": "array", "items": row}) if items else row for row in rows))


@pytest.fixture
def _small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays as if they could hold no more than 2^20 bytes."""
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**20)
    monkeypatch.setattr(payload_reader, "MAX_ARRAY_BYTES", 2**20)


@pytest.mark.usefixtures("_small_arrays")
def test_short_messages_that_become_long_values_are_read_in_parts() -> None:
    codec = growing(10_000)
    payloads, numbers = pa.array([b"\2", b"\4", b"\x80", b"\6"] * 100), pa.array([0] * 400)
    parts = list(codec.decode_parts(payloads, numbers))
    assert [part.rows.num_rows for part in parts] == [100] * 4
    decoded = codec.decode_batch(payloads, numbers)
    assert decoded.rows.equals(pa.concat_batches([part.rows for part in parts]))
    assert decoded.rows.column("id").to_pylist() == [1, 2, None, 3] * 100
    assert decoded.errors.null_count == 300


@pytest.mark.usefixtures("_small_arrays")
def test_a_value_that_no_column_holds_is_a_bad_row_and_the_others_are_not() -> None:
    codec = growing(1000, items=True)
    sent = [zigzag(count) + b"\2" * count + b"\0" for count in [3] * 60 + [2000] + [3] * 60]
    decoded = codec.decode_batch(pa.array(sent), pa.array([0] * len(sent)))
    assert decoded.errors.to_pylist()[60] == "the value takes more than the 2 GiB that a column holds"
    assert decoded.errors.null_count == 120
    assert [len(row or []) for row in decoded.rows.column("f0").to_pylist()] == [3] * 60 + [0] + [3] * 60


def test_what_does_not_fit_one_batch_says_how_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise pa.ArrowInvalid("offset overflow")

    codec = growing(10_000)
    with monkeypatch.context() as patch:
        patch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**20)
        patch.setattr(pa, "concat_batches", full)
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
def test_every_form_of_the_same_columns_is_read_alike(payload_type: pa.DataType, version_type: pa.DataType) -> None:
    codec = growing(3)
    payloads, numbers = pa.array([b"\2", b"\4", b"\6"] * 40), pa.array([0, 0, 7] * 40)
    expected = codec.decode_batch(payloads, numbers)
    given, versions = (
        pa.array(column.to_pylist(), kind) for column, kind in ((payloads, payload_type), (numbers, version_type))
    )
    for found in (
        codec.decode_batch(given, versions),
        codec.decode_batch(pa.chunked_array([given[:7], given[7:]]), pa.chunked_array([versions])),
        codec.decode_batch(
            pa.concat_arrays([given[60:], given])[60:], pa.concat_arrays([versions[:60], versions])[60:]
        ),
    ):
        assert found.rows.equals(expected.rows)
        assert found.errors.equals(expected.errors)


def test_a_slice_far_into_a_large_array_is_read(tmp_path: Path) -> None:
    # 3 GiB that are nowhere: only the last bytes are looked at.
    far = 3 * 2**30
    data = np.memmap(tmp_path / "sparse", np.uint8, "w+", shape=(far + 4,))
    data[far:] = np.frombuffer(b"\2\4\x80\6", np.uint8)
    offsets = np.array([0, far, far + 1, far + 2, far + 3, far + 4], np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.large_binary(), 5, buffers)
    decoded = growing(3).decode_batch(values[1:], pa.array([0] * 4))
    assert decoded.rows.column("id").to_pylist() == [1, 2, None, 3]


@pytest.mark.parametrize(
    "version_type",
    [pa.binary(), pa.large_binary(), pa.binary(8), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())],
    ids=str,
)
def test_every_form_of_pulsar_s_eight_bytes_is_the_same_number(version_type: pa.DataType) -> None:
    codec = growing(3)
    raw = [number.to_bytes(8, "big") if number is not None else None for number in (0, 7, None)]
    decoded = codec.decode_batch(pa.array([b"\2", b"\2", b"\2\0"]), pa.array(raw, version_type))
    assert decoded.rows.column("note").to_pylist() == ["xxx", None, ""]
    assert "schema version 7" in decoded.errors[1].as_py()


def test_numbers_that_are_no_versions_are_bad_rows() -> None:
    codec = growing(3)
    numbers = pa.array([0, 2**64 - 1, 2**63, 9], pa.uint64())
    decoded = codec.decode_batch(pa.array([b"\2"] * 4), numbers)
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True]


def test_hundreds_of_versions_in_one_batch_are_read_as_each_alone() -> None:
    def fields(number: int) -> list[Any]:
        return [{"name": f"f{at}", "type": "int", "default": at} for at in range(number % 7 + 1)]

    own = {"name": "id", "type": "long"}
    codec = codec_of(*({"type": "record", "name": "R", "fields": [*fields(number), own]} for number in range(300)))
    numbers = [number % 300 for number in range(1000)]
    payloads = [b"\2" * (number % 7 + 1) + zigzag(number) for number in numbers]
    decoded = codec.decode_batch(pa.array(payloads), pa.array(numbers))
    assert decoded.errors.null_count == 1000
    assert decoded.rows.column("id").to_pylist() == numbers
    # The newest has six.
    assert decoded.rows.to_pylist()[5] == {f"f{at}": 1 for at in range(6)} | {"id": 5}


def test_versions_that_nobody_knows_are_not_remembered() -> None:
    codec = growing(3)
    numbers = pa.array(np.arange(10, 2010) * 2**40)
    decoded = codec.decode_batch(pa.array([b"\2"] * 2000), numbers)
    assert decoded.errors.null_count == 0
    assert len(codec._readers) == 0


def test_a_reason_is_short_however_long_the_message() -> None:
    codec = avro({"type": "map", "values": "int"})
    key = "k" * 100_000
    reason = judged(codec, zigzag(1) + zigzag(len(key)) + key.encode() + b"\x80")[1]
    assert reason is not None
    assert len(reason) < 300


def test_a_definition_of_ten_thousand_lists_in_one_another_is_rejected() -> None:
    depth = 10_000
    text = '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
    codec = codec_of(Definition("AVRO", text))
    for use in (lambda: codec.columns, lambda: codec.decode_one(b""), lambda: codec.encode_one([])):
        with pytest.raises(InvalidDefinition, match=r"nested deeper|recursion"):
            use()


def test_a_message_of_many_lists_inside_one_another_is_read() -> None:
    kind: Any = "int"
    for _ in range(40):
        kind = {"type": "array", "items": kind}
    value, reason = judged(avro(kind), b"\2" * 41 + b"\0" * 40)
    assert reason is None
    for _ in range(40):
        value = value[0] if isinstance(value, list) else value["f0"][0]
    assert value == 1
    with pytest.raises(Unreadable):
        avro(kind).decode_one(b"\2" * 41 + b"\0" * 39)


def test_payloads_that_no_column_holds_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = avro("long")
    rows = pa.record_batch({"f0": pa.array([2**40 + number for number in range(1000)])})
    whole = codec.encode_batch(rows).payloads
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**10)
    parts = list(codec.encode_parts(rows))
    assert [len(part.payloads) for part in parts] == [125] * 8
    assert pa.concat_arrays([part.payloads for part in parts]).equals(whole)
    assert pa.concat_arrays([part.errors for part in parts]).null_count == 1000
    with pytest.raises(BatchTooLarge, match="encode_parts"):
        codec.encode_batch(rows)


def test_a_row_whose_payload_no_column_holds_is_rejected_alone(monkeypatch: pytest.MonkeyPatch) -> None:
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
        made = [key for part in parts if part.keys for key in part.keys.to_pylist()]
        assert made == ([b"a", None, b"c"] if codec.separated else [])


def bomb(levels: int) -> dict[str, Any]:
    """A record of two fields of a record of two fields ..."""
    kind: Any = "int"
    for level in range(levels):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"L{level - 1}" if level else kind}]
        kind = {"type": "record", "name": f"L{level}", "fields": fields}
    return record({"type": "array", "items": kind})


def test_a_definition_that_stands_for_endless_columns_is_rejected() -> None:
    codec = codec_of(bomb(60))
    for use in (lambda: codec.columns, lambda: codec.encode_one({})):
        with pytest.raises(InvalidDefinition, match="more than 100,000"):
            use()
    codec = codec_of(bomb(60), record())
    assert codec.decode_batch(pa.array([b"\0"] * MANY), pa.array([0] * MANY)).errors.null_count == MANY


@pytest.mark.parametrize("sign", [0, 1])
def test_the_greatest_decimal_of_all_digits_is_written_and_read(sign: int) -> None:
    codec = avro({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10})
    [name] = codec.columns.names
    value = {name: Decimal((sign, (9,) * 38, -10))}
    assert codec.decode_one(codec.encode_one(value), 0) == value
