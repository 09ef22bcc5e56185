"""The elements of compiled `.proto` files like in Java and Go, with features, kinds and defaults resolved.

`google.protobuf.descriptor_pb2` has the raw facts. The rules need elements like the ones in Go's protoreflect and Java's Descriptors,
which take the file's edition into account. proto2 and proto3 are also editions: `syntax` selects the defaults (protobuf's "Feature
Settings for Editions").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

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

from schemactl.core.errors import InvalidSchema
from schemactl.core.json_pointer import join_pointer
from schemactl.formats.protobuf.default_texts import format_default, has_unusual_default
from schemactl.formats.protobuf.features import Features, get_features, get_file_features
from schemactl.formats.protobuf.java_descriptors import parse_default
from schemactl.formats.protobuf.kinds import (
    ENUM,
    EXPLICIT,
    GROUP,
    IMPLICIT,
    MAP,
    MAP_KEYS,
    MESSAGE,
    REPEATED,
    REQUIRED,
    Kind,
)

MAX_FIELD_NUMBER = (1 << 29) - 1
"""The highest field number that fits into a tag."""

MAX_ENUM_NUMBER = (1 << 31) - 1

Path: TypeAlias = tuple[int, ...]
"""The field numbers and indices from a FileDescriptorProto to a part of it (`SourceCodeInfo.Location.path`)."""


@dataclass(eq=False, repr=False)
class Image:
    """Compiled files and their declarations.

    Attributes:
        files: the files by name.
        rendered_sets: by the name of a root's file, the descriptor set in Base64 as Java's client sends it (see `rendering.render`).
    """

    files: dict[str, File] = field(default_factory=dict)
    rendered_sets: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: FileDescriptorSet) -> Image:
        """Return the image of `files`, and remove their source info from `files`."""
        image = cls()
        for proto in files.file:
            source_info = proto.source_code_info
            proto.ClearField("source_code_info")
            image.files[proto.name] = File(image, proto, source_info)
        return image

    @property
    def stored_protos(self) -> dict[str, FileDescriptorProto]:
        """The descriptors of the files as they were read, by name."""
        return {name: file.stored_proto for name, file in self.files.items()}

    def list_reachable(self, name: str) -> list[str]:
        """Return `name` and the names of its direct and indirect imports, without missing files."""
        names = {name: None}
        pending = [name]
        while pending:
            for dependency in self.files[pending.pop()].stored_proto.dependency:
                if dependency in self.files and dependency not in names:
                    names[dependency] = None
                    pending.append(dependency)
        return list(names)

    @cached_property
    def declared(self) -> Declarations:
        """The declarations of all files."""
        return collect_declarations(self.files.values())

    @cached_property
    def has_duplicate_types(self) -> bool:
        """Whether several files declare one type, which Java accepts."""
        counts = [len(file.declared.messages) + len(file.declared.enums) for file in self.files.values()]
        return sum(counts) > len(self.declared.messages) + len(self.declared.enums)

    @cached_property
    def extensions_of(self) -> dict[str, dict[int, ProtoField]]:
        """The extensions by extended message and number."""
        extensions: dict[str, dict[int, ProtoField]] = {}
        for (extendee, number), extension in self.declared.extensions.items():
            extensions.setdefault(extendee, {})[number] = extension
        return extensions

    @cached_property
    def by_pointer(self) -> dict[str, Element]:
        """The elements by pointer; if two have the same pointer, the first."""
        declared = self.declared
        elements: dict[str, Element] = {file.pointer: file for file in self.files.values()}
        elements.update((extension.pointer, extension) for extension in declared.extensions.values())
        for message in declared.messages.values():
            parts: list[Element] = [message, *message.fields().values(), *message.oneofs()]
            elements.update((part.pointer, part) for part in parts)
        for enum in declared.enums.values():
            elements.update((part.pointer, part) for part in (enum, *enum.values()))
        for service in declared.services.values():
            elements.update((part.pointer, part) for part in (service, *service.methods().values()))
        return elements


@dataclass(slots=True)
class Declarations:
    """The declarations of some files by full name; extensions by extended message and number."""

    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, ProtoEnum] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    extensions: dict[tuple[str, int], ProtoField] = field(default_factory=dict)


def collect_declarations(files: Iterable[File]) -> Declarations:
    """Return the declarations of `files`; if two have the same name, the first."""
    declarations = Declarations()
    for file in files:
        for element in file.elements:
            match element:
                case ProtoMessage():
                    declarations.messages.setdefault(element.full_name, element)
                case ProtoEnum():
                    declarations.enums.setdefault(element.full_name, element)
                case Service():
                    declarations.services.setdefault(element.full_name, element)
                case ProtoField():
                    key = element.proto.extendee.removeprefix("."), element.proto.number
                    declarations.extensions.setdefault(key, element)
    return declarations


@dataclass(slots=True, eq=False, repr=False)
class Element:
    """A declared part of a file.

    Attributes:
        file: the file that declares it.
        path: the path from the file's descriptor.
        nested_name: the name without the package: `Click.position`.
        pointer: the name in pointers (see `definition`).
    """

    file: File
    path: Path
    nested_name: str
    pointer: str

    @property
    def full_name(self) -> str:
        """The name with the package: `web.Click.Position`."""
        return self.file.qualify(self.nested_name)

    def part(self, number: int, index: int, noun: str, name: str) -> tuple[File, Path, str, str]:
        """Return the first arguments of the element `name` inside this one: item `index` of the field `number`."""
        path = (*self.path, number, index)
        return self.file, path, f"{self.nested_name}.{name}", f"{self.pointer}/{noun}/{name}"


class File(Element):
    """A compiled `.proto` file.

    Attributes:
        image: all files of the descriptor set.
        stored_proto: the descriptor that was read, without its source info, so that files with equal content are equal.
        source_info: the locations of its parts in the text.
        name: its path in imports.
    """

    def __init__(self, image: Image, stored_proto: FileDescriptorProto, source_info: SourceCodeInfo) -> None:
        super().__init__(self, (), stored_proto.name, join_pointer(("files", stored_proto.name)))
        self.image = image
        self.stored_proto = stored_proto
        self.source_info = source_info
        self.name: str = stored_proto.name

    @cached_property
    def proto(self) -> FileDescriptorProto:
        """The descriptor as protoc writes it: with full type names and the type of each field, and with the usual texts of defaults."""
        # protoc completes all names; other generators may write them like in a `.proto` file.
        if all(
            getattr(user, attribute).startswith(".") and (attribute != "type_name" or user.HasField("type"))
            for user, attribute, _ in _list_type_names(self.stored_proto)
        ) and not any(has_unusual_default(field) for field, _ in iterate_fields(self.stored_proto)):
            return self.stored_proto
        proto = FileDescriptorProto()
        proto.CopyFrom(self.stored_proto)
        kinds: dict[str, Kind | None] = {}
        for file in self._list_visible_files():
            kinds = _list_kinds(file.stored_proto) | kinds
        for user, attribute, scope in _list_type_names(proto):
            name = getattr(user, attribute)
            full_name = name[1:] if name.startswith(".") else _resolve_name(name, scope, kinds)
            kind = kinds.get(full_name)
            if kind is not None:
                setattr(user, attribute, f".{full_name}")
                if attribute == "type_name" and not user.HasField("type"):
                    user.type = kind
        for field_proto, _ in iterate_fields(proto):
            if has_unusual_default(field_proto):
                # A default that does not parse stays: the check of the files reports it.
                with suppress(ValueError):
                    default = parse_default(field_proto.default_value, field_proto.type)
                    field_proto.default_value = format_default(default, field_proto.type)
        return proto

    def get_message(self, full_name: str) -> ProtoMessage:
        """Return the message that a full name means in the file: its own, else the message of an import."""
        if not self.image.has_duplicate_types:
            return self.image.declared.messages[full_name]
        visible_files = (file.declared.messages for file in self._list_visible_files())
        return next(messages[full_name] for messages in visible_files if full_name in messages)

    def get_enum(self, full_name: str) -> ProtoEnum:
        """Return the enum that a full name means in the file: its own, else the enum of an import."""
        if not self.image.has_duplicate_types:
            return self.image.declared.enums[full_name]
        visible_files = (file.declared.enums for file in self._list_visible_files())
        return next(enums[full_name] for enums in visible_files if full_name in enums)

    def _list_visible_files(self) -> list[File]:
        """Return this file, its imports, and the public imports of these."""
        files = {self.name: self}
        pending = list(self.stored_proto.dependency)
        while pending:
            file = self.image.files.get(pending.pop())
            if file is not None and file.name not in files:
                files[file.name] = file
                dependencies = file.stored_proto.dependency
                pending += [dependencies[index] for index in file.stored_proto.public_dependency]
        return list(files.values())

    def qualify(self, nested_name: str) -> str:
        """Return the full name of the element `nested_name`."""
        package = self.stored_proto.package
        return f"{package}.{nested_name}" if package else nested_name

    @cached_property
    def features(self) -> Features:
        """The features at the top level of the file."""
        return get_file_features(self.proto)

    @cached_property
    def context(self) -> tuple[object, ...]:
        """The attributes of the file that the meaning of its messages depends on."""
        return self.proto.package, self.proto.syntax, self.proto.edition, self.features

    @cached_property
    def places(self) -> SourceMap:
        """The locations of its parts in the text."""
        return SourceMap(self.source_info)

    @cached_property
    def declared(self) -> Declarations:
        """The declarations of this file."""
        return collect_declarations([self])

    @cached_property
    def elements(self) -> tuple[ProtoMessage | ProtoEnum | ProtoField | Service, ...]:
        """The elements of the file, each message before its nested elements."""
        services = [
            Service(*self._place((6, index), "services", proto.name), proto)
            for index, proto in enumerate(self.proto.service)
        ]
        return (*services, *self._list_elements(None))

    def _list_elements(self, parent: ProtoMessage | None) -> Iterator[ProtoMessage | ProtoEnum | ProtoField]:
        """Yield the elements at the top level of the file, or inside `parent`."""
        # The field numbers of extensions, enums and messages in FileDescriptorProto, and in DescriptorProto.
        path: Path
        if parent is None:
            path, scope, prefix, numbers = (), self.features, "", (7, 5, 4)
        else:
            path, scope, prefix, numbers = parent.path, parent.features, f"{parent.nested_name}.", (6, 4, 3)
        holder = self.proto if parent is None else parent.proto
        for index, extension in enumerate(holder.extension):
            yield _make_field(self, (*path, numbers[0], index), extension, parent, scope)
        for index, enum in enumerate(holder.enum_type):
            place = self._place((*path, numbers[1], index), "enums", prefix + enum.name)
            yield ProtoEnum(*place, enum, parent, get_features(scope, enum))
        nested = self.proto.message_type if parent is None else parent.proto.nested_type
        for index, proto in enumerate(nested):
            place = self._place((*path, numbers[2], index), "messages", prefix + proto.name)
            message = ProtoMessage(*place, proto, parent, get_features(scope, proto))
            yield message
            yield from self._list_elements(message)

    def _place(self, path: Path, noun: str, nested_name: str) -> tuple[File, Path, str, str]:
        """Return the first arguments of an `Element`."""
        return self, path, nested_name, f"/{noun}/{self.qualify(nested_name)}"


def iterate_fields(file: FileDescriptorProto) -> Iterator[tuple[FieldDescriptorProto, Path]]:
    """Yield all fields and extensions of a file with their paths."""
    for index, extension in enumerate(file.extension):
        yield extension, (7, index)
    pending: list[tuple[DescriptorProto, Path]] = [
        (message, (4, index)) for index, message in enumerate(file.message_type)
    ]
    while pending:
        message, path = pending.pop()
        for index, field_proto in enumerate(message.field):
            yield field_proto, (*path, 2, index)
        for index, extension in enumerate(message.extension):
            yield extension, (*path, 6, index)
        pending += [(nested, (*path, 3, index)) for index, nested in enumerate(message.nested_type)]


def _list_type_names(file: FileDescriptorProto) -> Iterator[tuple[Any, str, str]]:
    """Yield where the file names a type: the descriptor, its attribute, and the scope in which the name is resolved."""
    for service in file.service:
        scope = f"{file.package}.{service.name}" if file.package else service.name
        for method in service.method:
            yield method, "input_type", scope
            yield method, "output_type", scope
    pending: list[tuple[str, Iterable[FieldDescriptorProto], Iterable[DescriptorProto]]]
    pending = [(file.package, file.extension, file.message_type)]
    while pending:
        scope, fields, messages = pending.pop()
        for proto in fields:
            if proto.type_name:
                yield proto, "type_name", scope
            if proto.extendee:
                yield proto, "extendee", scope
        for message in messages:
            name = f"{scope}.{message.name}" if scope else message.name
            pending.append((name, (*message.field, *message.extension), message.nested_type))


def _list_kinds(file: FileDescriptorProto) -> dict[str, Kind | None]:
    """Return the names in which others can be looked up: messages and enums with their kinds, packages and services with None."""
    kinds: dict[str, Kind | None] = {}
    package = file.package
    while package:
        kinds[package] = None
        package = package.rpartition(".")[0]
    prefix = f"{file.package}." if file.package else ""
    kinds.update((prefix + service.name, None) for service in file.service)
    kinds.update((prefix + enum.name, ENUM) for enum in file.enum_type)
    pending = [(prefix, message) for message in file.message_type]
    while pending:
        prefix, message = pending.pop()
        name = prefix + message.name
        kinds[name] = MESSAGE
        kinds.update((f"{name}.{enum.name}", ENUM) for enum in message.enum_type)
        pending += [(f"{name}.", nested) for nested in message.nested_type]
    return kinds


def _resolve_name(name: str, scope: str, kinds: Mapping[str, Kind | None]) -> str:
    """Return the full name that Java finds for a name without a leading dot (`Descriptors.DescriptorPool.lookupSymbol`).

    The innermost scope that has the first part of the name decides, even if it does not have the rest.
    """
    first_part = name.partition(".")[0]
    while scope:
        if f"{scope}.{first_part}" in kinds:
            return f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    return name


@dataclass(eq=False, repr=False)
class ProtoMessage(Element):
    """A message, or the entry of a map."""

    proto: DescriptorProto
    parent: ProtoMessage | None
    features: Features

    @property
    def is_map_entry(self) -> bool:
        """Whether protoc made it for a map field. A message with the option but other fields is an ordinary one on the wire."""
        return is_map_entry(self.proto)

    def fields(self) -> Mapping[int, ProtoField]:
        """Return the fields by number, without extensions, and without numbers that Java accepts but no message can have."""
        return self._fields

    @cached_property
    def _fields(self) -> dict[int, ProtoField]:
        entries = {f".{self.full_name}.{nested.name}" for nested in self.proto.nested_type if is_map_entry(nested)}
        fields = {}
        for index, proto in enumerate(self.proto.field):
            path = (*self.path, 2, index)
            if proto.number > MAX_FIELD_NUMBER:
                continue
            is_map = proto.type_name in entries and proto.label == FieldDescriptorProto.LABEL_REPEATED
            fields[proto.number] = _make_field(self.file, path, proto, self, self.features, is_map=is_map)
        return fields

    def oneofs(self) -> list[Oneof]:
        """Return the oneofs in the order of the file, without the synthetic ones of proto3's `optional`."""
        numbers: dict[int, list[int]] = {}
        for proto in self.proto.field:
            if proto.HasField("oneof_index") and not proto.proto3_optional:
                numbers.setdefault(proto.oneof_index, []).append(proto.number)
        return [
            Oneof(*self.part(8, index, "oneofs", proto.name), self, proto.name, sorted(numbers[index]))
            for index, proto in enumerate(self.proto.oneof_decl)
            if index in numbers
        ]


