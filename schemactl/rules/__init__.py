"""The catalogue of rules: summary, reason, example and fix of each. `explain` and docs/rules are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Final, Literal

from schemactl.errors import SchemactlError
from schemactl.extensions import of_other_packages


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing a check can find.

    Attributes:
        id: as Avro's Java SchemaCompatibility or buf spell it, where they have it.
        verdict: whose rule it is: `data` (readers meet it), `broker` (the registry answers so), `declaration` (ours),
            `tables` (tables that a topic feeds), `lint` (what is fine today and hurts later).
        severity: unless the project says otherwise; `off`: only a project that says so has it looked for.
        summary: one sentence, what is the case when it fires.
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
        """Whether a waiver can name it: it is about what one change of a schema breaks, and that can be carried out all the same."""
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


BROKER_SOURCE: Final = "https://github.com/apache/pulsar/blob/master/pulsar-broker/src/main/java/org/apache/pulsar/broker/service/schema"
"""The folder of the classes that answer for a broker's schema registry."""

LINT_RULES: Final = "schemactl.lint_rules"
"""The entry point group for lint rules of other packages: the rule's id, and a `LintRule` class."""

_CHAPTERS = ("data", "protobuf", "broker", "declaration", "tables", "lint", "buf", "advanced")
"""The modules of this package, in the order of the catalogue."""


def every_rule() -> dict[str, Rule]:
    """Every rule by id: those of the catalogue, then those that other packages bring.

    Raises:
        SchemactlError: another package brings what is no lint rule, or one that has a name of the catalogue.
    """
    known = rules()
    for entry in of_other_packages(LINT_RULES):
        rule = getattr(entry.load(), "rule", None)
        if not isinstance(rule, Rule) or rule.id != entry.name or rule.verdict != "lint" or rule.id in known:
            raise SchemactlError(
                f"the entry point {entry.name} = {entry.value} of {LINT_RULES} is no lint rule of its own",
                fix=f'give the class an attribute: rule = Rule(id="{entry.name}", verdict="lint", ...)',
            )
        known[rule.id] = rule
    return known


def rules() -> dict[str, Rule]:
    """Every rule of the catalogue by id, in its order."""
    found: dict[str, Rule] = {}
    for chapter in _CHAPTERS:
        for rule in import_module(f"schemactl.rules.{chapter}").RULES:
            if rule.id in found:
                raise AssertionError(f"two rules are called {rule.id}")
            found[rule.id] = rule
    return found
