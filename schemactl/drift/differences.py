"""One difference, and the target and topic as its fix names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote

from schemactl.formats import spec
from schemactl.messages import versions
from schemactl.model import NamespaceName, SchemaVersion, TopicName, live
from schemactl.plan import renamed_topic
from schemactl.target_numbers import Acceptance, Decision
from schemactl.waivers import fingerprint


class DriftKind(StrEnum):
    """The kinds of drift."""

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
    """One difference of the registry from what Git approved.

    Attributes:
        name: by the target's names.
        message: what differs, in full sentences.
        cause: what the registry's answers tell of the cause, and what they cannot.
        fix: what to do next; every way, where there is a choice.
        version: the registry's entry that differs; None if it is about none.
        nearest: Git's version that is most like the entry.
        state: what an acceptance of it says; None: `drift --accept` accepts it otherwise, or not at all.
        accepted: why it is accepted; None: it is not.
    """

    name: NamespaceName | TopicName
    kind: DriftKind
    message: str
    cause: str
    fix: str
    version: SchemaVersion | None = None
    nearest: SchemaVersion | None = None
    state: Acceptance | None = None
    accepted: Decision | None = None


def held_state(name: TopicName, entries: Sequence[SchemaVersion]) -> Acceptance:
    """Return what accepts that a registry has just these `entries` of a topic whose schema Git does not declare."""
    held = [each.info for each in live(entries) if each.info]
    undeclarable = held[-1].type.name if held and spec(held[-1]).undeclarable else ""
    state = Acceptance(unmanaged=not undeclarable, undeclarable=undeclarable)
    return replace(state, fingerprint=fingerprint(state.kind, name, new=None, against=held))


def listed(entries: Sequence[SchemaVersion]) -> str:
    """Return `version 3` or `versions 0-3, 5`."""
    return versions([entry.number for entry in entries])


@dataclass(frozen=True, slots=True)
class Advice:
    """The target and its topics as the commands in a fix name them.

    Attributes:
        on: the option that names the target.
        ref: the approved ref.
        declared: Git's names of the target's renamed namespaces.
        lost: by topic, the recorded numbers that the registry no longer has.
    """

    on: str
    ref: str
    declared: Mapping[NamespaceName, NamespaceName]
    lost: Mapping[TopicName, Sequence[int]]

    @property
    def apply(self) -> str:
        """The command that brings the registry to what Git approved; after a loss, the one that keeps recorded numbers."""
        return f"schemactl {'rebuild' if self.lost else 'apply'} {self.on}"

    def accept(self, name: NamespaceName | TopicName, *, unmanaged: bool = False) -> str:
        """Return the command that records in Git that something of `name` is accepted."""
        of = f"--topic {self.topic(name)}" if isinstance(name, TopicName) else f"--namespace {name}"
        return f"schemactl drift {self.on}{' --unmanaged' * unmanaged} --accept --reason TEXT {of}"

    def topic(self, name: TopicName) -> str:
        """Return a topic as commands take it: by the name that Git declares, quoted for a shell."""
        return quote(renamed_topic(name, self.declared).schema_id)
