"""What comes with a promotion, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.comparison.changes import (
    Change,
    GenerationBegins,
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesFormer,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
)
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, SchemaVersion
from schemactl.core.terminal import SIGNS, on_one_line, paint
from schemactl.core.wording import counted, day, kind_of, partitions, policy_words
from schemactl.deploy.status import Promotion
from schemactl.report.sheet import by_name


def render(promotion: Promotion, *, color: bool = False) -> str:
    """Return a block for each namespace and topic, then the waivers, and what a registry does not undo."""
    blocks = [_head(promotion)]
    for name, changes in by_name(promotion.changes).items():
        lines = [
            f"  {paint(sign, SIGNS[sign], color=color)} {line}"
            for each in changes
            for sign, line in change_lines(each)
        ]
        blocks.append("\n".join([f"{kind_of(name)} {paint(str(name), 'bold', color=color)}", *lines]))
    if promotion.waivers and not promotion.is_back:
        waived = [
            f"  {each.rule} of {each.topic}, by {on_one_line(each.owner)}, until {each.until}: {on_one_line(each.reason)}"
            for each in promotion.waivers
        ]
        blocks.append("\n".join(["Waived:", *waived]))
    if promotion.waits_for:
        blocks.append(
            f"{', '.join(promotion.waits_for)} {'is' if len(promotion.waits_for) == 1 else 'are'} not as far: a plan for "
            f"{promotion.target} leaves out what is not there"
        )
    if promotion.is_back:
        blocks.append("\n".join(_BACK))
    return "\n\n".join([*blocks, _sum(promotion)])


_BACK = (
    "A registry does not go back:",
    "  versions stay registered and readable, and the latest one stays the latest; a generation that has begun stays",
    "  topics, namespaces and partitions stay; the next apply sets back policies alone",
    "To undo a change, approve a new commit that reverts it, and promote that: an old text returns its old number.",
)


def _head(promotion: Promotion) -> str:
    before, after = promotion.before, promotion.after
    where = f"is at {commit_words(before)}" if before else "is nowhere yet"
    if before and before.id == after.id:
        return f"{promotion.target} {where}: {promotion.ref} is there"
    way = "back to" if promotion.is_back else "on to"
    count = counted(promotion.commits, "commit")
    less = " less. They brought:" if promotion.is_back else ""
    return f"{promotion.target} {where}, and goes {way} {commit_words(after)}: {count} of the approved history{less}"


def commit_words(commit: Commit) -> str:
    """Return `9f2c1abcd (2026-03-02: Count the orders)`."""
    return f"{commit.short} ({day(commit)}: {commit.subject})"


def _sum(promotion: Promotion) -> str:
    spaces = len({each.name for each in promotion.changes if isinstance(each.name, NamespaceName)})
    topics = len({each.name for each in promotion.changes if isinstance(each.name, TopicName)})
    counts = ((promotion.versions, "version"), (topics, "topic"), (spaces, "namespace"))
    listed = ", ".join(counted(count, noun) for count, noun in counts if count)
    return f"{'What stays' if promotion.is_back else 'With it'}: {listed or 'nothing that a registry holds'}."


def change_lines(change: Change) -> Iterator[tuple[str, str]]:
    """Yield what a change is, each line with a sign."""
    match change:
        case NamespaceAdded():
            yield "+", "a new namespace"
        case TopicAdded(_, topic):
            yield "+", f"a new topic{f', {partitions(topic.partitions)}' if topic.partitions else ''}"
        case PoliciesChanged() | PoliciesFormer():
            yield from _policies(change)
        case PartitionsChanged(_, before, after):
            yield "~", f"partitions: {before or 'none'} -> {after}"
        case GenerationBegins(_, number):
            yield "!", f"a new generation begins after number {number}: older versions can no longer be read"
        case VersionsMissing(_, versions):
            yield from (("+", version_words(each)) for each in versions)
        case VersionsUnknown(_, versions):
            yield from (
                ("-", f"{version_words(each)}, which the newer state does not have") for each in versions
            )
        case TextDiffers(_, _, number, latest):
            again = f"; a registry's latest stays v{latest}" if number != latest else ""
            yield "=", f"another text of v{number}, which registers nothing{again}"
        case SchemaRemoved():
            yield (
                "-",
                "no longer declared, or without schema: what is registered stays, unless `apply --allow-delete` names it",
            )


def _policies(change: PoliciesChanged | PoliciesFormer) -> Iterator[tuple[str, str]]:
    held = policy_words(change.before)
    if isinstance(change, PoliciesFormer):
        yield from (("-", f"{policy}: {value}, no longer declared: reset") for policy, value in held.items())
    else:
        for policy, value in policy_words(change.after).items():
            yield (
                ("~", f"{policy}: {held[policy]} -> {value}")
                if policy in held
                else ("+", f"{policy}: {value}")
            )


def version_words(version: SchemaVersion) -> str:
    """Return `v3 AVRO`, and the commit that brought it."""
    kind = f" {version.info.type.name}" if version.info else ""
    return f"v{version.number}{kind}{f': {commit_words(version.commit)}' if version.commit else ''}"
