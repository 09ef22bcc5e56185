"""Serve the endpoints of single policies, and read the policies with which a namespace is created.

The registry keeps the settings of `SETTINGS`. Every other policy is unset: its endpoint returns the value of a broker without
configuration, and a request that sets it is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from starlette.responses import Response

from schemactl.core.policies import REPLICATION, SETTINGS, CompatibilityStrategy, Policies, Setting
from schemactl.core.schema import Release
from schemactl.registry.embedded import StoredNamespace
from schemactl.registry.server.cluster import NAME
from schemactl.registry.server.http import (
    AdminCall,
    Endpoint,
    ErrorPage,
    RestError,
    Unexpected,
    read,
    read_needed,
    read_strategy,
    respond_empty,
    respond_json,
    to_boolean,
    to_integer,
    to_object,
    to_strings,
)
from schemactl.registry.server.topics import require_topic, require_topic_with_policies, set_topic_policies

UNDEFINED = CompatibilityStrategy.UNDEFINED

_DATA: Final = "org.apache.pulsar.common.policies.data"

_Place = Literal["namespace", "topic", "creation"]
"""The endpoint of a setting: of a namespace, of a topic, or the creation of a namespace."""

_RETENTION, _TTL, _COMPACTION = "retention_policies", "message_ttl_in_seconds", "compaction_threshold"
_DEDUPLICATION, _INACTIVE_TOPICS = "deduplicationEnabled", "inactive_topic_policies"

_ZERO_LIMIT: Final = (
    "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a non-zero value. "
    "Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits must be set to 0."
)

_INT: Final = re.compile(r"[+-]?[0-9]{1,10}")

_DEFAULT_BUNDLES: Final = {Release.R4_0: 4, Release.R4_2: 4, Release.R5_0: 32}
"""The number of bundles of a new namespace (defaultNumberOfNamespaceBundles)."""
_MAX_BUNDLES: Final = 10_000
"""Brokers allow 2^32; without a lower limit, one request could exhaust the server."""

_UNSET: Final = (None, False, "", "0", "None")
"""Values that mean an unset policy: Java's and Go's admin clients send them for policies without a value."""

_OTHER_POLICIES: Final = (
    *("auth_policies", "allowed_clusters", "backlog_quota_map", "clusterDispatchRate", "topicDispatchRate"),
    *("subscriptionDispatchRate", "replicatorDispatchRate", "clusterSubscribeRate", "persistence"),
    *("autoTopicCreationOverride", "autoSubscriptionCreationOverride", "publishMaxMessageRate"),
    *("latency_stats_sample_rate", "subscription_expiration_time_minutes", "deleted", "encryption_required"),
    *("delayed_delivery_policies", "subscription_auth_mode", "max_producers_per_topic", "max_consumers_per_topic"),
    *("max_consumers_per_subscription", "max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription"),
    *("max_subscriptions_per_topic", "offload_threshold", "offload_threshold_in_seconds", "offload_deletion_lag_ms"),
    *("max_topics_per_namespace", "offload_policies", "deduplicationSnapshotIntervalSeconds"),
    *("subscription_types_enabled", "allowed_topic_property_keys_for_metrics", "resource_group_name", "migrated"),
    *("dispatcherPauseOnAckStatePersistentEnabled", "entryFilters", "antiAffinityGroup"),
)
"""The fields of Policies that the registry does not keep."""

_OF_NAMESPACES: Final[dict[str, Any]] = {
    **dict.fromkeys(
        (
            *("antiAffinity", "autoSubscriptionCreation", "autoTopicCreation", "deduplicationSnapshotInterval"),
            *("delayedDelivery", "dispatchRate", "entryFilters", "maxConsumersPerSubscription", "maxConsumersPerTopic"),
            *("maxProducersPerTopic", "maxSubscriptionsPerTopic", "maxUnackedMessagesPerConsumer"),
            *("maxUnackedMessagesPerSubscription", "offloadDeletionLagMs", "offloadPolicies", "persistence"),
            *("persistence/bookieAffinity", "publishRate", "replicatorDispatchRate", "resourcegroup", "subscribeRate"),
            *("subscriptionDispatchRate", "subscriptionExpirationTime"),
        )
    ),
    "allowedClusters": [],
    "backlogQuotaMap": {},
    "dispatcherPauseOnAckStatePersistent": False,
    "encryptionRequired": False,
    "maxTopicsPerNamespace": 0,
    "offloadThreshold": -1,
    "offloadThresholdInSeconds": -1,
    "permissions": {},
    "permissions/subscription": {},
    "subscriptionAuthMode": "None",
    "subscriptionTypesEnabled": [],
}
"""The values of other policies of a namespace, by path; None is an empty body (measured on 4.0.7 and 4.2.4)."""

_OF_TOPICS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        (
            *("autoSubscriptionCreation", "deduplicationSnapshotInterval", "delayedDelivery", "dispatchRate"),
            *("entryFilters", "maxConsumers", "maxConsumersPerSubscription", "maxMessageSize", "maxProducers"),
            *("maxSubscriptionsPerTopic", "maxUnackedMessagesOnConsumer", "maxUnackedMessagesOnSubscription"),
            *("offloadPolicies", "persistence", "publishRate", "replicatorDispatchRate", "shadowTopics"),
            *("subscribeRate", "subscriptionDispatchRate", "subscriptionTypesEnabled"),
        )
    ),
    "backlogQuotaMap": {},
    "dispatcherPauseOnAckStatePersistent": False,
}
"""The values of other policies of a topic, by path; None is an empty body."""

_WITHOUT_CONTENT: Final = frozenset(
    {
        *("maxConsumersPerSubscription", "maxMessageSize", "maxSubscriptionsPerTopic", "publishRate"),
        "subscriptionTypesEnabled",
    }
)
"""The policies of a topic that brokers return with the status 204 if they are unset."""

_OF_TOPICS_AND_PARTITIONS: Final[dict[str, Any]] = {"permissions": {}, "subscriptions": []}


def list_namespace_endpoints(release: Release) -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints of policies below a namespace, by path and method."""
    others = dict(_OF_NAMESPACES)
    if release >= Release.R4_2:
        others["allowedTopicPropertyKeysForMetrics"] = None
    return {
        **{f"/{setting.path}": _NamespaceSetting(setting).methods() for setting in SETTINGS.values()},
        **{f"/{path}": _OtherPolicy(value).methods() for path, value in others.items()},
        "/backlogQuota": {"POST": reject, "DELETE": remove_nothing},
        "/permissions/{role}": {"POST": reject, "DELETE": remove_nothing},
    }


