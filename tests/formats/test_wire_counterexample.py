"""A message proves a changed type or encoding: one side writes it, the other really reads it."""

from __future__ import annotations

import contextlib
import json
import struct
import sys
from datetime import date
from itertools import permutations, product
from typing import Any

import pytest
from corpora import make_definition, make_versions, read_rows
from hypothesis import given
from hypothesis import strategies as st

from schemactl import formats
from schemactl.comparison.compatibility import find_breakages
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import SPECS, protobuf
from schemactl.formats.avro import parse_cached
from schemactl.formats.avro.datum_encoding import decode, encode
from schemactl.formats.avro.sample_messages import list_candidates
from schemactl.formats.key_value import join, split
from schemactl.formats.type_spec import Encoding, ReaderFailure, UnknownWire, Wire, find_misread_message, spec

ORDER = b"""{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]}"""
AVRO = SchemaInfo(SchemaType.AVRO, ORDER)
JSON = SchemaInfo(SchemaType.JSON, ORDER)
STRING = SchemaInfo(SchemaType.STRING)
INT32 = SchemaInfo(SchemaType.INT32)
PRIMITIVES = [SchemaInfo(kind) for kind, type_spec in SPECS.items() if type_spec.payload == "value"]

UNTOLD = sorted(
    {kind for kind, type_spec in SPECS.items() if type_spec.validation == "client"}
    | {SchemaType.PROTOBUF, SchemaType.EXTERNAL},
    key=lambda kind: kind.value,
)
"""The types whose definition, if any, does not describe their bytes."""

SAME_MOMENT = {SchemaType.DATE, SchemaType.TIMESTAMP}
"""Both are milliseconds since 1970, which their readers interpret as the same moment."""


def read(wire: Wire, info: SchemaInfo) -> str:
    return spec(info).read(wire, info)


def find_misreading(reader: SchemaInfo, writer: SchemaInfo) -> Counterexample:
    counterexample = find_misread_message(reader=reader, writer=writer)
    assert counterexample is not None
    return counterexample


@pytest.mark.parametrize(("writer", "reader"), list(permutations(PRIMITIVES, 2)), ids=lambda info: info.type.name)
def test_every_primitive_is_misread_as_every_other(writer: SchemaInfo, reader: SchemaInfo) -> None:
    counterexample = find_misread_message(reader=reader, writer=writer)
    if {writer.type, reader.type} == SAME_MOMENT:
        assert counterexample is None
    else:
        assert counterexample is not None
        assert counterexample.result != f"reads {counterexample.message}"


@pytest.mark.parametrize(
    ("writer", "reader", "message", "data", "result"),
    [
        ("STRING", "INT32", '"é"', "c3a9", "SchemaSerializationException: Size of data received by IntSchema is not 4"),
        ("STRING", "INT16", '"é"', "c3a9", "reads -15447"),
        ("INT32", "STRING", "1", "00000001", r'reads "\u0000\u0000\u0000\u0001"'),
        ("INT32", "FLOAT", "1", "00000001", "reads 1.401298464324817e-45"),
        ("INT8", "BOOLEAN", "1", "01", "reads true"),
        ("INT64", "INSTANT", "1", "0000000000000001", "BufferUnderflowException"),
        ("INSTANT", "LOCAL_TIME", '"1970-01-01T00:00:01Z"', "0000000000000001" + "00000000",
         "SchemaSerializationException: Size of data received by LongSchema is not 8"),
        ("DOUBLE", "TIMESTAMP", "1.5", "3ff8000000000000", 'reads "+146069125-08-14T19:21:42.656Z"'),
        ("DOUBLE", "LOCAL_TIME", "1.5", "3ff8000000000000",
         "DateTimeException: Invalid value for NanoOfDay (valid values 0 - 86399999999999): 4609434218613702656"),
        ("LOCAL_DATE_TIME", "INSTANT", '"1970-01-02T00:00:00"', "0000000000000001" + "00" * 8,
         'reads "1970-01-01T00:00:01Z"'),
    ],
)  # fmt: skip
def test_reader_gets_javas_value(writer: str, reader: str, message: str, data: str, result: str) -> None:
    counterexample = find_misreading(SchemaInfo(SchemaType[reader]), SchemaInfo(SchemaType[writer]))
    assert counterexample == Counterexample(message, bytes.fromhex(data), result)


@given(st.integers(-719_162, 2_932_896))
def test_days_equal_the_calendars(day: int) -> None:
    text = read(Wire(struct.pack(">q", day)), SchemaInfo(SchemaType.LOCAL_DATE))
    assert json.loads(text) == date.fromordinal(day + 719_163).isoformat()


