"""Map the version numbers of a target to Git's versions, and represent accepted drift: the content of a numbers file.

The numbers differ if something other than `apply` took a number, such as a manual upload or a deletion. The target's numbers file
on the approved ref records the difference, and other accepted drift. All code that decodes messages of a target uses
`target_versions`, never Git's numbers directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

from schemactl import formats
from schemactl.comparison.changes import VersionIndex, last_tombstone
from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion, get_live_versions

# Accepted drift


@dataclass(frozen=True, slots=True)
class AcceptanceReason:
    """The reason for an acceptance.

    Attributes:
        reason: the text of the reason.
        owner: the person or team that owns the decision, or "".
        accepted: the day (UTC) of the decision.
        until: the last day (UTC) of the acceptance, or None if it does not expire.
    """

    reason: str = ""
    owner: str = ""
    accepted: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        """Format the reason as one clause: `uploaded by hand; team-orders, 2026-11-22, until 2027-01-31`."""
        decision = ", ".join(filter(None, (self.owner, str(self.accepted or ""))))
        until = f", until {self.until}" if self.until else ""
        return "; ".join(filter(None, (self.reason, decision))) + until


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The accepted state of one namespace or topic, or of the brokers. Any other state is drift again.

    Attributes:
        unmanaged: whether it, or its schema, is registered although Git does not declare it.
        undeclarable: the name of a registered schema type that no file can declare, or "".
        schemas_digest: the digest of the registered schemas of an unmanaged or undeclarable topic, the `fingerprint` in the file.
        policies: the values that Git no longer declares, and that `apply` does not reset; of the brokers, values that differ from the
            project file.
        checkers: of the brokers, whether each checker that differs from the project file is listed, by class name.
        decision: the reason.
        source: its place in the numbers file.
    """

    unmanaged: bool = False
    undeclarable: str = ""
    schemas_digest: str = ""
    policies: Policies = field(default_factory=Policies)
    checkers: Mapping[str, bool] = field(default_factory=dict, hash=False)
    decision: AcceptanceReason = field(default_factory=AcceptanceReason)
    source: Source | None = field(default=None, compare=False)

    @property
    def parts(self) -> frozenset[tuple[str, str]]:
        """The accepted policies and states by name, each with its accepted value."""
        parts = {(part, str(value)) for part, value in {**self.policies.managed(), **self.checkers}.items()}
        if self.unmanaged or self.undeclarable:
            parts.add((self.kind, self.schemas_digest))
        return frozenset(parts)

    @property
    def kind(self) -> str:
        """The key in the file of an acceptance that is not about policies."""
        return "undeclarable" if self.undeclarable else "unmanaged"

    def is_valid_on(self, today: date) -> bool:
        """Return whether it has not expired."""
        return self.decision.until is None or today <= self.decision.until


def join_acceptances(acceptances: Iterable[Acceptance], decision: AcceptanceReason) -> Acceptance:
    """Join the acceptances of one namespace or topic, with `decision` as the reason."""
    result = Acceptance(decision=decision)
    for acceptance in acceptances:
        result = replace(
            result,
            unmanaged=result.unmanaged or acceptance.unmanaged,
            undeclarable=result.undeclarable or acceptance.undeclarable,
            schemas_digest=result.schemas_digest or acceptance.schemas_digest,
            policies=result.policies.override_with(acceptance.policies),
        )
    return result


# Version numbers

MAX_NUMBER: Final = 100_000
"""The highest recorded number: schemactl reads no more versions of a topic from a registry."""


@dataclass(frozen=True, slots=True)
class NumberEntry:
    """The recorded meaning of one number of a target.

    Attributes:
        number: the target's number, which messages contain.
        git: the number of Git's version with the same content, or None if Git lacks it or the content is unknown.
        foreign: the definition of a version that Git does not have.
        deleted: whether the registry no longer shows it; with `git` or `foreign`, its messages can still be decoded.
        reason: the reason for the acceptance.
        accepted: the day (UTC) of the acceptance.
        owner: the person or team that owns the decision.
        source: its place in the numbers file.
        path: the file with the foreign definition, relative to the repository's top level.
    """

    number: int
    git: int | None = None
    foreign: SchemaInfo | None = None
    deleted: bool = False
    reason: str = ""
    accepted: date | None = None
    owner: str = ""
    source: Source | None = field(default=None, compare=False)
    path: str | None = None

    @property
    def decision(self) -> AcceptanceReason:
        """The reason for the acceptance, which never expires because messages with the number may be read at any time."""
        return AcceptanceReason(self.reason, self.owner, self.accepted)


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """The entries of one topic by number, and their place in the numbers file."""

    entries: Mapping[int, NumberEntry] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TargetNumbers:
    """The content of a numbers file.

    Attributes:
        target: the target's name.
        path: the path of the file.
        topics: the recorded numbers, by the declared name of the topic.
        accepted: the other accepted drift, by the declared name of the namespace or topic.
        brokers: the accepted settings of the brokers, or None.
    """

    target: str
    path: str
    topics: Mapping[TopicName, TopicNumbers] = field(default_factory=dict)
    accepted: Mapping[NamespaceName | TopicName, Acceptance] = field(default_factory=dict)
    brokers: Acceptance | None = None


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """The schema that decodes messages with one number of a target.

    Attributes:
        number: the target's number, which messages contain.
        git: Git's version with this content, or None.
        info: the definition of the writer, or None if messages are rejected.
        commit: the commit that added `git`.
        unreadable: the reason why messages are rejected, a clause without a full stop, or "".
        deleted: whether the registry no longer shows the number, so that no new message has it.
    """

    number: int
    git: SchemaVersion | None
    info: SchemaInfo | None
    commit: Commit | None = None
    unreadable: str = ""
    deleted: bool = False


