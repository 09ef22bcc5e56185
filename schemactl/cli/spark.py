"""`spark`: read the stored messages of a topic with Spark, with the actions `land` and `verify`."""

from __future__ import annotations

import argparse
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.parser import Command, Parser, add_options, add_timeout
from schemactl.cli.reading_setup import STRICT_OPTION, add_numbers_of, add_recursion_depth
from schemactl.cli.spark_land import configure_land, run_land
from schemactl.cli.spark_verify import configure_verify, run_verify
from schemactl.cli.topic_selection import PART_HELP

_ACTIONS: Final = {
    "verify": (
        "verify that every stored message of a topic is readable: a gate for pull requests",
        Command(configure_verify, run_verify),
    ),
    "land": (
        "land stored messages of every version as typed rows in Parquet, Delta or Iceberg, with rejected messages stored separately",
        Command(configure_land, run_land),
    ),
}
"""The actions with a line of help and their functions."""

_EPILOG: Final = """\
Messages in files are rows with a column `payload` or `value` (binary); `schema_version` or `__schemaVersion` (the number, or Pulsar's
eight bytes), unless --unversioned is given; `key` or `__key`, which SEPARATED pairs need; and other columns, which are passed through.
If a column `__topic` exists, only the rows of the topic and its partitions are read. A PATH that ends with .avro names
Avro container files whose records are values, such as `sample --out orders.avro` writes; their schema is in the file. Spark's Avro
source reads them: set spark.jars.packages to org.apache.spark:spark-avro_2.13 of Spark's version. With --messages-format avro, the records
are raw messages.

examples:
  schemactl spark verify orders --messages archive/orders --candidate     exit code 100: messages would be lost
  schemactl spark land orders --messages archive/orders --out lake/orders
  schemactl spark land orders --messages archive/orders --out lake/orders --format delta --evolve add
  schemactl spark land orders --messages archive/orders --out shop.orders --format iceberg --catalog lake --checkpoint lake/checkpoint
  schemactl spark land orders --messages 'export/*.avro' --out lake/orders
  schemactl spark land orders@3 --messages archive/orders --out lake/orders_v3     as readers of version 3 see them
  schemactl spark land orders --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark land orders --target prod --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark land orders --messages /mnt/archive/orders --out /mnt/lake/orders --master spark://master:7077
"""


def configure_spark(parser: Parser) -> None:
    """Add the arguments of `spark`."""
    parser.description = "Read a topic's stored messages with Spark, as a pipeline with the generated package does."
    parser.epilog = _EPILOG
    parser.renamed = {"decode": "spark land"}
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, command) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary, epilog=_EPILOG)
        action.renamed = {"--refused": "--rejected"}
        action.add_argument(
            "topic",
            metavar="TOPIC[@N]",
            help=f"{PART_HELP}; @N: read with the schema of Git's version N (default: the one in force)",
        )
        add_options(
            action,
            "--messages PATH: a file or folder of messages, local or remote; or pulsar://HOST:6650, to read the topic itself",
            required=True,
        )
        add_options(
            action,
            "--messages-format NAME: their format, as Spark names it: parquet, orc, json, ... (default: parquet; for *.avro, Avro container "
            "files whose records are values of the topic)",
        )
        add_options(
            action, "--option NAME=VALUE...: an option of that format's reader, or of pulsar-schemactl; may be repeated"
        )
        versions = action.add_mutually_exclusive_group()
        for group, option, columns in (
            (action, "payload", "payload or value"),
            (versions, "version", "schema_version or __schemaVersion"),
            (action, "key", "key or __key"),
        ):
            group.add_argument(
                f"--{option}-column", metavar="NAME", help=f"(default: {columns}, the first that exists)"
            )
        add_options(
            versions,
            "--unversioned: the messages have no version: all are read as if written with the reader's own schema",
        )
        add_options(action, "--master URL: the Spark to use (default: local[*])", default="local[*]")
        add_numbers_of(action)
        add_timeout(action)
        add_options(action, STRICT_OPTION)
        add_recursion_depth(action)
        command.configure(action)


def run_spark(args: argparse.Namespace, context: Context) -> int:
    """Run the action and return its exit code."""
    _, command = _ACTIONS[args.action]
    return command.run(args, context)
