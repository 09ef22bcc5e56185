"""Load the descriptor set of a protobuf schema, and map its root message to Arrow types.

The mapping follows Spark's protobuf support with its safe options. Unsigned numbers have the next wider type, because they would become
negative in a type of the same width (`upcast.unsigned.ints`). Unset fields have their default if they have no presence
(`emit.default.values`) or declare a default. Messages without fields have no columns.
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

from .arrow_types import DURATION, TIMESTAMP, DepthLimit, Options
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
"""The types of columns by the name of the type in a `.proto` file."""

_MOMENTS: Final = {"google.protobuf.Timestamp": TIMESTAMP, "google.protobuf.Duration": DURATION}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a text, bytes or an enum.

    Attributes:
        kind: the name of the type in the `.proto` file.
        type: the type of the column.
        names: the names of an enum's values by number.
        open_enum: whether an enum can have numbers without a name.
        any_bytes: whether protobuf does not validate that a text is UTF-8, as in proto2.
    """

    kind: str
    type: pa.DataType
    names: dict[int, str] | None = None
    open_enum: bool = False
    any_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A google.protobuf.Timestamp or Duration."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A field of a message.

    Attributes:
        name: the name in the `.proto` file.
        number: the field number on the wire.
        shape: the shape of the value, or of each value of a repeated field.
        repeated: whether the field is a list, or with `key` a map.
        presence: whether an unset field decodes to null.
        required: whether a message without the field is invalid.
        key: the shape of a map's keys.
        default: the declared default, which an unset field decodes to; the number of an enum.
        oneof: the name of the oneof with several fields that the field belongs to.
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
        """The type of the column."""
        if self.key is not None:
            return pa.map_(self.key.type, pa.field("value", self.shape.type))
        return pa.list_(pa.field("element", self.shape.type)) if self.repeated else self.shape.type


@dataclass(frozen=True)
class Message:
    """A message; `parts` are the fields that have columns, in the order of the `.proto` file."""

    full_name: str
    parts: tuple[MessagePart, ...]

    @cached_property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return pa.struct([pa.field(part.name, part.type) for part in self.parts])


Shape = Scalar | Moment | Message


@dataclass(frozen=True, slots=True)
class Root:
    """The root message of a definition: the class that parses it, and its shape."""

    message_class: Any
    shape: Message


def load_root(definition: Definition, options: Options) -> Root:
    """Return the root message of a PROTOBUF_NATIVE definition, or of a PROTOBUF definition with a descriptor set.

    Raises:
        CodecUnavailable: protobuf is not installed, or a PROTOBUF definition has no descriptor set.
        InvalidDefinition: the descriptor set cannot be used, or a message is recursive and no depth is set.
    """
    descriptor = load_descriptor(definition)
    shape = _MessageShaper(options).make_message(descriptor, {})
    assert shape is not None  # noqa: S101  the outermost message is never cut, because its depth is 0
    return Root(make_message_class(descriptor), shape)


def load_descriptor(definition: Definition) -> Any:
    """Return the descriptor of the root message of a definition.

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
        problem = f"it has no {error}" if isinstance(error, KeyError) else error
        raise InvalidDefinition(f"the definition is not a descriptor set in Pulsar's form: {problem}") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        _add_files(pool, files.file)
        # The pool does not find a file whose name is not ASCII.
        packages = {file.name: file.package for file in files.file}
        package = packages[file_name]
        try:
            return pool.FindMessageTypeByName(name)
        except KeyError:
            # Pulsar also accepts a name without the package.
            return pool.FindMessageTypeByName(f"{package}.{name}")
    except (KeyError, TypeError, RecursionError) as error:
        raise InvalidDefinition(f"the descriptor set cannot be used: {error}") from None


def _add_files(pool: Any, files: Any) -> None:
    """Add all files, each after the files that it imports."""
    remaining = {file.name: file for file in files}

    def add(name: str) -> None:
        file = remaining.pop(name, None)
        if file is not None:
            for imported in file.dependency:
                add(imported)
            _clear_repeated_defaults(file.message_type)
            pool.Add(file)

    for file in files:
        add(file.name)


def _clear_repeated_defaults(messages: Any) -> None:
    """Remove the defaults of repeated fields: they have no meaning, and protobuf's C code crashes when it prints them."""
    for message in messages:
        for field in message.field:
            if field.label == field.LABEL_REPEATED:
                field.ClearField("default_value")
        _clear_repeated_defaults(message.nested_type)


def describe_messages(definition: Definition) -> tuple[str, list[Any]]:
    """Return the parts of a definition that describe its messages, for a comparison: the name of the root, and the files.

    The clients of Java, Go and Python send them in different forms: locations, default JSON names and the text of a float's default
    are left out.

    Raises the same errors as `load_descriptor`.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    root = load_descriptor(definition)
    files = [FileDescriptorProto.FromString(file.serialized_pb) for file in _iterate_files(root.file, set())]
    for file in files:
        file.ClearField("source_code_info")
        _normalize_fields(file.extension)
        for message in file.message_type:
            _normalize_message(message)
    return root.full_name, sorted(files, key=lambda file: str(file.name))


def _normalize_message(message: Any) -> None:
    """Remove what depends on the client that sent the definition from the fields of a message, and of the messages in it."""
    _normalize_fields(message.field)
    _normalize_fields(message.extension)
    for nested in message.nested_type:
        _normalize_message(nested)


def _normalize_fields(fields: Iterable[Any]) -> None:
    for field in fields:
        first, *words = field.name.split("_")
        # protoc's ToJsonName: the letter after each underscore is upper case, and nothing else changes.
        if field.json_name == first + "".join(word[:1].upper() + word[1:] for word in words):
            field.ClearField("json_name")
        if field.HasField("default_value") and get_type_name(field) in ("float", "double"):
            field.default_value = repr(float(field.default_value))


def get_type_name(field: Any) -> str:
    """Return the name of a field's type in a `.proto` file; "message", "group" or "enum" for a named type."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    name: str = FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


