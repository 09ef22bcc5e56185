"""Render the promotion of a target as text."""

from __future__ import annotations

from typing import Final

from schemactl.comparison.changes import VersionsMissing
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.terminal import SIGNS, on_one_line, paint
from schemactl.core.wording import format_count, get_name_type
from schemactl.deploy.promotion import Promotion
from schemactl.report.changes import describe_commit, describe_version, list_change_lines
from schemactl.report.document import group_by_name
from schemactl.report.plan import list_effect_lines

_BACK_NOTE: Final = (
    "A registry keeps its content:",
    "  versions stay registered and readable, and the latest one stays the latest; a generation that has begun stays",
    "  topics, namespaces and partitions stay; the next apply resets only policies",
    "To undo a change, approve a new commit that reverts it, and promote that: an old text returns its old number.",
)


def render_promotion_text(promotion: Promotion, *, color: bool = False) -> str:
    """Return a block for each namespace and topic, the waivers, and for a move back the changes that stay in the registry."""
    before, after = promotion.before, promotion.after
    position = f"is at {describe_commit(before)}" if before else "was never promoted"
    commits = f"{format_count(promotion.commits, 'commit')} of the approved history"
    if before and before.id == after.id:
        heading = f"{promotion.target} {position}: {promotion.ref} is there"
    elif promotion.is_back:
        heading = f"{promotion.target} {position}, and moves back to {describe_commit(after)}, without {commits}:"
    else:
        heading = f"{promotion.target} {position}, and moves to {describe_commit(after)}: {commits}"
    blocks = [heading]
    for name, changes in group_by_name(promotion.changes).items():
        signed_lines: list[tuple[str, str]] = []
        for change in changes:
            if not isinstance(change, VersionsMissing):
                signed_lines += list_change_lines(change)
                continue
            # Below each version are its changes, and the readers that it breaks.
            for version in change.versions:
                signed_lines.append(("+", describe_version(version)))
                if effect := promotion.effects.get((change.name, version.number)):
                    signed_lines += [(f"  {sign}", on_one_line(line)) for sign, line in list_effect_lines(effect)]
        change_lines = [f"  {paint(sign, SIGNS[sign.strip()], color=color)} {line}" for sign, line in signed_lines]
        blocks.append("\n".join([f"{get_name_type(name)} {paint(str(name), 'bold', color=color)}", *change_lines]))
    if promotion.waivers and not promotion.is_back:
        waiver_lines = [
            f"  {waiver.rule} of {waiver.topic}, by {on_one_line(waiver.owner)}, until {waiver.until}: {on_one_line(waiver.reason)}"
            for waiver in promotion.waivers
        ]
        blocks.append("\n".join(["Waived:", *waiver_lines]))
    if promotion.waits_for:
        blocks.append(
            f"{', '.join(promotion.waits_for)} {'does' if len(promotion.waits_for) == 1 else 'do'} not have these versions yet: a plan for "
            f"{promotion.target} skips them"
        )
    if promotion.is_back:
        blocks.append("\n".join(_BACK_NOTE))
    namespaces = len({change.name for change in promotion.changes if isinstance(change.name, NamespaceName)})
    topics = len({change.name for change in promotion.changes if isinstance(change.name, TopicName)})
    counts = ((promotion.versions, "version"), (topics, "topic"), (namespaces, "namespace"))
    total = ", ".join(format_count(count, noun) for count, noun in counts if count) or "nothing in a registry"
    blocks.append(f"{'What stays' if promotion.is_back else 'With it'}: {total}.")
    return "\n\n".join(blocks)
