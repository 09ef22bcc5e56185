"""`schemactl clients`: who reads and writes topics, as declared, and as a target has them connected."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.selection import TOPIC_HELP, add_selection, find, target_of
from schemactl.core.errors import NEGATIVE, UsageError, did_you_mean
from schemactl.core.terminal import on_one_line

if TYPE_CHECKING:
    from schemactl.core.catalog import Client, Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Target
    from schemactl.registry.interface import ConnectedClient, TopicClients

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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `clients`."""
    parser.description = (
        "List the producers and consumers that topics declare. With a target, compare them with the connections to its brokers: the version "
        "that each reports, clients that are declared and not connected, and clients that are connected and not declared."
    )
    parser.epilog = _EPILOG
    parser.add_argument("one", nargs="?", metavar="TOPIC", help=TOPIC_HELP)
    add_selection(parser)
    add_options(
        parser,
        "--expect N: exit with 100 unless every client is built with version N or a later one",
        type=number(0),
    )
    add_options(parser, "--drained: exit with 100 if a subscription has messages left to read")
    add_options(parser, "--client NAME...: with --expect, only this declared client; may be repeated")
    parser.add_argument(
        "--role",
        choices=("producer", "consumer"),
        help="with --expect, only producers, or only consumers and readers",
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


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed; 100: a client is behind the version of --expect, or --drained finds messages left to read."""
    from schemactl.core.catalog import chosen_topics
    from schemactl.core.names import select_known
    from schemactl.core.wording import counted

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
        raise UsageError(
            "--expect asks a target about one topic: schemactl clients TOPIC --target T --expect N"
        )
    if args.drained and not (args.target and args.one):
        raise UsageError(
            "--drained asks a target about one topic: schemactl clients TOPIC --target T --drained"
        )
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
    shown = [_text(topic, clients, target) for topic, clients in topics if clients] or [none]
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


def _text(topic: Topic, clients: Sequence[_Seen], target: Target | None) -> str:
    from schemactl.core.terminal import table

    head = ["client", "role", "built with"]
    head += ["runs", "connections", "backlog"] if target else ["language", "targets", "contact"]
    rows = [head]
    for seen in clients:
        client = seen.client
        if client is None:
            [each] = seen.connections
            name = each.name or each.subscription or "-"
            first = [
                f"{name} ({', '.join(filter(None, (each.software, each.address)))})",
                each.role,
                "not declared",
            ]
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
