"""Each format says what the text says, in the shape its consumer reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import shop
from command import process

FORMATS = ("json", "markdown", "github", "sarif", "junit", "gitlab", "azure", "html")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run on a change that is refused and a topic that is gone, in every format."""
    folder = shop.make(tmp_path_factory.mktemp("reports"))
    shop.edit(folder / shop.ORDERS, shop.STATUS, shop.WITHOUT_SHIPPED)
    (folder / "namespaces/web/sessions.yaml").unlink()
    formats = [f"--format={name}=reports/{name}" for name in FORMATS]
    done = process(folder, "check", "--format=text", *formats)
    assert done.code == 100, done.err
    return {"text": done.out} | {name: (folder / "reports" / name).read_text(encoding="utf-8") for name in FORMATS}


def test_text_ends_with_the_sum(reports: dict[str, str]) -> None:
    assert re.search(r"2 changed, 1 failed \(1 error, 1 warning\)\.\n$", reports["text"])


def test_json_has_both_verdicts_and_the_counterexample(reports: dict[str, str]) -> None:
    report = json.loads(reports["json"])
    (orders,) = [topic for topic in report["topics"] if topic["topic"].endswith("/orders")]
    assert (orders["broker"]["answer"], orders["data"], orders["version"]) == ("ok", "breaking", 6)
    (finding,) = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert (finding["rule"], finding["file"], finding["line"]) == ("MISSING_ENUM_SYMBOLS", str(shop.ORDERS), 14)
    assert finding["against"] == [0, 1, 2, 3, 4, 5]
    assert finding["witness"]["result"] == "AvroTypeException: No match for SHIPPED"
    assert json.loads(finding["witness"]["message"])["status"] == "SHIPPED"


def test_github_annotations_are_one_line_each_and_escaped(reports: dict[str, str]) -> None:
    lines = [line for line in reports["github"].splitlines() if line.startswith("::")]
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::warning"]
    assert f"file={shop.ORDERS},line=14" in lines[0]
    assert "%0A" in lines[0]


def test_sarif_results_point_into_files_and_at_rules(reports: dict[str, str]) -> None:
    log = json.loads(reports["sarif"])
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        gone = result["ruleId"] == "DELETED_TOPIC"
        assert gone or location["physicalLocation"]["region"]["startLine"] >= 1
        assert not location["physicalLocation"]["artifactLocation"]["uri"].startswith("/")
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]}) == 2


def test_junit_fails_for_errors_and_passes_for_the_rest(reports: dict[str, str]) -> None:
    suites = ET.fromstring(reports["junit"])  # noqa: S314  our own output
    assert suites.attrib["failures"] == "1"
    cases = suites.findall("testsuite/testcase")
    assert len(cases) == int(suites.attrib["tests"]) == 2
    (failure,) = suites.iter("failure")
    assert failure.attrib["type"] == "MISSING_ENUM_SYMBOLS"


def test_gitlab_entries_have_a_path_and_a_stable_fingerprint(reports: dict[str, str]) -> None:
    entries = json.loads(reports["gitlab"])
    assert [entry["check_name"] for entry in entries] == ["MISSING_ENUM_SYMBOLS", "DELETED_TOPIC"]
    assert all(entry["location"]["path"] and len(entry["fingerprint"]) == 32 for entry in entries)


def test_a_page_shows_code_as_code_and_markdown_names_as_they_are_written(reports: dict[str, str]) -> None:
    assert "<code>apply --allow-delete " in reports["html"]
    assert "`" not in reports["html"].partition("<main")[2].partition("</main>")[0]
    assert "<code>schemactl explain MISSING_ENUM_SYMBOLS</code>" in reports["markdown"]
    assert "<code>apply --allow-delete " in reports["markdown"]


def test_markdown_starts_with_its_marker_and_neutralises_markup(reports: dict[str, str]) -> None:
    assert reports["markdown"].startswith("<!-- schemactl:report:check -->\n")
    assert reports["markdown"].count("<details") == reports["markdown"].count("</details>") == 2


def test_every_format_says_what_becomes_of_tables(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    shop.edit(
        folder / shop.ORDERS,
        '{"name": "street", "type": "string"}',
        '{"name": "street", "type": ["string", "long"]}, {"name": "by", "type": ["null", "string"], "default": null}',
    )
    formats = [f"--format={name}=reports/{name}" for name in FORMATS]
    done = process(folder, "check", "--format=text", *formats)
    assert done.code == 0, done.out
    reports = {name: (folder / "reports" / name).read_text(encoding="utf-8") for name in FORMATS}
    for text in (done.out, *reports.values()):
        assert "delivery.street goes from string to struct" in text
        assert "delivery.by string: added column" in text
    assert re.search(r"^topic .* tables\n.*orders .* rewrite, added column$", done.out, re.MULTILINE)
    assert "| rewrite, added column |" in reports["markdown"]
    assert "--- as it was approved\n+++ this change\n" in reports["markdown"]
    (topic,) = json.loads(reports["json"])["topics"]
    assert [(change["effect"], change["column"], change["after"]) for change in topic["tables"]] == [
        ("rewrite", "delivery.street", "struct<member0:string,member1:bigint>"),
        ("added column", "delivery.by", "string"),
    ]
    levels = [line.split(" ", 1)[0] for line in reports["github"].splitlines() if line.startswith("::")]
    assert levels == ["::warning", "::notice"]
