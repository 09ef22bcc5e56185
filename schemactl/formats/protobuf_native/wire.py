"""The data verdict: where a reader of one descriptor fails on, or misreads, the bytes of another.

The rules are buf's WIRE rules, by their names, as far as they are about bytes, read in one direction: the writer is
buf's "previous", the reader its "new". Where buf goes by names, this goes by what is on the wire:

* A message or enum type may be called otherwise, and a package, too: what it holds is compared, from the root on.
* FIELD_SAME_ONEOF: only where the reader's oneof drops what the writer sets beside each other; a renamed oneof, or one
  that is dissolved, is read as before.
* MESSAGE_SAME_REQUIRED_FIELDS: only where a message may come without what the reader requires; also for editions.
* ENUM_VALUE_NO_DELETE: only for readers that take the listed numbers alone (closed enums), whose parsers put others
  aside. There a reserved number does not help, and a value that only the writer has is as unreadable as a deleted one.

Deleted fields, RPCs and reserved numbers change no byte. A writer is taken at its schema's word: its strings are UTF-8,
its enums hold listed numbers. Integers of one group that lose high bits in a smaller type are compatible, as protobuf
has it ("Updating A Message Type").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from schemactl.formats.protobuf_native.default import (
    can_have_default,
    default_of,
    is_zero,
    printed,
    same_default,
)
from schemactl.formats.protobuf_native.descriptor import (
    BYTES,
    ENUM,
    KIND_NAMES,
    REQUIRED,
    STRING,
    Enum,
    Field,
    Message,
)
from schemactl.formats.protobuf_native.fields import WIRE_GROUPS
from schemactl.model import Incompatibility


def misreadings(*, reader: Message, writer: Message) -> Iterator[Incompatibility]:
    """Every reason why `reader` may fail on a message of `writer` or read it wrongly.

    From the root down, the fields of a message in the order of the reader's file. Nothing yielded: every message is
    read as it was meant. Each pair of messages, and of enums, is judged once, wherever it occurs.
    """
    queue = deque([(reader, writer)])
    seen = {(reader.full_name, writer.full_name)}
    while queue:
        reader, writer = queue.popleft()
        yield from _message(reader, writer)
        written = _fields(writer)
        for number, field in _fields(reader).items():
            if number not in written:
                continue
            pair = field.type_name, written[number].type_name
            found = list(_field(field, written[number], is_known=pair in seen))
            yield from found
            if field.is_message and not found and pair not in seen:
                queue.append((field.file.image.message(pair[0]), written[number].file.image.message(pair[1])))
            if field.type_name:
                seen.add(pair)


def _fields(message: Message) -> dict[int, Field]:
    return message.fields() | message.file.image.extensions_of.get(message.full_name, {})


def _message(reader: Message, writer: Message) -> Iterator[Incompatibility]:
    if reader.proto.options.message_set_wire_format != writer.proto.options.message_set_wire_format:
        yield Incompatibility(
            "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT",
            f"{reader.pointer}/message_set_wire_format",
            f"only one side has {reader.full_name} in the message set wire format",
        )
    written = _fields(writer)
    for number, field in _fields(reader).items():
        if field.cardinality != REQUIRED or (number in written and written[number].cardinality == REQUIRED):
            continue
        lack = "does not require it" if number in written else "does not have it"
        yield Incompatibility(
            "MESSAGE_SAME_REQUIRED_FIELDS",
            field.pointer,
            f"the reader requires {_called(field)}, the writer {lack}",
        )
    for oneof in reader.oneofs():
        members = [written[number] for number in oneof.numbers if number in written]
        groups = {member.oneof for member in members}
        if len(members) > 1 and ("" in groups or len(groups) > 1):
            names = " and ".join(f"{member.proto.number} ({member.proto.name})" for member in members)
            yield Incompatibility(
                "FIELD_SAME_ONEOF",
                oneof.pointer,
                f"the writer may set fields {names} in one message, the reader's oneof {oneof.name} keeps the last of them",
            )


def _field(reader: Field, writer: Field, *, is_known: bool) -> Iterator[Incompatibility]:
    """What is wrong between two fields of one number; of a type, only the nearest reason."""
    if WIRE_GROUPS[reader.kind] != WIRE_GROUPS[writer.kind] and (writer.kind, reader.kind) != (STRING, BYTES):
        kinds = f"is written as {KIND_NAMES[writer.kind]} and read as {KIND_NAMES[reader.kind]}"
        yield Incompatibility(
            "FIELD_WIRE_COMPATIBLE_TYPE", f"{reader.pointer}/type", f"{_called(reader)} {kinds}"
        )
    elif reader.is_repeated != writer.is_repeated:
        shapes = f"is written as {_shape(writer)} and read as {_shape(reader)}"
        yield Incompatibility(
            "FIELD_WIRE_COMPATIBLE_CARDINALITY", reader.pointer, f"{_called(reader)} {shapes}"
        )
    else:
        if writer.cardinality != REQUIRED and not _same_default(reader, writer):
            values = f"{printed(writer)} to the writer and {printed(reader)} to the reader"
            yield Incompatibility(
                "FIELD_SAME_DEFAULT",
                f"{reader.pointer}/default",
                f"{_called(reader)} is, where it is not set, {values}",
            )
        if reader.kind == writer.kind == ENUM and reader.is_closed_enum and not is_known:
            yield from _unreadable_values(reader.enum, writer.enum)


def _same_default(reader: Field, writer: Field) -> bool:
    if not can_have_default(reader) or not can_have_default(writer):
        return True
    return (is_zero(default_of(reader)) and is_zero(default_of(writer))) or same_default(writer, reader)


def _unreadable_values(reader: Enum, writer: Enum) -> Iterator[Incompatibility]:
    readable = set(reader.numbers().values())
    missing = [f"{number} ({name})" for name, number in writer.numbers().items() if number not in readable]
    if missing:
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        yield Incompatibility(
            "ENUM_VALUE_NO_DELETE",
            reader.pointer,
            f"the reader's enum {reader.full_name} does not list {listed}",
        )


def _shape(field: Field) -> str:
    return field.cardinality if field.is_repeated else "one value"


def _called(field: Field) -> str:
    holder = field.proto.extendee.removeprefix(".") or (field.message.full_name if field.message else "")
    return f"field {field.proto.number} ({field.name}) of {holder}"
