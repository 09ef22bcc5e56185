"""Render the version numbers of a topic in a registry next to Git's."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.core.names import TopicName
from schemactl.core.terminal import format_table, paint
from schemactl.core.wording import format_day, format_time
from schemactl.deploy.version_lists import NumberPair

_STATE_NOTES = {
    "deleted": "no longer readable: a tombstone came after it",
    "tombstone": "a tombstone: the schema was deleted",
    "missing": "not in the registry",
}


def render_version_numbers(name: TopicName, pairs: Sequence[NumberPair], *, color: bool = False) -> str:
    """Return a table of the versions of a topic, newest first, with their numbers in the registry and in Git."""
    rows: list[tuple[str, ...]] = [("REGISTRY", "GIT", "TYPE", "UPLOADED", "COMMIT", "DAY", "SUBJECT")]
    for pair in reversed(pairs):
        entry, version = pair.registry, pair.git
        info = (entry.info if entry else None) or (version.info if version else None)
        commit = version.commit if version else None
        if pair.state in _STATE_NOTES:
            note = _STATE_NOTES[pair.state]
        elif version:
            note = ""
        elif pair.stamp:
            note = f"uploaded from commit {pair.stamp[:9]}, which the approved history does not have"
        else:
            note = "not known to Git"
        type_ = info.type.name if info else "-"
        if version and version.kind:
            type_ += f" {version.kind}"
        rows.append(
            (
                str(entry.number) if entry else "-",
                str(version.number) if version else "-",
                type_,
                format_time(entry.timestamp_ms) if entry else "-",
                *((commit.short, format_day(commit)) if commit else ("-", "-")),
                "; ".join(filter(None, (commit.subject if commit else "", note))),
            )
        )
    lines = [paint(str(name), "bold", color=color)]
    lines += format_table(rows, indent=2) if pairs else ["  no version, neither in Git nor in the registry"]
    return "\n".join(lines)
