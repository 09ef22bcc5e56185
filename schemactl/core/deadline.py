"""Limit the time of a command, and run threads that an interrupted command can stop waiting for.

In the main thread, an alarm interrupts any code, even a wait for another process. If a call ignores the alarm, the process is ended. In
other threads, and on platforms without alarms, the time is checked between steps.

The pre-commit hook imports this module first, so it has few imports.
"""

from __future__ import annotations

# `signal` imports `enum`, which takes longer than the whole hook may take.
import _signal  # type: ignore[import-not-found]
import sys
import time
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TypeVar

    T = TypeVar("T")


DEFAULT_S = 600.0
"""The default time limit of a check."""

PARALLEL = 8
"""The default of --parallel: the requests that a command sends at once. A higher number costs this process more time than it saves."""

MAX_PARALLEL = 64
"""The largest value of --parallel."""

_ALARM_INTERVAL_S = 5.0
"""The interval of further alarms, in case the first one is lost or the cleanup takes long."""

_IMPORT_INTERVAL_S = 0.02
"""The interval after which an alarm that went off during an import is repeated."""

_HARD_S = 15.0
"""The time after the alarm at which the process is ended if it did not react."""


class OutOfTime(BaseException):
    """The time is used up. It is not an `Exception`, so that `except Exception` does not catch it.

    Args:
        seconds: the time limit.
        doing: the step that takes so long, such as "reading the declared files".
        wait: the response that is missing; by default the one for which a thread waits longest.

    Attributes:
        seconds: the time limit.
        message: the message.
        fix: the next step.
    """

    def __init__(self, seconds: float, doing: str, wait: str = "") -> None:
        self.seconds = seconds
        self.message = f"gave up after {seconds:g} s while {doing}"
        self.fix = "give it more time with `--timeout SECONDS`; with GIT_TRACE=1 git logs what it does"
        if wait := wait or describe_wait():
            self.message = f"gave up after {seconds:g} s while waiting for {wait}"
            self.fix = "check that the server responds, or give it more time with `--timeout SECONDS`"
        super().__init__(f"{self.message}\n  Fix: {self.fix}")

    def add_progress(self, progress: str, next_step: str) -> None:
        """Say how far the work is, and what helps the next run."""
        self.message = f"{self.message}; {progress}"
        self.fix = f"{next_step}, or {self.fix}"
        self.args = (f"{self.message}\n  Fix: {self.fix}",)


_waits: dict[object, tuple[int, int, Callable[[], str]]] = {}
"""The missing responses, oldest first: the thread that waits, the thread for which it does, and a function that describes the response."""


def begin_wait(key: object, describe: Callable[[], str], owner: int | None = None) -> None:
    """Record that this thread waits for a response, so that `OutOfTime` names it; `end_wait` ends that.

    Args:
        key: any object, for `end_wait`.
        describe: returns a description of the response.
        owner: the thread for which this thread waits, if it is another one.
    """
    thread = get_ident()
    _waits[key] = thread, owner or thread, describe


def end_wait(key: object) -> None:
    """Record that a response has come, or is not waited for any longer."""
    _waits.pop(key, None)


def describe_wait(thread: int | None = None) -> str:
    """Describe the response for which a thread, or any thread, waits longest; return "" without one.

    If that response waits for another one, such as a token, describe the other one.
    """
    waits = list(_waits.values())
    waiting = next((waiting for waiting, owner, _ in waits if thread in (None, owner)), None)
    descriptions = [describe for other, _, describe in waits if other == waiting]
    return descriptions[-1]() if descriptions else ""


_command_started_s: float | None = None


def start_command() -> None:
    """Count the time limit of the command of this process from now on, so that it includes imports."""
    global _command_started_s  # noqa: PLW0603  a process runs one command at a time
    _command_started_s = time.monotonic()


def end_command() -> None:
    """Count the time limit of a later command in this process from its own start."""
    global _command_started_s  # noqa: PLW0603  a process runs one command at a time
    _command_started_s = None


