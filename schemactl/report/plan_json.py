"""The result of a plan as JSON; keys are not renamed within a format version."""

from __future__ import annotations

import time
from typing import Final

from schemactl.core.json_values import Json
from schemactl.deploy.apply import Result
from schemactl.deploy.plan_file import FORMAT_VERSION, document
from schemactl.deploy.steps import Plan

UNTRIED: Final = "not tried: a step of its topic, or of its namespace, failed"


def result_document(result: Result, run: Json | None = None, topics: list[Json] | None = None) -> Json:
    """Return what `apply --result` writes, for the time when it has ended.

    Args:
        result: what was done, what was not, and why.
        run: what ran it, if that was a build server (see `build_server`).
        topics: the version numbers afterwards (see `target_numbers.pairs`); None: they were not read.
    """
    return {
        **_begin(result.plan, run),
        "outcome": _outcome(result),
        "failure": None if result.failure is None else str(result.failure),
        "left": [{"step": number, "reason": _reason(result, number)} for number, _ in result.left],
        "topics": topics,
        "done": list(result.done),
    }


def started_document(plan: Plan, run: Json | None) -> Json:
    """Return the same for the time while it runs, and for ever if it is killed: numbers of steps follow in `done`."""
    return {
        **_begin(plan, run),
        "outcome": "started",
        "failure": None,
        "left": None,
        "topics": None,
        "done": [],
    }


def _begin(plan: Plan, run: Json | None) -> Json:
    values = document(plan)
    return {
        "format_version": FORMAT_VERSION,
        **{key: values[key] for key in ("schemactl", "target", "registry", "approved", "whole")},
        "time_s": int(time.time()),
        "ci": run,
        "plan": values["digest"],
        "steps": values["steps"],
        "left_out": values["left_out"],
    }


def _outcome(result: Result) -> str:
    if not result.left and not result.plan.refusals and result.failure is None:
        return "applied"
    return "partly applied" if result.done else "failed"


def _reason(result: Result, number: int) -> str:
    return str(result.failures.get(number) or result.stopped or UNTRIED)
