"""What the pages of the catalogue show: the approved history, one topic after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeVar

from schemactl.codegen.topic_struct import StructOptions, decoded_options, message_doc, value_of
from schemactl.core.catalog import Catalog, Metadata, Topic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.formats import spec
from schemactl.formats.type_spec import PartChange, part_changes
from schemactl.history import History
from schemactl.site.field_rows import FieldRow, field_rows, type_docs

MAX_COMPARED: Final = 12
"""So many of the newest versions stand in the table of who can read whom."""


_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class TopicOnTarget:
    """What a target has of a topic, as far as Git says it: the version in force at its position; None: it does not have the topic."""

    target: str
    number: int | None
    strategy: str
    level: str


@dataclass(frozen=True)
class VersionEntry:
    """A version of a topic, and what it changed.

    Attributes:
        author: of the commit that brought it; "": not known.
        before: the version before it that has a definition.
    """

    version: SchemaVersion
    author: str
    before: SchemaVersion | None

    @cached_property
    def changes(self) -> list[PartChange]:
        """What it changed of the one before, in parts; all of it, if it is the first."""
        if self.version.info is None or self.before is None:
            return []
        try:
            return [*part_changes(old=self.before.info, new=self.version.info)]
        except InvalidSchema:
            return []


@dataclass(frozen=True)
class TopicEntry:
    """A topic that has had a schema.

    Attributes:
        number: of the version in force; None: the topic has no schema any more.
        info: the definition in force, as it reads now, else the last one.
        doc: what the definition says of the message.
        type_docs: by the full name of each named type what the definition says of it.
        since: the version since which each field is there, by its holder and name.
        no_columns: why it has none in Spark; "": it has.
        environments: what the targets have of it.
        latest_first: its versions.
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
    since: Mapping[tuple[str, str], SchemaVersion]
    no_columns: str
    environments: Sequence[TopicOnTarget]
    latest_first: Sequence[VersionEntry]

    @property
    def name(self) -> TopicName:
        """The topic's name."""
        return self.topic.name

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """By the full name of each named type of the definition those that it uses."""
        try:
            return spec(self.info).uses(self.info)
        except InvalidSchema:
            return {}

    @cached_property
    def compared(self) -> list[SchemaVersion]:
        """The newest versions that have a definition, oldest first."""
        found = [each.version for each in self.latest_first if each.version.info is not None]
        return found[:MAX_COMPARED][::-1]


class TargetHistory(NamedTuple):
    """A target, and the approved history up to its position; None: its position is not known here."""

    name: str
    history: History | None


@dataclass(frozen=True)
class Catalogue:
    """The approved history as a catalogue.

    Attributes:
        history: what was approved.
        authors: of commits, by their ids.
        targets: in the order of the project file.
    """

    history: History
    project: Project
    authors: Mapping[str, str]
    targets: Sequence[TargetHistory] = field(default=())

    @property
    def catalog(self) -> Catalog:
        """What was approved."""
        return self.history.catalog

    def topics(self, names: Sequence[TopicName]) -> Iterator[TopicEntry]:
        """Yield these topics, each read when its turn comes; those that never had a schema are left out."""
        options = decoded_options(self.project.generate)
        for name in names:
            topic = self.catalog.topics[name].load()
            versions = [version.load() for version in topic.versions]
            last = next((each for each in reversed(versions) if each.info is not None), None)
            if last is None or last.info is None:
                continue
            number = self.history.current(name)
            info = topic.schema.load() if topic.schema and number is not None else last.info
            strategy, level = self.catalog.strategy(name, self.project.defaults)
            yield TopicEntry(
                topic,
                self.catalog.metadata(name),
                number,
                info,
                self._read(message_doc, info) or "",
                self._read(type_docs, info) or {},
                strategy.value,
                level,
                self._rows(info, options),
                self._since(versions, number),
                self._no_columns(info, options),
                [*self._environments(name)],
                [*self._versions(versions)][::-1],
            )

    def without_schema(self, names: Sequence[TopicName]) -> list[TopicName]:
        """Return those of the topics that are declared and never had a schema."""
        topics = {name: self.catalog.topics[name] for name in names}
        return [name for name, topic in topics.items() if not topic.versions and not topic.deleted]

    def namespaces(self) -> list[NamespaceName]:
        """Return the namespaces that are declared, or have topics."""
        return sorted({*self.catalog.namespaces, *(name.namespace_name for name in self.catalog.topics)})

    def _rows(self, info: SchemaInfo, options: StructOptions | None = None) -> list[FieldRow]:
        return self._read(partial(field_rows, options=options), info) or []

    def _no_columns(self, info: SchemaInfo, options: StructOptions) -> str:
        try:
            found = value_of(info, options, self.project.release)
        except SchemactlError as error:
            return f"{error.what} ({error.fix})" if error.fix else error.what
        return "" if found else f"{info.type.name} does not say what the bytes of a message are"

    def _read(self, read: Callable[[SchemaInfo, Release], _Said], info: SchemaInfo) -> _Said | None:
        """Return what the definition says; None: it does not parse."""
        try:
            return read(info, self.project.release)
        except InvalidSchema:
            return None

    def _since(
        self, versions: Sequence[SchemaVersion], number: int | None
    ) -> dict[tuple[str, str], SchemaVersion]:
        """Return since which version each field is there without a gap, up to version `number`."""
        found: dict[tuple[str, str], SchemaVersion] = {}
        for version in versions:
            if version.info is None or (number is not None and version.number > number):
                continue
            there = {(row.holder, row.name) for row in self._rows(version.info)}
            found = {key: found.get(key, version) for key in there}
        return found

    def _environments(self, name: TopicName) -> Iterator[TopicOnTarget]:
        for target, history in self.targets:
            topic = history.catalog.topics.get(name) if history else None
            if history is None or topic is None or topic.deleted:
                yield TopicOnTarget(target, None, "", "")
                continue
            strategy, level = history.catalog.strategy(name, self.project.defaults)
            yield TopicOnTarget(target, history.current(name), strategy.value, level)

    def _versions(self, versions: Sequence[SchemaVersion]) -> Iterator[VersionEntry]:
        before = None
        for version in versions:
            author = self.authors.get(version.commit.id, "") if version.commit else ""
            yield VersionEntry(version, author, before)
            before = version if version.info is not None else before
