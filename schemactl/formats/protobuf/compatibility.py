"""The incompatibilities of two protobuf definitions: of their data in one direction, and by buf's rules.

The rules of the data verdict are buf's WIRE rules, by their names, as far as they are about bytes, read in one direction: the writer is
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

Source: bufcheckserverhandle of buf 1.75.

Files are paired by path, messages, enums and services by full name over all files, fields and values by number. buf's other
categories, FILE and PACKAGE, are about generated code and are left to buf.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from google.protobuf.descriptor_pb2 import EDITION_PROTO2, FeatureSet, FieldDescriptorProto, MethodOptions

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Incompatibility
from schemactl.core.project import ProtoCategory
from schemactl.formats.protobuf import descriptor
from schemactl.formats.protobuf.definition import Place, span_of
from schemactl.formats.protobuf.descriptor import (
    JSON_FORMATS,
    EnumValue,
    File,
    Image,
    Method,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    declared_by,
    edition_of,
    printed,
    same_default,
)

# Data verdict.


MAX_PAIRS: Final = 20_000
"""Of messages that meet: no real definition has as many, and a crafted one could take hours."""


def grouped(*groups: str) -> dict[descriptor.Kind, int]:
    """Return a number for each kind; kinds that `groups` name together share it."""
    numbers = {name: index for index, group in enumerate(groups) for name in group.split()}
    return {kind: numbers.get(name, len(groups) + kind) for kind, name in descriptor.KIND_NAMES.items()}


WIRE_GROUPS: Final[Mapping[descriptor.Kind, int]] = grouped(
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
                    raise InvalidSchema(f"its messages meet those of the other side in more than {MAX_PAIRS:,} ways")
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
            if read.is_closed_enum and written.kind == descriptor.ENUM and _is_alike(read, written):
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
        descriptor.STRING,
        descriptor.BYTES,
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
        if field.cardinality != descriptor.REQUIRED or (
            number in written and written[number].cardinality == descriptor.REQUIRED
        ):
            continue
        lack = "does not require it" if number in written else "does not have it"
        yield Incompatibility(
            "MESSAGE_SAME_REQUIRED_FIELDS", field.pointer, f"the reader requires {_called(field)}, the writer {lack}"
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
        types = f"is written as {descriptor.KIND_NAMES[writer.kind]} and read as {descriptor.KIND_NAMES[reader.kind]}"
        yield Incompatibility("FIELD_WIRE_COMPATIBLE_TYPE", f"{reader.pointer}/type", f"{_called(reader)} {types}")
    elif reader.is_repeated != writer.is_repeated:
        shapes = f"is written as {_shape(writer)} and read as {_shape(reader)}"
        yield Incompatibility("FIELD_WIRE_COMPATIBLE_CARDINALITY", reader.pointer, f"{_called(reader)} {shapes}")
    elif writer.cardinality != descriptor.REQUIRED and not same_default(writer, reader):
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
            "ENUM_VALUE_NO_DELETE", reader.pointer, f"the reader's enum {reader.full_name} does not list {listed}"
        )


def _shape(field: ProtoField) -> str:
    return field.cardinality if field.is_repeated else "one value"


def _called(field: ProtoField) -> str:
    holder = field.proto.extendee.removeprefix(".") or (field.message.full_name if field.message else "")
    return f"field {field.proto.number} ({field.name}) of {holder}"


# Rules of buf, with its ids, conditions and messages.


WIRE_JSON_GROUPS: Mapping[descriptor.Kind, int] = grouped(
    "int32 uint32", "int64 uint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""As WIRE_GROUPS, for JSON."""

WIRE_CARDINALITIES = {
    descriptor.EXPLICIT: 1,
    descriptor.IMPLICIT: 1,
    descriptor.REQUIRED: 2,
    descriptor.REPEATED: 3,
    descriptor.MAP: 3,
}
WIRE_JSON_CARDINALITIES = WIRE_CARDINALITIES | {descriptor.MAP: 4}

