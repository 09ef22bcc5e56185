"""The record of a target's numbers file: accepted drift, and the version in Git that each number of the target stands for.

The two differ if something other than `apply` took a number: somebody's upload, or a deletion. The target's numbers file, read
from the approved ref, records the difference, and other drift that is accepted. Whatever reads messages of a target uses
`target_versions`, never Git's numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from schemactl import formats
from schemactl.comparison.changes import Contents, last_tombstone
from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion, live

# Accepted drift


@dataclass(frozen=True, slots=True)
class AcceptanceReason:
    """Why something is accepted.

    Attributes:
        reason: in somebody's words.
        owner: who answers for it; "": not said.
        accepted: the day (UTC) of the decision.
        until: the last day (UTC) on which it counts; None: it has no end.
    """

    reason: str = ""
    owner: str = ""
    accepted: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        """Return it as one clause: `uploaded by hand; team-orders, 2026-11-22, until 2027-01-31`."""
        who = ", ".join(filter(None, (self.owner, str(self.accepted or ""))))
        until = f", until {self.until}" if self.until else ""
        return "; ".join(filter(None, (self.reason, who))) + until


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The state of one namespace or topic that is accepted, exactly.

    Attributes:
        unmanaged: it is in the registry, or has a schema there, and Git does not declare that.
        undeclarable: the same for a schema type that no file can declare: the type's name; else "".
        fingerprint: of the schemas that the registry holds of such a topic.
        policies: values that Git no longer declares, and that no `apply` resets.
        decision: why.
        source: its place in the numbers file.
    """

    unmanaged: bool = False
    undeclarable: str = ""
    fingerprint: str = ""
    policies: Policies = field(default_factory=Policies)
    decision: AcceptanceReason = field(default_factory=AcceptanceReason)
    source: Source | None = field(default=None, compare=False)

    @property
    def parts(self) -> frozenset[tuple[str, str]]:
        """The accepted policies and states by name, each with its accepted value."""
        found = {(policy, str(value)) for policy, value in self.policies.managed().items()}
        if self.unmanaged or self.undeclarable:
            found.add((self.kind, self.fingerprint))
        return frozenset(found)

    @property
    def kind(self) -> str:
        """Its key in the file, apart from policies."""
        return "undeclarable" if self.undeclarable else "unmanaged"

    def counts(self, today: date) -> bool:
        """Whether it has not expired."""
        return self.decision.until is None or today <= self.decision.until


def joined(acceptances: Iterable[Acceptance], decision: AcceptanceReason) -> Acceptance:
    """Return these acceptances of one name as one, with `decision`."""
    found = Acceptance(decision=decision)
    for each in acceptances:
        found = replace(
            found,
            unmanaged=found.unmanaged or each.unmanaged,
            undeclarable=found.undeclarable or each.undeclarable,
            fingerprint=found.fingerprint or each.fingerprint,
            policies=found.policies.overlaid(each.policies),
        )
    return found


# Version numbers


@dataclass(frozen=True, slots=True)
class NumberEntry:
    """The recorded meaning of one number of a target.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version with the same content; None if Git has none, or the content is unknown.
        foreign: the definition of a version that Git does not have.
        deleted: the registry no longer shows it; with `git` or `foreign`, its messages can be read all the same.
        reason: why this was accepted.
        accepted: the day (UTC).
        owner: who answers for it.
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
        """Why it is accepted; it never expires, since messages with the number may be read at any time."""
        return AcceptanceReason(self.reason, self.owner, self.accepted)


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """The record of one topic, by number, and its place in the numbers file."""

    entries: Mapping[int, NumberEntry] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TargetNumbers:
    """The content of a numbers file.

    Attributes:
        target: the target's name.
        path: the file's.
        topics: those whose numbers it records, by their declared names.
        accepted: what else is accepted of namespaces and topics, likewise.
    """

    target: str
    path: str
    topics: Mapping[TopicName, TopicNumbers] = field(default_factory=dict)
    accepted: Mapping[NamespaceName | TopicName, Acceptance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """The schema with which messages of one number of a target are read.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version that it stands for, if any.
        info: the definition that wrote the messages; None: they are rejected.
        commit: the one that brought `git`.
        unreadable: why messages are rejected, a clause without full stop; "" if they are not.
        deleted: the registry no longer shows the number: nothing new is written with it.
    """

    number: int
    git: SchemaVersion | None
    info: SchemaInfo | None
    commit: Commit | None = None
    unreadable: str = ""
    deleted: bool = False


def target_versions(topic: Topic, numbers: TargetNumbers | None) -> tuple[TargetVersion, ...]:
    """Return the meaning of each number of the target, in order of number; without a record, they are Git's.

    Below the highest recorded number, an unrecorded one is Git's; if Git has none, its messages are rejected. Above it follow,
    in order, Git's versions of the newest generation that have no number yet; a deleted number does not count, because the
    target gets its content again under a new number. A foreign version that was approved since is Git's version.
    """
    recorded = numbers.topics.get(topic.name) if numbers else None
    return meanings(topic.versions, recorded, numbers.target if numbers else "")


def meanings(git: Sequence[SchemaVersion], recorded: TopicNumbers | None, target: str) -> tuple[TargetVersion, ...]:
    """Return the same from Git's versions of a topic and its record for `target`."""
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
    rest = [version for version in live(git) if version.number not in stood_for]
    ended = last_tombstone(git)
    if ended >= 0 and ended not in stood_for:
        # The generation begins there, with the tombstones that `plan` has take the numbers up to Git's, or one.
        rest = [known[ended]] * max(1, ended + 1 - first) + rest
    return (*found, *(_of_git(number, version) for number, version in enumerate(rest, first)))


def target_number(versions: Sequence[TargetVersion], git: int) -> int | None:
    """Return the target's newest number for Git's version `git`, preferably one that is not deleted; None if there is none.

    `versions` are those of one topic, from `target_versions`.
    """
    readable = [each for each in versions if each.info and each.git and each.git.number == git]
    return max(readable, key=lambda each: (not each.deleted, each.number)).number if readable else None


def records_other_numbers(recorded: TopicNumbers | None) -> bool:
    """Return whether a number is recorded as anything but Git's version of that number."""
    entries = recorded.entries if recorded else {}
    return any(entry.git != number for number, entry in entries.items())


def _of_git(number: int, version: SchemaVersion) -> TargetVersion:
    unreadable = "" if version.info else f"Git's number {version.number} is a tombstone: no message has it"
    return TargetVersion(number, version, version.info, version.commit, unreadable)


def _recorded(entry: NumberEntry, known: dict[int, SchemaVersion], contents: Contents, target: str) -> TargetVersion:
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
    return TargetVersion(entry.number, git, None if why else info, git.commit if git else None, why, entry.deleted)


def unusable(info: SchemaInfo) -> str:
    """Return why messages cannot be read with a foreign definition; "" if they can."""
    if formats.spec(info).payload == "unknown":
        return f"messages of the type {info.type.name} cannot be decoded"
    try:
        formats.identity(info)
        formats.spec(info).require_newest(info)
    except InvalidSchema as error:
        return error.what
    return ""
