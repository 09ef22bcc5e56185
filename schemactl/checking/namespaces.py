"""Findings about the namespaces that topics are in."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator

from schemactl.checking.run import Run
from schemactl.core.catalog import Namespace, Topic
from schemactl.core.errors import did_you_mean
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.wording import counted


def undeclared(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each namespace that no file declares, on one of its topics.

    Args:
        run: whose project says whether namespaces must be declared. If they need not be, only those are found in
            which no topic was ever approved: the ones that the change brings.
        names: look at these topics alone, in this order.
    """
    known = {*run.target.namespaces}
    if not run.project.require_declared_namespaces:
        known |= {name.namespace_name for name in run.approved.topics}
    lost: dict[NamespaceName, list[Topic]] = {}
    for name in names:
        topic = run.target.topics.get(name)
        if topic and topic.source and name.namespace_name not in known:
            lost.setdefault(name.namespace_name, []).append(topic)
    for space, topics in lost.items():
        first = next((topic for topic in topics if not run.is_draft(topic)), topics[0])
        concerned = f"{first.name} is" if len(topics) == 1 else f"{counted(len(topics), 'topic')} are"
        beside = posixpath.dirname(first.source.path) if first.source else ""
        yield from run.find(
            "NAMESPACE_UNDECLARED",
            first,
            f"{concerned} in the namespace {space}, which no file declares{_meant(space, known)}",
            fix=f"Correct the name; or declare the namespace: `namespace: {space}`, for example in "
            f"{posixpath.join(beside, f'{space.name}-namespace.yaml')}",
            severity="error" if run.project.require_declared_namespaces else None,
        )


def open_to_producers(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield the namespaces that the change brings and where any producer with a schema of its own takes the next number.

    Where a change opens one that was there, that is PROTECTION_LOST.
    """
    seen = {*run.approved.namespaces, *(name.namespace_name for name in run.approved.topics)}
    for name in names:
        topic, space = run.target.topics.get(name), run.target.namespaces.get(name.namespace_name)
        if space is None or space.name in seen:
            continue
        if topic is None or topic.schema is None or run.is_draft(topic):
            continue
        seen.add(space.name)
        if _effective(run, space, "is_allow_auto_update_schema") and not _effective(
            run, space, "schema_validation_enforced"
        ):
            yield from run.find(
                "NAMESPACE_OPEN",
                topic,
                f"Any producer that connects to a topic of {space.name} with a schema of its own registers it, and takes the next version "
                "number, which Git then does not know.",
                fix=f"Set `is_allow_auto_update_schema: false` for {space.name}: `apply` registers versions all the same. "
                "`schema_validation_enforced: true` keeps out clients without a schema, too",
                source=space.locate("/is_allow_auto_update_schema"),
            )


def _effective(run: Run, space: Namespace, policy: str) -> bool:
    """Return the policy of a namespace, or the brokers' default where it does not say."""
    declared = getattr(space.policies, policy)
    return bool(getattr(run.project.defaults, policy) if declared is None else declared)


def _meant(space: NamespaceName, known: Collection[NamespaceName]) -> str:
    """Return `; did you mean X?`: a namespace of the same tenant, else of a tenant with nearly the same name."""
    beside = {each.name: str(each) for each in known if each.tenant == space.tenant}
    if beside:
        return did_you_mean(space.name, beside, shown=beside)
    tenants = {each.tenant: f"the tenant {each.tenant}" for each in known}
    tenants |= {each.tenant: str(each) for each in known if each.name == space.name}
    return did_you_mean(space.tenant, tenants, shown=tenants)
