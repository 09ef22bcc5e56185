"""Random Avro schemas, and values of them in the form that the codec reads and writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

JsonValue = Any

_PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
)
_TEXTS = ("", "a", "straße", "日本", "😀", 'q"\\', "x" * 200)
_VALUES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "string": _TEXTS,
    "float": (0.0, -0.0, 1.5, -(2.0**100), float("inf")),
    "double": (0.0, 0.1, -1e300, float("-inf"), 5e-324),
}


_WIDER: dict[str, tuple[JsonValue, ...]] = {
    "int": ("long", "float", "double", ["null", "double"]),
    "long": ("float", "double", ["string", "long"]),
    "float": ("double", ["null", "double"]),
    "string": ("bytes", ["int", "bytes"]),
    "bytes": ("string", ["string", "null"]),
    "boolean": (["int", "boolean"],),
}

_ONE_NUMBER = ({"int", "long"}, {"float", "double"})
"""Of a union of these, and of null, Spark makes one number."""

_ADDED: tuple[dict[str, JsonValue], ...] = (
    {"type": {"type": "array", "items": "int"}, "default": [1, 2]},
    {"type": {"type": "map", "values": "double"}, "default": {"a": 0.5, "b": -1}},
    {"type": "string", "default": "straße"},
    {"type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "default": "\u0001\u0000"},
    {"type": ["null", "long"], "default": None},
    {"type": ["long", "null"], "default": -(2**40)},
    {"type": {"type": "enum", "name": "AddedE", "symbols": ["X", "Y"]}, "default": "Y"},
    {"type": {"type": "fixed", "name": "AddedF", "size": 3}, "default": "abc"},
    {
        "type": {
            "type": "record",
            "name": "AddedR",
            "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "float", "default": 1.5}],
        },
        "default": {"a": 7},
    },
)


class Maker:
    """Schemas and values from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self._names = 0

    def record(self, depth: int = 3) -> JsonValue:
        """A record schema of up to six fields."""
        fields = [
            {"name": f"f{number}", "type": self._field_type(depth - 1)} for number in range(self.random.randrange(1, 6))
        ]
        return {"type": "record", "name": self._name("R"), "fields": fields}

    def draw_schema(self, depth: int) -> JsonValue:
        """Any schema."""
        simple: list[Callable[[], JsonValue]] = [
            lambda: self.random.choice(_PRIMITIVES),
            lambda: self.random.choice(_PRIMITIVES),
            lambda: dict(self.random.choice(_LOGICAL)),
            self._draw_enum,
            self._draw_fixed,
        ]
        nested: list[Callable[[], JsonValue]] = [
            lambda: self.record(depth),
            lambda: {"type": "array", "items": self.draw_schema(depth - 1)},
            lambda: {"type": "map", "values": self.draw_schema(depth - 1)},
            lambda: self.random.sample(["null", self._draw_branch(depth)], 2),
            lambda: self.random.sample(["null", self._draw_branch(depth)], 2),
            lambda: self._draw_union(depth),
        ]
        new_schema: JsonValue = self.random.choice(simple + (nested if depth > 0 else []))()
        return new_schema

    def draw_value(self, schema: JsonValue) -> Any:
        """A value of the schema, as decoding gives it."""
        if isinstance(schema, list):
            return self._union_value(schema)
        kind = schema if isinstance(schema, str) else schema["type"]
        pick = self.random
        match kind:
            case "record":
                return {part["name"]: self.draw_value(part["type"]) for part in schema["fields"]}
            case "array":
                return [self.draw_value(schema["items"]) for _ in range(pick.choice((0, 1, 2, 5)))]
            case "map":
                return {pick.choice(_TEXTS): self.draw_value(schema["values"]) for _ in range(pick.randrange(4))}
            case "fixed" if schema.get("logicalType") != "decimal":
                return pick.randbytes(schema["size"])
            case "enum":
                return pick.choice(schema["symbols"])
        return pick.choice(_VALUES[kind]) if kind in _VALUES else self._draw_number(kind, schema)

    def evolve_schema(self, schema: JsonValue) -> JsonValue:
        """Another version of a record schema: compatible or not."""
        parts = [part for part in schema["fields"] if self.random.random() < 0.9]
        fields = [self._evolved_field(dict(part)) for part in parts]
        for number, added in enumerate(self.random.sample(_ADDED, self.random.choice((0, 0, 0, 1, 3)))):
            fields.append({"name": f"added{number}"} | added)
        self.random.shuffle(fields)
        return self._rename_now_and_then(schema | {"fields": fields})

    def _evolved_field(self, part: dict[str, Any]) -> dict[str, Any]:
        if self.random.random() < 0.2:
            part |= {"name": f"{part['name']}x", "aliases": [part["name"]]}
        if self.random.random() < 0.7:
            part["type"] = self._evolved_type(part["type"])
        return part

    def _evolved_type(self, kind: JsonValue) -> JsonValue:
        pick = self.random
        if pick.random() < 0.1:
            return self.draw_schema(1)
        if isinstance(kind, list):
            parts = [self._evolved_type(branch) if pick.random() < 0.3 else branch for branch in kind]
            # A branch that became a union, equal to another branch, or a second number keeps its old form.
            whole = (
                not any(isinstance(branch, list) for branch in parts)
                and are_distinct(parts)
                and {branch if isinstance(branch, str) else branch["type"] for branch in parts} - {"null"}
                not in _ONE_NUMBER
            )
            return pick.sample(parts if whole else kind, len(kind))
        if pick.random() < 0.2 and kind != "null":
            return pick.sample(["null", kind], 2)
        match kind if isinstance(kind, str) else kind["type"]:
            case "record":
                return self.evolve_schema(kind)
            case "enum":
                default = {"default": "A"} if pick.random() < 0.5 else {}
                return self._rename_now_and_then(kind | {"symbols": pick.sample(["A", "B", "D"], 3)} | default)
            case "fixed":
                return self._rename_now_and_then(kind)
            case "array":
                return kind | {"items": self._evolved_type(kind["items"])}
            case "map":
                return kind | {"values": self._evolved_type(kind["values"])}
        return pick.choice(_WIDER[kind]) if isinstance(kind, str) and kind in _WIDER else kind

    def _rename_now_and_then(self, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Now and then under another name, or in a namespace."""
        match self.random.randrange(12):
            case 0:
                return schema | {"name": f"{schema['name']}New", "aliases": [schema["name"]]}
            case 1:
                return schema | {"namespace": "other"}
            case 2:
                return schema | {"name": f"{schema['name']}Lost"}
        return schema

    def _draw_number(self, kind: str, schema: JsonValue) -> Any:
        pick = self.random
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        seconds = timedelta(seconds=pick.randrange(-(10**10), 10**10), milliseconds=pick.randrange(1000))
        match logical:
            case "date":
                return date(1970, 1, 1) + timedelta(days=pick.randrange(-(10**5), 10**5))
            case "timestamp-millis":
                return datetime(1970, 1, 1, tzinfo=UTC) + seconds
            case "timestamp-micros":
                return datetime(1970, 1, 1, tzinfo=UTC) + seconds + timedelta(microseconds=7)
            case "local-timestamp-micros" | "local-timestamp-millis":
                return datetime(1970, 1, 1) + seconds  # noqa: DTZ001  a local timestamp
            case "time-millis" | "time-micros":
                return pick.randrange(86_400 * (10**3 if logical == "time-millis" else 10**6))
            case "decimal":
                digits = schema["precision"]
                bound = 10 ** pick.choice((1, digits // 2, digits))
                # Through text, so that no context rounds it.
                return Decimal(f"{pick.randrange(-bound + 1, bound)}E-{schema['scale']}")
        if kind == "bytes":
            return pick.randbytes(pick.choice((0, 1, 20)))
        bits = 31 if kind == "int" else 63
        return pick.choice((0, -1, 63, 64, -64, -65, 2**bits - 1, -(2**bits), pick.randrange(-(2**bits), 2**bits)))

    def _draw_branch(self, depth: int) -> JsonValue:
        while True:
            branch = self.draw_schema(depth - 1)
            if not isinstance(branch, list):
                return branch

    def _draw_union(self, depth: int) -> JsonValue:
        branches: list[JsonValue] = [
            "null",
            "boolean",
            "long",
            "double",
            "string",
            "bytes",
            self._draw_enum(),
            {"type": "fixed", "name": self._name("X"), "size": 3},
            {"type": "array", "items": self.draw_schema(depth - 2)},
            {"type": "map", "values": "long"},
            self.record(depth - 1),
            self.record(depth - 1),
        ]
        return self.random.sample(branches, self.random.choice((2, 3, 3, 4, 8, 12)))

    def _field_type(self, depth: int) -> JsonValue:
        return "null" if self.random.random() < 0.03 else self.draw_schema(depth)

    def _draw_enum(self) -> JsonValue:
        default = {"default": "B"} if self.random.random() < 0.3 else {}
        return {"type": "enum", "name": self._name("E"), "symbols": ["A", "B", "C"]} | default

    def _union_value(self, branches: list[JsonValue]) -> Any:
        branch = self.random.choice(branches)
        if branch == "null":
            return None
        others = [other for other in branches if other != "null"]
        value = self.draw_value(branch)
        if len(others) == 1:
            return value
        return {f"member{number}": value if other is branch else None for number, other in enumerate(others)}

    def _draw_fixed(self) -> JsonValue:
        if self.random.random() < 0.1:
            return {"type": "fixed", "name": self._name("X"), "size": 12, "logicalType": "duration"}
        size = self.random.choice((1, 5, 16, 20))
        schema: dict[str, Any] = {"type": "fixed", "name": self._name("X"), "size": size}
        if size > 1 and self.random.random() < 0.5:
            schema |= {"logicalType": "decimal", "precision": 11, "scale": 2}
        return schema

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def are_distinct(branches: list[JsonValue]) -> bool:
    """Return whether one union may have these branches."""
    names = [
        branch
        if isinstance(branch, str)
        else (branch["type"], branch.get("namespace"), branch["name"])
        if "name" in branch
        else branch["type"]
        for branch in branches
    ]
    return len(set(names)) == len(names)


def damage_payload(maker: Maker, payload: bytes) -> bytes:
    """The payload with one thing wrong: cut, a byte changed or put in, something behind it; or nothing."""
    pick = maker.random
    if not payload:
        return payload
    at = pick.randrange(len(payload))
    match pick.randrange(5):
        case 0:
            return payload[:at]
        case 1:
            return payload[:at] + bytes([pick.randrange(256)]) + payload[at + 1 :]
        case 2:
            return payload[:at] + b"\xff" * pick.randrange(1, 12) + payload[at:]
        case 3:
            return payload + pick.randbytes(3)
    return payload


def for_fastavro(schema: JsonValue, value: Any) -> Any:
    """A value as fastavro takes it: a union's branch by name."""
    if isinstance(schema, list):
        if value is None:
            return None
        others = [branch for branch in schema if branch != "null"]
        if len(others) == 1:
            return for_fastavro(others[0], value)
        number = next(number for number in range(len(others)) if value[f"member{number}"] is not None)
        branch = others[number]
        name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        return name, for_fastavro(branch, value[f"member{number}"])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {part["name"]: for_fastavro(part["type"], value[part["name"]]) for part in schema["fields"]}
    if kind == "array":
        return [for_fastavro(schema["items"], item) for item in value]
    if kind == "map":
        return {key: for_fastavro(schema["values"], item) for key, item in value.items()}
    return value
