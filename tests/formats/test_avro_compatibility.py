"""Schema resolution: recorded answers of Java, its laws, and the equality of the fast verdicts and the full comparison.

The recorded pairs, histories and named cases go through the same verdicts in `test_compare_command` and `test_compatibility`.
"""

from __future__ import annotations

import json
import sys
import threading
from itertools import permutations, product

import corpora
import pytest
from corpora import Json, make_array, make_field, map_of, parse_schema, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_strategies import draw_evolution, draw_schema

from schemactl.formats.avro.compatibility import MAX_LISTED, AmbiguousAlias, KnownVerdicts, find_incompatibilities
from schemactl.formats.avro.schema import Schema, TooDeep

pytestmark = pytest.mark.slow

THOROUGH = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def record_of(name: str, **fields: Json) -> Json:
    return corpora.record(name, *(make_field(label, type_) for label, type_ in fields.items()))


def list_reasons(*, reader: Json, writer: Json) -> list[str]:
    reasons = find_incompatibilities(reader=parse_schema(reader), writer=parse_schema(writer))
    return [f"{reason.rule} {reason.pointer}" for reason in reasons]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        # `null` is at two places with different results.
        (
            record_of("A", b=["A", "null"], d="A"),
            record_of("A", b=["A", "null"], d=["null", "A"]),
            ["TYPE_MISMATCH /fields/1/type/0"],
        ),
        (
            record_of("E", d=["null", "E"], c=make_array("null")),
            record_of("E", d=["null", "E"], c=make_array("E")),
            ["TYPE_MISMATCH /fields/1/type/items"],
        ),
        (
            record_of("C", b=["null", "C"], a=map_of("null")),
            record_of("C", b=["null", "C"], a=map_of("C")),
            ["TYPE_MISMATCH /fields/1/type/values"],
        ),
        # An incompatible pair of named types is reported each time, at the place where it was compared first.
        (
            record_of("R", a=record_of("N", x="int"), b="N"),
            record_of("R", a=record_of("N", x="string"), b="N"),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type"] * 2,
        ),
        # The same holds for a primitive with a named type, if two ways lead to one place of it.
        (
            record_of("R", x=record_of("A", f="int"), y="A"),
            record_of("R", x=record_of("n1.A", f=record_of("N")), y=record_of("n2.A", f="n1.N")),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type"] * 2,
        ),
        (
            record_of("R", x=record_of("A", f="int"), y="A"),
            record_of("R", x=record_of("n1.A", f="string"), y=record_of("n2.A", f="string")),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type", "TYPE_MISMATCH /fields/1/type/fields/0/type"],
        ),
        (
            corpora.record("R", make_field("p", record_of("M"), aliases=["w"]), make_field("q", "M", aliases=["w"])),
            record_of("R", w="int"),
            ["TYPE_MISMATCH /fields/0/type"] * 2,
        ),
    ],
)
def test_locations_equal_javas(reader: Json, writer: Json, expected: list[str]) -> None:
    assert list_reasons(reader=reader, writer=writer) == expected


def test_the_list_ends_where_java_s_memory_would() -> None:
    def make_doubled(leaf: str) -> Json:
        inside = [leaf, *(f"B{level}" for level in range(59))]
        levels = [record_of(f"B{level}", x=inner, y=inner) for level, inner in enumerate(inside)]
        return record_of("R", **{f"f{level}": level_record for level, level_record in enumerate(levels)})

    reasons = list_reasons(reader=make_doubled("int"), writer=make_doubled("string"))
    assert 1_000 < len(reasons) <= MAX_LISTED
    assert len(set(reasons)) == 2


@THOROUGH
@given(draw_schema())
def test_a_schema_reads_itself(definition: Json) -> None:
    assert list_reasons(reader=definition, writer=definition) == []


def in_full(*, reader: Schema, writer: Schema) -> bool:
    try:
        return not find_incompatibilities(reader=reader, writer=writer)
    except AmbiguousAlias:
        return False


def assert_alike(*definitions: Json) -> None:
    """Check every pair of definitions, including each with itself, in both orders."""
    parsed = [parse_schema(definition) for definition in definitions]
    for order in (parsed, parsed[::-1]):
        history = KnownVerdicts()
        for reader, writer in product(order, order):
            can_read = history.can_read(reader=reader, writer=writer)
            assert can_read is in_full(reader=reader, writer=writer), (reader, writer)
            assert history.can_read(reader=reader, writer=writer) is can_read


@THOROUGH
@given(draw_evolution())
def test_verdicts_on_changed_definitions(pair: tuple[Json, Json]) -> None:
    assert_alike(*pair)


@THOROUGH
@given(draw_evolution(), draw_schema(), st.booleans())
def test_verdicts_on_parts_that_have_been_compared_elsewhere(
    pair: tuple[Json, Json],
    other: Json,
    is_optional: bool,  # noqa: FBT001  drawn
) -> None:
    default = {"default": None} if is_optional else {}
    around = [record("Around", make_field("part", ["null", part], **default)) for part in (*pair, other)]
    assert_alike(*around, *pair)


