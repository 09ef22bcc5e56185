"""`schemactl apply`: makes or reads a plan, and executes it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import Parser, add_options, number
from schemactl.cli.plan import add_arguments, planned
from schemactl.cli.several_targets import AskedTargets, side_by_side, succeeded, worst
from schemactl.cli.time_limit import add_timeout
from schemactl.core.deadline import OutOfTime, within
from schemactl.core.errors import NEGATIVE, PartlyApplied, SchemactlError, StalePlan, UsageError

if TYPE_CHECKING:
    from schemactl.cli.ready_plan import ReadyPlan
    from schemactl.core.deadline import Deadline
    from schemactl.deploy.apply import Result
    from schemactl.deploy.steps import Plan, PlanStep
    from schemactl.registry.interface import Registry

_MOST_PARALLEL: Final = 64


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `apply`."""
    parser.description = (
        "Bring a registry to what Git approved: policies, topics, and the missing versions, oldest first. With a plan "
        "file, apply exactly that plan, if the registry has not changed since; without one, make a new plan and show it "
        "first."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl apply                           plan, ask, apply\n"
        "  schemactl apply --auto-approve            without asking: in a pipeline\n"
        "  schemactl apply plan.json                 what `schemactl plan --out plan.json` showed\n"
        "  schemactl apply --all-targets --auto-approve    every target, side by side\n"
        "  schemactl apply plan.json --result result.json\n"
        "  schemactl apply --expect-digest sha256:4f6c...   a new plan, but only if it is the one that was approved\n"
    )
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="a file that `schemactl plan --out` wrote")
    add_arguments(parser)
    # A plan file carries its position; without one, the target is where the project file says.
    parser.set_defaults(at=None, base=None)
    if isinstance(parser, Parser):
        parser.renamed = {
            "--at": "schemactl plan --at REF --out plan.json && schemactl apply plan.json",
            "--require-approved": "--expect-digest DIGEST",
        }
    add_options(
        parser,
        "--auto-approve, --yes: do not ask before applying a new plan",
        "--expect-digest DIGEST: apply only the plan that was reviewed: the one with this digest, as `schemactl plan` prints it; does not ask for confirmation",
    )
    add_carrying_out(parser)


