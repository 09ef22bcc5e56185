"""Git's numbers and a registry's side by side, for people."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.model import TopicName
from schemactl.report.style import paint, table
from schemactl.target_numbers.pairs import NumberPair
from schemactl.wording import day, moment

_SAID = {
    "deleted": "no longer readable: a tombstone came after it",
    "tombstone": "a tombstone: the schema was deleted",
    "missing": "not in the registry",
}


def render(name: TopicName, pairs: Sequence[NumberPair], *, color: bool = False) -> str:
    """The topic and its entries, newest first: the registry's number, Git's, what it is and where it came from."""
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
    remark = _SAID.get(pair.state) or ("" if version else _foreign(pair))
    origin = (commit.short, day(commit)) if commit else ("-", "-")
    said = "; ".join(filter(None, (commit.subject if commit else "", remark)))
    return (
        *numbers,
        info.type.name if info else "-",
        moment(entry.timestamp_ms) if entry else "-",
        *origin,
        said,
    )


def _foreign(pair: NumberPair) -> str:
    if pair.stamp:
        return f"uploaded from commit {pair.stamp[:9]}, which the approved history does not have"
    return "not known to Git"
