"""A writer of Avro's binary form with the bytes of Java's GenericDatumWriter: one block for each array and map."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from .columns import Leaf
from .defaults import encode_default, sized, zigzag
from .fitting import ShapeWriter
from .schema import DecimalType, EnumType, FixedType, RecordField, RecordType

_Write = Callable[[Any], bytes]


class AvroWriter(ShapeWriter[bytes]):
    """A field that is absent has its default."""

    null = b""

    def default(self, part: RecordField) -> bytes:
        """See ShapeWriter."""
        return encode_default(part.schema, part.default)

    def record(self, schema: RecordType) -> Callable[[list[bytes]], bytes]:  # noqa: ARG002  names are not written
        """See ShapeWriter."""
        return b"".join

    def items(self, pieces: list[bytes]) -> bytes:
        """See ShapeWriter."""
        return b"".join((zigzag(len(pieces)), *pieces, b"\0")) if pieces else b"\0"

    def entries(self, pieces: list[tuple[str, bytes]]) -> bytes:
        """See ShapeWriter."""
        return self.items([sized(key.encode()) + piece for key, piece in pieces])

    def branch(self, index: int, piece: bytes) -> bytes:
        """See ShapeWriter."""
        return zigzag(index) + piece

    def leaf(self, shape: Leaf) -> _Write:
        """See ShapeWriter."""
        schema = shape.schema
        if isinstance(schema, EnumType):
            return {symbol: zigzag(index) for index, symbol in enumerate(schema.symbols)}.__getitem__
        if isinstance(schema.logical, DecimalType):
            return _decimal(schema.size if isinstance(schema, FixedType) else None)
        return _PLAIN[schema.type]


def _decimal(size: int | None) -> _Write:
    def write_decimal(value: Any) -> bytes:
        # One bit more than the magnitude, for the sign: as few bytes as Java's BigInteger.toByteArray.
        shortest = ((value if value >= 0 else ~value).bit_length() + 8) // 8
        raw: bytes = value.to_bytes(size or shortest, "big", signed=True)
        return sized(raw) if size is None else raw

    return write_decimal


_PLAIN: Final[dict[str, _Write]] = {
    "null": lambda _: b"",
    "boolean": struct.Struct("<?").pack,
    "int": zigzag,
    "long": zigzag,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: sized(value.encode()),
    "bytes": sized,
    "fixed": bytes,
}
