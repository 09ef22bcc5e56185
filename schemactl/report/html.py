"""Render a check, plan or drift as one self-contained HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.environment import get_line_link, get_version
from schemactl.core.errors import SchemactlError
from schemactl.core.escaping import escape_html
from schemactl.core.rules import find_page
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.core.wording import format_count
from schemactl.formats import judge_reading, spec
from schemactl.formats.part_changes import outline
from schemactl.report.causes import (
    AFTER,
    BEFORE,
    CAUSE_LEVELS,
    FEW,
    DiffRow,
    SchemaDiff,
    ShownCause,
    diff_lines,
    diff_schemas,
    rank_causes,
)
from schemactl.report.check import (
    Cell,
    Shade,
    get_shade,
    make_client_rows,
    make_policy_rows,
    make_topic_rows,
    summarize_check,
)
from schemactl.report.document import ReportBlock, ReportLine, Sign, TargetDocument, TargetReport
from schemactl.report.headline import make_headline
from schemactl.report.message_parts import list_message_parts

_CODE: Final = re.compile("`([^`]+)`")
_REPLACEMENTS: Final = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""Characters that HTML does not allow, with their replacements."""

_MAX_LINES: Final = 400
"""The maximum number of lines of a diff."""

_MAX_TOPICS: Final = 200
"""The maximum number of topics that are shown field by field."""

_MAX_VERSIONS: Final = 8
"""The maximum number of versions, the latest ones, that are compared with each other: every pair costs a comparison."""

_ANSWERS: Final = {
    "yes": ("good", "yes"),
    "doubtful": ("doubtful", "yes, with a warning"),
    "strict": ("doubtful", "not strict readers"),
    "misread": ("bad", "other values"),
    "no": ("bad", "no"),
}

_LABELS: Final = {"fix": "Fix", "broker": "Broker", "topics": "Topics", "approve": "Approve"}

_CHANGES: Final[dict[Sign, str]] = {
    "+": "new",
    "-": "removed",
    "~": "changed",
    "!": "differs",
    "=": "unchanged",
    "": "-",
}
"""The change that the sign of a block means."""

_KINDS: Final[dict[Sign, str]] = {"+": "come", "-": "gone", "~": "other", "!": "gone", "=": "", "": ""}


def render_check(report: CheckReport) -> str:
    """Return a page with who breaks, the tables, the causes, most important first, and a section for each changed definition.

    That section has the fields, both definitions side by side, and which version can read which.
    """
    causes = rank_causes(report)
    is_open = sum(cause.level == "error" for cause in causes) <= FEW
    level_counts = [(level, sum(cause.level == level for cause in causes)) for level in CAUSE_LEVELS]
    changed = [(check, check.schema) for check in report.topics if check.schema]
    definitions = [_render_definition(check, schema) for check, schema in changed[:_MAX_TOPICS]]
    if len(changed) > _MAX_TOPICS:
        definitions.append(f"<p>{len(changed) - _MAX_TOPICS} more: <code>schemactl diff</code> shows each of them.</p>")
    sections = [
        _render_section("Changed topics", _render_table(make_topic_rows(report), "Both verdicts on each topic"))
        if report.topics
        else "",
        _render_section("Clients", _render_table(clients, "Effects on declared clients"))
        if (clients := make_client_rows(report))
        else "",
        _render_section("Changed policies", _render_table(make_policy_rows(report), "Policies after the merge"))
        if report.policies
        else "",
        _render_section("Causes", *(_render_cause(cause, is_open=is_open) for cause in causes)),
        _render_section("Definitions", *definitions),
        _render_section("Notes", *(f"<p>{_render_prose(note)}</p>" for note in report.notes)),
    ]
    headline = make_headline(report)
    sections.append(f"<p>{escape_html(summarize_check(report))}</p>" if report.command == "check" else "")
    return _render_page(
        f"schemactl {report.command}",
        sentence=headline.text if report.command == "check" else summarize_check(report),
        shade=get_shade(report),
        level_counts=level_counts,
        sections=sections,
    )


