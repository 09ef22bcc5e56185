"""Collect the content of the catalog site: topics, versions, fields, named types, and the graph around a type."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import Final, Literal, NamedTuple, TypeVar

from schemactl.codegen.topic_struct import StructOptions, decoded_options, message_doc, protobuf_of, value_of
from schemactl.core.catalog import Catalog, Metadata, Topic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.findings import WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line
from schemactl.formats import get_pair, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import parts
from schemactl.formats.part_changes import PartChange, find_part_changes
from schemactl.history.approved_history import History
from schemactl.publish.repository_links import RepositoryLinks
from schemactl.publish.site_fields import MAX_ROWS, FieldLife, FieldRow, list_field_rows, list_paths, trace_fields
from schemactl.publish.site_text import shorten_label
from schemactl.publish.site_verdicts import READER_WINDOW, TopicVerdicts, judge_topic

MAX_COMPARED: Final = READER_WINDOW
"""The maximum number of versions, the newest ones, in the table of which version can read which."""

_MAX_DISTANCE: Final = 4
"""The maximum number of steps from the type in the middle of a graph."""

_MAX_NODES: Final = 10
"""The maximum number of nodes in a column of a graph; the rest is one node, with the lines of all of them."""

_MAX_LETTERS: Final = 26
"""The maximum number of characters of a name in a node."""

_WIDTH: Final = 220
_HEIGHT: Final = 44
_COLUMN: Final = _WIDTH + 56
_ROW: Final = _HEIGHT + 12
"""The size of a node and the distances of columns and rows, in pixels."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class SiteContent:
    """The approved history as read by the pages of the catalog site.

    Attributes:
        authors: the author of each commit, by its id.
        targets: in the order of the project file.
        waivers: returns the waivers in the tree of a commit.
        repository: the links into the web pages of the repository.
    """

    history: History
    project: Project
    authors: Mapping[str, str]
    targets: Sequence[TargetHistory] = ()
    waivers: WaiversAt = lambda _: ()
    repository: RepositoryLinks = field(default_factory=lambda: RepositoryLinks(""))

    @property
    def catalog(self) -> Catalog:
        """The approved topics and namespaces."""
        return self.history.catalog

    def read_topic(self, name: TopicName) -> TopicEntry | None:
        """Return a topic with its definitions, or None if it never had a schema."""
        topic = self.catalog.topics[name].load()
        options = decoded_options(self.project.generate, topic)
        versions = [version.load() for version in topic.versions]
        definitions = [version.info for version in versions if version.info is not None]
        if not definitions:
            return None
        number = self.history.find_current_number(name)
        info = topic.schema.load() if topic.schema and number is not None else definitions[-1]
        strategy, level = self.catalog.strategy(name, self.project.defaults)
        data_strategy, _ = self.catalog.data_strategy(name, self.project.defaults)
        kind = next((version.kind for version in versions if version.number == number), "")
        try:
            columns = value_of(info, options, self.project.release)
            no_columns = "" if columns else f"{info.type.name} does not describe the bytes of a message"
        except SchemactlError as error:
            no_columns = f"{error.message} ({error.fix})" if error.fix else error.message
        version_entries: list[VersionEntry] = []
        previous: dict[str, SchemaVersion] = {}
        for version in versions:
            author = self.authors.get(version.commit.id, "") if version.commit else ""
            version_entries.append(VersionEntry(version, author, previous.get(version.kind)))
            if version.info is not None:
                previous[version.kind] = version
        lives, ended = trace_fields(
            (version for version in versions if version.kind == kind and (number is None or version.number <= number)),
            self._read_rows,
        )
        return TopicEntry(
            topic=topic,
            metadata=self.catalog.metadata(name),
            number=number,
            info=info,
            doc=self._read(message_doc, info) or "",
            type_docs=self._read(read_type_docs, info) or {},
            strategy=strategy.value,
            level=level,
            rows=self._read_rows(info, options),
            lives=lives,
            ended=ended,
            verdicts=judge_topic(topic, number, data_strategy, self.waivers),
            state_since=self.history.find_commit_of_state(name),
            no_columns=no_columns,
            environments=[*self.list_targets(name)],
            latest_first=version_entries[::-1],
            kinds=self.history.find_current_kinds(name),
        )

    def list_namespaces(self) -> list[NamespaceName]:
        """Return the namespaces that are declared or have topics."""
        return sorted({*self.catalog.namespaces, *(name.namespace_name for name in self.catalog.topics)})

    def _read_rows(self, info: SchemaInfo, options: StructOptions | None = None) -> list[FieldRow]:
        return self._read(partial(list_field_rows, options=options), info) or []

    def _read(self, read: Callable[[SchemaInfo, Release], _T], info: SchemaInfo) -> _T | None:
        """Return the result of `read`, or None if the definition does not parse."""
        try:
            return read(info, self.project.release)
        except InvalidSchema:
            return None

    def list_targets(self, name: TopicName) -> Iterator[TopicOnTarget]:
        """Yield the version of a topic on each target."""
        for target, history in self.targets:
            topic = history.catalog.topics.get(name) if history else None
            if history is None or topic is None or topic.deleted:
                yield TopicOnTarget(target, None, "", "")
                continue
            strategy, level = history.catalog.strategy(name, self.project.defaults)
            yield TopicOnTarget(target, history.find_current_number(name), strategy.value, level)


