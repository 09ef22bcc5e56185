"""Findings about the namespaces that topics are in."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

from schemactl.checking.run import Run
from schemactl.errors import did_you_mean
from schemactl.messages import counted
from schemactl.model import NamespaceName, Topic, TopicName
from schemactl.verdicts import Finding


def undeclared(run: Run, names: Collection[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each namespace that no file declares, on one of its topics.

    Args:
        run: whose project says whether namespaces must be declared. If they need not be, only those are found in
            which no topic was ever approved: the ones that the change brings.
        names: look at these topics alone.
    """
    known = {*run.target.namespaces}
    if not run.project.require_declared_namespaces:
        known |= {name.namespace_name for name in run.approved.topics}
    lost: dict[NamespaceName, list[Topic]] = {}
    for name, topic in sorted(run.target.topics.items()):
        if name in names and topic.source and name.namespace_name not in known:
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


def _meant(space: NamespaceName, known: Collection[NamespaceName]) -> str:
    """Return `; did you mean X?`: a namespace of the same tenant, else of a tenant with nearly the same name."""
    beside = {each.name: str(each) for each in known if each.tenant == space.tenant}
    if beside:
        return did_you_mean(space.name, beside, shown=beside)
    tenants = {each.tenant: f"the tenant {each.tenant}" for each in known}
    tenants |= {each.tenant: str(each) for each in known if each.name == space.name}
    return did_you_mean(space.tenant, tenants, shown=tenants)
