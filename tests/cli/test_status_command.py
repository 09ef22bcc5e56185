"""`schemactl status`: one row for each target, even if others fail, in three formats."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokers
import pytest
from estate import ORDERS, Estate, EstateOnPulsar, make_order_info
from scratch import record, write_declaration

from schemactl.core.names import NamespaceName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.deploy.drift_kinds import DriftKind

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
targets:
  local: {registry: "sqlite:.schemactl/registry.db"}
  empty: {registry: "sqlite:.schemactl/empty.db"}
"""
RUN = {"server": "github", "actor": "ada", "url": ""}


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Two versions, applied to `local`; nothing was applied to `empty`."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT)
    estate.commit_orders("id", note=0)
    estate.run("apply", "--target", "local", "--auto-approve")
    return estate


def read_status(estate: Estate, *arguments: str, code: int = 0) -> dict[str, Any]:
    return {status["target"]: status for status in estate.run_json("status", *arguments, code=code)["targets"]}


_LABELS = r'\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\}'
_SAMPLE = re.compile(rf"(schemactl_[a-z_]+)({_LABELS})? (\d+)")


def parse_metrics(text: str) -> dict[str, int]:
    """Return the samples of a Prometheus exposition, and assert that each metric has HELP and TYPE, once, before its samples."""
    samples: dict[str, int] = {}
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in names
            names.append(name)
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {names[-1]} gauge"
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == names[-1]
            key = (sample[1] + (sample[2] or "")).removeprefix("schemactl_")
            assert key not in samples
            samples[key] = int(sample[3])
    assert text.endswith("\n")
    return samples


def write_result(estate: Estate, **values: Any) -> None:
    """Write the result file of an apply to `local`."""
    result = {
        "target": "local",
        "outcome": "applied",
        "approved": {"ref": "main", "commit": {"id": "c" * 40}},
        "ci": RUN,
        "time_s": int(time.time()),
        **values,
    }
    path = estate.scratch.path / ".schemactl/results/local.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result))


def test_every_target_is_a_row(estate: Estate) -> None:
    statuses = read_status(estate)
    local, empty = statuses["local"], statuses["empty"]
    assert (local["topics"], local["versions"], local["pending"]) == (1, 2, {"versions": 0, "steps": 0})
    assert (empty["topics"], empty["versions"]) == (1, 0)
    assert empty["pending"]["versions"] == 2
    assert empty["drift"] == {}
    head, *rows = estate.run("status").out.partition("\n\n")[0].splitlines()
    assert head.split("  ")[0] == "TARGET"
    assert [row.split()[:5] for row in rows] == [["local", "1", "2", "0", "0"], ["empty", "1", "0", "2", "0"]]
    text = estate.run("status").out
    assert "\nempty:\n  pending: 2 versions, 3 other steps\n    Next: schemactl plan --target empty\n" in text
    assert "drift:" not in text
    assert "\nlocal:\n" not in text


def test_only_the_named_targets_are_asked(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*read_status(estate, "--target", "empty")] == ["empty"]
    assert [*read_status(estate, "--target", "empty", "--target", "local", "--target", "empty")] == ["empty", "local"]
    monkeypatch.setenv("SCHEMACTL_TARGET", "local")
    assert [*read_status(estate)] == ["local"]
    assert [*read_status(estate, "--target", "empty")] == ["empty"]
    error = estate.run("status", "--target", "local", "--target", "lokal", code=64).err
    assert "--target lokal: schemactl.yaml has local, empty; did you mean local?" in error


def test_what_differs_is_counted_by_kind(estate: Estate) -> None:
    estate.put(make_order_info("id", note=0, theirs=0))
    with estate.registry() as registry:
        registry.set_namespace_policies(NamespaceName("shop", "sales"), Policies(CompatibilityStrategy.FORWARD))
        registry.relax(ORDERS)
    status = read_status(estate, "--target", "local")["local"]
    assert status["drift"] == {"foreign version": 1, "numbers apart": 1, "policy": 1, "relaxed": 1, "updates off": 1}
    assert status["misread"] == 1
    text = estate.run("status", "--target", "local").out
    assert "  messages of 1 topic would be misread\n" in text
    samples = parse_metrics(estate.run("status", "--target", "local", "--format", "prometheus").out)
    assert samples['drift_differences{target="local",kind="relaxed"}'] == 1
    assert samples['misread_topics{target="local"}'] == 1
    kinds = [key for key in samples if key.startswith("drift_differences")]
    assert len(kinds) == len(DriftKind)


