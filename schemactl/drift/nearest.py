"""Which of Git's versions is most like a definition, and in what the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from schemactl.changes import unstamped
from schemactl.errors import InvalidSchema
from schemactl.formats.outline import changes, lines
from schemactl.model import SchemaInfo, SchemaVersion


def nearest(entry: SchemaVersion, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """The version with the fewest differences from `entry`, the newest of several; None: there is none at all."""
    best: tuple[float, SchemaVersion] | None = None
    for version in versions:
        if entry.info and version.info:
            count = _distance(old=version.info, new=entry.info)
            if best is None or count <= best[0]:
                best = count, version
    return best[1] if best else None


def differences(*, old: SchemaInfo, new: SchemaInfo) -> list[tuple[str, str]]:
    """What differs, as a sign (`+`, `-`, `~`) and words: by fields, or by lines where fields do not tell."""
    try:
        found = list(changes(old=unstamped(old), new=unstamped(new)))
    except InvalidSchema:
        found = []
    if found:
        return found
    text = unified_diff(lines(old), lines(new), lineterm="", n=0)
    return [
        (line[0], line[1:].strip()) for line in text if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]


def text_diff(*, old: SchemaInfo, new: SchemaInfo) -> list[str]:
    """A unified diff of the two texts, laid out the same."""
    return list(unified_diff(lines(old), lines(new), "git", "registry", lineterm=""))


def _distance(*, old: SchemaInfo, new: SchemaInfo) -> float:
    # Another type is another schema, however alike the texts are.
    return float("inf") if old.type is not new.type else len(differences(old=old, new=new))
