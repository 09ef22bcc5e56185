"""JSON payloads as Pulsar's Java client writes and reads them."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker
from sample_codecs import codec_of, make_record

from schemactl.codec import Unreadable, Unwritable

SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "count", "type": "int", "default": 7},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "ratio", "type": ["null", "double"]},
        {"name": "either", "type": ["null", "long", "string"]},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}


CODEC = codec_of(SCHEMA, kind="JSON")


def decode_fields(**fields: Any) -> Any:
    return CODEC.decode_one(json.dumps({"id": 1, **fields}).encode())


def test_an_absent_field_is_null_without_its_default() -> None:
    assert decode_fields() == dict.fromkeys((part["name"] for part in SCHEMA["fields"]), None) | {"id": 1}  # type: ignore[index]


DEFAULTS: list[Any] = [
    {"name": "count", "type": "int", "default": 7},
    {"name": "note", "type": ["string", "null"], "default": "none"},
    {"name": "raw", "type": "bytes", "default": "\u00ff"},
    {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
    {"name": "part", "type": make_record("long"), "default": {"f0": 5}},
]


def test_defaults_are_applied_with_json_defaults() -> None:
    schema = {"type": "record", "name": "D", "fields": DEFAULTS}
    codec = codec_of(schema, kind="JSON", json_defaults=True)
    expected = {
        "count": 7,
        "note": "none",
        "raw": b"\xff",
        "tags": {"a": 1},
        "at": datetime(1970, 1, 1, tzinfo=UTC),
        "part": {"f0": 5},
    }
    value = codec.decode_one(b"{}")
    assert value == expected
    # A change of the value does not change the default.
    value["tags"]["b"] = 2
    assert codec.decode_one(b"{}") == expected
    # Null is a value only if the schema allows it.
    payload = b'{"count": null, "note": null, "raw": null, "part": {"f0": 6}}'
    assert codec.decode_one(payload) == expected | {"note": None, "part": {"f0": 6}}
    (row,) = codec.decode_batch(pa.array([b"{}"])).rows.to_pylist(maps_as_pydicts="strict")
    assert row == expected


@pytest.mark.parametrize("depth", [500, 880, 930, 960, 990, 100_000])
def test_a_value_nested_deeply_is_rejected_and_the_next_is_read(depth: int) -> None:
    payloads = [b'{"id": ' + b"[" * depth + b"]" * depth + b"}", b'{"id": 5}']
    decoded = CODEC.decode_batch(pa.array(payloads))
    assert decoded.errors.is_valid().to_pylist() == [True, False]


def test_values_are_read_in_the_units_of_the_schema() -> None:
    value = CODEC.decode_one(
        b'{"id": 1, "raw": "AP8=", "price": 12.3, "at": 1500, "day": 1, "ratio": "NaN", "either": "x", "other": []}'
    )
    assert value["raw"] == b"\x00\xff"
    assert value["price"] == Decimal("12.30")
    assert value["at"] == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert value["day"] == date(1970, 1, 2)
    assert value["ratio"] != value["ratio"]
    assert value["either"] == {"member0": None, "member1": "x"}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"null", "expected the object R, found null"),
        (b'{"id": 1} {"id": 2}', "byte 10: no JSON: Extra data"),
        (b"{}", "id: is missing, and has no default"),
        (b'{"id": null}', "id: expected a whole number, found null"),
        (b'{"id": 1.5}', "id: expected a whole number, found 1.5"),
        (b'{"id": "1.5"}', 'id: expected a whole number, found "1.5"'),
        (b"", "byte 0: no JSON: the payload is empty"),
        (b'{"id": true}', "id: expected a whole number"),
        (b'{"id": 9223372036854775808}', "id: .* out of the range of long"),
        (b'{"id": 1, "count": 2147483648}', "count: .* out of the range of int"),
        (b'{"id": 1, "note": 5}', "note: expected text"),
        (b'{"id": 1, "raw": "%"}', "raw: expected base64"),
        (b'{"id": 1, "price": 1.239}', "price: .* after the decimal point"),
        (b'{"id": 1, "price": 12345.6}', "price: .* digits"),
        (b'{"id": 1, "price": "x"}', "price: expected a decimal"),
        (b'{"id": 1, "ratio": 1e400}', "ratio: .* out of range"),
        (b'{"id": 1, "ratio": NaN}', "is not a JSON value"),
        (b'{"id": 1, "either": {}}', "either: no branch"),
        (b'{"id": 1, "tags": {"a": null}}', r"tags\['a'\]: expected a whole number"),
        (b'\xff{"id": 1}', "byte 0: text that is not UTF-8"),
        (b"[" * 100_000, "JSON that cannot be read:"),
        (b'{"id": ' + b"1" * 5_000 + b"}", "JSON that cannot be read:"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_place(payload: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        CODEC.decode_one(payload)
    batch = CODEC.decode_batch(pa.array([b'{"id": 5}', payload]))
    assert batch.errors.is_valid().to_pylist() == [False, True]
    assert batch.rows.column("id").to_pylist() == [5, None]


BRANCHES = [
    {"type": "record", "name": "Short", "fields": [{"name": "a", "type": "int"}]},
    {
        "type": "record",
        "name": "Long",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "int"], "default": None}],
    },
    {"type": "enum", "name": "E", "symbols": ["X", "Y"], "default": "X"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
    "double",
    "long",
    "string",
]

FIXED = {"type": "fixed", "name": "F", "size": 3}
ENUM = {"type": "enum", "name": "E", "symbols": ["XYXY"]}


@pytest.mark.parametrize(
    ("value", "schemas", "expected"),
    [
        ({"a": 1}, BRANCHES, ("member0", {"a": 1})),
        ({"a": 1, "b": 2}, BRANCHES, ("member1", {"a": 1, "b": 2})),
        # Fields that no branch has are ignored.
        ({"a": 1, "c": 2}, BRANCHES, ("member0", {"a": 1})),
        ("Y", BRANCHES, ("member2", "Y")),
        ("Z", BRANCHES, ("member6", "Z")),
        ("Z", BRANCHES[2:4], ("member0", "X")),
        ("1.5", BRANCHES[3:], ("member3", "1.5")),
        ("1.5", BRANCHES[3:5], ("member0", Decimal("1.5"))),
        (5, BRANCHES[4:], ("member1", 5)),
        (5.0, BRANCHES[4:], ("member0", 5.0)),
        (5, [BRANCHES[4], BRANCHES[6]], ("member0", 5.0)),
        (5.0, BRANCHES[5:], ("member0", 5)),
        # Text is read as a string even if it is valid base64.
        ("AAEC", ["bytes", "string"], ("member1", "AAEC")),
        ("AAEC", ["string", FIXED], ("member0", "AAEC")),
        ("AAEC", [FIXED, "long"], ("member0", b"\0\1\2")),
        ("XYXY", ["bytes", ENUM], ("member1", "XYXY")),
        ("AAEC", ["bytes", ENUM], ("member0", b"\0\1\2")),
    ],
)
def test_a_union_is_read_as_the_branch_that_the_value_looks_like(value: Any, schemas: Any, expected: Any) -> None:
    member, member_value = expected
    union = codec_of(make_record(schemas), kind="JSON").decode_one(json.dumps({"f0": value}).encode())["f0"]
    assert {name: item for name, item in union.items() if item is not None} == {member: member_value}


def test_a_lone_surrogate_is_replaced() -> None:
    assert decode_fields(note="\ud800x")["note"] == "�x"


def test_null_fields_are_omitted_and_the_order_is_the_schema_s() -> None:
    value = dict.fromkeys(("note", "at", "day", "ratio"))
    value |= {"price": Decimal("1.5"), "raw": b"\0", "id": 3, "either": {"member0": 4}}
    assert CODEC.encode_one(value) == b'{"id":3,"raw":"AA==","price":1.50,"either":4}'


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_a_value_is_decoded_from_its_json(seed: int) -> None:
    maker = Maker(seed)
    # The branches of a union have to have different JSON types.
    maker._draw_union = lambda depth: ["null", "boolean", maker.record(depth - 1)]  # type: ignore[method-assign]
    schema = maker.record()
    codec = codec_of(schema, kind="JSON")
    value = maker.draw_value(schema)
    assert codec.decode_one(codec.encode_one(value)) == value


def make_logical(kind: str, logical: str) -> Any:
    """Make a schema with a logical type."""
    return {"type": kind, "logicalType": logical}


TIMES: dict[str, Any] = {
    "date": make_logical("int", "date"),
    "time-millis": make_logical("int", "time-millis"),
    "time-micros": make_logical("long", "time-micros"),
    "timestamp-millis": make_logical("long", "timestamp-millis"),
    "timestamp-micros": make_logical("long", "timestamp-micros"),
    "timestamp-nanos": make_logical("long", "timestamp-nanos"),
    "local-timestamp-millis": make_logical("long", "local-timestamp-millis"),
    "local-timestamp-micros": make_logical("long", "local-timestamp-micros"),
}
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        # Jackson writes an Instant with a decimal point, and other clients write whole numbers in the unit of the type.
        ("timestamp-millis", "1704164645.678000000", MOMENT),
        ("timestamp-micros", "1704164645.678000000", MOMENT),
        ("timestamp-nanos", "1704164645.678000001", 1_704_164_645_678_000_001),
        ("timestamp-millis", "1704164645678", MOMENT),
        ("timestamp-micros", "1704164645678000", MOMENT),
        ("timestamp-millis", "1704164645.000000000", MOMENT.replace(microsecond=0)),
        ("timestamp-millis", "1.704164645E9", MOMENT.replace(microsecond=0)),
        ("timestamp-millis", "-0.500000000", datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)),
        # Before 1970, Java adds the fraction to the whole seconds.
        ("timestamp-millis", "-1.900000000", datetime(1969, 12, 31, 23, 59, 59, 900_000, tzinfo=UTC)),
        ("timestamp-micros", "1704164645.678000999", MOMENT),
        ("timestamp-millis", '"2024-01-02T03:04:05.678Z"', MOMENT),
        ("timestamp-millis", '"2024-01-02T05:04:05.678000000+02:00"', MOMENT),
        ("timestamp-millis", '"2024-01-02t03:04:05.678z"', MOMENT),
        ("timestamp-micros", '"2024-01-01T19:34:05.678-07:30"', MOMENT),
        ("date", "[2024,1,2]", date(2024, 1, 2)),
        ("date", "19724", date(2024, 1, 2)),
        ("date", '"2024-01-02"', date(2024, 1, 2)),
        ("time-millis", "[1,2,3,4000000]", 3_723_004),
        ("time-millis", "[0,0]", 0),
        ("time-millis", "86399999", 86_399_999),
        ("time-micros", "[1,2,3,4005000]", 3_723_004_005),
        ("time-micros", "[1,2,3]", 3_723_000_000),
        ("local-timestamp-millis", "[2024,1,2,3,4,5,678000000]", MOMENT.replace(tzinfo=None)),
        ("local-timestamp-micros", "[2024,1,2,3,4]", MOMENT.replace(second=0, microsecond=0, tzinfo=None)),
        ("local-timestamp-millis", '"2024-01-02T03:04:05.678"', MOMENT.replace(tzinfo=None)),
    ],
)
def test_times_are_read_in_the_forms_of_java(kind: str, text: str, expected: Any) -> None:
    codec = codec_of(make_record(["null", TIMES[kind]]), kind="JSON")
    payload = f'{{"f0":{text}}}'.encode()
    assert codec.decode_one(payload) == {"f0": expected}
    assert codec.decode_batch(pa.array([payload])).errors.null_count == 1


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        # Other tools write milliseconds as floating-point numbers.
        ("timestamp-millis", "1704164645678.0"),
        ("timestamp-millis", "253402300800.0"),
        ("timestamp-millis", "-62135596801.0"),
        ("timestamp-millis", '"2024-01-02"'),
        ("timestamp-millis", '"2024-01-02T03:04:05"'),
        ("timestamp-millis", '"2024-02-30T03:04:05Z"'),
        ("timestamp-millis", '"yesterday"'),
        ("timestamp-millis", '"1704164645.678"'),
        ("timestamp-millis", '"2024-01-02T03:04Z"'),
        ("timestamp-millis", '"2024-01-02T24:00:00Z"'),
        ("timestamp-millis", '"2024-01-02 03:04:05Z"'),
        ("timestamp-millis", '"2024-01-02T03:04:05.0000000000Z"'),
        ("timestamp-millis", '"10000-01-02T03:04:05Z"'),
        ("timestamp-millis", "[2024,1,2,3,4]"),
        ("timestamp-millis", "true"),
        ("date", "[2024,1]"),
        ("date", "[2024,13,1]"),
        ("date", "[2024,1,2.5]"),
        ("date", "19724.5"),
        ("time-millis", "86400000"),
        ("time-millis", "-1"),
        ("time-millis", "[24,0]"),
        ("time-millis", "[1]"),
        ("time-millis", "[1,2,3,1000000000]"),
        ("time-micros", "86400000000"),
        ("time-micros", "1.5"),
        ("local-timestamp-millis", "[2024,1,2]"),
        ("local-timestamp-millis", "1704164645.678"),
        ("local-timestamp-millis", '"2024-01-02T03:04:05Z"'),
    ],
)
def test_a_time_that_does_not_exist_or_of_another_form_is_rejected(kind: str, text: str) -> None:
    with pytest.raises(Unreadable, match=r"^f0: "):
        codec_of(make_record(["null", TIMES[kind]]), kind="JSON").decode_one(f'{{"f0":{text}}}'.encode())


def make_entries(key: Any) -> Any:
    """Make the schema that Java derives for a map whose keys are not strings."""
    fields = [{"name": "key", "type": key}, {"name": "value", "type": "string"}]
    return {
        "type": "array",
        "items": {"type": "record", "name": "Entry", "fields": fields},
        "java-class": "java.util.Map",
    }


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string", "java-class": "java.math.BigDecimal"}, "1.50", "1.50"),
        ({"type": "string", "java-class": "java.math.BigDecimal"}, "1E+3", "1E+3"),
        ({"type": "string", "java-class": "java.math.BigDecimal"}, '"1.50"', "1.50"),
        ({"type": "string", "java-class": "java.math.BigInteger"}, "12345678901234567890", "12345678901234567890"),
        ({"type": "int", "java-class": "java.lang.Character"}, '"q"', 113),
        ({"type": "int", "java-class": "java.lang.Character"}, "113", 113),
        ({"type": "int", "java-class": "java.lang.Short"}, "5", 5),
        (
            {"type": "array", "items": {"type": "int", "java-class": "java.lang.Character"}, "java-class": "[C"},
            '"ab"',
            [97, 98],
        ),
        (make_entries("int"), '{"1":"a"}', [{"key": 1, "value": "a"}]),
        (make_entries("long"), '[{"key":-5,"value":"a"}]', [{"key": -5, "value": "a"}]),
        (make_entries("boolean"), '{"true":"a"}', [{"key": True, "value": "a"}]),
    ],
)
def test_java_classes_of_the_definition_are_read(schema: Any, text: str, expected: Any) -> None:
    codec = codec_of(make_record(["null", schema]), kind="JSON")
    assert codec.decode_one(f'{{"f0":{text}}}'.encode()) == {"f0": expected}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "java-class": "java.math.BigDecimal"}, "true"),
        ({"type": "string", "java-class": "java.lang.String"}, "1.50"),
        ({"type": "int", "java-class": "java.lang.Character"}, '"qq"'),
        ("int", '"5"'),
        (make_entries("int"), '{"a":"a"}'),
        (make_entries(TIMES["time-millis"]), '{"24:00":"a"}'),
        (make_entries(TIMES["time-millis"]), '{"2024-01-02T03:04":"a"}'),
        (make_entries(TIMES["local-timestamp-millis"]), '{"03:04":"a"}'),
        (make_entries(TIMES["timestamp-millis"]), '{"2024-01-02T03:04":"a"}'),
        (make_entries("string"), '{"03:04":5}'),
    ],
)
def test_a_value_of_another_class_is_rejected(schema: Any, text: str) -> None:
    with pytest.raises(Unreadable, match=r"^f0"):
        codec_of(make_record(["null", schema]), kind="JSON").decode_one(f'{{"f0":{text}}}'.encode())


SMALL_DECIMAL = {"logicalType": "decimal", "precision": 6, "scale": 2}


@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        ({"type": "bytes"}, '"AJY="', Decimal("1.50")),
        ({"type": "bytes"}, '"/w=="', Decimal("-0.01")),
        ({"type": "fixed", "name": "F", "size": 3}, '"AACW"', Decimal("1.50")),
        # A number is a number, also if it is base64.
        ({"type": "bytes"}, '"1234"', Decimal("1234.00")),
        ({"type": "bytes"}, '"1.5"', Decimal("1.50")),
        # Neither a number nor base64; no bytes; too many bytes; another size than the fixed has; too many digits.
        ({"type": "bytes"}, '"AJY"', None),
        ({"type": "bytes"}, '""', None),
        ({"type": "fixed", "name": "F", "size": 4}, '"AACW"', None),
        ({"type": "bytes"}, '"f////w=="', None),
        ({"type": "bytes"}, '"1_0"', None),
        ({"type": "bytes"}, '"NaN"', None),
        # A fraction of Go's big.Rat.
        ({"type": "bytes"}, '"25/2"', None),
        ({"type": "bytes"}, '"1234/100"', None),
    ],
)
def test_a_decimal_is_read_from_its_unscaled_bytes(base: Any, text: str, expected: Decimal | None) -> None:
    codec = codec_of(make_record({**base, **SMALL_DECIMAL}), kind="JSON")
    payload = f'{{"f0":{text}}}'.encode()
    if expected is None:
        with pytest.raises(Unreadable, match=r"^f0: "):
            codec.decode_one(payload)
    else:
        assert codec.decode_one(payload) == {"f0": expected}
    assert codec.decode_batch(pa.array([payload])).errors.null_count == (expected is not None)


LOCAL_MOMENT = MOMENT.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("timestamp-millis", MOMENT, "1704164645.678000000"),
        ("timestamp-micros", MOMENT.replace(microsecond=678_901), "1704164645.678901000"),
        ("timestamp-nanos", 1_704_164_645_678_901_234, "1704164645.678901234"),
        ("timestamp-millis", MOMENT.replace(microsecond=0), "1704164645.000000000"),
        ("timestamp-millis", datetime(1970, 1, 1, tzinfo=UTC), "0.0"),
        ("timestamp-millis", datetime(1969, 12, 31, 23, 59, 59, 900_000, tzinfo=UTC), "-1.900000000"),
        ("timestamp-millis", datetime(1, 1, 1, tzinfo=UTC), "-62135596800.000000000"),
        ("timestamp-micros", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "253402300799.999999000"),
        ("date", date(2024, 1, 2), "[2024,1,2]"),
        ("date", date(1, 1, 1), "[1,1,1]"),
        ("time-millis", 3_723_004, "[1,2,3,4000000]"),
        ("time-millis", 3_723_000, "[1,2,3]"),
        ("time-millis", 3_720_000, "[1,2]"),
        ("time-millis", 3_720_004, "[1,2,0,4000000]"),
        ("time-micros", 86_399_999_999, "[23,59,59,999999000]"),
        ("local-timestamp-millis", LOCAL_MOMENT, "[2024,1,2,3,4,5,678000000]"),
        ("local-timestamp-micros", LOCAL_MOMENT.replace(second=0, microsecond=0), "[2024,1,2,3,4]"),
        ("local-timestamp-millis", datetime(1969, 12, 31, 23, 59, 59), "[1969,12,31,23,59,59]"),  # noqa: DTZ001  local
    ],
)
def test_times_are_written_in_the_forms_of_java(kind: str, value: Any, text: str) -> None:
    codec = codec_of(make_record(["null", TIMES[kind]]), kind="JSON", json_times="java")
    payload = f'{{"f0":{text}}}'.encode()
    assert codec.encode_one({"f0": value}) == payload
    assert codec.decode_one(payload) == {"f0": value}
    decoded = codec.decode_batch(pa.array([payload]))
    assert codec.encode_batch(decoded.rows).payloads.to_pylist() == [payload]
    numbers = codec.encode_batch(decoded.rows, json_times="number").payloads[0].as_py()
    assert numbers == codec_of(make_record(["null", TIMES[kind]]), kind="JSON").encode_one({"f0": value})
    assert codec.decode_one(numbers) == {"f0": value}


def test_the_argument_of_encode_selects_the_form_of_times() -> None:
    codec = codec_of(make_record(TIMES["date"]), kind="JSON")
    value = {"f0": date(2024, 1, 2)}
    assert codec.encode_one(value) == b'{"f0":19724}'
    assert codec.encode_one(value, 0, json_times="java") == b'{"f0":[2024,1,2]}'
    assert codec.encode_one(value, json_times="number") == b'{"f0":19724}'


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("timestamp-millis", 253_402_300_800_000_000),
        ("timestamp-micros", -62_135_596_800_000_001),
        ("timestamp-nanos", -(2**63) * 10),
        ("date", 2_932_897),
        ("date", -719_163),
        ("time-millis", 86_400_000),
        ("time-micros", -1),
        ("local-timestamp-millis", 253_402_300_800_000_000),
    ],
)
def test_a_time_that_java_s_form_does_not_have_is_not_written(kind: str, number: int) -> None:
    with pytest.raises(Unwritable, match=r"^f0: "):
        codec_of(make_record(TIMES[kind]), kind="JSON", json_times="java").encode_one({"f0": number})


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "int", "java-class": "java.lang.Character"}, 113, '"q"'),
        ({"type": "int", "java-class": "java.lang.Character"}, 0xD83D, '"\\ud83d"'),
        ({"type": "int", "java-class": "java.lang.Character"}, 70_000, "70000"),
        (
            {"type": "array", "items": "int", "java-class": "[C"},
            [97, 0, 34, 0xD83D, 0xDE00],
            '"a\\u0000\\"\\ud83d\\ude00"',
        ),
        ({"type": "array", "items": "int", "java-class": "[S"}, [97], "[97]"),
        (make_entries("int"), [{"key": -1, "value": "a"}, {"key": 2, "value": "b"}], '{"-1":"a","2":"b"}'),
        (make_entries("string"), [{"key": '\u00e9"', "value": "a"}], '{"\u00e9\\"":"a"}'),
        (make_entries("boolean"), [{"key": True, "value": "a"}], '{"true":"a"}'),
        (make_entries("double"), [{"key": 1e23, "value": "a"}], '{"1e+23":"a"}'),
        (make_entries("double"), [{"key": math.inf, "value": "a"}], '{"Infinity":"a"}'),
        (make_entries("int"), [], "{}"),
        (make_entries({"type": "int", "java-class": "java.lang.Character"}), [{"key": 113, "value": "a"}], '{"q":"a"}'),
        (make_entries(TIMES["date"]), [{"key": date(2024, 1, 2), "value": "a"}], '{"2024-01-02":"a"}'),
        (make_entries(TIMES["timestamp-millis"]), [{"key": MOMENT, "value": "a"}], '{"2024-01-02T03:04:05.678Z":"a"}'),
        (
            make_entries(TIMES["timestamp-micros"]),
            [{"key": datetime(1969, 12, 31, 23, 59, 0, 1, UTC), "value": "a"}],
            '{"1969-12-31T23:59:00.000001Z":"a"}',
        ),
        (make_entries(TIMES["time-millis"]), [{"key": 11_040_000, "value": "a"}], '{"03:04":"a"}'),
        (make_entries(TIMES["time-millis"]), [{"key": 11_040_001, "value": "a"}], '{"03:04:00.001":"a"}'),
        (make_entries(TIMES["time-micros"]), [{"key": 11_045_000_000, "value": "a"}], '{"03:04:05":"a"}'),
        (
            make_entries(TIMES["local-timestamp-millis"]),
            [{"key": LOCAL_MOMENT.replace(second=0, microsecond=0), "value": "a"}],
            '{"2024-01-02T03:04":"a"}',
        ),
        (
            make_entries(TIMES["local-timestamp-micros"]),
            [{"key": LOCAL_MOMENT, "value": "a"}],
            '{"2024-01-02T03:04:05.678":"a"}',
        ),
    ],
)
def test_java_classes_of_the_definition_are_written(schema: Any, value: Any, text: str) -> None:
    codec = codec_of(make_record(["null", schema]), kind="JSON")
    payload = codec.encode_one({"f0": value})
    assert payload == f'{{"f0":{text}}}'.encode()
    assert codec.decode_one(payload) == {"f0": value}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (
            make_entries("int"),
            [{"key": 1, "value": "a"}, {"key": 1, "value": "b"}],
            r"f0\[1\]: the key \"1\" occurs twice",
        ),
        (
            make_entries(TIMES["time-millis"]),
            [{"key": 86_400_000, "value": "a"}],
            r"f0\[0\]: 86400000 is out of the range",
        ),
        (make_entries("int"), [{"key": 1}], r"f0\[0\]: expected a key and a value"),
        (make_entries("int"), {"1": "a"}, "f0: expected a list"),
        ({"type": "array", "items": "int", "java-class": "[C"}, [97, -1], r"f0\[1\]: expected the code of a character"),
    ],
)
def test_a_value_that_the_java_class_does_not_have_is_not_written(schema: Any, value: Any, reason: str) -> None:
    with pytest.raises(Unwritable, match=reason):
        codec_of(make_record(schema), kind="JSON").encode_one({"f0": value})


@pytest.mark.parametrize(
    ("kind", "value"), [("time-millis", 86_400_000), ("time-millis", -1), ("time-micros", 86_400_000_000)]
)
def test_a_time_of_day_outside_24_hours_is_not_written(kind: str, value: int) -> None:
    with pytest.raises(Unwritable, match=f"f0: {value} is out of the range of {kind}: a day has 24 hours"):
        codec_of(make_record(TIMES[kind]), kind="JSON").encode_one({"f0": value})