def set_strategy(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.set_namespace_policies(NamespaceName("shop", "sales"), Policies(CompatibilityStrategy.FORWARD))


def delete_topic(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.delete_topic(ORDERS)


def relax(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.relax(ORDERS)


def turn_updates_off(estate: Estate) -> None:
    relax(estate)
    with estate.registry() as registry:
        registry.set_topic_policies(ORDERS, Policies(CompatibilityStrategy.UNDEFINED))


def approve_version(estate: Estate) -> None:
    estate.commit_orders("id", note=0, city=0)


def approve_partitions(estate: Estate) -> None:
    declaration = write_declaration("shop/sales/parts", "orders.avsc", "partitions: 3\n")
    estate.scratch.commit({"namespaces/parts.yaml": declaration}, "Declare parts")


def approve_policy(estate: Estate) -> None:
    text = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"
    estate.scratch.commit({"namespaces/sales.yaml": text}, "Another strategy")


@pytest.mark.parametrize(
    ("drift", "approval", "pending", "repairs", "kinds"),
    [
        (None, None, (0, 0), 0, {}),
        (None, approve_version, (1, 1), 0, {}),
        (None, approve_partitions, (1, 2), 0, {}),
        (None, approve_policy, (0, 1), 0, {}),
        (set_strategy, None, (0, 0), 1, {"policy": 1}),
        (set_strategy, approve_version, (1, 1), 1, {"policy": 1}),
        (relax, None, (0, 0), 1, {"relaxed": 1, "updates off": 1}),
        (relax, approve_version, (1, 1), 1, {"relaxed": 1, "updates off": 1}),
        (turn_updates_off, None, (0, 0), 1, {"updates off": 1}),
        (turn_updates_off, approve_version, (1, 1), 1, {"updates off": 1}),
        (delete_topic, None, (0, 0), 3, {"topic missing": 1}),
        (delete_topic, approve_partitions, (1, 2), 3, {"topic missing": 1}),
    ],
)
def test_pending_and_drift_are_two_numbers(
    estate: Estate,
    drift: Callable[[Estate], None] | None,
    approval: Callable[[Estate], None] | None,
    pending: tuple[int, int],
    repairs: int,
    kinds: dict[str, int],
) -> None:
    for change in (drift, approval):
        if change:
            change(estate)
    status = read_status(estate, "--target", "local")["local"]
    assert (status["pending"]["versions"], status["pending"]["steps"]) == pending
    assert (status["repairs"], status["drift"]) == (repairs, kinds)
    samples = parse_metrics(estate.run("status", "--target", "local", "--format", "prometheus").out)
    assert samples['pending_steps{target="local"}'] == pending[1]
    assert samples['repair_steps{target="local"}'] == repairs
    alerts = sum(count for sample, count in samples.items() if sample.startswith("drift_differences"))
    assert alerts == sum(kinds.values())
    document = estate.run_json("drift", "--target", "local", code=(0, 100))
    assert bool(document["differences"]) == bool(kinds)
    assert bool(document["pending"]) == bool(pending[1])
    estate.run("drift", "--target", "local", "--detailed-exitcode", code=2 if kinds else 0)
    estate.run("status", "--target", "local", "--detailed-exitcode", code=2 if kinds or approval else 0)


def test_a_setting_that_could_lose_messages_is_not_counted_as_a_topic(estate: Estate) -> None:
    text = "namespace: shop/sales\nmessage_ttl_in_seconds: 60\n"
    estate.scratch.commit({"namespaces/sales.yaml": text}, "Messages expire")
    out = estate.run("status", "--target", "local").out
    assert "  rejected: everything, for 1 setting that could lose messages\n" in out
    plan = estate.run("plan", "--target", "local", code=100).out
    assert "left out: everything, for 1 setting that could lose messages." in plan
    assert read_status(estate, "--target", "local")["local"]["rejected"] == 1


def test_what_is_accepted_is_no_drift(estate: Estate) -> None:
    estate.put(make_order_info("id", note=0, theirs=0))
    estate.accept("--target", "local")
    status = read_status(estate, "--target", "local", "--detailed-exitcode")["local"]
    assert (status["drift"], status["accepted"]) == ({}, {"foreign version": 1})


def test_exit_codes(estate: Estate) -> None:
    assert estate.run("status").code == 0
    estate.run("status", "--target", "local", "--detailed-exitcode")
    estate.run("status", "--target", "empty", "--detailed-exitcode", code=2)


def test_a_target_that_does_not_answer_hides_no_other(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    dead = f'  dead: {{registry: "http://127.0.0.1:{port}"}}\n'
    estate = Estate(tmp_path / "shop", project=PROJECT + dead)
    estate.run("apply", "--target", "local", "--auto-approve")
    statuses = read_status(estate, "--target", "dead", "--target", "local", code=1)
    assert f"127.0.0.1:{port}" in statuses["dead"]["problem"]
    assert statuses["local"]["pending"]["versions"] == 0
    text = estate.run("status", "--target", "dead", "--target", "local", code=1).out
    assert re.search(r"\ndead +- +.* unknown: it did not respond\nlocal +1 ", text)
    assert f"\ndead:\n  http://127.0.0.1:{port}" in text
    arguments = ("status", "--target", "dead", "--target", "local", "--format", "prometheus=out.prom")
    estate.run(*arguments, code=1)
    samples = parse_metrics((estate.scratch.path / "out.prom").read_text())
    assert (samples['target_up{target="dead"}'], samples['target_up{target="local"}']) == (0, 1)
    assert [key for key in samples if '"dead"' in key] == ['target_up{target="dead"}']


def test_an_error_replaces_the_report_of_an_earlier_run(estate: Estate) -> None:
    arguments = ("status", "--target", "local", "--format", "json=out.json", "--format", "prometheus=out.prom")
    estate.run(*arguments)
    estate.scratch.write({"schemactl.yaml": "version: 2\n"})
    message = estate.run(*arguments, code=1).err
    [status] = json.loads((estate.scratch.path / "out.json").read_text())["targets"]
    assert status["target"] == "local"
    assert status["problem"] in message
    assert parse_metrics((estate.scratch.path / "out.prom").read_text())['target_up{target="local"}'] == 0


def test_the_last_apply_is_what_its_result_file_tells(estate: Estate) -> None:
    write_result(estate)
    last_apply = read_status(estate, "--target", "local")["local"]["last_apply"]
    assert (last_apply["outcome"], last_apply["commit"], last_apply["actor"]) == ("applied", "c" * 40, "ada (github)")
    assert re.search(r"applied, c{9}, [-0-9]{10} [:0-9]{8}, by ada \(github\)", estate.run("status").out)
    samples = parse_metrics(estate.run("status", "--target", "local", "--format", "prometheus").out)
    commit = "c" * 40
    assert samples[f'last_apply_info{{target="local",outcome="applied",commit="{commit}",actor="ada (github)"}}'] == 1
    elsewhere = estate.scratch.path / "results"
    (estate.scratch.path / ".schemactl/results").rename(elsewhere)
    assert read_status(estate, "--results", "results")["local"]["last_apply"] == last_apply


def test_an_apply_is_the_last_one(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_ACTOR", "ada")
    estate.commit_orders("id", note=0, city=0)
    (estate.scratch.path / "results").mkdir()
    estate.run("apply", "--target", "local", "--auto-approve", "--result", "results/local.json")
    last_apply = read_status(estate, "--target", "local", "--results", "results")["local"]["last_apply"]
    tip = estate.scratch.git("rev-parse", "main").strip()
    assert (last_apply["outcome"], last_apply["commit"], last_apply["actor"]) == ("applied", tip, "ada (github)")
    assert abs(last_apply["time_s"] - time.time()) < 60
    # Without --result, the file has the target's name, even if there was nothing to apply.
    estate.run("apply", "--target", "local", "--auto-approve")
    assert read_status(estate, "--target", "local")["local"]["last_apply"]["commit"] == tip


def test_the_file_of_result_is_advised_and_counts(estate: Estate) -> None:
    estate.run("status")
    for path in estate.scratch.path.glob(".schemactl/results/*"):
        path.unlink()
    estate.commit_orders("id", note=0, city=0)
    estate.run("apply", "--target", "local", "--auto-approve", "--result", "local-result.json")
    text = estate.run("status").out
    assert text.count("name it: schemactl status --results FILE") == 1
    assert "\nlocal:\n  last apply: " in text
    tip = estate.scratch.git("rev-parse", "main").strip()
    estate.run("apply", "--target", "empty", "--auto-approve", "--result", "empty-result.json")
    arguments = ("--results", "local-result.json", "--results", "empty-result.json")
    statuses = read_status(estate, *arguments)
    assert [status["last_apply"]["commit"] for status in statuses.values()] == [tip, tip]
    printed = estate.run("status", *arguments)
    assert "--results FILE" not in printed.out
    assert printed.err == ""
    # Of several results of a target, the newest counts.
    estate.run("apply", "--target", "local", "--auto-approve", "--result", "later.json")
    later = json.loads((estate.scratch.path / "later.json").read_text())
    newest = read_status(estate, "--results", "later.json", *arguments)["local"]["last_apply"]
    assert newest["time_s"] == later["time_s"]


@pytest.mark.parametrize("text", ["{", "[]", '{"target": 3}'])
def test_a_wrong_file_of_results_is_named(estate: Estate, text: str) -> None:
    estate.scratch.flush()
    (estate.scratch.path / "wrong.json").write_text(text)
    printed = estate.run("status", "--target", "local", "--results", "wrong.json")
    assert "wrong.json is not the result of an apply to local" in printed.err


def test_without_a_file_the_registry_tells_of_the_last_upload_alone(estate: Estate) -> None:
    estate.run("status")
    for path in estate.scratch.path.glob(".schemactl/results/*"):
        path.unlink()
    status = read_status(estate, "--target", "local")["local"]
    assert status["last_apply"] is None
    assert status["last_upload"]["commit"] == estate.scratch.id(2)
    assert f"unknown; uploaded {estate.scratch.id(2)[:9]}, " in estate.run("status", "--target", "local").out
    assert read_status(estate, "--target", "empty")["empty"]["last_upload"] is None


def test_a_file_that_is_older_than_the_last_upload_tells_nothing(estate: Estate) -> None:
    write_result(estate, time_s=int(time.time()) - 3600)
    assert read_status(estate, "--target", "local")["local"]["last_apply"] is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"target": "empty"}', '{"target": "local", "approved": 3}'])
def test_another_file_is_named_and_tells_nothing(estate: Estate, text: str) -> None:
    write_result(estate)
    (estate.scratch.path / ".schemactl/results/local.json").write_text(text)
    printed = estate.run("status", "--target", "local", "--format", "json")
    assert "local.json is not the result of an apply to local: " in printed.err
    assert json.loads(printed.out)["targets"][0]["last_apply"] is None


def test_names_from_elsewhere_break_no_line(estate: Estate) -> None:
    write_result(estate, ci={"server": "x", "actor": 'a"b\\c\nd\x9b##[e]', "url": ""})
    text = estate.run("status", "--target", "local", "--format", "prometheus").out
    [name] = [key for key in parse_metrics(text) if key.startswith("last_apply_info")]
    assert r'actor="a\"b\\c\\nd\\u009b#\\u0023[e] (x)"' in name
    assert 'a"b\\c\\nd\\u009b#\\u0023[e] (x)' in estate.run("status").out


def test_a_file_is_replaced_whole_and_others_may_read_it(estate: Estate) -> None:
    path = estate.scratch.path / "metrics/schemactl.prom"
    formats = ("--format", "text", "--format", f"prometheus={path}", "--format", "json=status.json")
    before = os.umask(0o022)
    try:
        printed = estate.run("status", *formats)
        path.write_text("torn")
        first = path.stat().st_ino
        estate.run("status", *formats)
    finally:
        os.umask(before)
    assert printed.out.startswith("TARGET ")
    assert path.stat().st_ino != first
    assert path.stat().st_mode & 0o777 == 0o644
    assert parse_metrics(path.read_text())['target_up{target="local"}'] == 1
    assert [*path.parent.iterdir()] == [path]
    assert json.loads((estate.scratch.path / "status.json").read_text())["format_version"] == 1
    assert "expected one of text, json, prometheus" in estate.run("status", "--format", "xml", code=64).err


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_a_broker_is_asked(tmp_path: Path, release: str) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(release))
    assert read_status(estate)["local"]["pending"]["versions"] == 1
    estate.run("apply", "--auto-approve")
    estate.put(make_order_info("id", theirs=0))
    status = read_status(estate, "--detailed-exitcode", code=2)["local"]
    assert (status["topics"], status["versions"], status["pulsar"]) == (1, 2, release)
    assert status["drift"] == {"foreign version": 1, "numbers apart": 1}
    assert status["last_upload"]["commit"] == estate.scratch.id(1)


def test_the_versions_of_a_topic_are_side_by_side(tmp_path: Path) -> None:
    """`refunds` is the same everywhere; of `orders` one registry has another's version, and one is at an older position.

    One target never has `carts`.
    """
    project = PROJECT.replace('.db"}', '.db", exclude: [carts]}', 1)
    project += '  back: {registry: "sqlite:.schemactl/back.db", promoted: promoted/back}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.commit(
        {
            "namespaces/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "namespaces/refunds.avsc": record("id"),
            "namespaces/carts.yaml": "topic: shop/sales/carts\nschema: {type: STRING}\n",
        }
    )
    estate.scratch.git("branch", "promoted/back")
    estate.run("apply", "--target", "local", "--auto-approve")
    estate.put(make_order_info("id", theirs=0))
    estate.commit_orders("id", note=0)
    for target in ("local", "back", "empty"):
        estate.run("apply", "--target", target, "--auto-approve", code=(0, 3, 100))
    estate.commit_orders("id", note=0, tax=0)
    text = estate.run("status").out
    rows = [line.split() for line in text.partition("TOPIC  ")[2].splitlines()]
    assert rows[0] == ["GIT", "local", "empty", "back"]
    assert rows[1] == ["shop/sales/orders", "v2", "v1", "as", "v2", "v1", "v0"]
    assert rows[2] == ["2", "other", "topics,", "as", "in", "Git", "everywhere", "(--all-topics)"]
    assert "\nback:\n  not promoted: 2 versions of 2 later commits\n" in text
    everything = estate.run("status", "--all-topics").out
    assert re.search(r"\nshop/sales/carts    v0             v0     v0\n", everything)
    assert everything.endswith("shop/sales/refunds  v0   v0        v0     v0\n")
    document = estate.run_json("status")
    [carts, orders, refunds] = document["topics"]
    assert orders == {
        "topic": str(ORDERS),
        "approved": 2,
        "targets": {
            "local": {"registry": 2, "git": 1},
            "empty": {"registry": 1, "git": 1},
            "back": {"registry": 0, "git": 0},
        },
    }
    assert refunds["targets"]["empty"] == {"registry": 0, "git": 0}
    assert {*carts["targets"]} == {"empty", "back"}
    samples = parse_metrics(estate.run("status", "--format", "prometheus").out)
    assert samples['unpromoted_versions{target="back"}'] == 2
    assert samples['unpromoted_versions{target="local"}'] == 0


@pytest.mark.parametrize(
    ("files", "topic", "place"),
    [
        ({"namespaces/orders.avsc": "{"}, str(ORDERS), "namespaces/orders.avsc:1:2"),
        (
            {"namespaces/lost.yaml": write_declaration("shop/sales/lost", "nope.avsc")},
            "persistent://shop/sales/lost",
            "namespaces/lost.yaml:",
        ),
        ({"namespaces/file.yaml": "topic: ["}, None, "namespaces/file.yaml:1:"),
    ],
    ids=["definition", "missing file", "whole file"],
)
def test_what_cannot_be_read_of_the_approved_line_is_in_every_report(
    tmp_path: Path, files: dict[str, str], topic: str | None, place: str
) -> None:
    estate = Estate(tmp_path / "shop", project=PROJECT)
    estate.commit_orders("id")
    estate.run("apply", "--target", "local", "--auto-approve")
    estate.scratch.commit(files)
    for command in ("plan", "drift", "status"):
        arguments = (command, "--target", "local")
        code = 100 if command == "plan" else 0
        assert place in estate.run("--quiet", *arguments, code=code).out
        document = estate.run_json("--quiet", *arguments, code=code)
        (unreadable,) = document["targets"][0]["unreadable"] if command == "status" else document["unreadable"]
        assert (unreadable["topic"], unreadable["file"]) == (topic, place.partition(":")[0])
        if command == "plan":
            assert [entry["topic"] for entry in document["left_out"]] == [topic]
    metrics = parse_metrics(estate.run("status", "--target", "local", "--format", "prometheus").out)
    assert metrics['declarations_unreadable{target="local"}'] == 1
    estate.run("apply", "--target", "local", "--auto-approve", code=100)
    # The rest is applied, and a selection without the broken declaration is whole.
    estate.scratch.commit({"namespaces/notes.yaml": "topic: shop/sales/notes\nschema: {type: STRING}\n"})
    assert "unreadable declaration" in estate.run("apply", "--target", "local", "--auto-approve", code=3).out
    estate.run("plan", "--target", "local", "--topic", "notes", "--detailed-exitcode")


def test_a_result_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=PROJECT)
    estate.run("apply", "--target", "local", "--auto-approve")
    (tmp_path / "shop/.schemactl/results/local.json").write_text("{")
    for command in ("status", "drift"):
        assert estate.run(command, "--target", "local").err.count("warning: ") == 1
