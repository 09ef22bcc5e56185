"""Render a check, plan or drift as Markdown; foreign text is escaped, so it cannot become markup, a link or a mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import quote

from schemactl.checks.check_report import CheckReport
from schemactl.core.environment import get_commit_link, get_line_link
from schemactl.core.errors import Source
from schemactl.core.escaping import MAX_MARKDOWN_LINE, escape_markdown
from schemactl.core.rules import find_page
from schemactl.core.terminal import on_one_line, truncate
from schemactl.core.wording import format_count
from schemactl.report.causes import FEW, CauseLine, ShownCause, diff_lines, rank_causes
from schemactl.report.check import (
    Cell,
    make_client_rows,
    make_policy_rows,
    make_topic_rows,
    shorten_cell,
    summarize_check,
)
from schemactl.report.document import ReportLine, TargetDocument, TargetReport
from schemactl.report.headline import make_headline
from schemactl.report.message_parts import list_message_parts

COMMENT_LIMIT: Final = 65_000
"""GitHub takes comments of up to 65,536 characters."""

SUMMARY_LIMIT: Final = 900_000
"""GitHub takes summaries of a step of up to a mebibyte."""

_CODE: Final = re.compile("`([^`]+)`")

_MAX_ROWS: Final = 200
"""The maximum number of rows of a table, so that the other parts have room."""

_MAX_DIFF_LINES = 60

_MAX_EDITS: Final = 5
"""The maximum number of edits of a cause that are shown."""

_MENTION = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9][A-Za-z0-9_-]{0,99})?")
"""A user, or a team of an organization."""

_CHECK_MARKS = {"waived": "🔓", "error": "❌", "warning": "⚠️", "note": "💬"}

_MAX_PROOFS: Final = 2
"""The maximum number of messages that prove a cause."""

_KINDS_BELOW_EDITS = (("broker",), ("topics", "owner", "contact"), ("approve",))
"""The kinds of lines below the diffs; the lines of a tuple form one paragraph."""

_SIGNS: Final = {"+": "+", "-": "-", "~": "!", "!": "!", "=": " ", "": " "}
"""The prefixes by which a block of code in the language `diff` is colored."""

_CHANGE_MARKS: Final = {"+": "🟢", "-": "🔴", "~": "🟡", "!": "❌", "=": "", "": ""}
"""The sign of a block with sentences."""

_DOCUMENT_MARKS: Final = {"bad": "❌", "doubtful": "⚠️", "good": "✅", "": ""}

_MAX_OPEN_LINES: Final = 60
"""The maximum number of lines of changes on a target that are unfolded from the start."""


def render_check(report: CheckReport, *, limit: int | None = None) -> str:
    """Return who breaks, the clients by team, a table of the changes, and a folded block for each cause, most important first.

    Blocks after the first `limit` characters, by default the limit of a comment, are replaced by their number.
    """
    limit = limit or COMMENT_LIMIT
    causes = rank_causes(report)
    failed = {topic for cause in causes if cause.level in ("error", "waived") for topic in cause.topics}
    rest = f"run `schemactl {report.command}` to see them"
    headline = make_headline(report)
    head = [_render_marker(report.command)]
    if report.command == "check":
        head.append(f"### {_DOCUMENT_MARKS[headline.shade]} {escape_markdown(headline.text)}")
    if clients := make_client_rows(report):
        name_row, *rows = clients
        rows.sort(key=lambda row: row[-1].shade != "bad")
        head.append(_render_table([name_row, *rows], limit // 8, rest))
    if report.topics:
        name_row, *rows = make_topic_rows(report)
        # Failed topics come first, because a long table is cut.
        order = sorted(range(len(rows)), key=lambda index: report.topics[index].topic not in failed)
        sources = {row[0].text: check.source for row, check in zip(rows, report.topics, strict=True)}
        head.append(_render_table([name_row, *(rows[index] for index in order)], limit // 2, rest, sources))
    if report.policies:
        head.append(_render_table(make_policy_rows(report), limit // 8, rest))
    head += [f"> {prose(note)}" for note in report.notes[:20]]
    head.append(bold(summarize_check(report)))
    is_open = sum(cause.level == "error" for cause in causes) <= FEW
    loud = [cause for cause in causes if cause.level != "note"]
    older = [cause for cause in causes if cause.level == "note" and cause.primary_finding.predates_change]
    notes = [cause for cause in causes if cause.level == "note" and not cause.primary_finding.predates_change]

    def render_blocks() -> Iterator[str]:
        # Consumed while there is room.
        for cause in loud:
            yield _render_cause(cause, is_open=is_open and cause.level == "error")
        if older:
            yield _render_folded(f"⚠️ {format_count(len(older), 'older problem')}, unchanged by this change", older)
        if notes:
            yield _render_folded(f"💬 {format_count(len(notes), 'note')}", notes)

    return _join_within_limit(limit, head, render_blocks(), len(loud) + bool(older) + bool(notes), rest)


def _render_folded(title: str, causes: Sequence[ShownCause]) -> str:
    """Return the reasons and fixes of causes that fail nothing, in one block."""
    lines = []
    for cause in causes[:_MAX_ROWS]:
        parts = [part for part in cause.list_distinct_lines() if part.kind in ("reason", "fix")]
        location = f" at {_render_place(cause)}" if cause.primary_finding.source else ""
        rule = f"<b>{link(cause.primary_finding.rule, find_page(cause.primary_finding.rule))}</b>"
        lines.append("  \n".join([f"{rule}{location}", *(_render_line(part) for part in parts)]))
    more = [f"_{len(causes) - _MAX_ROWS} more_"] if len(causes) > _MAX_ROWS else []
    return _render_details(title, "\n\n".join([*lines, *more]))


def _render_place(cause: ShownCause) -> str:
    """Return the place of a cause, as a link to the line if the host of the repository is known."""
    place = cause.primary_finding.place
    address = get_line_link(place) if place else ""
    return f"[{code(cause.place)}]({address})" if address else code(cause.place)


def _render_table(
    rows: Sequence[Sequence[Cell]], limit: int, rest: str, sources: Mapping[str, Source | None] | None = None
) -> str:
    """Return a table, with the first cell of a row as a link to its source if the host of the repository is known.

    The table is cut after `limit` characters; then the number of remaining rows follows, with the hint `rest`.
    """
    head, *others = rows

    def render_name(text: str) -> str:
        source = sources.get(text) if sources else None
        address = get_line_link(source) if source else ""
        name = code(shorten_cell(text))
        return f"[{name}]({address})" if address else name

    lines = [f"| {' | '.join(map(_render_cell, head))} |", "|" + "---|" * len(head)]
    size = 0
    for row in others[:_MAX_ROWS]:
        line = f"| {' | '.join([render_name(row[0].text), *map(_render_cell, row[1:])])} |"
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
    remaining = len(others) + 2 - len(lines)
    return "\n".join([*lines, *(["", f"_{remaining} more: {rest}._"] if remaining else [])])


def _render_cell(cell: Cell) -> str:
    text = shorten_cell(cell.text)
    return bold(text) if cell.shade == "bad" else escape_markdown(text)


def _render_cause(cause: ShownCause, *, is_open: bool) -> str:
    primary, topics = cause.primary_finding, len(cause.topics)
    several = f", {topics} topics" if topics > 1 else ""
    title = (
        f"{_CHECK_MARKS[cause.level]} <b>{primary.rule}</b> ({cause.level}{several}): {escape_markdown(cause.title)}"
    )
    parts = cause.list_distinct_lines()
    links = []
    if primary.source:
        links.append(_render_place(cause))
    links.append(f"rule {link(primary.rule, find_page(primary.rule))} ({code(f'schemactl explain {primary.rule}')})")
    check = cause.find_check(primary)
    older = [version for version in (check.versions if check else ()) if version.number in primary.against]
    if older and (commit := older[-1].commit):
        links.append(f"version {older[-1].number} from {link(commit.short, get_commit_link(commit.id))}")
    if commit := primary.commit:
        links.append(f"caused by {link(commit.short, get_commit_link(commit.id))}")
    body = [", ".join(links)]
    reasons = (
        part._replace(words=cause.remove_title(part.words))
        for part in parts
        if part.kind in ("waiver", "reason", "older")
    )
    body += ["  \n".join(_render_line(part) for part in reasons if part.words)]
    if diff := cause.find_diff():
        body.append(fence_lines(diff.list_lines(_MAX_DIFF_LINES), "diff"))
    body += _render_proofs(cause)
    body += ["  \n".join(_render_line(part) for part in parts if part.kind == "fix")]
    body += [fence_lines(diff_lines(edit).list_lines(_MAX_DIFF_LINES), "diff") for edit in cause.edits[:_MAX_EDITS]]
    for kinds in _KINDS_BELOW_EDITS:
        body += ["  \n".join(_render_line(part) for part in parts if part.kind in kinds)]
    return _render_details(title, "\n\n".join(filter(None, body)), is_open=is_open)


def _render_line(part: CauseLine) -> str:
    match part.kind:
        case "contact" if _MENTION.fullmatch(part.words):
            # Unescaped, so that GitHub notifies the owner of a client that breaks.
            return f"**{part.label}:** {part.words}"
        case "proof" | "fix" | "owner" | "contact":
            return f"**{part.label}:** {prose(part.words)}"
        case "approve":
            return f"{part.label}: {code(part.words)}"
        case _:
            return prose(part.text.strip())


def _render_proofs(cause: ShownCause) -> Iterator[str]:
    """Yield the messages that prove a cause as blocks of code, in which the guilty value is red."""
    for finding, proof in cause.list_proofs()[:_MAX_PROOFS]:
        lines = ["  "]
        for part in list_message_parts(proof, finding.field):
            if part.is_guilty:
                # The key belongs to the value.
                start, separator, key = lines[-1].rpartition(", ")
                lines[-1] = f"{start}{separator}".rstrip() if separator else ""
                lines += [f"- {key if separator else key.strip()}{part.text}", "  "]
            elif lines[-1] == "  " and len(lines) > 1 and part.text.startswith(", "):
                lines[-2] += ","
                lines[-1] += part.text[2:]
            else:
                lines[-1] += part.text
        lines.append(f"! {on_one_line(proof.result)}")
        size = format_count(len(proof.data), "byte")
        yield f"**Counterexample:** a message of {size}\n\n{fence_lines((line for line in lines if line.strip()), 'diff')}"


def render_documents(documents: Sequence[TargetDocument], *, limit: int | None = None) -> str:
    """Return the summaries, the rejections, and the changes of each target.

    Blocks after the first `limit` characters, by default the limit of a comment, are replaced by their number.
    """
    reports = [report for report, _ in documents]
    command = reports[0].command
    rest = f"run `schemactl {command}` to see them"
    several = len(reports) > 1
    head = [_render_marker(command, *(report.target for report in reports))]
    problems = []
    for report in reports:
        summary, shade = report.summary
        lines = [f"### ❌ {escape_markdown(report.broken_clients)}\n"] if report.broken_clients and summary else []
        if summary:
            digest = f"  \nDigest: {code(report.digest)}" if report.digest else ""
            lines.append(f"{_DOCUMENT_MARKS[shade]} {bold(summary)}  \n{escape_markdown(report.head)}{digest}")
        else:
            lines.append(f"{_DOCUMENT_MARKS[shade]} {bold(report.target)}")
        head.append("\n".join(lines))
        suffix = f" ({escape_markdown(report.target)})" if several else ""
        for first, *others in report.problems:
            title = f"❌ <b>{escape_markdown(first.text)}</b>{suffix}"
            problems.append(_render_details(title, "  \n".join(prose(line.text) for line in others), is_open=True))
    limit = limit or COMMENT_LIMIT
    share = (limit // 2) // len(reports)
    changes = [_render_changes(report, share, rest, several=several) for report in reports if report.blocks]
    blocks = [*problems, *changes]
    return _join_within_limit(limit, head, blocks, len(blocks), rest)


def _render_changes(report: TargetReport, limit: int, rest: str, *, several: bool) -> str:
    """Return the changes, cut after `limit` characters: lines with a sign as code in the language `diff`, sentences as text.

    Blocks without sentences share a block of code.
    """
    parts: list[str] = []
    shared_lines: list[str] = []
    line_count, remaining = 0, limit

    def end_shared_block() -> None:
        if shared_lines:
            parts.append(fence_lines(shared_lines, "diff"))
            shared_lines.clear()

    for number, block in enumerate(report.blocks):
        first, *others = block
        has_sentences = any(not line.sign for line in others)
        if has_sentences:
            body = [f"{_CHANGE_MARKS[first.sign]} {bold(first.text)}".strip(), *_render_sentences(others)]
        else:
            body = [_render_diff_line(line) for line in block]
        remaining -= sum(map(len, body)) + 2 * len(body) + 10
        if remaining < 0:
            end_shared_block()
            parts.append(f"_{len(report.blocks) - number} more: {rest}._")
            break
        line_count += len(block)
        if has_sentences:
            end_shared_block()
            parts += body
        else:
            shared_lines += [*([""] if shared_lines else []), *body]
    end_shared_block()
    suffix = f" on {escape_markdown(report.target)}" if several else ""
    verb = "changes" if report.command == "plan" else "differs"
    return _render_details(f"What {verb}{suffix}", "\n\n".join(parts), is_open=line_count <= _MAX_OPEN_LINES)


def _render_sentences(lines: Sequence[ReportLine]) -> Iterator[str]:
    """Yield a paragraph for each difference with its cause and its next command, and blocks of code for lines with a sign."""
    for is_signed, group in groupby(lines, lambda line: bool(line.sign)):
        if is_signed:
            signed = [*group]
            least = min(line.depth for line in signed)
            yield fence_lines((_render_diff_line(line._replace(depth=line.depth - least)) for line in signed), "diff")
            continue
        paragraph: list[str] = []
        for line in group:
            if line.strong and paragraph:
                yield "  \n".join(paragraph)
                paragraph = []
            text = prose(line.text.strip())
            if line.strong:
                text = f"{_DOCUMENT_MARKS[line.shade]} **{escape_markdown(line.strong)}**{prose(line.text.removeprefix(line.strong))}"
            paragraph.append(text)
        if paragraph:
            yield "  \n".join(paragraph)


def _render_diff_line(line: ReportLine) -> str:
    return f"{_SIGNS[line.sign]} {'  ' * line.depth}{on_one_line(line.text)}".rstrip()


def _render_marker(report: str, *targets: str) -> str:
    """Return a hidden first line by which a later run finds the comment with this report and replaces it."""
    return f"<!-- schemactl:report:{' '.join([report, *(quote(target, errors='replace') for target in targets)])} -->"


def prose(text: str) -> str:
    """Return a sentence, escaped, with the parts in backticks as code."""
    parts = _CODE.split(truncate(text, MAX_MARKDOWN_LINE))
    return "".join(code(part) if index % 2 else escape_markdown(part) for index, part in enumerate(parts))


def code(text: str) -> str:
    """Return `text`, escaped, as code."""
    return f"<code>{escape_markdown(text, starts_line=False)}</code>"


def bold(text: str) -> str:
    """Return `text`, escaped, in bold."""
    return f"**{escape_markdown(text)}**"


def link(text: str, address: str) -> str:
    """Return `text`, escaped, as a link to an address without parentheses and blanks, or as text if that is empty."""
    return f"[{escape_markdown(text)}]({address})" if address else escape_markdown(text)


def fence_lines(lines: Iterable[str], language: str) -> str:
    """Return the lines as a block of code, with a fence longer than any in the lines."""
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _render_details(title: str, body: str, *, is_open: bool = False) -> str:
    """Return a `details` element with `title` as summary; both are Markdown, the title without line ends."""
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>\n\n{body}\n\n</details>"


def _join_within_limit(limit: int, head: Sequence[str], blocks: Iterable[str], count: int, rest: str) -> str:
    """Return `head` and the blocks up to `limit` characters, then the number of remaining blocks with the hint `rest`.

    Args:
        limit: the most characters.
        head: blocks that are always included.
        blocks: the other blocks, most important first; consumed up to the first that does not fit.
        count: the number of `blocks`.
        rest: the hint how to see the remaining blocks.
    """
    pieces, size = [*head], sum(map(len, head)) + 2 * len(head)
    for block in blocks:
        size += len(block) + 2
        if size > limit - 200:
            break
        pieces.append(block)
    remaining = count + len(head) - len(pieces)
    return "\n\n".join([*pieces, *([f"_{remaining} more: {rest}._"] if remaining else [])])
