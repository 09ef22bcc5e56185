"""Check one topic: its change, and the effects on its declared clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import Any

from schemactl.broker.connect import Decision, TopicState, admit, policies_at
from schemactl.checks import declarations, schemas, table_impact
from schemactl.checks.check_report import Change, ClientImpact, TopicCheck
from schemactl.checks.proposal import Proposal, Run, is_same_schema, number_in_force
from schemactl.checks.proposal import declared as declared_in
from schemactl.checks.schemas import places
from schemactl.comparison.compatibility import breakages
from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.catalog import Client, ClientBuild, Topic
from schemactl.core.findings import Breakage, DataState, Finding, Verdict
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaVersion, live, next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions as versions_said
from schemactl.formats import counterexample, explain, identity


def impacts(proposal: Proposal) -> tuple[ClientImpact, ...]:
    """Return what the proposal means to each client that the topic declares, by team; one without version has the latest."""
    found = []
    for client in sorted(proposal.topic.clients, key=lambda each: (each.team, each.name)):
        builds = client.builds(proposal.versions)
        broken = next(iter(_broken(client, builds, proposal.schema)), None)
        numbers = tuple(build.number for build in builds if build.number is not None)
        found.append(ClientImpact(client, numbers, _reason(proposal, *broken) if broken else ""))
    return tuple(found)


def breaking(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield what breaks a client with versions or a definition of its own, whatever the strategy protects.

    Approved clients count as well as those that the change declares, as far as they run on the targets of `run`: to remove a
    client in the change that breaks it does not help it. Breakages that `verdict` has already are left out.
    """
    former = run.former(proposal.topic.name)
    now, known = (
        [each for each in (topic.clients if topic else ()) if each.runs_on(*run.targets)]
        for topic in (proposal.topic, former)
    )
    gone = [client for client in known if not any(client.is_same_build(each) for each in now)]
    for client in (*gone, *now):
        found = _broken(client, _pinned(client, proposal), proposal.schema)
        bad = [each for each in found if each[0].number is None or each[1] not in verdict.data]
        if bad:
            aside = ", which this change removes or declares otherwise," if client in gone else ""
            yield from _finding(run, proposal, client, *bad[0], aside)


def client_findings(run: Run, proposal: Proposal, before: Topic | None, *, is_changed: bool) -> Iterator[Finding]:
    """Yield clients with a version that the topic lacks, those that break with its schema, and those that a broker rejects.

    What was so in `before` is left out. Where the schema `is_changed`, the clients that it breaks are left to `breaking`.
    """
    known = [each for each in (before.clients if before else ()) if each.runs_on(*run.targets)]
    numbers = [each.number for each in proposal.versions if each.info]
    numbers += [] if proposal.known else [proposal.number]
    for index, client in enumerate(proposal.topic.clients):
        if not client.runs_on(*run.targets):
            continue
        find = partial(
            run.find,
            topic=proposal.topic,
            source=proposal.topic.locate(f"/clients/{index}/schema"),
            owner=client.owner,
            targets=_targets(run, client),
        )
        who = f"The {client.role} {on_one_line(client.who)}"
        missing = [each for each in (client.versions or ()) if each not in numbers]
        if missing:
            yield from find(
                "CLIENT_VERSION_UNKNOWN",
                message=f"{who} is declared with version {client.built} of {proposal.topic.name}, which has {versions_said(numbers)}.",
            )
            continue
        is_new = not any(client.is_same_build(each) for each in known)
        if broken := _broken(client, _pinned(client, proposal), proposal.schema):
            if is_new and not is_changed:
                yield from _finding(run, proposal, client, *broken[0], severity="warning")
            continue
        rejection = _rejection(run, proposal, client)
        if rejection and (is_new or not _rejection(run, proposal, client, before=True)):
            built = on_one_line(client.file) or f"version {client.built}"
            built = "the latest version" if client.is_latest else built
            yield from find(
                "CLIENT_REFUSED",
                message=f"{who} is built with {built}, and a broker would not let it connect to {proposal.topic.name} "
                f"after this change ({rejection.row}).\nIt says: {on_one_line(rejection.first_line or rejection.error)}",
            )


def _targets(run: Run, client: Client) -> tuple[str, ...]:
    return tuple(name for name in run.targets if client.runs_on(name))


def _pinned(client: Client, proposal: Proposal) -> list[ClientBuild]:
    """Return the definitions that the client is built with, the newest first; none of one with the latest, which the strategy protects."""
    return [] if client.is_latest else client.builds(proposal.versions)


