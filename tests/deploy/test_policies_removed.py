"""A policy that Git declared once and declares no longer: what check, plan, apply and drift make of it, in real repositories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, PROJECT, Estate
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import declared

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
"""What a new namespace of a broker shows."""

IN_FORCE = {
    ("namespace", STRATEGY): "BACKWARD_TRANSITIVE (now FULL, the broker's default)",
    ("namespace", AUTO_UPDATE): "false (now true, the broker's default)",
    ("namespace", ENFORCED): "true (now false, the broker's default)",
    ("topic", STRATEGY): "ALWAYS_COMPATIBLE (now FULL, the broker's default)",
}


def estate(path: Path) -> Estate:
    """One whose namespace sets nothing."""
    made = Estate(path)
    made.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\n"})
    return made


def declare(made: Estate, namespace: str | None = "", topic: str | None = "") -> None:
    """A commit in which the namespace and the topic have these lines; None: no file."""
    made.scratch.commit(
        {
            "namespaces/sales.yaml": None if namespace is None else "namespace: shop/sales\n" + namespace,
            "namespaces/orders.yaml": None if topic is None else declared(more=topic),
        }
    )


def put(registry: Registry, level: str, policies: Policies, topic: TopicName = ORDERS) -> None:
    if level == "namespace":
        registry.set_namespace_policies(topic.namespace_name, policies)
    else:
        registry.set_topic_policies(topic, policies)


def held(registry: Registry, level: str, topic: TopicName = ORDERS) -> Policies:
    found = registry.read(Scope(frozenset({topic.namespace_name}), frozenset({topic})))
    return found.namespaces[topic.namespace_name].policies if level == "namespace" else found.topics[topic].policies


def differences(made: Estate) -> list[str]:
    told = json.loads(made.run("drift", "--format", "json", code=(0, 100)).out)
    return [each["message"] for each in told["differences"]]


def steps(made: Estate, *arguments: str) -> list[Any]:
    told: list[Any] = json.loads(made.run("plan", "--format", "json", *arguments).out)["steps"]
    return told


@pytest.mark.parametrize(("level", "policy"), LINES, ids="-".join)
class TestALineThatIsGone:
    """Applied once, then removed from Git."""

    @pytest.fixture
    def made(self, tmp_path: Path, level: str, policy: str) -> Estate:
        made = estate(tmp_path / "shop")
        line = NAMESPACE_LINES[policy] if level == "namespace" else TOPIC_LINE
        declare(made, **{level: line})
        made.run("apply", "--yes")
        declare(made)
        return made

    def test_is_reset_where_the_registry_holds_what_git_declared_last(
        self, made: Estate, level: str, policy: str
    ) -> None:
        assert differences(made) == []
        name = str(SALES) if level == "namespace" else str(ORDERS)
        assert made.run("plan").out.split("\n\n")[1].splitlines() == [
            f"~ {level} {name}",
            f"  - {policy}: {IN_FORCE[level, policy]}",
        ]
        made.run("apply", "--yes")
        with made.registry() as registry:
            left = getattr(held(registry, level), policy)
        assert left == UNSET[policy]
        assert (steps(made), differences(made)) == ([], [])

    def test_is_reset_by_a_plan_file(self, made: Estate, level: str, policy: str) -> None:
        [step] = json.loads(made.run("plan", "--out", "plan.json", "--format", "json").out)["steps"]
        assert step["inherited"]["default"] == {policy: {STRATEGY: "FULL", AUTO_UPDATE: True, ENFORCED: False}[policy]}
        assert level in step
        made.run("apply", "plan.json")
        assert steps(made) == []

    def test_becomes_what_check_says_before_it_is_approved(self, made: Estate, level: str, policy: str) -> None:
        tip = made.scratch.git("rev-parse", "HEAD")
        made.scratch.git("checkout", "-q", "-b", "work", tip)
        made.scratch.git("branch", "-f", "main", f"{tip}~1")
        [row] = json.loads(made.run("check", "--format", "json").out)["policies"]
        made.scratch.git("branch", "-f", "main", tip)
        [step] = steps(made)
        assert step[level] == row["name"]
        assert step["before"] == {row["policy"]: row["before"]} == {policy: row["before"]}
        assert step["inherited"]["default"] == {policy: row["inherited"]}

    def test_is_nobodys_business_where_the_registry_holds_nothing(self, made: Estate, level: str, policy: str) -> None:
        fresh = UNSET[policy]
        with made.registry() as registry:
            put(registry, level, Policies.of({policy: fresh}))
        assert (steps(made), differences(made)) == ([], [])

    def test_of_its_file_that_is_gone_too_is_reset(self, made: Estate, level: str, policy: str) -> None:
        if level == "namespace":
            declare(made, namespace=None)
        else:
            declare(made, topic=None)
        assert [list(step["after"]) for step in steps(made)] == [[policy]]
        made.run("apply", "--yes")
        assert steps(made) == []


@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_a_value_that_somebody_else_set_is_drift_and_left_alone(tmp_path: Path, level: str) -> None:
    made = estate(tmp_path / "shop")
    declare(made, **{level: f"{STRATEGY}: BACKWARD\n"})
    made.run("apply", "--yes")
    declare(made)
    with made.registry() as registry:
        put(registry, level, Policies(S.FORWARD))
    assert steps(made) == []
    [message] = differences(made)
    assert message == f"{STRATEGY} is FORWARD; Git declares it no longer, and declared BACKWARD last"
    made.run("apply", "--yes")
    with made.registry() as registry:
        assert held(registry, level).schema_compatibility_strategy is S.FORWARD
    declare(made, **{level: f"{STRATEGY}: UNDEFINED\n"})
    made.run("apply", "--yes")
    assert differences(made) == []


def test_the_value_that_was_declared_last_counts(tmp_path: Path) -> None:
    made = estate(tmp_path / "shop")
    declare(made, topic=f"{STRATEGY}: BACKWARD\n")
    made.run("apply", "--yes")
    declare(made, topic=f"{STRATEGY}: FORWARD\n")
    declare(made)
    assert steps(made) == []
    assert differences(made) == [f"{STRATEGY} is BACKWARD; Git declares it no longer, and declared FORWARD last"]
    with made.registry() as registry:
        put(registry, "topic", Policies(S.FORWARD))
    assert (len(steps(made)), differences(made)) == (1, [])


def test_a_value_set_by_hand_long_after_is_reset_too(tmp_path: Path) -> None:
    """The registry keeps no history of policies, so that nothing tells it from ours."""
    made = estate(tmp_path / "shop")
    declare(made, topic=f"{STRATEGY}: BACKWARD\n")
    declare(made)
    made.run("apply", "--yes")
    with made.registry() as registry:
        put(registry, "topic", Policies(S.BACKWARD))
    assert len(steps(made)) == 1


def test_what_a_topic_inherits_is_its_namespaces_after_the_same_plan(tmp_path: Path) -> None:
    made = estate(tmp_path / "shop")
    declare(made, topic=TOPIC_LINE)
    made.run("apply", "--yes")
    declare(made, namespace="".join(NAMESPACE_LINES.values()))
    said = made.run("plan").out
    assert f"  - {STRATEGY}: ALWAYS_COMPATIBLE (now BACKWARD_TRANSITIVE, from its namespace)\n" in said
    made.run("apply", "--yes")
    assert (steps(made), differences(made)) == ([], [])


def test_what_follows_in_the_same_plan_is_judged_by_what_is_inherited(tmp_path: Path) -> None:
    made = estate(tmp_path / "shop")
    declare(made, topic=TOPIC_LINE)
    made.run("apply", "--yes")
    declare(made)
    made.orders("id", "needed")
    assert "would be rejected: incompatible under FULL" in made.run("plan", code=100).out


def test_a_rebuild_resets_what_is_left(tmp_path: Path) -> None:
    made = estate(tmp_path / "shop")
    declare(made, namespace=NAMESPACE_LINES[STRATEGY], topic=TOPIC_LINE)
    made.run("apply", "--yes")
    declare(made)
    with made.registry() as registry:
        registry.delete_schema(ORDERS, force=True)
    made.run("rebuild", "--out", "plan.json")
    made.run("apply", "plan.json")
    assert (steps(made), differences(made), len(made.versions())) == ([], [], 1)


def test_what_was_never_declared_is_left_alone(tmp_path: Path) -> None:
    made = estate(tmp_path / "shop")
    made.run("apply", "--yes")
    with made.registry() as registry:
        put(registry, "topic", Policies(S.FORWARD))
        put(registry, "namespace", Policies(is_allow_auto_update_schema=False, schema_validation_enforced=True))
    assert steps(made) == []
    # Drift says which value is in force, because `check` judges by the project file's `defaults`.
    assert [sentence.partition(",")[0] for sentence in differences(made)] == [
        "is_allow_auto_update_schema of the namespace is false",
        "schema_validation_enforced of the namespace is true",
        "schema_compatibility_strategy of the topic is FORWARD",
    ]


def test_targets_with_other_names_and_chosen_topics_reset_their_own(tmp_path: Path) -> None:
    made = Estate(tmp_path / "shop", project=PROJECT.replace('db"}', 'db", namespaces: {shop/sales: prod/sales}}'))
    declare(made, namespace=NAMESPACE_LINES[STRATEGY], topic=TOPIC_LINE)
    made.run("apply", "--yes")
    declare(made, namespace=None)
    there = ["prod/sales", "persistent://prod/sales/orders"]
    assert [step.get("namespace") or step["topic"] for step in steps(made)] == there
    assert len(steps(made, "--topic", "orders")) == 2
    assert len(steps(made, "--namespace", "shop/sales")) == 2


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


def text(policies: dict[str, str | None] | None) -> str | None:
    if policies is None:
        return None
    return "".join(f"{policy}: {value}\n" for policy, value in policies.items() if value)


@REPOSITORIES
@given(edits)
def test_after_apply_nothing_is_left_to_plan_and_nothing_is_drift(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[Any, Any, bool]]
) -> None:
    """Whatever was declared, applied or not, in between."""
    made = estate(tmp_path_factory.mktemp("random") / "shop")
    for namespace, topic, is_applied in edits:
        declare(made, text(namespace), text(topic))
        if is_applied:
            made.run("apply", "--yes")
            assert steps(made) == []
    applied_each_time = all(is_applied for *_, is_applied in edits)
    made.run("apply", "--yes")
    assert steps(made) == []
    left = [each for each in differences(made) if "Git declares it no longer" in each]
    assert not left or not applied_each_time


@pytest.mark.parametrize(
    ("before", "after", "row", "line"),
    [(2, 5, (2, 5), "~ partitions: 2 -> 5"), (5, 2, (5, 2), ""), (2, None, (2, None), "")],
    ids=["more", "fewer", "none"],
)
def test_partitions_grow_in_check_and_plan_and_never_shrink(
    tmp_path: Path, before: int, after: int | None, row: tuple[int, int | None], line: str
) -> None:
    made = Estate(tmp_path / "shop", orders=declared(more=f"partitions: {before}\n"))
    made.run("apply", "--yes")
    made.scratch.write({"namespaces/orders.yaml": declared(more=f"partitions: {after}\n" if after else "")})
    told = json.loads(made.run("check", "--format", "json", code=0 if line else 100).out)
    [change] = told["policies"]
    assert (change["policy"], change["before"], change["after"]) == ("partitions", *row)
    assert [each["rule"] for each in told["findings"]] == ([] if line else ["PARTITIONS_SHRUNK"])
    made.scratch.git("commit", "-q", "-a", "-m", "partitions")
    shown = made.run("plan", code=100 if after == 2 else 0).out
    assert line in shown
    if line:
        assert [step["action"] for step in steps(made)] == ["grow_partitions"]
        made.run("apply", "--yes")
    elif after:
        assert "Pulsar can only add partitions" in shown
