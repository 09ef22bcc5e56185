"""Group the targets that are checked together, and show declarations and history as they have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from schemactl.checks.check import BranchPoint
from schemactl.checks.judging_files import JudgingFiles
from schemactl.core.catalog import Catalog, select_target_topics
from schemactl.core.names import TopicName
from schemactl.core.project import Target
from schemactl.core.schema import Release
from schemactl.declare.reader import NO_OVERLAYS, Declared
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.history.merge import Forked, LocalChanges
from schemactl.history.target_history import apply_target, has_own_view, renumber_for_target

Note = Callable[[object], None]
"""Called with each remark that is printed at once and is not in the report."""


class EnvironmentView(NamedTuple):
    """The declarations and the approved history as an environment has them.

    Attributes:
        declared: the declarations, with the overlays of the targets.
        forked: the approved history, with the overlays and the version numbers of the targets.
        branch_point: the merge base, with the changes of the branch since then.
    """

    declared: Declared
    forked: Forked
    branch_point: BranchPoint


@dataclass(frozen=True, slots=True)
class Environment:
    """A target, or several targets without a difference, which are checked together.

    Attributes:
        targets: the names of the targets; empty for topics without a target.
        target: the first of the targets, or None for topics without a target.
        release: the Pulsar release whose answers are predicted.
        overlays: the overlays for the declarations.
        approved_overlays: the overlays for the approved history.
        numbers: the record of the targets' version numbers, or None if they have Git's numbers.
        topics: the topics without a target, which are checked as declared, or None for all topics of the targets.
    """

    targets: tuple[str, ...]
    target: Target | None
    release: Release
    overlays: Catalog = NO_OVERLAYS
    approved_overlays: Catalog = NO_OVERLAYS
    numbers: TargetNumbers | None = None
    topics: frozenset[TopicName] | None = None

    @property
    def settings(self) -> tuple[object, ...]:
        """All settings except the names of the targets; targets with equal settings are checked together."""
        target = self.target
        patterns = (target.include, target.exclude) if target else ()
        numbers = self.numbers.topics if self.numbers else {}
        return self.release, patterns, self.overlays, self.approved_overlays, numbers

    def make_view(
        self, declared: Declared, forked: Forked, branch_changes: LocalChanges, note: Note
    ) -> EnvironmentView:
        """Return the declarations, the history and the merge base as this environment has them."""
        unchanged = branch_changes.unchanged
        if self.target and (has_own_view(self.target) or self.overlays != NO_OVERLAYS):
            declared, forked = self._view_with_overlays(declared, forked, self.target)
            new_overlays, old_overlays = self.overlays.topics, self.approved_overlays.topics
            changed = {
                name for name in {*new_overlays, *old_overlays} if new_overlays.get(name) != old_overlays.get(name)
            }
            unchanged = frozenset(name for name in unchanged - changed if name in declared.catalog.topics)
        if self.numbers:
            declared, forked = renumber_for_target(self.numbers, declared, forked, note)
        changes = branch_changes._replace(unchanged=unchanged)
        return EnvironmentView(declared, forked, BranchPoint.from_forked(forked, changes))

    def _view_with_overlays(self, declared: Declared, forked: Forked, target: Target) -> tuple[Declared, Forked]:
        # A renamed topic stays on its targets, although its new name may match other globs.
        approved_names = select_target_topics(forked.approved_history.catalog.topics, target)
        renamed_names = [
            name for name, topic in declared.catalog.topics.items() if topic.renamed_from in approved_names
        ]
        catalog = apply_target(declared.catalog, target, self.overlays, also_include=renamed_names)
        return replace(declared, catalog=catalog), forked.map_catalogs(
            partial(apply_target, target=target, overlays=self.approved_overlays),
            view_by_commit=partial(apply_target, target=target, overlays=self.overlays),
        )


def group_targets(
    judging_files: JudgingFiles,
    approved_judging_files: JudgingFiles | None,
    proposed_catalog: Catalog,
    approved_catalog: Catalog,
) -> list[Environment]:
    """Return the environments of the targets of judging files, and one for the topics without a target.

    Args:
        judging_files: the judging files.
        approved_judging_files: the approved judging files if `judging_files` is the proposed one; they set the policies of approved topics.
        proposed_catalog: the declarations of the checked files.
        approved_catalog: the approved topics and namespaces.
    """
    result: list[Environment] = []
    for target in judging_files.project.targets.values():
        overlays = judging_files.overlays.get(target.name, NO_OVERLAYS)
        environment = Environment(
            (target.name,),
            target,
            target.release or judging_files.project.release,
            overlays,
            approved_judging_files.overlays.get(target.name, overlays) if approved_judging_files else overlays,
            next((record for record in judging_files.numbers if record.target == target.name and record.topics), None),
        )
        index_of_same = next(
            (index for index, other in enumerate(result) if other.settings == environment.settings), None
        )
        if index_of_same is None:
            result.append(environment)
        else:
            result[index_of_same] = replace(
                result[index_of_same], targets=(*result[index_of_same].targets, target.name)
            )
    if all(environment.target and (environment.target.include or environment.target.exclude) for environment in result):
        # Topics without a target are checked as well.
        names = frozenset({*proposed_catalog.topics, *approved_catalog.topics})
        remaining_names = names.difference(
            *(select_target_topics(names, environment.target) for environment in result if environment.target)
        )
        if remaining_names or not result:
            topics = remaining_names if result else None
            result.append(Environment((), None, judging_files.project.release, topics=topics))
    return result
