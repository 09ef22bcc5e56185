"""Render changes between two revisions as text and Markdown (`diff`, `changelog`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from schemactl.comparison.changes import (
    Change,
    GenerationBegins,
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesUndeclared,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
)
from schemactl.comparison.revision_diff import NOT_APPROVED, Revision, Subject
from schemactl.core.escaping import escape_markdown
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, SchemaVersion
from schemactl.core.terminal import SIGNS, on_one_line, paint, truncate
from schemactl.core.wording import (
    describe_waiver,
    format_count,
    format_day,
    format_partitions,
    format_policies,
    format_version_numbers,
    get_name_type,
)
from schemactl.formats.part_changes import PartChange
from schemactl.report.markdown import code

_MAX_DOC_LENGTH: Final = 200
"""The maximum number of characters of a documentation text that a terminal shows."""


def list_change_lines(change: Change) -> Iterator[tuple[str, str]]:
    """Yield the lines that describe a change, each with its sign."""
    match change:
        case NamespaceAdded():
            yield "+", "a new namespace"
        case TopicAdded(_, topic):
            yield "+", f"a new topic{f', {format_partitions(topic.partitions)}' if topic.partitions else ''}"
        case PoliciesChanged(_, before, after):
            old_values = format_policies(before)
            for policy, value in format_policies(after).items():
                if policy in old_values:
                    yield "~", f"{policy}: {old_values[policy]} -> {value}"
                else:
                    yield "+", f"{policy}: {value}"
        case PoliciesUndeclared(_, before, _):
            for policy, value in format_policies(before).items():
                yield "-", f"{policy}: {value}, no longer declared: reset"
        case PartitionsChanged(_, old_count, new_count):
            yield "~", f"partitions: {old_count or 'none'} -> {new_count}"
        case GenerationBegins(_, number):
            yield "!", f"a new generation begins after number {number}: older versions can no longer be read"
        case VersionsMissing(_, versions):
            yield from (("+", describe_version(version)) for version in versions)
        case VersionsUnknown(_, versions):
            yield from (
                ("-", f"{describe_version(version)}, which the newer revision does not have") for version in versions
            )
        case TextDiffers(_, _, number, latest):
            suffix = f"; a registry's latest stays v{latest}" if number != latest else ""
            yield "=", f"v{number} with another text; nothing is registered{suffix}"
        case SchemaRemoved():
            yield (
                "-",
                "no longer declared, or without schema: registered versions stay, unless `apply --allow-delete` names it",
            )


def describe_version(version: SchemaVersion) -> str:
    """Return `v3 AVRO: ` and the commit that added the version; with its kind of events before the colon, if it has one."""
    return f"{_name_version(version)}{f': {describe_commit(version.commit)}' if version.commit else ''}"


def _name_version(version: SchemaVersion) -> str:
    type_ = f" {version.info.type.name}" if version.info else ""
    return f"v{version.number}{type_}{f' {version.kind}' if version.kind else ''}"


def describe_commit(commit: Commit) -> str:
    """Return `9f2c1abcd (2026-03-02: Count the orders)`."""
    return f"{commit.short} ({format_day(commit)}: {commit.subject})"


def render_revision_text(revision: Revision, *, color: bool = False) -> str:
    """Return the names of both revisions, a block for each namespace and topic, and the totals."""
    states = (
        f"{on_one_line(name)}{f' {describe_commit(commit)}' if commit else ''}"
        for name, commit in ((revision.before, revision.start), (revision.after, revision.end))
    )
    blocks = [" -> ".join(states)]
    for subject in revision.subjects:
        lines = [(1, sign, line) for sign, line in _list_changes(subject)]
        lines += _list_part_lines(subject.parts)
        for key, before, after in subject.metadata_changes:
            sign = "~" if before and after else "+" if after else "-"
            lines.append((1, sign, f"{key}: {on_one_line(' -> '.join(filter(None, (before, after))))}"))
        for new in subject.versions:
            is_approved = new.version.commit is None or new.version.commit.id != NOT_APPROVED
            # `v3 AVRO: 9f2c1abcd (2026-03-02: Count the orders)`, or `v3 AVRO: not approved yet`.
            text = describe_version(new.version) if is_approved else f"{_name_version(new.version)}: not approved yet"
            lines.append((1, "+", text))
            lines += _list_part_lines(new.parts)
            for breakage in new.breaks:
                remark = " (a warning)" if breakage.is_warning else ""
                if breakage.strict_only:
                    remark = " (only strict readers)"
                against = format_version_numbers(breakage.against)
                lines.append((3, "!", f"{breakage.rule}, with {against}{remark}: {on_one_line(breakage.reason)}"))
                if breakage.waiver:
                    lines.append((4, "=", describe_waiver(breakage.waiver)))
        former = f", was {subject.former}" if subject.former else ""
        heading = f"{get_name_type(subject.name)} {paint(str(subject.name), 'bold', color=color)}{former}"
        painted_lines = [f"{'  ' * depth}{paint(sign, SIGNS[sign], color=color)} {line}" for depth, sign, line in lines]
        blocks.append("\n".join([heading, *painted_lines]))
    return "\n\n".join([*blocks, f"{_summarize_revision(revision)}."])


def _summarize_revision(revision: Revision) -> str:
    """Return the counts as a sentence without full stop: `2 new versions (1 breaking) of 3 topics in 4 commits`."""
    breaking = len(revision.breaking)
    within = f" in {format_count(revision.commits, 'commit')}" if revision.commits else ""
    namespaces = sum(isinstance(subject.name, NamespaceName) for subject in revision.subjects)
    topics = len(revision.subjects) - namespaces
    if not revision.subjects:
        return f"Nothing has changed{within}"
    parts = [f"{format_count(revision.versions, 'new version')}{f' ({breaking} breaking)' if breaking else ''}"]
    parts += [format_count(topics, "changed topic")] if topics else []
    parts += [format_count(namespaces, "changed namespace")] if namespaces else []
    return f"{', '.join(parts)}{within}"


def _list_changes(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield a sign and a line for each change other than versions and metadata."""
    for change in subject.changes:
        if isinstance(change, SchemaRemoved):
            yield "-", "deleted" if subject.is_gone else "schema removed"
        else:
            yield from list_change_lines(change)