@dataclass(slots=True, eq=False, repr=False)
class ProtoField(Element):
    """A field of a message, or an extension."""

    proto: FieldDescriptorProto
    message: ProtoMessage | None
    features: Features
    kind: Kind
    cardinality: str

    @property
    def name(self) -> str:
        """The short name of a field, or the full name of an extension."""
        return self.full_name if self.proto.extendee else self.proto.name

    @property
    def json_name(self) -> str:
        """The name of the field in JSON, which clients leave out of descriptors if it is the default."""
        return self.proto.json_name or default_json_name(self.proto.name)

    @property
    def type_name(self) -> str:
        """The full name of a message or enum type; "" for a scalar."""
        return self.proto.type_name.removeprefix(".")

    @property
    def enum(self) -> ProtoEnum:
        """The type of an enum field. Raises InvalidSchema if its name is not the name of an enum."""
        try:
            return self.file.get_enum(self.type_name)
        except (KeyError, StopIteration):
            message = f"the field {self.name} has the type {self.type_name}, which is not an enum"
            raise InvalidSchema(message, pointer=self.pointer) from None

    @property
    def message_type(self) -> ProtoMessage:
        """The type of a message field. Raises InvalidSchema if its name is not the name of a message."""
        try:
            return self.file.get_message(self.type_name)
        except (KeyError, StopIteration):
            message = f"the field {self.name} has the type {self.type_name}, which is not a message"
            raise InvalidSchema(message, pointer=self.pointer) from None

    @property
    def value(self) -> ProtoField:
        """The field that describes one value: for a map the second field of its entry, otherwise this field."""
        return self.message_type.fields()[2] if self.cardinality == MAP else self

    @property
    def is_closed_enum(self) -> bool:
        """Whether readers accept only the listed numbers; in Java and C++, this holds for every enum field of a proto2 file."""
        return self.kind == ENUM and (self.enum.is_closed or bool(self.features.java_legacy_closed_enum))

    @property
    def is_message(self) -> bool:
        """Whether its values are messages, delimited or not."""
        return self.kind in (MESSAGE, GROUP)

    @property
    def is_repeated(self) -> bool:
        """Whether it is a list or a map."""
        return self.cardinality in (REPEATED, MAP)

    @property
    def in_map_entry(self) -> bool:
        """Whether it is the key or the value of a map."""
        return self.message is not None and not self.proto.extendee and self.message.is_map_entry

    @property
    def oneof(self) -> str:
        """The name of its oneof, or "" (also for proto3's `optional`)."""
        if self.message is None or not self.proto.HasField("oneof_index") or self.proto.proto3_optional:
            return ""
        return self.message.proto.oneof_decl[self.proto.oneof_index].name


