"""The differences between a registry and Git as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from schemactl.drift import DriftItem, DriftKind, DriftReport
from schemactl.drift.versions import differences
from schemactl.messages import counted, day, format_version
from schemactl.model import NamespaceName, TopicName
from schemactl.printing import on_one_line
from schemactl.report.style import alternatives, paint

_SHOWN = 40
"""How many changed parts of a foreign definition are shown; `show --format json` has all of them."""

_UNMANAGED = (DriftKind.UNMANAGED_NAMESPACE, DriftKind.UNMANAGED_TOPIC)

_SHADES = {"+": "green", "-": "red", "~": "yellow"}


def render(report: DriftReport, *, color: bool = False) -> str:
    """Return a block for each namespace and topic that differs, then the sum."""
    blocks = [_head(report)]
    for name, found in _by_name([each for each in report.differences if each.kind not in _UNMANAGED]).items():
        kind = "namespace" if isinstance(name, NamespaceName) else "topic"
        lines = [f"{kind} {paint(str(name), 'bold', color=color)}"]
        for difference in found:
            lines += [f"  {line}" for line in _difference(difference, color=color)]
        blocks.append("\n".join(lines))
    if unmanaged := [each for each in report.differences if each.kind in _UNMANAGED]:
        blocks.append("\n".join(_listed(unmanaged, report.origin.target)))
    blocks += _accepted(report)
    return "\n\n".join([*blocks, summary(report, color=color)])


def _accepted(report: DriftReport) -> Iterator[str]:
    """Yield a block of what is accepted, and one of what is accepted and is not so."""
    if report.accepted:
        lines = [
            f"  {on_one_line(str(each.name))}: {each.kind}: {each.message}\n    {on_one_line(str(each.accepted))}"
            for each in report.accepted
        ]
        yield "\n".join(["Accepted:", *lines])
    if report.unused:
        lines = [
            f"  {on_one_line(str(name))}: {', '.join(sorted(part for part, _ in each.parts))} ({each.source})"
            for name, each in report.unused.items()
        ]
        yield "\n".join(["Accepted, and not so any more: remove it", *lines])


def summary(report: DriftReport, *, color: bool = False) -> str:
    """One line: how much differs, and where."""
    count, names = len(report.differences), len(_by_name(report.differences))
    if not count:
        rest = (
            f", apart from {counted(len(report.accepted), 'accepted difference')}" if report.accepted else ""
        )
        return paint(f"No drift. The registry has what Git approved{rest}.", "green", color=color)
    misread = sum(not topic.recorded for topic in report.apart)
    aside = f" Messages of {counted(misread, 'topic')} would be misread." if misread else ""
    shade = "red" if misread else "yellow"
    return paint(
        f"Drift: {counted(count, 'difference')} in {counted(names, 'place')}.{aside} Nothing was changed.",
        shade,
        color=color,
    )


def _head(report: DriftReport) -> str:
    origin = report.origin
    tip = f" at {origin.tip.short}, {day(origin.tip)}" if origin.tip else ", without commits"
    return f"Drift of {origin.target} ({origin.registry}) from {origin.ref}{tip}"


def _by_name(differences: Iterable[DriftItem]) -> dict[NamespaceName | TopicName, list[DriftItem]]:
    found: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for difference in differences:
        found.setdefault(difference.name, []).append(difference)
    return found


def _listed(unmanaged: Sequence[DriftItem], target: str) -> Iterator[str]:
    """One line each: there may be many, and the same holds for all of them."""
    yield "Not declared in Git, so that `apply` never touches it:"
    for difference in unmanaged:
        yield f"  {on_one_line(str(difference.name))}: {difference.message}"
    yield f"  Next: `schemactl import --target {target}`; --namespace or --topic select a part."
    yield f"    or: leave it: `schemactl drift --target {target} --unmanaged --accept --reason TEXT`, commit what it writes, and merge it."


def _difference(difference: DriftItem, *, color: bool) -> Iterator[str]:
    yield f"{paint(difference.kind, 'yellow', color=color)}: {difference.message}."
    entry, near = difference.version, difference.nearest
    if entry and entry.info and near and near.info:
        yield f"  Against Git's {format_version(near)}, the nearest:"
        changed = differences(old=near.info, new=entry.info)
        for sign, what in changed[:_SHOWN]:
            yield f"    {paint(sign, _SHADES[sign], color=color)} {on_one_line(what)}"
        if len(changed) > _SHOWN:
            yield f"    and {len(changed) - _SHOWN} more"
    yield f"  Cause: {difference.cause}."
    yield from alternatives("Next", difference.fix)
