"""Serve the endpoints of Clusters, Tenants and Brokers for one cluster with one broker."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from schemactl.core.names import NamespaceName
from schemactl.core.policies import BROKER_KEYS, SETTINGS
from schemactl.core.project import CHECKER_PACKAGE, CHECKERS_KEY
from schemactl.core.schema import Release
from schemactl.core.wording import format_policy_value
from schemactl.registry.server.http import (
    AdminCall,
    RestError,
    read_object,
    respond_empty,
    respond_json,
    respond_text,
    to_strings,
)

NAME: Final = "standalone"
"""The name of the cluster, as in a standalone Pulsar."""

_VERSIONS: Final = {Release.R4_0: "4.0.7", Release.R4_2: "4.2.4", Release.R5_0: "5.0.1"}
"""The releases on which the behavior was measured."""


def list_clusters(_call: AdminCall) -> Response:
    """GET clusters."""
    return respond_json([NAME])


def get_cluster(call: AdminCall) -> Response:
    """GET clusters/{cluster}."""
    if call.names["cluster"] != NAME:
        raise RestError(404, "Cluster does not exist")
    return respond_json({"serviceUrl": f"http://{call.host}", "brokerClientTlsEnabled": False})


def get_version(call: AdminCall) -> Response:
    """GET brokers/version."""
    return respond_text(_VERSIONS[call.registry.release])


def get_health(_call: AdminCall) -> Response:
    """GET brokers/health, brokers/ready."""
    return respond_text("ok")


def get_configuration(call: AdminCall) -> Response:
    """GET brokers/configuration/runtime: the settings about schemas."""
    defaults, classes = call.registry.defaults, call.registry.configuration.checkers or ()
    legacy = {} if call.registry.release < Release.R4_2 else {"schemaJsonAllowLegacyJacksonFormat": "false"}
    settings: dict[str, str] = {}
    for name, value in defaults.settings.items():
        broker = SETTINGS[name].broker
        parts = {broker: value} if isinstance(broker, str) else {keys[-1]: value[part] for part, keys in broker.items()}
        settings |= {key: str(part).lower() if isinstance(part, bool) else str(part) for key, part in parts.items()}
    return respond_json(
        {
            **{key: format_policy_value(getattr(defaults, policy)) for policy, key in BROKER_KEYS.items()},
            CHECKERS_KEY: f"[{', '.join(CHECKER_PACKAGE + name for name in sorted(classes))}]",
            "systemTopicSchemaCompatibilityStrategy": "ALWAYS_COMPATIBLE",
            **legacy,
            **settings,
        }
    )


def get_internal_configuration(_call: AdminCall) -> Response:
    """GET brokers/internal-configuration: not implemented, because the server has no metadata store."""
    raise RestError(501, "schemactl serve has no metadata store")


def list_brokers(call: AdminCall) -> Response:
    """GET brokers, brokers/{cluster}: also for an unknown cluster, as a broker."""
    return respond_json([call.host])


def list_dynamic_settings(_call: AdminCall) -> Response:
    """GET brokers/configuration: the names of the settings that can be changed."""
    return respond_json([])


def get_dynamic_settings(_call: AdminCall) -> Response:
    """GET brokers/configuration/values: the settings that were changed."""
    return respond_json({})


def get_leader(call: AdminCall) -> Response:
    """GET brokers/leaderBroker."""
    return respond_json({"serviceUrl": f"http://{call.host}", "brokerId": call.host})


def list_tenants(call: AdminCall) -> Response:
    """GET tenants."""
    return respond_json(call.registry.tenants())


def get_tenant(call: AdminCall) -> Response:
    """GET tenants/{tenant}."""
    tenant = call.registry.tenant(call.names["tenant"])
    if tenant is None:
        raise RestError(404, "Tenant does not exist")
    roles = {} if tenant.admin_roles is None else {"adminRoles": tenant.admin_roles}
    return respond_json({**roles, "allowedClusters": [NAME]})


def create_tenant(call: AdminCall) -> Response:
    """PUT tenants/{tenant}."""
    name, roles = call.names["tenant"], _read_roles(call)
    try:
        NamespaceName.parse(f"{name}/any")
    except ValueError:
        raise RestError(412, "Tenant name is not valid") from None
    with call.registry.lock():
        if call.registry.tenant(name) is not None:
            raise RestError(409, "Tenant already exist")
        call.registry.put_tenant(name, roles)
    return respond_empty()


def update_tenant(call: AdminCall) -> Response:
    """POST tenants/{tenant}."""
    name, roles = call.names["tenant"], _read_roles(call)
    with call.registry.lock():
        if call.registry.tenant(name) is None:
            raise RestError(404, f"Tenant {name} not found")
        call.registry.put_tenant(name, roles)
    return respond_empty()


def delete_tenant(call: AdminCall) -> Response:
    """DELETE tenants/{tenant}: delete a tenant without namespaces."""
    name, registry = call.names["tenant"], call.registry
    if call.has_flag("force"):
        raise RestError(405, "Broker doesn't allow forced deletion of tenants")
    with call.registry.lock():
        if registry.tenant(name) is None:
            raise RestError(404, "Tenant doesn't exist")
        if any(namespace.tenant == name for namespace in registry.namespaces()):
            raise RestError(409, "The tenant still has active namespaces")
        registry.delete_tenant(name)
    return respond_empty()


def _read_roles(call: AdminCall) -> list[str] | None:
    """Return the roles in a TenantInfo; raise RestError for other clusters than this one."""
    fields: dict[str, Any] | None = read_object(call.body, "org.apache.pulsar.common.policies.data.TenantInfo")
    if fields is None:
        raise RestError(412, "TenantInfo is null")
    roles = None if fields.get("adminRoles") is None else to_strings(fields["adminRoles"])
    if fields.get("allowedClusters") is None:
        raise RestError(412, "Clusters cannot be null")
    allowed = to_strings(fields["allowedClusters"])
    if not allowed or any(not name.strip() for name in allowed):
        raise RestError(412, "Clusters cannot be empty or blank")
    if set(allowed) - {NAME}:
        raise RestError(412, "Clusters do not exist")
    return roles
