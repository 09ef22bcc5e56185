"""Who is connected to a topic, as its statistics say (TopicStats, in PersistentTopics.getStats and getPartitionedStats)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from schemactl.errors import RegistryError
from schemactl.registry.base import ConnectedClient
from schemactl.registry.pulsar.connection import AdminConnection

VERSION_PROPERTY: Final = "schemactl.version"
"""The property of a producer or consumer by which it tells the version it is built with; generated packages set it."""

_LONGEST_NUMBER: Final = 9

_CONNECTION: Final = {
    "address": str | None,
    "connectedSince": str | None,
    "clientVersion": str | None,
    "metadata": ({"*": str}, type(None)),
}
_STATS: Final = {
    "publishers": [{"producerName": str | None, **_CONNECTION}],
    "subscriptions": {
        "*": {
            "msgBacklog": int | None,
            "isDurable": bool | None,
            "consumers": [{"consumerName": str | None, **_CONNECTION}],
        }
    },
}


def connected(connection: AdminConnection, path: str) -> tuple[ConnectedClient, ...]:
    """Return the clients of the topic at `path`; none of one that does not exist.

    A client of a partitioned topic is connected to several partitions, maybe by a name of its own in each: what comes from one address,
    in one role and subscription, and tells one version, is one.

    Raises:
        RegistryError: the registry has no clients.
    """
    found = connection.get(f"{path}/partitions", {"partitions": int}, absent=None)
    if found is None:
        return ()
    is_partitioned = found["partitions"] > 0
    what = f"{path}/partitioned-stats?perPartition=true" if is_partitioned else f"{path}/stats"
    reply = connection.send("GET", what)
    if reply.status == 501:
        raise RegistryError(
            f"{connection.url} is `schemactl serve`, which has no clients: they connect to brokers",
            fix="ask a target whose registry is a Pulsar cluster",
        )
    if reply.status == 404:
        # Nobody has asked for it since its broker started, or it is gone meanwhile.
        return ()
    connection.expect(reply, f"GET {what}")
    if not is_partitioned:
        return tuple(_of(connection.json(reply, f"GET {what}", _STATS)))
    partitions = connection.json(reply, f"GET {what}", {"partitions": {"*": _STATS}})["partitions"]
    clients: dict[tuple[Any, ...], ConnectedClient] = {}
    for stats in partitions.values():
        for each in _of(stats):
            key = each.role, each.subscription, each.address, each.version
            known = clients.get(key, each)
            backlog = each.backlog if known is each else _sum(known.backlog, each.backlog)
            name = min(known.name, each.name)
            clients[key] = known._replace(name=name, backlog=backlog)
    return tuple(clients.values())


def _of(stats: dict[str, Any]) -> Iterator[ConnectedClient]:
    for each in stats["publishers"]:
        yield _client("producer", each.get("producerName"), "", each, None)
    for subscription, held in stats["subscriptions"].items():
        # A reader's subscription ends with it.
        role = "reader" if held.get("isDurable") is False else "consumer"
        for each in held["consumers"]:
            yield _client(role, each.get("consumerName"), subscription, each, held.get("msgBacklog"))


def _client(
    role: Any, name: str | None, subscription: str, told: dict[str, Any], backlog: int | None
) -> ConnectedClient:
    version = (told.get("metadata") or {}).get(VERSION_PROPERTY, "")
    is_number = version.isascii() and version.isdecimal() and len(version) <= _LONGEST_NUMBER
    return ConnectedClient(
        role,
        name or "",
        subscription,
        told.get("address") or "",
        told.get("connectedSince") or "",
        told.get("clientVersion") or "",
        int(version) if is_number else None,
        backlog,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other
