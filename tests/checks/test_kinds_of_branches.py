"""Kinds of events in pull requests: merges, squashes, rebases, and versions that were approved meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from scratch import Files, Scratch, record

PROJECT = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL}\n"


def declare(*keys: str, more: str = "") -> str:
    """Return the declaration of a topic with a kind for each of these keys."""
    kinds = "".join(f"  {key}: {{type: AVRO, definition: {key}.avsc}}\n" for key in keys)
    head = "topic: shop/web/users\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
    return f"{head}{more}schemas:\n{kinds}"


def define(key: str, *fields: str, **optional: Any) -> dict[str, str]:
    """Return the definition file of a kind."""
    return {f"topics/{key}.avsc": record("id", *fields, name=key.title(), **optional)}


BASE: Files = {
    "schemactl.yaml": PROJECT,
    "topics/web.yaml": "namespace: shop/web\n",
    "topics/users.yaml": declare("created", "moved"),
    **define("created"),
    **define("moved"),
}


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    """A repository in which two kinds are approved."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit(BASE, "base")
    return scratch


def check(scratch: Scratch, *, code: int = 0) -> Any:
    scratch.git("checkout", "-q", "work")
    return json.loads(schemactl(scratch.path, "check", "--base", "main", "--format", "json", code=code).out)


def list_topics(report: Any) -> list[tuple[str, str, int | None]]:
    return [(topic["kind"], topic["change"], topic["version"]) for topic in report["topics"]]


def list_findings(report: Any) -> list[tuple[str, str | None]]:
    return [(finding["rule"], finding["kind"]) for finding in report["findings"]]


def test_numbers_follow_what_was_approved_meanwhile(kinds_repository: Scratch) -> None:
    kinds_repository.commit(define("moved", note=0), "work", branch="work", start=1)
    kinds_repository.commit(define("created", note=0), "meanwhile")
    report = check(kinds_repository)
    assert list_topics(report) == [("moved", "new version", 3)]
    assert list_findings(report) == []


def test_a_kind_that_both_sides_change_is_compared_with_the_approved_version(kinds_repository: Scratch) -> None:
    kinds_repository.commit(define("created", "name"), "work", branch="work", start=1)
    kinds_repository.commit(define("created", note=0), "meanwhile")
    report = check(kinds_repository, code=100)
    assert list_topics(report) == [("created", "new version", 3)]
    assert ("READER_FIELD_MISSING_DEFAULT_VALUE", "created") in list_findings(report)


def test_each_commit_of_a_branch_is_judged_for_its_kind(kinds_repository: Scratch) -> None:
    kinds_repository.commit({**define("created", "name"), **define("moved", note=0)}, "breaks", branch="work", start=1)
    kinds_repository.commit(define("created", note=0), "repairs", branch="work")
    report = check(kinds_repository)
    assert list_topics(report) == [("created", "new version", 2), ("moved", "new version", 3)]
    assert [(finding["rule"], finding["kind"], finding["against"]) for finding in report["findings"]] == [
        ("STEP_REFUSED", "created", [0]),
        ("STEP_REFUSED", "created", [2]),
    ]
    assert [topic["version_if_rebased"] for topic in report["topics"]] == [4, 3]


def test_commits_that_keep_each_kind_compatible_are_fine(kinds_repository: Scratch) -> None:
    kinds_repository.commit(define("created", note=0), "one", branch="work", start=1)
    kinds_repository.commit(
        {"topics/users.yaml": declare("created", "moved", "asked"), **define("asked")}, "two", branch="work"
    )
    kinds_repository.commit({**define("asked", note=0), **define("created", note=0, more=0)}, "three", branch="work")
    report = check(kinds_repository)
    assert list_topics(report) == [("created", "new version", 2), ("asked", "added", 3)]
    assert list_findings(report) == []


def test_a_branch_with_kinds_keeps_a_kind_that_was_approved_meanwhile(kinds_repository: Scratch) -> None:
    kinds_repository.commit(define("created", note=0), "work", branch="work", start=1)
    kinds_repository.commit({"topics/users.yaml": declare("created", "moved", "asked"), **define("asked")}, "meanwhile")
    report = check(kinds_repository)
    assert list_topics(report) == [("created", "new version", 3)]
    assert list_findings(report) == []


