"""Compiling `.proto` texts: protoc's messages at their places, in bounded time, without writing the user's files."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.schema import SchemaInfo
from schemactl.formats import protobuf
from schemactl.formats.protobuf import protoc_process
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.protoc import MAX_SOURCE_BYTES, Proto, compile_all, compile_proto

pytestmark = pytest.mark.slow

HEAD = 'syntax = "proto3";\n'


def read_problem(text: str, message: str = "M") -> str:
    with pytest.raises(InvalidSchema) as raised:
        compile_proto(Proto.of_text(text, message))
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "message M { Foo x = 1; }", 'schema.proto:2:13: "Foo" is not defined.'),
        (HEAD + "message M {\n\tint32 x = 1\n}", 'schema.proto:4:1: Expected ";".'),
        (HEAD + "message M { string é = 1; }", "schema.proto:2:20: Interpreting non ascii codepoint 195."),
        (HEAD + "message M {} /* é */ bad", "schema.proto:2:22: Expected top-level statement"),
        (HEAD + "\timport 'é.proto';", 'schema.proto:2:2: Import "'),
        ("message M { required int32 x = 0; }", "schema.proto:1:32: Field numbers must be positive integers."),
    ],
)
def test_message_of_protoc_is_reported_at_its_place(text: str, words: str) -> None:
    assert read_problem(text).startswith(words)


def test_an_import_that_is_not_there_names_the_way_out() -> None:
    assert read_problem(HEAD + 'import "x/y.proto";') == (
        'schema.proto:2:1: Import "x/y.proto" was not found or had errors.\n  Fix: list the file under `references`'
    )


def test_error_in_an_import_is_reported_in_the_imported_file() -> None:
    sources = {"a.proto": b'syntax = "proto3"; import "b/c.proto"; message M {}', "b/c.proto": b"\n oops"}
    with pytest.raises(InvalidSchema) as raised:
        compile_proto(Proto("M", "a.proto", sources, {"b/c.proto": "protos/b/c.proto"}))
    assert str(raised.value).startswith("protos/b/c.proto:2:2: ")


def test_missing_message_is_reported_with_the_declared_ones() -> None:
    sources = {"a.proto": b'import "b.proto"; message A { message B {} }', "b.proto": b"message M {}"}
    with pytest.raises(InvalidSchema) as raised:
        compile_proto(Proto("M", "a.proto", sources))
    assert str(raised.value) == "no message is called 'M'\n  Fix: write one of A, A.B"


def test_warnings_do_not_matter() -> None:
    sources = {"a.proto": b'import "b.proto"; message M {}', "b.proto": b""}
    assert isinstance(compile_proto(Proto("M", "a.proto", sources)), SchemaInfo)


@pytest.mark.parametrize(
    "name", ["-I/", "--version", "@args", "/etc/x.proto", "../x.proto", "a\\b.proto", "a\nb.proto", "\udc80.proto", ""]
)
def test_name_with_another_meaning_to_protoc_is_rejected(name: str) -> None:
    with pytest.raises(InvalidSchema, match="is not a file name that protoc can import"):
        compile_proto(Proto("M", name, {name: b"message M {}"}))


def test_a_file_cannot_be_a_folder_as_well() -> None:
    with pytest.raises(InvalidSchema, match="is not a file name that can be compiled here"):
        compile_proto(Proto("M", "a.proto", {"a.proto": b"message M {}", "a.proto/b.proto": b""}))


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "message M {" * 50_000,
        HEAD + "message M {" * 10_000 + "}" * 10_000,
        HEAD + "message M { int32 x = 1 [(a) = {" + "b { " * 50_000,
        "option x = " + "{ a: " * 100_000,
        HEAD + "/*" * 100_000,
        "\0" * 1000,
    ],
    ids=["open", "deep", "option", "aggregate", "comment", "nul"],
)
def test_hostile_texts_end_in_one_error(text: str) -> None:
    assert read_problem(text).count("\n") <= 1


def test_more_than_a_broker_stores_is_not_compiled() -> None:
    text = HEAD + "//" + "x" * MAX_SOURCE_BYTES + "\nmessage M {}"
    assert "more than a broker stores" in read_problem(text)


def test_large_definitions_are_compiled_and_placed() -> None:
    values = "\n".join(f"V{number} = {number};" for number in range(20_000))
    info = compile_proto(Proto.of_text(f"{HEAD}message M {{ E e = 1; }} enum E {{ {values} }}", "M"))
    assert len(parse(info.schema).image.declared.enums["E"].numbers()) == 20_000
    assert str(info.locate("/enums/E/values/V19999/number")) == "schema.proto:20001:10"


def test_one_bad_definition_does_not_hold_up_the_others() -> None:
    good, bad = Proto.of_text(HEAD + "message Good {}", "Good"), Proto.of_text(HEAD + "oops", "Bad")
    named = Proto("M", "-x", {"-x": b""})
    answers = compile_all([good, bad, named, good])
    assert [type(answer) for answer in answers] == [SchemaInfo, InvalidSchema, InvalidSchema, SchemaInfo]
    assert answers[0] == answers[3]


def replace_protoc(monkeypatch: pytest.MonkeyPatch, site: Path, body: str) -> None:
    """Install another protoc in the folder `site`: for each definition it executes `body`, and then returns a message `M`."""
    package = site / "grpc_tools"
    package.mkdir()
    (package / "__init__.py").touch()
    result = FileDescriptorSet(
        file=[FileDescriptorProto(name="schema.proto", message_type=[DescriptorProto(name="M")])]
    ).SerializeToString()
    (package / "_protoc_compiler.py").write_text(
        f"""
import os, time

def run_main(arguments):
    _, folder, _, out, *_, entry = (argument.decode() for argument in arguments)
    text = open(f"{{folder.removeprefix('-I')}}/{{entry}}", "rb").read()
    {body}
    with open(out.removeprefix("--descriptor_set_out="), "wb") as file:
        file.write({result!r})
    return 0
"""
    )
    monkeypatch.delitem(sys.modules, "grpc_tools", raising=False)
    monkeypatch.syspath_prepend(str(site))


def compile_texts(*texts: str) -> list[SchemaInfo | InvalidSchema]:
    return compile_all([Proto.of_text(text, "M") for text in texts])


def test_definition_that_kills_the_compiler_is_skipped_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_protoc(monkeypatch, tmp_path, 'b"DIE" in text and os._exit(139)')
    results = compile_texts("// 1", "// DIE 2", "// 3", "// DIE 4")
    assert [isinstance(result, SchemaInfo) for result in results] == [True, False, True, False]
    assert "crashed" in str(results[1])


def test_definition_that_takes_too_long_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replace_protoc(monkeypatch, tmp_path, "time.sleep(60)")
    # The time is up at once.
    monkeypatch.setattr("select.select", lambda *_: ([], [], []))
    (result,) = compile_texts("// slow")
    assert "protoc timed out" in str(result)


def test_a_slow_machine_is_not_taken_for_a_bad_definition(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replace_protoc(monkeypatch, tmp_path, "time.sleep(0.1)")
    # Four definitions take more than the time of a run.
    times_s = itertools.count(0.0, 8.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(times_s))
    results = compile_texts(*(f"// slow machine {number}" for number in range(12)))
    assert [type(result) for result in results] == [SchemaInfo] * 12


def test_definitions_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = Proto.of_text(HEAD + "message Once { int32 only = 1; }", "Once")
    first = compile_proto(proto)
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    assert compile_proto(Proto(proto.message, proto.entry, dict(proto.sources))) == first


def compile_new(name: str) -> None:
    """Compile a text that was not compiled before."""
    compile_proto(Proto.of_text(f"{HEAD}message {name} {{ int32 x{time.time_ns()} = 1; }}", name))


def list_idle_processes() -> list[object]:
    return [*protoc_process._idle.values()]


def test_later_runs_share_a_process() -> None:
    protoc_process.close_idle()
    compile_new("First")
    processes = list_idle_processes()
    compile_new("Second")
    assert len(processes) == 1
    assert list_idle_processes() == processes
    protoc_process.close_idle()
    assert list_idle_processes() == []


def test_an_interrupted_run_leaves_no_process_with_a_late_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    protoc_process.close_idle()
    with monkeypatch.context() as patch:
        patch.setattr("select.select", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            compile_new("Interrupted")
    assert list_idle_processes() == []
    compile_new("Later")


def test_runs_at_the_same_time_leave_one_process() -> None:
    protoc_process.close_idle()
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(compile_new, [f"Parallel{number}" for number in range(8)]))
    assert len(list_idle_processes()) == 1


def test_roots_of_one_file_are_rendered_with_their_names() -> None:
    texts = {"a.proto": f"{HEAD}package p; message A {{}} message B {{ A a = 1; }}".encode()}
    together = compile_all([Proto(f"p.{name}", "a.proto", texts) for name in "ABA"])
    alone = [compile_proto(Proto(f"p.{name}", "a.proto", texts)) for name in "ABA"]
    assert together == alone
    assert [parse(info.schema).root.full_name for info in alone] == ["p.A", "p.B", "p.A"]


def test_working_directory_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compile_all([Proto.of_text(f"{HEAD}message M {{ int32 x{time.time_ns()} = 1; }}", "M")])
    assert list(tmp_path.iterdir()) == []


def test_the_package_is_imported_without_protobuf() -> None:
    script = (
        "import sys\n"
        "import schemactl.formats.protobuf\n"
        "sys.exit([name for name in sys.modules if name.startswith(('google', 'grpc_tools'))] or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_missing_protobuf_is_an_error_with_the_command_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("schemactl.formats.protobuf.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(SchemactlError, match=re.escape('pip install "pulsar-schemactl[proto]"')):
        protobuf.load("protoc")


def test_missing_protoc_is_an_error_with_the_command_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    with pytest.raises(SchemactlError, match=re.escape('pip install "pulsar-schemactl[proto]"')):
        compile_proto(Proto.of_text(HEAD + "message NotCompiledYet {}", "NotCompiledYet"))
