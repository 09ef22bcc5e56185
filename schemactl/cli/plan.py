"""`plan`: make and show the plan for a target; review a plan file before `apply` carries it out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.apply_results import ReadyPlan, awaited, expect_nothing_awaited
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, add_timeout
from schemactl.cli.report_files import (
    Outputs,
    SheetReport,
    add_formats,
    asked_outputs,
    errors_in_files,
    target_sheets,
    write_sheets,
)
from schemactl.cli.target_selection import (
    AskedTargets,
    ChosenTarget,
    OpenTarget,
    OpenTargets,
    add_targets,
    each_target,
    environment_target,
    looked_up,
    opened,
    shown_target,
    target_of,
)
from schemactl.cli.topic_selection import add_filters, find, output_file, relative_path
from schemactl.core.catalog import Catalog
from schemactl.core.deadline import within
from schemactl.core.errors import CHANGES, NEGATIVE, HistoryError, SchemactlError, StalePlan, UsageError, first_of
from schemactl.core.names import NamespaceName, TopicName, is_glob, matching, select_known
from schemactl.core.policies import Policies
from schemactl.report import SHEET_FORMATS

if TYPE_CHECKING:
    from schemactl.core.names import TargetNames
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.steps import Permissions, Plan
    from schemactl.history import History
    from schemactl.history.git import Repository


# `schemactl plan`.


CREATE_TENANTS_OPTION: Final = (
    "--create-tenants: create missing tenants also where no file declares a namespace of them"
)
ALLOW_DATA_LOSS: Final = "--allow-data-loss ADDRESS...: set a setting although messages can be lost; the plan without it gives the ADDRESS, a namespace or topic with the setting"


def configure_plan(parser: argparse.ArgumentParser) -> None:
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
        "  schemactl plan --target stage --target prod         both, side by side\n"
        "  schemactl plan --target prod --summary --skip 'shop/legacy/*'    the sums, without these topics\n"
        "  schemactl plan --target prod --format markdown=plan.md --format html=plan.html\n"
        "  schemactl plan --target prod --at origin/main~3     not further than that commit\n"
        "  schemactl plan --target prod --base origin/main     what the merge of this branch would do\n"
        "  schemactl plan --allow-delete shop/sales/legacy\n"
        "  schemactl plan --allow-delete 'shop/sales/*'        of these, the topics that are no longer declared\n"
        "  schemactl plan --allow-data-loss shop/sales:retention_policies    as the plan without it names the setting\n"
        "  schemactl plan show plan.json                       what a plan file says; nothing is asked\n"
    )
    parser.add_argument("action", nargs="?", choices=("show",), metavar="show", help="show a plan file")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="the file to show")
    add_arguments(parser)
    add_options(
        parser,
        "--at REF: plan for this commit of the approved first-parent line, not for the one that the target is at",
        "--base REF: plan for what is approved once HEAD is merged into REF: for a review before the merge; its digest is that of the plan after a squash",
    )
    add_options(parser, "--out FILE: write the plan to FILE (in a folder: plan.json), for `schemactl apply FILE`")
    add_formats(parser, SHEET_FORMATS)
    add_options(
        parser,
        "--summary: only the sums, and what is left out",
        "--detailed-exitcode: exit with 2 when there are changes",
    )
    add_timeout(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `plan` and `apply` share."""
    add_targets(parser)
    add_filters(parser)
    add_options(
        parser,
        "--allow-delete TOPIC...: delete the schema of a topic that is no longer declared: a tombstone takes the next number; a glob means all such topics",
        "--force-delete TOPIC...: the same, with all stored versions: numbering starts again at 0",
        ALLOW_DATA_LOSS,
        "--relax-while-replaying: register approved versions that today's strategy would reject, by setting ALWAYS_COMPATIBLE meanwhile",
        CREATE_TENANTS_OPTION,
    )


def run_plan(args: argparse.Namespace, context: Context) -> int:
    """Return 0: no changes, or no --detailed-exitcode; 2: changes; 100: something would be rejected, or messages misread."""
    outputs = asked_outputs(args.format or ["text"], SHEET_FORMATS)
    if args.summary and any(name == "json" for name, _ in outputs):
        raise UsageError("--summary is for people: it has no JSON")
    with errors_in_files("plan", AskedTargets.of(args), outputs, context):
        if args.action:
            return _show(args, context, outputs)
        return within(args.timeout, lambda _: _run(args, context, outputs))


