"""Random pairs of Avro definitions: one and its evolution, with other units, scales, digits and types of some values."""

from __future__ import annotations

import copy

from random_avro import JsonValue, Maker

LEAVES: tuple[JsonValue, ...] = (
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "int", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "time-micros"},
    *(
        {"type": "long", "logicalType": f"{kind}timestamp-{unit}"}
        for kind in ("", "local-")
        for unit in ("millis", "micros")
    ),
    *(
        {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        for precision, scale in ((9, 2), (12, 2), (9, 3), (0, 0))
    ),
    {"type": "string", "logicalType": "uuid"},
)
"""The types that a field of the reader changes to: other units, scales and digits, promotions, and invalid logical types."""


def change_meanings(maker: Maker, schema: JsonValue) -> JsonValue:
    """Replace some values of a definition by values of another type or logical type."""
    pick = maker.random
    if isinstance(schema, list):
        return schema
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        # A default would have to change with its type.
        fields = [
            part if "default" in part else part | {"type": change_meanings(maker, part["type"])}
            for part in schema["fields"]
        ]
        return schema | {"fields": fields}
    if kind in ("array", "map"):
        key = "items" if kind == "array" else "values"
        return schema | {key: change_meanings(maker, schema[key])}
    if kind in ("int", "long", "float", "double", "bytes", "string") and pick.random() < 0.3:
        return copy.deepcopy(pick.choice(LEAVES))
    return schema


def make_pair(seed: int) -> tuple[Maker, JsonValue, JsonValue]:
    """Return a maker of values, the writer's definition, and the reader's; either may be the older one."""
    maker = Maker(seed)
    # Few fields, so that many pairs have no finding.
    before = maker.record(2)
    before["fields"] = before["fields"][: maker.random.choice((1, 2, 3))]
    after = change_meanings(maker, maker.evolve_schema(before))
    return (maker, before, after) if maker.random.random() < 0.8 else (maker, after, before)