class _MessageShaper:
    """Makes the shapes of messages. A shape is None without columns: for a message without fields, or where a recursion is cut."""

    def __init__(self, options: Options) -> None:
        self._depth_limit = DepthLimit(options)
        self._proto3_by_file: dict[str, bool] = {}
        self._messages: dict[tuple[str, frozenset[tuple[str, int]]], Message | None] = {}

    def make_message(self, descriptor: Any, depths: dict[str, int]) -> Message | None:
        name = descriptor.full_name
        inner = self._depth_limit.enter("message", name, depths)
        if inner is None:
            return None
        # A message with two recursive fields shares their shapes; otherwise the number of shapes would grow exponentially.
        state = (name, frozenset(depths.items()))
        if state not in self._messages:
            all_parts = (self._make_part(field, inner) for field in descriptor.fields)
            parts = tuple(part for part in all_parts if part is not None)
            self._messages[state] = Message(name, parts) if parts or not depths else None
        return self._messages[state]

    def _make_part(self, field: Any, depths: dict[str, int]) -> MessagePart | None:
        self._depth_limit.count_part()
        value, key = field, None
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            numbers = {part.name: part.number for part in entry.fields}
            if numbers.get("key") != 1 or numbers.get("value") != 2:
                raise InvalidDefinition(
                    f"the entry {entry.full_name} of a map has no key with number 1 and no value with number 2"
                )
            key = self._make_scalar(entry.fields_by_name["key"])
            value = entry.fields_by_name["value"]
        shape: Shape | None
        if value.message_type is None:
            shape = self._make_scalar(value)
        elif moment := _MOMENTS.get(value.message_type.full_name):
            shape = Moment(moment)
        else:
            shape = self.make_message(value.message_type, depths)
        if shape is None:
            return None
        # protoc makes a oneof of one field for `optional`, which has no effect.
        oneof = field.containing_oneof if field.containing_oneof and len(field.containing_oneof.fields) > 1 else None
        return MessagePart(
            field.name,
            field.number,
            shape,
            repeated=field.is_repeated,
            presence=field.has_presence,
            required=field.is_required,
            key=key,
            # A field of a oneof without a value was not sent, even if it declares a default.
            default=field.default_value if field.has_default_value and oneof is None else None,
            oneof=oneof.name if oneof is not None else None,
        )

    def _make_scalar(self, field: Any) -> Scalar:
        kind = get_type_name(field)
        if kind == "string":
            return Scalar(kind, SCALARS[kind], any_bytes=not self._is_proto3(field.file))
        if field.enum_type is None:
            return Scalar(kind, SCALARS[kind])
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return Scalar(kind, SCALARS[kind], names, not field.enum_type.is_closed)

    def _is_proto3(self, file: Any) -> bool:
        """Return whether the file is proto3, for which protobuf itself rejects text that is not UTF-8."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        if file.name not in self._proto3_by_file:
            self._proto3_by_file[file.name] = FileDescriptorProto.FromString(file.serialized_pb).syntax == "proto3"
        return self._proto3_by_file[file.name]


# Message classes with open enums


def make_message_class(descriptor: Any) -> Any:
    """Make the class of messages of `descriptor`, in which fields of closed enums are numbers.

    Enums of proto2 are closed: protobuf moves a number without a name from its field, list or map to the unknown fields. As an integer, which is
    the same on the wire, it remains in its field.
    """
    from google.protobuf import message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    files = list(_iterate_files(descriptor.file, set()))
    copies = [FileDescriptorProto.FromString(file.serialized_pb) for file in files]
    changes = [
        _open_fields(file.message_types_by_name.values(), copy.message_type)
        for file, copy in zip(files, copies, strict=True)
    ]
    if any(changes):
        pool = DescriptorPool()
        for copy in copies:
            pool.Add(copy)
        descriptor = pool.FindMessageTypeByName(descriptor.full_name)
    return message_factory.GetMessageClass(descriptor)


def _iterate_files(file: Any, visited: set[str]) -> Iterator[Any]:
    """Yield all files that a file imports, and then the file."""
    if file.name not in visited:
        visited.add(file.name)
        for imported in file.dependencies:
            yield from _iterate_files(imported, visited)
        yield file


def _open_fields(messages: Iterable[Any], copies: Any) -> bool:
    """Change fields of closed enums in `copies` to integers, and return whether there are any."""
    has_changed = False
    copies_by_name = {copy.name: copy for copy in copies}
    for message in messages:
        copy = copies_by_name[message.name]
        fields = {field.number: field for field in copy.field}
        for field in message.fields:
            if field.enum_type is not None and field.enum_type.is_closed:
                integer = fields[field.number]
                integer.type = integer.TYPE_INT32
                integer.ClearField("type_name")
                if integer.HasField("default_value"):
                    integer.default_value = str(field.default_value)
                has_changed = True
        has_changed |= _open_fields(message.nested_types, copy.nested_type)
    return has_changed
