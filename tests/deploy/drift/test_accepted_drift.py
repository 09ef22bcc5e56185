"""Drift that people have decided to live with: accepted in Git, listed apart, and drift again when it is not just that."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
import yaml
from estate import NAMESPACE, ORDERS, Estate, EstateOnPulsar, make_order_info
from scratch import write_declaration

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")
LEGACY = NamespaceName("shop", "legacy")
OLD = TopicName("shop", "legacy", "old")
RAW = TopicName("shop", "sales", "raw")
STRING = SchemaInfo(SchemaType.STRING)
NONE = SchemaInfo(SchemaType.NONE)
NIGHTLY = ("drift", "--unmanaged", "--detailed-exitcode", "--format", "json")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Two versions, applied."""
    document = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    document.commit_orders("id", note=0)
    document.run("apply", "--auto-approve")
    return document


def foreign_version(estate: Estate) -> list[str]:
    estate.put(make_order_info("id", note=0, discount=0))
    return ["foreign version"]


def upload_tombstone(estate: Estate) -> list[str]:
    estate.put(None)
    estate.run("apply", "--auto-approve", code=3)
    return ["tombstone"]


def other_numbers(estate: Estate) -> list[str]:
    """The newer version came first."""
    estate.run("registry", "delete", "orders", "--force-delete")
    estate.put(make_order_info("id", note=0), make_order_info("id"))
    return ["numbers apart"]


def create_unmanaged(estate: Estate) -> list[str]:
    with estate.registry() as registry:
        registry.create_namespace(LEGACY)
    estate.put(STRING, topic=OLD)
    return ["unmanaged namespace", "unmanaged topic"]


def create_undeclarable(estate: Estate) -> list[str]:
    estate.scratch.commit({"namespaces/raw.yaml": "topic: shop/sales/raw\n"})
    estate.run("apply", "--auto-approve")
    estate.put(NONE, topic=RAW)
    return ["foreign version"]


def no_longer_declared(estate: Estate) -> list[str]:
    estate.scratch.commit({"namespaces/orders.yaml": None, "namespaces/orders.avsc": None})
    return ["no longer declared"]


def orphan_policy(estate: Estate) -> list[str]:
    """Declare a policy, remove the declaration, and set another value on the registry."""
    written = f"{NAMESPACE}schema_validation_enforced: true\n"
    estate.scratch.commit({"namespaces/sales.yaml": written})
    estate.run("apply", "--auto-approve")
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nschema_validation_enforced: true\n"})
    with estate.registry() as registry:
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.FORWARD))
    return ["policy"]


