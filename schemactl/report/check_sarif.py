"""A check's report as SARIF 2.1.0, as GitHub code scanning and editors read it."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from schemactl.checking import Cause, CheckReport
from schemactl.report.cause import ShownCause, approval, shown_causes
from schemactl.rules import Rule, every_rule
from schemactl.verdicts import Finding


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """One run with the rules that fired and a result for each cause; waived ones first, as suppressed."""
    known = every_rule()
    causes = shown_causes(report)
    fired = sorted({cause.lead.rule for cause in causes})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "schemactl", "rules": [_rule(known[rule]) for rule in fired]}},
                "automationDetails": {"id": f"schemactl/{report.command}/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": report.decided}],
                "results": [_result(cause, report, fired.index(cause.lead.rule)) for cause in causes],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.fix}\n\n{rule.example}"},
        "helpUri": rule.link,
        "defaultConfiguration": {"level": "none" if rule.severity == "off" else rule.severity},
    }


def _result(shown: ShownCause, report: CheckReport, index: int) -> dict[str, Any]:
    cause, finding = shown.cause, shown.lead
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": shown.message},
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint(cause)}:1"},
    }
    properties: dict[str, Any] = {"onlyAtTip": True} if finding.only_at_tip else {}
    if finding.commit:
        properties["commit"] = finding.commit.id
    if properties:
        result["properties"] = properties
    if cause.waivers:
        justification = "\n".join(dict.fromkeys(map(approval, cause.waivers)))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    # Code scanning rejects a result without location: what has no place is shown at the project file.
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(report.settings)}}
    if source := finding.place:
        region = {"startLine": source.line, "startColumn": source.column}
        location = {"artifactLocation": {"uri": quote(source.path)}, "region": region}
    names = dict.fromkeys(map(_logical, cause.findings))
    result["locations"] = [
        {"physicalLocation": location, "logicalLocations": [{"fullyQualifiedName": name} for name in names]}
    ]
    return result


def _logical(finding: Finding) -> str:
    return f"{finding.topic or ''}#{finding.field or finding.pointer}".rstrip("#") or "schemactl.yaml"


def fingerprint(cause: Cause) -> str:
    """Return 32 hex digits that stay the same in the next run, also where lines have moved or the edit has become another."""
    lead = cause.lead
    # Of a declaration, the message alone may say which one it is.
    words = lead.message if lead.verdict == "declaration" else ""
    parts = [lead.rule, str(lead.topic), lead.pointer, str(lead.direction), str(lead.against), words]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
