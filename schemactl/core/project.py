"""`Project`, `Target`, `Generate`: the settings in `schemactl.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from schemactl.core.names import NamespaceName, TargetNames
from schemactl.core.policies import BrokerDefaults
from schemactl.core.schema import EMPTY, Release

if TYPE_CHECKING:
    from schemactl.core.findings import Severity


ProtoCategory = Literal["WIRE", "WIRE_JSON"]
"""buf's categories of rules about messages; its others are about generated code."""

OPTIONAL_CHECKERS: Mapping[str, Release] = {
    "ProtobufNativeSchemaAdvancedCompatibilityCheck": Release.R5_0,
    "ProtobufSchemaCompatibilityCheck": Release.R4_0,
}
"""Pulsar's checkers that no broker has unless `schemaRegistryCompatibilityCheckers` lists them, with their first release."""


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
        """The patterns of its topics, as `names.select` takes them."""
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
    namespace_severities: Mapping[NamespaceName, Mapping[str, Severity | Literal["off"]]] = field(default_factory=dict)
    proto_rules: ProtoCategory | None = None
    require_declared_namespaces: bool = False
    names: NameStyles = NameStyles()
    waivers: str = "waivers.yaml"
    targets: Mapping[str, Target] = field(default_factory=dict)
    generate: Generate | None = None
