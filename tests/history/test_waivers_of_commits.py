"""A commit is judged by the waivers in its own tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import Scratch

from schemactl.core.project import Project
from schemactl.history.approved_history import read_waivers_of_commit
from schemactl.history.git import Repository

ENTRY = (
    "- {{rule: BROKER_INCOMPATIBLE, topic: shop/sales/orders, fingerprint: 'sha256:{digits}', reason: meant, "
    "owner: ada, until: 2020-01-31}}\n"
)
PROJECT = "version: 1\nwaivers: {path}\n"


def write_entry(digit: str) -> str:
    return ENTRY.format(digits=digit * 64)


@pytest.fixture
def waiver_repository(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "repository")


def read_digits(scratch: Scratch, mark: int, project: Project = Project()) -> str:  # noqa: B008  a frozen value
    """Return the first digits of the fingerprints of the waivers at a commit."""
    with Repository.open(str(scratch.path)) as repository:
        commit = repository.commit(scratch.id(mark))
        assert commit
        return "".join(waiver.fingerprint[7] for waiver in read_waivers_of_commit(repository, project, commit))


def test_a_commit_keeps_its_waivers_when_the_file_goes(waiver_repository: Scratch) -> None:
    first = waiver_repository.commit({"waivers.yaml": write_entry("a")})
    second = waiver_repository.commit({"waivers.yaml": write_entry("a") + write_entry("b")})
    third = waiver_repository.commit({"waivers.yaml": None})
    assert [read_digits(waiver_repository, mark) for mark in (first, second, third)] == ["a", "ab", ""]


def test_the_path_is_the_one_that_the_commit_itself_names(waiver_repository: Scratch) -> None:
    project = Project(waivers="approvals/waivers.yaml")
    first = waiver_repository.commit({"schemactl.yaml": PROJECT.format(path="old.yaml"), "old.yaml": write_entry("a")})
    second = waiver_repository.commit(
        {
            "schemactl.yaml": PROJECT.format(path=project.waivers),
            "old.yaml": None,
            "approvals/waivers.yaml": write_entry("b"),
        }
    )
    assert [read_digits(waiver_repository, mark, project) for mark in (first, second)] == ["a", "b"]


def test_entries_and_project_files_that_cannot_be_read_take_nothing_else_away(waiver_repository: Scratch) -> None:
    wrong = write_entry("a").replace("BROKER_INCOMPATIBLE", "NO_LONGER_A_RULE")
    mark = waiver_repository.commit({"schemactl.yaml": "version: [", "waivers.yaml": wrong + write_entry("b")})
    assert read_digits(waiver_repository, mark) == "b"
