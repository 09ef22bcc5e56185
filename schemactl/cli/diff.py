"""`schemactl diff`: what changed between two versions, and who can read whom."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemactl.cli import Context
from schemactl.cli.parser import add_format
from schemactl.cli.selection import VERSION_HELP, ChosenTopic, choose
from schemactl.cli.show import incompatibilities, reason_value
from schemactl.errors import UsageError
from schemactl.messages import day
from schemactl.report.style import paint

if TYPE_CHECKING:
    from schemactl.history import History
    from schemactl.model import SchemaInfo, Topic


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.description = (
        "What changed from one definition to another: the text, the fields, and who can read whom, in both directions. "
        "With one TOPIC: its last change. With one TOPIC@N: from version N to the definition in force."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl diff orders                what the last change was\n"
        "  schemactl diff orders@2              what changed since version 2\n"
        "  schemactl diff orders@2 orders@4\n"
        "  schemactl diff orders invoices       two topics as they are now\n"
    )
    parser.add_argument("old", metavar="TOPIC[@N]", help=VERSION_HELP)
    parser.add_argument("new", metavar="TOPIC[@M]", nargs="?", help="the same")
    add_format(parser)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two definitions. `number` is that of its version, `label` names it for people."""

    topic: Topic
    number: int
    label: str
    info: SchemaInfo

    @property
    def name(self) -> str:
        """As it is named on the command line."""
        return f"{self.topic.name.topic}@{self.number}"


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the differences are printed."""
    history = context.approved()
    old, new = _sides(history, args.old, args.new)
    if args.format == "json":
        context.report_json(**_facts(old, new))
    else:
        print(_text(old, new, color=context.color))
    return 0


def _sides(history: History, old: str, new: str | None) -> tuple[Side, Side]:
    first = choose(old, history.catalog)
    if new is not None:
        return _side(history, first), _side(history, choose(new, history.catalog))
    if first.version:
        return _side(history, first), _side(history, ChosenTopic(first.topic, None))
    versions = [each for each in first.topic.versions if each.info]
    if len(versions) < 2:
        raise UsageError(f"{first.topic.name} has fewer than two versions: name two definitions")
    in_force = history.current(first.topic.name)
    # After a return to older content, that return was the last change.
    before = versions[-2] if in_force in (None, versions[-1].number) else versions[-1]
    return _side(history, ChosenTopic(first.topic, before)), _side(history, first)


def _side(history: History, chosen: ChosenTopic) -> Side:
    topic = chosen.topic
    if chosen.info is None:
        raise UsageError(f"{topic.name} has never had a schema")
    in_force = history.current(topic.name)
    version = chosen.version or topic.versions[-1 if in_force is None else in_force]
    standing = "" if chosen.version else ", no longer declared" if in_force is None else ", in force"
    commit = f" ({version.commit.short}, {day(version.commit)})" if version.commit else ""
    return Side(topic, version.number, f"{topic.name.topic}@{version.number}{commit}{standing}", chosen.info)


def _text(old: Side, new: Side, *, color: bool) -> str:
    from schemactl.formats.outline import changes, line_changes

    topics = (
        str(old.topic.name) if old.topic.name == new.topic.name else f"{old.topic.name} -> {new.topic.name}"
    )
    styles = {"+": "green", "-": "red", "@": "cyan"}
    text = line_changes(old=old.info, new=new.info, labels=(old.label, new.label))
    fields = [f"  {sign} {what}" for sign, what in changes(old=old.info, new=new.info)]
    lines = [paint(topics, "bold", color=color), ""]
    lines += [paint(line, styles[line[0]], color=color) if line[:1] in styles else line for line in text]
    if not text:
        lines += [f"- {old.label}", f"+ {new.label}", "The text is the same."]
    lines.append("")
    if fields:
        lines += ["Fields:", *fields]
    else:
        lines.append("No field differs" + (": only order, docs, aliases and the like do." if text else "."))
    lines += ["", *_verdict(old, new, newer_reads=True), *_verdict(old, new, newer_reads=False)]
    return "\n".join(lines)


def _verdict(old: Side, new: Side, *, newer_reads: bool) -> Iterator[str]:
    """Say whether one side can read the other, and the reasons where it cannot."""
    from schemactl.formats import explain
    from schemactl.verdicts import Breakage

    reader, writer = (new, old) if newer_reads else (old, new)
    found = incompatibilities(reader=reader.info, writer=writer.info)
    sentence = f"{reader.name} reads {writer.name}"
    if not found:
        yield f"{sentence}: yes."
        return
    strict = all(each.strict_only for each in found)
    yield f"{sentence}: {'Java yes, strict readers no' if strict else 'no'}."
    for each in found:
        breakage = Breakage(each, "new_reads_old" if newer_reads else "old_reads_new", old.number)
        explained = explain(breakage, new=new.info, old=old.info)
        yield f"  {each.rule}: {explained.reason}"


def _facts(old: Side, new: Side) -> dict[str, Any]:
    from schemactl.formats.outline import changes, line_changes

    return {
        "old": {"topic": str(old.topic.name), "version": old.number, "label": old.label},
        "new": {"topic": str(new.topic.name), "version": new.number, "label": new.label},
        "text": line_changes(old=old.info, new=new.info, labels=(old.label, new.label)),
        "fields": [{"sign": sign, "what": what} for sign, what in changes(old=old.info, new=new.info)],
        "new_reads_old": [reason_value(each) for each in incompatibilities(reader=new.info, writer=old.info)],
        "old_reads_new": [reason_value(each) for each in incompatibilities(reader=old.info, writer=new.info)],
    }
