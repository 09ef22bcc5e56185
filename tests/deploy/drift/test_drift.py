"""`schemactl drift`, on registries that others have written to."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate, make_order_info
from scratch import record, write_declaration

from schemactl.comparison.changes import COMMIT_PROPERTY
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry, make_entry
from schemactl.registry.storage import Database, SqliteStorage

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Two versions, applied."""
    difference = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    difference.commit_orders("id", note=0)
    difference.run("apply", "--auto-approve")
    return difference


@pytest.fixture
def read_drift(estate: Estate) -> Any:
    """Return a function that runs `drift` and returns the differences, or with code 0 the pending changes."""

    def read_differences(*arguments: str, code: int = 2) -> Any:
        """With 100, where messages would be misread."""
        command = ("drift", "--detailed-exitcode", "--format", "json", *arguments)
        printed = estate.run(*command, code=(code, 100))
        document = json.loads(printed.out)
        if code == 0:
            assert document["differences"] == []
            return document["pending"]
        differences = document["differences"]
        apart = {difference["kind"] for difference in differences} & {"numbers apart", "unexplained version"}
        assert printed.code == (100 if apart else code)
        return differences

    return read_differences


def test_what_was_applied_is_no_drift(estate: Estate) -> None:
    head, _, last = estate.run("drift", "--detailed-exitcode", "--unmanaged").out.splitlines()
    assert head.startswith("Drift of local (sqlite:.schemactl/registry.db) from main at ")
    assert last == "No drift. The registry has what Git approved."


def test_a_foreign_version_is_named_with_time_and_what_differs(estate: Estate, read_drift: Any) -> None:
    estate.put(make_order_info("id", note=0, discount=0))
    difference, apart = read_drift()
    assert (difference["topic"], difference["kind"]) == (str(ORDERS), "foreign version")
    assert (apart["topic"], apart["kind"]) == (str(ORDERS), "numbers apart")
    assert "schemactl drift --target local --accept --reason TEXT --topic shop/sales/orders" in apart["fix"]
    assert (difference["version"]["version"], difference["version"]["schema"]["type"]) == (2, "AVRO")
    assert difference["version"]["time_ms"] > 1_700_000_000_000
    assert difference["nearest"]["version"] == 1
    assert difference["nearest"]["commit"]["id"] == estate.scratch.id(2)
    assert difference["nearest"]["changes"] == [{"sign": "+", "what": "Order.discount: int = 0"}]
    assert any("discount" in line for line in difference["nearest"]["diff"])
    assert "The registry does not show who did" in difference["cause"]
    text = estate.run("drift", code=100).out
    assert f"topic {ORDERS}\n  foreign version: v2 (AVRO, uploaded 20" in text
    assert "    + Order.discount: int = 0\n" in text
    assert text.endswith(
        "Drift: 2 differences in 1 place. Messages of 1 topic would be misread. Nothing was changed.\n"
    )
    assert len(estate.read_definitions()) == 3


def test_auto_update_says_whether_connecting_was_enough(estate: Estate, read_drift: Any) -> None:
    estate.put(make_order_info("id", note=0, discount=0))
    assert "connecting is enough where `is_allow_auto_update_schema` is not false" in read_drift()[0]["cause"]
    with estate.registry() as registry:
        registry.set_namespace_policies(SALES, Policies(is_allow_auto_update_schema=False))
    assert "no producer or consumer did" in next(
        item["cause"] for item in read_drift() if item["kind"] == "foreign version"
    )


