"""What is to be done to a registry, in which order, and with which answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from approved import (
    A_WITH_DOC,
    ID,
    NEEDED,
    NOTE,
    ORDERS,
    ORIGIN,
    REFUNDS,
    SALES,
    A,
    B,
    C,
    S,
    carry_out,
    catalog,
    commit,
    held,
    orders,
    plan_for,
    record,
    topic,
    versions,
)

from schemactl.comparison.changes import COMMIT_PROPERTY
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, SchemactlError, UsageError
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import NamespaceName, TargetNames, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.planner import make_plan, renamed, scope_of, select
from schemactl.deploy.registry_state import observe
from schemactl.deploy.steps import (
    CreateNamespace,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Permissions,
    Plan,
    PlanNoteKind,
    RegisterVersion,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
)
from schemactl.registry.embedded import EmbeddedRegistry

OWN = record(ID, {"name": "own", "type": "string", "default": ""})
"""What Git does not know."""


def registered(plan: Plan) -> list[tuple[int, int | None]]:
    """Git's number and the registry's of every version that would be registered."""
    return [(step.version.number, step.answer.version) for step in plan.steps if isinstance(step, RegisterVersion)]


def noted(plan: Plan) -> list[tuple[PlanNoteKind, str]]:
    return [(note.kind, note.message) for note in plan.notes]


def test_the_steps_are_in_the_order_a_registry_needs(registry: EmbeddedRegistry) -> None:
    orders = topic(ORDERS, A, B, partitions=4, policies=Policies(S.FULL_TRANSITIVE))
    plan = plan_for(registry, catalog(topic(REFUNDS, C), orders, sales=Policies(S.BACKWARD)))
    first, second = versions(A, B)
    assert plan.steps == (
        CreateNamespace(SALES),
        SetPolicies(SALES, Policies(), Policies(S.BACKWARD)),
        CreateTopic(ORDERS, 4),
        SetPolicies(ORDERS, Policies(), Policies(S.FULL_TRANSITIVE)),
        RegisterVersion(ORDERS, first, Answer(Outcome.OK, 0)),
        RegisterVersion(ORDERS, second, Answer(Outcome.OK, 1)),
        CreateTopic(REFUNDS, None),
        RegisterVersion(REFUNDS, versions(C)[0], Answer(Outcome.OK, 0)),
    )
    assert (plan.notes, plan.refusals) == ((), ())


def test_after_apply_the_plan_is_empty_and_the_numbers_are_gits(registry: EmbeddedRegistry) -> None:
    target = orders(A, B, C, partitions=4, policies=Policies(S.FULL), sales=Policies(S.BACKWARD))
    carry_out(registry, target)
    again = plan_for(registry, target)
    assert (again.steps, again.notes, again.refusals) == ((), (), ())
    assert held(registry, ORDERS) == [A, B, C]


def test_every_upload_is_stamped_with_its_commit(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(record(ID, owner="orders-team")))
    (version,) = registry.read(scope_of(orders(A))).topics[ORDERS].versions
    assert version.info is not None
    assert version.info.properties == {"owner": "orders-team", COMMIT_PROPERTY: commit(0).id}


def test_only_what_is_missing_is_registered(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A))
    assert plan_for(registry, orders(A, B, C)).steps == (
        RegisterVersion(ORDERS, versions(A, B)[1], Answer(Outcome.OK, 1)),
        RegisterVersion(ORDERS, versions(A, B, C)[2], Answer(Outcome.OK, 2)),
    )


def test_a_doc_at_the_tip_would_store_nothing(registry: EmbeddedRegistry) -> None:
    target = orders(A, schema=A_WITH_DOC)
    first, second = carry_out(registry, target), plan_for(registry, target)
    message = "would store nothing: only doc, aliases, enum default or properties differ from v0"
    assert noted(first) == noted(second) == [(PlanNoteKind.NOT_STORED, message)]
    assert second.steps == ()
    assert held(registry, ORDERS) == [A]


def test_properties_of_a_primitive_would_store_nothing(registry: EmbeddedRegistry) -> None:
    latin = SchemaInfo(SchemaType.STRING, properties={"__charset": "ISO-8859-1"})
    plan = plan_for(registry, orders(SchemaInfo(SchemaType.STRING), schema=latin))
    assert noted(plan) == [(PlanNoteKind.NOT_STORED, "would store nothing: only properties differ from v0")]


def test_a_revert_at_the_tip_returns_the_old_version(registry: EmbeddedRegistry) -> None:
    target = orders(A, B, C, schema=A)
    first, second = carry_out(registry, target), plan_for(registry, target)
    message = "declares an older version's content again: an upload returns v0, latest stays v2"
    assert noted(first) == noted(second) == [(PlanNoteKind.OLD_VERSION, message)]
    assert second.steps == ()


def test_a_foreign_version_shifts_numbers_but_content_is_still_found(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(ORDERS, OWN)
    first, second = carry_out(registry, orders(A, B)), plan_for(registry, orders(A, B))
    assert registered(first) == [(0, 1), (1, 2)]
    expected = [
        (PlanNoteKind.NUMBERS_DIFFER, "in the registry Git's v0 is v1, Git's v1 is v2"),
        (PlanNoteKind.UNKNOWN_VERSION, "the registry holds v0, which Git does not know"),
    ]
    assert noted(first) == noted(second) == expected
    assert second.steps == ()


def test_what_a_producer_registered_already_is_not_registered_again(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(ORDERS, A_WITH_DOC)
    assert registered(plan_for(registry, orders(A, B))) == [(1, 1)]


def test_after_a_tombstone_every_version_is_registered_anew(registry: EmbeddedRegistry) -> None:
    target = orders(A, B)
    carry_out(registry, target)
    registry.delete_schema(ORDERS)
    assert registered(carry_out(registry, target)) == [(0, 3), (1, 4)]
    assert plan_for(registry, target).steps == ()


def test_schemas_that_outlived_their_namespace_count(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(ORDERS, A)
    registry.delete_namespace(SALES)
    assert registered(carry_out(registry, orders(A, B))) == [(1, 1)]


def test_a_version_that_would_be_refused_is_named_with_its_reason(registry: EmbeddedRegistry) -> None:
    target = catalog(topic(ORDERS, A, record(ID, NEEDED), C), topic(REFUNDS, A))
    plan = plan_for(registry, target)
    (refusal,) = plan.refusals
    assert (refusal.name, refusal.number) == (ORDERS, 1)
    assert refusal.answer
    assert refusal.answer.outcome is Outcome.INCOMPATIBLE
    what = f"Git's version 1 ({commit(1).short}, 2026-01-02) would be rejected: incompatible under FULL"
    assert refusal.message.startswith(what)
    assert "--relax-while-replaying" in refusal.fix
    assert {step.name for step in plan.steps} == {SALES, REFUNDS}
    with pytest.raises(SchemactlError, match="with --fail-fast nothing of it is applied"):
        apply_plan(plan, registry, fail_fast=True)
    assert registry.read(plan.scope) == Catalog()
    carry_out(registry, target)
    assert (held(registry, ORDERS), held(registry, REFUNDS)) == ([], [A])


def test_policies_are_set_before_versions_are_judged(registry: EmbeddedRegistry) -> None:
    forward = record(ID, NEEDED)
    carry_out(registry, orders(A))
    assert plan_for(registry, orders(A, forward)).refusals
    by_namespace = orders(A, forward, sales=Policies(S.FORWARD))
    by_topic = orders(A, forward, policies=Policies(S.FORWARD))
    for target in (by_namespace, by_topic):
        assert registered(plan_for(registry, target)) == [(1, 1)]
    registry.set_auto_update_strategy(SALES, S.FORWARD)
    assert registered(plan_for(registry, orders(A, forward))) == [(1, 1)]


def test_relaxing_registers_what_todays_strategy_refuses(registry: EmbeddedRegistry) -> None:
    target = catalog(topic(ORDERS, A, record(ID, NEEDED), policies=Policies(S.FULL)), topic(REFUNDS, A, B))
    plan = carry_out(registry, target, relax=True)
    assert plan.refusals == ()
    assert [step for step in plan.steps if isinstance(step, (RelaxStrategy, RestoreStrategy))] == [
        RelaxStrategy(ORDERS, S.FULL, updates=True),
        RestoreStrategy(ORDERS, S.FULL, latest=1),
    ]
    assert held(registry, ORDERS) == [A, record(ID, NEEDED)]
    assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.FULL, None)
    assert plan_for(registry, target).steps == ()


def test_relaxing_does_not_help_against_an_invalid_definition(registry: EmbeddedRegistry) -> None:
    (refusal,) = plan_for(registry, orders(SchemaInfo(SchemaType.AVRO, b"{")), relax=True).refusals
    assert "invalid" in refusal.message
    assert "--relax" not in refusal.fix


def test_a_topic_left_relaxed_is_restored_first(registry: EmbeddedRegistry) -> None:
    target = orders(A, policies=Policies(S.FULL))
    carry_out(registry, target)
    registry.relax(ORDERS)
    assert plan_for(registry, target).steps == (RestoreStrategy(ORDERS, S.FULL),)
    stricter = orders(A, policies=Policies(S.FULL_TRANSITIVE))
    assert carry_out(registry, stricter).steps == (
        RestoreStrategy(ORDERS, S.FULL),
        SetPolicies(ORDERS, Policies(S.FULL), Policies(S.FULL_TRANSITIVE)),
    )
    assert registry.strategy(ORDERS) is S.FULL_TRANSITIVE


def test_a_deletion_is_shown_and_skipped(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A, B))
    deleted = orders(A, B, schema=None, deleted=True)
    plan = plan_for(registry, deleted)
    message = f"is no longer declared, but the registry keeps its schema (v0-1); to delete it: --allow-delete {ORDERS}"
    assert (plan.steps, noted(plan)) == ((), [(PlanNoteKind.DELETION_SKIPPED, message)])


@pytest.mark.parametrize("force", [False, True])
def test_a_permitted_deletion_leaves_the_topic_itself(registry: EmbeddedRegistry, *, force: bool) -> None:
    carry_out(registry, catalog(topic(ORDERS, A, B), topic(REFUNDS, A)))
    deleted = catalog(topic(ORDERS, A, B, schema=None, deleted=True), topic(REFUNDS, A, B))
    permission = {"force_delete" if force else "delete": frozenset({ORDERS})}
    plan = carry_out(registry, deleted, **permission)
    assert plan.steps[-1] == DeleteSchema(ORDERS, (0, 1), force=force)
    assert held(registry, ORDERS) == ([] if force else [A, B, None])
    found = registry.read(plan.scope).topics[ORDERS]
    assert (found.deleted, found.schema) == (False, None)
    again = plan_for(registry, deleted, **permission)
    assert (again.steps, again.notes) == ((), ())


def test_a_schema_no_longer_declared_is_a_deletion_too(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A))
    without = orders(A, schema=None)
    assert [kind for kind, _ in noted(plan_for(registry, without))] == [PlanNoteKind.DELETION_SKIPPED]
    assert carry_out(registry, without, delete=frozenset({ORDERS})).steps == (DeleteSchema(ORDERS, (0,), force=False),)


def test_what_git_never_declared_is_left_alone(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(REFUNDS, A)
    plan = plan_for(registry, orders(A))
    assert REFUNDS not in plan.scope.topics
    with pytest.raises(UsageError, match="never declared"):
        plan_for(registry, orders(A), delete=frozenset({REFUNDS}))


def test_a_schema_on_a_topic_declared_without_one_is_left_alone(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders())
    registry.put_schema(ORDERS, A)
    plan = plan_for(registry, orders(), delete=frozenset({ORDERS}))
    message = "the registry holds v0, but Git declares no schema for this topic"
    assert (plan.steps, noted(plan)) == ((), [(PlanNoteKind.UNKNOWN_VERSION, message)])


def test_a_deletion_spares_the_twin_of_the_other_domain(registry: EmbeddedRegistry) -> None:
    twin = replace(ORDERS, domain="non-persistent")
    carry_out(registry, catalog(topic(ORDERS, A), topic(twin, A)))
    target = catalog(topic(ORDERS, A, schema=None, deleted=True), topic(twin, A))
    plan = plan_for(registry, target, delete=frozenset({ORDERS}))
    assert (plan.steps, plan.notes) == ((), ())


def test_a_draft_is_not_applied(registry: EmbeddedRegistry) -> None:
    target = orders(A, lifecycle="draft", sales=None)
    plan = plan_for(registry, target)
    assert (plan.steps, noted(plan)) == ((), [(PlanNoteKind.DRAFT, "is a draft: nothing of it is applied")])


def test_what_becomes_a_draft_again_is_left_alone(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A))
    plan = plan_for(registry, orders(A, B, lifecycle="draft"))
    assert (plan.steps, [kind for kind, _ in noted(plan)]) == ((), [PlanNoteKind.DRAFT])


def test_a_namespace_that_no_file_declares_is_created_for_its_topics(registry: EmbeddedRegistry) -> None:
    target = orders(A, sales=None)
    assert carry_out(registry, target).steps[0] == CreateNamespace(SALES)
    assert plan_for(registry, target).steps == ()


def test_a_deleted_topic_needs_no_namespace(registry: EmbeddedRegistry) -> None:
    assert plan_for(registry, orders(A, schema=None, deleted=True, sales=None)).steps == ()


def test_a_version_the_registry_cannot_tell_apart_is_told(registry: EmbeddedRegistry) -> None:
    def pair(encoding: str) -> SchemaInfo:
        properties = {"key.schema.type": "STRING", "value.schema.type": "INT64", "kv.encoding.type": encoding}
        return SchemaInfo(SchemaType.KEY_VALUE, struct.pack(">ii", 0, 0), properties)

    target = orders(pair("INLINE"), pair("SEPARATED"))
    plan = carry_out(registry, target)
    message = "Git's v1 would store nothing: the registry takes it for its v0"
    assert (PlanNoteKind.INDISTINGUISHABLE, message) in noted(plan)
    assert registered(plan) == [(0, 0)]
    assert plan_for(registry, target).steps == ()


def test_partitions_grow(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A, partitions=4))
    assert carry_out(registry, orders(A, partitions=6)).steps == (GrowPartitions(ORDERS, 4, 6),)
    assert plan_for(registry, orders(A)).steps == ()


@pytest.mark.parametrize(("before", "said"), [(6, "has 6 partitions"), (None, "is not partitioned")])
def test_partitions_only_grow_where_there_are_some(registry: EmbeddedRegistry, before: int | None, said: str) -> None:
    carry_out(registry, orders(A, partitions=before))
    (refusal,) = plan_for(registry, orders(A, partitions=4)).refusals
    assert refusal.message.startswith(f"the topic {said}, and Git asks for 4")


def test_a_stamped_version_that_git_no_longer_explains_is_refused(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A, B))
    plan = plan_for(registry, orders(A, C))
    (refusal,) = plan.refusals
    assert f"v1 was uploaded from commit {commit(1).short}" in refusal.message
    assert "git fetch" in refusal.fix


def test_both_domains_are_planned_as_one_list(registry: EmbeddedRegistry) -> None:
    twin = TopicName("shop", "sales", "orders", "non-persistent")
    target = catalog(topic(ORDERS, A, B), topic(twin, A, C))
    assert registered(carry_out(registry, target)) == [(0, 0), (1, 1), (1, 2)]
    assert plan_for(registry, target).steps == ()


def test_a_target_may_call_namespaces_otherwise(registry: EmbeddedRegistry) -> None:
    prod, other = NamespaceName("shop-prod", "sales"), NamespaceName("web", "sales")
    names = TargetNames("prod", namespaces={SALES: prod, other: prod})
    target = renamed(orders(A, sales=Policies(S.FULL)), names)
    there = TopicName("shop-prod", "sales", "orders")
    assert names.there(ORDERS) == there
    assert target == Catalog({prod: Namespace(prod, Policies(S.FULL))}, {there: topic(there, A)})
    carry_out(registry, target)
    assert held(registry, there) == [A]
    more = Topic(TopicName("web", "sales", "more"))
    with pytest.raises(SchemactlError, match="shop/sales and web/sales would both be shop-prod/sales there"):
        renamed(catalog(topic(ORDERS, A), more), names)


def test_a_selection_keeps_the_namespaces_of_its_topics() -> None:
    other = NamespaceName("shop", "web")
    clicks = TopicName("shop", "web", "clicks")
    whole = catalog(topic(ORDERS, A), topic(REFUNDS, A), topic(clicks, A))
    whole = replace(whole, namespaces={**whole.namespaces, other: Namespace(other)})
    assert select(whole) == whole
    assert set(select(whole, topics=["*/orders", "shop/web/*"]).topics) == {ORDERS, clicks}
    assert set(select(whole, topics=["persistent://shop/sales/refunds"]).namespaces) == {SALES}
    assert set(select(whole, namespaces=["shop/web"]).topics) == {clicks}
    assert set(select(whole, namespaces=["shop/web"]).namespaces) == {other}
    assert set(select(whole, namespaces=["shop/web", "shop/sales"], topics=["*/orders"]).topics) == {ORDERS}
    with pytest.raises(UsageError, match="no topic of the approved history"):
        select(whole, topics=["*/ordres"])
    with pytest.raises(UsageError, match="no such namespace in the approved history"):
        select(whole, namespaces=["shop/wbe"])


def test_notes_of_compatible_reordering(registry: EmbeddedRegistry) -> None:
    """A version that arrives after a newer one becomes the registry's latest, and the plan says so."""
    registry.create_namespace(SALES)
    registry.put_schema(ORDERS, B)
    target = orders(A, record(ID, NOTE))
    plan = carry_out(registry, target)
    assert registered(plan) == [(0, 1)]
    assert (
        PlanNoteKind.OLD_VERSION,
        "declares an older version's content again: an upload returns v0, latest stays v1",
    ) in noted(plan)


