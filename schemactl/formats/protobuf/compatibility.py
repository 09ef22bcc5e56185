"""Compare two protobuf definitions in one direction: the data verdict.

The data verdict has the WIRE rules of buf that concern bytes, under buf's names and in one direction: the writer is buf's
"previous", the reader its "new". buf matches by name, the data verdict by the bytes:

* A message or enum type, or a package, may have another name: its content is compared, from the root on.
* FIELD_SAME_ONEOF: only if the reader's oneof drops fields that the writer sets together; a renamed or dissolved oneof is readable.
* MESSAGE_SAME_REQUIRED_FIELDS: only if a message can lack a field that the reader requires; also for editions.
* ENUM_VALUE_NO_DELETE: only for readers of closed enums, whose parsers set unlisted numbers aside. There a reserved number does not
  help, and a value that only the writer has is as unreadable as a deleted one.

Deleted fields, RPCs and reserved numbers change no bytes. A writer is assumed to follow its schema: its strings are UTF-8, its enums
have listed numbers. Integers of one group that lose high bits in a smaller type are compatible, as in protobuf's "Updating A
Message Type". The changed values are misreadings, and so are fields or enum values that are read under another name because numbers were
swapped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Incompatibility
from schemactl.formats.protobuf import kinds
from schemactl.formats.protobuf.defaults import has_same_default, print_default
from schemactl.formats.protobuf.descriptor import ProtoEnum, ProtoField, ProtoMessage

MAX_PAIRS: Final = 20_000
"""The maximum number of message pairs: no real definition has as many, and a crafted one could take hours."""


def number_kinds(*groups: str) -> dict[kinds.Kind, int]:
    """Return a number for each kind; the kinds in one of the `groups` share it."""
    numbers = {name: index for index, group in enumerate(groups) for name in group.split()}
    return {kind: numbers.get(name, len(groups) + kind) for kind, name in kinds.KIND_NAMES.items()}


WIRE_GROUPS: Final[Mapping[kinds.Kind, int]] = number_kinds(
    "int32 int64 uint32 uint64 bool", "sint32 sint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""The groups of kinds whose bytes a reader of another kind of the group can decode."""

INTEGER_RANGES: Final[Mapping[kinds.Kind, tuple[int, int]]] = {
    kind: bounds
    for kind, name in kinds.KIND_NAMES.items()
    if (
        bounds := {
            "bool": (0, 1),
            "int32": (-(2**31), 2**31 - 1),
            "sint32": (-(2**31), 2**31 - 1),
            "sfixed32": (-(2**31), 2**31 - 1),
            "uint32": (0, 2**32 - 1),
            "fixed32": (0, 2**32 - 1),
            "int64": (-(2**63), 2**63 - 1),
            "sint64": (-(2**63), 2**63 - 1),
            "sfixed64": (-(2**63), 2**63 - 1),
            "uint64": (0, 2**64 - 1),
            "fixed64": (0, 2**64 - 1),
        }.get(name)
    )
}
"""The least and the greatest value of each kind of integer."""