def test_a_missing_namespace_is_one_difference_as_is_each_missing_topic(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit(
        {
            "namespaces/web.yaml": "namespace: shop/web\nschema_compatibility_strategy: FULL\nschema_validation_enforced: true\n",
            "namespaces/clicks.yaml": "topic: shop/web/clicks\nschema_compatibility_strategy: BACKWARD\nschema: {type: STRING}\n",
        }
    )
    assert [
        (difference.get("namespace", difference.get("topic")), difference["kind"]) for difference in read_drift(code=0)
    ] == [("shop/web", "namespace missing"), ("persistent://shop/web/clicks", "topic missing")]


def test_another_reading_of_gits_content_is_no_drift(estate: Estate, read_drift: Any) -> None:
    estate.commit_orders("id", note=0, doc="What somebody bought")
    assert read_drift(code=0) == []


def test_an_approved_foreign_version_is_no_drift_any_more(estate: Estate, read_drift: Any) -> None:
    estate.put(make_order_info("id", note=0, discount=0))
    estate.commit_orders("id", note=0, discount=0)
    assert read_drift(code=0) == []


def test_a_version_that_was_not_applied_is_pending(estate: Estate, read_drift: Any) -> None:
    mark = estate.commit_orders("id", note=0, city=0)
    [difference] = read_drift(code=0)
    assert difference["kind"] == "missing versions"
    assert f"version 2 ({estate.scratch.id(mark)[:9]}" in difference["message"]
    assert difference["fix"] == "`schemactl apply --target local --topic shop/sales/orders`: it registers them"


def test_a_deletion_by_others_is_a_tombstone(estate: Estate, read_drift: Any) -> None:
    estate.put(None)
    tombstone, missing, apart = read_drift()
    assert tombstone["kind"] == "tombstone"
    assert (
        "0-2 can no longer be read, and neither can messages written with them; the next versions count from 3"
        in (tombstone["message"])
    )
    assert (tombstone["version"]["version"], tombstone["version"]["schema"]) == (2, None)
    assert (missing["kind"], apart["kind"]) == ("missing versions", "numbers apart")
    estate.run("apply", "--auto-approve", code=3)
    assert [difference["kind"] for difference in read_drift()] == ["tombstone", "numbers apart"]
    assert "v2 is deleted, v3 is Git's v0, v4 is Git's v1, which is not recorded" in read_drift()[1]["message"]


def test_an_approved_deletion_is_no_drift(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": None, "namespaces/orders.avsc": None})
    assert [difference["kind"] for difference in read_drift()] == ["no longer declared"]
    estate.run("apply", "--auto-approve", "--allow-delete", "orders")
    assert read_drift(code=0) == []


def test_a_topic_gone_with_its_schema(estate: Estate, read_drift: Any) -> None:
    with estate.registry() as registry:
        registry.delete_topic(ORDERS)
    [difference] = read_drift()
    assert difference["kind"] == "topic missing"
    assert "none of Git's versions 0-1" in difference["message"]
    assert "schemactl rebuild --target local" in difference["fix"]
    with estate.registry() as registry:
        registry.create_topic(ORDERS, None)
    [difference] = read_drift()
    assert difference["kind"] == "missing versions"
    assert "the topic exists without a schema" in difference["message"]


def test_a_schema_without_its_topic(estate: Estate, read_drift: Any) -> None:
    with estate.registry() as registry:
        registry.delete_namespace(SALES)
    assert [difference["kind"] for difference in read_drift()] == ["namespace missing", "topic missing"]
    assert "though its schema does" in read_drift()[1]["message"]


def test_a_policy_that_somebody_changed(estate: Estate, read_drift: Any) -> None:
    with estate.registry() as registry:
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.FULL))
    [difference] = read_drift()
    assert (difference["namespace"], difference["kind"]) == ("shop/sales", "policy")
    assert difference["message"] == "schema_compatibility_strategy is FULL, but Git approved BACKWARD"


def test_partitions_that_differ(estate: Estate, read_drift: Any) -> None:
    refunds = TopicName("shop", "sales", "refunds")
    estate.scratch.commit({"namespaces/refunds.yaml": "topic: shop/sales/refunds\npartitions: 4\n"})
    with estate.registry() as registry:
        registry.create_topic(refunds, 2)
    [difference] = read_drift(code=0)
    assert (difference["kind"], difference["message"]) == (
        "partitions",
        "the topic has 2 partitions, but Git approved 4",
    )
    assert "adds them" in difference["fix"]


