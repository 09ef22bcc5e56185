"""A catalog as a target has it: its topics, with the target's own policies and partitions. Names are the declared ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from schemactl.core.catalog import Catalog, LazyMapping, Namespace, Topic, part_of
from schemactl.core.errors import DeclarationError, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import Locator
from schemactl.declare.files import Files, read_bytes
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS, read_overlays
from schemactl.declare.source_location import tokens
from schemactl.history import CommitFiles, History, Repository
from schemactl.history import read as read_history
from schemactl.history.versions import Progress, no_progress

D = TypeVar("D", Namespace, Topic)


def read_effective(
    repository: Repository,
    project: Project,
    target: Target | None,
    *,
    at: str | None = None,
    whole: History | None = None,
    progress: Progress = no_progress,
) -> History:
    """Return the approved history of the project as a target has it.

    Args:
        repository: of the project.
        project: as it was approved.
        target: None returns everything, as it is declared.
        at: the last commit, as a ref or id; None: the target's position.
        whole: the whole history as it is declared, if it has been read already.
        progress: as for `history.read`.

    Raises:
        HistoryError: Git cannot say what was approved, or where the target is; or that is no commit of the approved line.
        DeclarationError: the target's overlays there have problems.
    """
    found = whole = whole or read_history(repository, project, progress=progress)
    if target is None:
        return whole
    if at or target.promoted:
        there = whole.position(at, "with --at") if at else whole.promoted(target)
        found = whole.until(there)
    return on_target(repository, found, project, target)


def on_target(
    repository: Repository, history: History, project: Project, target: Target, files: Files | None = None
) -> History:
    """Return `history` as `target` has it, the whole of it, too; its overlays are those of the same commit, or among `files`.

    What the project file says of the target is as of today: at an older commit an overlay may not be there yet.
    """
    past = _past_overlays(history.whole, project, target)
    if not (differs(target) or past):
        return history

    def shown(each: History) -> Catalog:
        found = files or CommitFiles(repository, each.tip)
        may_miss = each is not history.whole or each.tip is None
        laid = effective(each.catalog, target, read_overlays(found, project, target, may_miss=may_miss))
        return _with_former(laid, past if each is history.whole else _past_overlays(each, project, target))

    if history.whole is history:
        return history.with_catalog(shown(history))
    return history.with_catalog(shown(history), whole=history.whole.with_catalog(shown(history.whole)))


def _past_overlays(
    history: History, project: Project, target: Target
) -> dict[NamespaceName | TopicName, Policies]:
    """Return the policies that overlays of `target` ever set in a history, each with its last value.

    Which files these were, the project file of the time says. What could not be read there said nothing.
    """

    def then(files: Files) -> Target:
        with suppress(DeclarationError):
            data = read_bytes(files, project.path)
            if target.overlays or b"overlays" in data:
                return read_project(project.path, data).targets.get(target.name, target)
        return target

    paths = {*target.overlays}.union(*(then(files).overlays for files in history.revisions(project.path)))
    found: dict[NamespaceName | TopicName, Policies] = {}
    for files in history.revisions(project.path, *paths) if paths else ():
        try:
            overlays = read_overlays(files, project, then(files), may_miss=True)
        except DeclarationError:
            continue
        holders: list[Namespace | Topic] = [*overlays.namespaces.values(), *overlays.topics.values()]
        for each in holders:
            found[each.name] = each.policies.overlaid(found.get(each.name, Policies()))
    return found


def _with_former(catalog: Catalog, past: Mapping[NamespaceName | TopicName, Policies]) -> Catalog:
    """Return `catalog` with former policies that include those that overlays set in the `past` and nothing sets now."""

    def former(name: NamespaceName | TopicName) -> Policies | None:
        held = catalog.get(name)
        if held is None and name not in catalog.former:
            return None
        last = catalog.former.get(name, Policies()).overlaid(past.get(name, Policies()))
        left = last.without(held.policies) if held else last
        return None if left == Policies() else left

    named = dict.fromkeys([*catalog.former, *past])
    lost = LazyMapping(lambda: [name for name in named if former(name)], former)
    return replace(catalog, former=lost) if past else catalog


def differs(target: Target) -> bool:
    """Whether a target differs from what is declared."""
    return bool(target.overlays or target.include or target.exclude)


def effective(catalog: Catalog, target: Target, overlays: Catalog = NO_OVERLAYS) -> Catalog:
    """Return the part of `catalog` that `target` includes, with `overlays` applied."""
    chosen = part_of(catalog, target.globs) if target.globs else catalog
    if overlays == NO_OVERLAYS:
        return chosen

    def topic(name: TopicName) -> Topic | None:
        declared, overlay = chosen.topics.get(name), overlays.topics.get(name)
        if declared is None or overlay is None or declared.deleted:
            return declared
        return replace(_overlaid(declared, overlay), partitions=overlay.partitions or declared.partitions)

    def namespace(name: NamespaceName) -> Namespace | None:
        declared, overlay = chosen.namespaces.get(name), overlays.namespaces.get(name)
        return _overlaid(declared, overlay) if declared and overlay else declared

    def former(name: NamespaceName | TopicName) -> Policies | None:
        overlay = overlays.get(name)
        found = chosen.former.get(name)
        left = found.without(overlay.policies) if found and overlay else found
        return None if left == Policies() else left

    return Catalog(
        LazyMapping(lambda: [*chosen.namespaces], namespace),
        LazyMapping(lambda: [*chosen.topics], topic),
        LazyMapping(lambda: [name for name in chosen.former if former(name)], former),
    )


def _overlaid(declared: D, overlay: D) -> D:
    """Return what is declared, with its policies replaced by those of `overlay`; each value keeps its place."""
    keys = {
        key
        for key, value in (*overlay.policies.managed().items(), *_partitions(overlay))
        if value is not None
    }

    def locate(pointer: str) -> Source:
        found = (overlay if keys.intersection(tokens(pointer)[:1]) else declared).locate(pointer)
        assert found  # noqa: S101  both come from files
        return found

    locator: Locator | None = locate if declared.source else None
    return replace(declared, policies=declared.policies.overlaid(overlay.policies), locator=locator)


def _partitions(overlay: Namespace | Topic) -> list[tuple[str, int | None]]:
    return [("partitions", overlay.partitions)] if isinstance(overlay, Topic) else []
