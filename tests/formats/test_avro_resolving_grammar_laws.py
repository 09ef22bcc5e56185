"""The laws of the broker's check for every schema, and its agreement with Java's own Avro."""

from __future__ import annotations

from itertools import islice

from corpora import Json, make_field, parse_schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from java_avro import JavaAvro
from schema_strategies import draw_evolution, draw_schema

from schemactl.core.schema import Release
from schemactl.formats.avro.compatibility import AmbiguousAlias, find_incompatibilities
from schemactl.formats.avro.datum_encoding import encode
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.resolving_grammar import can_read, decodes_all, describe_unreadable
from schemactl.formats.avro.sample_messages import list_candidates

THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RELEASES = st.sampled_from(Release)


@THOROUGH
@given(draw_schema(), RELEASES)
def test_a_schema_reads_itself(definition: Json, release: Release) -> None:
    reader, writer = parse_schema(definition, release), parse_schema(definition, release)
    assert can_read(reader=reader, writer=writer, release=release).outcome == "ok"
    assert decodes_all(reader=reader, writer=writer, release=release)[0]


@THOROUGH
@given(draw_schema(), RELEASES, st.booleans())
def test_a_new_field_needs_a_default(definition: Json, release: Release, has_default: bool) -> None:  # noqa: FBT001  drawn
    more = make_field("more", ["null", "int"], **({"default": None} if has_default else {}))
    grown = definition | {"fields": [*definition["fields"], more]}
    old, new = parse_schema(definition, release), parse_schema(grown, release)
    assert can_read(reader=new, writer=old, release=release).outcome == ("ok" if has_default else "incompatible")
    assert can_read(reader=old, writer=new, release=release).outcome == "ok"


@THOROUGH
@given(draw_evolution(), RELEASES)
def test_decodable_pair_passes_and_printing_keeps_the_verdict(pair: tuple[Json, Json], release: Release) -> None:
    reader, writer = (parse_schema(definition, release) for definition in pair)
    answer = can_read(reader=reader, writer=writer, release=release)
    assert answer.outcome == "ok" or not decodes_all(reader=reader, writer=writer, release=release)[0]
    printed = (parse(schema_text(one, pretty=True), release) for one in (reader, writer))
    assert can_read(reader=next(printed), writer=next(printed), release=release) == answer


@settings(THOROUGH, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(pair=draw_evolution())
def test_java_has_the_same_answer_values_and_messages(java: JavaAvro, pair: tuple[Json, Json]) -> None:
    for one, other in (pair, reversed(pair)):
        reader, writer = parse_schema(one, Release.R4_2), parse_schema(other, Release.R4_2)
        java_reader, java_writer = java.parse(one), java.parse(other)
        answer = can_read(reader=reader, writer=writer, release=Release.R4_2)
        assert (answer.outcome, answer.exception) == java.resolve_pair(reader=java_reader, writer=java_writer)
        rejection = describe_unreadable(reader=reader, writer=writer)
        assert rejection == java.read_refusal(reader=java_reader, writer=java_writer)
        try:
            reasons = find_incompatibilities(reader=parse_schema(one), writer=parse_schema(other))
        except AmbiguousAlias:
            listed = None
        else:
            listed = [(reason.rule, reason.pointer, reason.message) for reason in reasons]
        assert listed == java.list_reasons(reader=java_reader, writer=java_writer)
        if answer.outcome == "ok" and listed == []:
            # One for each place in the definition: Java's own random messages of a recursive record have no bound.
            messages = [encode(writer, datum) for datum in islice(list_candidates(writer), 20)]
            java.decode(messages, reader=java_reader, writer=java_writer)