MAX_FIELD_NUMBER = 2**29 - 1
MAX_MESSAGE_SET_NUMBER = 2**31 - 2
MAX_ENUM_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the newer of two images violates.

    Attributes:
        rule: buf's id.
        message: buf's words.
        file: the `.proto` it is found in.
        line, column: as buf gives them: 1 where the file has no place for it.
        pointer: the place for `definition.find`, also in another text of the same definition.
    """

    rule: str
    message: str
    file: str
    line: int
    column: int
    pointer: str


def violation(rule: str, message: str, *places: Place, pointer: str = "") -> Violation:
    """Return the violation of `rule` at the first of `places` that the text has; the last is of the element judged.

    All places are in one file.
    """
    element = places[-1][0]
    label = next(label for candidate, label in places if candidate is element)
    line, column = next(filter(None, map(span_of, places)), (1, 1))
    if not pointer:
        pointer = f"{element.pointer}/{label}" if label else element.pointer
    return Violation(rule, message, element.file.name, line, column, pointer)


Holder = ProtoMessage | ProtoEnum
FileRule = Callable[[File, File], Iterator[Violation]]
FieldRule = Callable[[ProtoField, ProtoField], Iterator[Violation]]
MessageRule = Callable[[ProtoMessage, ProtoMessage], Iterator[Violation]]
EnumRule = Callable[[ProtoEnum, ProtoEnum], Iterator[Violation]]
MethodRule = Callable[[Method, Method], Iterator[Violation]]

_PROTO3_UPDATING = "https://developers.google.com/protocol-buffers/docs/proto3#updating"
_WIRE_NOTE = f" See {_PROTO3_UPDATING} for wire compatibility rules."
_WIRE_JSON_NOTE = (
    f" See {_PROTO3_UPDATING} for wire compatibility rules and "
    "https://developers.google.com/protocol-buffers/docs/proto3#json for JSON compatibility rules."
)
_UTF8_NOTE = (
    " Note that while string and bytes are compatible if the data is valid UTF-8, there is no way to enforce that a "
    "bytes field is UTF-8, so these fields may be incompatible."
)


def same_package(old: File, new: File) -> Iterator[Violation]:
    """Yield FILE_SAME_PACKAGE: without its package nothing else in the file keeps its name."""
    if old.proto.package != new.proto.package:
        words = f'File package changed from "{old.proto.package}" to "{new.proto.package}".'
        yield violation("FILE_SAME_PACKAGE", words, (new, "package"))


def described(field: ProtoField, *, name: bool = True) -> str:
    """Return `Field "3" with name "id" on message "Click"`, as buf begins its sentences."""
    shown = f' with name "{field.name}"' if name else ""
    if field.proto.extendee:
        return f'Extension "{field.proto.number}"{shown} on message "{field.proto.extendee.removeprefix(".")}"'
    message = field.message.proto.name if field.message else ""
    return f'Field "{field.proto.number}"{shown} on message "{message}"'


def _kind_name(field: ProtoField) -> str:
    if field.kind == descriptor.GROUP and edition_of(field.file.proto) != EDITION_PROTO2:
        return "message (delimited encoding)"
    return descriptor.KIND_NAMES[field.kind]


def _changed_type(rule: str, old: ProtoField, new: ProtoField, note: str) -> Violation:
    words = f'{described(new)} changed type from "{_kind_name(old)}" to "{_kind_name(new)}".{note}'
    return violation(rule, words, (new, "type"))


def wire_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept kinds in one group, or string that becomes bytes; and the same message, or an enum that holds the old one."""
    if WIRE_GROUPS[old.kind] == WIRE_GROUPS[new.kind]:
        yield from _compatible_type_name("FIELD_WIRE_COMPATIBLE_TYPE", old, new)
    elif (old.kind, new.kind) != (descriptor.STRING, descriptor.BYTES):
        note = _WIRE_NOTE + (_UTF8_NOTE if (old.kind, new.kind) == (descriptor.BYTES, descriptor.STRING) else "")
        yield _changed_type("FIELD_WIRE_COMPATIBLE_TYPE", old, new, note)


