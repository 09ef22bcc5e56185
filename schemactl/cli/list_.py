"""`list`, `targets` and `clients`: show the topics, environments and clients that a project declares."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from schemactl.cli.context import Context
from schemactl.cli.parser import add_command_timeout, add_format, add_options, make_number_type
from schemactl.cli.target_selection import choose_target, read_approved_project
from schemactl.cli.topic_selection import TOPIC_HELP, add_filters, add_selection, find
from schemactl.core.errors import NEGATIVE, DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.names import NamespaceName, TopicName, select_known_topics
from schemactl.core.terminal import format_table, get_terminal_width, on_one_line
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.check_report import TopicCheck
    from schemactl.core.catalog import Catalog, Client, Topic
    from schemactl.core.json_values import Json
    from schemactl.core.project import Project, Target
    from schemactl.declare.reader import Declared
    from schemactl.history import History, Repository
    from schemactl.registry.interface import ConnectedClient, TopicClients


_FIRST_HIDDEN_COLUMNS: Final = ("labels", "deprecated", "set by", "owner")
"""The columns of `list` that a narrow terminal hides, in this order."""

_CLIENTS_EPILOG: Final = """\
A connection belongs to a declared client if the connection or its subscription has the client's name: billing, or billing-1,
billing-2, ... The property `schemactl.version` contains the client's version; generated packages set it, and any other client can.
Without it, the version is unknown.

Exit code 100, with --expect: a client is not connected, or one of its connections does not report that version or a later one (without
declared clients, this applies to all connected clients);
with --drained: a subscription has messages left to read, with or without a connection.

examples:
  schemactl clients                                     the declared clients of all topics
  schemactl clients orders --target prod                and who is connected
  schemactl clients orders --target prod --expect 5     do all clients run version 5?
  schemactl clients orders --target prod --expect 5 --client billing --client audit
