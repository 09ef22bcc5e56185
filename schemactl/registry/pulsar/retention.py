"""Which messages a topic, or a partition, retains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from schemactl.core.wording import counted
from schemactl.registry.pulsar.connection import AdminConnection

_INTERNAL_STATS: Final = {
    "numberOfEntries": int,
    "currentLedgerEntries": int,
    "ledgers": [{"entries": int, "offloaded": bool | None}],
    "compactedLedger": {"entries": int},
}
"""What tells whether a topic has messages (PersistentTopicInternalStats)."""


def retained(connection: AdminConnection, path: str, *, written_with_schema: bool) -> str:
    """Return how many entries the topic or partition at `path` retains, and where, as a clause; "" if none.

    Entries in ledgers, offloaded entries and compacted ones count. With `written_with_schema`,
    only those that may carry a version count.
    """
    # A partition that no client has asked for yet does not exist.
    stats = connection.get(f"{path}/internalStats", _INTERNAL_STATS, absent=None)
    for where, entries in _entries(stats) if stats else ():
        if entries > 0 and not (written_with_schema and _are_without_version(connection, path)):
            return f"{counted(entries, 'entry', 'entries')} {where}"
    return ""


def has_none(connection: AdminConnection, path: str) -> bool:
    """Whether the topic at `path` exists, certainly retains nothing, and got no message since a broker loaded it.

    A role that may not ask knows nothing for certain.
    """
    what = f"{path}/internalStats"
    reply = connection.send("GET", what)
    if not reply.fine:
        return False
    stats = connection.json(reply, f"GET {what}", {**_INTERNAL_STATS, "entriesAddedCounter": int})
    return stats["entriesAddedCounter"] == 0 and not any(entries > 0 for _, entries in _entries(stats))


def _are_without_version(connection: AdminConnection, path: str) -> bool:
    """Whether neither the first nor the last message carries a schema version."""
    path = f"{path}/examinemessage?messagePosition=1&initialPosition="
    # A broker that shows none, or not to this role, leaves open what they carry. It says so with a 412, which is no reason to wait.
    replies = (connection.send_once("GET", path + position) for position in ("latest", "earliest"))
    return all(reply.fine and not reply.has_schema_version for reply in replies)


def _entries(stats: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield how many entries a topic, or partition, has, and where; -1 where there is no ledger."""
    ledgers = stats["ledgers"]
    yield "offloaded to long-term storage", sum(each["entries"] for each in ledgers if each.get("offloaded"))
    yield "after compaction", stats["compactedLedger"]["entries"]
    own = (stats["numberOfEntries"], stats["currentLedgerEntries"], *(each["entries"] for each in ledgers))
    yield "of messages", max(own)
