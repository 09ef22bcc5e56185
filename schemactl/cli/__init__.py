"""The command line: knows every command, imports each on use."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from schemactl.errors import SchemactlError, UsageError

COMMANDS: dict[str, str] = {
    "init": "a new project in this repository",
    "check": "files against the approved history: the hook and the pull-request check",
    "log": "the versions of a topic, with their commits",
    "show": "one version's definition",
    "diff": "what changed between two versions, and who can read whom",
    "plan": "what apply would do, with the registry's predicted answer for every step",
    "apply": "carry out a plan",
    "generate": "StructTypes and codec modules for every approved version",
    "compare": "the engine on JSON lines: definitions in, verdicts out",
    "explain": "a rule: what, why, example, fix",
    "completion": "a completion script for your shell",
}
"""Command to one-line help. `schemactl.cli.<command>` has `configure` and `run`."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the global options say: where to work and how to speak."""

    directory: str
    config: str | None
    quiet: bool
    color: bool


class Command(Protocol):
    """A module `schemactl.cli.<command>`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The command's own arguments, description and examples are in `parser` afterwards."""
        ...

    def run(self, args: argparse.Namespace, context: Context) -> int:
        """The command's exit code, after its report went to standard output."""
        ...


class _Parser(argparse.ArgumentParser):
    """argparse with the exit code of `sysexits.h` for wrong usage."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: error: {message}\n")
