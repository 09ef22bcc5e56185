"""Define the catalog: namespaces and topics with their clients and metadata, and how a part of it is selected."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Literal, NamedTuple, TypeVar

from schemactl.core import names as topic_names
from schemactl.core.errors import Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Level, Policies, find_strategy
from schemactl.core.project import ProtoRendering, Target
from schemactl.core.schema import EMPTY, Locator, SchemaInfo, SchemaVersion

LANGUAGES: Final = ("java", "go", "python")
"""The languages of clients whose reading is known."""


def parse_day(text: str) -> date:
    """Parse a day in the extended format of ISO 8601, `2027-01-31`; raise ValueError for any other text."""
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(f"{text!r} is not written as {day}")
    return day


@dataclass(frozen=True, slots=True)
class Deprecated:
    """The deprecation of a topic: its first day, the last day of the topic, and the topic to use instead."""

    since: date | None = None
    remove_after: date | None = None
    use: TopicName | None = None

    @classmethod
    def parse(cls, since: str | None = None, remove_after: str | None = None, use: str | None = None) -> Deprecated:
        """Return the deprecation of a declaration, with days in ISO 8601."""
        first, last = (day and parse_day(day) for day in (since, remove_after))
        return cls(first or None, last or None, TopicName.parse(use) if use else None)

    def values(self) -> dict[str, str]:
        """Return the set values, as declared."""
        values = {"since": self.since, "remove_after": self.remove_after, "use": self.use}
        return {key: str(value) for key, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class Metadata:
    """Information about a topic or namespace for its users, which is not part of a version.

    Attributes:
        owner: its owner.
        labels: texts by name, to search for.
        links: URLs by name.
    """

    owner: str = ""
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    links: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    deprecated: Deprecated | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Metadata:
        """Return the metadata in the values of a declaration."""
        metadata = {key: values[key] for key in cls.__slots__ if key in values}
        if "deprecated" in metadata:
            metadata["deprecated"] = Deprecated.parse(**metadata["deprecated"])
        return cls(**metadata)

    def values(self) -> dict[str, Any]:
        """Return the set values, as declared."""
        values = {key: value for key in self.__slots__ if (value := getattr(self, key)) not in ("", EMPTY, None)}
        return values | ({"deprecated": self.deprecated.values()} if self.deprecated else {})

    def words(self) -> dict[str, str]:
        """Return the set values by key, each as one line of text."""
        texts = {
            key: ", ".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, Mapping) else value
            for key, value in self.values().items()
        }
        return {key: " ".join(text.split()) for key, text in texts.items()}

    def inherit_from(self, namespace: Metadata) -> Metadata:
        """Return the metadata of a topic with the owner, labels and deprecation that it inherits from its namespace."""
        return replace(
            self,
            owner=self.owner or namespace.owner,
            labels={**namespace.labels, **self.labels},
            deprecated=self.deprecated or namespace.deprecated,
        )


NO_METADATA = Metadata()

K = TypeVar("K")
V = TypeVar("V")


NameT = TypeVar("NameT", bound=NamespaceName | TopicName)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Namespaces and topics with their schema versions, according to one source.

    Attributes:
        former: in history, the policies that are no longer declared, with their last declared values.
    """

    namespaces: Mapping[NamespaceName, Namespace] = field(default_factory=dict)
    topics: Mapping[TopicName, Topic] = field(default_factory=dict)
    former: Mapping[NamespaceName | TopicName, Policies] = field(default_factory=dict)

    def get(self, name: NamespaceName | TopicName) -> Namespace | Topic | None:
        """Return the namespace or topic with this name, or None."""
        return self.topics.get(name) if isinstance(name, TopicName) else self.namespaces.get(name)

    def strategy(self, topic: TopicName, defaults: BrokerDefaults) -> tuple[CompatibilityStrategy, Level]:
        """Return the strategy in force for a topic, and the level that sets it: topic, namespace, or default."""
        entry = self.topics.get(topic)
        if entry and (strategy := find_strategy(entry.policies)):
            return strategy, "topic"
        namespace = self.namespaces.get(topic.namespace_name)
        if namespace and (strategy := find_strategy(namespace.policies)):
            return strategy, "namespace"
        return defaults.schema_compatibility_strategy, "default"

    def data_strategy(self, topic: TopicName, defaults: BrokerDefaults) -> tuple[CompatibilityStrategy, Level]:
        """Return the strategy by which the readers of a topic's data are protected, and the level that sets it.

        Kinds of events have `kinds_compatibility` or the default; other topics have the strategy of the broker.
        """
        entry = self.topics.get(topic)
        if entry is None or not entry.kinds:
            return self.strategy(topic, defaults)
        if entry.kinds_compatibility:
            return entry.kinds_compatibility, "kinds"
        return defaults.schema_compatibility_strategy, "default"

    def metadata(self, name: NamespaceName | TopicName) -> Metadata:
        """Return the metadata of a namespace, or of a topic including inherited metadata of its namespace."""
        namespace = self.namespaces.get(name.namespace_name)
        inherited = namespace.metadata if namespace else NO_METADATA
        topic = self.topics.get(name) if isinstance(name, TopicName) else None
        return topic.metadata.inherit_from(inherited) if topic else inherited

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the versions of a topic, () if the catalog does not have the topic."""
        entry = self.topics.get(topic)
        return entry.versions if entry else ()

    def twin_versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the versions of the topics of the same name in the other domains, which share the registry's list."""
        return tuple(version for twin in topic.same_names_elsewhere for version in self.versions(twin))

    def load(self) -> Catalog:
        """Read every definition from Git unless it was read before, and return the catalog."""
        for topic in self.topics.values():
            topic.load()
        return self


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace according to one source.

    Attributes:
        schema_properties: the defaults of the properties of its topics' schemas.
        deleted: in a registry, whether its deletion has started.
        clusters: in a registry, the clusters that have its topics.
    """

    name: NamespaceName
    policies: Policies = Policies()
    metadata: Metadata = NO_METADATA
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)
    deleted: bool = False
    schema_properties: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    clusters: tuple[str, ...] = field(default=(), compare=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the source location nearest to a JSON pointer in the declaration, or None if it was not read from a file."""
        return self.locator(pointer) if self.locator else self.source

    def is_elsewhere(self, cluster: str) -> bool:
        """Return whether only other clusters than `cluster` have its topics; False if `cluster` is "", for unknown."""
        return bool(cluster and self.clusters) and cluster not in self.clusters


