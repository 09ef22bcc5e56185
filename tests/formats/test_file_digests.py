"""The identities of `.proto` definitions whose files change, against the identities of separately compiled definitions."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from corpora import read_rows
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.core.errors import InvalidSchema
from schemactl.formats.protobuf.file_digests import FileDigests
from schemactl.formats.protobuf.protoc import Proto, compile_all, compile_files, identify

pytestmark = pytest.mark.slow

HEAD = b'syntax = "proto3";\n'


@pytest.fixture
def open_digests() -> Iterator[FileDigests]:
    with closing(FileDigests()) as digests:
        yield digests


def identify_alone(*protos: Proto) -> list[Hashable | None]:
    """Return the identity of each definition that protoc compiles without the others."""
    return [None if isinstance(answer, InvalidSchema) else identify(answer) for answer in compile_all(protos)]


def compare(digests: FileDigests, *protos: Proto) -> list[Hashable | None]:
    """Return the identities, which must equal the identities of separately compiled definitions."""
    digests.compile(protos)
    identities = [digests.identify(proto) for proto in protos]
    assert identities == identify_alone(*protos)
    return identities


def make_proto(entry: str, message: str = "A", **texts: str) -> Proto:
    """Return a definition whose files have the names `entry`, `b.proto`, ... and begin with `syntax`."""
    sources = {f"{name}.proto": HEAD + text.encode() for name, text in texts.items()}
    return Proto(message, f"{entry}.proto", sources, {f"{entry}.proto": f"{entry}.proto"})


IMPORTS_B = 'import "b.proto"; message A { B b = 1; }'
MESSAGE_B = "message B { int32 x = 1; }"

# Each row is a history: the files of one definition in several states, in which some do not compile.
HISTORIES: dict[str, list[dict[str, str]]] = {
    "a file changes": [{"a": "message A { int32 x = 1; }"}, {"a": "message A { int64 x = 1; }"}],
    "a comment changes": [{"a": "message A {}"}, {"a": "message A {} // x"}, {"a": "message A {}"}],
    "an import changes": [{"a": IMPORTS_B, "b": MESSAGE_B}, {"a": IMPORTS_B, "b": "message B { int64 x = 1; }"}],
    "a message of an import becomes an enum": [
        {"a": IMPORTS_B, "b": MESSAGE_B},
        {"a": IMPORTS_B, "b": "enum B { X = 0; }"},
    ],
    "an import of an import changes": [
        {"a": IMPORTS_B, "b": 'import "c.proto"; message B { C c = 1; }', "c": text}
        for text in ("message C {}", "message C { string x = 1; }", "enum C { X = 0; }")
    ],
    "a public import moves": [
        {"a": IMPORTS_B, "b": 'import public "c.proto";', "c": MESSAGE_B},
        {"a": IMPORTS_B, "b": MESSAGE_B, "c": "message C {}"},
        {"a": IMPORTS_B, "b": MESSAGE_B},
    ],
    "an import is missing for a time": [
        {"a": IMPORTS_B, "b": MESSAGE_B},
        {"a": IMPORTS_B},
        {"a": IMPORTS_B, "b": MESSAGE_B},
    ],
    "an error comes and goes": [
        {"a": IMPORTS_B, "b": MESSAGE_B},
        {"a": IMPORTS_B, "b": "message B { int32 x = 0; }"},
        {"a": IMPORTS_B + "message A2 {}", "b": "message B { int32 x = 0; }"},
        {"a": IMPORTS_B, "b": MESSAGE_B},
    ],
    "files import each other": [
        {"a": IMPORTS_B, "b": MESSAGE_B},
        {"a": IMPORTS_B, "b": 'import "a.proto"; message B { A a = 1; }'},
        {"a": IMPORTS_B, "b": MESSAGE_B},
    ],
    "a file imports itself": [{"a": 'import "a.proto"; message A {}'}, {"a": "message A {}"}],
    "an import in a comment is broken": [
        {"a": '/*\nimport "b.proto";\n*/\nmessage A {}', "b": "message"},
        {"a": '/*\nimport "b.proto";\n*/\nmessage A { int32 x = 1; }', "b": "message"},
    ],
    "the message is missing for a time": [{"a": "message A {}"}, {"a": "message B {}"}, {"a": "message A {}"}],
    "the message is in an import": [{"a": 'import "b.proto";', "b": "message A {}"}],
    "an option is defined by an import": [
        {
            "a": 'import "b.proto"; message A { int32 x = 1 [(note) = "n"]; }',
            "b": f'import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions {{ {kind} note = 50001; }}',
        }
        for kind in ("string", "bytes", "int32")
    ],
    "a name resolves to another package": [
        {"a": 'package p.q; import "b.proto"; message A { B b = 1; }', "b": f"package {package}; message B {{}}"}
        for package in ("p", "p.q", "p.q.r")
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_definition_that_changes_has_the_identities_of_its_states(
    open_digests: FileDigests, history: list[dict[str, str]]
) -> None:
    message = "p.q.A" if "package" in history[0]["a"] else "A"
    for texts in history:
        compare(open_digests, make_proto("a", message, **texts))


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_identity_does_not_depend_on_other_definitions(
    open_digests: FileDigests, history: list[dict[str, str]]
) -> None:
    message = "p.q.A" if "package" in history[0]["a"] else "A"
    for number, texts in enumerate(history):
        compare(
            open_digests,
            make_proto("z", "Z", z="message Z { int32 x = 1; }"),
            make_proto("a", message, **texts),
            # Another file b.proto, with which a definition whose import is missing would compile.
            make_proto("y", "Y", y='import "b.proto"; message Y { B b = 1; }', b="message B { bytes other = 7; }"),
            make_proto("x", "X", x=f"message X {{ int32 x{number} = 1; }}"),
            make_proto("broken", "A", broken=f"message A {{ Missing{number} x = 1; }}"),
        )


FAULTY = {
    "no name of a file": Proto("A", "-a.proto", {"-a.proto": HEAD + b"message A {}"}),
    "a file below a file": Proto("A", "a.proto", {"a.proto": HEAD + b"message A {}", "a.proto/b.proto": b""}),
    "too large": Proto("A", "a.proto", {"a.proto": HEAD + b"//" + b"x" * 5 * 2**20 + b"\nmessage A {}"}),
}


@pytest.mark.parametrize("faulty", FAULTY.values(), ids=FAULTY)
def test_definition_that_protoc_cannot_get_has_no_identity(open_digests: FileDigests, faulty: Proto) -> None:
    good = make_proto("good", "A", good="message A {}")
    assert [identity is None for identity in compare(open_digests, good, faulty)] == [False, True]
    assert compare(open_digests, good) != [None]


def test_a_file_in_place_of_a_folder_is_compiled(open_digests: FileDigests) -> None:
    nested = Proto("A", "a/b.proto", {"a/b.proto": HEAD + b"message A {}"})
    flat = Proto("A", "a", {"a": HEAD + b"message A { int32 x = 1; }"})
    for proto in (nested, flat, nested):
        compare(open_digests, proto)


def test_import_with_two_texts_is_compiled_separately(open_digests: FileDigests) -> None:
    proto = make_proto("a", a='import "google/" "protobuf/any.proto"; message A { google.protobuf.Any x = 1; }')
    open_digests.compile([proto])
    assert open_digests.identify(proto) is None
    assert identify_alone(proto) != [None]


def test_single_files_of_the_corpus_keep_their_identities(open_digests: FileDigests) -> None:
    pairs = read_rows("proto_public")
    for row in pairs:
        compare(open_digests, *(Proto.of_text(row[side], row[f"root_{side}"]) for side in ("before", "after")))


def test_definitions_of_the_corpus_keep_their_identities(open_digests: FileDigests) -> None:
    for row in read_rows("proto_buf"):
        protos = []
        for side in ("old", "new"):
            sources = {name: text.encode() for name, text in row[side].items()}
            entry = "".join(f'import "{name}";' for name in sources) + "message A {}"
            protos.append(Proto("A", "everything.proto", {**sources, "everything.proto": entry.encode()}))
        assert None not in compare(open_digests, *protos)


def record_runs(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Return a list to which each run of protoc adds its arguments."""
    runs: list[set[str]] = []

    def compile_and_record(folder: Path, arguments: Sequence[str]) -> FileDescriptorSet | None:
        runs.append({*arguments})
        return compile_files(folder, arguments)

    monkeypatch.setattr("schemactl.formats.protobuf.file_digests.compile_files", compile_and_record)
    return runs


