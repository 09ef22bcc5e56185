"""Plans: what has to be done to a registry, with the answer expected for every step."""

from __future__ import annotations

from schemactl.plan.planner import Permissions, applicable, make_plan
from schemactl.plan.state import (
    State,
    matches,
    observe,
    renamed,
    renamed_numbers,
    renamed_topic,
    scope_of,
    select,
)
from schemactl.plan.steps import (
    CreateNamespace,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Note,
    NoteKind,
    Origin,
    Plan,
    Refusal,
    RegisterVersion,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
    Step,
    TakeNumber,
)

__all__ = [
    "CreateNamespace",
    "CreateTopic",
    "DeleteSchema",
    "GrowPartitions",
    "Note",
    "NoteKind",
    "Origin",
    "Permissions",
    "Plan",
    "Refusal",
    "RegisterVersion",
    "RelaxStrategy",
    "RestoreStrategy",
    "SetPolicies",
    "State",
    "Step",
    "TakeNumber",
    "applicable",
    "make_plan",
    "matches",
    "observe",
    "renamed",
    "renamed_numbers",
    "renamed_topic",
    "scope_of",
    "select",
]
