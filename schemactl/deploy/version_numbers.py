"""Pair a registry's version numbers with Git's by content, and find different numbers; also as the JSON that `rebuild` reads.

Numbers differ if something other than `apply` took one: a producer that registered its schema, or a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemactl.comparison.changes import (
    Generations,
    VersionIndex,
    content_identity,
    get_upload_commit,
    is_upload_of,
    last_tombstone,
    make_upload,
)
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import SchemactlError, join_first
from schemactl.core.json_values import Json, commit_value, read_document, read_schema, schema_value
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.declare.target_numbers import TargetNumbers, TargetVersion, TopicNumbers, meanings
from schemactl.formats import spec

FORMAT_VERSION = 1
"""The format of files with version numbers. A change that readers must know of raises it; new keys alone do not."""

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
    comparison = _ListAndRecord(topic, entries, recorded, twin_versions)
    return TopicMismatches(topic.name, tuple(comparison.find_number_mismatches(spellings=spellings)))


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


class _ListAndRecord:
    """The comparison of one topic's entries with its record."""

    def __init__(
        self,
        topic: Topic,
        entries: Sequence[SchemaVersion],
        recorded: TopicNumbers | None,
        twin_versions: Sequence[SchemaVersion],
    ) -> None:
        self.topic = topic
        self.entries = entries
        self.recorded = recorded.entries if recorded else {}
        self.by_record = {version.number: version for version in meanings(topic.versions, recorded, "")}
        self.git = Generations(topic.versions)
        self.ended = last_tombstone(topic.versions)
        self.same_names_elsewhere = VersionIndex(twin_versions)
        self.live = {entry.number for entry in get_live_versions(entries)}

    def find_number_mismatches(self, *, spellings: bool) -> Iterator[NumberMismatch]:
        deleted = [number for number, entry in self.recorded.items() if entry.deleted]
        not_recorded = () if spellings else find_other_spellings(self.topic, self.entries, [*self.by_record.values()])
        spelled = {version.number for version in not_recorded}
        for entry in self.entries:
            if entry.number <= self.ended and entry.number not in self.live and entry.number not in self.recorded:
                continue  # it belongs to an earlier generation in Git as well, and is no longer readable
            if entry.info is None:
                # The deletion of a schema that Git no longer declares is expected.
                if self.topic.schema is not None or entry.number in self.recorded:
                    is_recorded = entry.number <= max(deleted, default=-1)
                    yield NumberMismatch(entry.number, None, "tombstone", is_recorded)
                continue
            git = self.git.find(entry)
            recorded = self._is_recorded(entry, entry.info)
            is_own = recorded and git is not None and git.number == entry.number
            meaning = self.by_record.get(entry.number)
            is_the_twins = (
                git is None
                and not recorded
                and not (meaning and meaning.info)
                and self.same_names_elsewhere.find(entry.info) is not None
            )
            if is_own or is_the_twins or entry.number in spelled:
                continue
            state: MismatchState = "readable" if entry.number in self.live else "deleted"
            if git is None and get_upload_commit(entry.info):
                state = "unexplained"
            yield NumberMismatch(entry.number, git.number if git else None, state, recorded)

    def _is_recorded(self, entry: SchemaVersion, info: SchemaInfo) -> bool:
        """Return whether, by the record, messages of the number are read with its content, or are rejected as they should be."""
        listed = self.recorded.get(entry.number)
        is_live = entry.number in self.live
        if listed and listed.deleted and is_live:
            return False
        if listed and listed.foreign:
            return content_identity(listed.foreign) == content_identity(info)
        meaning = self.by_record.get(entry.number)
        if meaning is None:
            return False
        if meaning.git and meaning.git.info:
            version = self.git.find(entry)
            return version is not None and version.number == meaning.git.number
        # For a number that is gone, it is enough that its messages are rejected.
        return listed is not None and not is_live


def mismatch_values(topic_mismatches: Iterable[TopicMismatches]) -> list[Json]:
    """Return every number that is not Git's as JSON, for plans, drift reports and `log`; keys are never renamed."""
    return [
        {
            "topic": str(topic.name),
            "registry": number.registry,
            "git": number.git,
            "state": number.state,
            "recorded": number.recorded,
        }
        for topic in topic_mismatches
        for number in topic.numbers
    ]


# Pairs of entries and versions, and their JSON


PairState = Literal["readable", "deleted", "tombstone", "missing"]


@dataclass(frozen=True, slots=True)
class NumberPair:
    """An entry of a topic's list in a registry, and Git's version with the same content; one of the two may be missing.

    Attributes:
        registry: the entry, or None if the registry has no readable entry with the content of `git`.
        git: the version, or None if the entry is a tombstone or Git does not know its content.
        readable: whether clients can read the entry: neither it nor a later entry is a tombstone.
    """

    registry: SchemaVersion | None
    git: SchemaVersion | None
    readable: bool = False

    @property
    def state(self) -> PairState:
        """The state of the entry: `deleted` if a tombstone came after it, `missing` if the registry does not have it."""
        if self.registry is None:
            return "missing"
        if self.registry.info is None:
            return "tombstone"
        return "readable" if self.readable else "deleted"

    @property
    def stamp(self) -> str | None:
        """The id of the commit from which an `apply` uploaded the entry; None if something else uploaded it."""
        return get_upload_commit(self.registry.info) if self.registry else None


