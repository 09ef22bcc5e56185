"""Measure what Pulsar's Go and Python clients read from AVRO and JSON messages after a field has changed its type.

    PYTHONPATH=tests:tests/formats python tests/formats/language_reader_table.py

writes language_readers.yaml next to this file. A Go reader has the struct that avrogen derives from the reader's definition, a Python
reader of JSON a `Record`, and one of AVRO the definition itself. Messages of AVRO are written by fastavro, of JSON by the codec.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import fastavro
import pytest
import yaml

from schemactl.codec import Codec, Definition, Version

Json = Any

RECORDED: Final = Path(__file__).parent / "language_readers.yaml"
PROGRAM: Final = Path(__file__).parent / "go_client"

OUTCOMES: Final = ("kept", "changed", "throws")
"""From the best to the worst."""


def make_logical(kind: str, logical: str, **more: Json) -> Json:
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": logical, **more}


_ENUM: Final = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
_FIXED: Final = {"type": "fixed", "name": "F", "size": 3}
_RECORD: Final = {"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}]}
_MOMENT: Final = datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
_DECIMAL: Final = {"precision": 12, "scale": 2}

KINDS: Final[Mapping[str, tuple[str, Json, list[Any]]]] = {
    "boolean": ("boolean", "boolean", [True]),
    "int": ("number", "int", [5, -7]),
    "long": ("number", "long", [5, 2**40]),
    "float": ("number", "float", [1.5, 0.25]),
    "double": ("number", "double", [1.5, 0.1, 1e300]),
    "string": ("text", "string", ["a", "AQID", "B"]),
    "uuid": ("text", make_logical("string", "uuid"), [UUID("00000000-0000-0001-0000-000000000002")]),
    "enum": ("text", _ENUM, ["B"]),
    "bytes": ("bytes", "bytes", [b"abc", b"\xff\x00\x01"]),
    "fixed": ("bytes", _FIXED, [b"abc", b"\xff\x00\x01"]),
    "array": ("array", {"type": "array", "items": "int"}, [[1, 2]]),
    "map": ("map", {"type": "map", "values": "int"}, [{"a": 1}]),
    "record": ("record", _RECORD, [{"a": 1}]),
    "date": ("date", make_logical("int", "date"), [date(2024, 1, 2)]),
    "time-millis": ("time", make_logical("int", "time-millis"), [time(1, 2, 3, 4000)]),
    "time-micros": ("time", make_logical("long", "time-micros"), [time(1, 2, 3, 4000)]),
    "timestamp-millis": ("timestamp", make_logical("long", "timestamp-millis"), [_MOMENT]),
    "timestamp-micros": ("timestamp", make_logical("long", "timestamp-micros"), [_MOMENT]),
    "local-timestamp-millis": ("local", make_logical("long", "local-timestamp-millis"), [_MOMENT.replace(tzinfo=None)]),
    "local-timestamp-micros": ("local", make_logical("long", "local-timestamp-micros"), [_MOMENT.replace(tzinfo=None)]),
    "decimal": ("decimal", make_logical("bytes", "decimal", **_DECIMAL), [Decimal("-1.25"), Decimal("12345.67")]),
    "decimal-fixed": ("decimal", {**_FIXED, "size": 8, "logicalType": "decimal", **_DECIMAL}, [Decimal("-1.25")]),
    "duration": ("duration", {**_FIXED, "size": 12, "logicalType": "duration"}, [bytes(range(12))]),
}
"""The kinds of types by name: the family whose types have the same values, a schema, and values."""

RECORD_KINDS: Final = (
    *("boolean", "int", "long", "float", "double", "string", "enum", "bytes", "array", "map", "record"),
)
"""The kinds that a Python `Record` can declare."""


def _make_record(*fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def _make_field(schema: Json, **more: Json) -> Json:
    return {"name": "f", "type": schema, **more}


def _make_other_field(schema: Json, **more: Json) -> Json:
    return {"name": "g", "type": schema, **more}


_OTHER_RECORD: Final = {"type": "record", "name": "O", "fields": [{"name": "y", "type": "string"}]}
_ONE: Final = _make_record(_make_field("int"))
_NULLABLE: Final = _make_record(_make_field(["null", "int"], default=None))

CASES: Final[Mapping[str, tuple[Json, Json, Json]]] = {
    "field removed": (_make_record(_make_field("int"), _make_other_field("string")), _ONE, {"f": 5, "g": "a"}),
    "fields in another order": (
        _make_record(_make_field("int"), _make_other_field("string")),
        _make_record(_make_other_field("string"), _make_field("int")),
        {"f": 5, "g": "a"},
    ),
    "field added, no default": (_ONE, _make_record(_make_field("int"), _make_other_field("string")), {"f": 5}),
    "field added, default NEW": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field("string", default="NEW")),
        {"f": 5},
    ),
    "field added, default 7": (_ONE, _make_record(_make_field("int"), _make_other_field("int", default=7)), {"f": 5}),
    "field added, default empty": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field("string", default="")),
        {"f": 5},
    ),
    "field added, default 0": (_ONE, _make_record(_make_field("int"), _make_other_field("int", default=0)), {"f": 5}),
    "field added, default false": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field("boolean", default=False)),
        {"f": 5},
    ),
    "field added, default []": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field({"type": "array", "items": "int"}, default=[])),
        {"f": 5},
    ),
    "field added, default [1]": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field({"type": "array", "items": "int"}, default=[1])),
        {"f": 5},
    ),
    "field added, default A": (_ONE, _make_record(_make_field("int"), _make_other_field(_ENUM, default="A")), {"f": 5}),
    "field added, default null": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(["null", "int"], default=None)),
        {"f": 5},
    ),
    "field added, nullable, default 7": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(["int", "null"], default=7)),
        {"f": 5},
    ),
    "field added, default 0 of a timestamp": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(make_logical("long", "timestamp-millis"), default=0)),
        {"f": 5},
    ),
    "field added, default 0 of a time": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(make_logical("int", "time-millis"), default=0)),
        {"f": 5},
    ),
    "field added, default 0 of a decimal": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(make_logical("bytes", "decimal", **_DECIMAL), default="\0")),
        {"f": 5},
    ),
    "field added, default of a fixed": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(_FIXED, default="\0\0\0")),
        {"f": 5},
    ),
    "field added, default no bytes": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field("bytes", default="")),
        {"f": 5},
    ),
    "field added, default {}": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field({"type": "map", "values": "int"}, default={})),
        {"f": 5},
    ),
    "field added, default a of bytes": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field("bytes", default="a")),
        {"f": 5},
    ),
    "field added, default record of zeros": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(_RECORD, default={"a": 0})),
        {"f": 5},
    ),
    "field added, default record": (
        _ONE,
        _make_record(_make_field("int"), _make_other_field(_RECORD, default={"a": 7})),
        {"f": 5},
    ),
    "field renamed, alias": (_ONE, _make_record(_make_other_field("int", aliases=["f"])), {"f": 5}),
    "field renamed, alias, default": (_ONE, _make_record(_make_other_field("int", aliases=["f"], default=7)), {"f": 5}),
    "field renamed, alias, case alone": (_ONE, _make_record({"name": "F", "type": "int", "aliases": ["f"]}), {"f": 5}),
    "null becomes possible": (_ONE, _NULLABLE, {"f": 5}),
    "null is last": (_NULLABLE, _make_record(_make_field(["int", "null"], default=7)), {"f": 5}),
    "null is last, null": (_NULLABLE, _make_record(_make_field(["int", "null"], default=7)), {"f": None}),
    "null becomes impossible, null": (_NULLABLE, _ONE, {"f": None}),
    "null becomes impossible, value": (_NULLABLE, _ONE, {"f": 5}),
    "nullable int to nullable long": (_NULLABLE, _make_record(_make_field(["null", "long"])), {"f": 5}),
    "symbol removed": (
        _make_record(_make_field(_ENUM)),
        _make_record(_make_field(_ENUM | {"symbols": ["A"]})),
        {"f": "B"},
    ),
    "symbol removed, default": (
        _make_record(_make_field(_ENUM)),
        _make_record(_make_field(_ENUM | {"symbols": ["A"], "default": "A"})),
        {"f": "B"},
    ),
    "symbols in another order": (
        _make_record(_make_field(_ENUM)),
        _make_record(_make_field(_ENUM | {"symbols": ["B", "A"]})),
        {"f": "B"},
    ),
    "enum renamed": (_make_record(_make_field(_ENUM)), _make_record(_make_field(_ENUM | {"name": "X"})), {"f": "B"}),
    "record renamed": (
        _make_record(_make_field(_RECORD)),
        _make_record(_make_field(_RECORD | {"name": "X"})),
        {"f": {"a": 1}},
    ),
    "message renamed": (_ONE, _ONE | {"name": "X"}, {"f": 5}),
    "message in another namespace": (_ONE, _ONE | {"namespace": "x.y"}, {"f": 5}),
    "record in another namespace": (
        _make_record(_make_field(_RECORD)),
        _make_record(_make_field(_RECORD | {"namespace": "x.y"})),
        {"f": {"a": 1}},
    ),
    "fixed renamed": (
        _make_record(_make_field(_FIXED)),
        _make_record(_make_field(_FIXED | {"name": "X"})),
        {"f": b"abc"},
    ),
    "fixed of another size": (
        _make_record(_make_field(_FIXED)),
        _make_record(_make_field(_FIXED | {"size": 4})),
        {"f": b"abc"},
    ),
    "decimal, another scale": (
        _make_record(_make_field(make_logical("bytes", "decimal", precision=9, scale=2))),
        _make_record(_make_field(make_logical("bytes", "decimal", precision=10, scale=3))),
        {"f": Decimal("1.25")},
    ),
    "decimal, smaller scale": (
        _make_record(_make_field(make_logical("bytes", "decimal", precision=9, scale=3))),
        _make_record(_make_field(make_logical("bytes", "decimal", precision=9, scale=2))),
        {"f": Decimal("1.255")},
    ),
    "decimal, fewer digits": (
        _make_record(_make_field(make_logical("bytes", "decimal", precision=9, scale=2))),
        _make_record(_make_field(make_logical("bytes", "decimal", precision=4, scale=2))),
        {"f": Decimal("12345.67")},
    ),
    "int to int or string": (_ONE, _make_record(_make_field(["int", "string"])), {"f": 5}),
    "long to long or string": (
        _make_record(_make_field("long")),
        _make_record(_make_field(["long", "string"])),
        {"f": 2**53 + 1},
    ),
    "int to long or string": (_ONE, _make_record(_make_field(["long", "string"])), {"f": 5}),
    "record to one of two": (
        _make_record(_make_field(_RECORD)),
        _make_record(_make_field([_RECORD, _OTHER_RECORD])),
        {"f": {"a": 1}},
    ),
    "int or string to int": (_make_record(_make_field(["int", "string"])), _ONE, {"f": 5}),
    "int or string to string or int": (
        _make_record(_make_field(["int", "string"])),
        _make_record(_make_field(["string", "int"])),
        {"f": 5},
    ),
    "null, int to null, int, string": (
        _make_record(_make_field(["null", "int"])),
        _make_record(_make_field(["null", "int", "string"])),
        {"f": 5},
    ),
    "null, int, string to null, int": (
        _make_record(_make_field(["null", "int", "string"])),
        _make_record(_make_field(["null", "int"])),
        {"f": 5},
    ),
    "items: int to long": (
        _make_record(_make_field({"type": "array", "items": "int"})),
        _make_record(_make_field({"type": "array", "items": "long"})),
        {"f": [5]},
    ),
    "items: int to nullable int": (
        _make_record(_make_field({"type": "array", "items": "int"})),
        _make_record(_make_field({"type": "array", "items": ["null", "int"]})),
        {"f": [5]},
    ),
    "values: int to long": (
        _make_record(_make_field({"type": "map", "values": "int"})),
        _make_record(_make_field({"type": "map", "values": "long"})),
        {"f": {"a": 5}},
    ),
    "nullable record, field of it added": (
        _make_record(_make_field(["null", _RECORD])),
        _make_record(
            _make_field(
                ["null", _RECORD | {"fields": [*_RECORD["fields"], {"name": "b", "type": "string", "default": "NEW"}]}]
            )
        ),
        {"f": {"a": 1}},
    ),
    "record becomes nullable": (
        _make_record(_make_field(_RECORD)),
        _make_record(_make_field(["null", _RECORD])),
        {"f": {"a": 1}},
    ),
    "array becomes nullable": (
        _make_record(_make_field({"type": "array", "items": "int"})),
        _make_record(_make_field(["null", {"type": "array", "items": "int"}])),
        {"f": [5]},
    ),
    "bytes become nullable": (
        _make_record(_make_field("bytes")),
        _make_record(_make_field(["null", "bytes"])),
        {"f": b"abc"},
    ),
    "map becomes nullable": (
        _make_record(_make_field({"type": "map", "values": "int"})),
        _make_record(_make_field(["null", {"type": "map", "values": "int"}])),
        {"f": {"a": 5}},
    ),
}
"""Changes by name: the definition of the writer, the definition of the reader, and the value that is written."""

GO_STRUCTS: Final = frozenset({"record", "date", *(kind for kind in KINDS if "timestamp" in kind), "duration"})
"""The kinds that are structs in Go. Its client decodes a nullable one into such a field as into a pointer, and overwrites memory."""

Reader = Callable[[Json, Json, Sequence[bytes]], list[str]]
"""Reads payloads of a writer's definition by a reader's; an error is text that begins with `throws`."""


class GoClient:
    """A running go_client/main.go."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, request: Json) -> Json:
        """Return the answer to one request."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        return json.loads(stdout.readline())

    def make_reader(self, schema_type: str, *, is_strict: bool) -> Reader:
        """Return a reader of messages of one type, with int32 for int (`is_strict`)."""

        def read(writer: Json, reader: Json, payloads: Sequence[bytes]) -> list[str]:
            request = {"type": schema_type, "strict": is_strict, "writer": json.dumps(writer)}
            request |= {"reader": json.dumps(reader), "payloads": [payload.hex() for payload in payloads]}
            return [
                f"throws {answer['error']}" if "error" in answer else str(answer["read"])
                for answer in self.ask(request)
            ]

        return read


def build_go_client(folder: Path) -> Path:
    """Return the Go client, built in `folder`; the test is skipped where Go or a module is missing."""
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    program = folder / "client"
    command = ["go", "build", "-o", str(program), "."]
    build = subprocess.run(command, cwd=PROGRAM, capture_output=True, text=True, check=False)
    if any(words in build.stderr for words in ("dial tcp", "proxyconnect", "no such host", "module lookup disabled")):
        pytest.skip("needs the modules of tests/formats/go_client/go.mod")
    assert build.returncode == 0, build.stderr
    return program


@contextmanager
def start_go_client(program: Path) -> Iterator[GoClient]:
    """Start the Go client."""
    with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield GoClient(process)
        finally:
            process.kill()


def read_with_fastavro(writer: Json, reader: Json, payloads: Sequence[bytes]) -> list[str]:
    """Read AVRO as pulsar-client's `AvroSchema` does."""
    from pulsar.schema import AvroSchema  # type: ignore[import-untyped]

    results = []
    for payload in payloads:
        schema = AvroSchema(None, json.loads(json.dumps(reader)))
        try:
            # `decode_message` calls it with the definition of the version that the message carries.
            results.append(_render(schema._decode_bytes(payload, json.loads(json.dumps(writer)))))
        except Exception as error:  # noqa: BLE001  whatever it throws
            results.append(f"throws {type(error).__name__}")
    return results