@given(st.integers(0, 146_096), st.integers(0, 2_000_000))
def test_the_calendar_repeats_every_four_hundred_years(day: int, eras: int) -> None:
    text = read(Wire(struct.pack(">q", day + eras * 146_097)), SchemaInfo(SchemaType.LOCAL_DATE))
    same = date.fromordinal(day + 719_163)
    assert json.loads(text).removeprefix("+") == f"{same.year + 400 * eras:04d}{same.isoformat()[4:]}"


def test_json_and_avro_do_not_read_each_other() -> None:
    counterexample = find_misreading(AVRO, JSON)
    assert json.loads(counterexample.message) == json.loads(counterexample.data) == {"id": 0, "note": None}
    assert counterexample.result == "ArrayIndexOutOfBoundsException: Index 17 out of bounds for length 2"
    counterexample = find_misreading(JSON, AVRO)
    assert counterexample.data == b"\0\0"
    assert counterexample.result.startswith("SchemaSerializationException: the bytes are not JSON")
    result = 'reads {"id": 0, "note": null} (decoded by the reader\'s definition alone)'
    assert find_misreading(AVRO, INT32).result == result


def test_texts_are_written_and_read_as_java_does() -> None:
    latin = SchemaInfo(SchemaType.STRING, b"", {"__charset": "ISO-8859-1"})
    wide = SchemaInfo(SchemaType.STRING, b"", {"__charset": "UTF-16"})
    text = SchemaInfo(SchemaType.AVRO, b'"string"')
    assert find_misreading(STRING, text) == Counterexample('"é"', b"\x04\xc3\xa9", r'reads "\u0004é"')
    assert find_misreading(SchemaInfo(SchemaType.BYTES), STRING).data == "é".encode()
    assert find_misreading(INT32, latin).data == b"\xe9"
    assert find_misreading(SchemaInfo(SchemaType.INT8), wide).data == b"\xfe\xff\x00\xe9"
    assert find_misreading(wide, SchemaInfo(SchemaType.INT16)).result == r'reads "\u0001"'


