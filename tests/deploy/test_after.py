"""`after`: a version is planned once the targets named there hold it, as their registry or their last result says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate
from scratch import write_declaration

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
targets:
  stage: {registry: "sqlite:.schemactl/stage.db", namespaces: {shop/sales: shop/stage}}
  prod: {registry: "sqlite:.schemactl/registry.db", after: [stage]}
"""
PROD = ("--target", "prod")
STAGE = ("--target", "stage")
RESULTS = ("--results", ".schemactl/results/stage.json")
RESULT = {"target": "stage", "outcome": "applied", "time_s": 1, "ci": None, "approved": {"commit": {"id": "a" * 40}}}


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Approve two topics, of which orders has two versions; nothing is applied."""
    new_estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT)
    new_estate.scratch.commit({"namespaces/refunds.yaml": write_declaration("shop/sales/refunds")})
    new_estate.commit_orders("id", note=0)
    return new_estate


@pytest.fixture(scope="module")
def applied_to_stage(module_estate: Estate, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply everything to stage. No test changes it."""
    applied_estate = module_estate.copy_to(tmp_path_factory.mktemp("applied") / "shop")
    applied_estate.run("apply", *STAGE, "--auto-approve")
    return applied_estate


@pytest.fixture
def staged_estate(applied_to_stage: Estate, tmp_path: Path) -> Estate:
    """Return a copy of the estate that is applied to stage."""
    return applied_to_stage.copy_to(tmp_path / "staged")


def list_waiting(estate: Estate, *arguments: str) -> dict[str, str]:
    """The reasons for which topics are left out of the plan for prod."""
    planned = estate.run("plan", *PROD, "--format", "json", *arguments, code=(0, 100)).out
    return {refusal["topic"].rpartition("/")[2]: refusal["reason"] for refusal in json.loads(planned)["left_out"]}


def without_registry(estate: Estate) -> None:
    """Make stage unreachable, as in a pipeline without its secret."""
    project = PROJECT.replace('"sqlite:.schemactl/stage.db"', '"http://127.0.0.1:9", token_env: NOT_THERE')
    estate.scratch.commit({"schemactl.yaml": project}, "Ask stage by its cluster's name")


def test_what_another_target_does_not_hold_is_left_out(estate: Estate) -> None:
    said = estate.run("plan", *PROD, code=100).out
    assert "  stage does not have Git's versions 0-1 yet: according to its registry\n" in said
    assert "  Fix: apply it to stage first.\n   or: `schemactl apply --target prod --skip shop/sales/orders`: " in said
    assert "left out: 2 topics." in said
    estate.run("apply", *STAGE, "--topic", "refunds", "--auto-approve")
    assert {*list_waiting(estate)} == {"orders"}
    estate.run("apply", *PROD, "--auto-approve", code=3)
    assert estate.read_versions() == ()
    estate.run("apply", *STAGE, "--auto-approve")
    assert list_waiting(estate) == {}
    estate.run("apply", *PROD, "--auto-approve")
    assert len(estate.read_versions()) == 2
    estate.commit_orders("id", note=0, tax=0)
    # Both are of one definition.
    assert {*list_waiting(estate).values()} == {"stage does not have Git's version 2 yet: according to its registry"}


def test_a_registry_that_gives_no_answer_is_known_by_the_named_result(staged_estate: Estate) -> None:
    without_registry(staged_estate)
    for named in (RESULTS, ("--results", ".schemactl/results"), ("--results", "plan.json", *RESULTS)):
        staged_estate.scratch.write({"plan.json": "{}"})
        assert list_waiting(staged_estate, *named) == {}
    staged_estate.commit_orders("id", note=0, tax=0)
    reason = list_waiting(staged_estate, *RESULTS)["orders"]
    assert reason.startswith("stage does not have Git's version 2 yet: according to the result of its last apply (20")
    assert "its registry did not respond (" in reason
    assert "NOT_THERE" in reason


def test_a_result_of_some_topics_speaks_of_these(estate: Estate) -> None:
    estate.run("apply", *STAGE, "--topic", "orders", "--auto-approve")
    without_registry(estate)
    assert {*list_waiting(estate, *RESULTS)} == {"refunds"}


def test_no_result_counts_that_is_not_named(staged_estate: Estate) -> None:
    without_registry(staged_estate)
    assert all(
        reason.endswith("(--results names no result of its last apply)")
        for reason in list_waiting(staged_estate).values()
    )
    assert {*list_waiting(staged_estate)} == {"orders", "refunds"}
    staged_estate.run("apply", *PROD, "--auto-approve", code=3)
    staged_estate.run("apply", *PROD, "--auto-approve", *RESULTS)
    assert len(staged_estate.read_versions()) == 2


def test_the_newest_of_several_results_counts(staged_estate: Estate) -> None:
    path = staged_estate.scratch.path / ".schemactl/results/stage.json"
    newest = json.loads(path.read_text())
    old = {**newest, "time_s": newest["time_s"] - 60, "left_out": [{"topic": "persistent://shop/stage/orders"}]}
    staged_estate.scratch.write({"old.json": json.dumps(old)})
    without_registry(staged_estate)
    assert {*list_waiting(staged_estate, "--results", "old.json")} == {"orders"}
    assert list_waiting(staged_estate, "--results", "old.json", *RESULTS) == {}
    assert list_waiting(staged_estate, *RESULTS, "--results", "old.json") == {}


