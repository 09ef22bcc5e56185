"""The data model, in Pulsar's and Avro's terms: frozen values without behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Final, Literal

from schemactl.errors import Source
from schemactl.model.clients import Client as Client
from schemactl.model.clients import ClientBuild as ClientBuild
from schemactl.model.metadata import EMPTY as EMPTY
from schemactl.model.metadata import NO_METADATA as NO_METADATA
from schemactl.model.metadata import Deprecated as Deprecated
from schemactl.model.metadata import Metadata as Metadata
from schemactl.model.metadata import parse_day as parse_day
from schemactl.model.names import NamespaceName as NamespaceName
from schemactl.model.names import TargetNames as TargetNames
from schemactl.model.names import TopicName as TopicName
from schemactl.model.release import Release as Release
from schemactl.model.schema import WITHOUT_SCHEMA as WITHOUT_SCHEMA
from schemactl.model.schema import Commit as Commit
from schemactl.model.schema import Locator as Locator
from schemactl.model.schema import SchemaInfo as SchemaInfo
from schemactl.model.schema import SchemaType as SchemaType
from schemactl.model.schema import SchemaVersion as SchemaVersion
from schemactl.model.schema import live as live
from schemactl.model.schema import next_number as next_number
from schemactl.model.settings import REPLICATION as REPLICATION
from schemactl.model.settings import SETTINGS as SETTINGS


class CompatibilityStrategy(StrEnum):
    """Pulsar's SchemaCompatibilityStrategy; UNDEFINED asks the next level (topic, namespace, broker)."""

    UNDEFINED = "UNDEFINED"
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a namespace or topic. None: not managed here; UNDEFINED: reset to "ask the next level".

    `settings` are the values of SETTINGS, by name: those that are managed, or UNDEFINED.
    """

    schema_compatibility_strategy: CompatibilityStrategy | None = None
    is_allow_auto_update_schema: bool | None = None
    schema_validation_enforced: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Policies:
        """Return the policies among these values, by name; a strategy may be text. Raise ValueError where a value is none."""
        strategy = values.get("schema_compatibility_strategy")
        return cls(
            None if strategy is None else CompatibilityStrategy(strategy),
            values.get("is_allow_auto_update_schema"),
            values.get("schema_validation_enforced"),
            {
                name: value if value == CompatibilityStrategy.UNDEFINED else row.normal(value)
                for name, row in SETTINGS.items()
                if (value := values.get(name)) is not None
            },
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the name of every policy: those about schemas, and the settings."""
        return (*SCHEMA_POLICIES, *SETTINGS)

    def get(self, name: str) -> Any:
        """Return the policy of that name; None: it is not managed."""
        return getattr(self, name) if name in SCHEMA_POLICIES else self.settings.get(name)

    def managed(self) -> dict[str, Any]:
        """Return the policies that are not None, by name."""
        return {name: value for name in self.names() if (value := self.get(name)) is not None}

    def without(self, managed: Policies) -> Policies:
        """Return these policies, without those that `managed` has."""
        return Policies.of({**self.managed(), **dict.fromkeys(managed.managed())})

    def overlaid(self, managed: Policies) -> Policies:
        """Return these policies, with those that `managed` has in place of their own."""
        return Policies.of({**self.managed(), **managed.managed()})


SCHEMA_POLICIES: Final = (
    "schema_compatibility_strategy",
    "is_allow_auto_update_schema",
    "schema_validation_enforced",
)
"""The policies about schemas themselves."""


def strategy_of(*policies: Policies | None) -> CompatibilityStrategy | None:
    """Return the first strategy that is set in `policies`, which go from topic to namespace; None: none is."""
    for each in policies:
        strategy = each.schema_compatibility_strategy if each else None
        if strategy not in (None, CompatibilityStrategy.UNDEFINED):
            return strategy
    return None


@dataclass(frozen=True, slots=True)
class BrokerDefaults:
    """The broker's own settings, as the project file has them, with Pulsar's defaults."""

    schema_compatibility_strategy: CompatibilityStrategy = CompatibilityStrategy.FULL
    is_allow_auto_update_schema: bool = True
    schema_validation_enforced: bool = False
    checkers: tuple[str, ...] = ()
    """The optional checkers that the brokers are configured with (see OPTIONAL_CHECKERS)."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """What they do where a setting is not set, by its name; what is not known is not there."""


ProtoCategory = Literal["WIRE", "WIRE_JSON"]
"""buf's categories of rules about messages; its others are about generated code."""

OPTIONAL_CHECKERS: Mapping[str, Release] = {
    "ProtobufNativeSchemaAdvancedCompatibilityCheck": Release.R5_0,
    "ProtobufSchemaCompatibilityCheck": Release.R4_0,
}
"""Pulsar's checkers that no broker has unless `schemaRegistryCompatibilityCheckers` lists them, with their first release."""


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