def _render_cause(cause: ShownCause, *, is_open: bool) -> str:
    count = len(cause.topics)
    rule = escape_html(cause.primary_finding.rule)
    where = f" <code>{escape_html(cause.place)}</code>" if cause.primary_finding.source else ""
    head = f'<span class="tag">{cause.level}</span> <h3>{rule}</h3>{where}'
    diff = cause.find_diff()
    edit_diffs = [render_diff(diff_lines(edit), caption="Edits of the fix") for edit in cause.edits]
    parts = cause.list_distinct_lines()
    links = [
        f'<a href="{escape_html(find_page(cause.primary_finding.rule))}">{rule}</a>',
        f"<code>schemactl explain {rule}</code>",
    ]
    place = cause.primary_finding.place
    if place and (address := get_line_link(place)):
        links.append(f'<a href="{escape_html(address)}">{escape_html(place)}</a>')
    messages = []
    for finding, proof in cause.list_proofs():
        message = "".join(
            f"<mark>{escape_html(part.text)}</mark>" if part.is_guilty else escape_html(part.text)
            for part in list_message_parts(proof, finding.field)
        )
        size = format_count(len(proof.data), "byte")
        result = escape_html(proof.result)
        messages.append(
            f'<h4>Counterexample</h4><p class="proof"><code>{message}</code> ({size})<br><span class="bad">{result}</span></p>'
        )
    labels = []
    for kind, label in _LABELS.items():
        if lines := [part.words for part in parts if part.kind == kind]:
            texts = (
                f"<code>{escape_html(line)}</code>" if kind == "approve" else _render_prose(line) for line in lines
            )
            labels.append(f"<h4>{label}</h4>" + "".join(f'<p class="{kind}">{text}</p>' for text in texts))
    labels += (f"<p>{escape_html(part.text)}</p>" for part in parts if part.kind == "owner")
    return _render_details(
        head + (f" {count} topics" if count > 1 else ""),
        f"<p><b>{escape_html(cause.title)}</b></p>",
        *(f"<p>{_render_prose(part.text)}</p>" for part in parts if part.kind in ("waiver", "reason", "older")),
        render_diff(diff) if diff else "",
        *messages,
        *labels,
        "<h4>Edit</h4>" if edit_diffs else "",
        *edit_diffs,
        f"<p>{' · '.join(links)}</p>",
        level=cause.level,
        is_open=is_open and cause.level == "error",
    )


def _render_definition(check: TopicCheck, schema: SchemaInfo) -> str:
    if check.change == "not stored":
        old = check.before
    else:
        old = next((version.info for version in reversed(get_live_versions(check.versions)) if version.info), None)
    diff = diff_schemas(old=old, new=schema, labels=(BEFORE, AFTER)) if old else None
    targets = f" for {escape_html(', '.join(check.targets))}" if check.targets else ""
    return _render_details(
        f"<h3>{escape_html(check.topic)}</h3>{targets}",
        f"<p>Owner: {escape_html(check.owner)}</p>" if check.owner else "",
        f"<h4>Fields</h4>{_render_field_tree(old, schema)}",
        f"<h4>Side by side</h4>{render_diff(diff)}" if diff else "",
        _render_matrix(check, schema),
    )


def _render_field_tree(old: SchemaInfo | None, new: SchemaInfo) -> str:
    """Return the tree of fields, in which added, removed and changed ones are marked."""
    try:
        before, after = outline(old) if old else {}, outline(new)
    except SchemactlError as error:
        return f"<p>{escape_html(error)}</p>"
    parts = [*after]
    for part in before:
        if part not in after:
            # A removed field stays after its last remaining sibling.
            parent = part.rpartition(".")[0]
            siblings = [index for index, other in enumerate(parts) if parent in (other, other.rpartition(".")[0])]
            parts.insert(siblings[-1] + 1 if siblings else len(parts), part)
    children: dict[str, list[str]] = {}
    for part in parts:
        parent = part.rpartition(".")[0]
        children.setdefault(parent if parent in after or parent in before else "", []).append(part)

    def render_fields(parent: str) -> str:
        items = []
        for part in children.get(parent, ()):
            old_type, new_type = before.get(part), after.get(part)
            if old_type == new_type:
                kind, mark, types = "", "", escape_html(new_type)
            elif old_type is None:
                kind, mark, types = "come", "+ " if before else "", escape_html(new_type)
            elif new_type is None:
                kind, mark, types = "gone", "- ", escape_html(old_type)
            else:
                kind, mark, types = "come", "~ ", f"{escape_html(old_type)} to {escape_html(new_type)}"
            name = escape_html(part.removeprefix(f"{parent}.") if parent else part)
            fields = render_fields(part) if part else ""
            items.append(
                f'<li><span class="{kind if before else ""}">{mark}<b>{name}</b> <code>{types}</code></span>{fields}</li>'
            )
        return f'<ul class="{"" if parent else "tree"}">{"".join(items)}</ul>' if items else ""

    return render_fields("") or "<p>No fields.</p>"


