"""Drift: the differences between a registry and the approved history.

What `apply` leaves on purpose is no drift: a tombstone of a topic that is no longer declared, a definition of which only the
doc was edited. A registry's answers show content, type, time and policies, but not who uploaded: a producer that connected, an
upload by hand and another tool leave the same entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from schemactl.drift.differences import Advice, DriftItem, DriftKind
from schemactl.drift.topics import TopicAndPolicyDrift, unmanaged
from schemactl.drift.versions import VersionDrift
from schemactl.model import Catalog, Commit, Release, Target, TopicName
from schemactl.plan import Origin, RegistryState, applicable
from schemactl.target_numbers import TopicApart

__all__ = ["DriftItem", "DriftKind", "DriftReport", "find"]


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Everything that a drift report shows.

    Attributes:
        origin: which registry was compared with which history.
        git: the approved history, by the target's names.
        held: what the registry holds of it, and of what else was asked for.
        apart: the topics with numbers that are not Git's.
    """

    origin: Origin
    differences: tuple[DriftItem, ...]
    git: Catalog
    held: Catalog
    apart: tuple[TopicApart, ...] = ()


def find(
    git: Catalog,
    state: RegistryState,
    *,
    target: Target,
    ref: str,
    release: Release,
    commit: Callable[[str], Commit | None],
    apart: Sequence[TopicApart] = (),
    lost: Mapping[TopicName, Sequence[int]] | None = None,
) -> tuple[DriftItem, ...]:
    """Return all drift of the registry from the approved history: policies and topics, then versions, then unmanaged.

    What `state` holds and `git` never declared is unmanaged.

    Args:
        git: the approved history, by the target's names.
        state: what the registry holds.
        target: for the commands that the fixes name.
        ref: the approved ref, likewise.
        release: the Pulsar release whose answers are predicted.
        commit: returns the commit with an id, if this clone has it.
        apart: the topics with numbers that are not Git's; what is recorded of them is no drift.
        lost: the recorded numbers that the registry no longer has, by topic.
    """
    advice = Advice(
        f"--target {target.name}",
        ref,
        {theirs: ours for ours, theirs in target.namespaces.items()},
        lost or {},
    )
    approved = applicable(git)
    return (
        *TopicAndPolicyDrift(approved, state, advice).differences(),
        *VersionDrift(approved, state, advice, release, commit, apart).differences(),
        *unmanaged(git, state, advice),
    )
