"""Render the result of an apply as text and JSON."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from schemactl.core.json_values import Json, make_view
from schemactl.core.names import TopicName
from schemactl.core.terminal import paint
from schemactl.core.wording import format_count
from schemactl.deploy.apply import ApplyResult
from schemactl.deploy.plan import Plan
from schemactl.deploy.plan_json import ApprovedView, SkippedDeclaration, SkippedName, make_plan_document
from schemactl.deploy.steps.step import Step
from schemactl.deploy.version_lists import ListedTopic
from schemactl.report.plan import count_changes, describe_left_out
from schemactl.report.target_blocks import make_unreadable_block

_MAX_UNTRIED: Final = 50
"""The maximum number of untried steps that are listed; the result file has all of them."""

_MAX_SEPARATE: Final = 3
"""The maximum number of failures for one reason that are shown separately."""

UNFINISHED: Final = "not finished when the apply ended: the registry may still execute it"

UNTRIED: Final = "not executed: an earlier step of its topic or namespace failed"


def render_result(result: ApplyResult, *, color: bool = False) -> str:
    """Return the failed, untried and left-out steps with their reasons, and the summary, as text."""
    plan = result.plan
    if not result.remaining_steps and not plan.leaves_out:
        return paint(f"Applied: {count_changes(plan.steps, 'registered', 'deleted')}.", "green", color=color)
    lines = []
    for numbers_of_steps in _group_failures(result):
        steps = [plan.steps[number - 1].describe() for number in numbers_of_steps]
        lines.append(f"Failed: {steps[0]}")
        if len(steps) > 1:
            lines += _indent([f"and {format_count(len(steps) - 1, 'step')} for the same reason:"])
            more = [f"and {len(steps) - 1 - _MAX_UNTRIED} more"] if len(steps) - 1 > _MAX_UNTRIED else []
            lines += _indent(_indent([*steps[1 : _MAX_UNTRIED + 1], *more]))
        lines += _indent(str(result.failures[numbers_of_steps[0]]).split("\n"))
    if result.stopped:
        lines += [f"Stopped: {result.stopped}"]
    if unfinished := [plan.steps[number - 1].describe() for number in result.unfinished]:
        lines += ["Not finished; the registry may still execute these steps:", *_indent(unfinished)]
    started = {*result.failures, *result.unfinished}
    if untried := [step.describe() for number, step in result.remaining_steps if number not in started]:
        more = [f"and {len(untried) - _MAX_UNTRIED} more"] if len(untried) > _MAX_UNTRIED else []
        lines += ["Not tried:", *_indent([*untried[:_MAX_UNTRIED], *more])]
    if plan.leaves_out:
        reasons = [f"{refusal.name}: {refusal.message}" for refusal in plan.refusals]
        reasons += [line.text for line in make_unreadable_block(plan.unreadable)[1:]]
        lines += ["Left out:", *_indent(reasons)]
    if result.remaining_steps:
        total = f"Applied {len(result.done)} of {format_count(len(plan.steps), 'step')}"
    else:
        total = f"Applied: {count_changes(plan.steps, 'registered', 'deleted')}"
    suffix = f"; left out: {describe_left_out(plan)}" if plan.leaves_out else ""
    lines.append(paint(f"{total}{suffix}.", "red", color=color))
    return "\n".join(lines)


def _group_failures(result: ApplyResult) -> list[list[int]]:
    """Return the numbers of the failed steps, together where the errors differ only in names, numbers and paths of the steps."""
    groups: dict[tuple[type, str], list[int]] = {}
    for number, error in result.failures.items():
        name = result.plan.steps[number - 1].name
        names = [name.topic, str(name.namespace_name)] if isinstance(name, TopicName) else [str(name)]
        reason = re.sub(r"\b(?:GET|PUT|POST|DELETE) \S+", "REQUEST", str(error))
        for word in names:
            reason = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", "NAME", reason)
        groups.setdefault((type(error), reason), []).append(number)
    grouped = []
    for group in groups.values():
        # A few failures are easier to read one after the other.
        grouped += [group] if len(group) > _MAX_SEPARATE else [[number] for number in group]
    return sorted(grouped)


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDocument:
    """The document that `apply --result` writes; keys are not renamed within a format version.

    Attributes:
        time_s: the time of writing, in seconds since the epoch.
        ci: the run of the build server (see `core.environment`).
        plan: the digest of the plan.
        left: the steps that were not carried out; null until the apply has ended.
        topics: the version numbers afterwards; null if they were not read.
        done: the numbers of the steps that were carried out.
    """

    format_version: int
    schemactl: str
    target: str
    registry: str
    approved: ApprovedView
    whole: bool
    time_s: int
    ci: Json | None
    plan: str
    steps: tuple[Step, ...]
    left_out: tuple[SkippedName | SkippedDeclaration, ...]
    outcome: Literal["started", "not applied", "applied", "partly applied", "failed"]
    failure: str | None = None
    left: tuple[RemainingStep, ...] | None = None
    topics: Sequence[ListedTopic] | None = None
    done: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RemainingStep:
    """A step that was not carried out, by its number, and the reason."""

    step: int
    reason: str


def make_result_document(
    result: ApplyResult, run: Json | None = None, topics: Sequence[ListedTopic] | None = None
) -> ResultDocument:
    """Return the document that `apply --result` writes when it has ended.

    Args:
        result: the result of the apply.
        run: the run of the build server (see `core.environment`), or None.
        topics: the version numbers afterwards, or None if they were not read.
    """
    outcome = "partly applied" if result.done else "failed"
    if not result.remaining_steps and not result.plan.leaves_out and result.failure is None:
        outcome = "applied"
    return _make_document(
        result.plan,
        run,
        outcome=outcome,
        failure=None if result.failure is None else str(result.failure),
        left=tuple(RemainingStep(number, _describe_remainder(number, result)) for number, _ in result.remaining_steps),
        topics=topics,
        done=tuple(result.done),
    )


def _describe_remainder(number: int, result: ApplyResult) -> str:
    """Return the reason why a step was not carried out."""
    if number in result.unfinished:
        return UNFINISHED
    return str(result.failures.get(number) or result.stopped or UNTRIED)


def make_started_document(plan: Plan, run: Json | None) -> ResultDocument:
    """Return the document that `apply --result` writes at its start; it keeps this content if `apply` is killed."""
    return _make_document(plan, run, outcome="started")


def make_unapplied_document(plan: Plan, run: Json | None) -> ResultDocument:
    """Return the document of a plan that was not carried out."""
    return _make_document(plan, run, outcome="not applied")


def _make_document(plan: Plan, run: Json | None, **values: Any) -> ResultDocument:
    document = make_plan_document(plan)
    return make_view(ResultDocument, document, time_s=int(time.time()), ci=run, plan=document.digest, **values)
