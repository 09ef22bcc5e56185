"""What changed between two states of the declarations, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from schemactl.comparison.changes import SchemaRemoved
from schemactl.comparison.revision_diff import NOT_APPROVED, NewVersion, Revision, Subject
from schemactl.core.findings import Waiver
from schemactl.core.names import NamespaceName
from schemactl.core.schema import Commit
from schemactl.core.terminal import SIGNS, cut, on_one_line, paint
from schemactl.core.wording import counted, kind_of, versions
from schemactl.formats.type_spec import PartChange
from schemactl.report.promotion_text import change_lines, commit_words, version_words

_LONGEST_DOC: Final = 200


def render(revision: Revision, *, color: bool = False) -> str:
    """Return the two states, a block for each namespace and topic, and the sum."""
    states = (
        f"{on_one_line(name)}{f' {commit_words(commit)}' if commit else ''}"
        for name, commit in ((revision.before, revision.start), (revision.after, revision.end))
    )
    blocks = [" -> ".join(states)]
    for subject in revision.subjects:
        former = f", was {subject.former}" if subject.former else ""
        lines = [
            f"{'  ' * depth}{paint(sign, SIGNS[sign], color=color)} {line}"
            for depth, sign, line in _lines(subject)
        ]
        blocks.append(
            "\n".join(
                [f"{kind_of(subject.name)} {paint(str(subject.name), 'bold', color=color)}{former}", *lines]
            )
        )
    return "\n\n".join([*blocks, f"{total(revision)}."])


def total(revision: Revision) -> str:
    """Return the counts in one sentence, without its end: `2 new versions (1 breaking) of 3 topics in 4 commits`."""
    breaking = len(revision.breaking)
    within = f" in {counted(revision.commits, 'commit')}" if revision.commits else ""
    spaces = sum(isinstance(each.name, NamespaceName) for each in revision.subjects)
    topics = len(revision.subjects) - spaces
    if not revision.subjects:
        return f"Nothing has changed{within}"
    parts = [f"{counted(revision.versions, 'new version')}{f' ({breaking} breaking)' if breaking else ''}"]
    parts += [counted(topics, "changed topic")] if topics else []
    parts += [counted(spaces, "changed namespace")] if spaces else []
    return f"{', '.join(parts)}{within}"


def _lines(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield each line with its depth and its sign."""
    yield from ((1, sign, line) for sign, line in changed(subject))
    yield from _part_lines(subject.parts)
    for key, before, after in subject.said:
        sign = "~" if before and after else "+" if after else "-"
        yield 1, sign, f"{key}: {on_one_line(' -> '.join(filter(None, (before, after))))}"
    for each in subject.versions:
        yield 1, "+", f"{version_line(each.version.commit, each)}"
        yield from _part_lines(each.parts)
        for found in each.breaks:
            strict = " (strict readers alone)" if found.strict_only else ""
            yield 3, "!", f"{found.rule}, with {versions(found.against)}{strict}: {on_one_line(found.reason)}"
            if found.waiver:
                yield 4, "=", waived(found.waiver)


def changed(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield what differs besides versions and metadata, each with a sign."""
    for change in subject.changes:
        if isinstance(change, SchemaRemoved):
            yield "-", "deleted" if subject.is_gone else "has no schema any more"
        else:
            yield from change_lines(change)


def version_line(commit: Commit | None, version: NewVersion) -> str:
    """Return `v3 AVRO: 9f2c1abcd (2026-03-02: Count the orders)`; of what is not approved yet no commit."""
    if commit and commit.id == NOT_APPROVED:
        kind = f" {version.version.info.type.name}" if version.version.info else ""
        return f"v{version.version.number}{kind}: not approved yet"
    return version_words(version.version)


def waived(waiver: Waiver) -> str:
    """Return who waived what, until when and why."""
    return f"waived by {on_one_line(waiver.owner)} until {waiver.until}: {on_one_line(waiver.reason)}"


def _part_lines(parts: Iterable[PartChange]) -> Iterator[tuple[int, str, str]]:
    for each in parts:
        yield 3, each.sign, on_one_line(part_text(each))


def part_text(part: PartChange) -> str:
    """Return a part and what has become of it; of its documentation how that begins."""
    if part.kind != "documented":
        return f"{part.text}{' (widened)' if part.kind == 'widened' else ''}"
    if not part.after:
        return f"{part.text} is gone"
    return f"{part.text}: {cut(' '.join(part.after.split()), _LONGEST_DOC)}"
