"""State who breaks in one line, for the first line of a check in each format that people read."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.checks.check_report import CheckReport, ClientImpact, TopicCheck, join_client_impacts
from schemactl.core.errors import join_first
from schemactl.core.findings import DataState, Outcome
from schemactl.core.names import TopicName
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count
from schemactl.report.check import describe_undecided

if TYPE_CHECKING:
    from schemactl.report.check import Shade

_MAX_NAMES: Final = 5
"""The maximum number of clients or versions that a headline names."""

MARKS: Final = {"good": "✓", "doubtful": "!", "bad": "✗", "": ""}
"""The sign of a verdict, so that color does not carry it alone."""


class Headline(NamedTuple):
    """Sentences about a whole report.

    Attributes:
        shade: whether the news are good, doubtful or bad.
        statement: the sentence about who breaks, without its end.
        names: the clients or versions that `statement` counts, or ().
        broker: the sentence about the answers of brokers, or "".
    """

    shade: Shade
    statement: str
    names: tuple[str, ...] = ()
    broker: str = ""

    @property
    def subject(self) -> str:
        """The statement with its colon or full stop."""
        return f"{self.statement}{':' if self.names else '.'}"

    @property
    def rest(self) -> str:
        """The names and the sentence about brokers, or ""."""
        names = f"{join_first(self.names, _MAX_NAMES)}. " if self.names else ""
        return f"{names}{self.broker}".rstrip()

    @property
    def text(self) -> str:
        """The whole headline."""
        return f"{self.subject} {self.rest}".rstrip()


def make_headline(report: CheckReport) -> Headline:
    """Return who breaks: declared consumers first, else readers, else the errors of the change."""
    if not report.decided:
        return Headline("bad", describe_undecided(report), (format_count(len(report.findings), "problem"),))
    if report.command == "lint":
        errors, warnings = report.count("error"), report.count("warning")
        counts = [format_count(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count]
        shade: Shade = "bad" if errors else "doubtful" if warnings else "good"
        return Headline(shade, " and ".join(counts) or "All topics are fine")
    errors = report.count("error")
    failed_topics = {finding.topic for finding in report.findings if finding.severity == "error"}
    consumers: dict[str, None] = {}
    producers: dict[str, None] = {}
    for _, group in groupby(report.topics, key=lambda check: check.name):
        checks = [*group]
        if checks[0].topic in failed_topics:
            for impact in join_client_impacts(checks):
                if impact.is_broken(checks[0].strategy):
                    (consumers if impact.client.reads else producers)[name_client(impact)] = None
    broker = _describe_broker(report)
    if consumers:
        statement = f"{format_count(len(consumers), 'consumer')} {_inflect_verb('break', consumers)}"
        return Headline("bad", statement, (*consumers,), broker)
    if producers:
        statement = f"{format_count(len(producers), 'producer')} {_inflect_verb('write', producers)} messages that new readers cannot read"
        return Headline("bad", statement, (*producers,), broker)
    breaking_checks = [
        check
        for check in report.topics
        if check.verdict and (check.verdict.errors or check.verdict.state is DataState.UNPARSABLE)
    ]
    breaking = dict.fromkeys(name_version(check, report) for check in breaking_checks if check.topic in failed_topics)
    if breaking:
        statement = f"{format_count(len(breaking), 'schema')} {_inflect_verb('break', breaking)} readers"
        return Headline("bad", statement, (*breaking,), broker)
    if errors:
        return Headline("bad", f"The change has {format_count(errors, 'error')}", broker=broker)
    if allowed := dict.fromkeys(name_version(check, report) for check in breaking_checks):
        # Waivers and severities decide about the exit code, and not about readers.
        reason = "waived" if report.waived else "allowed by the severities"
        statement = f"{format_count(len(allowed), 'schema')} {_inflect_verb('break', allowed)} readers, {reason}"
        return Headline("doubtful", statement, (*allowed,), broker)
    if report.waived:
        return Headline(
            "doubtful", f"All errors are waived: {format_count(len(report.waived_causes), 'problem')}", broker=broker
        )
    if not report.topics and not report.policies:
        return Headline("doubtful" if report.count("warning") else "good", "No schema changed")
    return Headline("doubtful" if report.count("warning") else "good", "No reader breaks", broker=broker)


def name_client(impact: ClientImpact) -> str:
    """Return the name and the team of a client."""
    return on_one_line(impact.client.display_name)


def name_version(check: TopicCheck, report: CheckReport) -> str:
    """Return the short name of a topic and the number that its content gets, such as `orders v6`."""
    number = "" if check.version is None else f" v{check.version}"
    return f"{shorten_topic(check.topic, report)}{f'#{check.kind}' if check.kind else ''}{number}"


def shorten_topic(name: TopicName, report: CheckReport) -> str:
    """Return the last part of a topic's name, or the name without its domain if several topics of the report share it."""
    last = str(name).rpartition("/")[2]
    is_shared = report.topics_by_last_name.get(last, {name}) != {name}
    return on_one_line(str(name).removeprefix("persistent://") if is_shared else last)


def _describe_broker(report: CheckReport) -> str:
    judged = [check for check in report.topics if check.verdict and check.is_pending]
    rejected = [
        check
        for check in judged
        if check.verdict and check.verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED)
    ]
    if rejected:
        return f"The broker rejects {join_first([*dict.fromkeys(name_version(check, report) for check in rejected)], _MAX_NAMES)}."
    accepted = list(dict.fromkeys(name_version(check, report) for check in judged))
    if len(accepted) > _MAX_NAMES:
        return f"The broker accepts all {len(accepted)} new versions."
    return f"The broker accepts {join_first(accepted, _MAX_NAMES)}." if accepted else ""


def _inflect_verb(verb: str, names: Collection[str]) -> str:
    return f"{verb}s" if len(names) == 1 else verb
