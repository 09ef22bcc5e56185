"""The command line, run in the process of a test."""

from __future__ import annotations

import atexit
import io
import subprocess
import sys
from collections.abc import Collection
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple, TextIO
from unittest.mock import patch

from console import Console, opened
from scratch import ENVIRONMENT

from schemactl.cli import main


class Printed(NamedTuple):
    """What a command printed, and its exit code."""

    out: str
    err: str
    code: int


def schemactl(folder: Path, *arguments: str, code: int | Collection[int] = 0, stdin: str | TextIO = "") -> Printed:
    """What the command prints in `folder`, given `stdin`; it must exit with `code`, or one of these."""
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode())) if isinstance(stdin, str) else stdin
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        try:
            found = main(["-C", str(folder), *arguments])
        except SystemExit as ended:
            found = int(ended.code or 0)
    printed = Printed(out.getvalue(), err.getvalue(), found)
    assert found in ([code] if isinstance(code, int) else code), (arguments, printed)
    return printed


@cache
def _console() -> Console:
    """The process that all others of this one's tests are made of."""
    open_ones = ExitStack()
    atexit.register(open_ones.close)
    return open_ones.enter_context(opened(ENVIRONMENT, "--fork"))


def process(folder: Path, *arguments: str, **variables: str) -> Printed:
    """What the command prints in a process of its own that works in `folder`."""
    done = _console().schemactl(folder, *arguments, environment=ENVIRONMENT | variables)
    return Printed(done.stdout, done.stderr, done.returncode)


def interpreter(folder: Path, *arguments: str, **variables: str) -> Printed:
    """What the command prints in a Python that starts for it, in `folder`: five times the work of `process`."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "schemactl", *arguments],
        cwd=folder,
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Printed(done.stdout, done.stderr, done.returncode)
