"""AVRO payloads: the scalar and the columnar writer, and which reader is used.

Every part of a schema gives *pieces*: binary arrays with one element a value, whose elements in order are the value's
bytes. They are joined once, at the end. What does not fit its schema is marked and left to the writer of single messages,
which knows the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import avro_reader, avro_resolution
from .arrow_types import Choice, Group, Leaf, Options, Repeated, Shape, check_width, is_too_wide, shape_of
from .avro_columnar_reader import compile_program
from .avro_resolution import encode_default, prefix_length, zigzag
from .avro_schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    PrimitiveType,
    RecordField,
    RecordType,
    UnionType,
    parse,
)
from .byte_batch import Ints, Mask, make_binary_array, split_evenly
from .definition import Definition
from .payload_reader import PayloadReader, PayloadWriter
from .values import LIMITS, ShapeWriter, scale_of

# AVRO payloads (see `message.PayloadModule`).


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the definition."""
    shape = shape_of(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def make_reader(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Resolve the writer's schema to the reader's."""
    schema = parse(reader.text)
    shape = shape_of(schema, options)
    action = avro_resolution.resolve(parse(writer.text), schema)
    value = avro_reader.compile_reader(action, shape, options, as_python=True)
    storage = avro_reader.compile_reader(action, shape, options)
    program = None if is_too_wide([shape.type]) else compile_program(action, shape, options)
    return PayloadReader(
        shape.type,
        lambda payload: avro_reader.read_whole(value, payload, options),
        lambda payload: avro_reader.read_whole(storage, payload, options),
        program=program,
        strict=options.strict,
        # A default stands in the program's pool; a symbol is no longer than the definition.
        max_growth=(1 + (len(program.pool) if program else 0)) * len(reader.text.encode()),
    )


def make_writer(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written, one by one and many at once."""
    shape = shape_of(parse(writer.text), options)
    check_width([shape.type])
    return PayloadWriter(shape.type, AvroWriter().writer(shape), compile_column_writer(shape))


# A writer of Avro's binary form with the bytes of Java's GenericDatumWriter: one block for each array
# and map.


_WriteValue = Callable[[Any], bytes]


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
        return self.items([prefix_length(key.encode()) + piece for key, piece in pieces])

    def branch(self, index: int, piece: bytes) -> bytes:
        """See ShapeWriter."""
        return zigzag(index) + piece

    def leaf(self, shape: Leaf) -> _WriteValue:
        """See ShapeWriter."""
        schema = shape.schema
        if isinstance(schema, EnumType):
            return {symbol: zigzag(index) for index, symbol in enumerate(schema.symbols)}.__getitem__
        if isinstance(schema.logical, DecimalType):
            return _write_decimal(schema.size if isinstance(schema, FixedType) else None)
        return _PLAIN[schema.type]


def _write_decimal(size: int | None) -> _WriteValue:
    def write_decimal(value: Any) -> bytes:
        # One bit more than the magnitude, for the sign: as few bytes as Java's BigInteger.toByteArray.
        shortest = ((value if value >= 0 else ~value).bit_length() + 8) // 8
        raw: bytes = value.to_bytes(size or shortest, "big", signed=True)
        return prefix_length(raw) if size is None else raw

    return write_decimal


_PLAIN: Final[dict[str, _WriteValue]] = {
    "null": lambda _: b"",
    "boolean": struct.Struct("<?").pack,
    "int": zigzag,
    "long": zigzag,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: prefix_length(value.encode()),
    "bytes": prefix_length,
    "fixed": bytes,
}


# The columnar writer: the same bytes as the writer of single messages, one column at a time


Pieces = list[pa.BinaryArray]

_WriteColumn = Callable[[pa.Array, Ints, Mask], Pieces]
"""From values without nulls, the batch's row of each, and the mask of rows to mark, to the values' pieces."""

_INT: Final = LIMITS["int"]


def compile_column_writer(shape: Shape) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    """Return what makes of values of `shape.type` their bytes, and the mask of those whose bytes mean nothing.

    The function raises pa.ArrowCapacityError when the bytes are more than one array holds (2 GiB).
    """
    write = _writer(shape)

    def write_all(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        bad: Mask = np.zeros(len(values), bool)
        return _join(write(values, np.arange(len(values)), bad), len(values)), bad

    return write_all


def numbers(values: Ints) -> pa.BinaryArray:
    """Return each number as Avro writes it (see `avro_resolution.zigzag`)."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if not len(bits) or bits.max() < 0x80:
        return split_evenly(bits.astype(np.uint8), 1)
    # Seven bits to a byte.
    size = np.ones(len(bits), np.int64)
    for shift in range(7, 64, 7):
        more = bits >> np.uint64(shift) != 0
        if not more.any():
            break
        size += more
    ends = np.cumsum(size)
    out = np.empty(ends[-1], np.uint8)
    first = ends - size
    for place in range(int(size.max())):
        lanes = np.flatnonzero(size > place)
        part = (bits[lanes] >> np.uint64(7 * place)).astype(np.uint8) & np.uint8(0x7F)
        out[first[lanes] + place] = part | ((size[lanes] > place + 1).astype(np.uint8) << np.uint8(7))
    return make_binary_array(ends, out)


def _writer(shape: Shape) -> _WriteColumn:
    match shape:
        case Choice():
            return _union(shape)
        case Group():
            return _present(_record(shape))
        case Repeated():
            return _present(_items(shape))
        case Leaf(schema=PrimitiveType(type="null")):
            return lambda _values, _rows, _bad: []
        case Leaf():
            return _present(_leaf(shape))


def _present(write: _WriteColumn) -> _WriteColumn:
    """Mark the nulls: whatever takes them is a union."""

    def write_present(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        if not values.null_count:
            return write(values, rows, bad)
        valid = np.asarray(values.is_valid())
        bad[rows[~valid]] = True
        return _spread(write(values.drop_null(), rows[valid], bad), valid)

    return write_present


def _record(shape: Group) -> _WriteColumn:
    parts: list[tuple[str | None, _WriteColumn]] = []
    for part in shape.schema.fields:
        if part.name in shape.fields:
            parts.append((part.name, _writer(shape.fields[part.name])))
        else:
            parts.append((None, _cut(part.schema)))

    def write_record(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        nothing = pa.nulls(len(values))
        return [
            piece
            for name, write in parts
            for piece in write(nothing if name is None else values.field(name), rows, bad)
        ]

    return write_record


def _cut(schema: Any) -> _WriteColumn:
    """Write what the columns leave out where a recursion is cut, which can only be a null."""
    kinds = [branch.type for branch in schema.branches] if isinstance(schema, UnionType) else []

    def write_cut(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        if "null" not in kinds:
            bad[rows] = True
            return []
        return [numbers(np.full(len(values), kinds.index("null")))]

    return write_cut


def _items(shape: Repeated) -> _WriteColumn:
    part = _writer(shape.part)
    is_map = not isinstance(shape.schema, ArrayType)

    def write_items(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        offsets = np.asarray(values.offsets).astype(np.int64)
        counts = np.diff(offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        owners = np.repeat(rows, counts)
        if is_map:
            pieces = _texts(values.keys[first:last]) + part(values.items[first:last], owners, bad)
        else:
            pieces = part(values.values[first:last], owners, bad)
        # The items of one value lie side by side: its bytes begin with the first and end with the last.
        items = _join(pieces, last - first)
        body = _regrouped(items, offsets - first)
        # One block, unless it is empty, and then the empty block that ends them all.
        filled = counts > 0
        end = make_binary_array(np.cumsum(filled), np.zeros(int(filled.sum()), np.uint8))
        return [numbers(counts), body, end]

    return write_items


def _union(shape: Choice) -> _WriteColumn:
    kinds = [branch.type for branch in shape.schema.branches]
    null = kinds.index("null") if "null" in kinds else None
    branches = [
        (index, member, _writer(part))
        for index, (part, member) in enumerate(zip(shape.branches, shape.members, strict=True))
        if part is not None
    ]
    choose = _members if any(member is not None for _, member, _ in branches) else _widened(shape)

    def write_union(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        valid = np.asarray(values.is_valid())
        if null is None:
            bad[rows[~valid]] = True
        index = np.full(len(values), 0 if null is None else null)
        pieces: Pieces = []
        for (number, _, write), (held, taken) in zip(branches, choose(values, valid, branches), strict=True):
            index[taken] = number
            pieces += _spread(write(held, rows[taken], bad), taken)
            valid = valid & ~taken
        # What no branch took, or more than one.
        bad[rows[valid]] = True
        return [numbers(index), *pieces]

    return write_union


_Branches = Sequence[tuple[int, str | None, _WriteColumn]]


def _members(values: pa.Array, valid: Mask, branches: _Branches) -> list[tuple[pa.Array, Mask]]:
    """For each branch the values that chose it, and which those are: exactly one member of the struct is not null."""
    held = [values.field(member) for _, member, _ in branches]
    given = [valid & np.asarray(part.is_valid()) for part in held]
    once = np.sum(given, axis=0) == 1
    return [(_filter(part, mask & once), mask & once) for part, mask in zip(held, given, strict=True)]


def _widened(shape: Choice) -> Callable[[pa.Array, Mask, _Branches], list[tuple[pa.Array, Mask]]]:
    """One branch takes all values; of two, the wider takes what the narrower, if it is first, does not hold exactly."""

    def choose(values: pa.Array, valid: Mask, branches: _Branches) -> list[tuple[pa.Array, Mask]]:
        left = valid
        chosen = []
        for index, _, _ in branches:
            taken = left if len(branches) == 1 else left & _holds(shape.schema.branches[index].type, values)
            chosen.append((_filter(values, taken), taken))
            left = left & ~taken
        return chosen

    return choose


def _holds(kind: str, values: pa.Array) -> Mask:
    """Which values a number of Avro's type `kind` holds without a change."""
    plain = _plain(values.fill_null(0))
    held: Mask = np.ones(len(values), bool)
    if kind == "int":
        held = (plain >= _INT[0]) & (plain <= _INT[1])
    elif kind == "float":
        with np.errstate(over="ignore"):
            held = (plain.astype(np.float32) == plain) | np.isnan(plain)
    return held


def _leaf(shape: Leaf) -> _WriteColumn:
    schema = shape.schema
    if isinstance(schema, EnumType):
        return _enum(pa.array(schema.symbols, pa.string()))
    if isinstance(schema.logical, DecimalType):
        return _write_decimals(schema.logical, schema.size if isinstance(schema, FixedType) else None)
    if isinstance(schema, FixedType):
        return _fixed(schema.size)
    if schema.type in ("int", "long"):
        return _integer(shape)
    return {"boolean": _booleans, "float": _floats, "double": _doubles}.get(
        schema.type, lambda values, _rows, _bad: _texts(values)
    )


def _integer(shape: Leaf) -> _WriteColumn:
    factor = scale_of(shape).factor
    is_int = shape.schema.type == "int"

    def write_integer(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        plain = _plain(values).astype(np.int64, copy=False)
        if factor != 1:
            plain = plain // factor
        if is_int and values.type.bit_width > 32:
            bad[rows[(plain < _INT[0]) | (plain > _INT[1])]] = True
        return [numbers(plain)]

    return write_integer


def _enum(symbols: pa.Array) -> _WriteColumn:
    def write_enum(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        index = pc.index_in(values, symbols)
        if index.null_count:
            bad[rows[np.asarray(index.is_null())]] = True
            index = index.fill_null(0)
        return [numbers(np.asarray(index).astype(np.int64))]

    return write_enum


def _fixed(size: int) -> _WriteColumn:
    def write_fixed(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        bad[rows[_lengths(values) != size]] = True
        return [values]

    return write_fixed


def _write_decimals(logical: DecimalType, size: int | None) -> _WriteColumn:
    limit = 10**logical.precision

    def write_decimal(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        low, high = _plain(values)[0::2], _plain(values)[1::2].view(np.int64)
        sign = high >> 63
        # The magnitude as bits: a negative number's complement, which is one less.
        low_bits, high_bits = low ^ sign.view(np.uint64), high ^ sign
        for negative in (False, True):
            most = limit - 1 - negative
            most_high, most_low = np.int64(most >> 64), np.uint64(most & (2**64 - 1))
            over = (high_bits > most_high) | ((high_bits == most_high) & (low_bits > most_low))
            bad[rows[over & ((sign < 0) == negative)]] = True
        count = len(values)
        big_endian = np.empty((count, 16), np.uint8)
        big_endian[:, :8] = high.astype(">i8").view(np.uint8).reshape(count, 8)
        big_endian[:, 8:] = low.astype(">u8").view(np.uint8).reshape(count, 8)
        if size is not None:
            wide = np.repeat(sign.astype(np.int8).view(np.uint8)[:, None], max(size, 16), axis=1)
            wide[:, -16:] = big_endian
            return [split_evenly(np.ascontiguousarray(wide[:, -size:]).reshape(-1), size)]
        # As few bytes as hold the number and its sign (java.math.BigInteger.toByteArray).
        length = np.ones(count, np.int64)
        for place in range(7, 127, 8):
            bits = low_bits >> np.uint64(place) if place < 64 else np.uint64(0)
            above = high_bits != 0 if place < 64 else high_bits >> np.int64(place - 64) != 0
            length += (bits != 0) | above
        kept = np.arange(16)[None, :] >= 16 - length[:, None]
        return [numbers(length), make_binary_array(np.cumsum(length), big_endian[kept])]

    return write_decimal


def _booleans(values: pa.Array, _rows: Ints, _bad: Mask) -> Pieces:
    return [split_evenly(np.asarray(values.cast(pa.uint8())), 1)]


def _floats(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
    plain = _plain(values)
    with np.errstate(over="ignore"):
        narrow = plain.astype("<f4", copy=False)
    if values.type.bit_width > 32:
        bad[rows[np.isinf(narrow) & ~np.isinf(plain)]] = True
    return [split_evenly(narrow.view(np.uint8), 4)]


def _doubles(values: pa.Array, _rows: Ints, _bad: Mask) -> Pieces:
    return [split_evenly(_plain(values).astype("<f8", copy=False).view(np.uint8), 8)]


def _texts(values: pa.Array) -> Pieces:
    """Write string and bytes: a length, and what it counts."""
    raw = values.cast(pa.binary())
    return [numbers(_lengths(raw)), raw]


def _plain(values: pa.Array) -> Any:
    """Return the numbers of an array, as numpy sees its buffer: two words for each decimal."""
    kind = values.type
    width = kind.bit_width // 8
    if pa.types.is_decimal(kind):
        return np.frombuffer(values.buffers()[1], "<u8")[2 * values.offset : 2 * (values.offset + len(values))]
    letter = "f" if pa.types.is_floating(kind) else "i"
    if not len(values):
        return np.zeros(0, f"{letter}{width}")
    return np.frombuffer(values.buffers()[1], f"<{letter}{width}")[values.offset : values.offset + len(values)]


def _offsets(values: pa.Array) -> Any:
    if not len(values):
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]


def _lengths(values: pa.Array) -> Ints:
    lengths: Ints = np.diff(_offsets(values)).astype(np.int64)
    return lengths


def _filter(values: pa.Array, mask: Mask) -> pa.Array:
    return values if mask.all() else values.filter(pa.array(mask))


def _regrouped(values: pa.BinaryArray, bounds: Ints) -> pa.BinaryArray:
    """One element for each pair of neighbours in `bounds`: the bytes of the elements between. Nothing is copied."""
    offsets = np.ascontiguousarray(_offsets(values)[bounds])
    data = values.buffers()[2] if len(values) else None
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(offsets), data or pa.py_buffer(b"")])


def _spread(pieces: Pieces, taken: Mask) -> Pieces:
    """Return the pieces with nothing for the values that are not `taken`."""
    if taken.all():
        return pieces
    bounds = np.zeros(len(taken) + 1, np.int64)
    np.cumsum(taken, out=bounds[1:])
    return [_regrouped(piece, bounds) for piece in pieces]


def _join(pieces: Pieces, count: int) -> pa.BinaryArray:
    if not pieces:
        return make_binary_array(np.zeros(count, np.int64), np.zeros(0, np.uint8))
    # The separator becomes a scalar here: made at import, it would have Arrow import pandas into each of Spark's processes.
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, b"")
