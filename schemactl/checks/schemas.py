"""Check a changed schema: can readers decode it, do brokers accept it, and which version does it become?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from schemactl.broker.upload import VersionList
from schemactl.checks.check_report import COMPARED_BY_BROKERS
from schemactl.checks.declarations import check_relaxed_strategy
from schemactl.checks.proposal import Comparison, Proposal, find_older_number_in_force
from schemactl.comparison.compatibility import find_changed_values
from schemactl.comparison.fingerprint import compute_broker_fingerprint
from schemactl.core.catalog import Topic
from schemactl.core.edits import AddReserved
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.findings import (
    Answer,
    Breakage,
    DataState,
    Direction,
    Finding,
    Incompatibility,
    Outcome,
    Verdict,
    quote_broker,
)
from schemactl.core.policies import READ_BY_OLD, READS_OLD, CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, get_live_versions
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import describe_obligation, describe_policy_origin, format_version_numbers
from schemactl.formats import (
    counterexample,
    explain,
    find_problems,
    find_unapplied_defaults,
    get_record_name,
    select_wire_definitions,
    spec,
)
from schemactl.formats.type_spec import Explanation

UNPROTECTED: Final = "UNPROTECTED_READERS_BREAK"
"""A rule that is off unless the project sets its severity, or --strict is given."""

_MAX_COUNTEREXAMPLES: Final = 100
"""Maximum number of findings of a topic with a counterexample, because the search takes time."""

_MAX_MESSAGE_LENGTH: Final = 300
"""Maximum length of a broker's message, which may quote both definitions, in characters."""

_RESERVED: Final = re.compile(r'without reserving the (?:number "(-?[0-9]+)"|name ("\w+"))\.')
"""The end of a message about a deleted part, with the number or the name to reserve."""

_NAME_RULES: Final = frozenset({"NAME_MISMATCH", "ROOT_MESSAGE_CHANGED"})
"""The rules about a changed name of a record or root message."""

_LATEST_ONLY: Final = {
    CompatibilityStrategy.BACKWARD_TRANSITIVE: (
        CompatibilityStrategy.BACKWARD,
        "readers may fail on messages older than that",
    ),
    CompatibilityStrategy.FORWARD_TRANSITIVE: (
        CompatibilityStrategy.FORWARD,
        "consumers older than that may fail on new messages",
    ),
    CompatibilityStrategy.FULL_TRANSITIVE: (
        CompatibilityStrategy.FULL,
        "readers may fail on messages older than that, and consumers older than that on new ones",
    ),
}
"""The strategy that compares only with the latest version, and its effect, for each transitive strategy."""


# Readers


