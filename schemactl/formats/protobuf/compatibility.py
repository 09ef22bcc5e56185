"""buf's rules of the categories WIRE and WIRE_JSON, one function for each; ids, conditions and messages are buf's.

Source: bufcheckserverhandle of buf 1.75.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import EDITION_PROTO2, FeatureSet, FieldDescriptorProto, MethodOptions

from schemactl.formats.protobuf_native import kinds
from schemactl.formats.protobuf_native.default import printed, same_default
from schemactl.formats.protobuf_native.descriptor import (
    EnumValue,
    File,
    Method,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
)
from schemactl.formats.protobuf_native.features import JSON_FORMATS, edition_of
from schemactl.formats.protobuf_native.places import Place, span_of
from schemactl.formats.protobuf_native.wire import WIRE_GROUPS, grouped

WIRE_JSON_GROUPS: Mapping[kinds.Kind, int] = grouped(
    "int32 uint32", "int64 uint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""As WIRE_GROUPS, for JSON."""

WIRE_CARDINALITIES = {
    kinds.EXPLICIT: 1,
    kinds.IMPLICIT: 1,
    kinds.REQUIRED: 2,
    kinds.REPEATED: 3,
    kinds.MAP: 3,
}
WIRE_JSON_CARDINALITIES = WIRE_CARDINALITIES | {kinds.MAP: 4}

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
        pointer: the place for `places.find`, also in another text of the same definition.
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
        return (
            f'Extension "{field.proto.number}"{shown} on message "{field.proto.extendee.removeprefix(".")}"'
        )
    message = field.message.proto.name if field.message else ""
    return f'Field "{field.proto.number}"{shown} on message "{message}"'


def _kind_name(field: ProtoField) -> str:
    if field.kind == kinds.GROUP and edition_of(field.file.proto) != EDITION_PROTO2:
        return "message (delimited encoding)"
    return kinds.KIND_NAMES[field.kind]


def _changed_type(rule: str, old: ProtoField, new: ProtoField, note: str) -> Violation:
    words = f'{described(new)} changed type from "{_kind_name(old)}" to "{_kind_name(new)}".{note}'
    return violation(rule, words, (new, "type"))


def wire_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept kinds in one group, or string that becomes bytes; and the same message, or an enum that holds the old one."""
    if WIRE_GROUPS[old.kind] == WIRE_GROUPS[new.kind]:
        yield from _compatible_type_name("FIELD_WIRE_COMPATIBLE_TYPE", old, new)
    elif (old.kind, new.kind) != (kinds.STRING, kinds.BYTES):
        note = _WIRE_NOTE + (_UTF8_NOTE if (old.kind, new.kind) == (kinds.BYTES, kinds.STRING) else "")
        yield _changed_type("FIELD_WIRE_COMPATIBLE_TYPE", old, new, note)


def wire_json_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept what `wire_compatible_type` does, but for kinds that JSON writes in different ways."""
    if WIRE_JSON_GROUPS[old.kind] == WIRE_JSON_GROUPS[new.kind]:
        yield from _compatible_type_name("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new)
    else:
        yield _changed_type("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new, _WIRE_JSON_NOTE)


def _compatible_type_name(rule: str, old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    if old.type_name == new.type_name or not (new.kind == kinds.ENUM or new.is_message):
        return
    # Another enum of the same name may stand in, if it has every value of the old one.
    if (
        new.kind == kinds.ENUM
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
            yield violation(
                rule, f'{described(new)} changed cardinality from "{before}" to "{after}".', (new, "")
            )

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
    before, after = (
        {proto.number for proto in side.proto.field if proto.label == required} for side in (old, new)
    )
    for number in before ^ after:
        what = "deleted" if number in before else "added"
        words = (
            f'Message "{new.proto.name}" had required field "{number}" {what}. Required fields must always be sent, so if '
            "one side does not know about the required field, this will result in a breakage."
        )
        place = new.fields()[number] if what == "added" else new
        yield violation(
            "MESSAGE_SAME_REQUIRED_FIELDS", words, (place, ""), pointer=f"{new.pointer}/fields/{number}"
        )


def _keeps_json_format(rule: str, noun: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        after = new.features.json_format
        if old.features.json_format == FeatureSet.ALLOW != after:
            words = (
                f'{noun} "{new.proto.name}" JSON format support changed from ALLOW to {JSON_FORMATS[after]}.'
            )
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
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": _same_cardinality(
        "FIELD_WIRE_COMPATIBLE_CARDINALITY", WIRE_CARDINALITIES
    ),
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
