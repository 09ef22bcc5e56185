"""Render a check as SARIF 2.1.0 for GitHub code scanning and editors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from schemactl.checks.check_report import CheckReport
from schemactl.core.edits import LineEdit
from schemactl.core.environment import get_home_page, get_version
from schemactl.core.errors import Source
from schemactl.core.escaping import escape_markdown
from schemactl.core.findings import Finding
from schemactl.core.names import format_kind_name
from schemactl.core.rules import Rule, find_page, get_all_rules
from schemactl.core.wording import describe_waiver, format_version_numbers
from schemactl.report.causes import ShownCause, rank_causes
from schemactl.report.check import summarize_check
from schemactl.report.markdown import code, fence_lines, link


def render(report: CheckReport) -> str:
    """Return one run with the violated rules and a result for each cause; waived causes come first, as suppressed."""
    rules = get_all_rules()
    causes = rank_causes(report)
    rule_ids = sorted({cause.primary_finding.rule for cause in causes})
    driver: dict[str, Any] = {"name": "schemactl", "semanticVersion": get_version()}
    driver |= {"informationUri": get_home_page()} if get_home_page() else {}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {**driver, "rules": [_make_rule_value(rules[rule]) for rule in rule_ids]}},
                "automationDetails": {"id": f"schemactl/{report.command}/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": report.decided}],
                "results": [_make_result_value(cause, rule_ids.index(cause.primary_finding.rule)) for cause in causes],
                "properties": {
                    "summary": summarize_check(report),
                    "upgradeFirst": {
                        format_kind_name(topic.topic, topic.kind): topic.upgrade_first
                        for topic in report.topics
                        if topic.upgrade_first
                    },
                },
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _make_rule_value(rule: Rule) -> dict[str, Any]:
    example = fence_lines(rule.example.strip("\n").split("\n"), "text")
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.fix}\n\n{rule.example}",
            "markdown": f"{escape_markdown(rule.summary)}\n\n{escape_markdown(rule.why)}\n\n**Fix:** {escape_markdown(rule.fix)}\n\n{example}\n\n"
            f"{link('Rule', find_page(rule.id))}, {link('reference', rule.link)}, {code(f'schemactl explain {rule.id}')}",
        },
        "helpUri": find_page(rule.id),
        "defaultConfiguration": {"level": "none" if rule.severity == "off" else rule.severity},
        "properties": {"tags": ["schema", rule.verdict]},
    }


def _make_result_value(cause: ShownCause, index: int) -> dict[str, Any]:
    finding, report = cause.primary_finding, cause.report
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": cause.message},
        "partialFingerprints": {"primaryLocationLineHash": f"{cause.tracking_id}:1"},
        "locations": [
            {
                # Code scanning rejects a result without location, so the project file is the default.
                "physicalLocation": _make_location_value(
                    finding.place or Source(report.settings), whole=not finding.place
                ),
                "logicalLocations": [
                    {"fullyQualifiedName": name or "schemactl.yaml"}
                    for name in dict.fromkeys(
                        f"{member.topic or ''}#{member.field or member.pointer}".rstrip("#")
                        for member in cause.findings
                    )
                ],
            }
        ],
        "properties": _list_properties(cause),
    }
    # The place in the newest version that a finding breaks with, or at least the definition of this version.
    older: dict[Source, Finding] = {}
    for member in cause.findings:
        place = member.older
        if not place and member.against:
            check = cause.find_check(member)
            versions = [version for version in (check.versions if check else ()) if version.number in member.against]
            place = versions[-1].info.locate("") if versions and versions[-1].info else None
        if place:
            older[place] = member
    if older:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _make_location_value(place),
                "message": {"text": f"In the older definition ({format_version_numbers(member.against)})"},
            }
            for number, (place, member) in enumerate(older.items(), 1)
        ]
    if edits := cause.edits:
        result["fixes"] = [_make_fix_value(finding.fix, edits)]
    if cause.level == "waived":
        justification = "\n".join(dict.fromkeys(map(describe_waiver, cause.waivers)))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    return result


def _make_fix_value(description: str, edits: Sequence[LineEdit]) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in edits:
        region = {
            "startLine": edit.start,
            "startColumn": 1,
            "endLine": edit.end,
            "endColumn": len(edit.old_lines[-1]) + 1,
        }
        replacement = {"deletedRegion": region, "insertedContent": {"text": "\n".join(edit.new_lines)}}
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": description},
        "artifactChanges": [
            {"artifactLocation": {"uri": quote(path, errors="backslashreplace")}, "replacements": replacements}
            for path, replacements in changes.items()
        ],
    }


def _make_location_value(source: Source, *, whole: bool = False) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(source.path, errors="backslashreplace")}}
    if not whole:
        location["region"] = {"startLine": source.line, "startColumn": source.column}
        location["region"] |= {"endColumn": source.end_column} if source.end_column else {}
    return location


def _list_properties(cause: ShownCause) -> dict[str, Any]:
    """Return the values for which the format has no field, without empty ones."""
    finding = cause.primary_finding
    properties = {
        "cause": cause.id,
        "verdict": finding.verdict,
        "topics": [str(topic) for topic in cause.topics],
        "owners": [*cause.owners],
        "targets": [*finding.targets],
        "direction": finding.direction,
        "against": [*finding.against],
        "fix": finding.fix,
        "fingerprints": [member.fingerprint for member in cause.findings if member.fingerprint],
        "commit": finding.commit.id if finding.commit else None,
        "onlyAtTip": finding.only_at_tip,
        "beforeChange": finding.before_change,
    }
    return {name: value for name, value in properties.items() if value}
