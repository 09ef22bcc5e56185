"""The catalog of topics and namespaces, with their declared clients and metadata, and its selection by globs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from schemactl.core import names as topic_names
from schemactl.core.errors import Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies, strategy_of
from schemactl.core.project import Target
from schemactl.core.schema import EMPTY, Locator, SchemaInfo, SchemaVersion

if TYPE_CHECKING:
    from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Level


# Clients of a topic


class ClientBuild(NamedTuple):
    """A definition that a client is built with; without `number` it is its own."""

    number: int | None
    info: SchemaInfo


@dataclass(frozen=True, slots=True)
class Client:
    """A declared producer or consumer of a topic, and which schema it is built with.

    Attributes:
        versions: the first and the last version that what runs of it is built with; None: `schema`, or always the latest.
        file: the definition of its own that it is built with instead, as the declaration names it; "": none.
        schema: what that file defines; None: there is none, or it was not read.
        team: who answers for it; `contact` is where to find them.
        targets: those on which it runs; (): all that have the topic.
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

    @property
    def reads(self) -> bool:
        """Whether it reads messages."""
        return self.role != "producer"

    @property
    def who(self) -> str:
        """Its name and its team, for people."""
        return f"{self.name} (team {self.team})" if self.team else self.name

    @property
    def owner(self) -> str:
        """Who answers for it: where to find its team, or else the team's name; "": not declared."""
        return self.contact or self.team

    @property
    def is_latest(self) -> bool:
        """Whether it is built with the latest version, whichever that is."""
        return not (self.versions or self.file)

    @property
    def built(self) -> str:
        """What it is built with, as a declaration writes it."""
        if self.versions:
            first, last = self.versions
            return str(first) if first == last else f"{first}..{last}"
        return self.file or "latest"

    def builds(self, versions: Sequence[SchemaVersion]) -> list[ClientBuild]:
        """Return the definitions that it is built with, of a topic with these versions, the newest first."""
        if self.schema:
            return [ClientBuild(None, self.schema)]
        first, last = self.versions or (0, -1)
        # A tombstone at the end leaves no latest version.
        chosen = versions[-1:] if self.is_latest else [each for each in versions if first <= each.number <= last]
        return [ClientBuild(each.number, each.info) for each in reversed(chosen) if each.info]

    def is_same_build(self, other: Client) -> bool:
        """Whether `other` is the same client, built with the same schema."""
        return (self.name, self.role, self.versions, self.schema) == (
            other.name,
            other.role,
            other.versions,
            other.schema,
        )

    def runs_on(self, *targets: str) -> bool:
        """Whether it runs on one of these targets, or none is given."""
        return not (self.targets and targets) or not {*self.targets}.isdisjoint(targets)

    @classmethod
    def parse(cls, name: str, role: Literal["producer", "consumer", "reader"], schema: int | str) -> Client:
        """Return the client that a declaration with this `schema` means: a number, a range `3..5`, `latest`, or a file."""
        if isinstance(schema, int):
            return cls(name, role, (schema, schema))
        first, dots, last = schema.partition("..")
        if dots and first.isdecimal() and last.isdecimal():
            return cls(name, role, (int(first), int(last)))
        return cls(name, role, file="" if schema == "latest" else schema)


# Metadata for people: it is shown, and makes no version


def parse_day(text: str) -> date:
    """Return the day that `text` names as ISO 8601 writes it in full, `2027-01-31`. Raise ValueError where it names none."""
    found = date.fromisoformat(text)
    if found.isoformat() != text:
        raise ValueError(f"{text!r} is not written as {found}")
    return found


