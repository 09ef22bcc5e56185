"""`serve` answers as a live broker did, over HTTP: 80 recorded scenarios, and random admin REST calls, good and hostile.

The scenarios are replayed on a real broker, too: it has to say the same as it did. Each line of `recorded_4_0.jsonl.gz` is
one sequence of calls in a tenant of its own, with the answers of Pulsar 4.0.7: bodies that are no JSON, names of nothing,
partitions, policies, missing namespaces, other methods. Answers that only a broker's own classes explain (`internal`,
`bad request`) are compared by their status alone.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
from corpora import read_rows

SCENARIOS = read_rows("rest_traces_public")

ONE_BUNDLE = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
LAG_S = 2.0
"""A real broker shows a changed topic policy, and finds the owner of a new namespace, only after a while."""


def request_of(op: str, args: dict[str, Any], ns: str) -> tuple[str, str, Any]:
    """Method, path and body of a recorded call."""
    topic = args.get("topic")
    schemas, topics, space = f"/schemas/{ns}/{topic}", f"/persistent/{ns}/{topic}", f"/namespaces/{ns}"
    payload = {key: value for key, value in args.items() if key != "topic"}
    strategy, applied = args.get("strategy"), "?applied=true" if args.get("applied") else ""
    return {
        "upload": ("POST", f"{schemas}/schema", payload),
        "compatibility": ("POST", f"{schemas}/compatibility", payload),
        "version": ("POST", f"{schemas}/version", payload),
        "get_latest": ("GET", f"{schemas}/schema", None),
        "get_version": ("GET", f"{schemas}/schema/{args.get('version')}", None),
        "list": ("GET", f"{schemas}/schemas", None),
        "metadata": ("GET", f"{schemas}/metadata", None),
        "delete": ("DELETE", f"{schemas}/schema", None),
        "force_delete": ("DELETE", f"{schemas}/schema?force=true", None),
        "set_namespace_strategy": ("PUT", f"{space}/schemaCompatibilityStrategy", strategy),
        "get_namespace_strategy": ("GET", f"{space}/schemaCompatibilityStrategy", None),
        "set_topic_strategy": ("PUT", f"{topics}/schemaCompatibilityStrategy", strategy),
        "get_topic_strategy": ("GET", f"{topics}/schemaCompatibilityStrategy{applied}", None),
        "delete_topic_strategy": ("DELETE", f"{topics}/schemaCompatibilityStrategy", None),
        "create_topic": ("PUT", topics, None),
        "delete_topic": ("DELETE", f"{topics}?force=true", None),
        "set_allow_auto_update": ("POST", f"{space}/isAllowAutoUpdateSchema", args.get("value")),
        "set_validation_enforced": ("POST", f"{space}/schemaValidationEnforced", args.get("value")),
        "set_auto_update_strategy": ("PUT", f"{space}/schemaAutoUpdateCompatibilityStrategy", strategy),
    }[op]


def replay(client: admin_rest.Client, tenant: str, scenario: dict[str, Any], lag_s: float) -> Iterator[str]:
    """Return the calls of `scenario` whose responses differ from the recorded ones."""
    ns = f"{tenant}/{scenario['id']}"
    policies = {**scenario["namespace_policies"], "bundles": ONE_BUNDLE}
    assert client.call("PUT", f"/namespaces/{ns}", policies).status == 204
    for number, op in enumerate(scenario["ops"]):
        method, path, body = request_of(op["op"], op["args"], ns)
        sent = json.dumps(body) if method in ("PUT", "POST") and op["op"] != "create_topic" else None
        expected = {key: value for key, value in op["answer"].items() if key != "via"}
        until = time.monotonic() + (lag_s if "topic_strategy" in op["op"] else 0)
        while True:
            response = client.call(method, path, sent)
            actual = admin_rest.normalize_answer(response, {ns: "{ns}"})
            good = response.status == op["status"] and (op["compare"] == "status" or actual == expected)
            # Writing is not repeated: only what is read may still be on its way.
            if good or (response.status != 412 and method != "GET") or time.monotonic() > until:
                break
            time.sleep(0.02)
        if not good:
            yield f"call {number}: {op['op']} {str(op['args'])[:200]}: {response.status} {str(actual)[:300]}"
        if lag_s and method != "GET" and "topic_strategy" in op["op"]:
            time.sleep(0.05)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_every_answer_of_the_live_broker_is_given(
    client: admin_rest.Client, tenant: str, scenario: dict[str, Any]
) -> None:
    assert list(replay(client, tenant, scenario, lag_s=0)) == []


@pytest.mark.parametrize("scenario", SCENARIOS[::8], ids=lambda scenario: scenario["id"])
def test_a_real_broker_still_answers_so(broker: brokers.Broker, scenario: dict[str, Any]) -> None:
    tenant = brokers.new_tenant()
    with closing(admin_rest.Client(broker.url)) as client:
        assert client.call("PUT", f"/tenants/{tenant}", {"allowedClusters": ["standalone"]}).status == 204
        assert list(replay(client, tenant, scenario, LAG_S)) == []


with gzip.open(Path(__file__).parent / "recorded_4_0.jsonl.gz", "rt", encoding="utf-8") as lines:
    SEQUENCES = [json.loads(line) for line in lines]


@pytest.mark.parametrize("calls", SEQUENCES, ids=range(len(SEQUENCES)))
def test_a_recorded_sequence_is_answered_as_it_was(client: admin_rest.Client, calls: list[dict[str, Any]]) -> None:
    tenant = brokers.new_tenant()
    for number, call in enumerate(calls):
        method, path, body, content_type = call["request"]
        response = client.call(method, path.replace("{t}", tenant), body, content_type=content_type)
        actual = admin_rest.normalize_answer(response, {tenant: "{t}"})
        expected = call["answer"]
        if expected["kind"] in ("internal", "bad request"):
            actual = expected
        where = f"call {number}: {method} {path} {body}"
        assert (response.status, actual) == (call["status"], expected), where