def target_versions(topic: Topic, numbers: TargetNumbers | None) -> tuple[TargetVersion, ...]:
    """Return the meaning of each number of the target, in order of number. Without a record, the numbers are Git's.

    An unrecorded number below the highest recorded one is Git's number. Git's versions of the newest generation without a number
    follow after the highest recorded number, in order. A deleted number does not count, because the target gets its content again
    with a new number. A foreign version that was approved later is Git's version.
    """
    recorded = numbers.topics.get(topic.name) if numbers else None
    return find_meanings(topic.versions, recorded, numbers.target if numbers else "")


def find_meanings(
    git: Sequence[SchemaVersion], recorded: TopicNumbers | None, target: str
) -> tuple[TargetVersion, ...]:
    """Return the result of `target_versions` from Git's versions of a topic and its record for `target`."""
    if recorded is None or not recorded.entries:
        return tuple(_from_git(version.number, version) for version in git)
    git_versions = {version.number: version for version in git}
    contents = VersionIndex(git)
    first = max(recorded.entries) + 1
    unrecorded = {number for number in git_versions if number < first}
    versions = [
        _from_entry(entry, git_versions, contents, target)
        if (entry := recorded.entries.get(number))
        else _from_git(number, git_versions[number])
        for number in sorted(unrecorded | recorded.entries.keys())
    ]
    numbered = {version.git.number for version in versions if version.git and not version.deleted}
    remaining = [version for version in get_live_versions(git) if version.number not in numbered]
    last = last_tombstone(git)
    if last >= 0 and last not in numbered:
        # The generation starts with the tombstones that `plan` adds: as many as needed to reach Git's number, at least one.
        remaining = [git_versions[last]] * max(1, last + 1 - first) + remaining
    return (*versions, *(_from_git(number, version) for number, version in enumerate(remaining, first)))


def target_number(versions: Sequence[TargetVersion], git: int) -> int | None:
    """Return the target's newest number for Git's version `git`, preferably a number that is not deleted, or None.

    `versions` is the result of `target_versions` for one topic.
    """
    readable = [version for version in versions if version.info and version.git and version.git.number == git]
    return max(readable, key=lambda version: (not version.deleted, version.number)).number if readable else None


def records_other_numbers(recorded: TopicNumbers | None) -> bool:
    """Return whether a recorded number differs from Git's number of its version."""
    entries = recorded.entries if recorded else {}
    return any(entry.git != number for number, entry in entries.items())


def _from_git(number: int, version: SchemaVersion) -> TargetVersion:
    unreadable = "" if version.info else f"Git's number {version.number} is a tombstone: no message has it"
    return TargetVersion(number, version, version.info, version.commit, unreadable)


def _from_entry(
    entry: NumberEntry, git_versions: dict[int, SchemaVersion], contents: VersionIndex, target: str
) -> TargetVersion:
    git = git_versions.get(entry.git) if entry.git is not None else None
    if entry.foreign:
        git = contents.find(entry.foreign)
    info, reason = (git.info if git else entry.foreign), ""
    if entry.git is not None and git is None:
        reason = f"is recorded as Git's version {entry.git}, which the approved history does not have"
    elif info is None:
        reason = "was deleted, and its definition was not recorded"
    elif git is None and (problem := find_decoding_problem(info)):
        reason = f"is foreign, and its recorded definition cannot be used: {problem}"
    if reason:
        reason = f"number {entry.number} of {target} {reason}" + (f" ({entry.reason})" if entry.reason else "")
    return TargetVersion(
        entry.number, git, None if reason else info, git.commit if git else None, reason, entry.deleted
    )


def find_decoding_problem(info: SchemaInfo) -> str:
    """Return the reason why a foreign definition cannot decode messages, or "" if it can."""
    if formats.spec(info).payload == "unknown":
        return f"messages of the type {info.type.name} cannot be decoded"
    try:
        formats.identity(info)
        formats.spec(info).require_newest(info)
    except InvalidSchema as error:
        return error.message
    return ""
