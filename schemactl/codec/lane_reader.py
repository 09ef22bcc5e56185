"""Avro's binary form, many messages at once: the same actions and shapes as `avro_reader`, over lanes.

Reading goes through the writer's schema once and keeps what it saw; `finish` turns that into Arrow arrays. What is damaged
or would waste the lanes is marked in `Lanes.bad` and left to the scalar path, which knows the reason.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import resolver
from .avro_reader import default_storage
from .columns import Choice, Group, Items, Leaf, Options, Shape
from .lane_leaves import Node, binary, constant, leaf, text
from .lanes import Ints, Lanes, take_or_null
from .schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union, min_size

_FEW_LANES: Final = 32
"""Fewer lanes than this are not worth an operation each for more items than there are lanes."""

_MAX_DEPTH: Final = 100
"""How often a record is passed over inside itself before the scalar path takes the row."""

_NOTHING: Final = pa.struct([])

_Parts = list[tuple[Ints, Ints, Any]]
"""Of a list: the lanes that have an nth item, n for each, and what was seen."""


def decode_lanes(node: Node, payloads: pa.BinaryArray, *, strict: bool) -> tuple[pa.Array, Lanes]:
    """An array with one element a payload, and the lanes: elements of rows marked there mean nothing."""
    lanes = Lanes(payloads)
    seen, at = node.read(lanes, lanes.start, np.arange(len(payloads)))
    lanes.bad |= at != lanes.end if strict else at > lanes.end
    return node.finish(lanes, seen), lanes


class LaneCompiler:
    """Makes nodes from actions and shapes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._passed: dict[int, Node] = {}

    def node(self, action: resolver.Action, shape: Shape) -> Node:
        """The node that reads what `action` says into arrays of `shape.type`."""
        match action, shape:
            case (resolver.Failed(), _):
                return _refused(shape.type)
            case (resolver.Same() | resolver.Promote(), Leaf()):
                return leaf(action.writer, shape, strict=self._options.strict)
            case (resolver.Symbols(), _):
                return _enums(pa.array(action.table, pa.string()))
            case (resolver.Items(), Items()):
                return self._items(action, shape)
            case (resolver.Fields(), Group()):
                return self._record(action, shape)
            case (resolver.Written(), _):
                branches = [self._branch(branch, shape) for branch in action.branches]
                return _unions(branches, shape.type)
            case (resolver.Chosen(), Choice()):
                chosen = self._branch(action, shape)
                return chosen if chosen is not None else constant(pa.nulls(1, shape.type))
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _branch(self, action: resolver.Action, shape: Shape) -> Node | None:
        """The node of one branch of the writer's union, None for a null that stays one."""
        if not isinstance(action, resolver.Chosen) or not isinstance(shape, Choice):
            return self.node(action, shape)
        branch, member = shape.branches[action.index], shape.members[action.index]
        if branch is None:
            return None if action.writer.type == "null" else _dropped(self.passed(action.writer), shape.type)
        node = self.node(action.action, branch)
        return node if member is None else _member(node, member, shape.type)

    def _items(self, action: resolver.Items, shape: Items) -> Node:
        part = self.node(action.action, shape.part)
        if isinstance(action.writer, Array):
            return _lists(part, min_size(action.writer.items), shape.type)
        key = text(strict=self._options.strict)
        entry = _records([(key, "key"), (part, "value")], {}, shape.type.field(0).type)
        return _lists(entry, 1 + min_size(action.writer.values), shape.type)

    def _record(self, action: resolver.Fields, shape: Group) -> Node:
        steps: list[tuple[Node, str | None]] = []
        for step in action.steps:
            if step.action is not None and step.name in shape.fields:
                steps.append((self.node(step.action, shape.fields[step.name]), step.name))
            else:
                steps.append((self.passed(step.written.schema), None))
        constants = {}
        for part in action.defaults:
            if part.name in shape.fields:
                kept = shape.fields[part.name]
                value = default_storage(part.schema, part.default, kept, self._options)
                constants[part.name] = constant(pa.array([value], kept.type))
        return _records(steps, constants, shape.type)

    def passed(self, schema: Schema) -> Node:
        """The node that passes over a value of `schema`; its array is worth nothing."""
        match schema:
            case Array():
                return _lists(self.passed(schema.items), min_size(schema.items), None)
            case Map():
                entry = _records([(binary(), None), (self.passed(schema.values), None)], {}, _NOTHING)
                return _lists(entry, 1 + min_size(schema.values), None)
            case Union():
                return _unions([self.passed(branch) for branch in schema.branches], pa.null())
            case Record():
                return self._passed_record(schema)
            case Enum():
                return _enums(pa.array(schema.symbols, pa.string()))
            case Fixed():
                return binary(schema.size)
            case Primitive(type="string" | "bytes"):
                return binary()
            case Primitive():
                plain = Primitive(schema.type)
                return leaf(schema, Leaf(plain, pa.null()), strict=False)

    def _passed_record(self, schema: Record) -> Node:
        if id(schema) in self._passed:
            return self._passed[id(schema)]
        steps: list[Node] = []
        depth = 0

        def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
            nonlocal depth
            if depth >= _MAX_DEPTH:
                lanes.bad[rows] = True
                return None, at
            depth += 1
            try:
                for node in steps:
                    _, at = node.read(lanes, at, rows)
            finally:
                depth -= 1
            return None, at

        node = self._passed[id(schema)] = Node(read, lambda _lanes, _seen: pa.nulls(0))
        steps.extend(self.passed(part.schema) for part in schema.fields)
        return node


