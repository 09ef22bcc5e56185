"""The parts of a definition that Go's client registers otherwise are found.

    PYTHONPATH=tests:tests/formats python tests/formats/test_go_definitions.py

writes go_definitions.yaml next to this file: which definitions Go's client registers unchanged, changed, invalid or not at all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml
from language_reader_table import GoClient, build_go_client, make_logical, start_go_client

from schemactl.checks.lint import _TYPES_BY_LANGUAGE
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import identity
from schemactl.formats.avro.go_definitions import find_changes

Json = Any

RECORDED: Final = Path(__file__).parent / "go_definitions.yaml"
MEASURED: Any = yaml.load(RECORDED.read_bytes(), yaml.CSafeLoader)


def _record(*fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": "R", **more, "fields": list(fields)}


def _make_one_field(schema: Json, **more: Json) -> Json:
    return {"name": "x", "type": schema, **more}


def _wrap(schema: Json, **more: Json) -> Json:
    return _record(_make_one_field(schema, **more))


_SUB: Final = {
    "type": "record",
    "name": "Sub",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"], "default": None}],
}
_COLOR: Final = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}
_FIXED: Final = {"type": "fixed", "name": "F", "size": 2}


def _make_decimal(base: Json = "bytes", **more: Json) -> Json:
    return {**(base if isinstance(base, dict) else {"type": base}), "logicalType": "decimal", **more}


DEFINITIONS: Final[Mapping[str, Json]] = {
    "plain": _wrap("string"),
    "namespace, doc, aliases": _record(
        _make_one_field("string", doc="é", aliases=["w"]), namespace="a.b", doc="d", aliases=["Old"]
    ),
    "dotted name": {**_wrap("string"), "name": "a.b.R"},
    "name and namespace": {**_wrap("int"), "name": "a.R", "namespace": "b"},
    "inner type": _record(_make_one_field(_SUB), {"name": "z", "type": "Sub"}, namespace="a.b"),
    "inner type in another namespace": _record(_make_one_field({**_SUB, "namespace": "c"}), namespace="a.b"),
    "inner type in no namespace": _record(_make_one_field({**_SUB, "namespace": ""}), namespace="a.b"),
    "inner enum in no namespace": _record(_make_one_field({**_COLOR, "namespace": ""}), namespace="a"),
    "inner name with a dot at the front": _record(_make_one_field({**_FIXED, "name": ".F"}), namespace="a"),
    "no namespace, written": _record(_make_one_field("int"), namespace=""),
    "recursive": _record({"name": "next", "type": ["null", "R"], "default": None}),
    "order": _wrap("string", order="ignore"),
    "error": {**_wrap("int"), "type": "error"},
    "default null": _wrap(["null", "string"], default=None),
    "default text": _wrap("string", default='q"uo\\te\u00e9<&>\u2028\U0001f600\x00'),
    "default empty text": _wrap("string", default=""),
    "default true": _wrap("boolean", default=True),
    "default symbol": _wrap(_COLOR, default="RED"),
    "enum default": _wrap({**_COLOR, "default": "RED"}),
    "default 7": _wrap("int", default=7),
    "default -5": _wrap("int", default=-5),
    "default of a date": _wrap(make_logical("int", "date"), default=5),
    "default of a timestamp": _wrap(make_logical("long", "timestamp-millis"), default=1_704_164_645_678),
    "long, default 2^53": _wrap("long", default=2**53),
    "long, default 2^53 + 1": _wrap("long", default=2**53 + 1),
    "long, default -2^53 - 1": _wrap("long", default=-(2**53) - 1),
    "long, default 2^53 + 2": _wrap("long", default=2**53 + 2),
    "long, default 10^18": _wrap("long", default=10**18),
    "long, default 2^63 - 1": _wrap("long", default=2**63 - 1),
    "long, default -2^63": _wrap("long", default=-(2**63)),
    "double, default 0.0": _wrap("double", default=0.0),
    "double, default -0.0": _wrap("double", default=-0.0),
    "double, default 1.0": _wrap("double", default=1.0),
    "double, default 0.5": _wrap("double", default=0.5),
    "double, default 1": _wrap("double", default=1),
    "double, default 1e20": _wrap("double", default=1e20),
    "double, default 1e21": _wrap("double", default=1e21),
    "double, default 1e-7": _wrap("double", default=1e-7),
    "double, default 2^53 + 1": _wrap("double", default=2**53 + 1),
    "float, default 3": _wrap("float", default=3),
    "float, default 0.1": _wrap("float", default=0.1),
    "double or null, default 1.0": _wrap(["double", "null"], default=1.0),
    "null or int, default 7": _wrap(["null", "int"], default=7),
    "bytes, default ab": _wrap("bytes", default="ab\u00ff"),
    "bytes, default empty": _wrap("bytes", default=""),
    "bytes or null, default a": _wrap(["bytes", "null"], default="a"),
    "decimal, default": _wrap(_make_decimal(precision=4, scale=2), default="\u00ff"),
    "fixed, default": _wrap(_FIXED, default="\u0001\u00fe"),
    "array, default []": _wrap({"type": "array", "items": "int"}, default=[]),
    "array, default [1.0]": _wrap({"type": "array", "items": "double"}, default=[1.0, 2.5]),
    "array, default [b]": _wrap({"type": "array", "items": "bytes"}, default=["b"]),
    "array of fixed, default": _wrap({"type": "array", "items": _FIXED}, default=["ab"]),
    "map, default {}": _wrap({"type": "map", "values": "string"}, default={}),
    "map, default": _wrap({"type": "map", "values": "string"}, default={"b": "1", "a": "2"}),
    "map, default 1.0": _wrap({"type": "map", "values": "double"}, default={"a": 1.0}),
    "record, default": _wrap(_SUB, default={"x": 1, "y": None}),
    "record, default in part": _wrap(_SUB, default={"x": 1}),
    "record or null, default in part": _wrap([_SUB, "null"], default={"x": 1}),
    "named record, default in part": _record(
        {"name": "a", "type": _SUB}, {"name": "b", "type": "Sub", "default": {"x": 1}}, namespace="n"
    ),
    "decimal, scale 2": _wrap(_make_decimal(precision=12, scale=2)),
    "decimal, scale 0": _wrap(_make_decimal(precision=12, scale=0)),
    "decimal, no scale": _wrap(_make_decimal(precision=12)),
    "decimal, scale 2.0": _wrap(_make_decimal(precision=12, scale=2.0)),
    "decimal, scale above precision": _wrap(_make_decimal(precision=2, scale=3)),
    "decimal, no precision, scale 0": _wrap(_make_decimal(scale=0)),
    "decimal in fixed": _wrap(_make_decimal(_FIXED, precision=4, scale=2)),
    "decimal in fixed, scale 0": _wrap(_make_decimal(_FIXED, precision=4, scale=0)),
    "decimal in fixed, too many digits, scale 0": _wrap(_make_decimal(_FIXED, precision=20, scale=0)),
    "decimal on text, scale 0": _wrap(_make_decimal("string", precision=4, scale=0)),
    "scale 0 alone": _wrap({"type": "bytes", "scale": 0, "precision": 3}),
    **{
        name: _wrap(make_logical(base, name))
        for base, name in (
            *(("int", "date"), ("int", "time-millis"), ("long", "time-micros"), ("long", "timestamp-millis")),
            *(
                ("long", "timestamp-nanos"),
                ("long", "local-timestamp-micros"),
                ("string", "uuid"),
                ("string", "unknown"),
            ),
        )
    },
    "date on long": _wrap(make_logical("long", "date")),
    "uuid in fixed": _wrap({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}),
    "duration": _wrap({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}),
    "java classes": _wrap(
        {"type": "array", "items": {"type": "string", "avro.java.string": "String"}, "java-class": "L"}
    ),
    "attributes": _wrap("string", sql={"n": 12, "b": True, "h": 0.5, "t": "<&>", "l": [1, None]}, none=None),
    "attribute 1.0": _wrap("string", sql={"r": 1.0}),
    "attribute [1.0]": _wrap("string", a=[1.0]),
    "attribute 2^53 + 1": _wrap({"type": "long", "id": 2**53 + 1}),
    "attribute 2^62": _wrap({"type": "long", "id": 2**62}),
    "attribute 10^22": _wrap({"type": "long", "id": 10**22}),
    "attribute 1.0 of a record": _record(_make_one_field("int"), id=1.0),
    "attribute 1.0 of an enum": _wrap({**_COLOR, "id": 1.0}),
    "attribute 1.0 of a fixed": _wrap({**_FIXED, "id": 1.0}),
    "attribute 1.0 of an array": _wrap({"type": "array", "items": "int", "id": 1.0}),
    "attribute 1.0 of a map": _wrap({"type": "map", "values": "int", "id": 1.0}),
    "default 1.0 inside a type": _wrap({"type": "int", "default": 1.0}),
    "union of three": _wrap(["null", "int", "string"], default=None),
    "union of records": _wrap([_SUB, {**_SUB, "name": "Other"}]),
    "field with umlaut": _record({"name": "größe", "type": "int"}),
    "field with $": _record({"name": "a$b", "type": "int"}),
    "field alias with $": _wrap("int", aliases=["a$"]),
    "record with $": {**_wrap("int"), "name": "A$B"},
    "namespace with $": _record(_make_one_field("int"), namespace="a.B$"),
    "symbol with umlaut": _wrap({**_COLOR, "symbols": ["ä"]}),
    "no symbols": _wrap({**_COLOR, "symbols": []}),
    "no fields": _record(),
}
"""Definitions by name."""


def register(client: GoClient, definition: Json) -> str:
    """Return `same`, `changed`, `invalid` or `rejected` for the definition that Go's client registers."""
    text = json.dumps(definition)
    answer = client.ask({"print": text})
    if "error" in answer:
        return "rejected"
    try:
        is_same = _identify(answer["text"]) == _identify(text)
    except InvalidSchema:
        return "invalid"
    return "same" if is_same else "changed"


