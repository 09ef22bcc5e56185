"""`spark verify`: count the stored messages that can be decoded."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, make_number_type
from schemactl.cli.spark_messages import (
    TopicOfMessages,
    choose_subject,
    get_column_arguments,
    open_messages,
    render_counts,
    resolve_path,
)
from schemactl.core.errors import DeclarationError, ExitCode, SchemactlError, UsageError
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.codec.verification import Count
    from schemactl.core.schema import SchemaInfo
    from schemactl.spark.stored_messages import UnreadableMessage, Verified


_SHOWN_PAYLOAD_BYTES: Final = 48


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
    if subject.has_avro_values and args.candidate:
        raise UsageError("--candidate compares raw messages of every version, and Avro container files have values")
    candidate = _read_candidate(subject, context) if args.candidate else None
    approved_codec = subject.make_topic_codec(args)
    codec = approved_codec if candidate is None else subject.make_topic_codec(args, candidate)
    from schemactl.codec.json_names import find_absent_fields, get_json_schema
    from schemactl.spark.session import watch_jobs
    from schemactl.spark.stored_messages import verify

    with (
        open_messages(args, context, subject) as messages,
        watch_jobs(messages.spark, context.progress("reading the messages", "tasks")),
    ):
        verified = verify(
            messages.read(),
            codec,
            against=None if candidate is None else approved_codec,
            only_new_loss=args.only_new_loss,
            shown=args.shown,
            **get_column_arguments(args),
        )
    total = verified.total
    if not total.messages:
        raise SchemactlError(f"{resolve_path(args.messages, context)} has no messages of {subject.topic.name}")
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
    return ExitCode.NEGATIVE if lost else 0


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
    lines += [*render_counts(rows), ""]
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
