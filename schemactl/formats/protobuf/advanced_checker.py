"""Predict the answer of Pulsar 5.0's optional advanced checker of PROTOBUF_NATIVE (ProtobufNativeSchemaCompatibility).

The checker walks the messages that the roots reach, breadth first, fields in the order of their numbers, and rejects at the first
rule that fires. Here every violation is yielded in its order; the first is the violation that a broker names.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor_pb2 import EDITION_2023, EDITION_2024, FeatureSet

from schemactl.formats.protobuf.defaults import can_have_default, get_default
from schemactl.formats.protobuf.descriptor import File, Oneof, ProtoEnum, ProtoField, ProtoMessage
from schemactl.formats.protobuf.features import JAVA_FEATURES, JAVA_UTF8_VERIFY, list_field_numbers, read_extension
from schemactl.formats.protobuf.kinds import ENUM, MAP, REQUIRED, STRING

_MAX_PATH_LENGTH: Final = 768
_MAX_WORK: Final = 100_000
_WORK_PER_GRAPH: Final = 16
_KNOWN_FEATURES = {field.number: field.name for field in FeatureSet.DESCRIPTOR.fields if field.number <= 8}
_KNOWN_JAVA_FEATURES = range(1, 6)


@dataclass(frozen=True, slots=True)
class AdvancedViolation:
    """A rule of the advanced checker that a pair of reader and writer violates.

    Attributes:
        rule: the name of the rule.
        path: the fields from the root to the place, after the root's full name: `web.Click.user.id`.
        pointer: the same place for `definition.find_place`.
    """

    rule: str
    path: str
    pointer: str


class WorkLimitReached(Exception):
    """The checker stops comparing; the argument is the violation."""


class Work:
    """The cost of one comparison so far, in the checker's own units (ProtobufNativeSchemaCompatibility.Comparison)."""

    def __init__(self) -> None:
        self.done = 0
        self.limit = _MAX_WORK

    def charge(self, units: int, path: str, element: ProtoMessage | ProtoField) -> None:
        """Add `units` of work at an element.

        Raises:
            WorkLimitReached: if they exceed the limit.
        """
        if units > self.limit - self.done:
            raise WorkLimitReached(AdvancedViolation("COMPARISON_LIMIT_EXCEEDED", path, element.pointer))
        self.done += units


