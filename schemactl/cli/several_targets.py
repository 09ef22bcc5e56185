"""Several targets in one run: which they are, what is asked of them side by side, and the one exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from schemactl.cli import Context
from schemactl.cli.parser import add_options
from schemactl.cli.selection import ChosenTarget, add_trust, approved_targets, environment_target
from schemactl.deadline import OutOfTime
from schemactl.errors import MissingCredentials, SchemactlError, UsageError
from schemactl.workers import Worker

if TYPE_CHECKING:
    from schemactl.history import History, Repository
    from schemactl.model import Catalog, Project, Target
    from schemactl.registry import Registry

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

Stop = Callable[[KeyboardInterrupt | OutOfTime], bool]
"""Takes what interrupts the main thread; returns whether to wait for all targets. Otherwise those that have not ended are given up."""

_WORST_FIRST: Final = (64, 1, 3, 4, 100, 2, 0)
_LOOK_EVERY_S: Final = 0.2


def add_targets(parser: argparse.ArgumentParser, default: str = "$SCHEMACTL_TARGET, or the only one") -> None:
    """Add the arguments that name targets, and the one that takes them from the files at hand."""
    add_options(
        parser,
        f"--target NAME...: one of the approved project file's targets; may be repeated (default: {default})",
        "--all-targets: all targets; one whose credentials are not here is left out, and the exit code is then 1",
    )
    add_trust(parser)


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target whose registry is open, and what was approved for it.

    Attributes:
        place: the target.
        approved: the approved history, up to where the target is.
        registry: open.
        context: how to speak of it.
    """

    place: ChosenTarget
    approved: History
    registry: Registry
    context: Context

    @property
    def name(self) -> str:
        """The target's name."""
        return self.place.target.name


@dataclass(frozen=True, slots=True)
class OpenTargets:
    """The targets of a run.

    Attributes:
        names: of all, in the order in which they were named.
        targets: those that can be asked.
        several: whether more than one may have been meant: then each line of JSON is one target's.
        failures: by name, why others cannot be asked.
        left_out: how many have no credentials here, which is said already.
        as_rows: a failure of the only target is one of the report, too.
    """

    names: tuple[str, ...]
    targets: tuple[OpenTarget, ...]
    several: bool
    failures: Mapping[str, SchemactlError]
    left_out: int = 0
    as_rows: bool = False

    def exit_code(self, codes: Iterable[int]) -> int:
        """Return the worst of `codes`; what was left out counts as an error."""
        return worst([*codes, *[SchemactlError.exit_code] * self.left_out])


class AskedTargets(NamedTuple):
    """The targets that are asked for.

    Attributes:
        names: each once; None: the only one.
        are_all: all of them; `names` do not count.
    """

    names: Sequence[str | None] = (None,)
    are_all: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> AskedTargets:
        """Return those that `args` name, else the one that the environment names. Raise UsageError where they contradict."""
        if args.all_targets and args.target:
            raise UsageError("--all-targets are all: nothing is named beside it", fix="leave --target out")
        return cls(list(dict.fromkeys(args.target)) or [environment_target()], args.all_targets)

    @property
    def several(self) -> bool:
        """Whether more than one may be meant."""
        return self.are_all or len(self.names) > 1

    def expect_one(self, option: str, instead: Callable[[str], str]) -> None:
        """Raise UsageError where `option` is given for several; `instead` says the command for one of them."""
        if self.several:
            names = ["NAME"] if self.are_all else [str(name) for name in self.names]
            raise UsageError(
                f"{option} is for one target", fix=" && ".join(instead(quote(name)) for name in names)
            )


