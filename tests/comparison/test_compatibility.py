"""Both verdicts over a strategy's pairs: the recorded ones, and the laws."""

from __future__ import annotations

import doctest
import json
from collections.abc import Sequence

import pytest
from corpora import make_array, make_enum, make_field, map_of, read_rows
from corpora import record as record_of
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl import compare, judge
from schemactl.comparison import compatibility
from schemactl.comparison.compatibility import find_breakages, find_changed_values
from schemactl.core.findings import Breakage, DataState, Direction, Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats.key_value import join

S = CompatibilityStrategy
LATEST = {S.BACKWARD: S.BACKWARD_TRANSITIVE, S.FORWARD: S.FORWARD_TRANSITIVE, S.FULL: S.FULL_TRANSITIVE}


def make_avro(schema: object) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode())


def list_broken_rules(verdict: tuple[Breakage, ...], direction: Direction) -> list[tuple[str, str]]:
    return [
        (breakage.incompatibility.rule, breakage.incompatibility.pointer)
        for breakage in verdict
        if breakage.direction == direction
    ]


def test_every_recorded_history_breaks_as_in_avro() -> None:
    for row in read_rows("avro_chains_public"):
        versions = [SchemaVersion(number, make_avro(schema)) for number, schema in enumerate(row["existing"])]
        new = make_avro(row["new"])
        reads_old, read_by_old = row["spec_new_reads_old"], row["spec_old_reads_new"]
        last = len(versions) - 1
        for strategy, broken in {
            S.BACKWARD: {last} - {n for n, ok in enumerate(reads_old) if ok},
            S.FORWARD: {last} - {n for n, ok in enumerate(read_by_old) if ok},
            S.BACKWARD_TRANSITIVE: {n for n, ok in enumerate(reads_old) if not ok},
            S.FORWARD_TRANSITIVE: {n for n, ok in enumerate(read_by_old) if not ok},
            S.FULL_TRANSITIVE: {n for n, both in enumerate(zip(reads_old, read_by_old, strict=True)) if not all(both)},
        }.items():
            data = find_breakages(versions, new, strategy)
            against = [breakage.against for breakage in data]
            assert set(against) == broken, (row["id"], strategy)
            assert against == sorted(against, reverse=True)


def test_the_documented_example_is_true() -> None:
    assert doctest.testmod(compatibility).failed == 0


def test_the_broker_and_the_data_often_disagree() -> None:
    verdict = compare(
        [make_avro(make_enum("Status", "PAID", "OPEN"))], make_avro(make_enum("Status", "PAID")), S.BACKWARD
    )
    assert (verdict.broker.outcome, verdict.broker.version) == (Outcome.OK, 1)
    assert verdict.test.outcome is Outcome.OK
    assert list_broken_rules(verdict.data, "new_reads_old") == [("MISSING_ENUM_SYMBOLS", "/symbols")]
    assert not verdict.is_compatible


def test_an_unchanged_schema_is_judged_for_data_all_the_same() -> None:
    history = [make_avro(make_enum("E", "A", "B")), make_avro(make_enum("E", "A", default="A"))]
    verdict = compare(history, make_avro(make_enum("E", "A")), S.BACKWARD_TRANSITIVE)
    assert (verdict.broker.outcome, verdict.broker.version) == (Outcome.UNCHANGED, 1)
    assert [breakage.against for breakage in verdict.data] == [0]


@pytest.mark.parametrize(
    ("strategy", "direction"), [(S.BACKWARD, "new_reads_old"), (S.FORWARD, "old_reads_new"), (S.FULL, "both")]
)
def test_a_change_of_type_breaks_who_is_protected(strategy: CompatibilityStrategy, direction: Direction) -> None:
    string, avro_string = SchemaInfo(SchemaType.STRING), make_avro("string")
    for current_strategy in (strategy, LATEST[strategy]):
        verdict = compare([string], avro_string, current_strategy)
        assert verdict.broker.outcome is Outcome.INCOMPATIBLE
        assert list_broken_rules(verdict.data, direction) == [("SCHEMA_TYPE_CHANGED", "")]
    for nobody in (S.ALWAYS_COMPATIBLE, S.ALWAYS_INCOMPATIBLE, S.UNDEFINED):
        verdict = compare([string], avro_string, nobody)
        assert (verdict.state, verdict.data) == (DataState.NOT_JUDGED, ())
        assert verdict.is_compatible is (nobody is S.ALWAYS_COMPATIBLE)


