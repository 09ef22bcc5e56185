"""A topic that a killed `apply --relax-while-replaying` left relaxed is restored by the next command that writes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import brokers
import pytest
from estate import Estate, EstateOnPulsar, make_order_info
from forks import Say, assert_killed, die_after, fork_process
from scratch import record

from schemactl.core.policies import CompatibilityStrategy
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.slow

RELAXED, RESTORED = 4, 8
"""The writes until the topic accepts everything, and until it is as before."""


class Left(Estate):
    """A repository with an approved version that BACKWARD rejects, and its topic as a killed apply left it."""

    def prepare(self) -> None:
        self.scratch.commit({"namespaces/orders.yaml": STRICT})
        self.run("apply", "--auto-approve")
        self.scratch.commit({"namespaces/orders.avsc": record("id", "needed")})
        self.kill_an_apply()
        assert self.strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE

    def kill_an_apply(self, writes: int = RELAXED) -> None:
        """Kill an apply in a separate process after this number of writes of relaxing and restoring."""
        self.scratch.flush()

        def apply(_: Say) -> None:
            for kind in (EmbeddedRegistry, PulsarRegistry):
                die_after(writes, kind, "_set_property", "set_namespace_policies", "set_topic_policies")
            self.run("apply", "--auto-approve", "--relax-while-replaying")

        assert_killed(*fork_process(apply))

    @property
    def strategy(self) -> CompatibilityStrategy:
        with self.registry() as registry:
            return registry.strategy(self.topic)

    @property
    def updates(self) -> bool | None:
        space = self.topic.namespace_name
        with self.registry() as registry:
            policies = registry.read(Scope(frozenset({space}), frozenset())).namespaces[space].policies
        return policies.is_allow_auto_update_schema

    def assert_restored(self, printed: str) -> None:
        assert f"restored {self.topic}" in printed
        assert self.strategy is CompatibilityStrategy.BACKWARD
        with self.registry() as registry:
            assert registry.find_relaxed_topic(self.topic) is None
        assert self.updates is True

    def assert_reports_are_true(self) -> None:
        """Compare what the reports show of the killed apply with the settings in force."""
        in_force = {
            "relaxed": self.strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE,
            "updates off": not self.updates,
        }
        drift = json.loads(self.run("drift", "--format", "json").out)["differences"]
        items = {item["kind"]: item for item in drift if item["kind"] in in_force}
        assert items.keys() == {kind for kind, is_in_force in in_force.items() if is_in_force}
        if "updates off" in items:
            assert items["updates off"]["namespace"] == str(self.topic.namespace_name)
        plan = self.run("plan", code=(0, 100)).out
        assert ("  ~ strategy: ALWAYS_COMPATIBLE -> BACKWARD; a killed apply" in plan) == in_force["relaxed"]
        updates = f"  ~ automatic updates in {self.topic.namespace_name}: off -> on; a killed apply"
        assert (updates in plan) == in_force["updates off"]
        assert ("back to BACKWARD" in plan) is False
        status = self.run("status", "--format", "text", "--format", "prometheus=metrics.prom").out
        assert (f"{self.topic.namespace_name}: clients cannot register schemas" in status) == in_force["updates off"]
        metrics = (self.scratch.path / "metrics.prom").read_text()
        for kind, is_in_force in in_force.items():
            assert f'schemactl_drift_differences{{target="local",kind="{kind}"}} {is_in_force:d}\n' in metrics

    def follow_advice(self) -> None:
        """Carry out the printed commands of `drift` and then of `plan`; the plan is empty afterwards."""
        for command in ("drift", "plan"):
            for line in self.run(command, code=(0, 100)).out.splitlines():
                if advice := re.match(r" +(?:Next|or|Fix): `schemactl (apply [^`]+)`", line):
                    self.run(*shlex.split(advice[1]), "--auto-approve", code=(0, 100))
        assert "No changes." in self.run("plan", "--detailed-exitcode").out
        assert "No drift." in self.run("drift", "--detailed-exitcode").out

    def assert_finished_by_the_next_apply(self) -> None:
        self.run("apply", "--auto-approve", "--relax-while-replaying")
        self.run("plan", "--relax-while-replaying", "--detailed-exitcode")
        assert (self.strategy, self.updates) == (CompatibilityStrategy.BACKWARD, True)
        with self.registry() as registry:
            assert registry.find_relaxed_topic(self.topic) is None


STRICT = """\
topic: shop/sales/orders
schema_compatibility_strategy: BACKWARD
schema: {type: AVRO, definition: orders.avsc}
"""


class LeftOnPulsar(EstateOnPulsar, Left):
    """A repository with a relaxed topic on a broker."""


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Left:
    new_estate = Left(tmp_path_factory.mktemp("left") / "shop")
    new_estate.prepare()
    return new_estate


def test_by_an_apply_that_is_refused_otherwise(estate: Left) -> None:
    estate.assert_restored(estate.run("apply", "--auto-approve", code=100).out)
    assert estate.read_definitions() == [make_order_info("id")]
    assert "restored" not in estate.run("apply", "--auto-approve", code=100).out


def test_on_a_broker_too(tmp_path: Path, broker: brokers.Broker) -> None:
    left = LeftOnPulsar(tmp_path / "shop", broker)
    left.prepare()
    left.assert_restored(left.run("apply", "--auto-approve", code=100).out)
    left.kill_an_apply()
    printed = left.run("registry", "delete", "shop/sales/orders", "--allow-delete", "--format", "json")
    assert json.loads(printed.out)["tombstone"] == 1
    left.assert_restored(printed.err)


@pytest.mark.parametrize("writes", range(1, RESTORED + 1))
def test_by_an_apply_after_a_kill_between_any_two_writes(estate: Left, writes: int) -> None:
    estate.run("apply", "--auto-approve", code=100)
    estate.kill_an_apply(writes)
    estate.assert_finished_by_the_next_apply()


@pytest.mark.parametrize("writes", range(1, RESTORED + 1))
def test_after_any_write_the_reports_show_the_settings_in_force_and_their_advice_restores_them(
    estate: Left, writes: int
) -> None:
    estate.run("apply", "--auto-approve", code=100)
    estate.kill_an_apply(writes)
    estate.assert_reports_are_true()
    estate.follow_advice()
    assert (estate.strategy, estate.updates) == (CompatibilityStrategy.BACKWARD, True)


CLOSED = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\nis_allow_auto_update_schema: false\n"
OPEN = STRICT.replace("BACKWARD", "ALWAYS_COMPATIBLE")


@pytest.mark.parametrize(
    ("file", "declaration"),
    [("namespaces/sales.yaml", CLOSED), ("namespaces/orders.yaml", OPEN)],
    ids=["closed", "open"],
)
@pytest.mark.parametrize("writes", range(1, RESTORED + 1))
def test_a_declared_setting_does_not_count_as_left_by_an_apply_that_was_killed(
    estate: Left, writes: int, file: str, declaration: str
) -> None:
    estate.run("apply", "--auto-approve", code=100)
    estate.kill_an_apply(writes)
    estate.scratch.commit({file: declaration, "namespaces/orders.avsc": record("id")})
    estate.run("apply", "--auto-approve", code=(0, 3, 100))
    drift = json.loads(estate.run("drift", "--format", "json").out)["differences"]
    assert not {item["kind"] for item in drift} & {"relaxed", "updates off", "policy"}
    assert (
        "a killed apply had left ALWAYS_COMPATIBLE, which accepts every upload"
        not in estate.run("plan", code=(0, 100)).out
    )


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_by_an_apply_on_a_broker_after_a_kill_between_any_two_writes(tmp_path: Path, release: str) -> None:
    left = LeftOnPulsar(tmp_path / "shop", brokers.start_broker(release))
    left.scratch.commit({"namespaces/orders.yaml": STRICT})
    left.run("apply", "--auto-approve")
    for writes in range(1, RESTORED + 1):
        fields = ["id", *(f"needed{number}" for number in range(writes))]
        left.scratch.commit({"namespaces/orders.avsc": record(*fields)})
        left.kill_an_apply(writes)
        left.assert_reports_are_true()
        left.assert_finished_by_the_next_apply()


def test_by_an_apply_of_what_was_not_approved(estate: Left) -> None:
    options = ("--relax-while-replaying", "--expect-digest", "sha256:0")
    estate.assert_restored(estate.run("apply", *options, code=4).out)
    assert estate.read_definitions() == [make_order_info("id")]


def test_by_an_apply_of_a_stale_plan_and_then_by_the_plan_itself(estate: Left) -> None:
    estate.run("plan", "--relax-while-replaying", "--out", "old.json")
    with estate.registry() as registry:
        registry.restore(estate.topic)
    estate.run("plan", "--relax-while-replaying", "--out", "plan.json")
    estate.kill_an_apply()
    estate.assert_restored(estate.run("apply", "plan.json", "--relax-while-replaying", code=4).err)
    estate.kill_an_apply()
    estate.assert_restored(estate.run("apply", "old.json", code=1).err)
    estate.kill_an_apply()
    estate.run("apply", "old.json", "--relax-while-replaying")
    assert estate.strategy is CompatibilityStrategy.BACKWARD
    assert estate.read_definitions() == [make_order_info("id"), make_order_info("id", "needed")]


def test_by_a_rebuild_that_is_refused_otherwise(estate: Left) -> None:
    estate.assert_restored(estate.run("rebuild", "--auto-approve", code=100).out)


def test_by_an_upload_which_is_judged_by_the_topics_own_strategy(estate: Left) -> None:
    file = str(estate.scratch.path / "namespaces/orders.avsc")
    estate.assert_restored(estate.run("registry", "put", str(estate.topic), "--file", file, code=100).err)
    assert estate.read_definitions() == [make_order_info("id")]


def test_by_a_deletion(estate: Left) -> None:
    printed = estate.run("registry", "delete", str(estate.topic), "--allow-delete", "--format", "json")
    assert json.loads(printed.out)["tombstone"] == 1
    estate.assert_restored(printed.err)


def test_by_no_command_that_only_reads(estate: Left) -> None:
    printed = estate.run("plan", code=100), estate.run("drift")
    assert not any("restored" in output.out for output in printed)
    assert estate.strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE
