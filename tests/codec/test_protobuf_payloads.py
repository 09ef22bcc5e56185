"""Protobuf payloads against protobuf itself: columns, values, versions, damage."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from sample_codecs import codec_of, make_native

from schemactl.codec import (
    Codec,
    CodecUnavailable,
    Definition,
    InvalidDefinition,
    KeyValue,
    Options,
    Unreadable,
    Unwritable,
)
from schemactl.codec.arrow_types import to_numbers
from schemactl.codec.proto_schema import load_root
from schemactl.codec.wire_format import encode_zigzag

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
message Order {
  enum Status { NEW = 0; PAID = 1; GONE = -1; }
  message Line { string sku = 1; uint32 quantity = 2; Nothing nothing = 3; }
  message Nothing {}
  double a_double = 1; float a_float = 2; int64 an_int64 = 3; uint64 a_uint64 = 4; int32 an_int32 = 5;
  fixed64 a_fixed64 = 6; fixed32 a_fixed32 = 7; bool a_bool = 8; string a_string = 9; bytes a_bytes = 10;
  uint32 a_uint32 = 11; Status status = 12; sfixed32 an_sfixed32 = 13; sfixed64 an_sfixed64 = 14;
  sint32 an_sint32 = 15; sint64 an_sint64 = 16;
  optional string note = 17;
  oneof payment { string card = 18; int32 voucher = 19; Line bonus = 20; }
  Line line = 21; repeated Line lines = 22; repeated sint32 numbers = 23; map<string, Line> by_sku = 24;
  map<int32, string> names = 25; google.protobuf.Timestamp at = 26; google.protobuf.Duration took = 27;
  repeated string from = 28; map<string, Status> states = 29;
}
"""


def make_codec(*texts: str, **options: Any) -> Codec:
    return codec_of(*(make_native(text, "shop.Order") for text in texts), **options)


def make_proto2_codec(fields: str, more: str = "", **options: Any) -> Codec:
    text = f'syntax = "proto2"; package shop; message Order {{ {fields} }} {more}'
    return make_codec(text, **options)


CODEC = make_codec(ORDER)
MESSAGE = load_root(make_native(ORDER, "shop.Order"), Options()).message_class


