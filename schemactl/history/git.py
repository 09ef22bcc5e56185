"""Git processes: started by GitPython, confined, with English messages and a time limit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from select import select
from subprocess import PIPE, TimeoutExpired
from tempfile import TemporaryFile
from threading import Thread
from typing import Any

from schemactl.errors import HistoryError
from schemactl.history.confined import OPTIONS, VARIABLES

TIME_LIMIT_S = 3600.0
"""A command that takes longer is killed."""

CHUNK_BYTES = 1 << 16
_STDERR_BYTES = 1 << 16

_EXIT_TIMEOUT_S = 2.0
"""A command that is asked to end has so long."""

FSCK = "what is missing comes back with `git fetch --refetch` (Git 2.36 or newer) or a fresh clone; `git fsck` lists it"


class GitFailed(HistoryError):
    """A git command that failed.

    Attributes:
        words: what git printed on standard error.
    """

    def __init__(self, command: str, status: int | None, words: str, *, fix: str = "") -> None:
        said = words.strip() or f"it ended with status {status} and said nothing"
        super().__init__(f"`git {command}` failed: {said}", fix=fix)
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
        with TemporaryFile() as given:
            given.write(standard_input)
            given.seek(0)
            process = self._start(arguments, given, options, variables)
            try:
                output = b"".join(iter(process.chunk, b""))
                process.wait()
            finally:
                process.close()
        return output

    def start(self, *arguments: str) -> Process:
        """Start a git command that runs beside this process, with pipes to and from it."""
        return self._start(arguments, PIPE)

    def _start(
        self,
        arguments: Sequence[str],
        standard_input: Any,
        options: Sequence[str] = OPTIONS,
        variables: Mapping[str, str] | None = None,
    ) -> Process:
        from git.exc import GitCommandNotFound

        command = [self._git.GIT_PYTHON_GIT_EXECUTABLE or "git", *options, *arguments]
        try:
            started = self._git.execute(command, istream=standard_input, as_process=True, env=variables)
        except GitCommandNotFound as error:
            raise _no_git() from error
        return Process(arguments[0], started)


class Process:
    """A running git command, `started` by GitPython: bytes to its standard input, bytes from its standard output."""

    def __init__(self, command: str, started: Any) -> None:
        self._command = command
        self._process = started
        self._output: int = started.stdout.fileno()
        self._rest = b""
        self._words = b""
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def write(self, data: bytes) -> None:
        """Pass `data` to the command at once."""
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def chunk(self) -> bytes:
        """Return the next bytes of the output; none at its end. Raise HistoryError after TIME_LIMIT_S without any."""
        found, self._rest = self._rest, b""
        if found:
            return found
        if not select([self._output], [], [], TIME_LIMIT_S)[0]:
            raise HistoryError(f"`git {self._command}` gave no answer for {TIME_LIMIT_S:g} s")
        return os.read(self._output, CHUNK_BYTES)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes of the output. Raise EOFError where it ends before."""
        parts = []
        while size:
            part = self.chunk()
            if not part:
                raise EOFError
            part, self._rest = part[:size], part[size:]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def line(self) -> bytes:
        """Return the next line of the output with its newline. Raise EOFError where it ends before."""
        found = self.chunk()
        while (end := found.find(b"\n")) < 0:
            more = self.chunk()
            if not more:
                raise EOFError
            found += more
        found, self._rest = found[: end + 1], found[end + 1 :]
        return found

    def tokens(self) -> Iterator[bytes]:
        """Yield the NUL-terminated records of the output, and close the process. Raise GitFailed as `run`."""
        try:
            rest = b""
            while chunk := self.chunk():
                *records, rest = (rest + chunk).split(b"\0")
                yield from records
            self.wait()
            if rest:
                yield rest
        finally:
            self.close()

    def wait(self) -> None:
        """Close the input and wait for the end. Raise GitFailed where the status is not 0."""
        if self._process.stdin:
            self._process.stdin.close()
        if status := self._process.proc.wait():
            raise GitFailed(self._command, status, self.words())

    def words(self) -> str:
        """Return what the command, which has ended, printed on standard error."""
        self._listener.join(_EXIT_TIMEOUT_S)
        return self._words.decode("utf-8", "replace")

    def close(self) -> None:
        """End the command, however far it has come."""
        process = self._process.proc
        if process.stdin:
            # Closing flushes; what a dead process no longer reads does not matter.
            with suppress(BrokenPipeError):
                process.stdin.close()
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(_EXIT_TIMEOUT_S)
        except TimeoutExpired:
            process.kill()
            process.wait()
        self._listener.join(_EXIT_TIMEOUT_S)
        process.stdout.close()
        process.stderr.close()

    def _listen(self) -> None:
        """Read standard error, which would block the command when its pipe is full."""
        with suppress(OSError, ValueError):
            while part := os.read(self._process.stderr.fileno(), CHUNK_BYTES):
                self._words = (self._words + part)[-_STDERR_BYTES:]


def _no_git() -> HistoryError:
    return HistoryError("git was not found", fix="install Git 2.31 or newer, and have it on PATH")
