"""The catalogue of rules: each has a page in docs/rules, with its summary, reason, example and fix, which this module reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, Literal

from schemactl.core.environment import of_other_packages
from schemactl.core.errors import SchemactlError


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a check looks for.

    Attributes:
        id: as Avro's Java SchemaCompatibility or buf spell it, where they have it.
        verdict: whose rule it is: `data` (readers meet it), `broker` (the registry answers so), `declaration` (ours),
            `tables` (tables that a topic feeds), `lint` (likely mistakes that break nothing yet).
        severity: unless the project says otherwise; `off`: only a project that says so has it looked for.
        summary: one sentence about what it finds.
        why: what breaks, and for whom.
        example: before and after, as the user would write them.
        fix: what to write instead.
        link: the specification or source it follows.
        asked_with: the setting of `schemactl.yaml` that turns it on; "" where `check` always does.
        is_fixed: `severities` does not concern it.
    """

    id: str
    verdict: Literal["data", "broker", "declaration", "tables", "lint"]
    severity: Literal["error", "warning", "note", "off"]
    summary: str
    why: str
    example: str
    fix: str
    link: str
    asked_with: str = ""
    is_fixed: bool = False

    @property
    def is_waivable(self) -> bool:
        """Whether a waiver can name it: it is about breakage by a schema change that can be made all the same."""
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
            )
            or self.asked_with.startswith("protobuf: {rules")
        )


LINT_RULES: Final = "schemactl.lint_rules"
"""The entry point group for lint rules of other packages: the rule's id, and a `LintRule` class."""

_ROW: Final = re.compile(r"^\| \[(\w+)\]\(\1\.md\)", re.MULTILINE)
"""A rule in the index of the pages."""

_PAGE: Final = re.compile(
    r"# (?P<id>\w+)\n\n(?P<summary>.+)\n\n"
    r"Verdict: (?P<verdict>\w+)\. "
    r"Severity(?: unless the project says otherwise|(?P<is_fixed>, whatever the project says)): (?P<severity>\w+)\."
    r"(?: Checked only with `(?P<asked_with>[^`]+)` in `schemactl\.yaml`\.)?\n\n"
    r"## Why it matters\n\n(?P<why>.+)\n\n"
    r"## Example\n\n(?P<example>(?:    .+\n|\n)+)\n"
    r"## Fix\n\n(?P<fix>.+)\n\n"
    r"See <(?P<link>\S+)>\. \[All rules\]\(README\.md\)\n"
)


def every_rule() -> dict[str, Rule]:
    """Return every rule by id: those of the catalogue, then those that other packages bring.

    Raises:
        SchemactlError: a rule from another package is no lint rule, or has a name of the catalogue.
    """
    known = dict(rules())
    for entry in of_other_packages(LINT_RULES):
        rule = getattr(entry.load(), "rule", None)
        if not isinstance(rule, Rule) or rule.id != entry.name or rule.verdict != "lint" or rule.id in known:
            raise SchemactlError(
                f"the entry point {entry.name} = {entry.value} of {LINT_RULES} is no lint rule of its own",
                fix=f'give the class an attribute: rule = Rule(id="{entry.name}", verdict="lint", ...)',
            )
        known[rule.id] = rule
    return known


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule of the catalogue by id, in the order of the index of its pages."""
    # In a wheel the pages lie in the package.
    folder = Path(__file__).parents[1] / "_rules"
    if not folder.is_dir():
        folder = Path(__file__).parents[2] / "docs" / "rules"
    names = _ROW.findall((folder / "README.md").read_text(encoding="utf-8"))
    return {name: _rule((folder / f"{name}.md").read_text(encoding="utf-8")) for name in names}


def _rule(page: str) -> Rule:
    """Return the rule that a page describes."""
    found = _PAGE.fullmatch(page)
    if found is None:
        raise AssertionError(f"a page does not have the form of a rule's: {page.splitlines()[0]}")
    parts: dict[str, Any] = found.groupdict()
    parts["example"] = dedent(parts["example"]).strip("\n")
    parts["asked_with"] = parts["asked_with"] or ""
    parts["is_fixed"] = parts["is_fixed"] is not None
    return Rule(**parts)
