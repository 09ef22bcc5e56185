"""`check`: compares declared files with the approved history. Takes catalogs, returns findings; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schemactl.checking import namespaces, policies, renames
from schemactl.checking.branches import MAX_PAIRS, compare, number, pairs, steps, unjudged, untouched
from schemactl.checking.branches import Fork as Fork
from schemactl.checking.branches import Stepwise as Stepwise
from schemactl.checking.causes import Cause as Cause
from schemactl.checking.deprecation import deprecations as deprecations
from schemactl.checking.gate import judging as judging
from schemactl.checking.gate import with_settings as with_settings
from schemactl.checking.joining import joined as joined
from schemactl.checking.merging import merged
from schemactl.checking.report import ORDER as ORDER
from schemactl.checking.report import Change as Change
from schemactl.checking.report import CheckReport as CheckReport
from schemactl.checking.report import PolicyChange as PolicyChange
from schemactl.checking.report import TopicCheck as TopicCheck
from schemactl.checking.report import client_impacts as client_impacts
from schemactl.checking.report import undecided as undecided
from schemactl.checking.run import Run
from schemactl.checking.topics import look_at
from schemactl.checking.waiving import WaiverFile as WaiverFile
from schemactl.checking.waiving import with_waivers as with_waivers
from schemactl.core.catalog import Catalog
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.project import Project


def check(
    target: Catalog,
    *,
    approved: Catalog,
    project: Project,
    label: str,
    declared: Sequence[Finding] = (),
    only: frozenset[TopicName] | None = None,
    fork: Fork | None = None,
    stepwise: Stepwise | None = None,
    targets: tuple[str, ...] = (),
) -> CheckReport:
    """Report what the merge of `target` would do to brokers and readers.

    Args:
        target: the declared files.
        approved: the approved history as it is now, with which new content is compared.
        project: has the default strategy, the severities and the release.
        label: the name of `approved` in the report.
        declared: findings from reading the files.
        only: check only these topics.
        fork: the history where the files branched off, by default `approved`: it tells what was changed here, and what breaks
            only because of what was approved since.
        stepwise: the approved history as it would be if each commit of the branch were approved by itself.
        targets: the targets that the check is for; (): none in particular.
    """
    fork = fork or Fork(approved)
    is_behind = fork.catalog is not approved
    unchanged = untouched(target, fork)
    run = Run(
        merged(target, base=fork.catalog, approved=approved, unchanged=unchanged, combined=fork.combined)
        if is_behind
        else target,
        approved,
        project,
        targets=targets,
    )
    names = sorted(
        name
        for name in {*target.topics, *run.target.topics, *approved.topics}
        if only is None or name in only
    )
    topics: list[TopicCheck] = []
    findings: list[Finding] = []
    notes: list[str] = []
    left = MAX_PAIRS
    for name in names:
        seen, found = (None, []) if name in unchanged else look_at(run, name)
        if is_behind and name not in unchanged:
            found, settled = compare(run, name, found, target, fork)
            notes += settled
        if stepwise and name.schema_id in stepwise.recorded:
            needed = pairs(run, name, stepwise)
            if needed <= left:
                left -= needed
                found += steps(run, name, found, stepwise)
            else:
                found += unjudged(run, name, stepwise)
        if seen:
            topics.append(replace(seen, stepwise=number(seen, run, stepwise)) if stepwise else seen)
        if name in run.target.topics:
            found += [weighed for each in declared if each.topic == name for weighed in run.weigh(each)]
        findings += sorted(found, key=lambda finding: ORDER[finding.severity])
    findings += renames.undeclared(run, names)
    findings += namespaces.undeclared(run, names)
    findings += namespaces.open_to_producers(run, names)
    if only is None:
        findings += policies.namespaces(run)
    return CheckReport(
        release=project.release,
        base=label,
        checked=sum(name in target.topics for name in names),
        topics=tuple(topics),
        policies=tuple(policies.changes(run, [name for name in names if name not in unchanged])),
        findings=tuple(findings),
        merge_base=fork.commit if is_behind else None,
        notes=tuple(notes),
        settings=project.path,
    )
