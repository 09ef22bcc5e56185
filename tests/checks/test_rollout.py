"""`schemactl rollout`: change, strategy and the builds of clients decide the safe order."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from command import run_json, schemactl
from scratch import Files, Scratch

pytestmark = pytest.mark.slow

READER = "READER_FIELD_MISSING_DEFAULT_VALUE"

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
AVRO = "{type: AVRO, definition: orders.avsc}"
SHOP = "{name: shop, team: web, role: producer}"
BILLING = "{name: billing, team: payments, role: consumer}"
PINNED = BILLING.replace("role", "schema: 0, role")
MAIL = "{name: mail, role: consumer, targets: [prod]}"


def make_project(
    path: Path,
    strategy: str,
    versions: Sequence[str],
    clients: str = "",
    targets: str = TARGETS,
    approved: Files = MappingProxyType({}),
) -> Scratch:
    """Make a project with these versions of a topic, each with the fields of a record; the last is not committed."""
    repository = Scratch(path)
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n{targets}"
    repository.commit(
        {
            "schemactl.yaml": project,
            "topics/orders.yaml": declare_topic(clients),
            "topics/orders.avsc": record(versions[0]),
            "topics/own.avsc": record(A),
            **approved,
        }
    )
    for version in versions[1:-1]:
        repository.commit({"topics/orders.avsc": record(version)})
    repository.write({"topics/orders.avsc": record(versions[-1])})
    return repository


def declare_topic(clients: str = "", name: str = "orders", more: str = "", schema: str = AVRO) -> str:
    """Return the declaration of a topic with these clients and `more` lines."""
    return f"topic: shop/sales/{name}\n{more}schema: {schema}\n" + (f"clients: [{clients}]\n" if clients else "")


def record(fields: str) -> str:
    return f'{{"type": "record", "name": "Order", "fields": [{fields}]}}'


def waive_rule(repository: Scratch, rule: str) -> None:
    broken = run_json(repository, "check", code=100)
    [fingerprint] = {finding["fingerprint"] for finding in broken["findings"] if finding["rule"] == rule}
    soon = str(datetime.now(UTC).date() + timedelta(days=30))
    schemactl(repository, "waive", fingerprint, "--reason", "x", "--until", soon, "--owner", "me")


class RolloutCase(NamedTuple):
    """A change that is pending, and its rollout.

    Attributes:
        versions: the fields of each version of orders; the last version is not approved.
        order: the safe order, or "no safe order", with which the command fails.
        steps: the kind and the clients of each step on prod.
        steps_before_prod: the steps on dev and on stage, if they are others.
        begin: the steps before those on targets.
        approved, change: files that are approved, or changed, in addition to the versions.
        waived: the rule of a finding that is waived.
        errors: the rules of the errors of the check.
        reasons: the beginning of each reason, where they are compared.
        values: other values of the report.
        text: a part of the report as text.
    """

    strategy: str
    versions: Sequence[str]
    order: str
    steps: Sequence[str] = ()
    begin: Sequence[str] = ("merge",)
    clients: str = ""
    topic: str = "orders"
    targets: str = TARGETS
    approved: Files = MappingProxyType({})
    change: Files = MappingProxyType({})
    waived: str = ""
    errors: Sequence[str] = ()
    reasons: Sequence[str] = ()
    values: Mapping[str, object] = MappingProxyType({})
    text: str = ""
    steps_before_prod: Sequence[str] = ()


CASES: dict[str, RolloutCase] = {
    "a required field is removed, which old consumers need": RolloutCase(
        "BACKWARD", [f"{A}, {B}", A], "consumers first", ["consumers mail billing", "apply", "producers shop"],
        clients=f"{SHOP}, {BILLING}, {MAIL}",
        steps_before_prod=["consumers billing", "apply", "producers shop"],
    ),
    "no client is declared": RolloutCase(
        "BACKWARD", [f"{A}, {B}", A], "consumers first", ["consumers", "apply", "producers"],
    ),
    "a client with a definition that is compatible with both versions needs no upgrade": RolloutCase(
        "BACKWARD", [f"{A}, {B}", A], "consumers first", ["consumers billing", "apply", "producers shop"],
        clients=f"{SHOP}, {BILLING}, {{name: audit, role: reader, schema: own.avsc}}",
    ),
    "a required field is added, which old messages do not have": RolloutCase(
        "FORWARD", [A, f"{A}, {B}"], "producers first", ["apply", "producers shop", "drain mail billing", "consumers mail billing"],
        clients=f"{SHOP}, {BILLING}, {MAIL}",
        steps_before_prod=["apply", "producers shop", "drain billing", "consumers billing"],
    ),
    "a field with a default is added": RolloutCase(
        "FULL", [A, f"{A}, {DEFAULT}"], "any order", ["apply", "producers shop", "consumers billing"],
        clients=f"{SHOP}, {BILLING}",
    ),
    "the only consumer is compatible since version 0": RolloutCase(
        "BACKWARD", [A, f"{A}, {DEFAULT}", f"{A}, {C}"], "any order", ["apply", "producers shop", "consumers audit"],
        clients=f"{SHOP}, {{name: audit, role: reader, schema: 0}}",
    ),
    "the strategy protects no client, and each order breaks one": RolloutCase(
        "ALWAYS_COMPATIBLE", [A, B], "no safe order", clients=f"{SHOP}, {BILLING}", errors=["CLIENT_BREAKS"],
    ),
    "reasons name the clients that break": RolloutCase(
        "ALWAYS_COMPATIBLE", [A, B], "no safe order",
        clients=f"{SHOP}, {{name: legacy, role: producer, schema: 0}}, {BILLING}",
        errors=["CLIENT_BREAKS", "CLIENT_BREAKS"],
        reasons=[
            "Version 1 cannot read messages that legacy wrote:",
            "Version 1 cannot read messages that shop (team web) wrote:",
            "billing (team payments) cannot read earlier messages once it has version 1:",
            "billing (team payments) cannot read version 1:",
        ],
    ),
    "the strategy does not allow the order": RolloutCase(
        "FORWARD", [f"{A}, {B}", A], "no safe order", errors=[READER, "BROKER_INCOMPATIBLE"],
    ),
    "a waived error does not count": RolloutCase(
        "FORWARD", [f"{A}, {B}", A], "consumers first", ["consumers", "apply", "producers"], waived=READER,
    ),
    "after a waived break brokers reject consumers under a transitive strategy": RolloutCase(
        "BACKWARD_TRANSITIVE", [A, f"{A}, {B}"], "no safe order", waived=READER,
        reasons=[
            "Under BACKWARD_TRANSITIVE a broker rejects consumers that are built with version 1 on prod, stage, dev.",
            "Version 1 cannot read messages that producers wrote:",
            "The latest version reads version 1.",
        ],
    ),
    "a new generation has no rollout even if it is waived": RolloutCase(
        "BACKWARD", [A, B], "no safe order",
        change={"topics/orders.yaml": declare_topic(f"{SHOP}, {BILLING}", more="generation: 2\n")},
        waived="NEW_GENERATION",
        reasons=["A new generation begins with version 2 on prod, stage, dev: no message may be left before, and no client."],
    ),
    "a client that the check protects is declared otherwise first": RolloutCase(
        "BACKWARD", [f"{A}, {B}", A], "consumers first", ["consumers billing", "apply", "producers shop"],
        begin=["declare billing", "merge"],
        clients=f"{SHOP}, {PINNED}",
        errors=["CLIENT_BREAKS"],
        text="so that they follow every version, or with a definition that can read both (`schema: FILE`)\n",
    ),
    "a client of a pair cannot have a definition of its own": RolloutCase(
        "BACKWARD", [f"{A}, {B}", A], "consumers first", ["consumers billing", "apply", "producers shop"],
        begin=["declare billing", "merge"],
        approved={
            "topics/orders.yaml": declare_topic(
                f"{SHOP}, {PINNED}", schema=f"{{type: KEY_VALUE, key: {{type: STRING}}, value: {AVRO}}}"
            )
        },
        errors=["CLIENT_BREAKS"],
        text="so that they follow every version\n",
    ),
    "a consumer that no broker lets in": RolloutCase(
        "ALWAYS_INCOMPATIBLE", [A, A], "no safe order",
        topic="carts",
        change={"topics/carts.yaml": declare_topic(f"{SHOP}, {BILLING}", "carts")},
        errors=["CLIENT_REFUSED"],
        reasons=[
            "CLIENT_REFUSED: The consumer billing (team payments) is built with the latest version, and a broker would not let it connect",
            "There are no messages yet;",
        ],
    ),
    "a renamed topic is compared with its former name": RolloutCase(
        "FORWARD", [A, f"{A}, {B}"], "producers first", ["apply", "producers shop", "drain billing", "consumers billing"],
        topic="carts",
        change={
            "topics/orders.yaml": declare_topic(f"{SHOP}, {BILLING}", "carts", more="renamed_from: shop/sales/orders\n")
        },
        values={"latest": None},
        reasons=[
            "Version 0 cannot read messages that producers wrote: Order.b is new",
            "Every declared consumer reads version 0.",
        ],
    ),
    "the strictest strategy of the targets counts": RolloutCase(
        "BACKWARD", [A, f"{A}, {DEFAULT}"], "any order", ["apply", "producers", "consumers"],
        targets=TARGETS.replace("after: [stage]", "after: [stage], overlays: prod.yaml"),
        approved={"prod.yaml": "topic: shop/sales/orders\nschema_compatibility_strategy: BACKWARD_TRANSITIVE\n"},
        values={"strategy": "BACKWARD_TRANSITIVE", "strategy_on": ["prod"]},
        text="BACKWARD_TRANSITIVE on prod\n",
    ),
    "a new topic in a project without targets": RolloutCase(
        "FULL", [A, A], "any order", ["apply", "producers", "consumers"],
        targets="",
        topic="carts",
        change={"topics/carts.yaml": declare_topic(name="carts")},
        text="schemactl plan --target TARGET --topic shop/sales/carts --detailed-exitcode",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rollout_follows_from_the_change_and_from_who_reads_it(tmp_path: Path, case: RolloutCase) -> None:
    repository = make_project(tmp_path / "r", case.strategy, case.versions, case.clients, case.targets, case.approved)
    repository.write(case.change)
    if case.waived:
        waive_rule(repository, case.waived)
    code = 100 if case.order == "no safe order" else 0
    rollout = ("rollout", case.topic)
    plan = run_json(repository, *rollout, code=code)
    assert plan["order"] == case.order
    assert bool(plan["fix"]) is (code == 100)
    assert {name: plan[name] for name in case.values} == case.values
    assert plan["reasons"]
    if case.reasons:
        reasons = [
            reason if begin.endswith(".") else reason[: len(begin)]
            for reason, begin in zip(plan["reasons"], case.reasons, strict=True)
        ]
        assert reasons == [*case.reasons]

    steps_by_target: dict[str | None, list[str]] = {}
    for step in plan["steps"]:
        clients = [client["name"] for client in step["clients"]]
        steps_by_target.setdefault(step["target"], []).append(" ".join([step["kind"], *clients]))
    step_targets = [step["target"] for step in plan["steps"]]
    assert step_targets == sorted(step_targets, key=[*steps_by_target].index), "the steps of a target are together"
    if case.steps:
        *other_targets, last_target = ["dev", "stage", "prod"] if case.targets else ["TARGET"]
        steps_before_prod = [*(case.steps_before_prod or case.steps)]
        assert [*steps_by_target.items()] == [
            (None, [*case.begin]),
            *((target, steps_before_prod) for target in other_targets),
            (last_target, [*case.steps]),
        ]
    else:
        assert steps_by_target == {}

    text = schemactl(repository, *rollout, code=code).out
    assert case.text in text
    for step in plan["steps"]:
        assert f"done when this exits with 0: {step['command']}" in text
    markdown = schemactl(repository, *rollout, "--format", "markdown", code=code).out
    assert markdown.count("- [ ] ") == len(plan["steps"])

    report = run_json(repository, "check", code=100 if case.errors else 0)
    errors = [finding for finding in report["findings"] if finding["severity"] == "error" and not finding["waiver"]]
    assert [finding["rule"] for finding in errors] == [*case.errors]
    expected = {"no safe order": "none"}.get(case.order, case.order.removesuffix(" first"))
    assert {topic["upgrade_first"] for topic in report["topics"] if topic["change"] != "removed"} == {expected}


def test_clients_of_an_embedded_registry_have_steps_without_a_command(tmp_path: Path) -> None:
    targets = TARGETS.replace("https://dev.example.com", "sqlite:dev.db")
    repository = make_project(tmp_path / "r", "FORWARD", [A, f"{A}, {B}"], f"{SHOP}, {BILLING}", targets)
    plan = run_json(repository, "rollout", "orders")
    steps = [(step["kind"], bool(step["command"])) for step in plan["steps"] if step["target"] == "dev"]
    assert steps == [("apply", True), ("producers", False), ("drain", False), ("consumers", False)]
    assert all(step["command"] for step in plan["steps"] if step["target"] == "prod")
    text = schemactl(repository, "rollout", "orders").out
    assert text.count("done when these clients run with it; an embedded registry does not know its clients") == 3
    assert "dev: upgrade billing (team payments) to version 1" in text
    markdown = schemactl(repository, "rollout", "orders", "--format", "markdown").out
    assert markdown.count("- [ ] ") == len(plan["steps"])
    assert "``````" not in markdown


def test_a_target_with_a_position_is_moved_before_the_version_is_registered(tmp_path: Path) -> None:
    targets = TARGETS.replace("https://dev.example.com", "sqlite:dev.db").replace(
        "'sqlite:dev.db'", "'sqlite:dev.db', promoted: refs/heads/promoted/dev"
    )
    repository = make_project(tmp_path / "r", "BACKWARD", [A, f"{A}, {DEFAULT}"], targets=targets)
    repository.git("branch", "promoted/dev")
    plan = run_json(repository, "rollout", "orders")
    [step, *_] = [step for step in plan["steps"] if step["target"] == "dev"]
    assert step["text"].startswith("register version 1: schemactl promote dev --to main, the push that it prints, and")
    repository.git("commit", "-qam", "b")
    done = shlex.split(step["command"])[1:]
    schemactl(repository, *done, code=2)
    schemactl(repository, "apply", "--target", "dev", "--auto-approve", "--create-tenants")
    # Only version 0 was approved before the position of the target.
    schemactl(repository, *done, code=2)
    schemactl(repository, "promote", "dev", "--to", "main")
    schemactl(repository, "apply", "--target", "dev", "--auto-approve")
    schemactl(repository, *done)


def test_nothing_is_planned_where_nothing_is_pending(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD", [A, A])
    nothing = "persistent://shop/sales/orders: no change of its schema is pending.\n"
    assert schemactl(repository, "rollout", "orders").out == nothing
    repository.write({"topics/orders.avsc": record(f"{A}, {DEFAULT}")})
    repository.git("commit", "-qam", "b")
    assert schemactl(repository, "rollout", "orders").out == nothing
    assert "Any order is safe." in schemactl(repository, "rollout", "orders", "--base", "HEAD^").out
    assert schemactl(repository, "rollout", "carts", code=64).out == ""


NO_VERSION: dict[str, tuple[Files, str, str]] = {
    "only the doc differs": ({}, "not stored", "Pulsar does not compare the changed parts"),
    "it returns to an older version": (
        {"topics/orders.avsc": record(A)}, "older version", "it has an older version's schema again",
    ),
    "its schema is removed": (
        {"topics/orders.yaml": "topic: shop/sales/orders\n"}, "schema removed", "its schema was removed",
    ),
    "its declaration is removed": ({"topics/orders.yaml": None}, "removed", "it is no longer declared"),
}  # fmt: skip
"""The files of the change, its name in the report of `check`, and the reason of `rollout`."""


@pytest.mark.parametrize(("files", "change", "reason"), NO_VERSION.values(), ids=NO_VERSION)
def test_a_change_that_adds_no_version_has_no_plan_and_no_order(
    tmp_path: Path, files: Files, change: str, reason: str
) -> None:
    repository = make_project(tmp_path / "r", "ALWAYS_COMPATIBLE", [A, B, f'{B[:-1]}, "doc": "b"}}'])
    repository.write(files)
    assert run_json(repository, "rollout", "orders") == {
        "format_version": 1,
        "topic": "persistent://shop/sales/orders",
        "kind": None,
        "pending": False,
    }
    assert reason in schemactl(repository, "rollout", "orders").out
    [topic] = run_json(repository, "check")["topics"]
    assert (topic["change"], topic["upgrade_first"]) == (change, None)


def test_a_topic_that_goes_leaves_its_clients_named(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "BACKWARD", [A, A], f"{SHOP}, {BILLING}")
    repository.write({"topics/orders.yaml": None})
    assert (
        "Its declared clients: the producer shop (team web), the consumer billing (team payments).\n"
        in schemactl(repository, "check").out
    )


def test_the_report_has_the_number_after_a_rebase_merge(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "FULL", [A, A], targets="targets: {prod: {registry: 'sqlite:prod.db'}}\n")
    repository.git("checkout", "-qb", "feature")
    for fields in (f"{A}, {DEFAULT}", f"{A}, {DEFAULT}, {C}"):
        repository.write({"topics/orders.avsc": record(fields)})
        repository.git("commit", "-qam", fields)
    arguments = ("rollout", "orders", "--base", "main")
    text = schemactl(repository, *arguments).out
    assert "orders: version 0 to version 1 (2 after a rebase merge), FULL" in text
    assert "after a rebase merge version 2: add 1 to the number in each command" in text
    plan = run_json(repository, *arguments)
    assert (plan["version"], plan["version_if_rebased"]) == (1, 2)
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "feature")
    assert schemactl(repository, "show", "orders@2").out == record(f"{A}, {DEFAULT}, {C}") + "\n"
    printed = schemactl(repository, "rollout", "orders", "--base", "HEAD^").out
    assert "orders: version 1 to version 2, FULL" in printed


def test_names_are_hostile_in_no_format(tmp_path: Path) -> None:
    hostile = '{name: "<img>| [x](y) @all; $(id)", role: consumer}'
    repository = make_project(tmp_path / "r", "BACKWARD", [f"{A}, {B}", A], hostile)
    markdown = schemactl(repository, "rollout", "orders", "--format", "markdown").out
    # A fenced block is text, regardless of its content.
    markdown = re.sub(r"```sh.*?```", "", markdown, flags=re.DOTALL)
    assert "<img>" not in markdown
    assert "[x](y)" not in markdown
    assert "--client '<img>| [x](y) @all; $(id)'" in schemactl(repository, "rollout", "orders").out


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
    schemactl(repository, "check", *options, code=code)
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
    schemactl(repository, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
    (repository.path / "topics/opened.avsc").write_text(make_event("Opened", f"{A}, {C}"))
    (repository.path / "topics/closed.avsc").write_text(make_event("Closed", A))
    name = "persistent://shop/sales/events"
    expected = {f"{name}#opened": "any order", f"{name}#closed": "consumers"}
    options = [word for form in ("json", "sarif", "junit") for word in ("--format", f"{form}={form}.out")]
    schemactl(repository, "check", *options, code={0, 100})
    reports = {form: (repository.path / f"{form}.out").read_text() for form in ("json", "sarif", "junit")}
    orders = {f"{row['topic']}#{row['kind']}": row["upgrade_first"] for row in json.loads(reports["json"])["topics"]}
    assert orders == json.loads(reports["sarif"])["runs"][0]["properties"]["upgradeFirst"] == expected
    assert '<property name="upgrade first#opened" value="any order">' in reports["junit"]
    repository.git("commit", "-qam", "change both")
    plan = ("plan", "--target", "prod", "--format")
    assert json.loads(schemactl(repository, *plan, "json").out)["upgrade_first"] == expected
    assert "upgrade first for closed: consumers" in schemactl(repository, *plan, "text").out


@pytest.mark.parametrize(("strategy", "versions", "expected"), CHANGES[:3])
def test_a_plan_has_the_order_of_the_rollout_and_its_digest_does_not_depend_on_it(
    tmp_path: Path, strategy: str, versions: Sequence[str], expected: str
) -> None:
    targets = "targets: {prod: {registry: 'sqlite:prod.db'}}\n"
    repository = make_project(tmp_path / "r", strategy, versions, targets=targets)
    plan = ("plan", "--target", "prod", "--format")
    assert json.loads(schemactl(repository, *plan, "json").out)["upgrade_first"] == {}
    schemactl(repository, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
    repository.git("commit", "-qam", "b")
    rollout = run_json(repository, "rollout", "orders", "--base", "HEAD^")
    assert rollout["order"].removesuffix(" first") == expected
    document = json.loads(schemactl(repository, *plan, "json").out)
    assert document["upgrade_first"] == {"persistent://shop/sales/orders": expected}
    for form in ("text", "markdown", "html"):
        assert f"upgrade first: {expected}" in schemactl(repository, *plan, form).out
    # A client that changes the order changes nothing on the registry.
    path = repository.path / "topics" / "orders.yaml"
    pinned = "clients: [{name: audit, role: reader, schema: 0, targets: [prod]}]\n"
    path.write_text(path.read_text(encoding="utf-8") + pinned, encoding="utf-8")
    repository.git("commit", "-qam", "audit")
    again = json.loads(schemactl(repository, *plan, "json").out)
    assert (again["digest"], len(again["steps"])) == (document["digest"], 1)
