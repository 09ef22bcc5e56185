"""The option that limits how long a command may take."""

from __future__ import annotations

import argparse
from contextlib import suppress

from schemactl.cli.parser import add_options

_LONGEST_S = 1_000_000.0


def add_timeout(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    """Add the option; None: without it there is no limit."""
    known = "no limit" if default is None else f"{default:g}"
    add_options(
        parser,
        f"--timeout SECONDS: give up after this many seconds, with exit code 1 (default: {known})",
        type=seconds,
        default=default,
    )


def seconds(text: str) -> float:
    """Return what an option's text says. Raise ArgumentTypeError: it is no number of seconds, or too large a one."""
    with suppress(ValueError):
        if 0 < (found := float(text)) < _LONGEST_S:
            return found
    raise argparse.ArgumentTypeError(f"expected a number of seconds between 0 and {_LONGEST_S:g}")
