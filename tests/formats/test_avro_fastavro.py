"""fastavro reads the messages that both verdicts accept, except the differences in docs/explanation/two-verdicts.md."""

from __future__ import annotations

import io
import json
from itertools import chain, islice
from typing import Any

import fastavro
import pytest
from corpora import Json, make_enum, make_field, read_rows, record
from hypothesis import HealthCheck, given, settings
from property_runs import EXAMPLES
from schema_strategies import draw_evolution

from schemactl import compare
from schemactl.core.findings import Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.avro import parse_cached
from schemactl.formats.avro.datum_encoding import UnionValue, encode
from schemactl.formats.avro.sample_messages import ONES, list_candidates
from schemactl.formats.avro.schema import Named, Schema, Union, parts

pytestmark = pytest.mark.slow

MESSAGES = 40


def without_logical_types(definition: Json) -> Json:
    """Remove logical types, whose values do not belong to schema resolution: fastavro rejects an empty text as UUID."""
    if isinstance(definition, dict):
        return {key: without_logical_types(inner) for key, inner in definition.items() if key != "logicalType"}
    return [*map(without_logical_types, definition)] if isinstance(definition, list) else definition


def has_namesakes(schema: Schema) -> bool:
    """Return whether a union has two types that differ only in their namespaces: fastavro uses the first for both."""
    unions = (part.branches for part in parts(schema) if isinstance(part, Union))
    names_by_union = ([branch.name for branch in branches if isinstance(branch, Named)] for branches in unions)
    return any(len({*branch_names}) < len(branch_names) for branch_names in names_by_union)


def is_read(reader: Json, writer: Json) -> bool:
    """Return False if a verdict or a listed difference rejects the pair; otherwise decode messages of `writer` with fastavro."""
    new, old = (SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode()) for definition in (reader, writer))
    verdict = compare([old], new, CompatibilityStrategy.BACKWARD, Release.R4_2)
    if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED) or verdict.data != ():
        return False
    written = parse_cached(old.schema)
    if has_namesakes(written) or has_namesakes(parse_cached(new.schema)):
        return False
    fastavro_schemas: list[Any] = [
        fastavro.parse_schema(without_logical_types(definition)) for definition in (writer, reader)
    ]
    for datum in islice(chain(list_candidates(written), list_candidates(written, primitives=ONES)), MESSAGES):
        fastavro.schemaless_reader(io.BytesIO(encode(written, datum)), *fastavro_schemas)
    return True


def test_fastavro_reads_every_recorded_pair_that_passes() -> None:
    assert sum(is_read(row["reader"], row["writer"]) for row in read_rows("avro_public")) > 1_450


@settings(EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(draw_evolution())
def test_fastavro_reads_messages_that_both_verdicts_accept(pair: tuple[Json, Json]) -> None:
    reader, writer = pair
    is_read(reader, writer)
    is_read(writer, reader)


def test_fastavro_takes_a_namesake_for_the_branch_that_was_written() -> None:
    near, far = (make_enum("Kind", symbol, namespace=space) for space, symbol in (("near", "A"), ("far", "B")))
    definition = record("Order", make_field("kind", [near, far]))
    other = record("Order", make_field("kind", ["null", near, far]))
    assert not is_read(other, definition)
    fastavro_schemas: list[Any] = [fastavro.parse_schema(schema_json) for schema_json in (definition, other)]
    message = encode(parse_cached(json.dumps(definition).encode()), {"kind": UnionValue(1, "B")})
    with pytest.raises(fastavro.read.SchemaResolutionError):
        fastavro.schemaless_reader(io.BytesIO(message), *fastavro_schemas)
