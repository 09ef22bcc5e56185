"""Processes that are forked from the test, faster than a new interpreter."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import IO, Any

Say = Callable[[object], object]


def fork_process(work: Callable[[Say], object]) -> tuple[int, IO[str]]:
    """The id of a process that does `work`, and the lines that it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading)
    try:
        work(lambda line: os.write(writing, f"{line}\n".encode()))
        os._exit(0)
    finally:
        os._exit(1)


def kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def assert_killed(process: int, said: IO[str]) -> None:
    """It ends, or has ended, because it was killed."""
    with said:
        assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL


def die_after(calls: int, kind: type, *names: str) -> None:
    """From now on this process ends with the given number of calls of these methods, as by `kill -9`."""
    left = iter(range(calls - 1, -1, -1))

    def perhaps_last(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: object) -> Any:
            result = method(*arguments)
            if next(left) == 0:
                kill_oneself()
            return result

        return call

    for name in names:
        setattr(kind, name, perhaps_last(getattr(kind, name)))