def _list_part_lines(parts: Iterable[PartChange]) -> Iterator[tuple[int, str, str]]:
    """Yield a line for each changed field or type, with the beginning of a new documentation."""
    for part in parts:
        text = part.text
        if part.kind == "widened":
            text += " (widened)"
        elif part.kind == "documented":
            text += f": {truncate(' '.join(part.after.split()), _MAX_DOC_LENGTH)}" if part.after else " is gone"
        yield 3, part.sign, on_one_line(text)


def render_changelog(revision: Revision) -> str:
    """Return Markdown for release notes: the breaking changes, then a section for each namespace with its topics."""
    authors = f" by {', '.join(map(escape_markdown, revision.authors))}" if revision.authors else ""
    blocks = [
        f"# Schemas: {escape_markdown(revision.before)} to {escape_markdown(revision.after)}",
        f"{escape_markdown(_summarize_revision(revision))}{authors}.",
    ]
    if revision.breaking:
        lines = ["## Breaking", ""]
        for subject, new in revision.breaking:
            lines.append(f"* {code(f'{subject.name}')} v{new.version.number}:")
            for breakage in new.breaks:
                if breakage.is_error:
                    against = format_version_numbers(breakage.against)
                    lines.append(
                        f"  * {escape_markdown(breakage.rule)}, with {against}: {escape_markdown(breakage.reason)}"
                    )
                    lines.append(
                        f"    {escape_markdown(describe_waiver(breakage.waiver)) if breakage.waiver else 'No waiver.'}"
                    )
        blocks.append("\n".join(lines))
    subjects_by_namespace: dict[NamespaceName, list[Subject]] = {}
    for subject in revision.subjects:
        subjects_by_namespace.setdefault(subject.namespace, []).append(subject)
    for namespace in sorted(subjects_by_namespace, key=str):
        blocks.append(f"## {escape_markdown(str(namespace))}")
        for subject in subjects_by_namespace[namespace]:
            lines = []
            name = subject.name
            if isinstance(name, TopicName):
                rename = f", was {escape_markdown(subject.former.schema_id)}" if subject.former else ""
                domain = f" ({'scalable' if name.is_scalable else name.domain})" if name.domain != "persistent" else ""
                lines.append(f"### {escape_markdown(name.topic)}{domain}{rename}\n")
            for sign, line in _list_changes(subject):
                note = _format_commit_note(subject.since, revision) if sign == "-" and subject.is_gone else ""
                lines.append(f"* {escape_markdown(line)}{note}")
            lines += [f"  * {_describe_part(part)}" for part in subject.parts]
            for new in subject.versions:
                kinds = [new.version.info.type.name if new.version.info else "", new.version.kind]
                breaking = ", **breaking**" if new.is_breaking else ""
                note = _format_commit_note(new.version.commit, revision)
                lines.append(f"* **v{new.version.number}** {' '.join(filter(None, kinds))}{breaking}{note}")
                lines += [f"  * {_describe_part(part)}" for part in new.parts]
            for key, before, after in subject.metadata_changes:
                if before and after:
                    lines.append(f"* {escape_markdown(key)}: {escape_markdown(before)}, now {escape_markdown(after)}")
                else:
                    lines.append(
                        f"* {escape_markdown(key)}: {escape_markdown(after) if after else f'no longer {escape_markdown(before)}'}"
                    )
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _format_commit_note(commit: Commit | None, revision: Revision) -> str:
    """Return the suffix of a line that names the subject, author, day and id of a commit."""
    if commit is None or commit.id == NOT_APPROVED:
        return ", not approved yet" if commit else ""
    author = revision.author_of.get(commit.id, "")
    return f": {escape_markdown(commit.subject)} ({', '.join(filter(None, (escape_markdown(author), format_day(commit), code(commit.short))))})"


def _describe_part(part: PartChange) -> str:
    """Return the change of a field or type as Markdown."""
    name = code(part.part) if part.part else "the type"
    match part.kind:
        case "added":
            return f"added {name}: {code(part.after)}"
        case "removed":
            return f"removed {name}: {code(part.before)}"
        case "renamed":
            types = "" if part.before == part.after else f": {code(part.before)}, now {code(part.after)}"
            return f"renamed {code(part.former)} to {name}{types}"
        case "documented":
            return (
                f"documented {name}: {escape_markdown(' '.join(part.after.split()))}"
                if part.after
                else f"undocumented {name}"
            )
    return f"{part.kind} {name}: {code(part.before)}, now {code(part.after)}"