def _render_matrix(check: TopicCheck, schema: SchemaInfo) -> str:
    """Return a table of which version can read the messages of which: a row for each reader, a column for each writer."""
    versions = [version for version in get_live_versions(check.versions)[-_MAX_VERSIONS:] if version.info]
    sides = [(f"v{version.number}", version) for version in versions]
    if check.is_pending or check.change == "not stored":
        number = get_next_number(check.versions) if check.version is None else check.version
        sides.append((AFTER, SchemaVersion(number, schema)))
    if len(sides) < 2:
        return ""
    heads = "".join(f'<th scope="col">{name}</th>' for name, _ in sides)
    languages = (impact.client.known_language for impact in check.clients if impact.client.reads)
    tables = []
    for language in dict.fromkeys(
        ("", *(language for language in languages if spec(schema).has_client_rules(language)))
    ):
        rows = ""
        for name, reader in sides:
            cells = ""
            for _, writer in sides:
                if reader is writer:
                    cells += "<td>·</td>"
                    continue
                result = judge_reading(reader=reader, writer=writer, language=language)
                kind, answer = _ANSWERS[result.answer]
                title = f' title="{escape_html(result.reason)}"' if result.reason else ""
                cells += f'<td class="{kind}"{title}>{answer}</td>'
            rows += f'<tr><th scope="row">{name}</th>{cells}</tr>'
        readers = f"reader in {language.capitalize()}" if language else "reader"
        tables.append(
            f'<table class="matrix"><caption>Does the {readers} of a row get the values that the writer of a column wrote?</caption>'
            f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )
    wrapped_tables = "".join(_wrap_table(table, f"Who reads whom on {check.topic}") for table in tables)
    return f"<h4>Who reads whom</h4>{wrapped_tables}"


def render_documents(documents: Sequence[TargetDocument]) -> str:
    """Return a page with a section for each target: the rejections, then the changes, unfolded if there are few."""
    reports = [report for report, _ in documents]
    command = reports[0].command
    shades = [report.summary[1] for report in reports]
    order: tuple[Shade, ...] = ("bad", "doubtful", "good")
    is_open = sum(len(report.blocks) for report in reports) <= 30
    return _render_page(
        f"schemactl {command}: {', '.join(report.target for report in reports)}",
        sentence=" ".join(filter(None, (reports[0].broken_clients, reports[0].summary[0])))
        if len(reports) == 1
        else f"{len(reports)} targets",
        shade=next((shade for shade in order if shade in shades), ""),
        level_counts=[("error", sum(len(report.problems) for report in reports))],
        sections=[_render_target(report, is_open=is_open, is_only=len(reports) == 1) for report in reports],
    )


def _render_target(report: TargetReport, *, is_open: bool, is_only: bool) -> str:
    summary, shade = report.summary
    return _render_section(
        report.target,
        # The page shows the summary of a single target in its header.
        f'<p class="sum {shade}">{escape_html(summary)}</p>' if summary and not is_only else "",
        f"<p>{escape_html(report.head)}</p>" if report.head else "",
        f"<p>Digest: <code>{escape_html(report.digest)}</code></p>" if report.digest else "",
        _render_block_table(report),
        *(_render_block(block, level="error", is_open=True) for block in report.problems),
        *(_render_block(block, is_open=is_open) for block in report.blocks),
    )


