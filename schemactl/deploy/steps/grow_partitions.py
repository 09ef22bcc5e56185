"""The step that adds partitions to a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from schemactl.core.names import TopicName
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class GrowPartitions(Step):
    """Add partitions to a partitioned topic."""

    name: TopicName
    before: int
    after: int
    repairs: ClassVar = frozenset({DriftKind.PARTITIONS})

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "grow_partitions"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"{self.name}: partitions {self.before} -> {self.after}"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        yield "~", f"partitions: {self.before} -> {self.after}"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        return {"before": self.before, "after": self.after}

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.topics[self.name] = replace(state.topics[self.name], partitions=self.after)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        context.registry.grow_partitions(self.name, self.after)
