"""The registry that a command is about: one of the project file's targets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.history import History
    from schemactl.model import Project, Target
    from schemactl.plan import Origin
    from schemactl.registry import Registry


def add_target(parser: argparse.ArgumentParser) -> None:
    """The argument that says of which registry a command speaks."""
    parser.add_argument(
        "--target", metavar="NAME", help="one of the project file's targets (default: the only one)"
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


def choose_target(project: Project, name: str | None) -> Target:
    """The target called `name`; None: the only one.

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


def open_target(target: Target, project: Project, top: str, context: Context) -> Registry:
    """The registry of `target`; a relative path in its URL starts at the project file's folder."""
    from schemactl.registry import open_registry

    release = target.release or project.release
    folder = Path(top, project.folder)
    progress = context.progress(f"reading {target.name}", "topics")
    return open_registry(target, release=release, defaults=project.defaults, folder=folder, progress=progress)


def origin_of(target: Target, registry: Registry, approved: History) -> Origin:
    """What is compared: the approved history as it is now, and the registry of `target`."""
    from schemactl.plan import Origin

    return Origin(
        target.name, target.registry, registry.release, approved.ref, approved.tip, registry.version
    )
