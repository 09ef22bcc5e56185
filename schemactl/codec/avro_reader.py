"""Avro's binary form, one message at a time: functions compiled from an action and a shape, with a reason for every refusal.

This path is the law: the vectorised one (`lane_reader`) only says faster what this one says.
"""

from __future__ import annotations

from typing import Any

from . import resolver
from .avro_leaves import (
    Read,
    decimals,
    fixed,
    integers,
    max_empty_items,
    numbers,
    read_bytes,
    read_count,
    read_index,
    read_long,
    read_span,
    symbols,
)
from .columns import Choice, Group, Leaf, Options, Repeated, Shape
from .defaults import encode_default
from .errors import LONG_NAME, InvalidDefinition, Unreadable, shortened
from .schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    Schema,
    UnionType,
    full_name,
    min_size,
)
from .values import text, to_python


def reader(action: resolver.Action, shape: Shape, options: Options, *, as_python: bool = False) -> Read:
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


def default_storage(
    schema: Schema, value: Any, shape: Shape, options: Options, *, as_python: bool = False
) -> Any:
    """Return the storage form of a field's default, or the one in Python's own types, as Java makes it: written as binary, then read.

    Raises:
        InvalidDefinition: it is no default for that schema; BadDefault where Java takes it all the same.
    """
    read = reader(resolver.resolve(schema, schema), shape, options, as_python=as_python)
    return _default(read, schema, value)


class BadDefault(InvalidDefinition):
    """Java takes the default of a field, and what it is read as cannot be held."""


class _AvroCompiler:
    def __init__(self, options: Options, *, as_python: bool) -> None:
        self._options = options
        self._as_python = as_python
        self._skips: dict[int, Read] = {}
        self._walks: dict[int, tuple[resolver.RecordAdjust, Read]] = {}
        self._records: dict[tuple[int, int], tuple[resolver.RecordAdjust, Read]] = {}

    def read(self, action: resolver.Action, shape: Shape) -> Read:
        match action:
            case resolver.ErrorAction():
                return _failing(action.reason)
            case resolver.DoNothing() | resolver.Promote():
                return self._leaf(action.writer, _leaf(shape))
            case resolver.EnumAdjust():
                return symbols(action)
            case resolver.Container():
                assert isinstance(shape, Repeated)  # noqa: S101  the shape is the reader's
                part = self.read(action.action, shape.part)
                items = _array if isinstance(action.reader, ArrayType) else self._map
                return items(part, _part_size(action.writer))
            case resolver.RecordAdjust():
                assert isinstance(shape, Group)  # noqa: S101  see above
                # Each once: in a record that holds itself, one shape stands in many places.
                pair = (id(action), id(shape))
                if pair not in self._records:
                    # The action is kept so that no other gets its id.
                    self._records[pair] = (action, self._record(action, shape))
                return self._records[pair][1]
            case resolver.WriterUnion():
                return _union([self.read(branch, shape) for branch in action.branches])
            case resolver.ReaderUnion():
                assert isinstance(shape, Choice)  # noqa: S101  see above
                return self._chosen(action, shape)

    def _record(self, action: resolver.RecordAdjust, shape: Group) -> Read:
        steps: list[tuple[str, Read, bool]] = []
        for step in action.steps:
            if step.action is not None and step.name in shape.fields:
                steps.append((step.name, self.read(step.action, shape.fields[step.name]), True))
            else:
                steps.append((step.written.name, self._unkept(step), False))
        blank: dict[str, Any] = dict.fromkeys(shape.fields)
        for part in action.defaults:
            if part.name in shape.fields:
                read = self.read(resolver.resolve(part.schema, part.schema), shape.fields[part.name])
                try:
                    blank[part.name] = _default(read, part.schema, part.default)
                except BadDefault as error:
                    # Only a message that needs it cannot be read.
                    steps.append((part.name, _failing(str(error)), False))

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

    def _chosen(self, action: resolver.ReaderUnion, shape: Choice) -> Read:
        branch, member = shape.branches[action.index], shape.members[action.index]
        if branch is None:
            walk = self.walk(action.action)
            return lambda data, at: (None, walk(data, at)[1])
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
                count, at = read_count(data, at, 1 + part_size)
                if count == 0:
                    return (entries if as_python else list(entries.items())), at
                for _ in range(count):
                    key, at = read_key(data, at)
                    try:
                        entries[key], at = part(data, at)
                    except Unreadable as error:
                        error.inside(f"[{shortened(repr(key), LONG_NAME)}]")
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
        assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have an action of their own
        if isinstance(schema.logical, DecimalType):
            return decimals(schema.logical, writer.size if isinstance(writer, FixedType) else None)
        if isinstance(writer, FixedType):
            return fixed(writer.size)
        if writer.type in ("string", "bytes"):
            return self._text() if schema.type == "string" else read_bytes
        if writer.type in ("int", "long") and schema.type in ("int", "long"):
            return integers(writer, schema, shape)
        return numbers(writer.type, schema.type)

    def _text(self) -> Read:
        strict = self._options.strict

        def read_text(data: bytes, at: int) -> tuple[Any, int]:
            start, stop = read_span(data, at)
            raw = data[start:stop]
            if strict:
                try:
                    return raw.decode(), stop
                except UnicodeDecodeError as error:
                    raise Unreadable("text that is not UTF-8", start + error.start) from None
            return text(raw), stop

        return read_text

    def walk(self, action: resolver.Action) -> Read:
        """Read a value that the columns have no place for, where a recursion is cut; the result means nothing."""
        match action:
            case resolver.ErrorAction():
                return _failing(action.reason)
            case resolver.DoNothing() | resolver.Promote():
                return self.skip(action.writer)
            case resolver.EnumAdjust():
                return symbols(action)
            case resolver.Container():
                part, size = self.walk(action.action), _part_size(action.writer)
                return _skip_items(part, size, keys=isinstance(action.writer, MapType), jump=False)
            case resolver.RecordAdjust():
                return self._walk_record(action)
            case resolver.WriterUnion():
                return _union([self.walk(branch) for branch in action.branches])
            case resolver.ReaderUnion():
                return self.walk(action.action)

    def _walk_record(self, action: resolver.RecordAdjust) -> Read:
        if id(action) not in self._walks:
            steps: list[tuple[str, Read]] = []
            self._walks[id(action)] = (action, _steps(steps))
            steps.extend((step.written.name, self._unkept(step)) for step in action.steps)
        return self._walks[id(action)][1]

    def _unkept(self, step: resolver.Step) -> Read:
        """Only what the reader's schema does not have is passed over unseen."""
        return self.skip(step.written.schema) if step.action is None else self.walk(step.action)

    def skip(self, schema: Schema) -> Read:
        """Skip a value; the result means nothing. Damage is an error as in reading."""
        match schema:
            case RecordType():
                return self._skip_record(schema)
            case ArrayType():
                return _skip_items(self.skip(schema.items), min_size(schema.items), keys=False, jump=True)
            case MapType():
                return _skip_items(self.skip(schema.values), min_size(schema.values), keys=True, jump=True)
            case UnionType():
                return _union([self.skip(branch) for branch in schema.branches])
            case EnumType():
                return lambda data, at: read_index(data, at, len(schema.symbols), "enum symbol")
            case FixedType():
                return fixed(schema.size)
            case PrimitiveType():
                return read_bytes if schema.type in ("string", "bytes") else numbers(schema.type, schema.type)

    def _skip_record(self, schema: RecordType) -> Read:
        if id(schema) not in self._skips:
            steps: list[tuple[str, Read]] = []
            self._skips[id(schema)] = _steps(steps)
            steps.extend((part.name, self.skip(part.schema)) for part in schema.fields)
        return self._skips[id(schema)]