def _refused(arrow_type: pa.DataType) -> Node:
    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        lanes.bad[rows] = True
        return len(rows), at

    return Node(read, lambda _, seen: pa.nulls(seen, arrow_type))


def _dropped(node: Node, arrow_type: pa.DataType) -> Node:
    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        return len(rows), node.read(lanes, at, rows)[1]

    return Node(read, lambda _, seen: pa.nulls(seen, arrow_type))


def _enums(table: pa.Array) -> Node:
    """The reader's symbol for each of the writer's; null where it has none, and then the row is marked."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        index, after, wrong = lanes.indexes(at, rows, len(table))
        return (index if wrong is None else np.where(wrong, 0, index), rows), after

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        index, rows = seen
        symbols = table.take(pa.array(index))
        if symbols.null_count:
            lanes.bad[rows[np.asarray(symbols.is_null())]] = True
        return symbols

    return Node(read, finish)


def _records(
    steps: list[tuple[Node, str | None]], constants: dict[str, Node], arrow_type: pa.DataType
) -> Node:
    """`steps` in the writer's order, with the column each goes to (None: passed over)."""
    nodes = {name: node for node, name in steps if name is not None} | constants

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        seen: dict[str, Any] = dict.fromkeys(constants, len(rows))
        for node, name in steps:
            part, at = node.read(lanes, at, rows)
            if name is not None:
                seen[name] = part
        return (seen, len(rows)), at

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        parts, count = seen
        columns = [nodes[field.name].finish(lanes, parts[field.name]) for field in arrow_type]
        return _struct(columns, arrow_type, count)

    return Node(read, finish)


def _struct(columns: list[pa.Array], arrow_type: pa.DataType, count: int) -> pa.Array:
    if not columns:
        return pa.Array.from_buffers(arrow_type, count, [None])
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _unions(branches: list[Node | None], arrow_type: pa.DataType) -> Node:
    """The writer's union: lanes part, each to its branch's node (None: a null), and come together again."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        index, after, wrong = lanes.indexes(at, rows, len(branches))
        if wrong is not None:
            index = np.where(wrong, -1, index)
        parts: list[tuple[Ints | None, Node, Any]] = []
        for number, node in enumerate(branches):
            if node is None:
                continue
            here = np.flatnonzero(index == number)
            if len(here) == len(rows):
                seen, after = node.read(lanes, after, rows)
                return (len(rows), [(None, node, seen)]), after
            if len(here):
                seen, after[here] = node.read(lanes, after[here], rows[here])
                parts.append((here, node, seen))
        return (len(rows), parts), after

    return Node(read, lambda lanes, seen: _together(lanes, seen, arrow_type))


def _together(lanes: Lanes, seen: Any, arrow_type: pa.DataType) -> pa.Array:
    """The lanes of a union, in order again."""
    count, parts = seen
    if not parts:
        return pa.nulls(count, arrow_type)
    arrays = [node.finish(lanes, part) for _, node, part in parts]
    if parts[0][0] is None:
        return arrays[0]
    index = np.full(count, -1, np.int64)
    base = 0
    for (here, _, _), array in zip(parts, arrays, strict=True):
        index[here] = np.arange(base, base + len(array))
        base += len(array)
    joined = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return take_or_null(joined, index, nulls=index < 0)


def _member(node: Node, member: str, arrow_type: pa.DataType) -> Node:
    """A branch that becomes one field of the reader's union struct."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        seen, after = node.read(lanes, at, rows)
        return (seen, len(rows)), after

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        part, count = seen
        value = node.finish(lanes, part)
        columns = [value if field.name == member else pa.nulls(count, field.type) for field in arrow_type]
        return _struct(columns, arrow_type, count)

    return Node(read, finish)


