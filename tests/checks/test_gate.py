"""A change cannot disable the check that judges it: the approved settings judge, and weakening them is a finding."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import command
import pytest
import yaml
from case_tables import read_cases
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Files, Scratch, record, write_declaration

import schemactl

pytestmark = pytest.mark.slow

PROJECT: dict[str, Any] = {"version": 1, "roots": ["topics"], "defaults": {"schema_compatibility_strategy": "BACKWARD"}}
V0 = record("id")
BREAK = {"topics/orders.avsc": record("id", "note")}
HARMLESS = {"topics/orders.avsc": record("id", note=0)}


def make_project(**settings: Any) -> dict[str, str | None]:
    """Return the project file with these settings; None removes a setting."""
    lines = {**PROJECT, **settings}
    return {"schemactl.yaml": yaml.safe_dump({key: value for key, value in lines.items() if value is not None})}


def make_topic(more: str) -> dict[str, str | None]:
    """Return the declaration of the topic with `more` lines."""
    return {"topics/orders.yaml": write_declaration(more=more)}


OFF = {"READER_FIELD_MISSING_DEFAULT_VALUE": "off", "BROKER_INCOMPATIBLE": "off"}
MOVED = {"topic/orders.yaml": write_declaration(), "topic/orders.avsc": record("id", "note")}
ROOT_MOVED = {
    **make_project(roots=["topic"], previous_roots=["topics"]),
    **MOVED,
    "topics/orders.yaml": None,
    "topics/orders.avsc": None,
}
STRICT = "namespace: shop/sales\nis_allow_auto_update_schema: false\nschema_validation_enforced: true\n"

EVASIONS: dict[str, dict[str, str | None]] = {
    name: {
        path: make_project(**text)["schemactl.yaml"] if isinstance(text, dict) else text for path, text in files.items()
    }
    for name, files in read_cases(Path(__file__).with_name("evasions.yaml")).items()
}
"""The files that a change adds to its breaking change to evade the check."""


@pytest.fixture
def gated_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "r")
    scratch.commit(
        {**make_project(), "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}, "v0"
    )
    return scratch


def check(repository: Scratch, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `check` and its report."""
    printed = command.schemactl(repository, "check", "--format", "json", *arguments, code=(0, 100))
    return printed.code, json.loads(printed.out)


def list_rules(report: dict[str, Any], severity: str = "error") -> set[str]:
    return {finding["rule"] for finding in report["findings"] if finding["severity"] == severity}


def as_branch(repository: Scratch, files: Files) -> list[str]:
    """Commit `files` on a branch, check it out, and return the arguments of its check."""
    repository.commit(files, branch="work", start=1)
    repository.git("checkout", "-q", "work")
    return ["--base", "main"]


def as_merge(repository: Scratch, files: Files) -> list[str]:
    """Merge `files` into main as a merge queue does, and return the arguments of its check."""
    work = repository.commit(files, branch="work", start=1)
    repository.commit({"README.md": "about"})
    repository.commit(files, branch="queue", start=2 + 1, merge=work)
    repository.git("checkout", "-q", "--detach", "queue")
    return ["--base", "main"]


def as_index(repository: Scratch, files: Files) -> list[str]:
    """Stage `files`, and return the arguments of the hook."""
    repository.write(files)
    repository.git("add", "-A")
    return ["--staged"]


MERGED = (
    "the rules are off", "the root is gone", "the branch is the record", "the namespace protects nobody", "draft, in another file",
    "another name, and is a draft", "the root moves, and the rules are off", "all at once",
)  # fmt: skip
"""One evasion of each kind: the check of a merge differs from the check of its branch only in the base."""


