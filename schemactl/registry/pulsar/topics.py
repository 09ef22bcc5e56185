"""Topics: their names, partitions and policies, and the mark of one that is relaxed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from schemactl.errors import RegistryError
from schemactl.model import CompatibilityStrategy, NamespaceName, Policies, TopicName
from schemactl.registry.base import RELAXED_FROM, counted
from schemactl.registry.pulsar.connection import AdminConnection
from schemactl.registry.pulsar.namespaces import strategy, wait_until_in_force

UNSET: Final = Policies(schema_compatibility_strategy=CompatibilityStrategy.UNDEFINED)

_PARTITION = re.compile(r"-partition-\d+$")


def path(name: TopicName) -> str:
    """The topic's path below `/admin/v2/`."""
    return f"{name.domain}/{name.tenant}/{name.namespace}/{quote(name.topic, safe='')}"


def existing(connection: AdminConnection, space: NamespaceName, domain: str) -> dict[TopicName, bool] | None:
    """The topics of the namespace in that domain, and whether each is partitioned; None: there is no such namespace.

    Without the brokers' own topics. A non-persistent topic without partitions is there only while a broker has it loaded.
    """
    plain = connection.get(f"{domain}/{space}", [str], absent=None)
    if plain is None:
        return None
    partitioned = connection.get(f"{domain}/{space}/partitioned", [str], absent=[])
    found = dict.fromkeys(_names(text for text in plain if not _PARTITION.search(text)), False)
    return {**found, **dict.fromkeys(_names(partitioned), True)}


def partitions(connection: AdminConnection, name: TopicName) -> int | None:
    """How many partitions the topic has; None: it is not partitioned.

    Raises:
        RegistryError: it does not exist.
    """
    found = connection.get(f"{path(name)}/partitions", {"partitions": int})
    if found["partitions"] < 0:
        raise RegistryError(f"{name}: the registry says it has {found['partitions']} partitions")
    return found["partitions"] or None


def create(connection: AdminConnection, name: TopicName, count: int | None) -> None:
    """The topic exists with `count` partitions (None: not partitioned).

    Raises:
        RegistryError: it exists with another number.
    """
    where, body = (path(name), None) if count is None else (f"{path(name)}/partitions", count)
    reply = connection.send("PUT", where, body)
    if reply.status == 409:
        has = partitions(connection, name)
        if has != count:
            raise RegistryError(f"{name} exists with {counted(has)}")
        return
    connection.expect(reply, f"PUT {where}", of=f"namespace {name.namespace_name}")


def grow(connection: AdminConnection, name: TopicName, count: int) -> None:
    """The topic has `count` partitions.

    Raises:
        RegistryError: it has none, or more.
    """
    has = partitions(connection, name)
    if has is None or count < has:
        raise RegistryError(f"{name} has {counted(has)} and cannot have {count}")
    if count > has:
        where = f"{path(name)}/partitions"
        connection.expect(connection.send("POST", where, count), f"POST {where}")


def delete(connection: AdminConnection, name: TopicName) -> bool:
    """Whether there was such a topic, which is gone now, as are its schemas."""
    # To delete a topic that does not exist answers 404 and wipes its schemas all the same.
    found = existing(connection, name.namespace_name, name.domain) or {}
    if name not in found:
        return False
    where = f"{path(name)}/partitions" if found[name] else path(name)
    reply = connection.send("DELETE", where)
    if reply.status != 404:
        connection.expect(reply, f"DELETE {where}")
    return True


def policies(connection: AdminConnection, name: TopicName) -> Policies:
    """The topic's own policies. Those of a topic that is not there, or cannot have any, are not set."""
    own = connection.get(f"{path(name)}/schemaCompatibilityStrategy", str | None, absent=None)
    enforced = connection.get(f"{path(name)}/schemaValidationEnforced", bool | None, absent=None)
    return Policies(strategy(own), schema_validation_enforced=enforced)


def set_policies(connection: AdminConnection, name: TopicName, wanted: Policies) -> None:
    """Each policy that is not None is in force for the topic, and has been read back.

    Raises:
        RegistryError: the topic does not exist, or the policy is one of namespaces alone.
    """
    if wanted.is_allow_auto_update_schema is not None:
        raise RegistryError(
            f"{name}: is_allow_auto_update_schema is a policy of namespaces; topics have none"
        )
    own, enforced = wanted.schema_compatibility_strategy, wanted.schema_validation_enforced
    where = path(name)
    if own is not None:
        # UNDEFINED unsets the policy; a DELETE would, too, but one path segment less and it were the topic's.
        reply = connection.send("PUT", f"{where}/schemaCompatibilityStrategy", own)
        connection.expect(reply, f"PUT {where}/schemaCompatibilityStrategy", of=f"topic {name}")
    if enforced is not None:
        reply = connection.send("POST", f"{where}/schemaValidationEnforced", enforced)
        connection.expect(reply, f"POST {where}/schemaValidationEnforced", of=f"topic {name}")
    wait_until_in_force(str(name), wanted, lambda: policies(connection, name))


def relax(connection: AdminConnection, name: TopicName) -> None:
    """The topic's own strategy is ALWAYS_COMPATIBLE, and what it was stands in the topic's properties."""
    own = policies(connection, name).schema_compatibility_strategy
    if own is CompatibilityStrategy.ALWAYS_COMPATIBLE:
        return
    # Brokers do not answer at all when asked for the properties of a topic that is not there.
    partitions(connection, name)
    where = f"{path(name)}/properties"
    connection.expect(connection.send("PUT", where, {RELAXED_FROM: own}), f"PUT {where}")
    set_policies(connection, name, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))


def relaxed(connection: AdminConnection, name: TopicName) -> CompatibilityStrategy | None:
    """The topic's own strategy before `relax`; None: it is not relaxed."""
    if (
        policies(connection, name).schema_compatibility_strategy
        is not CompatibilityStrategy.ALWAYS_COMPATIBLE
    ):
        # A mark alone is what is left of a `relax` or `restore` that was killed half way.
        return None
    mark = _mark(connection, name)
    return None if mark is None else strategy(mark)


def restore(connection: AdminConnection, name: TopicName) -> None:
    """The topic's own strategy is again what it was before `relax`, and the mark is gone."""
    before = relaxed(connection, name)
    if before is not None:
        set_policies(connection, name, Policies(before))
    if _mark(connection, name) is not None:
        where = f"{path(name)}/properties?key={RELAXED_FROM}"
        connection.expect(connection.send("DELETE", where), f"DELETE {where}")


def _mark(connection: AdminConnection, name: TopicName) -> str | None:
    if name.domain != "persistent":
        return None
    properties = connection.get(f"{path(name)}/properties", dict | None, absent=None) or {}
    found = properties.get(RELAXED_FROM)
    if found is not None and not isinstance(found, str):
        raise RegistryError(f"{name}: its property {RELAXED_FROM} is no text")
    return found


def _names(texts: Iterator[str] | list[str]) -> Iterator[TopicName]:
    for text in texts:
        try:
            name = TopicName.parse(text)
        except ValueError:
            continue  # older brokers took names that Pulsar refuses today; nothing can be declared for them
        if not name.topic.startswith("__"):
            yield name
