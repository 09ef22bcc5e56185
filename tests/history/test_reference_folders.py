"""References by glob and to whole folders: only the files that a definition needs make versions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import process, schemactl
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.history.approved_history import read_history
from schemactl.history.early_exit import MESSAGE
from schemactl.history.git import Repository
from schemactl.history.merge import read_forked

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",))
ORDERS = TopicName.parse("shop/sales/orders")
MONEY = record("amount", name="Money")
WIDER = record("amount", name="Money", scale=2)
PARTY = '{"type": "record", "name": "Party", "fields": [{"name": "owes", "type": "Money"}]}'


def write_order(*types: str) -> str:
    fields = ", ".join(f'{{"name": "{type_.lower()}", "type": "{type_}"}}' for type_ in types)
    return f'{{"type": "record", "name": "Order", "fields": [{fields}]}}'


def create_shop(tmp_path: Path, *references: str, **more: str) -> Scratch:
    """Create a repository with one topic that uses Money of a folder outside its root, in which the index has passed a check."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/orders.yaml": write_declaration(more=f"  references: [{', '.join(references)}]\n"),
            "topics/orders.avsc": write_order("Money"),
            "shared/money.avsc": MONEY,
            "shared/deep/party.avsc": PARTY,
            "shared/package.json": '{"name": "no schema"}',
            **more,
        },
        "Take Money of a folder",
    )
    scratch.flush()
    return scratch


def list_versions(scratch: Scratch, *, cached: bool = False) -> list[str]:
    """List the subjects of the commits that added the versions, from the cache and derived again."""
    scratch.flush()
    with Repository.open(scratch.path) as repository:
        topic = read_history(repository, PROJECT).catalog.topics[ORDERS].load()
        subjects = [version.commit.subject for version in topic.versions if version.commit]
    if not cached:
        shutil.rmtree(scratch.cache)
        assert list_versions(scratch, cached=True) == subjects
    return subjects


def run_check(scratch: Scratch, code: int = 0) -> str:
    printed = schemactl(scratch, "check", code=code)
    return printed.out + printed.err


@pytest.mark.parametrize(
    "written", ["../shared/", "../shared/*.avsc", "'../shared/**/m*.avsc'", "../shared/mone?.avsc"]
)
def test_what_a_folder_or_glob_has_is_the_same_version_as_the_file_itself(tmp_path: Path, written: str) -> None:
    shop = create_shop(tmp_path, written)
    assert list_versions(shop) == ["Take Money of a folder"]
    shop.commit(
        {"topics/orders.yaml": write_declaration(more="  references: [../shared/money.avsc]\n")}, "List the file"
    )
    shop.commit(
        {
            "shared/money.avsc": None,
            "shared/gold.avsc": MONEY,
            "topics/orders.yaml": write_declaration(more="  references: [../shared/gold.avsc]\n"),
        }
    )
    assert list_versions(shop) == ["Take Money of a folder"]


@pytest.mark.parametrize(
    ("files", "brings"),
    [
        ({"shared/colour.avsc": record("red", name="Colour")}, False),
        ({"shared/broken.avsc": "{"}, False),
        ({"shared/deep/party.avsc": None}, False),
        ({"shared/deep/party.avsc": record("id", name="Party")}, False),
        ({"shared/deep/two.avsc": record("id", name="Party")}, False),
        ({"shared/.hidden/money.avsc": WIDER}, False),
        ({"shared/money.avsc": None, "shared/deep/gold.avsc": MONEY}, False),
        ({"shared/money.avsc": None, "shared/deep/gold.avsc": WIDER}, True),
        ({"shared/money.avsc": WIDER}, True),
        ({"shared/money.avsc": PARTY, "shared/deep/party.avsc": MONEY}, False),
    ],
    ids=["new", "broken", "gone", "other content", "type twice", "hidden", "renamed", "renamed and changed", "changed", "swapped"],
)  # fmt: skip
def test_what_is_needed_of_a_folder_makes_versions_and_nothing_else(
    tmp_path: Path, files: Files, *, brings: bool
) -> None:
    shop = create_shop(tmp_path, "../shared/")
    before = list_versions(shop)
    shop.write(files)
    assert ("1 changed" in run_check(shop)) == brings
    shop.commit(files, "Change the folder")
    assert list_versions(shop, cached=True) == [*before, *(["Change the folder"] if brings else [])]
    assert list_versions(shop) == list_versions(shop, cached=True)


def test_two_files_that_define_a_needed_type_are_one_error_that_names_both(tmp_path: Path) -> None:
    other = write_declaration("shop/sales/refunds", more="  references: [../shared/]\n")
    shop = create_shop(tmp_path, "../shared/", **{"topics/refunds.yaml": other})
    shop.write({"shared/deep/second.avsc": WIDER})
    output = run_check(shop, 1)
    assert output.count("Money is defined here and at") == 1
    assert output.startswith("shared/money.avsc:1:28: Money is defined here and at shared/deep/second.avsc:1:28\n")
    shop.commit({"shared/deep/second.avsc": WIDER}, "Twice")
    assert list_versions(shop) == ["Take Money of a folder"]
    shop.commit({"shared/money.avsc": None}, "Keep the second")
    assert list_versions(shop) == ["Take Money of a folder", "Keep the second"]


