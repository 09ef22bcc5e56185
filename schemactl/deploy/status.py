"""The status of targets: pending changes, drift, and the last apply. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from schemactl.comparison.changes import VersionIndex, get_upload_commit
from schemactl.core.json_values import Json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import get_live_versions
from schemactl.deploy.broker_configuration import BrokerComparison
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.geo_replication import ReplicatedNamespace, replicated
from schemactl.deploy.plan import UnreadableDeclaration
from schemactl.deploy.steps.step import Step
from schemactl.deploy.target_catalog import select_applicable

_SKEW_S = 60
"""The largest difference of the clocks of a registry and of the machine that applies."""


class ResultOfOtherTarget(ValueError):
    """A result file is about another target."""


@dataclass(frozen=True, slots=True)
class LastApply:
    """The last apply, as its result file records it.

    Attributes:
        outcome: `applied`, `partly applied`, `failed` or `started`.
        commit: the id of the approved commit that it applied; "" if there was none.
        time_s: the time of the file, in seconds since the epoch.
        actor: the user who started it on a build server, with the server: `ada (github)`, or "" if unknown.
    """

    outcome: str
    commit: str
    time_s: int
    actor: str = ""

    @classmethod
    def of(cls, result: Json, target: str) -> LastApply:
        """Return the last apply that a result file records.

        Raises:
            ResultOfOtherTarget: if the file is for another target.
        """
        if result["target"] != target:
            raise ResultOfOtherTarget(f"it was written for the target {result['target']}")
        commit, ci = result["approved"]["commit"], result["ci"]
        actor = f"{ci['actor'] or 'somebody'} ({ci['server']})" if ci else ""
        return cls(str(result["outcome"]), commit["id"] if commit else "", int(result["time_s"]), actor)


@dataclass(frozen=True, slots=True)
class LastUpload:
    """The newest version in a registry that an `apply` uploaded: the id of its commit, and the time of the upload."""

    commit: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class LatestVersion:
    """The latest version of a topic in a registry: its number there, and Git's number if Git knows it."""

    registry: int | None
    git: int | None


@dataclass(frozen=True, slots=True)
class UnknownStatus:
    """A target whose status is unknown, with the problem."""

    target: str
    problem: str


