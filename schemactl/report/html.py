"""A check's report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.environment import line_link
from schemactl.core.errors import SchemactlError
from schemactl.core.rules import Rule, every_rule
from schemactl.core.schema import SchemaInfo, SchemaVersion, live, next_number
from schemactl.formats import reading
from schemactl.formats.type_spec import outline
from schemactl.report.cause import AFTER, BEFORE, FEW, WEIGHTS, CauseLine, ShownCause, shown_causes
from schemactl.report.check_rows import client_rows, policy_rows, summary, topic_rows, verdict_of
from schemactl.report.page import folded, page, prose, scrolling, section, side_by_side, table, text
from schemactl.report.schema_diff import schema_diff

_MAX_LINES: Final = 400
"""Of a diff."""

_MAX_TOPICS: Final = 200
"""So many topics are shown field by field."""

_MAX_VERSIONS: Final = 8
"""The latest that are compared with each other: every pair is a comparison."""

_ANSWERS: Final = {"yes": ("good", "yes"), "strict": ("doubtful", "not strict readers"), "no": ("bad", "no")}

_LABELS: Final = {
    "proof": "Counterexample",
    "fix": "Fix",
    "broker": "Broker",
    "topics": "Topics",
    "approve": "Approve",
}


def render(report: CheckReport) -> str:
    """Causes, the most important first; the tables; and for each changed topic its fields, its definition side by side, and who reads whom."""
    causes = shown_causes(report)
    known = every_rule()
    opened = sum(cause.weight == "error" for cause in causes) <= FEW
    weights = [(weight, sum(cause.weight == weight for cause in causes)) for weight in WEIGHTS]
    sections = [
        section("Causes", *(_cause(cause, known[cause.lead.rule], is_open=opened) for cause in causes)),
        section("Changed topics", table(topic_rows(report), "Both verdicts on each topic"))
        if report.topics
        else "",
        section("Clients", table(clients, "What the change means to declared clients"))
        if (clients := client_rows(report))
        else "",
        section("Changed policies", table(policy_rows(report), "Policies after the merge"))
        if report.policies
        else "",
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
            near = [
                at for at, each in enumerate(parts) if each.rpartition(".")[0] == parent or each == parent
            ]
            parts.insert(near[-1] + 1 if near else len(parts), part)
    children: dict[str, list[str]] = {}
    for part in parts:
        parent = part.rpartition(".")[0]
        children.setdefault(parent if parent in after or parent in before else "", []).append(part)
    return _branch("", children, before, after) or "<p>It has none.</p>"


def _branch(
    at: str, children: Mapping[str, list[str]], before: Mapping[str, str], after: Mapping[str, str]
) -> str:
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
