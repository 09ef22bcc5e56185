"""Choose the topic of stored messages with its codec, and open the messages in a Spark session."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from schemactl.cli.context import Context
from schemactl.cli.reading_setup import ReadingSetup, read_setup
from schemactl.cli.topic_selection import choose
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion, find_by_number
from schemactl.core.terminal import format_table, get_terminal_width

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.codegen.topic_struct import StructOptions
    from schemactl.codegen.topics import VersionsOnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.spark.dataframes import AnyCodec
    from schemactl.spark.stored_messages import RawMessages


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
        has_avro_values: whether the messages are Avro container files whose records are values, not raw messages.
    """

    project: Project
    topic: Topic
    reader: SchemaInfo
    reader_number: int
    source_name: TopicName
    on_target: VersionsOnTarget | None = None
    kind: str = ""
    kinds: tuple[TopicOfMessages, ...] = ()
    has_avro_values: bool = False

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
        return find_by_number(versions, number)

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
        UsageError: if there is no such topic, it never had a schema, or an argument does not fit the messages.
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
        subject = _choose_kinds(topic, chosen_topic.kind, version, setup.verify_numbers([topic], context))
    else:
        current = approved.find_current_number(topic.name)
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
        subject = TopicOfMessages(setup.project, topic, reader, number, source_name, setup.on_target(topic, number))
    is_pulsar = args.messages.startswith(("pulsar://", "pulsar+ssl://"))
    if args.messages_format is None and not is_pulsar and args.messages.lower().endswith(".avro"):
        return _choose_avro_values(subject, args)
    return subject


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


def _choose_avro_values(subject: TopicOfMessages, args: argparse.Namespace) -> TopicOfMessages:
    """Return `subject` for Avro container files of values, which are decoded with the reader's definition as AVRO.

    Raises:
        UsageError: if the topic has no values of Avro, or several kinds of events, or an option is about raw messages.
    """
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
    return replace(subject, reader=replace(reader.load(), type=SchemaType.AVRO), has_avro_values=True)


@contextmanager
def open_messages(args: argparse.Namespace, context: Context, subject: TopicOfMessages) -> Iterator[RawMessages]:
    """Yield the --messages of a topic in a Spark session.

    Raises:
        UsageError: if an argument does not fit the messages.
        SchemactlError: if Java is not installed, or Spark fails inside of the context.
    """
    from schemactl.spark.session import JavaNotFound, SparkProblem, open_session
    from schemactl.spark.stored_messages import RawMessages

    for text in args.option:
        if "=" not in text:
            raise UsageError(f"--option {text}: expected NAME=VALUE")
    options = dict(text.split("=", 1) for text in args.option)
    messages_path = resolve_path(args.messages, context)
    require_existing(messages_path, args.master)
    topic = subject.source_name
    with tempfile.TemporaryDirectory() as folder:
        carried = partial(write_runtime, Path(folder))
        try:
            with as_usage_error(), open_session(args.master, f"schemactl {topic.schema_id}", carried=carried) as spark:
                kind, definition = args.messages_format or "parquet", None
                if subject.has_avro_values:
                    kind, definition = "avro", subject.reader.schema.decode()
                yield RawMessages(spark, messages_path, str(topic), kind, options, definition)
        except JavaNotFound as error:
            raise SchemactlError(str(error)) from None
        except SparkProblem as error:
            fix = ""
            if subject.has_avro_values and re.search(r"(?i)avro.*(external|not found|find)|find.*avro", str(error)):
                fix = (
                    "set spark.jars.packages to org.apache.spark:spark-avro_2.13:VERSION in spark-defaults.conf, "
                    "with the version of PySpark"
                )
            raise SchemactlError(f"Spark: {error}", fix=fix) from None


def require_existing(path: str, master: str) -> None:
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


def write_runtime(folder: Path) -> Path:
    """Write a zip with the modules that Spark's workers import, and return its path."""
    from schemactl.codegen.package_folder import pack
    from schemactl.codegen.wheel import read_runtime_modules

    modules = {"__init__.py": "", **read_runtime_modules("spark/landing.py", "spark/stored_messages.py")}
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


def resolve_path(path: str, context: Context) -> str:
    """Make a path absolute, since Spark resolves relative paths in another folder; return a URL unchanged."""
    return path if "://" in path else os.path.normpath(Path(context.directory, path))


def get_column_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Return the columns that the user named, as keyword arguments of the functions of `schemactl.spark`."""
    options = {"payload": args.payload_column, "version": args.version_column, "key": args.key_column}
    columns = {parameter: column for parameter, column in options.items() if column is not None}
    return columns | {"version": None} if args.unversioned else columns


def render_counts(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the indented lines of a table; the first two columns are text, the others are numbers."""
    return format_table(rows, width=get_terminal_width(), numeric=range(2, len(rows[0])), indent=2)
