"""Descriptors with their context: full names, resolved features, and where they stand in the `.proto`.

`google.protobuf.descriptor_pb2` gives the facts one by one; the rules ask about elements as Go's protoreflect and
Java's Descriptors answer, with the file's edition taken into account.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from schemactl.formats.protobuf_native.features import Features, resolve

if TYPE_CHECKING:
    from schemactl.formats.protobuf_native.image import File

Path = tuple[int, ...]
"""Field numbers and indexes from a FileDescriptorProto to a part of it (`SourceCodeInfo.Location.path`)."""

Kind = int
"""A `FieldDescriptorProto.Type`; a message with delimited encoding is a GROUP whatever the file's syntax."""

DOUBLE = FieldDescriptorProto.TYPE_DOUBLE
FLOAT = FieldDescriptorProto.TYPE_FLOAT
BOOL = FieldDescriptorProto.TYPE_BOOL
STRING = FieldDescriptorProto.TYPE_STRING
BYTES = FieldDescriptorProto.TYPE_BYTES
ENUM = FieldDescriptorProto.TYPE_ENUM
MESSAGE = FieldDescriptorProto.TYPE_MESSAGE
GROUP = FieldDescriptorProto.TYPE_GROUP

KIND_NAMES: Mapping[int, str] = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
"""As a `.proto` writes them."""

EXPLICIT, IMPLICIT, REQUIRED, REPEATED, MAP = (
    "optional with explicit presence",
    "optional with implicit presence",
    "required",
    "repeated",
    "map",
)
"""How many values a field has, in buf's words."""


@dataclass(eq=False, repr=False)
class Message:
    """A message, also the entry of a map."""

    file: File
    path: Path
    proto: DescriptorProto
    nested_name: str
    parent: Message | None
    features: Features

    @property
    def full_name(self) -> str:
        """With the package: `web.Click.Position`."""
        return self.file.qualified(self.nested_name)

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"/messages/{self.full_name}"

    @property
    def is_map_entry(self) -> bool:
        """Made by protoc for a map field."""
        return self.proto.options.map_entry

    def fields(self) -> Mapping[int, Field]:
        """By number, extensions left out."""
        return self._fields

    def map_fields(self) -> Mapping[str, Field]:
        """The fields that are maps, by the full name of their entries' message."""
        return self._map_fields

    @cached_property
    def _fields(self) -> dict[int, Field]:
        entries = frozenset(
            f".{self.full_name}.{nested.name}"
            for nested in self.proto.nested_type
            if nested.options.map_entry
        )
        found = {}
        for index, proto in enumerate(self.proto.field):
            path = (*self.path, 2, index)
            found[proto.number] = make_field(self.file, path, proto, self, self.features, map_entries=entries)
        return found

    @cached_property
    def _map_fields(self) -> dict[str, Field]:
        return {field.type_name: field for field in self._fields.values() if field.cardinality == MAP}

    def oneofs(self) -> list[Oneof]:
        """In the order of the file, the synthetic ones of proto3's `optional` left out."""
        synthetic = {proto.oneof_index for proto in self.proto.field if proto.proto3_optional}
        return [
            Oneof(self, index, proto.name)
            for index, proto in enumerate(self.proto.oneof_decl)
            if index not in synthetic
        ]


@dataclass(slots=True, eq=False, repr=False)
class Field:
    """A field of a message, or an extension."""

    file: File
    path: Path
    proto: FieldDescriptorProto
    message: Message | None
    features: Features
    kind: Kind
    cardinality: str

    @property
    def name(self) -> str:
        """Short for a field, with the package for an extension."""
        return self.extension_name or self.proto.name

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        if self.message is None or self.proto.extendee:
            return f"/extensions/{self.extension_name}"
        return f"{self.message.pointer}/fields/{self.proto.number}"

    @property
    def extension_name(self) -> str:
        """The full name of an extension; "" for a field."""
        return self.file.qualified(self.nested_name) if self.proto.extendee else ""

    @property
    def nested_name(self) -> str:
        """Without the package: `Click.position`."""
        return f"{self.message.nested_name}.{self.proto.name}" if self.message else self.proto.name

    @property
    def type_name(self) -> str:
        """The full name of a message or enum type, "" for a scalar."""
        return self.proto.type_name.removeprefix(".")

    @property
    def enum(self) -> Enum:
        """The type of an enum field."""
        return self.file.image.enum(self.type_name)

    @property
    def is_closed_enum(self) -> bool:
        """Readers take only the listed numbers; Java and C++ read every enum field of a proto2 file so."""
        return self.kind == ENUM and (self.enum.is_closed or bool(self.features.java_legacy_closed_enum))

    @property
    def is_message(self) -> bool:
        """Holds a message, delimited or not."""
        return self.kind in (MESSAGE, GROUP)

    @property
    def is_repeated(self) -> bool:
        """A list or a map."""
        return self.cardinality in (REPEATED, MAP)

    @property
    def in_map_entry(self) -> bool:
        """The key or the value of a map."""
        return self.message is not None and not self.proto.extendee and self.message.is_map_entry

    @property
    def oneof(self) -> str:
        """The name of the oneof it is a member of, "" for none; proto3's `optional` is none."""
        if self.message is None or not self.proto.HasField("oneof_index") or self.proto.proto3_optional:
            return ""
        return self.message.proto.oneof_decl[self.proto.oneof_index].name


