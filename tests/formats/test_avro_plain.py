"""The quick pass over plain definitions: it gives what every release's own reader gives, or nothing."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_strategies import evolutions

from schemactl.formats.avro.dialects import Avro111, Avro1120, Avro1122
from schemactl.formats.avro.plain import read_plain
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import InvalidAvro

CORPUS = Path(__file__).parents[1] / "corpus"
DIALECTS = (Avro111, Avro1120, Avro1122)
ODD_VALUES: tuple[Any, ...] = (
    *("null", "int", "record", "id", "Root", "shop.Root", ".Root", "", "$x", "é", "1a", "NaN"),
    *(None, True, -1, 1.5, 2**31, 2**70, [], {}, ["null", "int"], ["int", "int"], ["int", ["int"]]),
    *({"type": "int"}, {"type": "Root"}, {"type": "array", "items": "Root"}, {"type": "map"}),
    *(
        {"type": "enum", "name": "shop.Odd", "symbols": ["A", "A"]},
        {"type": "fixed", "name": "int", "size": 4},
    ),
    {"type": "record", "name": "Root", "namespace": "shop", "fields": [{"name": "next", "type": "Root"}]},
)
ODD_KEYS = (
    "type",
    "name",
    "namespace",
    "fields",
    "symbols",
    "items",
    "size",
    "default",
    "doc",
    "aliases",
    "order",
    "x",
)


def described(schema: Schema) -> list[Any]:
    """All that a model says, and which of its nodes are the same."""
    numbers: dict[int, int] = {}
    found: list[Any] = []
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list | tuple | dict):
            found.append((type(node), list(node) if isinstance(node, dict) else len(node)))
            todo.extend(node.values() if isinstance(node, dict) else node)
        elif not hasattr(node, "__slots__"):
            found.append((type(node), repr(node)))
        elif id(node) in numbers:
            found.append(numbers[id(node)])
        else:
            numbers[id(node)] = len(numbers)
            slots = sorted(slot for kind in type(node).__mro__ for slot in getattr(kind, "__slots__", ()))
            found.append((type(node), slots))
            todo.extend(getattr(node, slot) for slot in slots)
    return found


def reads_as_every_dialect(definition: Any) -> bool:
    """Whether the quick pass reads it; then each dialect must read the same."""
    plain = read_plain(definition)
    if plain is None:
        return False
    for dialect in DIALECTS:
        assert described(plain) == described(dialect("", definition, None).read())
    return True


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(evolutions())
def test_plain_definitions_are_read_as_every_release_reads_them(pair: tuple[Any, Any]) -> None:
    for definition in pair:
        reads_as_every_dialect(definition)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(evolutions(), st.data())
def test_odd_definitions_are_read_so_or_left_to_the_releases(
    pair: tuple[Any, Any], data: st.DataObject
) -> None:
    definition = copy.deepcopy(pair[1])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(containers(definition)))
        odd = copy.deepcopy(data.draw(st.sampled_from(ODD_VALUES)))
        if isinstance(place, dict):
            place[data.draw(st.sampled_from((*place, *ODD_KEYS)))] = odd
        else:
            place.insert(data.draw(st.integers(0, len(place))), odd)
    reads_as_every_dialect(definition)


def containers(value: Any) -> list[Any]:
    """All objects and arrays in a definition."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict | list) else []
    return own + [found for item in inner for found in containers(item)]


def test_nearly_all_recorded_definitions_are_plain() -> None:
    with gzip.open(CORPUS / "avro_public.jsonl.gz") as rows:
        definitions = [json.loads(row)["reader"] for row in rows][::4]
    plain = sum(map(reads_as_every_dialect, definitions))
    assert plain > 0.9 * len(definitions)


def record(name: str, *types: Any, **others: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": type_} for index, type_ in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **others}


@pytest.mark.parametrize(
    "definition",
    [
        # Inside shop.Item, 5.0 finds the Item without namespace, the others the one with it.
        record("Root", record("Item"), record("shop.Item", "Item")),
        # A record inside itself that 5.0 knows later, and finds from another namespace no more.
        record("Root", record("shop.Item", "Root")),
        # Defined twice alike: 4.0 refuses that.
        record("Root", *[{"type": "fixed", "name": "Id", "size": 4}] * 2),
        # Used before it is defined: 4.0 refuses that.
        record("Root", "Item", record("Item")),
        # 4.0 takes any namespace.
        record("Root", namespace="my-shop"),
        # 4.2 and 5.0 take $.
        record("Root", record("Item$")),
        # A property that 4.2 and 5.0 lose.
        record("Root", weight=2**70),
    ],
)
def test_what_the_releases_read_differently_is_left_to_them(definition: Any) -> None:
    outcomes = []
    for dialect in DIALECTS:
        try:
            outcomes.append(described(dialect("", definition, None).read()))
        except InvalidAvro as refusal:
            outcomes.append([str(refusal)])
    assert outcomes[0] != outcomes[1] or outcomes[1] != outcomes[2]
    assert read_plain(definition) is None
