"""What Pulsar's advanced checker does not understand, wherever the root reaches it, on either side."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import EDITION_2023, EDITION_2024, FeatureSet

from schemactl.formats.protobuf_native.descriptor import ENUM, Field, Message
from schemactl.formats.protobuf_native.features import JAVA_FEATURES, extension_of, field_numbers
from schemactl.formats.protobuf_native.image import File
from schemactl.formats.protobuf_native.refusal import Refusal, Work, below


def unsupported(root: Message, work: Work) -> Iterator[Refusal]:
    """Every refusal of what `root` reaches, in the order of the checker's walk.

    Raises:
        Exhausted: there is more to look at than the checker looks at.
    """
    return _Walk(root, work).refusals()


class _Walk:
    """A walk over what a root message reaches, breadth first, each message, enum, file and scope once."""

    def __init__(self, root: Message, work: Work) -> None:
        self._root = root
        self._work = work
        self._types = {root.full_name}
        self._scopes: set[str] = set()
        self._files: set[str] = set()

    def refusals(self) -> Iterator[Refusal]:
        queue = deque([self._root])
        while queue:
            message = queue.popleft()
            path = message.full_name
            self._work.charge(1, path, message)
            yield from self._file(message.file, path, message)
            if message.proto.extension_range or message.proto.options.message_set_wire_format:
                yield Refusal("UNSUPPORTED_FEATURE", path, message.pointer)
            yield from self._scope(message)
            self._work.charge(len(message.proto.field), path, message)
            for _, field in sorted(message.fields().items()):
                self._work.charge(1, path, message)
                is_new = field.type_name not in self._types
                self._types.add(field.type_name)
                yield from self._field(field, below(path, field), is_new=is_new)
                if field.is_message and is_new:
                    queue.append(message.file.image.message(field.type_name))
            yield from self._oneofs(message)

    def _field(self, field: Field, path: str, *, is_new: bool) -> Iterator[Refusal]:
        at_field = Refusal("UNSUPPORTED_FEATURE", path, field.pointer)
        if not _are_supported(field.proto.options.features):
            yield at_field
        if field.kind != ENUM:
            return
        enum = field.enum
        if is_new:
            self._work.charge(1 + len(enum.proto.value), path, field)
            yield from self._file(enum.file, path, field)
            yield from self._scope(enum.parent)
            options = (enum.proto.options.features, *(value.options.features for value in enum.proto.value))
            if not all(map(_are_supported, options)):
                yield at_field
        if field.is_closed_enum != enum.is_closed:
            yield at_field

    def _oneofs(self, message: Message) -> Iterator[Refusal]:
        declared = message.proto.oneof_decl
        members = sum(proto.HasField("oneof_index") for proto in message.proto.field)
        self._work.charge(len(declared) + members + len(declared), message.full_name, message)
        for oneof in declared:
            if not _are_supported(oneof.options.features):
                yield Refusal("UNSUPPORTED_FEATURE", f"{message.full_name}.{oneof.name}", message.pointer)

    def _file(self, file: File, path: str, at: Message | Field) -> Iterator[Refusal]:
        if file.name not in self._files:
            self._files.add(file.name)
            self._work.charge(1, path, at)
            if not _is_supported_language(file):
                yield Refusal("UNSUPPORTED_FEATURE", path, at.pointer)

    def _scope(self, message: Message | None) -> Iterator[Refusal]:
        while message is not None and message.full_name not in self._scopes:
            self._scopes.add(message.full_name)
            self._work.charge(1, message.full_name, message)
            if not _are_supported(message.proto.options.features):
                yield Refusal("UNSUPPORTED_FEATURE", message.full_name, message.pointer)
            message = message.parent


def _is_supported_language(file: File) -> bool:
    proto = file.proto
    if proto.syntax == "editions":
        known = proto.edition in (EDITION_2023, EDITION_2024)
    else:
        known = proto.syntax in ("", "proto2", "proto3") and not proto.HasField("edition")
    return known and _are_supported(proto.options.features)


_KNOWN_FEATURES = {field.number: field.name for field in FeatureSet.DESCRIPTOR.fields if field.number <= 8}
_KNOWN_JAVA_FEATURES = range(1, 6)


def _are_supported(features: FeatureSet) -> bool:
    """Nothing is set that this checker's protobuf does not know, and nothing to "unknown"."""
    numbers = field_numbers(features)
    if JAVA_FEATURES in numbers:
        numbers.remove(JAVA_FEATURES)
        java = extension_of(features, JAVA_FEATURES)
        if not java.keys() <= set(_KNOWN_JAVA_FEATURES) or java.get(2) == 0:
            return False
    set_to = {
        field.number: value for field, value in features.ListFields() if field.number in _KNOWN_FEATURES
    }
    return set_to.keys() == numbers and all(set_to[number] != 0 for number in set_to)
