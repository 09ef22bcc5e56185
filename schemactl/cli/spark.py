"""`spark land` and `spark verify`: decode stored messages into a folder or table, or count the messages that can be decoded."""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from schemactl.cli.context import Context
from schemactl.cli.parser import Parser, add_command_timeout, add_format, add_options, make_number_type
from schemactl.cli.reading_setup import STRICT_OPTION, add_numbers_of, add_recursion_depth, read_setup
from schemactl.cli.topic_selection import PART_HELP, choose
from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import NEGATIVE, DeclarationError, SchemactlError, UsageError
from schemactl.core.terminal import format_table, get_terminal_width
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.cli.reading_setup import ReadingSetup
    from schemactl.codec import Codec
    from schemactl.codec.verification import Count
    from schemactl.codegen.topic_struct import StructOptions
    from schemactl.codegen.topics import VersionsOnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.spark import Landed
    from schemactl.spark.dataframes import AnyCodec
    from schemactl.spark.landing import Sink
    from schemactl.spark.landing_kinds import KindsSink
    from schemactl.spark.stored_messages import RawMessages, UnreadableMessage, Verified


_ACTIONS: Final = {
    "verify": "verify that every stored message of a topic is readable: a gate for pull requests",
    "land": "land stored messages of every version as typed rows in Parquet, Delta or Iceberg, with rejected messages stored separately",
}

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

# These repeat constants of `schemactl.spark`, which needs PySpark.
FORMATS: Final = ("parquet", "delta", "iceberg")
EVOLUTIONS: Final = ("none", "add", "widen", "rename", "rewrite")
COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4_raw", "brotli", "none")

_SHOWN_PAYLOAD_BYTES: Final = 48


