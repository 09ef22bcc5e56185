"""Git processes: started by GitPython, confined, with English messages and a time limit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, RawIOBase
from select import select
from subprocess import PIPE
from tempfile import TemporaryFile
from threading import Thread
from typing import TYPE_CHECKING, Any

from schemactl.core.errors import HistoryError
from schemactl.history.confined import OPTIONS, VARIABLES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TIME_LIMIT_S = 3600.0
"""A command that gives no more output for so long is killed."""

_STREAM = (*OPTIONS, "-c", "core.deltaBaseCacheLimit=16m")
"""Options for a process that reads much: by default it keeps 96 MB of objects, and is no sooner done."""

CHUNK_BYTES = 1 << 16
_STDERR_BYTES = 1 << 16

_EXIT_TIMEOUT_S = 2.0
"""What a command that has ended printed on standard error is waited for so long."""

FSCK = "what is missing comes back with `git fetch --refetch` (Git 2.36 or newer) or a fresh clone; `git fsck` lists it"


class GitFailed(HistoryError):
    """A git command that failed.

    Attributes:
        words: what git printed on standard error.
    """

    def __init__(self, command: str, status: int, words: str) -> None:
        what = words.strip() or f"it ended with status {status} and said nothing"
        super().__init__(f"`git {command}` failed: {what}")
        self.words = words


class Runner:
    """Starts git commands in one folder, by GitPython's `Git`, which is imported for the first of them."""

    def __init__(self, directory: str, variables: Mapping[str, str]) -> None:
        try:
            # Takes 100 ms, and looks for git.
            from git import Git
        except ImportError as error:
            raise _no_git() from error
        self._git = Git(directory)
        self._git.update_environment(**VARIABLES, **variables)

    def run(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        options: Sequence[str] = OPTIONS,
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the standard output of one git command. Raise GitFailed where its status is not 0."""
        if not standard_input:
            return self._start(options, arguments, env=variables).read()
        with TemporaryFile() as given:
            given.write(standard_input)
            given.seek(0)
            return self._start(options, arguments, istream=given, env=variables).read()

    def start(self, *arguments: str) -> Process:
        """Start a git command that runs beside this process, with pipes to and from it."""
        return self._start(_STREAM, arguments, istream=PIPE)

    def _start(self, options: Sequence[str], arguments: Sequence[str], **settings: Any) -> Process:
        from git.exc import GitCommandNotFound

        command = [self._git.GIT_PYTHON_GIT_EXECUTABLE or "git", *options, *arguments]
        try:
            # Only so is it ended when this process is interrupted: GitPython's own waiting leaves it and a timer running.
            return Process(arguments[0], self._git.execute(command, as_process=True, **settings))
        except GitCommandNotFound as error:
            raise _no_git() from error


class Process:
    """A running git command, `started` by GitPython. Its `output` raises HistoryError after TIME_LIMIT_S without any."""

    def __init__(self, command: str, started: Any) -> None:
        self._command = command
        # It ends the process when it is forgotten.
        self._started = started
        self._process = started.proc
        self.output = BufferedReader(_Output(command, self._process.stdout.fileno()), CHUNK_BYTES)
        self._words = b""
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def write(self, data: bytes) -> None:
        """Pass `data` to the command at once."""
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self) -> bytes:
        """Return the whole output, and close the process. Raise GitFailed where its status is not 0."""
        return b"".join(self._chunks())

    def tokens(self) -> Iterator[bytes]:
        """Yield the NUL-terminated records of the output, and close the process. Raise GitFailed as `run`."""
        rest = b""
        for chunk in self._chunks():
            *records, rest = (rest + chunk).split(b"\0")
            yield from records
        if rest:
            yield rest

    def _chunks(self) -> Iterator[bytes]:
        try:
            while chunk := self.output.read1():
                yield chunk
            if status := self._process.wait():
                raise GitFailed(self._command, status, self.words())
        finally:
            self.close()

    def words(self) -> str:
        """Return what the command, which has ended, printed on standard error."""
        self._listener.join(_EXIT_TIMEOUT_S)
        return self._words.decode("utf-8", "replace")

    def close(self) -> None:
        """End the command, however far it has come."""
        # Closing flushes; what a dead process no longer reads does not matter.
        with suppress(BrokenPipeError):
            if self._process.stdin:
                self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._listener.join(_EXIT_TIMEOUT_S)
        self._process.stdout.close()
        self._process.stderr.close()

    def _listen(self) -> None:
        """Read standard error, which would block the command when its pipe is full."""
        with suppress(OSError, ValueError):
            while part := os.read(self._process.stderr.fileno(), CHUNK_BYTES):
                self._words = (self._words + part)[-_STDERR_BYTES:]


class _Output(RawIOBase):
    """The standard output of a running command, waited for with a time limit."""

    def __init__(self, command: str, descriptor: int) -> None:
        self._command = command
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not select([self._descriptor], [], [], TIME_LIMIT_S)[0]:
            raise HistoryError(f"`git {self._command}` gave no answer for {TIME_LIMIT_S:g} s")
        return os.readv(self._descriptor, [buffer])


def _no_git() -> HistoryError:
    return HistoryError("git was not found", fix="install Git 2.31 or newer, and have it on PATH")