def _run(args: argparse.Namespace, context: Context, outputs: Outputs) -> int:
    asked = AskedTargets.of(args)
    if args.out:
        asked.expect_one("--out", "schemactl plan --target {0} --out {0}.json".format)
    if args.base and args.at:
        raise UsageError(
            "--base is what comes after all that is approved, and --at what comes before: give one of them"
        )
    with planned(asked, args, context) as (targets, found):

        def sheet(each: ReadyPlan) -> tuple[SheetReport, int]:
            plan = each.plan
            if args.out:
                write_plan(plan, args.out, context)
            return _sheet(plan, args), _exit_code(plan, args)

        sheets, codes = target_sheets("plan", found, sheet)
        write_sheets(sheets, outputs, context)
    return targets.exit_code(codes)


def _show(args: argparse.Namespace, context: Context, outputs: Outputs) -> int:
    if not args.plan:
        raise UsageError("plan show needs the file", fix="schemactl plan show plan.json")
    explicit = args.target or args.all_targets
    for option in (
        "topic",
        "namespace",
        "allow_delete",
        "force_delete",
        "allow_data_loss",
        "relax_while_replaying",
        "create_tenants",
        "at",
        "base",
        "out",
    ):
        if getattr(args, option) or explicit:
            raise UsageError(
                f"--{option.replace('_', '-') if getattr(args, option) else 'target'} applies when a plan is made, not to "
                "`plan show`"
            )
    from schemactl.deploy.plan_file import read

    plan = read(relative_path(args.plan, context))
    write_sheets([_sheet(plan, args)], outputs, context)
    return _exit_code(plan, args)


def _sheet(plan: Plan, args: argparse.Namespace) -> SheetReport:
    from schemactl.deploy.plan_file import document, plan_digest
    from schemactl.report.plan import plan_sheet, short_sheet

    sheet = short_sheet if args.summary else plan_sheet
    return sheet(plan, plan_digest(plan) if plan.steps else ""), document(plan)


def _exit_code(plan: Plan, args: argparse.Namespace) -> int:
    if plan.refusals or plan.misread:
        return NEGATIVE
    return CHANGES if plan.steps and args.detailed_exitcode else 0


@contextmanager
def planned(
    asked: AskedTargets, args: argparse.Namespace, context: Context
) -> Iterator[tuple[OpenTargets, dict[str, ReadyPlan | SchemactlError]]]:
    """Open the targets, and yield them with the plan for each by name, or the error that prevented it."""
    with opened(asked, context, at=args.at, base=args.base) as targets:
        if not (args.at or args.base):
            context.note(*_unapproved(targets))
        yield (
            targets,
            each_target(targets, lambda each: PlanRequest.of(each, args), PlanRequest.observe, PlanRequest.plan),
        )


