"""The graph around a named type, as SVG: what has it to the left, what it has to the right, topics at the far left."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, Literal, NamedTuple

from schemactl.core.terminal import on_one_line

_MAX_DISTANCE: Final = 4
_MAX_ROWS: Final = 10
"""So many nodes stand in a column, and below them how many more there are."""

_MAX_LETTERS: Final = 26
_WIDTH: Final = 220
_HEIGHT: Final = 44
_COLUMN: Final = _WIDTH + 56
_ROW: Final = _HEIGHT + 12


class Box(NamedTuple):
    """A topic or a type: its name, and the address of its page."""

    name: str
    page: str
    kind: Literal["topic", "type"] = "type"


Edges = Mapping[Box, Sequence[Box]]


def graph(middle: Box, users: Edges, parts: Edges) -> str:
    """Return the graph around a type; "" where nothing has it and it has nothing.

    Args:
        middle: the type.
        users: of each node those that have it.
        parts: of each node those that it has.
    """
    levels = _levels(middle, parts) | {node: -level for node, level in _levels(middle, users).items()}
    if len(levels) == 1:
        return ""
    # Topics are left of all types, so that each line leads to the right.
    first = min(level for node, level in levels.items() if node.kind == "type") - 1
    columns: dict[int, list[Box]] = defaultdict(list)
    for node in sorted(levels):
        columns[first if node.kind == "topic" else levels[node]].append(node)
    height = _ROW * max(min(len(nodes), _MAX_ROWS + 1) for nodes in columns.values())
    places: dict[Box, tuple[int, int]] = {}
    boxes = ""
    for column, level in enumerate(sorted(columns)):
        shown, hidden = columns[level][:_MAX_ROWS], len(columns[level]) - _MAX_ROWS
        x = 2 + column * _COLUMN
        y = (height - _ROW * (len(shown) + (hidden > 0))) // 2 + 6
        for node in shown:
            places[node] = x, y
            boxes += _box(node, x, y, is_middle=node == middle)
            y += _ROW
        if hidden > 0:
            boxes += f'<text class="more" x="{x + 12}" y="{y + 27}">and {hidden} more</text>'
    lines = "".join(
        _line(place, places[part])
        for node, place in places.items()
        for part in parts.get(node, ())
        if part in places and place[0] < places[part][0]
    )
    size = f'width="{len(columns) * _COLUMN - 52}" height="{height}"'
    return f'<svg class="graph" role="group" aria-label="Graph" {size}>{lines}{boxes}</svg>'


def _levels(middle: Box, edges: Edges) -> dict[Box, int]:
    """Return how many steps each node is away, by the longest way; types that hold each other end it."""
    found = {middle: 0}
    left = deque([middle])
    while left:
        node = left.popleft()
        level = found[node] + 1
        for each in edges.get(node, ()):
            if level <= _MAX_DISTANCE and each not in (node, middle) and found.get(each, 0) < level:
                found[each] = level
                left.append(each)
    return found


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = start, end
    x, y, to_y = x + _WIDTH, y + _HEIGHT // 2, to_y + _HEIGHT // 2
    return f'<path d="M{x} {y}C{x + 28} {y} {to_x - 28} {to_y} {to_x} {to_y}"/>'


def _box(node: Box, x: int, y: int, *, is_middle: bool) -> str:
    full_name = on_one_line(node.name)
    space, _, name = full_name.rpartition("/" if node.kind == "topic" else ".")
    shape = (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 12}" y="{y + 18}">{_short(name)}</text>'
        f'<text class="space" x="{x + 12}" y="{y + 34}">{_short(space)}</text>'
    )
    title = f"<title>{node.kind} {escape(full_name)}</title>"
    if is_middle:
        return f'<g class="middle">{title}{shape}</g>'
    return f'<a class="{node.kind}" href="{escape(node.page)}">{title}{shape}</a>'


def _short(text: str) -> str:
    return escape(text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…")
