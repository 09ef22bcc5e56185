"""`PulsarRegistry`, a `Registry` over a cluster's admin API: namespaces, topics, policies, properties and connected clients."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeVar
from urllib.parse import quote

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError
from schemactl.core.findings import Answer
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import REPLICATION, BrokerDefaults, CompatibilityStrategy, Policies, strategy_of
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.core.wording import partitioned
from schemactl.registry.interface import (
    AUTO_UPDATE_STRATEGIES,
    ConnectedClient,
    OnProgress,
    Relaxing,
    Scope,
    TopicClients,
    Warn,
    no_progress,
    no_warning,
)
from schemactl.registry.pulsar import schemas
from schemactl.registry.pulsar import settings as pulsar_settings
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import CONNECTIONS, AdminConnection
from schemactl.registry.pulsar.responses import LONGEST_VERSION, is_unauthenticated, strategy_named
from schemactl.registry.pulsar.settings import BrokerSettings

VERSION_PROPERTY: Final = "schemactl.version"
"""The property of a producer or consumer in which it reports the version it is built with; generated packages set it."""

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")

_BATCH = 32
_NOT_ALLOWED = frozenset({401, 403})
_VERSION = re.compile(r"[\w.+-]+", re.ASCII)
_PARTITION = re.compile(r"-partition-\d+$")
_PROBE = "schemactl-asks-for-the-strategy"
"""A topic that is only ever asked about: a compatibility test needs none, and creates none."""
_SYSTEM_TENANTS = frozenset({"pulsar", "sla"})
"""The tenants of the brokers' own topics."""
_CONNECTS_FOLLOW_S = 2.0
"""A loaded topic judges clients by the policies of up to 0.04 s ago, seen on 4.0.7 and 4.2.4, and of over 1 s ago under load."""
_UNSET: Final = Policies(schema_compatibility_strategy=CompatibilityStrategy.UNDEFINED)

_SETTERS: Final = {
    "schema_compatibility_strategy": ("PUT", "schemaCompatibilityStrategy"),
    "is_allow_auto_update_schema": ("POST", "isAllowAutoUpdateSchema"),
    "schema_validation_enforced": ("POST", "schemaValidationEnforced"),
}
"""The method and the path of each policy's endpoint: Pulsar mixes them."""

_POLICIES: Final = {
    "schema_compatibility_strategy": str | None,
    "schema_auto_update_compatibility_strategy": str | None,
    "is_allow_auto_update_schema": bool | None,
    "schema_validation_enforced": bool | None,
    "deleted": bool | None,
}


