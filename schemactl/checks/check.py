"""Check a change: compare the declarations with the approved history, also for each commit of a branch, and report the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from schemactl.checks import declarations, kinds, schemas
from schemactl.checks.check_report import ORDER, CheckReport, TopicCheck
from schemactl.checks.proposal import (
    BrokerSide,
    KindKey,
    MovedTopic,
    Proposal,
    Run,
    find_number,
    get_declared_topic,
    merge_catalogs,
)
from schemactl.checks.topics import check_topic
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import Problem
from schemactl.core.findings import Finding, WaiversAt
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion
from schemactl.core.wording import format_version
from schemactl.formats import assign_kinds, identity
from schemactl.history.merge import LocalChanges

MAX_PAIRS: Final = 100_000
"""Maximum number of pairs of versions to compare when commits are checked one by one.

A topic with 450 new versions has about as many and takes a few seconds; 3,000 versions would take minutes.
"""


@dataclass(frozen=True, slots=True)
class Fork:
    """The approved history at the merge base of a branch.

    Attributes:
        catalog: the approved topics and namespaces at the merge base.
        commit: the merge base, or None if the history was empty.
        branch_changes: the changes of the branch since then.
    """

    catalog: Catalog
    commit: Commit | None = None
    branch_changes: LocalChanges = field(default_factory=LocalChanges)


@dataclass(frozen=True, slots=True)
class Stepwise:
    """The approved history if each commit of a branch were approved by itself.

    Attributes:
        catalog: the topics with the versions that the commits would add.
        commits: the commits of the branch, in order.
        recorded: the topics that get a version, as tenant/namespace/topic.
        waivers: returns the waivers in force in the tree of a commit.
    """

    catalog: Catalog
    commits: Sequence[Commit]
    recorded: frozenset[str]
    waivers: WaiversAt = lambda _: ()


def check(
    declared: Catalog,
    *,
    approved: Catalog,
    project: Project,
    base: str,
    file_findings: Sequence[Finding] = (),
    selected: frozenset[TopicName] | None = None,
    fork: Fork | None = None,
    stepwise: Stepwise | None = None,
    targets: tuple[str, ...] = (),
    moved: Mapping[TopicName, MovedTopic] = MappingProxyType({}),
    protos: Mapping[KindKey, SchemaInfo] = MappingProxyType({}),
) -> CheckReport:
    """Report the effects of the merge of `declared` on brokers and readers.

    Args:
        declared: the declarations.
        approved: the approved history at its tip, with which the declarations are compared.
        project: the project with the default strategy, the severities and the release.
        base: the name of `approved` in the report.
        file_findings: findings from reading the files.
        selected: the topics to check, or None for all topics.
        fork: the approved history at the merge base, by default `approved`. It shows which topics the branch changed, and
            which findings are caused by later approved versions.
        stepwise: the approved history if each commit of the branch were approved by itself.
        targets: the names of the targets; empty if the check does not depend on a target.
        moved: the new topics that another approved project of the repository has.
        protos: the schemas of topics and kinds that replace or remove `proto:`, with the approved `.proto`.
    """
    fork = fork or Fork(approved)
    is_behind = fork.catalog is not approved
    unchanged = find_unchanged_topics(declared, fork)
    run = Run(
        merge_catalogs(
            declared, base=fork.catalog, approved=approved, unchanged=unchanged, combined=fork.branch_changes.combined
        )
        if is_behind
        else declared,
        approved,
        project,
        targets=targets,
        moved=moved,
        protos=protos,
    )
    names = sorted(
        name
        for name in {*declared.topics, *run.declared.topics, *approved.topics}
        if selected is None or name in selected
    )
    topics: list[TopicCheck] = []
    findings: list[Finding] = []
    notes: list[str] = []
    remaining_pairs = MAX_PAIRS
    for name in names:
        topic_checks, topic_findings = ([], []) if name in unchanged else check_topic(run, name)
        if is_behind and name not in unchanged:
            topic_findings, notes_on_topic = mark_findings_of_tip(run, name, topic_findings, declared, fork)
            notes += notes_on_topic
        if stepwise and name.schema_id in stepwise.recorded:
            pair_count = count_pairs(run, name, stepwise)
            if pair_count <= remaining_pairs:
                remaining_pairs -= pair_count
                topic_findings += check_commits(run, name, topic_findings, stepwise)
            else:
                topic_findings += report_unjudged_commits(run, name, stepwise)
        topics += [
            replace(topic_check, stepwise=find_stepwise_number(topic_check, run, stepwise)) if stepwise else topic_check
            for topic_check in topic_checks
        ]
        if name in run.declared.topics:
            topic_findings += [
                weighed_finding
                for finding in file_findings
                if finding.topic == name
                for weighed_finding in run.apply_severity(finding)
            ]
        findings += sorted(topic_findings, key=lambda finding: ORDER[finding.severity])
    findings += declarations.check_undeclared_renames(run, names)
    findings += declarations.check_undeclared_namespaces(run, names)
    findings += declarations.check_open_namespaces(run, names)
    if selected is None:
        findings += declarations.check_namespace_protection(run)
    return CheckReport(
        release=project.release,
        base=base,
        checked=sum(name in declared.topics for name in names),
        topics=tuple(topics),
        policies=tuple(declarations.find_policy_changes(run, [name for name in names if name not in unchanged])),
        findings=tuple(findings),
        merge_base=fork.commit if is_behind else None,
        notes=tuple(notes),
        settings=project.path,
    )


def find_unchanged_topics(declared: Catalog, fork: Fork) -> frozenset[TopicName]:
    """Return the topics to leave out of the report, because the branch changed neither them nor their namespaces."""
    changed = {
        name
        for name in {*declared.namespaces, *fork.catalog.namespaces}
        if declared.namespaces.get(name) != fork.catalog.namespaces.get(name)
    }
    return frozenset(
        name
        for name in fork.branch_changes.unchanged
        if name not in fork.branch_changes.combined
        and name.namespace_name not in changed
        and all(part.reader == "latest" for part in declared.topics[name].split())
    )


def mark_findings_of_tip(
    run: Run, name: TopicName, findings: Sequence[Finding], declared: Catalog, fork: Fork
) -> tuple[list[Finding], list[str]]:
    """Mark the findings that do not occur at the merge base, and return notes about errors that occur only there."""
    base_run = replace(run, declared=declared, approved=fork.catalog)
    _, base_findings = check_topic(base_run, name)
    base_keys = {_make_key(finding) for finding in base_findings}
    base_name = fork.commit.short if fork.commit else "its beginning"
    later_versions = run.get_versions(name)[len(base_run.get_versions(name)) :]
    cause = ", ".join(
        format_version(version) + (f' "{version.commit.subject}"' if version.commit else "")
        for version in later_versions[-3:]
    )
    cause = cause or "other policies"
    result = [*_check_merge(run, name, declared, fork)]
    for finding in findings:
        if _make_key(finding) in base_keys:
            result.append(finding)
            continue
        reason = (
            f"Not reported at the merge base ({base_name}); caused by changes that were approved after it: {cause}."
        )
        result.append(replace(finding, message=f"{finding.message}\n{reason}", only_at_tip=True))
    keys = {_make_key(finding) for finding in findings}
    notes = [
        f"{name}: {finding.rule} was reported at the merge base ({base_name}), but is no longer reported; caused by "
        f"changes that were approved after it: {cause}"
        for finding in base_findings
        if finding.severity == "error" and _make_key(finding) not in keys
    ]
    return result, notes


def _make_key(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.kind, finding.pointer, finding.direction


def _check_merge(run: Run, name: TopicName, declared: Catalog, fork: Fork) -> Iterator[Finding]:
    """Yield findings about a topic that the merge of both sides' files would make invalid."""
    declared_topic, approved_topic = get_declared_topic(declared, name), get_declared_topic(run.approved, name)
    topic = declared_topic or approved_topic
    problem = fork.branch_changes.combined.get(name)
    if topic and isinstance(problem, Problem):
        yield from run.make_finding(
            "INVALID_AFTER_MERGE",
            topic,
            f"{name} uses files that this branch changes, and files that were changed on the approved branch in the meantime. After a merge: "
            f"{problem.source}: {problem.message}.",
            source=topic.source,
            only_at_tip=True,
        )
    if (
        declared_topic is None
        or approved_topic is None
        or get_declared_topic(fork.catalog, name)
        or not (declared_topic.source and approved_topic.source)
    ):
        return
    if declared_topic.source.path != approved_topic.source.path:
        yield from run.make_finding(
            "INVALID_AFTER_MERGE",
            declared_topic,
            f"This change adds {name}, which was approved after the merge base, declared at "
            f"{approved_topic.source}. After a merge it would be declared twice.",
            source=declared_topic.source,
            only_at_tip=True,
        )


