"""`Registry` over a cluster's admin API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from schemactl.errors import RegistryError
from schemactl.model import (
    BrokerDefaults,
    Catalog,
    CompatibilityStrategy,
    Namespace,
    NamespaceName,
    Policies,
    Release,
    SchemaInfo,
    SchemaVersion,
    Topic,
    TopicName,
)
from schemactl.registry.base import OnProgress, Scope, Warn, no_progress, no_warning
from schemactl.registry.pulsar import namespaces as _namespaces
from schemactl.registry.pulsar import schemas, topics
from schemactl.registry.pulsar.connection import CONNECTIONS, AdminConnection
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.verdicts import Answer

_Asked = TypeVar("_Asked")
_Told = TypeVar("_Told")

_AT_A_TIME = 32
_NOT_ALLOWED = frozenset({401, 403})
_LONGEST_VERSION = 64
_VERSION = re.compile(r"[\w.+-]+", re.ASCII)
_PROBE = "schemactl-asks-for-the-strategy"
"""A topic that is only ever asked about: a test of compatibility needs none, and makes none."""


class PulsarRegistry:
    """Implements `Registry` with what a Pulsar 4.0 or newer offers over HTTP.

    Args:
        url: of the admin API; several of one cluster separated by commas.
        release: to answer as, where the cluster does not tell its own.
        defaults: stand for the broker's settings, where the role may not ask for them.
        progress: told how many topics of how many have been read, now and then.
        warn: told when the cluster is waited for.
    """

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials = Credentials(),  # noqa: B008  frozen
        release: Release = Release.R4_0,
        defaults: BrokerDefaults = BrokerDefaults(),  # noqa: B008  frozen
        progress: OnProgress = no_progress,
        warn: Warn = no_warning,
    ) -> None:
        self.url = url
        self._connection = AdminConnection(url, credentials, warn)
        self._fallback = release
        self._defaults = defaults
        self._progress = progress
        self._version: str | None = None
        self._broker_strategy: CompatibilityStrategy | None = None

    @property
    def version(self) -> str:
        """The release the brokers say they are, such as "4.0.7"; "" where they do not tell."""
        if self._version is None:
            reply = self._connection.send("GET", "brokers/version")
            if reply.status == 404:
                raise RegistryError(
                    f"{self.url} answers, but not as Pulsar's admin API does: it has no GET brokers/version",
                    fix="check that `registry` of the target is the address of the admin API, without a path",
                )
            if not reply.fine and reply.status not in _NOT_ALLOWED:
                self._connection.expect(reply, "GET brokers/version")
            told = reply.body[:_LONGEST_VERSION].decode("ascii", "replace").strip().strip('"')
            self._version = told if reply.fine and _VERSION.fullmatch(told) else ""
        return self._version

    @property
    def release(self) -> Release:
        """The known release that the brokers' is nearest to, from below."""
        return nearest_release(self.version) or self._fallback

    def close(self) -> None:
        """Connections are closed."""
        self._connection.close()

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        places = {(name.namespace_name, name.domain) for name in scope.topics}
        found = self._each(lambda name: _namespaces.read(self._connection, name), scope.namespaces)
        spaces = {space.name: space for space in found if space is not None}
        listed = self._each(lambda place: (place, topics.existing(self._connection, *place)), places)
        existing = dict(listed)

        def read_topic(name: TopicName) -> Topic | None:
            there = existing[name.namespace_name, name.domain]
            return self._topic(name, partitioned=_partitioned(name, there))

        catalog = {}
        for number, topic in enumerate(self._each(read_topic, scope.topics), 1):
            self._progress(number, len(scope.topics))
            if topic is not None:
                catalog[topic.name] = topic
        return Catalog(spaces, catalog)

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.everything`. A topic that exists only by its schemas cannot be listed."""
        wanted = namespaces if namespaces is not None else frozenset(_namespaces.names(self._connection))

        def topics_of(name: NamespaceName) -> tuple[NamespaceName, list[TopicName]] | None:
            found = [
                topics.existing(self._connection, name, domain) for domain in ("persistent", "non-persistent")
            ]
            return None if found[0] is None else (name, [topic for some in found for topic in some or ()])

        existing = [one for one in self._each(topics_of, wanted) if one is not None]
        return Scope(
            frozenset(name for name, _ in existing),
            frozenset(topic for _, some in existing for topic in some),
        )

    def create_namespace(self, name: NamespaceName) -> None:
        """See `Registry.create_namespace`."""
        _namespaces.create(self._connection, name)

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`."""
        _namespaces.set_policies(self._connection, name, policies)

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`."""
        topics.create(self._connection, name, partitions)

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        topics.grow(self._connection, name, partitions)

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`."""
        topics.set_policies(self._connection, name, policies)

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`."""
        return schemas.put(self._connection, topic, info)

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """See `Registry.get_schema`."""
        return schemas.get(self._connection, topic, number)

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        return schemas.test(self._connection, topic, info)

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. A soft delete whose answer was lost is not repeated."""
        return schemas.delete(self._connection, topic, force=force)

    def delete_topic(self, topic: TopicName) -> None:
        """See `Registry.delete_topic`. Only a topic that exists is deleted; of another, the schemas are."""
        if not topics.delete(self._connection, topic):
            schemas.delete(self._connection, topic, force=True)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        own = topics.policies(self._connection, topic).schema_compatibility_strategy
        space = _namespaces.read(self._connection, topic.namespace_name)
        for strategy in (own, space.policies.schema_compatibility_strategy if space else None):
            if strategy not in (None, CompatibilityStrategy.UNDEFINED):
                return strategy
        return self.default_strategy(topic.namespace_name)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`.

        The broker's own setting is asked for where the role is a superuser's, and tried out where it is the tenant's
        administrator; for any other role, what the project file says stands for it.
        """
        mapped = _namespaces.auto_update_strategy(self._connection, namespace)
        if mapped is not None:
            return mapped
        if self._broker_strategy is None:
            self._broker_strategy = self._configured() or self._tried(namespace)
        return self._broker_strategy or self._defaults.schema_compatibility_strategy

    def relax(self, topic: TopicName) -> None:
        """See `Registry.relax`. What it was is kept in a property of the topic."""
        if topic.domain != "persistent":
            raise RegistryError(f"{topic}: only persistent topics can keep what their strategy was")
        topics.relax(self._connection, topic)

    def relaxed(self, topic: TopicName) -> CompatibilityStrategy | None:
        """See `Registry.relaxed`."""
        return topics.relaxed(self._connection, topic)

    def restore(self, topic: TopicName) -> None:
        """See `Registry.restore`."""
        topics.restore(self._connection, topic)

    def _each(self, ask: Callable[[_Asked], _Told], about: Iterable[_Asked]) -> Iterator[_Told]:
        """What is told about each, in the order of `about`."""
        asked = list(about)
        if len(asked) < 2:
            yield from map(ask, asked)
            return
        # Handing one topic after the other to a thread costs as much as a tenth of its requests.
        size = max(1, min(_AT_A_TIME, len(asked) // CONNECTIONS))
        parts = [asked[start : start + size] for start in range(0, len(asked), size)]
        with self._connection.threads() as threads:
            for told in threads.map(lambda part: [ask(one) for one in part], parts):
                yield from told

    def _topic(self, name: TopicName, *, partitioned: bool | None) -> Topic | None:
        """The topic; `partitioned` None: it does not exist, but may have schemas."""
        versions = schemas.stored(self._connection, name)
        current = versions[-1].info if versions else None
        if partitioned is None:
            return Topic(name, current, versions, topics.UNSET, deleted=True) if versions else None
        count = topics.partitions(self._connection, name) if partitioned else None
        return Topic(name, current, versions, topics.policies(self._connection, name), partitions=count)

    def _configured(self) -> CompatibilityStrategy | None:
        reply = self._connection.send("GET", "brokers/configuration/runtime")
        if not reply.fine:
            return None
        shape = {"schemaCompatibilityStrategy": str | None}
        told = self._connection.told(reply, "GET brokers/configuration/runtime", shape)
        strategy = _namespaces.strategy(told.get("schemaCompatibilityStrategy"))
        # PulsarService takes UNDEFINED in its settings for FULL.
        return CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy

    def _tried(self, name: NamespaceName) -> CompatibilityStrategy | None:
        space: Namespace | None = _namespaces.read(self._connection, name)
        if (
            space is None
            or space.policies.schema_compatibility_strategy is not CompatibilityStrategy.UNDEFINED
        ):
            return None
        return schemas.strategy_in_force(self._connection, TopicName(name.tenant, name.name, _PROBE))


def nearest_release(version: str) -> Release | None:
    """The newest known release that is not newer than `version`; None: `version` is no release, or older than all."""
    parts = version.split(".")[:2]
    if not all(part.isdecimal() and len(part) <= _LONGEST_VERSION for part in parts):
        return None
    wanted = tuple(map(int, parts))
    known = [release for release in Release if tuple(map(int, release.split("."))) <= wanted]
    return known[-1] if known else None


def _partitioned(name: TopicName, existing: dict[TopicName, bool] | None) -> bool | None:
    if existing is None:
        return None
    if name.domain == "non-persistent":
        # Brokers make such a topic when a client comes, and forget it with the last one: it is as good as there.
        return existing.get(name, False)
    return existing.get(name)
