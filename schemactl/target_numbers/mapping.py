"""From a record to the meaning of every number of a target, and back."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl import formats
from schemactl.changes import Contents
from schemactl.errors import InvalidSchema
from schemactl.model import CLIENT_SIDE, SchemaInfo, SchemaType, SchemaVersion, Topic
from schemactl.target_numbers.values import Entry, TargetNumbers, TargetVersion, TopicNumbers


def target_versions(topic: Topic, numbers: TargetNumbers | None) -> tuple[TargetVersion, ...]:
    """What each number of the target stands for, in order of number.

    A number that is not listed and lies below the highest listed one is Git's own; where Git has none, nothing stands for it, and
    its messages are rejected. Above the highest listed, Git's remaining
    versions follow in order: those that no number up to there stands for. A number that was deleted does not count there,
    because the target gets its content once more under a new one. What was foreign when it was recorded, and was approved
    since, stands for Git's version.

    Args:
        topic: as Git declares it, with its versions.
        numbers: the target's record; None: its numbers are Git's.
    """
    recorded = numbers.topics.get(topic.name) if numbers else None
    return meanings(topic.versions, recorded, numbers.target if numbers else "")


def meanings(
    git: Sequence[SchemaVersion], recorded: TopicNumbers | None, target: str
) -> tuple[TargetVersion, ...]:
    """The same of one topic, whatever it is called: of Git's versions and what is recorded for `target`."""
    if recorded is None or not recorded.entries:
        return tuple(_of_git(version.number, version) for version in git)
    known = {version.number: version for version in git}
    contents = Contents(git)
    first = max(recorded.entries) + 1
    own = {number for number in known if number < first}
    found = [
        _recorded(entry, known, contents, target)
        if (entry := recorded.entries.get(number))
        else _of_git(number, known[number])
        for number in sorted(own | recorded.entries.keys())
    ]
    stood_for = {each.git.number for each in found if each.git and not each.deleted}
    rest = [version for version in git if version.number not in stood_for]
    return (*found, *(_of_git(number, version) for number, version in enumerate(rest, first)))


def git_number(versions: Sequence[TargetVersion], number: int) -> int | None:
    """Git's number of what the target's `number` stands for; None: it stands for nothing of Git's.

    Args:
        versions: of one topic, from `target_versions`.
        number: the target's.
    """
    found = next((each for each in versions if each.number == number), None)
    return found.git.number if found and found.git else None


def target_number(versions: Sequence[TargetVersion], git: int) -> int | None:
    """The target's number for Git's version `git`: the newest that can be read and is not deleted, else the newest that can be read.

    None: no number of the target stands for it.

    Args:
        versions: of one topic, from `target_versions`.
        git: Git's number.
    """
    readable = [each for each in versions if each.info and each.git and each.git.number == git]
    return max(readable, key=lambda each: (not each.deleted, each.number)).number if readable else None


def records_other_numbers(recorded: TopicNumbers | None) -> bool:
    """Whether some number is recorded to stand for something else than Git's version of that number."""
    entries = recorded.entries if recorded else {}
    return any(entry.git != number for number, entry in entries.items())


def _of_git(number: int, version: SchemaVersion) -> TargetVersion:
    unreadable = "" if version.info else f"Git's version {version.number} has no definition"
    return TargetVersion(number, version, version.info, version.commit, unreadable)


def _recorded(
    entry: Entry, known: dict[int, SchemaVersion], contents: Contents, target: str
) -> TargetVersion:
    git = known.get(entry.git) if entry.git is not None else None
    if entry.foreign:
        git = contents.find(entry.foreign)
    info, why = (git.info if git else entry.foreign), ""
    if entry.git is not None and git is None:
        why = f"is recorded as Git's version {entry.git}, which the approved history does not have"
    elif info is None:
        why = "was deleted, and nobody recorded its definition"
    elif git is None and (wrong := unusable(info)):
        why = f"is foreign, and its recorded definition cannot be used: {wrong}"
    if why:
        why = f"number {entry.number} of {target} {why}" + (f" ({entry.reason})" if entry.reason else "")
    return TargetVersion(
        entry.number, git, None if why else info, git.commit if git else None, why, entry.deleted
    )


def unusable(info: SchemaInfo) -> str:
    """What is wrong with a foreign definition; "": messages can be read with it."""
    if info.type in CLIENT_SIDE or info.type is SchemaType.EXTERNAL:
        return f"messages of the type {info.type.name} cannot be decoded"
    try:
        formats.identity(info)
        formats.require_newest(info)
    except InvalidSchema as error:
        return error.what
    return ""
