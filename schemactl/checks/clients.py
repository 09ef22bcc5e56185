"""Check the declared clients of a topic: which of them the change breaks, and which of them a broker rejects."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from schemactl.broker.connect import Decision, TopicState, admit, resolve_policies_at
from schemactl.checks import schemas
from schemactl.checks.check_report import ClientImpact
from schemactl.checks.proposal import Comparison, Proposal
from schemactl.checks.schemas import locate_breakage
from schemactl.comparison.changes import VersionIndex
from schemactl.comparison.compatibility import find_changed_values
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import LANGUAGES, Client, ClientBuild, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Finding, Verdict, quote_broker
from schemactl.core.policies import READ_BY_OLD, READS_OLD, CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.formats import counterexample, explain, find_client_defaults, identify_breakage, spec
from schemactl.formats.native_definitions import convert, find_rendering, list_native_parts


class _ClientBreakage(NamedTuple):
    """A breakage between a client's build and clients that are built with the proposed schema."""

    build: ClientBuild
    breakage: Breakage


def list_client_impacts(proposal: Proposal, approved_topic: Topic | None = None) -> tuple[ClientImpact, ...]:
    """Return the impact of the proposal on each declared client, by team; a client without a version has the latest.

    With `approved_topic`, the impacts say which damage the approved schema does as well.
    """
    impacts = []
    for client in sorted(proposal.topic.clients, key=lambda client: (client.team, client.name)):
        builds = client.builds(proposal.versions)
        breakages = _find_breakages(client, builds, proposal)
        older_breakages = _select_older_breakages(client, breakages, proposal, approved_topic)
        caused_breakages = [item for item in breakages if item not in older_breakages]
        first_breakage = next(iter((*caused_breakages, *older_breakages)), None)
        numbers = tuple(build.number for build in builds if build.number is not None)
        after_build = (*_find_breakages_of_latest(client, proposal), *_find_unread_producers(client, proposal))
        unread = next((item for item in after_build if item.breakage.direction == "new_reads_old"), None)
        impacts.append(
            ClientImpact(
                client,
                numbers,
                _explain_breakage(proposal, *first_breakage) if first_breakage else "",
                _explain_breakage(proposal, *unread) if unread else "",
                predates_change=bool(older_breakages) and not caused_breakages and not unread,
            )
        )
    return tuple(impacts)


