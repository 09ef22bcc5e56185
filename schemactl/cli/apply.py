"""`apply` and `rebuild`: carry out a plan on a target, and restore the version numbers of a registry without schemas."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from difflib import unified_diff
from functools import partial
from itertools import takewhile
from operator import eq
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import ReadyPlan
from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import BAR_COLUMNS, Context, describe_progress, render_bar
from schemactl.cli.parser import Parser, add_options, add_parallel, add_timeout
from schemactl.cli.plan import (
    ALLOW_DATA_LOSS,
    ALLOW_UNREADABLE,
    CREATE_TENANTS_OPTION,
    PlanRequest,
    add_arguments,
    expect_no_options,
    find_needed_permissions,
    format_apply_command,
    format_command_after_merge,
    list_setting_addresses,
    make_plans,
    render_plan_file,
    write_plan,
)
from schemactl.cli.target_selection import (
    OpenTarget,
    TargetSelection,
    choose_target,
    format_target_option,
    open_targets,
    read_environment_target,
    report_failures,
    run_in_parallel,
    select_exit_code,
)
from schemactl.cli.topic_selection import add_selection, find, resolve_relative_path
from schemactl.core.deadline import OutOfTime, run_within
from schemactl.core.errors import NEGATIVE, PartlyApplied, SchemactlError, StalePlan, UsageError
from schemactl.core.names import find_matching_topics, select_topics
from schemactl.core.terminal import clean, get_raw_stream, get_terminal_width, paint_diff, wrap_text

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.deadline import Deadline
    from schemactl.core.names import TopicName
    from schemactl.deploy.apply import ApplyResult
    from schemactl.deploy.rebuild import Lists
    from schemactl.deploy.receipt import Receipt
    from schemactl.deploy.steps import Plan, PlanStep
    from schemactl.history import History
    from schemactl.registry.interface import Registry


_MAX_DIFF_LINES: Final = 5_000
"""Longer texts get a simple diff, because the time of a minimal diff grows with the square of the lines."""

_SLOW_STEP_S: Final = 2.0
"""A step that takes longer is printed while it runs."""

_PROGRESS_INTERVAL_S: Final = 10.0
"""The interval of progress lines without a terminal."""

_REDRAW_INTERVAL_S: Final = 0.2

_MAX_LINE: Final = 120
"""The most characters of the progress line if the width of the terminal is not known."""


# `schemactl apply`.


def configure_apply(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `apply`."""
    parser.description = (
        "Bring a registry to the approved state: policies, topics, and the missing versions, oldest first. With a plan "
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
        "  schemactl apply --expect-digest sha256:4f6c...   a new plan, but only if it equals the approved plan\n"
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
        "--auto-approve, --yes, -y: do not ask before applying a new plan",
        "--expect-digest DIGEST: apply only the plan that was reviewed: the one with this digest, as `schemactl plan` "
        "prints it; does not ask for confirmation",
    )
    add_carrying_out(parser)