def _identify(text: str) -> object:
    return identity(SchemaInfo(SchemaType.AVRO, text.encode()))


class RandomDefinitions:
    """Makes valid definitions with numbers and defaults that are often printed otherwise."""

    _NUMBERS: Final = (
        *(0, 1, -1, 0.0, 1.0, -0.0, 0.5, 2.5, 1e20, 1e21, 1e-9, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1),
        *(2**62, 2**62 + 1, 2**63 - 1, -(2**63), 10**18, 10**18 + 1, 3e10),
    )

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  no secret
        self._count = 0

    def make(self) -> Json:
        """Return a record."""
        namespace = {"namespace": "q"} if self._random.random() < 0.3 else {}
        return _record(*(self._make_field(f"x{index}", 0) for index in range(self._random.randint(1, 3))), **namespace)

    def _make_field(self, name: str, depth: int) -> Json:
        schema = self._make_type(depth)
        field = {"name": name, "type": schema}
        if self._random.random() < 0.6:
            field["default"] = self._make_default(schema)
        if self._random.random() < 0.1:
            field["p"] = self._random.choice(self._NUMBERS)
        return field

    def _make_type(self, depth: int) -> Json:
        leaves = ["int", "long", "float", "double", "bytes", "string", "boolean"]
        kind = self._random.choice(
            leaves if depth > 1 else [*leaves, "fixed", "enum", "array", "map", "union", "record"]
        )
        self._count += 1
        name = f"N{self._count}"
        match kind:
            case "fixed":
                return {"type": kind, "name": name, "size": self._random.randint(1, 2)}
            case "enum":
                namespace = {"namespace": self._random.choice(["", "x"])} if self._random.random() < 0.3 else {}
                return {"type": kind, "name": name, "symbols": ["A", "B"], **namespace}
            case "array":
                return {"type": kind, "items": self._make_type(depth + 1)}
            case "map":
                return {"type": kind, "values": self._make_type(depth + 1)}
            case "union":
                branches = ["null", self._make_type(depth + 3)]
                return self._random.sample(branches, 2)
            case "record":
                fields = [self._make_field(f"f{index}", depth + 1) for index in range(self._random.randint(1, 2))]
                return {"type": kind, "name": name, "fields": fields}
        if self._random.random() < 0.15:
            return {"type": kind, "a": self._random.choice(self._NUMBERS)}
        if kind == "bytes" and self._random.random() < 0.5:
            return _make_decimal(precision=self._random.choice([4, 12]), scale=self._random.choice([0, 2]))
        return kind

    def _make_default(self, schema: Json) -> Json:
        if isinstance(schema, list):
            return self._make_default(schema[0])
        match schema if isinstance(schema, str) else schema["type"]:
            case "null":
                return None
            case "int":
                return self._random.choice([0, 1, -5])
            case "long":
                return self._random.choice([number for number in self._NUMBERS if isinstance(number, int)])
            case "float":
                return self._random.choice([0.0, 1.0, 0.5, 3, -2])
            case "double":
                return self._random.choice(self._NUMBERS)
            case "bytes" | "string":
                return self._random.choice(["", "a"])
            case "boolean":
                return True
            case "fixed":
                return "a" * schema["size"]
            case "enum":
                return "A"
            case "array":
                return [self._make_default(schema["items"]) for _ in range(self._random.randrange(3))]
            case "map":
                return {key: self._make_default(schema["values"]) for key in "ab"[: self._random.randrange(3)]}
        return {
            field["name"]: self._make_default(field["type"])
            for field in schema["fields"]
            if "default" not in field or self._random.random() < 0.7
        }


