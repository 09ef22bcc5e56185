"""A check's report as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemactl.checks.check_report import CheckReport
from schemactl.core.terminal import SHADES, paint, table
from schemactl.report.cause import ShownCause, shown_causes
from schemactl.report.check_rows import Cell, client_rows, policy_rows, summary, topic_rows, verdict_of

_SEVERITIES: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(report: CheckReport, *, color: bool = False, width: int | None = None) -> str:
    """Each cause with place, reason and fix, the most important first; then the changed topics with both verdicts; then the sum."""
    blocks = [_cause(cause, color=color) for cause in shown_causes(report)]
    blocks += [_table(topic_rows(report), color=color, width=width)] if report.topics else []
    blocks += [_table(rows, color=color, width=width)] if (rows := client_rows(report)) else []
    blocks += [_table(policy_rows(report), color=color, width=width)] if report.policies else []
    blocks += [f"note: {note}" for note in report.notes]
    blocks.append(paint(summary(report), SHADES[verdict_of(report)], color=color))
    return "\n\n".join(blocks)


def _cause(cause: ShownCause, *, color: bool) -> str:
    lead = cause.lead
    where = f"{cause.place}: " if lead.source else ""
    rule = paint(lead.rule, _SEVERITIES[lead.severity], color=color)
    aside = "" if cause.weight == "error" else f" ({cause.weight})"
    more = paint(f"  More: schemactl explain {lead.rule}", "dim", color=color)
    lines = (f"  {part.text}" for part in cause.parts())
    return "\n".join([f"{paint(where, 'bold', color=color)}{rule}{aside}", *lines, more])


def _table(rows: Sequence[Sequence[Cell]], *, color: bool, width: int | None) -> str:
    styles = [[SHADES[cell.shade] for cell in row] for row in rows]
    texts = [[cell.text for cell in row] for row in rows]
    if width is not None:
        # Room for what tells one topic from another.
        texts = [[text.removeprefix("persistent://") for text in row] for row in texts]
    return "\n".join(table(texts, width=width, whole=(0,), styles=styles if color else None))