def _steps(steps: list[tuple[str, Read]]) -> Read:
    """Goes through a record field by field; the steps may be added later."""

    def go_through(data: bytes, at: int) -> tuple[Any, int]:
        step = ""
        try:
            for name, read in steps:
                step = name
                _, at = read(data, at)
        except Unreadable as error:
            error.inside(step)
            raise
        return None, at

    return go_through


def _default(read: Read, schema: Schema, value: Any) -> Any:
    try:
        return read(encode_default(schema, value), 0)[0]
    except Unreadable as error:
        raise BadDefault(f"{value!r} is no default for {full_name(schema)}: {error.what}") from None


def _leaf(shape: Shape) -> Leaf:
    assert isinstance(shape, Leaf)  # noqa: S101  the shape is the reader's
    return shape


def _part_size(schema: ArrayType | MapType) -> int:
    return min_size(schema.items if isinstance(schema, ArrayType) else schema.values)


def _failing(reason: str) -> Read:
    def fail(data: bytes, at: int) -> tuple[Any, int]:
        raise Unreadable(reason, at if data else None)

    return fail


def _array(part: Read, part_size: int) -> Read:
    def read_array(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            count, at = read_count(data, at, part_size)
            if count == 0:
                return items, at
            if part_size == 0 and len(items) + count > max_empty_items(data):
                raise Unreadable(f"more than {max_empty_items(data)} items that take no bytes", at)
            try:
                for _ in range(count):
                    item, at = part(data, at)
                    items.append(item)
            except Unreadable as error:
                error.inside(f"[{len(items)}]")
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
            count, at = read_count(data, start, part_size + keys)
            for _ in range(count):
                if keys:
                    at = read_span(data, at)[1]
                at = part(data, at)[1]

    return skip_items


def _union(branches: list[Read]) -> Read:
    def read_union(data: bytes, at: int) -> tuple[Any, int]:
        index, after = read_index(data, at, len(branches), "union branch")
        return branches[index](data, after)

    return read_union
