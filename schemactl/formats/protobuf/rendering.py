"""Render a definition as Pulsar's clients in Java, Go and Python send it for the classes that protoc generates.

Brokers compare bytes, and each client renders the descriptors of its classes in another way:

* Java (ProtobufNativeSchemaUtils.serialize): without default JSON names, the files in the order of a HashMap.
* Go (getProtoNativeSchemaInfo, with ToFileDescriptorProto of protodesc): with all JSON names, the files in a random order. The most
  frequent order is the order in which the files are added: each after its imports.
* Python (pulsar.schema.ProtobufNativeSchema): without default JSON names, each file after its imports, the JSON indented.

The form for Java keeps the JSON names that the `.proto` text sets, so the other forms follow from it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import EDITION_2023, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from schemactl.core.errors import InvalidSchema
from schemactl.core.project import ProtoRendering
from schemactl.formats.protobuf.default_texts import normalize_float_default, print_go_default, print_python_default
from schemactl.formats.protobuf.definition import ENVELOPE_KEYS, is_shipped, parse
from schemactl.formats.protobuf.descriptor import Image, ProtoMessage, default_json_name, iterate_fields
from schemactl.formats.protobuf.kinds import FLOAT_KINDS

_USUAL_PACKAGE: Final = re.compile(r"[A-Za-z0-9_.]*")
"""The usual characters of a package."""

_JSON_NAME: Final = FieldDescriptorProto.JSON_NAME_FIELD_NUMBER


def render(root: ProtoMessage, sources: Mapping[str, bytes]) -> bytes:
    """Return the bytes that Pulsar's Java client sends for the message `root` in the answer of protoc, with source info.

    Args:
        root: the message.
        sources: the texts of the files by name; protoc's own files may be missing.
    """
    image, name = root.file.image, root.file.name
    # The roots of one file differ only in their names.
    if name not in image.rendered_sets:
        names = order_like_java(_list_imports_first(image.stored_protos, name))
        files = [_drop_default_json_names(image, other, sources.get(other, b"")) for other in names]
        image.rendered_sets[name] = _encode_set(files)
    return _render_envelope(image.rendered_sets[name], root.full_name, root.file.stored_proto, "java")


def render_set(root: ProtoMessage) -> bytes:
    """Return the bytes for the message `root` in a descriptor set: its own files in their order, without source info."""
    encoded_set = _encode_set(root.file.image.stored_protos.values())
    return _render_envelope(encoded_set, root.full_name, root.file.stored_proto, "java")


def render_as(schema: bytes, rendering: ProtoRendering) -> bytes:
    """Return the bytes that the client of a language sends, from the bytes that Java's client sends.

    Brokers may reject the definition.
    """
    if rendering == "java":
        return schema
    envelope, protos = _read_envelope(schema)
    protos |= _find_versioned_files(protos, rendering)
    return _render_files(protos, envelope[ENVELOPE_KEYS[1]], envelope[ENVELOPE_KEYS[2]], rendering)


def convert(schema: bytes, rendering: ProtoRendering) -> bytes:
    """Return a definition of any form in the form of a client language, with the files that the root's file reaches.

    In the form of Go and in unknown forms, JSON names that equal the default count as absent from the `.proto` text.

    Raises:
        InvalidSchema: if a broker rejects it.
    """
    form = find_rendering(schema)
    if form == rendering and form != "go":
        return schema
    definition = parse(schema)
    root, image = definition.root, definition.image
    protos = image.stored_protos
    if form != "java":
        protos = {
            name: proto if is_shipped(name) else _copy_without_defaults(proto, keeps_json_names=form == "python")
            for name, proto in protos.items()
        }
    protos |= _find_versioned_files(protos, rendering)
    return _render_files(protos, root.full_name, root.file.name, rendering)


def normalize(schema: bytes) -> bytes:
    """Return the same bytes for each form that a client sends: all JSON names, the files sorted by name. Other definitions are unchanged.

    Raises:
        InvalidSchema: if a broker rejects it.
    """
    if find_rendering(schema) is None:
        return schema
    definition = parse(schema)
    files = [_copy_without_defaults(file) for _, file in sorted(definition.image.stored_protos.items())]
    for file in files:
        for field, _ in iterate_fields(file):
            field.json_name = field.json_name or default_json_name(field.name)
    return _render_envelope(_encode_set(files), definition.root.full_name, definition.root.file.stored_proto, "java")


def render_class(message: type[Message]) -> bytes:
    """Return the bytes that Pulsar's Python client sends for a message class (ProtobufNativeSchema)."""
    protos: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in protos:
            for dependency in file.dependencies:
                add(dependency)
            protos[file.name] = FileDescriptorProto()
            file.CopyToProto(protos[file.name])

    root = message.DESCRIPTOR
    add(root.file)
    return _render_files(protos, root.full_name, root.file.name, "python")