@dataclass(frozen=True)
class TargetStatus:
    """The state of one target.

    Attributes:
        target: its name.
        drift: the differences, and the plan of an `apply`.
        result: the record in the result file of its last apply, or None without such a file.
        unpromoted: the number of approved versions after its position.
    """

    target: str
    drift: DriftReport
    result: LastApply | None = None
    unpromoted: int = 0

    @property
    def latest(self) -> Mapping[TopicName, LatestVersion]:
        """The latest version of each topic that the target has, by declared names."""
        latest_by_topic = {}
        for name, topic in select_applicable(self.drift.git).topics.items():
            if topic.deleted or not topic.versions:
                continue
            registered = get_live_versions(self.drift.registered.versions(name))
            version = (
                VersionIndex(topic.versions).find(registered[-1].info) if registered and registered[-1].info else None
            )
            latest = LatestVersion(registered[-1].number if registered else None, version.number if version else None)
            latest_by_topic[self.drift.origin.declared_topic(name)] = latest
        return latest_by_topic

    @property
    def topics(self) -> int:
        """The number of approved topics, without drafts and topics that are no longer declared."""
        return sum(not topic.deleted for topic in select_applicable(self.drift.git).topics.values())

    @property
    def versions(self) -> int:
        """The number of their versions that can be read in the registry."""
        return sum(len(get_live_versions(self.drift.registered.versions(name))) for name in self.drift.git.topics)

    @cached_property
    def _steps(self) -> Mapping[bool, Sequence[Step]]:
        """The steps of an `apply`, by whether they only repair drift."""
        drift = {(item.name, item.kind) for item in self.drift.differences}
        pending = {(item.name, item.kind) for item in self.drift.pending}
        steps: dict[bool, list[Step]] = {True: [], False: []}
        for step in self.drift.plan.steps:
            repaired = {(step.name, kind) for kind in step.repairs}
            # Restoring a topic that a killed `apply` left relaxed is a repair, even if changes of the topic were approved since.
            steps[step.is_repair or (bool(repaired & drift) and not repaired & pending)].append(step)
        return steps

    @property
    def repairs(self) -> Sequence[Step]:
        """The steps of an `apply` that only repair drift."""
        return self._steps[True]

    @property
    def pending(self) -> Sequence[Step]:
        """The steps of an `apply` for the commits that were approved since the last one."""
        return self._steps[False]

    @property
    def pending_versions(self) -> int:
        """The number of versions that were approved since the last `apply`, and that the next one registers."""
        return sum(step.new_version is not None for step in self.pending)

    @property
    def pending_steps(self) -> int:
        """The number of steps for the commits that were approved since the last `apply`."""
        return len(self.pending)

    @property
    def rejected(self) -> int:
        """The number of topics and namespaces that an `apply` would leave out, except topics that wait for another target."""
        return len({refusal.name for refusal in self.drift.plan.refusals if not refusal.waits_for})

    @property
    def waiting(self) -> Mapping[str, int]:
        """The number of topics that wait until another target has their versions, by target."""
        return Counter(refusal.waits_for for refusal in self.drift.plan.refusals if refusal.waits_for)

    @property
    def misread(self) -> int:
        """The number of topics with messages that would be misread now: their numbers are neither Git's nor recorded."""
        return sum(not topic.recorded for topic in self.drift.number_mismatches)

    @property
    def unreadable(self) -> tuple[UnreadableDeclaration, ...]:
        """The approved declarations that cannot be read."""
        return self.drift.plan.unreadable

    @property
    def differences(self) -> Mapping[str, int]:
        """The number of differences that are neither pending nor accepted, by kind."""
        counts = Counter(item.kind.value for item in self.drift.differences)
        if self.drift.broker_differences:
            counts[DriftKind.BROKER_CONFIGURATION.value] = len(self.drift.broker_differences)
        return counts

    @property
    def brokers(self) -> BrokerComparison | None:
        """The configuration of the brokers next to the project file, or None if it was not compared."""
        return self.drift.plan.brokers

    @property
    def updates_off(self) -> tuple[NamespaceName | TopicName, ...]:
        """The namespaces whose clients cannot register schemas because an `apply` was killed or is running."""
        return tuple(item.name for item in self.drift.differences if item.kind is DriftKind.UPDATES_OFF)

    @property
    def accepted(self) -> Mapping[str, int]:
        """The number of accepted differences, by kind."""
        return Counter(item.kind.value for item in self.drift.accepted)

    @property
    def unused(self) -> int:
        """The number of namespaces and topics with an acceptance that no longer describes the registry."""
        return len(self.drift.unused)

    @property
    def last_upload(self) -> LastUpload | None:
        """The newest upload by an `apply` in the registry, or None."""
        # Of several uploads in one millisecond, the one with the highest number is the newest.
        uploads = [
            (version.timestamp_ms, version.number, commit)
            for topic in self.drift.registered.topics.values()
            for version in topic.versions
            if version.timestamp_ms is not None and (commit := get_upload_commit(version.info))
        ]
        time_ms, _, commit = max(uploads, default=(0, 0, ""))
        return LastUpload(commit, time_ms) if commit else None

    @property
    def last_apply(self) -> LastApply | None:
        """The last apply, or None if no file records it or the registry has a later upload."""
        upload = self.last_upload
        if self.result and upload and upload.time_ms / 1000 > self.result.time_s + _SKEW_S:
            return None
        return self.result

    @property
    def is_changed(self) -> bool:
        """Whether there are pending changes or drift."""
        return bool(self.drift.plan.steps or self.rejected or self.differences)


@dataclass(frozen=True)
class StatusReport:
    """The states of targets at one time, in seconds since the epoch (UTC); `approved` is the latest version of each topic in Git."""

    time_s: int
    targets: tuple[TargetStatus | UnknownStatus, ...]
    approved: Mapping[TopicName, int] = field(default_factory=dict)

    @property
    def known(self) -> tuple[TargetStatus, ...]:
        """The targets that answered."""
        return tuple(status for status in self.targets if isinstance(status, TargetStatus))

    @cached_property
    def topics(self) -> Mapping[TopicName, Mapping[str, LatestVersion]]:
        """The latest version of each topic in each target that has it, sorted by name."""
        latest_by_topic: dict[TopicName, dict[str, LatestVersion]] = {name: {} for name in self.approved}
        for status in self.known:
            for name, latest in status.latest.items():
                latest_by_topic.setdefault(name, {})[status.target] = latest
        return dict(sorted(latest_by_topic.items()))

    @cached_property
    def replicated(self) -> tuple[ReplicatedNamespace, ...]:
        """The namespaces that several clusters have, with the versions that have different numbers there."""
        return replicated(status.drift for status in self.known)

    def is_same_everywhere(self, name: TopicName) -> bool:
        """Return whether every target with the topic has its latest version, by Git's number."""
        number = self.approved.get(name)
        return all(latest == LatestVersion(number, number) for latest in self.topics[name].values())