# The commits of a branch, each approved by itself


def count_pairs(run: Run, name: TopicName, stepwise: Stepwise) -> int:
    """Return the maximum number of pairs of versions that `check_commits` compares for a topic."""
    return sum(range(len(run.get_versions(name)), len(_get_stepwise_versions(name, stepwise))))


def check_commits(run: Run, name: TopicName, findings: Sequence[Finding], stepwise: Stepwise) -> Iterator[Finding]:
    """Yield a finding for each commit of the branch that, approved by itself, would record a breaking version."""
    topic = get_declared_topic(run.declared, name)
    if topic is None or topic.schema is None:
        return
    approved_versions, versions = run.get_versions(name), _get_stepwise_versions(name, stepwise)
    approved_numbers = {approved.number for approved in approved_versions}
    parts = {part.kind: part for part in topic.split()}
    if topic.kinds:
        names = kinds.join_kind_names(stepwise.catalog.topics[name], topic)
        versions = assign_kinds(versions, replace(topic, kind_names=names))
    runs = {key: kinds.select_kind(run, part) if key else run for key, part in parts.items()}
    last_contents = {identity(part.schema.load()) for part in parts.values() if part.schema}
    last_waiver_keys = {waiver.key for waiver in stepwise.waivers(stepwise.commits[-1])} if stepwise.commits else set()
    is_last_rejected = any(
        finding.severity == "error" and finding.verdict in ("broker", "data") for finding in findings
    )
    yield from _check_generations(run, topic, versions[len(approved_versions) :], stepwise)
    for position in range(len(approved_versions), len(versions)):
        version = versions[position]
        if version.info is None or version.commit is None:
            continue
        part = parts.get(version.kind)
        if part is None or part.schema is None:
            # A kind that the end of the branch does not declare is compared with nothing.
            continue
        earlier_versions = versions[:position]
        kind_versions = tuple(
            earlier for earlier in earlier_versions if earlier.info is None or earlier.kind == version.kind
        )
        is_first_of_branch = all(earlier.number in approved_numbers for earlier in kind_versions)
        is_last = identity(version.info.load()) in last_contents and (is_first_of_branch or is_last_rejected)
        if is_last and not last_waiver_keys:
            # The end of the branch has been judged already.
            continue
        # Findings point into the end of the branch, whose files can be opened.
        schema = replace(version.info, locator=part.schema.locator, source=part.schema.source, editor=None)
        broker = BrokerSide(earlier_versions, *run.get_strategies(name).after) if topic.kinds else None
        strategy, level = runs[version.kind].get_strategies(name).after
        proposal = Proposal.create(
            part, schema, kind_versions if topic.kinds else earlier_versions, strategy, level, broker
        )
        verdict = proposal.judge(run.project)
        errors = [
            finding
            for finding in (
                *schemas.check_readers(run, proposal, verdict),
                *schemas.check_own_release(run, proposal, verdict),
            )
            if finding.severity == "error"
        ]
        if is_last:
            errors = [finding for finding in errors if finding.key in last_waiver_keys]
        waiver_keys = {waiver.key for waiver in stepwise.waivers(version.commit)}
        errors = [finding for finding in errors if finding.key not in waiver_keys]
        if errors:
            is_waived_later = errors[0].key in last_waiver_keys
            yield from _report_commit(run, errors[0], version.commit, stepwise, is_waived_later=is_waived_later)