class PulsarRegistry(Relaxing):
    """Implements `Registry` over the admin API of Pulsar 4.0 or newer.

    Args:
        url: of the admin API; several of one cluster separated by commas.
        credentials: sent with each request.
        release: the Pulsar release to assume where the cluster does not report its own.
        defaults: the broker settings to assume where the role may not read them.
        progress: called with the number of topics read so far, and of all.
        warn: called when the cluster is waited for.
        cluster: what Pulsar calls it; "": not known. Of namespaces that are only on other clusters it is asked for no topics.
    """

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials = Credentials(),  # noqa: B008  frozen
        release: Release = Release.R4_0,
        defaults: BrokerDefaults = BrokerDefaults(),
        progress: OnProgress = no_progress,
        warn: Warn = no_warning,
        cluster: str = "",
    ) -> None:
        self.url = url
        self._cluster = cluster
        self._connection = AdminConnection(url, credentials, warn)
        self._settings = BrokerSettings(self._connection)
        self._fallback = release
        self._defaults = defaults
        self._progress = progress
        self._version: str | None = None
        self._broker_strategy: CompatibilityStrategy | None = None

    @property
    def version(self) -> str:
        """The release that the brokers report, such as "4.0.7"; "" where they do not tell."""
        if self._version is None:
            reply = self._connection.send("GET", "brokers/version")
            if reply.status == 404:
                raise RegistryError(
                    f"{self.url} answers, but not as Pulsar's admin API does: it has no GET brokers/version",
                    fix="check that `registry` of the target is the address of the admin API, without a path",
                )
            if not reply.fine and reply.status not in _NOT_ALLOWED:
                self._connection.expect(reply, "GET brokers/version")
            text = reply.body[:LONGEST_VERSION].decode("ascii", "replace").strip().strip('"')
            self._version = text if reply.fine and _VERSION.fullmatch(text) else ""
        return self._version

    @property
    def release(self) -> Release:
        """The newest known release that is not newer than the brokers'."""
        return Release.nearest(self.version) or self._fallback

    def keep_others_waiting(self) -> None:
        """See `Registry.keep_others_waiting`."""
        self._connection.keep_others_waiting()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @property
    def defaults(self) -> BrokerDefaults:
        """See `Registry.defaults`. Only a superuser may read the brokers' settings; for any other role the project file's count."""
        return self._settings.over(self._defaults)

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        found = self._each(lambda name: self._namespace(name, scope.asked(name)), scope.namespaces)
        spaces = {space.name: space for space in found if space}
        elsewhere = {name for name, space in spaces.items() if space.is_elsewhere(self._cluster)}
        topics_here = [name for name in scope.topics if name.namespace_name not in elsewhere]
        places = {(name.namespace_name, name.domain) for name in topics_here}
        existing = dict(self._each(lambda place: (place, self._existing(*place)), places))
        common = self._common_policies(
            name
            for name in topics_here
            if name.domain == "persistent" and name in (existing[name.namespace_name, name.domain] or ())
        )

        def read_topic(name: TopicName) -> Topic | None:
            space = name.namespace_name
            return self._topic(name, existing[space, name.domain], common.get(space), scope.asked(name))

        topics = {}
        for number, topic in enumerate(self._each(read_topic, topics_here), 1):
            self._progress(number, len(topics_here))
            if topic is not None:
                topics[topic.name] = topic
        return Catalog(spaces, topics)

    def clients(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicClients]:
        """See `Registry.clients`."""
        asked = list(topics)
        found = self._each(lambda name: connected(self._connection, _path(name)), asked)
        return dict(zip(asked, found, strict=True))

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """See `Registry.versions`."""
        return schemas.stored(self._connection, topic)

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.everything`. A topic that exists only by its schemas cannot be listed."""
        wanted = namespaces if namespaces is not None else frozenset(self._namespace_names())

        def topics_of(name: NamespaceName) -> tuple[NamespaceName, list[TopicName]] | None:
            found = [self._existing(name, domain) for domain in ("persistent", "non-persistent")]
            return None if found[0] is None else (name, [topic for some in found for topic in some or ()])

        existing = dict(one for one in self._each(topics_of, wanted) if one is not None)
        return Scope(frozenset(existing), frozenset(chain.from_iterable(existing.values())))

    def has_tenant(self, tenant: str) -> bool:
        """See `Registry.has_tenant`. Only a superuser may list tenants, but every role is told of one that does not exist."""
        what = f"namespaces/{quote(tenant, safe='')}"
        reply = self._connection.send("GET", what)
        if reply.status == 404:
            return False
        if reply.status not in _NOT_ALLOWED or is_unauthenticated(reply):
            self._connection.expect(reply, f"GET {what}")
        return True

    def create_tenant(self, tenant: str) -> None:
        """See `Registry.create_tenant`. That takes a superuser; the tenant has no administrators."""
        clusters = [one for one in self._connection.get("clusters", [str]) if one != "global"]
        settings = {"adminRoles": [], "allowedClusters": clusters}
        self._connection.change("PUT", f"tenants/{quote(tenant, safe='')}", settings, allowed=409)

    def create_namespace(self, name: NamespaceName) -> None:
        """See `Registry.create_namespace`."""
        reply = self._connection.send("PUT", f"namespaces/{name}")
        if reply.status == 404:
            self.create_tenant(name.tenant)
            reply = self._connection.send("PUT", f"namespaces/{name}")
        if reply.status != 409:
            self._connection.expect(reply, f"PUT namespaces/{name}")

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`."""
        self._set(replace(policies, settings={}).managed(), f"namespaces/{name}", of=f"namespace {name}")
        pulsar_settings.put(self._connection, f"namespaces/{name}", policies, of=f"namespace {name}")

        def read_back() -> Policies:
            found = self._namespace(name, frozenset(policies.settings))
            return found.policies if found else Policies()

        pulsar_settings.wait_until_in_force(str(name), policies, read_back)

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`."""
        path, body = (_path(name), None) if partitions is None else (f"{_path(name)}/partitions", partitions)
        space = f"namespace {name.namespace_name}"
        reply = self._connection.change("PUT", path, body, of=space, allowed=409)
        if reply.status == 409 and (has := self._partitions(name)) != partitions:
            raise RegistryError(f"{name} exists and {partitioned(has)}")

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        has = self._partitions(name)
        if has is None or partitions < has:
            raise RegistryError(f"{name} {partitioned(has)} and cannot have {partitions}")
        if partitions > has:
            self._connection.change("POST", f"{_path(name)}/partitions", partitions)

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`."""
        managed = replace(policies, settings={}).managed()
        if "is_allow_auto_update_schema" in managed:
            raise RegistryError(f"{name}: is_allow_auto_update_schema is a policy of namespaces; topics have none")
        # UNDEFINED unsets the policy; a DELETE would, too, but one path segment less and it were the topic's.
        self._set(managed, _path(name), of=f"topic {name}")
        pulsar_settings.put(self._connection, _path(name), policies, of=f"topic {name}", is_topic=True)
        asked = frozenset(policies.settings)
        pulsar_settings.wait_until_in_force(str(name), policies, lambda: self._topic_policies(name, asked))

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`."""
        return schemas.put(self._connection, topic, info)

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """See `Registry.get_schema`."""
        return schemas.get(self._connection, topic, number)

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        return schemas.test(self._connection, topic, info)

    def retained(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        """See `Registry.retained`. Entries count wherever they are stored: in a ledger, offloaded, or in what compaction has kept."""
        # The topic of the other domain has the same schemas, and no message is ever kept there.
        topic = replace(topic, domain="persistent")
        existing = self._existing(topic.namespace_name, topic.domain) or {}
        if topic not in existing:
            return ""
        count = self._partitions(topic) if existing[topic] else None
        numbers = [""] if count is None else [f"-partition-{number}" for number in range(count)]
        for number in numbers:
            path = f"{_path(topic)}{number}"
            if what := pulsar_settings.retained(self._connection, path, written_with_schema=written_with_schema):
                return f"{topic.topic}{number} retains {what}"
        return ""

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. A soft delete without a response is not repeated blindly."""
        return schemas.delete(self._connection, topic, force=force)

    def delete_topic(self, topic: TopicName) -> None:
        """See `Registry.delete_topic`. Only a topic that exists is deleted; of another one, the schemas are."""
        # To delete a topic that does not exist answers 404 and deletes its schemas all the same.
        existing = self._existing(topic.namespace_name, topic.domain) or {}
        if topic not in existing:
            schemas.delete(self._connection, topic, force=True)
            return
        path = f"{_path(topic)}/partitions" if existing[topic] else _path(topic)
        self._connection.change("DELETE", path, allowed=404)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        space = self._namespace(topic.namespace_name)
        own = strategy_of(self._topic_policies(topic), space.policies if space else None)
        return own or self.default_strategy(topic.namespace_name)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`.

        The broker's own setting is read where the role is a superuser's, and tried out where it is the tenant's
        administrator; for any other role the project file's default is used.
        """
        found = self._connection.get(f"namespaces/{namespace}", _POLICIES, absent={})
        name = found.get("schema_auto_update_compatibility_strategy")
        if name in AUTO_UPDATE_STRATEGIES:
            return AUTO_UPDATE_STRATEGIES[name]
        if self._broker_strategy is None:
            self._broker_strategy = self._settings.strategy() or self._tried_strategy(namespace)
        return self._broker_strategy or self._defaults.schema_compatibility_strategy

    def relax(self, topic: TopicName) -> None:
        """See `Registry.relax`."""
        if topic.domain != "persistent":
            raise RegistryError(f"{topic}: only persistent topics can keep what their strategy was")
        # Brokers do not answer at all when asked to keep a property of a topic that does not exist.
        self._partitions(topic)
        super().relax(topic)

    def _each(self, ask: Callable[[_Asked], _Found], about: Iterable[_Asked]) -> Iterator[_Found]:
        """Yield the result for each of `about`, in its order, from several threads."""
        asked = list(about)
        if len(asked) < 2 or self._connection.is_kept_for_one:
            yield from map(ask, asked)
            return
        # Handing one topic after the other to a thread costs as much as a tenth of its requests.
        size = max(1, min(_BATCH, len(asked) // CONNECTIONS))
        batches = [asked[start : start + size] for start in range(0, len(asked), size)]
        with self._connection.threads() as threads:
            for found in threads.map(lambda batch: [ask(one) for one in batch], batches):
                yield from found

    def _namespace_names(self) -> Iterator[NamespaceName]:
        """Yield every namespace of every tenant except the brokers' own."""
        for tenant in self._connection.get("tenants", [str]):
            if tenant not in _SYSTEM_TENANTS:
                for text in self._connection.get(f"namespaces/{quote(tenant, safe='')}", [str], absent=[]):
                    # Old names had a cluster in them; nothing can be declared for those.
                    with suppress(ValueError):
                        yield NamespaceName.parse(text)

    def _namespace(self, name: NamespaceName, asked: frozenset[str] = frozenset()) -> Namespace | None:
        found = self._connection.get(f"namespaces/{name}", _POLICIES, absent=None)
        if found is None:
            return None
        own = strategy_named(found.get("schema_compatibility_strategy"))
        others = found.get("is_allow_auto_update_schema"), found.get("schema_validation_enforced")
        policies = Policies(own, *others, settings=pulsar_settings.among(found, asked, f"namespace {name}"))
        clusters = tuple(pulsar_settings.among(found, [REPLICATION], f"namespace {name}").get(REPLICATION, ()))
        return Namespace(name, policies, deleted=bool(found.get("deleted")), clusters=clusters)

    def _existing(self, space: NamespaceName, domain: str) -> dict[TopicName, bool] | None:
        """Return the namespace's topics of a domain, and whether each is partitioned; None: there is no such namespace.

        The brokers' own topics are left out. A non-persistent topic without partitions exists only while a broker has it loaded.
        """
        plain = self._connection.get(f"{domain}/{space}", [str], absent=None)
        if plain is None:
            return None
        grouped = self._connection.get(f"{domain}/{space}/partitioned", [str], absent=[])
        found = dict.fromkeys(_names(text for text in plain if not _PARTITION.search(text)), False)
        return {**found, **dict.fromkeys(_names(grouped), True)}

    def _common_policies(self, topics: Iterable[TopicName]) -> dict[NamespaceName, Policies]:
        """Return, of namespaces with several of the existing `topics`, the policies of all of them, where none can have its own.

        Brokers keep policies of topics as messages of one topic in the namespace; where that has none, one topic is as all others.
        """
        found: dict[NamespaceName, list[TopicName]] = {}
        for name in topics:
            found.setdefault(name.namespace_name, []).append(name)

        def without_own(names: list[TopicName]) -> list[TopicName] | None:
            kept = f"persistent/{names[0].namespace_name}/__change_events"
            return names if pulsar_settings.has_none(self._connection, kept) else None

        several = [names for names in found.values() if len(names) > 1]
        alike = [names for names in self._each(without_own, several) if names]
        if not alike or not self._settings.keep_policies_as_messages():
            return {}
        return dict(self._each(lambda names: (names[0].namespace_name, self._topic_policies(names[0])), alike))

    def _topic(
        self, name: TopicName, existing: dict[TopicName, bool] | None, common: Policies | None, asked: frozenset[str]
    ) -> Topic | None:
        if existing is not None and name.domain == "non-persistent":
            # Brokers create such a topic with its first client, and forget it with the last one: it counts as existing.
            existing = {name: False, **existing}
        if (existing is None or name not in existing) and not schemas.next_number(self._connection, name):
            # One request, where to ask for versions that are not there takes two.
            return None
        versions = self.versions(name)
        current = versions[-1].info if versions else None
        if existing is None or name not in existing:
            return Topic(name, current, versions, _UNSET, deleted=True) if versions else None
        count = self._partitions(name) if existing[name] else None
        policies = common if common and name.domain == "persistent" else self._topic_policies(name, asked)
        return Topic(name, current, versions, policies, partitions=count)

    def _partitions(self, name: TopicName) -> int | None:
        """Return how many partitions the topic has, None if it is not partitioned; raise RegistryError if it does not exist."""
        count: int = self._connection.get(f"{_path(name)}/partitions", {"partitions": int})["partitions"]
        if count < 0:
            raise RegistryError(f"{name}: the registry says it has {count} partitions")
        return count or None

    def _topic_policies(self, name: TopicName, asked: frozenset[str] = frozenset()) -> Policies:
        """Return the topic's own policies; none is set on a topic that does not exist, or cannot have any."""
        path = _path(name)
        own = self._connection.get(f"{path}/schemaCompatibilityStrategy", str | None, absent=None)
        enforced = self._connection.get(f"{path}/schemaValidationEnforced", bool | None, absent=None)
        held = pulsar_settings.of_topic(self._connection, path, asked)
        return Policies(strategy_named(own), schema_validation_enforced=enforced, settings=held)

    def _set(self, policies: Mapping[str, Any], path: str, *, of: str) -> None:
        for policy, value in policies.items():
            method, endpoint = _SETTERS[policy]
            self._connection.change(method, f"{path}/{endpoint}", value, of=of)

    def _own_strategy(self, topic: TopicName) -> CompatibilityStrategy:
        return self._topic_policies(topic).schema_compatibility_strategy or CompatibilityStrategy.UNDEFINED

    def _updates_allowed(self, namespace: NamespaceName) -> bool:
        # An upload over the admin API asks for the strategy alone: it is accepted while this is false, by 4.0.7 and 4.2.4.
        found = self._namespace(namespace)
        return found is None or found.policies.is_allow_auto_update_schema is not False

    def _property(self, name: NamespaceName | TopicName, key: str) -> str | None:
        if isinstance(name, TopicName) and name.domain != "persistent":
            return None
        properties = self._connection.get(f"{_path(name)}/properties", dict | None, absent=None) or {}
        found = properties.get(key)
        if found is not None and not isinstance(found, str):
            raise RegistryError(f"{name}: its property {key} is not text")
        return found

    def _set_property(self, name: NamespaceName | TopicName, key: str, value: str | None) -> None:
        if value is not None:
            self._connection.change("PUT", f"{_path(name)}/properties", {key: value})
        elif isinstance(name, TopicName):
            self._connection.change("DELETE", f"{_path(name)}/properties?key={key}")
        else:
            self._connection.change("DELETE", f"{_path(name)}/property/{key}")

    def _let_clients_see(self) -> None:
        time.sleep(_CONNECTS_FOLLOW_S)

    def _tried_strategy(self, name: NamespaceName) -> CompatibilityStrategy | None:
        """Return the strategy that a compatibility test in the namespace names; None: it tells nothing of the broker's."""
        space = self._namespace(name)
        if space is None or strategy_of(space.policies):
            return None
        return schemas.strategy_in_force(self._connection, TopicName(name.tenant, name.name, _PROBE))


def _path(name: NamespaceName | TopicName) -> str:
    if isinstance(name, NamespaceName):
        return f"namespaces/{name}"
    return f"{name.domain}/{name.tenant}/{name.namespace}/{quote(name.topic, safe='')}"


def _names(texts: Iterable[str]) -> Iterator[TopicName]:
    for text in texts:
        # Older brokers took names that Pulsar refuses today; nothing can be declared for them.
        with suppress(ValueError):
            name = TopicName.parse(text)
            if not name.topic.startswith("__"):
                yield name


# Connected clients, from a topic's statistics (TopicStats, in PersistentTopics.getStats and getPartitionedStats)


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
