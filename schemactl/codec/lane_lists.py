"""Vectorised lists and maps: the first item of every message, then the second of those that have one, and so on."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .columns import Repeated
from .lane_columns import Listed, Seen, item_places, merge_items
from .lane_leaves import Read
from .lanes import Ints, Lanes
from .schema import ArrayType, MapType, children, min_size

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
