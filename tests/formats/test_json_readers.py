"""JSON messages are judged by the reading of Pulsar's Java client, which is measured after a field has changed its type.

    PYTHONPATH=tests:tests/formats python tests/formats/test_json_readers.py FOLDER_OF_JARS...

writes json_readers.yaml next to this file, and the tables of docs/reference/json-readers.md. A reader is a class of the reader's
schema, or a GenericRecord; the worse result counts. Classes have the types that Java developers use (`JavaClasses`).
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

import brokers
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from java_json import JavaClasses, JavaClient, start_client
from property_runs import EXAMPLES
from random_avro import Maker

from schemactl.codec import Codec, Definition, Version
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import counterexample, explain, find_misreadings, resolve
from schemactl.formats.avro.json_readers import JSON_UNREADABLE, KEPT, KEPT_IN_UNION

Json = Any
Outcomes = dict[str, dict[str, list[str]]]

RECORDED: Final = Path(__file__).parent / "json_readers.yaml"
MEASURED: Any = yaml.load(RECORDED.read_bytes(), yaml.CSafeLoader)
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "json-readers.md"

OUTCOMES: Final = ("kept", "rounded", "null", "changed", "throws")
"""From the best to the worst."""


def make_logical(kind: str, logical: str, **more: Json) -> Json:
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": logical, **more}


def _tag_texts(kind: str, *texts: str) -> list[Json]:
    return [{kind: text} for text in texts]


_ENUM: Final = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
_RECORD: Final = {"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}]}

KINDS: Final[Mapping[str, tuple[Json, list[Json]]]] = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, 1, 5, -7, 16_777_217, 2**31 - 1, -(2**31)]),
    "long": ("long", [0, 1, 5, 2**31, 2**53 + 1, -(2**63), 1_704_164_645_678]),
    "float": ("float", _tag_texts("float", "0.0", "1.5", "0.1", "-3.4028235E38", "NaN", "Infinity")),
    "double": ("double", _tag_texts("double", "0.0", "1.5", "0.1", "1e300", "123456789012.25", "NaN", "-Infinity")),
    "string": (
        "string",
        [
            *("", "a", "5", "1.5", "A", "AQID", "true", "2024-01-02", "01:02:03", "2024-01-02T03:04:05Z"),
            *("2024-01-02T03:04:05", "00000000-0000-0001-0000-000000000002", "NaN"),
        ],
    ),
    "bytes": ("bytes", _tag_texts("bytes", "", "00", "010203", "ffffffff", "d76df8")),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, _tag_texts("bytes", "010203", "d76df8")),
    "enum": (_ENUM, _tag_texts("enum", "A", "B")),
    "array": ({"type": "array", "items": "int"}, [[], [1], [1, 2, 3], [2024, 1, 2]]),
    "map": ({"type": "map", "values": "int"}, [{"map": {}}, {"map": {"a": 1}}, {"map": {"b": 1}}]),
    "record": (_RECORD, [{"record": {"a": 1}}]),
    "decimal": (
        make_logical("bytes", "decimal", precision=20, scale=3),
        _tag_texts("decimal", "0.000", "1.500", "1.005", "12345678901234567.890", "5.000", "-7.000"),
    ),
    "date": (make_logical("int", "date"), _tag_texts("date", "2024-01-02", "1970-01-01")),
    "time-millis": (make_logical("int", "time-millis"), _tag_texts("time", "01:02:03.004", "00:00")),
    "time-micros": (make_logical("long", "time-micros"), _tag_texts("time", "01:02:03.004005", "00:00")),
    "timestamp-millis": (
        make_logical("long", "timestamp-millis"),
        _tag_texts("instant", "2024-01-02T03:04:05.678Z", "2024-01-02T03:04:05Z"),
    ),
    "timestamp-micros": (
        make_logical("long", "timestamp-micros"),
        _tag_texts("instant", "2024-01-02T03:04:05.678901Z", "2024-01-02T03:04:05Z"),
    ),
    "timestamp-nanos": (
        make_logical("long", "timestamp-nanos"),
        _tag_texts("instant", "2024-01-02T03:04:05.678901234Z", "2024-01-02T03:04:05Z"),
    ),
    "local-timestamp-millis": (
        make_logical("long", "local-timestamp-millis"),
        _tag_texts("local", "2024-01-02T03:04:05.678", "2024-01-02T03:04"),
    ),
    "local-timestamp-micros": (
        make_logical("long", "local-timestamp-micros"),
        _tag_texts("local", "2024-01-02T03:04:05.678901", "2024-01-02T03:04"),
    ),
    "local-timestamp-nanos": (
        make_logical("long", "local-timestamp-nanos"),
        _tag_texts("local", "2024-01-02T03:04:05.678901234", "2024-01-02T03:04"),
    ),
    "uuid": (make_logical("string", "uuid"), _tag_texts("uuid", "00000000-0000-0001-0000-000000000002")),
    "duration": (
        {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
        _tag_texts("bytes", "010000000200000003000000"),
    ),
    "BigDecimal": (
        {"type": "string", "java-class": "java.math.BigDecimal"},
        _tag_texts("decimal", "0", "1.50", "5", "12345678901234567.890"),
    ),
    "BigInteger": (
        {"type": "string", "java-class": "java.math.BigInteger"},
        _tag_texts("integer", "0", "5", "12345678901234567890"),
    ),
    "Character": ({"type": "int", "java-class": "java.lang.Character"}, [113, 53, 65]),
}
"""The kinds of types by name: a schema, and values that a producer of its class writes."""

READERS: Final[Mapping[str, Json]] = {
    **{name: schema for name, (schema, _) in KINDS.items()},
    "union": ["string", "int"],
}
"""The kinds of readers. A field of a union with several types is an Object in Java, and its value depends only on the message."""

NUMBERS: Final[Mapping[str, list[str]]] = {
    "date as number": ["19724", "0"],
    "time-millis as number": ["3723004"],
    "time-micros as number": ["3723004005"],
    "timestamp-millis as number": ["1704164645678"],
    "timestamp-micros as number": ["1704164645678901"],
    "local-timestamp-millis as number": ["1704164645678"],
}
"""Times as other clients write them: whole numbers in the unit of the type."""

_NUMBER_MEANINGS: Final[Mapping[str, list[Json]]] = {
    "date as number": _tag_texts("date", "2024-01-02", "1970-01-01"),
    "time-millis as number": _tag_texts("time", "01:02:03.004"),
    "time-micros as number": _tag_texts("time", "01:02:03.004005"),
    "timestamp-millis as number": _tag_texts("instant", "2024-01-02T03:04:05.678Z"),
    "timestamp-micros as number": _tag_texts("instant", "2024-01-02T03:04:05.678901Z"),
    "local-timestamp-millis as number": _tag_texts("local", "2024-01-02T03:04:05.678"),
}


def make_field(schema: Json, **more: Json) -> Json:
    """Make the field `f`."""
    return {"name": "f", "type": schema, **more}


_A: Final = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
_B: Final = {"type": "record", "name": "B", "fields": [{"name": "y", "type": "string"}]}

CASES: Final[Mapping[str, tuple[Json, Json, Json]]] = {
    "field removed": (make_field("int"), {"name": "g", "type": ["null", "int"], "default": None}, 5),
    "field renamed, alias, int": (make_field("int"), {"name": "g", "type": "int", "aliases": ["f"]}, 5),
    "field renamed, alias, default": (
        make_field("int"),
        {"name": "g", "type": "int", "aliases": ["f"], "default": 7},
        5,
    ),
    "field renamed, alias, string": (make_field("string"), {"name": "g", "type": "string", "aliases": ["f"]}, "a"),
    "field added, int, default 7": (make_field("int"), {"name": "g", "type": "int", "default": 7}, 5),
    "field added, string, default x": (make_field("int"), {"name": "g", "type": "string", "default": "x"}, 5),
    "field added, nullable": (make_field("int"), {"name": "g", "type": ["null", "int"], "default": None}, 5),
    "null in a nullable int, to int": (make_field(["null", "int"]), make_field("int"), None),
    "null in a nullable string, to string": (make_field(["null", "string"]), make_field("string"), None),
    "null, default 7": (make_field(["null", "int"]), make_field(["int", "null"], default=7), None),
    "int to nullable int": (make_field("int"), make_field(["null", "int"]), 5),
    "bytes to nullable bytes": (make_field("bytes"), make_field(["null", "bytes"]), {"bytes": "010203"}),
    "enum symbol removed": (make_field(_ENUM), make_field(_ENUM | {"symbols": ["A"]}), {"enum": "B"}),
    "enum symbol removed, default": (
        make_field(_ENUM),
        make_field(_ENUM | {"symbols": ["A"], "default": "A"}),
        {"enum": "B"},
    ),
    "enum symbol removed, nullable, default": (
        make_field(["null", _ENUM]),
        make_field(["null", _ENUM | {"symbols": ["A"], "default": "A"}]),
        {"enum": "B"},
    ),
    "enum symbols in another order": (make_field(_ENUM), make_field(_ENUM | {"symbols": ["B", "A"]}), {"enum": "B"}),
    "enum renamed": (make_field(_ENUM), make_field(_ENUM | {"name": "Other"}), {"enum": "B"}),
    "record renamed": (make_field(_RECORD), make_field(_RECORD | {"name": "Other"}), {"record": {"a": 1}}),
    "fixed of another size": (
        make_field(KINDS["fixed"][0]),
        make_field(KINDS["fixed"][0] | {"size": 4}),
        {"bytes": "010203"},
    ),
    "fixed to bytes": (make_field(KINDS["fixed"][0]), make_field("bytes"), {"bytes": "010203"}),
    "decimal, fewer digits after the point": (
        make_field(make_logical("bytes", "decimal", precision=9, scale=3)),
        make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        {"decimal": "1.005"},
    ),
    "decimal, more digits after the point": (
        make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        make_field(make_logical("bytes", "decimal", precision=10, scale=3)),
        {"decimal": "1.25"},
    ),
    "decimal, fewer digits": (
        make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        make_field(make_logical("bytes", "decimal", precision=4, scale=2)),
        {"decimal": "1234567.89"},
    ),
    "bytes to string or bytes": (make_field("bytes"), make_field(["string", "bytes"]), {"bytes": "010203"}),
    "int to string or int": (make_field("int"), make_field(["string", "int"]), 5),
    "float to string or float": (make_field("float"), make_field(["string", "float"]), {"float": "0.1"}),
    "enum to string or enum": (make_field(_ENUM), make_field(["string", _ENUM]), {"enum": "B"}),
    "decimal to string or decimal": (
        make_field(KINDS["decimal"][0]),
        make_field(["string", KINDS["decimal"][0]]),
        {"decimal": "12345678901234567.890"},
    ),
    "timestamp-millis to string or timestamp-millis": (
        make_field(KINDS["timestamp-millis"][0]),
        make_field(["string", KINDS["timestamp-millis"][0]]),
        {"instant": "2024-01-02T03:04:05.678Z"},
    ),
    "record to one of two records": (make_field(_A), make_field([_A, _B]), {"record": {"x": 1}}),
    "int or string to string or int": (make_field(["int", "string"]), make_field(["string", "int"]), 5),
    "items: bytes to string": (
        make_field({"type": "array", "items": "bytes"}),
        make_field({"type": "array", "items": "string"}),
        [{"bytes": "010203"}],
    ),
    "values: int to long": (
        make_field({"type": "map", "values": "int"}),
        make_field({"type": "map", "values": "long"}),
        {"map": {"a": 1}},
    ),
    "null in a map": (
        make_field({"type": "map", "values": ["null", "int"]}),
        make_field({"type": "map", "values": ["null", "int"]}),
        {"map": {"a": None}},
    ),
}
"""Further changes by name: the field of the writer, the field of the reader, and the value that is written."""


def measure(client: JavaClient) -> dict[str, Any]:
    """Return the results of a running client: outcomes by writer and reader, and the values that the readers of `CASES` get."""
    classes = JavaClasses()
    writer_names = {name: classes.add_record({"fields": [make_field(schema)]}) for name, (schema, _) in KINDS.items()}
    reader_names = {name: classes.add_record({"fields": [make_field(schema)]}) for name, schema in READERS.items()}
    case_names = {
        name: (classes.add_record({"fields": [writer]}), classes.add_record({"fields": [reader]}))
        for name, (writer, reader, _) in CASES.items()
    }
    client.compile(classes.source)

    outcomes: Outcomes = {}
    for name, (schema, values) in KINDS.items():
        payloads = [client.write(writer_names[name], {"record": {"f": value}}) for value in values]
        outcomes[name] = _sort_readers(client, reader_names, schema, list(zip(values, payloads, strict=True)))
    for name, texts in NUMBERS.items():
        schema = KINDS[name.removesuffix(" as number")][0]
        messages = [(value, f'{{"f":{text}}}') for value, text in zip(_NUMBER_MEANINGS[name], texts, strict=True)]
        outcomes[name] = _sort_readers(client, reader_names, schema, messages)

    cases: dict[str, dict[str, Json]] = {}
    for name, (_, reader, value) in CASES.items():
        payload = client.write(case_names[name][0], {"record": {"f": value}})
        result = client.ask({"read": case_names[name][1], "payload": payload})
        generic = client.ask({"generic": _define(reader), "payload": payload})
        cases[name] = {
            "message": payload,
            "class": result["value"]["record"][reader["name"]] if "value" in result else result["throws"],
            "generic": generic["value"]["record"][reader["name"]],
        }
    return {"outcomes": outcomes, "cases": cases}


def _sort_readers(
    client: JavaClient, reader_names: Mapping[str, str], writer_schema: Json, messages: Iterable[tuple[Json, str]]
) -> dict[str, list[str]]:
    """Return the names of the readers by the worst outcome over the values and payloads."""
    messages = list(messages)
    readers_by_outcome: dict[str, list[str]] = {}
    for reader, class_name in reader_names.items():
        worst = 0
        for value, payload in messages:
            answer = client.ask({"read": class_name, "payload": payload})
            outcome = compare(value, answer["value"]["record"]["f"]) if "value" in answer else "throws"
            worst = max(worst, OUTCOMES.index(outcome))
            # A GenericRecord has the value of the JSON, in which only the schema's bytes make a difference.
            own, other = (
                client.ask({"generic": _define(make_field(schema)), "payload": payload})
                for schema in (writer_schema, READERS[reader])
            )
            if own != other:
                worst = max(worst, OUTCOMES.index("throws" if "throws" in other else "changed"))
        readers_by_outcome.setdefault(OUTCOMES[worst], []).append(reader)
    return {outcome: readers_by_outcome[outcome] for outcome in OUTCOMES if outcome in readers_by_outcome}


def _define(field: Json) -> str:
    return json.dumps({"type": "record", "name": "Shape", "fields": [field]})


def compare(written: Json, read: Json) -> str:
    """Return the outcome for two neutral values: kept, rounded, null or changed."""
    if is_equal(written, read):
        return "kept"
    if read is None:
        return "null"
    number = _to_number(written)
    if isinstance(number, Decimal) and isinstance(read, dict) and read.keys() <= {"float", "double"}:
        (kind,) = read
        return "rounded" if _round(number, kind) == _round(Decimal(read[kind]), kind) else "changed"
    return "changed"


def _round(number: Decimal, kind: str) -> float:
    if kind == "double":
        return float(number)
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(number)))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def is_equal(written: Json, read: Json) -> bool:
    """Return whether a neutral value is the same number, text, bytes, time, list, or set of fields.

    Fields that the reader lacks are ignored; a double that has the digits of the float that was written is equal.
    """
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(is_equal, written, read))
    if isinstance(written, dict) and isinstance(read, dict) and {*written, *read} <= {"map", "record"}:
        (written_fields,), (read_fields,) = written.values(), read.values()
        if "map" in written and "map" in read and written_fields.keys() != read_fields.keys():
            return False
        return all(is_equal(written_fields.get(name), field) for name, field in read_fields.items())
    written_number, read_number = _to_number(written), _to_number(read)
    if written_number is not None and read_number is not None:
        return written_number == read_number
    texts = [
        next(iter(value.values())) if isinstance(value, dict) and value.keys() <= {"enum", "uuid"} else value
        for value in (written, read)
    ]
    return type(texts[0]) is type(texts[1]) and texts[0] == texts[1]


def _to_number(value: Json) -> Decimal | str | None:
    """Return a number; NaN and infinities as text, so that NaN is equal to itself; None for other values."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, dict) and value.keys() <= {"float", "double", "decimal", "integer"}:
        (text,) = value.values()
        return str(text) if text in ("NaN", "Infinity", "-Infinity") else Decimal(text)
    return None


