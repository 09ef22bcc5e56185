"""Findings about a changed schema: for readers, for brokers, and about its version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from schemactl.broker import upload
from schemactl.broker.checkers import known_to
from schemactl.checks.check_report import COMPARED_BY_BROKERS
from schemactl.checks.declarations import relaxed
from schemactl.checks.proposal import Proposal, Run, number_in_force
from schemactl.comparison.compatibility import breakages
from schemactl.comparison.fingerprint import broker_fingerprint
from schemactl.core.errors import Source
from schemactl.core.findings import Answer, Breakage, DataState, Direction, Finding, Incompatibility, Outcome, Verdict
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, live
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import obligation, policy_origin, versions
from schemactl.formats import counterexample, explain, on_the_wire, problems, spec
from schemactl.formats.type_spec import Explanation

_PROVED: Final = 100
"""The most findings of a topic that come with a counterexample: searching for one takes time."""

UNPROTECTED: Final = "UNPROTECTED_READERS_BREAK"
"""A rule that is off unless the project gives it a severity, or --strict is given."""

_SHOWN: Final = 300
"""The most characters of a broker's message, which may quote both definitions."""


def data(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield one finding for each incompatibility, whatever the number of versions that have it, in the verdict's order."""
    groups: dict[tuple[Incompatibility, Direction], list[Breakage]] = {}
    for breakage in verdict.data:
        groups.setdefault((breakage.incompatibility, breakage.direction), []).append(breakage)
    for number, ((what, direction), group) in enumerate(groups.items()):
        nearest = group[0]
        provable = number < _PROVED and not what.strict_only
        old = proposal.version(nearest.against)
        explanation = explain(nearest, new=proposal.schema, old=old)
        against = tuple(sorted(breakage.against for breakage in group))
        source, older = places(proposal, nearest, explanation, old)
        sentence = obligation(
            proposal.topic.name,
            strategy=proposal.strategy,
            level=proposal.level,
            breakage=nearest,
            number=proposal.number,
            existing=proposal.versions,
            against=against,
        )
        yield from run.find(
            what.rule,
            proposal.topic,
            f"{sentence}\n{on_one_line(explanation.reason)}",
            source=source,
            fix=explanation.fix,
            severity="warning" if what.strict_only else None,
            field=explanation.field,
            pointer=what.pointer,
            direction=direction,
            against=against,
            older=older,
            counterexample=counterexample(nearest, new=proposal.schema, old=old) if provable else None,
            fingerprint=proposal.fingerprint(what.rule, what.pointer, direction, against=against),
        )


def unprotected(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield the findings that FULL would bring, according to `verdict`, for a strategy that protects no readers."""
    for finding in data(run, replace(proposal, strategy=CompatibilityStrategy.FULL), verdict):
        reason = finding.message.partition("\n")[2]
        weighed = replace(
            finding,
            rule=UNPROTECTED,
            severity="warning",
            message=f"{proposal.topic.name} is {proposal.strategy} ({policy_origin(proposal.level)}), which protects no reader. Under "
            f"FULL this is {finding.rule}:\n{reason}",
            fingerprint=proposal.fingerprint(UNPROTECTED, finding.pointer, finding.direction, against=finding.against),
        )
        yield from run.weigh(weighed)


def new_breakages(verdict: Verdict, proposal: Proposal, before: SchemaInfo) -> Verdict:
    """Return `verdict` without the breakages that `before`, another text of the same version, has as well."""
    known = {*breakages(proposal.versions, before, proposal.strategy, by_any_release=True)}
    data = tuple(each for each in verdict.data if each not in known)
    state = DataState.COMPATIBLE if verdict.data and not data else verdict.state
    return replace(verdict, state=state, data=data)


def places(
    proposal: Proposal, breakage: Breakage, explanation: Explanation, old: SchemaInfo
) -> tuple[Source | None, Source | None]:
    """Return the place of a breakage in the declared definition, and in the older one if the pointer belongs to that."""
    found = breakage.incompatibility
    if found.rule in ("SCHEMA_TYPE_CHANGED", "KEY_VALUE_TYPE_CHANGED"):
        return proposal.topic.locate(f"/schema{found.pointer}/type"), None
    new, old = on_the_wire(proposal.schema, old)
    return new.locate(explanation.place), None if explanation.older is None else old.locate(explanation.older)


def renamed(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield findings against the versions of the topic that was renamed, or moved here from another project."""
    topic, old = proposal.topic, proposal.topic.renamed_from
    moved = run.moved.get(topic.name)
    if old is None and moved is None:
        return
    former = run.approved.topics.get(old) if old else moved.topic if moved else None
    if former is None or not former.load().versions:
        yield from run.find(
            "RENAMED_FROM_UNKNOWN",
            topic,
            f"{topic.name} was renamed from {old}, which has no version in the approved history.",
            source=topic.locate("/renamed_from"),
        )
        return
    if old or moved is None:
        strategy, _ = run.approved.strategy(former.name, run.project.defaults)
        history = f"{topic.name} was {old}; the versions below are those of {old}."
    else:
        strategy = moved.strategy
        history = (
            f"{topic.name} was declared in the project {moved.project}; the versions below are those of that project."
        )
    proposal = replace(proposal, versions=former.versions, in_force=number_in_force(former))
    verdict = proposal.verdict(run.project)
    for finding in (*data(run, proposal, verdict), *relaxed(run, proposal, verdict, strategy)):
        yield replace(finding, message=f"{history}\n{finding.message}")


def buf_rules(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield violations of buf's rules against the latest version, if the project names a category of rules."""
    category, latest = run.project.proto_rules, live(proposal.versions)[-1:]
    if category is None or not latest or latest[0].info is None:
        return
    new, old = on_the_wire(proposal.schema, latest[0].info)
    known = {(each.incompatibility.rule, each.incompatibility.pointer) for each in verdict.data}
    for found in spec(new).buf_violations(category, new=new, old=old):
        if (found.rule, found.pointer) not in known:
            yield from run.weigh(
                Finding(
                    rule=found.rule,
                    severity="warning",
                    verdict="declaration",
                    topic=proposal.topic.name,
                    source=new.locate(found.pointer),
                    message=f"buf's {category} on version {proposal.number} of {proposal.topic.name}: {found.message}",
                    fix=run.rules[found.rule].fix,
                    pointer=found.pointer,
                    against=(latest[0].number,),
                    fingerprint=proposal.fingerprint(found.rule, found.pointer, against=(latest[0].number,)),
                )
            )


_LATEST_ALONE: Final = {
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
"""For each transitive strategy the one that compares with the latest version only, and what that does not protect."""


def own_release(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding if the brokers of the project's release reject the schema."""
    answer = verdict.broker
    if answer.outcome in (Outcome.OK, Outcome.UNCHANGED):
        return
    says = f"\nIt says: {_short(answer.message)}" if answer.message.strip() else ""
    has_other_type = any(breakage.incompatibility.rule == "SCHEMA_TYPE_CHANGED" for breakage in verdict.data)
    yield from run.find(
        f"BROKER_{answer.outcome.name}",
        proposal.topic,
        f"Pulsar {run.project.release} will reject version {proposal.number} of {proposal.topic.name}: {answer.outcome} under "
        f"{proposal.strategy} ({policy_origin(proposal.level)}).{_after_a_waiver(proposal, answer)}{says}",
        source=proposal.topic.locate("/schema/type") if has_other_type else proposal.schema.locate(""),
        fix=_broker_fix(run, proposal, verdict),
        fingerprint=broker_fingerprint(proposal.topic.name, proposal.versions, proposal.schema)
        if answer.outcome is Outcome.INCOMPATIBLE
        else "",
    )


def _after_a_waiver(proposal: Proposal, answer: Answer) -> str:
    """Return a line about the consequences of a waiver; "" if the strategy compares with the latest version only."""
    latest_alone = _LATEST_ALONE.get(proposal.strategy)
    if answer.outcome is not Outcome.INCOMPATIBLE or latest_alone is None:
        return ""
    strategy, lost = latest_alone
    old = versions([version.number for version in live(proposal.versions)])
    return (
        f"\nUnder {proposal.strategy} the broker compares all later versions with {old}, too: if you waive this, each of them will need a "
        f"waiver. Better, in this order: declare a new topic with `renamed_from: {proposal.topic.name}`; set {strategy}, which compares "
        f"only with the latest version, so that {lost}; or, if the topic retains no messages, write "
        f"`generation: {proposal.topic.generation + 1}`, which deletes {old}."
    )


def _broker_fix(run: Run, proposal: Proposal, verdict: Verdict) -> str:
    """Return the fix for what the broker's checker rejects; "" if only the rule's page can tell."""
    answer = verdict.broker
    if answer.outcome is not Outcome.INCOMPATIBLE:
        return ""
    if proposal.strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        return "Set another strategy: under ALWAYS_INCOMPATIBLE no schema may follow another."
    rule = run.rules.get(answer.message.partition(":")[0])
    if rule:
        return rule.fix
    if any(breakage.incompatibility.rule in COMPARED_BY_BROKERS for breakage in verdict.data):
        return "Change the schema as the data findings of this version say."
    if spec(proposal.schema).checker == "proto":
        return "Keep the full name of the root message: it is all that the broker's checker compares."
    return ""


def other_releases(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield different answers of brokers of other releases, to be known before an upgrade."""
    ours, schema = run.project.release, proposal.schema
    known = next(problems(schema, ours), None)
    answers: dict[tuple[str, str, str], list[Release]] = {}
    for release in (each for each in Release if each is not ours):
        optional = known_to(release, run.project.defaults.checkers)
        answer = upload.put(proposal.versions, schema, proposal.strategy, release, optional=optional)
        problem = None if known else next(problems(schema, release), None)
        if problem or answer.outcome is not verdict.broker.outcome:
            words = on_one_line(problem.what) if problem else _short(answer.message)
            key = answer.outcome.value, words, problem.pointer if problem else ""
            answers.setdefault(key, []).append(release)
    for (outcome, words, pointer), releases in answers.items():
        others = " and ".join(releases)
        yield from run.find(
            "OTHER_RELEASE_DIFFERS",
            proposal.topic,
            f"Pulsar {ours} answers {verdict.broker.outcome} to version {proposal.number} of {proposal.topic.name}, {others} "
            f"{'answers' if len(releases) == 1 else 'answer'} {outcome}" + (f": {words}" if words else "."),
            source=schema.locate(pointer),
            pointer=pointer,
        )


def _short(words: str) -> str:
    words = on_one_line(" ".join(words.split()))
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} ..."


def not_stored(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that Pulsar ignores the edit."""
    before = proposal.version(proposal.number).load()
    differs = "only doc, aliases, enum default or properties differ"
    more = ""
    now = proposal.schema.load().proto
    if before.proto and now is None:
        differs = "its definition differs at most in doc, aliases, enum default or properties"
        more = " It no longer declares `proto:`, so nothing is known of its messages."
    elif before.proto and now and before.proto.load() != now.load():
        differs = "its definition differs at most in doc, aliases, enum default or properties"
        more = " The `.proto` differs, which Pulsar never sees."
    yield from run.find(
        "NOT_STORED",
        proposal.topic,
        f"{proposal.topic.name}: {differs} from version {proposal.number}. Pulsar compares none of them and stores nothing; generated "
        f"readers use the new text.{more}",
        source=proposal.schema.locate(""),
    )


def moved(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield the finding that a new version differs from the latest only in the namespaces of its types."""
    schema = proposal.schema
    versions = live(proposal.versions)
    if not versions or verdict.data or spec(schema).language != "avro":
        return
    latest, old = versions[-1].number, versions[-1].info
    if old is None or spec(old).language != "avro":
        return
    if _placeless(spec(old).content(old)) != _placeless(spec(schema).content(schema)):
        return
    yield from run.find(
        "NAMESPACE_CHANGED",
        proposal.topic,
        f"Version {proposal.number} of {proposal.topic.name} differs from version {latest} in the namespaces of types alone: the registry "
        "takes it for another schema, and readers for other types where they look for a full name.",
        source=schema.locate("/namespace"),
        pointer="/namespace",
        against=(latest,),
    )


def _placeless(value: Any, key: str = "") -> Any:
    """Return the JSON value of a definition without docs, and without the namespaces of names and references."""
    match value:
        case dict():
            kept = ((name, each) for name, each in value.items() if name not in ("namespace", "doc"))
            return {name: each if name == "default" else _placeless(each, name) for name, each in kept}
        case list():
            return [_placeless(each, key) for each in value]
        case str() if key in ("", "name", "type", "items", "values"):
            return value.rpartition(".")[2]
    return value


def reverted(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that older content is declared again, which does not become the latest version again."""
    known = proposal.number
    if known == proposal.latest:
        return
    yield from run.find(
        "REVERTED_TO_OLDER",
        proposal.topic,
        f"{proposal.topic.name} declares the content of version {known} again. The registry answers {known} to the upload and "
        f"its latest stays {proposal.latest}: consumers that ask for the latest schema still get version {proposal.latest}.",
        source=proposal.schema.locate(""),
    )
