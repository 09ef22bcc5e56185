"""What a schema is made of tells schemas apart as equality does."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from schema_strategies import evolutions

from schemactl.errors import InvalidSchema
from schemactl.formats import identity
from schemactl.history.fingerprints import fingerprint
from schemactl.model import SchemaInfo, SchemaType

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parent.parent / "corpus"


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
