"""The plans of all namespaces have together the steps of the whole plan: no step is lost between the jobs of a matrix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

import pytest
from approved import A_WITH_DOC, ID, NEEDED, ORIGIN, A, B, C, S, make_topic, record
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.core.catalog import Catalog, Namespace, Topic, list_namespaces, select_part
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin, Plan, PlanNote, PlanRefusal
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.steps.create_tenant import CreateTenant
from schemactl.deploy.steps.step import Step
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

NAMESPACES = [NamespaceName("shop", "sales"), NamespaceName("shop", "stock"), NamespaceName("web", "clicks")]
TOPICS = [
    TopicName(space.tenant, space.name, name, domain)
    for space in NAMESPACES
    for name in ("orders", "refunds")
    for domain in ("persistent", "non-persistent")
]
CONTENTS = [A, B, C, record(ID, NEEDED), SchemaInfo(SchemaType.STRING)]


class RegistryWithTenants(EmbeddedRegistry):
    """An embedded registry in which tenants are missing until they are created, as on a cluster."""

    def has_tenant(self, tenant: str) -> bool:
        return self.tenant(tenant) is not None


strategies = st.none() | st.sampled_from(list(S))
namespace_policies = st.builds(
    Policies,
    strategies,
    st.none() | st.booleans(),
    st.none() | st.booleans(),
    st.just({}) | st.just({"message_ttl_in_seconds": 60}),
)


@st.composite
def topics(draw: st.DrawFn, name: TopicName) -> Topic:
    infos = draw(st.lists(st.sampled_from(CONTENTS), unique=True, max_size=4))
    is_deleted = draw(st.sampled_from([False, False, True]))
    return make_topic(
        name,
        *infos,
        schema=infos[-1] if infos and not is_deleted else None,
        deleted=is_deleted,
        partitions=draw(st.none() | st.integers(1, 3)),
        policies=draw(st.builds(Policies, strategies)),
        lifecycle=draw(st.sampled_from(["stable", "stable", "draft"])),
    )


@st.composite
def histories(draw: st.DrawFn) -> Catalog:
    names = draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=7))
    spaces = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
    former: dict[NamespaceName | TopicName, Policies] = {
        name: Policies(draw(strategies)) for name in NAMESPACES if name not in spaces and draw(st.booleans())
    }
    return Catalog(
        {name: Namespace(name, draw(namespace_policies)) for name in spaces},
        {name: draw(topics(name)) for name in names},
        former,
    )


@st.composite
def registries(draw: st.DrawFn) -> EmbeddedRegistry:
    """A registry to which others have written."""
    registry = RegistryWithTenants(":memory:")
    for space in draw(st.lists(st.sampled_from(NAMESPACES), unique=True)):
        registry.create_namespace(space)
        registry.set_namespace_policies(space, Policies(S.ALWAYS_COMPATIBLE))
        for name in (name for name in TOPICS if name.namespace_name == space):
            for info in draw(st.lists(st.none() | st.sampled_from([*CONTENTS, A_WITH_DOC]), max_size=3)):
                if info is None:
                    registry.delete_schema(name)
                else:
                    registry.put_schema(name, info)
            if draw(st.booleans()):
                registry.create_topic(name, draw(st.none() | st.integers(1, 3)))
                if draw(st.sampled_from([False, False, True])):
                    registry.relax(name)
        registry.set_namespace_policies(space, draw(namespace_policies))
    return registry


permissions = st.builds(
    Permissions,
    delete=st.frozensets(st.sampled_from(TOPICS)),
    force_delete=st.frozensets(st.sampled_from(TOPICS)),
    relax=st.booleans(),
    create_tenants=st.booleans(),
)


def make_shard(registry: EmbeddedRegistry, target: Catalog, allowed: Permissions, origin: Origin) -> Plan:
    state = read_registry_state(registry, find_scope(target), git=target)
    names = target.topics.keys()
    allowed = replace(allowed, delete=allowed.delete & names, force_delete=allowed.force_delete & names)
    return make_plan(state, target, origin=origin, permissions=allowed)


def count_steps(steps: Iterable[Step]) -> Counter[str]:
    """Count the steps, also of several topics; a tenant counts by its name, because each of its namespaces may create it."""
    return Counter(json.dumps(step.to_json()) for step in steps if not isinstance(step, CreateTenant))


def list_by_name(plan: Plan) -> dict[str, list[str]]:
    steps_by_name: dict[str, list[str]] = {}
    for step in plan.steps:
        if not isinstance(step, CreateTenant):
            steps_by_name.setdefault(str(step.name), []).append(json.dumps(step.to_json()))
    return steps_by_name


def describe(entry: PlanRefusal | PlanNote) -> tuple[str, str]:
    return str(entry.name), entry.message


@EXAMPLES
@given(registries(), histories(), permissions, st.frozensets(st.sampled_from(["shop", "web"])))
def test_the_plans_of_all_namespaces_are_the_whole_plan(
    registry: EmbeddedRegistry, target: Catalog, allowed: Permissions, declared_tenants: frozenset[str]
) -> None:
    origin = replace(ORIGIN, declared_tenants=declared_tenants)
    parts = [select_part(target, (), [str(name)]) for name in list_namespaces(target)]
    with closing(registry):
        whole, *shards = [make_shard(registry, part, allowed, origin) for part in (target, *parts)]
    assert count_steps(whole.steps) == count_steps(step for shard in shards for step in shard.steps)
    steps_by_shard = [list_by_name(shard) for shard in shards]
    merged = {name: steps for shard_steps in steps_by_shard for name, steps in shard_steps.items()}
    # No name is in two shards, and the steps of each name are in order.
    assert len(merged) == sum(map(len, steps_by_shard))
    assert merged == list_by_name(whole)
    tenants = [{step.name.tenant for step in plan.steps if isinstance(step, CreateTenant)} for plan in (whole, *shards)]
    assert tenants[0] == set().union(*tenants[1:])
    for attribute in ("refusals", "notes"):
        entries = [entry for shard in shards for entry in getattr(shard, attribute)]
        assert Counter(map(describe, entries)) == Counter(map(describe, getattr(whole, attribute)))
    assert {topic.name for shard in shards for topic in shard.number_mismatches} == {
        topic.name for topic in whole.number_mismatches
    }
