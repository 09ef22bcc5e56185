"""Render a check, plan or drift as Markdown; foreign text is escaped, so it cannot become markup, a link or a mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote

from schemactl.checks.check_report import CheckReport
from schemactl.core.environment import line_link
from schemactl.core.rules import Rule, every_rule
from schemactl.core.terminal import cut, on_one_line
from schemactl.report.causes import FEW, CauseLine, ShownCause, shown_causes
from schemactl.report.check import Cell, client_rows, policy_rows, summary, topic_rows
from schemactl.report.document import Sheet, SheetBlock

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
        lambda found: f"{'' if found[0] == ':' else _NOTHING}{found[0]}{_NOTHING}", on_one_line(cut(text, _MAX_LINE))
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


# Checks, for a pull-request comment or a job summary


_MAX_DIFF_LINES = 60

_MENTION = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9][A-Za-z0-9_-]{0,99})?")
"""A user, or a team of an organization, and nothing else."""

_CHECK_MARKS = {"waived": "🔓", "error": "❌", "warning": "⚠️", "note": "💬"}

_BELOW_DIFF = (("proof",), ("fix",), ("broker",), ("topics", "owner", "contact"), ("approve",))
"""The kinds of lines that stand together."""


def render_check(report: CheckReport, *, limit: int | None = None) -> str:
    """Return the sum, tables of what changed, and a folded block for each cause, the most important first.

    What does not fit `limit` characters, by default those of a comment, is left out from the end, and counted.
    """
    limit = limit or COMMENT_LIMIT
    causes = shown_causes(report)
    failed = {topic for cause in causes if cause.weight in ("error", "waived") for topic in cause.cause.topics}
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
    blocks = (_cause(cause, known[cause.lead.rule], is_open=opened and cause.weight == "error") for cause in causes)
    return within(limit, head, blocks, len(causes), rest)


def _table(rows: Sequence[Sequence[Cell]], limit: int, rest: str) -> str:
    shown = [[_cell(cell, is_name=at == 0 < number) for at, cell in enumerate(row)] for number, row in enumerate(rows)]
    return table(shown, limit=limit, rest=rest)


def _cell(cell: Cell, *, is_name: bool) -> str:
    if is_name:
        return code(cell.text)
    return bold(cell.text) if cell.shade == "bad" else plain(cell.text)


def _cause(cause: ShownCause, rule: Rule, *, is_open: bool) -> str:
    lead, topics = cause.lead, len(cause.cause.topics)
    where = f" at {code(cause.place)}" if lead.source else ""
    several = f", {topics} topics" if topics > 1 else ""
    title = f"{_CHECK_MARKS[cause.weight]} <b>{lead.rule}</b> ({cause.weight}{several}){where}"
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


# Plans and drift, for a pull-request comment or a job summary


_SIGNS: Final = {"+": "+", "-": "-", "~": "!", "!": "!", "=": " ", "": " "}
"""What a block of code that is a diff colours."""

_DOCUMENT_MARKS: Final = {"bad": "❌", "doubtful": "⚠️", "good": "✅", "": ""}

_OPEN: Final = 60
"""So many lines of a target can be read without a click."""


def render_documents(sheets: Sequence[Sheet], *, limit: int = COMMENT_LIMIT) -> str:
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
        return f"{_DOCUMENT_MARKS[shade]} {bold(sheet.target)}"
    digest = f"  \nDigest: {code(sheet.digest)}" if sheet.digest else ""
    return f"{_DOCUMENT_MARKS[shade]} {bold(summary)}  \n{plain(sheet.head)}{digest}"


def _problem(block: SheetBlock, sheet: Sheet, *, several: bool) -> str:
    first, *rest = block
    aside = f" ({plain(sheet.target)})" if several else ""
    return folded(f"❌ <b>{plain(first.text)}</b>{aside}", "  \n".join(prose(line.text) for line in rest), is_open=True)


def _changes(sheet: Sheet, limit: int, rest: str, *, several: bool) -> str:
    """Return what changes as a block of code, as a diff is coloured: as much as fits `limit` characters."""
    lines: list[str] = []
    left = limit
    for number, block in enumerate(sheet.blocks):
        shown = [f"{_SIGNS[line.sign]} {'  ' * line.depth}{on_one_line(line.text)}".rstrip() for line in block]
        left -= sum(map(len, shown)) + len(shown) + 1
        if left < 0:
            lines.append(f"@@ {len(sheet.blocks) - number} more: {rest} @@")
            break
        lines += [*([""] if lines else []), *shown]
    aside = f" on {plain(sheet.target)}" if several else ""
    what = "changes" if sheet.command == "plan" else "differs"
    return folded(f"What {what}{aside}", fenced(lines, "diff"), is_open=len(lines) <= _OPEN)
