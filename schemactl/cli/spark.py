"""`schemactl spark`: `verify` and `land` for stored messages."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from schemactl.cli.context import Context
from schemactl.cli.parser import Command, Parser, add_options
from schemactl.cli.reading import (
    STRICT_OPTION,
    add_numbers_of,
    add_recursion_depth,
    reading,
)
from schemactl.cli.selection import TOPIC_HELP, choose
from schemactl.codegen.topics import codec_of, require_codec
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.terminal import table as style_table
from schemactl.core.terminal import terminal_width

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.codegen.topics import OnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.spark.raw import RawMessages

ACTIONS: Final = {
    "verify": "verify that every stored message of a topic is readable: a gate for pull requests",
    "land": "land stored messages of every version as typed rows in Parquet, Delta or Iceberg, with the rejected ones apart",
}

_EPILOG: Final = """\
Messages in files are rows with a column `payload` or `value` (binary); `schema_version` or `__schemaVersion` (the number, or Pulsar's
eight bytes), unless --unversioned says that there is none; `key` or `__key`, which SEPARATED pairs need; and others, which are passed
through. Where there is a column `__topic`, only the rows of the topic and its partitions count.

examples:
  schemactl spark verify orders --messages archive/orders --candidate     exit code 100: messages would be lost
  schemactl spark land orders --messages archive/orders --out lake/orders
  schemactl spark land orders --messages archive/orders --out lake/orders --format delta --evolve add
  schemactl spark land orders --messages archive/orders --out shop.orders --format iceberg --catalog lake --checkpoint lake/checkpoint
  schemactl spark land orders@3 --messages archive/orders --out lake/orders_v3     as readers of version 3 see them
  schemactl spark land orders --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark land orders --target prod --messages pulsar://broker.example.com:6650 --out lake/orders
  schemactl spark land orders --messages /mnt/archive/orders --out /mnt/lake/orders --master spark://master:7077
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark`."""
    parser.description = (
        "Read a topic's stored messages with Spark, as a pipeline with the generated package does."
    )
    parser.epilog = _EPILOG
    if isinstance(parser, Parser):
        parser.renamed = {"decode": "spark land"}
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary, epilog=_EPILOG)
        if isinstance(action, Parser):
            action.renamed = {"--refused": "--rejected"}
        action.add_argument(
            "topic",
            metavar="TOPIC[@N]",
            help=f"{TOPIC_HELP}; @N: read with the schema of Git's version N (default: the one in force)",
        )
        add_options(
            action,
            "--messages PATH: a file or folder of messages, local or remote; or pulsar://HOST:6650, to read the topic itself",
            required=True,
        )
        add_options(
            action,
            "--messages-format NAME: their format, as Spark names it: parquet, orc, json, ... (default: parquet)",
            default="parquet",
        )
        add_options(
            action,
            "--option NAME=VALUE...: an option of that format's reader, or of pulsar-schemactl; may be repeated",
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
        add_options(
            versions,
            "--unversioned: no message has a version: each is read as written with the reader's own schema",
        )
        add_options(action, "--master URL: the Spark to use (default: local[*])", default="local[*]")
        add_numbers_of(action)
        add_options(action, STRICT_OPTION)
        add_recursion_depth(action)
        _load(name).configure(action)


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the action and return its exit code."""
    return _load(args.action).run(args, context)


def _load(name: str) -> Command:
    return cast("Command", import_module(f"schemactl.cli.spark_{name}"))


@dataclass(frozen=True, slots=True)
class TopicOfMessages:
    """The topic whose messages are read.

    Attributes:
        project: the project file.
        top: the folder that its relative paths start from.
        topic: with its versions, as the approved history has them.
        reader: the schema of the version asked for; else the one in force, or that of the version the declaration pins; of a
            topic that is gone, its last.
        number: the reader's.
        there: the topic's name where the messages come from.
        on_target: by whose numbers messages are read; None: by Git's.
    """

    project: Project
    top: str
    topic: Topic
    reader: SchemaInfo
    number: int
    there: TopicName
    on_target: OnTarget | None = None

    def codec(self, args: argparse.Namespace, reader: SchemaInfo) -> Codec:
        """Return the topic's codec that reads into `reader`.

        Raises:
            SchemactlError: there is none for this type of schema.
        """
        from schemactl.codec import CodecError, Options
        from schemactl.codegen import topic_struct

        generate = self.project.generate
        options = Options(
            time_type=(
                topic_struct.StructOptions(generate.spark) if generate else topic_struct.StructOptions()
            ).has_time,
            recursion_depth=args.recursion_depth,
            strict=args.strict,
            json_defaults=generate is not None and generate.json_defaults,
        )
        codec = codec_of(self.topic, options, reader=reader, on_target=self.on_target)
        try:
            codec.columns  # noqa: B018  raises here, not in a worker
        except CodecError as error:
            raise SchemactlError(f"{self.topic.name}: {error}") from None
        return codec

    def former_names(self) -> dict[str, tuple[str, ...]]:
        """Return what the reader's columns were called, the newest name first, by their paths."""
        from schemactl.codegen import topic_struct
        from schemactl.codegen.topic_struct import former_names

        generate = self.project.generate
        options = topic_struct.StructOptions(generate.spark) if generate else topic_struct.StructOptions()
        older = [
            each.info for each in reversed(self.topic.versions) if each.info and each.number < self.number
        ]
        found = former_names(self.reader, older, options, self.project.release)
        return {".".join(path): names for path, names in found.items()}

    def writer(self, number: int | None) -> SchemaVersion | None:
        """Return the version that wrote the messages of that number, if it is known."""
        versions = self.on_target.versions if self.on_target else self.topic.versions
        return next((version for version in versions if version.number == number), None)

    def named(self, number: int | None) -> tuple[str, str]:
        """Return how a report names a version that messages say they have: its number, and the commit that brought it."""
        if number is None:
            return "none", ""
        known = self.writer(number)
        if known is None:
            return str(number), "not approved" if self.on_target is None else "not recorded"
        if self.on_target and number in self.on_target.foreign:
            return str(number), "foreign"
        return str(number), known.commit.short if known.commit else ""


def subject(args: argparse.Namespace, context: Context) -> TopicOfMessages:
    """Return the topic that the command line names, and the schema that its messages are read with.

    Raises:
        UsageError: there is none, or it never had a schema.
        SchemactlError: what Spark needs is not installed.
    """
    require_codec()
    try:
        from schemactl import spark as schemactl  # noqa: F401  only whether it can be
    except ImportError:
        raise SchemactlError(
            "this needs PySpark, which is not installed", fix='pip install "pulsar-schemactl[spark]"'
        ) from None
    from schemactl.codegen.topics import Approved

    read = reading(context, args.target)
    approved = read.approved
    topic, version = choose(args.topic, approved.catalog)
    read.require_target([topic], context)
    topic.load()
    current = approved.current(topic.name)
    last = next((version for version in reversed(topic.versions) if version.info is not None), None)
    if version and version.info is not None:
        number, reader = version.number, version.info
    elif current is not None and topic.schema is not None:
        number, reader = Approved(topic, current).reader
    elif last is not None and last.info is not None:
        number, reader = last.number, last.info
    else:
        raise UsageError(f"{topic.name} has no approved schema: there is nothing to read its messages with")
    read = read.verified([topic], context)
    there = read.target.names.there(topic.name) if read.target else topic.name
    return TopicOfMessages(
        read.project, read.top, topic, reader, number, there, read.on_target(topic, number)
    )


@contextmanager
def running(args: argparse.Namespace, context: Context, topic: TopicName) -> Iterator[RawMessages]:
    """Yield the --messages of `topic` in a Spark session; what goes wrong with Spark inside is a SchemactlError."""
    from schemactl.spark.errors import SparkProblem
    from schemactl.spark.java import JavaNotFound
    from schemactl.spark.raw import RawMessages
    from schemactl.spark.session import session

    for text in args.option:
        if "=" not in text:
            raise UsageError(f"--option {text}: expected NAME=VALUE")
    options = dict(text.split("=", 1) for text in args.option)
    with tempfile.TemporaryDirectory() as folder:
        carried = partial(_runtime, Path(folder))
        try:
            with (
                as_usage_error(),
                session(args.master, f"schemactl {topic.schema_id}", carried=carried) as spark,
            ):
                place = located(args.messages, context)
                yield RawMessages(spark, place, topic=str(topic), kind=args.messages_format, options=options)
        except JavaNotFound as error:
            raise SchemactlError(str(error)) from None
        except SparkProblem as error:
            raise SchemactlError(f"Spark: {error}") from None


@contextmanager
def as_usage_error() -> Iterator[None]:
    """Raise a UsageError for a WrongArgument inside."""
    from schemactl.table_formats.errors import WrongArgument

    try:
        yield
    except WrongArgument as error:
        raise UsageError(str(error)) from None


def located(path: str, context: Context) -> str:
    """Return the path as Spark takes it: a relative one starts from the folder to work in."""
    return path if "://" in path else os.path.normpath(Path(context.directory, path))


def columns(args: argparse.Namespace) -> dict[str, Any]:
    """Return the names of the messages' columns that the user gave, as the functions of `schemactl.spark` take them."""
    given = {"payload": args.payload_column, "version": args.version_column, "key": args.key_column}
    named = {what: name for what, name in given.items() if name is not None}
    return named | {"version": None} if args.unversioned else named


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose first two columns are words and the others numbers."""
    columns = terminal_width()
    width = columns and columns - 2
    return [f"  {line}" for line in style_table(rows, width=width, numeric=range(2, len(rows[0])))]


def _runtime(folder: Path) -> Path:
    """Write a zip of what workers import, and return its path."""
    from schemactl.codegen.package import pack, run_time

    modules = {"__init__.py": "", **run_time("spark/landing.py", "spark/raw.py", "spark/verifying.py")}
    archive = folder / "schemactl.zip"
    pack({f"schemactl/{path}": text for path, text in sorted(modules.items())}, archive)
    return archive
