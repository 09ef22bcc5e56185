"""The time limit of a command, and threads that an interrupted command can stop waiting for.

In the main thread an alarm interrupts whatever runs, also a wait for another process. A call that hears no alarm ends with the
process. Elsewhere, and where there is no alarm, time is looked at between steps.

The hook starts here, so this module imports next to nothing.
"""

from __future__ import annotations

# `signal` brings `enum` with it, which takes longer to import than the hook may take as a whole.
import _signal  # type: ignore[import-not-found]
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TypeVar

    T = TypeVar("T")


DEFAULT_S = 600.0
"""So many seconds has a check that nobody gave others."""

_AGAIN_S = 5.0
"""So much later it rings again, should the first time have been lost or tidying up take that long."""

_HARD_S = 15.0
"""So much later the process ends, should it hear nothing."""


class OutOfTime(BaseException):
    """The time is used up. It is no `Exception`, so that no `except Exception` catches it.

    Attributes:
        what: what was given up; `fix`: what to do.
    """

    def __init__(self, seconds: float, doing: str) -> None:
        self.what = f"gave up after {seconds:g} s while {doing}"
        self.fix = "give it more time with `--timeout SECONDS`; with GIT_TRACE=1 git logs what it does"
        super().__init__(f"{self.what}\n  Fix: {self.fix}")


def within(seconds: float | None, work: Callable[[Deadline], T]) -> T:
    """Return what `work` returns within so many seconds; None: it may take as long as it takes.

    Raises:
        SchemactlError: they are used up.
    """
    if seconds is None:
        return work(Deadline(float("inf"), "starting"))
    try:
        return interrupted_after(seconds, "starting", work)
    except OutOfTime as error:
        from schemactl.core.errors import SchemactlError

        raise SchemactlError(error.what, fix=error.fix) from error


def interrupted_after(seconds: float, doing: str, work: Callable[[Deadline], T]) -> T:
    """Return what `work` returns, which begins with `doing`; raise OutOfTime after so many seconds."""
    deadline = Deadline(seconds, doing)
    try:
        deadline.set()
        return work(deadline)
    finally:
        # It may ring just now.
        while not deadline.is_over:
            try:
                deadline.end()
            except OutOfTime:
                continue


class Deadline:
    """A time limit.

    Attributes:
        is_over: nothing more will be heard of it.
    """

    def __init__(self, seconds: float, doing: str) -> None:
        self.is_over = False
        self._seconds = seconds
        self._doing = doing
        self._ends_s = time.monotonic() + seconds
        self._before: Any = None

    def begin(self, doing: str) -> None:
        """Set what is being done from now on ("reading the declared files"), for the message."""
        self._doing = doing
        self.look()

    def look(self) -> None:
        """Raise OutOfTime if no time is left."""
        if time.monotonic() >= self._ends_s:
            raise OutOfTime(self._seconds, self._doing)

    def set(self) -> None:
        """Set the alarm, if the platform has one."""
        if not hasattr(_signal, "setitimer"):
            return
        try:
            before = _signal.signal(_signal.SIGALRM, self._ring)
        except ValueError:
            # Not the main thread.
            return
        self._before = before or _signal.SIG_DFL
        _end_hard(self._seconds + _HARD_S)
        _signal.setitimer(_signal.ITIMER_REAL, max(1e-6, self._ends_s - time.monotonic()), _AGAIN_S)

    def end(self) -> None:
        """Remove the alarm, and restore the one before."""
        self.is_over = True
        if self._before is not None:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, self._before)
            _end_hard(None)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if not self.is_over:
            raise OutOfTime(self._seconds, self._doing)


def _end_hard(after_s: float | None) -> None:
    """End the process after so long with status 1 and a message on standard error, whatever it is doing; None: never."""
    import faulthandler

    if after_s is None:
        faulthandler.cancel_dump_traceback_later()
        return
    try:
        faulthandler.dump_traceback_later(after_s, exit=True, file=sys.__stderr__ or 2)
    except (OSError, ValueError):
        # There is no standard error.
        return


# Threads that an interruptible thread can wait for


class Worker:
    """A daemon thread that can be waited for again after an interrupted wait.

    A `join` that is interrupted forgets in Python 3.11 that the thread still runs.

    Args:
        work: the function to run, which raises nothing.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        from threading import Event, Thread

        self._work = work
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the work."""
        self._thread.start()

    def _run(self) -> None:
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
