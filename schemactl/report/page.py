"""One self-contained HTML page: what every report has of it. It asks no other address for anything."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from schemactl.core.environment import version
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.report.check_rows import Cell, Shade
    from schemactl.report.schema_diff import DiffRow, SchemaDiff


_CODE: Final = re.compile("`([^`]+)`")
_NO_CHARACTERS: Final = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""Characters that HTML does not allow."""


def text(words: object) -> str:
    """Return `words` as one line, escaped for HTML."""
    return escape(on_one_line(str(words)).translate(_NO_CHARACTERS))


def prose(words: object) -> str:
    """Return a sentence of ours as HTML; backticks enclose code."""
    return _CODE.sub(r"<code>\1</code>", text(words))


def page(
    title: str, *, sentence: str, shade: Shade, weights: Sequence[tuple[str, int]], sections: Iterable[str]
) -> str:
    """Return the page.

    Args:
        title: of the report.
        sentence: its sum.
        shade: what it says.
        weights: how many parts there are of each weight, those with some can be filtered.
        sections: HTML.
    """
    style, script = (_shipped(name) for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    found = [(name, count) for name, count in weights if count]
    counts = "".join(f'<li class="{name}">{text(_counted(count, name))}</li>' for name, count in found)
    boxes = "".join(
        f'<label><input type="checkbox" value="{name}" checked> {name}</label>' for name, _ in found
    )
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
            '<a class="skip" href="#main">Skip to the report</a>',
            f'<header><h1>{text(title)}</h1>\n<p class="sum {shade}">{text(sentence)}</p>',
            f'<ul class="counts">{counts}</ul>' if counts else "",
            '</header>\n<div class="tools" role="search" hidden>',
            '<label class="unseen" for="find">Show what has these words</label>',
            '<input type="search" id="find" placeholder="Filter: topic, rule, file" aria-keyshortcuts="/">',
            boxes,
            '<button type="button" data-do="unfold">Unfold all</button><button type="button" data-do="fold">Fold all</button>',
            '<button type="button" data-do="theme">Light or dark</button>',
            '<span role="status"></span></div>\n<main id="main">',
            *sections,
            f"</main>\n<footer><p>schemactl {text(version())}. Keys: / filters, j and k go to the next and the former part, Enter unfolds it.</p></footer>",
            f"<script>{script}</script>\n</body>\n</html>",
        ]
    )


def _counted(count: int, weight: str) -> str:
    return f"{count} waived" if weight == "waived" else counted(count, weight)


def section(title: str, *parts: str) -> str:
    """Return a part of the page below a heading; "" without any `parts`."""
    return "\n".join([f"<section><h2>{text(title)}</h2>", *parts, "</section>"]) if any(parts) else ""


def folded(head: str, *parts: str, weight: str = "", is_open: bool = False) -> str:
    """Return HTML below the HTML `head`, to be unfolded; the filter knows it by `weight`."""
    inside = "\n".join(filter(None, parts))
    opened = " open" if is_open else ""
    return f'<details class="{weight}" data-find="{weight}"{opened}><summary>{head}</summary>\n<div class="inside">{inside}</div></details>'


def table(rows: Sequence[Sequence[Cell]], caption: str) -> str:
    """Return a table, the head first; the first cell of a row names it."""
    head, *others = rows
    names = [f'<th scope="row"><code>{text(row[0].text)}</code></th>' for row in others]
    heads = "".join(f'<th scope="col">{text(cell.text)}</th>' for cell in head)
    body = "\n".join(
        f'<tr data-find="">{name}{"".join(map(_cell, row[1:], head[1:]))}</tr>'
        for name, row in zip(names, others, strict=True)
    )
    shown = f'<table class="rows"><caption>{text(caption)}</caption><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table>'
    return scrolling(shown, caption)


def _cell(cell: Cell, head: Cell) -> str:
    # A narrow window shows rows below each other, with the head of each cell beside it.
    if cell.text == "-":
        return f'<td data-head="{text(head.text)}"><span class="unseen">nothing</span><span aria-hidden="true">-</span></td>'
    return f'<td class="{cell.shade}" data-head="{text(head.text)}">{text(cell.text)}</td>'


def scrolling(shown: str, label: str) -> str:
    """Return a table that scrolls by itself in a narrow window, with what it is called."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{text(label)}">{shown}</div>'


def side_by_side(diff: SchemaDiff, most: int) -> str:
    """Return a table of both sides of a diff, with at most so many lines."""
    rows: list[str] = []
    left = most
    for number, hunk in enumerate(diff.hunks):
        rows += ['<tr class="far"><td></td><td></td></tr>'] * (number > 0)
        rows += map(_row, _pairs(hunk[:left]))
        left -= len(hunk)
        if left <= 0:
            rows.append(
                '<tr class="far"><td>More lines differ: <code>schemactl diff</code> has all.</td><td></td></tr>'
            )
            break
    heads = f'<th scope="col">{text(diff.old)}</th><th scope="col">{text(diff.new)}</th>'
    caption = "<caption>What changed in the definition</caption>"
    return (
        f'<table class="diff">{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _pairs(hunk: Sequence[DiffRow]) -> Iterable[tuple[DiffRow | None, DiffRow | None]]:
    """Yield pairs of lines, old and new, that stand beside each other; None on the side that has no line."""
    gone: list[DiffRow] = []
    come: list[DiffRow] = []
    for row in (*hunk, None):
        if row and row.sign == "-" and not come:
            gone.append(row)
        elif row and row.sign == "+":
            come.append(row)
        else:
            for at in range(max(len(gone), len(come))):
                yield (gone[at] if at < len(gone) else None, come[at] if at < len(come) else None)
            gone, come = ([row] if row and row.sign == "-" else []), []
            if row and row.sign == " ":
                yield row, row


def _row(pair: tuple[DiffRow | None, DiffRow | None]) -> str:
    old, new = pair
    same = ' class="same"' if old is new else ""
    sides = (old, old and old.old, "gone"), (new, new and new.new, "come")
    return (
        f"<tr{same}>{''.join(_side(row, number, '' if same else kind) for row, number, kind in sides)}</tr>"
    )


def _side(row: DiffRow | None, number: int | None, kind: str) -> str:
    if row is None:
        return "<td></td>"
    said = {
        "gone": '<span class="unseen">removed: </span>',
        "come": '<span class="unseen">added: </span>',
    }.get(kind, "")
    return f'<td class="{kind}"><span class="line">{number}</span>{said}{text(row.text)}</td>'


def _shipped(name: str) -> str:
    return files("schemactl.report").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
