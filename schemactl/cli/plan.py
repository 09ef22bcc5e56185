"""`plan`: make and show the plan for a target."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import NamedResults, ReadyPlan
from schemactl.cli.context import Context
from schemactl.cli.parallel_targets import Stop, load_catalog, make_stop, run_for_each_target
from schemactl.cli.parser import add_options, add_parallel, add_timeout
from schemactl.cli.permission_options import (
    PERMISSION_NAMES,
    PERMISSION_OPTIONS,
    PermissionOption,
    format_apply_command,
    format_option,
    format_options,
    read_permissions,
)
from schemactl.cli.report_files import (
    Render,
    add_formats,
    make_target_reports,
    parse_outputs,
    render_target_error,
    write_target_reports,
)
from schemactl.cli.target_selection import (
    OpenTarget,
    OpenTargets,
    TargetSelection,
    add_targets,
    open_targets,
    read_approved,
)
from schemactl.cli.topic_selection import add_filters, find, resolve_output_file, resolve_relative_path
from schemactl.cli.waiting_topics import find_waiting_topics
from schemactl.core.catalog import Catalog, list_namespaces
from schemactl.core.errors import ExitCode, HistoryError, InvalidSchema, SchemactlError, UsageError, join_first
from schemactl.core.names import TopicName, find_matching_topics, format_kind_name, is_glob, select_known_topics
from schemactl.core.wording import format_count
from schemactl.report import TARGET_FORMATS

if TYPE_CHECKING:
    from schemactl.core.findings import UpgradeFirst
    from schemactl.core.schema import Release, SchemaVersion
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.permissions import Permissions
    from schemactl.deploy.plan import Plan, UnreadableDeclaration
    from schemactl.deploy.receipt import Receipt
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.report.document import TargetDocument


# `schemactl plan`.


_BASE_AND_AT: Final = (
    "--base plans for a state after the approved tip, and --at for a state before it: give one of them"
)


def configure_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    parser.description = (
        "Compare the approved history with a registry and show, step by step, the actions of apply and the responses that the registry "
        "would give. Changes nothing. Exits with 100 when the registry would reject an approved version, or when "
        "version numbers differ from Git's and no numbers file records it."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl plan                                      where the project has one target\n"
        "  schemactl plan --target prod --out plan.json        to be reviewed, then: schemactl apply plan.json\n"
        "  schemactl plan --target prod --detailed-exitcode    2: there are changes\n"
        "  schemactl plan --target stage --target prod         both, side by side\n"
        "  schemactl plan --target prod --summary --skip 'shop/legacy/*'    the sums, without these topics\n"
        "  schemactl plan --target prod --format markdown=plan.md --format html=plan.html\n"
        "  schemactl plan --target prod --at origin/main~3     not further than that commit\n"
        "  schemactl plan --target prod --base origin/main     what the merge of this branch would do\n"
        "  schemactl plan --allow-delete shop/sales/legacy\n"
        "  schemactl plan --allow-delete 'shop/sales/*'        of these, the topics that are no longer declared\n"
        "  schemactl plan --allow-data-loss shop/sales:retention_policies    as the plan without it names the setting\n"
        "  schemactl plan show plan.json                       the text of a plan file; no registry is contacted\n"
        "  schemactl plan namespaces --target prod             for a job for each: schemactl plan --namespace NS\n"
    )
    parser.add_argument(
        "action",
        nargs="?",
        metavar="show|namespaces",
        help="show a plan file; or list the namespaces of the target's plans, one for each job of a matrix",
    )
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="the file to show")
    add_plan_arguments(parser)
    add_options(
        parser,
        "--at REF: plan for this commit of the approved first-parent line, not for the target's position",
        "--base REF: plan for the state after a merge of HEAD into REF, for a review before the merge; its digest "
        "equals the digest of the plan after a squash",
    )
    add_options(parser, "--out FILE: write the plan to FILE (in a folder: plan.json), for `schemactl apply FILE`")
    add_formats(parser, TARGET_FORMATS, _render_error)
    add_options(
        parser,
        "--summary: only the sums, and skipped topics",
        "--detailed-exitcode: exit with 2 when there are changes",
    )
    add_parallel(parser)
    add_timeout(parser)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `plan` and `apply` share."""
    add_targets(parser)
    add_filters(parser)
    add_options(
        parser,
        *(option.help for option in PERMISSION_OPTIONS),
        "--results FILE...: for `after`: the result of another target's last apply, or a folder of TARGET.json; used "
        "if that target's registry does not respond; must not be tracked by Git",
    )


def _render_error(error: SchemactlError, args: argparse.Namespace, context: Context) -> Render | None:
    """Return the renderer of an error of the report, which `plan show` and `plan namespaces` do not write."""
    return None if args.action else render_target_error(error, args, context)


