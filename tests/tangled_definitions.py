"""Definitions whose types contain each other so often that, written out at each use, they are too large for any memory."""

from __future__ import annotations

import json
from typing import Any


def make_mutual_records(count: int = 9) -> dict[str, Any]:
    """Records that each have an optional field of every record, also of themselves."""
    defined = set()

    def make_record(number: int) -> dict[str, Any]:
        defined.add(number)
        fields = []
        for other in range(count):
            record = f"R{other}" if other in defined else make_record(other)
            fields.append({"name": f"f{other}", "type": ["null", record], "default": None})
        return {"type": "record", "name": f"R{number}", "fields": fields}

    return make_record(0)


def make_mutual_lists(count: int = 9) -> dict[str, Any]:
    """Records that each have a list and a map of every record."""
    defined = set()

    def make_record(number: int) -> dict[str, Any]:
        defined.add(number)
        fields = []
        for other in range(count):
            record = f"R{other}" if other in defined else make_record(other)
            fields.append({"name": f"list{other}", "type": {"type": "array", "items": record}})
            fields.append({"name": f"map{other}", "type": {"type": "map", "values": f"R{other}"}})
        return {"type": "record", "name": f"R{number}", "fields": fields}

    return make_record(0)


def make_doubled_records(levels: int = 40) -> dict[str, Any]:
    """Records without recursion that each have the next one twice."""
    schema: Any = "int"
    name = "int"
    for level in range(levels):
        fields = [{"name": "a", "type": ["null", schema]}, {"name": "b", "type": ["null", name]}]
        name = f"D{level}"
        schema = {"type": "record", "name": name, "fields": fields}
    return dict(schema)


def make_nested_arrays(levels: int = 60) -> dict[str, Any]:
    """A record with arrays inside of each other."""
    schema: Any = "int"
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return {"type": "record", "name": "Arrays", "fields": [{"name": "field", "type": schema}]}


TANGLED_AVRO = {
    "mutual records": make_mutual_records(),
    "mutual lists": make_mutual_lists(),
    "doubled records": make_doubled_records(),
    "nested arrays": make_nested_arrays(),
}

TANGLED_PROTO = 'syntax = "proto3";\npackage t;\n' + "".join(
    f"message M{number} {{ int32 v = 1; "
    + "".join(f"M{other} f{other} = {other + 2}; repeated M{other} l{other} = {other + 20}; " for other in range(9))
    + "}\n"
    for number in range(9)
)
"""Messages that each have a field and a list of every message; the root is `t.M0`."""


def dump_avro(name: str) -> str:
    """Return the text of a definition of `TANGLED_AVRO`."""
    return json.dumps(TANGLED_AVRO[name])
