"""The order in which a changed schema reaches a topic's consumers, registries and producers, without a message that nobody can read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final, Literal

from schemactl.broker.upload import check_consumer
from schemactl.checks.check_report import CheckReport, TopicCheck, client_impacts
from schemactl.comparison.changes import Contents
from schemactl.comparison.compatibility import breakages
from schemactl.core.catalog import Client, chosen_topics
from schemactl.core.names import TopicName
from schemactl.core.policies import TRANSITIVE, CompatibilityStrategy
from schemactl.core.project import Target
from schemactl.core.schema import SchemaVersion, live, next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions as versions_said
from schemactl.formats import explain, spec
from schemactl.registry import url

Order = Literal["any order", "consumers first", "producers first", "no safe order"]


Kind = Literal["declare", "merge", "apply", "consumers", "producers", "drain"]


_ANY_TARGET: Final = "TARGET"
"""Stands for the target in the commands of a project that has none."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The plan for the pending change of a topic.

    Attributes:
        version: the number that it gets.
        latest: the version before; None: it is the first.
        strategy: the one in force.
        strategy_on: the targets that have it; (): all.
        rebased: the number that it gets if each commit of the branch is approved by itself; None: not asked, or the same.
        reasons: why this order, in sentences.
        steps: in order; () where none is safe.
        fix: what to do where none is.
    """

    topic: TopicName
    version: int
    latest: int | None
    rebased: int | None
    strategy: CompatibilityStrategy
    strategy_on: tuple[str, ...]
    order: Order
    reasons: tuple[str, ...]
    steps: tuple[RolloutStep, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """What to do, and how to know that it is done.

    Attributes:
        target: where; "": it is the same for all.
        clients: the declared ones that it is about.
        text: what to do.
        command: exits with 0 once it is done.
    """

    kind: Kind
    target: str
    clients: tuple[Client, ...]
    text: str
    command: str


def rollout(
    name: TopicName,
    report: CheckReport,
    targets: Mapping[str, Target],
    git: Sequence[SchemaVersion],
    apart: Collection[str],
    approved: str,
) -> Rollout | None:
    """Return the plan for what `report`, of a check, says of the topic; None: it brings no new version.

    Args:
        name: the topic.
        report: the check, of all targets.
        targets: those of the project.
        git: the topic's versions as they were approved.
        apart: the targets whose numbers of the topic are not Git's.
        approved: the ref that a change is merged into.
    """
    rows = [row for row in report.topics if row.topic == name and row.schema]
    if not any(row.change in ("added", "new version") for row in rows):
        return None
    row = next((row for row in rows if row.strategy in TRANSITIVE), rows[0])
    version, latest = _find_git_numbers(rows, git, apart)
    more = row.stepwise - row.version if row.stepwise is not None and row.version is not None else 0
    facts = _Facts(rows, version)
    refused = [
        f"{each.rule}: {each.message.partition(chr(10))[0]}"
        for each in report.findings
        # A client that breaks is what the order is about.
        if each.topic == name and each.severity == "error" and each.rule != "CLIENT_BREAKS"
    ] or [*_find_obstacles(rows, version, report)]
    order: Order = "no safe order" if refused else facts.order
    fix = "make two changes of it: add the new beside the old, and remove the old once everybody has the new"
    if facts.order != "no safe order":
        fix = "do what `schemactl check` says, or go one of the ways through a break: docs/how-to/break.md"
    is_safe = order != "no safe order"
    reasons = tuple(dict.fromkeys((*refused, *facts.reasons)))
    numbers = {target: each.version or version for each in rows for target in each.targets}
    planner = _Planner(name, facts, order, more, approved)
    steps = tuple(planner.steps(targets, numbers)) if is_safe else ()
    rebased = version + more if more else None
    return Rollout(
        name,
        version,
        latest,
        rebased,
        row.strategy,
        row.targets if len({each.strategy for each in rows}) > 1 else (),
        order,
        reasons,
        steps,
        "" if is_safe else fix,
    )


def _find_git_numbers(
    rows: Sequence[TopicCheck], git: Sequence[SchemaVersion], apart: Collection[str]
) -> tuple[int, int | None]:
    """Return Git's number of the new version, and of the latest before it."""
    for row in rows:
        if row.version is not None and (not row.targets or {*row.targets}.difference(apart)):
            return row.version, row.latest
    same = Contents(git).find(rows[0].schema) if rows[0].schema else None
    standing = live(git)
    return same.number if same else next_number(git), standing[-1].number if standing else None


