"""From a record to the meaning of every number of a target, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from schemactl import formats
from schemactl.changes import Contents
from schemactl.errors import InvalidSchema, Source
from schemactl.model import Commit, SchemaInfo, SchemaVersion, Topic, TopicName


@dataclass(frozen=True, slots=True)
class NumberEntry:
    """What one number of a target is recorded to stand for.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version with the same content; None: Git has none, or nobody knows the content.
        foreign: the definition of a version that Git does not have, with the place of its file.
        deleted: the registry no longer shows it. With `git` or `foreign` its messages can be read all the same.
        reason: why that was accepted, in somebody's words.
        accepted: the day (UTC).
        source: its place in the numbers file.
        path: of the file with the foreign definition, relative to the repository's top level.
    """

    number: int
    git: int | None = None
    foreign: SchemaInfo | None = None
    deleted: bool = False
    reason: str = ""
    accepted: date | None = None
    source: Source | None = field(default=None, compare=False)
    path: str | None = None


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """What is recorded of one topic, by number, and its place in the numbers file."""

    entries: Mapping[int, NumberEntry] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TargetNumbers:
    """What a numbers file records.

    Attributes:
        target: the target's name.
        path: of the file, relative to the repository's top level.
        topics: by the names that Git declares, never the target's own.
    """

    target: str
    path: str
    topics: Mapping[TopicName, TopicNumbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """What messages of one number of a target are read with.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version that it stands for; None: none.
        info: the definition that wrote the messages; None: they are rejected.
        commit: the one that brought `git`.
        unreadable: why messages are rejected, a clause without full stop; "": they are not.
        deleted: the registry no longer shows the number: nothing new is written with it.
    """

    number: int
    git: SchemaVersion | None
    info: SchemaInfo | None
    commit: Commit | None = None
    unreadable: str = ""
    deleted: bool = False


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
    entry: NumberEntry, known: dict[int, SchemaVersion], contents: Contents, target: str
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
    if formats.spec(info).payload == "unknown":
        return f"messages of the type {info.type.name} cannot be decoded"
    try:
        formats.identity(info)
        formats.require_newest(info)
    except InvalidSchema as error:
        return error.what
    return ""
