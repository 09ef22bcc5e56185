"""A check's report as SARIF 2.1.0, as GitHub code scanning and editors read it."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from schemactl.checks.check_report import Cause, CheckReport
from schemactl.core.environment import home, version
from schemactl.core.errors import Source
from schemactl.core.findings import Finding
from schemactl.core.rules import Rule, every_rule
from schemactl.core.wording import versions
from schemactl.report.causes import ShownCause, approval, shown_causes
from schemactl.report.check import summary
from schemactl.report.markdown import code, fenced, link, plain


def render(report: CheckReport) -> str:
    """One run with the rules that fired and a result for each cause; waived ones first, as suppressed."""
    known = every_rule()
    causes = shown_causes(report)
    fired = sorted({cause.lead.rule for cause in causes})
    driver: dict[str, Any] = {"name": "schemactl", "semanticVersion": version()}
    driver |= {"informationUri": home()} if home() else {}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {**driver, "rules": [_rule(known[rule]) for rule in fired]}},
                "automationDetails": {"id": f"schemactl/{report.command}/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": report.decided}],
                "results": [_result(cause, fired.index(cause.lead.rule)) for cause in causes],
                "properties": {"summary": summary(report)},
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _rule(rule: Rule) -> dict[str, Any]:
    example = fenced(rule.example.strip("\n").split("\n"), "text")
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.fix}\n\n{rule.example}",
            "markdown": f"{plain(rule.summary)}\n\n{plain(rule.why)}\n\n**Fix:** {plain(rule.fix)}\n\n{example}\n\n"
            f"{link('Reference', rule.link)}, {code(f'schemactl explain {rule.id}')}",
        },
        "helpUri": rule.link,
        "defaultConfiguration": {"level": "none" if rule.severity == "off" else rule.severity},
        "properties": {"tags": ["schema", rule.verdict]},
    }


def _result(cause: ShownCause, index: int) -> dict[str, Any]:
    finding, report = cause.lead, cause.report
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": cause.message},
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint(cause.cause)}:1"},
        "locations": [
            {
                # Code scanning rejects a result without location: what has no place is shown at the project file.
                "physicalLocation": _physical(finding.place or Source(report.settings), whole=not finding.place),
                "logicalLocations": [
                    {"fullyQualifiedName": name} for name in dict.fromkeys(map(_logical, cause.cause.findings))
                ],
            }
        ],
        "properties": _properties(cause),
    }
    older = {each.older: each for each in cause.cause.findings if each.older}
    if older:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _physical(place),
                "message": {"text": f"In the older definition ({versions(each.against)})"},
            }
            for number, (place, each) in enumerate(older.items(), 1)
        ]
    if cause.weight == "waived":
        justification = "\n".join(dict.fromkeys(map(approval, cause.cause.waivers)))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    return result


def _physical(source: Source, *, whole: bool = False) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(source.path, errors="backslashreplace")}}
    if not whole:
        location["region"] = {"startLine": source.line, "startColumn": source.column}
        location["region"] |= {"endColumn": source.end_column} if source.end_column else {}
    return location


def _properties(cause: ShownCause) -> dict[str, Any]:
    """Return what has no place of its own in the format; nothing that is empty."""
    finding = cause.lead
    found = {
        "cause": cause.cause.id,
        "verdict": finding.verdict,
        "topics": [str(topic) for topic in cause.cause.topics],
        "owners": [*cause.owners],
        "targets": [*finding.targets],
        "direction": finding.direction,
        "against": [*finding.against],
        "fix": finding.fix,
        "fingerprints": [each.fingerprint for each in cause.cause.findings if each.fingerprint],
        "commit": finding.commit.id if finding.commit else None,
        "onlyAtTip": finding.only_at_tip,
        "beforeChange": finding.before_change,
    }
    return {name: value for name, value in found.items() if value}


def _logical(finding: Finding) -> str:
    return f"{finding.topic or ''}#{finding.field or finding.pointer}".rstrip("#") or "schemactl.yaml"


def fingerprint(cause: Cause) -> str:
    """Return 32 hex digits that stay the same in the next run, also where lines have moved or the edit has become another."""
    lead = cause.lead
    # Of a declaration, the message alone may say which one it is.
    words = lead.message if lead.verdict == "declaration" else ""
    parts = [lead.rule, str(lead.topic), lead.pointer, str(lead.direction), str(lead.against), words]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
