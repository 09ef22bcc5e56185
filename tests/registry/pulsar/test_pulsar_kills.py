"""After `apply` or the broker is killed at any moment, the next `apply` has the result of an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import brokers
import pytest
from applying import apply_until_done, plan_history
from forks import Say, fork_process, kill_oneself
from pulsar_histories import History, make_versions, read_state, record

from schemactl.core.catalog import Catalog
from schemactl.core.errors import StalePlan
from schemactl.deploy.apply import ApplyResult, apply_plan
from schemactl.deploy.plan import Plan
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.registry import PulsarRegistry
from schemactl.registry.pulsar.responses import Reply

pytestmark = pytest.mark.broker

SEED = 5
STEP = int(os.environ.get("SCHEMACTL_KILL_STEP", "5"))
"""The number of requests between the kills of two runs; `make soak` kills after each request."""

PATIENCE_S = 15.0
"""The time for which an apply retries at least while a broker restarts: 20 s without bookies, and the last delay of 5 s would end later."""


def new_history() -> History:
    return History(random.Random(SEED), brokers.new_tenant())  # noqa: S311  no secret


def apply_and_die(url: str, history: History, last: int, _: Say) -> None:
    """Apply the history, and kill the process after `last` writing requests."""
    send_once, changes = AdminConnection.send_once, count(1)

    def send_counted(self: AdminConnection, method: str, path: str, data: bytes | None = None) -> Reply:
        reply = send_once(self, method, path, data)
        if method != "GET" and next(changes) == last:
            kill_oneself()
        return reply

    AdminConnection.send_once = send_counted  # type: ignore[method-assign]
    with closing(PulsarRegistry(url, waits=brokers.NO_CLIENTS)) as registry:
        result = apply_plan(plan_history(registry, history), registry)
        assert result.failure is None


def test_killed_after_any_request_the_next_apply_finishes(broker: brokers.Broker) -> None:
    kills = 0
    with closing(PulsarRegistry(broker.url, waits=brokers.NO_CLIENTS)) as registry:
        for last in count(1, STEP):
            history = new_history()
            history.prepare(registry)
            process, output = fork_process(partial(apply_and_die, broker.url, history, last))
            with output:
                status = os.waitpid(process, 0)[1]
            if status:
                assert os.WTERMSIG(status) == signal.SIGKILL
                kills += 1
                apply_until_done(broker.url, history)
            assert read_state(registry, history) == history.expected_state(), f"killed after {last} changes"
            if not status:
                break
    assert kills > 15 // STEP


def test_two_concurrent_applies_register_each_version_once_and_in_order(broker: brokers.Broker) -> None:
    history = new_history()
    with closing(PulsarRegistry(broker.url, waits=brokers.NO_CLIENTS)) as registry:
        history.prepare(registry)
        # A deletion cannot be told from another's, so it is left to one.
        history.target = Catalog(
            history.target.namespaces,
            {name: topic for name, topic in history.target.topics.items() if name not in history.deleted},
        )
        plan = plan_history(registry, history)

        def attempt(_: int) -> ApplyResult | StalePlan:
            with closing(PulsarRegistry(broker.url, waits=brokers.NO_CLIENTS)) as own:
                try:
                    return apply_plan(plan, own)
                except StalePlan as stale:
                    return stale

        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(attempt, range(4)))
        assert any(isinstance(result, ApplyResult) for result in results)
        apply_until_done(broker.url, history)
        gone = {name.topic: read_state(registry, history)[name.topic] for name in history.deleted}
        assert read_state(registry, history) == {**history.expected_state(), **gone}


@pytest.mark.broker
def test_an_apply_lives_through_a_restart_of_the_broker(tmp_path: Path) -> None:
    broker = brokers.start(tmp_path / "broker")
    try:
        history = new_history()
        name = next(iter(history.target.topics))
        infos = [record(number) for number in range(16)]
        long = replace(history.target.topics[name], versions=make_versions(infos), schema=infos[-1])
        history.target = Catalog(history.target.namespaces, {**history.target.topics, name: long})
        with closing(PulsarRegistry(broker.url, waits=brokers.NO_CLIENTS)) as registry:
            history.prepare(registry)
            plan = plan_history(registry, history)
            result, waited_s = apply_during_restart(plan, registry, broker)
            if result.failure:
                # On a busy machine, the broker and its bookie start so slowly that the apply gives up; the next one finishes.
                assert waited_s > PATIENCE_S, result.failure
                apply_until_done(broker.url, history)
            assert read_state(registry, history) == history.expected_state()
            assert plan_history(registry, history).steps == ()
    finally:
        brokers.run_recipe("stop", broker.environment)


def apply_during_restart(plan: Plan, registry: PulsarRegistry, broker: brokers.Broker) -> tuple[ApplyResult, float]:
    """The result of an apply, in whose middle the broker is killed and started again with its data, and the time from kill to result."""
    halfway: list[int] = []
    ends_s: list[float] = []

    def progress(number: int, _: object) -> None:
        halfway.append(number)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(apply_plan, plan, registry, on_step_done=progress)
        running.add_done_callback(lambda _: ends_s.append(time.monotonic()))
        while len(halfway) < len(plan.steps) // 2 and not running.done():
            time.sleep(0.005)
        pid = int(Path(broker.environment["SCHEMACTL_BROKER_DATA"], "broker.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        killed_s = time.monotonic()
        assert not running.done()
        with suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
                time.sleep(0.05)
        brokers.run_recipe("start", {**broker.environment, "SCHEMACTL_KEEP_DATA": "yes"})
    return running.result(), ends_s[0] - killed_s
