"""Draw the evolution of a topic: a lane for each field, from the first version to the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemactl.publish.site_catalog import TopicEntry

_MAX_LANES: Final = 20
"""The maximum number of fields in the picture of the evolution."""


@dataclass(frozen=True)
class Lane:
    """A field in the picture of the evolution; versions are counted from the first one in the picture.

    Attributes:
        bars: the first version and the number of versions of each bar, and whether it is an earlier type or name.
        dots: the version of each change, and whether readers stopped there.
    """

    path: str
    words: str
    bars: Sequence[tuple[int, int, bool]]
    dots: Sequence[tuple[int, bool]]


@dataclass(frozen=True)
class Lanes:
    """The picture of the evolution of a topic.

    Attributes:
        count: the number of its versions.
        axis: the number of a version, its place, and whether readers stopped there.
    """

    count: int
    axis: Sequence[tuple[int, int, bool]]
    rows: Sequence[Lane]


def draw_lanes(entry: TopicEntry) -> Lanes | None:
    """Return a lane for each field that changed after the first version, or None if no field did."""
    numbers = [
        version.version.number
        for version in reversed(entry.latest_first)
        if version.version.info
        and version.version.kind == entry.kind
        and (entry.number is None or version.version.number <= entry.number)
    ]
    if len(numbers) < 2:
        return None
    places = {number: place for place, number in enumerate(numbers)}
    broke = {number for number in numbers if entry.verdicts.versions[number].is_breaking}
    rows: list[Lane] = []
    for life in [*entry.lives.values(), *entry.ended]:
        changes = [start for _, start, _ in life.types][1:]
        changes += [life.type_since] if life.types else []
        changes += [life.renamed.number] if life.renamed else []
        changes += [*life.symbols.values()]
        born = life.first.number
        if born == numbers[0] and not changes and life.last is None:
            continue
        start = places.get(born, 0)
        removed = next((number for number in numbers if life.last and number > life.last.number), None)
        end = len(numbers) if removed is None else places[removed]
        switch = max((places.get(number, start) for number in changes), default=start)
        bars = [(start, switch - start, True)] if switch > start else []
        bars.append((switch, end - switch, life.last is not None))
        dots = [] if born == numbers[0] else [(start, False)]
        dots += [(places.get(number, 0), number in broke) for number in dict.fromkeys(changes)]
        if removed is not None:
            dots.append((end, removed in broke))
        words = f"since v{born}" + (f", until v{life.last.number}" if life.last else "")
        words += "".join(
            f", {'renamed' if life.renamed and number == life.renamed.number else 'changed'} at v{number}"
            for number in dict.fromkeys(changes)
        )
        rows.append(Lane(life.path, words, bars, dots))
    if not rows:
        return None
    step = max(1, len(numbers) // 12)
    axis = [(number, place, number in broke) for number, place in places.items() if place % step == 0]
    return Lanes(len(numbers), axis, rows[:_MAX_LANES])
