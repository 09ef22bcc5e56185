"""`apply`: carry out a plan on a target, a new one or the plan of a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from difflib import unified_diff
from itertools import takewhile
from operator import eq
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import ApplyRecord, ReadyPlan
from schemactl.cli.context import Context
from schemactl.cli.parser import Parser, add_options
from schemactl.cli.permission_options import PERMISSION_OPTIONS, find_missing_permissions, format_apply_command
from schemactl.cli.plan import (
    PlanRequest,
    add_plan_arguments,
    format_command_after_merge,
    make_plans,
    reject_options,
    render_plan_file,
)
from schemactl.cli.ready_plans import (
    add_apply_options,
    ask_for_confirmation,
    carry_out,
    must_not_apply,
    record_not_applied,
    restore_leftover_topics,
)
from schemactl.cli.rebuild import make_rebuild_plan
from schemactl.cli.target_selection import (
    OpenTarget,
    TargetSelection,
    choose_target,
    format_target_option,
    read_environment_target,
    select_exit_code,
)
from schemactl.cli.topic_selection import resolve_relative_path
from schemactl.core.errors import ExitCode, SchemactlError, StalePlan, UsageError
from schemactl.core.terminal import clean, paint_diff

if TYPE_CHECKING:
    from schemactl.deploy.receipt import Receipt
    from schemactl.history.approved_history import History


_MAX_DIFF_LINES: Final = 5_000
"""Longer texts get a simple diff, because the time of a minimal diff grows with the square of the lines."""


def configure_apply(parser: Parser) -> None:
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
    add_plan_arguments(parser)
    # A plan file carries its position; without one, the target is where the project file says.
    parser.set_defaults(at=None, base=None)
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
    add_apply_options(parser)


def run_apply(args: argparse.Namespace, context: Context) -> int:
    """Return 0: applied; 1: not applied; 3: partly, or messages would be misread; 4: the plan is stale; 100: all of it would be rejected."""
    selection = TargetSelection.from_arguments(args)
    context.result["targets"] = []
    if args.plan:
        selection.require_one(args.plan, lambda _: f"schemactl apply {quote(args.plan)}")
        with _open_plan_file(args, context) as ready:
            return select_exit_code(_run_plans([ready], args, context))
    if args.result:
        selection.require_one("--result", "schemactl apply --target {0} --result {0}.json".format)
    if args.expect_digest is not None:
        selection.require_one("--expect-digest", "schemactl apply --target {} --expect-digest DIGEST".format)
    with make_plans(selection, args, context) as (targets, plans_by_target):
        codes: list[int] = []
        plans: list[ReadyPlan] = []
        for name, result in plans_by_target.items():
            if isinstance(result, SchemactlError):
                context.report(f"{name}: {result}\n")
                context.result["targets"].append({"target": name, "problem": str(result)})
                codes.append(result.exit_code)
            else:
                plans.append(result)
        return targets.exit_code([*codes, *_run_plans(plans, args, context)])


def _run_plans(plans: list[ReadyPlan], args: argparse.Namespace, context: Context) -> list[int]:
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
            codes.append(ExitCode.NEGATIVE)
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
            return [*codes, ExitCode.ERROR]
        # The registry may have changed while the user read the plan.
        remaining = [replace(ready, is_current=False) for ready in remaining]
    return [*codes, *carry_out(remaining, args, context)]


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
    from schemactl.deploy.apply import ApplyResult
    from schemactl.deploy.receipt import read_receipt
    from schemactl.history.approved_history import Position
    from schemactl.history.target_history import view_on_target

    # Read the file, and open the target that it names.
    shaping_permissions = (option.name for option in PERMISSION_OPTIONS if not option.consequence)
    reject_options(args, context, ("topic", "namespace", *shaping_permissions), ": give it to `schemactl plan`")
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
    if commit := receipt.approved.commit:
        line = approved.full_history
        known_commit = context.repository.commit(commit.id)
        if known_commit is None or known_commit.id != commit.id or not line.has(known_commit):
            raise SchemactlError(
                f"{args.plan} was made at commit {commit.short}, which is not in the approved history of this repository ({line.ref}): "
                "the plan is from another repository, this clone is behind, or history was rewritten",
                fix=f"git fetch; or {remake_fix}",
            )
        ref = receipt.approved.ref
        position = Position(ref, ref, known_commit)
        history = view_on_target(context.repository, line.view_until(position), place.project, place.target)

    with closing(place.open(context)) as registry:
        # Make the plan again, and compare.
        target = OpenTarget(place, history, registry, context)
        try:
            ready = _remake_plan(receipt, target, args.plan, args.results)
        except UsageError as error:
            raise StalePlan(
                f"{args.plan} cannot be made again: {error.message}; nothing was changed", fix=remake_fix
            ) from error
        try:
            _reject_changed_plan(ready, receipt, args.plan, remake_fix)
            _reject_unpermitted_plan(ready, args)
            _reject_deletions_of_declared_topics(
                ready,
                history if history.later_commit_count < approved.later_commit_count else approved,
                args.plan,
                remake_fix,
            )
        except SchemactlError as error:
            if not isinstance(error, UsageError):
                ApplyRecord(ready, args.result).end(ApplyResult(ready.plan, stopped=error), registry)
            raise
        yield ready


def _remake_plan(receipt: Receipt, target: OpenTarget, file: str, results: list[str]) -> ReadyPlan:
    """Return the plan that the options of a receipt, and the results of other targets, lead to now.

    Raises:
        UsageError: if they name something that the approved history does not have.
    """
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.deploy.version_lists import pair_listed_versions

    options = argparse.Namespace(
        topic=receipt.scope.topics,
        namespace=receipt.scope.namespaces,
        numbers=file,
        results=results,
        **asdict(receipt.options),
    )
    if receipt.lists is None:
        request = PlanRequest.for_target(target, options)
        return request.plan(request.observe())
    git = rename_catalog(target.approved.full_history.catalog, target.names)
    lists = pair_listed_versions(receipt.lists, path=resolve_relative_path(file, target.context), git=git)
    return make_rebuild_plan(options, target, lists)[0]


def _reject_changed_plan(ready: ReadyPlan, receipt: Receipt, file: str, remake_fix: str) -> None:
    """Unless the plan has the digest of its receipt, print the difference of the texts, restore relaxed topics and raise StalePlan."""
    from schemactl.deploy.apply import restore_before_error
    from schemactl.deploy.plan_json import plan_digest

    plan, target = ready.plan, ready.target
    digest = plan_digest(plan)
    if digest == receipt.digest:
        return
    old_text, new_text = receipt.text, clean(render_plan_file(plan))
    old_lines, new_lines = old_text.split("\n"), new_text.split("\n")
    if max(len(old_lines), len(new_lines)) <= _MAX_DIFF_LINES:
        diff = [*unified_diff(old_lines, new_lines, file, "the plan now", lineterm="")]
    else:
        # One hunk from the first to the last difference.
        head = sum(1 for _ in takewhile(bool, map(eq, old_lines, new_lines)))
        old_rest, new_rest = old_lines[head:], new_lines[head:]
        tail = sum(1 for _ in takewhile(bool, map(eq, reversed(old_rest), reversed(new_rest))))
        removed, added = old_rest[: len(old_rest) - tail], new_rest[: len(new_rest) - tail]
        diff = [f"--- {file}", "+++ the plan now", f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@"]
        diff += [f"-{line}" for line in removed]
        diff += [f"+{line}" for line in added]
    if old_lines != new_lines:
        print("\n".join(paint_diff(line, color=target.context.color) for line in diff))
    if old_text.replace(receipt.digest, digest) == new_text:
        message = (
            "its text is the same, but its digest is not: the state that the plan expects of the registry has changed"
        )
    else:
        message = "the difference shows what has changed since it was made"
    ending = restore_before_error(target.registry, plan.relaxed_topics)
    raise StalePlan(f"{file} is stale: {message}; {ending}", fix=remake_fix)


def _reject_unpermitted_plan(ready: ReadyPlan, args: argparse.Namespace) -> None:
    """Unless the user permits what the plan destroys, or names its digest, restore relaxed topics and raise an error.

    Raises:
        UsageError: if an option permits something that the plan does not do; nothing is restored.
        SchemactlError: if a permission is missing.
    """
    from schemactl.deploy.apply import restore_before_error

    plan = ready.plan
    missing = find_missing_permissions(plan, args)
    if missing and args.expect_digest is None:
        ending = restore_before_error(ready.target.registry, plan.relaxed_topics)
        raise SchemactlError(
            f"{args.plan} {', and '.join(missing)}, which is not allowed here; {ending}",
            fix=f"if that was reviewed: {format_apply_command(plan, args.plan)}; or name the reviewed digest: --expect-digest DIGEST",
        )


def _reject_deletions_of_declared_topics(ready: ReadyPlan, approved: History, file: str, remake_fix: str) -> None:
    """If `approved` declares a topic whose schema the plan deletes, restore relaxed topics and raise StalePlan.

    A rebuild restores the schemas that it deletes.
    """
    from schemactl.deploy.apply import restore_before_error
    from schemactl.deploy.target_catalog import rename_catalog

    plan, target = ready.plan, ready.target
    if plan.lists is not None:
        return
    declared = rename_catalog(approved.catalog, target.names)
    needed = plan.needs
    for name in sorted(needed.delete | needed.force_delete):
        topic = declared.topics.get(name)
        if topic and topic.schema is not None:
            ending = restore_before_error(target.registry, plan.relaxed_topics)
            raise StalePlan(f"{file} deletes the schema of {name}, which is declared; {ending}", fix=remake_fix)
