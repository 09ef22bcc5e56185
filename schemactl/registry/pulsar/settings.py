"""Read and write the settings of namespaces, topics and brokers, and count the messages that a topic retains."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from schemactl.core.errors import RegistryError
from schemactl.core.policies import (
    BROKER_KEYS,
    SETTINGS,
    BrokerConfiguration,
    BrokerDefaults,
    CompatibilityStrategy,
    Policies,
)
from schemactl.core.project import CHECKER_PACKAGE, CHECKERS_KEY
from schemactl.core.wording import format_count
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.responses import parse_strategy

_STATS_SHAPE: Final = {
    "numberOfEntries": int,
    "currentLedgerEntries": int,
    "ledgers": [{"entries": int, "offloaded": bool | None}],
    "compactedLedger": {"entries": int},
}
"""The statistics that show whether a topic has messages (PersistentTopicInternalStats)."""

_BOOLEAN_POLICIES: Final = ("is_allow_auto_update_schema", "schema_validation_enforced")

_STRATEGY_KEY: Final = BROKER_KEYS["schema_compatibility_strategy"]

_ADDRESS_KEYS: Final = ("advertisedAddress", "webServicePortTls", "webServicePort")

_CONFIGURATION_REQUEST: Final = "brokers/configuration/runtime"

_PORT: Final = re.compile(r"[0-9]{1,5}")

_TOPIC_POLICIES_KEY: Final = "topicPoliciesServiceClassName"

_SYSTEM_TOPIC_SERVICE: Final = "SystemTopicBasedTopicPoliciesService"
"""The default class that stores topic policies."""

_KEYS_OF_SETTINGS: Final = [
    key
    for setting in SETTINGS.values()
    for key in ([setting.broker] if isinstance(setting.broker, str) else chain(*setting.broker.values()))
    if key
]
"""The keys of the brokers' configuration for `SETTINGS`."""

_CONFIGURATION_SHAPE: Final = dict.fromkeys(
    (*BROKER_KEYS.values(), CHECKERS_KEY, *_ADDRESS_KEYS, _TOPIC_POLICIES_KEY, *_KEYS_OF_SETTINGS), str | None
)


def parse_settings(values: Mapping[str, Any], names: Iterable[str], owner: str) -> dict[str, Any]:
    """Return the settings `names` that are set in `values`; raise RegistryError for a value of another kind."""
    settings = {}
    for name in names:
        if (value := values.get(name)) is not None:
            try:
                settings[name] = SETTINGS[name].normal(value)
            except ValueError as error:
                raise RegistryError(
                    f"{owner}: the registry does not answer as Pulsar does: {error}",
                    fix="check that `registry` of the target is the address of Pulsar's admin API",
                ) from None
    return settings


