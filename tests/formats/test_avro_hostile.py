"""Definitions that are made to exhaust their reader end in a verdict or one clear error, within fixed memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hostile_definitions import PAIRS, SELF, chain, make_bomb, make_enum, make_optional, make_record, make_union, record

from schemactl.cli.compare import _judge_request
from schemactl.core.findings import Breakage, Direction, Outcome
from schemactl.core.schema import Release
from schemactl.formats.avro import compatibility
from schemactl.formats.avro.compatibility import find_incompatibilities
from schemactl.formats.avro.explanation import explain
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.sample_messages import MAX_VALUES, compute_least_sizes, list_candidates

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("hostile_definitions.py")
LONGEST_REASON = 3_000


@pytest.fixture(scope="module")
def outcomes_by_pair() -> dict[str, dict[str, Any]]:
    """The outcome of each pair, judged in a separate process."""
    done = subprocess.run([sys.executable, str(PROGRAM), *PAIRS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(zip(PAIRS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_a_hostile_pair_is_judged(outcomes_by_pair: dict[str, dict[str, Any]], name: str) -> None:
    outcome = outcomes_by_pair[name]
    assert "ended" not in outcome
    assert outcome["broker"] in [*Outcome]
    # Every release rejects an invalid definition with a reason; every other definition has a verdict on data.
    assert (outcome["found"] is None) is ("invalid" in outcome)
    if outcome["found"] is None:
        assert all(outcome[f"rejected by {release}"] for release in Release)
    assert outcome["longest"] < LONGEST_REASON


def test_a_smallest_message_is_counted_before_it_is_made() -> None:
    schema = parse(make_bomb(60, 10, "int"), Release.R4_0)
    assert compute_least_sizes(schema)[schema][0] > 10**60
    assert list(list_candidates(schema)) == []


def test_messages_stay_small_in_a_chain_of_records() -> None:
    assert list(list_candidates(parse(chain(MAX_VALUES, "int"), Release.R4_0))) == []
    assert len(list(list_candidates(parse(make_enum(0, 3), Release.R4_0)))) == 3


def test_compare_answers_a_line_of_hostile_definitions() -> None:
    new, old = PAIRS["recursive unions"]()
    existing, proposed = [{"type": "AVRO", "schema": old}], {"type": "AVRO", "schema": new}
    request = {"strategy": "FULL", "existing": existing, "new": proposed}
    answer = _judge_request(request, release=Release.R4_0)
    assert (answer["broker"], answer["data"]) == ("incompatible", "breaking")


def test_lone_surrogate_is_shown_escaped() -> None:
    line = json.dumps({"id": "7", "schema": '{"type": "record", "name": "\\ud800", "fields": []}'})
    command = [sys.executable, "-m", "schemactl", "compare", "--fingerprint"]
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["error"].startswith('the name is "\ud800"')


@pytest.mark.parametrize(
    "pair",
    [
        lambda size: (make_record(size, "int"), make_record(size, "string")),
        lambda size: (make_union(size // 2, size), make_union(0, size)),
        lambda size: (chain(size, "int"), chain(size, "string")),
        lambda size: (make_enum(size // 2, size), make_enum(0, size)),
    ],
    ids=["fields", "branches", "a chain", "symbols"],
)
def test_twice_the_size_takes_about_twice_the_steps(
    pair: Callable[[int], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compatibility, "MAX_BRANCHES", 0)
    small, large = (count_steps(partial(explain_all, *pair(size))) for size in (150, 300))
    assert large < 2.6 * small


def test_one_reason_in_a_chain_of_unions_takes_steps_for_each_level() -> None:
    pairs = [(chain(size, "int", make_optional), chain(size, "string", make_optional)) for size in (150, 300)]
    small, large = (count_steps(partial(explain_all, *pair, at_most=1)) for pair in pairs)
    assert large < 2.6 * small


def explain_all(reader: str, writer: str, at_most: int | None = None) -> None:
    new, old = (parse(text, Release.R5_0) for text in (reader, writer))
    for incompatibility in find_incompatibilities(reader=new, writer=old)[:at_most]:
        explain(Breakage(incompatibility, "new_reads_old", 0), new=new, old=old)


def count_steps(call: Callable[[], object]) -> int:
    """Count the function calls of `call`, and the steps of its generators."""
    count = 0

    def count_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_event)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "type_", [json.loads(SELF % ""), json.loads(make_bomb(60, 2, "int"))], ids=["endless", "2^60 values"]
)
@pytest.mark.parametrize("direction", ["new_reads_old", "old_reads_new"])
def test_no_default_is_suggested_that_is_endless_or_large(type_: Any, direction: Direction) -> None:
    without, with_it = json.dumps(record("R", {})), json.dumps(record("R", {"added": type_}))
    reader, writer = (parse(text, Release.R5_0) for text in (with_it, without))
    (incompatibility,) = find_incompatibilities(reader=reader, writer=writer)
    new, old = (reader, writer) if direction == "new_reads_old" else (writer, reader)
    fix = explain(Breakage(incompatibility, direction, 0), new=new, old=old).fix
    assert fix in (
        'make it a union with null first, and "default": null.',
        "keep the field; it can be removed once every reader's schema has a default for it.",
    )