# The files


def render_page(measured: Mapping[str, Any]) -> str:
    """Return the page with the tables of a measurement."""
    text = PAGE.read_text()
    outcomes: Outcomes = measured["outcomes"]
    rows = [
        "| written | read as the same value by | rounded by | read as another value or null by | throws in |",
        "|---|---|---|---|---|",
    ]
    for writer, readers in outcomes.items():
        same, rounded, throws = (", ".join(readers.get(outcome, [])) for outcome in ("kept", "rounded", "throws"))
        other_values = ", ".join([*readers.get("changed", []), *readers.get("null", [])])
        rows.append(f"| {writer} | {same} | {rounded} | {other_values} | {throws} |")
    text = _replace_section(text, "types", rows)
    rows = ["| change | message | class | GenericRecord |", "|---|---|---|---|"]
    for name, case in measured["cases"].items():
        result, generic = (
            f"throws {value}" if isinstance(value, str) and value.endswith("Exception") else f"`{json.dumps(value)}`"
            for value in (case["class"], case["generic"])
        )
        rows.append(f"| {name} | `{case['message']}` | {result} | {generic} |")
    return _replace_section(text, "changes", rows)


def _replace_section(text: str, name: str, rows: Iterable[str]) -> str:
    body = "\n".join(rows)
    return re.sub(
        rf"(?s)(<!-- {name}: measured -->\n).*?(\n<!-- end -->)", lambda match: f"{match[1]}\n{body}\n{match[2]}", text
    )


