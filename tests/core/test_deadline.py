"""An interrupted wait for a thread can be repeated, and each command has its own time limit."""

from __future__ import annotations

import signal
import sys
import time
from threading import Event
from types import FrameType

import pytest

from schemactl.__main__ import main
from schemactl.core.deadline import Worker, run_within


def test_a_worker_is_not_forgotten_when_the_waiting_is_interrupted() -> None:
    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    finish = Event()
    worker = Worker(finish.wait)
    before = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        worker.start()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            worker.wait(60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not worker.has_ended
    finish.set()
    worker.wait(60)
    assert worker.has_ended


def test_time_before_a_second_command_of_a_process_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["schemactl", "explain", "TYPE_MISMATCH"])
    assert main() == 0
    now_s = time.monotonic() + 3600
    monkeypatch.setattr("schemactl.core.deadline.time.monotonic", lambda: now_s)
    run_within(60, lambda deadline: deadline.begin("working"))
