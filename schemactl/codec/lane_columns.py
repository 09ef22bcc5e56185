"""The intermediate columns of the vectorised reader, before they become Arrow arrays.

What was seen of a leaf is one numpy array, a row of it a value: numbers as the column has them; for text and bytes the start
and stop of each value in `Lanes.data`; for an enum the place of the reader's symbol; for a decimal its low and high word.
Around leaves there are lists (of a record's fields), Listed and Picked. All of it can be put together in any order before
anything is copied into Arrow, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import values
from .columns import Choice, Group, Leaf, Repeated, Shape
from .lanes import Ints, Lanes, Mask, taken, whole
from .schema import ArrayType, EnumType

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
            return np.zeros(
                count, np.int64 if isinstance(shape.schema, EnumType) else numbers_dtype(shape.type)
            )
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
            parts = [
                finish(lanes, part, held, count)
                for part, held in zip(shape.fields.values(), seen, strict=True)
            ]
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
    return (
        values
        if bits is None
        else pa.Array.from_buffers(values.type, len(values), [bits, *values.buffers()[1:]])
    )


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
        return pa.array(map(values.text, raw.to_pylist()), pa.string())