def main(folders: Iterable[str]) -> None:
    """Measure with the jars of each folder, and write the files if the results are the same."""
    measurements = []
    for folder in folders:
        with start_client(Path(folder)) as client:
            measurements.append(measure(client))
    first, *others = measurements
    if any(other != first for other in others):
        sys.exit("the releases differ")
    RECORDED.write_text(yaml.safe_dump(first, sort_keys=False, width=150, allow_unicode=True, default_flow_style=None))
    PAGE.write_text(render_page(first))


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_java_client_reads_as_recorded(release: str) -> None:
    with start_client(brokers.find_jars(brokers.VERSIONS[release])) as client:
        assert measure(client) == MEASURED


def test_page_has_the_recorded_results() -> None:
    assert render_page(MEASURED) == PAGE.read_text()


def _name_kind(name: str) -> str:
    """Return the kind of the rules for a kind of the table."""
    is_time = name.startswith(("time", "local"))
    return {"duration": "fixed"}.get(name, name.rpartition("-")[0] if is_time else name)


def test_rules_equal_the_table() -> None:
    readers_by_writer: dict[str, set[str]] = {}
    for writer in KINDS:
        outcomes = MEASURED["outcomes"][writer]
        readers = {_name_kind(reader) for outcome in ("kept", "rounded") for reader in outcomes.get(outcome, [])}
        # Every unit has the same results.
        assert readers_by_writer.setdefault(_name_kind(writer), readers) == readers
    in_union = {writer for writer, readers in readers_by_writer.items() if "union" in readers}
    # A decimal is rounded to a double, which keeps 15 digits.
    assert in_union - {"decimal", "BigDecimal"} == KEPT_IN_UNION - {"null"}
    # A date that is written as a number of days is read as that date.
    assert "date" in MEASURED["outcomes"]["date as number"]["kept"]
    readers_by_writer["int"].add("date")
    assert {writer: readers - {"union"} for writer, readers in readers_by_writer.items()} == {
        writer: {*readers} for writer, readers in KEPT.items() if writer != "null"
    }


