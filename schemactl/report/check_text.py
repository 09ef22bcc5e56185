"""Render a check for a terminal as rustc and ruff do: the location in the file, the counterexample, the fix, then the details."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemactl.checks.check_report import CheckReport
from schemactl.core.environment import get_line_link
from schemactl.core.errors import join_first
from schemactl.core.rules import find_page
from schemactl.core.terminal import (
    SHADES,
    count_columns,
    format_table,
    on_one_line,
    paint,
    paint_link,
    truncate,
    wrap_text,
)
from schemactl.core.wording import format_count, format_ranges
from schemactl.report.causes import ShownCause, describe_proof, rank_causes
from schemactl.report.check import (
    Cell,
    get_shade,
    make_client_rows,
    make_policy_rows,
    make_topic_rows,
    shorten_cell,
    summarize_check,
)
from schemactl.report.headline import MARKS, make_headline, name_client, name_version, shorten_topic
from schemactl.report.message_parts import list_message_parts

_COLORS: Final = {"waived": "cyan", "error": "bold red", "warning": "bold yellow", "note": "bold cyan"}

_LABELS: Final = {
    "waiver": "waived",
    "reason": "why",
    "older": "older",
    "fix": "fix",
    "broker": "broker",
    "topics": "topics",
    "owner": "owner",
    "contact": "contact",
    "approve": "waive",
}
"""The label of each kind of line of a cause."""

_SECONDARY: Final = frozenset({"older", "topics", "owner", "contact", "approve"})
"""The kinds of lines that are dim."""

_LABEL_WIDTH: Final = 8

_MARGIN: Final = 8
"""The columns before a label."""

_TOPIC_COLUMNS_TO_DROP: Final = ("strategy", "upgrade first", "tables", "change")

_CLIENT_COLUMNS_TO_DROP: Final = ("role", "built with", "team")
"""The columns that a narrow terminal omits, the least important first."""

_MAX_LINE: Final = 160
"""The maximum number of characters of a line of a file if the width is not known."""

_MAX_REMOVED: Final = 3
"""The maximum number of removed lines in an excerpt."""


@dataclass(frozen=True, slots=True)
class _Screen:
    """The terminal that shows a report.

    Attributes:
        color: whether it shows colors and links.
        width: its columns, or None for any width.
        folder: the top folder of the repository, for links to its files, or "".
    """

    color: bool
    width: int | None
    folder: str

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style, or unchanged without colors."""
        return paint(text, style, color=self.color)

    def wrap(self, text: str, hanging: str) -> str:
        """Break a text at blanks for the columns after `hanging`, which starts each further line."""
        if self.width is None:
            return text
        pieces = wrap_text(text, max(self.width - len(hanging), 20)).split("\n")
        return f"\n{hanging}".join(piece.strip() for piece in pieces)


def render_text(
    report: CheckReport, *, color: bool = False, width: int | None = None, notes: bool = False, folder: str = ""
) -> str:
    """Return the headline, the causes, most important first, the tables of topics, clients and policies, and the summary.

    Notes, and problems that are older than the change, are counted in one line each, unless `notes` is set. Locations are links to
    the host of a build server, or else to the file below `folder`, the top folder of the repository.
    """
    screen = _Screen(color, width, folder)
    causes = rank_causes(report)
    folds_notes = not notes and report.command == "check"
    shown_causes = [cause for cause in causes if not folds_notes or cause.level != "note"]
    folded = [cause for cause in causes if folds_notes and cause.level == "note"]
    blocks = []
    if report.command == "check":
        headline = make_headline(report)
        subject = screen.paint(f"{MARKS[headline.shade]} {headline.subject}", f"bold {SHADES[headline.shade]}")
        blocks.append(f"{subject} {headline.rest}".rstrip())
    blocks += [_render_cause(cause, screen) for cause in shown_causes]
    if fold_lines := [*_fold_notes(folded)]:
        blocks.append("\n".join(screen.paint(line, "dim") for line in fold_lines))
    if report.topics:
        blocks.append(_render_table(make_topic_rows(report), _TOPIC_COLUMNS_TO_DROP, screen))
    if clients := make_client_rows(report):
        blocks.append(_render_table(clients, _CLIENT_COLUMNS_TO_DROP, screen))
    if report.policies:
        blocks.append(_render_table(make_policy_rows(report), (), screen))
    blocks += [f"note: {note}" for note in report.notes]
    blocks.append(screen.paint(summarize_check(report), SHADES[get_shade(report)]))
    return "\n\n".join(blocks)


