"""`schemactl rebuild`: a registry that lost its schemas gets them back under the numbers they had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate, make_order_info

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply Git's versions 0 to 2 as the registry's 3, 4 and 6: a tombstone took 2, and a foreign version took 5."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.commit_orders("id", note=0)
    estate.run("apply", "--auto-approve")
    estate.put(None)
    estate.run("apply", "--auto-approve", code=3)
    assert estate.put(make_order_info("id", note=0, theirs=0)) == [5]
    estate.accept()
    estate.commit_orders("id", note=0, city=0)
    estate.run("apply", "--auto-approve", "--result", "result.json")
    return estate


@pytest.fixture
def export_numbers(estate: Estate) -> Any:
    """The numbers as `drift` tells them, in a file."""

    def keep(name: str = "numbers.json", *arguments: str) -> str:
        (estate.scratch.path / name).write_text(estate.run("drift", "--format", "json", *arguments, code=(0, 100)).out)
        return name

    return keep


def lose_topics(estate: Estate, *names: TopicName) -> None:
    """Make the cluster lose everything, and create the namespaces again."""
    path = estate.scratch.path / ".schemactl/registry.db"
    for file in path.parent.glob("registry.db*"):
        file.unlink()
    with estate.registry() as registry:
        for name in names:
            registry.create_namespace(name.namespace_name)


@pytest.mark.parametrize("source", ["drift", "apply"])
def test_the_numbers_come_back_from_what_was_kept(estate: Estate, export_numbers: Any, source: str) -> None:
    before = estate.read_definitions()
    file = export_numbers() if source == "drift" else "result.json"
    lose_topics(estate)
    out = estate.run("rebuild", file, "--auto-approve").out
    assert "v2: filled with a tombstone, because no version with this number can be read" in out
    assert f"Numbers of {ORDERS}: taken from {file}; " in out
    after = estate.read_definitions()
    assert after[:3] == [None, None, None]
    assert after[3:] == before[3:]
    assert len(after) == 7
    assert "No changes." in estate.run("rebuild", file, "--auto-approve").out
    estate.run("plan", "--detailed-exitcode")


def test_from_git_alone_the_numbers_are_gits_and_that_is_said(estate: Estate) -> None:
    estate.scratch.commit({"numbers/local.yaml": None})
    lose_topics(estate)
    out = estate.run("rebuild", "--auto-approve").out
    assert "They are correct if only `apply` ever wrote there." in out
    assert estate.read_definitions() == [
        make_order_info("id"),
        make_order_info("id", note=0),
        make_order_info("id", note=0, city=0),
    ]


def test_from_git_alone_a_topic_that_was_away_for_a_time_is_refused(estate: Estate, export_numbers: Any) -> None:
    text = (estate.scratch.path / "namespaces/orders.yaml").read_text()
    estate.scratch.commit({"namespaces/orders.yaml": None})
    estate.run("apply", "--auto-approve", "--allow-delete", "orders")
    estate.scratch.commit({"namespaces/orders.yaml": text})
    estate.run("apply", "--auto-approve", code=3)
    estate.accept()
    file, before = export_numbers(), estate.read_definitions()
    estate.scratch.commit({"numbers/local.yaml": None})
    lose_topics(estate)
    out = estate.run("rebuild", "--auto-approve", code=3).out
    assert "Git declared no schema for the topic for a time" in out
    assert estate.read_definitions() == []
    estate.run("rebuild", file, "--auto-approve", code=3)
    assert estate.read_definitions()[8:] == before[8:]


def test_without_a_list_the_recorded_numbers_come_back(estate: Estate) -> None:
    before = estate.read_definitions()
    estate.commit_orders("id", note=0, city=0, street=0)
    lose_topics(estate)
    printed = estate.run("rebuild", "--auto-approve")
    note = f"Numbers of {ORDERS}: taken from the record numbers/local.yaml; "
    assert note in printed.out
    assert estate.read_definitions() == [None, None, None, *before[3:], make_order_info("id", note=0, city=0, street=0)]
    assert "No changes." in estate.run("rebuild", "--auto-approve").out
    estate.run("plan", "--detailed-exitcode")
    estate.run("drift", "--detailed-exitcode")


def test_after_a_loss_the_advice_of_drift_leads_to_the_recorded_numbers(estate: Estate) -> None:
    """Everything is lost; or the topic's schema alone, as after a deletion by force."""
    before = [None, None, None, *estate.read_definitions()[3:]]
    for everything in (True, False):
        lose_topics(estate)
        if not everything:
            with estate.registry() as registry:
                registry.create_namespace(SALES)
                registry.create_topic(ORDERS, None)
        out = estate.run("drift", "--detailed-exitcode", code=2).out
        assert "schemactl rebuild --target local" in out
        assert "schemactl apply" not in out
        assert everything or "the registry does not have the recorded numbers 0-5" in out
        # Git's own numbers would contradict the record.
        estate.run("plan", code=100)
        estate.run("rebuild", "--target", "local", "--auto-approve")
        assert estate.read_definitions() == before
        estate.run("drift", "--detailed-exitcode")


