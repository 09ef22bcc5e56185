"""Plan the order in which a changed schema reaches consumers, registries and producers, so that every message can be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from shlex import quote
from typing import Final, Literal

from schemactl.broker.upload import VersionList
from schemactl.checks.check_report import CheckReport, TopicCheck, join_client_impacts
from schemactl.checks.clients import list_client_impacts
from schemactl.checks.proposal import Proposal
from schemactl.comparison.changes import VersionIndex
from schemactl.comparison.compatibility import find_changed_values
from schemactl.comparison.revision_diff import MAX_SHOWN_TOPICS, VersionEffect, compare_version
from schemactl.core.catalog import Catalog, Client, Topic, select_target_topics
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import UpgradeFirst, WaiversAt
from schemactl.core.names import TopicName
from schemactl.core.policies import TRANSITIVE, BrokerDefaults, CompatibilityStrategy, Level
from schemactl.core.project import Target
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.formats import explain, spec
from schemactl.registry import url

Order = Literal["any order", "consumers first", "producers first", "no safe order"]

UPGRADE_FIRST: Final[Mapping[Order, UpgradeFirst]] = {
    "consumers first": "consumers",
    "producers first": "producers",
    "any order": "any order",
    "no safe order": "none",
}
"""The clients that each order upgrades first."""

Kind = Literal["declare", "merge", "apply", "consumers", "producers", "drain"]

_ANY_TARGET: Final = "TARGET"
"""Placeholder for the target in the commands of a project without targets."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The plan for the pending change of a topic.

    Attributes:
        topic: the topic.
        version: the number that the new version gets.
        latest: the number of the version before, or None for the first version.
        number_after_rebase: the number that the version gets if each commit of the branch is approved by itself; None if it was not
            computed or is the same.
        strategy: the strategy in force.
        strategy_on: the targets with this strategy; empty if all targets have it.
        order: the order of the upgrades.
        reasons: the reasons for the order, in sentences.
        steps: the steps in order; empty if no order is safe.
        fix: the way out if no order is safe, else empty.
        kind: the kind of events that changes, or "" for a topic with one schema.
    """

    topic: TopicName
    version: int
    latest: int | None
    number_after_rebase: int | None
    strategy: CompatibilityStrategy
    strategy_on: tuple[str, ...]
    order: Order
    reasons: tuple[str, ...]
    steps: tuple[RolloutStep, ...] = ()
    fix: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """A step, and the command that verifies it.

    Attributes:
        kind: the kind of the step.
        target: the target, or empty if the step does not depend on one.
        clients: the declared clients of the step.
        text: the instruction.
        command: the command that exits with 0 when the step is done, or empty on an embedded registry, which does not know its clients.
    """

    kind: Kind
    target: str
    clients: tuple[Client, ...]
    text: str
    command: str


def make_rollout(
    name: TopicName,
    report: CheckReport,
    targets: Mapping[str, Target],
    approved_versions: Sequence[SchemaVersion],
    targets_with_own_numbers: Collection[str],
    approved: str,
    kind: str = "",
) -> Rollout | None:
    """Plan the rollout of a topic's new version, or of a `kind` of its events; return None if there is no new version.

    Args:
        name: the topic.
        report: the check for all targets.
        targets: the targets of the project.
        approved_versions: the approved versions of the topic.
        targets_with_own_numbers: the targets whose version numbers of the topic differ from Git's.
        approved: the ref that the change is merged into.
        kind: the kind of events of a topic with several.
    """
    rows = _select_rows(name, kind, report.topics)
    if not rows:
        return None
    row = next((row for row in rows if row.strategy in TRANSITIVE), rows[0])
    version, latest = _find_git_numbers(rows, approved_versions, targets_with_own_numbers)
    rebase_offset = (
        row.number_after_rebase - row.version if row.number_after_rebase is not None and row.version is not None else 0
    )
    facts = _Facts(rows, version)
    refusals = _find_refusals(name, kind, rows, version, report)
    order: Order = "no safe order" if refusals else facts.order
    fix = "split it into two changes: add the new field next to the old one, and remove the old one once every client uses the new one"
    if facts.order != "no safe order":
        fix = "follow the fixes of `schemactl check`, or see the ways to make a breaking change: schemactl docs break"
    is_safe = order != "no safe order"
    reasons = tuple(dict.fromkeys((*refusals, *facts.reasons)))
    numbers = {target: entry.version or version for entry in rows for target in entry.targets}
    planner = _Planner(name, facts, order, rebase_offset, approved)
    steps = tuple(planner.make_steps(targets, numbers)) if is_safe else ()
    number_after_rebase = version + rebase_offset if rebase_offset else None
    return Rollout(
        name,
        version,
        latest,
        number_after_rebase,
        row.strategy,
        row.targets if len({entry.strategy for entry in rows}) > 1 else (),
        order,
        reasons,
        steps,
        "" if is_safe else fix,
        kind,
    )


def add_upgrade_order(report: CheckReport) -> CheckReport:
    """Return the report with the clients to upgrade first for each result with a new version.

    A topic that differs between targets has several results, and the rollout an order that is safe on all of them.
    """
    rows = []
    for row in report.topics:
        if _select_rows(row.topic, row.kind, [row]):
            version = row.version or 0
            is_safe = not _find_refusals(row.topic, row.kind, [row], version, report)
            order: Order = _Facts([row], version).order if is_safe else "no safe order"
            rows.append(replace(row, upgrade_first=UPGRADE_FIRST[order]))
        else:
            rows.append(row)
    return replace(report, topics=tuple(rows))


def find_upgrade_order(
    topic: Topic,
    versions: Sequence[SchemaVersion],
    schema: SchemaInfo,
    strategy: CompatibilityStrategy,
    level: Level,
    release: Release,
) -> UpgradeFirst:
    """Return the clients to upgrade first when an approved schema is registered after `versions`.

    Findings do not count, because the schema was approved with them.

    Args:
        topic: the topic with its declared clients.
        versions: the versions before, oldest first, by Git's numbers.
        schema: the approved schema.
        strategy: the strategy in force.
        level: the level that sets the strategy.
        release: the release of the target's brokers.
    """
    proposal = Proposal.create(topic, schema, tuple(versions), strategy, level)
    row = TopicCheck(
        topic.name,
        "new version",
        strategy,
        level,
        version=proposal.number,
        latest=proposal.latest,
        schema=schema,
        versions=proposal.versions,
        clients=list_client_impacts(proposal),
    )
    is_safe = not any(_find_obstacles([row], proposal.number, CheckReport(release, "", 0)))
    return UPGRADE_FIRST[_Facts([row], proposal.number).order if is_safe else "no safe order"]


def find_version_effects(
    versions: Sequence[tuple[TopicName, SchemaVersion]],
    catalog: Catalog,
    defaults: BrokerDefaults,
    waivers: WaiversAt,
    target: str,
) -> dict[tuple[TopicName, int], VersionEffect]:
    """Return the effect of each version, by topic and number; nothing if the versions are of more than MAX_SHOWN_TOPICS.

    Args:
        versions: versions of topics in `catalog`, oldest first.
        catalog: the approved topics with their versions.
        defaults: the strategy to assume if none is declared.
        waivers: returns the waivers in the tree of a commit.
        target: the name of the target whose clients count.
    """
    if len({name for name, _ in versions}) > MAX_SHOWN_TOPICS:
        return {}
    last_numbers = {(name, version.kind): version.number for name, version in versions}
    effects: dict[tuple[TopicName, int], VersionEffect] = {}
    for name, version in versions:
        topic = catalog.topics[name]
        strategy, level = catalog.data_strategy(name, defaults)
        is_last = last_numbers[name, version.kind] == version.number
        effect = VersionEffect(compare_version(topic, version, strategy, waivers), is_last=is_last)
        if is_last:
            with suppress(InvalidSchema):
                broken, safe = _list_affected_clients(topic, version, strategy, level, target)
                effect = replace(effect, broken=broken, safe=safe)
        effects[name, version.number] = effect
    return effects


def _list_affected_clients(
    topic: Topic, version: SchemaVersion, strategy: CompatibilityStrategy, level: Level, target: str
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the declared clients on a target that a version breaks, each with the reason, and the others."""
    part = (topic.find_part(version.kind) or topic) if topic.kinds else topic
    clients = tuple(client for client in part.clients if client.runs_on(target))
    earlier = tuple(other for other in part.versions if other.number < version.number)
    if not (version.info and get_live_versions(earlier) and clients):
        return (), ()
    proposal = Proposal.create(replace(part, clients=clients), version.info, earlier, strategy, level)
    impacts = list_client_impacts(proposal)
    broken = tuple(
        (impact.client.display_name, impact.unread or impact.breaks) for impact in impacts if impact.is_broken(strategy)
    )
    return broken, tuple(impact.client.display_name for impact in impacts if not impact.is_broken(strategy))


