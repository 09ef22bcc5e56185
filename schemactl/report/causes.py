"""The causes of a report in words, most important first, in parts that each format arranges; and the line-by-line diff of a definition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.checks.check_report import ORDER, Cause, CheckReport, PolicyChange, TopicCheck
from schemactl.comparison.fingerprint import short
from schemactl.core.findings import Finding, Severity, Waiver
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.terminal import cut, on_one_line
from schemactl.core.wording import counted, format_version, versions
from schemactl.declare.source_location import JsonSyntaxError, scan, tokens
from schemactl.declare.source_location import nearest as nearest_node
from schemactl.formats import spec
from schemactl.formats.type_spec import line_changes

if TYPE_CHECKING:
    from schemactl.core.schema import SchemaInfo


_MAX_MESSAGE = 300
"""Of a counterexample: longer ones are whole in the JSON report."""

_MAX_EXAMPLES = 5
"""So many findings of a cause are shown in words."""

_MAX_TOPICS = 100
"""So many topics of a cause are listed for a strategy."""

_MAX_OWNERS = 10

FEW: Final = 5
"""So many errors of a report can be read without a click."""

BEFORE: Final = "as it was approved"
AFTER: Final = "this change"
"""What the sides of a diff are called, where the older one is no version in particular."""

Weight = Literal["waived"] | Severity

WEIGHTS: Final[tuple[Weight, ...]] = ("waived", "error", "warning", "note")
"""The order of causes in a report: what was approved although it breaks, then the worst first."""


class CauseLine(NamedTuple):
    """A line about a cause.

    Attributes:
        kind: what it says: why, a counterexample, what to write, the broker's answer, which topics, how to approve it.
        words: the line, without its label.
        label: what stands in front of them, before a colon; "": nothing.
    """

    kind: Literal["waiver", "reason", "older", "proof", "fix", "broker", "topics", "owner", "contact", "approve"]
    words: str
    label: str = ""

    @property
    def text(self) -> str:
        """The whole line."""
        return f"{self.label}: {self.words}" if self.label else self.words


@dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause with the report that it belongs to.

    Attributes:
        checks: the rows of the report by topic.
    """

    cause: Cause
    report: CheckReport
    checks: Mapping[TopicName | None, list[TopicCheck]]

    @property
    def lead(self) -> Finding:
        """The finding whose rule, place and severity are the cause's."""
        return self.cause.lead

    @property
    def weight(self) -> Weight:
        """What it counts as."""
        return "waived" if self.cause.waivers else self.cause.severity

    @property
    def place(self) -> str:
        """Where it is, and whether that is gone; "" where it has none."""
        source = str(self.lead.source or "")
        return f"{source} before the change ({self.report.base})" if source and self.lead.before_change else source

    @property
    def message(self) -> str:
        """Everything about it but its rule, severity, and the place that can be marked in the files."""
        gone = [f"Place: {self.place}"] if self.lead.before_change else []
        return "\n".join([*(part.text for part in self.parts()), *gone])

    def parts(self) -> Iterator[CauseLine]:
        """Yield what is wrong, its proof and what to do about it; then the broker's answer; then the topics, where there are several."""
        cause, report = self.cause, self.report
        yield from (CauseLine("waiver", text) for text in dict.fromkeys(map(approval, cause.waivers)))
        shown = [*cause.shown()]
        # The last one may say how many more there are.
        for finding in (*shown[: _MAX_EXAMPLES - 1], *shown[_MAX_EXAMPLES - 1 :][-1:]):
            yield from _finding(finding, report)
        if len(shown) > _MAX_EXAMPLES:
            more = counted(len(shown) - _MAX_EXAMPLES, "more place")
            yield CauseLine("reason", f"The same at {more} of the topic.")
        yield from (CauseLine("broker", line) for line in self._refusals())
        yield from (CauseLine("topics", line) for line in self._topics())
        if owners := self.owners:
            more = f" and {len(owners) - _MAX_OWNERS} more" if len(owners) > _MAX_OWNERS else ""
            yield CauseLine("owner", f"{', '.join(map(on_one_line, owners[:_MAX_OWNERS]))}{more}", "Owner")
        for contact in dict.fromkeys(finding.owner for finding in cause.findings if finding.owner):
            yield CauseLine("contact", on_one_line(contact), "Owner of the client")
        if self.weight == "error" and cause.lead.key:
            name = cause.lead.fingerprint if len(cause.findings) == 1 else cause.id
            command = waive_command(name, report.target, names_owner=not self._is_owned)
            yield CauseLine("approve", command, "To approve it all the same")

    @property
    def owners(self) -> tuple[str, ...]:
        """Who answers for its topics, as far as they say so."""
        return tuple(dict.fromkeys(check.owner for check in self._checked() if check.owner))

    @property
    def _is_owned(self) -> bool:
        return all(check.owner for check in self._checked())

    def _checked(self) -> Iterator[TopicCheck]:
        """Yield the rows of the report about its topics."""
        yield from filter(None, map(self._check, self.cause.findings))

    def diff(self) -> SchemaDiff | None:
        """Return what changed in the definition since the version that breaks, around its place; None: nothing, or it is not known."""
        # A text for a terminal has none.

        finding, check = self.lead, self._check(self.lead)
        if check is None or check.schema is None or finding.commit or finding.verdict == "declaration":
            return None
        older = next((each for each in reversed(check.versions) if each.number in finding.against), None)
        old = older.info if older else check.before
        if not old:
            return None
        try:
            labels = format_version(older) if older else BEFORE, AFTER
            found = schema_diff(old=old, new=check.schema, labels=labels)
        except ValueError:
            return None
        of_new = finding.direction != "old_reads_new"
        return found and found.around(finding.pointer, check.schema if of_new else old, of_new=of_new)

    def _check(self, finding: Finding) -> TopicCheck | None:
        """Return the row of the report about the topic of `finding`, as the first target has it that this holds for."""
        checks, targets = self.checks.get(finding.topic, []), finding.targets[:1]
        same = (check for check in checks if {*targets} <= {*check.targets})
        return next(same, checks[0] if checks else None)

    def _refusals(self) -> Iterator[str]:
        """Yield the broker's answer under each strategy: what follows from it depends on that."""
        groups: dict[tuple[CompatibilityStrategy | None, tuple[str, ...]], list[Finding]] = {}
        for refusal in self.cause.refusals:
            check = self._check(refusal)
            groups.setdefault((check.strategy if check else None, refusal.targets), []).append(refusal)
        for first, *more in groups.values():
            others = f" Likewise in {counted(len(more), 'more topic')}." if more else ""
            sentence, *then = refusal_lines(first)
            yield f"{first.rule}: {sentence}{others}"
            yield from then
            yield from holds_for(first, self.report)

    def _topics(self) -> Iterator[str]:
        """Yield the topics, a line for each strategy and the versions that break under it."""
        cause = self.cause
        if len(cause.topics) < 2:
            return
        against: dict[TopicName | None, set[int]] = {}
        for finding in cause.findings:
            against.setdefault(finding.topic, set()).update(finding.against)
        groups: dict[str, list[str]] = {}
        for topic in cause.topics:
            breaking = [versions(sorted(against[topic]))] if against[topic] else []
            strategy = (
                str(self.checks[topic][-1].strategy)
                if topic in self.checks
                else "unchanged"
                if self.report.base
                else "linted"
            )
            groups.setdefault(", ".join([strategy, *breaking]), []).append(str(topic))
        yield f"{counted(len(cause.topics), 'topic')}:"
        for group, names in sorted(groups.items()):
            more = f" and {len(names) - _MAX_TOPICS} more" if len(names) > _MAX_TOPICS else ""
            yield f"  {group} ({len(names)}): {', '.join(names[:_MAX_TOPICS])}{more}"


