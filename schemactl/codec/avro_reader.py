"""Decode Avro payloads one at a time, with the place and the reason of every error.

`compile_reader` compiles an action of `avro_resolution` and a shape of `arrow_types` to a function. It is the reference for
`avro_columnar_reader`, which gives the same values faster.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from . import avro_resolution
from .arrow_types import TIME, Choice, Group, Leaf, Options, Repeated, Shape
from .avro_resolution import encode_default
from .avro_schema import (
    ArrayType,
    DecimalType,
    FixedType,
    PrimitiveType,
    Schema,
    compute_min_size,
    get_full_name,
    list_children,
)
from .byte_batch import FEW_EMPTY, MAX_EMPTY_ITEMS
from .definition import MAX_KEY_LENGTH, InvalidDefinition, Unreadable, shorten
from .values import EXACT, TO_PYTHON, decode_text, get_scale

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads the value at a position of a payload, and returns it with the position after it; raises Unreadable."""

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def compile_reader(action: avro_resolution.Action, shape: Shape, options: Options, *, as_python: bool = False) -> Read:
    """Compile the function that reads values into the storage form of `shape`, or into Python's own types.

    It raises Unreadable for bytes that are not a value of the writer's schema, and for values that the reader's schema cannot hold.
    """
    return _AvroCompiler(options, as_python=as_python).compile(action, shape)


def read_whole(read: Read, payload: bytes, options: Options) -> Any:
    """Read the value of a whole payload. With `options.strict` bytes after the value are an error.

    Raises:
        Unreadable: see `compile_reader`.
    """
    try:
        value, at = read(payload, 0)
    except RecursionError:
        raise Unreadable("the value is nested too deeply") from None
    if options.strict and at != len(payload):
        raise Unreadable(f"{len(payload) - at} bytes follow the value", at)
    return value


def read_default(schema: Schema, value: Any, shape: Shape, options: Options, *, as_python: bool = False) -> Any:
    """Return a field's default in storage form or in Python's own types, encoded and decoded as in Java.

    Raises:
        InvalidDefinition: the value is not a valid default of the schema; a BadDefault if Java nevertheless accepts the definition.
    """
    read = compile_reader(avro_resolution.resolve(schema, schema), shape, options, as_python=as_python)
    return _decode_default(read, schema, value)


class BadDefault(InvalidDefinition):
    """A default of a field that Java accepts, but that the column cannot hold."""


def _decode_default(read: Read, schema: Schema, value: Any) -> Any:
    try:
        return read(encode_default(schema, value), 0)[0]
    except Unreadable as error:
        raise BadDefault(f"{value!r} is not a default for {get_full_name(schema)}: {error.message}") from None


