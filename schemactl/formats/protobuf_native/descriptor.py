"""Compiled `.proto` files: full names, resolved features, and places in the `.proto`.

`google.protobuf.descriptor_pb2` gives the facts one by one; the rules ask about elements as Go's protoreflect and
Java's Descriptors answer, with the file's edition taken into account.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
    SourceCodeInfo,
)

from schemactl.formats.protobuf_native.features import Features, file_features, resolve
from schemactl.formats.protobuf_native.kinds import (
    ENUM,
    GROUP,
    MAP,
    MESSAGE,
    REPEATED,
    Kind,
    cardinality_of,
    kind_of,
)
from schemactl.formats.protobuf_native.source_map import Path, SourceMap


class _Named:
    """A message, enum or service: something with a full name."""

    __slots__ = ()
    file: File
    nested_name: str

    @property
    def full_name(self) -> str:
        """With the package: `web.Click.Position`."""
        return self.file.qualified(self.nested_name)


@dataclass(eq=False, repr=False)
class ProtoMessage(_Named):
    """A message, also the entry of a map."""

    file: File
    path: Path
    proto: DescriptorProto
    nested_name: str
    parent: ProtoMessage | None
    features: Features

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return f"/messages/{self.full_name}"

    @property
    def is_map_entry(self) -> bool:
        """Made by protoc for a map field."""
        return self.proto.options.map_entry

    def fields(self) -> Mapping[int, ProtoField]:
        """By number, extensions left out."""
        return self._fields

    def map_fields(self) -> Mapping[str, ProtoField]:
        """Return the fields that are maps, by the full name of their entries' message."""
        return self._map_fields

    @cached_property
    def _fields(self) -> dict[int, ProtoField]:
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
    def _map_fields(self) -> dict[str, ProtoField]:
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
class ProtoField:
    """A field of a message, or an extension."""

    file: File
    path: Path
    proto: FieldDescriptorProto
    message: ProtoMessage | None
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
    def enum(self) -> ProtoEnum:
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

    message: ProtoMessage
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
class ProtoEnum(_Named):
    """An enum."""

    file: File
    path: Path
    proto: EnumDescriptorProto
    nested_name: str
    parent: ProtoMessage | None
    features: Features

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
        """Return each number by its name."""
        return {value.name: value.number for value in self.proto.value}


@dataclass(slots=True, eq=False, repr=False)
class EnumValue:
    """One name of one number of an enum."""

    enum: ProtoEnum
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
class Service(_Named):
    """A service and its RPCs."""

    file: File
    path: Path
    proto: ServiceDescriptorProto
    nested_name: str

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
    message: ProtoMessage | None,
    scope: Features,
    *,
    map_entries: frozenset[str] = frozenset(),
) -> ProtoField:
    """Return the field `proto` in a message (or file) with the features `scope`."""
    features = features_of(scope, proto)
    is_map = proto.type_name in map_entries
    in_map_entry = message is not None and message.is_map_entry and not proto.extendee
    kind = kind_of(proto, features, is_map_part=is_map or in_map_entry)
    cardinality = MAP if is_map else cardinality_of(proto, features, kind)
    return ProtoField(file, path, proto, message, features, kind, cardinality)


def features_of(
    scope: Features, proto: DescriptorProto | EnumDescriptorProto | FieldDescriptorProto
) -> Features:
    """Return the features in force for `proto` inside something with the features `scope`."""
    return resolve(scope, proto.options) if proto.HasField("options") else scope