class TargetHistory(NamedTuple):
    """A target, and the approved history up to its position, or None if the position is unknown."""

    name: str
    history: History | None


@dataclass(frozen=True)
class TopicEntry:
    """A topic that has had a schema.

    Attributes:
        number: the number of the version in force, or None if the schema was removed.
        info: the definition in force as formatted now, or the last one.
        doc: the documentation of the message.
        type_docs: the documentation of each named type, by full name.
        lives: the fields in force, by path.
        ended: the removed and renamed fields, the last one to go first.
        verdicts: the verdicts of its versions and clients.
        state_since: the commit that put the version in force, or removed the schema; None if it is unknown.
        no_columns: the reason why it has no columns in Spark, or "".
        environments: its version on each target.
        latest_first: its versions, newest first.
        kinds: the number of the version in force of each kind of events; empty for a topic with one schema.
    """

    topic: Topic
    metadata: Metadata
    number: int | None
    info: SchemaInfo
    doc: str
    type_docs: Mapping[str, str]
    strategy: str
    level: str
    rows: Sequence[FieldRow]
    lives: Mapping[str, FieldLife]
    ended: Sequence[FieldLife]
    verdicts: TopicVerdicts
    state_since: Commit | None
    no_columns: str
    environments: Sequence[TopicOnTarget]
    latest_first: Sequence[VersionEntry]
    kinds: Mapping[str, int]

    @property
    def kind(self) -> str:
        """The kind of events of the version in force, or "" for a topic with one schema."""
        return next((kind for kind, number in self.kinds.items() if number == self.number), "")

    def find_latest(self, kind: str) -> VersionEntry | None:
        """Return the version in force of a kind of events, or of a topic with one schema (""); None if it was removed."""
        number = self.kinds.get(kind) if kind else self.number
        return next((entry for entry in self.latest_first if entry.version.number == number), None)

    @property
    def name(self) -> TopicName:
        """The topic's name."""
        return self.topic.name

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """The named types that each named type of the definition references, by full name."""
        try:
            return spec(self.info).list_direct_references(self.info)
        except InvalidSchema:
            return {}

    @cached_property
    def compared(self) -> list[SchemaVersion]:
        """The newest versions with a definition, oldest first; of several kinds of events, the versions of the newest one in force."""
        versions = [
            entry.version
            for entry in self.latest_first
            if entry.version.info is not None and (not self.kind or entry.version.kind == self.kind)
        ]
        return versions[:MAX_COMPARED][::-1]


