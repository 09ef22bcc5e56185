"""Find the version numbers of a registry that are not Git's, by content.

Numbers differ if something other than `apply` took one: a producer that registered its schema, or a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from schemactl.comparison.changes import Generations, VersionIndex, content_identity, get_upload_commit, last_tombstone
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import join_first
from schemactl.core.json_values import make_view
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.declare.target_numbers import TargetNumbers, TargetVersion, TopicNumbers, find_meanings
from schemactl.formats import spec

MismatchState = Literal["readable", "deleted", "tombstone", "unexplained"]

_DESCRIPTIONS = {
    "readable": "is not known to Git",
    "deleted": "is not known to Git",
    "tombstone": "is deleted",
    "unexplained": "is from a commit that the approved history does not have",
}


@dataclass(frozen=True, slots=True)
class NumberMismatch:
    """A number of a registry that does not mean Git's version of that number, or is recorded as something else.

    Attributes:
        registry: the number, as a message carries it.
        git: Git's version with the same content, or None if Git does not have it or the content is unknown.
        state: `deleted`: before a tombstone, and still shown; `tombstone`: not shown; `unexplained`: uploaded by an `apply`
            from a commit that the approved history does not have.
        recorded: whether the target's record has this meaning, or the earlier meaning of the number.
    """

    registry: int
    git: int | None
    state: MismatchState
    recorded: bool

    def __str__(self) -> str:
        if self.git == self.registry:
            return f"v{self.registry} is Git's v{self.git}, and recorded as something else"
        if self.git is not None:
            return f"v{self.registry} is Git's v{self.git}"
        return f"v{self.registry} {_DESCRIPTIONS[self.state]}"


@dataclass(frozen=True, slots=True)
class TopicMismatches:
    """A topic with numbers that are not Git's."""

    name: TopicName
    numbers: tuple[NumberMismatch, ...]

    @property
    def recorded(self) -> bool:
        """Whether the record equals the numbers in the registry."""
        return all(number.recorded for number in self.numbers)

    @property
    def unexplained(self) -> bool:
        """Whether the approved history lacks something that an `apply` uploaded: it must be restored, not recorded."""
        return any(number.state == "unexplained" and not number.recorded for number in self.numbers)

    @property
    def contradicted(self) -> bool:
        """Whether a number means Git's version, but is recorded as something else."""
        return any(number.git == number.registry and not number.recorded for number in self.numbers)

    def __str__(self) -> str:
        """List the numbers that are not recorded, or all of them."""
        return join_first([number for number in self.numbers if not number.recorded] or self.numbers, 8)


def find_number_mismatches(
    git: Catalog, registry: Catalog, numbers: TargetNumbers | None
) -> tuple[TopicMismatches, ...]:
    """Return the topics of `git` with numbers in the registry that are not Git's, sorted by name.

    `numbers` is the target's record; all three use the target's names.
    """
    topics = []
    for name, topic in sorted(git.topics.items()):
        mismatches = find_topic_mismatches(
            topic,
            registry.versions(name),
            numbers.topics.get(name) if numbers else None,
            twin_versions=git.twin_versions(name),
        )
        if mismatches.numbers:
            topics.append(mismatches)
    return tuple(topics)


def find_lost_numbers(
    git: Catalog, registry: Catalog, numbers: TargetNumbers | None
) -> dict[TopicName, tuple[int, ...]]:
    """Return, by topic, the recorded numbers after the end of the registry's list, whose schemas were therefore lost.

    Only topics with a declared schema count: a new upload would take another version's number. All three use the target's names.
    """
    lost_by_topic = {}
    for name, recorded in numbers.topics.items() if numbers else ():
        topic, entries = git.topics.get(name), registry.versions(name)
        if topic and topic.schema and recorded.entries:
            taken = get_next_number(entries)
            lost_by_topic[name] = tuple(range(taken, max(recorded.entries) + 1))
    return {name: lost for name, lost in lost_by_topic.items() if lost}