def main() -> None:
    """Write the recorded results."""
    with TemporaryDirectory() as folder, start_go_client(build_go_client(Path(folder))) as client:
        results = {name: register(client, definition) for name, definition in DEFINITIONS.items()}
    RECORDED.write_text(yaml.safe_dump(results, sort_keys=False, allow_unicode=True, width=150))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_has_a_finding_if_go_registers_another(name: str) -> None:
    changes = [*find_changes(DEFINITIONS[name])]
    assert bool(changes) is (MEASURED[name] != "same")
    for change in changes:
        assert change.fix.endswith(".")
        assert change.message


@pytest.mark.slow
def test_go_registers_as_recorded(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        assert {name: register(client, definition) for name, definition in DEFINITIONS.items()} == MEASURED


@pytest.mark.slow
def test_random_definitions_have_a_finding_if_go_registers_another(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        for seed in range(1_000):
            definition = RandomDefinitions(seed).make()
            assert bool([*find_changes(definition)]) is (register(client, definition) != "same"), json.dumps(definition)


@pytest.mark.slow
def test_go_writes_some_numbers_in_the_other_byte_order(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        payloads = {
            name: client.ask({"encode": name, "number": 1})["text"]
            for name in ("INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE")
        }
    assert payloads == {
        "INT8": "01",
        "INT16": "0100",
        "INT32": "01000000",
        "INT64": "0100000000000000",
        "FLOAT": "3f800000",
        "DOUBLE": "3ff0000000000000",
    }


@pytest.mark.slow
def test_go_has_the_types_of_the_rule(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        types = {
            type_.name for type_ in SchemaType if type_.value > 0 and client.ask({"has": type_.value})["text"] == "true"
        }
    assert types == _TYPES_BY_LANGUAGE["go"]


def test_python_has_the_types_of_the_rule() -> None:
    from pulsar import schema

    names = {
        "STRING": "StringSchema",
        "JSON": "JsonSchema",
        "AVRO": "AvroSchema",
        "PROTOBUF_NATIVE": "ProtobufNativeSchema",
    }
    assert _TYPES_BY_LANGUAGE["python"] == names.keys()
    schemas = {name for name in vars(schema) if name.endswith("Schema") and name not in ("Schema", "BytesSchema")}
    assert schemas == {*names.values()}


if __name__ == "__main__":
    main()
