"""Avro's binary form, one message at a time: functions compiled from an action and a shape, with a reason for every error.

This path is the reference: `avro_columnar_reader` gives the same values, faster.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from . import avro_resolution
from .arrow_types import TIME, Choice, Group, Leaf, Options, Repeated, Shape
from .avro_resolution import encode_default
from .avro_schema import ArrayType, DecimalType, FixedType, PrimitiveType, Schema, children, compute_min_size, full_name
from .byte_batch import FEW_EMPTY, MAX_EMPTY_ITEMS
from .definition import MAX_KEY_LENGTH, InvalidDefinition, Unreadable, shorten
from .values import EXACT, decode_text, get_python_converter, scale_of

Read = Callable[[bytes, int], tuple[Any, int]]
"""From the payload and a position to the value and the position behind it; raises Unreadable."""

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def reader(action: avro_resolution.Action, shape: Shape, options: Options, *, as_python: bool = False) -> Read:
    """Read what `action` says, into the storage form of `shape`, or into Python's own types.

    It raises Unreadable for anything but a value of the writer's schema that the reader's schema can hold.
    """
    return _AvroCompiler(options, as_python=as_python).read(action, shape)


def read_whole(read: Read, payload: bytes, options: Options) -> Any:
    """Return the value that all of `payload` is; bytes behind it are an error if `options.strict`. Raises Unreadable: see `reader`."""
    try:
        value, at = read(payload, 0)
    except RecursionError:
        raise Unreadable("the value is nested deeper than can be followed") from None
    if options.strict and at != len(payload):
        raise Unreadable(f"{len(payload) - at} bytes follow the value", at)
    return value


def read_default(schema: Schema, value: Any, shape: Shape, options: Options, *, as_python: bool = False) -> Any:
    """Return the storage form of a field's default, or the one in Python's own types, as Java makes it: written as binary, then read.

    Raises InvalidDefinition: it is no default for that schema; BadDefault where Java takes it all the same.
    """
    read = reader(avro_resolution.resolve(schema, schema), shape, options, as_python=as_python)
    return _default(read, schema, value)


class BadDefault(InvalidDefinition):
    """Java takes the default of a field, and what it is read as cannot be held."""


class _AvroCompiler:
    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._records: dict[tuple[int, int, bool], tuple[avro_resolution.RecordAdjust, Read]] = {}

    def read(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool = False) -> Read:
        """Read what `action` says, as `shape`.

        Args:
            action: how the value was written.
            shape: None: the columns have no place for it, as where a recursion is cut; the result means nothing.
            jump: the reader has no such field: as in Java, blocks of items that say their size are passed over unseen.
        """
        match action, shape:
            case (avro_resolution.ErrorAction(), _):
                return _failing(action.reason)
            case (avro_resolution.Promote(), None):
                return _skip(action.writer)
            case (avro_resolution.Promote(), Leaf()):
                return self._leaf(action.writer, shape)
            case (avro_resolution.EnumAdjust(), _):
                return _symbols(action)
            case (avro_resolution.Container(), Repeated() | None):
                return self._items(action, shape, jump=jump)
            case (avro_resolution.RecordAdjust(), Group() | None):
                return self._record(action, shape, jump=jump)
            case (avro_resolution.WriterUnion(), _):
                return _union([self.read(branch, shape, jump=jump) for branch in action.branches])
            case (avro_resolution.ReaderUnion(), Choice() | None):
                return self._branch(action, shape, jump=jump)
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _record(self, action: avro_resolution.RecordAdjust, shape: Group | None, *, jump: bool) -> Read:
        # Each once: in a record that holds itself, one shape stands in many places.
        place = (id(action), id(shape), jump)
        if place not in self._records:
            steps: list[tuple[str, Read, bool]] = []
            fields = {} if shape is None else shape.fields
            blank: dict[str, Any] = dict.fromkeys(fields)
            # The action is kept so that no other gets its id.
            self._records[place] = (action, _steps(steps, blank))
            for step in action.steps:
                read = self.read(step.action, fields.get(step.name), jump=jump or step.is_skipped)
                steps.append((step.name, read, step.name in fields))
            for part in action.defaults:
                if part.name in fields:
                    read = self.read(avro_resolution.resolve(part.schema, part.schema), fields[part.name])
                    try:
                        blank[part.name] = _default(read, part.schema, part.default)
                    except BadDefault as error:
                        # Only a message that needs it cannot be read.
                        steps.append((part.name, _failing(str(error)), False))
        return self._records[place][1]

    def _items(self, action: avro_resolution.Container, shape: Repeated | None, *, jump: bool) -> Read:
        part = self.read(action.action, None if shape is None else shape.part, jump=jump)
        (written,) = children(action.writer)
        is_array, size = isinstance(action.writer, ArrayType), compute_min_size(written)
        if shape is None:
            return _skip_items(part, size, keys=not is_array, jump=jump)
        return _array(part, size) if is_array else self._map(part, size)

    def _branch(self, action: avro_resolution.ReaderUnion, shape: Choice | None, *, jump: bool) -> Read:
        branch = None if shape is None else shape.branches[action.index]
        read = self.read(action.action, branch, jump=jump)
        if shape is None or branch is None:
            return lambda data, at: (None, read(data, at)[1])
        member = shape.members[action.index]
        if member is None:
            return read
        blank = dict.fromkeys(name for name in shape.members if name is not None)

        def read_member(data: bytes, at: int) -> tuple[Any, int]:
            value, at = read(data, at)
            return {**blank, member: value}, at

        return read_member

    def _map(self, part: Read, part_size: int) -> Read:
        read_key = self._text()
        as_python = self._as_python

        def read_map(data: bytes, at: int) -> tuple[Any, int]:
            entries: dict[str, Any] = {}
            while True:
                count, at = _read_count(data, at, 1 + part_size)
                if count == 0:
                    return (entries if as_python else list(entries.items())), at
                for _ in range(count):
                    key, at = read_key(data, at)
                    try:
                        entries[key], at = part(data, at)
                    except Unreadable as error:
                        error.prepend_path(f"[{shorten(repr(key), MAX_KEY_LENGTH)}]")
                        raise

        return read_map

    def _leaf(self, writer: PrimitiveType | FixedType, shape: Leaf) -> Read:
        read = self._plain(writer, shape)
        convert = get_python_converter(shape.type) if self._as_python else None
        if convert is None:
            return read

        def read_converted(data: bytes, at: int) -> tuple[Any, int]:
            value, after = read(data, at)
            try:
                return convert(value), after
            except Unreadable as error:
                error.offset = at
                raise

        return read_converted

    def _plain(self, writer: PrimitiveType | FixedType, shape: Leaf) -> Read:
        schema = shape.schema
        assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have an action of their own
        if isinstance(schema.logical, DecimalType):
            return _decimals(schema.logical, writer.size if isinstance(writer, FixedType) else None)
        if isinstance(writer, FixedType):
            return _fixed(writer.size)
        if writer.type in ("string", "bytes"):
            return self._text() if schema.type == "string" else _read_bytes
        if writer.type in ("int", "long") and schema.type in ("int", "long"):
            return _integers(writer.type, shape)
        return _numbers(writer.type, schema.type)

    def _text(self) -> Read:
        strict = self._options.strict

        def read_text(data: bytes, at: int) -> tuple[Any, int]:
            start, stop = _read_span(data, at)
            raw = data[start:stop]
            if strict:
                try:
                    return raw.decode(), stop
                except UnicodeDecodeError as error:
                    raise Unreadable("text that is not UTF-8", start + error.start) from None
            return decode_text(raw), stop

        return read_text


def _steps(steps: Sequence[tuple[str, Read, bool]], blank: dict[str, Any]) -> Read:
    """Read a record: for each field as written its name, how it is read, and whether it is kept; steps may be added later."""

    def read_record(data: bytes, at: int) -> tuple[Any, int]:
        value = blank.copy()
        name = ""
        try:
            for name, read, kept in steps:
                part, at = read(data, at)
                if kept:
                    value[name] = part
        except Unreadable as error:
            error.prepend_path(name)
            raise
        return value, at

    return read_record


def _skip(writer: PrimitiveType | FixedType) -> Read:
    if isinstance(writer, FixedType):
        return _fixed(writer.size)
    return _read_bytes if writer.type in ("string", "bytes") else _numbers(writer.type, writer.type)


def _default(read: Read, schema: Schema, value: Any) -> Any:
    try:
        return read(encode_default(schema, value), 0)[0]
    except Unreadable as error:
        raise BadDefault(f"{value!r} is no default for {full_name(schema)}: {error.message}") from None


def _failing(reason: str) -> Read:
    def fail(data: bytes, at: int) -> tuple[Any, int]:
        raise Unreadable(reason, at if data else None)

    return fail


def _array(part: Read, part_size: int) -> Read:
    def read_array(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            count, at = _read_count(data, at, part_size)
            if count == 0:
                return items, at
            if part_size == 0 and len(items) + count > _max_empty_items(data):
                raise Unreadable(f"more than {_max_empty_items(data)} items that take no bytes", at)
            try:
                for _ in range(count):
                    item, at = part(data, at)
                    items.append(item)
            except Unreadable as error:
                error.prepend_path(f"[{len(items)}]")
                raise

    return read_array


def _skip_items(part: Read, part_size: int, *, keys: bool, jump: bool) -> Read:
    def skip_items(data: bytes, at: int) -> tuple[Any, int]:
        while True:
            start = at
            count, at = read_long(data, at)
            if count == 0:
                return None, at
            if jump and count < 0:
                # A block that says its size is passed over unseen, as in Java.
                size, at = read_long(data, at)
                if not 0 <= size <= len(data) - at:
                    raise Unreadable(f"a block of {size} bytes, but {len(data) - at} are left", start)
                at += size
                continue
            count, at = _read_count(data, start, part_size + keys)
            for _ in range(count):
                if keys:
                    at = _read_span(data, at)[1]
                at = part(data, at)[1]

    return skip_items


def _union(branches: list[Read]) -> Read:
    def read_union(data: bytes, at: int) -> tuple[Any, int]:
        index, after = _read_index(data, at, len(branches), "union branch")
        return branches[index](data, after)

    return read_union


def _varint(bits: int, max_bytes: int, too_long: str) -> Callable[[bytes, int], tuple[int, int]]:
    mask, last = (1 << bits) - 1, 7 * max_bytes

    def read_number(data: bytes, at: int) -> tuple[int, int]:
        start = at
        number = shift = 0
        try:
            while True:
                byte = data[at]
                at += 1
                number |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift == last:
                    raise Unreadable(too_long, start)
        except IndexError:
            raise Unreadable("the message ends inside a number", start) from None
        number &= mask
        return (number >> 1) ^ -(number & 1), at

    return read_number


read_long: Final = _varint(64, 10, "a number of more than ten bytes")
"""Reads a zig-zag number (BinaryDecoder.readLong)."""

read_int: Final = _varint(32, 5, "an int of more than five bytes")
"""Reads a zig-zag number; bits beyond 32 are dropped (BinaryDecoder.readInt)."""


def _read_span(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of what a length stands before."""
    start = at
    length, at = read_long(data, at)
    if length < 0:
        raise Unreadable(f"a length of {length}", start)
    if length > len(data) - at:
        raise Unreadable(f"a length of {length} bytes, but {len(data) - at} are left", start)
    return at, at + length


