"""A change cannot disable the check that judges it: the approved settings judge, and weakening them is a finding."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Files, Scratch, record, write_declaration

import schemactl
from schemactl.cli import main

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


def make_namespace(strategy: str) -> dict[str, str | None]:
    """Return the declaration of the namespace with this strategy."""
    return {"topics/sales.yaml": f"namespace: shop/sales\nschema_compatibility_strategy: {strategy}\n"}


OFF = {"READER_FIELD_MISSING_DEFAULT_VALUE": "off", "BROKER_INCOMPATIBLE": "off"}
MOVED = {"topic/orders.yaml": write_declaration(), "topic/orders.avsc": record("id", "note")}

EVASIONS: dict[str, dict[str, str | None]] = {
    name: {
        path: make_project(**text)["schemactl.yaml"] if isinstance(text, dict) else text for path, text in files.items()
    }
    for name, files in yaml.safe_load(Path(__file__).with_name("evasions.yaml").read_text()).items()
}
"""The files that a change adds to its breaking change to evade the check."""


@pytest.fixture
def gated_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "r")
    scratch.commit(
        {**make_project(), "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}, "v0"
    )
    return scratch


def check(repository: Scratch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `check` and its report."""
    code = main(["-C", str(repository.path), "check", "--format", "json", *arguments])
    out = capsys.readouterr()
    assert code in (0, 100), out.err
    report: dict[str, Any] = json.loads(out.out)
    return code, report


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


MODES = pytest.mark.parametrize("mode", [as_branch, as_merge, as_index])


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
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str], mode: Any, evasion: dict[str, str | None]
) -> None:
    code, report = check(gated_repository, capsys, *mode(gated_repository, {**BREAK, **evasion}))
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


