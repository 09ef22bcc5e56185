"""What a plan leaves out: rejected topics, and the policies of namespaces that would become less strict for these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies, protects, strategy_of
from schemactl.plan.planned_state import PlannedState
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.selection import scope_of
from schemactl.plan.steps import CreateNamespace, CreateTenant, PlanRefusal, RestoreStrategy
from schemactl.registry.interface import Scope

Planned = TypeVar("Planned", bound=PlannedState)


def settled(target: Catalog, computed: Callable[[Catalog], Planned]) -> Planned:
    """Return the planned state for `target` in which no namespace becomes less strict for a topic that is left out.

    Such a namespace keeps its policies, and what needs the new ones is left out, too: the half of a change that lets more in is
    never applied without the other half.

    Args:
        target: the approved history.
        computed: returns it for a catalog, with its steps computed.
    """
    planned = computed(target)
    alone = {refusal.name for refusal in planned.refusals}
    kept: dict[NamespaceName, list[TopicName]] = {}
    while relaxed := _relaxed(planned):
        kept |= relaxed
        namespaces = {
            name: replace(space, policies=Policies()) if name in kept else space
            for name, space in target.namespaces.items()
        }
        former = {name: policies for name, policies in target.former.items() if name not in kept}
        planned = computed(replace(target, namespaces=namespaces, former=former))
    _explain(planned, kept, alone)
    return planned


def leave_out(planned: PlannedState) -> None:
    """Remove the steps of topics that are left out, except those that restore what a killed `apply` left relaxed."""
    left = _left_out(planned)
    known = {refusal.name for refusal in planned.refusals}
    for name in sorted(left - known):
        message = f"shares its schemas with {name.twin}, which is left out"
        planned.refusals.append(PlanRefusal(name, message, _without(planned, [name.twin])))
    for name in left:
        planned.topics.pop(name, None)
        planned.versions.pop(name.schema_id, None)
    there = {name: topic for name, topic in planned.base.catalog.topics.items() if name in left}
    planned.topics |= there
    planned.versions |= {name.schema_id: topic.versions for name, topic in there.items()}
    planned.steps = [
        step
        for step in planned.steps
        if step.name not in left or (isinstance(step, RestoreStrategy) and step.latest is None)
    ]
    # A namespace, or tenant, that only topics that are left out would need may be a typing error in their names.
    creations = (CreateTenant, CreateNamespace)
    needed = {step.name for step in planned.steps if not isinstance(step, creations)}
    needed |= {step.name.namespace_name for step in planned.steps if isinstance(step.name, TopicName)}
    needless = {name.namespace_name for name in left} - needed
    created: dict[str, NamespaceName] = {}
    for step in planned.steps:
        if isinstance(step, CreateNamespace) and step.name not in needless:
            created.setdefault(step.name.tenant, step.name)
    planned.steps = [
        CreateTenant(created[step.name.tenant]) if isinstance(step, CreateTenant) else step
        for step in planned.steps
        if not (isinstance(step, CreateNamespace) and step.name in needless)
        and not (isinstance(step, CreateTenant) and step.name.tenant not in created)
    ]


def touched(planned: PlannedState) -> Scope:
    """Return the namespaces and topics of the steps and refusals, with the topics that share their lists of schemas."""
    refused = (*planned.refusals, *planned.losses)
    touched = {step.name for step in planned.steps} | {refusal.name for refusal in refused}
    lists = {name.schema_id for name in touched if isinstance(name, TopicName)}
    known = planned.target.topics.keys() | planned.read.catalog.topics.keys()
    topics = {name for name in known if name.schema_id in lists}
    spaces = {name for name in touched if isinstance(name, NamespaceName)}
    spaces |= {name.namespace_name for name in touched if isinstance(name, TopicName)}
    asked = scope_of(planned.target).settings
    settings = {name: asked[name] for name in asked.keys() & (spaces | topics)}
    return Scope(frozenset(spaces), frozenset(topics), settings)


def _relaxed(planned: PlannedState) -> dict[NamespaceName, list[TopicName]]:
    """Return the namespaces that become less strict for topics that are left out, each with these topics."""
    found: dict[NamespaceName, list[TopicName]] = {}
    for name in sorted(_left_out(planned)):
        space = name.namespace_name
        before, after = planned.base.catalog.namespaces.get(space), planned.namespaces.get(space)
        topic = planned.base.catalog.topics.get(name)
        if before and after and _is_relaxed(planned.base, topic, before, after):
            found.setdefault(space, []).append(name)
    return found


def _is_relaxed(base: RegistryState, topic: Topic | None, before: Namespace, after: Namespace) -> bool:
    own = topic.policies if topic else None
    default = base.default_strategies[before.name]
    strategies = [strategy_of(own, space.policies) or default for space in (before, after)]
    updates, enforced = (
        [
            getattr(base.defaults, policy) if value is None else value
            for value in (getattr(before.policies, policy), getattr(after.policies, policy))
        ]
        for policy in ("is_allow_auto_update_schema", "schema_validation_enforced")
    )
    lets_more_in = updates == [False, True] or enforced == [True, False]
    return lets_more_in or bool(protects(strategies[0]) - protects(strategies[1]))


def _explain(
    planned: PlannedState, kept: Mapping[NamespaceName, list[TopicName]], alone: Collection[object]
) -> None:
    """Add refusals for the namespaces `kept`, and name them as the reason in refusals that are not in `alone`."""
    whose = {space: ", ".join(map(str, names)) for space, names in kept.items()}
    for at, refusal in enumerate(planned.refusals):
        if isinstance(refusal.name, TopicName) and refusal.name not in alone:
            space = refusal.name.namespace_name
            message = f"needs the new policies of {space}, which are left out. {refusal.message}"
            planned.refusals[at] = replace(refusal, message=message, fix=_without(planned, kept[space]))
    for space, names in kept.items():
        message = f"keeps its policies: the new ones would let more in to {whose[space]}, which is left out"
        planned.refusals.append(PlanRefusal(space, message, _without(planned, names)))


def _left_out(planned: PlannedState) -> set[TopicName]:
    """Return the topics with refusals, and the topics that share their lists of schemas."""
    rejected = {refusal.name.schema_id for refusal in planned.refusals if isinstance(refusal.name, TopicName)}
    return {name for name in planned.target.topics if name.schema_id in rejected}


def _without(planned: PlannedState, names: Iterable[TopicName]) -> str:
    """Return the advice to apply the rest without these topics."""
    skipped = " ".join(f"--skip {planned.commands.topic(name)}" for name in names)
    return (
        f"repair that first\n`schemactl apply {planned.commands.on} {skipped}`: all the rest is applied, policies included, and "
        "that stays as it is"
    )
