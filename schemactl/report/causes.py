"""Describe the causes of a check in lines that each format arranges, and compare definitions line by line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.checks.check_report import ORDER, Cause, CheckReport, PolicyChange, TopicCheck
from schemactl.comparison.fingerprint import shorten_fingerprint
from schemactl.core.edits import LineEdit, to_line_edits
from schemactl.core.errors import join_first
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Counterexample, Finding, Severity
from schemactl.core.json_pointer import split_pointer
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.terminal import on_one_line, truncate
from schemactl.core.wording import describe_waiver, format_count, format_ranges, format_version, format_version_numbers
from schemactl.declare.source_location import JsonSyntaxError, find_deepest, scan
from schemactl.formats import spec
from schemactl.formats.part_changes import diff_definitions
from schemactl.report.headline import name_version

if TYPE_CHECKING:
    from schemactl.core.schema import SchemaInfo


_MAX_MESSAGE = 300
"""The maximum number of characters of a counterexample; the JSON report has all of it."""

_MAX_EXAMPLES = 5
"""The maximum number of findings of a cause that are described."""

_MAX_TOPICS = 100
"""The maximum number of topics of a cause that are listed for a strategy."""

_MAX_OWNERS = 10

_HUNK_HEAD: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

_MAX_LINE: Final = 300

FEW: Final = 5
"""The maximum number of errors of a report that are unfolded from the start."""

BEFORE: Final = "as it was approved"
AFTER: Final = "this change"
"""Labels of the sides of a diff whose older side is not a certain version."""

CauseLevel = Literal["waived"] | Severity

CAUSE_LEVELS: Final[tuple[CauseLevel, ...]] = ("waived", "error", "warning", "note")
"""The order of causes in a report: waived ones, then the worst first."""


def rank_causes(report: CheckReport) -> tuple[ShownCause, ...]:
    """Return the causes of a report: waived ones, then the worst first."""
    causes = (*report.waived_causes, *sorted(report.causes, key=lambda cause: ORDER[cause.severity]))
    return tuple(ShownCause(cause.findings, cause.refusals, report=report) for cause in causes)


_LABELS: Final = {
    "older": "In the older version",
    "proof": "Counterexample",
    "fix": "Fix",
    "owner": "Owner",
    "contact": "Owner of the client",
    "approve": "To approve it anyway",
}
"""The text before the colon of a line, by its kind."""


class CauseLine(NamedTuple):
    """A line about a cause.

    Attributes:
        kind: the role of the line, by which a format arranges it.
        words: the line, without its label.
    """

    kind: Literal["waiver", "reason", "older", "proof", "fix", "broker", "topics", "owner", "contact", "approve"]
    words: str

    @property
    def label(self) -> str:
        """The text before the colon, or ""."""
        return _LABELS.get(self.kind, "")

    @property
    def text(self) -> str:
        """The line with its label."""
        return f"{self.label}: {self.words}" if self.label else self.words


@dataclass(frozen=True, slots=True)
class ShownCause(Cause):
    """A cause together with its report."""

    report: CheckReport = field(kw_only=True)

    @property
    def tracking_id(self) -> str:
        """32 hex digits that identify the cause in later runs, even if lines move or the edit is amended."""
        primary = self.primary_finding
        parts = [primary.rule, str(primary.topic), primary.pointer, str(primary.direction), str(primary.against)]
        # Findings on declarations may differ in their message only.
        parts.append(primary.message if primary.verdict == "declaration" else "")
        return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]

    @property
    def level(self) -> CauseLevel:
        """The severity of the cause, or `waived`."""
        return "waived" if self.waivers else self.severity

    @property
    def label(self) -> str:
        """The rule, marked if the cause is waived."""
        return f"{self.primary_finding.rule}{' (waived)' if self.level == 'waived' else ''}"

    @property
    def place(self) -> str:
        """The source location, marked if the change removes it, or "" without a location."""
        source = str(self.primary_finding.source or "")
        return (
            f"{source} before the change ({self.report.base})"
            if source and self.primary_finding.before_change
            else source
        )

    @property
    def title(self) -> str:
        """A sentence about the version that cannot read another one, or the first sentence of the finding, without its full stop."""
        primary, check = self.primary_finding, self.find_check(self.primary_finding)
        title = re.split(r"\.(?=\s|$)|\n", primary.message, maxsplit=1)[0]
        if primary.verdict == "data" and check and primary.against and primary.direction and check.version is not None:
            findings = [
                finding
                for finding in self.findings
                if finding.topic == primary.topic and finding.direction == primary.direction
            ]
            old = re.sub(r"\d+", r"v\g<0>", format_ranges(number for finding in findings for number in finding.against))
            new = name_version(check, self.report)
            misread = check.verdict.misread if check.verdict else ()
            is_misread = primary.rule in {breakage.incompatibility.rule for breakage in misread}
            match primary.direction:
                case "new_reads_old":
                    title = f"{new} {'misreads' if is_misread else 'cannot read'} {old}"
                case "old_reads_new":
                    verb = "misreads" if old.count("v") == 1 else "misread"
                    title = f"{old} {verb if is_misread else 'cannot read'} {new}"
                case "both":
                    title = f"{new} and {old} cannot read each other"
        others = len(self.topics) - 1
        return f"{title}, and {format_count(others, 'more topic')} alike" if others > 0 else title

    def remove_title(self, sentences: str) -> str:
        """Return the sentences of a finding that the title does not repeat."""
        return sentences.removeprefix(self.title).removeprefix(".").strip()

    @property
    def message(self) -> str:
        """All lines as one text, for formats that show rule, severity and a location in the current files separately."""
        removed = [f"Place: {self.place}"] if self.primary_finding.before_change else []
        orders = dict.fromkeys(check.upgrade_first for check in self._list_checks() if check.upgrade_first)
        upgrades = [f"Upgrade first: {', '.join(orders)}"] if orders else []
        return "\n".join([*(line.text for line in self.list_lines()), *upgrades, *removed])

    def list_proofs(self) -> list[tuple[Finding, Counterexample]]:
        """Return the messages that prove the cause, each with its finding; of equal proofs, the last one."""
        findings = self.list_examples()
        proofs = {describe_proof(proof): (finding, proof) for finding in findings if (proof := finding.counterexample)}
        return [*proofs.values()]

    def list_lines(self) -> Iterator[CauseLine]:
        """Yield the findings with their proofs and fixes, the broker's answer, the topics if there are several, owners and the waive command."""
        for text in dict.fromkeys(map(describe_waiver, self.waivers)):
            yield CauseLine("waiver", f"{text[0].upper()}{text[1:]}")
        findings = [*self.list_examples()]
        # The last finding may state how many more there are.
        for finding in (*findings[: _MAX_EXAMPLES - 1], *findings[_MAX_EXAMPLES - 1 :][-1:]):
            for line in (*finding.message.split("\n"), *note_targets(finding, self.report)):
                yield CauseLine("reason", line)
            if finding.older:
                yield CauseLine("older", str(finding.older))
            if finding.counterexample:
                yield CauseLine("proof", describe_proof(finding.counterexample))
            if finding.fix and not finding.waiver:
                yield CauseLine("fix", on_one_line(finding.fix))
        if len(findings) > _MAX_EXAMPLES:
            more = format_count(len(findings) - _MAX_EXAMPLES, "more place")
            yield CauseLine("reason", f"The same at {more} of the topic.")
        # The broker's answer for each strategy, because its consequences depend on the strategy.
        refusals_by_strategy: dict[tuple[CompatibilityStrategy | None, tuple[str, ...]], list[Finding]] = {}
        for refusal in self.refusals:
            check = self.find_check(refusal)
            refusals_by_strategy.setdefault((check.strategy if check else None, refusal.targets), []).append(refusal)
        for refusal, *more_refusals in refusals_by_strategy.values():
            others = f" Likewise in {format_count(len(more_refusals), 'more topic')}." if more_refusals else ""
            # The broker's own message is not among these lines.
            sentence, *consequences = refusal.own_message.split("\n")
            for line in (f"{refusal.rule}: {sentence}{others}", *consequences, *note_targets(refusal, self.report)):
                yield CauseLine("broker", line)
        yield from (CauseLine("topics", line) for line in self._list_topic_lines())
        if owners := self.owners:
            yield CauseLine("owner", join_first([*map(on_one_line, owners)], _MAX_OWNERS))
        for contact in dict.fromkeys(finding.owner for finding in self.findings if finding.owner):
            yield CauseLine("contact", on_one_line(contact))
        if self.level == "error" and self.primary_finding.key:
            name = self.primary_finding.fingerprint if len(self.findings) == 1 else self.id
            command = make_waive_command(
                name, self.report.target, names_owner=not all(check.owner for check in self._list_checks())
            )
            yield CauseLine("approve", command)

    def list_distinct_lines(self) -> list[CauseLine]:
        """Return the lines, each once: findings of one cause often have one fix."""
        return [*dict.fromkeys(self.list_lines())]

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners that its topics declare."""
        return tuple(dict.fromkeys(check.owner for check in self._list_checks() if check.owner))

    def _list_checks(self) -> Iterator[TopicCheck]:
        """Yield the checks of the topics with findings of this cause."""
        yield from filter(None, map(self.find_check, self.findings))

    def find_diff(self) -> SchemaDiff | None:
        """Return the changes of the definition since the version that breaks, around the finding, or None if they are unknown."""
        finding, check = self.primary_finding, self.find_check(self.primary_finding)
        if check is None or check.schema is None or finding.commit or finding.verdict == "declaration":
            return None
        older = next((version for version in reversed(check.versions) if version.number in finding.against), None)
        old = older.info if older else check.before
        if not old:
            return None
        labels = format_version(older) if older else BEFORE, AFTER
        diff = diff_schemas(old=old, new=check.schema, labels=labels)
        of_new = finding.direction != "old_reads_new"
        return diff and diff.select_hunk(finding.pointer, check.schema if of_new else old, of_new=of_new)

    @property
    def edits(self) -> list[LineEdit]:
        """The edits that make its fixes, unless it is waived, or only a person can make them."""
        if self.waivers:
            return []
        return to_line_edits(finding.edit for finding in self.findings if finding.edit)

    def find_check(self, finding: Finding) -> TopicCheck | None:
        """Return the check of the topic of `finding` on its first target, or None if the topic was not checked."""
        checks, targets = self.report.checks_by_topic.get(finding.topic, []), finding.targets[:1]
        checks = [check for check in checks if check.kind == finding.kind] or checks
        matches = (check for check in checks if {*targets} <= {*check.targets})
        return next(matches, checks[0] if checks else None)

    def _list_topic_lines(self) -> Iterator[str]:
        """Yield a line of topics for each strategy and the versions that break under it."""
        if len(self.topics) < 2:
            return
        against: dict[TopicName | None, set[int]] = {}
        for finding in self.findings:
            against.setdefault(finding.topic, set()).update(finding.against)
        names_by_group: dict[str, list[str]] = {}
        for topic in self.topics:
            breaking = [format_version_numbers(sorted(against[topic]))] if against[topic] else []
            if topic in self.report.checks_by_topic:
                strategy = str(self.report.checks_by_topic[topic][-1].strategy)
            else:
                strategy = "unchanged" if self.report.base else "linted"
            names_by_group.setdefault(", ".join([strategy, *breaking]), []).append(str(topic))
        yield f"{format_count(len(self.topics), 'topic')}:"
        for group, names in sorted(names_by_group.items()):
            yield f"  {group} ({len(names)}): {join_first(names, _MAX_TOPICS)}"


def note_targets(item: Finding | TopicCheck | PolicyChange, report: CheckReport) -> list[str]:
    """Return a sentence with the targets of an item, or [] if it concerns all targets."""
    return [f"For {', '.join(item.targets)}."] if 0 < len(item.targets) < len(report.targets) else []


def make_waive_command(name: str, target: str, *, names_owner: bool) -> str:
    """Return the command that waives a finding or a cause.

    Args:
        name: the fingerprint of the finding, or the id of the cause.
        target: the target of the report, or "".
        names_owner: whether the command has to name an owner, because a topic declares none.
    """
    on = f" --target {quote(target)}" if target else ""
    owner = " --owner NAME" if names_owner else ""
    return f'schemactl waive {shorten_fingerprint(name)}{on} --reason "..." --until YYYY-MM-DD{owner}'


def describe_proof(proof: Counterexample) -> str:
    """Return the message that proves a finding, its size, and the result of the reader."""
    size = format_count(len(proof.data), "byte")
    return f"{truncate(proof.message, _MAX_MESSAGE)} ({size}): {on_one_line(proof.result)}"


class DiffRow(NamedTuple):
    """A line of one or both sides, with its line numbers from 1; None for a side without the line."""

    sign: Literal[" ", "-", "+"]
    old: int | None
    new: int | None
    text: str


Hunk = tuple[DiffRow, ...]


@dataclass(frozen=True, slots=True)
class SchemaDiff:
    """The lines in which two definitions differ, with context.

    Attributes:
        old, new: the labels of the sides.
        hunks: groups of adjacent lines.
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...]

    def list_lines(self, limit: int) -> Iterator[str]:
        """Yield the lines of a unified diff; if there are more than `limit`, the first ones and the number of the rest."""
        lines = [f"--- {self.old}", f"+++ {self.new}"]
        for hunk in self.hunks:
            old, new = ([number for number in side if number] for side in zip(*(row[1:3] for row in hunk), strict=True))
            lines.append(f"@@ -{min(old, default=0)},{len(old)} +{min(new, default=0)},{len(new)} @@")
            lines += [f"{row.sign}{row.text}" for row in hunk]
        for line in lines if len(lines) <= limit else lines[: limit - 1]:
            yield on_one_line(truncate(line, _MAX_LINE))
        if len(lines) > limit:
            yield f"@@ {len(lines) - limit + 1} more lines @@"

    def select_hunk(self, pointer: str, info: SchemaInfo, *, of_new: bool) -> SchemaDiff:
        """Return only the hunk with the line of a JSON pointer, or all hunks if no hunk has it.

        Args:
            pointer: a JSON pointer into `info`.
            info: the definition of one side.
            of_new: whether `info` is the new side.
        """
        # Only JSON has pointers.
        text = "\n".join(spec(info).format_lines(info))
        try:
            syntax = scan(text)
        except JsonSyntaxError:
            return self
        line = text.count("\n", 0, syntax.offsets[find_deepest(0, split_pointer(pointer), syntax.child)]) + 1
        hunks = [hunk for hunk in self.hunks if any((row.new if of_new else row.old) == line for row in hunk)]
        return SchemaDiff(self.old, self.new, tuple(hunks)) if hunks else self