def _check_generations(run: Run, topic: Topic, added: Sequence[SchemaVersion], stepwise: Stepwise) -> Iterator[Finding]:
    """Yield a finding for the first commit that begins a generation that the end of the branch does not declare."""
    approved_topic = run.find_approved(topic.name)
    generation = approved_generation = approved_topic.generation if approved_topic else 1
    for version in added:
        generation += version.info is None
        if version.commit and generation > max(topic.generation, approved_generation):
            yield from run.make_finding(
                "STEP_REFUSED",
                topic,
                f"{_describe_commit(version.commit, stepwise)}, begins generation {generation} of {topic.name} if it "
                "is approved as a separate commit, as in a rebase merge or a fast-forward: `apply` would then delete "
                f"all earlier versions. The end of the branch declares generation {topic.generation}.",
                source=topic.locate("/generation"),
                commit=version.commit,
            )
            return


def _report_commit(
    run: Run, error: Finding, commit: Commit, stepwise: Stepwise, *, is_waived_later: bool
) -> Iterator[Finding]:
    topic = run.declared.topics[error.topic] if error.topic else None
    if topic is None:
        return
    findings = run.make_finding(
        "STEP_REFUSED",
        topic,
        f"{_describe_commit(commit, stepwise)}, breaks if it is approved as a separate commit, as in a rebase merge "
        f"or a fast-forward ({error.rule}):\n{error.message}\n"
        + (
            "Its waiver is in a later commit, but only the waivers in a version's own commit apply to it.\n"
            if is_waived_later
            else ""
        )
        + "A merge commit or a squash approves only the end of the branch, which is checked separately.",
        source=error.source,
        pointer=error.pointer,
        direction=error.direction,
        against=error.against,
        counterexample=error.counterexample,
        commit=commit,
    )
    yield from (replace(finding, kind=error.kind) for finding in findings)


