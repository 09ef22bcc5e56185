"""The codec of any schema writes and reads back its plausible messages; the same seed yields the same messages."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from corpora import read_rows
from random_avro import Maker
from random_protobuf import ProtoMaker
from tangled_definitions import TANGLED_AVRO, TANGLED_PROTO, dump_avro, make_mutual_records
from topics_to_generate import CLICK, TYPES

from schemactl.codec import Codec, CodecError, Definition, KeyValue, Unwritable, Version
from schemactl.codegen.codecs import to_codec_schema
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.publish.sample_messages import explain_omissions, find_options, generate_messages

pytestmark = pytest.mark.slow


def make_values(schema: Definition | KeyValue, count: int = 3, seed: int = 0) -> list[Any]:
    """Make values of messages, which a codec must read to the last byte, one by one and in a batch."""
    messages = list(islice(generate_messages(schema, 0, name="orders", seed=seed), count))
    assert messages == list(islice(generate_messages(schema, 0, name="orders", seed=seed), count))
    strict = Codec([Version(0, schema)], options=replace(find_options(schema), strict=True))
    for message, _ in messages:
        assert message.payload is not None
        strict.validate(message.payload, 0, message.key)
    return [value for _, value in messages]


NO_VALUES = {"rec-direct-depth1", "rec-direct-depth2", "rec-direct-depth16", "stable-union28-top"}
"""Definitions of which no message is: a record that always holds itself, a union of nothing."""


def test_recorded_definitions_of_every_kind_have_messages() -> None:
    without = []
    for row in read_rows("spark_types_public"):
        try:
            make_values(Definition("AVRO", json.dumps(row["avro"])))
        except CodecError:
            # Schemas that Avro itself rejects have an error there.
            if row["error"] is None:
                without.append(row["id"])
    assert set(without) == NO_VALUES


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
@pytest.mark.parametrize("seed", range(60))
def test_random_definitions_have_messages(kind: str, seed: int) -> None:
    schema = Definition(kind, json.dumps(Maker(seed).record()))
    assert len(make_values(schema, seed=seed)) == 3


@pytest.mark.parametrize("seed", range(20))
def test_random_protobuf_definitions_have_messages(seed: int) -> None:
    try:
        assert len(make_values(ProtoMaker(seed).make_definition(), seed=seed)) == 3
    except Unwritable as error:
        # Such as a message without fields, for which there is no column.
        assert "required fields are missing" in str(error)  # noqa: PT017  most seeds have none


@pytest.mark.parametrize("name", sorted(TYPES.keys() - {"bills"}))
def test_every_schema_type_has_messages(name: str) -> None:
    for info in TYPES[name]:
        assert len(make_values(to_codec_schema(info), 10)) == 10


def test_names_say_what_a_value_looks_like() -> None:
    definition = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "customerEmail", "type": "string"},
            {"name": "currency_code", "type": "string"},
            {"name": "year", "type": "int"},
            {"name": "ratio", "type": "double"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ],
    }
    for value in make_values(Definition("AVRO", json.dumps(definition)), 20):
        assert str(uuid.UUID(value["ref"])) == value["ref"]
        assert value["customerEmail"].endswith("@example.com")
        assert 2020 <= value["year"] <= 2030
        assert 0 <= value["ratio"] <= 1
        assert 0 <= value["price"] < 1000


def test_records_that_hold_themselves_end() -> None:
    tree = {"name": "children", "type": {"type": "array", "items": "Node"}}
    following = {"name": "next", "type": ["null", "Node"]}
    node = {"type": "record", "name": "Node", "fields": [tree, following]}
    assert len(make_values(Definition("AVRO", json.dumps(node)))) == 3
    endless = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": "Node"}]}
    with pytest.raises(Unwritable, match="nested deeper"):
        make_values(Definition("AVRO", json.dumps(endless)))


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
@pytest.mark.parametrize("name", TANGLED_AVRO)
def test_records_that_contain_each_other_have_messages(name: str, kind: str) -> None:
    schema = Definition(kind, dump_avro(name))
    codec = Codec([Version(0, schema)], options=find_options(schema))
    for message, value in islice(generate_messages(schema, 0, name="orders", seed=0), 3):
        assert len(message.payload or b"") < 200_000
        assert codec.decode_one(message.payload, 0) == value


def test_protobuf_messages_that_contain_each_other_have_messages() -> None:
    schema = to_codec_schema(compile_proto(Proto.of_text(TANGLED_PROTO, "t.M0")))
    assert len([*islice(generate_messages(schema, 0, name="orders", seed=0), 3)]) == 3


def test_records_below_the_limit_of_parts_are_left_out_with_a_note() -> None:
    assert explain_omissions(Definition("AVRO", dump_avro("mutual records"))) == ""
    schema = Definition("AVRO", json.dumps(make_mutual_records(150)))
    note = "records inside of 3 others are left out: with them, the message has more than 100,000 parts"
    assert explain_omissions(schema) == note


def test_another_seed_gives_other_messages() -> None:
    assert make_values(to_codec_schema(CLICK), seed=1) != make_values(to_codec_schema(CLICK), seed=2)
