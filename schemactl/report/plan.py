"""Render a plan as text, and as a report on a target that each format arranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from schemactl.comparison.revision_diff import MAX_SHOWN_TOPICS, NewVersion, VersionEffect
from schemactl.core import wording
from schemactl.core.errors import join_first
from schemactl.core.names import NamespaceName, TopicName, format_kind_name
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import describe_waiver, format_count, get_name_type
from schemactl.deploy.plan import Plan, PlanNoteKind
from schemactl.deploy.steps.step import Step
from schemactl.formats.part_changes import outline
from schemactl.report.check import Shade
from schemactl.report.document import ReportLine, Sign, TargetReport, describe_tip, group_by_name, list_alternatives
from schemactl.report.target_blocks import (
    make_broker_blocks,
    make_broker_lines,
    make_misread_block,
    make_unreadable_block,
)

_NAMED_TYPE: Final = re.compile(r"(?:(?<=: )|(?<=> ))(record|enum|fixed) [\w.]+")

_MAX_PARTS: Final = 20
"""The maximum number of changed fields of a version that are shown."""


def render_plan(plan: Plan, *, color: bool = False) -> str:
    """Return a block for each namespace and topic, the notes, the rejections and the summary, as text."""
    return make_plan_report(plan).render(color=color)


def make_plan_report(plan: Plan, digest: str = "") -> TargetReport:
    """Return the report on a plan, with its digest if the plan can be applied."""
    blocks = [tuple(_list_block_lines(name, steps, plan)) for name, steps in group_by_name(plan.steps).items()]
    if plan.notes:
        notes = (ReportLine(f"{note.name} {note.message}", "=", 1) for note in plan.notes)
        blocks.append((ReportLine("Unchanged:"), *notes))
    blocks += make_broker_blocks(plan.brokers)
    registered = {name for name, _ in plan.new_versions}
    if len(registered) > MAX_SHOWN_TOPICS:
        text = f"Changed fields and affected readers of {len(registered)} topics are not shown: `schemactl plan --topic TOPIC` shows them."
        blocks.append((ReportLine(text),))
    problems = [
        (
            ReportLine(str(refusal.name), "!", strong=str(refusal.name)),
            ReportLine(refusal.message, depth=1),
            *list_alternatives("Fix", refusal.fix),
        )
        for refusal in plan.refusals
    ]
    problems += [make_unreadable_block(plan.unreadable)] if plan.unreadable else []
    # Rejections come first: how they are resolved decides the version numbers.
    misread = [topic for topic in plan.misread if topic.name not in {refusal.name for refusal in plan.refusals}]
    if misread:
        target, planned = plan.origin.target, bool(plan.steps)
        problems.append(
            make_misread_block(misread, target=target, after=not plan.has_unrecorded_mismatch_now, planned=planned)
        )
    shade: Shade = "bad" if plan.leaves_out or plan.misread else "doubtful" if plan.steps else "good"
    origin = plan.origin
    tip = "" if origin.proposed else describe_tip(origin.tip)
    # A broker of an unknown release is predicted as the nearest lower known release.
    is_known_release = not origin.version or origin.version.split(".")[:2] == origin.release.split(".")
    release_note = "" if is_known_release else f" (it is {origin.version})"
    later = f" ({format_count(origin.later, 'later commit')} not planned)" if origin.later else ""
    heading = f"Plan for {origin.target} ({origin.registry}) from {origin.ref}{tip}{later}, answers as of Pulsar {origin.release}{release_note}"
    versions_by_client: dict[str, list[str]] = {}
    for (name, number), effect in plan.effects.items():
        for client, _ in effect.broken:
            versions_by_client.setdefault(client, []).append(f"{str(name).rpartition('/')[2]} v{number}")
    broken_clients = ""
    if versions_by_client:
        clients_by_versions: dict[str, list[str]] = {}
        for client, versions in versions_by_client.items():
            clients_by_versions.setdefault(" and ".join(versions), []).append(client)
        groups = [f"{join_first(clients)} by {versions}" for versions, clients in clients_by_versions.items()]
        broken_clients = on_one_line(
            f"{format_count(len(versions_by_client), 'client')} will break: {join_first(groups)}."
        )
    return TargetReport(
        "plan",
        plan.origin.target,
        heading,
        tuple(blocks),
        tuple(problems),
        (summarize_plan(plan), shade),
        digest,
        broken_clients=broken_clients,
    )


def make_short_plan_report(plan: Plan, digest: str = "") -> TargetReport:
    """Return the plan without its steps: the summary and the rejections."""
    problems = [(ReportLine(f"{refusal.name}: {refusal.message}", "!"),) for refusal in plan.refusals]
    problems += [(line,) for line in make_unreadable_block(plan.unreadable)[1:]]
    problems += [(line,) for line in make_broker_lines(plan.brokers)]
    return replace(make_plan_report(plan, digest), blocks=(), problems=tuple(problems), is_short=True)


def summarize_plan(plan: Plan) -> str:
    """Return a line with the number of changes, and of the topics that the plan leaves out."""
    skipped = sum(note.kind is PlanNoteKind.DELETION_SKIPPED for note in plan.notes)
    suffix = f"; {format_count(skipped, 'deletion')} skipped" if skipped else ""
    suffix += f"; left out: {describe_left_out(plan)}" if plan.leaves_out else ""
    if plan.may_lose or (plan.leaves_out and not plan.steps):
        return f"Nothing can be applied{suffix}."
    if not plan.steps and plan.misread:
        return f"No changes, but messages of {format_count(len(plan.misread), 'topic')} would be misread{suffix}."
    if not plan.steps:
        until = f" until {plan.origin.tip.short}" if plan.origin.later and plan.origin.tip else ""
        return f"No changes. The registry has everything that Git approved{until}{suffix}."
    return f"Plan: {count_changes(plan.steps, 'to register', 'to delete')}{suffix}."


def describe_left_out(plan: Plan, *, rejected_only: bool = False) -> str:
    """Return the number of topics and namespaces that the plan leaves out, as text.

    Args:
        plan: the plan.
        rejected_only: whether to ignore unreadable declarations, and topics that wait for another target.
    """
    if plan.may_lose:
        return f"everything, for {format_count(len(plan.may_lose), 'setting')} that could lose messages"
    names = {refusal.name for refusal in plan.refusals if not (rejected_only and refusal.waits_for)}
    topics = sum(isinstance(name, TopicName) for name in names)
    namespaces = len(names) - topics
    parts = [format_count(topics, "topic")] if topics else []
    if plan.unreadable and not rejected_only:
        parts.append(format_count(len(plan.unreadable), "unreadable declaration"))
    return " and ".join([*parts, *([f"the policies of {format_count(namespaces, 'namespace')}"] if namespaces else [])])


def _list_block_lines(name: NamespaceName | TopicName, steps: list[Step], plan: Plan) -> Iterator[ReportLine]:
    sign: Sign = "+" if any(step.sign == "+" for step in steps) else steps[0].sign
    suffix = "".join(step.suffix for step in steps)
    yield ReportLine(f"{get_name_type(name)} {name}{suffix}", sign, strong=str(name))
    topics_by_kind: dict[str, TopicName] = {}
    for step in steps:
        yield from (ReportLine(line, line_sign, 1) for line_sign, line in step.list_lines())
        if step.new_version:
            topic, version = step.new_version
            topics_by_kind[version.kind] = topic
            if effect := plan.effects.get((topic, version.number)):
                yield from (
                    ReportLine(on_one_line(line), line_sign, 2) for line_sign, line in list_effect_lines(effect)
                )
    for kind, topic in topics_by_kind.items():
        if order := plan.upgrade_first.get(format_kind_name(topic, kind)):
            yield ReportLine(f"upgrade first{f' for {kind}' if kind else ''}: {order}", "=", 1)


def list_effect_lines(effect: VersionEffect) -> Iterator[tuple[Sign, str]]:
    """Yield the changes of a version, and the readers and clients that it breaks, each with its sign."""
    change = effect.change
    lines = [*_list_part_lines(change)]
    yield from lines[:_MAX_PARTS]
    if len(lines) > _MAX_PARTS:
        yield "~", f"and {format_count(len(lines) - _MAX_PARTS, 'more change')}"
    for breakage in change.breaks:
        if breakage.is_error:
            against = wording.format_version_numbers(breakage.against)
            match breakage.direction:
                case "new_reads_old":
                    readers = f"cannot read {against}"
                case "old_reads_new":
                    readers = f"readers with {against} cannot read it"
                case "both":
                    readers = f"it and {against} cannot read each other"
            yield "!", f"{readers}: {breakage.reason}"
            if breakage.waiver:
                yield "=", describe_waiver(breakage.waiver)
    clients_by_reason: dict[str, list[str]] = {}
    for client, reason in effect.broken:
        clients_by_reason.setdefault(reason, []).append(client)
    yield from (("!", f"breaks {', '.join(clients)}: {reason}") for reason, clients in clients_by_reason.items())
    if effect.safe:
        yield "=", f"safe for {', '.join(effect.safe)}"
    elif effect.is_last and change.before and not change.is_breaking and not effect.broken:
        yield "=", "safe for every reader that the strategy protects"


def _list_part_lines(change: NewVersion) -> Iterator[tuple[Sign, str]]:
    """Yield the changed fields of a version, and the fields of each new type in one line."""
    old_types = (
        {part.rpartition(".")[0] for part in outline(change.before.info)}
        if change.before and change.before.info
        else set()
    )
    added_types = {part.part for part in change.parts if part.kind == "added" and part.part and "." not in part.part}
    members: dict[str, list[str]] = {name: [] for name in added_types - old_types}
    for part in change.parts:
        type_name, _, name = part.part.rpartition(".")
        if part.kind == "added" and type_name in members:
            members[type_name].append(name)
    for part in change.parts:
        if part.kind == "documented" or (part.kind == "added" and part.part.rpartition(".")[0] in members):
            continue
        sign: Sign = "+" if part.kind == "added" else "-" if part.kind == "removed" else "~"
        # The part has the name of the type already.
        text = _NAMED_TYPE.sub(r"\1", part.text)
        if members.get(part.part):
            type_text, separator, default = text.partition(", default ")
            text = f"{type_text} of {', '.join(members[part.part])}{separator}{default}"
        yield sign, f"{text}{' (widened)' if part.kind == 'widened' else ''}"


def count_changes(steps: tuple[Step, ...], registered: str, deleted: str) -> str:
    """Return the number of namespaces, topics, versions and deletions of steps; `registered` and `deleted` are the verbs after the last two."""
    namespaces = len({step.name for step in steps if isinstance(step.name, NamespaceName)})
    topics = len({step.name for step in steps if isinstance(step.name, TopicName)})
    versions = sum(step.new_version is not None for step in steps)
    deletions = sum(step.is_deletion for step in steps)
    parts = [format_count(count, noun) for count, noun in ((namespaces, "namespace"), (topics, "topic")) if count]
    parts += [f"{format_count(versions, 'version')} {registered}"] if versions else []
    parts += [f"{format_count(deletions, 'schema')} {deleted}"] if deletions else []
    return ", ".join(parts) or "nothing"
