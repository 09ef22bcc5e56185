"""Every format lists what is waived first, with reason, owner and last day, and counts it no more."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from consumers import markdown_faults, screen, workflow_commands

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.errors import Source
from schemactl.core.findings import Finding, Waiver
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.report import CHECK_FORMATS, render_check

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
    lines = render("text", ERROR).splitlines()
    assert lines[0] == "a.avsc:3:1: MISSING_ENUM_SYMBOLS (waived)"
    assert lines[1].startswith("  Waived until 2027-01-31, team|a answers for it: ends\\n")
    first, second = "\n".join(lines).split("\n\n")[:2]
    assert ("Fix:" in first, "schemactl waive" in first) == (False, False)
    assert ("Fix: Put it back." in second, "schemactl waive bbbbbbbbbbbb --reason" in second) == (True, True)
    assert lines[-1].endswith("1 failed (1 waived, 1 error).")


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_nobody_obeys_a_reason(name: str) -> None:
    text = render(name)
    assert not {"\x1b", "\u202e"} & {*text}
    commands = [*workflow_commands(text)]
    assert commands == (["notice"] if name == "github" else [])
    assert screen(text)[1] == ""
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
        'To approve it all the same: schemactl waive bbbbbbbbbbbb --reason "..." --until YYYY-MM-DD --owner NAME',
    ]


def test_sarif_has_it_suppressed_from_outside_of_the_source() -> None:
    (run,) = json.loads(render("sarif", ERROR))["runs"]
    waived, error = run["results"]
    ((suppression,), level) = (waived["suppressions"], error["level"])
    assert (suppression["kind"], suppression["status"], level) == ("external", "accepted", "error")
    assert suppression["justification"].startswith("Waived until 2027-01-31, team|a answers for it: ends")
    assert "suppressions" not in error


def test_junit_has_it_skipped() -> None:
    suites = ET.fromstring(render("junit", ERROR))  # noqa: S314  our own output
    assert (suites.attrib["tests"], suites.attrib["failures"]) == ("2", "1")
    first, second = suites
    assert (first.attrib["skipped"], second.attrib["skipped"]) == ("1", "0")
    skipped = first.find("testcase/skipped")
    assert skipped is not None
    assert skipped.attrib["message"].startswith("Waived until 2027-01-31")


def test_github_has_a_notice_before_all_errors_and_gitlab_an_information() -> None:
    first, second, *_ = render("github", ERROR).splitlines()
    assert first.startswith("::notice title=MISSING_ENUM_SYMBOLS (waived),file=a.avsc,line=3,col=1::Waived until")
    assert second.startswith("::error title=MISSING_ENUM_SYMBOLS,file=b.avsc")
    entries = json.loads(render("gitlab", ERROR))
    assert [entry["severity"] for entry in entries] == ["info", "critical"]
    assert entries[0]["description"].startswith("MISSING_ENUM_SYMBOLS (waived): Waived until 2027-01-31")


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_a_report_with_waivers_alone_never_says_that_all_is_fine(name: str) -> None:
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
