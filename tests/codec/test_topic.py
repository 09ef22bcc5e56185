"""The codec of a topic: versions, KEY_VALUE, damaged messages, and values encoded alone and in a batch."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from sample_codecs import codec_of, decode_both_ways, make_native, make_record

from schemactl.codec import (
    Codec,
    CodecUnavailable,
    Definition,
    InvalidDefinition,
    KeyValue,
    Options,
    UnknownVersion,
    Unreadable,
    Unwritable,
    Version,
)


def make_order(*fields: dict[str, Any]) -> Definition:
    return Definition("AVRO", json.dumps({"type": "record", "name": "Order", "fields": list(fields)}))


ID = {"name": "id", "type": "int"}
V0 = make_order(ID, {"name": "customer_id", "type": "int"})
V1 = make_order(
    ID, {"name": "customer_id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}
)
V2 = make_order(
    ID,
    {"name": "customer", "type": "long", "aliases": ["customer_id"]},
    {"name": "size", "type": "string", "default": "M"},
)
ORDERS = Codec([Version(0, V0, "c0"), Version(1, V1, "c1"), Version(2, V2, "c2")])


def make_messages() -> list[tuple[bytes | None, int]]:
    return [
        (ORDERS.encode_one({"id": 1, "customer_id": 10}, 0), 0),
        (ORDERS.encode_one({"id": 2, "customer_id": 2**40, "note": "x"}, 1), 1),
        (ORDERS.encode_one({"id": 3, "customer": 30, "size": "L"}, 2), 2),
    ]


def test_every_version_is_decoded_into_the_newest() -> None:
    assert [ORDERS.decode_one(payload, version) for payload, version in make_messages()] == [
        {"id": 1, "customer": 10, "size": "M"},
        {"id": 2, "customer": 2**40, "size": "M"},
        {"id": 3, "customer": 30, "size": "L"},
    ]


def test_the_reason_names_all_missing_fields() -> None:
    lacking = codec_of(make_order(ID), make_order(ID, {"name": "a", "type": "int"}, {"name": "b", "type": "int"}))
    with pytest.raises(Unreadable, match=r"which requires a, b and has no default for them$"):
        lacking.decode_one(b"\x02", 0)


def test_mixed_and_damaged_messages_stay_in_order() -> None:
    good = make_messages()
    rows = [good[2], good[0], (b"\x80", 1), (None, 0), (good[0][0], 9), good[1], (good[2][0], None)]
    decoded = decode_both_ways(ORDERS, *zip(*rows, strict=True))
    assert decoded.rows.column("id").to_pylist() == [3, 1, None, None, None, 2, 3]
    reasons = decoded.errors.to_pylist()
    assert [reason is not None for reason in reasons] == [False, False, True, True, True, False, False]
    assert reasons[2] == "id, byte 0: the message ends inside a number"
    assert "no payload" in reasons[3]
    assert reasons[4] == "schema version 9 is not in the codec (0 to 2): generate it again"
    assert sum(column.null_count for column in decoded.rows.columns) == 9


@pytest.mark.parametrize("padding", [0, 56])
def test_a_version_may_have_8_bytes_or_the_64_bytes_of_old_clients(padding: int) -> None:
    payload, version = make_messages()[1]
    raw = version.to_bytes(8, "big") + b"\0" * padding
    assert ORDERS.decode_one(payload, raw) == ORDERS.decode_one(payload, 1)
    assert ORDERS.decode_batch(pa.array([payload]), pa.array([raw])).rows.column("id").to_pylist() == [2]


def test_a_version_of_another_length_is_a_rejected_row() -> None:
    payload = make_messages()[2][0]
    decoded = ORDERS.decode_batch(pa.array([payload, payload]), pa.array([b"\0\0", b""]))
    assert decoded.errors.to_pylist() == ["a schema version of 2 bytes: expected 8, or none", None]
    assert decoded.rows.column("id").to_pylist() == [None, 3]
    with pytest.raises(Unreadable, match="2 bytes"):
        ORDERS.decode_one(payload, b"\0\0")


def test_a_reader_may_be_an_older_version() -> None:
    codec = Codec(ORDERS.versions, reader=V0)
    assert codec.columns.names == ["id", "customer_id"]
    assert codec.decode_one(make_messages()[0][0], 0) == {"id": 1, "customer_id": 10}
    # Avro does not resolve a long to an int.
    with pytest.raises(Unreadable, match="long was written and cannot be read as int"):
        codec.decode_one(make_messages()[1][0], 1)


def test_commits_are_known_by_number() -> None:
    assert [ORDERS.commit(number) for number in (0, 1, 2)] == ["c0", "c1", "c2"]
    with pytest.raises(UnknownVersion):
        ORDERS.commit(3)
    with pytest.raises(UnknownVersion):
        ORDERS.encode_one({}, 3)


def test_strict_rejects_bytes_after_the_value() -> None:
    strict = Codec(ORDERS.versions, options=Options(strict=True))
    payload = (make_messages()[2][0] or b"") + b"\0"
    assert ORDERS.decode_one(payload, 2)["id"] == 3
    with pytest.raises(Unreadable, match="byte 4: 1 bytes follow the value"):
        strict.decode_one(payload, 2)
    assert strict.decode_batch(pa.array([payload]), pa.array([2])).errors.null_count == 0


def test_copies_of_a_codec_in_one_process_are_the_same_object() -> None:
    state, other = pickle.dumps(ORDERS), pickle.dumps(Codec(ORDERS.versions[:1]))
    copy = pickle.loads(state)  # noqa: S301  our own bytes
    assert copy is pickle.loads(state)  # noqa: S301  our own bytes
    assert [copy.decode_one(*message) for message in make_messages()] == [
        ORDERS.decode_one(*message) for message in make_messages()
    ]
    assert len(pickle.loads(other).versions) == 1  # noqa: S301  our own bytes


def test_an_empty_batch_is_an_empty_batch() -> None:
    decoded = ORDERS.decode_batch(pa.array([], pa.binary()), pa.array([], pa.int64()))
    assert decoded.rows.num_rows == len(decoded.errors) == 0
    assert decoded.rows.schema == ORDERS.columns


PAIR = KeyValue(Definition("STRING"), V0, "INLINE")


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
@pytest.mark.parametrize("key", ["k", "", None])
@pytest.mark.parametrize("value", [{"id": 1, "customer_id": 2}, None])
def test_a_pair_with_a_null_key_or_value_is_decoded(encoding: Any, key: str | None, value: Any) -> None:
    codec = codec_of(KeyValue(PAIR.key, PAIR.value, encoding))
    pair = {"key": key, "value": value}
    payload, key_bytes = codec.encode_one(pair), codec.encode_key(pair)
    assert key_bytes == (key.encode() if key is not None and encoding == "SEPARATED" else None)
    assert codec.decode_one(payload, 0, key_bytes) == pair
    assert decode_both_ways(codec, [payload] * 2, keys=[key_bytes] * 2).rows.to_pylist() == [pair, pair]


def test_keys_of_separated_pairs_are_required() -> None:
    codec = codec_of(KeyValue(PAIR.key, PAIR.value, "SEPARATED"))
    with pytest.raises(ValueError, match="keys"):
        codec.decode_batch(pa.array([b""]))


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_numbers_of_payloads_versions_and_keys_must_be_equal(count: int) -> None:
    codec = codec_of(Definition("INT8"))
    with pytest.raises(ValueError, match=f"3 payloads have {count} versions"):
        codec.decode_batch(pa.array([b"a"] * 3), pa.array([0] * count, pa.int64()))
    pairs = codec_of(KeyValue(Definition("INT8"), Definition("INT8"), "SEPARATED"))
    with pytest.raises(ValueError, match=f"3 payloads have {count} keys"):
        pairs.decode_batch(pa.array([b"a"] * 3), keys=pa.array([b"a"] * count, pa.binary()))


def test_the_reason_for_a_damaged_pair_names_key_or_value() -> None:
    codec = codec_of(PAIR)
    good = codec.encode_one({"key": "k", "value": {"id": 1, "customer_id": 2}}) or b""
    damaged = [good, good[:3], good[:-1], good[:-2] + b"\x80\x80", None, b"\xff\xff\xff\xfe" + good[4:]]
    decoded = codec.decode_batch(pa.array(damaged, pa.binary()))
    assert decoded.errors.to_pylist()[1:4] == [
        "byte 0: the message ends before the key's length",
        "byte 5: the value has a length of 2 bytes, but 1 are left",
        "value.id, byte 0: the message ends inside a number",
    ]
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True, True, True]
    assert decoded.rows.column("key").to_pylist() == ["k", None, None, None, None, None]
    for payload, reason in zip(damaged[1:4], decoded.errors.to_pylist()[1:4], strict=True):
        with pytest.raises(Unreadable) as rejected:
            codec.decode_one(payload)
        assert rejected.value.reason == reason


def test_the_value_of_a_pair_is_resolved_to_the_reader() -> None:
    codec = codec_of(PAIR, KeyValue(Definition("STRING"), V2, "INLINE"))
    payload = codec.encode_one({"key": "k", "value": {"id": 1, "customer_id": 2}}, 0)
    assert codec.decode_one(payload, 0) == {"key": "k", "value": {"id": 1, "customer": 2, "size": "M"}}


def test_messages_of_a_version_of_another_type_are_rejected_rows() -> None:
    codec = Codec([Version(0, Definition("STRING")), Version(1, V0), Version(2, PAIR)], reader=V0)
    decoded = codec.decode_batch(pa.array([b"a", b"\x02\x04", b"x"]), pa.array([0, 1, 2]))
    assert decoded.rows.column("id").to_pylist() == [None, 1, None]
    assert decoded.errors.to_pylist() == [
        "written as STRING, which cannot be read as AVRO",
        None,
        "version 2 is KEY_VALUE, which cannot be read as AVRO",
    ]


def test_a_type_without_a_codec_raises_on_use() -> None:
    codec = codec_of(Definition("EXTERNAL", "{}"))
    for use in (lambda: codec.columns, lambda: codec.decode_one(b""), lambda: codec.encode_one({})):
        with pytest.raises(CodecUnavailable, match="no codec for EXTERNAL"):
            use()


def test_recursion_needs_a_depth() -> None:
    node = make_order(ID, {"name": "next", "type": ["null", "Order"], "default": None})
    with pytest.raises(InvalidDefinition, match="is recursive"):
        _ = codec_of(node).columns
    deep = codec_of(node, recursion_depth=2)
    value = {"id": 1, "next": {"id": 2, "next": None}}
    payload = deep.encode_one(value)
    assert deep.decode_one(payload) == {"id": 1, "next": {"id": 2}}
    with pytest.raises(Unwritable, match="nested deeper"):
        deep.encode_one({"id": 1, "next": {"id": 2, "next": {"id": 3, "next": None}}})
    # Values below the recursion depth are skipped.
    nested = b"\x02" + b"\x02\x02" * 200 + b"\x00"
    assert deep.decode_one(nested)["next"] == {"id": 1}
    assert deep.decode_batch(pa.array([nested] * 40)).errors.null_count == 40
    with pytest.raises(Unreadable, match="the value is nested too deeply"):
        deep.decode_one(b"\x02" + b"\x02\x02" * 100_000 + b"\x00")


def test_the_last_of_two_equal_map_keys_counts() -> None:
    codec = codec_of({"type": "map", "values": "int"})
    payload = b"\x04\x02a\x02\x02a\x04\x00"
    assert codec.decode_one(payload) == {"a": 2}
    assert codec.decode_batch(pa.array([payload] * 50)).rows.column("value").to_pylist() == [[("a", 2)]] * 50


def test_a_message_is_decoded_into_its_own_version() -> None:
    payload = ORDERS.encode_one({"id": 2, "customer_id": 2**40, "note": "x"}, 1)
    assert ORDERS.read_as(1).decode_one(payload, 1) == {"id": 2, "customer_id": 2**40, "note": "x"}
    with pytest.raises(UnknownVersion):
        ORDERS.read_as(9)


def test_a_date_outside_python_s_years_is_valid() -> None:
    day = '{"type": "int", "logicalType": "date"}'
    pair = KeyValue(Definition("AVRO", day), Definition("LOCAL_DATE"), "SEPARATED")
    codec = codec_of(Definition("AVRO", day), pair)
    codec.validate(b"\xfe\xff\xff\xff\x0f", 0)
    codec.validate((2**31 - 1).to_bytes(8, "big"), 1, b"\xfe\xff\xff\xff\x0f")
    with pytest.raises(Unreadable, match="value: 2147483648 is out of the range"):
        codec.validate((2**31).to_bytes(8, "big"), 1, b"\x00")


def test_validate_rejects_payloads_of_another_version() -> None:
    payload = ORDERS.encode_one({"id": 2, "customer_id": 2**40, "note": "x"}, 1)
    ORDERS.validate(payload, 1)
    with pytest.raises(Unreadable, match="follow"):
        ORDERS.validate((payload or b"") + b"\0", 1)
    with pytest.raises(Unreadable, match="customer_id"):
        ORDERS.validate(payload, 0)
    with pytest.raises(UnknownVersion):
        ORDERS.validate(payload, 9)


def make_logical(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


AVRO: list[Any] = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    make_logical("int", "date"),
    make_logical("int", "time-millis"),
    *(
        make_logical("long", f"{local}timestamp-{unit}")
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    make_logical("long", "time-micros"),
    make_logical("bytes", "decimal", precision=9, scale=2),
    make_logical("bytes", "decimal", precision=30, scale=2),
    make_logical("fixed", "decimal", name="F", size=4, precision=9, scale=2),
    make_logical("string", "uuid"),
    make_logical("fixed", "duration", name="F", size=12),
    {"type": "fixed", "name": "F", "size": 3},
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "array", "items": "int"},
    {"type": "array", "items": make_logical("long", "time-micros")},
    {"type": "map", "values": "int"},
    {"type": "record", "name": "In", "fields": [{"name": "f", "type": "int", "default": 1}]},
    ["null", make_logical("long", "time-micros")],
    *(["int", "long"], ["float", "double"], ["int", "string"], ["null", "int"]),
]
PRIMITIVES = [
    *("BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE", "STRING", "BYTES"),
    *("DATE", "TIME", "TIMESTAMP", "INSTANT", "LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME"),
]
PROTOBUF = [
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64"),
    *("float", "double", "bool", "string", "bytes", "E", "M", "repeated int32", "map<string, int32>"),
    *("google.protobuf.Timestamp", "google.protobuf.Duration", "optional int32"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 127, 128, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 1.0, 1.5, 0.1, 1e39, float("inf")),
    *("", "x", "A", "é", "12345678-1234-5678-1234-567812345678"),
    *(b"", b"xyz", b"\xff" * 12, bytearray(b"xyz"), memoryview(b"xyz")),
    *(date(2026, 1, 1), date(1, 1, 1), date(9999, 12, 31)),
    datetime(2026, 1, 1, 1, 1, 1, 123456, UTC),
    datetime(1960, 1, 1, 1, 1, 1, 999999, timezone(timedelta(hours=5))),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 1), datetime(2026, 1, 1, 1, 1, 1, 123456)),  # noqa: DTZ001
    *(time(0), time(12), time(23, 59, 59, 999999), timedelta(hours=1), timedelta(days=-2)),
    *(Decimal("1.23"), Decimal("1.234"), Decimal("-0.01"), Decimal("9999999.99"), Decimal("99999999.99")),
    *(Decimal("1E5"), Decimal(0), Decimal(5)),
    *([], [1], [None], ["x"], [time(12)], [1.5], (1, 2), {}, {"k": 1}, {"k": None}, {"k": "x"}),
    *({"f": 2}, {"f": 2**31}),
    *({"member0": 1}, {"member0": 1, "member1": None}, {"member0": None, "member1": "x"}, {"member1": 1}),
    {"member0": 1, "member1": "x"},
]


def group_values() -> Iterator[tuple[pa.Array, list[Any]]]:
    """Yield the values grouped by their Arrow type, in batches of two and more."""
    values_by_type: dict[pa.DataType, list[Any]] = {}
    for value in VALUES:
        values_by_type.setdefault(pa.array([value]).type, []).append(value)
    for kind, values in values_by_type.items():
        yield pa.array([*values, *values], kind), [*values, *values]


GROUPS = list(group_values())


def try_encoding(write: Callable[[], bytes | None]) -> tuple[bytes | None, bool]:
    try:
        return write(), True
    except Unwritable:
        return None, False


def make_dict(name: str, value: Any) -> dict[str, Any]:
    return {name: value}


def compare_encodings(codec: Codec, column: str, wrapped: Callable[[Any], Any]) -> int:
    """Encode all values alone and in batches, assert equal results, and return the number of valid values."""
    written = 0
    for array, values in GROUPS:
        encoded = codec.encode_batch(pa.record_batch({column: array}))
        for number, value in enumerate(values):
            alone = try_encoding(lambda: codec.encode_one(wrapped(value)))  # noqa: B023  called at once
            together = encoded.payloads[number].as_py(), not encoded.errors[number].is_valid
            assert together == alone, (value, array.type, encoded.errors[number].as_py())
            written += alone[1]
    return written


@pytest.mark.parametrize("time_type", [False, True])
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON"])
@pytest.mark.parametrize("kind", AVRO, ids=json.dumps)
def test_a_field_is_encoded_alone_as_in_a_batch(kind: Any, schema_type: str, time_type: bool) -> None:  # noqa: FBT001  a parameter
    codec = codec_of(make_record(kind), kind=schema_type, time_type=time_type)
    assert compare_encodings(codec, "f0", partial(make_dict, "f0")) > 0


@pytest.mark.parametrize("time_type", [False, True])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_is_encoded_alone_as_in_a_batch(name: str, time_type: bool) -> None:  # noqa: FBT001  a parameter
    codec = codec_of(Definition(name), time_type=time_type)
    assert compare_encodings(codec, "value", lambda value: value) > 0


def test_a_protobuf_field_is_encoded_alone_as_in_a_batch() -> None:
    imports = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration"))
    fields = " ".join(f"{kind} f{number} = {number + 1};" for number, kind in enumerate(PROTOBUF))
    text = (
        f'syntax = "proto3"; {imports} enum E {{ A = 0; B = 1; }} message M {{ int32 f = 1; }} message R {{ {fields} }}'
    )
    codec = codec_of(make_native(text, "R"))
    for number, kind in enumerate(PROTOBUF):
        name = f"f{number}"
        assert compare_encodings(codec, name, partial(make_dict, name)) > 0, kind
