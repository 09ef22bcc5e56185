"""`schemactl drift`, on registries that others have written to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from estate import ORDERS, Estate, make_order_info
from scratch import Files, record, write_declaration

from schemactl.comparison.changes import COMMIT_PROPERTY
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry, make_entry
from schemactl.registry.storage import Database, SqliteStorage

pytestmark = pytest.mark.slow

SALES, LAB = NamespaceName("shop", "sales"), NamespaceName("lab", "tries")
REFUNDS, PINGS = TopicName("shop", "sales", "refunds"), TopicName("shop", "sales", "pings")
PROBE = TopicName("lab", "tries", "probe", "non-persistent")
RENAMED = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}}}\n'


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
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


class DriftCase(NamedTuple):
    """A commit and writes by others after the last apply, and the report of `drift`.

    Attributes:
        differences: name, kind and message of each; `TIME` replaces the time of an upload, and `COMMIT` the commit.
        fix: the fix of the last one, or "" if the case is not about it.
        code: the exit code; with 0 the differences are pending changes, and not drift.
        files: the files of the commit.
        write: the writes to the registry.
        options: further options of the command.
        cause: a part of the cause of the first difference of the topic.
    """

    differences: tuple[tuple[str, str, str], ...] = ()
    fix: str = ""
    code: int = 0
    files: Files = MappingProxyType({})
    write: Callable[[EmbeddedRegistry], object] = lambda _: None
    options: tuple[str, ...] = ()
    cause: str = ""


def put_foreign(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, make_order_info("id", note=0, discount=0))


def put_where_clients_cannot(registry: EmbeddedRegistry) -> None:
    put_foreign(registry)
    registry.set_namespace_policies(SALES, Policies(is_allow_auto_update_schema=False))


def put_with_commit(commit: str) -> Callable[[EmbeddedRegistry], object]:
    """Return an upload of content that Git does not have, with this commit property."""
    info = replace(make_order_info("id", note=0, other=0), properties={COMMIT_PROPERTY: commit})
    return lambda registry: registry.put_schema(ORDERS, info)


def recreate_topic(registry: EmbeddedRegistry) -> None:
    registry.delete_topic(ORDERS)
    registry.create_topic(ORDERS, None)


def create_unmanaged(registry: EmbeddedRegistry) -> None:
    registry.create_namespace(LAB)
    registry.create_topic(PROBE, None)
    registry.put_schema(PROBE, make_order_info("id"))


def put_on_topic_without_schema(registry: EmbeddedRegistry) -> None:
    registry.create_topic(PINGS, None)
    registry.put_schema(PINGS, SchemaInfo(SchemaType.STRING))


ORDERS_NAME, WEB = (
    str(ORDERS),
    "namespace: shop/web\nschema_compatibility_strategy: FULL\nschema_validation_enforced: true\n",
)
CLICKS = "topic: shop/web/clicks\nschema_compatibility_strategy: BACKWARD\nschema: {type: STRING}\n"
DRAFT = write_declaration("shop/sales/trials", "trials.avsc").replace("schema:", "lifecycle: draft\nschema:", 1)
APPLY = "`schemactl apply --target local --topic shop/sales/orders`"
ACCEPT = "`schemactl drift --target local --accept --reason TEXT --topic shop/sales/orders`"
NO_NAMESPACE = "the registry does not have this namespace"
NO_TOPIC = "the registry does not have this topic, and none of Git's version"
UNKNOWN = "(AVRO, uploaded TIME) has content that Git does not know"
FOREIGN = (
    (ORDERS_NAME, "foreign version", f"v2 {UNKNOWN}"),
    (ORDERS_NAME, "numbers apart", "in the registry v2 is not known to Git, which is not recorded: messages would be misread"),
)  # fmt: skip
UNMANAGED = (
    (str(LAB), "unmanaged namespace", "a namespace that Git does not declare"),
    (str(PROBE), "unmanaged topic", "a topic that Git does not declare, with version 0 (AVRO)"),
)
OLD_MESSAGES = "`schemactl rebuild --target local --topic shop/sales/orders`: if messages of old versions are still to be read, it gives"

DRIFT_CASES = {
    "nothing happened": DriftCase(options=("--unmanaged",)),
    "another doc is approved": DriftCase(files={"namespaces/orders.avsc": record("id", note=0, doc="A purchase")}),
    "a version is approved": DriftCase(
        ((ORDERS_NAME, "missing versions", "the registry does not have Git's version 2 (COMMIT, 2023-11-14)"),),
        f"{APPLY}: it registers them",
        files={"namespaces/orders.avsc": record("id", note=0, city=0)},
    ),
    "a namespace and a topic are approved": DriftCase(
        (("shop/web", "namespace missing", NO_NAMESPACE), ("persistent://shop/web/clicks", "topic missing", f"{NO_TOPIC} 0")),
        files={"namespaces/web.yaml": WEB, "namespaces/clicks.yaml": CLICKS},
    ),
    "a target has other names": DriftCase(
        (("prod/sales", "namespace missing", NO_NAMESPACE), ("persistent://prod/sales/orders", "topic missing", f"{NO_TOPIC}s 0-1")),
        files={"schemactl.yaml": RENAMED},
    ),
    "a draft is approved": DriftCase(
        files={"namespaces/trials.yaml": DRAFT, "namespaces/trials.avsc": record("id")}, options=("--unmanaged",)
    ),
    "a declaration is removed": DriftCase(
        ((ORDERS_NAME, "no longer declared", "Git no longer declares its schema, and the registry keeps versions 0-1"),),
        code=2,
        files={"namespaces/orders.yaml": None, "namespaces/orders.avsc": None},
    ),
    "a version is uploaded": DriftCase(
        FOREIGN,
        f"{ACCEPT}, commit what it writes, and merge it. `schemactl log shop/sales/orders --target local` shows both numbers",
        code=100,
        write=put_foreign,
        cause="connecting is enough where `is_allow_auto_update_schema` is not false",
    ),
    "a version is uploaded where no client can register one": DriftCase(
        (
            ("shop/sales", "policy overridden",
             "is_allow_auto_update_schema of the namespace is false, which Git does not declare; it overrides true of `defaults` of the project file: it decides whether producers and consumers register schemas"),
            *FOREIGN,
        ),
        code=100,
        write=put_where_clients_cannot,
        cause="no producer or consumer did",
    ),
    "an uploaded version is approved": DriftCase(
        files={"namespaces/orders.avsc": record("id", note=0, discount=0)}, write=put_foreign
    ),
    "an uploaded version names a commit that is nowhere": DriftCase(
        ((ORDERS_NAME, "unexplained version", f"v2 {UNKNOWN}"),),
        "git fetch --all; if no remote has that commit any more, approve the content shown here again",
        code=100,
        write=put_with_commit("ab" * 20),
        cause="an `apply` uploaded it from commit ababababa, which this clone does not have",
    ),
    "an uploaded version has an option for a commit": DriftCase(FOREIGN, code=100, write=put_with_commit("--upload-pack=x")),
    "a topic that is declared without a schema gets a version": DriftCase(
        ((str(PINGS), "foreign version", "v0 (STRING, uploaded TIME) has content that Git does not know"),),
        code=2,
        files={"namespaces/pings.yaml": "topic: shop/sales/pings\n"},
        write=put_on_topic_without_schema,
    ),
    "the topic is deleted": DriftCase(
        ((ORDERS_NAME, "topic missing", f"{NO_TOPIC}s 0-1"),),
        f"{APPLY}: it creates it\n{OLD_MESSAGES} the versions the numbers they had",
        code=2,
        write=lambda registry: registry.delete_topic(ORDERS),
    ),
    "the topic is deleted and created": DriftCase(
        ((ORDERS_NAME, "missing versions", "the topic exists without a schema; Git has versions 0-1"),),
        f"{APPLY}: it registers them\n{OLD_MESSAGES} them the numbers they had",
        code=2,
        write=recreate_topic,
    ),
    "the namespace is deleted": DriftCase(
        (
            ("shop/sales", "namespace missing", NO_NAMESPACE),
            (ORDERS_NAME, "topic missing", "the topic does not exist, though its schema does (versions 0-1)"),
        ),
        code=2,
        write=lambda registry: registry.delete_namespace(SALES),
    ),
    "a policy is changed": DriftCase(
        (("shop/sales", "policy", "schema_compatibility_strategy is FULL, but Git approved BACKWARD"),),
        code=2,
        write=lambda registry: registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.FULL)),
    ),
    "more partitions are approved": DriftCase(
        ((str(REFUNDS), "partitions", "the topic has 2 partitions, but Git approved 4"),),
        "`schemactl apply --target local --topic shop/sales/refunds`: it adds them\napprove that number in Git",
        files={"namespaces/refunds.yaml": "topic: shop/sales/refunds\npartitions: 4\n"},
        write=lambda registry: registry.create_topic(REFUNDS, 2),
    ),
    "partitions are approved that no apply can add": DriftCase(
        ((ORDERS_NAME, "partitions", "the topic is not partitioned, but Git approved 2"),),
        "remove `partitions` from the topic's declaration, and merge that\n"
        f"`pulsar-admin topics delete {ORDERS}`, then {APPLY}: it deletes the topic with its messages and schemas, and creates it with its "
        "partitions",
        code=2,
        files={"namespaces/orders.yaml": write_declaration(more="partitions: 2\n")},
    ),
    "an apply was killed while the topic was relaxed": DriftCase(
        (
            (
                "shop/sales",
                "updates off",
                f"is_allow_auto_update_schema is false, set by an `apply` for {ORDERS}: clients of every topic of the namespace cannot register schemas, so new schemas are rejected",
            ),
            (ORDERS_NAME, "relaxed", "the topic accepts every upload (ALWAYS_COMPATIBLE, set by an `apply`); its own strategy is UNDEFINED"),
        ),
        code=2,
        write=lambda registry: registry.relax(ORDERS),
    ),
    "an undeclared topic is not listed": DriftCase(write=create_unmanaged),
    "an undeclared topic is listed on request": DriftCase(UNMANAGED, code=2, write=create_unmanaged, options=("--unmanaged",)),
    "an undeclared topic is listed with its namespace": DriftCase(
        UNMANAGED, code=2, write=create_unmanaged, options=("--unmanaged", "--namespace", "lab/tries")
    ),
    "an undeclared topic is listed by its name": DriftCase(
        UNMANAGED, code=2, write=create_unmanaged, options=("--unmanaged", "--topic", "*/probe")
    ),
    "an undeclared topic is not listed by another name": DriftCase(
        write=create_unmanaged, options=("--unmanaged", "--topic", "*/orders")
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DRIFT_CASES.values(), ids=DRIFT_CASES)
def test_drift_lists_each_difference(estate: Estate, case: DriftCase) -> None:
    commit_id = estate.scratch.id(estate.scratch.commit(case.files))
    with estate.registry() as registry:
        case.write(registry)
    printed = estate.run("drift", "--detailed-exitcode", "--format", "json", *case.options, code=case.code)
    document = json.loads(printed.out)
    differences, others = (
        document[key] for key in (("differences", "pending") if case.code else ("pending", "differences"))
    )
    assert [
        (
            difference.get("namespace", difference.get("topic")),
            difference["kind"],
            re.sub(r"uploaded 20[^)]* UTC", "uploaded TIME", difference["message"].replace(commit_id[:9], "COMMIT")),
        )
        for difference in differences
    ] == [*case.differences]
    assert others == []
    assert not case.fix or differences[-1]["fix"] == case.fix
    causes = [difference["cause"] for difference in differences if "topic" in difference]
    assert not case.cause or case.cause in causes[0]


def test_without_drift_the_report_is_a_title_and_a_sentence(estate: Estate) -> None:
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


def test_an_approved_deletion_that_was_applied_is_no_drift(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": None, "namespaces/orders.avsc": None})
    estate.run("apply", "--auto-approve", "--allow-delete", "orders")
    assert read_drift(code=0) == []


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


def test_a_filter_that_matches_nothing_is_wrong_usage(estate: Estate) -> None:
    estate.run("drift", "--topic", "nothing*", code=64)
    estate.run("drift", "--unmanaged", "--topic", "nothing*", code=64)


def test_a_target_with_other_names_has_no_unmanaged_topics_after_apply(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit({"schemactl.yaml": RENAMED})
    estate.run("apply", "--auto-approve")
    assert read_drift("--unmanaged", code=0) == []


def test_the_advised_commands_work_on_a_target_with_other_names(estate: Estate, read_drift: Any) -> None:
    estate.scratch.commit({"schemactl.yaml": RENAMED})
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


STRATEGY, TTL = "schema_compatibility_strategy", "message_ttl_in_seconds"
WEEK, MINUTE = ({"retentionTimeInMinutes": minutes, "retentionSizeInMB": -1} for minutes in (10080, 1))
OVERRIDES: dict[str, tuple[str, str, Policies, str]] = {
    "a strategy of the topic over its namespace": (
        f"{STRATEGY}: BACKWARD", "topic", Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE),
        f"{STRATEGY} of the topic is ALWAYS_COMPATIBLE, which Git does not declare; it overrides BACKWARD of its namespace",
    ),
    "a strategy of the topic over the defaults": (
        "is_allow_auto_update_schema: false", "topic", Policies(CompatibilityStrategy.BACKWARD),
        f"{STRATEGY} of the topic is BACKWARD, which Git does not declare; it overrides FULL of `defaults` of the project file",
    ),
    "a policy of the namespace over the defaults": (
        f"{STRATEGY}: BACKWARD", "namespace", Policies(is_allow_auto_update_schema=False),
        "is_allow_auto_update_schema of the namespace is false, which Git does not declare; it overrides true of `defaults`",
    ),
    "retention of the topic": (
        f"retention_policies: {json.dumps(WEEK)}", "topic", Policies(settings={"retention_policies": MINUTE}),
        "retention_policies of the topic is {retentionTimeInMinutes: 1, retentionSizeInMB: -1}, which Git does not declare",
    ),
    "a TTL of the topic": (f"{TTL}: 3600", "topic", Policies(settings={TTL: 60}), "is 60, which Git"),
    "enforcement of the topic": (
        "schema_validation_enforced: true", "topic", Policies(schema_validation_enforced=False),
        "schema_validation_enforced of the topic is false, which Git does not declare; it overrides true of its namespace",
    ),
    "a value that equals the declared one is left alone": (
        f"{STRATEGY}: BACKWARD", "topic", Policies(CompatibilityStrategy.BACKWARD), "",
    ),
    "a value that no level declares is left alone": (
        f"{STRATEGY}: BACKWARD", "topic", Policies(settings={TTL: 60}), "",
    ),
}  # fmt: skip
"""The line of the namespace, the level and the policies that others set there, and a part of the message."""


@pytest.mark.parametrize(("line", "level", "policies", "message"), OVERRIDES.values(), ids=OVERRIDES)
def test_a_value_that_wins_over_a_declared_one_is_drift(
    estate: Estate, line: str, level: str, policies: Policies, message: str
) -> None:
    estate.scratch.commit({"namespaces/sales.yaml": f"namespace: shop/sales\n{line}\n"})
    losses = re.findall(r"--allow-data-loss [^ `,]+", estate.run("plan", code=(0, 100)).out)
    estate.run("apply", "--auto-approve", *(losses[0].split() if losses else []))
    command = ("drift", "--detailed-exitcode", "--format", "json")
    assert json.loads(estate.run(*command).out)["differences"] == []
    with estate.registry() as registry:
        if level == "topic":
            registry.set_topic_policies(ORDERS, policies)
        else:
            registry.set_namespace_policies(SALES, policies)
    differences = json.loads(estate.run(*command, code=2 if message else 0).out)["differences"]
    assert [difference["kind"] for difference in differences] == ["policy overridden"] * bool(message)
    assert all(message in difference["message"] for difference in differences)
    assert json.loads(estate.run("plan", "--format", "json").out)["steps"] == []
    if message:
        # Both ways out: declare the value, or accept it.
        estate.accept()
        estate.run(*command)


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
