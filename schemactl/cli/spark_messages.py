"""What `schemactl spark` works on: a topic with its codec, and a Spark session with its stored messages."""

from __future__ import annotations

import argparse
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemactl
from schemactl.cli import Context
from schemactl.cli.codecs import check_recursion_depth, codec_of, require_codec
from schemactl.cli.numbering import reading
from schemactl.cli.topics import find
from schemactl.errors import SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.codegen.approved import OnTarget
    from schemactl.model import Project, SchemaInfo, SchemaVersion, Topic, TopicName
    from schemactl.spark.raw import RawMessages


@dataclass(frozen=True, slots=True)
class Subject:
    """The topic whose messages are read.

    Attributes:
        project: the project file.
        top: the folder that its relative paths start from.
        topic: with its versions, as the approved history has them.
        reader: the schema in force, or that of the version the declaration pins; of a topic that is gone, its last.
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
        """The topic's codec that reads into `reader`.

        Raises:
            SchemactlError: there is none for this type of schema.
        """
        from schemactl.codec import CodecError, Options
        from schemactl.codegen import struct

        generate = self.project.generate
        options = Options(
            time_type=(struct.Options(generate.spark) if generate else struct.Options()).has_time,
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

    def writer(self, number: int | None) -> SchemaVersion | None:
        """The version that wrote the messages of that number, if it is known."""
        versions = self.on_target.versions if self.on_target else self.topic.versions
        return next((version for version in versions if version.number == number), None)

    def named(self, number: int | None) -> tuple[str, str]:
        """How a report names a version that messages say they have: its number, and the commit that brought it."""
        if number is None:
            return "none", ""
        known = self.writer(number)
        if known is None:
            return str(number), "not approved" if self.on_target is None else "not recorded"
        if self.on_target and number in self.on_target.foreign:
            return str(number), "foreign"
        return str(number), known.commit.short if known.commit else ""


def subject(args: argparse.Namespace, context: Context) -> Subject:
    """The topic that the command line names.

    Raises:
        UsageError: there is none, or it never had a schema.
        SchemactlError: what Spark needs is not installed.
    """
    require_codec()
    try:
        import schemactl.spark  # noqa: F401  only whether it can be
    except ImportError:
        raise SchemactlError(
            "this needs PySpark, which is not installed", fix='pip install "pulsar-schemactl[spark]"'
        ) from None
    check_recursion_depth(args)
    from schemactl.codegen.approved import Approved
    from schemactl.plan import renamed_topic

    read = reading(context, args.target)
    approved = read.approved
    topic = find(args.topic, approved.catalog)
    read.require_target([topic])
    current, since = approved.current(topic.name), approved.since(topic.name)
    last = next((version for version in reversed(topic.versions) if version.info is not None), None)
    if current is not None and since is not None and topic.schema is not None:
        number, reader = Approved(topic, current, since.id).reader
    elif last is not None and last.info is not None:
        number, reader = last.number, last.info
    else:
        raise UsageError(f"{topic.name} has no approved schema: there is nothing to read its messages with")
    read = read.verified([topic], context)
    there = renamed_topic(topic.name, read.target.namespaces) if read.target else topic.name
    return Subject(read.project, read.top, topic, reader, number, there, read.on_target(topic, number))


@contextmanager
def running(args: argparse.Namespace, context: Context, topic: TopicName) -> Iterator[RawMessages]:
    """The --messages of `topic` in a Spark session; what goes wrong with Spark inside is a SchemactlError."""
    from schemactl.spark.errors import SparkProblem, WrongArgument
    from schemactl.spark.java import JavaNotFound
    from schemactl.spark.raw import raw_messages
    from schemactl.spark.session import session

    options = dict(_option(text) for text in args.option)
    with tempfile.TemporaryDirectory() as folder:
        carried = _runtime(Path(folder))
        try:
            with session(args.master, f"schemactl {topic.schema_id}", carried=carried) as spark:
                place = located(args.messages, context)
                yield raw_messages(spark, place, topic=str(topic), kind=args.messages_format, options=options)
        except JavaNotFound as error:
            raise SchemactlError(str(error)) from None
        except SparkProblem as error:
            raise SchemactlError(f"Spark: {error}") from None
        except WrongArgument as error:
            raise UsageError(str(error)) from None


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--option {text}: expected NAME=VALUE")
    return name, value


def located(path: str, context: Context) -> str:
    """The path as Spark takes it: a relative one starts from the folder to work in."""
    return path if "://" in path else os.path.normpath(Path(context.directory, path))


def columns(args: argparse.Namespace) -> dict[str, Any]:
    """The names of the messages' columns that the user gave, as the functions of `schemactl.spark` take them."""
    given = {"payload": args.payload_column, "version": args.version_column, "key": args.key_column}
    named = {what: name for what, name in given.items() if name is not None}
    return named | {"version": None} if args.unversioned else named


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table whose first two columns are words and the others numbers."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def _runtime(folder: Path) -> Path:
    """A zip of what workers import."""
    from schemactl.codegen.package import RUNTIME_PARTS

    package = Path(schemactl.__file__).parent
    archive = folder / "schemactl.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(package / "__init__.py", "schemactl/__init__.py")
        for part in RUNTIME_PARTS:
            for path in sorted((package / part).rglob("*.py")):
                packed.write(path, Path("schemactl", path.relative_to(package)))
    return archive
