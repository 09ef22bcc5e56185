"""One realistic pull request says the same in every format."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pull_request
import pytest
from command import schemactl
from consumers import azure_issues, markdown_faults, read_screen, workflow_commands

from schemactl import check
from schemactl.core.terminal import wrap_text
from schemactl.report import CHECK_FORMATS
from schemactl.report.check_text import render_text

HOST = "https://code.example/acme/schemas"
COMMIT = "1" * 40


class Numbers(NamedTuple):
    """The number of causes of each weight in a format, and the rules of its errors."""

    errors: int
    warnings: int
    waived: int
    rules: frozenset[str]


EXPECTED = Numbers(4, 4, 1, frozenset({*pull_request.CAUSES, "WAIVER_EXPIRED"}))


@pytest.fixture(scope="module")
def reports_by_format(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every format of one run, as a job of GitHub's, with the step's summary."""
    path = tmp_path_factory.mktemp("pull-request") / "repository"
    summary = path.parent / "summary.md"
    summary.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        pull_request.make(path)
        for name, value in {
            "GITHUB_ACTIONS": "true",
            "GITHUB_SERVER_URL": "https://code.example",
            "GITHUB_REPOSITORY": "acme/schemas",
            "GITHUB_SHA": COMMIT,
            "GITHUB_STEP_SUMMARY": str(summary),
        }.items():
            patch.setenv(name, value)
        formats = [f"--format={name}=../out/{name}" for name in CHECK_FORMATS]
        schemactl(path, "check", "--base", "main", *formats, code=100)
    texts = {name: (path.parent / "out" / name).read_text(encoding="utf-8") for name in CHECK_FORMATS}
    return {**texts, "summary": summary.read_text(encoding="utf-8")}


def _of_text(text: str) -> Numbers:
    heads = re.findall(r"^(\w+)\[([A-Z_]+)\]: ", text, re.MULTILINE)
    return _count_numbers([(rule, kind) for kind, rule in heads])


def _of_concise(text: str) -> Numbers:
    heads = re.findall(r"^\S+:\d+:\d+(?: before .*)?: (\w+) ([A-Z_]+) \S", text, re.MULTILINE)
    assert len(heads) == len(text.splitlines())
    return _count_numbers([(rule, kind) for kind, rule in heads])


def _of_json(text: str) -> Numbers:
    report = json.loads(text)
    causes = [(cause["rule"], "waived" if cause["waived"] else cause["severity"]) for cause in report["causes"]]
    numbers = _count_numbers(causes)
    assert (report["errors"], report["warnings"]) == numbers[:2]
    return numbers


def _of_markdown(text: str) -> Numbers:
    heads = re.findall(r"<summary>\W+<b>(\w+)</b> \((\w+)(?:, \d+ topics)?\): ", text)
    return _count_numbers(heads)


def _of_github(text: str) -> Numbers:
    kinds = {"notice": "waived"}
    commands = re.findall(r"^::(\w+) title=(\w+)", text, re.MULTILINE)
    return _count_numbers([(rule, kinds.get(level, level)) for level, rule in commands])


def _of_azure(text: str) -> Numbers:
    issues = [(properties["code"], properties["type"]) for properties, _ in azure_issues(text)]
    return _count_numbers(
        [*issues, *((rule, "waived") for rule in re.findall(r"^(\w+) \(waived\)", text, re.MULTILINE))]
    )


def _of_sarif(text: str) -> Numbers:
    (run,) = json.loads(text)["runs"]
    return _count_numbers(
        [(result["ruleId"], "waived" if "suppressions" in result else result["level"]) for result in run["results"]]
    )


def _of_junit(text: str) -> Numbers:
    """A cause has a case in the suite of each of its topics; warnings are in the output of a suite."""
    suites = ET.fromstring(text)  # noqa: S314  our own output
    places = {
        (kind, case.get("name", "").partition(" ")[0], case.get("file"), case.get("line"))
        for case in suites.iter("testcase")
        for kind in (element.tag for element in case)
    }
    remarks = "\n".join(output.text or "" for output in suites.iter("system-out"))
    warnings = re.findall(r"^([A-Z_]+): ", remarks, re.MULTILINE)
    kinds = {"failure": "error", "skipped": "waived"}
    return _count_numbers(
        [*((rule, kinds[kind]) for kind, rule, *_ in places), *((rule, "warning") for rule in warnings)]
    )


def _of_gitlab(text: str) -> Numbers:
    kinds = {"critical": "error", "minor": "warning", "info": "waived"}
    return _count_numbers([(entry["check_name"], kinds[entry["severity"]]) for entry in json.loads(text)])


def _of_html(text: str) -> Numbers:
    heads = re.findall(r'<span class="tag">(\w+)</span> <h3>(\w+)</h3>', text)
    numbers = _count_numbers([(rule, weight) for weight, rule in heads])
    for count, weight in ((numbers.errors, "errors"), (numbers.warnings, "warnings"), (numbers.waived, "waived")):
        assert f">{count} {weight}</li>" in text
    return numbers


