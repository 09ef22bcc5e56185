"""Topics whose files are byte for byte as they were approved."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.project import Project
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.history.commit_files import IndexFiles
from schemactl.history.git import Repository
from schemactl.history.merge import read_forked

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",))
ALL = {"orders", "refunds", "doors"}
USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
DOORS = "topic: shop/sales/doors\nschema: {type: BOOLEAN}\n"


@pytest.fixture(params=["sha1", "sha256"])
def topics_repository(tmp_path: Path, request: pytest.FixtureRequest) -> Scratch:
    """Three topics: one uses a type of another file, one has a separate definition file, one has no definition."""
    scratch = Scratch(tmp_path / "r", object_format=request.param)
    scratch.commit(
        {
            "topics/orders.yaml": write_declaration(more="  references: [../money.avsc]\n"),
            "topics/orders.avsc": USES_MONEY,
            "money.avsc": record("amount", name="Money"),
            "topics/rest.yaml": write_declaration("shop/sales/refunds", "refunds.avsc") + "---\n" + DOORS,
            "topics/refunds.avsc": record("id", name="Refund"),
        }
    )
    scratch.flush()
    return scratch


def find_unchanged(scratch: Scratch, *, staged: bool = False) -> set[str]:
    with Repository.open(scratch.path) as repository:
        files = IndexFiles(repository) if staged else declare_files.WorktreeFiles(str(scratch.path))
        declarations = reader.read(files, PROJECT)
        forked = read_forked(repository, PROJECT, repository.commit("HEAD"), "main")
        return {name.topic for name in forked.compare_with_base(files, declarations).unchanged}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ALL),
        ({"README.md": "x"}, ALL),
        ({"topics/ns.yaml": "namespace: shop/sales\n"}, ALL),
        ({"money.avsc": record("amount", "unit", name="Money")}, ALL - {"orders"}),
        ({"topics/refunds.avsc": record("id", name="Refund", indent=2)}, ALL - {"refunds"}),
        ({"topics/rest.yaml": write_declaration("shop/sales/refunds", "refunds.avsc")}, {"orders"}),
        ({"topics/rest.yaml": None, "topics/doors.yaml": DOORS}, {"orders"}),
        ({"topics/new.yaml": "topic: shop/sales/new\n"}, ALL),
    ],
    ids=["nothing", "other file", "namespace", "shared", "layout", "document gone", "moved", "new topic"],
)
@pytest.mark.parametrize("staged", [False, True], ids=["working tree", "index"])
def test_a_topic_is_unchanged_when_every_file_it_is_made_of_is(
    topics_repository: Scratch, files: Files, expected: set[str], *, staged: bool
) -> None:
    topics_repository.write(files)
    if staged:
        topics_repository.git("add", "-A")
    assert find_unchanged(topics_repository, staged=staged) == expected


def test_what_counts_is_where_the_work_began(topics_repository: Scratch) -> None:
    topics_repository.commit({"topics/refunds.avsc": record("id", name="Refund", more=0)}, "meanwhile")
    topics_repository.git("checkout", "-q", "--detach", "main~1")
    assert find_unchanged(topics_repository) == ALL


def test_what_could_not_be_read_where_the_work_began_is_not_unchanged(topics_repository: Scratch) -> None:
    topics_repository.commit({"topics/rest.yaml": "topic: ["}, "broken")
    topics_repository.write(
        {"topics/rest.yaml": write_declaration("shop/sales/refunds", "refunds.avsc") + "---\n" + DOORS}
    )
    assert find_unchanged(topics_repository) == {"orders"}


def test_line_ends_that_git_converts_are_compared_otherwise(topics_repository: Scratch) -> None:
    topics_repository.commit({".gitattributes": "*.yaml text eol=crlf\n"})
    topics_repository.git("rm", "-q", "-r", "--cached", ".")
    topics_repository.git("reset", "-q", "--hard")
    assert find_unchanged(topics_repository) == set()
    assert find_unchanged(topics_repository, staged=True) == ALL


def test_without_an_approved_commit_nothing_is_unchanged(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.write({"topics/doors.yaml": DOORS})
    assert find_unchanged(scratch) == set()