@dataclass(slots=True, eq=False, repr=False)
class Oneof(Element):
    """A group of fields of which at most one is set; `numbers` are its members' numbers, sorted."""

    message: ProtoMessage
    name: str
    numbers: list[int]


@dataclass(slots=True, eq=False, repr=False)
class ProtoEnum(Element):
    """An enum."""

    proto: EnumDescriptorProto
    parent: ProtoMessage | None
    features: Features

    @property
    def is_closed(self) -> bool:
        """Whether readers accept only the listed numbers, and treat others as unknown fields."""
        return self.features.enum_type == FeatureSet.CLOSED

    def values(self) -> list[EnumValue]:
        """Return the values in the order of the file."""
        return [
            EnumValue(*self.part(2, index, "values", proto.name), self, proto)
            for index, proto in enumerate(self.proto.value)
        ]

    def numbers(self) -> dict[str, int]:
        """Return the numbers of the values by name."""
        return {value.name: value.number for value in self.proto.value}


@dataclass(slots=True, eq=False, repr=False)
class EnumValue(Element):
    """A name of a number in an enum."""

    enum: ProtoEnum
    proto: EnumValueDescriptorProto


@dataclass(slots=True, eq=False, repr=False)
class Method(Element):
    """An RPC."""

    service: Service
    proto: MethodDescriptorProto


