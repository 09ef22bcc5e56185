"""The bytes of a PROTOBUF_NATIVE schema: a JSON object with a descriptor set and the name of the root message.

Read as leniently as Pulsar reads it (ProtobufNativeSchemaUtils.deserialize, Jackson's defaults), written always alike.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from schemactl.core.errors import InvalidSchema
from schemactl.formats.protobuf_native.descriptor import Image, ProtoMessage

REFUSAL = "deserialize ProtobufNative Schema failed"
"""What a broker says of every definition that it cannot read."""

_KEYS = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")
_BASE64 = re.compile(r"(?:\s*+[A-Za-z0-9+/]{4})*+\s*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*+")
_SHIPPED = "google/protobuf/"
"""Where protoc's own files lie: their content follows the compiler's release, not the user's."""

_MAX_COMPARED = 10_000_000
"""Characters of a package times those of a root's name: Java would look for the one in the other for minutes."""

_SMALL_BYTES = 100_000
"""Definitions up to here are kept by the hundred once they are read, larger ones by the handful."""


@dataclass(frozen=True, eq=False)
class ProtoDefinition:
    """A PROTOBUF_NATIVE definition, read.

    Attributes:
        image: all files of the descriptor set.
        root: the root message.
        reachable: the names of the root's file and of what it imports, each after what it needs itself.
    """

    image: Image
    root: ProtoMessage
    reachable: tuple[str, ...]

    @cached_property
    def identity(self) -> tuple[str, str]:
        """The root's full name, and a digest of what the reachable files declare.

        Not in it: source info, the names and order of files (a moved file declares the same), JSON names that are
        spelled out though they are the default, and the content of the files that come with protoc.
        """
        contents = (_content(self.image.files[name].proto) for name in self.reachable if not is_shipped(name))
        digest = hashlib.sha256()
        for content in sorted(contents):
            digest.update(len(content).to_bytes(8, "big") + content)
        return self.root.full_name, digest.hexdigest()


def is_shipped(name: str) -> bool:
    """Whether the file `name` comes with protoc."""
    return name.startswith(_SHIPPED)


def render(root: ProtoMessage) -> bytes:
    """Return the schema bytes for `root`: the files it needs, sorted by name, without source info; one text for one content."""
    image = root.file.image
    values = _values(_serialized(image, _reachable(image, root.file.name)), root)
    return json.dumps(values, separators=(",", ":")).encode()


def of_class(message: type[Message]) -> bytes:
    """Return the schema bytes that Pulsar's Python client registers for the class of a message (ProtobufNativeSchema)."""
    files: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for each in file.dependencies:
                add(each)
            files[file.name] = FileDescriptorProto()
            file.CopyToProto(files[file.name])

    root = message.DESCRIPTOR
    add(root.file)
    values = _values(FileDescriptorSet(file=files.values()).SerializeToString(), root)
    return json.dumps(values, indent=True).encode()


def _serialized(image: Image, names: Iterable[str]) -> bytes:
    """Return the files as a descriptor set, the same bytes for the same files."""
    files = FileDescriptorSet(file=[image.files[name].proto for name in sorted(names)])
    return files.SerializeToString(deterministic=True)


def _values(descriptor_set: bytes, root: Any) -> dict[str, str]:
    values = (base64.b64encode(descriptor_set).decode(), root.full_name, root.file.name)
    return dict(zip(_KEYS, values, strict=True))


def parse(schema: bytes) -> ProtoDefinition:
    """Return the definition in `schema`, accepted exactly where a broker accepts it.

    A root name without its package, keys that Pulsar does not know and files that nothing imports are fine.

    Raises:
        InvalidSchema: a broker refuses it; its words start with the broker's.
    """
    try:
        return _parse_small(schema) if len(schema) <= _SMALL_BYTES else _parse_large(schema)
    except InvalidSchema as error:
        raise InvalidSchema(f"{REFUSAL}: {error.what}", fix=error.fix) from error


def _parse(schema: bytes) -> ProtoDefinition:
    encoded, root_name, file_name = _envelope(schema)
    if encoded is None or not _BASE64.fullmatch(encoded):
        raise InvalidSchema("`fileDescriptorSet` is not base64")
    image = _image(base64.b64decode(encoded))
    if file_name not in image.files:
        raise InvalidSchema(
            f"the descriptor set has no file {file_name!r}, which `rootFileDescriptorName` names"
        )
    reachable = tuple(_reachable(image, file_name))
    build_pool(image, reachable)
    file = image.files[file_name]
    if root_name is not None:
        if len(file.proto.package) * len(root_name) > _MAX_COMPARED:
            raise InvalidSchema(f"the package of {file_name} and `rootMessageTypeName` are too long")
        # Pulsar takes the package for a regular expression, and off wherever it first matches.
        package = "".join(
            "." if character == "." else re.escape(character) for character in file.proto.package
        )
        path = re.sub(package, "", root_name, count=1).replace(".", "", 1).rstrip(".")
        root = file.declared.messages.get(file.qualified(path))
        if root is not None:
            return ProtoDefinition(image, root, reachable)
    raise InvalidSchema(f"{file_name} declares no message {root_name!r}, which `rootMessageTypeName` names")