def read_with_record(writer: Json, reader: Json, payloads: Sequence[bytes]) -> list[str]:
    """Read JSON as pulsar-client's `JsonSchema` does."""
    from pulsar.schema import JsonSchema

    del writer
    results = []
    for payload in payloads:
        try:
            results.append(_render(JsonSchema(make_record_class(reader)).decode(payload)))
        except Unsupported:
            results.append("unsupported")
        except Exception as error:  # noqa: BLE001  whatever it throws
            results.append(f"throws {type(error).__name__}")
    return results


class Unsupported(Exception):
    """A `Record` cannot declare the type."""


def make_record_class(schema: Json) -> Any:
    """Return the `Record` with the definition `schema`.

    Raises:
        Unsupported: if no `Record` has it.
    """
    from pulsar.schema import Record

    return type(schema["name"], (Record,), {field["name"]: _make_record_field(field) for field in schema["fields"]})


def _make_record_field(field: Json) -> Any:
    """Return the field of a `Record`."""
    from pulsar import schema as classes

    kind, is_required = field["type"], True
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) != 1 or len(kind) != 2:
            raise Unsupported
        kind, is_required = branches[0], False
    arguments: dict[str, Any] = {"required": is_required}
    if "default" in field:
        arguments |= {"default": field["default"], "required_default": True}
    if isinstance(kind, dict) and "logicalType" not in kind:
        match kind["type"]:
            case "enum":
                enum = Enum(kind["name"], {symbol: number for number, symbol in enumerate(kind["symbols"])})  # type: ignore[misc]
                if "default" in field:
                    arguments["default"] = enum[field["default"]]
                return classes.CustomEnum(enum, **arguments)
            case "array":
                return classes.Array(_make_record_field({"type": kind["items"]}), **arguments)
            case "map":
                return classes.Map(_make_record_field({"type": kind["values"]}), **arguments)
            case "record":
                if "default" in field:
                    raise Unsupported
                return make_record_class(kind)(**arguments)
    names = ("boolean", "int", "long", "float", "double", "string", "bytes")
    if kind not in names:
        raise Unsupported
    by_name = (classes.Boolean, classes.Integer, classes.Long, classes.Float, classes.Double, classes.String)
    return dict(zip(names, (*by_name, classes.Bytes), strict=True))[kind](**arguments)


