"""Build the graph of topics, named types and their files, and render it as text, Mermaid, DOT and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from schemactl.core.errors import DeclarationError, InvalidSchema, UsageError, did_you_mean, join_first
from schemactl.core.json_values import json_text
from schemactl.core.names import TopicName, find_matching_topics
from schemactl.core.terminal import on_one_line, paint
from schemactl.declare.definition import Definitions
from schemactl.declare.files import AVRO_SUFFIXES, YAML_SUFFIXES, Files
from schemactl.declare.reader import Declared
from schemactl.formats import spec

_MERMAID_SHAPES = {"topic": ("([", "])"), "type": ("[", "]"), "file": ("[/", "/]")}

_DOT_SHAPES = {"topic": "ellipse", "type": "box", "file": "note"}


def read_usage(files: Files, declared: Declared) -> Usage:
    """Return the graph of the declarations in `files`; a definition that does not parse uses no types."""
    uses: dict[Node, set[Node]] = {}
    definitions = Definitions(files)
    definers: dict[str, Node] = {}
    for path in sorted({path for paths in declared.dependencies.values() for path in paths}):
        if path.endswith(AVRO_SUFFIXES):
            with suppress(DeclarationError):
                for type_ in definitions.avro_file(path).types:
                    definers.setdefault(type_.full_name, Node("file", path))
    for name, topic in declared.catalog.topics.items():
        node = Node("topic", str(name))
        topic_uses = uses.setdefault(node, set())
        references: dict[str, set[str]] = {}
        for part in topic.split():
            if part.schema:
                info = part.schema.load()
                with suppress(InvalidSchema):
                    for type_name, used_names in spec(info).list_direct_references(info).items():
                        references.setdefault(type_name, set()).update(used_names)
        for type_name, used in references.items():
            user = Node("type", type_name) if type_name else node
            uses.setdefault(user, set()).update(Node("type", other) for other in used)
            if type_name in definers:
                uses[user].add(definers[type_name])
        defining = {definers[type_name] for type_name in references if type_name in definers}
        paths = declared.dependencies.get(name, ())
        # The project file may say which file an import means.
        others = {Node("file", path) for path in paths if not path.endswith(("/", *YAML_SUFFIXES))}
        topic_uses |= others - defining
    for used_nodes in [*uses.values()]:
        for used_node in used_nodes:
            uses.setdefault(used_node, set())
    return Usage({node: frozenset(used) for node, used in sorted(uses.items())})


@dataclass(frozen=True)
class Usage:
    """A graph: `uses` maps each node to the nodes that it uses directly.

    A topic uses the types of its definition and the files that define no such type, like `.proto` files. A type uses the
    types of its fields and the file that defines it.
    """

    uses: Mapping[Node, frozenset[Node]]

    @cached_property
    def users(self) -> dict[Node, set[Node]]:
        """The reversed graph."""
        users: dict[Node, set[Node]] = {node: set() for node in self.uses}
        for node, used in self.uses.items():
            for used_node in used:
                users.setdefault(used_node, set()).add(node)
        return users

    def list_users(self, node: Node) -> list[Reached]:
        """Return the nodes that use `node` directly or indirectly, nearest first."""
        return [*_walk([node], self.users)]

    def list_uses(self, node: Node) -> list[Reached]:
        """Return the nodes that `node` uses directly or indirectly, nearest first; a file uses the nodes that its types use."""
        start = [node, *(user for user in self.users.get(node, ()) if node.kind == "file" and user.kind == "type")]
        return [*_walk(start, self.uses)]

    def find(self, text: str) -> Node:
        """Return the topic, type or file whose name ends with `text`, which must be unambiguous.

        Raises:
            UsageError: if no name or several names match.
        """
        topics = {TopicName.parse(node.name) for node in self.users if node.kind == "topic"}
        matches = [Node("topic", str(topic)) for topic in find_matching_topics(text, topics, globs=False)]
        for kind, separator in (("type", "."), ("file", "/")):
            matches += sorted(
                node
                for node in self.users
                if node.kind == kind and f"{separator}{node.name}".endswith(f"{separator}{text}")
            )
        exact_matches = [match for match in matches if match.name == text]
        if len(exact_matches or matches) == 1:
            return (exact_matches or matches)[0]
        if matches:
            raise UsageError(f"{text!r} may be {join_first(matches)}", fix="write more of its name")
        names_by_suffix = {
            node.name.rpartition("." if node.kind == "type" else "/")[2]: node.name for node in self.users
        }
        raise UsageError(
            f"no topic, type or file is called {text!r}{did_you_mean(text, names_by_suffix, shown=names_by_suffix, most=3)}"
        )

    def select_around(self, node: Node) -> Usage:
        """Return the part of the graph with `node`, its users and the nodes that it uses."""
        return self._select({node, *(other for other, _ in (*self.list_users(node), *self.list_uses(node)))})

    def select_shared(self) -> Usage:
        """Return the types and files that several topics use, with all users of these."""
        nodes: set[Node] = set()
        for node in self.users:
            users = [user for user, _ in self.list_users(node)] if node.kind != "topic" else []
            if sum(user.kind == "topic" for user in users) > 1:
                nodes |= {node, *users}
        return self._select(nodes)

    def _select(self, nodes: set[Node]) -> Usage:
        return Usage({node: used & nodes for node, used in self.uses.items() if node in nodes})


def _walk(start: list[Node], edges: Mapping[Node, Iterable[Node]]) -> Iterator[Reached]:
    """Yield the nodes reachable from `start`, each once, by distance and name."""
    visited = {*start}
    level: list[tuple[Node, Node | None]] = [(node, None) for node in start]
    while level:
        next_level: list[tuple[Node, Node | None]] = []
        for node, first in level:
            for neighbor in sorted(edges.get(node, ())):
                if neighbor not in visited:
                    visited.add(neighbor)
                    via = first or (None if node == start[0] else node)
                    yield Reached(neighbor, via)
                    next_level.append((neighbor, via or neighbor))
        level = next_level


class Node(NamedTuple):
    """A topic or type with its full name, or a file with its path."""

    kind: Literal["topic", "type", "file"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Reached(NamedTuple):
    """A reachable node, and the first node of the path to it, or None for a direct neighbor."""

    node: Node
    through: Node | None


def render_text(usage: Usage, node: Node | None, *, color: bool = False) -> str:
    """Return the users of `node` and the nodes that it uses; without a node, the types and files that several topics use."""
    if node:
        return "\n".join(
            [
                paint(on_one_line(str(node)), "bold", color=color),
                "used by:",
                *_list_reached_lines(usage.list_users(node)),
                "uses:",
                *_list_reached_lines(usage.list_uses(node)),
            ]
        )
    shared = usage.select_shared()
    blocks = [
        "\n".join(
            [
                paint(on_one_line(str(other)), "bold", color=color),
                *_list_reached_lines(
                    user for user in shared.list_users(other) if user.node.kind == "topic" or other.kind == "file"
                ),
            ]
        )
        for other in shared.uses
        if other.kind != "topic" and sum(user.node.kind == "topic" for user in shared.list_users(other)) > 1
    ]
    return "\n\n".join(blocks or ["No type and no file is used by several topics."])


def _list_reached_lines(nodes: Iterable[Reached]) -> Iterator[str]:
    lines = [
        f"  {on_one_line(str(reached.node))}{f', through {on_one_line(reached.through.name)}' if reached.through else ''}"
        for reached in nodes
    ]
    yield from lines or ["  nothing"]


def render_mermaid(usage: Usage) -> str:
    """Return a Mermaid flowchart."""
    numbers = {node: f"n{number}" for number, node in enumerate(usage.uses)}
    lines = ["flowchart LR"]
    for node, number in numbers.items():
        opening, closing = _MERMAID_SHAPES[node.kind]
        # All but plain characters are numeric references.
        label = "".join(
            character if character.isalnum() or character in " ._-/:" else f"#{ord(character)};"
            for character in on_one_line(node.name)
        )
        lines.append(f'  {number}{opening}"{label}"{closing}')
    lines += [f"  {numbers[node]} {arrow} {numbers[used]}" for node, used, arrow in _list_edges(usage, "-->", "-.->")]
    return "\n".join(lines)


def render_dot(usage: Usage) -> str:
    """Return a DOT digraph."""
    numbers = {node: f"n{number}" for number, node in enumerate(usage.uses)}
    lines = ["digraph schemas {", "  rankdir=LR;"]
    for node, number in numbers.items():
        label = on_one_line(node.name).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {number} [label="{label}", shape={_DOT_SHAPES[node.kind]}];')
    for node, used, style in _list_edges(usage, "solid", "dashed"):
        lines.append(f"  {numbers[node]} -> {numbers[used]} [style={style}];")
    return "\n".join([*lines, "}"])


def render_json(usage: Usage, node: Node | None) -> str:
    """Return the nodes and edges, each from the user to the used node, and the requested node, as JSON.

    Keys are not renamed within a format version.
    """
    return json_text(
        {
            "format_version": 1,
            "about": node._asdict() if node else None,
            "nodes": [user._asdict() for user in usage.uses],
            "edges": [
                {"from": user._asdict(), "to": used._asdict()}
                for user, others in usage.uses.items()
                for used in sorted(others)
            ],
        }
    )


def _list_edges(usage: Usage, uses: str, defined_in: str) -> Iterator[tuple[Node, Node, str]]:
    """Yield each edge with a style: `defined_in` for an edge to a file, else `uses`."""
    for node, others in usage.uses.items():
        for used in sorted(others):
            yield node, used, defined_in if used.kind == "file" else uses
