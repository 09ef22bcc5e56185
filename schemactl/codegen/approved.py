"""A topic as the approved history has it: what a module is generated from."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.errors import InvalidSchema
from schemactl.model import SchemaInfo, SchemaVersion, Topic


@dataclass(frozen=True, slots=True)
class Approved:
    """A topic as the approved history has it.

    Attributes:
        current: the number of the version in force.
        since: the commit since which the topic stands as it does.
    """

    topic: Topic
    current: int
    since: str

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


def info_of(version: SchemaVersion) -> SchemaInfo:
    """The schema of one of `Approved.versions`."""
    assert version.info is not None  # noqa: S101  tombstones are left out
    return version.info
