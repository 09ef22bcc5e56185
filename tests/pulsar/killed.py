"""Applies a random history and kills itself: killed.py URL TENANT SEED N, where N counts the requests that change something."""

from __future__ import annotations

import os
import random
import signal
import sys
from typing import Any

from pulsar_histories import History

from schemactl.apply import apply_plan
from schemactl.plan import Permissions, make_plan, observe, scope_of
from schemactl.registry.pulsar import PulsarRegistry
from schemactl.registry.pulsar.connection import AdminConnection
from schemactl.registry.pulsar.replies import Reply

url, tenant, seed, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
changes = 0
send_once = AdminConnection.send_once


def counted(self: AdminConnection, method: str, path: str, body: Any = None) -> Reply:
    """The answer; but after the last change that is allowed nobody lives to see it."""
    global changes  # noqa: PLW0603  a script
    reply = send_once(self, method, path, body)
    changes += method != "GET"
    if changes == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return reply


AdminConnection.send_once = counted  # type: ignore[method-assign]
history = History(random.Random(seed), tenant)  # noqa: S311  no secret
registry = PulsarRegistry(url)
state = observe(registry, scope_of(history.target))
plan = make_plan(
    state, history.target, origin=history.origin, permissions=Permissions(delete=history.deleted, relax=True)
)
result = apply_plan(plan, registry, progress=lambda _number, _step: None)
sys.exit(0 if result.failure is None else 3)
