"""The command line, run in the process of a test."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Collection
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from unittest.mock import patch

from fork_server import COMMAND_LINE, start_program
from scratch import ENVIRONMENT, Scratch

from schemactl.cli import main


class Printed(NamedTuple):
    """The output of a command, and its exit code."""

    out: str
    err: str
    code: int


Place = Path | Scratch
"""Where a command runs: in a folder, or in a repository, whose commits are made first."""


def schemactl(place: Place, *arguments: str, code: int | Collection[int] = 0, stdin: str | TextIO = "") -> Printed:
    """Run a command in `place` with `stdin`, and return its output; it must exit with `code`, or with one of these codes."""
    folder = _enter(place)
    out, err = io.StringIO(), io.StringIO()
    stdin_stream = io.TextIOWrapper(io.BytesIO(stdin.encode())) if isinstance(stdin, str) else stdin
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", stdin_stream):
        try:
            exit_code = main(["-C", str(folder), *arguments])
        except SystemExit as ended:
            exit_code = int(ended.code or 0)
    printed = Printed(out.getvalue(), err.getvalue(), exit_code)
    assert exit_code in ([code] if isinstance(code, int) else code), (arguments, printed)
    return printed


def run_json(place: Place, *arguments: str, code: int | Collection[int] = 0) -> Any:
    """Run a command in `place` with `--format json`, and return its report; it must exit with `code`, or with one of these codes."""
    return json.loads(schemactl(place, *arguments, "--format", "json", code=code).out)


def process(place: Place, *arguments: str, **variables: str) -> Printed:
    """Run a command in a separate process in `place`, and return its output."""
    with start_program(_enter(place), COMMAND_LINE, *arguments, environment=ENVIRONMENT | variables) as program:
        code = program.wait()
        return Printed(program.read_out(), program.read_err(), code)


def run_interpreter(place: Place, *arguments: str, **variables: str) -> Printed:
    """Run a command in a new Python in `place`, and return its output: twenty times the work of `process`."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "schemactl", *arguments],
        cwd=_enter(place),
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Printed(done.stdout, done.stderr, done.returncode)


def _enter(place: Place) -> Path:
    """Return the folder of a place."""
    if isinstance(place, Scratch):
        place.flush()
        return place.path
    return place
