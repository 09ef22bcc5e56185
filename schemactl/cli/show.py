"""`show` prints the definition of a version or the values in force for a topic; `log` lists its versions."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.target_selection import ChosenTarget, EnvironmentTarget, add_target, approved_target, target_of
from schemactl.cli.topic_selection import (
    STATE_HELP,
    VERSION_HELP,
    WORK,
    NamedDefinition,
    States,
    choose,
    find,
    number_of_version_bytes,
    reading,
)
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.terminal import paint, redirected, table, terminal_width
from schemactl.core.wording import day, format_version, policy_word, versions

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.errors import Source
    from schemactl.core.findings import Direction, Incompatibility
    from schemactl.core.json_values import Json
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project, Target
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import History


# `schemactl show`.


Role = Literal["reader", "writer"]

_SHOWN: Final = 20
"""The most reasons that are shown to people."""


def configure_show(parser: argparse.ArgumentParser) -> None:
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
    add_target(parser, "with --effective: the target; without one, what is declared (default: $SCHEMACTL_TARGET)")
    add_format(parser)


def run_show(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the definition is on standard output."""
    if args.textconv:
        return _print_outline(Path(context.directory, args.topic))
    if args.effective:
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
        raise SchemactlError(f"the definition of {of} is no text", fix="`--format json` shows its bytes in Base64")
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
                {**reason_value(each), "told": text} for each, text in zip(self.found, self.texts, strict=True)
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
    return {"rule": each.rule, "pointer": each.pointer, "message": each.message, "strict_only": each.strict_only}


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


# `schemactl show --effective`.


_ORIGINS: Final = {
    "topic": "",
    "namespace": " (namespace)",
    "overlay": " (overlay)",
    "namespace overlay": " (namespace, overlay)",
    "project": " (default of the project)",
    "pulsar": "Pulsar's default",
    "target": "the target's name",
    "declared": "as declared",
}


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in force, the level that sets it (see `_ORIGINS`), and its place in a file, if it has one."""

    key: str
    value: Any
    level: str
    source: Source | None = None

    @property
    def origin(self) -> str:
        return f"{self.source or ''}{_ORIGINS[self.level]}"


def show_effective(args: argparse.Namespace, context: Context) -> int:
    """Print the values in force for a topic, on a target or as declared. Return 0."""
    project, top = context.project()
    target = None
    if args.target is not None:
        chosen = approved_target(args.target, project, top, context)
        project, target = chosen.project, chosen.target
    approved = context.approved(project, target)
    topic = find(args.topic, approved.catalog)
    values = [*_values(topic, approved, project, target, context)]
    if args.format == "json":
        context.report_json(
            topic=str(topic.name),
            target=target.name if target else None,
            ref=approved.ref,
            values={each.key: _json(each) for each in values},
        )
        return 0
    rows = [(each.key, policy_word(each.value), each.origin) for each in values]
    head = f"{topic.name}{f' on {target.name}' if target else ''}, as {approved.ref} has it"
    context.report("\n".join([head, *(f"  {line}" for line in table(rows))]))
    return 0


def _json(value: _Value) -> Json:
    place = value.source
    return {
        "value": value.value,
        "level": value.level,
        "file": place.path if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def _values(
    topic: Topic, approved: History, project: Project, target: Target | None, context: Context
) -> Iterator[_Value]:
    overlays = target.overlays if target else ()

    def level(kind: str, source: Source | None) -> str:
        is_overlay = source is not None and source.path in overlays
        return {"topic": "overlay", "namespace": "namespace overlay"}[kind] if is_overlay else kind

    if target:
        there = target.names.there(topic.name)
        yield _Value("name", str(there), "declared" if there == topic.name else "target")
    if topic.partitions is None:
        yield _Value("partitions", "none", "pulsar")
    else:
        place = topic.locate("/partitions")
        yield _Value("partitions", topic.partitions, level("topic", place), place)
    for each in _policies(topic, approved.catalog, project):
        if each.level == "project":
            yield replace(each, source=_project_place(each.key, approved, project, context))
        else:
            yield replace(each, level=level(each.level, each.source) if each.source else each.level)
    for key, usual in (("generation", 1), ("renamed_from", None), ("reader", "latest"), ("lifecycle", "stable")):
        if (value := getattr(topic, key)) != usual:
            yield _Value(key, value if isinstance(value, int) else str(value), "topic", topic.locate(f"/{key}"))
    space = approved.catalog.namespaces.get(topic.name.namespace_name)
    own, words = topic.metadata.values(), approved.catalog.metadata(topic.name).words()
    for key, said in words.items():
        holder, at = (space, "namespace") if space and key not in own else (topic, "topic")
        yield _Value(key, said, at, holder.locate(f"/{key}"))
    if topic.schema:
        yield _Value("schema", topic.schema.type.name, "topic", topic.locate("/schema/type"))


def _policies(topic: Topic, catalog: Catalog, project: Project) -> Iterator[_Value]:
    """Yield each policy in force: that of the topic, else of the namespace, else the default of brokers."""
    from schemactl.core.policies import SETTINGS, BrokerDefaults, Policies

    space = catalog.namespaces.get(topic.name.namespace_name)
    for key in Policies.names():
        for level, holder in (("topic", topic), ("namespace", space)):
            value = holder.policies.get(key) if holder else None
            if holder and value not in (None, "UNDEFINED"):
                shown = str(value) if isinstance(value, str) else value
                yield _Value(key, shown, level, holder.locate(f"/{key}"))
                break
        else:
            if key in SETTINGS:
                continue  # not managed: what counts is not known here
            value = getattr(project.defaults, key)
            is_said = value != getattr(BrokerDefaults(), key)
            yield _Value(key, value if isinstance(value, bool) else str(value), "project" if is_said else "pulsar")


def _project_place(key: str, approved: History, project: Project, context: Context) -> Source:
    from schemactl import history as schemactl_history
    from schemactl.declare import project as declare_project

    files = schemactl_history.CommitFiles(context.repository, approved.whole.tip)
    return declare_project.place_in_project(files, project, ("defaults", key))


# `schemactl log`.


def configure_log(parser: argparse.ArgumentParser) -> None:
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
    add_target(parser, "show this target's version numbers next to Git's, where they differ", from_environment=False)
    add_format(parser)


def run_log(args: argparse.Namespace, context: Context) -> int:
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
            topics[0], _writer(topics[0], number_of_version_bytes(args.version_bytes)), args.format, context
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
        number = number_of_version_bytes(args.version_bytes)
        pairs = {name: tuple(pair for pair in found if pair.registry and pair.registry.number == number)}
        if not pairs[name]:
            raise SchemactlError(f"{name} has no version {number} in {target.name} ({target.registry})")
        apart = tuple(
            replace(topic, numbers=tuple(each for each in topic.numbers if each.registry == number)) for topic in apart
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
