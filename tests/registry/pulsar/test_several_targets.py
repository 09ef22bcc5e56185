"""Commands work on several targets at once, report each under its name, and exit with the worst code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
from command import process
from estate import ORDERS, Estate, make_order_info
from faulty import Faults
from scripted import Request, Response, Server, respond_json, serve

from schemactl.core.names import TopicName
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
targets:
  dev: {registry: "sqlite:.schemactl/dev.db", tenants: {shop: shop-dev}}
  stage: {registry: "sqlite:.schemactl/stage.db"}
"""
WITHOUT_SECRET = PROJECT + '  prod: {registry: "http://127.0.0.1:1", token_env: SHOP_TOKEN}\n'
UNREACHABLE = PROJECT + '  prod: {registry: "http://127.0.0.1:1"}\n'
BOTH = ("--target", "dev", "--target", "stage")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """A repository with two versions that no target has."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT)
    estate.commit_orders("id", note=0)
    return estate


def approve_targets(estate: Estate, project: str) -> None:
    """Approve a project file with these targets."""
    estate.scratch.commit({"schemactl.yaml": project}, "Name targets")


@contextmanager
def open_embedded(estate: Estate, target: str) -> Iterator[EmbeddedRegistry]:
    with closing(EmbeddedRegistry(str(estate.scratch.path / f".schemactl/{target}.db"))) as registry:
        yield registry


def count_versions(estate: Estate, target: str) -> int:
    """Return the number of versions of orders on the target."""
    tenant = "shop-dev" if target == "dev" else "shop"
    with open_embedded(estate, target) as registry:
        return len(registry.versions(TopicName(tenant, "sales", "orders")))


def lines(text: str) -> dict[str, Any]:
    """Return the JSON of each target, one for each line."""
    return {value["target"]: value for value in map(json.loads, text.splitlines())}


def test_targets_are_applied_side_by_side_each_with_its_own_result(estate: Estate) -> None:
    planned = estate.run("plan", *BOTH, "--detailed-exitcode", code=2).out
    heads = [line for line in planned.splitlines() if line.startswith("Plan for ")]
    assert [head.split()[2] for head in heads] == ["dev", "stage"]
    applied = estate.run("apply", "--all-targets", "--auto-approve")
    for name in ("dev", "stage"):
        assert f"\n{name}: Applied: 1 namespace, 1 topic, 2 versions registered." in applied.out
        assert f"{name}: [4/5] " in applied.err
        result = estate.read_json(f".schemactl/results/{name}.json")
        assert (result["target"], result["outcome"], count_versions(estate, name)) == (name, "applied", 2)
    assert estate.run("plan", *BOTH, "--detailed-exitcode").out.count("No changes.") == 2
    assert estate.run("drift", *BOTH, "--detailed-exitcode").out.count("No drift.") == 2


def test_json_is_a_line_for_each_target(estate: Estate) -> None:
    approve_targets(estate, UNREACHABLE)
    plans = lines(estate.run("plan", "--all-targets", "--format", "json", code=1).out)
    assert [*plans] == ["dev", "stage", "prod"]
    assert [len(plans[name]["steps"]) for name in ("dev", "stage")] == [5, 5]
    assert "does not answer" in plans["prod"]["problem"]
    documents = lines(estate.run("drift", "--all-targets", "--format", "json", code=1).out)
    assert {item["kind"] for item in documents["dev"]["pending"]} == {"namespace missing", "topic missing"}
    # Of one target it is the document that other commands read.
    assert len(estate.run("plan", "--target", "dev", "--format", "json").out.splitlines()) > 20


def test_a_target_that_fails_stops_no_other_and_the_worst_exit_code_counts(estate: Estate) -> None:
    approve_targets(estate, UNREACHABLE)
    applied = estate.run("apply", "--all-targets", "--auto-approve", code=1).out
    assert "prod: http://127.0.0.1:1: 127.0.0.1:1 does not answer" in applied
    assert (count_versions(estate, "dev"), count_versions(estate, "stage")) == (2, 2)
    with open_embedded(estate, "stage") as registry:
        registry.put_schema(ORDERS, make_order_info("id", note=0, theirs=0))
    estate.commit_orders("id", note=0, more=0)
    # Misread before pending, in whatever order they are named.
    options = ("--detailed-exitcode", "--summary")
    assert estate.run("plan", "--target", "stage", "--target", "dev", *options, code=100).out
    assert estate.run("plan", "--target", "dev", *options, code=2).out
    estate.run("plan", *BOTH, "--target", "prod", *options, code=1)


@pytest.mark.parametrize("command", ["plan", "drift", "apply"])
def test_credentials_that_are_not_here_stop_a_run_or_leave_the_target_out(
    estate: Estate, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    approve_targets(estate, WITHOUT_SECRET)
    yes = ["--auto-approve"] if command == "apply" else []
    why = "the environment variable SHOP_TOKEN is not set, and the target's credentials come from it"
    named = estate.run(command, *BOTH, "--target", "prod", *yes, code=1)
    assert (named.out, named.err.splitlines()[0]) == ("", f"schemactl: prod: {why}")
    assert not (estate.scratch.path / ".schemactl/results").exists()
    result = estate.run(command, "--all-targets", *yes, code=1)
    assert [line for line in result.err.splitlines() if "prod" in line] == [f"prod is skipped: {why}"]
    assert count_versions(estate, "dev") == count_versions(estate, "stage") == (2 if command == "apply" else 0)


@pytest.mark.parametrize(
    ("arguments", "said_"),
    [
        (
            ("plan", *BOTH, "--out", "plan.json"),
            "Fix: schemactl plan --target dev --out dev.json && schemactl plan --target stage --out stage.json",
        ),
        (("apply", "--all-targets", "--result", "r.json"), "schemactl apply --target NAME --result NAME.json"),
        (("apply", *BOTH, "--expect-digest", "sha256:0"), "--expect-digest is for one target"),
        (("apply", *BOTH, "plan.json"), "plan.json is for one target\n  Fix: schemactl apply plan.json"),
        (("drift", *BOTH, "--accept", "--reason", "x"), "schemactl drift --target dev --accept --reason TEXT"),
        (("plan", "--all-targets", "--target", "dev"), "--all-targets cannot be combined with --target"),
        (("plan", *BOTH, "--target", "prd"), "--target prd: schemactl.yaml has dev, stage"),
        (("plan", "--all-targets", "--topic", "nothing"), "nothing"),
    ],
)
def test_option_for_one_target_is_an_error_with_the_command_for_each(
    estate: Estate, arguments: tuple[str, ...], said_: str
) -> None:
    printed = estate.run(*arguments, code=64)
    assert said_ in printed.err
    assert printed.out == ""


def test_the_environment_names_the_target_where_no_option_does(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "dev, stage" in estate.run("plan", code=64).err
    monkeypatch.setenv("SCHEMACTL_TARGET", "stage")
    assert estate.run("plan", "--summary").out.startswith("Plan for stage")
    assert estate.run("plan", "--target", "dev", "--target", "dev", "--summary").out.startswith("Plan for dev")
    assert estate.run("plan", "--all-targets", "--summary").out.count("Plan for ") == 2


@contextmanager
def two_servers(estate: Estate, answer: Any) -> Iterator[Server]:
    """Targets `one` and `two` behind one server."""
    with serve(answer) as server:
        targets = "".join(f'  {name}: {{registry: "{server.url}"}}\n' for name in ("one", "two"))
        approve_targets(estate, f"version: 1\ntargets:\n{targets}")
        yield server


@pytest.mark.parametrize("command", ["plan", "drift", "status"])
def test_registries_are_read_in_parallel(estate: Estate, command: str) -> None:
    """Neither target gets a response before both have received a request."""
    both = threading.Barrier(2, timeout=60)
    first = threading.local()

    def answer(request: Request) -> Response:
        if request.path == "/namespaces/shop/sales" and not hasattr(first, "met"):
            first.met = both.wait()
        return respond_json("4.0.7") if request.path == "/brokers/version" else Response(404)

    with two_servers(estate, answer):
        estate.run(command, "--all-targets")
    assert not both.broken


def test_a_target_that_gives_no_answer_in_time_is_a_row_of_status(estate: Estate) -> None:
    over = threading.Event()

    def answer(_: Request) -> Response:
        over.wait(60)
        return Response(404)

    with serve(answer) as server:
        approve_targets(estate, PROJECT + f'  prod: {{registry: "{server.url}"}}\n')
        # What waits for an answer ends with the process; here it has to be let go.
        release = threading.Timer(8, over.set)
        release.start()
        output = estate.run("status", "--timeout", "4", "--format", "json", code=1).out
        alone = estate.run("status", "--target", "prod", "--timeout", "1", "--format", "json", code=1).out
        over.set()
        release.cancel()
    rows = {row["target"]: row for row in json.loads(output)["targets"]}
    assert [rows[name]["problem"] for name in ("dev", "stage")] == [None, None]
    assert rows["prod"]["problem"].startswith("gave up after 4 s")
    assert json.loads(alone)["targets"][0]["problem"].startswith("gave up after 1 s")


@pytest.mark.network
def test_apply_at_its_time_limit_reports_the_steps_of_each_target(estate: Estate) -> None:
    uploads = count(1)
    over = threading.Event()
    with admin_rest.serve_folder() as (url, _):
        forward = Faults(url, 0)._forward

        def answer(request: Request) -> Response:
            if request.method == "POST" and request.path.endswith("/schema") and next(uploads) > 1:
                over.wait(60)
                return Response(503)
            return forward(request)

        with serve(answer) as server:
            approve_targets(estate, PROJECT + f'  prod: {{registry: "{server.url}"}}\n')
            threading.Timer(12, over.set).start()
            applied = estate.run("apply", "--all-targets", "--auto-approve", "--timeout", "6", code=3).out
            over.set()
    assert "\ndev: Applied: 1 namespace, 1 topic, 2 versions registered." in applied
    assert "\nprod: Stopped: gave up after 6 s" in applied
    assert "Applied 5 of 6 steps." in applied
    results = {name: estate.read_json(f".schemactl/results/{name}.json") for name in ("dev", "stage", "prod")}
    assert [result["outcome"] for result in results.values()] == ["applied", "applied", "partly applied"]


def test_two_applies_at_once_to_two_environments_do_not_meet(estate: Estate) -> None:
    estate.scratch.flush()

    def apply(target: str) -> int:
        return process(estate.scratch.path, "apply", "--target", target, "--auto-approve").code

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(apply, ["dev", "stage"])] == [0, 0]
    for name in ("dev", "stage"):
        assert count_versions(estate, name) == 2
        assert estate.read_json(f".schemactl/results/{name}.json")["outcome"] == "applied"


@pytest.mark.broker
def test_targets_on_a_broker_and_embedded_ones_are_applied_together(tmp_path: Path, broker: brokers.Broker) -> None:
    tenants = [brokers.new_tenant() for _ in range(2)]
    targets = "".join(
        f'  {name}: {{registry: "{broker.url}", tenants: {{shop: {tenant}}}}}\n'
        for name, tenant in zip(("blue", "green"), tenants, strict=True)
    )
    estate = Estate(tmp_path / "shop", project=PROJECT + targets)
    estate.commit_orders("id", note=0)
    assert estate.run("apply", "--all-targets", "--auto-approve").out.count(": Applied: ") == 4
    assert estate.run("plan", "--all-targets", "--detailed-exitcode").out.count("No changes.") == 4
    names = [TopicName(tenant, "sales", "orders") for tenant in tenants]
    with brokers.open_registry(broker) as registry:
        topics = registry.read(Scope(frozenset(), frozenset(names))).topics
    assert [[version.number for version in topics[name].versions] for name in names] == [[0, 1], [0, 1]]
