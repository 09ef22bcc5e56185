"""Serve the endpoints of namespaces and of their policies about schemas."""

from __future__ import annotations

from starlette.responses import Response

from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.registry.server.cluster import NAME
from schemactl.registry.server.http import (
    AUTO_UPDATE_NAMES,
    AdminCall,
    ErrorPage,
    RestError,
    read,
    read_auto_update,
    read_needed,
    read_object,
    read_strategy,
    respond_empty,
    respond_json,
    respond_text,
    to_boolean,
    to_texts,
)
from schemactl.registry.server.policies import make_bundles, read_bundles, read_policies, set_namespace_policies
from schemactl.registry.server.topics import expand_partitions, read_properties

UNDEFINED = CompatibilityStrategy.UNDEFINED


def list_namespaces(call: AdminCall) -> Response:
    """GET namespaces/{tenant}."""
    tenant = call.names["tenant"]
    if call.registry.tenant(tenant) is None:
        raise RestError(404, "Tenant not found")
    return respond_json([str(name) for name in call.registry.namespaces() if name.tenant == tenant])


def get_policies(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}: all policies, with Pulsar's defaults of policies that are not stored."""
    namespace = call.require_namespace()
    auto_update = namespace.auto_update_strategy
    return respond_json(
        {
            "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
            "replication_clusters": [NAME],
            "allowed_clusters": [],
            "bundles": make_bundles(namespace, call.registry.release),
            "backlog_quota_map": {},
            "clusterDispatchRate": {},
            "topicDispatchRate": {},
            "subscriptionDispatchRate": {},
            "replicatorDispatchRate": {},
            "clusterSubscribeRate": {},
            "publishMaxMessageRate": {},
            "latency_stats_sample_rate": {},
            "deleted": False,
            "encryption_required": False,
            "subscription_auth_mode": "None",
            "offload_threshold": -1,
            "offload_threshold_in_seconds": -1,
            **({"schema_auto_update_compatibility_strategy": AUTO_UPDATE_NAMES[auto_update]} if auto_update else {}),
            "schema_compatibility_strategy": namespace.policies.schema_compatibility_strategy,
            "is_allow_auto_update_schema": call.registry.are_updates_allowed(call.namespace),
            "schema_validation_enforced": bool(namespace.policies.schema_validation_enforced),
            **namespace.policies.settings,
            "subscription_types_enabled": [],
            "properties": dict(namespace.properties),
            "migrated": False,
        }
    )


def create(call: AdminCall) -> Response:
    """PUT {tenant}/{namespace}: with the policies in the body."""
    fields = read_object(call.body, "org.apache.pulsar.common.policies.data.Policies") or {}
    name, registry = call.namespace, call.registry
    with call.registry.lock():
        if registry.tenant(name.tenant) is None:
            raise RestError(404, "Tenant does not exist")
        policies = read_policies(call, fields)
        auto_update = read_auto_update(fields.get("schema_auto_update_compatibility_strategy"))
        properties = to_texts(fields.get("properties")) or {}
        boundaries = read_bundles(fields.get("bundles"))
        if registry.namespace(name) is not None:
            raise RestError(409, "Namespace already exists")
        registry.create_namespace(name)
        registry.set_namespace_policies(name, policies)
        registry.set_auto_update_strategy(name, auto_update)
        registry.set_namespace_properties(name, properties)
        if boundaries:
            registry.set_bundles(name, boundaries)
    return respond_empty()


def delete(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}: delete an empty namespace, without its schemas."""
    name, registry = call.namespace, call.registry
    if call.has_flag("force"):
        raise RestError(405, "Broker doesn't allow forced deletion of namespaces")
    with call.registry.lock():
        if registry.namespace(name) is None:
            raise RestError(404, f"Namespace {name} does not exist.")
        for topic_name in registry.topics(name):
            topic = registry.topic(topic_name)
            is_partitioned = topic is not None and topic.partitions is not None
            # An unpartitioned non-persistent topic does not block the deletion.
            if topic_name.domain != "non-persistent" or is_partitioned:
                raise RestError(409, "Cannot delete non empty namespace")
        registry.delete_namespace(name)
    return respond_empty()


def delete_bundle(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}/{bundle}: Pulsar routes the deletion of a policy here."""
    call.require_namespace()
    raise RestError(412, f"Invalid bundle range: {call.path.rpartition('/')[2]}")


