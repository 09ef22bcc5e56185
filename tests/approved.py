"""Approved histories and registries in a few words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from schemactl.comparison.changes import remove_upload_properties
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin, Plan
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.interface import Registry, Scope

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")
REFUNDS = TopicName("shop", "sales", "refunds")

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
CITY = {"name": "city", "type": "string", "default": ""}
NEEDED = {"name": "needed", "type": "string"}

TIP = Commit("f" * 40, 1_772_409_600, "tip")
ORIGIN = Origin("local", "sqlite::memory:", Release.R4_0, "main", TIP)


def record(*fields: dict[str, Any], **properties: str) -> SchemaInfo:
    """An Avro record called Order."""
    text = json.dumps({"type": "record", "name": "Order", "fields": list(fields)})
    return SchemaInfo(SchemaType.AVRO, text.encode(), properties)


A, B, C = record(ID), record(ID, NOTE), record(ID, NOTE, CITY)
A_WITH_DOC = record({**ID, "doc": "the order's number"})


def commit(number: int) -> Commit:
    """The commit that brought version `number`, one a day."""
    return Commit(f"{number + 1:x}" * 40, 1_767_225_600 + number * 86_400, f"version {number}")


def make_versions(*infos: SchemaInfo | None) -> tuple[SchemaVersion, ...]:
    """Make version 0, 1, ... of a topic, with a tombstone for each None."""
    return tuple(SchemaVersion(number, info, commit(number)) for number, info in enumerate(infos))


def make_topic(name: TopicName, *infos: SchemaInfo | None, **more: Any) -> Topic:
    """A topic of the approved history (None: a tombstone), with the last of `infos` in force unless `schema` says otherwise."""
    attributes = {"schema": infos[-1] if infos else None, **more}
    return replace(Topic(name, versions=make_versions(*infos)), **attributes)


def make_catalog(*topics: Topic, sales: Policies | None = Policies()) -> Catalog:
    """Make a catalog of topics and of the namespace shop/sales with its policies, or without the namespace if `sales` is None."""
    spaces: Iterable[Namespace] = () if sales is None else (Namespace(SALES, sales),)
    return Catalog({space.name: space for space in spaces}, {one.name: one for one in topics})


def make_orders(*infos: SchemaInfo | None, sales: Policies | None = Policies(), **more: Any) -> Catalog:
    """The topic orders and its namespace."""
    return make_catalog(make_topic(ORDERS, *infos, **more), sales=sales)


def plan_for(registry: Registry, target: Catalog, **permissions: Any) -> Plan:
    """The plan that makes `registry` hold `target`."""
    state = read_registry_state(registry, find_scope(target), git=target)
    return make_plan(state, target, origin=ORIGIN, permissions=Permissions(**permissions))


def carry_out(registry: Registry, target: Catalog, **permissions: Any) -> Plan:
    """Make a plan, apply all of it, and return it."""
    plan = plan_for(registry, target, **permissions)
    result = apply_plan(plan, registry)
    assert result.failure is None, result.failure
    return plan


def read_definitions(registry: Registry, name: TopicName) -> list[SchemaInfo | None]:
    """Return the registered definitions of a topic by number, without the commit properties."""
    topic_there = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
    stored = topic_there.versions if topic_there else ()
    assert [version.number for version in stored] == list(range(len(stored)))
    return [version.info and remove_upload_properties(version.info) for version in stored]