def add_carrying_out(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a plan is carried out."""
    add_options(
        parser,
        "--result FILE: write the steps with their outcome, and the numbers of the changed topics with their commits, "
        "to FILE as JSON (in a folder: result.json)",
        "--fail-fast: do not start a plan that skips something, and stop at the first failure",
    )
    add_parallel(parser)
    add_timeout(parser)
    add_result_formats(parser)


def run_apply(args: argparse.Namespace, context: Context) -> int:
    """Return 0: applied; 1: not applied; 3: partly, or messages would be misread; 4: the plan is stale; 100: all of it would be rejected."""
    return run_within(args.timeout, lambda deadline: _run_apply(args, context, deadline))


def _run_apply(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    selection = TargetSelection.of(args)
    context.result["targets"] = []
    if args.plan:
        selection.expect_one(args.plan, lambda _: f"schemactl apply {quote(args.plan)}")
        with _open_plan_file(args, context) as ready:
            return select_exit_code(_run_plans([ready], args, context, deadline))
    if args.result:
        selection.expect_one("--result", "schemactl apply --target {0} --result {0}.json".format)
    if args.expect_digest is not None:
        selection.expect_one("--expect-digest", "schemactl apply --target {} --expect-digest DIGEST".format)
    with make_plans(selection, args, context) as (targets, plans_by_target):
        codes: list[int] = []
        plans = list(report_failures(plans_by_target, codes, context))
        context.result["targets"] += [
            {"target": name, "problem": str(result)}
            for name, result in plans_by_target.items()
            if isinstance(result, SchemactlError)
        ]
        return targets.exit_code([*codes, *_run_plans(plans, args, context, deadline)])


def _run_plans(plans: list[ReadyPlan], args: argparse.Namespace, context: Context, deadline: Deadline) -> list[int]:
    """Show the plans, ask for confirmation if needed, carry them out in parallel, and return the exit code of each."""
    from schemactl.deploy.plan_json import plan_digest
    from schemactl.report.plan import render_plan

    codes, remaining = [], []
    for ready in plans:
        plan = ready.plan
        if plan.leaves_out or not plan.steps or not args.plan:
            context.report(render_plan(plan, color=context.color) + ("\n" if ready.target.context.subject else ""))
        if must_not_apply(plan, args):
            restore_leftover_topics(plan, ready.target.registry)
            record_not_applied(ready)
            codes.append(NEGATIVE)
        else:
            remaining.append(ready)
    with_steps = [ready for ready in remaining if ready.plan.steps]
    if with_steps and args.expect_digest is not None:
        # --expect-digest takes one target.
        [ready] = with_steps
        digest = plan_digest(ready.plan)
        if digest != args.expect_digest:
            restore_leftover_topics(ready.plan, ready.target.registry)
            raise StalePlan(
                f"this is not the plan that was approved: its digest is {digest}, approved was {args.expect_digest[:80]}; "
                "nothing was changed",
                fix="have the new plan reviewed: schemactl plan",
            )
    elif with_steps and not args.plan and not args.auto_approve:
        if not ask_for_confirmation(args):
            for ready in remaining:
                record_not_applied(ready)
            return [*codes, SchemactlError.exit_code]
        # The registry may have changed while the user read the plan.
        remaining = [replace(ready, is_current=False) for ready in remaining]
    return [*codes, *carry_out(remaining, args, deadline)]


def record_not_applied(ready: ReadyPlan) -> None:
    """Add a plan that is not carried out to the result of the command."""
    from schemactl.core.environment import get_ci_run
    from schemactl.report.plan import make_unapplied_document

    ready.target.context.result["targets"].append(
        {"problem": None, **make_unapplied_document(ready.plan, get_ci_run())}
    )


def must_not_apply(plan: Plan, args: argparse.Namespace) -> bool:
    """Return whether nothing of a plan that leaves something out may be carried out, except to restore relaxed topics."""
    from schemactl.deploy.steps import RestoreStrategy

    only_restores = all(isinstance(step, RestoreStrategy) for step in plan.steps)
    return plan.leaves_out and (args.fail_fast or only_restores or bool(plan.may_lose))


def restore_leftover_topics(plan: Plan, registry: Registry) -> None:
    """Restore the topics that a killed `apply` left relaxed, and print them; this is done even if the plan is not carried out."""
    from schemactl.deploy.apply import restore_left

    for line in restore_left(registry, list_relaxed_topics(plan)):
        print(line)


def list_relaxed_topics(plan: Plan) -> set[TopicName]:
    """Return the topics whose strategy the plan restores."""
    from schemactl.deploy.steps import RestoreStrategy

    return {step.name for step in plan.steps if isinstance(step, RestoreStrategy)}


# A plan file.


@contextmanager
def _open_plan_file(args: argparse.Namespace, context: Context) -> Iterator[ReadyPlan]:
    """Make the plan of a plan file again, and yield it if it is the same and permitted, with its target's open registry.

    A person who can change the file can choose the target, the scope and the options, but not the steps: these follow from the approved
    history at the commit that the file names, and from the registry.

    Raises:
        UsageError: if an option does not apply to this plan.
        StalePlan: if the plan is another one now; the difference is printed.
        SchemactlError: if the file is not a plan, or the plan is of another repository or registry, or a permission is missing.
    """
    from schemactl.cli.apply_results import ApplyRecord
    from schemactl.core.json_values import read_commit
    from schemactl.deploy.apply import ApplyResult, restore_after
    from schemactl.deploy.receipt import read_receipt
    from schemactl.history import Position
    from schemactl.history.target_history import view_on_target

    # Read the file, and open the target that it names.
    shaping = ("topic", "namespace", "create_tenants")
    expect_no_options(args, context, shaping, ": give it to `schemactl plan`")
    plan_path = resolve_relative_path(args.plan, context)
    if not plan_path.exists() and args.plan in context.project()[0].targets:
        raise UsageError(
            f"apply {args.plan}: `apply` takes the file of a plan, or applies to a target",
            fix=f"schemactl apply --target {quote(args.plan)}",
        )
    receipt = read_receipt(plan_path)
    if receipt.proposed:
        raise SchemactlError(
            f"{args.plan} is the plan of a merge that is not approved yet; nothing was changed",
            fix=f"once it is merged: {format_command_after_merge(receipt)}",
        )
    environment_name = read_environment_target()
    if not args.target and environment_name not in (None, receipt.target):
        # The plan file names its target.
        context.note(f"{args.plan} is for {receipt.target}; {format_target_option(environment_name)} is ignored")
    for name in args.target:
        if name != receipt.target:
            raise UsageError(f"--target {name}: {args.plan} was made for {receipt.target}")
    remake_fix = f"make it again: schemactl {receipt.command} --target {quote(receipt.target)} --out {quote(args.plan)}"
    place = choose_target(receipt.target, context)
    target_name, registry_url = place.target.name, place.target.registry
    if registry_url != receipt.registry:
        raise SchemactlError(
            f"{args.plan} was made for {receipt.registry}, but target {target_name} is now {registry_url}",
            fix=remake_fix,
        )
    approved = context.approved(place.project, place.target)

    # Go back to the commit of the plan.
    history = approved
    if commit := read_commit(receipt.approved["commit"]):
        line = approved.full_history
        known_commit = context.repository.commit(commit.id)
        if known_commit is None or known_commit.id != commit.id or not line.has(known_commit):
            raise SchemactlError(
                f"{args.plan} was made at commit {commit.short}, which is not in the approved history of this repository ({line.ref}): "
                "the plan is from another repository, this clone is behind, or history was rewritten",
                fix=f"git fetch; or {remake_fix}",
            )
        ref = receipt.approved["ref"]
        position = Position(ref, ref, known_commit)
        history = view_on_target(context.repository, line.until(position), place.project, place.target)

    with closing(place.open(context)) as registry:
        # Make the plan again, and compare.
        target = OpenTarget(place, history, registry, context)
        try:
            ready = _make_again(receipt, target, args.plan, args.results)
        except UsageError as error:
            raise StalePlan(
                f"{args.plan} cannot be made again: {error.message}; nothing was changed", fix=remake_fix
            ) from error
        try:
            _expect_same(ready.plan, receipt, args.plan, remake_fix, context)
            _expect_permitted(ready.plan, args)
            _expect_undeclared(
                ready.plan,
                history if history.later_commit_count < approved.later_commit_count else approved,
                target,
                args.plan,
                remake_fix,
            )
        except SchemactlError as error:
            if not isinstance(error, UsageError):
                restore_after(error, registry, list_relaxed_topics(ready.plan))
                ApplyRecord(ready, args.result).end(ApplyResult(ready.plan, stopped=error), registry)
            raise
        yield ready


def _make_again(receipt: Receipt, target: OpenTarget, file: str, results: list[str]) -> ReadyPlan:
    """Return the plan that the options of a receipt, and the results of other targets, lead to now.

    Raises:
        UsageError: if they name something that the approved history does not have.
    """
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.deploy.version_lists import lists_of

    scope = receipt.scope
    names = {"topic": scope["topics"], "namespace": scope["namespaces"]}
    options = argparse.Namespace(**names, numbers=file, results=results, **receipt.options)
    if receipt.lists is None:
        request = PlanRequest.of(target, options)
        return request.plan(request.observe())
    git = rename_catalog(target.approved.full_history.catalog, target.names)
    lists = lists_of(receipt.lists, path=resolve_relative_path(file, target.context), git=git)
    return _make_rebuild(options, target, lists)[0]


def _expect_same(plan: Plan, receipt: Receipt, file: str, remake_fix: str, context: Context) -> None:
    """Print the difference of the texts and raise StalePlan unless the plan has the digest of its receipt."""
    from schemactl.deploy.plan_json import plan_digest

    digest = plan_digest(plan)
    if digest == receipt.digest:
        return
    old_text, new_text = receipt.text, clean(render_plan_file(plan))
    for line in _compare_texts(old_text.split("\n"), new_text.split("\n"), file):
        print(paint_diff(line, color=context.color))
    if old_text.replace(receipt.digest, digest) == new_text:
        message = (
            "its text is the same, but its digest is not: the state that the plan expects of the registry has changed"
        )
    else:
        message = "the difference shows what has changed since it was made"
    raise StalePlan(f"{file} is stale: {message}; nothing was changed", fix=remake_fix)


def _compare_texts(old_lines: list[str], new_lines: list[str], file: str) -> Iterator[str]:
    """Yield the unified diff of two texts. Long texts get one hunk from the first to the last difference."""
    if max(len(old_lines), len(new_lines)) <= _MAX_DIFF_LINES:
        yield from unified_diff(old_lines, new_lines, file, "the plan now", lineterm="")
    elif old_lines != new_lines:
        head = sum(1 for _ in takewhile(bool, map(eq, old_lines, new_lines)))
        old_rest, new_rest = old_lines[head:], new_lines[head:]
        tail = sum(1 for _ in takewhile(bool, map(eq, reversed(old_rest), reversed(new_rest))))
        removed, added = old_rest[: len(old_rest) - tail], new_rest[: len(new_rest) - tail]
        yield from (f"--- {file}", "+++ the plan now", f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@")
        yield from (f"-{line}" for line in removed)
        yield from (f"+{line}" for line in added)


def _expect_permitted(plan: Plan, args: argparse.Namespace) -> None:
    """Check that the user permits exactly what the plan destroys, or names the digest of the plan.

    Raises:
        UsageError: if an option permits something that the plan does not do.
        SchemactlError: if a permission is missing.
    """
    needed = find_needed_permissions(plan)
    deletions = (
        ("allow_delete", needed.delete, "deletes the schema of {}"),
        ("force_delete", needed.force_delete, "deletes the schema of {} by force"),
        ("allow_unreadable_messages", needed.unreadable, "makes messages of {} unreadable"),
    )
    unused_options = [
        f"--{option.replace('_', '-')} {text}"
        for option, names, _ in deletions
        for text in getattr(args, option)
        if not find_matching_topics(text, names, globs=option == "allow_delete")
    ]
    unused_options += [f"--allow-data-loss {text}" for text in args.allow_data_loss if text not in needed.lose]
    if args.relax_while_replaying and not needed.relax:
        unused_options.append("--relax-while-replaying")
    if unused_options:
        raise UsageError(f"{unused_options[0]}: {args.plan} does not do that; give the option to `schemactl plan`")
    if args.expect_digest is not None:
        return
    missing = [
        effect.format(name)
        for option, names, effect in deletions
        for name in sorted(names)
        if not any(find_matching_topics(text, [name], globs=option == "allow_delete") for text in getattr(args, option))
    ]
    missing += [f"sets {address}, which can lose messages" for address in sorted(needed.lose - {*args.allow_data_loss})]
    if needed.relax and not args.relax_while_replaying:
        missing.append("registers versions under ALWAYS_COMPATIBLE")
    if missing:
        raise SchemactlError(
            f"{args.plan} {', and '.join(missing)}, which is not allowed here; nothing was changed",
            fix=f"if that was reviewed: {format_apply_command(plan, args.plan)}; or name the reviewed digest: --expect-digest DIGEST",
        )


def _expect_undeclared(plan: Plan, approved: History, target: OpenTarget, file: str, remake_fix: str) -> None:
    """Raise StalePlan if `approved` declares a topic whose schema the plan deletes; a rebuild restores what it deletes."""
    from schemactl.deploy.target_catalog import rename_catalog

    if plan.lists is not None:
        return
    declared = rename_catalog(approved.catalog, target.names)
    needed = find_needed_permissions(plan)
    for name in sorted(needed.delete | needed.force_delete):
        topic = declared.topics.get(name)
        if topic and topic.schema is not None:
            raise StalePlan(
                f"{file} deletes the schema of {name}, which is declared; nothing was changed", fix=remake_fix
            )


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


def carry_out(plans: Sequence[ReadyPlan], args: argparse.Namespace, deadline: Deadline) -> list[int]:
    """Carry out the plans of different targets in parallel, and return their exit codes; raise the error of a single one."""
    # An interrupt also ends the running git process; later queries start a new one.
    for ready in plans:
        ready.target.context.close()
    interruption = _Interruption(deadline, several=len(plans) > 1)
    with _interrupt_on_sigterm():
        results = run_in_parallel(
            [partial(_carry_out, ready, args, interruption) for ready in plans], stop=interruption.stop
        )
    return [_print_result(result, ready) for ready, result in zip(plans, results, strict=True)]


def _carry_out(ready: ReadyPlan, args: argparse.Namespace, interruption: _Interruption) -> ApplyResult:
    """Carry out one plan, and record what is done in its result file."""
    from schemactl.cli.apply_results import ApplyRecord
    from schemactl.deploy.apply import ApplyResult, apply_plan

    plan, registry, context = ready.plan, ready.target.registry, ready.target.context
    progress = ApplyProgress(len(plan.steps), context)
    # Created before the first step, so that a file that cannot be written stops the apply.
    record = ApplyRecord(ready, args.result)

    def complete_step(number: int, step: PlanStep) -> None:
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
        progress.end()
    record.end(result, registry)
    return result


def _print_result(result: ApplyResult | SchemactlError, ready: ReadyPlan) -> int:
    """Print what was done, and return the exit code of `apply`; raise the error if there is only one target."""
    from schemactl.core.environment import get_ci_run
    from schemactl.report import drift
    from schemactl.report.plan import make_result_document, render_result

    plan, context = ready.plan, ready.target.context
    if isinstance(result, SchemactlError):
        context.result["targets"].append({"target": plan.origin.target, "problem": str(result)})
        if not context.subject:
            raise result
        context.report(f"{context.subject}: {result}")
        return result.exit_code
    context.result["targets"].append({"problem": None, **make_result_document(result, get_ci_run())})
    if plan.steps:
        subject = f"{context.subject}: " if context.subject else ""
        context.report(subject + render_result(result, color=context.color))
    if result.failure is not None:
        if result.is_stale or not result.done:
            return StalePlan.exit_code if result.is_stale else result.failure.exit_code
        return PartlyApplied.exit_code
    if plan.misread and plan.steps:
        context.report("\n" + drift.render_misread_topics(plan.misread, target=plan.origin.target, color=context.color))
        return PartlyApplied.exit_code
    if plan.leaves_out:
        return PartlyApplied.exit_code
    return NEGATIVE if plan.misread else 0


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


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM, which cancels pipelines, as Ctrl-C."""
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


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
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty() and not context.quiet
        self._json = context.json_progress("applying", "steps")
        # Several targets share the terminal, so no line can be overwritten.
        self._is_terminal &= not context.subject and not self._json
        self._began_s = self._shown_s = time.monotonic()
        self._under_way: dict[int, tuple[float, str]] = {}
        self._named: set[int] = set()
        self._done = 0

    def record_start(self, number: int, step: PlanStep) -> None:
        """Record the start of a step."""
        self._under_way[number] = time.monotonic(), step.describe()

    def print_step(self, number: int, step: PlanStep) -> None:
        """Print a completed step."""
        self._under_way.pop(number, None)
        self._done += 1
        if self._json:
            self._json(self._done, self._total)
            return
        self._clear()
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

    def end(self) -> None:
        """Erase the progress line."""
        self._clear()

    def _clear(self) -> None:
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


# `schemactl rebuild`.


def configure_rebuild(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rebuild`."""
    parser.description = (
        "Restore the version numbers of a registry that lost its schemas, so that old messages can be decoded again. "
        "Shows the plan, asks, and verifies every number. FILE records the numbers that producers or deletions used; "
        "without FILE, the target's approved numbers file is used. Without either, the result is exact only if "
        "nothing except `apply` ever wrote to the registry."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl rebuild --target prod numbers.json          written by apply --result, or drift --format json\n"
        "  schemactl rebuild --target prod                       from its numbers file, else from Git alone\n"
        "  schemactl rebuild --target prod numbers.json --out plan.json    to be reviewed, then: schemactl apply plan.json\n"
        "  schemactl rebuild --target prod numbers.json --topic '*/orders' --force-delete shop/sales/orders\n"
    )
    parser.add_argument(
        "numbers",
        nargs="?",
        metavar="FILE",
        help="the newest file that `apply --result` or `drift --format json` wrote while the schemas were there "
        "(default: the target's approved numbers file)",
    )
    add_selection(parser)
    add_options(
        parser,
        "--force-delete TOPIC...: first delete the topic's current schema: messages written with it can then not be decoded",
        "--relax-while-replaying: register versions that today's strategy would reject, by setting ALWAYS_COMPATIBLE during the uploads",
        ALLOW_DATA_LOSS,
        ALLOW_UNREADABLE,
        CREATE_TENANTS_OPTION,
        "--out FILE: write the plan to FILE (in a folder: plan.json) for `schemactl apply FILE`; change nothing",
        "--auto-approve, --yes, -y: do not ask before the plan is applied",
    )
    add_carrying_out(parser)


def run_rebuild(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every list is restored; 1: not rebuilt; 3: partly; 4: changed by others meanwhile; 100: cannot be exact."""
    return run_within(args.timeout, lambda deadline: _run_rebuild(args, context, deadline))


def _run_rebuild(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    from schemactl.deploy.plan_json import plan_digest
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.deploy.version_lists import read_lists
    from schemactl.report.plan import render_plan

    context.result["targets"] = []
    with open_targets(TargetSelection([args.target]), context) as targets:
        [target] = targets.targets
        lists: Lists = {}
        if args.numbers:
            git = rename_catalog(target.approved.full_history.catalog, target.names)
            lists = read_lists(resolve_relative_path(args.numbers, context), target=target.name, git=git)
        ready, sources = _make_rebuild(args, target, lists)
        plan = ready.plan
        context.result["sources"] = sources
        context.report("\n".join([render_plan(plan, color=context.color), "", *sources]))
        if args.out:
            record_not_applied(ready)
            write_plan(plan, args, context)
            if plan.steps:
                print(f"Digest: {plan_digest(plan)}")
            return NEGATIVE if plan.misread or plan.leaves_out else 0
        if must_not_apply(plan, args):
            restore_leftover_topics(plan, target.registry)
            record_not_applied(ready)
            return NEGATIVE
        if plan.steps and not args.auto_approve and not ask_for_confirmation(args):
            record_not_applied(ready)
            return SchemactlError.exit_code
        return carry_out([ready], args, deadline)[0]


def _make_rebuild(args: argparse.Namespace, target: OpenTarget, lists: Lists) -> tuple[ReadyPlan, list[str]]:
    """Return the plan, and the sources of its numbers; `lists` come from the file `args.numbers`."""
    from schemactl.deploy.rebuild import find_recorded_lists, make_rebuild, without_versions
    from schemactl.deploy.registry_state import read_registry_state
    from schemactl.deploy.steps import Permissions
    from schemactl.deploy.target_catalog import find_scope, rename_catalog, select_applicable, select_known_part

    approved, numbers = target.approved, target.numbers
    full_catalog = rename_catalog(approved.full_history.catalog, target.names)
    selected = select_known_part(approved.catalog, topics=args.topic, namespaces=args.namespace, known=lists)
    git = rename_catalog(selected, target.names)
    requested_names = select_topics(lists, args.topic, args.namespace)
    # The user names Git's topics by their declared names, and other topics by the registry's names.
    file_lists = {
        name: pairs
        for name, pairs in lists.items()
        if name in git.topics or (name not in full_catalog.topics and name in requested_names)
    }
    lists = {**find_recorded_lists(select_applicable(git), numbers), **file_lists}
    # Topics that only the file has are named as in the file.

    def find_names(texts: list[str]) -> set[TopicName]:
        found_names = {name for name in (*git.topics, *lists) if name.schema_id in texts}
        known_ids = {name.schema_id for name in found_names}
        return found_names | {
            target.names.to_target(find(text, approved.catalog, globs=False).name)
            for text in texts
            if text not in known_ids
        }

    deletions = find_names(args.force_delete)
    for name in deletions:
        if name not in git.topics and name not in lists:
            raise UsageError(f"{name} is to be deleted first, but --topic or --namespace excludes it")
    permissions = Permissions(
        force_delete=frozenset(deletions),
        relax=args.relax_while_replaying,
        create_tenants=args.create_tenants,
        lose=frozenset(list_setting_addresses(args.allow_data_loss, target.names)),
        unreadable=frozenset(find_names(args.allow_unreadable_messages)),
    )
    plan = make_rebuild(
        read_registry_state(
            target.registry, find_scope(without_versions(select_applicable(git), lists)), deletions=deletions
        ),
        git,
        lists,
        interrupted={target.names.to_target(name) for name in selected.topics if approved.was_interrupted(name)},
        origin=target.origin,
        permissions=permissions,
        waivers=target.waivers,
        numbers=numbers,
    )
    files = {
        name: args.numbers if name in file_lists else f"the record {numbers.path if numbers else ''}" for name in lists
    }
    plan = replace(plan, whole=not (args.topic or args.namespace))
    return ReadyPlan(plan, target), list(_describe_sources(git, lists, files, plan))


def _describe_sources(git: Catalog, lists: Lists, files: Mapping[TopicName, str], plan: Plan) -> Iterator[str]:
    """Yield the sources of the numbers with their reliability; `files` has the source of each list."""
    from schemactl.deploy.target_catalog import select_applicable

    listed = [name for name, pairs in lists.items() if pairs]
    others = [
        topic.name
        for topic in plan.number_mismatches
        if topic.name not in listed and any(number.git != number.registry for number in topic.numbers)
    ]
    declared = [name for name, topic in select_applicable(git).topics.items() if topic.schema and name not in listed]
    numbered_by_git = [name for name in declared if name not in others]
    undeclared = [
        name for name, topic in git.topics.items() if topic.versions and not topic.schema and name not in listed
    ]
    for file in sorted({files[name] for name in listed}):
        names = [name for name in listed if files[name] == file]
        yield (
            f"Numbers of {_count_topics(names)}: taken from {file}; versions deleted since then are left out, and "
            "versions approved since then follow."
        )
    if numbered_by_git:
        yield f"Numbers of {_count_topics(numbered_by_git)}: Git's. They are correct if only `apply` ever wrote there."
    if others:
        yield f"Numbers of {_count_topics(others)}: the registry's, which are not Git's; no list says which versions they were."
    if undeclared:
        yield f"Left out: {_count_topics(undeclared)} without a schema in Git now, and without a list of numbers."


def _count_topics(names: list[TopicName]) -> str:
    return str(names[0]) if len(names) == 1 else f"{len(names)} topics"