def shown_causes(report: CheckReport) -> tuple[ShownCause, ...]:
    """Return the causes of a report, waived ones first, then the worst first."""
    found = sorted(report.causes, key=lambda cause: ORDER[cause.severity])
    return (*in_report(report.waived_causes, report), *in_report(found, report))


def in_report(causes: Iterable[Cause], report: CheckReport) -> Iterator[ShownCause]:
    """Yield each of `causes` with the report that it belongs to, and the rows of that report by topic."""
    checks: dict[TopicName | None, list[TopicCheck]] = {}
    for check in report.topics:
        checks.setdefault(check.topic, []).append(check)
    yield from (ShownCause(cause, report, checks) for cause in causes)


def holds_for(each: Finding | TopicCheck | PolicyChange, report: CheckReport) -> list[str]:
    """Return for which targets something holds, where that is not all of them."""
    return [f"For {', '.join(each.targets)}."] if 0 < len(each.targets) < len(report.targets) else []


def refusal_lines(refusal: Finding) -> list[str]:
    """Return what a broker will answer, and what follows if that is waived; without its own words."""
    return refusal.message.partition("\nIt says: ")[0].split("\n")


def approval(waiver: Waiver) -> str:
    """Return by whom a finding is approved all the same, until when and why."""
    owner, reason = on_one_line(waiver.owner), on_one_line(waiver.reason)
    return f"Waived until {waiver.until}, {owner} answers for it: {reason}"