def _select_rows(name: TopicName, kind: str, checks: Iterable[TopicCheck]) -> list[TopicCheck]:
    """Return the results for a topic, or a kind of its events, on all targets, or [] if none of them has a new version."""
    rows = [row for row in checks if (row.topic, row.kind) == (name, kind) and row.schema]
    return rows if any(row.change in ("added", "new version") for row in rows) else []


def _find_refusals(
    name: TopicName, kind: str, rows: Sequence[TopicCheck], version: int, report: CheckReport
) -> list[str]:
    """Return the reasons why no order is safe, for any schemas of the clients."""
    targets = {target for row in rows for target in row.targets}
    return [
        f"{finding.rule}: {finding.summary}"
        for finding in report.findings
        # Clients that break decide the order of the steps instead.
        if finding.topic == name
        and finding.kind in ("", kind)
        and finding.severity == "error"
        and finding.rule != "CLIENT_BREAKS"
        if not (finding.targets and targets) or not targets.isdisjoint(finding.targets)
    ] or [*_find_obstacles(rows, version, report)]


def _find_git_numbers(
    rows: Sequence[TopicCheck], approved_versions: Sequence[SchemaVersion], targets_with_own_numbers: Collection[str]
) -> tuple[int, int | None]:
    """Return Git's numbers of the new version and of the latest version before it."""
    for row in rows:
        if row.version is not None and (not row.targets or {*row.targets}.difference(targets_with_own_numbers)):
            return row.version, row.latest
    equal_version = VersionIndex(approved_versions).find(rows[0].schema) if rows[0].schema else None
    live_versions = get_live_versions(approved_versions)
    number = equal_version.number if equal_version else get_next_number(approved_versions)
    return number, live_versions[-1].number if live_versions else None


