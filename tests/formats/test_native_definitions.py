"""PROTOBUF_NATIVE definitions that no compiler writes: the answers of brokers, and the use of definitions that brokers store.

    PYTHONPATH=tests:tests/formats python tests/formats/test_native_definitions.py

records tests/corpus/native_public.jsonl.gz again, from the jars of both releases.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import brokers
import pytest
from corpora import CORPUS, read_rows
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.text_format import Parse
from odd_descriptors import make_definitions
from protobuf_corpus import compile_definition

from schemactl.broker.checkers import NativeChecker
from schemactl.broker.upload import VersionList
from schemactl.broker.validation import SchemaData, get_root_name, validate
from schemactl.codec import Codec, Version
from schemactl.codegen.codecs import to_codec_schema
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import SPECS
from schemactl.formats.avro.schema import JavaException
from schemactl.formats.protobuf.counterexample import json_text, make_message_class, parse_message
from schemactl.formats.protobuf.definition import adapt_for_python, from_descriptor_set, make_descriptor_set, parse
from schemactl.formats.protobuf.rendering import render_set

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SCHEMACTL_NATIVE_SEEDS", "300"))
"""How many random definitions are asked from the jars of a broker."""

PROGRAM = Path(__file__).with_name("NativeSchemas.java")
RECORDED_DEFINITIONS = 3_200
RECORDED_PAIRS = 800

_KNOWN_CAUSES = ("com.google.protobuf.Descriptors$", "java.lang.NullPointerException", "java.lang.ArrayIndex")
"""The causes whose messages are predicted, not only their outcome."""


class Result(NamedTuple):
    """The result of one call: "ok" and a name, or the class of an exception and its message."""

    outcome: str
    text: str

    @property
    def comparable(self) -> Result:
        """This result, without messages of Jackson and of protobuf's parser, which are not predicted."""
        is_predicted = self.outcome != "SchemaSerializationException" or any(
            cause in self.text for cause in _KNOWN_CAUSES
        )
        return self if is_predicted else Result(self.outcome, "")


Answer = tuple[Result, ...]
"""The results of the validator and of the deserialization, or the result of the compatibility check."""


class Pair(NamedTuple):
    """A stored definition, a new one and a strategy, for the compatibility check."""

    old: bytes
    new: bytes
    strategy: CompatibilityStrategy


