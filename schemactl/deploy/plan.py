"""A plan: its origin, its steps, and the notes, refusals and unreadable declarations of topics without steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemactl.comparison.revision_diff import VersionEffect
from schemactl.core.errors import Problem
from schemactl.core.findings import Answer, UpgradeFirst
from schemactl.core.json_values import Json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, Release, SchemaVersion
from schemactl.deploy.broker_configuration import BrokerComparison
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.steps.step import Step
from schemactl.deploy.version_lists import ListedTopic
from schemactl.deploy.version_numbers import TopicMismatches
from schemactl.registry.interface import Scope


@dataclass(frozen=True, slots=True)
class Origin:
    """The target that a plan was made for, and the history that it was made from.

    Attributes:
        target: the name of the registry in the project file, and `registry`, its URL.
        release: the Pulsar release whose answers are predicted.
        ref: the approved ref, or the name of the target's position; `tip` is its commit, None in a repository without commits.
        later: the number of later approved commits, which are not planned.
        proposed: whether the plan is for a merge that is not approved yet; `tip` is then the commit of the merge.
        cluster: Pulsar's name of the target's cluster, or "" if it is unknown.
        properties: the properties that uploads to the target get.
        version: the release that the registry reports, or "".
        checkers: the optional checkers of its brokers, and after a `!` the default checkers that they do not have.
        declared: Git's names of the target's renamed namespaces.
        require_declared_namespaces: whether a topic whose namespace no file declares is rejected.
        declared_tenants: the tenants, by the target's names, of namespaces that are or were declared or that the target names; None
            means any tenant.
    """

    target: str
    registry: str
    release: Release
    ref: str
    tip: Commit | None
    version: str = ""
    checkers: tuple[str, ...] = field(default=(), compare=False)
    declared: Mapping[NamespaceName, NamespaceName] = field(default_factory=dict, compare=False)
    require_declared_namespaces: bool = field(default=False, compare=False)
    declared_tenants: frozenset[str] | None = field(default=None, compare=False)
    later: int = field(default=0, compare=False)
    proposed: bool = False
    cluster: str = field(default="", compare=False)
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)

    def declared_topic(self, name: TopicName) -> TopicName:
        """Return Git's name of the topic that is `name` on the target."""
        namespace = self.declared.get(name.namespace_name, name.namespace_name)
        return replace(name, tenant=namespace.tenant, namespace=namespace.name)


class PlanNoteKind(StrEnum):
    """The kinds of difference between Git and the registry that applying the plan leaves."""

    NOT_STORED = "not stored"
    OLD_VERSION = "old version"
    INDISTINGUISHABLE = "indistinguishable"
    UNKNOWN_VERSION = "unknown version"
    NUMBERS_DIFFER = "numbers differ"
    OTHER_FORM = "other form"
    DRAFT = "draft"
    DELETION_SKIPPED = "deletion skipped"
    SCALABLE_TOPIC = "scalable topic"


@dataclass(frozen=True, slots=True)
class PlanNote:
    """A note on a topic for readers of the plan, without a step."""

    name: TopicName
    kind: PlanNoteKind
    message: str


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """The reason why the plan leaves out a topic, or the policies of a namespace.

    Attributes:
        message: the consequence and its reason, in full sentences.
        fix: the fixes, one in each line.
        number: Git's number of the version that would be rejected, or None if the reason is not one version.
        answer: the registry's expected answer, or None if nothing would be uploaded.
        blocked_by: the registry's version after which its brokers store nothing, or None.
        waits_for: the target that must have the topic's versions first, or "".
        allow: the address of the setting that could lose messages, which the user can allow, or "". A plan with such a refusal
            is not applied at all.
    """

    name: NamespaceName | TopicName
    message: str
    fix: str
    number: int | None = None
    answer: Answer | None = None
    blocked_by: int | None = None
    waits_for: str = ""
    allow: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableDeclaration:
    """A file of the approved line that cannot be read: its last readable state counts, and nothing of it is planned.

    Attributes:
        topic: the topic that the problem is about, by the target's name, or None if it is a whole file.
        commit: the commit that broke it.
        problem: the place and the reason.
    """

    topic: TopicName | None
    commit: Commit
    problem: Problem

    @property
    def message(self) -> str:
        """The problem as a sentence, without a period."""
        return f"{self.problem.source}: {self.problem.message}; since commit {self.commit.short}, no change of it has been approved"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that bring a registry to the approved state.

    Attributes:
        scope: the namespaces and topics that it touches, with the topics that are left out, by the target's names.
        state: their state in the registry when the plan was made (`registry_state.state_values`).
        steps: the steps in order; steps of different topics are independent.
        notes: the differences that remain afterwards, by topic.
        refusals: the topics and policies that are left out, with the reasons; they have no steps.
        lists: the version lists that a rebuild restores, or None for other plans.
        number_mismatches: the topics with numbers that will not be Git's after all steps.
        has_unrecorded_mismatch_now: whether a topic has such a number already that is not recorded.
        whole: whether it was made for all topics, so that topics without a step are complete.
        unreadable: the approved declarations that cannot be read, which the plan leaves out.
        upgrade_first: the clients to upgrade first, for each topic (or `TOPIC#KIND`) with a version to register; empty if unknown.
        brokers: the configuration of the brokers next to the project file, or None if it was not compared.
        effects: the effect of each version to register, by topic and number; empty for a plan of many topics.
    """

    origin: Origin
    scope: Scope
    state: Json
    steps: tuple[Step, ...]
    notes: tuple[PlanNote, ...]
    refusals: tuple[PlanRefusal, ...]
    lists: tuple[ListedTopic, ...] | None = None
    number_mismatches: tuple[TopicMismatches, ...] = ()
    has_unrecorded_mismatch_now: bool = False
    whole: bool = True
    unreadable: tuple[UnreadableDeclaration, ...] = ()
    upgrade_first: Mapping[str, UpgradeFirst] = field(default_factory=dict, compare=False)
    brokers: BrokerComparison | None = None
    effects: Mapping[tuple[TopicName, int], VersionEffect] = field(default_factory=dict, compare=False)

    @property
    def new_versions(self) -> list[tuple[TopicName, SchemaVersion]]:
        """The versions to register, each with its topic."""
        return [new_version for step in self.steps if (new_version := step.new_version)]

    @property
    def relaxed_topics(self) -> set[TopicName]:
        """The topics that a killed `apply` left relaxed, and that the plan restores."""
        return {step.name for step in self.steps if step.is_repair and isinstance(step.name, TopicName)}

    @property
    def needs(self) -> Permissions:
        """The permissions that the steps need."""
        return Permissions.join(step.needs for step in self.steps)

    @property
    def leaves_out(self) -> bool:
        """Whether something that is approved, or was to be, is not in the plan."""
        return bool(self.refusals or self.unreadable)

    @property
    def may_lose(self) -> tuple[PlanRefusal, ...]:
        """The refused settings that could lose messages. A plan with such settings is not applied."""
        return tuple(refusal for refusal in self.refusals if refusal.allow)

    @property
    def misread(self) -> tuple[TopicMismatches, ...]:
        """The topics with numbers that will differ from the record, so that messages would be misread."""
        return tuple(topic for topic in self.number_mismatches if not topic.recorded)
