"""Encoding a batch gives the same payloads and reasons as encoding its rows one by one."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker
from sample_codecs import codec_of, encode_both_ways, make_record

from schemactl.codec import Definition, KeyValue, Options, Unwritable
from schemactl.codec.arrow_types import make_shape
from schemactl.codec.avro_payload import compile_column_writer, encode_numbers
from schemactl.codec.avro_schema import parse
from schemactl.codec.wire_format import encode_zigzag

SEEDS = st.integers(min_value=0, max_value=2**32)


def insert_nulls(maker: Maker, value: Any) -> Any:
    """Replace some parts of a value by null, also where the schema does not allow null."""
    if maker.random.random() < 0.02:
        return None
    if isinstance(value, dict):
        return {key: insert_nulls(maker, part) for key, part in value.items()}
    if isinstance(value, list):
        return [insert_nulls(maker, part) for part in value]
    return value


@given(SEEDS)
@EXAMPLES
def test_a_batch_is_encoded_like_its_rows(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    codec = codec_of(schema)
    values = [insert_nulls(maker, maker.draw_value(schema)) or {} for _ in range(40)]
    rows = pa.RecordBatch.from_pylist(values, schema=codec.columns)
    encode_both_ways(codec, rows)
    encode_both_ways(codec, rows.slice(7, 20))


@given(SEEDS)
@EXAMPLES
def test_valid_values_do_not_need_the_scalar_path(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    shape = make_shape(parse(json.dumps(schema)), Options())
    values = pa.array([maker.draw_value(schema) for _ in range(20)], shape.type)
    assert not compile_column_writer(shape)(values)[1].any()


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_zigzag(values: list[int]) -> None:
    assert encode_numbers(np.array(values, np.int64)).to_pylist() == [encode_zigzag(value) for value in values]


def encode_shortest(number: int) -> bytes:
    """Encode a number as java.math.BigInteger.toByteArray does."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, signed=True)


@given(st.data(), st.integers(1, 38), st.integers(0, 4))
def test_decimals_have_the_fewest_bytes(data: st.DataObject, digits: int, spare_bytes: int) -> None:
    unscaled = data.draw(st.lists(st.integers(-(10**digits) + 1, 10**digits - 1), min_size=1))
    logical = {"logicalType": "decimal", "precision": digits, "scale": 0}
    size = (10**digits).bit_length() // 8 + 1 + spare_bytes
    codec = codec_of(make_record({"type": "bytes"} | logical, {"type": "fixed", "name": "F", "size": size} | logical))
    values = pa.array([Decimal(number) for number in unscaled], pa.decimal128(digits, 0))
    encoded = codec.encode_batch(pa.RecordBatch.from_arrays([values, values], schema=codec.columns))
    for number, payload in zip(unscaled, encoded.payloads.to_pylist(), strict=True):
        raw = encode_shortest(number)
        assert payload == encode_zigzag(len(raw)) + raw + number.to_bytes(size, signed=True)


def test_a_decimal_beyond_its_precision_is_rejected() -> None:
    codec = codec_of(make_record({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}))
    # Arrow does not validate the digits of decimals that are made from buffers.
    raw = [10**38 - 1, 10**38, 1 - 10**38, -(10**38), 2**127 - 1, -(2**127)]
    data = pa.py_buffer(b"".join(number.to_bytes(16, "little", signed=True) for number in raw))
    column = pa.Array.from_buffers(pa.decimal128(38, 0), len(raw), [None, data])
    encoded = codec.encode_batch(pa.RecordBatch.from_arrays([column], schema=codec.columns))
    is_valid = [-(10**38) < number < 10**38 for number in raw]
    assert [reason is None for reason in encoded.errors.to_pylist()] == is_valid


