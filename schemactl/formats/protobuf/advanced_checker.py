"""Pulsar 5.0's optional advanced checker of PROTOBUF_NATIVE (ProtobufNativeSchemaCompatibility).

It walks what the root messages reach, breadth first, fields in order of their numbers, and rejects at the first rule that
fires. Here every violation is yielded, in its order; the first is what a broker names.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor_pb2 import EDITION_2023, EDITION_2024, FeatureSet

from schemactl.formats.protobuf.descriptor import (
    ENUM,
    JAVA_FEATURES,
    JAVA_UTF8_VERIFY,
    MAP,
    REQUIRED,
    STRING,
    File,
    Oneof,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    can_have_default,
    default_of,
    extension_of,
    field_numbers,
)

_MAX_PATH_LENGTH: Final = 768
_MAX_WORK: Final = 100_000
_WORK_PER_GRAPH: Final = 16


@dataclass(frozen=True, slots=True)
class AdvancedViolation:
    """A rule of the advanced checker that a reader violates for what a writer wrote.

    Attributes:
        path: the fields from the root to the place, after the root's full name: `web.Click.user.id`.
        pointer: the same place for `definition.find`.
    """

    rule: str
    path: str
    pointer: str


def below(path: str, part: ProtoField | Oneof) -> str:
    """Return the path of a field or oneof; a long one is cut, as the checker cuts it."""
    whole = f"{path}.{part.name}"
    return whole if len(whole) <= _MAX_PATH_LENGTH else f"{whole[: _MAX_PATH_LENGTH - 3]}..."


class WorkLimitReached(Exception):
    """The checker stops comparing: its argument is the violation."""


class Work:
    """What one comparison has cost so far, in the checker's own units (ProtobufNativeSchemaCompatibility.Comparison)."""

    def __init__(self) -> None:
        self.done = 0
        self.limit = _MAX_WORK

    def charge(self, units: int, path: str, at: ProtoMessage | ProtoField) -> None:
        """Add `units` of work.

        Raises:
            WorkLimitReached: they are beyond the limit.
        """
        if units > self.limit - self.done:
            raise WorkLimitReached(AdvancedViolation("COMPARISON_LIMIT_EXCEEDED", path, at.pointer))
        self.done += units


