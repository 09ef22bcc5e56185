"""The step that creates a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.catalog import Namespace
from schemactl.core.names import NamespaceName
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class CreateNamespace(Step):
    """Create a namespace."""

    name: NamespaceName
    sign: ClassVar[StepSign] = "+"
    repairs: ClassVar = frozenset({DriftKind.NAMESPACE_MISSING})

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "create_namespace"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"namespace {self.name}: create"

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.namespaces[self.name] = Namespace(self.name)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        context.registry.create_namespace(self.name)
        context.created.add(self.name)