def _lists(node: Node, item_size: int, arrow_type: pa.DataType | None) -> Node:
    """An array or map: the first item of every lane, then the second of those that have one, and so on.

    Without a type the items are passed over, whole blocks at once where the writer gave their size.
    """

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Any, Ints]:
        at = at.copy()
        length = np.zeros(len(rows), np.int64)
        parts: _Parts = []
        here = np.flatnonzero(~lanes.bad[rows])
        while len(here):
            count, at[here], size = lanes.counts(at[here], rows[here], item_size)
            left = count
            if arrow_type is None:
                left = np.where(size >= 0, 0, count)
                at[here] += np.maximum(size, 0)
            block = _Block(here[left > 0], left[left > 0])
            parts += _read_block(lanes, node, at, rows, block, length)
            here = here[count > 0]
            here = here[~lanes.bad[rows[here]]]
            # A block that ends its row is missing the end of the list.
            open_ended = at[here] >= lanes.end[rows[here]]
            lanes.bad[rows[here[open_ended]]] = True
            here = here[~open_ended]
        return (length, parts, rows), at

    def finish(lanes: Lanes, seen: Any) -> pa.Array:
        length, parts, rows = seen
        assert arrow_type is not None  # noqa: S101  what is passed over is never finished
        offsets = np.zeros(len(length) + 1, np.int32)
        np.cumsum(length, out=offsets[1:])
        values = _in_order(lanes, node, parts, offsets) if parts else pa.array([], arrow_type.field(0).type)
        if pa.types.is_map(arrow_type):
            _mark_twice(lanes, values.field("key"), length, rows)
        return pa.Array.from_buffers(
            arrow_type, len(length), [None, pa.py_buffer(offsets)], children=[values]
        )

    return Node(read, finish)


class _Block(NamedTuple):
    """Lanes that are inside a block of a list, and how many items each has left in it."""

    here: Ints
    left: Ints


def _read_block(lanes: Lanes, node: Node, at: Ints, rows: Ints, block: _Block, length: Ints) -> _Parts:
    """What was seen of the block's items; `at` and `length` move on with them."""
    here, left = block
    parts: _Parts = []
    while len(here):
        if len(here) < _FEW_LANES and left.max() > len(here):
            lanes.bad[rows[here]] = True
            break
        seen, at[here] = node.read(lanes, at[here], rows[here])
        parts.append((here, length[here], seen))
        length[here] += 1
        left = left - 1
        over = at[here] > lanes.end[rows[here]]
        if over.any():
            lanes.bad[rows[here[over]]] = True
        more = (left > 0) & ~lanes.bad[rows[here]]
        here, left = here[more], left[more]
    return parts


def _in_order(lanes: Lanes, node: Node, parts: _Parts, offsets: Any) -> pa.Array:
    """All items, lane by lane."""
    arrays = [node.finish(lanes, seen) for _, _, seen in parts]
    place = np.concatenate([offsets[here] + nth for here, nth, _ in parts])
    order = np.empty(len(place), np.int64)
    order[place] = np.arange(len(place))
    return (arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)).take(pa.array(order))


def _mark_twice(lanes: Lanes, keys: pa.Array, length: Ints, rows: Ints) -> None:
    """Marks the rows where a key of a map stands twice: the last one counts, which the scalar path sees to."""
    if not (length > 1).any():
        return
    codes = np.asarray(pc.dictionary_encode(keys).indices).astype(np.int64)
    distinct = int(codes.max(initial=0)) + 1
    pairs = np.sort(np.repeat(np.arange(len(length)), length) * distinct + codes)
    lanes.bad[rows[pairs[1:][pairs[1:] == pairs[:-1]] // distinct]] = True
