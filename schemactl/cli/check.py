"""`check` judges a change, `waive` approves one of its findings, and `explain` describes a rule."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.parser import add_command_timeout, add_options, add_timeout
from schemactl.cli.report_files import Outputs, add_formats, parse_outputs, write_report
from schemactl.cli.topic_selection import add_filters, add_paths, resolve_paths
from schemactl.core import atomic_files
from schemactl.core.catalog import parse_day
from schemactl.core.deadline import DEFAULT_S, Deadline, run_within
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError, did_you_mean
from schemactl.core.findings import Waiver
from schemactl.core.names import TopicName, has_visible_letter
from schemactl.core.rules import Rule, get_all_rules
from schemactl.core.terminal import on_one_line, render_file_diff
from schemactl.core.wording import format_count
from schemactl.report import CHECK_FORMATS, render_check

if TYPE_CHECKING:
    from schemactl.checks.check_report import Cause, CheckReport
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.core.findings import Finding
    from schemactl.core.json_values import Json


_EXPLANATION_WIDTH: Final = 80

_VERDICTS: Final = ("data", "broker", "declaration", "tables", "lint")
"""The verdicts, in the order of the list of rules."""


# `schemactl check`.


def configure_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.description = (
        "Compare the declared files with the approved history. For every changed schema, predict the broker's answer and "
        "whether readers can decode all messages. Exits with 100 when the check fails."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl check                          the working tree\n"
        "  schemactl check --staged                 what `git commit` would commit: the pre-commit hook\n"
        "  schemactl check --base origin/main       a pull request: HEAD, against the branch it goes to\n"
        "  schemactl check --format concise         one line for each finding, for editors\n"
        "  schemactl check --format github --format sarif=schemactl.sarif\n"
        "  schemactl check --format markdown=comment.md --format html=check.html\n"
        "  schemactl check namespaces/shop          the topics of these files and folders\n"
        "  schemactl check --topic 'shop/sales/*'\n"
        "  schemactl check --target prod            for prod alone, not for all targets\n"
        "  schemactl check --diff                   the edits that --fix would make\n"
        "  schemactl check --fix                    make each fix that has exactly one possible edit\n"
        "  schemactl check --fix --rename amount=total    the field total was called amount: it gets an alias\n"
    )
    modes = parser.add_mutually_exclusive_group()
    add_options(
        modes,
        "--staged: the index, not the working tree",
        "--base REF: compare HEAD, not the working tree, with this approved ref (default: `approved` of the project file)",
    )
    add_options(
        parser,
        "--fix: make each fix that has exactly one possible edit (a default, an enum default, a wider type), and report the other findings",
        "--diff: print the edits as a unified diff; without --fix nothing is written",
        "--notes: show the notes in the text, which only counts them by default",
    )
    add_options(
        parser,
        "--rename OLD=NEW: with --fix or --diff: the field or type NEW was called OLD, and gets the alias; may be repeated",
        action="append",
    )
    add_paths(parser)
    add_formats(parser, CHECK_FORMATS)
    add_filters(parser)
    add_options(
        parser,
        "--target NAME: check only for this target (default: all targets): with its release, policies, topics and "
        "numbers file; no registry is contacted",
    )
    add_options(
        parser,
        "--strict: warnings also fail (except GATE_CHANGED, GATE_UNREADABLE and DRAFT_AGAIN), and so do changes that "
        "break readers which no strategy protects",
    )
    add_timeout(parser, DEFAULT_S)


def run_check(args: argparse.Namespace, context: Context) -> int:
    """Check the change and write the report; return 1 if a topic could not be judged, 100 if a finding fails the check, else 0."""
    if args.base is not None and not args.base.strip():
        raise UsageError(
            "--base is empty: is a variable of the CI system unset here?",
            fix="give the branch this will be merged into, such as --base origin/main, or a commit's id",
        )
    if args.rename and not (args.fix or args.diff):
        raise UsageError("--rename is an edit: add --fix to make it, or --diff to see it")
    outputs = parse_outputs(args.format, CHECK_FORMATS)
    try:
        return run_within(args.timeout, lambda deadline: _check(args, context, outputs, deadline))
    except UsageError:
        raise
    except SchemactlError as error:
        from schemactl.checks.check_report import make_undecided_report

        context.advise_restoring(error)
        # Write a report without a verdict in each format, so that no file keeps the report of an earlier run.
        # Standard error has the message already.
        other_outputs = [(name, path) for name, path in outputs if path or name != "text"]
        write_report(partial(render_check, make_undecided_report(error)), other_outputs, context)
        raise


def _check(args: argparse.Namespace, context: Context, outputs: Outputs, deadline: Deadline) -> int:
    from schemactl.checks.check_report import GATE_RULES
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project

    # Git does not tell hooks whether the commit replaces HEAD, so the user states it.
    is_amend = args.staged and os.environ.get("SCHEMACTL_AMEND", "") not in ("", "0")
    request = CheckRequest(
        context.directory,
        context.config,
        staged=args.staged,
        approved_ref=args.base,
        amend=is_amend,
        topics=tuple(args.topic),
        namespaces=tuple(args.namespace),
        paths=resolve_paths(args.path, context),
        strict=args.strict,
        target=args.target,
    )
    if args.fix or args.diff:
        report = _fix(request, args, context, outputs, deadline)
    else:
        report = check_project(
            request, deadline, progress=context.reading_history(), note=context.note, repository=context.repository
        )
    deadline.begin("writing the report")
    write_report(partial(render_check, report, notes=args.notes, folder=context.top), outputs, context)
    if report.is_partial:
        return SchemactlError.exit_code
    is_failing = report.count("error") > 0
    if args.strict:
        # Warnings that only announce how later changes are judged do not fail.
        is_failing |= any(
            finding.severity == "warning" and finding.rule not in GATE_RULES for finding in report.findings
        )
    return NEGATIVE if is_failing else 0


def _fix(
    request: CheckRequest, args: argparse.Namespace, context: Context, outputs: Outputs, deadline: Deadline
) -> CheckReport:
    """Write the fixes with --fix, print them with --diff, and return the report on the files after that."""
    from schemactl.checks.fixes import find_fixes, write_fixes

    fixes = find_fixes(
        request,
        deadline,
        repository=context.repository,
        renames=args.rename or (),
        progress=context.reading_history(),
        note=context.note,
    )
    paths = write_fixes(fixes, request, context.top) if args.fix else []
    if args.diff:
        # Only a text can follow a diff.
        other_report = any(path is None and name != "text" for name, path in outputs)
        for path, new_text in sorted(fixes.new_texts.items()):
            lines = render_file_diff(path, fixes.old_texts[path], new_text, color=context.color)
            print("\n".join(lines), file=sys.stderr if other_report else sys.stdout)
    for path in paths:
        context.say(f"edited {path}")
    if paths:
        add = f"; to commit them: `git add -- {' '.join(map(quote, paths))}`" if request.staged else ""
        context.say(f"{format_count(fixes.count, 'finding')} fixed in {format_count(len(paths), 'file')}{add}")
    elif args.fix:
        context.say("no finding has a fix with exactly one possible edit; no file was edited")
    return fixes.after if args.fix else fixes.before


# `schemactl waive`.


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
    add_command_timeout(parser, DEFAULT_S)
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
    from schemactl.core.json_values import waiver_value
    from schemactl.report.causes import refusal_lines

    findings = select_findings(report, digits, args.fingerprint)
    owners = {topic.topic: topic.owner for topic in report.topics}
    waivers = [_make_waiver(finding, args, until, owners) for finding in findings if not finding.waiver]
    if not waivers and (waiver := findings[0].waiver):
        raise SchemactlError(
            f"this finding is waived already, until {waiver.until}", fix="change that entry", source=waiver.source
        )
    path = _write_waivers(report, waivers, context)
    context.record(path=path, waivers=[waiver_value(waiver) for waiver in waivers])
    print(f"Wrote {format_count(len(waivers), 'waiver')} to {path}:")
    for waiver in waivers:
        print(f"  {waiver.rule} on {waiver.topic}, until {waiver.until}, owner {on_one_line(waiver.owner)}")
    rejections = [finding for finding in findings if finding.rule == BROKER_RULE]
    for line in dict.fromkeys(line for finding in rejections for line in refusal_lines(finding)[1:]):
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


def _write_waivers(report: CheckReport, waivers: list[Waiver], context: Context) -> str:
    """Add the entries to the waiver file of the working tree, and return its path."""
    from schemactl.declare.waivers import add_waivers, parse_waivers

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
    return path


# `schemactl explain`.


def configure_explain(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.epilog = (
        "examples:\n"
        "  schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n"
        "  schemactl explain enum default       the rules about these words\n"
        "  schemactl explain --all\n"
    )
    parser.add_argument(
        "rule", nargs="*", metavar="RULE", help="the rule's id, as reports print it, or words to find rules by"
    )
    add_options(parser, "--all: one line for every rule")
    add_result_formats(parser)


def run_explain(args: argparse.Namespace, context: Context) -> int:
    """Print the rule, the rules that have all the words, or the list of all rules."""
    rules = get_all_rules()
    if args.all == bool(args.rule):
        raise UsageError("name a rule or search words, or use --all", fix="schemactl explain --all")
    if args.all:
        context.record(rules=[_rule_value(rule) for rule in rules.values()])
        context.report("\n".join(_list_rules([*rules.values()])))
        return 0
    text = " ".join(args.rule)
    name = "_".join(text.upper().replace("-", "_").split())
    if name in rules:
        context.record(rules=[_rule_value(rules[name])])
        context.report(_render_rule(rules[name]))
        return 0
    words = text.casefold().replace("_", " ").split()
    matches = []
    for rule in rules.values() if words else ():
        searched_text = f"{rule.id.replace('_', ' ')} {rule.summary} {rule.why}".casefold()
        if all(word in searched_text for word in words):
            matches.append(rule)
    if not matches:
        hint = did_you_mean(name, rules) or ": `schemactl explain --all` lists them"
        raise UsageError(f"there is no rule {text!r}{hint}")
    context.say(
        f"no rule is called {text!r}; {format_count(len(matches), 'rule has', 'rules have')} "
        f"{'these words' if len(words) > 1 else 'this word'}:"
    )
    context.record(rules=[_rule_value(rule) for rule in matches])
    context.report("\n".join(_list_rules(matches)).strip("\n"))
    return 0


def _rule_value(rule: Rule) -> Json:
    """Return the rule as JSON."""
    return {
        "rule": rule.id,
        "verdict": rule.verdict,
        "severity": rule.severity,
        "only_with": rule.enabled_by or None,
        "summary": rule.summary,
        "why": rule.why,
        "example": rule.example,
        "fix": rule.fix,
        "link": rule.link,
    }


def _list_rules(rules: list[Rule]) -> Iterator[str]:
    """Yield a line for each rule: the rules of `check` and `lint` by verdict, then the optional rules under their command."""
    width = max(len(rule.id) for rule in rules)
    command = ""
    for rule in sorted(rules, key=lambda rule: len(_VERDICTS) if rule.enabled_by else _VERDICTS.index(rule.verdict)):
        if rule.enabled_by != command:
            command = rule.enabled_by
            yield f"\nonly with `{command}`:"
        columns = f"{rule.verdict:<11} {rule.severity:<7} " if not command else ""
        yield f"{rule.id:<{width}}  {columns}{rule.summary}"


def _render_rule(rule: Rule) -> str:
    """Return the rule as text for a terminal."""
    verdict = "found by `lint`" if rule.verdict == "lint" else f"{rule.verdict} verdict"
    parts = (
        rule.id,
        f"only with `{rule.enabled_by}`" if rule.enabled_by else f"{verdict}, {rule.severity} by default",
        "",
        textwrap.fill(rule.summary, _EXPLANATION_WIDTH),
        "",
        "Why it matters",
        _indent(textwrap.fill(rule.why, _EXPLANATION_WIDTH - 2)),
        "",
        "Example",
        _indent(rule.example.strip("\n")),
        "",
        "Fix",
        _indent(textwrap.fill(rule.fix, _EXPLANATION_WIDTH - 2)),
        "",
        f"See {rule.link}",
    )
    return "\n".join(parts)


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
