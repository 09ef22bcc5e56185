"""A waiver waives exactly its finding, whatever else a change brings, and its last day is the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.checks.check import check
from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Run
from schemactl.checks.waivers import WaiverFile, apply_waivers
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.findings import Finding, Waiver
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion

pytestmark = pytest.mark.slow

TODAY = date(2027, 1, 31)
STRATEGIES = [each for each in CompatibilityStrategy if each.name.startswith(("BACK", "FOR", "FULL"))]

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


def info(fields: dict[str, str]) -> SchemaInfo:
    texts = []
    for name, kind in fields.items():
        # A name is defined once.
        unique = kind.replace('"E"', f'"E{name}"').replace('"F"', f'"F{name}"')
        texts.append(f'{{"name": "{name}", "type": {unique}}}')
    text = f'{{"type": "record", "name": "R", "fields": [{", ".join(texts)}]}}'
    return SchemaInfo(SchemaType.AVRO, text.encode())


@st.composite
def changes(draw: st.DrawFn) -> tuple[Run, CheckReport]:
    """A change of some topics, and what a check finds."""
    target, approved = {}, {}
    for local in ("a", "b"):
        name = TopicName("shop", "sales", local)
        policies = Policies(draw(st.sampled_from(STRATEGIES)))
        texts = draw(st.lists(FIELDS, min_size=2, max_size=4, unique_by=lambda each: tuple(each.items())))
        *older, newest = map(info, texts)
        versions = tuple(SchemaVersion(number, each) for number, each in enumerate(older))
        approved[name] = Topic(name, older[-1], versions, policies)
        target[name] = Topic(name, newest, policies=policies)
    run = Run(Catalog(topics=target), Catalog(topics=approved), Project())
    return run, check(run.target, approved=run.approved, project=run.project, label="main")


def waiver(finding: Finding, until: date = TODAY) -> Waiver:
    assert finding.topic
    return Waiver(finding.rule, finding.topic, finding.fingerprint, "meant", "ada", until)


def judged(run: Run, report: CheckReport, waivers: Sequence[Waiver]) -> CheckReport:
    return apply_waivers(report, run, WaiverFile(waivers, Counter(), TODAY), is_whole=True)


@given(changes(), st.data())
def test_any_choice_of_waivers_waives_exactly_what_it_names(
    change: tuple[Run, CheckReport], data: st.DataObject
) -> None:
    run, report = change
    can = [each for each in report.findings if each.key]
    assert len({each.key for each in can}) == len(can)
    picked = data.draw(st.lists(st.sampled_from(can), unique_by=lambda each: each.key)) if can else []
    found = judged(run, report, [waiver(each) for each in picked])
    assert {each.key for each in found.waived} == {each.key for each in picked}
    assert [each for each in report.findings if each not in picked] == [*found.findings]
    assert [replace(each, waiver=None) for each in found.waived] == [each for each in report.findings if each in picked]


@given(changes(), changes())
def test_the_waivers_of_one_change_waive_of_another_only_what_is_the_same(
    change: tuple[Run, CheckReport], other: tuple[Run, CheckReport]
) -> None:
    waivers = [waiver(each) for each in change[1].findings if each.key]
    found = judged(*other, waivers)
    same = {each.key for each in waivers} & {each.key for each in other[1].findings}
    assert {each.key for each in found.waived} == same
    unused = [each for each in found.findings if each.rule == "WAIVER_UNUSED"]
    assert len(unused) == len(waivers) - len(same)


@given(changes(), st.integers(-3, 3))
def test_a_finding_is_an_error_again_from_the_day_after_the_last(change: tuple[Run, CheckReport], days: int) -> None:
    run, report = change
    until = TODAY + timedelta(days=days)
    found = judged(run, report, [waiver(each, until) for each in report.findings if each.key])
    can = {each.key for each in report.findings if each.key}
    assert {each.key for each in found.waived} == (can if days >= 0 else set())
    expired = [each for each in found.findings if each.rule == "WAIVER_EXPIRED"]
    assert len(expired) == (0 if days >= 0 else len(can))
    assert all(each.severity == "error" for each in expired)
