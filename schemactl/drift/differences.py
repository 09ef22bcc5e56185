"""One difference, and the target and topic as its fix names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaVersion, live
from schemactl.core.wording import versions
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason
from schemactl.formats import spec
from schemactl.plan.refusals import Commands
from schemactl.plan.steps import PlanRefusal


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
    WEDGED = "wedged"
    UNMANAGED_NAMESPACE = "unmanaged namespace"
    UNMANAGED_TOPIC = "unmanaged topic"


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One difference of the registry from what Git approved.

    Attributes:
        name: by the target's names.
        message: what differs, in full sentences.
        cause: what the registry's answers show of the cause, and what they cannot show.
        fix: what to do, one alternative a line.
        version: the registry's entry that differs, if any.
        nearest: Git's version with the fewest differences from the entry.
        state: what `drift --accept` records to accept it; None if it is accepted in another way, or cannot be.
        accepted: the reason of its acceptance; None if it is not accepted.
    """

    name: NamespaceName | TopicName
    kind: DriftKind
    message: str
    cause: str
    fix: str
    version: SchemaVersion | None = None
    nearest: SchemaVersion | None = None
    state: Acceptance | None = None
    accepted: AcceptanceReason | None = None


def held_state(name: TopicName, entries: Sequence[SchemaVersion]) -> Acceptance:
    """Return the state to record to accept these `entries` of a topic whose schema Git does not declare."""
    held = [each.info for each in live(entries) if each.info]
    undeclarable = held[-1].type.name if held and spec(held[-1]).undeclarable else ""
    state = Acceptance(unmanaged=not undeclarable, undeclarable=undeclarable)
    return replace(state, fingerprint=fingerprint(state.kind, name, new=None, against=held))


def listed(entries: Sequence[SchemaVersion]) -> str:
    """Return `version 3` or `versions 0-3, 5`."""
    return versions([entry.number for entry in entries])


@dataclass(frozen=True, slots=True)
class Advice(Commands):
    """The commands that fixes name, and what the choice among them depends on.

    Attributes:
        lost: by topic, the recorded numbers that are gone from the registry.
        refusals: by topic, why `apply` would leave it out.
    """

    lost: Mapping[TopicName, Sequence[int]]
    refusals: Mapping[TopicName, Sequence[PlanRefusal]]

    def bring(self, name: NamespaceName | TopicName, effect: str) -> str:
        """Return the command that makes a namespace or topic what Git approved, and its effect.

        After a loss it is the one that keeps recorded numbers.
        """
        if isinstance(name, TopicName) and name in self.refusals:
            return self.blocked(name)
        is_lost = name in self.lost or any(topic.namespace_name == name for topic in self.lost)
        return f"{self.rebuild(name) if is_lost else self.apply(name)}: it {effect}"

    def blocked(self, name: TopicName) -> str:
        """Return what to do about a topic that `apply` would leave out."""
        return f"what stands in the way comes first: {self.plan(name)}"

    def rejection(self, name: TopicName) -> PlanRefusal | None:
        """Return why the registry would reject one of Git's versions; None if it would not."""
        return next((each for each in self.refusals.get(name, ()) if each.number is not None), None)