def test_a_killed_apply_leaves_a_trace(estate: Estate, read_drift: Any) -> None:
    with estate.registry() as registry:
        registry.relax(ORDERS)
    assert [item["kind"] for item in read_drift()] == ["updates off", "relaxed"]


def test_a_stamped_version_that_git_lost_has_a_way_out(estate: Estate, read_drift: Any) -> None:
    """After a force push: the commit is in this clone, but not in the approved history."""
    lost = estate.scratch.id(2)
    estate.scratch.git("reset", "-q", "--hard", estate.scratch.id(1))
    [difference] = read_drift()
    assert difference["kind"] == "unexplained version"
    assert lost[:9] in difference["cause"]
    assert "which this clone has, but the approved history does not" in difference["cause"]
    assert f"git switch -c restored {lost[:9]} && git merge --no-ff main" in difference["fix"]
    restore(estate, lost)
    assert read_drift(code=0) == []


def restore(estate: Estate, lost: str) -> None:
    """Follow the printed fix."""
    estate.scratch.git("switch", "-q", "-c", "restored", lost)
    estate.scratch.git("merge", "-q", "--no-ff", "-m", "Restored", "main")
    estate.scratch.git("push", "-q", ".", "restored:main")
    estate.scratch.git("switch", "-q", "main")


@pytest.mark.parametrize("foxtrot", [False, True])
def test_the_way_out_also_holds_where_something_else_was_approved_instead(
    estate: Estate, read_drift: Any, *, foxtrot: bool
) -> None:
    """A merge of the lost commit is not enough: its content is not a step of the first-parent line."""
    git, lost = estate.scratch.git, estate.scratch.id(2)
    git("reset", "-q", "--hard", estate.scratch.id(1))
    estate.scratch.commit({"namespaces/other.yaml": "topic: shop/sales/other\n"}, start=1)
    estate.scratch.flush()
    if foxtrot:
        # As after a fast-forward to a branch that had merged it: the commit exists, but not on the first-parent line.
        git("merge", "-q", "--no-ff", "-s", "ours", "-m", "Merge what was approved", lost)
    assert [difference["kind"] for difference in read_drift()] == ["unexplained version"]
    restore(estate, lost)
    assert [difference["kind"] for difference in read_drift(code=0)] == ["topic missing"]


def test_nothing_is_advised_that_would_be_refused(estate: Estate, read_drift: Any) -> None:
    """Git lost a version, and the version that replaced it was never applied."""
    estate.scratch.git("reset", "-q", "--hard", estate.scratch.id(1))
    estate.scratch.commit({"namespaces/orders.avsc": record("id", instead=0)}, start=1)
    estate.scratch.flush()
    lost, missing = read_drift()
    assert (lost["kind"], missing["kind"]) == ("unexplained version", "missing versions")
    assert "Until then `apply` refuses to touch the topic" in lost["fix"]
    assert (
        missing["fix"]
        == "first repair the reason why `apply` leaves the topic out: `schemactl plan --target local --topic shop/sales/orders`"
    )


def test_a_stamp_of_a_commit_that_is_nowhere(estate: Estate, read_drift: Any) -> None:
    stamped = make_order_info("id", note=0, other=0)
    estate.put(SchemaInfo(stamped.type, stamped.schema, {COMMIT_PROPERTY: "ab" * 20}))
    [difference] = read_drift()
    assert difference["kind"] == "unexplained version"
    assert "abababab" in difference["cause"]
    assert "git fetch" in difference["fix"]


def test_a_stamp_that_is_no_commit_explains_nothing(estate: Estate, read_drift: Any) -> None:
    stamped = make_order_info("id", note=0, other=0)
    estate.put(SchemaInfo(stamped.type, stamped.schema, {COMMIT_PROPERTY: "--upload-pack=x"}))
    assert [difference["kind"] for difference in read_drift()] == ["foreign version", "numbers apart"]