def ask_java(questions: Sequence[bytes | Pair], jars: Path) -> list[Answer | None]:
    """Return the answers of the classes in `jars`; None where an answer depends on the addresses of objects."""
    lines = (
        " ".join([_encode(question.old), _encode(question.new), question.strategy.name])
        if isinstance(question, Pair)
        else _encode(question)
        for question in questions
    )
    process = subprocess.run(
        ["nice", "java", *brokers.SHORT_LIVED, "-cp", f"{jars}/*", str(PROGRAM)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [_read_answer(line) for line in process.stdout.splitlines()]
    assert len(answers) == len(questions), process.stderr
    return answers


def _encode(schema: bytes) -> str:
    return base64.b64encode(schema).decode()


def _read_answer(line: str) -> Answer | None:
    words = line.split(" ")
    if "varies" in words:
        return None
    texts = (base64.b64decode(word).decode(errors="replace") for word in words[1::2])
    return tuple(map(Result, words[::2], texts))


def predict(question: bytes | Pair, release: Release) -> Answer:
    """Return our prediction of the answer."""
    if isinstance(question, Pair):
        old, new = _read(question.old), _read(question.new)
        return (_call(lambda: NativeChecker().check([old], new, question.strategy, listed=False)),)
    data = _read(question)
    return _call(lambda: validate(data, release)), _call(lambda: get_root_name(data))


def _read(schema: bytes) -> SchemaData:
    return SchemaData(SchemaType.PROTOBUF_NATIVE, schema, {})


def _call(action: Any) -> Result:
    try:
        return Result("ok", action() or "")
    except JavaException as thrown:
        # Java's message of an exception of the JVM itself is null.
        return Result(thrown.exception, thrown.message or "null")


def find_differences(
    questions: Sequence[bytes | Pair], answers: Iterable[Answer | None], release: Release
) -> list[str]:
    """Return the questions with another answer than predicted, as text; the expected ones come first."""
    differences = []
    for question, answer in zip(questions, answers, strict=True):
        if answer is None:
            continue
        prediction = predict(question, release)
        if [result.comparable for result in prediction] != [result.comparable for result in answer]:
            differences.append(f"{answer} is predicted as {prediction} for {question!r}")
    return differences


def make_pairs(definitions: Sequence[bytes], seed: int, count: int) -> list[Pair]:
    """Return random pairs of the definitions, with all strategies; most have definitions that brokers store."""
    pick = random.Random(seed)  # noqa: S311  reproducible, not secret
    strategies = list(CompatibilityStrategy)
    stored = [definition for definition in definitions if predict(definition, Release.R4_0)[0].outcome == "ok"]

    def pick_definition() -> bytes:
        return pick.choice(stored if pick.random() < 0.9 else definitions)

    return [Pair(pick_definition(), pick_definition(), pick.choice(strategies)) for _ in range(count)]


def read_corpus() -> tuple[list[bytes | Pair], list[Answer | None]]:
    """Return the recorded questions, and the answers of 4.0.7, which 4.2.4 also gives."""
    questions: list[bytes | Pair] = []
    answers: list[Answer | None] = []
    definitions: list[bytes] = []
    for row in read_rows("native_public"):
        if "pair" in row:
            old, new, strategy = row["pair"]
            questions.append(Pair(definitions[old], definitions[new], CompatibilityStrategy[strategy]))
        else:
            definitions.append(_join_definition(row))
            questions.append(definitions[-1])
        answers.append(tuple(Result(*result) for result in row["answer"]) if row["answer"] else None)
    return questions, answers


def _split_definition(schema: bytes) -> dict[str, Any]:
    """Return a definition as a row has it: the bytes of the set compress better than their base64."""
    try:
        values = json.loads(schema)
        encoded = values.pop("fileDescriptorSet")
        row = {"set": base64.b64decode(encoded, validate=True).decode("latin-1"), "values": values}
        if _join_definition(row) == schema:
            return row
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return {"schema": schema.decode("latin-1")}


def _join_definition(row: dict[str, Any]) -> bytes:
    if "schema" in row:
        schema: bytes = row["schema"].encode("latin-1")
        return schema
    return json.dumps({"fileDescriptorSet": _encode(row["set"].encode("latin-1")), **row["values"]}).encode()


def record() -> None:
    """Record the corpus from the jars of both releases, which must agree."""
    brokers.markers = frozenset({"broker"})
    definitions = list(make_definitions(range(RECORDED_DEFINITIONS * 2)))[:RECORDED_DEFINITIONS]
    pairs = make_pairs(definitions, 1, RECORDED_PAIRS)
    questions: list[bytes | Pair] = [*definitions, *pairs]
    old_answers, answers = (ask_java(questions, brokers.find_jars(version)) for version in brokers.RELEASES.values())
    assert old_answers == answers
    indices = {definition: index for index, definition in enumerate(definitions)}
    lines = []
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(question, Pair):
            row: dict[str, Any] = {"pair": [indices[question.old], indices[question.new], question.strategy.name]}
        else:
            row = _split_definition(question)
        lines.append(json.dumps({**row, "answer": answer}, separators=(",", ":")))
    with gzip.GzipFile(CORPUS / "native_public.jsonl.gz", "wb", mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


FILES = """
file {
  name: "a.proto" package: "p" dependency: "b.proto"
  message_type {
    name: "M"
    field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
    field { name: "text" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "raw" number: 3 label: LABEL_OPTIONAL type: TYPE_BYTES }
    field { name: "kind" number: 4 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".p.M.Kind" }
    field { name: "list" number: 5 label: LABEL_REPEATED type: TYPE_INT32 }
    field { name: "n" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.M.N" }
    field { name: "left" number: 7 label: LABEL_OPTIONAL type: TYPE_INT32 oneof_index: 0 }
    nested_type { name: "N" field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 } }
    enum_type { name: "Kind" value { name: "A" number: 0 } value { name: "B" number: 1 } }
    extension_range { start: 100 end: 200 }
    oneof_decl { name: "side" }
  }
  service { name: "S" method { name: "Do" input_type: ".p.M" output_type: ".q.B" } }
  extension { name: "x" number: 100 label: LABEL_OPTIONAL type: TYPE_INT32 extendee: ".p.M" }
}
file { name: "b.proto" package: "q" message_type { name: "B" } }
"""

Change = Callable[[Any], object]
"""A change of the files."""


def make_native(change: Change | None = None, **values: Any) -> bytes:
    """Return the definition of p.M with changed files, and with changed values in its JSON object."""
    files: Any = Parse(FILES, FileDescriptorSet())
    if change is not None:
        change(files)
    encoded = base64.b64encode(files.SerializePartialToString()).decode()
    names = {"rootMessageTypeName": "p.M", "rootFileDescriptorName": "a.proto"}
    return json.dumps({"fileDescriptorSet": encoded, **names, **values}).encode()


def change_field(index: int, **values: Any) -> Change:
    """Return a change of a field of p.M; None clears a value."""

    def change(files: Any) -> None:
        set_values(files.file[0].message_type[0].field[index], values)

    return change


def change_message(**values: Any) -> Change:
    return lambda files: set_values(files.file[0].message_type[0], values)


def change_file(**values: Any) -> Change:
    return lambda files: set_values(files.file[0], values)


def change_extension(**values: Any) -> Change:
    return lambda files: set_values(files.file[0].extension[0], values)


def set_values(proto: Any, values: dict[str, Any]) -> Any:
    """Set the values of `proto`, and return it; None clears a value, a list replaces the items."""
    for name, value in values.items():
        if value is None:
            proto.ClearField(name)
        elif isinstance(value, list):
            items = getattr(proto, name)
            del items[:]
            for item in value:
                if isinstance(item, dict):
                    items.add(**item)
                else:
                    items.append(item)
        else:
            setattr(proto, name, value)
    return proto


ID, TEXT, RAW, KIND, LIST, N, LEFT = range(7)

REJECTED: list[tuple[str, Change, str]] = [
    # The file: DescriptorPool, FileDescriptor
    ("public import", change_file(public_dependency=[1]), "a.proto: Invalid public dependency index."),
    ("missing name", change_field(ID, name=None), "p.M.: Missing name."),
    ("letters", change_field(ID, name="größe"), 'p.M.größe: "größe" is not a valid identifier.'),
    ("digit first", change_field(ID, name="1a"), 'p.M.1a: "1a" is not a valid identifier.'),
    ("same name", change_field(ID, name="text"), 'p.M.text: "text" is already defined in "p.M".'),
    ("same name, no package", lambda files: files.MergeFrom(Parse('file { name: "a.proto" message_type { name: "M" } message_type { name: "M" } }', FileDescriptorSet())), 'M: "M" is already defined.'),
    ("package of an import", lambda files: (set_values(files.file[1], {"package": "p.M"}), set_values(files.file[0], {"service": []})), 'p.M: "p.M" is already defined in file "b.proto".'),
    # Messages
    ("synthetic oneof first", change_message(oneof_decl=[{"name": "side"}, {"name": "other"}], field=[
        {"name": "a", "number": 1, "type": 5, "oneof_index": 0, "proto3_optional": True}, {"name": "b", "number": 2, "type": 5, "oneof_index": 1}
    ]), "p.M: Synthetic oneofs must come last."),
    ("number used twice", change_field(TEXT, number=1), 'p.M.text: Field number 1 has already been used in "p.M" by field "id".'),
    # Fields
    ("number 0", change_field(ID, number=0), "p.M.id: Field numbers must be positive integers."),
    ("extendee", change_field(ID, extendee=".p.M"), "p.M.id: FieldDescriptorProto.extendee set for non-extension field."),
    ("oneof index", change_field(LEFT, oneof_index=1), "p.M.left: FieldDescriptorProto.oneof_index is out of range for type M"),
    ("no type", change_field(ID, type=None), 'Cannot invoke "com.google.protobuf.Descriptors$FieldDescriptor$Type.getJavaType()" because "this.type" is null'),
    ("undefined type", change_field(N, type_name="Gone"), 'p.M.n: "Gone" is not defined.'),
    ("innermost scope", change_field(N, type_name="N.Gone"), 'p.M.n: "N.Gone" is not defined.'),
    ("not a type", change_field(N, type_name="S", type=None), 'p.M.n: "S" is not a type.'),
    ("not a message", change_field(N, type_name=".p.M.Kind"), 'p.M.n: ".p.M.Kind" is not a message type.'),
    ("not an enum", change_field(KIND, type_name=".p.M.N"), 'p.M.kind: ".p.M.N" is not an enum type.'),
    ("type name of a number", change_field(ID, type_name=".p.M.N"), "p.M.id: Field with primitive type has type_name."),
    ("no type name", change_field(N, type_name=None), "p.M.n: Field with message or enum type missing type_name."),
    ("packed text", lambda files: set_values(files.file[0].message_type[0].field[TEXT].options, {"packed": True}), "p.M.text: [packed = true] can only be specified for repeated primitive fields."),
    # Defaults
    ("default of a message", change_field(N, default_value=""), "p.M.n: Messages can't have default values."),
    ("default of a list", change_field(LIST, default_value="1"), "p.M.list: Repeated fields cannot have default values."),
    ("default of a number", change_field(ID, default_value="2147483648"), 'p.M.id: Could not parse default value: "2147483648"'),
    ("default of bytes", change_field(RAW, default_value="\\8"), "p.M.raw: Couldn't parse default value: Invalid escape sequence: '\\8'"),
    ("default of an enum", change_field(KIND, default_value="C"), 'p.M.kind: Unknown enum default value: "C"'),
    # Enums
    ("no values", lambda files: set_values(files.file[0].message_type[0].enum_type[0], {"value": []}), "p.M.Kind: Enums must contain at least one value."),
    # Extensions
    ("no extendee", change_extension(extendee=None), "p.x: FieldDescriptorProto.extendee not set for extension field."),
    ("extension in a oneof", change_extension(oneof_index=0), "p.x: FieldDescriptorProto.oneof_index set for extension field."),
    ("extended enum", change_extension(extendee=".p.M.Kind"), 'p.x: ".p.M.Kind" is not a message type.'),
    ("extension number", change_extension(number=200), 'p.x: "p.M" does not declare 200 as an extension number.'),
    ("message set with fields", lambda files: set_values(files.file[0].message_type[0].options, {"message_set_wire_format": True}), "p.M.id: MessageSets cannot have fields, only extensions."),
    ("extension of a message set", lambda files: (set_values(files.file[0].message_type[0], {"field": []}), set_values(files.file[0].message_type[0].options, {"message_set_wire_format": True})), "p.x: Extensions of MessageSets must be optional messages."),
    # Services
    ("type of a method", lambda files: set_values(files.file[0].service[0].method[0], {"output_type": ".p.M.Kind"}), 'p.S.Do: ".p.M.Kind" is not a message type.'),
]  # fmt: skip
"""A row for each check of protobuf-java's Descriptors: the changed files, and the end of Java's message."""


REJECTED_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"fileDescriptorSet": None}, 'Cannot read the array length because "data" is null'),
    ({"rootMessageTypeName": None}, '"org.apache.commons.lang3.StringUtils.removeFirst(String, String)" is null'),
    (
        {"rootFileDescriptorName": None},
        'FileDescriptorProto.getDependencyList()" because "fileDescriptorProto" is null',
    ),
    (
        {"rootFileDescriptorName": "c.proto"},
        'FileDescriptorProto.getDependencyList()" because "fileDescriptorProto" is null',
    ),
    ({"rootMessageTypeName": "p.Gone"}, 'Descriptors$Descriptor.getFullName()" because "descriptor" is null'),
    (
        {"rootMessageTypeName": "p.Gone.N"},
        'Descriptors$Descriptor.findNestedTypeByName(String)" because "descriptor" is null',
    ),
    ({"rootMessageTypeName": "p.M.Kind"}, 'Descriptors$Descriptor.getFullName()" because "descriptor" is null'),
    ({"rootMessageTypeName": "q.B"}, 'Descriptors$Descriptor.getFullName()" because "descriptor" is null'),
    ({"rootMessageTypeName": ".."}, "Index 0 out of bounds for length 0"),
]