def prove_breakage(rule: str, pointer: str, direction: Any, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample:
    breakage = Breakage(Incompatibility(rule, pointer), direction, 0)
    counterexample = formats.counterexample(breakage, new=new, old=old)
    assert counterexample is not None
    return counterexample


@pytest.mark.parametrize(
    ("direction", "result"),
    [
        ("new_reads_old", "SchemaSerializationException: Size of data received by IntSchema is not 4"),
        ("both", "SchemaSerializationException: Size of data received by IntSchema is not 4"),
        ("old_reads_new", r'reads "\u0000\u0000\u0000\u0001"'),
    ],
)
def test_direction_selects_the_reader(direction: str, result: str) -> None:
    assert prove_breakage("SCHEMA_TYPE_CHANGED", "", direction, new=INT32, old=STRING).result == result


@pytest.mark.parametrize("kind", UNTOLD)
def test_a_type_that_does_not_tell_its_bytes_has_no_message(kind: SchemaType) -> None:
    untold = SchemaInfo(kind, ORDER)
    assert not list(spec(untold).make_messages(untold))
    assert find_misread_message(reader=STRING, writer=untold) is None
    assert find_misread_message(reader=untold, writer=STRING) is None


@pytest.mark.parametrize("text", [b"{", b'{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}'])
def test_unparsable_and_endless_definitions_have_no_counterexample(text: bytes) -> None:
    broken = SchemaInfo(SchemaType.AVRO, text)
    assert find_misread_message(reader=STRING, writer=broken) is None
    assert find_misread_message(reader=broken, writer=STRING) is None


def test_huge_count_of_items_without_bytes_is_not_decoded() -> None:
    nothings = SchemaInfo(SchemaType.AVRO, b'{"type": "array", "items": "null"}')
    with pytest.raises(UnknownWire):
        read(Wire(b"\xfe\xff\xff\xff\x0f"), nothings)


def pair_of_halves(key: SchemaInfo, value: SchemaInfo, encoding: Encoding) -> SchemaInfo:
    return join(key=key, value=value, encoding=encoding)


def test_a_changed_encoding_moves_the_key() -> None:
    inline, separated = pair_of_halves(STRING, STRING, "INLINE"), pair_of_halves(STRING, STRING, "SEPARATED")
    framed = b"\0\0\0\x02\xc3\xa9" * 2
    result = f'reads {{"key": null, "value": {json.dumps(framed.decode(), ensure_ascii=False)}}}'
    for direction, data, expected in (
        ("new_reads_old", framed, result),
        ("old_reads_new", "é".encode(), "BufferUnderflowException"),
    ):
        counterexample = prove_breakage("KEY_VALUE_ENCODING_CHANGED", "", direction, new=separated, old=inline)
        assert counterexample == Counterexample('{"key": "é", "value": "é"}', data, expected)


@pytest.mark.parametrize(
    ("key", "value"), list(product([STRING, INT32, AVRO, JSON], repeat=2)), ids=lambda info: info.type.name
)
def test_a_changed_encoding_is_shown_for_all_halves(key: SchemaInfo, value: SchemaInfo) -> None:
    inline, separated = pair_of_halves(key, value, "INLINE"), pair_of_halves(key, value, "SEPARATED")
    assert find_misreading(inline, separated)
    assert find_misreading(separated, inline)


@pytest.mark.parametrize(
    ("length", "result"),
    [
        (-2, "NegativeArraySizeException: -2"),
        (9, "BufferUnderflowException (a length of 9, and 4 bytes follow)"),
        (2**30 + 1, "OutOfMemoryError: Java heap space"),
    ],
)
def test_a_foreign_length_is_believed(length: int, result: str) -> None:
    with pytest.raises(ReaderFailure) as caught:
        read(Wire(struct.pack(">i", length) + b"\0\0\0\0"), pair_of_halves(STRING, STRING, "INLINE"))
    assert str(caught.value) == result


@pytest.mark.parametrize("half", ["key", "value"])
def test_a_changed_half_is_shown_alone(half: str) -> None:
    old = pair_of_halves(STRING, STRING, "INLINE")
    new = pair_of_halves(INT32, STRING, "INLINE") if half == "key" else pair_of_halves(STRING, INT32, "INLINE")
    counterexample = prove_breakage("KEY_VALUE_TYPE_CHANGED", f"/{half}", "new_reads_old", new=new, old=old)
    assert (counterexample.message, counterexample.data) == (f'{{"{half}": "é"}}', "é".encode())
    assert counterexample.result.startswith(f"the {half}: SchemaSerializationException")
    counterexample = prove_breakage("KEY_VALUE_TYPE_CHANGED", f"/{half}", "old_reads_new", new=new, old=old)
    assert (counterexample.message, counterexample.data) == (f'{{"{half}": 1}}', b"\0\0\0\x01")


def test_missing_protobuf_means_no_counterexample_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("schemactl.formats.protobuf.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(SchemactlError):
        protobuf.load("definition")
    assert find_misread_message(reader=STRING, writer=SchemaInfo(SchemaType.PROTOBUF_NATIVE, b"{}")) is None


@pytest.mark.parametrize(
    "info", [*PRIMITIVES, AVRO, JSON, pair_of_halves(STRING, AVRO, "INLINE"), SchemaInfo(SchemaType.BYTES)]
)
@given(data=st.binary(max_size=20), key=st.none() | st.binary(max_size=4))
def test_foreign_bytes_are_read_or_rejected(info: SchemaInfo, data: bytes, key: bytes | None) -> None:
    with contextlib.suppress(ReaderFailure, UnknownWire):
        json.loads(read(Wire(data, key), info))


def test_avro_reads_its_own_messages() -> None:
    for row in read_rows("avro_public")[::10]:
        schema = parse_cached(json.dumps(row["writer"]).encode())
        for datum in list_candidates(schema):
            assert decode(encode(schema, datum), schema) == datum, row["id"]


def tells_its_bytes(info: SchemaInfo) -> bool:
    """Return whether messages can be made: not of PROTOBUF without its `.proto`, nor of a definition that does not parse."""
    try:
        if info.type is SchemaType.KEY_VALUE:
            halves = split(info)
            return tells_its_bytes(halves.key) and tells_its_bytes(halves.value)
        formats.identity(info)
    except InvalidSchema:
        return False
    return info.type not in UNTOLD


def has_no_counterexample(breakage: Breakage, new: SchemaInfo, old: SchemaInfo) -> bool:
    """Return whether no message can prove the breakage, for a reason in the rule's description."""
    rule = breakage.incompatibility.rule
    if rule == "KEY_VALUE_TYPE_CHANGED":
        half = breakage.incompatibility.pointer.removeprefix("/")
        new, old = getattr(split(new), half), getattr(split(old), half)
    is_moment = rule.endswith("TYPE_CHANGED") and {new.type, old.type} == SAME_MOMENT
    # AMBIGUOUS_ALIAS of a field with its own name: only the check throws. PROTOBUF: the explanation says why.
    return rule == "AMBIGUOUS_ALIAS" or is_moment or not (tells_its_bytes(new) and tells_its_bytes(old))


def test_every_breakage_of_the_recorded_uploads_has_a_counterexample() -> None:
    proof_count = 0
    for row in read_rows("broker_public"):
        existing, new = make_versions(row["existing"]), make_definition(row["new"])
        for breakage in find_breakages(existing, new, CompatibilityStrategy(row["strategy"])):
            old = existing[breakage.against].info
            assert old
            if not breakage.incompatibility.strict_only:
                counterexample = formats.counterexample(breakage, new=new, old=old)
                assert counterexample or has_no_counterexample(breakage, new, old), (row["id"], breakage)
                proof_count += counterexample is not None
    assert proof_count > 550
