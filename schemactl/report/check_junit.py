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
    """Errors are failures, waived ones are skipped; warnings and notes stand in the suite's `system-out`. A topic without errors has a passing case."""
    found: dict[TopicName | None, list[Finding]] = {}
    # What targets have otherwise is of the same topic.
    changed = {each.topic: each.change for each in reversed(report.topics)}
    for finding in (*report.waived, *report.findings):
        found.setdefault(finding.topic if finding.topic in changed else None, []).append(finding)
    suites = [("schemactl.yaml", "settings", causes(found[None]))] if None in found else []
    suites += [(str(name), change, causes(found.get(name, ()))) for name, change in sorted(changed.items())]
    failures = sum(_is_error(cause) for _, _, group in suites for cause in group)
    skipped = sum(bool(cause.waivers) for _, _, group in suites for cause in group)
    fine = sum(not any(_is_error(cause) or cause.waivers for cause in group) for _, _, group in suites)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="schemactl check" tests="{failures + skipped + fine}" failures="{failures}" errors="0">',
            *(_suite(*suite, report) for suite in suites),
            "</testsuites>",
        ]
    )


def _suite(name: str, change: str, group: Sequence[Cause], report: CheckReport) -> str:
    waived = [cause for cause in group if cause.waivers]
    errors = [cause for cause in group if _is_error(cause)]
    others = [cause for cause in group if not cause.waivers and not _is_error(cause)]
    cases = [_case(name, cause, report) for cause in (*waived, *errors)] or [
        f"    <testcase classname={_attribute(name)} name={_attribute(change)}></testcase>"
    ]
    remarks = "".join(f"{cause.lead.rule}: {message(cause, report)}\n" for cause in others)
    output = [f"    <system-out>{_text(remarks)}</system-out>"] if remarks else []
    head = f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="{len(waived)}">'
    return "\n".join([head, *cases, *output, "  </testsuite>"])


def _case(suite: str, cause: Cause, report: CheckReport) -> str:
    lead, source = cause.lead, cause.lead.place
    place = f" file={_attribute(source.path)} line={_attribute(str(source.line))}" if source else ""
    name = f"{lead.rule} {lead.pointer} {lead.direction or ''}".strip()
    text = message(cause, report)
    if cause.waivers:
        outcome = f"<skipped message={_attribute(text)}></skipped>"
    else:
        first = _attribute(lead.message.partition("\n")[0])
        outcome = f"<failure type={_attribute(lead.rule)} message={first}>{_text(text)}</failure>"
    return f"    <testcase classname={_attribute(suite)} name={_attribute(name)}{place}>{outcome}</testcase>"


def _is_error(cause: Cause) -> bool:
    return cause.severity == "error" and not cause.waivers


def _attribute(text: str) -> str:
    return quoteattr(_ILLEGAL.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", text))
