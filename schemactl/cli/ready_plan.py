"""A plan that can be carried out, made or read from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemactl.cli.several_targets import OpenTarget
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.steps import Plan
    from schemactl.history import History


@dataclass(frozen=True, slots=True)
class ReadyPlan:
    """A plan that can be carried out.

    Attributes:
        plan: the plan.
        target: its target.
        then: the approved history that it was made from; None: nothing was approved yet.
        review: verifies a plan that was read from a file; None for a plan that was just made.
    """

    plan: Plan
    target: OpenTarget
    then: History | None
    review: Callable[[RegistryState], None] | None = None
