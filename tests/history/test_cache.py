"""The cache of a history: after any change of its file it is valid, or derived again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import IO, Any, NamedTuple

import pytest
from fork_server import start_program
from forks import fork_process
from readings import ORDERS, PROJECT, list_subjects, read, read_commands
from scratch import ENVIRONMENT, Scratch, cache_of, record, write_declaration

from schemactl.core.deadline import OutOfTime
from schemactl.core.errors import HistoryError
from schemactl.core.project import Project
from schemactl.formats.digest import compute_digest
from schemactl.formats.protobuf import protoc_process
from schemactl.history import cache as history_cache
from schemactl.history import versions
from schemactl.history.approved_history import read_history
from schemactl.history.cache import HistoryState
from schemactl.history.git import Repository
from schemactl.history.store import Store
from schemactl.history.versions import encode_inputs

pytestmark = pytest.mark.slow


def find_cache_file(path: Path) -> Path:
    """Find the cache file of a repository with one project."""
    folder = cache_of(path / ".git")
    return next(folder.glob("history-*"), folder / "history-none")


def open_cache(path: Path, project: Project = PROJECT) -> HistoryState | None:
    return HistoryState.open(Store(path / ".git", encode_inputs(project)))


@pytest.fixture
def topic_repository(tmp_path: Path) -> Scratch:
    """A repository with one topic of two versions."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}, "v0")
    scratch.commit({"topics/orders.avsc": record("id", note=0)}, "v1")
    scratch.flush()
    return scratch


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which git records each of its processes."""
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(tmp_path / "trace"))
    return tmp_path / "trace"


def test_a_second_run_reads_no_log_and_no_blob(
    topic_repository: Scratch, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(topic_repository)
    read_commands(trace)
    requested_names: list[str] = []
    objects = Repository.objects

    def record_call(repository: Repository, names: Sequence[str]) -> Iterator[Any]:
        requested_names.extend(names)
        return objects(repository, names)

    monkeypatch.setattr(Repository, "objects", record_call)
    with Repository.open(topic_repository.path) as repository:
        approved = read_history(repository, PROJECT)
    assert not [command for command in read_commands(trace) if "--raw" in command]
    assert all(name.endswith("^{commit}") for name in requested_names)
    assert list_subjects(approved) == ["v0", "v1"]


def test_a_new_commit_costs_a_log_of_that_commit_alone(topic_repository: Scratch, trace: Path) -> None:
    read(topic_repository)
    before = topic_repository.git("rev-parse", "main")
    topic_repository.commit({"topics/orders.avsc": record("id", note=1)}, "v2")
    topic_repository.flush()
    read_commands(trace)
    assert list_subjects(read(topic_repository)) == ["v0", "v1", "v2"]
    [log] = [command for command in read_commands(trace) if "--raw" in command]
    assert f"^{before}" in log


def test_of_a_long_history_a_hundredth_is_read_again_before_it_is_written_again(topic_repository: Scratch) -> None:
    for _ in range(198):
        topic_repository.commit()
    read(topic_repository)
    before = find_cache_file(topic_repository.path).read_bytes()
    topic_repository.commit({"topics/orders.avsc": record("id", note=1)}, "v2")
    for is_written in (False, False, True):
        assert list_subjects(read(topic_repository)) == ["v0", "v1", "v2"]
        assert (find_cache_file(topic_repository.path).read_bytes() != before) == is_written
        topic_repository.commit()


def test_one_topic_is_told_from_the_file_alone(topic_repository: Scratch) -> None:
    approved = read(topic_repository)
    cache = open_cache(topic_repository.path)
    assert cache
    assert cache.read_commit(cache.last).id == topic_repository.git("rev-parse", "main")
    first, second = cache.list_versions("shop/sales/orders")
    assert (first.number, first.type, first.path, second.number) == (0, "AVRO", "topics/orders.yaml", 1)
    assert [cache.read_commit(version.step).subject for version in (first, second)] == ["v0", "v1"]
    infos = [version.info for version in approved.catalog.topics[ORDERS].load().versions]
    assert [first.digest, second.digest] == [compute_digest(replace(info)) for info in infos if info]
    assert cache.find_users("topics/orders.avsc") == {"shop/sales/orders"}
    assert cache.entry("topics/orders.avsc") == ("file", topic_repository.git("rev-parse", "main:topics/orders.avsc"))
    assert cache.at_step(0).entry("topics/orders.avsc") == (
        "file",
        topic_repository.git("rev-parse", "main~1:topics/orders.avsc"),
    )
    state = cache.find_state("shop/sales/orders", "persistent")
    assert state
    assert (state.number, state.since, state.deleted) == (1, 1, False)
    assert [declaration.name for declaration in cache.list_declarations_in("topics/orders.yaml")] == [str(ORDERS)]
    assert cache.list_versions("shop/sales/none") == []
    assert cache.find_state("shop/sales/none", "persistent") is None
    assert cache.entry("none") is None
    assert cache.find_users("none") == set()


def replace_cache_file(scratch: Scratch, make_content: Callable[[bytes], bytes]) -> None:
    """Replace the content of the cache file, and commit version 2."""
    path = find_cache_file(scratch.path)
    path.write_bytes(make_content(path.read_bytes()))
    scratch.commit({"topics/orders.avsc": record("id", note=1)}, "v2")


def make_foreign_database() -> bytes:
    """Return a database with another table."""
    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("CREATE TABLE songs (name TEXT)")
        return other.serialize()


def replace_cache_file_by_folder(scratch: Scratch) -> None:
    find_cache_file(scratch.path).unlink()
    find_cache_file(scratch.path).mkdir()
    scratch.commit({"topics/orders.avsc": record("id", note=1)}, "v2")


def replace_cache_folder_by_file(scratch: Scratch) -> None:
    shutil.rmtree(scratch.cache)
    scratch.cache.write_text("a file where the folder should be")


def rewrite_line(scratch: Scratch) -> None:
    """Replace version 1 on main by another commit."""
    scratch.git("branch", "-f", "new", "main~1")
    scratch.commit({"topics/orders.avsc": record("id", other=0)}, "other v1", branch="new")
    scratch.git("checkout", "-q", "new")
    scratch.git("branch", "-f", "main", "new")


def rewrite_line_and_collect_garbage(scratch: Scratch) -> None:
    """Replace version 1, and let git delete the commit that the cache contains."""
    rewrite_line(scratch)
    scratch.git("reflog", "expire", "--expire=now", "--all")
    scratch.git("gc", "-q", "--prune=now")


def begin_unrelated_line(scratch: Scratch) -> None:
    scratch.git("checkout", "-q", "--orphan", "unrelated")
    scratch.git("commit", "-q", "-m", "all anew")
    scratch.git("branch", "-f", "main", "unrelated")


class ChangeCase(NamedTuple):
    """A change after a reading, the versions by their commits after it, and whether they can be saved."""

    change: Callable[[Scratch], None]
    subjects: list[str]
    is_saved: bool = True


PAGE_BYTES = 4096
THREE = ["v0", "v1", "v2"]
CHANGES = {
    "the cache file is garbage": ChangeCase(lambda scratch: replace_cache_file(scratch, lambda _: b"x" * 9999), THREE),
    "the cache file is empty": ChangeCase(lambda scratch: replace_cache_file(scratch, lambda _: b""), THREE),
    "the cache file is torn": ChangeCase(
        lambda scratch: replace_cache_file(scratch, lambda content: content[: len(content) // 2]), THREE
    ),
    "the tables of the cache file cannot be read": ChangeCase(
        lambda scratch: replace_cache_file(
            scratch, lambda content: content[:PAGE_BYTES] + b"\xff" * (len(content) - PAGE_BYTES)
        ),
        THREE,
    ),
    "the cache file is another database": ChangeCase(
        lambda scratch: replace_cache_file(scratch, lambda _: make_foreign_database()), THREE
    ),
    "a folder is in the place of the cache file": ChangeCase(replace_cache_file_by_folder, THREE, is_saved=False),
    "a file is in the place of the cache folder": ChangeCase(
        replace_cache_folder_by_file, ["v0", "v1"], is_saved=False
    ),
    "the line was rewritten": ChangeCase(rewrite_line, ["v0", "other v1"]),
    "the line was rewritten, and its former commit is gone": ChangeCase(
        rewrite_line_and_collect_garbage, ["v0", "other v1"]
    ),
    "the line is unrelated": ChangeCase(begin_unrelated_line, ["all anew"]),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_versions_are_right_after_any_change_of_cache_and_line(topic_repository: Scratch, case: ChangeCase) -> None:
    read(topic_repository)
    case.change(topic_repository)
    for _ in range(2):
        assert list_subjects(read(topic_repository)) == case.subjects
    assert not case.is_saved or open_cache(topic_repository.path)


def test_what_another_project_file_says_is_derived_anew(topic_repository: Scratch) -> None:
    read(topic_repository)
    assert open_cache(topic_repository.path)
    assert not open_cache(topic_repository.path, Project(roots=("topics", "more")))
    topic_repository.commit({"more/bills.yaml": "topic: shop/sales/bills\n"})
    topic_repository.flush()
    assert len(read(topic_repository, Project(roots=("topics", "more"))).catalog.topics) == 2
    assert len(read(topic_repository).catalog.topics) == 1


def test_two_projects_of_a_repository_are_kept_apart(topic_repository: Scratch) -> None:
    other = Project(folder="b", path="b/schemactl.yaml", roots=("topics",))
    read(topic_repository)
    read(topic_repository, other)
    assert open_cache(topic_repository.path)
    assert open_cache(topic_repository.path, other)


def test_what_is_kept_may_be_deleted_while_it_is_used(topic_repository: Scratch) -> None:
    approved = read(topic_repository)
    find_cache_file(topic_repository.path).unlink()
    assert list_subjects(approved) == ["v0", "v1"]


def test_linked_worktrees_share_what_is_kept(topic_repository: Scratch, tmp_path: Path) -> None:
    topic_repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert list_subjects(read(tmp_path / "linked")) == ["v0", "v1"]
    assert open_cache(topic_repository.path)


def test_what_cannot_be_written_is_still_followed(topic_repository: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    read(topic_repository)
    topic_repository.commit({"topics/orders.avsc": record("id", note=1)}, "v2")
    topic_repository.flush()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = find_cache_file(topic_repository.path).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert list_subjects(read(topic_repository)) == ["v0", "v1", "v2"]
    assert find_cache_file(topic_repository.path).read_bytes() == before
    assert [*topic_repository.cache.iterdir()] == [find_cache_file(topic_repository.path)]
    assert list_subjects(read(topic_repository)) == ["v0", "v1", "v2"]


def test_reading_ahead_changes_no_answer(topic_repository: Scratch) -> None:
    scratch = topic_repository
    scratch.commit({"topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"}, "policies")
    scratch.commit({"topics/clicks.yaml": "topic: shop/web/clicks\nschema: {type: STRING}\n"}, "another topic")
    scratch.commit({"topics/clicks.yaml": None}, "without it")
    read(scratch)

    def list_answers(cache: HistoryState) -> list[object]:
        schemas = [ORDERS.schema_id, "shop/web/clicks", "shop/web/missing"]
        paths = ["topics/orders.yaml", "topics/orders.avsc", "topics/clicks.yaml", "missing.yaml"]
        about_schemas = [
            cache.list_versions,
            cache.list_definition_files,
            cache.list_kind_names,
            cache.list_declarations_of,
            cache.list_declaring_files,
        ]
        return [
            cache.list_declarations_of(None),
            cache.find_last_policies("shop/sales"),
            cache.find_schema_properties("shop/sales"),
            *(cache.find_state(schema, "persistent") for schema in schemas),
            *(method(schema) for schema in schemas for method in about_schemas),
            *((cache.entry(path), cache.list_declarations_in(path), cache.find_users(path)) for path in paths),
        ]

    answers = []
    for is_ahead in (False, True):
        cache = open_cache(scratch.path)
        assert cache is not None
        if is_ahead:
            cache.read_ahead()
        answers.append([list_answers(cache.at_step(step)) for step in range(cache.last + 1)])
    assert answers[0] == answers[1]
    assert len(answers[0]) == 5


def test_files_of_many_topics_are_read_ahead_in_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Scratch(tmp_path / "r")
    names = [f"topic-{number}" for number in range(220)]
    for version in range(2):
        fields: dict[str, Any] = {f"note_{number}": 0 for number in range(version)}
        files = {f"topics/{name}.avsc": record("id", name=f"r{index}", **fields) for index, name in enumerate(names)}
        if version == 0:
            files |= {f"topics/{name}.yaml": write_declaration(f"shop/sales/{name}", f"{name}.avsc") for name in names}
        scratch.commit(files, f"v{version}")
    read(scratch)
    requests: list[Sequence[str]] = []
    objects = Repository.objects

    def record_call(repository: Repository, names: Sequence[str]) -> Iterator[Any]:
        requests.append(names)
        return objects(repository, names)

    with Repository.open(scratch.path) as repository:
        approved = read_history(repository, PROJECT)
        monkeypatch.setattr(Repository, "objects", record_call)
        approved.read_ahead(approved.catalog.topics)
        topics = approved.catalog.load().topics
    assert [len(names) for names in requests] == [3 * 220]
    assert {len(topic.versions) for topic in topics.values()} == {2}


def test_another_ref_is_read_beside_what_is_kept(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", other=0)}, "other v1", branch="other", start=1)
    topic_repository.commit({"topics/orders.avsc": record("id", other=1)}, "other v2", branch="other")
    assert list_subjects(read(topic_repository)) == ["v0", "v1"]
    before = find_cache_file(topic_repository.path).read_bytes()
    assert list_subjects(read(topic_repository, ref="other")) == ["v0", "other v1", "other v2"]
    assert list_subjects(read(topic_repository, ref="main~1")) == ["v0"]
    assert find_cache_file(topic_repository.path).read_bytes() == before


def test_a_shallow_clone_is_read_where_what_is_kept_reaches_into_it(topic_repository: Scratch, tmp_path: Path) -> None:
    read(topic_repository)
    for number in range(3):
        topic_repository.commit({"topics/orders.avsc": record("id", more=number)}, f"more {number}")
    topic_repository.flush()
    clone = tmp_path / "clone"
    topic_repository.git("clone", "-q", "--depth", "5", topic_repository.path.as_uri(), str(clone))
    with pytest.raises(HistoryError, match="shallow"):
        read(clone)
    shutil.copytree(topic_repository.cache, cache_of(clone / ".git"))
    assert list_subjects(read(clone)) == ["v0", "v1", "more 0", "more 1", "more 2"]
    deeper = tmp_path / "deeper"
    topic_repository.git("clone", "-q", "--depth", "2", topic_repository.path.as_uri(), str(deeper))
    read(topic_repository, ref="main~3")
    topic_repository.git("update-ref", "refs/heads/main", "main~3")
    find_cache_file(topic_repository.path).unlink()
    read(topic_repository)
    shutil.copytree(topic_repository.cache, cache_of(deeper / ".git"))
    with pytest.raises(HistoryError, match="shallow"):
        read(deeper)


def start_reader(scratch: Scratch) -> tuple[int, IO[str]]:
    """Start a process that reads the history and prints the number of versions."""
    return fork_process(
        lambda report: report(sum(len(topic.versions) for topic in read(scratch).catalog.topics.values()))
    )


def commit_changes(scratch: Scratch, commits: int) -> None:
    """Commit changes of several topics."""
    for number in range(commits):
        name = f"t{number % 7}"
        files = {f"topics/{name}.avsc": record("id", more=number)}
        if number < 7:
            files[f"topics/{name}.yaml"] = write_declaration(f"shop/sales/{name}", f"{name}.avsc")
        scratch.commit(files)
    scratch.flush()


def test_many_processes_at_once_all_see_the_same(topic_repository: Scratch) -> None:
    for _ in range(2):
        commit_changes(topic_repository, 21)
        counts = []
        for process, output in [start_reader(topic_repository) for _ in range(4)]:
            with output:
                counts.append(int(output.read()))
            assert os.waitpid(process, 0)[1] == 0
        assert len(set(counts)) == 1
        assert [*topic_repository.cache.iterdir()] == [find_cache_file(topic_repository.path)]


@pytest.mark.parametrize("is_cached", [False, True], ids=["anew", "followed up"])
def test_a_process_killed_at_any_moment_leaves_what_can_be_read(topic_repository: Scratch, *, is_cached: bool) -> None:
    if is_cached:
        read(topic_repository)
    commit_changes(topic_repository, 60)
    expected = 2 + 60
    for wait_s in (0.01, 0.02, 0.04, 0.08):
        process, output = start_reader(topic_repository)
        time.sleep(wait_s)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        output.close()
        cache = open_cache(topic_repository.path)
        if cache:
            assert cache.step in ((1, 61) if is_cached else (61,))
    approved = read(topic_repository)
    assert sum(len(topic.versions) for topic in approved.catalog.topics.values()) == expected


def test_a_run_that_fails_keeps_nothing_of_it(topic_repository: Scratch) -> None:
    topic_repository.commit({"schemactl.yaml": "version: 1\nroots: [elsewhere]\n"})
    topic_repository.flush()
    with pytest.raises(HistoryError, match="previous_roots"):
        read(topic_repository)
    assert not topic_repository.cache.exists()


def test_only_the_owner_can_read_what_is_kept(topic_repository: Scratch) -> None:
    read(topic_repository)
    assert find_cache_file(topic_repository.path).stat().st_mode & 0o077 == 0


def test_protoc_starts_once_however_many_commits_change_a_proto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Scratch(tmp_path / "r")
    declared_ = "topic: a/b/clicks\nschema: {type: PROTOBUF_NATIVE, definition: click.proto, message: Click}\n"
    for number in range(4):
        text = f'syntax = "proto3";\nmessage Click {{ string id{number}{os.getpid()} = 1; }}\n'
        scratch.commit({"topics/clicks.yaml": declared_, "topics/click.proto": text})
    scratch.flush()
    commands = []
    popen = subprocess.Popen

    def record_call(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(command)
        return popen(command, **options)

    # The process of an earlier test would serve this one, too.
    protoc_process.close_idle()
    monkeypatch.setattr(subprocess, "Popen", record_call)
    approved = read(scratch)
    assert [len(topic.versions) for topic in approved.catalog.topics.values()] == [4]
    assert len([command for command in commands if "protoc_worker.py" in " ".join(command)]) == 1


class Interrupted(BaseException):
    """Ends a derivation as a signal does."""


def stop_at(
    commit_count: int, error: BaseException, ends: list[int] | None = None
) -> Callable[[int, int | None], None]:
    """Return a function for the progress of a reading, which raises `error` at this number of commits.

    The numbers of commits that are reported at the end are appended to `ends`.
    """

    def stop(done: int, total: int | None) -> None:
        if total is None and done == commit_count:
            raise error
        if total is not None and ends is not None:
            ends.append(done)

    return stop


@pytest.mark.parametrize(
    ("error", "run_count"),
    [(Interrupted(), 2), (OutOfTime(20, "reading the approved history"), 10)],
    ids=["a signal", "the time limit"],
)
def test_each_interrupted_reading_makes_progress(
    topic_repository: Scratch, error: BaseException, run_count: int
) -> None:
    for number in range(2, 2 + 4 * run_count):
        topic_repository.commit({"topics/orders.avsc": record("id", note=number)}, f"v{number}")
    complete = list_subjects(read(topic_repository))
    shutil.rmtree(topic_repository.cache)
    states = []
    ends: list[int] = []
    with Repository.open(topic_repository.path) as repository:
        for _ in range(run_count):
            with pytest.raises(type(error)) as caught:
                read_history(repository, PROJECT, progress=stop_at(4, error, ends))
            states.append(read_state(topic_repository))
        assert list_subjects(read_history(repository, PROJECT, progress=lambda *_: None)) == complete
    assert ends == [4] * run_count
    if isinstance(error, OutOfTime):
        assert "kept for the next run: 4 commits" in str(caught.value)
    assert states == [(last, False) for last in range(3, 4 * run_count, 4)]
    assert read_state(topic_repository) == (4 * run_count + 1, True)


def test_each_setting_of_the_project_has_a_separate_history(topic_repository: Scratch) -> None:
    """Branches that change `roots`, and their worktrees, take turns without reading all of Git each time."""
    other = replace(PROJECT, roots=("topics", "more"))
    for project in (PROJECT, other):
        assert open_cache(topic_repository.path, project) is None
        read(topic_repository, project)
    for project in (PROJECT, other):
        cached = open_cache(topic_repository.path, project)
        assert cached
        assert cached.is_checked


TERMINATED = """\
import os
import signal
from schemactl.__main__ import main
from schemactl.history.cache import HistoryStateWriter

