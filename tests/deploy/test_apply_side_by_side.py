"""Topics side by side: the registry ends as if they had come one after the other, whatever fails on the way."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from threading import Barrier, Event, Lock
from typing import Any

import pytest
from approved import ID, NEEDED, NOTE, A, B, C, S, held, plan_for, record, topic
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo
from schemactl.deploy import apply as applying
from schemactl.deploy.apply import Result, apply_plan
from schemactl.deploy.planner import scope_of
from schemactl.deploy.steps import PlanStep
from schemactl.registry.embedded import EmbeddedRegistry

SPACES = [NamespaceName("shop", name) for name in ("sales", "web")]
TOPICS = [TopicName("shop", space.name, name) for space in SPACES for name in ("a", "b", "c")]
NEEDS = record(ID, NEEDED)
CONTENTS = [A, B, C, NEEDS]

policies = st.builds(Policies, st.none() | st.sampled_from([S.FULL, S.BACKWARD, S.ALWAYS_COMPATIBLE]))


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Topics of two namespaces, some of which would be rejected."""
    spaces = {name: Namespace(name, draw(policies)) for name in SPACES}
    topics = {}
    for name in draw(st.sets(st.sampled_from(TOPICS))):
        infos = draw(st.lists(st.sampled_from(CONTENTS), unique=True, max_size=4))
        topics[name] = topic(name, *infos, policies=draw(policies), partitions=draw(st.sampled_from([None, 2])))
    return Catalog(spaces, topics)


class Failing(EmbeddedRegistry):
    """A registry where some requests about some names fail, the same ones in any order of names."""

    def __init__(self, faults: set[tuple[str, str, int]]) -> None:
        super().__init__(":memory:")
        self._faults = faults
        self._asked: Counter[tuple[str, str]] = Counter()
        self._counting = Lock()

    def _perhaps(self, what: str, name: object) -> None:
        with self._counting:
            self._asked[what, str(name)] += 1
            number = self._asked[what, str(name)]
        if (what, str(name), number) in self._faults:
            raise RegistryError(f"{what} of {name} failed")

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        self._perhaps("put", topic)
        return super().put_schema(topic, info)

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        self._perhaps("set", name)
        super().set_topic_policies(name, policies)

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        self._perhaps("set", name)
        super().set_namespace_policies(name, policies)

    def create_namespace(self, name: NamespaceName) -> None:
        self._perhaps("create", name)
        super().create_namespace(name)


faults = st.sets(
    st.tuples(st.just("put"), st.sampled_from([*map(str, TOPICS)]), st.integers(1, 3))
    | st.tuples(st.just("set"), st.sampled_from([*map(str, TOPICS), *map(str, SPACES)]), st.integers(1, 3))
    | st.tuples(st.just("create"), st.sampled_from([*map(str, SPACES)]), st.just(1)),
    max_size=4,
)


def outcome(
    catalog: Catalog, faults: set[tuple[str, str, int]], *, parallel: int, relax: bool
) -> tuple[Result, Catalog]:
    """The result of an apply to a registry with these faults, and what the registry holds then."""
    with closing(Failing(faults)) as registry:
        result = apply_plan(plan_for(registry, catalog, relax=relax), registry, parallel=parallel)
        found = registry.read(scope_of(catalog))
        assert all(registry.relaxed(name) is None for name in catalog.topics)
    topics = {
        name: replace(each, versions=tuple(replace(version, timestamp_ms=0) for version in each.versions))
        for name, each in found.topics.items()
    }
    return result, replace(found, topics=topics)


@pytest.mark.slow
@EXAMPLES
@given(catalogs(), faults, st.sampled_from([True, False]))
def test_the_registry_ends_as_after_one_topic_at_a_time(
    catalog: Catalog,
    faults: set[tuple[str, str, int]],
    relax: bool,  # noqa: FBT001  hypothesis gives it by position
) -> None:
    one, after_one = outcome(catalog, faults, parallel=1, relax=relax)
    many, after_many = outcome(catalog, faults, parallel=8, relax=relax)
    assert after_many == after_one
    assert {*many.done} == {*one.done}
    assert many.failures.keys() == one.failures.keys()
    assert [str(each) for each in many.failures.values()] == [str(each) for each in one.failures.values()]


@pytest.mark.slow
@EXAMPLES
@given(catalogs())
def test_what_is_not_left_out_is_applied_as_a_whole(catalog: Catalog) -> None:
    result, after = outcome(catalog, set(), parallel=8, relax=False)
    assert (result.left, result.failure) == ((), None)
    left_out = {refusal.name for refusal in result.plan.refusals}
    for name, wanted in catalog.topics.items():
        versions = after.topics[name].versions if name in after.topics else ()
        expected = 0 if name in left_out else len(wanted.versions)
        assert len(versions) == expected, name