def list_topic_endpoints(release: Release) -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints of policies below a topic, by path and method."""
    others = dict(_OF_TOPICS)
    if release >= Release.R4_2:
        others["subscriptionExpirationTime"] = None
    return {
        **{
            f"/{setting.topic_path}": _TopicSetting(setting).methods()
            for setting in SETTINGS.values()
            if setting.topic_path
        },
        **{f"/{path}": _OtherTopicPolicy(path, value).methods() for path, value in others.items()},
        **{f"/{path}": {"GET": partial(_get_of_topic, value)} for path, value in _OF_TOPICS_AND_PARTITIONS.items()},
        "/backlogQuota": {"POST": reject, "DELETE": remove_nothing},
        "/permissions/{role}": {"POST": reject, "DELETE": remove_nothing},
    }


def set_namespace_policies(call: AdminCall, policies: Policies) -> Response:
    """Set policies of the namespace in the path."""
    with call.registry.lock():
        call.require_namespace()
        call.registry.set_namespace_policies(call.namespace, policies)
    return respond_empty()


def read_policies(call: AdminCall, fields: dict[str, Any]) -> Policies:
    """Return the policies in the `fields` of the Policies with which a namespace is created.

    Raises:
        RestError: if a value is not valid, or sets a policy that the registry does not keep.
        BadRequest: if a value has another type.
    """
    others = [name for name in _OTHER_POLICIES if name in fields and not _is_unset(name, fields[name])]
    if others:
        raise RestError(
            501, f"schemactl serve does not keep {', '.join(others)}: create the namespace without these policies"
        )
    clusters = fields.get(REPLICATION, [])
    if clusters is None:
        variable = "policies" if call.registry.release < Release.R4_2 else "nsPolicies"
        raise Unexpected(
            f'Cannot invoke "java.util.Set.isEmpty()" because "{variable}.replication_clusters" is null',
            "java.lang.NullPointerException",
        )
    for cluster in to_strings(clusters):
        if cluster != NAME:
            reason = (
                f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant [{call.names['tenant']}]"
            )
            raise RestError(403, reason)
    allow = fields.get("is_allow_auto_update_schema")
    settings = {
        name: value
        for name, setting in SETTINGS.items()
        if name != REPLICATION and fields.get(name) is not None
        if (value := _read_setting(setting, fields[name], "creation", call.registry.release)) != UNDEFINED
    }
    return Policies(
        read_strategy(fields.get("schema_compatibility_strategy")),
        None if allow is None else to_boolean(allow),
        to_boolean(fields.get("schema_validation_enforced")),
        settings,
    )


def read_bundles(value: Any) -> list[str]:
    """Return the boundaries of the bundles in a BundlesData, or an empty list for the broker's default.

    Raises:
        RestError: if they do not cover the whole range of hashes, or are too many.
    """
    fields = to_object(value, f"{_DATA}.BundlesData") or {}
    count = to_integer(fields.get("numBundles"))
    if count <= 0:
        return []
    if count > _MAX_BUNDLES:
        raise RestError(400, f"Invalid number of bundles. Number of numBundles has to be at most {_MAX_BUNDLES}.")
    if not (texts := to_strings(fields.get("boundaries"))):
        return _split_range(count)
    try:
        boundaries = sorted({f"0x{int(text, 0):08x}" for text in texts})
    except ValueError:
        raise RestError(400, f"Invalid bundle boundaries: {', '.join(texts)}") from None
    if (boundaries[0], boundaries[-1]) != ("0x00000000", "0xffffffff"):
        raise RestError(
            400, f"Input bundles do not cover the whole hash range. first:{boundaries[0]}, last:{boundaries[-1]}"
        )
    return boundaries


def make_bundles(namespace: StoredNamespace, release: Release) -> dict[str, Any]:
    """Return the BundlesData of a namespace on a broker of this release."""
    boundaries = list(namespace.bundles) or _split_range(_DEFAULT_BUNDLES[release])
    return {"boundaries": boundaries, "numBundles": len(boundaries) - 1}


def _split_range(count: int) -> list[str]:
    """Return the boundaries of `count` bundles (PoliciesUtil.getBundles)."""
    size = (1 << 32) // count
    return [*(f"0x{index * size:08x}" for index in range(count)), "0xffffffff"]


def _is_unset(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_unset(name, member) for member in value.values())
    return value in _UNSET or value == [] or (name.startswith("offload_") and value == "-1")


def _read_setting(setting: Setting, value: Any, place: _Place, release: Release) -> Any:
    """Convert a JSON value to the value of a setting at a broker of this release, or to UNDEFINED if it removes the setting.

    Raises:
        RestError: if brokers reject the value, or the registry cannot keep it.
        BadRequest: if Jackson cannot convert the value.
    """
    if setting.name == _RETENTION:
        value = to_object(value, f"{_DATA}.RetentionPolicies")
        if value is not None:
            time, size = (
                to_integer(value.get("retentionTimeInMinutes")),
                to_integer(value.get("retentionSizeInMB"), "long"),
            )
            if time < -1 or size < -1:
                raise RestError(400, f"Invalid retention policy: {'time' if time < -1 else 'size'} limit must be >= -1")
            if 0 in (time, size) and (time, size) != (0, 0):
                raise RestError(400, _ZERO_LIMIT)
            value = {"retentionTimeInMinutes": time, "retentionSizeInMB": size}
    elif setting.name == _TTL:
        value = to_integer(value)
        if value < 0:
            suffix = ", message TTL must >= 0" if place == "namespace" else ""
            raise RestError(412, f"Invalid value for message TTL{suffix}")
    elif setting.name == _COMPACTION:
        value = to_integer(value, "long")
        if value < 0:
            reason = (
                "Invalid value for compactionThreshold" if place == "topic" else "compactionThreshold must be 0 or more"
            )
            raise RestError(412, reason)
    elif setting.name == _DEDUPLICATION:
        value = None if value is None else to_boolean(value)
    elif setting.name == _INACTIVE_TOPICS:
        value = to_object(value, f"{_DATA}.InactiveTopicPolicies")
        if value is not None:
            seconds = to_integer(value.get("maxInactiveDurationSeconds"))
            deletes = to_boolean(value.get("deleteWhileInactive"))
            value = {**value, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": deletes}
    elif setting.name == REPLICATION:
        value = _read_clusters(value, place, release)
    if value is None:
        return UNDEFINED
    try:
        return setting.normal(value)
    except ValueError as error:
        raise RestError(412, str(error)) from None


def _read_clusters(value: Any, place: _Place, release: Release) -> list[str]:
    clusters = to_strings(value)
    if not clusters:
        raise RestError(412, "ClusterIds should not be null or empty")
    if "global" in clusters and release < Release.R4_2:
        raise RestError(412, "Cannot specify global in the list of replication clusters")
    if place == "topic" and NAME not in clusters:
        raise RestError(412, "Can not remove local cluster from the local topic-level replication clusters policy")
    for cluster in clusters:
        if cluster != NAME:
            raise RestError(403, f"Invalid cluster id: {cluster}")
    return clusters


class _NamespaceSetting:
    """The endpoints of one setting of a namespace."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        removed = {"DELETE": self.remove} if self._setting.removable else {}
        return {"GET": self.get, self._setting.method: self.put, **removed}

    def get(self, call: AdminCall) -> Response:
        """GET: the value, or an empty body if unset; the replication clusters always include this cluster."""
        value = call.require_namespace().policies.settings.get(self._setting.name)
        if value is None and self._setting.name == REPLICATION:
            value = [NAME]
        return respond_empty(200) if value is None else respond_json(value)

    def put(self, call: AdminCall) -> Response:
        """POST or PUT."""
        is_primitive = self._setting.name in (_TTL, _COMPACTION, _DEDUPLICATION)
        value = read_needed(call.body) if is_primitive else read(call.body)
        response = self._set(call, _read_setting(self._setting, value, "namespace", call.registry.release))
        return respond_empty(200) if self._setting.name == REPLICATION else response

    def remove(self, call: AdminCall) -> Response:
        """DELETE."""
        return self._set(call, UNDEFINED)

    def _set(self, call: AdminCall, value: Any) -> Response:
        return set_namespace_policies(call, self._policies(value))

    def _policies(self, value: Any) -> Policies:
        return Policies(settings={self._setting.name: value})


