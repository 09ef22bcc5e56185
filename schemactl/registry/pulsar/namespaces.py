"""Tenants, namespaces and their policies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any
from urllib.parse import quote

from schemactl.errors import RegistryError
from schemactl.model import CompatibilityStrategy, Namespace, NamespaceName, Policies
from schemactl.registry.base import AUTO_UPDATE_STRATEGIES
from schemactl.registry.pulsar.connection import AdminConnection

SYSTEM_TENANTS = frozenset({"pulsar", "sla"})
"""Where brokers keep topics of their own."""

_VISIBLE_WITHIN_S = 15.0

# The verb and the path of each policy's endpoint: Pulsar mixes them.
_SETTERS = {
    "schema_compatibility_strategy": ("PUT", "schemaCompatibilityStrategy"),
    "is_allow_auto_update_schema": ("POST", "isAllowAutoUpdateSchema"),
    "schema_validation_enforced": ("POST", "schemaValidationEnforced"),
}

_POLICIES = {
    "schema_compatibility_strategy": str | None,
    "schema_auto_update_compatibility_strategy": str | None,
    "is_allow_auto_update_schema": bool | None,
    "schema_validation_enforced": bool | None,
}


def names(connection: AdminConnection) -> Iterator[NamespaceName]:
    """Every namespace of every tenant, without the brokers' own."""
    for tenant in connection.get("tenants", [str]):
        if tenant not in SYSTEM_TENANTS:
            for text in connection.get(f"namespaces/{quote(tenant, safe='')}", [str], absent=[]):
                # Of old there were names with a cluster in them; nothing can be declared for them.
                with suppress(ValueError):
                    yield NamespaceName.parse(text)


def read(connection: AdminConnection, name: NamespaceName) -> Namespace | None:
    """The namespace with its policies; None: it does not exist."""
    told = _told(connection, name)
    return None if told is None else Namespace(name, _policies(told))


def auto_update_strategy(connection: AdminConnection, name: NamespaceName) -> CompatibilityStrategy | None:
    """The deprecated auto-update strategy of the namespace, mapped; None: it is not set, or there is no namespace."""
    told = _told(connection, name) or {}
    return AUTO_UPDATE_STRATEGIES.get(told.get("schema_auto_update_compatibility_strategy") or "")


def create(connection: AdminConnection, name: NamespaceName) -> None:
    """The namespace exists, and its tenant, for which it takes a superuser."""
    reply = connection.send("PUT", f"namespaces/{name}")
    if reply.status == 404:
        # The namespace's administrator may make namespaces, but not ask about tenants: so try first.
        clusters = [one for one in connection.get("clusters", [str]) if one != "global"]
        told = {"adminRoles": [], "allowedClusters": clusters}
        _expect_made(connection, "PUT", f"tenants/{name.tenant}", told)
        reply = connection.send("PUT", f"namespaces/{name}")
    if reply.status != 409:
        connection.expect(reply, f"PUT namespaces/{name}")


def set_policies(connection: AdminConnection, name: NamespaceName, policies: Policies) -> None:
    """Each policy that is not None is in force, and has been read back."""
    for policy, value in managed(policies).items():
        method, path = _SETTERS[policy]
        reply = connection.send(method, f"namespaces/{name}/{path}", value)
        connection.expect(reply, f"{method} namespaces/{name}/{path}", of=f"namespace {name}")

    def seen() -> Policies | None:
        found = read(connection, name)
        return None if found is None else found.policies

    wait_until_in_force(str(name), policies, seen)


def managed(policies: Policies) -> dict[str, Any]:
    """The policies that are not None, by the name of their field."""
    values = {field.name: getattr(policies, field.name) for field in fields(Policies)}
    return {name: value for name, value in values.items() if value is not None}


def wait_until_in_force(what: str, policies: Policies, seen: Callable[[], Policies | None]) -> None:
    """The policies that are not None are seen so.

    A broker takes a strategy that it does not know, answers 204 and unsets it; and another broker than the one that was
    asked learns of a change by a message. So an answer 204 is not enough.

    Raises:
        RegistryError: they are not, after a while.
    """
    wanted = managed(policies)
    end_s, delay_s = time.monotonic() + _VISIBLE_WITHIN_S, 0.02
    while True:
        found = seen()
        shown = {name: getattr(found, name) for name in wanted} if found else {}
        if shown == wanted:
            return
        if time.monotonic() + delay_s > end_s:
            differing = ", ".join(
                f"{name}: {shown.get(name)}" for name in wanted if shown.get(name) != wanted[name]
            )
            raise RegistryError(
                f"{what}: set, but {_VISIBLE_WITHIN_S:.0f} s later the registry still shows {differing}"
            )
        time.sleep(delay_s)
        delay_s = min(delay_s * 2, 1.0)


def strategy(text: str | None) -> CompatibilityStrategy:
    """The strategy of that name; UNDEFINED where the answer names none.

    Raises:
        RegistryError: there is no such strategy.
    """
    if text is None:
        return CompatibilityStrategy.UNDEFINED
    try:
        return CompatibilityStrategy(text)
    except ValueError:
        raise RegistryError(
            f"the registry has a compatibility strategy that is not known here: {text[:60]!r}",
            fix="upgrade schemactl",
        ) from None


def _told(connection: AdminConnection, name: NamespaceName) -> dict[str, Any] | None:
    found: dict[str, Any] | None = connection.get(f"namespaces/{name}", _POLICIES, absent=None)
    return found


def _policies(told: dict[str, Any]) -> Policies:
    return Policies(
        strategy(told.get("schema_compatibility_strategy")),
        told.get("is_allow_auto_update_schema"),
        told.get("schema_validation_enforced"),
    )


def _expect_made(connection: AdminConnection, method: str, path: str, body: Any) -> None:
    """It is there; a repeated request finds it there already (409)."""
    reply = connection.send(method, path, body)
    if reply.status != 409:
        connection.expect(reply, f"{method} {path}")
