"""A check's report as JUnit XML: a suite for each changed topic and one for the settings, a case for each verdict and finding."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from schemactl.checking import CheckReport
from schemactl.report import message_with_fix
from schemactl.verdicts import Finding

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """Errors are failures; warnings and notes stand in the suite's `system-out`. A topic without errors has a passing case."""
    changed = {topic.topic for topic in report.topics}
    rest = [finding for finding in report.findings if finding.topic not in changed]
    groups = [("schemactl.yaml", "settings", rest)] if rest else []
    groups += [
        (str(topic.topic), topic.change, [f for f in report.findings if f.topic == topic.topic])
        for topic in report.topics
    ]
    failures = report.count("error")
    fine = sum(all(finding.severity != "error" for finding in findings) for _, _, findings in groups)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="schemactl check" tests="{failures + fine}" failures="{failures}" errors="0">',
            *(_suite(*group) for group in groups),
            "</testsuites>",
        ]
    )


def _suite(name: str, change: str, findings: list[Finding]) -> str:
    errors = [finding for finding in findings if finding.severity == "error"]
    others = [finding for finding in findings if finding.severity != "error"]
    cases = [_case(name, finding) for finding in errors] or [
        f"    <testcase classname={_attribute(name)} name={_attribute(change)}></testcase>"
    ]
    remarks = "".join(f"{finding.rule}: {finding.message}\n" for finding in others)
    output = [f"    <system-out>{_text(remarks)}</system-out>"] if remarks else []
    head = f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="0">'
    return "\n".join([head, *cases, *output, "  </testsuite>"])


def _case(suite: str, finding: Finding) -> str:
    place = (
        f" file={_attribute(finding.source.path)} line={_attribute(str(finding.source.line))}"
        if finding.source
        else ""
    )
    name = f"{finding.rule} {finding.pointer} {finding.direction or ''}".strip()
    first = finding.message.partition("\n")[0]
    return (
        f"    <testcase classname={_attribute(suite)} name={_attribute(name)}{place}>"
        f"<failure type={_attribute(finding.rule)} message={_attribute(first)}>{_text(message_with_fix(finding))}</failure></testcase>"
    )


def _attribute(text: str) -> str:
    return quoteattr(_ILLEGAL.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", text))
