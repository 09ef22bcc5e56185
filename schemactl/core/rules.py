"""Read the rules from their pages in docs/rules: summary, reason, example and fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from typing import Any, Final, Literal

from schemactl.core.documentation import find_documentation
from schemactl.core.environment import get_page_address, list_entry_points
from schemactl.core.errors import SchemactlError


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a check looks for.

    Attributes:
        id: the id, as in Avro's Java SchemaCompatibility or buf if they have the rule.
        verdict: the origin: `data` (readers of messages), `broker` (the answer of the registry), `declaration` (the declared
            files), `tables` (tables that a topic feeds), `lint` (probable mistakes that break nothing yet).
        severity: the default severity; a rule with `off` is checked only if the project sets its severity.
        summary: one sentence on the problem.
        why: the consequences, and for whom.
        example: text of the user before and after.
        fix: the text to write instead.
        link: the specification or source.
        enabled_by: the setting of `schemactl.yaml` that enables the rule, or "".
        is_fixed: whether `severities` does not apply.
    """

    id: str
    verdict: Literal["data", "broker", "declaration", "tables", "lint"]
    severity: Literal["error", "warning", "note", "off"]
    summary: str
    why: str
    example: str
    fix: str
    link: str
    enabled_by: str = ""
    is_fixed: bool = False

    @property
    def is_waivable(self) -> bool:
        """Whether a waiver can approve its findings: it concerns a breaking change that users may decide to make."""
        return (
            self.verdict in ("data", "tables")
            or self.id
            in (
                "BROKER_INCOMPATIBLE",
                "CLIENT_BREAKS",
                "RENAME_UNDECLARED",
                "DELETED_TOPIC",
                "NEW_GENERATION",
                "SCHEMA_REMOVED",
                "KIND_REMOVED",
            )
            or self.enabled_by.startswith("protobuf: {rules")
        )


LINT_RULES: Final = "schemactl.lint_rules"
"""The entry point group of lint rules in other packages: the rule's id and its `LintRule` class."""

_INDEX_ROW: Final = re.compile(r"^\| \[(\w+)\]\(\1\.md\)", re.MULTILINE)
"""A rule in the index of the pages."""

_PAGE: Final = re.compile(
    r"# (?P<id>\w+)\n\n(?P<summary>.+)\n\n"
    r"Verdict: (?P<verdict>\w+)\. "
    r"Severity(?: unless the project says otherwise|(?P<is_fixed>, which a project cannot change)): (?P<severity>\w+)\."
    r"(?: Checked only with `(?P<enabled_by>[^`]+)` in `schemactl\.yaml`\.)?\n\n"
    r"## Why it matters\n\n(?P<why>.+)\n\n"
    r"## Example\n\n(?P<example>(?:    .+\n|\n)+)\n"
    r"## Fix\n\n(?P<fix>.+)\n\n"
    r"See <(?P<link>\S+)>\. \[All rules\]\(README\.md\)\n"
)


def get_all_rules() -> dict[str, Rule]:
    """Return every rule by id: the built-in rules, then the rules of other packages.

    Raises:
        SchemactlError: if a rule of another package is not a lint rule, or has the id of a built-in rule.
    """
    rules_by_id = dict(get_builtin_rules())
    for entry in list_entry_points(LINT_RULES):
        rule = getattr(entry.load(), "rule", None)
        if not isinstance(rule, Rule) or rule.id != entry.name or rule.verdict != "lint" or rule.id in rules_by_id:
            raise SchemactlError(
                f"the entry point {entry.name} = {entry.value} of {LINT_RULES} is not a separate lint rule",
                fix=f'give the class an attribute: rule = Rule(id="{entry.name}", verdict="lint", ...)',
            )
        rules_by_id[rule.id] = rule
    return rules_by_id


def find_page(rule_id: str) -> str:
    """Return the address of a rule's page, or of the reference that a rule of another package names."""
    if rule_id in get_builtin_rules():
        return get_page_address(f"rules/{rule_id}")
    rule = get_all_rules().get(rule_id)
    return rule.link if rule else ""


@cache
def get_builtin_rules() -> Mapping[str, Rule]:
    """Return the built-in rules by id, in the order of the index page."""
    folder = find_documentation() / "rules"
    names = _INDEX_ROW.findall((folder / "README.md").read_text(encoding="utf-8"))
    rules_by_id: dict[str, Rule] = {}
    for name in names:
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        match = _PAGE.fullmatch(page)
        if match is None:
            raise AssertionError(f"a page does not have the form of a rule's: {page.splitlines()[0]}")
        parts: dict[str, Any] = match.groupdict()
        parts["example"] = dedent(parts["example"]).strip("\n")
        parts["enabled_by"] = parts["enabled_by"] or ""
        parts["is_fixed"] = parts["is_fixed"] is not None
        rules_by_id[name] = Rule(**parts)
    return rules_by_id
