"""The registry that a command is about: one of the targets of the approved project file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.history import History
    from schemactl.model import Project, Target
    from schemactl.plan import Origin
    from schemactl.registry import Registry
    from schemactl.target_numbers import TargetNumbers


def add_target(parser: argparse.ArgumentParser) -> None:
    """The argument that says of which registry a command speaks."""
    parser.add_argument(
        "--target", metavar="NAME", help="one of the approved project file's targets (default: the only one)"
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """The argument that takes targets from the files at hand."""
    parser.add_argument(
        "--trust-working-tree",
        action="store_true",
        help="take the target from the project file here, not from the approved one: it may name any registry, and any "
        "variable or file as its secret",
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The arguments that say of which registry and which topics a command speaks."""
    add_target(parser)
    parser.add_argument(
        "--topic", action="append", default=[], metavar="GLOB", help="only topics whose name matches"
    )
    parser.add_argument(
        "--namespace",
        action="append",
        default=[],
        metavar="NS",
        help="only topics of this namespace, and itself",
    )


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """A target, and where it stands.

    Attributes:
        target: says which registry, and with which credentials.
        project: the one that has the target; its release and defaults stand for what the registry does not tell.
        top: the folder that the project's own is relative to.
    """

    target: Target
    project: Project
    top: str

    def open(self, context: Context) -> Registry:
        """The registry; a relative path in its URL starts at the project file's folder."""
        from schemactl.registry import open_registry

        return open_registry(
            self.target,
            release=self.target.release or self.project.release,
            defaults=self.project.defaults,
            folder=Path(self.top, self.project.folder),
            progress=context.progress(f"reading {self.target.name}", "topics"),
            warn=lambda text: context.say(f"waiting: {text}"),
        )


def approved_target(name: str | None, project: Project, top: str, context: Context) -> ChosenTarget:
    """The target called `name` (None: the only one), as the approved ref has it.

    Only where nothing has been approved yet, or the user trusts the working tree, it is the one of `project`, which the files at hand declare:
    whoever proposes a change could otherwise send any secret anywhere. Where they say otherwise, that is told.

    Raises:
        UsageError: there is no such target, or more than one.
        SchemactlError: what was approved cannot be told.
    """
    from schemactl import history

    approved = None
    if not context.trust_working_tree:
        approved = history.approved_project(context.directory, context.config, project)
    if approved is None:
        return ChosenTarget(choose_target(project, name), project, top)
    try:
        chosen = ChosenTarget(choose_target(approved.project, name), approved.project, top)
    except UsageError as error:
        own = {key for key in project.targets if name in (None, key)} - approved.project.targets.keys()
        if not own:
            raise
        raise UsageError(
            f"target {', '.join(sorted(own))} is not in {approved.project.path} as {approved.ref} has it",
            fix="have it approved first; or, if you trust the project file here, give --trust-working-tree",
        ) from error
    if _differ(chosen, project):
        context.say(
            f"warning: target {chosen.target.name} is taken as {approved.ref} has it; {project.path} here says otherwise "
            "(--trust-working-tree takes that)"
        )
    return chosen


def _differ(chosen: ChosenTarget, project: Project) -> bool:
    """Whether `project` has another target of that name, or says otherwise what stands for the registry's own settings."""
    ours = chosen.project
    return (
        project.targets.get(chosen.target.name) != chosen.target
        or project.defaults != ours.defaults
        or (chosen.target.release is None and project.release != ours.release)
    )


def choose_target(project: Project, name: str | None) -> Target:
    """The target of `project` called `name`; None: the only one.

    Raises:
        UsageError: there is none, or more than one.
    """
    known = ", ".join(project.targets)
    if name is None and len(project.targets) == 1:
        return next(iter(project.targets.values()))
    if not project.targets:
        raise UsageError(
            f"{project.path} has no targets",
            fix='add one: targets: {local: {registry: "sqlite:.schemactl/registry.db"}}',
        )
    if name is None:
        raise UsageError(f"--target is needed: {project.path} has {known}")
    if name not in project.targets:
        raise UsageError(f"--target {name}: {project.path} has {known}")
    return project.targets[name]


def origin_of(chosen: ChosenTarget, registry: Registry, approved: History) -> Origin:
    """What is compared: the approved history as it is now, and the registry of the target."""
    from schemactl.broker.checkers import known_to
    from schemactl.plan import Origin

    target, release = chosen.target, registry.release
    checkers = known_to(release, chosen.project.defaults.checkers)
    return Origin(
        target.name, target.registry, release, approved.ref, approved.tip, registry.version, checkers
    )


def recorded_numbers(chosen: ChosenTarget, approved: History, context: Context) -> TargetNumbers | None:
    """What the approved history records of the target's version numbers, by the target's own names; None: nothing.

    Raises:
        DeclarationError: all problems of the numbers file.
    """
    from schemactl.history import Repository
    from schemactl.plan import renamed_numbers
    from schemactl.target_numbers import numbers_of

    with Repository.open(context.directory) as repository:
        recorded = numbers_of(chosen.target, chosen.project, repository, approved)
    return renamed_numbers(recorded, chosen.target.namespaces)