@pytest.mark.parametrize(("change", "message"), [pytest.param(*row[1:], id=row[0]) for row in REJECTED])
def test_descriptor_that_java_rejects_is_rejected_with_its_message(change: Change, message: str) -> None:
    schema = make_native(change)
    validation, deserialization = predict(schema, Release.R4_0)
    assert validation == ("InvalidSchemaDataException", "deserialize ProtobufNative Schema failed")
    assert deserialization.outcome == "SchemaSerializationException"
    assert deserialization.text.endswith(f": {message}")


@pytest.mark.parametrize(("values", "message"), REJECTED_VALUES)
def test_value_that_java_rejects_is_rejected_with_its_message(values: dict[str, Any], message: str) -> None:
    _, deserialization = predict(make_native(**values), Release.R4_0)
    assert deserialization.outcome == "SchemaSerializationException"
    assert deserialization.text.endswith(message)


ACCEPTED: list[tuple[str, Change]] = [
    ("JSON names that conflict", change_field(TEXT, name="i_d", json_name="id")),
    ("JSON name of another field", change_field(ID, json_name="text")),
    ("number above 2^29", change_field(ID, number=(1 << 31) - 1)),
    ("reserved number of protobuf", change_field(ID, number=19_500)),
    ("ranges that overlap", change_message(extension_range=[{"start": 100, "end": 200}, {"start": 150, "end": 120}])),
    ("reserved number in use", change_message(reserved_range=[{"start": 1, "end": 9}, {"start": 9, "end": 1}], reserved_name=["id", "id"])),
    ("unknown syntax", change_file(syntax="proto4")),
    ("edition without syntax", change_file(edition=1000)),
    ("unknown edition", change_file(syntax="editions", edition=99997)),
    ("required field in proto3", lambda files: (change_file(syntax="proto3")(files), change_field(ID, label=2)(files))),
    ("default in proto3", lambda files: (change_file(syntax="proto3")(files), change_field(ID, default_value="7")(files))),
    ("open enum without zero", lambda files: (change_file(syntax="proto3")(files), set_values(files.file[0].message_type[0].enum_type[0], {"value": [{"name": "A", "number": 5}]}))),
    ("value of two enums", lambda files: files.file[0].message_type[0].enum_type.add(name="Other").value.add(name="A", number=0)),
    ("oneof without fields", change_field(LEFT, oneof_index=None)),
    ("list in a oneof", change_field(LEFT, label=3)),
    ("optional without a oneof", change_field(ID, proto3_optional=True)),
    ("map entry without a value", lambda files: set_values(files.file[0].message_type[0].nested_type[0].options, {"map_entry": True})),
    ("map of messages as keys", lambda files: (set_values(files.file[0].message_type[0].nested_type[0].options, {"map_entry": True}), set_values(files.file[0].message_type[0].nested_type[0], {"field": [{"name": "key", "number": 1, "type": 12}, {"name": "value", "number": 2, "type": 5}]}), change_field(N, label=3)(files))),
    ("import twice", change_file(dependency=["b.proto", "b.proto"])),
    ("file name that is not ASCII", lambda files: (set_values(files.file[1], {"name": "ä.proto"}), change_file(dependency=["ä.proto"])(files))),
    ("imported type of the same name", lambda files: (set_values(files.file[1], {"package": "p"}), files.file[1].message_type[0].field.add(name="b", number=1, type=5), set_values(files.file[0], {"service": []}))),
    ("weak import", change_file(weak_dependency=[7])),
    ("octal default", change_field(ID, default_value="0017")),
    ("hexadecimal default", change_field(ID, default_value="-0x1F")),
    ("float default of Java", change_field(ID, type=2, default_value=" 0x1.8p1f ")),
    ("default that is not true", change_field(ID, type=8, default_value="yes")),
    ("bytes default", change_field(RAW, default_value="\\u0041\\x4 ä")),
    ("relative type name without a type", change_field(N, type_name="N", type=None)),
]  # fmt: skip
"""Changes that Java accepts, and that Python's protobuf or a compiler rejects."""


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in ACCEPTED])
def test_descriptor_that_java_accepts_can_be_read_and_decoded(change: Change) -> None:
    schema = make_native(change)
    info = SchemaInfo(SchemaType.PROTOBUF_NATIVE, schema)
    spec = SPECS[SchemaType.PROTOBUF_NATIVE]

    assert predict(schema, Release.R4_0) == (("ok", ""), ("ok", "p.M"))
    assert not list(spec.find_problems(info, Release.R4_0))
    assert spec.identity(info)
    assert not list(spec.resolve(reader=info, writer=info))
    assert dict(spec.list_parts(info))
    message_class = make_message_class(parse(schema))
    for wire in spec.make_messages(info):
        assert json_text(parse_message(wire.payload or b"", message_class))
    codec = Codec([Version(0, to_codec_schema(info))])
    assert codec.decode_one(b"\x08\x07")


