"""KEY_VALUE: its framing, its text in the admin API, and the effect of its properties."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl import formats
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.key_value import join, split
from schemactl.formats.type_spec import Encoding

PAIR = SPECS[SchemaType.KEY_VALUE]
STRING = SchemaInfo(SchemaType.STRING)
INT64 = SchemaInfo(SchemaType.INT64)
primitives = st.builds(
    SchemaInfo,
    st.sampled_from([kind for kind, type_spec in SPECS.items() if type_spec.payload == "value"]),
    st.just(b""),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
encodings: st.SearchStrategy[Encoding] = st.sampled_from(("INLINE", "SEPARATED"))


@given(primitives, primitives, encodings)
def test_halves_come_back_as_they_were_joined(key: SchemaInfo, value: SchemaInfo, encoding: Encoding) -> None:
    both = split(join(key=key, value=value, encoding=encoding))
    assert (both.key, both.value, both.encoding) == (key, value, encoding)


@given(st.binary(max_size=40), st.dictionaries(st.sampled_from(["key.schema.type", "kv.encoding.type"]), st.text()))
def test_arbitrary_bytes_are_split_or_rejected(data: bytes, properties: dict[str, str]) -> None:
    info = SchemaInfo(SchemaType.KEY_VALUE, data, properties)
    with contextlib.suppress(InvalidSchema):
        split(info)
        return
    assert list(formats.find_problems(info, Release.R4_0))


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (b"", "/key"),
        (b"\0\0\0", "/key"),
        (b"\0\0\0\x05ab", "/key"),
        (b"\xff\xff\xff\xfe\0\0\0\0", "/key"),
        (b"\0\0\0\0", "/value"),
        (b"\0\0\0\0\0\0\0\x01", "/value"),
        (b"\0\0\0\0\0\0\0\0!", ""),
    ],
)
def test_broken_framing_is_one_problem_at_its_half(data: bytes, pointer: str) -> None:
    (problem,) = formats.find_problems(SchemaInfo(SchemaType.KEY_VALUE, data), Release.R4_0)
    assert problem.pointer == pointer


def test_the_admin_text_keeps_numbers_and_key_order_as_they_are_written() -> None:
    text = '{ "key": "", "value": {"b": 1.50, "a": [1e2, {"\\u00e9": null}]} }'
    info = PAIR.from_text(SchemaType.KEY_VALUE, text, {"key.schema.type": "STRING", "value.schema.type": "AVRO"})
    assert info.schema[8:] == '{"b":1.50,"a":[1e2,{"é":null}]}'.encode()
    assert json.loads(PAIR.to_text(info) or "") == json.loads(text)


@pytest.mark.parametrize("text", ["", "[]", '"x"', '{"key": ""}', "{", "nul", "[" * 100_000])
def test_other_admin_text_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSchema, match="KEY_VALUE"):
        PAIR.from_text(SchemaType.KEY_VALUE, text, {})


@pytest.mark.parametrize("depth", [200, 500, 900, 990, 5_000])
def test_deep_halves_are_kept_or_rejected(depth: int) -> None:
    half = '{"type":"array","items":' * depth + '"int"' + "}" * depth
    with contextlib.suppress(InvalidSchema):
        info = PAIR.from_text(SchemaType.KEY_VALUE, f'{{"key":"","value":{half}}}', {"value.schema.type": "AVRO"})
        assert info.schema[8:] == half.encode()
        PAIR.to_text(info)


def test_an_absent_half_is_an_empty_one() -> None:
    empty = join(key=STRING, value=INT64, encoding="INLINE")
    absent = replace(empty, schema=b"\xff\xff\xff\xff\0\0\0\0")
    assert formats.identity(absent) == formats.identity(empty)


def test_change_that_the_registry_ignores_is_another_version() -> None:
    inline = join(key=STRING, value=STRING, encoding="INLINE")
    separated = join(key=STRING, value=STRING, encoding="SEPARATED")
    numbers = join(key=INT64, value=STRING, encoding="INLINE")
    assert inline.schema == separated.schema == numbers.schema
    assert len({formats.identity(info) for info in (inline, separated, numbers)}) == 3


UTF_16 = SchemaInfo(SchemaType.STRING, properties={"__charset": "UTF-16"})


@pytest.mark.parametrize(
    ("new", "rule", "pointer"),
    [
        (join(key=STRING, value=STRING, encoding="SEPARATED"), "KEY_VALUE_ENCODING_CHANGED", ""),
        (join(key=INT64, value=STRING, encoding="INLINE"), "KEY_VALUE_TYPE_CHANGED", "/key"),
        (join(key=STRING, value=INT64, encoding="INLINE"), "KEY_VALUE_TYPE_CHANGED", "/value"),
        (join(key=STRING, value=UTF_16, encoding="INLINE"), "STRING_CHARSET_CHANGED", "/value"),
    ],
)
def test_it_breaks_data(new: SchemaInfo, rule: str, pointer: str) -> None:
    old = join(key=STRING, value=STRING, encoding="INLINE")
    (incompatibility,) = formats.resolve(reader=new, writer=old)
    assert (incompatibility.rule, incompatibility.pointer) == (rule, pointer)
    breakage = Breakage(incompatibility, "new_reads_old", 3)
    explanation = formats.explain(breakage, new=new, old=old)
    assert explanation.field == pointer.removeprefix("/")
    assert "ersion 3" in explanation.reason
    assert explanation.fix
    assert formats.counterexample(breakage, new=new, old=old)


def test_unusable_default_is_found_in_its_half() -> None:
    enum = '{"type": "enum", "name": "Kind", "symbols": ["A"]}'
    record = f'{{"type": "record", "name": "R", "fields": [{{"name": "kind", "type": {enum}, "default": "B"}}]}}'
    value = SchemaInfo(SchemaType.AVRO, record.encode())
    pair = join(key=SchemaInfo(SchemaType.STRING, b""), value=value, encoding="INLINE")
    [default] = formats.spec(pair).find_unusable_defaults(pair)
    assert default.pointer == "/value/fields/0/default"
    assert default.message == "the default of R.kind cannot be read: enum value 'B' is not a symbol of the enum"


def test_a_breakage_inside_a_half_is_explained_and_proved_there() -> None:
    texts = ('{"type":"enum","name":"E","symbols":["A","B"]}', '{"type":"enum","name":"E","symbols":["A"]}')
    old, new = (
        join(key=STRING, value=SchemaInfo(SchemaType.AVRO, text.encode()), encoding="SEPARATED") for text in texts
    )
    (incompatibility,) = formats.resolve(reader=new, writer=old)
    assert (incompatibility.rule, incompatibility.pointer) == ("MISSING_ENUM_SYMBOLS", "/value/symbols")
    breakage = Breakage(incompatibility, "new_reads_old", 0)
    assert formats.explain(breakage, new=new, old=old).field.startswith("value")
    proof = formats.counterexample(breakage, new=new, old=old)
    assert proof
    assert json.loads(proof.message) == {"value": "B"}
    assert proof.data == b"\x02"


TYPES = {"key.schema.type": "STRING", "value.schema.type": "STRING"}


@pytest.mark.parametrize(
    ("properties", "pointer"),
    [
        ({"value.schema.type": "STRING"}, "/key"),
        (TYPES | {"value.schema.type": "string"}, "/value"),
        (TYPES | {"value.schema.type": "KEY_VALUE"}, "/value"),
        (TYPES | {"value.schema.type": "AUTO_CONSUME"}, "/value"),
        (TYPES | {"kv.encoding.type": "OUTLINE"}, "/encoding"),
        (TYPES | {"value.schema.properties": "[]"}, "/value"),
    ],
)
def test_half_types_and_encoding_are_checked(properties: dict[str, str], pointer: str) -> None:
    (problem,) = formats.find_problems(SchemaInfo(SchemaType.KEY_VALUE, bytes(8), properties), Release.R4_0)
    assert problem.pointer == pointer