@dataclass(frozen=True, slots=True)
class TopicOnTarget:
    """The version of a topic in force at a target's position in Git, or None if the target does not have the topic."""

    target: str
    number: int | None
    strategy: str
    level: str


@dataclass(frozen=True)
class VersionEntry:
    """A version of a topic, and its changes.

    Attributes:
        author: the author of the commit that added it, or "" if unknown.
        before: the previous version with a definition.
    """

    version: SchemaVersion
    author: str
    before: SchemaVersion | None

    @cached_property
    def changes(self) -> list[PartChange]:
        """The changes since the previous version; [] for the first version."""
        if self.version.info is None or self.before is None:
            return []
        try:
            return [*find_part_changes(old=self.before.info, new=self.version.info)]
        except InvalidSchema:
            return []


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A change of a named type by a commit, and the versions of topics that it made."""

    commit: Commit
    text: str
    versions: list[tuple[TopicName, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A named type as its first topic defines it.

    Attributes:
        topics: the topics that use it.
        paths: the fields of each topic that have this type.
        history: its changes, newest first.
        otherwise: the topics among `topics` that define it differently.
        uses, used_by: the named types that it references, and that reference it.
    """

    name: str
    doc: str
    rows: Sequence[FieldRow]
    symbols: tuple[str, ...] = ()
    topics: list[TopicName] = field(default_factory=list)
    otherwise: list[TopicName] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    used_by: set[str] = field(default_factory=set)
    paths: dict[TopicName, Sequence[str]] = field(default_factory=dict)
    history: list[TypeChange] = field(default_factory=list)

    def is_like(self, other: TypeUse) -> bool:
        """Return whether both have the same fields and symbols, regardless of documentation."""
        own_fields, other_fields = (
            [(row.name, row.type_text, row.logical) for row in use.rows] for use in (self, other)
        )
        return (own_fields, self.symbols) == (other_fields, other.symbols)


class TypeDefinition(NamedTuple):
    """A named type in the definition of one topic.

    Attributes:
        uses: the named types that it references.
        paths: the fields of the topic that have this type.
    """

    name: str
    doc: str
    rows: tuple[FieldRow, ...]
    symbols: tuple[str, ...]
    uses: frozenset[str]
    paths: tuple[str, ...]


class TopicTypes(NamedTuple):
    """The named types of a topic's definition in force.

    Attributes:
        message_types: see `find_message_types`.
        is_complete: whether the rows of the types are complete.
        changes: for each change of one of the types in a version: its name, the commit, the part, the text, and the version.
    """

    topic: TopicName
    message_types: frozenset[str]
    definitions: tuple[TypeDefinition, ...]
    is_complete: bool
    changes: tuple[tuple[str, Commit, str, str, int], ...]


def list_types(entry: TopicEntry) -> TopicTypes:
    """Return the named types of a topic's definition in force, and their changes."""
    rows: dict[str, dict[str, FieldRow]] = defaultdict(dict)
    paths: dict[str, list[str]] = defaultdict(list)
    for path, row in zip(list_paths(entry.rows), entry.rows, strict=True):
        rows[row.holder].setdefault(row.name, replace(row, depth=0))
        for name in row.types:
            paths[name].append(path)
    symbols = {name: row.symbols for row in entry.rows if row.symbols for name in row.types if name not in rows}
    definitions = tuple(
        TypeDefinition(
            name,
            entry.type_docs.get(name, ""),
            tuple(rows[name].values()) if name in rows else (),
            symbols.get(name, ()),
            uses,
            tuple(paths.get(name, ())),
        )
        for name, uses in entry.uses.items()
        if name
    )
    names = {name.rpartition(".")[2]: name for name in entry.uses if name}
    changes = []
    for version_entry in entry.latest_first:
        version = version_entry.version
        for change in version_entry.changes if version.commit else ():
            holder = change.part.partition(".")[0].partition(":")[0]
            if version.commit and holder in names:
                text = f"{change.sign} {change.text}"
                changes.append((names[holder], version.commit, change.part, text, version.number))
    return TopicTypes(
        entry.name, frozenset(find_message_types(entry.rows)), definitions, len(entry.rows) < MAX_ROWS, tuple(changes)
    )


