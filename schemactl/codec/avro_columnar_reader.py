"""Decode the Avro payloads of many messages, of one or several writers, into one Arrow array.

`compile_program` makes the program of one writer and one reader, and `run_programs` decodes a batch with the programs of its writers. A
program walks through the writer's schema once for all messages and keeps the values as *vectors* in the shape of the reader's schema.
Vectors of several writers are merged before anything is copied into Arrow.

A message that is damaged, or that would slow down the others, is marked and left to the scalar path (`avro_reader`), which gives the same
values and knows the reason for an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import avro_resolution
from . import values as codec_values
from .arrow_types import Choice, Group, Leaf, Options, Repeated, Shape
from .avro_reader import BadDefault, read_default
from .avro_resolution import encode_default
from .avro_schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordField,
    compute_min_size,
    list_children,
)
from .byte_batch import ByteBatch, Ints, Mask, make_pairs, take_rows, view_as_pairs
from .values import LIMITS, Scale, get_scale

Vector = Any
"""The values of a shape, in the order of their positions.

A leaf has one numpy array: the numbers of the column, the starts and stops of text and bytes in `ByteBatch.data`, the indexes of the reader's
symbols, or the low and high words of decimals. A record has a list of vectors, a list or map a ListVector, and a union a UnionVector.
"""


class ListVector(NamedTuple):
    """Arrays or maps: the number of items of each, and the vector of all items (of a map: `[keys, values]`)."""

    length: Ints
    items: Vector


class UnionVector(NamedTuple):
    """Values of a union: the slot of each value (-1 for null), and for every slot a vector with one element for each value."""

    slot: npt.NDArray[np.int8]
    slots: list[Vector]


ReadColumn = Callable[[ByteBatch, Ints, Ints], tuple[Vector, Ints]]
"""Reads the values at positions (`at[i]` belongs to the row `rows[i]`), and returns them and the positions after them."""

Default = Callable[[ByteBatch, Ints], Vector]
"""Makes the vector of a field's default, with one element for each of the rows."""

_MAX_RECORD_DEPTH: Final = 100
"""How deep a skipped record may be nested in itself before its rows go to the scalar path."""

_MAX_SIGNATURE_DEPTH: Final = 32
"""How deep records may be nested in a field for which a signature is made."""

_FEW_ROWS: Final = 32
"""With fewer rows than this left, a numpy operation for each further item costs more than the scalar path."""

