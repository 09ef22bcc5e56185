"""The time of a plan grows with the number of versions, also of one topic."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import closing
from functools import partial

import pytest
from approved import ORDERS, make_catalog, make_topic
from approved import plan_for as make_plan_for

from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.timed

STRATEGIES = (CompatibilityStrategy.ALWAYS_COMPATIBLE, CompatibilityStrategy.BACKWARD, CompatibilityStrategy.FULL)


NAMES = map("Order{}".format, itertools.count())
"""The names of records: every measurement has another one, so that no definition was parsed before."""


def make_revision(name: str, number: int) -> SchemaInfo:
    """Return a record with fields that differ only in their last default, as most revisions of a definition do."""
    fields: list[dict[str, object]] = [
        {"name": f"field_{index}", "type": ["null", "string"], "default": None} for index in range(6)
    ]
    fields.append({"name": "revision", "type": "int", "default": number})
    return SchemaInfo(SchemaType.AVRO, json.dumps({"type": "record", "name": name, "fields": fields}).encode())


def measure_plan_s(versions: int, strategy: CompatibilityStrategy) -> float:
    """Return the CPU time of the plan for one topic on an empty registry."""
    revisions = map(partial(make_revision, next(NAMES)), range(versions))
    target = make_catalog(make_topic(ORDERS, *revisions, policies=Policies(strategy)))
    with closing(EmbeddedRegistry(":memory:")) as registry:
        start_s = time.process_time()
        plan = make_plan_for(registry, target)
        cpu_s = time.process_time() - start_s
    assert sum(isinstance(step, RegisterVersion) for step in plan.steps) == versions
    return cpu_s


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_eight_times_the_versions_take_about_eight_times_as_long(strategy: CompatibilityStrategy) -> None:
    few_s = max(measure_plan_s(200, strategy) for _ in range(3))
    assert measure_plan_s(1_600, strategy) < 16 * few_s
