"""Render promotions and changes between revisions as JSON (`promote`, `diff`, `changelog`).

The classes are the documents: their fields are the keys, in their order. `schemas/revision.schema.json` is generated from them. Keys
are not renamed within a format version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from schemactl.comparison.changes import (
    Change,
    GenerationBegins,
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesUndeclared,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
)
from schemactl.comparison.revision_diff import NOT_APPROVED, NewVersion, Revision, Subject
from schemactl.core.findings import Direction
from schemactl.core.json_values import OPTIONAL, Json, WaiverView, json_text, make_view, to_json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit
from schemactl.core.wording import get_name_type
from schemactl.deploy.promotion import Promotion
from schemactl.formats.part_changes import PartChange


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionDocument:
    """The move of a target, as `promote --format json` prints it.

    Attributes:
        promoted: the ref with the position of the target.
        before: the previous position, or null if the target had none.
        after: the new position.
        commits: the number of commits between the positions.
        back: whether the target moves to an older commit.
        waits_for: the targets that must have the versions first.
        moved: whether the target has been moved.
        push: the command that publishes the move, or null.
    """

    format_version: Literal[1] = 1
    target: str
    promoted: str
    before: Commit | None
    after: Commit
    commits: int
    back: bool
    changes: tuple[Json, ...]
    waivers: tuple[WaiverView, ...]
    waits_for: tuple[str, ...]
    moved: bool
    push: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionDocument:
    """The changes from one revision to another, format_version 1. New keys may follow; no key is renamed.

    Attributes:
        commits: the number of commits that only the newer revision has.
        authors: the authors of these commits.
        versions: the number of new versions.
        breaking: the number of new versions that break readers that the strategy protects.
    """

    format_version: Literal[1] = 1
    before: RevisionEntry
    after: RevisionEntry
    commits: int
    authors: tuple[str, ...]
    versions: int
    breaking: int
    subjects: tuple[SubjectEntry, ...]


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """The name of a revision, and its commit; null for the working tree, and before the first commit."""

    name: str
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectEntry:
    """A changed topic or namespace; it has one of the keys `namespace` and `topic`.

    Attributes:
        renamed_from: the name in the older revision.
        since: the commit that made the topic as it is.
        changes: changes other than versions, each with its kind under the key `change`.
        parts: the changed parts of a text that is not a new version.
    """

    namespace: NamespaceName | None = field(default=None, metadata=OPTIONAL)
    topic: TopicName | None = field(default=None, metadata=OPTIONAL)
    renamed_from: TopicName | None
    deleted: bool
    since: AuthoredCommitEntry | None
    changes: tuple[Json, ...]
    metadata: tuple[MetadataEntry, ...]
    parts: tuple[PartEntry, ...]
    versions: tuple[VersionEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoredCommitEntry:
    """A commit; `time_s` is the committer time in seconds since the epoch."""

    id: str
    time_s: int
    subject: str
    author: str | None


@dataclass(frozen=True, slots=True)
class MetadataEntry:
    """A changed key of the metadata."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEntry:
    """A changed field, type or symbol.

    Attributes:
        former: the name in the older definition, if an alias maps it.
    """

    kind: Literal["added", "removed", "renamed", "widened", "changed", "documented"]
    part: str
    before: str | None
    after: str | None
    former: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionEntry:
    """A new version.

    Attributes:
        kind: the key of its kind of events, or null for a topic with one schema.
        commit: the commit that added the version, or null if it is not approved yet.
        before: the version that it is compared with, or null for the first version.
    """

    version: int
    type: str | None
    kind: str | None
    commit: AuthoredCommitEntry | None
    before: int | None
    parts: tuple[PartEntry, ...]
    breaking: bool
    breaks: tuple[BreakEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEntry:
    """A reason why readers that the strategy protects fail or get other values; `against` are the versions that break."""

    rule: str
    direction: Direction
    against: tuple[int, ...]
    reason: str
    strict_only: bool
    is_warning: bool
    waiver: WaiverView | None


def render_promotion_json(promotion: Promotion, *, moved: bool, push: str | None) -> str:
    """Return the promotion as JSON.

    Args:
        promotion: the move of a target.
        moved: whether the target has been moved.
        push: the command that publishes the move, or None.
    """
    document = make_view(
        PromotionDocument,
        promotion,
        promoted=promotion.ref,
        back=promotion.is_back,
        changes=tuple(map(_encode_change, promotion.changes)),
        waivers=tuple(make_view(WaiverView, waiver) for waiver in promotion.waivers),
        moved=moved,
        push=push,
    )
    return json_text(to_json(document))


def render_revision_json(revision: Revision) -> str:
    """Return all changes as the JSON object that `schemas/revision.schema.json` describes."""
    document = make_view(
        RevisionDocument,
        revision,
        before=RevisionEntry(revision.before, revision.start),
        after=RevisionEntry(revision.after, revision.end),
        breaking=len(revision.breaking),
        subjects=tuple(_make_subject_entry(subject, revision) for subject in revision.subjects),
    )
    return json_text(to_json(document))


def _make_subject_entry(subject: Subject, revision: Revision) -> SubjectEntry:
    return make_view(
        SubjectEntry,
        subject,
        **{get_name_type(subject.name): subject.name},
        renamed_from=subject.former,
        deleted=subject.is_gone,
        since=_make_commit_entry(subject.since, revision),
        changes=tuple(map(_encode_change, subject.changes)),
        metadata=tuple(
            MetadataEntry(key, before or None, after or None) for key, before, after in subject.metadata_changes
        ),
        parts=_make_part_entries(subject.parts),
        versions=tuple(_make_version_entry(version, revision) for version in subject.versions),
    )


def _make_version_entry(new: NewVersion, revision: Revision) -> VersionEntry:
    version = new.version
    return VersionEntry(
        version=version.number,
        type=version.info.type.name if version.info else None,
        kind=version.kind or None,
        commit=_make_commit_entry(version.commit, revision),
        before=new.before.number if new.before else None,
        parts=_make_part_entries(new.parts),
        breaking=new.is_breaking,
        breaks=tuple(
            make_view(BreakEntry, breakage, waiver=breakage.waiver and make_view(WaiverView, breakage.waiver))
            for breakage in new.breaks
        ),
    )


def _make_part_entries(parts: Iterable[PartChange]) -> tuple[PartEntry, ...]:
    return tuple(make_view(PartEntry, part) for part in parts)


def _make_commit_entry(commit: Commit | None, revision: Revision) -> AuthoredCommitEntry | None:
    """Return the commit with its author, or None if it is not approved yet or unknown."""
    if commit is None or commit.id == NOT_APPROVED:
        return None
    return make_view(AuthoredCommitEntry, commit, author=revision.author_of.get(commit.id))


def _encode_change(change: Change) -> Json:
    """Return a change as JSON: its kind, its namespace or topic, and details that depend on the kind."""
    subject: Json = {get_name_type(change.name): str(change.name)}
    match change:
        case NamespaceAdded():
            return {"change": "namespace added", **subject}
        case TopicAdded(_, topic):
            return {"change": "topic added", **subject, "partitions": topic.partitions}
        case PoliciesChanged(_, before, after):
            values = {"before": {policy: before.get(policy) for policy in after.managed()}, "after": after.managed()}
            return {"change": "policies", **subject, **values}
        case PoliciesUndeclared(_, before, _):
            return {"change": "policies reset", **subject, "before": before.managed()}
        case PartitionsChanged(_, before, after):
            return {"change": "partitions", **subject, "before": before, "after": after}
        case GenerationBegins(_, number):
            return {"change": "generation begins", **subject, "tombstone": number}
        case VersionsMissing(_, versions) | VersionsUnknown(_, versions):
            listed = [
                {
                    "version": version.number,
                    "type": version.info.type.name if version.info else None,
                    "kind": version.kind or None,
                    "commit": version.commit,
                }
                for version in versions
            ]
            kind = "versions" if isinstance(change, VersionsMissing) else "versions gone"
            return {"change": kind, **subject, "versions": listed}
        case TextDiffers(_, _, number, latest, kind):
            return {"change": "text", **subject, "kind": kind or None, "version": number, "latest": latest}
        case _:
            return {"change": "schema removed", **subject}
