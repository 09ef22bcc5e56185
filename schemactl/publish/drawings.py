"""Draw schemas as SVG: the uses of types, the evolution of fields, which version reads which, and versions by environment.

Each drawing is a whole file without scripts and fonts. It has a title and a description for screen readers, and follows the dark or light
mode of the system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from schemactl.core.terminal import on_one_line
from schemactl.publish.usage_graph import Node, Usage

_ROW: Final = 34
_COLUMN: Final = 300
_BOX: Final = 250
_MAX_NODES: Final = 40
"""The maximum number of nodes of a column that are drawn; a last row gives the number of the others."""

_MAX_TYPE_COLUMNS: Final = 5
"""The maximum number of columns of types; in longer chains and in cycles, a column also has types that use each other."""

_MAX_LETTERS: Final = 29
_CELL: Final = 34

_STYLE: Final = (
    "text{font:13px Inter,system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}"
    ".code{font-family:ui-monospace,'SF Mono',Menlo,Consolas,monospace}.soft{fill:var(--soft)}.strong{font-weight:650}"
    ".box{fill:var(--paper);stroke:var(--line)}.middle{stroke:var(--accent);stroke-width:2}.edge{fill:none;stroke:var(--line);stroke-width:1.5}"
    ".dashed{stroke-dasharray:4 4}.good{fill:var(--good)}.bad{fill:var(--bad)}.mark{fill:var(--paper);font-weight:700}"
    ".life{stroke:var(--accent);stroke-width:6;stroke-linecap:round}.dot{fill:var(--paper);stroke:var(--accent);stroke-width:2}"
    "svg{--paper:#fff;--ink:#141822;--soft:#616a78;--line:#c3c9d3;--accent:#204ec3;--good:#166b43;--bad:#c8102e}"
    "@media(prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e8ebf1;--soft:#939aa7;--line:#3c4453;--accent:#89b0ff;--good:#6fcf98;--bad:#ff8b96}}"
)


@dataclass(frozen=True)
class FieldLife:
    """A field of a topic over its versions.

    Attributes:
        name: the newest name.
        first: the number of the first version with the field.
        last: the number of the last version with the field, or None if the newest version has it.
        renames: the earlier names, by the number of the first version with the next name.
    """

    name: str
    first: int
    last: int | None = None
    renames: Mapping[int, str] = field(default_factory=dict)


def draw_usage(usage: Usage, middle: Node | None = None) -> str:
    """Return topics, types and files as columns, with a line from each user to the node that it uses.

    Args:
        usage: the nodes and their uses.
        middle: the node that the graph is about, which is emphasized.
    """
    levels = _find_levels(usage)
    columns = [[node for node in usage.uses if levels[node] == level] for level in sorted({*levels.values()})]
    positions: dict[Node, tuple[int, int]] = {}
    parts: list[str] = []
    row_count = max((min(len(nodes), _MAX_NODES + 1) for nodes in columns), default=1)
    for column, nodes in enumerate(columns):
        x = 2 + column * _COLUMN
        rows = min(len(nodes), _MAX_NODES + 1)
        y = 30 + (row_count - rows) * _ROW // 2
        kind = nodes[0].kind
        parts.append(render_text(x, 18, f"{len(nodes)} {kind}{'s' * (len(nodes) != 1)}", "soft"))
        for node in nodes[:_MAX_NODES]:
            positions[node] = x, y
            css = "box middle" if node == middle else "box"
            parts.append(f'<rect class="{css}" x="{x}" y="{y}" width="{_BOX}" height="{_ROW - 8}" rx="5"/>')
            name = on_one_line(node.name).removeprefix("persistent://")
            if len(name) > _MAX_LETTERS:
                name = f"…{name[1 - _MAX_LETTERS :]}"
            parts.append(f"<g><title>{_escape(str(node))}</title>{render_text(x + 10, y + 18, name, 'code')}</g>")
            y += _ROW
        if len(nodes) > _MAX_NODES:
            parts.append(render_text(x + 10, y + 18, f"and {len(nodes) - _MAX_NODES} more", "soft"))
    edges = [
        _draw_edge(positions[node], positions[used], is_dashed=used.kind == "file")
        for node, others in usage.uses.items()
        for used in sorted(others)
        if node in positions and used in positions
    ]
    title = f"Uses of {on_one_line(str(middle))}" if middle else "Types and files that several topics use"
    description = "; ".join(
        f"{on_one_line(node.name)} uses {', '.join(on_one_line(used.name) for used in sorted(others))}"
        for node, others in usage.uses.items()
        if others
    )
    width = max(len(columns), 1) * _COLUMN - (_COLUMN - _BOX) + 4
    return render_document(title, description, width, 40 + row_count * _ROW, [*edges, *parts])


def draw_evolution(
    title: str, versions: Mapping[int, str], lives: Sequence[FieldLife], breaking: frozenset[int] = frozenset()
) -> str:
    """Return a line for each field from its first to its last version, with its renames.

    Args:
        title: the title, such as the topic's name.
        versions: the day of each version, by number.
        lives: the fields.
        breaking: the versions whose messages older readers cannot read, or that cannot read older messages.
    """
    numbers = [*versions]
    left = 20 + 8 * max((len(life.name) for life in lives), default=0)
    step = 110
    x_by_version = {number: left + 20 + index * step for index, number in enumerate(numbers)}
    parts = []
    for number, day in versions.items():
        x = x_by_version[number]
        parts.append(render_text(x - 8, 20, f"v{number}", "strong bad" if number in breaking else "strong"))
        parts.append(render_text(x - 8, 38, f"✗ {day}" if number in breaking else day, "soft"))
    y = 64
    for life in lives:
        last = numbers[-1] if life.last is None else life.last
        start, end = x_by_version[life.first], x_by_version[last]
        parts.append(render_text(4, y + 4, life.name, "code" if life.last is None else "code soft"))
        parts.append(f'<path class="life" d="M{start} {y}H{end + (step // 2 if life.last is None else 0)}"/>')
        parts.append(f'<circle class="dot" cx="{start}" cy="{y}" r="6"/>')
        for number, old_name in life.renames.items():
            x = x_by_version[number]
            parts.append(f'<circle class="dot" cx="{x}" cy="{y}" r="6"/>')
            parts.append(render_text(x + 10, y - 6, f"was {old_name}", "soft"))
        y += 30
    description = "; ".join(
        f"{life.name} from version {life.first}" + ("" if life.last is None else f" to {life.last}") for life in lives
    )
    return render_document(title, description, left + len(numbers) * step, y, parts)


def draw_compatibility(
    title: str,
    numbers: Sequence[int],
    reads: Mapping[tuple[int, int], bool],
    protected: frozenset[tuple[int, int]] = frozenset(),
) -> str:
    """Return a heat map: a row for each reading version, a column for each writing version.

    Args:
        title: the title, such as the topic's name.
        numbers: the versions.
        reads: whether the reader can read messages of the writer, by (reader, writer).
        protected: the pairs that the topic's strategy protects, which get a frame.
    """
    left, top = 110, 56
    parts = [render_text(left, 18, "messages of", "soft"), render_text(4, top + 20, "readers of", "soft")]
    parts += [render_text(left + 8 + index * _CELL, 44, f"v{number}", "strong") for index, number in enumerate(numbers)]
    for row, reader in enumerate(numbers):
        y = top + row * _CELL
        parts.append(render_text(left - 28, y + 20, f"v{reader}", "strong"))
        for column, writer in enumerate(numbers):
            x = left + column * _CELL
            readable = reads[reader, writer]
            frame = ' stroke="var(--ink)" stroke-width="2"' if (reader, writer) in protected else ""
            css, mark = ("good", "✓") if readable else ("bad", "✗")
            answer = "reads" if readable else "cannot read"
            parts.append(
                f'<g><title>v{reader} {answer} v{writer}</title><rect class="{css}" x="{x + 2}" y="{y + 2}" width="{_CELL - 4}" height="{_CELL - 4}" rx="5"{frame}/>'
                f"{render_text(x + 12, y + 22, mark, 'mark')}</g>"
            )
    bottom = top + len(numbers) * _CELL
    if protected:
        parts.append(render_text(4, bottom + 24, "Framed: protected by the strategy.", "soft"))
    unreadable = [f"v{reader} cannot read v{writer}" for (reader, writer), readable in reads.items() if not readable]
    return render_document(
        title,
        "; ".join(unreadable) or "Each version reads each.",
        max(left + len(numbers) * _CELL + 10, 260),
        bottom + 36,
        parts,
    )


def draw_environments(
    title: str, targets: Sequence[str], topics: Mapping[str, tuple[int | None, Sequence[int | None]]]
) -> str:
    """Return a grid of topics and targets: the version of each target, and by how many versions it is behind Git.

    Args:
        title: the title.
        targets: the names of the targets.
        topics: by topic, the newest version in Git, and the version of each target as Git counts; None is no version.
    """
    left = 24 + 8 * max((len(topic) for topic in topics), default=0)
    step = 120
    parts = [render_text(left + index * step, 20, name, "strong") for index, name in enumerate(("Git", *targets))]
    y = 44
    for topic, (newest, versions) in topics.items():
        parts.append(render_text(4, y + 4, topic, "code"))
        parts.append(render_text(left, y + 4, "-" if newest is None else f"v{newest}", "code"))
        for index, version in enumerate(versions):
            x = left + (index + 1) * step
            is_current = version == newest
            behind = "" if is_current or newest is None or version is None else f", {newest - version} behind"
            text = ("✓ " if is_current else "") + ("none" if version is None else f"v{version}{behind}")
            parts.append(render_text(x, y + 4, text, "code good" if is_current else "code soft"))
        y += 28
    description = "; ".join(
        f"{topic}: Git {newest}, {', '.join(f'{target} {version}' for target, version in zip(targets, versions, strict=True))}"
        for topic, (newest, versions) in topics.items()
    )
    return render_document(title, description, left + (len(targets) + 1) * step, y, parts)


def _find_levels(usage: Usage) -> dict[Node, int]:
    """Return the column of each node: topics, then types, each after the types that use it, then files."""
    levels = {node: {"topic": 0, "type": 1, "file": 1}[node.kind] for node in usage.uses}
    for _ in range(_MAX_TYPE_COLUMNS - 1):
        for node, others in usage.uses.items():
            for used in others:
                if node.kind == used.kind == "type" and node != used:
                    levels[used] = max(levels[used], min(levels[node] + 1, _MAX_TYPE_COLUMNS))
    last = max(levels.values(), default=0)
    return {node: last + 1 if node.kind == "file" else level for node, level in levels.items()}


def _draw_edge(start: tuple[int, int], end: tuple[int, int], *, is_dashed: bool) -> str:
    (x, y), (to_x, to_y) = min(start, end), max(start, end)
    y, to_y = y + _ROW // 2 - 4, to_y + _ROW // 2 - 4
    css = "edge dashed" if is_dashed else "edge"
    if x == to_x:
        # Both are in one column: the line leaves and enters at the right.
        x = to_x = x + _BOX
        return f'<path class="{css}" d="M{x} {y}C{x + 40} {y} {to_x + 40} {to_y} {to_x} {to_y}"/>'
    x += _BOX
    return f'<path class="{css}" d="M{x} {y}C{x + 30} {y} {to_x - 30} {to_y} {to_x} {to_y}"/>'


def render_text(x: int, y: int, text: str, css: str = "") -> str:
    """Return a text at a position, with the classes of the style."""
    return f'<text class="{css}" x="{x}" y="{y}">{_escape(text)}</text>'


def _escape(text: str) -> str:
    return escape(on_one_line(text), quote=False)


def render_document(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> str:
    """Return the file with these elements, in the order in which they are painted."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{_escape(title)}</title>\n<desc>{_escape(description)}</desc>\n<style>{_STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )
