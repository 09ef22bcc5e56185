"""The corpora of `.proto` pairs, compiled, and small helpers to compile more.

`proto_public` has single files with the verdicts of buf and Pulsar. `proto_buf` has definitions of one to three files
with the output of buf 1.75.0 for each: editions, features, options, extensions, groups and every rule of its categories.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from corpora import read_rows
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.descriptor import Image, ProtoMessage
from schemactl.formats.protobuf.protoc import Proto, _run, compile_all, compile_proto


@cache
def read_public_rows() -> list[tuple[dict[str, Any], SchemaInfo, SchemaInfo]]:
    """Return each row of `proto_public` with its two definitions."""
    recorded_pairs = read_rows("proto_public")
    protos = [Proto.of_text(row[side], row[f"root_{side}"]) for row in recorded_pairs for side in ("before", "after")]
    infos = [info for info in compile_all(protos) if not isinstance(info, InvalidSchema)]
    assert len(infos) == len(protos)
    return list(zip(recorded_pairs, infos[::2], infos[1::2], strict=True))


def descriptor_sets(*definitions: dict[str, str]) -> list[bytes]:
    """Compile each definition's files, given by import name, together with `everything.proto`, and keep their source info."""
    protos = []
    for files in definitions:
        entry = "".join(f'import "{name}";' for name in files)
        sources = {name: text.encode() for name, text in files.items()}
        protos.append(Proto("", "everything.proto", {**sources, "everything.proto": entry.encode()}))
    answers = list(_run(protos))
    assert not [problem for problem in answers if isinstance(problem, InvalidSchema)]
    return [data for data in answers if isinstance(data, bytes)]


def compile_images(*definitions: dict[str, str]) -> list[Image]:
    """Return the image of each definition's files, given by import name."""
    images_by_definition = [Image.of(FileDescriptorSet.FromString(data)) for data in descriptor_sets(*definitions)]
    for image in images_by_definition:
        del image.files["everything.proto"]
    return images_by_definition


def compile_definition(text: str, message: str = "M") -> SchemaInfo:
    """Return the definition of one text."""
    return compile_proto(Proto.of_text(text, message))


def parse_root(text: str, message: str = "M") -> ProtoMessage:
    """Return the root message of one text."""
    return parse(compile_definition(text, message).schema).root
