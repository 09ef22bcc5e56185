"""A value of another logical type, or of a narrower type, is a misreading, proved by both values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemactl.comparison.compatibility import compare
from schemactl.core.findings import Verdict
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import counterexample, explain, find_misreadings, judge_reading, resolve

Json = Any


def make_logical(base: str, name: str, **properties: Json) -> Json:
    return {"type": base, "logicalType": name, **properties}


def make_fixed(size: int, name: str, **properties: Json) -> Json:
    return {"type": "fixed", "name": "Bytes", "size": size, "logicalType": name, **properties}


def make_decimal(precision: int, scale: int = 0) -> Json:
    return make_logical("bytes", "decimal", precision=precision, scale=scale)


MILLIS, MICROS, NANOS = (make_logical("long", f"timestamp-{unit}") for unit in ("millis", "micros", "nanos"))


def make_event(type_: Json) -> SchemaInfo:
    definition = {"type": "record", "name": "Event", "fields": [{"name": "at", "type": type_}]}
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode())


def judge_pair(writer: Json, reader: Json) -> Verdict:
    return compare([make_event(writer)], make_event(reader), CompatibilityStrategy.BACKWARD)


ERRORS = [
    (MILLIS, MICROS, "2026-11-28T12:34:56Z and read as 1970-01-21T18:51:09.296Z"),
    (MICROS, MILLIS, "2026-11-28T12:34:56Z and read as +58878-10-31T06:13:20Z"),
    (MICROS, NANOS, "2026-11-28T12:34:56Z and read as 1970-01-21T18:51:09.296Z"),
    (
        MILLIS,
        make_logical("long", "local-timestamp-micros"),
        "2026-11-28T12:34:56Z and read as 1970-01-21T18:51:09.296",
    ),
    (make_logical("int", "time-millis"), make_logical("long", "time-micros"), "12:34:56 and read as 00:00:45.296"),
    (make_logical("long", "time-micros"), MICROS, "12:34:56 and read as 1970-01-01T12:34:56Z"),
    (
        MILLIS,
        make_logical("long", "time-micros"),
        "2026-11-28T12:34:56Z and read as 1795869296000 micros after midnight",
    ),
    (make_logical("int", "date"), make_logical("int", "time-millis"), "2026-11-28 and read as 00:00:20.785"),
    (make_logical("int", "date"), MILLIS, "2026-11-28 and read as 1970-01-01T00:00:20.785Z"),
    (make_decimal(9, 2), make_decimal(9, 3), "123.45 and read as 12.345"),
    (make_decimal(9, 2), make_decimal(5, 2), "1234.56 and does not fit decimal(5, 2)"),
    (make_decimal(9, 2), make_logical("bytes", "big-decimal"), "123.45 and read as 0x3039"),
    (
        make_fixed(12, "decimal", precision=9),
        make_fixed(12, "duration"),
        "12345 and read as 0 months, 0 days, 959447040 ms",
    ),
    (make_fixed(12, "duration"), make_fixed(12, "decimal", precision=20), "1 months, 2 days, 3000 ms and read as"),
    (
        make_fixed(16, "uuid"),
        make_fixed(16, "decimal", precision=30),
        "123e4567-e89b-12d3-a456-426614174000 and read as",
    ),
]

WARNINGS = [
    ("string", make_decimal(9, 2)),
    ("string", make_logical("bytes", "big-decimal")),
    ("bytes", make_logical("string", "uuid")),
    (make_decimal(9, 2), "string"),
    ("long", MILLIS),
    (MILLIS, "long"),
    ("int", make_logical("int", "date")),
    (make_logical("int", "date"), "long"),
    (MILLIS, "double"),
    (make_decimal(9, 2), "bytes"),
    ("string", make_logical("string", "uuid")),
    (MICROS, make_logical("long", "local-timestamp-micros")),
    (make_logical("long", "local-timestamp-nanos"), NANOS),
    ("long", "double"),
    ("long", "float"),
    ("int", "float"),
    ("bytes", "string"),
]

KEPT = [
    (MILLIS, MILLIS),
    (make_decimal(9, 2), make_decimal(12, 2)),
    ("int", "long"),
    ("int", "double"),
    ("float", "double"),
    ("string", "bytes"),
    (make_logical("int", "timestamp-millis"), make_logical("int", "timestamp-micros")),
    (make_logical("long", "epoch-seconds"), make_logical("long", "epoch-days")),
    (make_decimal(0), make_decimal(0, 3)),
    (make_fixed(2, "decimal", precision=9), make_fixed(2, "decimal", precision=9, scale=2)),
    (make_fixed(8, "uuid"), make_fixed(8, "duration")),
    (MILLIS | {"java-class": "java.util.Date"}, MICROS | {"java-class": "java.util.Date"}),
]


@pytest.mark.parametrize(("writer", "reader", "words"), ERRORS)
def test_another_value_is_an_error_with_both_values(writer: Json, reader: Json, words: str) -> None:
    verdict = judge_pair(writer, reader)
    (misreading,) = verdict.misread
    assert (verdict.state, verdict.values, verdict.errors) == ("compatible", "changed", (misreading,))
    assert misreading.incompatibility.rule == "LOGICAL_TYPE_CHANGED"
    assert misreading.incompatibility.pointer == "/fields/0/type"
    proof = counterexample(misreading, new=make_event(reader), old=make_event(writer))
    assert proof is not None
    assert proof.result.startswith(f"at is written as {words}")


@pytest.mark.parametrize(("writer", "reader"), WARNINGS)
def test_possibly_intended_change_is_a_warning(writer: Json, reader: Json) -> None:
    verdict = judge_pair(writer, reader)
    (misreading,) = verdict.misread
    assert (verdict.values, verdict.errors) == ("changed", ())
    assert misreading.incompatibility.is_warning
    assert counterexample(misreading, new=make_event(reader), old=make_event(writer)) is not None


@pytest.mark.parametrize(("writer", "reader"), KEPT)
def test_value_that_every_reader_gets_unchanged_is_kept(writer: Json, reader: Json) -> None:
    assert judge_pair(writer, reader).values == "kept"


def record(type_: Json, *aliases: str, name: str = "value") -> Json:
    return {"type": "record", "name": "Inner", "fields": [{"name": name, "aliases": [*aliases], "type": type_}]}


NESTED = [
    ({"type": "array", "items": MILLIS}, {"type": "array", "items": MICROS}, "/items"),
    ({"type": "map", "values": MILLIS}, {"type": "map", "values": MICROS}, "/values"),
    (["null", MILLIS], [MICROS, "null"], "/0"),
    (["string", MILLIS], ["null", MICROS, "string"], "/1"),
    (MILLIS, ["null", MICROS], "/1"),
    (["null", make_logical("int", "time-millis")], ["null", make_logical("long", "time-micros")], "/1"),
    (record(MILLIS), record(MICROS), "/fields/0/type"),
    (record(MILLIS), record(MICROS, "value", name="moment"), "/fields/0/type"),
    (record(MILLIS, name="items"), record(MICROS, name="items"), "/fields/0/type"),
    ([{"type": "array", "items": record(["null", MILLIS])}], {"type": "array", "items": record(["null", MICROS])},
     "/items/fields/0/type/1"),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "reader", "pointer"), NESTED)
def test_parts_are_paired_as_resolution_pairs_them(writer: Json, reader: Json, pointer: str) -> None:
    (misreading,) = judge_pair(writer, reader).misread
    assert misreading.incompatibility.pointer == f"/fields/0/type{pointer}"
    proof = counterexample(misreading, new=make_event(reader), old=make_event(writer))
    assert proof is not None
    assert "and read as" in proof.result
    assert explain(misreading, new=make_event(reader), old=make_event(writer)).field.startswith("Event.at")


@pytest.mark.parametrize("more", [{"logicalType": "decimal", "precision": 12}, {}])
def test_a_fixed_of_another_size_is_not_decoded_as_another_value(more: Json) -> None:
    duration = make_event({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"})
    other = make_event({"type": "fixed", "name": "F", "size": 8, **more})
    for reader, writer in ((duration, other), (other, duration)):
        assert [problem.rule for problem in resolve(reader=reader, writer=writer)] == ["FIXED_SIZE_MISMATCH"]
        assert [*find_misreadings(reader=reader, writer=writer)] == []
        in_json = [SchemaInfo(SchemaType.JSON, info.schema) for info in (reader, writer)]
        rules = {problem.rule for problem in find_misreadings(reader=in_json[0], writer=in_json[1])}
        assert "LOGICAL_TYPE_CHANGED" not in rules


def test_two_halves_of_a_pair_have_their_own_pointers() -> None:
    def make_pair(type_: Json) -> SchemaInfo:
        half = make_event(type_).schema
        properties = {"key.schema.type": "AVRO", "value.schema.type": "AVRO", "kv.encoding.type": "SEPARATED"}
        framed = len(half).to_bytes(4, "big") + half
        return SchemaInfo(SchemaType.KEY_VALUE, framed + framed, properties)

    verdict = compare([make_pair(MILLIS)], make_pair(MICROS), CompatibilityStrategy.BACKWARD)
    assert [misreading.incompatibility.pointer for misreading in verdict.misread] == [
        "/key/fields/0/type",
        "/value/fields/0/type",
    ]
    for misreading in verdict.misread:
        assert counterexample(misreading, new=make_pair(MICROS), old=make_pair(MILLIS)) is not None


def test_a_recursive_record_is_compared_once() -> None:
    def make_node(type_: Json) -> SchemaInfo:
        fields = [{"name": "next", "type": ["null", "Node"]}, {"name": "at", "type": type_}]
        return SchemaInfo(SchemaType.AVRO, json.dumps({"type": "record", "name": "Node", "fields": fields}).encode())

    verdict = compare([make_node(MILLIS)], make_node(MICROS), CompatibilityStrategy.BACKWARD)
    assert [misreading.incompatibility.pointer for misreading in verdict.misread] == ["/fields/1/type"]


def in_namespace(namespace: str, definition: Json) -> Json:
    return definition | {"namespace": namespace}


def renamed_record(namespace: str, name: str, **more: Json) -> Json:
    fields = [{"name": name, "type": "int", **more}]
    return {"type": "record", "name": "Inner", "namespace": namespace, "fields": fields}


NAMES_WITH_NAMESPACES = [
    (renamed_record("a", "x"), renamed_record("b", "y", aliases=["x"], default=7), "NAME_MISMATCH", "Java reads y as its default, 7"),
    (renamed_record("a", "x"), renamed_record("b", "y", aliases=["x"]), "NAME_MISMATCH", "AvroTypeException: Found a.Inner"),
    (["null", in_namespace("a", make_fixed(3, ""))], [in_namespace("b", make_fixed(3, "")), "null", "int"], "MISSING_UNION_BRANCH",
     "AvroTypeException: Found a.Bytes, expecting union"),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "reader", "rule", "words"), NAMES_WITH_NAMESPACES)
def test_value_that_java_loses_in_another_namespace_is_an_error(
    writer: Json, reader: Json, rule: str, words: str
) -> None:
    verdict = judge_pair(writer, reader)
    (misreading,) = verdict.errors
    assert (verdict.state, misreading.incompatibility.rule) == ("compatible", rule)
    proof = counterexample(misreading, new=make_event(reader), old=make_event(writer))
    assert proof is not None
    assert proof.result.startswith(words)


def test_changed_namespace_alone_is_not_a_misreading() -> None:
    assert judge_pair(renamed_record("a", "x"), renamed_record("b", "x")).values == "kept"


@pytest.mark.parametrize(
    ("writer", "reader", "answer"),
    [
        (MILLIS, MICROS, "misread"),
        (MILLIS, "long", "doubtful"),
        (MILLIS, MILLIS, "yes"),
        (MILLIS, "string", "no"),
        (record(MILLIS), record(MILLIS) | {"name": "Other"}, "strict"),
        (record(MILLIS), record(MICROS) | {"name": "Other"}, "misread"),
    ],
)
def test_the_matrix_of_readers_and_writers_tells_misreadings(writer: Json, reader: Json, answer: str) -> None:
    old, new = SchemaVersion(0, make_event(writer)), SchemaVersion(1, make_event(reader))
    result = judge_reading(reader=new, writer=old)
    assert (result.answer, bool(result.reason)) == (answer, answer != "yes")
