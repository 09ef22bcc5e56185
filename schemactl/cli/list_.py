"""`list`, `targets` and `clients`: show the topics, environments and clients that a project declares."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.target_selection import reviewed_project, target_of
from schemactl.cli.topic_selection import TOPIC_HELP, add_filters, add_selection, find
from schemactl.core.errors import NEGATIVE, DeclarationError, UsageError, did_you_mean
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.names import NamespaceName, TopicName, select_known
from schemactl.core.terminal import on_one_line, table, terminal_width
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.checks.check_report import TopicCheck
    from schemactl.core.catalog import Catalog, Client, Topic
    from schemactl.core.json_values import Json
    from schemactl.core.project import Project, Target
    from schemactl.declare.reader import Declared
    from schemactl.history import History, Repository
    from schemactl.registry.interface import ConnectedClient, TopicClients


# `schemactl list`.


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.description = (
        "List the topics that the files declare, each with its schema type, the version in force, the compatibility strategy in "
        "force and the level that sets it, owner and labels, and what the files change of what was approved. A narrow terminal has no "
        "place for all of it: `| cat` shows every column."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl list 'shop/sales/*' '!*-dead-letter'\n"
        "  schemactl list --owner team-orders --label tier=gold --type AVRO\n"
        "  schemactl list --changed                    what a commit of these files would change\n"
        "  schemactl list --format json                with descriptions, links, and where each is declared\n"
        "  schemactl list --format codeowners > .github/CODEOWNERS\n"
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="the same as --topic")
    add_filters(parser)
    add_options(
        parser,
        "--owner NAME...: only what this one answers for; may be repeated",
        "--label NAME[=TEXT]...: only what has this label; may be repeated, and then all are needed",
        "--type TYPE...: only this schema type; may be repeated",
    )
    add_options(parser, "--deprecated: only what is deprecated", "--changed: only what the files change")
    choices = ("text", "json", "codeowners")
    text = "(default: text); codeowners: who reviews which file, for GitHub and GitLab"
    parser.add_argument("--format", choices=choices, default="text", help=text)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A topic of the list.

    Attributes:
        topic: the topic as declared by the files, or as approved if they no longer declare it.
        catalog: the catalog that has the topic.
        version: the number of the version in force; None: there is none.
        change: what the files change of the topic; None: nothing.
    """

    topic: Topic
    catalog: Catalog
    version: int | None
    change: TopicCheck | None

    def value(self, project: Project) -> dict[str, Any]:
        """Return the JSON value."""
        topic = self.topic
        strategy, level = self.catalog.strategy(topic.name, project.defaults)
        return {
            "topic": str(topic.name),
            "type": topic.schema.type.name if topic.schema else None,
            "version": self.version,
            "strategy": strategy.value,
            "level": level,
            "lifecycle": topic.lifecycle,
            **metadata_value(self.catalog.metadata(topic.name)),
            "change": self.change.change if self.change else None,
            "next_version": self.change.version if self.change else None,
            "file": topic.source.path if topic.source else None,
            "line": topic.source.line if topic.source else None,
        }


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed."""
    project, _ = context.project()
    declared, approved, entries = _read(context.repository, project, context)
    patterns = [*args.topics, *args.topic]
    names = [each.topic.name for each in entries]
    chosen = select_known(names, patterns, args.namespace, where="the files or the approved history")
    values = [(each, each.value(project)) for each in entries if each.topic.name in chosen]
    _require_known(args, [value for _, value in values])
    values = [(each, value) for each, value in values if _is_asked(value, args)]
    if args.format == "codeowners":
        _print_codeowners(declared, frozenset(each.topic.name for each, _ in values), context)
    elif args.format == "json":
        topics = [value for _, value in values]
        context.report_json(ref=approved.ref, tip=commit_value(approved.tip), topics=topics)
    elif values:
        columns = terminal_width()
        rows = _topic_rows([value for _, value in values], columns)
        context.report("\n".join(table(rows, width=columns, numeric={2}, whole={0})))
    elif entries:
        context.report("No topic matches.")
    else:
        context.report(f"Neither the files nor {approved.ref} declare a topic.")
    return 0


def _read(repository: Repository, project: Project, context: Context) -> tuple[Declared | None, History, list[_Entry]]:
    """Return the declared files, the approved history, and the topics of both by name.

    In a bare repository, and if the files have problems (which prints a note), the topics are those that were approved.
    """
    from schemactl import history
    from schemactl.checks.check import Fork, check
    from schemactl.checks.environments import read_files
    from schemactl.declare import files as declare_files

    progress = context.reading_history()
    forked = history.read_forked(repository, project, repository.commit("HEAD"), progress=progress)
    approved, base = forked.approved, forked.base
    context.note(*approved.notes)
    if repository.top is None:
        return None, approved, [*_entries(approved, approved.catalog, {})]
    worktree = declare_files.WorktreeFiles(str(repository.top), folders=project.roots)
    files = history.HashedFiles(worktree, repository.object_format)
    try:
        # What targets differ in is no part of the list.
        declared = read_files(repository, replace(project, targets={}), files).declared
    except DeclarationError as error:
        more = f" and {counted(len(error.problems) - 1, 'problem')} more" if len(error.problems) > 1 else ""
        context.note(f"this is what was approved, for the files cannot be read: {error.problems[0]}{more}")
        return None, approved, [*_entries(approved, approved.catalog, {})]
    changes = forked.changes(files, declared)
    report = check(
        declared.catalog,
        approved=approved.catalog,
        project=project,
        label="",
        fork=Fork(base.catalog, base.tip, changes.unchanged, changes.combined, changes.settled),
    )
    found = {each.topic: each for each in report.topics}
    return declared, approved, [*_entries(approved, declared.catalog, found)]


def _entries(approved: History, catalog: Catalog, changes: Mapping[TopicName, TopicCheck]) -> Iterator[_Entry]:
    gone = {name for name, each in changes.items() if each.change == "removed"}
    for name in sorted({*catalog.topics, *gone}):
        held = approved.catalog if name in gone else catalog
        if not held.topics[name].deleted:
            yield _Entry(held.topics[name], held, approved.current(name), changes.get(name))


def _is_asked(value: Mapping[str, Any], args: argparse.Namespace) -> bool:
    labels = (label.partition("=") for label in args.label)
    return (
        (not args.owner or value["owner"] in args.owner)
        and (not args.type or value["type"] in args.type)
        and all(
            name in value["labels"] and (not equals or value["labels"][name] == text) for name, equals, text in labels
        )
        and (not args.deprecated or value["deprecated"] is not None)
        and (not args.changed or value["change"] is not None)
    )


def _require_known(args: argparse.Namespace, values: list[dict[str, Any]]) -> None:
    """Raise UsageError for an owner, label or type that none of the topics has."""
    known = {
        "--owner": (args.owner, {value["owner"] for value in values} - {""}),
        "--label": (
            [each.partition("=")[0] for each in args.label],
            {name for each in values for name in each["labels"]},
        ),
        "--type": (args.type, {value["type"] for value in values} - {None}),
    }
    for option, (asked, held) in known.items():
        for text in asked:
            if text not in held:
                raise UsageError(f"{option} {text}: no topic has that{did_you_mean(text, held)}")


_LEFT_OUT_FIRST: Final = ("labels", "deprecated", "set by", "owner")
"""The columns that a narrow terminal has no place for."""


def _topic_rows(values: list[Json], width: int | None) -> list[list[str]]:
    """Return the head and a row for each topic, for a terminal of that width, without empty columns."""
    columns: dict[str, Callable[[Json], object]] = {
        "topic": lambda value: value["topic"].removeprefix("persistent://"),
        "type": lambda value: value["type"],
        "version": lambda value: value["version"],
        "strategy": lambda value: value["strategy"],
        "set by": lambda value: value["level"],
        "owner": lambda value: value["owner"],
        "labels": lambda value: ",".join(f"{name}={text}" for name, text in value["labels"].items()),
        "deprecated": lambda value: value["deprecated"] and value["deprecated"].get("remove_after", "yes"),
        "change": _change,
    }
    cells = {name: [of(value) for value in values] for name, of in columns.items()}
    shown = {
        name: [name.upper(), *("-" if each in (None, "") else on_one_line(str(each)) for each in column)]
        for name, column in cells.items()
        if name in ("type", "version") or any(each not in (None, "") for each in column)
    }
    for name in _LEFT_OUT_FIRST:
        if width is not None and sum(2 + max(map(len, column)) for column in shown.values()) - 2 > width:
            shown.pop(name, None)
    return [list(row) for row in zip(*shown.values(), strict=True)]


def _change(value: Mapping[str, Any]) -> str | None:
    """Return in a few words what the files change of a topic."""
    number = value["next_version"]
    match value["change"]:
        case "added":
            return "new"
        case "new version" | "older version":
            return f"version {number}"
        case other:
            return cast("str | None", other)


def _print_codeowners(declared: Declared | None, chosen: frozenset[TopicName], context: Context) -> None:
    """Print the owners of all files of the `chosen` topics and of their namespaces."""
    from schemactl.report import github

    if declared is None:
        raise UsageError("--format codeowners names files: it needs a working tree without problems")
    owners: defaultdict[str, set[str]] = defaultdict(set)
    catalog = declared.catalog
    names: list[NamespaceName | TopicName] = [*chosen, *{name.namespace_name for name in chosen}]
    for name in names:
        held = catalog.get(name)
        owner = catalog.metadata(name).owner
        if owner and held and held.source:
            definition = declared.dependencies.get(name, ()) if isinstance(name, TopicName) else ()
            for path in (held.source.path, *definition):
                # Of a folder that offers types, only what is taken has an owner.
                if not path.endswith("/"):
                    owners[path].add(owner)
    text, unknown = github.render_codeowners(owners)
    for each in unknown:
        context.note(f"left out: `{each}` is none to GitHub: write @user, @organization/team or an e-mail address")
    print(text, end="")


# `schemactl targets`.


def configure_targets(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.description = (
        "List the targets of the approved project file: registry, release, names, what differs there, how far each is, and how many of the "
        "declared topics it has. No registry is asked; `schemactl status` does that."
    )
    parser.epilog = "examples:\n  schemactl targets\n  schemactl targets --format json\n"
    add_format(parser)


def run_targets(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed."""
    from schemactl.core.catalog import chosen_topics

    found, _ = context.project()
    approved = reviewed_project(found, context)
    project = approved.project if approved else found
    topics = context.approved(project).catalog.topics
    declared = [name for name in topics if not topics[name].deleted]
    targets = [_target(target, project, len(chosen_topics(declared, target))) for target in project.targets.values()]
    if args.format == "json":
        context.report_json(topics=len(declared), targets=targets)
    elif targets:
        context.report("\n\n".join(_target_text(each, len(declared)) for each in targets))
    else:
        context.report(f"{project.path} has no targets.")
    return 0


