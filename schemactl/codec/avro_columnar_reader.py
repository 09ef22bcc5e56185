"""The vectorised reader of Avro's binary form: the actions and shapes of `avro_reader`, for many messages at once.

Reading goes through the writer's schema once and keeps what it saw in the reader's shape (`lane_columns`), so that messages
of many versions come together before anything becomes Arrow. What is damaged or would waste the lanes is marked and left
to the scalar path, which knows the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from . import resolver
from .avro_reader import BadDefault, default_storage
from .columns import Choice, Group, Leaf, Options, Repeated, Shape
from .defaults import encode_default
from .lane_columns import (
    Picked,
    Seen,
    blank,
    finish,
    merge,
    slot_of,
    slots_of,
)
from .lane_leaves import Read, enums, leaf
from .lane_lists import lists
from .lane_schedule import schedule, signature
from .lanes import Ints, Lanes, Mask
from .schema import (
    ArrayType,
    PrimitiveType,
    RecordField,
)

_MAX_DEPTH: Final = 100
"""How often a record is passed over inside itself before the scalar path takes the row."""


Default = Callable[[Lanes, Ints], Seen]
"""What is seen of a default, once for each of the rows."""


class RecordSteps(NamedTuple):
    """A record as its fields; both may be added to while the rest is compiled.

    Attributes:
        steps: in the writer's order, with the reader's field each goes to (None: passed over).
        defaults: the reader's own fields, but for those that are blank.
    """

    steps: list[tuple[Read, str | None]]
    defaults: dict[str, Default]


class Program(NamedTuple):
    """How one writer's messages are read into a shape.

    Attributes:
        shape: the reader's.
        read: goes through a message.
        pool: the defaults of the reader's own fields, in binary form: they are read like what was written.
        record: what `read` does, field by field, where a record becomes a record.
        signatures: of the steps of `record`, see `lane_schedule.signature`.
    """

    shape: Shape
    read: Read
    pool: bytes
    record: RecordSteps | None = None
    signatures: tuple[Hashable, ...] = ()


def compile_lanes(action: resolver.Action, shape: Shape, options: Options) -> Program:
    """Return the program that reads what `action` says into `shape`."""
    compiler = _LaneCompiler(options)
    read = compiler.read(action, shape)
    program = Program(shape, read, bytes(compiler.pool))
    if isinstance(action, resolver.RecordAdjust) and isinstance(shape, Group):
        signatures = tuple(map(signature, action.steps))
        return program._replace(record=compiler.record(action, shape), signatures=signatures)
    return program


def decode_lanes(
    programs: Sequence[tuple[Program, Ints]], payloads: pa.BinaryArray, *, strict: bool
) -> tuple[pa.Array, Mask]:
    """Return an array with one element a payload, and the rows whose elements mean nothing: the scalar path judges them.

    Args:
        programs: all into one shape, each with the rows that it reads, in order; rows that none of them reads mean nothing,
            but are not in the mask.
        payloads: what is read.
        strict: bytes behind a value make its row one to judge.
    """
    count = len(payloads)
    lanes = Lanes(payloads, b"".join(program.pool for program, _ in programs))
    shape = programs[0][0].shape
    if len(programs) == 1 and len(programs[0][1]) == count:
        seen, at = programs[0][0].read(lanes, lanes.start, lanes.rows)
    elif isinstance(shape, Group) and all(program.record for program, _ in programs):
        seen, at = _read_records(lanes, shape, programs)
    else:
        at = lanes.end.copy()
        pieces: list[tuple[Ints, Seen]] = []
        for program, rows in programs:
            part, at[rows] = program.read(lanes, lanes.start[rows], rows)
            lanes.pool_start += len(program.pool)
            pieces.append((rows, part))
        seen = merge(shape, pieces, count)
    lanes.bad |= at != lanes.end if strict else at > lanes.end
    return finish(lanes, shape, seen, count), lanes.bad


def _read_records(lanes: Lanes, shape: Group, programs: Sequence[tuple[Program, Ints]]) -> tuple[Seen, Ints]:
    """Return what many writers' records are, read together where they are written alike, and the positions behind them."""
    at = lanes.start.copy()
    pieces: dict[str | None, list[tuple[Ints, Seen]]] = {name: [] for name in shape.fields}
    records = [(program.record, rows) for program, rows in programs if program.record]
    rows_of: dict[tuple[int, ...], Ints] = {}
    pools = np.cumsum([lanes.pool_start, *(len(program.pool) for program, _ in programs)])
    for writers, place in schedule(tuple(program.signatures for program, _ in programs)):
        read, name = records[writers[0]][0].steps[place]
        lanes.pool_start = int(pools[writers[0]])
        rows = _rows_of(writers, records, rows_of, lanes)
        if rows is lanes.rows:
            seen, at = read(lanes, at, rows)
        else:
            seen, at[rows] = read(lanes, at.take(rows), rows)
        if name is not None:
            pieces[name].append((rows, seen))
    for writer, (record, rows) in enumerate(records):
        lanes.pool_start = int(pools[writer])
        for name, default in record.defaults.items():
            pieces[name].append((rows, default(lanes, rows)))
    return [merge(part, pieces[name], lanes.count) for name, part in shape.fields.items()], at


