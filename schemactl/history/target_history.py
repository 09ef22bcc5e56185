"""The approved history as a target has it: its topics, overlays and version numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from schemactl import formats
from schemactl.core.catalog import Catalog, Client, LazyMapping, Namespace, Topic, only, part_of
from schemactl.core.errors import DeclarationError, InvalidSchema, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import Locator, SchemaInfo, SchemaVersion
from schemactl.declare.files import Files, read_bytes
from schemactl.declare.numbers_file import contradictions, read_numbers
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS, Declared, read_overlays
from schemactl.declare.source_location import tokens
from schemactl.declare.target_numbers import (
    TargetNumbers,
    TargetVersion,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.history.approved_history import History
from schemactl.history.approved_history import read as read_history
from schemactl.history.commit_files import CommitFiles
from schemactl.history.git import Repository
from schemactl.history.merge import Forked
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
        progress: as for `approved_history.read`.

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
    return view_on_target(repository, found, project, target)


def view_on_target(
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


def _past_overlays(history: History, project: Project, target: Target) -> dict[NamespaceName | TopicName, Policies]:
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


def effective(
    catalog: Catalog, target: Target, overlays: Catalog = NO_OVERLAYS, *, further: Sequence[TopicName] = ()
) -> Catalog:
    """Return the part of `catalog` that `target` includes, and the topics `further`, with `overlays` applied."""
    chosen = part_of(catalog, target.globs) if target.globs else catalog
    if not {*further} <= {*chosen.topics}:
        kept = {*chosen.topics, *further, *chosen.namespaces, *(name.namespace_name for name in further)}
        chosen = replace(only(catalog, lambda name: name in kept), former=chosen.former)
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
    keys = {key for key, value in (*overlay.policies.managed().items(), *_partitions(overlay)) if value is not None}

    def locate(pointer: str) -> Source:
        found = (overlay if keys.intersection(tokens(pointer)[:1]) else declared).locate(pointer)
        assert found  # noqa: S101  both come from files
        return found

    locator: Locator | None = locate if declared.source else None
    return replace(declared, policies=declared.policies.overlaid(overlay.policies), locator=locator)


def _partitions(overlay: Namespace | Topic) -> list[tuple[str, int | None]]:
    return [("partitions", overlay.partitions)] if isinstance(overlay, Topic) else []


# Version numbers of a target


def expect_agreement(records: Iterable[TargetNumbers], declared: Catalog, forked: Forked) -> None:
    """Raise DeclarationError where a numbers file contradicts Git."""
    histories = [forked.approved.catalog, *([forked.stepwise.catalog] if forked.stepwise else [])]
    if problems := contradictions(records, declared, histories):
        raise DeclarationError(problems)


def numbered(
    record: TargetNumbers, declared: Declared, forked: Forked, note: Callable[[object], None]
) -> tuple[Declared, Forked]:
    """Return the declarations and the history with the version numbers of a target, as its numbers file records them.

    `note` is called for versions that cannot be compared.
    """
    git = forked.approved.catalog
    for name, number in _incomparable(record):
        note(f"{record.target}'s version {number} of {name} is not compared with: its definition does not parse")

    def seen(history: History) -> History:
        return history.with_catalog(with_target_numbers(history.catalog, record, git))

    approved = seen(forked.approved)
    base = approved if forked.base is forked.approved else seen(forked.base)
    stepwise = seen(forked.stepwise) if forked.stepwise else None
    return (
        replace(declared, catalog=with_target_numbers(declared.catalog, record, git)),
        forked._replace(approved=approved, base=base, stepwise=stepwise),
    )


def with_target_numbers(catalog: Catalog, numbers: TargetNumbers, approved: Catalog) -> Catalog:
    """Return `catalog` with the lists of versions that the target of `numbers` has once everything approved is applied.

    A number taken by a deletion is a tombstone. The versions that readers are pinned to, and clients are built with, get the
    target's numbers, too. A definition that does not parse is left out.
    """

    def topic(name: TopicName) -> Topic | None:
        found = catalog.topics.get(name)
        if found is None or name not in numbers.topics:
            return found
        git = approved.versions(name)
        meant = target_versions(replace(found, versions=git), numbers)
        return replace(
            found,
            versions=tuple(_versions(found, numbers)),
            reader=found.reader if found.reader == "latest" else _number(found.reader, meant, git),
            clients=tuple(_client(each, meant, git) for each in found.clients),
        )

    return replace(catalog, topics=LazyMapping(lambda: [*catalog.topics], topic))


def _incomparable(numbers: TargetNumbers) -> Iterator[tuple[TopicName, int]]:
    for name, recorded in sorted(numbers.topics.items()):
        for entry in recorded.entries.values():
            if entry.foreign and not entry.deleted and not _is_comparable(entry.foreign):
                yield name, entry.number


def _versions(topic: Topic, numbers: TargetNumbers) -> list[SchemaVersion]:
    entries = numbers.topics[topic.name].entries
    found = []
    for each in target_versions(topic, numbers):
        entry = entries.get(each.number)
        info = each.info or (entry.foreign if entry else None)
        if each.deleted or (each.git and each.git.info is None):
            found.append(SchemaVersion(each.number, None))
        elif info and (each.git or _is_comparable(info)):
            found.append(SchemaVersion(each.number, info, each.commit))
    return found


def _client(client: Client, meant: Sequence[TargetVersion], versions: Sequence[SchemaVersion]) -> Client:
    """Return the client as it is built by the target's numbers."""
    if client.versions is None:
        return client
    first, last = (_number(each, meant, versions) for each in client.versions)
    return replace(client, versions=(first, last))


def _number(git: int, meant: Sequence[TargetVersion], versions: Sequence[SchemaVersion]) -> int:
    """Return the target's number for Git's version `git`, which may be one that comes after all of these."""
    if not meant:
        return git
    known = target_number(meant, git)
    return meant[-1].number + 1 + git - len(versions) if known is None else known


def _is_comparable(info: SchemaInfo) -> bool:
    try:
        formats.identity(info)
    except InvalidSchema:
        return False
    return True


def numbers_of(target: Target, project: Project, repository: Repository, approved: History) -> TargetNumbers | None:
    """Return the record of `target` at the tip of the whole approved history; None if there is none.

    Raise DeclarationError with all problems of the numbers file.
    """
    tip = approved.whole.tip
    return None if tip is None else read_numbers(CommitFiles(repository, tip), project, target)


def recorded_elsewhere(
    topics: Iterable[TopicName], records: Iterable[TargetNumbers | None]
) -> dict[TopicName, tuple[str, ...]]:
    """Return those of `topics` whose numbers are not Git's on some targets, with the names of these targets.

    Reading their messages needs `--target`. `records` are those of the targets; None: a target has none.
    """
    known = [each for each in records if each]
    found = {
        name: tuple(each.target for each in known if records_other_numbers(each.topics.get(name))) for name in topics
    }
    return {name: targets for name, targets in found.items() if targets}
