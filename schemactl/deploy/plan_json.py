"""A plan as JSON, for reports and results, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemactl.comparison.revision_diff import VersionEffect
from schemactl.core import atomic_files
from schemactl.core.environment import get_version
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, answer_value, commit_value, json_text, to_json, waiver_value
from schemactl.core.names import TopicName
from schemactl.deploy.broker_configuration import comparison_values
from schemactl.deploy.plan import Plan, UnreadableDeclaration
from schemactl.deploy.steps.step import name_value
from schemactl.deploy.version_numbers import mismatch_values

FORMAT_VERSION = 1
"""The version of the format. Changes that readers must handle raise it; new keys do not."""

_NOT_IN_DIGEST: Final = frozenset(
    {"schemactl", "registry_version", "approved", "proposed", "unreadable", "brokers", "upgrade_first", "effects"}
)
"""The keys about the making of a plan and its commit; `left_out` also has the topics of unreadable declarations."""

_NOT_IN_DIGEST_OF_ENTRIES: Final = {
    "steps": {"commit"},
    "notes": {"message"},
    # Both name the commit of a version that is rejected.
    "left_out": {"reason", "fix"},
}


def document(plan: Plan) -> Json:
    """Convert `plan` to JSON values, with its digest at the end."""
    values = _make_values(plan)
    values["steps"] = [*values["steps"]]
    return {**values, "digest": _compute_digest(values)}


def _make_values(plan: Plan) -> Json:
    """Return the members of the document except the digest; `steps` can be iterated once."""
    settings = {str(name): sorted(plan.scope.get_settings(name)) for name in sorted(plan.scope.settings, key=str)}
    values: Json = {
        "format_version": FORMAT_VERSION,
        "schemactl": get_version(),
        "target": plan.origin.target,
        "registry": plan.origin.registry,
        "pulsar": plan.origin.release.value,
        "registry_version": plan.origin.version,
        "approved": {"ref": plan.origin.ref, "commit": commit_value(plan.origin.tip)},
        "proposed": plan.origin.proposed,
        "state": plan.state,
        "scope": {
            "namespaces": sorted(map(str, plan.scope.namespaces)),
            "topics": sorted(map(str, plan.scope.topics)),
            **({"settings": settings} if settings else {}),
        },
        "steps": (step.to_json() for step in plan.steps),
        "notes": [{"topic": str(note.name), "kind": note.kind.value, "message": note.message} for note in plan.notes],
        "left_out": [
            *(
                {
                    **name_value(refusal.name),
                    "version": refusal.number,
                    "answer": None if refusal.answer is None else answer_value(refusal.answer),
                    "reason": refusal.message,
                    "fix": refusal.fix,
                    "wedged_by": refusal.blocked_by,
                    **({"allow": refusal.allow} if refusal.allow else {}),
                }
                for refusal in plan.refusals
            ),
            *(
                {
                    "topic": str(declaration.topic) if declaration.topic else None,
                    "version": None,
                    "answer": None,
                    "reason": declaration.message,
                    "fix": declaration.problem.fix,
                    "wedged_by": None,
                }
                for declaration in plan.unreadable
            ),
        ],
        "unreadable": unreadable_values(plan.unreadable),
        "upgrade_first": dict(plan.upgrade_first),
        "effects": [_effect_value(name, effect) for (name, _), effect in plan.effects.items()],
        "brokers": comparison_values(plan.brokers),
        "numbers_apart": mismatch_values(plan.number_mismatches),
        "numbers_apart_now": plan.has_unrecorded_mismatch_now,
        "whole": plan.whole,
    }
    if plan.lists is not None:
        values["lists"] = to_json(plan.lists)
    return values


def _effect_value(name: TopicName, effect: VersionEffect) -> Json:
    change = effect.change
    return {
        "topic": str(name),
        "version": change.version.number,
        "changes": [{"change": part.kind, "sign": part.sign, "text": part.text} for part in change.parts],
        "breaks": [
            {
                "rule": breakage.rule,
                "direction": breakage.direction,
                "against": [*breakage.against],
                "reason": breakage.reason,
                "is_error": breakage.is_error,
                "waiver": waiver_value(breakage.waiver) if breakage.waiver else None,
            }
            for breakage in change.breaks
        ],
        "clients": [
            *({"client": client, "fine": False, "reason": reason} for client, reason in effect.broken),
            *({"client": client, "fine": True, "reason": None} for client in effect.safe),
        ],
    }


def plan_digest(plan: Plan) -> str:
    """Return the digest for the approval of a plan: equal for two plans if and only if they change the same registry in the same way.

    It covers contents and the target, not commits, so that a squash does not change it.
    """
    return _compute_digest(_make_values(plan))


def _compute_digest(values: Json) -> str:
    """Return the SHA-256 of a plan's values, without the keys about its making, commits and messages.

    The hashed text is JSON with sorted keys and without spaces. It is hashed member by member, because it can be large.
    """
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    digest = hashlib.sha256()
    for index, key in enumerate(sorted(values.keys() - _NOT_IN_DIGEST)):
        digest.update(f"{',' if index else '{'}{encode(key)}:".encode())
        if key not in _NOT_IN_DIGEST_OF_ENTRIES:
            digest.update(encode(values[key]).encode())
            continue
        left_out, separator = _NOT_IN_DIGEST_OF_ENTRIES[key], "["
        for entry in values[key]:
            digested = {name: value for name, value in entry.items() if name not in left_out}
            digest.update(f"{separator}{encode(digested)}".encode())
            separator = ","
        digest.update(b"[]" if separator == "[" else b"]")
    digest.update(b"}")
    return f"sha256:{digest.hexdigest()}"


def unreadable_values(declarations: Iterable[UnreadableDeclaration]) -> list[Json]:
    """Return approved declarations that cannot be read as JSON values."""
    return [
        {
            "topic": str(declaration.topic) if declaration.topic else None,
            "file": declaration.problem.source.path,
            "line": declaration.problem.source.line,
            "column": declaration.problem.source.column,
            "problem": declaration.problem.message,
            "commit": commit_value(declaration.commit),
        }
        for declaration in declarations
    ]


def write_json(value: Json, path: Path, *, below: str | None = None) -> None:
    """Write `value` to the file at `path` as indented JSON, atomically, without following links below `below`.

    Only the owner may read the file.

    Raises:
        SchemactlError: if the file cannot be written.
    """
    text = json_text(value) + "\n"
    try:
        atomic_files.write(path, text.encode(), below=below, mode=atomic_files.PRIVATE_MODE, make_folders=False)
    except OSError as error:
        raise SchemactlError(
            f"{path} cannot be written: {error.strerror}", fix="name a file in a folder you may write"
        ) from error
