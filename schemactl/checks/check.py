"""Check a change: compare two catalogs, and report the findings, also those about the branch and each of its commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from schemactl.checks import declarations, schemas
from schemactl.checks.check_report import ORDER, CheckReport, TopicCheck
from schemactl.checks.proposal import MovedTopic, Proposal, Run, declared, merged
from schemactl.checks.topics import look_at
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import Problem
from schemactl.core.findings import Finding, WaiversAt
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion
from schemactl.core.wording import format_version
from schemactl.formats import identity

MAX_PAIRS: Final = 100_000
"""The most pairs of versions that are compared because commits may be approved one by one, as those of a topic with 450 new
versions: a few seconds. The pairs of 3,000 versions would take minutes."""


@dataclass(frozen=True, slots=True)
class Fork:
    """The approved history at the point where a branch left it.

    Attributes:
        commit: its last commit; None: it has none.
        unchanged: topics that the branch is known not to have changed.
        combined: definitions that a merge makes from files of both sides, or the problem that prevents one; None for a topic that
            is no longer declared.
        settled: unchanged topics of which nothing was approved since either.
    """

    catalog: Catalog
    commit: Commit | None = None
    unchanged: frozenset[TopicName] = frozenset()
    combined: Mapping[TopicName, SchemaInfo | Problem | None] = field(default_factory=dict)
    settled: frozenset[TopicName] = frozenset()


@dataclass(frozen=True, slots=True)
class Stepwise:
    """The approved history as it would be if each commit of a branch were approved by itself.

    Attributes:
        commits: those of the branch, in order.
        recorded: tenant/namespace/topic of the topics that get a version by one of them.
        waivers: returns the waivers in force in the tree of a commit.
    """

    catalog: Catalog
    commits: Sequence[Commit]
    recorded: frozenset[str]
    waivers: WaiversAt = lambda _: ()


def untouched(target: Catalog, fork: Fork) -> frozenset[TopicName]:
    """Return the topics to leave out of the report: the branch changed neither them nor their namespaces."""
    changed = {
        name
        for name in {*target.namespaces, *fork.catalog.namespaces}
        if target.namespaces.get(name) != fork.catalog.namespaces.get(name)
    }
    return frozenset(
        name
        for name in fork.unchanged
        if name not in fork.combined and name.namespace_name not in changed and target.topics[name].reader == "latest"
    )


def compare(
    run: Run, name: TopicName, found: Sequence[Finding], target: Catalog, fork: Fork
) -> tuple[list[Finding], list[str]]:
    """Return `found`, with those marked that do not occur at `fork`; and notes about what occurs only there."""
    before = replace(run, target=target, approved=fork.catalog)
    _, there = look_at(before, name)
    there_keys = {_key(finding) for finding in there}
    at = fork.commit.short if fork.commit else "its beginning"
    since = _since(run.versions(name), before.versions(name))
    result = [*_invalid(run, name, target, fork)]
    for finding in found:
        if _key(finding) in there_keys:
            result.append(finding)
            continue
        reason = f"Not reported at the merge base ({at}); caused by what was approved since: {since}."
        result.append(replace(finding, message=f"{finding.message}\n{reason}", only_at_tip=True))
    keys = {_key(finding) for finding in found}
    settled = [
        f"{name}: {finding.rule} was reported at the merge base ({at}) and no longer is; caused by what was approved since: {since}"
        for finding in there
        if finding.severity == "error" and _key(finding) not in keys
    ]
    return result, settled


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.pointer, finding.direction


def _since(now: Sequence[SchemaVersion], then: Sequence[SchemaVersion]) -> str:
    """Return a description of what was approved of a topic since then."""
    new = now[len(then) :]
    if not new:
        return "other policies"
    return ", ".join(
        format_version(version) + (f' "{version.commit.subject}"' if version.commit else "") for version in new[-3:]
    )


def _invalid(run: Run, name: TopicName, target: Catalog, fork: Fork) -> Iterator[Finding]:
    """Yield findings about what a merge of both sides' files would make invalid."""
    ours, theirs = declared(target, name), declared(run.approved, name)
    topic = ours or theirs
    problem = fork.combined.get(name)
    if topic and isinstance(problem, Problem):
        yield from run.find(
            "INVALID_AFTER_MERGE",
            topic,
            f"{name} is made of files that this work changed and of files that were approved since it began. After a merge: "
            f"{problem.source}: {problem.what}.",
            source=topic.source,
            only_at_tip=True,
        )
    if ours is None or theirs is None or declared(fork.catalog, name) or not (ours.source and theirs.source):
        return
    if ours.source.path != theirs.source.path:
        yield from run.find(
            "INVALID_AFTER_MERGE",
            ours,
            f"{name} is new here, and since this work left the approved history it has been approved as declared at "
            f"{theirs.source}. After a merge it would be declared twice.",
            source=ours.source,
            only_at_tip=True,
        )


def pairs(run: Run, name: TopicName, stepwise: Stepwise) -> int:
    """Return the most pairs of versions that `steps` compares for a topic."""
    return sum(range(len(run.versions(name)), len(_line(name, stepwise))))


def unjudged(run: Run, name: TopicName, stepwise: Stepwise) -> Iterator[Finding]:
    """Yield the finding that commits were not judged one by one, because there are too many."""
    topic = declared(run.target, name)
    if topic is None or topic.schema is None:
        return
    added = len(_line(name, stepwise)) - len(run.versions(name))
    yield from run.find(
        "STEP_REFUSED",
        topic,
        f"{added} commits of the {len(stepwise.commits)} on this branch put a version of {name} on record when each is approved by "
        "itself, as a rebase merge or a fast-forward does. Those are too many to be judged one by one: only the end of the branch was.",
        fix="squash the branch, or merge it with a merge commit, which approves its end alone",
        source=topic.source,
    )


