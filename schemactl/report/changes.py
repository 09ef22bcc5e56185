"""Render changes between revisions, promotions and rollouts (`diff`, `changelog`, `promote`, `rollout`) as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from schemactl.checks.rollout import Rollout, RolloutStep
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
from schemactl.comparison.revision_diff import NOT_APPROVED, NewVersion, Revision, Subject
from schemactl.core.findings import Waiver
from schemactl.core.json_values import Json, commit_value, json_text, waiver_value
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, SchemaVersion
from schemactl.core.terminal import SIGNS, cut, on_one_line, paint
from schemactl.core.wording import counted, day, kind_of, partitions, policy_words, versions
from schemactl.deploy.status import Promotion
from schemactl.formats.type_spec import PartChange
from schemactl.report.document import by_name
from schemactl.report.markdown import bold, code, fenced, plain, prose


def render_promotion_text(promotion: Promotion, *, color: bool = False) -> str:
    """Return a block for each namespace and topic, then the waivers, and what a registry does not undo."""
    blocks = [_head(promotion)]
    for name, changes in by_name(promotion.changes).items():
        lines = [
            f"  {paint(sign, SIGNS[sign], color=color)} {line}" for each in changes for sign, line in change_lines(each)
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
            yield from (("-", f"{version_words(each)}, which the newer state does not have") for each in versions)
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
            yield (("~", f"{policy}: {held[policy]} -> {value}") if policy in held else ("+", f"{policy}: {value}"))


def version_words(version: SchemaVersion) -> str:
    """Return `v3 AVRO`, and the commit that brought it."""
    kind = f" {version.info.type.name}" if version.info else ""
    return f"v{version.number}{kind}{f': {commit_words(version.commit)}' if version.commit else ''}"


# A promotion as JSON; keys are not renamed within a format version


PROMOTION_FORMAT_VERSION = 1


def render_promotion_json(promotion: Promotion, *, moved: bool, push: str | None) -> str:
    """Return the promotion: whether it was `moved`, and the command that publishes it."""
    values = {
        "format_version": PROMOTION_FORMAT_VERSION,
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
            sides = {"before": {policy: before.get(policy) for policy in after.managed()}, "after": after.managed()}
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


# A rollout as text, and as a checklist in Markdown


_WORDS = {
    "any order": "Any order is safe.",
    "consumers first": "Consumers first, then the schema, then producers.",
    "producers first": "The schema first, then producers, then consumers.",
    "no safe order": "No order is safe.",
}


def render_rollout_text(found: Rollout) -> str:
    """Return the order and why, and the steps, each with the command that exits with 0 once the step is done."""
    lines = [
        on_one_line(_title(found)),
        "",
        _WORDS[found.order],
        *(f"  {on_one_line(each)}" for each in found.reasons),
        "",
    ]
    if found.fix:
        lines.append(f"Fix: {found.fix}")
    for number, step in enumerate(found.steps, 1):
        lines.append(f"{number}. {_where(step)}{on_one_line(step.text)}")
        lines.append(f"   done when this exits with 0: {on_one_line(step.command)}")
    return "\n".join(lines).rstrip()


def render_markdown(found: Rollout) -> str:
    """Return the same as a checklist."""
    return "\n".join(_markdown(found)).rstrip()


def _markdown(found: Rollout) -> Iterator[str]:
    yield f"### {plain(_title(found))}"
    yield ""
    yield bold(_WORDS[found.order])
    yield ""
    yield from (f"* {plain(each)}" for each in found.reasons)
    yield ""
    if found.fix:
        yield prose(f"Fix: {found.fix}")
    for step in found.steps:
        where = f"{plain(step.target)}: " if step.target else ""
        yield f"- [ ] {where}{prose(step.text)}. Done when this exits with 0:"
        yield ""
        # As code within a line it would hold characters that nobody sees, and that a shell would get.
        yield from (f"      {line}" for line in fenced([on_one_line(step.command)], "sh").split("\n"))
        yield ""


def _title(found: Rollout) -> str:
    before = "" if found.latest is None else f"version {found.latest} to "
    rebased = "" if found.rebased is None else f" ({found.rebased} after a rebase merge)"
    where = f" on {', '.join(found.strategy_on)}" if found.strategy_on else ""
    return f"{found.topic}: {before}{versions([found.version])}{rebased}, {found.strategy}{where}"


def _where(step: RolloutStep) -> str:
    return f"{on_one_line(step.target)}: " if step.target else ""


# A diff of revisions as text


_LONGEST_DOC: Final = 200


def render_revision_text(revision: Revision, *, color: bool = False) -> str:
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
            for depth, sign, line in _revision_lines(subject)
        ]
        blocks.append(
            "\n".join([f"{kind_of(subject.name)} {paint(str(subject.name), 'bold', color=color)}{former}", *lines])
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


def _revision_lines(subject: Subject) -> Iterator[tuple[int, str, str]]:
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


# What changed between two states of the declarations as one JSON object;
# `schemas/revision.schema.json` describes it.


REVISION_FORMAT_VERSION = 1


def render_revision_json(revision: Revision) -> str:
    """Return all facts; keys are not renamed within a format version."""
    return json_text(
        {
            "format_version": REVISION_FORMAT_VERSION,
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
            {"key": key, "before": before or None, "after": after or None} for key, before, after in subject.said
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


# What changed between two states of the declarations, as Markdown for release notes: what breaks
# readers first.


def render_changelog(revision: Revision) -> str:
    """Return a heading, what breaks readers, and a section for each namespace with its topics."""
    authors = f" by {', '.join(map(plain, revision.authors))}" if revision.authors else ""
    blocks = [f"# Schemas: {plain(revision.before)} to {plain(revision.after)}", f"{plain(total(revision))}{authors}."]
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
            blocks.append("\n".join([*own, *_changelog_lines(subject, revision)]))
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


def _changelog_lines(subject: Subject, revision: Revision) -> Iterator[str]:
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
            return f"documented {name}: {plain(' '.join(part.after.split()))}" if part.after else f"undocumented {name}"
    return f"{part.kind} {name}: {code(part.before)}, now {code(part.after)}"
