"""`schemactl demo`: the main job, end to end, on the embedded registry and a local Spark."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from schemactl.cli.context import Context
from schemactl.core.errors import SchemactlError, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `demo`."""
    parser.description = (
        "Play through the main job in a folder of its own: a Git repository of declarations, the embedded registry, the generated package, "
        "a Spark job over messages of every version, and a change that fails the check. It takes about half a minute, and asks no server."
    )
    parser.epilog = "examples:\n  schemactl demo\n  schemactl demo my-demo\n"
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        default="schemactl-demo",
        help="the folder (default: schemactl-demo)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after all steps went as they should."""
    from schemactl.examples import shop

    missing = [name for name in ("pyspark", "pyarrow", "grpc_tools") if find_spec(name) is None]
    if missing:
        raise SchemactlError(
            f"the demo needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            fix='pip install "pulsar-schemactl[spark,proto,java]"',
        )
    folder = Path(context.directory, args.folder).resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{args.folder} is a file: name a folder")
    try:
        shop("demo").main(folder)
    except SystemExit as ended:
        raise SchemactlError(str(ended.code)) from None
    return 0