@dataclass(frozen=True, slots=True)
class Target:
    """A registry to plan against, by the name the project file gives it.

    Attributes:
        registry: its URL as written: `sqlite:PATH` (relative to the project's folder) or `http(s)://HOST:PORT`.
        release: None: the project's.
        pulsar: the release as written.
        tenants: maps declared tenants to this target's; `namespaces` does so with single namespaces, and goes before it. Once one
            of the two says anything, what neither names has no name on this target.
        overlays: files with policies and partitions that differ on this target, relative to the repository's top level.
        include: globs of the topics that this target has; none: all. `exclude`: of those that it does not have.
        labels: shown, and compared with nothing.
        cluster: what Pulsar calls the cluster, by which others replicate to it; "": not known.
        credentials: `token_env`, `token_file`, `cert_file`, `key_file`, `oauth2`, `ca_file` as written.
        numbers: the file that records where its version numbers are not Git's, relative to the repository's top level;
            None: `numbers/NAME.yaml` in the project's folder.
        promoted: the ref that names its position, a commit of the approved first-parent line; None: the tip.
        after: the targets that have to hold a version before it is planned here.
    """

    name: str
    registry: str
    release: Release | None = None
    pulsar: str | None = None
    tenants: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    namespaces: Mapping[NamespaceName, NamespaceName] = field(default_factory=dict)
    overlays: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    cluster: str = ""
    credentials: Mapping[str, object] = field(default_factory=dict)
    numbers: str | None = None
    promoted: str | None = None
    after: tuple[str, ...] = ()

    @property
    def names(self) -> TargetNames:
        """The names that what is declared has there."""
        return TargetNames(self.name, self.tenants, self.namespaces)

    @property
    def globs(self) -> tuple[str, ...]:
        """The patterns of its topics, as `topic_match.select` takes them."""
        return (*self.include, *(f"!{glob}" for glob in self.exclude))


ClassKind = Literal["dataclass", "pydantic"]
"""What kind of classes `generate` writes."""


@dataclass(frozen=True, slots=True)
class Generate:
    """What `schemactl generate` writes: the importable package's name, the folder it goes to, and for which Spark.

    `out` is relative to the repository's top level. `json_defaults`: a field that a JSON payload lacks is its default, not null.
    `target`: whose messages the package reads, by that one's numbers; None: by Git's. `classes`: which classes it has for records.
    """

    package: str
    out: str = "generated"
    spark: str = "4.1"
    json_defaults: bool = False
    target: str | None = None
    classes: ClassKind | None = None


NameStyle = Literal["snake_case", "camelCase", "PascalCase", "UPPER_CASE", "any"]


@dataclass(frozen=True, slots=True)
class NameStyles:
    """How the names of fields, of named types and of an enum's symbols are written."""

    fields: NameStyle = "snake_case"
    types: NameStyle = "PascalCase"
    symbols: NameStyle = "UPPER_CASE"


@dataclass(frozen=True, slots=True)
class Project:
    """The project file `schemactl.yaml`.

    Attributes:
        folder: the project's folder relative to the repository's top level, "" when it is the top level.
        path: of the project file, relative to the repository's top level.
        roots: the folders of declarations, relative to the repository's top level, as are `previous_roots` and
            `waivers` ("" is the top level itself).
        release: whose answers to predict: the nearest that is not newer than `pulsar`, the release as written.
        severities: rule id to severity ("off": not shown); `namespace_severities` goes before it.
        proto_rules: the category of buf's whose rules are checked besides the data verdict; None: no category.
        require_declared_namespaces: a topic whose namespace no file declares is an error, not a warning.
        names: how names are written, where NAME_STYLE is looked for.
    """

    folder: str = ""
    path: str = "schemactl.yaml"
    roots: tuple[str, ...] = ("namespaces",)
    previous_roots: tuple[str, ...] = ()
    approved: str | None = None
    release: Release = Release.R4_0
    pulsar: str = "4.0"
    defaults: BrokerDefaults = BrokerDefaults()
    severities: Mapping[str, Severity | Literal["off"]] = field(default_factory=dict)
    namespace_severities: Mapping[NamespaceName, Mapping[str, Severity | Literal["off"]]] = field(
        default_factory=dict
    )
    proto_rules: ProtoCategory | None = None
    require_declared_namespaces: bool = False
    names: NameStyles = NameStyles()
    waivers: str = "waivers.yaml"
    targets: Mapping[str, Target] = field(default_factory=dict)
    generate: Generate | None = None


@dataclass(frozen=True, slots=True)
class Waiver:
    """An entry of the waiver file: one finding on one change is approved all the same.

    Attributes:
        rule: the finding's, as are `topic` and `fingerprint` (see `schemactl.waivers`).
        until: the last day, in UTC, on which it approves anything.
        source: where the entry stands.
        field: the finding's, for people.
    """

    rule: str
    topic: TopicName
    fingerprint: str
    reason: str
    owner: str
    until: date
    source: Source | None = field(default=None, compare=False)
    field: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it has in common with the finding it waives: rule, topic without domain, fingerprint."""
        return self.rule, self.topic.schema_id, self.fingerprint


WaiversAt = Callable[[Commit], Sequence[Waiver]]
"""Returns the waivers in the tree of a commit."""


Severity = Literal["error", "warning", "note"]

Level = Literal["topic", "namespace", "default"]
"""Where a policy in force was set."""
