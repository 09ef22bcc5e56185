"""Avro's binary form, one message at a time: functions compiled from an action and a shape, with a reason for every refusal.

This path is the law: the vectorised one (`lanes`) only says faster what this one says.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from . import columns, resolver
from .columns import Choice, Group, Items, Leaf, Options, Shape
from .defaults import encode_default
from .errors import InvalidDefinition, Unreadable
from .schema import Array, Decimal, Enum, Fixed, Map, Primitive, Record, Schema, Union, full_name, min_size
from .values import to_python

Read = Callable[[bytes, int], tuple[Any, int]]
"""From the payload and a position to the value and the position behind it."""

MAX_EMPTY_ITEMS: Final = 1_000_000
"""Of one array whose items take no bytes: nothing in the message bounds their number."""

_CONTEXT: Final = decimal.Context(prec=100)
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_MAX_MILLIS: Final = (2**63 - 1) // 1000


def reader(action: resolver.Action, shape: Shape, options: Options, *, as_python: bool = False) -> Read:
    """Reads what `action` says, into the storage form of `shape`, or into Python's own types.

    It raises Unreadable for anything but a value of the writer's schema that the reader's schema can hold.
    """
    return _Compiler(options, as_python=as_python).read(action, shape)


def read_whole(read: Read, payload: bytes, options: Options) -> Any:
    """The value that all of `payload` is; bytes behind it are an error if `options.strict`.

    Raises:
        Unreadable: see `reader`.
    """
    try:
        value, at = read(payload, 0)
    except RecursionError:
        raise Unreadable("the value is nested deeper than can be followed") from None
    if options.strict and at != len(payload):
        raise Unreadable(f"{len(payload) - at} bytes follow the value", at)
    return value


def default_storage(schema: Schema, value: Any, shape: Shape, options: Options) -> Any:
    """The storage form of a field's default, as Java makes it: written as binary, then read.

    Raises:
        InvalidDefinition: it is no default for that schema.
    """
    return _default(reader(resolver.resolve(schema, schema), shape, options), schema, value)


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag number of at most ten bytes (BinaryDecoder.readLong)."""
    start = at
    bits = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift == 70:
                raise Unreadable("a number of more than ten bytes", start)
    except IndexError:
        raise Unreadable("the message ends inside a number", start) from None
    bits &= 0xFFFF_FFFF_FFFF_FFFF
    return (bits >> 1) ^ -(bits & 1), at


