"""The messages for a stored definition that Avro rejects, as recorded from Pulsar 4.0.7."""

from __future__ import annotations

import pytest

from schemactl.broker.upload import VersionList
from schemactl.core.findings import Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion

PARSE, RUNTIME = "SchemaParseException", "AvroRuntimeException"
TYPE, ARGUMENT = "AvroTypeException", "IllegalArgumentException"
FIELD = '{"type":"record","name":"B","fields":[%s]}'


@pytest.mark.parametrize(
    ("stored", "exception", "message"),
    [
        ("", PARSE, "Cannot parse <null> schema"),
        ("null", PARSE, "Schema not yet supported: null"),
        ('{"foo":1}', PARSE, 'No type: {"foo":1}'),
        ('{"type":"object"}', PARSE, "Type not supported: object"),
        ('{"type":"record","fields":[]}', PARSE, 'No name in schema: {"type":"record","fields":[]}'),
        ('{"type":"record","name":"R"}', PARSE, 'Record has no fields: {"type":"record","name":"R"}'),
        ('{"type":"record","name":"1B","fields":[]}', PARSE, "Illegal initial character: 1B"),
        ('{"type":"record","name":"A$B","fields":[]}', PARSE, "Illegal character in: A$B"),
        ('{"type":"record","name":"","fields":[]}', PARSE, "Empty name"),
        ('{"type":"record","name":"string","fields":[]}', TYPE, "Schemas may not be named after primitives: string"),
        ('{"type":"enum","name":"E","symbols":["a-b"]}', PARSE, "Illegal character in: a-b"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"Z"}', PARSE,
         "The Enum Default: Z is not in the enum symbol set: [A]"),
        ('{"type":"fixed","name":"F","size":-1}', RUNTIME, "Malformed data. Length is negative: -1"),
        (FIELD % '{"name":"y"}', PARSE, 'No field type: {"name":"y"}'),
        (FIELD % '"x"', PARSE, 'No field name: "x"'),
        (FIELD % '{"name":"y","type":"E"}', PARSE,
         '"E" is not a defined name. The type of the "y" field must be a defined name or a {"type": ...} expression.'),
        (FIELD % '{"name":"y","type":["int","int"]}', RUNTIME, "Duplicate in union:int"),
        (FIELD % '{"name":"y","type":["null",["int"]]}', RUNTIME, 'Nested union: ["null",["int"]]'),
        (FIELD % '{"name":"y","type":"int","order":"up"}', ARGUMENT,
         "No enum constant org.apache.avro.Schema.Field.Order.UP"),
        (FIELD % '{"name":"y","type":["null","string"],"default":"d"}', TYPE,
         'Invalid default for field y: "d" not a ["null","string"]'),
        (FIELD % '{"name":"y","type":["null","B"],"default":1}', TYPE,
         'Invalid default for field y: 1 not a ["null",{"type":"record","name":"B"}]'),
        (FIELD % '{"name":"y","type":{"type":{"type":"array","items":"long"}}}', PARSE,
         'No type: {"type":{"type":"array","items":"long"}}'),
        ('{"type":"array","items":"A"}', PARSE, 'Undefined name: "A"'),
        ('{"type":"array", "x":1.50,"b":"é/\\u0001"}', PARSE,
         'Array has no items type: {"type":"array","x":1.5,"b":"é/\\u0001"}'),
        ('{"type":"array","items":null}', PARSE, "Schema not yet supported: null"),
        ('{"type":"map","values":7}', PARSE, "Schema not yet supported: 7"),
        ('{"type":"map","items":"int"}', PARSE, 'Map has no values type: {"type":"map","items":"int"}'),
        (FIELD % '{"name":"y","type":{"type":"array"}}', PARSE, 'Array has no items type: {"type":"array"}'),
        (FIELD % '{"name":"y","type":["null",{"type":"map"}]}', PARSE, 'Map has no values type: {"type":"map"}'),
        (FIELD % "" + " x", PARSE, "dangling content after end of schema: x"),
        ('syntax = "proto3";', PARSE,
         "com.fasterxml.jackson.core.JsonParseException: Unrecognized token 'syntax': was expecting"),
    ],
)  # fmt: skip
def test_a_broken_version_is_named_in_the_answer_to_every_upload(stored: str, exception: str, message: str) -> None:
    broken = SchemaInfo(SchemaType.PROTOBUF, stored.encode())
    new = SchemaInfo(SchemaType.JSON, b'"int"')
    answer = VersionList([SchemaVersion(0, broken)], Release.R4_0).put(new, CompatibilityStrategy.ALWAYS_COMPATIBLE)
    assert (answer.outcome, answer.exception) == (Outcome.ERROR, exception)
    assert answer.message.startswith(message)


def test_an_undefined_type_has_another_message_since_4_2() -> None:
    broken = SchemaInfo(SchemaType.PROTOBUF, b'{"type":"array","items":"n.A"}')
    new = SchemaInfo(SchemaType.JSON, b'"int"')
    answer = VersionList([SchemaVersion(0, broken)], Release.R4_2).put(new, CompatibilityStrategy.ALWAYS_COMPATIBLE)
    assert (answer.exception, answer.message) == ("AvroTypeException", "Undefined schema: n.A")
