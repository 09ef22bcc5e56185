"""What comes with a promotion as one JSON object; keys are not renamed within a format version."""

from __future__ import annotations

from schemactl.comparison.changes import (
    Change,
    GenerationBegins,
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesFormer,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
)
from schemactl.core.json_values import Json, commit_value, json_text, waiver_value
from schemactl.core.wording import kind_of
from schemactl.deploy.status import Promotion

FORMAT_VERSION = 1


def render(promotion: Promotion, *, moved: bool, push: str | None) -> str:
    """Return the promotion: whether it was `moved`, and the command that publishes it."""
    values = {
        "format_version": FORMAT_VERSION,
        "target": promotion.target,
        "promoted": promotion.ref,
        "before": commit_value(promotion.before),
        "after": commit_value(promotion.after),
        "commits": promotion.commits,
        "back": promotion.is_back,
        "changes": [change_value(each) for each in promotion.changes],
        "waivers": [waiver_value(each) for each in promotion.waivers],
        "waits_for": [*promotion.waits_for],
        "moved": moved,
        "push": push,
    }
    return json_text(values)


def change_value(change: Change) -> Json:
    """Return a change: what it is, of which namespace or topic, and its facts."""
    about: Json = {kind_of(change.name): str(change.name)}
    match change:
        case NamespaceAdded():
            return {"change": "namespace added", **about}
        case TopicAdded(_, topic):
            return {"change": "topic added", **about, "partitions": topic.partitions}
        case PoliciesChanged(_, before, after):
            sides = {
                "before": {policy: before.get(policy) for policy in after.managed()},
                "after": after.managed(),
            }
            return {"change": "policies", **about, **sides}
        case PoliciesFormer(_, before, _):
            return {"change": "policies reset", **about, "before": before.managed()}
        case PartitionsChanged(_, before, after):
            return {"change": "partitions", **about, "before": before, "after": after}
        case GenerationBegins(_, number):
            return {"change": "generation begins", **about, "tombstone": number}
        case VersionsMissing(_, versions) | VersionsUnknown(_, versions):
            listed = [
                {
                    "version": each.number,
                    "type": each.info.type.name if each.info else None,
                    "commit": commit_value(each.commit),
                }
                for each in versions
            ]
            word = "versions" if isinstance(change, VersionsMissing) else "versions gone"
            return {"change": word, **about, "versions": listed}
        case TextDiffers(_, _, number, latest):
            return {"change": "text", **about, "version": number, "latest": latest}
        case _:
            return {"change": "schema removed", **about}
