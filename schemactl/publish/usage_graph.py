"""The graph of topics, named types and the files that define them, and its output as text, Mermaid, DOT and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from schemactl.core.errors import DeclarationError, InvalidSchema, UsageError, did_you_mean, first_of
from schemactl.core.json_values import json_text
from schemactl.core.names import matching
from schemactl.core.terminal import on_one_line, paint
from schemactl.declare.definition import Definitions
from schemactl.declare.files import AVRO_SUFFIXES, Files
from schemactl.declare.reader import Declared
from schemactl.declare.references import defined_names
from schemactl.formats import spec


class Node(NamedTuple):
    """A topic, by its whole name; a type, by its full name; or a file, by its path."""

    kind: Literal["topic", "type", "file"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Reached(NamedTuple):
    """A node, and the node that it was reached through, if any."""

    node: Node
    through: Node | None


@dataclass(frozen=True)
class Usage:
    """A graph: `uses` has for each node those that it uses itself.

    A topic uses the types of its definition, a type those of its fields and the file that defines it, and a topic the files that it is
    made of besides, as `.proto` files.
    """

    uses: Mapping[Node, frozenset[Node]]

    @cached_property
    def users(self) -> dict[Node, set[Node]]:
        """The reversed graph."""
        found: dict[Node, set[Node]] = {node: set() for node in self.uses}
        for node, used in self.uses.items():
            for each in used:
                found.setdefault(each, set()).add(node)
        return found

    def used_by(self, node: Node) -> list[Reached]:
        """Return what uses `node` directly or indirectly, the nearest first."""
        return [*_reached([node], self.users)]

    def used_of(self, node: Node) -> list[Reached]:
        """Return what `node` uses directly or indirectly, the nearest first; for a file, what its types use."""
        start = [node, *(each for each in self.users.get(node, ()) if node.kind == "file" and each.kind == "type")]
        return [*_reached(start, self.uses)]

    def find(self, text: str) -> Node:
        """Return the topic, type or file whose name ends with `text`, which must be unambiguous.

        Raises:
            UsageError: there is none, or several.
        """
        from schemactl.core.names import TopicName

        topics = {TopicName.parse(node.name) for node in self.users if node.kind == "topic"}
        found = [Node("topic", str(each)) for each in matching(text, topics, globs=False)]
        for kind, mark in (("type", "."), ("file", "/")):
            found += sorted(
                node for node in self.users if node.kind == kind and f"{mark}{node.name}".endswith(f"{mark}{text}")
            )
        exact = [each for each in found if each.name == text]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            raise UsageError(f"{text!r} may be {first_of(found)}", fix="write more of its name")
        ends = {node.name.rpartition("." if node.kind == "type" else "/")[2]: node.name for node in self.users}
        raise UsageError(f"no topic, type or file is called {text!r}{did_you_mean(text, ends, shown=ends, most=3)}")

    def around(self, node: Node) -> Usage:
        """Return the part of the graph that `node` uses, and that uses it."""
        return self._only({node, *(each for each, _ in (*self.used_by(node), *self.used_of(node)))})

    def shared(self) -> Usage:
        """Return the types and files that several topics use, with all topics and types that use these."""
        kept: set[Node] = set()
        for node in self.users:
            above = [each for each, _ in self.used_by(node)] if node.kind != "topic" else []
            if sum(each.kind == "topic" for each in above) > 1:
                kept |= {node, *above}
        return self._only(kept)

    def _only(self, kept: set[Node]) -> Usage:
        return Usage({node: used & kept for node, used in self.uses.items() if node in kept})


def read_usage(files: Files, declared: Declared) -> Usage:
    """Return who uses what in `files`, which declare that; definitions that do not parse use nothing."""
    uses: dict[Node, set[Node]] = {}
    definitions = Definitions(files)
    definers: dict[str, Node] = {}
    for path in sorted({each for paths in declared.dependencies.values() for each in paths}):
        for defined in _defined(definitions, path):
            definers.setdefault(defined, Node("file", path))
    for name, topic in declared.catalog.topics.items():
        node = Node("topic", str(name))
        own = uses.setdefault(node, set())
        made_of: Mapping[str, Iterable[str]] = {}
        if topic.schema:
            info = topic.schema.load()
            try:
                made_of = spec(info).uses(info)
            except InvalidSchema:
                made_of = {}
        for each, used in made_of.items():
            user = Node("type", each) if each else node
            uses.setdefault(user, set()).update(Node("type", other) for other in used)
            if each in definers:
                uses[user].add(definers[each])
        defining = {definers[each] for each in made_of if each in definers}
        others = {Node("file", path) for path in declared.dependencies.get(name, ()) if not path.endswith("/")}
        own |= others - defining
    for used_nodes in [*uses.values()]:
        for each_node in used_nodes:
            uses.setdefault(each_node, set())
    return Usage({node: frozenset(used) for node, used in sorted(uses.items())})


def _defined(definitions: Definitions, path: str) -> Iterator[str]:
    if path.endswith(AVRO_SUFFIXES):
        try:
            yield from defined_names(definitions.avro_file(path)[0])
        except DeclarationError:
            return


def _reached(start: list[Node], edges: Mapping[Node, Iterable[Node]]) -> Iterator[Reached]:
    """Yield the nodes reachable from `start`, each once, by distance and name."""
    seen = {*start}
    through: list[tuple[Node, Node | None]] = [(node, None) for node in start]
    while through:
        following: list[tuple[Node, Node | None]] = []
        for node, first in through:
            for each in sorted(edges.get(node, ())):
                if each not in seen:
                    seen.add(each)
                    by = first or (None if node == start[0] else node)
                    yield Reached(each, by)
                    following.append((each, by or each))
        through = following


# Output formats; each escapes names in its own way


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
                *_listed(found for found in shared.used_by(each) if found.node.kind == "topic" or each.kind == "file"),
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
    lines += [f"  {numbers[node]} {arrow} {numbers[each]}" for node, each, arrow in _edges(usage, "-->", "-.->")]
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
