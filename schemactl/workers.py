"""Threads that an interruptible thread can wait for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread


class Worker(Thread):
    """A daemon thread that can be waited for again after an interrupted wait.

    A `join` that is interrupted forgets in Python 3.11 that the thread still runs.

    Args:
        work: the function to run, which raises nothing.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._ended = Event()

    def run(self) -> None:
        """Do the work."""
        try:
            self._work()
        finally:
            self._ended.set()

    @property
    def has_ended(self) -> bool:
        """Whether the work is done."""
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> None:
        """Wait until the work is done, at most so long."""
        self._ended.wait(timeout_s)
