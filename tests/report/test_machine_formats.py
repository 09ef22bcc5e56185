"""Parsers of other projects read each format, find all causes in it, and no foreign text works as a command."""

from __future__ import annotations

import json
import random
import re
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import html5lib
import jsonschema
import junitparser
import pytest
from consumers import azure_issues, markdown_faults
from pydantic_sarif import model as models

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.errors import Source
from schemactl.core.findings import Counterexample, Finding, Severity
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.rules import get_builtin_rules
from schemactl.core.schema import Commit, Release
from schemactl.core.terminal import clean
from schemactl.report import render_check
from schemactl.report.causes import rank_causes

SCHEMA = Path(__file__).parents[2] / "schemas" / "check.schema.json"
FINDINGS = 300
OF_REPORT = 10
"""As many as build servers show of a level."""

HOSTILE = [
    *("\n", "\r", "\x00", "\x1b[2J", "\x9b", "\u202e", "\u2028", "\ud800", "\ufffe", "\t", "é", "\U0001f600"),
    *("::error::x", "##[command]", "##vso[task.complete]", "]]>", "<script>alert(1)</script>", "-->", "&amp;"),
    *("`", "```", "|", ";", "]", ",", ":", "%0A", "%AZP25", "%", '"', "'", "\\", "{}", "</details>", "@all #1"),
]

WEIGHED: list[tuple[str, Severity]] = [
    ("TYPE_MISMATCH", "error"),
    ("DELETED_TOPIC", "warning"),
    ("NAME_MISMATCH", "warning"),
]


class ReportedCause(NamedTuple):
    """The values of a cause that every format has."""

    rule: str
    level: str
    path: str
    line: int
    message: str


def _draw_words(chance: random.Random) -> str:
    return "a" + "".join(chance.choices([*HOSTILE, "word ", "other "], k=6))


def _report(chance: random.Random) -> CheckReport:
    """Generate a report whose findings have different causes."""
    named = [*get_builtin_rules()]
    topics = [TopicName("shop", "sales", f"t{number}") for number in range(OF_REPORT)]
    findings = [
        Finding(
            rule=chance.choice(named),
            severity=chance.choice(["error", "warning"]),
            verdict="declaration",
            topic=topic,
            source=Source(f"{_draw_words(chance)}/{number}.avsc", chance.randint(1, 99), chance.randint(1, 99)),
            message=f"{number} {_draw_words(chance)}",
            fix=_draw_words(chance),
            field=_draw_words(chance),
            pointer=f"/{_draw_words(chance)}",
            direction=chance.choice([None, "new_reads_old", "old_reads_new", "both"]),
            against=tuple(range(chance.randint(0, 3))),
            older=chance.choice([None, Source(_draw_words(chance), 3, 4, 9)]),
            counterexample=chance.choice([None, Counterexample(_draw_words(chance), b"\x00\xff", _draw_words(chance))]),
            commit=chance.choice([None, Commit("1" * 40, 0, _draw_words(chance))]),
            fingerprint=f"sha256:{chance.getrandbits(256):064x}",
            targets=chance.choice([(), ("prod",)]),
        )
        for number, topic in enumerate(topics)
    ]
    rows = tuple(
        TopicCheck(topic, "policies", CompatibilityStrategy.FULL, "topic", owner=_draw_words(chance))
        for topic in topics
    )
    return CheckReport(
        Release.R4_0, _draw_words(chance), len(rows), rows, findings=tuple(findings), notes=(_draw_words(chance),)
    )


