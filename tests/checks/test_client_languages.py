"""The language of a declared client decides how `check`, `rollout` and the tables of who reads whom judge it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch

pytestmark = pytest.mark.slow

Json = Any

BILLING = "{name: billing, team: payments, role: consumer, language: %s}"


def make_record(*fields: Json) -> Json:
    """Make the definition of a message."""
    return {"type": "record", "name": "Order", "fields": list(fields)}


def make_field(name: str, schema: Json, **more: Json) -> Json:
    """Make a field."""
    return {"name": name, "type": schema, **more}


ID = make_field("id", "string")
INT, LONG = make_record(ID, make_field("x", "int")), make_record(ID, make_field("x", "long"))
TEXT = make_record(ID, make_field("x", "string"))
OPTIONAL = make_record(ID, make_field("x", ["null", "string"], default=None))
NEW = make_record(ID, make_field("x", "string"), make_field("y", "string", default="NEW"))
RENAMED = make_record(ID, make_field("y", "string", aliases=["x"]))
LINE = make_record(make_field("line", {"type": "record", "name": "Line", "fields": []}))
ROW = make_record(make_field("line", {"type": "record", "name": "Row", "fields": []}))
SYMBOLS = make_record(make_field("x", {"type": "enum", "name": "E", "symbols": ["A", "B"]}))
FEWER = make_record(make_field("x", {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}))

BREAKS, UNAPPLIED = "CLIENT_BREAKS error", "DEFAULT_NOT_APPLIED warning"


def make_repository(
    path: Path, definitions: list[Json], client: str, strategy: str = "BACKWARD", type_: str = "AVRO"
) -> Scratch:
    """Make a repository whose topic has all definitions but the last, which is in the working tree alone."""
    repository = Scratch(path)
    declaration = f"topic: shop/sales/orders\nclients: [{client}]\nschema: {{type: {type_}, definition: orders.avsc}}\n"
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n"
    repository.commit({"schemactl.yaml": project, "topics/orders.yaml": declaration})
    for definition in definitions[:-1]:
        repository.commit({"topics/orders.avsc": json.dumps(definition)})
    repository.write({"topics/orders.avsc": json.dumps(definitions[-1])})
    return repository


@pytest.mark.parametrize(
    ("definitions", "language", "strategy", "type_", "expected"),
    [
        # The specification reads these, and Go does not.
        ([INT, LONG], "go", "BACKWARD", "AVRO", [BREAKS]),
        ([INT, LONG], "Golang", "BACKWARD", "AVRO", [BREAKS]),
        ([INT, LONG], "GO", "BACKWARD_TRANSITIVE", "AVRO", [BREAKS]),
        ([INT, LONG], "go", "ALWAYS_COMPATIBLE", "AVRO", [BREAKS]),
        ([LONG, INT], "go", "FORWARD", "AVRO", [BREAKS]),
        ([TEXT, OPTIONAL], "go", "BACKWARD", "AVRO", [BREAKS]),
        ([TEXT, RENAMED], "go", "BACKWARD", "AVRO", [BREAKS]),
        ([SYMBOLS, FEWER], "go", "BACKWARD", "AVRO", [BREAKS]),
        ([TEXT, NEW], "go", "BACKWARD", "AVRO", [UNAPPLIED]),
        # Under FORWARD it is the old reader that reads the new messages, and it ignores the field.
        ([TEXT, NEW], "go", "FORWARD", "AVRO", []),
        ([NEW, TEXT], "go", "FORWARD", "AVRO", [UNAPPLIED]),
        # Go reads these, and the specification does not.
        ([LINE, ROW], "go", "BACKWARD", "AVRO", ["NAME_MISMATCH warning"]),
        # An earlier version counts under a transitive strategy, unless the latest version has the same.
        (
            [INT, LONG, make_record(ID, make_field("x", "long"), make_field("n", ["null", "int"], default=None))],
            "go",
            "BACKWARD_TRANSITIVE",
            "AVRO",
            [],
        ),
        # Python resolves as the specification says, and looks for the names of inner records.
        ([INT, LONG], "python", "BACKWARD", "AVRO", []),
        ([TEXT, OPTIONAL], "Python", "BACKWARD", "AVRO", []),
        ([TEXT, RENAMED], "python", "BACKWARD", "AVRO", []),
        ([TEXT, NEW], "python", "BACKWARD", "AVRO", []),
        ([LINE, ROW], "python", "BACKWARD", "AVRO", ["NAME_MISMATCH warning", BREAKS]),
        # Other clients read as Java does.
        ([INT, LONG], "java", "BACKWARD", "AVRO", []),
        ([TEXT, NEW], "java", "BACKWARD", "AVRO", []),
        ([INT, LONG], "''", "BACKWARD", "AVRO", None),
        # JSON is read by the struct or class alone.
        ([INT, LONG], "go", "BACKWARD", "JSON", []),
        ([TEXT, NEW], "go", "BACKWARD", "JSON", ["DEFAULT_NOT_APPLIED warning", UNAPPLIED]),
        ([TEXT, NEW], "python", "BACKWARD", "JSON", ["DEFAULT_NOT_APPLIED warning"]),
        # The strategy's own finding is at the same place.
        ([TEXT, RENAMED], "go", "BACKWARD", "JSON", ["JSON_UNREADABLE error"]),
        ([TEXT, RENAMED], "python", "BACKWARD", "JSON", ["JSON_UNREADABLE error"]),
    ],
)
def test_a_consumer_is_judged_by_its_language(
    tmp_path: Path, definitions: list[Json], language: str, strategy: str, type_: str, expected: list[str] | None
) -> None:
    client = BILLING % language
    if expected is None:
        client, expected = client.replace(", language: ''", ""), []
    repository = make_repository(tmp_path / "r", definitions, client, strategy, type_)
    code = 100 if any(rule.endswith("error") for rule in expected) else 0
    report = run_json(repository, "check", code=code)
    assert sorted(f"{finding['rule']} {finding['severity']}" for finding in report["findings"]) == sorted(expected)


def test_the_finding_names_the_language_the_place_and_a_message(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", [INT, LONG], BILLING % "go")
    printed = schemactl(repository, "check", code=100).out
    [block] = [block for block in printed.split("\n\n") if "CLIENT_BREAKS" in block]
    lines = [line.strip() for line in block.splitlines()]
    assert lines[:2] == [
        "error[CLIENT_BREAKS]: The consumer billing (team payments) in Go is built with version 1 of persistent://shop/sales/orders and cannot read messages of version 0",
        "--> topics/orders.avsc:1:104",
    ]
    assert [line.partition("= ")[2] for line in lines if re.match("= (why|message|result)", line)] == [
        "why      Order.x: int is written, which Go's client does not read as long of the new schema, because it decodes with the writer's definition and promotes nothing.",
        'message  {"id": "1", "x": 1} (3 bytes)',
        "result   Go's client fails: int64 is unsupported for Avro int",
    ]


@pytest.mark.parametrize(
    ("definitions", "client", "expected"),
    [
        # A consumer that has version 0 must read the new messages.
        ([TEXT, TEXT, OPTIONAL], "{name: billing, role: consumer, language: go, schema: 0}", [BREAKS]),
        ([TEXT, NEW], "{name: billing, role: consumer, language: go, schema: 0}", []),
        ([NEW, TEXT], "{name: billing, role: consumer, language: go, schema: 0}", [UNAPPLIED]),
        # A producer's language does not count, the languages of its readers do.
        ([INT, LONG], "{name: shop, role: producer, language: go, schema: 0}", []),
        (
            [INT, LONG],
            "{name: shop, role: producer, schema: 0}, {name: billing, role: consumer, language: go}",
            [BREAKS, BREAKS],
        ),
    ],
)
def test_a_client_with_a_version_is_judged_by_its_language(
    tmp_path: Path, definitions: list[Json], client: str, expected: list[str]
) -> None:
    repository = make_repository(tmp_path / "r", definitions, client)
    code = 100 if BREAKS in expected else 0
    report = run_json(repository, "check", code=code)
    assert [f"{finding['rule']} {finding['severity']}" for finding in report["findings"]] == expected


@pytest.mark.parametrize(
    ("definitions", "language", "order"),
    [
        ([INT, LONG], "java", "consumers first"),
        ([INT, LONG], "go", "no safe order"),
        ([TEXT, NEW], "go", "any order"),
        ([TEXT, OPTIONAL], "go", "no safe order"),
        ([TEXT, OPTIONAL], "python", "consumers first"),
        ([SYMBOLS, FEWER], "go", "producers first"),
    ],
)
def test_a_rollout_has_the_order_of_the_language(
    tmp_path: Path, definitions: list[Json], language: str, order: str
) -> None:
    repository = make_repository(tmp_path / "r", definitions, BILLING % language)
    code = 100 if order == "no safe order" else 0
    report = run_json(repository, "rollout", "orders", code=code)
    assert report["order"] == order


def test_each_language_has_a_table_of_who_reads_whom(tmp_path: Path) -> None:
    clients = f"{BILLING % 'go'}, {{name: audit, role: reader, language: java}}, {{name: mail, role: reader, language: python}}"
    repository = make_repository(tmp_path / "r", [INT, LONG], clients)
    page = schemactl(repository, "check", "--format", "html", code=100).out
    captions = [part.partition("</caption>")[0] for part in page.split("<caption>")[1:] if "writer of a column" in part]
    readers = [caption.partition("Does the ")[2].partition(" of a row")[0] for caption in captions]
    assert sorted(readers) == ["reader", "reader in Go", "reader in Python"]
    repository.git("commit", "-qam", "long")
    schemactl(repository, "site", "--out", str(tmp_path / "site"))
    [topic] = [path.read_text() for path in (tmp_path / "site").rglob("orders.html")]
    assert topic.count("In Go: rows are reader versions") == 1
    assert topic.count("In Python: rows are reader versions") == 1
    assert "Go's client does not read as long" in html.unescape(topic)


def test_a_change_cannot_hide_a_break_by_another_language(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", [INT, LONG], BILLING % "go")
    for replacement in ("java", "cobol"):
        text = (repository.path / "topics/orders.yaml").read_text().replace("language: go", f"language: {replacement}")
        (repository.path / "topics/orders.yaml").write_text(text)
        report = run_json(repository, "check", code=100)
        [finding] = [finding for finding in report["findings"] if finding["rule"] == "CLIENT_BREAKS"]
        assert "which this change removes or declares otherwise" in finding["message"]
        repository.git("checkout", "-q", "topics/orders.yaml")


def test_a_language_that_is_declared_later_is_a_warning(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", [INT, LONG, LONG], BILLING % "java")
    path = repository.path / "topics/orders.yaml"
    path.write_text(path.read_text().replace("language: java", "language: go"))
    report = run_json(repository, "check")
    assert [f"{finding['rule']} {finding['severity']}" for finding in report["findings"]] == ["CLIENT_BREAKS warning"]
    repository.git("commit", "-qam", "go")
    # A later change is judged only by its own differences.
    wider = make_record(ID, make_field("x", "long"), make_field("n", ["null", "int"], default=None))
    repository.write({"topics/orders.avsc": json.dumps(wider)})
    assert run_json(repository, "check")["findings"] == []


def test_the_report_has_what_a_client_reads_once_it_is_upgraded(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", [SYMBOLS, FEWER], BILLING % "go")
    report = run_json(repository, "check", code=100)
    [client] = report["topics"][0]["clients"]
    assert (client["fine"], client["reason"]) == (False, None)
    assert client["unread"].startswith("Order.x: messages may hold B")
    assert "cannot read earlier messages" in schemactl(repository, "check", code=100).out


def test_show_has_what_each_language_reads(tmp_path: Path) -> None:
    clients = f"{BILLING % 'go'}, {{name: audit, role: reader, language: java}}, {{name: mail, role: reader, language: python}}"
    repository = make_repository(tmp_path / "r", [INT, LONG, LONG], clients)
    lines = [line.strip() for line in schemactl(repository, "show", "orders@1").err.splitlines()]
    assert "reads versions 0-1" in lines
    assert "a consumer in Go reads version 1" in lines
    [gap] = [line for line in lines if line.startswith("a consumer in Go cannot read version 0")]
    assert lines[lines.index(gap) + 1].startswith("CLIENT_BREAKS: Order.x: int is written, which Go's client")
    assert "a consumer in Python reads versions 0-1" in lines
    report = run_json(repository, "show", "orders@1")
    unreadable = report["unreadable_by_language"]
    assert [gap["versions"] for gap in unreadable["go"]] == [[0]]
    assert unreadable["python"] == []
