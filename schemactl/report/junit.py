"""Render a check as JUnit XML: a suite for each changed topic and one for the settings, with a case for each cause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from schemactl.checks.check_report import CheckReport, group_findings
from schemactl.core.findings import Finding, UpgradeFirst
from schemactl.core.names import TopicName, format_kind_name
from schemactl.core.terminal import clean
from schemactl.report.causes import ShownCause

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render(report: CheckReport) -> str:
    """Return errors as failures, waived causes as skipped cases, other causes as output of the suite.

    A suite without errors and waived causes has one passing case.
    """
    # Reversed, so that the first check of a topic that differs between targets counts.
    changes = {check.topic: check.change for check in reversed(report.topics)}
    findings_by_topic: dict[TopicName | None, list[Finding]] = {}
    for finding in (*report.waived, *report.findings):
        topic = finding.topic if finding.topic in changes else None
        findings_by_topic.setdefault(topic, []).append(finding)
    orders: dict[str, dict[str, UpgradeFirst]] = {}
    for check in report.topics:
        if check.upgrade_first:
            orders.setdefault(str(check.topic), {})[format_kind_name(check.topic, check.kind)] = check.upgrade_first
    suites = []
    for topic, change in [(None, "settings"), *sorted(changes.items())]:
        if topic or None in findings_by_topic:
            causes = [
                ShownCause(cause.findings, cause.refusals, report=report)
                for cause in group_findings(findings_by_topic.get(topic, ()))
            ]
            suites.append((str(topic) if topic else "schemactl.yaml", change, causes))
    failures = sum(cause.level == "error" for *_, suite in suites for cause in suite)
    skipped = sum(cause.level == "waived" for *_, suite in suites for cause in suite)
    passed = sum(not any(cause.level in ("error", "waived") for cause in suite) for *_, suite in suites)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="schemactl {report.command}" tests="{failures + skipped + passed}" failures="{failures}" errors="0">',
            *(_render_suite(*suite, orders.get(suite[0], {})) for suite in suites),
            "</testsuites>",
        ]
    )


def _render_suite(
    name: str, change: str, shown_causes: Sequence[ShownCause], orders: Mapping[str, UpgradeFirst]
) -> str:
    waived = [cause for cause in shown_causes if cause.level == "waived"]
    errors = [cause for cause in shown_causes if cause.level == "error"]
    others = [cause for cause in shown_causes if cause.level in ("warning", "note")]
    suite_attribute = f"classname={_quote_attribute(name)}"
    cases = []
    for cause in (*waived, *errors):
        primary, source = cause.primary_finding, cause.primary_finding.place
        place = f' file={_quote_attribute(source.path)} line="{source.line}"' if source else ""
        case_name = f"{primary.rule} {primary.pointer} {primary.direction or ''}".strip()
        text = cause.message
        if cause.level == "waived":
            outcome = f"<skipped message={_quote_attribute(text)}></skipped>"
        else:
            first_line = _quote_attribute(primary.summary)
            outcome = (
                f"<failure type={_quote_attribute(primary.rule)} message={first_line}>{_escape_text(text)}</failure>"
            )
        cases.append(f"    <testcase {suite_attribute} name={_quote_attribute(case_name)}{place}>{outcome}</testcase>")
    cases = cases or [f"    <testcase {suite_attribute} name={_quote_attribute(change)}></testcase>"]
    text = "".join(f"{cause.primary_finding.rule}: {cause.message}\n" for cause in others)
    output = [f"    <system-out>{_escape_text(text)}</system-out>"] if text else []
    head = f'  <testsuite name={_quote_attribute(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="{len(waived)}">'
    order_properties = "".join(
        f"<property name={_quote_attribute(f'upgrade first{label.removeprefix(name)}')} value={_quote_attribute(order)}></property>"
        for label, order in orders.items()
    )
    properties = [f"    <properties>{order_properties}</properties>"] if orders else []
    return "\n".join([head, *properties, *cases, *output, "  </testsuite>"])


def _quote_attribute(text: str) -> str:
    return quoteattr(_replace_illegal(text))


def _escape_text(text: str) -> str:
    return escape(_replace_illegal(text))


def _replace_illegal(text: str) -> str:
    """Return `text` with the characters that XML does not allow replaced."""
    return _ILLEGAL.sub("\ufffd", clean(text, starts_line=False))