def run_within(seconds: float | None, work: Callable[[Deadline], T]) -> T:
    """Run `work` with a time limit and return its result. None means no limit.

    Raises:
        SchemactlError: if the time is used up.
    """
    if seconds is None:
        return work(Deadline(float("inf"), "starting"))
    try:
        return run_with_alarm(seconds, "starting", work, _command_started_s)
    except OutOfTime as error:
        from schemactl.core.errors import SchemactlError

        raise SchemactlError(error.message, fix=error.fix) from error


def run_with_alarm(seconds: float, doing: str, work: Callable[[Deadline], T], started_s: float | None = None) -> T:
    """Run `work`, whose first step is `doing`, and return its result; raise OutOfTime if it takes longer.

    The time counts from `started_s`, by the monotonic clock, or from now.
    """
    deadline = Deadline(seconds, doing, started_s)
    try:
        deadline.set()
        return work(deadline)
    finally:
        # The alarm may go off at this moment.
        while not deadline.is_over:
            try:
                deadline.end()
            except OutOfTime:
                continue


class Deadline:
    """A time limit.

    Attributes:
        is_over: whether it was removed.
    """

    def __init__(self, seconds: float, doing: str, started_s: float | None = None) -> None:
        self.is_over = False
        self._seconds = seconds
        self._doing = doing
        self._ends_s = (time.monotonic() if started_s is None else started_s) + seconds
        self._old_handler: Any = None

    def begin(self, doing: str) -> None:
        """Set the current step, such as "reading the declared files", for the message."""
        self._doing = doing
        self.look()

    def look(self) -> None:
        """Raise OutOfTime if the time is used up."""
        if time.monotonic() >= self._ends_s:
            raise OutOfTime(self._seconds, self._doing)

    @property
    def remaining_s(self) -> float:
        """The time that is left; infinite without a limit."""
        return self._ends_s - time.monotonic()

    def set(self) -> None:
        """Set the alarm, if the platform has one."""
        if not hasattr(_signal, "setitimer"):
            return
        try:
            old_handler = _signal.signal(_signal.SIGALRM, self._raise_out_of_time)
        except ValueError:
            # This is not the main thread.
            return
        self._old_handler = old_handler or _signal.SIG_DFL
        _schedule_kill(self._seconds + _HARD_S)
        _signal.setitimer(_signal.ITIMER_REAL, max(1e-6, self._ends_s - time.monotonic()), _ALARM_INTERVAL_S)

    def end(self) -> None:
        """Remove the alarm, and restore the previous handler."""
        self.is_over = True
        if self._old_handler is not None:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, self._old_handler)
            _schedule_kill(None)

    def _raise_out_of_time(self, _number: int, frame: FrameType | None) -> None:
        if self.is_over:
            return
        if _is_importing(frame):
            # A module that is left half imported would fail later, with an error that has nothing to do with the time.
            _signal.setitimer(_signal.ITIMER_REAL, _IMPORT_INTERVAL_S, _ALARM_INTERVAL_S)
            return
        raise OutOfTime(self._seconds, self._doing)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether the limited work is inside an import."""
    while frame and frame.f_code is not run_with_alarm.__code__:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _schedule_kill(after_s: float | None) -> None:
    """Schedule the end of the process, with status 1 and a message on standard error, or cancel it if `after_s` is None."""
    import faulthandler

    if after_s is None:
        faulthandler.cancel_dump_traceback_later()
        return
    try:
        faulthandler.dump_traceback_later(after_s, exit=True, file=sys.__stderr__ or 2)
    except (OSError, ValueError):
        # The process has no standard error.
        return


class Worker:
    """A daemon thread that can be waited for again after an interrupted wait.

    In Python 3.11, an interrupted `Thread.join` forgets that the thread still runs.

    Args:
        work: the function to run, which must not raise.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        from threading import Event, Thread

        self._work = work
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)

    @property
    def thread(self) -> int:
        """The identifier of the started thread."""
        return self._thread.ident or 0

    def start(self) -> None:
        """Start the thread."""
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
        """Wait until the work is done, for at most this time."""
        self._ended.wait(timeout_s)
