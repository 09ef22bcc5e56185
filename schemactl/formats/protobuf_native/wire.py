"""The data verdict: where a reader with one descriptor fails on, or misreads, the messages of another.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Incompatibility
from schemactl.formats.protobuf_native import kinds
from schemactl.formats.protobuf_native.default import printed, same_default
from schemactl.formats.protobuf_native.descriptor import ProtoEnum, ProtoField, ProtoMessage

MAX_PAIRS: Final = 20_000
"""Of messages that meet: no real definition has as many, and a crafted one could take hours."""


def grouped(*groups: str) -> dict[kinds.Kind, int]:
    """Return a number for each kind; kinds that `groups` name together share it."""
    numbers = {name: index for index, group in enumerate(groups) for name in group.split()}
    return {kind: numbers.get(name, len(groups) + kind) for kind, name in kinds.KIND_NAMES.items()}


WIRE_GROUPS: Final[Mapping[kinds.Kind, int]] = grouped(
    "int32 int64 uint32 uint64 bool", "sint32 sint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""Kinds of which a reader of one makes sense of another's bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class MessagePair:
    """Two messages that meet at one place: `path` holds the numbers of the fields that lead there from the roots."""

    reader: ProtoMessage
    writer: ProtoMessage
    path: tuple[int, ...] = ()

    def fields(self) -> Iterator[tuple[ProtoField, ProtoField | None]]:
        """Yield the reader's fields in the order of its file, each with the writer's of that number; extensions last."""
        written = fields_of(self.writer)
        for number, field in fields_of(self.reader).items():
            yield field, written.get(number)


def pairs(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[MessagePair]:
    """Yield the roots, and every other two messages that meet below them; each two once, at the nearest place.

    Raises:
        InvalidSchema: there are more than MAX_PAIRS of them.
    """
    queue = deque([MessagePair(reader, writer)])
    seen = {(reader.full_name, writer.full_name)}
    while queue:
        pair = queue.popleft()
        yield pair
        for read, written in pair.fields():
            if written is None or not read.is_message or not _is_alike(read, written):
                continue
            types = read.type_name, written.type_name
            if types not in seen:
                seen.add(types)
                if len(seen) > MAX_PAIRS:
                    raise InvalidSchema(
                        f"its messages meet those of the other side in more than {MAX_PAIRS:,} ways"
                    )
                path = (*pair.path, read.proto.number)
                queue.append(MessagePair(read.message_type, written.message_type, path))


def misreadings(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    """Yield every reason why `reader` may fail on a message of `writer` or read it wrongly.

    From the root down, the fields of a message in the order of the reader's file. Without any, every message is
    read as it was meant. Two messages, or two enums, that meet at several places are judged once.

    Raises:
        InvalidSchema: they meet in more than MAX_PAIRS ways.
    """
    enums: set[tuple[str, str]] = set()
    for pair in pairs(reader=reader, writer=writer):
        yield from _message(pair.reader, pair.writer)
        for read, written in pair.fields():
            if written is None:
                continue
            yield from _field(read, written)
            if read.is_closed_enum and written.kind == kinds.ENUM and _is_alike(read, written):
                types = read.type_name, written.type_name
                if types not in enums:
                    enums.add(types)
                    yield from _unreadable_values(read.enum, written.enum)


def fields_of(message: ProtoMessage) -> Mapping[int, ProtoField]:
    """Return the fields and the extensions that the image knows, by number."""
    extensions = message.file.image.extensions_of.get(message.full_name)
    return {**message.fields(), **extensions} if extensions else message.fields()


def _shares_bytes(reader: ProtoField, writer: ProtoField) -> bool:
    return WIRE_GROUPS[reader.kind] == WIRE_GROUPS[writer.kind] or (writer.kind, reader.kind) == (
        kinds.STRING,
        kinds.BYTES,
    )


def _is_alike(reader: ProtoField, writer: ProtoField) -> bool:
    """Whether the reader gets at what was written."""
    return _shares_bytes(reader, writer) and reader.is_repeated == writer.is_repeated


def _message(reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    if reader.proto.options.message_set_wire_format != writer.proto.options.message_set_wire_format:
        yield Incompatibility(
            "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT",
            f"{reader.pointer}/message_set_wire_format",
            f"only one side has {reader.full_name} in the message set wire format",
        )
    written = fields_of(writer)
    for number, field in fields_of(reader).items():
        if field.cardinality != kinds.REQUIRED or (
            number in written and written[number].cardinality == kinds.REQUIRED
        ):
            continue
        lack = "does not require it" if number in written else "does not have it"
        yield Incompatibility(
            "MESSAGE_SAME_REQUIRED_FIELDS",
            field.pointer,
            f"the reader requires {_called(field)}, the writer {lack}",
        )
    for oneof in reader.oneofs():
        beside = independent([written[number] for number in oneof.numbers if number in written])
        if len(beside) > 1:
            names = " and ".join(f"{member.proto.number} ({member.proto.name})" for member in beside)
            yield Incompatibility(
                "FIELD_SAME_ONEOF",
                oneof.pointer,
                f"the writer may set fields {names} in one message, of which the reader's oneof {oneof.name} keeps the last",
            )


def independent(fields: Sequence[ProtoField]) -> list[ProtoField]:
    """Return those of some fields of one message that can be set together: of each oneof the first."""
    found: dict[str, ProtoField] = {}
    for field in fields:
        found.setdefault(field.oneof or f"/{field.proto.number}", field)
    return list(found.values())


def _field(reader: ProtoField, writer: ProtoField) -> Iterator[Incompatibility]:
    """Yield the nearest reason why a field is not read as the one of its number was written."""
    if not _shares_bytes(reader, writer):
        types = f"is written as {kinds.KIND_NAMES[writer.kind]} and read as {kinds.KIND_NAMES[reader.kind]}"
        yield Incompatibility(
            "FIELD_WIRE_COMPATIBLE_TYPE", f"{reader.pointer}/type", f"{_called(reader)} {types}"
        )
    elif reader.is_repeated != writer.is_repeated:
        shapes = f"is written as {_shape(writer)} and read as {_shape(reader)}"
        yield Incompatibility(
            "FIELD_WIRE_COMPATIBLE_CARDINALITY", reader.pointer, f"{_called(reader)} {shapes}"
        )
    elif writer.cardinality != kinds.REQUIRED and not same_default(writer, reader):
        values = f"{printed(writer)} to the writer and {printed(reader)} to the reader"
        yield Incompatibility(
            "FIELD_SAME_DEFAULT",
            f"{reader.pointer}/default",
            f"{_called(reader)} defaults to {values} when it is not set",
        )


def _unreadable_values(reader: ProtoEnum, writer: ProtoEnum) -> Iterator[Incompatibility]:
    readable = set(reader.numbers().values())
    missing = [f"{number} ({name})" for name, number in writer.numbers().items() if number not in readable]
    if missing:
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        yield Incompatibility(
            "ENUM_VALUE_NO_DELETE",
            reader.pointer,
            f"the reader's enum {reader.full_name} does not list {listed}",
        )


def _shape(field: ProtoField) -> str:
    return field.cardinality if field.is_repeated else "one value"


def _called(field: ProtoField) -> str:
    holder = field.proto.extendee.removeprefix(".") or (field.message.full_name if field.message else "")
    return f"field {field.proto.number} ({field.name}) of {holder}"
