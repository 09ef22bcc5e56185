"""Read and write the settings of namespaces, topics and brokers, and find out which messages a topic retains."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from schemactl.core.errors import RegistryError
from schemactl.core.policies import SETTINGS, BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.wording import counted
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.responses import strategy_named

_VISIBLE_WITHIN_S: Final = 15.0


def among(shown: Mapping[str, Any], asked: Iterable[str], whose: str) -> dict[str, Any]:
    """Return the settings `asked` for that are set among the values `shown`; raise RegistryError for a value of another kind."""
    found = {}
    for name in asked:
        if (value := shown.get(name)) is not None:
            try:
                found[name] = SETTINGS[name].normal(value)
            except ValueError as error:
                raise RegistryError(
                    f"{whose}: the registry does not answer as Pulsar does: {error}",
                    fix="check that `registry` of the target is the address of Pulsar's admin API",
                ) from None
    return found


def of_topic(connection: AdminConnection, path: str, asked: Iterable[str]) -> dict[str, Any]:
    """Return the settings `asked` for that the topic at `path` has of its own; none is set on a topic that does not exist."""
    shown = {
        name: connection.get(f"{path}/{SETTINGS[name].topic_path}", object, absent=None)
        for name in asked
        if SETTINGS[name].topic_path
    }
    return among(shown, shown, path)


def put(connection: AdminConnection, path: str, policies: Policies, *, of: str, is_topic: bool = False) -> None:
    """Set each setting among `policies` on the namespace or topic at `path`; one that is UNDEFINED is removed."""
    for name, value in policies.settings.items():
        row = SETTINGS[name]
        where = f"{path}/{row.topic_path if is_topic else row.path}"
        if value == CompatibilityStrategy.UNDEFINED:
            connection.change("DELETE", where, of=of)
        elif is_topic and row.topic_query:
            connection.change("POST", f"{where}?{row.topic_query}={value}", of=of)
        else:
            connection.change("POST" if is_topic else row.method, where, value, of=of)


def of_brokers(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brokers' values for settings that no level sets, as far as their configuration is `known`."""
    found = {}
    for name, row in SETTINGS.items():
        if isinstance(row.broker, str):
            value = _typed(known.get(row.broker), row.default)
        else:
            value = {
                part: _typed(next((known[key] for key in keys if known.get(key)), None), row.default[part])
                for part, keys in row.broker.items()
            }
        if row.shape.fits(value):
            found[name] = value
    return found


def broker_keys() -> list[str]:
    """Return the names of the brokers' own settings that `of_brokers` reads."""
    found: list[str] = []
    for row in SETTINGS.values():
        found += [row.broker] if isinstance(row.broker, str) else [key for keys in row.broker.values() for key in keys]
    return [key for key in found if key]


def _typed(text: str | None, like: object) -> object:
    """Return a value of the brokers' configuration, which is given as text, in the setting's type; None if it has none."""
    if text is None or isinstance(like, str):
        return text
    if isinstance(like, bool):
        return text == "true"
    return int(text) if text.removeprefix("-").isdecimal() else None


def wait_until_in_force(what: str, policies: Policies, read_back: Callable[[], Policies]) -> None:
    """Wait until the policies that are not None can be read back; raise RegistryError after a time limit.

    A broker answers 204 to a strategy that it does not know, and unsets it; and other brokers learn of a change by a
    message. So an answer 204 is not enough.
    """
    wanted = policies.managed()
    end_s, delay_s = time.monotonic() + _VISIBLE_WITHIN_S, 0.02
    while True:
        now = read_back()
        # A setting that was removed is not there.
        shown = {name: CompatibilityStrategy.UNDEFINED if (held := now.get(name)) is None else held for name in wanted}
        differing = ", ".join(f"{name}: {shown[name]}" for name in wanted if shown[name] != wanted[name])
        if not differing:
            return
        if time.monotonic() + delay_s > end_s:
            raise RegistryError(
                f"{what}: set, but {_VISIBLE_WITHIN_S:.0f} s later the registry still shows {differing}"
            )
        time.sleep(delay_s)
        delay_s = min(delay_s * 2, 1.0)


# Retained messages


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


# The brokers' own settings, which only a superuser may read


_SWITCHES: Final = {
    "is_allow_auto_update_schema": "isAllowAutoUpdateSchemaEnabled",
    "schema_validation_enforced": "isSchemaValidationEnforced",
}
"""The settings behind the policies that are true or false."""

_STRATEGY: Final = "schemaCompatibilityStrategy"
_POLICIES_OF_TOPICS: Final = "topicPoliciesServiceClassName"
_AS_MESSAGES: Final = "SystemTopicBasedTopicPoliciesService"
"""The class that brokers keep policies of topics with, unless another one is configured."""

_SHAPE: Final = dict.fromkeys((_STRATEGY, _POLICIES_OF_TOPICS, *_SWITCHES.values(), *broker_keys()), str | None)


class BrokerSettings:
    """The configuration of `connection`'s brokers, read once; empty where the role may not read it."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection
        self._found: dict[str, Any] | None = None

    def _known(self) -> dict[str, Any]:
        if self._found is None:
            what = "brokers/configuration/runtime"
            reply = self._connection.send("GET", what)
            self._found = self._connection.json(reply, f"GET {what}", _SHAPE) if reply.fine else {}
        return self._found

    def over(self, defaults: BrokerDefaults) -> BrokerDefaults:
        """Return `defaults` with the brokers' own booleans and settings in their place, as far as they are known."""
        known = self._known()
        values: dict[str, Any] = {policy: known[key] == "true" for policy, key in _SWITCHES.items() if known.get(key)}
        return replace(defaults, **values, settings=of_brokers(known))

    def strategy(self) -> CompatibilityStrategy | None:
        """Return the strategy; None if it is not known."""
        if not self._known():
            return None
        strategy = strategy_named(self._known().get(_STRATEGY))
        # PulsarService takes UNDEFINED in its settings for FULL.
        return CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy

    def keep_policies_as_messages(self) -> bool:
        """Whether brokers keep topic policies as messages in a system topic of the namespace; True if not known."""
        return str(self._known().get(_POLICIES_OF_TOPICS) or _AS_MESSAGES).endswith(_AS_MESSAGES)