def render_concise(report: CheckReport, *, color: bool = False) -> str:
    """Return one line for each cause: its place, severity and rule, then what breaks."""
    lines = []
    for cause in rank_causes(report):
        primary = cause.primary_finding
        place = str(primary.place or primary.source or report.settings)
        reason = (
            primary.details.partition("\n")[0] if primary.verdict == "data" and primary.details else primary.summary
        )
        text = cause.title
        if reason and not reason.startswith(text):
            text += f": {reason}"
        severity = paint(cause.level, _COLORS[cause.level], color=color)
        lines.append(f"{paint(place, 'cyan', color=color)}: {severity} {primary.rule} {truncate(text, 400)}")
    return "\n".join(lines)


# Causes


def _render_cause(cause: ShownCause, screen: _Screen) -> str:
    primary, style = cause.primary_finding, _COLORS[cause.level]
    rule = screen.paint(primary.rule, style)
    if screen.color:
        rule = paint_link(rule, find_page(primary.rule), color=True)
    bracket, end = screen.paint(f"{cause.level}[", style), screen.paint("]", style)
    head = screen.wrap(f"{bracket}{rule}{end}: {screen.paint(cause.title, 'bold')}", "  ")
    lines = [head]
    if primary.source:
        place = screen.paint(cause.place, "cyan")
        address = get_line_link(primary.place) if primary.place else ""
        if primary.place and not address and screen.folder.startswith("/"):
            address = Path(screen.folder, primary.place.path).as_uri()
        lines.append(f"  {screen.paint('-->', 'dim')} {paint_link(place, address, color=screen.color)}")
        lines += _render_excerpt(cause, screen)
    previous_label = ""
    for label, text, text_style in _list_details(cause, screen):
        shown_label = "" if label == previous_label else label
        previous_label = label
        sign = screen.paint("=" if shown_label else " ", "dim")
        name = screen.paint(f"{shown_label:<{_LABEL_WIDTH}}", "dim" if text_style == "dim" else "bold")
        prefix = " " * (_MARGIN - 2) + f"{sign} {name} "
        hanging = " " * (_MARGIN + _LABEL_WIDTH + 1)
        painted = screen.paint(text, text_style)
        # A command is not broken, so that it can be pasted.
        lines.append(prefix + (painted if text.startswith("schemactl ") else screen.wrap(painted, hanging)))
    return "\n".join(line.rstrip() for line in lines)


