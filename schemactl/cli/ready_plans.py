"""Carry out ready plans: ask for confirmation, apply them in parallel with progress on standard error, and print the results."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import ApplyRecord, ReadyPlan
from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import BAR_COLUMNS, Context, describe_progress, render_bar
from schemactl.cli.parallel_targets import run_in_parallel
from schemactl.cli.parser import add_options, add_parallel, add_timeout
from schemactl.core.deadline import Deadline, OutOfTime
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.core.json_values import list_members
from schemactl.core.terminal import get_raw_stream, get_terminal_width, wrap_text

if TYPE_CHECKING:
    from schemactl.deploy.apply import ApplyResult
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.steps.step import Step
    from schemactl.registry.interface import Registry


_SLOW_STEP_S: Final = 2.0
"""A step that takes longer is printed while it runs."""

_PROGRESS_INTERVAL_S: Final = 10.0
"""The interval of progress lines without a terminal."""

_REDRAW_INTERVAL_S: Final = 0.2

_MAX_LINE: Final = 120
"""The most characters of the progress line if the width of the terminal is not known."""


def add_apply_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `apply` and `rebuild` share: how a plan is carried out."""
    add_options(
        parser,
        "--result FILE: write the steps with their outcome, and the numbers of the changed topics with their commits, "
        "to FILE as JSON (in a folder: result.json)",
        "--fail-fast: do not start a plan that skips something, and stop at the first failure",
    )
    add_parallel(parser)
    add_timeout(parser)
    add_result_formats(parser)


def record_not_applied(ready: ReadyPlan) -> None:
    """Add a plan that is not carried out to the result of the command."""
    from schemactl.core.environment import get_ci_run
    from schemactl.report.apply_result import make_unapplied_document

    document = make_unapplied_document(ready.plan, get_ci_run())
    ready.target.context.result["targets"].append({"problem": None, **dict(list_members(document))})


def must_not_apply(plan: Plan, args: argparse.Namespace) -> bool:
    """Return whether nothing of a plan that leaves something out may be carried out, except to restore relaxed topics."""
    only_repairs = all(step.is_repair for step in plan.steps)
    return plan.leaves_out and (args.fail_fast or only_repairs or bool(plan.may_lose))


def restore_leftover_topics(plan: Plan, registry: Registry) -> None:
    """Restore the topics that a killed `apply` left relaxed, and print them; this is done even if the plan is not carried out."""
    from schemactl.deploy.apply import restore_left

    for line in restore_left(registry, plan.relaxed_topics):
        print(line)


class _Interruption:
    """Passes an interrupt of the main thread to the threads that apply, so that each restores its relaxed topics.

    Args:
        deadline: the time limit.
        several: whether there are several targets.
    """

    def __init__(self, deadline: Deadline, *, several: bool) -> None:
        self._deadline = deadline
        self._several = several
        self._error: BaseException | None = None

    def stop(self, error: BaseException) -> bool:
        """Record the interrupt, and return True to wait for all threads."""
        self._error = error
        self._deadline.end()
        return True

    def raise_if_stopped(self) -> None:
        """Raise the interrupt, or OutOfTime, in the calling thread."""
        if self._error is not None:
            raise self._error
        if not self._several:
            # A second alarm could interrupt the cleanup after the first one.
            self._deadline.end()
            self._deadline.look()


def carry_out(plans: Sequence[ReadyPlan], args: argparse.Namespace, context: Context) -> list[int]:
    """Carry out the plans of different targets in parallel, and return their exit codes; raise the error of a single one."""
    # An interrupt also ends the running git process.
    for ready in plans:
        ready.target.context.end_git()
    interruption = _Interruption(context.deadline, several=len(plans) > 1)
    results = run_in_parallel(
        [partial(_carry_out, ready, args, interruption) for ready in plans], stop=interruption.stop
    )
    return [_print_result(result, ready) for ready, result in zip(plans, results, strict=True)]


def _carry_out(ready: ReadyPlan, args: argparse.Namespace, interruption: _Interruption) -> ApplyResult:
    """Carry out one plan, and record what is done in its result file."""
    from schemactl.deploy.apply import ApplyResult, apply_plan

    plan, registry, context = ready.plan, ready.target.registry, ready.target.context
    progress = ApplyProgress(len(plan.steps), context)
    # Created before the first step, so that a file that cannot be written stops the apply.
    record = ApplyRecord(ready, args.result)

    def complete_step(number: int, step: Step) -> None:
        record.add(number)
        progress.print_step(number, step)

    def tick() -> None:
        interruption.raise_if_stopped()
        record.sync()
        progress.tick()

    try:
        result = apply_plan(
            plan,
            registry,
            on_step_started=progress.record_start,
            on_step_done=complete_step,
            on_wait=tick,
            parallel=args.parallel,
            fail_fast=args.fail_fast,
            is_current=ready.is_current,
        )
    except SchemactlError as error:
        record.end(ApplyResult(plan, stopped=error), registry)
        raise
    except (KeyboardInterrupt, OutOfTime) as error:
        if not context.subject:
            raise
        # Other targets may have changed, and their results are reported.
        raise SchemactlError("interrupted before the first step") from error
    finally:
        progress.clear()
    record.end(result, registry)
    return result