def test_key_value_change_that_the_registry_ignores_is_reported() -> None:
    string, number = SchemaInfo(SchemaType.STRING), SchemaInfo(SchemaType.INT32)
    old = join(key=string, value=string, encoding="INLINE")
    new = join(key=number, value=string, encoding="SEPARATED")
    verdict = compare([old], new)
    assert (verdict.broker.outcome, verdict.broker.version) == (Outcome.UNCHANGED, 0)
    expected = [("KEY_VALUE_ENCODING_CHANGED", ""), ("KEY_VALUE_TYPE_CHANGED", "/key")]
    assert (
        list_broken_rules(verdict.data, "new_reads_old") == list_broken_rules(verdict.data, "old_reads_new") == expected
    )


def test_only_versions_after_the_last_tombstone_are_protected() -> None:
    string = SchemaInfo(SchemaType.STRING)
    versions = [SchemaVersion(0, string), SchemaVersion(1, None)]
    verdict = judge(versions, make_avro("int"), S.FULL_TRANSITIVE, Release.R4_0)
    assert verdict.data == ()
    assert (verdict.broker.outcome, verdict.broker.version) == (Outcome.OK, 2)


def test_data_is_not_judged_if_a_definition_does_not_parse() -> None:
    good, bad = make_avro("int"), SchemaInfo(SchemaType.AVRO, b"{")
    for strategy in S:
        assert compare([good], bad, strategy).state is DataState.UNPARSABLE
    assert compare([bad], good, S.FULL).state is DataState.UNPARSABLE
    assert compare([bad, good], good, S.FULL_TRANSITIVE).state is DataState.UNPARSABLE
    # FULL compares with the latest version alone.
    assert compare([bad, good], good, S.FULL).state is DataState.COMPATIBLE
    assert compare([bad], good, S.ALWAYS_COMPATIBLE).state is DataState.NOT_JUDGED


def test_data_is_judged_where_the_newest_release_or_the_given_one_accepts_the_names() -> None:
    old, new = make_avro(record_of("A$B")), make_avro(record_of("A$B", make_field("x", "int")))
    assert compare([old], new, S.BACKWARD).broker.outcome is Outcome.INVALID
    assert list_broken_rules(compare([old], new, S.BACKWARD).data, "new_reads_old") == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0")
    ]
    hyphen = make_avro(record_of("a-b.C"))
    assert compare([hyphen], hyphen, S.BACKWARD).state is DataState.COMPATIBLE
    assert compare([hyphen], hyphen, S.BACKWARD, Release.R5_0).state is DataState.UNPARSABLE


NAMES = ["Order", "Status"]
fields = st.recursive(
    st.sampled_from(["null", "int", "long", "string", "bytes", ["null", "string"], ["string", "null"]]),
    lambda inner: (
        st.builds(make_array, inner)
        | st.builds(map_of, inner)
        | st.sets(st.sampled_from("ABC"), min_size=1).map(lambda symbols: make_enum("E", *sorted(symbols)))
    ),
    max_leaves=3,
)


def record(name: str, types: dict[str, object], defaults: bool) -> SchemaInfo:  # noqa: FBT001  Hypothesis calls it
    listed: list[dict[str, object]] = []
    for label, type_ in types.items():
        # A named type may be defined once only.
        safe = "string" if "enum" in str(type_) and "enum" in str(listed) else type_
        listed.append(make_field(label, safe, **({"default": 1} if defaults and safe in ("int", "long") else {})))
    return make_avro(record_of(name, *listed))


schemas = st.builds(
    record, st.sampled_from(NAMES), st.dictionaries(st.sampled_from("abc"), fields, max_size=3), st.booleans()
)
definitions = schemas | st.builds(SchemaInfo, st.sampled_from(SchemaType), st.binary(max_size=12))
histories = st.lists(st.none() | definitions, max_size=4)
directional = st.sampled_from([*LATEST, *LATEST.values()])


def versions_of(history: Sequence[SchemaInfo | None]) -> list[SchemaVersion]:
    return [SchemaVersion(number, info) for number, info in enumerate(history)]