def diff_schemas(*, old: SchemaInfo, new: SchemaInfo, labels: tuple[str, str]) -> SchemaDiff | None:
    """Return the difference of two definitions regardless of their formatting, or None if they are equal.

    Args:
        old: the older definition.
        new: the newer definition.
        labels: the labels of the old and the new side.
    """
    hunks: list[list[DiffRow]] = []
    numbers = {"-": 0, "+": 0}
    for line in diff_definitions(old=old, new=new)[2:]:
        if match := _HUNK_HEAD.fullmatch(line):
            numbers = {"-": int(match[1]), "+": int(match[2])}
            hunks.append([])
            continue
        sign: Any = line[:1]
        old_number, new_number = (numbers[side] if sign in (" ", side) else None for side in "-+")
        numbers = {side: number + (sign in (" ", side)) for side, number in numbers.items()}
        hunks[-1].append(DiffRow(sign, old_number, new_number, line[1:]))
    return SchemaDiff(*labels, tuple(map(tuple, hunks))) if hunks else None


def diff_lines(edit: LineEdit) -> SchemaDiff:
    """Return the difference that an edit makes, with the lines that it keeps."""
    unchanged = takewhile(lambda pair: pair[0] == pair[1], zip(edit.old_lines, edit.new_lines, strict=False))
    kept_count = len([*unchanged])
    numbers = range(edit.start, edit.start + kept_count)
    rows = [DiffRow(" ", number, number, line) for number, line in zip(numbers, edit.new_lines, strict=False)]
    first = edit.start + kept_count
    rows += [DiffRow("-", number, None, line) for number, line in enumerate(edit.old_lines[kept_count:], first)]
    rows += [DiffRow("+", None, number, line) for number, line in enumerate(edit.new_lines[kept_count:], first)]
    return SchemaDiff(f"a/{escape_path(edit.path)}", f"b/{escape_path(edit.path)}", (tuple(rows),))
