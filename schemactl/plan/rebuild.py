"""Plans that give a registry which lost its schemas the same numbers back, so that old messages decode again.

A number is got back by uploading the content that had it after everything that came before it. What could no longer be read
when the registry was lost, the numbers up to its last tombstone, is not uploaded again: soft deletions take those numbers.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import cast

from schemactl.broker import live
from schemactl.changes import identity, upload
from schemactl.correspondence import Pair
from schemactl.model import Catalog, SchemaVersion, Topic, TopicName
from schemactl.plan.planner import Permissions, Planner, applicable
from schemactl.plan.state import State, digest, scope_of
from schemactl.plan.steps import DeleteSchema, Origin, Plan, Refusal, TakeNumber
from schemactl.wording import numbers, versions

Lists = Mapping[TopicName, Sequence[Pair]]
"""What each topic's list in the registry was, by the target's names: pairs that have an entry, in order of number."""


def make_rebuild(
    base: State,
    git: Catalog,
    lists: Lists,
    *,
    interrupted: Container[TopicName] = (),
    origin: Origin,
    permissions: Permissions,
) -> Plan:
    """The steps that give a registry in the state `base` the lists that it had.

    For a topic that is not in `lists`, Git's versions are taken for all there ever was: exact where nothing but `apply`
    wrote to it. What Git approved since the lists were written follows them, as `apply` would have added it.
    Namespaces, topics and policies that are missing come first, as in any plan.

    Args:
        base: of the topics of `git` and of `lists`.
        git: the approved history, by the target's names.
        lists: see `Lists`.
        interrupted: topics that had no schema in Git for a time: a deletion may have taken a number then, so that
            without a list nobody knows their numbers.
        origin: what the plan is for.
        permissions: `force_delete` lets what is there now be deleted first; `relax` as in any plan.
    """
    approved = applicable(git)
    rebuilder = _Rebuilder(base, around(approved, lists), origin, permissions)
    rebuilder.work_out()
    for name, entries in sorted(expected(approved, lists).items()):
        if name in interrupted and not lists.get(name):
            rebuilder.refusals.append(_unknown(name))
        else:
            rebuilder.restore(name, entries, exact=name in lists)
    return Plan(
        origin=origin,
        scope=scope_of(around(approved, lists)),
        state_digest=digest(base),
        steps=tuple(rebuilder.steps),
        notes=(),
        refusals=tuple(rebuilder.refusals),
    )


def around(git: Catalog, lists: Lists) -> Catalog:
    """`git` without versions, so that a plan for it sees to everything else; with every topic that has a list."""
    topics = {name: replace(topic, schema=None, versions=()) for name, topic in git.topics.items()}
    others = {
        name: Topic(name, deleted=True) for name, pairs in lists.items() if pairs and name not in topics
    }
    return Catalog(git.namespaces, topics | others)


def expected(git: Catalog, lists: Lists) -> dict[TopicName, tuple[Pair, ...]]:
    """Every list as it should be afterwards. What Git no longer declares is in it only where `lists` has it."""
    found = {name: tuple(pairs) for name, pairs in lists.items() if pairs}
    for name, topic in git.topics.items():
        if topic.schema is None:
            continue
        pairs = found.get(name, ())
        known = {pair.git.number for pair in pairs if pair.git and pair.readable}
        number = pairs[-1].registry.number + 1 if pairs and pairs[-1].registry else 0
        for version in topic.versions:
            if version.number not in known:
                entry = replace(version, number=number, info=upload(version))
                pairs += (Pair(entry, version, readable=True),)
                number += 1
        found[name] = pairs
    return found


class _Rebuilder(Planner):
    """A planner that sees to everything but versions, and then restores lists."""

    def restore(self, name: TopicName, pairs: Sequence[Pair], *, exact: bool) -> None:
        """`steps` give the topic its list, or `refusals` say why that cannot be.

        `exact`: the list was kept, so that every one of its numbers has to come out as it was.
        """
        held = self.versions.get(name.schema_id, ())
        if held and name in self.permissions.force_delete:
            readable = tuple(version.number for version in live(held))
            self.steps.append(DeleteSchema(name, readable, force=True))
            held = ()
        first, wanted = _wanted(pairs)
        why = self._obstacle(name, held, first, wanted)
        if why:
            self.refusals.append(Refusal(name, None, None, *why))
            return
        taken = held[-1].number + 1 if held else 0
        tombstones = [SchemaVersion(number, None) for number in range(taken, first)]
        self.steps += [TakeNumber(name, tombstone.number) for tombstone in tombstones]
        self.versions[name.schema_id] = (*held, *tombstones)
        refused = len(self.refusals)
        self.register(name, tuple(_uploaded(pair) for pair in wanted[len(live(held)) :]))
        now = live(self.versions[name.schema_id])
        if exact and len(self.refusals) == refused and not (len(now) == len(wanted) and _begins(now, wanted)):
            what = "this release of Pulsar would take some of the versions for one, so that the later numbers would be others"
            fix = "rebuild on the release that the list was kept of, or without this topic"
            self.refusals.append(Refusal(name, None, None, what, fix))

    def _obstacle(
        self,
        name: TopicName,
        held: Sequence[SchemaVersion],
        first: int,
        wanted: Sequence[Pair],
    ) -> tuple[str, str] | None:
        """What stands in the way of the list, and what to do about it."""
        if name.namespace_name not in self.namespaces:
            return (
                f"the namespace {name.namespace_name} does not exist, and Git does not declare it",
                f"create it: pulsar-admin namespaces create {name.namespace_name}",
            )
        current = live(held)
        taken = held[-1].number + 1 if held else 0
        if current and (current[0].number != first or not _begins(current, wanted)):
            what = f"the registry holds {versions([each.number for each in current])} now, with other contents than it had"
        elif not current and taken > first:
            what = (
                f"tombstones have taken {numbers(range(taken))} by now, where the first version was {first}"
            )
        else:
            return None
        return (
            f"{what}: the numbers cannot be had back beside that",
            f"--force-delete {name.schema_id} deletes what is there first; messages written with it since can then not be read",
        )


def _unknown(name: TopicName) -> Refusal:
    return Refusal(
        name,
        None,
        None,
        "Git declared no schema for the topic for a time: a deletion may have taken a number then, and Git does not tell",
        "name a list that was kept while the schemas were there; if nothing was deleted then, `schemactl apply` gives the topic "
        "Git's numbers",
    )


def _wanted(pairs: Sequence[Pair]) -> tuple[int, tuple[Pair, ...]]:
    """The number from which on a list could be read, and the pairs from there."""
    readable = tuple(pair for pair in pairs if pair.readable)
    if readable and readable[0].registry:
        return readable[0].registry.number, readable
    last = pairs[-1].registry if pairs else None
    return (last.number + 1 if last else 0), ()


def _begins(current: Sequence[SchemaVersion], wanted: Sequence[Pair]) -> bool:
    """Whether `wanted` starts with what is there."""
    return len(current) <= len(wanted) and all(
        entry.info
        and pair.registry
        and pair.registry.info
        and identity(entry.info) == identity(pair.registry.info)
        for entry, pair in zip(current, wanted, strict=False)
    )


def _uploaded(pair: Pair) -> SchemaVersion:
    """What to upload: Git's version, so that it gets its stamp; or the entry as it was kept."""
    entry = cast("SchemaVersion", pair.registry)
    return pair.git if pair.git and upload(pair.git) == entry.info else entry
