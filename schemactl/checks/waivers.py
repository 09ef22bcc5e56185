"""Waivers in a check: the findings that they approve, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Run
from schemactl.core.errors import Problem
from schemactl.core.findings import Finding, Severity, Waiver
from schemactl.core.names import has_visible_letter
from schemactl.core.wording import counted

Key = tuple[str, str, str]

LONGEST_WAIVER: Final = timedelta(days=366)
"""The last day of a new waiver is at most this far ahead."""


@dataclass(frozen=True, slots=True)
class WaiverFile:
    """The waivers of a check.

    Attributes:
        waivers: those of the files that are checked.
        known: what those were of that were there before the change, with how many of each. Whether they are of any use was asked
            when they came: what was approved under them is replayed, so they stay.
        today: the day in UTC.
        approved: the entries that were approved before the change; only these count under a former fingerprint.
    """

    waivers: Sequence[Waiver]
    known: Counter[Key]
    today: date
    approved: frozenset[Waiver] = frozenset()

    @property
    def in_force(self) -> tuple[Waiver, ...]:
        """Those that have not expired, without new ones that have a problem."""
        return tuple(each for each in self.waivers if each.until >= self.today and not self._problem(each))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the entries that the change adds."""
        problems = map(self._problem, self.waivers)
        return tuple(problem for problem in problems if problem)

    def _problem(self, waiver: Waiver) -> Problem | None:
        if waiver in self.approved or waiver.source is None:
            return None
        latest = self.today + LONGEST_WAIVER
        if waiver.until > latest:
            return Problem(
                waiver.source,
                f"this waiver lasts until {waiver.until}, which is more than {LONGEST_WAIVER.days} days ahead",
                f"write `until: {latest}` or an earlier day",
            )
        if not has_visible_letter(waiver.owner):
            return Problem(
                waiver.source, f"the owner {waiver.owner!a} has no visible letter", "name a person or a team"
            )
        return None

    def find(self, finding: Finding, waivers: Mapping[Key, Waiver]) -> Waiver | None:
        """Return the one of `waivers`, which are by key, that names `finding`; an approved one may name the former fingerprint."""
        if finding.key is None or finding.former_key is None:
            return None
        former = waivers.get(finding.former_key)
        return waivers.get(finding.key) or (former if former in self.approved else None)


def with_waivers(report: CheckReport, run: Run, file: WaiverFile, *, is_whole: bool) -> CheckReport:
    """Return `report` with its waived findings apart from the others, and what is wrong with the waivers.

    Args:
        report: with all findings.
        run: whose project judges.
        file: the waivers.
        is_whole: no topic and no target was left out, so that a waiver without finding has none.
    """
    groups: dict[Key, list[Waiver]] = {}
    for each in sorted(file.waivers, key=lambda waiver: waiver.until):
        groups.setdefault(each.key, []).append(each)
    waivers = {key: group[0] for key, group in groups.items()}
    used: set[Key] = set()
    expired: dict[Key, Severity] = {}
    kept: list[Finding] = []
    waived: list[Finding] = []
    for finding in report.findings:
        waiver = file.find(finding, waivers)
        if waiver and waiver.until >= file.today:
            waived.append(replace(finding, waiver=waiver))
        else:
            kept.append(finding)
        if waiver:
            used.add(waiver.key)
            if waiver.until < file.today:
                expired[waiver.key] = finding.severity
    found: list[Finding] = []
    for key, group in groups.items():
        if key in expired:
            found += _expired(run, group[0], expired[key])
        if len(group) > max(1, file.known[key]):
            found += _overlaps(run, group)
        is_known = key in used or key in file.known
        if is_whole and not is_known and run.asks(group[0].rule, group[0].topic):
            found += _unused(run, group[0], kept)
    return replace(report, findings=(*found, *kept), waived=tuple(waived), waiver_path=run.project.waivers)


def _expired(run: Run, waiver: Waiver, severity: Severity) -> Iterator[Finding]:
    found = _about(
        run,
        "WAIVER_EXPIRED",
        waiver,
        f"The waiver of {waiver.rule} on {waiver.topic} ended with {waiver.until}, before the change was approved.",
    )
    # It is as bad as what it does not waive any more.
    yield from (replace(each, severity=severity) for each in found)


def _overlaps(run: Run, group: Sequence[Waiver]) -> Iterator[Finding]:
    first, *others = group
    places = ", ".join(str(each.source) for each in others)
    yield from _about(
        run,
        "WAIVER_OVERLAPS",
        first,
        f"{counted(len(group), 'waiver')} are of one finding, {first.rule} on {first.topic}: this one and {places}. The one that "
        f"ends first counts, which is this one ({first.until}).",
    )


def _unused(run: Run, waiver: Waiver, findings: Iterable[Finding]) -> Iterator[Finding]:
    now = [
        each.fingerprint
        for each in findings
        if each.topic == waiver.topic and each.rule == waiver.rule and each.fingerprint
    ]
    there = f" The finding of that rule there now is {', '.join(now)}." if now else ""
    yield from _about(
        run,
        "WAIVER_UNUSED",
        waiver,
        f"No finding of this change is what this waiver names: {waiver.rule} on {waiver.topic}, {waiver.fingerprint}.{there}",
    )


def _about(run: Run, rule: str, waiver: Waiver, message: str) -> Iterator[Finding]:
    topic = run.target.topics.get(waiver.topic)
    yield from run.find(rule, topic, message, source=waiver.source, field=waiver.field)