def _unapproved(targets: OpenTargets) -> Iterator[str]:
    """Yield a note if HEAD has changes that count once they are approved: a user on a branch may expect them in the plan."""
    from schemactl.declare.files import shown

    for target in targets.targets[:1]:
        approved = target.approved.whole
        head = target.context.repository.commit("HEAD")
        with suppress(HistoryError):
            if head and (files := approved.unapproved_files(head)):
                names = "".join(f" --target {quote(each.name)}" for each in targets.targets)
                yield (
                    f"what HEAD ({head.short}) changes is not approved in {approved.ref} yet, and not in this plan: "
                    f"{first_of([*map(shown, files)])}; see what its merge does: schemactl plan{names} --base {quote(approved.ref)}"
                )


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The input of the plan for one target.

    Attributes:
        target: the target.
        catalog: the selected part of the approved history, by the target's names.
        permissions: what the user allows.
        numbers: the record of the target's version numbers.
        whole: everything is selected.
    """

    target: OpenTarget
    catalog: Catalog
    permissions: Permissions
    numbers: TargetNumbers | None
    whole: bool

    @classmethod
    def of(cls, target: OpenTarget, args: argparse.Namespace) -> PlanRequest:
        """Return the request that `args` describe; raise UsageError if they name something unknown, or that cannot be deleted."""
        from schemactl.deploy.planner import renamed, select
        from schemactl.deploy.steps import Permissions

        approved, names = target.approved, target.names
        selected = select(approved.catalog, topics=args.topic, namespaces=args.namespace)
        soft = _to_delete(args.allow_delete, approved.catalog, selected, target.context, globs=True)
        forced = _to_delete(args.force_delete, approved.catalog, selected, target.context)
        permissions = Permissions(
            frozenset(map(names.there, soft)),
            frozenset(map(names.there, forced)),
            relax=args.relax_while_replaying,
            create_tenants=args.create_tenants,
            lose=frozenset(addresses(args.allow_data_loss, names)),
        )
        git = renamed(looked_up(selected), names)
        return cls(target, git, permissions, target.numbers, whole=not (args.topic or args.namespace))

    def observe(self) -> RegistryState:
        """Return the state of the registry. This is what takes long; it does not use Git."""
        from schemactl.deploy.planner import scope_of
        from schemactl.deploy.registry_state import observe

        registry = self.target.registry
        state = observe(registry, scope_of(self.catalog), deletions=self.permissions.delete, git=self.catalog)
        assert registry.release  # noqa: S101  asked for here, and remembered
        return state

    def plan(self, state: RegistryState) -> ReadyPlan:
        """Return the plan for a registry in that state."""
        from schemactl.deploy.planner import make_plan

        target = self.target
        plan = make_plan(
            state,
            target.with_held(self.catalog, state.catalog),
            origin=target.origin,
            permissions=self.permissions,
            waivers=target.waivers,
            numbers=self.numbers,
            awaited=lambda plan: awaited(target, plan),
        )
        return ReadyPlan(replace(plan, whole=self.whole), target, target.approved)


def addresses(texts: list[str], names: TargetNames) -> Iterator[str]:
    """Yield the addresses of the settings in `texts`; a declared name is yielded with its name on the target, too."""
    from schemactl.core.names import parse_name
    from schemactl.core.policies import SETTINGS, address

    for given in texts:
        text, _, setting = given.rpartition(":")
        try:
            name = parse_name(text)
        except ValueError:
            name = None
        row = SETTINGS.get(setting)
        if name is None or row is None or not (row.path if isinstance(name, NamespaceName) else row.topic_path):
            raise UsageError(
                f"--allow-data-loss {given}: expected a namespace or topic and its setting, such as "
                f"shop/sales:{next(iter(SETTINGS))}",
                fix="copy it from the plan, which names what could lose messages",
            )
        yield address(name, setting)
        if names.has(name.namespace_name):
            yield address(names.there(name), setting)


def _to_delete(
    texts: list[str], git: Catalog, selected: Catalog, context: Context, *, globs: bool = False
) -> list[TopicName]:
    """Return the topics whose schemas `texts` allow to be deleted; raise UsageError if one cannot be deleted."""
    names: list[TopicName] = []
    for text in texts:
        if globs and is_glob(text, git.topics):
            names += _no_longer_declared(text, selected, context)
        else:
            names.append(find(text, git, globs=False).name)
    for name in names:
        if name not in selected.topics:
            raise UsageError(f"{name} is to be deleted, but --topic or --namespace leaves it out")
        if selected.topics[name].schema is not None:
            raise UsageError(
                f"{name} cannot be deleted: it is still declared",
                fix="remove its declaration and have that approved first",
            )
    return names


def _no_longer_declared(glob: str, git: Catalog, context: Context) -> list[TopicName]:
    """Return, and print, the topics that match a glob of --allow-delete and are no longer declared.

    Raises:
        UsageError: there are none.
    """
    select_known(git.topics, [glob], (), where="the chosen topics")
    found = matching(glob, git.topics)
    gone = [name for name in found if git.topics[name].deleted and git.topics[name].versions]
    if not gone:
        raise UsageError(
            f"--allow-delete {glob}: no topic that matches had a schema and is no longer declared",
            fix="name topics that are not declared any more: schemactl plan lists those whose schema the registry keeps",
        )
    context.say(f"--allow-delete {glob}: {', '.join(map(str, gone))}")
    return gone


# Review of a plan file.


def command_for(plan: Plan, file: str, written: Path | None = None) -> str:
    """Return the command that applies the plan in `file`, with the permissions it needs; of a proposed plan, by its digest.

    `written` is the file that was written, which has another name if `file` is a folder.
    """
    from schemactl.deploy.plan_file import plan_digest

    file = str(Path(file, written.name)) if written and written.name != Path(file).name else file
    permissions = _needed(plan)
    deletions = [f" --allow-delete {quote(name.schema_id)}" for name in sorted(permissions.delete)]
    deletions += [f" --force-delete {quote(name.schema_id)}" for name in sorted(permissions.force_delete)]
    losses = [f" --allow-data-loss {quote(address)}" for address in sorted(permissions.lose)]
    relax = " --relax-while-replaying" if permissions.relax else ""
    if plan.origin.proposed:
        file = f"--target {quote(plan.origin.target)} --expect-digest {plan_digest(plan)}"
    else:
        file = quote(file)
    return f"schemactl apply {file}{''.join([*deletions, *losses])}{relax}"


def write_plan(plan: Plan, text: str, context: Context) -> None:
    """Write the plan to the file that `--out TEXT` means, and print the command that applies it."""
    from schemactl.deploy.plan_file import write

    out = output_file(text, context, name="plan.json")
    write(plan, out, below=context.top)
    if plan.steps:
        once = ", once it is merged" if plan.origin.proposed else ""
        context.say(f"To carry out exactly this{once}: {command_for(plan, text, out)}")


@contextmanager
def reviewed(args: argparse.Namespace, context: Context) -> Iterator[ReadyPlan]:
    """Yield the plan in the file that `args` name, with its target's open registry, and with its review.

    The digest in the file protects against damage only: anybody can compute another. So the review computes the steps again, from
    the approved history at the plan's commit, from the registry and, for a rebuild, from the lists in the file; it raises
    StalePlan or SchemactlError if they are not the same, or if a permission is missing.

    Raises:
        UsageError: an option does not apply to this plan.
        SchemactlError: the plan is of another repository or another registry.
    """
    from schemactl.deploy.plan_file import read

    for option in ("topic", "namespace", "create_tenants"):
        if getattr(args, option):
            raise UsageError(f"--{option.replace('_', '-')} applies when a plan is made: give it to `schemactl plan`")
    plan = read(relative_path(args.plan, context))
    if plan.origin.proposed:
        raise SchemactlError(
            f"{args.plan} says what a merge would do, which is not approved yet; nothing was changed",
            fix=f"once it is merged: {command_for(plan, args.plan)}",
        )
    named = environment_target()
    if not args.target and named not in (None, plan.origin.target):
        # A plan names its target itself.
        context.note(f"{args.plan} is for {plan.origin.target}; {shown_target(named)} does not count")
    for name in args.target:
        if name != plan.origin.target:
            raise UsageError(f"--target {name}: {args.plan} was made for {plan.origin.target}")
    _expect_options_of(plan, args)
    chosen = target_of(plan.origin.target, context)
    target = chosen.target
    if target.registry != plan.origin.registry:
        raise SchemactlError(
            f"{args.plan} was made for {plan.origin.registry}, but target {target.name} is now {target.registry}",
            fix=_again(plan, args),
        )
    approved = context.approved(chosen.project, target)
    then = _at(plan, args, context.repository, chosen, approved.whole)
    with closing(chosen.open(context)) as registry:
        opened = OpenTarget(chosen, approved, registry, context)
        yield ReadyPlan(plan, opened, then, Review(plan, args, opened, then))


def _again(plan: Plan, args: argparse.Namespace) -> str:
    command = "plan" if plan.lists is None else "rebuild"
    return f"make it again: schemactl {command} --target {plan.origin.target} --out {args.plan}"


def _needed(plan: Plan) -> Permissions:
    """Return the permissions that the steps of `plan` need."""
    from schemactl.deploy.steps import DeleteSchema, Permissions, RelaxStrategy, SetPolicies

    deletions = [step for step in plan.steps if isinstance(step, DeleteSchema)]
    return Permissions(
        delete=frozenset(step.name for step in deletions if not step.force),
        force_delete=frozenset(step.name for step in deletions if step.force),
        relax=any(isinstance(step, RelaxStrategy) and step.waiver is None for step in plan.steps),
        # Who made the plan has allowed it; it destroys nothing.
        create_tenants=True,
        lose=frozenset(step.address for step in plan.steps if isinstance(step, SetPolicies) and step.loses),
    )


def _expect_options_of(plan: Plan, args: argparse.Namespace) -> None:
    """Raise UsageError for an option that permits something the plan does not do."""
    needed = _needed(plan)
    for option, names in (("allow_delete", needed.delete), ("force_delete", needed.force_delete)):
        for text in getattr(args, option):
            if not matching(text, names, globs=option == "allow_delete"):
                raise UsageError(
                    f"--{option.replace('_', '-')} {text}: {args.plan} does not do that; give the option to `schemactl plan`"
                )
    for text in args.allow_data_loss:
        if text not in needed.lose:
            raise UsageError(
                f"--allow-data-loss {text}: {args.plan} does not do that; give the option to `schemactl plan`"
            )
    if args.relax_while_replaying and not needed.relax:
        raise UsageError(f"--relax-while-replaying: {args.plan} does not do that; give the option to `schemactl plan`")


def _expect_allowed(plan: Plan, args: argparse.Namespace) -> None:
    """Raise SchemactlError unless the user permits everything that the plan destroys, or names the plan's digest."""
    if args.expect_digest is not None:
        return
    needed = _needed(plan)
    missing = [
        f"deletes the schema of {name}{how}"
        for option, names, how in (
            ("allow_delete", needed.delete, ""),
            ("force_delete", needed.force_delete, " by force"),
        )
        for name in sorted(names)
        if not any(matching(text, [name], globs=option == "allow_delete") for text in getattr(args, option))
    ]
    missing += [
        f"sets {address}, by which messages can be lost" for address in sorted(needed.lose - {*args.allow_data_loss})
    ]
    if needed.relax and not args.relax_while_replaying:
        missing.append("registers versions under ALWAYS_COMPATIBLE")
    if missing:
        raise SchemactlError(
            f"{args.plan} {', and '.join(missing)}, which is not allowed here; nothing was changed",
            fix=f"if that was reviewed: {command_for(plan, args.plan)}; or name the reviewed digest: --expect-digest DIGEST",
        )


def _at(
    plan: Plan, args: argparse.Namespace, repository: Repository, chosen: ChosenTarget, approved: History
) -> History | None:
    """Return the approved history up to the plan's commit; None: nothing was approved yet."""
    from schemactl.history import Position
    from schemactl.history.target_history import view_on_target

    made_at = plan.origin.tip
    if made_at is None:
        return None
    found = repository.commit(made_at.id)
    if found is None or found.id != made_at.id or not approved.has(found):
        raise SchemactlError(
            f"{args.plan} was made at commit {made_at.short}, which is not in the approved history of this repository ({approved.ref}): "
            "the plan is from another repository, this clone is behind, or history was rewritten",
            fix=f"git fetch; or {_again(plan, args)}",
        )
    if approved.tip and approved.tip.id == made_at.id:
        return approved
    then = approved.until(Position(plan.origin.ref, plan.origin.ref, made_at))
    return view_on_target(repository, then, chosen.project, chosen.target)


@dataclass(frozen=True, slots=True)
class Review:
    """The verification of a plan from a file against the state of its registry.

    Attributes:
        target: its target, with the approved history up to the target's position now.
        then: the approved history up to the plan's commit; None: nothing was approved yet.
    """

    plan: Plan
    args: argparse.Namespace
    target: OpenTarget
    then: History | None

    def __call__(self, state: RegistryState) -> None:
        """Raise StalePlan or SchemactlError unless the plan is permitted, and Git and the registry lead to the same steps."""
        from schemactl.deploy.plan_file import step_document
        from schemactl.report.plan import describe

        plan, args, origin, registry = self.plan, self.args, self.plan.origin, self.target.registry
        _expect_allowed(plan, args)
        if origin.release != registry.release:
            raise StalePlan(
                f"{registry.url} answers as Pulsar {registry.release} now, and the plan was made for {origin.release}; nothing was changed",
                fix=_again(plan, args),
            )
        self._expect_undeclared()
        derived = self._derived(state)
        if derived is not None and self._is_of_same_topics(derived):
            differs = next(
                (
                    (number, ours, theirs)
                    for number, (ours, theirs) in enumerate(zip_longest(plan.steps, derived.steps), 1)
                    if ours is None or theirs is None or step_document(ours) != step_document(theirs)
                ),
                None,
            )
            apart = tuple(each for each in plan.apart if each.name in plan.scope.topics - self._left_out)
            if differs is None and not derived.refusals and derived.apart == apart:
                if plan.lists is None:
                    expect_nothing_awaited(self.target, plan)
                return
            number, ours, theirs = differs or (len(plan.steps), None, None)
            missing = f"it leaves out ({describe(theirs)})" if theirs else "it"
            what = f"its step {number} ({describe(ours)})" if ours else missing
        else:
            what = "it names something the approved history never had, and it"
        raise SchemactlError(
            f"{args.plan} does not match Git and the registry: {what} does not follow from {self.target.approved.ref} at "
            f"{origin.tip.short if origin.tip else 'no commit'}. It was edited, or made by another version of schemactl; nothing was changed",
            fix=_again(plan, args),
        )

    def _is_of_same_topics(self, derived: Plan) -> bool:
        """Whether both plans cover the same topics, apart from those that are left out."""
        ours, theirs, left_out = self.plan.scope, derived.scope, self._left_out
        return ours.topics - left_out == theirs.topics - left_out and theirs.namespaces <= ours.namespaces

    @property
    def _left_out(self) -> set[NamespaceName | TopicName]:
        return {refusal.name for refusal in self.plan.refusals}

    def _expect_undeclared(self) -> None:
        """Raise StalePlan if a topic whose schema the plan deletes is declared again; a rebuild restores what it deletes."""
        from schemactl.deploy.planner import renamed

        if self.plan.lists is not None:
            return
        then, approved = self.then, self.target.approved
        # A plan for a later position may delete what is declared where the target is.
        latest = then if then and then.later < approved.later else approved
        now = renamed(latest.catalog, self.target.names)
        needed = _needed(self.plan)
        for name in sorted(needed.delete | needed.force_delete):
            topic = now.topics.get(name)
            if topic and topic.schema is not None:
                raise StalePlan(
                    f"{self.args.plan} deletes the schema of {name}, which is declared; nothing was changed",
                    fix=_again(self.plan, self.args),
                )

    def _derived(self, state: RegistryState) -> Plan | None:
        """Return the plan that Git leads to, for the same scope; None: the approved history never had part of that."""
        from schemactl.deploy.planner import make_plan, renamed
        from schemactl.deploy.rebuild import make_rebuild
        from schemactl.deploy.version_numbers import lists_of

        plan, then, names = self.plan, self.then, self.target.names
        everything, numbers = Catalog(), None
        if then:
            past = replace(self.target, approved=then)
            everything, numbers = past.with_held(renamed(then.catalog, names), state.catalog), past.numbers
        # What is left out has no steps, whatever the reason was.
        left_out = self._left_out
        covered = (plan.scope.namespaces | plan.scope.topics) - left_out
        git = Catalog(
            {
                name: replace(space, policies=Policies()) if name in left_out else space
                for name, space in everything.namespaces.items()
                if name in plan.scope.namespaces
            },
            {name: topic for name, topic in everything.topics.items() if name in covered},
            {name: former for name, former in everything.former.items() if name in covered},
        )
        origin = replace(self.target.origin, tip=plan.origin.tip)
        permissions, waivers = _needed(plan), self.target.waivers
        if plan.lists is None:
            if not permissions.delete | permissions.force_delete <= git.topics.keys():
                return None
            return make_plan(state, git, origin=origin, permissions=permissions, waivers=waivers, numbers=numbers)
        topics = then.catalog.topics if then else {}
        interrupted = {names.there(name) for name in topics if then and then.was_interrupted(name)}
        lists = lists_of(plan.lists, path=relative_path(self.args.plan, self.target.context), git=everything)
        return make_rebuild(
            state,
            git,
            {name: pairs for name, pairs in lists.items() if name not in left_out},
            interrupted=interrupted & git.topics.keys(),
            origin=origin,
            permissions=permissions,
            waivers=waivers,
            numbers=numbers,
        )