@contextmanager
def opened(
    asked: AskedTargets,
    context: Context,
    *,
    at: str | None = None,
    base: str | None = None,
    as_rows: bool = False,
) -> Iterator[OpenTargets]:
    """Yield the targets `asked`, open, with the approved history, which is read once.

    Args:
        asked: which.
        context: where to work.
        at: the position that counts instead of the targets' own.
        base: the ref that HEAD is to be merged into: what comes after that counts as approved.
        as_rows: whatever prevents that a target is asked is a failure of it alone, also where one is named.

    Raises:
        UsageError: there is no such target, or one has to be named.
        MissingCredentials: a named target's credentials are not here.
        SchemactlError: there is no project, or Git cannot say which schemas were approved; or anything of the only target.
    """
    from schemactl.effective import read_effective

    several = asked.several
    places = approved_targets(None if asked.are_all else asked.names, context)
    found: list[OpenTarget] = []
    failures: dict[str, SchemactlError] = {}
    left_out = 0
    repository = context.repository
    with ExitStack() as stack:
        if base:
            places, whole = _proposed(places, base, repository, context)
        else:
            whole = context.approved(places[0].project)
        context.note(whole.notes)
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
    """Return targets, and the history, as they are once HEAD is merged into `base`.

    What names a registry and its secrets is not the change's to say: where it differs from what `places` have, which were
    approved, nobody is asked.

    Raises:
        SchemactlError: HEAD and `base` cannot be merged, or that changes which registry is to be asked, or how.
        DeclarationError: the project file is wrong after the merge.
    """
    from schemactl.history import proposed
    from schemactl.history.approved import read_project_at

    approved = places[0].project
    merge = proposed(repository, approved, base)
    project = read_project_at(repository, merge.commit, approved.path)
    if project is None:
        raise SchemactlError(f"the merge of HEAD removes {approved.path}: there is nothing to plan for")
    found = [
        replace(each, target=_merged(each.target, approved, project), project=project, proposed=True)
        for each in places
    ]
    return found, merge.read(repository, project, progress=context.reading_history())


def _merged(target: Target, approved: Project, project: Project) -> Target:
    """Return `target` as `project` has it. Raise SchemactlError where it, or one that it waits for, is to be asked otherwise."""
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
    """Return by name the result of each target, or the error that prevented one.

    Args:
        targets: open.
        prepare: what is to be asked of a target.
        ask: asks its registry; several are asked at the same time.
        finish: what comes of the answer.
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
        result = (
            answer if isinstance(answer, SchemactlError) else _alone(partial(finish, request, answer), stop)
        )
        if isinstance(result, SchemactlError):
            failed(name, result)
        else:
            found[name] = result
    return {name: found[name] for name in targets.names if name in found}


def looked_up(catalog: Catalog) -> Catalog:
    """Return `catalog` with all that is in it read, so that threads ask no Git."""
    from schemactl.model import Catalog

    return Catalog(dict(catalog.namespaces), dict(catalog.topics), dict(catalog.former))


def side_by_side(works: Sequence[Callable[[], T]], *, stop: Stop | None = None) -> list[T | SchemactlError]:
    """Return what each of `works` returns, or the error that it raises; several run at the same time, each in a thread.

    Args:
        works: what to do.
        stop: where it says so, what has not been done is an error; None: an interrupt ends everything.
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
    """Wait until all have ended, or those that have not are given up; return why they are."""
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
    return (
        SchemactlError(error.what, fix=error.fix)
        if isinstance(error, OutOfTime)
        else SchemactlError("interrupted")
    )


def _result(work: Callable[[], T]) -> T | SchemactlError:
    try:
        return work()
    except SchemactlError as error:
        return error


def worst(codes: Iterable[int]) -> int:
    """Return the worst of `codes`; 0 where there is none."""
    return min(codes, key=_WORST_FIRST.index, default=0)


def succeeded(found: Mapping[str, T | SchemactlError], codes: list[int], context: Context) -> Iterator[T]:
    """Yield the results of the targets that have one; for each of the others print why, and add its exit code to `codes`."""
    for name, each in found.items():
        if not isinstance(each, SchemactlError):
            yield each
            continue
        codes.append(each.exit_code)
        context.report(f"{name}: {each}\n")