@pytest.mark.parametrize(
    "branches", [["float", "double"], ["double", "null", "float"], ["int", "long"], ["long", "int"]]
)
def test_a_union_of_two_numbers_selects_the_narrower_only_for_exact_values(branches: list[str]) -> None:
    codec = codec_of(make_record(branches))
    numbers: list[Any] = [0, 1, -(2**31), 2**31, 2**40] if "int" in branches else [0.1, 1.5, 1e300, float("inf"), -0.0]
    if "null" in branches:
        numbers.append(None)
    rows = pa.RecordBatch.from_pylist([{"f0": value} for value in numbers], schema=codec.columns)
    encode_both_ways(codec, rows)
    assert codec.decode_batch(codec.encode_batch(rows).payloads).rows.equals(rows)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_are_the_same_instant(unit: str) -> None:
    kinds = ("timestamp-millis", "local-timestamp-micros")
    codec = codec_of(make_record(*({"type": "long", "logicalType": kind} for kind in kinds)))
    seconds = pa.array([1_700_000_000], pa.int64()).cast(pa.timestamp("s"))
    rows = pa.record_batch({"f0": seconds.cast(pa.timestamp(unit, "UTC")), "f1": seconds.cast(pa.timestamp(unit))})
    payload = encode_zigzag(1_700_000_000_000) + encode_zigzag(1_700_000_000_000_000)
    assert codec.encode_batch(rows).payloads.to_pylist() == [payload]


DAY, INSTANT = date(2026, 11, 21), datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
LOCAL = INSTANT.replace(tzinfo=None)

TEMPORAL: dict[str, Any] = {
    "date": ({"type": "int", "logicalType": "date"}, pa.array([DAY])),
    "timestamp": ({"type": "long", "logicalType": "timestamp-millis"}, pa.array([INSTANT])),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.array([LOCAL])),
    "time": ({"type": "long", "logicalType": "time-micros"}, pa.array([time(7, 30)])),
    "nanoseconds": ({"type": "long", "logicalType": "timestamp-nanos"}, pa.array([1])),
    "number": ("long", pa.array([1])),
}


@pytest.mark.parametrize("source", ["date", "timestamp", "local", "time"])
@pytest.mark.parametrize("target", TEMPORAL)
def test_a_date_or_time_is_encoded_only_as_the_same_type(source: str, target: str) -> None:
    kind, values = TEMPORAL[target][0], TEMPORAL[source][1]
    deep = {"type": "record", "name": "Deep", "fields": [{"name": "at", "type": ["null", kind]}]}
    codec = codec_of(
        make_record(kind, {"type": "array", "items": kind}, {"type": "map", "values": deep}), time_type=True
    )
    valid_values = TEMPORAL[target][1]

    def make_rows(plain: pa.Array, listed: pa.Array, mapped: pa.Array) -> pa.RecordBatch:
        offsets = pa.array([0, 1], pa.int32())
        structs = pa.StructArray.from_arrays([mapped], ["at"])
        return pa.record_batch(
            {
                "f0": plain,
                "f1": pa.ListArray.from_arrays(offsets, listed),
                "f2": pa.MapArray.from_arrays(offsets, pa.array(["k"]), structs),
            }
        )

    for number, place in enumerate(("f0", "f1[0]", "f2['k'].at")):
        encoded = codec.encode_batch(make_rows(*(values if index == number else valid_values for index in range(3))))
        reason = encoded.errors[0].as_py()
        assert (reason is None) == (source == target)
        assert reason is None or reason.startswith(f"{place}: ")
        assert encoded.payloads[0].is_valid == (reason is None)


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_a_number_is_not_encoded_as_a_time_with_time_type(kind: str) -> None:
    schema = make_record({"type": "long", "logicalType": "time-micros"})
    rows = pa.record_batch({"f0": pa.array([5])})
    assert encode_both_ways(codec_of(schema, kind=kind), rows).errors.null_count == 1
    timed = codec_of(schema, kind=kind, time_type=True)
    assert encode_both_ways(timed, rows).errors.to_pylist() == ["f0: expected a time, found 5"]


def test_a_column_of_nulls_of_any_type_is_encoded_as_null() -> None:
    codec = codec_of(make_record(["null", {"type": "long", "logicalType": "timestamp-millis"}]))
    assert codec.encode_batch(pa.record_batch({"f0": pa.nulls(1, pa.date32())})).payloads[0].as_py() == b"\0"


