"""git as a process: started in one folder, with the caller's environment and what confines it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import cast

from schemactl.errors import HistoryError
from schemactl.history import confined

CHUNK_BYTES = 1 << 16

_PATIENCE_S = 2.0
"""So long has a command to end when it is asked to."""

FSCK = "what is missing comes back with `git fetch --refetch` (Git 2.36 or newer) or a fresh clone; `git fsck` lists it"


class GitFailed(HistoryError):
    """git itself refused; `words` is what it said on standard error."""

    def __init__(self, command: str, status: int, words: str, *, fix: str = "") -> None:
        said = words.strip() or f"it ended with status {status} and said nothing"
        super().__init__(f"`git {command}` failed: {said}", fix=fix)
        self.words = words


class GitStopped(HistoryError):
    """The process that reads objects has ended."""


def run(
    directory: Path,
    *arguments: str,
    standard_input: bytes = b"",
    options: Sequence[str] = confined.OPTIONS,
    variables: Mapping[str, str] = confined.VARIABLES,
) -> bytes:
    """The standard output of one git command, with these `options` before its name, and `variables` in its environment.

    Raises:
        GitFailed: it ended with another status than 0.
    """
    try:
        done = subprocess.run(  # noqa: S603  arguments are ours or hex ids, and there is no shell
            ["git", *options, *arguments],  # noqa: S607  git is the one on PATH, as everywhere
            cwd=directory,
            env=_environment(variables),
            input=standard_input,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise _no_git() from error
    if done.returncode:
        raise GitFailed(arguments[0], done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout


class Process:
    """A git command that runs beside us: `requests` is its standard input, `answers` its standard output.

    Its standard error is ours: git explains its own trouble there, and a pipe nobody reads could block it.
    """

    def __init__(self, directory: Path, *arguments: str, variables: Mapping[str, str]) -> None:
        self.command = arguments[0]
        try:
            self._process = subprocess.Popen(  # noqa: S603  as above
                ["git", *confined.OPTIONS, *arguments],  # noqa: S607  as above
                cwd=directory,
                env=_environment(variables),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=CHUNK_BYTES,
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        self.requests = cast("BufferedWriter", self._process.stdin)
        self.answers = cast("BufferedReader", self._process.stdout)

    def wait(self) -> None:
        """The command has ended well.

        Raises:
            GitFailed: it has not.
        """
        if status := self._process.wait():
            raise GitFailed(self.command, status, "its own words are above", fix=FSCK)

    def close(self) -> None:
        """The command is gone, however far it had come."""
        # Closing flushes; what a dead process no longer reads does not matter.
        with suppress(BrokenPipeError):
            self.requests.close()
        self.answers.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    # Git's messages are quoted in ours, so both speak English.
    return {**os.environ, **variables, "LC_ALL": "C", "LANGUAGE": "C"}


def _no_git() -> HistoryError:
    return HistoryError("git was not found", fix="install Git 2.31 or newer, and have it on PATH")
