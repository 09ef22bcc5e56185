"""Select targets from the options and the environment, open their registries, and ask them in parallel."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.deadline import OutOfTime, Worker
from schemactl.core.errors import MissingCredentials, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.findings import WaiversAt
    from schemactl.core.names import TargetNames
    from schemactl.core.project import Project, Target
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.steps import Origin
    from schemactl.history import ApprovedProject, History, Repository
    from schemactl.registry.interface import Registry, Scope

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

Stop = Callable[[KeyboardInterrupt | OutOfTime], bool]
"""Handles an interrupt of the main thread; returns whether to wait for all targets, or to give up those that have not ended."""

TARGET_VARIABLE: Final = "SCHEMACTL_TARGET"
_WORST_FIRST: Final = (64, 1, 3, 4, 100, 2, 0)
_LOOK_EVERY_S: Final = 0.2
_TENANT_OF_EVERY_CLUSTER: Final = "public"


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


def add_targets(parser: argparse.ArgumentParser, default: str = "$SCHEMACTL_TARGET, or the only one") -> None:
    """Add the arguments that name targets, and the one that takes them from the files at hand."""
    add_options(
        parser,
        f"--target NAME...: one of the approved project file's targets; may be repeated (default: {default})",
        "--all-targets: all targets; one whose credentials are not here is left out, and the exit code is then 1",
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add --trust-working-tree."""
    add_options(
        parser,
        "--trust-working-tree: use the target of the project file here, not of the approved one: it can name any "
        "registry, and any variable or file as its secret",
    )


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
    otherwise the author of a change could send any secret anywhere. Warn about a difference.

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


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target whose registry is open, and what was approved for it.

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
        """What the target calls declared namespaces."""
        return self.place.target.names

    @property
    def origin(self) -> Origin:
        """What a plan compares: the approved history as it is now, and the registry."""
        from schemactl.broker.checkers import known_to
        from schemactl.core.catalog import namespaces_of
        from schemactl.core.names import NamespaceName
        from schemactl.deploy.steps import Origin

        place, approved, target, release = self.place, self.approved, self.place.target, self.registry.release
        there = self.names.there
        once = {name for name in approved.catalog.former if isinstance(name, NamespaceName)}
        spaces = {there(name) for name in approved.catalog.namespaces.keys() | once}
        named = {*target.tenants.values(), *(name.tenant for name in target.namespaces.values())}
        return Origin(
            target.name,
            target.registry,
            release,
            approved.ref,
            approved.tip,
            self.registry.version,
            known_to(release, place.project.defaults.checkers),
            {there(name): name for name in namespaces_of(approved.catalog)},
            place.project.require_declared_namespaces,
            frozenset({_TENANT_OF_EVERY_CLUSTER, *named, *(name.tenant for name in spaces)}),
            approved.later,
            place.proposed,
            target.cluster,
        )

    @property
    def waivers(self) -> WaiversAt:
        """A function that returns the waivers in the tree of an approved commit, each tree read once."""
        from schemactl.history import waivers_at

        return cache(lambda commit: waivers_at(self.context.repository, self.place.project, commit))

    @property
    def numbers(self) -> TargetNumbers | None:
        """What is recorded of the target's version numbers, by its own names; None: nothing. Raise DeclarationError where that has problems."""
        from schemactl.deploy.planner import renamed_numbers
        from schemactl.history.target_history import numbers_of

        place, repository = self.place, self.context.repository
        recorded = numbers_of(place.target, place.project, repository, self.approved)
        return renamed_numbers(recorded, self.names)

    def with_held(self, git: Catalog, held: Catalog) -> Catalog:
        """Return `git`, what is approved up to where the target is, with the later versions that its registry holds already.

        Both catalogs go by the target's names.
        """
        from schemactl.deploy.planner import with_later

        later = self.approved.later_versions()
        declared = {name: self.names.declared(name) for name in git.topics} if later else {}
        return with_later(git, {name: later[own] for name, own in declared.items() if own in later}, held)


@dataclass(frozen=True, slots=True)
class OpenTargets:
    """The targets of a run.

    Attributes:
        names: the names of all, in the order in which they were given.
        targets: those whose registries are open.
        several: more than one may have been meant; reports then name the target.
        failures: why the others could not be opened, by name.
        left_out: how many were left out, with a message, because their credentials are missing.
        as_rows: report a failure as a row even where only one target was named.
    """

    names: tuple[str, ...]
    targets: tuple[OpenTarget, ...]
    several: bool
    failures: Mapping[str, SchemactlError]
    left_out: int = 0
    as_rows: bool = False

    def exit_code(self, codes: Iterable[int]) -> int:
        """Return the worst of `codes`; a target that was left out counts as an error."""
        return worst([*codes, *[SchemactlError.exit_code] * self.left_out])


