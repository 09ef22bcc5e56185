"""Plans: the steps that bring a registry to what Git approved, with the answer expected for each."""

from __future__ import annotations

from schemactl.plan.inheritance import inherit
from schemactl.plan.planner import make_plan
from schemactl.plan.refusals import Awaited, AwaitedBy, Commands
from schemactl.plan.registry_state import RegistryState, observe
from schemactl.plan.selection import (
    applicable,
    renamed,
    renamed_numbers,
    scope_of,
    select,
    with_later,
    without_namespaces,
)
from schemactl.plan.steps import (
    CreateNamespace,
    CreateTenant,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Origin,
    Permissions,
    Plan,
    PlanNote,
    PlanNoteKind,
    PlanRefusal,
    PlanStep,
    RegisterVersion,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
    TakeNumber,
)

__all__ = [
    "Awaited",
    "AwaitedBy",
    "Commands",
    "CreateNamespace",
    "CreateTenant",
    "CreateTopic",
    "DeleteSchema",
    "GrowPartitions",
    "Origin",
    "Permissions",
    "Plan",
    "PlanNote",
    "PlanNoteKind",
    "PlanRefusal",
    "PlanStep",
    "RegisterVersion",
    "RegistryState",
    "RelaxStrategy",
    "RestoreStrategy",
    "SetPolicies",
    "TakeNumber",
    "applicable",
    "inherit",
    "make_plan",
    "observe",
    "renamed",
    "renamed_numbers",
    "scope_of",
    "select",
    "with_later",
    "without_namespaces",
]
