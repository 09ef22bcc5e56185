"""`waive`: approve one finding of `check`, with a reason, an owner and a last day."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, add_timeout
from schemactl.core import atomic_files
from schemactl.core.catalog import parse_day
from schemactl.core.deadline import DEFAULT_S
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.findings import Finding, Waiver
from schemactl.core.invisible_characters import has_visible_letter
from schemactl.core.json_values import WaiverView, make_view
from schemactl.core.names import TopicName
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.check_report import Cause, CheckReport


_FEWEST_DIGITS: Final = 4
"""As the shortest abbreviation of a commit id in Git."""

_MAX_LISTED: Final = 10


def configure_waive(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `waive`."""
    parser.description = (
        "Add an entry to the waiver file for a finding of `check`, so that this one change is approved in spite of "
        "it. If the broker rejects the same edit, the waiver covers that finding as well. FINGERPRINT is the digest "
        "that `check` prints next to the finding, or its beginning; a finding that several topics share has one "
        "common fingerprint. The waiver counts in the pull request "
        "that adds it: commit the file together with the change."
    )
    parser.epilog = (
        "examples:\n"
        '  schemactl waive 4ee94166e8ab --reason "no message ever had it" --until 2027-01-31 --owner team-orders\n'
        '  schemactl waive 4ee94166e8ab --reason "consumers are gone" --until 2027-01-31 --owner ada --base origin/main\n'
    )
    parser.add_argument("fingerprint", metavar="FINGERPRINT", help="of the finding, or its first digits")
    add_options(
        parser,
        "--reason TEXT: why the change is right in spite of the finding",
        "--until YYYY-MM-DD: the last day, in UTC, on which the waiver approves anything; at most 366 days ahead",
        required=True,
    )
    add_options(parser, "--owner NAME: the responsible person or team (default: the topic's `owner`)")
    add_options(parser, "--target NAME: look for the finding as a check for this target does")
    sources = parser.add_mutually_exclusive_group()
    add_options(
        sources,
        "--staged: look for the finding in the index, as the pre-commit hook does",
        "--base REF: look for it in HEAD, as a pull-request check does",
    )
    add_timeout(parser, DEFAULT_S)
    add_result_formats(parser)


def run_waive(args: argparse.Namespace, context: Context) -> int:
    """Return 0: the entries are written."""
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project

    request = CheckRequest(
        context.directory, context.config, staged=args.staged, approved_ref=args.base, strict=True, target=args.target
    )
    until = parse_last_day(args.until, request.today)
    for option, text in (("--reason", args.reason), ("--owner", args.owner)):
        if text is not None and not text.strip():
            raise UsageError(f"{option} is empty: a waiver needs a reason and an owner")
    digits = args.fingerprint.removeprefix("sha256:").lower()
    if len(digits) < _FEWEST_DIGITS or not re.fullmatch(r"[0-9a-f]+", digits, re.ASCII):
        raise UsageError(
            f"`{args.fingerprint}` is not a fingerprint: expected its first {_FEWEST_DIGITS} hexadecimal digits or more",
            fix="`schemactl check` prints the command with each finding that can be waived",
        )
    report = check_project(request, context.deadline, note=context.note)
    from schemactl.comparison.fingerprint import BROKER_RULE
    from schemactl.declare.waivers import add_waivers, parse_waivers

    findings = select_findings(report, digits, args.fingerprint)
    owners = {topic.topic: topic.owner for topic in report.topics}
    waivers = [_make_waiver(finding, args, until, owners) for finding in findings if not finding.waiver]
    if not waivers and (waiver := findings[0].waiver):
        raise SchemactlError(
            f"this finding is waived already, until {waiver.until}", fix="change that entry", source=waiver.source
        )
    path = report.waiver_path
    file = Path(context.top) / path
    data = atomic_files.read(file, below=context.top) or b""
    existing_waivers = {waiver.key: waiver for waiver in parse_waivers(path, data)[0]}
    for waiver in waivers:
        if existing := existing_waivers.get(waiver.key):
            raise SchemactlError(
                f"the waiver file has an entry for {waiver.rule} on {waiver.topic} already, until {existing.until}",
                fix="commit it if it is new; if it has expired, change its `until` and have that reviewed",
                source=existing.source,
            )
    atomic_files.write(file, add_waivers(path, data, waivers), below=context.top)
    context.record(path=path, waivers=[make_view(WaiverView, waiver) for waiver in waivers])
    print(f"Wrote {format_count(len(waivers), 'waiver')} to {path}:")
    for waiver in waivers:
        print(f"  {waiver.rule} on {waiver.topic}, until {waiver.until}, owner {on_one_line(waiver.owner)}")
    rejections = [finding for finding in findings if finding.rule == BROKER_RULE]
    for line in dict.fromkeys(line for finding in rejections for line in finding.own_message.split("\n")[1:]):
        print(line)
    add = f"git add -- {quote(path)} && " if args.staged else ""
    print(f"Next: {add}commit {path} together with the change, and have both reviewed.")
    return 0


