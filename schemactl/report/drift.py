"""Render drift, and a target's version numbers next to Git's, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from schemactl.core.environment import version
from schemactl.core.json_values import Json, commit_value, schema_value
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line, paint, table
from schemactl.core.wording import counted, day, format_version, kind_of, moment
from schemactl.declare.target_numbers import AcceptanceReason
from schemactl.deploy.drift import DriftItem, DriftKind, DriftReport, differences
from schemactl.deploy.geo_replication import ReplicatedNamespace, clusters_said, of_target
from schemactl.deploy.version_numbers import FORMAT_VERSION, NumberPair, TopicApart, apart_values, topic_values
from schemactl.formats.type_spec import line_changes
from schemactl.report.check import Shade
from schemactl.report.document import Sheet, SheetBlock, SheetLine, alternatives, by_name, text_lines

if TYPE_CHECKING:
    from schemactl.report.document import Sign


_SHOWN = 40
"""How many changed parts of a foreign definition are shown; `show --format json` has all of them."""

_UNMANAGED = (DriftKind.UNMANAGED_NAMESPACE, DriftKind.UNMANAGED_TOPIC)


def drift_sheet(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> Sheet:
    """Return the drift as every format lays it out, with what is to be said of the replicated namespaces among `spaces`."""
    blocks = []
    for name, found in by_name([each for each in report.differences if each.kind not in _UNMANAGED]).items():
        head = SheetLine(f"{kind_of(name)} {name}", strong=str(name))
        blocks.append((head, *(line for difference in found for line in _difference_lines(difference))))
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
        rest = f", apart from {counted(len(report.accepted), 'accepted difference')}" if report.accepted else ""
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


def _difference_lines(difference: DriftItem) -> Iterator[SheetLine]:
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


# JSON; keys are not renamed within a format version


def document(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> Json:
    """Return every difference, and the version mapping of every topic that was looked at: what `rebuild` reads."""
    origin = report.origin
    return {
        "format_version": FORMAT_VERSION,
        "schemactl": version(),
        "target": origin.target,
        "registry": origin.registry,
        "pulsar": origin.release.value,
        "approved": {"ref": origin.ref, "commit": commit_value(origin.tip)},
        "differences": [_difference_json(difference) for difference in report.differences],
        "accepted": [
            {**_difference_json(each), "accepted": _decision(each.accepted)}
            for each in report.accepted
            if each.accepted
        ],
        "unused": [
            {
                kind_of(name): str(name),
                "parts": sorted(part for part, _ in each.parts),
                "accepted": _decision(each.decision),
            }
            for name, each in report.unused.items()
        ],
        "numbers_apart": apart_values(report.apart),
        "replicated": replicated_values(of_target(report, spaces)),
        "topics": topic_values(git=report.git, registry=report.held),
    }


def _decision(decision: AcceptanceReason) -> Json:
    days = {"accepted": decision.accepted, "until": decision.until}
    return {
        "reason": decision.reason,
        "owner": decision.owner,
        **{key: day and day.isoformat() for key, day in days.items()},
    }


def _difference_json(difference: DriftItem) -> Json:
    value: Json = {
        kind_of(difference.name): str(difference.name),
        "kind": difference.kind.value,
        "message": difference.message,
        "cause": difference.cause,
        "fix": difference.fix,
    }
    if difference.version:
        value["version"] = _version(difference.version)
    if difference.version and difference.version.info:
        value["nearest"] = _nearest(difference.version.info, difference.nearest)
    return value


def _version(entry: SchemaVersion) -> Json:
    return {"version": entry.number, "time_ms": entry.timestamp_ms, "schema": schema_value(entry.info)}


def _nearest(new: SchemaInfo, nearest: SchemaVersion | None) -> Json | None:
    if nearest is None or nearest.info is None:
        return None
    changed = differences(old=nearest.info, new=new)
    return {
        "version": nearest.number,
        "commit": commit_value(nearest.commit),
        "changes": [{"sign": sign, "what": what} for sign, what in changed],
        "diff": line_changes(old=nearest.info, new=new, labels=("git", "registry")),
    }


def replicated_values(spaces: Sequence[ReplicatedNamespace]) -> list[Json]:
    """Return the same as JSON."""
    return [
        {
            "namespace": str(each.name),
            "clusters": list(each.clusters),
            "not_compared": list(each.unknown),
            "differing": [
                {"topic": str(one.topic), "version": one.version, "numbers": dict(one.numbers)}
                for one in each.differing
            ],
        }
        for each in spaces
    ]


# Version numbers as text


def render(misread: Sequence[TopicApart], *, target: str, color: bool = False) -> str:
    """Return the topics whose messages would be misread, and what to do, as text."""
    return "\n".join(text_lines(misread_block(misread, target=target), color=color))


def misread_block(
    misread: Sequence[TopicApart], *, target: str, after: bool = False, planned: bool = False
) -> SheetBlock:
    """Return the topics whose messages would be misread, and what to do.

    Args:
        misread: the topics of which some number is neither Git's nor recorded.
        target: the target's name.
        after: it is not so yet, but will be when the plan has been applied.
        planned: the plan has something to apply, which comes first.
    """
    when = f"After this apply, {target} will have" if after else f"{target} has"
    head = f"{when} version numbers that are not Git's, and no approved numbers file records them. Messages would be misread:"
    lines = [SheetLine(head), *(SheetLine(f"{topic.name}: {topic}", "!", 1) for topic in misread)]
    if all(topic.unexplained for topic in misread):
        next_step = f"Next: `schemactl drift --target {target}` shows how to bring the commits back"
        return (*lines, SheetLine(next_step, depth=1))
    lines.append(SheetLine(f"Next: {advice(target, planned=planned)}", depth=1))
    if after and any(topic.contradicted for topic in misread):
        rebuild = f"If the registry lost versions that are recorded, run `schemactl rebuild --target {target}` first: it restores their numbers"
        lines.append(SheetLine(rebuild, depth=1))
    return tuple(lines)


def advice(target: str, *, planned: bool = False) -> str:
    """Return what to do about numbers that are not recorded."""
    first = "apply this; then " if planned else ""
    return f"{first}`schemactl drift --target {target} --accept --reason TEXT`, commit what it writes, and merge it"


_STATES = {
    "deleted": "no longer readable: a tombstone came after it",
    "tombstone": "a tombstone: the schema was deleted",
    "missing": "not in the registry",
}


def render_pairs(name: TopicName, pairs: Sequence[NumberPair], *, color: bool = False) -> str:
    """Return the topic and its entries, newest first: the registry's number, Git's, what it is and where it came from."""
    rows: list[tuple[str, ...]] = [("REGISTRY", "GIT", "TYPE", "UPLOADED", "COMMIT", "DAY", "SUBJECT")]
    rows += [_row(pair) for pair in reversed(pairs)]
    lines = [paint(str(name), "bold", color=color)]
    lines += [f"  {line}" for line in table(rows)] if pairs else ["  no version, neither in Git nor in the registry"]
    return "\n".join(lines)


def _row(pair: NumberPair) -> tuple[str, ...]:
    entry, version = pair.registry, pair.git
    info = (entry.info if entry else None) or (version.info if version else None)
    numbers = (str(entry.number) if entry else "-", str(version.number) if version else "-")
    commit = version.commit if version else None
    note = _STATES.get(pair.state) or ("" if version else _foreign(pair))
    origin = (commit.short, day(commit)) if commit else ("-", "-")
    details = "; ".join(filter(None, (commit.subject if commit else "", note)))
    return (*numbers, info.type.name if info else "-", moment(entry.timestamp_ms) if entry else "-", *origin, details)


def _foreign(pair: NumberPair) -> str:
    if pair.stamp:
        return f"uploaded from commit {pair.stamp[:9]}, which the approved history does not have"
    return "not known to Git"