def _count_numbers(causes: list[tuple[str, str]]) -> Numbers:
    count = Counter(kind for _, kind in causes)
    rules = frozenset(rule for rule, kind in causes if kind == "error")
    return Numbers(count["error"], count["warning"], count["waived"], rules)


READERS: dict[str, Callable[[str], Numbers]] = {
    "text": _of_text,
    "concise": _of_concise,
    "json": _of_json,
    "markdown": _of_markdown,
    "summary": _of_markdown,
    "github": _of_github,
    "azure": _of_azure,
    "sarif": _of_sarif,
    "junit": _of_junit,
    "gitlab": _of_gitlab,
    "html": _of_html,
}


@pytest.mark.parametrize("name", ["summary", *CHECK_FORMATS])
def test_every_format_has_the_same_numbers(name: str, reports_by_format: dict[str, str]) -> None:
    assert READERS[name](reports_by_format[name]) == EXPECTED


@pytest.mark.parametrize("name", ["text", "markdown", "summary", "github", "azure", "html"])
def test_every_format_for_people_has_the_same_sum(name: str, reports_by_format: dict[str, str]) -> None:
    words = (
        f"{pull_request.CHANGED} changed, 1 policy changed, 12 failed (1 waived, 4 errors in 12 topics, 4 warnings)."
    )
    assert words in reports_by_format[name]


def test_each_cause_has_its_topics(reports_by_format: dict[str, str]) -> None:
    causes = json.loads(reports_by_format["json"])["causes"]
    topics_by_rule = {
        cause["rule"]: {name.removeprefix("persistent://") for name in cause["topics"]}
        for cause in causes
        if cause["severity"] == "error" and not cause["waived"]
    }
    assert {rule: topics_by_rule[rule] for rule in pull_request.CAUSES} == pull_request.CAUSES
    rows = json.loads(reports_by_format["json"])["topics"]
    assert len(rows) == pull_request.CHANGED
    removed = {row["topic"].removeprefix("persistent://") for row in rows if row["change"] == "removed"}
    assert removed == {*pull_request.DELETED, pull_request.RENAMED[0]}
    assert {row["owner"] for row in rows if row["change"] == "new version"} == {"team-sales", "team-web"}


def test_a_comment_has_the_diff_the_proof_the_fix_and_links(reports_by_format: dict[str, str]) -> None:
    text = reports_by_format["markdown"]
    assert markdown_faults(text, HOST) == []
    assert text.startswith("<!-- schemactl:report:check -->\n")
    (block,) = re.findall(r"<details[^>]*><summary>\W+<b>TYPE_MISMATCH.*?</details>", text, re.DOTALL)
    assert re.search(
        r'^```diff\n--- version 0 \(.*\n\+\+\+ this change\n@@ .*\n(.*\n)*-.*"long"\n\+.*"string"\n',
        block,
        re.MULTILINE,
    )
    assert "**Counterexample:** " in block
    assert "**Fix:** keep long" in block
    assert f"({HOST}/blob/{COMMIT}/namespaces/common/money.avsc#L8)" in block
    assert "schemactl waive" in block
    weights = re.findall(r"<summary>\W+<b>\w+</b> \((\w+)", text)
    assert weights == sorted(weights, key=["waived", "error", "warning"].index)
    assert all(topic in block for topic in pull_request.OF_MONEY)


def test_the_rows_that_fail_stand_first_in_a_comment(reports_by_format: dict[str, str]) -> None:
    rows = re.findall(r"^\| <code>.*\*\*breaking\*\* \|$|^\| <code>.*$", reports_by_format["markdown"], re.MULTILINE)
    breaking = ["**breaking**" in row for row in rows]
    assert breaking == sorted(breaking, reverse=True)


def test_text_fits_the_terminal_and_colors_problems(tmp_path: Path) -> None:
    path = pull_request.make(tmp_path / "repository").path
    text = wrap_text(render_text(check(path, base="main"), color=True, width=80), 80)
    lines, _ = read_screen(text)
    rows = lines[next(at for at, line in enumerate(lines) if line.startswith("topic ")) :]
    assert max(map(len, rows)) <= 80
    assert "shop/sales/order0 " in "\n".join(rows)
    assert "\x1b[31mbreaking\x1b[0m" in text
    assert "\x1b[32mcompatible\x1b[0m" in text


def test_annotations_are_the_commands_of_their_build_server_alone(reports_by_format: dict[str, str]) -> None:
    assert [*workflow_commands(reports_by_format["github"])] == ["notice"] + ["error"] * 4 + ["warning"] * 4
    assert [command.split()[0] for command in workflow_commands(reports_by_format["azure"])] == ["task.logissue"] * 8
    issue, message = azure_issues(reports_by_format["azure"])[1]
    assert (issue["code"], issue["sourcepath"], issue["linenumber"]) == (
        "TYPE_MISMATCH",
        "namespaces/common/money.avsc",
        "8",
    )
    assert "Counterexample: {" in message
