"""The step that creates a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.names import NamespaceName
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.steps.step import ApplyContext, Phase, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class CreateTenant(Step):
    """Create the tenant of a namespace, without administrators."""

    name: NamespaceName
    sign: ClassVar[StepSign] = "+"
    repairs: ClassVar = frozenset({DriftKind.NAMESPACE_MISSING})

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "create_tenant"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"tenant {self.name.tenant}: create"

    @property
    def suffix(self) -> str:
        """See `Step.suffix`."""
        return f" in the new tenant {self.name.tenant}, which only a superuser can create"

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.missing_tenants.discard(self.name.tenant)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        context.registry.create_tenant(self.name.tenant)

    @property
    def phase(self) -> Phase:
        """See `Step.phase`."""
        return "tenants"

    @property
    def blocks(self) -> set[NamespaceName | str]:
        """See `Step.blocks`."""
        return {self.name.tenant}
