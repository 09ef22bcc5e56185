"""`schemactl apply`: makes or reads a plan, and executes it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from schemactl.cli import NEGATIVE, Context
from schemactl.cli.parser import add_options
from schemactl.cli.plan import add_arguments, planned
from schemactl.cli.time_limit import add_timeout, limited
from schemactl.errors import PartlyApplied, SchemactlError, StalePlan, UsageError

if TYPE_CHECKING:
    from schemactl.cli.reviewed_plan import Review
    from schemactl.deadline import Deadline
    from schemactl.plan import Plan, PlanStep
    from schemactl.registry import Registry

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
        "  schemactl apply plan.json --result result.json\n"
        "  schemactl apply --require-approved sha256:4f6c...   a new plan, but only if it is the one that was approved\n"
    )
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="a file that `schemactl plan --out` wrote")
    add_arguments(parser)
    # A plan file carries its position; without one, the target is where the project file says.
    parser.set_defaults(at=None)
    add_options(
        parser,
        "--auto-approve, --yes: do not ask before applying a new plan",
        "--require-approved DIGEST: apply only the plan that was reviewed: the one with this digest, as `schemactl plan` prints it; does not ask for confirmation",
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
        type=_parallel,
        default=8,
    )
    add_timeout(parser)


def _parallel(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PARALLEL:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {_MOST_PARALLEL}")
    return int(text)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: applied; 1: not applied; 3: partly, or messages would be misread; 4: the plan is stale; 100: all of it would be rejected."""
    return limited(args.timeout, lambda deadline: _run(args, context, deadline))


def _run(args: argparse.Namespace, context: Context, deadline: Deadline | None) -> int:
    from schemactl.cli.reviewed_plan import reviewed
    from schemactl.report.plan_text import render

    with (reviewed if args.plan else planned)(args, context) as (plan, registry, review):
        if plan.refusals or not plan.steps or not args.plan:
            context.report(render(plan, color=context.color))
        if plan.refusals and (args.fail_fast or only_restores(plan)):
            print_restored(plan, registry)
            return NEGATIVE
        if plan.steps and args.require_approved is not None:
            _expect_approved(plan, registry, args.require_approved)
        elif plan.steps and not args.plan and not args.auto_approve and not confirmed():
            return SchemactlError.exit_code
        return carry_out(plan, registry, args, context, review, deadline)


def only_restores(plan: Plan) -> bool:
    """Whether the plan does nothing but what `print_restored` does."""
    from schemactl.plan import RestoreStrategy

    return all(isinstance(step, RestoreStrategy) for step in plan.steps)


def print_restored(plan: Plan, registry: Registry) -> None:
    """Restore, and report, the topics that a killed `apply` left relaxed: that is done whatever becomes of the rest."""
    from schemactl.apply import restore_left, restored_line
    from schemactl.plan import RestoreStrategy

    names = {step.name for step in plan.steps if isinstance(step, RestoreStrategy)}
    for name, own in restore_left(registry, names):
        print(restored_line(name, own))


def _expect_approved(plan: Plan, registry: Registry, approved: str) -> None:
    from schemactl.plan.file import plan_digest

    found = plan_digest(plan)
    if found != approved:
        print_restored(plan, registry)
        raise StalePlan(
            f"this is not the plan that was approved: its digest is {found}, approved was {approved[:80]}; nothing was changed",
            fix="have the new plan reviewed: schemactl plan",
        )


def carry_out(
    plan: Plan,
    registry: Registry,
    args: argparse.Namespace,
    context: Context,
    review: Review | None = None,
    deadline: Deadline | None = None,
) -> int:
    """Carry out the plan, record what is done in its result file, and return the exit code of `apply`."""
    from schemactl.apply import Result, apply_plan, as_planned
    from schemactl.cli.apply_progress import ApplyProgress
    from schemactl.cli.apply_record import ApplyRecord
    from schemactl.report import numbers_text
    from schemactl.report.plan_text import render_result

    progress = ApplyProgress(len(plan.steps), context)
    # Before the first step: a file that cannot be written must stop the apply.
    record = ApplyRecord(plan, args.result, context)

    def ended(number: int, step: PlanStep) -> None:
        record.add(number)
        progress.ended(number, step)

    def waiting() -> None:
        if deadline is not None:
            # An alarm could interrupt what puts things right after the first one.
            deadline.end()
            deadline.look()
        record.sync()
        progress.tick()

    try:
        with _terminated_as_interrupted():
            result = apply_plan(
                plan,
                registry,
                begun=progress.begun,
                progress=ended,
                waiting=waiting,
                review=review or as_planned,
                parallel=args.parallel,
                fail_fast=args.fail_fast,
            )
    except SchemactlError as error:
        record.end(Result(plan, stopped=error), registry)
        raise
    finally:
        progress.end()
    record.end(result, registry)
    if plan.steps:
        context.report(render_result(result, color=context.color))
    if result.failure is not None:
        if result.is_stale or not result.done:
            return StalePlan.exit_code if result.is_stale else result.failure.exit_code
        return PartlyApplied.exit_code
    if plan.misread and plan.steps:
        context.report(
            "\n" + numbers_text.render(plan.misread, target=plan.origin.target, color=context.color)
        )
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
    """Let SIGTERM, with which pipelines are cancelled, end an apply as orderly as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
