"""Pair the versions in a registry with Git's by content, and write and read the pairs as JSON, from which `rebuild` restores numbers.

The fields of `ListedTopic` and `ListedVersion` are the keys of the JSON, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from schemactl.comparison.changes import Generations, VersionIndex, get_upload_commit, is_upload_of, make_upload
from schemactl.core.catalog import Catalog
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import OPTIONAL, DefinitionView, from_json, read_document
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit, SchemaVersion, get_live_versions

FORMAT_VERSION = 1
"""The format of files with version numbers. A change that readers must know of raises it; new keys alone do not."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A `NumberPair` in JSON.

    Attributes:
        registry: the number in the registry.
        git: Git's number.
        type: the schema type; null for a tombstone.
        kind: the key of the kind in Git.
        time_ms: the time of the upload.
        commit: the commit of Git's version.
        stamp: see `NumberPair.stamp`.
        schema: the content, unless Git can restore exactly what the registry has.
    """

    registry: int | None
    git: int | None
    state: PairState
    type: str | None = None
    kind: str | None = None
    time_ms: int | None
    commit: Commit | None
    stamp: str | None = None
    schema: DefinitionView | None = field(default=None, metadata=OPTIONAL)

    @classmethod
    def from_pair(cls, pair: NumberPair) -> ListedVersion:
        """Return the view of a pair."""
        entry, version = pair.registry, pair.git
        info = entry.info if entry else version.info if version else None
        schema = None
        if entry and entry.info and not (version and is_upload_of(version, entry.info)):
            schema = DefinitionView.from_info(entry.info)
        return cls(
            registry=entry.number if entry else None,
            git=version.number if version else None,
            state=pair.state,
            type=info.type.name if info else None,
            kind=(version.kind or None) if version else None,
            time_ms=entry.timestamp_ms if entry else None,
            commit=version.commit if version else None,
            stamp=pair.stamp,
            schema=schema,
        )


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """The version list of a topic in JSON."""

    topic: str
    versions: tuple[ListedVersion, ...]

    @classmethod
    def from_pairs(cls, name: TopicName, pairs: Iterable[NumberPair]) -> ListedTopic:
        """Return the view of a topic's pairs."""
        return cls(str(name), tuple(map(ListedVersion.from_pair, pairs)))


@dataclass(frozen=True, slots=True)
class _NumbersDocument:
    """The keys of a file with version numbers that `rebuild` reads."""

    target: str
    topics: tuple[ListedTopic, ...] | None


def list_topics(*, git: Catalog, registry: Catalog) -> tuple[ListedTopic, ...]:
    """Return every topic of both catalogs that has a version in one of them, sorted by name."""
    names = sorted(git.topics.keys() | registry.topics.keys())
    pairs = {name: pair_up(git=git.versions(name), registry=registry.versions(name)) for name in names}
    return tuple(ListedTopic.from_pairs(name, topic_pairs) for name, topic_pairs in pairs.items() if topic_pairs)


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
    try:
        document = from_json(_NumbersDocument, value)
    except ValueError as error:
        raise SchemactlError(
            f"{path} does not have the format of version numbers that schemactl writes: {error}"
        ) from error
    if document.target != target:
        raise SchemactlError(
            f"{path} was written for the target {document.target}, not for {target}",
            fix=f"name a file of {target}, or rebuild {document.target}",
        )
    if document.topics is None:
        raise SchemactlError(
            f"{path} contains no version numbers, because the registry could not be read when the file was written",
            fix="name an older file; versions that were approved later are added as by `apply`",
        )
    return pair_listed_versions(document.topics, path=path, git=git)


def pair_listed_versions(
    topics: Iterable[ListedTopic], *, path: Path, git: Catalog
) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Return the pairs of the lists in the file at `path`, by topic; Git's versions get Git's content.

    Raises:
        SchemactlError: if a value is not valid, or the history lacks a version that the lists refer to.
    """
    try:
        return {(name := TopicName.parse(topic.topic)): _make_pairs(name, topic, git) for topic in topics}
    except ValueError as error:
        raise SchemactlError(
            f"{path} does not have the format of version numbers that schemactl writes: {error}"
        ) from error


def _make_pairs(name: TopicName, topic: ListedTopic, git: Catalog) -> tuple[NumberPair, ...]:
    versions_by_number = {version.number: version for version in git.versions(name)}
    pairs = [
        _make_pair(name, version.registry, version, versions_by_number)
        for version in topic.versions
        if version.registry is not None
    ]
    taken = [pair.registry.number for pair in pairs if pair.registry]
    if taken != sorted(set(taken)):
        raise ValueError(f"the version numbers of {name} are not in ascending order")
    return tuple(pairs)


def _make_pair(
    name: TopicName, number: int, listed: ListedVersion, versions_by_number: dict[int, SchemaVersion]
) -> NumberPair:
    readable = listed.state == "readable"
    git = versions_by_number.get(listed.git) if listed.git is not None else None
    if git and (git.commit and git.commit.id) != (listed.commit and listed.commit.id):
        git = None
    info = listed.schema.to_info() if listed.schema else None
    if readable and info is None:
        if git is None:
            raise SchemactlError(
                f"{name}: v{number} was Git's version {listed.git} of commit {listed.commit.short if listed.commit else '?'}, "
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
    return NumberPair(SchemaVersion(number, info, timestamp_ms=listed.time_ms), git, readable)
