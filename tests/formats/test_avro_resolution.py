"""Schema resolution: what Java's SchemaCompatibility was seen to say of pairs that were once answered otherwise, and the laws."""

from __future__ import annotations

import corpora
import pytest
from corpora import Json, array, field, map_of, schema
from hypothesis import HealthCheck, given, settings
from schema_strategies import schemas

from schemactl.formats.avro.compatibility import MAX_LISTED, incompatibilities

pytestmark = pytest.mark.slow

THOROUGH = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def record(name: str, **fields: Json) -> Json:
    return corpora.record(name, *(field(label, type_) for label, type_ in fields.items()))


def found(*, reader: Json, writer: Json) -> list[str]:
    reasons = incompatibilities(reader=schema(reader), writer=schema(writer))
    return [f"{reason.rule} {reason.pointer}" for reason in reasons]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        # `null` stands at two places. What was found at one is not what is found at the other.
        (
            record("A", b=["A", "null"], d="A"),
            record("A", b=["A", "null"], d=["null", "A"]),
            ["TYPE_MISMATCH /fields/1/type/0"],
        ),
        (
            record("E", d=["null", "E"], c=array("null")),
            record("E", d=["null", "E"], c=array("E")),
            ["TYPE_MISMATCH /fields/1/type/items"],
        ),
        (
            record("C", b=["null", "C"], a=map_of("null")),
            record("C", b=["null", "C"], a=map_of("C")),
            ["TYPE_MISMATCH /fields/1/type/values"],
        ),
        # A pair of named types is found incompatible at its first place, and reported there each time.
        (
            record("R", a=record("N", x="int"), b="N"),
            record("R", a=record("N", x="string"), b="N"),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type"] * 2,
        ),
        # So is a primitive with a named type, where two ways lead to one place of it.
        (
            record("R", x=record("A", f="int"), y="A"),
            record("R", x=record("n1.A", f=record("N")), y=record("n2.A", f="n1.N")),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type"] * 2,
        ),
        (
            record("R", x=record("A", f="int"), y="A"),
            record("R", x=record("n1.A", f="string"), y=record("n2.A", f="string")),
            ["TYPE_MISMATCH /fields/0/type/fields/0/type", "TYPE_MISMATCH /fields/1/type/fields/0/type"],
        ),
        (
            corpora.record("R", field("p", record("M"), aliases=["w"]), field("q", "M", aliases=["w"])),
            record("R", w="int"),
            ["TYPE_MISMATCH /fields/0/type"] * 2,
        ),
    ],
)
def test_places_are_those_that_java_tells(reader: Json, writer: Json, expected: list[str]) -> None:
    assert found(reader=reader, writer=writer) == expected


def test_the_list_ends_where_java_s_memory_would() -> None:
    def doubled(leaf: str) -> Json:
        inside = [leaf, *(f"B{level}" for level in range(59))]
        levels = [record(f"B{level}", x=inner, y=inner) for level, inner in enumerate(inside)]
        return record("R", **{f"f{level}": each for level, each in enumerate(levels)})

    listed = found(reader=doubled("int"), writer=doubled("string"))
    assert 1_000 < len(listed) <= MAX_LISTED
    assert len(set(listed)) == 2


@THOROUGH
@given(schemas())
def test_a_schema_reads_itself(definition: Json) -> None:
    assert found(reader=definition, writer=definition) == []
