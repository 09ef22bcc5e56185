"""A counterexample proves a breakage: it exists if Java fails on every message, and never if Java reads them all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from corpora import Json, make_field, make_fixed, parse_schema, read_rows, record
from java_avro import JavaAvro

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.compatibility import AmbiguousAlias, find_incompatibilities
from schemactl.formats.avro.counterexample import counterexample, find_unreadable_messages
from schemactl.formats.avro.explanation import explain
from schemactl.formats.avro.resolving_grammar import decodes_all
from schemactl.formats.avro.sample_messages import can_be_written
from schemactl.formats.avro.schema import Schema

pytestmark = pytest.mark.slow

TAKEN_FOR_EMPTY = "pub2-26082"
"""Its default is 7.25 for a union of null and an array: Avro 1.12's check takes that for an empty array, its reader throws."""


@cache
def read_pairs() -> list[tuple[Json, Schema, Schema]]:
    return [(row, parse_schema(row["reader"]), parse_schema(row["writer"])) for row in read_rows("avro_public")]


def test_there_is_a_message_that_fails_exactly_where_java_does_not_read_all() -> None:
    for row, reader, writer in read_pairs():
        messages = find_unreadable_messages(writer=writer, reader=reader)
        if row["decode"] in ("none", "some") and row["id"] != TAKEN_FOR_EMPTY:
            assert messages, row["id"]
        if decodes_all(reader=reader, writer=writer, release=Release.R5_0)[0]:
            assert not messages, row["id"]


def test_java_decodes_messages_that_only_strict_readers_reject() -> None:
    for row, reader, writer in read_pairs():
        try:
            reasons = find_incompatibilities(reader=reader, writer=writer)
        except AmbiguousAlias:
            continue
        if reasons and all(reason.strict_only for reason in reasons) and not row.get("spec_error"):
            # The other rejections of Java's own check (a bad default, an enum's namespace in a union) belong to the broker's verdict.
            test = row["pulsar"]["4.0"]["BACKWARD"]["test"]
            assert row["decode"] in ("all", "n/a") or test != "ok", row["id"]


def test_every_breakage_that_java_meets_has_a_counterexample() -> None:
    for row, writer, reason, proof in recorded_breakages():
        assert proof or reason.strict_only or not can_be_written(writer), (row["id"], reason)


@cache
def recorded_breakages() -> list[tuple[dict[str, Any], Schema, Incompatibility, Counterexample | None]]:
    return [
        (row, writer, reason, proof)
        for row, reader, writer in read_pairs()
        for reason, proof in find_breakages(reader, writer)
    ]


def find_breakages(reader: Schema, writer: Schema) -> Iterator[tuple[Incompatibility, Counterexample | None]]:
    """Yield every reason why `reader` cannot read `writer`, with its counterexample."""
    with suppress(AmbiguousAlias):
        for reason in find_incompatibilities(reader=reader, writer=writer):
            breakage = Breakage(reason, "new_reads_old", 0)
            yield (reason, counterexample(breakage, new=reader, old=writer, plain_json=False))


LOST = re.compile(r"Java reads (\w+) as its default, (.+): the \w+ that was written, (.+), is lost")


def test_java_loses_the_value_of_the_counterexample(java: JavaAvro) -> None:
    proved = 0
    for row, _, reason, proof in recorded_breakages():
        lost = LOST.fullmatch(proof.result) if proof else None
        if not proof or not lost:
            continue
        types = {"reader": java.parse(row["reader"]), "writer": java.parse(row["writer"])}
        (read,) = java.decode([proof.data], **types)
        name, default, written = lost.groups()
        values = list(values_of(name, json.loads(read)))
        assert json.loads(default) in values, (row["id"], reason, read)
        assert json.loads(written) not in values, (row["id"], reason, read)
        proved += 1
    assert proved > 90


def values_of(name: str, read: Any) -> Iterator[Any]:
    """Yield the printed value of each field with that name; bytes as text."""
    if isinstance(read, dict):
        for key, value in read.items():
            if key == name:
                is_bytes = isinstance(value, list) and value and all(isinstance(item, int) for item in value)
                yield "".join(map(chr, value)) if is_bytes else value
            yield from values_of(name, value)
    elif isinstance(read, list):
        for item in read:
            yield from values_of(name, item)


def test_explanation_states_that_no_message_can_be_written() -> None:
    def make_node(size: int) -> Schema:
        return parse_schema(record("Node", make_field("id", make_fixed("Id", size)), make_field("next", "Node")))

    ((reason, proof),) = find_breakages(make_node(4), make_node(12))
    explanation = explain(Breakage(reason, "new_reads_old", 0), new=make_node(4), old=make_node(12))
    assert proof is None
    assert explanation.reason.endswith("none can be written, because a record must contain itself or an enum is empty.")


def test_the_default_that_is_proposed_for_a_decimal_is_a_number() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    old, new = (
        parse_schema(record("Order", make_field("id", "int"), *more)) for more in ((), (make_field("total", decimal),))
    )
    ((reason, _),) = find_breakages(new, old)
    explanation = explain(Breakage(reason, "new_reads_old", 0), new=new, old=old)
    assert explanation.fix == r'give the field a default, for example "default": "\u0000".'
