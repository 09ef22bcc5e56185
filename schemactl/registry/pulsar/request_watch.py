"""Warnings about slow requests, and the limit on how long a command waits for a cluster in total."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

_WARN_AFTER_S: Final = 2.0
"""A request that takes longer is named."""
_WARN_EVERY_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.25


class SlowRequest:
    """A request in progress, with its retries.

    Attributes:
        what: method and path.
        since_s: when it began, by the monotonic clock.
        until_s: when it is given up at the latest.
        why: the last answer; "" before the first one.
        is_named: the user was warned of it.
    """

    __slots__ = ("is_named", "since_s", "until_s", "what", "why")

    def __init__(self, what: str, until_s: float) -> None:
        self.what = what
        self.since_s = time.monotonic()
        self.until_s = until_s
        self.why = ""
        self.is_named = False


class RequestWatch:
    """The requests in progress. A background thread warns of slow ones, as a thread that waits for a reply cannot.

    Args:
        warn: called with the slow request, and how long it may take at most.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = Lock()
        self._requests: set[SlowRequest] = set()
        self._thread: Thread | None = None
        self._closed = Event()
        self._warned_s = float("-inf")

    @contextmanager
    def watched(self, what: str, until_s: float) -> Iterator[SlowRequest]:
        """Watch a request during the block, which notes in it why the request is repeated."""
        request = SlowRequest(what, until_s)
        with self._lock:
            self._requests.add(request)
            if self._thread is None:
                self._thread = Thread(target=self._look, daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            with self._lock:
                self._requests.discard(request)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            now_s = time.monotonic()
            with self._lock:
                slow = sorted(
                    (each for each in self._requests if now_s - each.since_s >= _WARN_AFTER_S),
                    key=lambda each: each.since_s,
                )
            new = next((each for each in slow if not each.is_named), None)
            if new and now_s - self._warned_s >= _WARN_EVERY_S:
                self._warned_s, new.is_named = now_s, True
                self._warn(_sentence(new, len(slow) - 1, now_s))


def _sentence(request: SlowRequest, others: int, now_s: float) -> str:
    more = f" (and {others} more)" if others else ""
    left_s = max(request.until_s - now_s, 1.0)
    if request.why:
        return f"{request.what}{more}: {request.why}; trying again for up to {left_s:.0f} s"
    return f"{request.what}{more}: no answer for {now_s - request.since_s:.0f} s; waiting for up to {left_s:.0f} s"


class RetryBudget:
    """The time that all threads have waited, counted once where several wait at the same time.

    Args:
        all_s: the longest total wait, in seconds.
    """

    def __init__(self, all_s: float) -> None:
        self._all_s = all_s
        self._lock = Lock()
        self._waiting = 0
        self._since_s = 0.0
        self._spent_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the budget is used up."""
        with self._lock:
            now_s = time.monotonic()
            return self._spent_s + (now_s - self._since_s if self._waiting else 0.0) > self._all_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time in the block as waited."""
        with self._lock:
            if not self._waiting:
                self._since_s = time.monotonic()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._spent_s += time.monotonic() - self._since_s