KINDS = [
    foreign_version,
    upload_tombstone,
    other_numbers,
    create_unmanaged,
    create_undeclarable,
    no_longer_declared,
    orphan_policy,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_accepted_is_listed_apart_and_the_nightly_job_is_green(estate: Estate, kind: Any) -> None:
    kinds = kind(estate)
    before = json.loads(estate.run(*NIGHTLY, code=(2, 100)).out)
    assert {*kinds} <= {difference["kind"] for difference in before["differences"]}
    assert before["accepted"] == before["unused"] == []
    printed = estate.accept("--unmanaged", "--owner", "team-x")
    assert "numbers/local.yaml" in printed.out
    after = json.loads(estate.run(*NIGHTLY).out)
    assert (after["differences"], after["unused"]) == ([], [])
    assert [difference["kind"] for difference in after["accepted"]] == kinds
    day = datetime.now(UTC).date().isoformat()
    for acceptance in after["accepted"]:
        assert acceptance["accepted"] == {"reason": "a test", "owner": "team-x", "accepted": day, "until": None}
    text = estate.run("drift", "--unmanaged", "--detailed-exitcode").out
    count = f"{len(kinds)} accepted difference{'s' * (len(kinds) > 1)}"
    assert f"a test; team-x, {day}\n" in text
    assert text.endswith(f"No drift. The registry has what Git approved, apart from {count}.\n")
    assert estate.run("check").code == 0
    again = estate.run("drift", "--accept", "--unmanaged", "--reason", "another")
    assert "Nothing was written. The version numbers of" in again.out


def test_it_counts_from_the_approved_commit_on(estate: Estate) -> None:
    create_unmanaged(estate)
    estate.run("drift", "--accept", "--unmanaged", "--reason", "of another team")
    assert json.loads(estate.run(*NIGHTLY, code=2).out)["accepted"] == []


def test_a_further_version_is_drift_again(estate: Estate) -> None:
    create_undeclarable(estate)
    create_unmanaged(estate)
    estate.accept("--unmanaged")
    estate.put(None, SchemaInfo(SchemaType.INT64), topic=OLD)
    document = json.loads(estate.run(*NIGHTLY, code=2).out)
    [changed] = document["differences"]
    assert changed["topic"] == str(OLD)
    assert "it changed after it was accepted on " in changed["message"]
    assert [difference["kind"] for difference in document["accepted"]] == ["foreign version", "unmanaged namespace"]
    estate.accept("--unmanaged")
    assert json.loads(estate.run(*NIGHTLY).out)["differences"] == []


def test_another_value_of_an_accepted_policy_is_drift_again(estate: Estate) -> None:
    orphan_policy(estate)
    estate.accept()
    with estate.registry() as registry:
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    [changed] = json.loads(estate.run(*NIGHTLY, code=2).out)["differences"]
    assert "ALWAYS_COMPATIBLE" in changed["message"]
    assert "it changed after it was accepted on " in changed["message"]


def test_what_has_expired_is_drift_again(estate: Estate) -> None:
    create_undeclarable(estate)
    estate.accept()
    path = estate.scratch.path / "numbers/local.yaml"
    path.write_text(path.read_text() + "  until: 2026-01-31\n")
    estate.scratch.git("commit", "-q", "-a", "-m", "It ends")
    [document] = json.loads(estate.run(*NIGHTLY, code=2).out)["differences"]
    assert document["message"].endswith("; its acceptance ended on 2026-01-31")
    day = str(datetime.now(UTC).date() + timedelta(days=30))
    estate.accept("--until", day)
    [accepted] = json.loads(estate.run(*NIGHTLY).out)["accepted"]
    assert accepted["accepted"]["until"] == day


def test_what_is_not_so_any_more_is_named_and_the_next_record_removes_it(estate: Estate) -> None:
    create_undeclarable(estate)
    estate.accept()
    estate.put(None, topic=RAW)
    document = json.loads(estate.run(*NIGHTLY).out)
    assert document["unused"] == [
        {
            "topic": str(RAW),
            "parts": ["undeclarable"],
            "accepted": {
                "reason": "a test",
                "owner": "",
                "accepted": datetime.now(UTC).date().isoformat(),
                "until": None,
            },
        }
    ]
    text = estate.run("drift").out
    assert "Accepted, but no longer present: remove it\n" in text
    assert f"  {RAW}: undeclarable (numbers/local.yaml:3:1)\n" in text
    assert "the accepted state of persistent://shop/sales/raw" in estate.accept().out
    assert json.loads(estate.run(*NIGHTLY).out)["unused"] == []


def test_what_was_not_looked_at_is_not_called_unused(estate: Estate) -> None:
    create_unmanaged(estate)
    estate.accept("--unmanaged")
    assert json.loads(estate.run("drift", "--format", "json").out)["unused"] == []
    estate.accept()
    assert len(json.loads(estate.run(*NIGHTLY).out)["accepted"]) == 2


def test_what_can_be_repaired_is_not_accepted(estate: Estate) -> None:
    create_undeclarable(estate)
    estate.commit_orders("id", note=0, city=0)
    with estate.registry() as registry:
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.FORWARD))
    printed = estate.accept().out
    assert "Not accepted: 1 difference that can be repaired (policy).\n" in printed
    document = json.loads(estate.run(*NIGHTLY, code=2).out)
    assert [item["kind"] for item in document["differences"]] == ["policy"]
    assert [item["kind"] for item in document["pending"]] == ["missing versions"]


def test_the_owner_is_the_topics_by_default(estate: Estate) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": write_declaration() + "owner: team-orders\n"})
    foreign_version(estate)
    estate.accept()
    [document] = json.loads(estate.run(*NIGHTLY).out)["accepted"]
    assert document["accepted"]["owner"] == "team-orders"


def test_a_record_that_is_not_approved_yet_is_pointed_out(estate: Estate) -> None:
    create_undeclarable(estate)
    note = "numbers/local.yaml in the working tree differs from the approved one, and counts once it is merged"
    assert note not in estate.run("drift").err
    estate.run("drift", "--accept", "--reason", "a test")
    assert note in estate.run("drift").err
    estate.accept()
    assert note not in estate.run("drift").err


