"""Readers are not judged under a strategy that protects none, unless requested, and unjudged is not compatible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Printed, schemactl
from scratch import Scratch, record, write_declaration

PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: %s}\n"
RULE = "UNPROTECTED_READERS_BREAK"


def make_change(path: Path, *, strategy: str = "ALWAYS_COMPATIBLE", severities: str = "", new: str) -> Scratch:
    """Make a repository whose only topic changes to the definition `new`."""
    repository = Scratch(path / "repository")
    repository.commit(
        {
            "schemactl.yaml": PROJECT % strategy + severities,
            "namespaces/sales.yaml": "namespace: shop/sales\n",
            "namespaces/orders.yaml": write_declaration(),
            "namespaces/orders.avsc": record("id"),
        }
    )
    repository.write({"namespaces/orders.avsc": new})
    return repository


def check(repository: Scratch, *options: str, code: int = 0) -> Printed:
    return schemactl(repository.path, "check", *options, code=code)


def read_report(repository: Scratch, *options: str, code: int = 0) -> Any:
    return json.loads(check(repository, "--format", "json", *options, code=code).out)


BREAKING = record("other")
HARMLESS = record("id", more=0)


@pytest.mark.parametrize("new", [BREAKING, HARMLESS], ids=["breaking", "harmless"])
def test_what_is_not_judged_is_called_neither_compatible_nor_breaking(tmp_path: Path, new: str) -> None:
    repository = make_change(tmp_path, new=new)
    out = check(repository).out
    assert "ALWAYS_COMPATIBLE  ok            not judged" in out
    assert "all fine" not in out
    report = read_report(repository)
    assert [(topic["data"], topic["incompatibilities"]) for topic in report["topics"]] == [("not_judged", [])]
    assert report["findings"] == []


def test_strict_judges_in_both_directions_what_no_strategy_protects(tmp_path: Path) -> None:
    repository = make_change(tmp_path, new=BREAKING)
    report = read_report(repository, "--strict", code=100)
    assert [(finding["rule"], finding["severity"], finding["direction"]) for finding in report["findings"]] == [
        (RULE, "warning", "new_reads_old"),
        (RULE, "warning", "old_reads_new"),
    ]
    (topic,) = report["topics"]
    assert (topic["strategy"], topic["data"], topic["broker"]["answer"]) == ("ALWAYS_COMPATIBLE", "breaking", "ok")
    assert len(topic["incompatibilities"]) == 2
    out = check(repository, "--strict", code=100).out
    assert (
        "is ALWAYS_COMPATIBLE (the default of schemactl.yaml), which does not protect any reader. Under FULL, this finding would be"
        in out
    )
    assert "= message  {" in out
    assert "all fine" not in out


def test_strict_passes_what_every_reader_can_read(tmp_path: Path) -> None:
    report = read_report(make_change(tmp_path, new=HARMLESS), "--strict")
    assert [topic["data"] for topic in report["topics"]] == ["compatible"]


def test_a_severity_asks_in_every_run(tmp_path: Path) -> None:
    repository = make_change(tmp_path, severities=f"severities: {{{RULE}: error}}\n", new=BREAKING)
    assert read_report(repository, code=100)["errors"] == 2


def test_a_rule_that_is_off_is_not_looked_for_by_strict_either(tmp_path: Path) -> None:
    repository = make_change(tmp_path, severities=f"severities: {{{RULE}: off}}\n", new=BREAKING)
    assert [topic["data"] for topic in read_report(repository, "--strict")["topics"]] == ["not_judged"]


def test_a_change_cannot_stop_asking_without_being_seen(tmp_path: Path) -> None:
    repository = make_change(tmp_path, severities=f"severities: {{{RULE}: error}}\n", new=BREAKING)
    repository.write({"schemactl.yaml": PROJECT % "ALWAYS_COMPATIBLE"})
    report = read_report(repository, code=100)
    assert {finding["rule"] for finding in report["findings"]} == {"GATE_CHANGED", RULE}
    assert f"`severities.{RULE}` is no longer set (was error)" in report["findings"][0]["message"]


def test_strict_is_not_a_setting_that_a_change_can_weaken(tmp_path: Path) -> None:
    report = read_report(make_change(tmp_path, new=HARMLESS), "--strict")
    assert (report["findings"], report["notes"]) == ([], [])


def test_under_always_incompatible_the_broker_rejects_and_strict_says_what_breaks(tmp_path: Path) -> None:
    repository = make_change(tmp_path, strategy="ALWAYS_INCOMPATIBLE", new=BREAKING)
    assert [finding["rule"] for finding in read_report(repository, code=100)["findings"]] == ["BROKER_INCOMPATIBLE"]
    rules = {finding["rule"] for finding in read_report(repository, "--strict", code=100)["findings"]}
    assert rules == {"BROKER_INCOMPATIBLE", RULE}


def test_compare_says_what_it_said(tmp_path: Path) -> None:
    line = {
        "id": "1",
        "strategy": "ALWAYS_COMPATIBLE",
        "existing": [{"type": "AVRO", "schema": record("id")}],
        "new": {"type": "AVRO", "schema": BREAKING},
    }
    answer = json.loads(schemactl(tmp_path, "compare", stdin=json.dumps(line) + "\n").out)
    assert (answer["data"], answer["incompatibilities"]) == ("compatible", [])
