"""Measure what Pulsar's Java client reads from JSON messages after a field has changed its type.

    PYTHONPATH=tests:tests/formats python tests/formats/json_reader_table.py FOLDER_OF_JARS...

writes json_readers.yaml next to this file, and the tables of docs/reference/json-readers.md. A reader is a class of the reader's
schema, or a GenericRecord; the worse result counts. Classes have the types that Java developers use (`JavaClasses`).
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml
from java_json import JavaClasses, JavaClient, start_client

Json = Any
Outcomes = dict[str, dict[str, list[str]]]

RECORDED: Final = Path(__file__).parent / "json_readers.yaml"
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


def _make_field(schema: Json, **more: Json) -> Json:
    return {"name": "f", "type": schema, **more}


_A: Final = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
_B: Final = {"type": "record", "name": "B", "fields": [{"name": "y", "type": "string"}]}

CASES: Final[Mapping[str, tuple[Json, Json, Json]]] = {
    "field removed": (_make_field("int"), {"name": "g", "type": ["null", "int"], "default": None}, 5),
    "field renamed, alias, int": (_make_field("int"), {"name": "g", "type": "int", "aliases": ["f"]}, 5),
    "field renamed, alias, default": (
        _make_field("int"),
        {"name": "g", "type": "int", "aliases": ["f"], "default": 7},
        5,
    ),
    "field renamed, alias, string": (_make_field("string"), {"name": "g", "type": "string", "aliases": ["f"]}, "a"),
    "field added, int, default 7": (_make_field("int"), {"name": "g", "type": "int", "default": 7}, 5),
    "field added, string, default x": (_make_field("int"), {"name": "g", "type": "string", "default": "x"}, 5),
    "field added, nullable": (_make_field("int"), {"name": "g", "type": ["null", "int"], "default": None}, 5),
    "null in a nullable int, to int": (_make_field(["null", "int"]), _make_field("int"), None),
    "null in a nullable string, to string": (_make_field(["null", "string"]), _make_field("string"), None),
    "null, default 7": (_make_field(["null", "int"]), _make_field(["int", "null"], default=7), None),
    "int to nullable int": (_make_field("int"), _make_field(["null", "int"]), 5),
    "bytes to nullable bytes": (_make_field("bytes"), _make_field(["null", "bytes"]), {"bytes": "010203"}),
    "enum symbol removed": (_make_field(_ENUM), _make_field(_ENUM | {"symbols": ["A"]}), {"enum": "B"}),
    "enum symbol removed, default": (
        _make_field(_ENUM),
        _make_field(_ENUM | {"symbols": ["A"], "default": "A"}),
        {"enum": "B"},
    ),
    "enum symbol removed, nullable, default": (
        _make_field(["null", _ENUM]),
        _make_field(["null", _ENUM | {"symbols": ["A"], "default": "A"}]),
        {"enum": "B"},
    ),
    "enum symbols in another order": (_make_field(_ENUM), _make_field(_ENUM | {"symbols": ["B", "A"]}), {"enum": "B"}),
    "enum renamed": (_make_field(_ENUM), _make_field(_ENUM | {"name": "Other"}), {"enum": "B"}),
    "record renamed": (_make_field(_RECORD), _make_field(_RECORD | {"name": "Other"}), {"record": {"a": 1}}),
    "fixed of another size": (
        _make_field(KINDS["fixed"][0]),
        _make_field(KINDS["fixed"][0] | {"size": 4}),
        {"bytes": "010203"},
    ),
    "fixed to bytes": (_make_field(KINDS["fixed"][0]), _make_field("bytes"), {"bytes": "010203"}),
    "decimal, fewer digits after the point": (
        _make_field(make_logical("bytes", "decimal", precision=9, scale=3)),
        _make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        {"decimal": "1.005"},
    ),
    "decimal, more digits after the point": (
        _make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        _make_field(make_logical("bytes", "decimal", precision=10, scale=3)),
        {"decimal": "1.25"},
    ),
    "decimal, fewer digits": (
        _make_field(make_logical("bytes", "decimal", precision=9, scale=2)),
        _make_field(make_logical("bytes", "decimal", precision=4, scale=2)),
        {"decimal": "1234567.89"},
    ),
    "bytes to string or bytes": (_make_field("bytes"), _make_field(["string", "bytes"]), {"bytes": "010203"}),
    "int to string or int": (_make_field("int"), _make_field(["string", "int"]), 5),
    "float to string or float": (_make_field("float"), _make_field(["string", "float"]), {"float": "0.1"}),
    "enum to string or enum": (_make_field(_ENUM), _make_field(["string", _ENUM]), {"enum": "B"}),
    "decimal to string or decimal": (
        _make_field(KINDS["decimal"][0]),
        _make_field(["string", KINDS["decimal"][0]]),
        {"decimal": "12345678901234567.890"},
    ),
    "timestamp-millis to string or timestamp-millis": (
        _make_field(KINDS["timestamp-millis"][0]),
        _make_field(["string", KINDS["timestamp-millis"][0]]),
        {"instant": "2024-01-02T03:04:05.678Z"},
    ),
    "record to one of two records": (_make_field(_A), _make_field([_A, _B]), {"record": {"x": 1}}),
    "int or string to string or int": (_make_field(["int", "string"]), _make_field(["string", "int"]), 5),
    "items: bytes to string": (
        _make_field({"type": "array", "items": "bytes"}),
        _make_field({"type": "array", "items": "string"}),
        [{"bytes": "010203"}],
    ),
    "values: int to long": (
        _make_field({"type": "map", "values": "int"}),
        _make_field({"type": "map", "values": "long"}),
        {"map": {"a": 1}},
    ),
    "null in a map": (
        _make_field({"type": "map", "values": ["null", "int"]}),
        _make_field({"type": "map", "values": ["null", "int"]}),
        {"map": {"a": None}},
    ),
}
"""Further changes by name: the field of the writer, the field of the reader, and the value that is written."""


def measure(client: JavaClient) -> dict[str, Any]:
    """Return the results of a running client: outcomes by writer and reader, and the values that the readers of `CASES` get."""
    classes = JavaClasses()
    writer_names = {name: classes.add_record({"fields": [_make_field(schema)]}) for name, (schema, _) in KINDS.items()}
    reader_names = {name: classes.add_record({"fields": [_make_field(schema)]}) for name, schema in READERS.items()}
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
                client.ask({"generic": _define(_make_field(schema)), "payload": payload})
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


if __name__ == "__main__":
    main(sys.argv[1:])
