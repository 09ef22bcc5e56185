"""Make plans that restore the version numbers of a registry that lost its schemas.

A number is restored by uploading its content after all contents before it. Numbers up to the last tombstone could not be read
before the loss; soft deletions take them again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import cast

from schemactl.comparison.changes import (
    VersionIndex,
    content_identity,
    is_upload_of,
    lacks_newest_generation,
    last_tombstone,
    make_upload,
)
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.findings import WaiversAt
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions, get_next_number
from schemactl.core.wording import format_ranges, format_version_numbers
from schemactl.declare.target_numbers import TargetNumbers, target_versions
from schemactl.deploy import refusals
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin, Plan, PlanRefusal
from schemactl.deploy.planner import RELAX, PlanInputs, PlanRun, compute_run
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.steps.delete_schema import DeleteSchema
from schemactl.deploy.version_lists import ListedTopic, NumberPair

_UNKNOWN = (
    "Git declared no schema for the topic for a time: a deletion may have taken a number, which Git does not show",
    "name a saved list; if nothing was deleted, `schemactl apply` gives the topic Git's numbers",
)
_INDISTINGUISHABLE = (
    "this Pulsar release treats some of the versions as equal, so later versions would get other numbers",
    "rebuild on the release from which the list was saved, or without this topic",
)
"""Messages of refusals, each with its fix."""

Lists = Mapping[TopicName, Sequence[NumberPair]]
"""Each topic's list in the registry before the loss, by the target's names: pairs that have an entry, in order of number."""


def make_rebuild(
    registry_state: RegistryState,
    approved: Catalog,
    lists: Lists,
    *,
    interrupted: Container[TopicName] = (),
    origin: Origin,
    permissions: Permissions,
    waivers: WaiversAt = lambda _: (),
    numbers: TargetNumbers | None = None,
) -> Plan:
    """Return the steps that give a registry the version lists that it had.

    A topic without a list gets Git's versions, which are exact if only `apply` wrote to it. Versions that were approved after the
    lists were written follow, as `apply` would add them. Missing namespaces, topics and policies come first.

    Args:
        registry_state: the state of the topics of `approved` and of `lists`.
        approved: the approved history, by the target's names.
        lists: see `Lists`.
        interrupted: topics that had no schema in Git for a time: a deletion may have taken a number, so that they need a list.
        origin: the origin of the plan.
        permissions: the permissions; topics in `force_delete` first lose their current versions.
        waivers: the waivers of versions that a broker rejects.
        numbers: the record of the registry's version numbers, by its own names.
    """
    inputs = PlanInputs(registry_state, approved, origin, permissions, waivers, numbers)
    make_run = partial(_RebuildRun, inputs, lists=lists, interrupted=interrupted)
    plan = compute_run(make_run, without_versions(inputs.applicable, lists)).build_plan()
    return replace(
        plan,
        lists=tuple(
            ListedTopic.from_pairs(name, pairs) for name, pairs in sorted(lists.items()) if name in plan.scope.topics
        ),
    )


def find_recorded_lists(git: Catalog, numbers: TargetNumbers | None) -> dict[TopicName, tuple[NumberPair, ...]]:
    """Return the lists that the record implies, for each topic with a declared schema and recorded numbers.

    A list has every number up to the last recorded one. A soft deletion takes the place of a number whose content is unknown,
    and of all before it, which clients could not read either. Both arguments go by the target's names.
    """
    lists = {}
    for name, recorded in numbers.topics.items() if numbers else ():
        topic = git.topics.get(name)
        if topic is None or topic.schema is None or not recorded.entries:
            continue
        versions_by_number = {version.number: version for version in target_versions(topic, numbers)}
        last = max(recorded.entries)
        readable: list[NumberPair] = []
        for number in reversed(range(last + 1)):
            meaning, entry = versions_by_number.get(number), recorded.entries.get(number)
            if meaning is None or meaning.deleted:
                break
            approved_info = make_upload(meaning.git) if meaning.git and meaning.info else None
            info = (entry.foreign if entry else None) or approved_info
            if info is None:
                break
            readable.append(NumberPair(SchemaVersion(meaning.number, info), meaning.git, readable=True))
        gone = range(last + 1 - len(readable))
        tombstones = [NumberPair(SchemaVersion(number, None), None) for number in gone]
        lists[name] = (*tombstones, *reversed(readable))
    return lists


def without_versions(git: Catalog, lists: Lists) -> Catalog:
    """Return `git` without versions, so that a plan for it handles everything else, and with every topic that has a list."""
    topics = {name: replace(topic, schema=None, versions=()) for name, topic in git.topics.items()}
    others = {name: Topic(name, deleted=True) for name, pairs in lists.items() if pairs and name not in topics}
    return replace(git, topics=topics | others)


class _RebuildRun(PlanRun):
    """A run that handles everything but versions, and then restores lists.

    Attributes:
        lists, interrupted: see `make_rebuild`.
    """

    def __init__(self, inputs: PlanInputs, target: Catalog, *, lists: Lists, interrupted: Container[TopicName]) -> None:
        super().__init__(inputs, target)
        self.lists = lists
        self.interrupted = interrupted

    def compute(self) -> None:
        """Compute the steps to the target, a catalog without versions, and then the steps that restore the lists."""
        self.add_changes()
        topics = self.inputs.applicable.topics
        declared = {name for name, topic in topics.items() if topic.schema}
        for name in sorted(declared | {name for name, pairs in self.lists.items() if pairs}):
            self.restore(name, self.lists.get(name, ()), topics[name].versions if name in declared else ())
        self.refuse_scalable_topics()

    def restore(self, name: TopicName, saved: Sequence[NumberPair], git: Sequence[SchemaVersion]) -> None:
        """Add the steps that restore the topic's list and then add Git's later versions, or the refusal that prevents them.

        A topic that still has its complete list gets only Git's later versions. A topic without a list counts as complete if it
        has all of Git's versions with any numbers.
        """
        if name.namespace_name in self.closed:
            return
        registered = self.predicted.list_versions(name)
        if registered and name in self.inputs.permissions.force_delete:
            readable = tuple(version.number for version in get_live_versions(registered))
            retained = self.covered_state.retained.get(name, "")
            if retained and name not in self.inputs.permissions.unreadable:
                self.refusals.append(refusals.refuse_rebuild(name, retained, self.commands))
                return
            self.add(DeleteSchema(name, readable, force=True, unreadable=bool(retained)))
        if saved:
            has_list = _has_continued(self.predicted.list_versions(name), saved) or self._restore_list(name, saved)
            # `apply` starts a newer generation, because it checks that the topic is empty.
            if has_list and not lacks_newest_generation(self.predicted.list_versions(name), git):
                listed_numbers = {pair.git.number for pair in saved if pair.git and pair.readable}
                beyond = [version for version in get_live_versions(git) if version.number not in listed_numbers]
                self.register(name, self._select_lacking(name, beyond))
        elif self._select_lacking(name, get_live_versions(git)):
            first = last_tombstone(git) + 1
            # The entries that `apply` would have made from Git's versions.
            entries = [
                NumberPair(replace(version, info=make_upload(version)), version, readable=True)
                for version in get_live_versions(git)
            ]
            if name in self.interrupted:
                self._reject(name, *_UNKNOWN)
            elif obstacle := self._find_obstacle(name, first, entries):
                self._reject(name, *obstacle)
            else:
                self.take_numbers(name, first)
                self._upload_rest(name, entries)

    def _restore_list(self, name: TopicName, saved: Sequence[NumberPair]) -> bool:
        """Add the steps that restore the list; return whether the topic has it afterwards."""
        wanted = [pair for pair in saved if pair.readable]
        start = wanted[0].registry if wanted else None
        first = start.number if start else get_next_number([pair.registry for pair in saved if pair.registry])
        if obstacle := self._find_obstacle(name, first, wanted):
            self._reject(name, *obstacle)
            return False
        before = len(self.refusals)
        self.take_numbers(name, first)
        self._upload_rest(name, wanted)
        if len(self.refusals) == before and not _is_same_list(
            get_live_versions(self.predicted.list_versions(name)), wanted, all_of_it=True
        ):
            self._reject(name, *_INDISTINGUISHABLE)
        return len(self.refusals) == before

    def _upload_rest(self, name: TopicName, wanted: Sequence[NumberPair]) -> None:
        uploads = []
        for pair in wanted[len(get_live_versions(self.predicted.list_versions(name))) :]:
            entry = cast("SchemaVersion", pair.registry)
            # Git's version gets its commit property; another entry is uploaded unchanged.
            uploads.append(pair.git if pair.git and entry.info and is_upload_of(pair.git, entry.info) else entry)
        self.register(name, tuple(uploads))

    def _make_relaxing_command(self, name: TopicName) -> str:  # noqa: ARG002  a rebuild's list and topics are the user's choice
        return f"the same command with `{RELAX}`"

    def _find_restarting_command(self, name: TopicName, git: tuple[SchemaVersion, ...]) -> str | None:
        return None if name in self.inputs.permissions.force_delete else super()._find_restarting_command(name, git)

    def _reject(self, name: TopicName, message: str, fix: str) -> None:
        self.refusals.append(PlanRefusal(name, message, fix))

    def _select_lacking(self, name: TopicName, git: Sequence[SchemaVersion]) -> tuple[SchemaVersion, ...]:
        """Return the versions of Git that cannot be read."""
        contents = VersionIndex(self.predicted.list_versions(name))
        return tuple(version for version in git if version.info and contents.find(version.info) is None)

    def _find_obstacle(self, name: TopicName, first: int, wanted: Sequence[NumberPair]) -> tuple[str, str] | None:
        """Return the obstacle to the list, and its fix."""
        if name.namespace_name not in self.predicted.namespaces:
            return (
                f"the namespace {name.namespace_name} does not exist, and Git does not declare it",
                f"`pulsar-admin namespaces create {quote(str(name.namespace_name))}`, then the same command",
            )
        versions_now = self.predicted.list_versions(name)
        current, taken = get_live_versions(versions_now), get_next_number(versions_now)
        if not current and taken <= first:
            return None
        if not current:
            problem = f"tombstones have taken the numbers {format_ranges(range(taken))} since, and the first version was {first}"
        elif current[0].number == first and _is_same_list(current, wanted):
            return None
        else:
            problem = (
                f"the registry holds {format_version_numbers([version.number for version in current])} now, but "
                "with other contents than before"
            )
        return (
            f"version numbers cannot be restored: {problem}",
            (
                f"the same command with `--force-delete {self.commands.quote_topic(name)}` deletes that first; its messages "
                "would then be decoded with the wrong schema"
            ),
        )


def _has_continued(registered: Sequence[SchemaVersion], saved: Sequence[NumberPair]) -> bool:
    """Return whether the registry continues after the list, which was deleted: then nothing was lost."""
    last = saved[-1].registry
    if not registered or last is None:
        return False
    if current := get_live_versions(registered):
        return current[0].number > last.number
    return registered[-1].number > last.number or (registered[-1].number == last.number and last.info is None)


def _is_same_list(current: Sequence[SchemaVersion], wanted: Sequence[NumberPair], *, all_of_it: bool = False) -> bool:
    """Return whether two lists are equal, as far as both go; with `all_of_it`, no entry may be missing."""
    if all_of_it and len(current) < len(wanted):
        return False
    return all(
        entry.info
        and pair.registry
        and pair.registry.info
        and content_identity(entry.info) == content_identity(pair.registry.info)
        for entry, pair in zip(current, wanted, strict=False)
    )