def test_usual_descriptors_are_embedded_as_they_are_stored() -> None:
    schema = make_native()
    assert adapt_for_python(schema) == schema


def test_type_of_two_files_is_accepted_and_one_clear_error_where_python_needs_it() -> None:
    """Java looks a type up in the file itself first; Python's protobuf has one type for each name."""

    def declare_twice(files: Any) -> None:
        set_values(files.file[1], {"package": "p"})
        files.file[1].message_type.add(name="M")
        set_values(files.file[0], {"service": []})

    schema = make_native(declare_twice)
    assert predict(schema, Release.R4_0) == (("ok", ""), ("ok", "p.M"))
    assert len(parse(schema).root.fields()) == 7
    with pytest.raises(InvalidSchema, match=r"Python's protobuf cannot load a.proto: duplicate symbol 'p.M'"):
        adapt_for_python(schema)


@pytest.mark.parametrize("package", ["a-b", "a b", "1a", "a+", "a$", "größe", "a..b"])
def test_definition_with_a_package_that_is_not_a_name_is_rendered_so_that_brokers_accept_it(package: str) -> None:
    def change(files: Any) -> None:
        change_file(package=package, service=[], extension=[])(files)
        for field in files.file[0].message_type[0].field:
            field.type_name = field.type_name.replace(".p.", f".{package}.")
            if not field.type_name:
                field.ClearField("type_name")

    schema = make_native(change, rootMessageTypeName="M")
    assert predict(schema, Release.R4_0) == (("ok", ""), ("ok", f"{package}.M"))
    rendered = render_set(from_descriptor_set(*make_descriptor_set(schema)))
    assert predict(rendered, Release.R4_0) == (("ok", ""), ("ok", f"{package}.M"))


@pytest.mark.parametrize("package", ["(a+)+$", "a*a*a*a*b", "(a|a)*b"])
def test_search_for_a_package_ends(package: str) -> None:
    schema = make_native(change_file(package=package), rootMessageTypeName="a" * 5_000)
    assert predict(schema, Release.R4_0)[1].outcome == "SchemaSerializationException"


def test_entry_of_a_map_can_be_the_root() -> None:
    def change(files: Any) -> None:
        nested = files.file[0].message_type[0].nested_type[0]
        nested.options.map_entry = True
        set_values(
            nested, {"field": [{"name": "key", "number": 1, "type": 5}, {"name": "value", "number": 2, "type": 9}]}
        )
        change_field(N, label=3)(files)

    schema = make_native(change, rootMessageTypeName="p.M.N")
    assert predict(schema, Release.R4_0) == (("ok", ""), ("ok", "p.M.N"))
    assert predict(render_set(from_descriptor_set(*make_descriptor_set(schema))), Release.R4_0) == (
        ("ok", ""),
        ("ok", "p.M.N"),
    )


def test_names_that_differ_in_underscores_alone_are_stored_as_version_0_where_protoc_accepts_them() -> None:
    text = 'syntax = "{}"; package p; message M {{ optional int32 foo_bar = 1; optional int32 fooBar = 2; }}'
    info = compile_definition(text.format("proto2"), "p.M")
    answer = VersionList([], Release.R4_0).put(info, CompatibilityStrategy.FULL)
    assert (answer.outcome, answer.version) == (Outcome.OK, 0)
    assert not list(SPECS[info.type].find_problems(info, Release.R4_0))
    with pytest.raises(InvalidSchema):
        compile_definition(text.format("proto3"), "p.M")


def test_file_that_imports_itself_overflows_the_stack_of_the_broker() -> None:
    schema = make_native(change_file(dependency=["a.proto"]))
    assert [result.outcome for result in predict(schema, Release.R4_0)] == ["StackOverflowError"] * 2
    stored = SchemaVersion(0, SchemaInfo(SchemaType.PROTOBUF_NATIVE, make_native()))
    answer = VersionList([stored], Release.R4_2).put(
        SchemaInfo(SchemaType.PROTOBUF_NATIVE, schema), CompatibilityStrategy.FULL
    )
    assert (answer.outcome, answer.exception) == (Outcome.ERROR, "StackOverflowError")


def test_text_that_is_not_utf8_is_read_with_replacement_characters() -> None:
    schema = make_native(change_message(oneof_decl=[{"name": "side"}]))
    values = json.loads(schema)
    data = base64.b64decode(values["fileDescriptorSet"]).replace(b"side", b"\xff\xc3\x28e")
    schema = json.dumps(values | {"fileDescriptorSet": base64.b64encode(data).decode()}).encode()
    assert predict(schema, Release.R4_0)[1] == ("ok", "p.M")
    [oneof] = parse(schema).root.oneofs()
    assert oneof.name == "\ufffd\ufffd(e"


def test_recorded_answers_of_two_releases_are_predicted() -> None:
    questions, answers = read_corpus()
    assert len(questions) == 4_000
    assert not find_differences(questions, answers, Release.R4_0)


# Not on 5.0, whose protobuf-java 4.36 answers otherwise (docs/reference/native-definitions.md).
@pytest.mark.broker
@pytest.mark.parametrize("release", ["4.0", "4.2"])
def test_classes_of_a_broker_answer_as_predicted(release: str) -> None:
    jars = brokers.find_jars(brokers.RELEASES[release])
    tables = [make_native(row[1]) for row in REJECTED] + [make_native(change) for _, change in ACCEPTED]
    tables += [make_native(**values) for values, _ in REJECTED_VALUES]
    definitions = [*tables, *make_definitions(range(1_000_000, 1_000_000 + SEEDS))]
    questions: list[bytes | Pair] = [*definitions, *make_pairs(definitions, 2, SEEDS // 4)]
    differences = find_differences(questions, ask_java(questions, jars), Release(release))
    assert not differences, "\n".join(differences[:10])


if __name__ == "__main__":
    record()
