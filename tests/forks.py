"""Processes that begin where the test is, sooner than an interpreter of their own does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import IO

Say = Callable[[object], object]


def forked(work: Callable[[Say], object]) -> tuple[int, IO[str]]:
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
