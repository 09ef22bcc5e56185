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


_WIDER: dict[str, JsonValue] = {
    "int": ["null", "double"],
    "long": "float",
    "float": "double",
    "string": "bytes",
    "bytes": ["string", "null"],
    "boolean": ["int", "boolean"],
}


class Maker:
    """Schemas and values from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self._names = 0

    def record(self, depth: int = 3) -> JsonValue:
        """A record schema of up to six fields."""
        fields = [
            {"name": f"f{number}", "type": self.schema(depth - 1)}
            for number in range(self.random.randrange(1, 6))
        ]
        return {"type": "record", "name": self._name("R"), "fields": fields}

    def schema(self, depth: int) -> JsonValue:
        """Any schema."""
        simple: list[Callable[[], JsonValue]] = [
            lambda: self.random.choice(_PRIMITIVES),
            lambda: self.random.choice(_PRIMITIVES),
            lambda: dict(self.random.choice(_LOGICAL)),
            lambda: {"type": "enum", "name": self._name("E"), "symbols": ["A", "B", "C"]},
            self._fixed,
        ]
        nested: list[Callable[[], JsonValue]] = [
            lambda: self.record(depth),
            lambda: {"type": "array", "items": self.schema(depth - 1)},
            lambda: {"type": "map", "values": self.schema(depth - 1)},
            lambda: self.random.sample(["null", self._branch(depth)], 2),
            lambda: self.random.sample(["null", self._branch(depth)], 2),
            lambda: self._union(depth),
        ]
        made: JsonValue = self.random.choice(simple + (nested if depth > 0 else []))()
        return made

    def value(self, schema: JsonValue) -> Any:
        """A value of the schema, as decoding gives it."""
        if isinstance(schema, list):
            return self._union_value(schema)
        kind = schema if isinstance(schema, str) else schema["type"]
        pick = self.random
        match kind:
            case "record":
                return {part["name"]: self.value(part["type"]) for part in schema["fields"]}
            case "array":
                return [self.value(schema["items"]) for _ in range(pick.choice((0, 1, 2, 5)))]
            case "map":
                return {pick.choice(_TEXTS): self.value(schema["values"]) for _ in range(pick.randrange(4))}
            case "fixed" if "logicalType" not in schema:
                return pick.randbytes(schema["size"])
            case "enum":
                return pick.choice(schema["symbols"])
        return pick.choice(_VALUES[kind]) if kind in _VALUES else self._number(kind, schema)

    def evolved(self, schema: JsonValue) -> JsonValue:
        """Another version of a record schema: compatible or not."""
        kept = [part for part in schema["fields"] if self.random.random() < 0.9]
        fields = [self._evolved_field(dict(part)) for part in kept]
        if self.random.random() < 0.3:
            fields.append({"name": "added", "type": {"type": "array", "items": "int"}, "default": [1, 2]})
        self.random.shuffle(fields)
        return schema | {"fields": fields}

    def _evolved_field(self, part: dict[str, Any]) -> dict[str, Any]:
        kind = part["type"]
        match self.random.randrange(8):
            case 0:
                part |= {"name": f"{part['name']}x", "aliases": [part["name"]]}
            case 1 if not isinstance(kind, list):
                part["type"] = self.random.sample(["null", kind], 2)
            case 2 if isinstance(kind, list):
                part["type"] = self.random.sample(kind, len(kind))
            case 3:
                part["type"] = _WIDER.get(str(kind), kind)
            case 4 if isinstance(kind, dict) and kind["type"] == "enum":
                default = {"default": "A"} if self.random.random() < 0.5 else {}
                part["type"] = kind | {"symbols": ["B", "A"]} | default
            case 5 if isinstance(kind, dict) and kind["type"] == "record":
                part["type"] = self.evolved(kind)
            case 6:
                part["type"] = self.schema(1)
        return part

    def _number(self, kind: str, schema: JsonValue) -> Any:
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
            case "local-timestamp-micros":
                return datetime(1970, 1, 1) + seconds  # noqa: DTZ001  a local timestamp
            case "decimal":
                digits = schema["precision"]
                bound = 10 ** pick.choice((1, digits // 2, digits))
                # Through text, so that no context rounds it.
                return Decimal(f"{pick.randrange(-bound + 1, bound)}E-{schema['scale']}")
        if kind == "bytes":
            return pick.randbytes(pick.choice((0, 1, 20)))
        bits = 31 if kind == "int" else 63
        return pick.choice(
            (0, -1, 63, 64, -64, -65, 2**bits - 1, -(2**bits), pick.randrange(-(2**bits), 2**bits))
        )

    def _branch(self, depth: int) -> JsonValue:
        while True:
            found = self.schema(depth - 1)
            if not isinstance(found, list):
                return found

    def _union(self, depth: int) -> JsonValue:
        branches: list[JsonValue] = []
        for _ in range(self.random.randrange(2, 5)):
            branch = self.random.choice(
                ("null", "boolean", "long", "double", "string", self.record(depth - 1), "bytes")
            )
            if branch not in branches:
                branches.append(branch)
        return branches

    def _union_value(self, branches: list[JsonValue]) -> Any:
        branch = self.random.choice(branches)
        if branch == "null":
            return None
        others = [other for other in branches if other != "null"]
        value = self.value(branch)
        if len(others) == 1:
            return value
        return {f"member{number}": value if other is branch else None for number, other in enumerate(others)}

    def _fixed(self) -> JsonValue:
        size = self.random.choice((1, 5, 16, 20))
        schema: dict[str, Any] = {"type": "fixed", "name": self._name("X"), "size": size}
        if size > 1 and self.random.random() < 0.5:
            schema |= {"logicalType": "decimal", "precision": 11, "scale": 2}
        return schema

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def damage(maker: Maker, payload: bytes) -> bytes:
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
        name = branch if isinstance(branch, str) else branch["name"]
        return name, for_fastavro(branch, value[f"member{number}"])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {part["name"]: for_fastavro(part["type"], value[part["name"]]) for part in schema["fields"]}
    if kind == "array":
        return [for_fastavro(schema["items"], item) for item in value]
    if kind == "map":
        return {key: for_fastavro(schema["values"], item) for key, item in value.items()}
    return value
