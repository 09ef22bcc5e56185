"""The elements of compiled `.proto` files as Java and Go see them, with features, kinds and defaults resolved.

proto2 and proto3 are editions, too: `syntax` picks the defaults (protobuf's "Feature Settings for Editions").

`google.protobuf.descriptor_pb2` gives the facts one by one; the rules ask about elements as Go's protoreflect and
Java's Descriptors answer, with the file's edition taken into account.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    EDITION_2024,
    EDITION_PROTO2,
    EDITION_PROTO3,
    DescriptorProto,
    EnumDescriptorProto,
    EnumOptions,
    EnumValueDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FieldOptions,
    FileDescriptorProto,
    FileDescriptorSet,
    FileOptions,
    MessageOptions,
    MethodDescriptorProto,
    ServiceDescriptorProto,
    SourceCodeInfo,
)
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.text_encoding import CUnescape
from google.protobuf.unknown_fields import UnknownFieldSet

# Features of editions.


JAVA_FEATURES = 1001
"""Field number of the extension `pb.java` of FeatureSet."""

JSON_FORMATS: dict[int, str] = {number: name for name, number in FeatureSet.JsonFormat.items()}

JAVA_UTF8_VERIFY = 2
"""`pb.JavaFeatures.Utf8Validation.VERIFY`."""


class Features(NamedTuple):
    """The features in force for one element, as the numbers of their enums (`java_legacy_closed_enum`: 0 or 1)."""

    field_presence: int
    enum_type: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    java_utf8_validation: int
    java_legacy_closed_enum: int


_Standard: TypeAlias = Literal["field_presence", "enum_type", "utf8_validation", "message_encoding", "json_format"]
_STANDARD: tuple[_Standard, ...] = get_args(_Standard)

PROTO2 = Features(
    FeatureSet.EXPLICIT,
    FeatureSet.CLOSED,
    FeatureSet.NONE,
    FeatureSet.LENGTH_PREFIXED,
    FeatureSet.LEGACY_BEST_EFFORT,
    1,
    1,
)
PROTO3 = Features(
    FeatureSet.IMPLICIT, FeatureSet.OPEN, FeatureSet.VERIFY, FeatureSet.LENGTH_PREFIXED, FeatureSet.ALLOW, 1, 0
)
DEFAULTS = {
    EDITION_PROTO2: PROTO2,
    EDITION_PROTO3: PROTO3,
    EDITION_2023: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
    EDITION_2024: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
}
"""What each edition starts with; an edition not listed starts as the newest one before it."""


Options: TypeAlias = FileOptions | MessageOptions | FieldOptions | EnumOptions


def edition_of(file: FileDescriptorProto) -> int:
    """Return the file's edition; proto2 and proto3 have numbers of their own."""
    if file.syntax == "editions":
        return file.edition
    return EDITION_PROTO3 if file.syntax == "proto3" else EDITION_PROTO2


def file_features(file: FileDescriptorProto) -> Features:
    """Return the features in force at the top of `file`."""
    edition = edition_of(file)
    known = [number for number in DEFAULTS if number <= edition]
    base = DEFAULTS[max(known)] if known else PROTO2
    return resolve(base, file.options) if file.HasField("options") else base


def resolve(parent: Features, options: Options) -> Features:
    """Return the features in force for an element with `options` inside one with `parent`."""
    if not options.HasField("features"):
        return parent
    own = options.features
    changed: dict[str, int] = {name: getattr(own, name) for name in _STANDARD if own.HasField(name)}
    java = extension_of(own, JAVA_FEATURES)
    for name, number in (("java_legacy_closed_enum", 1), ("java_utf8_validation", 2)):
        if number in java:
            changed[name] = java[number]
    return parent._replace(**changed)


def extension_of(features: FeatureSet, number: int) -> dict[int, int]:
    """Return the numeric fields of extension `number`, by field number; {} when it is not set.

    Read from the wire: the extension's own class may or may not be registered in this process.
    """
    contents = [value for field, value in _fields(features.SerializeToString()) if field == number]
    return {
        field: value
        for content in contents
        if isinstance(content, bytes)
        for field, value in _fields(content)
        if isinstance(value, int)
    }


def field_numbers(features: FeatureSet) -> set[int]:
    """Return the numbers of everything set in `features`, known to this protobuf release or not."""
    return {field for field, _ in _fields(features.SerializeToString())}


def _fields(data: bytes) -> list[tuple[int, object]]:
    """Return number and value of each field in a serialized message; nothing of what is none."""
    try:
        # To a message without fields all are unknown.
        unknown: Any = UnknownFieldSet(Empty.FromString(data))
        return [(field.field_number, field.data) for field in unknown]
    except DecodeError:
        return []


