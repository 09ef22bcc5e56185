"""The step that creates a tenant."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.core.names import NamespaceName
from schemactl.deploy.steps.step import ApplyContext, Phase, PredictedState, Step


@dataclass(frozen=True, slots=True)
class CreateTenant(Step):
    """Create the tenant of a namespace, without administrators."""

    name: NamespaceName

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "create_tenant"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"tenant {self.name.tenant}: create"

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
