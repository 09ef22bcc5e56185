"""The step that gives a version number to a tombstone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.errors import RegistryError, StalePlan
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_next_number
from schemactl.core.wording import format_version_numbers
from schemactl.deploy.drift_kinds import VERSIONS_GONE
from schemactl.deploy.steps.delete_schema import expect_empty
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class TakeNumber(Step):
    """Write a tombstone with the next number, `number`, so that no version gets it. Clients can no longer read `versions`."""

    name: TopicName
    number: int
    versions: tuple[int, ...] = ()
    repairs: ClassVar = VERSIONS_GONE

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "take_number"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"{self.name}: a tombstone takes v{self.number}"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        if self.versions:
            yield "-", f"{format_version_numbers(self.versions)} no longer readable: a new generation begins"
        yield "+", f"v{self.number}: filled with a tombstone, because no version with this number can be read"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        return {"number": self.number, "versions": self.versions}

    @property
    def is_deletion(self) -> bool:
        """See `Step.is_deletion`."""
        return bool(self.versions)

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.add_version(self.name, SchemaVersion(self.number, None))

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        # A tombstone is appended each time, so this must not be repeated after a faster apply.
        registered = context.registry.versions(self.name)
        if any(version.number == self.number and version.info is None for version in registered):
            return
        if get_next_number(registered) != self.number:
            raise StalePlan(
                f"{self.name}: the next number is v{get_next_number(registered)} where v{self.number} was expected: "
                "another client has written to it since the plan was made; no tombstone was written",
                fix="look at a new plan: schemactl plan",
            )
        if self.versions:
            expect_empty(self.name, context.registry)
        taken = context.registry.delete_schema(self.name)
        if taken != self.number:
            raise RegistryError(
                f"{self.name}: a tombstone took v{taken} where v{self.number} was expected: another client is writing to it",
                fix="look at a new plan: schemactl plan",
            )
