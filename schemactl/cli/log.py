"""`log`: list the versions of a topic, with their commits."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schemactl.cli.context import Context, select_notes
from schemactl.cli.parser import add_format, add_options, add_timeout
from schemactl.cli.reading_setup import read_setup
from schemactl.cli.show import KindView, list_kinds
from schemactl.cli.target_selection import ChosenTarget, add_target, choose_target
from schemactl.cli.topic_selection import (
    VERSION_HELP,
    choose,
    find_number_in_force,
    parse_version_bytes,
    resolve_relative_path,
)
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.core.json_values import make_view
from schemactl.core.names import format_kind_name
from schemactl.core.schema import find_by_number
from schemactl.core.terminal import format_table, get_terminal_width, paint
from schemactl.core.wording import format_day, format_version

if TYPE_CHECKING:
    from schemactl.core.names import TopicName
    from schemactl.core.schema import Commit, SchemaVersion
    from schemactl.history.approved_history import History


def configure_log(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `log`."""
    parser.description = (
        "List the versions of a topic along the approved history, newest first, each with the commit that "
        "introduced it. A commit that only reformats or edits docs adds no version, and neither does a return to "
        "the content of an older version."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl log orders\n"
        "  schemactl log orders@3                                    which commit added Git's version 3?\n"
        "  schemactl log --all --format json                         every topic, for other programs\n"
        "  schemactl log orders --version-bytes 0000000000000003     which commit wrote this message?\n"
        "  schemactl log --file orders.avro                          which version wrote this Avro file?\n"
        "  schemactl log orders --target prod                        with the numbers that its registry gave\n"
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC[@N]", help=VERSION_HELP)
    add_options(
        parser,
        "--all: every topic that was ever approved",
        "--version-bytes HEX: the schema version of a message, to find the commit that introduced it",
        "--file FILE: an Avro container file, to find the version of TOPIC, or of any topic, that wrote it; exit code 100 if no version did",
    )
    add_target(parser, "show this target's version numbers next to Git's, where they differ", from_environment=False)
    add_format(parser)
    add_timeout(parser)


def run_log(args: argparse.Namespace, context: Context) -> int:
    """Print the list; return 100 if, with --target, messages would be decoded with the wrong schema, else 0.

    Raises:
        HistoryError: after the other topics, if version numbers depend on the installed protoc.
    """
    if args.file is not None:
        return _print_writers_of_file(args, context)
    if bool(args.topic) == args.all:
        raise UsageError("name one TOPIC, or add --all")
    if args.version_bytes is not None and args.all:
        raise UsageError("--version-bytes requires a TOPIC")
    target = choose_target(args.target, context) if args.target else None
    patterns = [] if args.all else [args.topic]
    history = context.approved(*((target.project, target.target) if target else ()), topics=patterns)
    version = None
    if args.all:
        names = sorted(history.catalog.topics)
        topics = [history.catalog.topics[name] for name in names if name.schema_id not in history.undecided]
    else:
        topic, version = choose(args.topic, history.catalog)
        topics = [topic]
    if version and args.version_bytes is not None:
        raise UsageError("--version-bytes and @N both name a version: remove one of them")
    if target:
        return _print_log_on_target(args, context, history, topics, target, version)
    if version:
        _print_version(topics[0], version, args.format, context)
        return 0
    if args.version_bytes is not None:
        read_setup(context, None).require_target(topics, context)
        [topic] = topics
        number = parse_version_bytes(args.version_bytes)
        writer = find_by_number(topic.versions, number)
        if writer is None:
            numbers_text = f"it has 0 to {topic.versions[-1].number}" if topic.versions else "it has no version"
            raise SchemactlError(
                f"{topic.name} has no version {number} in the approved history: {numbers_text}",
                fix="the registry may have versions that Git does not know: `schemactl drift --target T` compares the two",
            )
        _print_version(topic, writer, args.format, context)
        return 0
    if args.format == "json":
        context.report_json(
            ref=history.ref,
            tip=history.tip,
            topics=[TopicLogView.from_topic(topic, history) for topic in topics],
            notes=[str(note) for note in select_notes(history.notes, history, patterns, [])],
            repaired=[str(note) for note in select_notes(history.repaired, history, patterns, [])],
        )
    else:
        context.report("\n\n".join(_render_log(history, topic, color=context.color) for topic in topics))
    if args.all and history.undecided:
        raise next(iter(history.undecided.values()))
    return 0


def _print_writers_of_file(args: argparse.Namespace, context: Context) -> int:
    """Print the versions with the schema of an Avro container file; return 100 without such a version, else 0."""
    from schemactl.publish.avro_files import describe_record, find_writer, find_writers, read_header

    if args.all or args.version_bytes is not None or args.target:
        raise UsageError("--file has the schema of its records: leave --all, --version-bytes and --target out")
    definition = read_header(resolve_relative_path(args.file, context)).definition
    history = context.approved(topics=[args.topic] if args.topic else [])
    if args.topic:
        topic, version = choose(args.topic, history.catalog)
        if version is not None:
            raise UsageError("--file and @N both name a version: remove one of them")
        writer = find_writer(definition, topic.load())
        writers = [(topic, writer)] if writer else []
    else:
        writers = find_writers(definition, history.catalog)
    if args.format == "json":
        views = [TopicVersionView.from_version(topic, version) for topic, version in writers]
        context.report_json(file=args.file, record=describe_record(definition), writers=views)
    for topic, version in writers if args.format != "json" else ():
        _print_version(topic, version, args.format, context)
    if not writers:
        where = f"of {args.topic}" if args.topic else "of a topic in the approved history"
        context.say(f"{args.file}: its schema, {describe_record(definition)}, is not a version {where}")
    return 0 if writers else ExitCode.NEGATIVE


def _print_version(topic: Topic, version: SchemaVersion, form: str, context: Context) -> None:
    if form == "json":
        context.report_view(TopicVersionView.from_version(topic, version))
    else:
        subject = version.commit.subject if version.commit else ""
        print(f"{topic.name}: {format_version(version)}: {subject}")


def _print_log_on_target(
    args: argparse.Namespace,
    context: Context,
    history: History,
    topics: list[Topic],
    chosen: ChosenTarget,
    version: SchemaVersion | None,
) -> int:
    """Print the version numbers of the topics in Git and in the target's registry, side by side.

    With --version-bytes, or a `version` of Git, print only that one. Return 100 if messages would be decoded with the wrong schema.
    """
    from schemactl.deploy.target_catalog import rename_catalog, rename_numbers, select_applicable
    from schemactl.deploy.version_lists import ListedTopic, pair_up
    from schemactl.deploy.version_numbers import find_number_mismatches, list_mismatch_views
    from schemactl.history.target_history import read_numbers_of_target
    from schemactl.registry.interface import Scope
    from schemactl.report.target_blocks import render_misread_topics
    from schemactl.report.version_numbers import render_version_numbers

    target = chosen.target
    target_names = {topic.name: target.names.to_target(topic.name) for topic in topics}
    registered = chosen.read(Scope(frozenset(), frozenset(target_names.values())), context).topics
    pairs_by_topic = {}
    for topic in topics:
        name = target_names[topic.name]
        entries = registered[name].versions if name in registered else ()
        pairs_by_topic[name] = pair_up(git=topic.versions, registry=entries)
    declared = select_applicable(rename_catalog(Catalog(topics={topic.name: topic for topic in topics}), target.names))
    recorded = read_numbers_of_target(target, chosen.project, context.repository, history)
    topic_mismatches = find_number_mismatches(
        declared, Catalog(topics=registered), rename_numbers(recorded, target.names)
    )
    if args.version_bytes is not None:
        [(name, pairs)] = pairs_by_topic.items()
        number = parse_version_bytes(args.version_bytes)
        pairs_by_topic = {name: tuple(pair for pair in pairs if pair.registry and pair.registry.number == number)}
        if not pairs_by_topic[name]:
            raise SchemactlError(f"{name} has no version {number} in {target.name} ({target.registry})")
        topic_mismatches = tuple(
            replace(mismatches, numbers=tuple(entry for entry in mismatches.numbers if entry.registry == number))
            for mismatches in topic_mismatches
        )
    if version:
        [(name, pairs)] = pairs_by_topic.items()
        pairs_by_topic = {name: tuple(pair for pair in pairs if pair.git and pair.git.number == version.number)}
    misread = [mismatches for mismatches in topic_mismatches if not mismatches.recorded]
    if args.format == "json":
        context.report_json(
            ref=history.ref,
            tip=history.tip,
            target=target.name,
            registry=target.registry,
            topics=[ListedTopic.from_pairs(name, pairs) for name, pairs in pairs_by_topic.items()],
            numbers_apart=list_mismatch_views(topic_mismatches),
        )
    else:
        blocks = [render_version_numbers(name, pairs, color=context.color) for name, pairs in pairs_by_topic.items()]
        if misread:
            blocks.append(render_misread_topics(misread, target=target.name, color=context.color))
        context.report("\n\n".join(blocks))
    return ExitCode.NEGATIVE if misread else 0


def _render_log(history: History, topic: Topic, *, color: bool) -> str:
    """Return the name of the topic, its metadata and state, and its versions, newest first."""
    lines = [paint(format_kind_name(topic.name, topic.kind), "bold", color=color)]
    lines += [f"  {key}: {text}" for key, text in history.catalog.metadata(topic.name).words().items()]
    since, current = history.find_commit_of_state(topic.name), find_number_in_force(history, topic)
    latest = topic.versions[-1].number if topic.versions else None
    when = f"since {since.short} ({format_day(since)}: {since.subject})" if since else ""
    if topic.deleted:
        lines.append(f"  no longer declared {when}")
    elif latest is None:
        lines.append("  declares no schema")
    elif current is None:
        lines.append(f"  declares no schema {when}")
    elif topic.kinds or topic.kind:
        # The latest version of the topic may be of another kind, and the commit may have changed another kind.
        for part in topic.split():
            current = find_number_in_force(history, part)
            if part.versions and current not in (None, latest := part.versions[-1].number):
                lines.append(
                    f"  version {current} of {part.kind} is in force again; a registry's latest of this kind stays {latest}"
                )
    elif current != latest:
        lines.append(f"  version {current} is in force again {when}; the latest version in a registry stays {latest}")
    in_force = {find_number_in_force(history, part) for part in topic.split()}
    has_kinds = any(version.kind for version in topic.versions)
    kind_head = ("KIND",) if has_kinds else ()
    rows: list[tuple[str, ...]] = [("VERSION", "TYPE", *kind_head, "COMMIT", "DAY", "SUBJECT")]
    for version in reversed(topic.versions):
        mark = " (in force)" if version.number in in_force else ""
        type_ = version.info.type.name if version.info else "tombstone"
        kind_cells = (version.kind or "-",) if has_kinds else ()
        commit = version.commit
        commit_cells = (commit.short, format_day(commit), commit.subject) if commit else ("", "", "")
        rows.append((f"{version.number}{mark}", type_, *kind_cells, *commit_cells))
    if topic.versions:
        lines += format_table(rows, width=get_terminal_width(), indent=2)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """A version in JSON; `version_bytes` is the schema version of its messages, in hexadecimal."""

    version: int
    version_bytes: str
    type: str | None
    kind: str | None
    commit: Commit | None

    @classmethod
    def from_version(cls, version: SchemaVersion) -> VersionView:
        """Return the view of a version."""
        return make_view(
            cls,
            version,
            version=version.number,
            version_bytes=version.number.to_bytes(8, "big").hex(),
            type=version.info.type.name if version.info else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVersionView:
    """A version in JSON, with its topic before the keys of `VersionView`."""

    topic: TopicName
    version: int
    version_bytes: str
    type: str | None
    kind: str | None
    commit: Commit | None

    @classmethod
    def from_version(cls, topic: Topic, version: SchemaVersion) -> TopicVersionView:
        """Return the view of a version of a topic."""
        return make_view(cls, VersionView.from_version(version), topic=topic.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogView:
    """The versions of a topic in JSON.

    Attributes:
        current: the number of the version in force.
        since: the commit that made the topic as it is.
        latest: the highest number.
    """

    topic: TopicName
    kind: str | None
    kinds: tuple[KindView, ...]
    owner: str
    description: str
    labels: Mapping[str, str]
    links: Mapping[str, str]
    deprecated: Mapping[str, str] | None
    deleted: bool
    current: int | None
    since: Commit | None
    latest: int | None
    versions: tuple[VersionView, ...]

    @classmethod
    def from_topic(cls, topic: Topic, history: History) -> TopicLogView:
        """Return the view of a topic in the approved history."""
        metadata = history.catalog.metadata(topic.name)
        return make_view(
            cls,
            metadata,
            topic=topic.name,
            kind=topic.kind or None,
            kinds=list_kinds(history, topic),
            deprecated=metadata.deprecated.values() if metadata.deprecated else None,
            deleted=topic.deleted,
            current=find_number_in_force(history, topic),
            since=history.find_commit_of_state(topic.name),
            latest=topic.versions[-1].number if topic.versions else None,
            versions=tuple(map(VersionView.from_version, topic.versions)),
        )
