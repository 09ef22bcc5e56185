"""How long a command waits in all for a cluster that does not answer as it should, and what the user hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_TELL_AFTER_S: Final = 1.0
"""Shorter waits are not worth a word."""
_TELL_EVERY_S: Final = 10.0


class Patience:
    """The waiting of all threads, counted once where several wait at the same time.

    Args:
        all_s: how long may be waited in all, in seconds.
        tell: told what is waited for, and for how long at most.
    """

    def __init__(self, all_s: float, tell: Callable[[str], None]) -> None:
        self._all_s = all_s
        self._tell = tell
        self._lock = Lock()
        self._waiting = 0
        self._since_s = 0.0
        self._spent_s = 0.0
        self._told_s = float("-inf")

    @property
    def is_over(self) -> bool:
        """Nothing is waited for any more."""
        with self._lock:
            now_s = time.monotonic()
            return self._spent_s + (now_s - self._since_s if self._waiting else 0.0) > self._all_s

    @contextmanager
    def waiting(self, why: str, *, since_s: float, until_s: float) -> Iterator[None]:
        """The time in the block counts as waited.

        `since_s` and `until_s`, of the monotonic clock, say since when and until when at most the same thing is tried.
        """
        now_s = time.monotonic()
        with self._lock:
            if not self._waiting:
                self._since_s = now_s
            self._waiting += 1
            is_news = now_s - since_s >= _TELL_AFTER_S and now_s - self._told_s >= _TELL_EVERY_S
            if is_news:
                self._told_s = now_s
        if is_news:
            self._tell(f"{why}; trying again for up to {max(until_s - now_s, 1.0):.0f} s")
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._spent_s += time.monotonic() - self._since_s