GONE = orders(A, B, schema=None, deleted=True)


class Retaining(EmbeddedRegistry):
    """One whose topics have messages, as a broker's do."""

    entries = "orders retains 3 entries of messages"

    def retained(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        del written_with_schema
        return self.entries if topic == ORDERS else ""


@pytest.fixture
def retaining() -> Iterator[Retaining]:
    with closing(Retaining(":memory:")) as registry:
        carry_out(registry, orders(A, B))
        yield registry


def planned(registry: Retaining, *, force: bool = False) -> Plan:
    named = frozenset({ORDERS})
    permissions = Permissions(force_delete=named) if force else Permissions(delete=named)
    state = observe(registry, scope_of(GONE), deletions=permissions.delete)
    return make_plan(state, GONE, origin=ORIGIN, permissions=permissions)


def test_the_plan_is_refused_with_the_reason(retaining: Retaining) -> None:
    plan = planned(retaining)
    assert plan.steps == ()
    (refusal,) = plan.refusals
    assert refusal.message.startswith("its schema cannot be deleted: orders retains 3 entries of messages")


def test_force_leaves_nothing_all_the_same(retaining: Retaining) -> None:
    assert isinstance(planned(retaining, force=True).steps[0], DeleteSchema)


def test_an_apply_looks_again(retaining: Retaining) -> None:
    retaining.entries = ""
    plan = planned(retaining)
    retaining.entries = "orders retains 1 entry of messages"
    result = apply_plan(plan, retaining, progress=lambda _number, _step: None)
    assert isinstance(result.failure, RegistryError)
    assert "orders retains 1 entry" in str(result.failure)
    assert len(retaining.versions(ORDERS)) == 2


def test_a_generation_does_not_begin_while_messages_are_retained(retaining: Retaining) -> None:
    target = orders(A, B, None, B)
    plan = planned_generation(retaining, target)
    assert plan.steps == ()
    (refusal,) = plan.refusals
    assert "new generation cannot begin: orders retains 3 entries of messages" in refusal.message
    retaining.entries = ""
    plan = planned_generation(retaining, target)
    assert not plan.refusals
    retaining.entries = "orders retains 1 entry of messages"
    result = apply_plan(plan, retaining, progress=lambda _number, _step: None)
    assert "orders retains 1 entry" in str(result.failure)
    assert held(retaining, ORDERS) == [A, B]


def test_a_registry_without_the_old_versions_is_not_asked_about_messages(retaining: Retaining) -> None:
    retaining.delete_schema(ORDERS, force=True)
    plan = planned_generation(retaining, orders(A, B, None, B))
    assert not plan.refusals
    assert apply_plan(plan, retaining, progress=lambda _number, _step: None).failure is None
    assert held(retaining, ORDERS) == [None, None, None, B]


def planned_generation(registry: Retaining, target: Catalog) -> Plan:
    state = observe(registry, scope_of(target), git=target)
    return make_plan(state, target, origin=ORIGIN, permissions=Permissions())
