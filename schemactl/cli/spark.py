"""`spark land` and `spark verify`: decode stored messages into a folder or table, or count those that can be decoded."""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import Command, Parser, add_format, add_options, number
from schemactl.cli.topic_selection import (
    STRICT_OPTION,
    TOPIC_HELP,
    add_numbers_of,
    add_recursion_depth,
    choose,
    reading,
)
from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import NEGATIVE, DeclarationError, SchemactlError, UsageError
from schemactl.core.terminal import table as style_table
from schemactl.core.terminal import terminal_width
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.codec.topic import Count
    from schemactl.codegen.topics import OnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.spark import Landed
    from schemactl.spark.stored_messages import RawMessages, Unread, Verified


# `schemactl spark`.


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


def configure_spark(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark`."""
    parser.description = "Read a topic's stored messages with Spark, as a pipeline with the generated package does."
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
            action, "--option NAME=VALUE...: an option of that format's reader, or of pulsar-schemactl; may be repeated"
        )
        versions = action.add_mutually_exclusive_group()
        for where, option, columns in (
            (action, "payload", "payload or value"),
            (versions, "version", "schema_version or __schemaVersion"),
            (action, "key", "key or __key"),
        ):
            where.add_argument(f"--{option}-column", metavar="NAME", help=f"(default: {columns}, whichever is there)")
        add_options(
            versions, "--unversioned: no message has a version: each is read as written with the reader's own schema"
        )
        add_options(action, "--master URL: the Spark to use (default: local[*])", default="local[*]")
        add_numbers_of(action)
        add_options(action, STRICT_OPTION)
        add_recursion_depth(action)
        _load(name).configure(action)


def run_spark(args: argparse.Namespace, context: Context) -> int:
    """Run the action and return its exit code."""
    return _load(args.action).run(args, context)


def _load(name: str) -> Command:
    commands = {"land": Command(configure_land, run_land), "verify": Command(configure_verify, run_verify)}
    return commands[name]


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
        from schemactl.codegen.topics import codec_of

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
        older = [each.info for each in reversed(self.topic.versions) if each.info and each.number < self.number]
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
    from schemactl.codegen.topics import require_codec

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
    return TopicOfMessages(read.project, read.top, topic, reader, number, there, read.on_target(topic, number))


@contextmanager
def running(args: argparse.Namespace, context: Context, topic: TopicName) -> Iterator[RawMessages]:
    """Yield the --messages of `topic` in a Spark session; what goes wrong with Spark inside is a SchemactlError."""
    from schemactl.spark.session import JavaNotFound, SparkProblem, session
    from schemactl.spark.stored_messages import RawMessages

    for text in args.option:
        if "=" not in text:
            raise UsageError(f"--option {text}: expected NAME=VALUE")
    options = dict(text.split("=", 1) for text in args.option)
    with tempfile.TemporaryDirectory() as folder:
        carried = partial(_runtime, Path(folder))
        try:
            with as_usage_error(), session(args.master, f"schemactl {topic.schema_id}", carried=carried) as spark:
                place = located(args.messages, context)
                yield RawMessages(spark, place, topic=str(topic), kind=args.messages_format, options=options)
        except JavaNotFound as error:
            raise SchemactlError(str(error)) from None
        except SparkProblem as error:
            raise SchemactlError(f"Spark: {error}") from None


@contextmanager
def as_usage_error() -> Iterator[None]:
    """Raise a UsageError for a WrongArgument inside."""
    from schemactl.spark.tables.landing_table import WrongArgument

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

    modules = {"__init__.py": "", **run_time("spark/landing.py", "spark/stored_messages.py")}
    archive = folder / "schemactl.zip"
    pack({f"schemactl/{path}": text for path, text in sorted(modules.items())}, archive)
    return archive


# `schemactl spark land`.


_MEANT: Final = (
    "where another topic, or another column (--payload-column, --version-column, --unversioned), was meant, land into another "
    "folder: what was rejected here counts as landed"
)

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4_raw", "brotli", "none")

FORMATS: Final = ("parquet", "delta", "iceberg")

EVOLUTIONS: Final = ("none", "add", "widen", "rename")


def configure_land(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark land`."""
    parser.description = (
        "Decode a topic's stored messages, each with the version that wrote it, into the approved schema, and write them to a "
        "folder of Parquet, a Delta table or an Iceberg table. Messages that cannot be read are written to a separate place, with the "
        "reason and their bytes; none is lost, and none stops the job. Start it again to land new files, and what an interruption left: "
        "in a table each message is there exactly once."
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        required=True,
        help="the folder, or that of the Delta table; or the Iceberg table's name, such as shop.orders",
    )
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="(default: parquet)")
    add_options(
        parser,
        "--catalog NAME: of the Iceberg table, in pyiceberg's configuration",
        "--rejected PATH: where rejected messages go (default: the folder _rejected in --out; of a table, one that ends with _rejected)",
        "--partition-by COLUMN...: a column whose values become folders; may be repeated",
    )
    parser.add_argument(
        "--evolve",
        choices=EVOLUTIONS,
        default="none",
        help="make changes of the table's columns that the rows need: add columns; widen types, too; rename columns, too (default: none)",
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="snappy", help="(default: snappy)")
    parser.add_argument("--rows-per-file", type=number(1), metavar="N", help="at most so many rows in a file")
    add_options(
        parser,
        "--files-at-once N: maximum files of messages in a step, after which the job can be resumed (default: 64)",
        type=number(1),
        default=64,
    )
    add_options(
        parser,
        "--checkpoint PATH: where Spark keeps what was landed of --messages (default: a folder in --out; of an Iceberg table, none)",
    )
    add_format(parser, option="--report")


def run_land(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every message was landed, or rejected with its reason; 100: with --strict, one was rejected."""
    of_iceberg = args.format == "iceberg"
    if of_iceberg and not (args.catalog and args.checkpoint):
        raise UsageError(
            "--format iceberg needs --catalog NAME, which pyiceberg's configuration knows, and --checkpoint PATH, where Spark keeps "
            "what was landed"
        )
    read = subject(args, context)
    codec = read.codec(args, read.reader)
    from schemactl.spark import sink
    from schemactl.spark.landing import REJECTED, tables_of
    from schemactl.spark.session import as_spark_problem, watched

    def placed(path: str) -> str:
        return path if of_iceberg else located(path, context)

    out = placed(args.out)
    rejected = placed(args.rejected) if args.rejected else None
    inside = "/" if args.format == "parquet" else ""
    rejected_place = rejected or f"{out.rstrip('/')}{inside}{REJECTED}"
    messages_at = located(args.messages, context)
    checkpoint = (
        located(args.checkpoint, context)
        if args.checkpoint
        else own_checkpoint(out, args.format, topic=str(read.there), place=messages_at, kind=args.messages_format)
    )
    for place in (checkpoint, *(() if of_iceberg else (out, rejected_place))):
        if "://" not in place or place.startswith("file://"):
            reject_links(place.removeprefix("file://"), below=context.top)
    options: Any = {
        "format": args.format,
        "evolve": args.evolve,
        "former_names": read.former_names(),
        "partitionBy": args.partition_by,
        "rejected": rejected,
        "compression": args.compression,
        "maxRecordsPerFile": args.rows_per_file,
        "catalog": args.catalog,
        **columns(args),
    }
    with as_usage_error():
        landing = sink(codec, out, **options)
        # A catalog that does not answer, or a place that is no table, is no reason to start Spark.
        tables_of(out, options)[0].partitioned_by()
    with running(args, context, read.there) as messages:
        stream = messages.stream(args.files_at_once)
        landing.check(stream)
        again = messages.has_begun(checkpoint)
        started_s = time.monotonic()
        with watched(messages.spark, context.progress("landing", "tasks")), as_spark_problem():
            writer = stream.writeStream.foreachBatch(landing).option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()
        took_s = time.monotonic() - started_s
    landed = landing.landed
    if landed.rejected and not landed.rows:
        context.note(*nothing_readable(landed))
    if not again and not landed.rows + landed.rejected:
        raise SchemactlError(f"{messages_at} has no messages of {read.topic.name}")
    if args.report == "json":
        context.report_json(
            topic=str(read.topic.name),
            reader=read.number,
            out=out,
            **landed.to_json(),
            seconds=round(took_s, 3),
            messages_per_second=round((landed.rows + landed.rejected) / took_s),
        )
    else:
        context.report(_landed_text(read, landed, out, took_s, rejected=rejected_place))
    return NEGATIVE if args.strict and landed.rejected else 0


def own_checkpoint(out: str, form: str, *, topic: str, place: str, kind: str) -> str:
    """Return where the landing of these messages keeps how far it is, unless the user says.

    Other messages have another place: an archive may hold those of several topics. So has another format: that of no table has their rows.
    """
    what = f"{form}\n{topic}\n{place}\n{kind}"
    return f"{out.rstrip('/')}/_checkpoints/{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def nothing_readable(landed: Landed) -> tuple[str, str]:
    """Return the notes on a landing that made no row."""
    reason = max(landed.reasons, key=landed.reasons.__getitem__)
    return (f"all {landed.rejected:,} messages were rejected, most often because of this: {reason}", _MEANT)


def _landed_text(read: TopicOfMessages, landed: Landed, out: str, took_s: float, *, rejected: str) -> str:
    total = landed.rows + landed.rejected
    if not total:
        return f"{read.topic.name}: nothing new to land"
    rows = [
        ("version", "commit", "messages", "rows", "rejected"),
        *(
            (*read.named(version), f"{sum(counts):,}", f"{counts.rows:,}", f"{counts.rejected:,}")
            for version, counts in landed.versions.items()
        ),
    ]
    if len(rows) > 2:
        rows.append(("all", "", f"{total:,}", f"{landed.rows:,}", f"{landed.rejected:,}"))
    each_s = round(total / took_s)
    pace = f", {counted(each_s, 'message')} a second" if each_s else ""
    return "\n".join(
        [
            f"{read.topic.name}: {counted(total, 'message')} landed in {out}, read with version {read.number}",
            "",
            *table(rows),
            "",
            f"{counted(landed.files, 'file')}, {landed.bytes:,} bytes; {took_s:.1f} s{pace}",
            *([f"The rejected messages are in {rejected}, with their reasons."] if landed.rejected else []),
        ]
    )


# `schemactl spark verify`.


_SHOWN_BYTES: Final = 48


def configure_verify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spark verify`."""
    parser.description = (
        "Decode every stored message of a topic and count, by version, how many can be read. They are read with the approved "
        "schema or, with --candidate, with the one that the files declare now, before it is merged; the report then also says which "
        "unreadable messages the approved schema cannot read either. Exits with 100 if a message cannot be read."
    )
    add_options(
        parser,
        "--candidate: read with the schema that the files declare, not the approved one",
        "--only-new-loss: with --candidate: messages that the approved schema cannot read either are no reason to fail, and not shown",
    )
    add_options(parser, "--shown N: how many unreadable messages to show (default: 10)", type=number(0), default=10)
    add_format(parser, option="--report")


def run_verify(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every message is read; 100: one is not."""
    if args.only_new_loss and not args.candidate:
        raise UsageError("--only-new-loss compares with the approved schema: it goes with --candidate")
    read = subject(args, context)
    proposed = _candidate(read, context) if args.candidate else None
    approved = read.codec(args, read.reader)
    codec = approved if proposed is None else read.codec(args, proposed)
    from schemactl.spark.session import watched
    from schemactl.spark.stored_messages import verify

    with (
        running(args, context, read.there) as messages,
        watched(messages.spark, context.progress("reading the messages", "tasks")),
    ):
        verified = verify(
            messages.read(),
            codec,
            against=None if proposed is None else approved,
            only_new_loss=args.only_new_loss,
            shown=args.shown,
            **columns(args),
        )
    total = verified.total
    if not total.messages:
        raise SchemactlError(f"{located(args.messages, context)} has no messages of {read.topic.name}")
    lost = total.unreadable - total.unreadable_with_approved if args.only_new_loss else total.unreadable
    if args.report == "json":
        context.report_json(**_facts(read, verified, candidate=args.candidate))
    else:
        context.report(_verified_text(read, verified, args))
    return NEGATIVE if lost else 0


def _candidate(read: TopicOfMessages, context: Context) -> SchemaInfo:
    """Return the schema that the files declare for the topic.

    Raises:
        DeclarationError: the files have problems.
        SchemactlError: they declare no schema for it.
    """
    from schemactl.declare import files
    from schemactl.declare import project as declare_project
    from schemactl.declare import reader as declare_reader

    project, top = declare_project.load_project(context.directory, context.config)
    declared = declare_reader.read(files.WorktreeFiles(top, folders=(*project.roots,)), project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    topic = declared.catalog.topics.get(read.topic.name)
    if topic is None or topic.schema is None:
        raise SchemactlError(f"the files declare no schema for {read.topic.name}: there is no candidate")
    return topic.schema


def _verified_text(read: TopicOfMessages, verified: Verified, args: argparse.Namespace) -> str:
    candidate = args.candidate
    total = verified.total
    how = "the schema that the files declare" if candidate else f"the approved schema, version {read.number}"
    lines = [f"{read.topic.name}: {counted(total.messages, 'message')}, read with {how}", ""]
    rows = [["version", "commit", "messages", "unreadable", *(["of these approved cannot"] if candidate else [])]]
    rows += [[*read.named(count.version), *_numbers(count, candidate=candidate)] for count in verified.counts]
    if len(rows) > 2:
        rows.append(["all", "", *_numbers(total, candidate=candidate)])
    lines += table(rows)
    lines.append("")
    if not total.unreadable:
        return "\n".join([*lines, "Every message is read."])
    new = total.unreadable - total.unreadable_with_approved
    cannot = f"{total.unreadable:,} cannot be read"
    change = f"{new:,} would be lost by this change" if new else "None of them would be lost by this change"
    if args.only_new_loss:
        lines += [f"{cannot}.", "", *_listed(change, new, verified.first, candidate=candidate)]
    else:
        lines += _listed(cannot, total.unreadable, verified.first, candidate=candidate)
        lines += ["", f"{change}."] if candidate else []
    return "\n".join(lines)


def _listed(what: str, count: int, first: Sequence[Unread], *, candidate: bool) -> Iterator[str]:
    shown = len(first)
    yield what + ("." if not shown else ":" if shown == count else f"; the first {shown}:")
    for unread in first:
        yield from _unread_lines(unread, candidate=candidate)


def _numbers(count: Count, *, candidate: bool) -> list[str]:
    return [
        f"{count.messages:,}",
        f"{count.unreadable:,}",
        *([f"{count.unreadable_with_approved:,}"] if candidate else []),
    ]


def _unread_lines(unread: Unread, *, candidate: bool) -> list[str]:
    version = "no version" if unread.version is None else f"version {unread.version}"
    place = f", message {unread.message_id}" if unread.message_id else ""
    payload = unread.payload
    lines = [f"  {version}{place}: {unread.reason}"]
    if candidate and unread.unreadable_with_approved is not None:
        lines.append(f"    with the approved schema: {unread.unreadable_with_approved}")
    if payload is not None:
        cut = f" and {len(payload) - _SHOWN_BYTES} bytes more" if len(payload) > _SHOWN_BYTES else ""
        lines.append(f"    payload (base64): {base64.b64encode(payload[:_SHOWN_BYTES]).decode()}{cut}")
    return lines


def _facts(read: TopicOfMessages, verified: Verified, *, candidate: bool) -> dict[str, Any]:
    def counts_of(count: Count) -> dict[str, Any]:
        known = {"unreadable_when_approved": count.unreadable_with_approved} if candidate else {}
        return {"messages": count.messages, "unreadable": count.unreadable, **known}

    def shown(unread: Unread) -> dict[str, Any]:
        payload = None if unread.payload is None else base64.b64encode(unread.payload).decode()
        known = {"reason_when_approved": unread.unreadable_with_approved} if candidate else {}
        return {
            "version": unread.version,
            "message_id": unread.message_id,
            "reason": unread.reason,
            **known,
            "payload_base64": payload,
        }

    def commit(count: Count) -> str | None:
        version = read.writer(count.version)
        return version.commit.id if version and version.commit else None

    return {
        "topic": str(read.topic.name),
        "candidate": candidate,
        **counts_of(verified.total),
        "versions": [
            {"version": count.version, "commit": commit(count), **counts_of(count)} for count in verified.counts
        ],
        "first_unreadable": [shown(unread) for unread in verified.first],
    }