@st.composite
def draw_tangle(draw: st.DrawFn) -> Json:
    """Draw records that refer to each other, also through unions of several records, and fields with aliases."""
    names = ["m.A", "n.A", "m.B"]
    defined_names: set[str] = set()

    def make_reference(name: str, depth: int) -> Json:
        if name in defined_names or not depth:
            return name if name in defined_names else "int"
        defined_names.add(name)
        fields = []
        for label in draw(st.lists(st.sampled_from(["f", "g", "h"]), min_size=1, unique=True)):
            branches = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
            kinds: list[Json] = [make_reference(branch, depth - 1) for branch in branches]
            kinds = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
            more: Json = {}
            if draw(st.booleans()):
                more["aliases"] = draw(st.lists(st.sampled_from(["f", "g", "x"]), max_size=1))
            if draw(st.booleans()):
                more["default"] = None
            fields.append(make_field(label, ["null", *kinds], **more))
        if draw(st.booleans()):
            fields.append(make_field("v", draw(st.sampled_from(["int", "long", "string"]))))
        short = draw(st.sampled_from([{}, {}, {"aliases": [draw(st.sampled_from(names))]}]))
        return record(name, *fields, **short)

    return make_reference("m.A", 3)


@THOROUGH
@given(st.lists(draw_tangle(), min_size=2, max_size=4))
def test_verdicts_on_records_that_lead_to_each_other(definitions: list[Json]) -> None:
    assert_alike(*definitions)


def test_an_ambiguous_alias_in_a_branch_that_is_not_taken_ends_the_check() -> None:
    written = record("R", make_field("number", "int"), make_field("amount", "int"))
    ambiguous = record("x.R", make_field("gone", "string"), make_field("value", "long", aliases=["number", "amount"]))
    assert_alike(
        record("Around", make_field("part", [ambiguous, written | {"name": "y.R"}])),
        record("Around", make_field("part", written)),
    )


def test_a_chain_of_types_as_long_as_the_text_has_a_verdict() -> None:
    length = 5_000
    chain = [record(f"T{number}", make_field("next", ["null", f"T{number + 1}"])) for number in range(length)]
    chain.append(record(f"T{length}", make_field("first", ["null", "T0"])))
    definition = record("Chain", *(make_field(f"f{number}", link) for number, link in enumerate(chain)))
    other = json.loads(json.dumps(definition))
    other["fields"][-1]["type"]["fields"].append(make_field("new", "int"))
    history = KnownVerdicts()
    old, new = parse_schema(definition), parse_schema(other)
    assert history.can_read(reader=old, writer=new)
    assert not history.can_read(reader=new, writer=old)
    assert history.can_read(reader=old, writer=parse_schema(definition))


def test_a_long_chain_has_a_verdict_in_a_thread_and_leaves_the_recursion_limit() -> None:
    chains = [
        [record(f"T{n}", make_field("next", f"T{n - 1}" if n else leaf)) for n in range(10_000)]
        for leaf in ("long", "int")
    ]
    reader, writer = (
        parse_schema(record("Chain", *(make_field(f"f{n}", link) for n, link in enumerate(chain)))) for chain in chains
    )
    verdicts: list[bool] = []

    def judge() -> None:
        verdicts.extend(KnownVerdicts().can_read(reader=reader, writer=writer) for _ in range(2))
        verdicts.append(in_full(reader=writer, writer=reader))

    limit = sys.getrecursionlimit()
    threads = [threading.Thread(target=judge) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdicts) == [False, False, True, True, True, True]
    assert sys.getrecursionlimit() == limit


def test_cycles_that_meet_in_too_many_pairs_are_an_error_with_a_fix() -> None:
    """Cycles of 420 and 419 records have 175,980 pairs, and each leads to the next."""

    def make_cycle(length: int) -> Schema:
        links = [record(f"C{n}", make_field("next", f"C{(n + 1) % length}")) for n in range(length)]
        return parse_schema(record("Root", *(make_field(f"f{n}", link) for n, link in enumerate(links))))

    limit = sys.getrecursionlimit()
    with pytest.raises(TooDeep, match="the chain of references between the types is too long") as error:
        find_incompatibilities(reader=make_cycle(420), writer=make_cycle(419))
    assert error.value.fix
    assert sys.getrecursionlimit() == limit


def test_every_order_of_asking_has_the_same_answers() -> None:
    narrow = record("P", make_field("v", "int"), make_field("next", ["null", "P"]))
    wide = record("P", make_field("v", "long"), make_field("next", ["null", "P"]))
    parsed = [parse_schema(record("Around", make_field("part", ["null", part]))) for part in (narrow, wide)]
    schema_pairs = list(product(parsed, parsed))
    for order in permutations(schema_pairs):
        history = KnownVerdicts()
        for reader, writer in order:
            assert history.can_read(reader=reader, writer=writer) is in_full(reader=reader, writer=writer)
