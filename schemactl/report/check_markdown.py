"""A check's report as Markdown, for a pull-request comment or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from schemactl.checks.check_report import CheckReport
from schemactl.core.environment import line_link
from schemactl.core.rules import Rule, every_rule
from schemactl.report.cause import FEW, CauseLine, ShownCause, shown_causes
from schemactl.report.check_rows import Cell, client_rows, policy_rows, summary, topic_rows
from schemactl.report.markdown import (
    COMMENT_LIMIT,
    bold,
    code,
    fenced,
    folded,
    link,
    marker,
    plain,
    prose,
    table,
    within,
)

_MAX_DIFF_LINES = 60

_MENTION = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9][A-Za-z0-9_-]{0,99})?")
"""A user, or a team of an organization, and nothing else."""

_MARKS = {"waived": "🔓", "error": "❌", "warning": "⚠️", "note": "💬"}

_BELOW_DIFF = (("proof",), ("fix",), ("broker",), ("topics", "owner", "contact"), ("approve",))
"""The kinds of lines that stand together."""


def render(report: CheckReport, *, limit: int | None = None) -> str:
    """Return the sum, tables of what changed, and a folded block for each cause, the most important first.

    What does not fit `limit` characters, by default those of a comment, is left out from the end, and counted.
    """
    limit = limit or COMMENT_LIMIT
    causes = shown_causes(report)
    failed = {
        topic for cause in causes if cause.weight in ("error", "waived") for topic in cause.cause.topics
    }
    rest = f"run `schemactl {report.command}` to see them"
    head = [marker(report.command), bold(summary(report))]
    if report.topics:
        names, *rows = topic_rows(report)
        # Those that fail stand first where not all of them can be shown.
        order = sorted(range(len(rows)), key=lambda at: report.topics[at].topic not in failed)
        head.append(_table([names, *(rows[at] for at in order)], limit // 2, rest))
    if clients := client_rows(report):
        head.append(_table(clients, limit // 8, rest))
    if report.policies:
        head.append(_table(policy_rows(report), limit // 8, rest))
    head += [f"> {prose(note)}" for note in report.notes[:20]]
    known = every_rule()
    opened = sum(cause.weight == "error" for cause in causes) <= FEW
    # A block is made only while it may still fit.
    blocks = (
        _cause(cause, known[cause.lead.rule], is_open=opened and cause.weight == "error") for cause in causes
    )
    return within(limit, head, blocks, len(causes), rest)


def _table(rows: Sequence[Sequence[Cell]], limit: int, rest: str) -> str:
    shown = [
        [_cell(cell, is_name=at == 0 < number) for at, cell in enumerate(row)]
        for number, row in enumerate(rows)
    ]
    return table(shown, limit=limit, rest=rest)


def _cell(cell: Cell, *, is_name: bool) -> str:
    if is_name:
        return code(cell.text)
    return bold(cell.text) if cell.shade == "bad" else plain(cell.text)


def _cause(cause: ShownCause, rule: Rule, *, is_open: bool) -> str:
    lead, topics = cause.lead, len(cause.cause.topics)
    where = f" at {code(cause.place)}" if lead.source else ""
    several = f", {topics} topics" if topics > 1 else ""
    title = f"{_MARKS[cause.weight]} <b>{lead.rule}</b> ({cause.weight}{several}){where}"
    # Findings of one cause often have one fix.
    parts = [*dict.fromkeys(cause.parts())]
    body = ["  \n".join(_line(part) for part in parts if part.kind in ("waiver", "reason", "older"))]
    if diff := cause.diff():
        body.append(fenced(diff.lines(_MAX_DIFF_LINES), "diff"))
    for kinds in _BELOW_DIFF:
        body += ["  \n".join(_line(part) for part in parts if part.kind in kinds)]
    body.append(" · ".join(_links(cause, rule)))
    return folded(title, "\n\n".join(filter(None, body)), is_open=is_open)


def _line(part: CauseLine) -> str:
    match part.kind:
        case "contact" if _MENTION.fullmatch(part.words):
            # Whoever answers for a client is told that it breaks.
            return f"**{part.label}:** {part.words}"
        case "proof" | "fix" | "owner" | "contact":
            return f"**{part.label}:** {prose(part.words)}"
        case "approve":
            return f"{part.label}: {code(part.words)}"
        case _:
            return prose(part.text.strip())


def _links(cause: ShownCause, rule: Rule) -> Iterator[str]:
    """Yield links to the rule, and to the line where it is known on which host the files are."""
    yield f"Rule: {link(rule.id, rule.link)}, {code(f'schemactl explain {rule.id}')}"
    place = cause.lead.place
    if place and (address := line_link(place)):
        yield link(str(place), address)
