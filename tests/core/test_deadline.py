"""An interrupted wait for a thread can be repeated."""

from __future__ import annotations

import signal
from threading import Event
from types import FrameType

import pytest

from schemactl.core.deadline import Worker


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
