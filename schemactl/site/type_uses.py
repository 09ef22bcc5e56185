"""The named types of the catalogue: what they are, which topics use them, and what they are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from schemactl.core.names import TopicName
from schemactl.site.catalogue import TopicEntry
from schemactl.site.field_rows import MAX_ROWS, FieldRow, message_types
from schemactl.site.type_graph import Box, Edges


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A named type, as the first topic that uses it defines it.

    Attributes:
        topics: all that use it.
        otherwise: those of them that define it otherwise.
        uses, used_by: types.
    """

    name: str
    doc: str
    rows: Sequence[FieldRow]
    symbols: tuple[str, ...] = ()
    topics: list[TopicName] = field(default_factory=list)
    otherwise: list[TopicName] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    used_by: set[str] = field(default_factory=set)

    def is_like(self, other: TypeUse) -> bool:
        """Whether both say the same of what readers meet."""
        one, two = ([(row.name, row.type_text, row.logical) for row in each.rows] for each in (self, other))
        return (one, self.symbols) == (two, other.symbols)


class TypeUses(dict[str, TypeUse]):
    """The types of all topics that were added, by full name."""

    def __init__(self) -> None:
        super().__init__()
        self._of_messages: dict[TopicName, set[str]] = {}

    def add(self, entry: TopicEntry) -> None:
        """Add the types of a topic's definition in force."""
        rows: dict[str, dict[str, FieldRow]] = defaultdict(dict)
        for row in entry.rows:
            rows[row.holder].setdefault(row.name, replace(row, depth=0))
        symbols = {
            name: row.symbols for row in entry.rows if row.symbols for name in row.types if name not in rows
        }
        self._of_messages[entry.name] = message_types(entry.rows)
        for name, used in entry.uses.items():
            if not name:
                continue
            doc, fields = entry.type_docs.get(name, ""), [*rows.get(name, {}).values()]
            found = TypeUse(name, doc, fields, symbols.get(name, ()))
            use = self.setdefault(name, found)
            use.topics.append(entry.name)
            use.uses.update(used)
            if len(entry.rows) < MAX_ROWS and not use.is_like(found):
                use.otherwise.append(entry.name)

    def connect(self) -> None:
        """Let each type know the types that use it, once all topics are added."""
        for use in self.values():
            for name in use.uses & self.keys():
                self[name].used_by.add(use.name)

    def edges(
        self, type_box: Callable[[str], Box], topic_box: Callable[[TopicName], Box]
    ) -> tuple[Edges, Edges]:
        """Return by box the boxes of its users, and those of its parts: topics have the types of their messages."""
        parts = {
            type_box(use.name): [type_box(name) for name in sorted(use.uses & self.keys())]
            for use in self.values()
        }
        for topic, types in self._of_messages.items():
            parts[topic_box(topic)] = [type_box(name) for name in sorted(types & self.keys())]
        users: dict[Box, list[Box]] = defaultdict(list)
        for user, boxes in parts.items():
            for box in boxes:
                users[box].append(user)
        return users, parts
