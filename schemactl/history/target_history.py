"""View the approved history on a target: the topics that it includes, with its overlays and its version numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from schemactl import formats
from schemactl.core.catalog import Catalog, Client, LazyMapping, Namespace, Topic, filter_catalog, select_part
from schemactl.core.errors import DeclarationError, InvalidSchema
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.declare.files import Files, read_bytes
from schemactl.declare.numbers_file import contradictions, read_numbers
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS, Declared, apply_overlay, read_overlays
from schemactl.declare.target_numbers import (
    TargetNumbers,
    TargetVersion,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.formats import assign_kinds
from schemactl.history.approved_history import History, read_history
from schemactl.history.commit_files import CommitFiles
from schemactl.history.git import Repository
from schemactl.history.merge import Forked
from schemactl.history.versions import Progress, no_progress


def read_effective(
    repository: Repository,
    project: Project,
    target: Target | None,
    *,
    at: str | None = None,
    full_history: History | None = None,
    progress: Progress = no_progress,
) -> History:
    """Read the approved history of the project as a target has it.

    Args:
        repository: of the project.
        project: the approved project.
        target: the target, or None for all topics under their declared names.
        at: the last commit, as a ref or id; by default the target's position.
        full_history: the full history under declared names, if it has been read already.
        progress: as for `read_history`.

    Raises:
        HistoryError: Git cannot tell what was approved or where the target is, or the commit is not on the approved line.
        DeclarationError: the target's overlays at that commit have problems.
    """
    full_history = full_history or read_history(repository, project, progress=progress)
    if target is None:
        return full_history
    history = full_history
    if at or target.promoted:
        history = full_history.view_until(
            full_history.resolve_position(at, "with --at") if at else full_history.resolve_promoted_position(target)
        )
    return view_on_target(repository, history, project, target)


def view_on_target(
    repository: Repository, history: History, project: Project, target: Target, files: Files | None = None
) -> History:
    """Return `history`, and the full history that it is part of, as `target` has them.

    Overlays are read from the newest commit of each history, or from `files`. The settings of the target come from `project`, so
    an overlay may not exist yet at an older commit.
    """
    full_history = history.full_history
    past_policies = _collect_overlay_policies(full_history, project, target)
    if not (has_own_view(target) or past_policies):
        return history

    def view_catalog(part: History) -> Catalog:
        overlay_files = files or CommitFiles(repository, part.tip)
        may_miss = part is not full_history or part.tip is None
        catalog = apply_target(part.catalog, target, read_overlays(overlay_files, project, target, may_miss=may_miss))
        past = past_policies if part is full_history else _collect_overlay_policies(part, project, target)
        return _add_former_policies(catalog, past)

    if full_history is history:
        return history.with_catalog(view_catalog(history))
    return history.with_catalog(
        view_catalog(history), full_history=full_history.with_catalog(view_catalog(full_history))
    )


def has_own_view(target: Target) -> bool:
    """Return whether a target can differ from the declared topics."""
    return bool(target.overlays or target.include or target.exclude)


def _collect_overlay_policies(
    history: History, project: Project, target: Target
) -> dict[NamespaceName | TopicName, Policies]:
    """Collect the policies that overlays of `target` ever set in a history, each with its last value.

    The project file of each commit names the overlays; overlays that cannot be read are skipped.
    """

    def read_target(files: Files) -> Target:
        with suppress(DeclarationError):
            data = read_bytes(files, project.path)
            if target.overlays or b"overlays" in data:
                return read_project(project.path, data).targets.get(target.name, target)
        return target

    paths = {*target.overlays}.union(*(read_target(files).overlays for files in history.revisions(project.path)))
    policies: dict[NamespaceName | TopicName, Policies] = {}
    for files in history.revisions(project.path, *paths) if paths else ():
        try:
            overlays = read_overlays(files, project, read_target(files), may_miss=True)
        except DeclarationError:
            continue
        holders: list[Namespace | Topic] = [*overlays.namespaces.values(), *overlays.topics.values()]
        for holder in holders:
            # Newer revisions come first, and keep their values.
            policies[holder.name] = holder.policies.override_with(policies.get(holder.name, Policies()))
    return policies


def _add_former_policies(catalog: Catalog, past: Mapping[NamespaceName | TopicName, Policies]) -> Catalog:
    """Return `catalog` whose former policies include policies that overlays set in the `past` and nothing sets now."""

    def read_former(name: NamespaceName | TopicName) -> Policies | None:
        holder = catalog.get(name)
        if holder is None and name not in catalog.former:
            return None
        last = catalog.former.get(name, Policies()).override_with(past.get(name, Policies()))
        former = last.without(holder.policies) if holder else last
        return None if former == Policies() else former

    names = dict.fromkeys([*catalog.former, *past])
    former = LazyMapping(lambda: [name for name in names if read_former(name)], read_former)
    return replace(catalog, former=former) if past else catalog


def apply_target(
    catalog: Catalog, target: Target, overlays: Catalog = NO_OVERLAYS, *, also_include: Sequence[TopicName] = ()
) -> Catalog:
    """Select the part of `catalog` that `target` includes, and the topics in `also_include`, and apply `overlays`."""
    selected = select_part(catalog, target.globs) if target.globs else catalog
    if not {*also_include} <= {*selected.topics}:
        names = {*selected.topics, *also_include, *selected.namespaces, *(name.namespace_name for name in also_include)}
        selected = replace(filter_catalog(catalog, lambda name: name in names), former=selected.former)
    if overlays == NO_OVERLAYS:
        return selected

    def read_topic(name: TopicName) -> Topic | None:
        declared, overlay = selected.topics.get(name), overlays.topics.get(name)
        if declared is None or overlay is None or declared.deleted:
            return declared
        return apply_overlay(declared, overlay)

    def read_namespace(name: NamespaceName) -> Namespace | None:
        declared, overlay = selected.namespaces.get(name), overlays.namespaces.get(name)
        return apply_overlay(declared, overlay) if declared and overlay else declared

    def read_former(name: NamespaceName | TopicName) -> Policies | None:
        overlay = overlays.get(name)
        former = selected.former.get(name)
        remaining = former.without(overlay.policies) if former and overlay else former
        return None if remaining == Policies() else remaining

    return Catalog(
        LazyMapping(lambda: [*selected.namespaces], read_namespace),
        LazyMapping(lambda: [*selected.topics], read_topic),
        LazyMapping(lambda: [name for name in selected.former if read_former(name)], read_former),
    )


# Version numbers of a target


def read_numbers_of_target(
    target: Target, project: Project, repository: Repository, approved_history: History
) -> TargetNumbers | None:
    """Read the numbers file of `target` at the tip of the full approved history, or return None if there is no such file.

    Raises:
        DeclarationError: the numbers file has problems; it lists all of them.
    """
    tip = approved_history.full_history.tip
    return None if tip is None else read_numbers(CommitFiles(repository, tip), project, target)


def expect_agreement(records: Iterable[TargetNumbers], declared: Catalog, forked: Forked) -> None:
    """Raise DeclarationError if a numbers file contradicts Git."""
    histories = [forked.approved_history, *([forked.history_by_commit] if forked.history_by_commit else [])]
    if problems := contradictions(records, declared, [history.catalog for history in histories]):
        raise DeclarationError(problems)


def find_topics_with_other_numbers(
    topics: Iterable[TopicName], records: Iterable[TargetNumbers | None]
) -> dict[TopicName, tuple[str, ...]]:
    """Find the topics whose version numbers on some targets differ from Git's, so that decoding needs `--target`.

    Args:
        topics: the topics to look up.
        records: the numbers files of the targets; None for a target without one.

    Returns:
        The names of these targets, by topic.
    """
    present_records = [record for record in records if record]
    targets_by_topic = {}
    for name in topics:
        targets = tuple(record.target for record in present_records if records_other_numbers(record.topics.get(name)))
        if targets:
            targets_by_topic[name] = targets
    return targets_by_topic


def renumber_for_target(
    record: TargetNumbers, declared: Declared, forked: Forked, note: Callable[[object], None]
) -> tuple[Declared, Forked]:
    """Renumber the versions of the declarations and the history as the numbers file of a target records them.

    `note` is called for versions that cannot be compared.
    """
    approved_catalog = forked.approved_history.catalog
    for name, recorded in sorted(record.topics.items()):
        for entry in recorded.entries.values():
            if entry.foreign and not entry.deleted and not _is_comparable(entry.foreign):
                note(
                    f"{record.target}'s version {entry.number} of {name} is not used in the comparison: its definition "
                    "does not parse"
                )

    def renumber(catalog: Catalog) -> Catalog:
        return with_target_numbers(catalog, record, approved_catalog)

    return replace(declared, catalog=renumber(declared.catalog)), forked.map_catalogs(renumber)


def with_target_numbers(catalog: Catalog, numbers: TargetNumbers, approved_catalog: Catalog) -> Catalog:
    """Return `catalog` with the version lists that the target of `numbers` has after all versions of `approved_catalog` are applied.

    A number taken by a deletion is a tombstone. Pinned reader versions and the versions of clients get the target's numbers as
    well. A definition that does not parse is omitted.
    """

    def read_topic(name: TopicName) -> Topic | None:
        topic = catalog.topics.get(name)
        if topic is None or name not in numbers.topics:
            return topic
        approved_versions = approved_catalog.versions(name)
        on_target = target_versions(replace(topic, versions=approved_versions), numbers)

        def renumber(reader: int | Literal["latest"]) -> int | Literal["latest"]:
            return reader if reader == "latest" else _to_target_number(reader, on_target, approved_versions)

        return replace(
            topic,
            versions=_list_versions(topic, numbers),
            reader=renumber(topic.reader),
            kinds=tuple(replace(kind, reader=renumber(kind.reader)) for kind in topic.kinds),
            clients=tuple(_renumber_client(client, on_target, approved_versions) for client in topic.clients),
        )

    return replace(catalog, topics=LazyMapping(lambda: [*catalog.topics], read_topic))


def _list_versions(topic: Topic, numbers: TargetNumbers) -> tuple[SchemaVersion, ...]:
    entries = numbers.topics[topic.name].entries
    versions = []
    for version in target_versions(topic, numbers):
        entry = entries.get(version.number)
        info = version.info or (entry.foreign if entry else None)
        if version.deleted or (version.git and version.git.info is None):
            versions.append(SchemaVersion(version.number, None))
        elif info and (version.git or _is_comparable(info)):
            versions.append(SchemaVersion(version.number, info, version.commit))
    return assign_kinds(versions, topic)


def _renumber_client(
    client: Client, on_target: Sequence[TargetVersion], approved_versions: Sequence[SchemaVersion]
) -> Client:
    if client.versions is None:
        return client
    first, last = (_to_target_number(number, on_target, approved_versions) for number in client.versions)
    return replace(client, versions=(first, last))


def _to_target_number(
    number: int, on_target: Sequence[TargetVersion], approved_versions: Sequence[SchemaVersion]
) -> int:
    """Return the target's number for a version number of Git, which may follow all approved ones."""
    if not on_target:
        return number
    target_version_number = target_number(on_target, number)
    if target_version_number is None:
        return on_target[-1].number + 1 + number - len(approved_versions)
    return target_version_number


def _is_comparable(info: SchemaInfo) -> bool:
    try:
        formats.identity(info)
    except InvalidSchema:
        return False
    return True