def _target(target: Target, project: Project, topics: int) -> dict[str, Any]:
    return {
        "target": target.name,
        "registry": target.registry,
        "pulsar": target.pulsar or project.pulsar,
        "topics": topics,
        "tenants": dict(target.tenants),
        "namespaces": {str(own): str(there) for own, there in target.namespaces.items()},
        "overlays": list(target.overlays),
        "include": list(target.include),
        "exclude": list(target.exclude),
        "promoted": target.promoted,
        "after": list(target.after),
        "cluster": target.cluster or None,
        "labels": dict(target.labels),
    }


def _target_text(facts: dict[str, Any], declared: int) -> str:
    return "\n".join(
        [f"{facts['target']}  {facts['registry']}", *(f"  {row}" for row in table([*_target_rows(facts, declared)]))]
    )


def _target_rows(facts: dict[str, Any], declared: int) -> Iterator[tuple[str, str]]:
    yield "pulsar", facts["pulsar"]
    yield "topics", str(declared) if facts["topics"] == declared else f"{facts['topics']} of {declared}"
    for key, value in facts.items():
        entries = [f"{one}: {other}" for one, other in value.items()] if isinstance(value, dict) else value
        if value and key not in ("target", "registry", "pulsar", "topics"):
            yield key, value if isinstance(value, str) else ", ".join(entries)