def _broken(client: Client, builds: list[ClientBuild], schema: SchemaInfo) -> list[tuple[ClientBuild, Breakage]]:
    """Return why the client and real clients that are built with `schema` do not understand each other."""
    # A consumer has to read what is written from now on; what a producer writes, everybody has to read.
    meets = CompatibilityStrategy.FORWARD if client.reads else CompatibilityStrategy.BACKWARD
    return [
        (build, found if build.number is not None else replace(found, older=on_one_line(client.file)))
        for build in builds
        for found in breakages([SchemaVersion(build.number or 0, build.info)], schema, meets, by_any_release=True)
        if not found.incompatibility.strict_only
    ]


def _reason(proposal: Proposal, build: ClientBuild, bad: Breakage) -> str:
    return on_one_line(explain(bad, new=proposal.schema, old=build.info).reason)


def _finding(
    run: Run, proposal: Proposal, client: Client, build: ClientBuild, bad: Breakage, aside: str = "", **details: Any
) -> Iterator[Finding]:
    pointer = bad.incompatibility.pointer
    explanation = explain(bad, new=proposal.schema, old=build.info)
    source, older = places(proposal, bad, explanation, build.info)
    new = f"version {proposal.number} of {proposal.topic.name}"
    does = f"cannot read messages of {new}" if client.reads else f"writes what {new} cannot read"
    against = () if build.number is None else (build.number,)
    built = on_one_line(client.file) if build.number is None else f"version {build.number}"
    yield from run.find(
        "CLIENT_BREAKS",
        proposal.topic,
        f"The {client.role} {on_one_line(client.who)}{aside} is built with {built} and {does}.\n{on_one_line(explanation.reason)}",
        source=source,
        fix=explanation.fix.removesuffix(".") + _way_out(proposal, client, build),
        field=explanation.field,
        pointer=pointer,
        direction=bad.direction,
        against=against,
        older=older,
        counterexample=counterexample(bad, new=proposal.schema, old=build.info),
        owner=client.owner,
        targets=_targets(run, client),
        fingerprint=fingerprint(
            "CLIENT_BREAKS",
            proposal.topic.name,
            new=proposal.schema,
            against=[build.info],
            pointer=pointer,
            direction=bad.direction,
        ),
        **details,
    )


def _way_out(proposal: Proposal, client: Client, build: ClientBuild) -> str:
    """Return what may be done about the client instead, as the end of a sentence."""
    approved = "and have that approved in a change of its own."
    found = breakages(proposal.versions, proposal.schema, proposal.strategy, by_any_release=True)
    if any(not each.incompatibility.strict_only for each in found):
        # The strategy rejects the schema, whatever the client is built with.
        return "."
    for version in reversed(live(proposal.versions)):
        newer = version.info if build.number is not None and version.number > build.number else None
        if newer and not _broken(client, [ClientBuild(version.number, newer)], proposal.schema):
            return f"; or bring the client to version {version.number} first, {approved}"
    return f"; or declare the client without `schema`, so that it goes along with every version, {approved}"


def _rejection(run: Run, proposal: Proposal, client: Client, *, before: bool = False) -> Decision | None:
    """Return the decision by which a broker rejects the client after the change (`before`: before it); None: it lets it in."""
    name, catalog = proposal.topic.name, run.approved if before else run.target
    strategy, _ = run.strategies(name)[0 if before else 1]
    policies = policies_at(catalog, name, run.project.defaults, strategy=strategy)
    added = [] if proposal.known or before else [SchemaVersion(proposal.number, proposal.schema)]
    # Somebody else is connected: what an idle topic would register is registered already.
    state = TopicState((*proposal.versions, *added), producers=1)
    builds = _pinned(client, proposal)
    if strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        # The one that protects not even who has the latest.
        builds = client.builds(state.versions)
    decisions = (admit(client.role, build.info, state, policies, run.project.release) for build in builds)
    return next((each for each in decisions if not each.allowed), None)


# The topic and its change