def _find_obstacles(rows: Sequence[TopicCheck], version: int, report: CheckReport) -> Iterator[str]:
    """Yield the obstacles that no order of steps avoids, even if waivers approve them."""
    for row in rows:
        if not row.schema:
            continue
        where = f" on {', '.join(row.targets)}" if row.targets else ""
        if row.versions and not get_live_versions(row.versions):
            yield f"A new generation begins with version {version}{where}: no message may be left before, and no client."
            continue
        if row.kind:
            # Brokers compare kinds by the strategy of the topic, not by `row.strategy`.
            continue
        release = next((report.targets[target] for target in row.targets), report.release)
        stored = (*row.versions, SchemaVersion(get_next_number(row.versions), row.schema))
        if VersionList(stored, release).check_consumer(row.schema, row.strategy).exception:
            yield f"Under {row.strategy} a broker rejects consumers that are built with version {version}{where}."


class _Facts:
    """The compatibility of the new version with the running clients.

    Attributes:
        rows: the results of the check for the topic, for all targets.
        version: Git's number of the new version.
        clients: the impact of the change on each declared client.
        unread: the reasons why the new version cannot read messages of running producers, by producer.
        blocked: the reasons why running consumers cannot read the new version, by consumer.
        upgraded: the reasons why consumers of the new version cannot read earlier messages in their language, by consumer.
    """

    def __init__(self, rows: Sequence[TopicCheck], version: int) -> None:
        self.rows = rows
        self.version = version
        self.clients = join_client_impacts(rows)
        broken_impacts = [impact for impact in self.clients if not impact.is_fine]
        self.unread = {
            impact.client.display_name: impact.breaks for impact in broken_impacts if not impact.client.reads
        }
        if not self.unread and (reason := self._find_breakage(reads=True)):
            self.unread["producers"] = reason
        self.blocked = {impact.client.display_name: impact.breaks for impact in broken_impacts if impact.client.reads}
        self.upgraded = {impact.client.display_name: impact.unread for impact in self.clients if impact.unread}
        if not self.has_consumers and (reason := self._find_breakage(reads=False)):
            self.blocked["consumers of the latest version"] = reason

    @property
    def has_consumers(self) -> bool:
        """Whether a consumer is declared. Without one, unknown consumers may exist."""
        return any(impact.client.reads for impact in self.clients)

    @property
    def order(self) -> Order:
        is_unread = bool(self.unread or self.upgraded)
        if self.blocked:
            return "no safe order" if is_unread else "consumers first"
        return "producers first" if is_unread else "any order"

    @property
    def reasons(self) -> Iterator[str]:
        """The reasons for the order, in sentences."""
        if not any(row.versions for row in self.rows):
            yield "There are no messages yet; a broker checks clients against the registered schema."
        if not any(get_live_versions(row.versions) for row in self.rows):
            return
        for client_name, reason in self.unread.items():
            yield f"Version {self.version} cannot read messages that {client_name} wrote: {reason}"
        for client_name, reason in self.upgraded.items():
            yield f"{client_name} cannot read earlier messages once it has version {self.version}: {reason}"
        if not (self.unread or self.upgraded):
            yield f"Version {self.version} reads the messages that are written today."
        for client_name, reason in self.blocked.items():
            yield f"{client_name} cannot read version {self.version}: {reason}"
        if not self.blocked:
            client_name = "Every declared consumer" if self.has_consumers else "The latest version"
            yield f"{client_name} reads version {self.version}."

    def _find_breakage(self, *, reads: bool) -> str:
        """Return the first reason why the new version cannot read earlier messages, or (not `reads`) cannot be read; else empty."""
        for row in self.rows:
            direction = "BACKWARD" if reads else "FORWARD"
            suffix = "_TRANSITIVE" if reads and row.strategy in TRANSITIVE else ""
            strategy = CompatibilityStrategy[direction + suffix]
            schemas_by_number = {version.number: version.info for version in row.versions}
            new_schema = row.schema
            for breakage in find_changed_values(row.versions, new_schema, strategy) if new_schema else ():
                old_schema = schemas_by_number[breakage.against]
                if new_schema and old_schema and breakage.incompatibility.is_error:
                    return on_one_line(explain(breakage, new=new_schema, old=old_schema).reason)
        return ""


