"""`schemactl spark verify`: counts the stored messages that can and cannot be decoded."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.spark import TopicOfMessages, columns, located, running, subject, table
from schemactl.core.errors import NEGATIVE, DeclarationError, SchemactlError, UsageError
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.codec.verifying import Count
    from schemactl.core.schema import SchemaInfo
    from schemactl.spark.verifying import Unread, Verified

_SHOWN_BYTES: Final = 48


def configure(parser: argparse.ArgumentParser) -> None:
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
    add_options(
        parser, "--shown N: how many unreadable messages to show (default: 10)", type=number(0), default=10
    )
    add_format(parser, option="--report")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every message is read; 100: one is not."""
    if args.only_new_loss and not args.candidate:
        raise UsageError("--only-new-loss compares with the approved schema: it goes with --candidate")
    read = subject(args, context)
    proposed = _candidate(read, context) if args.candidate else None
    approved = read.codec(args, read.reader)
    codec = approved if proposed is None else read.codec(args, proposed)
    from schemactl.spark.session import watched
    from schemactl.spark.verifying import verify

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
        context.report(_text(read, verified, args))
    return NEGATIVE if lost else 0


def _candidate(read: TopicOfMessages, context: Context) -> SchemaInfo:
    """Return the schema that the files declare for the topic.

    Raises:
        DeclarationError: the files have problems.
        SchemactlError: they declare no schema for it.
    """
    from schemactl.declare import files, reader
    from schemactl.declare import project as declare_project

    project, top = declare_project.load_project(context.directory, context.config)
    declared = reader.read(files.WorktreeFiles(top, folders=(*project.roots,)), project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    topic = declared.catalog.topics.get(read.topic.name)
    if topic is None or topic.schema is None:
        raise SchemactlError(f"the files declare no schema for {read.topic.name}: there is no candidate")
    return topic.schema


def _text(read: TopicOfMessages, verified: Verified, args: argparse.Namespace) -> str:
    candidate = args.candidate
    total = verified.total
    how = "the schema that the files declare" if candidate else f"the approved schema, version {read.number}"
    lines = [f"{read.topic.name}: {counted(total.messages, 'message')}, read with {how}", ""]
    rows = [
        ["version", "commit", "messages", "unreadable", *(["of these approved cannot"] if candidate else [])]
    ]
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
            {"version": count.version, "commit": commit(count), **counts_of(count)}
            for count in verified.counts
        ],
        "first_unreadable": [shown(unread) for unread in verified.first],
    }