def check_broken_clients(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each client with versions or a definition that the proposal breaks, regardless of the strategy.

    Both approved and declared clients on the targets of `comparison` count, because removing a client in the change that breaks it
    does not repair it. Breakages in `verdict` are left out. Breakages of the approved schema are notes: the change does not cause
    them.
    """
    approved_topic = comparison.find_approved(proposal.topic.name)
    declared_clients, approved_clients = (
        [client for client in (topic.clients if topic else ()) if client.runs_on(*comparison.targets)]
        for topic in (proposal.topic, approved_topic)
    )
    removed_clients = [
        client
        for client in approved_clients
        if not any(client.is_same_build(declared_client) for declared_client in declared_clients)
    ]
    for client in (*removed_clients, *declared_clients):
        latest_number = proposal.latest
        client_breakages = _find_client_breakages(client, proposal)
        # A producer with an older version has a separate finding.
        client_breakages += [
            item for item in _find_unread_producers(client, proposal) if item.build.number == latest_number
        ]
        new_breakages = [
            item for item in client_breakages if item.build.number is None or not _is_in_verdict(item.breakage, verdict)
        ]
        remark = ", which this change removes or declares otherwise," if client in removed_clients else ""
        older_breakages = _select_older_breakages(client, new_breakages, proposal, approved_topic)
        caused_breakages = [item for item in new_breakages if item not in older_breakages]
        for build, breakage in _select_reported(caused_breakages):
            yield from _report_broken_client(comparison, proposal, client, build, breakage, remark)
        for build, breakage in _select_reported(older_breakages):
            for finding in _report_broken_client(comparison, proposal, client, build, breakage, remark):
                message = f"{finding.message} The approved schema breaks it as well."
                yield schemas.make_older_problem(replace(finding, message=message))


def check_clients(
    comparison: Comparison, proposal: Proposal, approved_topic: Topic | None, *, is_changed: bool
) -> Iterator[Finding]:
    """Yield findings about clients with an unknown version, with an incompatible definition, or that a broker rejects.

    Problems of approved clients are left out. If the schema `is_changed`, `check_broken_clients` reports the clients that break.
    """
    approved_clients = [
        client for client in (approved_topic.clients if approved_topic else ()) if client.runs_on(*comparison.targets)
    ]
    numbers = [version.number for version in proposal.versions if version.info]
    numbers += [] if proposal.is_known else [proposal.number]
    for index, client in enumerate(proposal.topic.clients):
        if not client.runs_on(*comparison.targets):
            continue
        make_finding = partial(
            comparison.make_finding,
            topic=proposal.topic,
            owner=client.owner,
            targets=_select_targets(comparison, client),
        )
        subject = f"The {client.role} {on_one_line(client.display_name)}"
        is_new_language = all(
            (other.name, other.language) != (client.name, client.language) for other in approved_clients
        )
        if client.language and not client.known_language and is_new_language:
            yield from make_finding(
                "CLIENT_LANGUAGE_UNKNOWN",
                message=f"{subject} is written in `{on_one_line(client.language)}`, and how clients in this language "
                "read messages is unknown: the check uses Avro's specification. The known languages are "
                f"{', '.join(LANGUAGES)}.",
                source=proposal.topic.locate(f"/clients/{index}/language"),
            )
        missing_numbers = [number for number in (client.versions or ()) if number not in numbers]
        if missing_numbers:
            yield from make_finding(
                "CLIENT_VERSION_UNKNOWN",
                message=f"{subject} is declared with version {client.built} of {proposal.topic.name}, which has {format_version_numbers(numbers)}.",
                source=proposal.topic.locate(f"/clients/{index}/schema"),
            )
            continue
        is_new = not any(client.is_same_build(approved_client) for approved_client in approved_clients)
        if client_breakages := _find_client_breakages(client, proposal):
            if is_new and not is_changed:
                yield from _report_broken_client(comparison, proposal, client, *client_breakages[0], severity="warning")
            continue
        has_other_form = _has_other_form(proposal, client)
        if has_other_form and not any(
            _has_other_form(proposal, other, approved_topic) for other in approved_clients if other.name == client.name
        ):
            yield from _report_other_form(comparison, proposal.topic, index)
        rejection = None if has_other_form else _find_rejection(comparison, proposal, client)
        if rejection and (is_new or not _find_rejection(comparison, proposal, client, is_approved_state=True)):
            built = on_one_line(client.file) or f"version {client.built}"
            built = "the latest version" if client.is_latest else built
            yield from make_finding(
                "CLIENT_REFUSED",
                message=f"{subject} is built with {built}, and a broker would not let it connect to {proposal.topic.name} "
                f"after this change ({rejection.row}).{quote_broker(on_one_line(rejection.first_line or rejection.error))}",
                source=proposal.topic.locate(f"/clients/{index}/schema"),
            )


def check_client_versions(comparison: Comparison, topic: Topic, versions: Sequence[SchemaVersion]) -> Iterator[Finding]:
    """Yield a finding for each client whose versions belong to no kind of the topic, so that no kind is checked for it."""
    if not topic.kinds:
        return
    for index, client in enumerate(topic.clients):
        first, last = client.versions or (0, -1)
        has_kind = any(version.kind for version in versions if first <= version.number <= last)
        if client.versions is None or client.kind or has_kind or not client.runs_on(*comparison.targets):
            continue
        yield from comparison.make_finding(
            "CLIENT_VERSION_UNKNOWN",
            topic,
            f"The {client.role} {on_one_line(client.display_name)} is declared with version {client.built} of "
            f"{topic.name}, which does not belong to a kind. "
            f"The kinds have {format_version_numbers([version.number for version in versions if version.kind])}.",
            source=topic.locate(f"/clients/{index}/schema"),
            owner=client.owner,
            targets=_select_targets(comparison, client),
        )


def check_project_rendering(
    comparison: Comparison, approved_project: Project, proposed_project: Project
) -> Iterator[Finding]:
    """Yield a finding for each producer whose form is registered under the approved project and not under the proposed one."""
    for topic in comparison.declared.topics.values():
        old_form, new_form = (
            topic.get_rendering(project.rendering) for project in (approved_project, proposed_project)
        )
        if old_form == new_form or topic.schema is None or not list_native_parts(topic.schema.load()):
            continue
        for index, client in enumerate(topic.clients):
            if client.role == "producer" and client.client_language == old_form:
                yield from _report_other_form(comparison, topic, index)


def _report_other_form(comparison: Comparison, topic: Topic, index: int) -> Iterator[Finding]:
    """Yield the finding for the producer at `index` of the topic's clients."""
    client = topic.clients[index]
    return comparison.make_finding(
        "CLIENT_FORM_DIFFERS",
        topic,
        f"The producer {on_one_line(client.display_name)} sends the definition of {topic.name} as Pulsar's client of "
        f"{client.language.capitalize()} "
        "renders it, but another form is registered. A broker compares bytes: it rejects the producer, or stores its form as a further "
        "version.",
        source=topic.locate(f"/clients/{index}/language"),
        fix=f"Write `protobuf: {{rendering: {client.client_language}}}` if all producers use this client, or send the registered text: "
        "`schemactl docs protobuf-forms`.",
        owner=client.owner,
        targets=_select_targets(comparison, client),
    )


def _has_other_form(proposal: Proposal, client: Client, approved_topic: Topic | None = None) -> bool:
    """Return whether a producer sends a PROTOBUF_NATIVE definition with other bytes than the version with its content.

    With `approved_topic`, return whether the approved client does so before the change.
    """
    language = client.client_language
    if client.reads or language is None or not list_native_parts(proposal.schema):
        return False
    versions = proposal.versions
    try:
        if approved_topic is None and not proposal.is_known:
            versions = (*versions, SchemaVersion(proposal.number, proposal.schema))
        elif approved_topic is None and (form := find_rendering(proposal.schema)):
            # After the change, every version has the declared form.
            versions = tuple(
                replace(version, info=convert(version.info, form)) if version.info else version for version in versions
            )
        contents = VersionIndex(versions)
        for build in client.builds(versions):
            info = convert(build.info, language)
            version = contents.find(info)
            if version and version.info and version.info.schema != info.schema:
                return True
    except InvalidSchema:
        # Brokers reject one of the definitions, which has a finding.
        return False
    return False


def _select_targets(comparison: Comparison, client: Client) -> tuple[str, ...]:
    return tuple(name for name in comparison.targets if client.runs_on(name))


def _list_pinned_builds(client: Client, proposal: Proposal) -> list[ClientBuild]:
    """Return the client's builds, the newest first; empty for a client with the latest version, which the strategy protects."""
    return [] if client.is_latest else client.builds(proposal.versions)


def _select_reported(breakages: list[_ClientBreakage]) -> list[_ClientBreakage]:
    """Return the breakages of a client to report.

    This is the first breakage. If it follows from the rules of a language, these are all breakages with the same build and direction,
    because no other finding shows them.
    """
    if not breakages or breakages[0].breakage.incompatibility.rule != "CLIENT_BREAKS":
        return breakages[:1]
    first = breakages[0]
    return [
        item for item in breakages if item.build == first.build and item.breakage.direction == first.breakage.direction
    ]


def _is_in_verdict(breakage: Breakage, verdict: Verdict) -> bool:
    """Return whether the verdict has the breakage; one by the rules of a language matches any error at the same place."""
    if breakage in verdict.breakages:
        return True
    place = breakage.incompatibility.pointer, breakage.direction, breakage.against
    return breakage.incompatibility.rule == "CLIENT_BREAKS" and any(
        (other.incompatibility.pointer, other.direction, other.against) == place
        for other in verdict.breakages
        if other.incompatibility.is_error
    )


def _find_client_breakages(client: Client, proposal: Proposal) -> list[_ClientBreakage]:
    """Return the breakages of a client's versions or definition; of a client with the latest version, only by rules of its language."""
    return [
        *_find_breakages(client, _list_pinned_builds(client, proposal), proposal),
        *_find_breakages_of_latest(client, proposal),
    ]


def _find_breakages(client: Client, builds: list[ClientBuild], proposal: Proposal) -> list[_ClientBreakage]:
    """Return the breakages between the client's builds and clients that are built with the proposed schema."""
    # A consumer must read new messages; all consumers must read the messages of a producer.
    strategy = CompatibilityStrategy.FORWARD if client.reads else CompatibilityStrategy.BACKWARD
    languages = [client.known_language]
    if not client.reads:
        # Declared consumers without `schema` read its messages by the rules of their languages.
        readers = [other for other in proposal.topic.clients if other.reads and other.is_latest]
        reader_languages = (reader.known_language for reader in readers)
        languages = [
            "",
            *(language for language in reader_languages if spec(proposal.schema).has_client_rules(language)),
        ]
    return [
        _ClientBreakage(
            build, breakage if build.number is not None else replace(breakage, older=on_one_line(client.file))
        )
        for build in builds
        for language in dict.fromkeys(languages)
        for breakage in find_changed_values(
            [SchemaVersion(build.number or 0, build.info)], proposal.schema, strategy, language=language
        )
        if breakage.incompatibility.is_error
    ]


def _find_breakages_of_latest(client: Client, proposal: Proposal) -> list[_ClientBreakage]:
    """Return the breaks for a consumer without `schema` by the rules of its language, which the strategy does not protect.

    It is built with the latest version before the change, and with the proposed version after it.
    """
    if not (client.is_latest and client.reads and spec(proposal.schema).has_client_rules(client.known_language)):
        return []
    infos = {version.number: version.info for version in proposal.versions if version.number != proposal.number}
    return [
        _ClientBreakage(ClientBuild(breakage.against, info), breakage)
        for breakage in find_changed_values(
            [version for version in proposal.versions if version.number != proposal.number],
            proposal.schema,
            _protect_clients(proposal.strategy),
            language=client.known_language,
        )
        if breakage.incompatibility.is_error and (info := infos[breakage.against])
    ]


def _select_older_breakages(
    client: Client, breakages: list[_ClientBreakage], proposal: Proposal, approved_topic: Topic | None
) -> list[_ClientBreakage]:
    """Return the breakages of an approved client's versions or definition that the approved schema has as well, at the same field."""
    if client.is_latest or not breakages or approved_topic is None or approved_topic.schema is None:
        return []
    if not any(client.is_same_build(approved_client) for approved_client in approved_topic.clients):
        return []
    approved_proposal = replace(proposal, topic=approved_topic, schema=approved_topic.schema.load())

    def identify(item: _ClientBreakage, schema: SchemaInfo) -> tuple[ClientBuild, Hashable]:
        build, breakage = item
        return build, identify_breakage(breakage, new=schema, old=build.info)

    builds = [build for build, _ in breakages]
    approved_breakages = _find_breakages(client, list(dict.fromkeys(builds)), approved_proposal)
    approved_keys = {identify(item, approved_proposal.schema) for item in approved_breakages}
    return [item for item in breakages if identify(item, proposal.schema) in approved_keys]


def _find_unread_producers(client: Client, proposal: Proposal) -> list[_ClientBreakage]:
    """Return where a consumer without `schema`, after its next build, does not read what the declared producers write.

    A producer without `schema` writes the latest version until its next build. It counts only under a strategy by which consumers may be
    upgraded first.
    """
    if not (client.is_latest and client.reads) or spec(proposal.schema).has_client_rules(client.known_language):
        return []
    is_upgraded_first = _protect_clients(proposal.strategy) in READS_OLD
    return [
        item
        for producer in proposal.topic.clients
        if not producer.reads and client.runs_on(*producer.targets) and (is_upgraded_first or not producer.is_latest)
        for item in _find_breakages(producer, producer.builds(proposal.versions), proposal)
        # By the rules of another language, only consumers in that language break.
        if item.breakage.incompatibility.rule != "CLIENT_BREAKS"
    ]


def _protect_clients(strategy: CompatibilityStrategy) -> CompatibilityStrategy:
    """Return the strategy under which declared clients are judged: a strategy that protects no reader is FULL."""
    return strategy if strategy in READS_OLD or strategy in READ_BY_OLD else CompatibilityStrategy.FULL


def check_client_defaults(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding for each default that a declared consumer does not apply to messages of the other version, by its language."""
    for client in proposal.topic.clients:
        if not (client.reads and client.runs_on(*comparison.targets)):
            continue
        if not spec(proposal.schema).has_client_rules(client.known_language):
            continue
        new = proposal.schema
        strategy = _protect_clients(proposal.strategy) if client.is_latest else CompatibilityStrategy.FORWARD
        builds = [build for build in client.builds(proposal.versions) if build.number != proposal.number]
        sides = [(build.info, new, build, "old_reads_new") for build in builds if strategy in READ_BY_OLD]
        sides += [(new, build.info, build, "new_reads_old") for build in builds if strategy in READS_OLD]
        with suppress(InvalidSchema):
            for reader, writer, build, direction in sides:
                for default in find_client_defaults(reader=reader, writer=writer, language=client.known_language):
                    number = proposal.number if direction == "old_reads_new" else build.number
                    yield from comparison.make_finding(
                        default.rule,
                        proposal.topic,
                        f"The {client.role} {on_one_line(client.display_name)} on messages of version {number} of {proposal.topic.name}: "
                        f"{on_one_line(default.message)}.",
                        source=new.locate(default.pointer) if reader is new else new.locate(""),
                        fix="Make the field a union with null first, and `null` its default, so that the reader "
                        "expects its absence; or set the value in the client.",
                        pointer=default.pointer,
                        direction=direction,
                        against=() if build.number is None else (build.number,),
                        owner=client.owner,
                        targets=_select_targets(comparison, client),
                    )


def _explain_breakage(proposal: Proposal, build: ClientBuild, breakage: Breakage) -> str:
    return on_one_line(explain(breakage, new=proposal.schema, old=build.info).reason)


def _report_broken_client(
    comparison: Comparison,
    proposal: Proposal,
    client: Client,
    build: ClientBuild,
    breakage: Breakage,
    remark: str = "",
    **details: Any,
) -> Iterator[Finding]:
    pointer = breakage.incompatibility.pointer
    explanation = explain(breakage, new=proposal.schema, old=build.info)
    source, older = locate_breakage(proposal, breakage, explanation, build.info)
    new_version = f"version {proposal.number} of {proposal.topic.name}"
    effect = (
        f"cannot read messages of {new_version}" if client.reads else f"writes messages that {new_version} cannot read"
    )
    against = () if build.number is None else (build.number,)
    built = on_one_line(client.file) if build.number is None else f"version {build.number}"
    if client.reads and breakage.direction == "new_reads_old":
        built, effect = new_version, f"cannot read messages of version {build.number}"
    subject = f"The {client.role} {on_one_line(client.display_name)}"
    if spec(proposal.schema).has_client_rules(client.known_language):
        subject += f" in {client.known_language.capitalize()}"
    yield from comparison.make_finding(
        "CLIENT_BREAKS",
        proposal.topic,
        f"{subject}{remark} is built with {built} and {effect}.\n{on_one_line(explanation.reason)}",
        source=source,
        fix=explanation.fix.removesuffix(".")
        + ("." if client.is_latest else _suggest_way_out(proposal, client, build)),
        field=explanation.field,
        pointer=pointer,
        direction=breakage.direction,
        against=against,
        older=older,
        counterexample=counterexample(breakage, new=proposal.schema, old=build.info),
        owner=client.owner,
        targets=_select_targets(comparison, client),
        fingerprint=compute_fingerprint(
            "CLIENT_BREAKS",
            proposal.topic.name,
            new=proposal.schema,
            against=[build.info],
            pointer=pointer,
            direction=breakage.direction,
        ),
        **details,
    )


def _suggest_way_out(proposal: Proposal, client: Client, build: ClientBuild) -> str:
    """Return an alternative fix that changes the client, as the end of a sentence."""
    suffix = "and merge it as a separate change."
    breakages = find_changed_values(proposal.versions, proposal.schema, proposal.strategy)
    if any(breakage.incompatibility.is_error for breakage in breakages):
        # The strategy rejects the schema, regardless of the client.
        return "."
    for version in reversed(get_live_versions(proposal.versions)):
        newer_schema = version.info if build.number is not None and version.number > build.number else None
        if newer_schema and not _find_breakages(client, [ClientBuild(version.number, newer_schema)], proposal):
            return f"; or bring the client to version {version.number} first, {suffix}"
    if _find_breakages_of_latest(replace(client, versions=None, file="", schema=None), proposal):
        return "."
    return f"; or declare the client without `schema`, so that it follows every version, {suffix}"


def _find_rejection(
    comparison: Comparison, proposal: Proposal, client: Client, *, is_approved_state: bool = False
) -> Decision | None:
    """Return the broker's decision to reject the client after the change, or before it (`is_approved_state`); None if it connects."""
    name, catalog = proposal.topic.name, comparison.approved if is_approved_state else comparison.declared
    strategy, _ = comparison.get_strategies(name)[0 if is_approved_state else 1]
    if proposal.broker_of_kinds:
        strategy, _ = catalog.strategy(name, comparison.project.defaults)
    policies = resolve_policies_at(catalog, name, comparison.project.defaults, strategy=strategy)
    proposed_versions = (
        [] if proposal.is_known or is_approved_state else [SchemaVersion(proposal.number, proposal.schema)]
    )
    # Another producer is connected, so that the client does not register its schema with an idle topic.
    state = TopicState((*proposal.broker.versions, *proposed_versions), producers=1)
    builds = _list_pinned_builds(client, proposal)
    if strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        # The only strategy that does not protect clients with the latest version.
        builds = client.builds(state.versions)
    decisions = (admit(client.role, build.info, state, policies, comparison.project.release) for build in builds)
    return next((decision for decision in decisions if not decision.allowed), None)
