"""`lsp` serves an editor."""

from __future__ import annotations

import argparse
import os

from schemactl.cli.context import Context
from schemactl.core.errors import SchemactlError

_MODULES = ("pygls", "lsprotocol", "cattrs", "attrs")
"""The modules of the extra `lsp`."""


def configure_lsp(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lsp`."""
    parser.description = (
        "Serve the Language Server Protocol on standard input and output, for editors. Shows the findings of `check` and `lint` while "
        "you type, with quick fixes, and the versions and readers of a field. Finds definitions, and completes keys, types and topics."
    )
    parser.epilog = "examples:\n  schemactl lsp          what an editor runs, in the folder of the project\n"
    # Editors add it by habit.
    parser.add_argument("--stdio", action="store_true", help="use standard input and output, as always")


def run_lsp(args: argparse.Namespace, context: Context) -> int:
    """Serve until the editor disconnects, and return 0.

    Raises:
        SchemactlError: if the extra is not installed.
    """
    del args
    try:
        from schemactl.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MODULES:
            raise
        raise SchemactlError(
            f"lsp needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[lsp]"'
        ) from error
    # An editor checks no pull request, wherever it runs.
    os.environ.pop("CI", None)
    serve(context.directory, context.config)
    return 0