def steps(run: Run, name: TopicName, found: Sequence[Finding], stepwise: Stepwise) -> Iterator[Finding]:
    """Yield a finding for each commit of the branch that, approved by itself, would record a breaking version."""
    topic = declared(run.target, name)
    if topic is None or topic.schema is None:
        return
    known, line = run.versions(name), _line(name, stepwise)
    _, (strategy, level) = run.strategies(name)
    end = identity(topic.schema.load())
    waived_at_end = {each.key for each in stepwise.waivers(stepwise.commits[-1])} if stepwise.commits else set()
    is_end_bad = any(finding.severity == "error" and finding.verdict in ("broker", "data") for finding in found)
    yield from _generation_left(run, topic, line[len(known) :], stepwise)
    for position in range(len(known), len(line)):
        version = line[position]
        if version.info is None or version.commit is None:
            continue
        is_end = identity(version.info.load()) == end and (position == len(known) or is_end_bad)
        if is_end and not waived_at_end:
            # The end itself, which has been judged.
            continue
        # Places are those of the end: that is what is at hand.
        schema = replace(version.info, locator=topic.schema.locator, source=topic.schema.source)
        proposal = Proposal.of(topic, schema, line[:position], strategy, level)
        verdict = proposal.verdict(run.project)
        bad = [
            each
            for each in (*schemas.data(run, proposal, verdict), *schemas.own_release(run, proposal, verdict))
            if each.severity == "error"
        ]
        if is_end:
            bad = [each for each in bad if each.key in waived_at_end]
        here = {each.key for each in stepwise.waivers(version.commit)}
        bad = [each for each in bad if each.key not in here]
        if bad:
            is_late = bad[0].key in waived_at_end
            yield from _failed_step(run, bad[0], version.commit, stepwise, is_waived_later=is_late)


def _generation_left(run: Run, topic: Topic, added: Sequence[SchemaVersion], stepwise: Stepwise) -> Iterator[Finding]:
    """Yield the finding that a commit begins a generation that the end of the branch does not declare."""
    former = run.former(topic.name)
    generation = approved = former.generation if former else 1
    for version in added:
        generation += version.info is None
        if version.commit and generation > max(topic.generation, approved):
            yield from run.find(
                "STEP_REFUSED",
                topic,
                f"{_named(version.commit, stepwise)}, begins generation {generation} of {topic.name} when it is approved by itself, as a rebase merge "
                f"or a fast-forward does: `apply` would delete the versions so far. The end of the branch declares generation {topic.generation}.",
                source=topic.locate("/generation"),
                commit=version.commit,
            )
            return


def _named(commit: Commit, stepwise: Stepwise) -> str:
    at = next(number for number, each in enumerate(stepwise.commits, 1) if each.id == commit.id)
    return f'Commit {commit.short} "{commit.subject}", {at} of {len(stepwise.commits)} on this branch'


def _failed_step(
    run: Run, bad: Finding, commit: Commit, stepwise: Stepwise, *, is_waived_later: bool
) -> Iterator[Finding]:
    topic = run.target.topics[bad.topic] if bad.topic else None
    if topic is None:
        return
    yield from run.find(
        "STEP_REFUSED",
        topic,
        f"{_named(commit, stepwise)}, breaks when it is approved by itself, as a rebase merge or a fast-forward does ({bad.rule}):\n{bad.message}\n"
        + (
            "Its waiver comes with a later commit, and a version is judged by the waivers in its own.\n"
            if is_waived_later
            else ""
        )
        + "A merge commit or a squash approves the end of the branch alone, which is judged apart from this.",
        source=bad.source,
        pointer=bad.pointer,
        direction=bad.direction,
        against=bad.against,
        counterexample=bad.counterexample,
        commit=commit,
    )


def number(seen: TopicCheck, run: Run, stepwise: Stepwise) -> int | None:
    """Return the number that the end of the branch gets if each commit is approved by itself; None: it is the same."""
    topic = declared(run.target, seen.topic)
    if seen.version is None or topic is None or topic.schema is None:
        return None
    key = identity(topic.schema.load())
    for version in reversed(_line(seen.topic, stepwise)):
        if version.info and identity(version.info.load()) == key:
            return version.number if version.number != seen.version else None
    return None


def _line(name: TopicName, stepwise: Stepwise) -> tuple[SchemaVersion, ...]:
    topic = stepwise.catalog.topics.get(name)
    return topic.versions if topic else ()


# `check`: compares declared files with the approved history. Takes catalogs, returns findings; no
# I/O.


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
    moved: Mapping[TopicName, MovedTopic] = MappingProxyType({}),
    protos: Mapping[TopicName, SchemaInfo] = MappingProxyType({}),
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
        moved: the new topics that another approved project of the repository has.
        protos: the schemas of topics that replace or remove `proto:`, with the approved one.
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
        moved=moved,
        protos=protos,
    )
    names = sorted(
        name for name in {*target.topics, *run.target.topics, *approved.topics} if only is None or name in only
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
    findings += declarations.undeclared_topics(run, names)
    findings += declarations.undeclared_namespaces(run, names)
    findings += declarations.open_to_producers(run, names)
    if only is None:
        findings += declarations.namespaces(run)
    return CheckReport(
        release=project.release,
        base=label,
        checked=sum(name in target.topics for name in names),
        topics=tuple(topics),
        policies=tuple(declarations.changes(run, [name for name in names if name not in unchanged])),
        findings=tuple(findings),
        merge_base=fork.commit if is_behind else None,
        notes=tuple(notes),
        settings=project.path,
    )
