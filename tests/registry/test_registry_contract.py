"""What every registry must do, as Pulsar 4.0 does it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemactl.errors import RegistryError, SchemaRefused
from schemactl.model import (
    CompatibilityStrategy,
    NamespaceName,
    Outcome,
    Policies,
    SchemaInfo,
    SchemaType,
    Topic,
    TopicName,
)
from schemactl.registry import Registry, Scope
from schemactl.registry.embedded import EmbeddedRegistry

SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")
S = CompatibilityStrategy

STRING = SchemaInfo(SchemaType.STRING)
INT32 = SchemaInfo(SchemaType.INT32)


def record(*fields: dict[str, Any], **properties: str) -> SchemaInfo:
    text = json.dumps({"type": "record", "name": "Order", "fields": list(fields)})
    return SchemaInfo(SchemaType.AVRO, text.encode(), properties)


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
NEEDED = {"name": "needed", "type": "string"}


def topic(registry: Registry, name: TopicName = ORDERS) -> Topic | None:
    return registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)


def held(registry: Registry, name: TopicName = ORDERS) -> list[tuple[int, SchemaInfo | None]]:
    found = topic(registry, name)
    return [(version.number, version.info) for version in found.versions] if found else []


class Clock:
    """Milliseconds that pass when told to."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock_ms() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file"])