def test_a_recorded_number_that_is_lost_is_told_though_git_has_no_version_of_it(tmp_path: Path) -> None:
    """The list ends before a recorded foreign number, which the next approved version would take."""
    estate = Estate(tmp_path / "other")
    estate.run("apply", "--auto-approve")
    estate.put(make_order_info("id", theirs=0))
    estate.accept()
    before = estate.read_definitions()
    lose_topics(estate, ORDERS)
    estate.put(make_order_info("id"))
    out = estate.run("drift", "--detailed-exitcode", code=2).out
    assert "the registry does not have the recorded number 1" in out
    estate.run("rebuild", "--auto-approve")
    assert estate.read_definitions() == before


def test_what_was_approved_since_follows(estate: Estate, export_numbers: Any) -> None:
    file = export_numbers()
    estate.commit_orders("id", note=0, city=0, street=0)
    lose_topics(estate)
    estate.run("rebuild", file, "--auto-approve", "--result", "again.json")
    assert estate.read_definitions()[7] == make_order_info("id", note=0, city=0, street=0)
    [topic] = estate.read_json("again.json")["topics"]
    assert [
        (version["registry"], version["git"]) for version in topic["versions"] if version["state"] == "readable"
    ] == [(3, 0), (4, 1), (5, None), (6, 2), (7, 3)]


def test_other_contents_in_the_way_are_deleted_only_on_demand(estate: Estate, export_numbers: Any) -> None:
    file, before = export_numbers(), estate.read_definitions()
    lose_topics(estate, ORDERS)
    assert estate.put(make_order_info("id", note=0)) == [0]  # a producer was faster
    out = estate.run("rebuild", file, "--auto-approve", code=100).out
    assert "the registry holds version 0 now, but with other contents than before" in out
    assert "--force-delete shop/sales/orders" in out
    assert estate.read_definitions() == [make_order_info("id", note=0)]
    estate.run("rebuild", file, "--auto-approve", "--force-delete", "orders")
    assert estate.read_definitions()[3:] == before[3:]
    estate.run("rebuild", file, "--force-delete", "orderz", code=64)
    estate.run("rebuild", file, "--force-delete", "orders", "--namespace", "shop/none", code=64)


def test_topics_that_lost_nothing_do_not_stand_in_the_way(estate: Estate, export_numbers: Any) -> None:
    """Since the list was kept one was written to, one was deleted and written again, one deleted; numbers are apart."""
    gone, again, away = (TopicName("shop", "sales", name) for name in ("gone", "again", "away"))
    for name in (gone, again, away):
        text = f"topic: {name.schema_id}\nschema: {{type: STRING}}\n"
        estate.scratch.commit({f"namespaces/{name.topic}.yaml": text})
    estate.run("apply", "--auto-approve")
    file = export_numbers()
    estate.put(make_order_info("id", note=0, city=0, more=0))
    estate.put(None, SchemaInfo(SchemaType.INT8), topic=again)
    estate.put(None, topic=away)
    before = estate.read_definitions()
    with estate.registry() as registry:
        registry.delete_topic(gone)
    out = estate.run("rebuild", file, "--auto-approve", code=3).out
    assert f"! {ORDERS}: v7 is not known to Git\n" in out
    assert (estate.read_definitions(), estate.read_definitions(gone)) == (before, [SchemaInfo(SchemaType.STRING)])
    assert estate.read_definitions(again)[1:3] == [None, SchemaInfo(SchemaType.INT8)]
    with estate.registry() as registry:
        registry.delete_topic(gone)
    # Without a list, who knows what the other one was.
    assert "left out: 2 topics" in estate.run("rebuild", "--auto-approve", code=3).out
    assert (estate.read_definitions(), estate.read_definitions(gone)) == (before, [SchemaInfo(SchemaType.STRING)])


