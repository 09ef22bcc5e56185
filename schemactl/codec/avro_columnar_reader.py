"""Read Avro's binary form of many messages at once: the order of fields, numbers and text, lists, and Arrow columns.

What was seen of a leaf is one numpy array, a row of it a value: numbers as the column has them; for text and bytes the start
and stop of each value in `Lanes.data`; for an enum the place of the reader's symbol; for a decimal its low and high word.
Around leaves there are lists (of a record's fields), Listed and Picked. All of it can be put together in any order before
anything is copied into Arrow, once.

Reading goes through the writer's schema once and keeps what it saw in the reader's shape, so that messages
of many versions come together before anything becomes Arrow. What is damaged or would waste the lanes is marked and left
to the scalar path, which knows the reason.
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
from .avro_reader import BadDefault, default_storage
from .avro_resolution import encode_default
from .avro_schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordField,
    children,
    min_size,
)
from .byte_batch import Ints, Lanes, Mask, pairs, taken, whole
from .values import LIMITS, Scale, scale_of

Schedule = tuple[tuple[tuple[int, ...], int], ...]
"""For each turn, the writers that take it, and which of its fields the first of them reads."""


@lru_cache(maxsize=256)
def schedule(signatures: tuple[tuple[Hashable, ...], ...]) -> Schedule:
    """Return turns for every field of every writer, in its order; fields of equal signature share one where that can be.

    `signatures` are those of each writer's fields.
    """
    at = [0] * len(signatures)
    left = [Counter(fields) for fields in signatures]
    turns: list[tuple[tuple[int, ...], int]] = []
    while True:
        heads: dict[Hashable, list[int]] = {}
        for writer, fields in enumerate(signatures):
            if at[writer] < len(fields):
                heads.setdefault(fields[at[writer]], []).append(writer)
        if not heads:
            return tuple(turns)
        # A field that another writer has further down is worth waiting for.
        ready = [
            head
            for head, writers in heads.items()
            if not any(left[other][head] for other in range(len(left)) if other not in writers)
        ]
        chosen = max(ready or heads, key=lambda head: len(heads[head]))
        writers = heads[chosen]
        turns.append((tuple(writers), at[writers[0]]))
        for writer in writers:
            at[writer] += 1
            left[writer][chosen] -= 1


def signature(step: avro_resolution.Step) -> Hashable:
    """Return a value that is equal for two fields that are read alike, into one field of one reader.

    A recursive one, or one of very many records in one another, is equal to no other.
    """
    try:
        return _step(step, ())
    except _Recursive:
        return object()


_DEEP = 32


class _Recursive(Exception):
    """A record holds itself, or may as well."""


def _step(step: avro_resolution.Step, around: tuple[int, ...]) -> Hashable:
    return None if step.is_skipped else step.name, _action(step.action, around)


def _action(action: avro_resolution.Action, around: tuple[int, ...]) -> Hashable:
    match action:
        case avro_resolution.ErrorAction():
            return "failed"
        case avro_resolution.Promote():
            writer = action.writer
            return writer.type, writer.size if isinstance(writer, FixedType) else None
        case avro_resolution.EnumAdjust():
            return action.table
        case avro_resolution.Container():
            return action.writer.type, _action(action.action, around)
        case avro_resolution.WriterUnion():
            return "union", tuple(_action(branch, around) for branch in action.branches)
        case avro_resolution.ReaderUnion():
            return "chosen", action.index, _action(action.action, around)
        case avro_resolution.RecordAdjust():
            if id(action) in around or len(around) > _DEEP:
                raise _Recursive
            inner = (*around, id(action))
            steps = tuple(_step(step, inner) for step in action.steps)
            return "record", steps, tuple(part.name for part in action.defaults)


# Intermediate columns, before they become Arrow arrays


Seen = Any

_WIDTHS: Final[dict[pa.DataType, Any]] = {
    pa.null(): np.int8,
    pa.bool_(): np.bool_,
    pa.int32(): np.int32,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
"""How numpy holds numbers; the others have 64 bits."""


class Listed(NamedTuple):
    """Lists: how many items each has, and what was seen of all items, list after list (of a map's: [keys, values])."""

    length: Ints
    items: Seen


class Picked(NamedTuple):
    """Values of a union: for each the slot it is in (-1: null), and for every slot what was seen, one a value."""

    slot: npt.NDArray[np.int8]
    slots: list[Seen]


def slots_of(shape: Choice) -> list[Shape]:
    """Return the shapes among which a value of the union is one: its members; without members one slot for all, if any."""
    members = [part for part, member in zip(shape.branches, shape.members, strict=True) if part and member]
    return members or [part for part in shape.branches if part][:1]


def slot_of(shape: Choice, branch: int) -> int:
    """Return the slot into which values of that branch go."""
    return sum(member is not None for member in shape.members[:branch]) if any(shape.members) else 0


def is_spans(shape: Leaf) -> bool:
    """Whether values are seen as starts and stops."""
    return shape.type in (pa.string(), pa.binary()) and not isinstance(shape.schema, EnumType)


def numbers_dtype(arrow_type: pa.DataType) -> Any:
    """Return how numpy holds the numbers of a column."""
    return _WIDTHS.get(arrow_type, np.int64)


def blank(shape: Shape | None, count: int) -> Seen:
    """Return what stands where there is no value: zeros, nothing, nulls; None of what has no column."""
    match shape:
        case None:
            return None
        case Leaf():
            if is_spans(shape) or pa.types.is_decimal(shape.type):
                return np.zeros((count, 2), np.int64)
            return np.zeros(count, np.int64 if isinstance(shape.schema, EnumType) else numbers_dtype(shape.type))
        case Group():
            return [blank(part, count) for part in shape.fields.values()]
        case Repeated():
            return Listed(np.zeros(count, np.int64), blank_items(shape, 0))
        case Choice():
            return Picked(np.full(count, -1, np.int8), [blank(part, count) for part in slots_of(shape)])


def blank_items(shape: Repeated, count: int) -> Seen:
    """Return what `blank` does, for the items of lists: a map's are keys and values."""
    items = blank(shape.part, count)
    return items if isinstance(shape.schema, ArrayType) else [np.zeros((count, 2), np.int64), items]


def merge(shape: Shape | None, pieces: Sequence[tuple[Ints, Seen]], count: int) -> Seen:
    """Join pieces to the lanes of `count` values: each piece with its places. Elsewhere it is blank.

    A piece of all values has them in order.
    """
    if shape is None or not pieces:
        return blank(shape, count)
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    match shape:
        case Leaf():
            return _scattered(pieces, count)
        case Group():
            return [
                merge(part, [(index, seen[at]) for index, seen in pieces], count)
                for at, part in enumerate(shape.fields.values())
            ]
        case Repeated():
            length = _scattered([(index, seen.length) for index, seen in pieces], count)
            first = np.cumsum(length) - length
            moved = [(item_places(first[index], seen.length), seen.items) for index, seen in pieces]
            return Listed(length, merge_items(shape, moved, int(length.sum())))
        case Choice():
            slot = _scattered([(index, seen.slot) for index, seen in pieces], count, blank=-1)
            slots = [
                merge(part, [(index, seen.slots[at]) for index, seen in pieces], count)
                for at, part in enumerate(slots_of(shape))
            ]
            return Picked(slot, slots)


def merge_items(shape: Repeated, pieces: Sequence[tuple[Ints, Seen]], count: int) -> Seen:
    """Join pieces as `merge` does, for the items of lists."""
    if isinstance(shape.schema, ArrayType):
        return merge(shape.part, pieces, count)
    if not pieces:
        return blank_items(shape, count)
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    keys = _scattered([(index, seen[0]) for index, seen in pieces], count)
    return [keys, merge(shape.part, [(index, seen[1]) for index, seen in pieces], count)]


def _scattered(pieces: Sequence[tuple[Ints, Any]], count: int, *, blank: int = 0) -> Any:
    first = pieces[0][1]
    size = (count, *first.shape[1:])
    complete = sum(len(index) for index, _ in pieces) == count
    out = np.empty(size, first.dtype) if complete else np.full(size, blank, first.dtype)
    for index, seen in pieces:
        if seen.ndim == 1:
            out[index] = seen
        else:
            whole(out)[index] = whole(seen)
    return out


def item_places(first: Ints, length: Ints) -> Ints:
    """Return where the items of lists go, whose first ones go to `first`."""
    total = int(length.sum())
    places: Ints = np.repeat(first - (np.cumsum(length) - length), length) + np.arange(total)
    return places


def finish(lanes: Lanes, shape: Shape, seen: Seen, count: int, valid: Mask | None = None) -> pa.Array:
    """Return the Arrow array of what was seen, null where it is not `valid`."""
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    match shape:
        case Leaf():
            return _leaf(lanes, shape, seen, count, bits)
        case Group():
            parts = [finish(lanes, part, held, count) for part, held in zip(shape.fields.values(), seen, strict=True)]
            return pa.Array.from_buffers(shape.type, count, [bits], children=parts)
        case Repeated():
            offsets = np.zeros(count + 1, np.int32)
            np.cumsum(seen.length, out=offsets[1:])
            items = _items(lanes, shape, seen.items, int(offsets[-1]))
            return pa.Array.from_buffers(shape.type, count, [bits, pa.py_buffer(offsets)], children=[items])
        case Choice():
            return _choice(lanes, shape, seen, count, valid)


def _items(lanes: Lanes, shape: Repeated, seen: Seen, count: int) -> pa.Array:
    if isinstance(shape.schema, ArrayType):
        return finish(lanes, shape.part, seen, count)
    keys, held = seen
    entries = [text(lanes, keys), finish(lanes, shape.part, held, count)]
    return pa.Array.from_buffers(shape.type.field(0).type, count, [None], children=entries)


def _choice(lanes: Lanes, shape: Choice, seen: Picked, count: int, valid: Mask | None) -> pa.Array:
    given = seen.slot >= 0
    if valid is not None:
        given &= valid
    if seen.slots and not any(shape.members):
        return finish(lanes, slots_of(shape)[0], seen.slots[0], count, None if given.all() else given)
    parts = [
        finish(lanes, part, held, count, seen.slot == at)
        for at, (part, held) in enumerate(zip(slots_of(shape), seen.slots, strict=True))
    ]
    bits = pa.py_buffer(np.packbits(given, bitorder="little"))
    return pa.Array.from_buffers(shape.type, count, [bits], children=parts)


def _leaf(lanes: Lanes, shape: Leaf, seen: Any, count: int, bits: pa.Buffer | None) -> pa.Array:
    if isinstance(shape.schema, EnumType):
        symbols = pa.array(shape.schema.symbols, pa.string())
        return _masked(taken(symbols, seen) if len(symbols) else pa.nulls(count, pa.string()), bits)
    if is_spans(shape):
        return _masked(text(lanes, seen) if shape.type == pa.string() else lanes.binary(seen), bits)
    if shape.type == pa.null():
        return pa.nulls(count)
    if shape.type == pa.bool_():
        seen = np.packbits(seen, bitorder="little")
    return pa.Array.from_buffers(shape.type, count, [bits, pa.py_buffer(np.ascontiguousarray(seen))])


def _masked(values: pa.Array, bits: pa.Buffer | None) -> pa.Array:
    return values if bits is None else pa.Array.from_buffers(values.type, len(values), [bits, *values.buffers()[1:]])


def text(lanes: Lanes, spans: Ints) -> pa.StringArray:
    """Return the texts; what is not UTF-8 has U+FFFD for what is wrong, as in Java."""
    raw = lanes.binary(spans)
    buffers = raw.buffers()
    if buffers[2] is None or not len(buffers[2]) or np.frombuffer(buffers[2], np.int8).min() >= 0:
        # Plain ASCII is looked through much faster all at once.
        return pa.Array.from_buffers(pa.string(), len(raw), buffers)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(map(codec_values.decode_text, raw.to_pylist()), pa.string())


# Readers of numbers, text and bytes


Read = Callable[[Lanes, Ints, Ints], tuple[Seen, Ints]]
"""From positions (`at[i]` belongs to the row `rows[i]`) to what was seen there, and the positions behind."""


_MAX_LONG = 2**63 - 1


def leaf(writer: PrimitiveType | FixedType, shape: Leaf | None, *, strict: bool) -> Read:
    """Read a primitive or fixed that `writer` wrote and that becomes `shape`; None: it is skipped."""
    if shape is None:
        return _skipped(writer)
    schema = shape.schema
    assert isinstance(schema, PrimitiveType | FixedType)  # noqa: S101  enums have an action of their own
    size = writer.size if isinstance(writer, FixedType) else None
    if isinstance(schema.logical, DecimalType):
        return _decimals(schema.logical, size)
    if size is not None:
        return _fixed(size)
    if writer.type in ("string", "bytes"):
        return _strict_texts if strict and schema.type == "string" else _spans
    if writer.type in ("float", "double"):
        return _floating(writer.type, shape.type)
    if writer.type == "boolean":
        return _booleans
    if writer.type == "null":
        return lambda _lanes, at, _rows: (np.zeros(len(at), np.int8), at)
    return _integers(writer.type, shape)


def enums(action: avro_resolution.EnumAdjust) -> Read:
    """Read an enum: the place among the reader's symbols of what was written."""
    known = {symbol: place for place, symbol in enumerate(action.reader.symbols)}
    places = np.array([-1 if symbol is None else known[symbol] for symbol in action.table], np.int64)
    all_known = bool((places >= 0).all())

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        index, after, wrong = lanes.indexes(at, rows, len(places))
        if not len(places):
            return np.zeros(len(at), np.int64), after
        seen = places[index if wrong is None else np.where(wrong, 0, index)]
        if not all_known:
            unknown = seen < 0
            lanes.mark(rows[unknown])
            seen[unknown] = 0
        return seen, after

    return read


def _spans(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
    start, stop = lanes.spans(at, rows)
    return pairs(start, stop), stop


def _strict_texts(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
    spans, stop = _spans(lanes, at, rows)
    raw = lanes.binary(spans)
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        lanes.mark(rows[[not _is_text(value) for value in raw.to_pylist()]])
    return spans, stop


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fixed(size: int) -> Read:
    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
        stop = at + size
        # What runs over is judged later, but must not be copied from beyond the batch.
        return pairs(np.minimum(at, lanes.limit), np.minimum(stop, lanes.limit)), stop

    return read


def _booleans(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
    return lanes.first(at) == 1, at + 1


def _floating(writer: str, arrow_type: pa.DataType) -> Read:
    view, size = ("<f4", 4) if writer == "float" else ("<f8", 8)
    dtype = numbers_dtype(arrow_type)

    def read(lanes: Lanes, at: Ints, _: Ints) -> tuple[Seen, Ints]:
        values = lanes.items(view, at)
        with np.errstate(invalid="ignore"):
            # A signalling NaN becomes a quiet one.
            return values.astype(dtype, copy=False), at + size

    return read


def _integers(writer: str, shape: Leaf) -> Read:
    """Read an int or long into whole numbers, times, or (rounded once, as Java's cast) floating numbers."""
    max_bytes = 5 if writer == "int" else 10
    kind = shape.schema.type
    low, high, factor = scale_of(shape) if kind in LIMITS else Scale(0, 0, 1)
    # Two steps from a long to an int64 column and beyond: floats of a reader's union branch widen after they are rounded.
    through = np.float32 if kind == "float" else np.float64 if kind == "double" else np.int64
    dtype = numbers_dtype(shape.type)

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        values, after = lanes.numbers(at, rows, max_bytes=max_bytes)
        if factor != 1:
            wrong = (values < low) | (values > high)
            if wrong.any():
                lanes.mark(rows[wrong])
                values = np.where(wrong, 0, values)
            values = values * factor
        return values.astype(through, copy=False).astype(dtype, copy=False), after

    return read


def _decimals(logical: DecimalType, size: int | None) -> Read:
    """Two's complement, big-endian, of any length, as 128 bits; longer than 16 bytes is left to the scalar path."""
    bound = 10**logical.precision

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        start, stop = lanes.spans(at, rows) if size is None else (at, at + size)
        length = stop - start
        # A shift by all 64 bits leaves nothing of what has no bytes.
        low = _word(lanes, stop - 8, np.maximum(8 - length, 0))
        high = low >> 63
        wrong = length == 0
        if len(length) and length.max() > 8:
            high = np.where(length > 8, _word(lanes, stop - 16, np.clip(16 - length, 0, 7)), high)
            wrong |= ~_sign_extended(lanes, start, stop) | ~_within(high, low.view(np.uint64), bound)
        elif bound <= _MAX_LONG:
            wrong |= (low >= bound) | (low <= -bound)
        if wrong.any():
            lanes.mark(rows[wrong])
        return pairs(low, high), stop

    return read


def _word(lanes: Lanes, at: Ints, foreign: Ints) -> Ints:
    """Return the big-endian word at each position, without its first `foreign` bytes, sign extended."""
    word: Ints = lanes.items(">u8", at).astype(np.uint64).view(np.int64)
    shift = foreign * 8
    return (word << shift) >> shift


def _sign_extended(lanes: Lanes, start: Ints, stop: Ints) -> npt.NDArray[np.bool_]:
    """Where the bytes in front of the last sixteen only repeat the sign."""
    good = np.ones(len(start), bool)
    for row in np.flatnonzero(stop - start > 16):
        front = lanes.data[start[row] : stop[row] - 16]
        good[row] = (front == (0xFF if lanes.data[stop[row] - 16] >= 0x80 else 0)).all()
    return good


def _within(high: Ints, low: npt.NDArray[np.uint64], bound: int) -> npt.NDArray[np.bool_]:
    """Where the 128-bit number lies strictly between minus the bound and the bound."""
    most_high, most_low = _halves(bound)
    least_high, least_low = _halves(-bound)
    below = (high < most_high) | ((high == most_high) & (low < most_low))
    above = (high > least_high) | ((high == least_high) & (low > least_low))
    inside: npt.NDArray[np.bool_] = below & above
    return inside


def _halves(number: int) -> tuple[np.int64, np.uint64]:
    return np.int64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)


_SIZES = {"boolean": 1, "float": 4, "double": 8}


def _skipped(schema: PrimitiveType | FixedType) -> Read:
    size = schema.size if isinstance(schema, FixedType) else _SIZES.get(schema.type)
    if schema.type == "null":
        return lambda _lanes, at, _rows: (None, at)
    if size is not None:
        return lambda _lanes, at, _rows: (None, at + size)
    if schema.type in ("string", "bytes"):
        return lambda lanes, at, rows: (None, lanes.spans(at, rows)[1])
    max_bytes = 5 if schema.type == "int" else 10
    return lambda lanes, at, rows: (None, lanes.numbers(at, rows, max_bytes=max_bytes)[1])


# Vectorised lists and maps: the first item of every message, then the second of those that have one,
# and so on.


_FEW_LANES: Final = 32
"""Fewer lanes than this are not worth an operation each for more items than there are lanes."""


def lists(item: Read, writer: ArrayType | MapType, shape: Repeated | None, *, jump: bool) -> Read:
    """Read an array or map: the first item of every lane, then the second of those that have one, and so on.

    `shape` None: the items are passed over; with `jump` whole blocks at once where the writer gave their size.
    """
    (written,) = children(writer)
    is_map = isinstance(writer, MapType)
    least = min_size(written) + is_map
    is_even = not is_map and written.type in ("null", "boolean", "float", "double", "fixed")
    exact = least if is_even else None

    def read(lanes: Lanes, at: Ints, rows: Ints) -> tuple[Seen, Ints]:
        walk = _BlockWalk(lanes, at, rows)
        walk.blocks(item, least, exact, jump=jump)
        if shape is None:
            return None, walk.at
        first = np.cumsum(walk.length) - walk.length
        pieces = [(first.take(here) + nth, seen) for here, nth, seen in walk.parts]
        items = merge_items(shape, pieces, int(walk.length.sum()))
        if is_map:
            _mark_twice(lanes, items[0], walk.length, rows)
        return Listed(walk.length, items), walk.at

    return read


class _BlockWalk:
    """Through the blocks of a list, lane by lane.

    Attributes:
        at: the position of each lane.
        length: the number of items that each has passed.
        parts: the lanes that have an nth item, n for each, and what was seen.
    """

    def __init__(self, lanes: Lanes, at: Ints, rows: Ints) -> None:
        self._lanes = lanes
        self._rows = rows
        self.at = at.copy()
        self.length: Ints = np.zeros(len(rows), np.int64)
        self.parts: list[tuple[Ints, Ints, Any]] = []

    def blocks(self, item: Read, least: int, exact: int | None, *, jump: bool) -> None:
        """Go through all blocks; with `jump`, past those that say their size.

        An item takes `least` bytes at the least, and `exact` bytes if that is known.
        """
        lanes, at, rows = self._lanes, self.at, self._rows
        here = np.flatnonzero(lanes.good(rows))
        turns = 0
        while len(here):
            turns += 1
            # A default is one block.
            if turns > _FEW_LANES > len(here):
                lanes.mark(rows[here])
                break
            count, after, stated = lanes.counts(at.take(here), rows.take(here), least)
            left = count
            if jump and stated is not None:
                left = np.where(stated >= 0, 0, count)
                after += np.maximum(stated, 0)
            at[here] = after
            here = here.take(np.flatnonzero(count))
            pass_block = self._block if exact is None else self._even_block
            pass_block(item, here, left.compress(count > 0), exact or 0)
            here = here.compress(lanes.good(rows.take(here)))
            # A block that ends its row is missing the end of the list.
            open_ended = at.take(here) >= lanes.ends(rows.take(here))
            if open_ended.any():
                lanes.mark(rows[here[open_ended]])
                here = here[~open_ended]

    def _even_block(self, item: Read, here: Ints, left: Ints, size: int) -> None:
        """As `_block`, where all items take `size` bytes: where each lies is known."""
        lane = np.repeat(np.arange(len(here)), left)
        nth = item_places(np.zeros(len(here), np.int64), left)
        at, length = self.at.take(here), self.length.take(here)
        seen, _ = item(self._lanes, at.take(lane) + size * nth, self._rows.take(here).take(lane))
        self.parts.append((here.take(lane), length.take(lane) + nth, seen))
        self.at[here], self.length[here] = at + size * left, length + left

    def _block(self, item: Read, here: Ints, left: Ints, _: int) -> None:
        """Go through one block: `left` items in each of the lanes `here`."""
        lanes = self._lanes
        # The lanes with most items first, so that those that have an nth item are always the first ones.
        order = _most_first(left)
        here, left = here.take(order), left.take(order)
        # A default is as it is, and read whatever it takes.
        if len(here) and self._rows[here[0]] != lanes.count:
            alone = _lonely(left)
            lanes.mark(self._rows[here[:alone]])
            here, left = here[alone:], left[alone:]
        at, rows, length = self.at.take(here), self._rows.take(here), self.length.take(here)
        ends = lanes.ends(rows)
        upwards = left[::-1]
        for nth in range(int(left.max(initial=0))):
            count = len(left) - int(upwards.searchsorted(nth, "right"))
            seen, after = item(lanes, at[:count], rows[:count])
            self.parts.append((here[:count], length[:count] + nth, seen))
            over = after > ends[:count]
            if over.any():
                lanes.mark(rows[:count][over])
            at[:count] = after
        self.at[here], self.length[here] = at, length + left


def _lonely(counts: Ints) -> int:
    """How many lanes, of those with the highest counts, would go on with few beside them for longer than they are many."""
    top = counts[:_FEW_LANES]
    beside = np.append(top[1:], counts[_FEW_LANES] if len(counts) > _FEW_LANES else 0)
    lonely = np.flatnonzero(top[0] - beside > np.arange(1, len(top) + 1))
    return int(lonely[-1]) + 1 if len(lonely) else 0


def _most_first(counts: Ints) -> Ints:
    """Return the places of the counts, from the highest down."""
    most = int(counts.max(initial=0))
    # Short numbers are sorted by digits, many times as fast.
    kind = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int64
    return np.argsort((most - counts).astype(kind), kind="stable")


def _mark_twice(lanes: Lanes, keys: Ints, length: Ints, rows: Ints) -> None:
    """Mark the rows where a key of a map stands twice: the last one counts, which the scalar path sees to."""
    many = np.flatnonzero(length > 1)
    if not len(many):
        return
    counts = length.take(many)
    places = item_places((np.cumsum(length) - length).take(many), counts)
    codes = lanes.binary(keys.take(places, axis=0)).dictionary_encode()
    distinct = len(codes.dictionary)
    entries = np.sort(np.repeat(many, counts) * distinct + np.asarray(codes.indices))
    lanes.mark(rows[entries[1:][entries[1:] == entries[:-1]] // distinct])


# The vectorised reader of Avro's binary form: the actions and shapes of `avro_reader`, for many
# messages at once.


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
        signatures: of the steps of `record`, see `avro_columnar_reader.signature`.
    """

    shape: Shape
    read: Read
    pool: bytes
    record: RecordSteps | None = None
    signatures: tuple[Hashable, ...] = ()


def compile_lanes(action: avro_resolution.Action, shape: Shape, options: Options) -> Program:
    """Return the program that reads what `action` says into `shape`."""
    compiler = _LaneCompiler(options)
    read = compiler.read(action, shape)
    program = Program(shape, read, bytes(compiler.pool))
    if isinstance(action, avro_resolution.RecordAdjust) and isinstance(shape, Group):
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
        self._records: dict[tuple[int, int, bool], tuple[avro_resolution.RecordAdjust, RecordSteps]] = {}
        self.pool = bytearray()

    def read(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool = False) -> Read:
        """Read what `action` says, as `shape`; None and `jump` as in `avro_reader`."""
        match action, shape:
            case (avro_resolution.ErrorAction(), _):
                return _rejecting(shape)
            case (avro_resolution.Promote(), Leaf() | None):
                return leaf(action.writer, shape, strict=self._options.strict)
            case (avro_resolution.EnumAdjust(), _):
                return enums(action)
            case (avro_resolution.Container(), Repeated() | None):
                return self._items(action, shape, jump=jump)
            case (avro_resolution.RecordAdjust(), Group() | None):
                return _record(self.record(action, shape, jump=jump), shape)
            case (avro_resolution.WriterUnion(), _):
                return _union([self._branch(branch, shape, jump=jump) for branch in action.branches], shape)
            case (avro_resolution.ReaderUnion(), Choice() | None):
                return self._branch(action, shape, jump=jump) or _null(shape)
        raise AssertionError(f"{type(action).__name__} into {type(shape).__name__}")

    def _branch(self, action: avro_resolution.Action, shape: Shape | None, *, jump: bool) -> Read | None:
        """Read one branch of the writer's union; None: a null that stays one."""
        if not isinstance(action, avro_resolution.ReaderUnion):
            return self.read(action, shape, jump=jump)
        branch = shape.branches[action.index] if isinstance(shape, Choice) else None
        read = self.read(action.action, branch, jump=jump)
        if not isinstance(shape, Choice):
            return read
        if branch is None:
            return None if action.writer.type == "null" else _dropped(read, shape)
        return _picked(read, slot_of(shape, action.index), shape)

    def _items(self, action: avro_resolution.Container, shape: Repeated | None, *, jump: bool) -> Read:
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

    def record(self, action: avro_resolution.RecordAdjust, shape: Group | None, *, jump: bool = False) -> RecordSteps:
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
        read = self.read(avro_resolution.resolve(part.schema, part.schema), shape)
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
            Repeated() | Leaf(schema=PrimitiveType(type="boolean" | "int" | "long" | "string" | "bytes", logical=None))
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