@dataclass(slots=True)
class Declarations:
    """What some files declare, by full name; extensions by extended message and number."""

    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, ProtoEnum] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    extensions: dict[tuple[str, int], ProtoField] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class File:
    """A compiled `.proto`. `proto` has no source info: that stands apart, so that equal files are equal."""

    image: Image
    proto: FileDescriptorProto
    source_info: SourceCodeInfo

    @property
    def file(self) -> File:
        """Itself, as every element has a file."""
        return self

    @property
    def path(self) -> Path:
        """Nothing: it is the start of every path."""
        return ()

    @property
    def pointer(self) -> str:
        """Its name in pointers."""
        return "/files/" + self.name.replace("~", "~0").replace("/", "~1")

    @property
    def name(self) -> str:
        """As other files import it."""
        return self.proto.name

    @property
    def nested_name(self) -> str:
        """Its name: files have no package around them."""
        return self.proto.name

    def qualified(self, nested_name: str) -> str:
        """Return the full name of what the file calls `nested_name`."""
        return f"{self.proto.package}.{nested_name}" if self.proto.package else nested_name

    @cached_property
    def features(self) -> Features:
        """In force at the top of the file."""
        return file_features(self.proto)

    @cached_property
    def context(self) -> tuple[object, ...]:
        """What else than its own descriptor decides the meaning of a message of this file."""
        return self.proto.package, self.proto.syntax, self.proto.edition, self.features

    @cached_property
    def places(self) -> SourceMap:
        """Where its parts stand in the text."""
        return SourceMap(self.source_info)

    @cached_property
    def declared(self) -> Declarations:
        """Everything this file declares."""
        return declared_by([self])

    @cached_property
    def elements(self) -> tuple[ProtoMessage | ProtoEnum | ProtoField | Service, ...]:
        """Everything declared in the file, each message before what is nested in it."""
        return tuple(self._walk())

    def _walk(self) -> Iterator[ProtoMessage | ProtoEnum | ProtoField | Service]:
        for index, service in enumerate(self.proto.service):
            yield Service(self, (6, index), service, service.name)
        for index, extension in enumerate(self.proto.extension):
            yield make_field(self, (7, index), extension, None, self.features)
        for index, enum in enumerate(self.proto.enum_type):
            yield ProtoEnum(self, (5, index), enum, enum.name, None, features_of(self.features, enum))
        for index, message in enumerate(self.proto.message_type):
            yield from self._inside(message, (4, index), None)

    def _inside(
        self, proto: DescriptorProto, path: Path, parent: ProtoMessage | None
    ) -> Iterator[ProtoMessage | ProtoEnum | ProtoField]:
        scope, features = (f"{parent.nested_name}.", parent.features) if parent else ("", self.features)
        message = ProtoMessage(self, path, proto, scope + proto.name, parent, features_of(features, proto))
        yield message
        for index, extension in enumerate(proto.extension):
            yield make_field(self, (*path, 6, index), extension, message, message.features)
        for index, enum in enumerate(proto.enum_type):
            name = f"{message.nested_name}.{enum.name}"
            yield ProtoEnum(self, (*path, 4, index), enum, name, message, features_of(message.features, enum))
        for index, nested in enumerate(proto.nested_type):
            yield from self._inside(nested, (*path, 3, index), message)


@dataclass(eq=False, repr=False)
class Image:
    """Compiled files and what they declare."""

    files: dict[str, File] = field(default_factory=dict)

    @classmethod
    def of(cls, files: FileDescriptorSet) -> Image:
        """Return the image of `files`; takes their source info out of them."""
        image = cls()
        for proto in files.file:
            source_info = proto.source_code_info
            proto.ClearField("source_code_info")
            image.files[proto.name] = File(image, proto, source_info)
        return image

    @cached_property
    def declared(self) -> Declarations:
        """Everything declared in any file."""
        return declared_by(self.files.values())

    @cached_property
    def extensions_of(self) -> dict[str, dict[int, ProtoField]]:
        """The extensions of each message, by number."""
        found: dict[str, dict[int, ProtoField]] = {}
        for (extendee, number), extension in self.declared.extensions.items():
            found.setdefault(extendee, {})[number] = extension
        return found

    def message(self, full_name: str) -> ProtoMessage:
        """KeyError: no file declares it."""
        return self.declared.messages[full_name]

    def enum(self, full_name: str) -> ProtoEnum:
        """KeyError: no file declares it."""
        return self.declared.enums[full_name]


def declared_by(files: Iterable[File]) -> Declarations:
    """Everything `files` declare; of two things with one name the first."""
    found = Declarations()
    for file in files:
        for element in file.elements:
            if isinstance(element, ProtoMessage):
                found.messages.setdefault(element.full_name, element)
            elif isinstance(element, ProtoEnum):
                found.enums.setdefault(element.full_name, element)
            elif isinstance(element, Service):
                found.services.setdefault(element.full_name, element)
            else:
                key = element.proto.extendee.removeprefix("."), element.proto.number
                found.extensions.setdefault(key, element)
    return found
