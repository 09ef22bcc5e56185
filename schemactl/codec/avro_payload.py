"""Decode and encode AVRO payloads (see `message.PayloadModule`), one by one and by columns.

The columnar writer makes *pieces* of each part of a schema: binary arrays with one element for each value. The bytes of a value are its
elements in the order of the pieces, which are joined once at the end. A value that does not fit its schema is marked and left to the scalar
writer, which knows the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import avro_reader, avro_resolution
from .arrow_types import Choice, Group, Leaf, Options, Repeated, Shape, is_too_wide, make_shape
from .avro_columnar_reader import compile_program
from .avro_resolution import encode_default, prefix_length
from .avro_schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    PrimitiveType,
    RecordField,
    RecordType,
    Schema,
    UnionType,
    parse,
)
from .byte_batch import Ints, Mask, make_binary_array, split_evenly
from .definition import Definition
from .payload_batches import PayloadDecoder, PayloadEncoder
from .values import LIMITS, ShapeWriter, get_scale
from .wire_format import encode_zigzag

Pieces = list[pa.BinaryArray]

_WriteValue = Callable[[Any], bytes]

_WriteColumn = Callable[[pa.Array, Ints, Mask], Pieces]
"""Makes the pieces of values without nulls, given the row of each value, and marks rows with invalid values in the mask."""

_MIN_INT, _MAX_INT = LIMITS["int"]


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the type of the column, and whether values are records."""
    shape = make_shape(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def make_decoder(writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:
    """Make the decoder that resolves values of the writer's schema to the reader's schema."""
    reader = parse(reader_schema.text)
    shape = make_shape(reader, options)
    action = avro_resolution.resolve(parse(writer_schema.text), reader)
    read_value = avro_reader.compile_reader(action, shape, options, as_python=True)
    compile_storage_once = cache(lambda: avro_reader.compile_reader(action, shape, options))
    return PayloadDecoder(
        shape.type,
        lambda payload: avro_reader.read_whole(read_value, payload, options),
        lambda payload: avro_reader.read_whole(compile_storage_once(), payload, options),
        make_program=lambda: None if is_too_wide([shape.type]) else compile_program(action, shape, options),
        strict=options.strict,
        # Defaults are in the pool of the program, and a symbol is at most as long as the definition.
        max_text_bytes=len(reader_schema.text.encode()),
    )


def make_encoder(schema: Definition, options: Options) -> PayloadEncoder:
    """Make the encoder of values of a definition."""
    shape = make_shape(parse(schema.text), options)
    # Compiled for the first batch: it has a function for each column.
    compile_once = cache(lambda: compile_column_writer(shape))
    return PayloadEncoder(shape.type, AvroWriter().make_writer(shape), lambda values: compile_once()(values))  # noqa: PLW0108  only then


# Scalar writer


class AvroWriter(ShapeWriter[bytes]):
    """Writes the same bytes as Java's GenericDatumWriter: one block for each array and map, and defaults for absent fields."""

    null = b""

    def write_default(self, part: RecordField) -> bytes:
        """See ShapeWriter."""
        return encode_default(part.schema, part.default)

    def make_record_joiner(self, schema: RecordType) -> Callable[[list[bytes]], bytes]:  # noqa: ARG002  names are not written
        """See ShapeWriter."""
        return b"".join

    def write_items(self, pieces: list[bytes]) -> bytes:
        """See ShapeWriter."""
        return b"".join((encode_zigzag(len(pieces)), *pieces, b"\0")) if pieces else b"\0"

    def write_entries(self, pieces: list[tuple[str, bytes]]) -> bytes:
        """See ShapeWriter."""
        return self.write_items([prefix_length(key.encode()) + piece for key, piece in pieces])

    def write_branch(self, index: int, piece: bytes) -> bytes:
        """See ShapeWriter."""
        return encode_zigzag(index) + piece

    def make_leaf_writer(self, shape: Leaf) -> _WriteValue:
        """See ShapeWriter."""
        schema = shape.schema
        if isinstance(schema, EnumType):
            return {symbol: encode_zigzag(index) for index, symbol in enumerate(schema.symbols)}.__getitem__
        if isinstance(schema.logical, DecimalType):
            size = schema.size if isinstance(schema, FixedType) else None

            def write_decimal(value: Any) -> bytes:
                # The fewest bytes with one bit for the sign, as in Java's BigInteger.toByteArray.
                shortest = ((value if value >= 0 else ~value).bit_length() + 8) // 8
                raw: bytes = value.to_bytes(size or shortest, "big", signed=True)
                return prefix_length(raw) if size is None else raw

            return write_decimal
        return _WRITERS_BY_TYPE[schema.type]


_WRITERS_BY_TYPE: Final[dict[str, _WriteValue]] = {
    "null": lambda _: b"",
    "boolean": struct.Struct("<?").pack,
    "int": encode_zigzag,
    "long": encode_zigzag,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: prefix_length(value.encode()),
    "bytes": prefix_length,
    "fixed": bytes,
}


# Columnar writer


def compile_column_writer(shape: Shape) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    """Compile the function that encodes an array of `shape.type`.

    It returns the bytes of each value, with the mask of values whose bytes have no meaning, and raises pa.ArrowCapacityError if the bytes are
    more than one array holds (2 GiB).
    """
    write = _compile_writer(shape)

    def write_all(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        bad: Mask = np.zeros(len(values), bool)
        return _join(write(values, np.arange(len(values)), bad), len(values)), bad

    return write_all


def _compile_writer(shape: Shape) -> _WriteColumn:
    match shape:
        case Choice():
            return _compile_union(shape)
        case Group():
            return _compile_present(_compile_record(shape))
        case Repeated():
            return _compile_present(_compile_items(shape))
        case Leaf(schema=PrimitiveType(type="null")):
            return lambda _values, _rows, _bad: []
        case Leaf():
            return _compile_present(_compile_leaf(shape))


def _compile_present(write: _WriteColumn) -> _WriteColumn:
    """Compile a writer that marks nulls, which only unions accept."""

    def write_present(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        if not values.null_count:
            return write(values, rows, bad)
        valid = np.asarray(values.is_valid())
        bad[rows[~valid]] = True
        return _expand_pieces(write(values.drop_null(), rows[valid], bad), valid)

    return write_present


def _compile_record(shape: Group) -> _WriteColumn:
    parts: list[tuple[str | None, _WriteColumn]] = []
    for part in shape.schema.fields:
        if part.name in shape.fields:
            parts.append((part.name, _compile_writer(shape.fields[part.name])))
        else:
            parts.append((None, _compile_cut(part.schema)))

    def write_record(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        nulls = pa.nulls(len(values))
        return [
            piece for name, write in parts for piece in write(nulls if name is None else values.field(name), rows, bad)
        ]

    return write_record


def _compile_cut(schema: Schema) -> _WriteColumn:
    """Compile a field without a column, because a recursion is cut there: only null can be written."""
    kinds = [branch.type for branch in schema.branches] if isinstance(schema, UnionType) else []

    def write_cut(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        if "null" not in kinds:
            bad[rows] = True
            return []
        return [encode_numbers(np.full(len(values), kinds.index("null")))]

    return write_cut


def _compile_items(shape: Repeated) -> _WriteColumn:
    write_item = _compile_writer(shape.part)
    is_map = not isinstance(shape.schema, ArrayType)

    def write_items(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        offsets = np.asarray(values.offsets).astype(np.int64)
        counts = np.diff(offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        owners = np.repeat(rows, counts)
        if is_map:
            pieces = _write_texts(values.keys[first:last]) + write_item(values.items[first:last], owners, bad)
        else:
            pieces = write_item(values.values[first:last], owners, bad)
        # The items of one value are adjacent, so their bytes are one element.
        items = _join(pieces, last - first)
        body = _join_groups(items, offsets - first)
        # An array has one block if it is not empty, and then an empty block at its end.
        is_filled = counts > 0
        end = make_binary_array(np.cumsum(is_filled), np.zeros(int(is_filled.sum()), np.uint8))
        return [encode_numbers(counts), body, end]

    return write_items


def _compile_union(shape: Choice) -> _WriteColumn:
    kinds = [branch.type for branch in shape.schema.branches]
    null = kinds.index("null") if "null" in kinds else None
    branches = [
        (index, member, _compile_writer(part))
        for index, (part, member) in enumerate(zip(shape.branches, shape.members, strict=True))
        if part is not None
    ]
    has_members = any(shape.members)

    def write_union(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        valid = np.asarray(values.is_valid())
        if null is None:
            bad[rows[~valid]] = True

        # For each branch, the column that has its values, and the mask that selects them.
        choices: list[tuple[pa.Array, Mask]] = []
        if has_members:
            # Exactly one member of the struct is not null.
            members = [values.field(member) for _, member, _ in branches]
            masks = [valid & np.asarray(member.is_valid()) for member in members]
            has_one = np.sum(masks, axis=0) == 1
            choices = [(member, mask & has_one) for member, mask in zip(members, masks, strict=True)]
        else:
            # One branch takes all values. Of two numeric branches, the first takes the values that it can represent exactly.
            remaining = valid
            for number, _, _ in branches:
                mask = remaining if len(branches) == 1 else remaining & _fits_type(kinds[number], values)
                choices.append((values, mask))
                remaining = remaining & ~mask

        index = np.full(len(values), 0 if null is None else null)
        pieces: Pieces = []
        for (number, _, write), (source, mask) in zip(branches, choices, strict=True):
            index[mask] = number
            chosen = source if mask.all() else source.filter(pa.array(mask))
            pieces += _expand_pieces(write(chosen, rows[mask], bad), mask)
            valid = valid & ~mask
        # Values of no branch, or of more than one.
        bad[rows[valid]] = True
        return [encode_numbers(index), *pieces]

    return write_union


def _fits_type(kind: str, values: pa.Array) -> Mask:
    """Return whether Avro's type `kind` represents each number exactly."""
    numbers = _view_numbers(values.fill_null(0))
    fits: Mask = np.ones(len(values), bool)
    if kind == "int":
        fits = (numbers >= _MIN_INT) & (numbers <= _MAX_INT)
    elif kind == "float":
        with np.errstate(over="ignore"):
            fits = (numbers.astype(np.float32) == numbers) | np.isnan(numbers)
    return fits


def _compile_leaf(shape: Leaf) -> _WriteColumn:
    schema = shape.schema
    if isinstance(schema, EnumType):
        symbols = pa.array(schema.symbols, pa.string())

        def write_enum(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
            index = pc.index_in(values, symbols)
            if index.null_count:
                bad[rows[np.asarray(index.is_null())]] = True
                index = index.fill_null(0)
            return [encode_numbers(np.asarray(index).astype(np.int64))]

        return write_enum

    if isinstance(schema.logical, DecimalType):
        return _compile_decimal(schema.logical, schema.size if isinstance(schema, FixedType) else None)
    if isinstance(schema, FixedType):
        size = schema.size

        def write_fixed(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
            bad[rows[_get_lengths(values) != size]] = True
            return [values]

        return write_fixed

    if schema.type in ("int", "long"):
        factor = get_scale(shape).factor
        is_int = schema.type == "int"

        def write_integer(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
            numbers = _view_numbers(values).astype(np.int64, copy=False)
            if factor != 1:
                numbers = numbers // factor
            if is_int and values.type.bit_width > 32:
                bad[rows[(numbers < _MIN_INT) | (numbers > _MAX_INT)]] = True
            return [encode_numbers(numbers)]

        return write_integer

    if schema.type == "boolean":
        return lambda values, _rows, _bad: [split_evenly(np.asarray(values.cast(pa.uint8())), 1)]
    if schema.type == "float":

        def write_float(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
            numbers = _view_numbers(values)
            with np.errstate(over="ignore"):
                narrow = numbers.astype("<f4", copy=False)
            if values.type.bit_width > 32:
                bad[rows[np.isinf(narrow) & ~np.isinf(numbers)]] = True
            return [split_evenly(narrow.view(np.uint8), 4)]

        return write_float

    if schema.type == "double":
        return lambda values, _rows, _bad: [
            split_evenly(_view_numbers(values).astype("<f8", copy=False).view(np.uint8), 8)
        ]
    return lambda values, _rows, _bad: _write_texts(values)


def _compile_decimal(logical: DecimalType, size: int | None) -> _WriteColumn:
    limit = 10**logical.precision

    def write_decimal(values: pa.Array, rows: Ints, bad: Mask) -> Pieces:
        words = _view_numbers(values)
        low, high = words[0::2], words[1::2].view(np.int64)
        sign = high >> 63
        # The bits of the number, or of the complement of a negative number, which is its magnitude minus one.
        low_bits, high_bits = low ^ sign.view(np.uint64), high ^ sign
        for negative in (False, True):
            highest = limit - 1 - negative
            highest_high, highest_low = np.int64(highest >> 64), np.uint64(highest & (2**64 - 1))
            over = (high_bits > highest_high) | ((high_bits == highest_high) & (low_bits > highest_low))
            bad[rows[over & ((sign < 0) == negative)]] = True
        count = len(values)
        big_endian = np.empty((count, 16), np.uint8)
        big_endian[:, :8] = high.astype(">i8").view(np.uint8).reshape(count, 8)
        big_endian[:, 8:] = low.astype(">u8").view(np.uint8).reshape(count, 8)
        if size is not None:
            wide = np.repeat(sign.astype(np.int8).view(np.uint8)[:, None], max(size, 16), axis=1)
            wide[:, -16:] = big_endian
            return [split_evenly(np.ascontiguousarray(wide[:, -size:]).reshape(-1), size)]
        # The fewest bytes for the number and its sign (java.math.BigInteger.toByteArray).
        length = np.ones(count, np.int64)
        for shift in range(7, 127, 8):
            low_rest = low_bits >> np.uint64(shift) if shift < 64 else np.uint64(0)
            high_rest = high_bits if shift < 64 else high_bits >> np.int64(shift - 64)
            length += (low_rest != 0) | (high_rest != 0)
        is_significant = np.arange(16)[None, :] >= 16 - length[:, None]
        return [encode_numbers(length), make_binary_array(np.cumsum(length), big_endian[is_significant])]

    return write_decimal


def _write_texts(values: pa.Array) -> Pieces:
    """Write strings or bytes, with their lengths in front."""
    raw = values.cast(pa.binary())
    return [encode_numbers(_get_lengths(raw)), raw]


def encode_numbers(values: Ints) -> pa.BinaryArray:
    """Encode numbers in Avro's variable-length zig-zag form (see `wire_format.encode_zigzag`)."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if not len(bits) or bits.max() < 0x80:
        return split_evenly(bits.astype(np.uint8), 1)
    # The number of bytes, each of which has seven bits.
    size = np.ones(len(bits), np.int64)
    for shift in range(7, 64, 7):
        more = bits >> np.uint64(shift) != 0
        if not more.any():
            break
        size += more
    ends = np.cumsum(size)
    out = np.empty(ends[-1], np.uint8)
    first = ends - size
    for index in range(int(size.max())):
        rows = np.flatnonzero(size > index)
        low_bits = (bits[rows] >> np.uint64(7 * index)).astype(np.uint8) & np.uint8(0x7F)
        has_more = (size[rows] > index + 1).astype(np.uint8)
        out[first[rows] + index] = low_bits | (has_more << np.uint8(7))
    return make_binary_array(ends, out)


# Arrow arrays


def _view_numbers(values: pa.Array) -> Any:
    """View the numbers of an array with numpy: two words of 64 bits for each decimal."""
    kind = values.type
    width = kind.bit_width // 8
    if pa.types.is_decimal(kind):
        return np.frombuffer(values.buffers()[1], "<u8")[2 * values.offset : 2 * (values.offset + len(values))]
    letter = "f" if pa.types.is_floating(kind) else "i"
    if not len(values):
        return np.zeros(0, f"{letter}{width}")
    return np.frombuffer(values.buffers()[1], f"<{letter}{width}")[values.offset : values.offset + len(values)]


def _view_offsets(values: pa.Array) -> Any:
    if not len(values):
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]


def _get_lengths(values: pa.Array) -> Ints:
    lengths: Ints = np.diff(_view_offsets(values)).astype(np.int64)
    return lengths


def _join_groups(values: pa.BinaryArray, bounds: Ints) -> pa.BinaryArray:
    """Join the elements between each two adjacent `bounds` into one element, without a copy of the bytes."""
    offsets = np.ascontiguousarray(_view_offsets(values)[bounds])
    data = values.buffers()[2] if len(values) else None
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(offsets), data or pa.py_buffer(b"")])


def _expand_pieces(pieces: Pieces, mask: Mask) -> Pieces:
    """Return the pieces of the values in `mask`, with empty elements for all other values."""
    if mask.all():
        return pieces
    bounds = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask, out=bounds[1:])
    return [_join_groups(piece, bounds) for piece in pieces]


def _join(pieces: Pieces, count: int) -> pa.BinaryArray:
    if not pieces:
        return make_binary_array(np.zeros(count, np.int64), np.zeros(0, np.uint8))
    # The separator becomes an Arrow scalar here, because at import it would make Arrow import pandas in each Spark process.
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, b"")