class AskedTargets(NamedTuple):
    """The targets that the command line names.

    Attributes:
        names: without duplicates; None stands for the project's only target.
        are_all: all targets; `names` are ignored.
    """

    names: Sequence[str | None] = (None,)
    are_all: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> AskedTargets:
        """Return the targets that `args` name, else the one that the environment names; raise UsageError for contradicting options."""
        if args.all_targets and args.target:
            raise UsageError("--all-targets are all: nothing is named beside it", fix="leave --target out")
        return cls(list(dict.fromkeys(args.target)) or [environment_target()], args.all_targets)

    @property
    def several(self) -> bool:
        """Whether more than one target may be meant."""
        return self.are_all or len(self.names) > 1

    def expect_one(self, option: str, instead: Callable[[str], str]) -> None:
        """Raise UsageError if there are several: `option` is for one. `instead` returns the command for one of them."""
        if self.several:
            names = ["NAME"] if self.are_all else [str(name) for name in self.names]
            raise UsageError(f"{option} is for one target", fix=" && ".join(instead(quote(name)) for name in names))


@contextmanager
def opened(
    asked: AskedTargets, context: Context, *, at: str | None = None, base: str | None = None, as_rows: bool = False
) -> Iterator[OpenTargets]:
    """Open the targets `asked`, and read the approved history once for all.

    Args:
        asked: the targets.
        context: where to work.
        at: a commit that replaces the targets' own positions.
        base: a ref into which HEAD is to be merged; the result of that merge counts as approved.
        as_rows: record a failure for its target alone, even where only one is named.

    Raises:
        UsageError: there is no such target, or one has to be named.
        MissingCredentials: a named target's credentials are not here.
        SchemactlError: there is no project, or Git cannot say which schemas were approved; or anything of the only target.
    """
    from schemactl.history.target_history import read_effective

    several = asked.several
    places = approved_targets(None if asked.are_all else asked.names, context)
    found: list[OpenTarget] = []
    failures: dict[str, SchemactlError] = {}
    left_out = 0
    repository = context.repository
    with ExitStack() as stack:
        if base:
            places, whole = _proposed(places, base, repository, context)
            context.note(*whole.notes)
        else:
            whole = context.approved(places[0].project)
        for place in places:
            name = place.target.name
            own = context.about(name) if several else context
            try:
                registry = stack.enter_context(closing(place.open(own)))
                approved = read_effective(repository, place.project, place.target, at=at, whole=whole)
                found.append(OpenTarget(place, approved, registry, own))
            except SchemactlError as error:
                is_missing = isinstance(error, MissingCredentials)
                if is_missing and asked.are_all and not as_rows:
                    context.say(f"{name} is left out: {error.what}")
                    left_out += 1
                elif as_rows or (several and not is_missing):
                    failures[name] = error
                else:
                    error.what = f"{name}: {error.what}" if several else error.what
                    raise
        names = tuple(place.target.name for place in places)
        yield OpenTargets(names, tuple(found), several, failures, left_out, as_rows)


def _proposed(
    places: Sequence[ChosenTarget], base: str, repository: Repository, context: Context
) -> tuple[list[ChosenTarget], History]:
    """Return the targets and the history as they will be once HEAD is merged into `base`.

    A change must not choose where secrets are sent: if it names another registry or other credentials than the approved
    `places`, no registry is asked.

    Raises:
        SchemactlError: HEAD and `base` cannot be merged, or that changes which registry is to be asked, or how.
        DeclarationError: the project file is wrong after the merge.
    """
    from schemactl.history import proposed
    from schemactl.history.approved_history import read_project_at

    approved = places[0].project
    merge = proposed(repository, approved, base)
    project = read_project_at(repository, merge.commit, approved.path)
    if project is None:
        raise SchemactlError(f"the merge of HEAD removes {approved.path}: there is nothing to plan for")
    found = [
        replace(each, target=_merged(each.target, approved, project), project=project, proposed=True) for each in places
    ]
    return found, merge.read(repository, project, progress=context.reading_history())


def _merged(target: Target, approved: Project, project: Project) -> Target:
    """Return `target` as `project` has it; raise SchemactlError if its registry or credentials, or those of one it waits for, differ."""
    found = project.targets.get(target.name)
    for name in (target.name, *(found.after if found else ())):
        before, after = approved.targets.get(name), project.targets.get(name)
        if (
            before is None
            or after is None
            or (before.registry, before.credentials) != (after.registry, after.credentials)
        ):
            raise SchemactlError(
                f"the merge of HEAD adds the target {name}, removes it, or has it at another registry or with other credentials: that "
                "counts once it is approved",
                fix=f"have what {project.path} says of {name} approved first, by a change of its own",
            )
    assert found  # noqa: S101  it was looked at above
    return found