class _TopicSetting(_NamespaceSetting):
    """The endpoints of one setting of a topic."""

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        return {"GET": self.get, "POST": self.put, "DELETE": self.remove}

    def get(self, call: AdminCall) -> Response:
        """GET: the value, or an empty body if unset; with `applied`, the value in force."""
        name = self._setting.name
        value = require_topic_with_policies(call).policies.settings.get(name)
        if value is None and call.has_flag("applied"):
            namespace = call.registry.require_namespace(call.topic.namespace_name)
            value = namespace.policies.settings.get(name, call.registry.defaults.settings.get(name))
            if value is None and name == REPLICATION:
                value = [NAME]
        return respond_empty(200) if value is None else respond_json(value)

    def put(self, call: AdminCall) -> Response:
        """POST."""
        value: Any
        if self._setting.topic_query:
            value = call.query.get(self._setting.topic_query)
            if value is None:
                return self.remove(call)
            if not _INT.fullmatch(value) or abs(int(value)) >= 1 << 31:
                # Jersey finds no endpoint for a query parameter that it cannot convert.
                raise ErrorPage(404)
        elif self._setting.name == _COMPACTION:
            value = read_needed(call.body)
        else:
            value = read(call.body)
        return self._set(call, _read_setting(self._setting, value, "topic", call.registry.release))

    def _set(self, call: AdminCall, value: Any) -> Response:
        return set_topic_policies(call, self._policies(value))


