"""`schemactl rebuild`: restores the version numbers of a registry that lost its schemas."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.cli.apply import add_carrying_out, carry_out, confirmed, is_left_undone
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.plan import ALLOW_DATA_LOSS, CREATE_TENANTS_OPTION, addresses
from schemactl.cli.ready_plan import ReadyPlan
from schemactl.cli.selection import add_selection, find, relative_path
from schemactl.cli.several_targets import AskedTargets, OpenTarget, opened
from schemactl.core.deadline import within
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.core.names import select

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.deadline import Deadline
    from schemactl.core.names import TopicName
    from schemactl.deploy.rebuild import Lists
    from schemactl.deploy.steps import Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rebuild`."""
    parser.description = (
        "Restore the version numbers of a registry that lost its schemas, so that old messages can be decoded again. "
        "Shows the plan, asks, and verifies every number. FILE says which numbers producers or deletions took; without "
        "it, the target's approved numbers file does. With neither, the result is exact only if nothing but `apply` ever "
        "wrote to the registry."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl rebuild --target prod numbers.json          kept by apply --result, or drift --format json\n"
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
        "--relax-while-replaying: register versions that today's strategy would reject, by setting ALWAYS_COMPATIBLE meanwhile",
        ALLOW_DATA_LOSS,
        CREATE_TENANTS_OPTION,
        "--out FILE: write the plan to FILE (in a folder: plan.json) for `schemactl apply FILE`; change nothing",
        "--auto-approve, --yes: do not ask before the plan is applied",
    )
    add_carrying_out(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every list is as it was; 1: not rebuilt; 3: partly; 4: changed by others meanwhile; 100: cannot be exact."""
    return within(args.timeout, lambda deadline: _run(args, context, deadline))


def _run(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    from schemactl.cli.reviewed_plan import write_plan
    from schemactl.deploy.plan_file import plan_digest
    from schemactl.report.plan import render

    with opened(AskedTargets([args.target]), context) as targets:
        [target] = targets.targets
        ready, sources = _planned(args, target)
        plan = ready.plan
        context.report("\n".join([render(plan, color=context.color), "", *sources]))
        if args.out:
            write_plan(plan, args.out, context)
            if plan.steps:
                print(f"Digest: {plan_digest(plan)}")
            return NEGATIVE if plan.misread or plan.refusals else 0
        if is_left_undone(ready, args):
            return NEGATIVE
        if plan.steps and not args.auto_approve and not confirmed():
            return SchemactlError.exit_code
        return carry_out([ready], args, deadline)[0]


def _planned(args: argparse.Namespace, target: OpenTarget) -> tuple[ReadyPlan, list[str]]:
    """Return the plan, and the sources of its numbers."""
    from schemactl.deploy import planner
    from schemactl.deploy.planner import applicable, renamed, scope_of
    from schemactl.deploy.rebuild import make_rebuild, recorded_lists, without_versions
    from schemactl.deploy.registry_state import observe
    from schemactl.deploy.steps import Permissions
    from schemactl.deploy.version_numbers import read_lists

    approved, numbers = target.approved, target.numbers
    everything = renamed(approved.whole.catalog, target.names)
    path = relative_path(args.numbers, target.context) if args.numbers else None
    lists = read_lists(path, target=target.name, git=everything) if path else {}
    chosen = planner.select(approved.catalog, topics=args.topic, namespaces=args.namespace, known=lists)
    git = renamed(chosen, target.names)
    asked = select(lists, args.topic, args.namespace)
    # Git's topics are asked for by their declared names, others by the registry's.
    listed = {
        name: pairs
        for name, pairs in lists.items()
        if name in git.topics or (name not in everything.topics and name in asked)
    }
    lists = {**recorded_lists(applicable(git), numbers), **listed}
    # What is only in the file goes by its name there.
    named = {name for name in (*git.topics, *lists) if name.schema_id in args.force_delete}
    named |= {
        target.names.there(find(text, approved.catalog, globs=False).name)
        for text in args.force_delete
        if text not in {name.schema_id for name in named}
    }
    for name in named:
        if name not in git.topics and name not in lists:
            raise UsageError(f"{name} is to be deleted first, but --topic or --namespace leaves it out")
    permissions = Permissions(
        force_delete=frozenset(named),
        relax=args.relax_while_replaying,
        create_tenants=args.create_tenants,
        lose=frozenset(addresses(args.allow_data_loss, target.names)),
    )
    plan = make_rebuild(
        observe(target.registry, scope_of(without_versions(applicable(git), lists))),
        git,
        lists,
        interrupted={target.names.there(name) for name in chosen.topics if approved.was_interrupted(name)},
        origin=target.origin,
        permissions=permissions,
        waivers=target.waivers,
        numbers=numbers,
    )
    files = {
        name: args.numbers if name in listed else f"the record {numbers.path if numbers else ''}"
        for name in lists
    }
    plan = replace(plan, whole=not (args.topic or args.namespace))
    return ReadyPlan(plan, target, approved), list(_sources(git, lists, files, plan))


def _sources(git: Catalog, lists: Lists, files: Mapping[TopicName, str], plan: Plan) -> Iterator[str]:
    """Print the sources of the numbers, and how far they can be trusted; `files` are those with the lists."""
    from schemactl.deploy.planner import applicable

    listed = [name for name, pairs in lists.items() if pairs]
    others = [
        topic.name
        for topic in plan.apart
        if topic.name not in listed and any(each.git != each.registry for each in topic.numbers)
    ]
    declared = [name for name, topic in applicable(git).topics.items() if topic.schema and name not in listed]
    alone = [name for name in declared if name not in others]
    gone = [
        name
        for name, topic in git.topics.items()
        if topic.versions and not topic.schema and name not in listed
    ]
    for file in sorted({files[name] for name in listed}):
        of_file = [name for name in listed if files[name] == file]
        yield f"Numbers of {_counted(of_file)}: taken from {file}; versions deleted since then are left out, and versions approved since then follow."
    if alone:
        yield f"Numbers of {_counted(alone)}: Git's. They are correct if nothing but `apply` ever wrote there."
    if others:
        yield f"Numbers of {_counted(others)}: the registry's, which are not Git's; no list says which versions they were."
    if gone:
        yield f"Left out: {_counted(gone)} without a schema in Git now, and without a list of numbers."


def _counted(names: list[TopicName]) -> str:
    return str(names[0]) if len(names) == 1 else f"{len(names)} topics"
