"""The step that creates a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.catalog import Topic
from schemactl.core.names import TopicName
from schemactl.core.wording import format_partitions
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class CreateTopic(Step):
    """Create a topic, which is not partitioned if `partitions` is None."""

    name: TopicName
    partitions: int | None
    sign: ClassVar[StepSign] = "+"
    repairs: ClassVar = frozenset({DriftKind.TOPIC_MISSING})

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "create_topic"

    @property
    def suffix(self) -> str:
        """See `Step.suffix`: the number of partitions."""
        return "" if self.partitions is None else f", {format_partitions(self.partitions)}"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"{self.name}: create{self.suffix}"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        return {"partitions": self.partitions}

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.topics[self.name] = Topic(self.name, partitions=self.partitions)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        context.registry.create_topic(self.name, self.partitions)
        context.created.add(self.name)
