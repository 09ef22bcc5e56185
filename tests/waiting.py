"""What a server tells of itself follows what it did by some milliseconds, or by seconds where the machine is busy."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_soon(ask: Callable[[], object], wanted: object, *, within_s: float = 30) -> None:
    """`ask` says `wanted`, at the latest when the time is over."""
    until = time.monotonic() + within_s
    while (found := ask()) != wanted and time.monotonic() < until:
        time.sleep(0.02)
    assert found == wanted, f"{found!r} after {within_s:g} s, not {wanted!r}"
