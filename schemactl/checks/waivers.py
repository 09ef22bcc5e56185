"""Apply the waivers to the findings of a check, and report problems of waivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Comparison
from schemactl.core.errors import Problem
from schemactl.core.findings import Finding, Severity, Waiver
from schemactl.core.invisible_characters import has_visible_letter
from schemactl.core.wording import format_count

WaiverKey = tuple[str, str, str]
"""The rule, topic without domain, and fingerprint that a waiver and its finding share."""

LONGEST_WAIVER: Final = timedelta(days=366)
"""Maximum time from today to the last day of a new waiver."""


@dataclass(frozen=True, slots=True)
class WaiverFile:
    """The waivers of a check.

    Attributes:
        waivers: the entries of the checked files.
        counts_before: the number of waivers before the change, by key. They are not reported as unused, because versions that were
            approved under them are judged again.
        today: the day in UTC.
        approved_waivers: the entries that were approved before the change; only these may name a former fingerprint.
    """

    waivers: Sequence[Waiver]
    counts_before: Counter[WaiverKey]
    today: date
    approved_waivers: frozenset[Waiver] = frozenset()

    @property
    def in_force(self) -> tuple[Waiver, ...]:
        """The waivers that have not expired, without new waivers that have a problem."""
        return tuple(waiver for waiver in self.waivers if waiver.until >= self.today and not self._find_problem(waiver))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the entries that the change adds."""
        problems = map(self._find_problem, self.waivers)
        return tuple(problem for problem in problems if problem)

    def _find_problem(self, waiver: Waiver) -> Problem | None:
        if waiver in self.approved_waivers or waiver.source is None:
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

    def find_waiver(self, finding: Finding, waivers: Mapping[WaiverKey, Waiver]) -> Waiver | None:
        """Return the waiver of `finding`, or None; an approved waiver may name its former fingerprint."""
        if finding.key is None or finding.former_key is None:
            return None
        waiver_of_former_key = waivers.get(finding.former_key)
        return waivers.get(finding.key) or (
            waiver_of_former_key if waiver_of_former_key in self.approved_waivers else None
        )


def apply_waivers(report: CheckReport, comparison: Comparison, file: WaiverFile, *, is_whole: bool) -> CheckReport:
    """Separate the waived findings of `report` from the others, and add findings about the waivers.

    Args:
        report: the report with all findings.
        comparison: the comparison that the report is about.
        file: the waivers.
        is_whole: whether all topics and targets were checked, so that waivers without a finding are unused.
    """
    waivers_by_key: dict[WaiverKey, list[Waiver]] = {}
    for entry in sorted(file.waivers, key=lambda waiver: waiver.until):
        waivers_by_key.setdefault(entry.key, []).append(entry)
    waivers = {key: group[0] for key, group in waivers_by_key.items()}
    used: set[WaiverKey] = set()
    expired: dict[WaiverKey, Severity] = {}
    unwaived: list[Finding] = []
    waived: list[Finding] = []
    for finding in report.findings:
        waiver = file.find_waiver(finding, waivers)
        if waiver and waiver.until >= file.today:
            waived.append(replace(finding, waiver=waiver))
        else:
            unwaived.append(finding)
        if waiver:
            used.add(waiver.key)
            if waiver.until < file.today:
                expired[waiver.key] = finding.severity
    findings: list[Finding] = []
    for key, group in waivers_by_key.items():
        first, *others = group
        if key in expired:
            message = (
                f"The waiver of {first.rule} on {first.topic} ended with {first.until}, before the change was approved."
            )
            # An expired waiver is as severe as the finding that it no longer waives.
            severity = expired[key]
            findings += (
                replace(finding, severity=severity) for finding in _report(comparison, "WAIVER_EXPIRED", first, message)
            )
        if len(group) > max(1, file.counts_before[key]):
            places = ", ".join(str(waiver.source) for waiver in others)
            message = (
                f"{format_count(len(group), 'waiver')} are for one finding, {first.rule} on {first.topic}: this one and {places}. "
                f"The waiver that ends first counts, which is this one ({first.until})."
            )
            findings += _report(comparison, "WAIVER_OVERLAPS", first, message)
        is_known = key in used or key in file.counts_before
        if is_whole and not is_known and comparison.is_enabled(first.rule, first.topic):
            fingerprints = [
                finding.fingerprint
                for finding in unwaived
                if finding.topic == first.topic and finding.rule == first.rule and finding.fingerprint
            ]
            hint = (
                f" The current finding of that rule on the topic is {', '.join(fingerprints)}." if fingerprints else ""
            )
            message = (
                "This change does not cause the finding that this waiver names: "
                f"{first.rule} on {first.topic}, {first.fingerprint}.{hint}"
            )
            findings += _report(comparison, "WAIVER_UNUSED", first, message)
    return replace(
        report, findings=(*findings, *unwaived), waived=tuple(waived), waiver_path=comparison.project.waivers
    )


def _report(comparison: Comparison, rule: str, waiver: Waiver, message: str) -> Iterator[Finding]:
    topic = comparison.declared.topics.get(waiver.topic)
    yield from comparison.make_finding(rule, topic, message, source=waiver.source, field=waiver.field)