def wire_json_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept what `wire_compatible_type` does, but for kinds that JSON writes in different ways."""
    if WIRE_JSON_GROUPS[old.kind] == WIRE_JSON_GROUPS[new.kind]:
        yield from _compatible_type_name("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new)
    else:
        yield _changed_type("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new, _WIRE_JSON_NOTE)


def _compatible_type_name(rule: str, old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    if old.type_name == new.type_name or not (new.kind == descriptor.ENUM or new.is_message):
        return
    # Another enum of the same name may stand in, if it has every value of the old one.
    if (
        new.kind == descriptor.ENUM
        and old.enum.proto.name == new.enum.proto.name
        and old.enum.numbers().items() <= new.enum.numbers().items()
    ):
        return
    words = f'{described(new)} changed type from "{old.type_name}" to "{new.type_name}".'
    yield violation(rule, words, (new, "type"))


def _same_cardinality(rule: str, groups: Mapping[str, int]) -> FieldRule:
    def check(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
        before, after = old.cardinality, new.cardinality
        # protoc makes the two fields of a map entry: what they seem to be follows from the file's syntax.
        if groups[before] != groups[after] and not (old.in_map_entry and new.in_map_entry):
            yield violation(rule, f'{described(new)} changed cardinality from "{before}" to "{after}".', (new, ""))

    return check


def same_default_value(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Yield FIELD_SAME_DEFAULT: readers get another value for a field that a message does not carry."""
    if not same_default(old, new):
        words = f"{described(new)} changed default value from {printed(old)} to {printed(new)}."
        yield violation("FIELD_SAME_DEFAULT", words, (new, "default"), (new, ""))


