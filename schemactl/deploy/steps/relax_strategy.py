"""The step that makes a topic accept every upload for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.findings import Waiver
from schemactl.core.json_values import WaiverView, make_view
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.terminal import on_one_line
from schemactl.deploy.drift_kinds import VERSIONS_GONE
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class RelaxStrategy(Step):
    """Accept every upload until `RestoreStrategy`, and no schema of a client.

    Attributes:
        strategy: the strategy in force before.
        updates: whether clients could register schemas before.
        waiver: the waiver of the one version that follows, or None if the user allows the versions that follow.
    """

    name: TopicName
    strategy: CompatibilityStrategy
    updates: bool
    waiver: Waiver | None = None
    repairs: ClassVar = VERSIONS_GONE
    shares_lane: ClassVar[bool] = True

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "relax_strategy"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"{self.name}: ALWAYS_COMPATIBLE, without automatic updates, for the next registrations"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        if self.waiver:
            owner, reason = on_one_line(self.waiver.owner), on_one_line(self.waiver.reason)
            yield "~", f"waived by {owner}, until {self.waiver.until}: {reason}"
        if self.updates:
            yield "~", f"automatic updates in {self.name.namespace_name}: off, during these uploads"
        yield "~", f"strategy: {self.strategy} -> ALWAYS_COMPATIBLE, during these uploads"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        waiver = self.waiver and make_view(WaiverView, self.waiver)
        return {"strategy": self.strategy, "updates": self.updates, "waiver": waiver}

    @property
    def needs(self) -> Permissions:
        """See `Step.needs`."""
        return Permissions(relax=self.waiver is None)

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`. The strategy counts only until `RestoreStrategy`."""

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        context.relaxed.add(self.name)
        context.registry.relax(self.name)
