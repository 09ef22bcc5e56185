"""Select targets from the options and the environment, and open their registries."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context, select_notes
from schemactl.cli.parser import add_options
from schemactl.core.catalog import Catalog, list_namespaces
from schemactl.core.errors import ExitCode, HistoryError, MissingCredentials, SchemactlError, UsageError
from schemactl.core.names import NamespaceName, TargetNames, TopicName

if TYPE_CHECKING:
    from schemactl.core.findings import WaiversAt
    from schemactl.core.project import Project, Target
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.broker_configuration import BrokerComparison
    from schemactl.deploy.plan import Origin, UnreadableDeclaration
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.history.approved_history import ApprovedProject, History
    from schemactl.registry.interface import Registry, Scope


TARGET_VARIABLE: Final = "SCHEMACTL_TARGET"

_TENANT_OF_EVERY_CLUSTER: Final = "public"


class EnvironmentTarget(str):
    """A target's name from the environment, not from the command line."""

    __slots__ = ()


def read_environment_target() -> EnvironmentTarget | None:
    """Return the target that SCHEMACTL_TARGET names, or None if it is not set."""
    name = os.environ.get(TARGET_VARIABLE)
    return EnvironmentTarget(name) if name else None


def has_target_option(args: argparse.Namespace) -> bool:
    """Return whether the command line names a target, and not the environment."""
    return args.target is not None and not isinstance(args.target, EnvironmentTarget)


def add_target(
    parser: argparse.ArgumentParser,
    help_text: str = "one of the approved project file's targets (default: $SCHEMACTL_TARGET, or the only one)",
    *,
    from_environment: bool = True,
) -> None:
    """Add the argument that names a target, and --trust-working-tree.

    A command that works without a target must not take one from the environment: it would contact a registry unexpectedly.
    """
    default = read_environment_target() if from_environment else None
    add_options(parser, f"--target NAME: {help_text}", default=default)
    add_trust(parser)


def add_targets(parser: argparse.ArgumentParser, default: str = "$SCHEMACTL_TARGET, or the only one") -> None:
    """Add the arguments that name targets, and --trust-working-tree."""
    add_options(
        parser,
        f"--target NAME...: one of the approved project file's targets; may be repeated (default: {default})",
        "--all-targets: all targets; a target whose credentials are missing is skipped, and the exit code is then 1",
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add --trust-working-tree."""
    add_options(
        parser,
        "--trust-working-tree: use the target as the working tree defines it, not as approved: such a target can name "
        "any registry, and any variable or file as its secret",
    )


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """A target, and the project that declares it.

    Attributes:
        target: the registry and its credentials.
        project: the project, with the release and defaults to assume if the registry does not report them.
        top: the folder that the project's folder is relative to.
        proposed: whether target and project are from a change that is not approved yet.
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
            parallel=context.parallel,
        )

    def read(self, scope: Scope, context: Context) -> Catalog:
        """Read `scope` from the registry; raise SchemactlError if it does not respond."""
        with closing(self.open(context)) as registry:
            return registry.read(scope)


def choose_target(name: str | None, context: Context) -> ChosenTarget:
    """Return the target called `name` of the project that the folder belongs to, as `choose_approved_target` does."""
    project, top = context.project()
    return choose_approved_target(name, project, top, context)


def choose_approved_target(name: str | None, project: Project, top: str, context: Context) -> ChosenTarget:
    """Return the target called `name`, or the only one, as the approved ref declares it.

    The target of `project`, the working tree, is used only if nothing has been approved yet or the user trusts the working tree:
    otherwise the author of a change could send any secret anywhere. Warn about a difference.

    Raises:
        UsageError: if there is no such target, or more than one.
        SchemactlError: if the approved project cannot be read.
    """
    return _choose_target(name, project, top, read_approved_project(project, context), context)


def choose_approved_targets(selection: TargetSelection, context: Context) -> list[ChosenTarget]:
    """Return the selected targets as the approved ref declares them."""
    project, top = context.project()
    approved = read_approved_project(project, context)
    names = [] if selection.are_all else selection.names
    # A project without targets: the error about the missing only target gives the fix.
    names = names or list((approved.project if approved else project).targets) or [None]
    return [_choose_target(name, project, top, approved, context) for name in names]


