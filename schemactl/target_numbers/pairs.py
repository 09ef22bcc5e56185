"""Match the entries of a registry's list with Git's versions by content; also as the JSON that `rebuild` reads.

Numbers differ if something other than `apply` took one: a producer that registered its schema, or a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemactl.comparison.changes import Contents, Generations, stamp, upload
from schemactl.core.catalog import Catalog
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, commit_value, read_document, read_schema, schema_value
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, live

PairState = Literal["readable", "deleted", "tombstone", "missing"]


@dataclass(frozen=True, slots=True)
class NumberPair:
    """An entry of a topic's list in a registry, and Git's version with the same content; one of the two may be missing.

    Attributes:
        registry: the entry; None: the registry has no readable entry with the content of `git`.
        git: the version; None: the entry is a tombstone, or Git does not know its content.
        readable: clients can ask for the entry: it is no tombstone, and none came after it.
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
        return stamp(self.registry.info) if self.registry else None


def pair_up(*, git: Sequence[SchemaVersion], registry: Sequence[SchemaVersion]) -> tuple[NumberPair, ...]:
    """Return a pair for every entry of the registry's list in order, then for Git's versions that cannot be read there.

    A registry may hold a version twice: it compares bytes, Git compares meaning. Versions of earlier generations are left out.
    """
    known = Generations(git)
    readable = {version.number for version in live(registry)}
    pairs = [NumberPair(entry, known.find(entry), entry.number in readable) for entry in registry]
    held = {pair.git.number for pair in pairs if pair.git and pair.readable}
    return (*pairs, *(NumberPair(None, version) for version in live(git) if version.number not in held))


FORMAT_VERSION = 1
"""Of both files; raised with any change that a reader must know of. New keys alone do not raise it."""


def topic_values(*, git: Catalog, registry: Catalog) -> list[Json]:
    """Return every topic of both catalogs that has a version in one of them, sorted by name."""
    names = sorted(git.topics.keys() | registry.topics.keys())
    pairs = {name: pair_up(git=git.versions(name), registry=registry.versions(name)) for name in names}
    return [topic_value(name, each) for name, each in pairs.items() if each]


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
        "time_ms": entry.timestamp_ms if entry else None,
        "commit": commit_value(version.commit) if version else None,
        "stamp": pair.stamp,
    }
    if entry and entry.info and not (version and upload(version) == entry.info):
        value["schema"] = schema_value(entry.info)
    return value


def read_lists(path: Path, *, target: str, git: Catalog) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Read each topic's list in the registry from a file of `apply --result` or `drift --format json`.

    Args:
        path: of the file.
        target: the target that it must have been written for.
        git: the approved history, by the target's names, for contents that the file does not hold.

    Raises:
        SchemactlError: it is no such file, or for another target; or the history lacks what it refers to.
    """
    value = read_document(
        path,
        what="a file with version numbers",
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
            f"{path} holds no numbers: the registry could not be read when it was written",
            fix="name an older file; what was approved since follows as `apply` would have added it",
        )
    return lists_of(value["topics"], path=path, git=git)


def lists_of(values: Iterable[Json], *, path: Path, git: Catalog) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Read what `topic_value` wrote into the file at `path`; what is Git's gets Git's content.

    Raise SchemactlError if it is something else, or the history lacks what it refers to.
    """
    try:
        return {(name := TopicName.parse(each["topic"])): _list(name, each, git) for each in values}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemactlError(f"{path} does not hold numbers as schemactl writes them: {error!r}") from error


def _list(name: TopicName, value: Json, git: Catalog) -> tuple[NumberPair, ...]:
    known = {version.number: version for version in git.versions(name)}
    pairs = [_pair(name, each, known) for each in value["versions"] if each["registry"] is not None]
    taken = [pair.registry.number for pair in pairs if pair.registry]
    if taken != sorted(set(taken)):
        raise ValueError(f"the numbers of {name} are not in order")
    return tuple(pairs)


def _pair(name: TopicName, value: Json, known: dict[int, SchemaVersion]) -> NumberPair:
    number, readable = int(value["registry"]), value["state"] == "readable"
    git = known.get(value["git"]) if value["git"] is not None else None
    if git and (git.commit and git.commit.id) != (value["commit"] and value["commit"]["id"]):
        git = None
    info = read_schema(value.get("schema"))
    if readable and info is None:
        if git is None:
            raise SchemactlError(
                f"{name}: v{number} was Git's version {value['git']} of commit {(value['commit'] or {}).get('id', '?')[:9]}, "
                "which the approved history does not have as that version: it was rewritten, or this clone is behind",
                fix="git fetch --all; if the history was rewritten, make a branch at that commit, merge what was approved instead on "
                "top of it (`git merge --no-ff`), and push that as the approved branch",
            )
        info = upload(git.load())
    if git and info and Contents([git]).find(info) is None:
        raise SchemactlError(
            f"{name}: the list says that v{number} is Git's version {git.number}, and gives another content for it",
            fix="name a list as schemactl wrote it",
        )
    return NumberPair(SchemaVersion(number, info, timestamp_ms=value["time_ms"]), git, readable)