def test_a_date_outside_python_s_years_is_rejected_as_a_timestamp() -> None:
    codec = codec_of(make_record({"type": "long", "logicalType": "timestamp-millis"}))
    days = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    encoded = codec.encode_batch(pa.record_batch({"f0": days}))
    assert "outside the years 1 to 9999" in encoded.errors[0].as_py()


def test_equivalent_arrow_types_are_encoded() -> None:
    codec = codec_of(make_record("string", "bytes", {"type": "array", "items": "long"}))
    rows = pa.record_batch(
        {
            "f2": pa.array([[1], []], pa.large_list(pa.int64())),
            "f0": pa.array(["a", "b"]).dictionary_encode(),
            "f1": pa.array([b"x", b"y"], pa.large_binary()),
        }
    )
    assert codec.encode_batch(rows).payloads.to_pylist() == [b"\2a\2x\2\2\0", b"\2b\2y\0"]


def test_numbers_of_another_width_are_encoded_if_they_fit() -> None:
    encoded = encode_both_ways(codec_of(make_record("int")), pa.record_batch({"f0": pa.array([1, 2**40])}))
    assert encoded.errors.to_pylist() == [None, f"f0: {2**40} is out of the range of int"]


def test_a_missing_column_has_its_default() -> None:
    schema = make_record("long", "string")
    schema["fields"][1]["default"] = "x"
    codec = codec_of(schema)
    assert codec.encode_batch(pa.record_batch({"f0": [1]})).payloads.to_pylist() == [b"\2\2x"]
    assert "no field odd" in codec.encode_batch(pa.record_batch({"f0": [1], "odd": [1]})).errors[0].as_py()


TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "value", "type": "int"}, {"name": "left", "type": ["null", "Tree"]}],
}


def test_a_field_below_the_recursion_depth_is_null() -> None:
    codec = codec_of(TREE, recursion_depth=2)
    rows = pa.RecordBatch.from_pylist(
        [{"value": 1, "left": {"value": 2}}, {"value": 3, "left": None}], schema=codec.columns
    )
    assert codec.encode_batch(rows).payloads.to_pylist() == [b"\2\2\4\0", b"\6\0"]


def test_records_without_fields_have_payloads() -> None:
    codec = codec_of(make_record())
    rows = codec.decode_batch(pa.array([b"", b""])).rows
    assert codec.encode_batch(rows).payloads.to_pylist() == [b"", b""]


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_key_and_value_are_encoded_or_rejected_together(encoding: Any) -> None:
    definition = Definition("AVRO", json.dumps(make_record("int")))
    codec = codec_of(KeyValue(Definition("STRING"), definition, encoding))
    pairs = [("a", {"f0": 1}), (None, {"f0": 2}), ("c", None), ("d", {"f0": None}), (None, None)]
    rows = pa.RecordBatch.from_pylist([{"key": key, "value": value} for key, value in pairs], schema=codec.columns)
    encoded = encode_both_ways(codec, rows)
    assert encoded.errors[3].as_py() == "value.f0: expected a whole number, found None"
    if encoded.keys is not None:
        keys = [codec.encode_key(row) for row in rows.to_pylist()]
        assert encoded.keys.to_pylist() == [*keys[:3], None, keys[4]]
    with pytest.raises(ValueError, match="expected the columns key, value"):
        codec.encode_batch(pa.record_batch({"key": ["a"]}))


@pytest.mark.parametrize(
    ("name", "number"),
    [("LOCAL_TIME", -1), ("LOCAL_TIME", 86_400_000_000), ("LOCAL_TIME", 2**63 // 1000 + 5), ("INT8", 128)],
)
def test_a_primitive_that_could_not_be_decoded_is_not_encoded(name: str, number: int) -> None:
    codec = codec_of(Definition(name))
    with pytest.raises(Unwritable, match="out of the range"):
        codec.encode_one(number)
    encoded = codec.encode_batch(pa.record_batch({"value": pa.array([1, number, None], pa.int64())}))
    assert [reason is None for reason in encoded.errors.to_pylist()] == [True, False, False]
