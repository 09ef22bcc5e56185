"""`schemactl rebuild`: a registry that lost its schemas gets them back under the numbers they had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate, avro

from schemactl.model import CompatibilityStrategy, NamespaceName, Policies, SchemaInfo, SchemaType, TopicName

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """Git's versions 0 to 2 are the registry's 3, 4 and 6: a tombstone took 2, and somebody else's is 5."""
    found = Estate(tmp_path / "shop")
    found.orders("id", note=0)
    assert found.run("apply", "--auto-approve") == 0
    found.put(None)
    assert found.run("apply", "--auto-approve") == 3
    assert found.put(avro("id", note=0, theirs=0)) == [5]
    assert found.accept() == 0
    found.orders("id", note=0, city=0)
    assert found.run("apply", "--auto-approve", "--result", "result.json") == 0
    return found


@pytest.fixture
def numbers(estate: Estate, capsys: pytest.CaptureFixture[str]) -> Any:
    """The numbers as `drift` tells them, in a file."""

    def keep(name: str = "numbers.json", *arguments: str) -> str:
        capsys.readouterr()
        assert estate.run("drift", "--format", "json", *arguments) in (0, 100)
        (estate.scratch.path / name).write_text(capsys.readouterr().out)
        return name

    return keep


def lose(estate: Estate, *names: TopicName) -> None:
    """The cluster lost everything; somebody's namespaces are there again."""
    path = estate.scratch.path / ".schemactl/registry.db"
    for file in path.parent.glob("registry.db*"):
        file.unlink()
    with estate.registry() as registry:
        for name in names:
            registry.create_namespace(name.namespace_name)


