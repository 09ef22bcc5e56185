"""Who uses what: as text, for Mermaid, for Graphviz (DOT), and as JSON. Names are escaped for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemactl.core.json_values import json_text
from schemactl.core.terminal import on_one_line, paint
from schemactl.usage import Node, Reached, Usage

FORMAT_VERSION = 1

_SHAPES = {"topic": ("([", "])"), "type": ("[", "]"), "file": ("[/", "/]")}
_DOT_SHAPES = {"topic": "ellipse", "type": "box", "file": "note"}


def text(usage: Usage, node: Node | None, *, color: bool = False) -> str:
    """Return what uses `node`, and what it uses; None: each type and file that several topics use, with who uses it."""
    if node:
        return "\n".join(
            [
                paint(on_one_line(str(node)), "bold", color=color),
                "used by:",
                *_listed(usage.used_by(node)),
                "uses:",
                *_listed(usage.used_of(node)),
            ]
        )
    shared = usage.shared()
    blocks = [
        "\n".join(
            [
                paint(on_one_line(str(each)), "bold", color=color),
                *_listed(
                    found
                    for found in shared.used_by(each)
                    if found.node.kind == "topic" or each.kind == "file"
                ),
            ]
        )
        for each in shared.uses
        if each.kind != "topic" and sum(found.node.kind == "topic" for found in shared.used_by(each)) > 1
    ]
    return "\n\n".join(blocks or ["No type and no file is used by several topics."])


def _listed(found: Iterable[Reached]) -> Iterator[str]:
    lines = [
        f"  {on_one_line(str(each.node))}{f', through {on_one_line(each.through.name)}' if each.through else ''}"
        for each in found
    ]
    yield from lines or ["  nothing"]


def mermaid(usage: Usage) -> str:
    """Return a flowchart; every character of a name that Mermaid could take for its own is a number."""
    numbers = {node: f"n{number}" for number, node in enumerate(usage.uses)}
    lines = ["flowchart LR"]
    for node, number in numbers.items():
        opening, closing = _SHAPES[node.kind]
        lines.append(f'  {number}{opening}"{_mermaid(node)}"{closing}')
    lines += [
        f"  {numbers[node]} {arrow} {numbers[each]}" for node, each, arrow in _edges(usage, "-->", "-.->")
    ]
    return "\n".join(lines)


def _mermaid(node: Node) -> str:
    plain = on_one_line(node.name)
    return "".join(each if each.isalnum() or each in " ._-/:" else f"#{ord(each)};" for each in plain)


def dot(usage: Usage) -> str:
    """Return a digraph."""
    numbers = {node: f"n{number}" for number, node in enumerate(usage.uses)}
    lines = ["digraph schemas {", "  rankdir=LR;"]
    for node, number in numbers.items():
        label = on_one_line(node.name).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {number} [label="{label}", shape={_DOT_SHAPES[node.kind]}];')
    for node, each, style in _edges(usage, "solid", "dashed"):
        lines.append(f"  {numbers[node]} -> {numbers[each]} [style={style}];")
    return "\n".join([*lines, "}"])


def json(usage: Usage, node: Node | None) -> str:
    """Return the nodes and the edges, from what uses to what is used; and the node that was asked for."""
    return json_text(
        {
            "format_version": FORMAT_VERSION,
            "about": node._asdict() if node else None,
            "nodes": [each._asdict() for each in usage.uses],
            "edges": [
                {"from": each._asdict(), "to": used._asdict()}
                for each, others in usage.uses.items()
                for used in sorted(others)
            ],
        }
    )


def _edges(usage: Usage, uses: str, defined_in: str) -> Iterator[tuple[Node, Node, str]]:
    """Yield each edge, with one mark or the other: of what is used, and of the file that defines a type."""
    for node, others in usage.uses.items():
        for each in sorted(others):
            yield node, each, defined_in if each.kind == "file" else uses