def _render(value: Any) -> str:
    from pulsar.schema import Record

    match value:
        case Record():
            return _render({name: getattr(value, name) for name in value._fields})
        case dict():
            return "{" + " ".join(f"{name}:{_render(value[name])}" for name in sorted(value)) + "}"
        case list():
            return f"[{' '.join(map(_render, value))}]"
        case bytes():
            return value.hex()
        case Enum():
            return json.dumps(value.name)
        case Decimal():
            return str(value.normalize())
        case str() | None | bool():
            return json.dumps(value)
        case float():
            return f"{value:g}"
    return str(value)


def measure(client: GoClient) -> dict[str, Any]:
    """Return the results of all clients, by language and type."""
    readers: dict[str, tuple[str, Sequence[str], list[Reader]]] = {
        "go AVRO": ("AVRO", tuple(KINDS), [client.make_reader("AVRO", is_strict=strict) for strict in (False, True)]),
        "go JSON": ("JSON", tuple(KINDS), [client.make_reader("JSON", is_strict=strict) for strict in (False, True)]),
        "python AVRO": ("AVRO", tuple(KINDS), [read_with_fastavro]),
        "python JSON": ("JSON", RECORD_KINDS, [read_with_record]),
    }
    return {
        name: {
            "types": _measure_types(name, schema_type, kinds, of_language),
            "cases": {case: _measure_case(schema_type, of_language, *sides) for case, sides in CASES.items()},
        }
        for name, (schema_type, kinds, of_language) in readers.items()
    }


