"""`protobuf.include` of the project file: the folders that prefixes of imports mean, at each commit as its project file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

PROJECT = "version: 1\nroots: [topics]\napproved: main\n"
INCLUDE = "protobuf: {include: {etcd: ., github.com/acme/shop: lib}}\n"


def write_proto(body: str, *imports: str) -> str:
    lines = "".join(f'import "{name}";\n' for name in imports)
    return f'syntax = "proto3";\npackage t;\n{lines}{body}\n'


FILES = {
    "topics/ns.yaml": "namespace: shop/sales\n",
    "topics/a.yaml": "topic: shop/sales/a\nschema: {type: PROTOBUF_NATIVE, definition: ../api/rpc.proto, message: t.A}\n",
    "api/rpc.proto": write_proto("message A { Pair x = 1; }", "etcd/api/kv.proto"),
    "api/kv.proto": write_proto("message Pair { Money x = 1; }", "github.com/acme/shop/money.proto"),
    "lib/money.proto": write_proto("message Money { int32 x = 1; }"),
}


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    """A repository whose one topic imports files by the prefixes of other builds."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"schemactl.yaml": PROJECT + INCLUDE, **FILES}, "one")
    scratch.flush()
    return scratch


def list_versions(shop: Scratch) -> list[str]:
    """Return the subjects of the topic's versions, oldest first."""
    lines = schemactl(shop, "log", "a").out.splitlines()
    return [line.split()[-1] for line in reversed(lines) if "PROTOBUF_NATIVE" in line]


def test_a_prefix_means_a_folder_in_the_working_tree_the_index_and_history(shop_repository: Scratch) -> None:
    assert list_versions(shop_repository) == ["one"]
    shop_repository.write({"lib/money.proto": write_proto("message Money { int32 x = 1; int32 y = 2; }")})
    assert "version 0, will be 1" in schemactl(shop_repository, "check").out
    shop_repository.git("add", "-A")
    assert "version 0, will be 1" in schemactl(shop_repository, "check", "--staged").out
    shop_repository.git("commit", "-q", "-m", "two")
    assert list_versions(shop_repository) == ["one", "two"]
    assert "Money" in schemactl(shop_repository, "diff", "a@0", "a@1").out


def test_a_later_change_of_the_prefixes_changes_no_earlier_version(shop_repository: Scratch) -> None:
    shop_repository.commit({"schemactl.yaml": PROJECT}, "two")
    shop_repository.flush()
    assert list_versions(shop_repository) == ["one"]
    shop_repository.commit({"schemactl.yaml": PROJECT + INCLUDE.replace("etcd: .", "etcd: later")}, "three")
    shop_repository.commit({"later/api/kv.proto": write_proto("message Pair { int32 y = 1; }")}, "four")
    shop_repository.flush()
    assert list_versions(shop_repository) == ["one", "four"]
    schemactl(shop_repository, "show", "a@0")


def test_a_change_of_the_prefixes_is_judged_as_a_change_of_the_topics(shop_repository: Scratch) -> None:
    shop_repository.write(
        {
            "schemactl.yaml": PROJECT + INCLUDE.replace("etcd: .", "etcd: later"),
            "later/api/kv.proto": write_proto("message Pair { string x = 1; }"),
        }
    )
    printed = schemactl(shop_repository, "check", code=100).out
    assert "persistent://shop/sales/a  version 0, will be 1" in printed
    assert "GATE_CHANGED" in printed


@pytest.mark.parametrize(
    ("project", "lines"),
    [
        (
            PROJECT,
            [
                'Import "etcd/api/kv.proto" was not found or had errors',
                "= fix      write `protobuf: {include: {etcd: .}}` in schemactl.yaml",
            ],
        ),
        (
            PROJECT + "protobuf: {include: {etcd: .}}\n",
            [
                'Import "github.com/acme/shop/money.proto" was not found or had errors',
                "= fix      write `protobuf: {include: {github.com/acme/shop: lib}}` in schemactl.yaml",
            ],
        ),
        (
            PROJECT + "protobuf: {include: {etcd: lib}}\n",
            [
                "= fix      `protobuf.include` of schemactl.yaml means `lib/api/kv.proto`: add this file, or correct the folder"
            ],
        ),
        (PROJECT + "protobuf: {include: {etcd: ..}}\n", ["schemactl.yaml:4:28: `..` leads out of the repository"]),
        (PROJECT + "protobuf: {include: {etcd/: .}}\n", ["`etcd/` cannot be the beginning of an import"]),
    ],
)
def test_an_import_that_is_not_found_names_what_to_write(
    shop_repository: Scratch, project: str, lines: list[str]
) -> None:
    shop_repository.write({"schemactl.yaml": project})
    printed = schemactl(shop_repository, "check", code=1)
    for line in lines:
        assert line in printed.out + printed.err


def test_an_import_of_a_listed_file_is_missing_in_the_list(shop_repository: Scratch) -> None:
    shop_repository.write(
        {
            "topics/b.yaml": "topic: shop/sales/b\nschema:\n  type: PROTOBUF_NATIVE\n  definition: b.proto\n  message: t.B\n  references: [c.proto]\n",
            "topics/b.proto": write_proto("message B { C x = 1; }", "c.proto"),
            "topics/c.proto": write_proto("message C { D x = 1; }", "deep/d.proto"),
            "topics/deep/d.proto": write_proto("message D { int32 x = 1; }"),
        }
    )
    printed = schemactl(shop_repository, "lint", code=1).err
    assert "topics/b.yaml:6:16: `c.proto` imports `deep/d.proto`, which is not listed" in printed
    assert "Fix: list its folder: `references: [deep/]`" in printed


def test_a_project_file_that_moved_keeps_the_versions_of_its_former_path(shop_repository: Scratch) -> None:
    shop_repository.commit(
        {
            "schemactl.yaml": None,
            "shop/schemactl.yaml": "version: 1\nroots: [../topics]\napproved: main\nprotobuf: {include: {etcd: .., github.com/acme/shop: ../lib}}\n",
        },
        "move",
    )
    shop_repository.commit({"lib/money.proto": write_proto("message Money { int32 x = 1; int32 y = 2; }")}, "two")
    shop_repository.flush()
    lines = schemactl(shop_repository.path / "shop", "log", "a").out.splitlines()
    assert [line.split()[-1] for line in reversed(lines) if "PROTOBUF_NATIVE" in line] == ["one", "two"]


def test_the_working_tree_counts_until_a_project_file_is_approved(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(FILES, "one")
    scratch.write({"schemactl.yaml": PROJECT + INCLUDE})
    assert list_versions(scratch) == ["one"]
    scratch.write({"schemactl.yaml": PROJECT})
    assert "added no version:" in schemactl(scratch, "log", "a", code=64).err
