"""Ask the registries of several targets in parallel, with one result or error for each target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from schemactl.core.catalog import Catalog
from schemactl.core.deadline import Deadline, OutOfTime, Worker, describe_wait
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.garbage_collection import pause_garbage_collection

if TYPE_CHECKING:
    from schemactl.cli.target_selection import OpenTarget, OpenTargets


T = TypeVar("T")

U = TypeVar("U")

V = TypeVar("V")

Stop = Callable[[KeyboardInterrupt | OutOfTime], bool]
"""A handler of an interrupt of the main thread; returns whether to wait for the remaining targets, or to cancel them."""

_POLL_INTERVAL_S: Final = 0.2


def run_for_each_target(
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
        finish: returns the result for a request and its response.
        stop: see `run_in_parallel`.

    Raises:
        UsageError: if the command line is wrong, for any of the targets.
        SchemactlError: if the only target fails.
    """
    results: dict[str, V | SchemactlError] = dict(targets.failures)
    requests: dict[str, T] = {}

    def record_error(name: str, error: SchemactlError) -> None:
        if isinstance(error, UsageError) or not (targets.has_several or targets.as_rows):
            raise error
        results[name] = error

    for target in targets.targets:
        try:
            requests[target.name] = prepare(target)
        except SchemactlError as error:
            record_error(target.name, error)
    responses = run_in_parallel([partial(ask, request) for request in requests.values()], stop=stop)
    for (name, request), response in zip(requests.items(), responses, strict=True):
        result = (
            response if isinstance(response, SchemactlError) else _run_one(partial(finish, request, response), stop)
        )
        if isinstance(result, SchemactlError):
            record_error(name, result)
        else:
            results[name] = result
    return {name: results[name] for name in targets.names if name in results}


def make_stop(deadline: Deadline) -> Stop:
    """Return a handler that stops waiting when the time is up: targets that have not responded get that error as their results."""

    def stop(error: KeyboardInterrupt | OutOfTime) -> bool:
        if isinstance(error, KeyboardInterrupt):
            raise error
        deadline.end()
        return False

    return stop


def load_catalog(catalog: Catalog) -> Catalog:
    """Read everything in `catalog` from Git now, so that threads do not call Git."""
    with pause_garbage_collection():
        return Catalog(dict(catalog.namespaces), dict(catalog.topics), dict(catalog.former))


def run_in_parallel(works: Sequence[Callable[[], T]], *, stop: Stop | None = None) -> list[T | SchemactlError]:
    """Call the functions in parallel, each in a thread, and return the result of each or the error that it raised.

    Args:
        works: the functions to call; a single one is called in the main thread.
        stop: handles an interrupt; without it, an interrupt ends everything.
    """
    if len(works) == 1:
        return [_run_one(works[0], stop)]
    results: dict[int, T | SchemactlError] = {}
    bugs: list[BaseException] = []

    def run(number: int, work: Callable[[], T]) -> None:
        try:
            results[number] = _call(work)
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            bugs.append(error)

    workers = [Worker(partial(run, number, work)) for number, work in enumerate(works)]
    for worker in workers:
        worker.start()
    # Wait until all workers have ended, or `stop` cancels the rest.
    interrupt: KeyboardInterrupt | OutOfTime | None = None
    while interrupt is None and (running := [worker for worker in workers if not worker.has_ended]):
        try:
            running[0].wait(_POLL_INTERVAL_S)
        except (KeyboardInterrupt, OutOfTime) as error:
            if stop is None:
                raise
            if not stop(error):
                interrupt = error
    if bugs:
        raise bugs[0]
    return [
        results[number] if number in results else _to_target_error(interrupt, worker)
        for number, worker in enumerate(workers)
    ]


def _run_one(work: Callable[[], T], stop: Stop | None) -> T | SchemactlError:
    try:
        return _call(work)
    except OutOfTime as error:
        if stop is None or stop(error):
            raise
        return _to_target_error(error)


def _call(work: Callable[[], T]) -> T | SchemactlError:
    try:
        return work()
    except SchemactlError as error:
        return error


def _to_target_error(error: KeyboardInterrupt | OutOfTime | None, worker: Worker | None = None) -> SchemactlError:
    """Return the error of a target whose work was interrupted, in the thread of `worker` if it has one."""
    if error is None:
        return SchemactlError("it did not respond")
    if not isinstance(error, OutOfTime):
        return SchemactlError("interrupted")
    if worker is not None and (wait := describe_wait(worker.thread)):
        error = OutOfTime(error.seconds, "waiting", wait)
    return SchemactlError(error.message, fix=error.fix)