def _measure_types(name: str, schema_type: str, kinds: Sequence[str], readers: Sequence[Reader]) -> dict[str, Any]:
    """Return the names of the readers by the worst outcome over values and readers, for each writer."""
    results: dict[str, Any] = {}
    for writer_name in kinds:
        family, writer, values = KINDS[writer_name]
        readers_by_outcome: dict[str, list[str]] = {}
        for reader_name in kinds:
            reader_family, reader, _ = KINDS[reader_name]
            expected = [_convert(value, family, reader_family, reader_name) for value in values]
            outcome = _find_worst(schema_type, readers, writer, reader, values, expected)
            readers_by_outcome.setdefault(outcome, []).append(reader_name)
        # Only these three depend on the whole definition of the field.
        for form, other_writer, other_reader in (
            ("becomes nullable", writer, ["null", writer]),
            ("is no longer nullable", ["null", writer], writer),
            ("stays nullable", ["null", writer], [writer, "null"]),
            ("becomes one of several", writer, [writer, {"type": "array", "items": "boolean"}]),
        ):
            if form == "becomes one of several" and writer_name == "array":
                continue
            if form == "is no longer nullable" and writer_name in GO_STRUCTS and name == "go AVRO":
                continue
            outcome = _find_worst(schema_type, readers, other_writer, other_reader, values, values)
            readers_by_outcome.setdefault(outcome, []).append(form)
        results[writer_name] = {
            outcome: readers_by_outcome[outcome]
            for outcome in (*OUTCOMES, "unsupported")
            if outcome in readers_by_outcome
        }
    return results


