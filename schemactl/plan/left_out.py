"""What a plan leaves out: rejected topics, and the policies of namespaces that would become less strict for these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from schemactl.broker.checkers import protects
from schemactl.model import Catalog, Namespace, NamespaceName, Policies, Topic, TopicName, strategy_of
from schemactl.plan.selection import scope_of
from schemactl.plan.steps import CreateNamespace, CreateTenant, PlanRefusal, RestoreStrategy
from schemactl.registry.base import Scope

if TYPE_CHECKING:
    from schemactl.plan.planner import Planner
    from schemactl.plan.registry_state import RegistryState

SomePlanner = TypeVar("SomePlanner", bound="Planner")


def settled(target: Catalog, computed: Callable[[Catalog], SomePlanner]) -> SomePlanner:
    """Return the planner of `target` in which no namespace becomes less strict for a topic that is left out.

    Such a namespace keeps its policies, and what needs the new ones is left out, too: the half of a change that lets more in is
    never applied without the other half.

    Args:
        target: the approved history.
        computed: returns a planner for a catalog, with its steps computed.
    """
    planner = computed(target)
    alone = {refusal.name for refusal in planner.refusals}
    kept: dict[NamespaceName, list[TopicName]] = {}
    while relaxed := _relaxed(planner):
        kept |= relaxed
        namespaces = {
            name: replace(space, policies=Policies()) if name in kept else space
            for name, space in target.namespaces.items()
        }
        former = {name: policies for name, policies in target.former.items() if name not in kept}
        planner = computed(replace(target, namespaces=namespaces, former=former))
    _explain(planner, kept, alone)
    return planner


def leave_out(planner: Planner) -> None:
    """Remove the steps of topics that are left out, except those that restore what a killed `apply` left relaxed."""
    left = _left_out(planner)
    known = {refusal.name for refusal in planner.refusals}
    for name in sorted(left - known):
        message = f"shares its schemas with {name.twin}, which is left out"
        planner.refusals.append(PlanRefusal(name, message, _without(planner, [name.twin])))
    for name in left:
        planner.topics.pop(name, None)
        planner.versions.pop(name.schema_id, None)
    there = {name: topic for name, topic in planner.base.catalog.topics.items() if name in left}
    planner.topics |= there
    planner.versions |= {name.schema_id: topic.versions for name, topic in there.items()}
    planner.steps = [
        step
        for step in planner.steps
        if step.name not in left or (isinstance(step, RestoreStrategy) and step.latest is None)
    ]
    # A namespace, or tenant, that only topics that are left out would need may be a typing error in their names.
    creations = (CreateTenant, CreateNamespace)
    needed = {step.name for step in planner.steps if not isinstance(step, creations)}
    needed |= {step.name.namespace_name for step in planner.steps if isinstance(step.name, TopicName)}
    needless = {name.namespace_name for name in left} - needed
    created: dict[str, NamespaceName] = {}
    for step in planner.steps:
        if isinstance(step, CreateNamespace) and step.name not in needless:
            created.setdefault(step.name.tenant, step.name)
    planner.steps = [
        CreateTenant(created[step.name.tenant]) if isinstance(step, CreateTenant) else step
        for step in planner.steps
        if not (isinstance(step, CreateNamespace) and step.name in needless)
        and not (isinstance(step, CreateTenant) and step.name.tenant not in created)
    ]


def touched(planner: Planner) -> Scope:
    """Return the namespaces and topics of the steps and refusals, with the topics that share their lists of schemas."""
    refused = (*planner.refusals, *planner.losses)
    touched = {step.name for step in planner.steps} | {refusal.name for refusal in refused}
    lists = {name.schema_id for name in touched if isinstance(name, TopicName)}
    known = planner.target.topics.keys() | planner.read.catalog.topics.keys()
    topics = {name for name in known if name.schema_id in lists}
    spaces = {name for name in touched if isinstance(name, NamespaceName)}
    spaces |= {name.namespace_name for name in touched if isinstance(name, TopicName)}
    asked = scope_of(planner.target).settings
    settings = {name: asked[name] for name in asked.keys() & (spaces | topics)}
    return Scope(frozenset(spaces), frozenset(topics), settings)


def _relaxed(planner: Planner) -> dict[NamespaceName, list[TopicName]]:
    """Return the namespaces that become less strict for topics that are left out, each with these topics."""
    found: dict[NamespaceName, list[TopicName]] = {}
    for name in sorted(_left_out(planner)):
        space = name.namespace_name
        before, after = planner.base.catalog.namespaces.get(space), planner.namespaces.get(space)
        topic = planner.base.catalog.topics.get(name)
        if before and after and _is_relaxed(planner.base, topic, before, after):
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
    planner: Planner, kept: Mapping[NamespaceName, list[TopicName]], alone: Collection[object]
) -> None:
    """Add refusals for the namespaces `kept`, and name them as the reason in refusals that are not in `alone`."""
    whose = {space: ", ".join(map(str, names)) for space, names in kept.items()}
    for at, refusal in enumerate(planner.refusals):
        if isinstance(refusal.name, TopicName) and refusal.name not in alone:
            space = refusal.name.namespace_name
            message = f"needs the new policies of {space}, which are left out. {refusal.message}"
            planner.refusals[at] = replace(refusal, message=message, fix=_without(planner, kept[space]))
    for space, names in kept.items():
        message = f"keeps its policies: the new ones would let more in to {whose[space]}, which is left out"
        planner.refusals.append(PlanRefusal(space, message, _without(planner, names)))


def _left_out(planner: Planner) -> set[TopicName]:
    """Return the topics with refusals, and the topics that share their lists of schemas."""
    rejected = {refusal.name.schema_id for refusal in planner.refusals if isinstance(refusal.name, TopicName)}
    return {name for name in planner.target.topics if name.schema_id in rejected}


def _without(planner: Planner, names: Iterable[TopicName]) -> str:
    """Return the advice to apply the rest without these topics."""
    skipped = " ".join(f"--skip {planner.commands.topic(name)}" for name in names)
    return (
        f"repair that first\n`schemactl apply {planner.commands.on} {skipped}`: all the rest is applied, policies included, and "
        "that stays as it is"
    )
