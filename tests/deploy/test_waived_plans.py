"""A waiver of what the broker refuses makes the plan carry it out: for that version alone, and as often as history is replayed."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from approved import ID, NEEDED, NOTE, ORDERS, ORIGIN, A, B, S, commit, held, orders, plan_for, record
from estate import Estate
from forks import Say, assert_killed, die_after, forked
from scratch import record as avsc

from schemactl.comparison.fingerprint import BROKER_RULE, broker_fingerprint
from schemactl.core.catalog import Catalog
from schemactl.core.findings import Waiver
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.planner import make_plan, scope_of
from schemactl.deploy.registry_state import observe
from schemactl.deploy.steps import Permissions, Plan, RegisterVersion, RelaxStrategy, RestoreStrategy
from schemactl.registry.embedded import EmbeddedRegistry

BROKEN = record(ID, NEEDED)
AFTER = record(ID, NEEDED, NOTE)
TARGET = orders(A, BROKEN, AFTER, sales=Policies(S.BACKWARD))

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


def waiver(before: SchemaInfo, new: SchemaInfo) -> Waiver:
    digest = broker_fingerprint(ORDERS, [SchemaVersion(0, before)], new)
    return Waiver(BROKER_RULE, ORDERS, digest, "the old field was wrong", "ada", date(2020, 1, 31))


def waived(registry: EmbeddedRegistry, waivers: dict[str, Waiver], target: Catalog = TARGET) -> Plan:
    """The plan when each of these commits has the waiver in its tree."""

    def at(one: Commit) -> list[Waiver]:
        return [waivers[one.id]] if one.id in waivers else []

    state = observe(registry, scope_of(target))
    return make_plan(state, target, origin=ORIGIN, permissions=Permissions(), waivers=at)


def test_only_the_waived_version_is_registered_while_the_topic_is_relaxed(registry: EmbeddedRegistry) -> None:
    of = waiver(A, BROKEN)
    plan = waived(registry, {commit(1).id: of})
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
    assert apply_plan(plan, registry, progress=lambda _number, _step: None).failure is None
    assert held(registry, ORDERS) == [A, BROKEN, AFTER]
    assert (registry.strategy(ORDERS), registry.relaxed(ORDERS)) == (S.BACKWARD, None)
    assert plan_for(registry, TARGET).steps == ()


def test_a_transitive_strategy_refuses_what_follows_for_ever(registry: EmbeddedRegistry) -> None:
    transitive = orders(A, BROKEN, AFTER, sales=Policies(S.BACKWARD_TRANSITIVE))
    (refusal,) = waived(registry, {commit(1).id: waiver(A, BROKEN)}, transitive).refusals
    assert refusal.number == 2


@pytest.mark.parametrize(
    ("number", "of"),
    [(0, waiver(A, BROKEN)), (2, waiver(A, BROKEN)), (1, waiver(A, AFTER)), (1, waiver(B, BROKEN))],
    ids=["before it", "too late", "another definition", "another predecessor"],
)
def test_no_other_waiver_counts(registry: EmbeddedRegistry, number: int, of: Waiver) -> None:
    (refusal,) = waived(registry, {commit(number).id: of}).refusals
    assert refusal.number == 1


def test_a_refusal_because_of_what_somebody_else_registered_is_not_the_waived_one(registry: EmbeddedRegistry) -> None:
    first = orders(A, sales=Policies(S.BACKWARD))
    apply_plan(plan_for(registry, first), registry, progress=lambda _number, _step: None)
    registry.put_schema(ORDERS, B)
    (refusal,) = waived(registry, {commit(1).id: waiver(A, BROKEN)}).refusals
    assert refusal.number == 1


def test_what_no_strategy_accepts_stays_refused(registry: EmbeddedRegistry) -> None:
    invalid = SchemaInfo(SchemaType.AVRO, b"{")
    target = orders(A, invalid, sales=Policies(S.BACKWARD))
    (refusal,) = waived(registry, {commit(1).id: waiver(A, invalid)}, target).refusals
    assert "invalid" in refusal.message


@pytest.fixture
def broken(tmp_path: Path) -> Estate:
    """A repository whose second version is a break, with its waiver in the same commit, which a later one removes."""
    estate = Estate(tmp_path / "shop")
    before, after = (SchemaInfo(SchemaType.AVRO, avsc(*fields).encode()) for fields in (["id"], ["id", "needed"]))
    entry = {
        "rule": BROKER_RULE,
        "topic": "shop/sales/orders",
        "fingerprint": broker_fingerprint(estate.topic, [SchemaVersion(0, before)], after),
        "reason": "every consumer is ours",
        "owner": "ada",
        "until": "2020-01-31",
    }
    estate.scratch.commit({"namespaces/orders.avsc": avsc("id", "needed"), "waivers.yaml": json.dumps([entry]) + "\n"})
    estate.scratch.commit({"namespaces/orders.avsc": avsc("id", "needed", note=0), "waivers.yaml": None})
    return estate


def test_a_fresh_registry_gets_it_from_history_long_after_it_expired(broken: Estate) -> None:
    text = broken.run("plan").out
    assert "  ~ waived by ada, until 2020-01-31: every consumer is ours\n" in text
    broken.run("apply", "--auto-approve")
    assert len(broken.held()) == 3
    broken.run("plan", "--detailed-exitcode")


def test_a_plan_file_says_it_and_needs_no_option(broken: Estate) -> None:
    printed = broken.run("plan", "--out", "plan.json")
    assert "--relax-while-replaying" not in printed.err
    assert "every consumer is ours" in broken.run("plan", "show", "plan.json").out
    broken.run("apply", "plan.json")
    assert len(broken.held()) == 3


def test_a_rebuild_carries_it_out_too(broken: Estate) -> None:
    broken.run("rebuild", "--auto-approve")
    assert len(broken.held()) == 3


@pytest.mark.slow
def test_killed_after_any_write_the_next_apply_finishes_and_restores(broken: Estate, tmp_path: Path) -> None:
    broken.run("apply", "--auto-approve")
    for calls in range(1, WRITES + 1):
        again = broken.copied(tmp_path / str(calls))
        (again.scratch.path / ".schemactl/registry.db").unlink()

        def apply(_: Say, again: Estate = again, calls: int = calls) -> None:
            die_after(calls, EmbeddedRegistry, *WRITING)
            again.run("apply", "--auto-approve")

        assert_killed(*forked(apply))
        again.run("apply", "--auto-approve")
        again.run("plan", "--detailed-exitcode")
        assert again.held() == broken.held()
        with again.registry() as registry:
            assert registry.relaxed(again.topic) is None
            assert registry.strategy(again.topic) is S.BACKWARD
            assert registry.is_allow_auto_update_schema(again.topic.namespace_name)
