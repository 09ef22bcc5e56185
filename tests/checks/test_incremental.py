"""Definitions are validated once, and a cached result does not differ from a new one."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scratch import Files, Scratch, record, write_declaration

from schemactl.cli import main
from schemactl.core.deadline import OutOfTime
from schemactl.core.errors import InvalidSchema
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo
from schemactl.declare import definition, reader
from schemactl.declare import files as declare_files
from schemactl.declare.reader import Declared
from schemactl.formats import find_problems
from schemactl.history.commit_files import HashedFiles, IndexFiles
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",))
USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
BAD_DEFAULT = '{"type": "record", "name": "Refund", "fields": [{"name": "id", "type": "int", "default": "none"}]}'
INLINE = "topic: shop/sales/{}\nschema:\n  type: {}\n  definition: {}\n"
KEY_VALUE = """\
topic: shop/sales/pairs
schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: AVRO, definition: refunds.avsc}}
"""
ORDERS = write_declaration(more="  references: [../money.avsc]\n")
REST = (
    write_declaration("shop/sales/refunds", "refunds.avsc")
    + "---\n"
    + INLINE.format("clicks", "JSON", record("id", name="Click"))
    + "---\n"
    + INLINE.format("views", "AVRO", "{type: record, name: View, fields: []}")
    + "---\n"
    + KEY_VALUE
)
FILES: Files = {
    "money.avsc": record("amount", name="Money"),
    "topics/orders.yaml": ORDERS,
    "topics/orders.avsc": USES_MONEY,
    "topics/rest.yaml": REST,
    "topics/refunds.avsc": record("id", name="Refund"),
}


@pytest.fixture
def approved_repository(tmp_path: Path) -> Scratch:
    """Approve definitions in files, with references, inline as text and as YAML, and as parts of a pair."""
    scratch_repository = Scratch(tmp_path / "r")
    scratch_repository.commit(FILES)
    scratch_repository.flush()
    return scratch_repository


class Reading(NamedTuple):
    """The declarations as read with and without a cache, and the definitions that the read with a cache validated."""

    observation: object
    plain: object
    judged: list[bytes]


class Checks:
    """Reads one repository, and keeps the cache of valid definitions."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.content = b""

    def write(self, path: str, text: str | bytes | None) -> None:
        """Write the file, in the working tree and in the index."""
        self.scratch.write({path: text})
        self.scratch.git("add", "--all")

    def read(self, *, staged: bool = False) -> Reading:
        """Read the working tree or the index."""
        judged: list[bytes] = []

        def record_problem(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
            judged.append(info.schema)
            return find_problems(info, release)

        with Repository.open(self.scratch.path) as repository:
            files: IndexFiles | HashedFiles
            if staged:
                files = IndexFiles(repository)
            else:
                worktree = declare_files.WorktreeFiles(str(self.scratch.path))
                files = HashedFiles(worktree, repository.object_format)
            cache = self.cache(files)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reader, "find_format_problems", record_problem)
                declared = reader.read(files, PROJECT, cache=cache)
            self.content = cache.content() or self.content
            return Reading(observe(declared), observe(reader.read(files, PROJECT)), judged)

    def cache(self, files: IndexFiles | HashedFiles) -> reader.ValidationCache:
        """Return the cached results of these files."""
        definitions = definition.Definitions(files)
        return reader.ValidationCache(definitions, lambda path: str(files.entry(path)), self.content, project=Project())


@pytest.fixture
def uncached_checks(approved_repository: Scratch) -> Checks:
    """Return checks with an empty cache."""
    return Checks(approved_repository)


def observe(declared: Declared) -> object:
    """Return all observable values of the declarations."""
    topics = {
        name: (topic, topic.schema and (topic.schema.source, topic.schema.locate("/fields/0/type")))
        for name, topic in declared.catalog.load().topics.items()
    }
    return declared.catalog.namespaces, topics, declared.problems, declared.dependencies, declared.findings


@pytest.mark.parametrize("staged", [False, True], ids=["working tree", "index"])
def test_a_definition_is_judged_once(uncached_checks: Checks, *, staged: bool) -> None:
    first, second = uncached_checks.read(staged=staged), uncached_checks.read(staged=staged)
    assert len(first.judged) == 5
    assert second.judged == []
    assert first.observation == second.observation == second.plain


def test_what_is_staged_is_known_from_the_working_tree(uncached_checks: Checks) -> None:
    uncached_checks.read()
    assert uncached_checks.read(staged=True).judged == []


@pytest.mark.parametrize(
    ("path", "text", "judged"),
    [
        ("topics/refunds.avsc", record("id", "reason", name="Refund"), 4),
        ("topics/refunds.avsc", BAD_DEFAULT, 4),
        ("topics/refunds.avsc", "{", 2),
        ("topics/refunds.avsc", None, 2),
        ("money.avsc", record("amount", "unit", name="Money"), 1),
        ("money.avsc", "{}", 1),
        ("money.avsc", record("amount", name="Coin"), 1),
        ("topics/orders.avsc", record("id", name="Order"), 1),
        ("topics/orders.yaml", write_declaration(), 0),
        ("topics/again.yaml", write_declaration(), 0),
    ],
    ids=[
        *("changed", "bad default", "no JSON", "gone", "reference changed", "reference broken"),
        *("reference misses the type", "reference unused", "no reference", "declared twice"),
    ],
)
@pytest.mark.parametrize("staged", [False, True], ids=["working tree", "index"])
def test_a_change_of_any_file_it_is_made_of_is_judged(
    uncached_checks: Checks, path: str, text: str | None, judged: int, *, staged: bool
) -> None:
    before = uncached_checks.read(staged=staged)
    uncached_checks.write(path, text)
    changed = uncached_checks.read(staged=staged)
    assert changed.observation == changed.plain
    assert changed.observation != before.observation
    assert len(changed.judged) == judged
    again = uncached_checks.read(staged=staged)
    assert again.observation == changed.observation