class TypeUses(dict[str, TypeUse]):
    """The named types of all added topics, by full name."""

    def __init__(self) -> None:
        super().__init__()
        self._message_types: dict[TopicName, frozenset[str]] = {}
        self._history: dict[str, dict[tuple[str, str], TypeChange]] = {}

    def add(self, types: TopicTypes) -> None:
        """Add the types of a topic."""
        self._message_types[types.topic] = types.message_types
        for definition in types.definitions:
            candidate = TypeUse(definition.name, definition.doc, definition.rows, definition.symbols)
            use = self.setdefault(definition.name, candidate)
            use.topics.append(types.topic)
            use.uses.update(definition.uses)
            if types.is_complete and not use.is_like(candidate):
                use.otherwise.append(types.topic)
            if definition.paths:
                use.paths[types.topic] = definition.paths
        # A change of a shared type counts once.
        for name, commit, part, text, number in types.changes:
            history = self._history.setdefault(name, {})
            history.setdefault((commit.id, part), TypeChange(commit, text)).versions.append((types.topic, number))

    def is_message_of_one(self, use: TypeUse) -> bool:
        """Return whether a type is the message of one topic, and part of nothing else; call it after `connect`."""
        return len(use.topics) == 1 and not use.used_by and use.name in self._message_types[use.topics[0]]

    def connect(self) -> None:
        """Set `used_by` of all types, once all topics are added."""
        for use in self.values():
            use.history.extend(
                sorted(self._history.get(use.name, {}).values(), key=lambda change: -change.commit.time_s)
            )
            for name in use.uses & self.keys():
                self[name].used_by.add(use.name)

    def list_edges(self, type_box: Callable[[str], Box], topic_box: Callable[[TopicName], Box]) -> tuple[Edges, Edges]:
        """Return the users and the parts of each box; the parts of a topic are the types of its messages."""
        parts = {
            type_box(use.name): [type_box(name) for name in sorted(use.uses & self.keys())] for use in self.values()
        }
        for topic, types in self._message_types.items():
            parts[topic_box(topic)] = [type_box(name) for name in sorted(types & self.keys())]
        users: dict[Box, list[Box]] = defaultdict(list)
        for user, boxes in parts.items():
            for box in boxes:
                users[box].append(user)
        return users, parts


def read_type_docs(info: SchemaInfo, release: Release) -> dict[str, str]:
    """Return the documentation of the documented named types, by full name. Raises as `list_field_rows`."""
    if pair := get_pair(info):
        key, value = (read_type_docs(part, release) for part in pair.halves.values())
        return key | value
    if native := protobuf_of(info):
        comments = native.comments().items()
        matches = ((re.fullmatch("/(?:messages|enums)/([^/]+)", pointer), text) for pointer, text in comments)
        return {match[1]: text for match, text in matches if match}
    if spec(info).language != "avro":
        return {}
    return {
        part.full_name: part.doc
        for part in parts(parse(info.schema, release))
        if isinstance(part, avro.Named) and part.doc
    }


def find_message_types(rows: Sequence[FieldRow]) -> set[str]:
    """Return the full name of the message type, or the names of key and value of a KEY_VALUE."""
    names: set[str] = set()
    is_key_value = False
    for row in rows:
        if row.depth == 0:
            is_key_value = not row.holder
            names.update([row.holder] if row.holder else row.types)
        elif row.depth == 1 and is_key_value:
            names.add(row.holder)
    return names