def add_carrying_out(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a plan is carried out."""
    add_options(
        parser,
        "--result FILE: write what was done, what was not, and the numbers of the touched topics with their commits to FILE as JSON (in a folder: result.json)",
        "--fail-fast: do nothing of a plan that leaves something out, and stop at the first failure",
    )
    add_options(
        parser,
        "--parallel N: so many topics are worked on at once (default: 8)",
        type=number(1, _MOST_PARALLEL),
        default=8,
    )
    add_timeout(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: applied; 1: not applied; 3: partly, or messages would be misread; 4: the plan is stale; 100: all of it would be rejected."""
    return within(args.timeout, lambda deadline: _run(args, context, deadline))


def _run(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    from schemactl.cli.reviewed_plan import reviewed

    asked = AskedTargets.of(args)
    if args.plan:
        asked.expect_one(args.plan, lambda _: f"schemactl apply {quote(args.plan)}")
        with reviewed(args, context) as ready:
            return worst(_applied([ready], args, context, deadline))
    if args.result:
        asked.expect_one("--result", "schemactl apply --target {0} --result {0}.json".format)
    if args.expect_digest is not None:
        asked.expect_one("--expect-digest", "schemactl apply --target {} --expect-digest DIGEST".format)
    with planned(asked, args, context) as (targets, found):
        codes: list[int] = []
        plans = list(succeeded(found, codes, context))
        return targets.exit_code([*codes, *_applied(plans, args, context, deadline)])


def _applied(
    plans: list[ReadyPlan], args: argparse.Namespace, context: Context, deadline: Deadline
) -> list[int]:
    """Show the plans, ask for confirmation if needed, carry them out in parallel, and return the exit code of each."""
    from schemactl.report.plan import render

    codes, left = [], []
    for each in plans:
        plan = each.plan
        if plan.refusals or not plan.steps or not args.plan:
            context.report(render(plan, color=context.color) + ("\n" if each.target.context.subject else ""))
        if is_left_undone(each, args):
            codes.append(NEGATIVE)
        else:
            left.append(each)
    with_steps = [each for each in left if each.plan.steps]
    if with_steps and args.expect_digest is not None:
        _expect_approved(with_steps[0].plan, with_steps[0].target.registry, args.expect_digest)
    elif with_steps and not args.plan and not args.auto_approve and not confirmed():
        return [*codes, SchemactlError.exit_code]
    return [*codes, *carry_out(left, args, deadline)]


def is_left_undone(ready: ReadyPlan, args: argparse.Namespace) -> bool:
    """Return whether a plan that leaves something out must not be carried out; if so, restore relaxed topics all the same."""
    from schemactl.deploy.steps import RestoreStrategy

    plan = ready.plan
    only_restores = all(isinstance(step, RestoreStrategy) for step in plan.steps)
    if plan.refusals and (args.fail_fast or only_restores or plan.may_lose):
        _print_restored(plan, ready.target.registry)
        return True
    return False


def _print_restored(plan: Plan, registry: Registry) -> None:
    """Restore the topics that a killed `apply` left relaxed, and print them; this is done even if nothing else is."""
    from schemactl.deploy.apply import restore_left
    from schemactl.deploy.steps import RestoreStrategy

    names = {step.name for step in plan.steps if isinstance(step, RestoreStrategy)}
    for line in restore_left(registry, names):
        print(line)


def _expect_approved(plan: Plan, registry: Registry, approved: str) -> None:
    from schemactl.deploy.plan_file import plan_digest

    found = plan_digest(plan)
    if found != approved:
        _print_restored(plan, registry)
        raise StalePlan(
            f"this is not the plan that was approved: its digest is {found}, approved was {approved[:80]}; nothing was changed",
            fix="have the new plan reviewed: schemactl plan",
        )


class _Interruption:
    """Passes an interrupt of the main thread on to the threads that apply, so that each restores what it relaxed.

    Args:
        deadline: the time limit.
        several: whether there are several targets.
    """

    def __init__(self, deadline: Deadline, *, several: bool) -> None:
        self._deadline = deadline
        self._several = several
        self._error: BaseException | None = None

    def stop(self, error: BaseException) -> bool:
        """Remember the interrupt; return True, to wait for all threads."""
        self._error = error
        self._deadline.end()
        return True

    def look(self) -> None:
        """Raise the interrupt, or OutOfTime, in the thread that calls this."""
        if self._error is not None:
            raise self._error
        if not self._several:
            # An alarm could interrupt what puts things right after the first one.
            self._deadline.end()
            self._deadline.look()


def carry_out(plans: Sequence[ReadyPlan], args: argparse.Namespace, deadline: Deadline) -> list[int]:
    """Carry out the plans of different targets in parallel, and return their exit codes; raise the error of a single one."""
    # An interrupt ends git, too: what is asked meanwhile, another one answers.
    for each in plans:
        each.target.context.close()
    interruption = _Interruption(deadline, several=len(plans) > 1)
    with _terminated_as_interrupted():
        results = side_by_side(
            [partial(_carry_out, each, args, interruption) for each in plans], stop=interruption.stop
        )
    return [_report(result, each) for each, result in zip(plans, results, strict=True)]


def _carry_out(ready: ReadyPlan, args: argparse.Namespace, interruption: _Interruption) -> Result:
    """Carry out one plan, and record what is done in its result file."""
    from schemactl.cli.apply_progress import ApplyProgress
    from schemactl.cli.apply_record import ApplyRecord
    from schemactl.deploy.apply import Result, apply_plan, as_planned

    plan, registry, context = ready.plan, ready.target.registry, ready.target.context
    progress = ApplyProgress(len(plan.steps), context)
    # Before the first step: a file that cannot be written must stop the apply.
    record = ApplyRecord(ready, args.result)

    def ended(number: int, step: PlanStep) -> None:
        record.add(number)
        progress.ended(number, step)

    def tick() -> None:
        interruption.look()
        record.sync()
        progress.tick()

    try:
        result = apply_plan(
            plan,
            registry,
            begun=progress.begun,
            progress=ended,
            waiting=tick,
            review=ready.review or as_planned,
            parallel=args.parallel,
            fail_fast=args.fail_fast,
        )
    except SchemactlError as error:
        record.end(Result(plan, stopped=error), registry)
        raise
    except (KeyboardInterrupt, OutOfTime) as error:
        if not context.subject:
            raise
        # Other targets may have been changed, and their results are to be reported.
        raise SchemactlError("interrupted before the first step") from error
    finally:
        progress.end()
    record.end(result, registry)
    return result


def _report(result: Result | SchemactlError, ready: ReadyPlan) -> int:
    """Print what was done, and return the exit code of `apply`; raise the error if there is only one target."""
    from schemactl.report import drift
    from schemactl.report.plan import render_result

    plan, context = ready.plan, ready.target.context
    if isinstance(result, SchemactlError):
        if not context.subject:
            raise result
        context.report(f"{context.subject}: {result}")
        return result.exit_code
    if plan.steps:
        subject = f"{context.subject}: " if context.subject else ""
        context.report(subject + render_result(result, color=context.color))
    if result.failure is not None:
        if result.is_stale or not result.done:
            return StalePlan.exit_code if result.is_stale else result.failure.exit_code
        return PartlyApplied.exit_code
    if plan.misread and plan.steps:
        context.report("\n" + drift.render(plan.misread, target=plan.origin.target, color=context.color))
        return PartlyApplied.exit_code
    if plan.refusals:
        return PartlyApplied.exit_code
    return NEGATIVE if plan.misread else 0


def confirmed() -> bool:
    """Ask the user, at a terminal, and return whether the answer is yes."""
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask for confirmation: standard input is not a terminal",
            fix="use --auto-approve, or apply a reviewed plan: schemactl plan --out plan.json",
        )
    print("\nApply this? Only `yes` goes ahead: ", end="", file=sys.stderr, flush=True)
    answered = sys.stdin.readline().strip() == "yes"
    if not answered:
        print("Nothing was applied.")
    return answered


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM, which cancels pipelines, as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
