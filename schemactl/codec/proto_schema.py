"""The descriptor set of a PROTOBUF_NATIVE schema, and the Arrow types of its root message.

The mapping is that of Spark's protobuf support with its safe options: unsigned numbers take the next wider type, since
their own would turn negative (`upcast.unsigned.ints`), and fields without presence have their default where nothing was
sent (`emit.default.values`), as have those that declare one. Messages without fields have no columns.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from .arrow_types import DURATION, TIMESTAMP, Options
from .definition import CodecUnavailable, Definition, InvalidDefinition

SCALARS: Final[dict[str, pa.DataType]] = {
    "double": pa.float64(),
    "float": pa.float32(),
    "int64": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "int32": pa.int32(),
    "fixed64": pa.decimal128(20, 0),
    "fixed32": pa.int64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uint32": pa.int64(),
    "enum": pa.string(),
    "sfixed32": pa.int32(),
    "sfixed64": pa.int64(),
    "sint32": pa.int32(),
    "sint64": pa.int64(),
}
"""By the type's name in a `.proto`."""

_MOMENTS: Final = {"google.protobuf.Timestamp": TIMESTAMP, "google.protobuf.Duration": DURATION}


def get_type_name(field: Any) -> str:
    """Return the name of a field's type in a `.proto`; "message", "group" or "enum" where it has its own."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    name: str = FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, text, bytes or an enum.

    Attributes:
        kind: the type's name in a `.proto`.
        names: an enum's values.
        open_enum: an enum that also holds numbers without a name.
        any_bytes: a text that protobuf does not look at, so that it need not be UTF-8: that of proto2.
    """

    kind: str
    type: pa.DataType
    names: dict[int, str] | None = None
    open_enum: bool = False
    any_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """google.protobuf.Timestamp, or Duration."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A field.

    Attributes:
        name: as the `.proto` has it.
        number: what says on the wire that it is this one.
        shape: of its value, or of each of its values.
        repeated: it is a list, or (with `key`) a map.
        presence: it may be unset, and is null then.
        required: a message without it is none.
        key: the shape of a map's keys.
        default: what an unset field is read as instead of null: what the `.proto` declares, an enum's as its number.
        oneof: the name of the group of which at most one field is set.
    """

    name: str
    number: int
    shape: Shape
    repeated: bool
    presence: bool
    required: bool
    key: Scalar | None = None
    default: Any = None
    oneof: str | None = None

    @property
    def type(self) -> pa.DataType:
        """Of the column."""
        if self.key is not None:
            return pa.map_(self.key.type, pa.field("value", self.shape.type))
        return pa.list_(pa.field("element", self.shape.type)) if self.repeated else self.shape.type


@dataclass(frozen=True)
class Message:
    """A message; `parts` are its fields in the order of the `.proto`, without those that have no columns."""

    full_name: str
    parts: tuple[MessagePart, ...]

    @cached_property
    def type(self) -> pa.DataType:
        """Of the column."""
        return pa.struct([pa.field(part.name, part.type) for part in self.parts])


Shape = Scalar | Moment | Message


@dataclass(frozen=True, slots=True)
class Root:
    """What a definition's messages are: the class that parses them, and their columns."""

    message_class: Any
    shape: Message


def root_of(definition: Definition, options: Options) -> Root:
    """Return the root message of a PROTOBUF_NATIVE definition, or of a PROTOBUF one with its descriptor set.

    Raises:
        CodecUnavailable: protobuf is not installed, or a PROTOBUF definition has no descriptor set.
        InvalidDefinition: the descriptor set cannot be used, or a message holds itself and no depth is given.
    """
    descriptor = load_descriptor(definition)
    shape = _MessageShaper(options).message(descriptor, {})
    assert shape is not None  # noqa: S101  the outermost message is never cut: its depth is 0
    return Root(make_message_class(descriptor), shape)


def load_descriptor(definition: Definition) -> Any:
    """Return the descriptor of the root message, as `root_of`.

    Raises:
        CodecUnavailable: protobuf is not installed, or a PROTOBUF definition has no descriptor set.
        InvalidDefinition: the descriptor set cannot be used.
    """
    text = definition.text if definition.type == "PROTOBUF_NATIVE" else definition.proto
    if not text:
        raise CodecUnavailable(
            "the payload of PROTOBUF is protobuf's wire format, which the Avro definition does not describe: add `proto:` "
            "and `message:` to its declaration"
        )
    try:
        from google.protobuf import descriptor_pool
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.message import DecodeError
    except ImportError:
        raise CodecUnavailable(
            'reading protobuf needs the package protobuf: pip install "pulsar-schemactl[proto]"'
        ) from None
    try:
        wrapper = json.loads(text)
        files = FileDescriptorSet.FromString(base64.b64decode(wrapper["fileDescriptorSet"]))
        name, file_name = wrapper["rootMessageTypeName"], wrapper["rootFileDescriptorName"]
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error, DecodeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise InvalidDefinition(f"the definition is no descriptor set of Pulsar's: {why}") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        _add_all(pool, files.file)
        package = pool.FindFileByName(file_name).package
        return _message(pool, name, package)
    except (KeyError, TypeError, RecursionError) as error:
        raise InvalidDefinition(f"the descriptor set cannot be used: {error}") from None


