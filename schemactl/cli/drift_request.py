"""What is asked of each target to find its drift."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from schemactl.cli.selection import asked_namespaces
from schemactl.cli.several_targets import OpenTarget, OpenTargets, Stop, each_target, looked_up
from schemactl.core import names as topic_match
from schemactl.core.errors import SchemactlError

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.names import TopicName
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.drift import DriftReport
    from schemactl.deploy.refusals import Awaited, AwaitedBy
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.steps import Plan
    from schemactl.registry.interface import Registry, Scope


@dataclass(frozen=True, slots=True)
class DriftScope:
    """The topics (globs) and namespaces to compare, by default all; `unmanaged`: also those that Git never declared."""

    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    unmanaged: bool = False


def drifts(
    targets: OpenTargets,
    asked: DriftScope,
    *,
    awaited: Callable[[OpenTarget, Collection[str], Plan], Mapping[TopicName, Awaited]] = lambda *_: {},
    stop: Stop | None = None,
) -> dict[str, DriftReport | SchemactlError]:
    """Return the drift of each target by name, or the error that prevented it; see `each_target`.

    `awaited` returns the topics of a target's plan that wait for other targets; it gets the names of the targets that have answered.
    """
    answered: set[str] = set()

    def observe(request: DriftRequest) -> tuple[Catalog, RegistryState]:
        answer = request.observe()
        answered.add(request.target.name)
        return answer

    return each_target(
        targets,
        lambda each: DriftRequest.of(each, asked),
        observe,
        lambda request, answer: request.report(*answer, partial(awaited, request.target, answered)),
        stop=stop,
    )


@dataclass(frozen=True, slots=True)
class DriftRequest:
    """The input for the drift of one target.

    Attributes:
        target: the target.
        asked: the scope.
        approved: what was approved up to the target's position, by declared names.
        everything: all that was approved, also beyond that position; empty unless unmanaged topics are asked for.
        numbers: the record of the target's version numbers.
    """

    target: OpenTarget
    asked: DriftScope
    approved: Catalog
    everything: Catalog
    numbers: TargetNumbers | None

    @classmethod
    def of(cls, target: OpenTarget, asked: DriftScope, numbers: TargetNumbers | None = None) -> DriftRequest:
        """Return the request for `target`; `numbers` replaces the approved record of its version numbers."""
        from schemactl.core.catalog import Catalog
        from schemactl.deploy.planner import renamed_numbers

        approved = target.approved
        recorded = renamed_numbers(numbers, target.names) if numbers else target.numbers
        everything = approved.whole.catalog if asked.unmanaged else Catalog()
        return cls(target, asked, looked_up(approved.catalog), looked_up(everything), recorded)

    def observe(self) -> tuple[Catalog, RegistryState]:
        """Return the selected part of Git by the target's names, and the state of the registry. This is what takes long."""
        from schemactl.deploy.planner import renamed, scope_of, select
        from schemactl.deploy.registry_state import observe
        from schemactl.registry.interface import Scope

        asked, names, registry = self.asked, self.target.names, self.target.registry
        nothing = Scope(frozenset(), frozenset())
        others = _others(registry, renamed(self.everything, names), asked) if asked.unmanaged else nothing
        chosen = select(self.approved, topics=asked.topics, namespaces=asked.namespaces, known=others.topics)
        git = renamed(chosen, names)
        return git, observe(registry, _joined(scope_of(git), others, asked), git=git)

    def report(self, git: Catalog, state: RegistryState, awaited: AwaitedBy = lambda _: {}) -> DriftReport:
        """Return the drift of a registry in that state from `git`; `awaited` as for `make_plan`."""
        from schemactl.deploy.drift import find
        from schemactl.deploy.planner import make_plan
        from schemactl.deploy.steps import Permissions

        target, asked = self.target, self.asked
        held = target.with_held(git, state.catalog)
        plan = make_plan(
            state,
            held,
            origin=target.origin,
            permissions=Permissions(),
            waivers=target.waivers,
            numbers=self.numbers,
            awaited=awaited,
        )
        return find(
            held,
            state,
            plan,
            commit=target.context.repository.commit,
            today=datetime.now(UTC).date(),
            numbers=self.numbers,
            is_whole=asked.unmanaged and not (asked.topics or asked.namespaces),
        )


def _others(registry: Registry, git: Catalog, asked: DriftScope) -> Scope:
    """Return the namespaces and topics of the registry that Git never declared."""
    from schemactl.deploy.planner import scope_of
    from schemactl.registry.interface import Scope

    declared, there = scope_of(git), registry.everything(asked_namespaces(asked.namespaces))
    managed = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in there.topics if name.schema_id not in managed)
    return Scope(there.namespaces - declared.namespaces, topics)


def _joined(scope: Scope, others: Scope, asked: DriftScope) -> Scope:
    """Return `scope` together with the selected part of `others`."""
    from schemactl.registry.interface import Scope

    topics = topic_match.select(others.topics, asked.topics, asked.namespaces)
    spaces = frozenset(
        name
        for name in others.namespaces
        if (str(name) in asked.namespaces if asked.namespaces else not asked.topics)
    )
    spaces |= {name.namespace_name for name in topics}
    return Scope(scope.namespaces | spaces, scope.topics | topics, scope.settings)
