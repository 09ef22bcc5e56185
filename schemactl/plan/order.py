"""The order of a plan's steps: which must follow each other, and which may run in parallel."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.core.names import NamespaceName, TopicName
from schemactl.plan.steps import CreateTenant, DeleteSchema, PlanStep, RelaxStrategy, RestoreStrategy

NumberedStep = tuple[int, PlanStep]
"""A step with its number in the plan, from 1."""

Lane = list[list[NumberedStep]]
"""Groups of steps that run one after the other; each group is of one namespace or one list of schemas."""


def phases(steps: tuple[PlanStep, ...]) -> Iterator[list[Lane]]:
    """Yield lanes that can run in parallel: restoring what a killed `apply` left, tenants, namespaces, topics, deletions."""
    numbered = list(enumerate(steps, 1))
    last = {step.name.schema_id: number for number, step in numbered if isinstance(step.name, TopicName)}
    found: list[list[NumberedStep]] = [[], [], [], [], []]
    for number, step in numbered:
        if isinstance(step, RestoreStrategy) and step.latest is None:
            phase = 0
        elif isinstance(step, CreateTenant):
            phase = 1
        elif not isinstance(step.name, TopicName):
            phase = 2
        else:
            is_last = last[step.name.schema_id] == number
            phase = 4 if isinstance(step, DeleteSchema) and is_last else 3
        found[phase].append((number, step))
    yield from map(_lanes, found)


def _lanes(steps: list[NumberedStep]) -> list[Lane]:
    """Return the lanes of these steps.

    A lane is of a namespace, of a list of schemas, or of all lists of a namespace whose topics are relaxed: restoring one of
    these turns the namespace's automatic updates on again.
    """
    groups: dict[NamespaceName | str, list[NumberedStep]] = {}
    for each in steps:
        name = each[1].name
        groups.setdefault(name.schema_id if isinstance(name, TopicName) else name, []).append(each)
    lanes: dict[NamespaceName | str, Lane] = {}
    for key, group in groups.items():
        name = group[0][1].name
        relaxes = any(isinstance(step, RelaxStrategy | RestoreStrategy) for _, step in group)
        shared = name.namespace_name if isinstance(name, TopicName) and relaxes else key
        lanes.setdefault(shared, []).append(group)
    return list(lanes.values())


def blocked_by(step: PlanStep) -> set[NamespaceName | str]:
    """Return the tenants, namespaces and lists of schemas after whose failure the step is not tried."""
    name = step.name
    if isinstance(name, TopicName):
        return {name.tenant, name.namespace_name, name.schema_id}
    return {name.tenant, name}


def blocks(step: PlanStep) -> set[NamespaceName | str]:
    """Return the tenant, namespace or list of schemas of which nothing more is tried after the step has failed."""
    name = step.name
    if isinstance(step, CreateTenant):
        return {name.tenant}
    if not isinstance(name, TopicName):
        return {name}
    # Policies of its namespace are not safe to change as long as a topic that a killed `apply` left accepts everything.
    is_left = isinstance(step, RestoreStrategy) and step.latest is None
    return {name.schema_id, name.namespace_name} if is_left else {name.schema_id}