def test_no_format_and_no_option_hides_a_break_whose_rules_the_change_turns_off(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_index(gated_repository, {**BREAK, **make_project(severities=OFF)})
    for name in ("text", "json", "markdown", "github", "sarif", "junit", "gitlab"):
        for strict in ([], ["--strict"]):
            command = ["-C", str(gated_repository.path), "check", "--staged", "--format", name, *strict]
            assert main(command) == 100
            out = capsys.readouterr().out
            assert "READER_FIELD_MISSING_DEFAULT_VALUE" in out
            assert "all fine" not in out


def test_a_topic_that_was_deleted_is_judged_by_its_versions_when_it_comes_back(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    gated_repository.commit(
        {"topics/orders.yaml": None, "topics/orders.avsc": None, **make_namespace("BACKWARD")}, "gone"
    )
    code, report = check(
        gated_repository, capsys, *as_index(gated_repository, {**BREAK, **make_topic("lifecycle: draft\n")})
    )
    assert code == 100
    assert list_rules(report) >= {"READER_FIELD_MISSING_DEFAULT_VALUE"}
    assert list_rules(report, "warning") >= {"DRAFT_AGAIN"}


def test_a_break_that_was_approved_as_a_draft_is_found_when_the_topic_is_stable_again(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    gated_repository.commit(make_topic("lifecycle: draft\n"), "draft")
    gated_repository.commit(BREAK, "break")
    code, report = check(gated_repository, capsys, *as_index(gated_repository, make_topic("")))
    assert (code, list_rules(report)) == (100, {"DRAFT_VERSIONS_BREAK"})


def test_work_that_began_before_the_project_is_judged_by_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"README.md": "about"})
    scratch.commit({**make_project(), **make_topic(""), "topics/orders.avsc": V0}, "v0")
    scratch.commit({**make_project(severities=OFF), **make_topic(""), **BREAK}, branch="work", start=1)
    scratch.git("checkout", "-q", "work")
    code, report = check(scratch, capsys, "--base", "main")
    assert code == 100
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in list_rules(report)


def test_work_that_has_no_commit_in_common_with_the_record_is_not_judged_at_all(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    gated_repository.git("checkout", "-q", "--orphan", "work")
    gated_repository.write({**BREAK, **make_project(severities=OFF)})
    gated_repository.git("add", "-A")
    gated_repository.git("commit", "-qm", "break")
    assert main(["-C", str(gated_repository.path), "check", "--base", "main"]) == 1
    assert "have no commit in common" in capsys.readouterr().err


@pytest.mark.parametrize("after", ["namespace: shop/sales\nschema_validation_enforced: false\n", None])
def test_a_namespace_that_lets_unchecked_schemas_in_again_is_found_by_the_hook(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str], after: str | None
) -> None:
    strict = "is_allow_auto_update_schema: false\nschema_validation_enforced: true\n"
    gated_repository.commit({"topics/sales.yaml": f"namespace: shop/sales\n{strict}"})
    _, report = check(gated_repository, capsys, *as_index(gated_repository, {"topics/sales.yaml": after}))
    assert [finding["rule"] for finding in report["findings"]] == ["PROTECTION_LOST"] * 2


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


@MODES
def test_a_harmless_change_passes(gated_repository: Scratch, capsys: pytest.CaptureFixture[str], mode: Any) -> None:
    code, report = check(gated_repository, capsys, *mode(gated_repository, HARMLESS))
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
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str], name: str, options: list[str]
) -> None:
    rule, place, text = CHANGED[name]
    for files in (EVASIONS[name], {**EVASIONS[name], **HARMLESS}):
        code, report = check(gated_repository, capsys, *as_index(gated_repository, files), *options)
        assert code == 0
        [warning] = report["findings"]
        assert (warning["rule"], warning["severity"]) == (rule, "warning")
        assert f"{warning['file']}:{warning['line']}:{warning['column']}".startswith(place)
        assert text in warning["message"]


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\nversion: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n",
        "{version: 1, defaults: {schema_compatibility_strategy: 'BACKWARD'}, roots: ['topics']}\n",
    ],
)
def test_comments_and_layout_of_a_judging_file_change_nothing(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    code, report = check(gated_repository, capsys, *as_index(gated_repository, {"schemactl.yaml": text}))
    assert (code, report["findings"]) == (0, [])


def test_the_effects_of_stricter_settings_are_described(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    gated_repository.commit({"topics/orders.avsc": record("id", note=0)}, "v1")
    stricter = make_project(
        defaults={"schema_compatibility_strategy": "FULL_TRANSITIVE"},
        severities={"NOT_STORED": "error"},
        protobuf={"rules": "WIRE"},
    )
    code, report = check(gated_repository, capsys, *as_index(gated_repository, stricter))
    assert code == 0
    [warning] = report["findings"]
    assert warning["message"].splitlines()[1:] == [
        "After the merge: `defaults.schema_compatibility_strategy` is FULL_TRANSITIVE (was BACKWARD).",
        "After the merge: `protobuf.rules` is WIRE (was not set).",
        "After the merge: `severities.NOT_STORED` is error (was not set).",
        "After the merge: 1 topic (persistent://shop/sales/orders) is FULL_TRANSITIVE, no longer BACKWARD.",
    ]


def test_a_root_moves_with_its_files(gated_repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    moved = make_project(roots=["topic"], previous_roots=["topics"])
    files = {**moved, **MOVED, "topics/orders.yaml": None, "topics/orders.avsc": None}
    code, report = check(
        gated_repository, capsys, *as_index(gated_repository, {**files, "topic/orders.avsc": record("id")})
    )
    assert (code, list_rules(report, "warning"), list_rules(report), report["checked"]) == (
        0,
        {"GATE_CHANGED"},
        set(),
        1,
    )
    code, report = check(gated_repository, capsys, *as_index(gated_repository, MOVED))
    assert code == 100
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in list_rules(report)


def test_a_root_that_is_forgotten_is_a_problem(gated_repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    as_index(gated_repository, {**make_project(roots=["topic"]), **MOVED})
    assert main(["-C", str(gated_repository.path), "check", "--staged"]) == 1
    assert "add `topics` to `previous_roots` in schemactl.yaml" in capsys.readouterr().err


def test_a_new_project_speaks_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = Scratch(tmp_path / "new")
    scratch.commit({"README.md": "about"})
    closed = {"topics/sales.yaml": "namespace: shop/sales\nis_allow_auto_update_schema: false\n"}
    files = {**make_project(severities=OFF), **closed, "topics/orders.yaml": write_declaration(), **HARMLESS}
    code, report = check(scratch, capsys, *as_index(scratch, files))
    assert (code, report["findings"]) == (0, [])


def test_fixed_severities_cannot_be_set(gated_repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    as_index(gated_repository, make_project(severities={"GATE_CHANGED": "off"}))
    assert main(["-C", str(gated_repository.path), "check", "--staged"]) == 1
    assert "the severity of GATE_CHANGED is fixed" in capsys.readouterr().err


def test_a_bad_verdict_is_never_reported_as_fine(gated_repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    gated_repository.commit(make_project(severities=OFF))
    as_index(gated_repository, BREAK)
    assert main(["-C", str(gated_repository.path), "check", "--staged"]) == 0
    out = capsys.readouterr().out
    assert (
        out.splitlines()[0]
        == "! 1 schema breaks readers, allowed by the severities: orders v1. The broker rejects orders v1."
    )
    assert "breaking" in out
    assert "all fine" not in out


@pytest.mark.parametrize("name", ["json", "sarif", "junit", "gitlab", "github", "markdown", "text"])
def test_a_check_that_cannot_decide_replaces_the_report_of_an_earlier_one(
    gated_repository: Scratch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    report = gated_repository.path / "report"
    gated_repository.write({"topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: DUBLE}\n"})
    report.write_text("an earlier run")
    code = main(["-C", str(gated_repository.path), "check", "--format", f"{name}=report"])
    assert code == 1
    assert "topics/orders.yaml:2:16" in capsys.readouterr().err
    text = report.read_text()
    assert "DUBLE" in text
    assert "NOT_DECIDED" in text
    assert "fine" not in text
