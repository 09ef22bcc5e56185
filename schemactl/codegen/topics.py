"""Describe the topics of a generated package: their versions, readers and kinds, also by the numbers of targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from schemactl.core.catalog import Kind, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import get_record_name, identity

NO_VERSION: Final = -1
"""The number of the version in force of a topic without schema."""


@dataclass(frozen=True, slots=True)
class PackageTopic:
    """A topic of a generated package, as the approved history has it.

    Attributes:
        topic: the topic with its versions.
        current: the number of the version in force, or NO_VERSION for a topic without schema, whose messages are plain bytes.
        on_targets: the versions by the numbers of each target whose numbers differ from Git's.
        kinds: of a topic with several kinds of events, the part of the topic for each kind, also for removed ones (see `list_kinds`).
    """

    topic: Topic
    current: int
    on_targets: tuple[VersionsOnTarget, ...] = ()
    kinds: tuple[PackageTopic, ...] = ()

    @property
    def reader(self) -> tuple[int, SchemaInfo]:
        """The version that messages are read as: its number, and its schema at the approved tip.

        Raises:
            InvalidSchema: if the topic pins a version that does not exist.
        """
        if self.current == NO_VERSION:
            return NO_VERSION, SchemaInfo(SchemaType.BYTES)
        pinned = self.topic.reader
        if self.topic.schema is not None and pinned in ("latest", self.current):
            return self.current, self.topic.schema
        for version in self.versions:
            if version.number == pinned:
                return version.number, get_version_schema(version)
        numbers = ", ".join(str(version.number) for version in self.versions)
        raise InvalidSchema(
            f"`reader: {pinned}` names no version of the {f'kind {self.topic.kind}' if self.topic.kind else 'topic'}, which has {numbers}",
            fix="write one of those, or `latest`",
        )

    @property
    def versions(self) -> tuple[SchemaVersion, ...]:
        """Git's versions that have a schema."""
        if self.current == NO_VERSION:
            return ()
        return tuple(version for version in self.topic.versions if version.info is not None)


@dataclass(frozen=True, slots=True)
class VersionsOnTarget:
    """The versions of a topic by the numbers of a target.

    Attributes:
        target: the target's name.
        versions: the versions with the target's numbers.
        git: the numbers of Git's versions by the target's number, without foreign versions, which Git never approved.
        unreadable: the numbers whose messages cannot be read, with the reasons.
        reader: the target's number of the version that messages are read as, or None if the target does not have it.
    """

    target: str
    versions: tuple[SchemaVersion, ...]
    git: Mapping[int, int]
    unreadable: Mapping[int, str]
    reader: int | None

    @property
    def foreign(self) -> frozenset[int]:
        """The numbers of versions that Git never approved."""
        return frozenset(version.number for version in self.versions) - self.git.keys()


def get_version_schema(version: SchemaVersion) -> SchemaInfo:
    """Return the schema of a version of a PackageTopic or VersionsOnTarget."""
    assert version.info is not None  # noqa: S101  versions without a schema are left out
    return version.info


def list_kinds(topic: Topic) -> tuple[PackageTopic, ...]:
    """Return the part of the topic for each kind of events that has a version, the declared kinds first.

    A removed kind is read as its newest version.
    """
    kinds = []
    for key in topic.list_kind_keys():
        versions = [version for version in topic.versions if version.info is not None and version.kind == key]
        if versions:
            newest = versions[-1]
            kind = topic.get_kind(key) or Kind(key, get_version_schema(newest), "")
            current_identity = identity(kind.schema.load())
            equal_numbers = [
                version.number for version in versions if identity(get_version_schema(version)) == current_identity
            ]
            kinds.append(PackageTopic(topic.make_part(kind), equal_numbers[-1] if equal_numbers else newest.number))
    return tuple(kinds)


def mark_other_kinds(versions: Iterable[SchemaVersion], topic: Topic, reader: SchemaInfo) -> tuple[SchemaVersion, ...]:
    """Return the versions of a topic with one schema; a version keeps its kind only if it is another kind than the reader's.

    A topic that once had several kinds of events still has their versions, which the reader's schema cannot read.
    """
    if not topic.kind_names:
        return tuple(versions)
    own_kind = topic.find_kind_key(get_record_name(reader))
    return tuple(replace(version, kind="") if version.kind == own_kind else version for version in versions)