def _find_worst(
    schema_type: str,
    readers: Sequence[Reader],
    writer: Json,
    reader: Json,
    values: Sequence[Any],
    expected: Sequence[Any],
) -> str:
    writer_record, reader_record = _make_record(_make_field(writer)), _make_record(_make_field(reader))
    payloads = [_write(schema_type, writer_record, {"f": value}) for value in values]
    assert all(payloads), (writer, values)
    own = [_write(schema_type, reader_record, {"f": value}) if value is not None else None for value in expected]
    worst = 0
    for read in readers:
        results = read(writer_record, reader_record, [payload for payload in payloads if payload])
        for result, payload in zip(results, own, strict=True):
            if result == "unsupported":
                return result
            if result.startswith("throws"):
                worst = 2
            elif payload is None or read(reader_record, reader_record, [payload]) != [result]:
                worst = max(worst, 1)
    return OUTCOMES[worst]


def _convert(value: Any, family: str, reader_family: str, reader_name: str) -> Any:
    """Return the same value for a reader of another type, or None if that type has no such value."""
    if family == reader_family == "number" and reader_name in ("float", "double"):
        return float(value)
    if family == reader_family == "text":
        return str(value)
    if family == reader_family:
        return value
    if family == "text" and reader_name == "bytes":
        return str(value).encode()
    if family == "bytes" and reader_name == "string":
        return value.decode(errors="replace")
    return None


