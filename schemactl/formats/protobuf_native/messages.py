"""buf's rules on messages and enums, one function a rule."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from google.protobuf.descriptor_pb2 import FeatureSet, FieldDescriptorProto

from schemactl.formats.protobuf_native.descriptor import Enum, EnumValue, Message
from schemactl.formats.protobuf_native.features import JSON_FORMATS
from schemactl.formats.protobuf_native.fields import described
from schemactl.formats.protobuf_native.violation import Violation, violation

MessageRule = Callable[[Message, Message], Iterator[Violation]]
EnumRule = Callable[[Enum, Enum], Iterator[Violation]]

MAX_FIELD_NUMBER = 2**29 - 1
MAX_MESSAGE_SET_NUMBER = 2**31 - 2
MAX_ENUM_NUMBER = 2**31 - 1


def _field_no_delete(rule: str, *, reserved: str = "") -> MessageRule:
    def check(old: Message, new: Message) -> Iterator[Violation]:
        kept = {proto.number for proto in new.proto.field}
        if all(proto.number in kept for proto in old.proto.field):
            return
        ranges, names = _merged(_reserved(new)), set(new.proto.reserved_name)
        for number, field in old.fields().items():
            if number in kept:
                continue
            suffix = ""
            if reserved == "number":
                if not any(_missing((number, number), ranges)):
                    continue
                suffix = f' without reserving the number "{number}"'
            elif reserved == "name":
                if field.proto.name in names:
                    continue
                suffix = f' without reserving the name "{field.proto.name}"'
            words = f"Previously present {described(field).replace('Field', 'field', 1)} was deleted{suffix}."
            yield violation(rule, words, (new, ""), pointer=field.pointer)

    return check


def same_required_fields(old: Message, new: Message) -> Iterator[Violation]:
    """The numbers labelled required."""
    required = FieldDescriptorProto.LABEL_REQUIRED
    before = {proto.number for proto in old.proto.field if proto.label == required}
    after = {proto.number for proto in new.proto.field if proto.label == required}
    consequence = (
        "Required fields must always be sent, so if one side does not know about the required field, this will "
        "result in a breakage."
    )
    for number in before - after:
        words = f'Message "{old.proto.name}" had required field "{number}" deleted. {consequence}'
        yield violation(
            "MESSAGE_SAME_REQUIRED_FIELDS", words, (new, ""), pointer=f"{new.pointer}/fields/{number}"
        )
    for number in after - before:
        words = f'Message "{new.proto.name}" had required field "{number}" added. {consequence}'
        yield violation("MESSAGE_SAME_REQUIRED_FIELDS", words, (new.fields()[number], ""))


def oneof_no_delete(old: Message, new: Message) -> Iterator[Violation]:
    """Every oneof of the old message, by name."""
    kept = {proto.name for proto in new.proto.oneof_decl}
    for oneof in old.oneofs():
        if oneof.name not in kept:
            words = f'Previously present oneof "{oneof.name}" on message "{new.proto.name}" was deleted.'
            yield violation("ONEOF_NO_DELETE", words, (new, ""), pointer=oneof.pointer)


def message_same_json_format(old: Message, new: Message) -> Iterator[Violation]:
    """JSON that was promised stays so."""
    if _lost_json(old, new):
        words = f'Message "{new.proto.name}" JSON format support changed from ALLOW to {_json_format(new)}.'
        yield violation("MESSAGE_SAME_JSON_FORMAT", words, (new, "json_format"), (new, ""))


def enum_same_json_format(old: Enum, new: Enum) -> Iterator[Violation]:
    """JSON that was promised stays so."""
    if _lost_json(old, new):
        words = f'Enum "{new.proto.name}" JSON format support changed from ALLOW to {_json_format(new)}.'
        yield violation("ENUM_SAME_JSON_FORMAT", words, (new, "json_format"), (new, ""))


def _lost_json(old: Message | Enum, new: Message | Enum) -> bool:
    return old.features.json_format == FeatureSet.ALLOW != new.features.json_format


def _json_format(element: Message | Enum) -> str:
    return JSON_FORMATS[element.features.json_format]


def no_remove_standard_descriptor_accessor(old: Message, new: Message) -> Iterator[Violation]:
    """`no_standard_descriptor_accessor` is not switched on."""
    if (
        new.proto.options.no_standard_descriptor_accessor
        and not old.proto.options.no_standard_descriptor_accessor
    ):
        words = 'Message option "no_standard_descriptor_accessor" changed from "false" to "true".'
        place = new, "no_standard_descriptor_accessor"
        yield violation("MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR", words, place)


def extension_message_no_delete(old: Message, new: Message) -> Iterator[Violation]:
    """Every number that was open to extensions."""
    before = [(item.start, item.end - 1) for item in old.proto.extension_range]
    after = [(item.start, item.end - 1) for item in new.proto.extension_range]
    yield from _ranges_kept("EXTENSION_MESSAGE_NO_DELETE", "extension", old, new, before, after)


def reserved_message_no_delete(old: Message, new: Message) -> Iterator[Violation]:
    """Every reserved number and name."""
    yield from _reserved_kept("RESERVED_MESSAGE_NO_DELETE", old, new)


def reserved_enum_no_delete(old: Enum, new: Enum) -> Iterator[Violation]:
    """Every reserved number and name."""
    yield from _reserved_kept("RESERVED_ENUM_NO_DELETE", old, new)


def _reserved_kept(rule: str, old: Message | Enum, new: Message | Enum) -> Iterator[Violation]:
    yield from _ranges_kept(rule, "reserved", old, new, _reserved(old), _reserved(new))
    noun = "message" if isinstance(new, Message) else "enum"
    for name in set(old.proto.reserved_name) - set(new.proto.reserved_name):
        words = f'Previously present reserved name "{name}" on {noun} "{new.proto.name}" was deleted.'
        yield violation(rule, words, (new, ""))


Range = tuple[int, int]
"""First and last number."""


def _reserved(element: Message | Enum) -> list[Range]:
    if isinstance(element, Message):
        return [(item.start, item.end - 1) for item in element.proto.reserved_range]
    return [(item.start, item.end) for item in element.proto.reserved_range]


def _ranges_kept(
    rule: str,
    what: str,
    old: Message | Enum,
    new: Message | Enum,
    before: Sequence[Range],
    after: Sequence[Range],
) -> Iterator[Violation]:
    noun = "message" if isinstance(new, Message) else "enum"
    ranges = _merged(after)
    for wanted in before:
        missing = list(_missing(wanted, ranges))
        if missing:
            removed = ", ".join(_shown(part, _maximum(new)) for part in missing)
            words = (
                f'Previously present {what} range "{_shown(wanted, _maximum(old))}" on {noun} "{new.proto.name}" '
                f"is missing values: {removed} were removed."
            )
            yield violation(rule, words, (new, ""))


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """The same numbers in as few ranges as can be, in order."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _missing(wanted: Range, merged: Sequence[Range]) -> Iterator[Range]:
    """The parts of `wanted` that no range covers, in order."""
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


def _maximum(element: Message | Enum) -> int:
    if isinstance(element, Enum):
        return MAX_ENUM_NUMBER
    return MAX_MESSAGE_SET_NUMBER if element.proto.options.message_set_wire_format else MAX_FIELD_NUMBER


def _shown(part: Range, maximum: int) -> str:
    start, end = part
    if start == end:
        return f"[{start}]"
    return f"[{start},{'max' if end == maximum else end}]"


def _value_no_delete(rule: str, *, reserved: str = "") -> EnumRule:
    def check(old: Enum, new: Enum) -> Iterator[Violation]:
        kept = {value.number for value in new.proto.value}
        ranges, names = _merged(_reserved(new)), set(new.proto.reserved_name)
        for number, values in _by_number(old).items():
            if number in kept:
                continue
            suffix = ""
            if reserved == "number":
                if not any(_missing((number, number), ranges)):
                    continue
                suffix = f' without reserving the number "{number}"'
            elif reserved == "name":
                if values.keys() <= names:
                    continue
                plural = "s" if len(values) > 1 else ""
                suffix = f" without reserving the name{plural} {_quoted(values)}"
            words = (
                f'Previously present enum value "{number}" on enum "{new.proto.name}" was deleted{suffix}.'
            )
            yield violation(rule, words, (new, ""), pointer=next(iter(values.values())).pointer)

    return check


def enum_value_same_name(old: Enum, new: Enum) -> Iterator[Violation]:
    """A number keeps every name it had."""
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


def _by_number(enum: Enum) -> dict[int, dict[str, EnumValue]]:
    found: dict[int, dict[str, EnumValue]] = {}
    for value in enum.values():
        found.setdefault(value.proto.number, {})[value.proto.name] = value
    return found


def _quoted(names: Mapping[str, EnumValue]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


def enum_same_type(old: Enum, new: Enum) -> Iterator[Violation]:
    """Open or closed."""
    if old.is_closed != new.is_closed:
        before, after = ("closed", "open") if old.is_closed else ("open", "closed")
        words = f'Enum "{new.proto.name}" changed from {before} to {after}.'
        yield violation("ENUM_SAME_TYPE", words, (new, "enum_type"), (new, ""))


MESSAGE_RULES: Mapping[str, MessageRule] = {
    "EXTENSION_MESSAGE_NO_DELETE": extension_message_no_delete,
    "FIELD_NO_DELETE": _field_no_delete("FIELD_NO_DELETE"),
    "FIELD_NO_DELETE_UNLESS_NAME_RESERVED": _field_no_delete(
        "FIELD_NO_DELETE_UNLESS_NAME_RESERVED", reserved="name"
    ),
    "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED": _field_no_delete(
        "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED", reserved="number"
    ),
    "MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR": no_remove_standard_descriptor_accessor,
    "MESSAGE_SAME_JSON_FORMAT": message_same_json_format,
    "MESSAGE_SAME_REQUIRED_FIELDS": same_required_fields,
    "ONEOF_NO_DELETE": oneof_no_delete,
    "RESERVED_MESSAGE_NO_DELETE": reserved_message_no_delete,
}

ENUM_RULES: Mapping[str, EnumRule] = {
    "ENUM_SAME_JSON_FORMAT": enum_same_json_format,
    "ENUM_SAME_TYPE": enum_same_type,
    "ENUM_VALUE_NO_DELETE": _value_no_delete("ENUM_VALUE_NO_DELETE"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED": _value_no_delete(
        "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED", reserved="name"
    ),
    "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED": _value_no_delete(
        "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED", reserved="number"
    ),
    "ENUM_VALUE_SAME_NAME": enum_value_same_name,
    "RESERVED_ENUM_NO_DELETE": reserved_enum_no_delete,
}
