"""Pulsar's opt-in "advanced" checker of PROTOBUF_NATIVE (5.0), as ProtobufNativeSchemaCompatibility decides.

It walks what the root messages reach, breadth first, fields in order of their numbers, and refuses at the first rule
that fires. Here every one is told, in its order; the first is what a broker names.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FeatureSet

from schemactl.formats.protobuf_native.default import can_have_default, default_of
from schemactl.formats.protobuf_native.descriptor import ENUM, MAP, REQUIRED, STRING, Enum, Field, Message
from schemactl.formats.protobuf_native.features import JAVA_UTF8_VERIFY
from schemactl.formats.protobuf_native.refusal import Exhausted, Refusal, Rule, Work, below
from schemactl.formats.protobuf_native.unsupported import unsupported


def refusals(*, reader: Message, writer: Message) -> Iterator[Refusal]:
    """Every refusal of the checker, in its order."""
    try:
        yield from compare(reader, writer, Work())
    except Exhausted as exhausted:
        yield exhausted.refusal


def compare(reader: Message, writer: Message, work: Work) -> Iterator[Refusal]:
    """Every refusal, as long as there is `work` to do.

    Raises:
        Exhausted: there is no more.
    """
    if writer.full_name != reader.full_name:
        yield Refusal("ROOT_MESSAGE_CHANGED", writer.full_name, reader.pointer)
        return
    for root in (writer, reader):
        yield from unsupported(root, work)
    work.set_limit()
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
                yield Refusal(rule, here, after.pointer)
            elif after.is_message and types not in seen:
                seen.add(types)
                work.charge(1, here, after)
                queue.append((writer.file.image.message(types[0]), reader.file.image.message(types[1]), here))


def _compare_messages(writer: Message, reader: Message, path: str, work: Work) -> Iterator[Refusal]:
    before, fields = writer.fields(), [field for _, field in sorted(reader.fields().items())]
    work.charge(3 * len(fields), path, reader)
    numbers = {field.name: number for number, field in before.items()}
    for field in fields:
        if numbers.get(field.name, field.proto.number) != field.proto.number:
            yield Refusal("FIELD_NUMBER_CHANGED", below(path, field), field.pointer)
    for field in fields:
        known = before.get(field.proto.number)
        if field.cardinality == REQUIRED and (known is None or known.cardinality != REQUIRED):
            yield Refusal("REQUIRED_FIELD_NOT_GUARANTEED", below(path, field), field.pointer)
    work.charge(len(reader.proto.oneof_decl), path, reader)
    for oneof in sorted(reader.oneofs(), key=lambda oneof: oneof.numbers):
        work.charge(2 * len(oneof.numbers), path, reader)
        groups = [before[number].oneof for number in oneof.numbers if number in before]
        if len(groups) > 1 and ("" in groups or len(set(groups)) > 1):
            yield Refusal("ONEOF_CONFLICT", below(path, oneof), oneof.pointer)


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
