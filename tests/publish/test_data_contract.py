"""Contracts are accepted by the standard's own validator and reader, and agree with the definition."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from open_data_contract_standard.model import OpenDataContractStandard
from property_runs import EXAMPLES
from random_avro import Maker

from schemactl.codegen.spark_types import UnsupportedBySpark
from schemactl.codegen.topic_struct import StructOptions
from schemactl.core.catalog import NO_METADATA, Deprecated, Metadata
from schemactl.core.names import TopicName
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.publish.data_contract import make_data_contract, render_contract

pytestmark = pytest.mark.slow

VALIDATOR = jsonschema.Draft201909Validator(
    json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text("utf-8"))
)
NAME = TopicName.parse("shop/sales/orders")
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string", "doc": "Never used twice: \u202e"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "long"}}},
        {
            "name": "to",
            "type": {"type": "record", "name": "To", "fields": [{"name": "id", "type": "int", "doc": "Of a city."}]},
        },
    ],
}


def build_contract(definition: object, metadata: Metadata = NO_METADATA) -> dict[str, Any]:
    return build_valid_contract(SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode()), metadata)


def build_valid_contract(info: SchemaInfo, metadata: Metadata) -> dict[str, Any]:
    text = render_contract(make_data_contract(NAME, 3, info, metadata, Release.R4_0, StructOptions(as_decoded=True)))
    document: dict[str, Any] = yaml.safe_load(text)
    VALIDATOR.validate(document)
    OpenDataContractStandard.from_string(text)
    return document


def test_a_contract_says_who_answers_and_what_each_field_is() -> None:
    metadata = Metadata(
        "team-orders", "Orders: all of them", {"tier": "gold"}, {"wiki": "https://example.com"}, Deprecated()
    )
    document = build_contract(ORDER, metadata)
    assert (document["version"], document["status"], document["tenant"]) == ("3", "deprecated", "shop")
    assert document["team"] == {"name": "team-orders"}
    assert document["id"] == build_contract(ORDER)["id"]
    (table,) = document["schema"]
    properties = {column["name"]: column for column in table["properties"]}
    assert properties["id"] == {
        "name": "id", "logicalType": "string", "physicalType": "STRING", "required": True, "description": "Never used twice: \u202e"
    }  # fmt: skip
    assert properties["price"]["physicalType"] == "DECIMAL(9,2)"
    assert properties["at"]["required"] is False
    assert properties["lines"]["items"]["map"] == {
        "key": {"logicalType": "string", "physicalType": "STRING"},
        "value": {"logicalType": "integer", "physicalType": "BIGINT"},
    }
    # The documentation of an inner field does not apply to an outer field with its name.
    assert properties["to"]["properties"] == [
        {
            "name": "id", "logicalType": "integer", "physicalType": "INT", "required": True, "description": "Of a city."
        }
    ]  # fmt: skip
    assert "description" not in properties["to"]


def test_comments_of_a_proto_file_are_descriptions() -> None:
    proto = """\
        syntax = "proto3";
        /**
         * A click.
         */
        message Click {
          // Where it
          // led to.
          string url = 1;
          // Somebody.
          message User { string name = 1; // As they write it.
          }
          map<string, User> users = 2;
        }
        """
    info = compile_proto(Proto.of_text(proto, "Click"))
    (table,) = build_valid_contract(info, NO_METADATA)["schema"]
    url, users = table["properties"]
    assert (table["description"], url["description"]) == ("A click.", "Where it\nled to.")
    assert users["description"] == "Somebody."
    assert users["map"]["value"]["properties"][0]["description"] == "As they write it."


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_contracts_of_random_definitions_are_valid(seed: int) -> None:
    # Of what holds itself there are no columns.
    with suppress(UnsupportedBySpark):
        build_contract(Maker(seed).record())