def _describe_commit(commit: Commit, stepwise: Stepwise) -> str:
    position = next(index for index, branch_commit in enumerate(stepwise.commits, 1) if branch_commit.id == commit.id)
    return f'Commit {commit.short} "{commit.subject}", {position} of {len(stepwise.commits)} on this branch'


def report_unjudged_commits(run: Run, name: TopicName, stepwise: Stepwise) -> Iterator[Finding]:
    """Yield the finding that the commits were not judged one by one, because there are too many of them."""
    topic = get_declared_topic(run.declared, name)
    if topic is None or topic.schema is None:
        return
    added = len(_get_stepwise_versions(name, stepwise)) - len(run.get_versions(name))
    yield from run.make_finding(
        "STEP_REFUSED",
        topic,
        f"{added} commits of the {len(stepwise.commits)} on this branch each add a version of {name} if they are approved one by "
        "one, as in a rebase merge or a fast-forward. They are too many to judge separately, so only the end of the branch was judged.",
        fix="squash the branch, or merge it with a merge commit, which approves only its end",
        source=topic.source,
    )


def find_stepwise_number(topic_check: TopicCheck, run: Run, stepwise: Stepwise) -> int | None:
    """Return the version number of the end of the branch if each commit is approved by itself, or None if it is the same."""
    topic = get_declared_topic(run.declared, topic_check.topic)
    kind = topic.get_kind(topic_check.kind) if topic else None
    schema = kind.schema if kind else (topic.schema if topic else None)
    if topic_check.version is None or schema is None:
        return None
    number = find_number(reversed(_get_stepwise_versions(topic_check.topic, stepwise)), schema)
    return number if number != topic_check.version else None


def _get_stepwise_versions(name: TopicName, stepwise: Stepwise) -> tuple[SchemaVersion, ...]:
    topic = stepwise.catalog.topics.get(name)
    return topic.versions if topic else ()
