"""Random admin REST calls, good and hostile, and what a live Pulsar 4.0.7 answered to them.

Each line of `recorded_4_0.jsonl.gz` is one sequence of calls in a tenant of its own: bodies that are no JSON, names of
nothing, partitions, policies, missing namespaces, other methods. Answers that only a broker's own classes explain
(`internal`, `bad request`) are compared by their status alone.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest

with gzip.open(Path(__file__).parent / "recorded_4_0.jsonl.gz", "rt", encoding="utf-8") as lines:
    SEQUENCES = [json.loads(line) for line in lines]


@pytest.mark.parametrize("calls", SEQUENCES, ids=range(len(SEQUENCES)))
def test_a_recorded_sequence_is_answered_as_it_was(client: admin_rest.Client, calls: list[dict[str, Any]]) -> None:
    tenant = brokers.new_tenant()
    for number, call in enumerate(calls):
        method, path, body, content_type = call["request"]
        response = client.call(method, path.replace("{t}", tenant), body, content_type=content_type)
        actual = admin_rest.normal(response, {tenant: "{t}"})
        expected = call["answer"]
        if expected["kind"] in ("internal", "bad request"):
            actual = expected
        where = f"call {number}: {method} {path} {body}"
        assert (response.status, actual) == (call["status"], expected), where
