"""Render a check as JUnit XML: a suite for each changed topic and one for the settings, with a case for each cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemactl.checks.check_report import CheckReport, group_findings
from schemactl.core.escaping import escape_xml, quote_xml
from schemactl.core.findings import Finding, UpgradeFirst
from schemactl.core.names import TopicName, format_kind_name
from schemactl.report.causes import ShownCause


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
    suite_attribute = f"classname={quote_xml(name)}"
    cases = []
    for cause in (*waived, *errors):
        primary, source = cause.primary_finding, cause.primary_finding.place
        place = f' file={quote_xml(source.path)} line="{source.line}"' if source else ""
        case_name = f"{primary.rule} {primary.pointer} {primary.direction or ''}".strip()
        text = cause.message
        if cause.level == "waived":
            outcome = f"<skipped message={quote_xml(text)}></skipped>"
        else:
            first_line = quote_xml(primary.summary)
            outcome = f"<failure type={quote_xml(primary.rule)} message={first_line}>{escape_xml(text)}</failure>"
        cases.append(f"    <testcase {suite_attribute} name={quote_xml(case_name)}{place}>{outcome}</testcase>")
    cases = cases or [f"    <testcase {suite_attribute} name={quote_xml(change)}></testcase>"]
    text = "".join(f"{cause.primary_finding.rule}: {cause.message}\n" for cause in others)
    output = [f"    <system-out>{escape_xml(text)}</system-out>"] if text else []
    head = f'  <testsuite name={quote_xml(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="{len(waived)}">'
    order_properties = "".join(
        f"<property name={quote_xml(f'upgrade first{label.removeprefix(name)}')} value={quote_xml(order)}></property>"
        for label, order in orders.items()
    )
    properties = [f"    <properties>{order_properties}</properties>"] if orders else []
    return "\n".join([head, *properties, *cases, *output, "  </testsuite>"])
