"""`schemactl show`: one version's definition."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from schemactl.cli import Context
from schemactl.cli.readers import Gap, gaps
from schemactl.cli.topics import HELP, Chosen, choose
from schemactl.errors import SchemactlError
from schemactl.printing import redirected
from schemactl.wording import cite, versions

if TYPE_CHECKING:
    from schemactl.history import History
    from schemactl.model import SchemaInfo

FORMAT_VERSION = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `show`."""
    parser.description = (
        "The definition of a topic in the approved history: of version N, the text that version had first and that a "
        "registry gets; without a number, the text in force now, from which readers are generated. Standard error says which "
        "versions it can read, from which one on it cannot, and why; and which ones can read it."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl show orders@3 > orders-3.avsc\n"
        "  schemactl show orders@3 > /dev/null      since which version can readers of version 3 not read?\n"
        "  schemactl show orders --format json      the same for programs, with type, properties and commit\n"
    )
    parser.add_argument("topic", metavar="TOPIC[@N]", help=HELP)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(args: argparse.Namespace, context: Context) -> int:
    """0, after the definition is on standard output."""
    history = context.approved()
    chosen = choose(args.topic, history.catalog)
    info = chosen.info
    if info is None:
        raise SchemactlError(f"{chosen.topic.name} declares no schema, and never did")
    if args.format == "json":
        print(json.dumps(_facts(history, chosen, info), indent=2, ensure_ascii=False))
        return 0
    context.say(headline(history, chosen, info))
    from schemactl.formats.outline import stored_text

    text = stored_text(info)
    if text is None:
        raise SchemactlError(
            f"the definition of {chosen.topic.name} is no text",
            fix="`--format json` shows its bytes in Base64",
        )
    # Text goes out as it is stored: a definition's own last newline is not doubled.
    print(text, end="" if text.endswith("\n") or not text else "\n", file=redirected(sys.stdout))
    return 0


def headline(history: History, chosen: Chosen, info: SchemaInfo) -> str:
    """What is shown, in one sentence, and whom it can read."""
    what = f"{chosen.topic.name}: {title(history, chosen)}, {info.type.name}"
    if not info.schema:
        what += " (the type alone, without a definition)"
    at, line = number(history, chosen), chosen.topic.versions
    for verb, cannot, broken in (
        ("reads", "cannot read", gaps(info, at, line, role="reader")),
        ("is read by", "cannot be read by", gaps(info, at, line, role="writer")),
    ):
        these = _others(chosen, broken)
        what += f"\n  {verb} {versions(these)}" if these else f"\n  {verb} no version"
        for gap in broken:
            what += f"\n  {cannot} " + "\n  ".join(gap.lines())
    return what


def number(history: History, chosen: Chosen) -> int:
    """The number of the version that is shown a text of."""
    if chosen.version:
        return chosen.version.number
    in_force = history.current(chosen.topic.name)
    return chosen.topic.versions[-1].number if in_force is None else in_force


def title(history: History, chosen: Chosen) -> str:
    """`version 3 (9f2c1abcd, 2026-03-02)`, or the definition in force."""
    if chosen.version:
        return cite(chosen.version)
    number = history.current(chosen.topic.name)
    if chosen.topic.deleted or number is None:
        return f"no longer declared; the last was {cite(chosen.topic.versions[-1])}"
    return f"in force, {cite(chosen.topic.versions[number])}"


def _others(chosen: Chosen, broken: Sequence[Gap]) -> list[int]:
    """The numbers of all versions that are in none of these gaps."""
    missing = {number for gap in broken for number in gap.numbers}
    return [each.number for each in chosen.topic.versions if each.info and each.number not in missing]


def _facts(history: History, chosen: Chosen, info: SchemaInfo) -> dict[str, Any]:
    from schemactl.formats.outline import stored_text

    text = stored_text(info)
    topic = chosen.topic
    unreadable = gaps(info, number(history, chosen), topic.versions, role="reader")
    unread_by = gaps(info, number(history, chosen), topic.versions, role="writer")
    commit = chosen.version.commit if chosen.version else history.since(topic.name)
    return {
        "format_version": FORMAT_VERSION,
        "topic": str(topic.name),
        "version": chosen.version.number if chosen.version else history.current(topic.name),
        "in_force": history.current(topic.name),
        "latest": topic.versions[-1].number if topic.versions else None,
        "deleted": topic.deleted,
        "type": info.type.name,
        "schema": text,
        **({"schema_b64": base64.b64encode(info.schema).decode()} if text is None else {}),
        "properties": dict(info.properties),
        "source": str(info.source) if info.source else None,
        "commit": {"id": commit.id, "time_s": commit.time_s, "subject": commit.subject} if commit else None,
        "reads": _others(chosen, unreadable),
        "read_by": _others(chosen, unread_by),
        "unreadable": [gap.value() for gap in unreadable],
        "unread_by": [gap.value() for gap in unread_by],
    }
