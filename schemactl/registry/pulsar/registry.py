"""Implement `Registry` over the admin API of a Pulsar cluster."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from schemactl.broker.checkers import parse_checker_classes
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.deadline import PARALLEL
from schemactl.core.errors import NotPermitted, RegistryError
from schemactl.core.findings import Answer
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import (
    REPLICATION,
    SCHEMA_POLICIES,
    SETTINGS,
    BrokerConfiguration,
    BrokerDefaults,
    CompatibilityStrategy,
    Policies,
    find_strategy,
)
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, describe_older_release
from schemactl.core.wording import describe_partitions
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
    refuse_scalable_topic,
    refuse_shared_name,
)
from schemactl.registry.pulsar import schemas
from schemactl.registry.pulsar import settings as pulsar_settings
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection, WaitTimes
from schemactl.registry.pulsar.responses import LONGEST_VERSION, is_unauthenticated, parse_strategy
from schemactl.registry.pulsar.settings import BrokerSettings

VERSION_PROPERTY: Final = "schemactl.version"
"""The property of a client with the version it is built with; generated packages set it."""

_NOT_PERMITTED = frozenset({401, 403})
_VERSION = re.compile(r"[\w.+-]+", re.ASCII)
_PARTITION_SUFFIX = re.compile(r"-partition-\d+$")
_PROBE_TOPIC = "schemactl-asks-for-the-strategy"
"""The topic of compatibility tests that find out a strategy; a test does not need or create it."""
_SYSTEM_TENANTS = frozenset({"pulsar", "sla"})
"""The tenants of the brokers' own topics."""
_UNSET_POLICIES: Final = Policies(schema_compatibility_strategy=CompatibilityStrategy.UNDEFINED)

_SETTERS: Final = {
    "schema_compatibility_strategy": ("PUT", "schemaCompatibilityStrategy"),
    "is_allow_auto_update_schema": ("POST", "isAllowAutoUpdateSchema"),
    "schema_validation_enforced": ("POST", "schemaValidationEnforced"),
}
"""The method and the path of each policy's endpoint, which differ in Pulsar."""

_POLICIES_SHAPE: Final = {
    "schema_compatibility_strategy": str | None,
    "schema_auto_update_compatibility_strategy": str | None,
    "is_allow_auto_update_schema": bool | None,
    "schema_validation_enforced": bool | None,
    "deleted": bool | None,
}

_MAX_VERSION_DIGITS: Final = 9

_CLIENT_SHAPE: Final = {
    "address": str | None,
    "connectedSince": str | None,
    "clientVersion": str | None,
    "metadata": ({"*": str}, type(None)),
}

_STATS_SHAPE: Final = {
    "publishers": [{"producerName": str | None, **_CLIENT_SHAPE}],
    "subscriptions": {
        "*": {
            "msgBacklog": int | None,
            "isDurable": bool | None,
            "consumers": [{"consumerName": str | None, **_CLIENT_SHAPE}],
        }
    },
}
"""A topic's statistics (TopicStats, in PersistentTopics.getStats and getPartitionedStats)."""


class _NamespaceStrategies(NamedTuple):
    """The strategies that a namespace sets: its own or None, and the value of the deprecated policy or None."""

    own: CompatibilityStrategy | None
    auto_update: str | None