def waive_command(name: str, target: str, *, names_owner: bool) -> str:
    """Return the command that waives what has this fingerprint, or is this cause; `target` as a report has it.

    `names_owner`: a topic declares no owner, so the command has to name one.
    """
    on = f" --target {target}" if target else ""
    owner = " --owner NAME" if names_owner else ""
    return f'schemactl waive {short(name)}{on} --reason "..." --until YYYY-MM-DD{owner}'


def _finding(finding: Finding, report: CheckReport) -> Iterator[CauseLine]:
    for line in (*finding.message.split("\n"), *holds_for(finding, report)):
        yield CauseLine("reason", line)
    if finding.older:
        yield CauseLine("older", str(finding.older), "In the older version")
    if finding.counterexample:
        message, size = finding.counterexample.message, len(finding.counterexample.data)
        result = on_one_line(finding.counterexample.result)
        yield CauseLine("proof", f"{cut(message, _MAX_MESSAGE)} ({counted(size, 'byte')}): {result}", "Counterexample")
    if finding.fix and not finding.waiver:
        yield CauseLine("fix", on_one_line(finding.fix), "Fix")


# The diff of a definition


_HEAD: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MAX_LINE: Final = 300


class DiffRow(NamedTuple):
    """A line of both sides, or of one of them; numbers count from 1, None where the side has no such line."""

    sign: Literal[" ", "-", "+"]
    old: int | None
    new: int | None
    text: str


Hunk = tuple[DiffRow, ...]


@dataclass(frozen=True, slots=True)
class SchemaDiff:
    """The lines that two definitions differ in, with some around them.

    Attributes:
        old, new: what the sides are called.
        hunks: groups of lines that stand together.
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...]

    def lines(self, most: int) -> Iterator[str]:
        """Yield the lines of a unified diff; where these are more than `most`, the first, and how many more there are."""
        found = [f"--- {self.old}", f"+++ {self.new}"]
        for hunk in self.hunks:
            found += [_head(hunk), *(f"{row.sign}{row.text}" for row in hunk)]
        for line in found if len(found) <= most else found[: most - 1]:
            yield on_one_line(cut(line, _MAX_LINE))
        if len(found) > most:
            yield f"@@ {len(found) - most + 1} more lines @@"

    def around(self, pointer: str, info: SchemaInfo, *, of_new: bool) -> SchemaDiff:
        """Return the hunk that has the place of `pointer` in `info`, which is the new side or the old one; all where none has."""
        line = _line_of(pointer, info)
        found = [hunk for hunk in self.hunks if any((row.new if of_new else row.old) == line for row in hunk)]
        return SchemaDiff(self.old, self.new, tuple(found)) if line and found else self


def schema_diff(*, old: SchemaInfo, new: SchemaInfo, labels: tuple[str, str]) -> SchemaDiff | None:
    """Return the difference of two definitions, whatever their layout; None where their lines are the same.

    `labels` are what the old one and the new one are called.
    """
    hunks: list[list[DiffRow]] = []
    at = {"-": 0, "+": 0}
    for line in line_changes(old=old, new=new)[2:]:
        if found := _HEAD.fullmatch(line):
            at = {"-": int(found[1]), "+": int(found[2])}
            hunks.append([])
            continue
        sign: Any = line[:1]
        gone, come = (at[side] if sign in (" ", side) else None for side in "-+")
        at = {side: number + (sign in (" ", side)) for side, number in at.items()}
        hunks[-1].append(DiffRow(sign, gone, come, line[1:]))
    return SchemaDiff(*labels, tuple(map(tuple, hunks))) if hunks else None


def _head(hunk: Hunk) -> str:
    old, new = ([each for each in side if each] for side in zip(*(row[1:3] for row in hunk), strict=True))
    return f"@@ -{min(old, default=0)},{len(old)} +{min(new, default=0)},{len(new)} @@"


def _line_of(pointer: str, info: SchemaInfo) -> int | None:
    """Return the line that `pointer` leads to in the lines of `info`; None: they are no JSON."""
    text = "\n".join(spec(info).lines(info))
    try:
        found = scan(text)
    except JsonSyntaxError:
        return None
    return text.count("\n", 0, found.offsets[nearest_node(0, tokens(pointer), found.child)]) + 1