def test_a_type_that_is_missing_names_the_file_that_cannot_be_read(tmp_path: Path) -> None:
    shop = create_shop(tmp_path, "../shared/")
    shop.write({"shared/money.avsc": "{"})
    assert "shared/money.avsc:1:2: " in run_check(shop, 1)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("../shared/*.txt", "`../shared/*.txt` matches no .avsc file"),
        ("../shred/", "`../shred/` matches no .avsc file"),
        ("../shared", "`../shared` is a folder\n  Fix: write `../shared/` for all files of the folder"),
        ("../../*.avsc", "`../../*.avsc` leads out of the repository"),
        ("../shared/[z-a]*.avsc", "`../shared/[z-a]*.avsc` has a range that runs backwards"),
        ("../**/*.avsc", "`../**/*.avsc` is the top folder of the repository; name a folder in it"),
    ],
)
def test_a_pattern_that_means_nothing_is_an_error_with_the_next_step(tmp_path: Path, written: str, words: str) -> None:
    output = run_check(create_shop(tmp_path, f"'{written}'"), 1)
    assert output.startswith("topics/orders.yaml:5:16: ")
    assert words in output


def test_a_folder_or_glob_from_which_nothing_is_taken_is_not_a_finding(tmp_path: Path) -> None:
    shop = create_shop(tmp_path, "../shared/", "../more/*.avsc", **{"more/colour.avsc": record("red", name="Colour")})
    assert "REFERENCE_UNUSED" not in run_check(shop)


def write_proto(body: str) -> str:
    return f'syntax = "proto3";\n{body}\n'


def test_of_protobuf_files_a_folder_offers_those_that_are_imported(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "p")
    scratch.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: PROTOBUF_NATIVE, definition: o.proto, message: O, references: [../protos/]}\n",
            "topics/o.proto": write_proto('import "a/money.proto";\nmessage O { Money m = 1; }'),
            "protos/a/money.proto": write_proto("message Money { int32 a = 1; }"),
            "protos/broken.proto": "nonsense",
        },
        "first",
    )
    assert list_versions(scratch) == ["first"]
    scratch.commit({"protos/b/money.proto": write_proto("message Money { int64 a = 1; }")}, "unrelated")
    scratch.commit({"protos/a/money.proto": write_proto("message Money { int32 a = 1; int32 b = 2; }")}, "second")
    assert list_versions(scratch) == ["first", "second"]


def test_the_hook_looks_at_a_file_that_comes_into_a_folder(tmp_path: Path) -> None:
    shop = create_shop(tmp_path, "../shared/")

    def stage_and_check(path: str, text: str) -> str:
        shop.write({path: text})
        shop.git("add", ".")
        printed = process(shop, "check", "--staged")
        return printed.out + printed.err

    assert MESSAGE not in stage_and_check("notes.md", "x")
    assert MESSAGE in stage_and_check("notes.md", "y")
    assert "Money is defined here and at" in stage_and_check("shared/second.avsc", WIDER)


def test_what_a_merge_brings_into_a_folder_is_no_change_of_the_work(tmp_path: Path) -> None:
    shop = create_shop(tmp_path, "../shared/")
    shop.commit({"README.md": "x"}, "Begin", branch="work", start=1)
    shop.commit({"shared/second.avsc": WIDER}, "Twice", branch="main")
    shop.git("checkout", "-q", "work")
    with Repository.open(shop.path) as repository:
        files = declare_files.WorktreeFiles(str(shop.path), folders=["topics"])
        declarations = reader.read(files, PROJECT)
        forked = read_forked(repository, PROJECT, repository.commit("HEAD"), "main")
        changes = forked.compare_with_base(files, declarations)
    assert changes.unchanged == {ORDERS}
    assert not changes.combined


def test_fmt_lays_out_what_a_folder_offers_and_codeowners_name_what_is_taken(tmp_path: Path) -> None:
    shop = create_shop(tmp_path, "../shared/", **{"topics/ns.yaml": "namespace: shop/sales\nowner: '@team'\n"})
    output = schemactl(shop, "fmt", "--check", code=100)
    assert "shared/deep/party.avsc" in output.out + output.err
    owned = schemactl(shop, "list", "--format", "codeowners").out
    assert [line.split()[0] for line in owned.splitlines() if line.startswith("/")] == [
        *("/shared/money.avsc", "/topics/ns.yaml", "/topics/orders.avsc", "/topics/orders.yaml")
    ]