def make_info(*fields: Json, name: str = "Order") -> SchemaInfo:
    """Make the JSON schema of a record."""
    return SchemaInfo(SchemaType.JSON, json.dumps({"type": "record", "name": name, "fields": fields}).encode())


def make_enum(*symbols: str, **more: Json) -> Json:
    """Make an enum."""
    return {"type": "enum", "name": "Kind", "symbols": symbols, **more}


def make_decimal(precision: int, scale: int) -> Json:
    """Make a decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def make_record(name: str, **types: Json) -> Json:
    """Make a record with these fields."""
    return {"type": "record", "name": name, "fields": [{"name": key, "type": value} for key, value in types.items()]}


def list_errors(*, reader: SchemaInfo, writer: SchemaInfo) -> list[Incompatibility]:
    """Return the misreadings that are errors."""
    return [misreading for misreading in find_misreadings(reader=reader, writer=writer) if misreading.is_error]


INT = make_field("int")
RENAMED = {"name": "g", "type": "int", "aliases": ["f"]}

UNREADABLE: dict[str, tuple[list[Json], list[Json], str]] = {
    "alias": ([INT], [RENAMED], "/fields/0"),
    "alias and default": ([INT], [RENAMED | {"default": 7}], "/fields/0"),
    "alias, old name kept, no default": ([INT], [INT, RENAMED], "/fields/1"),
    "alias in an item": (
        [make_field({"type": "array", "items": make_record("Line", a="int")})],
        [
            make_field(
                {
                    "type": "array",
                    "items": make_record("Line") | {"fields": [{"name": "b", "type": "int", "aliases": ["a"]}]},
                }
            )
        ],
        "/fields/0/type/items/fields/0",
    ),
    "bytes to string": ([make_field("bytes")], [make_field("string")], "/fields/0/type"),
    "string to bytes": ([make_field("string")], [make_field("bytes")], "/fields/0/type"),
    "string to nullable bytes": ([make_field("string")], [make_field(["null", "bytes"])], "/fields/0/type/1"),
    "values: string to bytes": (
        [make_field({"type": "map", "values": "string"})],
        [make_field({"type": "map", "values": "bytes"})],
        "/fields/0/type/values",
    ),
    "bytes to decimal": ([make_field("bytes")], [make_field(make_decimal(9, 2))], "/fields/0/type"),
    "decimal to bytes": ([make_field(make_decimal(9, 2))], [make_field("bytes")], "/fields/0/type"),
    "smaller scale": ([make_field(make_decimal(9, 3))], [make_field(make_decimal(9, 2))], "/fields/0/type"),
    "fewer digits": ([make_field(make_decimal(9, 2))], [make_field(make_decimal(5, 2))], "/fields/0/type"),
    "larger scale, fewer digits before the point": (
        [make_field(make_decimal(9, 2))],
        [make_field(make_decimal(9, 4))],
        "/fields/0/type",
    ),
    "symbol removed, default": (
        [make_field(make_enum("A", "B"))],
        [make_field(make_enum("A", default="A"))],
        "/fields/0/type/symbols",
    ),
    "symbol removed in a union": (
        [make_field(["null", make_enum("A", "B")])],
        [make_field(["null", make_enum("A", default="A")])],
        "/fields/0/type/1/symbols",
    ),
    "long to timestamp": (
        [make_field("long")],
        [make_field({"type": "long", "logicalType": "timestamp-millis"})],
        "/fields/0/type",
    ),
    "string to uuid": (
        [make_field("string")],
        [make_field({"type": "string", "logicalType": "uuid"})],
        "/fields/0/type",
    ),
    "BigDecimal to string": (
        [make_field({"type": "string", "java-class": "java.math.BigDecimal"})],
        [make_field("string")],
        "/fields/0/type",
    ),
    "string to BigDecimal": (
        [make_field("string")],
        [make_field({"type": "string", "java-class": "java.math.BigDecimal"})],
        "/fields/0/type",
    ),
    "bytes to a union with string": ([make_field("bytes")], [make_field(["string", "bytes"])], "/fields/0/type/1"),
    "items of bytes to a union": (
        [make_field({"type": "array", "items": "bytes"})],
        [make_field(["string", {"type": "array", "items": "bytes"}])],
        "/fields/0/type/1/items",
    ),
    "float to a union with string": ([make_field("float")], [make_field(["float", "string"])], "/fields/0/type/0"),
    "long decimal to a union": (
        [make_field(make_decimal(20, 2))],
        [make_field([make_decimal(20, 2), "string"])],
        "/fields/0/type/0",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_value_that_a_reader_does_not_get_is_an_error(name: str) -> None:
    writer_fields, reader_fields, pointer = UNREADABLE[name]
    writer, reader = make_info(*writer_fields), make_info(*reader_fields)
    assert [*resolve(reader=reader, writer=writer)] == []
    assert [(error.rule, error.pointer) for error in list_errors(reader=reader, writer=writer)] == [
        ("JSON_UNREADABLE", pointer)
    ]
    # AVRO is judged by its own rules.
    assert "JSON_UNREADABLE" not in {
        error.rule for error in list_errors(reader=to_avro(reader), writer=to_avro(writer))
    }
    # The same schema on both sides has no misreading.
    assert list_errors(reader=reader, writer=reader) == []


def to_avro(info: SchemaInfo) -> SchemaInfo:
    """Return the same definition as AVRO."""
    return SchemaInfo(SchemaType.AVRO, info.schema)


KEPT_CHANGES: dict[str, tuple[list[Json], list[Json]]] = {
    "field removed": ([INT, {"name": "g", "type": "string"}], [INT]),
    "optional field added": ([INT], [INT, {"name": "g", "type": ["null", "string"], "default": None}]),
    "field added with a default": ([INT], [INT, {"name": "g", "type": "string", "default": "x"}]),
    "old field kept next to the new one": ([INT], [INT, RENAMED | {"type": ["null", "int"], "default": None}]),
    "alias of a field that the writer lacks": (
        [INT],
        [INT, {"name": "g", "type": "int", "default": 1, "aliases": ["h"]}],
    ),
    "int to long": ([INT], [make_field("long")]),
    "int to double": ([INT], [make_field("double")]),
    "float to double": ([make_field("float")], [make_field("double")]),
    "int to nullable int": ([INT], [make_field(["null", "int"])]),
    "int to a union": ([INT], [make_field(["string", "int"])]),
    "null first to null last": ([make_field(["null", "int"])], [make_field(["int", "null"])]),
    "branches in another order": ([make_field(["string", "int"])], [make_field(["int", "string"])]),
    "branch added to a union with bytes": ([make_field(["bytes", "int"])], [make_field(["bytes", "int", "boolean"])]),
    "symbol added": ([make_field(make_enum("A"))], [make_field(make_enum("A", "B"))]),
    "symbols in another order": ([make_field(make_enum("A", "B"))], [make_field(make_enum("B", "A"))]),
    "more digits": ([make_field(make_decimal(9, 2))], [make_field(make_decimal(12, 3))]),
    "record to one of two": (
        [make_field(make_record("A", x="int"))],
        [make_field([make_record("A", x="int"), make_record("B", y="string")])],
    ),
}


@pytest.mark.parametrize("name", KEPT_CHANGES)
def test_value_that_every_reader_gets_has_no_finding(name: str) -> None:
    writer, reader = (make_info(*fields) for fields in KEPT_CHANGES[name])
    assert [*resolve(reader=reader, writer=writer)] == []
    assert list_errors(reader=reader, writer=writer) == []


def test_recursive_record_is_compared_once() -> None:
    next_node = {"name": "next", "type": ["null", "Order"], "default": None}
    writer, reader = make_info(make_field("bytes"), next_node), make_info(make_field("string"), next_node)
    assert [error.pointer for error in list_errors(reader=reader, writer=writer)] == ["/fields/0/type"]


def test_incompatibilities_of_avro_are_not_repeated() -> None:
    for writer, reader in (("int", "string"), ("string", make_enum("A")), ("boolean", "int"), ("long", "int")):
        assert list_errors(reader=make_info(make_field(reader)), writer=make_info(make_field(writer))) == []


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("direction", ["new_reads_old", "old_reads_new"])
def test_explanation_and_fix(name: str, direction: Any) -> None:
    writer_fields, reader_fields, _ = UNREADABLE[name]
    writer, reader = make_info(*writer_fields), make_info(*reader_fields)
    (error,) = list_errors(reader=reader, writer=writer)
    new, old = (reader, writer) if direction == "new_reads_old" else (writer, reader)
    explanation = explain(Breakage(error, direction, 3), new=new, old=old)
    assert explanation.field.startswith("Order.")
    assert explanation.field in explanation.reason
    assert ("version 3" in explanation.reason) == (direction == "old_reads_new")
    assert explanation.fix.startswith(("keep ", "list ", "make "))


def test_fix_of_a_rename_has_no_finding() -> None:
    writer = make_info(make_field({"type": "long", "logicalType": "timestamp-millis"}))
    reader = make_info(make_field({"type": "long", "logicalType": "timestamp-millis"}, name="g", aliases=["f"]))
    (error,) = list_errors(reader=reader, writer=writer)
    fix = explain(Breakage(error, "new_reads_old", 0), new=reader, old=writer).fix
    added_field = json.loads(fix[fix.index("{") : fix.rindex("}") + 1])
    old_field = json.loads(writer.schema)["fields"][0]
    assert list_errors(reader=make_info(old_field, added_field), writer=writer) == []


def prove(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Counterexample]:
    """Yield the counterexamples of all values that readers of JSON do not get."""
    for error in list_errors(reader=reader, writer=writer):
        if error.rule != JSON_UNREADABLE:
            continue
        proof = counterexample(Breakage(error, "new_reads_old", 0), new=reader, old=writer)
        assert proof is not None
        assert proof.data == proof.message.encode()
        yield proof


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (make_field(make_decimal(2**31 - 1, 2**31 - 1)), make_field(make_decimal(9, 2))),
        (make_field(make_decimal(2**31 - 1, 2)), make_field(make_decimal(9, 2))),
        (
            make_field(make_record("Inner", f="bytes", other=make_decimal(2**31 - 1, 2**31 - 1))),
            make_field(make_record("Inner", f="string", other=make_decimal(2**31 - 1, 2**31 - 1))),
        ),
        (make_field(make_record("Inner", f="bytes", next="Order")), make_field(make_record("Inner", f="string"))),
        (
            make_field({"type": "fixed", "name": "F", "size": 10**6}),
            RENAMED | {"type": ["null", "bytes"], "default": None},
        ),
    ],
)
def test_message_of_a_counterexample_is_small(writer: Json, reader: Json) -> None:
    new, old = make_info(reader), make_info(writer)
    (error,) = list_errors(reader=new, writer=old)
    proof = counterexample(Breakage(error, "new_reads_old", 0), new=new, old=old)
    assert proof is None or len(proof.message) < 2_000
    assert explain(Breakage(error, "new_reads_old", 0), new=new, old=old).fix


def test_unions_of_thousands_of_branches_are_judged() -> None:
    writer, reader = (
        make_info(make_field([make_record(f"R{number}", f="int") | extra for number in range(3_000)]))
        for extra in ({}, {"aliases": ["Old"]})
    )
    assert list_errors(reader=reader, writer=writer) == []


@pytest.mark.broker
def test_java_client_fails_on_the_counterexamples() -> None:
    classes = JavaClasses()
    pairs: list[tuple[SchemaInfo, SchemaInfo, str, str]] = []
    changes = [
        ([make_field(writer)], [make_field(reader)]) for (writer, _), (reader, _) in product(KINDS.values(), repeat=2)
    ]
    changes += [(writer, reader) for writer, reader, _ in UNREADABLE.values()]
    for writer_fields, reader_fields in changes:
        writer, reader = make_info(*writer_fields), make_info(*reader_fields)
        if not [*resolve(reader=reader, writer=writer)]:
            writer_name, reader_name = (
                classes.add_record({"fields": fields}) for fields in (writer_fields, reader_fields)
            )
            pairs.append((writer, reader, writer_name, reader_name))
    with start_client(brokers.find_jars()) as client:
        client.compile(classes.source)
        for writer, reader, writer_name, reader_name in pairs:
            for proof in prove(reader=reader, writer=writer):
                written = client.ask({"read": writer_name, "payload": proof.message})
                assert "value" in written, (proof, written)
                answer = client.ask({"read": reader_name, "payload": proof.message})
                name, _, rest = proof.result.partition(": ")
                if "throws" in answer:
                    assert (answer["throws"], bool(rest)) == (name, True), (proof, answer)
                elif "does not fit" in proof.result or "has no default" in proof.result:
                    # Java's BigDecimal has any number of digits, and a primitive field is 0.
                    continue
                else:
                    assert not name.endswith("Exception"), (proof, answer)
                    assert compare(written["value"], answer["value"]) == "changed", (proof, answer)


# Random pairs of schemas, and random messages


@dataclass(frozen=True)
class Pair:
    """Two schemas, and a value that is written with the first."""

    writer: Json
    reader: Json
    value: Any

    @property
    def has_finding(self) -> bool:
        """Whether the reader is said to fail on messages of the writer, or to get other values."""
        infos = {
            side: SchemaInfo(SchemaType.JSON, json.dumps(schema).encode())
            for side, schema in (("reader", self.reader), ("writer", self.writer))
        }
        return any(True for _ in chain(resolve(**infos), find_misreadings(**infos)))


def list_pairs(seed: int) -> list[Pair]:
    """Return two random schemas, each as the writer, without pairs that no parser accepts."""
    maker = Maker(seed)
    schema = maker.record()
    evolved = vary_digits(maker.evolve_schema(schema), maker)
    return [Pair(writer, reader, maker.draw_value(writer)) for writer, reader in ((schema, evolved), (evolved, schema))]


def vary_digits(schema: Json, maker: Maker) -> Json:
    """Return the schema with other digits in some decimals."""
    if isinstance(schema, list):
        return [vary_digits(item, maker) for item in schema]
    if not isinstance(schema, dict):
        return schema
    varied = {key: vary_digits(value, maker) if key != "default" else value for key, value in schema.items()}
    if schema.get("logicalType") == "decimal" and schema["type"] == "bytes" and maker.random.random() < 0.3:
        varied |= {
            "precision": schema["precision"] + maker.random.choice((-1, 2)),
            "scale": schema["scale"] + maker.random.choice((-1, 0, 1)),
        }
    return varied


def make_codec(schema: Json) -> Codec:
    """Make the codec of a JSON schema."""
    return Codec([Version(0, Definition("JSON", json.dumps(schema)))])


def is_same(written: Any, read: Any) -> bool:
    """Return whether a decoded value is the same; fields that one side lacks are ignored, and so is the branch of a union."""
    written, read = unwrap(written), unwrap(read)
    if isinstance(written, dict) and isinstance(read, dict):
        return all(is_same(written[name], value) for name, value in read.items() if name in written)
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(is_same, written, read))
    if {type(written), type(read)} <= {int, float}:
        # A float that is read as a double has the digits that were written.
        return bool(written == read or np.float32(written) == np.float32(read) or (written != written and read != read))  # noqa: PLR0124  NaN
    return type(written) is type(read) and bool(written == read)


def unwrap(value: Any) -> Any:
    """Return the branch of a union of several types that has the value."""
    if isinstance(value, dict) and value and all(name.startswith("member") for name in value):
        return next((member for member in value.values() if member is not None), None)
    return value


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_codec_reads_the_written_value_or_there_is_a_finding(seed: int) -> None:
    for pair in list_pairs(seed):
        if pair.has_finding:
            continue
        writer, reader = (make_codec(schema) for schema in (pair.writer, pair.reader))
        payload = writer.encode_one(pair.value)
        # The branches of some unions look alike in JSON, and even the writer's schema reads another one.
        if is_same(pair.value, writer.decode_one(payload)):
            assert is_same(pair.value, reader.decode_one(payload)), payload


@pytest.mark.broker
def test_java_client_and_codec_read_the_value_that_java_wrote_or_there_is_a_finding() -> None:
    compared_pairs = 0
    with start_client(brokers.find_jars()) as client:
        for first_seed in range(0, EXAMPLES.max_examples * 10, 250):
            classes = JavaClasses()
            pairs = [
                (pair, classes.add_record(pair.writer), classes.add_record(pair.reader))
                for seed in range(first_seed, first_seed + 250)
                for pair in list_pairs(seed)
                if not pair.has_finding
            ]
            client.compile(classes.source)
            compared_pairs += sum(is_kept_by_java(client, *pair) for pair in pairs)
    assert compared_pairs > EXAMPLES.max_examples


def is_kept_by_java(client: JavaClient, pair: Pair, writer_name: str, reader_name: str) -> bool:
    """Return whether Java's classes of both schemas and the codec read what Java writes; False if even the writer's class does not."""
    value = to_neutral(pair.writer, pair.value)
    payload = client.write(writer_name, value)
    own_answer = client.ask({"read": writer_name, "payload": payload})
    if "value" not in own_answer or not is_equal(value, own_answer["value"]):
        return False
    decoded = make_codec(pair.writer).decode_one(payload.encode())
    assert is_equal(value, to_neutral(pair.writer, decoded)), (pair, payload, decoded)
    answer = client.ask({"read": reader_name, "payload": payload})
    assert "value" in answer, (pair, payload, answer)
    assert is_equal(keep_known_fields(value, answer["value"]), answer["value"]), (pair, payload, answer)
    return True


def keep_known_fields(written: Json, read: Json) -> Json:
    """Return the written neutral value with the reader's value in fields that the writer lacks."""
    if isinstance(written, list) and isinstance(read, list):
        return [keep_known_fields(*items) for items in zip(written, read, strict=False)] + written[len(read) :]
    if isinstance(written, dict) and isinstance(read, dict) and "record" in written and {*read} <= {"map", "record"}:
        (read_fields,) = read.values()
        fields = written["record"]
        return {
            "record": {
                name: keep_known_fields(fields[name], item) if name in fields else item
                for name, item in read_fields.items()
            }
        }
    if isinstance(written, dict) and isinstance(read, dict) and "map" in written and {*read} == {"map"}:
        entries = read["map"]
        return {"map": {name: keep_known_fields(item, entries.get(name)) for name, item in written["map"].items()}}
    return written


