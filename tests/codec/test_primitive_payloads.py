"""Pulsar's primitive types in the wire format of its Java client."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from sample_codecs import codec_of, decode_both_ways

from schemactl.codec import Codec, Definition, InvalidDefinition, Unreadable, Unwritable

DAY_MS = 86_400_000


def make_codec(name: str, **properties: str) -> Codec:
    return codec_of(Definition(name, properties=properties))


WIRE: list[tuple[str, bytes, Any]] = [
    ("BOOLEAN", b"\1", True),
    ("BOOLEAN", b"\0", False),
    ("INT8", b"\xff", -1),
    ("INT16", b"\x01\x00", 256),
    ("INT32", b"\xff\xff\xff\xfe", -2),
    ("INT64", struct.pack(">q", -(2**63)), -(2**63)),
    ("FLOAT", struct.pack(">f", 1.5), 1.5),
    ("DOUBLE", struct.pack(">d", -0.1), -0.1),
    ("STRING", "straße".encode(), "straße"),
    ("STRING", b"", ""),
    ("BYTES", b"\0\1", b"\0\1"),
    ("DATE", struct.pack(">q", 20_000 * DAY_MS), date(2024, 10, 4)),
    ("TIME", struct.pack(">q", 3_600_500), 3_600_500_000),
    ("TIMESTAMP", struct.pack(">q", -1), datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ("INSTANT", struct.pack(">qi", -1, 500_000_000), datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)),
    ("LOCAL_DATE", struct.pack(">q", -1), date(1969, 12, 31)),
    ("LOCAL_TIME", struct.pack(">q", 1_000_000_000), 1_000_000),
    ("LOCAL_DATE_TIME", struct.pack(">qq", 1, 1_000), datetime(1970, 1, 2, microsecond=1)),  # noqa: DTZ001  local
]


@pytest.mark.parametrize(("name", "payload", "value"), WIRE)
def test_each_type_is_read_and_written_as_java_does(name: str, payload: bytes, value: Any) -> None:
    codec = make_codec(name)
    assert codec.decode_one(payload) == value
    assert codec.encode_one(value) == payload
    decoded = codec.decode_batch(pa.array([payload, payload], pa.binary()))
    assert decoded.errors.null_count == 2
    assert codec.encode_batch(decoded.rows).payloads.to_pylist() == [payload, payload]


@pytest.mark.parametrize(
    ("name", "payload", "value"),
    [
        ("INT16", b"\x00\x01", 256),
        ("INT16", b"\xff\x7f", 32_767),
        ("INT32", b"\xfe\xff\xff\xff", -2),
        ("INT64", b"\1" + b"\0" * 7, 1),
        ("INT64", struct.pack("<q", -(2**63)), -(2**63)),
        # Go's client writes these as all others do.
        ("INT8", b"\xff", -1),
        ("FLOAT", struct.pack(">f", 1.5), 1.5),
        ("DOUBLE", struct.pack(">d", -0.1), -0.1),
        ("TIMESTAMP", struct.pack(">q", -1), datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_little_endian_integers_are_read_and_written_as_go_does(name: str, payload: bytes, value: Any) -> None:
    codec = codec_of(Definition(name), integers="little")
    assert codec.decode_one(payload) == value
    assert codec.encode_one(value) == payload
    decoded = codec.decode_batch(pa.array([payload] * 40, pa.binary()))
    assert decoded.errors.null_count == 40
    assert decoded.rows.column("value")[39].as_py() == value
    assert codec.encode_batch(decoded.rows).payloads.to_pylist() == [payload] * 40


@pytest.mark.parametrize("name", ["TIME", "LOCAL_TIME"])
def test_times_of_day_are_spark_times_where_it_has_them(name: str) -> None:
    codec, value = codec_of(Definition(name), time_type=True), time(12, 30, 0, 1_000)
    payload = codec.encode_one(value)
    assert codec.decode_one(payload) == value
    assert codec.decode_batch(pa.array([payload])).rows.column("value").to_pylist() == [value]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("BOOLEAN", b""),
        ("BOOLEAN", b"\0\0"),
        ("INT32", b"\0\0\0"),
        ("INT64", b"\0" * 9),
        ("INSTANT", b"\0" * 11),
        ("LOCAL_TIME", struct.pack(">q", -1)),
        ("LOCAL_TIME", struct.pack(">q", 86_400_000_000_000)),
        ("LOCAL_DATE", struct.pack(">q", 2**31)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 0, -1)),
        ("TIMESTAMP", struct.pack(">q", 2**63 - 1)),
        ("DATE", struct.pack(">q", 2**63 - 1)),
    ],
)
def test_wrong_sizes_and_ranges_are_rejected(name: str, payload: bytes) -> None:
    codec = make_codec(name)
    with pytest.raises(Unreadable):
        codec.decode_one(payload)
    decoded = codec.decode_batch(pa.array([payload], pa.binary()))
    assert decoded.errors.null_count == 0
    assert decoded.rows.column("value").null_count == 1


def test_bytes_after_an_instant_are_ignored_as_in_java_unless_strict() -> None:
    payload = struct.pack(">qi", 0, 0) + b"\0"
    assert make_codec("INSTANT").decode_one(payload) == datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(Unreadable, match="12 bytes"):
        codec_of(Definition("INSTANT"), strict=True).decode_one(payload)


def test_utf_16_without_a_mark_is_big_endian_as_in_java() -> None:
    assert make_codec("STRING", __charset="UTF-16").decode_one(b"\x00\xe9") == "é"


def test_invalid_utf_8_is_replaced_unless_strict() -> None:
    assert make_codec("STRING").decode_one(b"a\xff") == "a�"
    decoded = codec_of(Definition("STRING"), strict=True).decode_batch(pa.array([b"a\xff", b"b"]))
    assert decoded.rows.column("value").to_pylist() == [None, "b"]
    assert decoded.errors.to_pylist() == ["byte 1: text that is not utf-8", None]


@pytest.mark.parametrize("charset", ["x-none", "hex", "rot13", "idna", "undefined", "a\0b", ""])
def test_an_unknown_charset_is_rejected(charset: str) -> None:
    codec = make_codec("STRING", __charset=charset)
    for use in (lambda: codec.encode_one("a"), lambda: codec.decode_one(b"a")):
        with pytest.raises((InvalidDefinition, Unreadable), match="__charset"):
            use()


@pytest.mark.parametrize(
    ("charset", "text", "payload"),
    [
        ("UTF-16", "", b""),
        ("ISO-8859-1", "é", b"\xe9"),
        ("UTF-16BE", "é", b"\x00\xe9"),
        ("UTF_16", "aé", bytes.fromhex("feff006100e9")),
        ("UTF-32", "a😀", bytes.fromhex("000000610001f600")),
        ("UTF-32LE", "é", bytes.fromhex("e9000000")),
        ("windows-1252", "€", b"\x80"),
        ("GBK", "aé", bytes.fromhex("61a8a6")),
    ],
)
def test_text_of_every_charset_is_java_s(charset: str, text: str, payload: bytes) -> None:
    codec = make_codec("STRING", __charset=charset)
    assert codec.encode_one(text) == payload
    assert codec.decode_one(payload) == text
    assert codec.decode_batch(pa.array([payload] * 40)).rows.column("value").to_pylist() == [text] * 40


@pytest.mark.parametrize(
    ("name", "value"),
    [("INT8", 128), ("INT32", 1.0), ("BOOLEAN", 1), ("FLOAT", 1e300), ("STRING", 1), ("INT64", True), ("DATE", "x")],
)
def test_values_of_another_type_or_size_are_not_written(name: str, value: Any) -> None:
    with pytest.raises(Unwritable):
        make_codec(name).encode_one(value)


@given(st.lists(st.binary(max_size=20), max_size=20), st.sampled_from(sorted({name for name, _, _ in WIRE})))
@EXAMPLES
def test_each_payload_has_the_same_result_alone_and_in_a_batch(payloads: list[bytes], name: str) -> None:
    decode_both_ways(make_codec(name), payloads)