@pytest.mark.parametrize("named", ["results/stage.json", "results", "link.json", "linked", "linked/stage.json"])
@pytest.mark.parametrize("state", ["committed", "staged", "committed, not in the index"])
def test_a_result_that_git_tracks_is_an_error(staged_estate: Estate, named: str, state: str) -> None:
    without_registry(staged_estate)
    text = (staged_estate.scratch.path / ".schemactl/results/stage.json").read_text()
    staged_estate.scratch.flush()
    staged_estate.scratch.write({"results/stage.json": text})
    (staged_estate.scratch.path / "link.json").symlink_to("results/stage.json")
    (staged_estate.scratch.path / "linked").symlink_to("results")
    staged_estate.scratch.git("add", "results")
    if state != "staged":
        staged_estate.scratch.configure_author()
        staged_estate.scratch.git("commit", "-q", "-m", "result")
    if "not in" in state:
        staged_estate.scratch.git("rm", "-q", "--cached", "-r", "results")
    message = "schemactl: --results: Git tracks "
    assert staged_estate.run("plan", *PROD, "--results", named, code=1).err.startswith(message)
    assert staged_estate.run("apply", *PROD, "--auto-approve", "--results", named, code=1).err.startswith(message)


def test_a_result_that_is_missing_is_an_error(estate: Estate) -> None:
    assert (
        "--results gone.json: no such file or folder" in estate.run("plan", *PROD, "--results", "gone.json", code=1).err
    )


@pytest.mark.parametrize("change", ["left out", "not done"])
def test_what_a_result_says_was_not_done_is_not_there(staged_estate: Estate, change: str) -> None:
    without_registry(staged_estate)
    path = staged_estate.scratch.path / ".schemactl/results/stage.json"
    result = json.loads(path.read_text())
    [*_, last] = [at for at, step in enumerate(result["steps"], 1) if step.get("topic", "").endswith("orders")]
    if change == "not done":
        result["done"].remove(last)
    else:
        result["left_out"].append({"topic": "persistent://shop/stage/orders"})
    path.write_text(json.dumps(result))
    assert {*list_waiting(staged_estate, *RESULTS)} == {"orders"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "(there is no "),
        ("{", "is not the result of an apply to stage"),
        ('{"target": "prod"}', "it was written for the target prod"),
        (json.dumps(RESULT), "'done'"),
        (
            json.dumps({**RESULT, "done": [], "steps": [], "left_out": [], "whole": True}),
            "this repository has no ref or commit 'aaa",
        ),
    ],
)
def test_without_a_result_nothing_is_there(staged_estate: Estate, text: str | None, reason: str) -> None:
    without_registry(staged_estate)
    path = staged_estate.scratch.path / ".schemactl/results/stage.json"
    path.unlink() if text is None else path.write_text(text)
    reasons = list_waiting(staged_estate, "--results", ".schemactl/results")
    assert all(reason in text for text in reasons.values())
    assert {*reasons} == {"orders", "refunds"}


def test_a_plan_file_does_not_go_past_it(staged_estate: Estate) -> None:
    staged_estate.run("plan", *PROD, "--out", "plan.json")
    (staged_estate.scratch.path / ".schemactl/stage.db").unlink()
    printed = staged_estate.run("apply", "plan.json", code=4)
    assert f"+! {ORDERS}\n+  " in printed.out
    assert "stage does not have Git's versions 0-1 yet: according to its registry" in printed.out
    assert staged_estate.read_versions() == ()


def test_what_another_target_never_has_is_not_awaited(estate: Estate) -> None:
    project = PROJECT.replace("shop/stage}", "shop/stage}, exclude: [refunds]")
    estate.scratch.commit({"schemactl.yaml": project})
    assert {*list_waiting(estate)} == {"orders"}


def test_a_mapping_left_out_elsewhere_is_one_error(estate: Estate) -> None:
    project = PROJECT.replace("{shop/sales: shop/stage}", "{shop/web: shop/stage}")
    estate.scratch.commit({"schemactl.yaml": project})
    said = estate.run("plan", *PROD, code=1).err
    assert said.startswith(
        "schemactl: target stage: neither its `tenants` nor its `namespaces` have a name for shop/sales"
    )


@pytest.mark.parametrize("named", [(), PROD])
def test_status_counts_what_waits_by_itself(estate: Estate, named: tuple[str, ...]) -> None:
    def read_prod(*more: str) -> Any:
        document = json.loads(estate.run("status", "--format", "json", *named, *more, code=(0, 1)).out)
        return next(target for target in document["targets"] if target["target"] == "prod")

    for target in (STAGE, PROD):
        estate.run("apply", *target, "--auto-approve")
    estate.commit_orders("id", note=0, tax=0)
    estate.run("apply", *STAGE, "--topic", "refunds", "--auto-approve")
    document = read_prod()
    assert (document["pending"]["versions"], document["rejected"], document["waiting"]) == (1, 0, {"stage": 1})
    assert "\n  waiting for stage: 1 topic\n" in estate.run("status", *named).out
    metrics = estate.run("status", "--format", "prometheus", *named).out
    assert 'schemactl_waiting_topics{target="prod"} 1\n' in metrics
    without_registry(estate)
    assert read_prod()["waiting"] == {"stage": 2}
    assert read_prod("--results", ".schemactl/results")["waiting"] == {"stage": 1}


def test_what_a_target_holds_that_gave_status_no_answer_the_named_result_says(staged_estate: Estate) -> None:
    (staged_estate.scratch.path / ".schemactl/stage.db").write_bytes(b"no database" * 100)
    assert "waiting for stage: 2 topics" in staged_estate.run("status", code=1).out
    said = staged_estate.run("status", "--results", ".schemactl/results", code=1).out
    assert re.search(r"\nprod +2 +0 +4 ", said)
    assert "waiting" not in said
