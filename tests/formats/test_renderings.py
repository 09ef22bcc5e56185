"""Each form of a definition has the bytes that Pulsar's client of the language sends for the classes of the same `.proto` files.

`renderings/record.py` recorded what the clients send: Java 4.0.7 with protobuf-java 3.25.5, Go 0.19.0 with protobuf-go 1.36.5, and
Python 3.13.0 with protobuf 7.36.2.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.codec.definition import Definition
from schemactl.codec.proto_schema import describe_messages
from schemactl.core.project import ProtoRendering
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import identity
from schemactl.formats.protobuf.default_texts import normalize_float_default, print_go_default, print_python_default
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.kinds import FLOAT_KINDS
from schemactl.formats.protobuf.protoc import Proto, compile_proto, read_descriptor_set
from schemactl.formats.protobuf.rendering import (
    fill_buckets,
    find_rendering,
    find_variants,
    normalize,
    order_like_java,
    render_as,
)

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parents[1] / "corpus" / "native_renderings.jsonl.gz"
RECORDS = [json.loads(line) for line in gzip.decompress(CORPUS.read_bytes()).splitlines()]
LANGUAGES: tuple[ProtoRendering, ...] = ("java", "go", "python")

WITHOUT_GO = {"message_set"}
"""The sets that protoc-gen-go does not compile."""
WITHOUT_JAVA = {"edition", "edition_features", "edition_imports", "edition_nested"}
"""The sets that protoc 3.25 does not compile."""

EACH_SET = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])


def compile_record(record: Any) -> SchemaInfo:
    files = {name: text.encode() for name, text in record["files"].items()}
    return compile_proto(Proto(record["message"], record["entry"], files))


def read_files(schema: str | bytes) -> dict[str, bytes]:
    data = base64.b64decode(json.loads(schema)["fileDescriptorSet"])
    return {file.name: file.SerializeToString(deterministic=True) for file in FileDescriptorSet.FromString(data).file}


def test_corpus_has_every_form_of_each_set_that_the_language_compiles() -> None:
    assert len(RECORDS) == 47
    assert {record["name"] for record in RECORDS if record["java"] is None} == WITHOUT_JAVA
    assert {record["name"] for record in RECORDS if record["go"] is None} == WITHOUT_GO


@EACH_SET
def test_form_for_java_equals_its_clients_text(record: Any) -> None:
    schema = compile_record(record).schema
    assert list(find_variants(schema, "java")) == (
        [] if record["java"] else ["it has protobuf-java 3.25, which does not support editions"]
    )
    if record["java"]:
        assert schema.decode() == record["java"]


@EACH_SET
def test_form_for_python_equals_its_clients_text(record: Any) -> None:
    schema = render_as(compile_record(record).schema, "python")
    # The content of protobuf's own files depends on the release that is installed here.
    if not list(find_variants(schema, "python")):
        assert schema.decode() == record["python"]


@EACH_SET
def test_form_for_go_equals_its_clients_text_unless_a_variant_is_listed(record: Any) -> None:
    if not record["go"]:
        return
    schema = render_as(compile_record(record).schema, "go")
    variants = list(find_variants(schema, "go"))
    if not variants:
        assert [schema.decode()] == list(record["go"])
    elif len(variants) == 1 and "random order" in variants[0]:
        # The order that is sent most often, as long as the map has one group of slots.
        if len(read_files(schema)) < 8:
            assert schema.decode() == max(record["go"], key=record["go"].get)
        for sent in record["go"]:
            assert read_files(sent) == read_files(schema)


@EACH_SET
def test_forms_are_one_version(record: Any) -> None:
    info = compile_record(record)
    sent = [record["java"] or info.schema.decode(), record["python"], *(record["go"] or ())]
    identities = {identity(SchemaInfo(SchemaType.PROTOBUF_NATIVE, text.encode())) for text in sent}
    identities |= {identity(SchemaInfo(info.type, render_as(info.schema, language))) for language in LANGUAGES}
    assert identities == {identity(info)}


@EACH_SET
def test_forms_have_one_normalized_text(record: Any) -> None:
    schema = compile_record(record).schema
    texts = {normalize(render_as(schema, language)) for language in LANGUAGES}
    # Each form has its own contents of protobuf's files that differ between releases.
    assert len(texts) == 1 or list(find_variants(schema, "python"))
    assert all(normalize(text) == text for text in texts)


@EACH_SET
def test_form_of_a_clients_text_is_found(record: Any) -> None:
    for language in ("java", "python"):
        if record[language]:
            assert find_rendering(record[language].encode()) == language
    for text in record["go"] or ():
        # Without fields, nothing differs.
        assert find_rendering(text.encode()) == ("java" if text == record["java"] else "go")


@EACH_SET
def test_descriptor_set_keeps_its_own_files_and_order(record: Any) -> None:
    text = record["java"] or record["python"]
    files = FileDescriptorSet.FromString(base64.b64decode(json.loads(text)["fileDescriptorSet"]))
    for order in (files.file, [*reversed(files.file)]):
        data = FileDescriptorSet(file=order).SerializeToString()
        info = read_descriptor_set(data, record["message"], path="a.binpb")
        stored = json.loads(info.schema)
        assert base64.b64decode(stored["fileDescriptorSet"]) == data
        assert identity(info) == identity(compile_record(record))


def test_texts_of_float_defaults_of_all_clients_are_protocs_text() -> None:
    random = Random(1)  # noqa: S311
    values = [
        0.1,
        1 / 3,
        5e-324,
        1e-45,
        1e22,
        16777217.0,
        *(random.random() * 10 ** random.randint(-40, 38) for _ in range(500)),
    ]
    fields = "".join(
        f"optional {type_} f{number}_{type_} = {number + 10_000 * (type_ == 'float')} [default = {value!r}];"
        for number, value in enumerate(values, start=1)
        for type_ in ("double", "float")
    )
    info = compile_proto(Proto.of_text(f'syntax = "proto2"; message M {{ {fields} }}', "M"))
    for field in parse(info.schema).root.fields().values():
        text, kind = field.proto.default_value, field.proto.type
        for client_text in (text, print_go_default(text, kind), print_python_default(text, kind)):
            assert normalize_float_default(client_text, kind) == text


@pytest.mark.parametrize("text", ["1.0", "+1", "0x10", "1f", " 1", "infinity", "", "x"])
def test_texts_that_no_client_writes_stay(text: str) -> None:
    assert normalize_float_default(text, FLOAT_KINDS[0]) == text


@pytest.mark.parametrize(
    ("name", "language", "variants"),
    [
        ("scalars", "go", []),
        ("scalars", "java", []),
        ("edition", "java", ["it has protobuf-java 3.25, which does not support editions"]),
        ("edition", "go", []),
        ("edition_imports", "go", ["it sends the 3 files of the definition in random order"]),
        ("one_import", "go", ["it sends the 2 files of the definition in random order"]),
        ("one_import", "java", []),
        ("one_import", "python", []),
        ("well_known", "python", []),
        ("custom_option", "java", []),
        ("custom_option", "python", ["it sends google/protobuf/descriptor.proto from its release of protobuf"]),
        (
            "custom_options",
            "go",
            [
                "it sends the 3 files of the definition in random order",
                "it sends google/protobuf/descriptor.proto from its release of protobuf",
                "it sends several custom options of one element in random order",
            ],
        ),
    ],
)
def test_variants_are_announced(name: str, language: ProtoRendering, variants: list[str]) -> None:
    record = next(record for record in RECORDS if record["name"] == name)
    assert list(find_variants(compile_record(record).schema, language)) == variants


def test_newer_editions_are_announced_for_go() -> None:
    info = compile_proto(Proto.of_text('edition = "2024"; package p; message M { string a_b = 1; }', "p.M"))
    assert list(find_variants(info.schema, "go")) == [
        "it does not send the visibility and the imports for options of edition 2024"
    ]
    assert list(find_variants(info.schema, "python")) == []


@pytest.mark.java
def test_files_have_the_order_of_a_hash_map_of_java() -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java")
    random = Random(3)  # noqa: S311
    lines = []
    for _ in range(2_000):
        # `Aa` and `BB` have the same hash.
        parts = random.choice([["Aa", "BB"], [*"abcdeäß日😀/_-"]])
        count = random.choice([1, 2, 5, 8, 11, 12, 13, 14, 20, 24, 25, 30, 48, 49, 60, 97, 150])
        names = ["".join(random.choices(parts, k=random.randint(1, 12 if len(parts) > 2 else 4))) for _ in range(count)]
        lines.append(list(dict.fromkeys(names)))
    program = Path(__file__).parent / "renderings" / "HashMapOrder.java"
    text = "\n".join("\t".join(line) for line in lines)
    result = subprocess.run(["java", program], input=text, capture_output=True, encoding="utf-8", check=True)
    for line, ordered in zip(lines, result.stdout.splitlines(), strict=True):
        if max(map(len, fill_buckets(line))) <= 8:
            assert order_like_java(line) == ordered.split("\t")


@EACH_SET
def test_generated_package_recognizes_a_clients_text_of_the_approved_definition(record: Any) -> None:
    schema = compile_record(record).schema
    approved = describe_messages(Definition("PROTOBUF_NATIVE", normalize(schema).decode()))
    for language in LANGUAGES:
        sent = record[language] if language == "go" else [record[language]]
        for text in sent or () if not list(find_variants(schema, language)) else ():
            if text is not None:
                assert describe_messages(Definition("PROTOBUF_NATIVE", text)) == approved, language