GARBAGE = [
    SchemaInfo(SchemaType.BYTES),
    SchemaInfo(SchemaType.STRING, b"null", {"\ud800": "\udfff\x07"}),
    SchemaInfo(SchemaType.JSON, b'{"type": "object", "id": "\x1b[2J\xc2\x9b31m"}'),
    SchemaInfo(SchemaType.JSON, b"[" * 900 + b"]" * 900),
    SchemaInfo(SchemaType.AVRO, b"\xff\xfe\x1b[2J"),
    SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "R", "fields": [{"name": "x", "type": "R"}]}'),
    SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\0\0"),
    SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\2{}\0\0\0\2[]", {"key.schema.type": "AVRO"}),
    SchemaInfo(SchemaType.PROTOBUF_NATIVE, b'{"fileDescriptorSet": "!", "rootMessageTypeName": "x"}'),
]


WEDGES = (2, 3, 4)
"""The entries of GARBAGE after which a broker's search for an equal version throws."""


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_whatever_others_stored_says_nothing_to_the_terminal(estate: Estate, read_drift: Any, number: int) -> None:
    """Stored by brokers of another release, say: past what an upload would be told today."""
    garbage, name = GARBAGE[number], TopicName("shop", "sales", "garbage")
    with closing(SqliteStorage(Database(str(estate.scratch.path / ".schemactl/registry.db")))) as storage:
        for topic in (ORDERS, name):
            storage.put(topic.schema_id, lambda _stored: make_entry(garbage, 0))
    kinds = {difference["kind"] for difference in read_drift("--unmanaged")}
    assert kinds == {"foreign version", "numbers apart", "wedged" if number in WEDGES else "unmanaged topic"}
    estate.run("drift", "--unmanaged", code=100)
    out = estate.run("log", "orders", "--target", "local", code=100).out
    assert out.replace("\n", "").isprintable()


def test_a_version_on_a_topic_that_is_declared_without_schema(estate: Estate, read_drift: Any) -> None:
    pings = TopicName("shop", "sales", "pings")
    estate.scratch.commit({"namespaces/pings.yaml": "topic: shop/sales/pings\n"})
    estate.run("apply", "--auto-approve")
    estate.put(SchemaInfo(SchemaType.STRING), topic=pings)
    [difference] = read_drift()
    assert (difference["topic"], difference["kind"], difference["nearest"]) == (str(pings), "foreign version", None)


def test_drafts_are_left_alone(estate: Estate, read_drift: Any) -> None:
    draft = write_declaration("shop/sales/trials", "trials.avsc").replace("schema:", "lifecycle: draft\nschema:", 1)
    estate.scratch.commit({"namespaces/trials.yaml": draft, "namespaces/trials.avsc": record("id")})
    assert read_drift("--unmanaged", code=0) == []


def test_what_git_never_declared_is_told_on_request(estate: Estate, read_drift: Any) -> None:
    lab, probe = NamespaceName("lab", "tries"), TopicName("lab", "tries", "probe", "non-persistent")
    with estate.registry() as registry:
        registry.create_namespace(lab)
        registry.create_topic(probe, None)
        registry.put_schema(probe, make_order_info("id"))
    assert read_drift(code=0) == []
    space, topic = read_drift("--unmanaged")
    assert (space["namespace"], space["kind"]) == ("lab/tries", "unmanaged namespace")
    assert (topic["topic"], topic["kind"]) == (str(probe), "unmanaged topic")
    assert "version 0 (AVRO)" in topic["message"]
    assert [difference["kind"] for difference in read_drift("--unmanaged", "--namespace", "lab/tries")] == [
        "unmanaged namespace",
        "unmanaged topic",
    ]
    assert [difference["kind"] for difference in read_drift("--unmanaged", "--topic", "*/probe")] == [
        "unmanaged namespace",
        "unmanaged topic",
    ]
    assert read_drift("--unmanaged", "--topic", "*/orders", code=0) == []


