"""Pulsar's binary protocol in bytes: protobuf's encoding, and checksums with known answers."""

from __future__ import annotations

import random

import pytest

from schemactl.spark.pulsar_wire import crc32c, decoded, encoded, entry, repeated, varint


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        # RFC 3720, B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_checksums_are_those_of_the_standard(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


def one_by_one(data: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def test_checksums_of_any_length_are_those_of_a_bit_at_a_time() -> None:
    chance = random.Random(7)  # noqa: S311
    for size in (4, 5, 251, 252, 255, 256, 257, 511, 512, 513, 5_000):
        data = chance.randbytes(size)
        assert (size, crc32c(data)) == (size, one_by_one(data))
    long = chance.randbytes(300)
    # More blocks than are looked up at once; what an entry of zeros in front contributes is known.
    assert crc32c(bytes(2**20) + long) == one_by_one(bytes(2**20) + long)


def test_a_message_has_the_bytes_of_protobuf() -> None:
    fields = {1: 150, 2: "testing", 3: {1: 150}, 4: [b"a", b""], 5: None, 6: True, 16: 2**64 - 1}
    data = encoded(fields)
    assert data == bytes.fromhex(
        "089601120774657374696e671a030896012201612200300180 01ffffffffffffffffff01".replace(" ", "")
    )
    found = decoded(data)
    assert (found.number(1), found.text(2), found.number(6), found.number(16)) == (
        150,
        "testing",
        1,
        2**64 - 1,
    )
    assert decoded(found.data(3)).number(1) == 150
    assert repeated(data, 4) == [b"a", b""]
    assert (found.number(5, 9), found.data(5), found.text(7)) == (9, b"", "")


def test_fields_of_other_wire_types_are_passed_over() -> None:
    data = b"\x09" + bytes(8) + b"\x15" + bytes(4) + encoded({3: 7})
    assert decoded(data).number(3) == 7


@pytest.mark.parametrize("data", [b"\x08", b"\x08\x80", b"\x12\x05ab", b"\x0b", b"\x09\x00", b"\x80" * 11])
def test_what_is_cut_off_or_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"has no end|ends behind the message|unknown wire type"):
        decoded(data)


def test_an_entry_s_frame_holds_its_lengths_and_its_checksum() -> None:
    frame = entry({1: 7}, {1: "p"}, b"payload")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    said = int.from_bytes(frame[4:8], "big")
    assert frame[8 : 8 + said] == encoded({1: 6, 6: {1: 7}})
    assert frame[8 + said : 10 + said] == b"\x0e\x01"
    checked = frame[14 + said :]
    assert int.from_bytes(frame[10 + said : 14 + said], "big") == one_by_one(checked)
    assert checked == b"\0\0\0\x03" + encoded({1: "p"}) + b"payload"


def test_numbers_grow_by_seven_bits_a_byte() -> None:
    assert [varint(number) for number in (0, 127, 128, 300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]
