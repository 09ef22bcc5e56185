"""The step that gives a relaxed topic its own strategy back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemactl.comparison.changes import get_upload_commit
from schemactl.core.errors import RegistryError, SchemactlError, StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.wording import format_version_numbers
from schemactl.deploy.drift_kinds import VERSIONS_GONE
from schemactl.deploy.steps.step import ApplyContext, Phase, PredictedState, Step, StepSign
from schemactl.registry.interface import Registry, RelaxedTopic


@dataclass(frozen=True, slots=True)
class RestoreStrategy(Step):
    """Give a relaxed topic its own strategy back, and its namespace automatic updates.

    Attributes:
        strategy: the topic's own strategy before.
        latest: the number after which no version may have appeared, or None if a killed `apply` relaxed the topic.
        left: the changes of that `apply` that are in force, or None.
    """

    name: TopicName
    strategy: CompatibilityStrategy
    latest: int | None = None
    left: RelaxedTopic | None = None
    repairs: ClassVar = VERSIONS_GONE
    shares_lane: ClassVar[bool] = True

    @property
    def is_repair(self) -> bool:
        """See `Step.is_repair`."""
        return self.latest is None

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "restore_strategy"

    def describe(self) -> str:
        """See `Step.describe`."""
        if self.left and not self.left.accepts_all:
            return f"{self.name}: automatic updates in {self.name.namespace_name} on again"
        return f"{self.name}: the topic's own strategy again ({self.strategy})"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`: for the repair, each setting that is in force, with its effect."""
        if self.left is None:
            yield "~", f"the topic's own strategy: back to {self.strategy}, and automatic updates as before"
            if self.latest is not None:
                yield "=", f"afterwards v{self.latest} must be the latest version"
            return
        if self.left.accepts_all:
            yield (
                "~",
                f"strategy: ALWAYS_COMPATIBLE -> {self.strategy}; a killed apply had left ALWAYS_COMPATIBLE, which accepts every upload",
            )
        if self.left.updates_off:
            yield (
                "~",
                (
                    f"automatic updates in {self.name.namespace_name}: off -> on; a killed apply had left them off, so "
                    "clients cannot register schemas"
                ),
            )

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        facts: dict[str, object] = {"strategy": self.strategy, "latest": self.latest}
        if self.left:
            facts["left"] = {"accepts_all": self.left.accepts_all, "updates_off": self.left.updates_off}
        return facts

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`. A state is read as if no topic were relaxed."""

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        restore(context.registry, self.name)
        context.relaxed.discard(self.name)
        if self.latest is None:
            return
        # The versions that appeared while the topic accepted every upload.
        appeared = [version for version in context.registry.versions(self.name) if version.number > self.latest]
        if appeared:
            commits = sorted({commit[:9] for version in appeared if (commit := get_upload_commit(version.info))})
            uploader = f"an `apply` of commit {', '.join(commits)} uploaded" if commits else "another client uploaded"
            numbers = format_version_numbers([version.number for version in appeared])
            raise StalePlan(
                f"{self.name}: {uploader} {numbers} over the admin API "
                "while the topic accepted every schema (automatic updates were off); the strategy is restored",
                fix="schemactl drift shows what was uploaded",
            )

    @property
    def phase(self) -> Phase:
        """See `Step.phase`."""
        return "restore" if self.is_repair else "topics"

    @property
    def blocks(self) -> set[NamespaceName | str]:
        """See `Step.blocks`."""
        # While a killed `apply` has left a topic relaxed, changing the policies of its namespace is not safe.
        return {self.name.schema_id, *([self.name.namespace_name] if self.is_repair else [])}


def restore(registry: Registry, name: TopicName) -> None:
    """Restore a relaxed topic.

    Raises:
        RegistryError: if the topic is still relaxed afterwards, or may be.
    """
    cause: SchemactlError | None = None
    state = f"{name} still has the strategy ALWAYS_COMPATIBLE, or its namespace no automatic updates"
    try:
        registry.restore(name)
    except SchemactlError as error:
        cause = error
    try:
        relaxed_topic = registry.find_relaxed_topic(name)
    except SchemactlError as error:
        cause = cause or error
    else:
        if relaxed_topic is None:
            return
        still = ["the strategy ALWAYS_COMPATIBLE"] * relaxed_topic.accepts_all
        still += [f"no automatic updates in {name.namespace_name}"] * relaxed_topic.updates_off
        state = f"{name} still has {' and '.join(still)}"
    raise RegistryError(
        f"{state}, which was meant for the uploads only" + (f": {cause.message}" if cause else ""),
        fix="run apply again: it restores both",
    ) from cause
