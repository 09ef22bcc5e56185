"""Check a change: compare the declarations with the approved history, also for each commit of a branch, and report the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from schemactl.checks import declarations
from schemactl.checks.branch_commits import MAX_PAIRS, BranchCommits, check_commits, find_number_after_rebase
from schemactl.checks.check_report import ORDER, CheckReport, TopicCheck
from schemactl.checks.proposal import Comparison, KindKey, MovedTopic, get_declared_topic, merge_catalogs
from schemactl.checks.topics import check_topic
from schemactl.core.catalog import Catalog
from schemactl.core.errors import Problem
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Commit, SchemaInfo
from schemactl.core.wording import format_version
from schemactl.history.merge import Forked, LocalChanges


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """The approved history at the merge base of a branch.

    Attributes:
        catalog: the approved topics and namespaces at the merge base.
        commit: the merge base, or None if the history was empty.
        changes: the changes of the branch since then.
        is_behind: whether something was approved since then.
    """

    catalog: Catalog
    commit: Commit | None = None
    changes: LocalChanges = field(default_factory=LocalChanges)
    is_behind: bool = False

    @classmethod
    def from_forked(cls, forked: Forked, changes: LocalChanges) -> BranchPoint:
        """Return the branch point of a branch with these changes."""
        return cls(forked.merge_base.catalog, forked.merge_base.tip, changes, forked.is_behind)


def check_catalog(
    proposed_catalog: Catalog,
    *,
    approved_catalog: Catalog,
    project: Project,
    history_label: str,
    file_findings: Sequence[Finding] = (),
    selected: frozenset[TopicName] | None = None,
    branch_point: BranchPoint | None = None,
    branch: BranchCommits | None = None,
    targets: tuple[str, ...] = (),
    moved: Mapping[TopicName, MovedTopic] = MappingProxyType({}),
    protos: Mapping[KindKey, SchemaInfo] = MappingProxyType({}),
) -> CheckReport:
    """Report the effects of the merge of a branch on brokers and readers, topic by topic.

    Args:
        proposed_catalog: the declarations of the branch, before the merge.
        approved_catalog: the approved history at its tip, into which the branch is merged.
        project: the project with the default strategy, the severities and the release.
        history_label: the name of the approved history in the report.
        file_findings: findings from reading the files.
        selected: the topics to check, or None for all topics.
        branch_point: the approved history at the merge base, by default `approved_catalog`. It shows which topics the branch changed, and
            which findings are caused by later approved versions.
        branch: the commits of the branch if each is judged as approved by itself, or None.
        targets: the names of the targets; empty if the check does not depend on a target.
        moved: the new topics that another approved project of the repository has.
        protos: the schemas of topics and kinds that replace or remove `proto:`, with the approved `.proto`.
    """
    branch_point = branch_point or BranchPoint(approved_catalog)
    unchanged = find_unchanged_topics(proposed_catalog, branch_point)
    merged_catalog = proposed_catalog
    if branch_point.is_behind:
        merged_catalog = merge_catalogs(
            proposed_catalog,
            merge_base=branch_point.catalog,
            approved=approved_catalog,
            unchanged=unchanged,
            combined=branch_point.changes.combined,
        )
    comparison = Comparison(merged_catalog, approved_catalog, project, targets=targets, moved=moved, protos=protos)
    names = sorted(
        name
        for name in {*proposed_catalog.topics, *merged_catalog.topics, *approved_catalog.topics}
        if selected is None or name in selected
    )
    topics: list[TopicCheck] = []
    findings: list[Finding] = []
    notes: list[str] = []
    remaining_pairs = MAX_PAIRS
    for name in names:
        topic_checks, topic_findings = ([], []) if name in unchanged else check_topic(comparison, name)
        if branch_point.is_behind and name not in unchanged:
            topic_findings, notes_on_topic = mark_findings_of_later_approvals(
                comparison, name, topic_findings, proposed_catalog, branch_point
            )
            topic_findings = [*_check_merge(comparison, name, proposed_catalog, branch_point), *topic_findings]
            notes += notes_on_topic
        if branch and name.schema_id in branch.recorded:
            commit_findings, remaining_pairs = check_commits(comparison, name, topic_findings, branch, remaining_pairs)
            topic_findings += commit_findings
        topics += [
            replace(topic_check, number_after_rebase=find_number_after_rebase(topic_check, comparison, branch))
            if branch
            else topic_check
            for topic_check in topic_checks
        ]
        if name in merged_catalog.topics:
            topic_findings += [
                weighed_finding
                for finding in file_findings
                if finding.topic == name
                for weighed_finding in comparison.apply_severity(finding)
            ]
        findings += sorted(topic_findings, key=lambda finding: ORDER[finding.severity])
    changed_names = [name for name in names if name not in unchanged]
    findings += declarations.check_undeclared_renames(comparison, changed_names)
    findings += declarations.check_undeclared_namespaces(comparison, names)
    findings += declarations.check_open_namespaces(comparison, names)
    if selected is None:
        findings += declarations.check_namespace_protection(comparison)
    return CheckReport(
        release=project.release,
        base=history_label,
        checked=sum(name in proposed_catalog.topics for name in names),
        topics=tuple(topics),
        policies=tuple(declarations.find_policy_changes(comparison, changed_names)),
        findings=tuple(findings),
        merge_base=branch_point.commit if branch_point.is_behind else None,
        notes=tuple(notes),
        settings=project.path,
    )


def find_unchanged_topics(proposed_catalog: Catalog, branch_point: BranchPoint) -> frozenset[TopicName]:
    """Return the topics to leave out of the report, because the branch changed neither them nor their namespaces."""
    changed = {
        name
        for name in {*proposed_catalog.namespaces, *branch_point.catalog.namespaces}
        if proposed_catalog.namespaces.get(name) != branch_point.catalog.namespaces.get(name)
    }
    return frozenset(
        name
        for name in branch_point.changes.unchanged
        if name not in branch_point.changes.combined
        and name.namespace_name not in changed
        and all(part.reader == "latest" for part in proposed_catalog.topics[name].split())
    )


def mark_findings_of_later_approvals(
    comparison: Comparison,
    name: TopicName,
    findings: Sequence[Finding],
    proposed_catalog: Catalog,
    branch_point: BranchPoint,
) -> tuple[list[Finding], list[str]]:
    """Mark the findings that do not occur at the merge base, and return them with notes about errors that occur only there."""
    comparison_at_merge_base = replace(comparison, declared=proposed_catalog, approved=branch_point.catalog)
    _, findings_at_merge_base = check_topic(comparison_at_merge_base, name)
    keys_at_merge_base = {_identify_in_topic(finding) for finding in findings_at_merge_base}
    merge_base_name = branch_point.commit.short if branch_point.commit else "its beginning"
    later_versions = comparison.get_versions(name)[len(comparison_at_merge_base.get_versions(name)) :]
    cause = ", ".join(
        format_version(version) + (f' "{version.commit.subject}"' if version.commit else "")
        for version in later_versions[-3:]
    )
    cause = cause or "other policies"
    result: list[Finding] = []
    for finding in findings:
        if _identify_in_topic(finding) in keys_at_merge_base:
            result.append(finding)
            continue
        reason = f"Not reported at the merge base ({merge_base_name}); caused by changes that were approved after it: {cause}."
        result.append(replace(finding, message=f"{finding.message}\n{reason}", only_at_tip=True))
    keys = {_identify_in_topic(finding) for finding in findings}
    notes = [
        f"{name}: {finding.rule} was reported at the merge base ({merge_base_name}), but is no longer reported; caused by "
        f"changes that were approved after it: {cause}"
        for finding in findings_at_merge_base
        if finding.severity == "error" and _identify_in_topic(finding) not in keys
    ]
    return result, notes


def _identify_in_topic(finding: Finding) -> tuple[object, ...]:
    """Return a key that a finding shares with the finding at the merge base about the same problem, wherever it is declared."""
    return finding.rule, finding.kind, finding.pointer, finding.direction


def _check_merge(
    comparison: Comparison, name: TopicName, proposed_catalog: Catalog, branch_point: BranchPoint
) -> Iterator[Finding]:
    """Yield findings about a topic that the merge of both sides' files would make invalid."""
    proposed_topic = get_declared_topic(proposed_catalog, name)
    approved_topic = get_declared_topic(comparison.approved, name)
    topic = proposed_topic or approved_topic
    problem = branch_point.changes.combined.get(name)
    if topic and isinstance(problem, Problem):
        yield from comparison.make_finding(
            "INVALID_AFTER_MERGE",
            topic,
            f"{name} uses files that this branch changes, and files that were changed on the approved branch in the meantime. After a merge: "
            f"{problem.source}: {problem.message}.",
            source=topic.source,
            only_at_tip=True,
        )
    if (
        proposed_topic is None
        or approved_topic is None
        or get_declared_topic(branch_point.catalog, name)
        or not (proposed_topic.source and approved_topic.source)
    ):
        return
    if proposed_topic.source.path != approved_topic.source.path:
        yield from comparison.make_finding(
            "INVALID_AFTER_MERGE",
            proposed_topic,
            f"This change adds {name}, which was approved after the merge base, declared at "
            f"{approved_topic.source}. After a merge it would be declared twice.",
            source=proposed_topic.source,
            only_at_tip=True,
        )
