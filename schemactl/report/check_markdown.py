"""A check's report as Markdown, for a pull-request comment or a job summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemactl.checking import Cause, CheckReport
from schemactl.printing import on_one_line
from schemactl.report.cause import lines, place
from schemactl.report.check_text import (
    POLICIES_HEAD,
    change,
    named,
    policies,
    strategy,
    summary,
    tables,
    tables_head,
    verdicts,
)

MARKER = "<!-- schemactl:report:check -->"
"""Its first line, so that a comment can be found again and replaced."""

_NOTHING = "\u200b"
"""A space of no width."""

_REFERENCES = {ord(mark): f"&#{ord(mark)};" for mark in f"\\`*_{{}}[]<>#|~&@${_NOTHING}"}

_BLOCK = re.compile(r"^(?=[-+=])|(?<=^\d)(?=\d{0,8}[.)])")
"""Where a line would begin a list, a heading or a rule."""

_LINKED = re.compile(
    r"[@#]|(?i:(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//))|(?i:(?<!\w)(?:www(?=\.)|GH(?=-\d)))|:(?=[\w+-]+:)"
)
"""What GitHub makes a mention, a reference, a link or a picture of together with what follows it."""

_LIMIT = 60_000
"""GitHub cuts a comment at 65,536 characters; whole findings are left out before that."""


_MAX_ROWS = 200
"""Of a table, so that the causes have room."""


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """Return the sum, a table of the changed topics with both verdicts, and a folded block for each cause, waived ones first."""
    blocks = [MARKER, f"**{_plain(summary(report))}**"]
    if report.topics:
        rows = [
            (
                _code(named(t, str(t.topic), report)),
                *map(_plain, (change(t), strategy(t), *verdicts(t), *tables(t, report))),
            )
            for t in report.topics
        ]
        names = ("topic", "change", "strategy", f"broker ({report.releases})", "data", *tables_head(report))
        blocks.append(_table(names, rows))
    if report.policies:
        blocks.append(
            _table(POLICIES_HEAD, [(_code(row[0]), *map(_plain, row[1:])) for row in policies(report)])
        )
    size = sum(len(block) for block in blocks)
    causes = (*report.waived_causes, *report.causes)
    for position, cause in enumerate(causes):
        block = _cause(cause, report)
        size += len(block)
        if size > _LIMIT:
            blocks.append(f"_{len(causes) - position} more: run `schemactl check` to see them._")
            break
        blocks.append(block)
    return "\n\n".join(blocks)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = [_row(*map(_plain, head)), "|" + "---|" * len(head), *(_row(*row) for row in rows[:_MAX_ROWS])]
    if len(rows) > _MAX_ROWS:
        shown += ["", f"_{len(rows) - _MAX_ROWS} more: run `schemactl check` to see them._"]
    return "\n".join(shown)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cause(cause: Cause, report: CheckReport) -> str:
    lead = cause.lead
    where = f" at {_code(place(cause, report))}" if lead.source else ""
    kind = "waived" if cause.waivers else lead.severity
    head = f"<details><summary><b>{lead.rule}</b> ({kind}){where}</summary>"
    said = [_plain(line.strip()) + "  " for line in lines(cause, report)]
    return "\n".join([head, "", *said, "", "</details>"])


def _plain(text: str) -> str:
    """`text` as text: whatever it holds is no Markdown, no HTML and no link, mentions nobody and refers to no issue.

    A character reference (CommonMark 0.31, section 2.5) stands for the character and never for what it would begin. GitHub
    looks for mentions, references and emoji in the rendered page, so what begins one is cut off from what follows.
    """
    return _BLOCK.sub(_NOTHING, _cut(text)).translate(_REFERENCES)


def _code(text: str) -> str:
    """`text` as code."""
    return f"<code>{_cut(text).translate(_REFERENCES)}</code>"


def _cut(text: str) -> str:
    return _LINKED.sub(lambda found: f"{_NOTHING}{found[0]}{_NOTHING}", on_one_line(text))
