"""The clients connected to a topic, from its statistics (TopicStats, in PersistentTopics.getStats and getPartitionedStats)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from schemactl.core.errors import RegistryError
from schemactl.registry.base import ConnectedClient, TopicClients
from schemactl.registry.pulsar.connection import AdminConnection

VERSION_PROPERTY: Final = "schemactl.version"
"""The property of a producer or consumer in which it reports the version it is built with; generated packages set it."""

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


def connected(connection: AdminConnection, path: str) -> TopicClients:
    """Return the clients of the topic at `path`; none of one that does not exist.

    A client of a partitioned topic is connected to several partitions, maybe under another name in each: connections from one address
    with the same role, subscription and version are one client.

    Raises:
        RegistryError: the registry has no clients.
    """
    found = connection.get(f"{path}/partitions", {"partitions": int}, absent=None)
    if found is None:
        return TopicClients()
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
        return TopicClients()
    connection.expect(reply, f"GET {what}")
    if not is_partitioned:
        stats = connection.json(reply, f"GET {what}", _STATS)
        return TopicClients(tuple(_of(stats)), _backlogs([stats]))
    partitions = connection.json(reply, f"GET {what}", {"partitions": {"*": _STATS}})["partitions"].values()
    clients: dict[tuple[Any, ...], ConnectedClient] = {}
    for each in (client for stats in partitions for client in _of(stats)):
        key = each.role, each.subscription, each.address, each.version
        known = clients.setdefault(key, each)
        clients[key] = known._replace(name=min(known.name, each.name))
    return TopicClients(tuple(clients.values()), _backlogs(partitions))


def _backlogs(partitions: Iterable[dict[str, Any]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for stats in partitions:
        found.update({name: held.get("msgBacklog") or 0 for name, held in stats["subscriptions"].items()})
    return dict(found)


def _of(stats: dict[str, Any]) -> Iterator[ConnectedClient]:
    for each in stats["publishers"]:
        yield _client("producer", each.get("producerName"), "", each)
    for subscription, held in stats["subscriptions"].items():
        # A reader's subscription ends with it.
        role = "reader" if held.get("isDurable") is False else "consumer"
        for each in held["consumers"]:
            yield _client(role, each.get("consumerName"), subscription, each)


def _client(role: Any, name: str | None, subscription: str, told: dict[str, Any]) -> ConnectedClient:
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
    )
