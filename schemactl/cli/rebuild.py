"""`rebuild`: restore the version numbers of a registry that lost its schemas."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import ReadyPlan
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.permission_options import PERMISSION_OPTIONS, PermissionOption, read_permissions
from schemactl.cli.plan import write_plan
from schemactl.cli.ready_plans import (
    add_apply_options,
    ask_for_confirmation,
    carry_out,
    must_not_apply,
    record_not_applied,
    restore_leftover_topics,
)
from schemactl.cli.target_selection import OpenTarget, TargetSelection, open_targets
from schemactl.cli.topic_selection import add_selection, find, resolve_relative_path
from schemactl.core.errors import ExitCode, UsageError
from schemactl.core.names import TopicName, select_topics

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.rebuild import Lists


_SHARED_OPTIONS: Final = ("allow_data_loss", "allow_unreadable_messages", "create_tenants")
"""The permission options with the same help as those of `plan`."""


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
        *(option.help for option in PERMISSION_OPTIONS if option.name in _SHARED_OPTIONS),
        "--out FILE: write the plan to FILE (in a folder: plan.json) for `schemactl apply FILE`; change nothing",
        "--auto-approve, --yes, -y: do not ask before the plan is applied",
    )
    add_apply_options(parser)
    # A plan file has every permission option.
    parser.set_defaults(allow_delete=[])


def run_rebuild(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every list is restored; 1: not rebuilt; 3: partly; 4: changed by others meanwhile; 100: cannot be exact."""
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
        ready, sources = make_rebuild_plan(args, target, lists)
        plan = ready.plan
        context.result["sources"] = sources
        context.report("\n".join([render_plan(plan, color=context.color), "", *sources]))
        if args.out:
            record_not_applied(ready)
            write_plan(plan, args, context)
            if plan.steps:
                print(f"Digest: {plan_digest(plan)}")
            return ExitCode.NEGATIVE if plan.misread or plan.leaves_out else 0
        if must_not_apply(plan, args):
            restore_leftover_topics(plan, target.registry)
            record_not_applied(ready)
            return ExitCode.NEGATIVE
        if plan.steps and not args.auto_approve and not ask_for_confirmation(args):
            record_not_applied(ready)
            return ExitCode.ERROR
        return carry_out([ready], args, context)[0]


def make_rebuild_plan(args: argparse.Namespace, target: OpenTarget, lists: Lists) -> tuple[ReadyPlan, list[str]]:
    """Return the plan, and the sources of its numbers; `lists` come from the file `args.numbers`."""
    from schemactl.deploy.rebuild import find_recorded_lists, make_rebuild, without_versions
    from schemactl.deploy.registry_state import read_registry_state
    from schemactl.deploy.target_catalog import find_scope, rename_catalog, select_applicable, select_known_part

    approved, numbers = target.approved, target.numbers
    full_catalog = rename_catalog(approved.full_history.catalog, target.names)
    selected = select_known_part(approved.catalog, topics=args.topic, namespaces=args.namespace, other_topics=lists)
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

    def find_permitted_topics(option: PermissionOption, texts: list[str]) -> set[TopicName]:
        """Return the topics that an option names; raise UsageError for one to delete that is not among those to rebuild."""
        names = {name for name in (*git.topics, *lists) if name.schema_id in texts}
        known_ids = {name.schema_id for name in names}
        names |= {
            target.names.to_target(find(text, approved.catalog, globs=False).name)
            for text in texts
            if text not in known_ids
        }
        if option.takes == "deletions":
            for name in sorted(names - git.topics.keys() - lists.keys()):
                raise UsageError(f"{name} is to be deleted first, but --topic or --namespace excludes it")
        return names

    permissions = read_permissions(args, target.names, find_permitted_topics)
    plan = make_rebuild(
        read_registry_state(
            target.registry,
            find_scope(without_versions(select_applicable(git), lists)),
            deletions=permissions.force_delete,
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
