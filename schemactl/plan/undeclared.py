"""Refusals of what nobody declared: `apply` would create the namespace, and the tenant, of a typo."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from schemactl.errors import did_you_mean
from schemactl.model import NamespaceName, Topic, TopicName
from schemactl.plan.refusals import Commands
from schemactl.plan.steps import Origin, PlanRefusal


def in_undeclared_namespaces(
    topics: Iterable[Topic], declared: Container[NamespaceName], origin: Origin
) -> Iterator[PlanRefusal]:
    """Yield a refusal for each topic whose namespace no file declares, where the project requires that."""
    for topic in topics:
        space = topic.name.namespace_name
        if origin.require_declared_namespaces and not topic.deleted and space not in declared:
            yield _refusal(
                topic.name,
                f"no file declares the namespace {space}, and the project file has `require_declared_namespaces: true`",
                f"correct the topic's name, or approve a declaration: {_declaration(space, origin)}",
            )


def in_undeclared_tenant(
    space: NamespaceName, topics: Iterable[Topic], commands: Commands
) -> Iterator[PlanRefusal]:
    """Yield a refusal for each of `topics` in the tenant of a namespace that does not exist, if nobody declared that tenant.

    Where namespaces have to be declared, the missing declaration is rejected instead.
    """
    origin = commands.origin
    declared = origin.declared_tenants
    if declared is None or space.tenant in declared or origin.require_declared_namespaces:
        return
    for topic in topics:
        if topic.name.tenant == space.tenant and not topic.deleted:
            own = topic.name.namespace_name
            yield _refusal(
                topic.name,
                f"the tenant {space.tenant} does not exist, and no file declares a namespace of it"
                f"{did_you_mean(space.tenant, declared)}",
                f"correct the topic's name\napprove a declaration: {_declaration(own, origin)}\n"
                f"{commands.apply(own, '--create-tenants')}: it creates the tenant",
            )


def _refusal(name: TopicName, message: str, fix: str) -> PlanRefusal:
    return PlanRefusal(name, None, None, message, fix)


def _declaration(space: NamespaceName, origin: Origin) -> str:
    return f"`namespace: {origin.declared.get(space, space)}`"