# Kinds and cardinality.


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


def kind_of(proto: FieldDescriptorProto, features: Features, *, is_map_part: bool) -> Kind:
    """Return the kind of a field; maps and their values are length-prefixed whatever the features say."""
    delimited = features.message_encoding == FeatureSet.DELIMITED
    return GROUP if proto.type == MESSAGE and delimited and not is_map_part else proto.type


def cardinality_of(proto: FieldDescriptorProto, features: Features, kind: Kind) -> str:
    """Return how many values a field has, unless it is a map."""
    if proto.label == FieldDescriptorProto.LABEL_REPEATED:
        return REPEATED
    legacy_required = features.field_presence == FeatureSet.LEGACY_REQUIRED and not proto.extendee
    if proto.label == FieldDescriptorProto.LABEL_REQUIRED or legacy_required:
        return REQUIRED
    if (
        features.field_presence != FeatureSet.IMPLICIT
        or kind in (MESSAGE, GROUP)
        or proto.extendee
        or proto.HasField("oneof_index")
    ):
        return EXPLICIT
    return IMPLICIT


# Elements of a file.


Path: TypeAlias = tuple[int, ...]
"""Field numbers and indexes from a FileDescriptorProto to a part of it (`SourceCodeInfo.Location.path`)."""


class Span(NamedTuple):
    """A place as protoc counts: line and column from 1, columns in bytes, a tab reaching to the next eighth."""

    line: int
    column: int


class SourceMap:
    """The first location that the source info of a file has for each part; empty without source info."""

    def __init__(self, source_info: SourceCodeInfo) -> None:
        self._source_info = source_info
        self._locations: dict[Path, int] = {}
        for index, location in enumerate(source_info.location):
            self._locations.setdefault(tuple(location.path), index)
        self._sorted: list[Path] = []

    def span(self, path: Path) -> Span | None:
        """Return where the part at `path` begins."""
        index = self._locations.get(path)
        if index is None:
            return None
        span = self._source_info.location[index].span
        return Span(span[0] + 1, span[1] + 1) if len(span) in (3, 4) else None

    def comment(self, path: Path) -> str:
        """Return what the text says before the part at `path`, or else behind it, without the marks and spaces of comments."""
        index = self._locations.get(path)
        if index is None:
            return ""
        location = self._source_info.location[index]
        text = location.leading_comments or location.trailing_comments
        # Of `/** ... */` protoc leaves the second asterisk.
        return "\n".join(line.removeprefix(" ").rstrip() for line in text.removeprefix("*").split("\n")).strip()

    def first_below(self, path: Path) -> Path | None:
        """Return the first part that has a location inside the one at `path`."""
        self._sorted = self._sorted or sorted(self._locations)
        index = bisect_left(self._sorted, path)
        found = self._sorted[index : index + 1]
        return found[0] if found and found[0][: len(path)] == path else None


@dataclass(slots=True, eq=False, repr=False)
class Element:
    """A declared part of a file.

    Attributes:
        file: the one that declares it.
        path: from the file's descriptor to its own.
        nested_name: without the package: `Click.position`.
        pointer: its name in pointers (see `definition`).
    """

    file: File
    path: Path
    nested_name: str
    pointer: str

    @property
    def full_name(self) -> str:
        """With the package: `web.Click.Position`."""
        return self.file.qualified(self.nested_name)

    def part(self, number: int, index: int, noun: str, name: str) -> tuple[File, Path, str, str]:
        """Return the first arguments of the element `name` inside this one: the `index`-th of field `number`."""
        path = (*self.path, number, index)
        return self.file, path, f"{self.nested_name}.{name}", f"{self.pointer}/{noun}/{name}"