def find_advanced_violations(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[AdvancedViolation]:
    """Yield every violation that the checker finds, in its order."""
    try:
        yield from _compare(reader, writer, Work())
    except WorkLimitReached as limit:
        yield limit.args[0]


def _compare(reader: ProtoMessage, writer: ProtoMessage, work: Work) -> Iterator[AdvancedViolation]:
    """Yield every violation within the limit of `work`.

    Raises:
        WorkLimitReached: if the checker would stop here.
    """
    if writer.full_name != reader.full_name:
        yield AdvancedViolation("ROOT_MESSAGE_CHANGED", writer.full_name, reader.pointer)
        return
    for root in (writer, reader):
        yield from _SupportWalk(root, work).find_violations()
    # From here on, the limit is a multiple of the work for both graphs.
    work.limit = min(_MAX_WORK, work.done * _WORK_PER_GRAPH)
    work.charge(1, writer.full_name, reader)
    queue = deque([(writer, reader, writer.full_name)])
    queued_types = {(writer.full_name, reader.full_name)}
    compared_enums: set[tuple[str, str]] = set()
    while queue:
        writer, reader, path = queue.popleft()
        yield from _compare_messages(writer, reader, path, work)
        writer_fields = writer.fields()
        for number, field in sorted(reader.fields().items()):
            writer_field = writer_fields.get(number)
            if writer_field is None:
                continue
            field_path, types = _extend_path(path, field), (writer_field.type_name, field.type_name)
            rule = _find_broken_rule(writer_field, field)
            is_enum = field.kind == ENUM and rule in (None, "ENUM_VALUE_NOT_READABLE")
            if is_enum and types not in compared_enums:
                compared_enums.add(types)
                value_count = len(writer_field.enum.proto.value) + len(field.enum.proto.value)
                work.charge(1 + 2 * value_count, field_path, field)
            if rule:
                yield AdvancedViolation(rule, field_path, field.pointer)
            elif field.is_message and types not in queued_types:
                queued_types.add(types)
                work.charge(1, field_path, field)
                queue.append((writer_field.message_type, field.message_type, field_path))


def _compare_messages(writer: ProtoMessage, reader: ProtoMessage, path: str, work: Work) -> Iterator[AdvancedViolation]:
    writer_fields, reader_fields = writer.fields(), [field for _, field in sorted(reader.fields().items())]
    work.charge(3 * len(reader_fields), path, reader)
    writer_numbers = {field.name: number for number, field in writer_fields.items()}
    for field in reader_fields:
        if writer_numbers.get(field.name, field.proto.number) != field.proto.number:
            yield AdvancedViolation("FIELD_NUMBER_CHANGED", _extend_path(path, field), field.pointer)
    for field in reader_fields:
        writer_field = writer_fields.get(field.proto.number)
        is_guaranteed = writer_field is not None and writer_field.cardinality == REQUIRED
        if field.cardinality == REQUIRED and not is_guaranteed:
            yield AdvancedViolation("REQUIRED_FIELD_NOT_GUARANTEED", _extend_path(path, field), field.pointer)
    work.charge(len(reader.proto.oneof_decl), path, reader)
    for oneof in sorted(reader.oneofs(), key=lambda oneof: oneof.numbers):
        work.charge(2 * len(oneof.numbers), path, reader)
        writer_oneofs = [writer_fields[number].oneof for number in oneof.numbers if number in writer_fields]
        if len(writer_oneofs) > 1 and ("" in writer_oneofs or len(set(writer_oneofs)) > 1):
            yield AdvancedViolation("ONEOF_CONFLICT", _extend_path(path, oneof), oneof.pointer)


def _find_broken_rule(writer: ProtoField, reader: ProtoField) -> str | None:
    """Return the first rule that a pair of fields breaks, except for the messages inside them."""
    rule = None
    if (writer.cardinality == MAP) != (reader.cardinality == MAP):
        rule = "MAP_CHANGED"
    elif writer.is_repeated != reader.is_repeated:
        rule = "CARDINALITY_CHANGED"
    elif writer.kind != reader.kind:
        rule = "TYPE_CHANGED"
    elif not _has_same_default(writer, reader):
        rule = "DEFAULT_CHANGED"
    elif reader.kind == STRING and _checks_utf8(reader) and not _checks_utf8(writer):
        rule = "UTF8_VALIDATION_ADDED"
    elif reader.kind == ENUM and not _can_read_enum(writer.enum, reader.enum):
        rule = "ENUM_VALUE_NOT_READABLE"
    return rule


def _has_same_default(writer: ProtoField, reader: ProtoField) -> bool:
    if not can_have_default(reader):
        return True
    writer_default, reader_default = get_default(writer), get_default(reader)
    if isinstance(writer_default, float) and isinstance(reader_default, float):
        # Like Double.doubleToLongBits: NaN equals NaN, and minus zero does not equal zero.
        return struct.pack("<d", writer_default) == struct.pack("<d", reader_default)
    return writer_default == reader_default


def _checks_utf8(field: ProtoField) -> bool:
    """Follow FieldDescriptor.needsUtf8Check: maps always check."""
    return (
        field.in_map_entry
        or field.features.utf8_validation == FeatureSet.VERIFY
        or field.features.java_utf8_validation == JAVA_UTF8_VERIFY
        or field.file.proto.options.java_string_check_utf8
    )


def _can_read_enum(writer: ProtoEnum, reader: ProtoEnum) -> bool:
    writer_numbers, reader_numbers = writer.numbers(), reader.numbers()
    if any(writer_numbers.get(name, number) != number for name, number in reader_numbers.items()):
        return False
    if not reader.is_closed:
        return True
    return writer.is_closed and set(writer_numbers.values()) <= set(reader_numbers.values())


def _extend_path(path: str, part: ProtoField | Oneof) -> str:
    """Return the path of a field or oneof, cut to the same length as in the checker."""
    full_path = f"{path}.{part.name}"
    return full_path if len(full_path) <= _MAX_PATH_LENGTH else f"{full_path[: _MAX_PATH_LENGTH - 3]}..."


class _SupportWalk:
    """The search for unsupported features below a root message: breadth first, each message, enum, file and scope once."""

    def __init__(self, root: ProtoMessage, work: Work) -> None:
        self._root = root
        self._work = work
        self._visited_types = {root.full_name}
        self._visited_scopes: set[str] = set()
        self._visited_files: set[str] = set()

    def find_violations(self) -> Iterator[AdvancedViolation]:
        queue = deque([self._root])
        while queue:
            message = queue.popleft()
            path = message.full_name
            self._work.charge(1, path, message)
            yield from self._check_file(message.file, path, message)
            if message.proto.extension_range or message.proto.options.message_set_wire_format:
                yield AdvancedViolation("UNSUPPORTED_FEATURE", path, message.pointer)
            yield from self._check_scope(message)
            self._work.charge(len(message.proto.field), path, message)
            for _, field in sorted(message.fields().items()):
                self._work.charge(1, path, message)
                is_new = field.type_name not in self._visited_types
                self._visited_types.add(field.type_name)
                yield from self._check_field(field, _extend_path(path, field), is_new=is_new)
                if field.is_message and is_new:
                    queue.append(field.message_type)
            oneofs = message.proto.oneof_decl
            member_count = sum(proto.HasField("oneof_index") for proto in message.proto.field)
            self._work.charge(2 * len(oneofs) + member_count, path, message)
            for oneof in oneofs:
                if not _are_supported(oneof.options.features):
                    yield AdvancedViolation("UNSUPPORTED_FEATURE", f"{path}.{oneof.name}", message.pointer)

    def _check_file(self, file: File, path: str, element: ProtoMessage | ProtoField) -> Iterator[AdvancedViolation]:
        if file.name not in self._visited_files:
            self._visited_files.add(file.name)
            self._work.charge(1, path, element)
            proto = file.proto
            if proto.syntax == "editions":
                is_known = proto.edition in (EDITION_2023, EDITION_2024)
            else:
                is_known = proto.syntax in ("", "proto2", "proto3") and not proto.HasField("edition")
            if not is_known or not _are_supported(proto.options.features):
                yield AdvancedViolation("UNSUPPORTED_FEATURE", path, element.pointer)

    def _check_scope(self, message: ProtoMessage | None) -> Iterator[AdvancedViolation]:
        while message is not None and message.full_name not in self._visited_scopes:
            self._visited_scopes.add(message.full_name)
            self._work.charge(1, message.full_name, message)
            if not _are_supported(message.proto.options.features):
                yield AdvancedViolation("UNSUPPORTED_FEATURE", message.full_name, message.pointer)
            message = message.parent

    def _check_field(self, field: ProtoField, path: str, *, is_new: bool) -> Iterator[AdvancedViolation]:
        violation = AdvancedViolation("UNSUPPORTED_FEATURE", path, field.pointer)
        if not _are_supported(field.proto.options.features):
            yield violation
        if field.kind != ENUM:
            return
        enum = field.enum
        if is_new:
            self._work.charge(1 + len(enum.proto.value), path, field)
            yield from self._check_file(enum.file, path, field)
            yield from self._check_scope(enum.parent)
            options = (enum.proto.options.features, *(value.options.features for value in enum.proto.value))
            if not all(map(_are_supported, options)):
                yield violation
        if field.is_closed_enum != enum.is_closed:
            yield violation


def _are_supported(features: FeatureSet) -> bool:
    """Return whether this checker's protobuf knows all features that are set, and no value is "unknown"."""
    numbers = list_field_numbers(features)
    if JAVA_FEATURES in numbers:
        numbers.remove(JAVA_FEATURES)
        java_features = read_extension(features, JAVA_FEATURES)
        if not java_features.keys() <= set(_KNOWN_JAVA_FEATURES) or java_features.get(2) == 0:
            return False
    values = {field.number: value for field, value in features.ListFields() if field.number in _KNOWN_FEATURES}
    return values.keys() == numbers and all(value != 0 for value in values.values())