@dataclass(slots=True, eq=False, repr=False)
class Service(Element):
    """A service and its RPCs."""

    proto: ServiceDescriptorProto

    def methods(self) -> dict[str, Method]:
        """Return the RPCs by name."""
        return {
            proto.name: Method(*self.part(2, index, "methods", proto.name), self, proto)
            for index, proto in enumerate(self.proto.method)
        }


def is_map_entry(message: DescriptorProto) -> bool:
    """Return whether the message has the option of a map's entry, and a key and a value as protoc writes them."""
    names = {field.number: field.name for field in message.field}
    if not message.options.map_entry or names != {1: "key", 2: "value"} or len(message.field) > len(names):
        return False
    key = next(field for field in message.field if field.number == 1)
    return key.type in MAP_KEYS and all(
        field.label == FieldDescriptorProto.LABEL_OPTIONAL and not field.HasField("oneof_index")
        for field in message.field
    )


def _make_field(
    file: File,
    path: Path,
    proto: FieldDescriptorProto,
    message: ProtoMessage | None,
    scope: Features,
    *,
    is_map: bool = False,
) -> ProtoField:
    """Return the field `proto` in a message (or file) with the features `scope`."""
    features = get_features(scope, proto)
    in_map_entry = message is not None and message.is_map_entry and not proto.extendee
    kind = get_kind(proto, features, is_map_part=is_map or in_map_entry)
    cardinality = MAP if is_map else get_cardinality(proto, features, kind)
    name = f"{message.nested_name}.{proto.name}" if message else proto.name
    if message is None or proto.extendee:
        pointer = f"/extensions/{file.qualify(name)}"
    else:
        pointer = f"{message.pointer}/fields/{proto.number}"
    return ProtoField(file, path, name, pointer, proto, message, features, kind, cardinality)