def test_what_is_not_valid_is_judged_every_time(uncached_checks: Checks) -> None:
    uncached_checks.write("topics/refunds.avsc", BAD_DEFAULT)
    uncached_checks.write("topics/orders.avsc", record("id", name="Order"))
    for _ in range(3):
        reading = uncached_checks.read()
        assert reading.observation == reading.plain
    assert len(reading.judged) == 5


def test_any_sequence_of_edits_gives_the_same_result_without_a_cache(uncached_checks: Checks) -> None:
    contents: dict[str, list[str | bytes | None]] = {
        "money.avsc": [record("amount", name="Money"), record("sum", name="Money"), record("x", name="Coin")],
        "topics/orders.avsc": [USES_MONEY, record("id", name="Order"), BAD_DEFAULT, None],
        "topics/orders.yaml": [
            FILES["topics/orders.yaml"],
            write_declaration(),
            "topic: shop/sales/orders\n",
            "a: b\n",
        ],
        "topics/refunds.avsc": [record("id", name="Refund"), BAD_DEFAULT, "[", None],
        "topics/rest.yaml": [REST, write_declaration("shop/sales/refunds", "refunds.avsc")],
    }
    edits = random.Random(7)  # noqa: S311  no secret, but always the same
    for _ in range(40):
        path = edits.choice(list(contents))
        uncached_checks.write(path, edits.choice(contents[path]))
        reading = uncached_checks.read(staged=edits.random() < 0.5)
        assert reading.observation == reading.plain


def test_a_check_gives_the_same_result_without_a_cache(
    approved_repository: Scratch, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check after random edits, commits and approvals, in every mode, with and without the cache."""
    project = "version: 1\nroots: [topics]\napproved: main\n"
    contents: dict[str, list[str | bytes | None]] = {
        "schemactl.yaml": [project, project + "pulsar: '4.2'\n", project + "severities: {NOT_STORED: off}\n"],
        "money.avsc": [record("amount", name="Money"), record("amount", unit=0, name="Money"), None],
        "topics/sales.yaml": [
            *(
                f"namespace: shop/sales\nschema_compatibility_strategy: {strategy}\n"
                for strategy in ("FULL", "BACKWARD")
            ),
            None,
        ],
        "topics/orders.avsc": [USES_MONEY, record("id", name="Order")],
        "topics/orders.yaml": [ORDERS, ORDERS + "partitions: 3\n", None],
        "topics/refunds.avsc": [record("id", name="Refund"), record("id", x=0, name="Refund"), BAD_DEFAULT],
        "topics/twice.yaml": [None, write_declaration("non-persistent://shop/sales/orders", "refunds.avsc")],
    }
    monkeypatch.chdir(approved_repository.path)
    approved_repository.commit(
        {"schemactl.yaml": project, "topics/rest.yaml": write_declaration("shop/sales/refunds", "refunds.avsc")}
    )
    approved_repository.git("reset", "-q", "--hard", "main")
    approved_repository.git("checkout", "-q", "-b", "work")

    def check(arguments: list[str]) -> tuple[int, str, str]:
        code = main(["check", *arguments, "--format", "json"])
        said = capsys.readouterr()
        return code, said.out, said.err

    edits = random.Random(int(os.environ.get("SCHEMACTL_WALK_SEED", "1")))  # noqa: S311  no secret
    codes = set()
    for _ in range(int(os.environ.get("SCHEMACTL_WALK_STEPS", "16"))):
        path = edits.choice(list(contents))
        content = edits.choice(contents[path])
        if content is not None or (approved_repository.path / path).exists():
            approved_repository.write({path: content})
        approved_repository.git("add", "--all")
        if edits.random() < 0.4:
            approved_repository.git("commit", "-q", "--allow-empty", "-m", "work")
            if edits.random() < 0.4:
                approved_repository.git("branch", "-f", "main", "work")
        for arguments in ([], ["--staged"], ["--base", "main"]):
            cached_result = check(arguments)
            cache = approved_repository.cache
            cache.rename(cache.with_name("aside"))
            assert check(arguments) == cached_result
            shutil.rmtree(cache, ignore_errors=True)
            cache.with_name("aside").rename(cache)
            codes.add(cached_result[0])
    assert {0, 1} <= codes


def test_interrupted_checks_keep_the_files_that_they_have_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Scratch(tmp_path / "r")
    names = [f"topic{number}" for number in range(9)]
    files: Files = {f"topics/{name}.yaml": INLINE.format(name, "AVRO", record("id", name="R")) for name in names}
    scratch.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n", **files})
    scratch.git("reset", "--quiet", "--hard")
    add = reader.ValidationCache.add
    added_paths: list[str] = []

    def add_three(cache: reader.ValidationCache, path: str, documents: Any) -> None:
        if len(added_paths) % 4 == 3:
            added_paths.append("")
            raise OutOfTime(20, "reading the declared files")
        added_paths.append(path)
        add(cache, path, documents)

    monkeypatch.setattr(reader.ValidationCache, "add", add_three)
    codes = [main(["-C", str(scratch.path), "check"]) for _ in range(3)]
    assert codes == [1, 1, 0]
    assert sorted(filter(None, added_paths)) == sorted(f"topics/{name}.yaml" for name in names)
