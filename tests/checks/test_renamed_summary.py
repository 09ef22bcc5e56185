"""The row of a renamed topic agrees with its findings."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch


def make_record(*fields: str) -> str:
    return f'{{"type": "record", "name": "R", "fields": [{", ".join(fields)}]}}'


A, B = '{"name": "a", "type": "int"}', '{"name": "b", "type": "int"}'
DEFAULT = '{"name": "b", "type": "int", "default": 0}'
MILLIS, MICROS = (
    f'{{"name": "a", "type": {{"type": "long", "logicalType": "timestamp-{unit}"}}}}' for unit in ("millis", "micros")
)


@pytest.mark.parametrize(
    ("strategy", "old", "new", "data", "order"),
    [
        ("BACKWARD", make_record(A), make_record(A, B), "breaking", "none"),
        ("BACKWARD", make_record(A), make_record(A, DEFAULT), "compatible", "any order"),
        ("FORWARD", make_record(A, B), make_record(A), "breaking", "none"),
        ("BACKWARD", make_record(A, B), make_record(A), "compatible", "consumers"),
        ("FULL", make_record(MILLIS), make_record(MICROS), "breaking", "none"),
        ("ALWAYS_COMPATIBLE", make_record(A), make_record(A, B), "not_judged", "producers"),
    ],
)
def test_the_data_verdict_is_that_against_the_old_topic(
    tmp_path: Path, strategy: str, old: str, new: str, data: str, order: str
) -> None:
    repository = Scratch(tmp_path / "r")
    policy = f"schema_compatibility_strategy: {strategy}\n"
    schema = "schema: {type: AVRO, definition: r.avsc}\n"
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/sales.yaml": f"namespace: shop/sales\n{policy}",
            "topics/old.yaml": f"topic: shop/sales/old\n{schema}",
            "topics/r.avsc": old,
        }
    )
    repository.git("reset", "-q", "--hard")
    (repository.path / "topics/old.yaml").unlink()
    repository.write(
        {"topics/new.yaml": f"topic: shop/sales/new\nrenamed_from: shop/sales/old\n{schema}", "topics/r.avsc": new}
    )
    report = run_json(repository, "check", code=(0, 100))
    [topic] = [topic for topic in report["topics"] if topic["topic"].endswith("/new")]
    assert (topic["data"], topic["broker"]["answer"], topic["change"]) == (data, "ok", "added")
    assert (topic["upgrade_first"], bool(report["errors"])) == (order, data == "breaking")
    errors = {finding["rule"] for finding in report["findings"] if finding["severity"] == "error"}
    listed = {breakage["rule"] for breakage in (*topic["incompatibilities"], *topic["misread"])}
    assert errors <= listed
    text = schemactl(repository, "check", code=(0, 100)).out
    row = next(line for line in text.splitlines() if line.startswith("persistent://shop/sales/new"))
    assert ("breaking" in row or "misread" in row) is (data == "breaking")


def test_the_own_versions_count_once_the_new_topic_has_some(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    schema = "schema: {type: AVRO, definition: r.avsc}\n"
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/old.yaml": f"topic: shop/sales/old\n{schema}",
            "topics/r.avsc": make_record(A),
        }
    )
    repository.commit({"topics/old.yaml": None, "topics/new.yaml": f"topic: shop/sales/new\n{schema}"})
    repository.git("reset", "-q", "--hard")
    repository.write(
        {
            "topics/new.yaml": f"topic: shop/sales/new\nrenamed_from: shop/sales/old\n{schema}",
            "topics/r.avsc": make_record(A, DEFAULT),
        }
    )
    report = run_json(repository, "check", code=(0, 100))
    [topic] = [topic for topic in report["topics"] if topic["topic"].endswith("/new")]
    assert (topic["data"], topic["version"]) == ("compatible", 1)
