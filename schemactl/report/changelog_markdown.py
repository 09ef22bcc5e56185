"""What changed between two states of the declarations, as Markdown for release notes: what breaks readers first."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.comparison.revision_diff import NOT_APPROVED, NewVersion, Revision, Subject
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit
from schemactl.core.wording import day, versions
from schemactl.formats.type_spec import PartChange
from schemactl.report.markdown import code, plain
from schemactl.report.revision_text import changed, total, waived


def render(revision: Revision) -> str:
    """Return a heading, what breaks readers, and a section for each namespace with its topics."""
    authors = f" by {', '.join(map(plain, revision.authors))}" if revision.authors else ""
    blocks = [
        f"# Schemas: {plain(revision.before)} to {plain(revision.after)}",
        f"{plain(total(revision))}{authors}.",
    ]
    if revision.breaking:
        lines = [line for subject, version in revision.breaking for line in _breaking(subject, version)]
        blocks.append("\n".join(["## Breaking", "", *lines]))
    by_space: dict[NamespaceName, list[Subject]] = {}
    for subject in revision.subjects:
        by_space.setdefault(subject.namespace, []).append(subject)
    for space in sorted(by_space, key=str):
        blocks.append(f"## {plain(str(space))}")
        for subject in by_space[space]:
            own = [_heading(subject)] if isinstance(subject.name, TopicName) else []
            blocks.append("\n".join([*own, *_lines(subject, revision)]))
    return "\n\n".join(blocks)


def _heading(subject: Subject) -> str:
    assert isinstance(subject.name, TopicName)  # noqa: S101  the caller looked
    former = f", was {plain(subject.former.schema_id)}" if subject.former else ""
    domain = "" if subject.name.domain == "persistent" else f" ({subject.name.domain})"
    return f"### {plain(subject.name.topic)}{domain}{former}\n"


def _breaking(subject: Subject, version: NewVersion) -> Iterator[str]:
    yield f"* {code(f'{subject.name}')} v{version.version.number}:"
    for found in version.breaks:
        if not found.strict_only:
            yield f"  * {plain(found.rule)}, with {versions(found.against)}: {plain(found.reason)}"
            yield f"    {plain(waived(found.waiver)) if found.waiver else 'No waiver.'}"


def _lines(subject: Subject, revision: Revision) -> Iterator[str]:
    for sign, line in changed(subject):
        yield f"* {plain(line)}{_by(subject.since, revision) if sign == '-' and subject.is_gone else ''}"
    yield from (f"  * {_part(part)}" for part in subject.parts)
    for each in subject.versions:
        kind = each.version.info.type.name if each.version.info else ""
        breaking = ", **breaking**" if each.is_breaking else ""
        yield f"* **v{each.version.number}** {kind}{breaking}{_by(each.version.commit, revision)}"
        yield from (f"  * {_part(part)}" for part in each.parts)
    for key, before, after in subject.said:
        if before and after:
            yield f"* {plain(key)}: {plain(before)}, now {plain(after)}"
        else:
            yield f"* {plain(key)}: {plain(after) if after else f'no longer {plain(before)}'}"


def _by(commit: Commit | None, revision: Revision) -> str:
    """Return the subject, author, day and id of a commit, as the end of a line."""
    if commit is None or commit.id == NOT_APPROVED:
        return ", not approved yet" if commit else ""
    author = revision.author_of.get(commit.id, "")
    return f": {plain(commit.subject)} ({', '.join(filter(None, (plain(author), day(commit), code(commit.short))))})"


def _part(part: PartChange) -> str:
    """Return what has become of a part."""
    name = code(part.part) if part.part else "the type"
    match part.kind:
        case "added":
            return f"added {name}: {code(part.after)}"
        case "removed":
            return f"removed {name}: {code(part.before)}"
        case "renamed":
            changed = "" if part.before == part.after else f": {code(part.before)}, now {code(part.after)}"
            return f"renamed {code(part.former)} to {name}{changed}"
        case "documented":
            return (
                f"documented {name}: {plain(' '.join(part.after.split()))}"
                if part.after
                else f"undocumented {name}"
            )
    return f"{part.kind} {name}: {code(part.before)}, now {code(part.after)}"