def check_readers(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield one finding for each incompatibility or misreading, regardless of the number of versions, in the verdict's order."""
    approved = frozenset(verdict.approved)
    breakages_by_problem: dict[tuple[Incompatibility, Direction, bool], list[Breakage]] = {}
    for breakage in verdict.breakages:
        key = breakage.incompatibility, breakage.direction, breakage in approved
        breakages_by_problem.setdefault(key, []).append(breakage)
    for number, ((problem, direction, is_approved), group) in enumerate(breakages_by_problem.items()):
        breakage = group[0]
        has_counterexample = number < _MAX_COUNTEREXAMPLES and not problem.strict_only
        old = proposal.get_schema(breakage.against)
        explanation = explain(breakage, new=proposal.schema, old=old)
        judged, _ = select_wire_definitions(proposal.schema, old)
        # A type that is used twice breaks at one place of the definition.
        against = tuple(sorted({similar.against for similar in group}))
        source, older = locate_breakage(proposal, breakage, explanation, old)
        sentence = describe_obligation(
            proposal.topic.name,
            strategy=proposal.strategy,
            level=proposal.level,
            breakage=breakage,
            number=proposal.number,
            existing=proposal.versions,
            against=against,
        )
        remark = f" Version {get_live_versions(proposal.versions)[-1].number} has this as well." if is_approved else ""
        findings = comparison.make_finding(
            problem.rule,
            proposal.topic,
            f"{sentence}\n{on_one_line(explanation.reason)}{remark}",
            source=source,
            fix=explanation.fix,
            severity=None if problem.is_error else "warning",
            field=explanation.field,
            pointer=problem.pointer,
            direction=direction,
            against=against,
            older=older,
            counterexample=counterexample(breakage, new=proposal.schema, old=old) if has_counterexample else None,
            fingerprint=proposal.make_fingerprint(problem.rule, problem.pointer, direction, against=against),
            edit=None if explanation.edit is None else judged.edit(explanation.edit),
            alternatives=tuple(filter(None, map(judged.edit, explanation.alternatives))),
        )
        for finding in findings:
            # An approved version made this change, and it was approved then.
            yield make_older_problem(finding) if is_approved else finding


def make_older_problem(finding: Finding) -> Finding:
    """Return a finding about damage that the approved schema does as well: a note, which needs no waiver and fails nothing."""
    return replace(finding, severity="note", fingerprint="", edit=None, alternatives=(), predates_change=True)


def locate_breakage(
    proposal: Proposal, breakage: Breakage, explanation: Explanation, old: SchemaInfo
) -> tuple[Source | None, Source | None]:
    """Return the location of a breakage in the declared definition, and in the older one if the pointer belongs to it."""
    problem = breakage.incompatibility
    if problem.rule in ("SCHEMA_TYPE_CHANGED", "KEY_VALUE_TYPE_CHANGED"):
        return proposal.topic.locate(f"/schema{problem.pointer}/type"), None
    new, old = select_wire_definitions(proposal.schema, old)
    return new.locate(explanation.place), None if explanation.older is None else old.locate(explanation.older)


def remove_known_breakages(verdict: Verdict, proposal: Proposal, approved_schema: SchemaInfo) -> Verdict:
    """Return `verdict` without the breakages and misreadings of `approved_schema`, another text of the same version."""
    known_breakages = {*find_changed_values(proposal.versions, approved_schema, proposal.strategy)}
    new_breakages = tuple(breakage for breakage in verdict.data if breakage not in known_breakages)
    new_misreadings = tuple(breakage for breakage in verdict.misread if breakage not in known_breakages)
    state = DataState.COMPATIBLE if verdict.data and not new_breakages else verdict.state
    approved = tuple(breakage for breakage in verdict.approved if breakage not in known_breakages)
    return replace(verdict, state=state, data=new_breakages, misread=new_misreadings, approved=approved)


def check_unprotected_readers(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield the findings of `verdict`, which is under FULL, for a topic whose strategy does not protect readers."""
    for finding in check_readers(comparison, replace(proposal, strategy=CompatibilityStrategy.FULL), verdict):
        unprotected_finding = replace(
            finding,
            rule=UNPROTECTED,
            severity="warning",
            message=f"{proposal.topic.name} is {proposal.strategy} ({describe_policy_origin(proposal.level)}), which "
            f"does not protect any reader. Under FULL, this finding would be {finding.rule}:\n{finding.details}",
            fingerprint=proposal.make_fingerprint(
                UNPROTECTED, finding.pointer, finding.direction, against=finding.against
            ),
        )
        yield from comparison.apply_severity(unprotected_finding)


def make_renamed_proposal(comparison: Comparison, proposal: Proposal) -> Proposal | None:
    """Return the proposal to the versions of the old topic if the topic was renamed or moved, or None without such versions."""
    topic, moved = proposal.topic, comparison.moved.get(proposal.topic.name)
    approved_topics = comparison.approved.topics
    old_topic = moved.topic if moved else approved_topics.get(topic.renamed_from) if topic.renamed_from else None
    if old_topic is None or not old_topic.load().versions:
        return None
    return replace(proposal, versions=old_topic.versions, older_in_force=find_older_number_in_force(old_topic))


def check_renamed_topic(
    comparison: Comparison, topic: Topic, renamed: Proposal | None, verdict: Verdict | None
) -> Iterator[Finding]:
    """Yield findings against the versions of the old topic, if `topic` was renamed or moved from another project.

    Args:
        comparison: the comparison.
        topic: the declared topic.
        renamed: the proposal to the versions of the old topic, or None without such versions.
        verdict: the verdict on `renamed`.
    """
    old_name, moved = topic.renamed_from, comparison.moved.get(topic.name)
    if renamed is None or verdict is None:
        if old_name or moved:
            yield from comparison.make_finding(
                "RENAMED_FROM_UNKNOWN",
                topic,
                f"{topic.name} was renamed from {old_name}, which has no version in the approved history.",
                source=topic.locate("/renamed_from"),
            )
        return
    if moved:
        strategy = moved.strategy
        introduction = f"{topic.name} was {moved.topic.name} in the project {moved.project.path}; the versions below belong to that project."
    elif old_name:
        strategy, _ = comparison.approved.strategy(old_name, comparison.project.defaults)
        introduction = f"{topic.name} was {old_name}; the versions below belong to {old_name}."
    for finding in (
        *check_readers(comparison, renamed, verdict),
        *check_relaxed_strategy(comparison, renamed, verdict, strategy),
    ):
        yield replace(finding, message=f"{introduction}\n{finding.message}")


def check_buf_rules(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield violations of buf's rules against the latest version, if the project selects a category of rules."""
    category, latest = comparison.project.proto_rules, get_live_versions(proposal.versions)[-1:]
    if category is None or not latest or latest[0].info is None:
        return
    new, old = select_wire_definitions(proposal.schema, latest[0].info)
    known_problems = {
        (breakage.incompatibility.rule, breakage.incompatibility.pointer) for breakage in verdict.breakages
    }
    for violation in spec(new).find_buf_violations(category, new=new, old=old):
        if (violation.rule, violation.pointer) not in known_problems:
            reserved = _RESERVED.search(violation.message)
            edit = AddReserved(violation.pointer, reserved[1] or reserved[2]) if reserved else None
            yield from comparison.apply_severity(
                Finding(
                    rule=violation.rule,
                    severity="warning",
                    verdict="declaration",
                    topic=proposal.topic.name,
                    source=new.locate(violation.pointer),
                    message=f"buf's {category} on version {proposal.number} of {proposal.topic.name}: {violation.message}",
                    fix=f"Write `reserved {edit.text};` in its place."
                    if edit
                    else comparison.rules[violation.rule].fix,
                    edit=new.edit(edit) if edit else None,
                    pointer=violation.pointer,
                    against=(latest[0].number,),
                    fingerprint=proposal.make_fingerprint(
                        violation.rule, violation.pointer, against=(latest[0].number,)
                    ),
                )
            )


# Brokers


def check_own_release(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding if the brokers of the project's release reject the schema."""
    answer = verdict.broker
    if answer.outcome in (Outcome.OK, Outcome.UNCHANGED):
        return
    broker_message = quote_broker(_shorten_message(answer.message)) if answer.message.strip() else ""
    kinds_note = ""
    if proposal.broker_of_kinds and answer.outcome is Outcome.INCOMPATIBLE:
        kinds_note = " A broker compares the kinds of a topic with each other, by the strategy of the topic and not by `kinds_compatibility`."
    has_other_type = any(breakage.incompatibility.rule == "SCHEMA_TYPE_CHANGED" for breakage in verdict.data)
    yield from comparison.make_finding(
        f"BROKER_{answer.outcome.name}",
        proposal.topic,
        f"Pulsar {comparison.project.release} will reject version {proposal.number} of {proposal.topic.name}: {answer.outcome} under "
        f"{proposal.broker.strategy} ({describe_policy_origin(proposal.broker.level)}).{kinds_note}"
        f"{_describe_waiver_effect(proposal, answer)}{broker_message}",
        source=proposal.topic.locate("/schema/type") if has_other_type else proposal.schema.locate(""),
        fix=_suggest_broker_fix(comparison, proposal, verdict),
        fingerprint=compute_broker_fingerprint(proposal.topic.name, proposal.broker.versions, proposal.schema)
        if answer.outcome is Outcome.INCOMPATIBLE
        else "",
    )


def _describe_waiver_effect(proposal: Proposal, answer: Answer) -> str:
    """Describe the consequences of a waiver; the text is empty if the strategy compares only with the latest version."""
    latest_only = _LATEST_ONLY.get(proposal.strategy)
    if answer.outcome is not Outcome.INCOMPATIBLE or latest_only is None or proposal.broker_of_kinds:
        return ""
    strategy, unprotected = latest_only
    version_numbers = format_version_numbers([version.number for version in get_live_versions(proposal.versions)])
    return (
        f"\nUnder {proposal.strategy} the broker also compares all later versions with {version_numbers}: if you "
        "waive this, each of them will need a "
        f"waiver. Better, in this order: declare a new topic with `renamed_from: {proposal.topic.name}`; set {strategy}, which compares "
        f"only with the latest version, so that {unprotected}; or, if the topic retains no messages, write "
        f"`generation: {proposal.topic.generation + 1}`, which deletes {version_numbers}."
    )


def _suggest_broker_fix(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> str:
    """Return the fix for a rejection by the broker's checker, or empty if only the rule's page has one."""
    answer = verdict.broker
    if answer.outcome is not Outcome.INCOMPATIBLE:
        return ""
    if proposal.broker_of_kinds:
        return (
            "Set `schema_compatibility_strategy: ALWAYS_COMPATIBLE` for the topic: brokers then store every kind, "
            "and `kinds_compatibility` protects the readers of each kind. Or declare a separate topic for the kind."
        )
    if proposal.strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        return "Set another strategy: under ALWAYS_INCOMPATIBLE no schema may follow another."
    rule = comparison.rules.get(answer.message.partition(":")[0])
    if rule:
        return rule.fix
    if any(breakage.incompatibility.rule in COMPARED_BY_BROKERS for breakage in verdict.breakages):
        return "Fix the data findings of this version."
    if spec(proposal.schema).checker == "proto":
        return "Keep the full name of the root message: it is all that the broker's checker compares."
    return ""


def check_other_releases(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each different answer of brokers of other releases, which matters for an upgrade."""
    project_release, schema = comparison.project.release, proposal.schema
    known_problem = next(find_problems(schema, project_release), None)
    answers: dict[tuple[str, str, str], list[Release]] = {}
    for release in (release for release in Release if release is not project_release):
        stored = VersionList(proposal.broker.versions, release, checker_changes=comparison.project.defaults.checkers)
        answer = stored.put(schema, proposal.broker.strategy)
        problem = None if known_problem else next(find_problems(schema, release), None)
        if problem or answer.outcome is not verdict.broker.outcome:
            message = on_one_line(problem.message) if problem else _shorten_message(answer.message)
            key = answer.outcome.value, message, problem.pointer if problem else ""
            answers.setdefault(key, []).append(release)
    for (outcome, message, pointer), releases in answers.items():
        release_names = " and ".join(releases)
        yield from comparison.make_finding(
            "OTHER_RELEASE_DIFFERS",
            proposal.topic,
            f"Pulsar {project_release} answers {verdict.broker.outcome} to version {proposal.number} of "
            f"{proposal.topic.name}, {release_names} "
            f"{'answers' if len(releases) == 1 else 'answer'} {outcome}" + (f": {message}" if message else "."),
            source=schema.locate(pointer),
            pointer=pointer,
        )


def _shorten_message(message: str) -> str:
    message = on_one_line(" ".join(message.split()))
    return message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[:_MAX_MESSAGE_LENGTH]} ..."


# Versions


def check_ignored_edit(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that Pulsar does not store the edit."""
    old_schema = proposal.get_schema(proposal.number).load()
    difference = "only doc, aliases, enum default or properties differ"
    proto_note = ""
    new_proto = proposal.schema.load().proto
    if old_schema.proto and new_proto is None:
        difference = "its definition differs at most in doc, aliases, enum default or properties"
        proto_note = " The topic no longer declares `proto:`, so the messages in its payloads are unknown."
    elif old_schema.proto and new_proto and old_schema.proto.load() != new_proto.load():
        difference = "its definition differs at most in doc, aliases, enum default or properties"
        proto_note = " The `.proto` differs, which Pulsar never sees."
    yield from comparison.make_finding(
        "NOT_STORED",
        proposal.topic,
        f"{proposal.topic.name}: {difference} from version {proposal.number}. Pulsar compares none of them and stores nothing; generated "
        f"readers use the new text.{proto_note}",
        source=proposal.schema.locate(""),
    )


def check_unusable_defaults(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each new default that no reader can use, and each new ambiguous alias, except defaults and aliases of the latest version."""
    versions = get_live_versions(proposal.versions)
    latest = versions[-1].info if versions else None
    known_messages: set[str] = set()
    with suppress(InvalidSchema):
        known_messages.update(
            default.message for default in (spec(latest).find_unusable_defaults(latest) if latest else ())
        )
    for default in spec(proposal.schema).find_unusable_defaults(proposal.schema):
        is_in_verdict = any(breakage.incompatibility.rule == default.rule for breakage in verdict.data)
        if default.message not in known_messages and not is_in_verdict:
            yield from comparison.make_finding(
                default.rule,
                proposal.topic,
                f"Version {proposal.number} of {proposal.topic.name}: {on_one_line(default.message)}.",
                source=proposal.schema.locate(default.pointer),
                pointer=default.pointer,
            )


def check_unapplied_defaults(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding for each default that a protected reader does not apply to messages of the other version."""
    versions = get_live_versions(proposal.versions)
    old, new = versions[-1].info if versions else None, proposal.schema
    if old is None or (comparison.project.generate and comparison.project.generate.json_defaults):
        return
    sides = [(new, old, new, f"version {versions[-1].number}")] if proposal.strategy in READS_OLD else []
    if proposal.strategy in READ_BY_OLD:
        sides.append((old, new, old, f"version {proposal.number}"))
    with suppress(InvalidSchema):
        for reader, writer, owner, writer_name in sides:
            for default in find_unapplied_defaults(reader=reader, writer=writer):
                yield from comparison.make_finding(
                    default.rule,
                    proposal.topic,
                    f"Messages of {writer_name} of {proposal.topic.name}: {on_one_line(default.message)}.",
                    source=owner.locate(default.pointer) if owner is new else new.locate(""),
                    pointer=default.pointer,
                    direction="new_reads_old" if owner is new else "old_reads_new",
                    against=(versions[-1].number,),
                )


def check_type_namespaces(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding if a new version differs from the latest only in the namespaces of its types."""
    schema = proposal.schema
    versions = get_live_versions(proposal.versions)
    if not versions or verdict.data or spec(schema).language != "avro":
        return
    latest, old = versions[-1].number, versions[-1].info
    if old is None or spec(old).language != "avro":
        return
    if _remove_namespaces(spec(old).get_content(old)) != _remove_namespaces(spec(schema).get_content(schema)):
        return
    yield from comparison.make_finding(
        "NAMESPACE_CHANGED",
        proposal.topic,
        f"Version {proposal.number} of {proposal.topic.name} differs from version {latest} only in the namespaces of "
        "types: the registry treats it as another schema, and readers treat these as other types where they look up "
        "full names.",
        source=schema.locate("/namespace"),
        pointer="/namespace",
        against=(latest,),
    )


def check_record_name(comparison: Comparison, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding if a new version of a topic with one schema has another record name than the latest, unless a data finding reports it."""
    schema, versions = proposal.schema, get_live_versions(proposal.versions)
    old = versions[-1].info if versions else None
    if old is None or proposal.topic.kind or old.type is not schema.type:
        return
    old_name, new_name = get_record_name(old), get_record_name(schema)
    reported_rules = {
        breakage.incompatibility.rule for breakage in verdict.breakages if breakage.against == versions[-1].number
    }
    if not (old_name and new_name) or old_name == new_name or not reported_rules.isdisjoint(_NAME_RULES):
        return
    if spec(schema).checker == "proto" and verdict.broker.outcome is Outcome.INCOMPATIBLE:
        # The broker compares only this name.
        return
    is_avro = spec(schema).language == "avro"
    if is_avro and _remove_namespaces(spec(old).get_content(old)) == _remove_namespaces(
        spec(schema).get_content(schema)
    ):
        # NAMESPACE_CHANGED.
        return
    yield from comparison.make_finding(
        "RECORD_RENAMED",
        proposal.topic,
        f"Version {proposal.number} of {proposal.topic.name} has the record {on_one_line(new_name)}, and version {versions[-1].number} has "
        f"{on_one_line(old_name)}. If both are written from now on, readers with one schema decode messages of the "
        "other to rows of nulls and defaults.",
        source=schema.locate("/name"),
        pointer="/name",
        against=(versions[-1].number,),
    )


def _remove_namespaces(value: Any, key: str = "") -> Any:
    """Return the JSON value of a definition without docs and without namespaces of names and references."""
    match value:
        case dict():
            entries = ((name, child) for name, child in value.items() if name not in ("namespace", "doc"))
            return {name: child if name == "default" else _remove_namespaces(child, name) for name, child in entries}
        case list():
            return [_remove_namespaces(child, key) for child in value]
        case str() if key in ("", "name", "type", "items", "values"):
            return value.rpartition(".")[2]
    return value


def check_reverted_content(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding if older content is declared again, which does not become the latest version."""
    number = proposal.number
    if number == proposal.latest:
        return
    latest = proposal.broker.versions[-1].number
    yield from comparison.make_finding(
        "REVERTED_TO_OLDER",
        proposal.topic,
        f"{proposal.topic.name} declares the content of version {number} again. The registry answers {number} to the upload and "
        f"its latest stays {latest}: consumers that ask for the latest schema still get version {latest}.",
        source=proposal.schema.locate(""),
    )
