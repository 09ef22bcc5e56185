"""Texts that lenient JSON parsers take and others do not, by the part of an upload that a broker reads with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PAIR = {"key.schema.type": "STRING", "value.schema.type": "STRING", "kv.encoding.type": "INLINE"}
AVRO_PAIR = {"key.schema.type": "AVRO", "value.schema.type": "AVRO", "kv.encoding.type": "INLINE"}
EMPTY_PAIR = '{"key":"","value":""}'

PROPERTIES = {
    "ok": [
        "null", " null ", "NULL", "Null", "", " ", "{}", "{a:1}", "{'a':'b'}", "{a=1;b=2}", "{a=>1}", "//c\n{}", "#c\n{}", "/*c*/null",
        '{"a":01}', '{"a":NaN}', '{"a":true}', '{"a":[1]}', '{"a":[["b"]]}', "\ufeff{}", ")]}'\n{}", '{"a":"\\\n"}',
        '{"a":1,"a":2}', '{"a":-}', '{"a":+1}', "{a:'\"'}", '{"":""}',
    ],
    "error": [
        "[]", "7", '"a"', "nope", "tru", "[1,]", '{"a":1,}', "{", "{} x", '{"a":null}', '{"a":{"b":1}}', '{"a":"b"', '{"a" "b"}', "{,}",
        '{"a":}', '{"a":1 "b":2}', '{"a":[1,2]}', '{"a":[]}', '{"a":[,]}', "{a:1/2}", "{} {}", "/*", '{"a":"b"} //c', "{}#", '{"a":"\\x"}', '{"a":"\\u12"}', "{a}",
        "{:1}", "{a:1;}", "'", '{"a":"', "}",
    ],
}  # fmt: skip
"""The properties of a half, by the outcome of an upload."""

PAIRS = {
    "ok": [
        EMPTY_PAIR, "{key:'',value:''}", "// c\n" + EMPTY_PAIR, '{"key":"";"value":""}', '{"key":"","value":"","x":[,]}', "{key='';value=>''}",
    ],
    "invalid": ['{"key":"","value":01}', '{"key":"","value":NaN}', '{"key":"x","value":""}', '{"key":[],"value":""}', '{"key":[,],"value":""}'],
    "error": [
        "", " ", "null", "[]", "7", '"a"', "nope", "{}", '{"key":""}', '{"value":""}', "{", '{"key":"","value":"",}', '{"key":"","value":""} x',
        '{"key":"" "value":""}', '{"key":"","value":"', "{key:}", "//",
    ],
}  # fmt: skip
"""The texts of pairs of strings, by the outcome of an upload."""

AVRO_PAIRS = {
    "ok": [
        '{"key":{"type":"string"},"value":{"type":"string"}}',
        "{key:{type:string},value:{type:'string'}}",
        '{"key":{"type":"string","x":NaN},"value":{type:long;x:[1,,]}}',
    ],
    "invalid": ['{"key":{"type":"nope"},"value":{"type":"string"}}', '{"key":"{\\"type\\":\\"string\\"}","value":{"type":"string"}}'],
    "error": ['{"key":{"type":"string",},"value":{"type":"string"}}'],
}  # fmt: skip

RECORD = '{"type":"record","name":"A","fields":[]'
JSON_4_0 = {
    "error": [
        RECORD + ",}", RECORD + ',"x":NaN}', RECORD + ',"x":01}', RECORD + ',"x":1', RECORD, '{"type":"record"', '{"type":7,}', '{"type":true,}',
        '["record",{},]', '["record",{', '{"type":"record"/*c*/,}', '{"id":"a","type":"record",}', '{"x":{"type":"object"},"type":"record",}',
        '{"type":"record","type":"object",}', "[1,{]", '{"type":"map",',
    ],
    "invalid": [
        '{"name":"A",,"type":"record"}', '{"x":NaN,"type":"record","name":"A"}', '{"x":01,"type":"record"}', '{"type":"object",}',
        '{"type":"object","x":NaN}', '["record"', '["record",]', "{'type':'record'}", '{type:"record"}', '{"type": record}', '{"type":["record",]}',
        '{"type":{"a":01}}', '{"type":null,}', '// c\n{"type":"record",}', '{"id":"a" "type":"record"}', '{"type":"rec\tord",}', "[", "{",
        '"record', "NaN", '{"x":{"y":[1,{"z":01}]},"type":"record"}', '{"type":"object","type":"record",}',
    ],
}  # fmt: skip
"""Definitions of type JSON, by the outcome of an upload to 4.0, which also reads the definitions of old clients; newer ones: "invalid"."""


def list_uploads(release: str) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield the type, text and properties of each upload to a topic without versions, and its outcome."""
    for outcome, texts in PROPERTIES.items():
        for half in ("key", "value"):
            for text in texts:
                yield "KEY_VALUE", EMPTY_PAIR, {**PAIR, f"{half}.schema.properties": text}, outcome
    for properties, table in ((PAIR, PAIRS), (AVRO_PAIR, AVRO_PAIRS)):
        for outcome, texts in table.items():
            for text in texts:
                yield "KEY_VALUE", text, properties, outcome
    for outcome, texts in JSON_4_0.items():
        for text in texts:
            yield "JSON", text, {}, outcome if release == "4.0" else "invalid"


def request(kind: str, text: str, properties: dict[str, str]) -> Any:
    """Return the definition in the form of an upload."""
    return {"type": kind, "schema": text, "properties": properties}
