"""Every registry fulfills the contract of `Registry`, as Pulsar 4.0 does."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import admin_rest
import pytest
from brokers import NO_CLIENTS, new_tenant

from schemactl.core.catalog import Topic
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.findings import Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType, get_live_versions
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import RELAXED_FROM, UPDATES_OFF_FOR, Registry, RelaxedTopic, Scope
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.registry import PulsarRegistry

S = CompatibilityStrategy

STRING = SchemaInfo(SchemaType.STRING)
INT32 = SchemaInfo(SchemaType.INT32)


def record(*fields: dict[str, Any], **properties: str) -> SchemaInfo:
    text = json.dumps({"type": "record", "name": "Order", "fields": list(fields)})
    return SchemaInfo(SchemaType.AVRO, text.encode(), properties)


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
NEEDED = {"name": "needed", "type": "string"}


def topic(registry: Registry, name: TopicName) -> Topic | None:
    return registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)


def require_topic(registry: Registry, name: TopicName) -> Topic:
    entry = topic(registry, name)
    assert entry
    return entry


def list_entries(registry: Registry, name: TopicName) -> list[tuple[int, SchemaInfo | None]]:
    entry = topic(registry, name)
    return [(version.number, version.info) for version in entry.versions] if entry else []


class OtherClient:
    """Changes by other clients that `Registry` does not support."""

    def __init__(self, registry: EmbeddedRegistry | PulsarRegistry) -> None:
        self._registry = registry

    def delete_namespace(self, name: NamespaceName) -> None:
        if isinstance(self._registry, EmbeddedRegistry):
            self._registry.delete_namespace(name)
        else:
            self._change("DELETE", f"namespaces/{name}")

    def set_auto_update_strategy(self, name: NamespaceName, strategy: S | None) -> None:
        if isinstance(self._registry, EmbeddedRegistry):
            self._registry.set_auto_update_strategy(name, strategy)
        else:
            words = {None: None, S.FORWARD: "Forward"}
            self._change("PUT", f"namespaces/{name}/schemaAutoUpdateCompatibilityStrategy", words[strategy])

    def set_property(self, name: NamespaceName | TopicName, key: str, value: str) -> None:
        if not isinstance(self._registry, EmbeddedRegistry):
            path = (
                f"persistent/{name.namespace_name}/{name.topic}"
                if isinstance(name, TopicName)
                else f"namespaces/{name}"
            )
            self._change("PUT", f"{path}/properties", {key: value})
        elif isinstance(name, TopicName):
            self._registry.set_topic_properties(name, {key: value})
        else:
            self._registry.set_namespace_properties(name, {key: value})

    def _change(self, method: str, path: str, body: object = None) -> None:
        with closing(AdminConnection(self._registry.url, Credentials())) as connection:
            connection.change(method, path, body)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The embedded registry behind Pulsar's admin paths."""
    with admin_rest.serve_folder() as (url, _):
        yield url


KINDS = ["file", pytest.param("serve", marks=pytest.mark.network), pytest.param("broker", marks=pytest.mark.broker)]


@pytest.fixture(params=KINDS)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedRegistry | PulsarRegistry]:
    opened: EmbeddedRegistry | PulsarRegistry
    match request.param:
        case "file":
            opened = EmbeddedRegistry(str(tmp_path / "registry.db"))
        case "serve":
            opened = PulsarRegistry(request.getfixturevalue("served"), waits=NO_CLIENTS)
        case _:
            opened = PulsarRegistry(request.getfixturevalue("broker").url, waits=NO_CLIENTS)
    with closing(opened):
        yield opened


@pytest.fixture
def other_client(registry: EmbeddedRegistry | PulsarRegistry) -> OtherClient:
    return OtherClient(registry)


@pytest.fixture(autouse=True)
def sales(registry: Registry) -> NamespaceName:
    """A namespace that exists, in a separate tenant."""
    name = NamespaceName(new_tenant(), "sales")
    registry.create_namespace(name)
    return name


@pytest.fixture
def orders(sales: NamespaceName) -> TopicName:
    """A topic that does not exist."""
    return TopicName(sales.tenant, sales.name, "orders")