def parse_last_day(text: str, today: date) -> date:
    """Return the day that `text` names. Raise UsageError unless it lies in the future, at most 366 days ahead."""
    from schemactl.checks.waivers import LONGEST_WAIVER

    days = f"from {today + timedelta(days=1)} to {today + LONGEST_WAIVER}"
    try:
        until = parse_day(text)
    except ValueError:
        raise UsageError(f"--until {text}: expected a day {days}, such as {today + timedelta(days=30)}") from None
    if not today < until <= today + LONGEST_WAIVER:
        raise UsageError(f"--until {text}: expected a day in the future, at most 366 days ahead: {days}")
    return until


def select_findings(report: CheckReport, digits: str, written: str) -> list[Finding]:
    """Select the findings whose fingerprint begins with `digits`, and the broker's rejection of the same edit.

    Raises:
        UsageError: if no finding or several findings have such a fingerprint.
    """
    from schemactl.checks.check_report import group_findings
    from schemactl.comparison.fingerprint import shorten_fingerprint

    # A report of one topic, such as a JUnit suite, shows the causes of this topic.
    by_topic: dict[TopicName | None, list[Finding]] = {}
    for finding in report.findings:
        by_topic.setdefault(finding.topic, []).append(finding)
    shown_causes = chain(report.causes, *map(group_findings, by_topic.values()))
    waivable = {name: findings for cause in shown_causes for name, findings in _iterate_names(cause)}
    waivable |= {finding.fingerprint.removeprefix("sha256:"): [finding] for finding in report.waived}
    if not waivable:
        raise UsageError(
            f"{written}: this check has no finding that can be waived",
            fix="use the options of the check that failed: --base REF, or --staged",
        )
    names = [name for name in waivable if name.startswith(digits)]
    # A finding that is its own cause has two names.
    distinct = {tuple(finding.key for finding in waivable[name]): name for name in names or waivable}
    if names and len(distinct) == 1:
        return waivable[names[0]]
    message = (
        "several findings have a fingerprint with this beginning:"
        if names
        else "no finding of this check has this fingerprint. Its fingerprints:"
    )
    lines = [f"{written}: {message}"]
    for name in [*distinct.values()][:_MAX_LISTED]:
        first, *others = waivable[name]
        other_topics = {finding.topic for finding in others} - {first.topic}
        suffix = f" and {format_count(len(other_topics), 'more topic')}" if other_topics else ""
        lines.append(f"  {shorten_fingerprint(name)}  {first.rule} on {first.topic}{suffix} {first.field}".rstrip())
    if len(distinct) > _MAX_LISTED:
        lines.append(f"  and {len(distinct) - _MAX_LISTED} more")
    raise UsageError("\n".join(lines), fix="write one of these")


def _iterate_names(cause: Cause) -> Iterator[tuple[str, list[Finding]]]:
    """Yield each name of the cause and of its findings, with the findings that are waived by this name."""
    findings = [finding for finding in cause.findings if finding.key]
    refusals_by_topic: dict[TopicName | None, list[Finding]] = {}
    for refusal in cause.refusals:
        if refusal.key:
            refusals_by_topic.setdefault(refusal.topic, []).append(refusal)
    refusals = [*chain.from_iterable(refusals_by_topic.values())]
    if findings:
        yield cause.id, [*findings, *refusals]
    for finding in findings:
        yield finding.fingerprint.removeprefix("sha256:"), [finding, *refusals_by_topic.get(finding.topic, ())]
    for refusal in refusals:
        yield refusal.fingerprint.removeprefix("sha256:"), [refusal]


def _make_waiver(finding: Finding, args: argparse.Namespace, until: date, owners: Mapping[TopicName, str]) -> Waiver:
    """Return the waiver of a finding. Raise UsageError if no owner is known."""
    if finding.topic is None:
        raise AssertionError(f"a finding of no topic has a fingerprint: {finding}")
    owner = args.owner or owners.get(finding.topic)
    if not owner:
        raise UsageError(
            f"{finding.topic} has no owner, and a waiver needs one",
            fix="give --owner NAME, or add `owner:` to the topic",
        )
    if not has_visible_letter(owner):
        raise UsageError(
            f"the owner {owner!a} has no visible letter", fix="give --owner with the name of a person or a team"
        )
    # UTF-8 cannot encode a lone surrogate.
    reason, owner = (text.strip().encode(errors="replace").decode() for text in (args.reason, owner))
    return Waiver(finding.rule, finding.topic, finding.fingerprint, reason, owner, until, field=finding.field)
