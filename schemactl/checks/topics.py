"""Findings about one topic, and how it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from schemactl.checking import clients as checking_clients
from schemactl.checking import policies, schemas, tables
from schemactl.checking.merging import declared as declared_in
from schemactl.checking.merging import is_same_schema
from schemactl.checking.report import Change, TopicCheck
from schemactl.checking.run import Proposal, Run
from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.catalog import Topic
from schemactl.core.findings import DataState, Finding, Verdict
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaVersion, live, next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions as versions_said
from schemactl.formats import identity


def look_at(run: Run, name: TopicName) -> tuple[TopicCheck | None, list[Finding]]:
    """Return the report on one topic, None if it has not changed, and its findings."""
    declared = declared_in(run.target, name)
    before = declared_in(run.approved, name)
    if declared is None:
        return _removed(run, before) if before else (None, [])
    (old, _), (strategy, level) = run.strategies(name)
    change = _besides_schema(declared, before, is_same_strategy=old is strategy)
    if before and not change and _is_same(before, declared):
        return None, []
    seen = TopicCheck(
        name,
        change or "policies",
        strategy,
        level,
        source=declared.source,
        owner=run.target.metadata(name).owner,
    )
    if before and old is not strategy:
        seen = replace(seen, strategy_before=old)
    findings = [*policies.partitions(run, declared, before)]
    if declared.schema is not None:
        former = run.former(name)
        begins = former is not None and declared.generation > former.generation
        proposal = Proposal.of(declared, declared.schema, _begun(former, declared), strategy, level)
        findings += policies.reader(run, proposal)
        findings += policies.left_draft(run, proposal, before)
        findings += _generation(run, proposal, former) if former else ()
        seen, found = _schema(run, seen, proposal, before.schema if before and not begins else None)
        findings += found
        findings += checking_clients.declared(run, proposal, before, is_changed=seen.verdict is not None)
        if before:
            seen = replace(seen, tables=tables.impact_of(run, proposal, before))
            findings += tables.findings(run, proposal, seen.tables)
    elif before is None:
        seen = replace(seen, change="added")
    elif before.schema:
        seen = replace(seen, change="schema removed")
        findings += _schema_removed(run, declared, before)
    if before and not any(finding.rule == "STRATEGY_RELAXED" for finding in findings):
        findings += policies.protection_lost(run, declared, before)
    is_as_before = before and (old, before.partitions) == (strategy, declared.partitions)
    if seen.change in ("policies", "clients") and not findings and is_as_before:
        return None, []
    return seen, findings


def _schema_removed(run: Run, declared: Topic, before: Topic) -> Iterator[Finding]:
    yield from run.find(
        "SCHEMA_REMOVED",
        declared,
        f"{declared.name} no longer declares a schema. The registry keeps the versions it has, and so does the approved history.",
        fingerprint=_end("SCHEMA_REMOVED", before),
    )


def _besides_schema(declared: Topic, before: Topic | None, *, is_same_strategy: bool) -> Change | None:
    """Return whether strategy, policies or partitions, or else clients, have changed; None: they have not."""
    if before is None:
        return "policies"
    if not is_same_strategy or (before.partitions, before.policies) != (
        declared.partitions,
        declared.policies,
    ):
        return "policies"
    return None if before.clients == declared.clients else "clients"


def _is_same(before: Topic, declared: Topic) -> bool:
    """Return whether at most policies and clients differ."""
    return (
        is_same_schema(before.schema, declared.schema)
        and before.reader == declared.reader == "latest"
        and before.generation == declared.generation
        and not (before.lifecycle == "draft" and declared.lifecycle == "stable")
    )


def _schema(
    run: Run, seen: TopicCheck, proposal: Proposal, before: SchemaInfo | None
) -> tuple[TopicCheck, Iterable[Finding]]:
    """Return `seen` with the change from the last approved schema to the declared one, and its findings."""
    if is_same_schema(before, proposal.schema):
        return seen, policies.tightened(run, proposal)
    change: Change
    if before is not None and identity(before) == identity(proposal.schema):
        change = "not stored"
    elif proposal.known:
        change = "older version"
    else:
        change = "new version" if proposal.versions else "added"
    verdict = _judged(run, proposal, change, before)
    found = [*_findings(run, proposal, verdict, change)]
    if verdict.state is DataState.NOT_JUDGED and run.asks(schemas.UNPROTECTED, seen.topic):
        judged = _judged(run, replace(proposal, strategy=CompatibilityStrategy.FULL), change, before)
        found += schemas.unprotected(run, proposal, judged)
        verdict = replace(verdict, state=judged.state, data=judged.data)
    former = None if proposal.versions else run.approved.topics.get(proposal.topic.renamed_from or seen.topic)
    seen = replace(
        seen,
        change=change,
        version=proposal.number,
        latest=proposal.latest,
        verdict=verdict,
        schema=proposal.schema,
        before=before,
        versions=former.versions if former else proposal.versions,
        clients=checking_clients.impacts(proposal),
    )
    return seen, found


def _judged(run: Run, proposal: Proposal, change: Change, before: SchemaInfo | None) -> Verdict:
    verdict = proposal.verdict(run.project)
    return schemas.new_breakages(verdict, proposal, before) if before and change == "not stored" else verdict


def _findings(run: Run, proposal: Proposal, verdict: Verdict, change: Change) -> Iterator[Finding]:
    yield from schemas.data(run, proposal, verdict)
    yield from checking_clients.breaking(run, proposal, verdict)
    yield from schemas.buf_rules(run, proposal, verdict)
    if change == "not stored":
        if not verdict.data:
            yield from schemas.not_stored(run, proposal)
        yield from policies.tightened(run, proposal)
        return
    if change == "older version":
        yield from schemas.reverted(run, proposal)
    else:
        yield from schemas.moved(run, proposal, verdict)
        yield from schemas.own_release(run, proposal, verdict)
        yield from schemas.other_releases(run, proposal, verdict)
    yield from policies.relaxed(run, proposal, verdict, run.former(proposal.topic.name))
    yield from schemas.renamed(run, proposal)


def _begun(former: Topic | None, declared: Topic) -> tuple[SchemaVersion, ...]:
    """Return the approved versions of a topic, followed by a tombstone for each generation that `declared` begins."""
    versions, generation = (former.versions, former.generation) if former else ((), 1)
    following = next_number(versions)
    tombstones = range(following, following + declared.generation - generation)
    return (*versions, *(SchemaVersion(number, None) for number in tombstones))


def _generation(run: Run, proposal: Proposal, former: Topic) -> Iterator[Finding]:
    """Yield the finding that the proposal begins a generation, or goes back to an older one."""
    topic, ended, now = proposal.topic, live(former.versions), former.generation
    if topic.generation < now:
        yield from run.find(
            "GENERATION_LOWERED",
            topic,
            f"{topic.name} declares generation {topic.generation}, and is at generation {now}: a registry cannot get back what was deleted.",
            source=topic.locate("/generation"),
            fix=f"Write `generation: {now}`.",
        )
    elif topic.generation > now and ended:
        yield from run.find(
            "NEW_GENERATION",
            topic,
            f"{topic.name} begins generation {topic.generation}: `apply` deletes {versions_said([each.number for each in ended])} from the "
            "registry, and nothing is compared with them again. A broker then answers none of their numbers, so that consumers fail on "
            "messages written with them: `apply` does it only where the topic retains no message, offloaded and compacted ones included.",
            source=topic.locate("/generation"),
            # What ends is all that there is, which may be more on one target than on another.
            fingerprint=fingerprint(
                "NEW_GENERATION",
                topic.name,
                new=proposal.schema,
                against=[],
                pointer=f"/generation/{topic.generation}",
            ),
        )


def _end(rule: str, before: Topic) -> str:
    """Return the fingerprint of the finding that a topic's schema is no longer declared."""
    return fingerprint(rule, before.name, new=None, against=[before.schema] if before.schema else [])


def _removed(run: Run, before: Topic) -> tuple[TopicCheck, list[Finding]]:
    name = before.name
    (strategy, level), _ = run.strategies(name)
    latest = before.versions[-1].number if before.versions else None
    seen = TopicCheck(name, "removed", strategy, level, latest=latest, source=before.source)
    if any(topic.renamed_from == name for topic in run.target.topics.values()):
        return seen, []
    clients = ", ".join(f"the {each.role} {on_one_line(each.who)}" for each in before.clients)
    found = run.find(
        "DELETED_TOPIC",
        before,
        f"{name} is no longer declared. Its version numbers stay taken, and nothing is deleted from a registry unless "
        f"`apply --allow-delete {name}` is asked for."
        + (f"\nIts declared clients: {clients}." if clients else ""),
        before_change=True,
        fingerprint=_end("DELETED_TOPIC", before),
    )
    return seen, [*found]