@pytest.mark.parametrize(
    ("mode", "evasion"),
    [
        pytest.param(mode, files, id=f"{mode.__name__}-{name}")
        for mode in (as_branch, as_merge, as_index)
        for name, files in EVASIONS.items()
        if mode is not as_merge or name in MERGED
    ],
)
def test_changed_settings_do_not_hide_a_break(
    gated_repository: Scratch, mode: Any, evasion: dict[str, str | None]
) -> None:
    code, report = check(gated_repository, *mode(gated_repository, {**BREAK, **evasion}))
    assert code == 100
    assert list_rules(report) & {
        *(
            "READER_FIELD_MISSING_DEFAULT_VALUE",
            "STRATEGY_RELAXED",
            "SCHEMA_TYPE_CHANGED",
            "RENAME_UNDECLARED",
            "NEW_GENERATION",
        )
    }


def test_no_format_and_no_option_hides_a_break_whose_rules_the_change_turns_off(gated_repository: Scratch) -> None:
    as_index(gated_repository, {**BREAK, **make_project(severities=OFF)})
    for name in ("text", "json", "markdown", "github", "sarif", "junit", "gitlab"):
        for strict in ([], ["--strict"]):
            options = ("--staged", "--format", name, *strict)
            out = command.schemactl(gated_repository, "check", *options, code=100).out
            assert "READER_FIELD_MISSING_DEFAULT_VALUE" in out
            assert "all fine" not in out


STAGED: dict[str, tuple[list[Files], Files, list[str]]] = {
    "a topic that was deleted is judged by its versions when it comes back": (
        [
            {
                "topics/orders.yaml": None,
                "topics/orders.avsc": None,
                "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
            }
        ],
        {**BREAK, **make_topic("lifecycle: draft\n")},
        ["error BROKER_INCOMPATIBLE", "error READER_FIELD_MISSING_DEFAULT_VALUE", "warning DRAFT_AGAIN"],
    ),
    "a break that was approved as a draft is reported when the topic is stable again": (
        [make_topic("lifecycle: draft\n"), BREAK], make_topic(""), ["error DRAFT_VERSIONS_BREAK"],
    ),
    "a namespace lets unchecked schemas in again": (
        [{"topics/sales.yaml": STRICT}],
        {"topics/sales.yaml": "namespace: shop/sales\nschema_validation_enforced: false\n"},
        ["warning PROTECTION_LOST"] * 2,
    ),
    "a namespace that let no unchecked schema in is removed": (
        [{"topics/sales.yaml": STRICT}], {"topics/sales.yaml": None}, ["warning PROTECTION_LOST"] * 2,
    ),
    "a comment and another order of the judging file": (
        [], {"schemactl.yaml": "# a comment\nversion: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"}, [],
    ),
    "another layout of the judging file": (
        [], {"schemactl.yaml": "{version: 1, defaults: {schema_compatibility_strategy: 'BACKWARD'}, roots: ['topics']}\n"}, [],
    ),
    "a root moves with its files": ([], {**ROOT_MOVED, "topic/orders.avsc": V0}, ["warning GATE_CHANGED"]),
    "a root moves, and its topic breaks": (
        [], ROOT_MOVED, ["error BROKER_INCOMPATIBLE", "error READER_FIELD_MISSING_DEFAULT_VALUE", "warning GATE_CHANGED"],
    ),
}  # fmt: skip
"""The commits that are approved, the files that are staged then, and severity and rule of each finding."""


@pytest.mark.parametrize(("approved", "staged", "findings"), STAGED.values(), ids=STAGED)
def test_a_staged_change_is_judged_by_what_is_approved(
    gated_repository: Scratch, approved: list[Files], staged: Files, findings: list[str]
) -> None:
    for files in approved:
        gated_repository.commit(files)
    code, report = check(gated_repository, *as_index(gated_repository, staged))
    assert sorted(f"{finding['severity']} {finding['rule']}" for finding in report["findings"]) == findings
    assert code == (100 if any(finding.startswith("error") for finding in findings) else 0)
    assert report["checked"] == 1


def test_work_that_began_before_the_project_is_judged_by_the_project(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"README.md": "about"})
    scratch.commit({**make_project(), **make_topic(""), "topics/orders.avsc": V0}, "v0")
    scratch.commit({**make_project(severities=OFF), **make_topic(""), **BREAK}, branch="work", start=1)
    scratch.git("checkout", "-q", "work")
    code, report = check(scratch, "--base", "main")
    assert code == 100
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in list_rules(report)


