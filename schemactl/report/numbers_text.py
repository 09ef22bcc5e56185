"""A target's version numbers next to Git's, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.core.names import TopicName
from schemactl.core.terminal import paint, table
from schemactl.core.wording import day, moment
from schemactl.deploy.version_numbers import NumberPair, TopicApart
from schemactl.report.sheet import SheetBlock, SheetLine, text_lines


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
    lines += (
        [f"  {line}" for line in table(rows)]
        if pairs
        else ["  no version, neither in Git nor in the registry"]
    )
    return "\n".join(lines)


def _row(pair: NumberPair) -> tuple[str, ...]:
    entry, version = pair.registry, pair.git
    info = (entry.info if entry else None) or (version.info if version else None)
    numbers = (str(entry.number) if entry else "-", str(version.number) if version else "-")
    commit = version.commit if version else None
    note = _STATES.get(pair.state) or ("" if version else _foreign(pair))
    origin = (commit.short, day(commit)) if commit else ("-", "-")
    details = "; ".join(filter(None, (commit.subject if commit else "", note)))
    return (
        *numbers,
        info.type.name if info else "-",
        moment(entry.timestamp_ms) if entry else "-",
        *origin,
        details,
    )


def _foreign(pair: NumberPair) -> str:
    if pair.stamp:
        return f"uploaded from commit {pair.stamp[:9]}, which the approved history does not have"
    return "not known to Git"
