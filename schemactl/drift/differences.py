"""What a difference is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote

from schemactl.model import NamespaceName, SchemaVersion, TopicName
from schemactl.plan import renamed_topic
from schemactl.wording import versions


class DriftKind(StrEnum):
    """What differs."""

    FOREIGN_VERSION = "foreign version"
    UNEXPLAINED_VERSION = "unexplained version"
    MISSING_VERSIONS = "missing versions"
    TOMBSTONE = "tombstone"
    NUMBERS_APART = "numbers apart"
    POLICY = "policy"
    PARTITIONS = "partitions"
    NAMESPACE_MISSING = "namespace missing"
    TOPIC_MISSING = "topic missing"
    NO_LONGER_DECLARED = "no longer declared"
    RELAXED = "relaxed"
    UNMANAGED_NAMESPACE = "unmanaged namespace"
    UNMANAGED_TOPIC = "unmanaged topic"


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One thing that the registry has otherwise than Git approved.

    Attributes:
        name: by the target's names.
        message: what differs, in full sentences.
        cause: what the registry's answers tell of the cause, and what they cannot.
        fix: what to do next; where there is a choice, every way.
        version: the registry's entry that it is about; None: it is about none.
        nearest: the version of Git's that is most like the entry.
    """

    name: NamespaceName | TopicName
    kind: DriftKind
    message: str
    cause: str
    fix: str
    version: SchemaVersion | None = None
    nearest: SchemaVersion | None = None


def listed(entries: Sequence[SchemaVersion]) -> str:
    """`version 3` or `versions 0-3, 5`."""
    return versions([entry.number for entry in entries])


@dataclass(frozen=True, slots=True)
class Advice:
    """How the commands that are advised name the target and its topics.

    Attributes:
        on: the option that names the target.
        ref: the ref whose first-parent history is what was approved.
        declared: its namespaces that Git knows by other names, with those.
        lost: topics whose list ends before what is recorded of it does, with the recorded numbers that it lacks.
    """

    on: str
    ref: str
    declared: Mapping[NamespaceName, NamespaceName]
    lost: Mapping[TopicName, Sequence[int]]

    @property
    def apply(self) -> str:
        """The command that makes the registry what Git says; after a loss, the one that keeps to the recorded numbers."""
        return f"schemactl {'rebuild' if self.lost else 'apply'} {self.on}"

    def topic(self, name: TopicName) -> str:
        """A topic as commands take it: by the name that Git declares, quoted for a shell."""
        return quote(renamed_topic(name, self.declared).schema_id)