def _choose_target(
    name: str | None, project: Project, top: str, approved: ApprovedProject | None, context: Context
) -> ChosenTarget:
    from schemactl.declare import project as declare_project

    if approved is None:
        chosen = ChosenTarget(declare_project.choose_target(project, name, format_target_option(name)), project, top)
    else:
        try:
            target = declare_project.choose_target(approved.project, name, format_target_option(name))
            chosen = ChosenTarget(target, approved.project, top)
        except UsageError as error:
            unapproved = {key for key in project.targets if name in (None, key)} - approved.project.targets.keys()
            if not unapproved:
                raise
            raise UsageError(
                f"target {', '.join(sorted(unapproved))} is not in {approved.project.path} at {approved.ref}",
                fix="merge it first; or, if you trust the project file here, use --trust-working-tree",
            ) from error
        approved_project = approved.project
        differs = (
            project.targets.get(target.name) != target
            or project.defaults != approved_project.defaults
            or (target.release is None and project.release != approved_project.release)
        )
        if differs:
            context.say(
                f"warning: target {target.name} is used as {approved.ref} defines it; {project.path} in the working tree differs "
                "(--trust-working-tree uses it)"
            )
    origin = f", from {TARGET_VARIABLE}" if isinstance(name, EnvironmentTarget) else ""
    context.detail(f"target: {chosen.target.name} ({chosen.target.registry}){origin}")
    return chosen


def read_approved_project(project: Project, context: Context) -> ApprovedProject | None:
    """Return the approved `project`, or None if nothing is approved yet or the user trusts the working tree."""
    from schemactl.history.approved_history import find_approved_project

    if context.trust_working_tree:
        return None
    repository = None
    with suppress(HistoryError):
        # Outside of a repository, `find_approved_project` decides whether that is an error.
        repository = context.repository
    return find_approved_project(context.directory, context.config, project, repository=repository)


def format_target_option(name: str | None) -> str:
    """Return the target as the user wrote it: `--target prod`, or `SCHEMACTL_TARGET=prod`."""
    return f"{TARGET_VARIABLE}={name}" if isinstance(name, EnvironmentTarget) else f"--target {name}"


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target whose registry is open, and its approved history.

    Attributes:
        place: the target and its project.
        approved: the approved history, up to the target's position.
        registry: the open registry.
        context: prints messages about the target.
    """

    place: ChosenTarget
    approved: History
    registry: Registry
    context: Context

    @property
    def name(self) -> str:
        """The target's name."""
        return self.place.target.name

    @property
    def names(self) -> TargetNames:
        """The names of declared namespaces on the target."""
        return self.place.target.names

    @property
    def origin(self) -> Origin:
        """Both sides of a plan's comparison: the current approved history and the registry."""
        from schemactl.deploy.plan import Origin

        place, approved, target, release = self.place, self.approved, self.place.target, self.registry.release
        to_target_name = self.names.to_target
        former_namespaces = {name for name in approved.catalog.former if isinstance(name, NamespaceName)}
        namespaces = {to_target_name(name) for name in approved.catalog.namespaces.keys() | former_namespaces}
        renamed_tenants = {*target.tenants.values(), *(name.tenant for name in target.namespaces.values())}
        return Origin(
            target.name,
            target.registry,
            release,
            approved.ref,
            approved.tip,
            self.registry.version,
            self.registry.defaults.checkers,
            {to_target_name(name): name for name in list_namespaces(approved.catalog)},
            place.project.require_declared_namespaces,
            frozenset({_TENANT_OF_EVERY_CLUSTER, *renamed_tenants, *(name.tenant for name in namespaces)}),
            approved.later_commit_count,
            place.proposed,
            target.cluster,
            target.properties,
        )

    def find_unreadable(self, topics: Sequence[str], namespaces: Sequence[str]) -> tuple[UnreadableDeclaration, ...]:
        """Return the approved declarations that cannot be read, of the selected topics and of whole files."""
        from schemactl.deploy.plan import UnreadableDeclaration

        notes = select_notes(self.approved.notes, self.approved, [*topics], [*namespaces])
        return tuple(
            UnreadableDeclaration(
                self.names.to_target(note.topic)
                if note.topic and self.names.has(note.topic.namespace_name)
                else note.topic,
                note.commit,
                note.problem,
            )
            for note in notes
        )

    def compare_brokers(
        self, state: RegistryState, git: Catalog, numbers: TargetNumbers | None
    ) -> BrokerComparison | None:
        """Compare the brokers' configuration in `state` with the project file.

        `git` is approved, by the target's names; `numbers` has the accepted settings.
        """
        from schemactl.deploy.broker_configuration import compare_configuration
        from schemactl.deploy.target_catalog import select_applicable

        if state.configuration is None:
            return None
        release = self.registry.release
        accepted = numbers.brokers if numbers else None
        return compare_configuration(
            self.place.project.defaults,
            state.configuration,
            release,
            select_applicable(git),
            accepted=accepted,
            today=datetime.now(UTC).date(),
        )

    @property
    def waivers(self) -> WaiversAt:
        """A function that returns the waivers in the tree of an approved commit, each tree read once."""
        from schemactl.history.approved_history import read_waivers_of_commit

        return cache(lambda commit: read_waivers_of_commit(self.context.repository, self.place.project, commit))

    @property
    def numbers(self) -> TargetNumbers | None:
        """The recorded version numbers of the target, by the target's names, or None if there is no record.

        Raises:
            DeclarationError: if the record has problems.
        """
        from schemactl.deploy.target_catalog import rename_numbers
        from schemactl.history.target_history import read_numbers_of_target

        place, repository = self.place, self.context.repository
        recorded = read_numbers_of_target(place.target, place.project, repository, self.approved)
        return rename_numbers(recorded, self.names)

    def add_registered_versions(self, git: Catalog, registered: Catalog) -> Catalog:
        """Add to `git` the versions after the target's position that its registry has already.

        Args:
            git: the approved catalog up to the target's position, by the target's names.
            registered: the catalog of the registry.
        """
        from schemactl.deploy.target_catalog import add_later_versions

        if not self.approved.later_commit_count:
            return add_later_versions(git, {}, registered)
        later_versions, whole = self.approved.later_versions(), self.approved.full_history.catalog

        def find_later_partitions(name: TopicName) -> int | None:
            declared = self.names.declared(name)
            topic = whole.topics.get(declared) if declared else None
            return topic.partitions if topic else None

        declared_names = {name: self.names.declared(name) for name in git.topics}
        later_by_target_name = {
            name: later_versions[declared] for name, declared in declared_names.items() if declared in later_versions
        }
        return add_later_versions(git, later_by_target_name, registered, find_later_partitions)


