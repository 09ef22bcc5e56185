"""Readers are not judged under a strategy that protects none, unless requested, and unjudged is not compatible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_json, schemactl
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


BREAKING = record("other")
HARMLESS = record("id", more=0)


WARNINGS = [f"warning {RULE} new_reads_old", f"warning {RULE} old_reads_new"]
JUDGEMENTS: dict[str, tuple[str, str, str, str, list[str], str]] = {
    "a breaking change is not judged": ("ALWAYS_COMPATIBLE", "", BREAKING, "", [], "not_judged"),
    "a harmless change is not judged": ("ALWAYS_COMPATIBLE", "", HARMLESS, "", [], "not_judged"),
    "--strict judges in both directions": ("ALWAYS_COMPATIBLE", "", BREAKING, "--strict", WARNINGS, "breaking"),
    "--strict passes what every reader can read": ("ALWAYS_COMPATIBLE", "", HARMLESS, "--strict", [], "compatible"),
    "a severity asks in every run": (
        "ALWAYS_COMPATIBLE", "error", BREAKING, "", [f"error {RULE} new_reads_old", f"error {RULE} old_reads_new"], "breaking",
    ),
    "a rule that is off is not asked by --strict": ("ALWAYS_COMPATIBLE", "off", BREAKING, "--strict", [], "not_judged"),
    "the broker rejects under ALWAYS_INCOMPATIBLE": (
        "ALWAYS_INCOMPATIBLE", "", BREAKING, "", ["error BROKER_INCOMPATIBLE None"], "not_judged",
    ),
    "--strict shows the breaks under ALWAYS_INCOMPATIBLE": (
        "ALWAYS_INCOMPATIBLE", "", BREAKING, "--strict", ["error BROKER_INCOMPATIBLE None", *WARNINGS], "breaking",
    ),
}  # fmt: skip
"""Strategy, severity of the rule, definition, option, and the findings and the verdict about data."""


@pytest.mark.parametrize(
    ("strategy", "severity", "new", "option", "expected", "data"), JUDGEMENTS.values(), ids=JUDGEMENTS
)
def test_readers_that_no_strategy_protects_are_judged_on_request(
    tmp_path: Path, strategy: str, severity: str, new: str, option: str, expected: list[str], data: str
) -> None:
    severities = f"severities: {{{RULE}: {severity}}}\n" if severity else ""
    repository = make_change(tmp_path, strategy=strategy, severities=severities, new=new)
    report = run_json(repository, "check", *option.split(), code=100 if expected else 0)
    findings = [f"{finding['severity']} {finding['rule']} {finding['direction']}" for finding in report["findings"]]
    (topic,) = report["topics"]
    is_accepted = strategy == "ALWAYS_COMPATIBLE"
    assert (sorted(findings), topic["data"], report["notes"]) == (expected, data, [])
    assert len(topic["incompatibilities"]) == (2 if data == "breaking" else 0)
    assert (topic["strategy"], topic["broker"]["answer"]) == (strategy, "ok" if is_accepted else "incompatible")


@pytest.mark.parametrize("new", [BREAKING, HARMLESS], ids=["breaking", "harmless"])
def test_what_is_not_judged_is_never_called_fine(tmp_path: Path, new: str) -> None:
    out = schemactl(make_change(tmp_path, new=new).path, "check").out
    assert "ALWAYS_COMPATIBLE  ok            not judged" in out
    assert "all fine" not in out


def test_strict_says_which_strategy_would_protect_the_readers(tmp_path: Path) -> None:
    out = schemactl(make_change(tmp_path, new=BREAKING).path, "check", "--strict", code=100).out
    assert (
        "is ALWAYS_COMPATIBLE (the default of schemactl.yaml), which does not protect any reader. Under FULL, this finding would be"
        in out
    )
    assert "= message  {" in out
    assert "all fine" not in out


def test_a_change_cannot_stop_asking_without_being_seen(tmp_path: Path) -> None:
    repository = make_change(tmp_path, severities=f"severities: {{{RULE}: error}}\n", new=BREAKING)
    repository.write({"schemactl.yaml": PROJECT % "ALWAYS_COMPATIBLE"})
    report = run_json(repository, "check", code=100)
    assert {finding["rule"] for finding in report["findings"]} == {"GATE_CHANGED", RULE}
    assert f"`severities.{RULE}` is no longer set (was error)" in report["findings"][0]["message"]


def test_compare_says_what_it_said(tmp_path: Path) -> None:
    line = {
        "id": "1",
        "strategy": "ALWAYS_COMPATIBLE",
        "existing": [{"type": "AVRO", "schema": record("id")}],
        "new": {"type": "AVRO", "schema": BREAKING},
    }
    answer = json.loads(schemactl(tmp_path, "compare", stdin=json.dumps(line) + "\n").out)
    assert (answer["data"], answer["incompatibilities"]) == ("compatible", [])
