"""The endpoints of namespaces and their policies, and of the settings in `SETTINGS`, of namespaces and of topics."""

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
    nothing,
    ok,
    plain,
    read,
    read_auto_update,
    read_needed,
    read_object,
    read_strategy,
)
from schemactl.registry.server.topics import listed, need_whole, read_properties

UNDEFINED = CompatibilityStrategy.UNDEFINED


def of_tenant(call: AdminCall) -> Response:
    """GET namespaces/{tenant}."""
    tenant = call.names["tenant"]
    if call.registry.tenant(tenant) is None:
        raise RestError(404, "Tenant not found")
    return ok([str(name) for name in call.registry.namespaces() if name.tenant == tenant])


def policies(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}: all policies; those not about schemas have Pulsar's defaults."""
    found = call.need_namespace()
    mapped = found.auto_update_strategy
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
            **({"schema_auto_update_compatibility_strategy": AUTO_UPDATE_NAMES[mapped]} if mapped else {}),
            "schema_compatibility_strategy": found.policies.schema_compatibility_strategy,
            "is_allow_auto_update_schema": call.registry.is_allow_auto_update_schema(call.namespace),
            "schema_validation_enforced": bool(found.policies.schema_validation_enforced),
            **found.policies.settings,
            "subscription_types_enabled": [],
            "properties": dict(found.properties),
            "migrated": False,
        }
    )


def create(call: AdminCall) -> Response:
    """PUT namespaces/{tenant}/{namespace}."""
    fields = read_object(call.body, "org.apache.pulsar.common.policies.data.Policies") or {}
    allow = fields.get("is_allow_auto_update_schema")
    asked = Policies(
        read_strategy(fields.get("schema_compatibility_strategy")),
        None if allow is None else boolean(allow),
        boolean(fields.get("schema_validation_enforced")),
    )
    mapped = read_auto_update(fields.get("schema_auto_update_compatibility_strategy"))
    name, registry = call.namespace, call.registry
    with call.registry.exclusive():
        if registry.tenant(name.tenant) is None:
            raise RestError(404, "Tenant does not exist")
        if registry.namespace(name) is not None:
            raise RestError(409, "Namespace already exists")
        registry.create_namespace(name)
        registry.set_namespace_policies(name, asked)
        registry.set_auto_update_strategy(name, mapped)
    return nothing()


def delete(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}: an empty one. Its schemas stay."""
    name, registry = call.namespace, call.registry
    if call.flag("force"):
        raise RestError(405, "Broker doesn't allow forced deletion of namespaces")
    with call.registry.exclusive():
        if registry.namespace(name) is None:
            raise RestError(404, f"Namespace {name} does not exist.")
        if any(_counts(topic, registry.topic(topic)) for topic in registry.topics(name)):
            raise RestError(409, "Cannot delete non empty namespace")
        registry.delete_namespace(name)
    return nothing()


def _counts(name: TopicName, topic: StoredTopic | None) -> bool:
    """Whether the topic prevents the deletion of its namespace; one that is stored nowhere does not."""
    return name.domain == "persistent" or (topic is not None and topic.partitions is not None)


def delete_bundle(call: AdminCall) -> Response:
    """DELETE namespaces/{tenant}/{namespace}/{bundle}: where Pulsar routes the deletion of a policy."""
    call.need_namespace()
    raise RestError(412, f"Invalid bundle range: {call.path.rpartition('/')[2]}")


def topics(call: AdminCall) -> Response:
    """GET namespaces/{tenant}/{namespace}/topics?mode=."""
    mode = call.query.get("mode", "PERSISTENT").upper()
    call.need_namespace()
    if mode not in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        raise ErrorPage(404)
    found = call.registry.topics(call.namespace)
    domains = [
        domain for domain in ("persistent", "non-persistent") if mode in ("ALL", domain.upper().replace("-", "_"))
    ]
    return ok([each for domain in domains for each in listed(call.registry, found, domain)])


def get_strategy(call: AdminCall) -> Response:
    """GET schemaCompatibilityStrategy: the namespace's own, "UNDEFINED" when it has none."""
    return ok(call.need_namespace().policies.schema_compatibility_strategy)


def set_strategy(call: AdminCall) -> Response:
    """PUT schemaCompatibilityStrategy. What is not the name of a strategy unsets it."""
    return set_policies(call, Policies(read_strategy(read(call.body))))


def get_auto_update_strategy(call: AdminCall) -> Response:
    """GET schemaAutoUpdateCompatibilityStrategy."""
    mapped = call.need_namespace().auto_update_strategy
    return ok(AUTO_UPDATE_NAMES[mapped]) if mapped else nothing()


