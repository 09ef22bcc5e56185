"""The progress of an apply on standard error: each step when it is done, and slow steps while they run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from schemactl.core.terminal import fit, terminal_width, uncleaned
from schemactl.report.plan import describe

if TYPE_CHECKING:
    from schemactl.cli.context import Context
    from schemactl.deploy.steps import PlanStep

_SLOW_S: Final = 2.0
"""A step that takes longer is named while it is under way."""
_EVERY_S: Final = 10.0
"""How often the sums are printed where no line can be written over."""
_REDRAW_S: Final = 0.2


class ApplyProgress:
    """Prints a line for each step, and on a terminal one more line that is overwritten.

    Args:
        total: how many steps there are.
        context: whose standard error is written to.
    """

    def __init__(self, total: int, context: Context) -> None:
        self._total = total
        self._context = context
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty() and not context.quiet
        # Lines of several targets cannot be written over.
        self._is_terminal &= not context.subject
        self._began_s = self._shown_s = time.monotonic()
        self._under_way: dict[int, tuple[float, str]] = {}
        self._named: set[int] = set()
        self._done = 0

    def begun(self, number: int, step: PlanStep) -> None:
        """Remember that a step has begun."""
        self._under_way[number] = time.monotonic(), describe(step)

    def ended(self, number: int, step: PlanStep) -> None:
        """Print a step that was carried out."""
        self._under_way.pop(number, None)
        self._done += 1
        self._clear()
        self._context.say(f"[{self._done}/{self._total}] {describe(step)}")

    def tick(self) -> None:
        """Print the running steps, if it is time to."""
        now_s = time.monotonic()
        under_way = sorted(self._under_way.copy().items(), key=lambda item: item[1])
        if self._is_terminal:
            if now_s - self._shown_s >= _REDRAW_S:
                self._shown_s = now_s
                line = fit(f"{self._sums(now_s)}{_oldest(under_way)}", terminal_width()).split("\n")[0]
                print(f"\r\x1b[K{line}", end="", file=uncleaned(sys.stderr), flush=True)
            return
        for number, (since_s, text) in under_way:
            if now_s - since_s >= _SLOW_S and number not in self._named:
                self._named.add(number)
                self._context.say(f"under way for {now_s - since_s:.0f} s: {text}")
        if now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._context.say(f"{self._sums(now_s)}{_oldest(under_way)}")

    def end(self) -> None:
        """Erase the line that is overwritten."""
        self._clear()

    def _clear(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=uncleaned(sys.stderr), flush=True)

    def _sums(self, now_s: float) -> str:
        text = f"{self._done} of {self._total} steps"
        if not self._done or now_s - self._began_s < _SLOW_S:
            return text
        rate = self._done / (now_s - self._began_s)
        return f"{text}, {rate:.1f} a second, about {(self._total - self._done) / rate:.0f} s left"


def _oldest(under_way: list[tuple[int, tuple[float, str]]]) -> str:
    """Return the step that has been running for the longest time, and the number of other running ones."""
    if not under_way:
        return ""
    more = f" (and {len(under_way) - 1} more)" if len(under_way) > 1 else ""
    return f"; under way: {under_way[0][1][1]}{more}"