def list_topics(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}/topics?mode=."""
    mode = call.query.get("mode", "PERSISTENT").upper()
    call.require_namespace()
    if mode not in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        raise ErrorPage(404)
    names = call.registry.topics(call.namespace)
    domains = [
        domain for domain in ("persistent", "non-persistent") if mode in ("ALL", domain.upper().replace("-", "_"))
    ]
    return respond_json([topic for domain in domains for topic in expand_partitions(call.registry, names, domain)])


def get_bundles(call: AdminCall) -> Response:
    """GET bundles."""
    return respond_json(make_bundles(call.require_namespace(), call.registry.release))


def get_strategy(call: AdminCall) -> Response:
    """GET schemaCompatibilityStrategy: the value, or "UNDEFINED" if unset."""
    return respond_json(call.require_namespace().policies.schema_compatibility_strategy)


def set_strategy(call: AdminCall) -> Response:
    """PUT schemaCompatibilityStrategy: an unknown name unsets it."""
    return set_namespace_policies(call, Policies(read_strategy(read(call.body))))


def get_auto_update_strategy(call: AdminCall) -> Response:
    """GET schemaAutoUpdateCompatibilityStrategy."""
    strategy = call.require_namespace().auto_update_strategy
    return respond_json(AUTO_UPDATE_NAMES[strategy]) if strategy else respond_empty()


def set_auto_update_strategy(call: AdminCall) -> Response:
    """PUT schemaAutoUpdateCompatibilityStrategy: an unknown name unsets it."""
    name, strategy = call.namespace, read_auto_update(read(call.body))
    with call.registry.lock():
        call.require_namespace()
        call.registry.set_auto_update_strategy(name, strategy)
    return respond_empty()


def get_allow_auto_update(call: AdminCall) -> Response:
    """GET isAllowAutoUpdateSchema: the value, or the broker's setting if unset."""
    call.require_namespace()
    return respond_json(call.registry.are_updates_allowed(call.namespace))


def set_allow_auto_update(call: AdminCall) -> Response:
    """POST isAllowAutoUpdateSchema: null is false; the policy cannot be unset."""
    return set_namespace_policies(call, Policies(is_allow_auto_update_schema=to_boolean(read_needed(call.body))))


def get_validation_enforced(call: AdminCall) -> Response:
    """GET schemaValidationEnforced."""
    return respond_json(bool(call.require_namespace().policies.schema_validation_enforced))


def set_validation_enforced(call: AdminCall) -> Response:
    """POST schemaValidationEnforced."""
    return set_namespace_policies(call, Policies(schema_validation_enforced=to_boolean(read_needed(call.body))))


def get_properties(call: AdminCall) -> Response:
    """GET properties."""
    return respond_json(dict(call.require_namespace().properties))


def set_properties(call: AdminCall) -> Response:
    """PUT properties: add properties."""
    with call.registry.lock():
        call.require_namespace()
        call.registry.set_namespace_properties(call.namespace, read_properties(call))
    return respond_empty()


def clear_properties(call: AdminCall) -> Response:
    """DELETE properties: delete all."""
    with call.registry.lock():
        keys = call.require_namespace().properties
        call.registry.set_namespace_properties(call.namespace, dict.fromkeys(keys))
    return respond_empty()


def get_property(call: AdminCall) -> Response:
    """GET property/{key}: the value without quotes, or an empty body."""
    return respond_text(call.require_namespace().properties.get(call.names["key"], ""))


def set_property(call: AdminCall) -> Response:
    """PUT property/{key}/{value}."""
    with call.registry.lock():
        call.require_namespace()
        call.registry.set_namespace_properties(call.namespace, {call.names["key"]: call.names["value"]})
    return respond_empty()


def delete_property(call: AdminCall) -> Response:
    """DELETE property/{key}: respond with the old value, or an empty body."""
    key = call.names["key"]
    with call.registry.lock():
        value = call.require_namespace().properties.get(key)
        call.registry.set_namespace_properties(call.namespace, {key: None})
    return respond_text(value or "")