def _find_obstacles(rows: Sequence[TopicCheck], version: int, report: CheckReport) -> Iterator[str]:
    """Yield what no order of steps gets round, although it was approved by waivers."""
    for row in rows:
        if not row.schema:
            continue
        where = f" on {', '.join(row.targets)}" if row.targets else ""
        if row.versions and not live(row.versions):
            yield f"A new generation begins with version {version}{where}: no message may be left before, and no client."
            continue
        release = next((report.targets[each] for each in row.targets), report.release)
        stored = (*row.versions, SchemaVersion(next_number(row.versions), row.schema))
        if check_consumer(stored, row.schema, row.strategy, release).exception:
            yield f"Under {row.strategy} a broker rejects consumers that are built with version {version}{where}."


class _Facts:
    """Whether the new version and what runs today read each other.

    Attributes:
        rows: what the check says of the topic, for all targets.
        version: Git's number of the new version.
        clients: what the change means to each declared client.
        unread: why the new version does not read what is written today, by who writes it.
        blocked: why those who read today do not read the new version, by who they are.
    """

    def __init__(self, rows: Sequence[TopicCheck], version: int) -> None:
        self.rows = rows
        self.version = version
        self.clients = client_impacts(rows)
        broken = [each for each in self.clients if not each.is_fine]
        self.unread = {each.client.who: each.breaks for each in broken if not each.client.reads}
        if not self.unread and (why := self._break(reads=True)):
            self.unread["producers"] = why
        self.blocked = {each.client.who: each.breaks for each in broken if each.client.reads}
        if not self.has_consumers and (why := self._break(reads=False)):
            self.blocked["consumers of the latest version"] = why

    @property
    def has_consumers(self) -> bool:
        """Whether a consumer is declared; if not, there may be any."""
        return any(each.client.reads for each in self.clients)

    @property
    def order(self) -> Order:
        if self.blocked:
            return "no safe order" if self.unread else "consumers first"
        return "producers first" if self.unread else "any order"

    @property
    def reasons(self) -> Iterator[str]:
        """Say what decides the order."""
        if not any(row.versions for row in self.rows):
            yield "There are no messages yet; a broker judges clients by the schema that is registered."
        if not any(live(row.versions) for row in self.rows):
            return
        for who, why in self.unread.items():
            yield f"Version {self.version} cannot read what {who} wrote: {why}"
        if not self.unread:
            yield f"Version {self.version} reads what is written today."
        for who, why in self.blocked.items():
            yield f"{who} cannot read version {self.version}: {why}"
        if not self.blocked:
            who = "Every declared consumer" if self.has_consumers else "The latest version"
            yield f"{who} reads version {self.version}."

    def _break(self, *, reads: bool) -> str:
        """Return the first reason why the new version does not read earlier messages, or (not `reads`) is not read; "": none."""
        for row in self.rows:
            direction = "BACKWARD" if reads else "FORWARD"
            reach = "_TRANSITIVE" if reads and row.strategy in TRANSITIVE else ""
            strategy = CompatibilityStrategy[direction + reach]
            infos = {each.number: each.info for each in row.versions}
            new = row.schema
            for found in breakages(row.versions, new, strategy, by_any_release=True) if new else ():
                old = infos[found.against]
                if new and old and not found.incompatibility.strict_only:
                    return on_one_line(explain(found, new=new, old=old).reason)
        return ""