def _print_result(result: ApplyResult | SchemactlError, ready: ReadyPlan) -> int:
    """Print what was done, and return the exit code of `apply`; raise the error if there is only one target."""
    from schemactl.core.environment import get_ci_run
    from schemactl.report.apply_result import make_result_document, render_result
    from schemactl.report.target_blocks import render_misread_topics

    plan, context = ready.plan, ready.target.context
    if isinstance(result, SchemactlError):
        context.result["targets"].append({"target": plan.origin.target, "problem": str(result)})
        if not context.subject:
            raise result
        context.report(f"{context.subject}: {result}")
        return result.exit_code
    document = make_result_document(result, get_ci_run())
    context.result["targets"].append({"problem": None, **dict(list_members(document))})
    if plan.steps:
        subject = f"{context.subject}: " if context.subject else ""
        context.report(subject + render_result(result, color=context.color))
    if result.failure is not None:
        if result.is_stale or not result.done:
            return ExitCode.STALE_PLAN if result.is_stale else result.failure.exit_code
        return ExitCode.PARTLY_APPLIED
    if plan.misread and plan.steps:
        context.report("\n" + render_misread_topics(plan.misread, target=plan.origin.target, color=context.color))
        return ExitCode.PARTLY_APPLIED
    if plan.leaves_out:
        return ExitCode.PARTLY_APPLIED
    return ExitCode.NEGATIVE if plan.misread else 0


def ask_for_confirmation(args: argparse.Namespace) -> bool:
    """Ask the user, at a terminal, and return whether the answer is yes."""
    if args.format and "text" not in args.format:
        raise UsageError(
            "cannot ask for confirmation: without the format text, the plan is not shown",
            fix="use --auto-approve, or add --format text with --format json=FILE",
        )
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask for confirmation: standard input is not a terminal",
            fix="use --auto-approve, or apply a reviewed plan: schemactl plan --out plan.json",
        )
    print("\nApply this plan? Enter `yes` to continue: ", end="", file=sys.stderr, flush=True)
    is_confirmed = sys.stdin.readline().strip() == "yes"
    if not is_confirmed:
        print("Nothing was applied.")
    return is_confirmed


# Progress of an apply on standard error.


class ApplyProgress:
    """Prints a line for each step, and on a terminal one more line that is overwritten.

    Args:
        total: the number of steps.
        context: the context of the command.
    """

    def __init__(self, total: int, context: Context) -> None:
        self._total = total
        self._context = context
        self._is_terminal = sys.stderr.isatty() and not context.quiet
        self._json = context.json_progress("applying", "steps")
        # Several targets share the terminal, so no line can be overwritten.
        self._is_terminal &= not context.subject and not self._json
        self._began_s = self._shown_s = time.monotonic()
        self._under_way: dict[int, tuple[float, str]] = {}
        self._named: set[int] = set()
        self._done = 0

    def record_start(self, number: int, step: Step) -> None:
        """Note when a step starts, for the line about the steps under way."""
        self._under_way[number] = time.monotonic(), step.describe()

    def print_step(self, number: int, step: Step) -> None:
        """Print a completed step."""
        self._under_way.pop(number, None)
        self._done += 1
        if self._json:
            self._json(self._done, self._total)
            return
        self.clear()
        self._context.say(f"[{self._done}/{self._total}] {step.describe()}")

    def tick(self) -> None:
        """Print the running steps if the interval has passed."""
        if self._json:
            self._json(self._done, self._total)
            return
        now_s = time.monotonic()
        under_way = sorted(self._under_way.copy().items(), key=lambda item: item[1])
        if self._is_terminal:
            if now_s - self._shown_s >= _REDRAW_INTERVAL_S:
                self._shown_s = now_s
                columns = (get_terminal_width() or _MAX_LINE) - BAR_COLUMNS - 2
                line = wrap_text(f"{self._format_progress(now_s)}{_describe_oldest(under_way)}", columns).split("\n")[0]
                bar = render_bar(self._done, self._total)
                print(f"\r\x1b[K{bar} {line}", end="", file=get_raw_stream(sys.stderr), flush=True)
            return
        for step_number, (since_s, text) in under_way:
            if now_s - since_s >= _SLOW_STEP_S and step_number not in self._named:
                self._named.add(step_number)
                self._context.say(f"running for {now_s - since_s:.0f} s: {text}")
        if now_s - self._shown_s >= _PROGRESS_INTERVAL_S:
            self._shown_s = now_s
            self._context.say(f"{self._format_progress(now_s)}{_describe_oldest(under_way)}")

    def clear(self) -> None:
        """Erase the progress line."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=get_raw_stream(sys.stderr), flush=True)

    def _format_progress(self, now_s: float) -> str:
        return describe_progress(self._done, self._total, "steps", now_s - self._began_s)


def _describe_oldest(under_way: list[tuple[int, tuple[float, str]]]) -> str:
    """Describe the step that has been running for the longest time, and the number of other running steps."""
    if not under_way:
        return ""
    more = f" (and {len(under_way) - 1} more)" if len(under_way) > 1 else ""
    return f"; running: {under_way[0][1][1]}{more}"
