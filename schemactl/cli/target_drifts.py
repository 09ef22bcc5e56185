"""Find the drift of one or many targets, for `drift` and `status`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.apply_results import read_result, result_path
from schemactl.cli.context import Context
from schemactl.cli.parallel_targets import Stop, load_catalog, run_for_each_target
from schemactl.cli.target_selection import ChosenTarget, OpenTarget, OpenTargets
from schemactl.cli.topic_selection import parse_namespaces
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import SchemactlError
from schemactl.core.names import Named, NamespaceName, TargetNames, TopicName, find_matching_topics, select_topics
from schemactl.core.policies import SETTINGS
from schemactl.core.schema import get_live_versions

if TYPE_CHECKING:
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.drift import DriftReport
    from schemactl.deploy.drift_items import AppliedHistory
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.refusals import Awaited, AwaitedBy
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.status import LastApply
    from schemactl.registry.interface import Scope


@dataclass(frozen=True, slots=True)
class DriftScope:
    """The topics to compare.

    Attributes:
        topics: globs of topic names; empty for all topics.
        namespaces: names of namespaces; empty for all namespaces.
        unmanaged: whether to include topics and namespaces that Git never declared.
        last_applies: the last apply of each target by name, as far as result files record it.
    """

    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    unmanaged: bool = False
    last_applies: Mapping[str, LastApply | None] = field(default_factory=dict)


def find_drifts(
    targets: OpenTargets,
    scope: DriftScope,
    *,
    awaited: Callable[[OpenTarget, Collection[str], Plan], Mapping[TopicName, Awaited]] = lambda *_: {},
    stop: Stop | None = None,
) -> dict[str, DriftReport | SchemactlError]:
    """Return the drift of each target by name, or the error that prevented it; see `run_for_each_target`.

    `awaited` returns the topics of a target's plan that wait for other targets; it gets the names of the targets that have responded.
    """
    observed_targets: set[str] = set()

    def observe(request: DriftRequest) -> tuple[Catalog, RegistryState]:
        observation = request.observe()
        observed_targets.add(request.target.name)
        return observation

    return run_for_each_target(
        targets,
        lambda target: DriftRequest.for_target(target, scope),
        observe,
        lambda request, observation: request.report(*observation, partial(awaited, request.target, observed_targets)),
        stop=stop,
    )


@dataclass(frozen=True, slots=True)
class DriftRequest:
    """The input for the drift of one target.

    Attributes:
        target: the target.
        scope: the topics to compare.
        approved: the approved catalog up to the target's position, by declared names.
        everything: the approved catalog beyond that position as well; empty unless the scope has unmanaged topics.
        numbers: the record of the target's version numbers.
    """

    target: OpenTarget
    scope: DriftScope
    approved: Catalog
    everything: Catalog
    numbers: TargetNumbers | None

    @classmethod
    def for_target(cls, target: OpenTarget, scope: DriftScope, numbers: TargetNumbers | None = None) -> DriftRequest:
        """Return the request for `target`; `numbers` replaces the approved record of its version numbers."""
        from schemactl.deploy.target_catalog import rename_numbers

        approved = target.approved
        recorded = rename_numbers(numbers, target.names) if numbers else target.numbers
        everything = approved.full_history.catalog if scope.unmanaged else Catalog()
        if not (scope.topics or scope.namespaces):
            approved.read_ahead(approved.catalog.topics)
        return cls(target, scope, load_catalog(approved.catalog), load_catalog(everything), recorded)

    def observe(self) -> tuple[Catalog, RegistryState]:
        """Return the selected part of Git by the target's names, and the state of the registry, which takes long to read."""
        from schemactl.deploy.registry_state import read_registry_state
        from schemactl.deploy.target_catalog import find_scope, rename_catalog, select_known_part
        from schemactl.registry.interface import Scope

        scope, names, registry = self.scope, self.target.names, self.target.registry
        # The namespaces and topics of the registry that Git never declared.
        unmanaged = Scope(frozenset(), frozenset())
        if scope.unmanaged:
            everything = rename_catalog(self.everything, names)
            namespaces = parse_namespaces(scope.namespaces)
            if namespaces is not None:
                namespaces = frozenset(names.to_target(name) if names.has(name) else name for name in namespaces)
            registered = registry.read_scope(namespaces)
            managed_ids = {name.schema_id for name in everything.topics}
            unmanaged = Scope(
                registered.namespaces - find_scope(everything).namespaces,
                frozenset(name for name in registered.topics if name.schema_id not in managed_ids),
            )
        selected = select_known_part(
            self.approved,
            topics=scope.topics,
            namespaces=scope.namespaces,
            other_topics=_map_selectable_names(unmanaged.topics, names),
            other_namespaces=_map_selectable_names(unmanaged.namespaces, names),
        )
        git = rename_catalog(selected, names)
        declared = find_scope(git)
        # The settings that a namespace declares and each of its topics may override.
        settings = dict(declared.settings)
        for name, topic in git.topics.items():
            namespace = git.namespaces.get(name.namespace_name)
            if namespace and not topic.deleted:
                overridable = {setting for setting in namespace.policies.settings if SETTINGS[setting].topic_path}
                if overridable:
                    settings[name] = settings.get(name, frozenset()) | overridable
        declared = replace(declared, settings=settings)
        return git, read_registry_state(registry, _add_selected(declared, unmanaged, scope, names), git=git)

    def report(self, git: Catalog, state: RegistryState, awaited: AwaitedBy = lambda _: {}) -> DriftReport:
        """Return the drift between `git` and the state of the registry; `awaited` as for `make_plan`."""
        from schemactl.deploy.drift import find_drift
        from schemactl.deploy.permissions import Permissions
        from schemactl.deploy.planner import make_plan

        target, scope = self.target, self.scope
        expected = target.add_registered_versions(git, state.catalog)
        plan = make_plan(
            state,
            expected,
            origin=target.origin,
            permissions=Permissions(),
            waivers=target.waivers,
            numbers=self.numbers,
            awaited=awaited,
        )
        target.approved.save_definitions()
        unreadable = target.find_unreadable(scope.topics, scope.namespaces)
        plan = replace(plan, unreadable=unreadable, brokers=target.compare_brokers(state, git, self.numbers))
        return find_drift(
            expected,
            state,
            plan,
            commit=target.context.repository.commit,
            today=datetime.now(UTC).date(),
            numbers=self.numbers,
            is_whole=scope.unmanaged and not (scope.topics or scope.namespaces),
            applied=self._find_applied(expected, state.catalog),
            defaults=target.place.project.defaults,
        )

    def _find_applied(self, git: Catalog, registered: Catalog) -> AppliedHistory | None:
        """Return the state that Git had approved at the newest commit that left a trace, or None without any trace.

        The traces are the newest version of each topic, which was approved by some commit, and the result of the last complete apply
        from this folder.
        """
        from schemactl.comparison.changes import VersionIndex, get_upload_commit
        from schemactl.history.target_history import read_effective

        target = self.target
        approved, names, place = target.approved, target.names, target.place
        commit_ids = set()
        for name, topic in git.topics.items():
            live_versions = get_live_versions(registered.versions(name))
            info = live_versions[-1].info if live_versions else None
            commit_id = get_upload_commit(info)
            if info and not commit_id:
                version = VersionIndex(topic.versions).find(info)
                commit_id = version.commit.id if version and version.commit else ""
            commit_ids.add(commit_id)
        last_apply = self.scope.last_applies.get(target.name)
        if last_apply and last_apply.outcome == "applied":
            commit_ids.add(last_apply.commit)
        steps = {
            step: commit_id
            for commit_id in filter(None, commit_ids)
            if (step := approved.find_step(commit_id)) is not None
        }
        if not steps:
            return None
        catalog = read_effective(
            target.context.repository,
            place.project,
            place.target,
            at=steps[max(steps)],
            full_history=approved.full_history,
        ).catalog

        def find_declared(name: NamespaceName | TopicName) -> Namespace | Topic | None:
            declared = names.declared(name)
            return catalog.get(declared) if declared else None

        return find_declared


