"""Effects of a change on declared clients are found in every file, and reported to the owners in every format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Files, Scratch

from schemactl.checks.check_report import CheckReport, ClientImpact, TopicCheck
from schemactl.core.catalog import Client
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.report.check import make_client_rows

PROJECT = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: FORWARD}\n"
CLIENTS = """\
clients:
  - {name: billing, team: payments, role: consumer, schema: 0, contact: "@acme/payments"}
  - {name: audit, team: risk, role: reader, schema: audit.avsc, contact: "risk @ acme <b>"}
  - {name: mail, team: crm, role: consumer}
  - {name: shop, team: web, role: producer, schema: 0..1}
"""


def record(*fields: str) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [json.loads(f"{{{field}}}") for field in fields]})


TARGETS = "targets: {dev: {registry: 'sqlite:dev.db'}, prod: {registry: 'sqlite:prod.db'}}\n"
ID = '"name": "id", "type": "string"'
NOTE = '"name": "note", "type": "string"'
OPTIONAL = '"name": "note", "type": "string", "default": ""'
ORDERS = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n" + CLIENTS


def make_repository(
    path: Path,
    clients: str = CLIENTS,
    versions: Sequence[str] = (record(ID, NOTE), record(ID, OPTIONAL)),
    strategy: str = "FORWARD",
) -> Scratch:
    """Make a repository with these versions: as default, the second makes `note` optional, so that a third can omit it."""
    repository = Scratch(path)
    project = PROJECT.replace("FORWARD", strategy)
    declared = ORDERS.replace(CLIENTS, clients)
    repository.commit({"schemactl.yaml": project, "topics/orders.yaml": declared, "topics/audit.avsc": record(ID)})
    for version in versions:
        repository.commit({"topics/orders.avsc": version})
    repository.flush()
    return repository


def check(repository: Scratch, code: int) -> dict[str, Any]:
    """Return the report of `check`, which must exit with this code."""
    report: dict[str, Any] = run_json(repository, "check", code=code)
    return report


def test_a_broken_client_is_reported_with_its_owner(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    repository.write({"topics/orders.avsc": record(ID)})
    printed = schemactl(repository, "check", code=100).out
    [block_of_client] = [block for block in printed.split("\n\n") if "CLIENT_BREAKS" in block]
    said, place = block_of_client.splitlines()[:2]
    new = "version 2 of persistent://shop/sales/orders"
    title = f"The consumer billing (team payments) is built with version 0 and cannot read messages of {new}"
    assert said == f"error[CLIENT_BREAKS]: {title}"
    assert place.startswith("  --> topics/orders.avsc:1:")
    assert (
        "= why      Order.note is gone, but readers of version 0 need it and have no default for it" in block_of_client
    )
    assert "= contact  @acme/payments" in block_of_client
    assert '= message  {"id": "", no note}' in block_of_client
    rows = [[*map(str.strip, line.split("  "))] for line in printed.splitlines() if "shop/sales/orders  " in line]
    meant = {row[0]: [cell for cell in row if cell][2:] for row in rows[-4:]}
    assert meant == {
        "crm": ["consumer", "latest (1)", "reads it"],
        "payments": ["consumer", "0", "cannot read it"],
        "risk": ["reader", "audit.avsc", "reads it"],
        "web": ["producer", "0..1", "is read"],
    }
    report = check(repository, code=100)
    [topic] = report["topics"]
    assert [(client["name"], client["versions"], client["fine"]) for client in topic["clients"]] == [
        ("mail", [1], True),
        ("billing", [0], False),
        ("audit", [], True),
        ("shop", [1, 0], True),
    ]


def test_the_next_check_accepts_the_way_out_of_a_break(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", "clients: [{name: billing, role: consumer, schema: 0}]\n")

    def fix(orders: str) -> str:
        repository.write({"topics/orders.avsc": orders})
        printed = schemactl(repository, "check", code=100).out
        text = printed[printed.index("CLIENT_BREAKS") :]
        return next(line for line in text.splitlines() if "= fix " in line)

    def approve(client: str) -> None:
        clients = f"clients: [{{name: billing, role: consumer{client}}}]\n"
        repository.write({"topics/orders.yaml": ORDERS.replace(CLIENTS, clients)})
        repository.git("commit", "-qm", "billing", "topics/orders.yaml")

    assert fix(record(ID)).endswith("; or bring the client to version 1 first, and merge it as a separate change.")
    # FORWARD also rejects this for consumers of the latest version.
    assert "; or " not in fix(record(OPTIONAL))
    approve(", schema: 1")
    repository.write({"topics/orders.avsc": record(ID)})
    schemactl(repository, "check")
    repository.git("commit", "-qam", "no note")
    approve(", schema: 0..2")
    repository.write({"schemactl.yaml": PROJECT.replace("FORWARD", "ALWAYS_COMPATIBLE")})
    repository.git("commit", "-qam", "nobody is protected")
    assert "; or declare the client without `schema`, so that it follows every version" in fix(record(NOTE))
    approve("")
    repository.write({"topics/orders.avsc": record(NOTE)})
    schemactl(repository, "check")


def test_clients_that_break_alike_have_one_fix_in_a_comment(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", CLIENTS + "  - {name: ledger, role: consumer, schema: 0}\n")
    repository.write({"topics/orders.avsc": record(ID)})
    comment = schemactl(repository, "check", "--format", "markdown", code=100).out
    assert "The consumer ledger is built with version 0" in comment
    assert "The consumer billing (team payments) is built with version 0" in comment
    assert comment.count("**Fix:** keep the field") == 1


def test_a_finding_is_for_the_targets_that_its_client_runs_on(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", CLIENTS.replace("schema: 0,", "schema: 0, targets: [prod],"))
    repository.commit({"schemactl.yaml": PROJECT + TARGETS})
    repository.write({"topics/orders.avsc": record(ID), "topics/audit.avsc": record(ID, NOTE)})
    report = check(repository, code=100)
    targets_by_owner = {
        finding["owner"]: finding["targets"] for finding in report["findings"] if finding["rule"] == "CLIENT_BREAKS"
    }
    assert targets_by_owner == {"@acme/payments": ["prod"], "risk @ acme <b>": ["dev", "prod"]}
    assert "billing (prod), persistent://shop/sales/orders" in schemactl(repository, "check", code=100).out


def test_a_definition_of_its_own_is_called_by_its_file(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    repository.write({"topics/audit.avsc": record(ID, '"name": "more", "type": "int"')})
    printed = schemactl(repository, "check").out
    assert "Order.more is gone, but readers of audit.avsc need it and have no default for it" in printed


def test_the_table_has_what_the_change_means_on_the_worst_of_all_targets() -> None:
    orders, billing = (TopicName.parse("shop/sales/orders"), Client("billing", "consumer", (0, 2), team="payments"))
    fine, broken = ClientImpact(billing, (0, 1)), ClientImpact(billing, (0, 1, 2), "b has no default")
    checks = [
        TopicCheck(orders, "new version", CompatibilityStrategy.FULL, "topic", clients=(impact,))
        for impact in (fine, broken, fine)
    ]
    report = CheckReport(Release.R4_0, "main", 1, topics=tuple(checks))
    assert [[cell.text for cell in row] for row in make_client_rows(report)[1:]] == [
        ["payments", f"billing, {orders}", "consumer", "0..2", "cannot read it"]
    ]


@pytest.mark.parametrize(
    ("contact", "is_reported"),
    [("@acme/payments", True), ("@acme", True), ("risk @acme", False), ("@acme/pay ments", False)],
)
def test_only_a_contact_that_is_a_user_or_a_team_is_mentioned(
    tmp_path: Path,
    contact: str,
    is_reported: bool,  # noqa: FBT001  a parameter of a test
) -> None:
    repository = make_repository(tmp_path / "r", CLIENTS.replace("@acme/payments", contact))
    repository.write({"topics/orders.avsc": record(ID)})
    comment = schemactl(repository, "check", "--format", "markdown", code=100).out
    assert (f"**Owner of the client:** {contact}" in comment) is is_reported


CHANGES: dict[str, tuple[Files, int, list[str]]] = {
    "only the file of a client that cannot read": (
        {"topics/audit.avsc": record(ID, '"name": "more", "type": "int"')}, 0, ["CLIENT_BREAKS"],
    ),
    "only the file of a client that can read": ({"topics/audit.avsc": record(ID, OPTIONAL)}, 0, []),
    "an unknown version": (
        {"topics/orders.yaml": ORDERS.replace("schema: 0,", "schema: 5,")}, 100, ["CLIENT_VERSION_UNKNOWN"],
    ),
    "another team": ({"topics/orders.yaml": ORDERS.replace("team: crm", "team: post")}, 0, []),
    "the file of a client is gone": ({"topics/audit.avsc": None}, 1, ["NOT_DECIDED"]),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "code", "rules"), CHANGES.values(), ids=CHANGES)
def test_a_client_is_judged_when_what_it_is_built_with_changes(
    tmp_path: Path, changed: Files, code: int, rules: Sequence[str]
) -> None:
    repository = make_repository(tmp_path / "r")
    # The second run uses the cache of the first.
    schemactl(repository, "check")
    repository.write(changed)
    for _ in range(2):
        assert [finding["rule"] for finding in check(repository, code)["findings"]] == rules


AMOUNT, REQUIRED = '"name": "amount", "type": "int", "default": 0', '"name": "amount", "type": "int"'
ON_LATEST = "{name: billing, role: consumer}"
ON_DEV, SHOP_ON_PROD = (
    "{name: billing, role: consumer, targets: [dev]}",
    "{name: shop, role: producer, targets: [prod]}",
)
SHOP, OLD_SHOP = "{name: shop, role: producer}", "{name: shop, role: producer, schema: 0}"
NEXT_BUILDS = {
    "a producer that is not upgraded first": (
        "BACKWARD", f"{ON_LATEST}, {OLD_SHOP}", ["READER_FIELD_MISSING_DEFAULT_VALUE", "CLIENT_BREAKS"],
    ),
    "consumers first": ("BACKWARD", f"{ON_LATEST}, {SHOP}", ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
    "a producer that stays behind": ("FORWARD", f"{ON_LATEST}, {OLD_SHOP}", ["CLIENT_BREAKS"]),
    "any order, and an old producer": ("ALWAYS_COMPATIBLE", f"{ON_LATEST}, {OLD_SHOP}", ["CLIENT_BREAKS"]),
    "any order": ("ALWAYS_COMPATIBLE", f"{ON_LATEST}, {SHOP}", ["CLIENT_BREAKS"]),
    "producers first": ("FORWARD", f"{ON_LATEST}, {SHOP}", []),
    "no declared producer": ("ALWAYS_COMPATIBLE", ON_LATEST, []),
    "no producer on the same target": ("ALWAYS_COMPATIBLE", f"{ON_DEV}, {SHOP_ON_PROD}", []),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "clients", "rules"), NEXT_BUILDS.values(), ids=NEXT_BUILDS)
def test_a_consumer_on_latest_is_judged_after_its_next_build(
    tmp_path: Path, strategy: str, clients: str, rules: Sequence[str]
) -> None:
    repository = make_repository(tmp_path / "r", f"clients: [{clients}]\n")
    project = PROJECT.replace("FORWARD", strategy) + TARGETS
    repository.commit({"schemactl.yaml": project, "topics/orders.avsc": record(ID)})
    repository.write({"topics/orders.avsc": record(ID, REQUIRED)})
    report = check(repository, code=100 if rules else 0)
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert list(dict.fromkeys(finding["rule"] for finding in errors if finding["verdict"] != "broker")) == rules
    fine_by_client = {client["name"]: client["fine"] for topic in report["topics"] for client in topic["clients"]}
    assert fine_by_client["billing"] is not bool(rules)


ON_V0, ON_FILE = "schema: 0", "schema: audit.avsc"
DAMAGES: dict[str, tuple[str, Files, list[str]]] = {
    "billing cannot read the approved version either": (ON_V0, {"topics/orders.avsc": record(ID, AMOUNT)}, ["note"]),
    "a further field that billing needs": (ON_V0, {"topics/orders.avsc": record(AMOUNT)}, ["error", "note"]),
    "the change repairs it": (ON_V0, {"topics/orders.avsc": record(ID, NOTE)}, []),
    "the change declares it": (
        ON_FILE, {"topics/audit.avsc": record(ID, NOTE), "topics/orders.avsc": record(ID, AMOUNT)}, ["error"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "changed", "severities"), DAMAGES.values(), ids=DAMAGES)
def test_damage_to_a_client_that_is_older_than_the_change_is_a_note(
    tmp_path: Path, schema: str, changed: Files, severities: Sequence[str]
) -> None:
    clients = f"clients: [{{name: billing, role: consumer, {schema}}}]\n"
    repository = make_repository(tmp_path / "r", clients, [record(ID, NOTE), record(ID)], "ALWAYS_COMPATIBLE")
    repository.write(changed)
    report = check(repository, code=100 if "error" in severities else 0)
    findings = [finding for finding in report["findings"] if finding["rule"] == "CLIENT_BREAKS"]
    assert [finding["severity"] for finding in findings] == severities
    assert [finding["predates_change"] for finding in findings] == [severity == "note" for severity in severities]


@pytest.mark.parametrize(
    ("symbols", "severities", "data"),
    [
        pytest.param(
            "ABD", ["note"], "compatible", id="v1 dropped C without a default, and a harmless change does not"
        ),
        pytest.param("A", ["error", "error"], "breaking", id="B is missing against v1, and B and C against v0"),
    ],
)
def test_a_break_that_the_latest_version_has_is_not_an_error_of_the_next_version(
    tmp_path: Path, symbols: str, severities: Sequence[str], data: str
) -> None:
    def make_status(symbols: str) -> str:
        return json.dumps({"type": "enum", "name": "Status", "symbols": [*symbols]})

    versions = [make_status("ABC"), make_status("AB")]
    repository = make_repository(tmp_path / "r", "", versions, "BACKWARD_TRANSITIVE")
    repository.write({"topics/orders.avsc": make_status(symbols)})
    report = check(repository, code=100 if "error" in severities else 0)
    findings = [finding for finding in report["findings"] if finding["rule"] == "MISSING_ENUM_SYMBOLS"]
    assert [finding["severity"] for finding in findings] == severities
    assert report["topics"][0]["data"] == data
