"""Policies that Git no longer declares, reset on real brokers."""

from __future__ import annotations

import json
from pathlib import Path

import brokers
import pytest
from estate import EstateOnPulsar
from scratch import write_declaration

from schemactl.core.errors import StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.deploy.steps.step import ApplyContext
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.broker

S = CompatibilityStrategy
NAMESPACE = """\
namespace: shop/sales
schema_compatibility_strategy: BACKWARD_TRANSITIVE
is_allow_auto_update_schema: false
schema_validation_enforced: true
"""


@pytest.fixture(params=brokers.VERSIONS)
def policy_estate(request: pytest.FixtureRequest, tmp_path: Path) -> EstateOnPulsar:
    """Every policy, applied, with a topic that accepts everything."""
    policy_estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(request.param))
    strategy = "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
    policy_estate.scratch.commit(
        {"namespaces/sales.yaml": NAMESPACE, "namespaces/orders.yaml": write_declaration(more=strategy)}
    )
    policy_estate.run("apply", "--yes")
    return policy_estate


def read_policies(policy_estate: EstateOnPulsar) -> tuple[Policies, Policies, CompatibilityStrategy]:
    """The policies of the namespace and of the topic, and the strategy in force for its uploads."""
    space = policy_estate.topic.namespace_name
    with policy_estate.registry() as registry:
        contents = registry.read(Scope(frozenset({space}), frozenset({policy_estate.topic})))
        return (
            contents.namespaces[space].policies,
            contents.topics[policy_estate.topic].policies,
            registry.strategy(policy_estate.topic),
        )


def read_remaining(policy_estate: EstateOnPulsar) -> tuple[int, list[str]]:
    """Return the number of steps of a plan, and the differences of drift."""
    steps = json.loads(policy_estate.run("plan", "--format", "json").out)["steps"]
    differences = json.loads(policy_estate.run("drift", "--format", "json").out)["differences"]
    return len(steps), [difference["message"] for difference in differences]


def test_the_override_of_a_topic_goes_and_its_namespace_counts(policy_estate: EstateOnPulsar) -> None:
    policy_estate.scratch.commit({"namespaces/orders.yaml": write_declaration()})
    assert "- schema_compatibility_strategy: ALWAYS_COMPATIBLE (now BACKWARD_TRANSITIVE, from its namespace)" in (
        policy_estate.run("plan").out
    )
    policy_estate.run("apply", "--yes")
    _, topic, in_force = read_policies(policy_estate)
    assert (topic.schema_compatibility_strategy, in_force) == (S.UNDEFINED, S.BACKWARD_TRANSITIVE)
    assert read_remaining(policy_estate) == (0, [])
    # The broker judges by it.
    policy_estate.commit_orders("id", "needed")
    policy_estate.run("plan", code=100)


def test_a_namespace_without_its_file_is_as_a_new_one(policy_estate: EstateOnPulsar) -> None:
    policy_estate.scratch.commit({"namespaces/sales.yaml": None, "namespaces/orders.yaml": write_declaration()})
    policy_estate.run("plan", "--out", "plan.json")
    policy_estate.run("apply", "plan.json")
    space, topic, in_force = read_policies(policy_estate)
    assert space == Policies(S.UNDEFINED, is_allow_auto_update_schema=True, schema_validation_enforced=False)
    assert (topic.schema_compatibility_strategy, in_force) == (S.UNDEFINED, S.FULL)
    assert read_remaining(policy_estate) == (0, [])


def test_what_somebody_else_set_since_stays(policy_estate: EstateOnPulsar) -> None:
    with policy_estate.registry() as registry:
        registry.set_topic_policies(policy_estate.topic, Policies(S.FORWARD))
    policy_estate.scratch.commit({"namespaces/orders.yaml": write_declaration()})
    steps, messages = read_remaining(policy_estate)
    assert steps == 0
    assert messages == [
        "schema_compatibility_strategy is FORWARD; Git no longer declares it, and its last declared value was ALWAYS_COMPATIBLE"
    ]


def test_a_step_compares_policies_right_before_it_sets_them(policy_estate: EstateOnPulsar) -> None:
    topic, namespace = policy_estate.topic, policy_estate.topic.namespace_name
    strategies: dict[NamespaceName | TopicName, CompatibilityStrategy] = {
        topic: S.ALWAYS_COMPATIBLE,
        namespace: S.BACKWARD_TRANSITIVE,
    }
    ttl = Policies(settings={"message_ttl_in_seconds": 60})
    with policy_estate.registry() as registry:
        context = ApplyContext(registry, {})
        for name, strategy in strategies.items():
            stale_step = SetPolicies(name, Policies(S.FORWARD), Policies(S.FULL))
            with pytest.raises(StalePlan, match=f"schema_compatibility_strategy was FORWARD and is {strategy}"):
                stale_step.carry_out(context)
            SetPolicies(name, Policies(strategy), Policies(S.FULL)).carry_out(context)
            SetPolicies(name, Policies(), ttl).carry_out(context)
            with pytest.raises(StalePlan, match="message_ttl_in_seconds was not set and is 60"):
                SetPolicies(name, Policies(), Policies(settings={"message_ttl_in_seconds": 5})).carry_out(context)
        # Brokers answer false for a topic without the policy.
        SetPolicies(topic, Policies(), Policies(schema_validation_enforced=True)).carry_out(context)