# `schemactl clients`.


_EPILOG = """\
A connection belongs to the declared client whose name it, or its subscription, has: billing, or billing-1, billing-2, ... Its version is the one
that it reports in the property `schemactl.version`, as generated packages do and any client can; otherwise it is unknown.

Exit code 100, with --expect: a client is not connected, or one of its connections does not report that version or a later one (where no client is
declared, this is asked of all that are connected);
with --drained: a subscription has messages left to read, with or without a connection.

examples:
  schemactl clients                                     who is declared, of all topics
  schemactl clients orders --target prod                and who is connected
  schemactl clients orders --target prod --expect 5     do all clients run version 5?
  schemactl clients orders --target prod --expect 5 --client billing --client audit
"""


def configure_clients(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `clients`."""
    parser.description = (
        "List the producers and consumers that topics declare. With a target, compare them with the connections to its brokers: the version "
        "that each reports, clients that are declared and not connected, and clients that are connected and not declared."
    )
    parser.epilog = _EPILOG
    parser.add_argument("one", nargs="?", metavar="TOPIC", help=TOPIC_HELP)
    add_selection(parser)
    add_options(
        parser, "--expect N: exit with 100 unless every client is built with version N or a later one", type=number(0)
    )
    add_options(parser, "--drained: exit with 100 if a subscription has messages left to read")
    add_options(parser, "--client NAME...: with --expect, only this declared client; may be repeated")
    parser.add_argument(
        "--role", choices=("producer", "consumer"), help="with --expect, only producers, or only consumers and readers"
    )
    add_format(parser)


class _Seen(NamedTuple):
    """A client and its connections.

    Attributes:
        client: as it is declared; None: the connection is of no declared client.
        backlog: how many messages its subscriptions have left to read; None: it has none.
    """

    client: Client | None
    connections: tuple[ConnectedClient, ...] = ()
    backlog: int | None = None

    @property
    def produces(self) -> bool:
        """Whether it writes messages."""
        return (self.client or self.connections[0]).role == "producer"


def run_clients(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed; 100: a client is behind the version of --expect, or --drained finds messages left to read."""
    from schemactl.core.catalog import chosen_topics

    _require_usage(args)
    target = target_of(args.target, context) if args.target else None
    catalog = context.approved(*((target.project, target.target) if target else ())).catalog
    if args.one:
        topics = [find(args.one, catalog)]
    else:
        names = select_known(catalog.topics, args.topic, args.namespace)
        names = chosen_topics(names, target.target) if target else names
        topics = [topic for name in sorted(names) if not (topic := catalog.topics[name]).deleted]
    if target is None:
        _print(context, args.format, None, [(each, [*map(_Seen, each.clients)]) for each in topics])
        return 0
    there = {each.name: target.target.names.there(each.name) for each in topics}
    with closing(target.open(context)) as registry:
        found = registry.clients(there.values())
    seen = [(each, _compared(each, target.target, found[there[each.name]])) for each in topics]
    behind: list[str] = []
    if args.expect is not None or args.drained:
        [(topic, clients)] = seen
        if args.expect is not None:
            asked = [each for each in clients if not args.role or each.produces == (args.role == "producer")]
            behind += _behind(topic, asked, args.expect, args.client)
        if args.drained:
            backlogs = found[there[topic.name]].backlogs
            behind += [
                f"{on_one_line(name)} has {counted(left, 'message')} left to read"
                for name, left in backlogs.items()
                if left
            ]
    _print(context, args.format, target.target, seen, there, behind)
    return NEGATIVE if behind else 0


def _require_usage(args: argparse.Namespace) -> None:
    """Raise UsageError where options do not go together."""
    if args.expect is not None and not (args.target and args.one):
        raise UsageError("--expect asks a target about one topic: schemactl clients TOPIC --target T --expect N")
    if args.drained and not (args.target and args.one):
        raise UsageError("--drained asks a target about one topic: schemactl clients TOPIC --target T --drained")
    if (args.client or args.role) and args.expect is None:
        raise UsageError("--client and --role narrow --expect down: add --expect N")
    if args.client and args.role:
        raise UsageError("give only one of --client and --role")


def _compared(topic: Topic, target: Target, there: TopicClients) -> list[_Seen]:
    """Return the clients that are declared for the target, each with its connections; then all other connections."""
    clients = [each for each in topic.clients if each.runs_on(target.name)]
    connections: dict[str, list[ConnectedClient]] = {each.name: [] for each in clients}
    others: list[ConnectedClient] = []
    for connected in there.connected:
        # `billing-eu-1` is of `billing-eu`, where `billing` is declared, too.
        names = [each.name for each in clients if _is(connected, each)]
        connections.get(max(names, key=len, default=""), others).append(connected)
    found = []
    for client in clients:
        own = connections[client.name]
        subscriptions = {each.subscription for each in own} | ({client.name} if client.reads else set())
        found.append(_Seen(client, tuple(own), _backlog(there, subscriptions)))
    return [*found, *(_Seen(None, (each,), _backlog(there, {each.subscription})) for each in others)]


def _backlog(there: TopicClients, subscriptions: Iterable[str]) -> int | None:
    """Return how many messages these have left to read; None: none of them is there."""
    counts = [there.backlogs[name] for name in subscriptions if name in there.backlogs]
    return sum(counts) if counts else None


def _is(connected: ConnectedClient, client: Client) -> bool:
    """Return whether the connection is the declared client's, by its name or its subscription's."""
    names = (connected.name, connected.subscription)
    is_called = any(name == client.name or name.startswith(f"{client.name}-") for name in names)
    return is_called and (connected.role == "producer") == (client.role == "producer")


def _behind(topic: Topic, clients: Sequence[_Seen], expected: int, names: Sequence[str]) -> Iterator[str]:
    """Yield, for each client of `names` (none: each one), why it is not known to run that version or a later one."""
    declared = {seen.client.name: seen for seen in clients if seen.client}
    for name in names:
        if name not in declared:
            near = did_you_mean(name, declared) or f": it has {', '.join(declared) or 'none'}"
            raise UsageError(f"{topic.name} declares no client {name} there{near}")
    asked = [(name, declared[name].connections) for name in names or declared]
    if not asked:
        # Where no client is declared, all that are connected.
        asked = [(each.name or each.subscription, (each,)) for seen in clients for each in seen.connections]
    if not asked:
        yield "nobody is declared, and nobody is connected"
    for name, connections in asked:
        if not connections:
            yield f"{on_one_line(name)} is not connected"
        elif any(each.version is None for each in connections):
            yield f"{on_one_line(name)} does not tell its version: give it the property schemactl.version"
        elif any(each.version < expected for each in connections if each.version is not None):
            yield f"{on_one_line(name)} is at {_versions(connections)}, not yet at {expected}"


def _print(
    context: Context,
    form: str,
    target: Target | None,
    topics: Sequence[tuple[Topic, Sequence[_Seen]]],
    there: Mapping[TopicName, TopicName] | None = None,
    behind: Sequence[str] = (),
) -> None:
    """Print the clients of each topic; `behind` says why the answer to --expect or --drained is no."""
    if form == "json":
        context.report_json(
            target=target.name if target else None,
            topics=[
                {
                    "topic": str(topic.name),
                    "name_there": str(there[topic.name]) if there else None,
                    "clients": [_value(each, is_asked=target is not None) for each in clients],
                }
                for topic, clients in topics
            ],
            behind=list(behind),
        )
        return
    none = "No client is declared." if target is None else "No client is declared, and none is connected."
    shown = [_clients_text(topic, clients, target) for topic, clients in topics if clients] or [none]
    context.report("\n\n".join([*shown, "\n".join(behind)] if behind else shown))


def _state(seen: _Seen) -> str:
    if seen.client is None:
        return "not declared"
    return "connected" if seen.connections else "not connected"


def _value(seen: _Seen, *, is_asked: bool) -> dict[str, Any]:
    from schemactl.core.json_values import client_value

    return {
        "declared": client_value(seen.client) if seen.client else None,
        "state": _state(seen) if is_asked else None,
        "backlog": seen.backlog,
        "connections": [each._asdict() for each in seen.connections],
    }


def _clients_text(topic: Topic, clients: Sequence[_Seen], target: Target | None) -> str:

    head = ["client", "role", "built with"]
    head += ["runs", "connections", "backlog"] if target else ["language", "targets", "contact"]
    rows = [head]
    for seen in clients:
        client = seen.client
        if client is None:
            [each] = seen.connections
            name = each.name or each.subscription or "-"
            first = [f"{name} ({', '.join(filter(None, (each.software, each.address)))})", each.role, "not declared"]
        else:
            first = [client.who, client.role, client.built]
        if target:
            runs = _versions(seen.connections) if seen.connections else "not connected"
            last = [runs, str(len(seen.connections)), "-" if seen.backlog is None else str(seen.backlog)]
        elif client:
            last = [client.language or "-", ", ".join(client.targets) or "all", client.contact or "-"]
        rows.append([on_one_line(text) for text in (*first, *last)])
    where = f" on {target.name}" if target else ""
    lines = [f"{topic.name}{where}", *(f"  {line}" for line in table(rows))]
    if target:
        gone = [seen.client.name for seen in clients if seen.client and not seen.connections]
        more = sum(seen.client is None for seen in clients)
        lines += [f"  declared and not connected: {on_one_line(', '.join(gone))}"] if gone else []
        lines += [f"  connected and not declared: {more}"] if more else []
    return "\n".join(lines)


def _versions(connections: Sequence[ConnectedClient]) -> str:
    """Return the versions that the connections report: `4`, `4-5 and unknown`."""
    from schemactl.core.wording import numbers

    told = {each.version for each in connections if each.version is not None}
    known = numbers(told)
    if any(each.version is None for each in connections):
        return f"{known} and unknown" if known else "unknown"
    return known