def integers_of(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


LINES = st.fixed_dictionaries({"sku": st.text(max_size=5), "quantity": integers_of(32, signed=False)})
STATUS = st.sampled_from(["NEW", "PAID", "GONE", "7"])
MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(  # noqa: DTZ001  a zone follows
    lambda moment: moment.replace(tzinfo=UTC)
)
VALUES = st.fixed_dictionaries(
    {
        **dict.fromkeys(("an_int32", "an_sfixed32", "an_sint32"), integers_of(32)),
        **dict.fromkeys(("an_int64", "an_sfixed64", "an_sint64"), integers_of(64)),
        **dict.fromkeys(("a_uint32", "a_fixed32"), integers_of(32, signed=False)),
        **dict.fromkeys(("a_uint64", "a_fixed64"), integers_of(64, signed=False)),
        "a_double": st.floats(allow_nan=False),
        "a_float": st.floats(width=32, allow_nan=False),
        "a_bool": st.booleans(),
        "a_string": st.text(max_size=5),
        "a_bytes": st.binary(max_size=5),
        "status": STATUS,
        "note": st.none() | st.text(max_size=3),
        "line": st.none() | LINES,
        "lines": st.lists(LINES, max_size=3),
        "numbers": st.lists(integers_of(32), max_size=3),
        "by_sku": st.dictionaries(st.text(max_size=2), LINES, max_size=2),
        "names": st.dictionaries(integers_of(32), st.text(max_size=2), max_size=2),
        "at": st.none() | MOMENTS,
        "took": st.none() | st.timedeltas(timedelta(days=-100_000_000), timedelta(days=100_000_000)),
        "from": st.lists(st.text(max_size=2), max_size=2),
        "states": st.dictionaries(st.text(max_size=2), STATUS, max_size=2),
    }
)
NO_PAYMENT = {"card": None, "voucher": None, "bonus": None}
PAYMENTS = st.sampled_from([{}, {"card": ""}, {"voucher": 0}, {"bonus": {"sku": "b", "quantity": 1}}])


@given(VALUES, PAYMENTS)
@EXAMPLES
def test_a_value_is_decoded_from_its_payload_alone_and_in_a_batch(
    value: dict[str, Any], payment: dict[str, Any]
) -> None:
    value = value | NO_PAYMENT | payment
    payload = CODEC.encode_one(value)
    assert payload is not None
    assert CODEC.decode_one(payload) == value
    message = MESSAGE.FromString(payload)
    assert message.SerializeToString(deterministic=True) == payload
    assert (message.a_uint64, message.WhichOneof("payment"), len(message.lines)) == (
        value["a_uint64"],
        next(iter(payment), None),
        len(value["lines"]),
    )
    decoded = CODEC.decode_batch(pa.array([payload, payload]))
    assert decoded.errors.null_count == 2
    decoded.rows.validate(full=True)
    assert CODEC.encode_batch(decoded.rows).payloads.to_pylist() == [payload, payload]


def test_columns_are_those_of_spark_with_its_safe_options() -> None:
    kinds = {field.name: field.type for field in CODEC.columns}
    assert list(kinds)[:5] == ["a_double", "a_float", "an_int64", "a_uint64", "an_int32"]
    assert kinds["a_uint64"] == kinds["a_fixed64"] == pa.decimal128(20, 0)
    assert kinds["a_uint32"] == kinds["a_fixed32"] == pa.int64()
    assert kinds["status"] == pa.string()
    # A message without fields has no column.
    assert [field.name for field in kinds["line"]] == ["sku", "quantity"]
    assert kinds["names"].key_type == pa.int32()
    assert (kinds["at"], kinds["took"]) == (pa.timestamp("us", "UTC"), pa.duration("us"))


def test_an_unset_field_is_null_or_its_default_without_presence() -> None:
    value = CODEC.decode_one(b"")
    expected = {"an_int64": 0, "a_string": "", "status": "NEW", "lines": [], "names": {}}
    assert {name: value[name] for name in expected} == expected
    for name in ("note", "card", "voucher", "bonus", "line", "at", "took"):
        assert value[name] is None


def test_fields_of_other_versions_are_matched_by_number() -> None:
    old = 'syntax = "proto3"; package shop; message Order { int32 id = 1; string gone = 2; }'
    new = 'syntax = "proto3"; package shop; message Order { int64 number = 1; optional string note = 3; }'
    codec = make_codec(old, new)
    payload = codec.encode_one({"id": 7, "gone": "x"}, 0)
    assert codec.decode_one(payload, 0) == {"number": 7, "note": None}


def test_an_enum_number_without_a_name_is_decoded_to_digits() -> None:
    assert CODEC.decode_one(MESSAGE(status=42).SerializeToString())["status"] == "42"
    with pytest.raises(Unwritable, match="status: 'LOST' is not one of"):
        CODEC.encode_one({"status": "LOST"})


PROTO2 = """
syntax = "proto2"; package shop;
enum Status { PAID = 1; NEW = 0; }
message Order {
  optional Status status = 1; repeated Status all = 2; map<string, Nested> by_name = 3; required Status must = 4;
  optional int32 number = 5 [default = -5]; optional string text = 6 [default = "none"];
  optional Status declared = 7 [default = NEW]; optional uint64 large = 8 [default = 18446744073709551615];
  oneof either { int32 left = 9 [default = 3]; string right = 10; }
  repeated Status packed = 11 [packed = true];
}
message Nested { optional Status status = 1 [default = NEW]; optional bytes raw = 2 [default = "\\001"]; }
"""


@pytest.mark.parametrize("count", [1, 100])
def test_a_closed_enum_s_number_without_a_name_stays_in_its_field(count: int) -> None:
    codec = make_codec(PROTO2)
    payload = bytes.fromhex("0807 1001 1009 1000 1a070a016b 12020807 20ffffffffffffffffff01 5a02 0805")
    row = codec.decode_batch(pa.array([payload] * count)).rows.slice(count - 1).to_pylist()[0]
    enums = [row[name] for name in ("status", "all", "must", "packed")]
    assert enums == ["7", ["PAID", "9", "NEW"], "-1", ["8", "5"]]
    assert row["by_name"] == [("k", {"status": "7", "raw": b"\x01"})]
    assert codec.decode_one(payload) == {**row, "by_name": dict(row["by_name"]), "large": 2**64 - 1}
    with pytest.raises(Unwritable, match="status: '7' is not one of"):
        codec.encode_one({"must": "NEW", "status": "7"})


@pytest.mark.parametrize("count", [1, 100])
def test_an_unset_field_is_its_declared_default(count: int) -> None:
    codec = make_codec(PROTO2)
    row = codec.decode_batch(pa.array([b"\x20\x00\x1a\x05\x0a\x01k\x12\x00"] * count)).rows.slice(count - 1)
    assert row.to_pylist()[0] == {
        "status": None,
        "all": [],
        "by_name": [("k", {"status": "NEW", "raw": b"\x01"})],
        "must": "NEW",
        "number": -5,
        "text": "none",
        "declared": "NEW",
        "large": Decimal(2**64 - 1),
        # Members of a oneof do not get their defaults.
        "left": None,
        "right": None,
        "packed": [],
    }
    assert codec.decode_one(b"\x20\x00")["number"] == -5
    assert codec.decode_one(b"\x20\x00\x28\x00")["number"] == 0
    editions = 'edition = "2023"; package shop; message Order { int32 id = 1 [default = 4]; int32 other = 2; }'
    assert make_codec(editions).decode_one(b"") == {"id": 4, "other": None}


def test_a_default_that_is_not_utf_8_rejects_messages_that_need_it() -> None:
    codec = make_proto2_codec('optional string s = 1 [default = "\\377"];')
    decoded = codec.decode_batch(pa.array([b"", b"\x0a\x01a"] * 50))
    assert decoded.errors.to_pylist() == ["s: text that is not UTF-8", None] * 50
    assert decoded.rows.column("s").to_pylist() == [None, "a"] * 50


def test_a_field_may_have_the_name_of_a_method_of_messages() -> None:
    names = ("DESCRIPTOR", "HasField", "IsInitialized", "ListFields", "ParseFromString", "SerializeToString")
    fields = "".join(f"optional int32 {name} = {number};" for number, name in enumerate(names, 1))
    line = f"message Line {{ {fields} required int32 id = 30; }}"
    codec = make_proto2_codec(f"{fields} optional Line SetInParent = 20;", line)
    value = {name: number for number, name in enumerate(names)}
    payload = codec.encode_one({**value, "SetInParent": {**value, "id": 1}})
    assert codec.decode_one(payload) == {**value, "SetInParent": {**value, "id": 1}}
    with pytest.raises(Unreadable, match=r"required fields are missing: SetInParent\.id"):
        codec.decode_one(b"\xa2\x01\x02\x08\x01")


@given(st.binary(max_size=40) | VALUES.map(lambda value: CODEC.encode_one(value) or b""), st.data())
@EXAMPLES
def test_damage_is_rejected_exactly_where_protobuf_rejects_it(payload: bytes, data: st.DataObject) -> None:
    if payload:
        at = data.draw(st.integers(0, len(payload) - 1))
        payload = payload[:at] + data.draw(st.binary(max_size=2)) + payload[at + data.draw(st.integers(0, 3)) :]
    try:
        MESSAGE.FromString(payload)
    except DecodeError:
        with pytest.raises(Unreadable) as rejected:
            CODEC.decode_one(payload)
        assert rejected.value.offset is not None, rejected.value.reason
        return
    decoded = CODEC.decode_batch(pa.array([payload]))
    reason = decoded.errors.to_pylist()[0]
    assert reason is None or "seconds do not fit" in reason


def test_the_reason_names_the_field_and_the_byte() -> None:
    payload = MESSAGE(line=MESSAGE.Line(sku="abc")).SerializeToString()
    with pytest.raises(Unreadable) as rejected:
        CODEC.decode_one(payload.replace(b"abc", b"a\xffc"))
    assert rejected.value.reason == "line.sku, byte 6: text that is not UTF-8"


def test_messages_nested_too_deeply_are_rejected() -> None:
    tree = make_native('syntax = "proto3"; message Tree { Tree next = 1; int32 x = 2; }', "Tree")
    with pytest.raises(InvalidDefinition, match="Tree is recursive"):
        _ = codec_of(tree).columns
    codec = codec_of(tree, recursion_depth=2)
    assert codec.decode_one(b"\x0a\x02\x10\x07\x10\x01") == {"next": {"x": 7}, "x": 1}
    deep = b""
    for _ in range(200):
        # The zig-zag form of half of the length is the length as a plain number.
        deep = (
            b"\x0a"
            + (encode_zigzag(len(deep) // 2) if len(deep) % 2 == 0 else encode_zigzag(-(len(deep) + 1) // 2))
            + deep
        )
    with pytest.raises(Unreadable, match="nested deeper than 100"):
        codec.decode_one(deep)


def test_missing_required_fields_are_rejected() -> None:
    codec = make_proto2_codec("required int32 id = 1; optional int32 b = 2;")
    with pytest.raises(Unreadable, match="required fields are missing: id"):
        codec.decode_one(b"\x10\x01")
    with pytest.raises(Unwritable, match="required fields are missing: id"):
        codec.encode_one({"b": 1})


def test_missing_required_fields_of_nested_messages_have_their_paths() -> None:
    line = "message Line { required int32 id = 1; optional Line bonus = 2; }"
    fields = "repeated Line lines = 1; map<string, Line> by_sku = 2; optional Line line = 3;"
    codec = make_proto2_codec(fields, line, recursion_depth=2)
    payload = b"\x0a\x02\x08\x01\x0a\x04\x08\x01\x12\x00\x12\x05\x0a\x01k\x12\x00\x1a\x00"
    with pytest.raises(Unreadable) as rejected:
        codec.decode_one(payload)
    missing = "lines[1].bonus.id, by_sku['k'].id, line.id"
    assert rejected.value.reason == f"required fields are missing: {missing}"
    reasons = codec.decode_batch(pa.array([b"", payload])).errors.to_pylist()
    assert reasons == [None, rejected.value.reason]


def test_invalid_utf_8_is_rejected_in_proto2_as_in_proto3() -> None:
    codec = make_proto2_codec("optional string s = 1; map<string, int32> m = 2;")
    for payload, reason in ((b"\x0a\x02a\xff", "s, byte 3"), (b"\x12\x03\x0a\x01\xff", "m.key, byte 4")):
        with pytest.raises(Unreadable) as rejected:
            codec.decode_one(payload)
        assert rejected.value.reason == f"{reason}: text that is not UTF-8"
        assert codec.decode_batch(pa.array([b"", payload])).errors.to_pylist() == [None, rejected.value.reason]


def test_a_map_comes_in_the_order_of_its_keys() -> None:
    payload = b"".join(MESSAGE(names={key: ""}).SerializeToString() for key in (5, -3, 100, 0))
    for payloads in (pa.array([payload]), pa.array([payload + payload])):
        rows = CODEC.decode_batch(payloads).rows
        assert [key for key, _ in rows.column("names").to_pylist()[0]] == [-3, 0, 5, 100]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"odd": 1}, "shop.Order has no field odd"),
        ({"an_int32": 2**31}, "an_int32: 2147483648 is out of the range of int32"),
        ({"a_uint32": -1}, "a_uint32: -1 is out of the range of uint32"),
        ({"a_bool": 1}, "a_bool: expected true or false, found 1"),
        ({"a_float": 1e300}, "a_float: 1e+300 is out of the range of float"),
        ({"a_double": 10**309}, f"a_double: {10**309} is out of the range of double"),
        ({"a_string": "\ud800"}, "a_string: '\\ud800' contains a lone surrogate (half a character)"),
        ({"lines": [{"sku": "a"}, {"sku": 1}]}, "lines[1].sku: expected text, found 1"),
        ({"numbers": [1, None]}, "numbers[1]: expected a whole number, found None"),
        ({"by_sku": {"a": {"quantity": 1.5}}}, "by_sku['a'].quantity: expected a whole number, found 1.5"),
        ({"took": timedelta.max}, "took: 86399999999999999999 microseconds do not fit 64 bits"),
        ({"at": 2**90}, f"at: {2**90} microseconds do not fit 64 bits"),
        ({"card": "c", "voucher": 1}, "only one of card and voucher can be set (payment)"),
        ({"by_sku": [1]}, "by_sku: expected a dict, found [1]"),
        ({"numbers": bytearray(b"x")}, "numbers: expected a list, found bytearray(b'x')"),
        ({"an_int32": Decimal("Infinity")}, "an_int32: expected a whole number, found Decimal('Infinity')"),
        ({"status": "--5"}, "status: '--5' is not one of GONE, PAID, NEW"),
        ({"status": "9" * 5_000}, "status: '999"),
        ([], "expected the fields of shop.Order, found []"),
    ],
)
def test_a_value_that_does_not_fit_is_rejected_with_its_place(value: Any, reason: str) -> None:
    with pytest.raises(Unwritable) as rejected:
        CODEC.encode_one(value)
    assert rejected.value.reason.startswith(reason)