def read_int(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag number of at most five bytes; bits beyond 32 are dropped (BinaryDecoder.readInt)."""
    start = at
    bits = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift == 35:
                raise Unreadable("an int of more than five bytes", start)
    except IndexError:
        raise Unreadable("the message ends inside a number", start) from None
    bits &= 0xFFFF_FFFF
    return (bits >> 1) ^ -(bits & 1), at


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
    """The number of items in a block, and the position of the first one (BinaryDecoder.doReadItemCount)."""
    start = at
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        size, at = read_long(data, at)
        if size < 0:
            raise Unreadable(f"a block of {size} bytes", start)
    if count * item_size > len(data) - at:
        raise Unreadable(f"a block of {count} items, but {len(data) - at} bytes are left", start)
    if count > MAX_EMPTY_ITEMS and item_size == 0:
        raise Unreadable(
            f"a block of {count} items that take no bytes; {MAX_EMPTY_ITEMS} are read at most", start
        )
    return count, at


class _Compiler:
    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._skips: dict[int, Read] = {}

    def read(self, action: resolver.Action, shape: Shape) -> Read:
        match action:
            case resolver.Failed():
                return _failing(action.reason)
            case resolver.Same() | resolver.Promote():
                return self._leaf(action.writer, _leaf(shape))
            case resolver.Symbols():
                return _symbols(action)
            case resolver.Items():
                assert isinstance(shape, Items)  # noqa: S101  the shape is the reader's
                part = self.read(action.action, shape.part)
                items = _array if isinstance(action.reader, Array) else self._map
                return items(part, _part_size(action.writer))
            case resolver.Fields():
                assert isinstance(shape, Group)  # noqa: S101  see above
                return self._record(action, shape)
            case resolver.Written():
                return _union([self.read(branch, shape) for branch in action.branches])
            case resolver.Chosen():
                assert isinstance(shape, Choice)  # noqa: S101  see above
                return self._chosen(action, shape)

    def _record(self, action: resolver.Fields, shape: Group) -> Read:
        steps: list[tuple[str, Read, bool]] = []
        for step in action.steps:
            if step.action is not None and step.name in shape.fields:
                steps.append((step.name, self.read(step.action, shape.fields[step.name]), True))
            else:
                steps.append((step.written.name, self.skip(step.written.schema), False))
        blank: dict[str, Any] = dict.fromkeys(shape.fields)
        for part in action.defaults:
            if part.name in shape.fields:
                read = self.read(resolver.resolve(part.schema, part.schema), shape.fields[part.name])
                blank[part.name] = _default(read, part.schema, part.default)

        def read_record(data: bytes, at: int) -> tuple[Any, int]:
            value = blank.copy()
            name = ""
            try:
                for name, read, kept in steps:
                    part, at = read(data, at)
                    if kept:
                        value[name] = part
            except Unreadable as error:
                error.inside(name)
                raise
            return value, at

        return read_record

    def _chosen(self, action: resolver.Chosen, shape: Choice) -> Read:
        branch, member = shape.branches[action.index], shape.members[action.index]
        if branch is None:
            skip = self.skip(action.writer)
            return lambda data, at: (None, skip(data, at)[1])
        read = self.read(action.action, branch)
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
                        error.inside(f"[{key!r}]")
                        raise

        return read_map

    def _leaf(self, writer: Schema, shape: Leaf) -> Read:
        read = self._plain(writer, shape)
        convert = to_python(shape.type) if self._as_python else None
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

    def _plain(self, writer: Schema, shape: Leaf) -> Read:
        schema = shape.schema
        assert isinstance(schema, Primitive | Fixed)  # noqa: S101  enums have an action of their own
        if isinstance(schema.logical, Decimal):
            return _decimal(schema.logical, writer.size if isinstance(writer, Fixed) else None)
        if isinstance(writer, Fixed):
            return _fixed(writer.size)
        if writer.type in ("string", "bytes"):
            return self._text() if schema.type == "string" else _bytes
        if writer.type in ("int", "long") and schema.type in ("int", "long"):
            return _integer(writer, schema, shape)
        return _numbers(writer.type, schema.type)

    def _text(self) -> Read:
        strict = self._options.strict

        def read_text(data: bytes, at: int) -> tuple[Any, int]:
            start, stop = _read_span(data, at)
            try:
                return str(data[start:stop], "utf-8"), stop
            except UnicodeDecodeError as error:
                if strict:
                    raise Unreadable("text that is not UTF-8", start + error.start) from None
                return str(data[start:stop], "utf-8", "replace"), stop

        return read_text

    def skip(self, schema: Schema) -> Read:
        """Passes over a value; what it returns is worth nothing. Damage is refused as in reading."""
        match schema:
            case Record():
                return self._skip_record(schema)
            case Array():
                return _skip_items(self.skip(schema.items), min_size(schema.items), keys=False)
            case Map():
                return _skip_items(self.skip(schema.values), min_size(schema.values), keys=True)
            case Union():
                return _union([self.skip(branch) for branch in schema.branches])
            case Enum():
                return lambda data, at: _read_index(data, at, len(schema.symbols), "enum symbol")
            case Fixed():
                return _fixed(schema.size)
            case Primitive():
                return _bytes if schema.type in ("string", "bytes") else _numbers(schema.type, schema.type)

    def _skip_record(self, schema: Record) -> Read:
        known = self._skips.get(id(schema))
        if known is not None:
            return known
        steps: list[tuple[str, Read]] = []

        def skip_record(data: bytes, at: int) -> tuple[Any, int]:
            step = ""
            try:
                for name, skip in steps:
                    step = name
                    _, at = skip(data, at)
            except Unreadable as error:
                error.inside(step)
                raise
            return None, at

        self._skips[id(schema)] = skip_record
        steps.extend((part.name, self.skip(part.schema)) for part in schema.fields)
        return skip_record


def _default(read: Read, schema: Schema, value: Any) -> Any:
    try:
        return read(encode_default(schema, value), 0)[0]
    except Unreadable as error:
        raise InvalidDefinition(f"{value!r} is no default for {full_name(schema)}: {error.what}") from None


def _leaf(shape: Shape) -> Leaf:
    assert isinstance(shape, Leaf)  # noqa: S101  the shape is the reader's
    return shape


def _part_size(schema: Array | Map) -> int:
    return min_size(schema.items if isinstance(schema, Array) else schema.values)


def _failing(reason: str) -> Read:
    def fail(data: bytes, at: int) -> tuple[Any, int]:
        raise Unreadable(reason, at if data else None)

    return fail


def _read_index(data: bytes, at: int, length: int, what: str) -> tuple[int, int]:
    index, after = read_int(data, at)
    if not 0 <= index < length:
        raise Unreadable(f"{what} {index} of {length}", at)
    return index, after


def _symbols(action: resolver.Symbols) -> Read:
    written, table = action.writer.symbols, action.table

    def read_symbol(data: bytes, at: int) -> tuple[Any, int]:
        index, after = _read_index(data, at, len(table), "enum symbol")
        symbol = table[index]
        if symbol is None:
            raise Unreadable(f"the symbol {written[index]}, which the reader does not know", at)
        return symbol, after

    return read_symbol


def _array(part: Read, part_size: int) -> Read:
    def read_array(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            count, at = _read_count(data, at, part_size)
            if count == 0:
                return items, at
            if part_size == 0 and len(items) + count > MAX_EMPTY_ITEMS:
                raise Unreadable(f"more than {MAX_EMPTY_ITEMS} items that take no bytes", at)
            try:
                for _ in range(count):
                    item, at = part(data, at)
                    items.append(item)
            except Unreadable as error:
                error.inside(f"[{len(items)}]")
                raise

    return read_array


def _skip_items(part: Read, part_size: int, *, keys: bool) -> Read:
    def skip_items(data: bytes, at: int) -> tuple[Any, int]:
        while True:
            start = at
            count, at = read_long(data, at)
            if count == 0:
                return None, at
            if count < 0:
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


def _bytes(data: bytes, at: int) -> tuple[Any, int]:
    start, stop = _read_span(data, at)
    return data[start:stop], stop


def _fixed(size: int) -> Read:
    def read_fixed(data: bytes, at: int) -> tuple[Any, int]:
        stop = at + size
        if stop > len(data):
            raise Unreadable(f"{size} bytes, but {len(data) - at} are left", at)
        return data[at:stop], stop

    return read_fixed


def _decimal(logical: Decimal, size: int | None) -> Read:
    read = _bytes if size is None else _fixed(size)
    bound, scale = 10**logical.precision, -logical.scale

    def read_decimal(data: bytes, at: int) -> tuple[Any, int]:
        raw, after = read(data, at)
        if not raw:
            raise Unreadable("a decimal of no bytes", at)
        unscaled = int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= bound:
            raise Unreadable(f"a decimal of more than {logical.precision} digits", at)
        return decimal.Decimal(unscaled).scaleb(scale, _CONTEXT), after

    return read_decimal


def _integer(writer: Schema, schema: Primitive | Fixed, shape: Leaf) -> Read:
    read = read_int if writer.type == "int" else read_long
    if schema.logical in ("timestamp-millis", "local-timestamp-millis"):

        def read_millis(data: bytes, at: int) -> tuple[Any, int]:
            millis, after = read(data, at)
            if abs(millis) > _MAX_MILLIS:
                raise Unreadable(f"{millis} milliseconds are more than 64 bits of microseconds", at)
            return millis * 1000, after

        return read_millis
    if shape.type == columns.TIME:

        def read_micros(data: bytes, at: int) -> tuple[Any, int]:
            micros, after = read(data, at)
            if not 0 <= micros < 86_400_000_000:
                raise Unreadable(f"{micros} microseconds are no time of day", at)
            return micros * 1000, after

        return read_micros
    return read


def _numbers(writer: str, schema: str) -> Read:
    """Reads null, boolean, and numbers that are or become floating."""
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