class _OtherPolicy:
    """The endpoints of a policy of namespaces that the registry does not keep."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        return {"GET": self.get, "POST": reject, "PUT": reject, "DELETE": remove_nothing}

    def get(self, call: AdminCall) -> Response:
        """GET: the value of a namespace without policies."""
        call.require_namespace()
        return respond_empty(200) if self._value is None else respond_json(self._value)


class _OtherTopicPolicy(_OtherPolicy):
    """The endpoints of a policy of topics that the registry does not keep."""

    def __init__(self, path: str, value: Any) -> None:
        super().__init__(value)
        self._status = 204 if path in _WITHOUT_CONTENT else 200

    def get(self, call: AdminCall) -> Response:
        """GET: the value of a topic without policies."""
        require_topic_with_policies(call)
        return respond_empty(self._status) if self._value is None else respond_json(self._value)


def _get_of_topic(value: Any, call: AdminCall) -> Response:
    require_topic(call)
    return respond_json(value)


def reject(call: AdminCall) -> Response:
    """POST or PUT of a policy that the registry does not keep."""
    _require_owner(call)
    policy = call.path.split("/")[7 if "topic" in call.names else 6]
    raise RestError(501, f"schemactl serve does not keep {policy}")


def remove_nothing(call: AdminCall) -> Response:
    """DELETE of a policy that is never set."""
    _require_owner(call)
    return respond_empty()


def _require_owner(call: AdminCall) -> None:
    """Raise RestError unless the namespace or topic in the path exists and can have policies."""
    if "topic" in call.names:
        require_topic_with_policies(call)
    else:
        call.require_namespace()