def to_neutral(schema: Json, value: Any) -> Json:
    """Return a value of the codec as Java and Python exchange it."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if value is None:
            return None
        if len(branches) == 1:
            return to_neutral(branches[0], value)
        members = (
            to_neutral(branch, value[f"member{index}"])
            for index, branch in enumerate(branches)
            if value[f"member{index}"] is not None
        )
        return next(members, None)
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    match kind, value:
        case "record", _:
            return {
                "record": {field["name"]: to_neutral(field["type"], value[field["name"]]) for field in schema["fields"]}
            }
        case "array", _:
            return [to_neutral(schema["items"], item) for item in value]
        case "map", _:
            return {"map": {key: to_neutral(schema["values"], item) for key, item in value.items()}}
        case "enum", _:
            return {"enum": value}
        case (("float" | "double"), _):
            return {kind: {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))}
        case _, bytes():
            return {"bytes": value.hex()}
        case _, Decimal():
            return {"decimal": format(value, "f")}
        case _, datetime():
            return {
                "instant" if value.tzinfo else "local": value.replace(tzinfo=None).isoformat()
                + ("Z" if value.tzinfo else "")
            }
        case _, date():
            return {"date": value.isoformat()}
    match logical:
        case "uuid":
            return {"uuid": "00000000-0000-0001-0000-000000000002"}
        case "time-millis" | "time-micros":
            units = 10**3 if logical == "time-millis" else 10**6
            number = value if isinstance(value, int) else value // timedelta(microseconds=1)
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
                microseconds=number % (86_400 * units) * 10**6 // units
            )
            return {"time": moment.time().isoformat()}
        case "timestamp-nanos" | "local-timestamp-nanos":
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value // 1000)
            text = moment.replace(tzinfo=None).isoformat()
            return {"instant": f"{text}Z"} if logical == "timestamp-nanos" else {"local": text}
    return value


if __name__ == "__main__":
    main(sys.argv[1:])