def _render_block_table(report: TargetReport) -> str:
    """Return a table with a row for each rejection and changed namespace or topic, or "" for a single one."""
    blocks = [*((block, "rejected") for block in report.problems), *((block, "") for block in report.blocks)]
    if len(blocks) < 2 or report.is_short:
        return ""
    rows = [[Cell("name"), Cell("change"), Cell("attention")]]
    for (first, *others), outcome in blocks[:_MAX_TOPICS]:
        warnings = [line for line in others if line.sign == "!"]
        text = "; ".join(line.text for line in warnings[:2]) or "-"
        change = outcome or _CHANGES[first.sign]
        rows.append(
            [
                Cell(first.text),
                Cell(change, "bad" if outcome or (first.sign in "!-" and first.sign) else ""),
                Cell(text, "bad" if warnings else ""),
            ]
        )
    return _render_table(rows, "Changes by name")


def _render_block(block: ReportBlock, *, level: str = "", is_open: bool) -> str:
    first, *rest = block
    items = []
    for line in rest:
        if line.strong and not line.sign:
            kind = ""
            text = f'<b class="{line.shade}">{escape_html(line.strong)}</b>{_render_prose(line.text.removeprefix(line.strong))}'
        else:
            kind = f"{_KINDS[line.sign]} "
            text = f"{_render_sign(line)}{_render_prose(line.text)}"
        items.append(f'<li class="{kind}deep{min(line.depth, 4)}">{text}</li>')
    return _render_details(
        f"{_render_sign(first)}<h3>{escape_html(first.text)}</h3>",
        f'<ul class="signs">{"".join(items)}</ul>',
        level=level,
        is_open=is_open,
    )


def _render_sign(line: ReportLine) -> str:
    return f'<span class="sign">{escape_html(line.sign)}</span> ' if line.sign else ""


def _render_prose(sentence: object) -> str:
    """Return a sentence as HTML, with the parts in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape_html(sentence))


def _render_page(
    title: str, *, sentence: str, shade: Shade, level_counts: Sequence[tuple[str, int]], sections: Iterable[str]
) -> str:
    """Return the whole page.

    Args:
        title: the title of the report.
        sentence: its summary.
        shade: the color of the summary.
        level_counts: the number of parts of each level; the reader can filter by each level that occurs.
        sections: the body, in HTML.
    """
    folder = files("schemactl.report")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_compute_digest(style)}'; script-src '{_compute_digest(script)}'; base-uri 'none'; form-action 'none'"
    filters = [(name, count) for name, count in level_counts if count]
    labels = [(name, f"{count} waived" if name == "waived" else format_count(count, name)) for name, count in filters]
    counts = "".join(f'<li class="{name}">{escape_html(label)}</li>' for name, label in labels)
    boxes = "".join(f'<label><input type="checkbox" value="{name}" checked> {name}</label>' for name, _ in filters)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape_html(title)}</title>\n<style>{style}</style>\n</head>\n<body class='report'>",
            '<a class="skip" href="#main">Skip to the report</a>',
            f'<header><h1>{escape_html(title)}</h1>\n<p class="sum {shade}">{escape_html(sentence)}</p>',
            f'<ul class="counts">{counts}</ul>' if counts else "",
            '</header>\n<div class="tools" role="search" hidden>',
            '<label class="unseen" for="find">Show only parts with these words</label>',
            '<input type="search" id="find" placeholder="Filter: topic, rule, file" aria-keyshortcuts="/">',
            boxes,
            '<button type="button" data-do="unfold">Unfold all</button><button type="button" data-do="fold">Fold all</button>',
            '<button type="button" data-do="theme">Light or dark</button>',
            '<span role="status"></span></div>\n<main id="main">',
            *sections,
            (
                f"</main>\n<footer><p>schemactl {escape_html(get_version())}. Keys: / filters, j and k go to the next "
                "and the previous part, Enter unfolds a part.</p></footer>"
            ),
            f"<script>{script}</script>\n</body>\n</html>",
        ]
    )


def _compute_digest(content: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _render_section(title: str, *parts: str) -> str:
    """Return a part of the page below a heading, or "" if all `parts` are empty."""
    return "\n".join([f"<section><h2>{escape_html(title)}</h2>", *parts, "</section>"]) if any(parts) else ""


def _render_details(head: str, *parts: str, level: str = "", is_open: bool = False) -> str:
    """Return a `details` element with an HTML `head`, which the filter of the page selects by `level`."""
    content = "\n".join(filter(None, parts))
    attribute = " open" if is_open else ""
    return f'<details class="{level}" data-find="{level}"{attribute}><summary>{head}</summary>\n<div class="inside">{content}</div></details>'


def _render_table(rows: Sequence[Sequence[Cell]], caption: str) -> str:
    """Return a table whose first row is the head; the first cell of a row is its name."""
    head, *body_rows = rows
    heads = "".join(f'<th scope="col">{escape_html(cell.text)}</th>' for cell in head)
    body = "\n".join(
        f'<tr data-find=""><th scope="row"><code>{escape_html(name.text)}</code></th>{"".join(map(_render_cell, cells, head[1:]))}</tr>'
        for name, *cells in body_rows
    )
    element = f'<table class="rows"><caption>{escape_html(caption)}</caption><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table>'
    return _wrap_table(element, caption)


def _render_cell(cell: Cell, head: Cell) -> str:
    # A narrow window shows the cells of a row below each other, each with its column head.
    if cell.text == "-":
        return f'<td data-head="{escape_html(head.text)}"><span class="unseen">nothing</span><span aria-hidden="true">-</span></td>'
    return f'<td class="{cell.shade}" data-head="{escape_html(head.text)}">{escape_html(cell.text)}</td>'


def _wrap_table(element: str, label: str) -> str:
    """Return a labeled region around a table, so that the table alone scrolls in a narrow window."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape_html(label)}">{element}</div>'