"""


# `schemactl list`.


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.description = (
        "List the topics that the files declare, each with its schema type, the version in force, the compatibility strategy in "
        "force and the level that sets it, owner and labels, and the changes of the files against the approved state. "
        "Narrow terminals hide columns; pipe to `cat` to see all of them."
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
        "--owner NAME...: only topics with this owner; may be repeated",
        "--label NAME[=TEXT]...: only topics with this label; if repeated, all labels are required",
        "--type TYPE...: only topics of this schema type; may be repeated",
    )
    add_options(parser, "--deprecated: only deprecated topics", "--changed: only topics that the files change")
    choices = ("text", "json", "codeowners")
    text = "(default: text); codeowners: who reviews which file, for GitHub and GitLab"
    parser.add_argument("--format", choices=choices, default="text", help=text)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A topic of the list.

    Attributes:
        topic: the topic as declared by the files, or as approved if they no longer declare it.
        catalog: the catalog that has the topic.
        version: the number of the version in force, or None if the topic has no schema.
        change: the difference between the files and the approved topic, or None if they are equal.
    """

    topic: Topic
    catalog: Catalog
    version: int | None
    change: TopicCheck | None

    def to_json(self, project: Project) -> dict[str, Any]:
        """Return the JSON value."""
        topic = self.topic
        strategy, level = self.catalog.strategy(topic.name, project.defaults)
        return {
            "topic": str(topic.name),
            "type": topic.schema.type.name if topic.schema else None,
            "kinds": [kind.key for kind in topic.kinds],
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


@dataclass(frozen=True, slots=True)
class _Listing:
    """The topics to list, sorted by name.

    Attributes:
        declared: the declared files, or None if only the approved history could be read.
        approved: the approved history.
        entries: the topics of both.
    """

    declared: Declared | None
    approved: History
    entries: list[_Entry]


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print the topics that match every option.

    Raises:
        HistoryError: after the list, if the version number of a listed topic depends on the installed protoc.
    """
    project, _ = context.project()
    listing = _read_listing(context.repository, project, context)
    approved = listing.approved
    values_by_topic = {entry.topic.name: entry.to_json(project) for entry in listing.entries}
    selected = select_known_topics(
        values_by_topic, [*args.topics, *args.topic], args.namespace, where="the files or the approved history"
    )
    values_by_topic = {name: value for name, value in values_by_topic.items() if name in selected}
    _require_known_words(args, values_by_topic.values())
    values_by_topic = {name: value for name, value in values_by_topic.items() if _matches_filters(value, args)}
    values = [*values_by_topic.values()]
    if args.format == "codeowners":
        _print_codeowners(listing.declared, frozenset(values_by_topic), context)
    elif args.format == "json":
        topics = {entry.topic.name: entry.topic for entry in listing.entries}
        for name, value in values_by_topic.items():
            schema = topics[name].schema
            try:
                value["properties"] = dict(schema.load().properties) if schema else {}
            except SchemactlError:
                # The definition cannot be read.
                value["properties"] = None
        context.report_json(ref=approved.ref, tip=commit_value(approved.tip), topics=values)
    elif values:
        columns = get_terminal_width()
        rows = _make_topic_rows(values, columns)
        context.report("\n".join(format_table(rows, width=columns, numeric={2}, whole={0})))
    elif listing.entries:
        context.report("No topic matches.")
    else:
        context.report(f"Neither the files nor {approved.ref} declare a topic.")
    for name in values_by_topic:
        if error := approved.undecided.get(name.schema_id):
            raise error
    return 0


def _read_listing(repository: Repository, project: Project, context: Context) -> _Listing:
    """Read the files and the approved history.

    In a bare repository, and if the files have problems (which prints a note), the topics are the approved ones.
    """
    from schemactl import history
    from schemactl.checks import check as topic_checks
    from schemactl.checks.environments import read_files
    from schemactl.declare import files as declare_files
    from schemactl.history.sparse_checkout import require_complete_checkout

    progress = context.reading_history()
    forked = history.read_forked(repository, project, repository.commit("HEAD"), progress=progress)
    approved, merge_base = forked.approved, forked.merge_base
    context.note(*approved.notes)
    if repository.top is None:
        return _Listing(None, approved, _make_entries(approved, approved.catalog, {}))
    require_complete_checkout(repository, project)
    worktree = declare_files.WorktreeFiles(str(repository.top), folders=project.roots)
    files = history.HashedFiles(worktree, repository.object_format)
    try:
        # The list shows the declarations, without the overlays of targets.
        declared = read_files(repository, replace(project, targets={}), files).declared
    except DeclarationError as error:
        more = f" and {format_count(len(error.problems) - 1, 'problem')} more" if len(error.problems) > 1 else ""
        context.note(f"showing the approved topics, because the working tree has errors: {error.problems[0]}{more}")
        return _Listing(None, approved, _make_entries(approved, approved.catalog, {}))
    decided_topics = frozenset(
        name
        for name in {*declared.catalog.topics, *approved.catalog.topics}
        if name.schema_id not in approved.undecided
    )
    report = topic_checks.check(
        declared.catalog,
        approved=approved.catalog,
        project=project,
        history_label="",
        selected=decided_topics,
        fork=topic_checks.Fork(merge_base.catalog, merge_base.tip, forked.compare_with_base(files, declared)),
    )
    # Of the kinds of a topic, the first one counts that is not removed.
    checks_by_topic = {
        check.topic: check for check in reversed(report.topics) if not (check.kind and check.change == "removed")
    }
    return _Listing(declared, approved, _make_entries(approved, declared.catalog, checks_by_topic))


def _make_entries(approved: History, catalog: Catalog, checks: Mapping[TopicName, TopicCheck]) -> list[_Entry]:
    """Return an entry for each topic of `catalog`, and for each approved topic that the files remove."""
    removed = {name for name, check in checks.items() if check.change == "removed"}
    entries = []
    for name in sorted({*catalog.topics, *removed}):
        source = approved.catalog if name in removed else catalog
        if not source.topics[name].deleted:
            version = None if name.schema_id in approved.undecided else approved.current(name)
            entries.append(_Entry(source.topics[name], source, version, checks.get(name)))
    return entries


def _require_known_words(args: argparse.Namespace, values: Collection[Mapping[str, Any]]) -> None:
    """Raise UsageError for an owner, label or type that none of the topics has."""
    label_names = [label.partition("=")[0] for label in args.label]
    words_by_option = {
        "--owner": (args.owner, {value["owner"] for value in values} - {""}),
        "--label": (label_names, {name for value in values for name in value["labels"]}),
        "--type": (args.type, {value["type"] for value in values} - {None}),
    }
    for option, (words, known_words) in words_by_option.items():
        for word in words:
            if word not in known_words:
                raise UsageError(
                    f"{option} {word}: no topic has this {option.removeprefix('--')}{did_you_mean(word, known_words)}"
                )


def _matches_filters(value: Mapping[str, Any], args: argparse.Namespace) -> bool:
    """Return whether the topic matches --owner, --type, --label, --deprecated and --changed."""
    if args.owner and value["owner"] not in args.owner:
        return False
    if args.type and value["type"] not in args.type:
        return False
    for label in args.label:
        name, equals, text = label.partition("=")
        if name not in value["labels"] or (equals and value["labels"][name] != text):
            return False
    if args.deprecated and value["deprecated"] is None:
        return False
    return not args.changed or value["change"] is not None


def _make_topic_rows(values: list[Json], width: int | None) -> list[list[str]]:
    """Return the head and a row for each topic, without empty columns, and without columns that a terminal of `width` hides.

    Without a width, no column is hidden.
    """
    columns: dict[str, Callable[[Json], object]] = {
        "topic": lambda value: value["topic"].removeprefix("persistent://"),
        "type": lambda value: value["type"],
        "version": lambda value: value["version"],
        "strategy": lambda value: value["strategy"],
        "set by": lambda value: value["level"],
        "owner": lambda value: value["owner"],
        "labels": lambda value: ",".join(f"{name}={text}" for name, text in value["labels"].items()),
        "deprecated": lambda value: value["deprecated"] and value["deprecated"].get("remove_after", "yes"),
        "change": _describe_change,
    }
    texts_by_column = {}
    for name, read_cell in columns.items():
        cells = [read_cell(value) for value in values]
        if name in ("type", "version") or any(cell not in (None, "") for cell in cells):
            texts = ["-" if cell in (None, "") else on_one_line(str(cell)) for cell in cells]
            texts_by_column[name] = [name.upper(), *texts]
    for name in _FIRST_HIDDEN_COLUMNS:
        if width is not None and sum(2 + max(map(len, texts)) for texts in texts_by_column.values()) - 2 > width:
            texts_by_column.pop(name, None)
    return [list(row) for row in zip(*texts_by_column.values(), strict=True)]


def _describe_change(value: Mapping[str, Any]) -> str | None:
    number = value["next_version"]
    match value["change"]:
        case "added":
            return "new"
        case "new version" | "older version":
            return f"version {number}"
        case change:
            return cast("str | None", change)


def _print_codeowners(declared: Declared | None, topics: frozenset[TopicName], context: Context) -> None:
    """Print the owners of all files of the topics and of their namespaces."""
    from schemactl.report import github

    if declared is None:
        raise UsageError("--format codeowners names files: it needs a working tree without problems")
    owners: defaultdict[str, set[str]] = defaultdict(set)
    catalog = declared.catalog
    names: list[NamespaceName | TopicName] = [*topics, *{name.namespace_name for name in topics}]
    for name in names:
        declaration = catalog.get(name)
        owner = catalog.metadata(name).owner
        if owner and declaration and declaration.source:
            definition_paths = declared.dependencies.get(name, ()) if isinstance(name, TopicName) else ()
            for path in (declaration.source.path, *definition_paths):
                # A folder in `references` also has types that the topic does not use.
                if not path.endswith("/"):
                    owners[path].add(owner)
    text, unknown_owners = github.render_codeowners(owners)
    for owner in unknown_owners:
        context.note(f"skipped owner `{owner}`: GitHub accepts only @user, @organization/team or an e-mail address")
    print(text, end="")


# `schemactl targets`.


def configure_targets(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.description = (
        "List the targets of the approved project file: registry, release, names, differences, position, and how many of the "
        "declared topics it has. It contacts no registry; `schemactl status` does that."
    )
    parser.epilog = "examples:\n  schemactl targets\n  schemactl targets --format json\n"
    add_format(parser)


def run_targets(args: argparse.Namespace, context: Context) -> int:
    """Print the targets."""
    from schemactl.core.catalog import select_target_topics

    project, _ = context.project()
    approved = read_approved_project(project, context)
    if approved:
        old_targets, new_targets = approved.project.targets, project.targets
        changes = [
            *(f"{name} is new" for name in new_targets.keys() - old_targets.keys()),
            *(f"{name} is removed" for name in old_targets.keys() - new_targets.keys()),
            *(
                f"{name} has other settings"
                for name in new_targets.keys() & old_targets
                if new_targets[name] != old_targets[name]
            ),
        ]
        if changes:
            context.note(
                f"{project.path} in the working tree changes targets ({', '.join(sorted(changes))}), from the merge into {approved.ref} on; "
                "the approved targets follow"
            )
        project = approved.project
    topics = context.approved(project).catalog.topics
    declared = [name for name in topics if not topics[name].deleted]
    values = [
        _target_value(target, project, len(select_target_topics(declared, target)))
        for target in project.targets.values()
    ]
    if args.format == "json":
        context.report_json(topics=len(declared), targets=values)
    elif values:
        context.report("\n\n".join(_render_target(value, len(declared)) for value in values))
    else:
        context.report(f"{project.path} has no targets.")
    return 0


def _target_value(target: Target, project: Project, topics: int) -> dict[str, Any]:
    return {
        "target": target.name,
        "registry": target.registry,
        "pulsar": target.pulsar or project.pulsar,
        "topics": topics,
        "tenants": dict(target.tenants),
        "namespaces": {str(declared): str(renamed) for declared, renamed in target.namespaces.items()},
        "overlays": list(target.overlays),
        "include": list(target.include),
        "exclude": list(target.exclude),
        "promoted": target.promoted,
        "after": list(target.after),
        "cluster": target.cluster or None,
        "labels": dict(target.labels),
        "properties": dict(target.properties),
    }


def _render_target(target: dict[str, Any], declared: int) -> str:
    """Return the target with a row for each setting; `declared` is the number of declared topics."""
    topics = str(declared) if target["topics"] == declared else f"{target['topics']} of {declared}"
    rows = [("pulsar", target["pulsar"]), ("topics", topics)]
    for key, value in target.items():
        if not value or key in ("target", "registry", "pulsar", "topics"):
            continue
        items = [f"{name}: {text}" for name, text in value.items()] if isinstance(value, dict) else value
        rows.append((key, value if isinstance(value, str) else ", ".join(items)))
    return "\n".join([f"{target['target']}  {target['registry']}", *format_table(rows, indent=2)])


# `schemactl clients`.


def configure_clients(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `clients`."""
    parser.description = (
        "List the producers and consumers that topics declare. With a target, compare them with the connections to its brokers: the version "
        "that each reports, clients that are declared and not connected, and clients that are connected and not declared."
    )
    parser.epilog = _CLIENTS_EPILOG
    parser.add_argument("one", nargs="?", metavar="TOPIC", help=TOPIC_HELP)
    add_selection(parser)
    add_options(
        parser,
        "--expect N: exit with 100 unless every client is built with version N or a later one",
        type=make_number_type(0),
    )
    add_options(parser, "--drained: exit with 100 if a subscription has messages left to read")
    add_options(parser, "--client NAME...: with --expect, only this declared client; may be repeated")
    parser.add_argument(
        "--role", choices=("producer", "consumer"), help="with --expect, only producers, or only consumers and readers"
    )
    add_format(parser)
    add_command_timeout(parser)


class _ConnectedClient(NamedTuple):
    """A declared client with its connections, or a connection that belongs to no declared client.

    Attributes:
        client: the declared client, or None.
        connections: the connections of the client, or the one connection.
        backlog: the number of messages that its subscriptions have left to read, or None if it has no subscription.
    """

    client: Client | None
    connections: tuple[ConnectedClient, ...] = ()
    backlog: int | None = None

    @property
    def is_producer(self) -> bool:
        """Whether it writes messages."""
        return (self.client or self.connections[0]).role == "producer"


def run_clients(args: argparse.Namespace, context: Context) -> int:
    """Print the clients; return 100 if one is behind the version of --expect or --drained finds messages left to read, else 0."""
    from schemactl.core.catalog import select_target_topics

    if args.expect is not None and not (args.target and args.one):
        raise UsageError("--expect requires one topic and a target: schemactl clients TOPIC --target T --expect N")
    if args.drained and not (args.target and args.one):
        raise UsageError("--drained requires one topic and a target: schemactl clients TOPIC --target T --drained")
    if (args.client or args.role) and args.expect is None:
        raise UsageError("--client and --role narrow --expect down: add --expect N")
    if args.client and args.role:
        raise UsageError("give only one of --client and --role")
    target = choose_target(args.target, context) if args.target else None
    selection = {"topics": [args.one] if args.one else args.topic, "namespaces": args.namespace}
    catalog = context.approved(*((target.project, target.target) if target else ()), **selection).catalog
    if args.one:
        topics = [find(args.one, catalog)]
    else:
        names = select_known_topics(catalog.topics, args.topic, args.namespace)
        names = select_target_topics(names, target.target) if target else names
        topics = [topic for name in sorted(names) if not (topic := catalog.topics[name]).deleted]
    if target is None:
        _print_clients(
            context, args.format, None, [(topic, [*map(_ConnectedClient, topic.clients)]) for topic in topics]
        )
        return 0
    target_names = {topic.name: target.target.names.to_target(topic.name) for topic in topics}
    with closing(target.open(context)) as registry:
        connected = registry.clients(target_names.values())
    clients_by_topic = [
        (topic, _match_connections(topic, target.target, connected[target_names[topic.name]])) for topic in topics
    ]
    complaints: list[str] = []
    if args.expect is not None or args.drained:
        [(topic, clients)] = clients_by_topic
        if args.expect is not None:
            if args.role:
                clients = [client for client in clients if client.is_producer == (args.role == "producer")]
            complaints += _check_versions(topic, clients, args.expect, args.client)
        if args.drained:
            for subscription, backlog in connected[target_names[topic.name]].backlogs.items():
                if backlog:
                    complaints.append(
                        f"{on_one_line(subscription)} has {format_count(backlog, 'message')} left to read"
                    )
    _print_clients(context, args.format, target.target, clients_by_topic, target_names, complaints)
    return NEGATIVE if complaints else 0


def _match_connections(topic: Topic, target: Target, connected: TopicClients) -> list[_ConnectedClient]:
    """Return the clients that are declared for the target, each with its connections, then all other connections."""

    def sum_backlogs(subscriptions: Iterable[str]) -> int | None:
        backlogs = [connected.backlogs[name] for name in subscriptions if name in connected.backlogs]
        return sum(backlogs) if backlogs else None

    clients = [client for client in topic.clients if client.runs_on(target.name)]
    connections_by_client: dict[str, list[ConnectedClient]] = {client.name: [] for client in clients}
    other_connections: list[ConnectedClient] = []
    for connection in connected.connected:
        # `billing-eu-1` belongs to `billing-eu`, even if `billing` is declared as well.
        names = [client.name for client in clients if _belongs_to(connection, client)]
        connections_by_client.get(max(names, key=len, default=""), other_connections).append(connection)
    matches = []
    for client in clients:
        connections = connections_by_client[client.name]
        subscriptions = {connection.subscription for connection in connections}
        if client.reads:
            subscriptions.add(client.name)
        matches.append(_ConnectedClient(client, tuple(connections), sum_backlogs(subscriptions)))
    return matches + [
        _ConnectedClient(None, (connection,), sum_backlogs([connection.subscription]))
        for connection in other_connections
    ]


def _belongs_to(connection: ConnectedClient, client: Client) -> bool:
    """Return whether the connection, or its subscription, has the name of the client, and the same role."""
    names = (connection.name, connection.subscription)
    has_name = any(name == client.name or name.startswith(f"{client.name}-") for name in names)
    return has_name and (connection.role == "producer") == (client.role == "producer")


def _check_versions(
    topic: Topic, clients: Sequence[_ConnectedClient], expected: int, names: Sequence[str]
) -> Iterator[str]:
    """Yield a complaint about each client that is not known to run version `expected` or a later one.

    `names` are the declared clients to check. Without names, check all of them, or all connections if no client is declared.
    """
    declared = {match.client.name: match for match in clients if match.client}
    for name in names:
        if name not in declared:
            near = did_you_mean(name, declared) or f": it has {', '.join(declared) or 'none'}"
            raise UsageError(f"{topic.name} declares no client {name} for this target{near}")
    candidates = [(name, declared[name].connections) for name in names or declared]
    if not candidates:
        candidates = [
            (connection.name or connection.subscription, (connection,))
            for match in clients
            for connection in match.connections
        ]
    if not candidates:
        yield "no client is declared, and no client is connected"
    for name, connections in candidates:
        versions = [connection.version for connection in connections]
        if not connections:
            yield f"{on_one_line(name)} is not connected"
        elif None in versions:
            yield f"{on_one_line(name)} does not report its version: give it the property schemactl.version"
        elif any(version < expected for version in versions if version is not None):
            yield f"{on_one_line(name)} is at {_list_versions(connections)}, not yet at {expected}"


def _print_clients(
    context: Context,
    form: str,
    target: Target | None,
    topics: Sequence[tuple[Topic, Sequence[_ConnectedClient]]],
    target_names: Mapping[TopicName, TopicName] | None = None,
    complaints: Sequence[str] = (),
) -> None:
    """Print the clients of each topic, and the reasons why --expect or --drained fails."""
    if form == "json":
        context.report_json(
            target=target.name if target else None,
            topics=[
                {
                    "topic": str(topic.name),
                    "name_there": str(target_names[topic.name]) if target_names else None,
                    "clients": [_client_value(client, has_target=target is not None) for client in clients],
                }
                for topic, clients in topics
            ],
            behind=list(complaints),
        )
        return
    blocks = [_render_clients(topic, clients, target) for topic, clients in topics if clients]
    if not blocks:
        blocks = ["No client is declared." if target is None else "No client is declared, and none is connected."]
    if complaints:
        blocks.append("\n".join(complaints))
    context.report("\n\n".join(blocks))


def _client_value(match: _ConnectedClient, *, has_target: bool) -> dict[str, Any]:
    """Return the JSON value; without a target it is not known who is connected."""
    from schemactl.core.json_values import client_value

    state = "connected" if match.connections else "not connected"
    if match.client is None:
        state = "not declared"
    return {
        "declared": client_value(match.client) if match.client else None,
        "state": state if has_target else None,
        "backlog": match.backlog,
        "connections": [connection._asdict() for connection in match.connections],
    }


def _render_clients(topic: Topic, matches: Sequence[_ConnectedClient], target: Target | None) -> str:
    """Return the clients of a topic as a table; with a target, the versions and backlogs of their connections."""
    head = ["client", "role", "built with"]
    head += ["runs", "connections", "backlog"] if target else ["language", "targets", "contact"]
    rows = [head]
    for client, connections, backlog in matches:
        if client is None:
            [connection] = connections
            name = connection.name or connection.subscription or "-"
            origin = ", ".join(filter(None, (connection.software, connection.address)))
            cells = [f"{name} ({origin})", connection.role, "not declared"]
        else:
            cells = [client.display_name, client.role, client.built]
        if target:
            runs = _list_versions(connections) if connections else "not connected"
            cells += [runs, str(len(connections)), "-" if backlog is None else str(backlog)]
        elif client:
            cells += [client.language or "-", ", ".join(client.targets) or "all", client.contact or "-"]
        rows.append([on_one_line(cell) for cell in cells])
    on_target = f" on {target.name}" if target else ""
    lines = [f"{topic.name}{on_target}", *format_table(rows, indent=2)]
    if target:
        absent = [match.client.name for match in matches if match.client and not match.connections]
        undeclared_count = sum(match.client is None for match in matches)
        if absent:
            lines.append(f"  declared and not connected: {on_one_line(', '.join(absent))}")
        if undeclared_count:
            lines.append(f"  connected and not declared: {undeclared_count}")
    return "\n".join(lines)


def _list_versions(connections: Sequence[ConnectedClient]) -> str:
    """Return the versions that the connections report: `4`, `4-5 and unknown`."""
    from schemactl.core.wording import format_ranges

    versions = {connection.version for connection in connections}
    known_versions = format_ranges(version for version in versions if version is not None)
    if None in versions:
        return f"{known_versions} and unknown" if known_versions else "unknown"
    return known_versions