def test_protobuf_described_by_avro_needs_its_descriptor_set() -> None:
    text = make_native(ORDER, "shop.Order").text
    described = codec_of(Definition("PROTOBUF", '"string"', proto=text))
    assert described.columns == CODEC.columns
    with pytest.raises(CodecUnavailable, match="add `proto:`"):
        _ = codec_of(Definition("PROTOBUF", '"string"')).columns


def test_the_value_of_a_pair_may_be_protobuf() -> None:
    value = make_native('syntax = "proto3"; message V { uint64 x = 1; }', "V")
    codec = codec_of(KeyValue(Definition("STRING"), value, "SEPARATED"))
    rows = pa.RecordBatch.from_pylist([{"key": "a", "value": {"x": Decimal(2**64 - 1)}}], schema=codec.columns)
    encoded = codec.encode_batch(rows)
    assert codec.decode_batch(encoded.payloads, keys=encoded.keys).rows.equals(rows)


def test_an_invalid_descriptor_set_is_rejected() -> None:
    good = json.loads(make_native(ORDER, "shop.Order").text)
    for text in (
        "",
        "{}",
        "nonsense",
        json.dumps(good | {"fileDescriptorSet": "AAAA"}),
        json.dumps(good | {"rootMessageTypeName": "shop.None"}),
    ):
        with pytest.raises((InvalidDefinition, CodecUnavailable)):
            _ = codec_of(Definition("PROTOBUF_NATIVE", text)).columns


def test_timestamps_out_of_range_are_rejected() -> None:
    message = MESSAGE()
    message.at.seconds = 2**62
    reason = CODEC.decode_batch(pa.array([message.SerializeToString()])).errors.to_pylist()[0]
    assert reason == f"at: {2**62} seconds do not fit 64 bits as microseconds"
    message.at.seconds = 10**12
    row = CODEC.decode_batch(pa.array([message.SerializeToString()])).rows
    assert to_numbers(row.column("at")).to_pylist() == [10**18]
    with pytest.raises(Unreadable, match="years 1 to 9999"):
        CODEC.decode_one(message.SerializeToString())


def test_a_negative_duration_is_written_with_one_sign() -> None:
    message = MESSAGE.FromString(CODEC.encode_one({"took": timedelta(seconds=-1.5)}) or b"")
    assert (message.took.seconds, message.took.nanos) == (-1, -500_000_000)
    assert math.copysign(1, CODEC.decode_one(MESSAGE(a_double=-0.0).SerializeToString())["a_double"]) == -1
