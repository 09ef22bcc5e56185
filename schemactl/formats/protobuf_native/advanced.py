"""Pulsar's opt-in "advanced" checker of PROTOBUF_NATIVE (5.0), as ProtobufNativeSchemaCompatibility decides.

It walks what the root messages reach, breadth first, fields in order of their numbers, and refuses at the first rule
that fires. Here every one is told, in its order; the first is what a broker names.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from google.protobuf.descriptor_pb2 import EDITION_2023, EDITION_2024, FeatureSet

from schemactl.formats.protobuf_native.default import can_have_default, default_of
from schemactl.formats.protobuf_native.descriptor import ENUM, MAP, REQUIRED, STRING, Enum, Field, Message
from schemactl.formats.protobuf_native.features import (
    JAVA_FEATURES,
    JAVA_UTF8_VERIFY,
    extension_of,
    field_numbers,
)
from schemactl.formats.protobuf_native.image import File
from schemactl.formats.protobuf_native.wire import MAX_PAIRS

Rule: TypeAlias = Literal[
    "ROOT_MESSAGE_CHANGED",
    "UNSUPPORTED_FEATURE",
    "FIELD_NUMBER_CHANGED",
    "REQUIRED_FIELD_NOT_GUARANTEED",
    "ONEOF_CONFLICT",
    "MAP_CHANGED",
    "CARDINALITY_CHANGED",
    "TYPE_CHANGED",
    "DEFAULT_CHANGED",
    "UTF8_VALIDATION_ADDED",
    "ENUM_VALUE_NOT_READABLE",
    "COMPARISON_LIMIT_EXCEEDED",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the checker would not let `reader` read what `writer` wrote.

    Attributes:
        path: the fields from the root to the place, after the root's full name: `web.Click.user.id`.
        pointer: the same place for `places.find`, in the reader.
    """

    rule: Rule
    path: str
    pointer: str


def refusals(*, reader: Message, writer: Message) -> Iterator[Refusal]:
    """Every refusal of the checker, in its order."""
    if writer.full_name != reader.full_name:
        yield Refusal("ROOT_MESSAGE_CHANGED", writer.full_name, reader.pointer)
        return
    yield from _unsupported(writer)
    yield from _unsupported(reader)
    queue = deque([(writer, reader, writer.full_name)])
    seen = {(writer.full_name, reader.full_name)}
    while queue:
        writer, reader, path = queue.popleft()
        yield from _compare_messages(writer, reader, path)
        before = writer.fields()
        for number, after in sorted(reader.fields().items()):
            if number not in before:
                continue
            here, types = f"{path}.{after.name}", (before[number].type_name, after.type_name)
            rule = _broken_rule(before[number], after)
            if rule:
                yield Refusal(rule, here, after.pointer)
            elif after.is_message and types not in seen:
                seen.add(types)
                if len(seen) > MAX_PAIRS:
                    yield Refusal("COMPARISON_LIMIT_EXCEEDED", here, after.pointer)
                    return
                queue.append((writer.file.image.message(types[0]), reader.file.image.message(types[1]), here))


def _compare_messages(writer: Message, reader: Message, path: str) -> Iterator[Refusal]:
    before, fields = writer.fields(), [field for _, field in sorted(reader.fields().items())]
    numbers = {field.name: number for number, field in before.items()}
    for field in fields:
        if numbers.get(field.name, field.proto.number) != field.proto.number:
            yield Refusal("FIELD_NUMBER_CHANGED", f"{path}.{field.name}", field.pointer)
    for field in fields:
        known = before.get(field.proto.number)
        if field.cardinality == REQUIRED and (known is None or known.cardinality != REQUIRED):
            yield Refusal("REQUIRED_FIELD_NOT_GUARANTEED", f"{path}.{field.name}", field.pointer)
    for oneof in sorted(reader.oneofs(), key=lambda oneof: oneof.numbers):
        groups = [before[number].oneof for number in oneof.numbers if number in before]
        if len(groups) > 1 and ("" in groups or len(set(groups)) > 1):
            yield Refusal("ONEOF_CONFLICT", f"{path}.{oneof.name}", oneof.pointer)


