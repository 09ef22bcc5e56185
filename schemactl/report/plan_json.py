"""A plan and its result as JSON; keys are not renamed within a format version."""

from __future__ import annotations

from schemactl.apply import Result
from schemactl.json_values import Json, json_text
from schemactl.plan import Plan
from schemactl.plan.file import FORMAT_VERSION, document, step_document


def render(plan: Plan, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """Return the plan as indented JSON: what `plan --out` writes, and `apply` takes."""
    return json_text(document(plan))


def result_document(result: Result, topics: list[Json] | None = None) -> Json:
    """Return what `apply --result` writes: the plan's digest, what was done, what was not, and why.

    The outcome is `applied`, `partly applied`, `failed` (nothing was done), or `started`: not ended, or killed.
    `topics` has the version numbers afterwards (see `target_numbers.pairs`); None: the registry could not be read.
    """
    steps = [step_document(step) for step in result.plan.steps]
    plan = document(result.plan)
    return {
        "format_version": FORMAT_VERSION,
        **{key: plan[key] for key in ("schemactl", "target", "registry", "approved")},
        "plan": plan["digest"],
        "outcome": _outcome(result),
        "done": steps[: result.done],
        "left": steps[result.done :],
        "failure": None if result.failure is None else str(result.failure),
        "topics": topics,
    }


def _outcome(result: Result) -> str:
    if result.failure is None:
        return "started" if result.left else "applied"
    return "partly applied" if result.done else "failed"
