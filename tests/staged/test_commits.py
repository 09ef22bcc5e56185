"""Real commits, with a hook that checks in both ways: what is told on sight is what is worked out, whatever index git uses."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from scratch import ENVIRONMENT, Scratch, declared, record

REFUND = "topics/refunds.avsc"
FINE = record("id", name="Refund", reason=0)
BROKEN = record("id", "reason", name="Refund")

HOOK = """\
#!/bin/sh
{python} -c 'from schemactl import staged; print(staged.answer())' > '{log}/sight'
{python} -c 'import sys; from schemactl.cli import main; sys.exit(main(["check", "--staged"]))' > '{log}/report' 2>&1
code=$?
echo $code > '{log}/code'
exit $code
"""


class Desk(Scratch):
    """A repository on a branch whose commits go through a hook that checks in both ways."""

    def commits(self, *arguments: str, answers: str = "") -> tuple[bool, str | None]:
        """Whether `git commit` went through, and what was told on sight, which is what was worked out; None: nothing was."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=ENVIRONMENT,
            input=answers,
            capture_output=True,
            text=True,
            check=False,
        )
        sight, report, code = (
            (self.path.parent / name).read_text(encoding="utf-8") for name in ("sight", "report", "code")
        )
        assert (done.returncode == 0) == (code == "0\n"), done.stderr
        assert sight == "None\n" or (sight, "0\n") == (report, code)
        return done.returncode == 0, None if sight == "None\n" else sight

    def check(self) -> None:
        """What is staged now has been checked."""
        subprocess.run(
            [self.path / ".git" / "hooks" / "pre-commit"], cwd=self.path, env=ENVIRONMENT, check=True
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Refunds, approved and checked."""
    made = Desk(tmp_path / "team")
    made.commit(
        {
            "README.md": "one\n",
            "docs/guide.md": "one\n",
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            REFUND: record("id", name="Refund"),
            "topics/refunds.yaml": declared("shop/sales/refunds", "refunds.avsc"),
            "topics/orders.avsc": record("id"),
            "topics/orders.yaml": declared(),
        },
        "approved",
    )
    made.git("checkout", "-q", "-b", "work")
    script = HOOK.format(python=shlex.quote(sys.executable), log=tmp_path)
    for name in ("pre-commit", "pre-merge-commit"):
        hook = made.path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script, encoding="utf-8")
        hook.chmod(0o755)
    made.check()
    return made


def test_a_commit_of_everything_of_a_path_and_of_a_part_has_an_index_of_its_own(desk: Desk) -> None:
    desk.write({REFUND: FINE, "README.md": "two\n"})
    passed, told = desk.commits("commit", "-m", "readme", "README.md")
    assert passed
    assert told
    assert "0 changed" in told
    passed, told = desk.commits("commit", "-a", "-m", "everything")
    assert passed
    assert told
    assert "1 changed" in told
    desk.write({REFUND: BROKEN, "README.md": "three\n"})
    assert desk.commits("commit", "-m", "path", REFUND) == (False, None)
    passed, told = desk.commits("commit", "-p", "-m", "part", answers="y\nn\n")
    assert passed
    assert told
    assert desk.git("show", "HEAD:README.md") == "three"
    assert desk.commits("commit", "-a", "-m", "everything") == (False, None)


def test_the_index_counts_and_not_the_working_tree(desk: Desk) -> None:
    desk.write({REFUND: FINE})
    desk.git("add", REFUND)
    desk.write({REFUND: BROKEN})
    passed, told = desk.commits("commit", "-m", "fine")
    assert passed
    assert told
    assert "version 0, will be 1" in told


def test_a_commit_from_a_sub_folder_is_checked_at_the_top(desk: Desk) -> None:
    desk.write({REFUND: FINE})
    passed, told = desk.commits("-C", "topics", "commit", "-a", "-m", "fine")
    assert passed
    assert told


def test_a_linked_working_tree_is_checked_with_its_own_index(desk: Desk) -> None:
    desk.git("worktree", "add", "-q", "-b", "other", "../linked")
    linked = ("-C", "../linked", "commit", "-a")
    (desk.path.parent / "linked" / "README.md").write_text("two\n")
    assert desk.commits(*linked, "-m", "readme") == (True, None)
    (desk.path.parent / "linked" / REFUND).write_text(FINE)
    passed, told = desk.commits(*linked, "-m", "fine")
    assert passed
    assert told
    (desk.path.parent / "linked" / REFUND).write_text(BROKEN)
    assert desk.commits(*linked, "-m", "broken") == (False, None)


def test_deletions_renames_and_links_are_worked_out(desk: Desk) -> None:
    desk.git("mv", "topics/refunds.yaml", "topics/moved.yaml")
    assert desk.commits("commit", "-m", "move") == (True, None)
    desk.git("rm", "-q", REFUND)
    assert desk.commits("commit", "-m", "delete") == (False, None)
    desk.git("reset", "-q", "--hard")
    (desk.path / "topics" / "link.yaml").symlink_to("moved.yaml")
    desk.git("add", ".")
    assert desk.commits("commit", "-m", "link") == (False, None)


def test_what_is_noted_by_intent_to_add_is_not_part_of_the_commit(desk: Desk) -> None:
    desk.write({"topics/new.yaml": "topic: shop/sales/new\n", "README.md": "two\n"})
    desk.git("add", "--intent-to-add", "topics/new.yaml")
    desk.git("add", "README.md")
    passed, told = desk.commits("commit", "-m", "readme")
    assert passed
    assert told
    assert "0 changed" in told


def test_a_merge_is_compared_with_what_was_approved(desk: Desk) -> None:
    desk.write({REFUND: FINE})
    desk.commits("commit", "-a", "-m", "fine")
    desk.git("checkout", "-q", "-b", "other", "main")
    desk.write({"topics/orders.avsc": record("id", note=0)})
    desk.commits("commit", "-a", "-m", "also fine")
    passed, _ = desk.commits("merge", "--no-ff", "-m", "merge", "work")
    assert passed
    desk.check()
    passed, told = desk.commits("commit", "--amend", "--allow-empty", "-m", "merged")
    assert passed
    assert told
    assert "2 changed" in told
    desk.git("checkout", "-q", "work")
    desk.write({"topics/orders.avsc": record("id", more=0)})
    assert desk.commits("commit", "-a", "-m", "another")[0]
    desk.git("merge", "-q", "other", check=False)
    desk.git("checkout", "-q", "--theirs", "topics/orders.avsc")
    desk.git("add", "topics/orders.avsc")
    assert desk.commits("commit", "-m", "resolved")[0]


def test_a_sparse_index_is_as_good_as_a_whole_one(desk: Desk) -> None:
    desk.git("sparse-checkout", "set", "--cone", "--sparse-index", "topics")
    assert not (desk.path / "docs").exists()
    desk.write({"README.md": "two\n"})
    passed, told = desk.commits("commit", "-a", "-m", "readme")
    assert passed
    assert told
    desk.write({REFUND: FINE})
    passed, told = desk.commits("commit", "-a", "-m", "fine")
    assert passed
    assert told
    assert "1 changed" in told


def test_pre_commit_itself_gets_the_answer_on_sight(desk: Desk) -> None:
    start = "import sys; sys.argv[1:] = ['check', '--staged']; from schemactl.__main__ import main; sys.exit(main())"
    hook = {
        "id": "check",
        "name": "check",
        "language": "system",
        "always_run": True,
        "pass_filenames": False,
        "verbose": True,
    }
    hook["entry"] = shlex.join([sys.executable, "-c", start])
    desk.write(
        {".pre-commit-config.yaml": json.dumps({"repos": [{"repo": "local", "hooks": [hook]}]}), REFUND: FINE}
    )
    desk.git("add", ".")
    # Changes that are not staged are put aside meanwhile.
    desk.write({REFUND: BROKEN})
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run"],
        cwd=desk.path,
        env=ENVIRONMENT | {"PRE_COMMIT_HOME": str(desk.path.parent / "home")},
        capture_output=True,
        text=True,
        check=True,
    )
    desk.check()
    assert (desk.path.parent / "report").read_text() in done.stdout