@dataclass(eq=False, repr=False)
class ProtoMessage(Element):
    """A message, also the entry of a map."""

    proto: DescriptorProto
    parent: ProtoMessage | None
    features: Features

    @property
    def is_map_entry(self) -> bool:
        """Made by protoc for a map field."""
        return self.proto.options.map_entry

    def fields(self) -> Mapping[int, ProtoField]:
        """Return the fields by number, extensions left out."""
        return self._fields

    @cached_property
    def _fields(self) -> dict[int, ProtoField]:
        nested = self.proto.nested_type
        entries = {f".{self.full_name}.{each.name}" for each in nested if each.options.map_entry}
        found = {}
        for index, proto in enumerate(self.proto.field):
            path = (*self.path, 2, index)
            is_map = proto.type_name in entries
            found[proto.number] = _field(self.file, path, proto, self, self.features, is_map=is_map)
        return found

    def oneofs(self) -> list[Oneof]:
        """Return the oneofs in the order of the file, the synthetic ones of proto3's `optional` left out."""
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
        """Short for a field, with the package for an extension."""
        return self.full_name if self.proto.extendee else self.proto.name

    @property
    def type_name(self) -> str:
        """The full name of a message or enum type, "" for a scalar."""
        return self.proto.type_name.removeprefix(".")

    @property
    def enum(self) -> ProtoEnum:
        """The type of an enum field."""
        return self.file.image.declared.enums[self.type_name]

    @property
    def message_type(self) -> ProtoMessage:
        """The type of a field that holds messages."""
        return self.file.image.declared.messages[self.type_name]

    @property
    def value(self) -> ProtoField:
        """The field that describes one value: the entry's second of a map, else this one."""
        return self.message_type.fields()[2] if self.cardinality == MAP else self

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
class Oneof(Element):
    """A group of fields of which one is set at most; `numbers` are its members', in order."""

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
        """Readers take only the listed numbers; others go to the unknown fields."""
        return self.features.enum_type == FeatureSet.CLOSED

    def values(self) -> list[EnumValue]:
        """Return the values in the order of the file."""
        return [
            EnumValue(*self.part(2, index, "values", proto.name), self, proto)
            for index, proto in enumerate(self.proto.value)
        ]

    def numbers(self) -> dict[str, int]:
        """Return each number by its name."""
        return {value.name: value.number for value in self.proto.value}


@dataclass(slots=True, eq=False, repr=False)
class EnumValue(Element):
    """One name of one number of an enum."""

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


def _field(
    file: File,
    path: Path,
    proto: FieldDescriptorProto,
    message: ProtoMessage | None,
    scope: Features,
    *,
    is_map: bool = False,
) -> ProtoField:
    """Return the field `proto` in a message (or file) with the features `scope`."""
    features = _features(scope, proto)
    in_map_entry = message is not None and message.is_map_entry and not proto.extendee
    kind = kind_of(proto, features, is_map_part=is_map or in_map_entry)
    cardinality = MAP if is_map else cardinality_of(proto, features, kind)
    name = f"{message.nested_name}.{proto.name}" if message else proto.name
    if message is None or proto.extendee:
        pointer = f"/extensions/{file.qualified(name)}"
    else:
        pointer = f"{message.pointer}/fields/{proto.number}"
    return ProtoField(file, path, name, pointer, proto, message, features, kind, cardinality)


def _features(scope: Features, proto: DescriptorProto | EnumDescriptorProto | FieldDescriptorProto) -> Features:
    """Return the features in force for `proto` inside something with the features `scope`."""
    return resolve(scope, proto.options) if proto.HasField("options") else scope


@dataclass(slots=True)
class Declarations:
    """What some files declare, by full name; extensions by extended message and number."""

    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, ProtoEnum] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    extensions: dict[tuple[str, int], ProtoField] = field(default_factory=dict)


class File(Element):
    """A compiled `.proto`. `proto` has no source info: that stands apart, so that equal files are equal."""

    def __init__(self, image: Image, proto: FileDescriptorProto, source_info: SourceCodeInfo) -> None:
        pointer = "/files/" + proto.name.replace("~", "~0").replace("/", "~1")
        super().__init__(self, (), proto.name, pointer)
        self.image = image
        self.proto = proto
        self.source_info = source_info
        self.name: str = proto.name

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
        services = [
            Service(*self._place((6, index), "services", proto.name), proto)
            for index, proto in enumerate(self.proto.service)
        ]
        return (*services, *self._declared_in(None))

    def _declared_in(self, parent: ProtoMessage | None) -> Iterator[ProtoMessage | ProtoEnum | ProtoField]:
        """Yield what is declared at the top of the file, or inside of `parent`."""
        # The field numbers are those of FileDescriptorProto, and of DescriptorProto.
        path: Path
        if parent is None:
            path, scope, prefix, numbers = (), self.features, "", (7, 5, 4)
        else:
            path, scope, prefix, numbers = parent.path, parent.features, f"{parent.nested_name}.", (6, 4, 3)
        holder = self.proto if parent is None else parent.proto
        for index, extension in enumerate(holder.extension):
            yield _field(self, (*path, numbers[0], index), extension, parent, scope)
        for index, enum in enumerate(holder.enum_type):
            place = self._place((*path, numbers[1], index), "enums", prefix + enum.name)
            yield ProtoEnum(*place, enum, parent, _features(scope, enum))
        nested = self.proto.message_type if parent is None else parent.proto.nested_type
        for index, proto in enumerate(nested):
            place = self._place((*path, numbers[2], index), "messages", prefix + proto.name)
            message = ProtoMessage(*place, proto, parent, _features(scope, proto))
            yield message
            yield from self._declared_in(message)

    def _place(self, path: Path, noun: str, nested_name: str) -> tuple[File, Path, str, str]:
        """Return the first arguments of an `Element`."""
        return self, path, nested_name, f"/{noun}/{self.qualified(nested_name)}"


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

    @cached_property
    def by_pointer(self) -> dict[str, Element]:
        """Every element by its pointer; of two with one pointer the first."""
        declared = self.declared
        extensions = {field.pointer: field for field in declared.extensions.values()}
        found: dict[str, Element] = {**{file.pointer: file for file in self.files.values()}, **extensions}
        for message in declared.messages.values():
            parts: list[Element] = [message, *message.fields().values(), *message.oneofs()]
            found.update((part.pointer, part) for part in parts)
        for enum in declared.enums.values():
            found.update((part.pointer, part) for part in (enum, *enum.values()))
        for service in declared.services.values():
            found.update((part.pointer, part) for part in (service, *service.methods().values()))
        return found


