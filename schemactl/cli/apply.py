"""`schemactl apply`: makes or reads a plan, and executes it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.cli import NEGATIVE, Context
from schemactl.cli.parser import add_options
from schemactl.cli.plan import add_arguments, planned
from schemactl.cli.selection import output_file, target_of
from schemactl.errors import PartlyApplied, SchemactlError, StalePlan, UsageError

if TYPE_CHECKING:
    from schemactl.apply import Result
    from schemactl.cli.reviewed_plan import Review
    from schemactl.json_values import Json
    from schemactl.plan import Plan, PlanStep
    from schemactl.registry import Registry

RESULT_OPTION = "--result FILE: write what was done, what was not, and every number's commit to FILE as JSON (in a folder: result.json)"


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
    add_options(
        parser,
        "--auto-approve, --yes: do not ask before applying a new plan",
        "--require-approved DIGEST: apply only the plan that was reviewed: the one with this digest, as `schemactl plan` prints it; does not ask for confirmation",
        RESULT_OPTION,
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: applied; 1: not applied; 3: partly applied, or messages would be misread; 4: the plan is stale; 100: something would be rejected."""
    from schemactl.cli.reviewed_plan import reviewed
    from schemactl.report.plan_text import render

    with (reviewed if args.plan else planned)(args, context) as (plan, registry, review):
        if plan.refusals or not plan.steps or not args.plan:
            context.report(render(plan, color=context.color))
        if plan.refusals:
            print_restored(plan, registry)
            return NEGATIVE
        if plan.steps and args.require_approved is not None:
            _expect_approved(plan, registry, args.require_approved)
        elif plan.steps and not args.plan and not args.auto_approve and not confirmed():
            return SchemactlError.exit_code
        return carry_out(plan, registry, args, context, review)


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
    plan: Plan, registry: Registry, args: argparse.Namespace, context: Context, review: Review | None = None
) -> int:
    """Carry out the plan, write its result to the file that --result names, and return the exit code of `apply`."""
    from schemactl.apply import Result, apply_plan, as_planned
    from schemactl.plan.file import write_json
    from schemactl.report import numbers_text
    from schemactl.report.plan_json import result_document
    from schemactl.report.plan_text import describe, render_result

    def progress(number: int, step: PlanStep) -> None:
        context.say(f"[{number}/{len(plan.steps)}] {describe(step)}")

    topics = _correspondence(plan, registry, context) if args.result else None

    def record(result: Result) -> None:
        if topics:
            path = output_file(args.result, context, name="result.json")
            write_json(result_document(result, topics()), path, below=context.top)

    # Before the first step: a file that cannot be written must stop the apply, and a killed one must leave a trace.
    record(Result(plan, 0))
    try:
        with _terminated_as_interrupted():
            result = apply_plan(plan, registry, progress=progress, review=review or as_planned)
    except SchemactlError as error:
        record(Result(plan, 0, error))
        raise
    record(result)
    if plan.steps:
        context.report(render_result(result, color=context.color))
    if result.failure is not None:
        is_stale = isinstance(result.failure, StalePlan)
        return PartlyApplied.exit_code if result.done and not is_stale else result.failure.exit_code
    if plan.misread and plan.steps:
        context.report(
            "\n" + numbers_text.render(plan.misread, target=plan.origin.target, color=context.color)
        )
        return PartlyApplied.exit_code
    return NEGATIVE if plan.misread else 0


def _correspondence(plan: Plan, registry: Registry, context: Context) -> Callable[[], list[Json] | None]:
    """Return what asks, whenever it is called, which numbers the registry gave to Git's versions."""
    from schemactl import history
    from schemactl.model import Catalog
    from schemactl.plan import renamed
    from schemactl.target_numbers.pairs import topic_values

    git = Catalog()
    if plan.origin.tip is not None:
        # Warnings about the target have been printed before.
        place = target_of(plan.origin.target, replace(context, quiet=True))
        with history.Repository.open(context.directory) as repository:
            approved = history.read(
                repository, place.project, plan.origin.tip.id, progress=context.reading_history()
            )
        named = renamed(approved.catalog, place.target.namespaces)
        git = Catalog(topics={name: named.topics[name] for name in plan.scope.topics & named.topics.keys()})

    def values() -> list[Json] | None:
        try:
            return topic_values(git=git, registry=registry.read(plan.scope))
        except SchemactlError:
            return None

    return values


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