@dataclass(frozen=True, slots=True)
class Kind:
    """One of several kinds of events of a topic.

    Attributes:
        key: its key under `schemas`.
        schema: its definition in force.
        record: the full name of its record, or of its root message.
        reader: the version that generated readers use.
    """

    key: str
    schema: SchemaInfo
    record: str
    reader: int | Literal["latest"] = "latest"


class KindName(NamedTuple):
    """A key under `schemas`, and the full name of a record that it declares or declared."""

    key: str
    record: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic according to one source.

    Attributes:
        schema: the definition in force: as declared, at the tip of the approved history, or the latest in the registry; None
            for a topic without schema, and in history for a topic that is no longer declared. For a topic with kinds, the
            definition of the newest version in force; in declared files, which do not have numbers, of the last kind.
        kinds: the declared kinds, in the order of their keys; () for a topic with one schema.
        kind_names: every kind that was ever declared, the oldest first and the declared ones last; see `find_kind_key`.
        kinds_compatibility: the strategy by which the data of each kind is judged, or None for the default of the project.
        kind: the key of the kind if this is the part of a topic for one kind (see `split`), else "".
        versions: every version, ordered by number; empty for declared files, which do not have numbers.
        generation: as declared; in history, 1 plus the number of tombstones among its versions.
        recursion_depth: how often a record may contain itself in its columns, or None for the depth of the project.
        json_times: the form in which times are written into JSON, or None for the form of the project.
        integers: the byte order of INT16, INT32 and INT64, or None for the order of Java's client, big.
        nanoseconds: the columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME, or None for the columns of the project.
        rendering: the client language in whose form its `.proto` definition is registered, or None if the topic does not set it.
        deleted: in history, whether it was declared before, but is no longer.
    """

    name: TopicName
    schema: SchemaInfo | None = None
    versions: tuple[SchemaVersion, ...] = ()
    policies: Policies = Policies()
    partitions: int | None = None
    generation: int = 1
    renamed_from: TopicName | None = None
    reader: int | Literal["latest"] = "latest"
    recursion_depth: int | None = None
    json_times: Literal["number", "java"] | None = None
    integers: Literal["big", "little"] | None = None
    nanoseconds: Literal["truncated", "bigint"] | None = None
    rendering: ProtoRendering | None = None
    lifecycle: Literal["stable", "draft"] = "stable"
    metadata: Metadata = NO_METADATA
    clients: tuple[Client, ...] = ()
    deleted: bool = False
    kinds: tuple[Kind, ...] = ()
    kind_names: tuple[KindName, ...] = field(default=(), compare=False)
    kinds_compatibility: CompatibilityStrategy | None = None
    kind: str = ""
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the source location nearest to a JSON pointer like `/schema/type`, or None if it was not read from a file."""
        return self.locator(pointer) if self.locator else self.source

    def find_kind_key(self, record: str) -> str:
        """Return the key of the kind that has or had a record of this full name, or "" if no kind ever had.

        If several kinds had it, the last one counts, so that a key can be renamed.
        """
        return next((name.key for name in reversed(self.kind_names) if name.record == record), "")

    def get_kind(self, key: str) -> Kind | None:
        """Return the declared kind with this key, or None."""
        return next((kind for kind in self.kinds if kind.key == key), None)

    def list_kind_keys(self) -> list[str]:
        """Return the keys of the declared kinds, then the keys of the removed ones."""
        return list(dict.fromkeys([*(kind.key for kind in self.kinds), *(name.key for name in self.kind_names)]))

    def find_part(self, key: str) -> Topic | None:
        """Return the part of the topic for a kind that is or was declared (see `split`), or None if no kind ever had this key.

        The part of a removed kind is `deleted` and has only its versions: no schema and no clients.
        """
        if kind := self.get_kind(key):
            return self.make_part(kind)
        versions = tuple(version for version in self.versions if version.info is None or version.kind == key)
        if not any(version.info for version in versions):
            return None
        return replace(self, schema=None, versions=versions, clients=(), kinds=(), kind=key, deleted=True)

    def split(self) -> tuple[Topic, ...]:
        """Return one topic for each declared kind, as if it had only this kind; the topic itself if it has one schema.

        Each has the definition and reader of its kind, the versions of its kind with all tombstones, and the clients of its kind.
        """
        return tuple(map(self.make_part, self.kinds)) if self.kinds else (self,)

    def make_part(self, kind: Kind) -> Topic:
        """Return the part of the topic for one of its kinds (see `split`)."""
        versions = tuple(version for version in self.versions if version.info is None or version.kind == kind.key)
        indexes = [index for index, client in enumerate(self.clients) if client.has_kind(kind.key, self.versions)]

        def locate(pointer: str) -> Source:
            _, name, *parts = pointer.split("/")
            if name == "schema":
                pointer = "/".join(["", "schemas", kind.key, *parts])
            elif name == "reader":
                pointer = f"/schemas/{kind.key}/reader"
            elif name == "clients" and parts:
                pointer = "/".join(["", name, str(indexes[int(parts[0])]), *parts[1:]])
            source = self.locate(pointer)
            assert source  # noqa: S101  it was read from a file
            return source

        return replace(
            self,
            schema=kind.schema,
            versions=versions,
            reader=kind.reader,
            clients=tuple(self.clients[index] for index in indexes),
            kinds=(),
            kind=kind.key,
            locator=locate if self.source else None,
        )

    def get_rendering(self, project: ProtoRendering | None) -> ProtoRendering:
        """Return the client language in whose form `.proto` definitions are registered.

        It is the setting of the topic, else of the `project`, else the common language of the producers, else java.
        """
        languages = {client.client_language for client in self.clients if client.role == "producer" and client.language}
        common_language = languages.pop() if len(languages) == 1 else None
        return self.rendering or project or common_language or "java"

    def load(self) -> Topic:
        """Read the definitions of its schema and versions from Git unless they were read before, and return the topic."""
        for schema in (self.schema, *(kind.schema for kind in self.kinds)):
            if schema:
                schema.load()
        for version in self.versions:
            version.load()
        return self

    def unload(self) -> None:
        """Free the memory of the definitions that `load` read from Git; the next use reads them again."""
        for schema in (
            self.schema,
            *(kind.schema for kind in self.kinds),
            *(version.info for version in self.versions),
        ):
            if schema:
                schema.unload()


