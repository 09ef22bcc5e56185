"""A plan or drift as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemactl.report.check_rows import Shade
from schemactl.report.page import folded, page, prose, section, text
from schemactl.report.sheet import Sheet, SheetBlock, SheetLine, Sign

_KINDS: Final[dict[Sign, str]] = {"+": "come", "-": "gone", "~": "other", "!": "gone", "=": "", "": ""}


def render(sheets: Sequence[Sheet]) -> str:
    """Return a section for each target: what is rejected, then what changes, all of it unfolded where there is little."""
    command = sheets[0].command
    shades = [sheet.summary[1] for sheet in sheets]
    order: tuple[Shade, ...] = ("bad", "doubtful", "good")
    few = sum(len(sheet.blocks) for sheet in sheets) <= 30
    return page(
        f"schemactl {command}: {', '.join(sheet.target for sheet in sheets)}",
        sentence=" ".join(sheet.summary[0] for sheet in sheets)
        if len(sheets) == 1
        else f"{len(sheets)} targets",
        shade=next((shade for shade in order if shade in shades), ""),
        weights=[("error", sum(len(sheet.problems) for sheet in sheets))],
        sections=[_section(sheet, is_open=few, is_only=len(sheets) == 1) for sheet in sheets],
    )


def _section(sheet: Sheet, *, is_open: bool, is_only: bool) -> str:
    summary, shade = sheet.summary
    return section(
        sheet.target,
        # Of the only target, it stands at the top.
        f'<p class="sum {shade}">{text(summary)}</p>' if summary and not is_only else "",
        f"<p>{text(sheet.head)}</p>" if sheet.head else "",
        f"<p>Digest: <code>{text(sheet.digest)}</code></p>" if sheet.digest else "",
        *(_folded(block, weight="error", is_open=True) for block in sheet.problems),
        *(_folded(block, is_open=is_open) for block in sheet.blocks),
    )


def _folded(block: SheetBlock, *, weight: str = "", is_open: bool) -> str:
    first, *rest = block
    items = "".join(map(_item, rest))
    return folded(
        f"{_sign(first)}<h3>{text(first.text)}</h3>",
        f'<ul class="signs">{items}</ul>',
        weight=weight,
        is_open=is_open,
    )


def _item(line: SheetLine) -> str:
    return f'<li class="{_KINDS[line.sign]} deep{min(line.depth, 4)}">{_sign(line)}{prose(line.text)}</li>'


def _sign(line: SheetLine) -> str:
    return f'<span class="sign">{text(line.sign)}</span> ' if line.sign else ""
