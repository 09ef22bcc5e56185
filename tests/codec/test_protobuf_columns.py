"""The columnar path of protobuf gives the same values, payloads and reasons as the scalar path."""

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
from random_protobuf import ProtoMaker, read_json_definition
from sample_codecs import codec_of, make_native, values_of

from schemactl.codec import Codec, Decoded, Definition, KeyValue, Options, Version

pytestmark = pytest.mark.slow

pytest.importorskip("ptars")


@contextmanager
def hide_ptars() -> Iterator[None]:
    """Make imports of ptars fail."""
    modules = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "ptars"}
    sys.modules["ptars"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["ptars"]
        sys.modules.update(modules)


def check_same(codec: Codec, payloads: pa.Array, versions: pa.Array | None = None) -> Decoded:
    with hide_ptars():
        scalar_codec = Codec(codec.versions, reader=codec.reader, options=codec.options)
        expected = scalar_codec.decode_batch(payloads, versions)
    decoded = codec.decode_batch(payloads, versions)
    assert decoded.errors.to_pylist() == expected.errors.to_pylist()
    decoded.rows.validate(full=True)
    assert decoded.rows.schema == expected.rows.schema
    # As text, NaN is equal to itself, and zero is not equal to negative zero.
    assert repr(values_of(decoded)) == repr(values_of(expected))
    with hide_ptars():
        expected_encoding = scalar_codec.encode_batch(expected.rows)
    encoded = codec.encode_batch(decoded.rows)
    assert encoded.payloads.to_pylist() == expected_encoding.payloads.to_pylist()
    assert encoded.errors.to_pylist() == expected_encoding.errors.to_pylist()
    return decoded


@given(st.integers(min_value=0, max_value=2**32), st.integers(1, 2))
@EXAMPLES
def test_columns_are_those_of_protobuf_itself(seed: int, depth: int) -> None:
    maker = ProtoMaker(seed, groups=seed % 10 == 0)
    codec = Codec([Version(0, maker.make_definition())], options=Options(recursion_depth=depth))
    payloads = [maker.make_payload(deterministic=seed % 3 > 0) for _ in range(40)]
    payloads += [maker.damage_payload(maker.make_payload()) for _ in range(seed % 2 * 60)]
    maker.random.shuffle(payloads)
    check_same(codec, pa.array([None, *payloads]))


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_columns_of_another_version_are_those_of_protobuf_itself(seed: int) -> None:
    maker = ProtoMaker(seed)
    versions = [Version(0, maker.make_definition()), Version(1, read_json_definition(maker.change_file(), maker.root))]
    codec = Codec(versions, reader=versions[seed % 2].schema, options=Options(recursion_depth=1))
    payloads = [maker.make_payload() for _ in range(40)]
    payloads += [maker.damage_payload(maker.make_payload()) for _ in range(seed % 4 * 20)]
    numbers = [maker.random.choice([0, 0, 1, None]) for _ in payloads]
    check_same(codec, pa.array(payloads), pa.array(numbers, pa.int64()))


def make_codec(text: str, **options: Any) -> Codec:
    return codec_of(make_native(text, "M"), **options)


def find_scalar_rows(codec: Codec, payloads: list[bytes]) -> list[bool] | None:
    """Return whether each payload needs the scalar path, or None if there is no columnar path."""
    message_decoder: Any = codec._get_decoder(0)
    decode_column = message_decoder.decoder.decode_column
    return None if decode_column is None else decode_column(pa.array(payloads))[1].tolist()


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


def test_usual_messages_are_decoded_and_encoded_by_columns() -> None:
    codec = make_codec(PLAIN)
    values = [
        {},
        {"a": -1, "b": [1, -2], "c": {"k": {"x": 2**64 - 1, "y": -0.0}, "": {"x": None, "y": 0.0}}, "e": "B"},
        {"d": 5, "f": "", "e": "7"},
    ]
    payloads = [codec.encode_one(value) or b"" for value in values]
    assert find_scalar_rows(codec, payloads) == [False] * 3
    rows = check_same(codec, pa.array(payloads)).rows
    message_encoder: Any = codec._get_encoder(0, None)
    # Only protobuf orders several entries of a map, and encodes an enum number without a name.
    assert message_encoder.encoder.encode_column(rows.to_struct_array())[1].tolist() == [False, True, True]


def test_a_slice_of_a_batch_is_its_rows() -> None:
    codec = make_codec(PLAIN)
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
def test_unsupported_definitions_have_no_columnar_path(text: str) -> None:
    codec = make_codec(text)
    assert find_scalar_rows(codec, [b""]) is None
    check_same(codec, pa.array([b"", b"\x0a\x00", b"\x10\x01"]))


def test_messages_nested_deeper_than_the_columns_need_the_scalar_path() -> None:
    codec = make_codec('syntax = "proto3"; message M { M l = 1; M r = 2; int32 x = 3; }', recursion_depth=3)
    payloads = [b"", b"\x0a\x02\x18\x07", b"\x0a\x04\x0a\x02\x18\x07", b"\x0a\x06\x0a\x04\x0a\x02\x18\x07"]
    assert find_scalar_rows(codec, payloads) == [False, False, False, True]
    check_same(codec, pa.array(payloads))


def test_duplicate_fields_keys_and_members_need_the_scalar_path() -> None:
    codec = make_codec(PLAIN)
    two_members = b"\x32\x01a\xe2\x2b\x01b"
    duplicate_key = b"\x1a\x03\x0a\x01k\x1a\x03\x0a\x01k"
    duplicate_field = b"\x08\x02\x08\x04"
    payloads = [b"\x08\x02", two_members, duplicate_key, duplicate_field]
    assert find_scalar_rows(codec, payloads) == [False, True, True, True]
    check_same(codec, pa.array(payloads))


def test_a_huge_length_is_rejected_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    codec = make_codec(PLAIN)
    huge = b"\xf7" + b"\xff" * 8 + b"\x01"
    payloads = [b"\x08\x02", b"\x32" + huge, b"\xe2\x2b" + huge, b"\x12" + huge, b"\x08" + huge] * 20
    decoded = check_same(codec, pa.array(payloads))
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True, False] * 20
    assert capfd.readouterr() == ("", "")


def test_a_damaged_message_leaves_most_others_to_the_columnar_path() -> None:
    codec = make_codec(PLAIN)
    payloads = [codec.encode_one({"a": number}) or b"" for number in range(1000)]
    payloads[500] = b"\x08"
    scalar_rows = find_scalar_rows(codec, payloads)
    assert scalar_rows is not None
    assert scalar_rows[500]
    assert sum(scalar_rows) <= 32
    check_same(codec, pa.array(payloads))


def test_the_value_of_a_pair_is_decoded_by_columns() -> None:
    codec = codec_of(KeyValue(Definition("STRING"), make_native(PLAIN, "M"), "INLINE"))
    payloads = [codec.encode_one({"key": f"k{n}", "value": {"a": n} if n % 3 else None}) for n in range(50)]
    payloads[7] = b"\0\0\0\1k\0\0\0\1\x08"
    rows = check_same(codec, pa.array(payloads)).rows.to_pylist()
    assert (rows[1]["key"], rows[1]["value"]["a"], rows[3]["value"], rows[7]["key"]) == ("k1", 1, None, None)