def test_everything_is_listed_by_namespace(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    other = replace(sales, name="web")
    registry.create_namespace(other)
    clicks = replace(orders, namespace="web", topic="clicks", domain="non-persistent")
    registry.create_topic(clicks, None)
    registry.put_schema(clicks, STRING)
    registry.create_topic(orders, 4)
    assert {sales, other} <= registry.read_scope().namespaces
    assert {orders, clicks} <= registry.read_scope().topics
    assert registry.read_scope(frozenset({other, replace(sales, name="none")})) == Scope(
        frozenset({other}), frozenset({clicks})
    )


def test_numbers_count_from_zero(registry: Registry, orders: TopicName) -> None:
    assert [registry.put_schema(orders, info) for info in (record(ID), record(ID, NOTE))] == [0, 1]
    assert list_entries(registry, orders) == [(0, record(ID)), (1, record(ID, NOTE))]


def test_the_same_upload_twice_is_one_version(registry: Registry, orders: TopicName) -> None:
    assert [registry.put_schema(orders, record(ID)) for _ in range(3)] == [0, 0, 0]
    assert list_entries(registry, orders) == [(0, record(ID))]


def test_an_old_text_returns_its_number_and_latest_stays(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    registry.put_schema(orders, record(ID, NOTE))
    assert registry.put_schema(orders, record(ID)) == 0
    assert require_topic(registry, orders).schema == record(ID, NOTE)


def test_doc_and_properties_are_not_stored_again(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    assert registry.put_schema(orders, record({**ID, "doc": "the number"}, owner="orders-team")) == 0
    assert list_entries(registry, orders) == [(0, record(ID))]


def test_an_incompatible_upload_is_refused_and_stores_nothing(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    with pytest.raises(SchemaRejected, match="Unable to read schema") as refused:
        registry.put_schema(orders, record(ID, NEEDED))
    assert refused.value.outcome == Outcome.INCOMPATIBLE
    assert list_entries(registry, orders) == [(0, record(ID))]


def test_an_invalid_upload_is_refused_and_stores_nothing(registry: Registry, orders: TopicName) -> None:
    with pytest.raises(SchemaRejected, match="Invalid schema definition data for AVRO schema") as refused:
        registry.put_schema(orders, SchemaInfo(SchemaType.AVRO, b"{"))
    assert refused.value.outcome == Outcome.INVALID
    assert topic(registry, orders) is None


def test_a_bad_default_is_accepted_first_and_wedges_the_topic(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record({"name": "id", "type": "long", "default": "none"}))
    for info in (record(ID), record({"name": "id", "type": "long", "default": "none"})):
        with pytest.raises(SchemaRejected) as refused:
            registry.put_schema(orders, info)
        assert refused.value.outcome == Outcome.ERROR
    assert len(list_entries(registry, orders)) == 1
    registry.delete_schema(orders)
    assert registry.put_schema(orders, record(ID)) == 2


def test_a_tombstone_takes_a_number_and_hides_what_is_older(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    assert registry.delete_schema(orders) == 1
    entry = require_topic(registry, orders)
    assert entry.schema is None
    assert get_live_versions(entry.versions) == ()
    assert [version.number for version in entry.versions] == [0, 1]
    # Neither the type rule nor the checker see what is older.
    assert registry.put_schema(orders, STRING) == 2
    assert registry.delete_schema(orders) == 3
    assert registry.put_schema(orders, record(ID)) == 4


def test_deleting_what_was_never_registered_writes_a_tombstone(registry: Registry, orders: TopicName) -> None:
    assert registry.delete_schema(orders) == 0
    assert registry.delete_schema(orders) == 1
    assert registry.put_schema(orders, record(ID)) == 2


def test_after_a_forced_delete_numbers_start_again(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    registry.put_schema(orders, record(ID, NOTE))
    assert registry.delete_schema(orders, force=True) is None
    assert topic(registry, orders) is None
    assert registry.put_schema(orders, INT32) == 0


def test_deleting_a_topic_drops_its_schema(registry: Registry, orders: TopicName) -> None:
    registry.create_topic(orders, None)
    registry.put_schema(orders, record(ID))
    registry.delete_topic(orders)
    assert topic(registry, orders) is None
    assert registry.put_schema(orders, record(ID, NOTE)) == 0


def test_deleting_a_topic_that_is_not_there_drops_its_schema(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    registry.delete_topic(orders)
    assert topic(registry, orders) is None


def test_an_upload_needs_no_topic_and_makes_none(registry: Registry, orders: TopicName) -> None:
    registry.put_schema(orders, record(ID))
    assert require_topic(registry, orders).deleted
    registry.create_topic(orders, None)
    assert (require_topic(registry, orders).deleted, require_topic(registry, orders).schema) == (False, record(ID))


def test_an_upload_needs_the_namespace(registry: Registry, orders: TopicName) -> None:
    nowhere = replace(orders, namespace="nowhere", topic="orders")
    for upload in (registry.put_schema, registry.test_schema):
        with pytest.raises(RegistryError, match=r"namespace .*/nowhere does not exist"):
            upload(nowhere, record(ID))
    with pytest.raises(RegistryError, match=r"namespace .*/nowhere does not exist"):
        registry.create_topic(nowhere, None)
    assert topic(registry, nowhere) is None


def test_schemas_outlive_a_deleted_namespace(registry: Registry, other_client: OtherClient, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.put_schema(orders, record(ID))
    other_client.delete_namespace(sales)
    assert sales not in registry.read(Scope(frozenset({sales}), frozenset())).namespaces
    registry.create_namespace(sales)
    assert registry.put_schema(orders, record(ID, NOTE)) == 1


def test_both_domains_share_one_list(registry: Registry, orders: TopicName) -> None:
    fleeting = replace(orders, topic="orders", domain="non-persistent")
    registry.put_schema(orders, record(ID))
    assert registry.put_schema(fleeting, record(ID, NOTE)) == 1
    assert list_entries(registry, fleeting) == list_entries(registry, orders)


def test_another_type_needs_a_strategy_that_allows_everything(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.put_schema(orders, STRING)
    with pytest.raises(SchemaRejected, match="exists schema type STRING, new schema type INT32"):
        registry.put_schema(orders, INT32)
    registry.set_namespace_policies(sales, Policies(S.ALWAYS_COMPATIBLE))
    assert registry.put_schema(orders, INT32) == 1


def test_key_value_is_compared_by_its_halves_bytes_alone(registry: Registry, orders: TopicName) -> None:
    def pair(half: str, encoding: str) -> SchemaInfo:
        properties = {"key.schema.type": half, "value.schema.type": half, "kv.encoding.type": encoding}
        return SchemaInfo(SchemaType.KEY_VALUE, struct.pack(">ii", 0, 0), properties)

    assert registry.put_schema(orders, pair("STRING", "INLINE")) == 0
    assert registry.put_schema(orders, pair("INT64", "INLINE")) == 0
    assert registry.put_schema(orders, pair("STRING", "SEPARATED")) == 0
    assert list_entries(registry, orders) == [(0, pair("STRING", "INLINE"))]


def test_the_endpoint_for_compatibility_stores_nothing(registry: Registry, orders: TopicName) -> None:
    assert registry.test_schema(orders, record(ID)).outcome is Outcome.OK
    assert topic(registry, orders) is None
    registry.put_schema(orders, record(ID))
    assert registry.test_schema(orders, record(ID, NOTE)).outcome is Outcome.OK
    assert registry.test_schema(orders, record(ID, NEEDED)).outcome is Outcome.INCOMPATIBLE
    assert len(list_entries(registry, orders)) == 1


def test_a_strategy_is_the_topics_then_the_namespaces_then_the_default(
    registry: Registry, other_client: OtherClient, orders: TopicName
) -> None:
    sales = orders.namespace_name
    registry.create_topic(orders, None)
    assert (registry.strategy(orders), registry.default_strategy(sales)) == (S.FULL, S.FULL)
    own = registry.defaults
    assert (own.is_allow_auto_update_schema, own.schema_validation_enforced) == (True, False)
    other_client.set_auto_update_strategy(sales, S.FORWARD)
    assert (registry.strategy(orders), registry.default_strategy(sales)) == (S.FORWARD, S.FORWARD)
    registry.set_namespace_policies(sales, Policies(S.BACKWARD))
    assert registry.strategy(orders) is S.BACKWARD
    registry.set_topic_policies(orders, Policies(S.FULL_TRANSITIVE))
    assert registry.strategy(orders) is S.FULL_TRANSITIVE
    registry.set_topic_policies(orders, Policies(S.UNDEFINED))
    registry.set_namespace_policies(sales, Policies(S.UNDEFINED))
    assert registry.strategy(orders) is S.FORWARD
    other_client.set_auto_update_strategy(sales, None)
    assert registry.strategy(orders) is S.FULL


def test_a_strategy_holds_from_the_next_upload_on(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.put_schema(orders, record(ID))
    registry.set_namespace_policies(sales, Policies(S.FORWARD))
    assert registry.put_schema(orders, record(ID, NEEDED)) == 1


def test_policies_that_are_not_given_stay(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.create_topic(orders, None)
    registry.set_namespace_policies(sales, Policies(S.BACKWARD, is_allow_auto_update_schema=False))
    registry.set_namespace_policies(sales, Policies(schema_validation_enforced=True))
    registry.set_topic_policies(orders, Policies(S.FULL))
    registry.set_topic_policies(orders, Policies(schema_validation_enforced=False))
    catalog = registry.read(Scope(frozenset({sales}), frozenset({orders})))
    assert catalog.namespaces[sales].policies == Policies(S.BACKWARD, False, True)  # noqa: FBT003  in the order of the fields
    assert catalog.topics[orders].policies == Policies(S.FULL, schema_validation_enforced=False)


def test_only_a_value_of_the_topic_itself_switches_enforcement_off(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    notes = TopicName.parse(f"{orders}-notes")
    registry.set_namespace_policies(sales, Policies(schema_validation_enforced=True))
    for name in (orders, notes):
        registry.create_topic(name, None)
    # With one value in the namespace, the policies of every topic are read.
    registry.set_topic_policies(orders, Policies(S.FULL, schema_validation_enforced=False))
    topics = registry.read(Scope(frozenset({sales}), frozenset({orders, notes}))).topics
    assert topics[orders].policies.schema_validation_enforced is False
    assert topics[notes].policies.schema_validation_enforced is None


def test_an_unset_strategy_reads_as_undefined(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.create_topic(orders, None)
    catalog = registry.read(Scope(frozenset({sales}), frozenset({orders})))
    for policies in (catalog.namespaces[sales].policies, catalog.topics[orders].policies):
        assert policies.schema_compatibility_strategy is S.UNDEFINED


def test_settings_are_read_where_they_are_asked_for_and_can_be_removed(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.create_topic(orders, 2)
    values = {
        "retention_policies": {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
        "message_ttl_in_seconds": 3600,
        "inactive_topic_policies": {
            "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
            "maxInactiveDurationSeconds": 600,
            "deleteWhileInactive": False,
        },
        "deduplicationEnabled": True,
        "compaction_threshold": 2**40,
    }
    names = frozenset(values)
    assert names == {name for name, row in SETTINGS.items() if row.removable}

    def read_settings(*names_of_settings: str) -> list[dict[str, Any]]:
        scope = Scope(
            frozenset({sales}), frozenset({orders}), dict.fromkeys((sales, orders), frozenset(names_of_settings))
        )
        catalog = registry.read(scope)
        return [dict(owner.policies.settings) for owner in (catalog.namespaces[sales], catalog.topics[orders])]

    assert read_settings(*names) == [{}, {}]
    registry.set_namespace_policies(sales, Policies(settings=values))
    assert read_settings(*names) == [values, {}]
    registry.set_topic_policies(orders, Policies(settings=values))
    assert read_settings(*names) == [values, values]
    assert read_settings("message_ttl_in_seconds") == [{"message_ttl_in_seconds": 3600}] * 2
    assert read_settings() == [{}, {}]
    removed = Policies(settings=dict.fromkeys(names, S.UNDEFINED))
    registry.set_topic_policies(orders, removed)
    assert read_settings(*names) == [values, {}]
    registry.set_namespace_policies(sales, removed)
    assert read_settings(*names) == [{}, {}]
    default = registry.defaults.settings
    assert default["retention_policies"] == {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    assert default["inactive_topic_policies"]["maxInactiveDurationSeconds"] == 60
    assert default.keys() == names


def test_policies_of_a_topic_need_the_topic(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.put_schema(orders, record(ID))
    with pytest.raises(RegistryError, match="/sales/orders does not exist"):
        registry.set_topic_policies(orders, Policies(S.FULL))
    with pytest.raises(RegistryError, match=r"namespace .*/nowhere does not exist"):
        registry.set_namespace_policies(replace(sales, name="nowhere"), Policies(S.FULL))


def test_creating_what_exists_changes_nothing(registry: Registry, orders: TopicName) -> None:
    sales = orders.namespace_name
    registry.set_namespace_policies(sales, Policies(S.BACKWARD))
    registry.create_topic(orders, 4)
    registry.set_topic_policies(orders, Policies(S.FULL))
    before = registry.read(Scope(frozenset({sales}), frozenset({orders})))
    registry.create_namespace(sales)
    registry.create_topic(orders, 4)
    assert registry.read(Scope(frozenset({sales}), frozenset({orders}))) == before
    with pytest.raises(RegistryError, match="exists and has 4 partitions"):
        registry.create_topic(orders, None)


def test_partitions_only_grow(registry: Registry, orders: TopicName) -> None:
    registry.create_topic(orders, 4)
    registry.grow_partitions(orders, 6)
    registry.grow_partitions(orders, 6)
    with pytest.raises(RegistryError, match="has 6 partitions and cannot have 5"):
        registry.grow_partitions(orders, 5)
    single = replace(orders, topic="single")
    registry.create_topic(single, None)
    with pytest.raises(RegistryError, match="is not partitioned and cannot have 2"):
        registry.grow_partitions(single, 2)
    assert require_topic(registry, orders).partitions == 6


def test_a_relaxed_topic_takes_everything_until_it_is_restored(registry: Registry, orders: TopicName) -> None:
    registry.create_topic(orders, None)
    registry.set_topic_policies(orders, Policies(S.FULL))
    registry.put_schema(orders, record(ID))
    assert registry.find_relaxed_topic(orders) is None
    registry.relax(orders)
    registry.relax(orders)
    assert (registry.strategy(orders), registry.find_relaxed_topic(orders)) == (
        S.ALWAYS_COMPATIBLE,
        RelaxedTopic(S.FULL, accepts_all=True, updates_off=True),
    )
    assert read_updates(registry, orders) == (False, orders)
    assert registry.put_schema(orders, record(ID, NEEDED)) == 1
    registry.restore(orders)
    registry.restore(orders)
    assert (registry.strategy(orders), registry.find_relaxed_topic(orders)) == (S.FULL, None)
    assert read_updates(registry, orders) == (True, None)


def read_updates(registry: Registry, orders: TopicName) -> tuple[bool | None, TopicName | None]:
    """Return whether clients may register schemas, and the relaxed topic for which they may not."""
    space = orders.namespace_name
    policies = registry.read(Scope(frozenset({space}), frozenset())).namespaces[space].policies
    return policies.is_allow_auto_update_schema, registry.updates_off_for(space)


def test_marks_that_apply_did_not_write_are_an_error(
    registry: Registry, other_client: OtherClient, orders: TopicName
) -> None:
    registry.create_topic(orders, None)
    registry.set_topic_policies(orders, Policies(S.ALWAYS_COMPATIBLE))
    other_client.set_property(orders, RELAXED_FROM, "NOPE")
    with pytest.raises(RegistryError, match="is not a compatibility strategy: 'NOPE'"):
        registry.find_relaxed_topic(orders)
    space = orders.namespace_name
    registry.set_namespace_policies(space, Policies(is_allow_auto_update_schema=False))
    for text in ("orders", "persistent://else/where/orders"):
        other_client.set_property(space, UPDATES_OFF_FOR, text)
        with pytest.raises(RegistryError, match="is not a topic of the namespace"):
            registry.updates_off_for(space)


def test_automatic_updates_that_were_off_stay_off(registry: Registry, orders: TopicName) -> None:
    registry.create_topic(orders, None)
    registry.set_namespace_policies(orders.namespace_name, Policies(is_allow_auto_update_schema=False))
    registry.relax(orders)
    assert read_updates(registry, orders) == (False, None)
    registry.restore(orders)
    assert (registry.find_relaxed_topic(orders), read_updates(registry, orders)) == (None, (False, None))


def test_properties_and_times_are_kept(registry: Registry, orders: TopicName) -> None:
    start_ms = time.time() * 1000
    registry.put_schema(orders, record(ID, owner="Bestellungen ✓"))
    first = require_topic(registry, orders)
    registry.put_schema(orders, record(ID, NOTE))
    registry.put_schema(orders, record(ID))
    entry = require_topic(registry, orders)
    assert entry.versions[0] == first.versions[0]
    assert entry.versions[0].info == record(ID, owner="Bestellungen ✓")
    times_ms = [version.timestamp_ms for version in entry.versions]
    assert start_ms - 1000 < times_ms[0] <= times_ms[1] < time.time() * 1000 + 1000  # type: ignore[operator]


def test_a_version_is_found_by_its_number_while_it_lives(registry: Registry, orders: TopicName) -> None:
    assert registry.get_schema(orders) is None
    registry.put_schema(orders, record(ID))
    registry.put_schema(orders, record(ID, NOTE))
    first, latest, none = (registry.get_schema(orders, number) for number in (0, None, 2))
    assert (first and first.info, latest and (latest.number, latest.info)) == (record(ID), (1, record(ID, NOTE)))
    assert none is None
    registry.delete_schema(orders)
    assert [registry.get_schema(orders, number) for number in (None, 0, 1, 2)] == [None] * 4


def test_only_what_was_asked_for_is_read(registry: Registry, orders: TopicName) -> None:
    other = replace(orders, topic="other")
    for name in (orders, other):
        registry.create_topic(name, None)
    assert set(registry.read(Scope(frozenset(), frozenset({other}))).topics) == {other}
    assert registry.read(Scope(frozenset(), frozenset())).namespaces == {}
