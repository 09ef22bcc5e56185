"""Removed topics are reported at their old location without marking a current line; renames must be declared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\nseverities: {DELETED_TOPIC: error}\n"
CLICKS = "topic: shop/web/clicks\nschema: {type: STRING}\n"
VIEWS = "topic: shop/web/views\nschema: {type: STRING}\n"


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    """Approve two topics in one file, and remove the first, so that the second moves to its line."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"project/schemactl.yaml": PROJECT, "project/topics/web.yaml": f"{CLICKS}---\n{VIEWS}"})
    scratch.write({"project/topics/web.yaml": VIEWS})
    return scratch


PLACE = "project/topics/web.yaml:1:8 before the change (main (COMMIT))"
PROJECT_FILE = {"uri": "project/schemactl.yaml"}
MARKS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "text": (lambda report: f" {PLACE}" in report, True),
    "markdown": (lambda report: "1:8 before the change (main (COMMIT))</code>, rule [DELETED_TOPIC](" in report, True),
    "github": (
        lambda report: (report.startswith("::error title=DELETED_TOPIC::"), f"%0APlace: {PLACE}" in report.splitlines()[0]),
        (True, True),
    ),
    "gitlab": (
        lambda report: [(issue["location"], PLACE in issue["description"]) for issue in json.loads(report)],
        [({"path": "project/schemactl.yaml", "lines": {"begin": 1}}, True)],
    ),
    "sarif": (
        lambda report: [
            ([location["physicalLocation"] for location in result["locations"]], PLACE in result["message"]["text"])
            for result in json.loads(report)["runs"][0]["results"]
        ],
        [([{"artifactLocation": PROJECT_FILE}], True)],
    ),
    "junit": (
        lambda report: [{*case.attrib} for case in ET.fromstring(report).iter("testcase")],  # noqa: S314  our own output
        [{"classname", "name"}],
    ),
    "json": (
        lambda report: [
            {key: finding[key] for key in ("file", "line", "column", "before_change")}
            for finding in json.loads(report)["findings"]
        ],
        [{"file": "project/topics/web.yaml", "line": 1, "column": 8, "before_change": True}],
    ),
}  # fmt: skip
"""How to read the mark of the removed topic from the report in each format, and the expected mark."""


@pytest.mark.parametrize(("name", "read", "expected"), [(name, *mark) for name, mark in MARKS.items()], ids=MARKS)
def test_a_removed_topic_is_at_its_line_before_the_change_and_marks_no_current_line(
    shop_repository: Scratch, name: str, read: Callable[[str], Any], expected: Any
) -> None:
    report = schemactl(shop_repository.path / "project", "check", "--format", name, code=100).out
    commit_id = shop_repository.git("rev-parse", "--short=9", "HEAD")
    assert read(report.replace(commit_id, "COMMIT")) == expected


def test_policies_of_a_removed_namespace_are_shown_at_their_old_location(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    space = "namespace: shop/web\nschema_validation_enforced: true\n"
    scratch.commit({"schemactl.yaml": PROJECT, "topics/web.yaml": f"{space}---\n{VIEWS}"})
    scratch.write({"topics/web.yaml": VIEWS})
    printed = schemactl(scratch, "check").out
    assert "topics/web.yaml:1:12 before the change (main" in printed


def check_rename(tmp_path: Path, definition: str, more: str = "", strategy: str = "BACKWARD") -> dict[str, Any]:
    """Report on a change that replaces the topic orders with all-orders, which has this definition."""
    scratch = Scratch(tmp_path / "r")
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n"
    before = {"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id", "note", "city")}
    scratch.commit({"schemactl.yaml": project, **before})
    scratch.write({"topics/orders.yaml": write_declaration("shop/sales/all-orders", more=more)})
    scratch.write({"topics/orders.avsc": definition})
    report: dict[str, Any] = run_json(scratch, "check", code=(0, 100))
    return {finding["rule"]: finding for finding in report["findings"]}


SAME = record("id", "note", "city")
BREAKING = record("id", "note", "town")


ORDERS_RENAMED = "renamed_from: persistent://shop/sales/orders"
RENAMES: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "the same definition": (SAME, "", "BACKWARD", {"RENAME_UNDECLARED": "warning"}),
    "a definition that breaks": (BREAKING, "", "BACKWARD", {"RENAME_UNDECLARED": "error"}),
    "a definition that breaks where the strategy protects nothing": (
        BREAKING, "", "ALWAYS_COMPATIBLE", {"RENAME_UNDECLARED": "warning"},
    ),
    "another namespace of the record": (
        SAME.replace('"Order"', '"Order", "namespace": "other"'), "", "BACKWARD", {"RENAME_UNDECLARED": "warning"},
    ),
    "another type of a field": (record("id", "note", city=0), "", "BACKWARD", {"RENAME_UNDECLARED": "error"}),
    "other fields": (record("price", "day", "place"), "", "BACKWARD", {}),
    "another record": (SAME.replace('"Order"', '"Refund"'), "", "BACKWARD", {}),
    "a declared rename that breaks": (
        BREAKING, f"{ORDERS_RENAMED}\n", "BACKWARD", {"READER_FIELD_MISSING_DEFAULT_VALUE": "error"},
    ),
}  # fmt: skip
"""The definition of the new topic, more lines of its declaration, the strategy, and severities by rule."""


