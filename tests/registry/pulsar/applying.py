"""`schemactl apply` in the process of a test, repeated until nothing remains."""

from __future__ import annotations

from contextlib import closing

from brokers import NO_CLIENTS
from pulsar_histories import History

from schemactl.core.errors import SchemactlError
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Plan
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.interface import Registry
from schemactl.registry.pulsar.http import WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry

MAX_RUNS = 30


def plan_history(registry: Registry, history: History) -> Plan:
    """Return the plan of the history, which must not have rejections."""
    state = read_registry_state(registry, find_scope(history.target))
    permissions = Permissions(delete=history.deleted & history.target.topics.keys(), relax=True)
    plan = make_plan(state, history.target, origin=history.origin, permissions=permissions)
    assert not plan.refusals, plan.refusals
    return plan


def apply_until_done(url: str, history: History, waits: WaitTimes = NO_CLIENTS) -> None:
    """Repeat apply until a run has nothing to do."""
    for _ in range(MAX_RUNS):
        with closing(PulsarRegistry(url, waits=waits)) as registry:
            try:
                plan = plan_history(registry, history)
                if not plan.steps:
                    return
                apply_plan(plan, registry)
            except SchemactlError:
                continue  # exit 1, 3 or 4: the next run goes on
    raise AssertionError(f"not done after {MAX_RUNS} runs")
