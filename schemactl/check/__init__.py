"""`check`: declared files against approved history. Pure: catalogs in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.check.report import ORDER, Change, CheckReport, TopicCheck
from schemactl.check.run import Run
from schemactl.check.topics import look_at
from schemactl.model import Catalog, Finding, Project, TopicName

__all__ = ["ORDER", "Change", "CheckReport", "TopicCheck", "check"]


def check(
    target: Catalog,
    *,
    base: Catalog,
    approved: Catalog,
    project: Project,
    label: str,
    declared: Sequence[Finding] = (),
    only: frozenset[TopicName] | None = None,
) -> CheckReport:
    """Everything the merge of `target` would do to brokers and readers.

    Args:
        target: what the files declare.
        base: the approved history where the files branched off; what equals it has not been changed here.
        approved: the approved history as it is now, with every version; new content is judged against it.
        project: strategies, severities and the release come from here.
        label: names `approved` in the report.
        declared: what was found when the files were read.
        only: look at these topics alone.
    """
    run = Run(target, base, approved, project)
    names = sorted(name for name in {*target.topics, *base.topics} if only is None or name in only)
    topics: list[TopicCheck] = []
    findings: list[Finding] = []
    for name in names:
        seen, found = look_at(run, name)
        if seen:
            topics.append(seen)
        found += [weighed for each in declared if each.topic == name for weighed in run.weigh(each)]
        findings += sorted(found, key=lambda finding: ORDER[finding.severity])
    return CheckReport(
        release=project.release,
        base=label,
        checked=sum(name in target.topics for name in names),
        topics=tuple(topics),
        findings=tuple(findings),
    )
