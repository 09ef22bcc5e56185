"""The rules of `buf breaking` (1.75, rules v2), with its ids, conditions, messages and order.

Source: bufcheckserverhandle of buf 1.75. buf matches files by path, messages, enums and services by full name over all files, fields
and values by number. Its categories FILE and PACKAGE are about generated code and are left to buf.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from google.protobuf.descriptor_pb2 import EDITION_PROTO2, FeatureSet, FieldDescriptorProto, MethodOptions

from schemactl.core.project import ProtoCategory
from schemactl.formats.protobuf import kinds
from schemactl.formats.protobuf.compatibility import WIRE_GROUPS, number_kinds
from schemactl.formats.protobuf.defaults import has_same_default, print_default
from schemactl.formats.protobuf.definition import Place, find_span
from schemactl.formats.protobuf.descriptor import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    EnumValue,
    File,
    Image,
    Method,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    collect_declarations,
)
from schemactl.formats.protobuf.features import JSON_FORMATS, get_edition

WIRE_JSON_GROUPS: Mapping[kinds.Kind, int] = number_kinds(
    "int32 uint32", "int64 uint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""The groups of kinds for JSON, as in WIRE_GROUPS."""

WIRE_CARDINALITIES = {kinds.EXPLICIT: 1, kinds.IMPLICIT: 1, kinds.REQUIRED: 2, kinds.REPEATED: 3, kinds.MAP: 3}

WIRE_JSON_CARDINALITIES = WIRE_CARDINALITIES | {kinds.MAP: 4}

MAX_MESSAGE_SET_NUMBER = 2**31 - 2

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

_Key = TypeVar("_Key")

_Part = TypeVar("_Part")

_Pairs: TypeAlias = Iterator[tuple[_Part, _Part]]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the newer of two images violates.

    Attributes:
        rule: buf's id of the rule.
        message: buf's message.
        file: the `.proto` file with the violation.
        line: the line from 1, as buf reports it; 1 if the file has no place for it.
        column: the column from 1, as buf reports it.
        pointer: the place for `definition.find_place`, also in another text of the same definition.
    """

    rule: str
    message: str
    file: str
    line: int
    column: int
    pointer: str


Holder = ProtoMessage | ProtoEnum

FileRule = Callable[[File, File], Iterator[Violation]]

FieldRule = Callable[[ProtoField, ProtoField], Iterator[Violation]]

MessageRule = Callable[[ProtoMessage, ProtoMessage], Iterator[Violation]]

EnumRule = Callable[[ProtoEnum, ProtoEnum], Iterator[Violation]]

MethodRule = Callable[[Method, Method], Iterator[Violation]]


def find_violations(*, old: Image, new: Image, category: ProtoCategory) -> list[Violation]:
    """Return every violation of the category's rules, in the order of `buf breaking NEW --against OLD`."""
    change = _Change(old, new)
    if any(_may_change_defaults(*enums) for enums in change.pair_enums()):
        # Then the fields of unchanged files can have another default.
        change = _Change(old, new, everything=True)
    rules = CATEGORIES[category]
    violations = {
        *_apply_rules(change.files, FILE_RULES, rules),
        *_apply_rules(change.pair_enums(), ENUM_RULES, rules),
        *_apply_rules(change.pair_messages(), MESSAGE_RULES, rules),
        *_apply_rules(change.pair_fields(), FIELD_RULES, rules),
        *_apply_rules(change.pair_methods(), METHOD_RULES, rules),
    }
    return sorted(
        violations,
        key=lambda violation: (violation.file, violation.line, violation.column, violation.rule, violation.message),
    )


class _Change:
    """The declarations in the files that differ between two images.

    The declarations of an unchanged file are the same on both sides, so no rule needs to compare them.
    """

    def __init__(self, old: Image, new: Image, *, everything: bool = False) -> None:
        self.everything = everything
        self.files = [
            (file, new.files[name])
            for name, file in old.files.items()
            if name in new.files and (everything or file.proto != new.files[name].proto)
        ]
        removed_files = (file for name, file in old.files.items() if name not in new.files)
        added_files = (file for name, file in new.files.items() if name not in old.files)
        self.old = collect_declarations(chain((old_file for old_file, _ in self.files), removed_files))
        self.new = collect_declarations(chain((new_file for _, new_file in self.files), added_files))

    def pair_enums(self) -> _Pairs[ProtoEnum]:
        return _pair_common(self.old.enums, self.new.enums)

    def pair_messages(self) -> _Pairs[ProtoMessage]:
        """Yield the messages of both images that differ."""
        for old, new in _pair_common(self.old.messages, self.new.messages):
            if (
                self.everything
                or old.proto != new.proto
                or old.features != new.features
                or old.file.context != new.file.context
            ):
                yield old, new

    def pair_fields(self) -> _Pairs[ProtoField]:
        """Yield the fields and extensions of both images, by message and number."""
        for old, new in self.pair_messages():
            yield from _pair_common(old.fields(), new.fields())
        yield from _pair_common(self.old.extensions, self.new.extensions)

    def pair_methods(self) -> _Pairs[Method]:
        for old, new in _pair_common(self.old.services, self.new.services):
            yield from _pair_common(old.methods(), new.methods())


