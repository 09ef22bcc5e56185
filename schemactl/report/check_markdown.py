"""A check's report as Markdown, for a pull-request comment or a job summary."""

from __future__ import annotations

from schemactl.check import CheckReport
from schemactl.report.check_text import change, summary, tables, tables_head, verdicts
from schemactl.verdicts import Finding

MARKER = "<!-- schemactl:report:check -->"
"""Its first line, so that a comment can be found again and replaced."""

_LIMIT = 60_000
"""GitHub cuts a comment at 65,536 characters; whole findings are left out before that."""


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """The sum, a table of the changed topics with both verdicts, and a folded block for each finding."""
    blocks = [MARKER, f"**{_plain(summary(report))}**"]
    if report.topics:
        rows = [
            _row(f"`{t.topic}`", change(t), str(t.strategy), *verdicts(t), *tables(t, report))
            for t in report.topics
        ]
        names = ("topic", "change", "strategy", f"broker ({report.release})", "data", *tables_head(report))
        blocks.append("\n".join([_row(*names), "|" + "---|" * len(names), *rows]))
    size = sum(len(block) for block in blocks)
    for position, finding in enumerate(report.findings):
        block = _finding(finding)
        size += len(block)
        if size > _LIMIT:
            blocks.append(
                f"_{len(report.findings) - position} more findings: run `schemactl check` to see them._"
            )
            break
        blocks.append(block)
    return "\n\n".join(blocks)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _finding(finding: Finding) -> str:
    where = f" at <code>{_plain(str(finding.source))}</code>" if finding.source else ""
    lines = [f"<details><summary><b>{finding.rule}</b> ({finding.severity}){where}</summary>", ""]
    lines += [_plain(line) + "  " for line in finding.message.splitlines()]
    if finding.fix:
        lines.append(f"**Fix:** {_plain(finding.fix)}")
    return "\n".join([*lines, "", "</details>"])


def _plain(text: str) -> str:
    """Text from schemas can neither open HTML, nor a comment, nor mention anybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\u200b").replace("`", "\u02cb")