def _list_details(cause: ShownCause, screen: _Screen) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the text and the style of each line below the excerpt."""
    proofs = {
        describe_proof(proof): (finding, proof) for finding in cause.findings if (proof := finding.counterexample)
    }
    obligations = {finding.summary for finding in cause.findings if finding.verdict == "data"}
    secondary: list[tuple[str, str]] = []
    has_clients = False
    for part in cause.list_distinct_lines():
        if not has_clients and part.kind not in ("waiver", "reason"):
            has_clients = True
            yield from _describe_clients(cause)
        if part.kind == "reason":
            if part.words in obligations:
                secondary.append(("rule", part.words))
            elif text := cause.remove_title(part.words):
                yield "why", text, ""
        elif part.kind == "proof":
            finding, proof = proofs[part.words]
            values = list_message_parts(proof, finding.field)
            message = "".join(screen.paint(value.text, "marked" if value.is_guilty else "") for value in values)
            yield "message", f"{message} ({format_count(len(proof.data), 'byte')})", ""
            yield "result", on_one_line(proof.result), "red"
        elif part.kind in _SECONDARY:
            secondary.append((_LABELS[part.kind], part.words))
        elif part.kind == "broker" and not part.words.startswith("BROKER_"):
            # The consequences of an answer that was stated before.
            secondary.append(("broker", part.words))
        else:
            yield _LABELS[part.kind], part.words, ""
    if cause.edits and cause.level != "note":
        yield "edit", f"`schemactl {cause.report.command} --fix` makes it", ""
    for label, text in secondary:
        yield label, text, "dim"
    yield "more", f"schemactl explain {cause.primary_finding.rule}", "dim"


def _describe_clients(cause: ShownCause) -> Iterator[tuple[str, str, str]]:
    """Yield the declared consumers that the cause breaks, and the producers whose messages they cannot read, as `_list_details`."""
    if cause.primary_finding.rule == "CLIENT_BREAKS":
        return
    writers: list[str] = []
    messages = [finding.message for finding in cause.findings]
    impacts = [
        (check, impact)
        for topic in cause.topics
        for check in cause.report.checks_by_topic.get(topic, ())[:1]
        for impact in check.clients
    ]
    for check, impact in impacts:
        reasons = [reason for reason in (impact.unread, impact.breaks) if reason]
        has_reason = any(reason in message for reason in reasons for message in messages)
        if not has_reason or not impact.is_broken(check.strategy):
            continue
        if impact.client.reads:
            contact = f", {on_one_line(impact.client.contact)}" if impact.client.contact else ""
            version = f", once built with {name_version(check, cause.report)}" if impact.unread else ""
            yield "breaks", f"{name_client(impact)}{contact}{version}", "red"
        else:
            built = format_ranges(impact.built) or on_one_line(impact.client.built)
            writers.append(f"{name_client(impact)} with version {built}")
    if writers:
        yield "written", f"by {join_first(writers)}", ""


# The place in the file


def _render_excerpt(cause: ShownCause, screen: _Screen) -> Iterator[str]:
    """Yield the line of the finding with its number, the line before it, the lines that the change removes, and a caret."""
    place = cause.primary_finding.place
    text = cause.report.texts.get(place.path) if place else None
    lines = text.split("\n") if text else []
    if place is None or not 0 < place.line <= len(lines) or not lines[place.line - 1].strip():
        return
    gutter = max(len(str(place.line)), 4)
    bar = screen.paint(f"{'':{gutter + 1}} |", "dim")
    limit = (screen.width or _MAX_LINE) - gutter - 4

    def paint_number(label: str) -> str:
        return screen.paint(f" {label:>{gutter}} |", "dim")

    line = lines[place.line - 1]
    before = on_one_line(line[: place.column - 1].replace("\t", " "))
    token_end = place.column - 1 + len(_find_token(line[place.column - 1 :]))
    end = max(token_end, place.end_column - 1 if place.end_column else 0)
    guilty = on_one_line(line[place.column - 1 : end].replace("\t", " "))
    after = on_one_line(line[end:].replace("\t", " "))
    # A long line is shown from just before the place.
    skipped = max(0, len(before) + min(len(guilty), 40) - limit + 1) if len(before) + len(guilty) > limit else 0
    before = f"…{before[skipped + 1 :]}" if skipped else before
    guilty_room = max(limit - len(before), 1)
    yield bar
    if place.line > 1 and lines[place.line - 2].strip() and not skipped:
        yield f"{paint_number(str(place.line - 1))} {truncate(on_one_line(lines[place.line - 2].replace(chr(9), ' ')), limit)}"
    for label, removed in _list_removed_lines(cause):
        yield f"{paint_number(label)} {screen.paint(truncate(removed, limit), 'red')}"
    guilty, after = guilty[:guilty_room], after[: max(guilty_room - len(guilty), 0)]
    yield f"{paint_number(str(place.line))} {before}{screen.paint(guilty, 'marked')}{after}"
    carets = screen.paint("^" * max(count_columns(guilty), 1), "bold red")
    yield f"{bar} {' ' * count_columns(before)}{carets}"


def _find_token(text: str) -> str:
    """Return the first JSON value or word of a text, or its first character."""
    with suppress(ValueError, RecursionError):
        return text[: json.JSONDecoder().raw_decode(text)[1]]
    token = re.match(r"[\w.$@-]+|.", text)
    return token[0] if token else ""


def _list_removed_lines(cause: ShownCause) -> Iterator[tuple[str, str]]:
    """Yield the lines of the older version that the change removes there, with the version; nothing if they are many."""
    diff = cause.find_diff()
    if diff is None or cause.primary_finding.verdict != "data" or not cause.primary_finding.against:
        return
    rows = [row for hunk in diff.hunks for row in hunk if row.sign == "-" and re.search(r"\w", row.text)]
    if len(rows) > _MAX_REMOVED:
        name = re.escape(cause.primary_finding.field.rpartition(".")[2])
        rows = [row for row in rows if name and re.search(rf"\b{name}\b", row.text)]
    if len(rows) <= _MAX_REMOVED:
        for row in rows:
            yield f"v{max(cause.primary_finding.against)}", f"- {on_one_line(row.text.strip())}"


# Notes and tables

_MAX_STOPS: Final = 3


def _fold_notes(causes: Sequence[ShownCause]) -> Iterator[str]:
    older = [cause for cause in causes if cause.primary_finding.predates_change]
    others = [cause for cause in causes if not cause.primary_finding.predates_change]
    for subject, group in (
        (format_count(len(others), "note"), others),
        (format_count(len(older), "older problem"), older),
    ):
        if group:
            topics_by_rule: dict[str, dict[str, None]] = {}
            for cause in group:
                names = (shorten_topic(topic, cause.report) for topic in cause.topics)
                topics_by_rule.setdefault(cause.primary_finding.rule, {}).update(dict.fromkeys(names))
            rules = ", ".join(
                f"{rule} ({join_first([*names])})" if names else rule for rule, names in topics_by_rule.items()
            )
            unchanged = ", which the change does not cause" if group is older else ""
            checks = [
                check
                for cause in group
                for topic in cause.topics
                for check in cause.report.checks_by_topic.get(topic, ())
            ]
            impacts = [impact for check in checks for impact in check.clients if impact.predates_change]
            clients = dict.fromkeys(map(name_client, impacts))
            rules += f" for {join_first([*clients])}" if clients and group is older else ""
            # A job that stops needs an action.
            stops = dict.fromkeys(stop for cause in group if (stop := cause.primary_finding.landing_stop))
            sentences = " ".join([f"{rules}.", *[*stops][:_MAX_STOPS]])
            yield f"{subject}{unchanged}: {sentences} `--notes` shows {'it' if len(group) == 1 else 'them'}."


def _render_table(rows: Sequence[Sequence[Cell]], droppable: Sequence[str], screen: _Screen) -> str:
    texts = [[cell.text for cell in row] for row in rows]
    styles = [[SHADES[cell.shade] for cell in row] for row in rows]
    styles[0] = ["dim" for _ in styles[0]]
    if screen.width is not None:
        texts = [[shorten_cell(text) for text in row] for row in texts]
        for head in droppable:
            widths = [max(map(count_columns, column)) for column in zip(*texts, strict=True)]
            if sum(widths) + 2 * (len(widths) - 1) <= screen.width:
                break
            if head in texts[0]:
                index = texts[0].index(head)
                texts, styles = ([[*row[:index], *row[index + 1 :]] for row in lines] for lines in (texts, styles))
    return "\n".join(format_table(texts, styles=styles if screen.color else None))
