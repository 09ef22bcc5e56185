"""What must hold of the broker's check for every schema, and that Java's own Avro agrees with it."""

from __future__ import annotations

import copy
import json
from itertools import islice
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from java_avro import JavaAvro
from schema_strategies import evolutions, schemas

from schemactl.formats.avro.datum import encode
from schemactl.formats.avro.grammar import can_read, decodes_all, unable_to_read
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.resolution import AmbiguousAlias, incompatibilities
from schemactl.formats.avro.sample import candidates
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.schema_text import schema_text
from schemactl.model import Release

Json = Any

THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RELEASES = st.sampled_from(Release)


def schema(definition: Json, release: Release) -> Schema:
    return parse(json.dumps(definition), release)


@THOROUGH
@given(schemas(), RELEASES)
def test_a_schema_reads_itself(definition: Json, release: Release) -> None:
    reader, writer = schema(definition, release), schema(definition, release)
    assert can_read(reader=reader, writer=writer, release=release).outcome == "ok"
    assert decodes_all(reader=reader, writer=writer, release=release)[0]


@THOROUGH
@given(schemas(), RELEASES, st.booleans())
def test_a_new_field_needs_a_default(definition: Json, release: Release, has_default: bool) -> None:  # noqa: FBT001  drawn
    grown = copy.deepcopy(definition)
    grown["fields"].append(
        {"name": "more", "type": ["null", "int"]} | ({"default": None} if has_default else {})
    )
    old, new = schema(definition, release), schema(grown, release)
    assert can_read(reader=new, writer=old, release=release).outcome == (
        "ok" if has_default else "incompatible"
    )
    assert can_read(reader=old, writer=new, release=release).outcome == "ok"


@THOROUGH
@given(evolutions(), RELEASES)
def test_what_decodes_passes_and_printing_changes_nothing(pair: tuple[Json, Json], release: Release) -> None:
    reader, writer = (schema(definition, release) for definition in pair)
    answer = can_read(reader=reader, writer=writer, release=release)
    assert answer.outcome == "ok" or not decodes_all(reader=reader, writer=writer, release=release)[0]
    printed_reader, printed_writer = (
        parse(schema_text(one, pretty=True), release) for one in (reader, writer)
    )
    assert can_read(reader=printed_reader, writer=printed_writer, release=release) == answer


@settings(THOROUGH, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(pair=evolutions())
def test_java_answers_alike(java: JavaAvro, pair: tuple[Json, Json]) -> None:
    for one, other in (pair, reversed(pair)):
        reader, writer = schema(one, Release.R4_2), schema(other, Release.R4_2)
        java_reader, java_writer = java.parse(one), java.parse(other)
        found = can_read(reader=reader, writer=writer, release=Release.R4_2)
        assert (found.outcome, found.exception) == java.answer(reader=java_reader, writer=java_writer)
        refusal = unable_to_read(reader=reader, writer=writer)
        assert refusal == java.refusal(reader=java_reader, writer=java_writer)


@settings(THOROUGH, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(pair=evolutions())
def test_java_decodes_what_both_verdicts_pass(java: JavaAvro, pair: tuple[Json, Json]) -> None:
    for one, other in (pair, reversed(pair)):
        reader, writer = schema(one, Release.R4_2), schema(other, Release.R4_2)
        passes = can_read(reader=reader, writer=writer, release=Release.R4_2).outcome == "ok"
        if passes and not incompatibilities(reader=reader, writer=writer):
            # One to each place in the definition: Java's own random messages of a recursive record have no bound.
            messages = [encode(writer, datum) for datum in islice(candidates(writer), 20)]
            java.decode(messages, reader=java.parse(one), writer=java.parse(other))


@settings(THOROUGH, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(pair=evolutions())
def test_java_lists_the_same_reasons(java: JavaAvro, pair: tuple[Json, Json]) -> None:
    for one, other in (pair, reversed(pair)):
        expected = java.reasons(reader=java.parse(one), writer=java.parse(other))
        try:
            found = incompatibilities(reader=schema(one, Release.R5_0), writer=schema(other, Release.R5_0))
        except AmbiguousAlias:
            assert expected is None
        else:
            assert [(each.rule, each.pointer, each.message) for each in found] == expected
