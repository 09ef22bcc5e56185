"""The commits of a branch, compared with the results of other git commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Scratch

from schemactl.history.git import Repository
from schemactl.history.merge import read_branch

pytestmark = pytest.mark.slow

COMMITS = 12

PARENTS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1, exclude_max=True)),
    min_size=COMMITS - 1,
    max_size=COMMITS - 1,
)
"""For every commit but the first: the earlier commit that is its parent, and the merged commit."""


@REPOSITORIES
@given(
    parents=PARENTS, pairs=st.lists(st.tuples(st.integers(1, COMMITS), st.integers(1, COMMITS)), min_size=3, max_size=3)
)
def test_fork_and_steps_are_those_of_merge_base_and_rev_list(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parents: list[tuple[float, float | None]],
    pairs: list[tuple[int, int]],
) -> None:
    shutil.rmtree(tmp_path / "r", ignore_errors=True)
    scratch = Scratch(tmp_path / "r", bare=True)
    monkeypatch.setenv("GIT_DIR", str(scratch.path))
    scratch.commit({"0": "x"}, branch="b0")
    for number, (first, second) in enumerate(parents, 1):
        start = int(first * number) + 1
        merge = None if second is None else int(second * number) + 1
        scratch.commit({str(number): "x"}, branch=f"b{number}", start=start, merge=None if merge == start else merge)
    scratch.flush()
    with Repository.open(scratch.path) as repository:
        for tip_mark, head_mark in pairs:
            tip, head = repository.commit(scratch.id(tip_mark)), repository.commit(scratch.id(head_mark))
            assert tip
            assert head
            branch = read_branch(repository, head=head, tip=tip)
            merge_base = repository.merge_base(head, tip)
            assert merge_base
            assert merge_base.id in scratch.git("merge-base", "--all", tip.id, head.id).split()
            own = {*scratch.git("rev-list", head.id, f"^{tip.id}").split()}
            rebased = scratch.git("rev-list", "--reverse", "--topo-order", "--no-merges", head.id, f"^{tip.id}")
            listed = scratch.git(
                "rev-list", "--reverse", "--topo-order", "--merges", "--parents", head.id, f"^{tip.id}"
            )
            merges = [line.split() for line in listed.splitlines()]
            inside = [merge for merge in merges if merge[1] in own or merge[1] == tip.id]
            updates = [merge for merge in inside if not own.issuperset(merge[2:])]
            line = scratch.git("rev-list", "--first-parent", head.id, f"^{tip.id}").split()
            queued = [merge[0] for merge in inside if merge not in updates and merge[0] in line]
            assert [step.commit.id for step in branch.commits] == [*rebased.split(), *queued]
            assert branch.is_updated == bool(updates)
            trees = [step for step in branch.commits if step.commit.id in queued]
            # No commit changes the files that a merge itself adds.
            assert all(step.changes == [] for step in trees)
            for step in branch.commits[: len(branch.commits) - len(trees)]:
                # Every commit adds one file, and a merge nothing else.
                assert len(step.changes) == 1