_FIXED_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NUMPY_TYPES: Final[dict[pa.DataType, Any]] = {
    pa.null(): np.int8,
    pa.bool_(): np.bool_,
    pa.int32(): np.int32,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
"""The numpy types of numbers by the column's type; all others have 64 bits."""


class RecordSteps(NamedTuple):
    """The compiled fields of a record. In a recursive record, both collections grow while the rest is compiled.

    Attributes:
        steps: the fields in the writer's order, each with the name of the reader's field, or None if it is skipped.
        defaults: the defaults of the fields that only the reader has, without blank ones (see `_make_blank`).
    """

    steps: list[tuple[ReadColumn, str | None]]
    defaults: dict[str, Default]


class Program(NamedTuple):
    """The compiled decoder of one writer's messages.

    Attributes:
        shape: the shape of the reader's schema.
        read: decodes whole messages.
        pool: the defaults of fields that only the reader has, in binary form: they are decoded like payloads.
        record: the same as `read`, field by field, where a record is read as a record.
        signatures: for each step of `record`, a value that is equal for fields that are decoded alike, into the same field of the reader.
    """

    shape: Shape
    read: ReadColumn
    pool: bytes
    record: RecordSteps | None = None
    signatures: tuple[Hashable, ...] = ()


def compile_program(action: avro_resolution.Action, shape: Shape, options: Options) -> Program:
    """Compile the program that decodes messages into `shape` as `action` describes."""
    compiler = _ColumnCompiler(options)
    read = compiler.compile(action, shape)
    program = Program(shape, read, bytes(compiler.pool))
    if isinstance(action, avro_resolution.RecordAdjust) and isinstance(shape, Group):
        signatures: list[Hashable] = []
        for step in action.steps:
            try:
                signatures.append(_describe_step(step, ()))
            except _Recursive:
                # The field differs from all others.
                signatures.append(object())
        return program._replace(record=compiler.compile_record(action, shape), signatures=tuple(signatures))
    return program


def run_programs(
    programs: Sequence[tuple[Program, Ints]], payloads: pa.BinaryArray, *, strict: bool
) -> tuple[pa.Array, Mask]:
    """Decode payloads into an array with one element for each, and return it with the mask of rows for the scalar path.

    The elements of masked rows, and of rows without a program, have no meaning.

    Args:
        programs: the programs, all of one shape, each with its rows in ascending order.
        payloads: the payloads of all rows.
        strict: mask also rows with bytes after the value.

    Raises:
        pa.ArrowCapacityError: the values are more than one array holds.
    """
    count = len(payloads)
    batch = ByteBatch(payloads, b"".join(program.pool for program, _ in programs))
    shape = programs[0][0].shape
    if len(programs) == 1 and len(programs[0][1]) == count:
        vector, at = programs[0][0].read(batch, batch.start, batch.rows)
    elif isinstance(shape, Group) and all(program.record for program, _ in programs):
        vector, at = _read_records(batch, shape, programs)
    else:
        at = batch.end.copy()
        pieces: list[tuple[Ints, Vector]] = []
        for program, rows in programs:
            piece, at[rows] = program.read(batch, batch.start[rows], rows)
            batch.pool_start += len(program.pool)
            pieces.append((rows, piece))
        vector = _merge_pieces(shape, pieces, count)
    batch.bad |= at != batch.end if strict else at > batch.end
    return _build_array(batch, shape, vector, count), batch.bad


def _read_records(batch: ByteBatch, shape: Group, programs: Sequence[tuple[Program, Ints]]) -> tuple[Vector, Ints]:
    """Read the records of several writers, together where their fields are written alike, and return the positions after them.

    The orders of `benchmarks/codec.py`, in five versions, take two thirds of the CPU that they take one version after the other.
    """
    at = batch.start.copy()
    pieces: dict[str | None, list[tuple[Ints, Vector]]] = {name: [] for name in shape.fields}
    records = [(program.record, rows) for program, rows in programs if program.record]
    rows_by_writers: dict[tuple[int, ...], Ints] = {(writer,): rows for writer, (_, rows) in enumerate(records)}
    pool_starts = np.cumsum([batch.pool_start, *(len(program.pool) for program, _ in programs)])
    for writers, index in _plan_turns(tuple(program.signatures for program, _ in programs)):
        read, name = records[writers[0]][0].steps[index]
        batch.pool_start = int(pool_starts[writers[0]])
        if writers not in rows_by_writers:
            mask: Mask = np.zeros(batch.count, bool)
            for writer in writers:
                mask[records[writer][1]] = True
            rows_by_writers[writers] = batch.rows if mask.all() else np.flatnonzero(mask)
        rows = rows_by_writers[writers]
        if rows is batch.rows:
            vector, at = read(batch, at, rows)
        else:
            vector, at[rows] = read(batch, at.take(rows), rows)
        if name is not None:
            pieces[name].append((rows, vector))
    for writer, (record, rows) in enumerate(records):
        batch.pool_start = int(pool_starts[writer])
        for name, default in record.defaults.items():
            pieces[name].append((rows, default(batch, rows)))
    return [_merge_pieces(part, pieces[name], batch.count) for name, part in shape.fields.items()], at


# The order in which the fields of several writers are read

Schedule = tuple[tuple[tuple[int, ...], int], ...]
"""The turns: for each, the writers whose next fields are read together, and the index of the first writer's field."""


@lru_cache(maxsize=256)
def _plan_turns(signatures: tuple[tuple[Hashable, ...], ...]) -> Schedule:
    """Plan turns that read all fields of each writer in its order, and fields of equal signatures together where possible.

    `signatures` has the signatures of the fields of each writer.
    """
    positions = [0] * len(signatures)
    remaining = [Counter(fields) for fields in signatures]
    turns: list[tuple[tuple[int, ...], int]] = []
    while True:
        heads: dict[Hashable, list[int]] = {}
        for writer, fields in enumerate(signatures):
            if positions[writer] < len(fields):
                heads.setdefault(fields[positions[writer]], []).append(writer)
        if not heads:
            return tuple(turns)
        # A field that another writer has later waits for it.
        ready = [
            head
            for head, writers in heads.items()
            if not any(remaining[other][head] for other in range(len(remaining)) if other not in writers)
        ]
        next_head = max(ready or heads, key=lambda head: len(heads[head]))
        writers = heads[next_head]
        turns.append((tuple(writers), positions[writers[0]]))
        for writer in writers:
            positions[writer] += 1
            remaining[writer][next_head] -= 1


class _Recursive(Exception):
    """A record is recursive, or nested too deeply to tell."""


def _describe_step(step: avro_resolution.Step, parents: tuple[int, ...]) -> Hashable:
    return None if step.is_skipped else step.name, _describe_action(step.action, parents)


def _describe_action(action: avro_resolution.Action, parents: tuple[int, ...]) -> Hashable:
    match action:
        case avro_resolution.ErrorAction():
            return "failed"
        case avro_resolution.Promote():
            writer = action.writer
            return writer.type, writer.size if isinstance(writer, FixedType) else None
        case avro_resolution.EnumAdjust():
            return action.table
        case avro_resolution.Container():
            return action.writer.type, _describe_action(action.action, parents)
        case avro_resolution.WriterUnion():
            return "union", tuple(_describe_action(branch, parents) for branch in action.branches)
        case avro_resolution.ReaderUnion():
            return "chosen", action.index, _describe_action(action.action, parents)
        case avro_resolution.RecordAdjust():
            if id(action) in parents or len(parents) > _MAX_SIGNATURE_DEPTH:
                raise _Recursive
            inner = (*parents, id(action))
            steps = tuple(_describe_step(step, inner) for step in action.steps)
            return "record", steps, tuple(part.name for part in action.defaults)


# Compilation of actions


class _ColumnCompiler:
    """Compiles actions, as `avro_reader` does, to functions that decode the values of many messages.

    Attributes:
        pool: the defaults of the reader's fields in binary form.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._records: dict[tuple[int, int, bool], tuple[avro_resolution.RecordAdjust, RecordSteps]] = {}
        self.pool = bytearray()

    def compile(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool = False) -> ReadColumn:
        """Compile `action` for a value of `shape`; for None and `jump` see `avro_reader`."""
        match action, shape:
            case (avro_resolution.ErrorAction(), _):
                return _compile_rejection(shape)
            case (avro_resolution.Promote(), Leaf() | None):
                return _compile_leaf(action.writer, shape, strict=self._options.strict)
            case (avro_resolution.EnumAdjust(), _):
                return _compile_enum(action)
            case (avro_resolution.Container(), Repeated() | None):
                return self._compile_items(action, shape, jump=jump)
            case (avro_resolution.RecordAdjust(), Group() | None):
                return _compile_record(self.compile_record(action, shape, jump=jump), shape)
            case (avro_resolution.WriterUnion(), _):
                return _compile_union(
                    [self._compile_branch(branch, shape, jump=jump) for branch in action.branches], shape
                )
            case (avro_resolution.ReaderUnion(), Choice() | None):
                branch = self._compile_branch(action, shape, jump=jump)
                return branch or (lambda _batch, at, rows: (_make_blank(shape, len(rows)), at))
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _compile_branch(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool) -> ReadColumn | None:
        """Compile a branch of the writer's union, or return None if it is the null of the reader's union."""
        if not isinstance(action, avro_resolution.ReaderUnion):
            return self.compile(action, shape, jump=jump)
        branch = shape.branches[action.index] if isinstance(shape, Choice) else None
        read = self.compile(action.action, branch, jump=jump)
        if not isinstance(shape, Choice):
            return read
        if branch is None:
            if action.writer.type == "null":
                return None
            # The value is dropped, because a recursion is cut there.
            return lambda batch, at, rows: (_make_blank(shape, len(rows)), read(batch, at, rows)[1])
        # One slot for each member before it, or without members one slot for all values.
        slot = sum(member is not None for member in shape.members[: action.index]) if any(shape.members) else 0
        shapes = _list_slots(shape)

        def read_slot(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
            vector, after = read(batch, at, rows)
            count = len(rows)
            slots = [vector if number == slot else _make_blank(part, count) for number, part in enumerate(shapes)]
            return UnionVector(np.full(count, slot, np.int8), slots), after

        return read_slot

    def _compile_items(self, action: avro_resolution.Container, shape: Repeated | None, *, jump: bool) -> ReadColumn:
        read_item = self.compile(action.action, None if shape is None else shape.part, jump=jump)
        if isinstance(action.writer, ArrayType):
            return _compile_list(read_item, action.writer, shape, jump=jump)
        string = PrimitiveType("string")
        key_shape = None if shape is None else Leaf(string, pa.string())
        read_key = _compile_leaf(string, key_shape, strict=self._options.strict)

        def read_entry(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
            keys, at = read_key(batch, at, rows)
            values, at = read_item(batch, at, rows)
            return [keys, values], at

        return _compile_list(read_entry, action.writer, shape, jump=jump)

    def compile_record(
        self, action: avro_resolution.RecordAdjust, shape: Group | None, *, jump: bool = False
    ) -> RecordSteps:
        """Compile the fields of a record, once for each action and shape: a record without a column may be recursive."""
        key = (id(action), id(shape), jump)
        if key not in self._records:
            record = RecordSteps([], {})
            # The action is kept so that no other gets its id.
            self._records[key] = (action, record)
            fields = {} if shape is None else shape.fields
            for step in action.steps:
                read = self.compile(step.action, fields.get(step.name), jump=jump or step.is_skipped)
                record.steps.append((read, step.name if step.name in fields else None))
            for part in action.defaults:
                if part.name in fields and (default := self._compile_default(part, fields[part.name])):
                    record.defaults[part.name] = default
        return self._records[key][1]

    def _compile_default(self, part: RecordField, shape: Shape) -> Default | None:
        """Compile the default of a field, or return None if it is blank."""
        try:
            value = read_default(part.schema, part.default, shape, self._options)
        except BadDefault:
            reject = _compile_rejection(shape)
            return lambda batch, rows: reject(batch, rows, rows)[0]
        if _is_blank(value, shape):
            return None
        read = self.compile(avro_resolution.resolve(part.schema, part.schema), shape)
        offset = len(self.pool)
        self.pool += encode_default(part.schema, part.default)

        def read_pool(batch: ByteBatch, rows: Ints) -> Vector:
            count = len(rows)
            return read(batch, np.full(count, batch.pool_start + offset), np.full(count, batch.count))[0]

        return read_pool


def _compile_rejection(shape: Shape | None) -> ReadColumn:
    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        batch.mark(rows)
        return _make_blank(shape, len(rows)), at

    return read


def _is_blank(value: Any, shape: Shape) -> bool:
    """Return whether the storage form of a default is the value that `_make_blank` gives."""
    match shape:
        case (
            Repeated() | Leaf(schema=PrimitiveType(type="boolean" | "int" | "long" | "string" | "bytes", logical=None))
        ):
            return not value
        case Choice():
            return value is None
    return False


def _compile_record(record: RecordSteps, shape: Group | None) -> ReadColumn:
    shapes = {} if shape is None else shape.fields
    depth = 0

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        nonlocal depth
        if depth >= _MAX_RECORD_DEPTH:
            batch.mark(rows)
            return _make_blank(shape, len(rows)), at
        fields: dict[str, Vector] = {}
        depth += 1
        try:
            for step, name in record.steps:
                field, at = step(batch, at, rows)
                if name is not None:
                    fields[name] = field
        finally:
            depth -= 1
        for name, default in record.defaults.items():
            fields[name] = default(batch, rows)
        return [fields[name] if name in fields else _make_blank(part, len(rows)) for name, part in shapes.items()], at

    return read


def _compile_union(branches: Sequence[ReadColumn | None], shape: Shape | None) -> ReadColumn:
    """Compile a writer's union: positions are split by branch (None for null), and the vectors of the branches merged."""

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        index, after, wrong = batch.read_indexes(at, rows, len(branches))
        if wrong is not None:
            index = np.where(wrong, -1, index)
        pieces: list[tuple[Ints, Vector]] = []
        for number, branch in enumerate(branches):
            if branch is None:
                continue
            chosen = np.flatnonzero(index == number)
            if len(chosen) == len(rows):
                return branch(batch, after, rows)
            if len(chosen):
                vector, after[chosen] = branch(batch, after.take(chosen), rows.take(chosen))
                pieces.append((chosen, vector))
        return _merge_pieces(shape, pieces, len(rows)), after

    return read


# Numbers, text and bytes


def _compile_leaf(writer: PrimitiveType | FixedType, shape: Leaf | None, *, strict: bool) -> ReadColumn:
    """Compile a primitive or fixed of `writer` that becomes `shape`; without a shape it is skipped."""
    size = writer.size if isinstance(writer, FixedType) else None
    if shape is None:
        skipped_size = _FIXED_SIZES.get(writer.type, size)
        if skipped_size is not None:
            return lambda _batch, at, _rows: (None, at + skipped_size)
        if writer.type in ("string", "bytes"):
            return lambda batch, at, rows: (None, batch.read_spans(at, rows)[1])
        max_bytes = 5 if writer.type == "int" else 10
        return lambda batch, at, rows: (None, batch.read_numbers(at, rows, max_bytes=max_bytes)[1])

    schema = shape.schema
    assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have another action
    if isinstance(schema.logical, DecimalType):
        return _compile_decimal(schema.logical, size)
    if size is not None:

        def read_fixed(batch: ByteBatch, at: Ints, _: Ints) -> tuple[Vector, Ints]:
            stop = at + size
            # A value that exceeds its row is rejected later, but must not be copied from beyond the batch.
            return make_pairs(np.minimum(at, batch.limit), np.minimum(stop, batch.limit)), stop

        return read_fixed
    if writer.type in ("string", "bytes"):
        return _read_strict_text if strict and schema.type == "string" else _read_spans
    if writer.type in ("float", "double"):
        view, width = ("<f4", 4) if writer.type == "float" else ("<f8", 8)
        dtype = _get_numpy_type(shape.type)

        def read_floating(batch: ByteBatch, at: Ints, _: Ints) -> tuple[Vector, Ints]:
            values = batch.read_items(view, at)
            with np.errstate(invalid="ignore"):
                # A signalling NaN becomes a quiet one.
                return values.astype(dtype, copy=False), at + width

        return read_floating
    if writer.type == "boolean":
        return lambda batch, at, _rows: (batch.read_bytes(at) == 1, at + 1)
    if writer.type == "null":
        return lambda _batch, at, _rows: (np.zeros(len(at), np.int8), at)
    return _compile_integer(writer.type, shape)


def _compile_enum(action: avro_resolution.EnumAdjust) -> ReadColumn:
    """Compile an enum, whose values are indexes of the reader's symbols."""
    index_by_symbol = {symbol: index for index, symbol in enumerate(action.reader.symbols)}
    reader_indexes = np.array([-1 if symbol is None else index_by_symbol[symbol] for symbol in action.table], np.int64)
    all_known = bool((reader_indexes >= 0).all())

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        index, after, wrong = batch.read_indexes(at, rows, len(reader_indexes))
        if not len(reader_indexes):
            return np.zeros(len(at), np.int64), after
        vector = reader_indexes[index if wrong is None else np.where(wrong, 0, index)]
        if not all_known:
            unknown = vector < 0
            batch.mark(rows[unknown])
            vector[unknown] = 0
        return vector, after

    return read


def _read_spans(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
    start, stop = batch.read_spans(at, rows)
    return make_pairs(start, stop), stop


def _read_strict_text(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
    spans, stop = _read_spans(batch, at, rows)
    raw = batch.take_spans(spans)
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in zip(rows, raw.to_pylist(), strict=True):
            try:
                value.decode()
            except UnicodeDecodeError:
                batch.mark(row)
    return spans, stop


def _compile_integer(writer: str, shape: Leaf) -> ReadColumn:
    """Compile an int or long that becomes an integer, a time, or (rounded once, as Java's cast) a floating-point number."""
    max_bytes = 5 if writer == "int" else 10
    kind = shape.schema.type
    low, high, factor = get_scale(shape) if kind in LIMITS else Scale(0, 0, 1)
    # Floats of a union of float and double widen only after they are rounded.
    through = np.float32 if kind == "float" else np.float64 if kind == "double" else np.int64
    dtype = _get_numpy_type(shape.type)

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        values, after = batch.read_numbers(at, rows, max_bytes=max_bytes)
        if factor != 1:
            wrong = (values < low) | (values > high)
            if wrong.any():
                batch.mark(rows[wrong])
                values = np.where(wrong, 0, values)
            values = values * factor
        return values.astype(through, copy=False).astype(dtype, copy=False), after

    return read


def _compile_decimal(logical: DecimalType, size: int | None) -> ReadColumn:
    """Compile a decimal: a big-endian two's complement of any length, which becomes two words of 64 bits."""
    bound = 10**logical.precision
    upper_high, upper_low = _split_words(bound)
    lower_high, lower_low = _split_words(-bound)

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        start, stop = batch.read_spans(at, rows) if size is None else (at, at + size)
        length = stop - start
        # A value without bytes is shifted by all 64 bits.
        low = _read_words(batch, stop - 8, np.maximum(8 - length, 0))
        high = low >> 63
        wrong = length == 0
        if len(length) and length.max() > 8:
            high = np.where(length > 8, _read_words(batch, stop - 16, np.clip(16 - length, 0, 7)), high)
            # The bytes in front of the last sixteen have to repeat the sign.
            for row in np.flatnonzero(length > 16):
                front = batch.data[start[row] : stop[row] - 16]
                wrong[row] |= (front != (0xFF if batch.data[stop[row] - 16] >= 0x80 else 0)).any()
            low_bits = low.view(np.uint64)
            wrong |= (high > upper_high) | ((high == upper_high) & (low_bits >= upper_low))
            wrong |= (high < lower_high) | ((high == lower_high) & (low_bits <= lower_low))
        elif bound <= LIMITS["long"][1]:
            wrong |= (low >= bound) | (low <= -bound)
        if wrong.any():
            batch.mark(rows[wrong])
        return make_pairs(low, high), stop

    return read


def _read_words(batch: ByteBatch, at: Ints, leading: Ints) -> Ints:
    """Return the big-endian word at each position, sign-extended over its first `leading` bytes, which belong to other values."""
    word: Ints = batch.read_items(">u8", at).astype(np.uint64).view(np.int64)
    shift = leading * 8
    return (word << shift) >> shift


def _split_words(number: int) -> tuple[np.int64, np.uint64]:
    return np.int64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)


# Arrays and maps


def _compile_list(
    read_item: ReadColumn, writer: ArrayType | MapType, shape: Repeated | None, *, jump: bool
) -> ReadColumn:
    """Compile an array or map: the first items of all rows are read together, then the second items of rows with two, and so on.

    Without a shape the items are skipped; with `jump`, blocks that state their size are skipped as a whole.
    """
    (item_schema,) = list_children(writer)
    is_map = isinstance(writer, MapType)
    min_size = compute_min_size(item_schema) + is_map
    is_fixed_size = not is_map and item_schema.type in ("null", "boolean", "float", "double", "fixed")
    exact_size = min_size if is_fixed_size else None

    def read(batch: ByteBatch, at: Ints, rows: Ints) -> tuple[Vector, Ints]:
        walk = _BlockWalk(batch, at, rows, read_item)
        walk.read_blocks(min_size, exact_size, jump=jump)
        if shape is None:
            return None, walk.at
        first = np.cumsum(walk.length) - walk.length
        pieces = [(first.take(lists) + nth, vector) for lists, nth, vector in walk.pieces]
        items = _merge_list_items(shape, pieces, int(walk.length.sum()))
        if is_map:
            _mark_duplicate_keys(batch, items[0], walk.length, rows)
        return ListVector(walk.length, items), walk.at

    return read


class _BlockWalk:
    """Reads the blocks of an array or map at many positions.

    Attributes:
        at: the position in each list.
        length: the number of items read from each list.
        pieces: the items: the indexes of lists, the index of an item in each of them, and the vector of these items.
    """

    def __init__(self, batch: ByteBatch, at: Ints, rows: Ints, read_item: ReadColumn) -> None:
        self._batch = batch
        self._rows = rows
        self._read_item = read_item
        self.at = at.copy()
        self.length: Ints = np.zeros(len(rows), np.int64)
        self.pieces: list[tuple[Ints, Ints, Vector]] = []

    def read_blocks(self, min_size: int, exact_size: int | None, *, jump: bool) -> None:
        """Read all blocks of all lists, or with `jump` skip blocks that state their size.

        An item takes at least `min_size` bytes, and exactly `exact_size` bytes if that is known.
        """
        batch, at, rows = self._batch, self.at, self._rows
        lists = np.flatnonzero(batch.mask_unmarked(rows))
        turns = 0
        while len(lists):
            turns += 1
            # A default has one block, so it never gets here.
            if turns > _FEW_ROWS > len(lists):
                batch.mark(rows[lists])
                break
            counts, after, sizes = batch.read_counts(at.take(lists), rows.take(lists), min_size)
            item_counts = counts
            if jump and sizes is not None:
                item_counts = np.where(sizes >= 0, 0, counts)
                after += np.maximum(sizes, 0)
            at[lists] = after
            lists, item_counts = lists.take(np.flatnonzero(counts)), item_counts.compress(counts > 0)
            if exact_size is None:
                self._read_block(lists, item_counts)
            else:
                self._read_even_block(lists, item_counts, exact_size)
            lists = lists.compress(batch.mask_unmarked(rows.take(lists)))
            # A block that ends its row is missing the end of the list.
            open_ended = at.take(lists) >= batch.row_ends(rows.take(lists))
            if open_ended.any():
                batch.mark(rows[lists[open_ended]])
                lists = lists[~open_ended]

    def _read_even_block(self, lists: Ints, counts: Ints, size: int) -> None:
        """Read one block of each of `lists`, in which every item takes `size` bytes, so that all positions are known."""
        owner = np.repeat(np.arange(len(lists)), counts)
        nth = _compute_item_positions(np.zeros(len(lists), np.int64), counts)
        at, length = self.at.take(lists), self.length.take(lists)
        vector, _ = self._read_item(self._batch, at.take(owner) + size * nth, self._rows.take(lists).take(owner))
        self.pieces.append((lists.take(owner), length.take(owner) + nth, vector))
        self.at[lists], self.length[lists] = at + size * counts, length + counts

    def _read_block(self, lists: Ints, counts: Ints) -> None:
        """Read one block of each of `lists`, which have `counts` items: the first items, then the second ones, and so on."""
        batch = self._batch
        # Lists with most items come first, so that the lists with an nth item are always the first ones.
        highest = int(counts.max(initial=0))
        # numpy sorts short integers by digits, many times as fast.
        dtype = np.uint8 if highest < 2**8 else np.uint16 if highest < 2**16 else np.int64
        order = np.argsort((highest - counts).astype(dtype), kind="stable")
        lists, counts = lists.take(order), counts.take(order)
        # A default has no row that could be left to the scalar path, so it is read here even if this is slow.
        if len(lists) and self._rows[lists[0]] != batch.count:
            sparse_count = _count_sparse_lists(counts)
            batch.mark(self._rows[lists[:sparse_count]])
            lists, counts = lists[sparse_count:], counts[sparse_count:]
        at, rows, length = self.at.take(lists), self._rows.take(lists), self.length.take(lists)
        ends = batch.row_ends(rows)
        ascending_counts = counts[::-1]
        for nth in range(int(counts.max(initial=0))):
            count = len(counts) - int(ascending_counts.searchsorted(nth, "right"))
            vector, after = self._read_item(batch, at[:count], rows[:count])
            self.pieces.append((lists[:count], length[:count] + nth, vector))
            over = after > ends[:count]
            if over.any():
                batch.mark(rows[:count][over])
            at[:count] = after
        self.at[lists], self.length[lists] = at, length + counts


def _count_sparse_lists(counts: Ints) -> int:
    """Return how many of the longest lists are not worth reading together with the others.

    `counts` is in descending order. The longest of N such lists has more than N items beyond the length of the next list.
    """
    longest = counts[:_FEW_ROWS]
    next_counts = np.append(longest[1:], counts[_FEW_ROWS] if len(counts) > _FEW_ROWS else 0)
    sparse = np.flatnonzero(longest[0] - next_counts > np.arange(1, len(longest) + 1))
    return int(sparse[-1]) + 1 if len(sparse) else 0


def _mark_duplicate_keys(batch: ByteBatch, keys: Ints, length: Ints, rows: Ints) -> None:
    """Mark the rows of maps with duplicate keys: the scalar path keeps the last value of a key."""
    maps = np.flatnonzero(length > 1)
    if not len(maps):
        return
    counts = length.take(maps)
    positions = _compute_item_positions((np.cumsum(length) - length).take(maps), counts)
    codes = batch.take_spans(keys.take(positions, axis=0)).dictionary_encode()
    distinct = len(codes.dictionary)
    entries = np.sort(np.repeat(maps, counts) * distinct + np.asarray(codes.indices))
    batch.mark(rows[entries[1:][entries[1:] == entries[:-1]] // distinct])


# Vectors


def _list_slots(shape: Choice) -> list[Shape]:
    """Return the shapes of a union's slots: one for each member, or if it has no members one for all values."""
    members = [branch for branch, member in zip(shape.branches, shape.members, strict=True) if branch and member]
    return members or [branch for branch in shape.branches if branch][:1]


def _has_spans(shape: Leaf) -> bool:
    """Return whether the vector of a leaf has the starts and stops of its values."""
    return shape.type in (pa.string(), pa.binary()) and not isinstance(shape.schema, EnumType)


def _get_numpy_type(arrow_type: pa.DataType) -> Any:
    """Return the numpy type for the numbers of a column."""
    return _NUMPY_TYPES.get(arrow_type, np.int64)


def _make_blank(shape: Shape | None, count: int) -> Vector:
    """Make a vector of zeros, empty values and nulls, for positions without a value; None without a column."""
    match shape:
        case None:
            return None
        case Leaf():
            if _has_spans(shape) or pa.types.is_decimal(shape.type):
                return np.zeros((count, 2), np.int64)
            return np.zeros(count, np.int64 if isinstance(shape.schema, EnumType) else _get_numpy_type(shape.type))
        case Group():
            return [_make_blank(part, count) for part in shape.fields.values()]
        case Repeated():
            return ListVector(np.zeros(count, np.int64), _make_blank_items(shape, 0))
        case Choice():
            return UnionVector(np.full(count, -1, np.int8), [_make_blank(part, count) for part in _list_slots(shape)])


def _make_blank_items(shape: Repeated, count: int) -> Vector:
    """Make a blank vector for the items of an array or map."""
    items = _make_blank(shape.part, count)
    return items if isinstance(shape.schema, ArrayType) else [np.zeros((count, 2), np.int64), items]


def _merge_pieces(shape: Shape | None, pieces: Sequence[tuple[Ints, Vector]], count: int) -> Vector:
    """Merge vectors into one of `count` values, which is blank where no piece has a value.

    Each piece has the positions of its values. A piece of all values has them in order.
    """
    if shape is None or not pieces:
        return _make_blank(shape, count)
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    match shape:
        case Leaf():
            return _merge_arrays(pieces, count)
        case Group():
            return [
                _merge_pieces(part, [(index, vector[number]) for index, vector in pieces], count)
                for number, part in enumerate(shape.fields.values())
            ]
        case Repeated():
            length = _merge_arrays([(index, vector.length) for index, vector in pieces], count)
            first = np.cumsum(length) - length
            item_pieces = [
                (_compute_item_positions(first[index], vector.length), vector.items) for index, vector in pieces
            ]
            return ListVector(length, _merge_list_items(shape, item_pieces, int(length.sum())))
        case Choice():
            slot = _merge_arrays([(index, vector.slot) for index, vector in pieces], count, fill=-1)
            slots = [
                _merge_pieces(part, [(index, vector.slots[number]) for index, vector in pieces], count)
                for number, part in enumerate(_list_slots(shape))
            ]
            return UnionVector(slot, slots)


def _merge_list_items(shape: Repeated, pieces: Sequence[tuple[Ints, Vector]], count: int) -> Vector:
    """Merge vectors of the items of arrays or maps, as `_merge_pieces` does."""
    if isinstance(shape.schema, ArrayType):
        return _merge_pieces(shape.part, pieces, count)
    if not pieces:
        return _make_blank_items(shape, count)
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    keys = _merge_arrays([(index, vector[0]) for index, vector in pieces], count)
    return [keys, _merge_pieces(shape.part, [(index, vector[1]) for index, vector in pieces], count)]


def _merge_arrays(pieces: Sequence[tuple[Ints, Any]], count: int, *, fill: int = 0) -> Any:
    first = pieces[0][1]
    size = (count, *first.shape[1:])
    complete = sum(len(index) for index, _ in pieces) == count
    out = np.empty(size, first.dtype) if complete else np.full(size, fill, first.dtype)
    for index, vector in pieces:
        if vector.ndim == 1:
            out[index] = vector
        else:
            view_as_pairs(out)[index] = view_as_pairs(vector)
    return out


def _compute_item_positions(first: Ints, length: Ints) -> Ints:
    """Return the positions of the items of lists, given the position of each list's first item."""
    total = int(length.sum())
    positions: Ints = np.repeat(first - (np.cumsum(length) - length), length) + np.arange(total)
    return positions


# Arrow arrays


def _build_array(batch: ByteBatch, shape: Shape, vector: Vector, count: int, valid: Mask | None = None) -> pa.Array:
    """Build the Arrow array of a vector, with null where it is not `valid`."""
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    match shape:
        case Leaf(schema=EnumType(symbols=symbols)):
            texts = take_rows(pa.array(symbols, pa.string()), vector) if symbols else pa.nulls(count, pa.string())
            return _set_validity(texts, bits)
        case Leaf() if _has_spans(shape):
            values = _build_text_array(batch, vector) if shape.type == pa.string() else batch.take_spans(vector)
            return _set_validity(values, bits)
        case Leaf() if shape.type == pa.null():
            return pa.nulls(count)
        case Leaf():
            numbers = np.packbits(vector, bitorder="little") if shape.type == pa.bool_() else vector
            return pa.Array.from_buffers(shape.type, count, [bits, pa.py_buffer(np.ascontiguousarray(numbers))])
        case Group():
            parts = [
                _build_array(batch, part, field, count)
                for part, field in zip(shape.fields.values(), vector, strict=True)
            ]
            return pa.Array.from_buffers(shape.type, count, [bits], children=parts)
        case Repeated():
            offsets = np.zeros(count + 1, np.int32)
            np.cumsum(vector.length, out=offsets[1:])
            item_count = int(offsets[-1])
            if isinstance(shape.schema, ArrayType):
                items = _build_array(batch, shape.part, vector.items, item_count)
            else:
                keys, values = vector.items
                entries = [_build_text_array(batch, keys), _build_array(batch, shape.part, values, item_count)]
                items = pa.Array.from_buffers(shape.type.field(0).type, item_count, [None], children=entries)
            return pa.Array.from_buffers(shape.type, count, [bits, pa.py_buffer(offsets)], children=[items])
        case Choice():
            is_set = vector.slot >= 0
            if valid is not None:
                is_set &= valid
            if vector.slots and not any(shape.members):
                only = _list_slots(shape)[0]
                return _build_array(batch, only, vector.slots[0], count, None if is_set.all() else is_set)
            parts = [
                _build_array(batch, part, slot, count, vector.slot == number)
                for number, (part, slot) in enumerate(zip(_list_slots(shape), vector.slots, strict=True))
            ]
            bits = pa.py_buffer(np.packbits(is_set, bitorder="little"))
            return pa.Array.from_buffers(shape.type, count, [bits], children=parts)


def _set_validity(values: pa.Array, bits: pa.Buffer | None) -> pa.Array:
    return values if bits is None else pa.Array.from_buffers(values.type, len(values), [bits, *values.buffers()[1:]])


def _build_text_array(batch: ByteBatch, spans: Ints) -> pa.StringArray:
    """Build an array of the texts, in which U+FFFD replaces bytes that are not UTF-8, as in Java."""
    raw = batch.take_spans(spans)
    buffers = raw.buffers()
    if buffers[2] is None or not len(buffers[2]) or np.frombuffer(buffers[2], np.int8).min() >= 0:
        # Bytes that are all ASCII need no validation, and this test is much faster than one.
        return pa.Array.from_buffers(pa.string(), len(raw), buffers)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(map(codec_values.decode_text, raw.to_pylist()), pa.string())