def run_plan(args: argparse.Namespace, context: Context) -> int:
    """Return 0: no changes, or no --detailed-exitcode; 2: changes; 100: something would be rejected, or messages misread."""
    if args.action == "show":
        return _show_file(args, context)
    if args.action == "namespaces":
        return _list_namespaces(args, context)
    if args.action:
        is_file = Path(context.directory, args.action).exists()
        fix = f"schemactl plan {'show' if is_file else '--target'} {quote(args.action)}"
        raise UsageError(f"plan {args.action}: `plan` shows the file of a plan, or plans for a target", fix=fix)
    outputs = parse_outputs(args.format, TARGET_FORMATS)
    has_json = any(name == "json" for name, _ in outputs)
    if args.summary and has_json:
        raise UsageError("--summary cannot be combined with --format json")
    selection = TargetSelection.from_arguments(args)
    if args.out:
        selection.require_one("--out", "schemactl plan --target {0} --out {0}.json".format)
    if args.base and args.at:
        raise UsageError(_BASE_AND_AT)
    from schemactl.deploy.plan_json import make_plan_document, plan_digest
    from schemactl.report.plan import make_plan_report, make_short_plan_report

    def make_document(ready: ReadyPlan) -> tuple[TargetDocument, int]:
        plan = ready.plan
        if args.out:
            write_plan(plan, args, context)
        document = make_plan_document(plan) if has_json else None
        digest = ""
        if plan.steps:
            digest = document.digest if document else plan_digest(plan)
        make_target_report = make_short_plan_report if args.summary else make_plan_report
        code = ExitCode.CHANGES if plan.steps and args.detailed_exitcode else 0
        if plan.leaves_out or plan.misread:
            code = ExitCode.NEGATIVE
        return (make_target_report(plan, digest), document), code

    stop = make_stop(context.deadline) if selection.has_several else None
    with make_plans(selection, args, context, stop=stop) as (targets, plans_by_target):
        documents, codes = make_target_reports("plan", plans_by_target, make_document)
        write_target_reports(documents, outputs, context)
    return targets.exit_code(codes)


def _show_file(args: argparse.Namespace, context: Context) -> int:
    """Print the text of a plan file."""
    from schemactl.deploy.receipt import read_receipt

    if not args.plan:
        raise UsageError("plan show needs the file", fix="schemactl plan show plan.json")
    plan_options = ("topic", "namespace", *PERMISSION_NAMES, "at", "base", "out", "results", "format", "summary")
    reject_options(args, context, plan_options, ", not to `plan show`")
    if args.target or args.all_targets:
        raise UsageError("--target applies when a plan is made, not to `plan show`")
    receipt = read_receipt(resolve_relative_path(args.plan, context))
    context.report(receipt.text)
    if receipt.left_out or receipt.misread:
        return ExitCode.NEGATIVE
    return ExitCode.CHANGES if receipt.steps and args.detailed_exitcode else 0


def _list_namespaces(args: argparse.Namespace, context: Context) -> int:
    """Print the namespaces that plans of the target cover, also those with nothing but former policies or deleted topics.

    The plans of all these namespaces have together the steps of the plan without --namespace. No registry is contacted.
    """
    from schemactl.deploy.target_catalog import select_known_part

    # Everything else shapes steps, not the namespaces.
    if args.plan:
        raise UsageError(f"plan namespaces takes no file: {args.plan}", fix="leave it out")
    step_options = (*PERMISSION_NAMES, "out", "results", "summary", "detailed_exitcode")
    reject_options(args, context, step_options, ", not to `plan namespaces`")
    selection = TargetSelection.from_arguments(args)
    selection.require_one("plan namespaces", "schemactl plan namespaces --target {}".format)
    if args.base and args.at:
        raise UsageError(_BASE_AND_AT)
    formats = args.format or ["text"]
    if formats not in (["text"], ["json"]):
        raise UsageError("plan namespaces has one --format: text or json")
    approved = read_approved(selection, context, at=args.at, base=args.base)
    names = sorted(
        map(str, list_namespaces(select_known_part(approved.catalog, topics=args.topic, namespaces=args.namespace)))
    )
    if formats == ["json"]:
        # On one line, as a variable of a build server.
        print(json.dumps(names))
    else:
        # Without namespaces there is no line, so that a loop over the lines does nothing.
        print("".join(f"{name}\n" for name in names), end="")
    return 0


