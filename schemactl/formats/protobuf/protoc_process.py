"""Run protoc in a process that stays for later calls: its start takes longer than most of its work."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

_CHUNK_BYTES: Final = 4096

_idle: dict[tuple[str, ...], LineProcess] = {}
"""The idle processes by command."""


@cache
def describe_installation() -> str:
    """Return the releases of the installed packages that a descriptor depends on, as `grpcio-tools 1.74.0, protobuf 6.31.0`."""
    names = []
    for package in ("grpcio-tools", "protobuf"):
        with suppress(PackageNotFoundError):
            names.append(f"{package} {version(package)}")
    return ", ".join(names)


@contextmanager
def open_worker(command: Sequence[str]) -> Iterator[LineProcess]:
    """Run `command` in the idle process, or in a new one."""
    key = tuple(command)
    process = _idle.pop(key, None) or LineProcess(command)
    try:
        yield process
    except BaseException:
        # An answer may be on its way.
        process.close()
        raise
    if not process.is_well:
        process.close()
        return
    # Of several that ran at the same time, one stays.
    surplus = _idle.pop(key, None)
    _idle[key] = process
    if surplus:
        surplus.close()


@atexit.register
def close_idle() -> None:
    """Stop the idle processes."""
    while _idle:
        _, process = _idle.popitem()
        process.close()


# A process that is forked must not read the answers to its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


class LineProcess:
    """A process that answers each line of its standard input with one line.

    Attributes:
        is_well: whether it has answered every line so far.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.is_well = True
        self._process = subprocess.Popen(  # noqa: S603  our own script, no shell
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def answers(self, lines: Sequence[str], timeout_s: float) -> list[str]:
        """Return the answers to `lines`, up to the first on which the process dies or the time is up."""
        deadline_s = time.monotonic() + timeout_s
        answers: list[str] = []
        for line in lines:
            answer = self._answer(line, deadline_s)
            if answer is None:
                self.is_well = False
                break
            answers.append(answer)
        return answers

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
            remaining_s = max(0.0, deadline_s - time.monotonic())
            if not select.select([self._process.stdout], [], [], remaining_s)[0]:
                return None
            chunk = os.read(self._process.stdout.fileno(), _CHUNK_BYTES)
            if not chunk:
                return None
            answer += chunk
        return answer.decode().strip()
