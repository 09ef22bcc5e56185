"""Check each commit of a branch as if it were approved by itself, as a rebase merge or a fast-forward does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from schemactl.checks import kinds, schemas
from schemactl.checks.check_report import TopicCheck
from schemactl.checks.proposal import BrokerView, Comparison, Proposal, find_number, get_declared_topic
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.findings import Finding, WaiversAt
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit, SchemaVersion
from schemactl.formats import assign_kinds, identity

MAX_PAIRS: Final = 100_000
"""Maximum number of pairs of versions to compare when commits are checked one by one.

A topic with 450 new versions has about as many and takes a few seconds; 3,000 versions would take minutes.
"""


@dataclass(frozen=True, slots=True)
class BranchCommits:
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

    def get_versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the versions of a topic after the last commit."""
        topic = self.catalog.topics.get(name)
        return topic.versions if topic else ()

    def describe(self, commit: Commit) -> str:
        """Return the id, the subject and the position of a commit, as the beginning of a sentence."""
        position = next(index for index, branch_commit in enumerate(self.commits, 1) if branch_commit.id == commit.id)
        return f'Commit {commit.short} "{commit.subject}", {position} of {len(self.commits)} on this branch'


def check_commits(
    comparison: Comparison, name: TopicName, findings: Sequence[Finding], branch: BranchCommits, remaining_pairs: int
) -> tuple[list[Finding], int]:
    """Return a finding for each commit of the branch that, approved by itself, would record a breaking version of a topic.

    Args:
        comparison: the comparison of the end of the branch.
        name: the topic.
        findings: its findings at the end of the branch.
        branch: the commits.
        remaining_pairs: the number of pairs of versions that may be compared; if the topic needs more, one finding says so.

    Returns:
        The findings, and the number of pairs that remain for other topics.
    """
    topic = get_declared_topic(comparison.declared, name)
    if topic is None or topic.schema is None:
        return [], remaining_pairs
    approved_count = len(comparison.get_versions(name))
    added = len(branch.get_versions(name)) - approved_count
    pair_count = sum(range(approved_count, approved_count + added))
    if pair_count <= remaining_pairs:
        return [*_check_each_commit(comparison, topic, findings, branch)], remaining_pairs - pair_count
    unjudged_findings = comparison.make_finding(
        "STEP_REFUSED",
        topic,
        f"{added} commits of the {len(branch.commits)} on this branch each add a version of {name} if they are "
        "approved one by one, as in a rebase merge or a fast-forward. They are too many to judge separately, so only the end of the branch "
        "was judged.",
        fix="squash the branch, or merge it with a merge commit, which approves only its end",
        source=topic.source,
    )
    return [*unjudged_findings], remaining_pairs


def _check_each_commit(
    comparison: Comparison, topic: Topic, findings: Sequence[Finding], branch: BranchCommits
) -> Iterator[Finding]:
    approved_versions, versions = comparison.get_versions(topic.name), branch.get_versions(topic.name)
    approved_numbers = {approved.number for approved in approved_versions}
    parts = {part.kind: part for part in topic.split()}
    if topic.kinds:
        names = kinds.join_kind_names(branch.catalog.topics[topic.name], topic)
        versions = assign_kinds(versions, replace(topic, kind_names=names))
    comparisons = {key: kinds.narrow_to_kind(comparison, part) if key else comparison for key, part in parts.items()}
    last_contents = {identity(part.schema.load()) for part in parts.values() if part.schema}
    last_waiver_keys = {waiver.key for waiver in branch.waivers(branch.commits[-1])} if branch.commits else set()
    is_last_rejected = any(
        finding.severity == "error" and finding.verdict in ("broker", "data") for finding in findings
    )
    yield from _check_generations(comparison, topic, versions[len(approved_versions) :], branch)
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
        broker = BrokerView(earlier_versions, *comparison.get_strategies(topic.name).after) if topic.kinds else None
        strategy, level = comparisons[version.kind].get_strategies(topic.name).after
        proposal = Proposal.create(
            part, schema, kind_versions if topic.kinds else earlier_versions, strategy, level, broker
        )
        verdict = proposal.judge(comparison.project)
        errors = [
            finding
            for finding in (
                *schemas.check_readers(comparison, proposal, verdict),
                *schemas.check_own_release(comparison, proposal, verdict),
            )
            if finding.severity == "error"
        ]
        if is_last:
            errors = [finding for finding in errors if finding.key in last_waiver_keys]
        waiver_keys = {waiver.key for waiver in branch.waivers(version.commit)}
        errors = [finding for finding in errors if finding.key not in waiver_keys]
        if errors:
            is_waived_later = errors[0].key in last_waiver_keys
            yield from _report_commit(
                comparison, topic, errors[0], version.commit, branch, is_waived_later=is_waived_later
            )


def _check_generations(
    comparison: Comparison, topic: Topic, added: Sequence[SchemaVersion], branch: BranchCommits
) -> Iterator[Finding]:
    """Yield a finding for the first commit that begins a generation that the end of the branch does not declare."""
    approved_topic = comparison.find_approved(topic.name)
    generation = approved_generation = approved_topic.generation if approved_topic else 1
    for version in added:
        generation += version.info is None
        if version.commit and generation > max(topic.generation, approved_generation):
            yield from comparison.make_finding(
                "STEP_REFUSED",
                topic,
                f"{branch.describe(version.commit)}, begins generation {generation} of {topic.name} if it "
                "is approved as a separate commit, as in a rebase merge or a fast-forward: `apply` would then delete "
                f"all earlier versions. The end of the branch declares generation {topic.generation}.",
                source=topic.locate("/generation"),
                commit=version.commit,
            )
            return


def _report_commit(
    comparison: Comparison,
    topic: Topic,
    error: Finding,
    commit: Commit,
    branch: BranchCommits,
    *,
    is_waived_later: bool,
) -> Iterator[Finding]:
    findings = comparison.make_finding(
        "STEP_REFUSED",
        topic,
        f"{branch.describe(commit)}, breaks if it is approved as a separate commit, as in a rebase merge "
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


def find_number_after_rebase(topic_check: TopicCheck, comparison: Comparison, branch: BranchCommits) -> int | None:
    """Return the version number of the end of the branch if each commit is approved by itself, or None if it is the same."""
    topic = get_declared_topic(comparison.declared, topic_check.topic)
    kind = topic.get_kind(topic_check.kind) if topic else None
    schema = kind.schema if kind else (topic.schema if topic else None)
    if topic_check.version is None or schema is None:
        return None
    number = find_number(reversed(branch.get_versions(topic_check.topic)), schema)
    return number if number != topic_check.version else None