def test_a_filter_that_matches_nothing_is_wrong_usage(estate: Estate) -> None:
    estate.run("drift", "--topic", "nothing*", code=64)
    estate.run("drift", "--unmanaged", "--topic", "nothing*", code=64)


def test_the_targets_own_names_are_told(estate: Estate, read_drift: Any) -> None:
    project = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}}}\n'
    estate.scratch.commit({"schemactl.yaml": project})
    assert {difference.get("namespace", difference.get("topic")) for difference in read_drift(code=0)} == {
        "prod/sales",
        "persistent://prod/sales/orders",
    }
    estate.run("apply", "--auto-approve")
    assert read_drift("--unmanaged", code=0) == []


def test_the_advised_commands_work_on_a_target_with_other_names(estate: Estate, read_drift: Any) -> None:
    project = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}}}\n'
    estate.scratch.commit({"schemactl.yaml": project})
    estate.run("apply", "--auto-approve")
    foreign = make_order_info("id", note=0, theirs=0)
    with closing(EmbeddedRegistry(str(estate.scratch.path / "p.db"))) as registry:
        registry.put_schema(TopicName("prod", "sales", "orders"), foreign)
    difference, apart = read_drift()
    assert difference["topic"] == apart["topic"] == "persistent://prod/sales/orders"
    commands = re.findall(r"`schemactl ([^`]+)`", difference["fix"] + apart["fix"])
    assert [command.split()[0] for command in commands] == ["drift", "registry", "drift", "log"]
    for command in commands:
        out = estate.run(*command.split(), code=100 if command.startswith("log") else 0).out
        assert not command.startswith("registry get") or out.encode().strip() == foreign.schema


@pytest.mark.parametrize(
    ("declared_policies", "level", "policies", "message"),
    [
        (
            "schema_compatibility_strategy: BACKWARD",
            "topic",
            Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE),
            "schema_compatibility_strategy of the topic is ALWAYS_COMPATIBLE, which Git does not declare; it overrides BACKWARD of its namespace",
        ),
        (
            "is_allow_auto_update_schema: false",
            "topic",
            Policies(CompatibilityStrategy.BACKWARD),
            "schema_compatibility_strategy of the topic is BACKWARD, which Git does not declare; it overrides FULL of `defaults` of the project file",
        ),
        (
            "schema_compatibility_strategy: BACKWARD",
            "namespace",
            Policies(is_allow_auto_update_schema=False),
            "is_allow_auto_update_schema of the namespace is false, which Git does not declare; it overrides true of `defaults`",
        ),
        (
            "retention_policies: {retentionTimeInMinutes: 10080, retentionSizeInMB: -1}",
            "topic",
            Policies(settings={"retention_policies": {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1}}),
            "retention_policies of the topic is {retentionTimeInMinutes: 1, retentionSizeInMB: -1}, which Git does not declare",
        ),
        (
            "message_ttl_in_seconds: 3600",
            "topic",
            Policies(settings={"message_ttl_in_seconds": 60}),
            "is 60, which Git",
        ),
        (
            "schema_validation_enforced: true",
            "topic",
            Policies(schema_validation_enforced=False),
            "schema_validation_enforced of the topic is false, which Git does not declare; it overrides true of its namespace",
        ),
        # A value that equals the declared value, or that no level declares, is left alone.
        ("schema_compatibility_strategy: BACKWARD", "topic", Policies(CompatibilityStrategy.BACKWARD), ""),
        ("schema_compatibility_strategy: BACKWARD", "topic", Policies(settings={"message_ttl_in_seconds": 60}), ""),
    ],
)
def test_a_value_that_wins_over_a_declared_one_is_drift(
    tmp_path: Path, declared_policies: str, level: str, policies: Policies, message: str
) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/sales.yaml": f"namespace: shop/sales\n{declared_policies}\n"})
    estate.run("apply", "--auto-approve", code=(0, 100))
    if "allow-data-loss" in (plan := estate.run("plan", code=(0, 100)).out):
        estate.run("apply", "--auto-approve", *re.findall(r"--allow-data-loss \S+", plan)[0].rstrip("`,").split())
    command = ("drift", "--detailed-exitcode", "--format", "json")
    assert json.loads(estate.run(*command).out)["differences"] == []
    with estate.registry() as registry:
        if level == "topic":
            registry.set_topic_policies(ORDERS, policies)
        else:
            registry.set_namespace_policies(SALES, policies)
    difference = json.loads(estate.run(*command, code=2 if message else 0).out)["differences"]
    assert [item["kind"] for item in difference] == ["policy overridden"] * bool(message)
    assert all(message in item["message"] for item in difference)
    assert json.loads(estate.run("plan", "--format", "json").out)["steps"] == []
    if message:
        # Both ways out: declare the value, or accept it.
        estate.run("drift", "--accept", "--reason", "known")
        estate.scratch.git("add", "numbers")
        estate.scratch.git("commit", "-q", "-m", "accept")
        estate.run(*command)


