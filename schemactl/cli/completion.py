"""`schemactl completion`: a completion script for the user's shell."""

from __future__ import annotations

import argparse
import sys

from schemactl.cli import Context, build_parser
from schemactl.printing import uncleaned


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `completion`."""
    parser.epilog = (
        "examples:\n"
        "  schemactl completion bash > ~/.local/share/bash-completion/completions/schemactl\n"
        "  schemactl completion zsh > ~/.zsh/completions/_schemactl\n"
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def run(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """0, after the script is printed."""
    import shtab

    print(shtab.complete(build_parser(), args.shell), file=uncleaned(sys.stdout))
    return 0
