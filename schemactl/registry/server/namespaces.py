"""Serve the endpoints of namespaces and their policies, and of the settings of namespaces and topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from schemactl.core.names import TopicName
from schemactl.core.policies import REPLICATION, SETTINGS, CompatibilityStrategy, Policies, Setting
from schemactl.registry.embedded import StoredTopic
from schemactl.registry.server import topics as server_topics
from schemactl.registry.server.cluster import NAME
from schemactl.registry.server.http import (
    AUTO_UPDATE_NAMES,
    AdminCall,
    Endpoint,
    ErrorPage,
    Number,
    RestError,
    boolean,
    no_content,
    ok,
    plain,
    read,
    read_auto_update,
    read_needed,
    read_object,
    read_strategy,
)
from schemactl.registry.server.topics import expand_partitions, read_properties, require_topic_with_policies

UNDEFINED = CompatibilityStrategy.UNDEFINED


def list_namespaces(call: AdminCall) -> Response:
    """GET namespaces/{tenant}."""
    tenant = call.names["tenant"]
    if call.registry.tenant(tenant) is None:
        raise RestError(404, "Tenant not found")
    return ok([str(name) for name in call.registry.namespaces() if name.tenant == tenant])


def get_policies(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}: all policies, with Pulsar's defaults of policies that are not stored."""
    namespace = call.need_namespace()
    auto_update = namespace.auto_update_strategy
    return ok(
        {
            "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
            "replication_clusters": [NAME],
            "allowed_clusters": [],
            "bundles": {
                "boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"],
                "numBundles": 4,
            },
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
            "is_allow_auto_update_schema": call.registry.is_allow_auto_update_schema(call.namespace),
            "schema_validation_enforced": bool(namespace.policies.schema_validation_enforced),
            **namespace.policies.settings,
            "subscription_types_enabled": [],
            "properties": dict(namespace.properties),
            "migrated": False,
        }
    )


def create(call: AdminCall) -> Response:
    """PUT namespaces/{tenant}/{namespace}."""
    fields = read_object(call.body, "org.apache.pulsar.common.policies.data.Policies") or {}
    allow = fields.get("is_allow_auto_update_schema")
    policies = Policies(
        read_strategy(fields.get("schema_compatibility_strategy")),
        None if allow is None else boolean(allow),
        boolean(fields.get("schema_validation_enforced")),
    )
    auto_update = read_auto_update(fields.get("schema_auto_update_compatibility_strategy"))
    name, registry = call.namespace, call.registry
    with call.registry.exclusive():
        if registry.tenant(name.tenant) is None:
            raise RestError(404, "Tenant does not exist")
        if registry.namespace(name) is not None:
            raise RestError(409, "Namespace already exists")
        registry.create_namespace(name)
        registry.set_namespace_policies(name, policies)
        registry.set_auto_update_strategy(name, auto_update)
    return no_content()


def delete(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}: delete an empty namespace, without its schemas."""
    name, registry = call.namespace, call.registry
    if call.flag("force"):
        raise RestError(405, "Broker doesn't allow forced deletion of namespaces")
    with call.registry.exclusive():
        if registry.namespace(name) is None:
            raise RestError(404, f"Namespace {name} does not exist.")
        if any(_blocks_deletion(topic, registry.topic(topic)) for topic in registry.topics(name)):
            raise RestError(409, "Cannot delete non empty namespace")
        registry.delete_namespace(name)
    return no_content()


def _blocks_deletion(name: TopicName, topic: StoredTopic | None) -> bool:
    """Return whether a topic blocks the deletion of its namespace; an unpartitioned non-persistent topic does not."""
    return name.domain == "persistent" or (topic is not None and topic.partitions is not None)


def delete_bundle(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}/{bundle}: Pulsar routes the deletion of a policy here."""
    call.need_namespace()
    raise RestError(412, f"Invalid bundle range: {call.path.rpartition('/')[2]}")


def list_topics(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}/topics?mode=."""
    mode = call.query.get("mode", "PERSISTENT").upper()
    call.need_namespace()
    if mode not in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        raise ErrorPage(404)
    names = call.registry.topics(call.namespace)
    domains = [
        domain for domain in ("persistent", "non-persistent") if mode in ("ALL", domain.upper().replace("-", "_"))
    ]
    return ok([topic for domain in domains for topic in expand_partitions(call.registry, names, domain)])


def get_strategy(call: AdminCall) -> Response:
    """GET schemaCompatibilityStrategy: the value, or "UNDEFINED" if unset."""
    return ok(call.need_namespace().policies.schema_compatibility_strategy)


def set_strategy(call: AdminCall) -> Response:
    """PUT schemaCompatibilityStrategy: an unknown name unsets it."""
    return set_policies(call, Policies(read_strategy(read(call.body))))


def get_auto_update_strategy(call: AdminCall) -> Response:
    """GET schemaAutoUpdateCompatibilityStrategy."""
    strategy = call.need_namespace().auto_update_strategy
    return ok(AUTO_UPDATE_NAMES[strategy]) if strategy else no_content()


def set_auto_update_strategy(call: AdminCall) -> Response:
    """PUT schemaAutoUpdateCompatibilityStrategy: an unknown name unsets it."""
    name, strategy = call.namespace, read_auto_update(read(call.body))
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_auto_update_strategy(name, strategy)
    return no_content()


def get_allow_auto_update(call: AdminCall) -> Response:
    """GET isAllowAutoUpdateSchema: the value, or the broker's setting if unset."""
    call.need_namespace()
    return ok(call.registry.is_allow_auto_update_schema(call.namespace))