class _AvroCompiler:
    """Compiles actions to functions that read one value."""

    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._records: dict[tuple[int, int, bool], tuple[avro_resolution.RecordAdjust, Read]] = {}

    def compile(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool = False) -> Read:
        """Compile an action for a value of `shape`.

        Args:
            action: the action.
            shape: the shape, or None if the value has no column, such as where a recursion is cut; the result has no meaning.
            jump: whether the reader has no such field. As in Java, blocks of items that state their size are then skipped without
                validation.
        """
        match action, shape:
            case (avro_resolution.ErrorAction(), _):
                return _compile_failure(action.reason)
            case (avro_resolution.Promote(writer=FixedType(size=size)), None):
                return _compile_fixed(size)
            case (avro_resolution.Promote(writer=PrimitiveType(type="string" | "bytes")), None):
                return _read_bytes
            case (avro_resolution.Promote(), None):
                return _compile_number(action.writer.type, action.writer.type)
            case (avro_resolution.Promote(), Leaf()):
                return self._compile_leaf(action.writer, shape)
            case (avro_resolution.EnumAdjust(), _):
                writer_symbols, table = action.writer.symbols, action.table

                def read_symbol(data: bytes, at: int) -> tuple[Any, int]:
                    index, after = _read_index(data, at, len(table), "enum symbol")
                    symbol = table[index]
                    if symbol is None:
                        raise Unreadable(f"the symbol {writer_symbols[index]}, which the reader does not know", at)
                    return symbol, after

                return read_symbol
            case (avro_resolution.Container(), Repeated() | None):
                return self._compile_items(action, shape, jump=jump)
            case (avro_resolution.RecordAdjust(), Group() | None):
                return self._compile_record(action, shape, jump=jump)
            case (avro_resolution.WriterUnion(), _):
                branches = [self.compile(branch, shape, jump=jump) for branch in action.branches]

                def read_union(data: bytes, at: int) -> tuple[Any, int]:
                    index, after = _read_index(data, at, len(branches), "union branch")
                    return branches[index](data, after)

                return read_union
            case (avro_resolution.ReaderUnion(), Choice() | None):
                return self._compile_branch(action, shape, jump=jump)
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _compile_record(self, action: avro_resolution.RecordAdjust, shape: Group | None, *, jump: bool) -> Read:
        # Compiled once, because a recursive record has the same shape in many places.
        key = (id(action), id(shape), jump)
        if key not in self._records:
            steps: list[tuple[str, Read, bool]] = []
            fields = {} if shape is None else shape.fields
            blank: dict[str, Any] = dict.fromkeys(fields)

            def read_record(data: bytes, at: int) -> tuple[Any, int]:
                value = blank.copy()
                name = ""
                try:
                    for name, read, has_column in steps:
                        part, at = read(data, at)
                        if has_column:
                            value[name] = part
                except Unreadable as error:
                    error.prepend_path(name)
                    raise
                return value, at

            # Stored before the fields, which may contain the record, are compiled. The action is stored so that no other gets its id.
            self._records[key] = (action, read_record)
            for step in action.steps:
                read = self.compile(step.action, fields.get(step.name), jump=jump or step.is_skipped)
                steps.append((step.name, read, step.name in fields))
            for part in action.defaults:
                if part.name in fields:
                    read = self.compile(avro_resolution.resolve(part.schema, part.schema), fields[part.name])
                    try:
                        blank[part.name] = _decode_default(read, part.schema, part.default)
                    except BadDefault as error:
                        # Only messages that need the default cannot be read.
                        steps.append((part.name, _compile_failure(str(error)), False))
        return self._records[key][1]

    def _compile_items(self, action: avro_resolution.Container, shape: Repeated | None, *, jump: bool) -> Read:
        read_item = self.compile(action.action, None if shape is None else shape.part, jump=jump)
        (item_schema,) = list_children(action.writer)
        is_array, size = isinstance(action.writer, ArrayType), compute_min_size(item_schema)
        if shape is None:
            return _compile_skip_items(read_item, size, has_keys=not is_array, jump=jump)

        def read_array(data: bytes, at: int) -> tuple[Any, int]:
            items: list[Any] = []
            while True:
                count, at = _read_count(data, at, size)
                if count == 0:
                    return items, at
                if size == 0 and len(items) + count > _max_empty_items(data):
                    raise Unreadable(f"more than {_max_empty_items(data)} items that take no bytes", at)
                try:
                    for _ in range(count):
                        item, at = read_item(data, at)
                        items.append(item)
                except Unreadable as error:
                    error.prepend_path(f"[{len(items)}]")
                    raise

        read_key = self._compile_text()
        as_python = self._as_python

        def read_map(data: bytes, at: int) -> tuple[Any, int]:
            entries: dict[str, Any] = {}
            while True:
                count, at = _read_count(data, at, 1 + size)
                if count == 0:
                    return (entries if as_python else list(entries.items())), at
                for _ in range(count):
                    key, at = read_key(data, at)
                    try:
                        entries[key], at = read_item(data, at)
                    except Unreadable as error:
                        error.prepend_path(f"[{shorten(repr(key), MAX_KEY_LENGTH)}]")
                        raise

        return read_array if is_array else read_map

    def _compile_branch(self, action: avro_resolution.ReaderUnion, shape: Choice | None, *, jump: bool) -> Read:
        branch = None if shape is None else shape.branches[action.index]
        read = self.compile(action.action, branch, jump=jump)
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

    def _compile_leaf(self, writer: PrimitiveType | FixedType, shape: Leaf) -> Read:
        schema = shape.schema
        assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have another action
        if isinstance(schema.logical, DecimalType):
            read = _compile_decimal(schema.logical, writer.size if isinstance(writer, FixedType) else None)
        elif isinstance(writer, FixedType):
            read = _compile_fixed(writer.size)
        elif writer.type in ("string", "bytes"):
            read = self._compile_text() if schema.type == "string" else _read_bytes
        elif writer.type in ("int", "long") and schema.type in ("int", "long"):
            read = _compile_integer(writer.type, shape)
        else:
            read = _compile_number(writer.type, schema.type)
        convert = TO_PYTHON.get(shape.type) if self._as_python else None
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

    def _compile_text(self) -> Read:
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


def _compile_failure(reason: str) -> Read:
    def fail(data: bytes, at: int) -> tuple[Any, int]:
        raise Unreadable(reason, at if data else None)

    return fail


def _compile_skip_items(read_item: Read, item_size: int, *, has_keys: bool, jump: bool) -> Read:
    def skip_items(data: bytes, at: int) -> tuple[Any, int]:
        while True:
            start = at
            count, at = read_long(data, at)
            if count == 0:
                return None, at
            if jump and count < 0:
                # A block that states its size is skipped without validation, as in Java.
                size, at = read_long(data, at)
                if not 0 <= size <= len(data) - at:
                    raise Unreadable(f"a block of {size} bytes, but {len(data) - at} are left", start)
                at += size
                continue
            count, at = _read_count(data, start, item_size + has_keys)
            for _ in range(count):
                if has_keys:
                    at = _read_span(data, at)[1]
                at = read_item(data, at)[1]

    return skip_items


