"""A policy that Git no longer declares, in check, plan, apply and drift of real repositories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scenarios import Scenario, read_scenarios, run_scenario
from scratch import write_declaration

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SCHEMA_POLICIES, CompatibilityStrategy, Policies
from schemactl.registry.interface import Registry, Scope

pytestmark = pytest.mark.slow

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
STRATEGY, AUTO_UPDATE, ENFORCED = SCHEMA_POLICIES

NAMESPACE_LINES = {
    STRATEGY: f"{STRATEGY}: BACKWARD_TRANSITIVE\n",
    AUTO_UPDATE: f"{AUTO_UPDATE}: false\n",
    ENFORCED: f"{ENFORCED}: true\n",
}
TOPIC_LINE = f"{STRATEGY}: ALWAYS_COMPATIBLE\n"
LINES = [*(("namespace", policy) for policy in NAMESPACE_LINES), ("topic", STRATEGY)]
UNSET = {STRATEGY: S.UNDEFINED, AUTO_UPDATE: True, ENFORCED: False}
"""The policies that a broker shows for a new namespace."""

IN_FORCE = {
    ("namespace", STRATEGY): "BACKWARD_TRANSITIVE (now FULL, the broker's default)",
    ("namespace", AUTO_UPDATE): "false (now true, the broker's default)",
    ("namespace", ENFORCED): "true (now false, the broker's default)",
    ("topic", STRATEGY): "ALWAYS_COMPATIBLE (now FULL, the broker's default)",
}


def estate(path: Path) -> Estate:
    """One whose namespace sets nothing."""
    policy_shop = Estate(path)
    policy_shop.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\n"})
    return policy_shop


def declare(policy_shop: Estate, namespace: str | None = "", topic: str | None = "") -> None:
    """Commit the namespace and the topic with these lines, or without a file for None."""
    policy_shop.scratch.commit(
        {
            "namespaces/sales.yaml": None if namespace is None else "namespace: shop/sales\n" + namespace,
            "namespaces/orders.yaml": None if topic is None else write_declaration(more=topic),
        }
    )


def put(registry: Registry, level: str, policies: Policies, topic: TopicName = ORDERS) -> None:
    if level == "namespace":
        registry.set_namespace_policies(topic.namespace_name, policies)
    else:
        registry.set_topic_policies(topic, policies)


def read_policies(registry: Registry, level: str, topic: TopicName = ORDERS) -> Policies:
    contents = registry.read(Scope(frozenset({topic.namespace_name}), frozenset({topic})))
    return (
        contents.namespaces[topic.namespace_name].policies if level == "namespace" else contents.topics[topic].policies
    )


def list_differences(policy_shop: Estate) -> list[str]:
    document = json.loads(policy_shop.run("drift", "--format", "json", code=(0, 100)).out)
    return [difference["message"] for difference in document["differences"]]


def list_steps(policy_shop: Estate, *arguments: str) -> list[Any]:
    document: list[Any] = json.loads(policy_shop.run("plan", "--format", "json", *arguments).out)["steps"]
    return document


@pytest.mark.parametrize("scenario", read_scenarios(__file__))
def test_policies_that_git_no_longer_declares(scenario: Scenario, tmp_path: Path) -> None:
    run_scenario(scenario, tmp_path)


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Estate]:
    """Make a shop for each line, in which it was applied and is no longer declared. No test changes them."""
    shops = {}
    for level, policy in LINES:
        policy_shop = estate(tmp_path_factory.mktemp("shop") / "shop")
        declare(policy_shop, **{level: NAMESPACE_LINES[policy] if level == "namespace" else TOPIC_LINE})
        policy_shop.run("apply", "--yes")
        declare(policy_shop)
        shops[level, policy] = policy_shop
    return shops


@pytest.mark.parametrize(("level", "policy"), LINES, ids="-".join)
class TestALineThatIsGone:
    """Applied once, then removed from Git."""

    @pytest.fixture
    def policy_shop(self, shops: dict[tuple[str, str], Estate], tmp_path: Path, level: str, policy: str) -> Estate:
        return shops[level, policy].copy_to(tmp_path / "shop")

    def test_is_reset_where_the_registry_holds_what_git_declared_last(
        self, policy_shop: Estate, level: str, policy: str
    ) -> None:
        assert list_differences(policy_shop) == []
        name = str(SALES) if level == "namespace" else str(ORDERS)
        assert policy_shop.run("plan").out.split("\n\n")[1].splitlines() == [
            f"~ {level} {name}",
            f"  - {policy}: {IN_FORCE[level, policy]}",
        ]
        policy_shop.run("apply", "--yes")
        with policy_shop.registry() as registry:
            left = getattr(read_policies(registry, level), policy)
        assert left == UNSET[policy]
        assert (list_steps(policy_shop), list_differences(policy_shop)) == ([], [])

    def test_is_reset_by_a_plan_file(self, policy_shop: Estate, level: str, policy: str) -> None:
        [step] = json.loads(policy_shop.run("plan", "--out", "plan.json", "--format", "json").out)["steps"]
        assert step["inherited"]["default"] == {policy: {STRATEGY: "FULL", AUTO_UPDATE: True, ENFORCED: False}[policy]}
        assert level in step
        policy_shop.run("apply", "plan.json")
        assert list_steps(policy_shop) == []

    def test_becomes_what_check_says_before_it_is_approved(self, policy_shop: Estate, level: str, policy: str) -> None:
        tip = policy_shop.scratch.git("rev-parse", "HEAD")
        policy_shop.scratch.git("checkout", "-q", "-b", "work", tip)
        policy_shop.scratch.git("branch", "-f", "main", f"{tip}~1")
        [row] = json.loads(policy_shop.run("check", "--format", "json").out)["policies"]
        policy_shop.scratch.git("branch", "-f", "main", tip)
        [step] = list_steps(policy_shop)
        assert step[level] == row["name"]
        assert step["before"] == {row["policy"]: row["before"]} == {policy: row["before"]}
        assert step["inherited"]["default"] == {policy: row["inherited"]}

    def test_is_nobodys_business_where_the_registry_holds_nothing(
        self, policy_shop: Estate, level: str, policy: str
    ) -> None:
        fresh = UNSET[policy]
        with policy_shop.registry() as registry:
            put(registry, level, Policies.of({policy: fresh}))
        assert (list_steps(policy_shop), list_differences(policy_shop)) == ([], [])

    def test_of_its_file_that_is_gone_too_is_reset(self, policy_shop: Estate, level: str, policy: str) -> None:
        if level == "namespace":
            declare(policy_shop, namespace=None)
        else:
            declare(policy_shop, topic=None)
        assert [list(step["after"]) for step in list_steps(policy_shop)] == [[policy]]
        policy_shop.run("apply", "--yes")
        assert list_steps(policy_shop) == []


strategies = st.sampled_from([None, "UNDEFINED", "BACKWARD", "FULL_TRANSITIVE"])
switches = st.sampled_from([None, "true", "false"])
edits = st.lists(
    st.tuples(
        st.none() | st.fixed_dictionaries({STRATEGY: strategies, AUTO_UPDATE: switches, ENFORCED: switches}),
        st.none() | st.fixed_dictionaries({STRATEGY: strategies}),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def write_policies(policies: dict[str, str | None] | None) -> str | None:
    if policies is None:
        return None
    return "".join(f"{policy}: {value}\n" for policy, value in policies.items() if value)


@REPOSITORIES
@given(edits)
def test_after_apply_nothing_is_left_to_plan_and_nothing_is_drift(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[Any, Any, bool]]
) -> None:
    """Whatever was declared, applied or not, in between."""
    policy_shop = estate(tmp_path_factory.mktemp("random") / "shop")
    for namespace, topic, is_applied in edits:
        declare(policy_shop, write_policies(namespace), write_policies(topic))
        if is_applied:
            policy_shop.run("apply", "--yes")
            assert list_steps(policy_shop) == []
    applied_each_time = all(is_applied for *_, is_applied in edits)
    policy_shop.run("apply", "--yes")
    assert list_steps(policy_shop) == []
    left = [
        difference
        for difference in list_differences(policy_shop)
        if "; Git no longer declares it, and its last declared value was" in difference
    ]
    assert not left or not applied_each_time


@pytest.mark.parametrize(
    ("before", "after", "row", "line"),
    [(2, 5, (2, 5), "~ partitions: 2 -> 5"), (5, 2, (5, 2), ""), (2, None, (2, None), "")],
    ids=["more", "fewer", "none"],
)
def test_partitions_grow_in_check_and_plan_and_never_shrink(
    tmp_path: Path, before: int, after: int | None, row: tuple[int, int | None], line: str
) -> None:
    policy_shop = Estate(tmp_path / "shop", orders=write_declaration(more=f"partitions: {before}\n"))
    policy_shop.run("apply", "--yes")
    policy_shop.scratch.write(
        {"namespaces/orders.yaml": write_declaration(more=f"partitions: {after}\n" if after else "")}
    )
    document = json.loads(policy_shop.run("check", "--format", "json", code=0 if line else 100).out)
    [change] = document["policies"]
    assert (change["policy"], change["before"], change["after"]) == ("partitions", *row)
    assert [finding["rule"] for finding in document["findings"]] == ([] if line else ["PARTITIONS_SHRUNK"])
    policy_shop.scratch.git("commit", "-q", "-a", "-m", "partitions")
    plan_text = policy_shop.run("plan", code=100 if after == 2 else 0).out
    assert line in plan_text
    if line:
        assert [step["action"] for step in list_steps(policy_shop)] == ["grow_partitions"]
        policy_shop.run("apply", "--yes")
    elif after:
        assert "Pulsar can only add partitions" in plan_text