def set_auto_update_strategy(call: AdminCall) -> Response:
    """PUT schemaAutoUpdateCompatibilityStrategy. What is not the name of one unsets it."""
    name, mapped = call.namespace, read_auto_update(read(call.body))
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_auto_update_strategy(name, mapped)
    return nothing()


def get_allow_auto_update(call: AdminCall) -> Response:
    """GET isAllowAutoUpdateSchema: the broker's setting where the namespace has none."""
    call.need_namespace()
    return ok(call.registry.is_allow_auto_update_schema(call.namespace))


def set_allow_auto_update(call: AdminCall) -> Response:
    """POST isAllowAutoUpdateSchema. There is no way back to the broker's setting; null is false."""
    return set_policies(call, Policies(is_allow_auto_update_schema=boolean(read_needed(call.body))))


def get_validation_enforced(call: AdminCall) -> Response:
    """GET schemaValidationEnforced."""
    return ok(bool(call.need_namespace().policies.schema_validation_enforced))


def set_validation_enforced(call: AdminCall) -> Response:
    """POST schemaValidationEnforced."""
    return set_policies(call, Policies(schema_validation_enforced=boolean(read_needed(call.body))))


def properties(call: AdminCall) -> Response:
    """GET properties."""
    return ok(dict(call.need_namespace().properties))


def set_properties(call: AdminCall) -> Response:
    """PUT properties: added to the namespace's."""
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_namespace_properties(call.namespace, read_properties(call))
    return nothing()


def delete_property(call: AdminCall) -> Response:
    """DELETE property/{key}: the answer is its value, or nothing."""
    key = call.names["key"]
    with call.registry.exclusive():
        value = call.need_namespace().properties.get(key)
        call.registry.set_namespace_properties(call.namespace, {key: None})
    return plain(value or "")


def set_policies(call: AdminCall, asked: Policies) -> Response:
    """Set policies of the namespace in the path."""
    with call.registry.exclusive():
        call.need_namespace()
        call.registry.set_namespace_policies(call.namespace, asked)
    return nothing()


# Settings of namespaces and topics


def of_namespaces() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a namespace, by path and method."""
    return {f"/{row.path}": _OfNamespace(row).methods() for row in SETTINGS.values()}


def of_topics() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a topic, by path and method."""
    return {f"/{row.topic_path}": _OfTopic(row).methods() for row in SETTINGS.values() if row.topic_path}


class _OfNamespace:
    """The endpoints of one setting of a namespace."""

    def __init__(self, row: Setting) -> None:
        self._row = row

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        removed = {"DELETE": self.remove} if self._row.removable else {}
        return {"GET": self.get, self._row.method: self.put, **removed}

    def get(self, call: AdminCall) -> Response:
        """GET: an empty body where the namespace does not set it; it is always on some cluster."""
        found = call.need_namespace().policies.settings.get(self._row.name)
        if found is None and self._row.name == REPLICATION:
            found = [NAME]
        return nothing(200) if found is None else ok(found)

    def put(self, call: AdminCall) -> Response:
        """POST or PUT."""
        return self._set(call, self._value(read(call.body)))

    def remove(self, call: AdminCall) -> Response:
        """DELETE."""
        return self._set(call, UNDEFINED)

    def _set(self, call: AdminCall, value: Any) -> Response:
        return set_policies(call, self._policies(value))

    def _policies(self, value: Any) -> Policies:
        return Policies(settings={self._row.name: value})

    def _value(self, body: Any) -> Any:
        try:
            value = self._row.normal(_plain(body))
        except ValueError as error:
            raise RestError(412, str(error)) from None
        if wrong := self._row.wrong(value):
            raise RestError(400, wrong)
        return value


class _OfTopic(_OfNamespace):
    """The endpoints of one setting of a topic."""

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        return {"GET": self.get, "POST": self.put, "DELETE": self.remove}

    def get(self, call: AdminCall) -> Response:
        """GET: an empty body where the topic does not set it; with `applied`, the value in force."""
        name = self._row.name
        found = need_whole(call).policies.settings.get(name)
        if found is None and call.flag("applied"):
            namespace = call.registry.need_namespace(call.topic.namespace_name)
            found = namespace.policies.settings.get(name, call.registry.defaults.settings.get(name))
        return nothing(200) if found is None else ok(found)

    def put(self, call: AdminCall) -> Response:
        """POST."""
        query = self._row.topic_query
        body = call.query.get(query, "").encode() if query else call.body
        return self._set(call, self._value(read(body)))

    def _set(self, call: AdminCall, value: Any) -> Response:
        return server_topics.set_policies(call, self._policies(value))


def _plain(value: Any) -> Any:
    """Return a JSON value with `int` for its whole numbers."""
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
