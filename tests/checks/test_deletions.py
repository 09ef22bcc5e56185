"""Removed topics are reported at their old location without marking a current line; renames must be declared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import schemactl
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


def read_report(shop: Scratch, name: str) -> str:
    """Return the report in that format."""
    return schemactl(shop.path / "project", "check", "--format", name, code=100).out


def test_people_are_shown_the_line_before_the_change(shop_repository: Scratch) -> None:
    at = shop_repository.git("rev-parse", "--short=9", "HEAD")
    assert f"project/topics/web.yaml:1:8 before the change (main ({at}))" in read_report(shop_repository, "text")
    assert f"1:8 before the change (main ({at}))</code>, rule [DELETED_TOPIC](" in read_report(
        shop_repository, "markdown"
    )


def test_github_marks_no_line_of_the_file(shop_repository: Scratch) -> None:
    command = read_report(shop_repository, "github").splitlines()[0]
    assert command.startswith("::error title=DELETED_TOPIC::")
    assert "%0APlace: project/topics/web.yaml:1:8 before the change (main (" in command


def test_gitlab_marks_the_project_file(shop_repository: Scratch) -> None:
    (issue,) = json.loads(read_report(shop_repository, "gitlab"))
    assert issue["location"] == {"path": "project/schemactl.yaml", "lines": {"begin": 1}}
    assert "project/topics/web.yaml:1:8 before the change" in issue["description"]


def test_code_scanning_marks_the_project_file_and_no_line(shop_repository: Scratch) -> None:
    (result,) = json.loads(read_report(shop_repository, "sarif"))["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "project/schemactl.yaml"}}
    assert "project/topics/web.yaml:1:8 before the change" in result["message"]["text"]


def test_a_test_report_names_no_line(shop_repository: Scratch) -> None:
    (case,) = ET.fromstring(read_report(shop_repository, "junit")).iter("testcase")  # noqa: S314  our own output
    assert set(case.attrib) == {"classname", "name"}


def test_json_has_the_place_and_that_it_is_gone(shop_repository: Scratch) -> None:
    (finding,) = json.loads(read_report(shop_repository, "json"))["findings"]
    place = {"file": "project/topics/web.yaml", "line": 1, "column": 8, "before_change": True}
    assert {key: finding[key] for key in place} == place


def test_policies_of_a_removed_namespace_are_shown_at_their_old_location(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    space = "namespace: shop/web\nschema_validation_enforced: true\n"
    scratch.commit({"schemactl.yaml": PROJECT, "topics/web.yaml": f"{space}---\n{VIEWS}"})
    scratch.write({"topics/web.yaml": VIEWS})
    printed = schemactl(scratch.path, "check").out
    assert "topics/web.yaml:1:12 before the change (main" in printed


def check_rename(tmp_path: Path, definition: str, more: str = "", strategy: str = "BACKWARD") -> dict[str, Any]:
    """Report on a change that replaces the topic orders with all-orders, which has this definition."""
    scratch = Scratch(tmp_path / "r")
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n"
    before = {"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id", "note", "city")}
    scratch.commit({"schemactl.yaml": project, **before})
    scratch.write({"topics/orders.yaml": write_declaration("shop/sales/all-orders", more=more)})
    scratch.write({"topics/orders.avsc": definition})
    report: dict[str, Any] = json.loads(schemactl(scratch.path, "check", "--format", "json", code=(0, 100)).out)
    return {finding["rule"]: finding for finding in report["findings"]}


SAME = record("id", "note", "city")
BREAKING = record("id", "note", "town")


@pytest.mark.parametrize(
    ("definition", "severity"),
    [
        (SAME, "warning"),
        (BREAKING, "error"),
        (SAME.replace('"Order"', '"Order", "namespace": "other"'), "warning"),
        (record("id", "note", city=0), "error"),
    ],
)
def test_an_undeclared_rename_is_reported_and_is_an_error_if_it_breaks(
    tmp_path: Path, definition: str, severity: str
) -> None:
    findings = check_rename(tmp_path, definition)
    assert set(findings) == {"DELETED_TOPIC", "RENAME_UNDECLARED"}
    assert findings["RENAME_UNDECLARED"]["severity"] == severity
    assert "topics/orders.yaml:1:8 before the change" in findings["RENAME_UNDECLARED"]["message"]


def test_the_line_that_it_asks_for_has_the_versions_compared(tmp_path: Path) -> None:
    fix = check_rename(tmp_path / "asked", BREAKING)["RENAME_UNDECLARED"]["fix"]
    line = "renamed_from: persistent://shop/sales/orders"
    assert f"`{line}`" in fix
    assert set(check_rename(tmp_path / "given", BREAKING, f"{line}\n")) == {"READER_FIELD_MISSING_DEFAULT_VALUE"}


def test_an_undeclared_rename_is_a_warning_if_the_strategy_protects_nothing(tmp_path: Path) -> None:
    findings = check_rename(tmp_path, BREAKING, strategy="ALWAYS_COMPATIBLE")
    assert findings["RENAME_UNDECLARED"]["severity"] == "warning"


@pytest.mark.parametrize("definition", [record("price", "day", "place"), SAME.replace('"Order"', '"Refund"')])
def test_a_different_topic_is_not_a_rename(tmp_path: Path, definition: str) -> None:
    assert set(check_rename(tmp_path, definition)) == {"DELETED_TOPIC"}


def test_each_of_several_renamed_topics_is_paired_with_its_own(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    fields = {"orders": ("id", "a", "b", "c"), "bills": ("id", "a", "b", "x")}
    scratch.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    scratch.commit({f"topics/{name}.yaml": write_declaration(f"shop/sales/{name}", f"{name}.avsc") for name in fields})
    scratch.commit({f"topics/{name}.avsc": record(*names) for name, names in fields.items()})
    scratch.flush()
    scratch.write({f"topics/{name}.yaml": write_declaration(f"shop/all/{name}", f"{name}.avsc") for name in fields})
    report = json.loads(schemactl(scratch.path, "check", "--format", "json").out)
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
    scratch.flush()
    # The second run reads the file from the cache of the first.
    for _ in range(2):
        assert "1 note: REMOVAL_OVERDUE (clicks)." in schemactl(scratch.path, "check", "--strict").out
        printed = schemactl(scratch.path, "check", "--strict", "--notes").out
        assert re.search(r"note\[REMOVAL_OVERDUE\]: .*\n  --> topics/clicks.yaml:3:47\n", printed)
        assert "was to be removed after 2020-01-01\n" in printed
        assert "= why      Use persistent://shop/web/views instead.\n" in printed
    assert "REMOVAL" not in schemactl(scratch.path, "check", "--topic", "views").out


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
    scratch.flush()
    scratch.write({"topics/orders.avsc": record("id"), "topics/orders.yaml": write_declaration(more=after)})
    scratch.git("add", "-A")
    printed = schemactl(scratch.path, "check", "--staged", code=100).out
    assert "CLIENT_BREAKS" in printed
    assert words in printed
    scratch.git("rm", "-qf", "topics/orders.yaml", "topics/orders.avsc")
    assert "CLIENT_BREAKS" not in schemactl(scratch.path, "check", "--staged", code=(0, 1)).out