@dataclass(frozen=True, slots=True)
class OpenTargets:
    """The targets of a run.

    Attributes:
        names: the names of all targets, in the order of the command line.
        targets: the targets whose registries are open.
        has_several: whether the user may have named more than one target; reports then name the target.
        failures: the errors of targets that could not be opened, by name.
        left_out: the number of targets that were skipped with a message, because their credentials are missing.
        as_rows: whether a failure becomes a row even if the user named only one target.
    """

    names: tuple[str, ...]
    targets: tuple[OpenTarget, ...]
    has_several: bool
    failures: Mapping[str, SchemactlError]
    left_out: int = 0
    as_rows: bool = False

    def exit_code(self, codes: Iterable[int]) -> int:
        """Return the worst of `codes`; a skipped target counts as an error."""
        return select_exit_code([*codes, *[ExitCode.ERROR] * self.left_out])


class TargetSelection(NamedTuple):
    """The targets that the command line names.

    Attributes:
        names: the names without duplicates; None means the project's only target.
        are_all: whether all targets are meant; `names` are then ignored.
    """

    names: Sequence[str | None] = (None,)
    are_all: bool = False

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> TargetSelection:
        """Return the targets that `args` name, else the one in the environment; raise UsageError for contradicting options."""
        if args.all_targets and args.target:
            raise UsageError("--all-targets cannot be combined with --target", fix="remove one of them")
        return cls(list(dict.fromkeys(args.target)) or [read_environment_target()], args.all_targets)

    @property
    def has_several(self) -> bool:
        """Whether the user may have named more than one target."""
        return self.are_all or len(self.names) > 1

    def guess_names(self, context: Context) -> list[str]:
        """Return the names for the report of an error: without names, those in the working tree's project file, if it can be read and says which."""
        names = [] if self.are_all else [name for name in self.names if name is not None]
        if names:
            return names
        from schemactl.declare.project import load_project

        try:
            targets = load_project(context.directory, context.config)[0].targets
        except SchemactlError:
            targets = {}
        return [*targets] if (self.are_all and targets) or len(targets) == 1 else ["schemactl"]

    def require_one(self, option: str, instead: Callable[[str], str]) -> None:
        """Raise UsageError if there are several targets, because `option` works for one.

        `instead` returns the command to run for a target's name.
        """
        if self.has_several:
            names = ["NAME"] if self.are_all else [str(name) for name in self.names]
            raise UsageError(f"{option} is for one target", fix=" && ".join(instead(quote(name)) for name in names))