def pair_up(*, git: Sequence[SchemaVersion], registry: Sequence[SchemaVersion]) -> tuple[NumberPair, ...]:
    """Return a pair for every entry of the registry's list in order, then for Git's versions that cannot be read there.

    A registry may hold a version twice: it compares bytes, Git compares meaning. Versions of earlier generations are left out.
    """
    generations = Generations(git)
    readable = {version.number for version in get_live_versions(registry)}
    pairs = [NumberPair(entry, generations.find(entry), entry.number in readable) for entry in registry]
    readable_versions = {pair.git.number for pair in pairs if pair.git and pair.readable}
    return (
        *pairs,
        *(NumberPair(None, version) for version in get_live_versions(git) if version.number not in readable_versions),
    )


def topic_values(*, git: Catalog, registry: Catalog) -> list[Json]:
    """Return every topic of both catalogs that has a version in one of them, sorted by name."""
    names = sorted(git.topics.keys() | registry.topics.keys())
    pairs = {name: pair_up(git=git.versions(name), registry=registry.versions(name)) for name in names}
    return [topic_value(name, topic_pairs) for name, topic_pairs in pairs.items() if topic_pairs]


def topic_value(name: TopicName, pairs: Iterable[NumberPair]) -> Json:
    """Return one topic's list as JSON."""
    return {"topic": str(name), "versions": [pair_value(pair) for pair in pairs]}


def pair_value(pair: NumberPair) -> Json:
    """Return one entry as JSON, with its `schema` unless Git can restore exactly what the registry holds."""
    entry, version = pair.registry, pair.git
    info = entry.info if entry else version.info if version else None
    value: Json = {
        "registry": entry.number if entry else None,
        "git": version.number if version else None,
        "state": pair.state,
        "type": info.type.name if info else None,
        "kind": (version.kind or None) if version else None,
        "time_ms": entry.timestamp_ms if entry else None,
        "commit": commit_value(version.commit) if version else None,
        "stamp": pair.stamp,
    }
    if entry and entry.info and not (version and is_upload_of(version, entry.info)):
        value["schema"] = schema_value(entry.info)
    return value


def read_lists(path: Path, *, target: str, git: Catalog) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Read each topic's list in the registry from a file of `apply --result` or `drift --format json`.

    Args:
        path: the path of the file.
        target: the target that the file must be for.
        git: the approved history, by the target's names, for contents that the file does not have.

    Raises:
        SchemactlError: if it is another file or for another target, or the history lacks a version that it refers to.
    """
    value = read_document(
        path,
        kind="a file with version numbers",
        keys={"target", "topics"},
        version=FORMAT_VERSION,
        fix="name a file that `schemactl apply --result` or `schemactl drift --format json` wrote",
    )
    if value["target"] != target:
        raise SchemactlError(
            f"{path} was written for the target {value['target']}, not for {target}",
            fix=f"name a file of {target}, or rebuild {value['target']}",
        )
    if value["topics"] is None:
        raise SchemactlError(
            f"{path} contains no version numbers, because the registry could not be read when the file was written",
            fix="name an older file; versions that were approved later are added as by `apply`",
        )
    return lists_of(value["topics"], path=path, git=git)


def lists_of(values: Iterable[Json], *, path: Path, git: Catalog) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Read the lists that `topic_value` wrote into the file at `path`; Git's versions get Git's content.

    Raises:
        SchemactlError: if the values are not such lists, or the history lacks a version that they refer to.
    """
    try:
        return {(name := TopicName.parse(value["topic"])): _read_list(name, value, git) for value in values}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemactlError(
            f"{path} does not have the format of version numbers that schemactl writes: {error!r}"
        ) from error


def _read_list(name: TopicName, value: Json, git: Catalog) -> tuple[NumberPair, ...]:
    versions_by_number = {version.number: version for version in git.versions(name)}
    pairs = [
        _read_pair(name, entry, versions_by_number) for entry in value["versions"] if entry["registry"] is not None
    ]
    taken = [pair.registry.number for pair in pairs if pair.registry]
    if taken != sorted(set(taken)):
        raise ValueError(f"the version numbers of {name} are not in ascending order")
    return tuple(pairs)


def _read_pair(name: TopicName, value: Json, versions_by_number: dict[int, SchemaVersion]) -> NumberPair:
    number, readable = int(value["registry"]), value["state"] == "readable"
    git = versions_by_number.get(value["git"]) if value["git"] is not None else None
    if git and (git.commit and git.commit.id) != (value["commit"] and value["commit"]["id"]):
        git = None
    info = read_schema(value.get("schema"))
    if readable and info is None:
        if git is None:
            raise SchemactlError(
                f"{name}: v{number} was Git's version {value['git']} of commit {(value['commit'] or {}).get('id', '?')[:9]}, "
                "which the approved history does not have as that version: it was rewritten, or this clone is behind",
                fix="git fetch --all; if the history was rewritten, make a branch at that commit, merge the "
                "current approved branch into it (`git merge --no-ff`), and push the result as the approved "
                "branch",
            )
        info = make_upload(git.load())
    if git and info and VersionIndex([git]).find(info) is None:
        raise SchemactlError(
            f"{name}: according to the list, v{number} is Git's version {git.number}, but the list has other content for it",
            fix="name a list that was not edited after schemactl wrote it",
        )
    return NumberPair(SchemaVersion(number, info, timestamp_ms=value["time_ms"]), git, readable)
