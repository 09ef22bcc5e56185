"""Kinds of events in pull requests: merges, squashes, rebases, and versions that were approved meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import run_json
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
    return run_json(scratch, "check", "--base", "main", code=code)


class BranchCase(NamedTuple):
    """A branch, and the report of its check.

    Attributes:
        work: the commits of the branch.
        topics: kind, change, number and number after a rebase merge of each version.
        findings: rule, kind and compared versions of each finding.
        approved: the approved commits after the first one, after which the branch starts.
        meanwhile: the files of a commit that is approved after the branch starts.
    """

    work: list[Files]
    topics: list[tuple[str | None, str, int | None, int | None]]
    findings: tuple[tuple[str, str | None, list[int]], ...] = ()
    approved: tuple[Files, ...] = ()
    meanwhile: Files | None = None


USERS = "topics/users.yaml"
READER = "READER_FIELD_MISSING_DEFAULT_VALUE"
ASKED: Files = {USERS: declare("created", "moved", "asked"), **define("asked")}
LEFT = declare("created", "moved").replace(
    "moved: {type: AVRO, definition: moved", "left: {type: AVRO, definition: moved"
)
PEOPLE = declare("created", "moved", "asked", more="renamed_from: shop/web/users\n").replace(
    "web/users\n", "web/people\n", 1
)
ONE = "topic: shop/web/users\nschema_compatibility_strategy: %s\nschema: {type: AVRO, definition: created.avsc}\n"
ONE_TOPICS: list[tuple[str | None, str, int | None, int | None]] = [
    (None, "new version", 2, 2),
    ("moved", "removed", None, None),
]

BRANCH_CASES = {
    "numbers follow the versions that were approved meanwhile": BranchCase(
        [define("moved", note=0)], [("moved", "new version", 3, 3)], meanwhile=define("created", note=0)
    ),
    "a kind that both sides change is compared with the approved version": BranchCase(
        [define("created", "name")],
        [("created", "new version", 3, 3)],
        ((READER, "created", [2]),),
        meanwhile=define("created", note=0),
    ),
    "a kind that was approved meanwhile stays": BranchCase(
        [define("created", note=0)], [("created", "new version", 3, 3)], meanwhile=ASKED
    ),
    "each commit is judged for its kind": BranchCase(
        [{**define("created", "name"), **define("moved", note=0)}, define("created", note=0)],
        [("created", "new version", 2, 4), ("moved", "new version", 3, 3)],
        (("STEP_REFUSED", "created", [0]), ("STEP_REFUSED", "created", [2])),
    ),
    "commits that keep each kind compatible are accepted": BranchCase(
        [define("created", note=0), ASKED, {**define("asked", note=0), **define("created", note=0, more=0)}],
        [("created", "new version", 2, 4), ("asked", "added", 3, 5)],
    ),
    "a kind is added": BranchCase([ASKED], [("asked", "added", 2, 2)]),
    "a kind is removed": BranchCase(
        [{USERS: declare("created")}], [("moved", "removed", None, None)], (("KIND_REMOVED", "moved", []),)
    ),
    "the order of the keys changes nothing": BranchCase([{USERS: declare("moved", "created")}], []),
    "a key is renamed": BranchCase([{USERS: LEFT}], []),
    "a key is renamed, and its record breaks the earlier readers": BranchCase(
        [{USERS: LEFT, **define("moved", "name")}], [("left", "new version", 2, 2)], ((READER, "left", [1]),)
    ),
    "a record is renamed under its key": BranchCase(
        [{"topics/moved.avsc": record("id", name="Left")}], [("moved", "new version", 2, 2)], (("NAME_MISMATCH", "moved", [1]),) * 2
    ),
    "the strategy of kinds is relaxed with a change": BranchCase(
        [{USERS: declare("created", "moved", more="kinds_compatibility: ALWAYS_COMPATIBLE\n"), **define("moved", "name")}],
        [(None, "policies", None, None), ("moved", "new version", 2, 2)],
        (("STRATEGY_RELAXED", "moved", []),),
    ),
    "a stricter strategy of the topic names the kinds that brokers reject": BranchCase(
        [{USERS: declare("created", "moved", "asked").replace("ALWAYS_COMPATIBLE", "FULL")}],
        [],
        (("STRATEGY_TIGHTENED", None, [3]),),
        approved=(define("moved", note=0), {**ASKED, **define("asked", "text")}),
    ),
    "a new generation is one finding about all kinds": BranchCase(
        [{USERS: declare("created", "moved", more="generation: 2\n")}],
        [("created", "new version", 3, 3), ("moved", "new version", 4, 4)],
        (("NEW_GENERATION", None, []),),
    ),
    "a renamed topic is compared for each kind": BranchCase(
        [{USERS: PEOPLE, **define("created", "name"), **define("asked")}],
        [("created", "added", 0, 0), ("moved", "added", 1, 1), ("asked", "added", 2, 2), (None, "removed", None, None)],
        ((READER, "created", [0]),),
    ),
    # The schema has the record of a kind, and is compared with its versions.
    "one schema again, which is compatible": BranchCase(
        [{USERS: ONE % "FULL", **define("created", note=0)}], ONE_TOPICS, (("KIND_REMOVED", "moved", []),)
    ),
    "one schema again, which breaks readers": BranchCase(
        [{USERS: ONE % "FULL", **define("created", "name")}],
        ONE_TOPICS,
        ((READER, None, [0]), ("BROKER_INCOMPATIBLE", None, []), ("KIND_REMOVED", "moved", [])),
    ),
    "one schema again, whose strategy protects nothing": BranchCase(
        [{USERS: ONE % "ALWAYS_COMPATIBLE", **define("created", "name")}],
        ONE_TOPICS,
        (("STRATEGY_RELAXED", None, []), ("KIND_REMOVED", "moved", [])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BRANCH_CASES.values(), ids=BRANCH_CASES)
def test_a_branch_is_checked_for_each_kind(kinds_repository: Scratch, case: BranchCase) -> None:
    marks = [1, *(kinds_repository.commit(files, "approved") for files in case.approved)]
    for number, files in enumerate(case.work):
        kinds_repository.commit(files, f"work {number}", branch="work", start=None if number else marks[-1])
    if case.meanwhile:
        kinds_repository.commit(case.meanwhile, "meanwhile")
    rules_of_errors = {READER, "STRATEGY_RELAXED", "NEW_GENERATION", "BROKER_INCOMPATIBLE"}
    is_error = any(rule in rules_of_errors for rule, *_ in case.findings)
    report = check(kinds_repository, code=100 if is_error else 0)
    assert [
        (topic["kind"], topic["change"], topic["version"], topic["version_if_rebased"]) for topic in report["topics"]
    ] == case.topics
    findings = [(finding["rule"], finding["kind"], finding["against"]) for finding in report["findings"]]
    assert findings == [*case.findings]


def test_a_schema_after_kinds_follows_the_versions_of_its_kind(kinds_repository: Scratch) -> None:
    kinds_repository.commit({USERS: ONE % "FULL", **define("created", note=0)}, "work", branch="work", start=1)
    [one, _] = check(kinds_repository)["topics"]
    assert (one["version"], one["latest"]) == (2, 0)


def test_a_new_generation_names_the_versions_that_it_deletes(kinds_repository: Scratch) -> None:
    again = declare("created", "moved", more="generation: 2\n")
    kinds_repository.commit({USERS: again}, "work", branch="work", start=1)
    [finding] = check(kinds_repository, code=100)["findings"]
    assert "deletes versions 0-1" in finding["message"]


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
    assert [(topic["kind"], topic["change"], topic["version"]) for topic in report["topics"]] == [
        ("paid", "new version", 4)
    ]


def test_a_second_check_of_unchanged_kinds_takes_them_from_the_cache(kinds_repository: Scratch) -> None:
    kinds_repository.write(define("created", "name"))
    first = run_json(kinds_repository, "check", code=100)
    kinds_repository.write({"topics/other.yaml": "topic: shop/web/other\nschema: {type: STRING}\n"})
    second = run_json(kinds_repository, "check", code=100)
    assert [finding["message"] for finding in second["findings"] if finding["kind"]] == [
        finding["message"] for finding in first["findings"]
    ]