def each_target(
    targets: OpenTargets,
    prepare: Callable[[OpenTarget], T],
    ask: Callable[[T], U],
    finish: Callable[[T, U], V],
    *,
    stop: Stop | None = None,
) -> dict[str, V | SchemactlError]:
    """Return the result for each target by name, or the error that prevented one.

    Args:
        targets: the open targets.
        prepare: returns the request for a target.
        ask: sends the request to the target's registry; runs in parallel for several targets.
        finish: returns the result for a request and its answer.
        stop: see `side_by_side`.

    Raises:
        UsageError: the command line is wrong, for whichever target.
        SchemactlError: anything that concerns the only target.
    """
    found: dict[str, V | SchemactlError] = dict(targets.failures)
    requests: dict[str, T] = {}

    def failed(name: str, error: SchemactlError) -> None:
        if isinstance(error, UsageError) or not (targets.several or targets.as_rows):
            raise error
        found[name] = error

    for target in targets.targets:
        try:
            requests[target.name] = prepare(target)
        except SchemactlError as error:
            failed(target.name, error)
    answers = side_by_side([partial(ask, request) for request in requests.values()], stop=stop)
    for (name, request), answer in zip(requests.items(), answers, strict=True):
        result = answer if isinstance(answer, SchemactlError) else _alone(partial(finish, request, answer), stop)
        if isinstance(result, SchemactlError):
            failed(name, result)
        else:
            found[name] = result
    return {name: found[name] for name in targets.names if name in found}


def looked_up(catalog: Catalog) -> Catalog:
    """Return `catalog` with everything in it read from Git now, so that threads need not ask Git."""
    from schemactl.core.catalog import Catalog

    return Catalog(dict(catalog.namespaces), dict(catalog.topics), dict(catalog.former))


def side_by_side(works: Sequence[Callable[[], T]], *, stop: Stop | None = None) -> list[T | SchemactlError]:
    """Return what each of `works` returns, or the error that it raises; several run in parallel, each in a thread.

    Args:
        works: the functions to call.
        stop: handles an interrupt; None: an interrupt ends everything.
    """
    if len(works) == 1:
        return [_alone(works[0], stop)]
    results: dict[int, T | SchemactlError] = {}
    bugs: list[BaseException] = []

    def run(number: int, work: Callable[[], T]) -> None:
        try:
            results[number] = _result(work)
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            bugs.append(error)

    workers = [Worker(partial(run, *each)) for each in enumerate(works)]
    for worker in workers:
        worker.start()
    given_up = _given_up(workers, stop)
    if bugs:
        raise bugs[0]
    return [results.get(number, given_up) for number in range(len(works))]


def _given_up(workers: Sequence[Worker], stop: Stop | None) -> SchemactlError:
    """Wait until all have ended, or `stop` gives up the rest; return the error of those that were given up."""
    while left := [worker for worker in workers if not worker.has_ended]:
        try:
            left[0].wait(_LOOK_EVERY_S)
        except (KeyboardInterrupt, OutOfTime) as error:
            if stop is None:
                raise
            if not stop(error):
                return _not_done(error)
    return SchemactlError("it gave no answer")


def _alone(work: Callable[[], T], stop: Stop | None) -> T | SchemactlError:
    try:
        return _result(work)
    except OutOfTime as error:
        if stop is None or stop(error):
            raise
        return _not_done(error)


def _not_done(error: KeyboardInterrupt | OutOfTime) -> SchemactlError:
    return SchemactlError(error.what, fix=error.fix) if isinstance(error, OutOfTime) else SchemactlError("interrupted")


def _result(work: Callable[[], T]) -> T | SchemactlError:
    try:
        return work()
    except SchemactlError as error:
        return error


def worst(codes: Iterable[int]) -> int:
    """Return the worst of `codes`; 0 if there are none."""
    return min(codes, key=_WORST_FIRST.index, default=0)


def succeeded(found: Mapping[str, T | SchemactlError], codes: list[int], context: Context) -> Iterator[T]:
    """Yield the results of the targets that succeeded; print the errors of the others, and add their exit codes to `codes`."""
    for name, each in found.items():
        if not isinstance(each, SchemactlError):
            yield each
            continue
        codes.append(each.exit_code)
        context.report(f"{name}: {each}\n")
