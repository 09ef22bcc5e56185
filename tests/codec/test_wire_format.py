"""Variable-length integers, and the split of a KEY_VALUE."""

from __future__ import annotations

import pytest

from schemactl.codec.definition import Unreadable
from schemactl.codec.wire_format import InvalidPair, decode_varint, encode_varint, encode_zigzag, join_pair, split_pair


@pytest.mark.parametrize(
    ("bits", "data"),
    [
        (0, "00"),
        (1, "01"),
        (0x7F, "7f"),
        (0x80, "8001"),
        (300, "ac02"),
        (2**32 - 1, "ffffffff0f"),
        (2**63, "80808080808080808001"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_a_varint_is_the_one_of_the_protobuf_documentation(bits: int, data: str) -> None:
    assert encode_varint(bits).hex() == data
    assert decode_varint(b"\xff" + bytes.fromhex(data) + b"\xff", 1) == (bits, 1 + len(data) // 2)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_a_zigzag_number_is_the_one_of_the_avro_specification(value: int, data: str) -> None:
    assert encode_zigzag(value).hex() == data


@pytest.mark.parametrize(
    ("data", "end", "message"),
    [
        ("", None, "byte 0: the message ends inside a number"),
        ("80", None, "byte 0: the message ends inside a number"),
        ("8001", 1, "byte 0: the message ends inside a number"),
        ("80" * 9, None, "byte 0: the message ends inside a number"),
        ("80" * 10, None, "byte 0: a number has more than 10 bytes"),
        ("80" * 10 + "01", None, "byte 0: a number has more than 10 bytes"),
    ],
)
def test_a_varint_that_does_not_end_is_unreadable(data: str, end: int | None, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode_varint(bytes.fromhex(data), 0, end)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("key", "value"), [(b"", b""), (b"k", b"v"), (None, b"v"), (b"k", None), (None, None), (b"\0" * 300, b"")]
)
def test_a_joined_pair_splits_into_its_parts(key: bytes | None, value: bytes | None) -> None:
    data = join_pair(key, value)
    assert split_pair(data) == (key, value, len(data))
    assert split_pair(data + b"rest") == (key, value, len(data))


@pytest.mark.parametrize(
    ("data", "part", "length", "remaining", "offset"),
    [
        ("", "key", None, 0, 0),
        ("000000", "key", None, 0, 0),
        ("00000001", "key", 1, 0, 0),
        ("fffffffe", "key", -2, 0, 0),
        ("7fffffff00", "key", 2**31 - 1, 1, 0),
        ("00000000", "value", None, 0, 4),
        ("0000000161000000", "value", None, 0, 5),
        ("000000016100000002ff", "value", 2, 1, 5),
        ("ffffffff80000000", "value", -(2**31), 0, 4),
    ],
)
def test_a_pair_with_a_wrong_length_names_the_part(
    data: str, part: str, length: int | None, remaining: int, offset: int
) -> None:
    with pytest.raises(InvalidPair) as caught:
        split_pair(bytes.fromhex(data))
    error = caught.value
    assert (error.part, error.length, error.remaining, error.offset) == (part, length, remaining, offset)