def render_diff(diff: SchemaDiff, *, caption: str = "What changed in the definition") -> str:
    """Return a table with both sides of a diff, cut after `_MAX_LINES` lines."""
    rows: list[str] = []
    remaining = _MAX_LINES
    for number, hunk in enumerate(diff.hunks):
        rows += ['<tr class="far"><td></td><td></td></tr>'] * (number > 0)
        for old, new in _pair_lines(hunk[:remaining]):
            if old is new:
                attribute, old_kind, new_kind = ' class="same"', "", ""
            else:
                attribute, old_kind, new_kind = "", "gone", "come"
            old_cell = _render_diff_cell(old, old and old.old, old_kind)
            new_cell = _render_diff_cell(new, new and new.new, new_kind)
            rows.append(f"<tr{attribute}>{old_cell}{new_cell}</tr>")
        remaining -= len(hunk)
        if remaining <= 0:
            rows.append(
                '<tr class="far"><td>More lines differ: <code>schemactl diff</code> has all.</td><td></td></tr>'
            )
            break
    heads = f'<th scope="col">{escape_html(diff.old)}</th><th scope="col">{escape_html(diff.new)}</th>'
    return f'<table class="diff"><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _pair_lines(hunk: Sequence[DiffRow]) -> Iterable[tuple[DiffRow | None, DiffRow | None]]:
    """Yield pairs of an old and a new line for one row; None on a side without a line."""
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in (*hunk, None):
        if row and row.sign == "-" and not added:
            removed.append(row)
        elif row and row.sign == "+":
            added.append(row)
        else:
            for index in range(max(len(removed), len(added))):
                yield (removed[index] if index < len(removed) else None, added[index] if index < len(added) else None)
            removed, added = ([row] if row and row.sign == "-" else []), []
            if row and row.sign == " ":
                yield row, row


def _render_diff_cell(row: DiffRow | None, number: int | None, kind: str) -> str:
    if row is None:
        return "<td></td>"
    hint = {"gone": '<span class="unseen">removed: </span>', "come": '<span class="unseen">added: </span>'}.get(
        kind, ""
    )
    return f'<td class="{kind}"><span class="line">{number}</span>{hint}{escape_html(row.text)}</td>'
