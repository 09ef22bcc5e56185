"""Encode and decode variable-length integers, split a KEY_VALUE into its parts, and compute how many digits fit in a fixed."""

from __future__ import annotations

import math

from .definition import Unreadable

_MAX_VARINT_BYTES = 10


def encode_varint(bits: int) -> bytes:
    """Encode an unsigned integer as protobuf and Avro write it: seven bits for each byte, lowest bits first."""
    if bits < 0x80:
        return bytes((bits,))
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Encode a signed integer of 64 bits in Avro's variable-length zig-zag form."""
    return encode_varint(((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF)


def decode_varint(data: bytes, offset: int, end: int | None = None) -> tuple[int, int]:
    """Decode the variable-length integer at `offset`, and return it with the offset after it.

    Raises:
        Unreadable: if it is longer than ten bytes, or if the data end inside it.
    """
    end = len(data) if end is None else end
    value = 0
    for index, byte in enumerate(data[offset : min(end, offset + _MAX_VARINT_BYTES)]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, offset + index + 1
    is_too_long = end - offset >= _MAX_VARINT_BYTES
    raise Unreadable("a number has more than 10 bytes" if is_too_long else "the message ends inside a number", offset)


def split_pair(data: bytes) -> tuple[bytes | None, bytes | None, int]:
    """Split a KEY_VALUE like Java's KeyValue: each part follows its length in four bytes, big-endian, and -1 is null.

    Returns:
        The key, the value, and the offset of the bytes after them.

    Raises:
        InvalidPair: if a length is missing, less than -1, or larger than the rest of the data.
    """
    parts: list[bytes | None] = []
    offset = 0
    for part in ("key", "value"):
        remaining = len(data) - offset - 4
        if remaining < 0:
            raise InvalidPair(part, None, 0, offset)
        length = int.from_bytes(data[offset : offset + 4], "big", signed=True)
        if not -1 <= length <= remaining:
            raise InvalidPair(part, length, remaining, offset)
        offset += 4
        parts.append(None if length < 0 else data[offset : offset + length])
        offset += max(length, 0)
    return parts[0], parts[1], offset


def join_pair(key: bytes | None, value: bytes | None) -> bytes:
    """Return the KEY_VALUE of two parts (KeyValue.encode)."""
    return b"".join(
        (-1 if part is None else len(part)).to_bytes(4, "big", signed=True) + (part or b"") for part in (key, value)
    )


class InvalidPair(Unreadable):
    """A length in a KEY_VALUE is missing, invalid, or larger than the rest of the bytes.

    Attributes:
        part: `key` or `value`.
        length: the length, or None if the bytes end before it.
        remaining: the number of bytes after the length.
    """

    def __init__(self, part: str, length: int | None, remaining: int, offset: int) -> None:
        super().__init__(
            f"the message ends before the {part}'s length"
            if length is None
            else f"the {part} has a length of {length} bytes, but {remaining} are left",
            offset,
        )
        self.part = part
        self.length = length
        self.remaining = remaining


def compute_max_precision(size: int) -> int:
    """Return the number of digits that always fit in a fixed of `size` bytes.

    Source: LogicalTypes.Decimal.maxPrecision, which computes with Java's ints: they overflow from 268,435,456 bytes on.
    """
    bits = (8 * size - 1 + (1 << 31)) % (1 << 32) - (1 << 31)
    return math.floor(math.log10(2) * bits)