def _pair_common(old: Mapping[_Key, _Part], new: Mapping[_Key, _Part]) -> _Pairs[_Part]:
    return ((part, new[key]) for key, part in old.items() if key in new)


def _may_change_defaults(old: ProtoEnum, new: ProtoEnum) -> bool:
    """Return whether the default of a field of this type can have become another number."""
    if old.proto == new.proto:
        return False
    old_numbers, new_numbers = old.numbers(), new.numbers()
    if list(old_numbers.values())[:1] != list(new_numbers.values())[:1]:
        return True
    return any(new_numbers.get(name, number) != number for name, number in old_numbers.items())


def _apply_rules(
    pairs: Iterable[tuple[_Part, _Part]],
    table: Mapping[str, Callable[[_Part, _Part], Iterator[Violation]]],
    rules: frozenset[str],
) -> Iterator[Violation]:
    checks = [check for rule, check in table.items() if rule in rules]
    for old, new in pairs:
        for check in checks:
            yield from check(old, new)


def make_violation(rule: str, message: str, *places: Place, pointer: str = "") -> Violation:
    """Return the violation of `rule` at the first of `places` that the text has.

    All places are in one file; the last is a place of the element that violates the rule.
    """
    element = places[-1][0]
    label = next(label for candidate, label in places if candidate is element)
    line, column = next(filter(None, map(find_span, places)), (1, 1))
    if not pointer:
        pointer = f"{element.pointer}/{label}" if label else element.pointer
    return Violation(rule, message, element.file.name, line, column, pointer)


# Rules of files and fields


def check_same_package(old: File, new: File) -> Iterator[Violation]:
    """Check FILE_SAME_PACKAGE: with another package, everything in the file has another name."""
    if old.proto.package != new.proto.package:
        message = f'File package changed from "{old.proto.package}" to "{new.proto.package}".'
        yield make_violation("FILE_SAME_PACKAGE", message, (new, "package"))


def describe_field(field: ProtoField, *, name: bool = True) -> str:
    """Return `Field "3" with name "id" on message "Click"`, as buf's sentences start."""
    suffix = f' with name "{field.name}"' if name else ""
    if field.proto.extendee:
        return f'Extension "{field.proto.number}"{suffix} on message "{field.proto.extendee.removeprefix(".")}"'
    message = field.message.proto.name if field.message else ""
    return f'Field "{field.proto.number}"{suffix} on message "{message}"'