begin = HistoryStateWriter.begin
subjects = []


def begin_or_stop(writer, commit):
    subjects.append(commit.subject)
    if len(subjects) == 5:
        os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))
    return begin(writer, commit)


HistoryStateWriter.begin = begin_or_stop
sys.exit(main())
"""
"""The command line, which gets a signal at the fifth commit."""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_reading_that_a_signal_ends_is_kept(topic_repository: Scratch, name: str, code: int) -> None:
    """A runner cancels a job with SIGTERM, and a terminal that is closed sends SIGHUP."""
    topic_repository.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n"}, "project")
    for number in range(2, 10):
        topic_repository.commit({"topics/orders.avsc": record("id", note=number)}, f"v{number}")
    topic_repository.flush()
    with start_program(
        topic_repository.path, TERMINATED, "list", environment=ENVIRONMENT | {"SIGNAL": name}
    ) as program:
        assert (program.wait(), program.read_err()) == (code, "schemactl: interrupted\n")
    assert read_state(topic_repository) == (3, False)


def read_state(scratch: Scratch) -> tuple[int, bool]:
    """Return the last commit in the cache, and whether its numbers were checked."""
    cached = open_cache(scratch.path)
    assert cached
    return cached.last, cached.is_checked


def list_rows(cache: HistoryState) -> list[list[tuple[object, ...]]]:
    """Return the rows of the tables, with names in place of ids."""
    queries = (
        "SELECT step, commit_id, time_s, subject FROM step ORDER BY step",
        "SELECT kind, name.name, step, value FROM fact JOIN name ON id = fact.name ORDER BY 1, 2, 3",
        "SELECT name, domain, step, deleted, number, since, as_of, kinds FROM topic_state JOIN name ON id = schema ORDER BY 1, 2, 3",
        "SELECT name, number, step, type, digest, kind, is_plain FROM version JOIN name ON id = schema ORDER BY 1, 2",
        "SELECT name.name, is_topic, step, problems FROM note JOIN name ON name.id = note.name ORDER BY 1, 2, 3",
        "SELECT * FROM unfinished",
    )
    return [cache.connection.execute(query).fetchall() for query in queries]


@pytest.fixture
def wide_repository(tmp_path: Path) -> Scratch:
    """Declare 360 topics in the first commit, and change most of them, their references and their namespace in the second."""

    def write_topic(number: int, *, edition: int) -> dict[str, str | None]:
        topic = f"topic: shop/sales/t{number:03}\nschema_compatibility_strategy: {('FULL', 'BACKWARD')[edition]}\n"
        lines = {
            0: f"schema: {{type: AVRO, definition: a{number}.avsc, references: [money.avsc]}}\n",
            1: f"schema: {{type: AVRO, definition: '{record('id')}'}}\n"
            if edition
            else "schema: {type: AVRO, definition: '{'}\n",
            2: "schema: {type: STRING}\n",
        }
        path = f"topics/t{number:03}{'-renamed' if edition and number % 4 == 0 else ''}.yaml"
        files: dict[str, str | None] = {path: topic + lines[number % 3]}
        if number % 3 == 0:
            files[f"topics/a{number}.avsc"] = json.dumps(
                {"type": "record", "name": "A", "fields": [{"name": "price", "type": "Money"}]}
            )
        if edition and number % 4 == 0:
            files[f"topics/t{number:03}.yaml"] = None
        return files

    scratch_repository = Scratch(tmp_path / "wide")
    for edition in range(2):
        files: dict[str, str | None] = {
            f"topics/namespace{edition}.yaml": f"namespace: shop/sales\nschema_properties: {{edition: '{edition}'}}\n",
            "topics/money.avsc": record(*["cents", "currency"][: edition + 1], name="Money"),
        }
        for number in range(360):
            files |= write_topic(number, edition=edition)
        if edition:
            files |= dict.fromkeys([f"topics/t{number:03}.yaml" for number in range(1, 360, 40)])
            files["topics/namespace0.yaml"] = None
        scratch_repository.commit(files, f"edition {edition}")
    scratch_repository.commit({"topics/t002.yaml": None}, "remove a topic")
    scratch_repository.flush()
    return scratch_repository


def test_a_reading_that_is_interrupted_inside_a_large_commit_goes_on_there(wide_repository: Scratch) -> None:
    read(wide_repository)
    cached = open_cache(wide_repository.path)
    assert cached
    complete = list_rows(cached)
    shutil.rmtree(cache_of(wide_repository.path / ".git"))
    steps = []

    def stop(_done: int, total: int | None) -> None:
        if total is None:
            raise OutOfTime(20, "reading the approved history")

    for _ in range(100):
        with Repository.open(wide_repository.path) as repository:
            try:
                read_history(repository, PROJECT, progress=stop)
            except OutOfTime:
                cached = open_cache(wide_repository.path)
                assert cached
                steps.append((cached.last, cached.is_unfinished))
            else:
                break
    # 360 files and 360 topics, saved after each 200.
    assert steps[:5] == [(-1, True), (-1, True), (-1, True), (0, False), (0, True)]
    assert steps[-1] == (2, False)
    cached = open_cache(wide_repository.path)
    assert cached
    assert list_rows(cached) == complete


@pytest.fixture
def shared_type_repository(tmp_path: Path) -> Scratch:
    """Declare eight topics that share a type, and change it, the topics and their names in twelve commits."""
    repository = Scratch(tmp_path / "shared")
    for edition in range(12):
        files: dict[str, str | None] = {}
        if edition % 3 == 0:
            fields = ["cents", *(f"part{number}" for number in range(edition))]
            files["topics/money.avsc"] = record(*fields, name="Money")
        for number in range(edition % 5, 8, 1 + edition % 3):
            price = {"name": "price", "type": "Money"}
            note = {"name": f"note{edition}", "type": "int", "default": 0}
            files[f"topics/a{number}.avsc"] = json.dumps({"type": "record", "name": "A", "fields": [price, note]})
            files[f"topics/t{number}.yaml"] = (
                f"topic: shop/sales/t{number}\n"
                f"schema: {{type: AVRO, definition: a{number}.avsc, references: [money.avsc]}}\n"
            )
        if edition % 4 == 3:
            files[f"topics/t{edition % 8}.yaml"] = None
        repository.commit(files, f"edition {edition}")
    repository.flush()
    return repository


@pytest.mark.parametrize("seed", range(4))
def test_a_reading_that_is_interrupted_at_any_line_ends_with_the_same_versions(
    shared_type_repository: Scratch, seed: int
) -> None:
    read(shared_type_repository)
    cached = open_cache(shared_type_repository.path)
    assert cached
    complete = list_rows(cached)
    shutil.rmtree(cache_of(shared_type_repository.path / ".git"))
    random = Random(seed)  # noqa: S311  no secret
    modules = {versions.__file__, history_cache.__file__}
    interruption_count = 0
    remaining_lines = 0

    def trace_calls(frame: FrameType, _event: str, _argument: object) -> Any:
        return trace_lines if frame.f_code.co_filename in modules else None

    def trace_lines(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal remaining_lines
        remaining_lines -= event == "line"
        if remaining_lines == 0:
            raise Interrupted
        return trace_lines

    with Repository.open(shared_type_repository.path) as repository:
        while True:
            remaining_lines = random.randrange(1_000, 5_000 + 500 * interruption_count)
            tracer = sys.gettrace()
            sys.settrace(trace_calls)
            try:
                read_history(repository, PROJECT)
            except Interrupted:
                interruption_count += 1
            else:
                break
            finally:
                sys.settrace(tracer)
    assert interruption_count > 2
    cached = open_cache(shared_type_repository.path)
    assert cached
    assert list_rows(cached) == complete


@pytest.mark.parametrize(("saves", "start"), [(2, None), (5, 1)], ids=["first commit", "second commit"])
def test_a_part_of_a_commit_that_left_the_line_is_removed(
    wide_repository: Scratch, saves: int, start: int | None
) -> None:
    calls: list[int] = []

    def stop(done: int, total: int | None) -> None:
        calls.append(done)
        if total is None and len(calls) == saves:
            raise OutOfTime(20, "reading the approved history")

    with Repository.open(wide_repository.path) as repository, pytest.raises(OutOfTime):
        read_history(repository, PROJECT, progress=stop)
    cached = open_cache(wide_repository.path)
    assert cached
    assert cached.is_unfinished
    files: dict[str, str | bytes | None] = {
        "topics/t001.yaml": "topic: shop/sales/t001\nschema: {type: INT32}\n",
        "topics/t003.yaml": "topic: shop/sales/t003\nschema: {type: AVRO, definition: a3.avsc}\n",
        "topics/a3.avsc": record("other"),
    }
    wide_repository.commit(files, "another commit", branch="other", start=start)
    wide_repository.git("update-ref", "refs/heads/main", "other")

    def read_rows() -> list[list[tuple[object, ...]]]:
        read(wide_repository)
        cached = open_cache(wide_repository.path)
        assert cached
        return list_rows(cached)

    rows = read_rows()
    shutil.rmtree(cache_of(wide_repository.path / ".git"))
    assert rows == read_rows()


def test_an_interrupted_reading_is_checked_for_changed_numbers_when_it_ends(topic_repository: Scratch) -> None:
    project = "version: 1\nroots: [topics]\napproved: main\n"
    topic_repository.commit({"schemactl.yaml": project}, "project")
    adopted = f"{project}adopted: {topic_repository.git('rev-parse', 'main~1').strip()}\n"
    topic_repository.commit({"schemactl.yaml": adopted, "a.txt": "a"}, "adopt too late")
    topic_repository.commit({"topics/orders.avsc": record("id", note=1)}, "v2")
    topic_repository.flush()

    with Repository.open(topic_repository.path) as repository:
        with pytest.raises(Interrupted):
            read_history(repository, PROJECT, progress=stop_at(3, Interrupted()))
        assert open_cache(topic_repository.path)
        for ref in (None, "main~1", None):
            with pytest.raises(HistoryError, match="changed `adopted`"):
                read_history(repository, PROJECT, ref)


def commit_often(repository: Scratch, count: int) -> None:
    """Add commits that alternate between two definitions."""
    for number in range(count):
        repository.commit({"topics/orders.avsc": record("id", note=0) if number % 2 else record("id")})
    repository.flush()


def test_a_reading_that_is_interrupted_while_it_saves_ends(
    topic_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_often(topic_repository, 500)
    calls = []

    def write(self: Store, kind: str, content: bytes) -> None:
        calls.append(kind)
        if len(calls) == 1:
            raise Interrupted
        real_write(self, kind, content)

    real_write = Store.write
    monkeypatch.setattr(Store, "write", write)
    with Repository.open(topic_repository.path) as repository:
        with pytest.raises(Interrupted):
            read_history(repository, PROJECT)
        assert list_subjects(read_history(repository, PROJECT)) == ["v0", "v1"]


@pytest.mark.parametrize(("ref", "last"), [("main", 1), ("HEAD", 1), (None, 1), ("work", None)])
def test_only_versions_of_the_approved_tip_are_saved_for_every_name_of_it(
    topic_repository: Scratch, ref: str | None, last: int | None
) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", note=9)}, "work", branch="work", start=2)
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        read_history(repository, PROJECT, ref)
    cached = open_cache(topic_repository.path)
    assert (cached.last if cached else None) == last


FIRST_200: list[tuple[int, int | None]] = [(number, None) for number in range(1, 200)]
PROGRESS: dict[str, list[tuple[int, list[tuple[int, int | None]]]]] = {
    "every commit that was not known, and the end": [
        (0, [(1, None), (2, None), (2, 2)]), (0, []), (1, [(1, None), (1, 1)]),
    ],
    "the total of a long history": [
        (201, [*FIRST_200, (200, 203), (201, 203), (202, 203), (203, None), (203, 203)]),
    ],
}  # fmt: skip
"""For each reading, the number of commits before it, and the calls with its progress."""


@pytest.mark.parametrize("readings", PROGRESS.values(), ids=PROGRESS)
def test_progress_is_the_number_of_commits_that_were_read(
    topic_repository: Scratch, readings: list[tuple[int, list[tuple[int, int | None]]]]
) -> None:
    for commit_count, expected in readings:
        commit_often(topic_repository, commit_count)
        calls: list[tuple[int, int | None]] = []
        with Repository.open(topic_repository.path) as repository:
            read_history(repository, PROJECT, progress=lambda done, total, calls=calls: calls.append((done, total)))  # type: ignore[misc]
        assert calls == expected


def test_a_long_reading_saves_what_it_has_read(topic_repository: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = count(0, 60)
    monkeypatch.setattr(time, "monotonic", lambda: next(times_s))
    last_steps = []

    def read_saved(_done: int, total: int | None) -> None:
        if total is None:
            cached = open_cache(topic_repository.path)
            last_steps.append(cached.last if cached else None)

    with Repository.open(topic_repository.path) as repository:
        approved = read_history(repository, PROJECT, progress=read_saved)
        assert list_subjects(approved) == ["v0", "v1"]
    assert last_steps == [0, 1]


def test_memory_does_not_grow_with_a_history_of_proto_files(tmp_path: Path) -> None:
    fields = " ".join(f"string field_{number} = {number};" for number in range(1, 12))
    messages = "\n".join(f"message M{number} {{ {fields} }}" for number in range(150))
    topics = {
        f"topics/m{number}.yaml": f"topic: shop/sales/m{number}\nschema: {{type: PROTOBUF_NATIVE, definition: a.proto, message: t.M{number}}}\n"
        for number in range(3)
    }

    def measure_peak_mb(commits: int) -> int:
        scratch = Scratch(tmp_path / str(commits))
        scratch.commit({"schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n", **topics})
        for number in range(commits):
            text = f'syntax = "proto3"; package t;\n{messages}\nmessage Last {{ int32 extra = {number + 1}; }}\n'
            scratch.commit({"topics/a.proto": text})
        scratch.flush()
        code = (
            "import resource, sys; from schemactl.cli import main; assert main(['log', '--all']) == 0; "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=scratch.path, env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return int(done.stderr.split()[-1]) // (1024 if sys.platform == "linux" else 1 << 20)

    assert measure_peak_mb(30) - measure_peak_mb(6) < 40
