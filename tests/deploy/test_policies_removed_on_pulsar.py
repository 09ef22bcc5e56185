"""Policies that Git no longer declares, reset on real brokers."""

from __future__ import annotations

import json
from pathlib import Path

import brokers
import pytest
from estate import EstateOnPulsar
from scratch import declared

from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.broker

S = CompatibilityStrategy
NAMESPACE = """\
namespace: shop/sales
schema_compatibility_strategy: BACKWARD_TRANSITIVE
is_allow_auto_update_schema: false
schema_validation_enforced: true
"""


@pytest.fixture(params=brokers.EACH_RELEASE)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> EstateOnPulsar:
    """Every policy, applied, with a topic that accepts everything."""
    made = EstateOnPulsar(tmp_path / "shop", brokers.running(request.param))
    strategy = "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
    made.scratch.commit({"namespaces/sales.yaml": NAMESPACE, "namespaces/orders.yaml": declared(more=strategy)})
    made.run("apply", "--yes")
    return made


def held(made: EstateOnPulsar) -> tuple[Policies, Policies, CompatibilityStrategy]:
    """The policies of the namespace and of the topic, and the strategy in force for its uploads."""
    space = made.topic.namespace_name
    with made.registry() as registry:
        found = registry.read(Scope(frozenset({space}), frozenset({made.topic})))
        return (found.namespaces[space].policies, found.topics[made.topic].policies, registry.strategy(made.topic))


def left(made: EstateOnPulsar) -> tuple[int, list[str]]:
    """How many steps a plan has, and what drift tells."""
    steps = json.loads(made.run("plan", "--format", "json").out)["steps"]
    differences = json.loads(made.run("drift", "--format", "json").out)["differences"]
    return len(steps), [each["message"] for each in differences]


def test_the_override_of_a_topic_goes_and_its_namespace_counts(made: EstateOnPulsar) -> None:
    made.scratch.commit({"namespaces/orders.yaml": declared()})
    assert "- schema_compatibility_strategy: ALWAYS_COMPATIBLE (now BACKWARD_TRANSITIVE, from its namespace)" in (
        made.run("plan").out
    )
    made.run("apply", "--yes")
    _, topic, in_force = held(made)
    assert (topic.schema_compatibility_strategy, in_force) == (S.UNDEFINED, S.BACKWARD_TRANSITIVE)
    assert left(made) == (0, [])
    # The broker judges by it.
    made.orders("id", "needed")
    made.run("plan", code=100)


def test_a_namespace_without_its_file_is_as_a_new_one(made: EstateOnPulsar) -> None:
    made.scratch.commit({"namespaces/sales.yaml": None, "namespaces/orders.yaml": declared()})
    made.run("plan", "--out", "plan.json")
    made.run("apply", "plan.json")
    space, topic, in_force = held(made)
    assert space == Policies(S.UNDEFINED, is_allow_auto_update_schema=True, schema_validation_enforced=False)
    assert (topic.schema_compatibility_strategy, in_force) == (S.UNDEFINED, S.FULL)
    assert left(made) == (0, [])


def test_what_somebody_else_set_since_stays(made: EstateOnPulsar) -> None:
    with made.registry() as registry:
        registry.set_topic_policies(made.topic, Policies(S.FORWARD))
    made.scratch.commit({"namespaces/orders.yaml": declared()})
    steps, told = left(made)
    assert steps == 0
    assert told == [
        "schema_compatibility_strategy is FORWARD; Git declares it no longer, and declared ALWAYS_COMPATIBLE last"
    ]
