"""A waiver covers exactly its finding, regardless of other changes, until the end of its last day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.checks.check import check_catalog
from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Comparison
from schemactl.checks.waivers import WaiverFile, apply_waivers
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.findings import Finding, Waiver
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion

pytestmark = pytest.mark.slow

TODAY = date(2027, 1, 31)
STRATEGIES = [strategy for strategy in CompatibilityStrategy if strategy.name.startswith(("BACK", "FOR", "FULL"))]

FIELDS = st.dictionaries(
    st.sampled_from(["id", "note", "total"]),
    st.sampled_from(
        [
            '"long"',
            '"string"',
            '["null", "string"]',
            '{"type": "enum", "name": "E", "symbols": ["A", "B"]}',
            '{"type": "enum", "name": "E", "symbols": ["A"]}',
            '{"type": "fixed", "name": "F", "size": 2}',
            '{"type": "fixed", "name": "F", "size": 3}',
        ]
    ),
    max_size=3,
)


def make_info(fields: dict[str, str]) -> SchemaInfo:
    texts = []
    for name, kind in fields.items():
        # Each type name is defined only once.
        unique = kind.replace('"E"', f'"E{name}"').replace('"F"', f'"F{name}"')
        texts.append(f'{{"name": "{name}", "type": {unique}}}')
    text = f'{{"type": "record", "name": "R", "fields": [{", ".join(texts)}]}}'
    return SchemaInfo(SchemaType.AVRO, text.encode())


@st.composite
def draw_change(draw: st.DrawFn) -> tuple[Comparison, CheckReport]:
    """Draw a change of some topics, and check it."""
    target, approved = {}, {}
    for local in ("a", "b"):
        name = TopicName("shop", "sales", local)
        policies = Policies(draw(st.sampled_from(STRATEGIES)))
        texts = draw(st.lists(FIELDS, min_size=2, max_size=4, unique_by=lambda fields: tuple(fields.items())))
        *older, newest = map(make_info, texts)
        versions = tuple(SchemaVersion(number, info) for number, info in enumerate(older))
        approved[name] = Topic(name, older[-1], versions, policies)
        target[name] = Topic(name, newest, policies=policies)
    comparison = Comparison(Catalog(topics=target), Catalog(topics=approved), Project())
    return comparison, check_catalog(
        comparison.declared, approved_catalog=comparison.approved, project=comparison.project, history_label="main"
    )


def make_waiver(finding: Finding, until: date = TODAY) -> Waiver:
    assert finding.topic
    return Waiver(finding.rule, finding.topic, finding.fingerprint, "meant", "ada", until)


def apply(comparison: Comparison, report: CheckReport, waivers: Sequence[Waiver]) -> CheckReport:
    return apply_waivers(report, comparison, WaiverFile(waivers, Counter(), TODAY), is_whole=True)


@given(draw_change(), st.data())
def test_any_choice_of_waivers_waives_exactly_what_it_names(
    change: tuple[Comparison, CheckReport], data: st.DataObject
) -> None:
    comparison, report = change
    can = [finding for finding in report.findings if finding.key]
    assert len({finding.key for finding in can}) == len(can)
    picked = data.draw(st.lists(st.sampled_from(can), unique_by=lambda finding: finding.key)) if can else []
    result = apply(comparison, report, [make_waiver(finding) for finding in picked])
    assert {finding.key for finding in result.waived} == {finding.key for finding in picked}
    assert [finding for finding in report.findings if finding not in picked] == [*result.findings]
    assert [replace(finding, waiver=None) for finding in result.waived] == [
        finding for finding in report.findings if finding in picked
    ]


@given(draw_change(), draw_change())
def test_the_waivers_of_one_change_waive_of_another_only_what_is_the_same(
    change: tuple[Comparison, CheckReport], other: tuple[Comparison, CheckReport]
) -> None:
    waivers = [make_waiver(finding) for finding in change[1].findings if finding.key]
    result = apply(*other, waivers)
    same = {waiver.key for waiver in waivers} & {finding.key for finding in other[1].findings}
    assert {finding.key for finding in result.waived} == same
    unused = [finding for finding in result.findings if finding.rule == "WAIVER_UNUSED"]
    assert len(unused) == len(waivers) - len(same)


@given(draw_change(), st.integers(-3, 3))
def test_a_finding_is_an_error_again_from_the_day_after_the_last(
    change: tuple[Comparison, CheckReport], days: int
) -> None:
    comparison, report = change
    until = TODAY + timedelta(days=days)
    result = apply(comparison, report, [make_waiver(finding, until) for finding in report.findings if finding.key])
    can = {finding.key for finding in report.findings if finding.key}
    assert {finding.key for finding in result.waived} == (can if days >= 0 else set())
    expired = [finding for finding in result.findings if finding.rule == "WAIVER_EXPIRED"]
    assert len(expired) == (0 if days >= 0 else len(can))
    assert all(waiver.severity == "error" for waiver in expired)