def read_topic_settings(connection: AdminConnection, path: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the settings `names` of the topic at `path`; they are unset if the topic does not exist."""
    values = {
        name: connection.get(f"{path}/{SETTINGS[name].topic_path}", object, absent=None)
        for name in names
        if SETTINGS[name].topic_path
    }
    return parse_settings(values, values, path)


def put_settings(
    connection: AdminConnection, path: str, policies: Policies, *, of: str, is_topic: bool = False
) -> None:
    """Set each setting in `policies` on the namespace or topic at `path`; UNDEFINED removes a setting."""
    for name, value in policies.settings.items():
        setting = SETTINGS[name]
        endpoint = f"{path}/{setting.topic_path if is_topic else setting.path}"
        if value == CompatibilityStrategy.UNDEFINED:
            connection.change("DELETE", endpoint, of=of)
        elif is_topic and setting.topic_query:
            connection.change("POST", f"{endpoint}?{setting.topic_query}={value}", of=of)
        else:
            connection.change("POST" if is_topic else setting.method, endpoint, value, of=of)


def _parse_checkers(text: str | None) -> frozenset[str] | None:
    """Return the class names in a set as Java prints it, Pulsar's own without package, or None without text."""
    if text is None:
        return None
    names = (name.strip() for name in text.strip().removeprefix("[").removesuffix("]").split(","))
    return frozenset(name.removeprefix(CHECKER_PACKAGE) for name in names if name)


def _parse_value(text: str | None, default: object) -> object:
    """Convert a text of the brokers' configuration to the type of `default`, or return None if this is not possible."""
    if text is None or isinstance(default, str):
        return text
    if isinstance(default, bool):
        return text == "true"
    return int(text) if text.removeprefix("-").isdecimal() else None


def wait_until_in_force(subject: str, policies: Policies, read_back: Callable[[], Policies], limit_s: float) -> None:
    """Wait until the policies that are not None can be read back; raise RegistryError after `limit_s`.

    A status of 204 is not enough, because a broker also answers 204 to an unknown strategy, which unsets it, and because
    other brokers learn of a change by a message.
    """
    expected = policies.managed()
    end_s, delay_s = time.monotonic() + limit_s, 0.02
    while True:
        current = read_back()
        # A removed setting is missing.
        actual = {
            name: CompatibilityStrategy.UNDEFINED if (value := current.get(name)) is None else value
            for name in expected
        }
        differing = ", ".join(f"{name}: {actual[name]}" for name in expected if actual[name] != expected[name])
        if not differing:
            return
        if time.monotonic() + delay_s > end_s:
            raise RegistryError(f"{subject}: set, but {limit_s:.0f} s later the registry still shows {differing}")
        time.sleep(delay_s)
        delay_s = min(delay_s * 2, 1.0)


def describe_retained(connection: AdminConnection, path: str, *, written_with_schema: bool) -> str:
    """Return a clause with the number and location of the entries that the topic or partition at `path` retains, or "".

    Entries in ledgers, offloaded entries and compacted entries count. With `written_with_schema`, entries without a schema
    version do not count.
    """
    # A partition does not exist before its first client.
    stats = connection.get(f"{path}/internalStats", _STATS_SHAPE, absent=None)
    for place, entries in count_entries(stats) if stats else ():
        if entries > 0 and not (written_with_schema and _lack_versions(connection, path)):
            return f"{format_count(entries, 'entry', 'entries')} {place}"
    return ""


def is_topic_empty(connection: AdminConnection, path: str) -> bool:
    """Return whether the topic at `path` exists, retains nothing, and got no message since a broker loaded it.

    False also if the role may not read the statistics.
    """
    request = f"{path}/internalStats"
    reply = connection.send("GET", request)
    if not reply.is_success:
        return False
    stats = connection.read_json(reply, f"GET {request}", {**_STATS_SHAPE, "entriesAddedCounter": int})
    return stats["entriesAddedCounter"] == 0 and not any(entries > 0 for _, entries in count_entries(stats))


def _lack_versions(connection: AdminConnection, path: str) -> bool:
    """Return whether neither the first nor the last message has a schema version."""
    path = f"{path}/examinemessage?messagePosition=1&initialPosition="
    # Without a message or permission, this is unknown. The broker then answers 412, which needs no retry here.
    replies = (connection.send("GET", path + position, is_repeated=False) for position in ("latest", "earliest"))
    return all(reply.is_success and not reply.has_schema_version for reply in replies)


def count_entries(stats: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the location and number of entries of a topic or partition; -1 without ledger."""
    ledgers = stats["ledgers"]
    yield "offloaded to long-term storage", sum(ledger["entries"] for ledger in ledgers if ledger.get("offloaded"))
    yield "after compaction", stats["compactedLedger"]["entries"]
    counts = (stats["numberOfEntries"], stats["currentLedgerEntries"], *(ledger["entries"] for ledger in ledgers))
    yield "of messages", max(counts)


class BrokerSettings:
    """The configuration of the brokers, read once; empty unless the role is a superuser."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection
        # Not a cached property: its lock in Python 3.11 would make the registries of all targets wait for each other.
        self._cached: tuple[int, dict[str, Any]] | None = None

    def _read_configuration(self) -> tuple[int, dict[str, Any]]:
        """Return the status of the response, and the configuration in it."""
        if self._cached is None:
            reply = self._connection.send("GET", _CONFIGURATION_REQUEST)
            values = {}
            if reply.is_success:
                values = self._connection.read_json(reply, f"GET {_CONFIGURATION_REQUEST}", _CONFIGURATION_SHAPE)
            self._cached = reply.status, values
        return self._cached

    def read(self) -> BrokerConfiguration:
        """Return the configuration of the broker that answered."""
        status, configuration = self._read_configuration()
        if not configuration:
            who = "; only a superuser may read it" if status in (401, 403) else ""
            return BrokerConfiguration(
                self._connection.url, problem=f"GET {_CONFIGURATION_REQUEST} answers {status}{who}"
            )
        values: dict[str, Any] = {
            policy: value == "true" for policy in _BOOLEAN_POLICIES if (value := configuration.get(BROKER_KEYS[policy]))
        }
        if strategy := self.get_strategy():
            values["schema_compatibility_strategy"] = strategy

        # The address that the broker advertises, or the URL of the target if its configuration has no address.
        ports = (_PORT.search(configuration.get(key) or "") for key in _ADDRESS_KEYS[1:])
        port = next((match[0] for match in ports if match), "")
        host = configuration.get(_ADDRESS_KEYS[0])
        address = f"{host[:253]}:{port}" if host and port else self._connection.url
        return BrokerConfiguration(address, values, _parse_checkers(configuration.get(CHECKERS_KEY)))

    def overlay(self, defaults: BrokerDefaults) -> BrokerDefaults:
        """Return `defaults` with the boolean policies and settings of the brokers, as far as these are known."""
        policies = {policy: value for policy, value in self.read().values.items() if policy in _BOOLEAN_POLICIES}
        _, configuration = self._read_configuration()
        settings = {}
        for name, setting in SETTINGS.items():
            if isinstance(setting.broker, str):
                value = _parse_value(configuration.get(setting.broker), setting.default)
            else:
                value = {
                    part: _parse_value(
                        next((configuration[key] for key in keys if configuration.get(key)), None),
                        setting.default[part],
                    )
                    for part, keys in setting.broker.items()
                }
            if setting.shape.fits(value):
                settings[name] = value
        return replace(defaults, **policies, settings=settings)

    def get_strategy(self) -> CompatibilityStrategy | None:
        """Return the brokers' strategy, or None if it is unknown."""
        _, configuration = self._read_configuration()
        if not configuration:
            return None
        strategy = parse_strategy(configuration.get(_STRATEGY_KEY))
        # PulsarService replaces UNDEFINED in its settings by FULL.
        return CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy

    def keep_policies_as_messages(self) -> bool:
        """Return whether brokers store topic policies as messages of a system topic in the namespace; True if unknown."""
        _, configuration = self._read_configuration()
        service = configuration.get(_TOPIC_POLICIES_KEY) or _SYSTEM_TOPIC_SERVICE
        return bool(service.endswith(_SYSTEM_TOPIC_SERVICE))
