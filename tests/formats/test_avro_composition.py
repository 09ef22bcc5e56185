"""What a schema is made of tells schemas apart as equality does, and is seen without the parser where that is possible."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from schema_strategies import evolutions, schemas

from schemactl.errors import InvalidSchema
from schemactl.formats import identity
from schemactl.formats.avro import parsed_by_any
from schemactl.formats.avro.composition import composition, plain_composition
from schemactl.history.fingerprints import fingerprint
from schemactl.model import SchemaInfo, SchemaType

CORPUS = Path(__file__).parent.parent / "corpus"


def recorded() -> Iterator[str]:
    """The text of every definition in the recorded cases, some of which no release accepts."""
    for name in ("avro_public", "avro_chains_public", "avro_pcf_public"):
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                for key in ("reader", "writer", "new", "schema"):
                    if key in row:
                        yield json.dumps(row[key])
                yield from map(json.dumps, row.get("existing", ()))


def test_what_is_seen_without_the_parser_is_what_the_parser_sees() -> None:
    plain = 0
    for text in set(recorded()):
        found = plain_composition(text, json.loads(text))
        if found:
            plain += 1
            assert found[0] == composition(parsed_by_any(text.encode())), text
    assert plain > 5_000


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_any_definition_seen_without_the_parser_is_seen_right(definition: Any) -> None:
    text = json.dumps(definition)
    found = plain_composition(text, definition)
    assert found is None or found[0] == composition(parsed_by_any(text.encode()))


def same(one: str, other: str) -> bool:
    """Whether two definitions are one version."""
    infos = [SchemaInfo(SchemaType.AVRO, text.encode()) for text in (one, other)]
    is_same = identity(infos[0]) == identity(infos[1])
    assert (fingerprint(infos[0]) == fingerprint(infos[1])) == is_same
    return is_same


@settings(max_examples=150, deadline=None)
@given(evolutions())
def test_digests_are_equal_exactly_where_versions_are(pair: tuple[Any, Any]) -> None:
    same(*map(json.dumps, pair))


def test_recorded_definitions_of_one_name_have_equal_digests_exactly_where_they_are_one_version() -> None:
    pairs = 0
    with gzip.open(CORPUS / "avro_chains_public.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, list(lines)[::4]):
            texts = [*map(json.dumps, row["existing"]), json.dumps(row["new"])]
            for one, other in pairwise(texts):
                try:
                    pairs += not same(one, other)
                except InvalidSchema:
                    continue
    assert pairs > 100


RECORD = '{"type": "record", "name": "R", "fields": [%s]}'


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"name": "a", "type": "int", "default": 1}', '{"name": "a", "type": "int", "default": 1.0}', False),
        ('{"name": "a", "type": "int"}', '{"name": "a", "type": {"type": "int"}}', True),
        ('{"name": "a", "type": "int"}', '{"name": "a", "type": "int", "doc": "x"}', True),
        ('{"name": "a", "type": "int"}', '{"name": "a", "type": "int", "order": "ascending"}', True),
        ('{"name": "a", "type": "int"}', '{"name": "a", "type": "int", "order": "ignore"}', False),
        ('{"name": "a", "type": "int"}', '{"name": "a", "type": "int", "x": 1}', False),
        (
            '{"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["X"]}}, {"name": "b", "type": "E"}',
            '{"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}}, {"name": "b", "type": "E"}',
            False,
        ),
        (
            '{"name": "a", "type": {"type": "fixed", "name": "F", "size": 2}}, {"name": "b", "type": "F"}',
            '{"name": "a", "type": {"type": "fixed", "name": "F", "namespace": "", "size": 2}}, {"name": "b", "type": "F"}',
            True,
        ),
        (
            '{"name": "a", "type": ["null", "R"]}',
            '{"name": "a", "type": ["null", "int"]}',
            False,
        ),
        (
            '{"name": "a", "type": "double", "default": "1"}',
            '{"name": "a", "type": "double", "default": 1.0}',
            True,
        ),
    ],
)
def test_close_cases(*, one: str, other: str, is_same: bool) -> None:
    assert same(RECORD % one, RECORD % other) == is_same


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "type": "int"}, {"name": "a", "type": "long"}',
        '{"name": "a,b", "type": "int"}',
        '{"name": "", "type": "int"}',
        '{"name": "a", "type": ["int", "int"]}',
        '{"name": "a", "type": []}',
        '{"name": "a", "type": [["null"], "int"]}',
        '{"name": "a", "type": "Elsewhere"}',
        '{"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["X", "X"]}}',
        '{"name": "a", "type": {"type": "fixed", "name": "F", "size": true}}',
        '{"name": "a", "type": {"type": "fixed", "name": "F", "size": 2.0}}',
        '{"name": "a", "type": "int", "aliases": [1]}',
        '{"name": "a", "type": "int", "default": 1%s}' % ("0" * 300),
        '{"name": "a"}',
        "1",
        "[]",
    ],
)
def test_what_is_not_usual_is_left_to_the_parser(text: str) -> None:
    text = RECORD % text
    assert plain_composition(text, json.loads(text)) is None


def test_types_of_other_files_may_be_used_and_not_defined_again() -> None:
    text = RECORD % '{"name": "a", "type": "x.Money"}'
    found = plain_composition(text, json.loads(text), {"x.Money"})
    assert found
    assert found[0].types["R"].uses == {"x.Money"}
    again = RECORD % '{"name": "a", "type": {"type": "enum", "name": "x.Money", "symbols": []}}'
    assert plain_composition(again, json.loads(again), {"x.Money"}) is None
