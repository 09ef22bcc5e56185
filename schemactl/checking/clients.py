"""Findings about declared clients, and what a changed schema means to each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from schemactl.broker.connect import Decision, TopicState, admit, policies_at
from schemactl.checking.report import ClientImpact
from schemactl.checking.run import Proposal, Run
from schemactl.checking.schemas import places
from schemactl.comparison.compatibility import breakages
from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.catalog import Client, ClientBuild, Topic
from schemactl.core.findings import Breakage, Finding, Verdict
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions as versions_said
from schemactl.formats import counterexample, explain


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


def declared(run: Run, proposal: Proposal, before: Topic | None, *, is_changed: bool) -> Iterator[Finding]:
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


def _broken(
    client: Client, builds: list[ClientBuild], schema: SchemaInfo
) -> list[tuple[ClientBuild, Breakage]]:
    """Return why the client and real clients that are built with `schema` do not understand each other."""
    # A consumer has to read what is written from now on; what a producer writes, everybody has to read.
    meets = CompatibilityStrategy.FORWARD if client.reads else CompatibilityStrategy.BACKWARD
    return [
        (build, found if build.number is not None else replace(found, older=on_one_line(client.file)))
        for build in builds
        for found in breakages(
            [SchemaVersion(build.number or 0, build.info)], schema, meets, by_any_release=True
        )
        if not found.incompatibility.strict_only
    ]


def _reason(proposal: Proposal, build: ClientBuild, bad: Breakage) -> str:
    return on_one_line(explain(bad, new=proposal.schema, old=build.info).reason)


def _finding(
    run: Run,
    proposal: Proposal,
    client: Client,
    build: ClientBuild,
    bad: Breakage,
    aside: str = "",
    **details: Any,
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