def test_only_changed_files_and_their_users_are_compiled(
    open_digests: FileDigests, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = record_runs(monkeypatch)
    texts = {"a": IMPORTS_B, "b": MESSAGE_B, "c": 'import "b.proto"; message C { B b = 1; }'}
    changes: list[tuple[Mapping[str, str], set[str]]] = [
        ({}, {"a.proto", "b.proto", "c.proto"}),
        ({}, set()),
        ({"a": IMPORTS_B + " // x"}, {"a.proto"}),
        ({"c": 'import "b.proto"; message C { B b = 2; }'}, {"c.proto"}),
        ({"b": "message B {}"}, {"a.proto", "b.proto", "c.proto"}),
    ]
    for change, expected in changes:
        texts |= change
        runs.clear()
        definitions = [make_proto(entry, entry.upper(), **{entry: texts[entry], "b": texts["b"]}) for entry in "ac"]
        compare(open_digests, *definitions, make_proto("a", "B", a=texts["a"], b=texts["b"]))
        assert runs == ([expected] if expected else [])


def test_random_histories_have_the_identities_of_each_state(open_digests: FileDigests) -> None:
    for seed in range(8):
        rng = random.Random(seed)  # noqa: S311  no secret
        names = [f"f{number}" for number in range(6)]
        texts: dict[str, bytes] = {}
        for _ in range(12):
            for name in rng.sample(names, rng.choice((1, 1, 2))):
                texts[name] = random_text(rng, name, names)
            protos = []
            for name in rng.sample(sorted(texts), min(4, len(texts))):
                # A file of a definition can be missing, so that its import is not found.
                others = {f"{other}.proto": text for other, text in texts.items() if rng.random() < 0.95}
                protos.append(Proto(f"M{name}", f"{name}.proto", others | {f"{name}.proto": texts[name]}))
            compare(open_digests, *protos)


def random_text(rng: random.Random, name: str, names: list[str]) -> bytes:
    """Return a file that mostly imports later ones, so that few files import each other."""
    imported = [other for other in names if other > name and rng.random() < 0.4]
    lines = [HEAD.decode(), *(f'import "{other}.proto";' for other in imported)]
    fields = [f"M{other} x{number} = {number + 1};" for number, other in enumerate(imported)]
    fields.append(f"{rng.choice(('int32', 'bytes', 'Unknown' if rng.random() < 0.2 else 'bool'))} last = 99;")
    return "\n".join([*lines, f"message M{name} {{ {' '.join(fields)} }}"]).encode()


def test_few_revisions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = record_runs(monkeypatch)
    protos = [make_proto("a", a=f"message A {{ int32 x = {number}; }}") for number in range(1, 11)]
    with closing(FileDigests(max_files=3)) as digests:
        for proto in protos:
            compare(digests, proto)
        for proto, run_count in ((protos[-1], 0), (protos[-3], 0), (protos[-4], 1), (protos[-4], 0)):
            runs.clear()
            compare(digests, proto)
            assert len(runs) == run_count
