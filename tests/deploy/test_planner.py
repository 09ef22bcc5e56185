"""Plans: the steps for a registry, their order, the predicted verdicts, and the effect of a waiver."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

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
    commit,
    make_catalog,
    make_orders,
    make_topic,
    make_versions,
    plan_for,
    read_definitions,
    record,
)
from estate import Estate
from forks import Say, assert_killed, die_after, fork_process
from scratch import record as avsc

from schemactl.comparison.changes import COMMIT_PROPERTY
from schemactl.comparison.fingerprint import BROKER_RULE, compute_broker_fingerprint
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, SchemactlError, UsageError
from schemactl.core.findings import Answer, Outcome, Waiver
from schemactl.core.names import NamespaceName, TargetNames, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Plan, PlanNoteKind
from schemactl.deploy.plan_json import plan_digest
from schemactl.deploy.planner import make_plan
from schemactl.deploy.rebuild import make_rebuild
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.steps.create_namespace import CreateNamespace
from schemactl.deploy.steps.create_topic import CreateTopic
from schemactl.deploy.steps.delete_schema import DeleteSchema
from schemactl.deploy.steps.grow_partitions import GrowPartitions
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.deploy.steps.relax_strategy import RelaxStrategy
from schemactl.deploy.steps.restore_strategy import RestoreStrategy
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.deploy.steps.step import Step
from schemactl.deploy.target_catalog import find_scope, rename_catalog, select_known_part
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import RelaxedTopic
from schemactl.report.plan import render_plan

OWN = record(ID, {"name": "own", "type": "string", "default": ""})
"""Registered content that Git does not have."""


def list_registered(plan: Plan) -> list[tuple[int, int | None]]:
    """Git's number and the registry's of every version that would be registered."""
    return [(step.version.number, step.answer.version) for step in plan.steps if isinstance(step, RegisterVersion)]


def list_notes(plan: Plan) -> list[tuple[PlanNoteKind, str]]:
    return [(note.kind, note.message) for note in plan.notes]


def test_the_steps_are_in_the_order_a_registry_needs(registry: EmbeddedRegistry) -> None:
    orders = make_topic(ORDERS, A, B, partitions=4, policies=Policies(S.FULL_TRANSITIVE))
    plan = plan_for(registry, make_catalog(make_topic(REFUNDS, C), orders, sales=Policies(S.BACKWARD)))
    first, second = make_versions(A, B)
    assert plan.steps == (
        CreateNamespace(SALES),
        SetPolicies(SALES, Policies(), Policies(S.BACKWARD)),
        CreateTopic(ORDERS, 4),
        SetPolicies(ORDERS, Policies(), Policies(S.FULL_TRANSITIVE)),
        RegisterVersion(ORDERS, first, Answer(Outcome.OK, 0)),
        RegisterVersion(ORDERS, second, Answer(Outcome.OK, 1)),
        CreateTopic(REFUNDS, None),
        RegisterVersion(REFUNDS, make_versions(C)[0], Answer(Outcome.OK, 0)),
    )
    assert (plan.notes, plan.refusals) == ((), ())


def test_after_apply_the_plan_is_empty_and_the_numbers_are_gits(registry: EmbeddedRegistry) -> None:
    target = make_orders(A, B, C, partitions=4, policies=Policies(S.FULL), sales=Policies(S.BACKWARD))
    carry_out(registry, target)
    again = plan_for(registry, target)
    assert (again.steps, again.notes, again.refusals) == ((), (), ())
    assert read_definitions(registry, ORDERS) == [A, B, C]


def test_every_upload_is_stamped_with_its_commit(registry: EmbeddedRegistry) -> None:
    carry_out(registry, make_orders(record(ID, owner="orders-team")))
    (version,) = registry.read(find_scope(make_orders(A))).topics[ORDERS].versions
    assert version.info is not None
    assert version.info.properties == {"owner": "orders-team", COMMIT_PROPERTY: commit(0).id}


class PlanCase(NamedTuple):
    """A registry to which `applied` was applied, and `others` uploaded (None: deleted), and the plan of `target` for it.

    Attributes:
        registered: Git's number and the registry's of each version that the plan registers.
        notes: the notes of this plan, and of the next one.
        permissions: the permissions of the plan.
        other_steps: the steps of an existing topic that register no version.
    """

    target: Catalog
    registered: tuple[tuple[int, int], ...] = ()
    notes: tuple[tuple[PlanNoteKind, str], ...] = ()
    applied: Catalog | None = None
    others: tuple[SchemaInfo | None, ...] = ()
    permissions: Mapping[str, Any] = MappingProxyType({})
    other_steps: tuple[Step, ...] = ()


def make_pair(encoding: str) -> SchemaInfo:
    properties = {"key.schema.type": "STRING", "value.schema.type": "INT64", "kv.encoding.type": encoding}
    return SchemaInfo(SchemaType.KEY_VALUE, struct.pack(">ii", 0, 0), properties)


LATIN = SchemaInfo(SchemaType.STRING, properties={"__charset": "ISO-8859-1"})
DOC_DIFFERS = "would store nothing: only doc, aliases, enum default or properties differ from v0"
PROPERTIES_DIFFER = "would store nothing: only properties differ from v0"
OLD_CONTENT = "declares the content of an older version again: an upload returns v0, and the latest version stays v{}"
KEPT = f"is no longer declared, but the registry keeps its schema (v0-1); to delete it: --allow-delete {ORDERS}"
OTHER_DOMAIN = replace(ORDERS, domain="non-persistent")
NO_SCHEMA = (
    f"no longer declares a schema, but the registry keeps its schema (v0); to delete it: --allow-delete {ORDERS}"
)
IS_DRAFT = (PlanNoteKind.DRAFT, "is a draft, and `apply` skips drafts")
DIFFER, UNKNOWN = PlanNoteKind.NUMBERS_DIFFER, PlanNoteKind.UNKNOWN_VERSION
EQUAL_FOR_BROKERS = "Git's v1 would store nothing: the registry treats it as its v0"

PLAN_CASES = {
    "missing versions": PlanCase(make_orders(A, B, C), ((1, 1), (2, 2)), applied=make_orders(A)),
    "doc at the tip": PlanCase(make_orders(A, schema=A_WITH_DOC), ((0, 0),), ((PlanNoteKind.NOT_STORED, DOC_DIFFERS),)),
    "properties of a primitive": PlanCase(
        make_orders(SchemaInfo(SchemaType.STRING), schema=LATIN),
        ((0, 0),),
        ((PlanNoteKind.NOT_STORED, PROPERTIES_DIFFER),),
    ),
    "revert": PlanCase(
        make_orders(A, B, C, schema=A), ((0, 0), (1, 1), (2, 2)), ((PlanNoteKind.OLD_VERSION, OLD_CONTENT.format(2)),)
    ),
    "foreign version": PlanCase(
        make_orders(A, B),
        ((0, 1), (1, 2)),
        (
            (DIFFER, "in the registry Git's v0 is v1, Git's v1 is v2"),
            (UNKNOWN, "the registry holds v0, which Git does not know"),
        ),
        others=(OWN,),
    ),
    "version of a producer": PlanCase(make_orders(A, B), ((1, 1),), others=(A_WITH_DOC,)),
    "tombstone": PlanCase(
        make_orders(A, B),
        ((0, 3), (1, 4)),
        ((DIFFER, "in the registry Git's v0 is v3, Git's v1 is v4"),),
        applied=make_orders(A, B),
        others=(None,),
    ),
    "older version after a newer one": PlanCase(
        make_orders(A, record(ID, NOTE)),
        ((0, 1),),
        ((DIFFER, "in the registry Git's v1 is v0, Git's v0 is v1"), (PlanNoteKind.OLD_VERSION, OLD_CONTENT.format(1))),
        others=(B,),
    ),
    "equal versions for brokers": PlanCase(
        make_orders(make_pair("INLINE"), make_pair("SEPARATED")),
        ((0, 0),),
        ((PlanNoteKind.INDISTINGUISHABLE, EQUAL_FOR_BROKERS),),
    ),
    "deletion": PlanCase(
        make_orders(A, B, schema=None, deleted=True),
        notes=((PlanNoteKind.DELETION_SKIPPED, KEPT),),
        applied=make_orders(A, B),
    ),
    "draft": PlanCase(make_orders(A, lifecycle="draft", sales=None), notes=(IS_DRAFT,)),
    "new draft": PlanCase(make_orders(A, B, lifecycle="draft"), notes=(IS_DRAFT,), applied=make_orders(A)),
    "schema without a declaration": PlanCase(
        make_orders(A, schema=None), notes=((PlanNoteKind.DELETION_SKIPPED, NO_SCHEMA),), applied=make_orders(A)
    ),
    "permitted deletion of a schema without a declaration": PlanCase(
        make_orders(A, schema=None),
        applied=make_orders(A),
        permissions={"delete": frozenset({ORDERS})},
        other_steps=(DeleteSchema(ORDERS, (0,), force=False),),
    ),
    "schema on a topic declared without one": PlanCase(
        make_orders(),
        notes=((UNKNOWN, "the registry holds v0, but Git declares no schema for this topic"),),
        others=(A,),
        permissions={"delete": frozenset({ORDERS})},
    ),
    "deletion of one domain": PlanCase(
        make_catalog(make_topic(ORDERS, A, schema=None, deleted=True), make_topic(OTHER_DOMAIN, A)),
        applied=make_catalog(make_topic(ORDERS, A), make_topic(OTHER_DOMAIN, A)),
        permissions={"delete": frozenset({ORDERS})},
    ),
    "both domains have one list": PlanCase(
        make_catalog(make_topic(ORDERS, A, B), make_topic(OTHER_DOMAIN, A, C)),
        ((0, 0), (1, 1), (1, 2)),
        (
            (PlanNoteKind.OLD_VERSION, OLD_CONTENT.format(2).replace("returns v0", "returns v1")),
            (DIFFER, "in the registry Git's v1 is v2"),
        ),
    ),
    "namespace that no file declares": PlanCase(make_orders(A, sales=None), ((0, 0),)),
    "deleted topic that was never applied": PlanCase(make_orders(A, schema=None, deleted=True, sales=None)),
    "more partitions": PlanCase(
        make_orders(A, partitions=6), applied=make_orders(A, partitions=4), other_steps=(GrowPartitions(ORDERS, 4, 6),)
    ),
    "partitions that no file declares": PlanCase(make_orders(A), applied=make_orders(A, partitions=6)),
    "strategy of the namespace that accepts the version": PlanCase(
        make_orders(A, record(ID, NEEDED), sales=Policies(S.FORWARD)),
        ((1, 1),),
        applied=make_orders(A),
        other_steps=(SetPolicies(SALES, Policies(S.UNDEFINED), Policies(S.FORWARD)),),
    ),
    "strategy of the topic that accepts the version": PlanCase(
        make_orders(A, record(ID, NEEDED), policies=Policies(S.FORWARD)),
        ((1, 1),),
        applied=make_orders(A),
        other_steps=(SetPolicies(ORDERS, Policies(S.UNDEFINED), Policies(S.FORWARD)),),
    ),
}


@pytest.mark.parametrize("case", PLAN_CASES.values(), ids=PLAN_CASES)
def test_missing_versions_are_registered_and_other_differences_are_noted(
    registry: EmbeddedRegistry, case: PlanCase
) -> None:
    if case.applied:
        carry_out(registry, case.applied)
    elif case.others:
        carry_out(registry, make_orders())
    for info in case.others:
        if info is None:
            registry.delete_schema(ORDERS)
        else:
            registry.put_schema(ORDERS, info)
    plan = carry_out(registry, case.target, **case.permissions)
    assert (list_registered(plan), list_notes(plan), plan.refusals) == ([*case.registered], [*case.notes], ())
    other_steps = tuple(step for step in plan.steps if not isinstance(step, RegisterVersion))
    if case.applied or case.others or not plan.steps:
        assert other_steps == case.other_steps
    else:
        assert other_steps[0] == CreateNamespace(SALES)
    next_plan = plan_for(registry, case.target, **case.permissions)
    assert (next_plan.steps, list_notes(next_plan)) == ((), [*case.notes])


def test_schemas_that_outlived_their_namespace_count(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(ORDERS, A)
    registry.delete_namespace(SALES)
    assert list_registered(carry_out(registry, make_orders(A, B))) == [(1, 1)]


def test_a_version_that_would_be_refused_is_named_with_its_reason(registry: EmbeddedRegistry) -> None:
    target = make_catalog(make_topic(ORDERS, A, record(ID, NEEDED), C), make_topic(REFUNDS, A))
    plan = plan_for(registry, target)
    (refusal,) = plan.refusals
    assert (refusal.name, refusal.number) == (ORDERS, 1)
    assert refusal.answer
    assert refusal.answer.outcome is Outcome.INCOMPATIBLE
    rejection = f"Git's version 1 ({commit(1).short}, 2026-01-02) would be rejected: incompatible under FULL"
    assert refusal.message.startswith(rejection)
    assert "--relax-while-replaying" in refusal.fix
    assert {step.name for step in plan.steps} == {SALES, REFUNDS}
    with pytest.raises(SchemactlError, match="so --fail-fast applied nothing"):
        apply_plan(plan, registry, fail_fast=True)
    assert registry.read(plan.scope) == Catalog()
    carry_out(registry, target)
    assert (read_definitions(registry, ORDERS), read_definitions(registry, REFUNDS)) == ([], [A])


def test_a_version_is_judged_by_the_strategy_of_the_registry(registry: EmbeddedRegistry) -> None:
    target = make_orders(A, record(ID, NEEDED))
    carry_out(registry, make_orders(A))
    assert plan_for(registry, target).refusals
    registry.set_auto_update_strategy(SALES, S.FORWARD)
    assert list_registered(plan_for(registry, target)) == [(1, 1)]


def test_relaxing_registers_what_todays_strategy_refuses(registry: EmbeddedRegistry) -> None:
    target = make_catalog(
        make_topic(ORDERS, A, record(ID, NEEDED), policies=Policies(S.FULL)), make_topic(REFUNDS, A, B)
    )
    plan = carry_out(registry, target, relax=True)
    assert plan.refusals == ()
    assert [step for step in plan.steps if isinstance(step, (RelaxStrategy, RestoreStrategy))] == [
        RelaxStrategy(ORDERS, S.FULL, updates=True),
        RestoreStrategy(ORDERS, S.FULL, latest=1),
    ]
    assert read_definitions(registry, ORDERS) == [A, record(ID, NEEDED)]
    assert (registry.strategy(ORDERS), registry.find_relaxed_topic(ORDERS)) == (S.FULL, None)
    assert plan_for(registry, target).steps == ()


def test_a_topic_left_relaxed_is_restored_first(registry: EmbeddedRegistry) -> None:
    target = make_orders(A, policies=Policies(S.FULL))
    carry_out(registry, target)
    registry.relax(ORDERS)
    left = RelaxedTopic(S.FULL, accepts_all=True, updates_off=True)
    assert plan_for(registry, target).steps == (RestoreStrategy(ORDERS, S.FULL, left=left),)
    stricter = make_orders(A, policies=Policies(S.FULL_TRANSITIVE))
    assert carry_out(registry, stricter).steps == (
        RestoreStrategy(ORDERS, S.FULL, left=left),
        SetPolicies(ORDERS, Policies(S.FULL), Policies(S.FULL_TRANSITIVE)),
    )
    assert registry.strategy(ORDERS) is S.FULL_TRANSITIVE


@pytest.mark.parametrize("force", [False, True])
def test_a_permitted_deletion_leaves_the_topic_itself(registry: EmbeddedRegistry, *, force: bool) -> None:
    carry_out(registry, make_catalog(make_topic(ORDERS, A, B), make_topic(REFUNDS, A)))
    deleted = make_catalog(make_topic(ORDERS, A, B, schema=None, deleted=True), make_topic(REFUNDS, A, B))
    permission = {"force_delete" if force else "delete": frozenset({ORDERS})}
    plan = carry_out(registry, deleted, **permission)
    assert plan.steps[-1] == DeleteSchema(ORDERS, (0, 1), force=force)
    assert read_definitions(registry, ORDERS) == ([] if force else [A, B, None])
    topic_there = registry.read(plan.scope).topics[ORDERS]
    assert (topic_there.deleted, topic_there.schema) == (False, None)
    again = plan_for(registry, deleted, **permission)
    assert (again.steps, again.notes) == ((), ())


def test_what_git_never_declared_is_left_alone(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(SALES)
    registry.put_schema(REFUNDS, A)
    plan = plan_for(registry, make_orders(A))
    assert REFUNDS not in plan.scope.topics
    with pytest.raises(UsageError, match="never declared"):
        plan_for(registry, make_orders(A), delete=frozenset({REFUNDS}))


INVALID = SchemaInfo(SchemaType.AVRO, b"{")
REFUSALS: dict[str, tuple[Catalog | None, Catalog, dict[str, Any], tuple[int | None, str, str]]] = {
    "fewer partitions": (
        make_orders(A, partitions=6), make_orders(A, partitions=4), {}, (None, "the topic has 6 partitions, but Git declares 4", ""),
    ),
    "partitions of a topic without them": (
        make_orders(A), make_orders(A, partitions=4), {}, (None, "the topic is not partitioned, but Git declares 4", ""),
    ),
    "a version whose commit Git lost": (
        make_orders(A, B), make_orders(A, C), {}, (None, f"v1 was uploaded from commit {commit(1).short}", "git fetch"),
    ),
    "an invalid definition, also while relaxed": (None, make_orders(INVALID), {"relax": True}, (0, "invalid", "")),
}  # fmt: skip
"""The applied catalog, the target, permissions, and of the refusal the number, a part of the message, and a part of the fix."""


@pytest.mark.parametrize(("applied", "target", "permissions", "expected"), REFUSALS.values(), ids=REFUSALS)
def test_a_topic_that_cannot_be_applied_is_refused(
    registry: EmbeddedRegistry,
    applied: Catalog | None,
    target: Catalog,
    permissions: dict[str, Any],
    expected: tuple[int | None, str, str],
) -> None:
    if applied:
        carry_out(registry, applied)
    (refusal,) = plan_for(registry, target, **permissions).refusals
    number, message, fix = expected
    assert (refusal.name, refusal.number) == (ORDERS, number)
    assert message in refusal.message
    assert fix in refusal.fix
    assert "--relax" not in refusal.fix


def test_a_target_may_call_namespaces_otherwise(registry: EmbeddedRegistry) -> None:
    prod, other = NamespaceName("shop-prod", "sales"), NamespaceName("web", "sales")
    names = TargetNames("prod", namespaces={SALES: prod, other: prod})
    target = rename_catalog(make_orders(A, sales=Policies(S.FULL)), names)
    other_name = TopicName("shop-prod", "sales", "orders")
    assert names.to_target(ORDERS) == other_name
    assert target == Catalog({prod: Namespace(prod, Policies(S.FULL))}, {other_name: make_topic(other_name, A)})
    carry_out(registry, target)
    assert read_definitions(registry, other_name) == [A]
    more = Topic(TopicName("web", "sales", "more"))
    with pytest.raises(SchemactlError, match="shop/sales and web/sales would both be shop-prod/sales there"):
        rename_catalog(make_catalog(make_topic(ORDERS, A), more), names)


def test_a_selection_keeps_the_namespaces_of_its_topics() -> None:
    other = NamespaceName("shop", "web")
    clicks = TopicName("shop", "web", "clicks")
    whole = make_catalog(make_topic(ORDERS, A), make_topic(REFUNDS, A), make_topic(clicks, A))
    whole = replace(whole, namespaces={**whole.namespaces, other: Namespace(other)})
    assert select_known_part(whole) == whole
    assert set(select_known_part(whole, topics=["*/orders", "shop/web/*"]).topics) == {ORDERS, clicks}
    assert set(select_known_part(whole, topics=["persistent://shop/sales/refunds"]).namespaces) == {SALES}
    assert set(select_known_part(whole, namespaces=["shop/web"]).topics) == {clicks}
    assert set(select_known_part(whole, namespaces=["shop/web"]).namespaces) == {other}
    assert set(select_known_part(whole, namespaces=["shop/web", "shop/sales"], topics=["*/orders"]).topics) == {ORDERS}
    with pytest.raises(UsageError, match="no topic of the approved history"):
        select_known_part(whole, topics=["*/ordres"])
    with pytest.raises(UsageError, match="unknown namespace in the approved history"):
        select_known_part(whole, namespaces=["shop/wbe"])


GONE = make_orders(A, B, schema=None, deleted=True)


class Retaining(EmbeddedRegistry):
    """One whose topics have messages, as a broker's do."""

    entries = "orders retains 3 entries of messages"

    def describe_retained_messages(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        del written_with_schema
        return self.entries if topic == ORDERS else ""


@pytest.fixture
def open_retaining() -> Iterator[Retaining]:
    with closing(Retaining(":memory:")) as registry:
        carry_out(registry, make_orders(A, B))
        yield registry


def plan_catalog(registry: Retaining, *, force: bool = False, unreadable: bool = False) -> Plan:
    named = frozenset({ORDERS})
    permissions = Permissions(force_delete=named) if force else Permissions(delete=named)
    permissions = replace(permissions, unreadable=named if unreadable else frozenset())
    state = read_registry_state(registry, find_scope(GONE), deletions=named)
    return make_plan(state, GONE, origin=ORIGIN, permissions=permissions)


@pytest.mark.parametrize("force", [False, True])
def test_a_deletion_that_makes_messages_unreadable_is_refused_unless_it_is_allowed(
    open_retaining: Retaining, *, force: bool
) -> None:
    plan = plan_catalog(open_retaining, force=force)
    assert plan.steps == ()
    (refusal,) = plan.refusals
    assert refusal.message.startswith("its schema cannot be deleted: orders retains 3 entries of messages")
    option = "--force-delete" if force else "--allow-delete"
    assert f"{option} shop/sales/orders --allow-unreadable-messages shop/sales/orders`" in refusal.fix
    (step,) = plan_catalog(open_retaining, force=force, unreadable=True).steps
    assert isinstance(step, DeleteSchema)
    assert (step.force, step.unreadable) == (force, True)
    plan = plan_catalog(open_retaining, force=force, unreadable=True)
    assert (
        "! messages that the topic retains become unreadable (allowed: persistent://shop/sales/orders)"
        in render_plan(plan)
    )
    # More messages do not make a reviewed plan another one.
    open_retaining.entries = "orders retains 4 entries of messages"
    assert plan_digest(plan_catalog(open_retaining, force=force, unreadable=True)) == plan_digest(plan)
    assert apply_plan(plan_catalog(open_retaining, force=force, unreadable=True), open_retaining).failure is None
    assert len(get_live_versions(open_retaining.versions(ORDERS))) == 0


@pytest.mark.parametrize("unreadable", [False, True])
def test_a_rebuild_deletes_what_messages_need_only_if_it_is_allowed(
    open_retaining: Retaining, *, unreadable: bool
) -> None:
    named = frozenset({ORDERS})
    git = make_orders(B)
    state = read_registry_state(open_retaining, find_scope(git), deletions=named)
    permissions = Permissions(force_delete=named, unreadable=named if unreadable else frozenset())
    plan = make_rebuild(state, git, {}, origin=ORIGIN, permissions=permissions)
    if unreadable:
        assert [type(step) for step in plan.steps] == [DeleteSchema, RegisterVersion]
    else:
        (refusal,) = plan.refusals
        assert "its versions are not deleted: orders retains 3 entries of messages" in refusal.message
        assert plan.steps == ()


def test_an_apply_looks_again(open_retaining: Retaining) -> None:
    open_retaining.entries = ""
    plan = plan_catalog(open_retaining)
    open_retaining.entries = "orders retains 1 entry of messages"
    result = apply_plan(plan, open_retaining)
    assert isinstance(result.failure, RegistryError)
    assert "orders retains 1 entry" in str(result.failure)
    assert len(open_retaining.versions(ORDERS)) == 2


def test_a_generation_does_not_begin_while_messages_are_retained(open_retaining: Retaining) -> None:
    target = make_orders(A, B, None, B)
    plan = plan_for(open_retaining, target)
    assert plan.steps == ()
    (refusal,) = plan.refusals
    assert "new generation cannot begin: orders retains 3 entries of messages" in refusal.message
    open_retaining.entries = ""
    plan = plan_for(open_retaining, target)
    assert not plan.refusals
    open_retaining.entries = "orders retains 1 entry of messages"
    result = apply_plan(plan, open_retaining)
    assert "orders retains 1 entry" in str(result.failure)
    assert read_definitions(open_retaining, ORDERS) == [A, B]


def test_a_registry_without_the_old_versions_is_not_asked_about_messages(open_retaining: Retaining) -> None:
    open_retaining.delete_schema(ORDERS, force=True)
    plan = plan_for(open_retaining, make_orders(A, B, None, B))
    assert not plan.refusals
    assert apply_plan(plan, open_retaining).failure is None
    assert read_definitions(open_retaining, ORDERS) == [None, None, None, B]


BROKEN = record(ID, NEEDED)
AFTER = record(ID, NEEDED, NOTE)
TARGET = make_orders(A, BROKEN, AFTER, sales=Policies(S.BACKWARD))

WRITING = (
    "create_namespace",
    "create_topic",
    "put_schema",
    "set_namespace_policies",
    "set_topic_policies",
    "_set_property",
)
WRITES = 14
"""Namespace, policies and topic; three uploads; four writes that relax the topic and four that restore it."""


def make_waiver(before: SchemaInfo, new: SchemaInfo) -> Waiver:
    digest = compute_broker_fingerprint(ORDERS, [SchemaVersion(0, before)], new)
    return Waiver(BROKER_RULE, ORDERS, digest, "the old field was wrong", "ada", date(2020, 1, 31))


def plan_with_waivers(registry: EmbeddedRegistry, waivers: dict[str, Waiver], target: Catalog = TARGET) -> Plan:
    """The plan when each of these commits has the waiver in its tree."""

    def list_waivers(one: Commit) -> list[Waiver]:
        return [waivers[one.id]] if one.id in waivers else []

    state = read_registry_state(registry, find_scope(target))
    return make_plan(state, target, origin=ORIGIN, permissions=Permissions(), waivers=list_waivers)


def test_only_the_waived_version_is_registered_while_the_topic_is_relaxed(registry: EmbeddedRegistry) -> None:
    of = make_waiver(A, BROKEN)
    plan = plan_with_waivers(registry, {commit(1).id: of})
    assert plan.refusals == ()
    steps = [step for step in plan.steps if isinstance(step, RegisterVersion | RelaxStrategy | RestoreStrategy)]
    assert [type(step) for step in steps] == [
        RegisterVersion,
        RelaxStrategy,
        RegisterVersion,
        RestoreStrategy,
        RegisterVersion,
    ]
    assert steps[1] == RelaxStrategy(ORDERS, S.BACKWARD, updates=True, waiver=of)
    assert steps[3] == RestoreStrategy(ORDERS, S.UNDEFINED, latest=1)
    assert apply_plan(plan, registry).failure is None
    assert read_definitions(registry, ORDERS) == [A, BROKEN, AFTER]
    assert (registry.strategy(ORDERS), registry.find_relaxed_topic(ORDERS)) == (S.BACKWARD, None)
    assert plan_for(registry, TARGET).steps == ()


WAIVED = {commit(1).id: make_waiver(A, BROKEN)}
NOT_WAIVED: dict[str, tuple[dict[str, Waiver], Catalog, tuple[SchemaInfo, ...], int]] = {
    "a waiver before the version": ({commit(0).id: make_waiver(A, BROKEN)}, TARGET, (), 1),
    "a waiver after the version": ({commit(2).id: make_waiver(A, BROKEN)}, TARGET, (), 1),
    "a waiver of another definition": ({commit(1).id: make_waiver(A, AFTER)}, TARGET, (), 1),
    "a waiver after another version": ({commit(1).id: make_waiver(B, BROKEN)}, TARGET, (), 1),
    "a version after a foreign one": (WAIVED, TARGET, (A, B), 1),
    "a later version under a transitive strategy": (
        WAIVED, make_orders(A, BROKEN, AFTER, sales=Policies(S.BACKWARD_TRANSITIVE)), (), 2,
    ),
    "an invalid definition": (
        {commit(1).id: make_waiver(A, INVALID)}, make_orders(A, INVALID, sales=Policies(S.BACKWARD)), (), 1,
    ),
}  # fmt: skip
"""The waivers by commit, the target, the registered versions, and the number of the refused version."""


@pytest.mark.parametrize(("waivers", "target", "registered", "number"), NOT_WAIVED.values(), ids=NOT_WAIVED)
def test_a_waiver_is_only_for_its_version(
    registry: EmbeddedRegistry,
    waivers: dict[str, Waiver],
    target: Catalog,
    registered: tuple[SchemaInfo, ...],
    number: int,
) -> None:
    if registered:
        carry_out(registry, make_orders(*registered[:1], sales=Policies(S.BACKWARD)))
        for info in registered[1:]:
            registry.put_schema(ORDERS, info)
    (refusal,) = plan_with_waivers(registry, waivers, target).refusals
    assert refusal.number == number
    assert ("invalid" in refusal.message) == (INVALID in [version.info for version in target.topics[ORDERS].versions])


@pytest.fixture
def broken_estate(tmp_path: Path) -> Estate:
    """A repository whose second version is a break, with its waiver in the same commit, which a later one removes."""
    estate = Estate(tmp_path / "shop")
    before, after = (SchemaInfo(SchemaType.AVRO, avsc(*fields).encode()) for fields in (["id"], ["id", "needed"]))
    entry = {
        "rule": BROKER_RULE,
        "topic": "shop/sales/orders",
        "fingerprint": compute_broker_fingerprint(estate.topic, [SchemaVersion(0, before)], after),
        "reason": "every consumer is ours",
        "owner": "ada",
        "until": "2020-01-31",
    }
    estate.scratch.commit({"namespaces/orders.avsc": avsc("id", "needed"), "waivers.yaml": json.dumps([entry]) + "\n"})
    estate.scratch.commit({"namespaces/orders.avsc": avsc("id", "needed", note=0), "waivers.yaml": None})
    return estate


def test_a_fresh_registry_gets_it_from_history_long_after_it_expired(broken_estate: Estate) -> None:
    text = broken_estate.run("plan").out
    assert "  ~ waived by ada, until 2020-01-31: every consumer is ours\n" in text
    broken_estate.run("apply", "--auto-approve")
    assert len(broken_estate.read_definitions()) == 3
    broken_estate.run("plan", "--detailed-exitcode")


def test_a_plan_file_says_it_and_needs_no_option(broken_estate: Estate) -> None:
    printed = broken_estate.run("plan", "--out", "plan.json")
    assert "--relax-while-replaying" not in printed.err
    assert "every consumer is ours" in broken_estate.run("plan", "show", "plan.json").out
    broken_estate.run("apply", "plan.json")
    assert len(broken_estate.read_definitions()) == 3


def test_a_rebuild_carries_it_out_too(broken_estate: Estate) -> None:
    broken_estate.run("rebuild", "--auto-approve")
    assert len(broken_estate.read_definitions()) == 3


@pytest.mark.slow
def test_killed_after_any_write_the_next_apply_finishes_and_restores(broken_estate: Estate, tmp_path: Path) -> None:
    broken_estate.run("apply", "--auto-approve")
    for calls in range(1, WRITES + 1):
        again = broken_estate.copy_to(tmp_path / str(calls))
        (again.scratch.path / ".schemactl/registry.db").unlink()

        def apply(_: Say, again: Estate = again, calls: int = calls) -> None:
            die_after(calls, EmbeddedRegistry, *WRITING)
            again.run("apply", "--auto-approve")

        assert_killed(*fork_process(apply))
        again.run("apply", "--auto-approve")
        again.run("plan", "--detailed-exitcode")
        assert again.read_definitions() == broken_estate.read_definitions()
        with again.registry() as registry:
            assert registry.find_relaxed_topic(again.topic) is None
            assert registry.strategy(again.topic) is S.BACKWARD
            assert registry.are_updates_allowed(again.topic.namespace_name)