def find_topic_mismatches(
    topic: Topic,
    entries: Sequence[SchemaVersion],
    recorded: TopicNumbers | None,
    *,
    twin_versions: Sequence[SchemaVersion] = (),
    spellings: bool = False,
) -> TopicMismatches:
    """Return the numbers of `entries`, a registry's list of the topic, that are not Git's.

    Args:
        topic: the topic with Git's versions; without versions it has no readers, and nothing is returned.
        entries: the list, in order of number, with tombstones.
        recorded: the target's record of the topic.
        twin_versions: the versions of the topics of the other domains, which share the list.
        spellings: include numbers that need not be recorded (see `find_other_spellings`).
    """
    if not topic.versions:
        return TopicMismatches(topic.name, ())
    recorded_entries = recorded.entries if recorded else {}
    meanings = {version.number: version for version in find_meanings(topic.versions, recorded, "")}
    git, twins, ended = Generations(topic.versions), VersionIndex(twin_versions), last_tombstone(topic.versions)
    live = {entry.number for entry in get_live_versions(entries)}
    last_deleted = max((number for number, entry in recorded_entries.items() if entry.deleted), default=-1)
    not_recorded = () if spellings else find_other_spellings(topic, entries, [*meanings.values()])
    spelled = {version.number for version in not_recorded}

    def is_recorded(entry: SchemaVersion, info: SchemaInfo) -> bool:
        """Return whether, by the record, messages of the number are read with its content, or are rejected as they should be."""
        listed, is_live = recorded_entries.get(entry.number), entry.number in live
        if listed and listed.deleted and is_live:
            return False
        if listed and listed.foreign:
            return content_identity(listed.foreign) == content_identity(info)
        meaning = meanings.get(entry.number)
        if meaning is None:
            return False
        if meaning.git and meaning.git.info:
            version = git.find(entry)
            return version is not None and version.number == meaning.git.number
        # For a number that is gone, it is enough that its messages are rejected.
        return listed is not None and not is_live

    mismatches = []
    for entry in entries:
        if entry.number <= ended and entry.number not in live and entry.number not in recorded_entries:
            continue  # it belongs to an earlier generation in Git as well, and is no longer readable
        if entry.info is None:
            # The deletion of a schema that Git no longer declares is expected.
            if topic.schema is not None or entry.number in recorded_entries:
                mismatches.append(NumberMismatch(entry.number, None, "tombstone", entry.number <= last_deleted))
            continue
        version, meaning, has_record = git.find(entry), meanings.get(entry.number), is_recorded(entry, entry.info)
        is_own = has_record and version is not None and version.number == entry.number
        is_the_twins = (
            version is None and not has_record and not (meaning and meaning.info) and twins.find(entry.info) is not None
        )
        if is_own or is_the_twins or entry.number in spelled:
            continue
        state: MismatchState = "readable" if entry.number in live else "deleted"
        if version is None and get_upload_commit(entry.info):
            state = "unexplained"
        mismatches.append(NumberMismatch(entry.number, version.number if version else None, state, has_record))
    return TopicMismatches(topic.name, tuple(mismatches))


def find_other_spellings(
    topic: Topic, entries: Sequence[SchemaVersion], meant: Sequence[TargetVersion]
) -> tuple[TargetVersion, ...]:
    """Return the meanings of the numbers after the last of `meant` whose definition is a primitive type in the spelling of another client.

    A broker takes the spellings of one STRING for different versions. If Git has no version with such a number, messages with it cannot be
    misread, and it need not be recorded. `entries` is the registry's list of `topic`.
    """
    spelled_entries = [entry for entry in get_live_versions(entries) if entry.info and spec(entry.info).has_spellings]
    if not spelled_entries:
        return ()
    git = VersionIndex(topic.versions)
    pairs = [(entry, git.find(entry.info)) for entry in spelled_entries if entry.info]
    in_place = {entry.number for entry, version in pairs if version and version.number == entry.number}
    highest = max((version.number for version in meant), default=-1)
    return tuple(
        TargetVersion(entry.number, version, version.info, version.commit)
        for entry, version in pairs
        if version
        and version.info
        and spec(version.info).has_spellings
        and version.number in in_place
        and entry.number > highest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchView:
    """A `NumberMismatch` with its topic in JSON, for plans, drift reports and `log`."""

    topic: TopicName
    registry: int
    git: int | None
    state: MismatchState
    recorded: bool


def list_mismatch_views(topic_mismatches: Iterable[TopicMismatches]) -> tuple[MismatchView, ...]:
    """Return every number that is not Git's."""
    return tuple(
        make_view(MismatchView, number, topic=topic.name) for topic in topic_mismatches for number in topic.numbers
    )