def select_exit_code(codes: Iterable[int]) -> int:
    """Return the worst of the exit codes, or 0 without codes."""
    return min(codes, key=[*ExitCode].index, default=ExitCode.SUCCESS)


@contextmanager
def open_targets(
    selection: TargetSelection,
    context: Context,
    *,
    at: str | None = None,
    base: str | None = None,
    as_rows: bool = False,
    prints_notes: bool = True,
) -> Iterator[OpenTargets]:
    """Open the selected targets, and read the approved history once for all.

    Args:
        selection: the targets that the command line names.
        context: where to work.
        at: a commit that replaces the targets' own positions.
        base: a ref into which HEAD is to be merged; the result of that merge counts as approved.
        as_rows: record a failure for its target alone, even if the user named only one.
        prints_notes: whether to print the notes on declarations that cannot be read; else the command's report has them.

    Raises:
        UsageError: if there is no such target, or one has to be named.
        MissingCredentials: if the credentials of a named target are missing.
        SchemactlError: if there is no project, the approved history cannot be read, or the only target cannot be opened.
    """
    from schemactl.history.target_history import read_effective

    has_several = selection.has_several
    places, whole = _read_places(selection, base, context)
    open_targets: list[OpenTarget] = []
    failures: dict[str, SchemactlError] = {}
    left_out = 0
    repository = context.repository
    if prints_notes:
        context.note(*whole.notes)
    with ExitStack() as stack:
        for place in places:
            name = place.target.name
            target_context = context.about(name) if has_several else context
            try:
                registry = stack.enter_context(closing(place.open(target_context)))
                approved = read_effective(repository, place.project, place.target, at=at, full_history=whole)
                open_targets.append(OpenTarget(place, approved, registry, target_context))
            except SchemactlError as error:
                is_missing = isinstance(error, MissingCredentials)
                if is_missing and selection.are_all and not as_rows:
                    context.say(f"{name} is skipped: {error.message}")
                    left_out += 1
                elif as_rows or (has_several and not is_missing):
                    failures[name] = error
                else:
                    error.message = f"{name}: {error.message}" if has_several else error.message
                    raise
        names = tuple(place.target.name for place in places)
        yield OpenTargets(names, tuple(open_targets), has_several, failures, left_out, as_rows)


def read_approved(selection: TargetSelection, context: Context, *, at: str | None, base: str | None) -> History:
    """Read the approved history of the selected target, with its overlays and position, but not its registry.

    `at` and `base` are as for `open_targets`.
    """
    from schemactl.history.target_history import read_effective

    [place], whole = _read_places(selection, base, context)
    return read_effective(context.repository, place.project, place.target, at=at, full_history=whole)


def _read_places(selection: TargetSelection, base: str | None, context: Context) -> tuple[list[ChosenTarget], History]:
    """Return the selected targets and the approved history, or both after a merge of HEAD into `base`.

    A change must not choose where secrets are sent, so the registries and credentials of the targets, and of the targets that they
    wait for, have to equal the approved ones.

    Raises:
        SchemactlError: if HEAD and `base` cannot be merged, or the merge changes a registry or credentials.
        DeclarationError: if the project file has problems after the merge.
    """
    from schemactl.history.approved_history import read_project_at
    from schemactl.history.merge import merge_head_into

    places, repository = choose_approved_targets(selection, context), context.repository
    approved = places[0].project
    if not base:
        return places, context.approved(approved, prints_notes=False)
    merge = merge_head_into(repository, approved, base)
    project = read_project_at(repository, merge.commit, approved.path)
    if project is None:
        raise SchemactlError(f"the merge of HEAD removes {approved.path}, so no target remains to plan for")
    proposed_places = []
    for place in places:
        target = project.targets.get(place.target.name)
        for name in (place.target.name, *(target.after if target else ())):
            old, new = approved.targets.get(name), project.targets.get(name)
            if old is None or new is None or (old.registry, old.credentials) != (new.registry, new.credentials):
                raise SchemactlError(
                    f"target {name}: HEAD changes its registry or credentials; `plan --base` uses only merged ones",
                    fix=f"merge the change of {name} in {project.path} in a separate pull request",
                )
        assert target  # noqa: S101  the loop has checked it
        proposed_places.append(replace(place, target=target, project=project, proposed=True))
    return proposed_places, merge.read(repository, project, progress=context.reading_history())