@settings(deadline=None)  # the first definition of a kind loads what reads it
@given(histories, definitions, st.sampled_from(S), st.sampled_from(Release))
def test_every_definition_has_a_verdict(
    history: Sequence[SchemaInfo | None], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> None:
    verdict = judge(versions_of(history), new, strategy, release)
    for breakage in verdict.data:
        assert history[breakage.against] is not None


@given(st.lists(schemas, max_size=4), schemas)
def test_full_is_backward_and_forward(history: Sequence[SchemaInfo], new: SchemaInfo) -> None:
    strategies = (S.FULL, S.BACKWARD, S.FORWARD)
    for strategy_group in (strategies, map(LATEST.__getitem__, strategies)):
        full, backward, forward = (find_breakages(versions_of(history), new, strategy) for strategy in strategy_group)
        assert tuple(breakage for breakage in full if breakage.direction == "new_reads_old") == backward
        assert tuple(breakage for breakage in full if breakage.direction == "old_reads_new") == forward


@settings(deadline=None)  # as above
@given(histories, definitions, st.sampled_from(list(LATEST)))
def test_transitive_implies_latest(
    history: Sequence[SchemaInfo | None], new: SchemaInfo, strategy: CompatibilityStrategy
) -> None:
    if compare(history, new, LATEST[strategy]).state is DataState.COMPATIBLE:
        assert compare(history, new, strategy).state is DataState.COMPATIBLE


@given(st.lists(schemas, max_size=3), schemas, schemas, directional)
def test_one_more_version_never_repairs_a_transitive_failure(
    history: Sequence[SchemaInfo], more: SchemaInfo, new: SchemaInfo, strategy: CompatibilityStrategy
) -> None:
    strategy = LATEST.get(strategy, strategy)
    before = find_breakages(versions_of(history), new, strategy)
    after = find_breakages(versions_of([*history, more]), new, strategy)
    assert set(before) <= set(after)


@given(schemas, directional)
def test_a_schema_reads_itself(schema: SchemaInfo, strategy: CompatibilityStrategy) -> None:
    assert find_breakages(versions_of([schema, schema]), schema, strategy) == ()


def test_a_misreading_of_the_latest_version_is_approved() -> None:
    def make_event(unit: str, *more: dict[str, object]) -> SchemaInfo:
        type_ = {"type": "long", "logicalType": f"timestamp-{unit}"}
        return make_avro(record_of("Event", *more, make_field("at", type_)))

    versions = [SchemaVersion(0, make_event("millis")), SchemaVersion(1, make_event("micros"))]
    new = make_event("micros", make_field("n", "int", default=0))
    verdict = judge(versions, new, S.FULL_TRANSITIVE, Release.R4_0)
    assert (verdict.values, verdict.errors) == ("changed", ())
    assert verdict.approved == verdict.misread != ()
    assert find_changed_values(versions, new, S.FULL_TRANSITIVE) == ()
    assert len(find_changed_values(versions, make_event("nanos"), S.FULL_TRANSITIVE)) == 4


def union_of(*branches: dict[str, object]) -> SchemaInfo:
    """Return a record whose field is a union of these types."""
    return make_avro(record_of("R", make_field("value", list(branches))))


def letters(name: str, *symbols: str) -> dict[str, object]:
    return {"type": "enum", "name": name, "symbols": [*symbols]}


@pytest.mark.parametrize(
    ("versions", "new", "approved"),
    [
        # Another branch of the union is not read any more.
        ([(["A", "B"], ["A", "B"]), (["A"], ["A", "B"])], (["A", "B"], ["A"]), False),
        ([(["A", "B"], ["A", "B"]), (["A"], ["A", "B"])], (["A"], ["A", "B"]), True),
        # The same branch, without a further symbol.
        ([(["A", "B", "C"], ["A"]), (["B", "C"], ["A"])], (["C"], ["A"]), False),
        # A further branch does not matter.
        ([(["A", "B"], ["A"], ["A"]), (["A"], ["A"], ["A"])], (["A"], ["A"], ["A"], ["A"]), True),
    ],
)
def test_an_approved_break_in_a_union_is_of_the_same_branch_for_the_same_reason(
    versions: Sequence[Sequence[list[str]]],
    new: Sequence[list[str]],
    approved: bool,  # noqa: FBT001  a parameter
) -> None:
    def make_info(*symbols: list[str]) -> SchemaInfo:
        return union_of(*(letters(f"E{number}", *names) for number, names in enumerate(symbols)))

    verdict = compare([make_info(*symbols) for symbols in versions], make_info(*new), S.BACKWARD_TRANSITIVE)
    breakage = next(breakage for breakage in verdict.data if breakage.against == 0)
    assert breakage.incompatibility.rule == "MISSING_UNION_BRANCH"
    assert (breakage in verdict.approved) is approved
