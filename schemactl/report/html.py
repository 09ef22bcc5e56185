"""Render a check, plan or drift as one self-contained HTML page that makes no request to another address."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.environment import line_link, version
from schemactl.core.errors import SchemactlError
from schemactl.core.rules import Rule, every_rule
from schemactl.core.schema import SchemaInfo, SchemaVersion, live, next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted
from schemactl.formats import reading
from schemactl.formats.type_spec import outline
from schemactl.report.causes import AFTER, BEFORE, FEW, WEIGHTS, CauseLine, ShownCause, schema_diff, shown_causes
from schemactl.report.check import Shade, client_rows, policy_rows, summary, topic_rows, verdict_of
from schemactl.report.document import Sheet, SheetBlock, SheetLine, Sign

if TYPE_CHECKING:
    from schemactl.report.causes import DiffRow, SchemaDiff
    from schemactl.report.check import Cell


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
    boxes = "".join(f'<label><input type="checkbox" value="{name}" checked> {name}</label>' for name, _ in found)
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
    return f'<table class="diff">{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


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
    return f"<tr{same}>{''.join(_side(row, number, '' if same else kind) for row, number, kind in sides)}</tr>"


def _side(row: DiffRow | None, number: int | None, kind: str) -> str:
    if row is None:
        return "<td></td>"
    said = {"gone": '<span class="unseen">removed: </span>', "come": '<span class="unseen">added: </span>'}.get(
        kind, ""
    )
    return f'<td class="{kind}"><span class="line">{number}</span>{said}{text(row.text)}</td>'


def _shipped(name: str) -> str:
    return files("schemactl.report").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


# Checks


_MAX_LINES: Final = 400
"""Of a diff."""

_MAX_TOPICS: Final = 200
"""So many topics are shown field by field."""

_MAX_VERSIONS: Final = 8
"""The latest that are compared with each other: every pair is a comparison."""

_ANSWERS: Final = {"yes": ("good", "yes"), "strict": ("doubtful", "not strict readers"), "no": ("bad", "no")}

_LABELS: Final = {"proof": "Counterexample", "fix": "Fix", "broker": "Broker", "topics": "Topics", "approve": "Approve"}


def render_check(report: CheckReport) -> str:
    """Causes, the most important first; the tables; and for each changed topic its fields, its definition side by side, and who reads whom."""
    causes = shown_causes(report)
    known = every_rule()
    opened = sum(cause.weight == "error" for cause in causes) <= FEW
    weights = [(weight, sum(cause.weight == weight for cause in causes)) for weight in WEIGHTS]
    sections = [
        section("Causes", *(_cause(cause, known[cause.lead.rule], is_open=opened) for cause in causes)),
        section("Changed topics", table(topic_rows(report), "Both verdicts on each topic")) if report.topics else "",
        section("Clients", table(clients, "What the change means to declared clients"))
        if (clients := client_rows(report))
        else "",
        section("Changed policies", table(policy_rows(report), "Policies after the merge")) if report.policies else "",
        section("Definitions", *_definitions(report)),
        section("Notes", *(f"<p>{prose(note)}</p>" for note in report.notes)),
    ]
    return page(
        f"schemactl {report.command}",
        sentence=summary(report),
        shade=verdict_of(report),
        weights=weights,
        sections=sections,
    )


def _cause(cause: ShownCause, rule: Rule, *, is_open: bool) -> str:
    count = len(cause.cause.topics)
    where = f" <code>{text(cause.place)}</code>" if cause.lead.source else ""
    head = f'<span class="tag">{cause.weight}</span> <h3>{text(rule.id)}</h3>{where}'
    diff = cause.diff()
    # Findings of one cause often have one fix.
    parts = [*dict.fromkeys(cause.parts())]
    return folded(
        head + (f" {count} topics" if count > 1 else ""),
        *(f"<p>{prose(part.text)}</p>" for part in parts if part.kind in ("waiver", "reason", "older")),
        side_by_side(diff, _MAX_LINES) if diff else "",
        *_labelled(parts),
        f"<p>{' · '.join(_links(cause, rule))}</p>",
        weight=cause.weight,
        is_open=is_open and cause.weight == "error",
    )


def _labelled(parts: Sequence[CauseLine]) -> Iterator[str]:
    for kind, label in _LABELS.items():
        if lines := [part.words for part in parts if part.kind == kind]:
            shown = (f"<code>{text(line)}</code>" if kind == "approve" else prose(line) for line in lines)
            yield f"<h4>{label}</h4>" + "".join(f'<p class="{kind}">{line}</p>' for line in shown)
    yield from (f"<p>{text(part.text)}</p>" for part in parts if part.kind == "owner")


def _links(cause: ShownCause, rule: Rule) -> Iterator[str]:
    yield f'<a href="{text(rule.link)}">Reference</a>'
    yield f"<code>schemactl explain {text(rule.id)}</code>"
    place = cause.lead.place
    if place and (address := line_link(place)):
        yield f'<a href="{text(address)}">{text(place)}</a>'


def _definitions(report: CheckReport) -> Iterator[str]:
    """Yield the definition of each topic whose schema changed."""
    changed = [check for check in report.topics if check.schema]
    for check in changed[:_MAX_TOPICS]:
        yield _definition(check)
    if len(changed) > _MAX_TOPICS:
        yield f"<p>{len(changed) - _MAX_TOPICS} more: <code>schemactl diff</code> shows each of them.</p>"


def _definition(check: TopicCheck) -> str:
    assert check.schema  # noqa: S101  chosen above
    old = next((each.info for each in reversed(live(check.versions)) if each.info), None)
    old = check.before if check.change == "not stored" else old
    diff = schema_diff(old=old, new=check.schema, labels=(BEFORE, AFTER)) if old else None
    targets = f" for {text(', '.join(check.targets))}" if check.targets else ""
    return folded(
        f"<h3>{text(check.topic)}</h3>{targets}",
        f"<p>Owner: {text(check.owner)}</p>" if check.owner else "",
        f"<h4>Fields</h4>{_tree(old, check.schema)}",
        f"<h4>Side by side</h4>{side_by_side(diff, _MAX_LINES)}" if diff else "",
        _matrix(check, check.schema),
    )


def _tree(old: SchemaInfo | None, new: SchemaInfo) -> str:
    """Return the fields of a definition below the types that they are of, with what is gone, new, or another."""
    try:
        before, after = outline(old) if old else {}, outline(new)
    except SchemactlError as error:
        return f"<p>{text(error)}</p>"
    parts = [*after]
    for part in before:
        if part not in after:
            # Behind its former neighbours.
            parent = part.rpartition(".")[0]
            near = [at for at, each in enumerate(parts) if each.rpartition(".")[0] == parent or each == parent]
            parts.insert(near[-1] + 1 if near else len(parts), part)
    children: dict[str, list[str]] = {}
    for part in parts:
        parent = part.rpartition(".")[0]
        children.setdefault(parent if parent in after or parent in before else "", []).append(part)
    return _branch("", children, before, after) or "<p>It has none.</p>"


def _branch(at: str, children: Mapping[str, list[str]], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    items = []
    for part in children.get(at, ()):
        was, now = before.get(part), after.get(part)
        if was == now:
            kind, mark, said = "", "", text(now)
        elif was is None:
            kind, mark, said = "come", "+ " if before else "", text(now)
        elif now is None:
            kind, mark, said = "gone", "- ", text(was)
        else:
            kind, mark, said = "come", "~ ", f"{text(was)} to {text(now)}"
        name = text(part.removeprefix(f"{at}.") if at else part)
        inner = _branch(part, children, before, after) if part else ""
        items.append(
            f'<li><span class="{kind if before else ""}">{mark}<b>{name}</b> <code>{said}</code></span>{inner}</li>'
        )
    return f'<ul class="{"" if at else "tree"}">{"".join(items)}</ul>' if items else ""


def _matrix(check: TopicCheck, schema: SchemaInfo) -> str:
    """Return who can read whose messages: a row for each reader, a column for each writer."""
    versions = [each for each in live(check.versions)[-_MAX_VERSIONS:] if each.info]
    sides = [(f"v{each.number}", each) for each in versions]
    if check.is_pending or check.change == "not stored":
        sides.append((AFTER, SchemaVersion(next_number(check.versions), schema)))
    if len(sides) < 2:
        return ""
    heads = "".join(f'<th scope="col">{name}</th>' for name, _ in sides)
    rows = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(_reads(reader, writer) for _, writer in sides)}</tr>'
        for name, reader in sides
    )
    shown = (
        '<table class="matrix"><caption>Can the reader of a row decode messages of the writer of a column?</caption>'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return f"<h4>Who reads whom</h4>{scrolling(shown, f'Who reads whom on {check.topic}')}"


def _reads(reader: SchemaVersion, writer: SchemaVersion) -> str:
    if reader is writer:
        return "<td>·</td>"
    found = reading(reader=reader, writer=writer)
    kind, answer = _ANSWERS[found.answer]
    title = f' title="{text(found.reason)}"' if found.reason else ""
    return f'<td class="{kind}"{title}>{answer}</td>'


# Plans and drift


_KINDS: Final[dict[Sign, str]] = {"+": "come", "-": "gone", "~": "other", "!": "gone", "=": "", "": ""}


def render_documents(sheets: Sequence[Sheet]) -> str:
    """Return a section for each target: what is rejected, then what changes, all of it unfolded where there is little."""
    command = sheets[0].command
    shades = [sheet.summary[1] for sheet in sheets]
    order: tuple[Shade, ...] = ("bad", "doubtful", "good")
    few = sum(len(sheet.blocks) for sheet in sheets) <= 30
    return page(
        f"schemactl {command}: {', '.join(sheet.target for sheet in sheets)}",
        sentence=" ".join(sheet.summary[0] for sheet in sheets) if len(sheets) == 1 else f"{len(sheets)} targets",
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
        f"{_sign(first)}<h3>{text(first.text)}</h3>", f'<ul class="signs">{items}</ul>', weight=weight, is_open=is_open
    )


def _item(line: SheetLine) -> str:
    return f'<li class="{_KINDS[line.sign]} deep{min(line.depth, 4)}">{_sign(line)}{prose(line.text)}</li>'


def _sign(line: SheetLine) -> str:
    return f'<span class="sign">{text(line.sign)}</span> ' if line.sign else ""