def find_rendering(schema: bytes) -> ProtoRendering | None:
    """Return the language whose client sends the definition for generated classes, or None if no client does.

    The order of files does not count for Go, where it is random. A definition in which nothing differs is Java's.

    Raises:
        InvalidSchema: if a broker rejects it.
    """
    definition = parse(schema)
    root, image = definition.root, definition.image
    if len(definition.reachable) != len(image.files):
        return None
    forms: tuple[ProtoRendering, ...] = ("java", "python", "go")
    # A `.proto` text may set a JSON name to the default, so the second attempt keeps all names.
    for prepare in (_copy_without_defaults, lambda proto: proto):
        protos = {name: proto if is_shipped(name) else prepare(proto) for name, proto in image.stored_protos.items()}
        for rendering in forms:
            rendered = _render_files(protos, root.full_name, root.file.name, rendering)
            if rendered == schema or (rendering == "go" and _has_same_files(rendered, schema)):
                return rendering
    return None


def find_variants(schema: bytes, language: ProtoRendering) -> Iterator[str]:
    """Yield why a client may send another text than the form of its language, each as a clause about the client ("it ...").

    Args:
        schema: the definition in the form of any language; other texts have no known variants.
        language: the client's language.
    """
    try:
        _, protos = _read_envelope(schema)
    except (ValueError, TypeError, KeyError, DecodeError):
        return
    if language == "java":
        if any(proto.syntax == "editions" for proto in protos.values()):
            yield "it has protobuf-java 3.25, which does not support editions"
        if any(len(bucket) > _TREE_THRESHOLD for bucket in fill_buckets(protos)):
            yield f"it orders files by a HashMap, of which more than {_TREE_THRESHOLD} names have one bucket"
        return
    if language == "go" and len(protos) > 1:
        yield f"it sends the {len(protos)} files of the definition in random order"
    if versioned_files := sorted(protos.keys() & _read_java_files().keys()):
        yield f"it sends {', '.join(versioned_files)} from its release of protobuf"
    if language == "go" and any(proto.edition > EDITION_2023 for proto in protos.values()):
        yield "it does not send the visibility and the imports for options of edition 2024"
    if language == "go" and any(map(_has_several_custom_options, protos.values())):
        yield "it sends several custom options of one element in random order"