def configure_spark(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark`."""
    parser.description = "Read a topic's stored messages with Spark, as a pipeline with the generated package does."
    parser.epilog = _EPILOG
    if isinstance(parser, Parser):
        parser.renamed = {"decode": "spark land"}
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary, epilog=_EPILOG)
        if isinstance(action, Parser):
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
        add_command_timeout(action)
        add_options(action, STRICT_OPTION)
        add_recursion_depth(action)
        configure = configure_land if name == "land" else configure_verify
        configure(action)


def run_spark(args: argparse.Namespace, context: Context) -> int:
    """Run the action and return its exit code."""
    run = run_land if args.action == "land" else run_verify
    return run(args, context)


@dataclass(frozen=True, slots=True)
class TopicOfMessages:
    """The topic whose messages are read, and the schema that they are decoded into.

    Attributes:
        project: the project file.
        topic: the topic with its versions in the approved history.
        reader: the schema to decode into.
        reader_number: the number of its version.
        source_name: the name of the topic where the messages come from, which differs on a target that renames namespaces.
        on_target: the target whose version numbers the messages carry, or None if they carry Git's.
        kind: the key of the kind of events to decode, or "" for a topic with one schema, or for all kinds.
        kinds: the kinds of a topic of which all are decoded, each with its own reader.
    """

    project: Project
    topic: Topic
    reader: SchemaInfo
    reader_number: int
    source_name: TopicName
    on_target: VersionsOnTarget | None = None
    kind: str = ""
    kinds: tuple[TopicOfMessages, ...] = ()

    @property
    def struct_options(self) -> StructOptions:
        """The options of Spark's types, from `generate` of the project file."""
        from schemactl.codegen.codecs import get_nanoseconds
        from schemactl.codegen.topic_struct import StructOptions

        generate = self.project.generate
        options = StructOptions(generate.spark) if generate else StructOptions()
        return replace(options, nanoseconds=get_nanoseconds(self.topic, generate) or "truncated")

    @property
    def recursion_depth(self) -> int:
        """The recursion depth of the topic in the project's generated package."""
        generate = self.project.generate
        return (
            generate.with_recursion_depth(self.topic.recursion_depth).recursion_depth
            if generate
            else self.topic.recursion_depth or 0
        )

    def make_topic_codec(
        self, args: argparse.Namespace, candidates: Mapping[str, SchemaInfo] | None = None
    ) -> AnyCodec:
        """Return the codec of the topic, or of all its kinds.

        Args:
            args: the arguments of the command.
            candidates: the schemas to decode into instead of the approved ones, by kind, or by "" for a topic with one schema.

        Raises:
            SchemactlError: if messages of this schema cannot be decoded.
        """
        from schemactl.codec import KindsCodec

        candidates = candidates or {}
        if not self.kinds:
            return self.make_codec(args, candidates.get(self.kind, self.reader))
        return KindsCodec(
            {part.kind: part.make_codec(args, candidates.get(part.kind, part.reader)) for part in self.kinds}
        )

    def make_codec(self, args: argparse.Namespace, reader: SchemaInfo) -> Codec:
        """Return a codec of the topic, or of its kind, that decodes into `reader`.

        Raises:
            SchemactlError: if messages of this schema cannot be decoded.
        """
        from schemactl.codec import CodecError, Options
        from schemactl.codegen.codecs import get_wire_options, make_codec

        generate = self.project.generate
        options = Options(
            time_type=self.struct_options.has_time,
            recursion_depth=self.recursion_depth if args.recursion_depth is None else args.recursion_depth,
            strict=args.strict,
            json_defaults=generate is not None and generate.json_defaults,
            **get_wire_options(self.topic, generate),
        )
        codec = make_codec(self.topic, options, reader=reader, on_target=self.on_target, kind=self.kind)
        try:
            codec.columns  # noqa: B018  raises here, not in a worker
        except CodecError as error:
            raise SchemactlError(f"{self.topic.name}: {error}") from None
        return codec

    def find_former_names(self) -> dict[str, tuple[str, ...]]:
        """Map the path of each renamed column of the reader to its former names, newest first."""
        from schemactl.codegen.topic_struct import former_names

        older_schemas = [
            version.info
            for version in reversed(self.topic.versions)
            if version.info and version.number < self.reader_number and self.kind in ("", version.kind)
        ]
        names_by_path = former_names(self.reader, older_schemas, self.struct_options, self.project.release)
        return {".".join(path): names for path, names in names_by_path.items()}

    def find_writer(self, number: int | None) -> SchemaVersion | None:
        """Return the version that messages of this version number were written with, or None if it is unknown."""
        versions = self.on_target.versions if self.on_target else self.topic.versions
        return next((version for version in versions if version.number == number), None)

    def describe_reader(self) -> str:
        """Return the version, or the version of each kind, that messages are decoded into."""
        if not self.kinds:
            return f"version {self.reader_number}" + (f" of {self.kind}" if self.kind else "")
        return ", ".join(f"{part.kind} with version {part.reader_number}" for part in self.kinds)

    def describe_writer(self, number: int | None) -> tuple[str, str]:
        """Return the cells `version` and `commit` of a report for messages of this version number; with kinds, the commit has its kind."""
        if number is None:
            return "none", ""
        writer = self.find_writer(number)
        if writer is None:
            return str(number), "not approved" if self.on_target is None else "not recorded"
        commit = writer.commit.short if writer.commit else ""
        if self.on_target and number in self.on_target.foreign:
            commit = "foreign"
        return str(number), f"{commit} {writer.kind}" if self.kinds and writer.kind else commit


def choose_subject(args: argparse.Namespace, context: Context) -> TopicOfMessages:
    """Return the topic that the command line names, and the schema to decode its messages into.

    Without a version on the command line, the schema is the one in force, or the version that the declaration pins; for a topic
    that is no longer declared, it is the last schema.

    Raises:
        UsageError: if there is no such topic, or it never had a schema.
        SchemactlError: if PySpark or the packages of the codec are not installed.
    """
    from schemactl.codegen.codecs import require_codec

    require_codec()
    try:
        from schemactl import spark as schemactl  # noqa: F401  tests that it can be imported
    except ImportError:
        raise SchemactlError(
            "this needs PySpark, which is not installed", fix='pip install "pulsar-schemactl[spark]"'
        ) from None
    from schemactl.codegen.topics import PackageTopic

    setup = read_setup(context, args.target)
    approved = setup.approved
    chosen_topic, version = choose(args.topic, approved.catalog)
    # Messages have the numbers of all kinds, also where one kind was named.
    topic = approved.catalog.topics[chosen_topic.name]
    setup.require_target([topic], context)
    topic.load()
    if topic.kinds:
        return _choose_kinds(topic, chosen_topic.kind, version, setup.verify_numbers([topic], context))
    current = approved.current(topic.name)
    last = next((version for version in reversed(topic.versions) if version.info is not None), None)
    if version and version.info is not None:
        number, reader = version.number, version.info
    elif current is not None and topic.schema is not None:
        number, reader = PackageTopic(topic, current).reader
    elif last is not None and last.info is not None:
        number, reader = last.number, last.info
    else:
        raise UsageError(f"{topic.name} has no approved schema: there is nothing to read its messages with")
    setup = setup.verify_numbers([topic], context)
    source_name = setup.get_source_name(topic.name)
    return TopicOfMessages(setup.project, topic, reader, number, source_name, setup.on_target(topic, number))


def _choose_kinds(topic: Topic, key: str, version: SchemaVersion | None, setup: ReadingSetup) -> TopicOfMessages:
    """Return the kind of events that the command line names by its key or by a version, or else all kinds of the topic."""
    from schemactl.codegen.topics import get_version_schema, list_kinds

    source_name = setup.get_source_name(topic.name)
    parts = []
    for approved in list_kinds(topic):
        kind = approved.topic.kind
        number, reader = approved.reader
        if version and version.kind == kind:
            number, reader = version.number, get_version_schema(version)
        on_target = setup.on_target(topic, number)
        parts.append(TopicOfMessages(setup.project, topic, reader, number, source_name, on_target, kind))
    key = key or (version.kind if version else "")
    if version and not key:
        raise UsageError(
            f"{topic.name}: version {version.number} does not belong to any kind of events that was ever declared"
        )
    if key:
        return next(part for part in parts if part.kind == key)
    return replace(parts[0], kind="", kinds=tuple(parts))


def has_avro_values(args: argparse.Namespace) -> bool:
    """Return whether --messages are Avro container files whose records are values, not raw messages."""
    is_pulsar = args.messages.startswith(("pulsar://", "pulsar+ssl://"))
    return args.messages_format is None and not is_pulsar and args.messages.lower().endswith(".avro")


def require_avro_values(args: argparse.Namespace, subject: TopicOfMessages) -> SchemaInfo:
    """Return the schema with which the values of Avro container files are decoded: the reader's definition as AVRO.

    Raises:
        UsageError: if the topic has no values of Avro, or several kinds of events, or an option is about raw messages.
    """
    from schemactl.core.schema import SchemaType

    reader, name = subject.reader, subject.topic.name
    if subject.kinds:
        names = " or ".join(quote(f"{name}#{part.kind}") for part in subject.kinds)
        raise UsageError(
            f"{args.messages} are Avro container files of one schema, and {name} has several kinds of events",
            fix=f"write {names}",
        )
    if reader.type not in (SchemaType.AVRO, SchemaType.JSON):
        raise UsageError(f"{args.messages} are Avro container files, and {name} is {reader.type.name}")
    if args.payload_column or args.version_column or args.key_column:
        raise UsageError(
            f"{args.messages} are Avro container files of values: leave the columns of raw messages out, or add --messages-format avro"
        )
    args.unversioned = True
    return replace(reader.load(), type=SchemaType.AVRO)


@contextmanager
def open_messages(
    args: argparse.Namespace, context: Context, topic: TopicName, avro_reader: SchemaInfo | None = None
) -> Iterator[RawMessages]:
    """Yield the --messages of `topic` in a Spark session.

    `avro_reader` is the schema to read Avro container files of values with, or None for raw messages.

    Raises:
        UsageError: if an argument does not fit the messages.
        SchemactlError: if Java is not installed, or Spark fails inside of the context.
    """
    from schemactl.spark.session import JavaNotFound, SparkProblem, session
    from schemactl.spark.stored_messages import RawMessages

    for text in args.option:
        if "=" not in text:
            raise UsageError(f"--option {text}: expected NAME=VALUE")
    options = dict(text.split("=", 1) for text in args.option)
    messages_path = _resolve_path(args.messages, context)
    _check_existence(messages_path, args.master)
    with tempfile.TemporaryDirectory() as folder:
        carried = partial(_write_runtime, Path(folder))
        try:
            with as_usage_error(), session(args.master, f"schemactl {topic.schema_id}", carried=carried) as spark:
                kind, definition = args.messages_format or "parquet", None
                if avro_reader is not None:
                    kind, definition = "avro", avro_reader.schema.decode()
                yield RawMessages(spark, messages_path, str(topic), kind, options, definition)
        except JavaNotFound as error:
            raise SchemactlError(str(error)) from None
        except SparkProblem as error:
            fix = ""
            if avro_reader is not None and re.search(r"(?i)avro.*(external|not found|find)|find.*avro", str(error)):
                fix = (
                    "set spark.jars.packages to org.apache.spark:spark-avro_2.13:VERSION in spark-defaults.conf, "
                    "with the version of PySpark"
                )
            raise SchemactlError(f"Spark: {error}", fix=fix) from None


def _check_existence(path: str, master: str) -> None:
    """Raise SchemactlError if the messages are in a local file or folder that does not exist.

    A path without a scheme may also be one of the file system that the settings of Hadoop or of a cluster name.
    """
    scheme, separator, rest = path.partition("://")
    is_local = scheme == "file" if separator else master.startswith("local") and "HADOOP_CONF_DIR" not in os.environ
    if not is_local:
        return
    local_path = unquote(rest) if separator else path
    # Spark takes the path for a pattern, before which there is a folder.
    fixed_path = Path(*itertools.takewhile(lambda part: not re.search(r"[*?{\[]", part), Path(local_path).parts))
    is_pattern = fixed_path != Path(local_path)
    if not os.path.lexists(local_path) and not (is_pattern and fixed_path.exists()):
        raise SchemactlError(
            f"--messages {path}: no such file or folder",
            fix="give the folder or file with the stored messages, or pulsar://HOST:6650 to read the topic itself",
        )


def _write_runtime(folder: Path) -> Path:
    """Write a zip with the modules that Spark's workers import, and return its path."""
    from schemactl.codegen.package import pack, run_time

    modules = {"__init__.py": "", **run_time("spark/landing.py", "spark/stored_messages.py")}
    archive = folder / "schemactl.zip"
    pack({f"schemactl/{path}": text for path, text in sorted(modules.items())}, archive)
    return archive


@contextmanager
def as_usage_error() -> Iterator[None]:
    """Raise a UsageError for a WrongArgument inside."""
    from schemactl.spark.tables.landing_table import WrongArgument

    try:
        yield
    except WrongArgument as error:
        raise UsageError(str(error)) from None


def _resolve_path(path: str, context: Context) -> str:
    """Make a path absolute, since Spark resolves relative paths in another folder; return a URL unchanged."""
    return path if "://" in path else os.path.normpath(Path(context.directory, path))


def _column_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Return the columns that the user named, as keyword arguments of the functions of `schemactl.spark`."""
    options = {"payload": args.payload_column, "version": args.version_column, "key": args.key_column}
    columns = {parameter: column for parameter, column in options.items() if column is not None}
    return columns | {"version": None} if args.unversioned else columns


def _render_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the indented lines of a table; the first two columns are text, the others are numbers."""
    return format_table(rows, width=get_terminal_width(), numeric=range(2, len(rows[0])), indent=2)


# `schemactl spark land`.


def configure_land(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark land`."""
    parser.description = (
        "Decode a topic's stored messages, each with the version that wrote it, into the approved schema, and write them to a "
        "folder of Parquet, a Delta table or an Iceberg table. Messages that cannot be read are written to a separate place, with the "
        "reason and their bytes; no message is lost, and no message stops the job. Run it again to land new files, or "
        "the remaining ones after an interruption: a table contains each message exactly once."
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        required=True,
        help="the folder, or the Delta table's folder; or the Iceberg table's name, such as shop.orders",
    )
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="(default: parquet)")
    add_options(
        parser,
        "--catalog NAME: the catalog of the Iceberg table in pyiceberg's configuration",
        "--rejected PATH: where rejected messages go (default: the folder _rejected in --out; for a table, a table "
        "whose name ends with _rejected)",
        "--partition-by COLUMN...: a column whose values become folders; may be repeated",
    )
    parser.add_argument(
        "--evolve",
        choices=EVOLUTIONS,
        default="none",
        help="the changes of the table's columns that the landing may make; each includes the ones before it: add columns, widen types, "
        "rename columns, rewrite a Delta table for these in one commit (default: none)",
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="snappy", help="(default: snappy)")
    parser.add_argument(
        "--rows-per-file", type=make_number_type(1), metavar="N", help="the maximum number of rows in a file"
    )
    add_options(
        parser,
        "--files-at-once N: maximum number of message files in one step; the job can be resumed after each step (default: 64)",
        type=make_number_type(1),
        default=64,
    )
    add_options(
        parser,
        "--checkpoint PATH: where Spark records which messages were landed (default: a folder in --out; of an Iceberg table, none)",
    )
    add_format(parser, option="--report")


def run_land(args: argparse.Namespace, context: Context) -> int:
    """Land the messages; return 100 if one was rejected and --strict is set, else 0."""
    of_iceberg = args.format == "iceberg"
    if of_iceberg and not (args.catalog and args.checkpoint):
        raise UsageError(
            "--format iceberg needs --catalog NAME, which pyiceberg's configuration knows, and --checkpoint PATH, where Spark keeps "
            "what was landed"
        )
    subject = choose_subject(args, context)
    avro_reader = require_avro_values(args, subject) if has_avro_values(args) else None
    if avro_reader:
        subject = replace(subject, reader=avro_reader)
    codec = subject.make_topic_codec(args)
    from schemactl.codec import KindsCodec
    from schemactl.spark import Landed, sink
    from schemactl.spark.landing import REJECTED, make_landing_tables
    from schemactl.spark.landing_kinds import KindsSink, name_table
    from schemactl.spark.session import as_spark_problem, watched

    messages_path = _resolve_path(args.messages, context)
    out = args.out if of_iceberg else _resolve_path(args.out, context)
    rejected = args.rejected
    if rejected and not of_iceberg:
        rejected = _resolve_path(rejected, context)
    separator = "/" if args.format == "parquet" else ""
    rejected_path = rejected or f"{out.rstrip('/')}{separator}{REJECTED}"
    if args.checkpoint:
        checkpoint = _resolve_path(args.checkpoint, context)
    else:
        checkpoint = choose_checkpoint(
            out,
            args.format,
            topic=str(subject.source_name),
            place=messages_path,
            kind=args.messages_format or ("avro" if avro_reader else "parquet"),
        )
    written_paths = [checkpoint] if of_iceberg else [checkpoint, out, rejected_path]
    for path in written_paths:
        if "://" not in path or path.startswith("file://"):
            reject_links(path.removeprefix("file://"), below=context.top)
    options: Any = {
        "format": args.format,
        "evolve": args.evolve,
        "partitionBy": args.partition_by,
        "rejected": rejected,
        "compression": args.compression,
        "maxRecordsPerFile": args.rows_per_file,
        "catalog": args.catalog,
        **_column_arguments(args),
    }
    landing: KindsSink | Sink
    with as_usage_error():
        if isinstance(codec, KindsCodec):
            table_paths = [name_table(out, part.kind, args.format) for part in subject.kinds]
            landing = KindsSink(codec, out, {part.kind: part.find_former_names() for part in subject.kinds}, options)
        else:
            table_paths = [out]
            landing = sink(codec, out, former_names=subject.find_former_names(), **options)
        # Fail before Spark starts if the catalog does not respond or the output is not a table.
        for table_path in table_paths:
            make_landing_tables(table_path, options | {"rejected": rejected_path})[0].partitioned_by()
    with open_messages(args, context, subject.source_name, avro_reader) as messages:
        stream = messages.stream(args.files_at_once)
        landing.check(stream)
        is_resumed = messages.has_begun(checkpoint)
        started_s = time.monotonic()
        with watched(messages.spark, context.progress("landing", "tasks")), as_spark_problem():
            writer = stream.writeStream.foreachBatch(landing).option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()
        took_s = time.monotonic() - started_s
    landed_by_kind = landing.landed if isinstance(landing, KindsSink) else {}
    landed = sum(landed_by_kind.values(), Landed()) if isinstance(landing, KindsSink) else landing.landed
    if landed.rejected and not landed.rows:
        context.note(*describe_unreadable_landing(landed))
    if not is_resumed and not landed.rows + landed.rejected:
        raise SchemactlError(f"{messages_path} has no messages of {subject.topic.name}")
    if args.report == "json":
        context.report_json(
            topic=str(subject.topic.name),
            reader={part.kind: part.reader_number for part in subject.kinds} or subject.reader_number,
            out=out,
            **landed.to_json(),
            **({"kinds": {kind: part.to_json() for kind, part in landed_by_kind.items()}} if subject.kinds else {}),
            seconds=round(took_s, 3),
            messages_per_second=round((landed.rows + landed.rejected) / took_s),
        )
    else:
        context.report(_render_landing(subject, landed, out, took_s, rejected_path=rejected_path))
    return NEGATIVE if args.strict and landed.rejected else 0


def choose_checkpoint(out: str, form: str, *, topic: str, place: str, kind: str) -> str:
    """Return the default checkpoint folder of a landing.

    An archive may contain messages of several topics, and a table in one format lacks the rows that were landed in another, so the
    checkpoint depends on the messages and on the format.
    """
    landing = f"{form}\n{topic}\n{place}\n{kind}"
    return f"{out.rstrip('/')}/_checkpoints/{hashlib.sha256(landing.encode()).hexdigest()[:16]}"


def describe_unreadable_landing(landed: Landed) -> tuple[str, str]:
    """Return the notes on a landing that made no row."""
    reason = max(landed.reasons, key=landed.reasons.__getitem__)
    advice = (
        "if you meant another topic or another column (--payload-column, --version-column, --unversioned), land "
        "into another folder: messages that were rejected here count as landed"
    )
    return f"all {landed.rejected:,} messages were rejected, most often because of this: {reason}", advice


def _render_landing(subject: TopicOfMessages, landed: Landed, out: str, took_s: float, *, rejected_path: str) -> str:
    total = landed.rows + landed.rejected
    if not total:
        return f"{subject.topic.name}: nothing new to land"
    rows = [("version", "commit", "messages", "rows", "rejected")]
    for version, counts in landed.versions.items():
        cells = (f"{sum(counts):,}", f"{counts.rows:,}", f"{counts.rejected:,}")
        rows.append((*subject.describe_writer(version), *cells))
    if len(landed.versions) > 1:
        rows.append(("all", "", f"{total:,}", f"{landed.rows:,}", f"{landed.rejected:,}"))
    messages_per_s = round(total / took_s)
    pace = f", {format_count(messages_per_s, 'message')} a second" if messages_per_s else ""
    preposition = "into a table for each kind:" if subject.kinds else "with"
    lines = [
        f"{subject.topic.name}: {format_count(total, 'message')} landed in {out}, read {preposition} {subject.describe_reader()}",
        "",
        *_render_table(rows),
        "",
        f"{format_count(landed.files, 'file')}, {landed.bytes:,} bytes; {took_s:.1f} s{pace}",
    ]
    if landed.rejected:
        lines.append(f"The rejected messages are in {rejected_path}, with their reasons.")
    return "\n".join(lines)


# `schemactl spark verify`.


def configure_verify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark verify`."""
    parser.description = (
        "Decode every stored message of a topic and count, by version, how many can be read. They are read with the approved "
        "schema or, with --candidate, with the schema that the files declare now, before it is merged; the report then also says which "
        "unreadable messages the approved schema cannot read either. Exits with 100 if a message cannot be read."
    )
    add_options(
        parser,
        "--candidate: read with the schema that the files declare, not the approved one",
        "--only-new-loss: with --candidate: messages that the approved schema cannot read either are not shown, and do not fail the command",
    )
    add_options(
        parser, "--shown N: how many unreadable messages to show (default: 10)", type=make_number_type(0), default=10
    )
    add_format(parser, option="--report")


def run_verify(args: argparse.Namespace, context: Context) -> int:
    """Decode the messages; return 0 if all are readable, else 100."""
    if args.only_new_loss and not args.candidate:
        raise UsageError("--only-new-loss requires --candidate")
    subject = choose_subject(args, context)
    candidate = _read_candidate(subject, context) if args.candidate else None
    avro_reader = None
    if has_avro_values(args):
        avro_reader = require_avro_values(args, subject)
        subject = replace(subject, reader=avro_reader)
        if candidate is not None:
            raise UsageError("--candidate compares raw messages of every version, and Avro container files have values")
    approved_codec = subject.make_topic_codec(args)
    codec = approved_codec if candidate is None else subject.make_topic_codec(args, candidate)
    from schemactl.codec.json_names import find_absent_fields, get_json_schema
    from schemactl.spark.session import watched
    from schemactl.spark.stored_messages import verify

    with (
        open_messages(args, context, subject.source_name, avro_reader) as messages,
        watched(messages.spark, context.progress("reading the messages", "tasks")),
    ):
        verified = verify(
            messages.read(),
            codec,
            against=None if candidate is None else approved_codec,
            only_new_loss=args.only_new_loss,
            shown=args.shown,
            **_column_arguments(args),
        )
    total = verified.total
    if not total.messages:
        raise SchemactlError(f"{_resolve_path(args.messages, context)} has no messages of {subject.topic.name}")
    lost = total.unreadable - total.unreadable_with_approved if args.only_new_loss else total.unreadable
    # Fields of JSON messages that no message of a version has, while the messages have unknown names.
    absent_fields = [
        (number, absent)
        for number, names in sorted(verified.names.items())
        if (schema := get_json_schema(approved_codec.schema(number))) is not None
        for absent in find_absent_fields(schema, names)
    ]
    if args.report == "json":
        value = _verification_value(subject, verified, candidate=args.candidate)
        context.report_json(
            **value, absent_fields=[{"version": number, **absent._asdict()} for number, absent in absent_fields]
        )
    else:
        context.report(_render_verification(subject, verified, args))
        context.note(*(f"version {number}: {absent.text}" for number, absent in absent_fields))
    return NEGATIVE if lost else 0


def _read_candidate(subject: TopicOfMessages, context: Context) -> dict[str, SchemaInfo]:
    """Return the schemas that the files declare for the topic, by kind, or by "" for a topic with one schema.

    Raises:
        DeclarationError: if the files have problems.
        SchemactlError: if they declare no schema for the topic.
    """
    from schemactl.declare import reader

    files, project, _ = context.open_working_tree()
    declared = reader.read(files, project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    topic = declared.catalog.topics.get(subject.topic.name)
    if topic is None or topic.schema is None:
        raise SchemactlError(f"the files declare no schema for {subject.topic.name}: there is no candidate")
    if bool(topic.kinds) != bool(subject.kinds or subject.kind):
        raise SchemactlError(
            f"{topic.name} has several kinds of events in the working tree and one schema in the approved history, or vice versa",
            fix="verify without --candidate; after the merge, the messages are read by their kinds",
        )
    return {kind.key: kind.schema for kind in topic.kinds} or {"": topic.schema}


def _render_verification(subject: TopicOfMessages, verified: Verified, args: argparse.Namespace) -> str:
    candidate = args.candidate
    total = verified.total
    reader = "the schema that the files declare" if candidate else f"the approved schema, {subject.describe_reader()}"
    if subject.kinds:
        reader = (
            "the schemas that the files declare" if candidate else f"the approved schemas, {subject.describe_reader()}"
        )
    lines = [f"{subject.topic.name}: {format_count(total.messages, 'message')}, read with {reader}", ""]
    rows = [["version", "commit", "messages", "unreadable", *(["of these approved cannot"] if candidate else [])]]
    rows += [
        [*subject.describe_writer(count.version), *_count_cells(count, candidate=candidate)]
        for count in verified.counts
    ]
    if len(verified.counts) > 1:
        rows.append(["all", "", *_count_cells(total, candidate=candidate)])
    lines += [*_render_table(rows), ""]
    if not total.unreadable:
        return "\n".join([*lines, "Every message is read."])
    new_loss = total.unreadable - total.unreadable_with_approved
    unreadable_text = f"{total.unreadable:,} cannot be read"
    loss_text = (
        f"{new_loss:,} would be lost by this change" if new_loss else "None of them would be lost by this change"
    )
    if args.only_new_loss:
        lines += [
            f"{unreadable_text}.",
            "",
            *_list_unreadable(loss_text, new_loss, verified.first, candidate=candidate),
        ]
    else:
        lines += _list_unreadable(unreadable_text, total.unreadable, verified.first, candidate=candidate)
        lines += ["", f"{loss_text}."] if candidate else []
    return "\n".join(lines)


def _count_cells(count: Count, *, candidate: bool) -> list[str]:
    numbers = [count.messages, count.unreadable, *([count.unreadable_with_approved] if candidate else [])]
    return [f"{number:,}" for number in numbers]


def _list_unreadable(heading: str, total: int, first: Sequence[UnreadableMessage], *, candidate: bool) -> Iterator[str]:
    """Yield the heading, and the first of the unreadable messages."""
    yield heading + ("." if not first else ":" if len(first) == total else f"; the first {len(first)}:")
    for unread in first:
        version = "no version" if unread.version is None else f"version {unread.version}"
        place = f", message {unread.message_id}" if unread.message_id else ""
        yield f"  {version}{place}: {unread.reason}"
        if candidate and unread.unreadable_with_approved is not None:
            yield f"    with the approved schema: {unread.unreadable_with_approved}"
        if (payload := unread.payload) is not None:
            more = len(payload) - _SHOWN_PAYLOAD_BYTES
            cut = f" and {more} bytes more" if more > 0 else ""
            yield f"    payload (base64): {base64.b64encode(payload[:_SHOWN_PAYLOAD_BYTES]).decode()}{cut}"


def _verification_value(subject: TopicOfMessages, verified: Verified, *, candidate: bool) -> dict[str, Any]:
    """Return the JSON report; only with --candidate it compares with the approved schema."""

    def count_value(count: Count) -> dict[str, Any]:
        approved = {"unreadable_when_approved": count.unreadable_with_approved} if candidate else {}
        return {"messages": count.messages, "unreadable": count.unreadable, **approved}

    versions = []
    for count in verified.counts:
        writer = subject.find_writer(count.version)
        commit = writer.commit.id if writer and writer.commit else None
        kind = {"kind": (writer.kind if writer else "") or None} if subject.kinds else {}
        versions.append({"version": count.version, "commit": commit, **kind, **count_value(count)})
    first_unreadable = [
        {
            "version": unread.version,
            "message_id": unread.message_id,
            "reason": unread.reason,
            **({"reason_when_approved": unread.unreadable_with_approved} if candidate else {}),
            "payload_base64": None if unread.payload is None else base64.b64encode(unread.payload).decode(),
        }
        for unread in verified.first
    ]
    return {
        "topic": str(subject.topic.name),
        "candidate": candidate,
        **count_value(verified.total),
        "versions": versions,
        "first_unreadable": first_unreadable,
    }