def advanced_violations(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[AdvancedViolation]:
    """Yield every violation that the checker finds, in its order."""
    try:
        yield from _compare(reader, writer, Work())
    except WorkLimitReached as exhausted:
        yield exhausted.args[0]


def _compare(reader: ProtoMessage, writer: ProtoMessage, work: Work) -> Iterator[AdvancedViolation]:
    """Yield every violation while `work` lasts.

    Raises:
        WorkLimitReached: the checker would stop here.
    """
    if writer.full_name != reader.full_name:
        yield AdvancedViolation("ROOT_MESSAGE_CHANGED", writer.full_name, reader.pointer)
        return
    for root in (writer, reader):
        yield from _SupportWalk(root, work).violations()
    # From here on a multiple of what it took to look at both graphs.
    work.limit = min(_MAX_WORK, work.done * _WORK_PER_GRAPH)
    work.charge(1, writer.full_name, reader)
    queue = deque([(writer, reader, writer.full_name)])
    seen = {(writer.full_name, reader.full_name)}
    enums: set[tuple[str, str]] = set()
    while queue:
        writer, reader, path = queue.popleft()
        yield from _compare_messages(writer, reader, path, work)
        before = writer.fields()
        for number, after in sorted(reader.fields().items()):
            if number not in before:
                continue
            here, types = below(path, after), (before[number].type_name, after.type_name)
            rule = _broken_rule(before[number], after)
            is_enum = after.kind == ENUM and rule in (None, "ENUM_VALUE_NOT_READABLE")
            if is_enum and types not in enums:
                enums.add(types)
                values = len(before[number].enum.proto.value) + len(after.enum.proto.value)
                work.charge(1 + 2 * values, here, after)
            if rule:
                yield AdvancedViolation(rule, here, after.pointer)
            elif after.is_message and types not in seen:
                seen.add(types)
                work.charge(1, here, after)
                queue.append((before[number].message_type, after.message_type, here))


def _compare_messages(writer: ProtoMessage, reader: ProtoMessage, path: str, work: Work) -> Iterator[AdvancedViolation]:
    before, fields = writer.fields(), [field for _, field in sorted(reader.fields().items())]
    work.charge(3 * len(fields), path, reader)
    numbers = {field.name: number for number, field in before.items()}
    for field in fields:
        if numbers.get(field.name, field.proto.number) != field.proto.number:
            yield AdvancedViolation("FIELD_NUMBER_CHANGED", below(path, field), field.pointer)
    for field in fields:
        known = before.get(field.proto.number)
        if field.cardinality == REQUIRED and (known is None or known.cardinality != REQUIRED):
            yield AdvancedViolation("REQUIRED_FIELD_NOT_GUARANTEED", below(path, field), field.pointer)
    work.charge(len(reader.proto.oneof_decl), path, reader)
    for oneof in sorted(reader.oneofs(), key=lambda oneof: oneof.numbers):
        work.charge(2 * len(oneof.numbers), path, reader)
        groups = [before[number].oneof for number in oneof.numbers if number in before]
        if len(groups) > 1 and ("" in groups or len(set(groups)) > 1):
            yield AdvancedViolation("ONEOF_CONFLICT", below(path, oneof), oneof.pointer)


def _broken_rule(writer: ProtoField, reader: ProtoField) -> str | None:
    """Return the first rule that a pair of fields breaks, the messages they hold left out."""
    rule = None
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


def _same_default(writer: ProtoField, reader: ProtoField) -> bool:
    if not can_have_default(reader):
        return True
    before, after = default_of(writer), default_of(reader)
    if isinstance(before, float) and isinstance(after, float):
        # As Double.doubleToLongBits: NaN is NaN, and minus zero is not zero.
        return struct.pack("<d", before) == struct.pack("<d", after)
    return before == after


def _checks_utf8(field: ProtoField) -> bool:
    """FieldDescriptor.needsUtf8Check: maps always check."""
    return (
        field.in_map_entry
        or field.features.utf8_validation == FeatureSet.VERIFY
        or field.features.java_utf8_validation == JAVA_UTF8_VERIFY
        or field.file.proto.options.java_string_check_utf8
    )


def _readable(writer: ProtoEnum, reader: ProtoEnum) -> bool:
    before, after = writer.numbers(), reader.numbers()
    if any(before.get(name, number) != number for name, number in after.items()):
        return False
    if not reader.is_closed:
        return True
    return writer.is_closed and set(before.values()) <= set(after.values())


class _SupportWalk:
    """What the checker does not support below a root message: breadth first, each message, enum, file and scope once."""

    def __init__(self, root: ProtoMessage, work: Work) -> None:
        self._root = root
        self._work = work
        self._types = {root.full_name}
        self._scopes: set[str] = set()
        self._files: set[str] = set()

    def violations(self) -> Iterator[AdvancedViolation]:
        queue = deque([self._root])
        while queue:
            message = queue.popleft()
            path = message.full_name
            self._work.charge(1, path, message)
            yield from self._file(message.file, path, message)
            if message.proto.extension_range or message.proto.options.message_set_wire_format:
                yield AdvancedViolation("UNSUPPORTED_FEATURE", path, message.pointer)
            yield from self._scope(message)
            self._work.charge(len(message.proto.field), path, message)
            for _, field in sorted(message.fields().items()):
                self._work.charge(1, path, message)
                is_new = field.type_name not in self._types
                self._types.add(field.type_name)
                yield from self._field(field, below(path, field), is_new=is_new)
                if field.is_message and is_new:
                    queue.append(field.message_type)
            yield from self._oneofs(message)

    def _field(self, field: ProtoField, path: str, *, is_new: bool) -> Iterator[AdvancedViolation]:
        at_field = AdvancedViolation("UNSUPPORTED_FEATURE", path, field.pointer)
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

    def _oneofs(self, message: ProtoMessage) -> Iterator[AdvancedViolation]:
        declared = message.proto.oneof_decl
        members = sum(proto.HasField("oneof_index") for proto in message.proto.field)
        self._work.charge(len(declared) + members + len(declared), message.full_name, message)
        for oneof in declared:
            if not _are_supported(oneof.options.features):
                yield AdvancedViolation("UNSUPPORTED_FEATURE", f"{message.full_name}.{oneof.name}", message.pointer)

    def _file(self, file: File, path: str, at: ProtoMessage | ProtoField) -> Iterator[AdvancedViolation]:
        if file.name not in self._files:
            self._files.add(file.name)
            self._work.charge(1, path, at)
            if not _is_supported_language(file):
                yield AdvancedViolation("UNSUPPORTED_FEATURE", path, at.pointer)

    def _scope(self, message: ProtoMessage | None) -> Iterator[AdvancedViolation]:
        while message is not None and message.full_name not in self._scopes:
            self._scopes.add(message.full_name)
            self._work.charge(1, message.full_name, message)
            if not _are_supported(message.proto.options.features):
                yield AdvancedViolation("UNSUPPORTED_FEATURE", message.full_name, message.pointer)
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
    set_to = {field.number: value for field, value in features.ListFields() if field.number in _KNOWN_FEATURES}
    return set_to.keys() == numbers and all(set_to[number] != 0 for number in set_to)
