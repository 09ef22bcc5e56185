"""A value is taken or rejected, and written, the same way alone and in a batch, whatever it is and whatever the schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from sample_codecs import codec_of, native, record

from schemactl.codec import Codec, Definition, Unwritable


def logical(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


AVRO: list[Any] = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    logical("int", "date"),
    logical("int", "time-millis"),
    *(
        logical("long", f"{local}timestamp-{unit}")
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    logical("long", "time-micros"),
    logical("bytes", "decimal", precision=9, scale=2),
    logical("bytes", "decimal", precision=30, scale=2),
    logical("fixed", "decimal", name="F", size=4, precision=9, scale=2),
    logical("string", "uuid"),
    logical("fixed", "duration", name="F", size=12),
    {"type": "fixed", "name": "F", "size": 3},
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "array", "items": "int"},
    {"type": "array", "items": logical("long", "time-micros")},
    {"type": "map", "values": "int"},
    {"type": "record", "name": "In", "fields": [{"name": "f", "type": "int", "default": 1}]},
    ["null", logical("long", "time-micros")],
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


def groups() -> Iterator[tuple[pa.Array, list[Any]]]:
    """The values by the type that Arrow gives to each, in batches of two and more."""
    found: dict[pa.DataType, list[Any]] = {}
    for value in VALUES:
        found.setdefault(pa.array([value]).type, []).append(value)
    for kind, values in found.items():
        yield pa.array([*values, *values], kind), [*values, *values]


GROUPS = list(groups())


def outcome(write: Callable[[], bytes | None]) -> tuple[bytes | None, bool]:
    try:
        return write(), True
    except Unwritable:
        return None, False


def dict_of(name: str, value: Any) -> dict[str, Any]:
    return {name: value}


def compare(codec: Codec, column: str, wrapped: Callable[[Any], Any]) -> int:
    """How many values are written."""
    written = 0
    for array, values in GROUPS:
        encoded = codec.encode_batch(pa.record_batch({column: array}))
        for number, value in enumerate(values):
            alone = outcome(lambda: codec.encode_one(wrapped(value)))  # noqa: B023  called at once
            together = encoded.payloads[number].as_py(), not encoded.errors[number].is_valid
            assert together == alone, (value, array.type, encoded.errors[number].as_py())
            written += alone[1]
    return written


@pytest.mark.parametrize("time_type", [False, True])
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON"])
@pytest.mark.parametrize("kind", AVRO, ids=json.dumps)
def test_a_field_takes_alone_what_it_takes_in_a_batch(kind: Any, schema_type: str, time_type: bool) -> None:  # noqa: FBT001  a parameter
    codec = codec_of(record(kind), kind=schema_type, time_type=time_type)
    assert compare(codec, "f0", partial(dict_of, "f0")) > 0


@pytest.mark.parametrize("time_type", [False, True])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_takes_alone_what_it_takes_in_a_batch(name: str, time_type: bool) -> None:  # noqa: FBT001  a parameter
    codec = codec_of(Definition(name), time_type=time_type)
    assert compare(codec, "value", lambda value: value) > 0


def test_a_protobuf_field_takes_alone_what_it_takes_in_a_batch() -> None:
    imports = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration"))
    fields = " ".join(f"{kind} f{number} = {number + 1};" for number, kind in enumerate(PROTOBUF))
    text = (
        f'syntax = "proto3"; {imports} enum E {{ A = 0; B = 1; }} message M {{ int32 f = 1; }} message R {{ {fields} }}'
    )
    codec = codec_of(native(text, "R"))
    for number, kind in enumerate(PROTOBUF):
        name = f"f{number}"
        assert compare(codec, name, partial(dict_of, name)) > 0, kind
