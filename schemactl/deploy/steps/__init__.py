"""`Plan` and the table of its steps, their order, and the steps that run in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import get_args

from schemactl.comparison.revision_diff import VersionEffect
from schemactl.core.errors import Problem
from schemactl.core.findings import Answer, UpgradeFirst
from schemactl.core.json_values import Json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, Release
from schemactl.deploy.broker_configuration import BrokerComparison
from schemactl.deploy.steps.create_namespace import CreateNamespace
from schemactl.deploy.steps.create_tenant import CreateTenant
from schemactl.deploy.steps.create_topic import CreateTopic
from schemactl.deploy.steps.delete_schema import DeleteSchema
from schemactl.deploy.steps.grow_partitions import GrowPartitions
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.deploy.steps.relax_strategy import RelaxStrategy
from schemactl.deploy.steps.restore_strategy import RestoreStrategy
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.deploy.steps.step import Phase
from schemactl.deploy.steps.take_number import TakeNumber
from schemactl.deploy.version_numbers import TopicMismatches
from schemactl.registry.interface import Scope

__all__ = [
    "CreateNamespace",
    "CreateTenant",
    "CreateTopic",
    "DeleteSchema",
    "GrowPartitions",
    "Lane",
    "NumberedStep",
    "Origin",
    "Permissions",
    "Plan",
    "PlanNote",
    "PlanNoteKind",
    "PlanRefusal",
    "PlanStep",
    "RegisterVersion",
    "RelaxStrategy",
    "RestoreStrategy",
    "SetPolicies",
    "TakeNumber",
    "UnreadableDeclaration",
    "phases",
]


PlanStep = (
    CreateTenant
    | CreateNamespace
    | SetPolicies
    | CreateTopic
    | GrowPartitions
    | RegisterVersion
    | RelaxStrategy
    | RestoreStrategy
    | DeleteSchema
    | TakeNumber
)
"""The kinds of steps: one row and one file of this package for each."""


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
class Permissions:
    """The actions that the user allows beyond adding and setting.

    Attributes:
        delete: the topics whose schema may be deleted with a tombstone, if Git no longer declares it.
        force_delete: the topics whose schema may be deleted without a trace, if Git no longer declares it.
        relax: whether approved versions that today's strategy rejects may be registered under ALWAYS_COMPATIBLE.
        create_tenants: whether tenants that are not declared may be created.
        lose: the addresses of settings that may be set although messages can be lost.
        unreadable: the topics whose retained messages may become unreadable.
    """

    delete: frozenset[TopicName] = frozenset()
    force_delete: frozenset[TopicName] = frozenset()
    relax: bool = False
    create_tenants: bool = False
    lose: frozenset[str] = frozenset()
    unreadable: frozenset[TopicName] = frozenset()


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


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that bring a registry to the approved state.

    Attributes:
        scope: the namespaces and topics that it touches, with the topics that are left out, by the target's names.
        state: their state in the registry when the plan was made (`registry_state.state_values`).
        steps: the steps in order; steps of different topics are independent.
        notes: the differences that remain afterwards, by topic.
        refusals: the topics and policies that are left out, with the reasons; they have no steps.
        lists: the lists that a rebuild restores, as `version_lists.topic_value` writes them, or None for other plans.
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
    steps: tuple[PlanStep, ...]
    notes: tuple[PlanNote, ...]
    refusals: tuple[PlanRefusal, ...]
    lists: tuple[Json, ...] | None = None
    number_mismatches: tuple[TopicMismatches, ...] = ()
    has_unrecorded_mismatch_now: bool = False
    whole: bool = True
    unreadable: tuple[UnreadableDeclaration, ...] = ()
    upgrade_first: Mapping[str, UpgradeFirst] = field(default_factory=dict, compare=False)
    brokers: BrokerComparison | None = None
    effects: Mapping[tuple[TopicName, int], VersionEffect] = field(default_factory=dict, compare=False)

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


# The order of steps, and which of them may run in parallel


NumberedStep = tuple[int, PlanStep]
"""A step with its number in the plan, from 1."""

Lane = list[list[NumberedStep]]
"""Groups of steps that run one after the other; each group is of one namespace or one list of schemas."""


def phases(steps: tuple[PlanStep, ...]) -> Iterator[list[Lane]]:
    """Yield the phases in order (`step.Phase`), each with lanes that can run in parallel: for each namespace and list of schemas."""
    numbered = list(enumerate(steps, 1))
    last = {step.name.schema_id: number for number, step in numbered if isinstance(step.name, TopicName)}
    steps_by_phase: dict[Phase, list[NumberedStep]] = {phase: [] for phase in get_args(Phase)}
    for number, step in numbered:
        phase = step.phase
        if phase == "deletions" and isinstance(step.name, TopicName) and last[step.name.schema_id] != number:
            phase = "topics"
        steps_by_phase[phase].append((number, step))
    for phase_steps in steps_by_phase.values():
        groups: dict[NamespaceName | str, list[NumberedStep]] = {}
        for numbered_step in phase_steps:
            name = numbered_step[1].name
            groups.setdefault(name.schema_id if isinstance(name, TopicName) else name, []).append(numbered_step)
        # All lists with relaxed topics in one namespace share a lane, because restoring one of these topics turns the namespace's
        # automatic updates on again.
        lanes: dict[NamespaceName | str, Lane] = {}
        for key, group in groups.items():
            name = group[0][1].name
            relaxes = any(isinstance(step, RelaxStrategy | RestoreStrategy) for _, step in group)
            shared = name.namespace_name if isinstance(name, TopicName) and relaxes else key
            lanes.setdefault(shared, []).append(group)
        yield list(lanes.values())
