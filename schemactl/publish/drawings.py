"""Draw the uses of types as SVG.

A drawing is a whole file without scripts and fonts. It has a title and a description for screen readers, and follows the dark or light
mode of the system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemactl.core.escaping import escape_xml
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

_STYLE: Final = (
    "text{font:13px Inter,system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}"
    ".code{font-family:ui-monospace,'SF Mono',Menlo,Consolas,monospace}.soft{fill:var(--soft)}.strong{font-weight:650}"
    ".box{fill:var(--paper);stroke:var(--line)}.middle{stroke:var(--accent);stroke-width:2}.edge{fill:none;stroke:var(--line);stroke-width:1.5}"
    ".dashed{stroke-dasharray:4 4}.good{fill:var(--good)}.bad{fill:var(--bad)}.mark{fill:var(--paper);font-weight:700}"
    ".life{stroke:var(--accent);stroke-width:6;stroke-linecap:round}.dot{fill:var(--paper);stroke:var(--accent);stroke-width:2}"
    "svg{--paper:#fff;--ink:#141822;--soft:#616a78;--line:#c3c9d3;--accent:#204ec3;--good:#166b43;--bad:#c8102e}"
    "@media(prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e8ebf1;--soft:#939aa7;--line:#3c4453;--accent:#89b0ff;--good:#6fcf98;--bad:#ff8b96}}"
)


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
            parts.append(
                f"<g><title>{escape_xml(on_one_line(str(node)))}</title>{render_text(x + 10, y + 18, name, 'code')}</g>"
            )
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
    return f'<text class="{css}" x="{x}" y="{y}">{escape_xml(on_one_line(text))}</text>'


def render_document(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> str:
    """Return the file with these elements, in the order in which they are painted."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{escape_xml(on_one_line(title))}</title>\n<desc>{escape_xml(on_one_line(description))}</desc>\n<style>{_STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )
