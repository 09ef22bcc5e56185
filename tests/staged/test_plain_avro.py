"""Avro of the plain kind: what is read, taken for equal or let pass on sight, the engine sees the same way, and brokers, too."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl import broker
from schemactl.formats import identity, problems, resolve
from schemactl.model import CompatibilityStrategy, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.staged.avro import Definition, NotPlain, Outline, joined, known, parse
from schemactl.verdicts import Outcome

TESTS = Path(__file__).parent.parent
sys.path.append(str(TESTS / "formats"))

from schema_strategies import evolutions, schemas  # noqa: E402  it lies in another folder of tests

S = CompatibilityStrategy
FINE = (Outcome.OK, Outcome.UNCHANGED)


def definition(value: Any, references: Sequence[Any] = ()) -> Definition:
    """The definition that `value` is, with the types that it takes from `references`."""
    outlines = [Outline(each) for each in references]
    return joined(Outline(value, known(outlines)), outlines)


def plain(text: str) -> Definition | None:
    """The definition; None where it is not of the plain kind."""
    try:
        return definition(parse(text))
    except NotPlain:
        return None


def agree(one: str, other: str) -> bool:
    """Whether both are plain; then everything said of them on sight has been compared with what the engine says."""
    reader, writer = plain(one), plain(other)
    infos = [SchemaInfo(SchemaType.AVRO, text.encode()) for text in (one, other)]
    for seen, info in zip((reader, writer), infos, strict=True):
        if seen:
            assert [list(problems(info, release)) for release in Release] == [[], [], []]
    if reader is None or writer is None:
        return False
    if reader != writer:
        assert identity(infos[0]) != identity(infos[1])
    if reader.reads(writer):
        assert list(resolve(reader=infos[0], writer=infos[1])) == []
        for release in Release:
            for strategy, old, new in ((S.BACKWARD_TRANSITIVE, 1, 0), (S.FORWARD_TRANSITIVE, 0, 1)):
                answer = broker.put([SchemaVersion(0, infos[old])], infos[new], strategy, release)
                assert answer.outcome in FINE
    return True


@settings(max_examples=150, deadline=None)
@given(evolutions())
def test_changes_of_any_schema_are_seen_as_the_engine_sees_them(made: tuple[Any, Any]) -> None:
    before, after = map(json.dumps, made)
    agree(after, before)
    agree(before, after)


@settings(max_examples=100, deadline=None)
@given(schemas(), st.data())
def test_nothing_that_is_damaged_is_read_as_plain(made: Any, data: st.DataObject) -> None:
    text = json.dumps(made)
    at = data.draw(st.integers(0, len(text)))
    damaged = (
        text[:at] + data.draw(st.sampled_from(["", '"', "-", "x", "0", "null", "\\u0041"])) + text[at + 1 :]
    )
    if plain(damaged):
        info = SchemaInfo(SchemaType.AVRO, damaged.encode())
        assert [list(problems(info, release)) for release in Release] == [[], [], []]


def recorded() -> Iterator[tuple[str, str]]:
    """Pairs of real definitions, the reader first."""
    for name, step in (("avro_public", 25), ("avro_chains_public", 8)):
        with gzip.open(TESTS / "corpus" / f"{name}.jsonl.gz") as file:
            for row in list(map(json.loads, file))[::step]:
                if "reader" in row:
                    yield json.dumps(row["reader"]), json.dumps(row["writer"])
                for old in row.get("existing", ()):
                    yield json.dumps(row["new"]), json.dumps(old)


def test_recorded_pairs_are_seen_as_the_engine_sees_them() -> None:
    assert sum(agree(one, other) for one, other in recorded()) > 50


RECORD = '{"type": "record", "name": "A", "namespace": "a", "fields": [%s]}'
ID = '{"name": "id", "type": "long"}'


@pytest.mark.parametrize(
    "added",
    [
        '{"name": "b", "type": ["null", "string"], "default": null}',
        '{"name": "b", "type": "int", "default": 0, "doc": "why"}',
        '{"name": "b", "type": "double", "default": 0.5}',
        '{"name": "b", "type": {"type": "array", "items": "string"}, "default": []}',
        '{"name": "b", "type": {"type": "map", "values": "long"}, "default": {}}',
        '{"name": "b", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": null}',
        '{"name": "b", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "default": "Y"}',
        '{"name": "b", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}], "default": null}',
        '{"name": "b", "type": ["null", {"type": "fixed", "name": "F", "size": 4}], "default": null}',
    ],
)
def test_what_teams_add_most_is_let_pass(added: str) -> None:
    before, after = RECORD % ID, RECORD % f"{ID}, {added}"
    old, new = plain(before), plain(after)
    assert old
    assert new
    assert old != new
    assert old.reads(new)
    assert new.reads(old)
    assert agree(after, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ID, f'{ID}, {{"name": "b", "type": "int"}}'),
        (ID, '{"name": "id", "type": "string"}'),
        (ID, '{"name": "id", "type": {"type": "long", "logicalType": "timestamp-millis"}}'),
        (
            '{"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}}',
            '{"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}}',
        ),
        (
            '{"name": "b", "type": {"type": "record", "name": "B", "fields": [{"name": "c", "type": "int"}]}, "default": null}',
            ID,
        ),
    ],
)
def test_what_breaks_somebody_is_not_let_pass(before: str, after: str) -> None:
    old, new = plain(RECORD % before), plain(RECORD % after)
    assert old is None or new is None or not new.reads(old)


def test_a_type_is_compared_wherever_it_is_defined() -> None:
    inner = '{"type": "record", "name": "B", "fields": [{"name": "c", "type": "%s"}]}'
    before = RECORD % f'{{"name": "gone", "type": {inner % "int"}}}, {{"name": "b", "type": "B"}}'
    after = RECORD % f'{{"name": "new", "type": {inner % "string"}}}, {{"name": "b", "type": "B"}}'
    old, new = plain(before), plain(after)
    assert old
    assert new
    assert not old.reads(new)


def test_types_of_other_files_are_as_if_they_stood_in_the_definition() -> None:
    money = parse(
        '{"type": "record", "name": "Money", "namespace": "a", "fields": [{"name": "amount", "type": "long"}]}'
    )
    using = parse(RECORD % '{"name": "total", "type": "Money"}, {"name": "tax", "type": "a.Money"}')
    inlined = plain(
        RECORD % f'{{"name": "total", "type": {json.dumps(money)}}}, {{"name": "tax", "type": "Money"}}'
    )
    assert definition(using, [money]) == inlined
    for value, references in ((using, []), (parse(RECORD % ID), [money]), (using, [money, money])):
        with pytest.raises(NotPlain):
            definition(value, references)
