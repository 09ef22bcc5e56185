"""`lint`: findings about declarations that are valid today and cause trouble later; no I/O, no history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from schemactl.checking.report import ORDER, CheckReport
from schemactl.checking.run import Run
from schemactl.core.catalog import Catalog
from schemactl.core.environment import of_other_packages
from schemactl.core.errors import Source
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.rules import LINT_RULES, every_rule
from schemactl.declare.reader import Declared
from schemactl.declare.references import AvroFile
from schemactl.declare.source_location import pointer
from schemactl.lint import fields, keys, logical_types, names, topics
from schemactl.lint.definition import DefinitionPart, LintedDefinition, LintRule, Remark

__all__ = ["DefinitionPart", "LintRule", "Linted", "LintedDefinition", "Remark", "lint"]

Look = Callable[[LintedDefinition], Iterator[Remark]]

_LOOKS: Final[Mapping[str, Look]] = {
    "KEY_IGNORED": keys.ignored,
    "LOGICAL_TYPE_UNKNOWN": logical_types.unknown,
    "LOGICAL_TYPE_IGNORED": logical_types.ignored,
    "TIMESTAMP_NANOS": logical_types.nanoseconds,
    "DECIMAL_DEFAULT_EMPTY": logical_types.empty_decimals,
    "OPTIONAL_WITHOUT_DEFAULT": fields.optional_without_default,
    "RECURSION_UNBOUNDED": fields.recursive,
    "NAME_STYLE": names.unlike_style,
    "DOC_MISSING": names.without_doc,
    "FIELD_ORDER": names.out_of_order,
}
"""What each rule on definitions looks for."""

_TOPIC_LOOKS: Final = (topics.rejected_elsewhere, topics.unlike_siblings)
"""The same of rules on topics."""


@dataclass(frozen=True, slots=True)
class Linted:
    """A remark on a definition, and the finding that it makes for a topic."""

    finding: Finding
    file: AvroFile
    remark: Remark


def lint(
    declared: Declared, project: Project, only: frozenset[TopicName]
) -> tuple[CheckReport, list[Linted]]:
    """Return all findings about what is declared, and apart those remarks that are about one place in a definition.

    Raises:
        SchemactlError: a rule from another package is no rule.
    """
    known = every_rule()
    looks = {**_LOOKS, **{entry.name: entry.load()().look for entry in of_other_packages(LINT_RULES)}}
    run = Run(declared.catalog, Catalog(), project, known)

    # A type that topics share is looked at once.
    @cache
    def definition(file: AvroFile) -> LintedDefinition:
        return LintedDefinition.of(file, project)

    @cache
    def remarks(rule: str, file: AvroFile) -> list[Remark]:
        return list(looks[rule](definition(file)))

    linted = []
    for name in sorted(only):
        rules = [rule for rule in looks if run.asks(rule, name)]
        for file in declared.written.get(name, ()):
            for rule in rules:
                for remark in remarks(rule, file):
                    locate = file.text.locate_key if remark.of_key else file.text.locate
                    found = _finding(run, rule, name, locate(remark.parts), remark)
                    linted += [Linted(each, file, remark) for each in found]
    found_of_topics = [
        finding
        for look in _TOPIC_LOOKS
        for rule, name, source, remark in look(declared, project, dict.fromkeys(sorted(only)))
        for finding in _finding(run, rule, name, source, remark)
    ]
    findings = sorted((*(each.finding for each in linted), *found_of_topics), key=_by_place)
    report = CheckReport(project.release, "", len(only), findings=tuple(findings), settings=project.path)
    return report, linted


def _by_place(finding: Finding) -> tuple[int, str]:
    place = finding.source
    return ORDER[finding.severity], f"{place.path}:{place.line:9}:{place.column:9}" if place else ""


def _finding(
    run: Run, rule: str, name: TopicName, source: Source | None, remark: Remark
) -> Iterator[Finding]:
    # A rule that is off by itself is found where the project gives it a severity.
    severity = run.severity(rule, name)
    return run.find(
        rule,
        run.target.topics[name],
        remark.message,
        source=source,
        fix=remark.fix,
        field=remark.field,
        pointer=pointer(remark.parts),
        severity=None if severity == "off" else severity,
    )
