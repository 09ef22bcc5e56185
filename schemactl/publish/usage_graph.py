"""The graph of topics, the named types of their messages, and the files that define these. No I/O but by `declare`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from schemactl.core.errors import DeclarationError, InvalidSchema, UsageError, did_you_mean, first_of
from schemactl.core.names import matching
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
        start = [
            node,
            *(each for each in self.users.get(node, ()) if node.kind == "file" and each.kind == "type"),
        ]
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
                node
                for node in self.users
                if node.kind == kind and f"{mark}{node.name}".endswith(f"{mark}{text}")
            )
        exact = [each for each in found if each.name == text]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            raise UsageError(f"{text!r} may be {first_of(found)}", fix="write more of its name")
        ends = {
            node.name.rpartition("." if node.kind == "type" else "/")[2]: node.name for node in self.users
        }
        raise UsageError(
            f"no topic, type or file is called {text!r}{did_you_mean(text, ends, shown=ends, most=3)}"
        )

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
        others = {
            Node("file", path) for path in declared.dependencies.get(name, ()) if not path.endswith("/")
        }
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
