"""The registry against Git: what it holds that Git does not approve, and what Git approved that it does not hold.

Whatever `apply` left as Git wants it is no difference: a tombstone of a topic that is no longer declared, a definition whose
doc alone was edited since. A registry's answers show content, type, time and policies. They never show who: a producer
that registered its schema by connecting, an upload by hand and another tool leave the same entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from schemactl.drift.differences import Advice, DriftItem, DriftKind
from schemactl.drift.surroundings import TopicAndPolicyDrift, unmanaged
from schemactl.drift.versions import VersionDrift
from schemactl.model import Catalog, Commit, Release, Target, TopicName
from schemactl.plan import Origin, RegistryState, applicable
from schemactl.target_numbers import TopicApart

__all__ = ["DriftItem", "DriftKind", "DriftReport", "find"]


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What a report tells.

    Attributes:
        origin: which registry was compared with what.
        git: what was approved, by the target's names.
        held: what the registry holds of it, and of what else was asked for.
        apart: the topics of which some number is not Git's.
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
    """Everything in which the registry differs from the approved history `git`, in this order: policies and topics, versions, unmanaged.

    What the registry holds and `git` never declared counts as unmanaged: ask for it by putting it into `state`.

    Args:
        git: by the target's names.
        state: what the registry shows.
        target: for the commands that are advised.
        ref: the one that `git` was read from, for the same.
        release: the one whose answers it gives.
        commit: the commit with an id, if this clone has it.
        apart: the topics of which some number is not Git's; what is recorded of these is no difference.
        lost: the recorded numbers that the registry does not have any more, by topic.
    """
    words = Advice(
        f"--target {target.name}",
        ref,
        {theirs: ours for ours, theirs in target.namespaces.items()},
        lost or {},
    )
    approved = applicable(git)
    return (
        *TopicAndPolicyDrift(approved, state, words).differences(),
        *VersionDrift(approved, state, words, release, commit, apart).differences(),
        *unmanaged(git, state, words),
    )