def check_wire_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept kinds of one group, or string that becomes bytes; and the same message type, or an enum with all old values."""
    if WIRE_GROUPS[old.kind] == WIRE_GROUPS[new.kind]:
        yield from _check_type_name("FIELD_WIRE_COMPATIBLE_TYPE", old, new)
    elif (old.kind, new.kind) != (kinds.STRING, kinds.BYTES):
        note = _WIRE_NOTE + (_UTF8_NOTE if (old.kind, new.kind) == (kinds.BYTES, kinds.STRING) else "")
        yield _make_type_violation("FIELD_WIRE_COMPATIBLE_TYPE", old, new, note)


def check_wire_json_compatible_type(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Accept the same changes as for the wire, except between kinds that JSON writes differently."""
    if WIRE_JSON_GROUPS[old.kind] == WIRE_JSON_GROUPS[new.kind]:
        yield from _check_type_name("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new)
    else:
        yield _make_type_violation("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new, _WIRE_JSON_NOTE)


def _check_type_name(rule: str, old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    if old.type_name == new.type_name or not (new.kind == kinds.ENUM or new.is_message):
        return
    # Another enum with the same unqualified name is accepted if it has every value of the old one.
    if (
        new.kind == kinds.ENUM
        and old.enum.proto.name == new.enum.proto.name
        and old.enum.numbers().items() <= new.enum.numbers().items()
    ):
        return
    message = f'{describe_field(new)} changed type from "{old.type_name}" to "{new.type_name}".'
    yield make_violation(rule, message, (new, "type"))


def _make_type_violation(rule: str, old: ProtoField, new: ProtoField, note: str) -> Violation:
    message = f'{describe_field(new)} changed type from "{_get_kind_name(old)}" to "{_get_kind_name(new)}".{note}'
    return make_violation(rule, message, (new, "type"))


def _get_kind_name(field: ProtoField) -> str:
    if field.kind == kinds.GROUP and get_edition(field.file.proto) != EDITION_PROTO2:
        return "message (delimited encoding)"
    return kinds.KIND_NAMES[field.kind]


def _make_cardinality_rule(rule: str, groups: Mapping[str, int]) -> FieldRule:
    def check(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
        # protoc makes the two fields of a map entry, and their cardinality only follows from the file's syntax.
        if groups[old.cardinality] != groups[new.cardinality] and not (old.in_map_entry and new.in_map_entry):
            message = f'{describe_field(new)} changed cardinality from "{old.cardinality}" to "{new.cardinality}".'
            yield make_violation(rule, message, (new, ""))

    return check


def check_same_default(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Check FIELD_SAME_DEFAULT: readers get another value for an absent field."""
    if not has_same_default(old, new):
        message = f"{describe_field(new)} changed default value from {print_default(old)} to {print_default(new)}."
        yield make_violation("FIELD_SAME_DEFAULT", message, (new, "default"), (new, ""))


def check_same_oneof(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Check FIELD_SAME_ONEOF: both fields are in no oneof, or in oneofs with the same name."""
    if old.oneof == new.oneof or old.proto.extendee:
        return
    if old.oneof and new.oneof:
        message = f'{describe_field(new)} moved from oneof "{old.oneof}" to oneof "{new.oneof}".'
    else:
        direction = "from inside to outside" if old.oneof else "from outside to inside"
        message = f"{describe_field(new)} moved {direction} a oneof."
    yield make_violation("FIELD_SAME_ONEOF", message, (new, ""))


def check_same_name(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Check FIELD_SAME_NAME; the name of an extension is its full name."""
    if old.name != new.name:
        message = f'{describe_field(new, name=False)} changed name from "{old.name}" to "{new.name}".'
        yield make_violation("FIELD_SAME_NAME", message, (new, "name"), (new, ""))


def check_same_json_name(old: ProtoField, new: ProtoField) -> Iterator[Violation]:
    """Check FIELD_SAME_JSON_NAME."""
    old_name, new_name = old.json_name, new.json_name
    if old_name != new_name and not old.proto.extendee:
        message = f'{describe_field(new)} changed option "json_name" from "{old_name}" to "{new_name}".'
        yield make_violation("FIELD_SAME_JSON_NAME", message, (new, "json_name"), (new, ""))


# Rules of messages and enums


def check_same_required_fields(old: ProtoMessage, new: ProtoMessage) -> Iterator[Violation]:
    """Check MESSAGE_SAME_REQUIRED_FIELDS: the same numbers have the label required."""
    required = FieldDescriptorProto.LABEL_REQUIRED
    old_numbers, new_numbers = (
        {proto.number for proto in side.proto.field if proto.label == required} for side in (old, new)
    )
    for number in old_numbers ^ new_numbers:
        action = "deleted" if number in old_numbers else "added"
        message = (
            f'Message "{new.proto.name}" had required field "{number}" {action}. Required fields must always be sent, so if '
            "one side does not know about the required field, this will result in a breakage."
        )
        element = new.fields()[number] if action == "added" else new
        yield make_violation(
            "MESSAGE_SAME_REQUIRED_FIELDS", message, (element, ""), pointer=f"{new.pointer}/fields/{number}"
        )


def _make_json_format_rule(rule: str, noun: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        new_format = new.features.json_format
        if old.features.json_format == FeatureSet.ALLOW != new_format:
            message = f'{noun} "{new.proto.name}" JSON format support changed from ALLOW to {JSON_FORMATS[new_format]}.'
            yield make_violation(rule, message, (new, "json_format"), (new, ""))

    return check


def _make_reserved_rule(rule: str, noun: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    """Return the rule that every reserved number and name stays reserved."""

    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        suffix = f'on {noun} "{new.proto.name}"'
        new_ranges = _merge_ranges(_list_reserved_ranges(new))
        for old_range in _list_reserved_ranges(old):
            if missing_ranges := list(_find_missing(old_range, new_ranges)):
                removed = ", ".join(
                    _format_range(missing_range, _get_max_number(new)) for missing_range in missing_ranges
                )
                message = (
                    f'Previously present reserved range "{_format_range(old_range, _get_max_number(old))}" {suffix} '
                    f"is missing values: {removed} were removed."
                )
                yield make_violation(rule, message, (new, ""))
        for name in set(old.proto.reserved_name) - set(new.proto.reserved_name):
            message = f'Previously present reserved name "{name}" {suffix} was deleted.'
            yield make_violation(rule, message, (new, ""))

    return check


Range = tuple[int, int]
"""The first and the last number."""


def _list_reserved_ranges(element: Holder) -> list[Range]:
    if isinstance(element, ProtoMessage):
        return [(item.start, item.end - 1) for item in element.proto.reserved_range]
    return [(item.start, item.end) for item in element.proto.reserved_range]


def _merge_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Return the same numbers in as few ranges as possible, in order."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _find_missing(numbers: Range, merged: Sequence[Range]) -> Iterator[Range]:
    """Yield the parts of `numbers` that no merged range covers, in order."""
    start, end = numbers
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


def _get_max_number(element: Holder) -> int:
    if isinstance(element, ProtoEnum):
        return MAX_ENUM_NUMBER
    return MAX_MESSAGE_SET_NUMBER if element.proto.options.message_set_wire_format else MAX_FIELD_NUMBER


def _format_range(numbers: Range, maximum: int) -> str:
    start, end = numbers
    if start == end:
        return f"[{start}]"
    return f"[{start},{'max' if end == maximum else end}]"


def _make_no_delete_rule(noun: str, reserved: str) -> Callable[[Holder, Holder], Iterator[Violation]]:
    """Return the rule that the number, or the name, of a deleted field or enum value stays reserved."""
    rule = f"{noun}_NO_DELETE_UNLESS_{reserved.upper()}_RESERVED"

    def check(old: Holder, new: Holder) -> Iterator[Violation]:
        deleted = _list_numbers(old) - _list_numbers(new)
        if not deleted:
            return
        ranges, names = _merge_ranges(_list_reserved_ranges(new)), set(new.proto.reserved_name)
        for number, parts in _index_by_number(old).items():
            if number not in deleted:
                continue
            if reserved == "number":
                is_reserved, subject = not any(_find_missing((number, number), ranges)), f'number "{number}"'
            else:
                is_reserved = parts.keys() <= names
                subject = f"name{'s' if len(parts) > 1 else ''} {_quote_names(parts)}"
            if is_reserved:
                continue
            part = next(iter(parts.values()))
            if isinstance(part, ProtoField):
                description = describe_field(part).replace("Field", "field", 1)
            else:
                description = f'enum value "{number}" on enum "{new.proto.name}"'
            message = f"Previously present {description} was deleted without reserving the {subject}."
            yield make_violation(rule, message, (new, ""), pointer=part.pointer)

    return check


def check_enum_value_same_name(old: ProtoEnum, new: ProtoEnum) -> Iterator[Violation]:
    """Check ENUM_VALUE_SAME_NAME: each number keeps all its names."""
    old_values, new_values = _index_by_number(old), _index_by_number(new)
    for number, old_names in old_values.items():
        new_names = new_values.get(number, {})
        if new_names and not old_names.keys() <= new_names.keys():
            plural = "s" if len(old_names) > 1 and len(new_names) > 1 else ""
            message = (
                f'Enum value "{number}" on enum "{new.proto.name}" changed name{plural} '
                f"from {_quote_names(old_names)} to {_quote_names(new_names)}."
            )
            for value in new_names.values():
                yield make_violation("ENUM_VALUE_SAME_NAME", message, (value, "number"))


def _list_numbers(holder: Holder) -> set[int]:
    parts = holder.proto.field if isinstance(holder, ProtoMessage) else holder.proto.value
    return {part.number for part in parts}


def _index_by_number(holder: Holder) -> dict[int, dict[str, ProtoField | EnumValue]]:
    """Return the fields or the values of `holder` by number and name."""
    parts_by_number: dict[int, dict[str, ProtoField | EnumValue]] = {}
    for part in holder.fields().values() if isinstance(holder, ProtoMessage) else holder.values():
        parts_by_number.setdefault(part.proto.number, {})[part.proto.name] = part
    return parts_by_number


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


# Rules of RPCs


def _make_rpc_type_rule(side: str, attribute: str) -> MethodRule:
    """Return the rule that the request or response message keeps its full name."""

    def check(old: Method, new: Method) -> Iterator[Violation]:
        old_type, new_type = (getattr(method.proto, attribute).removeprefix(".") for method in (old, new))
        if old_type != new_type:
            message = f'{_describe_method(new)} changed {side} type from "{old_type}" to "{new_type}".'
            yield make_violation(f"RPC_SAME_{side.upper()}_TYPE", message, (new, attribute))

    return check


def _make_streaming_rule(side: str) -> MethodRule:
    """Return the rule that a side keeps sending one message, or a stream of messages."""

    def check(old: Method, new: Method) -> Iterator[Violation]:
        is_old_streaming, is_new_streaming = (getattr(method.proto, f"{side}_streaming") for method in (old, new))
        if is_old_streaming != is_new_streaming:
            kinds = ("unary", "streaming") if is_new_streaming else ("streaming", "unary")
            message = f"{_describe_method(new)} changed from {side} {kinds[0]} to {side} {kinds[1]}."
            yield make_violation(f"RPC_SAME_{side.upper()}_STREAMING", message, (new, ""))

    return check


def check_same_idempotency_level(old: Method, new: Method) -> Iterator[Violation]:
    """Check RPC_SAME_IDEMPOTENCY_LEVEL: whether a call may be repeated stays the same."""
    old_level, new_level = old.proto.options.idempotency_level, new.proto.options.idempotency_level
    if old_level != new_level:
        names = MethodOptions.IdempotencyLevel.Name
        message = f'{_describe_method(new)} changed option "idempotency_level" from "{names(old_level)}" to "{names(new_level)}".'
        yield make_violation("RPC_SAME_IDEMPOTENCY_LEVEL", message, (new, "idempotency_level"))


def _describe_method(method: Method) -> str:
    return f'RPC "{method.proto.name}" on service "{method.service.proto.name}"'


FILE_RULES: Mapping[str, FileRule] = {"FILE_SAME_PACKAGE": check_same_package}

FIELD_RULES: Mapping[str, FieldRule] = {
    "FIELD_SAME_DEFAULT": check_same_default,
    "FIELD_SAME_JSON_NAME": check_same_json_name,
    "FIELD_SAME_NAME": check_same_name,
    "FIELD_SAME_ONEOF": check_same_oneof,
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": _make_cardinality_rule(
        "FIELD_WIRE_COMPATIBLE_CARDINALITY", WIRE_CARDINALITIES
    ),
    "FIELD_WIRE_COMPATIBLE_TYPE": check_wire_compatible_type,
    "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY": _make_cardinality_rule(
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY", WIRE_JSON_CARDINALITIES
    ),
    "FIELD_WIRE_JSON_COMPATIBLE_TYPE": check_wire_json_compatible_type,
}

MESSAGE_RULES: Mapping[str, MessageRule] = {
    "FIELD_NO_DELETE_UNLESS_NAME_RESERVED": _make_no_delete_rule("FIELD", "name"),
    "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED": _make_no_delete_rule("FIELD", "number"),
    "MESSAGE_SAME_JSON_FORMAT": _make_json_format_rule("MESSAGE_SAME_JSON_FORMAT", "Message"),
    "MESSAGE_SAME_REQUIRED_FIELDS": check_same_required_fields,
    "RESERVED_MESSAGE_NO_DELETE": _make_reserved_rule("RESERVED_MESSAGE_NO_DELETE", "message"),
}

ENUM_RULES: Mapping[str, EnumRule] = {
    "ENUM_SAME_JSON_FORMAT": _make_json_format_rule("ENUM_SAME_JSON_FORMAT", "Enum"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED": _make_no_delete_rule("ENUM_VALUE", "name"),
    "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED": _make_no_delete_rule("ENUM_VALUE", "number"),
    "ENUM_VALUE_SAME_NAME": check_enum_value_same_name,
    "RESERVED_ENUM_NO_DELETE": _make_reserved_rule("RESERVED_ENUM_NO_DELETE", "enum"),
}

METHOD_RULES: Mapping[str, MethodRule] = {
    "RPC_SAME_CLIENT_STREAMING": _make_streaming_rule("client"),
    "RPC_SAME_IDEMPOTENCY_LEVEL": check_same_idempotency_level,
    "RPC_SAME_REQUEST_TYPE": _make_rpc_type_rule("request", "input_type"),
    "RPC_SAME_RESPONSE_TYPE": _make_rpc_type_rule("response", "output_type"),
    "RPC_SAME_SERVER_STREAMING": _make_streaming_rule("server"),
}

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