def _read_count(data: bytes, at: int, item_size: int) -> tuple[int, int]:
    """Read the number of items in a block; returns the position of the first one, too (BinaryDecoder.doReadItemCount)."""
    start = at
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        # Whose items are read has its size from them, whatever the block states, as in Java.
        _, at = read_long(data, at)
    if count * item_size > len(data) - at:
        raise Unreadable(f"a block of {count} items, but {len(data) - at} bytes are left", start)
    if item_size == 0 and count > _max_empty_items(data):
        raise Unreadable(
            f"a block of {count} items that take no bytes; {_max_empty_items(data)} are read at most", start
        )
    return count, at


def _max_empty_items(data: bytes) -> int:
    """Of one list: every list of a message takes two bytes at the least. A default's may be as long as it is."""
    return max(FEW_EMPTY, 2 * MAX_EMPTY_ITEMS // (len(data) + 1))


def _read_index(data: bytes, at: int, length: int, what: str) -> tuple[int, int]:
    """Read an index below `length`; an error calls the things `what`."""
    index, after = read_int(data, at)
    if not 0 <= index < length:
        raise Unreadable(f"{what} {index} of {length}", at)
    return index, after


def _symbols(action: avro_resolution.EnumAdjust) -> Read:
    """Read an enum: the reader's symbol for what was written."""
    written, table = action.writer.symbols, action.table

    def read_symbol(data: bytes, at: int) -> tuple[Any, int]:
        index, after = _read_index(data, at, len(table), "enum symbol")
        symbol = table[index]
        if symbol is None:
            raise Unreadable(f"the symbol {written[index]}, which the reader does not know", at)
        return symbol, after

    return read_symbol


def _read_bytes(data: bytes, at: int) -> tuple[Any, int]:
    """Read bytes behind their length."""
    start, stop = _read_span(data, at)
    return data[start:stop], stop


def _fixed(size: int) -> Read:
    """So many bytes."""

    def read_fixed(data: bytes, at: int) -> tuple[Any, int]:
        stop = at + size
        if stop > len(data):
            raise Unreadable(f"{size} bytes, but {len(data) - at} are left", at)
        return data[at:stop], stop

    return read_fixed


def _decimals(logical: DecimalType, size: int | None) -> Read:
    """Two's complement, big-endian: of bytes, or of a fixed of `size`."""
    read = _read_bytes if size is None else _fixed(size)
    bound, scale = 10**logical.precision, -logical.scale

    def read_decimal(data: bytes, at: int) -> tuple[Any, int]:
        raw, after = read(data, at)
        if not raw:
            raise Unreadable("a decimal of no bytes", at)
        unscaled = int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= bound:
            raise Unreadable(f"a decimal of more than {logical.precision} digits", at)
        return decimal.Decimal(unscaled).scaleb(scale, EXACT), after

    return read_decimal


def _integers(writer: str, shape: Leaf) -> Read:
    """Read an int or long that stays one, in the unit of its column."""
    read = read_int if writer == "int" else read_long
    low, high, factor = scale_of(shape)
    if factor == 1:
        return read
    what = "are no time of day" if shape.type == TIME else "are more than 64 bits of microseconds"
    unit = "microseconds" if shape.type == TIME else "milliseconds"

    def read_scaled(data: bytes, at: int) -> tuple[Any, int]:
        number, after = read(data, at)
        if not low <= number <= high:
            raise Unreadable(f"{number} {unit} {what}", at)
        return number * factor, after

    return read_scaled


def _numbers(writer: str, schema: str) -> Read:
    """null, boolean, and numbers that stay what they are or become floating."""
    if writer == "null":
        return lambda _, at: (None, at)
    if writer == "boolean":
        return _boolean
    if writer in ("int", "long"):
        read = read_int if writer == "int" else read_long
        if schema in ("int", "long"):
            return read
        # Rounded once, as Java's cast does; by way of a double a long could be rounded twice.
        width = np.float32 if schema == "float" else np.float64

        def read_rounded(data: bytes, at: int) -> tuple[Any, int]:
            value, after = read(data, at)
            return float(width(np.int64(value))), after

        return read_rounded
    packed = _FLOAT if writer == "float" else _DOUBLE

    def read_floating(data: bytes, at: int) -> tuple[Any, int]:
        try:
            return packed.unpack_from(data, at)[0], at + packed.size
        except struct.error:
            raise Unreadable(f"{packed.size} bytes, but {len(data) - at} are left", at) from None

    return read_floating


def _boolean(data: bytes, at: int) -> tuple[Any, int]:
    try:
        return data[at] == 1, at + 1
    except IndexError:
        raise Unreadable("the message ends before a boolean", at) from None
