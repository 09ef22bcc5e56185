"""A plan or drift as Markdown, for a pull-request comment or a job summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemactl.core.terminal import on_one_line
from schemactl.report.markdown import COMMENT_LIMIT, bold, code, fenced, folded, marker, plain, prose, within
from schemactl.report.sheet import Sheet, SheetBlock

_SIGNS: Final = {"+": "+", "-": "-", "~": "!", "!": "!", "=": " ", "": " "}
"""What a block of code that is a diff colours."""

_MARKS: Final = {"bad": "❌", "doubtful": "⚠️", "good": "✅", "": ""}

_OPEN: Final = 60
"""So many lines of a target can be read without a click."""


def render(sheets: Sequence[Sheet], *, limit: int = COMMENT_LIMIT) -> str:
    """Return the sum of each target, what is rejected, and what changes; what does not fit is left out from the end, and counted."""
    command = sheets[0].command
    rest = f"run `schemactl {command}` to see them"
    several = len(sheets) > 1
    head = [marker(command, *(sheet.target for sheet in sheets)), *(_head(sheet) for sheet in sheets)]
    problems = [_problem(block, sheet, several=several) for sheet in sheets for block in sheet.problems]
    share = (limit // 2) // len(sheets)
    changes = [_changes(sheet, share, rest, several=several) for sheet in sheets if sheet.blocks]
    blocks = [*problems, *changes]
    return within(limit, head, blocks, len(blocks), rest)


def _head(sheet: Sheet) -> str:
    summary, shade = sheet.summary
    if not summary:
        return f"{_MARKS[shade]} {bold(sheet.target)}"
    digest = f"  \nDigest: {code(sheet.digest)}" if sheet.digest else ""
    return f"{_MARKS[shade]} {bold(summary)}  \n{plain(sheet.head)}{digest}"


def _problem(block: SheetBlock, sheet: Sheet, *, several: bool) -> str:
    first, *rest = block
    aside = f" ({plain(sheet.target)})" if several else ""
    return folded(
        f"❌ <b>{plain(first.text)}</b>{aside}", "  \n".join(prose(line.text) for line in rest), is_open=True
    )


def _changes(sheet: Sheet, limit: int, rest: str, *, several: bool) -> str:
    """Return what changes as a block of code, as a diff is coloured: as much as fits `limit` characters."""
    lines: list[str] = []
    left = limit
    for number, block in enumerate(sheet.blocks):
        shown = [
            f"{_SIGNS[line.sign]} {'  ' * line.depth}{on_one_line(line.text)}".rstrip() for line in block
        ]
        left -= sum(map(len, shown)) + len(shown) + 1
        if left < 0:
            lines.append(f"@@ {len(sheet.blocks) - number} more: {rest} @@")
            break
        lines += [*([""] if lines else []), *shown]
    aside = f" on {plain(sheet.target)}" if several else ""
    what = "changes" if sheet.command == "plan" else "differs"
    return folded(f"What {what}{aside}", fenced(lines, "diff"), is_open=len(lines) <= _OPEN)
