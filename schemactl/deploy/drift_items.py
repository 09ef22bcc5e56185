"""A difference of a registry from the approved history, and the commands that repair it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import Namespace, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions
from schemactl.core.wording import format_version_numbers
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.plan import PlanRefusal
from schemactl.deploy.refusals import CommandTexts, describe_way_out
from schemactl.formats import find_problems, identity, spec


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One difference of the registry from the approved state.

    Attributes:
        name: by the target's names.
        message: the difference, in full sentences.
        cause: the cause, as far as the registry's answers show it.
        fix: what to do, one alternative a line.
        version: the registry's entry that differs, if any.
        most_similar: Git's version with the fewest differences from the entry.
        state: the record by which `drift --accept` accepts it, or None if it is accepted in another way, or cannot be.
        accepted: the reason of its acceptance; None if it is not accepted.
        is_pending: whether the registry is as Git had approved it when something was last applied, so that the next `apply` is all
            that is missing.
    """

    name: NamespaceName | TopicName
    kind: DriftKind
    message: str
    cause: str
    fix: str
    version: SchemaVersion | None = None
    most_similar: SchemaVersion | None = None
    state: Acceptance | None = None
    accepted: AcceptanceReason | None = None
    is_pending: bool = False


AppliedHistory = Callable[[NamespaceName | TopicName], Namespace | Topic | None]
"""Returns the state of a namespace or topic, by the target's name, that Git had approved at the last known apply, or None if it had none."""


@dataclass(frozen=True, slots=True)
class Advice(CommandTexts):
    """The commands in fixes, and the facts that decide among them.

    Attributes:
        lost: by topic, the recorded numbers that are gone from the registry.
        refusals: by topic, why `apply` would leave it out.
    """

    lost: Mapping[TopicName, Sequence[int]]
    refusals: Mapping[TopicName, Sequence[PlanRefusal]]

    def advise_to_apply(self, name: NamespaceName | TopicName, effect: str) -> str:
        """Return the command that applies the approved state of a namespace or topic, and its effect.

        After a loss, the command keeps recorded numbers.
        """
        if isinstance(name, TopicName) and name in self.refusals:
            return self.advise_to_unblock(name)
        is_lost = name in self.lost or any(topic.namespace_name == name for topic in self.lost)
        return f"{self.format_rebuild(name) if is_lost else self.format_apply(name)}: it {effect}"

    def advise_to_unblock(self, name: TopicName) -> str:
        """Return the fix for a topic that `apply` would leave out."""
        return f"first repair the reason why `apply` leaves the topic out: {self.format_plan(name)}"

    def find_rejection(self, name: TopicName) -> PlanRefusal | None:
        """Return the rejection of one of Git's versions, or None if the registry would accept all of them."""
        return next((refusal for refusal in self.refusals.get(name, ()) if refusal.number is not None), None)


def make_accepted_state(name: TopicName, entries: Sequence[SchemaVersion]) -> Acceptance:
    """Return the state to record to accept these `entries` of a topic whose schema Git does not declare."""
    infos = [entry.info for entry in get_live_versions(entries) if entry.info]
    undeclarable = infos[-1].type.name if infos and spec(infos[-1]).undeclarable else ""
    state = Acceptance(unmanaged=not undeclarable, undeclarable=undeclarable)
    return replace(state, schemas_digest=compute_fingerprint(state.kind, name, new=None, against=infos))


def format_versions(entries: Sequence[SchemaVersion]) -> str:
    """Return `version 3` or `versions 0-3, 5`."""
    return format_version_numbers([entry.number for entry in entries])


def was_never_applied(name: TopicName, applied: AppliedHistory | None) -> bool:
    """Return whether Git had approved neither the topic nor a version of it when something was last applied."""
    holder = applied(name) if applied else None
    return not isinstance(holder, Topic) or holder.deleted or not (holder.versions or holder.schema is None)


def make_blocked_topic_item(
    name: TopicName, blocking_version: SchemaVersion, advice: Advice, *, fix: str, state: Acceptance | None
) -> DriftItem:
    """Return the difference of a topic whose schema Git does not declare and whose brokers store nothing after a version."""
    release = advice.origin.release
    reason, note = "", ""
    if blocking_version.info:
        reason = next((problem.message for problem in find_problems(blocking_version.info, release)), "")
        with suppress(InvalidSchema):
            identity(blocking_version.info)
            note = ". Its messages can be read, as they do not need the default"
    return DriftItem(
        name,
        DriftKind.WEDGED,
        f"the topic is blocked by the registry's v{blocking_version.number}, and Git declares no schema for the topic: brokers "
        f"of Pulsar {release} cannot read that version ({reason}), and reject every later schema{note}",
        "it was the first version, and a broker checks defaults only in later versions",
        f"{describe_way_out(advice.format_delete(name, '--force-delete'))}\n{fix}",
        version=blocking_version,
        state=state,
    )
