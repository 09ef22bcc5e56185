"""The process that runs protoc: started for one call, or kept while a history is read."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

_CHUNK_BYTES: Final = 4096


class LineProcess:
    """A process that answers each line of its standard input with one line.

    Attributes:
        is_well: it has answered every line so far.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.is_well = True
        self._process = subprocess.Popen(  # noqa: S603  our own script, no shell
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def answers(self, lines: Sequence[str], timeout_s: float) -> list[str]:
        """Return the answers to `lines`, up to the first on which the process dies or time is up."""
        deadline_s = time.monotonic() + timeout_s
        found: list[str] = []
        for line in lines:
            answer = self._answer(line, deadline_s)
            if answer is None:
                self.is_well = False
                break
            found.append(answer)
        return found

    def close(self) -> None:
        """Stop the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if pipe:
                    pipe.close()
        self._process.wait()

    def _answer(self, line: str, deadline_s: float) -> str | None:
        if self._process.stdin is None or self._process.stdout is None:
            return None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = b""
        while not answer.endswith(b"\n"):
            left_s = max(0.0, deadline_s - time.monotonic())
            if not select.select([self._process.stdout], [], [], left_s)[0]:
                return None
            chunk = os.read(self._process.stdout.fileno(), _CHUNK_BYTES)
            if not chunk:
                return None
            answer += chunk
        return answer.decode().strip()


_kept: list[dict[tuple[str, ...], LineProcess]] = []
"""Inside of `kept` one dictionary: the processes that wait, by their commands."""


@contextmanager
def kept() -> Iterator[None]:
    """Have all calls inside share one process, if any needs it."""
    if _kept:
        yield
        return
    _kept.append({})
    try:
        yield
    finally:
        for waiting in _kept.pop().values():
            waiting.close()


@contextmanager
def worker(command: Sequence[str]) -> Iterator[LineProcess]:
    """Run `command` in a process, or in the one that is kept."""
    waiting = _kept[0] if _kept else {}
    running = waiting.pop(tuple(command), None) or LineProcess(command)
    try:
        yield running
    finally:
        if _kept and running.is_well:
            waiting[tuple(command)] = running
        else:
            running.close()
