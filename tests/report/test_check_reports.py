"""Each format has the content of the text, in the form that its consumer reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import shop
from command import process
from consumers import markdown_faults, read_screen, workflow_commands

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.errors import Source
from schemactl.core.findings import Finding, Waiver
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.report import CHECK_FORMATS, render_check

FORMATS = ("json", "markdown", "github", "sarif", "junit", "gitlab", "azure", "html")


@pytest.fixture(scope="module")
def reports_by_format(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run on a change that is refused and a topic that is gone, in every format."""
    folder = shop.make(tmp_path_factory.mktemp("reports"))
    shop.edit(folder / shop.ORDERS, shop.STATUS, shop.WITHOUT_SHIPPED)
    (folder / "namespaces/web/sessions.yaml").unlink()
    formats = [f"--format={name}=reports/{name}" for name in FORMATS]
    done = process(folder, "check", "--format=text", *formats)
    assert done.code == 100, done.err
    return {"text": done.out} | {name: (folder / "reports" / name).read_text(encoding="utf-8") for name in FORMATS}


def test_text_ends_with_the_sum(reports_by_format: dict[str, str]) -> None:
    assert re.search(r"2 changed, 1 failed \(1 error, 1 warning\)\.\n$", reports_by_format["text"])


def test_json_has_both_verdicts_and_the_counterexample(reports_by_format: dict[str, str]) -> None:
    report = json.loads(reports_by_format["json"])
    (orders,) = [topic for topic in report["topics"] if topic["topic"].endswith("/orders")]
    assert (orders["broker"]["answer"], orders["data"], orders["version"]) == ("ok", "breaking", 6)
    (finding,) = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert (finding["rule"], finding["file"], finding["line"]) == ("MISSING_ENUM_SYMBOLS", str(shop.ORDERS), 14)
    assert finding["against"] == [0, 1, 2, 3, 4, 5]
    assert finding["witness"]["result"] == "AvroTypeException: No match for SHIPPED"
    assert json.loads(finding["witness"]["message"])["status"] == "SHIPPED"


def test_github_annotations_are_one_line_each_and_escaped(reports_by_format: dict[str, str]) -> None:
    lines = [line for line in reports_by_format["github"].splitlines() if line.startswith("::")]
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::warning"]
    assert f"file={shop.ORDERS},line=14" in lines[0]
    assert "%0A" in lines[0]


def test_sarif_results_point_into_files_and_at_rules(reports_by_format: dict[str, str]) -> None:
    log = json.loads(reports_by_format["sarif"])
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        gone = result["ruleId"] == "DELETED_TOPIC"
        assert gone or location["physicalLocation"]["region"]["startLine"] >= 1
        assert not location["physicalLocation"]["artifactLocation"]["uri"].startswith("/")
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]}) == 2


def test_junit_fails_for_errors_and_passes_for_the_rest(reports_by_format: dict[str, str]) -> None:
    suites = ET.fromstring(reports_by_format["junit"])  # noqa: S314  our own output
    assert suites.attrib["failures"] == "1"
    cases = suites.findall("testsuite/testcase")
    assert len(cases) == int(suites.attrib["tests"]) == 2
    (failure,) = suites.iter("failure")
    assert failure.attrib["type"] == "MISSING_ENUM_SYMBOLS"


def test_gitlab_entries_have_a_path_and_a_stable_fingerprint(reports_by_format: dict[str, str]) -> None:
    entries = json.loads(reports_by_format["gitlab"])
    assert [entry["check_name"] for entry in entries] == ["MISSING_ENUM_SYMBOLS", "DELETED_TOPIC"]
    assert all(entry["location"]["path"] and len(entry["fingerprint"]) == 32 for entry in entries)


def test_page_shows_code_as_code_and_markdown_shows_names_unchanged(reports_by_format: dict[str, str]) -> None:
    assert "<code>apply --allow-delete " in reports_by_format["html"]
    assert "`" not in reports_by_format["html"].partition("<main")[2].partition("</main>")[0]
    assert "<code>schemactl explain MISSING_ENUM_SYMBOLS</code>" in reports_by_format["markdown"]
    assert "<code>apply --allow-delete " in reports_by_format["markdown"]


def test_markdown_starts_with_its_marker_and_neutralises_markup(reports_by_format: dict[str, str]) -> None:
    assert reports_by_format["markdown"].startswith("<!-- schemactl:report:check -->\n")
    assert reports_by_format["markdown"].count("<details") == reports_by_format["markdown"].count("</details>") == 2