def _rows_of(
    writers: tuple[int, ...],
    records: Sequence[tuple[RecordSteps, Ints]],
    known: dict[tuple[int, ...], Ints],
    lanes: Lanes,
) -> Ints:
    """Return the rows of several writers, in order; what was asked for before is known."""
    if len(writers) == 1:
        return records[writers[0]][1]
    if writers not in known:
        mask: Mask = np.zeros(lanes.count, bool)
        for writer in writers:
            mask[records[writer][1]] = True
        known[writers] = lanes.rows if mask.all() else np.flatnonzero(mask)
    return known[writers]


class _LaneCompiler:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._records: dict[tuple[int, int, bool], tuple[resolver.RecordAdjust, RecordSteps]] = {}
        self.pool = bytearray()

    def read(self, action: resolver.Action, shape: Shape | None, *, jump: bool = False) -> Read:
        """Read what `action` says, as `shape`; None and `jump` as in `avro_reader`."""
        match action, shape:
            case (resolver.ErrorAction(), _):
                return _rejecting(shape)
            case (resolver.Promote(), Leaf() | None):
                return leaf(action.writer, shape, strict=self._options.strict)
            case (resolver.EnumAdjust(), _):
                return enums(action)
            case (resolver.Container(), Repeated() | None):
                return self._items(action, shape, jump=jump)
            case (resolver.RecordAdjust(), Group() | None):
                return _record(self.record(action, shape, jump=jump), shape)
            case (resolver.WriterUnion(), _):
                return _union([self._branch(branch, shape, jump=jump) for branch in action.branches], shape)
            case (resolver.ReaderUnion(), Choice() | None):
                return self._branch(action, shape, jump=jump) or _null(shape)
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _branch(self, action: resolver.Action, shape: Shape | None, *, jump: bool) -> Read | None:
        """Read one branch of the writer's union; None: a null that stays one."""
        if not isinstance(action, resolver.ReaderUnion):
            return self.read(action, shape, jump=jump)
        branch = shape.branches[action.index] if isinstance(shape, Choice) else None
        read = self.read(action.action, branch, jump=jump)
        if not isinstance(shape, Choice):
            return read
        if branch is None:
            return None if action.writer.type == "null" else _dropped(read, shape)
        return _picked(read, slot_of(shape, action.index), shape)

    def _items(self, action: resolver.Container, shape: Repeated | None, *, jump: bool) -> Read:
        part = self.read(action.action, None if shape is None else shape.part, jump=jump)
        if isinstance(action.writer, ArrayType):
            return lists(part, action.writer, shape, jump=jump)
        text = PrimitiveType("string")
        key = leaf(text, None if shape is None else Leaf(text, pa.string()), strict=self._options.strict)

        def entry(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
            keys, at = key(lanes, at, rows)
            values, at = part(lanes, at, rows)
            return [keys, values], at

        return lists(entry, action.writer, shape, jump=jump)

    def record(
        self, action: resolver.RecordAdjust, shape: Group | None, *, jump: bool = False
    ) -> RecordSteps:
        """Return how a record is read. It is made once: where it has no column, it may hold itself."""
        place = (id(action), id(shape), jump)
        if place not in self._records:
            record = RecordSteps([], {})
            # The action is kept so that no other gets its id.
            self._records[place] = (action, record)
            fields = {} if shape is None else shape.fields
            for step in action.steps:
                read = self.read(step.action, fields.get(step.name), jump=jump or step.is_skipped)
                record.steps.append((read, step.name if step.name in fields else None))
            for part in action.defaults:
                if part.name in fields and (default := self._default(part, fields[part.name])):
                    record.defaults[part.name] = default
        return self._records[place][1]

    def _default(self, part: RecordField, shape: Shape) -> Default | None:
        """Return what is seen of a field's default; None: what is seen where nothing is."""
        try:
            value = default_storage(part.schema, part.default, shape, self._options)
        except BadDefault:
            reject = _rejecting(shape)
            return lambda lanes, rows: reject(lanes, rows, rows)[0]
        if _is_blank(value, shape):
            return None
        read = self.read(resolver.resolve(part.schema, part.schema), shape)
        default = _default(read, len(self.pool))
        self.pool += encode_default(part.schema, part.default)
        return default


def _rejecting(shape: Shape | None) -> Read:
    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        lanes.mark(rows)
        return blank(shape, len(rows)), at

    return read


def _null(shape: Shape | None) -> Read:
    return lambda _lanes, at, rows: (blank(shape, len(rows)), at)


def _dropped(read: Read, shape: Shape) -> Read:
    return lambda lanes, at, rows: (blank(shape, len(rows)), read(lanes, at, rows)[1])


def _default(read: Read, place: int) -> Default:
    def read_default(lanes: Lanes, rows: Ints) -> Seen:
        count = len(rows)
        return read(lanes, np.full(count, lanes.pool_start + place), np.full(count, lanes.count))[0]

    return read_default


def _is_blank(value: Any, shape: Shape) -> bool:
    """Whether the storage form of a default is what is seen where nothing is."""
    match shape:
        case (
            Repeated()
            | Leaf(schema=PrimitiveType(type="boolean" | "int" | "long" | "string" | "bytes", logical=None))
        ):
            return not value
        case Choice():
            return value is None
    return False


def _record(record: RecordSteps, shape: Group | None) -> Read:
    """Read a record."""
    depth = 0

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        nonlocal depth
        if depth >= _MAX_DEPTH:
            lanes.mark(rows)
            return blank(shape, len(rows)), at
        seen: dict[str, Seen] = {}
        depth += 1
        try:
            for step, name in record.steps:
                part, at = step(lanes, at, rows)
                if name is not None:
                    seen[name] = part
        finally:
            depth -= 1
        for name, default in record.defaults.items():
            seen[name] = default(lanes, rows)
        fields = {} if shape is None else shape.fields
        return [seen[name] if name in seen else blank(part, len(rows)) for name, part in fields.items()], at

    return read


def _union(branches: Sequence[Read | None], shape: Shape | None) -> Read:
    """Read the writer's union: lanes split by branch (None: a null), and are joined again."""

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        index, after, wrong = lanes.indexes(at, rows, len(branches))
        if wrong is not None:
            index = np.where(wrong, -1, index)
        pieces: list[tuple[Ints, Seen]] = []
        for number, branch in enumerate(branches):
            if branch is None:
                continue
            here = np.flatnonzero(index == number)
            if len(here) == len(rows):
                return branch(lanes, after, rows)
            if len(here):
                seen, after[here] = branch(lanes, after.take(here), rows.take(here))
                pieces.append((here, seen))
        return merge(shape, pieces, len(rows)), after

    return read


def _picked(read: Read, slot: int, shape: Choice) -> Read:
    """Read a branch of the writer's that becomes a value of the reader's union."""
    others = slots_of(shape)

    def read_picked(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        seen, after = read(lanes, at, rows)
        count = len(rows)
        slots = [seen if number == slot else blank(part, count) for number, part in enumerate(others)]
        return Picked(np.full(count, slot, np.int8), slots), after

    return read_picked
