"""`schemactl spark land`: writes stored messages of all versions to a folder or a table, and rejected ones separately."""

from __future__ import annotations

import argparse
import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.spark import TopicOfMessages, as_usage_error, columns, located, running, subject, table
from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.spark import Landed

_MEANT: Final = (
    "where another topic, or another column (--payload-column, --version-column, --unversioned), was meant, land into another "
    "folder: what was rejected here counts as landed"
)

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4_raw", "brotli", "none")

FORMATS: Final = ("parquet", "delta", "iceberg")

EVOLUTIONS: Final = ("none", "add", "widen", "rename")


def configure(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace, context: Context) -> int:
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
    from schemactl.spark.errors import as_spark_problem
    from schemactl.spark.landing import REJECTED, tables_of
    from schemactl.spark.session import watched

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
        else own_checkpoint(
            out, args.format, topic=str(read.there), place=messages_at, kind=args.messages_format
        )
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
        context.report(_text(read, landed, out, took_s, rejected=rejected_place))
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
    return (
        f"all {landed.rejected:,} messages were rejected, most often because of this: {reason}",
        _MEANT,
    )


def _text(read: TopicOfMessages, landed: Landed, out: str, took_s: float, *, rejected: str) -> str:
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
