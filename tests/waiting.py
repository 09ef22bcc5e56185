"""Waiting for a server, whose state lags behind its actions by milliseconds, or by seconds on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_soon(ask: Callable[[], object], wanted: object, *, within_s: float = 30) -> None:
    """`ask` says `wanted`, at the latest when the time is over."""
    until = time.monotonic() + within_s
    while (answer := ask()) != wanted and time.monotonic() < until:
        time.sleep(0.02)
    assert answer == wanted, f"{answer!r} after {within_s:g} s, not {wanted!r}"