@pytest.mark.parametrize(("definition", "more", "strategy", "expected"), RENAMES.values(), ids=RENAMES)
def test_a_similar_new_topic_is_an_undeclared_rename(
    tmp_path: Path, definition: str, more: str, strategy: str, expected: dict[str, str]
) -> None:
    findings = check_rename(tmp_path, definition, more, strategy)
    severities = {rule: finding["severity"] for rule, finding in findings.items()}
    assert severities == expected | ({} if more else {"DELETED_TOPIC": "warning"})
    if "RENAME_UNDECLARED" in findings:
        assert "topics/orders.yaml:1:8 before the change" in findings["RENAME_UNDECLARED"]["message"]
        assert f"`{ORDERS_RENAMED}`" in findings["RENAME_UNDECLARED"]["fix"]


def test_each_of_several_renamed_topics_is_paired_with_its_own(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    fields = {"orders": ("id", "a", "b", "c"), "bills": ("id", "a", "b", "x")}
    scratch.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    scratch.commit({f"topics/{name}.yaml": write_declaration(f"shop/sales/{name}", f"{name}.avsc") for name in fields})
    scratch.commit({f"topics/{name}.avsc": record(*names) for name, names in fields.items()})
    scratch.write({f"topics/{name}.yaml": write_declaration(f"shop/all/{name}", f"{name}.avsc") for name in fields})
    report = run_json(scratch, "check")
    fixes = {
        finding["topic"]: finding["fix"] for finding in report["findings"] if finding["rule"] == "RENAME_UNDECLARED"
    }
    assert set(fixes) == {"persistent://shop/sales/bills", "persistent://shop/sales/orders"}
    for topic, fix in fixes.items():
        assert f"`renamed_from: {topic}`" in fix


def test_a_topic_that_was_to_be_removed_is_noted_in_every_run(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    over = f"{CLICKS}deprecated: {{since: 2019-01-01, remove_after: 2020-01-01, use: shop/web/views}}\n"
    scratch.commit({"schemactl.yaml": PROJECT, "topics/clicks.yaml": over, "topics/views.yaml": VIEWS})
    # The second run reads the file from the cache of the first.
    for _ in range(2):
        assert "1 note: REMOVAL_OVERDUE (clicks)." in schemactl(scratch, "check", "--strict").out
        printed = schemactl(scratch, "check", "--strict", "--notes").out
        assert re.search(r"note\[REMOVAL_OVERDUE\]: .*\n  --> topics/clicks.yaml:3:47\n", printed)
        assert "was to be removed after 2020-01-01\n" in printed
        assert "= why      Use persistent://shop/web/views instead.\n" in printed
    assert "REMOVAL" not in schemactl(scratch, "check", "--topic", "views").out


CONSUMER = "clients: [{name: billing, role: consumer, schema: 0}]\n"


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (CONSUMER, "The consumer billing is built with version 0"),
        ("", "The consumer billing, which this change removes or declares otherwise, is built"),
        (CONSUMER.replace("0", "1"), "which this change removes or declares otherwise"),
        (CONSUMER.replace("billing", "audit"), "The consumer audit is built with version 0"),
    ],
)
def test_a_client_that_the_change_removes_is_checked_as_well(tmp_path: Path, after: str, words: str) -> None:
    scratch = Scratch(tmp_path / "r")
    project = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: FORWARD}\n"
    before = {"topics/orders.yaml": write_declaration(more=CONSUMER), "topics/orders.avsc": record("id", "note")}
    scratch.commit({"schemactl.yaml": project, **before})
    optional = record("id", "note").replace('"note", "type": "string"', '"note", "type": "string", "default": ""')
    scratch.commit({"topics/orders.avsc": optional})
    scratch.write({"topics/orders.avsc": record("id"), "topics/orders.yaml": write_declaration(more=after)})
    scratch.git("add", "-A")
    printed = schemactl(scratch, "check", "--staged", code=100).out
    assert "CLIENT_BREAKS" in printed
    assert words in printed
    scratch.git("rm", "-qf", "topics/orders.yaml", "topics/orders.avsc")
    assert "CLIENT_BREAKS" not in schemactl(scratch, "check", "--staged", code=(0, 1)).out
