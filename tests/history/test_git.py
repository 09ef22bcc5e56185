"""Reading commits, changes and objects through git, also from unusual repositories and commits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from command import run_interpreter, schemactl
from scratch import ENVIRONMENT, FIRST_COMMIT_S, Scratch, record, write_declaration

from schemactl.core.errors import HistoryError
from schemactl.core.schema import Commit
from schemactl.declare.files import MAX_BYTES
from schemactl.history.git import LATEST_S, ChangedFile, Repository, log

pytestmark = pytest.mark.slow


def list_steps(scratch: Scratch, ref: str = "main") -> list[tuple[str, list[ChangedFile]]]:
    scratch.flush()
    with Repository.open(scratch.path) as repository:
        tip = repository.commit(ref)
        assert tip
        return [(step.commit.subject, step.changes) for step in log(repository, tip.id)]


def list_paths(scratch: Scratch) -> list[tuple[str, list[str]]]:
    return [(subject, [change.path for change in changes]) for subject, changes in list_steps(scratch)]


@pytest.fixture
def git_repository(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "r")


def test_a_folder_outside_any_repository_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="is not in a Git repository") as caught:
        Repository.open(tmp_path)
    assert "-C DIR" in caught.value.fix


def test_another_owners_repository_is_refused_with_gits_own_advice(
    git_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with (
        pytest.raises(HistoryError, match="dubious ownership") as caught,
        Repository.open(git_repository.path) as repository,
    ):
        repository.commit("HEAD")
    assert f"git config --global --add safe.directory {git_repository.path}" in caught.value.fix


@pytest.mark.parametrize("refresh", ["raise", "quiet"])
def test_git_missing_is_one_clear_error(tmp_path: Path, refresh: str) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.write({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    # GitPython can be told not to look for git when it is imported.
    printed = run_interpreter(scratch, "log", "--all", PATH=str(tmp_path), GIT_PYTHON_REFRESH=refresh)
    refused = "schemactl: git was not found\n  Fix: install Git 2.38 or newer, and have it on PATH\n"
    assert (printed.code, printed.err) == (1, refused)


@pytest.mark.parametrize(("version", "is_accepted"), [("2.37.9", False), ("2.38.0", True), ("10.0.rc1", True)])
def test_an_older_git_is_one_clear_error(tmp_path: Path, version: str, *, is_accepted: bool) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && exec echo git version {version}\nexec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    scratch = Scratch(tmp_path / "r")
    scratch.write({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    path = f"{git.parent}:{os.environ['PATH']}"
    printed = run_interpreter(scratch, "log", "--all", PATH=path)
    refused = f"schemactl: git {version[:4]} is too old\n  Fix: install Git 2.38 or newer, and have it on PATH\n"
    assert (printed.code, printed.err) == ((0, printed.err) if is_accepted else (1, refused))


def test_top_level_and_common_directory_are_found_from_a_linked_worktrees_sub_folder(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"a/b.txt": "x"})
    scratch.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    with Repository.open(tmp_path / "linked" / "a") as repository:
        assert repository.top == tmp_path / "linked"
        assert repository.common_directory == scratch.path / ".git"


def test_a_bare_repository_has_no_top_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(scratch.path))
    scratch.commit({"a": "x"})
    assert list_paths(scratch) == [("change", ["a"])]
    with Repository.open(scratch.path) as repository:
        assert repository.top is None


def test_a_commit_has_id_committer_time_and_subject(git_repository: Scratch) -> None:
    mark = git_repository.commit({"a": "x"}, "first line\nsecond line\n\nbody")
    expected = Commit(git_repository.id(mark), FIRST_COMMIT_S + mark, "first line second line")
    with Repository.open(git_repository.path) as repository:
        assert repository.commit("main") == expected
        assert [step.commit for step in log(repository, expected.id)] == [expected]


def test_an_annotated_tag_names_its_commit(git_repository: Scratch) -> None:
    mark = git_repository.commit({"a": "x"})
    git_repository.git("tag", "-a", "-m", "approved", "v1", "main")
    with Repository.open(git_repository.path) as repository:
        commit = repository.commit("v1")
    assert commit
    assert commit.id == git_repository.id(mark)


@pytest.mark.parametrize(
    "name", ["nope", "--help", "-h", "main..main", "^main", "main main", "", "a\nb", "main:a", "@{upstream}", "main~5"]
)
def test_what_names_no_commit_is_no_commit(git_repository: Scratch, name: str) -> None:
    git_repository.commit({"a": "x"})
    git_repository.flush()
    with Repository.open(git_repository.path) as repository:
        assert repository.commit(name) is None
        assert repository.commit("main") is not None


def test_objects_come_in_the_order_asked_for_and_missing_ones_are_none(git_repository: Scratch) -> None:
    git_repository.commit({f"f{number}": f"content {number}\n" * 500 for number in range(300)})
    git_repository.flush()
    with Repository.open(git_repository.path) as repository:
        names = [f"main:f{number}" for number in range(301)]
        first_lines = [blob.content.split(b"\n")[0] if blob else None for blob in repository.objects(names)]
    assert first_lines == [*(b"content %d" % number for number in range(300)), None]


def test_whoever_stops_taking_objects_leaves_the_next_question_its_own_answer(git_repository: Scratch) -> None:
    git_repository.commit({f"f{number}": str(number) for number in range(300)})
    git_repository.flush()
    with Repository.open(git_repository.path) as repository:
        for _ in repository.objects([f"main:f{number}" for number in range(300)]):
            break
        (blob,) = repository.objects(["main:f7"])
        assert blob
        assert blob.content == b"7"


def test_the_content_of_a_huge_file_is_left_out(git_repository: Scratch) -> None:
    git_repository.commit({"huge": b"x" * (MAX_BYTES + 1), "large": b"y" * MAX_BYTES})
    git_repository.flush()
    with Repository.open(git_repository.path) as repository:
        huge, large = repository.objects(["main:huge", "main:large"])
    assert huge
    assert large
    assert (huge.size_bytes, huge.content) == (MAX_BYTES + 1, b"")
    assert (large.size_bytes, large.content) == (MAX_BYTES, b"y" * MAX_BYTES)


def test_a_missing_blob_is_an_error_that_names_it(git_repository: Scratch) -> None:
    with Repository.open(git_repository.path) as repository, pytest.raises(HistoryError, match="no blob 0123"):
        repository.blob("0123" * 10)


def test_a_broken_object_is_an_error_and_no_traceback(git_repository: Scratch) -> None:
    git_repository.write({"a": bytes(range(256)) * 500})
    git_repository.git("add", "a")
    blob = git_repository.git("rev-parse", ":a")
    file = git_repository.path / ".git" / "objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-100])
    with Repository.open(git_repository.path) as repository, pytest.raises(HistoryError, match="git stopped") as caught:
        repository.blob(blob)
    assert "git fsck" in caught.value.fix
    assert blob in str(caught.value)


def test_a_merge_is_one_step_with_all_it_brings(git_repository: Scratch) -> None:
    root = git_repository.commit({"a": "1"}, "root")
    git_repository.commit({"b": "1"}, "b on a branch", branch="topic", start=root)
    side = git_repository.commit({"c": "1"}, "c on a branch", branch="topic")
    git_repository.commit({"a": "2"}, "meanwhile")
    git_repository.commit({"b": "1", "c": "1"}, "merge", merge=side)
    assert list_paths(git_repository) == [("root", ["a"]), ("meanwhile", ["a"]), ("merge", ["b", "c"])]


def test_a_commit_without_changes_is_a_step(git_repository: Scratch) -> None:
    git_repository.commit({"a": "1"}, "one")
    git_repository.commit({}, "")
    git_repository.commit({"a": None}, "three")
    assert list_paths(git_repository) == [("one", ["a"]), ("", []), ("three", ["a"])]


def test_a_renamed_file_goes_and_comes(git_repository: Scratch) -> None:
    git_repository.commit({"a": "1"})
    git_repository.commit({"a": None, "b": "1"})
    assert [(change.path, change.mode) for change in list_steps(git_repository)[1][1]] == [
        ("a", "000000"),
        ("b", "100644"),
    ]


def test_no_setting_of_the_user_changes_what_is_read(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    root = scratch.commit({"s/a": "1\n" * 50, "s/b": "2\n" * 50, "ü": "3"}, "root")
    side = scratch.commit({"s/c": "3"}, "side", branch="topic", start=root)
    scratch.commit({"s/a": None, "moved": "1\n" * 50}, "moved")
    scratch.commit({"s/c": "3"}, "größer", merge=side)
    scratch.git("update-index", "--add", "--cacheinfo", f"160000,{scratch.id(1)},module")
    scratch.git("commit", "-qm", "module")
    scratch.git("update-index", "--cacheinfo", f"160000,{scratch.id(2)},module")
    scratch.git("commit", "-qm", "newer module")
    signed = scratch.git("cat-file", "commit", "main").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n", 1
    )
    (scratch.path / "signed").write_text(signed + "\n")
    scratch.git("reset", "-q", scratch.git("hash-object", "-t", "commit", "-w", "signed"))
    gpg = tmp_path / "gpg"
    gpg.write_text("#!/bin/sh\necho no good >&2\nexit 1\n")
    gpg.chmod(0o755)
    expected = list_steps(scratch)
    for name, value in {
        "diff.renames": "copies",
        "log.showRoot": "false",
        "log.showSignature": "true",
        "log.diffMerges": "combined",
        "log.abbrevCommit": "true",
        "log.decorate": "full",
        "diff.relative": "true",
        "diff.noPrefix": "true",
        "diff.orderFile": "nowhere",
        "diff.ignoreSubmodules": "all",
        "diff.external": "false",
        "core.abbrev": "5",
        "core.quotePath": "true",
        "i18n.logOutputEncoding": "latin1",
        "format.pretty": "oneline",
        "color.ui": "always",
        "core.pager": "false",
        "gpg.program": str(gpg),
    }.items():
        scratch.git("config", name, value)
    scratch.write({"s/here": ""})
    with Repository.open(scratch.path / "s") as repository:
        tip = repository.commit("main")
        assert tip
        assert [(step.commit.subject, step.changes) for step in log(repository, tip.id)] == expected


@pytest.mark.parametrize("path", ["a b", "n\newline", "[x]*", ":colon", 'q"uote\\', "\udcff.yaml", "e\u0301", "\u00e9"])
def test_odd_paths_come_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    scratch = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(scratch.path))
    scratch.commit({path: "content"})
    ((_, [change]),) = list_steps(scratch)
    assert change.path == path


def test_a_sha256_repository_reads_like_any_other(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r", object_format="sha256")
    scratch.commit({"a": "x"})
    ((_, [change]),) = list_steps(scratch)
    assert len(change.blob) == 64
    with Repository.open(scratch.path) as repository:
        assert repository.object_format == "sha256"
        assert repository.blob(change.blob).content == b"x"


@pytest.mark.parametrize("encoding", ["no-such", "idna", "undefined", "hex"])
def test_a_commit_in_an_encoding_that_cannot_be_read_has_its_subject_as_utf_8(
    git_repository: Scratch, encoding: str
) -> None:
    git_repository.commit({"a": "1"})
    git_repository.git("-c", f"i18n.commitEncoding={encoding}", "commit", "--allow-empty", "-qm", "caf\u00e9")
    with Repository.open(git_repository.path) as repository:
        tip = repository.commit("main")
        assert tip is not None
        assert tip.subject == "caf\u00e9"


def test_a_replace_ref_is_ignored(git_repository: Scratch) -> None:
    git_repository.commit({"a": "1"}, "one")
    middle = git_repository.commit({"a": "2"}, "two")
    git_repository.commit({"a": "3"}, "three")
    expected = list_steps(git_repository)
    other = git_repository.commit({"a": "9"}, "other", branch="other")
    git_repository.git("replace", git_repository.id(middle), git_repository.id(other))
    assert "other" in git_repository.git("log", "--format=%s", "main")
    assert list_steps(git_repository) == expected


def test_symlinks_and_submodules_show_their_mode(git_repository: Scratch) -> None:
    mark = git_repository.commit({"a": "1"})
    commit = git_repository.id(mark)
    git_repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    blob = git_repository.git("rev-parse", "main:a")
    git_repository.git("update-index", "--add", "--cacheinfo", f"120000,{blob},link")
    git_repository.git("commit", "-qm", "odd")
    assert [(change.path, change.mode) for change in list_steps(git_repository)[1][1]] == [
        ("link", "120000"),
        ("module", "160000"),
    ]


PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\ntargets: {local: {registry: 'sqlite:registry.db'}}\n"
    "generate: {package: shop_schemas, out: generated}\n"
)
LAST_S = 253_402_300_799

DATES = {
    "-5 +0000": (0, "1970-01-01"),
    "-99999999999 +0000": (0, "1970-01-01"),
    "253402300800 +0000": (LAST_S, "9999-12-31"),
    "18446744073709551614 +9999": (LAST_S, "9999-12-31"),
    f"{'9' * 40} +0000": (LAST_S, "9999-12-31"),
    "yesterday": (0, "1970-01-01"),
    "": (0, "1970-01-01"),
    "1000": (0, "1970-01-01"),
    "1_000 +0000": (0, "1970-01-01"),
    "+90000 +0000": (0, "1970-01-01"),
    "90000 +x": (0, "1970-01-01"),
    "90000-0500": (90_000, "1970-01-02"),
    "\t 0090000 \t +0000 ": (90_000, "1970-01-02"),
}


def write_commit(scratch: Scratch, tree: str, who: str, parent: str = "") -> str:
    """Write a commit object that `git commit` would not create, and return its id."""
    head = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    done = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        cwd=scratch.path,
        env=ENVIRONMENT,
        input=f"{head}author {who}\ncommitter {who}\n\nodd\n".encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def add_commit(scratch: Scratch, files: dict[str, str], date: str) -> None:
    """Add a commit with a date to main."""
    scratch.write(files)
    scratch.git("add", "-A")
    parent = scratch.git("rev-parse", "-q", "--verify", "main", check=False)
    commit_id = write_commit(scratch, scratch.git("write-tree"), f"Ada <ada@example.com> {date}", parent)
    scratch.git("update-ref", "refs/heads/main", commit_id)


# Every other date is read as one of these two: see the last test.
@pytest.mark.parametrize("date", [f"{'9' * 40} +0000", ""])
def test_every_command_reads_a_commit_of_any_date(tmp_path: Path, date: str) -> None:
    scratch = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": PROJECT, "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}
    add_commit(scratch, {**files, ".gitignore": "registry.db*\ngenerated/\n.schemactl/\n"}, date)
    scratch.git("checkout", "-q", "-f", "-B", "work", "main")
    scratch.git("branch", "-f", "old", "main")
    add_commit(scratch, {"topics/orders.avsc": record("id", a=0)}, date)
    scratch.git("checkout", "-q", "-f", "-B", "work", "old")
    scratch.write({"topics/other.yaml": "topic: shop/sales/other\n"})
    scratch.git("add", "-A")
    scratch.git("commit", "-qm", "work")
    time_s, day = DATES[date]

    def run(*command: str) -> str:
        return schemactl(scratch, *command).out

    for _ in range(2):
        # Derived, then from the cache.
        for option in ([], ["--staged"], ["--base", "main"]):
            run("check", *option)
        versions = json.loads(run("log", "orders", "--format", "json"))["topics"][0]["versions"]
        assert [version["commit"]["time_s"] for version in versions] == [time_s, time_s]
        assert run("log", "orders").count(day) >= 2
    assert day in run("diff", "orders")
    assert day in run("plan")
    run("apply", "--auto-approve")
    assert day in run("log", "orders", "--target", "local")
    scratch.git("checkout", "-q", "-f", "main")
    add_commit(scratch, {"topics/orders.avsc": record("id", a=0, b=0)}, date)
    scratch.git("checkout", "-q", "-f", "-B", "work", "old")
    run("plan", "--out", str(tmp_path / "plan.json"))
    run("apply", str(tmp_path / "plan.json"))
    run("drift")
    assert run("show", "orders@0")
    run("generate")
    run("generate", "--wheel", "dist")


@pytest.mark.parametrize(
    "line",
    [
        *(f"Ada <ada@example.com> {date}" for date in DATES),
        "Ada <ada@example.com>90000 +0000",
        "Ada <a> 1000 +0000> 90000 +0000",
        "Ada <a> <b> 90000 +0",
        "Ada <ada@example.com 90000 +0000",
        "Ada> 90000 +0000",
        "Ada 90000 +0000",
        "<> 90000 - 0500",
        "Ada <ada@example.com> 90000\x0b+0000",
        "Ada <ada@example.com> \u0669\u0660 +0000",
    ],
)
def test_a_date_is_read_as_git_reads_it(tmp_path: Path, line: str) -> None:
    scratch = Scratch(tmp_path / "r")
    commit_id = write_commit(scratch, scratch.git("mktree"), line)
    git_time = scratch.git("log", "-1", "--format=%ct", commit_id)
    with Repository.open(scratch.path) as repository:
        read = repository.commit(commit_id)
    assert read
    assert read.time_s == (min(int(git_time), LATEST_S) if git_time else 0)


MESSAGES = [
    b"subject\n",
    b"subject",
    b"subject \n\nbody\n",
    b"\n\n subject\n\n\n body\n",
    b"one\ntwo\n\nbody\n",
    b"one\n \nbody\n",
    b"one\r\n\r\nbody\r\n",
    "größer\n\nüber\n".encode(),
    b"caf\xe9\n",
    b"\tindented\n",
    b"a\x0bb\n\nbody\n",
    b"",
    b"\n",
    b"Merge pull request #7 from a/b\n\nTitle of the change\n",
    b"Merge branch 'a' into 'main'\n\nTitle\n\nSee merge request a/b!8\n",
]


def test_a_commit_by_name_is_equal_to_the_commit_in_the_log(git_repository: Scratch) -> None:
    git_repository.commit({"a": "x"})
    tree, parent = git_repository.git("rev-parse", "main^{tree}", "main").split()
    other_parent = write_commit(git_repository, tree, "A <a> 1000 +0000")
    people = b"author A <a> 1000 +0000\ncommitter A <a> 2000 +0000\n"
    write_object = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    with Repository.open(git_repository.path) as repository:
        for parents, header, message in product(
            [[parent], [parent, other_parent]], [b"", b"encoding ISO-8859-1\n"], MESSAGES
        ):
            lines = b"".join(b"parent %b\n" % name.encode() for name in parents)
            raw = b"tree %b\n%b%b%b\n%b" % (tree.encode(), lines, people, header, message)
            written = subprocess.run(write_object, cwd=git_repository.path, input=raw, capture_output=True, check=True)
            commit_id = written.stdout.decode().strip()
            assert [step.commit for step in log(repository, commit_id)][-1] == repository.commit(commit_id)


def test_a_listed_folder_has_the_entries_that_git_lists(git_repository: Scratch) -> None:
    git_repository.commit({"a/b/c.txt": "x", "a/b.txt": "y", "a/größer.yaml": "z", "d": "w"})
    git_repository.flush()
    (git_repository.path / "link").symlink_to("a")
    git_repository.git("reset", "-q", "--hard")
    git_repository.git("add", "link")
    git_repository.git("update-index", "--chmod=+x", "d")
    git_repository.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "link")
    commit_id = git_repository.git("rev-parse", "HEAD")
    with Repository.open(git_repository.path) as repository:
        for folder in (
            "",
            "a",
            "a/b",
            "a/größer.yaml",
            "d",
            "link",
            "link/b",
            "a/./b",
            "a//b",
            "a/../a",
            "missing",
            "a/missing",
        ):
            inside = [f"{folder}/"] if folder else []
            listed = git_repository.git("ls-tree", "-z", "--full-tree", commit_id, "--", *inside).split("\0")[:-1]
            expected = {}
            for entry in listed:
                facts, path = entry.split("\t")
                mode, _, blob = facts.split(" ")
                expected[path] = (mode.removeprefix("0"), blob)
            listing = repository.list_folder(commit_id, folder)
            assert {path: (mode.removeprefix("0"), blob) for path, (mode, blob) in listing.items()} == expected
