"""A schema is not hidden behind a tombstone while the registry says that messages need it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from approved import ORDERS, ORIGIN, A, B, carry_out, held, orders

from schemactl.core.catalog import Catalog
from schemactl.core.errors import RegistryError
from schemactl.core.names import TopicName
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.planner import make_plan, scope_of
from schemactl.deploy.registry_state import observe
from schemactl.deploy.steps import DeleteSchema, Permissions, Plan
from schemactl.registry.embedded import EmbeddedRegistry

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
