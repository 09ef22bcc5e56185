"""The corpora of `.proto` pairs, compiled, and small helpers to compile more.

`proto_public` holds single files with buf's and Pulsar's verdicts. `proto_buf` holds definitions of one to three files
with what buf 1.75.0 printed for each: editions, features, options, extensions, groups and every rule of its categories.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from corpora import rows
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.descriptor import Image, ProtoMessage
from schemactl.formats.protobuf.protoc import Proto, _run, compile_all, compile_proto


@cache
def public() -> list[tuple[dict[str, Any], SchemaInfo, SchemaInfo]]:
    """Each row of `proto_public` with its two definitions."""
    found = rows("proto_public")
    protos = [Proto.of_text(row[side], row[f"root_{side}"]) for row in found for side in ("before", "after")]
    infos = [info for info in compile_all(protos) if not isinstance(info, InvalidSchema)]
    assert len(infos) == len(protos)
    return list(zip(found, infos[::2], infos[1::2], strict=True))


def descriptor_sets(*definitions: dict[str, str]) -> list[bytes]:
    """Each definition's files, by import name, compiled together with `everything.proto`, with their source info."""
    protos = []
    for files in definitions:
        entry = "".join(f'import "{name}";' for name in files)
        sources = {name: text.encode() for name, text in files.items()}
        protos.append(Proto("", "everything.proto", {**sources, "everything.proto": entry.encode()}))
    found = list(_run(protos))
    assert not [problem for problem in found if isinstance(problem, InvalidSchema)]
    return [data for data in found if isinstance(data, bytes)]


def images(*definitions: dict[str, str]) -> list[Image]:
    """The image of each definition's files, by import name."""
    found = [Image.of(FileDescriptorSet.FromString(data)) for data in descriptor_sets(*definitions)]
    for image in found:
        del image.files["everything.proto"]
    return found


def definition(text: str, message: str = "M") -> SchemaInfo:
    """The definition in one text."""
    return compile_proto(Proto.of_text(text, message))


def root(text: str, message: str = "M") -> ProtoMessage:
    """The root message in one text."""
    return parse(definition(text, message).schema).root
