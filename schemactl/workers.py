"""Threads that can be waited for by a thread that may be interrupted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread


class Worker(Thread):
    """A thread that ends with the process, and can be waited for whatever interrupts the waiting.

    A `join` that is interrupted forgets in Python 3.11 that the thread still runs.

    Args:
        work: what it does; it raises nothing.
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
