"""What a change does to the targets that checks judge for, and to what differs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from schemactl.checking.run import STRICT_POLICIES, Run
from schemactl.checking.settings import SettingChange
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import Source
from schemactl.core.names import NamespaceName, TopicName, select
from schemactl.core.policies import CompatibilityStrategy, Policies, protects, strategy_of
from schemactl.core.project import Project, Target

ChangedOverlays = Mapping[str, tuple[Catalog, Catalog]]
"""By target that is judged for, what differs there as it was approved, and as the change has it."""


def target_changes(proposed: Project, overlays: ChangedOverlays, run: Run) -> Iterator[SettingChange]:
    """Yield what a change does to the approved targets of `run`, for the topics that it knows."""
    approved = run.project
    if approved.targets == proposed.targets and all(before == after for before, after in overlays.values()):
        # Mostly so; and which topics are declared is read from Git.
        return
    topics = tuple(sorted(name for name, topic in run.approved.topics.items() if not topic.deleted))
    judged = {_judges(target, proposed) for target in proposed.targets.values()}
    for name, before in approved.targets.items():
        after = proposed.targets.get(name)
        if after is None:
            yield SettingChange(
                ("targets",),
                f"{name} is no target any more, and nothing is judged for it",
                loses=_judges(before, approved) not in judged,
                topics=_of(before, topics),
            )
            continue
        if name in overlays:
            changes = [*_settings(before, after, approved, proposed, topics)]
            changes += _policies(name, *overlays[name], run, _of(after, topics))
            yield from (replace(each, targets=(name,)) for each in changes)


def _judges(target: Target, project: Project) -> tuple[object, ...]:
    """Return what a target is judged by; two with the same are judged alike."""
    release = target.release or project.release
    return release, target.overlays, target.include, target.exclude, target.numbers


def _of(target: Target, topics: tuple[TopicName, ...]) -> tuple[TopicName, ...]:
    """Return those of `topics` that `target` has."""
    chosen = select(topics, target.globs)
    return tuple(name for name in topics if name in chosen)


def _settings(
    before: Target, after: Target, approved: Project, proposed: Project, topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
    key = ("targets", after.name)
    was, will = (
        target.release or project.release for target, project in ((before, approved), (after, proposed))
    )
    if was != will and (before.release or after.release):
        what = f"answers of {after.name} are predicted for Pulsar {will}, not {was}"
        yield SettingChange((*key, "pulsar"), what, loses=will < was, topics=_of(after, topics))
    if lost := tuple(sorted({*_of(before, topics)} - {*_of(after, topics)})):
        at = "exclude" if before.exclude != after.exclude else "include"
        yield SettingChange((*key, at), f"{after.name} has fewer topics", loses=True, topics=lost)
    moved = tuple(
        name for name in _of(after, topics) if _there(before, name) not in (None, _there(after, name))
    )
    if moved:
        at = "namespaces" if before.namespaces != after.namespaces else "tenants"
        what = f"{after.name} has other names, and what it holds by the names so far is looked at no more"
        yield SettingChange((*key, at), what, loses=True, topics=moved)
    if before.promoted and before.promoted != after.promoted:
        what = (
            f"{after.name} is at {after.promoted or 'the tip of what is approved'}, not at {before.promoted}"
        )
        yield SettingChange((*key, "promoted"), what, loses=True, topics=_of(after, topics))
    if gone := [other for other in before.after if other not in after.after]:
        what = f"{after.name} waits no more for {', '.join(gone)}"
        yield SettingChange((*key, "after"), what, loses=True, topics=_of(after, topics))


def _there(target: Target, name: TopicName) -> TopicName | None:
    names = target.names
    return names.there(name) if names.has(name.namespace_name) else None


def _policies(
    target: str, before: Catalog, after: Catalog, run: Run, topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
    """Yield what becomes of the approved topics and namespaces by what differs on a target alone."""
    spaces = [
        name
        for name in {*before.namespaces, *after.namespaces}
        if _differ(before.namespaces, after.namespaces, name)
    ]
    changed = {name for name in {*before.topics, *after.topics} if _differ(before.topics, after.topics, name)}
    weaker: dict[tuple[Source | None, str], list[TopicName]] = {}
    for name in topics:
        if name in changed or name.namespace_name in spaces:
            was, will = (_strategy(name, overlays, run) for overlays in (before, after))
            if not protects(was) <= protects(will):
                holder = after.topics.get(name) or after.namespaces.get(name.namespace_name)
                place = holder.locate("/schema_compatibility_strategy") if holder else None
                weaker.setdefault((place, f"{target} is {will}, was {was}"), []).append(name)
    for (place, what), names in weaker.items():
        yield SettingChange(
            ("targets", target, "overlays"), what, loses=True, topics=tuple(names), source=place
        )
    for space in sorted(spaces):
        for policy, strict in STRICT_POLICIES.items():
            held, left = (_flag(space, policy, overlays, run) for overlays in (before, after))
            if held is strict and left is not strict:
                now = after.namespaces.get(space)
                what = f"{policy} of {space} on {target} is {str(left).lower()}, was {str(held).lower()}"
                source = now.locate(f"/{policy}") if now else None
                concerned = tuple(name for name in topics if name.namespace_name == space)
                key = ("targets", target, "overlays")
                yield SettingChange(key, what, loses=True, topics=concerned, source=source)


def _differ(
    before: Mapping[Any, Topic | Namespace], after: Mapping[Any, Topic | Namespace], name: object
) -> bool:
    one, other = before.get(name), after.get(name)
    return (one.policies if one else Policies()) != (other.policies if other else Policies())


def _strategy(name: TopicName, overlays: Catalog, run: Run) -> CompatibilityStrategy:
    """Return the strategy of an approved topic with these overlays."""
    declared = (run.approved.topics.get(name), run.approved.namespaces.get(name.namespace_name))
    laid = (overlays.topics.get(name), overlays.namespaces.get(name.namespace_name))
    levels = [
        (below.policies if below else Policies()).overlaid(above.policies if above else Policies())
        for below, above in zip(declared, laid, strict=True)
    ]
    return strategy_of(*levels) or run.project.defaults.schema_compatibility_strategy


def _flag(space: NamespaceName, policy: str, overlays: Catalog, run: Run) -> bool:
    """Return a policy of an approved namespace with these overlays."""
    for holder in (overlays.namespaces.get(space), run.approved.namespaces.get(space)):
        value = getattr(holder.policies, policy) if holder else None
        if value is not None:
            return bool(value)
    return bool(getattr(run.project.defaults, policy))
