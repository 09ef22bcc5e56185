"""The arguments that select topics, versions and the target."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import UsageError
from schemactl.core.names import find_one, matching

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.names import NamespaceName
    from schemactl.core.project import Project, Target
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import ApprovedProject
    from schemactl.registry.interface import Registry, Scope

TOPIC_HELP: Final = (
    "the topic's name, as much of it as is unambiguous: orders, sales/orders, shop/sales/orders"
)
VERSION_HELP: Final = f"{TOPIC_HELP}; @N: Git's version N"
TARGET_VARIABLE: Final = "SCHEMACTL_TARGET"


class EnvironmentTarget(str):
    """A target's name from the environment, not from the command line."""

    __slots__ = ()


def environment_target() -> EnvironmentTarget | None:
    """Return the target that SCHEMACTL_TARGET names; None if it is not set."""
    named = os.environ.get(TARGET_VARIABLE)
    return EnvironmentTarget(named) if named else None


def add_target(
    parser: argparse.ArgumentParser,
    help_text: str = "one of the approved project file's targets (default: $SCHEMACTL_TARGET, or the only one)",
    *,
    from_environment: bool = True,
) -> None:
    """Add the argument that names a target, and --trust-working-tree.

    A command that works without a target must not take one from the environment: it would contact a registry unasked.
    """
    default = environment_target() if from_environment else None
    add_options(parser, f"--target NAME: {help_text}", default=default)
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add --trust-working-tree."""
    add_options(
        parser,
        "--trust-working-tree: use the target of the project file here, not of the approved one: it can name any "
        "registry, and any variable or file as its secret",
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a target and topics."""
    add_target(parser)
    add_filters(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select topics."""
    add_options(
        parser,
        "--topic GLOB...: only these topics: orders, 'shop/sales/*', 'shop/**'; '!GLOB' leaves some out; may be repeated",
        "--namespace NS...: only this namespace; may be repeated",
    )
    add_options(
        parser, "--skip GLOB...: without these topics, as --topic '!GLOB'", dest="topic", type="!{}".format
    )


def asked_namespaces(names: Iterable[str]) -> frozenset[NamespaceName] | None:
    """Return the namespaces that `--namespace` names, by the registry's names; None: all.

    Listing all takes a superuser; a tenant's administrator may ask about the namespaces of that tenant.
    """
    from schemactl.core.names import NamespaceName

    found = set()
    for text in names:
        try:
            found.add(NamespaceName.parse(text))
        except ValueError as error:
            raise UsageError(f"--namespace {text}: {error}") from None
    return frozenset(found) or None


class ChosenTopic(NamedTuple):
    """A topic and one of its versions; None: the definition in force."""

    topic: Topic
    version: SchemaVersion | None

    @property
    def info(self) -> SchemaInfo | None:
        """The definition of the version, else the one in force, else the last version's; read on each use."""
        found = self.topic.schema
        if self.version:
            found = self.version.info
        elif found is None and self.topic.versions:
            found = self.topic.versions[-1].info
        return found.load() if found else None


def choose(text: str, catalog: Catalog) -> ChosenTopic:
    """Return the topic of `catalog`, and its version, that `text` names as TOPIC or TOPIC@N.

    Raises:
        UsageError: there is none, or several; the message lists similar names.
    """
    name, at, number = text.rpartition("@")
    if not at or matching(text, catalog.topics):
        return ChosenTopic(find(text, catalog), None)
    topic = find(name, catalog)
    if not number.isdecimal():
        raise UsageError(
            f"{text}: expected the number of a version after the @, found {number!r}: {known_numbers(topic)}"
        )
    return ChosenTopic(topic, version_of(topic, int(number)))


def find(text: str, catalog: Catalog, *, globs: bool = True, where: str = "the approved history") -> Topic:
    """Return the topic of `catalog` that `text` names; `where` describes the catalog. Raise UsageError unless it is one topic."""
    return catalog.topics[find_one(text, catalog.topics, globs=globs, where=where)]


def version_of(topic: Topic, number: int) -> SchemaVersion:
    """Return the topic's version with that number; raise UsageError if there is none."""
    found = next((version for version in topic.versions if version.number == number), None)
    if found is None:
        raise UsageError(f"{topic.name} has no version {number}: {known_numbers(topic)}")
    if found.info is None:
        raise UsageError(
            f"{topic.name}: number {number} is a tombstone, before a new generation, and has no schema"
        )
    return found


def known_numbers(topic: Topic) -> str:
    """Return the range of a topic's versions, as the end of a message."""
    last = topic.versions[-1].number if topic.versions else None
    known = "none" if last is None else f"0 to {last}" if last else "version 0 alone"
    return f"the approved history knows {known}"


def number_of(version_bytes: str) -> int:
    """Return the version number in a message's `schema_version`, written in hex: 8 bytes, big-endian.

    Clients before 2.4.0 sent 64 bytes, of which the first 8 count (BookkeeperSchemaStorage.versionFromBytes).

    Raises:
        UsageError: the text is not that.
    """
    text = version_bytes.removeprefix("0x").replace(" ", "").replace(":", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"--version-bytes {version_bytes}: expected 16 hex digits") from None
    if not data:
        raise UsageError(
            "--version-bytes is empty: a message without a schema version was written without a schema"
        )
    if len(data) not in (8, 64):
        raise UsageError(f"--version-bytes {version_bytes}: expected 8 bytes, found {len(data)}")
    return int.from_bytes(data[:8], "big", signed=True)


def relative_path(text: str, context: Context) -> Path:
    """Return the file that the user calls `text`, as a path relative to the current folder."""
    return Path(os.path.relpath(Path(context.directory, text)))


def output_file(text: str, context: Context, *, name: str) -> Path:
    """Return the file that `--out TEXT` and similar options mean, as a path relative to the current folder.

    TEXT is a folder if it ends with `/` or is a folder already, and a file otherwise; in a folder the file is called `name`.
    """
    path = Path(context.directory, text)
    if text.endswith("/") or path.is_dir():
        path /= name
    return relative_path(str(path), context)


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """A target, and the project that declares it.

    Attributes:
        target: names the registry and its credentials.
        project: declares the target, and the release and defaults to assume where the registry reports none.
        top: the folder that the project's folder is relative to.
        proposed: target and project are from a change that is not approved yet.
    """

    target: Target
    project: Project
    top: str
    proposed: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the project file."""
        return Path(self.top, self.project.folder)

    def open(self, context: Context) -> Registry:
        """Open the registry; a relative path in its URL starts at the project file's folder."""
        from schemactl.registry import open_registry

        return open_registry(
            self.target,
            release=self.target.release or self.project.release,
            defaults=self.project.defaults,
            folder=self.folder,
            progress=context.progress(f"reading {self.target.name}", "topics"),
            warn=lambda text: context.say(f"waiting: {text}"),
        )

    def read(self, scope: Scope, context: Context) -> Catalog:
        """Return what the registry holds of `scope`; raise SchemactlError if it does not answer."""
        with closing(self.open(context)) as registry:
            return registry.read(scope)


def target_of(name: str | None, context: Context) -> ChosenTarget:
    """Return the target called `name` of the project that the folder belongs to, as `approved_target` does."""
    project, top = context.project()
    return approved_target(name, project, top, context)


def approved_target(name: str | None, project: Project, top: str, context: Context) -> ChosenTarget:
    """Return the target called `name` (None: the only one), as the approved ref declares it.

    It is taken from `project`, the files at hand, only if nothing has been approved yet, or the user trusts the working tree:
    otherwise whoever proposes a change could send any secret anywhere. Warn about a difference.

    Raises:
        UsageError: there is no such target, or more than one.
        SchemactlError: what was approved cannot be read.
    """
    return _chosen(name, project, top, reviewed_project(project, context), context)


def approved_targets(names: Sequence[str | None] | None, context: Context) -> list[ChosenTarget]:
    """Return the targets called `names`, each as `target_of` returns it; None: all targets."""
    project, top = context.project()
    approved = reviewed_project(project, context)
    # Where there is none, choosing the only one says what to do.
    known = names or list((approved.project if approved else project).targets) or [None]
    return [_chosen(name, project, top, approved, context) for name in known]


def _chosen(
    name: str | None, project: Project, top: str, approved: ApprovedProject | None, context: Context
) -> ChosenTarget:
    from schemactl.declare import project as declare_project

    if approved is None:
        chosen = ChosenTarget(declare_project.choose_target(project, name, shown_target(name)), project, top)
    else:
        try:
            found = declare_project.choose_target(approved.project, name, shown_target(name))
            chosen = ChosenTarget(found, approved.project, top)
        except UsageError as error:
            own = {key for key in project.targets if name in (None, key)} - approved.project.targets.keys()
            if not own:
                raise
            raise UsageError(
                f"target {', '.join(sorted(own))} is not in {approved.project.path} as {approved.ref} has it",
                fix="merge it first; or, if you trust the project file here, use --trust-working-tree",
            ) from error
        if _differ(chosen, project):
            context.say(
                f"warning: target {chosen.target.name} is used as {approved.ref} defines it; {project.path} here differs "
                "(--trust-working-tree uses that)"
            )
    where = f", from {TARGET_VARIABLE}" if isinstance(name, EnvironmentTarget) else ""
    context.detail(f"target: {chosen.target.name} ({chosen.target.registry}){where}")
    return chosen


def reviewed_project(project: Project, context: Context) -> ApprovedProject | None:
    """Return `project` as it was approved; None: nothing is approved yet, or the user trusts the working tree."""
    from schemactl import history

    if context.trust_working_tree:
        return None
    return history.approved_project(context.directory, context.config, project)


def _differ(chosen: ChosenTarget, project: Project) -> bool:
    """Return whether the target, or the defaults for its registry, differ in `project`."""
    ours = chosen.project
    return (
        project.targets.get(chosen.target.name) != chosen.target
        or project.defaults != ours.defaults
        or (chosen.target.release is None and project.release != ours.release)
    )


def shown_target(name: str | None) -> str:
    """Return how the user named the target: `--target prod`, or `SCHEMACTL_TARGET=prod`."""
    return f"{TARGET_VARIABLE}={name}" if isinstance(name, EnvironmentTarget) else f"--target {name}"
