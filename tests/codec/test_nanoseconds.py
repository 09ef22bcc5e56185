"""Columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME: microseconds that lose digits, or all nanoseconds as a bigint."""

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

from schemactl.codec import Codec, Definition, KeyValue, Options, Unreadable, Unwritable, Version

SECOND, DAY = 10**9, 86_400 * 10**9
LOWEST, HIGHEST = -(2**63), 2**63 - 1
MANY = 40
"""Enough payloads for the vectorized path."""


def pack_instant(nanos: int) -> bytes:
    return struct.pack(">qi", nanos // SECOND, nanos % SECOND)


def pack_local(nanos: int) -> bytes:
    return struct.pack(">qq", nanos // DAY, nanos % DAY)


def pack_time(nanos: int) -> bytes:
    return struct.pack(">q", nanos)


PACKERS = {"INSTANT": pack_instant, "LOCAL_DATE_TIME": pack_local, "LOCAL_TIME": pack_time}
VALUES = [0, 1, 999, 1_000, 123_456_789, SECOND - 1, SECOND, DAY - 1]
LONG_VALUES = [-1, -999, -SECOND, -SECOND - 1, DAY, -DAY - 1, LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]
CASES = [
    *((name, nanos) for name in PACKERS for nanos in VALUES),
    *((name, nanos) for name in ("INSTANT", "LOCAL_DATE_TIME") for nanos in LONG_VALUES),
]


@pytest.mark.parametrize(("name", "nanos"), CASES)
def test_a_bigint_keeps_all_digits(name: str, nanos: int) -> None:
    payload = PACKERS[name](nanos)
    codec = codec_of(Definition(name), nanoseconds="bigint", strict=True)
    assert codec.columns.field("value").type == pa.int64()
    assert codec.decode_one(payload) == nanos
    assert codec.encode_one(nanos) == payload
    decoded = codec.decode_batch(pa.array([payload] * MANY, pa.binary()))
    assert (decoded.errors.null_count, decoded.rows.column("value").to_pylist()) == (MANY, [nanos] * MANY)
    assert codec.encode_batch(decoded.rows).payloads.to_pylist() == [payload] * MANY


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
@pytest.mark.parametrize(("key", "value"), [("LOCAL_TIME", "INSTANT"), ("LOCAL_DATE_TIME", "LOCAL_TIME")])
def test_keys_and_values_keep_all_digits(encoding: Any, key: str, value: str) -> None:
    pair = {"key": 123_456_789, "value": 86_399_999_999_999}
    schema = KeyValue(Definition(key), Definition(value), encoding)
    codec = Codec([Version(0, schema)], options=Options(nanoseconds="bigint", strict=True))
    payload, message_key = codec.encode_one(pair), codec.encode_key(pair)
    assert codec.decode_one(payload, 0, message_key) == pair
    keys = pa.array([message_key] * MANY, pa.binary()) if encoding == "SEPARATED" else None
    decoded = codec.decode_batch(pa.array([payload] * MANY, pa.binary()), None, keys)
    assert decoded.rows.to_pylist() == [pair] * MANY
    encoded = codec.encode_batch(decoded.rows)
    assert encoded.payloads.to_pylist() == [payload] * MANY
    assert encoded.keys is None or encoded.keys.to_pylist() == [message_key] * MANY


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        # One nanosecond further than a bigint reaches.
        ("INSTANT", pack_instant(HIGHEST + 1)),
        ("INSTANT", pack_instant(LOWEST - 1)),
        ("LOCAL_DATE_TIME", pack_local(HIGHEST + 1)),
        ("LOCAL_DATE_TIME", pack_local(LOWEST - 1)),
        # Java's Instant.MIN and Instant.MAX, and the numbers whose products wrap around.
        ("INSTANT", struct.pack(">qi", -31_557_014_167_219_200, 0)),
        ("INSTANT", struct.pack(">qi", 31_556_889_864_403_199, 999_999_999)),
        ("INSTANT", struct.pack(">qi", 2**63 - 1, 2**31 - 1)),
        ("INSTANT", struct.pack(">qi", -(2**63), -(2**31))),
        ("INSTANT", struct.pack(">qi", 2**55, 0)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 2**62, 0)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", -(2**63), DAY - 1)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 2**50, 0)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 0, DAY)),
        ("LOCAL_TIME", pack_time(DAY)),
        ("LOCAL_TIME", pack_time(-1)),
    ],
)
def test_a_time_outside_of_a_bigint_is_one_rejected_row(name: str, payload: bytes) -> None:
    codec = codec_of(Definition(name), nanoseconds="bigint")
    with pytest.raises(Unreadable, match="range"):
        codec.decode_one(payload)
    good = PACKERS[name](1)
    decoded = codec.decode_batch(pa.array([good] * MANY + [payload] + [good], pa.binary()))
    assert decoded.rows.column("value").to_pylist() == [1] * MANY + [None, 1]
    assert [reason for reason in decoded.errors.to_pylist() if reason] == [decoded.errors[MANY].as_py()]


