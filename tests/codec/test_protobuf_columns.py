"""Protobuf payloads column by column: nothing but speed may tell that from message by message."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_protobuf import ProtoMaker, definition_of
from sample_codecs import codec_of, native, values_of

from schemactl.codec import Codec, Decoded, Definition, KeyValue, Options, Version

pytestmark = pytest.mark.slow

pytest.importorskip("ptars")


@contextmanager
def absent() -> Iterator[None]:
    """Without ptars, as far as imports can tell."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "ptars"}
    sys.modules["ptars"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["ptars"]
        sys.modules.update(kept)


def check_same(codec: Codec, payloads: pa.Array, versions: pa.Array | None = None) -> Decoded:
    with absent():
        one_by_one = Codec(codec.versions, reader=codec.reader, options=codec.options)
        expected = one_by_one.decode_batch(payloads, versions)
    found = codec.decode_batch(payloads, versions)
    assert found.errors.to_pylist() == expected.errors.to_pylist()
    found.rows.validate(full=True)
    assert found.rows.schema == expected.rows.schema
    # By text: NaN is equal to itself then, and zero not to minus zero.
    assert repr(values_of(found)) == repr(values_of(expected))
    with absent():
        written = one_by_one.encode_batch(expected.rows)
    again = codec.encode_batch(found.rows)
    assert again.payloads.to_pylist() == written.payloads.to_pylist()
    assert again.errors.to_pylist() == written.errors.to_pylist()
    return found


@given(st.integers(min_value=0, max_value=2**32), st.integers(1, 2))
@EXAMPLES
def test_columns_are_those_of_protobuf_itself(seed: int, depth: int) -> None:
    maker = ProtoMaker(seed, groups=seed % 10 == 0)
    codec = Codec([Version(0, maker.definition())], options=Options(recursion_depth=depth))
    payloads = [maker.payload(deterministic=seed % 3 > 0) for _ in range(40)]
    payloads += [maker.damaged(maker.payload()) for _ in range(seed % 2 * 60)]
    maker.random.shuffle(payloads)
    check_same(codec, pa.array([None, *payloads]))


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_columns_of_another_version_are_those_of_protobuf_itself(seed: int) -> None:
    maker = ProtoMaker(seed)
    versions = [Version(0, maker.definition()), Version(1, definition_of(maker.changed(), maker.root))]
    codec = Codec(versions, reader=versions[seed % 2].schema, options=Options(recursion_depth=1))
    payloads = [maker.payload() for _ in range(40)]
    payloads += [maker.damaged(maker.payload()) for _ in range(seed % 4 * 20)]
    numbers = [maker.random.choice([0, 0, 1, None]) for _ in payloads]
    check_same(codec, pa.array(payloads), pa.array(numbers, pa.int64()))


def proto(text: str, **options: Any) -> Codec:
    return codec_of(native(text, "M"), **options)


def find_scalar_rows(codec: Codec, payloads: list[bytes]) -> list[bool] | None:
    """Return whether each payload needs the scalar path, or None if there is no columnar path."""
    reader: Any = codec._get_reader(0)
    read_column = reader.reader.read_column
    return None if read_column is None else read_column(pa.array(payloads))[1].tolist()


PLAIN = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message M {
  enum E { A = 0; B = 1; }
  sint64 a = 1; repeated int32 b = 2; map<string, M2> c = 3; google.protobuf.Timestamp d = 4; E e = 17;
  oneof one { string f = 6; bytes g = 700; }
}
message M2 { optional uint64 x = 1; double y = 2; }
"""


def test_what_is_plain_is_read_and_written_column_by_column() -> None:
    codec = proto(PLAIN)
    values = [
        {},
        {"a": -1, "b": [1, -2], "c": {"k": {"x": 2**64 - 1, "y": -0.0}, "": {"x": None, "y": 0.0}}, "e": "B"},
        {"d": 5, "f": "", "e": "7"},
    ]
    payloads = [codec.encode_one(value) or b"" for value in values]
    assert find_scalar_rows(codec, payloads) == [False] * 3
    rows = check_same(codec, pa.array(payloads)).rows
    writer: Any = codec._get_writer(0)
    # Several entries of a map are protobuf's to order, and a number without a name is to be understood.
    assert writer.writer.write_column(rows.to_struct_array())[1].tolist() == [False, True, True]


def test_a_slice_of_a_batch_is_its_rows() -> None:
    codec = proto(PLAIN)
    payloads = pa.array([codec.encode_one({"a": number, "b": [number]}) for number in range(90)])
    assert check_same(codec, payloads[7:60]).rows.column("a").to_pylist() == list(range(7, 60))


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 x = 1; } }',
        'syntax = "proto3"; message M { int32 x = 536870911; }',
        'syntax = "proto2"; message N {} message M { required N n = 1; optional int32 x = 2; }',
        'syntax = "proto3"; message M {}',
    ],
)
def test_what_columns_cannot_serve_is_read_message_by_message(text: str) -> None:
    codec = proto(text)
    assert find_scalar_rows(codec, [b""]) is None
    check_same(codec, pa.array([b"", b"\x0a\x00", b"\x10\x01"]))


def test_a_message_that_holds_itself_often_is_not_written_out_in_full() -> None:
    codec = proto('syntax = "proto3"; message M { M l = 1; M r = 2; int32 x = 3; }', recursion_depth=3)
    payloads = [b"", b"\x0a\x02\x18\x07", b"\x0a\x04\x0a\x02\x18\x07", b"\x0a\x06\x0a\x04\x0a\x02\x18\x07"]
    assert find_scalar_rows(codec, payloads) == [False, False, False, True]
    check_same(codec, pa.array(payloads))


def test_what_comes_twice_is_left_to_protobuf() -> None:
    codec = proto(PLAIN)
    one_of_two = b"\x32\x01a\xe2\x2b\x01b"
    a_key_twice = b"\x1a\x03\x0a\x01k\x1a\x03\x0a\x01k"
    a_field_twice = b"\x08\x02\x08\x04"
    payloads = [b"\x08\x02", one_of_two, a_key_twice, a_field_twice]
    assert find_scalar_rows(codec, payloads) == [False, True, True, True]
    check_same(codec, pa.array(payloads))


def test_a_length_that_no_message_can_have_is_told_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    codec = proto(PLAIN)
    huge = b"\xf7" + b"\xff" * 8 + b"\x01"
    payloads = [b"\x08\x02", b"\x32" + huge, b"\xe2\x2b" + huge, b"\x12" + huge, b"\x08" + huge] * 20
    decoded = check_same(codec, pa.array(payloads))
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True, False] * 20
    assert capfd.readouterr() == ("", "")


def test_few_bad_messages_leave_the_others_to_columns() -> None:
    codec = proto(PLAIN)
    payloads = [codec.encode_one({"a": number}) or b"" for number in range(1000)]
    payloads[500] = b"\x08"
    left = find_scalar_rows(codec, payloads)
    assert left is not None
    assert left[500]
    assert sum(left) <= 32
    check_same(codec, pa.array(payloads))


def test_a_half_of_a_pair_is_read_column_by_column_too() -> None:
    codec = codec_of(KeyValue(Definition("STRING"), native(PLAIN, "M"), "INLINE"))
    payloads = [codec.encode_one({"key": f"k{n}", "value": {"a": n} if n % 3 else None}) for n in range(50)]
    payloads[7] = b"\0\0\0\1k\0\0\0\1\x08"
    rows = check_same(codec, pa.array(payloads)).rows.to_pylist()
    assert (rows[1]["key"], rows[1]["value"]["a"], rows[3]["value"], rows[7]["key"]) == ("k1", 1, None, None)
