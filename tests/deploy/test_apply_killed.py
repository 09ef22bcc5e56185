"""An apply killed at any moment is finished by the next one, as if it had never been killed."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from approved import ID, NEEDED, ORDERS, REFUNDS, A, B, C, S, carry_out, make_catalog, make_topic, plan_for, record
from forks import Say, assert_killed, fork_process, kill_oneself

from schemactl.core.catalog import Catalog
from schemactl.core.policies import Policies
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

SEEDS = max(1, int(os.environ.get("SCHEMACTL_EXAMPLES", "1")) // 100)
BRANCHES = [record(ID, {"name": f"f{n}", "type": "int", "default": n}) for n in range(30)]
TARGET = make_catalog(
    make_topic(ORDERS, A, record(ID, NEEDED), B, C, *BRANCHES, policies=Policies(S.FULL)),
    make_topic(REFUNDS, A, B, *BRANCHES, partitions=2),
    sales=Policies(S.BACKWARD, is_allow_auto_update_schema=False),
)
SMALL = make_catalog(
    make_topic(ORDERS, A, record(ID, NEEDED), B, policies=Policies(S.FULL)),
    make_topic(REFUNDS, A, partitions=2),
    sales=Policies(S.BACKWARD),
)


def apply(path: Path, target: Catalog, say: Say, *, last: int | None = None) -> None:
    """Say how many steps there are, and the number of each when it is done; after step `last`, end."""

    def report_progress(number: int, _: object) -> None:
        say(number)
        if number == last:
            kill_oneself()

    registry = EmbeddedRegistry(str(path))
    plan = plan_for(registry, target, relax=True)
    say(len(plan.steps))
    assert apply_plan(plan, registry, on_step_done=report_progress).failure is None


def without_times(path: Path, target: Catalog) -> Catalog:
    """Return the contents of the registry without times, which are further apart after a killed run."""
    with closing(EmbeddedRegistry(str(path))) as registry:
        contents = registry.read(find_scope(target))
    topics = {
        name: replace(topic, versions=tuple(replace(version, timestamp_ms=0) for version in topic.versions))
        for name, topic in contents.topics.items()
    }
    return replace(contents, topics=topics)


def apply_undisturbed(path: Path, target: Catalog) -> tuple[Catalog, int]:
    """Apply without a kill, and return the contents and the number of steps."""
    with closing(EmbeddedRegistry(str(path))) as registry:
        steps = len(carry_out(registry, target, relax=True).steps)
    return without_times(path, target), steps


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_any_moment_the_next_apply_finishes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    path = tmp_path / "registry.db"
    for kills in range(7):
        process, out = fork_process(partial(apply, path, TARGET))
        with out:
            left = int(out.readline())
            if kills == 6 or left == 0:
                out.read()
                assert os.waitpid(process, 0)[1] == 0
                break
            for _ in range(chance.randrange(min(left, 12))):
                out.readline()
            time.sleep(chance.random() / 200)
            os.kill(process, signal.SIGKILL)
            assert_killed(process, out)
    assert kills > 0
    assert without_times(path, TARGET) == apply_undisturbed(tmp_path / "undisturbed.db", TARGET)[0]
    with closing(EmbeddedRegistry(str(path))) as registry:
        assert plan_for(registry, TARGET).steps == ()
        assert registry.find_relaxed_topic(ORDERS) is None


def test_killed_at_every_step_boundary_the_next_apply_finishes(tmp_path: Path) -> None:
    expected, steps = apply_undisturbed(tmp_path / "undisturbed.db", SMALL)
    assert steps > 8
    for last in range(1, steps + 1):
        path = tmp_path / f"{last}.db"
        assert_killed(*fork_process(partial(apply, path, SMALL, last=last)))
        with closing(EmbeddedRegistry(str(path))) as registry:
            carry_out(registry, SMALL, relax=True)
            assert plan_for(registry, SMALL).steps == ()
        assert without_times(path, SMALL) == expected, f"killed after step {last}"