def set_allow_auto_update(call: AdminCall) -> Response:
    """POST isAllowAutoUpdateSchema: null is false; the policy cannot be unset."""
    return set_policies(call, Policies(is_allow_auto_update_schema=boolean(read_needed(call.body))))


def get_validation_enforced(call: AdminCall) -> Response:
    """GET schemaValidationEnforced."""
    return ok(bool(call.need_namespace().policies.schema_validation_enforced))


def set_validation_enforced(call: AdminCall) -> Response:
    """POST schemaValidationEnforced."""
    return set_policies(call, Policies(schema_validation_enforced=boolean(read_needed(call.body))))


def get_properties(call: AdminCall) -> Response:
    """GET properties."""
    return ok(dict(call.need_namespace().properties))


def set_properties(call: AdminCall) -> Response:
    """PUT properties: add properties."""
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_namespace_properties(call.namespace, read_properties(call))
    return no_content()


def delete_property(call: AdminCall) -> Response:
    """DELETE property/{key}: respond with the old value, or an empty body."""
    key = call.names["key"]
    with call.registry.exclusive():
        value = call.need_namespace().properties.get(key)
        call.registry.set_namespace_properties(call.namespace, {key: None})
    return plain(value or "")


def set_policies(call: AdminCall, policies: Policies) -> Response:
    """Set policies of the namespace in the path."""
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_namespace_policies(call.namespace, policies)
    return no_content()


def list_namespace_endpoints() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a namespace, by path and method."""
    return {f"/{setting.path}": _NamespaceSetting(setting).methods() for setting in SETTINGS.values()}


def list_topic_endpoints() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a topic, by path and method."""
    return {
        f"/{setting.topic_path}": _TopicSetting(setting).methods()
        for setting in SETTINGS.values()
        if setting.topic_path
    }


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
        value = call.need_namespace().policies.settings.get(self._setting.name)
        if value is None and self._setting.name == REPLICATION:
            value = [NAME]
        return no_content(200) if value is None else ok(value)

    def put(self, call: AdminCall) -> Response:
        """POST or PUT."""
        return self._set(call, self._parse(read(call.body)))

    def remove(self, call: AdminCall) -> Response:
        """DELETE."""
        return self._set(call, UNDEFINED)

    def _set(self, call: AdminCall, value: Any) -> Response:
        return set_policies(call, self._policies(value))

    def _policies(self, value: Any) -> Policies:
        return Policies(settings={self._setting.name: value})

    def _parse(self, body: Any) -> Any:
        try:
            value = self._setting.normal(_to_python(body))
        except ValueError as error:
            raise RestError(412, str(error)) from None
        if problem := self._setting.wrong(value):
            raise RestError(400, problem)
        return value


class _TopicSetting(_NamespaceSetting):
    """The endpoints of one setting of a topic."""

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        return {"GET": self.get, "POST": self.put, "DELETE": self.remove}

    def get(self, call: AdminCall) -> Response:
        """GET: the value, or an empty body if unset; with `applied`, the value in force."""
        name = self._setting.name
        value = require_topic_with_policies(call).policies.settings.get(name)
        if value is None and call.flag("applied"):
            namespace = call.registry.need_namespace(call.topic.namespace_name)
            value = namespace.policies.settings.get(name, call.registry.defaults.settings.get(name))
        return no_content(200) if value is None else ok(value)

    def put(self, call: AdminCall) -> Response:
        """POST."""
        query = self._setting.topic_query
        body = call.query.get(query, "").encode() if query else call.body
        return self._set(call, self._parse(read(body)))

    def _set(self, call: AdminCall, value: Any) -> Response:
        return server_topics.set_policies(call, self._policies(value))


def _to_python(value: Any) -> Any:
    """Return a JSON value with `int` and `float` instead of `Number`."""
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    if isinstance(value, dict):
        return {key: _to_python(member) for key, member in value.items()}
    return [_to_python(member) for member in value] if isinstance(value, list) else value
