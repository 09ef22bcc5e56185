"""Other settings of namespaces and topics: declared, planned, applied, reported by drift, and never lost silently."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from estate import NAMESPACE, ORDERS, PROJECT, Estate
from scratch import write_declaration

from schemactl.core.names import NamespaceName
from schemactl.core.policies import SETTINGS, Policies
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")
WEEK = {"retentionTimeInMinutes": 10080, "retentionSizeInMB": -1}
DAY = {"retentionTimeInMinutes": 1440, "retentionSizeInMB": -1}
DELETES = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": True,
}
KEEPS = {**DELETES, "deleteWhileInactive": False}

VALUES: dict[str, tuple[Any, Any]] = {
    "retention_policies": (DAY, WEEK),
    "message_ttl_in_seconds": (0, 0),
    "inactive_topic_policies": (KEEPS, KEEPS),
    "deduplicationEnabled": (True, False),
    "compaction_threshold": (1_000_000, 0),
    "replication_clusters": (["eu", "us"], ["ap", "eu", "us"]),
}
"""Of each setting two values, of which the second loses nothing that the first keeps."""


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply a namespace and a topic that declare no setting."""
    applied_estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    applied_estate.run("apply", "--auto-approve")
    return applied_estate


def declare(estate: Estate, namespace: dict[str, Any], topic: dict[str, Any] | None = None) -> None:
    """Commit declarations in which the namespace and the topic have these settings."""

    def write(settings: dict[str, Any]) -> str:
        return "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())

    files = {
        "namespaces/sales.yaml": NAMESPACE + write(namespace),
        "namespaces/orders.yaml": write_declaration(more=write(topic or {})),
    }
    estate.scratch.commit(files)