@dataclass(frozen=True, slots=True)
class Deprecated:
    """That a topic is to be used no longer: since when, the last day on which it may be there, and what to use instead."""

    since: date | None = None
    remove_after: date | None = None
    use: TopicName | None = None

    @classmethod
    def parse(cls, since: str | None = None, remove_after: str | None = None, use: str | None = None) -> Deprecated:
        """Return what a declaration says; its days are as ISO 8601 writes them."""
        first, last = (day and parse_day(day) for day in (since, remove_after))
        return cls(first or None, last or None, TopicName.parse(use) if use else None)

    def values(self) -> dict[str, str]:
        """Return what is said, as a declaration writes it."""
        said = {"since": self.since, "remove_after": self.remove_after, "use": self.use}
        return {key: str(value) for key, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is said of a topic or namespace for people.

    Attributes:
        owner: who answers for it.
        labels: name to text, to find it by.
        links: name to URL.
    """

    owner: str = ""
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    links: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    deprecated: Deprecated | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Metadata:
        """Return what a declaration with these `values` says."""
        said = {key: values[key] for key in cls.__slots__ if key in values}
        if "deprecated" in said:
            said["deprecated"] = Deprecated.parse(**said["deprecated"])
        return cls(**said)

    def values(self) -> dict[str, Any]:
        """Return what is said, as a declaration writes it."""
        said = {key: value for key in self.__slots__ if (value := getattr(self, key)) not in ("", EMPTY, None)}
        return said | ({"deprecated": self.deprecated.values()} if self.deprecated else {})

    def words(self) -> dict[str, str]:
        """Return what is said, by key, each as one line."""
        said = {
            key: ", ".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, Mapping) else value
            for key, value in self.values().items()
        }
        return {key: " ".join(text.split()) for key, text in said.items()}

    def within(self, namespace: Metadata) -> Metadata:
        """Return a topic's, with what its namespace says of all its topics: their owner, labels, and that they are deprecated."""
        return replace(
            self,
            owner=self.owner or namespace.owner,
            labels={**namespace.labels, **self.labels},
            deprecated=self.deprecated or namespace.deprecated,
        )


NO_METADATA = Metadata()

K = TypeVar("K")
V = TypeVar("V")


class LazyMapping(Mapping[K, V]):
    """A mapping whose keys and values are found when they are asked for, each once."""

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


# Topics, namespaces and catalogs


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its policies.

    In a registry, `deleted`: its deletion was begun, and it is still there; `clusters` are those that have its topics.
    """

    name: NamespaceName
    policies: Policies = Policies()
    metadata: Metadata = NO_METADATA
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)
    deleted: bool = False
    clusters: tuple[str, ...] = field(default=(), compare=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the nearest place to `pointer` in the declaration; None when it came from no file."""
        return self.locator(pointer) if self.locator else self.source

    def is_elsewhere(self, cluster: str) -> bool:
        """Whether only other clusters than this one have its topics; "": it is not known which one this is."""
        return bool(cluster and self.clusters) and cluster not in self.clusters


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic according to one source.

    Attributes:
        schema: the definition in force: as declared, at the tip of the approved history, or latest in the registry.
            None: a topic without schema (or, in history, one that is no longer declared).
        generation: as declared, or in history the newest: 1 plus the number of tombstones among its versions.
        versions: every version the source knows, in order of number; empty for declared files, which know no numbers.
        deleted: in history: was declared once and is no longer.
    """

    name: TopicName
    schema: SchemaInfo | None = None
    versions: tuple[SchemaVersion, ...] = ()
    policies: Policies = Policies()
    partitions: int | None = None
    generation: int = 1
    renamed_from: TopicName | None = None
    reader: int | Literal["latest"] = "latest"
    lifecycle: Literal["stable", "draft"] = "stable"
    metadata: Metadata = NO_METADATA
    clients: tuple[Client, ...] = ()
    deleted: bool = False
    source: Source | None = field(default=None, compare=False)
    locator: Locator | None = field(default=None, compare=False, repr=False)

    def locate(self, pointer: str) -> Source | None:
        """Return the nearest place to `pointer` in the declaration: `/partitions`, `/schema/type`; None when it came from no file."""
        return self.locator(pointer) if self.locator else self.source

    def load(self) -> Topic:
        """Return the topic itself, the definitions of its schema and versions read from Git now where they were not yet."""
        if self.schema:
            self.schema.load()
        for version in self.versions:
            version.load()
        return self


@dataclass(frozen=True, slots=True)
class Catalog:
    """Namespaces and topics with their schema versions, according to one source.

    `former` are, in history, the policies that were declared once and are no longer, each with the value that was declared last.
    """

    namespaces: Mapping[NamespaceName, Namespace] = field(default_factory=dict)
    topics: Mapping[TopicName, Topic] = field(default_factory=dict)
    former: Mapping[NamespaceName | TopicName, Policies] = field(default_factory=dict)

    def get(self, name: NamespaceName | TopicName) -> Namespace | Topic | None:
        """Return the namespace or topic of that name; None: there is none."""
        return self.topics.get(name) if isinstance(name, TopicName) else self.namespaces.get(name)

    def strategy(self, topic: TopicName, defaults: BrokerDefaults) -> tuple[CompatibilityStrategy, Level]:
        """Return the strategy in force for `topic` and the level that sets it: topic, then namespace, then default."""
        known = self.topics.get(topic)
        space = self.namespaces.get(topic.namespace_name)
        if known and (strategy := strategy_of(known.policies)):
            return strategy, "topic"
        if space and (strategy := strategy_of(space.policies)):
            return strategy, "namespace"
        return defaults.schema_compatibility_strategy, "default"

    def metadata(self, name: NamespaceName | TopicName) -> Metadata:
        """Return what is said of a namespace, or of a topic by itself and by its namespace."""
        space = self.namespaces.get(name.namespace_name)
        said = space.metadata if space else NO_METADATA
        known = self.topics.get(name) if isinstance(name, TopicName) else None
        return known.metadata.within(said) if known else said

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the topic's versions; none without the topic."""
        found = self.topics.get(topic)
        return found.versions if found else ()

    def load(self) -> Catalog:
        """Return the catalog itself, every definition read from Git now where it was not yet."""
        for topic in self.topics.values():
            topic.load()
        return self


NameT = TypeVar("NameT", bound=NamespaceName | TopicName)


def chosen_topics(names: Iterable[TopicName], target: Target) -> frozenset[TopicName]:
    """Return those of `names` that `target` has."""
    return topic_names.select(names, target.globs)


def namespaces_of(catalog: Catalog) -> set[NamespaceName]:
    """Return the namespaces that are or were declared, and those of topics."""
    former = {name for name in catalog.former if isinstance(name, NamespaceName)}
    return {*catalog.namespaces, *(name.namespace_name for name in catalog.topics), *former}


def part_of(catalog: Catalog, topics: Sequence[str] = (), namespaces: Collection[str] = ()) -> Catalog:
    """Return the part of `catalog` whose topics match one of the globs `topics`, and no `!GLOB`, and one of `namespaces`; empty means all.

    A namespace stays when it is one of `namespaces` or holds a topic that stays, or when nothing was asked for.
    """
    chosen = topic_names.select(catalog.topics, topics, [*namespaces])
    needed = {name.namespace_name for name in chosen}
    is_listed = any(not pattern.startswith("!") for pattern in topics)
    # Of what is only skipped, a namespace goes that was there for nothing else.
    emptied = {name.namespace_name for name in catalog.topics.keys() - chosen} - needed if topics else set()

    def is_kept(name: NamespaceName | TopicName) -> bool:
        if isinstance(name, TopicName):
            return name in chosen
        if is_listed:
            return name in needed
        return (not namespaces or str(name) in namespaces) and name not in emptied

    return only(catalog, is_kept)


def only(catalog: Catalog, is_kept: Callable[[NamespaceName | TopicName], bool]) -> Catalog:
    """Return what of `catalog` has a name that `is_kept`. Nothing of it is read before it is asked for."""

    def part(found: Mapping[NameT, V]) -> Mapping[NameT, V]:
        return LazyMapping(
            lambda: [key for key in found if is_kept(key)], lambda key: found.get(key) if is_kept(key) else None
        )

    return Catalog(part(catalog.namespaces), part(catalog.topics), part(catalog.former))
