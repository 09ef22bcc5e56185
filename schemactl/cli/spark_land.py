"""`spark land`: decode stored messages into a folder or table."""

from __future__ import annotations

import argparse
import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, make_number_type
from schemactl.cli.spark_messages import (
    TopicOfMessages,
    as_usage_error,
    choose_subject,
    get_column_arguments,
    open_messages,
    render_counts,
    resolve_path,
)
from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.spark import Landed
    from schemactl.spark.landing import Sink
    from schemactl.spark.landing_kinds import KindsSink


# These repeat constants of `schemactl.spark`, which needs PySpark.
FORMATS: Final = ("parquet", "delta", "iceberg")

EVOLUTIONS: Final = ("none", "add", "widen", "rename", "rewrite")

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4_raw", "brotli", "none")


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
    codec = subject.make_topic_codec(args)
    from schemactl.codec import KindsCodec
    from schemactl.spark import Landed, sink
    from schemactl.spark.landing import REJECTED, make_landing_tables
    from schemactl.spark.landing_kinds import KindsSink, name_table
    from schemactl.spark.session import as_spark_problem, watch_jobs

    messages_path = resolve_path(args.messages, context)
    out = args.out if of_iceberg else resolve_path(args.out, context)
    rejected = args.rejected
    if rejected and not of_iceberg:
        rejected = resolve_path(rejected, context)
    separator = "/" if args.format == "parquet" else ""
    rejected_path = rejected or f"{out.rstrip('/')}{separator}{REJECTED}"
    if args.checkpoint:
        checkpoint = resolve_path(args.checkpoint, context)
    else:
        checkpoint = choose_checkpoint(
            out,
            args.format,
            topic=str(subject.source_name),
            place=messages_path,
            kind=args.messages_format or ("avro" if subject.has_avro_values else "parquet"),
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
        **get_column_arguments(args),
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
            make_landing_tables(table_path, options | {"rejected": rejected_path})[0].read_partition_columns()
    with open_messages(args, context, subject) as messages:
        stream = messages.stream(args.files_at_once)
        landing.check(stream)
        is_resumed = messages.has_begun(checkpoint)
        started_s = time.monotonic()
        with watch_jobs(messages.spark, context.progress("landing", "tasks")), as_spark_problem():
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
    return ExitCode.NEGATIVE if args.strict and landed.rejected else 0


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
        *render_counts(rows),
        "",
        f"{format_count(landed.files, 'file')}, {landed.bytes:,} bytes; {took_s:.1f} s{pace}",
    ]
    if landed.rejected:
        lines.append(f"The rejected messages are in {rejected_path}, with their reasons.")
    return "\n".join(lines)
