"""`schemactl plan`: what `apply` would do, with the registry's expected answer for every step."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from schemactl.cli import CHANGES, NEGATIVE, Context
from schemactl.cli.awaiting import awaited
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import (
    EnvironmentTarget,
    add_selection,
    approved_waivers,
    find,
    origin_of,
    output_file,
    recorded_numbers,
    relative_path,
    target_of,
    with_held,
)
from schemactl.cli.time_limit import add_timeout, limited
from schemactl.errors import UsageError
from schemactl.topic_match import is_glob, matching, require_matches

if TYPE_CHECKING:
    from schemactl.model import Catalog, TopicName
    from schemactl.plan import Plan
    from schemactl.registry import Registry


CREATE_TENANTS_OPTION: Final = (
    "--create-tenants: create missing tenants also where no file declares a namespace of them"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    parser.description = (
        "Compare the approved history with a registry and show, step by step, what apply would do and what the registry "
        "would answer. Changes nothing. Exits with 100 when the registry would reject an approved version, or when "
        "version numbers differ from Git's and no numbers file records it."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl plan                                      where the project has one target\n"
        "  schemactl plan --target prod --out plan.json        to be reviewed, then: schemactl apply plan.json\n"
        "  schemactl plan --target prod --detailed-exitcode    2: there are changes\n"
        "  schemactl plan --target prod --summary --skip 'shop/legacy/*'    the sums, without these topics\n"
        "  schemactl plan --target prod --at origin/main~3     not further than that commit\n"
        "  schemactl plan --allow-delete shop/sales/legacy\n"
        "  schemactl plan --allow-delete 'shop/sales/*'        of these, the topics that are no longer declared\n"
        "  schemactl plan show plan.json                       what a plan file says; nothing is asked\n"
    )
    parser.add_argument("action", nargs="?", choices=("show",), metavar="show", help="show a plan file")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="the file to show")
    add_arguments(parser)
    add_options(
        parser,
        "--at REF: plan for this commit of the approved first-parent line, not for the one that the target is at",
    )
    add_options(
        parser, "--out FILE: write the plan to FILE (in a folder: plan.json), for `schemactl apply FILE`"
    )
    add_format(parser)
    add_options(
        parser,
        "--summary: only the sums, and what is left out",
        "--detailed-exitcode: exit with 2 when there are changes",
    )
    add_timeout(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `plan` and `apply` share."""
    add_selection(parser)
    add_options(
        parser,
        "--allow-delete TOPIC...: delete the schema of a topic that is no longer declared: a tombstone takes the next number; a glob means all such topics",
        "--force-delete TOPIC...: the same, with all stored versions: numbering starts again at 0",
        "--relax-while-replaying: register approved versions that today's strategy would reject, by setting ALWAYS_COMPATIBLE meanwhile",
        CREATE_TENANTS_OPTION,
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: no changes, or no --detailed-exitcode; 2: changes; 100: something would be rejected, or messages misread."""
    if args.summary and args.format == "json":
        raise UsageError("--summary is for people: it has no JSON")
    if args.action:
        return _show(args, context)
    return limited(args.timeout, lambda _: _run(args, context))


def _run(args: argparse.Namespace, context: Context) -> int:
    from schemactl.cli.reviewed_plan import command_for
    from schemactl.plan.file import write

    with planned(args, context) as (plan, *_):
        out = output_file(args.out, context, name="plan.json") if args.out else None
        if out:
            write(plan, out, below=context.top)
        code = _print(plan, args, context)
        if out and plan.steps:
            context.say(f"To carry out exactly this: {command_for(plan, args.out, out)}")
    return code


def _show(args: argparse.Namespace, context: Context) -> int:
    if not args.plan:
        raise UsageError("plan show needs the file", fix="schemactl plan show plan.json")
    explicit = None if isinstance(args.target, EnvironmentTarget) else args.target
    for option in (
        "topic",
        "namespace",
        "allow_delete",
        "force_delete",
        "relax_while_replaying",
        "create_tenants",
        "at",
        "out",
    ):
        if getattr(args, option) or explicit:
            raise UsageError(
                f"--{option.replace('_', '-') if getattr(args, option) else 'target'} applies when a plan is made, not to "
                "`plan show`"
            )
    from schemactl.plan.file import read

    return _print(read(relative_path(args.plan, context)), args, context)


def _print(plan: Plan, args: argparse.Namespace, context: Context) -> int:
    """Print the plan and return the exit code of `plan`."""
    from schemactl.plan.file import plan_digest
    from schemactl.report import plan_json, plan_text

    if args.format == "json":
        print(plan_json.render(plan))
    else:
        render = plan_text.render_summary if args.summary else plan_text.render
        context.report(render(plan, color=context.color))
        if plan.steps:
            print(f"Digest: {plan_digest(plan)}")
    if plan.refusals or plan.misread:
        return NEGATIVE
    return CHANGES if plan.steps and args.detailed_exitcode else 0


@contextmanager
def planned(args: argparse.Namespace, context: Context) -> Iterator[tuple[Plan, Registry, None]]:
    """Yield the plan from approved history to the target's registry, and that registry, open; a new plan needs no review."""
    from schemactl.plan import Permissions, make_plan, observe, renamed, scope_of, select

    chosen = target_of(args.target, context)
    target = chosen.target
    approved = context.approved(chosen.project, target, at=args.at)
    context.note(approved.notes)

    selected = select(approved.catalog, topics=args.topic, namespaces=args.namespace)

    def addressed(texts: list[str], *, globs: bool = False) -> frozenset[TopicName]:
        names: list[TopicName] = []
        for text in texts:
            if globs and is_glob(text, approved.catalog.topics):
                names += _no_longer_declared(text, selected, context)
            else:
                names.append(find(text, approved.catalog, globs=False).name)
        for name in names:
            if name not in selected.topics:
                raise UsageError(f"{name} is to be deleted, but --topic or --namespace leaves it out")
            if selected.topics[name].schema is not None:
                raise UsageError(
                    f"{name} cannot be deleted: it is still declared",
                    fix="remove its declaration and have that approved first",
                )
        return frozenset(target.names.there(name) for name in names)

    permissions = Permissions(
        addressed(args.allow_delete, globs=True),
        addressed(args.force_delete),
        relax=args.relax_while_replaying,
        create_tenants=args.create_tenants,
    )
    catalog = renamed(selected, target.names)
    numbers = recorded_numbers(chosen, approved, context)
    with closing(chosen.open(context)) as registry:
        state = observe(registry, scope_of(catalog), deletions=permissions.delete, git=catalog)
        catalog = with_held(catalog, state.catalog, approved, target)
        origin = origin_of(chosen, registry, approved)
        waivers = approved_waivers(chosen, context)
        made = partial(
            make_plan,
            state,
            catalog,
            origin=origin,
            permissions=permissions,
            waivers=waivers,
            numbers=numbers,
        )
        plan = made()
        if elsewhere := awaited(chosen, plan, approved, context):
            plan = made(awaited=elsewhere)
        yield replace(plan, whole=not (args.topic or args.namespace)), registry, None


def _no_longer_declared(glob: str, git: Catalog, context: Context) -> list[TopicName]:
    """Return, and report, the topics of `git` that a glob after --allow-delete names: those that are declared no longer.

    Raises:
        UsageError: there is none.
    """
    require_matches(git.topics, [glob], (), where="the chosen topics", option="--allow-delete ")
    found = matching(glob, git.topics)
    gone = [name for name in found if git.topics[name].deleted and git.topics[name].versions]
    if not gone:
        raise UsageError(
            f"--allow-delete {glob}: no topic that matches had a schema and is no longer declared",
            fix="name topics that are not declared any more: schemactl plan lists those whose schema the registry keeps",
        )
    context.say(f"--allow-delete {glob}: {', '.join(map(str, gone))}")
    return gone
