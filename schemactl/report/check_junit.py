"""A check's report as JUnit XML: a suite for each changed topic and one for the settings, a case for each of its causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from schemactl.checking import Cause, CheckReport
from schemactl.checking.causes import causes
from schemactl.model import TopicName
from schemactl.report.cause import message
from schemactl.verdicts import Finding

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """Errors are failures; warnings and notes stand in the suite's `system-out`. A topic without errors has a passing case."""
    found: dict[TopicName | None, list[Finding]] = {}
    changed = {topic.topic for topic in report.topics}
    for finding in report.findings:
        found.setdefault(finding.topic if finding.topic in changed else None, []).append(finding)
    suites = [("schemactl.yaml", "settings", causes(found[None]))] if None in found else []
    suites += [(str(each.topic), each.change, causes(found.get(each.topic, ()))) for each in report.topics]
    failures = sum(cause.severity == "error" for _, _, group in suites for cause in group)
    fine = sum(all(cause.severity != "error" for cause in group) for _, _, group in suites)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="schemactl check" tests="{failures + fine}" failures="{failures}" errors="0">',
            *(_suite(*suite, report) for suite in suites),
            "</testsuites>",
        ]
    )


def _suite(name: str, change: str, group: Sequence[Cause], report: CheckReport) -> str:
    errors = [cause for cause in group if cause.severity == "error"]
    others = [cause for cause in group if cause.severity != "error"]
    cases = [_case(name, cause, report) for cause in errors] or [
        f"    <testcase classname={_attribute(name)} name={_attribute(change)}></testcase>"
    ]
    remarks = "".join(f"{cause.lead.rule}: {message(cause, report)}\n" for cause in others)
    output = [f"    <system-out>{_text(remarks)}</system-out>"] if remarks else []
    head = f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="0">'
    return "\n".join([head, *cases, *output, "  </testsuite>"])


def _case(suite: str, cause: Cause, report: CheckReport) -> str:
    lead, source = cause.lead, cause.lead.place
    place = f" file={_attribute(source.path)} line={_attribute(str(source.line))}" if source else ""
    name = f"{lead.rule} {lead.pointer} {lead.direction or ''}".strip()
    first = lead.message.partition("\n")[0]
    return (
        f"    <testcase classname={_attribute(suite)} name={_attribute(name)}{place}>"
        f"<failure type={_attribute(lead.rule)} message={_attribute(first)}>{_text(message(cause, report))}</failure></testcase>"
    )


def _attribute(text: str) -> str:
    return quoteattr(_ILLEGAL.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", text))