def _measure_case(schema_type: str, readers: Sequence[Reader], writer: Json, reader: Json, value: Any) -> str:
    """Return the outcome of the worst reader, and the value that it reads."""
    payload = _write(schema_type, writer, value)
    assert payload is not None
    try:
        sides = [json.loads(json.dumps(schema)) for schema in (writer, reader)]
        resolved = fastavro.schemaless_reader(io.BytesIO(_write("AVRO", writer, value) or b""), *sides)
    except Exception:  # noqa: BLE001  the specification does not resolve them
        resolved = value
    own = _write(schema_type, reader, _convert_defaults(resolved, reader))
    outcomes = []
    for read in readers:
        [result] = read(writer, reader, [payload])
        if result.startswith(("throws", "unsupported")):
            outcomes.append((2, result))
        else:
            is_kept = own is not None and read(reader, reader, [own]) == [result]
            outcomes.append((0 if is_kept else 1, result))
    worst, result = max(outcomes)
    return result if worst == 2 else f"{OUTCOMES[worst]} {result}"


def _convert_defaults(value: Any, schema: Json) -> Any:
    """Return the value of a record with the defaults of bytes as bytes, which fastavro leaves as texts."""
    converted = dict(value)
    for field in schema["fields"]:
        part, kind = value.get(field["name"]), field["type"]
        plain_kind = kind["type"] if isinstance(kind, dict) else kind
        if isinstance(part, str) and plain_kind in ("bytes", "fixed"):
            data = part.encode("latin-1")
            is_decimal = isinstance(kind, dict) and kind.get("logicalType") == "decimal"
            converted[field["name"]] = Decimal(int.from_bytes(data, "big", signed=True)) if is_decimal else data
    return converted


def _write(schema_type: str, schema: Json, value: Any) -> bytes | None:
    """Return the payload of a value, or None if the schema does not have it."""
    if schema_type == "JSON":
        return _write_json(schema, value)
    try:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
        return buffer.getvalue()
    except Exception:  # noqa: BLE001  a value of another type
        return None


def _write_json(schema: Json, value: Any) -> bytes | None:
    # The codec takes a union of several types as a struct; in JSON the value is bare, as of its branch alone.
    for index, field in enumerate(schema["fields"]):
        branches = field["type"] if isinstance(field["type"], list) else []
        if sum(branch != "null" for branch in branches) > 1:
            for branch in branches:
                fields = [*schema["fields"]]
                fields[index] = {"name": field["name"], "type": branch}
                if payload := _write_json(schema | {"fields": fields}, value):
                    return payload
            return None
    try:
        plain = {name: _to_plain(part, json.dumps(schema)) for name, part in value.items()}
        return Codec([Version(0, Definition("JSON", json.dumps(schema)))]).encode_one(plain)
    except Exception:  # noqa: BLE001  a value of another type
        return None


def _to_plain(value: Any, definition: str) -> Any:
    """Return a value as the codec takes it: times of day are numbers."""
    match value:
        case time():
            microseconds = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
            return microseconds if "micros" in definition else microseconds // 1000
        case UUID():
            return str(value)
    return value


def main() -> None:
    """Write the recorded results."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, start_go_client(build_go_client(Path(folder))) as client:
        RECORDED.write_text(yaml.safe_dump(measure(client), sort_keys=False, width=150, default_flow_style=None))


if __name__ == "__main__":
    main()
