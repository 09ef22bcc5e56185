"""An apply killed at any moment is finished by the next one, as if it had never been killed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from approved import ID, NEEDED, ORDERS, REFUNDS, A, B, C, S, carry_out, catalog, plan_for, record, topic

from schemactl.apply import apply_plan
from schemactl.model import Catalog, Policies
from schemactl.plan import scope_of
from schemactl.registry import Scope
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

SEEDS = max(1, int(os.environ.get("SCHEMACTL_EXAMPLES", "1")) // 100)
BRANCHES = [record(ID, {"name": f"f{n}", "type": "int", "default": n}) for n in range(30)]
TARGET = catalog(
    topic(ORDERS, A, record(ID, NEEDED), B, C, *BRANCHES, policies=Policies(S.FULL)),
    topic(REFUNDS, A, B, *BRANCHES, partitions=2),
    sales=Policies(S.BACKWARD, is_allow_auto_update_schema=False),
)

SMALL = catalog(
    topic(ORDERS, A, record(ID, NEEDED), B, policies=Policies(S.FULL)),
    topic(REFUNDS, A, partitions=2),
    sales=Policies(S.BACKWARD),
)

APPLY = """
import sys
sys.path.insert(0, sys.argv[1])
from approved import plan_for
from test_apply_killed import TARGET
from schemactl.apply import apply_plan
from schemactl.registry.embedded import EmbeddedRegistry

registry = EmbeddedRegistry(sys.argv[2])
plan = plan_for(registry, TARGET, relax=True)
print(len(plan.steps), flush=True)
result = apply_plan(plan, registry, progress=lambda number, _: print(number, flush=True))
assert result.failure is None, result.failure
"""


def start(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPLY, str(Path(__file__).parent), str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def state(path: Path) -> Catalog:
    registry = EmbeddedRegistry(str(path), clock_ms=lambda: 0)
    found = registry.read(Scope(frozenset(TARGET.namespaces), frozenset(TARGET.topics)))
    registry.close()
    return found


def numbers_and_contents(catalog: Catalog) -> list[object]:
    """Everything but times, which a killed run spreads over a longer time."""
    topics = [
        (
            topic.name,
            topic.policies,
            topic.partitions,
            [(version.number, version.info) for version in topic.versions],
        )
        for topic in sorted(catalog.topics.values(), key=lambda topic: topic.name)
    ]
    return [catalog.namespaces, topics]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    path = tmp_path_factory.mktemp("undisturbed") / "registry.db"
    registry = EmbeddedRegistry(str(path))
    carry_out(registry, TARGET, relax=True)
    registry.close()
    return numbers_and_contents(state(path))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_any_moment_the_next_apply_finishes(
    tmp_path: Path, undisturbed: list[object], seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    path = tmp_path / "registry.db"
    kills = 0
    while True:
        process = start(path)
        assert process.stdout is not None
        left = int(process.stdout.readline())
        if kills == 6 or left == 0:
            process.communicate()
            assert process.returncode == 0
            break
        for _ in range(chance.randrange(min(left, 12))):
            process.stdout.readline()
        time.sleep(chance.random() / 200)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
    assert kills > 0
    assert numbers_and_contents(state(path)) == undisturbed
    registry = EmbeddedRegistry(str(path))
    assert plan_for(registry, TARGET).steps == ()
    assert registry.relaxed(ORDERS) is None
    registry.close()


def killed_after(last: int, path: Path) -> None:
    """Apply in a process of its own, which kills itself after a step."""
    child = os.fork()
    if child:
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        return
    try:
        registry = EmbeddedRegistry(str(path))
        apply_plan(
            plan_for(registry, SMALL, relax=True),
            registry,
            progress=lambda number, _: os.kill(os.getpid(), signal.SIGKILL) if number == last else None,
        )
    finally:
        os._exit(1)


def test_killed_at_every_step_boundary_the_next_apply_finishes(tmp_path: Path) -> None:
    with closing(EmbeddedRegistry(str(tmp_path / "undisturbed.db"))) as registry:
        steps = len(carry_out(registry, SMALL, relax=True).steps)
        undisturbed = numbers_and_contents(registry.read(scope_of(SMALL)))
    assert steps > 8
    for last in range(1, steps + 1):
        path = tmp_path / f"{last}.db"
        killed_after(last, path)
        with closing(EmbeddedRegistry(str(path))) as registry:
            carry_out(registry, SMALL, relax=True)
            assert plan_for(registry, SMALL).steps == ()
            found = numbers_and_contents(registry.read(scope_of(SMALL)))
        assert without_times(found) == without_times(undisturbed), f"killed after step {last}"


def without_times(told: list[object]) -> str:
    return re.sub(r"timestamp_ms=\d+", "", repr(told))
