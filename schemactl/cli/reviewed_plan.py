"""Verify a plan file before `apply` executes it: its steps must follow from Git and the registry."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.awaiting import expect_nothing_awaited
from schemactl.cli.context import Context
from schemactl.cli.ready_plan import ReadyPlan
from schemactl.cli.selection import (
    ChosenTarget,
    environment_target,
    output_file,
    relative_path,
    shown_target,
    target_of,
)
from schemactl.cli.several_targets import OpenTarget
from schemactl.core.catalog import Catalog
from schemactl.core.errors import SchemactlError, StalePlan, UsageError
from schemactl.core.names import NamespaceName, TopicName, matching
from schemactl.core.policies import Policies
from schemactl.deploy.plan_file import plan_digest, read, step_document, write
from schemactl.deploy.planner import make_plan, renamed
from schemactl.deploy.rebuild import make_rebuild
from schemactl.deploy.steps import DeleteSchema, Permissions, Plan, RelaxStrategy, SetPolicies
from schemactl.deploy.version_numbers import lists_of
from schemactl.report.plan import describe

if TYPE_CHECKING:
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.history import History
    from schemactl.history.git import Repository


def command_for(plan: Plan, file: str, written: Path | None = None) -> str:
    """Return the command that applies the plan in `file`, with the permissions it needs; of a proposed plan, by its digest.

    `written` is the file that was written, which has another name if `file` is a folder.
    """
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
    for option in ("topic", "namespace", "create_tenants"):
        if getattr(args, option):
            raise UsageError(
                f"--{option.replace('_', '-')} applies when a plan is made: give it to `schemactl plan`"
            )
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
        raise UsageError(
            f"--relax-while-replaying: {args.plan} does not do that; give the option to `schemactl plan`"
        )


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
        f"sets {address}, by which messages can be lost"
        for address in sorted(needed.lose - {*args.allow_data_loss})
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
            return make_plan(
                state, git, origin=origin, permissions=permissions, waivers=waivers, numbers=numbers
            )
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
