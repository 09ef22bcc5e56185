"""The records and messages of a running apply: its result file at any moment, the current steps, and its time limit."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from estate import ORDERS, Estate
from forks import Say, assert_killed, fork_process, kill_oneself
from scratch import record, write_declaration

from schemactl.cli import Context
from schemactl.cli.ready_plans import ApplyProgress
from schemactl.core.environment import get_ci_run
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo
from schemactl.deploy.steps.create_topic import CreateTopic
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

OWN = ".schemactl/results/local.json"
REFUNDS = TopicName("shop", "sales", "refunds")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Approve two topics, one with two versions, that are not applied."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.commit_orders("id", note=0)
    estate.scratch.commit(
        {
            "namespaces/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "namespaces/refunds.avsc": record("id"),
        }
    )
    return estate


def reject_version(shop: Estate) -> None:
    """Refunds has a version that its strategy rejects."""
    shop.scratch.commit({"namespaces/refunds.avsc": record("id", "needed")})


def list_done(result: dict[str, Any], action: str) -> list[str]:
    """The topics for which steps of that kind were carried out, as the file says."""
    steps = [result["steps"][number - 1] for number in result["done"]]
    return [step["topic"] for step in steps if step["action"] == action]


@pytest.mark.parametrize("last", range(1, 8))
@pytest.mark.parametrize(("parallel", "options"), [("1", ()), ("8", ("--result", "result.json"))], ids=["own", "named"])
def test_a_killed_apply_leaves_what_it_did(estate: Estate, last: int, parallel: str, options: tuple[str, ...]) -> None:
    estate.scratch.flush()

    def apply(_: Say) -> None:
        def die_at_last(_: Context, text: str) -> None:
            if text.startswith(f"[{last}/"):
                kill_oneself()

        Context.say = die_at_last  # type: ignore[method-assign, assignment]
        estate.run("apply", "--yes", "--parallel", parallel, *options)

    assert_killed(*fork_process(apply))
    result = estate.read_json(options[1] if options else OWN)
    assert (result["outcome"], result["left"]) == ("started", None)
    assert len(result["done"]) == last
    uploads = list_done(result, "register_version")
    for name in (ORDERS, REFUNDS):
        # Of another topic one step more can be done than anybody could write down.
        more = range(2 if parallel == "8" else 1)
        assert len(estate.read_definitions(name)) - uploads.count(str(name)) in more
    estate.run("apply", "--yes", *options)
    assert estate.read_json(options[1] if options else OWN)["outcome"] == "applied"


def test_the_targets_own_result_says_what_was_applied_by_whom(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("GITLAB_USER_LOGIN", "ada")
    monkeypatch.setenv("CI_JOB_URL", "https://git.shop.example/jobs/7")
    reject_version(estate)
    assert "left out: 1 topic" in estate.run("apply", "--yes", code=3).out
    result = estate.read_json(OWN)
    assert (result["target"], result["outcome"], result["topics"]) == ("local", "partly applied", None)
    assert result["approved"]["commit"]["id"] == estate.scratch.git("rev-parse", "HEAD")
    assert result["ci"] == {"server": "gitlab", "actor": "ada", "url": "https://git.shop.example/jobs/7"}
    assert [(item["topic"], item["version"]) for item in result["left_out"]] == [(str(REFUNDS), 1)]
    assert list_done(result, "register_version") == [str(ORDERS)] * 2


def test_an_own_result_that_cannot_be_written_stops_no_apply(estate: Estate) -> None:
    estate.scratch.write({".schemactl/results": "in the way"})
    err = estate.run("apply", "--yes").err
    assert "warning: the steps of this apply are not recorded: " in err
    assert f"{OWN} cannot be written" in err
    assert len(estate.read_definitions()) == 2


def test_the_record_goes_through_no_link_of_the_repository(estate: Estate, tmp_path: Path) -> None:
    estate.scratch.flush()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (estate.scratch.path / ".schemactl").symlink_to(elsewhere)
    estate.run("apply", "--yes", code=1)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTOR": "ada",
                "GITHUB_SERVER_URL": "https://github.example",
                "GITHUB_REPOSITORY": "shop/schemas",
                "GITHUB_RUN_ID": "7",
            },
            {"server": "github", "actor": "ada", "url": "https://github.example/shop/schemas/actions/runs/7"},
        ),
        (
            {
                "TF_BUILD": "True",
                "BUILD_REQUESTEDFOR": "Ada",
                "SYSTEM_COLLECTIONURI": "https://azure.example/shop/",
                "SYSTEM_TEAMPROJECT": "schemas",
                "BUILD_BUILDID": "7",
            },
            {"server": "azure", "actor": "Ada", "url": "https://azure.example/shop/schemas/_build/results?buildId=7"},
        ),
        ({"JENKINS_URL": "https://ci.example"}, {"server": "jenkins", "actor": "", "url": ""}),
    ],
)
def test_who_ran_it_is_what_the_build_server_says(environment: dict[str, str], expected: dict[str, str] | None) -> None:
    assert get_ci_run(environment) == expected


def test_a_plan_file_says_what_it_leaves_out_and_its_apply_ends_with_three(estate: Estate) -> None:
    reject_version(estate)
    printed = estate.run("plan", "--out", "plan.json", code=100)
    assert "To carry out exactly this: schemactl apply plan.json" in printed.err
    plan = estate.read_json("plan.json")
    assert [item["topic"] for item in plan["left_out"]] == [str(REFUNDS)]
    out = estate.run("apply", "plan.json", code=3).out
    assert f"Left out:\n  {REFUNDS}: Git's version 1 " in out
    assert (len(estate.read_definitions()), estate.read_definitions(REFUNDS)) == (2, [])


@pytest.mark.parametrize("option", [("--skip", "refunds"), ("--topic", "!refunds"), ("--skip", "*/ref*")])
def test_what_is_skipped_is_in_no_plan(estate: Estate, option: tuple[str, str]) -> None:
    reject_version(estate)
    estate.scratch.commit({"namespaces/empty.yaml": "namespace: shop/empty\n"})
    plan = json.loads(estate.run("plan", *option, "--out", "plan.json", "--format", "json").out)
    assert (plan["left_out"], str(REFUNDS) in plan["scope"]["topics"]) == ([], False)
    # A namespace without topics is not skipped with one.
    assert "shop/empty" in plan["scope"]["namespaces"]
    estate.run("apply", "plan.json", *option, code=64)
    estate.run("apply", "plan.json")
    assert (len(estate.read_definitions()), estate.read_definitions(REFUNDS)) == (2, [])
    assert "no topic of the approved history matches" in estate.run("plan", "--skip", "nothing", code=64).err


def test_a_summary_is_the_sums_and_what_is_left_out(estate: Estate) -> None:
    reject_version(estate)
    head, left_out, sums, digest = estate.run("plan", "--summary", code=100).out.splitlines()
    assert head.startswith("Plan for local ")
    assert left_out.startswith(f"! {REFUNDS}: Git's version 1 ")
    assert sums == "Plan: 1 namespace, 1 topic, 2 versions to register; left out: 1 topic."
    assert digest.startswith("Digest: ")
    estate.run("plan", "--summary", "--format", "json", code=64)


@pytest.mark.parametrize(("slow", "code"), [("put_schema", 3), ("read", 1)])
def test_the_time_for_an_apply_is_limited(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, slow: str, code: int
) -> None:
    estate.scratch.flush()
    method = getattr(EmbeddedRegistry, slow)
    over = Event()

    def wait_slowly(*arguments: Any) -> Any:
        over.wait(60)
        return method(*arguments)

    monkeypatch.setattr(EmbeddedRegistry, slow, wait_slowly)
    printed = estate.run("apply", "--yes", "--timeout", "4", code=code)
    over.set()
    assert "gave up after 4 s" in (printed.out if code == 3 else printed.err)
    if code == 3:
        result = estate.read_json(OWN)
        assert result["outcome"] == "partly applied"
        reasons = {step["reason"].partition(":")[0] for step in result["left"]}
        assert "not finished when the apply ended" in reasons
        assert all(reason.startswith(("not finished when", "gave up after 4 s")) for reason in reasons)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_step_that_takes_long_is_named_while_it_is_under_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    progress = ApplyProgress(40, Context("/"))
    for number in range(1, 11):
        progress.record_start(number, CreateTopic(ORDERS, None))
        progress.print_step(number, CreateTopic(ORDERS, None))
    progress.record_start(11, CreateTopic(REFUNDS, None))
    now_s += 0.1
    progress.record_start(12, CreateTopic(ORDERS, None))
    for _ in range(2):
        progress.tick()
    capsys.readouterr()
    now_s += 3
    for _ in range(2):
        progress.tick()
    assert capsys.readouterr().err.splitlines() == [
        f"running for 3 s: {REFUNDS}: create",
        f"running for 3 s: {ORDERS}: create",
    ]
    now_s += 7
    progress.tick()
    assert capsys.readouterr().err == (
        f"10 of 40 steps, 1.0 a second, about 30 s left; running: {REFUNDS}: create (and 1 more)\n"
    )


def test_a_terminal_shows_what_is_under_way(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.scratch.flush()
    put = EmbeddedRegistry.put_schema

    def wait_slowly(self: EmbeddedRegistry, topic: TopicName, info: SchemaInfo) -> int:
        time.sleep(0.5)
        return put(self, topic, info)

    def apply(_: Say) -> None:
        from schemactl.cli import main

        EmbeddedRegistry.put_schema = wait_slowly  # type: ignore[method-assign]
        os._exit(main(["-C", str(estate.scratch.path), "apply", "--yes"]))

    ours, theirs = os.openpty()
    before = os.dup(2)
    os.dup2(theirs, 2)
    monkeypatch.setattr("sys.stderr", open(2, "w", closefd=False))  # noqa: SIM115  a terminal
    try:
        process, said = fork_process(apply)
    finally:
        os.dup2(before, 2)
        os.close(theirs)
    output = b""
    with said:
        while b"[7/7]" not in output:
            output += os.read(ours, 1024)
        assert os.waitpid(process, 0)[1] == 0
    # Two topics are worked on side by side, and the step that began first is shown.
    under_way = rb"\r\x1b\[K[^\r]* [0-9] of 7 steps; running: persistent://shop/sales/[a-z]+: register v[01]"
    assert re.search(under_way, output)


def test_the_record_is_json_at_any_moment(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    path = estate.scratch.path / OWN
    seen: list[int] = []
    say = Context.say

    def read_progress(self: Context, text: str) -> None:
        if text.startswith("["):
            seen.append(len(json.loads(path.read_text())["done"]))
        say(self, text)

    monkeypatch.setattr(Context, "say", read_progress)
    estate.run("apply", "--yes")
    assert seen == list(range(1, len(seen) + 1))
