"""The differences between a registry and Git as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, day, format_version, kind_of
from schemactl.deploy.drift import DriftItem, DriftKind, DriftReport, differences
from schemactl.deploy.geo_replication import ReplicatedNamespace, clusters_said, of_target
from schemactl.report.check_rows import Shade
from schemactl.report.sheet import Sheet, SheetBlock, SheetLine, Sign, alternatives, by_name

_SHOWN = 40
"""How many changed parts of a foreign definition are shown; `show --format json` has all of them."""

_UNMANAGED = (DriftKind.UNMANAGED_NAMESPACE, DriftKind.UNMANAGED_TOPIC)


def drift_sheet(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> Sheet:
    """Return the drift as every format lays it out, with what is to be said of the replicated namespaces among `spaces`."""
    blocks = []
    for name, found in by_name([each for each in report.differences if each.kind not in _UNMANAGED]).items():
        head = SheetLine(f"{kind_of(name)} {name}", strong=str(name))
        blocks.append((head, *(line for difference in found for line in _difference(difference))))
    if unmanaged := [each for each in report.differences if each.kind in _UNMANAGED]:
        blocks.append(tuple(_listed(unmanaged, report.origin.target)))
    blocks += _accepted(report)
    if said := clusters_said(of_target(report, spaces)):
        blocks.append(tuple(SheetLine(on_one_line(text), depth=depth) for depth, text in said))
    summary = _summary(report)
    return Sheet("drift", report.origin.target, _head(report), tuple(blocks), (), summary)


def _accepted(report: DriftReport) -> Iterator[SheetBlock]:
    """Yield a block of what is accepted, and one of what is accepted and is not so."""
    if report.accepted:
        lines = [SheetLine("Accepted:")]
        for each in report.accepted:
            lines.append(SheetLine(f"{on_one_line(str(each.name))}: {each.kind}: {each.message}", depth=1))
            lines.append(SheetLine(on_one_line(str(each.accepted)), depth=2))
        yield tuple(lines)
    if report.unused:
        unused = (
            f"{on_one_line(str(name))}: {', '.join(sorted(part for part, _ in each.parts))} ({each.source})"
            for name, each in report.unused.items()
        )
        head = SheetLine("Accepted, and not so any more: remove it")
        yield (head, *(SheetLine(line, depth=1) for line in unused))


def _summary(report: DriftReport) -> tuple[str, Shade]:
    """Return one line, how much differs and where, and what that says."""
    count, names = len(report.differences), len(by_name(report.differences))
    if not count:
        rest = (
            f", apart from {counted(len(report.accepted), 'accepted difference')}" if report.accepted else ""
        )
        return f"No drift. The registry has what Git approved{rest}.", "good"
    misread = sum(not topic.recorded for topic in report.apart)
    aside = f" Messages of {counted(misread, 'topic')} would be misread." if misread else ""
    said = f"Drift: {counted(count, 'difference')} in {counted(names, 'place')}.{aside} Nothing was changed."
    return said, "bad" if misread else "doubtful"


def _head(report: DriftReport) -> str:
    origin = report.origin
    tip = f" at {origin.tip.short}, {day(origin.tip)}" if origin.tip else ", without commits"
    return f"Drift of {origin.target} ({origin.registry}) from {origin.ref}{tip}"


def _listed(unmanaged: Sequence[DriftItem], target: str) -> Iterator[SheetLine]:
    """One line each: there may be many, and the same holds for all of them."""
    yield SheetLine("Not declared in Git, so that `apply` never touches it:")
    for difference in unmanaged:
        yield SheetLine(f"{on_one_line(str(difference.name))}: {difference.message}", depth=1)
    select = "--namespace or --topic select a part"
    leave = f"leave it: `schemactl drift --target {target} --unmanaged --accept --reason TEXT`, commit what it writes, and merge it"
    yield from alternatives("Next", f"`schemactl import --target {target}`; {select}\n{leave}")


def _difference(difference: DriftItem) -> Iterator[SheetLine]:
    kind = str(difference.kind)
    yield SheetLine(f"{kind}: {difference.message}.", depth=1, strong=kind)
    entry, near = difference.version, difference.nearest
    if entry and entry.info and near and near.info:
        yield SheetLine(f"Against Git's {format_version(near)}, the nearest:", depth=2)
        changed = differences(old=near.info, new=entry.info)
        for sign, what in changed[:_SHOWN]:
            yield SheetLine(on_one_line(what), cast("Sign", sign), 3)
        if len(changed) > _SHOWN:
            yield SheetLine(f"and {len(changed) - _SHOWN} more", depth=3)
    yield SheetLine(f"Cause: {difference.cause}.", depth=2)
    yield from (line._replace(depth=2) for line in alternatives("Next", difference.fix))