def _has_several_custom_options(message: Message) -> bool:
    """Return whether some options in `message` have several custom options, whose order in Go is random."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if message.DESCRIPTOR.full_name.endswith("Options"):
        unknown_fields: Any = UnknownFieldSet(message)
        numbers = {field.field_number for field in unknown_fields}
        numbers |= {field.number for field, _ in message.ListFields() if field.is_extension}
        return len(numbers) > 1
    for field, value in message.ListFields():
        if field.message_type is not None:
            members = [value] if isinstance(value, Message) else value
            if any(map(_has_several_custom_options, members)):
                return True
    return False


def _has_same_files(left: bytes, right: bytes) -> bool:
    """Return whether two definitions differ only in the order of their files."""
    (left_envelope, left_protos), (right_envelope, right_protos) = _read_envelope(left), _read_envelope(right)
    texts = []
    for envelope, schema in ((left_envelope, left), (right_envelope, right)):
        encoded = envelope[ENVELOPE_KEYS[0]].encode()
        if encoded not in schema:
            return False
        texts.append(schema.replace(encoded, b"", 1))
    return texts[0] == texts[1] and left_protos == right_protos


def _read_envelope(schema: bytes) -> tuple[dict[str, str], dict[str, FileDescriptorProto]]:
    """Return the JSON object of a rendered definition, and its files by name."""
    envelope: dict[str, str] = json.loads(schema)
    files = FileDescriptorSet.FromString(base64.b64decode(envelope[ENVELOPE_KEYS[0]]))
    return envelope, {proto.name: proto for proto in files.file}


def _render_files(
    protos: Mapping[str, FileDescriptorProto], root_name: str, file_name: str, rendering: ProtoRendering
) -> bytes:
    """Return the bytes for the files that `file_name` reaches."""
    names = _list_imports_first(protos, file_name)
    if rendering == "java":
        files = [protos[name] for name in order_like_java(names)]
    else:
        files = [_print_like_client(protos[name], rendering) for name in names]
    return _render_envelope(_encode_set(files), root_name, protos[file_name], rendering)


def _encode_set(files: Iterable[FileDescriptorProto]) -> str:
    """Return the descriptor set of the files in Base64."""
    return base64.b64encode(FileDescriptorSet(file=files).SerializeToString(deterministic=True)).decode()


def _render_envelope(encoded_set: str, root_name: str, file: FileDescriptorProto, rendering: ProtoRendering) -> bytes:
    def render_json(root_name: str) -> bytes:
        values = (encoded_set, root_name, file.name)
        envelope = dict(zip(ENVELOPE_KEYS, values, strict=True))
        if rendering == "python":
            return json.dumps(envelope, indent=True).encode()
        text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
        if rendering == "go":
            for character in "<>&\u2028\u2029":
                text = text.replace(character, f"\\u{ord(character):04x}")
        return text.encode()

    schema = render_json(root_name)
    if _USUAL_PACKAGE.fullmatch(file.package):
        return schema
    # A broker uses the package as a regular expression, with which the full name may not match.
    try:
        parse(schema)
    except InvalidSchema:
        return render_json(root_name.removeprefix(f"{file.package}."))
    return schema


# The order of files


def _list_imports_first(protos: Mapping[str, FileDescriptorProto], file_name: str) -> list[str]:
    """Return the names of the files that `file_name` reaches, each after its imports."""
    names: dict[str, None] = {}
    visited: set[str] = set()
    pending = [(file_name, False)]
    while pending:
        name, is_done = pending.pop()
        if is_done:
            names[name] = None
        elif name in protos and name not in visited:
            visited.add(name)
            pending.append((name, True))
            pending += [(dependency, False) for dependency in reversed(protos[name].dependency)]
    return list(names)


_MIN_TREE_CAPACITY: Final = 64
_TREE_THRESHOLD: Final = 8


def order_like_java(names: Iterable[str]) -> list[str]:
    """Return the names in the order of a java.util.HashMap to which they were added in this order.

    A bucket that is a tree, with more than eight names, has another order.
    """
    return [name for bucket in fill_buckets(names) for name in bucket]


def fill_buckets(names: Iterable[str]) -> list[list[str]]:
    """Return the buckets of a java.util.HashMap to which the names were added in this order."""
    buckets: list[list[str]] = [[] for _ in range(16)]

    def grow(buckets: Sequence[Sequence[str]]) -> list[list[str]]:
        larger: list[list[str]] = [[] for _ in range(2 * len(buckets))]
        for bucket in buckets:
            for name in bucket:
                larger[_spread_hash(name) & (len(larger) - 1)].append(name)
        return larger

    for size, name in enumerate(names, start=1):
        bucket = buckets[_spread_hash(name) & (len(buckets) - 1)]
        bucket.append(name)
        # Instead of making a tree of a long bucket, a small map grows (treeifyBin).
        if len(bucket) > _TREE_THRESHOLD and len(buckets) < _MIN_TREE_CAPACITY:
            buckets = grow(buckets)
        if size > len(buckets) * 3 // 4:
            buckets = grow(buckets)
    return buckets


def _spread_hash(text: str) -> int:
    """Return the hash of a text in a HashMap: String.hashCode of its UTF-16 units, with the high bits mixed in."""
    code = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(data), 2):
        code = (31 * code + int.from_bytes(data[index : index + 2])) & 0xFFFFFFFF
    return code ^ (code >> 16)


# The content of files


@cache
def _read_java_files() -> dict[str, FileDescriptorProto]:
    """Return the files of protobuf-java 3.25.5, which Pulsar's clients use, that differ from newer releases, by name."""
    data = Path(__file__).with_name("java_files.binpb").read_bytes()
    return {proto.name: proto for proto in FileDescriptorSet.FromString(data).file}


