"""A topic of the approved history, as a module is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo, SchemaVersion


@dataclass(frozen=True, slots=True)
class OnTarget:
    """What the numbers of a target stand for, of one topic.

    Attributes:
        foreign: the numbers of those versions that Git never approved.
        unreadable: the numbers by which no message can be read, each with the reason.
        reader: the target's number of the version that messages are read as; None: it has none.
    """

    target: str
    versions: tuple[SchemaVersion, ...]
    foreign: frozenset[int]
    unreadable: Mapping[int, str]
    reader: int | None


@dataclass(frozen=True, slots=True)
class Approved:
    """A topic as the approved history has it, with the number of the version in force, and by whose numbers messages are read (None: Git's)."""

    topic: Topic
    current: int
    on_target: OnTarget | None = None

    @property
    def reader(self) -> tuple[int, SchemaInfo]:
        """The version that messages are read as: its number, and its schema as it stands at the tip.

        Raises:
            InvalidSchema: the topic pins a version that it does not have.
        """
        pinned = self.topic.reader
        if self.topic.schema is not None and pinned in ("latest", self.current):
            return self.current, self.topic.schema
        for version in self.versions:
            if version.number == pinned:
                return version.number, info_of(version)
        known = ", ".join(str(version.number) for version in self.versions)
        raise InvalidSchema(
            f"`reader: {pinned}` names no version of the topic, which has {known}",
            fix="write one of those, or `latest`",
        )

    @property
    def versions(self) -> tuple[SchemaVersion, ...]:
        """The versions that have a schema."""
        return tuple(version for version in self.topic.versions if version.info is not None)

    @property
    def read(self) -> tuple[SchemaVersion, ...]:
        """The versions that messages are read by; they have a schema."""
        return self.versions if self.on_target is None else self.on_target.versions


def info_of(version: SchemaVersion) -> SchemaInfo:
    """Return the schema of one of `Approved.versions`, or of `Approved.read`."""
    assert version.info is not None  # noqa: S101  tombstones are left out
    return version.info