class _Planner:
    """Makes the steps of one rollout; a rebase merge increases all version numbers by `rebase_offset`."""

    def __init__(self, name: TopicName, facts: _Facts, order: Order, rebase_offset: int, approved: str) -> None:
        self._facts = facts
        self._order = order
        self._rebase_offset = rebase_offset
        self._approved = quote(approved)
        self._short = quote(str(name).removeprefix("persistent://"))
        self._name = name

    def make_steps(self, targets: Mapping[str, Target], numbers: Mapping[str, int]) -> Iterator[RolloutStep]:
        """Yield the steps; `numbers` has the number of the version on each target."""
        version = self._facts.version
        clients = self._facts.clients
        pinned_clients = [impact.client for impact in clients if not impact.is_fine and not impact.client.is_latest]
        # A client cannot declare a file for the two parts of a pair.
        has_file = all(row.schema and spec(row.schema).language != "pair" for row in self._facts.rows)
        if pinned_clients:
            yield RolloutStep(
                "declare",
                "",
                tuple(pinned_clients),
                f"in a separate change, declare {_join_names(pinned_clients)} without `schema`, so that they follow every version"
                + (", or with a definition that can read both (`schema: FILE`)" if has_file else ""),
                f"schemactl check --topic {self._short}",
            )
        rebase_note = (
            f" (after a rebase merge version {version + self._rebase_offset}: add {self._rebase_offset} to the "
            "number in each command)"
        )
        yield RolloutStep(
            "merge",
            "",
            (),
            f"merge the change: {format_version_numbers([version])} is approved{rebase_note if self._rebase_offset else ''}",
            f"schemactl show {self._short}@{version}",
        )
        for target in _sort_targets(self._name, targets):
            yield from self._make_target_steps(target, targets.get(target), numbers.get(target, version))

    def _make_target_steps(self, target: str, target_settings: Target | None, number: int) -> Iterator[RolloutStep]:
        """Yield the steps on one target, where the version has `number`."""
        version = f"version {self._facts.version}"
        version += f" ({number} there)" if number != self._facts.version else ""
        options = f"--target {quote(target)} --topic {self._short}"
        apply_command, plan_command = f"schemactl apply {options}", f"schemactl plan {options} --detailed-exitcode"
        if target_settings and target_settings.promoted is not None:
            # A plan at the current position of the target does not include the change.
            apply_command = (
                f"schemactl promote {quote(target)} --to {self._approved}, the push that it prints, and {apply_command}"
            )
            plan_command += f" --at {self._approved}"
        apply = RolloutStep("apply", target, (), f"register {version}: {apply_command}", plan_command)
        # An embedded registry does not know which clients are connected.
        is_observable = target_settings is None or url.parse(target_settings.registry).kind == "pulsar"
        impacts_here = [
            impact for impact in self._facts.clients if target_settings is None or impact.client.runs_on(target)
        ]
        # A client with its own definition that is compatible with the new version needs no upgrade.
        moving_impacts = [impact for impact in impacts_here if not (impact.client.file and impact.is_fine)]
        producers = [impact.client for impact in moving_impacts if not impact.client.reads]
        blocked = [impact.client for impact in moving_impacts if impact.client.reads and not impact.is_fine]
        other_consumers = [impact.client for impact in moving_impacts if impact.client.reads and impact.is_fine]

        def upgrade(kind: Literal["consumers", "producers"], clients: Sequence[Client]) -> Iterator[RolloutStep]:
            # Without declared clients, the step is for all connected clients.
            is_declared = any(impact.client.reads == (kind == "consumers") for impact in self._facts.clients)
            if clients or not is_declared:
                client_options = "".join(f" --client {quote(client.name)}" for client in clients)
                client_options = client_options or f" --role {kind.removesuffix('s')}"
                yield RolloutStep(
                    kind,
                    target,
                    tuple(clients),
                    f"upgrade {_join_names(clients) or kind} to {version}",
                    f"schemactl clients {self._short} --target {quote(target)} --expect {number}{client_options}"
                    if is_observable
                    else "",
                )

        if self._order == "consumers first":
            yield from upgrade("consumers", blocked)
            yield apply
            yield from upgrade("producers", producers)
            if other_consumers:
                yield from upgrade("consumers", other_consumers)
            return
        yield apply
        yield from upgrade("producers", producers)
        if self._order == "producers first":
            yield RolloutStep(
                "drain",
                target,
                tuple(impact.client for impact in impacts_here if impact.client.reads),
                f"wait until all messages from before {version} are consumed, or have expired: a backlog of 0",
                f"schemactl clients {self._short} --target {quote(target)} --drained" if is_observable else "",
            )
        yield from upgrade("consumers", [*blocked, *other_consumers])


def _sort_targets(name: TopicName, targets: Mapping[str, Target]) -> list[str]:
    """Return the targets with the topic, each after the targets that its `after` names, or a placeholder without targets."""
    names = [target.name for target in targets.values() if select_target_topics([name], target)]
    sorted_names: list[str] = []
    while remaining_names := [target for target in names if target not in sorted_names]:
        # The targets of a cycle stay in their written order.
        candidates = (target for target in remaining_names if not {*targets[target].after} & {*remaining_names})
        sorted_names.append(next(candidates, remaining_names[0]))
    return sorted_names or ([] if targets else [_ANY_TARGET])


def _join_names(clients: Iterable[Client]) -> str:
    return ", ".join(client.display_name for client in clients)