_CLIENT_LANGUAGES: Mapping[str, ProtoRendering] = {
    **dict.fromkeys(("java", "kotlin", "scala", "groovy", "clojure", "jvm"), "java"),
    **dict.fromkeys(("go", "golang"), "go"),
    **dict.fromkeys(("python", "python3", "py"), "python"),
}
"""The languages that declarations name, with the language of the Pulsar client that they use."""


@dataclass(frozen=True, slots=True)
class Client:
    """A declared producer or consumer of a topic, and the schema that it is built with.

    Attributes:
        versions: the first and the last version of its running instances, or None for `file` or the latest version.
        language: its language as declared; `known_language` decides how it reads.
        file: the file with the client's own definition, as declared, or "".
        schema: the definition in that file, or None if there is none or it was not read.
        team: its owner.
        contact: the address of the team.
        targets: the targets on which it runs; () for all targets with the topic.
        kind: the key of the kind of events that it is built for, or "" for the kinds of its versions.
    """

    name: str
    role: Literal["producer", "consumer", "reader"]
    versions: tuple[int, int] | None = None
    file: str = ""
    schema: SchemaInfo | None = None
    team: str = ""
    language: str = ""
    contact: str = ""
    targets: tuple[str, ...] = ()
    kind: str = ""

    @property
    def known_language(self) -> str:
        """The language of its Pulsar client, if that is known, else ""."""
        return self.client_language or ""

    @property
    def client_language(self) -> ProtoRendering | None:
        """The language of the Pulsar client that it uses, or None if that is unknown."""
        return _CLIENT_LANGUAGES.get(self.language.strip().lower())

    @property
    def reads(self) -> bool:
        """Whether it reads messages."""
        return self.role != "producer"

    @property
    def display_name(self) -> str:
        """Its name and its team."""
        return f"{self.name} (team {self.team})" if self.team else self.name

    @property
    def owner(self) -> str:
        """Its contact, or else its team; "" if not declared."""
        return self.contact or self.team

    @property
    def is_latest(self) -> bool:
        """Whether it is always built with the latest version."""
        return not (self.versions or self.file)

    @property
    def built(self) -> str:
        """The version, range or file that it is built with, as declared."""
        if self.versions:
            first, last = self.versions
            return str(first) if first == last else f"{first}..{last}"
        return self.file or "latest"

    def builds(self, versions: Sequence[SchemaVersion]) -> list[ClientBuild]:
        """Return the definitions that it is built with, newest first, given the versions of the topic."""
        if self.schema:
            return [ClientBuild(None, self.schema)]
        first, last = self.versions or (0, -1)
        if self.is_latest:
            # A tombstone at the end leaves no latest version.
            selected = versions[-1:]
        else:
            selected = [version for version in versions if first <= version.number <= last]
        return [ClientBuild(version.number, version.info) for version in reversed(selected) if version.info]

    def has_kind(self, key: str, versions: Sequence[SchemaVersion]) -> bool:
        """Return whether it is a client of the kind `key`, given all versions of the topic.

        Without a declared kind, it is a client of the kinds of its versions; with the latest version, of every kind.
        """
        if self.kind or self.versions is None:
            return self.kind in ("", key)
        first, last = self.versions
        return any(version.kind == key for version in versions if first <= version.number <= last)

    def is_same_build(self, other: Client) -> bool:
        """Return whether `other` is the same client, built with the same schema, in the same language."""
        return (self.name, self.role, self.kind, self.versions, self.schema, self.known_language) == (
            other.name,
            other.role,
            other.kind,
            other.versions,
            other.schema,
            other.known_language,
        )

    def runs_on(self, *targets: str) -> bool:
        """Return whether it runs on one of these targets; True without targets."""
        return not (self.targets and targets) or not {*self.targets}.isdisjoint(targets)


