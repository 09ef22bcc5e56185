"""JSON definitions of clients before 2.1, as Jackson's JsonSchema class reads them (each seen on Pulsar 4.0.7's jars)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.broker.legacy_json import JsonSchema, read_legacy_definition
from schemactl.formats.avro.schema import JavaException


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ('{"type":"object"}', None),
        ('{"id":"urn:x","type":"object","properties":{"a":{"type":"string","maxLength":" 1 "}}}', "urn:x"),
        ('{"type":"object","id":1.50}', "1.50"),
        ('{"type":"object","id":true}', "true"),
        ('{"type":"object"} and more', None),
        ('\ufeff{"type":"any","id":"x"}', "x"),
        ('["object",{"id":"x"}]', "x"),
        ('{"type":"array","items":[{"type":"string"},null],"uniqueItems":"TRUE","maxItems":1.5}', None),
        ('{"type":"number","maximum":"-INF","exclusiveMinimum":0,"enum":[1,true,null]}', None),
        ('{"type":"integer","divisibleBy":"2"}', None),
        ('{"type":"boolean","format":"nope","links":[{"href":"x","targetSchema":{"type":"null"}}]}', None),
        ('{"type":"object","additionalProperties":false,"dependencies":{"a":[]},"unknown":[]}', None),
        ('{"type":"string","required":"","readonly":null}', None),
    ],
)
def test_jackson_reads_it(text: str, id_: str | None) -> None:
    assert read_legacy_definition(text.encode()) == JsonSchema(id_)


@pytest.mark.parametrize("text", ["null", "null and more", '["object"]'])
def test_jackson_reads_null(text: str) -> None:
    assert read_legacy_definition(text.encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{}",
        "[]",
        "true",
        '"object"',
        '["object",{},1]',
        '{"type":null}',
        '{"type":["object","null"]}',
        '{"TYPE":"object"}',
        '{"type":"object","required":["a"]}',
        '{"type":"object","properties":{"a":{"type":"nope"}}}',
        '{"type":"object","properties":{"a":{}}}',
        '{"type":"object","id":[]}',
        '{"type":"object","id":NaN}',
        '{"type":"object","id":01}',
        '{"type":"array","items":true}',
        '{"type":"object",}',
        '{"type":"object" "x":1}',
        '{"type":"object","x":' + "[" * 1001 + "]" * 1001 + "}",
        "// comment\n" + '{"type":"object"}',
    ],
)
def test_jackson_rejects_it(text: str) -> None:
    with pytest.raises(JavaException) as thrown:
        read_legacy_definition(text.encode())
    assert thrown.value.exception == "IOException"


@pytest.mark.parametrize("text", ['{"type":"OBJECT"}', '{"type":5}', '["record",1]', "[1]", '{"type":"record",'])
def test_unknown_type_is_not_an_ioexception(text: str) -> None:
    with pytest.raises(JavaException, match="Can not resolve JsonSchema 'type' id of") as thrown:
        read_legacy_definition(text.encode())
    assert thrown.value.exception == "IllegalArgumentException"


@pytest.mark.parametrize("depth", [50, 400, 900, 100_000])
def test_deep_nesting_is_read_or_rejected(depth: int) -> None:
    text = '{"type":"array","items":' * depth + '{"type":"any"}' + "}" * depth
    with contextlib.suppress(JavaException):
        assert read_legacy_definition(text.encode()) == JsonSchema(None)


@given(st.binary() | st.text().map(str.encode))
def test_arbitrary_bytes_are_read_or_rejected(data: bytes) -> None:
    with contextlib.suppress(JavaException):
        read_legacy_definition(data)
