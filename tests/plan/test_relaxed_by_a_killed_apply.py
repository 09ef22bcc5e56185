"""A topic that a killed `apply --relax-while-replaying` left relaxed is restored by whatever command writes next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import brokers
import pytest
from scratch import Scratch, record

from schemactl.cli import main
from schemactl.model import CompatibilityStrategy, TopicName
from schemactl.registry import Registry
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

KILLED = """
import os, signal, sys
from schemactl.cli import main
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.pulsar import PulsarRegistry

def relax(registry, topic):
    own(registry, topic)
    os.kill(os.getpid(), signal.SIGKILL)

kind = EmbeddedRegistry if sys.argv[2] == "embedded" else PulsarRegistry
own, kind.relax = kind.relax, relax
main(["-C", sys.argv[1], "apply", "--auto-approve", "--relax-while-replaying"])
"""

NEVER = record("id", "needed")
"""What BACKWARD refuses after a version without `needed`."""


@dataclass
class Left:
    """A repository with an approved version that BACKWARD refuses, and its topic as a killed apply left it."""

    scratch: Scratch
    topic: TopicName
    broker: brokers.Broker | None

    @contextmanager
    def registry(self) -> Iterator[Registry]:
        path = str(self.scratch.path / ".schemactl/registry.db")
        with brokers.opened(self.broker) if self.broker else closing(EmbeddedRegistry(path)) as registry:
            yield registry

    def run(self, *arguments: str) -> int:
        return main(["-C", str(self.scratch.path), *arguments])

    def kill_an_apply(self) -> None:
        kind = "pulsar" if self.broker else "embedded"
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(self.scratch.path), kind],
            env=os.environ,
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr

    @property
    def strategy(self) -> CompatibilityStrategy:
        with self.registry() as registry:
            return registry.strategy(self.topic)

    @property
    def numbers(self) -> list[int]:
        with self.registry() as registry:
            found = [registry.get_schema(self.topic, number) for number in range(4)]
        return [version.number for version in found if version]


@pytest.fixture(params=["embedded", pytest.param("broker", marks=pytest.mark.broker)])
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    broker = brokers.running("4.0") if request.param == "broker" else None
    space = f"{brokers.new_tenant()}/sales"
    scratch = Scratch(tmp_path / "shop")
    target = f'registry: "{broker.url if broker else "sqlite:.schemactl/registry.db"}"'
    topic = f"topic: {space}/orders\nschema_compatibility_strategy: BACKWARD\n"
    files = {
        "schemactl.yaml": f"version: 1\ntargets: {{here: {{{target}}}}}\n",
        ".gitignore": ".schemactl/\n",
        "namespaces/sales.yaml": f"namespace: {space}\nschema_compatibility_strategy: FULL\n",
        "namespaces/orders.yaml": f"{topic}schema: {{type: AVRO, definition: orders.avsc}}\n",
        "namespaces/orders.avsc": record("id"),
    }
    scratch.commit(files)
    scratch.flush()
    made = Left(scratch, TopicName.parse(f"{space}/orders"), broker)
    assert made.run("apply", "--auto-approve") == 0
    scratch.commit({"namespaces/orders.avsc": NEVER})
    scratch.flush()
    made.kill_an_apply()
    assert made.strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE
    return made


def assert_restored(left: Left, said: str) -> None:
    assert f"restored {left.topic}" in said
    assert left.strategy is CompatibilityStrategy.BACKWARD
    with left.registry() as registry:
        assert registry.relaxed(left.topic) is None


def test_by_an_apply_that_is_refused_otherwise(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    assert left.run("apply", "--auto-approve") == 100
    assert_restored(left, capsys.readouterr().out)
    assert left.numbers == [0]
    assert left.run("apply", "--auto-approve") == 100
    assert "restored" not in capsys.readouterr().out


def test_by_an_apply_of_what_was_not_approved(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--relax-while-replaying", "--require-approved", "sha256:0")
    assert left.run("apply", *options) == 4
    assert_restored(left, capsys.readouterr().out)
    assert left.numbers == [0]


def test_by_an_apply_of_a_stale_plan_and_then_by_the_plan_itself(
    left: Left, capsys: pytest.CaptureFixture[str]
) -> None:
    assert left.run("plan", "--relax-while-replaying", "--out", "plan.json") == 0
    text = (left.scratch.path / "plan.json").read_text()
    with left.registry() as registry:
        registry.restore(left.topic)
    assert left.run("plan", "--relax-while-replaying", "--out", "plan.json") == 0
    left.kill_an_apply()
    capsys.readouterr()
    assert left.run("apply", "plan.json", "--relax-while-replaying") == 4
    assert_restored(left, capsys.readouterr().err)
    left.kill_an_apply()
    (left.scratch.path / "plan.json").write_text(text)
    assert left.run("apply", "plan.json") == 1
    assert_restored(left, capsys.readouterr().err)
    left.kill_an_apply()
    assert left.run("apply", "plan.json", "--relax-while-replaying") == 0
    assert left.strategy is CompatibilityStrategy.BACKWARD
    assert left.numbers == [0, 1]


def test_by_a_rebuild_that_is_refused_otherwise(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    assert left.run("rebuild", "--auto-approve") == 100
    assert_restored(left, capsys.readouterr().out)


def test_by_an_upload_which_is_judged_by_the_topics_own_strategy(
    left: Left, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(left.scratch.path / "namespaces/orders.avsc")
    assert left.run("registry", "put", str(left.topic), "--file", file) == 100
    assert_restored(left, capsys.readouterr().err)
    assert left.numbers == [0]


def test_by_a_deletion(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    assert left.run("registry", "delete", str(left.topic), "--allow-delete", "--format", "json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["tombstone"] == 1
    assert_restored(left, captured.err)


def test_by_no_command_that_only_reads(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    assert left.run("plan") == 100
    assert left.run("drift") == 0
    assert "restored" not in capsys.readouterr().out
    assert left.strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE
