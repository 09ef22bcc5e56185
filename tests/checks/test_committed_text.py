"""A check judges the text that Git records, even if the working tree has another one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import command
import pytest
from command import Printed
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from scratch import ENVIRONMENT, Scratch, declared, record

from schemactl.__main__ import main as start

pytestmark = pytest.mark.slow

FINE, ERROR, BAD = 0, 1, 100
PROJECT_FILE = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL}\n"
MONEY = record("amount", name="Money")
ORDERS = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    """Approve two topics, one with a reference outside of the roots, and run commands on a branch."""
    new_scratch = Scratch(tmp_path / "r")
    new_scratch.commit(
        {
            "schemactl.yaml": PROJECT_FILE,
            "common/money.avsc": MONEY,
            "topics/orders.yaml": declared(more="  references: [../common/money.avsc]\n"),
            "topics/orders.avsc": ORDERS,
            "topics/refunds.yaml": declared("shop/sales/refunds", "refunds.avsc"),
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


def test_with_base_the_commit_is_judged_and_different_files_are_listed(scratch: Scratch) -> None:
    scratch.write({"topics/refunds.avsc": record("number", name="Refund")})
    check(code=BAD)
    out = check("--base", "main").out
    assert "not judged: 1 file that differs from HEAD (topics/refunds.avsc); commit" in out
    commit(scratch)
    scratch.write({"topics/refunds.avsc": record("id", name="Refund"), "topics/more.yaml": "topic: a/b/c\n"})
    check()
    out = check("--base", "main", code=BAD).out
    assert "not judged: 2 files that differ from HEAD (topics/more.yaml, topics/refunds.avsc); commit" in out
    assert "a/b/c" not in out


def test_with_base_the_project_file_of_the_commit_counts(scratch: Scratch) -> None:
    scratch.write({"topics/refunds.avsc": record("number", name="Refund")})
    commit(scratch)
    check("--base", "main", code=BAD)
    lax = PROJECT_FILE + "severities: {BROKER_INCOMPATIBLE: off}\nroots: [common]\n"
    scratch.write({"schemactl.yaml": lax})
    check("--base", "main", code=BAD)
    scratch.write({"schemactl.yaml": None})
    check("--base", "main", code=BAD)


def test_line_ends_that_git_converts_are_no_difference(scratch: Scratch) -> None:
    scratch.write({".gitattributes": "*.avsc text eol=crlf\n*.png filter=lfs diff=lfs\n"})
    commit(scratch)
    scratch.write({"common/money.avsc": MONEY.replace(", ", ",\r\n"), "topics/refunds.avsc": None})
    scratch.git("add", "common")
    scratch.git("commit", "-q", "-m", "money")
    scratch.git("checkout", "-q", "--", ".")
    assert b"\r\n" in (scratch.path / "common" / "money.avsc").read_bytes()
    assert "not judged" not in check("--base", "main").out
    check()
    check("--staged")


def test_with_base_where_nothing_is_committed_is_an_error(tmp_path: Path) -> None:
    new_scratch = Scratch(tmp_path / "new")
    new_scratch.write({"schemactl.yaml": PROJECT_FILE, "topics/orders.yaml": "topic: a/b/c\n"})
    printed = command.schemactl(new_scratch.path, "check", "--base", "main", code=ERROR)
    assert "there is no commit here yet" in printed.err


def test_an_encoding_of_the_working_tree_hides_nothing(scratch: Scratch) -> None:
    output, stored = record("id", name="Refund"), record("number", name="Refund")
    scratch.write({".gitattributes": "refunds.avsc working-tree-encoding=UTF-16\n"})
    scratch.git("add", ".gitattributes")
    blob = scratch.path / "blob"
    blob.write_text(stored)
    stored_id = scratch.git("hash-object", "-w", "--no-filters", "blob")
    blob.unlink()
    scratch.git("update-index", "--cacheinfo", f"100644,{stored_id},topics/refunds.avsc")
    scratch.git("commit", "-q", "-m", "break")
    scratch.write({"topics/refunds.avsc": output})
    for arguments in ([], ["--staged"], ["--base", "main"]):
        said = check(*arguments, code=ERROR).err
        assert "topics/refunds.avsc:1:1: the attribute `working-tree-encoding=UTF-16` has Git store" in said
        assert "Fix: take it off this file: `topics/refunds.avsc !working-tree-encoding`" in said
    scratch.write({".gitattributes": "refunds.avsc -diff\n"})
    scratch.git("commit", "-q", "-m", "attributes", ".gitattributes")
    check("--base", "main", code=BAD)
    scratch.git("reset", "-q", "--soft", "main")
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
    scratch: Scratch, capsys: pytest.CaptureFixture[str], attributes: dict[str, str], said: str
) -> None:
    path, attribute = said.split(" ")
    place = f"{path}:1:1: the attribute `{attribute}` has Git store other bytes"
    check("--staged")
    scratch.write(attributes)
    assert place in check(code=ERROR).err
    is_committed = ".git/info/attributes" not in attributes
    if is_committed:
        scratch.git("add", "--all")
    # Run like the hook, which may end early after a successful check.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["schemactl", "check", "--staged"])
        assert start() == ERROR
    assert place in capsys.readouterr().err
    if is_committed:
        scratch.git("commit", "-q", "-m", "attributes")
    assert place in check("--base", "main", code=ERROR).err


@pytest.mark.usefixtures("scratch")
def test_attributes_are_read_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ([], ["--staged"], ["--base", "main"]):
        trace = tmp_path / f"trace {arguments}"
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        check(*arguments)
        processes = [line for line in trace.read_text().splitlines() if '"event":"start"' in line]
        assert sum("check-attr" in line for line in processes) == 1


def test_attributes_of_other_files_do_not_matter(scratch: Scratch, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    scratch.git("config", "filter.x.clean", f"touch {ran}; cat")
    scratch.git("config", "filter.x.smudge", f"touch {ran}; cat")
    scratch.write(
        {
            ".gitattributes": "* text=auto filter=x ident\n*.yaml !filter !ident\n*.avsc -filter -ident\n",
            "README.md": "readme",
        }
    )
    commit(scratch)
    ran.unlink()
    scratch.write({"README.md": "more", "topics/notes.txt": "x"})
    os.utime(scratch.path / "topics" / "orders.avsc")
    for arguments in ([], ["--staged"], ["--base", "main"]):
        check(*arguments)
    assert not ran.exists()


def test_no_filter_of_a_judged_file_is_run(scratch: Scratch, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    scratch.git("config", "filter.x.clean", f"touch {ran}; cat")
    scratch.git("config", "filter.x.process", f"touch {ran}")
    scratch.write({".gitattributes": "*.avsc filter=x\n"})
    os.utime(scratch.path / "topics" / "orders.avsc")
    for arguments in ([], ["--staged"], ["--base", "main"]):
        check(*arguments, code=(FINE, ERROR))
    assert not ran.exists()


@pytest.mark.usefixtures("scratch")
def test_attributes_of_the_user_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.write_text("*.avsc ident\n")
    settings = tmp_path / "settings"
    settings.write_text(f"[core]\n\tattributesFile = {own}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert "topics/orders.avsc:1:1: the attribute `ident` has" in check(code=ERROR).err


def test_in_a_folder_below_the_top_attributes_are_found(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.write({".gitattributes": "/common/*.avsc ident\n"})
    monkeypatch.chdir(scratch.path / "topics")
    assert "common/money.avsc:1:1: the attribute `ident` has" in check(code=ERROR).err


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
def test_line_ends_that_git_converts_in_a_descriptor_set_are_an_error(scratch: Scratch, line: str, said: str) -> None:
    scratch.write({"topics/clicks.yaml": CLICKS, "topics/clicks.binpb": descriptor_set("a\r\nb")})
    check()
    scratch.write({".gitattributes": f"# ours\n{line}\n"})
    for arguments in ([], ["--staged"], ["--base", "main"]):
        err = check(*arguments, code=ERROR).err
        assert f"topics/clicks.binpb:1:1: the attribute `{said}` has" in err
        assert "`topics/clicks.binpb -text` at the end of .gitattributes" in err
        # Git records this file unchanged, so that only the attribute is wrong.
        scratch.write({"topics/clicks.binpb": descriptor_set("ab")})
        commit(scratch) if arguments == ["--staged"] else scratch.git("add", "--all")


def test_a_descriptor_set_that_git_leaves_alone_is_fine(scratch: Scratch) -> None:
    scratch.write(
        {
            ".gitattributes": "* text=auto eol=lf\n*.avsc text\n",
            "topics/clicks.yaml": CLICKS,
            "topics/clicks.binpb": descriptor_set("a\r\nb"),
        }
    )
    commit(scratch)
    for attributes in ("* text=auto eol=lf\n*.avsc text\n", "* text\n*.binpb -text\n", "* text\n*.binpb binary\n"):
        scratch.write({".gitattributes": attributes})
        scratch.git("commit", "-q", "--allow-empty", "-m", "attributes", ".gitattributes")
        for arguments in ([], ["--staged"], ["--base", "main"]):
            check(*arguments)


def test_a_descriptor_set_that_git_finds_to_be_text_is_an_error_with_auto(scratch: Scratch) -> None:
    data = descriptor_set("a\r\nb", comment="plain words " * 1000)
    scratch.write({"topics/clicks.yaml": CLICKS, "topics/clicks.binpb": data})
    check()
    scratch.write({".gitattributes": "* text=auto\n"})
    scratch.git("add", ".gitattributes", "topics/clicks.binpb")
    # Git converts this file.
    assert int(scratch.git("cat-file", "-s", ":topics/clicks.binpb")) < len(data)
    assert "topics/clicks.binpb:1:1: the attribute `text=auto` has" in check(code=ERROR).err


def unlink(scratch: Scratch) -> None:
    (scratch.path / ".gitattributes").unlink()


def sparse(scratch: Scratch) -> None:
    scratch.git("sparse-checkout", "set", "--no-cone", "/*", "!/.gitattributes")
    assert not (scratch.path / ".gitattributes").exists()


@pytest.mark.parametrize("remove", [unlink, sparse])
def test_attributes_that_only_the_index_has_count(scratch: Scratch, remove: Callable[[Scratch], None]) -> None:
    scratch.write({".gitattributes": "\nrefunds.avsc working-tree-encoding=UTF-16\n"})
    scratch.git("add", ".gitattributes")
    scratch.git("commit", "-q", "-m", "attributes")
    remove(scratch)
    assert "topics/refunds.avsc:1:1: the attribute `working-tree-encoding=UTF-16`" in check(code=ERROR).err


@pytest.mark.parametrize("folder", ["", "topics/"])
def test_with_base_the_attributes_of_the_commit_count(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    path = f"{folder}.gitattributes"
    scratch.write({path: "refunds.avsc ident\n"})
    commit(scratch)
    scratch.git("config", "core.splitIndex", "true")
    scratch.git("rm", "-q", "--cached", path)
    (scratch.path / path).unlink()
    before = scratch.git("ls-files", "--stage"), sorted((scratch.path / ".git").glob("*index*"))
    monkeypatch.chdir(scratch.path / "topics")
    assert "topics/refunds.avsc:1:1: the attribute `ident` has" in check("--base", "main", code=ERROR).err
    assert (scratch.git("ls-files", "--stage"), sorted((scratch.path / ".git").glob("*index*"))) == before
    check()
    # With --base the attributes of the index do not count.
    scratch.git("commit", "-q", "-m", "none")
    scratch.write({path: "refunds.avsc ident\n"})
    scratch.git("add", path)
    check("--base", "main")