def test_only_the_chosen_topics_are_accepted(estate: Estate) -> None:
    create_undeclarable(estate)
    create_unmanaged(estate)
    estate.accept("--unmanaged", "--topic", "legacy/old")
    recorded = yaml.safe_load((estate.scratch.path / "numbers/local.yaml").read_text())
    # The namespace of a chosen topic is looked at with it.
    assert {*recorded} == {str(OLD), str(LEGACY)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--accept"], "--accept needs a reason for the record: --reason TEXT"),
        (["--accept", "--reason", "x", "--owner", " "], "--owner is empty"),
        (["--owner", "ada"], "--owner requires --accept"),
        (["--until", "2027-01-31"], "--until requires --accept"),
        (["--accept", "--reason", "x", "--until", "2020-01-31"], "expected a day in the future"),
    ],
)
def test_wrong_usage_is_said(estate: Estate, arguments: list[str], message: str) -> None:
    assert message in estate.run("drift", *arguments, code=64).err


def test_names_of_another_target_are_recorded_as_git_declares_them(tmp_path: Path) -> None:
    project = """\
version: 1
targets:
  prod: {registry: "sqlite:.schemactl/prod.db", namespaces: {shop/sales: shop-prod/sales}}
"""
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.commit({"namespaces/raw.yaml": "topic: shop/sales/raw\n"})
    estate.run("apply", "--auto-approve")
    with closing(EmbeddedRegistry(str(estate.scratch.path / ".schemactl/prod.db"))) as registry:
        registry.put_schema(TopicName("shop-prod", "sales", "raw"), NONE)
        registry.put_schema(TopicName("shop-prod", "sales", "other"), NONE)
    estate.accept("--unmanaged")
    recorded = yaml.safe_load((estate.scratch.path / "numbers/prod.yaml").read_text())
    assert {*recorded} == {"persistent://shop/sales/raw", "persistent://shop/sales/other"}
    assert len(json.loads(estate.run(*NIGHTLY).out)["accepted"]) == 2
    # Somebody wrote the target's own name, which nothing declared has.
    path = estate.scratch.path / "numbers/prod.yaml"
    path.write_text(path.read_text().replace("shop/sales/other", "shop-prod/sales/gone"))
    error = estate.run("drift", "--accept", "--reason", "x", "--unmanaged", code=1).err
    assert "target prod: neither its `tenants` nor its `namespaces` have a name for shop-prod/sales" in error


NEW, LATE, EMPTY = (("shop-prod", "sales", "new"), ("shop-prod", "late", "new"), NamespaceName("shop-prod", "empty"))
MAPPED = "namespaces: {shop/sales: shop-prod/sales}"
TENANT = "tenants: {shop: shop-prod}"
# Each tenant's names on the target are declared names of the other tenant.
SWAPPED = "tenants: {shop: shop-prod, shop-prod: shop}"


@pytest.mark.parametrize(
    ("names", "options", "recorded"),
    [
        (MAPPED, ("--topic", "shop/sales/new"), {"persistent://shop/sales/new"}),
        (MAPPED, ("--topic", "sales/n*"), {"persistent://shop/sales/new"}),
        (MAPPED, ("--topic", "persistent://shop-prod/sales/new"), {"persistent://shop/sales/new"}),
        (MAPPED, ("--namespace", "shop/sales"), {"persistent://shop/sales/new"}),
        (MAPPED, ("--namespace", "shop-prod/sales"), {"persistent://shop/sales/new"}),
        (MAPPED, ("--namespace", "shop/sales", "--topic", "!shop/sales/new"), set()),
        (TENANT, ("--topic", "shop/late/new"), {"shop/late", "persistent://shop/late/new"}),
        (TENANT, ("--namespace", "shop/late"), {"shop/late", "persistent://shop/late/new"}),
        (TENANT, ("--namespace", "shop/empty"), {"shop/empty"}),
        (TENANT, ("--namespace", "shop-prod/empty"), {"shop/empty"}),
        (SWAPPED, ("--namespace", "shop/late"), {"shop/late", "persistent://shop/late/new"}),
        (SWAPPED, ("--topic", "shop/sales/new"), {"persistent://shop/sales/new"}),
    ],
)
def test_undeclared_names_of_a_target_are_selected_by_both_names(
    tmp_path: Path, names: str, options: tuple[str, ...], recorded: set[str]
) -> None:
    estate = Estate(
        tmp_path / "shop",
        project=f'version: 1\ntargets: {{prod: {{registry: "sqlite:.schemactl/prod.db", {names}}}}}\n',
    )
    estate.run("apply", "--auto-approve")
    with closing(EmbeddedRegistry(str(estate.scratch.path / ".schemactl/prod.db"))) as registry:
        for namespace in (EMPTY, NamespaceName("shop-prod", "late")):
            registry.create_namespace(namespace)
        for name in (NEW, LATE):
            registry.put_schema(TopicName(*name), STRING)
    estate.accept("--unmanaged", *options)
    path = estate.scratch.path / "numbers/prod.yaml"
    assert {*(yaml.safe_load(path.read_text()) if path.exists() else ())} == recorded
    differences = json.loads(estate.run("drift", "--unmanaged", *options, "--format", "json").out)["differences"]
    assert not differences


