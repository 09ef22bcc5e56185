"""`schemactl spark`: the pipeline from the command line, on stored messages: `verify` before a merge, `decode` to land them."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final, Protocol, cast

from schemactl.cli import Context
from schemactl.cli.codecs import add_recursion_depth, add_strict
from schemactl.cli.numbering import add_numbers_of
from schemactl.cli.topics import HELP


class Action(Protocol):
    """A module `schemactl.cli.spark_<action>`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The action's own arguments are in `parser` afterwards."""
        ...

    def run(self, args: argparse.Namespace, context: Context) -> int:
        """The action's exit code, after its report went to standard output."""
        ...


ACTIONS: Final = {
    "verify": "would every stored message of a topic be read? (a gate for pull requests)",
    "decode": "land stored messages of every version as typed Parquet, bad ones beside",
}

_EPILOG: Final = """\
examples:
  schemactl spark verify orders --messages archive/orders --candidate     exit code 100: messages would be lost
  schemactl spark decode orders --messages archive/orders --out lake/orders
  schemactl spark decode orders --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark decode orders --target prod --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark decode orders --messages /mnt/archive/orders --out /mnt/lake/orders --master spark://master:7077

Messages in files are rows with a column `payload` or `value` (binary); `schema_version` or `__schemaVersion` (the number, or Pulsar's
eight bytes), unless --unversioned says that there is none; `key` or `__key`, which SEPARATED pairs need; and others, which are passed
through. Where there is a column `__topic`, only the rows of the topic and its partitions count.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `spark`."""
    parser.description = (
        "Reads a topic's stored messages with Spark, as a pipeline with the generated package does."
    )
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        action = actions.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        action.add_argument("topic", metavar="TOPIC", help=HELP)
        action.add_argument(
            "--messages",
            metavar="PATH",
            required=True,
            help="a file or folder of messages, local or remote; or pulsar://HOST:6650, to read the topic itself",
        )
        action.add_argument(
            "--messages-format",
            metavar="NAME",
            default="parquet",
            help="their format, as Spark names it: parquet, orc, json, ... (default: parquet)",
        )
        action.add_argument(
            "--option",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            help="an option of that format's reader, or of pulsar-schemactl; may be repeated",
        )
        versions = action.add_mutually_exclusive_group()
        for where, option, columns in (
            (action, "payload", "payload or value"),
            (versions, "version", "schema_version or __schemaVersion"),
            (action, "key", "key or __key"),
        ):
            where.add_argument(
                f"--{option}-column", metavar="NAME", help=f"(default: {columns}, whichever is there)"
            )
        versions.add_argument(
            "--unversioned",
            action="store_true",
            help="no message has a version: each is read as written with the reader's own schema",
        )
        action.add_argument(
            "--master", metavar="URL", default="local[*]", help="the Spark to use (default: local[*])"
        )
        add_numbers_of(action)
        add_strict(action)
        add_recursion_depth(action)
        _load(name).configure(action)


def run(args: argparse.Namespace, context: Context) -> int:
    """The action's exit code."""
    return _load(args.action).run(args, context)


def _load(name: str) -> Action:
    return cast("Action", import_module(f"schemactl.cli.spark_{name}"))