class PulsarRegistry(Relaxing):
    """Implements `Registry` over the admin API of Pulsar 4.0 or newer.

    Args:
        url: the URL of the admin API, or several URLs of one cluster separated by commas.
        credentials: the credentials of each request.
        release: the Pulsar release to assume if the cluster does not report its own.
        defaults: the broker settings to assume if the role may not read them.
        progress: called with the number of topics read so far, and of all topics.
        warn: called during a long wait.
        cluster: the cluster's name in Pulsar, or "" if unknown; topics of namespaces on other clusters are not read.
        parallel: the number of requests of a long read that are sent at once.
        waits: the times to wait for the cluster.
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
        parallel: int = PARALLEL,
        waits: WaitTimes = WaitTimes(),
    ) -> None:
        self.url = url
        self._cluster = cluster
        self._waits = waits
        self._connection = AdminConnection(url, credentials, warn, parallel, waits)
        self._settings = BrokerSettings(self._connection)
        self._fallback = release
        self._defaults = defaults
        self._progress = progress
        self._version: str | None = None
        self._broker_strategy: CompatibilityStrategy | None = None
        self._strategies: dict[NamespaceName, _NamespaceStrategies | None] = {}
        """The strategies of each namespace when it was last read, or None for a missing one."""

    @property
    def version(self) -> str:
        """The release that the brokers report, such as "4.0.7", or ""."""
        if self._version is None:
            reply = self._connection.send("GET", "brokers/version")
            if reply.status == 404:
                raise RegistryError(
                    f"{self.url} answers, but not as Pulsar's admin API does: it has no GET brokers/version",
                    fix="check that `registry` of the target is the address of the admin API, without a path",
                )
            if not reply.is_success and reply.status not in _NOT_PERMITTED:
                self._connection.expect(reply, "GET brokers/version")
            text = reply.body[:LONGEST_VERSION].decode("ascii", "replace").strip().strip('"')
            self._version = text if reply.is_success and _VERSION.fullmatch(text) else ""
        return self._version

    @property
    def release(self) -> Release:
        """The newest known release that is not newer than the brokers'.

        Raises:
            RegistryError: if the brokers are older than all known releases.
        """
        if differences := describe_older_release(self.version):
            raise RegistryError(
                f"{self._connection.url} is Pulsar {self.version}, older than the supported releases, and its brokers differ: {differences}",
                fix="upgrade the cluster to Pulsar 4.0 or newer; nothing was changed",
            )
        return Release.from_version(self.version) or self._fallback

    def stop_other_threads(self) -> None:
        """See `Registry.stop_other_threads`."""
        self._connection.stop_other_threads()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @property
    def defaults(self) -> BrokerDefaults:
        """See `Registry.defaults`. Only a superuser may read the brokers' settings; for other roles, the project file applies."""
        defaults, classes = self._settings.overlay(self._defaults), self.configuration.checkers
        checkers = None if classes is None else parse_checker_classes(self.release, classes)
        return defaults if checkers is None else replace(defaults, checkers=checkers)

    @property
    def configuration(self) -> BrokerConfiguration:
        """See `Registry.configuration`. For other roles than a superuser, a compatibility test may have shown the strategy."""
        configuration = self._settings.read()
        if configuration.values or self._broker_strategy is None:
            return configuration
        return replace(configuration, values={"schema_compatibility_strategy": self._broker_strategy})

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        results = self._connection.map_in_threads(
            lambda name: self._read_namespace(name, scope.get_settings(name)), scope.namespaces
        )
        namespaces = {namespace.name: namespace for namespace in results if namespace}
        elsewhere = {name for name, namespace in namespaces.items() if namespace.is_elsewhere(self._cluster)}
        topics_here = [name for name in scope.topics if name.namespace_name not in elsewhere]
        domains = {(name.namespace_name, name.domain) for name in topics_here}
        existing = dict(self._connection.map_in_threads(lambda domain: (domain, self._list_topics(*domain)), domains))
        common = self._find_common_policies(
            (
                name
                for name in topics_here
                if name.domain == "persistent" and name in (existing[name.namespace_name, name.domain] or ())
            ),
            namespaces,
        )

        def read_topic(name: TopicName) -> Topic | None:
            """Return the topic, or None if neither it nor its schemas exist."""
            listed = existing[name.namespace_name, name.domain]
            is_partitioned = None if listed is None else listed.get(name)
            if listed is not None and name.domain == "non-persistent":
                # Such a topic counts as existing, although it exists only while it has clients.
                is_partitioned = bool(is_partitioned)
            if is_partitioned is None and not schemas.read_next_number(self._connection, name):
                # This is one request; reading an empty list of versions takes two.
                return None
            versions = self.versions(name)
            current = versions[-1].info if versions else None
            if is_partitioned is None:
                return Topic(name, current, versions, _UNSET_POLICIES, deleted=True) if versions else None
            count = self._count_partitions(name) if is_partitioned else None
            policies = common.get(name.namespace_name) if name.domain == "persistent" else None
            if policies is None:
                policies = self._read_own_policies(name, namespaces.get(name.namespace_name), scope.get_settings(name))
            return Topic(name, current, versions, policies, partitions=count)

        topics = {}
        for number, topic in enumerate(self._connection.map_in_threads(read_topic, topics_here), 1):
            self._progress(number, len(topics_here))
            if topic is not None:
                topics[topic.name] = topic
        return Catalog(namespaces, topics)

    def read_policies(self, name: NamespaceName | TopicName, names: AbstractSet[str]) -> Policies:
        """See `Registry.read_policies`. Takes one request for a namespace, and one for each policy of a topic."""
        settings = frozenset(names & SETTINGS.keys())
        if isinstance(name, NamespaceName):
            namespace = self._read_namespace(name, settings)
            return namespace.policies if namespace else Policies()
        return self._read_topic_policies(name, settings, names)

    def list_clients(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicClients]:
        """See `Registry.list_clients`."""
        names = list(topics)
        if scalable := next((name for name in names if name.is_scalable), None):
            raise RegistryError(f"{scalable}: clients of scalable topics cannot be listed", fix="leave the topic out")
        clients = self._connection.map_in_threads(lambda name: read_clients(self._connection, _make_path(name)), names)
        return dict(zip(names, clients, strict=True))

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """See `Registry.versions`."""
        return schemas.read_versions(self._connection, topic)

    def read_scope(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.read_scope`. A topic that has schemas but does not exist cannot be listed."""
        selected = namespaces if namespaces is not None else frozenset(self._list_namespaces())

        def list_topics(name: NamespaceName) -> tuple[NamespaceName, list[TopicName]] | None:
            persistent, other = (self._list_topics(name, domain) for domain in ("persistent", "non-persistent"))
            return None if persistent is None else (name, [*persistent, *(other or ()), *self._list_scalable(name)])

        topics = dict(result for result in self._connection.map_in_threads(list_topics, selected) if result is not None)
        return Scope(frozenset(topics), frozenset(chain.from_iterable(topics.values())))

    def list_scalable_topics(self, namespaces: Iterable[NamespaceName]) -> frozenset[TopicName]:
        """See `Registry.list_scalable_topics`."""
        return frozenset(chain.from_iterable(self._connection.map_in_threads(self._list_scalable, namespaces)))

    def has_tenant(self, tenant: str) -> bool:
        """See `Registry.has_tenant`. Only a superuser may list tenants, but every role gets a 404 for a missing one."""
        path = f"namespaces/{quote(tenant, safe='')}"
        reply = self._connection.send("GET", path)
        if reply.status == 404:
            return False
        if reply.status not in _NOT_PERMITTED or is_unauthenticated(reply):
            self._connection.expect(reply, f"GET {path}")
        return True

    def create_tenant(self, tenant: str) -> None:
        """See `Registry.create_tenant`. This requires a superuser; the tenant has no administrators."""
        clusters = [name for name in self._connection.get("clusters", [str]) if name != "global"]
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
        self._set_policies(replace(policies, settings={}).managed(), f"namespaces/{name}", of=f"namespace {name}")
        pulsar_settings.put_settings(self._connection, f"namespaces/{name}", policies, of=f"namespace {name}")

        def read_back() -> Policies:
            namespace = self._read_namespace(name, frozenset(policies.settings))
            return namespace.policies if namespace else Policies()

        pulsar_settings.wait_until_in_force(str(name), policies, read_back, self._waits.visible_s)

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`. Brokers of 5.0.1 would create a topic over one of another domain."""
        namespace = f"namespace {name.namespace_name}"
        if name.is_scalable:
            if self.release < Release.R5_0:
                raise refuse_scalable_topic(name, self.release)
            persistent = replace(name, domain="persistent")
            if name not in self._list_scalable(name.namespace_name) and persistent in (
                self._list_topics(name.namespace_name, "persistent") or ()
            ):
                raise refuse_shared_name(name, persistent)
            # The topic gets one segment.
            self._connection.change("PUT", _make_path(name), of=namespace, allowed=409)
            return
        if name.scalable in self._list_scalable(name.namespace_name):
            raise refuse_shared_name(name, name.scalable)
        path, body = (_make_path(name), None) if partitions is None else (f"{_make_path(name)}/partitions", partitions)
        reply = self._connection.change("PUT", path, body, of=namespace, allowed=409)
        if reply.status == 409 and (count := self._count_partitions(name)) != partitions:
            raise RegistryError(f"{name} exists and {describe_partitions(count)}")

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        count = self._count_partitions(name)
        if count is None or partitions < count:
            raise RegistryError(f"{name} {describe_partitions(count)} and cannot have {partitions}")
        if partitions > count:
            self._connection.change("POST", f"{_make_path(name)}/partitions", partitions)

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`."""
        if name.is_scalable:
            raise RegistryError(
                f"{name}: a scalable topic has the schema policies of its namespace, and cannot have others"
            )
        managed = replace(policies, settings={}).managed()
        if "is_allow_auto_update_schema" in managed:
            raise RegistryError(f"{name}: is_allow_auto_update_schema is a policy of namespaces, not of topics")
        # UNDEFINED unsets the policy. A DELETE would do the same, but with a truncated path it would delete the topic.
        self._set_policies(managed, _make_path(name), of=f"topic {name}")
        pulsar_settings.put_settings(self._connection, _make_path(name), policies, of=f"topic {name}", is_topic=True)
        names = frozenset(policies.settings)
        pulsar_settings.wait_until_in_force(
            str(name), policies, lambda: self._read_topic_policies(name, names), self._waits.visible_s
        )

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`."""
        return schemas.put(self._connection, topic, info)

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """See `Registry.get_schema`."""
        return schemas.get(self._connection, topic, number)

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        return schemas.test(self._connection, topic, info)

    def describe_retained_messages(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        """See `Registry.describe_retained_messages`. Entries in ledgers, offloaded entries and compacted entries count.

        Nothing counts the messages in the segments of a scalable topic.
        """
        if topic.is_scalable:
            return (
                "" if written_with_schema else f"the segments of {topic} may retain messages, whose number is unknown"
            )
        # The non-persistent topic shares the schemas, but retains no messages.
        topic = replace(topic, domain="persistent")
        existing = self._list_topics(topic.namespace_name, topic.domain) or {}
        if topic not in existing:
            return ""
        count = self._count_partitions(topic) if existing[topic] else None
        suffixes = [""] if count is None else [f"-partition-{index}" for index in range(count)]
        for suffix in suffixes:
            path = f"{_make_path(topic)}{suffix}"
            if entries := pulsar_settings.describe_retained(
                self._connection, path, written_with_schema=written_with_schema
            ):
                return f"{topic.topic}{suffix} retains {entries}"
        return ""

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. A soft delete without a response is repeated only if it was not carried out."""
        return schemas.delete(self._connection, topic, force=force)

    def delete_topic(self, topic: TopicName) -> None:
        """See `Registry.delete_topic`. If the topic does not exist, only its schemas are deleted."""
        # A DELETE of a topic that does not exist answers 404, although it deletes the schemas.
        existing = self._list_topics(topic.namespace_name, topic.domain) or {}
        if topic not in existing:
            schemas.delete(self._connection, topic, force=True)
            return
        path = f"{_make_path(topic)}/partitions" if existing[topic] else _make_path(topic)
        self._connection.change("DELETE", path, allowed=404)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        namespace = self._read_namespace(topic.namespace_name)
        own = find_strategy(self._read_topic_policies(topic), namespace.policies if namespace else None)
        return own or self.default_strategy(topic.namespace_name)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`.

        A superuser reads the broker's setting, and an administrator of the tenant finds it out by a compatibility test;
        other roles get the default of the project file.
        """
        if namespace not in self._strategies:
            self._read_namespace(namespace)
        strategies = self._strategies[namespace]
        if strategies and strategies.auto_update in AUTO_UPDATE_STRATEGIES:
            return AUTO_UPDATE_STRATEGIES[strategies.auto_update]
        if self._broker_strategy is None:
            self._broker_strategy = self._settings.get_strategy()
        # A compatibility test answers with the namespace's own strategy, if it has one.
        if self._broker_strategy is None and strategies and not strategies.own:
            probe = TopicName(namespace.tenant, namespace.name, _PROBE_TOPIC)
            self._broker_strategy = schemas.test_for_strategy(self._connection, probe)
        return self._broker_strategy or self._defaults.schema_compatibility_strategy

    def relax(self, topic: TopicName) -> None:
        """See `Registry.relax`."""
        if topic.domain != "persistent":
            raise RegistryError(f"{topic}: only persistent topics can save their previous strategy")
        # Brokers do not respond to a property for a topic that does not exist.
        self._count_partitions(topic)
        super().relax(topic)

    def _list_namespaces(self) -> Iterator[NamespaceName]:
        """Yield every namespace of every tenant, except the brokers' own tenants; only a superuser may list tenants."""
        try:
            tenants = self._connection.get("tenants", [str])
        except NotPermitted as error:
            error.fix = (
                "name the namespaces with `--namespace TENANT/NAMESPACE` (import, drift): the administrator of their tenant may read them; "
                f"or {error.fix}"
            )
            raise
        for tenant in tenants:
            if tenant not in _SYSTEM_TENANTS:
                for text in self._connection.get(f"namespaces/{quote(tenant, safe='')}", [str], absent=[]):
                    # Old names include a cluster; such a namespace cannot be declared.
                    with suppress(ValueError):
                        yield NamespaceName.parse(text)

    def _read_namespace(self, name: NamespaceName, settings: frozenset[str] = frozenset()) -> Namespace | None:
        fields = self._connection.get(f"namespaces/{name}", _POLICIES_SHAPE, absent=None)
        if fields is None:
            self._strategies[name] = None
            return None
        policies = Policies(
            parse_strategy(fields.get("schema_compatibility_strategy")),
            fields.get("is_allow_auto_update_schema"),
            fields.get("schema_validation_enforced"),
            settings=pulsar_settings.parse_settings(fields, settings, f"namespace {name}"),
        )
        self._strategies[name] = _NamespaceStrategies(
            find_strategy(policies), fields.get("schema_auto_update_compatibility_strategy")
        )
        clusters = pulsar_settings.parse_settings(fields, [REPLICATION], f"namespace {name}").get(REPLICATION, ())
        return Namespace(name, policies, deleted=bool(fields.get("deleted")), clusters=tuple(clusters))

    def _list_topics(self, namespace: NamespaceName, domain: str) -> dict[TopicName, bool] | None:
        """Return the namespace's topics of a domain and whether each is partitioned, or None without the namespace.

        Scalable topics count as not partitioned.

        The brokers' own topics are left out. A non-persistent topic without partitions exists only while a broker has it loaded.
        """
        if domain == "topic":
            return dict.fromkeys(self._list_scalable(namespace), False)
        listed = self._connection.get(f"{domain}/{namespace}", [str], absent=None)
        if listed is None:
            return None
        partitioned_topics = self._connection.get(f"{domain}/{namespace}/partitioned", [str], absent=[])
        topics = dict.fromkeys(_parse_topics(text for text in listed if not _PARTITION_SUFFIX.search(text)), False)
        return {**topics, **dict.fromkeys(_parse_topics(partitioned_topics), True)}

    def _list_scalable(self, namespace: NamespaceName) -> list[TopicName]:
        """Return the namespace's scalable topics. Brokers before 5.0 do not support them."""
        if self.release < Release.R5_0:
            return []
        listed = self._connection.get(f"scalable/{namespace}", [str], absent=[])
        return [*_parse_topics(listed)]

    def _find_common_policies(
        self, topics: Iterable[TopicName], namespaces: Mapping[NamespaceName, Namespace]
    ) -> dict[NamespaceName, Policies]:
        """Return the policies that all topics of a namespace share, for namespaces with several of the existing `topics`.

        Brokers store topic policies as messages of one topic in the namespace. While that topic is empty, no topic has topic policies, so
        reading the policies of one topic is enough.
        """
        topics_by_namespace: dict[NamespaceName, list[TopicName]] = {}
        for name in topics:
            topics_by_namespace.setdefault(name.namespace_name, []).append(name)

        def have_no_policies(names: list[TopicName]) -> list[TopicName] | None:
            path = f"persistent/{names[0].namespace_name}/__change_events"
            return names if pulsar_settings.is_topic_empty(self._connection, path) else None

        candidates = [names for names in topics_by_namespace.values() if len(names) > 1]
        groups = [names for names in self._connection.map_in_threads(have_no_policies, candidates) if names]
        if not groups or not self._settings.keep_policies_as_messages():
            return {}

        def read_first(names: list[TopicName]) -> tuple[NamespaceName, Policies]:
            namespace = names[0].namespace_name
            return namespace, self._read_own_policies(names[0], namespaces.get(namespace))

        return dict(self._connection.map_in_threads(read_first, groups))

    def _count_partitions(self, name: TopicName) -> int | None:
        """Return the number of partitions, or None if the topic is not partitioned; raise RegistryError if it does not exist."""
        count: int = self._connection.get(f"{_make_path(name)}/partitions", {"partitions": int})["partitions"]
        if count < 0:
            raise RegistryError(f"{name}: the registry reports {count} partitions")
        return count or None

    def _read_topic_policies(
        self,
        name: TopicName,
        settings: frozenset[str] = frozenset(),
        schema_policies: AbstractSet[str] = frozenset(SCHEMA_POLICIES),
    ) -> Policies:
        """Return the topic's own policies; they are unset if the topic does not exist or cannot have policies."""
        if name.is_scalable:
            return _UNSET_POLICIES
        path = _make_path(name)
        own = enforced = None
        if "schema_compatibility_strategy" in schema_policies:
            own = self._connection.get(f"{path}/schemaCompatibilityStrategy", str | None, absent=None)
        if "schema_validation_enforced" in schema_policies:
            enforced = self._connection.get(f"{path}/schemaValidationEnforced", bool | None, absent=None)
        values = pulsar_settings.read_topic_settings(self._connection, path, settings)
        return Policies(parse_strategy(own), schema_validation_enforced=enforced, settings=values)

    def _read_own_policies(
        self, name: TopicName, namespace: Namespace | None, settings: frozenset[str] = frozenset()
    ) -> Policies:
        """Return the topic's own policies; without the policy, `schema_validation_enforced` is None, for which brokers answer false."""
        policies = self._read_topic_policies(name, settings)
        if policies.schema_validation_enforced is not False:
            return policies
        # With `applied`, brokers answer with the value of the namespace for a topic without the policy.
        is_enforced = namespace is None or namespace.policies.schema_validation_enforced
        path = f"{_make_path(name)}/schemaValidationEnforced?applied=true"
        if is_enforced and not self._connection.get(path, bool | None, absent=None):
            return policies
        return replace(policies, schema_validation_enforced=None)

    def _set_policies(self, policies: Mapping[str, Any], path: str, *, of: str) -> None:
        for policy, value in policies.items():
            method, endpoint = _SETTERS[policy]
            self._connection.change(method, f"{path}/{endpoint}", value, of=of)

    def _read_own_strategy(self, topic: TopicName) -> CompatibilityStrategy:
        return self._read_topic_policies(topic).schema_compatibility_strategy or CompatibilityStrategy.UNDEFINED

    def are_updates_allowed(self, namespace: NamespaceName) -> bool:
        """See `Relaxing.are_updates_allowed`."""
        # Brokers accept uploads over the admin API even if this is false (measured on 4.0.7 and 4.2.4).
        stored = self._read_namespace(namespace)
        own = stored.policies.is_allow_auto_update_schema if stored else True
        return self.defaults.is_allow_auto_update_schema if own is None else own

    def _property(self, name: NamespaceName | TopicName, key: str) -> str | None:
        if isinstance(name, TopicName) and name.domain != "persistent":
            return None
        properties = self._connection.get(f"{_make_path(name)}/properties", dict | None, absent=None) or {}
        value = properties.get(key)
        if value is not None and not isinstance(value, str):
            raise RegistryError(f"{name}: the property {key} is not a string")
        return value

    def _set_property(self, name: NamespaceName | TopicName, key: str, value: str | None) -> None:
        if value is not None:
            self._connection.change("PUT", f"{_make_path(name)}/properties", {key: value})
        elif isinstance(name, TopicName):
            self._connection.change("DELETE", f"{_make_path(name)}/properties?key={key}")
        else:
            self._connection.change("DELETE", f"{_make_path(name)}/property/{key}")

    def _wait_for_clients(self) -> None:
        time.sleep(self._waits.connects_follow_s)


def _make_path(name: NamespaceName | TopicName) -> str:
    if isinstance(name, NamespaceName):
        return f"namespaces/{name}"
    resource = "scalable" if name.is_scalable else name.domain
    return f"{resource}/{name.tenant}/{name.namespace}/{quote(name.topic, safe='')}"


def _parse_topics(texts: Iterable[str]) -> Iterator[TopicName]:
    for text in texts:
        # Older brokers accepted names that Pulsar rejects today; such a topic cannot be declared.
        with suppress(ValueError):
            name = TopicName.parse(text)
            if not name.topic.startswith("__"):
                yield name


def read_clients(connection: AdminConnection, path: str) -> TopicClients:
    """Return the clients of the topic at `path`, none for a topic that does not exist.

    A client of a partitioned topic is connected to several partitions, with different names. So connections from one address
    with the same role, subscription and version count as one client.

    Raises:
        RegistryError: if the registry cannot have clients.
    """
    metadata = connection.get(f"{path}/partitions", {"partitions": int}, absent=None)
    if metadata is None:
        return TopicClients()
    is_partitioned = metadata["partitions"] > 0
    request = f"{path}/partitioned-stats?perPartition=true" if is_partitioned else f"{path}/stats"
    reply = connection.send("GET", request)
    if reply.status == 501:
        raise RegistryError(
            f"{connection.url} is `schemactl serve`, which has no clients: they connect to brokers",
            fix="ask a target whose registry is a Pulsar cluster",
        )
    if reply.status == 404:
        # No client has used the topic since its broker started, or it was deleted in between.
        return TopicClients()
    connection.expect(reply, f"GET {request}")
    if not is_partitioned:
        stats = connection.read_json(reply, f"GET {request}", _STATS_SHAPE)
        return TopicClients(tuple(_list_clients(stats)), _sum_backlogs([stats]))
    partitions = connection.read_json(reply, f"GET {request}", {"partitions": {"*": _STATS_SHAPE}})[
        "partitions"
    ].values()
    clients: dict[tuple[Any, ...], ConnectedClient] = {}
    for client in (client for stats in partitions for client in _list_clients(stats)):
        key = client.role, client.subscription, client.address, client.version
        known_client = clients.setdefault(key, client)
        clients[key] = known_client._replace(name=min(known_client.name, client.name))
    return TopicClients(tuple(clients.values()), _sum_backlogs(partitions))


def _sum_backlogs(partitions: Iterable[dict[str, Any]]) -> dict[str, int]:
    backlogs: Counter[str] = Counter()
    for stats in partitions:
        backlogs.update(
            {name: subscription.get("msgBacklog") or 0 for name, subscription in stats["subscriptions"].items()}
        )
    return dict(backlogs)


def _list_clients(stats: dict[str, Any]) -> Iterator[ConnectedClient]:
    for producer in stats["publishers"]:
        yield _parse_client("producer", producer.get("producerName"), "", producer)
    for name, subscription in stats["subscriptions"].items():
        # Only readers have subscriptions that are not durable.
        role = "reader" if subscription.get("isDurable") is False else "consumer"
        for consumer in subscription["consumers"]:
            yield _parse_client(role, consumer.get("consumerName"), name, consumer)


def _parse_client(role: Any, name: str | None, subscription: str, fields: dict[str, Any]) -> ConnectedClient:
    version = (fields.get("metadata") or {}).get(VERSION_PROPERTY, "")
    is_number = version.isascii() and version.isdecimal() and len(version) <= _MAX_VERSION_DIGITS
    return ConnectedClient(
        role,
        name or "",
        subscription,
        fields.get("address") or "",
        fields.get("connectedSince") or "",
        fields.get("clientVersion") or "",
        int(version) if is_number else None,
    )