def same_oneof(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Yield FIELD_SAME_ONEOF unless both are in no oneof, or in one of the same name."""
    if old.oneof == new.oneof or old.proto.extendee:
        return
    if old.oneof and new.oneof:
        words = f'{described(new)} moved from oneof "{old.oneof}" to oneof "{new.oneof}".'
    else:
        direction = "from inside to outside" if old.oneof else "from outside to inside"
        words = f"{described(new)} moved {direction} a oneof."
    yield violation("FIELD_SAME_ONEOF", words, (new, ""))


def same_name(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Yield FIELD_SAME_NAME; of an extension the full name counts."""
    if old.name != new.name:
        words = f'{described(new, name=False)} changed name from "{old.name}" to "{new.name}".'
        yield violation("FIELD_SAME_NAME", words, (new, "name"), (new, ""))


def same_json_name(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Yield FIELD_SAME_JSON_NAME."""
    before, after = old.proto.json_name, new.proto.json_name
    if before != after and not old.proto.extendee:
        words = f'{described(new)} changed option "json_name" from "{before}" to "{after}".'
        yield violation("FIELD_SAME_JSON_NAME", words, (new, "json_name"), (new, ""))


def same_required_fields(old: ProtoMessage, new: ProtoMessage) -> Iterator[Violation]:
    """Yield MESSAGE_SAME_REQUIRED_FIELDS: other numbers are labelled required."""
    required = FieldDescriptorProto.LABEL_REQUIRED
    before, after = ({proto.number for proto in side.proto.field if proto.label == required} for side in (old, new))
    for number in before ^ after:
        what = "deleted" if number in before else "added"
        words = (
            f'Message "{new.proto.name}" had required field "{number}" {what}. Required fields must always be sent, so if '
            "one side does not know about the required field, this will result in a breakage."
        )
        place = new.fields()[number] if what == "added" else new
        yield violation("MESSAGE_SAME_REQUIRED_FIELDS", words, (place, ""), pointer=f"{new.pointer}/fields/{number}")


def _keeps_json_format(rule: str, noun: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        after = new.features.json_format
        if old.features.json_format == FeatureSet.ALLOW != after:
            words = f'{noun} "{new.proto.name}" JSON format support changed from ALLOW to {JSON_FORMATS[after]}.'
            yield violation(rule, words, (new, "json_format"), (new, ""))

    return check


def _keeps_reserved(rule: str, noun: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    """Return the rule that every reserved number and name stays reserved."""

    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        on = f'on {noun} "{new.proto.name}"'
        ranges = _merged(_reserved(new))
        for wanted in _reserved(old):
            if missing := list(_missing(wanted, ranges)):
                removed = ", ".join(_shown(part, _maximum(new)) for part in missing)
                words = (
                    f'Previously present reserved range "{_shown(wanted, _maximum(old))}" {on} '
                    f"is missing values: {removed} were removed."
                )
                yield violation(rule, words, (new, ""))
        for name in set(old.proto.reserved_name) - set(new.proto.reserved_name):
            words = f'Previously present reserved name "{name}" {on} was deleted.'
            yield violation(rule, words, (new, ""))

    return check


Range = tuple[int, int]
"""First and last number."""


def _reserved(element: Holder) -> list[Range]:
    if isinstance(element, ProtoMessage):
        return [(item.start, item.end - 1) for item in element.proto.reserved_range]
    return [(item.start, item.end) for item in element.proto.reserved_range]


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """Return the same numbers in as few ranges as can be, in order."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _missing(wanted: Range, merged: Sequence[Range]) -> Iterator[Range]:
    """Yield the parts of `wanted` that no range covers, in order."""
    start, end = wanted
    first = max(bisect_right(merged, (start, MAX_ENUM_NUMBER)) - 1, 0)
    for index in range(first, len(merged)):
        low, high = merged[index]
        if low > end:
            break
        if low > start:
            yield start, low - 1
        start = max(start, high + 1)
    if start <= end:
        yield start, end


def _maximum(element: Holder) -> int:
    if isinstance(element, ProtoEnum):
        return MAX_ENUM_NUMBER
    return MAX_MESSAGE_SET_NUMBER if element.proto.options.message_set_wire_format else MAX_FIELD_NUMBER


def _shown(part: Range, maximum: int) -> str:
    start, end = part
    if start == end:
        return f"[{start}]"
    return f"[{start},{'max' if end == maximum else end}]"


def _no_delete(noun: str, reserved: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    """Return the rule that a deleted field or enum value leaves its number, or its name, reserved."""
    rule = f"{noun}_NO_DELETE_UNLESS_{reserved.upper()}_RESERVED"

    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        deleted = _numbers(old) - _numbers(new)
        if not deleted:
            return
        ranges, names = _merged(_reserved(new)), set(new.proto.reserved_name)
        for number, parts in _by_number(old).items():
            if number not in deleted:
                continue
            if reserved == "number":
                is_reserved, shown = not any(_missing((number, number), ranges)), f'number "{number}"'
            else:
                is_reserved = parts.keys() <= names
                shown = f"name{'s' if len(parts) > 1 else ''} {_quoted(parts)}"
            if is_reserved:
                continue
            part = next(iter(parts.values()))
            if isinstance(part, ProtoField):
                what = described(part).replace("Field", "field", 1)
            else:
                what = f'enum value "{number}" on enum "{new.proto.name}"'
            words = f"Previously present {what} was deleted without reserving the {shown}."
            yield violation(rule, words, (new, ""), pointer=part.pointer)

    return check


def enum_value_same_name(old: ProtoEnum, new: ProtoEnum) -> Iterator[Violation]:
    """Yield ENUM_VALUE_SAME_NAME unless each number keeps every name it had."""
    before, after = _by_number(old), _by_number(new)
    for number, names in before.items():
        now = after.get(number, {})
        if now and not names.keys() <= now.keys():
            plural = "s" if len(names) > 1 and len(now) > 1 else ""
            words = (
                f'Enum value "{number}" on enum "{new.proto.name}" changed name{plural} '
                f"from {_quoted(names)} to {_quoted(now)}."
            )
            for value in now.values():
                yield violation("ENUM_VALUE_SAME_NAME", words, (value, "number"))


def _numbers(holder: Holder) -> set[int]:
    parts = holder.proto.field if isinstance(holder, ProtoMessage) else holder.proto.value
    return {part.number for part in parts}


def _by_number(holder: Holder) -> dict[int, dict[str, ProtoField | EnumValue]]:
    """Return the fields or the values of `holder` by number and name."""
    found: dict[int, dict[str, ProtoField | EnumValue]] = {}
    for part in holder.fields().values() if isinstance(holder, ProtoMessage) else holder.values():
        found.setdefault(part.proto.number, {})[part.proto.name] = part
    return found


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


def _described(method: Method) -> str:
    return f'RPC "{method.proto.name}" on service "{method.service.proto.name}"'


def _same_rpc_type(side: str, part: str) -> MethodRule:
    """Return the rule that the message sent (or answered) keeps its full name."""

    def check(old: Method, new: Method) -> Iterator[Violation]:
        before, after = (getattr(each.proto, part).removeprefix(".") for each in (old, new))
        if before != after:
            words = f'{_described(new)} changed {side} type from "{before}" to "{after}".'
            yield violation(f"RPC_SAME_{side.upper()}_TYPE", words, (new, part))

    return check


def _same_streaming(side: str) -> MethodRule:
    """Return the rule that a side keeps sending one message, or a stream of them."""

    def check(old: Method, new: Method) -> Iterator[Violation]:
        before, after = (getattr(each.proto, f"{side}_streaming") for each in (old, new))
        if before != after:
            kinds = ("unary", "streaming") if after else ("streaming", "unary")
            words = f"{_described(new)} changed from {side} {kinds[0]} to {side} {kinds[1]}."
            yield violation(f"RPC_SAME_{side.upper()}_STREAMING", words, (new, ""))

    return check


def same_idempotency_level(old: Method, new: Method) -> Iterator[Violation]:
    """Yield RPC_SAME_IDEMPOTENCY_LEVEL: whether a call may be repeated changed."""
    before, after = old.proto.options.idempotency_level, new.proto.options.idempotency_level
    if before != after:
        names = MethodOptions.IdempotencyLevel.Name
        words = f'{_described(new)} changed option "idempotency_level" from "{names(before)}" to "{names(after)}".'
        yield violation("RPC_SAME_IDEMPOTENCY_LEVEL", words, (new, "idempotency_level"))


FILE_RULES: Mapping[str, FileRule] = {"FILE_SAME_PACKAGE": same_package}

FIELD_RULES: Mapping[str, FieldRule] = {
    "FIELD_SAME_DEFAULT": same_default_value,
    "FIELD_SAME_JSON_NAME": same_json_name,
    "FIELD_SAME_NAME": same_name,
    "FIELD_SAME_ONEOF": same_oneof,
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": _same_cardinality("FIELD_WIRE_COMPATIBLE_CARDINALITY", WIRE_CARDINALITIES),
    "FIELD_WIRE_COMPATIBLE_TYPE": wire_compatible_type,
    "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY": _same_cardinality(
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY", WIRE_JSON_CARDINALITIES
    ),
    "FIELD_WIRE_JSON_COMPATIBLE_TYPE": wire_json_compatible_type,
}

MESSAGE_RULES: Mapping[str, MessageRule] = {
    "FIELD_NO_DELETE_UNLESS_NAME_RESERVED": _no_delete("FIELD", "name"),
    "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED": _no_delete("FIELD", "number"),
    "MESSAGE_SAME_JSON_FORMAT": _keeps_json_format("MESSAGE_SAME_JSON_FORMAT", "Message"),
    "MESSAGE_SAME_REQUIRED_FIELDS": same_required_fields,
    "RESERVED_MESSAGE_NO_DELETE": _keeps_reserved("RESERVED_MESSAGE_NO_DELETE", "message"),
}

ENUM_RULES: Mapping[str, EnumRule] = {
    "ENUM_SAME_JSON_FORMAT": _keeps_json_format("ENUM_SAME_JSON_FORMAT", "Enum"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED": _no_delete("ENUM_VALUE", "name"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED": _no_delete("ENUM_VALUE", "number"),
    "ENUM_VALUE_SAME_NAME": enum_value_same_name,
    "RESERVED_ENUM_NO_DELETE": _keeps_reserved("RESERVED_ENUM_NO_DELETE", "enum"),
}

METHOD_RULES: Mapping[str, MethodRule] = {
    "RPC_SAME_CLIENT_STREAMING": _same_streaming("client"),
    "RPC_SAME_IDEMPOTENCY_LEVEL": same_idempotency_level,
    "RPC_SAME_REQUEST_TYPE": _same_rpc_type("request", "input_type"),
    "RPC_SAME_RESPONSE_TYPE": _same_rpc_type("response", "output_type"),
    "RPC_SAME_SERVER_STREAMING": _same_streaming("server"),
}


# Order of `buf breaking` (1.75, rules v2).


_WIRE_ONLY: Final = frozenset({"FIELD_WIRE_COMPATIBLE_CARDINALITY", "FIELD_WIRE_COMPATIBLE_TYPE"})

_JSON_ONLY: Final = frozenset(
    {
        "ENUM_SAME_JSON_FORMAT",
        "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED",
        "ENUM_VALUE_SAME_NAME",
        "FIELD_NO_DELETE_UNLESS_NAME_RESERVED",
        "FIELD_SAME_JSON_NAME",
        "FIELD_SAME_NAME",
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY",
        "FIELD_WIRE_JSON_COMPATIBLE_TYPE",
        "MESSAGE_SAME_JSON_FORMAT",
    }
)

_ALL: Final = frozenset({*FILE_RULES, *ENUM_RULES, *MESSAGE_RULES, *FIELD_RULES, *METHOD_RULES})

CATEGORIES: Final[Mapping[ProtoCategory, frozenset[str]]] = {"WIRE": _ALL - _JSON_ONLY, "WIRE_JSON": _ALL - _WIRE_ONLY}
"""The rules of each category."""

_Key = TypeVar("_Key")
_Part = TypeVar("_Part")
_Pairs: TypeAlias = Iterator[tuple[_Part, _Part]]


def proto_rules(*, old: Image, new: Image, category: ProtoCategory) -> list[Violation]:
    """Return every violation of the category's rules, in the order of `buf breaking NEW --against OLD`."""
    change = _Change(old, new)
    if any(_renumbered(*pair) for pair in change.enums()):
        # Fields of unchanged files may have another default then.
        change = _Change(old, new, everything=True)
    found = set(_violations(change, CATEGORIES[category]))
    return sorted(found, key=lambda one: (one.file, one.line, one.column, one.rule, one.message))


class _Change:
    """What the files that differ between two images declare.

    What an unchanged file declares is the same on both sides, so no rule needs to look there.
    """

    def __init__(self, old: Image, new: Image, *, everything: bool = False) -> None:
        self.everything = everything
        self.pairs = [
            (file, new.files[name])
            for name, file in old.files.items()
            if name in new.files and (everything or file.proto != new.files[name].proto)
        ]
        self.before = declared_by(_changed(old, new, (before for before, _ in self.pairs)))
        self.after = declared_by(_changed(new, old, (after for _, after in self.pairs)))

    def enums(self) -> _Pairs[ProtoEnum]:
        return _common(self.before.enums, self.after.enums)

    def messages(self) -> _Pairs[ProtoMessage]:
        """Yield each message that is in both and means something else."""
        for old, new in _common(self.before.messages, self.after.messages):
            if (
                self.everything
                or old.proto != new.proto
                or old.features != new.features
                or old.file.context != new.file.context
            ):
                yield old, new

    def fields(self) -> _Pairs[ProtoField]:
        """Yield each field and extension that is in both, by message and number."""
        for old, new in self.messages():
            yield from _common(old.fields(), new.fields())
        yield from _common(self.before.extensions, self.after.extensions)

    def methods(self) -> _Pairs[Method]:
        for old, new in _common(self.before.services, self.after.services):
            yield from _common(old.methods(), new.methods())


def _changed(image: Image, other: Image, both: Iterable[File]) -> Iterable[File]:
    return chain(both, (file for name, file in image.files.items() if name not in other.files))


def _common(before: Mapping[_Key, _Part], after: Mapping[_Key, _Part]) -> _Pairs[_Part]:
    return ((part, after[key]) for key, part in before.items() if key in after)


def _violations(change: _Change, rules: frozenset[str]) -> Iterator[Violation]:
    yield from _broken(change.pairs, FILE_RULES, rules)
    yield from _broken(change.enums(), ENUM_RULES, rules)
    yield from _broken(change.messages(), MESSAGE_RULES, rules)
    yield from _broken(change.fields(), FIELD_RULES, rules)
    yield from _broken(change.methods(), METHOD_RULES, rules)


def _broken(
    pairs: Iterable[tuple[_Part, _Part]],
    table: Mapping[str, Callable[[_Part, _Part], Iterator[Violation]]],
    rules: frozenset[str],
) -> Iterator[Violation]:
    checks = [check for rule, check in table.items() if rule in rules]
    for old, new in pairs:
        for check in checks:
            yield from check(old, new)


def _renumbered(old: ProtoEnum, new: ProtoEnum) -> bool:
    """Return whether the default of a field of this type may have become another number."""
    if old.proto == new.proto:
        return False
    before, after = old.numbers(), new.numbers()
    if list(before.values())[:1] != list(after.values())[:1]:
        return True
    return any(after.get(name, number) != number for name, number in before.items())
