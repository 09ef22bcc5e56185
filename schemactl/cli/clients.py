"""`clients`: show the clients that topics declare, and the clients that are connected."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, add_timeout, make_number_type
from schemactl.cli.target_selection import choose_target
from schemactl.cli.topic_selection import TOPIC_HELP, add_selection, find
from schemactl.core.catalog import Client, Topic, select_target_topics
from schemactl.core.errors import ExitCode, UsageError, did_you_mean
from schemactl.core.json_values import ClientView
from schemactl.core.names import TopicName, select_known_topics
from schemactl.core.terminal import format_table, on_one_line
from schemactl.core.wording import format_count, format_ranges

if TYPE_CHECKING:
    from schemactl.core.project import Target
    from schemactl.registry.interface import ConnectedClient, TopicClients


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
    add_timeout(parser)


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
        connected = registry.list_clients(target_names.values())
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
    return ExitCode.NEGATIVE if complaints else 0


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
    state = "connected" if match.connections else "not connected"
    if match.client is None:
        state = "not declared"
    return {
        "declared": ClientView.from_client(match.client) if match.client else None,
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
    versions = {connection.version for connection in connections}
    known_versions = format_ranges(version for version in versions if version is not None)
    if None in versions:
        return f"{known_versions} and unknown" if known_versions else "unknown"
    return known_versions