def test_shared_types_that_both_sides_change_are_combined_for_each_kind(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    money = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"%s}]}'
    kind = '{"type": "record", "name": "%s", "fields": [{"name": "sum", "type": "Money"}%s]}'
    references = "".join(
        f"  {key}: {{type: AVRO, definition: {key}.avsc, references: [money.avsc]}}\n" for key in ("paid", "owed")
    )
    topic = f"topic: shop/web/users\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschemas:\n{references}"
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/web.yaml": f"namespace: shop/web\n---\n{topic}",
            "topics/money.avsc": money % "",
            "topics/paid.avsc": kind % ("Paid", ""),
            "topics/owed.avsc": kind % ("Owed", ""),
        },
        "base",
    )
    note = ', {"name": "note", "type": "string", "default": ""}'
    scratch.commit({"topics/paid.avsc": kind % ("Paid", note)}, "work", branch="work", start=1)
    scratch.commit({"topics/money.avsc": money % ', "default": 0'}, "meanwhile")
    report = check(scratch)
    # Meanwhile both kinds got a version with the new type; the merge adds one more of the first.
    assert list_topics(report) == [("paid", "new version", 4)]


@pytest.mark.parametrize(
    ("declaration", "files", "expected", "findings"),
    [
        pytest.param(
            declare("created", "moved", "asked"), define("asked"), [("asked", "added", 2)], [], id="a kind is added"
        ),
        pytest.param(
            declare("created"), {}, [("moved", "removed", None)], [("KIND_REMOVED", "moved")], id="a kind is removed"
        ),
        pytest.param(declare("moved", "created"), {}, [], [], id="the order of the keys changes nothing"),
        pytest.param(
            declare("created", "moved").replace(
                "moved: {type: AVRO, definition: moved", "left: {type: AVRO, definition: moved"
            ),
            {},
            [],
            [],
            id="a key is renamed",
        ),
        pytest.param(
            declare("created", "moved").replace(
                "moved: {type: AVRO, definition: moved", "left: {type: AVRO, definition: moved"
            ),
            define("moved", "name"),
            [("left", "new version", 2)],
            [("READER_FIELD_MISSING_DEFAULT_VALUE", "left")],
            id="a key is renamed, and its record breaks the former readers",
        ),
        pytest.param(
            declare("created", "moved"),
            {"topics/moved.avsc": record("id", name="Left")},
            [("moved", "new version", 2)],
            [("NAME_MISMATCH", "moved"), ("NAME_MISMATCH", "moved")],
            id="a record is renamed below its key",
        ),
        pytest.param(
            declare("created", "moved", more="kinds_compatibility: ALWAYS_COMPATIBLE\n"),
            define("moved", "name"),
            [("moved", "new version", 2)],
            [("STRATEGY_RELAXED", "moved")],
            id="the strategy of kinds is relaxed with a change",
        ),
    ],
)
def test_changes_of_kinds_have_verdicts(
    kinds_repository: Scratch,
    declaration: str,
    files: Files,
    expected: list[tuple[str, str, int | None]],
    findings: list[tuple[str, str | None]],
) -> None:
    kinds_repository.commit({"topics/users.yaml": declaration, **files}, "work", branch="work", start=1)
    kinds_repository.git("checkout", "-q", "work")
    printed = schemactl(kinds_repository.path, "check", "--base", "main", "--format", "json", code=[0, 100])
    report = json.loads(printed.out)
    assert [topic for topic in list_topics(report) if topic[1] not in ("policies", "clients")] == expected
    assert sorted(list_findings(report), key=str) == sorted(findings, key=str)


