"""A check judges the text that Git records, even if the working tree has another one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import command
import pytest
from command import Printed
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from scratch import ENVIRONMENT, Scratch, record, write_declaration

from schemactl.__main__ import main as start

pytestmark = pytest.mark.slow

FINE, ERROR, BAD = 0, 1, 100
WAYS: tuple[list[str], ...] = [], ["--staged"], ["--base", "main"]
"""The options with which a check reads the working tree, the index and the commit."""

PROJECT_FILE = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL}\n"
MONEY = record("amount", name="Money")
ORDERS = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'


@pytest.fixture
def branch_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    """Approve two topics, one with a reference outside of the roots, and run commands on a branch."""
    new_scratch = Scratch(tmp_path / "r")
    new_scratch.commit(
        {
            "schemactl.yaml": PROJECT_FILE,
            "common/money.avsc": MONEY,
            "topics/orders.yaml": write_declaration(more="  references: [../common/money.avsc]\n"),
            "topics/orders.avsc": ORDERS,
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "topics/refunds.avsc": record("id", name="Refund"),
        }
    )
    new_scratch.git("checkout", "-q", "-b", "work")
    monkeypatch.chdir(new_scratch.path)
    for name, value in ENVIRONMENT.items():
        if name.startswith("GIT_"):
            monkeypatch.setenv(name, value)
    return new_scratch


def check(*arguments: str, code: int | tuple[int, ...] = FINE) -> Printed:
    """Return the output of `check`."""
    return command.schemactl(Path(), "check", *arguments, code=code)


def commit(scratch: Scratch) -> None:
    scratch.git("add", "--all")
    scratch.git("commit", "-q", "-m", "work")


def test_with_base_the_commit_is_judged_and_different_files_are_listed(branch_repository: Scratch) -> None:
    branch_repository.write({"topics/refunds.avsc": record("number", name="Refund")})
    check(code=BAD)
    out = check("--base", "main").out
    assert "not judged: 1 file that differs from HEAD (topics/refunds.avsc); commit" in out
    commit(branch_repository)
    branch_repository.write({"topics/refunds.avsc": record("id", name="Refund"), "topics/more.yaml": "topic: a/b/c\n"})
    check()
    out = check("--base", "main", code=BAD).out
    assert "not judged: 2 files that differ from HEAD (topics/more.yaml, topics/refunds.avsc); commit" in out
    assert "a/b/c" not in out


def test_with_base_the_project_file_of_the_commit_counts(branch_repository: Scratch) -> None:
    branch_repository.write({"topics/refunds.avsc": record("number", name="Refund")})
    commit(branch_repository)
    check("--base", "main", code=BAD)
    lax = PROJECT_FILE + "severities: {BROKER_INCOMPATIBLE: off}\nroots: [common]\n"
    branch_repository.write({"schemactl.yaml": lax})
    check("--base", "main", code=BAD)
    branch_repository.write({"schemactl.yaml": None})
    check("--base", "main", code=BAD)


def test_line_ends_that_git_converts_are_no_difference(branch_repository: Scratch) -> None:
    branch_repository.write({".gitattributes": "*.avsc text eol=crlf\n*.png filter=lfs diff=lfs\n"})
    commit(branch_repository)
    branch_repository.write({"common/money.avsc": MONEY.replace(", ", ",\r\n"), "topics/refunds.avsc": None})
    branch_repository.git("add", "common")
    branch_repository.git("commit", "-q", "-m", "money")
    branch_repository.git("checkout", "-q", "--", ".")
    assert b"\r\n" in (branch_repository.path / "common" / "money.avsc").read_bytes()
    assert "not judged" not in check("--base", "main").out
    check()
    check("--staged")


def test_with_base_where_nothing_is_committed_is_an_error(tmp_path: Path) -> None:
    new_scratch = Scratch(tmp_path / "new")
    new_scratch.write({"schemactl.yaml": PROJECT_FILE, "topics/orders.yaml": "topic: a/b/c\n"})
    printed = command.schemactl(new_scratch, "check", "--base", "main", code=ERROR)
    assert "this repository has no commit yet" in printed.err


def test_an_encoding_of_the_working_tree_hides_nothing(branch_repository: Scratch) -> None:
    output, stored = record("id", name="Refund"), record("number", name="Refund")
    branch_repository.write({".gitattributes": "refunds.avsc working-tree-encoding=UTF-16\n"})
    branch_repository.git("add", ".gitattributes")
    blob = branch_repository.path / "blob"
    blob.write_text(stored)
    stored_id = branch_repository.git("hash-object", "-w", "--no-filters", "blob")
    blob.unlink()
    branch_repository.git("update-index", "--cacheinfo", f"100644,{stored_id},topics/refunds.avsc")
    branch_repository.git("commit", "-q", "-m", "break")
    branch_repository.write({"topics/refunds.avsc": output})
    for arguments in WAYS:
        said = check(*arguments, code=ERROR).err
        assert "topics/refunds.avsc:1:1: the attribute `working-tree-encoding=UTF-16` makes Git store" in said
        assert "Fix: turn it off for this file: write `topics/refunds.avsc !working-tree-encoding`" in said
    branch_repository.write({".gitattributes": "refunds.avsc -diff\n"})
    branch_repository.git("commit", "-q", "-m", "attributes", ".gitattributes")
    check("--base", "main", code=BAD)
    branch_repository.git("reset", "-q", "--soft", "main")
    check("--staged", code=BAD)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({".gitattributes": "*.png filter=lfs\n\n*.avsc  filter=x\n"}, "common/money.avsc filter=x"),
        ({"topics/.gitattributes": "/refunds.avsc\tident\n"}, "topics/refunds.avsc ident"),
        ({".gitattributes": "[attr]odd ident\n*.yaml odd\n"}, "topics/orders.yaml ident"),
        ({".gitattributes": "schemactl.yaml ident\n"}, "schemactl.yaml ident"),
        ({"common/.gitattributes": '"mon*.avsc" filter=x -text\n'}, "common/money.avsc filter=x"),
        ({".gitattributes": "topics/** filter=x\ntopics/*.avsc -filter\n"}, "topics/refunds.yaml filter=x"),
        ({".git/info/attributes": "common/money.avsc filter=x\n"}, "common/money.avsc filter=x"),
    ],
)
def test_what_converts_a_judged_file_is_an_error(
    branch_repository: Scratch, capsys: pytest.CaptureFixture[str], attributes: dict[str, str], said: str
) -> None:
    path, attribute = said.split(" ")
    place = f"{path}:1:1: the attribute `{attribute}` makes Git store other bytes"
    check("--staged")
    branch_repository.write(attributes)
    assert place in check(code=ERROR).err
    is_committed = ".git/info/attributes" not in attributes
    if is_committed:
        branch_repository.git("add", "--all")
    # Run like the hook, which may end early after a successful check.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["schemactl", "check", "--staged"])
        assert start() == ERROR
    assert place in capsys.readouterr().err
    if is_committed:
        branch_repository.git("commit", "-q", "-m", "attributes")
    assert place in check("--base", "main", code=ERROR).err


@pytest.mark.usefixtures("branch_repository")
def test_attributes_are_read_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in WAYS:
        trace = tmp_path / f"trace {arguments}"
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        check(*arguments)
        processes = [line for line in trace.read_text().splitlines() if '"event":"start"' in line]
        assert sum("check-attr" in line for line in processes) == 1


def test_attributes_of_other_files_do_not_matter(branch_repository: Scratch, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    branch_repository.git("config", "filter.x.clean", f"touch {ran}; cat")
    branch_repository.git("config", "filter.x.smudge", f"touch {ran}; cat")
    branch_repository.write(
        {
            ".gitattributes": "* text=auto filter=x ident\n*.yaml !filter !ident\n*.avsc -filter -ident\n",
            "README.md": "readme",
        }
    )
    commit(branch_repository)
    ran.unlink()
    branch_repository.write({"README.md": "more", "topics/notes.txt": "x"})
    os.utime(branch_repository.path / "topics" / "orders.avsc")
    for arguments in WAYS:
        check(*arguments)
    assert not ran.exists()


def test_no_filter_of_a_judged_file_is_run(branch_repository: Scratch, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    branch_repository.git("config", "filter.x.clean", f"touch {ran}; cat")
    branch_repository.git("config", "filter.x.process", f"touch {ran}")
    branch_repository.write({".gitattributes": "*.avsc filter=x\n"})
    os.utime(branch_repository.path / "topics" / "orders.avsc")
    for arguments in WAYS:
        check(*arguments, code=(FINE, ERROR))
    assert not ran.exists()


@pytest.mark.usefixtures("branch_repository")
def test_attributes_of_the_user_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.write_text("*.avsc ident\n")
    settings = tmp_path / "settings"
    settings.write_text(f"[core]\n\tattributesFile = {own}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert "topics/orders.avsc:1:1: the attribute `ident` makes" in check(code=ERROR).err


def test_in_a_folder_below_the_top_attributes_are_found(
    branch_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch_repository.write({".gitattributes": "/common/*.avsc ident\n"})
    monkeypatch.chdir(branch_repository.path / "topics")
    assert "common/money.avsc:1:1: the attribute `ident` makes" in check(code=ERROR).err


def descriptor_set(default: str, *, comment: str = "") -> bytes:
    """Return a message with one field of that default value, and a long comment that makes Git detect text."""
    file = FileDescriptorProto(name="click.proto", package="web", syntax="proto2")
    field = file.message_type.add(name="Click").field.add(name="url", number=1)
    field.type, field.label, field.default_value = field.TYPE_STRING, field.LABEL_OPTIONAL, default
    if comment:
        file.source_code_info.location.add(path=[4, 1], span=[3, 3, 3], leading_comments=comment)
    return FileDescriptorSet(file=[file]).SerializeToString()


CLICKS = "topic: shop/web/clicks\nschema:\n  type: PROTOBUF_NATIVE\n  definition: clicks.binpb\n  message: web.Click\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("*.binpb text", "text"),
        ("*.binpb text=input", "text=input"),
        ("*.binpb eol=lf", "eol=lf"),
        ("*.binpb crlf", "crlf"),
        ("*.binpb crlf=input", "crlf=input"),
    ],
)
def test_line_ends_that_git_converts_in_a_descriptor_set_are_an_error(
    branch_repository: Scratch, line: str, said: str
) -> None:
    branch_repository.write({"topics/clicks.yaml": CLICKS, "topics/clicks.binpb": descriptor_set("a\r\nb")})
    check()
    branch_repository.write({".gitattributes": f"# ours\n{line}\n"})
    for arguments in WAYS:
        err = check(*arguments, code=ERROR).err
        assert f"topics/clicks.binpb:1:1: the attribute `{said}` makes" in err
        assert "`topics/clicks.binpb -text` at the end of .gitattributes" in err
        # Git records this file unchanged, so that only the attribute is wrong.
        branch_repository.write({"topics/clicks.binpb": descriptor_set("ab")})
        commit(branch_repository) if arguments == ["--staged"] else branch_repository.git("add", "--all")


def test_a_descriptor_set_that_git_leaves_alone_is_fine(branch_repository: Scratch) -> None:
    branch_repository.write(
        {
            ".gitattributes": "* text=auto eol=lf\n*.avsc text\n",
            "topics/clicks.yaml": CLICKS,
            "topics/clicks.binpb": descriptor_set("a\r\nb"),
        }
    )
    commit(branch_repository)
    for attributes in ("* text=auto eol=lf\n*.avsc text\n", "* text\n*.binpb -text\n", "* text\n*.binpb binary\n"):
        branch_repository.write({".gitattributes": attributes})
        branch_repository.git("commit", "-q", "--allow-empty", "-m", "attributes", ".gitattributes")
        for arguments in WAYS:
            check(*arguments)


def test_a_descriptor_set_that_git_finds_to_be_text_is_an_error_with_auto(branch_repository: Scratch) -> None:
    data = descriptor_set("a\r\nb", comment="plain words " * 1000)
    branch_repository.write({"topics/clicks.yaml": CLICKS, "topics/clicks.binpb": data})
    check()
    branch_repository.write({".gitattributes": "* text=auto\n"})
    branch_repository.git("add", ".gitattributes", "topics/clicks.binpb")
    # Git converts this file.
    assert int(branch_repository.git("cat-file", "-s", ":topics/clicks.binpb")) < len(data)
    assert "topics/clicks.binpb:1:1: the attribute `text=auto` makes" in check(code=ERROR).err


def unlink(scratch: Scratch) -> None:
    (scratch.path / ".gitattributes").unlink()


def exclude_attributes(scratch: Scratch) -> None:
    scratch.git("sparse-checkout", "set", "--no-cone", "/*", "!/.gitattributes")
    assert not (scratch.path / ".gitattributes").exists()


@pytest.mark.parametrize("remove", [unlink, exclude_attributes])
def test_attributes_that_only_the_index_has_count(
    branch_repository: Scratch, remove: Callable[[Scratch], None]
) -> None:
    branch_repository.write({".gitattributes": "\nrefunds.avsc working-tree-encoding=UTF-16\n"})
    branch_repository.git("add", ".gitattributes")
    branch_repository.git("commit", "-q", "-m", "attributes")
    remove(branch_repository)
    assert "topics/refunds.avsc:1:1: the attribute `working-tree-encoding=UTF-16`" in check(code=ERROR).err


@pytest.mark.parametrize("folder", ["", "topics/"])
def test_with_base_the_attributes_of_the_commit_count(
    branch_repository: Scratch, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    path = f"{folder}.gitattributes"
    branch_repository.write({path: "refunds.avsc ident\n"})
    commit(branch_repository)
    branch_repository.git("config", "core.splitIndex", "true")
    branch_repository.git("rm", "-q", "--cached", path)
    (branch_repository.path / path).unlink()
    before = branch_repository.git("ls-files", "--stage"), sorted((branch_repository.path / ".git").glob("*index*"))
    monkeypatch.chdir(branch_repository.path / "topics")
    assert "topics/refunds.avsc:1:1: the attribute `ident` makes" in check("--base", "main", code=ERROR).err
    assert (
        branch_repository.git("ls-files", "--stage"),
        sorted((branch_repository.path / ".git").glob("*index*")),
    ) == before
    check()
    # With --base the attributes of the index do not count.
    branch_repository.git("commit", "-q", "-m", "none")
    branch_repository.write({path: "refunds.avsc ident\n"})
    branch_repository.git("add", path)
    check("--base", "main")
