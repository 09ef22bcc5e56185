"""`schemactl log`: the versions of topics, with the commits that brought them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.reading import reading
from schemactl.cli.selection import VERSION_HELP, ChosenTarget, add_target, choose, number_of, target_of
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.terminal import paint, table, terminal_width
from schemactl.core.wording import day, format_version

if TYPE_CHECKING:
    from schemactl.core.catalog import Topic
    from schemactl.core.schema import SchemaVersion
    from schemactl.history import History


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `log`."""
    parser.description = (
        "List the versions of a topic along the approved history, newest first, each with the commit that introduced it. "
        "A commit that only reformats or edits docs adds no version, nor does a return to an older content."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl log orders\n"
        "  schemactl log orders@3                                    which commit brought Git's version 3?\n"
        "  schemactl log --all --format json                         every topic, for other programs\n"
        "  schemactl log orders --version-bytes 0000000000000003     which commit wrote this message?\n"
        "  schemactl log orders --target prod                        with the numbers that its registry gave\n"
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC[@N]", help=VERSION_HELP)
    add_options(
        parser,
        "--all: every topic that was ever approved",
        "--version-bytes HEX: the schema version of a message, to find the commit that introduced it",
    )
    add_target(
        parser, "show this target's version numbers next to Git's, where they differ", from_environment=False
    )
    add_format(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed; 100: with --target, messages would be misread."""
    if bool(args.topic) == args.all:
        raise UsageError("name one TOPIC, or ask for --all")
    if args.version_bytes is not None and args.all:
        raise UsageError("--version-bytes are those of one topic's message: name the TOPIC")
    target = target_of(args.target, context) if args.target else None
    history = context.approved(*((target.project, target.target) if target else ()))
    asked = None
    if args.all:
        topics = [history.catalog.topics[name] for name in sorted(history.catalog.topics)]
    else:
        topic, asked = choose(args.topic, history.catalog)
        topics = [topic]
    if asked and args.version_bytes is not None:
        raise UsageError("--version-bytes and @N both name a version: leave one out")
    if target:
        return _print_on_target(args, context, history, topics, target, asked)
    if asked:
        return _print_version(topics[0], asked, args.format, context)
    if args.version_bytes is not None:
        reading(context, None).require_target(topics, context)
        return _print_version(
            topics[0], _writer(topics[0], number_of(args.version_bytes)), args.format, context
        )
    if args.format == "json":
        context.report_json(
            ref=history.ref,
            tip=commit_value(history.tip),
            topics=[_topic(history, topic) for topic in topics],
            notes=[str(note) for note in history.notes],
            repaired=[str(note) for note in history.repaired],
        )
    else:
        context.report("\n\n".join(_text(history, topic, color=context.color) for topic in topics))
    return 0


def _writer(topic: Topic, number: int) -> SchemaVersion:
    """Return the version of that number, which a message says it was written with."""
    found = next((version for version in topic.versions if version.number == number), None)
    if found is None:
        known = f"it has 0 to {topic.versions[-1].number}" if topic.versions else "it has none"
        raise SchemactlError(
            f"{topic.name} has no version {number} in the approved history: {known}",
            fix="the registry may have versions that Git does not know: `schemactl drift --target T` compares the two",
        )
    return found


def _print_version(topic: Topic, version: SchemaVersion, form: str, context: Context) -> int:
    if form == "json":
        context.report_json(topic=str(topic.name), **_version(version))
    else:
        subject = version.commit.subject if version.commit else ""
        print(f"{topic.name}: {format_version(version)}: {subject}")
    return 0


def _print_on_target(
    args: argparse.Namespace,
    context: Context,
    history: History,
    topics: list[Topic],
    chosen: ChosenTarget,
    asked: SchemaVersion | None,
) -> int:
    """Print the topics' numbers in Git and in the target's registry; of one message's, or one of Git's versions, only that."""
    from schemactl.core.catalog import Catalog
    from schemactl.deploy.planner import applicable, renamed, renamed_numbers
    from schemactl.deploy.version_numbers import apart_values, find_apart, pair_up, topic_value
    from schemactl.history.target_history import numbers_of
    from schemactl.registry.interface import Scope
    from schemactl.report import drift

    target = chosen.target
    names = {topic.name: target.names.there(topic.name) for topic in topics}
    held = chosen.read(Scope(frozenset(), frozenset(names.values())), context).topics
    pairs = {
        names[topic.name]: pair_up(
            git=topic.versions, registry=held[there].versions if (there := names[topic.name]) in held else ()
        )
        for topic in topics
    }
    declared = applicable(renamed(Catalog(topics={topic.name: topic for topic in topics}), target.names))
    recorded = numbers_of(target, chosen.project, context.repository, history)
    apart = find_apart(declared, Catalog(topics=held), renamed_numbers(recorded, target.names))
    if args.version_bytes is not None:
        [(name, found)] = pairs.items()
        number = number_of(args.version_bytes)
        pairs = {name: tuple(pair for pair in found if pair.registry and pair.registry.number == number)}
        if not pairs[name]:
            raise SchemactlError(f"{name} has no version {number} in {target.name} ({target.registry})")
        apart = tuple(
            replace(topic, numbers=tuple(each for each in topic.numbers if each.registry == number))
            for topic in apart
        )
    if asked:
        [(name, found)] = pairs.items()
        pairs = {name: tuple(pair for pair in found if pair.git and pair.git.number == asked.number)}
    misread = [topic for topic in apart if not topic.recorded]
    if args.format == "json":
        context.report_json(
            ref=history.ref,
            tip=commit_value(history.tip),
            target=target.name,
            registry=target.registry,
            topics=[topic_value(name, each) for name, each in pairs.items()],
            numbers_apart=apart_values(apart),
        )
    else:
        blocks = [drift.render_pairs(name, each, color=context.color) for name, each in pairs.items()]
        if misread:
            blocks.append(drift.render(misread, target=target.name, color=context.color))
        context.report("\n\n".join(blocks))
    return NEGATIVE if misread else 0


def _text(history: History, topic: Topic, *, color: bool) -> str:
    """Return the topic, what is to be said of it, and its versions, newest first."""
    lines = [paint(str(topic.name), "bold", color=color), *_notes(history, topic)]
    current = history.current(topic.name)
    rows: list[tuple[str, ...]] = [("VERSION", "TYPE", "COMMIT", "DAY", "SUBJECT")]
    for version in reversed(topic.versions):
        mark = " (in force)" if version.number == current else ""
        kind = version.info.type.name if version.info else "tombstone"
        commit = version.commit
        facts = (commit.short, day(commit), commit.subject) if commit else ("", "", "")
        rows.append((f"{version.number}{mark}", kind, *facts))
    if topic.versions:
        columns = terminal_width()
        lines += [f"  {line}" for line in table(rows, width=columns and columns - 2)]
    return "\n".join(lines)


def _notes(history: History, topic: Topic) -> Iterable[str]:
    yield from (f"  {key}: {said}" for key, said in history.catalog.metadata(topic.name).words().items())
    since = history.since(topic.name)
    current = history.current(topic.name)
    latest = topic.versions[-1].number if topic.versions else None
    when = f"since {since.short} ({day(since)}: {since.subject})" if since else ""
    if topic.deleted:
        yield f"  no longer declared {when}"
    elif latest is None:
        yield "  declares no schema"
    elif current is None:
        yield f"  declares no schema {when}"
    elif current != latest:
        yield f"  version {current} is in force again {when}; a registry's latest stays {latest}"


def _topic(history: History, topic: Topic) -> dict[str, Any]:
    return {
        "topic": str(topic.name),
        **metadata_value(history.catalog.metadata(topic.name)),
        "deleted": topic.deleted,
        "current": history.current(topic.name),
        "since": commit_value(history.since(topic.name)),
        "latest": topic.versions[-1].number if topic.versions else None,
        "versions": [_version(version) for version in topic.versions],
    }


def _version(version: SchemaVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "version_bytes": version.number.to_bytes(8, "big").hex(),
        "type": version.info.type.name if version.info else None,
        "commit": commit_value(version.commit),
    }