def test_a_topic_has_its_steps_in_order_and_after_those_of_its_namespace() -> None:
    catalog = Catalog(
        {name: Namespace(name, Policies(S.FULL)) for name in SPACES},
        {name: topic(name, A, B, C, policies=Policies(S.BACKWARD)) for name in TOPICS},
    )
    told: list[tuple[int, PlanStep]] = []
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = plan_for(registry, catalog)
        apply_plan(plan, registry, parallel=8, progress=lambda number, step: told.append((number, step)))
    for name in TOPICS:
        numbers = [number for number, step in told if step.name in (name, name.namespace_name)]
        assert numbers == sorted(numbers)
    assert sorted(told) == list(enumerate(plan.steps, 1))


class Watching(EmbeddedRegistry):
    """Slow, and knows how many topics are relaxed at once; the first of each namespace waits for that of the other."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._counting = Lock()
        self._both_begun = Barrier(len(SPACES), timeout=30)
        self._begun: set[NamespaceName] = set()
        self._relaxed: set[TopicName] = set()
        self.most_of_a_namespace = 0

    def relax(self, topic: TopicName) -> None:
        super().relax(topic)
        space = topic.namespace_name
        with self._counting:
            self._relaxed.add(topic)
            spaces = Counter(name.namespace_name for name in self._relaxed)
            self.most_of_a_namespace = max(self.most_of_a_namespace, *spaces.values())
            is_first = space not in self._begun
            self._begun.add(space)
        if is_first:
            self._both_begun.wait()
        time.sleep(0.01)

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        # Whoever is relaxed, no client registers.
        assert topic not in self._relaxed or not self.is_allow_auto_update_schema(topic.namespace_name)
        return super().put_schema(topic, info)

    def restore(self, topic: TopicName) -> None:
        with self._counting:
            self._relaxed.discard(topic)
        super().restore(topic)


def test_in_a_namespace_one_topic_at_a_time_is_relaxed_and_namespaces_side_by_side() -> None:
    catalog = Catalog(
        {name: Namespace(name, Policies(S.FULL, is_allow_auto_update_schema=True)) for name in SPACES},
        {name: topic(name, A, NEEDS) for name in TOPICS},
    )
    with closing(Watching()) as registry:
        result = apply_plan(plan_for(registry, catalog, relax=True), registry, parallel=8)
        assert result.failure is None
        assert registry.most_of_a_namespace == 1
        assert all(held(registry, name) == [A, NEEDS] for name in TOPICS)
        assert all(registry.is_allow_auto_update_schema(space) for space in SPACES)


def test_with_fail_fast_nothing_more_is_tried_after_a_failure() -> None:
    catalog = Catalog({}, {name: topic(name, A, B) for name in TOPICS})
    with closing(Failing({("put", str(TOPICS[0]), 2)})) as registry:
        plan = plan_for(registry, catalog)
        result = apply_plan(plan, registry, parallel=1, fail_fast=True)
        assert held(registry, TOPICS[0]) == [A]
        assert all(held(registry, name) == [] for name in TOPICS[1:])
    assert result.stopped is not None
    assert str(result.failure) == f"put of {TOPICS[0]} failed"


def test_an_interrupt_does_not_wait_for_a_step_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_GRACE_S", 0.1)
    over = Event()

    class Hanging(EmbeddedRegistry):
        def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
            if topic == TOPICS[0]:
                over.wait(30)
            return super().put_schema(topic, info)

    told: list[PlanStep] = []
    with closing(Hanging(":memory:")) as registry:
        plan = plan_for(registry, Catalog({}, {name: topic(name, A, B) for name in TOPICS}))

        def waiting() -> None:
            if all(step in told for step in plan.steps if step.name != TOPICS[0]):
                raise KeyboardInterrupt

        result = apply_plan(plan, registry, waiting=waiting, progress=lambda _, step: told.append(step))
        assert not over.is_set()
        assert str(result.stopped).startswith("interrupted")
        assert all(held(registry, name) == [A, B] for name in TOPICS[1:])
        assert {step.name for _, step in result.left} == {TOPICS[0]}
        over.set()


SALES, WEB = SPACES
ORDERS = TOPICS[0]
OPEN = Policies(S.ALWAYS_COMPATIBLE)


def relaxing(**more: Topic) -> Catalog:
    """What is approved next: sales becomes less strict, orders has what no release takes."""
    stuck = topic(ORDERS, A, SchemaInfo(A.type, b"{"))
    return Catalog({SALES: Namespace(SALES, OPEN)}, {ORDERS: stuck, **{each.name: each for each in more.values()}})


@pytest.fixture
def strict() -> Iterator[EmbeddedRegistry]:
    """Sales is FULL, and holds the first version of two topics."""
    with closing(EmbeddedRegistry(":memory:")) as registry:
        first = Catalog({SALES: Namespace(SALES, Policies(S.FULL))}, {name: topic(name, A) for name in TOPICS[:2]})
        apply_plan(plan_for(registry, first), registry)
        yield registry


def test_no_namespace_becomes_less_strict_for_a_topic_that_is_left_out(strict: EmbeddedRegistry) -> None:
    plan = plan_for(strict, relaxing(other=topic(TOPICS[1], A, NEEDS)))
    assert plan.steps == ()
    reasons = {refusal.name: refusal.message for refusal in plan.refusals}
    assert reasons.keys() == {SALES, *TOPICS[:2]}
    assert reasons[SALES] == (f"keeps its policies: the new ones would let more in to {ORDERS}, which is left out")
    assert reasons[TOPICS[1]].startswith("needs the new policies of shop/sales, which are left out. ")


def test_what_needs_no_new_policy_is_applied_all_the_same(strict: EmbeddedRegistry) -> None:
    result = apply_plan(plan_for(strict, relaxing(other=topic(TOPICS[1], A, B))), strict)
    assert result.failure is None
    assert held(strict, TOPICS[1]) == [A, B]
    assert strict.strategy(ORDERS) is S.FULL


@pytest.mark.parametrize(
    "stricter", [Policies(S.FULL_TRANSITIVE), Policies(is_allow_auto_update_schema=False)], ids=str
)
def test_a_namespace_becomes_stricter_for_it(strict: EmbeddedRegistry, stricter: Policies) -> None:
    catalog = relaxing()
    catalog = replace(catalog, namespaces={SALES: Namespace(SALES, stricter)})
    plan = plan_for(strict, catalog)
    assert [step.name for step in plan.steps] == [SALES]
    assert {refusal.name for refusal in plan.refusals} == {ORDERS}


def test_a_topic_with_a_strategy_of_its_own_is_not_concerned(strict: EmbeddedRegistry) -> None:
    strict.set_topic_policies(ORDERS, Policies(S.FULL))
    plan = plan_for(strict, relaxing(other=topic(TOPICS[1], A, NEEDS)))
    assert {step.name for step in plan.steps} == {SALES, TOPICS[1]}
    assert {refusal.name for refusal in plan.refusals} == {ORDERS}


def test_a_namespace_that_only_a_topic_left_out_needs_is_not_created() -> None:
    catalog = Catalog({}, {ORDERS: topic(ORDERS, SchemaInfo(A.type, b"{")), TOPICS[3]: topic(TOPICS[3], A)})
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = plan_for(registry, catalog)
        assert {step.name for step in plan.steps} == {WEB, TOPICS[3]}
        assert apply_plan(plan, registry).failure is None
        assert registry.namespaces() == [WEB]


@pytest.mark.parametrize(
    ("meanwhile", "what"),
    [
        (lambda registry: registry.put_schema(ORDERS, B), f"{ORDERS}: somebody registered v1"),
        (lambda registry: registry.delete_schema(ORDERS), f"{ORDERS}: a tombstone took v1"),
        (lambda registry: registry.delete_topic(ORDERS), f"{ORDERS} is gone"),
        (
            lambda registry: registry.set_namespace_policies(SALES, Policies(S.FORWARD)),
            "shop/sales: schema_compatibility_strategy was FULL and is FORWARD",
        ),
        (
            lambda registry: registry.set_topic_policies(ORDERS, Policies(schema_validation_enforced=True)),
            f"{ORDERS}: schema_validation_enforced was not set and is true",
        ),
        (lambda registry: registry.relax(ORDERS), f"{ORDERS} was relaxed"),
    ],
    ids=["version", "tombstone", "topic", "namespace policy", "topic policy", "relaxed"],
)
def test_a_stale_plan_says_what_has_changed(strict: EmbeddedRegistry, meanwhile: Any, what: str) -> None:
    plan = plan_for(strict, Catalog({}, {ORDERS: topic(ORDERS, A, record(ID, NOTE))}))
    meanwhile(strict)
    with pytest.raises(StalePlan) as raised:
        apply_plan(plan, strict)
    assert what in raised.value.what


def test_what_happens_to_other_topics_makes_no_plan_stale(strict: EmbeddedRegistry) -> None:
    both = Catalog({}, {name: topic(name, A) for name in TOPICS[:2]})
    plan = plan_for(strict, replace(both, topics={**both.topics, ORDERS: topic(ORDERS, A, B)}))
    strict.put_schema(TOPICS[1], B)
    assert apply_plan(plan, strict).failure is None
