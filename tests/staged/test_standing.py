"""The hook's short cut: it answers as the complete check does, or not at all, and asks git once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from desk import Desk
from scratch import Scratch, declared, record

from schemactl import cli, staged

REFUND = "topics/refunds.avsc"
HEAVY = {
    *(
        "pydantic",
        "git",
        "fastavro",
        "google",
        "pyspark",
        "urllib3",
        "asyncio",
        "click",
        "rich",
        "yaml",
        "subprocess",
    ),
    *("argparse", "typing", "dataclasses", "pathlib", "json", "re", "schemactl.cli", "schemactl.model"),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """Two approved topics, one with a definition outside of the roots, and work on a branch."""
    scratch = Scratch(tmp_path / "team")
    scratch.commit(
        {
            "README.md": "a",
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "common/money.avsc": record("amount", name="Money"),
            "topics/orders.avsc": '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}',
            "topics/orders.yaml": declared(more="  references: [../common/money.avsc]\n"),
            REFUND: record("id", name="Refund"),
            "topics/refunds.yaml": declared("shop/sales/refunds", "refunds.avsc"),
        },
        "approved",
    )
    scratch.git("checkout", "-q", "-b", "work")
    return Desk(scratch, monkeypatch, capsys)


def test_the_first_check_is_worked_out_and_the_second_told_on_sight(desk: Desk) -> None:
    assert staged.answer() is None
    assert desk.work_out()[0] == 0
    assert "0 changed" in desk.holds()


def test_what_concerns_no_schema_is_told_on_sight(desk: Desk) -> None:
    desk.work_out()
    desk.stage("README.md", "b")
    desk.stage("topics/notes.txt", "b")
    desk.stage("src/data.json", "{}")
    desk.holds()
    desk.git("commit", "-q", "-m", "moves HEAD")
    desk.holds()


def test_a_change_that_was_checked_is_told_on_sight_as_long_as_nothing_joins_it(desk: Desk) -> None:
    desk.work_out()
    desk.stage("topics/new.yaml", "topic: shop/sales/new\n")
    assert staged.answer() is None
    assert desk.work_out()[0] == 0
    assert "1 changed" in desk.holds()
    desk.git("commit", "-q", "-m", "topic")
    desk.stage("README.md", "b")
    assert "1 changed" in desk.holds()
    desk.git("rm", "-q", "topics/new.yaml")
    assert staged.answer() is None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (REFUND, record("id", "reason", name="Refund")),
        ("topics/refunds.yaml", None),
        ("topics/new.yaml", declared("shop/sales/new", "refunds.avsc")),
        ("topics/deep/er/new.yml", "topic: shop/sales/new\n"),
        ("common/money.avsc", record("amount", name="Money", currency="EUR")),
        ("common/money.avsc", None),
        ("schemactl.yaml", "version: 1\nroots: [topics]\npulsar: '4.2'\n"),
        ("lib/schemactl.yaml", "version: 1\n"),
    ],
)
def test_what_concerns_a_schema_is_worked_out(desk: Desk, path: str, content: str | None) -> None:
    desk.work_out()
    desk.stage(path, content)
    assert staged.answer() is None


def test_a_link_in_a_root_is_worked_out(desk: Desk) -> None:
    desk.work_out()
    (desk.path / "topics" / "link").symlink_to("refunds.yaml")
    desk.git("add", "topics/link")
    assert staged.answer() is None
    assert desk.work_out()[0] == 1


def test_a_merge_that_is_not_finished_is_worked_out(desk: Desk) -> None:
    desk.work_out()
    desk.git("checkout", "-q", "-b", "other")
    desk.stage(REFUND, record("id", name="Refund", one=1))
    desk.git("commit", "-q", "-m", "one")
    desk.git("checkout", "-q", "work")
    desk.stage(REFUND, record("id", name="Refund", two=2))
    desk.git("commit", "-q", "-m", "two")
    desk.scratch.git("merge", "-q", "other", check=False)
    assert staged.answer() is None
    assert desk.work_out()[0] == 1


def test_a_file_noted_by_intent_to_add_is_not_staged(desk: Desk) -> None:
    desk.work_out()
    (desk.path / "topics" / "new.yaml").write_text("topic: shop/sales/new\n")
    desk.git("add", "--intent-to-add", "topics/new.yaml")
    desk.holds()


def test_what_was_approved_since_is_worked_out(desk: Desk) -> None:
    desk.work_out()
    desk.git("branch", "-f", "main", desk.git("commit-tree", "-m", "x", "-p", "main", "main^{tree}").strip())
    assert staged.answer() is None
    desk.work_out()
    desk.holds()
    desk.git("pack-refs", "--all")
    desk.holds()
    desk.git("tag", "main")
    assert staged.answer() is None or desk.holds()


def test_another_branch_that_left_elsewhere_is_worked_out(desk: Desk) -> None:
    desk.git("checkout", "-q", "main")
    desk.stage(REFUND, record("id", name="Refund", reason=0))
    desk.git("commit", "-q", "-m", "approved")
    desk.work_out()
    desk.holds()
    desk.git("checkout", "-q", "work")
    assert staged.answer() is None
    assert desk.work_out()[0] == 0


def test_a_remote_that_tells_its_default_branch_is_worked_out(desk: Desk) -> None:
    desk.work_out()
    desk.git("update-ref", "refs/remotes/origin/trunk", "main")
    desk.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert staged.answer() is None
    assert "origin/trunk" in desk.work_out()[1]
    desk.git("commit", "-q", "--allow-empty", "-m", "moves HEAD")
    assert "origin/trunk" in desk.holds()


def test_a_history_cut_off_is_worked_out(desk: Desk) -> None:
    desk.work_out()
    (desk.path / ".git" / "shallow").write_text(desk.git("rev-parse", "main"))
    assert staged.answer() is None


def test_a_check_that_failed_or_looked_at_a_part_leaves_nothing(desk: Desk) -> None:
    desk.stage(REFUND, record("id", "reason", name="Refund"))
    assert desk.work_out()[0] == 100
    assert staged.answer() is None
    desk.git("reset", "-q")
    assert cli.main(["check", "--staged", "--topic", "*refunds"]) == 0
    assert cli.main(["check"]) == 100
    assert staged.answer() is None


def test_a_warning_and_a_note_are_told_again(desk: Desk) -> None:
    desk.stage("topics/refunds.yaml", None)
    desk.stage("schemactl.yaml", "version: 1\nroots: [topics]\npulsar: '4.1'\n")
    code, said = desk.work_out()
    assert code == 0
    assert "DELETED_TOPIC" in said
    assert "note: " in said
    desk.holds()


def test_a_sub_folder_has_its_own_answer(desk: Desk) -> None:
    desk.stage("apart/schemactl.yaml", "version: 1\nroots: [topics]\n")
    desk.stage("apart/topics/one.yaml", "topic: a/b/c\n")
    assert desk.work_out()[1].startswith("2 topics")
    desk.enter(desk.path / "apart")
    assert staged.answer() is None
    assert desk.work_out()[1].startswith("persistent://a/b/c") or "1 topic " in desk.work_out()[1]
    desk.holds()
    desk.enter(desk.path.parent)
    assert staged.answer() is None


def test_a_linked_working_tree_has_its_own_answer(desk: Desk, tmp_path: Path) -> None:
    desk.work_out()
    desk.git("worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"), "main")
    desk.enter(tmp_path / "linked")
    assert staged.answer() is None
    desk.work_out()
    desk.holds()
    desk.stage(REFUND, record("id", "reason", name="Refund"))
    assert staged.answer() is None
    # As git sets it for a hook in a linked working tree.
    desk.git("reset", "-q", "--hard")
    desk.monkeypatch.setenv("GIT_DIR", desk.git("rev-parse", "--absolute-git-dir").strip())
    desk.holds()


def test_the_index_that_git_names_counts(desk: Desk) -> None:
    desk.work_out()
    desk.stage(REFUND, record("id", "reason", name="Refund"))
    (desk.path / ".git" / "index").rename(desk.path / ".git" / "other")
    desk.git("reset", "-q")
    desk.holds()
    desk.monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    assert staged.answer() is None


@pytest.mark.parametrize("variable", ["GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_NAMESPACE"])
def test_what_moves_gits_folders_is_left_to_git(desk: Desk, variable: str) -> None:
    desk.work_out()
    desk.monkeypatch.setenv(variable, str(desk.path))
    assert staged.answer() is None


@pytest.mark.parametrize("damage", [b"", b"schemactl staged 1", b"schemactl staged 1 5 x\n", b"x" * 5000])
def test_a_damaged_note_is_made_anew(desk: Desk, damage: bytes) -> None:
    desk.work_out()
    note = desk.path / ".git" / "schemactl" / "staged"
    whole = note.read_bytes()
    for content in (damage, whole[:-1], whole + b"x"):
        note.write_bytes(content)
        assert staged.answer() is None
    desk.work_out()
    assert note.read_bytes() == whole


def test_where_nothing_can_be_kept_every_check_is_worked_out(desk: Desk) -> None:
    (desk.path / ".git" / "schemactl").write_text("in the way")
    assert desk.work_out()[0] == 0
    assert staged.answer() is None


def test_without_a_commit_or_a_repository_it_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert staged.answer() is None
    Scratch(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "empty")
    assert staged.answer() is None


def test_a_sha256_repository_is_told_on_sight_like_any_other(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch = Scratch(tmp_path / "long", object_format="sha256")
    scratch.commit({"schemactl.yaml": "version: 1\n", "namespaces/a.yaml": "topic: a/b/c\n"})
    scratch.flush()
    del desk
    other = Desk(scratch, monkeypatch, capsys)
    other.work_out()
    other.holds()


def test_nothing_to_do_takes_one_git_process_and_no_library(desk: Desk) -> None:
    _, said = desk.work_out()
    printed, modules, started = desk.process()
    assert (printed, started) == (said, 1)
    assert modules & HEAVY == set()
    desk.stage("README.md", "b")
    desk.git("commit", "-q", "-m", "moves HEAD")
    assert [desk.process()[2] for _ in range(2)] == [2, 1]


@pytest.mark.parametrize("seed", range(3))
def test_on_any_walk_the_answer_on_sight_is_that_of_the_complete_check(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  no secret
    contents = [
        record("id", name="Refund"),
        record("id", name="Refund", reason=0),
        record("id", "x", name="Refund"),
        "{",
    ]

    steps: list[Callable[[], object]] = [
        lambda: desk.stage(REFUND, rng.choice(contents)),
        lambda: desk.stage(REFUND, rng.choice(contents)),
        lambda: desk.stage("README.md", str(rng.random())),
        lambda: desk.stage("common/money.avsc", record("amount", rng.choice("abc"), name="Money")),
        lambda: desk.stage(f"topics/{rng.choice('ab')}.yaml", f"topic: shop/sales/{rng.choice('ab')}\n"),
        lambda: desk.scratch.git("mv", "topics/orders.yaml", "topics/moved.yaml", check=False),
        lambda: desk.git("commit", "-q", "--allow-empty", "-m", "step"),
        lambda: desk.git("reset", "-q", "--hard"),
        lambda: desk.git(
            "checkout", "-q", "-f", "-B", rng.choice(["work", "other"]), rng.choice(["HEAD", "main"])
        ),
        lambda: desk.git("branch", "-f", "main", "HEAD"),
    ]
    seen = 0
    for _ in range(25):
        rng.choice(steps)()
        told = staged.answer()
        worked_out = desk.work_out()
        assert told is None or worked_out == (0, told)
        seen += told is not None
    assert seen
