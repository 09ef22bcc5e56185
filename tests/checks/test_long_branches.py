"""The work to judge a branch of many commits is limited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

from schemactl.checks.proposal import Proposal
from schemactl.core.findings import Verdict
from schemactl.core.project import Project

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL_TRANSITIVE}\n"


def grow_branch(path: Path, commits: int, *, topics: int = 1, breaks: bool = False, more: str = "") -> Scratch:
    """Make a branch whose commits each add a version of a topic; the last one repairs a breaking change."""
    scratch = Scratch(path)
    names = [f"t{number}" for number in range(topics)]
    files = {f"topics/{name}.yaml": write_declaration(f"a/b/{name}", f"{name}.avsc") for name in names}
    files |= {f"topics/{name}.avsc": record("id") for name in names}
    scratch.commit({"schemactl.yaml": PROJECT + more, **files})
    for number in range(commits):
        fields: dict[str, Any] = {f"f{number}": 0}
        is_break = breaks and number == commits - 1 - topics
        text = record("other") if is_break else record("id", **fields)
        start = 1 if number == 0 else None
        scratch.commit({f"topics/{names[number % topics]}.avsc": text}, branch="work", start=start)
    scratch.git("checkout", "-q", "work")
    return scratch


def check(scratch: Scratch) -> Any:
    """Return the report of a check of the branch."""
    return run_json(scratch, "check", "--base", "main", code=(0, 100))


def test_a_branch_of_3000_versions_is_judged_by_its_end_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []
    verdict = Proposal.judge

    def record_verdict(proposal: Proposal, project: Project) -> Verdict:
        judged.append(proposal)
        return verdict(proposal, project)

    monkeypatch.setattr(Proposal, "judge", record_verdict)
    [finding] = check(grow_branch(tmp_path / "r", 3000))["findings"]
    assert (finding["rule"], finding["severity"]) == ("STEP_REFUSED", "warning")
    assert "3000 commits of the 3000 on this branch each add a version of" in finding["message"]
    assert "too many to judge separately, so only the end of the branch was judged" in finding["message"]
    assert len(judged) < 5


def test_a_team_that_rebases_lets_no_such_branch_pass(tmp_path: Path) -> None:
    scratch = grow_branch(tmp_path / "r", 600, more="severities: {STEP_REFUSED: error}\n")
    schemactl(scratch, "check", "--base", "main", code=100)


@pytest.mark.parametrize(("commits", "topics"), [(200, 1), (300, 10)])
def test_a_branch_of_hundreds_of_versions_is_judged_commit_by_commit(tmp_path: Path, commits: int, topics: int) -> None:
    findings = check(grow_branch(tmp_path / "r", commits, topics=topics, breaks=True))["findings"]
    assert {finding["rule"] for finding in findings} == {"STEP_REFUSED"}
    assert f"{commits - topics} of {commits} on this branch, breaks" in findings[0]["message"]


def test_commits_that_change_nothing_declared_are_not_judged(tmp_path: Path) -> None:
    scratch = grow_branch(tmp_path / "r", 1)
    for number in range(1000):
        doc = record("id", doc=f"{number}", f0=0)
        scratch.commit({"topics/t0.avsc": doc}, branch="work")
    scratch.git("checkout", "-q", "work")
    assert check(scratch)["findings"] == []
