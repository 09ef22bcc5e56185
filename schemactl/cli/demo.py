"""`demo`: run the main job in a new folder, on the embedded registry and a local Spark."""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from schemactl.cli.context import Context
from schemactl.core.errors import SchemactlError, UsageError


def configure_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `demo`."""
    parser.description = (
        "Run the main job in a new folder: a Git repository of declarations, the embedded registry, the generated package, "
        "a Spark job over messages of every version, and a change that fails the check. It takes about half a minute, and contacts no server."
    )
    parser.epilog = "examples:\n  schemactl demo\n  schemactl demo my-demo\n"
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", default="schemactl-demo", help="the folder (default: schemactl-demo)"
    )


def run_demo(args: argparse.Namespace, context: Context) -> int:
    """Run the steps of the demo."""
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
        import_example("shop.demo").main(folder)
    except SystemExit as error:
        raise SchemactlError(str(error.code)) from None
    return 0


def import_example(module: str) -> ModuleType:
    """Import a module of the examples, such as `shop.demo`."""
    # The examples are below this package in a wheel, and next to it in a checkout.
    try:
        return import_module(f"schemactl._examples.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("schemactl._examples"):
            raise
    return import_module(f"examples.{module}")