def look_at(run: Run, name: TopicName) -> tuple[TopicCheck | None, list[Finding]]:
    """Return the report on one topic, None if it has not changed, and its findings."""
    declared = declared_in(run.target, name)
    before = declared_in(run.approved, name)
    if declared is None:
        return _removed(run, before) if before else (None, [])
    (old, _), (strategy, level) = run.strategies(name)
    change = _besides_schema(declared, before, is_same_strategy=old is strategy)
    if before and not change and _is_same(before, declared) and _has_approved_proto(run, name, before.schema):
        return None, []
    seen = TopicCheck(
        name, change or "policies", strategy, level, source=declared.source, owner=run.target.metadata(name).owner
    )
    if before and old is not strategy:
        seen = replace(seen, strategy_before=old)
    findings = [*declarations.partitions(run, declared, before)]
    if declared.schema is not None:
        former = run.former(name)
        begins = former is not None and declared.generation > former.generation
        proposal = Proposal.of(declared, declared.schema, _begun(former, declared), strategy, level)
        proposal = replace(proposal, in_force=number_in_force(before))
        findings += declarations.reader(run, proposal)
        findings += declarations.left_draft(run, proposal, before)
        findings += _generation(run, proposal, former) if former else ()
        seen, found = _schema(run, seen, proposal, before.schema if before and not begins else None)
        findings += found
        findings += client_findings(run, proposal, before, is_changed=seen.verdict is not None)
        if before:
            seen = replace(seen, tables=table_impact.impact_of(run, proposal, before))
            findings += table_impact.findings(run, proposal, seen.tables)
    elif before is None:
        seen = replace(seen, change="added")
    elif before.schema:
        seen = replace(seen, change="schema removed")
        findings += _schema_removed(run, declared, before)
    if before and not any(finding.rule == "STRATEGY_RELAXED" for finding in findings):
        findings += declarations.protection_lost(run, declared, before)
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
    if not is_same_strategy or (before.partitions, before.policies) != (declared.partitions, declared.policies):
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
    if is_same_schema(before, proposal.schema) and _has_approved_proto(run, seen.topic, before):
        return seen, declarations.tightened(run, proposal)
    change: Change
    if before is not None and identity(before) == identity(proposal.schema):
        change = "not stored"
    elif proposal.known:
        change = "older version"
    else:
        change = "new version" if proposal.versions else "added"
    verdict = _judged(run, proposal, change, before)
    found = [*_findings(run, proposal, verdict, change)]
    if seen.topic in run.protos:
        # Readers have the approved `.proto`, whatever the change declares.
        approved = replace(proposal, schema=run.protos[seen.topic])
        judged = _judged(run, approved, change, before)
        known = {(finding.rule, finding.pointer, finding.direction) for finding in found}
        found += [
            finding
            for finding in schemas.data(run, approved, judged)
            if (finding.rule, finding.pointer, finding.direction) not in known
        ]
        if judged.data:
            verdict = replace(verdict, state=judged.state, data=tuple(dict.fromkeys((*verdict.data, *judged.data))))
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
        clients=impacts(proposal),
    )
    return seen, found


def _has_approved_proto(run: Run, name: TopicName, before: SchemaInfo | None) -> bool:
    """Return whether the approved `.proto` of a topic is as it was, where the change declares another one or none."""
    return name not in run.protos or is_same_schema(before, run.protos[name])


def _judged(run: Run, proposal: Proposal, change: Change, before: SchemaInfo | None) -> Verdict:
    verdict = proposal.verdict(run.project)
    return schemas.new_breakages(verdict, proposal, before) if before and change == "not stored" else verdict


def _findings(run: Run, proposal: Proposal, verdict: Verdict, change: Change) -> Iterator[Finding]:
    yield from schemas.data(run, proposal, verdict)
    yield from breaking(run, proposal, verdict)
    yield from schemas.buf_rules(run, proposal, verdict)
    if change == "not stored":
        if not verdict.data:
            yield from schemas.not_stored(run, proposal)
        yield from declarations.tightened(run, proposal)
        return
    if change == "older version":
        yield from schemas.reverted(run, proposal)
    else:
        yield from schemas.moved(run, proposal, verdict)
        yield from schemas.own_release(run, proposal, verdict)
        yield from schemas.other_releases(run, proposal, verdict)
    if former := run.former(proposal.topic.name):
        strategy, _ = run.approved.strategy(former.name, run.project.defaults)
        yield from declarations.relaxed(run, proposal, verdict, strategy)
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
                "NEW_GENERATION", topic.name, new=proposal.schema, against=[], pointer=f"/generation/{topic.generation}"
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
        f"`apply --allow-delete {quote(str(name))}` is asked for."
        + (f"\nIts declared clients: {clients}." if clients else ""),
        before_change=True,
        fingerprint=_end("DELETED_TOPIC", before),
    )
    return seen, [*found]