def find_incompatibilities(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    """Yield every reason of buf's WIRE rules why `reader` may fail on a message of `writer` or read it wrongly.

    The order is from the root down, and in a message the reader's order of fields. Two messages or enums that meet at several
    places are compared once.

    Raises:
        InvalidSchema: if messages meet in more than MAX_PAIRS pairs.
    """
    compared_enums: set[tuple[str, str]] = set()
    for pair in iterate_pairs(reader=reader, writer=writer):
        yield from _compare_messages(pair.reader, pair.writer)
        for reader_field, writer_field in pair.pair_fields():
            if writer_field is None:
                continue
            yield from _compare_fields(reader_field, writer_field)
            is_enum = reader_field.is_closed_enum and writer_field.kind == kinds.ENUM
            types = reader_field.type_name, writer_field.type_name
            if not is_enum or not _has_same_form(reader_field, writer_field) or types in compared_enums:
                continue
            compared_enums.add(types)
            readable = set(reader_field.enum.numbers().values())
            written = writer_field.enum.numbers().items()
            missing = [f"{number} ({name})" for name, number in written if number not in readable]
            if missing:
                values = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
                message = f"the reader's enum {reader_field.enum.full_name} does not list {values}"
                yield Incompatibility("ENUM_VALUE_NO_DELETE", reader_field.enum.pointer, message)


def find_misreadings(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    """Yield the values of `writer` that `reader` decodes, by buf's WIRE rules, but to another value than the written one.

    A name that has another number gets the value of another name, and a smaller integer type loses bits. A new name for a number is
    only a rename. The order is the same as in `find_incompatibilities`.

    Raises:
        InvalidSchema: if messages meet in more than MAX_PAIRS pairs.
    """
    compared_enums: set[tuple[str, str]] = set()
    for pair in iterate_pairs(reader=reader, writer=writer):
        reader_names = {field.name for field in list_fields(pair.reader).values()}
        writer_names = {field.name for field in list_fields(pair.writer).values()}
        for reader_field, writer_field in pair.pair_fields():
            if writer_field is None or not _has_same_form(reader_field, writer_field):
                continue
            is_other_name = reader_field.name != writer_field.name
            if is_other_name and (reader_field.name in writer_names or writer_field.name in reader_names):
                message = (
                    f"number {reader_field.proto.number} of {pair.reader.full_name} is written as "
                    f"{writer_field.name} and read as {reader_field.name}"
                )
                yield Incompatibility("NUMBERS_SWAPPED", reader_field.pointer, message)
            elif not _has_all_values(reader_field.kind, writer_field.kind):
                written, read = kinds.KIND_NAMES[writer_field.kind], kinds.KIND_NAMES[reader_field.kind]
                yield Incompatibility(
                    "NARROWER_TYPE",
                    f"{reader_field.pointer}/type",
                    f"{_name_field(reader_field)} is written as {written} and read as {read}",
                    is_warning=True,
                    written=written,
                    read=read,
                )
            if reader_field.kind == kinds.ENUM:
                types_pair = reader_field.type_name, writer_field.type_name
                if types_pair not in compared_enums:
                    compared_enums.add(types_pair)
                    yield from _compare_enum_names(reader_field, writer_field.enum)


def _has_all_values(reader: kinds.Kind, writer: kinds.Kind) -> bool:
    """Return whether a reader's kind has every value of a writer's kind of the same group."""
    if reader not in INTEGER_RANGES or writer not in INTEGER_RANGES:
        return True
    (reader_least, reader_greatest), (least, greatest) = INTEGER_RANGES[reader], INTEGER_RANGES[writer]
    return reader_least <= least and greatest <= reader_greatest


def _compare_enum_names(reader_field: ProtoField, writer: ProtoEnum) -> Iterator[Incompatibility]:
    swapped_numbers = list_swapped_numbers(reader=reader_field.enum, writer=writer)
    if reader_field.is_closed_enum:
        # A parser keeps a number that the enum lacks as an unknown field, which is ENUM_VALUE_NO_DELETE.
        swapped_numbers = [swapped for swapped in swapped_numbers if swapped[2]]
    if swapped_numbers:
        names = [
            f"{number} is written as {written} and read as {read or 'an unknown number'}"
            for number, written, read in swapped_numbers[:5]
        ]
        more = f" and {len(swapped_numbers) - 5} more" if len(swapped_numbers) > 5 else ""
        message = f"enum {reader_field.enum.full_name}: {', '.join(names)}{more}"
        yield Incompatibility("NUMBERS_SWAPPED", reader_field.enum.pointer, message)


def list_swapped_numbers(*, reader: ProtoEnum, writer: ProtoEnum) -> list[tuple[int, str, str]]:
    """Return each number whose names in `writer` and `reader` differ although one of the names exists on both sides, with the writer's and the reader's name.

    The reader's name is "" if the reader does not list the number, but has the writer's name under another number.
    """
    reader_names, writer_names = _index_names(reader), _index_names(writer)
    all_reader_names, all_writer_names = set(reader.numbers()), set(writer.numbers())
    swapped_numbers = []
    for number, written_names in writer_names.items():
        read_names = reader_names.get(number, [])
        is_moved = not all_reader_names.isdisjoint(written_names) or not all_writer_names.isdisjoint(read_names)
        if is_moved and set(written_names).isdisjoint(read_names):
            swapped_numbers.append((number, written_names[0], read_names[0] if read_names else ""))
    return swapped_numbers


def _index_names(enum: ProtoEnum) -> dict[int, list[str]]:
    """Map each number to its names, in the order of the file."""
    names: dict[int, list[str]] = {}
    for name, number in enum.numbers().items():
        names.setdefault(number, []).append(name)
    return names


@dataclass(frozen=True, slots=True, eq=False)
class MessagePair:
    """Two messages that meet at one place: `path` has the numbers of the fields from the roots to there."""

    reader: ProtoMessage
    writer: ProtoMessage
    path: tuple[int, ...] = ()

    def pair_fields(self) -> Iterator[tuple[ProtoField, ProtoField | None]]:
        """Yield the reader's fields in file order, extensions last, each with the writer's field of this number."""
        writer_fields = list_fields(self.writer)
        for number, field in list_fields(self.reader).items():
            yield field, writer_fields.get(number)


def iterate_pairs(*, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[MessagePair]:
    """Yield the roots, and all other pairs of messages that meet below them; each pair once, at the nearest place.

    Raises:
        InvalidSchema: if there are more than MAX_PAIRS.
    """
    queue = deque([MessagePair(reader, writer)])
    queued_types = {(reader.full_name, writer.full_name)}
    while queue:
        pair = queue.popleft()
        yield pair
        for reader_field, writer_field in pair.pair_fields():
            if writer_field is None or not reader_field.is_message or not _has_same_form(reader_field, writer_field):
                continue
            types = reader_field.type_name, writer_field.type_name
            if types not in queued_types:
                queued_types.add(types)
                if len(queued_types) > MAX_PAIRS:
                    raise InvalidSchema(
                        f"its messages are compared with messages of the other side in more than {MAX_PAIRS:,} ways"
                    )
                path = (*pair.path, reader_field.proto.number)
                queue.append(MessagePair(reader_field.message_type, writer_field.message_type, path))


def list_fields(message: ProtoMessage) -> Mapping[int, ProtoField]:
    """Return the fields of a message and its extensions in the image, by number."""
    extensions = message.file.image.extensions_of.get(message.full_name)
    return {**message.fields(), **extensions} if extensions else message.fields()


def _has_same_form(reader: ProtoField, writer: ProtoField) -> bool:
    """Return whether the reader decodes the written values, although it may misread them."""
    return _shares_bytes(reader, writer) and reader.is_repeated == writer.is_repeated


def _shares_bytes(reader: ProtoField, writer: ProtoField) -> bool:
    is_string_read_as_bytes = (writer.kind, reader.kind) == (kinds.STRING, kinds.BYTES)
    return WIRE_GROUPS[reader.kind] == WIRE_GROUPS[writer.kind] or is_string_read_as_bytes


def _compare_messages(reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    if reader.proto.options.message_set_wire_format != writer.proto.options.message_set_wire_format:
        yield Incompatibility(
            "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT",
            f"{reader.pointer}/message_set_wire_format",
            f"only one side has {reader.full_name} in the message set wire format",
        )
    writer_fields = list_fields(writer)
    for number, field in list_fields(reader).items():
        writer_field = writer_fields.get(number)
        is_guaranteed = writer_field is not None and writer_field.cardinality == kinds.REQUIRED
        if field.cardinality == kinds.REQUIRED and not is_guaranteed:
            lack = "does not have it" if writer_field is None else "does not require it"
            message = f"the reader requires {_name_field(field)}, the writer {lack}"
            yield Incompatibility("MESSAGE_SAME_REQUIRED_FIELDS", field.pointer, message)
    for oneof in reader.oneofs():
        members = select_independent([writer_fields[number] for number in oneof.numbers if number in writer_fields])
        if len(members) > 1:
            names = " and ".join(f"{member.proto.number} ({member.proto.name})" for member in members)
            yield Incompatibility(
                "FIELD_SAME_ONEOF",
                oneof.pointer,
                f"the writer may set fields {names} in one message, of which the reader's oneof {oneof.name} keeps the last",
            )


def select_independent(fields: Sequence[ProtoField]) -> list[ProtoField]:
    """Return the fields of one message that can be set together: of each oneof only the first."""
    first_by_oneof: dict[str, ProtoField] = {}
    for field in fields:
        first_by_oneof.setdefault(field.oneof or f"/{field.proto.number}", field)
    return list(first_by_oneof.values())


def _compare_fields(reader: ProtoField, writer: ProtoField) -> Iterator[Incompatibility]:
    """Yield the first reason why a field is misread."""
    if not _shares_bytes(reader, writer):
        types = f"is written as {kinds.KIND_NAMES[writer.kind]} and read as {kinds.KIND_NAMES[reader.kind]}"
        yield Incompatibility("FIELD_WIRE_COMPATIBLE_TYPE", f"{reader.pointer}/type", f"{_name_field(reader)} {types}")
    elif reader.is_repeated != writer.is_repeated:
        shapes = f"is written as {_describe_cardinality(writer)} and read as {_describe_cardinality(reader)}"
        yield Incompatibility("FIELD_WIRE_COMPATIBLE_CARDINALITY", reader.pointer, f"{_name_field(reader)} {shapes}")
    elif writer.cardinality != kinds.REQUIRED and not has_same_default(writer, reader):
        values = f"{print_default(writer)} to the writer and {print_default(reader)} to the reader"
        yield Incompatibility(
            "FIELD_SAME_DEFAULT",
            f"{reader.pointer}/default",
            f"{_name_field(reader)} defaults to {values} when it is not set",
        )


def _describe_cardinality(field: ProtoField) -> str:
    return field.cardinality if field.is_repeated else "one value"


def _name_field(field: ProtoField) -> str:
    holder = field.proto.extendee.removeprefix(".") or (field.message.full_name if field.message else "")
    return f"field {field.proto.number} ({field.name}) of {holder}"
