"""A check's report as SARIF 2.1.0, as GitHub code scanning and editors read it."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from schemactl.checking import CheckReport
from schemactl.report import message_with_fix
from schemactl.rules import Rule, rules
from schemactl.verdicts import Finding


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """One run with the rules that fired and a result for each finding."""
    known = rules()
    fired = sorted({finding.rule for finding in report.findings})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "schemactl", "rules": [_rule(known[rule]) for rule in fired]}},
                "automationDetails": {"id": "schemactl/check/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": report.decided}],
                "results": [_result(finding, fired.index(finding.rule)) for finding in report.findings],
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
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": message_with_fix(finding)},
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint(finding)}:1"},
    }
    properties: dict[str, Any] = {"onlyAtTip": True} if finding.only_at_tip else {}
    if finding.commit:
        properties["commit"] = finding.commit.id
    if properties:
        result["properties"] = properties
    if finding.source:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(finding.source.path)},
                    "region": {"startLine": finding.source.line, "startColumn": finding.source.column},
                },
                "logicalLocations": [{"fullyQualifiedName": _logical(finding)}],
            }
        ]
    return result


def _logical(finding: Finding) -> str:
    return f"{finding.topic or ''}#{finding.field or finding.pointer}".rstrip("#") or "schemactl.yaml"


def fingerprint(finding: Finding) -> str:
    """Return 32 hex digits that stay the same in the next run, also where lines have moved."""
    parts = [finding.rule, str(finding.topic), finding.pointer, str(finding.direction), str(finding.against)]
    if finding.commit:
        parts.append(finding.commit.id)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
