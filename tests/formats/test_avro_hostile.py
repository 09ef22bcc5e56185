"""Definitions that are made to exhaust their reader end in a verdict or one clear error, within fixed memory.

    python tests/formats/test_avro_hostile.py NAME...

prints the outcomes of each pair as a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from schemactl import compare, formats
from schemactl.cli.compare import _judge_request
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, DataState, Direction, Outcome
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.avro.compatibility import find_incompatibilities
from schemactl.formats.avro.explanation import explain
from schemactl.formats.avro.json_text import canonical_form, schema_fingerprints
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.sample_messages import MAX_VALUES, compute_least_sizes, list_candidates
from schemactl.formats.part_changes import list_changes

pytestmark = pytest.mark.slow

Json = Any

MEMORY_BYTES = 1_500 << 20
CPU_S = 300
"""A safety net, far above the need of any pair on a slow machine; without bounds, they would take hours or never end."""

LONGEST_REASON = 3_000

LARGER = 20 if "SCHEMACTL_EXAMPLES" in os.environ else 1
"""How many times as large the largest definitions are in a long run."""


def keep_type(type_: Json) -> Json:
    return type_


def make_optional(type_: Json) -> Json:
    return ["null", type_]


def array_of(type_: Json) -> Json:
    return {"type": "array", "items": type_}


def nest_type(kind: str, key: str, levels: int, leaf: str) -> str:
    return f'{{"type":"{kind}","{key}":' * levels + f'"{leaf}"' + "}" * levels


def nested_records(levels: int, leaf: str) -> str:
    text = f'"{leaf}"'
    for level in range(levels):
        text = f'{{"type":"record","name":"R{level}","fields":[{{"name":"f","type":{text}}}]}}'
    return text


def record(name: str, fields: dict[str, Json]) -> Json:
    items = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": items}


def chain(levels: int, leaf: str, wrap: Callable[[Json], Json] = keep_type) -> str:
    """Return records that each have a field of the one before it, by name."""
    return make_bomb(levels, 1, leaf, wrap)


def make_bomb(levels: int, width: int, leaf: str, wrap: Callable[[Json], Json] = keep_type) -> str:
    """Return records that each have `width` fields of the one before it: `width ** levels` values in one message."""
    records = (
        record(f"B{level}", {f"x{field}": wrap(f"B{level - 1}") if level else leaf for field in range(width)})
        for level in range(levels)
    )
    return json.dumps(record("Root", {f"f{level}": definition for level, definition in enumerate(records)}))


def make_tangle(count: int, leaf: str) -> str:
    """Return records that can each contain any other."""
    inner = [
        record(f"U{number}", {"next": ["null", *(f"U{other}" for other in range(number + 1))], "v": leaf})
        for number in range(count)
    ]
    return json.dumps(record("Root", {"u": ["null", *inner]}))


def make_enum(first: int, count: int) -> str:
    return json.dumps({"type": "enum", "name": "E", "symbols": [f"S{at}" for at in range(first, count)]})


def make_record(count: int, type_: str) -> str:
    return json.dumps(record("R", {f"f{at}": type_ for at in range(count)}))


def make_union(first: int, count: int) -> str:
    return json.dumps(record("R", {"u": [record(f"B{at}", {"x": "int"}) for at in range(first, count)]}))


def deep_default(levels: int) -> str:
    default = "[" * levels + "]" * levels
    return f'{{"type":"record","name":"R","fields":[{{"name":"d","type":{{"type":"array","items":"int"}},"default":{default}}}]}}'


EMPTY = '{"type":"record","name":"R","fields":[]}'
ENDLESS = (
    '{"type":"record","name":"D","fields":[{"name":"d","default":{},"type":{"type":"record","name":"C","fields":'
    '[{"name":"c","type":{"type":"map","values":"C"},"default":{"a":{}}}]}}]}'
)
SELF = '{"type":"record","name":"S","fields":[{"name":"s","type":"S"}%s]}'

PAIRS: dict[str, Callable[[], tuple[str, str]]] = {
    "10,000 arrays": lambda: (nest_type("array", "items", 10_000, "int"), '"int"'),
    "240 arrays": lambda: (nest_type("array", "items", 240, "int"), nest_type("array", "items", 240, "string")),
    "240 maps": lambda: (nest_type("map", "values", 240, "int"), nest_type("map", "values", 240, "string")),
    "10,000 records": lambda: (nested_records(10_000, "int"), '"int"'),
    "80 records": lambda: (nested_records(80, "int"), nested_records(80, "string")),
    "100,000 brackets": lambda: ("[" * 100_000 + "]" * 100_000, '"int"'),
    "100,000 braces": lambda: ('{"a":' * 100_000 + "1" + "}" * 100_000, '"int"'),
    # More than Python's limit on recursion.
    "a long chain": lambda: (chain(1_000 * LARGER, "int"), chain(1_000 * LARGER, "string")),
    "a long chain of unions": lambda: (
        chain(750 * LARGER, "int", make_optional),
        chain(750 * LARGER, "string", make_optional),
    ),
    "2^60 values": lambda: (make_bomb(60, 2, "int"), make_bomb(60, 2, "string")),
    "10^60 values": lambda: (make_bomb(60, 10, "int"), make_bomb(60, 10, "null")),
    "10^60 optional values": lambda: (
        make_bomb(60, 10, "int", make_optional),
        make_bomb(60, 10, "string", make_optional),
    ),
    "10^60 listed values": lambda: (make_bomb(60, 10, "int", array_of), make_bomb(60, 10, "string", array_of)),
    "recursive unions": lambda: (make_tangle(40, "int"), make_tangle(40, "string")),
    "many symbols": lambda: (make_enum(2_500 * LARGER, 5_000 * LARGER), make_enum(0, 5_000 * LARGER)),
    "many fields": lambda: (make_record(5_000 * LARGER, "int"), make_record(5_000 * LARGER, "string")),
    "many branches": lambda: (make_union(250 * LARGER, 500 * LARGER), make_union(0, 500 * LARGER)),
    "5 MB of doc": lambda: (json.dumps({**json.loads(EMPTY), "doc": "x" * 5_000_000}), make_record(1, "int")),
    "a default of 240 arrays": lambda: (deep_default(240), EMPTY),
    "a default of 10,000 arrays": lambda: (deep_default(10_000), EMPTY),
    "a default that never ends": lambda: (ENDLESS, EMPTY),
    "a property of 240 arrays": lambda: ('{"type":"int","p":' + "[" * 240 + "]" * 240 + "}", '"string"'),
    "a record that must contain itself": lambda: (SELF % "", SELF % ',{"name":"t","type":"int"}'),
}


def judge_pair(reader: str, writer: str) -> dict[str, Any]:
    """Return the outcome of every function that reads a definition for a pair; an unexpected error ends the process."""
    new, old = (SchemaInfo(SchemaType.AVRO, text.encode()) for text in (reader, writer))
    outcome: dict[str, Any] = {}
    for release in Release:
        problems = [*formats.find_problems(new, release)]
        outcome[f"rejected by {release}"] = [problem.message[:80] for problem in problems[:2]]
    try:
        formats.identity(new)
        schema_fingerprints(canonical_form(parse(reader, Release.R5_0)))
        outcome["changes"] = len([*list_changes(old=old, new=new)])
    except InvalidSchema as problem:
        outcome["invalid"] = problem.message[:80]
    verdict = compare([old], new)
    outcome["broker"], outcome["test"] = verdict.broker.outcome, verdict.test.outcome
    outcome["found"] = None if verdict.state is DataState.UNPARSABLE else len(verdict.data)
    ends = verdict.data[:1] + verdict.data[-1:]
    outcome["longest"] = max((len(formats.explain(breakage, new=new, old=old).reason) for breakage in ends), default=0)
    outcome["counterexamples"] = len(
        [breakage for breakage in ends if formats.counterexample(breakage, new=new, old=old)]
    )
    return outcome


@pytest.fixture(scope="module")
def outcomes_by_pair() -> dict[str, dict[str, Any]]:
    """The outcome of each pair, judged in a separate process."""
    done = subprocess.run([sys.executable, __file__, *PAIRS], capture_output=True, text=True, check=False)
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
    ("pair", "size"),
    [
        (lambda size: (make_record(size, "int"), make_record(size, "string")), 150),
        # So many branches that most pairs are not compared one by one.
        (lambda size: (make_union(size // 2, size), make_union(0, size)), 800),
        (lambda size: (chain(size, "int"), chain(size, "string")), 150),
        (lambda size: (make_enum(size // 2, size), make_enum(0, size)), 150),
    ],
    ids=["fields", "branches", "a chain", "symbols"],
)
def test_twice_the_size_takes_about_twice_the_steps(pair: Callable[[int], tuple[str, str]], size: int) -> None:
    small, large = (count_steps(partial(explain_all, *pair(count))) for count in (size, 2 * size))
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


if __name__ == "__main__":
    # Imports on use happen once, before the processes for the pairs start.
    judge_pair('"int"', '"string"')
    for name in sys.argv[1:]:
        if child := os.fork():
            if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                print(json.dumps({"ended": code}), flush=True)  # noqa: T201
        else:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            print(json.dumps(judge_pair(*PAIRS[name]())))  # noqa: T201
            sys.exit()
