"""Define the settings in `schemactl.yaml`: the project, its targets and the generated package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from schemactl.core.names import NamespaceName, TargetNames
from schemactl.core.policies import BrokerDefaults
from schemactl.core.schema import EMPTY, Release

if TYPE_CHECKING:
    from schemactl.core.findings import Severity


ProtoCategory = Literal["WIRE", "WIRE_JSON"]
"""The categories of buf's rules on messages; other categories concern generated code."""

ProtoRendering = Literal["java", "go", "python"]
"""The languages of Pulsar's clients, each of which sends a PROTOBUF_NATIVE definition in its own form."""

OPTIONAL_CHECKERS: Mapping[str, Release] = {
    "ProtobufNativeSchemaAdvancedCompatibilityCheck": Release.R5_0,
    "ProtobufSchemaCompatibilityCheck": Release.R4_0,
}
"""Pulsar's checkers that must be listed in `schemaRegistryCompatibilityCheckers`, with their first release."""

DEFAULT_CHECKERS: Mapping[str, Release] = {
    "AvroSchemaCompatibilityCheck": Release.R4_0,
    "JsonSchemaCompatibilityCheck": Release.R4_0,
    "ProtobufNativeSchemaCompatibilityCheck": Release.R4_0,
    "ExternalSchemaCompatibilityCheck": Release.R4_2,
}
"""The checkers that a broker without `schemaRegistryCompatibilityCheckers` has, with their first release."""

CHECKERS_KEY: Final = "schemaRegistryCompatibilityCheckers"
"""The key in the brokers' configuration for the class names of their checkers."""

CHECKER_PACKAGE: Final = "org.apache.pulsar.broker.service.schema."
"""The Java package of Pulsar's checkers."""

EXCLUDED: Final = "!"
"""The start of the name of a checker in `BrokerDefaults.checkers` that is not listed in the brokers' configuration."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target in the project file: a registry and the topics that it gets.

    Attributes:
        registry: the URL as written: `sqlite:PATH` (relative to the project's folder) or `http(s)://HOST:PORT`.
        release: the release of Pulsar, or None for the release of the project.
        pulsar: the release as written.
        tenants: the tenants on this target, by declared tenant.
        namespaces: the namespaces on this target, by declared namespace; they take precedence over `tenants`. If either is
            set, a namespace in neither does not exist on this target.
        overlays: files with policies and partitions that differ on this target, relative to the repository's top level.
        include: globs of the topics of this target; () for all.
        exclude: globs of the topics that it does not have.
        labels: texts that are shown only.
        properties: the SchemaInfo properties that each upload to this target gets.
        cluster: the name of the cluster in Pulsar, by which other clusters replicate to it, or "" if unknown.
        credentials: `token_env`, `token_file`, `cert_file`, `key_file`, `oauth2`, `ca_file` as written.
        numbers: the file with the version numbers that differ from Git's, relative to the repository's top level, or None
            for `numbers/NAME.yaml` in the project's folder.
        promoted: the ref of its position, a commit of the approved first-parent history, or None for the tip.
        after: the targets that must have a version before it is planned here.
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
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    cluster: str = ""
    credentials: Mapping[str, object] = field(default_factory=dict)
    numbers: str | None = None
    promoted: str | None = None
    after: tuple[str, ...] = ()

    @property
    def names(self) -> TargetNames:
        """The names of declared tenants and namespaces on this target."""
        return TargetNames(self.name, self.tenants, self.namespaces)

    @property
    def globs(self) -> tuple[str, ...]:
        """The patterns of its topics, as `names.select` takes them."""
        return (*self.include, *(f"!{glob}" for glob in self.exclude))


ClassKind = Literal["dataclass", "pydantic"]
"""The kind of classes that `generate` writes."""

JsonTimes = Literal["number", "java"]
"""The form in which times are written into JSON (see `schemactl.codec.json_forms`)."""

ByteOrder = Literal["big", "little"]
"""The byte order of INT16, INT32 and INT64."""

Nanoseconds = Literal["truncated", "bigint"]
"""The column of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME: Spark's type, which has microseconds, or the number of nanoseconds."""


@dataclass(frozen=True, slots=True)
class Generate:
    """The generated package.

    Attributes:
        package: the importable name of the package.
        out: its folder, relative to the repository's top level.
        spark: the version of Spark.
        json_defaults: whether a missing field of a JSON payload gets its default instead of null.
        target: the target by whose version numbers it reads messages if none is selected, or None for Git's numbers.
        classes: the kind of classes for records, or None for no classes.
        recursion_depth: how often a record may contain itself before the field is dropped; with 0, a recursive topic has no columns.
        json_times: the form in which times are written into JSON.
        nanoseconds: the columns of types with nanoseconds, or None if it is not set, which means `truncated`.
    """

    package: str
    out: str = "generated"
    spark: str = "4.1"
    json_defaults: bool = False
    target: str | None = None
    classes: ClassKind | None = None
    recursion_depth: int = 0
    json_times: JsonTimes = "number"
    nanoseconds: Nanoseconds | None = None

    def with_recursion_depth(self, depth: int | None) -> Generate:
        """Return the settings of a topic with its own recursion depth, or None for the depth of the project."""
        return self if depth is None else replace(self, recursion_depth=depth)


NameStyle = Literal["snake_case", "camelCase", "PascalCase", "UPPER_CASE", "any"]


@dataclass(frozen=True, slots=True)
class NameStyles:
    """The naming styles of fields, named types and enum symbols."""

    fields: NameStyle = "snake_case"
    types: NameStyle = "PascalCase"
    symbols: NameStyle = "UPPER_CASE"


@dataclass(frozen=True, slots=True)
class Project:
    """The project file `schemactl.yaml`.

    Attributes:
        folder: the project's folder, relative to the repository's top level; "" for the top level.
        path: the path of the project file, relative to the repository's top level.
        roots: the folders of declarations, relative to the repository's top level, as are `previous_roots` and `waivers`; ""
            is the top level.
        release: the supported release whose answers are predicted.
        pulsar: the release as written.
        severities: the severity of rules by id; "off" hides a rule.
        namespace_severities: the severities in a namespace, which take precedence.
        proto_rules: the category of buf's rules that are checked in addition to the data verdict, or None.
        rendering: the client language in whose form `.proto` definitions are registered, or None for the producers' language.
        require_declared_namespaces: whether a topic in an undeclared namespace is an error instead of a warning.
        names: the naming styles for the rule NAME_STYLE.
        adopted: the id of the commit at which the versions of the approved history begin, or None for its first commit.
        include: the folders, relative to the repository's top level, that import prefixes of `.proto` files mean.
        repository_url: the address of the repository's web pages, or "" for the address of the remote `origin`.
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
    namespace_severities: Mapping[NamespaceName, Mapping[str, Severity | Literal["off"]]] = field(default_factory=dict)
    proto_rules: ProtoCategory | None = None
    rendering: ProtoRendering | None = None
    require_declared_namespaces: bool = False
    names: NameStyles = NameStyles()
    adopted: str | None = None
    include: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    waivers: str = "waivers.yaml"
    targets: Mapping[str, Target] = field(default_factory=dict)
    generate: Generate | None = None
    repository_url: str = ""
