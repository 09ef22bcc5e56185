"""What changed between two states of the declarations as one JSON object; `schemas/revision.schema.json` describes it."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.comparison.revision_diff import NOT_APPROVED, NewVersion, Revision, Subject
from schemactl.core.json_values import Json, commit_value, json_text, waiver_value
from schemactl.core.schema import Commit
from schemactl.core.wording import kind_of
from schemactl.formats.type_spec import PartChange
from schemactl.report.promotion_json import change_value

FORMAT_VERSION = 1


def render(revision: Revision) -> str:
    """Return all facts; keys are not renamed within a format version."""
    return json_text(
        {
            "format_version": FORMAT_VERSION,
            "before": {"name": revision.before, "commit": commit_value(revision.start)},
            "after": {"name": revision.after, "commit": commit_value(revision.end)},
            "commits": revision.commits,
            "authors": [*revision.authors],
            "versions": revision.versions,
            "breaking": len(revision.breaking),
            "subjects": [_subject(each, revision) for each in revision.subjects],
        }
    )


def _subject(subject: Subject, revision: Revision) -> Json:
    return {
        kind_of(subject.name): str(subject.name),
        "renamed_from": str(subject.former) if subject.former else None,
        "deleted": subject.is_gone,
        "since": _commit(subject.since, revision),
        "changes": [change_value(each) for each in subject.changes],
        "metadata": [
            {"key": key, "before": before or None, "after": after or None}
            for key, before, after in subject.said
        ],
        "parts": _parts(subject.parts),
        "versions": [_version(each, revision) for each in subject.versions],
    }


def _version(each: NewVersion, revision: Revision) -> Json:
    return {
        "version": each.version.number,
        "type": each.version.info.type.name if each.version.info else None,
        "commit": _commit(each.version.commit, revision),
        "before": each.before.number if each.before else None,
        "parts": _parts(each.parts),
        "breaking": each.is_breaking,
        "breaks": [
            {
                "rule": found.rule,
                "direction": found.direction,
                "against": [*found.against],
                "reason": found.reason,
                "strict_only": found.strict_only,
                "waiver": waiver_value(found.waiver) if found.waiver else None,
            }
            for found in each.breaks
        ],
    }


def _parts(parts: Iterable[PartChange]) -> list[Json]:
    return [
        {
            "kind": each.kind,
            "part": each.part,
            "before": each.before or None,
            "after": each.after or None,
            "former": each.former or None,
        }
        for each in parts
    ]


def _commit(commit: Commit | None, revision: Revision) -> Json | None:
    """Return the commit with its author; None: it is not approved yet, or not known."""
    value = None if commit is None or commit.id == NOT_APPROVED else commit_value(commit)
    return value and {**value, "author": revision.author_of.get(value["id"])}