def _broken_rule(writer: Field, reader: Field) -> Rule | None:
    """The first rule that a pair of fields breaks, the messages they hold left out."""
    rule: Rule | None = None
    if (writer.cardinality == MAP) != (reader.cardinality == MAP):
        rule = "MAP_CHANGED"
    elif writer.is_repeated != reader.is_repeated:
        rule = "CARDINALITY_CHANGED"
    elif writer.kind != reader.kind:
        rule = "TYPE_CHANGED"
    elif not _same_default(writer, reader):
        rule = "DEFAULT_CHANGED"
    elif reader.kind == STRING and _checks_utf8(reader) and not _checks_utf8(writer):
        rule = "UTF8_VALIDATION_ADDED"
    elif reader.kind == ENUM and not _readable(writer.enum, reader.enum):
        rule = "ENUM_VALUE_NOT_READABLE"
    return rule


def _same_default(writer: Field, reader: Field) -> bool:
    if not can_have_default(reader):
        return True
    before, after = default_of(writer), default_of(reader)
    if isinstance(before, float) and isinstance(after, float):
        # As Double.doubleToLongBits: NaN is NaN, and minus zero is not zero.
        return struct.pack("<d", before) == struct.pack("<d", after)
    return before == after


def _checks_utf8(field: Field) -> bool:
    """FieldDescriptor.needsUtf8Check: maps always check."""
    return (
        field.in_map_entry
        or field.features.utf8_validation == FeatureSet.VERIFY
        or field.features.java_utf8_validation == JAVA_UTF8_VERIFY
        or field.file.proto.options.java_string_check_utf8
    )


def _readable(writer: Enum, reader: Enum) -> bool:
    before, after = writer.numbers(), reader.numbers()
    if any(before.get(name, number) != number for name, number in after.items()):
        return False
    if not reader.is_closed:
        return True
    return writer.is_closed and set(before.values()) <= set(after.values())


def _unsupported(root: Message) -> Iterator[Refusal]:
    """What the checker does not understand, in the order of its walk."""
    queue, seen = deque([root]), {root.full_name}
    while queue:
        message = queue.popleft()
        path = message.full_name
        at_message = Refusal("UNSUPPORTED_FEATURE", path, message.pointer)
        if not _is_supported_language(message.file):
            yield at_message
        if message.proto.extension_range or message.proto.options.message_set_wire_format:
            yield at_message
        yield from _unsupported_scopes(message)
        for _, field in sorted(message.fields().items()):
            yield from _unsupported_field(field, f"{path}.{field.name}", first=field.type_name not in seen)
            if field.is_message and field.type_name not in seen:
                queue.append(message.file.image.message(field.type_name))
            seen.add(field.type_name)
        for declared in message.proto.oneof_decl:
            if not _are_supported(declared.options.features):
                yield Refusal("UNSUPPORTED_FEATURE", f"{path}.{declared.name}", message.pointer)


def _unsupported_field(field: Field, path: str, *, first: bool) -> Iterator[Refusal]:
    at_field = Refusal("UNSUPPORTED_FEATURE", path, field.pointer)
    if not _are_supported(field.proto.options.features):
        yield at_field
    if field.kind != ENUM:
        return
    if first:
        if not _is_supported_enum(field.enum):
            yield at_field
        if field.enum.parent:
            yield from _unsupported_scopes(field.enum.parent)
    if field.is_closed_enum != field.enum.is_closed:
        yield at_field


def _unsupported_scopes(message: Message) -> Iterator[Refusal]:
    scope: Message | None = message
    while scope is not None:
        if not _are_supported(scope.proto.options.features):
            yield Refusal("UNSUPPORTED_FEATURE", scope.full_name, scope.pointer)
        scope = scope.parent


def _is_supported_language(file: File) -> bool:
    proto = file.proto
    if proto.syntax == "editions":
        known = proto.edition in (EDITION_2023, EDITION_2024)
    else:
        known = proto.syntax in ("", "proto2", "proto3") and not proto.HasField("edition")
    return known and _are_supported(proto.options.features)


def _is_supported_enum(enum: Enum) -> bool:
    values = (value.options.features for value in enum.proto.value)
    return (
        _is_supported_language(enum.file)
        and _are_supported(enum.proto.options.features)
        and all(map(_are_supported, values))
    )


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