@pytest.mark.parametrize(
    "option", ["--topic=shop/sales/news", "--namespace=shop/sale", "--topic=shop-prod/sales/orders"]
)
def test_a_name_of_neither_is_an_error(tmp_path: Path, option: str) -> None:
    estate = Estate(
        tmp_path / "shop",
        project=f'version: 1\ntargets: {{prod: {{registry: "sqlite:.schemactl/prod.db", {TENANT}}}}}\n',
    )
    estate.run("apply", "--auto-approve")
    estate.run("drift", "--unmanaged", option, code=64)


def test_a_namespace_without_declared_name_cannot_be_accepted_until_it_has_one(tmp_path: Path) -> None:
    project = f'version: 1\ntargets: {{prod: {{registry: "sqlite:.schemactl/prod.db", {MAPPED}}}}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.run("apply", "--auto-approve")
    with closing(EmbeddedRegistry(str(estate.scratch.path / ".schemactl/prod.db"))) as registry:
        registry.create_namespace(NamespaceName("shop-prod", "late"))
        registry.put_schema(TopicName(*LATE), STRING)
    options = ("--unmanaged", "--topic", "shop-prod/late/new")
    assert "  Fix: add `shop-prod/late: shop-prod/late` to its `namespaces`" in estate.accept(*options).out
    named = project.replace("{shop/sales", "{shop-prod/late: shop-prod/late, shop/sales")
    estate.scratch.commit({"schemactl.yaml": named})
    assert "Not accepted" not in estate.accept(*options).out
    assert json.loads(estate.run(*NIGHTLY).out)["differences"] == []


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
@pytest.mark.parametrize(("enforced", "messages"), [(None, 0), (True, 0), (False, 1)])
def test_enforcement_of_a_topic_is_drift_only_if_it_is_set(
    tmp_path: Path, release: str, *, enforced: bool | None, messages: int
) -> None:
    """Brokers answer `false` for a topic without policies; 5.0 for every topic without this one."""
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(release))
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nschema_validation_enforced: true\n"})
    estate.run("apply", "--yes")
    if enforced is not None:
        with estate.registry() as registry:
            registry.set_topic_policies(estate.topic, Policies(schema_validation_enforced=enforced))
    document = json.loads(estate.run("drift", "--format", "json", code={0, 100}).out)["differences"]
    assert len([item for item in document if "schema_validation_enforced" in item["message"]]) == messages


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_a_brokers_drift_is_accepted(tmp_path: Path, release: str) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(release))
    estate.scratch.commit({"namespaces/raw.yaml": "topic: shop/sales/raw\n"})
    estate.run("apply", "--auto-approve")
    raw = TopicName(estate.topic.tenant, "sales", "raw")
    other = TopicName(estate.topic.tenant, "sales", "other")
    with closing(admin_rest.Client(estate.broker.url)) as admin:
        body = {"type": "BYTES", "schema": "", "properties": {}}
        assert admin.call("POST", f"/schemas/{raw.schema_id}/schema", body).status == 200
    with estate.registry() as registry:
        registry.create_topic(other, None)
        registry.put_schema(other, STRING)
        registry.put_schema(estate.topic, make_order_info("id", theirs=0))
    # Other tests share this broker.
    nightly = (*NIGHTLY, "--topic", f"{estate.topic.tenant}/**", "--topic", "shop/**")
    kinds = {"foreign version", "numbers apart", "unmanaged topic"}
    document = json.loads(estate.run(*nightly, code=100).out)
    assert {difference["kind"] for difference in document["differences"]} == kinds
    estate.accept("--unmanaged", *nightly[5:])
    document = json.loads(estate.run(*nightly).out)
    assert [difference["kind"] for difference in document["accepted"]] == [
        "foreign version",
        "foreign version",
        "unmanaged topic",
    ]
    assert str(ORDERS) in (estate.scratch.path / "numbers/local.yaml").read_text()