def get_kind(proto: FieldDescriptorProto, features: Features, *, is_map_part: bool) -> Kind:
    """Return the kind of a field; maps and their values are always length-prefixed."""
    is_delimited = features.message_encoding == FeatureSet.DELIMITED
    return GROUP if proto.type == MESSAGE and is_delimited and not is_map_part else proto.type


def get_cardinality(proto: FieldDescriptorProto, features: Features, kind: Kind) -> str:
    """Return the cardinality of a field that is not a map."""
    if proto.label == FieldDescriptorProto.LABEL_REPEATED:
        return REPEATED
    is_legacy_required = features.field_presence == FeatureSet.LEGACY_REQUIRED and not proto.extendee
    if proto.label == FieldDescriptorProto.LABEL_REQUIRED or is_legacy_required:
        return REQUIRED
    if (
        features.field_presence != FeatureSet.IMPLICIT
        or kind in (MESSAGE, GROUP)
        or proto.extendee
        or proto.HasField("oneof_index")
    ):
        return EXPLICIT
    return IMPLICIT


def default_json_name(name: str) -> str:
    """Return the JSON name of a field without an option for it: `user_id` becomes `userId`."""
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class Span(NamedTuple):
    """A position as protoc counts: line and column from 1, columns in bytes, a tab up to the next multiple of eight."""

    line: int
    column: int


