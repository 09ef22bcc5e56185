"""The parts of Markdown reports. Text from outside is escaped, so that it can be no markup, link or mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from schemactl.core.terminal import cut, on_one_line

COMMENT_LIMIT: Final = 65_000
"""GitHub takes comments of up to 65,536 characters."""

SUMMARY_LIMIT: Final = 900_000
"""GitHub takes summaries of a step of up to a mebibyte."""

_CODE: Final = re.compile("`([^`]+)`")

_MAX_LINE: Final = 8_000
"""Longer words are cut."""

_NOTHING = "\u200b"
"""A space of no width."""

_MARKUP = re.compile(rf"[\\`*{{}}\[\]<>#|~&@${_NOTHING}]|(?<![^\W_])_+|_+(?![^\W_])")
"""Characters that begin or end something; `_` does not between letters and digits."""

_BLOCK = re.compile(r"^(?=[-+=])|(?<=^\d)(?=\d{0,8}[.)])")
"""Where a line would begin a list, a heading or a rule."""

_LINKED = re.compile(
    r"[@#]|(?i:(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//))|(?i:(?<!\w)(?:www(?=\.)|GH(?=-\d)))|:(?=[\w+-]+:)"
)
"""What GitHub makes a mention, a reference, a link or a picture of together with what follows it."""

_MAX_ROWS: Final = 200
"""Of a table, so that the rest has room."""


def marker(report: str, *targets: str) -> str:
    """Return the first line of a report of this kind, and on these targets, so that a comment can be found again and replaced."""
    return f"<!-- schemactl:report:{' '.join([report, *(quote(each, errors='replace') for each in targets)])} -->"


def plain(text: str) -> str:
    """`text` as text: whatever it holds is no Markdown, no HTML and no link, mentions nobody and refers to no issue.

    A character reference (CommonMark 0.31, section 2.5) stands for the character and never for what it would begin. GitHub
    looks for mentions, references and emoji in the rendered page, so what begins one is cut off from what follows.
    """
    return _escaped(_BLOCK.sub(_NOTHING, _cut(text)))


def prose(text: str) -> str:
    """Return a sentence of ours as text, in which backticks enclose code."""
    parts = _CODE.split(cut(text, _MAX_LINE))
    return "".join(code(part) if at % 2 else plain(part) for at, part in enumerate(parts))


def code(text: str) -> str:
    """Return `text`, escaped, as code."""
    return f"<code>{_escaped(_cut(text))}</code>"


def _cut(text: str) -> str:
    return _LINKED.sub(
        lambda found: f"{'' if found[0] == ':' else _NOTHING}{found[0]}{_NOTHING}",
        on_one_line(cut(text, _MAX_LINE)),
    )


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: "".join(f"&#{ord(mark)};" for mark in found[0]), text)


def bold(text: str) -> str:
    """Return `text`, escaped, in bold."""
    return f"**{plain(text)}**"


def link(text: str, address: str) -> str:
    """`text` as text, a link where there is an `address`: one of ours, without parentheses and blanks."""
    return f"[{plain(text)}]({address})" if address else plain(text)


def fenced(lines: Iterable[str], language: str) -> str:
    """Return the lines as a block of code: whatever they hold does not end it."""
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def table(rows: Sequence[Sequence[str]], *, limit: int, rest: str) -> str:
    """Return a table of rows of Markdown, the head first: as many as fit `limit` characters; then how many do not, with `rest` behind it."""
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    shown, size = [head, "|" + "---|" * len(rows[0])], 0
    for row in others[:_MAX_ROWS]:
        size += len(row) + 1
        if size > limit:
            break
        shown.append(row)
    left = len(others) + 2 - len(shown)
    return "\n".join([*shown, *(["", f"_{left} more: {rest}._"] if left else [])])


def folded(title: str, body: str, *, is_open: bool = False) -> str:
    """Return `body` below `title` (both Markdown, the title without line ends), to be unfolded where that is not asked for at once."""
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>\n\n{body}\n\n</details>"


def within(limit: int, head: Sequence[str], blocks: Iterable[str], count: int, rest: str) -> str:
    """Return `head` and as many of the `count` blocks, the most important first, as fit; then how many do not, with `rest` behind it.

    No block is asked for after the first that does not fit.
    """
    shown, size = [*head], sum(map(len, head)) + 2 * len(head)
    for block in blocks:
        size += len(block) + 2
        if size > limit - 200:
            break
        shown.append(block)
    left = count + len(head) - len(shown)
    return "\n\n".join([*shown, *([f"_{left} more: {rest}._"] if left else [])])
