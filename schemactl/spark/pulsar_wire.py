"""Pulsar's binary protocol in bytes: what PulsarApi.proto numbers, in the frames that a broker takes.

Only what a producer needs of it (`pulsar_producing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CONNECT: Final = 2
CONNECTED: Final = 3
PRODUCER: Final = 5
SEND: Final = 6
SEND_RECEIPT: Final = 7
SEND_ERROR: Final = 8
SUCCESS: Final = 13
ERROR: Final = 14
CLOSE_PRODUCER: Final = 15
PRODUCER_SUCCESS: Final = 17
PING: Final = 18
PONG: Final = 19
LOOKUP: Final = 23
LOOKUP_RESPONSE: Final = 24
GET_SCHEMA: Final = 34
GET_SCHEMA_RESPONSE: Final = 35
AUTH_CHALLENGE: Final = 36
AUTH_RESPONSE: Final = 37
"""Commands: a BaseCommand says which it holds in field 1, and holds it in the field of the same number."""

PROTOCOL_VERSION: Final = 15
"""What a broker may expect of this client: everything up to renewed tokens."""

_MAGIC: Final = b"\x0e\x01"
_POLYNOMIAL: Final = 0x82F63B78
_BLOCK: Final = 256


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a protobuf message by their numbers; of one that stands there twice, the last."""

    found: Mapping[int, int | bytes]

    def number(self, field: int, default: int = 0) -> int:
        """That of an integer, a truth value or an enum."""
        found = self.found.get(field, default)
        return found if isinstance(found, int) else default

    def data(self, field: int) -> bytes:
        """The bytes, those of a message within it included; none if it is not there."""
        found = self.found.get(field, b"")
        return found if isinstance(found, bytes) else b""

    def text(self, field: int) -> str:
        """The text; empty if it is not there."""
        return self.data(field).decode(errors="replace")


def encoded(fields: Mapping[int, Any]) -> bytes:
    """A protobuf message: integers and truth values as varints, texts, bytes, mappings as messages within it, lists as repeated.

    What is None is left out.
    """
    pieces: list[bytes] = []
    for number, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if one is None:
                continue
            if isinstance(one, int):
                pieces += (varint(number << 3), varint(one))
                continue
            data = one.encode() if isinstance(one, str) else one if isinstance(one, bytes) else encoded(one)
            pieces += (varint(number << 3 | 2), varint(len(data)), data)
    return b"".join(pieces)


def decoded(data: bytes) -> Fields:
    """The fields of a protobuf message.

    Raises:
        ValueError: it is none.
    """
    return Fields(dict(_fields(data)))


def repeated(data: bytes, field: int) -> list[bytes]:
    """Every message that stands in that field of a protobuf message."""
    return [found for number, found in _fields(data) if number == field and isinstance(found, bytes)]


def varint(number: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    if number < 128:
        return bytes((number,))
    pieces = bytearray()
    while number > 127:
        pieces.append(number & 127 | 128)
        number >>= 7
    pieces.append(number)
    return bytes(pieces)


def command(kind: int, fields: Mapping[int, Any]) -> bytes:
    """The frame of a command."""
    said = encoded({1: kind, kind: fields})
    return (len(said) + 4).to_bytes(4, "big") + len(said).to_bytes(4, "big") + said


def entry(send: Mapping[int, Any], metadata: Mapping[int, Any], payload: bytes) -> bytes:
    """The frame of CommandSend with an entry: MessageMetadata and payload behind their checksum."""
    said, about = encoded({1: SEND, SEND: send}), encoded(metadata)
    checked = b"".join((len(about).to_bytes(4, "big"), about, payload))
    head = (len(said) + len(checked) + 10).to_bytes(4, "big"), len(said).to_bytes(4, "big"), said, _MAGIC
    return b"".join((*head, crc32c(checked).to_bytes(4, "big"), checked))


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of four bytes or more.

    A CRC is linear, so what each byte of a block contributes is looked up by its place; zeros in front of all change nothing.
    """
    table = _contributions()
    inverted = bytes(255 - each for each in data[:4])
    filled = b"".join((bytes(-len(data) % _BLOCK), inverted, data[4:]))
    blocks = np.frombuffer(filled, np.uint8).reshape(-1, _BLOCK)
    found = 0
    first = [table[place].tolist() for place in range(4)]
    for start in range(0, len(blocks), 4096):
        each = np.bitwise_xor.reduce(table[np.arange(_BLOCK), blocks[start : start + 4096]], axis=1)
        for block in each.tolist():
            # What is found so far goes into the next block as if it stood in its first four bytes.
            found = (
                first[0][found & 255]
                ^ first[1][found >> 8 & 255]
                ^ first[2][found >> 16 & 255]
                ^ first[3][found >> 24]
                ^ block
            )
    return found ^ 0xFFFFFFFF


@cache
def _contributions() -> npt.NDArray[np.uint32]:
    """What a byte contributes to the CRC of a block, by its place there and its value."""
    last = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        last = np.where(last & 1, last >> 1 ^ _POLYNOMIAL, last >> 1).astype(np.uint32)
    table = np.empty((_BLOCK, 256), np.uint32)
    table[-1] = last
    for place in range(_BLOCK - 2, -1, -1):
        table[place] = last[table[place + 1] & 255] ^ table[place + 1] >> 8
    return table


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint_at(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint_at(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint_at(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
        if size > len(data) - at:
            raise ValueError(f"field {number} ends behind the message")
        yield number, data[at : at + size]
        at += size


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number there, and where it ends."""
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number has no end")
        found |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return found, at
        shift += 7