def test_every_format_has_the_effects_on_tables(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    shop.edit(
        folder / shop.ORDERS,
        '{"name": "street", "type": "string"}',
        '{"name": "street", "type": ["string", "long"]}, {"name": "by", "type": ["null", "string"], "default": null}',
    )
    formats = [f"--format={name}=reports/{name}" for name in FORMATS]
    done = process(folder, "check", "--notes", "--format=text", *formats)
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


A, B = (TopicName("shop", "sales", name) for name in "ab")
REASON = "ends\n\x1b[2J::error::x ##[command]y @all #1 <b>z</b> | `c` https://evil.example \u202e"
WAIVER = Waiver("MISSING_ENUM_SYMBOLS", A, "sha256:" + "a" * 64, REASON, "team|a", date(2027, 1, 31))
ERROR = Finding(
    "MISSING_ENUM_SYMBOLS",
    "error",
    "data",
    B,
    Source("b.avsc", 4, 2),
    "It breaks.",
    "Put it back.",
    fingerprint="sha256:" + "b" * 64,
)
WAIVED = replace(ERROR, topic=A, source=Source("a.avsc", 3), fingerprint=WAIVER.fingerprint, waiver=WAIVER)


def report(*findings: Finding, waived: tuple[Finding, ...] = (WAIVED,)) -> CheckReport:
    topics = tuple(TopicCheck(topic, "new version", CompatibilityStrategy.BACKWARD, "topic") for topic in (A, B))
    return CheckReport(Release.R4_0, "main", 2, topics, findings=findings, waived=waived)


def render(name: str, *findings: Finding) -> str:
    return render_check(report(*findings), name)


def test_text_has_it_first_and_without_advice() -> None:
    _, first, second, *_, last = render("text", ERROR).split("\n\n")
    assert first.splitlines()[:2] == ["waived[MISSING_ENUM_SYMBOLS]: It breaks", "  --> a.avsc:3:1"]
    assert "= waived   Waived by team|a until 2027-01-31: ends\\n" in first
    assert ("= fix" in first, "schemactl waive" in first) == (False, False)
    assert ("= fix      Put it back." in second, "schemactl waive bbbbbbbbbbbb --reason" in second) == (True, True)
    assert last.endswith("1 failed (1 waived, 1 error).")


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_nobody_obeys_a_reason(name: str) -> None:
    text = render(name)
    assert not {"\x1b", "\u202e"} & {*text}
    commands = [*workflow_commands(text)]
    assert commands == (["notice"] if name == "github" else [])
    assert read_screen(text)[1] == ""
    if name == "markdown":
        assert markdown_faults(text) == []


def test_json_has_the_waiver_in_a_list_and_beside_its_finding() -> None:
    document = json.loads(render("json", ERROR))
    (waiver,) = document["waivers"]
    assert [finding["waiver"] for finding in document["findings"]] == [waiver, None]
    assert [cause["waived"] for cause in document["causes"]] == [True, False]
    assert (document["errors"], waiver["until"], waiver["owner"]) == (1, "2027-01-31", "team|a")
    assert waiver["reason"] == REASON
    fixes = [finding["fix"] for finding in document["findings"]]
    assert "schemactl waive" not in fixes[0]
    assert fixes[1].splitlines() == [
        "Put it back.",
        'To approve it anyway: schemactl waive bbbbbbbbbbbb --reason "..." --until YYYY-MM-DD --owner NAME',
    ]


def test_sarif_has_it_suppressed_from_outside_of_the_source() -> None:
    (run,) = json.loads(render("sarif", ERROR))["runs"]
    waived, error = run["results"]
    ((suppression,), level) = (waived["suppressions"], error["level"])
    assert (suppression["kind"], suppression["status"], level) == ("external", "accepted", "error")
    assert suppression["justification"].startswith("waived by team|a until 2027-01-31: ends")
    assert "suppressions" not in error


def test_junit_has_it_skipped() -> None:
    suites = ET.fromstring(render("junit", ERROR))  # noqa: S314  our own output
    assert (suites.attrib["tests"], suites.attrib["failures"]) == ("2", "1")
    first, second = suites
    assert (first.attrib["skipped"], second.attrib["skipped"]) == ("1", "0")
    skipped = first.find("testcase/skipped")
    assert skipped is not None
    assert skipped.attrib["message"].startswith("Waived by team|a until 2027-01-31")


def test_github_has_a_notice_before_all_errors_and_gitlab_an_information() -> None:
    first, second, *_ = render("github", ERROR).splitlines()
    assert first.startswith("::notice title=MISSING_ENUM_SYMBOLS (waived),file=a.avsc,line=3,col=1::Waived by")
    assert second.startswith("::error title=MISSING_ENUM_SYMBOLS,file=b.avsc")
    entries = json.loads(render("gitlab", ERROR))
    assert [entry["severity"] for entry in entries] == ["info", "critical"]
    assert entries[0]["description"].startswith("MISSING_ENUM_SYMBOLS (waived): Waived by team|a until 2027-01-31")


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_report_with_only_waivers_is_not_all_fine(name: str) -> None:
    assert "all fine" not in render(name)


def test_one_waiver_of_many_topics_is_said_once() -> None:
    topics = [TopicName("shop", "sales", f"t{number}") for number in range(3)]
    waived: list[Any] = [
        replace(WAIVED, topic=topic, waiver=replace(WAIVER, topic=topic), fingerprint=f"sha256:{number:064x}")
        for number, topic in enumerate(topics)
    ]
    text = render_check(report(waived=tuple(waived)), "text")
    assert Counter(text.split())["Waived"] == 1
    assert "3 topics:" in text


def test_edit_of_a_finding_is_in_every_format_that_can_show_one(reports_by_format: dict[str, str]) -> None:
    [edit] = json.loads(reports_by_format["json"])["edits"]
    assert [finding["edit"] for finding in json.loads(reports_by_format["json"])["findings"] if finding["edit"]] == [
        edit
    ]
    assert (edit["file"], edit["new_lines"] != edit["old_lines"]) == (str(shop.ORDERS), True)
    [error] = [line for line in reports_by_format["github"].splitlines() if line.startswith("::error")]
    assert "```suggestion%0A" + "%0A".join(edit["new_lines"]) + "%0A```" in error
    added = [line for line in edit["new_lines"] if line not in edit["old_lines"]]
    assert all(f"+{line}" in reports_by_format["markdown"] for line in added)
    assert "Edits of the fix" in reports_by_format["html"]
    [fix] = [
        fix
        for result in json.loads(reports_by_format["sarif"])["runs"][0]["results"]
        for fix in result.get("fixes", [])
    ]
    [replacement] = fix["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"]["text"] == "\n".join(edit["new_lines"])
    assert replacement["deletedRegion"]["startLine"] == edit["line"]