def test_nanoseconds_of_an_instant_may_exceed_a_second_as_java_adds_them() -> None:
    codec = codec_of(Definition("INSTANT"), nanoseconds="bigint")
    assert codec.decode_one(struct.pack(">qi", 9_223_372_037, -145_224_193)) == HIGHEST
    payload = struct.pack(">qi", -9_223_372_038, 1_145_224_192)
    assert codec.decode_one(payload) == LOWEST
    decoded = codec.decode_batch(pa.array([payload] * MANY, pa.binary()))
    assert decoded.rows.column("value").to_pylist() == [LOWEST] * MANY


@pytest.mark.parametrize(
    ("name", "value", "nanos"),
    [
        ("INSTANT", datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC), SECOND + 5_000),
        ("LOCAL_DATE_TIME", datetime(1969, 12, 31, 23, 59, 59), -SECOND),  # noqa: DTZ001  local
        ("LOCAL_TIME", time(0, 0, 1, 7), SECOND + 7_000),
    ],
)
def test_times_of_python_are_written_too(name: str, value: Any, nanos: int) -> None:
    codec = codec_of(Definition(name), nanoseconds="bigint")
    assert codec.encode_one(value) == PACKERS[name](nanos)
    if isinstance(value, datetime):
        column = pa.array([value], pa.timestamp("us", "UTC" if value.tzinfo else None))
        encoded = codec.encode_batch(pa.RecordBatch.from_pydict({"value": column}))
        assert encoded.payloads.to_pylist() == [PACKERS[name](nanos)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INSTANT", HIGHEST + 1),
        ("LOCAL_DATE_TIME", LOWEST - 1),
        ("LOCAL_TIME", DAY),
        ("LOCAL_TIME", -1),
        ("INSTANT", datetime(1970, 1, 1)),  # noqa: DTZ001  without a time zone
        ("LOCAL_DATE_TIME", datetime(1970, 1, 1, tzinfo=UTC)),
        ("LOCAL_TIME", datetime(1970, 1, 1)),  # noqa: DTZ001  not a time of day
        ("LOCAL_DATE_TIME", time(1)),
        ("INSTANT", datetime(2300, 1, 1, tzinfo=UTC)),
        ("INSTANT", date(1970, 1, 1)),
        ("INSTANT", 1.0),
        ("INSTANT", True),
        ("INSTANT", "1970-01-01"),
        ("INSTANT", None),
    ],
)
def test_other_values_are_not_written(name: str, value: Any) -> None:
    with pytest.raises(Unwritable):
        codec_of(Definition(name), nanoseconds="bigint").encode_one(value)


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("time_type", [False, True])
def test_strict_decoding_rejects_values_that_lose_digits(name: str, time_type: bool) -> None:  # noqa: FBT001  a column of the table
    exact, truncated = PACKERS[name](SECOND + 1_000), PACKERS[name](SECOND + 1_001)
    strict = codec_of(Definition(name), strict=True, time_type=time_type)
    lenient = codec_of(Definition(name), time_type=time_type)
    assert strict.decode_one(exact) == lenient.decode_one(exact) == lenient.decode_one(truncated)
    with pytest.raises(Unreadable, match=r"three digits.*nanoseconds: bigint"):
        strict.decode_one(truncated)
    decoded = strict.decode_batch(pa.array([exact] * MANY + [truncated], pa.binary()))
    assert decoded.errors.null_count == MANY
    assert "nanoseconds: bigint" in decoded.errors[MANY].as_py()
    # A producer that sends bytes loses nothing.
    lenient.validate(truncated, 0)


@pytest.mark.parametrize("name", ["TIME", "TIMESTAMP", "DATE", "INT64"])
def test_other_types_keep_their_columns(name: str) -> None:
    assert codec_of(Definition(name), nanoseconds="bigint").columns == codec_of(Definition(name)).columns


@given(
    st.lists(st.binary(max_size=20) | st.integers(LOWEST, HIGHEST).map(pack_local), max_size=50),
    st.sampled_from([*PACKERS]),
)
@EXAMPLES
def test_each_payload_has_the_same_result_alone_and_in_a_batch(payloads: list[bytes], name: str) -> None:
    for strict in (False, True):
        decode_both_ways(codec_of(Definition(name), nanoseconds="bigint", strict=strict), payloads)
        decode_both_ways(codec_of(Definition(name), strict=strict), payloads)


@given(st.lists(st.integers(LOWEST, HIGHEST), min_size=1), st.sampled_from(["INSTANT", "LOCAL_DATE_TIME"]))
@EXAMPLES
def test_every_number_is_written_and_read(numbers: list[int], name: str) -> None:
    codec = codec_of(Definition(name), nanoseconds="bigint", strict=True)
    encoded = codec.encode_batch(pa.RecordBatch.from_pydict({"value": pa.array(numbers, pa.int64())}))
    assert encoded.payloads.to_pylist() == [PACKERS[name](number) for number in numbers]
    assert codec.decode_batch(encoded.payloads).rows.column("value").to_pylist() == numbers