def describe_messages(definition: Definition) -> tuple[str, list[Any]]:
    """Return what a definition says of its messages, to be compared: the root's name, and all files but where their lines are.

    Raises as `load_descriptor`.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    root = load_descriptor(definition)
    files = [FileDescriptorProto.FromString(file.serialized_pb) for file in _files(root.file, set())]
    for file in files:
        file.ClearField("source_code_info")
    return root.full_name, sorted(files, key=lambda file: str(file.name))


def _add_all(pool: Any, files: Any) -> None:
    """Add every file behind those that it imports."""
    left = {file.name: file for file in files}

    def add(name: str) -> None:
        file = left.pop(name, None)
        if file is not None:
            for imported in file.dependency:
                add(imported)
            pool.Add(file)

    for file in files:
        add(file.name)


def _message(pool: Any, name: str, package: str) -> Any:
    """Return the root, also by a name without its package, as Pulsar takes it."""
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        return pool.FindMessageTypeByName(f"{package}.{name}")


class _MessageShaper:
    """None stands for what has no columns: a message without fields, and what is cut where a recursion ends."""

    def __init__(self, options: Options) -> None:
        self._limit = options.recursion_depth
        self._looked_at: dict[str, bool] = {}
        self._made: dict[tuple[str, frozenset[tuple[str, int]]], Message | None] = {}

    def message(self, descriptor: Any, depths: dict[str, int]) -> Message | None:
        name = descriptor.full_name
        depth = depths.get(name, 0)
        if depth > 0 and self._limit <= 0:
            raise InvalidDefinition(f"the message {name} is recursive: Spark needs a maximum recursion depth")
        if depth > 0 and depth >= self._limit:
            return None
        # A message that holds itself twice is the same thing in both places: written out for each it would never end.
        state = (name, frozenset(depths.items()))
        if state not in self._made:
            inner = {**depths, name: depth + 1}
            found = (self._part(field, inner) for field in descriptor.fields)
            parts = tuple(part for part in found if part is not None)
            self._made[state] = Message(name, parts) if parts or not depths else None
        return self._made[state]

    def _part(self, field: Any, depths: dict[str, int]) -> MessagePart | None:
        value, key = field, None
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key = self._scalar(entry.fields_by_name["key"])
            value = entry.fields_by_name["value"]
        shape = self._shape(value, depths)
        if shape is None:
            return None
        # The oneof that protoc makes for `optional` has one field, and says nothing more.
        oneof = field.containing_oneof if field.containing_oneof and len(field.containing_oneof.fields) > 1 else None
        return MessagePart(
            field.name,
            field.number,
            shape,
            repeated=field.is_repeated,
            presence=field.has_presence,
            required=field.is_required,
            key=key,
            # Of a oneof one field is set at most.
            default=field.default_value if field.has_default_value and oneof is None else None,
            oneof=oneof.name if oneof is not None else None,
        )

    def _shape(self, field: Any, depths: dict[str, int]) -> Shape | None:
        if field.message_type is None:
            return self._scalar(field)
        moment = _MOMENTS.get(field.message_type.full_name)
        return Moment(moment) if moment is not None else self.message(field.message_type, depths)

    def _scalar(self, field: Any) -> Scalar:
        kind = get_type_name(field)
        if kind == "string":
            return Scalar(kind, SCALARS[kind], any_bytes=not self._is_proto3(field.file))
        if field.enum_type is None:
            return Scalar(kind, SCALARS[kind])
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return Scalar(kind, SCALARS[kind], names, not field.enum_type.is_closed)

    def _is_proto3(self, file: Any) -> bool:
        """Whether protobuf itself rejects text that is not UTF-8 in messages of the file."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        if file.name not in self._looked_at:
            self._looked_at[file.name] = FileDescriptorProto.FromString(file.serialized_pb).syntax == "proto3"
        return self._looked_at[file.name]


def make_message_class(descriptor: Any) -> Any:
    """Return the class for messages of `descriptor`; fields of closed enums hold the enum's numbers.

    An enum of proto2 is closed: protobuf keeps a number without a name among the unknown fields, and a list, map or field has
    lost it. As a number, which is the same on the wire, it stays where it was sent.
    """
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_opened(descriptor))


def _opened(descriptor: Any) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    files = list(_files(descriptor.file, set()))
    copies = [FileDescriptorProto.FromString(file.serialized_pb) for file in files]
    changes = [
        _open_fields(file.message_types_by_name.values(), copy.message_type)
        for file, copy in zip(files, copies, strict=True)
    ]
    if not any(changes):
        return descriptor
    pool = DescriptorPool()
    for copy in copies:
        pool.Add(copy)
    return pool.FindMessageTypeByName(descriptor.full_name)


def _files(file: Any, seen: set[str]) -> Iterator[Any]:
    """Return the file, behind all that it imports."""
    if file.name not in seen:
        seen.add(file.name)
        for imported in file.dependencies:
            yield from _files(imported, seen)
        yield file


def _open_fields(messages: Iterable[Any], copies: Any) -> bool:
    """Make numbers of the fields of closed enums in `copies`; whether there were any."""
    found = False
    by_name = {copy.name: copy for copy in copies}
    for message in messages:
        copy = by_name[message.name]
        fields = {field.number: field for field in copy.field}
        for field in message.fields:
            if field.enum_type is not None and field.enum_type.is_closed:
                number = fields[field.number]
                number.type = number.TYPE_INT32
                number.ClearField("type_name")
                if number.HasField("default_value"):
                    number.default_value = str(field.default_value)
                found = True
        found |= _open_fields(message.nested_types, copy.nested_type)
    return found
