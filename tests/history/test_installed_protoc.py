"""Versions do not depend on the installed protoc: where its answer decides, every use of the version numbers is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch

from schemactl.core.errors import DependsOnProtoc, InvalidSchema
from schemactl.declare.project import read_project
from schemactl.formats.protobuf import protoc_process
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository
from schemactl.history.versions import encode_inputs

PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\ngenerate: {package: shop_schemas, out: generated}\n"
    'targets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
)


def write_proto(first_line: str, *fields: str) -> str:
    return f"{first_line}\npackage t;\nmessage A {{ {' '.join(fields)} }}\n"


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    """A repository in which the second version of a topic is in an edition that no installed protoc compiles."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/ns.yaml": "namespace: shop/sales\n",
            "topics/a.yaml": "topic: shop/sales/a\nschema: {type: PROTOBUF_NATIVE, definition: a.proto, message: t.A}\n",
            "topics/a.proto": write_proto('syntax = "proto3";', "int32 x = 1;"),
            "topics/good.yaml": "topic: shop/sales/good\nschema: {type: STRING}\n",
        },
        "one",
    )
    scratch.commit({"topics/a.proto": write_proto('edition = "2099";', "int32 x = 1;", "int32 y = 2;")}, "two")
    scratch.commit({"topics/a.proto": write_proto('syntax = "proto3";', "int32 x = 1;", "int32 z = 3;")}, "three")
    scratch.flush()
    return scratch


COMMANDS = [
    ["log", "a"],
    ["show", "a"],
    ["list", "a"],
    ["list"],
    ["check", "--topic", "a"],
    ["check"],
    ["diff", "a@0", "a"],
    ["generate"],
    ["generate", "--topic", "a"],
    ["plan", "--target", "local", "--topic", "a"],
    ["export", "jsonschema", "a"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_that_uses_the_numbers_names_commit_file_and_protoc(
    shop_repository: Scratch, command: list[str]
) -> None:
    printed = schemactl(shop_repository, *command, code=1)
    text = printed.out + printed.err
    commit = shop_repository.git("rev-parse", "--short=9", "main^").strip()
    for part in (commit, "topics/a.proto:1:1", "grpcio-tools", "2099"):
        assert part in text, (part, text)


def test_other_topics_continue(shop_repository: Scratch) -> None:
    for command in (
        ["log", "good"],
        ["show", "good"],
        ["list", "good"],
        ["check", "--topic", "good"],
        ["diff", "good"],
        ["generate", "--topic", "good"],
        ["plan", "--target", "local", "--topic", "good"],
        ["export", "jsonschema", "good"],
    ):
        schemactl(shop_repository, *command)
    assert "persistent://shop/sales/good" in schemactl(shop_repository, "log", "--all", code=1).out
    report = run_json(shop_repository, "check", code=1)
    assert report["decided"]
    assert [(finding["rule"], finding["topic"]) for finding in report["findings"]] == [
        ("NOT_DECIDED", "persistent://shop/sales/a")
    ]


def test_a_definition_that_is_not_approved_yet_is_an_error_of_its_file(shop_repository: Scratch) -> None:
    path = shop_repository.path / "topics/b.proto"
    path.write_text(write_proto('edition = "2099";', "int32 x = 1;"))
    (shop_repository.path / "topics/b.yaml").write_text(
        "topic: shop/sales/b\nschema: {type: PROTOBUF_NATIVE, definition: b.proto, message: t.A}\n"
    )
    assert "topics/b.proto:1:1" in schemactl(shop_repository, "check", "--topic", "b", code=1).err
    schemactl(shop_repository, "generate", "--topic", "good")


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ('edition = "2099"; message A {}', True),
        ('edition = "2099"; message A { nonsense }', True),
        ('edition = "2023"; message A { nonsense }', False),
        ('syntax = "proto3"; message A { int32 x = 1 }', False),
        ('syntax = "proto3"; message A { strng x = 1; }', False),
        ('syntax = "proto3"; import "google/protobuf/later.proto"; message A {}', True),
        ('syntax = "proto3"; import "shop/later.proto"; message A {}', False),
        ('syntax = "proto3"; message A { int32 x = 1 [later = true]; }', True),
        ('syntax = "proto3"; message A { int32 x = 1 [(later) = true]; }', False),
        ('syntax = "proto3"; enum E { E_A = 0; A = 1; } message A {}', False),
    ],
)
def test_text_depends_on_protoc_by_its_edition_and_the_files_of_protoc(text: str, *, depends: bool) -> None:
    with pytest.raises(InvalidSchema) as caught:
        compile_proto(Proto.of_text(text, "A"))
    assert isinstance(caught.value, DependsOnProtoc) == depends


def test_a_run_of_protoc_without_an_answer_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    # protoc gives no answer in time.
    monkeypatch.setattr("select.select", lambda *_: ([], [], []))
    with pytest.raises(DependsOnProtoc, match="timed out"):
        compile_proto(Proto.of_text('syntax = "proto3"; message OfNoAnswer {}', "OfNoAnswer"))


def test_the_cache_is_keyed_by_the_installed_protoc(monkeypatch: pytest.MonkeyPatch) -> None:
    project = read_project("schemactl.yaml", PROJECT.encode())
    key = encode_inputs(project)
    assert "grpcio-tools" in key
    assert "protobuf" in key
    monkeypatch.setattr(protoc_process, "describe_installation", lambda: "grpcio-tools 1.0")
    assert encode_inputs(project) != key


def test_text_that_no_installation_accepts_makes_no_version_and_a_note(shop_repository: Scratch) -> None:
    shop_repository.commit(
        {
            "topics/c.yaml": "topic: shop/sales/c\nschema: {type: PROTOBUF_NATIVE, definition: c.proto, message: t.A}\n",
            "topics/c.proto": write_proto('syntax = "proto3";', "int32 x = 1;"),
        }
    )
    shop_repository.commit({"topics/c.proto": write_proto('syntax = "proto3";', "strng x = 1;")})
    assert "added no version:" in schemactl(shop_repository, "log", "c").err
    with Repository.open(shop_repository.path) as repository:
        approved = read_history(repository, read_project("schemactl.yaml", PROJECT.encode()))
        assert list(approved.undecided) == ["shop/sales/a"]