class SourceMap:
    """The first location of each part in the source info of a file; empty without source info."""

    def __init__(self, source_info: SourceCodeInfo) -> None:
        self._source_info = source_info
        self._locations: dict[Path, int] = {}
        for index, location in enumerate(source_info.location):
            self._locations.setdefault(tuple(location.path), index)
        self._sorted_paths: list[Path] = []

    def span(self, path: Path) -> Span | None:
        """Return the start of the part at `path`, or None."""
        index = self._locations.get(path)
        if index is None:
            return None
        span = self._source_info.location[index].span
        return Span(span[0] + 1, span[1] + 1) if len(span) in (3, 4) else None

    def comment(self, path: Path) -> str:
        """Return the comment before the part at `path`, or else after it, without comment marks and outer spaces."""
        index = self._locations.get(path)
        if index is None:
            return ""
        location = self._source_info.location[index]
        text = location.leading_comments or location.trailing_comments
        # protoc leaves the second asterisk of `/** ... */`.
        return "\n".join(line.removeprefix(" ").rstrip() for line in text.removeprefix("*").split("\n")).strip()

    def first_below(self, path: Path) -> Path | None:
        """Return the path of the first part inside the part at `path`, or None."""
        self._sorted_paths = self._sorted_paths or sorted(self._locations)
        index = bisect_left(self._sorted_paths, path)
        candidates = self._sorted_paths[index : index + 1]
        return candidates[0] if candidates and candidates[0][: len(path)] == path else None
