"""Compiled `.proto` files and what they declare."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    SourceCodeInfo,
)

from schemactl.formats.protobuf_native.descriptor import (
    Enum,
    Field,
    Message,
    Path,
    Service,
    features_of,
    make_field,
)
from schemactl.formats.protobuf_native.features import Features, file_features


class Span(NamedTuple):
    """A place as protoc counts: line and column from 1, columns in bytes, a tab reaching to the next eighth."""

    line: int
    column: int


@dataclass(slots=True)
class Declared:
    """What some files declare, by full name; extensions by extended message and number."""

    messages: dict[str, Message] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    extensions: dict[tuple[str, int], Field] = field(default_factory=dict)


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
        """The full name of what the file calls `nested_name`."""
        return f"{self.proto.package}.{nested_name}" if self.proto.package else nested_name

    @cached_property
    def features(self) -> Features:
        """In force at the top of the file."""
        return file_features(self.proto)

    @cached_property
    def context(self) -> tuple[object, ...]:
        """What else than its own descriptor decides the meaning of a message of this file."""
        return (
            self.proto.package,
            self.proto.syntax,
            self.proto.edition,
            self.features,
            self.proto.options.java_string_check_utf8,
        )

    @cached_property
    def locations(self) -> dict[Path, int]:
        """Which location of the source info tells of each part; of several the first. {} without source info."""
        found: dict[Path, int] = {}
        for index, location in enumerate(self.source_info.location):
            found.setdefault(tuple(location.path), index)
        return found

    def span(self, path: Path) -> Span | None:
        """Where the part at `path` begins."""
        index = self.locations.get(path)
        if index is None:
            return None
        span = self.source_info.location[index].span
        return Span(span[0] + 1, span[1] + 1) if len(span) in (3, 4) else None

    @cached_property
    def _sorted_paths(self) -> list[Path]:
        return sorted(self.locations)

    def first_below(self, path: Path) -> Path | None:
        """The first part that is told of inside the one at `path`."""
        index = bisect_left(self._sorted_paths, path)
        found = self._sorted_paths[index : index + 1]
        return found[0] if found and found[0][: len(path)] == path else None

    @cached_property
    def declared(self) -> Declared:
        """Everything this file declares."""
        return declared_by([self])

    def elements(self) -> tuple[Message | Enum | Field | Service, ...]:
        """Everything declared in the file, each message before what is nested in it."""
        return self._elements

    @cached_property
    def _elements(self) -> tuple[Message | Enum | Field | Service, ...]:
        return tuple(self._walk())

    def _walk(self) -> Iterator[Message | Enum | Field | Service]:
        for index, service in enumerate(self.proto.service):
            yield Service(self, (6, index), service)
        for index, extension in enumerate(self.proto.extension):
            yield make_field(self, (7, index), extension, None, self.features)
        for index, enum in enumerate(self.proto.enum_type):
            yield Enum(self, (5, index), enum, enum.name, None, features_of(self.features, enum))
        for index, message in enumerate(self.proto.message_type):
            yield from self._inside(message, (4, index), None)

    def _inside(
        self, proto: DescriptorProto, path: Path, parent: Message | None
    ) -> Iterator[Message | Enum | Field]:
        scope, features = (f"{parent.nested_name}.", parent.features) if parent else ("", self.features)
        message = Message(self, path, proto, scope + proto.name, parent, features_of(features, proto))
        yield message
        for index, extension in enumerate(proto.extension):
            yield make_field(self, (*path, 6, index), extension, message, message.features)
        for index, enum in enumerate(proto.enum_type):
            name = f"{message.nested_name}.{enum.name}"
            yield Enum(self, (*path, 4, index), enum, name, message, features_of(message.features, enum))
        for index, nested in enumerate(proto.nested_type):
            yield from self._inside(nested, (*path, 3, index), message)


@dataclass(eq=False, repr=False)
class Image:
    """Compiled files and what they declare."""

    files: dict[str, File] = field(default_factory=dict)

    @classmethod
    def of(cls, files: FileDescriptorSet) -> Image:
        """The image of `files`; takes their source info out of them."""
        image = cls()
        for proto in files.file:
            source_info = proto.source_code_info
            proto.ClearField("source_code_info")
            image.files[proto.name] = File(image, proto, source_info)
        return image

    @cached_property
    def declared(self) -> Declared:
        """Everything declared in any file."""
        return declared_by(self.files.values())

    @cached_property
    def extensions_of(self) -> dict[str, dict[int, Field]]:
        """The extensions of each message, by number."""
        found: dict[str, dict[int, Field]] = {}
        for (extendee, number), extension in self.declared.extensions.items():
            found.setdefault(extendee, {})[number] = extension
        return found

    def message(self, full_name: str) -> Message:
        """KeyError: no file declares it."""
        return self.declared.messages[full_name]

    def enum(self, full_name: str) -> Enum:
        """KeyError: no file declares it."""
        return self.declared.enums[full_name]


def declared_by(files: Iterable[File]) -> Declared:
    """Everything `files` declare; of two things with one name the first."""
    found = Declared()
    for file in files:
        for element in file.elements():
            if isinstance(element, Message):
                found.messages.setdefault(element.full_name, element)
            elif isinstance(element, Enum):
                found.enums.setdefault(element.full_name, element)
            elif isinstance(element, Service):
                found.services.setdefault(element.full_name, element)
            else:
                key = element.proto.extendee.removeprefix("."), element.proto.number
                found.extensions.setdefault(key, element)
    return found