class ClientBuild(NamedTuple):
    """A definition that a client is built with; `number` is None for a definition from the client's own file."""

    number: int | None
    info: SchemaInfo


def select_target_topics(names: Iterable[TopicName], target: Target) -> frozenset[TopicName]:
    """Return the topics that `target` includes."""
    return topic_names.select_topics(names, target.globs)


def list_namespaces(catalog: Catalog) -> set[NamespaceName]:
    """Return the namespaces that are declared, were declared, or have topics."""
    former = {name for name in catalog.former if isinstance(name, NamespaceName)}
    return {*catalog.namespaces, *(name.namespace_name for name in catalog.topics), *former}


def select_part(catalog: Catalog, topics: Sequence[str] = (), namespaces: Collection[str] = ()) -> Catalog:
    """Return the part of a catalog with selected topics and their namespaces.

    Args:
        catalog: the catalog.
        topics: globs of topics, and `!GLOB` for excluded topics; () for all.
        namespaces: the names of namespaces; () for all.
    """
    selected = topic_names.select_topics(catalog.topics, topics, [*namespaces])
    used = {name.namespace_name for name in selected}
    has_globs = any(not pattern.startswith("!") for pattern in topics)
    # If topics are only excluded, a namespace without remaining topics is excluded with them.
    excluded = {name.namespace_name for name in catalog.topics.keys() - selected} - used if topics else set()

    def is_kept(name: NamespaceName | TopicName) -> bool:
        if isinstance(name, TopicName):
            return name in selected
        if has_globs:
            return name in used
        return (not namespaces or str(name) in namespaces) and name not in excluded

    return filter_catalog(catalog, is_kept)


def filter_catalog(catalog: Catalog, is_kept: Callable[[NamespaceName | TopicName], bool]) -> Catalog:
    """Return the namespaces and topics whose names satisfy `is_kept`; each is read on first use."""

    def filter_entries(entries: Mapping[NameT, V]) -> Mapping[NameT, V]:
        return LazyMapping(
            lambda: [key for key in entries if is_kept(key)], lambda key: entries.get(key) if is_kept(key) else None
        )

    return Catalog(filter_entries(catalog.namespaces), filter_entries(catalog.topics), filter_entries(catalog.former))


class LazyMapping(Mapping[K, V]):
    """A mapping whose keys and values are computed on first use."""

    def __init__(self, keys: Callable[[], list[K]], find: Callable[[K], V | None]) -> None:
        self._keys = functools.cache(keys)
        self._find = functools.cache(find)

    def __getitem__(self, key: K) -> V:
        value = self._find(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())