def test_a_tighter_strategy_of_the_topic_names_the_kinds_that_brokers_reject(kinds_repository: Scratch) -> None:
    kinds_repository.commit(define("moved", note=0), "more")
    kinds_repository.commit(
        {"topics/users.yaml": declare("created", "moved", "asked"), **define("asked", "text")}, "asked"
    )
    tighter = declare("created", "moved", "asked").replace("ALWAYS_COMPATIBLE", "FULL")
    kinds_repository.commit({"topics/users.yaml": tighter}, "work", branch="work", start=3)
    report = check(kinds_repository)
    assert [(finding["rule"], finding["kind"], finding["against"]) for finding in report["findings"]] == [
        ("STRATEGY_TIGHTENED", None, [3])
    ]


def test_a_new_generation_is_one_finding_about_the_versions_of_all_kinds(kinds_repository: Scratch) -> None:
    again = declare("created", "moved", more="generation: 2\n")
    kinds_repository.commit({"topics/users.yaml": again}, "work", branch="work", start=1)
    report = check(kinds_repository, code=100)
    assert list_topics(report) == [("created", "new version", 3), ("moved", "new version", 4)]
    [finding] = report["findings"]
    assert (finding["rule"], finding["kind"]) == ("NEW_GENERATION", None)
    assert "deletes versions 0-1" in finding["message"]


def test_a_second_check_of_unchanged_kinds_takes_them_from_the_cache(kinds_repository: Scratch) -> None:
    kinds_repository.flush()
    kinds_repository.write(define("created", "name"))
    first = json.loads(schemactl(kinds_repository.path, "check", "--format", "json", code=100).out)
    kinds_repository.write({"topics/other.yaml": "topic: shop/web/other\nschema: {type: STRING}\n"})
    second = json.loads(schemactl(kinds_repository.path, "check", "--format", "json", code=100).out)
    assert [finding["message"] for finding in second["findings"] if finding["kind"]] == [
        finding["message"] for finding in first["findings"]
    ]


def test_a_renamed_topic_is_compared_for_each_kind(kinds_repository: Scratch) -> None:
    renamed = declare("created", "moved", "asked", more="renamed_from: shop/web/users\n").replace(
        "web/users\n", "web/people\n", 1
    )
    kinds_repository.commit(
        {"topics/users.yaml": renamed, **define("created", "name"), **define("asked")}, "work", branch="work", start=1
    )
    report = check(kinds_repository, code=100)
    assert list_topics(report) == [
        ("created", "added", 0),
        ("moved", "added", 1),
        ("asked", "added", 2),
        (None, "removed", None),
    ]
    assert list_findings(report) == [("READER_FIELD_MISSING_DEFAULT_VALUE", "created")]


@pytest.mark.parametrize(
    ("strategy", "definition", "findings"),
    [
        # The schema has the record of a kind, and is compared with its versions.
        ("FULL", define("created", note=0), [("KIND_REMOVED", "moved")]),
        ("FULL", define("created", "name"), [("KIND_REMOVED", "moved"), ("READER_FIELD_MISSING_DEFAULT_VALUE", None)]),
        ("ALWAYS_COMPATIBLE", define("created", "name"), [("KIND_REMOVED", "moved"), ("STRATEGY_RELAXED", None)]),
    ],
)
def test_a_topic_with_one_schema_again_is_compared_with_its_kind(
    kinds_repository: Scratch, strategy: str, definition: Files, findings: list[tuple[str, str | None]]
) -> None:
    one = f"topic: shop/web/users\nschema_compatibility_strategy: {strategy}\nschema: {{type: AVRO, definition: created.avsc}}\n"
    kinds_repository.commit({"topics/users.yaml": one, **definition}, "work", branch="work", start=1)
    kinds_repository.git("checkout", "-q", "work")
    report = json.loads(
        schemactl(kinds_repository.path, "check", "--base", "main", "--format", "json", code=[0, 100]).out
    )
    data = [finding for finding in list_findings(report) if not finding[0].startswith(("BROKER", "STRATEGY_TIGHTENED"))]
    assert sorted(data, key=str) == sorted(findings, key=str)
    assert [(topic["version"], topic["latest"]) for topic in report["topics"] if topic["version"] is not None] == [
        (2, 0)
    ]
