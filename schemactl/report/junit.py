"""A check's report as JUnit XML: a suite for each changed topic and one for the settings, a case for each of its causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, islice
from xml.sax.saxutils import escape, quoteattr

from schemactl.checks.check_report import CheckReport, causes
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.terminal import clean
from schemactl.report.causes import ShownCause, in_report

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render(report: CheckReport) -> str:
    """Errors are failures, waived ones are skipped; warnings and notes stand in the suite's `system-out`. A topic without errors has a passing case."""
    found: dict[TopicName | None, list[Finding]] = {}
    # What targets have otherwise is of the same topic.
    changed = {each.topic: each.change for each in reversed(report.topics)}
    for finding in (*report.waived, *report.findings):
        found.setdefault(finding.topic if finding.topic in changed else None, []).append(finding)
    names: list[tuple[TopicName | None, str, str]] = [(None, "schemactl.yaml", "settings")] if None in found else []
    names += [(name, str(name), change) for name, change in sorted(changed.items())]
    groups = [causes(found.get(name, ())) for name, _, _ in names]
    shown = in_report(chain.from_iterable(groups), report)
    suites = [
        (title, change, [*islice(shown, len(group))]) for (_, title, change), group in zip(names, groups, strict=True)
    ]
    failures = sum(cause.weight == "error" for *_, group in suites for cause in group)
    skipped = sum(cause.weight == "waived" for *_, group in suites for cause in group)
    fine = sum(not any(cause.weight in ("error", "waived") for cause in group) for *_, group in suites)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="schemactl {report.command}" tests="{failures + skipped + fine}" failures="{failures}" errors="0">',
            *(_suite(*suite) for suite in suites),
            "</testsuites>",
        ]
    )


def _suite(name: str, change: str, group: Sequence[ShownCause]) -> str:
    waived = [cause for cause in group if cause.weight == "waived"]
    errors = [cause for cause in group if cause.weight == "error"]
    others = [cause for cause in group if cause.weight in ("warning", "note")]
    cases = [_case(name, cause) for cause in (*waived, *errors)] or [
        f"    <testcase classname={_attribute(name)} name={_attribute(change)}></testcase>"
    ]
    remarks = "".join(f"{cause.lead.rule}: {cause.message}\n" for cause in others)
    output = [f"    <system-out>{_text(remarks)}</system-out>"] if remarks else []
    head = f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{len(errors)}" errors="0" skipped="{len(waived)}">'
    return "\n".join([head, *cases, *output, "  </testsuite>"])


def _case(suite: str, cause: ShownCause) -> str:
    lead, source = cause.lead, cause.lead.place
    place = f" file={_attribute(source.path)} line={_attribute(str(source.line))}" if source else ""
    name = f"{lead.rule} {lead.pointer} {lead.direction or ''}".strip()
    text = cause.message
    if cause.weight == "waived":
        outcome = f"<skipped message={_attribute(text)}></skipped>"
    else:
        first = _attribute(lead.message.partition("\n")[0])
        outcome = f"<failure type={_attribute(lead.rule)} message={first}>{_text(text)}</failure>"
    return f"    <testcase classname={_attribute(suite)} name={_attribute(name)}{place}>{outcome}</testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """Return `text` in characters that XML can have."""
    return _ILLEGAL.sub("\ufffd", clean(text, starts_line=False))
