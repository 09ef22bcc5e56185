"""Laws of plan and apply, over approved histories and registries made at random."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import date

import pytest
from approved import (
    A_WITH_DOC,
    ID,
    NEEDED,
    ORDERS,
    REFUNDS,
    SALES,
    A,
    B,
    C,
    S,
    make_topic,
    plan_for,
    read_definitions,
    record,
)
from approved import make_catalog as catalog_of
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.comparison.changes import last_tombstone, remove_upload_properties
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType, get_live_versions
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.drift import find_drift
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

CONTENTS = [A, B, C, record(ID, NEEDED), SchemaInfo(SchemaType.STRING), SchemaInfo(SchemaType.INT64)]
TEXTS = [*CONTENTS, A_WITH_DOC, record(ID, owner="somebody")]

strategies = st.none() | st.sampled_from(list(S))
policies = st.builds(Policies, strategies, st.none(), st.none() | st.booleans())
namespace_policies = st.builds(Policies, strategies, st.none() | st.booleans(), st.none() | st.booleans())


@st.composite
def draw_topic(draw: st.DrawFn, name: TopicName) -> Topic:
    contents = st.lists(st.sampled_from(CONTENTS), unique=True, max_size=5)
    infos: list[SchemaInfo | None] = [*draw(contents)]
    current = [info for info in infos if info]
    while draw(st.sampled_from([False, False, True])) and (current := draw(contents)):
        infos += [*[None] * draw(st.integers(1, 2)), *current]
    deleted = draw(st.booleans())
    in_force = None if deleted or not current else draw(st.sampled_from([*current, None]))
    partitions = draw(st.none() | st.integers(1, 4))
    return make_topic(name, *infos, schema=in_force, deleted=deleted, partitions=partitions, policies=draw(policies))


@st.composite
def draw_catalog(draw: st.DrawFn) -> Catalog:
    """An approved history, with policies that were declared once."""
    catalog = draw(st.builds(catalog_of, draw_topic(ORDERS), draw_topic(REFUNDS), sales=st.none() | policies))
    once: dict[NamespaceName | TopicName, Policies] = {
        SALES: draw(namespace_policies),
        ORDERS: Policies(draw(strategies)),
    }
    former = {}
    for name, last in once.items():
        subject = catalog.topics.get(name) if isinstance(name, TopicName) else catalog.namespaces.get(name)
        declared = subject.policies.managed() if subject and not getattr(subject, "deleted", False) else {}
        left = {policy: value for policy, value in last.managed().items() if policy not in declared}
        former[name] = Policies.of(left)
    return replace(catalog, former={name: left for name, left in former.items() if left != Policies()})


@st.composite
def draw_registry(draw: st.DrawFn) -> EmbeddedRegistry:
    """A registry that others have written to."""
    registry = EmbeddedRegistry(":memory:")
    if not draw(st.booleans()):
        return registry
    registry.create_namespace(SALES)
    registry.set_namespace_policies(SALES, Policies(S.ALWAYS_COMPATIBLE))
    for name in (ORDERS, REFUNDS):
        for text in draw(st.lists(st.none() | st.sampled_from(TEXTS), max_size=4)):
            if text is None:
                registry.delete_schema(name)
            else:
                registry.put_schema(name, text)
        if draw(st.booleans()):
            registry.create_topic(name, draw(st.none() | st.integers(1, 4)))
            registry.set_topic_policies(name, draw(policies))
            if draw(st.booleans()):
                registry.relax(name)
    registry.set_namespace_policies(SALES, draw(namespace_policies))
    registry.set_auto_update_strategy(SALES, draw(strategies.filter(lambda strategy: strategy is not S.UNDEFINED)))
    return registry


permissions = st.fixed_dictionaries(
    {
        "relax": st.booleans(),
        "delete": st.frozensets(st.sampled_from([ORDERS, REFUNDS])),
        "force_delete": st.frozensets(st.sampled_from([ORDERS, REFUNDS])),
    }
)


@EXAMPLES
@given(draw_registry(), draw_catalog(), permissions)
def test_a_plan_is_refused_or_carried_out_as_predicted_and_then_empty(
    registry: EmbeddedRegistry, target: Catalog, allowed: dict[str, object]
) -> None:
    with closing(registry):
        plan = plan_for(registry, target, **allowed)
        if plan.refusals:
            return
        result = apply_plan(plan, registry)
        # apply stops where the registry answers otherwise than predicted.
        assert result.failure is None
        again = plan_for(registry, target, **allowed)
        assert (again.steps, again.refusals) == ((), ())
        assert again.notes == plan.notes
        assert all(registry.find_relaxed_topic(name) is None for name in (ORDERS, REFUNDS))


@EXAMPLES
@given(draw_catalog())
def test_an_empty_registry_gets_gits_numbers(target: Catalog) -> None:
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = plan_for(registry, target, relax=True)
        if plan.refusals:
            return  # partitions that cannot be had, say: relaxing helps against incompatibility alone
        numbers = [
            (step.answer.version, step.version.number) for step in plan.steps if isinstance(step, RegisterVersion)
        ]
        assert all(registrys == gits for registrys, gits in numbers)
        apply_plan(plan, registry)
        for name, declared in target.topics.items():
            ended = last_tombstone(declared.versions)
            expected = [version.info if version.number > ended else None for version in declared.versions]
            assert read_definitions(registry, name) == (expected if declared.schema else [])


@EXAMPLES
@given(st.lists(st.lists(st.sampled_from(CONTENTS), unique=True, min_size=1, max_size=3), max_size=4), st.data())
def test_a_registry_that_follows_generations_has_gits_numbers_at_each_moment(
    generations: list[list[SchemaInfo]], data: st.DataObject
) -> None:
    line: list[SchemaInfo | None] = []
    for generation in generations:
        line += [*([None] if line else []), *generation]
    ends = [position + 1 for position, info in enumerate(line) if info]
    with closing(EmbeddedRegistry(":memory:")) as registry:
        for end in [
            *data.draw(st.lists(st.sampled_from(ends), unique=True).map(sorted) if ends else st.just([])),
            *ends[-1:],
        ]:
            target = catalog_of(make_topic(ORDERS, *line[:end]), sales=Policies(S.ALWAYS_COMPATIBLE))
            before = plan_for(registry, target)
            assert (before.refusals, before.number_mismatches, before.has_unrecorded_mismatch_now) == ((), (), False)
            assert find_kinds_of_drift(registry, target) <= {
                DriftKind.MISSING_VERSIONS,
                DriftKind.TOPIC_MISSING,
                DriftKind.NAMESPACE_MISSING,
            }
            assert apply_plan(before, registry).failure is None
            assert plan_for(registry, target).steps == ()
            assert find_kinds_of_drift(registry, target) == set()
            current = get_live_versions(target.topics[ORDERS].versions)
            versions_there = registry.read(find_scope(target)).topics[ORDERS].versions
            assert [
                (version.number, version.info and remove_upload_properties(version.info))
                for version in get_live_versions(versions_there)
            ] == [(version.number, version.info) for version in current]


@EXAMPLES
@given(draw_registry(), draw_catalog())
def test_where_nothing_drifted_there_is_nothing_to_apply(registry: EmbeddedRegistry, target: Catalog) -> None:
    """And once a plan is carried out, only what others did is left to tell."""
    with closing(registry):
        plan = plan_for(registry, target, relax=True)
        kinds = find_kinds_of_drift(registry, target)
        resets = {step for step in plan.steps if isinstance(step, SetPolicies) and is_reset(step)}
        assert kinds or not (set(plan.steps) - resets or plan.refusals)
        if not plan.refusals:
            apply_plan(plan, registry)
            assert find_kinds_of_drift(registry, target) <= {
                DriftKind.FOREIGN_VERSION,
                DriftKind.TOMBSTONE,
                DriftKind.NUMBERS_APART,
                DriftKind.NO_LONGER_DECLARED,
                *([DriftKind.POLICY] if target.former else []),
            }


def is_reset(step: SetPolicies) -> bool:
    return (step.from_namespace, step.from_default) != (Policies(), Policies())


def find_kinds_of_drift(registry: EmbeddedRegistry, target: Catalog) -> set[DriftKind]:
    state = read_registry_state(registry, find_scope(target))
    origin = Origin("local", registry.url, registry.release, "main", None)
    plan = make_plan(state, target, origin=origin, permissions=Permissions())
    subject = find_drift(target, state, plan, commit=lambda _id: None, today=date(2026, 11, 22))
    return {difference.kind for difference in (*subject.differences, *subject.pending)}