def test_work_that_has_no_commit_in_common_with_the_record_is_not_judged_at_all(gated_repository: Scratch) -> None:
    gated_repository.git("checkout", "-q", "--orphan", "work")
    gated_repository.write({**BREAK, **make_project(severities=OFF)})
    gated_repository.git("add", "-A")
    gated_repository.git("commit", "-qm", "break")
    printed = command.schemactl(gated_repository, "check", "--base", "main", code=1)
    assert "have no commit in common" in printed.err


STRATEGIES = [
    *("ALWAYS_COMPATIBLE", "ALWAYS_INCOMPATIBLE", "BACKWARD", "FORWARD", "FULL"),
    *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
]
SEVERITIES = st.dictionaries(st.sampled_from(sorted(OFF)), st.sampled_from(["off", "warning", "error"]))
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "severities": SEVERITIES | SEVERITIES.map(lambda severities: {"shop/sales": severities} if severities else {}),
        "defaults": st.sampled_from(STRATEGIES).map(lambda name: {"schema_compatibility_strategy": name}),
        "pulsar": st.sampled_from(["4.0", "4.2", "5.0"]),
        "approved": st.sampled_from(["work", "HEAD", "main"]),
    },
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "lifecycle": st.sampled_from(["draft", "stable"]),
        "schema_compatibility_strategy": st.sampled_from(STRATEGIES),
        "partitions": st.integers(1, 3),
    },
)
EDITS = st.sampled_from([V0, record("id", "note"), record("id", note=0), record("no"), record("id", "note", more=0)])


@REPOSITORIES
@given(approved=SETTINGS, proposed=SETTINGS, policies=POLICIES, edit=EDITS)
def test_proposed_settings_do_not_fix_a_failure_under_approved_settings(
    approved: dict[str, Any], proposed: dict[str, Any], policies: dict[str, Any], edit: str
) -> None:
    approved = {**approved, "approved": None}
    with TemporaryDirectory() as folder:
        repository = Scratch(Path(folder, "r"))
        start = {**make_project(**approved), "topics/orders.yaml": write_declaration(), "topics/orders.avsc": V0}
        repository.commit(start, "v0")
        as_index(repository, {"topics/orders.avsc": edit})
        expected = list_errors(repository)
        as_index(repository, {**make_project(**proposed), **make_topic(yaml.safe_dump(policies) if policies else "")})
        errors = list_errors(repository)
    # Under ALWAYS_INCOMPATIBLE the broker rejects every schema, and readers are not judged.
    is_nothing_let_in = policies.get("schema_compatibility_strategy") == "ALWAYS_INCOMPATIBLE"
    assert errors >= (expected & {"BROKER_INCOMPATIBLE"} if is_nothing_let_in else expected) or (
        "STRATEGY_RELAXED" in errors
    )


def list_errors(repository: Scratch) -> set[str]:
    """Return the rules of the hook's errors."""
    report = schemactl.check(repository.path, staged=True)
    return {finding.rule for finding in report.findings if finding.severity == "error"}


@pytest.mark.parametrize("mode", [as_branch, as_merge, as_index])
def test_a_harmless_change_passes(gated_repository: Scratch, mode: Any) -> None:
    code, report = check(gated_repository, *mode(gated_repository, HARMLESS))
    assert code == 0
    assert not report["findings"]


CHANGED: dict[str, tuple[str, str, str]] = {
    "the rules are off": ("GATE_CHANGED", "schemactl.yaml:6:", "`severities.BROKER_INCOMPATIBLE` is off (was not set)"),
    "the root is gone": ("GATE_CHANGED", "schemactl.yaml:", "`topics` is not a root, so that 1 topic (persistent://shop/sales/orders)"),
    "the branch is the record": ("GATE_CHANGED", "schemactl.yaml:1:11", "`approved` is work (was not set)"),
    "the default strategy protects others": ("GATE_CHANGED", "schemactl.yaml:2:", "1 topic (persistent://shop/sales/orders) is FORWARD, no longer BACKWARD"),
    "the topic is a draft": ("DRAFT_AGAIN", "topics/orders.yaml:5:12", "becomes a draft, but was stable."),
}  # fmt: skip
"""The rule of the warning, its location and a part of its text, for each evasion."""


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_a_change_of_judging_files_is_a_warning_with_and_without_a_schema(
    gated_repository: Scratch, name: str, options: list[str]
) -> None:
    rule, place, text = CHANGED[name]
    for files in (EVASIONS[name], {**EVASIONS[name], **HARMLESS}):
        code, report = check(gated_repository, *as_index(gated_repository, files), *options)
        assert code == 0
        [warning] = report["findings"]
        assert (warning["rule"], warning["severity"]) == (rule, "warning")
        assert f"{warning['file']}:{warning['line']}:{warning['column']}".startswith(place)
        assert text in warning["message"]


def test_the_effects_of_stricter_settings_are_described(gated_repository: Scratch) -> None:
    gated_repository.commit({"topics/orders.avsc": record("id", note=0)}, "v1")
    stricter = make_project(
        defaults={"schema_compatibility_strategy": "FULL_TRANSITIVE"},
        severities={"NOT_STORED": "error"},
        protobuf={"rules": "WIRE"},
    )
    code, report = check(gated_repository, *as_index(gated_repository, stricter))
    assert code == 0
    [warning] = report["findings"]
    assert warning["message"].splitlines()[1:] == [
        "After the merge: `defaults.schema_compatibility_strategy` is FULL_TRANSITIVE (was BACKWARD).",
        "After the merge: `protobuf.rules` is WIRE (was not set).",
        "After the merge: `severities.NOT_STORED` is error (was not set).",
        "After the merge: 1 topic (persistent://shop/sales/orders) is FULL_TRANSITIVE, no longer BACKWARD.",
    ]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        pytest.param(
            {**make_project(roots=["topic"]), **MOVED}, "add `topics` to `previous_roots` in schemactl.yaml", id="a forgotten root"
        ),
        pytest.param(
            make_project(severities={"GATE_CHANGED": "off"}), "the severity of GATE_CHANGED is fixed", id="a fixed severity"
        ),
    ],
)  # fmt: skip
def test_a_project_file_that_would_hide_findings_is_a_problem(
    gated_repository: Scratch, files: Files, problem: str
) -> None:
    options = as_index(gated_repository, files)
    assert problem in command.schemactl(gated_repository, "check", *options, code=1).err


def test_a_new_project_speaks_for_itself(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "new")
    scratch.commit({"README.md": "about"})
    closed = {"topics/sales.yaml": "namespace: shop/sales\nis_allow_auto_update_schema: false\n"}
    files = {**make_project(severities=OFF), **closed, "topics/orders.yaml": write_declaration(), **HARMLESS}
    code, report = check(scratch, *as_index(scratch, files))
    assert (code, report["findings"]) == (0, [])


def test_a_bad_verdict_is_never_reported_as_fine(gated_repository: Scratch) -> None:
    gated_repository.commit(make_project(severities=OFF))
    as_index(gated_repository, BREAK)
    out = command.schemactl(gated_repository, "check", "--staged").out
    assert (
        out.splitlines()[0]
        == "! 1 schema breaks readers, allowed by the severities: orders v1. The broker rejects orders v1."
    )
    assert "breaking" in out
    assert "all fine" not in out


@pytest.mark.parametrize("name", ["json", "sarif", "junit", "gitlab", "github", "markdown", "text"])
def test_a_check_that_cannot_decide_replaces_the_report_of_an_earlier_one(gated_repository: Scratch, name: str) -> None:
    report = gated_repository.path / "report"
    gated_repository.write({"topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: DUBLE}\n"})
    report.write_text("an earlier run")
    printed = command.schemactl(gated_repository, "check", "--format", f"{name}=report", code=1)
    assert "topics/orders.yaml:2:16" in printed.err
    text = report.read_text()
    assert "DUBLE" in text
    assert "NOT_DECIDED" in text
    assert "fine" not in text
