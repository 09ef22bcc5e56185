"""Python programs in separate processes, which are forked from a server that has imported the package: faster than new interpreters."""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from unittest.mock import patch

COMMAND_LINE = "from schemactl.__main__ import main\nsys.exit(main())"
"""The program that runs the command line."""

LIMIT_S = 120.0
"""The number of seconds after which a program counts as hung: it ends with a traceback of its threads."""

PACKAGES = tuple(
    f"schemactl.{name}" for name in ["checks", "cli", "declare", "deploy", "history", "registry", "report"]
)
"""The packages whose modules a program finds imported."""


@cache
def _get_context() -> ForkServerContext:
    """Return the context of a server that starts with the first program, imports all modules of `PACKAGES`, and builds the models."""
    context = multiprocessing.get_context("forkserver")
    folders = {name: importlib.import_module(name).__path__ for name in PACKAGES}
    modules = [module.name for name, path in folders.items() for module in walk_packages(path, f"{name}.")]
    context.set_forkserver_preload(["git", *modules, "built_models"])
    # The server imports from its own path, not from the path of this process, and ignores a module that is not there.
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(path)):
        forkserver.ensure_running()
    return context


class RunningProgram:
    """A program in a separate process."""

    def __init__(self, process: ForkServerProcess, folder: Path) -> None:
        self._process = process
        self._folder = folder

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal if the program still runs."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def read_out(self) -> str:
        """Return the standard output so far."""
        return (self._folder / "out").read_text(encoding="utf-8")

    def read_err(self) -> str:
        """Return the standard error so far."""
        return (self._folder / "err").read_text(encoding="utf-8")

    def read_first_line(self, *, within_s: float = LIMIT_S) -> str:
        """Wait until the program has written a line, and return it; return its output if it ends without a line."""
        end_s = time.monotonic() + within_s
        while "\n" not in (text := self.read_out()) and self._process.is_alive() and time.monotonic() < end_s:
            time.sleep(0.01)
        return text.partition("\n")[0]

    def wait(self, *, within_s: float = LIMIT_S) -> int:
        """Wait for the end of the program, and return its exit code; it is negative after a signal."""
        self._process.join(within_s)
        assert self._process.exitcode is not None, f"it runs longer than {within_s:g} s"
        return self._process.exitcode


@contextmanager
def start_program(
    folder: Path,
    program: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    limit_s: float | None = LIMIT_S,
) -> Iterator[RunningProgram]:
    """Run Python code in a separate process in `folder`, and kill it at the end of the block if it still runs.

    Args:
        folder: The working directory.
        program: The code; `sys` is imported.
        arguments: `sys.argv` without its first element.
        environment: The environment variables; by default the variables of this process.
        stdin: The standard input.
        limit_s: The number of seconds after which the program ends with a traceback, or None for no limit.
    """
    variables = dict(os.environ if environment is None else environment)
    with TemporaryDirectory() as streams:
        Path(streams, "in").write_text(stdin, encoding="utf-8")
        process = _get_context().Process(
            target=_run, args=(str(folder), program, arguments, variables, streams, limit_s)
        )
        for name in ("out", "err"):
            Path(streams, name).touch()
        process.start()
        try:
            yield RunningProgram(process, Path(streams))
        finally:
            process.kill()
            process.join()
            process.close()


def _run(
    folder: str,
    program: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    streams: str,
    limit_s: float | None,
) -> None:
    for descriptor, name in enumerate(("in", "out", "err")):
        file = os.open(Path(streams, name), os.O_RDONLY if name == "in" else os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if limit_s is not None:
        faulthandler.dump_traceback_later(limit_s, exit=True)
    # A shell that runs the tests in the background makes all processes ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["schemactl", *arguments]
    exec(program, {"__name__": "__main__", "sys": sys})  # noqa: S102  code of a test