@dataclass(slots=True, eq=False, repr=False)
class Oneof:
    """A group of fields of which one is set at most."""

    message: Message
    index: int
    name: str

    @property
    def nested_name(self) -> str:
        """Without the package: `Click.target`."""
        return f"{self.message.nested_name}.{self.name}"

    @property
    def file(self) -> File:
        """The file that declares it."""
        return self.message.file

    @property
    def path(self) -> Path:
        """From the file's descriptor to its own."""
        return (*self.message.path, 8, self.index)

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"{self.message.pointer}/oneofs/{self.name}"

    @property
    def numbers(self) -> list[int]:
        """The numbers of its members, in order."""
        return sorted(
            proto.number
            for proto in self.message.proto.field
            if proto.HasField("oneof_index") and proto.oneof_index == self.index
        )


@dataclass(slots=True, eq=False, repr=False)
class Enum:
    """An enum."""

    file: File
    path: Path
    proto: EnumDescriptorProto
    nested_name: str
    parent: Message | None
    features: Features

    @property
    def full_name(self) -> str:
        """With the package: `web.Click.Kind`."""
        return self.file.qualified(self.nested_name)

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"/enums/{self.full_name}"

    @property
    def is_closed(self) -> bool:
        """Readers take only the listed numbers; others go to the unknown fields."""
        return self.features.enum_type == FeatureSet.CLOSED

    def values(self) -> list[EnumValue]:
        """In the order of the file."""
        return [
            EnumValue(self, (*self.path, 2, index), proto) for index, proto in enumerate(self.proto.value)
        ]

    def numbers(self) -> dict[str, int]:
        """Number by name."""
        return {value.name: value.number for value in self.proto.value}


@dataclass(slots=True, eq=False, repr=False)
class EnumValue:
    """One name of one number of an enum."""

    enum: Enum
    path: Path
    proto: EnumValueDescriptorProto

    @property
    def nested_name(self) -> str:
        """Without the package: `Click.Kind.AD`."""
        return f"{self.enum.nested_name}.{self.proto.name}"

    @property
    def file(self) -> File:
        """The file that declares it."""
        return self.enum.file

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"{self.enum.pointer}/values/{self.proto.name}"


@dataclass(slots=True, eq=False, repr=False)
class Method:
    """An RPC."""

    service: Service
    path: Path
    proto: MethodDescriptorProto

    @property
    def nested_name(self) -> str:
        """Without the package: `Clicks.List`."""
        return f"{self.service.proto.name}.{self.proto.name}"

    @property
    def file(self) -> File:
        """The file that declares it."""
        return self.service.file

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"{self.service.pointer}/methods/{self.proto.name}"


@dataclass(slots=True, eq=False, repr=False)
class Service:
    """A service and its RPCs."""

    file: File
    path: Path
    proto: ServiceDescriptorProto

    @property
    def nested_name(self) -> str:
        """Its name: services stand at the top of a file."""
        return self.proto.name

    @property
    def full_name(self) -> str:
        """With the package: `web.Clicks`."""
        return self.file.qualified(self.proto.name)

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"/services/{self.full_name}"

    def methods(self) -> dict[str, Method]:
        """By name."""
        return {
            proto.name: Method(self, (*self.path, 2, index), proto)
            for index, proto in enumerate(self.proto.method)
        }


def make_field(
    file: File,
    path: Path,
    proto: FieldDescriptorProto,
    message: Message | None,
    scope: Features,
    *,
    map_entries: frozenset[str] = frozenset(),
) -> Field:
    """The field `proto` in a message (or file) with the features `scope`."""
    features = features_of(scope, proto)
    is_map = proto.type_name in map_entries
    kind: Kind = proto.type
    if (
        kind == MESSAGE
        and features.message_encoding == FeatureSet.DELIMITED
        # Maps are length-prefixed whatever the features say, and so are their values.
        and not is_map
        and not (message is not None and message.is_map_entry and not proto.extendee)
    ):
        kind = GROUP
    if is_map:
        cardinality = MAP
    elif proto.label == FieldDescriptorProto.LABEL_REPEATED:
        cardinality = REPEATED
    elif proto.label == FieldDescriptorProto.LABEL_REQUIRED or (
        features.field_presence == FeatureSet.LEGACY_REQUIRED and not proto.extendee
    ):
        cardinality = REQUIRED
    elif (
        features.field_presence != FeatureSet.IMPLICIT
        or kind in (MESSAGE, GROUP)
        or proto.extendee
        or proto.HasField("oneof_index")
    ):
        cardinality = EXPLICIT
    else:
        cardinality = IMPLICIT
    return Field(file, path, proto, message, features, kind, cardinality)


def features_of(
    scope: Features, proto: DescriptorProto | EnumDescriptorProto | FieldDescriptorProto
) -> Features:
    """The features in force for `proto` inside something with the features `scope`."""
    return resolve(scope, proto.options) if proto.HasField("options") else scope
