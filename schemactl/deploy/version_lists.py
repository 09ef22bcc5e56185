"""Pair the versions in a registry with Git's by content, and write and read the pairs as JSON, from which `rebuild` restores numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemactl.comparison.changes import Generations, VersionIndex, get_upload_commit, is_upload_of, make_upload
from schemactl.core.catalog import Catalog
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, commit_value, read_document, read_schema, schema_value
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions

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