_parse_small = lru_cache(maxsize=256)(_parse)
_parse_large = lru_cache(maxsize=8)(_parse)


def descriptor_set(schema: bytes) -> tuple[bytes, str]:
    """Return the serialized FileDescriptorSet in `schema`, as protoc would write it to a file, and the root's full name.

    Raises:
        InvalidSchema: a broker refuses it.
    """
    definition = parse(schema)
    return _serialized(definition.image, definition.reachable), definition.root.full_name


def from_descriptor_set(data: bytes, message: str) -> ProtoMessage:
    """Return the message with this full name in a serialized FileDescriptorSet (`protoc --descriptor_set_out`, `buf build`).

    Raises:
        InvalidSchema: it is no descriptor set, does not hold together, or has no such message.
    """
    image = _image(data)
    root = find_message(image, message)
    build_pool(image, tuple(_reachable(image, root.file.name)))
    return root


def _image(data: bytes) -> Image:
    try:
        return Image.of(FileDescriptorSet.FromString(data))
    except DecodeError as error:
        raise InvalidSchema(
            "not a serialized FileDescriptorSet",
            fix="write it with: protoc --include_imports --descriptor_set_out",
        ) from error


def find_message(image: Image, message: str, *, among: Collection[str] = ()) -> ProtoMessage:
    """Return the message with this full name; `among` are the files it should be in (empty: any).

    Raises:
        InvalidSchema: there is none; its pointer is /message, for that is what names it.
    """
    root = image.declared.messages.get(message)
    if root is not None and not root.is_map_entry and (not among or root.file.name in among):
        return root
    names = [
        other.full_name
        for other in image.declared.messages.values()
        if not other.is_map_entry and (other.file.name in among if among else not is_shipped(other.file.name))
    ]
    known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise InvalidSchema(
        f"no message is called {message!r}",
        pointer="/message",
        fix=f"write {'one of ' if len(names) > 1 else ''}{known}"
        if known
        else "declare it in the definition",
    )


def _envelope(schema: bytes) -> tuple[str | None, str | None, str | None]:
    """Return the three values of the JSON object, None for null or nothing; what follows the object does not matter."""
    try:
        text = schema.decode("utf-8-sig").lstrip()
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("not a JSON object with " + ", ".join(_KEYS)) from error
    if not isinstance(found, dict):
        raise InvalidSchema("not a JSON object with " + ", ".join(_KEYS))
    values = [found.get(key) for key in _KEYS]
    if any(isinstance(value, (dict, list)) for value in values):
        raise InvalidSchema("its values are text")
    encoded, root_name, file_name = (None if value is None else str(value) for value in values)
    return encoded, root_name, file_name


def _reachable(image: Image, name: str) -> Iterator[str]:
    """`name` and the files it imports, each after what it imports itself.

    Raises:
        InvalidSchema: an import is missing, or files import each other.
    """
    imports: dict[str, Sequence[str]] = {}
    todo = [name]
    while todo:
        current = todo.pop()
        if current not in image.files:
            raise InvalidSchema(f"the descriptor set does not have {current}, which is imported")
        if current not in imports:
            imports[current] = image.files[current].proto.dependency
            todo.extend(imports[current])
    try:
        yield from TopologicalSorter(imports).static_order()
    except CycleError as error:
        raise InvalidSchema(f"{error.args[1][0]} imports itself, directly or through others") from None


def build_pool(image: Image, names: Collection[str]) -> DescriptorPool:
    """Return the files as protobuf's runtime knows them, when they fit together: every type is there, none twice.

    Raises:
        InvalidSchema: they do not.
    """
    pool = DescriptorPool()
    try:
        for name in names:
            pool.AddSerializedFile(image.files[name].proto.SerializeToString())
    except TypeError as error:
        _, _, reason = str(error).partition("descriptor pool: ")
        raise InvalidSchema(reason or str(error)) from error
    return pool


def _content(file: FileDescriptorProto) -> bytes:
    """Return what `file` declares, as bytes that are equal for equal content."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for field in ("name", "dependency", "public_dependency", "weak_dependency", "option_dependency"):
        copy.ClearField(field)
    if copy.syntax == "proto2":
        copy.ClearField("syntax")
    fields = list(copy.extension)
    todo: list[DescriptorProto] = list(copy.message_type)
    while todo:
        message = todo.pop()
        fields += [*message.field, *message.extension]
        todo.extend(message.nested_type)
    for each in fields:
        if each.json_name == default_json_name(each.name):
            each.ClearField("json_name")
    return copy.SerializeToString(deterministic=True)


def default_json_name(name: str) -> str:
    """Return the JSON name of a field that has no option for it: `user_id` becomes `userId`."""
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)