def draw_graph(middle: Box, users: Edges, parts: Edges) -> str:
    """Return the graph around a type as SVG, users to the left and parts to the right, or "" without users and parts.

    Args:
        middle: the type.
        users: the nodes that contain each node.
        parts: the nodes that each node contains.
    """
    levels = _measure_distances(middle, parts) | {
        node: -level for node, level in _measure_distances(middle, users).items()
    }
    if len(levels) == 1:
        return ""
    # Topics are to the left of all types, so that each line goes to the right.
    first = min(level for node, level in levels.items() if node.kind == "type") - 1
    columns: dict[int, list[Box]] = defaultdict(list)
    for node in sorted(levels):
        columns[first if node.kind == "topic" else levels[node]].append(node)
    height = _ROW * max(min(len(nodes), _MAX_NODES + 1) for nodes in columns.values())
    positions: dict[Box, tuple[int, int]] = {}
    boxes = ""
    for column, level in enumerate(sorted(columns)):
        nodes = columns[level]
        # The middle node is never hidden, and a single node is shown instead of `and 1 more`.
        nodes.sort(key=lambda node: node != middle)
        shown_nodes = nodes if len(nodes) <= _MAX_NODES + 1 else nodes[:_MAX_NODES]
        x = 2 + column * _COLUMN
        y = (height - _ROW * (len(shown_nodes) + (len(shown_nodes) < len(nodes)))) // 2 + 6
        for node in shown_nodes:
            positions[node] = x, y
            boxes += _draw_box(node, x, y, is_middle=node == middle)
            y += _ROW
        if hidden := nodes[len(shown_nodes) :]:
            positions |= dict.fromkeys(hidden, (x, y))
            boxes += (
                f'<g class="fold"><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
                f'<text x="{x + 12}" y="{y + 27}">and {len(hidden)} more</text></g>'
            )
    lines: set[str] = set()
    for node, (x, y) in positions.items():
        start_x, start_y = x + _WIDTH, y + _HEIGHT // 2
        for part in parts.get(node, ()):
            if part in positions and x < positions[part][0]:
                end_x, end_y = positions[part][0], positions[part][1] + _HEIGHT // 2
                curve = f"C{start_x + 28} {start_y} {end_x - 28} {end_y} {end_x} {end_y}"
                lines.add(f'<path d="M{start_x} {start_y}{curve}"/>')
    size = f'width="{len(columns) * _COLUMN - 52}" height="{height}"'
    return f'<svg class="graph" role="group" aria-label="Graph" {size}>{"".join(sorted(lines))}{boxes}</svg>'


class Box(NamedTuple):
    """A topic or a type: its name, and the address of its page."""

    name: str
    page: str
    kind: Literal["topic", "type"] = "type"


Edges = Mapping[Box, Sequence[Box]]


def _measure_distances(middle: Box, edges: Edges) -> dict[Box, int]:
    """Return the distance of each node by the longest path; a path ends at types that contain each other."""
    levels = {middle: 0}
    queue = deque([middle])
    while queue:
        node = queue.popleft()
        level = levels[node] + 1
        for neighbor in edges.get(node, ()):
            if level <= _MAX_DISTANCE and neighbor not in (node, middle) and levels.get(neighbor, 0) < level:
                levels[neighbor] = level
                queue.append(neighbor)
    return levels


def _draw_box(node: Box, x: int, y: int, *, is_middle: bool) -> str:
    full_name = on_one_line(node.name)
    namespace, _, name = full_name.rpartition("/" if node.kind == "topic" else ".")
    shape = (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 12}" y="{y + 18}">{shorten_label(name, _MAX_LETTERS)}</text>'
        f'<text class="space" x="{x + 12}" y="{y + 34}">{shorten_label(namespace, _MAX_LETTERS)}</text>'
    )
    title = f"<title>{node.kind} {escape(full_name)}</title>"
    if is_middle:
        return f'<g class="middle">{title}{shape}</g>'
    return f'<a class="{node.kind}" href="{escape(node.page)}">{title}{shape}</a>'
