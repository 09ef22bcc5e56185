"""`schemactl log`: the versions of topics, with the commits that brought them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemactl.cli import Context
from schemactl.cli.numbering import reading
from schemactl.cli.targets import add_trust
from schemactl.cli.topics import HELP, find, number_of
from schemactl.errors import SchemactlError, UsageError
from schemactl.report.style import paint, table
from schemactl.wording import cite, day

if TYPE_CHECKING:
    from schemactl.cli.targets import ChosenTarget
    from schemactl.history import History
    from schemactl.model import Commit, SchemaVersion, Topic

FORMAT_VERSION = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `log`."""
    parser.description = (
        "The versions of a topic along the approved history, newest first, each with the commit that brought it. "
        "A reformatting or doc-only commit brings none, nor does the return to an older content."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl log orders\n"
        "  schemactl log --all --format json                         every topic, for other programs\n"
        "  schemactl log orders --version-bytes 0000000000000003     which commit wrote this message?\n"
        "  schemactl log orders --target prod                        with the numbers that its registry gave\n"
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help=HELP)
    parser.add_argument("--all", action="store_true", help="every topic that was ever approved")
    parser.add_argument(
        "--version-bytes", metavar="HEX", help="the schema version of a message: which commit brought it"
    )
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="as this target's registry has them: its numbers beside Git's, where something else took one",
    )
    add_trust(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(args: argparse.Namespace, context: Context) -> int:
    """0, after the list is printed; 100: with --target, messages would be misread."""
    if bool(args.topic) == args.all:
        raise UsageError("name one TOPIC, or ask for --all")
    if args.version_bytes is not None and args.all:
        raise UsageError("--version-bytes are those of one topic's message: name the TOPIC")
    chosen = None
    if args.target:
        from schemactl.cli.targets import approved_target
        from schemactl.history import load_project

        project, top = load_project(context.directory, context.config)
        chosen = approved_target(args.target, project, top, context)
    history = context.approved(chosen.project if chosen else None)
    context.note(history.notes)
    if args.all:
        topics = [history.catalog.topics[name] for name in sorted(history.catalog.topics)]
    else:
        topics = [find(args.topic, history.catalog)]
    if chosen:
        return _print_on_target(args, context, history, topics, chosen)
    if args.version_bytes is not None:
        reading(context, None).require_target(topics)
        return _print_writer(topics[0], args.version_bytes, args.format)
    if args.format == "json":
        print(_json(history, topics))
    else:
        print("\n\n".join(_text(history, topic, color=context.color) for topic in topics))
    return 0


def _print_writer(topic: Topic, version_bytes: str, form: str) -> int:
    number = number_of(version_bytes)
    found = next((version for version in topic.versions if version.number == number), None)
    if found is None:
        known = f"it has 0 to {topic.versions[-1].number}" if topic.versions else "it has none"
        raise SchemactlError(
            f"{topic.name} has no version {number} in the approved history: {known}",
            fix="the registry may hold versions that Git does not know: `schemactl plan --target T` compares the two",
        )
    if form == "json":
        print(
            json.dumps(
                {"format_version": FORMAT_VERSION, "topic": str(topic.name), **_version(found)},
                indent=2,
                ensure_ascii=False,
            )
        )
    else:
        subject = found.commit.subject if found.commit else ""
        print(f"{topic.name}: {cite(found)}: {subject}")
    return 0


def _print_on_target(
    args: argparse.Namespace, context: Context, history: History, topics: list[Topic], chosen: ChosenTarget
) -> int:
    """The topics' numbers in Git and in the target's registry; or of one message's version only."""
    from contextlib import closing

    from schemactl.cli.plan import REFUSED
    from schemactl.cli.targets import recorded_numbers
    from schemactl.json_values import json_text
    from schemactl.model import Catalog
    from schemactl.plan import applicable, renamed, renamed_topic
    from schemactl.registry import Scope
    from schemactl.report import numbers_text
    from schemactl.report.correspondence_text import render
    from schemactl.target_numbers import apart_values, find_apart
    from schemactl.target_numbers.pairs import pair_up, topic_value

    target = chosen.target
    names = {topic.name: renamed_topic(topic.name, target.namespaces) for topic in topics}
    with closing(chosen.open(context)) as registry:
        held = registry.read(Scope(frozenset(), frozenset(names.values()))).topics
    pairs = {
        names[topic.name]: pair_up(
            git=topic.versions, registry=held[there].versions if (there := names[topic.name]) in held else ()
        )
        for topic in topics
    }
    declared = applicable(renamed(Catalog(topics={topic.name: topic for topic in topics}), target.namespaces))
    recorded = recorded_numbers(chosen, history, context)
    apart = find_apart(declared, Catalog(topics=held), recorded)
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
    misread = [topic for topic in apart if not topic.recorded]
    if args.format == "json":
        head = {"format_version": FORMAT_VERSION, "ref": history.ref, "tip": _commit(history.tip)}
        where = {"target": target.name, "registry": target.registry}
        told = [topic_value(name, each) for name, each in pairs.items()]
        print(json_text({**head, **where, "topics": told, "numbers_apart": apart_values(apart)}))
    else:
        print("\n\n".join(render(name, each, color=context.color) for name, each in pairs.items()))
        if misread:
            print("\n" + numbers_text.render(misread, target=target.name, color=context.color))
    return REFUSED if misread else 0


def _text(history: History, topic: Topic, *, color: bool) -> str:
    """The topic, what is to be said of it, and its versions, newest first."""
    lines = [paint(str(topic.name), "bold", color=color), *_remarks(history, topic)]
    current = history.current(topic.name)
    rows: list[tuple[str, ...]] = [("VERSION", "TYPE", "COMMIT", "DAY", "SUBJECT")]
    for version in reversed(topic.versions):
        mark = " (in force)" if version.number == current else ""
        kind = version.info.type.name if version.info else "deleted"
        commit = version.commit
        facts = (commit.short, day(commit), commit.subject) if commit else ("", "", "")
        rows.append((f"{version.number}{mark}", kind, *facts))
    if topic.versions:
        lines += [f"  {line}" for line in table(rows)]
    return "\n".join(lines)


def _remarks(history: History, topic: Topic) -> Iterable[str]:
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


def _json(history: History, topics: Iterable[Topic]) -> str:
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "ref": history.ref,
            "tip": _commit(history.tip),
            "topics": [
                {
                    "topic": str(topic.name),
                    "deleted": topic.deleted,
                    "current": history.current(topic.name),
                    "since": _commit(history.since(topic.name)),
                    "latest": topic.versions[-1].number if topic.versions else None,
                    "versions": [_version(version) for version in topic.versions],
                }
                for topic in topics
            ],
            "notes": [str(note) for note in history.notes],
            "repaired": [str(note) for note in history.repaired],
        },
        indent=2,
        ensure_ascii=False,
    )


def _version(version: SchemaVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "version_bytes": version.number.to_bytes(8, "big").hex(),
        "type": version.info.type.name if version.info else None,
        "commit": _commit(version.commit),
    }


def _commit(commit: Commit | None) -> dict[str, Any] | None:
    return {"id": commit.id, "time_s": commit.time_s, "subject": commit.subject} if commit else None
