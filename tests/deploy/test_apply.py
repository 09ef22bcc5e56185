"""Plans carried out: in order, read back, stopped at the first failure, finished by the next; and with the topics in parallel."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock

import pytest
from approved import (
    ID,
    NEEDED,
    NOTE,
    ORDERS,
    REFUNDS,
    SALES,
    A,
    B,
    C,
    S,
    carry_out,
    make_catalog,
    make_orders,
    make_topic,
    plan_for,
    read_definitions,
    record,
)
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.core.catalog import Catalog, Namespace
from schemactl.core.errors import PartlyApplied, RegistryError, SchemactlError, StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo
from schemactl.deploy.apply import ApplyResult, apply_plan
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.deploy.steps.relax_strategy import RelaxStrategy
from schemactl.deploy.steps.restore_strategy import RestoreStrategy
from schemactl.deploy.steps.step import Step
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.embedded import EmbeddedRegistry

TARGET = make_catalog(make_topic(ORDERS, A, B, C), make_topic(REFUNDS, A, B), sales=Policies(S.FULL))
REPLAYED = make_orders(A, record(ID, NEEDED), policies=Policies(S.FULL))


class Disturbed(EmbeddedRegistry):
    """A registry to which something happens at the n-th upload, counted from 1."""

    def __init__(self, at: int, disturb: Callable[[Disturbed], object]) -> None:
        super().__init__(":memory:")
        self.uploads = 0
        self.at = at
        self.what = disturb

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        self.uploads += 1
        if self.uploads == self.at:
            self.what(self)
        return super().put_schema(topic, info)


Disturb = Callable[[int, Callable[["Disturbed"], object]], "Disturbed"]


@pytest.fixture
def open_disturbed() -> Iterator[Disturb]:
    """Opens disturbed registries."""
    with ExitStack() as opened:
        yield lambda at, disturb: opened.enter_context(closing(Disturbed(at, disturb)))


def fail(_: Disturbed) -> None:
    raise RegistryError("the connection was lost")


def raise_interrupt(_: Disturbed) -> None:
    raise KeyboardInterrupt


def test_progress_tells_each_step_with_its_number(registry: EmbeddedRegistry) -> None:
    reported_steps: list[tuple[int, Step]] = []
    plan = plan_for(registry, TARGET)
    result = apply_plan(
        plan, registry, parallel=1, on_step_done=lambda number, step: reported_steps.append((number, step))
    )
    assert result == ApplyResult(plan, tuple(range(1, len(plan.steps) + 1)))
    assert reported_steps == list(enumerate(plan.steps, 1))
    assert result.remaining_steps == ()


def test_a_plan_is_stale_once_a_topic_was_relaxed_which_is_restored(registry: EmbeddedRegistry) -> None:
    carry_out(registry, make_orders(A, sales=Policies(is_allow_auto_update_schema=True)))
    plan = plan_for(registry, TARGET)
    before = registry.read(plan.scope)
    registry.relax(ORDERS)
    with pytest.raises(StalePlan, match=f"nothing else was changed; restored {ORDERS}") as raised:
        apply_plan(plan, registry)
    assert f"{ORDERS} was relaxed" in raised.value.message
    assert registry.read(plan.scope) == before


def test_a_plan_is_not_stale_because_of_what_it_does_not_speak_of(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, TARGET)
    registry.create_namespace(SALES)
    registry.put_schema(TopicName("shop", "sales", "other"), A)
    registry.delete_namespace(SALES)
    assert apply_plan(plan, registry).failure is None


def test_a_plan_cannot_be_applied_twice(registry: EmbeddedRegistry) -> None:
    plan = carry_out(registry, TARGET)
    with pytest.raises(StalePlan):
        apply_plan(plan, registry)


class Haunted(EmbeddedRegistry):
    """A registry that shows the schemas of a deleted namespace after it was created again."""

    def create_namespace(self, name: NamespaceName) -> None:
        super().create_namespace(name)
        if self.get_schema(ORDERS) is None:
            self.put_schema(ORDERS, B)


class Deaf(EmbeddedRegistry):
    """Stores what is uploaded, and its answers never arrive."""

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        super().put_schema(topic, info)
        raise RegistryError("the connection was lost")


def garble(info: SchemaInfo) -> SchemaInfo:
    return replace(info, schema=info.schema.replace(b"Order", b"Ordre"))


class Garbling(EmbeddedRegistry):
    """Stores other content than is uploaded."""

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        return super().put_schema(topic, garble(info))


Definitions = tuple[list[SchemaInfo], list[SchemaInfo]]
FOREIGN = record(ID, {"name": "own", "type": "string", "default": ""})
GARBLED = [garble(A), garble(B), garble(C)]
OTHER_NUMBER = (
    "{}: the registry gave Git's v{} the number {} where {} was expected: "
    "another client is writing to it, or it has schemas of an earlier namespace of this name"
)
FAULTS = {
    "a request fails": (
        lambda: Disturbed(3, fail), (RegistryError, "the connection was lost"), {ORDERS},
        ([A, B], [A, B]), ([A, B, C], [A, B]),
    ),
    "an interrupt is a failure like others": (
        lambda: Disturbed(2, raise_interrupt), (SchemactlError, "interrupted"), {ORDERS, REFUNDS},
        ([A], []), ([A, B, C], [A, B]),
    ),
    "an upload gets another number than expected": (
        lambda: Disturbed(2, lambda self: EmbeddedRegistry.put_schema(self, ORDERS, FOREIGN)),
        (RegistryError, OTHER_NUMBER.format(ORDERS, 1, 2, 1)), {ORDERS},
        ([A, FOREIGN, B], [A, B]), ([A, FOREIGN, B, C], [A, B]),
    ),
    "schemas appear with their namespace, which the next plan includes": (
        lambda: Haunted(":memory:"), (RegistryError, OTHER_NUMBER.format(ORDERS, 0, 1, 0)), {ORDERS},
        ([B, A], [A, B]), ([B, A, C], [A, B]),
    ),
    "an upload whose answer was lost counts as done": (
        lambda: Deaf(":memory:"), None, set(), ([A, B, C], [A, B]), ([A, B, C], [A, B]),
    ),
    "other content is read back": (
        lambda: Garbling(":memory:"),
        (RegistryError, f"{ORDERS}: v0 has other content in the registry than was uploaded"), {ORDERS, REFUNDS},
        (GARBLED, GARBLED[:2]), (GARBLED, GARBLED[:2]),
    ),
}  # fmt: skip
"""Registries with a fault; and of an apply of `TARGET`: its failure, the topics with remaining steps, and the definitions of orders and
refunds after it and after the next apply."""


@pytest.mark.parametrize(
    ("open_registry", "failure", "remaining", "versions", "next_versions"), FAULTS.values(), ids=FAULTS
)
def test_a_failure_leaves_the_rest_to_the_next_apply(
    open_registry: Callable[[], EmbeddedRegistry],
    failure: tuple[type[SchemactlError], str] | None,
    remaining: set[TopicName],
    versions: Definitions,
    next_versions: Definitions,
) -> None:
    with closing(open_registry()) as registry:
        result = apply_plan(plan_for(registry, TARGET), registry, parallel=1)
        assert (result.failure and (type(result.failure), result.failure.message)) == failure
        assert {step.name for _, step in result.remaining_steps} == remaining
        assert (read_definitions(registry, ORDERS), read_definitions(registry, REFUNDS)) == versions
        carry_out(registry, TARGET)
        assert (read_definitions(registry, ORDERS), read_definitions(registry, REFUNDS)) == next_versions


def test_an_interrupt_before_the_first_step_is_one(open_disturbed: Disturb) -> None:
    registry = open_disturbed(1, raise_interrupt)
    carry_out(registry, make_orders())
    with pytest.raises(KeyboardInterrupt):
        apply_plan(plan_for(registry, make_orders(A)), registry)


@pytest.mark.parametrize("disturb", [fail, raise_interrupt])
def test_a_relaxed_strategy_is_always_restored(open_disturbed: Disturb, disturb: Callable[[Disturbed], None]) -> None:
    registry = open_disturbed(2, disturb)
    plan = plan_for(registry, REPLAYED, relax=True)
    result = apply_plan(plan, registry)
    assert result.failure is not None
    assert any(isinstance(plan.steps[number - 1], RelaxStrategy) for number in result.done)
    assert (registry.strategy(ORDERS), registry.find_relaxed_topic(ORDERS)) == (S.FULL, None)
    carry_out(registry, REPLAYED, relax=True)
    assert read_definitions(registry, ORDERS) == [A, record(ID, NEEDED)]
    assert registry.strategy(ORDERS) is S.FULL


def test_a_version_that_appeared_while_the_topic_was_relaxed_is_reported() -> None:
    uploads = [record(ID, {"name": "theirs", "type": "int"})]

    class Moved(EmbeddedRegistry):
        def restore(self, topic: TopicName) -> None:
            while uploads:
                self.put_schema(topic, uploads.pop())
            super().restore(topic)

    with closing(Moved(":memory:")) as registry:
        plan = plan_for(registry, REPLAYED, relax=True)
        result = apply_plan(plan, registry)
        ((_, left),) = result.remaining_steps
        assert isinstance(left, RestoreStrategy)
        assert result.failure
        assert result.is_stale
        assert result.failure.exit_code == 4
        assert "another client uploaded version 2 over the admin API while the topic accepted every schema" in str(
            result.failure
        )
        assert (registry.strategy(ORDERS), registry.find_relaxed_topic(ORDERS)) == (S.FULL, None)


def test_a_strategy_that_cannot_be_restored_is_told_and_restored_by_the_next_apply() -> None:
    class CutOff(EmbeddedRegistry):
        connected = False

        def restore(self, topic: TopicName) -> None:
            if not self.connected:
                raise RegistryError("the connection was lost")
            super().restore(topic)

    with closing(CutOff(":memory:")) as registry:
        result = apply_plan(plan_for(registry, REPLAYED, relax=True), registry)
        assert result.failure is not None
        assert "still has the strategy ALWAYS_COMPATIBLE" in result.failure.message
        assert "the connection was lost" in result.failure.message
        assert registry.strategy(ORDERS) is S.ALWAYS_COMPATIBLE
        registry.connected = True
        carry_out(registry, REPLAYED)
        assert registry.strategy(ORDERS) is S.FULL


def test_a_deletion_that_was_done_meanwhile_is_not_done_twice(open_disturbed: Disturb) -> None:
    gone = make_catalog(make_topic(ORDERS, A, schema=None, deleted=True), make_topic(REFUNDS, A, B))
    registry = open_disturbed(3, lambda self: self.delete_schema(ORDERS))
    carry_out(registry, make_catalog(make_topic(ORDERS, A), make_topic(REFUNDS, A)))
    carry_out(registry, gone, delete=frozenset({ORDERS}))
    assert read_definitions(registry, ORDERS) == [A, None]


@pytest.mark.parametrize("permission", ["delete", "force_delete"])
def test_a_version_that_was_uploaded_since_the_plan_is_not_deleted(registry: EmbeddedRegistry, permission: str) -> None:
    carry_out(registry, make_orders(A))
    gone = make_orders(A, schema=None, deleted=True)
    plan = plan_for(registry, gone, **{permission: frozenset({ORDERS})})
    registry.put_schema(ORDERS, B)
    result = apply_plan(plan, registry, is_current=True)
    assert result.is_stale
    assert "its schema is not deleted: another client uploaded version 1 since the plan was made" in str(result.failure)
    assert read_definitions(registry, ORDERS) == [A, B]
    carry_out(registry, gone, **{permission: frozenset({ORDERS})})
    assert read_definitions(registry, ORDERS) == ([A, B, None] if permission == "delete" else [])


NEW_POLICIES = Policies(S.FULL, is_allow_auto_update_schema=False, settings={"message_ttl_in_seconds": 60})


@pytest.mark.parametrize(
    ("name", "new", "meanwhile", "change"),
    [
        (SALES, NEW_POLICIES, Policies(S.FORWARD), "schema_compatibility_strategy was BACKWARD and is FORWARD"),
        (
            SALES,
            Policies(is_allow_auto_update_schema=True),
            Policies(is_allow_auto_update_schema=False),
            "is_allow_auto_update_schema was not set and is false",
        ),
        (
            SALES,
            Policies(settings={"message_ttl_in_seconds": 60}),
            Policies(settings={"message_ttl_in_seconds": 5}),
            "message_ttl_in_seconds was not set and is 5",
        ),
        (ORDERS, Policies(S.FULL), Policies(S.FORWARD), "schema_compatibility_strategy was UNDEFINED and is FORWARD"),
        (SALES, NEW_POLICIES, NEW_POLICIES, None),
        (SALES, NEW_POLICIES, Policies(schema_validation_enforced=True), None),
        (SALES, Policies(schema_validation_enforced=True), Policies(schema_validation_enforced=False), None),
        (ORDERS, Policies(S.FULL), Policies(S.UNDEFINED), None),
        (ORDERS, Policies(S.FULL), Policies(schema_validation_enforced=True), None),
    ],
)
def test_a_policy_that_somebody_changed_since_the_plan_is_not_overwritten(
    registry: EmbeddedRegistry, name: NamespaceName | TopicName, new: Policies, meanwhile: Policies, change: str | None
) -> None:
    def set_policies(policies: Policies) -> None:
        if isinstance(name, NamespaceName):
            registry.set_namespace_policies(name, policies)
        else:
            registry.set_topic_policies(name, policies)

    def make_target(policies: Policies) -> Catalog:
        if isinstance(name, NamespaceName):
            return make_catalog(make_topic(ORDERS, A), sales=policies)
        return make_catalog(make_topic(ORDERS, A, policies=policies), sales=Policies(S.BACKWARD))

    carry_out(registry, make_catalog(make_topic(ORDERS, A), sales=Policies(S.BACKWARD)))
    permissions = {"lose": frozenset({f"{SALES}:message_ttl_in_seconds"})}
    plan = plan_for(registry, make_target(new), **permissions)
    set_policies(meanwhile)
    result = apply_plan(plan, registry, is_current=True)
    after = {
        policy: registry.read_policies(name, {policy}).get(policy) for policy in {*new.names(), *meanwhile.names()}
    }
    if change is None:
        assert (result.failure, after) == (None, after | new.managed())
        return
    assert result.is_stale
    assert (
        f"{name}: its policies were not set, because another client has changed them since the plan was made ({change})"
        in str(result.failure)
    )
    assert after.items() >= meanwhile.managed().items()
    carry_out(registry, make_target(new), **permissions)
    assert registry.read_policies(name, new.managed().keys()) == new


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        (lambda registry: registry.put_schema(ORDERS, B), [A, B]),
        (lambda registry: registry.delete_schema(ORDERS, force=True), []),
    ],
    ids=["version", "deletion"],
)
def test_no_tombstone_takes_another_number_than_planned(
    registry: EmbeddedRegistry, meanwhile: Callable[[EmbeddedRegistry], object], left: list[SchemaInfo]
) -> None:
    carry_out(registry, make_orders(A))
    plan = plan_for(registry, make_orders(A, None, C))
    meanwhile(registry)
    result = apply_plan(plan, registry, is_current=True)
    assert result.is_stale
    assert f"the next number is v{len(left)} where v1 was expected" in str(result.failure)
    assert read_definitions(registry, ORDERS) == left


def test_two_applies_at_once_register_nothing_twice_and_nothing_out_of_order(tmp_path: Path) -> None:
    infos = [A, B, C, *(record(ID, {"name": f"f{n}", "type": "int", "default": n}) for n in range(20))]
    target = make_catalog(make_topic(ORDERS, *infos), make_topic(REFUNDS, *infos))
    registries = [EmbeddedRegistry(str(tmp_path / "registry.db")) for _ in range(3)]
    plan = plan_for(registries[0], target)

    def attempt(registry: EmbeddedRegistry) -> ApplyResult | StalePlan:
        try:
            return apply_plan(plan, registry)
        except StalePlan as stale:
            return stale

    with ThreadPoolExecutor(len(registries)) as threads:
        results = list(threads.map(attempt, registries))
    assert any(isinstance(result, ApplyResult) and result.failure is None for result in results)
    for registry in registries:
        assert read_definitions(registry, ORDERS) == read_definitions(registry, REFUNDS) == infos
        assert plan_for(registry, target).steps == ()
        registry.close()


def test_partly_applied_has_an_exit_code_of_its_own() -> None:
    assert PartlyApplied.exit_code == 3


SPACES = [NamespaceName("shop", name) for name in ("sales", "web")]
TOPICS = [TopicName("shop", space.name, name) for space in SPACES for name in ("a", "b", "c")]
NEEDS = record(ID, NEEDED)
CONTENTS = [A, B, C, NEEDS]

policies = st.builds(Policies, st.none() | st.sampled_from([S.FULL, S.BACKWARD, S.ALWAYS_COMPATIBLE]))


@st.composite
def draw_catalog(draw: st.DrawFn) -> Catalog:
    """Topics of two namespaces, some of which would be rejected."""
    spaces = {name: Namespace(name, draw(policies)) for name in SPACES}
    topics = {}
    for name in draw(st.sets(st.sampled_from(TOPICS))):
        infos = draw(st.lists(st.sampled_from(CONTENTS), unique=True, max_size=4))
        topics[name] = make_topic(name, *infos, policies=draw(policies), partitions=draw(st.sampled_from([None, 2])))
    return Catalog(spaces, topics)


class Failing(EmbeddedRegistry):
    """A registry where some requests about some names fail, the same ones in any order of names."""

    def __init__(self, faults: set[tuple[str, str, int]]) -> None:
        super().__init__(":memory:")
        self._faults = faults
        self._asked: Counter[tuple[str, str]] = Counter()
        self._counting = Lock()

    def _fail_at_random(self, disturb: str, name: object) -> None:
        with self._counting:
            self._asked[disturb, str(name)] += 1
            number = self._asked[disturb, str(name)]
        if (disturb, str(name), number) in self._faults:
            raise RegistryError(f"{disturb} of {name} failed")

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        self._fail_at_random("put", topic)
        return super().put_schema(topic, info)

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        self._fail_at_random("set", name)
        super().set_topic_policies(name, policies)

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        self._fail_at_random("set", name)
        super().set_namespace_policies(name, policies)

    def create_namespace(self, name: NamespaceName) -> None:
        self._fail_at_random("create", name)
        super().create_namespace(name)


faults = st.sets(
    st.tuples(st.just("put"), st.sampled_from([*map(str, TOPICS)]), st.integers(1, 3))
    | st.tuples(st.just("set"), st.sampled_from([*map(str, TOPICS), *map(str, SPACES)]), st.integers(1, 3))
    | st.tuples(st.just("create"), st.sampled_from([*map(str, SPACES)]), st.just(1)),
    max_size=4,
)


def run_apply(
    catalog: Catalog, faults: set[tuple[str, str, int]], *, parallel: int, relax: bool
) -> tuple[ApplyResult, Catalog]:
    """Apply to a registry with these faults, and return the result and the contents of the registry."""
    with closing(Failing(faults)) as registry:
        result = apply_plan(plan_for(registry, catalog, relax=relax), registry, parallel=parallel)
        contents = registry.read(find_scope(catalog))
        assert all(registry.find_relaxed_topic(name) is None for name in catalog.topics)
    topics = {
        name: replace(topic, versions=tuple(replace(version, timestamp_ms=0) for version in topic.versions))
        for name, topic in contents.topics.items()
    }
    return result, replace(contents, topics=topics)


@pytest.mark.slow
@EXAMPLES
@given(draw_catalog(), faults, st.sampled_from([True, False]))
def test_the_registry_ends_as_after_one_topic_at_a_time(
    catalog: Catalog,
    faults: set[tuple[str, str, int]],
    relax: bool,  # noqa: FBT001  hypothesis gives it by position
) -> None:
    one, after_one = run_apply(catalog, faults, parallel=1, relax=relax)
    many, after_many = run_apply(catalog, faults, parallel=8, relax=relax)
    assert after_many == after_one
    assert {*many.done} == {*one.done}
    assert many.failures.keys() == one.failures.keys()
    assert [str(failure) for failure in many.failures.values()] == [str(failure) for failure in one.failures.values()]


@pytest.mark.slow
@EXAMPLES
@given(draw_catalog())
def test_what_is_not_left_out_is_applied_as_a_whole(catalog: Catalog) -> None:
    result, after = run_apply(catalog, set(), parallel=8, relax=False)
    assert (result.remaining_steps, result.failure) == ((), None)
    left_out = {refusal.name for refusal in result.plan.refusals}
    for name, wanted in catalog.topics.items():
        versions = after.topics[name].versions if name in after.topics else ()
        expected = 0 if name in left_out else len(wanted.versions)
        assert len(versions) == expected, name


def test_a_topic_has_its_steps_in_order_and_after_those_of_its_namespace() -> None:
    catalog = Catalog(
        {name: Namespace(name, Policies(S.FULL)) for name in SPACES},
        {name: make_topic(name, A, B, C, policies=Policies(S.BACKWARD)) for name in TOPICS},
    )
    reported_steps: list[tuple[int, Step]] = []
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = plan_for(registry, catalog)
        apply_plan(plan, registry, parallel=8, on_step_done=lambda number, step: reported_steps.append((number, step)))
    for name in TOPICS:
        numbers = [number for number, step in reported_steps if step.name in (name, name.namespace_name)]
        assert numbers == sorted(numbers)
    assert sorted(reported_steps) == list(enumerate(plan.steps, 1))


class Watching(EmbeddedRegistry):
    """A slow registry that counts the relaxed topics; the first topics of the two namespaces wait for each other."""

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
        assert topic not in self._relaxed or not self.are_updates_allowed(topic.namespace_name)
        return super().put_schema(topic, info)

    def restore(self, topic: TopicName) -> None:
        with self._counting:
            self._relaxed.discard(topic)
        super().restore(topic)


def test_in_a_namespace_one_topic_at_a_time_is_relaxed_and_namespaces_side_by_side() -> None:
    catalog = Catalog(
        {name: Namespace(name, Policies(S.FULL, is_allow_auto_update_schema=True)) for name in SPACES},
        {name: make_topic(name, A, NEEDS) for name in TOPICS},
    )
    with closing(Watching()) as registry:
        result = apply_plan(plan_for(registry, catalog, relax=True), registry, parallel=8)
        assert result.failure is None
        assert registry.most_of_a_namespace == 1
        assert all(read_definitions(registry, name) == [A, NEEDS] for name in TOPICS)
        assert all(registry.are_updates_allowed(space) for space in SPACES)


def test_with_fail_fast_nothing_more_is_tried_after_a_failure() -> None:
    catalog = Catalog({}, {name: make_topic(name, A, B) for name in TOPICS})
    with closing(Failing({("put", str(TOPICS[0]), 2)})) as registry:
        plan = plan_for(registry, catalog)
        result = apply_plan(plan, registry, parallel=1, fail_fast=True)
        assert read_definitions(registry, TOPICS[0]) == [A]
        assert all(read_definitions(registry, name) == [] for name in TOPICS[1:])
    assert result.stopped is not None
    assert str(result.failure) == f"put of {TOPICS[0]} failed"


def test_an_interrupt_does_not_wait_for_a_step_that_hangs() -> None:
    over = Event()

    class Hanging(EmbeddedRegistry):
        def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
            if topic == TOPICS[0]:
                over.wait(30)
            return super().put_schema(topic, info)

    reported_steps: list[Step] = []
    with closing(Hanging(":memory:")) as registry:
        plan = plan_for(registry, Catalog({}, {name: make_topic(name, A, B) for name in TOPICS}))

        def wait_for_others() -> None:
            if all(step in reported_steps for step in plan.steps if step.name != TOPICS[0]):
                raise KeyboardInterrupt

        result = apply_plan(
            plan, registry, on_wait=wait_for_others, on_step_done=lambda _, step: reported_steps.append(step)
        )
        assert not over.is_set()
        assert str(result.stopped).startswith("interrupted")
        assert all(read_definitions(registry, name) == [A, B] for name in TOPICS[1:])
        assert {step.name for _, step in result.remaining_steps} == {TOPICS[0]}
        (unfinished,) = [plan.steps[number - 1] for number in result.unfinished]
        assert isinstance(unfinished, RegisterVersion)
        assert (unfinished.name, unfinished.version.number) == (TOPICS[0], 0)
        over.set()


WEB = SPACES[1]
FIRST_TOPIC = TOPICS[0]
OPEN = Policies(S.ALWAYS_COMPATIBLE)


@pytest.fixture
def strict_registry() -> Iterator[EmbeddedRegistry]:
    """Sales is FULL, and holds the first version of two topics."""
    with closing(EmbeddedRegistry(":memory:")) as registry:
        first = Catalog({SALES: Namespace(SALES, Policies(S.FULL))}, {name: make_topic(name, A) for name in TOPICS[:2]})
        apply_plan(plan_for(registry, first), registry)
        yield registry


LEFT_OUT_REASON = (
    f"keeps its policies: the new ones would accept more schemas or clients on {FIRST_TOPIC}, which the plan skips"
)
WAITING_REASON = "needs the new policies of shop/sales, which the plan skips"


@pytest.mark.parametrize(
    ("policies", "other_versions", "own_strategy", "steps", "refusals", "strategy"),
    [
        (OPEN, [A, NEEDS], None, set(), {SALES: LEFT_OUT_REASON, TOPICS[1]: WAITING_REASON}, S.FULL),
        (OPEN, [A, B], None, {TOPICS[1]}, {SALES: LEFT_OUT_REASON}, S.FULL),
        (OPEN, [A, NEEDS], S.FULL, {SALES, TOPICS[1]}, {}, S.FULL),
        (Policies(S.FULL_TRANSITIVE), [A], None, {SALES}, {}, S.FULL_TRANSITIVE),
        (Policies(is_allow_auto_update_schema=False), [A], None, {SALES}, {}, S.FULL),
    ],
)
def test_no_namespace_becomes_less_strict_for_a_topic_that_is_left_out(
    strict_registry: EmbeddedRegistry,
    policies: Policies,
    other_versions: list[SchemaInfo],
    own_strategy: S | None,
    steps: set[NamespaceName | TopicName],
    refusals: dict[NamespaceName | TopicName, str],
    strategy: S,
) -> None:
    """The first topic is left out, because every release rejects its definition."""
    if own_strategy:
        strict_registry.set_topic_policies(FIRST_TOPIC, Policies(own_strategy))
    topics = {
        FIRST_TOPIC: make_topic(FIRST_TOPIC, A, SchemaInfo(A.type, b"{")),
        TOPICS[1]: make_topic(TOPICS[1], *other_versions),
    }
    plan = plan_for(strict_registry, Catalog({SALES: Namespace(SALES, policies)}, topics))
    assert {step.name for step in plan.steps} == steps
    reasons = {refusal.name: refusal.message.partition(". ")[0] for refusal in plan.refusals}
    del reasons[FIRST_TOPIC]
    assert reasons == refusals
    assert apply_plan(plan, strict_registry).failure is None
    assert strict_registry.strategy(FIRST_TOPIC) is strategy
    assert read_definitions(strict_registry, TOPICS[1]) == (other_versions if TOPICS[1] in steps else [A])


def test_a_namespace_that_only_a_topic_left_out_needs_is_not_created() -> None:
    catalog = Catalog(
        {}, {FIRST_TOPIC: make_topic(FIRST_TOPIC, SchemaInfo(A.type, b"{")), TOPICS[3]: make_topic(TOPICS[3], A)}
    )
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = plan_for(registry, catalog)
        assert {step.name for step in plan.steps} == {WEB, TOPICS[3]}
        assert apply_plan(plan, registry).failure is None
        assert registry.namespaces() == [WEB]


STALE: dict[str, tuple[Callable[[EmbeddedRegistry], object], str]] = {
    "a version": (lambda registry: registry.put_schema(FIRST_TOPIC, B), f"{FIRST_TOPIC}: another client registered v1"),
    "a tombstone": (lambda registry: registry.delete_schema(FIRST_TOPIC), f"{FIRST_TOPIC}: a tombstone took v1"),
    "a deleted topic": (lambda registry: registry.delete_topic(FIRST_TOPIC), f"{FIRST_TOPIC} is gone"),
    "a created topic": (lambda registry: registry.create_topic(TOPICS[2], None), str(TOPICS[2])),
    "a policy of the namespace": (
        lambda registry: registry.set_namespace_policies(SALES, Policies(S.FORWARD)),
        "shop/sales: schema_compatibility_strategy was FULL and is FORWARD",
    ),
    "the auto-update strategy": (lambda registry: registry.set_auto_update_strategy(SALES, S.FORWARD), "shop/sales"),
    "a policy of the topic": (
        lambda registry: registry.set_topic_policies(FIRST_TOPIC, Policies(schema_validation_enforced=True)),
        f"{FIRST_TOPIC}: schema_validation_enforced was not set and is true",
    ),
}
"""A change of the registry since the plan, and a part of the message."""


@pytest.mark.parametrize(("change", "message"), STALE.values(), ids=STALE)
def test_a_plan_is_stale_once_the_registry_has_changed(
    strict_registry: EmbeddedRegistry, change: Callable[[EmbeddedRegistry], object], message: str
) -> None:
    topics = {name: make_topic(name, A, record(ID, NOTE)) for name in (FIRST_TOPIC, TOPICS[2])}
    plan = plan_for(strict_registry, Catalog({}, topics))
    change(strict_registry)
    before = strict_registry.read(plan.scope)
    with pytest.raises(StalePlan, match=re.escape(message)) as raised:
        apply_plan(plan, strict_registry)
    assert raised.value.exit_code == 4
    assert strict_registry.read(plan.scope) == before


def test_what_happens_to_other_topics_makes_no_plan_stale(strict_registry: EmbeddedRegistry) -> None:
    both = Catalog({}, {name: make_topic(name, A) for name in TOPICS[:2]})
    plan = plan_for(strict_registry, replace(both, topics={**both.topics, FIRST_TOPIC: make_topic(FIRST_TOPIC, A, B)}))
    strict_registry.put_schema(TOPICS[1], B)
    assert apply_plan(plan, strict_registry).failure is None
