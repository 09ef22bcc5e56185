"""References by glob and to whole folders: what is needed of them makes versions, and nothing else that is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import process, schemactl
from scratch import Files, Scratch, declared, record

from schemactl import history
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.history.early_exit import MESSAGE

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",))
ORDERS = TopicName.parse("shop/sales/orders")
MONEY = record("amount", name="Money")
WIDER = record("amount", name="Money", scale=2)
PARTY = '{"type": "record", "name": "Party", "fields": [{"name": "owes", "type": "Money"}]}'


def uses(*types: str) -> str:
    fields = ", ".join(f'{{"name": "{each.lower()}", "type": "{each}"}}' for each in types)
    return f'{{"type": "record", "name": "Order", "fields": [{fields}]}}'


def shop(tmp_path: Path, *references: str, **more: str) -> Scratch:
    """One topic that takes Money of a folder beside its root, in a working tree where the index has passed a check."""
    made = Scratch(tmp_path / "shop")
    made.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/orders.yaml": declared(more=f"  references: [{', '.join(references)}]\n"),
            "topics/orders.avsc": uses("Money"),
            "shared/money.avsc": MONEY,
            "shared/deep/party.avsc": PARTY,
            "shared/package.json": '{"name": "no schema"}',
            **more,
        },
        "Take Money of a folder",
    )
    made.flush()
    return made


def versions(scratch: Scratch, *, cached: bool = False) -> list[str]:
    """The subject of the commit that brought each version; also where all is derived anew."""
    scratch.flush()
    with history.Repository.open(scratch.path) as repository:
        found = history.read(repository, PROJECT)
        topic = found.catalog.topics[ORDERS].load()
        subjects = [each.commit.subject for each in topic.versions if each.commit]
    if not cached:
        shutil.rmtree(scratch.cache)
        assert versions(scratch, cached=True) == subjects
    return subjects


def check(scratch: Scratch, code: int = 0) -> str:
    printed = schemactl(scratch.path, "check", code=code)
    return printed.out + printed.err


@pytest.mark.parametrize(
    "written", ["../shared/", "../shared/*.avsc", "'../shared/**/m*.avsc'", "../shared/mone?.avsc"]
)
def test_what_a_folder_or_glob_has_is_the_same_version_as_the_file_itself(tmp_path: Path, written: str) -> None:
    shop_ = shop(tmp_path, written)
    assert versions(shop_) == ["Take Money of a folder"]
    shop_.commit({"topics/orders.yaml": declared(more="  references: [../shared/money.avsc]\n")}, "List the file")
    shop_.commit(
        {
            "shared/money.avsc": None,
            "shared/gold.avsc": MONEY,
            "topics/orders.yaml": declared(more="  references: [../shared/gold.avsc]\n"),
        }
    )
    assert versions(shop_) == ["Take Money of a folder"]


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
    shop_ = shop(tmp_path, "../shared/")
    before = versions(shop_)
    shop_.write(files)
    assert ("1 changed" in check(shop_)) == brings
    shop_.commit(files, "Change the folder")
    assert versions(shop_, cached=True) == [*before, *(["Change the folder"] if brings else [])]
    assert versions(shop_) == versions(shop_, cached=True)


def test_two_files_that_define_a_needed_type_are_one_error_that_names_both(tmp_path: Path) -> None:
    other = declared("shop/sales/refunds", more="  references: [../shared/]\n")
    shop_ = shop(tmp_path, "../shared/", **{"topics/refunds.yaml": other})
    shop_.write({"shared/deep/second.avsc": WIDER})
    said = check(shop_, 1)
    assert said.count("Money is defined here and at") == 1
    assert said.startswith("shared/money.avsc:1:28: Money is defined here and at shared/deep/second.avsc:1:28\n")
    shop_.commit({"shared/deep/second.avsc": WIDER}, "Twice")
    assert versions(shop_) == ["Take Money of a folder"]
    shop_.commit({"shared/money.avsc": None}, "Keep the second")
    assert versions(shop_) == ["Take Money of a folder", "Keep the second"]


def test_a_type_that_is_missing_names_the_file_that_cannot_be_read(tmp_path: Path) -> None:
    shop_ = shop(tmp_path, "../shared/")
    shop_.write({"shared/money.avsc": "{"})
    assert "shared/money.avsc:1:2: " in check(shop_, 1)


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
    said = check(shop(tmp_path, f"'{written}'"), 1)
    assert said.startswith("topics/orders.yaml:5:16: ")
    assert words in said


def test_a_folder_of_which_nothing_is_needed_is_an_unused_reference(tmp_path: Path) -> None:
    shop_ = shop(tmp_path, "../shared/", "../more/*.avsc", **{"more/colour.avsc": record("red", name="Colour")})
    said = check(shop_)
    assert "REFERENCE_UNUSED" in said
    assert "topics/orders.yaml:5:28" in said


def proto(body: str) -> str:
    return f'syntax = "proto3";\n{body}\n'


def test_of_protobuf_files_a_folder_offers_those_that_are_imported(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "p")
    made.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: PROTOBUF_NATIVE, definition: o.proto, message: O, references: [../protos/]}\n",
            "topics/o.proto": proto('import "a/money.proto";\nmessage O { Money m = 1; }'),
            "protos/a/money.proto": proto("message Money { int32 a = 1; }"),
            "protos/broken.proto": "nonsense",
        },
        "first",
    )
    assert versions(made) == ["first"]
    made.commit({"protos/b/money.proto": proto("message Money { int64 a = 1; }")}, "unrelated")
    made.commit({"protos/a/money.proto": proto("message Money { int32 a = 1; int32 b = 2; }")}, "second")
    assert versions(made) == ["first", "second"]


def test_the_hook_looks_at_a_file_that_comes_into_a_folder(tmp_path: Path) -> None:
    shop_ = shop(tmp_path, "../shared/")

    def staged(path: str, text: str) -> str:
        shop_.write({path: text})
        shop_.git("add", ".")
        printed = process(shop_.path, "check", "--staged")
        return printed.out + printed.err

    assert MESSAGE not in staged("notes.md", "x")
    assert MESSAGE in staged("notes.md", "y")
    assert "Money is defined here and at" in staged("shared/second.avsc", WIDER)


def test_what_a_merge_brings_into_a_folder_counts(tmp_path: Path) -> None:
    shop_ = shop(tmp_path, "../shared/")
    shop_.commit({"README.md": "x"}, "Begin", branch="work", start=1)
    shop_.commit({"shared/second.avsc": WIDER}, "Twice", branch="main")
    shop_.git("checkout", "-q", "work")
    with history.Repository.open(shop_.path) as repository:
        files = declare_files.WorktreeFiles(str(shop_.path), folders=["topics"])
        found = reader.read(files, PROJECT)
        changes = history.read_forked(repository, PROJECT, repository.commit("HEAD"), "main").changes(files, found)
    assert changes.unchanged == {ORDERS}
    assert not changes.settled


def test_fmt_lays_out_what_a_folder_offers_and_codeowners_name_what_is_taken(tmp_path: Path) -> None:
    shop_ = shop(tmp_path, "../shared/", **{"topics/ns.yaml": "namespace: shop/sales\nowner: '@team'\n"})
    said = schemactl(shop_.path, "fmt", "--check", code=100)
    assert "shared/deep/party.avsc" in said.out + said.err
    owned = schemactl(shop_.path, "list", "--format", "codeowners").out
    assert [line.split()[0] for line in owned.splitlines() if line.startswith("/")] == [
        *("/shared/money.avsc", "/topics/ns.yaml", "/topics/orders.avsc", "/topics/orders.yaml")
    ]