def _compile_fixed(size: int) -> Read:
    def read_fixed(data: bytes, at: int) -> tuple[Any, int]:
        stop = at + size
        if stop > len(data):
            raise Unreadable(f"{size} bytes, but {len(data) - at} are left", at)
        return data[at:stop], stop

    return read_fixed


def _compile_decimal(logical: DecimalType, size: int | None) -> Read:
    """Compile a decimal, which is a big-endian two's complement in bytes or in a fixed of `size` bytes."""
    read = _read_bytes if size is None else _compile_fixed(size)
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


def _compile_integer(writer: str, shape: Leaf) -> Read:
    """Compile an int or long that is read as an int or long, in the unit of its column."""
    read = read_int if writer == "int" else read_long
    low, high, factor = get_scale(shape)
    if factor == 1:
        return read
    problem = "are not a time of day" if shape.type == TIME else "are more than 64 bits of microseconds"
    unit = "microseconds" if shape.type == TIME else "milliseconds"

    def read_scaled(data: bytes, at: int) -> tuple[Any, int]:
        number, after = read(data, at)
        if not low <= number <= high:
            raise Unreadable(f"{number} {unit} {problem}", at)
        return number * factor, after

    return read_scaled


def _compile_number(writer: str, schema: str) -> Read:
    """Compile null, boolean, and numbers that keep their type or become floating-point numbers."""
    if writer == "null":
        return lambda _, at: (None, at)
    if writer == "boolean":

        def read_boolean(data: bytes, at: int) -> tuple[Any, int]:
            try:
                return data[at] == 1, at + 1
            except IndexError:
                raise Unreadable("the message ends before a boolean", at) from None

        return read_boolean
    if writer in ("int", "long"):
        read = read_int if writer == "int" else read_long
        if schema in ("int", "long"):
            return read
        # Rounded once, as by Java's cast; with a double in between, a long could be rounded twice.
        dtype = np.float32 if schema == "float" else np.float64

        def read_rounded(data: bytes, at: int) -> tuple[Any, int]:
            value, after = read(data, at)
            return float(dtype(np.int64(value))), after

        return read_rounded
    packed = _FLOAT if writer == "float" else _DOUBLE

    def read_floating(data: bytes, at: int) -> tuple[Any, int]:
        try:
            return packed.unpack_from(data, at)[0], at + packed.size
        except struct.error:
            raise Unreadable(f"{packed.size} bytes, but {len(data) - at} are left", at) from None

    return read_floating


# Positions and lengths


def _compile_varint(bits: int, max_bytes: int, too_long: str) -> Callable[[bytes, int], tuple[int, int]]:
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


read_long: Final = _compile_varint(64, 10, "a number of more than ten bytes")
"""Reads a zig-zag number of 64 bits (BinaryDecoder.readLong)."""

read_int: Final = _compile_varint(32, 5, "an int of more than five bytes")
"""Reads a zig-zag number of 32 bits and drops further bits (BinaryDecoder.readInt)."""


def _read_span(data: bytes, at: int) -> tuple[int, int]:
    """Read a length, and return where the bytes after it start and end."""
    start = at
    length, at = read_long(data, at)
    if length < 0:
        raise Unreadable(f"a length of {length}", start)
    if length > len(data) - at:
        raise Unreadable(f"a length of {length} bytes, but {len(data) - at} are left", start)
    return at, at + length


def _read_bytes(data: bytes, at: int) -> tuple[Any, int]:
    start, stop = _read_span(data, at)
    return data[start:stop], stop


def _read_count(data: bytes, at: int, item_size: int) -> tuple[int, int]:
    """Read the number of items in a block, and return it with the position of the first item (BinaryDecoder.doReadItemCount)."""
    start = at
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        # The items determine the size of the block, not the size that it states, as in Java.
        _, at = read_long(data, at)
    if count * item_size > len(data) - at:
        raise Unreadable(f"a block of {count} items, but {len(data) - at} bytes are left", start)
    if item_size == 0 and count > _max_empty_items(data):
        raise Unreadable(
            f"a block of {count} items that take no bytes; {_max_empty_items(data)} are read at most", start
        )
    return count, at


def _max_empty_items(data: bytes) -> int:
    """Return the maximum number of items without bytes in one list, given that each list of a message takes at least two bytes."""
    return max(FEW_EMPTY, 2 * MAX_EMPTY_ITEMS // (len(data) + 1))


def _read_index(data: bytes, at: int, length: int, noun: str) -> tuple[int, int]:
    """Read an index below `length`; `noun` names the indexed items in errors."""
    index, after = read_int(data, at)
    if not 0 <= index < length:
        raise Unreadable(f"{noun} {index} of {length}", at)
    return index, after