def read_last_apply(place: ChosenTarget, results: Sequence[str], context: Context) -> LastApply | None:
    """Return the target's last apply from its newest result file, if there is one; warn about a file that cannot be read.

    `results` are result files, of any target, and folders with a file `TARGET.json` for each target; without them, the project's own
    folder counts.
    """
    from schemactl.deploy.status import ResultOfOtherTarget

    name = place.target.name
    paths = [Path(context.directory, result) for result in results]
    files = [result_path(path, name, "") if path.is_dir() else path for path in paths]
    last_applies = []
    for path in files or [result_path(place.folder, name)]:
        try:
            result = read_result(path, name)
        except ResultOfOtherTarget as error:
            if path not in paths:
                context.say(f"warning: {error}")
        except ValueError as error:
            context.say(f"warning: {error}")
        else:
            last_applies += [result[0]] if result else []
    return max(last_applies, key=lambda last_apply: last_apply.time_s, default=None)


def _map_selectable_names(registered: Iterable[Named], names: TargetNames) -> dict[Named, Named]:
    """Map the names by which `--topic` and `--namespace` select undeclared topics or namespaces to their names on the target.

    These are the name that Git would declare and, where Git has no such namespace, the name on the target.
    """
    names_on_target = {}
    for name in registered:
        declared = names.declared(name)
        if declared is not None:
            names_on_target[declared] = name
        if not names.has(name.namespace_name):
            names_on_target[name] = name
    return names_on_target


def _add_selected(declared: Scope, unmanaged: Scope, scope: DriftScope, names: TargetNames) -> Scope:
    """Return `declared` together with the part of `unmanaged` that the user selected."""
    from schemactl.registry.interface import Scope

    names_on_target = _map_selectable_names(unmanaged.topics, names)
    included = [pattern for pattern in scope.topics if not pattern.startswith("!")]
    excluded = [pattern.removeprefix("!") for pattern in scope.topics if pattern.startswith("!")]
    topics = unmanaged.topics
    if included or scope.namespaces:
        selected = select_topics(names_on_target, included, scope.namespaces)
        topics = frozenset(names_on_target[name] for name in selected)
    # A topic has up to two names here: it is left out under both if it is left out under one.
    topics -= {names_on_target[name] for pattern in excluded for name in find_matching_topics(pattern, names_on_target)}
    namespaces = unmanaged.namespaces & {name.namespace_name for name in topics}
    if scope.namespaces:
        selectable = _map_selectable_names(unmanaged.namespaces, names)
        namespaces |= {on_target for name, on_target in selectable.items() if str(name) in scope.namespaces}
    elif not scope.topics:
        namespaces |= unmanaged.namespaces
    return Scope(declared.namespaces | namespaces, declared.topics | topics, declared.settings)