def test_partitions_that_no_apply_can_add_are_drift(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": write_declaration(more="partitions: 2\n")})
    [difference] = read_drift()
    assert (difference["kind"], difference["message"]) == (
        "partitions",
        "the topic is not partitioned, but Git approved 2",
    )
    assert "remove `partitions` from the topic's declaration" in difference["fix"]


def test_topics_of_an_unmanaged_namespace_are_one_line_with_it(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.create_namespace(NamespaceName("legacy", "raw"))
        for number in range(12):
            registry.create_topic(TopicName("legacy", "raw", f"t{number}"), None)
        registry.create_topic(TopicName("shop", "sales", "other"), None)
    lines = [line.strip() for line in estate.run("drift", "--unmanaged").out.splitlines()]
    assert "legacy/raw: a namespace that Git does not declare, with 12 topics" in lines
    assert "persistent://shop/sales/other: a topic that Git does not declare, with no schema" in lines
    assert not any("legacy/raw/t" in line for line in lines)
    # JSON has every topic.
    document = json.loads(estate.run("drift", "--unmanaged", "--format", "json").out)
    assert len(document["differences"]) == 14
    only_topics = estate.run("drift", "--unmanaged", "--topic", "legacy/raw/t1").out
    assert "persistent://legacy/raw/t1" in only_topics or "legacy/raw: a namespace" in only_topics


def test_summary_has_a_line_for_each_kind(estate: Estate) -> None:
    with estate.registry() as registry:
        registry.create_namespace(NamespaceName("legacy", "raw"))
        for number in range(5):
            registry.create_topic(TopicName("legacy", "raw", f"t{number}"), None)
    estate.put(make_order_info("id", note=0, theirs=0))
    estate.commit_orders("id", note=0, city=0)
    printed = estate.run("drift", "--unmanaged", "--summary", "--detailed-exitcode", code=(2, 100))
    lines = printed.out.splitlines()
    assert lines[1:-1] == [
        "~ foreign version: 1: persistent://shop/sales/orders",
        "~ numbers apart: 1: persistent://shop/sales/orders",
        "~ unmanaged namespace: 1: legacy/raw",
        "~ unmanaged topic: 5: persistent://legacy/raw/t0, persistent://legacy/raw/t1, persistent://legacy/raw/t2 and 2 more",
        "= pending: missing versions: 1: persistent://shop/sales/orders",
    ]
    assert lines[-1].startswith("Drift: 8 differences in 7 places.")
    assert all("Cause" not in line for line in lines)
    markdown = estate.run("drift", "--unmanaged", "--summary", "--format", "markdown", code=(0, 100)).out
    assert "unmanaged topic: 5" in markdown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "json"], "--summary cannot be combined with --format json"),
        (["--accept", "--reason", "x"], "--summary cannot be combined with --accept"),
    ],
)
def test_summary_does_not_go_with(estate: Estate, arguments: list[str], message: str) -> None:
    assert message in estate.run("drift", "--summary", *arguments, code=64).err
