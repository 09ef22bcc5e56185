"""Plans carried out: in order, read back, stopped at the first failure, finished by the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from approved import (
    ID,
    NEEDED,
    ORDERS,
    REFUNDS,
    SALES,
    A,
    B,
    C,
    S,
    carry_out,
    catalog,
    held,
    orders,
    plan_for,
    record,
    topic,
)

from schemactl.core.errors import PartlyApplied, RegistryError, SchemactlError, StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo
from schemactl.deploy.apply import Result, apply_plan
from schemactl.deploy.steps import Plan, PlanStep, RegisterVersion, RelaxStrategy, RestoreStrategy
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Registry

TARGET = catalog(topic(ORDERS, A, B, C), topic(REFUNDS, A, B), sales=Policies(S.FULL))
REPLAYED = orders(A, record(ID, NEEDED), policies=Policies(S.FULL))


class Disturbed(EmbeddedRegistry):
    """A registry to which something happens at the n-th upload, counted from 1."""

    def __init__(self, at: int, what: Callable[[Disturbed], object]) -> None:
        super().__init__(":memory:")
        self.uploads = 0
        self.at = at
        self.what = what

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        self.uploads += 1
        if self.uploads == self.at:
            self.what(self)
        return super().put_schema(topic, info)


Disturb = Callable[[int, Callable[["Disturbed"], object]], "Disturbed"]


@pytest.fixture
def disturbed() -> Iterator[Disturb]:
    """Opens disturbed registries."""
    with ExitStack() as opened:
        yield lambda at, what: opened.enter_context(closing(Disturbed(at, what)))


def fail(_: Disturbed) -> None:
    raise RegistryError("the connection was lost")


def interrupt(_: Disturbed) -> None:
    raise KeyboardInterrupt


def apply(plan: Plan, registry: Registry) -> Result:
    return apply_plan(plan, registry)


def test_progress_tells_each_step_with_its_number(registry: EmbeddedRegistry) -> None:
    told: list[tuple[int, PlanStep]] = []
    plan = plan_for(registry, TARGET)
    result = apply_plan(plan, registry, parallel=1, progress=lambda number, step: told.append((number, step)))
    assert result == Result(plan, tuple(range(1, len(plan.steps) + 1)))
    assert told == list(enumerate(plan.steps, 1))
    assert result.left == ()


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda registry: registry.put_schema(ORDERS, B),
        lambda registry: registry.delete_schema(REFUNDS),
        lambda registry: registry.set_namespace_policies(SALES, Policies(S.FORWARD)),
        lambda registry: registry.set_auto_update_strategy(SALES, S.FORWARD),
        lambda registry: registry.create_topic(REFUNDS, None),
    ],
    ids=["upload", "tombstone", "policy", "auto-update", "topic"],
)
def test_a_plan_is_stale_once_the_registry_has_changed(
    registry: EmbeddedRegistry, meanwhile: Callable[[EmbeddedRegistry], object]
) -> None:
    carry_out(registry, orders(A))
    plan = plan_for(registry, TARGET)
    meanwhile(registry)
    before = registry.read(plan.scope)
    with pytest.raises(StalePlan) as raised:
        apply(plan, registry)
    assert raised.value.exit_code == 4
    assert registry.read(plan.scope) == before


def test_a_plan_is_stale_once_a_topic_was_relaxed_which_is_restored(registry: EmbeddedRegistry) -> None:
    carry_out(registry, orders(A, sales=Policies(is_allow_auto_update_schema=True)))
    plan = plan_for(registry, TARGET)
    before = registry.read(plan.scope)
    registry.relax(ORDERS)
    with pytest.raises(StalePlan, match=f"nothing else was changed; restored {ORDERS}"):
        apply(plan, registry)
    assert registry.read(plan.scope) == before


def test_a_plan_is_not_stale_because_of_what_it_does_not_speak_of(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, TARGET)
    registry.create_namespace(SALES)
    registry.put_schema(TopicName("shop", "sales", "other"), A)
    registry.delete_namespace(SALES)
    assert apply(plan, registry).failure is None


def test_what_was_applied_once_cannot_be_applied_again(registry: EmbeddedRegistry) -> None:
    plan = carry_out(registry, TARGET)
    with pytest.raises(StalePlan):
        apply(plan, registry)


def test_a_failure_leaves_the_rest_to_the_next_apply(disturbed: Disturb) -> None:
    registry = disturbed(3, fail)
    plan = plan_for(registry, TARGET)
    result = apply(plan, registry)
    assert isinstance(result.failure, RegistryError)
    (number,) = result.failures
    failed = plan.steps[number - 1]
    assert isinstance(failed, RegisterVersion)
    assert {step.name for _, step in result.left} == {failed.name}
    other, versions_of_it = (ORDERS, [A, B, C]) if failed.name == REFUNDS else (REFUNDS, [A, B])
    assert held(registry, other) == versions_of_it
    carry_out(registry, TARGET)
    assert (held(registry, ORDERS), held(registry, REFUNDS)) == ([A, B, C], [A, B])


def test_an_interrupt_is_a_failure_like_others(disturbed: Disturb) -> None:
    registry = disturbed(2, interrupt)
    result = apply(plan_for(registry, TARGET), registry)
    assert isinstance(result.failure, SchemactlError)
    assert result.failure.what == "interrupted"
    assert held(registry, ORDERS) == [A]


def test_an_interrupt_before_the_first_step_is_one(disturbed: Disturb) -> None:
    registry = disturbed(1, interrupt)
    carry_out(registry, orders())
    with pytest.raises(KeyboardInterrupt):
        apply(plan_for(registry, orders(A)), registry)


@pytest.mark.parametrize("what", [fail, interrupt])
def test_a_relaxed_strategy_is_always_restored(disturbed: Disturb, what: Callable[[Disturbed], None]) -> None:
    registry = disturbed(2, what)
    plan = plan_for(registry, REPLAYED, relax=True)
    result = apply(plan, registry)
    assert result.failure is not None
    assert any(isinstance(plan.steps[number - 1], RelaxStrategy) for number in result.done)
    assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.FULL, None)
    carry_out(registry, REPLAYED, relax=True)
    assert held(registry, ORDERS) == [A, record(ID, NEEDED)]
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
        result = apply(plan, registry)
        ((_, left),) = result.left
        assert isinstance(left, RestoreStrategy)
        assert result.failure
        assert result.is_stale
        assert result.failure.exit_code == 4
        assert "somebody uploaded version 2 while the topic accepted everything" in str(result.failure)
        assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.FULL, None)


def test_a_strategy_that_cannot_be_restored_is_told_and_restored_by_the_next_apply() -> None:
    class CutOff(EmbeddedRegistry):
        connected = False

        def restore(self, topic: TopicName) -> None:
            if not self.connected:
                raise RegistryError("the connection was lost")
            super().restore(topic)

    with closing(CutOff(":memory:")) as registry:
        result = apply(plan_for(registry, REPLAYED, relax=True), registry)
        assert result.failure is not None
        assert "still has the strategy ALWAYS_COMPATIBLE" in result.failure.what
        assert "the connection was lost" in result.failure.what
        assert registry.strategy(ORDERS) is S.ALWAYS_COMPATIBLE
        registry.connected = True
        carry_out(registry, REPLAYED)
        assert registry.strategy(ORDERS) is S.FULL


def test_another_number_than_expected_stops_the_topic(disturbed: Disturb) -> None:
    foreign = record(ID, {"name": "own", "type": "string", "default": ""})
    registry = disturbed(2, lambda self: EmbeddedRegistry.put_schema(self, ORDERS, foreign))
    result = apply_plan(plan_for(registry, TARGET), registry, parallel=1)
    assert result.failure is not None
    assert "gave Git's v1 the number 2 where 1 was expected" in result.failure.what
    assert held(registry, ORDERS) == [A, foreign, B]
    assert held(registry, REFUNDS) == [A, B]


def test_an_upload_whose_answer_was_lost_counts_as_done() -> None:
    class Deaf(EmbeddedRegistry):
        """Stores what is uploaded, and its answers never arrive."""

        def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
            super().put_schema(topic, info)
            raise RegistryError("the connection was lost")

    with closing(Deaf(":memory:")) as registry:
        carry_out(registry, TARGET)
        assert held(registry, ORDERS) == [A, B, C]


def test_schemas_that_appear_with_their_namespace_stop_the_apply() -> None:
    class Haunted(EmbeddedRegistry):
        """Shows the schemas of a deleted namespace when it is there again."""

        def create_namespace(self, name: NamespaceName) -> None:
            super().create_namespace(name)
            if self.get_schema(ORDERS) is None:
                self.put_schema(ORDERS, B)

    with closing(Haunted(":memory:")) as registry:
        result = apply(plan_for(registry, TARGET), registry)
        assert result.failure is not None
        assert f"{ORDERS} has schemas from a time when the namespace existed before" in result.failure.what
        assert held(registry, ORDERS) == [B]
        # What the next plan knows of does not stop it.
        carry_out(registry, TARGET)
        assert held(registry, ORDERS) == [B, A, C]


def test_another_content_read_back_stops_the_apply() -> None:
    class Garbling(EmbeddedRegistry):
        def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
            return super().put_schema(topic, replace(info, schema=info.schema.replace(b"Order", b"Ordre")))

    with closing(Garbling(":memory:")) as registry:
        result = apply(plan_for(registry, TARGET), registry)
    assert result.failure is not None
    assert "v0 reads back with other content than was uploaded" in result.failure.what


def test_a_deletion_that_was_done_meanwhile_is_not_done_twice(disturbed: Disturb) -> None:
    gone = catalog(topic(ORDERS, A, schema=None, deleted=True), topic(REFUNDS, A, B))
    registry = disturbed(3, lambda self: self.delete_schema(ORDERS))
    carry_out(registry, catalog(topic(ORDERS, A), topic(REFUNDS, A)))
    carry_out(registry, gone, delete=frozenset({ORDERS}))
    assert held(registry, ORDERS) == [A, None]


def test_two_applies_at_once_register_nothing_twice_and_nothing_out_of_order(tmp_path: Path) -> None:
    infos = [A, B, C, *(record(ID, {"name": f"f{n}", "type": "int", "default": n}) for n in range(20))]
    target = catalog(topic(ORDERS, *infos), topic(REFUNDS, *infos))
    registries = [EmbeddedRegistry(str(tmp_path / "registry.db")) for _ in range(3)]
    plan = plan_for(registries[0], target)

    def attempt(registry: EmbeddedRegistry) -> Result | StalePlan:
        try:
            return apply(plan, registry)
        except StalePlan as stale:
            return stale

    with ThreadPoolExecutor(len(registries)) as threads:
        results = list(threads.map(attempt, registries))
    assert any(isinstance(result, Result) and result.failure is None for result in results)
    for registry in registries:
        assert held(registry, ORDERS) == held(registry, REFUNDS) == infos
        assert plan_for(registry, target).steps == ()
        registry.close()


def test_partly_applied_has_an_exit_code_of_its_own() -> None:
    assert PartlyApplied.exit_code == 3