@contextmanager
def make_plans(
    selection: TargetSelection, args: argparse.Namespace, context: Context, *, stop: Stop | None = None
) -> Iterator[tuple[OpenTargets, dict[str, ReadyPlan | SchemactlError]]]:
    """Open the targets, and yield them with the plan for each by name, or the error that prevented it.

    Changes that are not committed, or not approved yet, are noted, because a plan does not have them. With `stop`, see `run_in_parallel`,
    targets that have not responded when the time is up get that error.
    """
    from schemactl.core.escaping import escape_path

    with open_targets(selection, context, at=args.at, base=args.base, prints_notes=False) as targets:
        if targets.targets:
            approved = targets.targets[0].approved.full_history
            if files := approved.list_uncommitted_files():
                changes = format_count(len(files), "file has changes", "files have changes")
                context.note(f"{changes} that are not committed, and not in this plan: {join_first(files)}")
            # A user on a branch may expect its changes in the plan.
            head = None if args.at or args.base else context.repository.commit("HEAD")
            if head:
                with suppress(HistoryError):
                    if files := approved.list_unapproved_files(head):
                        names = "".join(f" --target {quote(target.name)}" for target in targets.targets)
                        context.note(
                            f"the changes of HEAD ({head.short}) are not approved in {approved.ref} yet, and not in this plan: "
                            f"{join_first([*map(escape_path, files)])}; for the plan of its merge: schemactl plan{names} "
                            f"--base {quote(approved.ref)}"
                        )
        yield (
            targets,
            run_for_each_target(
                targets,
                lambda target: PlanRequest.for_target(target, args),
                PlanRequest.observe,
                PlanRequest.plan,
                stop=stop,
            ),
        )


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The input of the plan for one target.

    Attributes:
        target: the target.
        catalog: the selected part of the approved history, by the target's names.
        permissions: the losses that the user allows.
        numbers: the record of the target's version numbers.
        whole: whether everything is selected.
        unreadable: the selected declarations that cannot be read.
        results: the results of other targets that the user names.
    """

    target: OpenTarget
    catalog: Catalog
    permissions: Permissions
    numbers: TargetNumbers | None
    whole: bool
    unreadable: tuple[UnreadableDeclaration, ...]
    results: NamedResults

    @classmethod
    def for_target(cls, target: OpenTarget, args: argparse.Namespace) -> PlanRequest:
        """Return the request of the options `args`.

        Raises:
            UsageError: if they name something unknown, or a topic that cannot be deleted.
        """
        from schemactl.deploy.target_catalog import rename_catalog, select_known_part

        approved, names = target.approved, target.names
        selected = select_known_part(approved.catalog, topics=args.topic, namespaces=args.namespace)

        def find_topics(option: PermissionOption, texts: list[str]) -> Iterator[TopicName]:
            if option.takes == "deletions":
                topics = _select_deletions(texts, approved.catalog, selected, target.context, globs=option.has_globs)
            else:
                topics = [find(text, approved.catalog, globs=False).name for text in texts]
            return map(names.to_target, topics)

        permissions = read_permissions(args, names, find_topics)
        approved.read_ahead(selected.topics)
        git = rename_catalog(load_catalog(selected), names)
        return cls(
            target,
            git,
            permissions,
            target.numbers,
            not (args.topic or args.namespace),
            target.find_unreadable(args.topic, args.namespace),
            NamedResults.from_paths(args.results, target.context),
        )

    def observe(self) -> RegistryState:
        """Read the state of the registry. This takes long, and does not use Git."""
        from schemactl.deploy.registry_state import read_registry_state
        from schemactl.deploy.target_catalog import find_scope

        registry = self.target.registry
        with self.target.context.show_work(f"reading the registry of {self.target.name}"):
            state = read_registry_state(
                registry,
                find_scope(self.catalog),
                deletions=self.permissions.delete | self.permissions.force_delete,
                git=self.catalog,
            )
        # Read in this thread, because `plan` must not send requests.
        _ = registry.release
        return state

    def plan(self, state: RegistryState) -> ReadyPlan:
        """Return the plan for a registry in that state."""
        from schemactl.deploy.planner import make_plan

        target = self.target
        waivers = target.waivers
        with target.context.show_work("making the plan"):
            plan = make_plan(
                state,
                target.add_registered_versions(self.catalog, state.catalog),
                origin=target.origin,
                permissions=self.permissions,
                waivers=waivers,
                numbers=self.numbers,
                awaited=lambda plan: find_waiting_topics(target, plan, self.results),
            )
            plan = replace(
                plan,
                whole=self.whole,
                unreadable=self.unreadable,
                brokers=target.compare_brokers(state, self.catalog, self.numbers),
            )
            if versions := plan.new_versions:
                # The import takes a tenth of the time of a plan without steps.
                from schemactl.checks.rollout import find_version_effects

                defaults = target.place.project.defaults
                effects = find_version_effects(versions, self.catalog, defaults, waivers, target.name)
                plan = replace(
                    plan, effects=effects, upgrade_first=self._find_upgrade_orders(versions, plan.origin.release)
                )
            target.approved.save_definitions()
        return ReadyPlan(plan, target, is_current=True)

    def _find_upgrade_orders(
        self, new_versions: Sequence[tuple[TopicName, SchemaVersion]], release: Release
    ) -> dict[str, UpgradeFirst]:
        """Return the clients to upgrade first, for each topic (or `TOPIC#KIND`) that has versions and gets another one."""
        from schemactl.checks.rollout import find_upgrade_order

        versions_by_kind: dict[tuple[TopicName, str], list[SchemaVersion]] = {}
        for name, version in new_versions:
            versions_by_kind.setdefault((name, version.kind), []).append(version)
        orders: dict[str, UpgradeFirst] = {}
        for (name, kind), kind_versions in versions_by_kind.items():
            topic = self.catalog.topics[name]
            if topic.kinds:
                topic = topic.find_part(kind) or topic
            schema = kind_versions[-1].info
            first_number = min(version.number for version in kind_versions)
            old_versions = [version for version in topic.versions if version.number < first_number]
            if schema is None or not old_versions:
                continue
            clients = tuple(client for client in topic.clients if client.runs_on(self.target.name))
            strategy, level = self.catalog.data_strategy(name, self.target.place.project.defaults)
            with suppress(InvalidSchema):
                orders[format_kind_name(name, kind)] = find_upgrade_order(
                    replace(topic, clients=clients), old_versions, schema, strategy, level, release
                )
        return orders


def _select_deletions(
    texts: list[str], git: Catalog, selected: Catalog, context: Context, *, globs: bool = False
) -> list[TopicName]:
    """Return the topics whose schemas `texts` allow to be deleted; print the topics that a glob selects.

    Raises:
        UsageError: if a topic cannot be deleted, or a glob selects none.
    """
    names: list[TopicName] = []
    for text in texts:
        if globs and is_glob(text, git.topics):
            select_known_topics(selected.topics, [text], (), where="the chosen topics")
            undeclared = [
                name
                for name in find_matching_topics(text, selected.topics)
                if selected.topics[name].deleted and selected.topics[name].versions
            ]
            if not undeclared:
                raise UsageError(
                    f"--allow-delete {text}: no topic that matches had a schema and is no longer declared",
                    fix="name topics that are no longer declared: schemactl plan lists those whose schema the registry keeps",
                )
            context.say(f"--allow-delete {text}: {', '.join(map(str, undeclared))}")
            names += undeclared
        else:
            names.append(find(text, git, globs=False).name)
    for name in names:
        if name not in selected.topics:
            raise UsageError(f"{name} is to be deleted, but --topic or --namespace excludes it")
        if selected.topics[name].schema is not None:
            raise UsageError(
                f"{name} cannot be deleted: it is still declared", fix="remove its declaration and merge that first"
            )
    return names


# Plan files.


def write_plan(plan: Plan, args: argparse.Namespace, context: Context) -> None:
    """Write the receipt of the plan to the file that `--out` means, and print the command that applies it."""
    from schemactl.core.json_values import make_view
    from schemactl.deploy.receipt import PlanOptions, PlanSelection, Receipt

    out = resolve_output_file(args.out, context, name="plan.json")
    scope = PlanSelection(topics=args.topic, namespaces=args.namespace)
    receipt = Receipt.of(plan, render_plan_file(plan), scope=scope, options=make_view(PlanOptions, args))
    receipt.write(out, below=context.top)
    if plan.origin.proposed and plan.steps:
        command = format_command_after_merge(receipt)
        context.say(f"To carry out exactly this, once it is merged: {command}")
    elif plan.steps:
        # The file has another name if `--out` means a folder.
        file = args.out if Path(args.out).name == out.name else str(Path(args.out, out.name))
        context.say(f"To carry out exactly this: {format_apply_command(plan, file)}")


def render_plan_file(plan: Plan) -> str:
    """Return the text of a plan file: the whole report, without colors, and lines of any width."""
    from schemactl.deploy.plan_json import plan_digest
    from schemactl.report.plan import make_plan_report

    return make_plan_report(plan, plan_digest(plan) if plan.steps else "").render()


def format_command_after_merge(receipt: Receipt) -> str:
    """Return the command that applies a proposed plan by its digest, with the options that it was made with."""
    options = {"topic": receipt.scope.topics, "namespace": receipt.scope.namespaces, **asdict(receipt.options)}
    command = f"schemactl apply --target {quote(receipt.target)} --expect-digest {quote(receipt.digest)}"
    return command + format_options(options)


def reject_options(args: argparse.Namespace, context: Context, names: Iterable[str], ending: str) -> None:
    """Raise UsageError for an option in `names`, which shapes a plan; `ending` says what to do instead."""
    for name in names:
        if getattr(args, name):
            option = format_option(name)
            # `--skip X` is stored as the topic `!X`.
            if name == "topic" and not any(word.partition("=")[0] == option for word in context.words):
                option = "--skip"
            raise UsageError(f"{option} applies when a plan is made{ending}")