class _Planner:
    """Makes the steps of one rollout; after a rebase merge all its numbers are higher by `more`."""

    def __init__(self, name: TopicName, facts: _Facts, order: Order, more: int, approved: str) -> None:
        self._facts = facts
        self._order = order
        self._more = more
        self._approved = quote(approved)
        self._short = quote(str(name).removeprefix("persistent://"))
        self._name = name

    def steps(self, targets: Mapping[str, Target], numbers: Mapping[str, int]) -> Iterator[RolloutStep]:
        """Yield the steps; `numbers` has the version's number on each target."""
        version = self._facts.version
        clients = self._facts.clients
        pinned = [each.client for each in clients if not each.is_fine and not each.client.is_latest]
        # A pair's halves are in no file of a client's own.
        has_file = all(row.schema and spec(row.schema).language != "pair" for row in self._facts.rows)
        if pinned:
            yield RolloutStep(
                "declare",
                "",
                tuple(pinned),
                f"in a change of its own, declare {_join_names(pinned)} without `schema`, to go along with every version"
                + (", or with a definition that understands both (`schema: FILE`)" if has_file else ""),
                f"schemactl check --topic {self._short}",
            )
        rebased = (
            f" (after a rebase merge version {version + self._more}: add {self._more} to the number in each command)"
        )
        yield RolloutStep(
            "merge",
            "",
            (),
            f"merge the change: {versions_said([version])} is approved{rebased if self._more else ''}",
            f"schemactl show {self._short}@{version}",
        )
        for target in _sort_targets(self._name, targets):
            yield from self._on(target, targets.get(target), numbers.get(target, version))

    def _on(self, target: str, known: Target | None, number: int) -> Iterator[RolloutStep]:
        """Yield the steps on one target, where the version has that number."""
        version = f"version {self._facts.version}"
        version += f" ({number} there)" if number != self._facts.version else ""
        apply = self._apply(target, known, version)
        if known and url.parse(known.registry).kind != "pulsar":
            # Clients connect to brokers.
            yield apply
            return
        there = [each for each in self._facts.clients if known is None or each.client.runs_on(target)]
        # What has a definition of its own that understands the new version stays as it is.
        moving = [each for each in there if not (each.client.file and each.is_fine)]
        producers = [each.client for each in moving if not each.client.reads]
        blocked = [each.client for each in moving if each.client.reads and not each.is_fine]
        others = [each.client for each in moving if each.client.reads and each.is_fine]

        def upgrade(kind: Literal["consumers", "producers"], who: Sequence[Client]) -> Iterator[RolloutStep]:
            # Where the topic declares none, the step is for all that are connected.
            is_declared = any(each.client.reads == (kind == "consumers") for each in self._facts.clients)
            if who or not is_declared:
                asked = "".join(f" --client {quote(each.name)}" for each in who)
                asked = asked or f" --role {kind.removesuffix('s')}"
                yield RolloutStep(
                    kind,
                    target,
                    tuple(who),
                    f"upgrade {_join_names(who) or kind} to {version}",
                    f"schemactl clients {self._short} --target {quote(target)} --expect {number}{asked}",
                )

        if self._order == "consumers first":
            yield from upgrade("consumers", blocked)
            yield apply
            yield from upgrade("producers", producers)
            if others:
                yield from upgrade("consumers", others)
            return
        yield apply
        yield from upgrade("producers", producers)
        if self._order == "producers first":
            yield RolloutStep(
                "drain",
                target,
                tuple(each.client for each in there if each.client.reads),
                f"wait until all messages from before {version} are consumed, or have expired: a backlog of 0",
                f"schemactl clients {self._short} --target {quote(target)} --drained",
            )
        yield from upgrade("consumers", [*blocked, *others])

    def _apply(self, target: str, known: Target | None, version: str) -> RolloutStep:
        on = f"--target {quote(target)} --topic {self._short}"
        apply, plan = f"schemactl apply {on}", f"schemactl plan {on} --detailed-exitcode"
        if known and known.promoted is not None:
            # What is planned at the target's own position ends before the change.
            apply = f"schemactl promote {quote(target)} --to {self._approved}, the push that it prints, and {apply}"
            plan += f" --at {self._approved}"
        return RolloutStep("apply", target, (), f"register {version}: {apply}", plan)


def _sort_targets(name: TopicName, targets: Mapping[str, Target]) -> list[str]:
    """Return the targets that have the topic, each behind those that its `after` names; one without name where there are none."""
    having = [each.name for each in targets.values() if chosen_topics([name], each)]
    found: list[str] = []
    while left := [each for each in having if each not in found]:
        # A circle is no order, and is left as it is written.
        free = (each for each in left if not {*targets[each].after} & {*left})
        found.append(next(free, left[0]))
    return found or ([] if targets else [_ANY_TARGET])


def _join_names(clients: Iterable[Client]) -> str:
    return ", ".join(each.who for each in clients)