@pytest.mark.parametrize("source", ["drift", "apply"])
def test_the_numbers_come_back_from_what_was_kept(
    estate: Estate, numbers: Any, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = estate.held()
    file = numbers() if source == "drift" else "result.json"
    lose(estate)
    capsys.readouterr()
    assert estate.run("rebuild", file, "--auto-approve") == 0
    out = capsys.readouterr().out
    assert "v2: a tombstone takes it, as no version can be read there" in out
    assert f"Numbers of {ORDERS}: as {file} has them" in out
    after = estate.held()
    assert after[:3] == [None, None, None]
    assert after[3:] == before[3:]
    assert len(after) == 7
    assert estate.run("rebuild", file, "--auto-approve") == 0
    assert "No changes." in capsys.readouterr().out
    assert estate.run("plan", "--detailed-exitcode") == 0


def test_from_git_alone_the_numbers_are_gits_and_that_is_said(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    estate.scratch.commit({"numbers/local.yaml": None})
    lose(estate)
    capsys.readouterr()
    assert estate.run("rebuild", "--auto-approve") == 0
    out = capsys.readouterr().out
    assert "They are correct if nothing but `apply` ever wrote there." in out
    assert estate.held() == [avro("id"), avro("id", note=0), avro("id", note=0, city=0)]


def test_from_git_alone_a_topic_that_was_away_for_a_time_is_refused(
    estate: Estate, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (estate.scratch.path / "namespaces/orders.yaml").read_text()
    estate.scratch.commit({"namespaces/orders.yaml": None})
    assert estate.run("apply", "--auto-approve", "--allow-delete", "orders") == 0
    estate.scratch.commit({"namespaces/orders.yaml": text})
    assert estate.run("apply", "--auto-approve") == 3
    assert estate.accept() == 0
    file, before = numbers(), estate.held()
    estate.scratch.commit({"numbers/local.yaml": None})
    lose(estate)
    capsys.readouterr()
    assert estate.run("rebuild", "--auto-approve") == 100
    assert "Git declared no schema for the topic for a time" in capsys.readouterr().out
    assert estate.held() == []
    assert estate.run("rebuild", file, "--auto-approve") == 3
    assert estate.held()[8:] == before[8:]


def test_without_a_list_the_recorded_numbers_come_back(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    before = estate.held()
    estate.orders("id", note=0, city=0, street=0)
    lose(estate)
    capsys.readouterr()
    assert estate.run("rebuild", "--auto-approve") == 0
    told = f"Numbers of {ORDERS}: as the record numbers/local.yaml has them"
    assert told in capsys.readouterr().out
    assert estate.held() == [None, None, None, *before[3:], avro("id", note=0, city=0, street=0)]
    assert estate.run("rebuild", "--auto-approve") == 0
    assert "No changes." in capsys.readouterr().out
    assert estate.run("plan", "--detailed-exitcode") == 0
    assert estate.run("drift", "--detailed-exitcode") == 0


def test_a_plan_of_the_recorded_numbers_is_carried_out_from_its_file(estate: Estate) -> None:
    before = estate.held()
    lose(estate)
    assert estate.run("rebuild", "--out", "plan.json") == 0
    assert estate.held() == []
    assert estate.run("apply", "plan.json", "--auto-approve") == 0
    assert estate.held() == [None, None, None, *before[3:]]


def test_after_a_loss_the_advice_of_drift_leads_to_the_recorded_numbers(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything is lost; or the topic's schema alone, as after a deletion by force."""
    before = [None, None, None, *estate.held()[3:]]
    for everything in (True, False):
        lose(estate)
        if not everything:
            with estate.registry() as registry:
                registry.create_namespace(SALES)
                registry.create_topic(ORDERS, None)
        capsys.readouterr()
        assert estate.run("drift", "--detailed-exitcode") == 2
        out = capsys.readouterr().out
        assert "schemactl rebuild --target local" in out
        assert "schemactl apply" not in out
        assert everything or "the registry does not have the recorded numbers 0-5" in out
        # Git's own numbers would contradict the record.
        assert estate.run("plan") == 100
        assert estate.run("rebuild", "--target", "local", "--auto-approve") == 0
        assert estate.held() == before
        assert estate.run("drift", "--detailed-exitcode") == 0


def test_a_recorded_number_that_is_lost_is_told_though_git_has_no_version_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list ends before a foreign number that was recorded: what is approved next would take it."""
    estate = Estate(tmp_path / "other")
    assert estate.run("apply", "--auto-approve") == 0
    estate.put(avro("id", theirs=0))
    assert estate.accept() == 0
    before = estate.held()
    lose(estate, ORDERS)
    estate.put(avro("id"))
    capsys.readouterr()
    assert estate.run("drift", "--detailed-exitcode") == 2
    assert "the registry does not have the recorded number 1" in capsys.readouterr().out
    assert estate.run("rebuild", "--auto-approve") == 0
    assert estate.held() == before


def test_what_was_approved_since_follows(estate: Estate, numbers: Any) -> None:
    file = numbers()
    estate.orders("id", note=0, city=0, street=0)
    lose(estate)
    assert estate.run("rebuild", file, "--auto-approve", "--result", "again.json") == 0
    assert estate.held()[7] == avro("id", note=0, city=0, street=0)
    [topic] = estate.json("again.json")["topics"]
    assert [(each["registry"], each["git"]) for each in topic["versions"] if each["state"] == "readable"] == [
        (3, 0),
        (4, 1),
        (5, None),
        (6, 2),
        (7, 3),
    ]


def test_other_contents_in_the_way_are_refused_and_deleted_only_on_demand(
    estate: Estate, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file, before = numbers(), estate.held()
    lose(estate, ORDERS)
    assert estate.put(avro("id", note=0)) == [0]  # a producer was faster
    capsys.readouterr()
    assert estate.run("rebuild", file, "--auto-approve") == 100
    out = capsys.readouterr().out
    assert "the registry holds version 0 now, with other contents than it had" in out
    assert "--force-delete shop/sales/orders" in out
    assert estate.held() == [avro("id", note=0)]
    assert estate.run("rebuild", file, "--auto-approve", "--force-delete", "orders") == 0
    assert estate.held()[3:] == before[3:]
    assert estate.run("rebuild", file, "--force-delete", "orderz") == 64
    assert estate.run("rebuild", file, "--force-delete", "orders", "--namespace", "shop/none") == 64


def test_topics_that_lost_nothing_do_not_stand_in_the_way(
    estate: Estate, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Since the list was kept one was written to, one was deleted and written again, one deleted; numbers are apart."""
    gone, again, away = (TopicName("shop", "sales", name) for name in ("gone", "again", "away"))
    for name in (gone, again, away):
        text = f"topic: {name.schema_id}\nschema: {{type: STRING}}\n"
        estate.scratch.commit({f"namespaces/{name.topic}.yaml": text})
    assert estate.run("apply", "--auto-approve") == 0
    file = numbers()
    estate.put(avro("id", note=0, city=0, more=0))
    estate.put(None, SchemaInfo(SchemaType.INT8), topic=again)
    estate.put(None, topic=away)
    before = estate.held()
    with estate.registry() as registry:
        registry.delete_topic(gone)
    capsys.readouterr()
    assert estate.run("rebuild", file, "--auto-approve") == 3  # what was written since is not recorded
    assert f"! {ORDERS}: v7 is not known to Git\n" in capsys.readouterr().out
    assert (estate.held(), estate.held(gone)) == (before, [SchemaInfo(SchemaType.STRING)])
    assert estate.held(again)[1:3] == [None, SchemaInfo(SchemaType.INT8)]
    with estate.registry() as registry:
        registry.delete_topic(gone)
    assert estate.run("rebuild", "--auto-approve") == 100  # without a list, who knows what the other one was
    assert estate.run("rebuild", "--auto-approve", "--topic", "*/gone", "--topic", "*/orders") == 3
    assert (estate.held(), estate.held(gone)) == (before, [SchemaInfo(SchemaType.STRING)])


def test_too_many_tombstones_are_in_the_way(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.scratch.commit({"numbers/local.yaml": None})
    lose(estate, ORDERS)
    estate.put(None)
    capsys.readouterr()
    assert estate.run("rebuild") == 100
    assert "tombstones have taken the numbers 0 since" in capsys.readouterr().out


def test_a_strategy_that_would_refuse_an_old_version_stands_in_the_way(
    estate: Estate, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with estate.registry() as registry:
        registry.set_topic_policies(ORDERS, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    assert estate.put(avro("id", "needed"), avro("id", note=0, city=0, late=0)) == [7, 8]
    file, before = numbers(), estate.held()
    lose(estate)
    capsys.readouterr()
    assert estate.run("rebuild", file, "--auto-approve") == 100
    assert "--relax-while-replaying" in capsys.readouterr().out
    assert estate.run("rebuild", file, "--auto-approve", "--relax-while-replaying") == 3
    assert estate.held()[3:] == before[3:]
    with estate.registry() as registry:
        assert registry.relaxed(ORDERS) is None
        assert registry.strategy(ORDERS) is CompatibilityStrategy.BACKWARD


def test_what_git_never_declared_comes_back_where_the_file_has_it(estate: Estate, numbers: Any) -> None:
    probe = TopicName("lab", "tries", "probe")
    with estate.registry() as registry:
        registry.create_namespace(probe.namespace_name)
    estate.put(SchemaInfo(SchemaType.STRING), None, SchemaInfo(SchemaType.STRING), topic=probe)
    file = numbers("all.json", "--unmanaged")
    lose(estate)
    assert estate.run("rebuild", file, "--auto-approve") == 100  # nobody declares its namespace
    assert estate.run("rebuild", file, "--auto-approve", "--topic", "*/orders") == 0
    assert estate.held(probe) == []
    with estate.registry() as registry:
        registry.create_namespace(probe.namespace_name)
    assert estate.run("rebuild", file, "--auto-approve", "--topic", "*/probe") == 0
    assert estate.held(probe) == [None, None, SchemaInfo(SchemaType.STRING)]


def test_a_rebuild_can_be_reviewed_first(estate: Estate, numbers: Any) -> None:
    file, before = numbers(), estate.held()
    lose(estate)
    assert estate.run("rebuild", file, "--out", "plan.json") == 0
    assert estate.held() == []
    assert estate.run("apply", "plan.json") == 0
    assert estate.held()[3:] == before[3:]


@pytest.mark.parametrize("step", [1, 4, 6, 8])
def test_a_killed_rebuild_is_finished_by_the_next(estate: Estate, numbers: Any, step: int) -> None:
    """Killed with the first word of a step that was done: in the next one, or between two."""
    file, before = numbers(), estate.held()
    lose(estate)
    command = ["-C", str(estate.scratch.path), "rebuild", file, "--auto-approve"]
    with subprocess.Popen(
        [sys.executable, "-m", "schemactl", *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any(line.startswith(f"[{step}/10]") for line in process.stderr)
        process.kill()
    assert estate.held() != before
    assert estate.run("rebuild", file, "--auto-approve") == 0
    assert estate.held()[3:] == before[3:]


def test_a_rewritten_history_cannot_stand_for_what_was_kept(
    estate: Estate, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = numbers()
    lose(estate)
    estate.scratch.git("commit", "-q", "--amend", "-m", "Rewritten")
    assert estate.run("rebuild", file) == 1
    assert "v6 was Git's version 2 of commit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[]", "is not a file with version numbers"),
        ('{"format_version": 9, "target": "local", "topics": []}', "has format 9; this schemactl reads 1"),
        ('{"format_version": 1, "target": "prod", "topics": []}', "was written for the target prod"),
        ('{"format_version": 1, "target": "local", "topics": null}', "holds no numbers"),
        ('{"format_version": 1, "target": "local", "topics": [{}]}', "does not hold numbers as schemactl"),
    ],
)
def test_a_file_that_is_something_else_is_one_clear_error(
    estate: Estate, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate.scratch.path / "bad.json").write_text(text)
    assert estate.run("rebuild", "bad.json") == 1
    assert message in capsys.readouterr().err
    assert estate.run("rebuild", "missing.json") == 1


def test_numbers_out_of_order_are_refused(estate: Estate, numbers: Any) -> None:
    path = estate.scratch.path / numbers()
    told = json.loads(path.read_text())
    told["topics"][0]["versions"].reverse()
    path.write_text(json.dumps(told))
    assert estate.run("rebuild", path.name) == 1