def test_too_many_tombstones_are_in_the_way(estate: Estate) -> None:
    estate.scratch.commit({"numbers/local.yaml": None})
    lose_topics(estate, ORDERS)
    estate.put(None)
    assert "tombstones have taken the numbers 0 since" in estate.run("rebuild", code=100).out


def test_a_strategy_that_would_refuse_an_old_version_stands_in_the_way(estate: Estate, export_numbers: Any) -> None:
    with estate.registry() as registry:
        registry.set_topic_policies(ORDERS, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    assert estate.put(make_order_info("id", "needed"), make_order_info("id", note=0, city=0, late=0)) == [7, 8]
    file, before = export_numbers(), estate.read_definitions()
    lose_topics(estate)
    assert "--relax-while-replaying" in estate.run("rebuild", file, "--auto-approve", code=3).out
    assert estate.read_definitions() == []
    estate.run("rebuild", file, "--auto-approve", "--relax-while-replaying", code=3)
    assert estate.read_definitions()[3:] == before[3:]
    with estate.registry() as registry:
        assert registry.find_relaxed_topic(ORDERS) is None
        assert registry.strategy(ORDERS) is CompatibilityStrategy.BACKWARD


def test_what_git_never_declared_comes_back_where_the_file_has_it(estate: Estate, export_numbers: Any) -> None:
    probe = TopicName("lab", "tries", "probe")
    with estate.registry() as registry:
        registry.create_namespace(probe.namespace_name)
    estate.put(SchemaInfo(SchemaType.STRING), None, SchemaInfo(SchemaType.STRING), topic=probe)
    file = export_numbers("all.json", "--unmanaged")
    lose_topics(estate)
    estate.run("rebuild", file, "--auto-approve", "--fail-fast", code=100)  # its namespace is not declared
    estate.run("rebuild", file, "--auto-approve", code=3)
    assert estate.read_definitions(probe) == []
    with estate.registry() as registry:
        registry.create_namespace(probe.namespace_name)
    estate.run("rebuild", file, "--auto-approve", "--topic", "*/probe")
    assert estate.read_definitions(probe) == [None, None, SchemaInfo(SchemaType.STRING)]


def test_a_rewritten_history_cannot_stand_for_what_was_kept(estate: Estate, export_numbers: Any) -> None:
    file = export_numbers()
    lose_topics(estate)
    estate.scratch.git("commit", "-q", "--amend", "-m", "Rewritten")
    assert "v6 was Git's version 2 of commit" in estate.run("rebuild", file, code=1).err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a file with version numbers: it is not JSON"),
        ("[]", "is not a file with version numbers"),
        ('{"format_version": 9, "target": "local", "topics": []}', "has format 9; this schemactl reads 1"),
        ('{"format_version": 1, "target": "prod", "topics": []}', "was written for the target prod"),
        (
            '{"format_version": 1, "target": "local", "topics": null}',
            "contains no version numbers, because the registry could not be read when the file was written",
        ),
        (
            '{"format_version": 1, "target": "local", "topics": [{}]}',
            "does not have the format of version numbers that schemactl writes: `topics[0].topic` is missing",
        ),
    ],
)
def test_a_file_that_is_something_else_is_one_clear_error(estate: Estate, text: str, message: str) -> None:
    (estate.scratch.path / "bad.json").write_text(text)
    assert message in estate.run("rebuild", "bad.json", code=1).err
    estate.run("rebuild", "missing.json", code=1)


def test_numbers_out_of_order_are_refused(estate: Estate, export_numbers: Any) -> None:
    path = estate.scratch.path / export_numbers()
    note = json.loads(path.read_text())
    note["topics"][0]["versions"].reverse()
    path.write_text(json.dumps(note))
    estate.run("rebuild", path.name, code=1)