def declared_by(files: Iterable[File]) -> Declarations:
    """Return everything `files` declare; of two things with one name the first."""
    found = Declarations()
    for file in files:
        for element in file.elements:
            match element:
                case ProtoMessage():
                    found.messages.setdefault(element.full_name, element)
                case ProtoEnum():
                    found.enums.setdefault(element.full_name, element)
                case Service():
                    found.services.setdefault(element.full_name, element)
                case ProtoField():
                    key = element.proto.extendee.removeprefix("."), element.proto.number
                    found.extensions.setdefault(key, element)
    return found


# Defaults of absent fields.


Default: TypeAlias = bool | int | float | str | bytes


def can_have_default(field: ProtoField) -> bool:
    """Return whether the field is no list, map or message."""
    return not field.is_repeated and not field.is_message


def default_of(field: ProtoField) -> Default:
    """Return the declared default, else the zero of the type; of an enum the number, of a float the nearest 32-bit value."""
    text, given = field.proto.default_value, field.proto.HasField("default_value")
    if field.kind == STRING:
        return text
    if field.kind == BYTES:
        return CUnescape(text)
    if field.kind == BOOL:
        return text == "true"
    if field.kind == ENUM:
        numbers = field.enum.numbers()
        return numbers.get(text, 0) if given else next(iter(numbers.values()), 0)
    if field.kind in (FLOAT, DOUBLE):
        value = float(text) if given else 0.0
        return to_float32(value) if field.kind == FLOAT else value
    return int(text) if given else 0


def to_float32(value: float) -> float:
    """Return `value` as 32 bits hold it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def same_default(old: ProtoField, new: ProtoField) -> bool:
    """Whether both give readers the same value, as buf compares: numbers by value whatever their type.

    So do fields that have no default, and those that declare none, whatever their types.
    """
    if not can_have_default(old) or not can_have_default(new):
        return True
    defaults = (default_of(old), default_of(new))
    if all(map(is_zero, defaults)):
        return True
    before, after = (each.encode() if isinstance(each, str) else each for each in defaults)
    if isinstance(before, float) and isinstance(after, float):
        if old.kind != new.kind:
            before, after = to_float32(before), to_float32(after)
        return before == after or (math.isnan(before) and math.isnan(after))
    return before == after


def is_zero(default: Default) -> bool:
    """Return whether this is the default of a field that declares none; minus zero is not."""
    if isinstance(default, float):
        return default == 0 and math.copysign(1, default) > 0
    return not default


def printed(field: ProtoField) -> str:
    """Return the default as buf prints it (Go's %v and %q)."""
    value = default_of(field)
    if field.kind == ENUM:
        enum = field.enum
        name = next(name for name, number in enum.numbers().items() if number == value)
        return f"{enum.proto.name}.{name}"
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return "[" + ",".join(f"0x{byte:X}" for byte in value) + "]"
        case str():
            return quoted(value)
        case float():
            return _go_float(value, single=field.kind == FLOAT)
    return str(value)


_ESCAPES = dict(zip('\\"\a\b\f\n\r\t\v', '\\"abfnrtv', strict=True))


def quoted(text: str) -> str:
    """Return the text as Go's %q writes it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _go_float(value: float, *, single: bool) -> str:
    """Return the shortest digits that read back as `value`, with an exponent below -4 and from 6 on (Go's %v)."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if (to_float32(float(text)) if single else float(text)) == value:
            break
    power = int(text.partition("e")[2])
    return text if power < -4 or power >= 6 else f"{value:.{max(digits - power, 0)}f}"
