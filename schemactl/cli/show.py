"""`schemactl show`: one version's definition."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import EnvironmentTarget, add_target
from schemactl.cli.states import STATE_HELP, WORK, NamedDefinition, States
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.terminal import redirected
from schemactl.core.wording import format_version, versions

if TYPE_CHECKING:
    from schemactl.core.findings import Direction, Incompatibility
    from schemactl.core.names import TopicName
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import History

Role = Literal["reader", "writer"]

_SHOWN: Final = 20
"""The most reasons that are shown to people."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    parser.description = (
        "The definition of a topic: in the approved history, of version N, the text that version had first and that a registry gets; "
        "without a number, the text in force now, from which readers are generated; @work, that of the files here; @REF, that of a "
        "commit, branch or tag, approved or not. Standard error says which versions it can read, from which one on it cannot, and "
        "why; and which ones can read it."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl show orders@3 > orders-3.avsc\n"
        "  schemactl show orders@3 > /dev/null      since which version can readers of version 3 not read?\n"
        "  schemactl show orders@work               the definition as the files here have it\n"
        "  schemactl show orders@origin/feature     as a branch has it\n"
        "  schemactl show orders --format json      the same for programs, with type, properties and commit\n"
        "  schemactl show --effective orders --target prod    policies and partitions there, each with the line that sets it\n"
    )
    parser.add_argument("topic", metavar="TOPIC[@N|@work|@REF]", help=STATE_HELP)
    add_options(
        parser,
        "--effective: what a target has of the topic, policies and all, and where each value comes from",
        "--textconv: TOPIC is the path of an .avsc file, and its outline is printed, for `git diff`: see docs/how-to/what-changed.md",
    )
    add_target(
        parser, "with --effective: the target; without one, what is declared (default: $SCHEMACTL_TARGET)"
    )
    add_format(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the definition is on standard output."""
    if args.textconv:
        return _print_outline(Path(context.directory, args.topic))
    if args.effective:
        from schemactl.cli.show_effective import show_effective

        return show_effective(args, context)
    if args.target is not None and not isinstance(args.target, EnvironmentTarget):
        raise UsageError("--target belongs to --effective: a definition is the same on every target")
    states = States(context)
    chosen, history = states.definition(args.topic), states.approved
    chosen.topic.load()
    info = chosen.info
    if info is None:
        raise SchemactlError(
            f"{chosen.topic.name} has {f'no schema at {chosen.state}' if chosen.state else 'never had a schema'}"
        )
    if args.format == "json":
        context.report_json(**_facts(history, chosen, info))
        return 0
    context.say(headline(history, chosen, info))
    print_definition(info, chosen.topic.name)
    return 0


def _print_outline(path: Path) -> int:
    """Print a line for each field of an Avro file; print any other file as it is, since git shows no diff if this fails."""
    from schemactl.core.errors import InvalidSchema
    from schemactl.formats.avro.explanation import file_lines

    text = path.read_bytes().decode(errors="replace")
    try:
        print("\n".join(file_lines(text)))
    except (InvalidSchema, ValueError, RecursionError):
        print(text, end="")
    return 0


def print_definition(info: SchemaInfo, of: TopicName) -> None:
    """Print the definition as it is stored; raise SchemactlError if it is not text."""
    from schemactl.formats import spec

    text = spec(info).text(info)
    if text is None:
        raise SchemactlError(
            f"the definition of {of} is no text", fix="`--format json` shows its bytes in Base64"
        )
    print_text(text)


def print_text(text: str) -> None:
    """Print a definition as it is."""
    print(text, end="" if text.endswith("\n") or not text else "\n", file=redirected(sys.stdout))


def definition_value(info: SchemaInfo) -> dict[str, Any]:
    """Return the JSON value of a definition."""
    from schemactl.formats import spec

    text = spec(info).text(info)
    return {
        "type": info.type.name,
        "schema": text,
        **({"schema_b64": base64.b64encode(info.schema).decode()} if text is None else {}),
        "properties": dict(info.properties),
    }


def headline(history: History, chosen: NamedDefinition, info: SchemaInfo) -> str:
    """Return a line that names the definition, and lines that say which versions it can read and be read by."""
    what = f"{chosen.topic.name}: {title(history, chosen)}, {info.type.name}"
    if not info.schema:
        what += " (the type alone, without a definition)"
    for key, said in history.catalog.metadata(chosen.topic.name).words().items():
        what += f"\n  {key}: {said}"
    at, line = chosen.number_or_next, chosen.topic.versions
    for verb, cannot, broken in (
        ("reads", "cannot read", gaps(info, at, line, role="reader")),
        ("is read by", "cannot be read by", gaps(info, at, line, role="writer")),
    ):
        these = _others(chosen, broken)
        what += f"\n  {verb} {versions(these)}" if these else f"\n  {verb} no version"
        for gap in broken:
            what += f"\n  {cannot} " + "\n  ".join(gap.lines())
    return what


def title(history: History, chosen: NamedDefinition) -> str:
    """Return a name for the definition: `version 3 (9f2c1abcd, 2026-03-02)`, `in force, ...`, or that of another state."""
    if chosen.version:
        return format_version(chosen.version)
    if chosen.state:
        return f"{'in the working tree' if chosen.state == WORK else f'at {chosen.state}'}, {chosen.standing}"
    if chosen.topic.deleted or history.current(chosen.topic.name) is None:
        return f"no longer declared; the last was {format_version(chosen.topic.versions[-1])}"
    return f"in force, {chosen.standing}"


def _others(chosen: NamedDefinition, broken: Sequence[Gap]) -> list[int]:
    """Return the numbers of the versions outside of these gaps."""
    missing = {number for gap in broken for number in gap.numbers}
    return [each.number for each in chosen.topic.versions if each.info and each.number not in missing]


def _facts(history: History, chosen: NamedDefinition, info: SchemaInfo) -> dict[str, Any]:
    topic = chosen.topic
    unreadable = gaps(info, chosen.number_or_next, topic.versions, role="reader")
    unread_by = gaps(info, chosen.number_or_next, topic.versions, role="writer")
    commit = chosen.version.commit if chosen.version else None if chosen.state else history.since(topic.name)
    return {
        "topic": str(topic.name),
        **metadata_value(history.catalog.metadata(topic.name)),
        "state": chosen.state or None,
        "version": chosen.number if chosen.state or chosen.version else history.current(topic.name),
        "in_force": history.current(topic.name),
        "latest": topic.versions[-1].number if topic.versions else None,
        "deleted": topic.deleted,
        **definition_value(info),
        "source": str(info.source) if info.source else None,
        "commit": commit_value(commit),
        "reads": _others(chosen, unreadable),
        "read_by": _others(chosen, unread_by),
        "unreadable": [gap.value() for gap in unreadable],
        "unread_by": [gap.value() for gap in unread_by],
    }


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive versions that a definition cannot read, or that cannot read it.

    Attributes:
        numbers: their numbers, ascending.
        border: the version of them that is nearest to the definition.
        found: the incompatibilities with the border.
        texts: the same for people.
    """

    numbers: tuple[int, ...]
    border: SchemaVersion
    found: tuple[Incompatibility, ...]
    texts: tuple[str, ...]

    @property
    def strict_only(self) -> bool:
        """Whether only strict readers fail, and Pulsar's Java readers do not."""
        return _is_strict(self.found)

    def value(self) -> dict[str, Any]:
        """Return the JSON value."""
        return {
            "versions": list(self.numbers),
            "border": self.border.number,
            "commit": commit_value(self.border.commit),
            "strict_readers_only": self.strict_only,
            "reasons": [
                {**reason_value(each), "told": text}
                for each, text in zip(self.found, self.texts, strict=True)
            ],
        }

    def lines(self) -> Iterator[str]:
        """Return a line such as `versions 5-6, from version 5 (9f2c1abcd, 2026-03-02) "Count the orders"`, and indented reasons."""
        end = "from" if self.border.number == self.numbers[0] else "up to"
        row = f"{versions(self.numbers)}, {end} " if len(self.numbers) > 1 else ""
        subject = f' "{self.border.commit.subject}"' if self.border.commit else ""
        aside = "; Java can, strict readers cannot" if self.strict_only else ""
        yield f"{row}{format_version(self.border)}{subject}{aside}"
        for each, text in zip(self.found[:_SHOWN], self.texts[:_SHOWN], strict=True):
            yield f"  {each.rule}: {text}"
        left = len(self.found) - _SHOWN
        if left > 0:
            yield f"  and {left:,} {'reason' if left == 1 else 'reasons'} more: `--format json` has them all"


def reason_value(each: Incompatibility) -> dict[str, Any]:
    """Return the JSON value of an incompatibility."""
    return {
        "rule": each.rule,
        "pointer": each.pointer,
        "message": each.message,
        "strict_only": each.strict_only,
    }


def gaps(info: SchemaInfo, at: int, line: Sequence[SchemaVersion], *, role: Role) -> list[Gap]:
    """Return the versions of `line` that `info` cannot read (role `reader`), or that cannot read it (role `writer`).

    `at` is the number of the version that `info` is, or would become.
    """
    from schemactl.formats import resolve

    found: list[list[tuple[SchemaVersion, list[Incompatibility]]]] = []
    for version in line:
        if version.info is None:
            continue
        reader, writer = (info, version.info) if role == "reader" else (version.info, info)
        bad = list(resolve(reader=reader, writer=writer))
        if not bad:
            continue
        # A row ends where a version in between can be read, where it is another sort of reader that cannot, and here.
        last, before = found[-1][-1] if found else (None, [])
        if (
            last
            and last.number == version.number - 1
            and not last.number <= at < version.number
            and _is_strict(before) == _is_strict(bad)
        ):
            found[-1].append((version, bad))
        else:
            found.append([(version, bad)])
    result = []
    for row in found:
        border, bad = row[0] if row[0][0].number > at else row[-1]
        texts = tuple(_reason(each, info, at, border, role) for each in bad)
        result.append(Gap(tuple(version.number for version, _ in row), border, tuple(bad), texts))
    return result


def _is_strict(found: Sequence[Incompatibility]) -> bool:
    return all(each.strict_only for each in found)


def _reason(found: Incompatibility, info: SchemaInfo, at: int, border: SchemaVersion, role: Role) -> str:
    """Return the reason for people, as a change from the older of the two definitions to the newer."""
    from schemactl.core.findings import Breakage
    from schemactl.formats import explain

    if border.info is None:
        return found.message
    is_newer = border.number <= at
    new, old = (info, border.info) if is_newer else (border.info, info)
    is_new_reading = is_newer == (role == "reader")
    direction: Direction = "new_reads_old" if is_new_reading else "old_reads_new"
    return explain(Breakage(found, direction, min(at, border.number)), new=new, old=old).reason
