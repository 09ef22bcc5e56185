"""What a change removes is shown where it was, and no line that is something else now is marked; a rename has to be declared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import schemactl
from scratch import Scratch, declared, record

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\nseverities: {DELETED_TOPIC: error}\n"
CLICKS = "topic: shop/web/clicks\nschema: {type: STRING}\n"
VIEWS = "topic: shop/web/views\nschema: {type: STRING}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Scratch:
    """Two topics in one file, of which the first is gone from the working tree: the second stands on its line."""
    made = Scratch(tmp_path / "r")
    made.commit({"project/schemactl.yaml": PROJECT, "project/topics/web.yaml": f"{CLICKS}---\n{VIEWS}"})
    made.write({"project/topics/web.yaml": VIEWS})
    return made


def shown(shop: Scratch, name: str) -> str:
    """The report in that format."""
    return schemactl(shop.path / "project", "check", "--format", name, code=100).out


def test_people_are_shown_the_line_before_the_change(shop: Scratch) -> None:
    at = shop.git("rev-parse", "--short=9", "HEAD")
    assert f"project/topics/web.yaml:1:8 before the change (main ({at}))" in shown(shop, "text")
    assert f"1:8 before the change (main ({at}))</code></summary>" in shown(shop, "markdown")


def test_github_marks_no_line_of_the_file(shop: Scratch) -> None:
    command = shown(shop, "github").splitlines()[0]
    assert command.startswith("::error title=DELETED_TOPIC::")
    assert "%0APlace: project/topics/web.yaml:1:8 before the change (main (" in command


def test_gitlab_marks_the_project_file(shop: Scratch) -> None:
    (found,) = json.loads(shown(shop, "gitlab"))
    assert found["location"] == {"path": "project/schemactl.yaml", "lines": {"begin": 1}}
    assert "project/topics/web.yaml:1:8 before the change" in found["description"]


def test_code_scanning_marks_the_project_file_and_no_line(shop: Scratch) -> None:
    (result,) = json.loads(shown(shop, "sarif"))["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "project/schemactl.yaml"}}
    assert "project/topics/web.yaml:1:8 before the change" in result["message"]["text"]


def test_a_test_report_names_no_line(shop: Scratch) -> None:
    (case,) = ET.fromstring(shown(shop, "junit")).iter("testcase")  # noqa: S314  our own output
    assert set(case.attrib) == {"classname", "name"}


def test_json_has_the_place_and_that_it_is_gone(shop: Scratch) -> None:
    (found,) = json.loads(shown(shop, "json"))["findings"]
    place = {"file": "project/topics/web.yaml", "line": 1, "column": 8, "before_change": True}
    assert {key: found[key] for key in place} == place


def test_policies_of_a_namespace_that_is_gone_are_shown_where_they_were(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "r")
    space = "namespace: shop/web\nschema_validation_enforced: true\n"
    made.commit({"schemactl.yaml": PROJECT, "topics/web.yaml": f"{space}---\n{VIEWS}"})
    made.write({"topics/web.yaml": VIEWS})
    printed = schemactl(made.path, "check").out
    assert "topics/web.yaml:1:12 before the change (main" in printed


def renamed(tmp_path: Path, definition: str, more: str = "", strategy: str = "BACKWARD") -> dict[str, Any]:
    """The report on a change that replaces the topic orders by all-orders, with this definition."""
    made = Scratch(tmp_path / "r")
    project = f"version: 1\nroots: [topics]\ndefaults: {{schema_compatibility_strategy: {strategy}}}\n"
    before = {"topics/orders.yaml": declared(), "topics/orders.avsc": record("id", "note", "city")}
    made.commit({"schemactl.yaml": project, **before})
    made.write({"topics/orders.yaml": declared("shop/sales/all-orders", more=more)})
    made.write({"topics/orders.avsc": definition})
    report: dict[str, Any] = json.loads(schemactl(made.path, "check", "--format", "json", code=(0, 100)).out)
    return {each["rule"]: each for each in report["findings"]}


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
def test_a_rename_is_asked_for_and_an_error_where_it_breaks(tmp_path: Path, definition: str, severity: str) -> None:
    found = renamed(tmp_path, definition)
    assert set(found) == {"DELETED_TOPIC", "RENAME_UNDECLARED"}
    assert found["RENAME_UNDECLARED"]["severity"] == severity
    assert "topics/orders.yaml:1:8 before the change" in found["RENAME_UNDECLARED"]["message"]


def test_the_line_that_it_asks_for_has_the_versions_compared(tmp_path: Path) -> None:
    fix = renamed(tmp_path / "asked", BREAKING)["RENAME_UNDECLARED"]["fix"]
    line = "renamed_from: persistent://shop/sales/orders"
    assert f"`{line}`" in fix
    assert set(renamed(tmp_path / "given", BREAKING, f"{line}\n")) == {"READER_FIELD_MISSING_DEFAULT_VALUE"}


def test_nothing_breaks_where_the_strategy_protects_nobody(tmp_path: Path) -> None:
    found = renamed(tmp_path, BREAKING, strategy="ALWAYS_COMPATIBLE")
    assert found["RENAME_UNDECLARED"]["severity"] == "warning"


@pytest.mark.parametrize("definition", [record("price", "day", "place"), SAME.replace('"Order"', '"Refund"')])
def test_another_topic_is_no_rename(tmp_path: Path, definition: str) -> None:
    assert set(renamed(tmp_path, definition)) == {"DELETED_TOPIC"}


def test_each_of_several_renamed_topics_is_paired_with_its_own(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "r")
    fields = {"orders": ("id", "a", "b", "c"), "bills": ("id", "a", "b", "x")}
    made.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    made.commit({f"topics/{name}.yaml": declared(f"shop/sales/{name}", f"{name}.avsc") for name in fields})
    made.commit({f"topics/{name}.avsc": record(*each) for name, each in fields.items()})
    made.flush()
    made.write({f"topics/{name}.yaml": declared(f"shop/all/{name}", f"{name}.avsc") for name in fields})
    report = json.loads(schemactl(made.path, "check", "--format", "json").out)
    asked = {each["topic"]: each["fix"] for each in report["findings"] if each["rule"] == "RENAME_UNDECLARED"}
    assert set(asked) == {"persistent://shop/sales/bills", "persistent://shop/sales/orders"}
    for topic, fix in asked.items():
        assert f"`renamed_from: {topic}`" in fix


def test_a_topic_that_was_to_be_removed_is_noted_in_every_run(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "r")
    over = f"{CLICKS}deprecated: {{since: 2019-01-01, remove_after: 2020-01-01, use: shop/web/views}}\n"
    made.commit({"schemactl.yaml": PROJECT, "topics/clicks.yaml": over, "topics/views.yaml": VIEWS})
    made.flush()
    # The second run takes what the file says from what the first one kept.
    for _ in range(2):
        printed = schemactl(made.path, "check", "--strict").out
        assert "topics/clicks.yaml:3:47: REMOVAL_OVERDUE (note)" in printed
        assert "after 2020-01-01. Use persistent://shop/web/views instead." in printed
    assert "REMOVAL" not in schemactl(made.path, "check", "--topic", "views").out


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
def test_a_client_that_the_change_removes_is_asked_all_the_same(tmp_path: Path, after: str, words: str) -> None:
    made = Scratch(tmp_path / "r")
    project = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: FORWARD}\n"
    before = {"topics/orders.yaml": declared(more=CONSUMER), "topics/orders.avsc": record("id", "note")}
    made.commit({"schemactl.yaml": project, **before})
    optional = record("id", "note").replace('"note", "type": "string"', '"note", "type": "string", "default": ""')
    made.commit({"topics/orders.avsc": optional})
    made.flush()
    made.write({"topics/orders.avsc": record("id"), "topics/orders.yaml": declared(more=after)})
    made.git("add", "-A")
    printed = schemactl(made.path, "check", "--staged", code=100).out
    assert "CLIENT_BREAKS" in printed
    assert words in printed
    made.git("rm", "-qf", "topics/orders.yaml", "topics/orders.avsc")
    assert "CLIENT_BREAKS" not in schemactl(made.path, "check", "--staged", code=(0, 1)).out
