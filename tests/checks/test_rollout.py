"""`schemactl rollout`: change, strategy and the builds of clients decide the safe order."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command import schemactl
from scratch import Files, Scratch

pytestmark = pytest.mark.slow

TARGETS = """\
targets:
  prod: {registry: 'https://prod.example.com', after: [stage]}
  stage: {registry: 'https://stage.example.com', after: [dev]}
  dev: {registry: 'https://dev.example.com'}
  web: {registry: 'sqlite:web.db', exclude: ['shop/**']}
"""
A, B = '{"name": "a", "type": "int"}', '{"name": "b", "type": "int"}'
DEFAULT = '{"name": "b", "type": "int", "default": 0}'
C = '{"name": "c", "type": "int", "default": 0}'
SHOP = "{name: shop, team: web, role: producer}"
BILLING = "{name: billing, team: payments, role: consumer}"
MAIL = "{name: mail, role: consumer, targets: [prod]}"


def make_project(
    path: Path, strategy: str, versions: Sequence[str], clients: str = "", targets: str = TARGETS
) -> Scratch:
    """Make a project with these versions of a topic, each with the fields of a record; the last is not committed."""
    repository = Scratch(path)
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n{targets}"
    declared = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
    declared += f"clients: [{clients}]\n" if clients else ""
    repository.commit(
        {
            "schemactl.yaml": project,
            "topics/orders.yaml": declared,
            "topics/orders.avsc": record(versions[0]),
            "topics/own.avsc": record(A),
        }
    )
    for version in versions[1:-1]:
        repository.commit({"topics/orders.avsc": record(version)})
    repository.flush()
    repository.write({"topics/orders.avsc": record(versions[-1])})
    return repository


def record(fields: str) -> str:
    return f'{{"type": "record", "name": "Order", "fields": [{fields}]}}'


def waive_rule(repository: Scratch, rule: str) -> None:
    broken = json.loads(schemactl(repository.path, "check", "--format", "json", code=100).out)
    [fingerprint] = {finding["fingerprint"] for finding in broken["findings"] if finding["rule"] == rule}
    soon = str(datetime.now(UTC).date() + timedelta(days=30))
    schemactl(repository.path, "waive", fingerprint, "--reason", "x", "--until", soon, "--owner", "me")


def list_step_kinds(plan: dict[str, object]) -> list[tuple[object, object, list[str]]]:
    steps = plan["steps"]
    assert isinstance(steps, list)
    return [(step["kind"], step["target"], [one["name"] for one in step["clients"]]) for step in steps]


CONSUMERS, PRODUCERS, DRAIN = "consumers", "producers", "drain"
APPLY: tuple[str, list[str]] = ("apply", [])
ORDERS: dict[str, tuple[str, list[str], str, str, list[tuple[str, list[str]]]]] = {
    "a required field is removed, which old consumers need": (
        "BACKWARD", [f"{A}, {B}", A], f"{SHOP}, {BILLING}, {MAIL}", "consumers first",
        [(CONSUMERS, ["mail", "billing"]), APPLY, (PRODUCERS, ["shop"])],
    ),
    "no client is declared": (
        "BACKWARD", [f"{A}, {B}", A], "", "consumers first", [(CONSUMERS, []), APPLY, (PRODUCERS, [])],
    ),
    "a client with a definition that is compatible with both versions needs no upgrade": (
        "BACKWARD", [f"{A}, {B}", A], f"{SHOP}, {BILLING}, {{name: audit, role: reader, schema: own.avsc}}", "consumers first",
        [(CONSUMERS, ["billing"]), APPLY, (PRODUCERS, ["shop"])],
    ),
    "a required field is added, which old messages do not have": (
        "FORWARD", [A, f"{A}, {B}"], f"{SHOP}, {BILLING}, {MAIL}", "producers first",
        [APPLY, (PRODUCERS, ["shop"]), (DRAIN, ["mail", "billing"]), (CONSUMERS, ["mail", "billing"])],
    ),
    "a field with a default is added": (
        "FULL", [A, f"{A}, {DEFAULT}"], f"{SHOP}, {BILLING}", "any order",
        [APPLY, (PRODUCERS, ["shop"]), (CONSUMERS, ["billing"])],
    ),
    "the strategy protects no client, and each order breaks one": (
        "ALWAYS_COMPATIBLE", [A, B], f"{SHOP}, {BILLING}", "no safe order", [],
    ),
    "the strategy does not allow the order": ("FORWARD", [f"{A}, {B}", A], "", "no safe order", []),
    "the only consumer is compatible since version 0": (
        "BACKWARD", [A, f"{A}, {DEFAULT}", f"{A}, {C}"], f"{SHOP}, {{name: audit, role: reader, schema: 0}}", "any order",
        [APPLY, (PRODUCERS, ["shop"]), (CONSUMERS, ["audit"])],
    ),
}  # fmt: skip
"""Strategy, versions, clients, the safe order, and the steps on prod with their clients."""


@pytest.mark.parametrize(("strategy", "versions", "clients", "order", "on_prod"), ORDERS.values(), ids=ORDERS)
def test_the_order_follows_from_the_change_and_from_who_reads_it(
    tmp_path: Path,
    strategy: str,
    versions: Sequence[str],
    clients: str,
    order: str,
    on_prod: list[tuple[str, list[str]]],
) -> None:
    repository = make_project(tmp_path / "r", strategy, versions, clients)
    code = 100 if order == "no safe order" else 0
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json", code=code).out)
    assert plan["order"] == order
    expected = {"no safe order": "none"}.get(order, order.removesuffix(" first"))
    report = json.loads(schemactl(repository.path, "check", "--format", "json", code=(0, 100)).out)
    assert {topic["upgrade_first"] for topic in report["topics"]} == {expected}
    assert plan["reasons"]
    seen = list_step_kinds(plan)
    assert [(kind, names) for kind, target, names in seen if target == "prod"] == on_prod
    targets = list(dict.fromkeys(target for _, target, _ in seen if target))
    assert targets == (["dev", "stage", "prod"] if on_prod else [])
    assert bool(plan["fix"]) is (code == 100)
    text = schemactl(repository.path, "rollout", "orders", code=code).out
    markdown = schemactl(repository.path, "rollout", "orders", "--format", "markdown", code=code).out
    for step in plan["steps"]:
        assert f"done when this exits with 0: {step['command']}" in text
    assert markdown.count("- [ ] ") == len(seen)


def test_a_client_that_the_check_protects_is_declared_otherwise_first(tmp_path: Path) -> None:
    pinned = BILLING.replace("role", "schema: 0, role")
    repository = make_project(tmp_path / "r", "BACKWARD", [f"{A}, {B}", A], f"{SHOP}, {pinned}")
    assert "CLIENT_BREAKS" in schemactl(repository.path, "check", code=100).out
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json").out)
    assert list_step_kinds(plan)[:3] == [
        ("declare", None, ["billing"]),
        ("merge", None, []),
        ("consumers", "dev", ["billing"]),
    ]


@pytest.mark.parametrize("pair", [False, True])
def test_a_client_may_have_a_file_of_its_own_where_its_topic_has_one(tmp_path: Path, *, pair: bool) -> None:
    pinned = BILLING.replace("role", "schema: 0, role")
    repository = make_project(tmp_path / "r", "BACKWARD", [f"{A}, {B}", f"{A}, {B}"], f"{SHOP}, {pinned}")
    avro = "{type: AVRO, definition: orders.avsc}"
    schema = f"{{type: KEY_VALUE, key: {{type: STRING}}, value: {avro}}}" if pair else avro
    path = repository.path / "topics" / "orders.yaml"
    path.write_text(path.read_text().replace("shop/sales/orders", "shop/sales/carts").replace(avro, schema))
    repository.git("add", "-A")
    repository.git("commit", "-qm", "carts")
    repository.write({"topics/orders.avsc": record(A)})
    plan = json.loads(schemactl(repository.path, "rollout", "carts", "--format", "json").out)
    assert (plan["steps"][0]["kind"], "`schema: FILE`" in plan["steps"][0]["text"]) == ("declare", not pair)


def test_clients_of_an_embedded_registry_have_steps_without_a_command(tmp_path: Path) -> None:
    targets = TARGETS.replace("https://dev.example.com", "sqlite:dev.db")
    repository = make_project(tmp_path / "r", "FORWARD", [A, f"{A}, {B}"], f"{SHOP}, {BILLING}", targets)
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json").out)
    steps = [(step["kind"], bool(step["command"])) for step in plan["steps"] if step["target"] == "dev"]
    assert steps == [("apply", True), ("producers", False), ("drain", False), ("consumers", False)]
    assert all(step["command"] for step in plan["steps"] if step["target"] == "prod")
    text = schemactl(repository.path, "rollout", "orders").out
    assert text.count("done when these clients run with it; an embedded registry does not know its clients") == 3
    assert "dev: upgrade billing (team payments) to version 1" in text
    markdown = schemactl(repository.path, "rollout", "orders", "--format", "markdown").out
    assert markdown.count("- [ ] ") == len(plan["steps"])
    assert "``````" not in markdown


def test_a_target_with_a_position_is_moved_before_the_version_is_registered(tmp_path: Path) -> None:
    targets = TARGETS.replace("https://dev.example.com", "sqlite:dev.db").replace(
        "'sqlite:dev.db'", "'sqlite:dev.db', promoted: refs/heads/promoted/dev"
    )
    repository = make_project(tmp_path / "r", "BACKWARD", [A, f"{A}, {DEFAULT}"], targets=targets)
    repository.git("branch", "promoted/dev")
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json").out)
    [step, *_] = [step for step in plan["steps"] if step["target"] == "dev"]
    assert step["text"].startswith("register version 1: schemactl promote dev --to main, the push that it prints, and")
    repository.git("commit", "-qam", "b")
    done = shlex.split(step["command"])[1:]
    schemactl(repository.path, *done, code=2)
    schemactl(repository.path, "apply", "--target", "dev", "--auto-approve", "--create-tenants")
    # Only version 0 was approved before the position of the target.
    schemactl(repository.path, *done, code=2)
    schemactl(repository.path, "promote", "dev", "--to", "main")
    schemactl(repository.path, "apply", "--target", "dev", "--auto-approve")
    schemactl(repository.path, *done)


def test_reasons_name_the_clients_that_break(tmp_path: Path) -> None:
    legacy = "{name: legacy, role: producer, schema: 0}"
    repository = make_project(tmp_path / "r", "ALWAYS_COMPATIBLE", [A, B], f"{SHOP}, {legacy}, {BILLING}")
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json", code=100).out)
    assert [reason.partition(":")[0] for reason in plan["reasons"] if reason.startswith(("Version", "billing"))] == [
        "Version 1 cannot read messages that legacy wrote",
        "Version 1 cannot read messages that shop (team web) wrote",
        "billing (team payments) cannot read earlier messages once it has version 1",
        "billing (team payments) cannot read version 1",
    ]


def test_nothing_is_planned_where_nothing_is_pending(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD", [A, A])
    nothing = "persistent://shop/sales/orders: no change of its schema is pending.\n"
    assert schemactl(repository.path, "rollout", "orders").out == nothing
    repository.write({"topics/orders.avsc": record(f"{A}, {DEFAULT}")})
    repository.git("commit", "-qam", "b")
    assert schemactl(repository.path, "rollout", "orders").out == nothing
    assert "Any order is safe." in schemactl(repository.path, "rollout", "orders", "--base", "HEAD^").out
    assert schemactl(repository.path, "rollout", "carts", code=64).out == ""


NO_VERSION: dict[str, tuple[Files, str]] = {
    "only the doc differs": ({}, "Pulsar does not compare the changed parts"),
    "it returns to an older version": ({"topics/orders.avsc": record(A)}, "it has an older version's schema again"),
    "its schema is removed": ({"topics/orders.yaml": "topic: shop/sales/orders\n"}, "its schema was removed"),
    "its declaration is removed": ({"topics/orders.yaml": None}, "it is no longer declared"),
}


@pytest.mark.parametrize(("files", "reason"), NO_VERSION.values(), ids=NO_VERSION)
def test_a_change_that_adds_no_version_has_no_plan(tmp_path: Path, files: Files, reason: str) -> None:
    repository = make_project(tmp_path / "r", "ALWAYS_COMPATIBLE", [A, B, f'{B[:-1]}, "doc": "b"}}'])
    repository.write(files)
    assert json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json").out) == {
        "format_version": 1,
        "topic": "persistent://shop/sales/orders",
        "kind": None,
        "pending": False,
    }
    assert reason in schemactl(repository.path, "rollout", "orders").out


def test_a_topic_that_goes_leaves_its_clients_named(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD", [A, A], f"{SHOP}, {BILLING}")
    repository.write({"topics/orders.yaml": None})
    assert (
        "Its declared clients: the producer shop (team web), the consumer billing (team payments).\n"
        in schemactl(repository.path, "check").out
    )


def test_a_consumer_that_no_broker_lets_in_has_no_safe_order(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "ALWAYS_INCOMPATIBLE", [A, A])
    carts = f"topic: shop/sales/carts\nclients: [{SHOP}, {BILLING}]\nschema: {{type: AVRO, definition: orders.avsc}}\n"
    repository.write({"topics/carts.yaml": carts})
    plan = json.loads(schemactl(repository.path, "rollout", "carts", "--format", "json", code=100).out)
    assert plan["order"] == "no safe order"
    assert plan["reasons"][0].startswith(
        "CLIENT_REFUSED: The consumer billing (team payments) is built with the latest version, and a broker would not let it connect"
    )


def test_a_new_generation_has_no_rollout_even_if_it_is_waived(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD", [A, B], f"{SHOP}, {BILLING}")
    path = repository.path / "topics" / "orders.yaml"
    path.write_text(path.read_text().replace("orders\n", "orders\ngeneration: 2\n", 1))
    waive_rule(repository, "NEW_GENERATION")
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json", code=100).out)
    assert plan["reasons"] == [
        "A new generation begins with version 2 on prod, stage, dev: no message may be left before, and no client."
    ]


def test_a_topic_that_was_another_is_compared_with_it(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FORWARD", [A, f"{A}, {B}"], f"{SHOP}, {BILLING}")
    path = repository.path / "topics" / "orders.yaml"
    path.write_text(path.read_text().replace("orders\n", "carts\nrenamed_from: shop/sales/orders\n", 1))
    plan = json.loads(schemactl(repository.path, "rollout", "carts", "--format", "json").out)
    assert (plan["latest"], plan["order"]) == (None, "producers first")
    assert plan["reasons"][0].startswith("Version 0 cannot read messages that producers wrote: Order.b is new")


def test_after_a_waived_break_brokers_reject_consumers_under_a_transitive_strategy(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD_TRANSITIVE", [A, f"{A}, {B}"])
    waive_rule(repository, "READER_FIELD_MISSING_DEFAULT_VALUE")
    schemactl(repository.path, "check")
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json", code=100).out)
    assert plan["reasons"][0] == (
        "Under BACKWARD_TRANSITIVE a broker rejects consumers that are built with version 1 on prod, stage, dev."
    )


def test_the_strictest_strategy_of_the_targets_counts(tmp_path: Path) -> None:
    overlay = "topic: shop/sales/orders\nschema_compatibility_strategy: BACKWARD_TRANSITIVE\n"
    targets = TARGETS.replace("after: [stage]", "after: [stage], overlays: prod.yaml")
    repository = make_project(tmp_path / "r", "BACKWARD", [A, f"{A}, {DEFAULT}"], targets=targets)
    repository.commit({"prod.yaml": overlay})
    repository.write({"topics/orders.avsc": record(f"{A}, {DEFAULT}, {C}")})
    assert "BACKWARD_TRANSITIVE on prod\n" in schemactl(repository.path, "rollout", "orders").out
    plan = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json").out)
    assert (plan["strategy"], plan["strategy_on"]) == ("BACKWARD_TRANSITIVE", ["prod"])


def test_the_report_has_the_number_after_a_rebase_merge(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FULL", [A, A], targets="targets: {prod: {registry: 'sqlite:prod.db'}}\n")
    repository.git("checkout", "-qb", "feature")
    for fields in (f"{A}, {DEFAULT}", f"{A}, {DEFAULT}, {C}"):
        repository.write({"topics/orders.avsc": record(fields)})
        repository.git("commit", "-qam", fields)
    arguments = ("rollout", "orders", "--base", "main")
    text = schemactl(repository.path, *arguments).out
    assert "orders: version 0 to version 1 (2 after a rebase merge), FULL" in text
    assert "after a rebase merge version 2: add 1 to the number in each command" in text
    plan = json.loads(schemactl(repository.path, *arguments, "--format", "json").out)
    assert (plan["version"], plan["version_if_rebased"]) == (1, 2)
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "feature")
    assert schemactl(repository.path, "show", "orders@2").out == record(f"{A}, {DEFAULT}, {C}") + "\n"
    printed = schemactl(repository.path, "rollout", "orders", "--base", "HEAD^").out
    assert "orders: version 1 to version 2, FULL" in printed


def test_a_new_topic_and_a_project_without_targets_have_a_plan(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FULL", [A, A], targets="")
    new = "topic: shop/sales/carts\nschema: {type: AVRO, definition: orders.avsc}\n"
    repository.write({"topics/carts.yaml": new})
    printed = schemactl(repository.path, "rollout", "carts").out
    assert "schemactl plan --target TARGET --topic shop/sales/carts --detailed-exitcode" in printed


def test_names_are_hostile_in_no_format(tmp_path: Path) -> None:
    hostile = '{name: "<img>| [x](y) @all; $(id)", role: consumer}'
    repository = make_project(tmp_path / "r", "BACKWARD", [f"{A}, {B}", A], hostile)
    markdown = schemactl(repository.path, "rollout", "orders", "--format", "markdown").out
    # A fenced block is text, regardless of its content.
    markdown = re.sub(r"```sh.*?```", "", markdown, flags=re.DOTALL)
    assert "<img>" not in markdown
    assert "[x](y)" not in markdown
    assert "--client '<img>| [x](y) @all; $(id)'" in schemactl(repository.path, "rollout", "orders").out


CHANGES = [
    pytest.param("BACKWARD", [f"{A}, {B}", A], "consumers", id="consumers"),
    pytest.param("FORWARD", [A, f"{A}, {B}"], "producers", id="producers"),
    pytest.param("FULL", [A, f"{A}, {DEFAULT}"], "any order", id="any-order"),
    pytest.param("FORWARD", [f"{A}, {B}", A], "none", id="none"),
]


@pytest.mark.parametrize(("strategy", "versions", "expected"), CHANGES)
def test_every_format_of_check_has_the_clients_to_upgrade_first(
    tmp_path: Path, strategy: str, versions: Sequence[str], expected: str
) -> None:
    repository = make_project(tmp_path / "r", strategy, versions)
    code = 100 if expected == "none" else 0
    name = "persistent://shop/sales/orders"
    formats = ("text", "json", "markdown", "github", "sarif", "junit", "gitlab", "azure", "html")
    options = [word for form in formats for word in ("--format", f"{form}={form}.out")]
    schemactl(repository.path, "check", *options, code=code)
    reports = {form: (repository.path / f"{form}.out").read_text(encoding="utf-8") for form in formats}
    head, row = (line for line in reports["text"].splitlines() if line.startswith(("topic ", name)))
    assert row[head.index("upgrade first") :] == expected
    assert json.loads(reports["json"])["topics"][0]["upgrade_first"] == expected
    assert f"| {'**none**' if expected == 'none' else expected} |" in reports["markdown"]
    assert "| upgrade first |" in reports["markdown"]
    assert "upgrade first" in reports["html"]
    assert json.loads(reports["sarif"])["runs"][0]["properties"]["upgradeFirst"] == {name: expected}
    assert f'<property name="upgrade first" value="{expected}">' in reports["junit"]
    for form in ("github", "azure"):
        assert reports[form].rstrip().endswith(f"Upgrade first: {expected} ({name}).")
    descriptions = [entry["description"] for entry in json.loads(reports["gitlab"])]
    assert len(descriptions) == (expected == "none")
    assert all(description.endswith("\nUpgrade first: none") for description in descriptions)


def make_event(name: str, fields: str) -> str:
    return record(fields).replace("Order", name)


def test_each_kind_of_events_has_its_own_order_in_plan_and_reports(tmp_path: Path) -> None:
    targets = "targets: {prod: {registry: 'sqlite:prod.db'}}\n"
    repository = Scratch(tmp_path / "r")
    topic = "topic: shop/sales/events\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nkinds_compatibility: BACKWARD\nschemas:\n"
    kinds = "".join(f"  {key}: {{type: AVRO, definition: {key}.avsc}}\n" for key in ("opened", "closed"))
    repository.commit(
        {
            "schemactl.yaml": f"version: 1\nroots: [topics]\napproved: main\n{targets}",
            "topics/ns.yaml": "namespace: shop/sales\n",
            "topics/events.yaml": topic + kinds,
            "topics/opened.avsc": make_event("Opened", A),
            "topics/closed.avsc": make_event("Closed", f"{A}, {B}"),
        }
    )
    repository.flush()
    schemactl(repository.path, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
    (repository.path / "topics/opened.avsc").write_text(make_event("Opened", f"{A}, {C}"))
    (repository.path / "topics/closed.avsc").write_text(make_event("Closed", A))
    name = "persistent://shop/sales/events"
    expected = {f"{name}#opened": "any order", f"{name}#closed": "consumers"}
    options = [word for form in ("json", "sarif", "junit") for word in ("--format", f"{form}={form}.out")]
    schemactl(repository.path, "check", *options, code={0, 100})
    reports = {form: (repository.path / f"{form}.out").read_text() for form in ("json", "sarif", "junit")}
    orders = {f"{row['topic']}#{row['kind']}": row["upgrade_first"] for row in json.loads(reports["json"])["topics"]}
    assert orders == json.loads(reports["sarif"])["runs"][0]["properties"]["upgradeFirst"] == expected
    assert '<property name="upgrade first#opened" value="any order">' in reports["junit"]
    repository.git("commit", "-qam", "change both")
    plan = ("plan", "--target", "prod", "--format")
    assert json.loads(schemactl(repository.path, *plan, "json").out)["upgrade_first"] == expected
    assert "upgrade first for closed: consumers" in schemactl(repository.path, *plan, "text").out


@pytest.mark.parametrize(("strategy", "versions", "expected"), CHANGES[:3])
def test_a_plan_has_the_order_of_the_rollout_and_its_digest_does_not_depend_on_it(
    tmp_path: Path, strategy: str, versions: Sequence[str], expected: str
) -> None:
    targets = "targets: {prod: {registry: 'sqlite:prod.db'}}\n"
    repository = make_project(tmp_path / "r", strategy, versions, targets=targets)
    plan = ("plan", "--target", "prod", "--format")
    assert json.loads(schemactl(repository.path, *plan, "json").out)["upgrade_first"] == {}
    schemactl(repository.path, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
    repository.git("commit", "-qam", "b")
    rollout = json.loads(schemactl(repository.path, "rollout", "orders", "--base", "HEAD^", "--format", "json").out)
    assert rollout["order"].removesuffix(" first") == expected
    document = json.loads(schemactl(repository.path, *plan, "json").out)
    assert document["upgrade_first"] == {"persistent://shop/sales/orders": expected}
    for form in ("text", "markdown", "html"):
        assert f"upgrade first: {expected}" in schemactl(repository.path, *plan, form).out
    # A client that changes the order changes nothing on the registry.
    path = repository.path / "topics" / "orders.yaml"
    pinned = "clients: [{name: audit, role: reader, schema: 0, targets: [prod]}]\n"
    path.write_text(path.read_text(encoding="utf-8") + pinned, encoding="utf-8")
    repository.git("commit", "-qam", "audit")
    again = json.loads(schemactl(repository.path, *plan, "json").out)
    assert (again["digest"], len(again["steps"])) == (document["digest"], 1)


def test_the_order_is_one_for_all_targets_and_waived_errors_do_not_count(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FORWARD", [f"{A}, {B}", A])
    waive_rule(repository, "READER_FIELD_MISSING_DEFAULT_VALUE")
    report = json.loads(schemactl(repository.path, "check", "--format", "json", code=(0, 100)).out)
    code = 100 if report["errors"] else 0
    rollout = json.loads(schemactl(repository.path, "rollout", "orders", "--format", "json", code=code).out)
    orders = {topic["upgrade_first"] for topic in report["topics"]}
    assert orders == {{"no safe order": "none"}.get(rollout["order"], rollout["order"].removesuffix(" first"))}


def test_a_topic_without_a_new_version_has_no_order(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FULL", [A, f'{A[:-1]}, "doc": "x"}}'])
    [topic] = json.loads(schemactl(repository.path, "check", "--format", "json").out)["topics"]
    assert (topic["change"], topic["upgrade_first"]) == ("not stored", None)