def read_settings(estate: Estate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that the registry has of the namespace and of the topic."""
    names = frozenset(SETTINGS)
    with estate.registry() as registry:
        catalog = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS}), {SALES: names, ORDERS: names}))
    return dict(catalog.namespaces[SALES].policies.settings), dict(catalog.topics[ORDERS].policies.settings)


def test_every_row_is_declared_planned_applied_and_seen_to_drift(estate: Estate) -> None:
    assert VALUES.keys() == {name for name, row in SETTINGS.items() if row.topic_path}
    declare(estate, {}, {})
    assert read_settings(estate) == ({}, {})
    firsts, seconds = ({name: pair[index] for name, pair in VALUES.items()} for index in (0, 1))
    declare(estate, firsts, firsts)
    plan = json.loads(estate.run("plan", "--format", "json").out)
    set_ = [(step["action"], *step["after"]) for step in plan["steps"]]
    assert set_ == [(f"set_{kind}_policies", name) for kind in ("namespace", "topic") for name in VALUES]
    estate.run("plan", "--out", "plan.json")
    estate.run("apply", "plan.json")
    assert read_settings(estate) == (firsts, firsts)
    assert "No changes" in estate.run("plan").out
    declare(estate, seconds, seconds)
    assert "retention_policies: {retentionTimeInMinutes: 1440, retentionSizeInMB: -1} -> {" in estate.run("plan").out
    assert "compaction_threshold is 1000000, but Git approved 0" in estate.run("drift").out
    estate.run("apply", "--auto-approve")
    assert read_settings(estate) == (seconds, seconds)
    assert "No drift" in estate.run("drift").out


def test_what_is_not_declared_is_left_alone_and_what_is_declared_no_longer_is_reset(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.set_namespace_policies(
            SALES, Policies.of({"message_ttl_in_seconds": 60, "deduplicationEnabled": True})
        )
    declare(estate, {"deduplicationEnabled": True})
    assert "No changes" in estate.run("plan").out
    declare(estate, {})
    assert "- deduplicationEnabled: true (now false, the broker's default)" in estate.run("plan").out
    estate.run("apply", "--auto-approve")
    assert read_settings(estate)[0] == {"message_ttl_in_seconds": 60}
    assert "No drift" in estate.run("drift").out


LOSSES = [
    pytest.param(WEEK, DAY, "retention_policies", "retained", id="retention made shorter"),
    pytest.param(None, 60, "message_ttl_in_seconds", "no subscription", id="a TTL where there was none"),
    pytest.param(3600, 60, "message_ttl_in_seconds", "no subscription", id="a shorter TTL"),
    pytest.param(KEEPS, DELETES, "inactive_topic_policies", "schemas", id="deletion of inactive topics"),
    pytest.param(
        {**DELETES, "maxInactiveDurationSeconds": 7200}, DELETES, "inactive_topic_policies", "schemas",
        id="sooner deletion",
    ),
    pytest.param(["eu", "us"], ["us"], "replication_clusters", "brokers of eu", id="a cluster less"),
    pytest.param(WEEK, None, "retention_policies", "retained", id="retention declared no longer"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "setting", "why"), LOSSES)
def test_what_can_lose_messages_needs_its_address(
    estate: Estate, before: Any, after: Any, setting: str, why: str
) -> None:
    declare(estate, {} if before is None else {setting: before})
    address = f"shop/sales:{setting}"
    estate.run("apply", "--auto-approve", "--allow-data-loss", address)
    estate.commit_orders("id", more=0)
    declare(estate, {} if after is None else {setting: after})
    plan = estate.run("plan", "--out", "plan.json", code=100).out
    assert why in plan
    assert f"--allow-data-loss {address}" in plan
    was = read_settings(estate)
    for arguments in (["--auto-approve"], ["plan.json"]):
        assert why in estate.run("apply", *arguments, code=100).out
        assert read_settings(estate) == was
        assert "2 versions" not in estate.run("log", "shop/sales/orders").out
    estate.run("plan", "--allow-data-loss", address, "--out", "plan.json")
    assert "which can lose messages" in estate.run("apply", "plan.json", code=1).err
    estate.run("apply", "plan.json", "--allow-data-loss", address)
    assert read_settings(estate)[0].get(setting) == after


def test_a_setting_of_a_topic_loses_what_its_namespace_keeps(estate: Estate) -> None:
    declare(estate, {"retention_policies": WEEK})
    estate.run("apply", "--auto-approve")
    declare(estate, {"retention_policies": WEEK}, {"retention_policies": DAY})
    assert f"--allow-data-loss {ORDERS}:retention_policies" in estate.run("plan", code=100).out
    estate.run("apply", "--auto-approve", "--allow-data-loss", "shop/sales/orders:retention_policies")
    assert read_settings(estate)[1] == {"retention_policies": DAY}


@pytest.mark.parametrize("setting", ["retention_policies", "message_ttl_in_seconds"])
@pytest.mark.parametrize("before", [(1, 0), (0, 1), (1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("after", [(0, 0), (2, 0), (0, 2), (1, 2), (2, 1)])
def test_one_apply_with_the_losses_that_a_plan_names_is_enough(
    estate: Estate, before: tuple[int, int], after: tuple[int, int], setting: str
) -> None:
    """The namespace and the topic change in one commit; 0 declares nothing, 2 keeps less than 1."""
    values: dict[int, Any] = {1: WEEK, 2: DAY} if setting == "retention_policies" else {1: 7200, 2: 60}
    for numbers in (before, after):
        declare(estate, *({setting: values[number]} if number else {} for number in numbers))
        plan = estate.run("plan", code=(0, 100)).out
        estate.run("apply", "--auto-approve", *" ".join(re.findall(r"--allow-data-loss [^ `]+", plan)).split())
        estate.run("plan", "--detailed-exitcode")


def test_a_rebuild_asks_for_the_same_word(estate: Estate) -> None:
    declare(estate, {"message_ttl_in_seconds": 60})
    with estate.registry() as registry:
        registry.delete_schema(ORDERS, force=True)
    assert "shop/sales:message_ttl_in_seconds" in estate.run("rebuild", "--auto-approve", code=100).out
    estate.run("rebuild", "--auto-approve", "--allow-data-loss", "shop/sales:message_ttl_in_seconds")
    assert read_settings(estate)[0] == {"message_ttl_in_seconds": 60}
    with estate.registry() as registry:
        assert len(registry.versions(ORDERS)) == 1


def test_a_new_namespace_has_nothing_to_lose(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "r")
    declare(estate, {"message_ttl_in_seconds": 60}, {"inactive_topic_policies": DELETES})
    estate.run("apply", "--auto-approve")
    assert read_settings(estate) == ({"message_ttl_in_seconds": 60}, {"inactive_topic_policies": DELETES})


@pytest.mark.parametrize("address", ["shop/sales", "shop/sales:partitions", "orders:retention_policies"])
def test_an_address_of_nothing_is_wrong_usage(estate: Estate, address: str) -> None:
    message = estate.run("plan", "--allow-data-loss", address, code=64).err
    assert "copy it from the plan" in message


def test_a_target_has_settings_of_its_own_and_show_says_where_they_come_from(tmp_path: Path) -> None:
    project = PROJECT.replace("}\n", ", overlays: environments/local.yaml}\n")
    estate = Estate(tmp_path / "r", project=project)
    declare(estate, {"retention_policies": WEEK, "deduplicationEnabled": True})
    estate.scratch.commit(
        {
            "environments/local.yaml": "namespace: shop/sales\nmessage_ttl_in_seconds: 60\n---\n"
            f"topic: shop/sales/orders\nretention_policies: {json.dumps(DAY)}\n"
        }
    )
    estate.run("apply", "--auto-approve")
    assert read_settings(estate) == (
        {"retention_policies": WEEK, "message_ttl_in_seconds": 60, "deduplicationEnabled": True},
        {"retention_policies": DAY},
    )
    shown_text = " ".join(estate.run("show", "shop/sales/orders", "--effective", "--target", "local").out.split())
    assert "{retentionTimeInMinutes: 1440, retentionSizeInMB: -1} environments/local.yaml:5:21 (overlay)" in shown_text
    assert "message_ttl_in_seconds 60 environments/local.yaml:2:25 (namespace, overlay)" in shown_text
    assert "compaction_threshold" not in shown_text


WITH_ANOTHER_ROW = """
from schemactl.core.policies import SETTINGS
from schemactl.core.policies import IntegerValue, Setting

SETTINGS["max_producers_per_topic"] = Setting(
    "max_producers_per_topic", "So many producers.", IntegerValue("a number of producers", 0),
    path="maxProducersPerTopic", default=0, loses=lambda before, after: "producers are sent away" if after else "",
)
import shlex, sys
from schemactl.cli import main
from schemactl.declare.models import editor_schemas

print("max_producers_per_topic" in str(editor_schemas()))
for line in sys.stdin:
    print("exit", main(shlex.split(line)))
"""


def test_another_row_of_the_table_is_all_that_another_setting_takes(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "r")
    estate.run("apply", "--auto-approve")
    declare(estate, {"max_producers_per_topic": 5})
    estate.scratch.flush()
    lines = (
        "apply --auto-approve",
        "apply --auto-approve --allow-data-loss shop/sales:max_producers_per_topic",
        "plan",
        "drift",
        "show shop/sales/orders --effective",
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITH_ANOTHER_ROW],
        cwd=estate.scratch.path,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    out = done.stdout
    assert out.startswith("True\n"), done.stderr
    assert (
        "max_producers_per_topic: not set -> 5: producers are sent away; `apply` changes nothing until this is allowed"
        in out
    )
    assert [line for line in out.splitlines() if line.startswith("exit")] == [
        "exit 100", "exit 0", "exit 0", "exit 0", "exit 0",
    ]  # fmt: skip
    assert "+ max_producers_per_topic: 5" in out
    assert "No drift" in out
    assert "namespaces/sales.yaml:3:26 (namespace)" in out
    assert "max_producers_per_topic" in estate.run("check", code=1).err, "not in this process"