def _find_versioned_files(names: Iterable[str], rendering: ProtoRendering) -> dict[str, FileDescriptorProto]:
    """Return the files among `names` whose content depends on the release of protobuf, as clients of a language send them."""
    java_files = _read_java_files()
    files = {name: java_files[name] for name in names if name in java_files}
    if rendering == "java":
        return files
    # The other clients are assumed to have the installed release of protobuf.
    runtime_files: dict[str, FileDescriptorProto] = {}
    for name in files:
        module: Any = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        runtime_files[name] = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(runtime_files[name])
    return runtime_files


def _drop_default_json_names(image: Image, name: str, text: bytes) -> FileDescriptorProto:
    """Return a file of protoc's answer with only the JSON names that its text sets, as protoc writes it into generated classes."""
    java_file = _read_java_files().get(name)
    if java_file is not None:
        return java_file
    file = image.files[name]
    # The runtimes have protoc's own files with all JSON names.
    if is_shipped(name):
        return file.stored_proto
    proto = FileDescriptorProto()
    proto.CopyFrom(file.stored_proto)
    # Few texts set JSON names, and the places of a text are many.
    has_json_names = b"json_name" in text
    for field, path in iterate_fields(proto):
        if field.json_name == default_json_name(field.name):
            is_set = has_json_names and file.places.span((*path, _JSON_NAME)) is not None
            if not is_set:
                field.ClearField("json_name")
    return proto


def _copy_without_defaults(file: FileDescriptorProto, *, keeps_json_names: bool = False) -> FileDescriptorProto:
    """Return a copy of `file` without the JSON names that equal the default, and with protoc's texts of float defaults."""
    proto = FileDescriptorProto()
    proto.CopyFrom(file)
    for field, _ in iterate_fields(proto):
        if not keeps_json_names and field.json_name == default_json_name(field.name):
            field.ClearField("json_name")
        if field.HasField("default_value") and field.type in FLOAT_KINDS:
            field.default_value = normalize_float_default(field.default_value, field.type)
    return proto


def _print_like_client(file: FileDescriptorProto, rendering: ProtoRendering) -> FileDescriptorProto:
    """Return a file as Go's protodesc.ToFileDescriptorProto prints it (with all JSON names), or as CopyToProto of Python's descriptors."""
    print_default = print_go_default if rendering == "go" else print_python_default
    proto = FileDescriptorProto()
    proto.CopyFrom(file)
    if rendering == "go":
        proto.ClearField("weak_dependency")
    for field, _ in iterate_fields(proto):
        if rendering == "go" and (not field.HasField("json_name") or field.extendee):
            field.json_name = default_json_name(field.name)
        if field.HasField("default_value") and field.type in FLOAT_KINDS:
            field.default_value = print_default(field.default_value, field.type)
    return proto
