"""Definitions made to exhaust whoever reads them end in a verdict or one clear error, within fixed memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hostile_definitions import PAIRS, bomb, chain, fields, symbols

from schemactl.cli.compare import _verdicts
from schemactl.formats.avro.explanation import explain
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.resolution import incompatibilities
from schemactl.formats.avro.sample import MAX_VALUES, candidates, least_messages
from schemactl.model import Release
from schemactl.verdicts import Breakage, Outcome

PROGRAM = Path(__file__).with_name("hostile_definitions.py")
LONGEST_REASON = 3_000


@pytest.mark.parametrize("name", PAIRS)
def test_a_hostile_pair_is_judged(name: str) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["broker"] in [*Outcome]
    # What does not parse is refused by every release, with a reason; everything else has a verdict on data.
    assert (said["found"] is None) is ("invalid" in said)
    if said["found"] is None:
        assert all(said[f"refused by {release}"] for release in Release)
    assert said["longest"] < LONGEST_REASON


def test_a_smallest_message_is_counted_before_it_is_made() -> None:
    schema = parse(bomb(60, 10, "int"), Release.R4_0)
    assert least_messages(schema)[schema][0] > 10**60
    assert list(candidates(schema)) == []


def test_messages_stay_small_in_a_chain_of_records() -> None:
    assert list(candidates(parse(chain(MAX_VALUES, "int"), Release.R4_0))) == []
    assert len(list(candidates(parse(symbols(0, 3), Release.R4_0)))) == 3


def test_compare_answers_a_line_of_hostile_definitions() -> None:
    new, old = PAIRS["recursive unions"]()
    request = {
        "strategy": "FULL",
        "existing": [{"type": "AVRO", "schema": old}],
        "new": {"type": "AVRO", "schema": new},
    }
    answer = _verdicts(request, release=Release.R4_0)
    assert (answer["broker"], answer["data"]) == ("incompatible", "breaking")


def test_half_a_surrogate_pair_is_told_as_it_is_escaped() -> None:
    line = json.dumps({"id": "7", "schema": '{"type": "record", "name": "\\ud800", "fields": []}'})
    command = [sys.executable, "-m", "schemactl", "compare", "--fingerprint"]
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["error"].startswith('the name is "\ud800"')


def test_each_of_many_reasons_is_explained_in_its_own_time() -> None:
    new, old = (parse(fields(20_000, kind), Release.R5_0) for kind in ("int", "string"))
    started_s = time.process_time()
    for found in incompatibilities(reader=new, writer=old):
        explain(Breakage(found, "new_reads_old", 0), new=new, old=old)
    assert time.process_time() - started_s < 20