def registry(request: pytest.FixtureRequest, tmp_path: Path, clock_ms: Clock) -> Iterator[EmbeddedRegistry]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "registry.db")
    with closing(EmbeddedRegistry(path, clock_ms=clock_ms)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _namespace(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)


def test_everything_is_listed_by_namespace(registry: EmbeddedRegistry) -> None:
    other = NamespaceName("shop", "web")
    registry.create_namespace(other)
    clicks = TopicName("shop", "web", "clicks", "non-persistent")
    registry.create_topic(clicks, None)
    registry.put_schema(clicks, STRING)
    registry.create_topic(ORDERS, 4)
    assert {SALES, other} <= registry.everything().namespaces
    assert {ORDERS, clicks} <= registry.everything().topics
    assert registry.everything(frozenset({other, NamespaceName("shop", "none")})) == Scope(
        frozenset({other}), frozenset({clicks})
    )


def test_numbers_count_from_zero(registry: EmbeddedRegistry) -> None:
    assert [registry.put_schema(ORDERS, info) for info in (record(ID), record(ID, NOTE))] == [0, 1]
    assert held(registry) == [(0, record(ID)), (1, record(ID, NOTE))]


def test_the_same_upload_twice_is_one_version(registry: EmbeddedRegistry) -> None:
    assert [registry.put_schema(ORDERS, record(ID)) for _ in range(3)] == [0, 0, 0]
    assert held(registry) == [(0, record(ID))]


def test_an_old_text_returns_its_number_and_latest_stays(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    registry.put_schema(ORDERS, record(ID, NOTE))
    assert registry.put_schema(ORDERS, record(ID)) == 0
    found = topic(registry)
    assert found is not None
    assert found.schema == record(ID, NOTE)


def test_doc_and_properties_are_not_stored_again(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    assert registry.put_schema(ORDERS, record({**ID, "doc": "the number"}, owner="orders-team")) == 0
    assert held(registry) == [(0, record(ID))]


def test_an_incompatible_upload_is_refused_and_stores_nothing(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    with pytest.raises(SchemaRefused, match="Unable to read schema") as refused:
        registry.put_schema(ORDERS, record(ID, NEEDED))
    assert refused.value.outcome == Outcome.INCOMPATIBLE
    assert held(registry) == [(0, record(ID))]


def test_an_invalid_upload_is_refused_and_stores_nothing(registry: EmbeddedRegistry) -> None:
    with pytest.raises(SchemaRefused, match="Invalid schema definition data for AVRO schema") as refused:
        registry.put_schema(ORDERS, SchemaInfo(SchemaType.AVRO, b"{"))
    assert refused.value.outcome == Outcome.INVALID
    assert topic(registry) is None


def test_a_bad_default_is_accepted_first_and_wedges_the_topic(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record({"name": "id", "type": "long", "default": "none"}))
    for info in (record(ID), record({"name": "id", "type": "long", "default": "none"})):
        with pytest.raises(SchemaRefused) as refused:
            registry.put_schema(ORDERS, info)
        assert refused.value.outcome == Outcome.ERROR
    assert len(held(registry)) == 1
    registry.delete_schema(ORDERS)
    assert registry.put_schema(ORDERS, record(ID)) == 2


def test_a_tombstone_takes_a_number_and_hides_what_is_older(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    assert registry.delete_schema(ORDERS) == 1
    found = topic(registry)
    assert found is not None
    assert found.schema is None
    assert [version.info is None for version in found.versions] == [False, True]
    # Neither the type rule nor the checker see what is older.
    assert registry.put_schema(ORDERS, STRING) == 2
    assert registry.delete_schema(ORDERS) == 3
    assert registry.put_schema(ORDERS, record(ID)) == 4


def test_deleting_what_was_never_registered_writes_a_tombstone(registry: EmbeddedRegistry) -> None:
    assert registry.delete_schema(ORDERS) == 0
    assert registry.delete_schema(ORDERS) == 1
    assert registry.put_schema(ORDERS, record(ID)) == 2


def test_after_a_forced_delete_numbers_start_again(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    registry.put_schema(ORDERS, record(ID, NOTE))
    assert registry.delete_schema(ORDERS, force=True) is None
    assert topic(registry) is None
    assert registry.put_schema(ORDERS, INT32) == 0


def test_deleting_a_topic_drops_its_schema(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    registry.put_schema(ORDERS, record(ID))
    registry.delete_topic(ORDERS)
    assert topic(registry) is None
    assert registry.put_schema(ORDERS, record(ID, NOTE)) == 0


def test_deleting_a_topic_that_is_not_there_drops_its_schema_all_the_same(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    registry.delete_topic(ORDERS)
    assert topic(registry) is None


def test_an_upload_needs_no_topic_and_makes_none(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    found = topic(registry)
    assert found is not None
    assert found.deleted
    registry.create_topic(ORDERS, None)
    found = topic(registry)
    assert found is not None
    assert (found.deleted, found.schema) == (False, record(ID))


def test_an_upload_needs_the_namespace(registry: EmbeddedRegistry) -> None:
    nowhere = TopicName("shop", "nowhere", "orders")
    with pytest.raises(RegistryError, match="namespace shop/nowhere does not exist"):
        registry.put_schema(nowhere, record(ID))
    with pytest.raises(RegistryError, match="namespace shop/nowhere does not exist"):
        registry.test_schema(nowhere, record(ID))
    with pytest.raises(RegistryError, match="namespace shop/nowhere does not exist"):
        registry.create_topic(nowhere, None)
    assert topic(registry, nowhere) is None


def test_schemas_of_a_deleted_namespace_reappear(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    registry.put_schema(ORDERS, record(ID))
    registry.delete_namespace(SALES)
    assert SALES not in registry.read(Scope(frozenset({SALES}), frozenset())).namespaces
    registry.create_namespace(SALES)
    assert registry.put_schema(ORDERS, record(ID, NOTE)) == 1


def test_both_domains_share_one_list(registry: EmbeddedRegistry) -> None:
    fleeting = TopicName("shop", "sales", "orders", "non-persistent")
    registry.put_schema(ORDERS, record(ID))
    assert registry.put_schema(fleeting, record(ID, NOTE)) == 1
    assert held(registry, fleeting) == held(registry)


def test_another_type_is_refused_unless_everything_is_compatible(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, STRING)
    with pytest.raises(SchemaRefused, match="exists schema type STRING, new schema type INT32"):
        registry.put_schema(ORDERS, INT32)
    registry.set_namespace_policies(SALES, Policies(S.ALWAYS_COMPATIBLE))
    assert registry.put_schema(ORDERS, INT32) == 1


def test_key_value_is_compared_by_the_bytes_of_its_halves_alone(registry: EmbeddedRegistry) -> None:
    def pair(half: str, encoding: str) -> SchemaInfo:
        properties = {"key.schema.type": half, "value.schema.type": half, "kv.encoding.type": encoding}
        return SchemaInfo(SchemaType.KEY_VALUE, struct.pack(">ii", 0, 0), properties)

    assert registry.put_schema(ORDERS, pair("STRING", "INLINE")) == 0
    assert registry.put_schema(ORDERS, pair("INT64", "INLINE")) == 0
    assert registry.put_schema(ORDERS, pair("STRING", "SEPARATED")) == 0
    assert held(registry) == [(0, pair("STRING", "INLINE"))]


def test_bytes_reads_back_as_none_and_locks_the_topic(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, SchemaInfo(SchemaType.BYTES))
    assert held(registry) == [(0, SchemaInfo(SchemaType.NONE))]
    with pytest.raises(SchemaRefused, match="exists schema type NONE, new schema type AVRO"):
        registry.put_schema(ORDERS, record(ID))


def test_the_endpoint_for_compatibility_stores_nothing(registry: EmbeddedRegistry) -> None:
    assert registry.test_schema(ORDERS, record(ID)).outcome is Outcome.OK
    assert topic(registry) is None
    registry.put_schema(ORDERS, record(ID))
    assert registry.test_schema(ORDERS, record(ID, NOTE)).outcome is Outcome.OK
    assert registry.test_schema(ORDERS, record(ID, NEEDED)).outcome is Outcome.INCOMPATIBLE
    assert len(held(registry)) == 1


def test_a_strategy_is_the_topics_then_the_namespaces_then_the_default(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    assert (registry.strategy(ORDERS), registry.default_strategy(SALES)) == (S.FULL, S.FULL)
    registry.set_auto_update_strategy(SALES, S.FORWARD)
    assert (registry.strategy(ORDERS), registry.default_strategy(SALES)) == (S.FORWARD, S.FORWARD)
    registry.set_namespace_policies(SALES, Policies(S.BACKWARD))
    assert registry.strategy(ORDERS) is S.BACKWARD
    registry.set_topic_policies(ORDERS, Policies(S.FULL_TRANSITIVE))
    assert registry.strategy(ORDERS) is S.FULL_TRANSITIVE
    registry.set_topic_policies(ORDERS, Policies(S.UNDEFINED))
    registry.set_namespace_policies(SALES, Policies(S.UNDEFINED))
    assert registry.strategy(ORDERS) is S.FORWARD
    registry.set_auto_update_strategy(SALES, None)
    assert registry.strategy(ORDERS) is S.FULL


def test_a_strategy_holds_from_the_next_upload_on(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    registry.set_namespace_policies(SALES, Policies(S.FORWARD))
    assert registry.put_schema(ORDERS, record(ID, NEEDED)) == 1


def test_policies_that_are_not_given_stay(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    registry.set_namespace_policies(SALES, Policies(S.BACKWARD, is_allow_auto_update_schema=False))
    registry.set_namespace_policies(SALES, Policies(schema_validation_enforced=True))
    registry.set_topic_policies(ORDERS, Policies(S.FULL))
    registry.set_topic_policies(ORDERS, Policies(schema_validation_enforced=False))
    found = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
    assert found.namespaces[SALES].policies == Policies(S.BACKWARD, False, True)  # noqa: FBT003  in the order of the fields
    assert found.topics[ORDERS].policies == Policies(S.FULL, schema_validation_enforced=False)


def test_an_unset_strategy_reads_as_undefined(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    found = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
    assert found.namespaces[SALES].policies == Policies(S.UNDEFINED)
    assert found.topics[ORDERS].policies == Policies(S.UNDEFINED)


def test_policies_of_a_topic_need_the_topic(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, record(ID))
    with pytest.raises(RegistryError, match="shop/sales/orders does not exist"):
        registry.set_topic_policies(ORDERS, Policies(S.FULL))
    with pytest.raises(RegistryError, match="namespace shop/nowhere does not exist"):
        registry.set_namespace_policies(NamespaceName("shop", "nowhere"), Policies(S.FULL))


def test_creating_what_exists_changes_nothing(registry: EmbeddedRegistry) -> None:
    registry.set_namespace_policies(SALES, Policies(S.BACKWARD))
    registry.create_topic(ORDERS, 4)
    registry.set_topic_policies(ORDERS, Policies(S.FULL))
    before = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
    registry.create_namespace(SALES)
    registry.create_topic(ORDERS, 4)
    assert registry.read(Scope(frozenset({SALES}), frozenset({ORDERS}))) == before
    with pytest.raises(RegistryError, match="exists with 4 partitions"):
        registry.create_topic(ORDERS, None)


def test_partitions_only_grow(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, 4)
    registry.grow_partitions(ORDERS, 6)
    registry.grow_partitions(ORDERS, 6)
    with pytest.raises(RegistryError, match="has 6 partitions and cannot have 5"):
        registry.grow_partitions(ORDERS, 5)
    single = TopicName("shop", "sales", "single")
    registry.create_topic(single, None)
    with pytest.raises(RegistryError, match="has no partitions and cannot have 2"):
        registry.grow_partitions(single, 2)
    found = topic(registry)
    assert found is not None
    assert found.partitions == 6


def test_a_relaxed_topic_takes_everything_until_it_is_restored(registry: EmbeddedRegistry) -> None:
    registry.create_topic(ORDERS, None)
    registry.set_topic_policies(ORDERS, Policies(S.FULL))
    registry.put_schema(ORDERS, record(ID))
    assert registry.relaxed(ORDERS) is None
    registry.relax(ORDERS)
    registry.relax(ORDERS)
    assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.ALWAYS_COMPATIBLE, S.FULL)
    assert registry.put_schema(ORDERS, record(ID, NEEDED)) == 1
    registry.restore(ORDERS)
    registry.restore(ORDERS)
    assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.FULL, None)


def test_properties_and_times_are_kept(registry: EmbeddedRegistry, clock_ms: Clock) -> None:
    registry.put_schema(ORDERS, record(ID, owner="Bestellungen ✓"))
    clock_ms.now_ms += 5
    registry.put_schema(ORDERS, record(ID, NOTE))
    registry.put_schema(ORDERS, record(ID))
    found = topic(registry)
    assert found is not None
    assert [version.timestamp_ms for version in found.versions] == [1_700_000_000_000, 1_700_000_000_005]
    assert found.versions[0].info == record(ID, owner="Bestellungen ✓")


def test_only_what_was_asked_for_is_read(registry: EmbeddedRegistry) -> None:
    other = TopicName("shop", "sales", "other")
    for name in (ORDERS, other):
        registry.create_topic(name, None)
    assert set(registry.read(Scope(frozenset(), frozenset({other}))).topics) == {other}
    assert registry.read(Scope(frozenset(), frozenset())).namespaces == {}