REPORTS = [_report(random.Random(seed)) for seed in range(FINDINGS // OF_REPORT)]  # noqa: S311  seeded


def _keep_legal_characters(text: str) -> str:
    """Return a text with the characters that XML allows."""
    return re.sub("[\ufffe\uffff]", "\ufffd", text)


def _of_json(text: str) -> list[ReportedCause]:
    document = json.loads(text)
    messages = {finding["cause"]: finding["message"] for finding in document["findings"]}
    return [
        ReportedCause(cause["rule"], cause["severity"], cause["file"], cause["line"], messages[cause["id"]])
        for cause in document["causes"]
    ]


def _of_sarif(text: str) -> list[ReportedCause]:
    (run,) = json.loads(text)["runs"]
    return [
        ReportedCause(
            result["ruleId"],
            result["level"],
            unquote(place["artifactLocation"]["uri"]),
            place["region"]["startLine"],
            result["message"]["text"],
        )
        for result in run["results"]
        for place in [result["locations"][0]["physicalLocation"]]
    ]


def _of_gitlab(text: str) -> list[ReportedCause]:
    levels = {"critical": "error", "minor": "warning"}
    return [
        ReportedCause(
            entry["check_name"],
            levels[entry["severity"]],
            entry["location"]["path"],
            entry["location"]["lines"]["begin"],
            entry["description"].removeprefix(f"{entry['check_name']}: "),
        )
        for entry in json.loads(text)
    ]


def _of_github(text: str) -> list[ReportedCause]:
    """Read commands like GitHub's runner (ActionCommand.TryParseV2)."""

    def unescape_value(value: str) -> str:
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(code, character)
        return value

    causes = []
    for line in text.split("\n")[:-1]:
        command = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
        assert command, line
        properties = dict(pair.split("=", 1) for pair in command[2].split(","))
        message = command[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        causes.append(
            ReportedCause(
                properties["title"], command[1], unescape_value(properties["file"]), int(properties["line"]), message
            )
        )
    return causes


def _of_azure(text: str) -> list[ReportedCause]:
    return [
        ReportedCause(
            properties["code"],
            properties["type"],
            properties["sourcepath"],
            int(properties["linenumber"]),
            message.removeprefix(f"{properties['code']}: "),
        )
        for properties, message in azure_issues(text)
    ]


def _of_junit(text: str) -> list[ReportedCause]:
    root = ET.fromstring(text)  # noqa: S314  our own output
    causes = []
    for suite in root:
        for case in suite.iter("testcase"):
            if (failure := case.find("failure")) is not None:
                place = case.attrib["file"], int(case.attrib["line"])
                causes.append(ReportedCause(failure.attrib["type"], "error", *place, failure.text or ""))
    return causes


READERS: dict[str, Callable[[str], list[ReportedCause]]] = {
    "json": _of_json,
    "sarif": _of_sarif,
    "gitlab": _of_gitlab,
    "github": _of_github,
    "azure": _of_azure,
    "junit": _of_junit,
}


def _list_expected(report: CheckReport, name: str) -> list[ReportedCause]:
    causes = []
    for cause in rank_causes(report):
        source = cause.primary_finding.place
        assert source
        message = cause.primary_finding.message if name == "json" else cause.message
        # The content of a file is not cleaned twice: JSON has its own escapes.
        cleaned = (lambda text: text) if name in ("json", "sarif", "gitlab") else _clean_text
        # A lone surrogate is not allowed in an address.
        path = source.path.encode("utf-8", "backslashreplace").decode() if name == "sarif" else source.path
        causes.append(
            ReportedCause(cause.primary_finding.rule, cause.level, cleaned(path), source.line, cleaned(message))
        )
    return causes


def _clean_text(text: str) -> str:
    return clean(text, starts_line=False)


@pytest.mark.parametrize("name", READERS)
def test_parsers_read_the_findings_of_every_format(name: str) -> None:
    count = 0
    for report in REPORTS:
        expected = _list_expected(report, name)
        actual = READERS[name](render_check(report, name))
        if name == "junit":
            expected = [
                cause._replace(path=_keep_legal_characters(cause.path), message=_keep_legal_characters(cause.message))
                for cause in expected
                if cause.level == "error"
            ]
        assert sorted(actual) == sorted(expected)
        count += len(report.findings)
    assert count == FINDINGS


def test_json_has_every_attribute_of_a_finding() -> None:
    for report in REPORTS:
        for finding, value in zip(report.findings, json.loads(render_check(report, "json"))["findings"], strict=True):
            proof = value["witness"] and Counterexample(
                value["witness"]["message"], b64decode(value["witness"]["base64"]), value["witness"]["result"]
            )
            commit = value["commit"] and Commit(value["commit"]["id"], 0, value["commit"]["subject"])
            back = Finding(
                value["rule"],
                value["severity"],
                value["verdict"],
                TopicName.parse(value["topic"]),
                Source(value["file"], value["line"], value["column"]),
                value["message"],
                finding.fix,
                value["field"],
                value["pointer"],
                value["direction"],
                tuple(value["against"]),
                finding.older,
                proof,
                commit=commit,
                fingerprint=value["fingerprint"],
                targets=tuple(value["targets"]),
            )
            assert back == finding
            assert value["fix"].startswith(finding.fix)
            assert value["older"] == str(finding.older or "")


def test_json_is_valid_by_its_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for report in REPORTS:
        validator.validate(json.loads(render_check(report, "json")))
    wrong = json.loads(render_check(REPORTS[0], "json"))
    wrong["findings"][0]["severity"] = "fatal"
    assert not validator.is_valid(wrong)


def test_sarif_is_valid_by_the_published_schema() -> None:
    """Its models are generated from OASIS's schema, which first called the status of a suppression `state`."""
    for report in REPORTS:
        log = json.loads(render_check(report, "sarif"))
        models.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate(log)


def test_sarif_has_the_fields_of_code_scanning_and_editors() -> None:
    (run,) = json.loads(render_check(REPORTS[0], "sarif"))["runs"]
    driver = run["tool"]["driver"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", driver["semanticVersion"])
    for rule in driver["rules"]:
        assert rule["helpUri"].startswith("https://")
        assert "**Fix:**" in rule["help"]["markdown"]
    older = [result for result in run["results"] if "relatedLocations" in result]
    assert older
    region = older[0]["relatedLocations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "startColumn": 4, "endColumn": 9}
    assert all(len(result["properties"]["fingerprints"]) == 1 for result in run["results"])


def test_junit_is_read_by_another_parser() -> None:
    for report in REPORTS:
        suites = junitparser.JUnitXml.fromstring(render_check(report, "junit").encode())
        failures = [case for suite in suites for case in suite if case.result]
        assert len(failures) == suites.failures == report.count("error")


def test_gitlab_has_the_fields_that_its_page_requires() -> None:
    """See "Code Quality report format" in GitLab's documentation."""
    for report in REPORTS:
        entries = json.loads(render_check(report, "gitlab"))
        assert len({entry["fingerprint"] for entry in entries}) == len(entries)
        for entry in entries:
            assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
            assert isinstance(entry["location"]["lines"]["begin"], int)
            assert not entry["location"]["path"].startswith("./")
            assert entry["description"]
            assert entry["check_name"]


def test_html_is_html_and_runs_nothing_but_its_own_script() -> None:
    for report in REPORTS:
        text = render_check(report, "html")
        root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
        assert len([*root.iter("script")]) == len([*root.iter("style")]) == 1
        assert not [element for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert all(element.get("href", "").startswith(("https://", "#")) for element in root.iter("a"))
        assert not [*root.iter("img"), *root.iter("link"), *root.iter("iframe")]
        assert sum(1 for _ in root.iter("h3")) == OF_REPORT


def test_markdown_is_text_alone_and_has_each_cause() -> None:
    for report in REPORTS[:10]:
        text = render_check(report, "markdown")
        assert markdown_faults(text) == []
        notes = sum(cause.severity == "note" for cause in report.causes)
        folded = bool(notes) if notes else 0
        # A message in a block of code may have any text.
        ends = len(re.findall("^</details>$", text, re.MULTILINE))
        assert text.count("<details") == ends == OF_REPORT - notes + folded
        assert text.count("<b>") == OF_REPORT


@pytest.mark.parametrize("limit", [None, 900_000])
def test_comment_has_the_most_important_causes_and_the_number_of_the_rest(limit: int | None) -> None:
    """The warnings are the first of 3,000 causes to be left out."""
    many = [
        Finding(rule, severity, "data", TopicName("shop", "sales", f"t{number}"), Source("a.avsc", number), "why " * 30)
        for number in range(1, 1_001)
        for rule, severity in WEIGHED
    ]
    report = CheckReport(Release.R4_0, "main", 1_000, findings=tuple(many))
    text = render_check(report, "markdown", limit=limit)
    assert len(text.encode()) < (1 << 20 if limit else 65_536)
    weights = re.findall(r"<b>\w+</b> \((\w+)\)", text)
    assert weights == sorted(weights)
    (left,) = re.findall(r"_(\d+) more: run `schemactl check` to see them\._", text)
    assert int(left) + len(weights) == len(many)
    assert len(weights) > (1_500 if limit else 100)


def test_unknown_option_of_a_report_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        render_check(REPORTS[0], "text", colour=True)  # type: ignore[call-arg]
